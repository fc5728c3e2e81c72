/* update_order.c - see update_order.h. */
#include "train/update_order.h"

#include "base/memory.h"
#include "base/philox.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- replaying --------------------------------------------------------------------------------------------- */

static const twi_order_record *record_of(const twi_update_order *o, int64_t update)
{
    return &o->replay->records[update - o->replay->head.first];
}

typedef struct pull {
    int64_t pulled, batch, update;
} pull;

static int compare_pulls(const void *a, const void *b)
{
    const pull *x = a, *y = b;
    if (x->pulled != y->pulled)
        return x->pulled < y->pulled ? -1 : 1;
    return (x->batch > y->batch) - (x->batch < y->batch);
}

/* Updates that begin at the present version can be replayed if none of them was computed from an older one. */
static tw_status begin_replay(twi_update_order *o, tw_error *error)
{
    const twi_order_head *head = &o->replay->head;
    int64_t left = head->first + o->replay->count - o->version;
    if (o->version < head->first || left < 0)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "the order to be replayed has the updates %lld to %lld; training is to begin with number %lld",
                        (long long)head->first, (long long)(head->first + o->replay->count - 1), (long long)o->version);
    pull *pulls = twi_alloc_array((size_t)left + 1, sizeof *pulls);
    o->pulls = twi_alloc_array((size_t)left + 1, sizeof *o->pulls);
    if (!pulls || !o->pulls) {
        twi_free(pulls);
        return twi_fail_memory(error, "replaying an order of updates");
    }
    tw_status status = TW_OK;
    for (int64_t i = 0; i < left && status == TW_OK; i++) {
        const twi_order_record *r = record_of(o, o->version + i);
        pulls[i] = (pull){r->pulled, r->batch, o->version + i};
        if (r->pulled < o->version)
            status = twi_fail(error, TW_INVALID_ARGUMENT,
                              "update %lld of the order to be replayed was computed from the variables of update %lld, "
                              "which is before the checkpoint's %lld: replay it from the beginning",
                              (long long)(o->version + i), (long long)r->pulled, (long long)o->version);
    }
    qsort(pulls, (size_t)left, sizeof *pulls, compare_pulls);
    for (int64_t i = 0, next = o->next_batch; i < left && status == TW_OK; i++) {
        o->pulls[i] = pulls[i].update;
        if (pulls[i].batch >= next + o->towers)
            status = twi_fail(error, TW_INVALID_ARGUMENT,
                              "update %lld of the order to be replayed is of batch %lld, when %lld would be next",
                              (long long)pulls[i].update, (long long)pulls[i].batch, (long long)next);
        next = pulls[i].batch >= next ? pulls[i].batch + 1 : next;
    }
    o->pulls[left] = -1;
    twi_free(pulls);
    return status;
}

/* ---- beginning and ending ---------------------------------------------------------------------------------- */

tw_status twi_update_order_begin(twi_update_order *o, int towers, const tw_asynchronous *options, int64_t version,
                                 const int64_t *batches, int num_batches, const twi_order_log *replay, tw_error *error)
{
    *o = (twi_update_order){
        .towers = towers, .version = version, .options = *options, .replay = replay, .lined_up = towers};
    o->next_batch = num_batches ? batches[0] : version;
    o->flights = twi_alloc_array((size_t)towers, sizeof *o->flights);
    o->left_over = twi_alloc_array((size_t)towers + 1, sizeof *o->left_over);
    if (!o->flights || !o->left_over)
        return twi_fail_memory(error, "ordering updates");
    for (int i = 0; i < towers; i++)
        o->flights[i].waiting_since = i;
    for (int i = 1; i < num_batches; i++)
        o->left_over[o->num_left_over++] = batches[i];
    return replay ? begin_replay(o, error) : TW_OK;
}

void twi_update_order_free(twi_update_order *o)
{
    twi_free(o->flights);
    twi_free(o->left_over);
    twi_free(o->pulls);
    *o = (twi_update_order){0};
}

/* ---- pulling ----------------------------------------------------------------------------------------------- */

int twi_update_order_next_pull(const twi_update_order *o)
{
    if (o->replay) {
        int64_t update = o->pulls[o->next_pull];
        return update >= 0 && record_of(o, update)->pulled == o->version ? record_of(o, update)->tower : -1;
    }
    if (o->options.bounded && o->num_under_way > o->options.max_staleness)
        return -1;
    int next = -1;
    for (int i = 0; i < o->towers; i++)
        if (!o->flights[i].under_way &&
            (next < 0 || o->flights[i].waiting_since < o->flights[next].waiting_since))
            next = i;
    return next;
}

