/* tensor.h - inside of tensors: a reference count over host memory. */
#ifndef TWI_TENSOR_H
#define TWI_TENSOR_H

#include <stdatomic.h>
#include <tower/tensor.h>

struct tw_tensor {
    atomic_int references;
    tw_dtype dtype;
    tw_shape shape;
    int64_t elements;
    void *data;
    void (*release)(void *user); /* of wrapped memory; NULL: data is owned */
    void *user;
    bool owned;
};

/* True when the caller holds the only reference and may write into the tensor. */
static inline bool twi_tensor_is_sole(const tw_tensor *tensor)
{
    return tensor->owned && atomic_load_explicit(&tensor->references, memory_order_acquire) == 1;
}

/* As tw_tensor_create() and tw_tensor_from(), of variants too (tensor/variant.h), which programs cannot make. */
tw_tensor *twi_tensor_create(tw_dtype dtype, tw_shape shape);
tw_tensor *twi_tensor_from(tw_dtype dtype, tw_shape shape, const void *values);

/* Element i becomes the number, as near as the type has it; what is no number stays as it is. */
void twi_tensor_set_number(tw_tensor *tensor, int64_t i, double value);

/* Replaces a string by a copy of `size` bytes, with a 0 behind them; the old bytes are freed. False when out of memory:
 * then nothing changed. */
bool twi_string_set(tw_string *string, const void *data, size_t size);

/* Element i of an int32 or int64 tensor: shapes, axes and the like come in either. */
static inline int64_t twi_tensor_int(const tw_tensor *tensor, int64_t i)
{
    return tensor->dtype == TW_INT32 ? ((const int32_t *)tensor->data)[i] : ((const int64_t *)tensor->data)[i];
}

#endif
