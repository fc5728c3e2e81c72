/* fractional.c - pools whose regions have sizes that differ by one, drawn: fractional maximum and average pooling. */
#include "ops/rules.h"

/* How often region sizes divide each axis, rounded down. */
static tw_status fractional_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], out = twi_unknown_of_rank(4);
    const twi_attr *ratio = twi_attr_find(c->attrs, "pooling_ratio");
    tw_status status = twi_expect_rank(c, 0, 4);
    if (status == TW_OK && ratio->count != 4)
        return TWI_REFUSE(c, "pooling_ratio field must specify 4 dimensions, not %d", ratio->count);
    if (status == TW_OK && (ratio->floats[0] != 1 || ratio->floats[3] != 1))
        return twi_fail(c->error, TW_UNIMPLEMENTED, "pooling of batches or channels is not supported");
    for (int i = 0; i < 4 && status == TW_OK; i++) {
        if (!(ratio->floats[i] >= 1))
            return TWI_REFUSE(c, "pooling_ratio cannot be smaller than 1, got %g", (double)ratio->floats[i]);
        if (in.rank < 0 || in.dims[i] < 0)
            continue;
        if (!((float)in.dims[i] >= ratio->floats[i]))
            return TWI_REFUSE(c, "Pooling ratio cannot be larger than input tensor dimension size: %g, %lld",
                              (double)ratio->floats[i], (long long)in.dims[i]);
        out.dims[i] = (int64_t)((float)in.dims[i] / ratio->floats[i]);
    }
    c->outputs[0] = out;
    for (int i = 1; i < 3; i++)
        c->outputs[i] = TW_SHAPE(out.dims[i] < 0 ? -1 : out.dims[i] + 1);
    return status;
}

/* x, y, dy, bounds of rows, of columns: dx */
static tw_status max_grad_shape(twi_inference *c)
{
    tw_shape y;
    tw_status status = twi_expect_rank(c, 0, 4);
    if (status == TW_OK)
        status = twi_merge_shapes(c->inputs[1], c->inputs[2], &y, c->error);
    for (int i = 3; i < 5 && status == TW_OK; i++)
        status = twi_expect_rank(c, i, 1);
    c->outputs[0] = c->inputs[0];
    return status;
}

/* shape of x, dy, bounds of rows, of columns: dx */
static tw_status avg_grad_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 1, 4);
    for (int i = 2; i < 4 && status == TW_OK; i++)
        status = twi_expect_rank(c, i, 1);
    c->outputs[0] = twi_shape_of_value(twi_ask_value(c, 0));
    if (c->outputs[0].rank >= 0 && c->outputs[0].rank != 4)
        return TWI_REFUSE(c, "orig_input_tensor_shape must have 4 numbers, not %d", c->outputs[0].rank);
    return status;
}

static tw_attr overlapping_of(const twi_gradient *g)
{
    return tw_attr_bool("overlapping", twi_attr_bool(&g->node->attrs, "overlapping", false));
}

static void max_gradient(twi_gradient *g)
{
    g->dx[0] =
        twi_build(G, "FractionalMaxPoolGrad", TWI_INPUTS(X(0), Y(0), DY(0), Y(1), Y(2)), TWI_ATTRS(overlapping_of(g)));
}

static void avg_gradient(twi_gradient *g)
{
    tw_output shape = twi_build(G, "Shape", TWI_INPUTS(X(0)), TWI_ATTRS(tw_attr_type("out_type", TW_INT64)));
    g->dx[0] =
        twi_build(G, "FractionalAvgPoolGrad", TWI_INPUTS(shape, DY(0), Y(1), Y(2)), TWI_ATTRS(overlapping_of(g)));
}

#define TYPES "T:{float,double,int32,int64}"
#define BOUNDS "row_pooling_sequence:int64, col_pooling_sequence:int64"
#define POOL                                                                                                           \
    "value:T", "output:T, " BOUNDS,                                                                                    \
        "pooling_ratio:floats; pseudo_random:bool=false; overlapping:bool=false; deterministic:bool=false; "           \
        "seed:int=0; seed2:int=0; " TYPES

const twi_op twi_fractional_ops[] = {
    {"FractionalMaxPool", POOL, fractional_shape, max_gradient, TWI_STATEFUL | TWI_HOST_ONLY},
    {"FractionalMaxPoolGrad", "orig_input:T, orig_output:T, out_backprop:T, " BOUNDS, "output:T",
     "overlapping:bool=false; " TYPES, max_grad_shape, NULL, TWI_HOST_ONLY},
    {"FractionalAvgPool", POOL, fractional_shape, avg_gradient, TWI_STATEFUL | TWI_HOST_ONLY},
    {"FractionalAvgPoolGrad", "orig_input_tensor_shape:int64, out_backprop:T, " BOUNDS, "output:T",
     "overlapping:bool=false; " TYPES, avg_grad_shape, NULL, TWI_HOST_ONLY},
    {0},
};
