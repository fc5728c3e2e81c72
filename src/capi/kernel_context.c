/* kernel_context.c - a kernel of one's own computes: its inputs as tensors, and its outputs, which it writes where
 * Tower wants them. Texts lie in another form and are copied. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "own_op.h"

struct TF_OpKernelContext {
    tw_op_run *run;
    const made_kernel *made;
    TF_Tensor **inputs, **outputs; /* that have been asked for */
    int num_inputs, num_outputs;
    int64_t step;
    tw_error *error; /* the first failure */
};

struct TF_AsyncOpKernelDoneCallback {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
};

void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback *done)
{
    pthread_mutex_lock(&done->lock);
    done->done = true;
    pthread_cond_signal(&done->changed);
    pthread_mutex_unlock(&done->lock);
}

static void compute_and_wait(const made_kernel *made, TF_OpKernelContext *ctx)
{
    TF_AsyncOpKernelDoneCallback done = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    made->kernel->compute_async(made->made, ctx, &done);
    pthread_mutex_lock(&done.lock);
    while (!done.done)
        pthread_cond_wait(&done.changed, &done.lock);
    pthread_mutex_unlock(&done.lock);
    pthread_cond_destroy(&done.changed);
    pthread_mutex_destroy(&done.lock);
}

static tw_status fail(TF_OpKernelContext *ctx, tw_status status, const char *message)
{
    if (ctx->error->status == TW_OK) {
        ctx->error->status = status;
        snprintf(ctx->error->message, sizeof ctx->error->message, "%s", message);
    }
    return ctx->error->status;
}

/* Puts an output's texts where Tower has them. */
static bool hand_texts_over(TF_OpKernelContext *ctx, int i)
{
    const TF_Tensor *from = ctx->outputs[i];
    const TF_TString *texts = TF_TensorData(from);
    void *to;
    int64_t count = TF_TensorElementCount(from);
    bool fits = tw_op_run_output(ctx->run, i, shape_of(from->dims, from->num_dims), &to, ctx->error) == TW_OK;
    for (int64_t k = 0; k < count && fits; k++)
        if (tw_op_run_set_string(ctx->run, i, k, TF_TString_GetDataPointer(&texts[k]), TF_TString_GetSize(&texts[k]))) {
            fail(ctx, TW_RESOURCE_EXHAUSTED, "out of memory");
            return false;
        }
    return fits;
}

tw_status compute_own(void *kernel, tw_op_run *run, tw_error *error)
{
    static int64_t steps;
    const made_kernel *made = kernel;
    TF_OpKernelContext ctx = {.run = run,
                              .made = made,
                              .num_inputs = tw_op_run_num_inputs(run),
                              .num_outputs = tw_op_run_num_outputs(run),
                              .step = __atomic_add_fetch(&steps, 1, __ATOMIC_RELAXED),
                              .error = error};
    *error = (tw_error){0};
    ctx.inputs = calloc((size_t)ctx.num_inputs + (size_t)ctx.num_outputs + 1, sizeof *ctx.inputs);
    if (!ctx.inputs)
        return fail(&ctx, TW_RESOURCE_EXHAUSTED, "out of memory");
    ctx.outputs = ctx.inputs + ctx.num_inputs;
    if (made->kernel->compute_async)
        compute_and_wait(made, &ctx);
    else
        made->kernel->compute(made->made, &ctx);
    for (int i = 0; i < ctx.num_outputs && error->status == TW_OK; i++)
        if (ctx.outputs[i] && TF_TensorType(ctx.outputs[i]) == TF_STRING)
            hand_texts_over(&ctx, i);
    for (int i = 0; i < ctx.num_inputs + ctx.num_outputs; i++)
        take_back_tensor(ctx.inputs[i]);
    free(ctx.inputs);
    return error->status;
}

void TF_OpKernelContext_Failure(TF_OpKernelContext *ctx, TF_Status *status)
{
    fail(ctx, (tw_status)TF_GetCode(status), TF_Message(status));
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

int TF_NumInputs(TF_OpKernelContext *ctx)
{
    return ctx->num_inputs;
}

int TF_NumOutputs(TF_OpKernelContext *ctx)
{
    return ctx->num_outputs;
}

TF_DataType TF_InputDatatype(TF_OpKernelContext *ctx, int index)
{
    return (TF_DataType)tw_op_run_input(ctx->run, index).dtype;
}

TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext *ctx, int i)
{
    return (TF_DataType)tw_op_run_output_dtype(ctx->run, i);
}

static TF_Tensor *tensor_of_input(tw_op_value value)
{
    if (value.dtype != TW_STRING)
        return lend_tensor((TF_DataType)value.dtype, value.shape.dims, value.shape.rank, (void *)value.data,
                           (size_t)tw_shape_elements(value.shape) * tw_dtype_size(value.dtype));
    tw_tensor *texts = tw_tensor_wrap(TW_STRING, value.shape, (void *)value.data, NULL, NULL);
    return texts ? tensor_from_tower(texts) : NULL;
}

