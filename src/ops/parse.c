/* parse.c - ops that take text and records apart: examples, lines of comma-separated values, words.
 * Never here: what the bytes mean (format/example.h), single numbers in strings. */
#include "graph/graph.h"
#include "ops/build.h"
#include "tensor/tensor.h"

#include <tower/ops.h>

#define FAIL(c, ...) twi_fail((c)->error, TW_INVALID_ARGUMENT, __VA_ARGS__)

/* ---- examples ------------------------------------------------------------------------------------------------ */

/* Outputs of `num_sparse` features, from `first` on: indices, values, shapes; axes: of the batch, and 1. */
static void sparse_shapes(twi_inference *c, int first, int num_sparse, int axes)
{
    for (int i = 0; i < num_sparse; i++) {
        c->outputs[first + i] = TW_SHAPE(-1, axes);
        c->outputs[first + num_sparse + i] = TW_SHAPE(-1);
        c->outputs[first + 2 * num_sparse + i] = TW_SHAPE(axes);
    }
}

/* Attributes that count the same: outputs are numbered by the one and by the other. */
static const char *const as_many[][2] = {
    {"Nsparse", "sparse_types"},
    {"num_sparse", "sparse_types"},
    {"sparse_keys", "sparse_types"},
    {"Ndense", "Tdense"},
    {"dense_keys", "Tdense"},
    {"dense_shapes", "Tdense"},
    {"ragged_split_types", "ragged_value_types"},
    {"Ncontext_sparse", "context_sparse_types"},
    {"context_sparse_keys", "context_sparse_types"},
    {"Ncontext_dense", "Tcontext_dense"},
    {"context_dense_keys", "Tcontext_dense"},
    {"context_dense_shapes", "Tcontext_dense"},
    {"Nfeature_list_sparse", "feature_list_sparse_types"},
    {"feature_list_sparse_keys", "feature_list_sparse_types"},
    {"Nfeature_list_dense", "feature_list_dense_types"},
    {"feature_list_dense_keys", "feature_list_dense_types"},
    {"feature_list_dense_shapes", "feature_list_dense_types"},
};

/* Of those that the op has. */
static tw_status expect_as_many(twi_inference *c)
{
    for (size_t i = 0; i < sizeof as_many / sizeof *as_many; i++) {
        const twi_attr *a = twi_attr_find(c->attrs, as_many[i][0]), *b = twi_attr_find(c->attrs, as_many[i][1]);
        int64_t count = a && a->kind != TW_ATTR_INT ? a->count : a ? a->i : 0;
        if (a && b && count != b->count)
            return FAIL(c, "%s says %lld, %s %d", a->name, (long long)count, b->name, b->count);
    }
    return TW_OK;
}

/* Dense features lie behind the batch's axes; one whose first dimension is open is as long as the longest. */
static tw_status shapes_behind(twi_inference *c, int first, const char *attr, tw_shape batch)
{
    const twi_attr *shapes = twi_attr_find(c->attrs, attr);
    for (int i = 0; i < shapes->count; i++) {
        tw_shape own = shapes->shapes[i], shape = batch;
        if (own.rank < 0 || batch.rank < 0 || shape.rank + own.rank > TW_MAX_RANK)
            return own.rank >= 0 && batch.rank < 0 ? TW_OK
                                                   : FAIL(c, "the shape of dense feature %d has no known rank", i);
        for (int k = 0; k < own.rank; k++)
            shape.dims[shape.rank++] = own.dims[k];
        c->outputs[first + i] = shape;
    }
    return TW_OK;
}

static tw_status dense_shapes(twi_inference *c, int first, tw_shape batch)
{
    return shapes_behind(c, first, "dense_shapes", batch);
}

static tw_status parse_shape(twi_inference *c)
{
    int num_sparse = (int)twi_attr_int(c->attrs, "Nsparse", 0);
    tw_status status = expect_as_many(c);
    if (status == TW_OK)
        status = twi_expect_rank(c, 0, 1);
    if (status != TW_OK)
        return status;
    sparse_shapes(c, 0, num_sparse, 2);
    return dense_shapes(c, 3 * num_sparse, c->inputs[0]);
}

/* Of one example there are none. */
static tw_shape splits_of(tw_shape batch)
{
    return TW_SHAPE(batch.rank == 0 ? 0 : batch.rank == 1 && batch.dims[0] >= 0 ? batch.dims[0] + 1 : -1);
}

static tw_status parse_v2_shape(twi_inference *c)
{
    int num_sparse = (int)twi_attr_int(c->attrs, "num_sparse", 0);
    int num_ragged = twi_attr_find(c->attrs, "ragged_value_types")->count;
    int ragged = 3 * num_sparse + twi_attr_find(c->attrs, "dense_shapes")->count;
    tw_status status = expect_as_many(c);
    if (status != TW_OK)
        return status;
    if (c->inputs[0].rank > 1)
        return twi_expect_rank(c, 0, 1);
    for (int i = 0; i < num_ragged; i++) {
        c->outputs[ragged + i] = TW_SHAPE(-1);
        c->outputs[ragged + num_ragged + i] = splits_of(c->inputs[0]);
    }
    if (c->inputs[0].rank >= 0)
        sparse_shapes(c, 0, num_sparse, c->inputs[0].rank + 1);
    return dense_shapes(c, 3 * num_sparse, c->inputs[0]);
}

