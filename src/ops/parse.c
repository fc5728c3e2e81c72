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

/* Dense features lie behind the batch's axes; one whose first dimension is open is as long as the longest. */
static tw_status dense_shapes(twi_inference *c, int first, tw_shape batch)
{
    const twi_attr *shapes = twi_attr_find(c->attrs, "dense_shapes");
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

static tw_status parse_shape(twi_inference *c)
{
    int num_sparse = (int)twi_attr_int(c->attrs, "Nsparse", 0);
    tw_status status = twi_expect_rank(c, 0, 1);
    sparse_shapes(c, 0, num_sparse, 2);
    return status == TW_OK ? dense_shapes(c, 3 * num_sparse, c->inputs[0]) : status;
}

static tw_status parse_v2_shape(twi_inference *c)
{
    int num_sparse = (int)twi_attr_int(c->attrs, "num_sparse", 0);
    const twi_attr *ragged = twi_attr_find(c->attrs, "ragged_value_types");
    if (ragged->count)
        return twi_fail(c->error, TW_UNIMPLEMENTED, "ragged features are not supported");
    if (c->inputs[0].rank > 1)
        return twi_expect_rank(c, 0, 1);
    if (c->inputs[0].rank >= 0)
        sparse_shapes(c, 0, num_sparse, c->inputs[0].rank + 1);
    return dense_shapes(c, 3 * num_sparse, c->inputs[0]);
}

static tw_status parse_single_shape(twi_inference *c)
{
    int num_sparse = (int)twi_attr_int(c->attrs, "num_sparse", 0);
    sparse_shapes(c, 0, num_sparse, 1);
    return dense_shapes(c, 3 * num_sparse, TW_SCALAR);
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

const twi_op twi_parse_ops[] = {
    {"ParseExample",
     "serialized:string, names:string, sparse_keys:Nsparse*string, dense_keys:Ndense*string, dense_defaults:Tdense",
     SPARSE("Nsparse"), "Nsparse:int; Ndense:int; sparse_types:types; Tdense:types; dense_shapes:shapes", parse_shape,
     twi_not_differentiable, FOUND},
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
    {"DecodeCSV", "records:string, record_defaults:OUT_TYPE", "output:OUT_TYPE",
     "OUT_TYPE:types; field_delim:string=,; use_quote_delim:bool=true; na_value:string=; select_cols:ints=[]",
     csv_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {"StringSplit", "input:string, delimiter:string", "indices:int64, values:string, shape:int64",
     "skip_empty:bool=true", split_shape, twi_not_differentiable, FOUND},
    {"StringSplitV2", "input:string, sep:string", "indices:int64, values:string, shape:int64", "maxsplit:int=-1",
     split_shape, twi_not_differentiable, FOUND},
    {0},
};
