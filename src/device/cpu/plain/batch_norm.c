/* batch_norm.c - FusedBatchNorm (three versions), _BatchNormRelu and their gradients in plain C, in float.
 *
 * Rows are all pixels of all images or volumes, x [rows, C]. Sums run over the rows in order, in double, one block of
 * channels a job. */
#include "base/memory.h"
#include "device/cpu/plain/typed.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { CHANNEL_BLOCK = 16 };

typedef struct batch_norm {
    int64_t rows, channels;
    float epsilon;
    bool training; /* mean and variance are those of the batch */
    bool relu;     /* stands behind */
    bool has_side; /* an image is added before the ReLU */
    int gradients; /* inputs that are added, the first ones; forward none */
} batch_norm;

static inline int64_t block_size(const batch_norm *b, int64_t begin)
{
    return b->channels - begin < CHANNEL_BLOCK ? b->channels - begin : CHANNEL_BLOCK;
}

static void fill(float *to, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = value;
}

/* Biased mean and variance of a block of channels. */
static void find_moments(const batch_norm *b, const float *x, int64_t begin, int64_t count, float *mean,
                         float *variance)
{
    double sums[CHANNEL_BLOCK] = {0}, squares[CHANNEL_BLOCK] = {0};
    for (int64_t row = 0; row < b->rows; row++)
        for (int64_t c = 0; c < count; c++)
            sums[c] += x[row * b->channels + begin + c];
    for (int64_t c = 0; c < count; c++)
        sums[c] /= (double)b->rows;
    for (int64_t row = 0; row < b->rows; row++)
        for (int64_t c = 0; c < count; c++) {
            double difference = x[row * b->channels + begin + c] - sums[c];
            squares[c] += difference * difference;
        }
    for (int64_t c = 0; c < count; c++) {
        mean[c] = (float)sums[c];
        variance[c] = (float)(squares[c] / (double)b->rows);
    }
}

/* Mean and variance are those of the block. */
static void normalize(const twi_run *r, const float *mean, const float *variance, int64_t begin, int64_t count)
{
    const batch_norm *b = r->state;
    const float *x = r->inputs[0], *scale = r->inputs[1], *offset = r->inputs[2];
    const float *side = b->has_side ? r->inputs[5] : NULL;
    float *y = r->outputs[0];
    float factors[CHANNEL_BLOCK];
    for (int64_t c = 0; c < count; c++)
        factors[c] = scale[begin + c] / sqrtf(variance[c] + b->epsilon);
    for (int64_t row = 0; row < b->rows; row++)
        for (int64_t c = 0; c < count; c++) {
            int64_t at = row * b->channels + begin + c;
            y[at] = (x[at] - mean[c]) * factors[c] + offset[begin + c];
            if (side)
                y[at] += side[at];
            if (b->relu && y[at] <= 0)
                y[at] = 0;
        }
}

static void normalize_by_batch(const twi_run *r)
{
    const batch_norm *b = r->state;
    float *batch_mean = r->outputs[1], *batch_variance = r->outputs[2], *mean = r->outputs[3], *variance = r->outputs[4];
    double bessel = (double)b->rows / (b->rows > 1 ? (double)(b->rows - 1) : 1);
    if (b->rows == 0) {
        for (int i = 1; i < 5; i++)
            fill(r->outputs[i], b->channels, i < 3 ? NAN : 0);
        return;
    }
    TWI_PARALLEL_LOOP(r)
    for (int64_t begin = 0; begin < b->channels; begin += CHANNEL_BLOCK) {
        int64_t count = block_size(b, begin);
        find_moments(b, r->inputs[0], begin, count, mean + begin, variance + begin);
        normalize(r, mean + begin, variance + begin, begin, count);
        for (int64_t c = begin; c < begin + count; c++) {
            batch_mean[c] = mean[c];
            batch_variance[c] = (float)(variance[c] * bessel);
        }
    }
}

static void normalize_by_given(const twi_run *r)
{
    const batch_norm *b = r->state;
    const float *mean = r->inputs[3], *variance = r->inputs[4];
    TWI_PARALLEL_LOOP(r)
    for (int64_t begin = 0; begin < b->channels; begin += CHANNEL_BLOCK)
        normalize(r, mean + begin, variance + begin, begin, block_size(b, begin));
    for (int i = 0; i < 2 && b->channels; i++) {
        if (b->rows)
            memcpy(r->outputs[1 + i], r->inputs[3 + i], (size_t)b->channels * sizeof(float));
        else /* as TensorFlow has it of no rows, whatever is given */
            fill(r->outputs[1 + i], b->channels, NAN);
        memcpy(r->outputs[3 + i], r->inputs[3 + i], (size_t)b->channels * sizeof(float));
    }
}

