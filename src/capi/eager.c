/* eager.c - contexts, their functions and devices, and handles of tensors. A context is a graph with a session: what is
 * executed in it (execute.c) is an operation of this graph. Handles' tensors lie in the memory of the host, wherever
 * they were made.
 * Never here:  attributes and inputs of operations. */
#include "eager.h"

#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api_experimental.h>
#include <tensorflow/c/eager/c_api_experimental.h>

/* An operation has a plan for each of its shapes, and one step of a program that trains executes hundreds: if they were
 * not all kept, each would be planned again in every step. A plan has some 40 KiB; memory for values is the session's.
 */
enum { KEPT_PLANS = 512 };

#define TASK "/job:localhost/replica:0/task:0"
#define FIRST_CPU TASK "/device:CPU:0"

struct TFE_ContextOptions {
    TF_SessionOptions *session;
    TFE_ContextDevicePlacementPolicy policy;
};

struct TFE_Executor {
    bool is_async; /* which is all that it has */
};

struct TFE_TensorDebugInfo {
    int num_dims;
    int64_t dims[];
};

/* ---- contexts --------------------------------------------------------------------------------------------------- */

TFE_ContextOptions *TFE_NewContextOptions(void)
{
    TFE_ContextOptions *options = calloc(1, sizeof *options);
    if (options && !(options->session = TF_NewSessionOptions())) {
        free(options);
        return NULL;
    }
    if (options)
        options->policy = TFE_DEVICE_PLACEMENT_SILENT;
    return options;
}

void TFE_ContextOptionsSetConfig(TFE_ContextOptions *options, const void *proto, size_t proto_len, TF_Status *status)
{
    TF_SetConfig(options->session, proto, proto_len, status);
}

/* Who asks for values waits for them anyway. */
void TFE_ContextOptionsSetAsync(TFE_ContextOptions *options, unsigned char enable)
{
    (void)options;
    (void)enable;
}

void TFE_ContextOptionsSetDevicePlacementPolicy(TFE_ContextOptions *options, TFE_ContextDevicePlacementPolicy policy)
{
    options->policy = policy;
}

void TFE_DeleteContextOptions(TFE_ContextOptions *options)
{
    if (options)
        TF_DeleteSessionOptions(options->session);
    free(options);
}

TFE_Context *TFE_NewContext(const TFE_ContextOptions *opts, TF_Status *status)
{
    TFE_Context *context = calloc(1, sizeof *context);
    if (!context || !(context->graph = TF_NewGraph()) || pthread_key_create(&context->policy, NULL) != 0) {
        set_no_memory(status);
        TF_DeleteGraph(context ? context->graph : NULL);
        free(context);
        return NULL;
    }
    pthread_mutex_init(&context->lock, NULL);
    context->first_policy = opts ? opts->policy : TFE_DEVICE_PLACEMENT_SILENT;
    context->soft_placement = opts && places_softly(opts->session);
    context->session = new_session(context->graph, opts ? opts->session : NULL, KEPT_PLANS, status);
    if (is_ok(status))
        return context;
    TFE_DeleteContext(context);
    return NULL;
}

void TFE_DeleteContext(TFE_Context *ctx)
{
    TF_Status status = {0};
    if (!ctx)
        return;
    free_built(ctx);
    TF_DeleteSession(ctx->session, &status);
    TF_DeleteGraph(ctx->graph);
    pthread_key_delete(ctx->policy);
    pthread_mutex_destroy(&ctx->lock);
    free(status.message);
    free(ctx);
}

TF_DeviceList *TFE_ContextListDevices(TFE_Context *ctx, TF_Status *status)
{
    return TF_SessionListDevices(ctx->session, status);
}

/* What is kept of an operation is right as long as there are its functions. */
void TFE_ContextClearCaches(TFE_Context *ctx)
{
    (void)ctx;
}