void TF_GetInput(TF_OpKernelContext *ctx, int i, TF_Tensor **tensor, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    if (i < 0 || i >= ctx->num_inputs) {
        set_status(status, TF_OUT_OF_RANGE, "input index out of range");
        return;
    }
    tw_op_value value = tw_op_run_input(ctx->run, i);
    if (value.dtype == TW_RESOURCE || value.dtype == TW_VARIANT) {
        set_status(status, TF_UNIMPLEMENTED, "input %d of '%s' is a %s, of which Tower makes no tensor", i,
                   tw_op_run_node(ctx->run), tw_dtype_name(value.dtype));
        return;
    }
    if (!ctx->inputs[i])
        ctx->inputs[i] = tensor_of_input(value);
    TF_Tensor *given = ctx->inputs[i] ? share_tensor(ctx->inputs[i]) : NULL;
    if (given)
        *tensor = given;
    else
        set_no_memory(status);
}

/* The argument that has that input or output, or is called so; NULL: none is. */
static const struct argument *find_argument_of(const made_kernel *made, int which, int i, const char *name)
{
    for (int k = 0; k < made->num_arguments[which]; k++) {
        const struct argument *a = &made->arguments[which][k];
        if (name ? strcmp(a->name, name) == 0 : i >= a->start && i < a->stop)
            return a;
    }
    return NULL;
}

void TF_InputRange(TF_OpKernelContext *ctx, const char *name, TF_InputRange_Args *args)
{
    const struct argument *a = find_argument_of(ctx->made, 0, 0, name);
    args->start = a ? a->start : -1;
    args->stop = a ? a->stop : -1;
    if (a)
        TF_SetStatus(args->status, TF_OK, "");
    else
        set_status(args->status, TF_INVALID_ARGUMENT, "Unknown input name: %s", name);
}

static bool is_on_host(const made_kernel *made, int which, int i, int count, TF_Status *status)
{
    const struct argument *a = find_argument_of(made, which, i, NULL);
    bool found = false;
    TF_SetStatus(status, TF_OK, "");
    if (i < 0 || i >= count)
        set_status(status, TF_OUT_OF_RANGE, "%s index out of range", which ? "output" : "input");
    for (int k = 0; a && k < made->kernel->num_host_arguments && !found; k++)
        found = strcmp(made->kernel->host_arguments[k], a->name) == 0;
    return found;
}

bool TF_IsHostMemoryInput(TF_OpKernelContext *ctx, int i, TF_Status *status)
{
    return is_on_host(ctx->made, 0, i, ctx->num_inputs, status);
}

bool TF_IsHostMemoryOutput(TF_OpKernelContext *ctx, int i, TF_Status *status)
{
    return is_on_host(ctx->made, 1, i, ctx->num_outputs, status);
}

/* ---- outputs ---------------------------------------------------------------------------------------------------- */

static bool check_output(TF_OpKernelContext *ctx, int i, TF_DataType type, int num_dims, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    if (i < 0 || i >= ctx->num_outputs)
        set_status(status, TF_OUT_OF_RANGE, "output index out of range");
    else if (type != TF_ExpectedOutputDataType(ctx, i))
        set_status(status, TF_INVALID_ARGUMENT, "output %d of '%s' is %s, found %s", i, tw_op_run_node(ctx->run),
                   tw_dtype_name((tw_dtype)TF_ExpectedOutputDataType(ctx, i)), tw_dtype_name((tw_dtype)type));
    else if (num_dims < 0 || num_dims > TW_MAX_RANK)
        set_status(status, TF_INVALID_ARGUMENT, "output %d of '%s' has %d dimensions, the most are %d", i,
                   tw_op_run_node(ctx->run), num_dims, TW_MAX_RANK);
    return is_ok(status);
}

static void fail_shape(const TF_OpKernelContext *ctx, const int64_t *dims, int num_dims, TF_Status *status)
{
    char text[256];
    set_status(status, TF_INVALID_ARGUMENT, "'%s' asks for a tensor of shape %s, whose elements cannot be counted",
               tw_op_run_node(ctx->run), tw_shape_text(shape_of(dims, num_dims), text, sizeof text));
}

/* The output, made anew if it has another shape than before. NULL: the status says why. */
static TF_Tensor *make_output(TF_OpKernelContext *ctx, int i, TF_DataType type, const int64_t *dims, int num_dims,
                              TF_Status *status)
{
    tw_error error = TW_NO_ERROR;
    tw_shape shape = shape_of(dims, num_dims);
    void *data;
    int64_t elements = tw_shape_elements(shape);
    size_t bytes = (size_t)elements * tw_dtype_size((tw_dtype)type);
    TF_Tensor *made = NULL;
    if (elements < 0) {
        fail_shape(ctx, dims, num_dims, status);
        return NULL;
    }
    if (type == TF_STRING) {
        made = TF_AllocateTensor(type, dims, num_dims, (size_t)elements * sizeof(TF_TString));
    } else if (tw_op_run_output(ctx->run, i, shape, &data, &error) != TW_OK) {
        set_error(status, &error);
        return NULL;
    } else {
        made = lend_tensor(type, dims, num_dims, data, bytes);
    }
    TF_Tensor *given = made ? share_tensor(made) : NULL;
    if (!given) {
        TF_DeleteTensor(made);
        set_no_memory(status);
        return NULL;
    }
    take_back_tensor(ctx->outputs[i]);
    ctx->outputs[i] = made;
    return given;
}

