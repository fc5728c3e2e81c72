/* tensor.c - host tensors: creation, ownership, reading single values. */
#include "tensor/variant.h"

#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

#define ALIGNMENT 64 /* a cache line, and the widest vector register */

static tw_tensor *new_tensor(tw_dtype dtype, tw_shape shape)
{
    int64_t elements = tw_shape_elements(shape);
    size_t size = tw_dtype_size(dtype);
    if (elements < 0 || size == 0 || (uint64_t)elements > PTRDIFF_MAX / size)
        return NULL;
    tw_tensor *tensor = twi_alloc(sizeof *tensor);
    if (!tensor)
        return NULL;
    atomic_init(&tensor->references, 1);
    tensor->dtype = dtype;
    tensor->shape = shape;
    tensor->elements = elements;
    return tensor;
}

tw_tensor *tw_tensor_create(tw_dtype dtype, tw_shape shape)
{
    return dtype == TW_VARIANT ? NULL : twi_tensor_create(dtype, shape);
}

tw_tensor *twi_tensor_reserve(tw_dtype dtype, tw_shape shape)
{
    tw_tensor *tensor = new_tensor(dtype, shape);
    if (!tensor)
        return NULL;
    size_t bytes = tw_tensor_bytes(tensor);
    tensor->data = twi_owns_memory(dtype) ? twi_alloc_aligned(bytes, ALIGNMENT) : twi_reserve_aligned(bytes, ALIGNMENT);
    tensor->owned = true;
    if (!tensor->data) {
        twi_free(tensor);
        return NULL;
    }
    return tensor;
}

tw_tensor *twi_tensor_create(tw_dtype dtype, tw_shape shape)
{
    tw_tensor *tensor = twi_tensor_reserve(dtype, shape);
    if (tensor)
        memset(tensor->data, 0, tw_tensor_bytes(tensor));
    return tensor;
}

tw_tensor *tw_tensor_from(tw_dtype dtype, tw_shape shape, const void *values)
{
    TWI_NEED_OR(values, NULL);
    return dtype == TW_VARIANT ? NULL : twi_tensor_from(dtype, shape, values);
}

tw_tensor *twi_tensor_from(tw_dtype dtype, tw_shape shape, const void *values)
{
    tw_tensor *tensor = twi_tensor_create(dtype, shape);
    if (!tensor)
        return NULL;
    if (twi_owns_memory(dtype) && !twi_copy_owned(dtype, values, tensor->data, (size_t)tensor->elements)) {
        tw_tensor_release(tensor);
        return NULL;
    }
    if (!twi_owns_memory(dtype) && tensor->elements)
        memcpy(tensor->data, values, tw_tensor_bytes(tensor));
    return tensor;
}

tw_tensor *tw_tensor_wrap(tw_dtype dtype, tw_shape shape, void *values, void (*release)(void *user), void *user)
{
    static _Alignas(ALIGNMENT) char nothing[ALIGNMENT]; /* who has no values may have no place for them either */
    tw_tensor *tensor = dtype == TW_VARIANT ? NULL : new_tensor(dtype, shape);
    if (!tensor)
        return NULL;
    tensor->data = values || tensor->elements ? values : nothing;
    tensor->release = release;
    tensor->user = user;
    return tensor;
}

tw_tensor *tw_tensor_float(float value)
{
    return tw_tensor_from(TW_FLOAT32, TW_SCALAR, &value);
}

tw_tensor *tw_tensor_int32(int32_t value)
{
    return tw_tensor_from(TW_INT32, TW_SCALAR, &value);
}

tw_tensor *tw_tensor_int64(int64_t value)
{
    return tw_tensor_from(TW_INT64, TW_SCALAR, &value);
}

tw_tensor *tw_tensor_string(const char *text, size_t bytes)
{
    TWI_NEED_OR(text, NULL);
    tw_string string = {(char *)text, bytes};
    return tw_tensor_from(TW_STRING, TW_SCALAR, &string);
}

tw_tensor *tw_tensor_retain(tw_tensor *tensor)
{
    TWI_NEED_OR(tensor, NULL);
    atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
    return tensor;
}

void tw_tensor_release(tw_tensor *tensor)
{
    if (!tensor || atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel) != 1)
        return;
    if (tensor->owned) {
        if (twi_owns_memory(tensor->dtype))
            twi_free_owned(tensor->dtype, tensor->data, (size_t)tensor->elements);
        twi_free_aligned(tensor->data);
    } else if (tensor->release) {
        tensor->release(tensor->user);
    }
    twi_free(tensor);
}

