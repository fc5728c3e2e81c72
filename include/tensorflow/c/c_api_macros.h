/* c_api_macros.h - how the functions of TensorFlow's C API are declared. */
#ifndef TENSORFLOW_C_C_API_MACROS_H_
#define TENSORFLOW_C_C_API_MACROS_H_

#if defined(__GNUC__)
#define TF_CAPI_EXPORT __attribute__((visibility("default")))
#else
#define TF_CAPI_EXPORT
#endif

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
#define TF_Bool bool
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#define TF_Bool bool
#endif

#endif
