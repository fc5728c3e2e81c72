/* segment.c - rows of one segment reduced to one row: by sorted ids, by ids in any order, and of rows that indices
 * pick. SegmentSum and UnsortedSegmentSum are in array.c, for old times' sake. */
#include "ops/rules.h"
#include "ops/types.h"

/* ---- shape rules ------------------------------------------------------------------------------------------- */

/* Rows of `data`, as many as segments: the number of input 3, or one more than the last id. */
static tw_status sparse_segment_shape(twi_inference *c)
{
    tw_shape data = c->inputs[0], indices = c->inputs[1], ids = c->inputs[2];
    const tw_tensor *value = c->input_values[2];
    int64_t segments = -1;
    tw_status status = twi_expect_rank_at_least(c, 0, 1);
    for (int i = 1; i <= 2 && status == TW_OK; i++)
        status = twi_expect_rank(c, i, 1);
    if (status != TW_OK || data.rank < 0)
        return status;
    if (!tw_shape_compatible(indices, ids))
        return TWI_REFUSE(c, "there are not as many segment ids as indices");
    if (c->num_inputs > 3) {
        if (twi_number_of(c, 3, &segments) && segments < 0)
            return TWI_REFUSE(c, "%lld segments", (long long)segments);
    } else if (value) {
        segments = value->elements ? twi_tensor_int(value, value->elements - 1) + 1 : 0;
        if (segments < 0)
            return TWI_REFUSE(c, "the last segment id is %lld", (long long)segments - 1);
    }
    c->outputs[0] = data;
    c->outputs[0].dims[0] = segments;
    return TW_OK;
}

static tw_status sparse_segment_grad_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank_at_least(c, 0, 1);
    int64_t rows = -1;
    for (int i = 1; i <= 3 && status == TW_OK; i++)
        status = twi_expect_rank(c, i, i < 3 ? 1 : 0);
    if (status != TW_OK || c->inputs[0].rank < 0)
        return status;
    if (!tw_shape_compatible(c->inputs[1], c->inputs[2]))
        return TWI_REFUSE(c, "there are not as many segment ids as indices");
    if (twi_number_of(c, 3, &rows) && rows < 0)
        return TWI_REFUSE(c, "%lld rows", (long long)rows);
    c->outputs[0] = c->inputs[0];
    c->outputs[0].dims[0] = rows;
    return TW_OK;
}

/* The same of the rows that are picked at all, and which they are. */
static tw_status sparse_segment_grad_v2_shape(twi_inference *c)
{
    tw_status status = sparse_segment_grad_shape(c);
    if (c->outputs[0].rank > 0)
        c->outputs[0].dims[0] = -1;
    c->outputs[1] = TW_SHAPE(-1);
    return status;
}

/* arr of any shape, size, and weights like arr or none at all. */
static tw_status bincount_shape(twi_inference *c)
{
    int64_t size = -1;
    tw_status status = twi_expect_rank(c, 1, 0);
    if (status == TW_OK && twi_number_of(c, 1, &size) && size < 0)
        status = TWI_REFUSE(c, "size %lld is negative", (long long)size);
    if (status == TW_OK && !tw_shape_compatible(c->inputs[0], c->inputs[2]) && tw_shape_elements(c->inputs[2]) > 0)
        status = TWI_REFUSE(c, "weights have another shape than what is counted");
    c->outputs[0] = TW_SHAPE(size);
    return status;
}

/* The same of a list, or of each row of a matrix. */
static tw_status dense_bincount_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0];
    if (in.rank > 2)
        return TWI_REFUSE(c, "what is counted has %d axes, expected 2 at most", in.rank);
    tw_status status = bincount_shape(c);
    if (status == TW_OK && in.rank == 2)
        c->outputs[0] = TW_SHAPE(in.dims[0], c->outputs[0].dims[0]);
    else if (status == TW_OK && in.rank < 0)
        c->outputs[0] = TW_UNKNOWN_SHAPE;
    return status;
}

/* splits [rows + 1], values, size, and weights like values or none: counts of each row */
static tw_status ragged_bincount_shape(twi_inference *c)
{
    int64_t size = -1, splits = c->inputs[0].rank == 1 ? c->inputs[0].dims[0] : -1;
    tw_status status = twi_expect_rank(c, 0, 1);
    if (status == TW_OK)
        status = twi_expect_rank(c, 2, 0);
    if (status == TW_OK && splits == 0)
        status = TWI_REFUSE(c, "splits are empty, expected one number more than there are rows");
    if (status == TW_OK && twi_number_of(c, 2, &size) && size < 0)
        status = TWI_REFUSE(c, "size %lld is negative", (long long)size);
    if (status == TW_OK && !tw_shape_compatible(c->inputs[1], c->inputs[3]) && tw_shape_elements(c->inputs[3]) > 0)
        status = TWI_REFUSE(c, "weights have another shape than what is counted");
    c->outputs[0] = TW_SHAPE(splits < 0 ? -1 : splits - 1, size);
    return status;
}

