/* fit.c - see fit.h. What a job needs grows with its batch almost in proportion, so a few plans find where it ends. */
#include "fit.h"

#include <string.h>

enum { MOST_EXAMPLES = 1 << 20 };

int64_t fit_limit(const tw_device_memory *device, const tw_trainer *trainer, int64_t limit)
{
    bool has_tower = false;
    for (int i = 0; i < tw_trainer_towers(trainer); i++)
        has_tower |= strcmp(tw_trainer_tower_device(trainer, i), device->device) == 0;
    if (!has_tower || limit <= 0 || (device->limit && device->limit < limit))
        return device->limit;
    return limit;
}

/* *excess: bytes that the fullest device lacks with such a batch; below 0: that many are left. *limited: some has an
 * end. */
static tw_status measure(const tw_trainer_options *job, int64_t limit, int64_t batch, int64_t *excess, bool *limited,
                         tw_error *error)
{
    tw_trainer_options options = *job;
    tw_trainer *trainer = NULL;
    tw_memory *memory = NULL;
    options.plan_only = true;
    options.batch = (int)batch;
    options.global_batch = 0;
    options.tower_shares = NULL;
    options.num_tower_shares = 0;
    *limited = false;
    tw_status status = tw_trainer_create(&options, &trainer, error);
    if (status == TW_OK)
        status = tw_session_memory(tw_trainer_session(trainer), &memory, error);
    for (int d = 0; status == TW_OK && d < memory->num_devices; d++) {
        int64_t room = fit_limit(&memory->devices[d], trainer, limit), over = memory->devices[d].total - room;
        if (room && (!*limited || over > *excess))
            *excess = over;
        *limited |= room > 0;
    }
    tw_memory_destroy(memory);
    tw_trainer_destroy(trainer);
    return status;
}

/* What is known so far. */
typedef struct search {
    const tw_trainer_options *job;
    int64_t limit;
    int64_t fits, left;     /* a batch that fits, and the bytes it leaves; 0: none does */
    int64_t fails, lacking; /* one that does not; 0: none is known */
    bool limited;           /* some device has an end */
} search;

static tw_status look_at(search *s, int64_t batch, tw_error *error)
{
    int64_t excess = 0;
    tw_status status = measure(s->job, s->limit, batch, &excess, &s->limited, error);
    if (status == TW_OK && excess > 0) {
        s->fails = batch;
        s->lacking = excess;
    } else if (status == TW_OK) {
        s->fits = batch;
        s->left = -excess;
    }
    return status;
}

/* A number between two, where a straight line through both measurements says the room ends. */
static int64_t guess_between(const search *s)
{
    int64_t way = s->fails - s->fits;
    int64_t guess = s->fits + (int64_t)((double)way * (double)s->left / (double)(s->left + s->lacking));
    return guess <= s->fits ? s->fits + 1 : guess >= s->fails ? s->fails - 1 : guess;
}

/* Beyond the end that the last two that fit point at, and at least twice as much. */
static int64_t next_beyond(const search *s, int64_t fitted, int64_t left)
{
    double end = (double)s->fits + (double)s->left * (double)(s->fits - fitted) / (double)(left - s->left);
    double next = end * 1.1 < 2.0 * (double)s->fits ? 2.0 * (double)s->fits : end * 1.1;
    return next < MOST_EXAMPLES ? (int64_t)next : MOST_EXAMPLES;
}

tw_status fit_largest_batch(const tw_trainer_options *job, int64_t limit, int64_t *batch, tw_error *error)
{
    search s = {.job = job, .limit = limit};
    tw_status status = look_at(&s, 1, error);
    *batch = status == TW_OK && !s.limited ? -1 : 0;
    if (status != TW_OK || !s.limited || s.fails)
        return status;
    for (int64_t next = 2; !s.fails;) { /* until one fails */
        int64_t fitted = s.fits, left = s.left;
        status = look_at(&s, next, error);
        if (status != TW_OK)
            return status;
        if (!s.fails && (next == MOST_EXAMPLES || s.left >= left)) {
            *batch = -1; /* what has an end does not depend on the batch */
            return TW_OK;
        }
        next = s.fails ? next : next_beyond(&s, fitted, left);
    }
    for (int halve = 0; s.fails - s.fits > 1; halve = !halve) { /* a straight line now, the middle then */
        status = look_at(&s, halve ? s.fits + (s.fails - s.fits) / 2 : guess_between(&s), error);
        if (status != TW_OK)
            return status;
    }
    *batch = s.fits;
    return TW_OK;
}
