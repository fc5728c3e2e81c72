/* ctc.c - sequences of labels: how unlikely they are when each may be stretched and blanks lie in between (CTCLoss),
 * the likeliest ones, how far apart two are. */
#include "ops/rules.h"

/* inputs [T,B,C], labels_indices [n,2], labels_values [n], sequence_length [B]: loss [B], gradient [T,B,C] */
static tw_status ctc_shape(twi_inference *c)
{
    static const int ranks[] = {3, 2, 1, 1};
    tw_shape inputs = c->inputs[0];
    int64_t labels, batch;
    for (int i = 0; i < 4; i++)
        if (c->inputs[i].rank >= 0 && c->inputs[i].rank != ranks[i])
            return twi_expect_rank(c, i, ranks[i]);
    if (c->inputs[1].rank == 2 && c->inputs[1].dims[1] >= 0 && c->inputs[1].dims[1] != 2)
        return TWI_REFUSE(c, "places of %lld numbers, expected 2", (long long)c->inputs[1].dims[1]);
    if (c->inputs[1].rank == 2 && c->inputs[2].rank == 1 &&
        !twi_merge_dims(c->inputs[1].dims[0], c->inputs[2].dims[0], &labels))
        return TWI_REFUSE(c, "%lld places for %lld labels", (long long)c->inputs[1].dims[0],
                          (long long)c->inputs[2].dims[0]);
    batch = inputs.rank == 3 ? inputs.dims[1] : -1;
    if (c->inputs[3].rank == 1 && !twi_merge_dims(batch, c->inputs[3].dims[0], &batch))
        return TWI_REFUSE(c, "%lld lengths for a batch of %lld", (long long)c->inputs[3].dims[0], (long long)batch);
    if (batch == 0)
        return TWI_REFUSE(c, "batch_size must not be 0");
    c->outputs[0] = TW_SHAPE(batch);
    c->outputs[1] = inputs.rank < 0 ? twi_unknown_of_rank(3) : inputs;
    return TW_OK;
}

/* The op's second output is the gradient of its first. */
static void ctc_gradient(twi_gradient *g)
{
    if (DY(0).node)
        g->dx[0] = tw_mul(G, tw_expand_dims(G, tw_expand_dims(G, DY(0), 0), -1), Y(1));
}

/* inputs [T,B,C], sequence_length [B]: sparse labels, as many as there are; log_probability [B,1] */
static tw_status greedy_shape(twi_inference *c)
{
    tw_shape inputs = c->inputs[0];
    int64_t batch = inputs.rank == 3 ? inputs.dims[1] : -1;
    tw_status status = twi_expect_rank(c, 0, 3);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 1);
    if (status == TW_OK && c->inputs[1].rank == 1 && !twi_merge_dims(batch, c->inputs[1].dims[0], &batch))
        return TWI_REFUSE(c, "%lld lengths for a batch of %lld", (long long)c->inputs[1].dims[0], (long long)batch);
    c->outputs[0] = TW_SHAPE(-1, 2);
    c->outputs[1] = TW_SHAPE(-1);
    c->outputs[2] = TW_SHAPE(2);
    c->outputs[3] = TW_SHAPE(batch, 1);
    return status;
}

/* The same for several paths: all indices, all labels, all shapes, then log_probability [B,paths]. */
static tw_status beam_shape(twi_inference *c)
{
    int64_t width = twi_attr_int(c->attrs, "beam_width", 0), paths = twi_attr_int(c->attrs, "top_paths", 0);
    tw_shape inputs = c->inputs[0];
    int64_t batch = inputs.rank == 3 ? inputs.dims[1] : -1;
    tw_status status = twi_expect_rank(c, 0, 3);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 1);
    if (status != TW_OK)
        return status;
    if (paths < 1 || paths > width)
        return TWI_REFUSE(c, "requested more paths than the beam width: %lld of %lld", (long long)paths,
                          (long long)width);
    if (inputs.rank == 3 && inputs.dims[2] == 0)
        return TWI_REFUSE(c, "no classes, expected a blank at least");
    if (c->inputs[1].rank == 1 && !twi_merge_dims(batch, c->inputs[1].dims[0], &batch))
        return TWI_REFUSE(c, "%lld lengths for a batch of %lld", (long long)c->inputs[1].dims[0], (long long)batch);
    for (int64_t i = 0; i < paths; i++) {
        c->outputs[i] = TW_SHAPE(-1, 2);
        c->outputs[paths + i] = TW_SHAPE(-1);
        c->outputs[2 * paths + i] = TW_SHAPE(2);
    }
    c->outputs[3 * paths] = TW_SHAPE(batch, paths);
    return TW_OK;
}

/* Two sparse tensors whose last axis are sequences: what lies before it, as far as either goes. */
static tw_status distance_shape(twi_inference *c)
{
    static const int ranks[] = {2, 1, 1};
    tw_status status = TW_OK;
    for (int i = 0; i < 6 && status == TW_OK; i++)
        status = twi_expect_rank(c, i, ranks[i % 3]);
    tw_shape guess = twi_shape_of_value(twi_ask_value(c, 2)), truth = twi_shape_of_value(twi_ask_value(c, 5));
    if (status != TW_OK || guess.rank < 0 || truth.rank < 0)
        return status;
    if (guess.rank != truth.rank || guess.rank < 1)
        return TWI_REFUSE(c, "sequences of rank %d and %d, expected the same, 1 at least", guess.rank, truth.rank);
    guess.rank--;
    for (int i = 0; i < guess.rank; i++)
        guess.dims[i] = guess.dims[i] > truth.dims[i] ? guess.dims[i] : truth.dims[i];
    c->outputs[0] = guess;
    return TW_OK;
}

const twi_op twi_ctc_ops[] = {
    {"CTCLoss", "inputs:T, labels_indices:int64, labels_values:int32, sequence_length:int32", "loss:T, gradient:T",
     "preprocess_collapse_repeated:bool=false; ctc_merge_repeated:bool=true; "
     "ignore_longer_outputs_than_inputs:bool=false; T:{float,double}=float",
     ctc_shape, ctc_gradient, TWI_HOST_ONLY},
    {"CTCGreedyDecoder", "inputs:T, sequence_length:int32",
     "decoded_indices:int64, decoded_values:int64, decoded_shape:int64, log_probability:T",
     "merge_repeated:bool=false; blank_index:int=-1; T:{float,double}=float", greedy_shape, twi_not_differentiable,
     TWI_HOST_ONLY | TWI_MAKES_SHAPE},
    {"CTCBeamSearchDecoder", "inputs:T, sequence_length:int32",
     "decoded_indices:top_paths*int64, decoded_values:top_paths*int64, decoded_shape:top_paths*int64, "
     "log_probability:T",
     "beam_width:int; top_paths:int; merge_repeated:bool=true; T:{float,double}=float", beam_shape,
     twi_not_differentiable, TWI_HOST_ONLY | TWI_MAKES_SHAPE},
    {"EditDistance",
     "hypothesis_indices:int64, hypothesis_values:T, hypothesis_shape:int64, truth_indices:int64, truth_values:T, "
     "truth_shape:int64",
     "output:float", "normalize:bool=true; T:type", distance_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {0},
};