/* How long a tower computes, on the drawn clock, in units of the mean. */
static double draw_duration(const twi_update_order *o, int tower, int64_t number)
{
    uint32_t block[4];
    twi_philox philox = twi_philox_seed((uint64_t)o->options.order_seed, (uint64_t)tower);
    twi_philox_skip(&philox, (uint64_t)number);
    twi_philox_next(&philox, block);
    double drawn = ((double)block[0] + 0.5) / 4294967296.0;
    switch (o->options.order) {
    case TW_ORDER_UNIFORM:
        return 0.5 + drawn;
    case TW_ORDER_EXPONENTIAL:
        return -log(drawn);
    case TW_ORDER_STRAGGLER:
        return tower == 0 ? 4 : 1;
    default:
        return 1;
    }
}

/* Takes a batch out of those that were left over, if it is there. */
static void take_left_over(twi_update_order *o, int64_t batch)
{
    for (int i = 0; i < o->num_left_over; i++)
        if (o->left_over[i] == batch) {
            memmove(o->left_over + i, o->left_over + i + 1, sizeof batch * (size_t)(--o->num_left_over - i));
            return;
        }
}

static int64_t next_batch(twi_update_order *o)
{
    int64_t batch = o->num_left_over ? o->left_over[0] : o->next_batch++;
    take_left_over(o, batch);
    return batch;
}

/* A batch out of order: those before it were under way in the run that is replayed, and did not arrive. */
static void take_batch(twi_update_order *o, int64_t batch)
{
    take_left_over(o, batch);
    for (; o->next_batch <= batch; o->next_batch++)
        if (o->next_batch < batch && o->num_left_over < o->towers)
            o->left_over[o->num_left_over++] = o->next_batch;
}

const twi_flight *twi_update_order_pull(twi_update_order *o, int tower)
{
    twi_flight *f = &o->flights[tower];
    if (o->replay) {
        f->batch = record_of(o, o->pulls[o->next_pull++])->batch;
        take_batch(o, f->batch);
    } else {
        f->batch = next_batch(o);
    }
    f->under_way = true;
    f->pulled = o->version;
    f->lands = o->now + draw_duration(o, tower, f->begun++);
    o->num_under_way++;
    return f;
}

/* ---- pushing ----------------------------------------------------------------------------------------------- */

bool twi_update_order_may_push(const twi_update_order *o, int tower)
{
    if (!o->flights[tower].under_way)
        return false;
    if (o->replay)
        return record_of(o, o->version)->tower == tower;
    if (!o->options.bounded)
        return true;
    /* Afterwards the others come one by one, those that pulled first before those that pulled later; each has to find
     * a version that is not too new for it. */
    for (int i = 0; i < o->towers; i++) {
        const twi_flight *f = &o->flights[i];
        int place = 0; /* from 1 */
        if (!f->under_way || i == tower)
            continue;
        for (int k = 0; k < o->towers; k++)
            place += k != tower && o->flights[k].under_way && o->flights[k].pulled <= f->pulled;
        if (o->version + place - f->pulled > o->options.max_staleness)
            return false;
    }
    return true;
}

int twi_update_order_next_push(const twi_update_order *o)
{
    int next = -1;
    if (o->replay)
        return record_of(o, o->version)->tower;
    for (int i = 0; i < o->towers && o->options.order != TW_ORDER_ARRIVAL; i++)
        if (twi_update_order_may_push(o, i) && (next < 0 || o->flights[i].lands < o->flights[next].lands))
            next = i;
    return next;
}

int64_t twi_update_order_push(twi_update_order *o, int tower)
{
    twi_flight *f = &o->flights[tower];
    int64_t staleness = o->version++ - f->pulled;
    if (f->lands > o->now)
        o->now = f->lands;
    f->under_way = false;
    f->waiting_since = o->lined_up++;
    o->num_under_way--;
    return staleness;
}

/* Behind the first, in order of the stream. */
static int add_sorted(int64_t *batches, int count, int64_t batch)
{
    int at = count;
    for (; at > 1 && batches[at - 1] > batch; at--)
        batches[at] = batches[at - 1];
    batches[at] = batch;
    return count + 1;
}

int twi_update_order_batches(const twi_update_order *o, int64_t *batches)
{
    int count = 0;
    batches[count++] = o->next_batch;
    for (int i = 0; i < o->num_left_over; i++)
        count = add_sorted(batches, count, o->left_over[i]);
    for (int i = 0; i < o->towers && count <= o->towers; i++)
        if (o->flights[i].under_way)
            count = add_sorted(batches, count, o->flights[i].batch);
    return count;
}
