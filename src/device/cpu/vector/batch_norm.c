/* batch_norm.c - FusedBatchNorm, its three versions, _BatchNormRelu and their gradients, on our own loops (rows
 * "vector"). Images NHWC and volumes NDHWC are matrices here: a row a pixel. Every pass divides the rows among
 * the team.
 * Lives here:  float and bfloat16, with moments in float.
 * Never here:  the loops (loops.inl), other types and layouts (plain/batch_norm.c). */
#include "base/memory.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#include <math.h>
#include <string.h>

typedef struct batch_norm {
    int64_t rows, channels, chunks;
    float epsilon;
    bool training; /* mean and variance are the batch's own */
    bool relu;     /* stands behind */
    bool has_side; /* an image is added before the ReLU */
    int gradients; /* the gradient of the output is the sum of so many inputs, which come first; forward none */
} batch_norm;

static bool is_like(const twi_operand *a, const twi_operand *b)
{
    return a->dtype == b->dtype && tw_shape_equal(a->shape, b->shape);
}

/* Behind x there are `num_vectors` that are read, of `all_vectors`; then the side or, of a gradient, y. */
static tw_status prepare(twi_prepare *p, bool relu, int gradients, int num_vectors, int all_vectors)
{
    const twi_operand *x = &p->inputs[gradients], *vectors = x + 1;
    bool has_side = relu && twi_attr_int(p->attrs, "N", 0) > 0;
    if (twi_attr_string(p->attrs, "data_format", "NHWC")[1] == 'C' || x->shape.rank < 4 || x->elements == 0)
        return TW_UNIMPLEMENTED;
    int64_t channels = x->shape.dims[x->shape.rank - 1];
    for (int i = 0; i < num_vectors; i++)
        if (vectors[i].elements != channels || vectors[i].dtype != TW_FLOAT32)
            return TW_UNIMPLEMENTED;
    for (int i = 0; i < gradients; i++)
        if (!is_like(&p->inputs[i], x))
            return TW_UNIMPLEMENTED;
    if (has_side && !is_like(&vectors[all_vectors], x))
        return TW_UNIMPLEMENTED;
    batch_norm b = {
        .rows = x->elements / channels,
        .channels = channels,
        .chunks = twi_row_chunks(x->elements / channels),
        .epsilon = twi_attr_float(p->attrs, "epsilon", 0.0001f),
        .training = twi_attr_bool(p->attrs, "is_training", true),
        .relu = relu,
        .has_side = has_side,
        .gradients = gradients,
    };
    for (int i = 0; i <= gradients; i++) /* the last pass puts a number where it has read one: with a side only of x */
        p->can_overwrite[i] = i == gradients || !has_side;
    /* two sums a chunk, and three vectors */
    p->workspace = (size_t)((2 * b.chunks + 3) * channels) * sizeof(float);
    return twi_keep(p, &b, sizeof b);
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

/* Inputs x, scale, offset, mean, variance and perhaps a side; outputs y, batch mean, batch variance (with Bessel's
 * correction), mean, variance, and in version 3 one that means nothing. Not in training all four moments are the given
 * ones. */
static tw_status forward(twi_prepare *p, bool relu)
{
    return prepare(p, relu, 0, twi_attr_bool(p->attrs, "is_training", true) ? 2 : 4, 4);
}

static tw_status forward_prepare(twi_prepare *p)
{
    return forward(p, false);
}

static tw_status relu_forward_prepare(twi_prepare *p)
{
    return forward(p, true);
}

/* Each chunk has its own mean and the squares around it; the squares around the mean of all are those and the squares
 * of the distances between the means. */
static void find_moments(const twi_run *r, const twi_rows_job *job)
{
    const batch_norm *b = r->state;
    float *batch_mean = r->outputs[1], *batch_variance = r->outputs[2], *mean = r->outputs[3],
          *variance = r->outputs[4];
    double rows = (double)b->rows, bessel = rows / (rows > 1 ? rows - 1 : 1);
    twi_team_run(r->threads, twi_loops_best()->sum_moments, job, b->chunks);
    for (int64_t c = 0; c < b->channels; c++) {
        double all = sum_of_chunks(b, job->sums, c) / rows, squares = sum_of_chunks(b, job->products, c);
        for (int64_t k = 0; k < b->chunks; k++) {
            double count = (double)(k + 1 < b->chunks ? TWI_CHUNK_ROWS : b->rows - k * TWI_CHUNK_ROWS);
            double distance = job->sums[k * b->channels + c] / count - all;
            squares += count * distance * distance;
        }
        batch_mean[c] = mean[c] = (float)all;
        variance[c] = (float)(squares / rows);
        batch_variance[c] = (float)(variance[c] * bessel);
    }
}

static void find_factors(const batch_norm *b, const float *scale, const float *variance, float *factor)
{
    for (int64_t c = 0; c < b->channels; c++)
        factor[c] = scale[c] / sqrtf(variance[c] + b->epsilon);
}

static tw_status forward_run(const twi_run *r)
{
    const batch_norm *b = r->state;
    size_t bytes = (size_t)b->channels * sizeof(float);
    const float *variance = r->outputs[4];
    int64_t room = b->chunks * b->channels;
    float *sums = r->workspace, *products = sums + room, *factor = products + room;
    twi_rows_job job = {.form = twi_form_of(r->input_operands[0].dtype), .rows = b->rows, .channels = b->channels,
                        .x = r->inputs[0], .relu = b->relu, .side = b->has_side ? r->inputs[5] : NULL,
                        .out = r->outputs[0], .sums = sums, .products = products, .mean = r->outputs[3],
                        .factor = factor, .offset = r->inputs[2]};
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
    find_factors(b, r->inputs[1], variance, factor);
    twi_team_run(r->threads, twi_loops_best()->normalize_rows, &job, b->rows);
    clear_outputs(r, 5);
    return TW_OK;
}

/* Inputs dy, x, scale, mean, variance; outputs dx, dscale, doffset and what means nothing. */
static tw_status gradient_prepare(twi_prepare *p)
{
    return prepare(p, false, 1, 3, 3);
}

/* One or two dy that are added, x, scale, mean, variance, offset and, with a side, y. Without one the sign of y is that
 * of what is computed again. */
static tw_status relu_gradient_prepare(twi_prepare *p)
{
    return prepare(p, true, (int)twi_attr_int(p->attrs, "M", 1), 4, 4);
}

static tw_status gradient_run(const twi_run *r)
{
    const batch_norm *b = r->state;
    const twi_loops *loops = twi_loops_best();
    const void *const *inputs = r->inputs + b->gradients; /* x and what follows */
    const float *variance = inputs[3];
    float *dscale = r->outputs[1], *doffset = r->outputs[2];
    int64_t room = b->chunks * b->channels;
    float *sums = r->workspace, *products = sums + room, *factor = products + room;
    float *mean_dy = factor + b->channels, *mean_product = mean_dy + b->channels;
    twi_rows_job job = {.form = twi_form_of(r->input_operands[0].dtype), .rows = b->rows, .channels = b->channels,
                        .x = inputs[0], .dy = r->inputs[0], .more_dy = b->gradients > 1 ? r->inputs[1] : NULL,
                        .relu = b->relu, .y = b->has_side ? inputs[5] : NULL,
                        .masked = b->has_side ? r->outputs[3] : NULL, .out = r->outputs[0], .sums = sums,
                        .products = products, .mean = inputs[2], .factor = factor,
                        .offset = b->relu ? inputs[4] : NULL, .mean_dy = mean_dy, .mean_product = mean_product};
    find_factors(b, inputs[1], variance, factor);
    twi_team_run(r->threads, loops->sum_products, &job, b->chunks);
    for (int64_t c = 0; c < b->channels; c++) {
        double sum = sum_of_chunks(b, sums, c), product = sum_of_chunks(b, products, c);
        double root = 1 / sqrt((double)variance[c] + b->epsilon);
        doffset[c] = (float)sum;
        dscale[c] = (float)(product * root);
        mean_dy[c] = b->training ? (float)(sum / (double)b->rows) : 0;
        mean_product[c] = b->training ? (float)(product / (double)b->rows * root * root) : 0;
    }
    if (b->has_side) { /* the gradient that the ReLU let pass is there now */
        job.dy = job.masked;
        job.more_dy = NULL;
        job.relu = false;
    }
    twi_team_run(r->threads, loops->normalize_rows_gradient, &job, b->rows);
    if (!b->relu)
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
    {"_BatchNormRelu", "vector", TYPES, relu_forward_prepare, forward_run, twi_free},
    {"_BatchNormReluGrad", "vector", TYPES, relu_gradient_prepare, gradient_run, twi_free},
    {0},
};
