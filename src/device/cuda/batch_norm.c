/* batch_norm.c - rows of FusedBatchNorm, its three versions and their gradients, images NHWC, moments in float. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"

#include <string.h>

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))

/* Vectors [C] are `count` inputs from `first` on. */
static tw_status prepare(twi_prepare *p, int first, int count)
{
    tw_shape x = p->inputs[0].shape;
    if (strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NHWC") != 0)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s supports NHWC only", p->op);
    if (x.rank != 4)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "the image must have rank 4");
    for (int i = first; i < first + count; i++)
        if (p->inputs[i].elements != x.dims[3])
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "input %d has %lld elements, the image has %lld channels", i,
                            (long long)p->inputs[i].elements, (long long)x.dims[3]);
    twi_cuda_batch_norm *b = twi_alloc(sizeof *b);
    if (!b)
        return twi_fail_memory(p->error, p->node);
    *b = (twi_cuda_batch_norm){
        .rows = x.dims[0] * x.dims[1] * x.dims[2],
        .channels = x.dims[3],
        .epsilon = twi_attr_float(p->attrs, "epsilon", 0.0001f),
        .training = twi_attr_bool(p->attrs, "is_training", true),
    };
    p->state = b;
    p->workspace = twi_cuda_batch_norm_plan(b);
    p->can_overwrite[0] = true;
    return TW_OK;
}

static tw_status prepare_forward(twi_prepare *p)
{
    return prepare(p, 1, twi_attr_bool(p->attrs, "is_training", true) ? 2 : 4);
}

static tw_status prepare_gradient(twi_prepare *p)
{
    return prepare(p, 2, 3);
}

/* x, scale, offset, mean, variance: y, batch mean and variance, and for the gradient mean and biased variance. */
static tw_status run_forward(const twi_run *r)
{
    const twi_cuda_batch_norm *b = r->state;
    twi_cuda_moments to = {r->outputs[3], r->outputs[4], r->outputs[1], r->outputs[2]};
    tw_status status = TWI_LAUNCH(
        r, twi_cuda_batch_norm_run(r->stream, r->input_operands[0].dtype, b, r->inputs[0], r->inputs[1], r->inputs[2],
                                   r->inputs[3], r->inputs[4], &to, r->outputs[0], r->workspace));
    for (int i = 1; i < 5 && !b->training && status == TW_OK; i++)
        status = TWI_LAUNCH(r, cudaMemcpyAsync(r->outputs[i], r->inputs[i % 2 ? 3 : 4], r->output_operands[i].bytes,
                                               cudaMemcpyDeviceToDevice, r->stream));
    return status;
}

/* dy, x, scale, mean, variance: dx, dscale, doffset, and two zeros. */
static tw_status run_gradient(const twi_run *r)
{
    tw_status status = TWI_LAUNCH(
        r, twi_cuda_batch_norm_grad(r->stream, r->input_operands[0].dtype, r->state, r->inputs[0], r->inputs[1],
                                    r->inputs[2], r->inputs[3], r->inputs[4], r->outputs[0], r->outputs[1],
                                    r->outputs[2], r->workspace));
    for (int i = 3; i < 5 && status == TW_OK; i++)
        status = TWI_LAUNCH(r, cudaMemsetAsync(r->outputs[i], 0, r->output_operands[i].bytes, r->stream));
    return status;
}

const twi_kernel twi_cuda_batch_norm_kernels[] = {
    {"FusedBatchNorm", "cuda", FLOATS, prepare_forward, run_forward, twi_free},
    {"FusedBatchNormV2", "cuda", FLOATS, prepare_forward, run_forward, twi_free},
    {"FusedBatchNormV3", "cuda", FLOATS, prepare_forward, run_forward, twi_free},
    {"FusedBatchNormGrad", "cuda", FLOATS, prepare_gradient, run_gradient, twi_free},
    {"FusedBatchNormGradV2", "cuda", FLOATS, prepare_gradient, run_gradient, twi_free},
    {"FusedBatchNormGradV3", "cuda", FLOATS, prepare_gradient, run_gradient, twi_free},
    {0},
};
