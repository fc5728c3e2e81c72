/* batch_norm.c - rows of FusedBatchNorm, its three versions, _BatchNormRelu and their gradients, images NHWC, moments
 * in float. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"

#include <string.h>

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))

/* The image is behind `gradients` inputs. */
static tw_status accepts(const twi_prepare *p, int gradients)
{
    const twi_operand *x = &p->inputs[gradients];
    if (strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NHWC") != 0)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s supports NHWC only", p->op);
    if (x->elements > TWI_CUDA_MOST_ELEMENTS)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s of more than %d elements", p->op, TWI_CUDA_MOST_ELEMENTS);
    if (x->shape.rank == 4 && x->shape.dims[3] > TWI_CUDA_MOST_CHANNELS)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s on a GPU takes up to %d channels, got %lld", p->op,
                        TWI_CUDA_MOST_CHANNELS, (long long)x->shape.dims[3]);
    return TW_OK;
}

static tw_status accepts_norm(const twi_prepare *p)
{
    return accepts(p, 0);
}

static tw_status accepts_norm_grad(const twi_prepare *p)
{
    return accepts(p, 1);
}

static tw_status accepts_norm_relu_grad(const twi_prepare *p)
{
    return accepts(p, (int)twi_attr_int(p->attrs, "M", 1));
}

/* Images are `gradients` inputs and x; behind them come `read` vectors [C] that are read, of `vectors`; then, with a
 * side, another image. */
static tw_status prepare(twi_prepare *p, bool relu, int gradients, int read, int vectors)
{
    tw_shape x = p->inputs[gradients].shape;
    int first = gradients + 1, sides = relu ? (int)twi_attr_int(p->attrs, "N", 0) : 0;
    if (x.rank != 4)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "the image must have rank 4");
    for (int i = first; i < first + read; i++)
        if (p->inputs[i].elements != x.dims[3])
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "input %d has %lld elements, the image has %lld channels", i,
                            (long long)p->inputs[i].elements, (long long)x.dims[3]);
    for (int i = 0; i < gradients + sides; i++)
        if (!tw_shape_equal(p->inputs[i < gradients ? i : first + vectors].shape, x))
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "input %d is not of the image's shape",
                            i < gradients ? i : first + vectors);
    twi_cuda_batch_norm plan = {
        .rows = (int)(x.dims[3] ? x.dims[0] * x.dims[1] * x.dims[2] : 0),
        .channels = (int)x.dims[3],
        .epsilon = twi_attr_float(p->attrs, "epsilon", 0.0001f),
        .training = twi_attr_bool(p->attrs, "is_training", true),
        .relu = relu,
    };
    p->workspace = twi_cuda_batch_norm_plan(&plan);
    p->can_overwrite[0] = true;
    return twi_keep(p, &plan, sizeof plan);
}

static tw_status prepare_norm(twi_prepare *p)
{
    return prepare(p, false, 0, twi_attr_bool(p->attrs, "is_training", true) ? 2 : 4, 4);
}

static tw_status prepare_norm_relu(twi_prepare *p)
{
    return prepare(p, true, 0, twi_attr_bool(p->attrs, "is_training", true) ? 2 : 4, 4);
}

static tw_status prepare_norm_grad(twi_prepare *p)
{
    return prepare(p, false, 1, 3, 3);
}

static tw_status prepare_norm_relu_grad(twi_prepare *p)
{
    return prepare(p, true, (int)twi_attr_int(p->attrs, "M", 1), 4, 4);
}

/* x, scale, offset, mean, variance and perhaps a side: y, batch mean and variance, and for the gradient mean and biased
 * variance. */
