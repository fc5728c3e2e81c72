/* nn.c - casts, activations, biases, max pools and local response normalization on our own loops (rows "vector").
 * Lives here:  one op a kernel, on float and bfloat16, images NHWC.
 * Never here:  the loops (loops.inl), fused ops (pool_lrn.c), other types and layouts (the plain kernels). */
#include "base/memory.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#include <string.h>

#define TYPES (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

/* ---- element by element ------------------------------------------------------------------------------------ */

/* Cast (x), between float and bfloat16 */
static tw_status cast_prepare(twi_prepare *p)
{
    tw_dtype from = p->inputs[0].dtype, to = p->outputs[0].dtype;
    bool known = (from == TW_FLOAT32 && to == TW_BFLOAT16) || (from == TW_BFLOAT16 && to == TW_FLOAT32);
    return known ? TW_OK : TW_UNIMPLEMENTED;
}

static tw_status cast_run(const twi_run *r)
{
    twi_elements_job job = {.form = twi_form_of(r->input_operands[0].dtype), .a = r->inputs[0], .out = r->outputs[0],
                            .elements = r->input_operands[0].elements};
    twi_team_run(r->threads, twi_loops_best()->cast, &job, (job.elements + TWI_CHUNK - 1) / TWI_CHUNK);
    return TW_OK;
}

/* Relu (features), ReluGrad (gradients, features) */
static tw_status relu_prepare(twi_prepare *p)
{
    p->can_overwrite[0] = true;
    p->can_overwrite[1] = p->num_inputs > 1;
    return TW_OK;
}

static tw_status relu_run(const twi_run *r)
{
    const twi_loops *loops = twi_loops_best();
    bool gradient = r->num_inputs > 1;
    twi_elements_job job = {twi_form_of(r->output_operands[0].dtype), r->inputs[0], gradient ? r->inputs[1] : NULL,
                            r->outputs[0], r->output_operands[0].elements};
    twi_team_run(r->threads, gradient ? loops->relu_gradient : loops->relu, &job,
                 (job.elements + TWI_CHUNK - 1) / TWI_CHUNK);
    return TW_OK;
}

/* ---- biases ------------------------------------------------------------------------------------------------ */

static bool has_channels_last(const twi_prepare *p)
{
    return strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NHWC") == 0 && p->inputs[0].shape.rank > 0 &&
           p->inputs[0].elements > 0;
}

/* BiasAdd (value, bias) */
static tw_status bias_prepare(twi_prepare *p)
{
    p->can_overwrite[0] = true;
    return has_channels_last(p) ? TW_OK : TW_UNIMPLEMENTED;
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
    if (!has_channels_last(p))
        return TW_UNIMPLEMENTED;
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

/* L2Loss (t): half the sum of squares, as if t were a matrix of 64 columns */
enum { LOSS_COLUMNS = 64 };

static tw_status loss_prepare(twi_prepare *p)
{
    int64_t chunks = twi_row_chunks(p->inputs[0].elements / LOSS_COLUMNS);
    p->workspace = (size_t)(chunks * LOSS_COLUMNS) * sizeof(float);
    return TW_OK;
}

static tw_status loss_run(const twi_run *r)
{
    int64_t elements = r->input_operands[0].elements, rows = elements / LOSS_COLUMNS, chunks = twi_row_chunks(rows);
    float *sums = r->workspace;
    const uint16_t *narrow = r->inputs[0];
    const float *wide = r->inputs[0];
    double sum = 0;
    twi_rows_job job = {.form = twi_form_of(r->input_operands[0].dtype), .rows = rows, .channels = LOSS_COLUMNS,
                        .x = r->inputs[0], .sums = sums};
    twi_team_run(elements > TWI_CHUNK ? r->threads : 1, twi_loops_best()->sum_squares, &job, chunks);
    for (int64_t i = 0; i < chunks * LOSS_COLUMNS; i++)
        sum += sums[i];
    for (int64_t i = rows * LOSS_COLUMNS; i < elements; i++) {
        double x = job.form == TWI_BFLOATS ? tw_bfloat16_to_float(narrow[i]) : wide[i];
        sum += x * x;
    }
    if (job.form == TWI_BFLOATS)
        *(uint16_t *)r->outputs[0] = tw_float_to_bfloat16((float)(sum / 2));
    else
        *(float *)r->outputs[0] = (float)(sum / 2);
    return TW_OK;
}

/* ---- images ------------------------------------------------------------------------------------------------ */

static tw_status keep(twi_prepare *p, const twi_image_job *job)
{
    p->workspace = job->scratch * (size_t)p->threads;
    return twi_keep(p, job, sizeof *job);
}

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
    return keep(p, &job);
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
    return keep(p, &job);
}

static tw_status lrn_run(const twi_run *r)
{
    bool gradient = r->num_inputs > 1;
    twi_image_job job = *(const twi_image_job *)r->state;
    job.input = r->inputs[gradient];
    job.gradient = gradient ? r->inputs[0] : NULL;
    job.output = r->outputs[0];
    job.workspace = r->workspace;
    twi_team_run(r->threads, twi_loops_best()->lrn, &job, (job.pixels + TWI_LRN_PIXELS - 1) / TWI_LRN_PIXELS);
    return TW_OK;
}

const twi_kernel twi_vector_nn_kernels[] = {
    {"Cast", "vector", TYPES, cast_prepare, cast_run, NULL},
    {"Relu", "vector", TYPES, relu_prepare, relu_run, NULL},
    {"ReluGrad", "vector", TYPES, relu_prepare, relu_run, NULL},
    {"BiasAdd", "vector", TYPES, bias_prepare, bias_run, NULL},
    {"BiasAddGrad", "vector", TYPES, bias_gradient_prepare, bias_gradient_run, NULL},
    {"L2Loss", "vector", TYPES, loss_prepare, loss_run, NULL},
    {"MaxPool", "vector", TYPES, pool_prepare, pool_run, twi_free},
    {"MaxPoolGrad", "vector", TYPES, pool_prepare, pool_gradient_run, twi_free},
    {"LRN", "vector", TYPES, lrn_prepare, lrn_run, twi_free},
    {"LRNGrad", "vector", TYPES, lrn_prepare, lrn_run, twi_free},
    {0},
};
