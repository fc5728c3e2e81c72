/* random.c - TensorFlow's random streams on the CPU, bit for bit; see device/state/random.h. */
#include "base/word_stream.h"
#include "device/cpu/plain/random_double.h"
#include "device/state/random.h"
#include "tensor/tensor.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/random.h>

#define CHUNK 256              /* groups a thread makes at a time */

/* ---- distributions ----------------------------------------------------------------------------------------- */

/* Makes one group of values from the generator, which stands at the group's own place. */
typedef void make_group(twi_philox *philox, void *values, const void *limits);

typedef struct distribution {
    int per_group;             /* values */
    uint64_t blocks_per_group; /* from the start of one group to that of the next */
    make_group *make;
} distribution;

static tw_status fill_from(const twi_run *r, const distribution *d, const void *limits, twi_philox start)
{
    int64_t n = r->output_operands[0].elements;
    size_t size = tw_dtype_size(r->output_operands[0].dtype);
    int64_t groups = (n + d->per_group - 1) / d->per_group, chunks = (groups + CHUNK - 1) / CHUNK;
    char *out = r->outputs[0];
#pragma omp parallel for num_threads(chunks > 4 ? r->threads : 1)
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        twi_philox here = start;
        twi_philox_skip(&here, (uint64_t)chunk * CHUNK * d->blocks_per_group);
        for (int64_t group = chunk * CHUNK; group < groups && group < (chunk + 1) * CHUNK; group++) {
            int64_t first = group * d->per_group;
            char last[4 * sizeof(double)];
            bool whole = first + d->per_group <= n;
            twi_philox own = here;
            d->make(&own, whole ? out + (size_t)first * size : last, limits);
            if (!whole)
                memcpy(out + (size_t)first * size, last, (size_t)(n - first) * size);
            twi_philox_skip(&here, d->blocks_per_group);
        }
    }
    return TW_OK;
}

static tw_status fill(const twi_run *r, const distribution *d, const void *limits)
{
    uint64_t blocks = (uint64_t)r->output_operands[0].elements * TWI_RANDOM_BLOCKS;
    return fill_from(r, d, limits, twi_random_take(r->state, blocks));
}

static void uniform_float_group(twi_philox *philox, void *values, const void *limits)
{
    (void)limits;
    uint32_t words[4];
    float *out = values;
    twi_philox_next(philox, words);
    for (int i = 0; i < 4; i++)
        out[i] = twi_uniform_float(words[i]);
}

static void uniform_double_group(twi_philox *philox, void *values, const void *limits)
{
    (void)limits;
    uint32_t words[4];
    double *out = values;
    twi_philox_next(philox, words);
    for (int i = 0; i < 2; i++)
        out[i] = twi_uniform_double(words[2 * i], words[2 * i + 1]);
}

static void uniform_half_group(twi_philox *philox, void *values, const void *limits)
{
    (void)limits;
    uint32_t words[4];
    uint16_t *out = values;
    twi_philox_next(philox, words);
    for (int i = 0; i < 4; i++)
        out[i] = tw_float_to_half(tw_half_to_float((uint16_t)(15 << 10 | (words[i] & 0x3ff))) - 1);
}

static void uniform_bfloat16_group(twi_philox *philox, void *values, const void *limits)
{
    (void)limits;
    uint32_t words[4];
    uint16_t *out = values;
    twi_philox_next(philox, words);
    for (int i = 0; i < 4; i++)
        out[i] = tw_float_to_bfloat16(tw_bfloat16_to_float((uint16_t)(127 << 7 | (words[i] & 0x7f))) - 1);
}

static void normal_float_group(twi_philox *philox, void *values, const void *limits)
{
    (void)limits;
    uint32_t words[4];
    float *out = values;
    twi_philox_next(philox, words);
    twi_normal_pair(words[0], words[1], out);
    twi_normal_pair(words[2], words[3], out + 2);
}

