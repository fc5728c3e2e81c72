/* vector_batch_norm.c - FusedBatchNorm, its three versions and their gradients, on our own loops (rows "vector").
 * Images NHWC are matrices here: a row a pixel. Every pass divides the rows among the team.
 * Lives here:  float and bfloat16, with moments in float.
 * Never here:  the loops (loops.inl), other types and layouts (normalization.c). */
#include "base/memory.h"
#include "device/cpu/loops.h"
#include "device/kernel.h"

#include <math.h>
#include <string.h>

typedef struct batch_norm {
    int64_t rows, channels, chunks;
    float epsilon;
    bool training; /* mean and variance are the batch's own */
} batch_norm;

static tw_status prepare(twi_prepare *p, int first_vector, int num_vectors)
{
    const twi_operand *x = &p->inputs[0];
    if (strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NHWC") != 0 || x->shape.rank != 4 || x->elements == 0)
        return TW_UNIMPLEMENTED;
    int64_t channels = x->shape.dims[3];
    for (int i = first_vector; i < first_vector + num_vectors; i++)
        if (p->inputs[i].elements != channels || p->inputs[i].dtype != TW_FLOAT32)
            return TW_UNIMPLEMENTED;
    batch_norm *b = twi_alloc(sizeof *b);
    if (!b)
        return twi_fail_memory(p->error, p->node);
    *b = (batch_norm){
        .rows = x->elements / channels,
        .channels = channels,
        .chunks = twi_row_chunks(x->elements / channels),
        .epsilon = twi_attr_float(p->attrs, "epsilon", 0.0001f),
        .training = twi_attr_bool(p->attrs, "is_training", true),
    };
    p->state = b;
    /* two sums a chunk, and three vectors */
    p->workspace = (size_t)((2 * b->chunks + 3) * channels) * sizeof(float);
    return TW_OK;
}

static double sum_of_chunks(const batch_norm *b, const float *sums, int64_t c)
{
    double sum = 0;
    for (int64_t k = 0; k < b->chunks; k++)
        sum += sums[k * b->channels + c];
    return sum;
}

static void clear_outputs(const twi_run *r, int from)
{
    for (int i = from; i < r->num_outputs; i++)
        if (r->output_operands[i].bytes)
            memset(r->outputs[i], 0, r->output_operands[i].bytes);
}

/* Inputs x, scale, offset, mean, variance; outputs y, batch mean, batch variance (with Bessel's correction), mean,
 * variance, and in version 3 one that means nothing. Not in training all four moments are the given ones. */
static tw_status forward_prepare(twi_prepare *p)
{
    return prepare(p, 1, twi_attr_bool(p->attrs, "is_training", true) ? 2 : 4);
}

static void find_moments(const twi_run *r, twi_rows_job *job)
{
    const batch_norm *b = r->state;
    const twi_loops *loops = twi_loops_best();
    float *batch_mean = r->outputs[1], *batch_variance = r->outputs[2], *mean = r->outputs[3], *variance = r->outputs[4];
    double rows = (double)b->rows, bessel = rows / (rows > 1 ? rows - 1 : 1);
    twi_team_run(r->threads, loops->sum_rows, job, b->chunks);
    for (int64_t c = 0; c < b->channels; c++)
        batch_mean[c] = mean[c] = (float)(sum_of_chunks(b, job->sums, c) / rows);
    job->mean = mean;
    twi_team_run(r->threads, loops->sum_squares, job, b->chunks);
    for (int64_t c = 0; c < b->channels; c++) {
        variance[c] = (float)(sum_of_chunks(b, job->sums, c) / rows);
        batch_variance[c] = (float)(variance[c] * bessel);
    }
}

static tw_status forward_run(const twi_run *r)
{
    const batch_norm *b = r->state;
    size_t bytes = (size_t)b->channels * sizeof(float);
    const float *scale = r->inputs[1], *variance = r->outputs[4];
    float *sums = r->workspace, *factor = sums + b->chunks * b->channels;
    twi_rows_job job = {.form = twi_form_of(r->input_operands[0].dtype), .rows = b->rows, .channels = b->channels,
                        .x = r->inputs[0], .out = r->outputs[0], .sums = sums, .factor = factor,
                        .offset = r->inputs[2]};
    if (b->training) {
        find_moments(r, &job);
    } else {
        job.mean = r->inputs[3];
        variance = r->inputs[4];
        for (int i = 0; i < 2; i++) {
            memcpy(r->outputs[1 + i], r->inputs[3 + i], bytes);
            memcpy(r->outputs[3 + i], r->inputs[3 + i], bytes);
        }
    }
    for (int64_t c = 0; c < b->channels; c++)
        factor[c] = scale[c] / sqrtf(variance[c] + b->epsilon);
    twi_team_run(r->threads, twi_loops_best()->normalize_rows, &job, b->rows);
    clear_outputs(r, 5);
    return TW_OK;
}

/* Inputs dy, x, scale, mean, variance; outputs dx, dscale, doffset and what means nothing. */
static tw_status gradient_prepare(twi_prepare *p)
{
    return prepare(p, 2, 3);
}

static tw_status gradient_run(const twi_run *r)
{
    const batch_norm *b = r->state;
    const twi_loops *loops = twi_loops_best();
    const float *scale = r->inputs[2], *variance = r->inputs[4];
    float *dscale = r->outputs[1], *doffset = r->outputs[2];
    float *sums = r->workspace, *products = sums + b->chunks * b->channels, *factor = products + b->chunks * b->channels;
    float *mean_dy = factor + b->channels, *mean_product = mean_dy + b->channels;
    twi_rows_job job = {.form = twi_form_of(r->input_operands[1].dtype), .rows = b->rows, .channels = b->channels,
                        .x = r->inputs[1], .dy = r->inputs[0], .out = r->outputs[0], .sums = sums,
                        .products = products, .mean = r->inputs[3], .factor = factor, .mean_dy = mean_dy,
                        .mean_product = mean_product};
    twi_team_run(r->threads, loops->sum_products, &job, b->chunks);
    for (int64_t c = 0; c < b->channels; c++) {
        double sum = sum_of_chunks(b, sums, c), product = sum_of_chunks(b, products, c);
        double root = 1 / sqrt((double)variance[c] + b->epsilon);
        factor[c] = scale[c] * (float)root;
        doffset[c] = (float)sum;
        dscale[c] = (float)(product * root);
        mean_dy[c] = b->training ? (float)(sum / (double)b->rows) : 0;
        mean_product[c] = b->training ? (float)(product / (double)b->rows * root * root) : 0;
    }
    twi_team_run(r->threads, loops->normalize_rows_gradient, &job, b->rows);
    clear_outputs(r, 3);
    return TW_OK;
}

#define TYPES (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

const twi_kernel twi_vector_batch_norm_kernels[] = {
    {"FusedBatchNorm", "vector", TYPES, forward_prepare, forward_run, twi_free},
    {"FusedBatchNormV2", "vector", TYPES, forward_prepare, forward_run, twi_free},
    {"FusedBatchNormV3", "vector", TYPES, forward_prepare, forward_run, twi_free},
    {"FusedBatchNormGrad", "vector", TYPES, gradient_prepare, gradient_run, twi_free},
    {"FusedBatchNormGradV2", "vector", TYPES, gradient_prepare, gradient_run, twi_free},
    {"FusedBatchNormGradV3", "vector", TYPES, gradient_prepare, gradient_run, twi_free},
    {0},
};
