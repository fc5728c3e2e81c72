/* c_api.h - TensorFlow's eager functions: operations that are executed at once, on handles of tensors, in a context
 * that knows devices and functions.
 *
 * A handle's tensor lies in the memory of the host, wherever it was made; handles of resources (variables, tables,
 * queues) stand for what VarHandleOp and the like have made in one context. Handles and operations go before their
 * context. Every function that can fail sets its TF_Status, to TF_OK too. Any thread may execute operations. */
#ifndef TENSORFLOW_C_EAGER_C_API_H_
#define TENSORFLOW_C_EAGER_C_API_H_

#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TFE_ContextOptions TFE_ContextOptions;
typedef struct TFE_Context TFE_Context;
typedef struct TFE_TensorHandle TFE_TensorHandle;
typedef struct TFE_TensorDebugInfo TFE_TensorDebugInfo;
typedef struct TFE_Op TFE_Op;

typedef enum TFE_ContextDevicePlacementPolicy {
    TFE_DEVICE_PLACEMENT_EXPLICIT = 0,
    TFE_DEVICE_PLACEMENT_WARN = 1,
    TFE_DEVICE_PLACEMENT_SILENT = 2,
    TFE_DEVICE_PLACEMENT_SILENT_FOR_INT32 = 3
} TFE_ContextDevicePlacementPolicy;

/* ---- contexts --------------------------------------------------------------------------------------------------- */

TF_CAPI_EXPORT extern TFE_ContextOptions *TFE_NewContextOptions(void);
/* A serialized ConfigProto, of which the same is heeded as by TF_SetConfig(). */
TF_CAPI_EXPORT extern void TFE_ContextOptionsSetConfig(TFE_ContextOptions *options, const void *proto,
                                                       size_t proto_len, TF_Status *status);
/* Operations have been executed when TFE_Execute() returns, and copies are made where they are needed: these two are
 * kept, and change nothing. */
TF_CAPI_EXPORT extern void TFE_ContextOptionsSetAsync(TFE_ContextOptions *options, unsigned char enable);
TF_CAPI_EXPORT extern void TFE_ContextOptionsSetDevicePlacementPolicy(TFE_ContextOptions *options,
                                                                      TFE_ContextDevicePlacementPolicy policy);
TF_CAPI_EXPORT extern void TFE_DeleteContextOptions(TFE_ContextOptions *options);

TF_CAPI_EXPORT extern TFE_Context *TFE_NewContext(const TFE_ContextOptions *opts, TF_Status *status);
TF_CAPI_EXPORT extern void TFE_DeleteContext(TFE_Context *ctx);
TF_CAPI_EXPORT extern TF_DeviceList *TFE_ContextListDevices(TFE_Context *ctx, TF_Status *status);

TF_CAPI_EXPORT extern void TFE_ContextClearCaches(TFE_Context *ctx); /* there is nothing that could be wrong */
/* For this thread. */
TF_CAPI_EXPORT extern void TFE_ContextSetThreadLocalDevicePlacementPolicy(TFE_Context *ctx,
                                                                          TFE_ContextDevicePlacementPolicy policy);
TF_CAPI_EXPORT extern TFE_ContextDevicePlacementPolicy TFE_ContextGetDevicePlacementPolicy(TFE_Context *ctx);
/* TF_UNIMPLEMENTED. */
TF_CAPI_EXPORT extern void TFE_ContextSetServerDef(TFE_Context *ctx, int keep_alive_secs, const void *proto,
                                                   size_t proto_len, TF_Status *status);

/* A function is executed as an operation of its name, and may be an attribute of others. */
TF_CAPI_EXPORT extern void TFE_ContextAddFunctionDef(TFE_Context *ctx, const char *serialized_function_def, size_t size,
                                                     TF_Status *status);
TF_CAPI_EXPORT extern void TFE_ContextAddFunction(TFE_Context *ctx, TF_Function *function, TF_Status *status);
TF_CAPI_EXPORT extern void TFE_ContextRemoveFunction(TFE_Context *ctx, const char *name, TF_Status *status);
TF_CAPI_EXPORT extern unsigned char TFE_ContextHasFunction(TFE_Context *ctx, const char *name);

