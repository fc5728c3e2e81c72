/* sparse.c - sparse tensors as TensorFlow has them, three arrays: indices [n,rank], values [n], shape [rank]; and sums
 * of rows that indices name, by segment. Never here: sparse tensors made dense (rearrange.c). */
#include "graph/graph.h"
#include "ops/build.h"
#include "ops/types.h"
#include "tensor/tensor.h"

#include <tower/ops.h>

#define FAIL(c, ...) twi_fail((c)->error, TW_INVALID_ARGUMENT, __VA_ARGS__)

/* ---- shape rules --------------------------------------------------------------------------------------------- */

static int64_t dim_of(tw_shape shape, int rank, int i)
{
    return shape.rank == rank ? shape.dims[i] : -1;
}

/* The ranks of inputs that are indices, values and shape. */
static tw_status expect_sparse(twi_inference *c, int first)
{
    tw_status status = twi_expect_rank(c, first, 2);
    for (int i = 1; i < 3 && status == TW_OK; i++)
        status = twi_expect_rank(c, first + i, 1);
    return status;
}

static int64_t entries_of(const twi_inference *c, int indices, int values)
{
    int64_t n = dim_of(c->inputs[values], 1, 0);
    return n >= 0 ? n : dim_of(c->inputs[indices], 2, 0);
}

static int64_t rank_of(const twi_inference *c, int indices, int shape)
{
    int64_t rank = dim_of(c->inputs[shape], 1, 0);
    return rank >= 0 ? rank : dim_of(c->inputs[indices], 2, 1);
}

static tw_status reorder_shape(twi_inference *c)
{
    int64_t n = entries_of(c, 0, 1);
    c->outputs[0] = TW_SHAPE(n, rank_of(c, 0, 2));
    c->outputs[1] = TW_SHAPE(n);
    return expect_sparse(c, 0);
}

static tw_status reshape_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 2);
    for (int i = 1; i < 3 && status == TW_OK; i++)
        status = twi_expect_rank(c, i, 1);
    int64_t rank = dim_of(c->inputs[2], 1, 0);
    c->outputs[0] = TW_SHAPE(dim_of(c->inputs[0], 2, 0), rank);
    c->outputs[1] = TW_SHAPE(rank);
    return status;
}

static tw_status slice_shape(twi_inference *c)
{
    int64_t rank = rank_of(c, 0, 2);
    c->outputs[0] = TW_SHAPE(-1, rank);
    c->outputs[1] = TW_SHAPE(-1);
    c->outputs[2] = TW_SHAPE(rank);
    return expect_sparse(c, 0);
}

/* backprop_val_grad, input_indices, input_start, output_indices: a gradient an entry */
static tw_status slice_gradient_shape(twi_inference *c)
{
    static const int ranks[] = {1, 2, 1, 2};
    for (int i = 0; i < 4; i++)
        if (c->inputs[i].rank >= 0 && c->inputs[i].rank != ranks[i])
            return twi_expect_rank(c, i, ranks[i]);
    c->outputs[0] = TW_SHAPE(c->inputs[1].rank == 2 ? c->inputs[1].dims[0] : -1);
    return TW_OK;
}

static tw_status fill_shape(twi_inference *c)
{
    tw_status status = expect_sparse(c, 0);
    c->outputs[0] = TW_SHAPE(-1, rank_of(c, 0, 2));
    c->outputs[1] = c->outputs[2] = TW_SHAPE(-1);
    c->outputs[3] = TW_SHAPE(entries_of(c, 0, 1));
    return status == TW_OK ? twi_expect_rank(c, 3, 0) : status;
}

static tw_status fill_ragged_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 1);
    for (int i = 1; i < 4 && status == TW_OK; i++)
        status = twi_expect_rank(c, i, i == 1 ? 1 : 0);
    c->outputs[0] = c->outputs[1] = c->outputs[2] = TW_SHAPE(-1);
    c->outputs[3] = c->inputs[0];
    return status;
}

static tw_status fill_gradient_shape(twi_inference *c)
{
    c->outputs[0] = c->inputs[0];
    c->outputs[1] = TW_SCALAR;
    return twi_expect_rank(c, 0, 1);
}

static tw_status concat_shape(twi_inference *c)
{
    int n = c->num_inputs / 3;
    int64_t entries = 0, rank = -1;
    for (int i = 0; i < n; i++) {
        int64_t own = dim_of(c->inputs[n + i], 1, 0), axes = dim_of(c->inputs[2 * n + i], 1, 0);
        if (entries < 0 || own < 0)
            entries = -1;
        else if (__builtin_add_overflow(entries, own, &entries))
            return twi_fail(c->error, TW_INVALID_ARGUMENT, "more entries than can be counted");
        rank = axes >= 0 ? axes : rank;
    }
    c->outputs[0] = TW_SHAPE(entries, rank);
    c->outputs[1] = TW_SHAPE(entries);
    c->outputs[2] = TW_SHAPE(rank);
    return TW_OK;
}

