/* inplace.c - rows of a tensor replaced, added to and taken from, in a copy where the tensor is still needed; tensors
 * that begin as anything, which here are zeros; copies; what counts as true. */
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"

#include <string.h>

static int64_t row_elements(const twi_run *r)
{
    const twi_operand *x = &r->input_operands[0];
    return x->shape.dims[0] ? x->elements / x->shape.dims[0] : 0;
}

/* Numbers go round. */
static int64_t row_of(const twi_run *r, int64_t k)
{
    int64_t rows = r->input_operands[0].shape.dims[0], i = twi_input_int(r, 1, k) % rows;
    return i < 0 ? i + rows : i;
}

#define BODY "device/cpu/plain/inplace.inl"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"

TWI_WIDENED(inplace)

static tw_status prepare_rows(twi_prepare *p)
{
    p->state = (void *)(uintptr_t)p->op;
    p->can_overwrite[0] = true;
    return TW_OK;
}

static tw_status prepare_sum(twi_prepare *p)
{
    tw_status status = prepare_rows(p);
    p->workspace = twi_widened_bytes(p);
    return status;
}

static tw_status run_update(const twi_run *r)
{
    tw_dtype dtype = r->output_operands[0].dtype;
    int64_t row = row_elements(r), rows = r->input_operands[0].shape.dims[0] ? r->input_operands[1].elements : 0;
    bool fits = r->outputs[0] == r->inputs[0] ||
                twi_copy_elements(r->output_operands[0].elements, dtype, r->inputs[0], r->outputs[0]);
    for (int64_t k = 0; k < rows && fits; k++)
        fits = twi_copy_elements(row, dtype, twi_element(r->inputs[2], dtype, k * row),
                                 twi_element_of_output(r->outputs[0], dtype, row_of(r, k) * row));
    return fits ? TW_OK : twi_fail_memory(r->error, r->node);
}

static tw_status run_copy(const twi_run *r)
{
    const twi_operand *y = &r->output_operands[0];
    bool fits = twi_copy_elements(y->elements, y->dtype, r->inputs[0], r->outputs[0]);
    return fits ? TW_OK : twi_fail_memory(r->error, r->node);
}

static tw_status run_empty(const twi_run *r)
{
    return twi_clear_elements(r, r->output_operands[0].elements, r->output_operands[0].dtype, r->outputs[0]);
}

/* A scalar by its value, and all else by whether there is anything. */
static tw_status run_to_bool(const twi_run *r)
{
    const twi_operand *x = &r->input_operands[0];
    const unsigned char *bytes = r->inputs[0];
    bool *y = r->outputs[0];
    *y = x->shape.rank > 0 && x->elements > 0;
    if (x->shape.rank)
        return TW_OK;
    if (x->dtype == TW_STRING)
        *y = ((const tw_string *)r->inputs[0])->size > 0;
    else if (x->dtype == TW_FLOAT32)
        *y = *(const float *)r->inputs[0] != 0;
    else if (x->dtype == TW_FLOAT64)
        *y = *(const double *)r->inputs[0] != 0;
    else if (TWI_NARROW_TYPES & TWI_TYPE(x->dtype)) /* but for the sign */
        *y = (*(const uint16_t *)r->inputs[0] & 0x7fff) != 0;
    else
        for (size_t i = 0; i < x->bytes; i++)
            *y = *y || bytes[i];
    return TW_OK;
}

const twi_kernel twi_cpu_inplace_kernels[] = {
    {"InplaceUpdate", "plain", TWI_MOVED_TYPES, prepare_rows, run_update},
    TWI_FLOAT_ROWS("InplaceAdd", prepare_sum, inplace, NULL),
    TWI_INTEGER_ROWS("InplaceAdd", prepare_sum, inplace, NULL),
    TWI_FLOAT_ROWS("InplaceSub", prepare_sum, inplace, NULL),
    TWI_INTEGER_ROWS("InplaceSub", prepare_sum, inplace, NULL),
    {"DeepCopy", "plain", TWI_MOVED_TYPES, NULL, run_copy},
    {"CollectiveReduceV2", "plain", 0, NULL, run_copy},
    {"CollectiveGatherV2", "plain", 0, NULL, run_copy},
    {"CollectiveBcastSendV2", "plain", 0, NULL, run_copy},
    {"Empty", "plain", TWI_MOVED_TYPES, NULL, run_empty},
    {"ToBool", "plain", TWI_MOVED_TYPES, NULL, run_to_bool},
    {0},
};
