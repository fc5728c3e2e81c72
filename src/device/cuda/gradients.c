/* gradients.c - the rows of gradients that travel together, and of their means; see rewrite/buckets.c, sums.c. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"

/* Of one gradient. */
typedef struct joined {
    int var, decay; /* inputs; decay 0: there is none */
    bool transposed;
} joined;

static tw_status prepare_join_gradients(twi_prepare *p)
{
    int decays = 0, num_transposed = 0;
    const int64_t *decayed = twi_attr_ints(p->attrs, "decayed", &decays);
    const int64_t *transposed = twi_attr_ints(p->attrs, "transposed", &num_transposed);
    int count = p->num_inputs - 2 * decays;
    joined *state = twi_alloc_array((size_t)count, sizeof *state);
    if (!state)
        return twi_fail_memory(p->error, p->node);
    for (int i = 0; i < num_transposed && i < count; i++)
        state[i].transposed = transposed[i];
    for (int i = 0; i < decays; i++) {
        state[decayed[i]].var = count + i;
        state[decayed[i]].decay = count + decays + i;
    }
    p->state = state;
    return TW_OK;
}

static tw_status run_join_gradients(const twi_run *r)
{
    const joined *state = r->state;
    tw_status status = TW_OK;
    int64_t at = 0, all = r->output_operands[0].elements;
    for (int i = 0; at < all && status == TW_OK;) {
        twi_cuda_joins some = {.to = r->outputs[0]};
        for (; some.count < TWI_CUDA_MANY && at < all; some.count++, i++) {
            const twi_operand *gradient = &r->input_operands[i];
            some.from[some.count] = r->inputs[i];
            some.type[some.count] = (uint8_t)gradient->dtype;
            some.columns[some.count] = state[i].transposed ? (int)gradient->shape.dims[0] : 0;
            some.var[some.count] = state[i].decay ? r->inputs[state[i].var] : NULL;
            some.decay[some.count] = state[i].decay ? r->inputs[state[i].decay] : NULL;
            some.begin[some.count] = at;
            some.elements[some.count] = gradient->elements;
            at += gradient->elements;
        }
        status = TWI_LAUNCH(r, twi_cuda_join_gradients(r->stream, &some));
    }
    return status;
}

static tw_status accepts_mean(const twi_prepare *p)
{
    if (p->num_inputs < 2 || p->num_inputs > TWI_CUDA_TERMS)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "the mean of %d towers, expected 2 to %d", p->num_inputs,
                        TWI_CUDA_TERMS);
    return TW_OK;
}

static tw_status prepare_mean(twi_prepare *p)
{
    float *scale = twi_alloc(sizeof *scale);
    if (!scale)
        return twi_fail_memory(p->error, p->node);
    *scale = twi_attr_float(p->attrs, "scale", 1);
    p->state = scale;
    p->can_overwrite[0] = true;
    return TW_OK;
}

static tw_status run_mean(const twi_run *r)
{
    twi_cuda_mean mean = {.to = r->outputs[0], .elements = r->output_operands[0].elements,
                          .scale = *(const float *)r->state, .count = r->num_inputs};
    for (int i = 0; i < mean.count; i++)
        mean.from[i] = r->inputs[i];
    return TWI_LAUNCH(r, twi_cuda_mean_run(r->stream, &mean));
}

const twi_kernel twi_cuda_gradient_kernels[] = {
    {"_JoinGradients", "cuda", TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16),
     prepare_join_gradients, run_join_gradients, twi_free},
    {"_TowerMean", "cuda", TWI_TYPE(TW_FLOAT32), prepare_mean, run_mean, twi_free, .accepts = accepts_mean},
    {0},
};
