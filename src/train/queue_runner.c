/* queue_runner.c - the threads that fill a graph's queues.
 *
 * Each thread runs its node in a lane of its own, so that one that waits holds up nobody. One more waits for the
 * request to stop and then closes all queues, which wakes those that wait there; who waits elsewhere (for gradients
 * that nobody sends any more) is given some time and cancelled.
 *
 * Of several tasks one alone runs a node whose plan is all its own, and all run one that has parts on several, each its
 * own part. When it ends on one of them, because there is no more or it was asked to stop, the lane ends on all. The
 * queue is closed by the task that has it. */
#include "base/memory.h"
#include "base/status.h"

#include <stdatomic.h>
#include <time.h>
#include <tower/queue.h>

#define COLLECTION "queue_runners"

enum { GRACE_MS = 2000, LOOK_MS = 5 };

/* ---- running ---------------------------------------------------------------------------------------------------- */

typedef struct filling filling;

/* A runner that was started. */
typedef struct started {
    tw_output close, cancel;
    atomic_int live;   /* threads that fill here; the last one closes */
    bool elsewhere;    /* another task has the queue */
} started;

/* A thread: of a runner, or the one that cancels them all (runner NULL). */
typedef struct worker {
    filling *all;
    started *runner;
    tw_output enqueue;
    int lane, task;    /* whose it is, of several tasks; -1: several have a part in it */
    atomic_bool ended;
} worker;

/* All that was started together; the last thread frees it. */
struct filling {
    tw_session *session;
    started *runners;
    worker *workers;
    int num_runners, num_workers;
    atomic_int users;
};

static void leave(filling *all)
{
    if (atomic_fetch_sub(&all->users, 1) > 1)
        return;
    twi_free(all->runners);
    twi_free(all->workers);
    twi_free(all);
}

static tw_status run_node(const worker *w, tw_output node, tw_error *error)
{
    node.index = -1;
    return tw_session_run_in(w->all->session, w->lane, NULL, 0, &node, 1, NULL, error);
}

/* Whether the worker runs here. */
static bool has_part(const worker *w)
{
    return w->task < 0 || w->task == tw_devices_task(tw_session_devices(w->all->session));
}

static tw_status fill(tw_coordinator *coordinator, void *user, tw_error *error)
{
    worker *w = user;
    tw_status status = TW_OK;
    while (status == TW_OK && !tw_coordinator_should_stop(coordinator))
        status = run_node(w, w->enqueue, error);
    bool last = atomic_fetch_sub(&w->runner->live, 1) == 1;
    if (status == TW_OUT_OF_RANGE || status == TW_CANCELLED) {
        if (last && !w->runner->elsewhere)
            run_node(w, w->runner->close, NULL); /* it may be closed already */
        status = TW_OK;
    }
    if (w->task < 0)
        tw_session_cancel_lane(w->all->session, w->lane); /* the others wait for what comes from here */
    atomic_store(&w->ended, true);
    leave(w->all);
    return status;
}

static bool all_ended(filling *all)
{
    for (int i = 0; i < all->num_workers; i++)
        if (all->workers[i].runner && has_part(&all->workers[i]) && !atomic_load(&all->workers[i].ended))
            return false;
    return true;
}

static tw_status cancel(tw_coordinator *coordinator, void *user, tw_error *error)
{
    (void)error;
    worker *w = user;
    while (!tw_coordinator_wait_for_stop(coordinator, 3600))
        ;
    for (int i = 0; i < w->all->num_runners; i++)
        if (!w->all->runners[i].elsewhere)
            run_node(w, w->all->runners[i].cancel, NULL); /* it may be closed already */
    for (int waited = 0; waited < GRACE_MS && !all_ended(w->all); waited += LOOK_MS)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    for (int i = 0; i < w->all->num_workers; i++) {
        const worker *other = &w->all->workers[i];
        if (other->runner && has_part(other) && !atomic_load(&other->ended))
            tw_session_cancel_lane(w->all->session, other->lane);
    }
    leave(w->all);
    return TW_OK;
}

