/* inplace.c - rows of a tensor changed as if in place, tensors that begin as anything, and what counts as true. */
#include "ops/rules.h"

/* x [N,...], i [n], v [n,...] */
static tw_status rows_shape(twi_inference *c)
{
    char texts[2][128];
    tw_shape wanted = c->inputs[0];
    tw_status status = twi_expect_rank_at_least(c, 0, 1);
    c->outputs[0] = c->inputs[0];
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 1);
    if (status != TW_OK || wanted.rank < 0)
        return status;
    wanted.dims[0] = c->inputs[1].rank < 0 ? -1 : c->inputs[1].dims[0];
    if (tw_shape_compatible(wanted, c->inputs[2]))
        return TW_OK;
    return TWI_REFUSE(c, "i and x are shaped for %s, but v has shape %s",
                      tw_shape_text(wanted, texts[0], sizeof texts[0]),
                      tw_shape_text(c->inputs[2], texts[1], sizeof texts[1]));
}

static tw_status empty_shape(twi_inference *c)
{
    c->outputs[0] = twi_ask_shape(c, 0);
    return twi_expect_rank(c, 0, 1);
}

#define ROWS "x:T, i:int32, v:T", "y:T", "T:type", rows_shape, twi_not_differentiable, TWI_HOST_ONLY

const twi_op twi_inplace_ops[] = {
    {"InplaceUpdate", ROWS},
    {"InplaceAdd", ROWS},
    {"InplaceSub", ROWS},
    {"DeepCopy", "x:T", "y:T", "T:type", twi_shape_same, twi_not_differentiable, TWI_HOST_ONLY | TWI_STATEFUL},
    {"Empty", "shape:int32", "output:dtype", "dtype:type; init:bool=false", empty_shape, twi_not_differentiable,
     TWI_HOST_ONLY | TWI_STATEFUL},
    {"ToBool", "input:T", "output:bool", "T:type", twi_shape_scalar, twi_not_differentiable, TWI_HOST_ONLY},
    {0},
};
