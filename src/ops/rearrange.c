/* rearrange.c - elements in another order along axes: Roll, ReverseSequence. Those without a file of their own are in
 * array.c. */
#include "ops/rules.h"

/* A shift and an axis, or as many shifts as axes. */
static tw_status roll_shape(twi_inference *c)
{
    tw_shape shift = c->inputs[1], axis = c->inputs[2];
    if (shift.rank > 1 || axis.rank > 1 || !tw_shape_compatible(shift, axis))
        return TWI_REFUSE(c, "shift and axis are both scalars or vectors of one length");
    c->outputs[0] = c->inputs[0];
    return twi_expect_rank_at_least(c, 0, 1);
}

static void roll_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build(G, "Roll", TWI_INPUTS(DY(0), tw_neg(G, X(1)), X(2)), TWI_NO_ATTRS);
}

static tw_status reverse_sequence_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], lengths = c->inputs[1];
    int64_t sequence = twi_attr_int(c->attrs, "seq_dim", 0), batch = twi_attr_int(c->attrs, "batch_dim", 0), merged;
    if (lengths.rank >= 0 && lengths.rank != 1)
        return twi_expect_rank(c, 1, 1);
    c->outputs[0] = in;
    if (in.rank < 0)
        return TW_OK;
    if (sequence < 0 || sequence >= in.rank || batch < 0 || batch >= in.rank || sequence == batch)
        return TWI_REFUSE(c, "seq_dim is %lld and batch_dim %lld: two axes of %d are expected", (long long)sequence,
                          (long long)batch, in.rank);
    if (lengths.rank == 1 && !twi_merge_dims(in.dims[batch], lengths.dims[0], &merged))
        return TWI_REFUSE(c, "%lld lengths for a batch of %lld", (long long)lengths.dims[0], (long long)in.dims[batch]);
    return TW_OK;
}

static void reverse_sequence_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build_like(g->node, "ReverseSequence", TWI_INPUTS(DY(0), X(1)));
}

const twi_op twi_rearrange_ops[] = {
    {"Roll", "input:T, shift:Tshift, axis:Taxis", "output:T", "T:type; Tshift:{int32,int64}; Taxis:{int32,int64}",
     roll_shape, roll_gradient},
    {"ReverseSequence", "input:T, seq_lengths:Tlen", "output:T",
     "seq_dim:int; batch_dim:int=0; T:type; Tlen:{int32,int64}=int64", reverse_sequence_shape,
     reverse_sequence_gradient},
    {0},
};