/* The RunMetadata are empty. */
TF_CAPI_EXPORT extern void TFE_ContextEnableRunMetadata(TFE_Context *ctx);
TF_CAPI_EXPORT extern void TFE_ContextDisableRunMetadata(TFE_Context *ctx);
TF_CAPI_EXPORT extern void TFE_ContextExportRunMetadata(TFE_Context *ctx, TF_Buffer *buf, TF_Status *status);

/* Nothing lives as long as a step. */
TF_CAPI_EXPORT extern void TFE_ContextStartStep(TFE_Context *ctx);
TF_CAPI_EXPORT extern void TFE_ContextEndStep(TFE_Context *ctx);

/* ---- handles of tensors ----------------------------------------------------------------------------------------- */

/* It shares the tensor's memory; the tensor stays the caller's. */
TF_CAPI_EXPORT extern TFE_TensorHandle *TFE_NewTensorHandle(const TF_Tensor *t, TF_Status *status);
TF_CAPI_EXPORT extern void TFE_DeleteTensorHandle(TFE_TensorHandle *h);
TF_CAPI_EXPORT extern TF_DataType TFE_TensorHandleDataType(TFE_TensorHandle *h);
TF_CAPI_EXPORT extern int TFE_TensorHandleNumDims(TFE_TensorHandle *h, TF_Status *status);
TF_CAPI_EXPORT extern int64_t TFE_TensorHandleNumElements(TFE_TensorHandle *h, TF_Status *status);
TF_CAPI_EXPORT extern int64_t TFE_TensorHandleDim(TFE_TensorHandle *h, int dim_index, TF_Status *status);
/* Where it was made, in full; and where it lies: on the first CPU. */
TF_CAPI_EXPORT extern const char *TFE_TensorHandleDeviceName(TFE_TensorHandle *h, TF_Status *status);
TF_CAPI_EXPORT extern const char *TFE_TensorHandleBackingDeviceName(TFE_TensorHandle *h, TF_Status *status);
/* The tensor, by sharing its memory; the caller's. A resource has none (TF_UNIMPLEMENTED). */
TF_CAPI_EXPORT extern TF_Tensor *TFE_TensorHandleResolve(TFE_TensorHandle *h, TF_Status *status);
TF_CAPI_EXPORT extern TFE_TensorHandle *TFE_TensorHandleCopySharingTensor(TFE_TensorHandle *h, TF_Status *status);
/* Another handle of the same memory, as if it had been made on the device of this name, in full or in part. */
TF_CAPI_EXPORT extern TFE_TensorHandle *TFE_TensorHandleCopyToDevice(TFE_TensorHandle *h, TFE_Context *ctx,
                                                                     const char *device_name, TF_Status *status);

/* Its dimensions, once more. The caller's. */
TF_CAPI_EXPORT extern TFE_TensorDebugInfo *TFE_TensorHandleTensorDebugInfo(TFE_TensorHandle *h, TF_Status *status);
TF_CAPI_EXPORT extern void TFE_DeleteTensorDebugInfo(TFE_TensorDebugInfo *debug_info);
TF_CAPI_EXPORT extern int TFE_TensorDebugInfoOnDeviceNumDims(TFE_TensorDebugInfo *debug_info);
TF_CAPI_EXPORT extern int64_t TFE_TensorDebugInfoOnDeviceDim(TFE_TensorDebugInfo *debug_info, int dim_index);

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* An op, or a function of the context; NULL and TF_NOT_FOUND: there is none of this name. It may be executed more than
 * once. */
TF_CAPI_EXPORT extern TFE_Op *TFE_NewOp(TFE_Context *ctx, const char *op_or_function_name, TF_Status *status);
TF_CAPI_EXPORT extern void TFE_DeleteOp(TFE_Op *op);
/* Borrowed, as the next two. */
TF_CAPI_EXPORT extern const char *TFE_OpGetName(const TFE_Op *op, TF_Status *status);
TF_CAPI_EXPORT extern TFE_Context *TFE_OpGetContext(const TFE_Op *op, TF_Status *status);
TF_CAPI_EXPORT extern const char *TFE_OpGetDevice(const TFE_Op *op, TF_Status *status); /* as it was set */
TF_CAPI_EXPORT extern void TFE_OpSetDevice(TFE_Op *op, const char *device_name, TF_Status *status);

