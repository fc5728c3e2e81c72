/* nccl_world.c - see nccl_world.h.
 *
 * Communicators do not block: what a call has begun is in progress, and is looked at until it is not, with a deadline of
 * its own that says who is late. Under w->lock is what both sides see; the lock is never held in a call.
 * Lives here:  every call of NCCL that makes, uses or ends a communicator.
 * Never here:  who meets when, and for what (nccl.c). */
#include "device/cuda/nccl_world.h"

#ifdef TOWER_WITH_NCCL
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ALL = -1 }; /* a rank: a call that is about all communicators */

typedef enum task { NOTHING, OPEN, REDUCE, LOOK, CLOSE, ABORT, END } task;

/* Nothing of the device itself: that may be gone when a call comes back. */
typedef struct member {
    char text[sizeof((twi_device *)NULL)->text];
    int ordinal;
    cudaStream_t stream;
    ncclComm_t comm;             /* the thread's; NULL: there is none */
    twi_nccl_share share;
} member;

struct twi_nccl_world {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    pthread_t thread;
    bool started;
    int owners;                  /* who asks, and the thread: the last frees */
    bool given_up;               /* nobody waits for the thread any more */
    task task;                   /* what the thread is to do; NOTHING: it has done it */
    tw_status status;            /* of that */
    tw_error error;
    const char *call, *where;    /* that the thread is in or was in last, since then, */
    int rank;                    /* for whose communicator */
    int64_t since;
    double patience;             /* seconds */
    const twi_nccl *nccl;
    int count;
    member members[];
};

/* ---- what is said ------------------------------------------------------------------------------------------------ */

void twi_nccl_list(char *names, size_t size, const char *name)
{
    size_t used = strlen(names);
    snprintf(names + used, size - used, "%s%s", used ? ", " : "", name);
}

tw_status twi_nccl_too_late(const char *names, double patience, const char *what, const char *where, tw_error *error)
{
    return twi_fail(error, TW_DEADLINE_EXCEEDED, "%s has not come within the collective timeout of %g s: %s (%s)",
                    names, patience, what, where);
}

/* The call that the thread is in does not come back; under the lock. */
static tw_status hangs(const twi_nccl_world *w, tw_error *error)
{
    char names[600] = "";
    for (int i = 0; i < w->count; i++)
        if (w->rank == ALL || w->rank == i)
            twi_nccl_list(names, sizeof names, w->members[i].text);
    return twi_fail(error, TW_DEADLINE_EXCEEDED,
                    "NCCL's communicator%s of %s: %s has not come back within the collective timeout of %g s (%s)",
                    w->rank == ALL ? "s" : "", names, w->call, w->patience, w->where);
}

/* ---- calls, in the thread ---------------------------------------------------------------------------------------- */

/* Says what the thread does from now on; false: it has been given up, and nobody wants that any more. */
static bool enter(twi_nccl_world *w, int rank, const char *call, const char *where)
{
    pthread_mutex_lock(&w->lock);
    w->rank = rank;
    w->call = call;
    w->where = where;
    w->since = twi_monotonic_ns();
    bool wanted = !w->given_up;
    pthread_mutex_unlock(&w->lock);
    return wanted;
}

static tw_status nccl_fail(twi_nccl_world *w, int rank, const char *call, const char *where, ncclResult_t code,
                           tw_error *error)
{
    enter(w, rank, "ncclGetLastError", TWI_HERE);
    const char *more = w->nccl->ncclGetLastError(NULL);
    enter(w, rank, "ncclGetErrorString", TWI_HERE);
    const char *text = w->nccl->ncclGetErrorString(code);
    return twi_fail(error, TW_INTERNAL, "%s: %s: %s%s%s (%s)", w->members[rank == ALL ? 0 : rank].text, call, text,
                    more && *more ? ": " : "", more ? more : "", where);
}