static tw_status run_norm(const twi_run *r)
{
    const twi_cuda_batch_norm *plan = r->state;
    twi_cuda_moments to = {r->outputs[3], r->outputs[4], r->outputs[1], r->outputs[2]};
    twi_cuda_normed in = {.x = r->inputs[0], .scale = r->inputs[1], .offset = r->inputs[2], .mean = r->inputs[3],
                          .variance = r->inputs[4], .side = r->num_inputs > 5 ? r->inputs[5] : NULL};
    tw_dtype type = r->input_operands[0].dtype;
    tw_status status = TW_OK;
    if (plan->training)
        status = TWI_LAUNCH(r, twi_cuda_batch_norm_moments(r->stream, type, plan, in.x, r->workspace));
    if (status == TW_OK)
        status = TWI_LAUNCH(r, twi_cuda_batch_norm_run(r->stream, type, plan, &in, &to, r->outputs[0], r->workspace));
    bool is_empty = r->input_operands[0].elements == 0; /* then TensorFlow has no moments, whatever is given */
    for (int i = 1; i < 3 && !plan->training && is_empty && status == TW_OK; i++)
        status = TWI_LAUNCH(r, cudaMemsetAsync(r->outputs[i], 0xff /* NaN */, r->output_operands[i].bytes, r->stream));
    for (int i = is_empty ? 3 : 1; i < 5 && !plan->training && status == TW_OK; i++)
        status = TWI_LAUNCH(r, cudaMemcpyAsync(r->outputs[i], r->inputs[i % 2 ? 3 : 4], r->output_operands[i].bytes,
                                               cudaMemcpyDeviceToDevice, r->stream));
    return status;
}

static tw_status run_gradient(const twi_run *r, twi_cuda_normed in, void *dside)
{
    const twi_cuda_batch_norm *plan = r->state;
    return TWI_LAUNCH(r, twi_cuda_batch_norm_grad(r->stream, r->output_operands[0].dtype, plan, &in, r->outputs[0],
                                                  r->outputs[1], r->outputs[2], dside, r->workspace));
}

/* dy, x, scale, mean, variance: dx, dscale, doffset, and two zeros. */
static tw_status run_norm_grad(const twi_run *r)
{
    tw_status status = run_gradient(r, (twi_cuda_normed){.gradients = {r->inputs[0]}, .x = r->inputs[1],
                                                         .scale = r->inputs[2], .mean = r->inputs[3],
                                                         .variance = r->inputs[4]}, NULL);
    for (int i = 3; i < 5 && status == TW_OK; i++)
        status = TWI_LAUNCH(r, cudaMemsetAsync(r->outputs[i], 0, r->output_operands[i].bytes, r->stream));
    return status;
}

/* One or two dy, x, scale, mean, variance, offset, and with a side y: dx, dscale, doffset, and with a side its
 * gradient. */
static tw_status run_norm_relu_grad(const twi_run *r)
{
    bool has_side = r->num_outputs > 3;
    int gradients = r->num_inputs - 5 - has_side;
    const void *const *in = r->inputs + gradients;
    return run_gradient(r, (twi_cuda_normed){.gradients = {r->inputs[0], gradients > 1 ? r->inputs[1] : NULL},
                                             .x = in[0], .scale = in[1], .mean = in[2], .variance = in[3],
                                             .offset = in[4], .y = has_side ? in[5] : NULL},
                        has_side ? r->outputs[3] : NULL);
}

const twi_kernel twi_cuda_batch_norm_kernels[] = {
    {"FusedBatchNorm", "cuda", FLOATS, prepare_norm, run_norm, twi_free, .accepts = accepts_norm},
    {"FusedBatchNormV2", "cuda", FLOATS, prepare_norm, run_norm, twi_free, .accepts = accepts_norm},
    {"FusedBatchNormV3", "cuda", FLOATS, prepare_norm, run_norm, twi_free, .accepts = accepts_norm},
    {"FusedBatchNormGrad", "cuda", FLOATS, prepare_norm_grad, run_norm_grad, twi_free, .accepts = accepts_norm_grad},
    {"FusedBatchNormGradV2", "cuda", FLOATS, prepare_norm_grad, run_norm_grad, twi_free, .accepts = accepts_norm_grad},
    {"FusedBatchNormGradV3", "cuda", FLOATS, prepare_norm_grad, run_norm_grad, twi_free, .accepts = accepts_norm_grad},
    {"_BatchNormRelu", "cuda", FLOATS, prepare_norm_relu, run_norm, twi_free, .accepts = accepts_norm},
    {"_BatchNormReluGrad", "cuda", FLOATS, prepare_norm_relu_grad, run_norm_relu_grad, twi_free,
     .accepts = accepts_norm_relu_grad},
    {0},
};
