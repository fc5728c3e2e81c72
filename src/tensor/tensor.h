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
/* A new one whose numbers are about to be written: until then they are anything. */
tw_tensor *twi_tensor_reserve(tw_dtype dtype, tw_shape shape);

/* Element i becomes the number, as near as the type has it; what is no number stays as it is. */
void twi_tensor_set_number(tw_tensor *tensor, int64_t i, double value);

/* Replaces a string by a copy of `size` bytes, with a 0 behind them; the old bytes are freed. False when out of memory:
 * then nothing changed. */
bool twi_string_set(tw_string *string, const void *data, size_t size);

/* The type of a part of complex numbers, and the type of complex numbers with such parts. */
static inline tw_dtype twi_part_type(tw_dtype dtype)
{
    return dtype == TW_COMPLEX128 ? TW_FLOAT64 : TW_FLOAT32;
}

static inline tw_dtype twi_complex_type(tw_dtype part)
{
    return part == TW_FLOAT64 ? TW_COMPLEX128 : TW_COMPLEX64;
}

/* Whole number i of an array of any type of integers, of quantized ones and of bools; of uint64 its bits. */
static inline int64_t twi_integer_at(tw_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case TW_INT8:
    case TW_QINT8:
        return ((const int8_t *)data)[i];
    case TW_INT16:
    case TW_QINT16:
        return ((const int16_t *)data)[i];
    case TW_UINT16:
    case TW_QUINT16:
        return ((const uint16_t *)data)[i];
    case TW_INT32:
    case TW_QINT32:
        return ((const int32_t *)data)[i];
    case TW_UINT32:
        return ((const uint32_t *)data)[i];
    case TW_INT64:
    case TW_UINT64:
        return ((const int64_t *)data)[i];
    default: /* uint8, quint8, bool */
        return ((const uint8_t *)data)[i];
    }
}

/* That number becomes the low bits of `value`; a bool whether there are any. */
static inline void twi_put_integer(tw_dtype dtype, void *data, int64_t i, int64_t value)
{
    switch (tw_dtype_size(dtype)) {
    case 2:
        ((uint16_t *)data)[i] = (uint16_t)value;
        break;
    case 4:
        ((uint32_t *)data)[i] = (uint32_t)value;
        break;
    case 8:
        ((int64_t *)data)[i] = value;
        break;
    default:
        ((uint8_t *)data)[i] = dtype == TW_BOOL ? value != 0 : (uint8_t)value;
    }
}

/* Element i of an int32 or int64 tensor: shapes, axes and the like come in either. */
static inline int64_t twi_tensor_int(const tw_tensor *tensor, int64_t i)
{
    return tensor->dtype == TW_INT32 ? ((const int32_t *)tensor->data)[i] : ((const int64_t *)tensor->data)[i];
}

#endif