/* Combinations of features: as many as there are. */
static tw_status cross_shape(twi_inference *c)
{
    bool hashes = twi_attr_bool(c->attrs, "hashed_output", false), text = c->output_types[1] == TW_STRING;
    c->outputs[0] = TW_SHAPE(-1, 2);
    c->outputs[1] = TW_SHAPE(-1);
    c->outputs[2] = TW_SHAPE(2);
    if (hashes == text)
        return FAIL(c, "hashed combinations are int64, others are strings");
    return TW_OK;
}

/* The last input is what stands between the parts of a combination. */
static tw_status separated_cross_shape(twi_inference *c)
{
    tw_status status = cross_shape(c);
    return status == TW_OK ? twi_expect_rank(c, c->num_inputs - 1, 0) : status;
}

/* ---- gradients ----------------------------------------------------------------------------------------------- */

#define X(i) tw_node_input(g->node, i)

static void fill_gradient(twi_gradient *g)
{
    if (!g->dy[1].node)
        return;
    tw_node *node = tw_add_node(g->graph, "SparseFillEmptyRowsGrad", NULL,
                                TWI_INPUTS(tw_node_output(g->node, 3), g->dy[1]), TWI_NO_ATTRS); /* ragged ones, too */
    g->dx[1] = tw_node_output(node, 0);
    g->dx[3] = tw_node_output(node, 1);
}

static void slice_gradient(twi_gradient *g)
{
    if (g->dy[1].node)
        g->dx[1] = twi_build(g->graph, "SparseSliceGrad",
                             TWI_INPUTS(g->dy[1], X(0), X(3), tw_node_output(g->node, 0)), TWI_NO_ATTRS);
}

/* Each value's gradient goes to where it was before. */
static void reorder_gradient(twi_gradient *g)
{
    tw_graph *graph = g->graph;
    tw_output places = tw_range(graph, twi_constant_int(graph, 0), tw_size_of(graph, X(1)), twi_constant_int(graph, 1));
    tw_node *sorted = tw_add_node(graph, "SparseReorder", NULL, TWI_INPUTS(X(0), places, X(2)), TWI_NO_ATTRS);
    tw_output back = twi_build(graph, "InvertPermutation", TWI_INPUTS(tw_node_output(sorted, 1)), TWI_NO_ATTRS);
    if (g->dy[1].node)
        g->dx[1] = tw_gather(graph, g->dy[1], back, 0);
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

#define FOUND TWI_HOST_ONLY | TWI_MAKES_SHAPE

const twi_op twi_sparse_ops[] = {
    {"SparseReorder", "input_indices:int64, input_values:T, input_shape:int64", "output_indices:int64, output_values:T",
     "T:type", reorder_shape, reorder_gradient, TWI_HOST_ONLY},
    {"SparseReshape", "input_indices:int64, input_shape:int64, new_shape:int64",
     "output_indices:int64, output_shape:int64", "", reshape_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {"SparseSlice", "indices:int64, values:T, shape:int64, start:int64, size:int64",
     "output_indices:int64, output_values:T, output_shape:int64", "T:type", slice_shape, slice_gradient, FOUND},
    {"SparseSliceGrad", "backprop_val_grad:T, input_indices:int64, input_start:int64, output_indices:int64",
     "val_grad:T", "T:{" TWI_REALS "}", slice_gradient_shape, NULL, TWI_HOST_ONLY},
    {"SparseFillEmptyRows", "indices:int64, values:T, dense_shape:int64, default_value:T",
     "output_indices:int64, output_values:T, empty_row_indicator:bool, reverse_index_map:int64", "T:type", fill_shape,
     fill_gradient, FOUND},
    {"SparseFillEmptyRowsGrad", "reverse_index_map:int64, grad_values:T", "d_values:T, d_default_value:T",
     "T:{float,double}", fill_gradient_shape, NULL, TWI_HOST_ONLY},
    {"RaggedFillEmptyRows", "value_rowids:int64, values:T, nrows:int64, default_value:T",
     "output_value_rowids:int64, output_values:T, empty_row_indicator:bool, reverse_index_map:int64", "T:type",
     fill_ragged_shape, fill_gradient, FOUND},
    {"RaggedFillEmptyRowsGrad", "reverse_index_map:int64, grad_values:T", "d_values:T, d_default_value:T",
     "T:{float,double}", fill_gradient_shape, NULL, TWI_HOST_ONLY},
    {"SparseConcat", "indices:N*int64, values:N*T, shapes:N*int64",
     "output_indices:int64, output_values:T, output_shape:int64", "concat_dim:int; N:int>=2; T:type", concat_shape,
     NULL, TWI_HOST_ONLY},
    {"SparseCross", "indices:N*int64, values:sparse_types, shapes:N*int64, dense_inputs:dense_types",
     "output_indices:int64, output_values:out_type, output_shape:int64",
     "N:int>=0; hashed_output:bool; num_buckets:int; hash_key:int; sparse_types:types; dense_types:types; "
     "out_type:{int64,string}; internal_type:{int64,string}",
     cross_shape, twi_not_differentiable, FOUND},
    {"SparseCrossV2", "indices:N*int64, values:sparse_types, shapes:N*int64, dense_inputs:dense_types, sep:string",
     "output_indices:int64, output_values:string, output_shape:int64",
     "N:int>=0; sparse_types:types; dense_types:types", separated_cross_shape, twi_not_differentiable, FOUND},
    {0},
};
