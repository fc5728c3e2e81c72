/* depthwise.c - DepthwiseConv2dNative with one filter a channel on our own loops (row "vector"), images NHWC. */
#include "base/memory.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#define TYPES (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

static tw_status depthwise_prepare(twi_prepare *p)
{
    twi_convolution c;
    const twi_operand *image = &p->inputs[0], *filter = &p->inputs[1];
    tw_status status =
        twi_convolution_lay(p->attrs, TWI_DEPTHWISE, image->shape, filter->shape, p->outputs[0].shape, &c, p->error);
    if (status != TW_OK)
        return status;
    if (c.window.channel_axis != 3 || c.in_channels != c.out_channels || image->elements == 0 ||
        p->outputs[0].elements == 0)
        return TW_UNIMPLEMENTED;
    twi_depthwise_job job = {.form = twi_form_of(image->dtype),
                             .window = c.window,
                             .rows = c.batch * c.window.output[0],
                             .channels = c.in_channels};
    return twi_keep(p, &job, sizeof job);
}

static tw_status depthwise_run(const twi_run *r)
{
    twi_depthwise_job job = *(const twi_depthwise_job *)r->state;
    job.input = r->inputs[0];
    job.filter = r->inputs[1];
    job.output = r->outputs[0];
    twi_team_run(r->threads, twi_loops_best()->depthwise, &job, job.rows);
    return TW_OK;
}

const twi_kernel twi_vector_depthwise_kernels[] = {
    {"DepthwiseConv2dNative", "vector", TYPES, depthwise_prepare, depthwise_run, twi_free},
    {0},
};
