/* ctc.c - CTCLoss: how unlikely sequences of labels are, when each may be stretched and blanks lie in between. */
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

const twi_op twi_ctc_ops[] = {
    {"CTCLoss", "inputs:T, labels_indices:int64, labels_values:int32, sequence_length:int32", "loss:T, gradient:T",
     "preprocess_collapse_repeated:bool=false; ctc_merge_repeated:bool=true; "
     "ignore_longer_outputs_than_inputs:bool=false; T:{float,double}=float",
     ctc_shape, ctc_gradient, TWI_HOST_ONLY},
    {0},
};