static tw_status parse_single_shape(twi_inference *c)
{
    int num_sparse = (int)twi_attr_int(c->attrs, "num_sparse", 0);
    tw_status status = expect_as_many(c);
    if (status != TW_OK)
        return status;
    sparse_shapes(c, 0, num_sparse, 1);
    return dense_shapes(c, 3 * num_sparse, TW_SCALAR);
}

/* ---- sequences ------------------------------------------------------------------------------------------------- */

static tw_status expect_known(twi_inference *c, const char *attr)
{
    const twi_attr *shapes = twi_attr_find(c->attrs, attr);
    for (int i = 0; i < shapes->count; i++)
        if (!tw_shape_is_known(shapes->shapes[i]))
            return FAIL(c, "%s[%d] is not known", attr, i);
    return TW_OK;
}

/* Context and lists; lists have one axis more, the steps. `lengths`: they also have outputs that say how many. */
static tw_status sequence_shapes(twi_inference *c, bool lengths)
{
    tw_shape batch = c->inputs[0], steps = batch;
    int context_sparse = twi_attr_find(c->attrs, "context_sparse_types")->count;
    int context_dense = twi_attr_find(c->attrs, "Tcontext_dense")->count;
    int list_sparse = twi_attr_find(c->attrs, "feature_list_sparse_types")->count;
    int list_dense = twi_attr_find(c->attrs, "feature_list_dense_types")->count;
    int lists = 3 * context_sparse + context_dense, list_values = lists + 3 * list_sparse;
    tw_status status = expect_as_many(c);
    if (status == TW_OK)
        status = expect_known(c, "context_dense_shapes");
    if (status == TW_OK)
        status = expect_known(c, "feature_list_dense_shapes");
    if (status != TW_OK || batch.rank < 0)
        return status;
    if (batch.rank > 1)
        return FAIL(c, "serialized has rank %d, expected at most 1", batch.rank);
    steps.dims[steps.rank++] = -1;
    sparse_shapes(c, 0, context_sparse, batch.rank + 1);
    sparse_shapes(c, lists, list_sparse, batch.rank + 2);
    status = shapes_behind(c, 3 * context_sparse, "context_dense_shapes", batch);
    if (status == TW_OK)
        status = shapes_behind(c, list_values, "feature_list_dense_shapes", steps);
    for (int i = 0; i < list_dense && lengths; i++)
        c->outputs[list_values + list_dense + i] = batch;
    return status;
}

static tw_status sequences_shape(twi_inference *c)
{
    static const char *const ragged[] = {"context_ragged_value_types", "context_ragged_split_types",
                                         "feature_list_ragged_value_types", "feature_list_ragged_split_types"};
    for (size_t i = 0; i < sizeof ragged / sizeof *ragged; i++) {
        const twi_attr *types = twi_attr_find(c->attrs, ragged[i]);
        if (types && types->count)
            return twi_fail(c->error, TW_UNIMPLEMENTED, "ragged features are not supported");
    }
    return sequence_shapes(c, true);
}

static tw_status single_sequence_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 0);
    return status == TW_OK ? sequence_shapes(c, false) : status;
}

/* ---- lines and words ------------------------------------------------------------------------------------------- */

static tw_status csv_shape(twi_inference *c)
{
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = c->inputs[0];
    return TW_OK;
}

static tw_status split_shape(twi_inference *c)
{
    c->outputs[0] = TW_SHAPE(-1, 2);
    c->outputs[1] = TW_SHAPE(-1);
    c->outputs[2] = TW_SHAPE(2);
    tw_status status = twi_expect_rank(c, 0, 1);
    return status == TW_OK ? twi_expect_rank(c, 1, 0) : status;
}

#define VALUES "{float,int64,string}"
#define FOUND TWI_HOST_ONLY | TWI_MAKES_SHAPE
#define SPARSE(n)                                                                                                      \
    "sparse_indices:" n "*int64, sparse_values:sparse_types, sparse_shapes:" n "*int64, dense_values:Tdense"

#define IN_CONTEXT(n)                                                                                                  \
    "context_sparse_indices:" n "*int64, context_sparse_values:context_sparse_types, context_sparse_shapes:" n         \
    "*int64, context_dense_values:Tcontext_dense"
#define IN_LISTS(n)                                                                                                    \
    "feature_list_sparse_indices:" n "*int64, feature_list_sparse_values:feature_list_sparse_types, "                  \
    "feature_list_sparse_shapes:" n "*int64, feature_list_dense_values:feature_list_dense_types"