void TFE_ContextSetThreadLocalDevicePlacementPolicy(TFE_Context *ctx, TFE_ContextDevicePlacementPolicy policy)
{
    pthread_setspecific(ctx->policy, (void *)((intptr_t)policy + 1));
}

TFE_ContextDevicePlacementPolicy TFE_ContextGetDevicePlacementPolicy(TFE_Context *ctx)
{
    intptr_t set = (intptr_t)pthread_getspecific(ctx->policy);
    return set ? (TFE_ContextDevicePlacementPolicy)(set - 1) : ctx->first_policy;
}

void TFE_ContextSetServerDef(TFE_Context *ctx, int keep_alive_secs, const void *proto, size_t proto_len,
                             TF_Status *status)
{
    (void)ctx;
    (void)keep_alive_secs;
    (void)proto;
    (void)proto_len;
    set_status(status, TF_UNIMPLEMENTED, "operations are executed in this process: Tower has no servers for them");
}

/* Metadata are empty, as those of runs. */
void TFE_ContextEnableRunMetadata(TFE_Context *ctx)
{
    (void)ctx;
}

void TFE_ContextDisableRunMetadata(TFE_Context *ctx)
{
    (void)ctx;
}

void TFE_ContextExportRunMetadata(TFE_Context *ctx, TF_Buffer *buf, TF_Status *status)
{
    wire nothing = {0};
    (void)ctx;
    wire_append(&nothing, "", 0);
    fill_buffer(buf, &nothing, status);
}

/* Nothing lives as long as a step. */
void TFE_ContextStartStep(TFE_Context *ctx)
{
    (void)ctx;
}

void TFE_ContextEndStep(TFE_Context *ctx)
{
    (void)ctx;
}

uint64_t TFE_GetContextId(TFE_Context *ctx)
{
    return (uintptr_t)ctx;
}

void TFE_ContextSetSoftDevicePlacement(TFE_Context *ctx, unsigned char enable, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    if (ctx->soft_placement != (enable != 0))
        set_status(status, TF_UNIMPLEMENTED, "a context places softly if its ConfigProto has allow_soft_placement");
}

/* ---- what there is one way to do -------------------------------------------------------------------------------- */

void TFE_ContextAsyncWait(TFE_Context *ctx, TF_Status *status)
{
    (void)ctx;
    TF_SetStatus(status, TF_OK, "");
}

void TFE_ContextOptionsSetTfrt(TFE_ContextOptions *options, bool use_tfrt)
{
    (void)options;
    (void)use_tfrt;
}

void TFE_ContextEnableGraphCollection(TFE_Context *ctx)
{
    (void)ctx;
}

void TFE_ContextDisableGraphCollection(TFE_Context *ctx)
{
    (void)ctx;
}

void TFE_ContextSetLogDevicePlacement(TFE_Context *ctx, unsigned char enable, TF_Status *status)
{
    (void)enable;
    TFE_ContextAsyncWait(ctx, status);
}

void TFE_ContextSetRunEagerOpAsFunction(TFE_Context *ctx, unsigned char enable, TF_Status *status)
{
    (void)enable;
    TFE_ContextAsyncWait(ctx, status);
}

void TFE_ContextSetJitCompileRewrite(TFE_Context *ctx, unsigned char enable, TF_Status *status)
{
    (void)enable;
    TFE_ContextAsyncWait(ctx, status);
}

void TFE_HostAddressSpace(TFE_Context *ctx, TF_Buffer *buf)
{
    wire name = {0};
    TF_Status status = {0};
    (void)ctx;
    wire_append(&name, TASK, strlen(TASK));
    fill_buffer(buf, &name, &status);
    free(status.message);
}

void TFE_GetExecutedOpNames(TFE_Context *ctx, TF_Buffer *buf, TF_Status *status)
{
    TFE_ContextAsyncWait(ctx, status);
    TFE_ContextExportRunMetadata(ctx, buf, status);
}