static void normal_double_group(twi_philox *philox, void *values, const void *limits)
{
    (void)limits;
    uint32_t words[4];
    twi_philox_next(philox, words);
    twi_normal_pair_double(words, values);
}

/* Draws until four values lie within two standard deviations. */
static void truncated_float_group(twi_philox *philox, void *values, const void *limits)
{
    (void)limits;
    float *out = values;
    for (int found = 0; found < 4;) {
        uint32_t words[4];
        float drawn[4];
        twi_philox_next(philox, words);
        twi_normal_pair(words[0], words[1], drawn);
        twi_normal_pair(words[2], words[3], drawn + 2);
        for (int i = 0; i < 4 && found < 4; i++)
            if (fabsf(drawn[i]) < 2)
                out[found++] = drawn[i];
    }
}

static void truncated_double_group(twi_philox *philox, void *values, const void *limits)
{
    (void)limits;
    double *out = values;
    for (int found = 0; found < 2;) {
        uint32_t words[4];
        double drawn[2];
        twi_philox_next(philox, words);
        twi_normal_pair_double(words, drawn);
        for (int i = 0; i < 2 && found < 2; i++)
            if (fabs(drawn[i]) < 2)
                out[found++] = drawn[i];
    }
}

/* The 16-bit normals are the float ones, rounded. */
#define ROUNDED_GROUP(name, make_floats, round)                                                                        \
    static void name(twi_philox *philox, void *values, const void *limits)                                             \
    {                                                                                                                  \
        float floats[4];                                                                                               \
        uint16_t *out = values;                                                                                        \
        make_floats(philox, floats, limits);                                                                           \
        for (int i = 0; i < 4; i++)                                                                                    \
            out[i] = round(floats[i]);                                                                                 \
    }

ROUNDED_GROUP(normal_half_group, normal_float_group, tw_float_to_half)
ROUNDED_GROUP(normal_bfloat16_group, normal_float_group, tw_float_to_bfloat16)
ROUNDED_GROUP(truncated_half_group, truncated_float_group, tw_float_to_half)
ROUNDED_GROUP(truncated_bfloat16_group, truncated_float_group, tw_float_to_bfloat16)

static void int32_group(twi_philox *philox, void *values, const void *limits)
{
    const int32_t *range = limits;
    uint32_t words[4], low = (uint32_t)range[0], count = (uint32_t)range[1] - low;
    int32_t *out = values;
    twi_philox_next(philox, words);
    for (int i = 0; i < 4; i++)
        out[i] = (int32_t)(low + words[i] % count);
}

static void int64_group(twi_philox *philox, void *values, const void *limits)
{
    const int64_t *range = limits;
    uint64_t low = (uint64_t)range[0], count = (uint64_t)range[1] - low;
    uint32_t words[4];
    int64_t *out = values;
    twi_philox_next(philox, words);
    for (int i = 0; i < 2; i++)
        out[i] = (int64_t)(low + (words[2 * i] | (uint64_t)words[2 * i + 1] << 32) % count);
}

/* ---- kernels ----------------------------------------------------------------------------------------------- */

/* By type of the output. */
static const distribution uniform[] = {
    [TW_FLOAT32] = {4, 1, uniform_float_group},
    [TW_FLOAT64] = {2, 1, uniform_double_group},
    [TW_FLOAT16] = {4, 1, uniform_half_group},
    [TW_BFLOAT16] = {4, 1, uniform_bfloat16_group},
};
static const distribution normal[] = {
    [TW_FLOAT32] = {4, 1, normal_float_group},
    [TW_FLOAT64] = {2, 1, normal_double_group},
    [TW_FLOAT16] = {4, 1, normal_half_group},
    [TW_BFLOAT16] = {4, 1, normal_bfloat16_group},
};
static const distribution truncated[] = {
    [TW_FLOAT32] = {4, TWI_RANDOM_BLOCKS, truncated_float_group},
    [TW_FLOAT64] = {2, TWI_RANDOM_BLOCKS / 2, truncated_double_group},
    [TW_FLOAT16] = {4, TWI_RANDOM_BLOCKS, truncated_half_group},
    [TW_BFLOAT16] = {4, TWI_RANDOM_BLOCKS, truncated_bfloat16_group},
};

