/* clusters.c - the first centers of clusters, drawn with TensorFlow's numbers, and which center is nearest. Distances
 * are squares, |x|^2 - 2 x y + |y|^2, of floats as in TensorFlow: half of each is what is compared. */
#include "base/memory.h"
#include "base/word_stream.h"
#include "device/cpu/plain/typed.h"

#include <math.h>
#include <string.h>

enum {
    MOST_DRAWS = 100000,    /* of one point, before one that was not drawn yet is taken as it stands */
    MOST_RETRIES = 1000000, /* a number that is larger was not meant */
};

static float product(const float *x, const float *y, int64_t n)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* ---- k-means++ --------------------------------------------------------------------------------------------------- */

typedef struct drawing {
    const float *points; /* [num,width] */
    int64_t num, width;
    float *halves;       /* [num] of squared norms */
    float *nearest;      /* [num] half of the squared distance to the nearest of those taken */
    float *sums;         /* [num] of these, one after the other */
    float *tried, *best; /* [num] what would be nearest */
    bool *taken;         /* [num] */
    int64_t count;
    twi_word_stream words;
} drawing;

static tw_status prepare_plus_plus(twi_prepare *p)
{
    int64_t num = p->inputs[0].shape.dims[0];
    p->workspace = (size_t)num * (5 * sizeof(float) + sizeof(bool)) + 64;
    return TW_OK;
}

static float next_float(drawing *d)
{
    return twi_uniform_float(twi_next_word(&d->words));
}

/* Below n, all alike: what would favour some is drawn again. */
static int64_t next_below(drawing *d, uint64_t n)
{
    bool is_power = (n & (n - 1)) == 0;
    uint64_t rest = is_power ? 0 : UINT64_MAX % n + 1, word;
    do {
        word = twi_next_word(&d->words);
        word |= (uint64_t)twi_next_word(&d->words) << 32;
    } while (word < rest);
    return (int64_t)(is_power ? word & (n - 1) : word % n);
}

/* The first sum above the value, as by halves; num: none is. */
static int64_t find_above(const drawing *d, float value)
{
    int64_t first = 0, left = d->num;
    while (left > 0) {
        int64_t half = left / 2;
        if (value < d->sums[first + half]) {
            left = half;
        } else {
            first += half + 1;
            left -= half + 1;
        }
    }
    return first;
}

static bool is_taken(const drawing *d, int64_t i)
{
    return i < d->num && d->taken[i];
}

static int64_t draw_one(drawing *d)
{
    if (!d->count)
        return next_below(d, (uint64_t)d->num);
    int64_t i, draws = 0;
    do
        i = find_above(d, next_float(d) * d->sums[d->num - 1]);
    while (is_taken(d, i) && ++draws < MOST_DRAWS);
    for (; is_taken(d, i); i = (i + 1) % d->num)
        ;
    return i;
}

/* What is nearest when point i is taken too; the sum of it. */
static float add_distances(const drawing *d, int64_t i, float *nearest)
{
    i = i < d->num ? i : d->num - 1;
    const float *y = d->points + i * d->width;
    float sum = 0;
    for (int64_t k = 0; k < d->num; k++) {
        float half = d->halves[k] + d->halves[i] - product(d->points + k * d->width, y, d->width);
        nearest[k] = half < d->nearest[k] ? half : d->nearest[k];
        sum += nearest[k];
    }
    return sum;
}

static void swap(float **a, float **b)
{
    float *kept = *a;
    *a = *b;
    *b = kept;
}

/* Of several that are drawn, the one that leaves the least to go. */
static int64_t draw_best(drawing *d, const twi_run *r, int64_t draws)
{
    float least = INFINITY;
    int64_t best = 0;
    for (int64_t i = 0; i < draws && !twi_run_is_ending(r); i++) {
        int64_t drawn = draw_one(d);
        float sum = add_distances(d, drawn, d->tried);
        if (sum < least) {
            least = sum;
            best = drawn;
            swap(&d->tried, &d->best);
        }
    }
    swap(&d->nearest, &d->best);
    return best;
}

static void take(drawing *d, int64_t i, float *sample)
{
    i = i < d->num ? i : d->num - 1;
    if (d->width)
        memcpy(sample, d->points + i * d->width, sizeof *sample * (size_t)d->width);
    d->taken[i] = true;
    d->count++;
}

static void add_up(drawing *d)
{
    float sum = 0;
    for (int64_t i = 0; i < d->num; i++)
        d->sums[i] = sum += d->nearest[i];
}