void TFE_SetLogicalCpuDevices(TFE_Context *ctx, int num_cpus, const char *prefix, TF_Status *status)
{
    int count = 0;
    TF_DeviceList *devices = TFE_ContextListDevices(ctx, status);
    for (int i = 0; devices && is_ok(status) && i < TF_DeviceListCount(devices); i++) {
        const char *type = TF_DeviceListType(devices, i, status);
        count += type && strcmp(type, "CPU") == 0;
    }
    TF_DeleteDeviceList(devices);
    (void)prefix;
    if (is_ok(status) && count != num_cpus)
        set_status(status, TF_UNIMPLEMENTED,
                   "a context keeps the devices that its ConfigProto says (device_count): it has %d CPUs, and not %d",
                   count, num_cpus);
}

void TFE_InitializeLocalOnlyContext(TFE_Context *ctx, int keep_alive_secs, const void *proto, size_t proto_len,
                                    TF_Status *status)
{
    (void)keep_alive_secs;
    TFE_ContextAsyncWait(ctx, status);
    if (!wire_is_message(proto, proto_len))
        set_status(status, TF_INVALID_ARGUMENT, "Invalid tensorflow.ServerDef protocol buffer");
}

bool TFE_IsCustomDevice(TFE_Context *ctx, const char *device_name)
{
    (void)ctx;
    (void)device_name;
    return false;
}

TFE_Executor *TFE_NewExecutor(bool is_async, bool enable_streaming_enqueue, int in_flight_nodes_limit)
{
    TFE_Executor *executor = calloc(1, sizeof *executor);
    (void)enable_streaming_enqueue;
    (void)in_flight_nodes_limit;
    if (executor)
        executor->is_async = is_async;
    return executor;
}

void TFE_DeleteExecutor(TFE_Executor *executor)
{
    free(executor);
}

bool TFE_ExecutorIsAsync(TFE_Executor *executor)
{
    return executor->is_async;
}

void TFE_ExecutorWaitForAllPendingNodes(TFE_Executor *executor, TF_Status *status)
{
    (void)executor;
    TF_SetStatus(status, TF_OK, "");
}

void TFE_ExecutorClearError(TFE_Executor *executor)
{
    (void)executor;
}

void TFE_ContextSetExecutorForThread(TFE_Context *ctx, TFE_Executor *executor)
{
    (void)ctx;
    (void)executor;
}

TFE_Executor *TFE_ContextGetExecutorForThread(TFE_Context *ctx)
{
    (void)ctx;
    return TFE_NewExecutor(false, false, 0);
}

/* ---- functions -------------------------------------------------------------------------------------------------- */

void TFE_ContextAddFunction(TFE_Context *ctx, TF_Function *function, TF_Status *status)
{
    TF_GraphCopyFunction(ctx->graph, function, NULL, status);
}

void TFE_ContextAddFunctionDef(TFE_Context *ctx, const char *serialized_function_def, size_t size, TF_Status *status)
{
    TF_Function *function = TF_FunctionImportFunctionDef(serialized_function_def, size, status);
    if (function)
        TFE_ContextAddFunction(ctx, function, status);
    TF_DeleteFunction(function);
}

void TFE_ContextRemoveFunction(TFE_Context *ctx, const char *name, TF_Status *status)
{
    forget_calls(ctx);
    TF_GraphRemoveFunction(ctx->graph, name, status);
}

unsigned char TFE_ContextHasFunction(TFE_Context *ctx, const char *name)
{
    pthread_rwlock_rdlock(&ctx->graph->lock);
    bool has = find_function(ctx->graph, name);
    pthread_rwlock_unlock(&ctx->graph->lock);
    return has;
}

TF_Function *TFE_ContextGetFunction(TFE_Context *ctx, const char *name, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    pthread_rwlock_rdlock(&ctx->graph->lock);
    TF_Function *function = find_function(ctx->graph, name);
    if (function)
        __atomic_add_fetch(&function->references, 1, __ATOMIC_RELAXED);
    else
        set_status(status, TF_NOT_FOUND, "Unable to find Function with name: %s", name);
    pthread_rwlock_unlock(&ctx->graph->lock);
    return function;
}

