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

/* A number between two, where a straight line through both measurements says the room ends. */
static int64_t guess_between(int64_t fits, int64_t left, int64_t fails, int64_t lacking)
{
    int64_t guess = fits + (int64_t)((double)(fails - fits) * (double)left / (double)(left + lacking));
    return guess <= fits ? fits + 1 : guess >= fails ? fails - 1 : guess;
}

tw_status fit_largest_batch(const tw_trainer_options *job, int64_t limit, int64_t *batch, tw_error *error)
{
    int64_t fits = 1, left, fails = 0, lacking = 0, excess;
    bool limited;
    tw_status status = measure(job, limit, 1, &excess, &limited, error);
    *batch = status == TW_OK && !limited ? -1 : 0;
    if (status != TW_OK || !limited || excess > 0)
        return status;
    left = -excess;
    for (int64_t next = 2; !fails;) { /* until one fails */
        status = measure(job, limit, next, &excess, &limited, error);
        if (status != TW_OK)
            return status;
        if (excess > 0) {
            fails = next;
            lacking = excess;
        } else if (next == MOST_EXAMPLES || -excess >= left) {
            *batch = -1; /* what has an end does not depend on the batch */
            return TW_OK;
        } else {
            double end = (double)next + (double)-excess * (double)(next - fits) / (double)(left + excess);
            fits = next;
            left = -excess;
            next = end * 1.1 < 2.0 * (double)next ? 2 * next : end < MOST_EXAMPLES / 2 ? (int64_t)(end * 1.1) : MOST_EXAMPLES;
            next = next < MOST_EXAMPLES ? next : MOST_EXAMPLES;
        }
    }
    for (int halve = 0; fails - fits > 1; halve = !halve) { /* a straight line now, the middle then */
        int64_t next = halve ? fits + (fails - fits) / 2 : guess_between(fits, left, fails, lacking);
        status = measure(job, limit, next, &excess, &limited, error);
        if (status != TW_OK)
            return status;
        if (excess > 0) {
            fails = next;
            lacking = excess;
        } else {
            fits = next;
            left = -excess;
        }
    }
    *batch = fits;
    return TW_OK;
}
