/* candidates.c - samplers of classes, with TensorFlow's numbers: each draw takes words of the stream as they come, and
 * a run moves the stream on by as many as are enough for any. */
#include "base/memory.h"
#include "device/cpu/plain/unigrams.h"
#include "device/state/random.h"

#include <float.h>
#include <math.h>

typedef enum sampler { UNIFORM, LOG_UNIFORM, ALL, FIXED, LEARNED } sampler;

typedef struct sampling {
    twi_resource *stream;
    twi_fixed_unigrams fixed;
    twi_learned_unigrams *learned; /* lives with the stream, and is not in checkpoints */
    sampler sampler;
    bool unique;
    int64_t range;
    double log_range; /* of the range and one more */
} sampling;

/* Words one after the other. */
typedef struct words {
    twi_philox philox;
    uint32_t group[4];
    int used;
} words;

static uint32_t next_word(words *w)
{
    if (w->used == 4) {
        twi_philox_next(&w->philox, w->group);
        w->used = 0;
    }
    return w->group[w->used++];
}

static uint64_t next_long(words *w)
{
    uint64_t low = next_word(w);
    return low | (uint64_t)next_word(w) << 32;
}

/* From 0 to 1. */
static double next_double(words *w)
{
    uint32_t high = next_word(w), low = next_word(w);
    uint64_t fraction = (uint64_t)(high & 0xfffff) << 32 | low;
    return (double)fraction * 0x1p-52;
}

/* From 0 to before 1. */
static float next_float(words *w)
{
    return (float)(next_word(w) & 0x7fffff) * 0x1p-23f;
}

/* Below n, all alike: what would favour some is drawn again. */
static int64_t next_short_below(words *w, uint32_t n)
{
    uint32_t rest = (n & (n - 1)) == 0 ? 0 : UINT32_MAX % n + 1, word;
    do
        word = next_word(w);
    while (word < rest);
    return word % n;
}

static int64_t next_below(words *w, uint64_t n)
{
    if ((n & (n - 1)) == 0)
        return (int64_t)(next_long(w) & (n - 1));
    uint64_t rest = UINT64_MAX % n + 1, word;
    do
        word = next_long(w);
    while (word < rest);
    return (int64_t)(word % n);
}

static int64_t draw(const sampling *s, words *w)
{
    if (s->sampler == UNIFORM)
        return next_below(w, (uint64_t)s->range);
    if (s->sampler == FIXED) {
        float part = next_float(w);
        return twi_fixed_unigrams_pick(&s->fixed, next_short_below(w, (uint32_t)s->range), part);
    }
    if (s->sampler == LEARNED)
        return twi_learned_unigrams_pick(
            s->learned, (int32_t)next_short_below(w, (uint32_t)twi_learned_unigrams_total(s->learned)));
    int64_t value = (int64_t)exp(next_double(w) * s->log_range) - 1;
    return value % s->range;
}

static double probability(const sampling *s, int64_t value)
{
    if (s->sampler == UNIFORM)
        return 1 / (double)s->range;
    if (s->sampler == FIXED)
        return s->fixed.weights.items[value] / s->fixed.total;
    if (s->sampler == LEARNED)
        return (double)twi_learned_unigrams_weight(s->learned, value) / twi_learned_unigrams_total(s->learned);
    return log((double)(value + 2) / (double)(value + 1)) / s->log_range;
}

/* How often a class is among the candidates that so many draws gave. */
static float expected_count(const sampling *s, int64_t value, int64_t num, int64_t draws)
{
    if (s->sampler == ALL)
        return 1;
    double p = probability(s, value);
    return (float)(draws == num ? p * (double)num : -expm1((double)draws * log1p(-p)));
}

/* A table of the values so far, hashed, with free places at -1; twice as many as values. */
static int64_t table_size(int64_t num)
{
    int64_t size = 2;
    while (size < 2 * num)
        size *= 2;
    return size;
}

/* False: it was there already. */
static bool insert(int64_t *table, int64_t size, int64_t value)
{
    uint64_t at = (uint64_t)value * UINT64_C(0x9e3779b97f4a7c15);
    for (at = (at ^ at >> 32) & (uint64_t)(size - 1); table[at] >= 0; at = (at + 1) & (uint64_t)(size - 1))
        if (table[at] == value)
            return false;
    table[at] = value;
    return true;
}

/* Fills in the candidates; returns how many draws that took. */
static int64_t sample(const sampling *s, words *w, int64_t num, int64_t *candidates, int64_t *table)
{
    int64_t draws = 0, size = table_size(num);
    bool again = s->unique && s->sampler != ALL;
    for (int64_t i = 0; again && i < size; i++)
        table[i] = -1;
    for (int64_t i = 0; i < num; i++) {
        do {
            candidates[i] = s->sampler == ALL ? i : draw(s, w);
            draws++;
        } while (again && !insert(table, size, candidates[i]) && draws < INT32_MAX);
    }
    return draws;
}

