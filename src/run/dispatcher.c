/* dispatcher.c - see dispatcher.h. The protocol is also a model, tests/models/dispatcher.pml, whose parts have the
 * names of the functions here; who changes one changes the other. */
#include "run/dispatcher.h"

#include "base/clock.h"
#include "base/cores.h"
#include "base/crash.h"
#include "base/thread.h"
#include "comm/comm.h"
#include "graph/graph.h"
#include "run/loop.h"
#include "run/messages.h"
#include "run/numbers.h"
#include "run/recording.h"

#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SPINS = 2000 }; /* looks before a waiter sleeps: about the time a wake-up takes */

/* A number that rises, and those who wait for it. */
typedef struct counter {
    _Alignas(64) _Atomic(int64_t) value;
    atomic_int sleepers;
    pthread_mutex_t lock;
    pthread_cond_t moved;
} counter;

typedef struct dispatcher {
    twi_dispatchers *all;
    twi_device *device;
    int index;
    pthread_t thread;
    bool started;
    twi_crash_place *place;     /* where it says what it is at, for the report of a crash */
    int64_t round;              /* of the latest run it has part in: how often it has been through its list */
    counter *begun;             /* number of the run that its thread has been told of; INT64_MAX: that there are no more */
    counter *progress;          /* how many steps of its list the device has finished in this run, over all rounds.
                                   INT64_MAX when the run is to end early: then nobody waits any more, and who has waited
                                   looks at `ending` */
} dispatcher;

struct twi_dispatchers {
    dispatcher *items;
    counter *counters;          /* [2 count] */
    int count;
    int cores;
    void (*wake)(void *user);   /* of kernels that wait */
    void *user;
    /* Of the run, written before the dispatchers are told of it. */
    twi_plan *plan;
    int64_t rounds;             /* how often each list is gone through */
    int64_t number;             /* goes up with each run */
    atomic_int walking;         /* lists that are not finished */
    counter *ended;             /* number of the run that has ended */
    atomic_bool ending;         /* a step failed, or the run was cancelled */
    pthread_mutex_t lock;       /* guards all below, and when `ending` changes */
    const tw_error *cancelled;  /* what all runs fail with; NULL: they do not */
    int first_failure;          /* list; -1: none, but cancelled */
};

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static void raise_to(counter *c, int64_t value)
{
    int64_t known = atomic_load_explicit(&c->value, memory_order_relaxed);
    while (known < value && !atomic_compare_exchange_weak(&c->value, &known, value))
        ;
    if (atomic_load(&c->sleepers)) {
        pthread_mutex_lock(&c->lock);
        pthread_cond_broadcast(&c->moved);
        pthread_mutex_unlock(&c->lock);
    }
}

static bool is_above(counter *c, int64_t value)
{
    return atomic_load_explicit(&c->value, memory_order_acquire) > value;
}

static bool is_crowded(const twi_dispatchers *all)
{
    return atomic_load_explicit(&twi_awake_threads, memory_order_relaxed) > all->cores;
}