/* indices, values, dense_shape, size, weights like values or none: counts of all, or of each row */
static tw_status sparse_bincount_shape(twi_inference *c)
{
    int64_t size = -1, axes = c->inputs[0].rank == 2 ? c->inputs[0].dims[1] : -1;
    tw_status status = twi_expect_rank(c, 0, 2);
    for (int i = 1; i < 4 && status == TW_OK; i++)
        status = twi_expect_rank(c, i, i == 3 ? 0 : 1);
    if (status == TW_OK && (axes == 0 || axes > 2))
        status = TWI_REFUSE(c, "what is counted has %lld axes, expected 1 or 2", (long long)axes);
    if (status == TW_OK && twi_number_of(c, 3, &size) && size < 0)
        status = TWI_REFUSE(c, "size %lld is negative", (long long)size);
    if (status == TW_OK && !tw_shape_compatible(c->inputs[1], c->inputs[4]) && tw_shape_elements(c->inputs[4]) > 0)
        status = TWI_REFUSE(c, "weights have another shape than what is counted");
    if (status != TW_OK || axes < 0)
        return status;
    const tw_tensor *dense = axes == 2 ? twi_ask_value(c, 2) : NULL;
    if (dense && (dense->elements != 2 || twi_tensor_int(dense, 0) < 0))
        return TWI_REFUSE(c, "dense_shape says of no number of rows");
    c->outputs[0] = axes == 1 ? TW_SHAPE(size) : TW_SHAPE(dense ? twi_tensor_int(dense, 0) : -1, size);
    return TW_OK;
}

/* Counts as a sparse tensor of `axes`. */
static tw_status counts_shape(twi_inference *c, int64_t axes)
{
    c->outputs[0] = TW_SHAPE(-1, axes);
    c->outputs[1] = TW_SHAPE(-1);
    c->outputs[2] = TW_SHAPE(axes);
    return TW_OK;
}

static tw_status dense_counts_shape(twi_inference *c)
{
    int rank = c->inputs[0].rank;
    if (rank == 0 || rank > 2)
        return TWI_REFUSE(c, "values have rank %d, expected 1 or 2", rank);
    return counts_shape(c, rank);
}

static tw_status sparse_counts_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 2);
    int64_t axes = c->inputs[0].rank == 2 ? c->inputs[0].dims[1] : -1;
    for (int i = 1; i < 3 && status == TW_OK; i++)
        status = twi_expect_rank(c, i, 1);
    return status == TW_OK ? counts_shape(c, axes > 2 ? 2 : axes) : status;
}

static tw_status ragged_counts_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 1);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 1);
    return status == TW_OK ? counts_shape(c, 2) : status;
}

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

static bool is_sorted(const twi_gradient *g)
{
    return tw_node_num_inputs(g->node) == 2;
}

/* x reduced by the node's segments. */
static tw_output reduced(twi_gradient *g, const char *sorted, const char *unsorted, tw_output x)
{
    if (is_sorted(g))
        return twi_binary(g, sorted, x, X(1));
    return twi_build(G, unsorted, TWI_INPUTS(x, X(1), X(2)), TWI_NO_ATTRS);
}

static tw_output sums(twi_gradient *g, tw_output x)
{
    return reduced(g, "SegmentSum", "UnsortedSegmentSum", x);
}

/* Rows of x where the ids point; those of negative ids are rubbish. */
static tw_output rows_at_ids(twi_gradient *g, tw_output x)
{
    return tw_gather(G, x, is_sorted(g) ? X(1) : tw_maximum(G, X(1), twi_number_like(g, X(1), 0)), 0);
}

/* `rows`, or zeros where an id is negative. */
static tw_output only_counted(twi_gradient *g, tw_output rows)
{
    tw_shape data = tw_output_shape(X(0)), ids = tw_output_shape(X(1));
    if (is_sorted(g))
        return rows;
    if (data.rank < 0 || ids.rank < 0) {
        twi_graph_fail(G, TW_UNIMPLEMENTED, "the gradient of %s '%s' needs known ranks", g->node->op->name,
                       g->node->name);
        return rows;
    }
    tw_output counted = tw_greater_equal(G, X(1), twi_number_like(g, X(1), 0));
    for (int i = ids.rank; i < data.rank; i++)
        counted = tw_expand_dims(G, counted, -1);
    return tw_select(G, counted, rows, tw_zeros_like(G, rows));
}