#define SEQUENCE_TYPES                                                                                                 \
    "context_sparse_types:types=[]; Tcontext_dense:types=[]; feature_list_dense_types:types=[]; "                      \
    "context_dense_shapes:shapes=[]; feature_list_sparse_types:types=[]; feature_list_dense_shapes:shapes=[]"
#define SEQUENCE_COUNTS                                                                                                \
    "Ncontext_sparse:int>=0=0; Ncontext_dense:int>=0=0; Nfeature_list_sparse:int>=0=0; Nfeature_list_dense:int>=0=0; "

const twi_op twi_parse_ops[] = {
    {"ParseExample",
     "serialized:string, names:string, sparse_keys:Nsparse*string, dense_keys:Ndense*string, dense_defaults:Tdense",
     SPARSE("Nsparse"), "Nsparse:int>=0; Ndense:int>=0; sparse_types:types; Tdense:types; dense_shapes:shapes",
     parse_shape, twi_not_differentiable, FOUND},
    {"ParseExampleV2",
     "serialized:string, names:string, sparse_keys:string, dense_keys:string, ragged_keys:string, "
     "dense_defaults:Tdense",
     SPARSE("num_sparse") ", ragged_values:ragged_value_types, ragged_row_splits:ragged_split_types",
     "Tdense:types; num_sparse:int; sparse_types:types; ragged_value_types:types; ragged_split_types:types; "
     "dense_shapes:shapes",
     parse_v2_shape, twi_not_differentiable, FOUND},
    {"ParseSingleExample", "serialized:string, dense_defaults:Tdense", SPARSE("num_sparse"),
     "num_sparse:int; sparse_keys:strings; dense_keys:strings; sparse_types:types; Tdense:types; dense_shapes:shapes",
     parse_single_shape, twi_not_differentiable, FOUND},
    {"ParseSequenceExample", "serialized:string, debug_name:string, context_dense_defaults:Tcontext_dense",
     IN_CONTEXT("Ncontext_sparse") ", " IN_LISTS(
         "Nfeature_list_sparse") ", feature_list_dense_lengths:Nfeature_list_dense*int64",
     "feature_list_dense_missing_assumed_empty:strings; context_sparse_keys:strings; context_dense_keys:strings; "
     "feature_list_sparse_keys:strings; feature_list_dense_keys:strings; " SEQUENCE_COUNTS SEQUENCE_TYPES,
     sequences_shape, twi_not_differentiable, FOUND},
    {"ParseSequenceExampleV2",
     "serialized:string, debug_name:string, context_sparse_keys:string, context_dense_keys:string, "
     "context_ragged_keys:string, feature_list_sparse_keys:string, feature_list_dense_keys:string, "
     "feature_list_ragged_keys:string, feature_list_dense_missing_assumed_empty:bool, "
     "context_dense_defaults:Tcontext_dense",
     IN_CONTEXT(
         "Ncontext_sparse") ", context_ragged_values:context_ragged_value_types, "
                            "context_ragged_row_splits:context_ragged_split_types, " IN_LISTS(
                                "Nfeature_list_sparse") ", feature_list_dense_lengths:Nfeature_list_dense*int64, "
                                                        "feature_list_ragged_values:feature_list_ragged_value_types, "
                                                        "feature_list_ragged_outer_splits:feature_list_ragged_split_"
                                                        "types, "
                                                        "feature_list_ragged_inner_splits:feature_list_ragged_split_"
                                                        "types",
     "Ncontext_sparse:int=0; Nfeature_list_sparse:int=0; Nfeature_list_dense:int=0; "
     "context_ragged_value_types:types=[]; "
     "context_ragged_split_types:types=[]; feature_list_ragged_value_types:types=[]; "
     "feature_list_ragged_split_types:types=[]; " SEQUENCE_TYPES,
     sequences_shape, twi_not_differentiable, FOUND},
    {"ParseSingleSequenceExample",
     "serialized:string, feature_list_dense_missing_assumed_empty:string, context_sparse_keys:Ncontext_sparse*string, "
     "context_dense_keys:Ncontext_dense*string, feature_list_sparse_keys:Nfeature_list_sparse*string, "
     "feature_list_dense_keys:Nfeature_list_dense*string, context_dense_defaults:Tcontext_dense, debug_name:string",
     IN_CONTEXT("Ncontext_sparse") ", " IN_LISTS("Nfeature_list_sparse"), SEQUENCE_COUNTS SEQUENCE_TYPES,
     single_sequence_shape, twi_not_differentiable, FOUND},
    {"DecodeCSV", "records:string, record_defaults:OUT_TYPE", "output:OUT_TYPE",
     "OUT_TYPE:types>=1; field_delim:string=,; use_quote_delim:bool=true; na_value:string=; select_cols:ints=[]",
     csv_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {"StringSplit", "input:string, delimiter:string", "indices:int64, values:string, shape:int64",
     "skip_empty:bool=true", split_shape, twi_not_differentiable, FOUND},
    {"StringSplitV2", "input:string, sep:string", "indices:int64, values:string, shape:int64", "maxsplit:int=-1",
     split_shape, twi_not_differentiable, FOUND},
    {0},
};
