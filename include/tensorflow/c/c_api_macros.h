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

/* How large a struct is whose last member is this one: what `struct_size` of those is that begin with it. */
#define TF_OFFSET_OF_END(TYPE, MEMBER) (offsetof(TYPE, MEMBER) + sizeof(((TYPE *)0)->MEMBER))

#endif
