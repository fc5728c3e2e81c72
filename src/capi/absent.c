/* absent.c - functions of TensorFlow's library that have no meaning in Tower, in one table: what binds all names when
 * it starts finds them, and what calls one is told in its status what is not there. Those that have no status give
 * NULL, 0 or false, and do nothing. Headers have none of them, since nothing is to be written for them.
 * Never here:  anything that works; what is refused in a way of its own (unsupported.c). */
#include <tensorflow/c/eager/c_api_experimental.h>

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

/* ---- ops of one's own ------------------------------------------------------------------------------------------- */

#define OPS "ops of one's own"

typedef struct op_builder op_builder;
typedef struct shape_context shape_context;
typedef struct shape_handle shape_handle;
typedef struct dimension_handle dimension_handle;

SILENT(op_builder *, TF_NewOpDefinitionBuilder, (const char *op_name))
REFUSED_VOID(TF_RegisterOpDefinition, (op_builder * builder, TF_Status *status), OPS)
SILENT_VOID(TF_DeleteOpDefinitionBuilder, (op_builder * builder))
SILENT_VOID(TF_OpDefinitionBuilderAddAttr, (op_builder * builder, const char *attr_spec))
SILENT_VOID(TF_OpDefinitionBuilderAddInput, (op_builder * builder, const char *input_spec))
SILENT_VOID(TF_OpDefinitionBuilderAddOutput, (op_builder * builder, const char *output_spec))
SILENT_VOID(TF_OpDefinitionBuilderSetIsCommutative, (op_builder * builder, bool is_commutative))
SILENT_VOID(TF_OpDefinitionBuilderSetIsAggregate, (op_builder * builder, bool is_aggregate))
SILENT_VOID(TF_OpDefinitionBuilderSetIsStateful, (op_builder * builder, bool is_stateful))
SILENT_VOID(TF_OpDefinitionBuilderSetAllowsUninitializedInput, (op_builder * builder, bool allows_uninitialized_input))
SILENT_VOID(TF_OpDefinitionBuilderDeprecated, (op_builder * builder, int version, const char *explanation))
SILENT_VOID(TF_OpDefinitionBuilderSetShapeInferenceFunction,
            (op_builder * builder, void (*shape_inference_func)(shape_context *ctx, TF_Status *status)))
SILENT(int64_t, TF_ShapeInferenceContextNumInputs, (shape_context * ctx))
SILENT(shape_handle *, TF_NewShapeHandle, (void))
REFUSED_VOID(TF_ShapeInferenceContextGetInput, (shape_context * ctx, int i, shape_handle *handle, TF_Status *status),
             OPS)
REFUSED_VOID(TF_ShapeInferenceContextSetOutput, (shape_context * ctx, int i, shape_handle *handle, TF_Status *status),
             OPS)
SILENT(shape_handle *, TF_ShapeInferenceContextScalar, (shape_context * ctx))
SILENT(shape_handle *, TF_ShapeInferenceContextVectorFromSize, (shape_context * ctx, size_t size))
SILENT(dimension_handle *, TF_NewDimensionHandle, (void))
REFUSED_VOID(TF_ShapeInferenceContext_GetAttrType,
             (shape_context * ctx, const char *attr_name, TF_DataType *val, TF_Status *status), OPS)
SILENT(int64_t, TF_ShapeInferenceContextRank, (shape_context * ctx, shape_handle *handle))
SILENT(int, TF_ShapeInferenceContextRankKnown, (shape_context * ctx, shape_handle *handle))
REFUSED_VOID(TF_ShapeInferenceContextWithRank,
             (shape_context * ctx, shape_handle *handle, int64_t rank, shape_handle *result, TF_Status *status), OPS)
REFUSED_VOID(TF_ShapeInferenceContextWithRankAtLeast,
             (shape_context * ctx, shape_handle *handle, int64_t rank, shape_handle *result, TF_Status *status), OPS)
REFUSED_VOID(TF_ShapeInferenceContextWithRankAtMost,
             (shape_context * ctx, shape_handle *handle, int64_t rank, shape_handle *result, TF_Status *status), OPS)
SILENT_VOID(TF_ShapeInferenceContextDim,
            (shape_context * ctx, shape_handle *handle, int64_t i, dimension_handle *result))
REFUSED_VOID(TF_ShapeInferenceContextSubshape,
             (shape_context * ctx, shape_handle *handle, int64_t start, int64_t end, shape_handle *result,
              TF_Status *status),
             OPS)
