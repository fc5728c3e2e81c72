/* unigrams.c - see unigrams.h. */
#include "device/cpu/plain/unigrams.h"

#include "base/file.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading weights --------------------------------------------------------------------------------------------- */

#define LARGEST_FILE ((size_t)1 << 32)

typedef struct reading {
    const twi_prepare *p;
    twi_fixed_unigrams *u;
    int64_t class, shards, shard;
    float distortion;
} reading;

/* The next class's weight, if it belongs to this shard. */
static tw_status add_weight(reading *r, float weight)
{
    if (r->class++ % r->shards != r->shard)
        return TW_OK;
    if (!(weight >= 0 && isfinite(weight)))
        return twi_fail(r->p->error, TW_INVALID_ARGUMENT, "%s '%s': class %lld occurs %g times", r->p->op, r->p->node,
                        (long long)r->class - 1, (double)weight);
    r->u->total += weight;
    return twi_push(&r->u->weights, weight) ? TW_OK : twi_fail_memory(r->p->error, r->p->node);
}

/* A class a line; how often it occurs stands behind the last comma. */
static tw_status read_file(reading *r, const char *path)
{
    char *bytes = NULL, *line, *next;
    size_t size;
    tw_status status = twi_file_read(path, LARGEST_FILE, &bytes, &size, r->p->error);
    for (line = bytes; status == TW_OK && line < bytes + size; line = next) {
        char *end = memchr(line, '\n', (size_t)(bytes + size - line)), *stop;
        next = end ? end + 1 : bytes + size;
        *(end ? end : bytes + size) = 0;
        if (!*line)
            continue;
        const char *comma = strrchr(line, ','), *number = comma ? comma + 1 : line;
        float weight = strtof(number, &stop);
        stop += strspn(stop, " \r");
        if (stop == number || *stop)
            status = twi_fail(r->p->error, TW_INVALID_ARGUMENT, "%s '%s': '%s': Wrong vocabulary format at line: %s",
                              r->p->op, r->p->node, path, line);
        else
            status = add_weight(r, powf(weight, r->distortion));
    }
    twi_free(bytes);
    return status;
}

static tw_status read_weights(reading *r)
{
    const twi_attrs *attrs = r->p->attrs;
    const twi_attr *unigrams = twi_attr_find(attrs, "unigrams");
    const char *path = twi_attr_string(attrs, "vocab_file", "");
    int64_t reserved = twi_attr_int(attrs, "num_reserved_ids", 0);
    int count = unigrams ? unigrams->count : 0;
    tw_status status = TW_OK;
    if (!*path == !count)
        return twi_fail(r->p->error, TW_INVALID_ARGUMENT, "%s '%s': Must provide %s of vocab_file and unigrams", r->p->op,
                        r->p->node, count ? "only one" : "one");
    while (r->class < reserved && status == TW_OK)
        status = add_weight(r, 0);
    for (int i = 0; i < count && status == TW_OK; i++)
        status = add_weight(r, powf(unigrams->floats[i], r->distortion));
    return status == TW_OK && *path ? read_file(r, path) : status;
}

/* ---- Walker's method --------------------------------------------------------------------------------------------- */

/* Classes that are less likely than the average are filled up with others' surplus, until each has the average. Stacks
 * of the poor, from the front, and of the rich, from the back, share one array. In TensorFlow's order, so that the same
 * numbers give the same classes. */
static tw_status share_out(const twi_prepare *p, twi_fixed_unigrams *u)
{
    int count = u->weights.count, poor = 0, rich = 0;
    double *parts = twi_alloc_array((size_t)count, sizeof *parts);
    int *stacks = twi_alloc_array((size_t)count, sizeof *stacks);
    u->keep = twi_alloc_array((size_t)count, sizeof *u->keep);
    u->instead = twi_alloc_array((size_t)count, sizeof *u->instead);
    if (!parts || !stacks || !u->keep || !u->instead) {
        twi_free(parts);
        twi_free(stacks);
        return twi_fail_memory(p->error, p->node);
    }
    for (int i = 0; i < count; i++) {
        parts[i] = (double)(u->weights.items[i] * (float)count) / u->total;
        u->instead[i] = i;
        if (parts[i] < 1)
            stacks[poor++] = i;
        else
            stacks[count - ++rich] = i;
    }
    while (poor && rich) {
        int low = stacks[--poor], high = stacks[count - rich--];
        u->instead[low] = high;
        u->keep[low] = (float)parts[low];
        parts[high] -= 1 - parts[low];
        if (parts[high] < 1)
            stacks[poor++] = high;
        else
            stacks[count - ++rich] = high;
    }
    while (poor) /* what is left has the average, but for rounding */
        u->keep[stacks[--poor]] = 1;
    while (rich)
        u->keep[stacks[count - rich--]] = 1;
    twi_free(parts);
    twi_free(stacks);
    return TW_OK;
}

