/* made.c - see made.h. */
#include "device/cpu/plain/made.h"

#include "base/memory.h"

tw_status twi_run_made(const twi_run *r, tw_shape shape, size_t workspace, tw_status (*f)(const twi_run *r))
{
    twi_operand operand = r->output_operands[0];
    twi_run known = *r;
    void *data, *own = NULL;
    tw_status status = twi_make_output(r, 0, shape, &data);
    if (status != TW_OK)
        return status;
    operand.shape = shape;
    operand.elements = tw_shape_elements(shape);
    operand.bytes = (size_t)operand.elements * tw_dtype_size(operand.dtype);
    known.output_operands = &operand;
    known.outputs = &data;
    if (workspace && !(own = twi_alloc_aligned(workspace, 64)))
        return twi_fail_memory(r->error, r->node);
    if (own)
        known.workspace = own;
    status = f(&known);
    twi_free_aligned(own);
    return status;
}