static void mean_gradient(twi_gradient *g)
{
    g->dx[0] = tw_gather(G, tw_div(G, DY(0), sums(g, tw_ones_like(G, X(0)))), X(1), 0);
}

/* Who is the extreme of its segment shares the gradient with its equals. */
static void extremum_gradient(twi_gradient *g)
{
    tw_output is_extreme = only_counted(g, tw_equal(G, X(0), rows_at_ids(g, Y(0))));
    tw_output count = sums(g, tw_cast(G, is_extreme, tw_output_dtype(DY(0))));
    tw_output shares = rows_at_ids(g, tw_div(G, DY(0), count));
    g->dx[0] = tw_select(G, is_extreme, shares, tw_zeros_like(G, shares));
}

/* The product of the others: of one zero in a segment the product without it, of more nothing. */
static void product_gradient(twi_gradient *g)
{
    tw_output is_zero = tw_equal(G, X(0), twi_number_like(g, X(0), 0)), zeros = tw_zeros_like(G, DY(0));
    tw_output num_zeros = sums(g, tw_cast(G, is_zero, TW_INT32));
    tw_output dy = tw_select(G, tw_greater(G, num_zeros, twi_number_like(g, num_zeros, 1)), zeros, DY(0));
    tw_output rest = tw_select(G, is_zero, tw_ones_like(G, X(0)), X(0));
    tw_output product = reduced(g, "SegmentProd", "UnsortedSegmentProd", rest);
    tw_output others = tw_select(G, is_zero, rows_at_ids(g, product), tw_div(G, rows_at_ids(g, Y(0)), X(0)));
    g->dx[0] = tw_mul(G, only_counted(g, rows_at_ids(g, dy)), others);
}

/* How many rows the data have, as an int32. */
static tw_output num_rows(twi_gradient *g)
{
    tw_shape data = tw_output_shape(X(0));
    if (data.rank > 0 && data.dims[0] >= 0)
        return twi_constant_int(G, data.dims[0]);
    return tw_strided_slice(
        G, tw_shape_of(G, X(0)),
        (tw_strided_slice_options){.begin = TW_SHAPE(0), .end = TW_SHAPE(1), .shrink_axis_mask = 1});
}

static void sparse_sum_gradient(twi_gradient *g)
{
    tw_output rows = tw_gather(G, DY(0), X(2), 0);
    g->dx[0] = twi_build(G, "UnsortedSegmentSum", TWI_INPUTS(rows, X(1), num_rows(g)), TWI_NO_ATTRS);
}

static void sparse_mean_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build(G, "SparseSegmentMeanGrad", TWI_INPUTS(DY(0), X(1), X(2), num_rows(g)), TWI_NO_ATTRS);
}

static void sparse_sqrt_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build(G, "SparseSegmentSqrtNGrad", TWI_INPUTS(DY(0), X(1), X(2), num_rows(g)), TWI_NO_ATTRS);
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define NUMBERS "{" TWI_REALS "}"
#define FLOATS "{bfloat16,half,float,double}"
#define INDEX "{int32,int64}"
#define ADDED "{" TWI_NUMBERS "}"
#define SEGMENT(name, types, gradient)                                                                                 \
    {name, "data:T, segment_ids:Tindices", "output:T", "T:" types "; Tindices:" INDEX, twi_segment_shape, gradient,    \
     TWI_MAKES_SHAPE}
#define UNSORTED(name, gradient)                                                                                       \
    {                                                                                                                  \
        name, "data:T, segment_ids:Tindices, num_segments:Tnumsegments", "output:T",                                   \
            "T:" NUMBERS "; Tindices:" INDEX "; Tnumsegments:" INDEX "=int32", twi_unsorted_segment_shape, gradient    \
    }
#define PICKED "Tidx:" INDEX "=int32; Tsegmentids:" INDEX "=int32"
#define FORWARD PICKED "; sparse_gradient:bool=false"
#define SPARSE(name, types, gradient)                                                                                  \
    {name,                                                                                                             \
     "data:T, indices:Tidx, segment_ids:Tsegmentids",                                                                  \
     "output:T",                                                                                                       \
     "T:" types "; " FORWARD,                                                                                           \
     sparse_segment_shape,                                                                                             \
     gradient,                                                                                                         \
     TWI_HOST_ONLY | TWI_MAKES_SHAPE},                                                                                 \
    {                                                                                                                  \
        name "WithNumSegments", "data:T, indices:Tidx, segment_ids:Tsegmentids, num_segments:Tnumsegments",            \
            "output:T", "T:" types "; " FORWARD "; Tnumsegments:" INDEX "=int32", sparse_segment_shape, gradient,       \
            TWI_HOST_ONLY                                                                                              \
    }