static tw_status run_uniform(const twi_run *r)
{
    return fill(r, &uniform[r->output_operands[0].dtype], NULL);
}

static tw_status run_normal(const twi_run *r)
{
    return fill(r, &normal[r->output_operands[0].dtype], NULL);
}

static tw_status run_truncated(const twi_run *r)
{
    return fill(r, &truncated[r->output_operands[0].dtype], NULL);
}

/* The generator of ops without a stream: input 1 are two seeds. */
static twi_philox seeded(const twi_run *r)
{
    return twi_random_seeded(r, 1);
}

static tw_status fill_keyed(const twi_run *r, const distribution *kinds)
{
    twi_philox start;
    tw_status status = twi_random_keyed(r, &start);
    return status == TW_OK ? fill_from(r, &kinds[r->output_operands[0].dtype], NULL, start) : status;
}

static tw_status run_keyed_uniform(const twi_run *r)
{
    return fill_keyed(r, uniform);
}

static tw_status run_keyed_normal(const twi_run *r)
{
    return fill_keyed(r, normal);
}

static tw_status run_keyed_truncated(const twi_run *r)
{
    return fill_keyed(r, truncated);
}

/* From the generator that a variable holds. */
static tw_status fill_kept(const twi_run *r, const distribution *kinds)
{
    twi_philox start;
    tw_status status = twi_random_kept(r, (uint64_t)r->output_operands[0].elements * TWI_RANDOM_BLOCKS, &start);
    return status == TW_OK ? fill_from(r, &kinds[r->output_operands[0].dtype], NULL, start) : status;
}

static tw_status run_kept_uniform(const twi_run *r)
{
    return fill_kept(r, uniform);
}

static tw_status run_kept_normal(const twi_run *r)
{
    return fill_kept(r, normal);
}

static tw_status run_kept_truncated(const twi_run *r)
{
    return fill_kept(r, truncated);
}

/* Outputs key and counter, then perhaps the algorithm, or that alone */
static tw_status run_key(const twi_run *r)
{
    if (r->num_inputs) {
        twi_philox philox = twi_random_seeded(r, 0);
        uint64_t *key = r->outputs[0], *counter = r->outputs[1];
        key[0] = philox.key[0] | (uint64_t)philox.key[1] << 32;
        counter[0] = 0;
        counter[1] = philox.counter[2] | (uint64_t)philox.counter[3] << 32;
    }
    if (r->num_outputs != 2)
        *(int32_t *)r->outputs[r->num_outputs - 1] = TWI_PHILOX;
    return TW_OK;
}

static tw_status run_stateless_uniform(const twi_run *r)
{
    return fill_from(r, &uniform[r->output_operands[0].dtype], NULL, seeded(r));
}

static tw_status run_stateless_normal(const twi_run *r)
{
    return fill_from(r, &normal[r->output_operands[0].dtype], NULL, seeded(r));
}

static tw_status run_stateless_truncated(const twi_run *r)
{
    return fill_from(r, &truncated[r->output_operands[0].dtype], NULL, seeded(r));
}

