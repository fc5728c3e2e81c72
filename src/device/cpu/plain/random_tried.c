/* random_tried.c - random numbers that are drawn until one fits: gamma's and Poisson's distributions, as TensorFlow
 * draws them, bit for bit but for what logarithms give. Each element has a place of its own in the stream, so any
 * thread may make it. */
#include "device/cpu/plain/random_double.h"
#include "device/state/random.h"
#include "tensor/tensor.h"

#include <math.h>

/* Uniform numbers, two of each block of the stream, the second first; and normal ones from blocks of their own. */
typedef struct drawing {
    twi_philox *philox;
    double uniform[2], normal[2];
    int uniforms, normals;
} drawing;

static double next_uniform(drawing *d)
{
    if (d->uniforms == 0) {
        uint32_t words[4];
        twi_philox_next(d->philox, words);
        d->uniform[0] = twi_uniform_double(words[0], words[1]);
        d->uniform[1] = twi_uniform_double(words[2], words[3]);
        d->uniforms = 2;
    }
    return d->uniform[--d->uniforms];
}

static double next_normal(drawing *d)
{
    if (d->normals == 0) {
        uint32_t words[4];
        twi_philox_next(d->philox, words);
        twi_normal_pair_double(words, d->normal);
        d->normals = 2;
    }
    return d->normal[--d->normals];
}

/* Marsaglia and Tsang's method: https://doi.org/10.1145/358407.358414. Below 1, of alpha + 1. */
static double draw_gamma(drawing *d, double alpha)
{
    double shifted = alpha + (alpha < 1 ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt(shifted);
    if (alpha == 1)
        return -log1p(-next_uniform(d));
    for (;;) {
        double x = next_normal(d), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        double u = next_uniform(d);
        if (u < 1 - 0.0331 * (x * x) * (x * x) || log(u) < 0.5 * x * x + shifted * (1 - v + log(v)))
            return shifted * v * (alpha < 1 ? pow(next_uniform(d), 1 / alpha) : 1);
    }
}

/* Knuth: how many uniform numbers have to be multiplied. */
static double draw_few(drawing *d, double rate)
{
    double limit = exp(-rate), product = 1, count = 0;
    while ((product *= next_uniform(d)) > limit)
        count++;
    return count;
}

/* Hoermann's transformed rejection: https://doi.org/10.1016/0167-6687(93)90997-4. `most`: what the output can hold. */
static double draw_many(drawing *d, double rate, double most)
{
    int sign;
    double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b, inverse = 1.1239 + 1.1328 / (b - 3.4);
    for (;;) {
        double u = next_uniform(d) - 0.5, v = next_uniform(d), shifted = 0.5 - fabs(u);
        double k = floor((2 * a / shifted + b) * u + rate + 0.43);
        if (k > most)
            continue;
        if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2))
            return k;
        if (k < 0 || (shifted < 0.013 && v > shifted))
            continue;
        if (log(v * inverse / (a / (shifted * shifted) + b)) <= -rate + k * log(rate) - lgamma_r(k + 1, &sign))
            return k;
    }
}

static double draw_poisson(drawing *d, double rate, double most)
{
    return rate < 10 ? draw_few(d, rate) : isinf(rate) ? most : draw_many(d, rate, most);
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

/* The largest number of a type; beyond, infinity. */
static double most_of(tw_dtype dtype)
{
    return dtype == TW_INT32     ? INT32_MAX
           : dtype == TW_INT64   ? 9223372036854774784.0
           : dtype == TW_FLOAT16 ? 65504
                                 : INFINITY;
}

static void put(tw_dtype dtype, void *to, int64_t i, double value)
{
    switch (dtype) {
    case TW_FLOAT64:
        ((double *)to)[i] = value;
        break;
    case TW_FLOAT32:
        ((float *)to)[i] = (float)value;
        break;
    case TW_FLOAT16:
        ((uint16_t *)to)[i] = tw_float_to_half((float)value);
        break;
    case TW_INT64:
        ((int64_t *)to)[i] = (int64_t)value;
        break;
    default:
        ((int32_t *)to)[i] = (int32_t)value;
    }
}

/* Input 1 are parameters; for each, samples. */
static tw_status draw(const twi_run *r, bool gamma)
{
    const twi_operand *each = &r->input_operands[1], *out = &r->output_operands[0];
    tw_tensor parameters = {.dtype = each->dtype, .data = (void *)r->inputs[1]};
    int64_t count = each->elements, samples = count ? out->elements / count : 0;
    double most = most_of(out->dtype);
    for (int64_t i = 0; i < count; i++)
        if (!(tw_tensor_value(&parameters, i) >= 0))
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %s[%lld] is %g, expected 0 or more", r->node,
                            gamma ? "alpha" : "rate", (long long)i, tw_tensor_value(&parameters, i));
    twi_philox start = twi_random_take(r->state, (uint64_t)out->elements * TWI_RANDOM_BLOCKS);
#pragma omp parallel for num_threads(out->elements > 64 ? r->threads : 1)
    for (int64_t i = 0; i < out->elements; i++) {
        twi_philox own = start;
        drawing d = {.philox = &own};
        double parameter = tw_tensor_value(&parameters, i / samples);
        twi_philox_skip(&own, (uint64_t)i * TWI_RANDOM_BLOCKS);
        put(out->dtype, r->outputs[0], i % samples * count + i / samples,
            gamma ? draw_gamma(&d, parameter) : draw_poisson(&d, parameter, most));
    }
    return TW_OK;
}

static tw_status run_gamma(const twi_run *r)
{
    return draw(r, true);
}

static tw_status run_poisson(const twi_run *r)
{
    return draw(r, false);
}

const twi_kernel twi_cpu_random_tried_kernels[] = {
    {"RandomGamma", "plain", 0, twi_random_prepare, run_gamma},
    {"RandomPoissonV2", "plain", 0, twi_random_prepare, run_poisson},
    {0},
};
