/* tf_tensor.h - values: typed, shaped blocks of memory. A TF_STRING tensor is an array of TF_TString (tf_tstring.h). */
#ifndef TENSORFLOW_C_TF_TENSOR_H_
#define TENSORFLOW_C_TF_TENSOR_H_

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_Tensor TF_Tensor;

/* Where a kernel's tensors are to lie (kernels.h); here all lie on the host. */
typedef struct TF_AllocatorAttributes {
    size_t struct_size; /* TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE */
    TF_Bool on_host;
} TF_AllocatorAttributes;
#define TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE TF_OFFSET_OF_END(TF_AllocatorAttributes, on_host)

/* A tensor of memory that becomes its own: deallocator(data, len, deallocator_arg) is called once, when the last that
 * needs the memory is gone, or at once if the tensor cannot be made, or if the memory has to be copied because it does
 * not lie at a multiple of 64 bytes. NULL: len is less than such a tensor takes, or the memory ran out. */
TF_CAPI_EXPORT extern TF_Tensor *TF_NewTensor(TF_DataType, const int64_t *dims, int num_dims, void *data, size_t len,
                                              void (*deallocator)(void *data, size_t len, void *arg),
                                              void *deallocator_arg);
/* The same in memory of the library, whose values are to be written (texts: empty). */
TF_CAPI_EXPORT extern TF_Tensor *TF_AllocateTensor(TF_DataType, const int64_t *dims, int num_dims, size_t len);
/* The tensor as the caller's alone if it is that and of memory of the library, else NULL. */
TF_CAPI_EXPORT extern TF_Tensor *TF_TensorMaybeMove(TF_Tensor *tensor);
TF_CAPI_EXPORT extern void TF_DeleteTensor(TF_Tensor *); /* NULL is fine */

TF_CAPI_EXPORT extern TF_DataType TF_TensorType(const TF_Tensor *);
TF_CAPI_EXPORT extern void TF_SetShape(TF_Tensor *tensor, const int64_t *dims, int num_dims);
TF_CAPI_EXPORT extern int TF_NumDims(const TF_Tensor *);
TF_CAPI_EXPORT extern int64_t TF_Dim(const TF_Tensor *tensor, int dim_index);
TF_CAPI_EXPORT extern size_t TF_TensorByteSize(const TF_Tensor *);
TF_CAPI_EXPORT extern void *TF_TensorData(const TF_Tensor *); /* borrowed; may be NULL if there are no elements */
TF_CAPI_EXPORT extern int64_t TF_TensorElementCount(const TF_Tensor *tensor);
TF_CAPI_EXPORT extern bool TF_TensorIsAligned(const TF_Tensor *);
TF_CAPI_EXPORT extern size_t TF_TensorDefaultAlignment(void); /* of memory for TF_NewTensor() that is not copied */

/* Makes `to` the values of `from`, in the same memory, as another type and shape of as many bytes. */
TF_CAPI_EXPORT extern void TF_TensorBitcastFrom(const TF_Tensor *from, TF_DataType type, TF_Tensor *to,
                                                const int64_t *new_dims, int num_new_dims, TF_Status *status);

#ifdef __cplusplus
}
#endif
#endif
