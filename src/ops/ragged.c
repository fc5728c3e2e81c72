/* ragged.c - rows of different length: values that lie end to end, and for each axis where its rows begin ("splits",
 * one more number than rows). Made of numbers, gathered, and turned into dense and sparse tensors. */
#include "ops/rules.h"

static int ragged_rank(const twi_attrs *attrs, const char *name)
{
    return (int)twi_attr_int(attrs, name, 0);
}

/* ---- shape rules ------------------------------------------------------------------------------------------------- */

static tw_status expect_splits(twi_inference *c, int first, int count)
{
    tw_status status = TW_OK;
    for (int i = 0; i < count && status == TW_OK; i++)
        status = twi_expect_rank(c, first + i, 1);
    return status;
}

/* starts, limits, deltas: scalars, or vectors of one length. */
static tw_status range_shape(twi_inference *c)
{
    int64_t rows = -1;
    bool all_scalars = true;
    for (int i = 0; i < 3; i++) {
        if (c->inputs[i].rank > 1)
            return TWI_REFUSE(c, "input %d has rank %d, expected a scalar or a vector", i, c->inputs[i].rank);
        all_scalars = all_scalars && c->inputs[i].rank == 0;
        if (c->inputs[i].rank == 1 && !twi_merge_dims(rows, c->inputs[i].dims[0], &rows))
            return TWI_REFUSE(c, "starts, limits, and deltas must have the same shape");
    }
    rows = all_scalars ? 1 : rows;
    c->outputs[0] = TW_SHAPE(rows < 0 ? -1 : rows + 1);
    c->outputs[1] = TW_SHAPE(-1);
    return TW_OK;
}

/* splits..., values, indices: splits..., values */
static tw_status gather_shape(twi_inference *c)
{
    int in = ragged_rank(c->attrs, "PARAMS_RAGGED_RANK"), out = ragged_rank(c->attrs, "OUTPUT_RAGGED_RANK");
    tw_shape values = c->inputs[in], indices = c->inputs[in + 1];
    tw_status status = expect_splits(c, 0, in);
    if (status == TW_OK)
        status = twi_expect_rank_at_least(c, in, 1);
    if (status == TW_OK && indices.rank >= 0 && out != in + indices.rank - 1)
        return TWI_REFUSE(c, "OUTPUT_RAGGED_RANK is %d, expected %d", out, in + indices.rank - 1);
    for (int i = 0; i < out; i++)
        c->outputs[i] = TW_SHAPE(-1);
    if (values.rank > 0)
        values.dims[0] = -1;
    c->outputs[out] = values;
    return status;
}

/* splits..., values: indices, values, shape */
static tw_status to_sparse_shape(twi_inference *c)
{
    int rank = ragged_rank(c->attrs, "RAGGED_RANK");
    tw_shape values = c->inputs[rank];
    tw_status status = expect_splits(c, 0, rank);
    if (status == TW_OK)
        status = twi_expect_rank_at_least(c, rank, 1);
    c->outputs[0] = TW_SHAPE(-1, values.rank < 0 ? -1 : rank + values.rank);
    c->outputs[1] = TW_SHAPE(-1);
    c->outputs[2] = TW_SHAPE(values.rank < 0 ? -1 : rank + values.rank);
    return status;
}

/* How many partitions are splits or row numbers of an axis of their own; -1: one of another kind. */
static int partitions_of(const twi_attrs *attrs)
{
    const twi_attr *types = twi_attr_find(attrs, "row_partition_types");
    int axes = 0;
    for (int i = 0; i < types->count && axes >= 0; i++) {
        const char *type = types->strings[i].data ? types->strings[i].data : "";
        bool counts = strcmp(type, "FIRST_DIM_SIZE") == 0 && i == 0;
        bool is_axis = strcmp(type, "ROW_SPLITS") == 0 || strcmp(type, "VALUE_ROWIDS") == 0;
        axes = counts || is_axis ? axes + is_axis : -1;
    }
    return axes;
}

