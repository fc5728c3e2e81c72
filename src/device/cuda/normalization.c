/* normalization.c - rows of local response normalization and its gradient. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))

tw_status twi_cuda_lrn_of(const twi_prepare *p, const twi_operand *image, twi_cuda_lrn *l)
{
    int64_t channels = image->shape.dims[image->shape.rank - 1];
    if (channels > TWI_CUDA_MOST_LRN_CHANNELS)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s of more than %d channels", p->op, TWI_CUDA_MOST_LRN_CHANNELS);
    if (image->elements > TWI_CUDA_MOST_ELEMENTS)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s of more than %d elements", p->op, TWI_CUDA_MOST_ELEMENTS);
    int64_t radius = twi_attr_int(p->attrs, "depth_radius", 5);
    *l = (twi_cuda_lrn){
        .pixels = (int)(channels ? image->elements / channels : 0),
        .channels = (int)channels,
        .radius = (int)(radius < channels ? radius : channels),
        .bias = twi_attr_float(p->attrs, "bias", 1),
        .alpha = twi_attr_float(p->attrs, "alpha", 1),
        .beta = twi_attr_float(p->attrs, "beta", 0.5f),
    };
    return TW_OK;
}

static tw_status accepts(const twi_prepare *p)
{
    twi_cuda_lrn l;
    return twi_cuda_lrn_of(p, &p->inputs[0], &l);
}

static tw_status prepare(twi_prepare *p)
{
    twi_cuda_lrn l;
    tw_status status = twi_cuda_lrn_of(p, &p->inputs[0], &l);
    return status == TW_OK ? twi_keep(p, &l, sizeof l) : status;
}

static tw_status run_lrn(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_lrn_run(r->stream, r->input_operands[0].dtype, r->state, r->inputs[0],
                                          r->outputs[0]));
}

/* dy, x, y: dx */
static tw_status run_lrn_grad(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_lrn_grad(r->stream, r->input_operands[0].dtype, r->state, r->inputs[0], r->inputs[1],
                                           r->inputs[2], r->outputs[0]));
}

const twi_kernel twi_cuda_normalization_kernels[] = {
    {"LRN", "cuda", FLOATS, prepare, run_lrn, twi_free, .accepts = accepts},
    {"LRNGrad", "cuda", FLOATS, prepare, run_lrn_grad, twi_free, .accepts = accepts},
    {0},
};