/* `first`: the input that is the lower limit; the upper one comes behind it. */
static tw_status uniform_int(const twi_run *r, int first, const twi_philox *start)
{
    static const distribution d32 = {4, 1, int32_group}, d64 = {2, 1, int64_group};
    bool is_long = r->output_operands[0].dtype == TW_INT64;
    int64_t limits[2];
    for (int i = 0; i < 2; i++)
        limits[i] = is_long ? *(const int64_t *)r->inputs[first + i] : *(const int32_t *)r->inputs[first + i];
    if (limits[0] >= limits[1] && r->output_operands[0].elements)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "Need minval < maxval, got %lld >= %lld (%s)",
                        (long long)limits[0], (long long)limits[1], r->node);
    int32_t narrow[2] = {(int32_t)limits[0], (int32_t)limits[1]};
    const distribution *d = is_long ? &d64 : &d32;
    const void *range = is_long ? (const void *)limits : narrow;
    return start ? fill_from(r, d, range, *start) : fill(r, d, range);
}

static tw_status run_uniform_int(const twi_run *r)
{
    return uniform_int(r, 1, NULL);
}

static tw_status run_stateless_uniform_int(const twi_run *r)
{
    twi_philox start = seeded(r);
    return uniform_int(r, 2, &start);
}

static tw_status run_keyed_uniform_int(const twi_run *r)
{
    twi_philox start;
    tw_status status = twi_random_keyed(r, &start);
    return status == TW_OK ? uniform_int(r, 4, &start) : status;
}

static tw_status run_kept_uniform_int(const twi_run *r)
{
    twi_philox start;
    tw_status status = twi_random_kept(r, (uint64_t)r->output_operands[0].elements * TWI_RANDOM_BLOCKS, &start);
    return status == TW_OK ? uniform_int(r, 3, &start) : status;
}

static void word_group(twi_philox *philox, void *values, const void *limits)
{
    (void)limits;
    twi_philox_next(philox, values);
}

/* Any number of the type; of 64 bits the low word comes first. */
static tw_status fill_words(const twi_run *r, twi_philox start)
{
    static const distribution d32 = {4, 1, word_group}, d64 = {2, 1, word_group};
    return fill_from(r, tw_dtype_size(r->output_operands[0].dtype) == 8 ? &d64 : &d32, NULL, start);
}

static tw_status run_stateless_words(const twi_run *r)
{
    return fill_words(r, seeded(r));
}

static tw_status run_keyed_words(const twi_run *r)
{
    twi_philox start;
    tw_status status = twi_random_keyed(r, &start);
    return status == TW_OK ? fill_words(r, start) : status;
}

static tw_status run_kept_words(const twi_run *r)
{
    twi_philox start;
    tw_status status = twi_random_kept(r, (uint64_t)r->output_operands[0].elements * TWI_RANDOM_BLOCKS, &start);
    return status == TW_OK ? fill_words(r, start) : status;
}

static tw_status prepare_stateless_shuffle(twi_prepare *p)
{
    p->workspace = (size_t)(p->inputs[0].shape.rank > 0 ? p->inputs[0].shape.dims[0] : 1) * sizeof(int64_t);
    return TW_OK;
}

static tw_status prepare_shuffle(twi_prepare *p)
{
    tw_status status = prepare_stateless_shuffle(p);
    return status == TW_OK ? twi_random_prepare(p) : status;
}

static bool copy_strings(void *to, const void *from, size_t count)
{
    tw_string *target = to;
    const tw_string *source = from;
    for (size_t i = 0; i < count; i++)
        if (!twi_string_set(&target[i], source[i].data, source[i].size))
            return false;
    return true;
}

static int64_t rows_of(const twi_operand *value)
{
    return value->shape.rank > 0 ? value->shape.dims[0] : 1;
}