/* shape (-1: none is given), values, default, partitions... */
static tw_status to_tensor_shape(twi_inference *c)
{
    tw_shape values = c->inputs[1], out;
    int axes = partitions_of(c->attrs);
    const twi_attr *types = twi_attr_find(c->attrs, "row_partition_types");
    if (axes < 1 || types->count != (int)twi_attr_int(c->attrs, "num_row_partition_tensors", 0))
        return TWI_REFUSE(c, "row_partition_types must name ROW_SPLITS or VALUE_ROWIDS for each partition, and "
                             "FIRST_DIM_SIZE at most first");
    if (values.rank < 0)
        return TW_OK;
    if (values.rank == 0)
        return TWI_REFUSE(c, "values must have rows, got a scalar");
    if (axes + values.rank > TW_MAX_RANK)
        return TWI_REFUSE(c, "the result has %d axes, expected at most %d", axes + values.rank, TW_MAX_RANK);
    out = twi_unknown_of_rank(axes + values.rank);
    for (int i = 1; i < values.rank; i++)
        out.dims[axes + i] = values.dims[i];
    const tw_tensor *given = c->input_values[0];
    if (given && given->shape.rank == 1) {
        if (given->elements != out.rank)
            return TWI_REFUSE(c, "shape has %lld numbers, expected %d", (long long)given->elements, out.rank);
        for (int i = 0; i <= axes; i++)
            out.dims[i] = twi_tensor_int(given, i) < 0 ? -1 : twi_tensor_int(given, i);
    }
    c->outputs[0] = out;
    return TW_OK;
}

/* splits..., values: a ragged tensor as one value, or its rows as an array of them (tensor/variant.h) */
static tw_status to_variant_shape(twi_inference *c)
{
    int rank = ragged_rank(c->attrs, "RAGGED_RANK");
    tw_status status = expect_splits(c, 0, rank);
    bool rows = twi_attr_bool(c->attrs, "batched_input", false);
    if (status == TW_OK && (rows || rank > 0))
        status = twi_expect_rank_at_least(c, rank, 1);
    if (status != TW_OK || c->output_types[0] != TW_STRING)
        return status;
    int64_t first = c->inputs[0].rank > 0 ? c->inputs[0].dims[0] : -1;
    if (rows) /* for each the texts of its splits and values */
        c->outputs[0] = TW_SHAPE(rank && first > 0 ? first - 1 : rank ? -1 : first, rank ? rank : 1);
    else
        c->outputs[0] = TW_SHAPE(rank + 1);
    return TW_OK;
}

static tw_status from_variant_shape(twi_inference *c)
{
    int in = ragged_rank(c->attrs, "input_ragged_rank"), out = ragged_rank(c->attrs, "output_ragged_rank");
    if (in >= 0 && out > 0 && (out < in || out > in + 1))
        return TWI_REFUSE(c, "output_ragged_rank is %d, expected that of the input, %d, or one more", out, in);
    for (int i = 0; i < out; i++)
        c->outputs[i] = TW_SHAPE(-1);
    return TW_OK;
}

