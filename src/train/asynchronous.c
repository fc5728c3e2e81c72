/* asynchronous.c - see asynchronous.h: pulling, pushing, and what is told about it. */
#include "base/crash.h"
#include "base/log.h"
#include "base/status.h"
#include "train/asynchronous.h"

#include <math.h>
#include <stdio.h>

/* ---- stepping ---------------------------------------------------------------------------------------------- */

static tw_status pull(twi_asynchronous *a, int tower, tw_error *error)
{
    twi_worker *w = &a->workers[tower];
    tw_status status = tw_session_run_to(a->trainer->session, 0, NULL, 0, a->values, a->num_variables, w->pulls, w->values,
                                          error);
    if (status != TW_OK)
        return status;
    for (int i = 0; i < a->num_variables; i++)
        w->feeds[i] = (tw_feed){a->values[i], w->values[i]};
    w->batch = twi_update_order_pull(&a->order, tower)->batch;
    if (!a->trainer->input.elsewhere[tower])
        w->place = a->pulls++;
    pthread_mutex_lock(&a->lock);
    w->state = TWI_COMPUTES;
    pthread_cond_broadcast(&a->begin);
    pthread_mutex_unlock(&a->lock);
    return TW_OK;
}

/* Tower `wanted`, or where that is -1 whoever may push and is there first, once it has computed; or one that has
 * failed. */
static twi_worker *wait_for(twi_asynchronous *a, int wanted)
{
    twi_worker *next = NULL;
    pthread_mutex_lock(&a->lock);
    for (;;) {
        for (int i = 0; i < a->order.towers; i++) {
            twi_worker *w = &a->workers[i];
            if (w->state != TWI_HAS_COMPUTED)
                continue;
            bool failed = w->status != TW_OK;
            if (failed || (wanted < 0 ? twi_update_order_may_push(&a->order, i) : i == wanted))
                if (!next || failed || w->arrived < next->arrived)
                    next = w;
            if (failed)
                break;
        }
        if (next)
            break;
        pthread_cond_wait(&a->arrival, &a->lock);
    }
    next->state = TWI_RESTS;
    pthread_mutex_unlock(&a->lock);
    return next;
}

/* The tower to push next. Where that is whoever comes first it is who came first to task 0. */
static tw_status find_next(twi_asynchronous *a, twi_worker **next, tw_error *error)
{
    tw_devices *devices = tw_session_devices(a->trainer->session);
    int wanted = twi_update_order_next_push(&a->order);
    bool first_comes = wanted < 0;
    *next = !first_comes || tw_devices_task(devices) == 0 ? wait_for(a, wanted) : NULL;
    if (*next)
        wanted = (*next)->tower;
    tw_status status = first_comes ? tw_devices_share(devices, &wanted, sizeof wanted, error) : TW_OK;
    if (status == TW_OK && !*next)
        *next = wait_for(a, wanted);
    return status;
}

static tw_status check(twi_asynchronous *a, const twi_worker *w, tw_error *error)
{
    tw_trainer *t = a->trainer;
    if (w->status != TW_OK) {
        if (error)
            *error = w->error;
        twi_prefix(error, "step %lld, tower_%d (%s)", (long long)t->step, w->tower, t->towers.devices[w->tower]);
        return w->status;
    }
    float loss = t->fetched.losses[w->tower] = *(float *)tw_tensor_data(w->results[0]);
    if (!isfinite(loss))
        return twi_fail(error, TW_OUT_OF_RANGE, "Model diverged with loss = %s at step %lld in tower_%d (%s)",
                        isnan(loss) ? "NaN" : "infinity", (long long)t->step, w->tower, t->towers.devices[w->tower]);
    if (a->options.replay && !a->differs) {
        const twi_order_record *r = &a->replay.records[t->step - a->replay.head.first];
        a->differs = r->loss != loss;
        if (a->differs)
            twi_log(TWI_LOG_WARNING,
                    "this replay is not of the same bits: at update %lld tower_%d has loss %.9g, the order that is "
                    "replayed says %.9g; are model, data, options and kind of devices the same?",
                    (long long)t->step, w->tower, (double)loss, (double)r->loss);
    }
    return TW_OK;
}

static tw_status push(twi_asynchronous *a, twi_worker *w, tw_error *error)
{
    tw_trainer *t = a->trainer;
    tw_output fetches[] = {t->update.rate, t->fetched.outputs[t->towers.count]};
    tw_tensor *results[] = {a->rate, NULL};
    for (int i = 0; i < a->num_gradients; i++)
        a->pushed[i].tensor = w->results[1 + i];
    tw_status status = tw_session_run(t->session, a->pushed, a->num_gradients, fetches, 2, results, error);
    a->rate = results[0];
    return status;
}

