/* places.c - where numbers fall: into bins, among sorted ones, at which index of an array; and the n-th of them. */
#include "ops/rules.h"
#include "ops/types.h"

static tw_status histogram_shape(twi_inference *c)
{
    int64_t bins = -1;
    tw_status status = twi_expect_rank(c, 1, 1);
    if (status == TW_OK)
        status = twi_expect_rank(c, 2, 0);
    if (status == TW_OK && c->inputs[1].rank == 1 && c->inputs[1].dims[0] >= 0 && c->inputs[1].dims[0] != 2)
        return TWI_REFUSE(c, "value_range should have 2 elements, not %lld", (long long)c->inputs[1].dims[0]);
    if (status == TW_OK && twi_number_of(c, 2, &bins) && bins <= 0)
        return TWI_REFUSE(c, "nbins should be a positive number, not %lld", (long long)bins);
    c->outputs[0] = TW_SHAPE(bins);
    return status;
}

/* sorted_inputs [B,N], values [B,M]: [B,M] */
static tw_status bound_shape(twi_inference *c)
{
    int64_t batch;
    tw_status status = twi_expect_rank(c, 0, 2);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 2);
    if (status == TW_OK && c->inputs[0].rank == 2 && c->inputs[1].rank == 2 &&
        !twi_merge_dims(c->inputs[0].dims[0], c->inputs[1].dims[0], &batch))
        return TWI_REFUSE(c, "%lld sorted rows for %lld", (long long)c->inputs[0].dims[0], (long long)c->inputs[1].dims[0]);
    c->outputs[0] = c->inputs[1];
    return status;
}

/* indices [] or [n], dims [rank]: [rank] or [rank,n] */
static tw_status unravel_shape(twi_inference *c)
{
    tw_shape indices = c->inputs[0];
    tw_status status = twi_expect_rank(c, 1, 1);
    if (status == TW_OK && indices.rank > 1)
        status = twi_expect_rank(c, 0, 1);
    int64_t rank = c->inputs[1].rank == 1 ? c->inputs[1].dims[0] : -1;
    if (indices.rank >= 0)
        c->outputs[0] = indices.rank ? TW_SHAPE(rank, indices.dims[0]) : TW_SHAPE(rank);
    return status;
}

/* Along the last axis. */
static tw_status nth_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0];
    int64_t n;
    tw_status status = twi_expect_rank_at_least(c, 0, 1);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 0);
    if (status != TW_OK || in.rank < 0)
        return status;
    int64_t size = in.dims[in.rank - 1];
    if (twi_number_of(c, 1, &n) && (n < 0 || (size >= 0 && n >= size)))
        return TWI_REFUSE(c, "Input must have last dimension > n = %lld, but it has %lld", (long long)n, (long long)size);
    in.rank--;
    c->outputs[0] = in;
    return TW_OK;
}

/* Evenly to all that are the n-th. */
static void nth_gradient(twi_gradient *g)
{
    tw_dtype dtype = tw_output_dtype(X(0));
    tw_output chosen = tw_cast(G, tw_equal(G, tw_expand_dims(G, Y(0), -1), X(0)), dtype);
    tw_output count = tw_reduce_sum(G, chosen, (const int[]){-1}, 1, true);
    g->dx[0] = tw_mul(G, tw_div(G, chosen, count), tw_expand_dims(G, DY(0), -1));
}

#define NUMBERS "{" TWI_REALS "}"
#define BOUND(name)                                                                                                    \
    {                                                                                                                  \
        name, "sorted_inputs:T, values:T", "output:out_type", "T:type; out_type:{int32,int64}=int32", bound_shape,     \
            twi_not_differentiable, TWI_HOST_ONLY                                                                      \
    }

const twi_op twi_places_ops[] = {
    {"HistogramFixedWidth", "values:T, value_range:T, nbins:int32", "out:dtype",
     "T:{int32,int64,float,double}; dtype:{int32,int64}=int32", histogram_shape, twi_not_differentiable, TWI_HOST_ONLY},
    BOUND("LowerBound"),
    BOUND("UpperBound"),
    {"UnravelIndex", "indices:Tidx, dims:Tidx", "output:Tidx", "Tidx:{int32,int64}=int32", unravel_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"NthElement", "input:T, n:int32", "values:T", "reverse:bool=false; T:" NUMBERS, nth_shape, nth_gradient,
     TWI_HOST_ONLY},
    {0},
};