TF_Tensor *TF_AllocateOutput(TF_OpKernelContext *context, int index, TF_DataType dtype, const int64_t *dims,
                             int num_dims, size_t len, TF_Status *status)
{
    (void)len;
    bool fits = check_output(context, index, dtype, num_dims, status);
    return fits ? make_output(context, index, dtype, dims, num_dims, status) : NULL;
}

TF_Tensor *TF_ForwardInputOrAllocateOutput(TF_OpKernelContext *context, const int *candidate_input_indices,
                                           int num_candidate_input_indices, int output_index,
                                           const int64_t *output_dims, int output_num_dims, int *forwarded_input,
                                           TF_Status *status)
{
    (void)candidate_input_indices;
    (void)num_candidate_input_indices;
    if (forwarded_input)
        *forwarded_input = -1;
    return TF_AllocateOutput(context, output_index, TF_ExpectedOutputDataType(context, output_index), output_dims,
                             output_num_dims, 0, status);
}

void TF_SetOutput(TF_OpKernelContext *ctx, int i, const TF_Tensor *tensor, TF_Status *status)
{
    if (!check_output(ctx, i, TF_TensorType(tensor), TF_NumDims(tensor), status))
        return;
    if (TF_TensorType(tensor) == TF_STRING) {
        TF_Tensor *shared = share_tensor(tensor);
        TF_DeleteTensor(shared ? ctx->outputs[i] : NULL);
        ctx->outputs[i] = shared ? shared : ctx->outputs[i];
        if (!shared)
            set_no_memory(status);
        return;
    }
    TF_Tensor *made = make_output(ctx, i, TF_TensorType(tensor), tensor->dims, tensor->num_dims, status);
    size_t bytes = made ? TF_TensorByteSize(made) : 0;
    if (bytes && TF_TensorData(made) != TF_TensorData(tensor))
        memcpy(TF_TensorData(made), TF_TensorData(tensor), bytes);
    TF_DeleteTensor(made);
}

TF_Tensor *TF_GetMutableOutput(TF_OpKernelContext *ctx, int i, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    if (i < 0 || i >= ctx->num_outputs) {
        set_status(status, TF_OUT_OF_RANGE, "output index out of range");
        return NULL;
    }
    return ctx->outputs[i] ? share_tensor(ctx->outputs[i]) : NULL;
}

TF_Tensor *TF_AllocateTemp(TF_OpKernelContext *context, TF_DataType dtype, const int64_t *dims, int num_dims,
                           TF_AllocatorAttributes *alloc_attrs, TF_Status *status)
{
    (void)alloc_attrs;
    size_t size = dtype == TF_STRING ? sizeof(TF_TString) : TF_DataTypeSize(dtype);
    bool fits = true;
    for (int i = 0; i < num_dims; i++)
        fits = fits && dims[i] >= 0 && !__builtin_mul_overflow(size, (size_t)dims[i], &size);
    TF_Tensor *tensor = fits ? TF_AllocateTensor(dtype, dims, num_dims, size) : NULL;
    TF_SetStatus(status, TF_OK, "");
    if (!fits)
        fail_shape(context, dims, num_dims, status);
    else if (!tensor)
        set_no_memory(status);
    return tensor;
}

/* ---- who computes ----------------------------------------------------------------------------------------------- */

int64_t TF_StepId(TF_OpKernelContext *ctx)
{
    return ctx->step;
}

int64_t TF_GetStepId(TF_OpKernelContext *ctx)
{
    return ctx->step;
}

uint64_t TF_GetFrameId(TF_OpKernelContext *ctx)
{
    (void)ctx;
    return 0;
}

int64_t TF_GetIterId(TF_OpKernelContext *ctx)
{
    (void)ctx;
    return 0;
}

static TF_StringView view_of(const char *text)
{
    return (TF_StringView){text, strlen(text)};
}

int TF_GetDeviceId(TF_OpKernelContext *ctx)
{
    const char *colon = strrchr(ctx->made->device, ':');
    return colon ? atoi(colon + 1) : 0;
}

TF_StringView TF_GetDeviceName(TF_OpKernelContext *ctx)
{
    return view_of(ctx->made->device);
}

int TF_GetGraphDefVersion(TF_OpKernelContext *ctx)
{
    (void)ctx;
    return GRAPH_VERSION;
}

TF_StringView TF_GetOpKernelName(TF_OpKernelContext *ctx)
{
    return view_of(tw_op_run_node(ctx->run));
}

TF_StringView TF_GetResourceMgrDefaultContainerName(TF_OpKernelContext *ctx)
{
    (void)ctx;
    return view_of("localhost");
}

TF_StringView TF_GetOpKernelRequestedInput(TF_OpKernelContext *ctx, size_t index)
{
    (void)ctx;
    (void)index;
    return view_of("");
}