REFUSED_VOID(TF_ShapeInferenceContextSetUnknownShape, (shape_context * ctx, TF_Status *status), OPS)
SILENT(int, TF_DimensionHandleValueKnown, (dimension_handle * handle))
SILENT(int64_t, TF_DimensionHandleValue, (dimension_handle * handle))
REFUSED_VOID(TF_ShapeInferenceContextConcatenateShapes,
             (shape_context * ctx, shape_handle *first, shape_handle *second, shape_handle *result, TF_Status *status),
             OPS)
SILENT_VOID(TF_DeleteShapeHandle, (shape_handle * handle))
SILENT_VOID(TF_DeleteDimensionHandle, (dimension_handle * handle))

/* ---- kernels of one's own --------------------------------------------------------------------------------------- */

#define KERNELS "kernels of one's own in this interface; its plug-ins have them (TOWER_PLUGIN_PATH)"

typedef struct kernel_builder kernel_builder;
typedef struct construction construction;
typedef struct kernel_context kernel_context;
typedef struct text_view {
    const char *data;
    size_t length;
} text_view;

SILENT(kernel_builder *, TF_NewKernelBuilder,
       (const char *op_name, const char *device_name, void *(*create_func)(construction *),
        void (*compute_func)(void *, kernel_context *), void (*delete_func)(void *)))
SILENT(kernel_builder *, TF_NewAsyncKernelBuilder,
       (const char *op_name, const char *device_name, void *(*create_func)(construction *),
        void (*compute_async_func)(void *, kernel_context *, void *done), void (*delete_func)(void *)))
REFUSED_VOID(TF_KernelBuilder_TypeConstraint,
             (kernel_builder * builder, const char *attr_name, TF_DataType type, TF_Status *status), KERNELS)
SILENT_VOID(TF_KernelBuilder_HostMemory, (kernel_builder * builder, const char *arg_name))
SILENT_VOID(TF_KernelBuilder_Priority, (kernel_builder * builder, int32_t priority_number))
SILENT_VOID(TF_KernelBuilder_Label, (kernel_builder * builder, const char *label))
REFUSED_VOID(TF_RegisterKernelBuilder, (const char *kernel_name, kernel_builder *builder, TF_Status *status), KERNELS)
REFUSED_VOID(TF_RegisterKernelBuilderWithKernelDef,
             (const char *serialized_kernel_def, const char *name, kernel_builder *builder, TF_Status *status),
             KERNELS)
SILENT_VOID(TF_DeleteKernelBuilder, (kernel_builder * builder))
SILENT_VOID(TF_RunAsyncOpKernelDoneCallback, (void *done))
REFUSED(void *, TF_GetStream, (kernel_context * ctx, TF_Status *status), KERNELS)
SILENT(int, TF_NumInputs, (kernel_context * ctx))
SILENT(int, TF_NumOutputs, (kernel_context * ctx))
REFUSED_VOID(TF_GetInput, (kernel_context * ctx, int i, TF_Tensor **tensor, TF_Status *status), KERNELS)
SILENT_VOID(TF_InputRange, (kernel_context * ctx, const char *name, void *args))
SILENT(TF_DataType, TF_InputDatatype, (kernel_context * ctx, int index))
REFUSED_VOID(TF_SetOutput, (kernel_context * ctx, int i, const TF_Tensor *tensor, TF_Status *status), KERNELS)
REFUSED(TF_Tensor *, TF_GetMutableOutput, (kernel_context * ctx, int i, TF_Status *status), KERNELS)
REFUSED_VOID(TF_GetSerializedFunctionDefLibrary, (kernel_context * ctx, TF_Buffer *buf, TF_Status *status), KERNELS)
REFUSED_VOID(TF_GetSerializedConfigProto, (kernel_context * ctx, TF_Buffer *buf, TF_Status *status), KERNELS)
REFUSED_VOID(TF_GetSerializedResourceHandleProto, (kernel_context * ctx, int i, TF_Buffer *buf, TF_Status *status),
             KERNELS)