/* variants, splits, shape of the values */
static tw_status to_variant_gradient_shape(twi_inference *c)
{
    c->outputs[0] = twi_shape_of_value(c->input_values[2]);
    return TW_OK;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static void to_sparse_gradient(twi_gradient *g)
{
    int rank = ragged_rank(&g->node->attrs, "RAGGED_RANK");
    if (DY(1).node)
        g->dx[rank] = tw_reshape_to(G, DY(1), twi_shape_tensor(G, X(rank)));
}

/* Rows of values that were taken: from where each index' row begins to where it ends. */
static void gather_gradient(twi_gradient *g)
{
    int in = ragged_rank(&g->node->attrs, "PARAMS_RAGGED_RANK");
    int out = ragged_rank(&g->node->attrs, "OUTPUT_RAGGED_RANK");
    tw_output bounds = X(0), flat = tw_reshape(G, X(in + 1), TW_SHAPE(-1));
    if (!DY(out).node)
        return;
    for (int i = 1; i < in; i++)
        bounds = tw_gather(G, X(i), bounds, 0);
    tw_output next = tw_add(G, flat, twi_number_like(g, flat, 1));
    tw_output begin = tw_gather(G, bounds, flat, 0), end = tw_gather(G, bounds, next, 0);
    tw_node *rows = tw_add_node(G, "RaggedRange", NULL, TWI_INPUTS(begin, end, twi_number_like(g, begin, 1)),
                                TWI_ATTRS(tw_attr_type("Tsplits", tw_output_dtype(begin))));
    tw_strided_slice_options first = {TW_SHAPE(0), TW_SHAPE(1), .shrink_axis_mask = 1};
    tw_output count = tw_strided_slice(G, twi_shape_tensor(G, X(in)), first);
    if (rows)
        g->dx[in] =
            twi_build(G, "UnsortedSegmentSum", TWI_INPUTS(DY(out), tw_node_output(rows, 1), count), TWI_NO_ATTRS);
}

/* The same tensor made of the numbers of values says from which each element came: -1, from none. */
static tw_output numbers_of(twi_gradient *g, int axes, tw_output count)
{
    tw_attr attrs[TWI_MOST_LIKE];
    int n = twi_attrs_like(g->node, "T", attrs), inputs = tw_node_num_inputs(g->node);
    tw_output *in = twi_alloc_array((size_t)inputs, sizeof *in), shape = twi_shape_tensor(G, Y(0)), numbers = {0};
    if (!in) {
        twi_graph_fail(G, TW_RESOURCE_EXHAUSTED, "out of memory while differentiating");
        return numbers;
    }
    for (int i = 3; i < inputs; i++)
        in[i] = X(i);
    in[0] = tw_strided_slice(G, shape, (tw_strided_slice_options){TW_SHAPE(0), TW_SHAPE(axes + 1)});
    in[1] = tw_range(G, twi_constant_int(G, 0), count, twi_constant_int(G, 1));
    in[2] = twi_constant_int(G, -1);
    for (int i = 0; i < n; i++)
        if (strcmp(attrs[i].name, "Tshape") == 0)
            attrs[i] = tw_attr_type("Tshape", TW_INT32);
    numbers = twi_build(G, "RaggedTensorToTensor", in, inputs, attrs, n);
    twi_free(in);
    return numbers;
}

static void to_tensor_gradient(twi_gradient *g)
{
    tw_strided_slice_options first = {TW_SHAPE(0), TW_SHAPE(1), .shrink_axis_mask = 1};
    tw_output of_values = twi_shape_tensor(G, X(1)), count = tw_strided_slice(G, of_values, first);
    tw_output numbers = tw_reshape(G, numbers_of(g, partitions_of(&g->node->attrs), count), TW_SHAPE(-1));
    tw_output rows =
        tw_reshape_to(G, DY(0), tw_pack(G, (tw_output[]){tw_size_of(G, numbers), twi_constant_int(G, -1)}, 2, 0));
    tw_output sums = twi_build(G, "UnsortedSegmentSum", TWI_INPUTS(rows, numbers, count), TWI_NO_ATTRS);
    g->dx[1] = tw_reshape_to(G, sums, of_values);
    tw_output is_default = tw_expand_dims(G, tw_less(G, numbers, twi_constant_int(G, 0)), -1);
    tw_output filled = tw_mul(G, rows, tw_cast(G, is_default, tw_output_dtype(rows)));
    g->dx[2] = twi_unbroadcast(G, tw_reshape_to(G, filled, twi_shape_tensor(G, DY(0))), X(2), Y(0));
}

static void to_variant_gradient(twi_gradient *g)
{
    int rank = ragged_rank(&g->node->attrs, "RAGGED_RANK");
    tw_output splits = rank ? X(0) : twi_constant_int(G, 0);
    g->dx[rank] = twi_build(G, "RaggedTensorToVariantGradient",
                            TWI_INPUTS(DY(0), splits, twi_shape_tensor(G, X(rank))),
                            TWI_ATTRS(tw_attr_type("Tvalues", tw_output_dtype(X(rank)))));
}

/* Whether it is one ragged tensor that was read: who says nothing of its rank takes it from a list. */
static bool reads_one(const tw_node *node)
{
    int in = ragged_rank(&node->attrs, "input_ragged_rank"), out = ragged_rank(&node->attrs, "output_ragged_rank");
    const char *from = node->inputs[0].node->op->name;
    return in >= 0 ? in == out : out == 0 || strcmp(from, "TensorListGetItem") == 0;
}

static void from_variant_gradient(twi_gradient *g)
{
    int rank = ragged_rank(&g->node->attrs, "output_ragged_rank");
    tw_output *in = twi_alloc_array((size_t)rank + 1, sizeof *in);
    if (!in) {
        twi_graph_fail(G, TW_RESOURCE_EXHAUSTED, "out of memory while differentiating");
        return;
    }
    for (int i = 0; i < rank; i++)
        in[i] = Y(i);
    in[rank] = DY(rank);
    if (DY(rank).node)
        g->dx[0] = twi_build(
            G, "RaggedTensorToVariant", in, rank + 1,
            TWI_ATTRS(tw_attr_int("RAGGED_RANK", rank), tw_attr_bool("batched_input", !reads_one(g->node))));
    twi_free(in);
}

/* ---- combinations -------------------------------------------------------------------------------------------- */

/* How many rows an input says that there are: it has `more` elements beside. */
static tw_status take_rows(twi_inference *c, int i, int rank, int64_t more, int64_t *rows)
{
    tw_status status = twi_expect_rank(c, i, rank);
    int64_t dim = c->inputs[i].rank == rank ? c->inputs[i].dims[0] : -1, told = dim < 0 ? -1 : dim - more;
    if (status == TW_OK && dim >= 0 && dim < more)
        return TWI_REFUSE(c, "input %d has no elements, expected one at least", i);
    if (status == TW_OK && !twi_merge_dims(*rows, told, rows))
        return TWI_REFUSE(c, "input %d has %lld rows, expected %lld", i, (long long)told, (long long)*rows);
    return status;
}

/* Whether these are int64 or strings, which is all that is combined. */
static tw_status check_combined(twi_inference *c, int first, int count)
{
    for (int i = first; i < first + count; i++)
        if (c->input_types[i] != TW_INT64 && c->input_types[i] != TW_STRING)
            return TWI_REFUSE(c, "input %d is %s, expected int64 or string", i, tw_dtype_name(c->input_types[i]));
    return TW_OK;
}

/* Values and row splits of ragged columns; indices, values and shapes of sparse ones; dense matrices: values and row
 * splits. input_order has a letter for each column. */
static tw_status cross_shape(twi_inference *c)
{
    static const char letters[] = "RSD";
    int counts[3], told[3] = {0};
    int64_t rows = -1;
    tw_status status;
    twi_attr_ints(c->attrs, "ragged_values_types", &counts[0]);
    twi_attr_ints(c->attrs, "dense_types", &counts[2]);
    counts[1] = (int)twi_attr_int(c->attrs, "Nsparse", 0);
    int splits = counts[0], sparse = 2 * splits, dense = sparse + 3 * counts[1];
    if (c->num_inputs != dense + counts[2])
        return TWI_REFUSE(c, "ragged or sparse columns whose values and places are not of the same number");
    for (const char *order = twi_attr_string(c->attrs, "input_order", ""); *order; order++) {
        const char *kind = strchr(letters, *order);
        if (!kind)
            return TWI_REFUSE(c, "input_order has '%c', expected R, S or D", *order);
        told[kind - letters]++;
    }
    for (int i = 0; i < 3; i++)
        if (told[i] != counts[i])
            return TWI_REFUSE(c, "input_order has %d times '%c', of which there are %d", told[i], letters[i],
                              counts[i]);
    if (twi_attr_bool(c->attrs, "hashed_output", false) != (c->output_types[0] == TW_INT64))
        return TWI_REFUSE(c, "hashed combinations are int64, others are strings");
    TWI_TRY(check_combined(c, 0, splits));
    TWI_TRY(check_combined(c, sparse + counts[1], counts[1]));
    TWI_TRY(check_combined(c, dense, counts[2]));
    for (int i = 0; i < counts[0]; i++) {
        TWI_TRY(twi_expect_rank(c, i, 1));
        TWI_TRY(take_rows(c, splits + i, 1, 1, &rows));
        if (c->input_types[splits + i] != TW_INT32 && c->input_types[splits + i] != TW_INT64)
            return TWI_REFUSE(c, "input %d is %s, expected int32 or int64", splits + i,
                              tw_dtype_name(c->input_types[splits + i]));
    }
    for (int i = 0; i < counts[2]; i++)
        TWI_TRY(take_rows(c, dense + i, 2, 0, &rows));
    c->outputs[0] = TW_SHAPE(-1);
    c->outputs[1] = TW_SHAPE(rows < 0 ? -1 : rows + 1);
done:
    return status;
}

#define FOUND TWI_HOST_ONLY | TWI_MAKES_SHAPE
/* What data sets carry is text, as of sparse tensors (serialize.c); who reads a graph says so (io/import). */
#define ENCODED "TowerEncoded"
#define ENCODES "TowerEncoded:{variant,string}=variant"
#define SPLITS "Tsplits:{int32,int64}=int64"

const twi_op twi_ragged_ops[] = {
    {"RaggedRange", "starts:T, limits:T, deltas:T", "rt_nested_splits:Tsplits, rt_dense_values:T",
     "T:{bfloat16,float,double,int32,int64}=int32; " SPLITS, range_shape, twi_not_differentiable, FOUND},
    {"RaggedGather", "params_nested_splits:PARAMS_RAGGED_RANK*Tsplits, params_dense_values:Tvalues, indices:Tindices",
     "output_nested_splits:OUTPUT_RAGGED_RANK*Tsplits, output_dense_values:Tvalues",
     "Tvalues:type; Tindices:{int32,int64}; " SPLITS "; PARAMS_RAGGED_RANK:int; OUTPUT_RAGGED_RANK:int", gather_shape,
     gather_gradient, FOUND},
    {"RaggedTensorToSparse", "rt_nested_splits:RAGGED_RANK*Tsplits, rt_dense_values:T",
     "sparse_indices:int64, sparse_values:T, sparse_dense_shape:int64", "RAGGED_RANK:int; T:type; " SPLITS,
     to_sparse_shape, to_sparse_gradient, FOUND},
    {"RaggedTensorToTensor",
     "shape:Tshape, values:T, default_value:T, row_partition_tensors:num_row_partition_tensors*Tindex", "result:T",
     "T:type; Tindex:{int32,int64}; Tshape:{int32,int64}; num_row_partition_tensors:int; row_partition_types:strings",
     to_tensor_shape, to_tensor_gradient, FOUND},
    {"RaggedTensorToVariant", "rt_nested_splits:RAGGED_RANK*Tsplits, rt_dense_values:Tvalues",
     "encoded_ragged:" ENCODED, "RAGGED_RANK:int>=0; Tvalues:type; " SPLITS "; batched_input:bool; " ENCODES,
     to_variant_shape, to_variant_gradient, TWI_HOST_ONLY},
    {"RaggedTensorFromVariant", "encoded_ragged:" ENCODED,
     "output_nested_splits:output_ragged_rank*Tsplits, output_dense_values:Tvalues",
     "input_ragged_rank:int; output_ragged_rank:int>=0; Tvalues:type; " SPLITS "; " ENCODES, from_variant_shape,
     from_variant_gradient, FOUND},
    {"RaggedCross",
     "ragged_values:ragged_values_types, ragged_row_splits:ragged_splits_types, sparse_indices:Nsparse*int64, "
     "sparse_values:sparse_values_types, sparse_shape:Nsparse*int64, dense_inputs:dense_types",
     "output_values:out_values_type, output_row_splits:out_row_splits_type",
     "Nsparse:int>=0; input_order:string; hashed_output:bool; num_buckets:int; hash_key:int; "
     "ragged_values_types:types; ragged_splits_types:types; sparse_values_types:types; dense_types:types; "
     "out_values_type:{int64,string}; out_row_splits_type:{int32,int64}",
     cross_shape, twi_not_differentiable, FOUND},
    {"RaggedTensorToVariantGradient", "encoded_ragged_grad:variant, row_splits:Tsplits, dense_values_shape:int32",
     "dense_values_grad:Tvalues", "Tvalues:type; " SPLITS, to_variant_gradient_shape, NULL, FOUND},
    {0},
};