/* A queue is the only one among a runner's nodes that has outputs. */
static bool begins_runner(tw_output output)
{
    return tw_output_dtype(output) == TW_RESOURCE;
}

/* Whose a node is that runs in the lane, of several tasks. All plan it to know. */
static tw_status find_task(const worker *w, tw_output node, int *task, tw_error *error)
{
    tw_session *session = w->all->session;
    node.index = -1;
    *task = 0;
    if (tw_devices_tasks(tw_session_devices(session)) == 1)
        return TW_OK;
    tw_status status = tw_session_prepare_in(session, w->lane, NULL, 0, &node, 1, error);
    return status == TW_OK ? tw_session_lane_task(session, w->lane, task, error) : status;
}

static tw_status find_tasks(worker *w, tw_error *error)
{
    int closes = 0;
    tw_status status = tw_session_take_lane(w->all->session, &w->lane, error);
    if (status == TW_OK)
        status = find_task(w, w->runner->close, &closes, error);
    if (status == TW_OK)
        status = find_task(w, w->enqueue, &w->task, error);
    w->runner->elsewhere = closes != tw_devices_task(tw_session_devices(w->all->session));
    if (has_part(w))
        atomic_fetch_add(&w->runner->live, 1);
    return status;
}

/* From the collection; a worker more for the one that cancels. */
static tw_status collect(filling *all, const tw_output *members, int count, tw_error *error)
{
    started *runner = NULL;
    tw_status status = TW_OK;
    for (int i = 0; i < count && status == TW_OK; i++) {
        worker *w = &all->workers[all->num_workers];
        if (begins_runner(members[i]) && i + 2 < count) {
            runner = &all->runners[all->num_runners++];
            runner->close = members[++i];
            runner->cancel = members[++i];
        } else if (runner) {
            w->all = all;
            w->runner = runner;
            w->enqueue = members[i];
            all->num_workers++;
            status = find_tasks(w, error);
        } else {
            status = twi_fail(error, TW_INVALID_ARGUMENT, "collection '%s' does not begin with a queue and its nodes",
                              COLLECTION);
        }
    }
    if (status != TW_OK)
        return status;
    worker *last = &all->workers[all->num_workers++];
    last->all = all;
    return tw_session_take_lane(all->session, &last->lane, error);
}

tw_status tw_start_queue_runners(tw_session *session, tw_coordinator *coordinator, tw_error *error)
{
    TWI_NEED(session, "session", error);
    const tw_graph *graph = tw_session_graph(session);
    int count = tw_get_collection(graph, COLLECTION, NULL, NULL, 0);
    tw_status status = TW_OK;
    if (count == 0)
        return TW_OK;
    tw_output *members = twi_alloc_array((size_t)count, sizeof *members);
    filling *all = twi_alloc(sizeof *all);
    if (!members || !all)
        TWI_LEAVE(twi_fail_memory(error, "starting queue runners"));
    *all = (filling){.session = session};
    atomic_init(&all->users, 1);
    all->runners = twi_alloc_array((size_t)count, sizeof *all->runners);
    all->workers = twi_alloc_array((size_t)count, sizeof *all->workers);
    if (!all->runners || !all->workers)
        TWI_LEAVE(twi_fail_memory(error, "starting queue runners"));
    tw_get_collection(graph, COLLECTION, NULL, members, count);
    TWI_TRY(collect(all, members, count, error));
    for (int i = all->num_workers - 1; i >= 0 && status == TW_OK; i--) { /* first the one that ends all others */
        worker *w = &all->workers[i];
        if (w->runner && !has_part(w))
            continue;
        atomic_fetch_add(&all->users, 1);
        status = tw_coordinator_start(coordinator, w->runner ? tw_node_name(w->enqueue.node) : "closing queues",
                                      w->runner ? fill : cancel, w, error);
        if (status != TW_OK) {
            leave(all);
            tw_coordinator_request_stop(coordinator, error);
        }
    }
done:
    if (all)
        leave(all);
    twi_free(members);
    return status;
}