static tw_status prepare(twi_prepare *p, sampler sampler)
{
    sampling s = {.sampler = sampler,
                  .unique = twi_attr_bool(p->attrs, "unique", false),
                  .range = twi_attr_int(p->attrs, sampler == ALL ? "num_sampled" : "range_max", 1)};
    tw_status status = twi_random_find(p, &s.stream);
    if (status != TW_OK)
        return status;
    s.log_range = log1p((double)s.range);
    p->workspace = (size_t)table_size(p->outputs[0].elements) * sizeof(int64_t);
    if ((sampler == LEARNED || sampler == FIXED) && s.range >= INT32_MAX)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s': weights of %lld classes, at most %d can be kept", p->op,
                        p->node, (long long)s.range, INT32_MAX - 1);
    if (sampler == LEARNED && !s.stream->object) {
        s.stream->object = twi_learned_unigrams_make(s.range);
        s.stream->destroy = twi_learned_unigrams_free;
    }
    s.learned = s.stream->object;
    if (sampler == LEARNED && !s.learned)
        return twi_fail_memory(p->error, p->node);
    status = sampler == FIXED ? twi_fixed_unigrams_make(p, &s.fixed) : TW_OK;
    if (status == TW_OK)
        status = twi_keep(p, &s, sizeof s);
    if (status != TW_OK)
        twi_fixed_unigrams_free(&s.fixed);
    return status;
}

static void release(void *state)
{
    twi_fixed_unigrams_free(&((sampling *)state)->fixed);
    twi_free(state);
}

static tw_status prepare_uniform(twi_prepare *p)
{
    return prepare(p, UNIFORM);
}

static tw_status prepare_log_uniform(twi_prepare *p)
{
    return prepare(p, LOG_UNIFORM);
}

static tw_status prepare_all(twi_prepare *p)
{
    return prepare(p, ALL);
}

static tw_status prepare_fixed(twi_prepare *p)
{
    return prepare(p, FIXED);
}

static tw_status prepare_learned(twi_prepare *p)
{
    return prepare(p, LEARNED);
}

static tw_status run(const twi_run *r)
{
    enum { BLOCKS = 512 }; /* of four words, for each candidate */
    const sampling *s = r->state;
    const int64_t *classes = r->inputs[0];
    int64_t num = r->output_operands[0].elements, *candidates = r->outputs[0];
    for (int64_t i = 0; i < r->input_operands[0].elements; i++)
        if (classes[i] < 0 || classes[i] >= s->range)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': true class %lld, expected one of %lld", r->node,
                            (long long)classes[i], (long long)s->range);
    words w = {.philox = twi_random_take(s->stream, (uint64_t)num * BLOCKS), .used = 4};
    int64_t draws = sample(s, &w, num, candidates, r->workspace);
    for (int64_t i = 0; i < r->input_operands[0].elements; i++)
        ((float *)r->outputs[1])[i] = expected_count(s, classes[i], num, draws);
    for (int64_t i = 0; i < num; i++)
        ((float *)r->outputs[2])[i] = expected_count(s, candidates[i], num, draws);
    return TW_OK;
}

/* The true classes count for the draws to come. */
static tw_status run_learned(const twi_run *r)
{
    const sampling *s = r->state;
    twi_learned_unigrams_lock(s->learned);
    tw_status status = run(r);
    if (status == TW_OK)
        twi_learned_unigrams_count(s->learned, r->inputs[0], r->input_operands[0].elements);
    twi_learned_unigrams_unlock(s->learned);
    return status;
}

/* In the order of the true classes, as TensorFlow has them; of candidates that are alike the last counts. */
static int64_t place_of(const int64_t *candidates, int64_t num, int64_t value)
{
    for (int64_t i = num; i-- > 0;)
        if (candidates[i] == value)
            return i;
    return -1;
}

static tw_status run_hits(const twi_run *r)
{
    const int64_t *classes = r->inputs[0], *candidates = r->inputs[1];
    int64_t all = r->input_operands[0].elements, num = r->input_operands[1].elements, hits = 0;
    int64_t per_row = all ? r->input_operands[0].shape.dims[1] : 1;
    void *outputs[3];
    for (int64_t i = 0; i < all; i++)
        hits += place_of(candidates, num, classes[i]) >= 0;
    for (int i = 0; i < 3; i++) {
        tw_status status = twi_make_output(r, i, TW_SHAPE(hits), &outputs[i]);
        if (status != TW_OK)
            return status;
    }
    for (int64_t i = 0, at = 0; i < all; i++) {
        int64_t place = place_of(candidates, num, classes[i]);
        if (place < 0)
            continue;
        ((int32_t *)outputs[0])[at] = (int32_t)(i / per_row);
        ((int64_t *)outputs[1])[at] = place;
        ((float *)outputs[2])[at++] = -FLT_MAX;
    }
    return TW_OK;
}

const twi_kernel twi_cpu_candidates_kernels[] = {
    {"UniformCandidateSampler", "plain", 0, prepare_uniform, run, release},
    {"LogUniformCandidateSampler", "plain", 0, prepare_log_uniform, run, release},
    {"AllCandidateSampler", "plain", 0, prepare_all, run, release},
    {"FixedUnigramCandidateSampler", "plain", 0, prepare_fixed, run, release},
    {"LearnedUnigramCandidateSampler", "plain", 0, prepare_learned, run_learned, release},
    {"ThreadUnsafeUnigramCandidateSampler", "plain", 0, prepare_learned, run_learned, release},
    {"ComputeAccidentalHits", "plain", 0, NULL, run_hits},
    {0},
};
