/* pool_lrn.c - rows of what follows a convolution, in one pass over memory: pooling and local response normalization in
 * either order, and their gradients with the ReLU's. Images NHWC. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))

typedef struct tail {
    twi_cuda_pool pool;
    twi_cuda_lrn lrn;      /* of what is pooled, or of the image */
    bool relu;
} tail;

/* `image` is what the pool looks at; normalized are the pixels of `normalized`. */
static tw_status lay(const twi_prepare *p, const twi_operand *image, const twi_operand *normalized, tail *t)
{
    *t = (tail){.relu = twi_attr_bool(p->attrs, "relu", false)};
    tw_status status = twi_cuda_pool_of(p, image, &t->pool);
    if (status == TW_OK)
        status = twi_cuda_lrn_of(p, normalized, &t->lrn);
    if (status == TW_OK && t->pool.size[0] * t->pool.size[1] > 256)
        status = twi_fail(p->error, TW_UNIMPLEMENTED, "a window of more than 256 cells");
    if (status == TW_OK && !twi_cuda_bands_fit(&t->pool))
        status = twi_fail(p->error, TW_UNIMPLEMENTED, "rows of %d pixels of %d channels do not fit into a block",
                          t->pool.image[1], t->pool.channels);
    return status;
}

static tw_status prepare(twi_prepare *p, const twi_operand *image, const twi_operand *normalized)
{
    tail t;
    tw_status status = lay(p, image, normalized, &t);
    return status == TW_OK ? twi_keep(p, &t, sizeof t) : status;
}

/* x: y, pooled, argmax */
static tw_status accepts_pool_lrn(const twi_prepare *p)
{
    tail t;
    return lay(p, &p->inputs[0], &p->outputs[0], &t);
}

static tw_status prepare_pool_lrn(twi_prepare *p)
{
    return prepare(p, &p->inputs[0], &p->outputs[0]);
}

static tw_status run_pool_lrn(const twi_run *r)
{
    const tail *t = r->state;
    return TWI_LAUNCH(r, twi_cuda_pool_lrn(r->stream, r->input_operands[0].dtype, &t->pool, &t->lrn, r->inputs[0],
                                           r->outputs[0], r->outputs[1], r->outputs[2]));
}

/* dy, pooled, argmax: dx */
static tw_status accepts_pool_lrn_grad(const twi_prepare *p)
{
    tail t;
    return lay(p, &p->outputs[0], &p->inputs[1], &t);
}

static tw_status prepare_pool_lrn_grad(twi_prepare *p)
{
    return prepare(p, &p->outputs[0], &p->inputs[1]);
}

static tw_status run_pool_lrn_grad(const twi_run *r)
{
    const tail *t = r->state;
    return TWI_LAUNCH(r, twi_cuda_pool_lrn_grad(r->stream, r->input_operands[0].dtype, &t->pool, &t->lrn, t->relu,
                                                r->inputs[0], r->inputs[1], r->inputs[2], r->outputs[0]));
}

/* x: y, argmax */
static tw_status accepts_lrn_pool(const twi_prepare *p)
{
    tail t;
    return lay(p, &p->inputs[0], &p->inputs[0], &t);
}

static tw_status prepare_lrn_pool(twi_prepare *p)
{
    return prepare(p, &p->inputs[0], &p->inputs[0]);
}

static tw_status run_lrn_pool(const twi_run *r)
{
    const tail *t = r->state;
    return TWI_LAUNCH(r, twi_cuda_lrn_pool(r->stream, r->input_operands[0].dtype, &t->pool, &t->lrn, r->inputs[0],
                                           r->outputs[0], r->outputs[1]));
}

/* dy, x, argmax: dx */
static tw_status accepts_lrn_pool_grad(const twi_prepare *p)
{
    tail t;
    return lay(p, &p->inputs[1], &p->inputs[1], &t);
}

static tw_status prepare_lrn_pool_grad(twi_prepare *p)
{
    return prepare(p, &p->inputs[1], &p->inputs[1]);
}

static tw_status run_lrn_pool_grad(const twi_run *r)
{
    const tail *t = r->state;
    return TWI_LAUNCH(r, twi_cuda_lrn_pool_grad(r->stream, r->input_operands[0].dtype, &t->pool, &t->lrn, t->relu,
                                                r->inputs[0], r->inputs[1], r->inputs[2], r->outputs[0]));
}

const twi_kernel twi_cuda_pool_lrn_kernels[] = {
    {"_MaxPoolLRN", "cuda", FLOATS, prepare_pool_lrn, run_pool_lrn, twi_free, .accepts = accepts_pool_lrn},
    {"_MaxPoolLRNGrad", "cuda", FLOATS, prepare_pool_lrn_grad, run_pool_lrn_grad, twi_free,
     .accepts = accepts_pool_lrn_grad},
    {"_LRNMaxPool", "cuda", FLOATS, prepare_lrn_pool, run_lrn_pool, twi_free, .accepts = accepts_lrn_pool},
    {"_LRNMaxPoolGrad", "cuda", FLOATS, prepare_lrn_pool_grad, run_lrn_pool_grad, twi_free,
     .accepts = accepts_lrn_pool_grad},
    {0},
};
