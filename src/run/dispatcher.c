/* dispatcher.c - see dispatcher.h. */
#include "run/dispatcher.h"

#include "base/clock.h"
#include "base/thread.h"
#include "run/recording.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SPINS 2000 /* looks before a waiter sleeps: about the time a wake-up takes */

/* How many steps of its list a device has finished in this run, over all rounds; it only rises. INT64_MAX when the run is
 * to end early: then nobody waits any more, and who has waited looks at `ending`. */
typedef struct progress {
    _Alignas(64) _Atomic(int64_t) finished;
    atomic_int sleepers;
    pthread_mutex_t lock;
    pthread_cond_t moved;
} progress;

typedef struct dispatcher {
    twi_dispatchers *all;
    twi_device *device;
    int index;
    pthread_t thread;
    bool started;
    int64_t seen;               /* the run it has walked last */
    int64_t round;              /* of that run: how often it has been through its list */
    tw_error enter_error;
} dispatcher;

struct twi_dispatchers {
    dispatcher *items;
    progress *progress;
    int count, started;
    void (*wake)(void *user);   /* of kernels that wait */
    void *user;
    pthread_mutex_t lock;       /* guards all below */
    pthread_cond_t begin, end;
    int64_t run_number;         /* goes up with each run */
    int running;                /* lists not yet finished */
    bool stop, cancelled;
    twi_plan *plan;
    int64_t rounds;             /* how often each list is gone through */
    bool trace;
    atomic_bool ending;         /* a step failed, or the run was cancelled: read without the lock */
    int first_failure;          /* device; -1: none, but cancelled */
};

static void report(progress *p, int64_t finished)
{
    int64_t known = atomic_load(&p->finished);
    while (known < finished && !atomic_compare_exchange_weak(&p->finished, &known, finished))
        ;
    if (atomic_load(&p->sleepers)) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->moved);
        pthread_mutex_unlock(&p->lock);
    }
}

static void wait_for(progress *p, int64_t position)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&p->finished, memory_order_acquire) > position)
            return;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    while (atomic_load(&p->finished) <= position)
        pthread_cond_wait(&p->moved, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
}

/* What a device has finished when it has done the step at a position of its list in the round that d is in. */
static int64_t at_round(const dispatcher *d, int device, int position)
{
    return d->round * d->all->plan->lists[device].count + position;
}

static void lose(int64_t ns)
{
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    if (ns > 0)
        nanosleep(&time, NULL);
}

static tw_status run_traced(twi_step *step, void *timeline)
{
    lose(step->late_ns);
    step->started_ns = twi_monotonic_ns();
    tw_status status = twi_run_timed_step(step, timeline);
    lose(step->slow_ns);
    step->ended_ns = twi_monotonic_ns();
    return status;
}

/* The caller holds the lock. False if the run is to end early already. */
static bool end_early(twi_dispatchers *all, int first_failure)
{
    if (atomic_exchange(&all->ending, true))
        return false;
    all->first_failure = first_failure;
    for (int i = 0; i < all->count; i++)
        report(&all->progress[i], INT64_MAX);
    return true;
}

static void note_failure(dispatcher *d)
{
    pthread_mutex_lock(&d->all->lock);
    bool first = end_early(d->all, d->index);
    pthread_mutex_unlock(&d->all->lock);
    if (first)
        d->all->wake(d->all->user);
}

static void fail_run(dispatcher *d, tw_status status, const twi_step *step)
{
    tw_error *error = step->run.error;
    if (error->status == TW_OK)
        twi_fail(error, status, "%s failed", step->node->op->name);
    if (!strstr(error->message, step->node->name)) {
        char text[TW_MESSAGE_SIZE];
        memcpy(text, error->message, sizeof text);
        twi_fail(error, status, "%s [[{{node %s}}]]", text, step->node->name);
    }
    note_failure(d);
}

/* A device with a queue of its own may still be at work when its last step has been handed to it. A failure that only
 * shows now is its list's, unless the list has one already. */
static void finish_work(dispatcher *d, twi_list *list)
{
    tw_error late = {0};
    if (list->count == 0 || !d->device->ops->synchronize ||
        d->device->ops->synchronize(d->device, &late) == TW_OK || list->error.status != TW_OK)
        return;
    list->error = late;
    note_failure(d);
}

/* What a device that tells when it did what has told. What does nothing has no time of its own. */
static void take_times(dispatcher *d, twi_list *list)
{
    tw_error error = {0};
    if (d->device->ops->read_timeline(d->device, list->timeline, list->marks, &error) != TW_OK) {
        if (list->error.status == TW_OK)
            list->error = error;
        note_failure(d);
        return;
    }
    for (int i = 0; i < list->count; i++) {
        twi_step *step = &list->steps[i];
        int64_t before = i ? list->steps[i - 1].ended_ns : d->all->plan->began_ns;
        bool told = list->marks[2 * i] && list->marks[2 * i + 1];
        step->started_ns = told ? list->marks[2 * i] : before;
        step->ended_ns = told ? list->marks[2 * i + 1] : before;
    }
}

