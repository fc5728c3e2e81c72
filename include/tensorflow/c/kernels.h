/* kernels.h - kernels of one's own: what computes the ops that ops.h registers, on CPUs.
 *
 *     static void add_one(void *kernel, TF_OpKernelContext *ctx)
 *     {
 *         TF_Status *status = TF_NewStatus();
 *         TF_Tensor *x, *y;
 *         TF_GetInput(ctx, 0, &x, status);
 *         ... y = TF_AllocateOutput(ctx, 0, TF_FLOAT, dims, num_dims, size, status), write TF_TensorData(y) ...
 *         if (TF_GetCode(status) != TF_OK)
 *             TF_OpKernelContext_Failure(ctx, status);
 *         TF_DeleteTensor(x), TF_DeleteTensor(y), TF_DeleteStatus(status);
 *     }
 *     ...
 *     TF_KernelBuilder *b = TF_NewKernelBuilder("AddOne", "CPU", NULL, add_one, NULL);
 *     TF_RegisterKernelBuilder("AddOneOnCPU", b, status); */
#ifndef TENSORFLOW_C_KERNELS_H_
#define TENSORFLOW_C_KERNELS_H_

#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_KernelBuilder TF_KernelBuilder;
typedef struct TF_OpKernelConstruction TF_OpKernelConstruction; /* borrowed while a kernel is made, */
typedef struct TF_OpKernelContext TF_OpKernelContext;           /* and while it computes */
typedef struct TF_AsyncOpKernelDoneCallback TF_AsyncOpKernelDoneCallback;

/* ---- registering ------------------------------------------------------------------------------------------------- */

/* create_func() makes what a node's kernel needs, once for each session or context that runs it, and delete_func()
 * gets it when that goes; compute_func() gets it for each run, in several threads at the same time where runs overlap.
 * The first and the last may be NULL. Kernels of a device that is not "CPU" are never asked for. */
TF_CAPI_EXPORT extern TF_KernelBuilder *TF_NewKernelBuilder(const char *op_name, const char *device_name,
                                                            void *(*create_func)(TF_OpKernelConstruction *),
                                                            void (*compute_func)(void *, TF_OpKernelContext *),
                                                            void (*delete_func)(void *));
/* One that has computed when it calls TF_RunAsyncOpKernelDoneCallback(), in any thread. What comes behind it on its
 * device waits. */
TF_CAPI_EXPORT extern TF_KernelBuilder *
TF_NewAsyncKernelBuilder(const char *op_name, const char *device_name, void *(*create_func)(TF_OpKernelConstruction *),
                         void (*compute_async_func)(void *, TF_OpKernelContext *, TF_AsyncOpKernelDoneCallback *done),
                         void (*delete_func)(void *));
TF_CAPI_EXPORT extern void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback *done);

/* It takes nodes whose attribute is this type, or, told again, one of these. */
TF_CAPI_EXPORT extern void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder *kernel_builder, const char *attr_name,
                                                           TF_DataType type, TF_Status *status);
TF_CAPI_EXPORT extern void TF_KernelBuilder_HostMemory(TF_KernelBuilder *kernel_builder, const char *arg_name);
/* Of those that take a node, the one of the highest; 0 if nothing is said. */
TF_CAPI_EXPORT extern void TF_KernelBuilder_Priority(TF_KernelBuilder *kernel_builder, int32_t priority_number);
/* For nodes whose attribute "_kernel" is that. */
TF_CAPI_EXPORT extern void TF_KernelBuilder_Label(TF_KernelBuilder *kernel_builder, const char *label);
/* Takes the builder. The op may be registered later. TF_UNIMPLEMENTED: it is an op of Tower's, which have kernels. */
TF_CAPI_EXPORT extern void TF_RegisterKernelBuilder(const char *kernel_name, TF_KernelBuilder *builder,
                                                    TF_Status *status);
/* The same by a KernelDef (NULL: by what the builder was told). */
TF_CAPI_EXPORT extern void TF_RegisterKernelBuilderWithKernelDef(const char *serialized_kernel_def, const char *name,
                                                                 TF_KernelBuilder *builder, TF_Status *status);
TF_CAPI_EXPORT extern void TF_DeleteKernelBuilder(TF_KernelBuilder *builder); /* one that is not registered */

