/* c_api_experimental.h - of TensorFlow's experimental eager functions the one that saves making operations. */
#ifndef TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_
#define TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_

#include "tensorflow/c/eager/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes an operation what TFE_NewOp() would make of this name and TFE_OpSetDevice() of this device (NULL: none). */
TF_CAPI_EXPORT extern void TFE_OpReset(TFE_Op *op_to_reset, const char *op_or_function_name,
                                       const char *raw_device_name, TF_Status *status);

#ifdef __cplusplus
}
#endif
#endif
