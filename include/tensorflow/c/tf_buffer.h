/* tf_buffer.h - bytes that go in and out, mostly serialized messages. */
#ifndef TENSORFLOW_C_TF_BUFFER_H_
#define TENSORFLOW_C_TF_BUFFER_H_

#include "tensorflow/c/c_api_macros.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A buffer that a function fills must be empty before (data NULL). data_deallocator, if there is one, is called with
 * data and length when the buffer is deleted. */
typedef struct TF_Buffer {
    const void *data;
    size_t length;
    void (*data_deallocator)(void *data, size_t length);
} TF_Buffer;

TF_CAPI_EXPORT extern TF_Buffer *TF_NewBufferFromString(const void *proto, size_t proto_len); /* copies */
TF_CAPI_EXPORT extern TF_Buffer *TF_NewBuffer(void);                                          /* empty */
TF_CAPI_EXPORT extern void TF_DeleteBuffer(TF_Buffer *);                                      /* NULL is fine */
TF_CAPI_EXPORT extern TF_Buffer TF_GetBuffer(TF_Buffer *buffer);                              /* what it is, borrowed */

#ifdef __cplusplus
}
#endif
#endif