static tw_status shuffle(const twi_run *r, twi_philox start)
{
    const twi_operand *value = &r->input_operands[0];
    int64_t rows = rows_of(value);
    if (value->elements == 0)
        return TW_OK;
    int64_t *order = r->workspace;
    for (int64_t i = 0; i < rows; i++)
        order[i] = i;
    twi_word_stream w = twi_word_stream_of(start);
    for (int64_t i = 0; i < rows - 1; i++) {
        int64_t k = i + (int64_t)(twi_next_word(&w) % (uint64_t)(rows - i)), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
    size_t row = value->bytes / (size_t)rows;
    for (int64_t i = 0; i < rows; i++) {
        char *to = (char *)r->outputs[0] + (size_t)i * row;
        const char *from = (const char *)r->inputs[0] + (size_t)order[i] * row;
        if (value->dtype != TW_STRING)
            memcpy(to, from, row);
        else if (!copy_strings(to, from, row / sizeof(tw_string)))
            return twi_fail_memory(r->error, r->node);
    }
    return TW_OK;
}

static tw_status run_shuffle(const twi_run *r)
{
    const twi_operand *value = &r->input_operands[0];
    uint64_t words = value->elements ? (uint64_t)rows_of(value) + 2 : 0;
    return shuffle(r, twi_random_take(r->state, words / 4));
}

static tw_status run_stateless_shuffle(const twi_run *r)
{
    twi_philox start;
    tw_status status = twi_random_keyed(r, &start);
    return status == TW_OK ? shuffle(r, start) : status;
}

static double logit(const twi_run *r, int64_t i)
{
    switch (r->input_operands[0].dtype) {
    case TW_FLOAT64:
        return ((const double *)r->inputs[0])[i];
    case TW_FLOAT16:
        return tw_half_to_float(((const uint16_t *)r->inputs[0])[i]);
    default:
        return ((const float *)r->inputs[0])[i];
    }
}

static tw_status prepare_stateless_multinomial(twi_prepare *p)
{
    p->workspace = (size_t)p->inputs[0].shape.dims[1] * sizeof(double);
    return TW_OK;
}

static tw_status prepare_multinomial(twi_prepare *p)
{
    tw_status status = prepare_stateless_multinomial(p);
    return status == TW_OK ? twi_random_prepare(p) : status;
}

/* All rows draw from one stream, one after the other. TensorFlow does the same while one thread suffices, and gives up
 * the fixed stream when the work is large enough for several. */
static tw_status draw_classes(const twi_run *r, twi_philox start)
{
    int64_t rows = r->input_operands[0].shape.dims[0], classes = r->input_operands[0].shape.dims[1];
    int64_t samples = r->output_operands[0].shape.dims[1];
    if (rows && samples && classes < 1)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "num_classes should be positive, got %lld (%s)",
                        (long long)classes, r->node);
    double *sums = r->workspace;
    twi_word_stream w = twi_word_stream_of(start);
    for (int64_t row = 0; row < rows && samples; row++) {
        double highest = -INFINITY, total = 0;
        for (int64_t k = 0; k < classes; k++)
            if (isfinite(logit(r, row * classes + k)))
                highest = fmax(highest, logit(r, row * classes + k));
        for (int64_t k = 0; k < classes; k++) {
            if (isfinite(logit(r, row * classes + k)))
                total += exp(logit(r, row * classes + k) - highest);
            sums[k] = total;
        }
        for (int64_t i = 0; i < samples; i++) {
            uint32_t a = twi_next_word(&w), b = twi_next_word(&w);
            double wanted = twi_uniform_double(a, b) * total;
            int64_t found = 0, count = classes;
            while (count > 0) { /* the first sum above `wanted` */
                int64_t half = count / 2;
                if (sums[found + half] <= wanted) {
                    found += half + 1;
                    count -= half + 1;
                } else {
                    count = half;
                }
            }
            if (r->output_operands[0].dtype == TW_INT64)
                ((int64_t *)r->outputs[0])[row * samples + i] = found;
            else
                ((int32_t *)r->outputs[0])[row * samples + i] = (int32_t)found;
        }
    }
    return TW_OK;
}

static tw_status run_multinomial(const twi_run *r)
{
    int64_t rows = r->input_operands[0].shape.dims[0], samples = r->output_operands[0].shape.dims[1];
    uint64_t words = (uint64_t)(rows * ((samples + 3) / 4 * 4) * 2);
    return draw_classes(r, twi_random_take(r->state, words * TWI_RANDOM_BLOCKS));
}

