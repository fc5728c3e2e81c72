/* sparse_math.c - arithmetic on sparse tensors, indices [n,rank] in row-major order, values [n] and a shape: their sum,
 * and reductions along axes, which are dense. */
#include "ops/rules.h"

/* ---- SparseAdd: a, b, thresh; entries whose sum is smaller are left out ------------------------------------------ */

static tw_status add_shape(twi_inference *c)
{
    static const int ranks[] = {2, 1, 1, 2, 1, 1, 0};
    for (int i = 0; i < c->num_inputs; i++)
        if (c->inputs[i].rank >= 0 && c->inputs[i].rank != ranks[i])
            return twi_expect_rank(c, i, ranks[i]);
    int64_t rank = c->inputs[2].rank == 1 ? c->inputs[2].dims[0] : -1;
    c->outputs[0] = TW_SHAPE(-1, rank);
    c->outputs[1] = TW_SHAPE(-1);
    c->outputs[2] = TW_SHAPE(rank);
    return TW_OK;
}

/* backprop_val_grad, a_indices, b_indices, sum_indices. */
static tw_status add_gradient_shape(twi_inference *c)
{
    static const int ranks[] = {1, 2, 2, 2};
    for (int i = 0; i < c->num_inputs; i++)
        if (c->inputs[i].rank >= 0 && c->inputs[i].rank != ranks[i])
            return twi_expect_rank(c, i, ranks[i]);
    for (int i = 0; i < 2; i++)
        c->outputs[i] = TW_SHAPE(c->inputs[1 + i].rank == 2 ? c->inputs[1 + i].dims[0] : -1);
    return TW_OK;
}

static void add_gradient(twi_gradient *g)
{
    if (!DY(1).node)
        return;
    tw_node *node =
        tw_add_node(G, "SparseAddGrad", NULL, TWI_INPUTS(DY(1), X(0), X(3), tw_node_output(g->node, 0)), TWI_NO_ATTRS);
    g->dx[1] = tw_node_output(node, 0);
    g->dx[4] = tw_node_output(node, 1);
}

/* ---- SparseReduceSum, SparseReduceMax: input_indices, input_values, input_shape, reduction_axes ------------------ */

static tw_status reduce_shape(twi_inference *c)
{
    static const int ranks[] = {2, 1, 1};
    for (int i = 0; i < 3; i++)
        if (c->inputs[i].rank >= 0 && c->inputs[i].rank != ranks[i])
            return twi_expect_rank(c, i, ranks[i]);
    bool keep = twi_attr_bool(c->attrs, "keep_dims", false), reduced[TW_MAX_RANK] = {false};
    tw_shape in = twi_shape_of_value(twi_ask_value(c, 2)), axes = twi_shape_of_value(twi_ask_value(c, 3));
    if (in.rank < 0 && c->inputs[2].rank == 1 && c->inputs[2].dims[0] > TW_MAX_RANK)
        return TWI_REFUSE(c, "a shape of %lld axes, expected at most %d", (long long)c->inputs[2].dims[0], TW_MAX_RANK);
    c->outputs[0] = TW_UNKNOWN_SHAPE;
    if (in.rank < 0 || axes.rank < 0)
        return TW_OK;
    for (int i = 0; i < axes.rank; i++) {
        int64_t axis = axes.dims[i] + (axes.dims[i] < 0 ? in.rank : 0);
        if (axis < 0 || axis >= in.rank)
            return TWI_REFUSE(c, "axis %lld, expected one of %d axes", (long long)axes.dims[i], in.rank);
        reduced[axis] = true;
    }
    tw_shape out = {0};
    for (int i = 0; i < in.rank; i++)
        if (in.dims[i] < 0)
            return TWI_REFUSE(c, "dimension %d of the shape is negative", i);
        else if (keep || !reduced[i])
            out.dims[out.rank++] = reduced[i] ? 1 : in.dims[i];
    c->outputs[0] = out;
    return TW_OK;
}

/* Each value's gradient is that of the sum it went into. */
static void sum_gradient(twi_gradient *g)
{
    tw_output shape = tw_cast(G, X(2), TW_INT64), one = tw_scalar_of(G, TW_INT64, 1);
    tw_output rank = tw_size_of(G, shape), axes = tw_reshape(G, X(3), TW_SHAPE(-1)),
              zero = tw_scalar_of(G, TW_INT32, 0);
    tw_output from_front = tw_add(G, axes, tw_mul(G, rank, tw_cast(G, tw_less(G, axes, zero), TW_INT32)));
    /* 1 along axes that are summed, else the size */
    tw_output marks =
        twi_build(G, "UnsortedSegmentMax", TWI_INPUTS(tw_ones_like(G, from_front), from_front, rank), TWI_NO_ATTRS);
    tw_output summed = tw_greater(G, marks, zero), ones = tw_add(G, tw_zeros_like(G, shape), one);
    tw_output kept = tw_select(G, summed, ones, shape);
    tw_output scale = twi_build(G, "FloorDiv", TWI_INPUTS(shape, tw_maximum(G, kept, ones)), TWI_NO_ATTRS);
    tw_output dy = twi_build(G, "Reshape", TWI_INPUTS(DY(0), kept), TWI_NO_ATTRS);
    g->dx[1] =
        tw_gather_nd(G, dy, twi_build(G, "FloorDiv", TWI_INPUTS(X(0), tw_maximum(G, scale, ones)), TWI_NO_ATTRS));
}

#define SPARSE "input_indices:int64, input_values:T, input_shape:int64, reduction_axes:int32"
#define NUMBERS "T:{half,bfloat16,float,double,int32,int64,int16,int8,uint8}"

const twi_op twi_sparse_math_ops[] = {
    {"SparseAdd",
     "a_indices:int64, a_values:T, a_shape:int64, b_indices:int64, b_values:T, b_shape:int64, thresh:Treal",
     "sum_indices:int64, sum_values:T, sum_shape:int64",
     "T:{float,double,int32,int64,int16,int8}; Treal:{float,double,int32,int64,int16,int8}", add_shape, add_gradient,
     TWI_HOST_ONLY | TWI_MAKES_SHAPE},
    {"SparseAddGrad", "backprop_val_grad:T, a_indices:int64, b_indices:int64, sum_indices:int64",
     "a_val_grad:T, b_val_grad:T", NUMBERS, add_gradient_shape, NULL, TWI_HOST_ONLY},
    {"SparseReduceSum", SPARSE, "output:T", "keep_dims:bool=false; " NUMBERS, reduce_shape, sum_gradient,
     TWI_HOST_ONLY},
    {"SparseReduceMax", SPARSE, "output:T", "keep_dims:bool=false; " NUMBERS, reduce_shape, NULL, TWI_HOST_ONLY},
    {0},
};
