/* kernel.c - what many prepare()s end with; see kernel.h. */
#include "device/kernel.h"

#include "base/memory.h"
#include "tensor/tensor.h"

#include <string.h>

tw_status twi_keep(twi_prepare *p, const void *state, size_t size)
{
    void *copy = twi_alloc(size);
    if (!copy)
        return twi_fail_memory(p->error, p->node);
    p->state = memcpy(copy, state, size);
    return TW_OK;
}

tw_status twi_make_output(const twi_run *r, int i, tw_shape shape, void **data)
{
    const twi_operand *operand = &r->output_operands[i];
    char has[128], wants[128];
    if (!tw_shape_compatible(operand->shape, shape))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "output %d has shape %s, expected %s", i,
                        tw_shape_text(shape, has, sizeof has), tw_shape_text(operand->shape, wants, sizeof wants));
    *data = r->outputs[i];
    if (operand->elements >= 0)
        return TW_OK;
    tw_tensor **made = r->outputs[i];
    tw_tensor_release(*made);
    *made = tw_tensor_create(operand->dtype, shape);
    if (!*made)
        return twi_fail(r->error, TW_RESOURCE_EXHAUSTED, "no memory for output %d, a %s of %s", i,
                        tw_dtype_name(operand->dtype), tw_shape_text(shape, has, sizeof has));
    *data = (*made)->data;
    return TW_OK;
}

size_t twi_make_room(size_t *size, size_t bytes)
{
    size_t at = *size;
    *size += (bytes + 63) / 64 * 64;
    return at;
}
