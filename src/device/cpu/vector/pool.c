/* pool.c - max pools and their gradients on our own loops (rows "vector"), images NHWC.
 * Never here:  pools joined with normalization (pool_lrn.c). */
#include "base/memory.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#define TYPES (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

/* MaxPool (input), MaxPoolGrad (orig_input, orig_output, grad) */
static tw_status pool_prepare(twi_prepare *p)
{
    twi_window w;
    const twi_operand *image = &p->inputs[0];
    bool gradient = p->num_inputs > 1;
    tw_status status = twi_window_lay(p->attrs, image->shape, NULL, &w, p->error);
    if (status != TW_OK)
        return status;
    if (w.channel_axis != 3 || image->elements == 0 || p->outputs[0].elements == 0)
        return TW_UNIMPLEMENTED;
    twi_image_job job = {.form = twi_form_of(image->dtype), .pool = twi_pool_of(&w, image->shape.dims[3])};
    job.pixels = image->shape.dims[0] * (gradient ? 1 : w.output[0]); /* items */
    if (gradient && w.size[0] * w.size[1] > TWI_MOST_CELLS)
        return TW_UNIMPLEMENTED;
    if (gradient)
        job.scratch = (size_t)(w.output[0] * w.output[1] * job.pool.channels + 63) / 64 * 64;
    p->workspace = job.scratch * (size_t)p->threads;
    return twi_keep(p, &job, sizeof job);
}

static tw_status pool_run(const twi_run *r)
{
    twi_image_job job = *(const twi_image_job *)r->state;
    job.input = r->inputs[0];
    job.output = r->outputs[0];
    twi_team_run(r->threads, twi_loops_best()->max_pool, &job, job.pixels);
    return TW_OK;
}

static tw_status pool_gradient_run(const twi_run *r)
{
    twi_image_job job = *(const twi_image_job *)r->state;
    job.input = r->inputs[0];
    job.gradient = r->inputs[2];
    job.output = r->outputs[0];
    job.workspace = r->workspace;
    twi_team_run(r->threads, twi_loops_best()->max_pool_gradient, &job, job.pixels);
    return TW_OK;
}

const twi_kernel twi_vector_pool_kernels[] = {
    {"MaxPool", "vector", TYPES, pool_prepare, pool_run, twi_free},
    {"MaxPoolGrad", "vector", TYPES, pool_prepare, pool_gradient_run, twi_free},
    {0},
};
