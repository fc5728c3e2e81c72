/* scatter_variable.c - rows of a variable changed at places that indices say: added to, taken from, replaced. In the order
 * of the indices, on one thread, because a row may be named twice. Half and bfloat16 round after every operation. */
#include "device/cpu/plain/indices.h"
#include "tensor/tensor.h"

#include <string.h>

static tw_status prepare(twi_prepare *p)
{
    const twi_operand *variable = &p->inputs[0];
    tw_dtype type = twi_kernel_type(p->attrs);
    if (variable->resource && variable->resource->dtype != type)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': variable '%s' is %s, the op works on %s", p->op,
                        p->node, variable->resource->name, tw_dtype_name(variable->resource->dtype),
                        tw_dtype_name(type));
    return TW_OK;
}

/* Elements of a row of the variable. */
static int64_t row_size(const twi_run *r)
{
    tw_shape variable = r->input_operands[0].shape;
    int64_t size = 1;
    for (int i = 1; i < variable.rank; i++)
        size *= variable.dims[i];
    return size;
}

/* A scalar update goes into every place of each row. */
static bool is_scalar(const twi_run *r)
{
    return r->input_operands[2].shape.rank == 0;
}

/* Where row i of the updates goes. */
static int64_t place(const twi_run *r, int64_t i)
{
    return r->input_operands[1].dtype == TW_INT64 ? ((const int64_t *)r->inputs[1])[i]
                                                  : ((const int32_t *)r->inputs[1])[i];
}

/* Integers wrap around, so they are added as unsigned numbers of their size. */
#define ADD_ROWS(T, load, store, sign)                                                                                 \
    for (int64_t i = 0; i < rows; i++) {                                                                               \
        T *to = (T *)r->inputs[0] + place(r, i) * row;                                                                 \
        const T *from = (const T *)r->inputs[2] + (one ? 0 : i * row);                                                 \
        for (int64_t k = 0; k < row; k++)                                                                              \
            to[k] = store(load(to[k]) sign load(from[one ? 0 : k]));                                                   \
    }                                                                                                                  \
    break

#define ADD_TYPES(sign)                                                                                                \
    int64_t rows = r->input_operands[1].elements, row = row_size(r);                                                   \
    bool one = is_scalar(r);                                                                                           \
    tw_status status = twi_indices_check(r, 1, r->input_operands[0].shape.dims[0]);                                    \
    if (status != TW_OK)                                                                                               \
        return status;                                                                                                 \
    switch (r->input_operands[2].dtype) {                                                                              \
    case TW_FLOAT32:                                                                                                   \
        ADD_ROWS(float, , , sign);                                                                                     \
    case TW_FLOAT64:                                                                                                   \
        ADD_ROWS(double, , , sign);                                                                                    \
    case TW_FLOAT16:                                                                                                   \
        ADD_ROWS(uint16_t, tw_half_to_float, tw_float_to_half, sign);                                                  \
    case TW_BFLOAT16:                                                                                                  \
        ADD_ROWS(uint16_t, tw_bfloat16_to_float, tw_float_to_bfloat16, sign);                                          \
    case TW_INT8:                                                                                                      \
    case TW_UINT8:                                                                                                     \
        ADD_ROWS(uint8_t, , , sign);                                                                                   \
    case TW_INT16:                                                                                                     \
        ADD_ROWS(uint16_t, , , sign);                                                                                  \
    case TW_INT32:                                                                                                     \
        ADD_ROWS(uint32_t, , , sign);                                                                                  \
    case TW_INT64:                                                                                                     \
        ADD_ROWS(uint64_t, , , sign);                                                                                  \
    default:                                                                                                           \
        break;                                                                                                         \
    }                                                                                                                  \
    return TW_OK;

static tw_status run_add(const twi_run *r)
{
    ADD_TYPES(+)
}

static tw_status run_sub(const twi_run *r)
{
    ADD_TYPES(-)
}

static tw_status run_update(const twi_run *r)
{
    int64_t rows = r->input_operands[1].elements, row = row_size(r);
    size_t size = tw_dtype_size(r->input_operands[2].dtype), bytes = (size_t)row * size;
    tw_status status = twi_indices_check(r, 1, r->input_operands[0].shape.dims[0]);
    for (int64_t i = 0; i < rows && status == TW_OK && row; i++) {
        char *to = (char *)r->inputs[0] + (size_t)place(r, i) * bytes;
        if (!is_scalar(r))
            memcpy(to, (const char *)r->inputs[2] + (size_t)i * bytes, bytes);
        for (int64_t k = 0; k < row && is_scalar(r); k++)
            memcpy(to + (size_t)k * size, r->inputs[2], size);
    }
    return status;
}

const twi_kernel twi_cpu_scatter_variable_kernels[] = {
    {"ResourceScatterAdd", "plain", TWI_NUMBER_TYPES, prepare, run_add},
    {"ResourceScatterSub", "plain", TWI_NUMBER_TYPES, prepare, run_sub},
    {"ResourceScatterUpdate", "plain", TWI_NUMBER_TYPES | TWI_TYPE(TW_BOOL), prepare, run_update},
    {0},
};