void TFE_ContextGetFunctionDef(TFE_Context *ctx, const char *function_name, TF_Buffer *buf, TF_Status *status)
{
    TF_Function *function = TFE_ContextGetFunction(ctx, function_name, status);
    if (function)
        TF_FunctionToFunctionDef(function, buf, status);
    TF_DeleteFunction(function);
}

/* ---- handles of tensors ----------------------------------------------------------------------------------------- */

TFE_TensorHandle *new_handle(TF_Tensor *tensor, TF_Output node, const char *device, TF_Status *status)
{
    TFE_TensorHandle *handle = calloc(1, sizeof *handle);
    char *copy = strdup(device ? device : FIRST_CPU);
    if (!handle || !copy || (!tensor && !node.oper)) {
        set_no_memory(status);
        TF_DeleteTensor(tensor);
        free(copy);
        free(handle);
        return NULL;
    }
    *handle = (TFE_TensorHandle){.references = 1, .tensor = tensor, .node = node, .device = copy};
    TF_SetStatus(status, TF_OK, "");
    return handle;
}

static bool is_handle(const TFE_TensorHandle *h, TF_Status *status)
{
    TF_SetStatus(status, h ? TF_OK : TF_INVALID_ARGUMENT, h ? "" : "Invalid handle");
    return h;
}

/* The same tensor or resource, on another device if that is given. */
static TFE_TensorHandle *copy_handle(const TFE_TensorHandle *h, const char *device, TF_Status *status)
{
    if (!is_handle(h, status))
        return NULL;
    return new_handle(h->tensor ? share_tensor(h->tensor) : NULL, h->node, device ? device : h->device, status);
}

TFE_TensorHandle *TFE_NewTensorHandle(const TF_Tensor *t, TF_Status *status)
{
    return new_handle(share_tensor(t), (TF_Output){0}, NULL, status);
}

TFE_TensorHandle *TFE_NewTensorHandleFromTensor(TFE_Context *ctx, TF_Tensor *t, TF_Status *status)
{
    (void)ctx;
    return TFE_NewTensorHandle(t, status);
}

TFE_TensorHandle *TFE_NewTensorHandleFromScalar(TF_DataType data_type, void *data, size_t len, TF_Status *status)
{
    TF_Tensor *tensor = TF_DataTypeSize(data_type) == len ? TF_AllocateTensor(data_type, NULL, 0, len) : NULL;
    if (!tensor) {
        set_status(status, TF_INVALID_ARGUMENT, "a scalar of type %d has %zu bytes, not %zu", data_type,
                   TF_DataTypeSize(data_type), len);
        return NULL;
    }
    memcpy(TF_TensorData(tensor), data, len);
    return new_handle(tensor, (TF_Output){0}, NULL, status);
}

TF_Tensor *TFE_AllocateHostTensor(TFE_Context *ctx, TF_DataType dtype, const int64_t *dims, int num_dims,
                                  TF_Status *status)
{
    size_t bytes = dtype == TF_STRING ? sizeof(TF_TString) : TF_DataTypeSize(dtype);
    bool fits = bytes > 0;
    for (int i = 0; i < num_dims && fits; i++)
        fits = dims[i] >= 0 && !__builtin_mul_overflow(bytes, (size_t)dims[i], &bytes);
    TF_Tensor *tensor = fits ? TF_AllocateTensor(dtype, dims, num_dims, bytes) : NULL;
    (void)ctx;
    TF_SetStatus(status, TF_OK, "");
    if (!fits)
        set_status(status, TF_INVALID_ARGUMENT, "no tensor has the type %d and %d such dimensions", dtype, num_dims);
    else if (!tensor)
        set_no_memory(status);
    return tensor;
}

