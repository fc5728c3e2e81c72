/* normalization.c - local response normalization and its gradient on our own loops (rows "vector"), images NHWC.
 * Never here:  pools joined with it (pool_lrn.c), batch norms (batch_norm.c). */
#include "base/memory.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#define TYPES (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

/* LRN (input), LRNGrad (input_grads, input_image, output_image) */
static tw_status lrn_prepare(twi_prepare *p)
{
    const twi_operand *x = &p->inputs[p->num_inputs > 1];
    if (x->shape.rank < 1 || x->elements == 0)
        return TW_UNIMPLEMENTED;
    int64_t channels = x->shape.dims[x->shape.rank - 1];
    twi_image_job job = {.form = twi_form_of(x->dtype), .lrn = twi_lrn_of(p->attrs, channels),
                         .pixels = x->elements / channels};
    if (!twi_lrn_fits(&job.lrn))
        return TW_UNIMPLEMENTED;
    job.scratch = job.lrn_scratch = twi_lrn_scratch(&job.lrn);
    p->workspace = job.scratch * (size_t)p->threads;
    return twi_keep(p, &job, sizeof job);
}

static tw_status lrn_run(const twi_run *r)
{
    bool gradient = r->num_inputs > 1;
    twi_image_job job = *(const twi_image_job *)r->state;
    job.input = r->inputs[gradient];
    job.gradient = gradient ? r->inputs[0] : NULL;
    job.normalized = gradient ? r->inputs[2] : NULL;
    job.output = r->outputs[0];
    job.workspace = r->workspace;
    twi_team_run(r->threads, twi_loops_best()->lrn, &job, (job.pixels + TWI_LRN_PIXELS - 1) / TWI_LRN_PIXELS);
    return TW_OK;
}

const twi_kernel twi_vector_normalization_kernels[] = {
    {"LRN", "vector", TYPES, lrn_prepare, lrn_run, twi_free},
    {"LRNGrad", "vector", TYPES, lrn_prepare, lrn_run, twi_free},
    {0},
};