static void clear_outputs(const twi_run *r, int from)
{
    for (int i = from; i < r->num_outputs; i++)
        twi_clear(r->outputs[i], r->output_operands[i].bytes);
}

/* Inputs x, scale, offset, mean, variance and perhaps a side. Outputs y, batch mean, batch variance (with Bessel's
 * correction), and for the gradient mean and biased variance; the third reserve space of V3 means nothing. When mean
 * and variance are given, all four are they. */
static tw_status batch_norm_float(const twi_run *r)
{
    const batch_norm *b = r->state;
    if (b->training)
        normalize_by_batch(r);
    else
        normalize_by_given(r);
    clear_outputs(r, 5);
    return TW_OK;
}

/* The gradient of what a batch norm gave: the sum of those given, where the ReLU behind it was open. */
static float gradient_at(const twi_run *r, int64_t at, int64_t c)
{
    const batch_norm *b = r->state; /* and the inputs behind the gradients: x, scale, mean, variance, offset, y */
    const float *const *in = (const float *const *)r->inputs + b->gradients;
    float dy = ((const float *)r->inputs[0])[at];
    if (b->gradients > 1)
        dy += ((const float *)r->inputs[1])[at];
    if (!b->relu)
        return dy;
    float factor = in[1][c] / sqrtf(in[3][c] + b->epsilon);
    float y = b->has_side ? in[5][at] : (in[0][at] - in[2][c]) * factor + in[4][c];
    return y > 0 ? dy : 0;
}

/* Inputs dy, x, scale, mean, variance; outputs dx, dscale, doffset. With a ReLU there may be two dy, an offset and the
 * ReLU's output follow, and the side's gradient is an output. With n = (x - mean) / sqrt(variance + epsilon):
 * doffset = sum of dy, dscale = sum of dy n; dx = scale / sqrt(variance + epsilon) * dy when mean and variance were
 * given, and when they were x's own, * (dy - mean of dy - n mean of dy n). */
static tw_status batch_norm_grad_float(const twi_run *r)
{
    const batch_norm *b = r->state;
    const void *const *in = r->inputs + b->gradients;
    const float *x = in[0], *scale = in[1], *mean = in[2], *variance = in[3];
    float *dx = r->outputs[0], *dscale = r->outputs[1], *doffset = r->outputs[2];
    float *dside = b->has_side ? r->outputs[3] : NULL;
    double rows = b->rows ? (double)b->rows : 1;
    TWI_PARALLEL_LOOP(r)
    for (int64_t begin = 0; begin < b->channels; begin += CHANNEL_BLOCK) {
        int64_t count = block_size(b, begin);
        double sums[CHANNEL_BLOCK] = {0}, products[CHANNEL_BLOCK] = {0};
        for (int64_t row = 0; row < b->rows; row++)
            for (int64_t c = 0; c < count; c++) {
                int64_t at = row * b->channels + begin + c;
                float dy = gradient_at(r, at, begin + c);
                sums[c] += dy;
                products[c] += (double)dy * (x[at] - mean[begin + c]);
            }
        float inverse[CHANNEL_BLOCK], mean_dy[CHANNEL_BLOCK] = {0}, mean_product[CHANNEL_BLOCK] = {0};
        for (int64_t c = 0; c < count; c++) {
            double root = 1 / sqrt((double)variance[begin + c] + b->epsilon);
            inverse[c] = (float)root;
            doffset[begin + c] = (float)sums[c];
            dscale[begin + c] = (float)(products[c] * root);
            if (b->training) {
                mean_dy[c] = (float)(sums[c] / rows);
                mean_product[c] = (float)(products[c] / rows * root * root);
            }
        }
        for (int64_t row = 0; row < b->rows; row++)
            for (int64_t c = 0; c < count; c++) {
                int64_t at = row * b->channels + begin + c;
                float centred = x[at] - mean[begin + c];
                float dy = gradient_at(r, at, begin + c);
                if (dside)
                    dside[at] = dy;
                dx[at] = scale[begin + c] * inverse[c] * (dy - mean_dy[c] - centred * mean_product[c]);
            }
    }
    clear_outputs(r, b->has_side ? 4 : 3);
    return TW_OK;
}

