/* c_api_experimental.h - of TensorFlow's experimental functions what bindings ask for when they are loaded. */
#ifndef TENSORFLOW_C_C_API_EXPERIMENTAL_H_
#define TENSORFLOW_C_C_API_EXPERIMENTAL_H_

#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Changes nothing: Tower has one way to run a graph. */
TF_CAPI_EXPORT extern void TF_EnableXLACompilation(TF_SessionOptions *options, unsigned char enable);

#ifdef __cplusplus
}
#endif
#endif