/* A stretch that is recorded: the first part's device does it all, and reports for each part's; the others wait until it
 * has been handed over. */
static tw_status replay(dispatcher *d, const twi_step *first, tw_error *error)
{
    const twi_stretch *s = first->stretch;
    progress *all = d->all->progress;
    if (s->parts[0].device != d->index) {
        wait_for(&all[d->index], at_round(d, d->index, first->stretch_end - 1));
        return TW_OK;
    }
    for (int k = 0; k < s->num_waits; k++)
        wait_for(&all[s->waits[k].device], at_round(d, s->waits[k].device, s->waits[k].position));
    if (atomic_load_explicit(&d->all->ending, memory_order_acquire))
        return TW_OK;
    tw_status status = d->device->ops->replay(d->device, s->recording, error);
    for (int i = 0; i < s->num_parts && status == TW_OK; i++)
        report(&all[s->parts[i].device], at_round(d, s->parts[i].device, s->parts[i].end));
    return status;
}

static tw_status run_alone(dispatcher *d, twi_step *step)
{
    for (int k = 0; k < step->num_waits; k++)
        wait_for(&d->all->progress[step->waits[k].device], at_round(d, step->waits[k].device, step->waits[k].position));
    if (atomic_load_explicit(&d->all->ending, memory_order_acquire))
        return TW_OK;
    return d->all->trace ? run_traced(step, d->all->plan->lists[d->index].timeline) : twi_run_step(step);
}

/* Whether a part of a stretch begins at the step that is done by one call. */
static bool is_replayed(const twi_plan *plan, const twi_step *step)
{
    return step->stretch && step->stretch->recording && !plan->delayed;
}

/* Whether another device does all of the list: then its thread has no part in the rounds. */
static bool is_done_by_another(const dispatcher *d, const twi_list *list)
{
    return list->count && is_replayed(d->all->plan, list->steps) && list->steps->stretch_end == list->count &&
           list->steps->stretch->parts[0].device != d->index;
}

/* False if the run is to end early. */
static bool walk_list(dispatcher *d, twi_list *list)
{
    for (int i = 0, next; i < list->count; i = next) {
        twi_step *step = &list->steps[i];
        bool whole = is_replayed(d->all->plan, step);
        next = whole ? step->stretch_end : i + 1;
        tw_status status = whole ? replay(d, step, step->run.error) : run_alone(d, step);
        if (status != TW_OK)
            fail_run(d, status, step);
        if (atomic_load_explicit(&d->all->ending, memory_order_acquire))
            return false;
        report(&d->all->progress[d->index], at_round(d, d->index, next));
    }
    return true;
}

/* A round begins when all lists have been through the one before: then nobody reads any more what it writes. */
static void meet_others(const dispatcher *d)
{
    const twi_plan *plan = d->all->plan;
    for (int i = 0; i < plan->num_lists; i++)
        if (plan->lists[i].count)
            wait_for(&d->all->progress[i], at_round(d, i, plan->lists[i].count - 1));
}

static void run_list(dispatcher *d, twi_list *list)
{
    int64_t rounds = list->count ? d->all->rounds : 0;
    if (is_done_by_another(d, list)) {
        wait_for(&d->all->progress[d->index], rounds * list->count - 1);
        d->round = rounds;
    }
    for (; d->round < rounds && walk_list(d, list); d->round++)
        if (d->round + 1 < rounds)
            meet_others(d);
    finish_work(d, list);
    if (d->all->trace && list->timeline && list->error.status == TW_OK)
        take_times(d, list);
}

static void *dispatch(void *argument)
{
    dispatcher *d = argument;
    twi_dispatchers *all = d->all;
    tw_status entered = d->device->ops->enter ? d->device->ops->enter(d->device, &d->enter_error) : TW_OK;
    pthread_mutex_lock(&all->lock);
    for (;;) {
        while (all->run_number == d->seen && !all->stop)
            pthread_cond_wait(&all->begin, &all->lock);
        if (all->stop)
            break;
        d->seen = all->run_number;
        twi_plan *plan = all->plan;
        pthread_mutex_unlock(&all->lock);
        if (entered != TW_OK && plan->lists[d->index].count) {
            plan->lists[d->index].error = d->enter_error;
            note_failure(d);
        } else {
            run_list(d, &plan->lists[d->index]);
        }
        pthread_mutex_lock(&all->lock);
        if (--all->running == 0)
            pthread_cond_signal(&all->end);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
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
    all->items = twi_alloc_array((size_t)devices->count, sizeof *all->items);
    all->progress = twi_alloc_aligned((size_t)devices->count * sizeof *all->progress, 64);
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->begin, NULL);
    pthread_cond_init(&all->end, NULL);
    if (!all->items || !all->progress) {
        twi_dispatchers_destroy(all);
        return twi_fail_memory(error, "creating dispatchers");
    }
    for (; all->count < devices->count; all->count++) {
        all->items[all->count] = (dispatcher){.all = all, .device = devices->items[all->count], .index = all->count};
        pthread_mutex_init(&all->progress[all->count].lock, NULL);
        pthread_cond_init(&all->progress[all->count].moved, NULL);
    }
    *result = all;
    return TW_OK;
}