TWI_WIDENED(batch_norm)
TWI_WIDENED(batch_norm_grad)

static tw_status accepts(const twi_prepare *p)
{
    if (twi_attr_string(p->attrs, "data_format", "NHWC")[1] == 'C')
        return twi_fail(p->error, TW_UNIMPLEMENTED,
                        "The CPU implementation of FusedBatchNorm only supports NHWC tensor format for now.");
    return TW_OK;
}

/* Images are `gradients` inputs and x; behind them there are `num_vectors` [C] that are read, of all_vectors; then,
 * with a side, another image. */
static tw_status prepare_images(twi_prepare *p, bool relu, int gradients, int num_vectors, int all_vectors)
{
    char texts[2][128];
    int first_vector = gradients + 1, last_image = first_vector + all_vectors;
    bool has_side = relu && twi_attr_int(p->attrs, "N", 0) > 0;
    tw_shape x = p->inputs[gradients].shape;
    if (x.rank != 4 && x.rank != 5)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "the image must have rank 4, or 5 with a depth");
    int64_t channels = x.dims[x.rank - 1], rows = 1;
    for (int i = 0; i + 1 < x.rank; i++)
        rows *= x.dims[i];
    for (int i = first_vector; i < first_vector + num_vectors; i++)
        if (p->inputs[i].elements != channels)
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "input %d has %lld elements, the image has %lld channels",
                            i, (long long)p->inputs[i].elements, (long long)channels);
    for (int i = 0; i < gradients + has_side; i++) {
        int image = i < gradients ? i : last_image;
        if (!tw_shape_equal(p->inputs[image].shape, x))
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "input %d has shape %s, the image %s", image,
                            tw_shape_text(p->inputs[image].shape, texts[0], sizeof texts[0]),
                            tw_shape_text(x, texts[1], sizeof texts[1]));
    }
    batch_norm *state = twi_alloc(sizeof *state);
    if (!state)
        return twi_fail_memory(p->error, "preparing a batch norm");
    *state = (batch_norm){rows, channels,
                          twi_attr_float(p->attrs, "epsilon", 0.0001f),
                          twi_attr_bool(p->attrs, "is_training", true), relu, has_side, gradients};
    p->state = state;
    p->workspace = twi_widened_bytes(p);
    return TW_OK;
}

static tw_status prepare_forward(twi_prepare *p, bool relu)
{
    return prepare_images(p, relu, 0, twi_attr_bool(p->attrs, "is_training", true) ? 2 : 4, 4);
}

static tw_status prepare_batch_norm(twi_prepare *p)
{
    return prepare_forward(p, false);
}

static tw_status prepare_batch_norm_relu(twi_prepare *p)
{
    return prepare_forward(p, true);
}

static tw_status prepare_batch_norm_grad(twi_prepare *p)
{
    return prepare_images(p, false, 1, 3, 3);
}

static tw_status prepare_batch_norm_relu_grad(twi_prepare *p)
{
    return prepare_images(p, true, (int)twi_attr_int(p->attrs, "M", 1), 4, 4);
}

#define FLOAT_ROW(op, prepare, f)                                                                                      \
    {op, "plain", TWI_TYPE(TW_FLOAT32), prepare, f##_float, twi_free, .accepts = accepts}
#define ROWS(op, prepare, f)                                                                                           \
    FLOAT_ROW(op, prepare, f), {op, "plain", TWI_NARROW_TYPES, prepare, f##_widened, twi_free, .accepts = accepts}

const twi_kernel twi_cpu_batch_norm_kernels[] = {
    FLOAT_ROW("FusedBatchNorm", prepare_batch_norm, batch_norm),
    ROWS("FusedBatchNormV2", prepare_batch_norm, batch_norm),
    ROWS("FusedBatchNormV3", prepare_batch_norm, batch_norm),
    FLOAT_ROW("FusedBatchNormGrad", prepare_batch_norm_grad, batch_norm_grad),
    ROWS("FusedBatchNormGradV2", prepare_batch_norm_grad, batch_norm_grad),
    ROWS("FusedBatchNormGradV3", prepare_batch_norm_grad, batch_norm_grad),
    ROWS("_BatchNormRelu", prepare_batch_norm_relu, batch_norm),
    ROWS("_BatchNormReluGrad", prepare_batch_norm_relu_grad, batch_norm_grad),
    {0},
};