static tw_status run_plus_plus(const twi_run *r)
{
    tw_shape shape = r->input_operands[0].shape;
    int64_t num = shape.dims[0], wanted = r->output_operands[0].shape.dims[0];
    int64_t seed = *(const int64_t *)r->inputs[2], retries = *(const int64_t *)r->inputs[3];
    float *room = r->workspace, *samples = r->outputs[0];
    drawing d = {.points = r->inputs[0],
                 .num = num,
                 .width = shape.dims[1],
                 .halves = room,
                 .nearest = room + num,
                 .sums = room + 2 * num,
                 .tried = room + 3 * num,
                 .best = room + 4 * num,
                 .taken = (bool *)(room + 5 * num),
                 .words = twi_word_stream_of(twi_philox_seed((uint64_t)seed, 0))};
    if (retries > MOST_RETRIES)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "num_retries_per_sample is %lld, expected at most %d",
                        (long long)retries, MOST_RETRIES);
    if (retries < 0)
        retries = 2 + (int64_t)log((double)wanted);
    for (int64_t i = 0; i < num; i++) {
        const float *x = d.points + i * d.width;
        d.halves[i] = 0.5f * product(x, x, d.width);
        d.nearest[i] = d.best[i] = INFINITY;
        d.taken[i] = false;
    }
    for (int64_t i = 0; i < wanted && !twi_run_is_ending(r); i++) {
        int64_t drawn = draw_best(&d, r, 1 + retries);
        take(&d, drawn, samples + i * d.width);
        add_up(&d);
    }
    return twi_run_is_ending(r) ? twi_fail(r->error, TW_CANCELLED, "the run has ended") : TW_OK;
}

/* ---- a chain of candidates --------------------------------------------------------------------------------------- */

/* Where the chain ends that goes on to the next candidate with the probability by which that is farther away. */
static tw_status run_chain(const twi_run *r)
{
    const float *distances = r->inputs[0];
    int64_t count = r->input_operands[0].shape.dims[0], at = 0;
    twi_word_stream words = twi_word_stream_of(twi_philox_seed((uint64_t) * (const int64_t *)r->inputs[1], 0));
    for (int64_t i = 1; i < count; i++)
        if (distances[i] > twi_uniform_float(twi_next_word(&words)) * distances[at])
            at = i;
    *(int64_t *)r->outputs[0] = at;
    return TW_OK;
}

/* ---- the nearest centers ----------------------------------------------------------------------------------------- */

static tw_status prepare_nearest(twi_prepare *p)
{
    p->workspace = p->outputs[0].elements ? (size_t)p->inputs[1].shape.dims[0] * sizeof(float) : 0;
    return TW_OK;
}

/* Puts a center in its place among the nearest so far, of which there are `count`; of equals the first is nearer. */
static void insert(float distance, int64_t center, int64_t count, int64_t most, float *distances, int64_t *numbers)
{
    int64_t i = count < most ? count : most - 1;
    if (count == most && !(distance < distances[most - 1]))
        return;
    for (; i > 0 && distance < distances[i - 1]; i--) {
        distances[i] = distances[i - 1];
        numbers[i] = numbers[i - 1];
    }
    distances[i] = distance;
    numbers[i] = center;
}

static tw_status run_nearest(const twi_run *r)
{
    tw_shape shape = r->input_operands[0].shape;
    int64_t num = shape.dims[0], width = shape.dims[1], centers = r->input_operands[1].shape.dims[0];
    int64_t most = r->output_operands[0].shape.dims[1];
    float *halves = r->workspace;
    if (r->output_operands[0].elements == 0)
        return TW_OK;
    for (int64_t c = 0; c < centers; c++) {
        const float *y = (const float *)r->inputs[1] + c * width;
        halves[c] = 0.5f * product(y, y, width);
    }
    TWI_PARALLEL_LOOP(r)
    for (int64_t i = 0; i < num; i++) {
        const float *x = (const float *)r->inputs[0] + i * width;
        float *distances = (float *)r->outputs[1] + i * most, own = 0.5f * product(x, x, width);
        int64_t *numbers = (int64_t *)r->outputs[0] + i * most;
        for (int64_t c = 0; c < centers; c++)
            insert(halves[c] - product(x, (const float *)r->inputs[1] + c * width, width), c, c < most ? c : most, most,
                   distances, numbers);
        for (int64_t k = 0; k < most; k++)
            distances[k] = 2 * (own + distances[k]);
    }
    return TW_OK;
}

const twi_kernel twi_cpu_clusters_kernels[] = {
    {"KmeansPlusPlusInitialization", "plain", 0, prepare_plus_plus, run_plus_plus, NULL},
    {"KMC2ChainInitialization", "plain", 0, NULL, run_chain, NULL},
    {"NearestNeighbors", "plain", 0, prepare_nearest, run_nearest, NULL},
    {0},
};