void twi_dispatchers_destroy(twi_dispatchers *all)
{
    if (!all)
        return;
    pthread_mutex_lock(&all->lock);
    all->stop = true;
    pthread_cond_broadcast(&all->begin);
    pthread_mutex_unlock(&all->lock);
    for (int i = 0; i < all->count; i++)
        if (all->items[i].started)
            pthread_join(all->items[i].thread, NULL);
    for (int i = 0; i < all->count; i++) {
        pthread_mutex_destroy(&all->progress[i].lock);
        pthread_cond_destroy(&all->progress[i].moved);
    }
    pthread_mutex_destroy(&all->lock);
    pthread_cond_destroy(&all->begin);
    pthread_cond_destroy(&all->end);
    twi_free(all->items);
    twi_free_aligned(all->progress);
    twi_free(all);
}

tw_status twi_dispatchers_prepare(twi_dispatchers *all, twi_plan *plan, tw_error *error)
{
    for (int i = 0; i < all->count; i++) {
        dispatcher *d = &all->items[i];
        const twi_device *device = d->device;
        for (int k = 0; k < plan->lists[i].count; k++)
            plan->lists[i].steps[k].run.ending = &all->ending;
        if (d->started || plan->lists[i].count == 0)
            continue;
        char name[32];
        snprintf(name, sizeof name, "tower-%.8s-%d", device->ops->type, device->name.id);
        d->seen = all->run_number;
        tw_status status =
            twi_thread_start(&d->thread, name, device->cores, device->num_cores, dispatch, d, error);
        if (status != TW_OK)
            return status;
        d->started = true;
        all->started++;
    }
    return TW_OK;
}

void twi_dispatchers_cancel(twi_dispatchers *all)
{
    pthread_mutex_lock(&all->lock);
    all->cancelled = true;
    end_early(all, -1);
    pthread_mutex_unlock(&all->lock);
}

/* Rounds that every list has ended. */
static int64_t count_rounds(const twi_dispatchers *all)
{
    int64_t least = all->rounds;
    for (int i = 0; i < all->count; i++)
        if (all->plan->lists[i].count && all->items[i].round < least)
            least = all->items[i].round;
    return least;
}

/* Whatever an earlier run has left is gone then. False if the session was cancelled. The caller holds the lock. */
static bool begin(twi_dispatchers *all, twi_plan *plan, int64_t rounds, bool trace)
{
    if (all->cancelled)
        return false;
    for (int i = 0; i < all->count; i++) {
        atomic_store(&all->progress[i].finished, 0);
        all->items[i].round = 0;
        plan->lists[i].error.status = TW_OK;
        plan->lists[i].error.message[0] = 0;
    }
    all->plan = plan;
    all->rounds = rounds;
    all->trace = trace;
    all->first_failure = -1;
    atomic_store(&all->ending, false);
    all->running = all->started;
    all->run_number++;
    pthread_cond_broadcast(&all->begin);
    return true;
}

static tw_status run(twi_dispatchers *all, twi_plan *plan, int64_t rounds, bool trace, int64_t *done, tw_error *error)
{
    tw_error cancelled = {TW_CANCELLED, "the session was cancelled"}, *failure = NULL;
    *done = 0;
    pthread_mutex_lock(&all->lock);
    if (begin(all, plan, rounds, trace)) {
        while (all->running)
            pthread_cond_wait(&all->end, &all->lock);
        *done = count_rounds(all);
        if (atomic_load(&all->ending))
            failure = all->first_failure < 0 ? &cancelled : &plan->lists[all->first_failure].error;
    } else {
        failure = &cancelled;
    }
    pthread_mutex_unlock(&all->lock);
    if (failure && error)
        *error = *failure;
    return failure ? failure->status : TW_OK;
}

static tw_status open_timelines(twi_plan *plan, tw_error *error)
{
    tw_status status = TW_OK;
    for (int d = 0; d < plan->num_lists && status == TW_OK; d++) {
        twi_list *list = &plan->lists[d];
        if (list->timeline || !list->count || !list->device->ops->open_timeline)
            continue;
        list->marks = twi_arena_alloc(&plan->arena, sizeof *list->marks * 2 * (size_t)list->count);
        status = list->marks ? list->device->ops->open_timeline(list->device, 2 * list->count, &list->timeline, error)
                             : twi_fail_memory(error, "tracing a plan");
    }
    return status;
}

tw_status twi_dispatchers_run(twi_dispatchers *all, twi_plan *plan, int64_t rounds, bool trace, int64_t *done,
                              tw_error *error)
{
    tw_status status = trace ? open_timelines(plan, error) : TW_OK;
    *done = 0;
    if (status == TW_OK && !plan->ran) {
        status = run(all, plan, 1, trace, done, error);
        plan->ran = status == TW_OK;
    }
    if (status == TW_OK && *done < rounds) {
        int64_t more;
        twi_record(plan);
        status = run(all, plan, rounds - *done, trace, &more, error);
        *done += more;
    }
    return status;
}