/* In a function with `status` and a label `done`. What is in progress has not failed: see settle(). */
#define NCCL_CALL(w, rank, error, function, ...)                                                                       \
    do {                                                                                                               \
        if (!enter(w, rank, #function, TWI_HERE)) {                                                                    \
            status = TW_CANCELLED;                                                                                     \
            goto done;                                                                                                 \
        }                                                                                                              \
        ncclResult_t code_ = (w)->nccl->function(__VA_ARGS__);                                                         \
        if (code_ != ncclSuccess && code_ != ncclInProgress) {                                                         \
            status = nccl_fail(w, rank, #function, TWI_HERE, code_, error);                                            \
            goto done;                                                                                                 \
        }                                                                                                              \
    } while (0)

static tw_status use(const member *m, tw_error *error)
{
    tw_status status = TW_OK;
    TWI_CALL(NULL, error, cudaSetDevice(m->ordinal));
    return TW_OK;
done:
    return twi_prefix(error, "%s", m->text), status;
}

/* Until nothing that was asked of a communicator is in progress any more. */
static tw_status settle(twi_nccl_world *w, const char *what, tw_error *error)
{
    tw_status status = TW_OK;
    char late[600];
    int64_t deadline = twi_monotonic_ns() + (int64_t)(w->patience * 1e9);
    do {
        *late = 0;
        for (int i = 0; i < w->count; i++) {
            ncclResult_t state = ncclSuccess;
            NCCL_CALL(w, i, error, ncclCommGetAsyncError, w->members[i].comm, &state);
            if (state == ncclInProgress)
                twi_nccl_list(late, sizeof late, w->members[i].text);
            else if (state != ncclSuccess)
                TWI_TRY(nccl_fail(w, i, what, TWI_HERE, state, error));
        }
        if (*late && twi_monotonic_ns() > deadline)
            TWI_TRY(twi_nccl_too_late(late, w->patience, what, TWI_HERE, error));
        if (*late)
            nanosleep(&(struct timespec){0, 20000}, NULL);
    } while (*late);
done:
    return status;
}

/* What is asked of each rank, as one group. */
static tw_status group(twi_nccl_world *w, tw_status (*each)(twi_nccl_world *, int, const void *, tw_error *),
                       const void *argument, tw_error *error)
{
    tw_status status = TW_OK;
    bool grouped = false;
    NCCL_CALL(w, ALL, error, ncclGroupStart);
    grouped = true;
    for (int i = 0; i < w->count; i++)
        TWI_TRY(each(w, i, argument, error));
    grouped = false;
    NCCL_CALL(w, ALL, error, ncclGroupEnd);
done:
    if (grouped) { /* nothing may be asked of the library while a group of this thread's is open, not even an end */
        enter(w, ALL, "ncclGroupEnd", TWI_HERE);
        w->nccl->ncclGroupEnd();
    }
    return status;
}

static tw_status open_one(twi_nccl_world *w, int rank, const void *id, tw_error *error)
{
    tw_status status;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    TWI_TRY(use(&w->members[rank], error));
    NCCL_CALL(w, rank, error, ncclCommInitRankConfig, &w->members[rank].comm, w->count, *(const ncclUniqueId *)id, rank,
              &config);
done:
    return status;
}

/* All communicators at once: cards of one process need no other way to find each other. */
static tw_status open_all(twi_nccl_world *w, tw_error *error)
{
    tw_status status = TW_OK;
    ncclUniqueId id;
    NCCL_CALL(w, ALL, error, ncclGetUniqueId, &id);
    TWI_TRY(group(w, open_one, &id, error));
    TWI_TRY(settle(w, "ncclCommInitRankConfig", error));
done:
    return status;
}

static tw_status reduce_one(twi_nccl_world *w, int rank, const void *unused, tw_error *error)
{
    tw_status status;
    const member *m = &w->members[rank];
    const twi_nccl_share *s = &m->share;
    (void)unused;
    TWI_TRY(use(m, error));
    NCCL_CALL(w, rank, error, ncclAllReduce, s->from, s->to, s->count, s->type, s->op, m->comm, m->stream);
done:
    return status;
}

static tw_status reduce_all(twi_nccl_world *w, tw_error *error)
{
    tw_status status = group(w, reduce_one, NULL, error);
    return status == TW_OK ? settle(w, "ncclAllReduce", error) : status;
}

static tw_status finalize_one(twi_nccl_world *w, int rank, const void *unused, tw_error *error)
{
    tw_status status = TW_OK;
    (void)unused;
    NCCL_CALL(w, rank, error, ncclCommFinalize, w->members[rank].comm);
done:
    return status;
}

static tw_status close_all(twi_nccl_world *w, tw_error *error)
{
    tw_status status;
    TWI_TRY(group(w, finalize_one, NULL, error));
    TWI_TRY(settle(w, "ncclCommFinalize", error));
    for (int i = 0; i < w->count; i++) {
        if (!enter(w, i, "ncclCommDestroy", TWI_HERE))
            return TW_CANCELLED;
        w->nccl->ncclCommDestroy(w->members[i].comm);
        w->members[i].comm = NULL;
    }
done:
    return status;
}

/* Also what a call has left that came back too late for all others. */
static void abort_all(twi_nccl_world *w)
{
    for (int i = 0; i < w->count; i++)
        if (w->members[i].comm) {
            enter(w, i, "ncclCommAbort", TWI_HERE);
            w->nccl->ncclCommAbort(w->members[i].comm);
            w->members[i].comm = NULL;
        }
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void let_go(twi_nccl_world *w)
{
    pthread_mutex_lock(&w->lock);
    bool last = --w->owners == 0;
    pthread_mutex_unlock(&w->lock);
    if (!last)
        return;
    for (int i = 0; i < w->count; i++)
        if (w->members[i].stream)
            cudaStreamDestroy(w->members[i].stream);
    pthread_cond_destroy(&w->moved);
    pthread_mutex_destroy(&w->lock);
    twi_free(w);
}

static tw_status do_task(twi_nccl_world *w, task task, tw_error *error)
{
    switch (task) {
    case OPEN:
        return open_all(w, error);
    case REDUCE:
        return reduce_all(w, error);
    case LOOK:
        return settle(w, "ncclAllReduce", error);
    case CLOSE:
        return close_all(w, error);
    default:
        abort_all(w);
        return TW_OK;
    }
}

static void *work(void *argument)
{
    twi_nccl_world *w = argument;
    pthread_mutex_lock(&w->lock);
    while (w->task != END && !w->given_up) {
        if (w->task == NOTHING) {
            pthread_cond_wait(&w->moved, &w->lock);
            continue;
        }
        tw_error error = {0};
        task task = w->task;
        pthread_mutex_unlock(&w->lock);
        tw_status status = do_task(w, task, &error);
        pthread_mutex_lock(&w->lock);
        w->status = status; /* before the abort, which may hang too */
        w->error = error;
        if (status != TW_OK) {
            pthread_mutex_unlock(&w->lock);
            abort_all(w);
            pthread_mutex_lock(&w->lock);
        }
        w->task = NOTHING;
        pthread_cond_broadcast(&w->moved);
    }
    pthread_mutex_unlock(&w->lock);
    abort_all(w);
    let_go(w);
    return NULL;
}

/* ---- who asks ---------------------------------------------------------------------------------------------------- */

static int64_t last_moment(const twi_nccl_world *w)
{
    return w->since + (int64_t)(w->patience * 1e9);
}

/* Nobody asks for anything any more. */
static void leave(twi_nccl_world *w)
{
    if (w->started) {
        pthread_mutex_lock(&w->lock);
        bool given_up = w->given_up;
        w->task = END;
        pthread_cond_broadcast(&w->moved);
        pthread_mutex_unlock(&w->lock);
        if (given_up)
            pthread_detach(w->thread);
        else
            pthread_join(w->thread, NULL);
    }
    let_go(w);
}

/* Lets the thread do something, and waits until it has, or a call of it has not come back for too long. */
static tw_status ask(twi_nccl_world **world, task task, tw_error *error)
{
    twi_nccl_world *w = *world;
    pthread_mutex_lock(&w->lock);
    w->status = TW_OK;
    w->task = task;
    w->rank = ALL;
    w->call = "the thread for NCCL's calls";
    w->where = TWI_HERE;
    w->since = twi_monotonic_ns();
    pthread_cond_broadcast(&w->moved);
    while (w->task != NOTHING && twi_monotonic_ns() < last_moment(w)) {
        int64_t until = last_moment(w);
        pthread_cond_timedwait(&w->moved, &w->lock, &(struct timespec){until / 1000000000, until % 1000000000});
    }
    tw_status status = w->status;
    if (status != TW_OK)
        *error = w->error;
    if (w->task != NOTHING) {
        tw_error late = {0};
        w->given_up = true;
        hangs(w, status == TW_OK ? error : &late);
        if (status != TW_OK)
            twi_log(TWI_LOG_WARNING, "NCCL's communicators are given up: %s", late.message);
        status = status == TW_OK ? TW_DEADLINE_EXCEEDED : status;
    }
    pthread_mutex_unlock(&w->lock);
    if (status != TW_OK) {
        *world = NULL;
        leave(w);
    }
    return status;
}

tw_status twi_nccl_world_create(twi_cuda_device *const *cards, int count, double patience, twi_nccl_world **world,
                                tw_error *error)
{
    tw_status status;
    pthread_condattr_t monotonic;
    twi_nccl_world *w = twi_alloc(sizeof *w + (size_t)count * sizeof *w->members);
    *world = NULL;
    if (!w)
        return twi_fail_memory(error, "NCCL's communicators");
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->moved, &monotonic);
    pthread_condattr_destroy(&monotonic);
    w->owners = 1;
    w->patience = patience;
    w->count = count;
    TWI_TRY(twi_nccl_open(&w->nccl, error));
    for (int i = 0; i < count; i++) {
        twi_device *d = &cards[i]->base;
        memcpy(w->members[i].text, d->text, sizeof w->members[i].text);
        w->members[i].ordinal = cards[i]->ordinal;
        TWI_TRY(twi_cuda_use(d, error));
        TWI_CALL(d, error, cudaStreamCreateWithFlags(&w->members[i].stream, cudaStreamNonBlocking));
    }
    w->owners = 2;
    if ((status = twi_thread_start(&w->thread, "tower-nccl", NULL, 0, work, w, error)) != TW_OK) {
        w->owners = 1;
        goto done;
    }
    w->started = true;
    *world = w;
    return ask(world, OPEN, error);
done:
    leave(w);
    return status;
}

cudaStream_t twi_nccl_stream(const twi_nccl_world *w, int rank)
{
    return w->members[rank].stream;
}

tw_status twi_nccl_reduce(twi_nccl_world **world, const twi_nccl_share *shares, tw_error *error)
{
    for (int i = 0; i < (*world)->count; i++)
        (*world)->members[i].share = shares[i];
    return ask(world, REDUCE, error);
}

tw_status twi_nccl_look(twi_nccl_world **world, tw_error *error)
{
    return ask(world, LOOK, error);
}

void twi_nccl_world_abort(twi_nccl_world *w)
{
    tw_error error = {0};
    if (!w)
        return;
    if (ask(&w, ABORT, &error) != TW_OK)
        twi_log(TWI_LOG_WARNING, "NCCL's communicators are given up: %s", error.message);
    else
        leave(w);
}

void twi_nccl_world_close(twi_nccl_world *w)
{
    tw_error error = {0};
    if (!w)
        return;
    if (ask(&w, CLOSE, &error) != TW_OK)
        twi_log(TWI_LOG_WARNING, "NCCL's communicators are aborted, for they do not end: %s", error.message);
    else
        leave(w);
}
#endif
