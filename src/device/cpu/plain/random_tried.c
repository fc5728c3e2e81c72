/* random_tried.c - random numbers that are drawn until one fits: gamma's, Poisson's and binomial distributions, as
 * TensorFlow draws them, bit for bit but for what logarithms give. Each element has a place of its own in the stream,
 * so any thread may make it. */
#include "device/cpu/plain/broadcast.h"
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

/* Where hardly any number is one that the output can hold, nobody waits for such a one to be drawn. */
static double draw_poisson(drawing *d, double rate, double most)
{
    return rate < 10 ? draw_few(d, rate) : !(rate - most < 5 * sqrt(rate)) ? most : draw_many(d, rate, most);
}

/* How many geometric numbers have a sum of `count` at most. */
static double draw_few_of(drawing *d, double count, double probability)
{
    double sum = 0, drawn = 0;
    while ((sum += ceil(log(next_uniform(d)) / log1p(-probability))) <= count)
        drawn++;
    return drawn;
}

/* What Stirling's approximation of log(k!) lacks. */
static double stirling_tail(double k)
{
    static const double tails[] = {0.0810614667953272, 0.0413406959554092, 0.0276779256849983,  0.02079067210376509,
                                   0.0166446911898211, 0.0138761288230707, 0.0118967099458917,  0.0104112652619720,
                                   0.00925546218271273, 0.00833056343336287};
    double square = (k + 1) * (k + 1);
    return k <= 9 ? tails[(int)k] : (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* Hoermann's BTRS: https://doi.org/10.1080/00949659308811496. */
static double draw_many_of(drawing *d, double count, double probability)
{
    double deviation = sqrt(count * probability * (1 - probability)), b = 1.15 + 2.53 * deviation;
    double a = -0.0873 + 0.0248 * b + 0.01 * probability, c = count * probability + 0.5;
    double odds = probability / (1 - probability), alpha = (2.83 + 5.1 / b) * deviation;
    double m = floor((count + 1) * probability);
    for (;;) {
        double u = next_uniform(d), v = next_uniform(d);
        u -= 0.5;
        double shifted = 0.5 - fabs(u), k = floor((2 * a / shifted + b) * u + c);
        if (shifted >= 0.07 && v <= 0.92 - 4.2 / b)
            return k;
        if (k < 0 || k > count)
            continue;
        double most = (m + 0.5) * log((m + 1) / (odds * (count - m + 1))) +
                      (count + 1) * log((count - m + 1) / (count - k + 1)) +
                      (k + 0.5) * log(odds * (count - k + 1) / (k + 1)) + stirling_tail(m) + stirling_tail(count - m) -
                      stirling_tail(k) - stirling_tail(count - k);
        if (log(v * alpha / (a / (shifted * shifted) + b)) <= most)
            return k;
    }
}

/* A number as a type holds it. */
static double rounded(tw_dtype dtype, double x)
{
    return dtype == TW_FLOAT16 ? tw_half_to_float(tw_float_to_half((float)x)) : dtype == TW_FLOAT32 ? (float)x : x;
}

/* The generator stands at element i's place; few numbers have places that are nearer. `dtype`: that of the parameters,
 * in which TensorFlow chooses. */
static double draw_binomial(const twi_philox *start, int64_t i, tw_dtype dtype, double count, double probability)
{
    enum { BLOCKS_OF_FEW = 42 };
    twi_philox own = *start;
    drawing d = {.philox = &own};
    bool turned = probability > 0.5;
    double rare = turned ? rounded(dtype, 1 - probability) : probability;
    if (count <= 0 || probability <= 0)
        return 0;
    if (probability >= 1)
        return count;
    if (!isfinite(count) || isnan(probability))
        return NAN;
    bool few = !(rounded(dtype, count * rare) >= 10);
    twi_philox_skip(&own, (uint64_t)i * (few ? BLOCKS_OF_FEW : TWI_RANDOM_BLOCKS));
    double drawn = few ? draw_few_of(&d, count, rare) : draw_many_of(&d, count, rare);
    return turned ? count - drawn : drawn;
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

/* An input has parameters; for each, samples. `given` NULL: from the node's stream. */
static tw_status draw(const twi_run *r, bool gamma, int input, const twi_philox *given)
{
    const twi_operand *each = &r->input_operands[input], *out = &r->output_operands[0];
    tw_tensor parameters = {.dtype = each->dtype, .data = (void *)r->inputs[input]};
    int64_t count = each->elements, samples = count ? out->elements / count : 0;
    double most = most_of(out->dtype);
    for (int64_t i = 0; i < count; i++)
        if (!(tw_tensor_value(&parameters, i) >= 0))
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %s[%lld] is %g, expected 0 or more", r->node,
                            gamma ? "alpha" : "rate", (long long)i, tw_tensor_value(&parameters, i));
    twi_philox start = given ? *given : twi_random_take(r->state, (uint64_t)out->elements * TWI_RANDOM_BLOCKS);
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
    return draw(r, true, 1, NULL);
}

static tw_status run_poisson(const twi_run *r)
{
    return draw(r, false, 1, NULL);
}

/* shape, seed, alpha */
static tw_status run_stateless_gamma(const twi_run *r)
{
    twi_philox start = twi_random_seeded(r, 1);
    return draw(r, true, 2, &start);
}

/* shape, key, counter, algorithm, alpha */
static tw_status run_keyed_gamma(const twi_run *r)
{
    twi_philox start;
    tw_status status = twi_random_keyed(r, &start);
    return status == TW_OK ? draw(r, true, 4, &start) : status;
}

/* shape, seed, rate */
static tw_status run_stateless_poisson(const twi_run *r)
{
    twi_philox start = twi_random_seeded(r, 1);
    return draw(r, false, 2, &start);
}

/* The inputs from `first` on are counts and probabilities, which broadcast to the last axes. */
static tw_shape batch_of(const twi_run *r, int first)
{
    const twi_operand *counts = &r->input_operands[first], *probabilities = &r->input_operands[first + 1];
    const twi_operand *out = &r->output_operands[0];
    tw_shape batch = {counts->shape.rank > probabilities->shape.rank ? counts->shape.rank : probabilities->shape.rank};
    for (int i = 0; i < batch.rank; i++)
        batch.dims[i] = out->shape.dims[out->shape.rank - batch.rank + i];
    return batch;
}

static tw_status draw_binomials(const twi_run *r, int first, twi_philox start)
{
    const twi_operand *counts = &r->input_operands[first], *probabilities = &r->input_operands[first + 1];
    const twi_operand *out = &r->output_operands[0];
    tw_tensor n = {.dtype = counts->dtype, .data = (void *)r->inputs[first]};
    tw_tensor p = {.dtype = probabilities->dtype, .data = (void *)r->inputs[first + 1]};
    tw_shape batch = batch_of(r, first);
    twi_broadcast walk;
    if (out->elements == 0)
        return TW_OK;
    twi_broadcast_init(&walk, counts->shape, probabilities->shape, batch);
    int64_t batches = tw_shape_elements(batch), samples = out->elements / batches;
    double most = most_of(out->dtype);
#pragma omp parallel for num_threads(out->elements > 64 ? r->threads : 1)
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t of_counts, of_probabilities, along = i / samples % walk.run;
        twi_broadcast_start(&walk, i / samples / walk.run, &of_counts, &of_probabilities);
        double drawn = draw_binomial(&start, i, counts->dtype, tw_tensor_value(&n, of_counts + walk.x_moves * along),
                                     tw_tensor_value(&p, of_probabilities + walk.y_moves * along));
        bool is_whole = out->dtype == TW_INT32 || out->dtype == TW_INT64;
        put(out->dtype, r->outputs[0], i % samples * batches + i / samples,
            is_whole && isnan(drawn) ? -most : drawn > most ? most : drawn);
    }
    return TW_OK;
}

/* shape, seed, counts, probabilities */
static tw_status run_stateless_binomial(const twi_run *r)
{
    return draw_binomials(r, 2, twi_random_seeded(r, 1));
}

/* A variable, the algorithm, shape, counts, probabilities. The generator moves on as far as TensorFlow's. */
static tw_status run_kept_binomial(const twi_run *r)
{
    int64_t batches = tw_shape_elements(batch_of(r, 3)), all = r->output_operands[0].elements;
    int64_t samples = batches ? all / batches : 0;
    uint64_t groups = all ? (uint64_t)batches * 2 * 100 * ((uint64_t)samples + 3) / 4 : 0;
    twi_philox start;
    tw_status status = twi_random_kept(r, groups * TWI_RANDOM_BLOCKS, &start);
    return status == TW_OK ? draw_binomials(r, 3, start) : status;
}

/* ---- normal numbers between bounds ------------------------------------------------------------------------------ */

enum { MOST_TRIES = 1000 };

/* Bounds in standard deviations from the mean; the lower one is finite, and perhaps both are turned around the mean. */
typedef struct truncation {
    tw_dtype dtype;
    double mean, deviation, low, high;
} truncation;

/* The numbers of one block, and how many these are. */
static int draw_block(twi_philox *philox, tw_dtype dtype, bool normal, double out[4])
{
    uint32_t words[4];
    float pair[2];
    twi_philox_next(philox, words);
    if (dtype == TW_FLOAT64) {
        out[0] = twi_uniform_double(words[0], words[1]);
        out[1] = twi_uniform_double(words[2], words[3]);
        if (normal)
            twi_normal_pair_double(words, out);
        return 2;
    }
    for (int i = 0; i < 4; i += 2) {
        out[i] = twi_uniform_float(words[i]);
        out[i + 1] = twi_uniform_float(words[i + 1]);
        twi_normal_pair(words[i], words[i + 1], pair);
        for (int k = 0; k < 2 && normal; k++)
            out[i + k] = pair[k];
    }
    return 4;
}

/* Some numbers, and which of them are drawn: normal ones where many lie between the bounds; else uniform ones where
 * these are near each other; else exponential ones from the lower bound on (https://doi.org/10.1007/BF00143942). */
static int propose(twi_philox *philox, const truncation *t, double z[4], bool fits[4])
{
    const tw_dtype type = t->dtype;
    const double near = rounded(type, 1.3), low = t->low, root = rounded(type, sqrt(rounded(type, low * low) + 4));
    double drawn[4], second[4];
    if ((low < -near && t->high >= 0) || (t->high > near && low <= 0)) {
        int count = draw_block(philox, type, true, z);
        for (int i = 0; i < count; i++)
            fits[i] = z[i] >= low && z[i] <= t->high;
        return count;
    }
    int count = draw_block(philox, type, false, drawn);
    if (t->high - low < 2 * exp(0.5 + low * (low - root) / 4) / (low + root)) {
        draw_block(philox, type, false, second);
        for (int i = 0; i < count; i++) {
            z[i] = rounded(type, rounded(type, drawn[i] * rounded(type, t->high - low)) + low);
            fits[i] = second[i] <= exp(((low < 0 ? 0 : low * low) - z[i] * z[i]) / 2);
        }
        return count;
    }
    double alpha = rounded(type, (low + root) / 2);
    for (int i = 0; i < count / 2; i++) {
        z[i] = rounded(type, rounded(type, -log(drawn[2 * i]) / alpha) + low);
        double x = low < alpha ? alpha - z[i] : low - alpha;
        fits[i] = drawn[2 * i + 1] <= exp(-x * x / 2) && z[i] < t->high;
    }
    return count / 2;
}

/* Where element i of a batch lies in a tensor that is broadcast to it. */
static int64_t element_of(tw_shape batch, int64_t i, tw_shape shape)
{
    int64_t at = 0, step = 1;
    for (int axis = batch.rank - 1, own = shape.rank - 1; own >= 0; axis--, own--) {
        at += shape.dims[own] > 1 ? i % batch.dims[axis] * step : 0;
        step *= shape.dims[own];
        i /= batch.dims[axis];
    }
    return at;
}

static tw_status find_truncation(const twi_run *r, tw_shape batch, int64_t i, truncation *t)
{
    double given[4]; /* mean, deviation, bounds */
    for (int k = 0; k < 4; k++) {
        tw_tensor tensor = {.dtype = t->dtype, .data = (void *)r->inputs[2 + k]};
        given[k] = tw_tensor_value(&tensor, element_of(batch, i, r->input_operands[2 + k].shape));
    }
    t->mean = given[0];
    t->deviation = given[1];
    if (!(given[1] > 0 && given[2] < given[3] && (isfinite(given[2]) || isfinite(given[3]))))
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': Invalid parameters: element %lld has deviation %g and bounds %g and %g, expected more "
                        "than 0, and two in order of which one is finite",
                        r->node, (long long)i, given[1], given[2], given[3]);
    bool turned = given[2] == -INFINITY || given[3] < given[0];
    t->deviation = turned ? -given[1] : given[1];
    t->low = rounded(t->dtype, rounded(t->dtype, given[turned ? 3 : 2] - t->mean) / t->deviation);
    t->high = rounded(t->dtype, rounded(t->dtype, given[turned ? 2 : 3] - t->mean) / t->deviation);
    return TW_OK;
}