static void wait_above(const twi_dispatchers *all, counter *c, int64_t value)
{
    bool above = is_above(c, value);
    for (int i = 0; i < SPINS && !above && !is_crowded(all); i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        above = is_above(c, value);
    }
    if (above)
        return;
    pthread_mutex_lock(&c->lock);
    atomic_fetch_add(&c->sleepers, 1);
    atomic_fetch_sub(&twi_awake_threads, 1);
    while (atomic_load(&c->value) <= value)
        pthread_cond_wait(&c->moved, &c->lock);
    atomic_fetch_add(&twi_awake_threads, 1);
    atomic_fetch_sub(&c->sleepers, 1);
    pthread_mutex_unlock(&c->lock);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* What a device has finished when it has done the step at a position of its list in the round that d is in. */
static int64_t at_round(const dispatcher *d, int device, int position)
{
    return d->round * d->all->plan->lists[device].count + position;
}

static void wait_for_step(const dispatcher *d, const twi_step_id *wait)
{
    wait_above(d->all, d->all->items[wait->device].progress, at_round(d, wait->device, wait->position));
}

/* As far as the host knows. Where a device sees another's memory, its queue waits, too: the other's may be behind. */
static tw_status meet(const dispatcher *d, const twi_step_id *wait, tw_error *error)
{
    twi_device *device = d->device, *other = d->all->items[wait->device].device;
    wait_for_step(d, wait);
    bool follows = device->ops->follow && device != other && twi_device_sees(device, other);
    return follows ? device->ops->follow(device, other, error) : TW_OK;
}

static void sleep_for(int64_t ns)
{
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    if (ns > 0)
        nanosleep(&time, NULL);
}

static tw_status run_traced(const twi_plan *plan, twi_step_id id)
{
    const twi_step_delay delay = plan->delays ? plan->delays[id.device][id.position] : (twi_step_delay){0};
    twi_span *span = twi_span_of(plan, id);
    sleep_for(delay.before_ns);
    span->started_ns = twi_monotonic_ns();
    tw_status status = twi_run_marked_step(plan, id);
    sleep_for(delay.behind_ns);
    span->ended_ns = twi_monotonic_ns();
    return status;
}

/* The caller holds the lock. False if the run is to end early already. */
static bool end_early(twi_dispatchers *all, int first_failure)
{
    if (atomic_exchange(&all->ending, true))
        return false;
    all->first_failure = first_failure;
    for (int i = 0; i < all->count; i++)
        raise_to(all->items[i].progress, INT64_MAX);
    return true;
}

static void note_failure(twi_dispatchers *all, int list)
{
    pthread_mutex_lock(&all->lock);
    bool first = end_early(all, list);
    pthread_mutex_unlock(&all->lock);
    if (first)
        all->wake(all->user);
}

/* Ends the run here, and on the other tasks that have part in it. */
static void end_run(const dispatcher *d, tw_status status, const tw_error *error)
{
    const twi_plan *plan = d->all->plan;
    bool others = twi_is_among_tasks(d->device, plan->lane) && !plan->apart, lane = twi_ends_lane(plan, status);
    if (others && !lane)
        d->device->set->comm->ops->abort(d->device->set->comm, status, error->message);
    note_failure(d->all, d->index);
    if (others && lane)
        twi_end_run(plan, status, error->message);
}

static void fail_run(dispatcher *d, tw_status status, const twi_step *step)
{
    tw_error *error = step->run.error;
    if (error->status == TW_OK)
        twi_fail(error, status, "%s failed", step->kernel ? step->kernel->op : "a copy");
    twi_say_node(error, step->run.node);
    end_run(d, status, error);
}

/* The part of a replayed segment that begins at the step; NULL: none does. */
static const twi_part *replayed_part(const twi_plan *plan, const twi_list *list, int position)
{
    const twi_part *part = list->members ? list->members[position].part : NULL;
    return part && part->first == position && twi_is_replayed(plan, part->segment) ? part : NULL;
}

/* The leader does all of the segment, and reports for each of its followers, who wait until it has been handed over. */
static tw_status replay(dispatcher *d, const twi_part *part, tw_error *error)
{
    const twi_segment *s = part->segment;
    tw_status status = TW_OK;
    if (twi_leader(s) != d->index) {
        wait_above(d->all, d->progress, at_round(d, d->index, part->end - 1));
        return TW_OK;
    }
    for (int k = 0; k < s->num_waits && status == TW_OK; k++)
        status = meet(d, &s->waits[k], error);
    if (status != TW_OK || atomic_load_explicit(&d->all->ending, memory_order_acquire))
        return status;
    status = d->device->ops->replay(d->device, s->recording, error);
    for (int i = 0; i < s->num_parts && status == TW_OK; i++)
        raise_to(d->all->items[s->parts[i].device].progress, at_round(d, s->parts[i].device, s->parts[i].end));
    return status;
}

static tw_status run_alone(const dispatcher *d, const twi_step *step, int position)
{
    const twi_plan *plan = d->all->plan;
    tw_status status = TW_OK;
    for (int k = 0; k < step->num_waits && status == TW_OK; k++) {
        bool sent = k >= step->num_waits - step->num_sent; /* by who walks the other's list here */
        bool elsewhere = d->all->items[step->waits[k].device].device->absent;
        /* Else a message says so, or it is nobody's here. What all tasks do together must be done here as well. */
        if (sent ? !d->device->absent : !elsewhere || plan->depth > 0)
            status = meet(d, &step->waits[k], step->run.error);
    }
    if (status != TW_OK || atomic_load_explicit(&d->all->ending, memory_order_acquire))
        return status;
    twi_step_id id = {d->index, position};
    bool done, together = step->loop && step->loop->spans, taken = true;
    if (d->device->absent) {
        status = twi_send_for(plan, id);
        if (status == TW_OK && together)
            status = twi_loop_agree(step, &taken);
        return status == TW_OK && together && taken ? twi_loop_run(step) : status;
    }
    bool traced = plan->trace && plan->trace->on;
    status = twi_receive_for(plan, id, &done);
    if (status == TW_OK && together)
        status = twi_loop_agree(step, &taken);
    if (done && traced) /* it has come: the time before is that of waiting for it */
        twi_span_of(plan, id)->started_ns = twi_span_of(plan, id)->ended_ns = twi_monotonic_ns();
    if (status != TW_OK || done)
        return status;
    if (plan->checked)
        return twi_run_checked_step(plan, id);
    return traced ? run_traced(plan, id) : twi_run_step(step);
}

/* Loops that need nothing of each other: none waits for what waits for another. */
static tw_status run_beside(const dispatcher *d, const twi_step *steps, const twi_step **failed)
{
    tw_status status = TW_OK;
    for (int i = 0; i < steps->beside; i++)
        for (int k = 0; k < steps[i].num_waits && status == TW_OK; k++)
            status = meet(d, &steps[i].waits[k], steps->run.error);
    *failed = steps;
    if (status != TW_OK || atomic_load_explicit(&d->all->ending, memory_order_acquire))
        return status;
    return twi_loops_run_beside(steps, failed);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* The segment that is all of a list; NULL: none is. */
static const twi_segment *all_replayed(const twi_plan *plan, int list)
{
    const twi_list *l = &plan->lists[list];
    const twi_part *part = l->count ? replayed_part(plan, l, 0) : NULL;
    return part && part->end == l->count ? part->segment : NULL;
}

/* Who walks a list: its own device's dispatcher, the one that replays all of it, or, if it is empty, nobody (-1). */
static int walker_of(const twi_plan *plan, int list)
{
    const twi_segment *s = all_replayed(plan, list);
    if (plan->lists[list].count == 0)
        return -1;
    return s ? twi_leader(s) : list;
}

/* Step by step, so one after the other. */
static bool is_looked_at(const twi_plan *plan)
{
    return plan->checked || (plan->trace && plan->trace->on);
}

/* False if the run is to end early. Progress that nobody waits for is not reported. */
static bool walk_list(dispatcher *d, const twi_list *list)
{
    for (int i = 0, next; i < list->count; i = next) {
        const twi_step *step = &list->steps[i];
        twi_crash_be_at(d->place, step->kernel ? step->kernel->op : step->source ? "a copy" : "a loop", step->run.node);
        const twi_part *part = replayed_part(d->all->plan, list, i);
        bool beside = step->beside && !is_looked_at(d->all->plan);
        next = part ? part->end : i + (beside ? step->beside : 1);
        tw_status status = part     ? replay(d, part, step->run.error)
                           : beside ? run_beside(d, step, &step)
                                    : run_alone(d, step, i);
        if (status != TW_OK)
            fail_run(d, status, step);
        if (atomic_load_explicit(&d->all->ending, memory_order_acquire))
            return false;
        if (beside || list->steps[next - 1].awaited || next == list->count)
            raise_to(d->progress, at_round(d, d->index, next));
    }
    return true;
}

/* A round begins when all lists have been through the one before: then nobody reads any more what it writes. */
static bool wait_for_round(const dispatcher *d)
{
    const twi_plan *plan = d->all->plan;
    const twi_segment *own = all_replayed(plan, d->index);
    tw_status status = TW_OK;
    for (int i = 0; i < plan->num_lists && status == TW_OK; i++) {
        const twi_step_id last = {i, plan->lists[i].count - 1};
        if (last.position >= 0 && own && own == all_replayed(plan, i))
            wait_for_step(d, &last); /* a replay comes behind all that its devices were handed */
        else if (last.position >= 0)
            status = meet(d, &last, &plan->lists[d->index].error);
    }
    if (status != TW_OK)
        end_run(d, status, &plan->lists[d->index].error);
    return status == TW_OK;
}

/* A device that tells when it did what has told. What does nothing has no time of its own. */
static tw_status take_times(const twi_trace *trace, const twi_track *track, const twi_list *list, tw_error *error)
{
    const int64_t *marks = track->marks;
    tw_status status = list->device->ops->read_timeline(list->device, track->timeline, track->marks, error);
    for (int i = 0; i < list->count && status == TW_OK; i++) {
        int64_t before = i ? track->spans[i - 1].ended_ns : trace->began_ns;
        bool told = marks[2 * i] && marks[2 * i + 1];
        track->spans[i].started_ns = told ? marks[2 * i] : before;
        track->spans[i].ended_ns = told ? marks[2 * i + 1] : before;
    }
    return status;
}

/* A device with a queue of its own may still be at work when its last step has been handed to it. A failure that only
 * shows now is its list's, unless the list has one already. */
static void finish_list(twi_dispatchers *all, int index)
{
    const twi_trace *trace = all->plan->trace;
    const twi_track *track = trace && trace->on ? &trace->tracks[index] : NULL;
    twi_list *list = &all->plan->lists[index];
    twi_device *device = all->items[index].device;
    tw_error late = {0};
    tw_status status = device->ops->synchronize ? device->ops->synchronize(device, &late) : TW_OK;
    if (status == TW_OK && track && track->timeline && list->error.status == TW_OK)
        status = take_times(trace, track, list, &late);
    if (status == TW_OK || list->error.status != TW_OK)
        return;
    list->error = late;
    end_run(&all->items[index], status, &list->error);
}

static void run_list(dispatcher *d)
{
    twi_dispatchers *all = d->all;
    for (; d->round < all->rounds && walk_list(d, &all->plan->lists[d->index]); d->round++)
        if (d->round + 1 < all->rounds && !wait_for_round(d))
            break;
    for (int i = 0; i < all->count; i++)
        if (walker_of(all->plan, i) == d->index)
            finish_list(all, i);
    twi_crash_be_at(d->place, NULL, NULL); /* the node goes with the plan */
    if (atomic_fetch_sub(&all->walking, 1) == 1)
        raise_to(all->ended, all->number);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *dispatch(void *argument)
{
    dispatcher *d = argument;
    int64_t seen = 0;
    for (atomic_fetch_add(&twi_awake_threads, 1);; run_list(d)) {
        wait_above(d->all, d->begun, seen);
        seen = atomic_load(&d->begun->value);
        if (seen == INT64_MAX)
            break;
    }
    atomic_fetch_sub(&twi_awake_threads, 1);
    return NULL;
}

static void counter_init(counter *c)
{
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->moved, NULL);
}

static void counter_destroy(counter *c)
{
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->moved);
}

tw_status twi_dispatchers_create(tw_devices *devices, void (*wake)(void *user), void *user, twi_dispatchers **result,
                                 tw_error *error)
{
    *result = NULL;
    twi_dispatchers *all = twi_alloc(sizeof *all);
    if (!all)
        return twi_fail_memory(error, "creating dispatchers");
    all->wake = wake;
    all->user = user;
    all->cores = twi_usable_cores();
    pthread_mutex_init(&all->lock, NULL);
    all->items = twi_alloc_array((size_t)devices->count, sizeof *all->items);
    all->counters = twi_alloc_aligned((size_t)(2 * devices->count + 1) * sizeof *all->counters, 64);
    if (!all->items || !all->counters) {
        twi_dispatchers_destroy(all);
        return twi_fail_memory(error, "creating dispatchers");
    }
    all->ended = &all->counters[2 * devices->count];
    counter_init(all->ended);
    for (; all->count < devices->count; all->count++) {
        dispatcher *d = &all->items[all->count];
        *d = (dispatcher){.all = all, .device = devices->items[all->count], .index = all->count};
        d->place = twi_crash_take_place(d->device->text);
        counter_init(d->begun = &all->counters[2 * d->index]);
        counter_init(d->progress = &all->counters[2 * d->index + 1]);
    }
    *result = all;
    return TW_OK;
}

void twi_dispatchers_destroy(twi_dispatchers *all)
{
    if (!all)
        return;
    for (int i = 0; i < all->count; i++)
        raise_to(all->items[i].begun, INT64_MAX);
    for (int i = 0; i < all->count; i++)
        if (all->items[i].started)
            pthread_join(all->items[i].thread, NULL);
    for (int i = 0; i < all->count; i++) {
        counter_destroy(all->items[i].begun);
        counter_destroy(all->items[i].progress);
        twi_crash_give_back(all->items[i].place);
    }
    if (all->ended)
        counter_destroy(all->ended);
    pthread_mutex_destroy(&all->lock);
    twi_free(all->items);
    twi_free_aligned(all->counters);
    twi_free(all);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* The list that the calling thread walks itself: the first that no device with cores of its own has; -1: none, as
 * inside of a parallel region, where the thread would be no team's master. */
static int own_list(const twi_dispatchers *all, const twi_plan *plan)
{
    if (omp_in_parallel())
        return -1;
    for (int i = 0; i < plan->num_lists; i++)
        if (walker_of(plan, i) == i && !all->items[i].device->num_cores && !all->items[i].device->absent)
            return i;
    return -1;
}

/* Starts what threads are not there yet. */
static tw_status start_threads(twi_dispatchers *all, const twi_plan *plan, int own, tw_error *error)
{
    for (int i = 0; i < all->count; i++) {
        dispatcher *d = &all->items[i];
        if (d->started || i == own || walker_of(plan, i) != i)
            continue;
        char name[32];
        snprintf(name, sizeof name, "tower-%.8s-%d", d->device->ops->type, d->device->name.id);
        tw_status status =
            twi_thread_start(&d->thread, name, d->device->cores, d->device->num_cores, dispatch, d, error);
        if (status != TW_OK)
            return status;
        d->started = true;
    }
    return TW_OK;
}

const atomic_bool *twi_dispatchers_ending(const twi_dispatchers *all)
{
    return &all->ending;
}

tw_status twi_dispatchers_prepare(twi_dispatchers *all, twi_plan *plan, const atomic_bool *ending, tw_error *error)
{
    ending = ending ? ending : &all->ending;
    for (int i = 0; i < all->count; i++)
        for (int k = 0; k < plan->lists[i].count; k++)
            plan->lists[i].steps[k].run.ending = ending;
    tw_status status = twi_loops_prepare(plan, ending, error);
    return status != TW_OK ? status : start_threads(all, plan, own_list(all, plan), error);
}

const tw_error twi_cancelled = {TW_CANCELLED, "the session was cancelled"};

void twi_dispatchers_cancel(twi_dispatchers *all, const tw_error *why)
{
    pthread_mutex_lock(&all->lock);
    all->cancelled = why;
    end_early(all, -1);
    pthread_mutex_unlock(&all->lock);
}

void twi_dispatchers_reopen(twi_dispatchers *all)
{
    pthread_mutex_lock(&all->lock);
    all->cancelled = NULL;
    pthread_mutex_unlock(&all->lock);
}

/* Whatever an earlier run has left is gone then. What it fails with instead, if all do; NULL: it begins. */
static const tw_error *begin(twi_dispatchers *all, twi_plan *plan, int64_t rounds)
{
    int walkers = 0;
    pthread_mutex_lock(&all->lock);
    const tw_error *failure = all->cancelled;
    for (int i = 0; i < all->count && !failure; i++) {
        atomic_store_explicit(&all->items[i].progress->value, 0, memory_order_relaxed);
        all->items[i].round = 0;
        plan->lists[i].error.status = TW_OK;
        plan->lists[i].error.message[0] = 0;
        walkers += walker_of(plan, i) == i;
    }
    if (!failure) {
        all->plan = plan;
        all->rounds = rounds;
        all->first_failure = -1;
        all->number++;
        atomic_store(&all->walking, walkers);
        atomic_store(&all->ending, false);
    }
    pthread_mutex_unlock(&all->lock);
    return failure;
}

/* Each list is walked by its dispatcher's thread, one by the caller's. */
static void walk(twi_dispatchers *all, int own)
{
    bool alone = true;
    for (int i = 0; i < all->count; i++)
        if (i != own && walker_of(all->plan, i) == i) {
            raise_to(all->items[i].begun, all->number);
            alone = false;
        }
    atomic_fetch_add(&twi_awake_threads, 1);
    if (own >= 0)
        run_list(&all->items[own]);
    if (!alone)
        wait_above(all, all->ended, all->number - 1);
    atomic_fetch_sub(&twi_awake_threads, 1);
}

/* Rounds that every list has ended, and what the run ended with: NULL if well. */
static const tw_error *end(twi_dispatchers *all, int64_t *done)
{
    const tw_error *failure = NULL;
    *done = all->rounds;
    pthread_mutex_lock(&all->lock);
    for (int i = 0; i < all->count; i++)
        if (walker_of(all->plan, i) == i && all->items[i].round < *done)
            *done = all->items[i].round;
    if (atomic_load(&all->ending))
        failure = all->first_failure >= 0 ? &all->plan->lists[all->first_failure].error
                  : all->cancelled        ? all->cancelled
                                          : &twi_cancelled;
    pthread_mutex_unlock(&all->lock);
    return failure;
}

static tw_status run(twi_dispatchers *all, twi_plan *plan, int64_t rounds, int64_t *done, tw_error *error)
{
    int own = own_list(all, plan);
    tw_status status = start_threads(all, plan, own, error);
    *done = 0;
    if (status != TW_OK)
        return status;
    const tw_error *failure = begin(all, plan, rounds);
    if (!failure) {
        walk(all, own);
        failure = end(all, done);
    }
    if (failure && error)
        *error = *failure;
    return failure ? failure->status : TW_OK;
}

tw_status twi_dispatchers_run(twi_dispatchers *all, twi_plan *plan, int64_t rounds, int64_t *done, tw_error *error)
{
    tw_status status = TW_OK;
    *done = 0;
    if (!plan->ran) {
        status = run(all, plan, 1, done, error);
        plan->ran = status == TW_OK;
    }
    if (status == TW_OK && *done < rounds) {
        int64_t more;
        twi_record(plan);
        status = run(all, plan, rounds - *done, &more, error);
        *done += more;
    }
    return status;
}
