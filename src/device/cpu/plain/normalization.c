/* normalization.c - LRN and its gradient in plain C, in float. */
#include "base/memory.h"
#include "device/cpu/plain/typed.h"

#include <math.h>
#include <omp.h>
#include <string.h>

typedef struct lrn {
    int64_t rows, channels, radius;
    float bias, alpha, beta;
} lrn;

/* x^-beta, x > 0 */
static inline float to_minus(float x, float beta)
{
    if (beta == 0.5f)
        return 1 / sqrtf(x);
    if (beta == 0.75f)
        return 1 / (sqrtf(x) * sqrtf(sqrtf(x)));
    return beta == 1 ? 1 / x : powf(x, -beta);
}

/* sums[c] = start + factor * sum over |j - c| <= radius of (values[j] * weights[j]) */
static void sum_neighbours(const lrn *l, const float *values, const float *weights, float start, float factor,
                           float *sums)
{
    for (int64_t c = 0; c < l->channels; c++)
        sums[c] = 0;
    for (int64_t shift = -l->radius; shift <= l->radius; shift++) {
        int64_t begin = shift < 0 ? -shift : 0, end = shift > 0 ? l->channels - shift : l->channels;
        TWI_VECTOR_LOOP
        for (int64_t c = begin; c < end; c++)
            sums[c] += values[c + shift] * weights[c + shift];
    }
    TWI_VECTOR_LOOP
    for (int64_t c = 0; c < l->channels; c++)
        sums[c] = start + factor * sums[c];
}

static tw_status lrn_float(const twi_run *r)
{
    const lrn *l = r->state;
    const float *x = r->inputs[0];
    float *y = r->outputs[0];
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < l->rows; row++) {
        const float *from = x + row * l->channels;
        float *to = y + row * l->channels;
        sum_neighbours(l, from, from, l->bias, l->alpha, to);
        for (int64_t c = 0; c < l->channels; c++)
            to[c] = from[c] * to_minus(to[c], l->beta);
    }
    return TW_OK;
}

/* With s the sums of the forward pass: dx_c = dy_c * s_c^-beta - 2 alpha beta x_c * sum of dy_j y_j / s_j, j around c.
 * Workspace: three rows a thread. */
static tw_status lrn_grad_float(const twi_run *r)
{
    const lrn *l = r->state;
    const float *dy = r->inputs[0], *x = r->inputs[1], *y = r->inputs[2];
    float *dx = r->outputs[0], *workspace = r->workspace;
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < l->rows; row++) {
        int64_t at = row * l->channels;
        float *sums = workspace + omp_get_thread_num() * 3 * l->channels, *ratios = sums + l->channels;
        float *around = ratios + l->channels;
        sum_neighbours(l, x + at, x + at, l->bias, l->alpha, sums);
        for (int64_t c = 0; c < l->channels; c++)
            ratios[c] = y[at + c] / sums[c];
        sum_neighbours(l, dy + at, ratios, 0, -2 * l->alpha * l->beta, around);
        for (int64_t c = 0; c < l->channels; c++)
            dx[at + c] = dy[at + c] * to_minus(sums[c], l->beta) + x[at + c] * around[c];
    }
    return TW_OK;
}

TWI_WIDENED(lrn)
TWI_WIDENED(lrn_grad)

static tw_status prepare_lrn(twi_prepare *p)
{
    tw_shape shape = p->inputs[0].shape;
    lrn *state = twi_alloc(sizeof *state);
    if (!state)
        return twi_fail_memory(p->error, "preparing LRN");
    state->channels = shape.dims[shape.rank - 1];
    state->rows = state->channels ? p->inputs[0].elements / state->channels : 0;
    state->radius = twi_attr_int(p->attrs, "depth_radius", 5);
    if (state->radius > state->channels)
        state->radius = state->channels;
    state->bias = twi_attr_float(p->attrs, "bias", 1);
    state->alpha = twi_attr_float(p->attrs, "alpha", 1);
    state->beta = twi_attr_float(p->attrs, "beta", 0.5f);
    p->state = state;
    p->workspace = twi_widened_bytes(p);
    if (p->num_inputs == 3)
        p->workspace += (size_t)p->threads * 3 * (size_t)state->channels * sizeof(float);
    return TW_OK;
}

#define ROWS(op, prepare, f)                                                                                           \
    {op, "plain", TWI_TYPE(TW_FLOAT32), prepare, f##_float, twi_free},                                                 \
        {op, "plain", TWI_NARROW_TYPES, prepare, f##_widened, twi_free}

const twi_kernel twi_cpu_normalization_kernels[] = {
    ROWS("LRN", prepare_lrn, lrn),
    ROWS("LRNGrad", prepare_lrn, lrn_grad),
    {0},
};
