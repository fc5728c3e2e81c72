/* pool.c - rows of MaxPool, AvgPool and their gradients, images NHWC. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"
#include "tensor/window.h"

#include <string.h>

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))

enum { MOST_CELLS = 1 << 15 }; /* of a window's side: a window's cells are counted in 32 bits */

tw_status twi_cuda_pool_of(const twi_prepare *p, const twi_operand *image, twi_cuda_pool *pool)
{
    twi_window w;
    if (strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NHWC") != 0)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s supports NHWC only", p->op);
    tw_status status = twi_window_lay(p->attrs, image->shape, NULL, &w, p->error);
    if (status != TW_OK)
        return status;
    int64_t batch = image->shape.dims[0], channels = image->shape.dims[3];
    if (image->elements > TWI_CUDA_MOST_ELEMENTS ||
        batch * w.output[0] * w.output[1] * channels > TWI_CUDA_MOST_ELEMENTS)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s of more than %d elements", p->op, TWI_CUDA_MOST_ELEMENTS);
    pool->batch = (int)batch;
    pool->channels = (int)channels;
    pool->shared = (size_t)twi_cuda_of(p)->card.shared;
    for (int side = 0; side < 2; side++) {
        if (w.size[side] > MOST_CELLS || w.stride[side] > MOST_CELLS)
            return twi_fail(p->error, TW_UNIMPLEMENTED, "%s of windows of %lld cells, every %lld cells", p->op,
                            (long long)w.size[side], (long long)w.stride[side]);
        pool->image[side] = (int)w.image[side];
        pool->output[side] = (int)w.output[side];
        pool->size[side] = (int)w.size[side];
        pool->stride[side] = (int)w.stride[side];
        pool->before[side] = (int)w.before[side];
    }
    return TW_OK;
}

static tw_status prepare(twi_prepare *p, const twi_operand *image)
{
    twi_cuda_pool pool = {0};
    tw_status status = twi_cuda_pool_of(p, image, &pool);
    return status == TW_OK ? twi_keep(p, &pool, sizeof pool) : status;
}

static tw_status accepts_pool(const twi_prepare *p)
{
    twi_cuda_pool pool;
    return twi_cuda_pool_of(p, &p->inputs[0], &pool);
}

static tw_status accepts_average_pool_grad(const twi_prepare *p)
{
    twi_cuda_pool pool;
    return twi_cuda_pool_of(p, &p->outputs[0], &pool);
}

static tw_status prepare_pool(twi_prepare *p)
{
    return prepare(p, &p->inputs[0]);
}

static tw_status run_max_pool(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_max_pool(r->stream, r->input_operands[0].dtype, r->state, r->inputs[0],
                                           r->outputs[0]));
}

/* x, y, dy: dx */
static tw_status run_max_pool_grad(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_max_pool_grad(r->stream, r->input_operands[0].dtype, r->state, r->inputs[0],
                                                r->inputs[2], r->outputs[0]));
}

static tw_status run_average_pool(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_average_pool(r->stream, r->input_operands[0].dtype, r->state, r->inputs[0],
                                               r->outputs[0]));
}

/* shape of x, dy: dx */
static tw_status prepare_average_pool_grad(twi_prepare *p)
{
    return prepare(p, &p->outputs[0]);
}

static tw_status run_average_pool_grad(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_average_pool_grad(r->stream, r->input_operands[1].dtype, r->state, r->inputs[1],
                                                    r->outputs[0]));
}

const twi_kernel twi_cuda_pool_kernels[] = {
    {"MaxPool", "cuda", FLOATS, prepare_pool, run_max_pool, twi_free, .accepts = accepts_pool},
    {"MaxPoolGrad", "cuda", FLOATS, prepare_pool, run_max_pool_grad, twi_free, .accepts = accepts_pool},
    {"AvgPool", "cuda", FLOATS, prepare_pool, run_average_pool, twi_free, .accepts = accepts_pool},
    {"AvgPoolGrad", "cuda", FLOATS, prepare_average_pool_grad, run_average_pool_grad, twi_free,
     .accepts = accepts_average_pool_grad},
    {0},
};
