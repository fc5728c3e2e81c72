/* sparse_math.c - arithmetic on sparse tensors, indices [n,rank] in row-major order, values [n] and a shape: their sum,
 * the larger of two, what a dense tensor does to their entries, softmax, and reductions along axes. */
#include "ops/rules.h"
#include "ops/types.h"

/* Of the first inputs. */
static tw_status expect_ranks(twi_inference *c, const int *ranks, int count)
{
    tw_status status = TW_OK;
    for (int i = 0; i < count && status == TW_OK; i++)
        status = twi_expect_rank(c, i, ranks[i]);
    return status;
}

/* ---- of two sparse tensors: SparseAdd (a, b, thresh; entries whose sum is smaller are left out), the larger or
 * smaller of each entry, where what is missing is 0
 * ------------------------------------------------------------------------ */

static tw_status join_shape(twi_inference *c)
{
    static const int ranks[] = {2, 1, 1, 2, 1, 1, 0};
    int64_t rank = c->inputs[2].rank == 1 ? c->inputs[2].dims[0] : -1;
    c->outputs[0] = TW_SHAPE(-1, rank);
    c->outputs[1] = TW_SHAPE(-1);
    if (c->num_outputs > 2)
        c->outputs[2] = TW_SHAPE(rank);
    return expect_ranks(c, ranks, c->num_inputs);
}

/* The least that is kept is compared with sums. */
static tw_status add_shape(twi_inference *c)
{
    tw_dtype type = twi_attr_type(c->attrs, "T"), least = twi_attr_type(c->attrs, "Treal");
    if (type != least)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "thresh has type %s, and the values have type %s",
                        tw_dtype_name(least), tw_dtype_name(type));
    return join_shape(c);
}

