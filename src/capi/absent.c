/* absent.c - functions of TensorFlow's library that have no meaning in Tower, in one table: what binds all names when
 * it starts finds them, and what calls one is told in its status what is not there. Those that have no status give
 * NULL, 0 or false, and do nothing. Headers have none of them, since nothing is to be written for them.
 * Never here:  anything that works; what is refused in a way of its own (unsupported.c). */
#include <tensorflow/c/eager/c_api_experimental.h>
#include <tensorflow/c/kernels.h>

#include "capi.h"

#pragma GCC diagnostic ignored "-Wunused-parameter" /* they are there for the callers' sake */

/* A row: what the function gives, its name and parameters, with `status` among them, and what there is not. */
#define REFUSED(type, name, parameters, what)                               \
    TF_CAPI_EXPORT type name parameters;                                    \
    type name parameters                                                    \
    {                                                                       \
        set_status(status, TF_UNIMPLEMENTED, #name ": Tower has no " what); \
        return (type){0};                                                   \
    }
#define REFUSED_VOID(name, parameters, what)                                \
    TF_CAPI_EXPORT void name parameters;                                    \
    void name parameters                                                    \
    {                                                                       \
        set_status(status, TF_UNIMPLEMENTED, #name ": Tower has no " what); \
    }
/* The same of those without a status. */
#define SILENT(type, name, parameters)   \
    TF_CAPI_EXPORT type name parameters; \
    type name parameters                 \
    {                                    \
        return (type){0};                \
    }
#define SILENT_VOID(name, parameters)    \
    TF_CAPI_EXPORT void name parameters; \
    void name parameters                 \
    {                                    \
    }

/* ---- servers, and what many processes agree on ------------------------------------------------------------------ */

#define SERVERS                                                                                              \
    "servers for operations that are executed at once; several tasks are started by tower launch, mpirun or srun"

REFUSED_VOID(TFE_ContextUpdateServerDef,
             (TFE_Context * ctx, int keep_alive_secs, const void *proto, size_t proto_len, TF_Status *status), SERVERS)
REFUSED_VOID(TFE_ContextUpdateServerDefWithTimeout,
             (TFE_Context * ctx, int keep_alive_secs, const void *proto, size_t proto_len, int64_t init_timeout_in_ms,
              TF_Status *status),
             SERVERS)
REFUSED_VOID(TFE_ContextSetServerDefWithTimeout,
             (TFE_Context * ctx, int keep_alive_secs, const void *proto, size_t proto_len, int64_t init_timeout_in_ms,
              TF_Status *status, bool clear_existing_contexts),
             SERVERS)
REFUSED_VOID(TFE_ContextSetServerDefWithTimeoutAndRetries,
             (TFE_Context * ctx, int keep_alive_secs, const void *proto, size_t proto_len, int64_t init_timeout_in_ms,
              int retries, TF_Status *status, bool clear_existing_contexts),
             SERVERS)
REFUSED(bool, TFE_ContextCheckAlive, (TFE_Context * ctx, const char *worker_name, TF_Status *status), SERVERS)
REFUSED_VOID(TFE_EnableCollectiveOps, (TFE_Context * ctx, const void *proto, size_t proto_len, TF_Status *status),
             SERVERS)
REFUSED_VOID(TFE_AbortCollectiveOps, (TFE_Context * ctx, TF_Status *status), SERVERS)
REFUSED_VOID(TFE_CollectiveOpsCheckPeerHealth,
             (TFE_Context * ctx, const char *task, int64_t timeout_in_ms, TF_Status *status), SERVERS)
REFUSED_VOID(TFE_InsertConfigKeyValue, (TFE_Context * ctx, const char *key, const char *value, TF_Status *status),
             SERVERS)
REFUSED_VOID(TFE_GetConfigKeyValue,
             (TFE_Context * ctx, const char *key, int64_t timeout_in_ms, TF_Buffer *value_buf, TF_Status *status),
             SERVERS)
REFUSED_VOID(TFE_DeleteConfigKeyValue, (TFE_Context * ctx, const char *key, TF_Status *status), SERVERS)
REFUSED_VOID(TFE_ReportErrorToCluster,
             (TFE_Context * ctx, int error_code, const char *error_message, TF_Status *status), SERVERS)
REFUSED_VOID(TFE_GetTaskStates, (TFE_Context * ctx, const TF_Buffer *tasks, void *states, TF_Status *status), SERVERS)
REFUSED_VOID(TFE_WaitAtBarrier,
             (TFE_Context * ctx, const char *barrier_id, int64_t barrier_timeout_in_ms, TF_Status *status), SERVERS)
REFUSED(TF_Buffer *, TFE_GetServerDef, (const char *text_proto, TF_Status *status), SERVERS)

/* ---- devices of one's own, and tensors that lie on several ------------------------------------------------------ */

#define DEVICES "devices of one's own in this interface; its plug-ins are devices (TOWER_PLUGIN_PATH)"

typedef struct TFE_CustomDevice { /* given by value: its size says where the arguments behind it are */
    int version;
    void (*functions[6])(void);
} TFE_CustomDevice;
typedef struct TFE_CustomDeviceTensorHandleMethods {
    int version;
    void (*functions[4])(void);
} TFE_CustomDeviceTensorHandleMethods;

REFUSED_VOID(TFE_RegisterCustomDevice,
             (TFE_Context * ctx, TFE_CustomDevice device, const char *device_name, void *device_info,
              TF_Status *status),
             DEVICES)
REFUSED(TFE_TensorHandle *, TFE_NewCustomDeviceTensorHandle,
        (TFE_Context * ctx, const char *device_name, TF_DataType type, void *data,
         TFE_CustomDeviceTensorHandleMethods methods, TF_Status *status),
        DEVICES)
REFUSED(TFE_TensorHandle *, TFE_CreatePackedTensorHandle,
        (TFE_Context * ctx, TFE_TensorHandle **handles, int *num_handles, TF_Status *status),
        "handles of tensors on several devices at once")

/* ---- what the Python package and its graphs in memory ask for --------------------------------------------------- */

REFUSED(TF_ImportGraphDefResults *, TF_GraphImportGraphDefWithResultsNoSerialization,
        (TF_Graph * graph, const TF_Buffer *graph_def, const TF_ImportGraphDefOptions *options, TF_Status *status),
        "messages of C++; TF_GraphImportGraphDefWithResults() takes their bytes")
REFUSED_VOID(TF_AddWhileInputHack, (TF_Graph * graph, TF_Output new_src, TF_Operation *dst, TF_Status *status),
             "operation While whose inputs could grow: it became its loop when it was built")
REFUSED_VOID(TFE_ContextGetGraphDebugInfo,
             (TFE_Context * ctx, const char *function_name, TF_Buffer *buf, TF_Status *status),
             "stack traces of graphs")
REFUSED(TF_Tensor *, TF_DequeueNamedTensor, (TF_Session * session, int tensor_id, TF_Status *status),
        "queues of the names fifo_queue_dequeue_N that a host sends through")
REFUSED_VOID(TF_EnqueueNamedTensor, (TF_Session * session, int tensor_id, TF_Tensor *tensor, TF_Status *status),
             "queues of the names fifo_queue_enqueue_N that a host sends through")

REFUSED_VOID(TF_FinishWhileHelper, (const TF_WhileParams *params, TF_Status *status, TF_Output *outputs),
             "loop that is finished and stays described; TF_FinishWhile() finishes it")

/* ---- operations that are executed or traced, as their context is ------------------------------------------------- */

#define ABSTRACT                                                                                             \
    "contexts of both kinds; TFE_Execute() executes operations, TF_GraphToFunction() makes functions of graphs"

typedef struct abstract_context abstract_context;
typedef struct abstract_tensor abstract_tensor;
typedef struct abstract_op abstract_op;
typedef struct abstract_function abstract_function;
typedef struct output_list output_list;
typedef struct abstract_shape {
    int num_dims;
    int64_t *dim_sizes;
} abstract_shape;

REFUSED_VOID(TF_SetTracingImplementation, (const char *name, TF_Status *status), ABSTRACT)
REFUSED(abstract_context *, TF_CreateFunction, (const char *fn_name, TF_Status *status), ABSTRACT)
REFUSED(abstract_context *, TF_NewEagerExecutionContext, (TFE_ContextOptions * options, TF_Status *status), ABSTRACT)
SILENT_VOID(TF_DeleteExecutionContext, (abstract_context * context))
REFUSED(abstract_tensor *, TF_AddFunctionParameter,
        (abstract_context * function, TF_DataType dtype, abstract_shape shape, TF_Status *status), ABSTRACT)
SILENT(abstract_op *, TF_NewAbstractOp, (abstract_context * context))
SILENT_VOID(TF_DeleteAbstractOp, (abstract_op * op))
REFUSED_VOID(TF_AbstractOpSetOpType, (abstract_op * op, const char *op_type, TF_Status *status), ABSTRACT)
REFUSED_VOID(TF_AbstractOpSetOpName, (abstract_op * op, const char *op_name, TF_Status *status), ABSTRACT)
REFUSED_VOID(TF_AbstractOpSetAttrType,
             (abstract_op * op, const char *attr_name, TF_DataType value, TF_Status *status), ABSTRACT)
SILENT_VOID(TF_DeleteAbstractTensor, (abstract_tensor * tensor))
SILENT(output_list *, TF_NewOutputList, (void))
SILENT_VOID(TF_DeleteOutputList, (output_list * list))
REFUSED_VOID(TF_OutputListSetNumOutputs, (output_list * list, int num_outputs, TF_Status *status), ABSTRACT)
SILENT(int, TF_OutputListNumOutputs, (output_list * list))
SILENT(abstract_tensor *, TF_OutputListGet, (output_list * list, int i))
REFUSED_VOID(TF_OutputListPushBack, (output_list * list, abstract_tensor *tensor, TF_Status *status), ABSTRACT)
REFUSED_VOID(TF_ExecuteOperation,
             (abstract_op * op, int num_inputs, abstract_tensor *const *inputs, output_list *list, TF_Status *status),
             ABSTRACT)
REFUSED(abstract_function *, TF_FinalizeFunction,
        (abstract_context * context, output_list *list, TF_Status *status), ABSTRACT)
SILENT_VOID(TF_DeleteAbstractFunction, (abstract_function * function))
REFUSED_VOID(TF_ExecutionContextRegisterFunction,
             (abstract_context * context, abstract_function *function, TF_Status *status), ABSTRACT)
REFUSED(abstract_tensor *, TF_CreateAbstractTensorFromEagerTensor, (TFE_TensorHandle * t, TF_Status *status), ABSTRACT)
REFUSED(TFE_TensorHandle *, TF_AbstractTensorGetEagerTensor, (abstract_tensor * tensor, TF_Status *status), ABSTRACT)
REFUSED(TFE_Context *, TF_ExecutionContextGetTFEContext, (abstract_context * context, TF_Status *status), ABSTRACT)

/* ---- kernels of one's own (kernels.c): what is not the CPU's ---------------------------------------------------- */

#define KERNELS "streams and messages for kernels of one's own"

typedef struct text_view {
    const char *data;
    size_t length;
} text_view;

REFUSED(void *, TF_GetStream, (TF_OpKernelContext * ctx, TF_Status *status), KERNELS)
REFUSED_VOID(TF_GetSerializedFunctionDefLibrary, (TF_OpKernelContext * ctx, TF_Buffer *buf, TF_Status *status), KERNELS)
REFUSED_VOID(TF_GetSerializedConfigProto, (TF_OpKernelContext * ctx, TF_Buffer *buf, TF_Status *status), KERNELS)
REFUSED_VOID(TF_GetSerializedResourceHandleProto,
             (TF_OpKernelContext * ctx, int i, TF_Buffer *buf, TF_Status *status), KERNELS)
SILENT(text_view, TF_GetRendezvous, (TF_OpKernelContext * ctx)) /* it gives two words, too */
SILENT_VOID(TF_IncNumDeferredOps, (TF_OpKernelContext * context))
SILENT_VOID(TF_DecNumDeferredOps, (TF_OpKernelContext * context))

/* ---- rewrites of one's own -------------------------------------------------------------------------------------- */

#define REWRITES "rewrites of one's own in this interface"

typedef struct graph_item graph_item;
typedef struct graph_properties graph_properties;
typedef struct function_library function_library;

#define LIST_SIZE(name) \
    REFUSED_VOID(name, (const graph_item *item, int *num_values, size_t *storage_size, TF_Status *status), REWRITES)
#define LIST(name)                                                                                              \
    REFUSED_VOID(name,                                                                                          \
                 (const graph_item *item, char **values, size_t *lengths, int num_values, void *storage,        \
                  size_t storage_size, TF_Status *status),                                                      \
                 REWRITES)
LIST_SIZE(TF_GetNodesToPreserveListSize)
LIST(TF_GetNodesToPreserveList)
LIST_SIZE(TF_GetFetchNodesListSize)
LIST(TF_GetFetchNodesList)
SILENT(graph_properties *, TF_NewGraphProperties, (const graph_item *item))
SILENT_VOID(TF_DeleteGraphProperties, (graph_properties * properties))
REFUSED_VOID(TF_InferStatically,
             (graph_properties * properties, unsigned char assume_valid_feeds,
              unsigned char aggressive_shape_inference, unsigned char include_input_tensor_values,
              unsigned char include_output_tensor_values, TF_Status *status),
             REWRITES)
REFUSED_VOID(TF_GetInputPropertiesListSize,
             (graph_properties * properties, const char *name, int *num_values, TF_Status *status), REWRITES)
REFUSED_VOID(TF_GetOutputPropertiesListSize,
             (graph_properties * properties, const char *name, int *num_values, TF_Status *status), REWRITES)
REFUSED_VOID(TF_GetInputPropertiesList,
             (graph_properties * properties, const char *name, TF_Buffer **values, int num_values, TF_Status *status),
             REWRITES)
REFUSED_VOID(TF_GetOutputPropertiesList,
             (graph_properties * properties, const char *name, TF_Buffer **values, int num_values, TF_Status *status),
             REWRITES)
REFUSED(function_library *, TF_NewFunctionLibraryDefinition, (const TF_Buffer *graph_buf, TF_Status *status), REWRITES)
SILENT_VOID(TF_DeleteFunctionLibraryDefinition, (function_library * library))
REFUSED_VOID(TF_LookUpOpDef, (function_library * library, const char *name, TF_Buffer *buf, TF_Status *status),
             REWRITES)