#define SPARSE_GRAD(name)                                                                                              \
    {                                                                                                                  \
        name, "grad:T, indices:Tidx, segment_ids:Tsegmentids, output_dim0:int32", "output:T", "T:" FLOATS "; " PICKED, \
            sparse_segment_grad_shape, NULL, TWI_HOST_ONLY                                                             \
    }
#define SPARSE_GRAD_V2(name)                                                                                           \
    {                                                                                                                  \
        name, "grad:T, indices:Tidx, segment_ids:Tsegmentids, dense_output_dim0:int32",                                \
            "output:T, sorted_unique_indices:Tidx", "T:" FLOATS "; " PICKED, sparse_segment_grad_v2_shape, NULL,       \
            TWI_HOST_ONLY | TWI_MAKES_SHAPE                                                                            \
    }

#define COUNTS                                                                                                         \
    "output_indices:int64, output_values:output_type, output_dense_shape:int64",                                       \
        "T:{int32,int64}; minlength:int>=-1=-1; maxlength:int>=-1=-1; binary_output:bool; "                            \
        "output_type:{int32,int64,float,double}"

const twi_op twi_segment_ops[] = {
    SEGMENT("SegmentMean", ADDED, mean_gradient),
    SEGMENT("SegmentMax", NUMBERS, extremum_gradient),
    SEGMENT("SegmentMin", NUMBERS, extremum_gradient),
    SEGMENT("SegmentProd", NUMBERS, product_gradient),
    UNSORTED("UnsortedSegmentMax", extremum_gradient),
    UNSORTED("UnsortedSegmentMin", extremum_gradient),
    UNSORTED("UnsortedSegmentProd", product_gradient),
    {"UnsortedSegmentJoin", "inputs:string, segment_ids:Tindices, num_segments:Tnumsegments", "output:string",
     "separator:string=; Tindices:" INDEX "; Tnumsegments:" INDEX "=int32", twi_unsorted_segment_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    SPARSE("SparseSegmentSum", NUMBERS, sparse_sum_gradient),
    SPARSE("SparseSegmentMean", FLOATS, sparse_mean_gradient),
    SPARSE("SparseSegmentSqrtN", FLOATS, sparse_sqrt_gradient),
    SPARSE_GRAD("SparseSegmentSumGrad"),
    SPARSE_GRAD("SparseSegmentMeanGrad"),
    SPARSE_GRAD("SparseSegmentSqrtNGrad"),
    SPARSE_GRAD_V2("SparseSegmentSumGradV2"),
    SPARSE_GRAD_V2("SparseSegmentMeanGradV2"),
    SPARSE_GRAD_V2("SparseSegmentSqrtNGradV2"),
    {"Bincount", "arr:int32, size:int32, weights:T", "bins:T", "T:{int32,int64,float,double}", bincount_shape,
     twi_not_differentiable},
    {"DenseBincount", "input:Tidx, size:Tidx, weights:T", "output:T",
     "Tidx:{int32,int64}; T:{int32,int64,float,double}; binary_output:bool=false", dense_bincount_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"RaggedBincount", "splits:int64, values:Tidx, size:Tidx, weights:T", "output:T",
     "Tidx:{int32,int64}; T:{int32,int64,float,double}; binary_output:bool=false", ragged_bincount_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"SparseBincount", "indices:int64, values:Tidx, dense_shape:int64, size:Tidx, weights:T", "output:T",
     "Tidx:{int32,int64}; T:{int32,int64,float,double}; binary_output:bool=false", sparse_bincount_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"DenseCountSparseOutput", "values:T, weights:output_type", COUNTS, dense_counts_shape, twi_not_differentiable,
     TWI_HOST_ONLY | TWI_MAKES_SHAPE},
    {"SparseCountSparseOutput", "indices:int64, values:T, dense_shape:int64, weights:output_type", COUNTS,
     sparse_counts_shape, twi_not_differentiable, TWI_HOST_ONLY | TWI_MAKES_SHAPE},
    {"RaggedCountSparseOutput", "splits:int64, values:T, weights:output_type", COUNTS, ragged_counts_shape,
     twi_not_differentiable, TWI_HOST_ONLY | TWI_MAKES_SHAPE},
    {0},
};
