/* sparse_dense.c - sparse tensors, as places [n,rank], values [n] and a shape, where what comes of them is dense. */
#include "ops/rules.h"
#include "ops/types.h"

/* ---- SparseToDense: sparse_indices, output_shape, sparse_values, default_value ------------------------------- */

static tw_status to_dense_shape(twi_inference *c)
{
    tw_shape places = c->inputs[0], dense = c->inputs[1], values = c->inputs[2];
    if (places.rank > 2)
        return TWI_REFUSE(c, "indices have rank %d, expected at most 2", places.rank);
    if (dense.rank >= 0 && dense.rank != 1)
        return twi_expect_rank(c, 1, 1);
    if (values.rank > 1)
        return TWI_REFUSE(c, "values have rank %d, expected at most 1", values.rank);
    if (c->inputs[3].rank > 0)
        return twi_expect_rank(c, 3, 0);
    if (dense.rank == 1 && dense.dims[0] > TW_MAX_RANK)
        return TWI_REFUSE(c, "the result has %lld axes, expected at most %d", (long long)dense.dims[0], TW_MAX_RANK);
    if (places.rank == 2 && dense.rank == 1 && places.dims[1] >= 0 && dense.dims[0] >= 0 &&
        places.dims[1] != dense.dims[0])
        return TWI_REFUSE(c, "places of %lld numbers in %lld axes", (long long)places.dims[1],
                          (long long)dense.dims[0]);
    int64_t count = places.rank == 0 ? 1 : places.rank > 0 ? places.dims[0] : -1, merged;
    if (values.rank == 1 && !twi_merge_dims(count, values.dims[0], &merged))
        return TWI_REFUSE(c, "%lld values for %lld places", (long long)values.dims[0], (long long)count);
    c->outputs[0] = twi_shape_of_value(twi_ask_value(c, 1));
    if (c->outputs[0].rank < 0 && dense.rank == 1 && dense.dims[0] >= 0)
        c->outputs[0] = twi_unknown_of_rank((int)dense.dims[0]);
    for (int i = 0; c->input_values[1] && i < c->outputs[0].rank; i++)
        if (c->outputs[0].dims[i] < 0)
            return TWI_REFUSE(c, "dimension %d of the shape is negative", i);
    return TW_OK;
}

static void to_dense_gradient(twi_gradient *g)
{
    tw_output indices = X(0);
    if (tw_output_shape(indices).rank != 2) { /* a vector, or nobody knows yet: as many numbers a place as axes */
        tw_output shape[] = {twi_constant_int(G, -1), tw_size_of(G, X(1))};
        indices = twi_binary(g, "Reshape", indices, tw_pack(G, shape, 2, 0));
    }
    tw_output values = tw_gather_nd(G, DY(0), indices);
    values = twi_unbroadcast(G, values, X(2), values); /* one value may stand for all */
    g->dx[2] = values;
    g->dx[3] = tw_sub(G, tw_reduce_sum(G, DY(0), NULL, 0, false), tw_reduce_sum(G, values, NULL, 0, false));
}

/* ---- SparseTensorDenseMatMul: a_indices, a_values, a_shape, b ------------------------------------------------ */

static tw_status product_shape(twi_inference *c)
{
    static const int ranks[] = {2, 1, 1, 2};
    bool adjoint_a = twi_attr_bool(c->attrs, "adjoint_a", false),
         adjoint_b = twi_attr_bool(c->attrs, "adjoint_b", false);
    tw_shape a = twi_shape_of_value(twi_ask_value(c, 2)), b = c->inputs[3];
    int64_t merged;
    for (int i = 0; i < 4; i++)
        if (c->inputs[i].rank >= 0 && c->inputs[i].rank != ranks[i])
            return twi_expect_rank(c, i, ranks[i]);
    if (a.rank >= 0 && a.rank != 2)
        return TWI_REFUSE(c, "a has rank %d, expected 2", a.rank);
    if (c->inputs[0].rank == 2 && c->inputs[0].dims[1] >= 0 && c->inputs[0].dims[1] != 2)
        return TWI_REFUSE(c, "places of %lld numbers, expected 2", (long long)c->inputs[0].dims[1]);
    if (c->inputs[0].rank == 2 && c->inputs[1].rank == 1 &&
        !twi_merge_dims(c->inputs[0].dims[0], c->inputs[1].dims[0], &merged))
        return TWI_REFUSE(c, "%lld values for %lld places", (long long)c->inputs[1].dims[0],
                          (long long)c->inputs[0].dims[0]);
    if (a.rank == 2 && b.rank == 2 && !twi_merge_dims(a.dims[!adjoint_a], b.dims[adjoint_b], &merged))
        return TWI_REFUSE(c, "inner dimensions %lld and %lld differ", (long long)a.dims[!adjoint_a],
                          (long long)b.dims[adjoint_b]);
    c->outputs[0] = TW_SHAPE(a.rank < 0 ? -1 : a.dims[adjoint_a], b.rank < 0 ? -1 : b.dims[!adjoint_b]);
    return TW_OK;
}

