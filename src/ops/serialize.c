/* serialize.c - tensors as texts (TensorProto), and sparse tensors in a form that queues and data sets carry: three
 * texts, or a number under which a map of the session's keeps one. What TensorFlow makes variants of, in data sets, are
 * texts here (io/import). */
#include "ops/rules.h"

/* Of a sparse tensor whose indices are input `first`. */
static tw_status expect_sparse(twi_inference *c, int first)
{
    tw_status status = twi_expect_rank(c, first, 2);
    for (int i = 1; i < 3 && status == TW_OK; i++)
        status = twi_expect_rank(c, first + i, 1);
    return status;
}

static tw_status one_shape(twi_inference *c)
{
    c->outputs[0] = TW_SHAPE(3);
    return expect_sparse(c, 0);
}

static tw_status handle_shape(twi_inference *c)
{
    c->outputs[0] = TW_SCALAR;
    return expect_sparse(c, 0);
}

/* One for each row: how many there are the shape says. */
static tw_status many_shape(twi_inference *c)
{
    c->outputs[0] = TW_SHAPE(-1, 3);
    return expect_sparse(c, 0);
}

static tw_status handles_shape(twi_inference *c)
{
    c->outputs[0] = TW_SHAPE(-1);
    return expect_sparse(c, 0);
}

static tw_status sparse_shape(twi_inference *c)
{
    c->outputs[0] = TW_SHAPE(-1, -1);
    c->outputs[1] = c->outputs[2] = TW_SHAPE(-1);
    return TW_OK;
}

/* From texts [...,3]. */
static tw_status texts_shape(twi_inference *c)
{
    tw_shape texts = c->inputs[0];
    tw_status status = twi_expect_rank_at_least(c, 0, 1);
    if (status == TW_OK && texts.rank > 0 && texts.dims[texts.rank - 1] >= 0 && texts.dims[texts.rank - 1] != 3)
        return TWI_REFUSE(c, "a sparse tensor is 3 texts, not %lld", (long long)texts.dims[texts.rank - 1]);
    return status == TW_OK ? sparse_shape(c) : status;
}

static tw_status rows_of_texts_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 2);
    return status == TW_OK ? texts_shape(c) : status;
}

static tw_status take_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 1);
    return status == TW_OK ? sparse_shape(c) : status;
}

static tw_status parse_shape(twi_inference *c)
{
    return twi_expect_rank(c, 0, 0);
}

#define IN "sparse_indices:int64, sparse_values:T, sparse_shape:int64"
#define OUT "sparse_indices:int64, sparse_values:dtype, sparse_shape:int64"
#define MAP "container:string=; shared_name:string="
#define FOUND TWI_HOST_ONLY | TWI_MAKES_SHAPE
#define STATE TWI_STATEFUL | TWI_HOST_ONLY

const twi_op twi_serialize_ops[] = {
    {"SerializeTensor", "tensor:T", "serialized:string", "T:type", twi_shape_scalar, twi_not_differentiable,
     TWI_HOST_ONLY},
    {"ParseTensor", "serialized:string", "output:out_type", "out_type:type", parse_shape, twi_not_differentiable,
     FOUND},
    {"SerializeSparse", IN, "serialized_sparse:out_type", "T:type; out_type:{string}=string", one_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"SerializeManySparse", IN, "serialized_sparse:out_type", "T:type; out_type:{string}=string", many_shape,
     twi_not_differentiable, FOUND},
    {"DeserializeSparse", "serialized_sparse:Tserialized", OUT, "dtype:type; Tserialized:{string}=string", texts_shape,
     twi_not_differentiable, FOUND},
    {"DeserializeManySparse", "serialized_sparse:string", OUT, "dtype:type", rows_of_texts_shape,
     twi_not_differentiable, FOUND},
    {"AddSparseToTensorsMap", IN, "sparse_handle:int64", "T:type; " MAP, handle_shape, twi_not_differentiable, STATE},
    {"AddManySparseToTensorsMap", IN, "sparse_handles:int64", "T:type; " MAP, handles_shape, twi_not_differentiable,
     STATE | TWI_MAKES_SHAPE},
    {"TakeManySparseFromTensorsMap", "sparse_handles:int64", OUT, "dtype:type; " MAP, take_shape,
     twi_not_differentiable, STATE | TWI_MAKES_SHAPE},
    {0},
};
