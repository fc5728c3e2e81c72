/* c_api.h - of TensorFlow's eager functions those that bindings ask for when they are linked: contexts, which know
 * devices, and handles of tensors. Operations cannot be executed without a graph: there is no TFE_Execute.
 *
 * A handle's tensor lies in the memory of the host, on the first CPU of a context; it cannot be copied to a device
 * with memory of its own (TF_UNIMPLEMENTED). Every function that can fail sets its TF_Status, to TF_OK too. */
#ifndef TENSORFLOW_C_EAGER_C_API_H_
#define TENSORFLOW_C_EAGER_C_API_H_

#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TFE_ContextOptions TFE_ContextOptions;
typedef struct TFE_Context TFE_Context;
typedef struct TFE_TensorHandle TFE_TensorHandle;

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
/* These two say how operations are executed, and there are none. */
TF_CAPI_EXPORT extern void TFE_ContextOptionsSetAsync(TFE_ContextOptions *options, unsigned char enable);
TF_CAPI_EXPORT extern void TFE_ContextOptionsSetDevicePlacementPolicy(TFE_ContextOptions *options,
                                                                      TFE_ContextDevicePlacementPolicy policy);
TF_CAPI_EXPORT extern void TFE_DeleteContextOptions(TFE_ContextOptions *options);

TF_CAPI_EXPORT extern TFE_Context *TFE_NewContext(const TFE_ContextOptions *opts, TF_Status *status);
TF_CAPI_EXPORT extern void TFE_DeleteContext(TFE_Context *ctx);
TF_CAPI_EXPORT extern TF_DeviceList *TFE_ContextListDevices(TFE_Context *ctx, TF_Status *status);

/* ---- handles of tensors ----------------------------------------------------------------------------------------- */

/* It shares the tensor's memory; the tensor stays the caller's. */
TF_CAPI_EXPORT extern TFE_TensorHandle *TFE_NewTensorHandle(const TF_Tensor *t, TF_Status *status);
TF_CAPI_EXPORT extern void TFE_DeleteTensorHandle(TFE_TensorHandle *h);
TF_CAPI_EXPORT extern TF_DataType TFE_TensorHandleDataType(TFE_TensorHandle *h);
TF_CAPI_EXPORT extern int TFE_TensorHandleNumDims(TFE_TensorHandle *h, TF_Status *status);
TF_CAPI_EXPORT extern int64_t TFE_TensorHandleNumElements(TFE_TensorHandle *h, TF_Status *status);
TF_CAPI_EXPORT extern int64_t TFE_TensorHandleDim(TFE_TensorHandle *h, int dim_index, TF_Status *status);
TF_CAPI_EXPORT extern const char *TFE_TensorHandleDeviceName(TFE_TensorHandle *h, TF_Status *status);
TF_CAPI_EXPORT extern const char *TFE_TensorHandleBackingDeviceName(TFE_TensorHandle *h, TF_Status *status);
/* The tensor, by sharing its memory; the caller's. */
TF_CAPI_EXPORT extern TF_Tensor *TFE_TensorHandleResolve(TFE_TensorHandle *h, TF_Status *status);
/* Another handle of the same memory, if the device of this name, in full or in part, is the first CPU. */
TF_CAPI_EXPORT extern TFE_TensorHandle *TFE_TensorHandleCopyToDevice(TFE_TensorHandle *h, TFE_Context *ctx,
                                                                     const char *device_name, TF_Status *status);
TF_CAPI_EXPORT extern TFE_TensorHandle *TFE_TensorHandleCopySharingTensor(TFE_TensorHandle *h, TF_Status *status);

#ifdef __cplusplus
}
#endif
#endif