/* Column `column` of the places. */
static tw_output numbers(twi_gradient *g, int column)
{
    return tw_strided_slice(G, X(0),
                            (tw_strided_slice_options){.begin = TW_SHAPE(0, column),
                                                       .end = TW_SHAPE(0, column + 1),
                                                       .begin_mask = 1,
                                                       .end_mask = 1,
                                                       .shrink_axis_mask = 2});
}

static void product_gradient(twi_gradient *g)
{
    if (tw_dtype_is_complex(tw_output_dtype(X(1)))) {
        twi_graph_fail(G, TW_UNIMPLEMENTED, "SparseTensorDenseMatMul '%s' has no gradient of complex numbers",
                       g->node->name);
        return;
    }
    bool adjoint_a = twi_attr_bool(&g->node->attrs, "adjoint_a", false);
    bool adjoint_b = twi_attr_bool(&g->node->attrs, "adjoint_b", false);
    tw_output b = X(3);
    tw_output by_b = twi_build(G, "SparseTensorDenseMatMul", TWI_INPUTS(X(0), X(1), X(2), DY(0)),
                               TWI_ATTRS(tw_attr_bool("adjoint_a", !adjoint_a)));
    g->dx[3] = adjoint_b ? tw_transpose(G, by_b, TW_SHAPE(1, 0)) : by_b;
    if (adjoint_b)
        b = tw_transpose(G, b, TW_SHAPE(1, 0));
    tw_output of_dy = tw_gather(G, DY(0), numbers(g, adjoint_a), 0), of_b = tw_gather(G, b, numbers(g, !adjoint_a), 0);
    g->dx[1] = tw_reduce_sum(G, tw_mul(G, of_dy, of_b), TW_AXES(1), false);
}

/* ---- SparseTensorDenseAdd: a_indices, a_values, a_shape, b ------------------------------------------------------- */

static tw_status add_shape(twi_inference *c)
{
    static const int ranks[] = {2, 1, 1};
    tw_shape a = twi_shape_of_value(c->input_values[2]);
    for (int i = 0; i < 3; i++)
        if (c->inputs[i].rank >= 0 && c->inputs[i].rank != ranks[i])
            return twi_expect_rank(c, i, ranks[i]);
    return twi_merge_shapes(a, c->inputs[3], &c->outputs[0], c->error);
}

static void add_gradient(twi_gradient *g)
{
    g->dx[1] = tw_gather_nd(G, DY(0), X(0));
    g->dx[3] = DY(0);
}

const twi_op twi_sparse_dense_ops[] = {
    {"SparseToDense", "sparse_indices:Tindices, output_shape:Tindices, sparse_values:T, default_value:T", "dense:T",
     "validate_indices:bool=true; T:type; Tindices:{int32,int64}", to_dense_shape, to_dense_gradient, TWI_HOST_ONLY},
    {"SparseTensorDenseMatMul", "a_indices:Tindices, a_values:T, a_shape:int64, b:T", "product:T",
     "T:{float,double,int32,bfloat16,half," TWI_COMPLEX
     "}; Tindices:{int32,int64}=int64; adjoint_a:bool=false; adjoint_b:bool=false",
     product_shape, product_gradient},
    {"SparseTensorDenseAdd", "a_indices:Tindices, a_values:T, a_shape:Tindices, b:T", "output:T",
     "T:{" TWI_NUMBERS "}; Tindices:{int32,int64}", add_shape, add_gradient, TWI_HOST_ONLY},
    {0},
};