tw_status twi_fixed_unigrams_make(const twi_prepare *p, twi_fixed_unigrams *u)
{
    int64_t range = twi_attr_int(p->attrs, "range_max", 0), drawn = p->outputs[0].elements, possible = 0;
    reading r = {.p = p,
                 .u = u,
                 .shards = twi_attr_int(p->attrs, "num_shards", 1),
                 .shard = twi_attr_int(p->attrs, "shard", 0),
                 .distortion = twi_attr_float(p->attrs, "distortion", 1)};
    tw_status status = r.shards >= 1 && r.shard >= 0
                           ? read_weights(&r)
                           : twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': shard %lld of %lld", p->op, p->node,
                                      (long long)r.shard, (long long)r.shards);
    for (int i = 0; i < u->weights.count; i++)
        possible += u->weights.items[i] > 0;
    if (!twi_attr_bool(p->attrs, "unique", false))
        drawn = 1;
    if (status == TW_OK && u->weights.count != range)
        status = twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': range is %lld must be equal to weights size %d", p->op,
                          p->node, (long long)range, u->weights.count);
    if (status == TW_OK && possible < drawn)
        status = twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': %lld classes to draw, %lld have a weight", p->op,
                          p->node, (long long)drawn, (long long)possible);
    if (status == TW_OK)
        status = share_out(p, u);
    return status;
}

void twi_fixed_unigrams_free(twi_fixed_unigrams *u)
{
    twi_array_free(&u->weights);
    twi_free(u->keep);
    twi_free(u->instead);
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

/* sums[i], i from 1 on: of the weights of the (i & -i) classes that end before class i (Fenwick's tree). */
struct twi_learned_unigrams {
    pthread_mutex_t lock;
    int32_t count, total;
    int32_t *weights, *sums;
};

twi_learned_unigrams *twi_learned_unigrams_make(int64_t count)
{
    twi_learned_unigrams *u = count < INT32_MAX ? twi_alloc(sizeof *u) : NULL;
    if (!u)
        return NULL;
    pthread_mutex_init(&u->lock, NULL);
    u->count = u->total = (int32_t)count;
    u->weights = twi_alloc_array((size_t)count, sizeof *u->weights);
    u->sums = twi_alloc_array((size_t)count + 1, sizeof *u->sums);
    if (!u->weights || !u->sums) {
        twi_learned_unigrams_free(u);
        return NULL;
    }
    for (int32_t i = 0; i < count; i++) {
        u->weights[i] = 1;
        u->sums[i + 1] = (i + 1) & -(i + 1);
    }
    return u;
}

void twi_learned_unigrams_free(void *unigrams)
{
    twi_learned_unigrams *u = unigrams;
    pthread_mutex_destroy(&u->lock);
    twi_free(u->weights);
    twi_free(u->sums);
    twi_free(u);
}

void twi_learned_unigrams_lock(twi_learned_unigrams *u)
{
    pthread_mutex_lock(&u->lock);
}

void twi_learned_unigrams_unlock(twi_learned_unigrams *u)
{
    pthread_mutex_unlock(&u->lock);
}

int32_t twi_learned_unigrams_total(const twi_learned_unigrams *u)
{
    return u->total;
}

int32_t twi_learned_unigrams_weight(const twi_learned_unigrams *u, int64_t value)
{
    return value >= 0 && value < u->count ? u->weights[value] : 0;
}

int64_t twi_learned_unigrams_pick(const twi_learned_unigrams *u, int32_t at)
{
    int32_t before = 0, step = 1;
    while (step <= u->count / 2)
        step *= 2;
    for (; step; step /= 2)
        if (before + step <= u->count && u->sums[before + step] <= at) {
            before += step;
            at -= u->sums[before];
        }
    return before;
}

void twi_learned_unigrams_count(twi_learned_unigrams *u, const int64_t *values, int64_t count)
{
    for (int64_t i = 0; i < count && u->total < INT32_MAX; i++) {
        u->weights[values[i]]++;
        u->total++;
        for (int64_t k = values[i] + 1; k <= u->count; k += k & -k)
            u->sums[k]++;
    }
}