/* In the op's order; a list of the op's is one call. */
TF_CAPI_EXPORT extern void TFE_OpAddInput(TFE_Op *op, TFE_TensorHandle *input, TF_Status *status);
TF_CAPI_EXPORT extern void TFE_OpAddInputList(TFE_Op *op, TFE_TensorHandle **inputs, int num_inputs, TF_Status *status);
TF_CAPI_EXPORT extern int TFE_OpGetFlatInputCount(const TFE_Op *op, TF_Status *status);
TF_CAPI_EXPORT extern TFE_TensorHandle *TFE_OpGetFlatInput(const TFE_Op *op, int index, TF_Status *status);
/* How many tensors an argument has, as attributes or lists of inputs say; -1: they do not, or there is no such one. */
TF_CAPI_EXPORT extern int TFE_OpGetInputLength(TFE_Op *op, const char *input_name, TF_Status *status);
TF_CAPI_EXPORT extern int TFE_OpGetOutputLength(TFE_Op *op, const char *output_name, TF_Status *status);

TF_CAPI_EXPORT extern TF_AttrType TFE_OpGetAttrType(TFE_Op *op, const char *attr_name, unsigned char *is_list,
                                                    TF_Status *status);
TF_CAPI_EXPORT extern TF_AttrType TFE_OpNameGetAttrType(TFE_Context *ctx, const char *op_or_function_name,
                                                        const char *attr_name, unsigned char *is_list,
                                                        TF_Status *status);
/* As TF_SetAttrString() and its like; what is wrong with them is told when the operation is executed. */
TF_CAPI_EXPORT extern void TFE_OpSetAttrString(TFE_Op *op, const char *attr_name, const void *value, size_t length);
TF_CAPI_EXPORT extern void TFE_OpSetAttrInt(TFE_Op *op, const char *attr_name, int64_t value);
TF_CAPI_EXPORT extern void TFE_OpSetAttrFloat(TFE_Op *op, const char *attr_name, float value);
TF_CAPI_EXPORT extern void TFE_OpSetAttrBool(TFE_Op *op, const char *attr_name, unsigned char value);
TF_CAPI_EXPORT extern void TFE_OpSetAttrType(TFE_Op *op, const char *attr_name, TF_DataType value);
TF_CAPI_EXPORT extern void TFE_OpSetAttrShape(TFE_Op *op, const char *attr_name, const int64_t *dims,
                                              const int num_dims, TF_Status *out_status);
/* The function that another operation would execute, with that one's attributes. */
TF_CAPI_EXPORT extern void TFE_OpSetAttrFunction(TFE_Op *op, const char *attr_name, const TFE_Op *value);
TF_CAPI_EXPORT extern void TFE_OpSetAttrFunctionName(TFE_Op *op, const char *attr_name, const char *data,
                                                     size_t length);
TF_CAPI_EXPORT extern void TFE_OpSetAttrTensor(TFE_Op *op, const char *attr_name, TF_Tensor *tensor, TF_Status *status);
TF_CAPI_EXPORT extern void TFE_OpSetAttrStringList(TFE_Op *op, const char *attr_name, const void *const *values,
                                                   const size_t *lengths, int num_values);
TF_CAPI_EXPORT extern void TFE_OpSetAttrIntList(TFE_Op *op, const char *attr_name, const int64_t *values,
                                                int num_values);
TF_CAPI_EXPORT extern void TFE_OpSetAttrFloatList(TFE_Op *op, const char *attr_name, const float *values,
                                                  int num_values);
TF_CAPI_EXPORT extern void TFE_OpSetAttrBoolList(TFE_Op *op, const char *attr_name, const unsigned char *values,
                                                 int num_values);
TF_CAPI_EXPORT extern void TFE_OpSetAttrTypeList(TFE_Op *op, const char *attr_name, const TF_DataType *values,
                                                 int num_values);
TF_CAPI_EXPORT extern void TFE_OpSetAttrShapeList(TFE_Op *op, const char *attr_name, const int64_t **dims,
                                                  const int *num_dims, int num_values, TF_Status *out_status);
TF_CAPI_EXPORT extern void TFE_OpSetAttrFunctionList(TFE_Op *op, const char *attr_name, const TFE_Op **value,
                                                     int num_values);

/* *num_retvals: the room of `retvals`, then how many outputs there are; more than room is TF_INVALID_ARGUMENT. The
 * handles are the caller's; on failure there are none. */
TF_CAPI_EXPORT extern void TFE_Execute(TFE_Op *op, TFE_TensorHandle **retvals, int *num_retvals, TF_Status *status);

#ifdef __cplusplus
}
#endif
#endif