void TFE_DeleteTensorHandle(TFE_TensorHandle *h)
{
    if (!h || __atomic_sub_fetch(&h->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    TF_DeleteTensor(h->tensor);
    free(h->device);
    free(h);
}

TF_DataType TFE_TensorHandleDataType(TFE_TensorHandle *h)
{
    return h->tensor ? h->tensor->type : TF_RESOURCE;
}

/* A resource's handle is a scalar. */
static int rank_of(const TFE_TensorHandle *h)
{
    return h->tensor ? h->tensor->num_dims : 0;
}

int TFE_TensorHandleNumDims(TFE_TensorHandle *h, TF_Status *status)
{
    return is_handle(h, status) ? rank_of(h) : -1;
}

int64_t TFE_TensorHandleNumElements(TFE_TensorHandle *h, TF_Status *status)
{
    return is_handle(h, status) ? (h->tensor ? TF_TensorElementCount(h->tensor) : 1) : -1;
}

int64_t TFE_TensorHandleDim(TFE_TensorHandle *h, int dim_index, TF_Status *status)
{
    if (!is_handle(h, status))
        return -1;
    if (dim_index < 0 || dim_index >= rank_of(h)) {
        set_status(status, TF_INVALID_ARGUMENT, "the tensor has %d dimensions, and no number %d", rank_of(h),
                   dim_index);
        return -1;
    }
    return h->tensor->dims[dim_index];
}

const char *TFE_TensorHandleDeviceName(TFE_TensorHandle *h, TF_Status *status)
{
    return is_handle(h, status) ? h->device : NULL;
}

const char *TFE_TensorHandleBackingDeviceName(TFE_TensorHandle *h, TF_Status *status)
{
    return is_handle(h, status) ? FIRST_CPU : NULL;
}

const char *TFE_TensorHandleDeviceType(TFE_TensorHandle *h, TF_Status *status)
{
    return is_handle(h, status) ? (strstr(h->device, "/device:GPU:") ? "GPU" : "CPU") : NULL;
}

int TFE_TensorHandleDeviceID(TFE_TensorHandle *h, TF_Status *status)
{
    return is_handle(h, status) ? atoi(strrchr(h->device, ':') + 1) : -1;
}

void TFE_TensorHandleGetStatus(TFE_TensorHandle *h, TF_Status *status)
{
    is_handle(h, status);
}

void *TFE_TensorHandleDevicePointer(TFE_TensorHandle *h, TF_Status *status)
{
    return is_handle(h, status) && h->tensor ? TF_TensorData(h->tensor) : NULL;
}

size_t TFE_TensorHandleDeviceMemorySize(TFE_TensorHandle *h, TF_Status *status)
{
    return is_handle(h, status) && h->tensor ? TF_TensorByteSize(h->tensor) : 0;
}

/* ---- resources as tensors: a ResourceHandleProto that has the name of the node ---------------------------------- */

enum { DEVICE = 1, NAME = 3 };

static TF_Tensor *name_resource(const TFE_TensorHandle *h)
{
    wire message = {0};
    wire_text(&message, DEVICE, h->device);
    wire_text(&message, NAME, TF_OperationName(h->node.oper));
    TF_Tensor *named = message.failed ? NULL : TF_AllocateTensor(TF_RESOURCE, NULL, 0, message.size);
    if (named)
        memcpy(TF_TensorData(named), message.data, message.size);
    wire_free(&message);
    return named;
}

TFE_TensorHandle *handle_in(TFE_Context *context, TFE_TensorHandle *h, TF_Status *status)
{
    if (!is_handle(h, status))
        return NULL;
    if (!h->tensor || h->tensor->type != TF_RESOURCE)
        return retain_handle(h);
    wire_field field;
    TF_Operation *oper = NULL;
    for (wire_reader r = wire_read(h->tensor->memory->data, h->tensor->memory->bytes); wire_next(&r, &field);) {
        char *name = field.number == NAME && field.type == 2 ? strndup((const char *)field.data, field.size) : NULL;
        if (name)
            oper = TF_GraphOperationByName(context->graph, name);
        free(name);
    }
    if (oper && TF_OperationNumOutputs(oper) == 1 && TF_OperationOutputType((TF_Output){oper, 0}) == TF_RESOURCE)
        return new_handle(NULL, (TF_Output){oper, 0}, h->device, status);
    set_status(status, TF_INVALID_ARGUMENT, "what a tensor of type resource says is no resource of this context");
    return NULL;
}

TF_Tensor *TFE_TensorHandleResolve(TFE_TensorHandle *h, TF_Status *status)
{
    if (!is_handle(h, status))
        return NULL;
    TF_Tensor *shared = h->tensor ? share_tensor(h->tensor) : name_resource(h);
    if (!shared)
        set_no_memory(status);
    return shared;
}

TFE_TensorHandle *TFE_TensorHandleCopySharingTensor(TFE_TensorHandle *h, TF_Status *status)
{
    return copy_handle(h, NULL, status);
}

TFE_TensorHandle *TFE_TensorHandleCopyToDevice(TFE_TensorHandle *h, TFE_Context *ctx, const char *device_name,
                                               TF_Status *status)
{
    const tw_devices *devices = tw_session_devices(tower_session_of(ctx->session));
    int device = tw_devices_find(devices, device_name);
    if (device < 0) {
        set_status(status, TF_INVALID_ARGUMENT, "%s unknown device.", device_name);
        return NULL;
    }
    return copy_handle(h, tw_devices_info(devices, device).name, status);
}

TFE_TensorHandle *TFE_NewTensorHandleFromDeviceMemory(TFE_Context *ctx, const char *device_name, TF_DataType dtype,
                                                      const int64_t *dims, int num_dims, void *data, size_t len,
                                                      void (*deallocator)(void *data, size_t len, void *arg),
                                                      void *deallocator_arg, TF_Status *status)
{
    const tw_devices *devices = tw_session_devices(tower_session_of(ctx->session));
    int device = tw_devices_find(devices, device_name);
    const char *name = device < 0 ? NULL : tw_devices_info(devices, device).name;
    TF_Tensor *tensor = TF_NewTensor(dtype, dims, num_dims, data, len, deallocator, deallocator_arg);
    TF_SetStatus(status, TF_OK, "");
    if (!name)
        set_status(status, TF_INVALID_ARGUMENT, "%s unknown device.", device_name);
    else if (!strstr(name, "CPU"))
        set_status(status, TF_UNIMPLEMENTED, "handles' tensors lie in the memory of the host, and not in that of %s",
                   name);
    else if (!tensor)
        set_status(status, TF_INVALID_ARGUMENT, "%zu bytes are not enough for a tensor of type %d and these dimensions",
                   len, dtype);
    if (is_ok(status))
        return new_handle(tensor, (TF_Output){0}, name, status);
    TF_DeleteTensor(tensor);
    return NULL;
}

/* ---- how a tensor lies on its device: as it is ------------------------------------------------------------------ */

TFE_TensorDebugInfo *TFE_TensorHandleTensorDebugInfo(TFE_TensorHandle *h, TF_Status *status)
{
    if (!is_handle(h, status))
        return NULL;
    int rank = rank_of(h);
    TFE_TensorDebugInfo *info = malloc(sizeof *info + sizeof *info->dims * (size_t)rank);
    if (!info) {
        set_no_memory(status);
        return NULL;
    }
    info->num_dims = rank;
    for (int i = 0; i < rank; i++)
        info->dims[i] = h->tensor->dims[i];
    return info;
}

void TFE_DeleteTensorDebugInfo(TFE_TensorDebugInfo *debug_info)
{
    free(debug_info);
}

int TFE_TensorDebugInfoOnDeviceNumDims(TFE_TensorDebugInfo *debug_info)
{
    return debug_info->num_dims;
}

int64_t TFE_TensorDebugInfoOnDeviceDim(TFE_TensorDebugInfo *debug_info, int dim_index)
{
    return debug_info->dims[dim_index];
}