static void count_staleness(tw_staleness *s, int64_t staleness)
{
    enum { BINS = sizeof s->histogram / sizeof *s->histogram };
    s->mean += ((double)staleness - s->mean) / (double)++s->updates;
    s->most = staleness > s->most ? staleness : s->most;
    s->histogram[staleness < BINS ? staleness : BINS - 1]++;
}

static tw_status make_update(twi_asynchronous *a, tw_trainer_step_result *result, tw_error *error)
{
    tw_trainer *t = a->trainer;
    tw_status status = TW_OK;
    if (t->step >= tw_trainer_last_step(t))
        return twi_fail(error, TW_OUT_OF_RANGE, "the order that is replayed ends after %lld updates",
                        (long long)t->step);
    for (int tower; status == TW_OK && (tower = twi_update_order_next_pull(&a->order)) >= 0;)
        status = pull(a, tower, error);
    if (status != TW_OK)
        return twi_prefix(error, "step %lld", (long long)t->step), status;
    twi_worker *w = NULL;
    status = find_next(a, &w, error);
    if (status == TW_OK)
        status = check(a, w, error);
    if (status != TW_OK)
        return status;
    status = push(a, w, error);
    if (status != TW_OK)
        return twi_prefix(error, "step %lld", (long long)t->step), status;
    const twi_flight *flight = &a->order.flights[w->tower];
    twi_order_record record = {w->tower, flight->pulled, flight->batch, t->fetched.losses[w->tower]};
    int64_t staleness = twi_update_order_push(&a->order, w->tower);
    if (a->log)
        status = twi_order_writer_add(a->log, &record, error);
    count_staleness(&w->staleness, staleness);
    a->stale_sum += (double)staleness;
    a->stale_count++;
    a->stale_most = staleness > a->stale_most ? staleness : a->stale_most;
    twi_crash_note_step(t->step);
    *result = (tw_trainer_step_result){t->step++, record.loss, t->fetched.losses, w->tower, staleness};
    return status;
}

tw_status twi_asynchronous_step(tw_trainer *t, tw_trainer_step_result *result, tw_error *error)
{
    twi_asynchronous *a = t->asynchronous;
    if (a->failure.status == TW_OK && make_update(a, result, &a->failure) == TW_OK)
        return TW_OK;
    if (error)
        *error = a->failure;
    return a->failure.status;
}

/* ---- summaries, checkpoints, answers ----------------------------------------------------------------------- */

tw_status twi_asynchronous_write_summaries(tw_trainer *t, tw_event_writer *events, const tw_trainer_step_result *r,
                                           tw_error *error)
{
    twi_asynchronous *a = t->asynchronous;
    tw_status status;
    char tag[64];
    const twi_worker *w = &a->workers[r->tower];
    TWI_TRY(twi_trainer_write_curve(t, events, t->as_tutorial ? "total_loss" : "loss", r->step, r->loss, error));
    snprintf(tag, sizeof tag, "towers/%d/total_loss", r->tower);
    TWI_TRY(twi_trainer_write_curve(t, events, tag, r->step, r->loss, error));
    TWI_TRY(twi_trainer_write_curve(t, events, "learning_rate", r->step, *(float *)tw_tensor_data(a->rate), error));
    TWI_TRY(twi_trainer_write_curve(t, events, "staleness/mean", r->step,
                                    (float)(a->stale_sum / (double)a->stale_count), error));
    TWI_TRY(twi_trainer_write_curve(t, events, "staleness/max", r->step, (float)a->stale_most, error));
    a->stale_sum = 0;
    a->stale_count = a->stale_most = 0;
    TWI_TRY(twi_trainer_write_variables(t, events, r->step, w->results + 1, error));
done:
    return status;
}

int64_t tw_trainer_last_step(const tw_trainer *t)
{
    TWI_NEED_OR(t, 0);
    const twi_asynchronous *a = t->asynchronous;
    return a && a->options.replay ? a->replay.head.first + a->replay.count : INT64_MAX;
}

void tw_trainer_staleness(const tw_trainer *t, int tower, tw_staleness *staleness)
{
    TWI_NEED_OR(t, );
    TWI_NEED_OR(staleness, );
    *staleness = (tw_staleness){0};
    for (int i = 0; t->asynchronous && i < t->towers.count; i++) {
        const tw_staleness *s = &t->asynchronous->workers[i].staleness;
        if ((tower >= 0 && i != tower) || s->updates == 0)
            continue;
        staleness->updates += s->updates;
        staleness->mean += (s->mean - staleness->mean) * (double)s->updates / (double)staleness->updates;
        staleness->most = s->most > staleness->most ? s->most : staleness->most;
        for (size_t k = 0; k < sizeof s->histogram / sizeof *s->histogram; k++)
            staleness->histogram[k] += s->histogram[k];
    }
}