static tw_status run_stateless_multinomial(const twi_run *r)
{
    return draw_classes(r, twi_random_seeded(r, 2));
}

/* The system's own numbers, others in each run. */
static tw_status run_nondeterministic(const twi_run *r)
{
    char *at = r->outputs[0];
    for (size_t left = r->output_operands[0].bytes; left > 0;) {
        ssize_t count = getrandom(at, left, 0);
        if (count < 0 && errno != EINTR)
            return twi_fail(r->error, TW_INTERNAL, "'%s': the system gives no random numbers", r->node);
        at += count > 0 ? count : 0;
        left -= count > 0 ? (size_t)count : 0;
    }
    return TW_OK;
}

const twi_kernel twi_cpu_random_kernels[] = {
    {"NonDeterministicInts", "plain", 0, NULL, run_nondeterministic},
    {"RandomUniform", "plain", 0, twi_random_prepare, run_uniform},
    {"RandomStandardNormal", "plain", 0, twi_random_prepare, run_normal},
    {"TruncatedNormal", "plain", 0, twi_random_prepare, run_truncated},
    {"RandomUniformInt", "plain", 0, twi_random_prepare, run_uniform_int},
    {"StatelessRandomUniform", "plain", 0, NULL, run_stateless_uniform},
    {"StatelessRandomNormal", "plain", 0, NULL, run_stateless_normal},
    {"StatelessTruncatedNormal", "plain", 0, NULL, run_stateless_truncated},
    {"StatelessRandomUniformInt", "plain", 0, NULL, run_stateless_uniform_int},
    {"StatelessRandomUniformFullInt", "plain", 0, NULL, run_stateless_words},
    {"StatelessRandomUniformV2", "plain", 0, NULL, run_keyed_uniform},
    {"StatelessRandomNormalV2", "plain", 0, NULL, run_keyed_normal},
    {"StatelessTruncatedNormalV2", "plain", 0, NULL, run_keyed_truncated},
    {"StatelessRandomUniformIntV2", "plain", 0, NULL, run_keyed_uniform_int},
    {"StatelessRandomUniformFullIntV2", "plain", 0, NULL, run_keyed_words},
    {"StatefulUniform", "plain", 0, twi_random_prepare_kept, run_kept_uniform},
    {"StatefulStandardNormalV2", "plain", 0, twi_random_prepare_kept, run_kept_normal},
    {"StatefulTruncatedNormal", "plain", 0, twi_random_prepare_kept, run_kept_truncated},
    {"StatefulUniformInt", "plain", 0, twi_random_prepare_kept, run_kept_uniform_int},
    {"StatefulUniformFullInt", "plain", 0, twi_random_prepare_kept, run_kept_words},
    {"StatelessRandomGetKeyCounter", "plain", 0, NULL, run_key},
    {"StatelessRandomGetKeyCounterAlg", "plain", 0, NULL, run_key},
    {"StatelessRandomGetAlg", "plain", 0, NULL, run_key},
    {"RandomShuffle", "plain", TWI_NUMBER_TYPES | TWI_TYPE(TW_BOOL) | TWI_TYPE(TW_STRING), prepare_shuffle,
     run_shuffle},
    {"StatelessShuffle", "plain", TWI_NUMBER_TYPES | TWI_TYPE(TW_BOOL) | TWI_TYPE(TW_STRING), prepare_stateless_shuffle,
     run_stateless_shuffle},
    {"Multinomial", "plain", TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_FLOAT64) | TWI_TYPE(TW_FLOAT16), prepare_multinomial,
     run_multinomial},
    {"StatelessMultinomial", "plain", TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_FLOAT64) | TWI_TYPE(TW_FLOAT16),
     prepare_stateless_multinomial, run_stateless_multinomial},
    {0},
};
