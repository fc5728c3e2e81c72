/* scatter_variable.c - elements changed at places that indices say, in variables and in copies of tensors: added to,
 * taken from, multiplied, divided, limited, replaced. In the order of the indices, on one thread, because a place may
 * be named twice. Half and bfloat16 round after every operation. */
#include "device/cpu/plain/indices.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"
#include "device/resources.h"
#include "tensor/tensor.h"

#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-function" /* nobody divides in a copy */

static tw_status prepare(twi_prepare *p)
{
    return twi_resource_check_type(p->inputs[0].resource, twi_kernel_type(p->attrs), p->op, p->node, p->error);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

typedef void change(const twi_run *r, void *to, const twi_places *places);

/* A scalar update goes into every place. */
static bool is_scalar(const twi_run *r)
{
    return r->input_operands[2].shape.rank == 0;
}

/* Each index says a row of the variable. */
static tw_status change_rows(const twi_run *r, change *f)
{
    tw_shape variable = r->input_operands[0].shape;
    twi_places places = {
        .count = r->input_operands[1].elements, .slice = twi_elements_between(variable, 1, variable.rank), .depth = 1};
    places.strides[0] = places.slice;
    tw_status status = twi_indices_check(r, 1, variable.dims[0]);
    if (status == TW_OK && places.slice)
        f(r, (void *)r->inputs[0], &places);
    return status;
}

/* Each row of indices says a place, in the variable or in a copy of the tensor. */
static tw_status change_places(const twi_run *r, change *f, bool copies)
{
    const twi_operand *in = &r->input_operands[0];
    twi_places places;
    tw_status status = twi_places_check(r, 1, in->shape, &places);
    if (status == TW_OK && copies && in->elements && r->outputs[0] != r->inputs[0] &&
        !twi_copy_elements(in->elements, in->dtype, r->inputs[0], r->outputs[0]))
        status = twi_fail_memory(r->error, r->node);
    if (status == TW_OK && places.slice && in->elements)
        f(r, copies ? r->outputs[0] : (void *)r->inputs[0], &places);
    return status;
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

/* Integers are not divided by zero: such an update is refused before anything is done. */
static tw_status check_divisors(const twi_run *r)
{
    const twi_operand *updates = &r->input_operands[2];
    size_t size = tw_dtype_size(updates->dtype);
    static const char zero[8];
    for (int64_t i = 0; i < updates->elements; i++)
        if (memcmp((const char *)r->inputs[2] + (size_t)i * size, zero, size) == 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': integer division by zero", r->node);
    return TW_OK;
}

#define BODY "device/cpu/plain/scatter_variable.inl"
#define DIVIDE(x, y) ((x) / (y))
#include "device/cpu/plain/for_stored.h"
#include "device/cpu/plain/for_complex.h"
#undef DIVIDE
#define DIVIDE(x, y) ((y) == (REAL)-1 ? SUBTRACT(0, x) : (x) / (y)) /* the smallest by -1 wraps */
#include "device/cpu/plain/for_integers.h"
#undef BODY

#define CHECKED(type)                                                                                                  \
    static tw_status rows_checked_div_##type(const twi_run *r)                                                         \
    {                                                                                                                  \
        tw_status status = check_divisors(r);                                                                          \
        return status == TW_OK ? rows_div_##type(r) : status;                                                          \
    }
CHECKED(int8)
CHECKED(uint8)
CHECKED(uint16)
CHECKED(uint32)
CHECKED(uint64)
CHECKED(int16)
CHECKED(int32)
CHECKED(int64)

/* Elements of any type are replaced. */
static void update(const twi_run *r, void *to, const twi_places *places)
{
    tw_dtype dtype = r->input_operands[2].dtype;
    for (int64_t i = 0; i < places->count; i++) {
        int64_t at = twi_places_offset(r, 1, places, i);
        if (is_scalar(r))
            twi_fill_elements(r, places->slice, dtype, r->inputs[2], twi_element_of_output(to, dtype, at));
        else
            twi_copy_elements(places->slice, dtype, twi_element(r->inputs[2], dtype, i * places->slice),
                              twi_element_of_output(to, dtype, at));
    }
}

static tw_status rows_update(const twi_run *r)
{
    return change_rows(r, update);
}

static tw_status places_update(const twi_run *r)
{
    return change_places(r, update, false);
}

static tw_status copy_update(const twi_run *r)
{
    return change_places(r, update, true);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static tw_status prepare_copy(twi_prepare *p)
{
    p->can_overwrite[0] = true;
    return TW_OK;
}

#define FLOAT_ROWS(op, prepare, f)                                                                                     \
    {op, "plain", TWI_TYPE(TW_FLOAT32), prepare, f##_float}, {op, "plain", TWI_TYPE(TW_FLOAT64), prepare, f##_double}, \
        {op, "plain", TWI_TYPE(TW_FLOAT16), prepare, f##_half},                                                        \
    {                                                                                                                  \
        op, "plain", TWI_TYPE(TW_BFLOAT16), prepare, f##_bfloat16                                                      \
    }
#define NUMBER_ROWS(op, prepare, f) FLOAT_ROWS(op, prepare, f), TWI_INTEGER_ROWS(op, prepare, f, NULL)
#define SUM_ROWS(op, prepare, f) NUMBER_ROWS(op, prepare, f), TWI_COMPLEX_ROWS(op, prepare, f, NULL)
#define ANY_TYPE TWI_STORED_TYPES

const twi_kernel twi_cpu_scatter_variable_kernels[] = {
    SUM_ROWS("ResourceScatterAdd", prepare, rows_add),
    SUM_ROWS("ResourceScatterSub", prepare, rows_sub),
    SUM_ROWS("ResourceScatterMul", prepare, rows_mul),
    FLOAT_ROWS("ResourceScatterDiv", prepare, rows_div),
    TWI_COMPLEX_ROWS("ResourceScatterDiv", prepare, rows_div, NULL),
    TWI_INTEGER_ROWS("ResourceScatterDiv", prepare, rows_checked_div, NULL),
    NUMBER_ROWS("ResourceScatterMin", prepare, rows_min),
    NUMBER_ROWS("ResourceScatterMax", prepare, rows_max),
    {"ResourceScatterUpdate", "plain", ANY_TYPE, prepare, rows_update},
    SUM_ROWS("ResourceScatterNdAdd", prepare, places_add),
    SUM_ROWS("ResourceScatterNdSub", prepare, places_sub),
    NUMBER_ROWS("ResourceScatterNdMax", prepare, places_max),
    NUMBER_ROWS("ResourceScatterNdMin", prepare, places_min),
    {"ResourceScatterNdUpdate", "plain", ANY_TYPE, prepare, places_update},
    SUM_ROWS("TensorScatterAdd", prepare_copy, copy_add),
    SUM_ROWS("TensorScatterSub", prepare_copy, copy_sub),
    NUMBER_ROWS("TensorScatterMax", prepare_copy, copy_max),
    NUMBER_ROWS("TensorScatterMin", prepare_copy, copy_min),
    SUM_ROWS("ScatterNdNonAliasingAdd", prepare_copy, copy_add),
    {"TensorScatterUpdate", "plain", TWI_MOVED_TYPES, NULL, copy_update},
    {0},
};
