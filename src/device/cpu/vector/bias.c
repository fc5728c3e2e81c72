/* bias.c - biases and their gradient on our own loops (rows "vector"), channels last. */
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#include <string.h>

#define TYPES (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

static tw_status accepts(const twi_prepare *p)
{
    bool last = strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NHWC") == 0 && p->inputs[0].shape.rank > 0 &&
                p->inputs[0].elements > 0;
    return last ? TW_OK : TW_UNIMPLEMENTED;
}

/* BiasAdd (value, bias) */
static tw_status bias_prepare(twi_prepare *p)
{
    p->can_overwrite[0] = true;
    return TW_OK;
}

static tw_status bias_run(const twi_run *r)
{
    int64_t elements = r->input_operands[0].elements, channels = r->input_operands[1].elements;
    twi_rows_job job = {.form = twi_form_of(r->input_operands[0].dtype), .rows = elements / channels,
                        .channels = channels, .x = r->inputs[0], .bias = r->inputs[1], .out = r->outputs[0]};
    twi_team_run(elements > TWI_CHUNK ? r->threads : 1, twi_loops_best()->add_bias, &job, job.rows);
    return TW_OK;
}

/* BiasAddGrad (out_backprop) */
static tw_status bias_gradient_prepare(twi_prepare *p)
{
    int64_t channels = p->outputs[0].elements;
    p->workspace = (size_t)(twi_row_chunks(p->inputs[0].elements / channels) * channels) * sizeof(float);
    return TW_OK;
}

static tw_status bias_gradient_run(const twi_run *r)
{
    int64_t channels = r->output_operands[0].elements;
    twi_form form = twi_form_of(r->input_operands[0].dtype);
    twi_sum_columns(r->threads, form, r->inputs[0], r->input_operands[0].elements / channels, channels, r->workspace,
                    form, r->outputs[0]);
    return TW_OK;
}

const twi_kernel twi_vector_bias_kernels[] = {
    {"BiasAdd", "vector", TYPES, bias_prepare, bias_run, NULL, .accepts = accepts},
    {"BiasAddGrad", "vector", TYPES, bias_gradient_prepare, bias_gradient_run, NULL, .accepts = accepts},
    {0},
};