/* shape, seed, means, deviations, lower and upper bounds. The stream goes on from number to number, as TensorFlow's
 * does with one thread. */
static tw_status run_truncated(const twi_run *r)
{
    const twi_operand *out = &r->output_operands[0];
    twi_philox philox = twi_random_seeded(r, 1);
    tw_shape batch = {0};
    for (int k = 2; k < 6; k++)
        batch.rank = r->input_operands[k].shape.rank > batch.rank ? r->input_operands[k].shape.rank : batch.rank;
    for (int i = 0; i < batch.rank; i++)
        batch.dims[i] = out->shape.dims[out->shape.rank - batch.rank + i];
    int64_t batches = tw_shape_elements(batch), samples = batches ? out->elements / batches : 0;
    for (int64_t i = 0; i < batches && samples; i++) {
        truncation t = {.dtype = out->dtype};
        tw_status status = find_truncation(r, batch, i, &t);
        int tries = 0;
        for (int64_t sample = 0; sample < samples && status == TW_OK;) {
            double z[4];
            bool fits[4];
            int count = propose(&philox, &t, z, fits);
            for (int k = 0; k < count && sample < samples; k++) {
                tries = fits[k] ? 0 : tries + 1;
                if (fits[k])
                    put(out->dtype, r->outputs[0], sample++ * batches + i,
                        rounded(t.dtype, z[k] * t.deviation) + t.mean);
            }
            if (tries >= MOST_TRIES)
                status = twi_fail(r->error, TW_INVALID_ARGUMENT,
                                  "'%s': none of %d numbers lies between the bounds %g and %g", r->node, tries, t.low,
                                  t.high);
        }
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

const twi_kernel twi_cpu_random_tried_kernels[] = {
    {"RandomGamma", "plain", 0, twi_random_prepare, run_gamma},
    {"RandomPoissonV2", "plain", 0, twi_random_prepare, run_poisson},
    {"StatelessRandomGammaV2", "plain", 0, NULL, run_stateless_gamma},
    {"StatelessRandomGammaV3", "plain", 0, NULL, run_keyed_gamma},
    {"StatelessRandomPoisson", "plain", 0, NULL, run_stateless_poisson},
    {"StatelessRandomBinomial", "plain", 0, NULL, run_stateless_binomial},
    {"StatelessParameterizedTruncatedNormal", "plain", 0, NULL, run_truncated},
    {"StatefulRandomBinomial", "plain", 0, twi_random_prepare_kept, run_kept_binomial},
    {0},
};