tw_dtype tw_tensor_dtype(const tw_tensor *tensor)
{
    TWI_NEED_OR(tensor, TW_INVALID_DTYPE);
    return tensor->dtype;
}

tw_shape tw_tensor_shape(const tw_tensor *tensor)
{
    TWI_NEED_OR(tensor, TW_UNKNOWN_SHAPE);
    return tensor->shape;
}

int64_t tw_tensor_elements(const tw_tensor *tensor)
{
    TWI_NEED_OR(tensor, 0);
    return tensor->elements;
}

size_t tw_tensor_bytes(const tw_tensor *tensor)
{
    TWI_NEED_OR(tensor, 0);
    return (size_t)tensor->elements * tw_dtype_size(tensor->dtype);
}

void *tw_tensor_data(const tw_tensor *tensor)
{
    TWI_NEED_OR(tensor, NULL);
    return tensor->data;
}

bool twi_string_set(tw_string *string, const void *data, size_t size)
{
    bool fits = string->data && size <= string->size && size >= string->size / 2; /* in its place */
    char *copy = fits ? string->data : size < SIZE_MAX ? twi_resize(NULL, size + 1) : NULL;
    if (!copy)
        return false;
    if (size)
        memmove(copy, data, size);
    copy[size] = 0;
    if (!fits)
        twi_free(string->data);
    *string = (tw_string){copy, size};
    return true;
}

tw_status tw_tensor_set_string(tw_tensor *tensor, int64_t i, const char *data, size_t bytes)
{
    TWI_NEED_OR(tensor, TW_INVALID_ARGUMENT);
    if (tensor->dtype != TW_STRING || i < 0 || i >= tensor->elements)
        return TW_INVALID_ARGUMENT;
    return twi_string_set((tw_string *)tensor->data + i, data, bytes) ? TW_OK : TW_RESOURCE_EXHAUSTED;
}

double tw_tensor_value(const tw_tensor *tensor, int64_t i)
{
    TWI_NEED_OR(tensor, NAN);
    const void *data = tensor->data;
    switch (tensor->dtype) {
    case TW_FLOAT32:
        return ((const float *)data)[i];
    case TW_FLOAT64:
        return ((const double *)data)[i];
    case TW_FLOAT16:
        return tw_half_to_float(((const uint16_t *)data)[i]);
    case TW_BFLOAT16:
        return tw_bfloat16_to_float(((const uint16_t *)data)[i]);
    case TW_COMPLEX64:
        return ((const float *)data)[2 * i];
    case TW_COMPLEX128:
        return ((const double *)data)[2 * i];
    case TW_UINT64:
        return (double)((const uint64_t *)data)[i];
    case TW_STRING:
    case TW_RESOURCE:
    case TW_VARIANT:
    case TW_INVALID_DTYPE:
        return NAN;
    default:
        return (double)twi_integer_at(tensor->dtype, data, i);
    }
}

double tw_tensor_imaginary(const tw_tensor *tensor, int64_t i)
{
    TWI_NEED_OR(tensor, NAN);
    if (tensor->dtype == TW_COMPLEX64)
        return ((const float *)tensor->data)[2 * i + 1];
    return tensor->dtype == TW_COMPLEX128 ? ((const double *)tensor->data)[2 * i + 1] : 0;
}

void twi_tensor_set_number(tw_tensor *tensor, int64_t i, double value)
{
    void *data = tensor->data;
    switch (tensor->dtype) {
    case TW_FLOAT32:
        ((float *)data)[i] = (float)value;
        break;
    case TW_FLOAT64:
        ((double *)data)[i] = value;
        break;
    case TW_FLOAT16:
        ((uint16_t *)data)[i] = tw_float_to_half((float)value);
        break;
    case TW_BFLOAT16:
        ((uint16_t *)data)[i] = tw_float_to_bfloat16((float)value);
        break;
    case TW_COMPLEX64:
        ((float *)data)[2 * i] = (float)value;
        break;
    case TW_COMPLEX128:
        ((double *)data)[2 * i] = value;
        break;
    case TW_UINT64:
        ((uint64_t *)data)[i] = (uint64_t)value;
        break;
    case TW_STRING:
    case TW_RESOURCE:
    case TW_VARIANT:
    case TW_INVALID_DTYPE:
        break;
    case TW_BOOL:
        ((uint8_t *)data)[i] = value != 0;
        break;
    default:
        twi_put_integer(tensor->dtype, data, i, (int64_t)value);
    }
}
