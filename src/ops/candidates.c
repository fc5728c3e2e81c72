/* candidates.c - classes drawn as counterexamples for losses over many classes. */
#include "ops/rules.h"

/* true_classes [batch,num_true]: sampled_candidates [num_sampled], true_expected_count [batch,num_true],
 * sampled_expected_count [num_sampled] */
static tw_status sampler_shape(twi_inference *c)
{
    int64_t num_true = twi_attr_int(c->attrs, "num_true", 0), num = twi_attr_int(c->attrs, "num_sampled", 0);
    int64_t range = twi_attr_int(c->attrs, "range_max", INT64_MAX), merged;
    tw_shape classes = c->inputs[0];
    tw_status status = twi_expect_rank(c, 0, 2);
    if (status != TW_OK)
        return status;
    if (num_true < 1 || num < 1 || num > INT32_MAX || range < 1)
        return TWI_REFUSE(c, "num_true, num_sampled and range_max are positive");
    if (classes.rank == 2 && !twi_merge_dims(classes.dims[1], num_true, &merged))
        return TWI_REFUSE(c, "%lld true classes, num_true says %lld", (long long)classes.dims[1], (long long)num_true);
    if (twi_attr_bool(c->attrs, "unique", false) && num > range)
        return TWI_REFUSE(c, "%lld different candidates of %lld", (long long)num, (long long)range);
    c->outputs[0] = c->outputs[2] = TW_SHAPE(num);
    c->outputs[1] = TW_SHAPE(classes.rank < 0 ? -1 : classes.dims[0], num_true);
    return TW_OK;
}

/* Which true classes, [batch,num_true], are among the candidates [n]: rows, places among the candidates, and weights
 * that take such a candidate out of a loss. As many as there are. */
static tw_status hits_shape(twi_inference *c)
{
    int64_t num_true = twi_attr_int(c->attrs, "num_true", 0), merged;
    tw_shape classes = c->inputs[0];
    tw_status status = twi_expect_rank(c, 0, 2);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 1);
    if (status == TW_OK && classes.rank == 2 && !twi_merge_dims(classes.dims[1], num_true, &merged))
        return TWI_REFUSE(c, "%lld true classes, num_true says %lld", (long long)classes.dims[1], (long long)num_true);
    for (int i = 0; i < 3; i++)
        c->outputs[i] = TW_SHAPE(-1);
    return status;
}

#define OUTPUTS "sampled_candidates:int64, true_expected_count:float, sampled_expected_count:float"
#define SAMPLER(name, range)                                                                                           \
    {                                                                                                                  \
        name, "true_classes:int64", OUTPUTS,                                                                           \
            "num_true:int; num_sampled:int; unique:bool; " range "seed:int=0; seed2:int=0", sampler_shape,             \
            twi_not_differentiable, TWI_STATEFUL | TWI_HOST_ONLY                                                       \
    }

const twi_op twi_candidates_ops[] = {
    SAMPLER("LogUniformCandidateSampler", "range_max:int; "),
    SAMPLER("UniformCandidateSampler", "range_max:int; "),
    SAMPLER("AllCandidateSampler", ""),
    SAMPLER("LearnedUnigramCandidateSampler", "range_max:int; "),
    SAMPLER("ThreadUnsafeUnigramCandidateSampler", "range_max:int; "),
    SAMPLER("FixedUnigramCandidateSampler",
            "range_max:int; vocab_file:string=; distortion:float=1.0; num_reserved_ids:int=0; num_shards:int>=1=1; "
            "shard:int>=0=0; unigrams:floats=[]; "),
    {"ComputeAccidentalHits", "true_classes:int64, sampled_candidates:int64", "indices:int32, ids:int64, weights:float",
     "num_true:int; seed:int=0; seed2:int=0", hits_shape, twi_not_differentiable, TWI_HOST_ONLY | TWI_MAKES_SHAPE},
    {0},
};