/* What a plug-in defines, for TF_LoadPluggableDeviceLibrary() to call: it registers its kernels there. */
TF_CAPI_EXPORT void TF_InitKernel(void);

/* ---- making a kernel --------------------------------------------------------------------------------------------- */

/* The kernel could not be made; so runs fail. */
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction *ctx, TF_Status *status);
TF_CAPI_EXPORT extern TF_StringView TF_OpKernelConstruction_GetName(TF_OpKernelConstruction *ctx); /* the node's */
/* Of the node, but for its inputs. */
TF_CAPI_EXPORT extern TF_Buffer *TF_OpKernelConstruction_GetNodeDef(TF_OpKernelConstruction *ctx, TF_Status *status);
TF_CAPI_EXPORT extern bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction *ctx, const char *attr_name,
                                                           TF_Status *status);
/* How many items a list has (-1: it is none), and how many bytes a text or all of a list, or dimensions a shape or all
 * of a list (-1: neither). */
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction *ctx, const char *attr_name,
                                                               int32_t *list_size, int32_t *total_size,
                                                               TF_Status *status);
/* The value of an attribute. TF_NOT_FOUND: there is none of that name; TF_INVALID_ARGUMENT: it is of another kind. Of a
 * text as many bytes as there is room for, of a list as many items; texts of a list lie in `storage`. Tensors are
 * yours. */
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrType(TF_OpKernelConstruction *ctx, const char *attr_name,
                                                               TF_DataType *val, TF_Status *status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrInt32(TF_OpKernelConstruction *ctx, const char *attr_name,
                                                                int32_t *val, TF_Status *status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrInt64(TF_OpKernelConstruction *ctx, const char *attr_name,
                                                                int64_t *val, TF_Status *status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction *ctx, const char *attr_name,
                                                                float *val, TF_Status *status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction *ctx, const char *attr_name,
                                                               TF_Bool *val, TF_Status *status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction *ctx, const char *attr_name,
                                                                 char *val, size_t max_length, TF_Status *status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrTensor(TF_OpKernelConstruction *ctx, const char *attr_name,
                                                                 TF_Tensor **val, TF_Status *status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrTypeList(TF_OpKernelConstruction *ctx, const char *attr_name,
                                                                   TF_DataType *vals, int max_vals, TF_Status *status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrInt32List(TF_OpKernelConstruction *ctx, const char *attr_name,
                                                                    int32_t *vals, int max_vals, TF_Status *status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrInt64List(TF_OpKernelConstruction *ctx, const char *attr_name,
                                                                    int64_t *vals, int max_vals, TF_Status *status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrFloatList(TF_OpKernelConstruction *ctx, const char *attr_name,
                                                                    float *vals, int max_vals, TF_Status *status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrStringList(TF_OpKernelConstruction *ctx,
                                                                     const char *attr_name, char **values,
                                                                     size_t *lengths, int max_values, void *storage,
                                                                     size_t storage_size, TF_Status *status);
/* No op that can be registered has an attribute of these kinds. */
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrBoolList(TF_OpKernelConstruction *ctx, const char *attr_name,
                                                                   TF_Bool *vals, int max_vals, TF_Status *status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrTensorList(TF_OpKernelConstruction *ctx,
                                                                     const char *attr_name, TF_Tensor **vals,
                                                                     int max_values, TF_Status *status);
TF_CAPI_EXPORT extern TF_Buffer *TF_OpKernelConstruction_GetAttrFunction(TF_OpKernelConstruction *ctx,
                                                                         const char *attr_name, TF_Status *status);

/* ---- computing --------------------------------------------------------------------------------------------------- */

TF_CAPI_EXPORT extern void TF_OpKernelContext_Failure(TF_OpKernelContext *ctx, TF_Status *status); /* the run fails */

TF_CAPI_EXPORT extern int TF_NumInputs(TF_OpKernelContext *ctx);
TF_CAPI_EXPORT extern int TF_NumOutputs(TF_OpKernelContext *ctx);
TF_CAPI_EXPORT extern TF_DataType TF_InputDatatype(TF_OpKernelContext *ctx, int index);      /* 0: there is none */
TF_CAPI_EXPORT extern TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext *ctx, int i); /* 0: there is none */
/* An input, yours, and not to be written to. TF_OUT_OF_RANGE: there is none. One that is kept when compute_func() has
 * returned has its values in memory of its own from then on: ask for them (TF_TensorData) anew. */
TF_CAPI_EXPORT extern void TF_GetInput(TF_OpKernelContext *ctx, int i, TF_Tensor **tensor, TF_Status *status);

typedef struct TF_InputRange_Args {
    size_t struct_size; /* TF_InputRange_Args_STRUCT_SIZE */
    void *priv;
    int start, stop;   /* set: the first input of that name, and that behind the last */
    TF_Status *status; /* yours */
} TF_InputRange_Args;
#define TF_InputRange_Args_STRUCT_SIZE TF_OFFSET_OF_END(TF_InputRange_Args, status)
TF_CAPI_EXPORT extern void TF_InputRange(TF_OpKernelContext *ctx, const char *name, TF_InputRange_Args *args);

/* Each output is made by one of these. The tensor that is given is yours, and is what the output is to be written to.
 */
TF_CAPI_EXPORT extern TF_Tensor *TF_AllocateOutput(TF_OpKernelContext *context, int index, TF_DataType dtype,
                                                   const int64_t *dims, int num_dims, size_t len, TF_Status *status);
TF_CAPI_EXPORT extern void TF_SetOutput(TF_OpKernelContext *ctx, int i, const TF_Tensor *tensor, TF_Status *status);
/* No input becomes an output here: *forwarded_input is -1. */
TF_CAPI_EXPORT extern TF_Tensor *TF_ForwardInputOrAllocateOutput(TF_OpKernelContext *context,
                                                                 const int *candidate_input_indices,
                                                                 int num_candidate_input_indices, int output_index,
                                                                 const int64_t *output_dims, int output_num_dims,
                                                                 int *forwarded_input, TF_Status *status);
/* An output that has been made. NULL, and TF_OK: it has not. */
TF_CAPI_EXPORT extern TF_Tensor *TF_GetMutableOutput(TF_OpKernelContext *ctx, int i, TF_Status *status);
TF_CAPI_EXPORT extern TF_Tensor *TF_AllocateTemp(TF_OpKernelContext *context, TF_DataType dtype, const int64_t *dims,
                                                 int num_dims, TF_AllocatorAttributes *alloc_attrs, TF_Status *status);

/* Whether the kernel was told so of that argument (TF_KernelBuilder_HostMemory). */
TF_CAPI_EXPORT extern bool TF_IsHostMemoryInput(TF_OpKernelContext *ctx, int i, TF_Status *status);
TF_CAPI_EXPORT extern bool TF_IsHostMemoryOutput(TF_OpKernelContext *ctx, int i, TF_Status *status);

/* These do nothing: what a kernel has begun has ended when it returns or calls back. */
TF_CAPI_EXPORT extern void TF_IncNumDeferredOps(TF_OpKernelContext *context);
TF_CAPI_EXPORT extern void TF_DecNumDeferredOps(TF_OpKernelContext *context);

/* Who computes. Texts are borrowed. */
TF_CAPI_EXPORT extern int64_t TF_StepId(TF_OpKernelContext *ctx); /* another in each run */
TF_CAPI_EXPORT extern int64_t TF_GetStepId(TF_OpKernelContext *ctx);
TF_CAPI_EXPORT extern uint64_t TF_GetFrameId(TF_OpKernelContext *ctx); /* 0, in loops, too */
TF_CAPI_EXPORT extern int64_t TF_GetIterId(TF_OpKernelContext *ctx);   /* 0, in loops, too */
TF_CAPI_EXPORT extern int TF_GetDeviceId(TF_OpKernelContext *ctx);
TF_CAPI_EXPORT extern TF_StringView TF_GetDeviceName(TF_OpKernelContext *ctx);
TF_CAPI_EXPORT extern int TF_GetGraphDefVersion(TF_OpKernelContext *ctx);
TF_CAPI_EXPORT extern TF_StringView TF_GetOpKernelName(TF_OpKernelContext *ctx); /* the node's */
TF_CAPI_EXPORT extern TF_StringView TF_GetResourceMgrDefaultContainerName(TF_OpKernelContext *ctx);
TF_CAPI_EXPORT extern TF_StringView TF_GetOpKernelRequestedInput(TF_OpKernelContext *ctx, size_t index); /* "" */

#ifdef __cplusplus
}
#endif
#endif
