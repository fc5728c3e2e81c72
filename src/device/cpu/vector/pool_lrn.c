/* pool_lrn.c - what follows a convolution, in one pass over memory (rows "fused"): pooling and local response normalization
 * in either order, and their gradients with the ReLU's.
 * Lives here:  _MaxPoolLRN, _LRNMaxPool and their gradients, on float and bfloat16, images NHWC.
 * Never here:  the loops (loops.inl).
 *
 * A convolution's output is written once and would be read again by every op after it; here a row passes through all of
 * them while it is in the cache. Forward keeps what backward needs and no more: for each window the number of the
 * cell that held the maximum, a byte. */
#include "base/memory.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

/* `image` is the shape of what the pool sees, or whose gradient it gives. A thread's scratch has room for an image of
 * floats, pooled or not, if one is wanted. */
static tw_status prepare(twi_prepare *p, tw_shape image, bool wants_pooled, bool wants_image)
{
    twi_window w;
    tw_status status = twi_window_lay(p->attrs, image, NULL, &w, p->error);
    if (status != TW_OK)
        return status;
    if (w.channel_axis != 3 || w.size[0] * w.size[1] > TWI_MOST_CELLS || tw_shape_elements(image) == 0 ||
        p->outputs[0].elements == 0)
        return TW_UNIMPLEMENTED;
    twi_image_job job = {
        .form = twi_form_of(p->inputs[0].dtype),
        .relu = twi_attr_bool(p->attrs, "relu", false),
        .pool = twi_pool_of(&w, image.dims[3]),
        .lrn = twi_lrn_of(p->attrs, image.dims[3]),
        .pixels = image.dims[0], /* images */
    };
    if (!twi_lrn_fits(&job.lrn))
        return TW_UNIMPLEMENTED;
    int64_t pixels = wants_pooled ? w.output[0] * w.output[1] : wants_image ? w.image[0] * w.image[1] : 0;
    job.lrn_scratch = twi_lrn_scratch(&job.lrn);
    job.scratch = job.lrn_scratch + ((size_t)(pixels * image.dims[3]) * sizeof(float) + 63) / 64 * 64;
    p->workspace = job.scratch * (size_t)p->threads;
    return twi_keep(p, &job, sizeof job);
}

/* _MaxPoolLRN (input) gives output, pooled, argmax */
static tw_status pool_lrn_prepare(twi_prepare *p)
{
    return prepare(p, p->inputs[0].shape, false, false);
}

static tw_status pool_lrn_run(const twi_run *r)
{
    twi_image_job job = *(const twi_image_job *)r->state;
    job.input = r->inputs[0];
    job.output = r->outputs[0];
    job.pooled = r->outputs[1];
    job.argmax_out = r->outputs[2];
    job.workspace = r->workspace;
    twi_team_run(r->threads, twi_loops_best()->pool_lrn, &job, job.pixels * job.pool.out_height);
    return TW_OK;
}

/* _LRNMaxPool (input) gives output, argmax */
static tw_status lrn_pool_prepare(twi_prepare *p)
{
    return prepare(p, p->inputs[0].shape, false, true);
}

static tw_status lrn_pool_run(const twi_run *r)
{
    twi_image_job job = *(const twi_image_job *)r->state;
    job.input = r->inputs[0];
    job.output = r->outputs[0];
    job.argmax_out = r->outputs[1];
    job.workspace = r->workspace;
    twi_team_run(r->threads, twi_loops_best()->lrn_pool, &job, job.pixels);
    return TW_OK;
}

/* _MaxPoolLRNGrad (gradient, pooled, argmax), _LRNMaxPoolGrad (gradient, input, argmax) */
static tw_status run_gradient(const twi_run *r, twi_share *range)
{
    twi_image_job job = *(const twi_image_job *)r->state;
    job.gradient = r->inputs[0];
    job.input = r->inputs[1];
    job.argmax = r->inputs[2];
    job.output = r->outputs[0];
    job.workspace = r->workspace;
    twi_team_run(r->threads, range, &job, job.pixels);
    return TW_OK;
}

static tw_status pool_lrn_gradient_prepare(twi_prepare *p)
{
    return prepare(p, p->outputs[0].shape, true, false);
}

static tw_status pool_lrn_gradient_run(const twi_run *r)
{
    return run_gradient(r, twi_loops_best()->pool_lrn_gradient);
}

static tw_status lrn_pool_gradient_prepare(twi_prepare *p)
{
    return prepare(p, p->outputs[0].shape, false, true);
}

static tw_status lrn_pool_gradient_run(const twi_run *r)
{
    return run_gradient(r, twi_loops_best()->lrn_pool_gradient);
}

#define TYPES (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

const twi_kernel twi_vector_pool_lrn_kernels[] = {
    {"_MaxPoolLRN", "fused", TYPES, pool_lrn_prepare, pool_lrn_run, twi_free},
    {"_MaxPoolLRNGrad", "fused", TYPES, pool_lrn_gradient_prepare, pool_lrn_gradient_run, twi_free},
    {"_LRNMaxPool", "fused", TYPES, lrn_pool_prepare, lrn_pool_run, twi_free},
    {"_LRNMaxPoolGrad", "fused", TYPES, lrn_pool_gradient_prepare, lrn_pool_gradient_run, twi_free},
    {0},
};