/* backprop_val_grad, a_indices, b_indices, sum_indices. */
static tw_status add_gradient_shape(twi_inference *c)
{
    static const int ranks[] = {1, 2, 2, 2};
    for (int i = 0; i < 2; i++)
        c->outputs[i] = TW_SHAPE(c->inputs[1 + i].rank == 2 ? c->inputs[1 + i].dims[0] : -1);
    return expect_ranks(c, ranks, c->num_inputs);
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
    tw_status status = expect_ranks(c, ranks, 3);
    if (status != TW_OK)
        return status;
    bool keep = twi_attr_bool(c->attrs, "keep_dims", false), reduced[TW_MAX_RANK] = {false};
    tw_shape in = twi_shape_of_value(twi_ask_value(c, 2));
    const tw_tensor *axes = twi_ask_value(c, 3); /* one, or a list */
    if (in.rank < 0 && c->inputs[2].rank == 1 && c->inputs[2].dims[0] > TW_MAX_RANK)
        return TWI_REFUSE(c, "a shape of %lld axes, expected at most %d", (long long)c->inputs[2].dims[0], TW_MAX_RANK);
    c->outputs[0] = TW_UNKNOWN_SHAPE;
    if (in.rank < 0 || !axes)
        return TW_OK;
    for (int64_t i = 0; i < tw_tensor_elements(axes); i++) {
        int64_t given = (int64_t)tw_tensor_value(axes, i), axis = given + (given < 0 ? in.rank : 0);
        if (axis < 0 || axis >= in.rank)
            return TWI_REFUSE(c, "axis %lld, expected one of %d axes", (long long)given, in.rank);
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

/* The same with a sparse result. */
static tw_status reduce_to_sparse_shape(twi_inference *c)
{
    static const int ranks[] = {2, 1, 1};
    bool keep = twi_attr_bool(c->attrs, "keep_dims", false);
    int64_t rank = keep && c->inputs[2].rank == 1 ? c->inputs[2].dims[0] : -1;
    c->outputs[0] = TW_SHAPE(-1, rank);
    c->outputs[1] = TW_SHAPE(-1);
    c->outputs[2] = TW_SHAPE(rank);
    return expect_ranks(c, ranks, 3);
}

/* ---- entries and a dense tensor, which is broadcast: sp_indices, sp_values, sp_shape, dense ---------------------- */

static tw_status entries_shape(twi_inference *c)
{
    static const int ranks[] = {2, 1, 1};
    tw_status status = expect_ranks(c, ranks, 3);
    int64_t count = -1;
    if (status == TW_OK && c->inputs[0].rank == 2 && c->inputs[1].rank == 1 &&
        !twi_merge_dims(c->inputs[0].dims[0], c->inputs[1].dims[0], &count))
        return TWI_REFUSE(c, "%lld indices for %lld values", (long long)c->inputs[0].dims[0],
                          (long long)c->inputs[1].dims[0]);
    c->outputs[0] = c->inputs[1].rank == 1 ? c->inputs[1] : TW_SHAPE(count);
    return status;
}

/* Where in the dense tensor each entry finds its number: [n, rank of the dense]. */
static tw_output places_in_dense(twi_gradient *g)
{
    tw_output one = tw_scalar_of(G, TW_INT64, 1), shape = tw_cast(G, tw_shape_of(G, X(3)), TW_INT64);
    tw_output missing = tw_reshape(G, tw_sub(G, tw_size_of(G, X(2)), tw_size_of(G, shape)), TW_SHAPE(1));
    tw_output dims = tw_concat(G, (tw_output[]){tw_fill(G, missing, one), shape}, 2, 0);
    tw_output scale = tw_maximum(G, twi_binary(g, "FloorDiv", X(2), tw_maximum(G, dims, one)), one);
    tw_output first = tw_concat(G, (tw_output[]){tw_zeros_like(G, missing), missing}, 2, 0);
    return twi_build(
        G, "Slice",
        TWI_INPUTS(twi_binary(g, "FloorDiv", X(0), scale), first, twi_constant_ints(G, (int64_t[]){-1, -1}, 2)),
        TWI_NO_ATTRS);
}

/* Each number of the dense tensor has the sum of what its entries have. */
static void from_entries(twi_gradient *g, tw_output places, tw_output gradients)
{
    tw_output shape = tw_cast(G, tw_shape_of(G, X(3)), TW_INT64);
    g->dx[3] = tw_scatter_nd(G, places, gradients, shape);
}

static void times_dense_gradient(twi_gradient *g)
{
    tw_output places = places_in_dense(g);
    g->dx[1] = tw_mul(G, DY(0), tw_gather_nd(G, X(3), places));
    from_entries(g, places, tw_mul(G, DY(0), X(1)));
}

static void by_dense_gradient(twi_gradient *g)
{
    tw_output places = places_in_dense(g), divisor = tw_gather_nd(G, X(3), places);
    g->dx[1] = tw_div(G, DY(0), divisor);
    from_entries(g, places, tw_neg(G, tw_mul(G, DY(0), tw_div(G, X(1), tw_square(G, divisor)))));
}

static void plus_dense_gradient(twi_gradient *g)
{
    g->dx[1] = DY(0);
    from_entries(g, places_in_dense(g), DY(0));
}

/* ---- SparseSoftmax: along the last axis -------------------------------------------------------------------------- */

/* dx = y (dy - the sum of y dy along the axis). */
static void softmax_gradient(twi_gradient *g)
{
    tw_output last = twi_constant_ints(G, (int64_t[]){-1}, 1);
    tw_output sums = twi_build(G, "SparseReduceSum", TWI_INPUTS(X(0), tw_mul(G, Y(0), DY(0)), X(2), last),
                               TWI_ATTRS(tw_attr_bool("keep_dims", true)));
    tw_output less = twi_build(G, "SparseDenseCwiseAdd", TWI_INPUTS(X(0), DY(0), X(2), tw_neg(G, sums)), TWI_NO_ATTRS);
    g->dx[1] = tw_mul(G, Y(0), less);
}

/* ---- SparseSplit: split_dim, indices, values, shape -------------------------------------------------------------- */

static tw_status split_shape(twi_inference *c)
{
    static const int ranks[] = {0, 2, 1, 1};
    int64_t rank = c->inputs[3].rank == 1 ? c->inputs[3].dims[0] : -1;
    int n = c->num_outputs / 3;
    for (int i = 0; i < n; i++) {
        c->outputs[i] = TW_SHAPE(-1, rank);
        c->outputs[n + i] = TW_SHAPE(-1);
        c->outputs[2 * n + i] = TW_SHAPE(rank);
    }
    return expect_ranks(c, ranks, 4);
}

#define TWO_SPARSE "a_indices:int64, a_values:T, a_shape:int64, b_indices:int64, b_values:T, b_shape:int64"
#define WITH_DENSE "sp_indices:int64, sp_values:T, sp_shape:int64, dense:T", "output:T", NUMBERS, entries_shape
#define SPARSE "input_indices:int64, input_values:T, input_shape:int64, reduction_axes:int32"
#define REDUCED "output_indices:int64, output_values:T, output_shape:int64", "keep_dims:bool=false; " MADE_TYPES
#define FOUND TWI_HOST_ONLY | TWI_MAKES_SHAPE
#define MADE_TYPES "T:{float,double," TWI_INTEGERS "}" /* of kernels that make their outputs */
#define NUMBERS "T:{" TWI_REALS "}"

const twi_op twi_sparse_math_ops[] = {
    {"SparseAdd", TWO_SPARSE ", thresh:Treal", "sum_indices:int64, sum_values:T, sum_shape:int64",
     "T:{float,double,int32,int64,int16,int8}; Treal:{float,double,int32,int64,int16,int8}", add_shape, add_gradient,
     FOUND},
    {"SparseAddGrad", "backprop_val_grad:T, a_indices:int64, b_indices:int64, sum_indices:int64",
     "a_val_grad:T, b_val_grad:T", NUMBERS, add_gradient_shape, NULL, TWI_HOST_ONLY},
    {"SparseReduceSum", SPARSE, "output:T", "keep_dims:bool=false; " NUMBERS, reduce_shape, sum_gradient,
     TWI_HOST_ONLY},
    {"SparseReduceMax", SPARSE, "output:T", "keep_dims:bool=false; " NUMBERS, reduce_shape, NULL, TWI_HOST_ONLY},
    {"SparseReduceSumSparse", SPARSE, REDUCED, reduce_to_sparse_shape, twi_not_differentiable, FOUND},
    {"SparseReduceMaxSparse", SPARSE, REDUCED, reduce_to_sparse_shape, NULL, FOUND},
    {"SparseSparseMaximum", TWO_SPARSE, "output_indices:int64, output_values:T", MADE_TYPES, join_shape,
     twi_not_differentiable, FOUND},
    {"SparseSparseMinimum", TWO_SPARSE, "output_indices:int64, output_values:T", MADE_TYPES, join_shape,
     twi_not_differentiable, FOUND},
    {"SparseDenseCwiseAdd", WITH_DENSE, plus_dense_gradient, TWI_HOST_ONLY},
    {"SparseDenseCwiseMul", WITH_DENSE, times_dense_gradient, TWI_HOST_ONLY},
    {"SparseDenseCwiseDiv", WITH_DENSE, by_dense_gradient, TWI_HOST_ONLY},
    {"SparseSoftmax", "sp_indices:int64, sp_values:T, sp_shape:int64", "output:T", "T:{half,float,double}",
     entries_shape, softmax_gradient, TWI_HOST_ONLY},
    {"SparseSplit", "split_dim:int64, indices:int64, values:T, shape:int64",
     "output_indices:num_split*int64, output_values:num_split*T, output_shape:num_split*int64",
     "num_split:int>=1; T:type", split_shape, twi_not_differentiable, FOUND},
    {0},
};
