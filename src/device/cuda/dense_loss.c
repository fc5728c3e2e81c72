/* dense_loss.c - the row of a network's end in one launch: two layers, their loss and its gradients. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))

typedef struct plan {
    unsigned *counters; /* last_block.cuh */
    size_t shared;
    float divisor;
    bool relu;
} plan;

static tw_status accepts(const twi_prepare *p)
{
    tw_shape weights = p->inputs[1].shape, last = p->inputs[3].shape;
    if (p->inputs[0].shape.dims[0] == 0 || !twi_cuda_dense_loss_fits(weights.dims[0], weights.dims[1], last.dims[1]))
        return twi_fail(p->error, TW_UNIMPLEMENTED, "rows of %lld, %lld and %lld do not fit together",
                        (long long)weights.dims[0], (long long)weights.dims[1], (long long)last.dims[1]);
    return TW_OK;
}

static tw_status prepare(twi_prepare *p)
{
    plan kept = {.shared = (size_t)twi_cuda_of(p)->card.shared,
                 .divisor = twi_attr_float(p->attrs, "divisor", 1), .relu = twi_attr_bool(p->attrs, "relu", false)};
    tw_status status = twi_cuda_take_counters(p, &kept.counters);
    p->workspace = (size_t)p->inputs[0].shape.dims[0] * sizeof(float);
    return status != TW_OK ? status : twi_keep(p, &kept, sizeof kept);
}

static tw_status run(const twi_run *r)
{
    const plan *kept = r->state;
    const twi_operand *in = r->input_operands;
    twi_cuda_dense_loss p = {.rows = in[0].shape.dims[0],
                             .inputs = (int)in[1].shape.dims[0],
                             .hidden = (int)in[1].shape.dims[1],
                             .classes = (int)in[3].shape.dims[1],
                             .wide = in[5].dtype == TW_INT64,
                             .relu = kept->relu,
                             .divisor = kept->divisor,
                             .shared = kept->shared,
                             .x = r->inputs[0],
                             .weights = r->inputs[1],
                             .bias = r->inputs[2],
                             .last_weights = r->inputs[3],
                             .last_bias = r->inputs[4],
                             .labels = r->inputs[5],
                             .scale = r->inputs[6],
                             .h = r->outputs[0],
                             .loss = r->outputs[1],
                             .dlogits = r->outputs[2],
                             .dhidden = r->outputs[3],
                             .dx = r->outputs[4],
                             .losses = r->workspace,
                             .counter = kept->counters};
    return TWI_LAUNCH(r, twi_cuda_dense_loss_run(r->stream, in[0].dtype, &p));
}

const twi_kernel twi_cuda_dense_loss_kernels[] = {
    {"_DenseLoss", "cuda", FLOATS, prepare, run, twi_free, .accepts = accepts},
    {0},
};