SILENT_VOID(TF_OpKernelConstruction_Failure, (construction * ctx, TF_Status *status))
SILENT_VOID(TF_OpKernelContext_Failure, (kernel_context * ctx, TF_Status *status))
SILENT(TF_DataType, TF_ExpectedOutputDataType, (kernel_context * ctx, int i))
REFUSED(bool, TF_IsHostMemoryInput, (kernel_context * ctx, int i, TF_Status *status), KERNELS)
REFUSED(bool, TF_IsHostMemoryOutput, (kernel_context * ctx, int i, TF_Status *status), KERNELS)
SILENT(int64_t, TF_StepId, (kernel_context * ctx))
SILENT(uint64_t, TF_GetFrameId, (kernel_context * ctx))
SILENT(int64_t, TF_GetIterId, (kernel_context * ctx))
SILENT(int64_t, TF_GetStepId, (kernel_context * ctx))
SILENT(int, TF_GetDeviceId, (kernel_context * ctx))
SILENT(text_view, TF_GetDeviceName, (kernel_context * ctx))
SILENT(text_view, TF_GetRendezvous, (kernel_context * ctx)) /* it gives two words, too */
SILENT(int, TF_GetGraphDefVersion, (kernel_context * ctx))
SILENT(text_view, TF_GetOpKernelName, (kernel_context * ctx))
SILENT(text_view, TF_GetResourceMgrDefaultContainerName, (kernel_context * ctx))
SILENT(text_view, TF_GetOpKernelRequestedInput, (kernel_context * ctx, size_t index))
REFUSED(TF_Buffer *, TF_OpKernelConstruction_GetNodeDef, (construction * ctx, TF_Status *status), KERNELS)
REFUSED_VOID(TF_OpKernelConstruction_GetAttrSize,
             (construction * ctx, const char *attr_name, int32_t *list_size, int32_t *total_size, TF_Status *status),
             KERNELS)
#define GETTER(name, type) \
    REFUSED_VOID(name, (construction * ctx, const char *attr_name, type *val, TF_Status *status), KERNELS)
#define LIST_GETTER(name, type) \
    REFUSED_VOID(name, (construction * ctx, const char *attr_name, type *vals, int max_vals, TF_Status *status), \
                 KERNELS)
GETTER(TF_OpKernelConstruction_GetAttrType, TF_DataType)
GETTER(TF_OpKernelConstruction_GetAttrInt32, int32_t)
GETTER(TF_OpKernelConstruction_GetAttrInt64, int64_t)
GETTER(TF_OpKernelConstruction_GetAttrFloat, float)
GETTER(TF_OpKernelConstruction_GetAttrBool, unsigned char)
GETTER(TF_OpKernelConstruction_GetAttrTensor, TF_Tensor *)
LIST_GETTER(TF_OpKernelConstruction_GetAttrTypeList, TF_DataType)
LIST_GETTER(TF_OpKernelConstruction_GetAttrInt32List, int32_t)
LIST_GETTER(TF_OpKernelConstruction_GetAttrInt64List, int64_t)
LIST_GETTER(TF_OpKernelConstruction_GetAttrFloatList, float)
LIST_GETTER(TF_OpKernelConstruction_GetAttrBoolList, unsigned char)
LIST_GETTER(TF_OpKernelConstruction_GetAttrTensorList, TF_Tensor *)
REFUSED_VOID(TF_OpKernelConstruction_GetAttrString,
             (construction * ctx, const char *attr_name, char *val, size_t max_length, TF_Status *status), KERNELS)
REFUSED_VOID(TF_OpKernelConstruction_GetAttrStringList,
             (construction * ctx, const char *attr_name, char **values, size_t *lengths, int max_values, void *storage,
              size_t storage_size, TF_Status *status),
             KERNELS)
REFUSED(TF_Buffer *, TF_OpKernelConstruction_GetAttrFunction,
        (construction * ctx, const char *attr_name, TF_Status *status), KERNELS)
REFUSED(bool, TF_OpKernelConstruction_HasAttr, (construction * ctx, const char *attr_name, TF_Status *status), KERNELS)
SILENT(text_view, TF_OpKernelConstruction_GetName, (construction * ctx))
REFUSED(TF_Tensor *, TF_AllocateOutput,
        (kernel_context * context, int index, TF_DataType dtype, const int64_t *dims, int num_dims, size_t len,
         TF_Status *status),
        KERNELS)
REFUSED(TF_Tensor *, TF_ForwardInputOrAllocateOutput,
        (kernel_context * context, const int *candidates, int num_candidates, int output_index,
         const int64_t *output_dims, int output_num_dims, int *forwarded_input, TF_Status *status),
        KERNELS)
REFUSED(TF_Tensor *, TF_AllocateTemp,
        (kernel_context * context, TF_DataType dtype, const int64_t *dims, int num_dims, void *alloc_attrs,
         TF_Status *status),
        KERNELS)
SILENT_VOID(TF_IncNumDeferredOps, (kernel_context * context))
SILENT_VOID(TF_DecNumDeferredOps, (kernel_context * context))

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
