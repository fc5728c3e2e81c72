/* nccl_world.c - see nccl_world.h.
 *
 * Communicators do not block: what a call has begun is in progress, and is looked at until it is not, with a deadline of
 * its own that says who is late. So are kernels under way, now and then: whoever waits for a card need not look. A
 * second thread, the guard, sees to it that the first is not in a call for too long. Under w->lock is what all sides
 * see; the lock is never held in a call.
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

enum { LOOK_NS = 20000000 }; /* between two looks at what is under way */
enum { GRACE = 5 };          /* seconds that a call has when a task is lost, to come back by itself */
enum { HEARSAY = 1 };        /* seconds in which it is heard of that a call has failed since another task has ended */

typedef enum task { NOTHING, NAME, OPEN, REDUCE, CLOSE, ABORT, END } task;

/* Nothing of the device itself: that may be gone when a call comes back. */
typedef struct member {
    char text[sizeof((twi_device *)NULL)->text];
    int task;                    /* process: another's has a name here and nothing more */
    int ordinal;
    cudaStream_t stream;
    ncclComm_t comm;             /* the thread's; NULL: there is none */
    twi_nccl_share share;
} member;

struct twi_nccl_world {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    pthread_t thread, guard;
    bool started;
    int owners;                  /* who asks, the thread and its guard: the last frees */
    bool given_up;               /* nobody waits for the thread any more */
    bool ended;                  /* the thread has nothing to do any more */
    task task;                   /* what the thread is to do; NOTHING: it has done it */
    tw_status status;            /* of that */
    tw_error error;
    tw_error failure;            /* what has ended the communicators; TW_OK: nothing has */
    bool told;                   /* who uses them knows that */
    bool busy;                   /* the thread is, with that or with a look at what is under way */
    bool opened;                 /* communicators are whole: they have been, and those that are left may be aborted */
    const char *call, *where;    /* that the thread is in or was in last, since then, */
    int rank;                    /* for whose communicator */
    int64_t since;
    bool under_way;              /* cards may be at what they were handed then: */
    int64_t handed_ns, next_look_ns;
    bool may_be_theirs;          /* the failure; the thread's */
    tw_error lost;               /* another task is, by what the tasks have told, since then; TW_OK: none */
    int64_t lost_ns;
    twi_comm *comm;              /* with the other tasks that have members; NULL: none has */
    twi_comm_watcher watcher;    /* of that */
    int task_here;
    double patience;             /* seconds */
    const twi_nccl *nccl;
    ncclUniqueId id;             /* by which ranks find each other */
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

static bool is_here(const twi_nccl_world *w, int rank)
{
    return w->members[rank].task == w->task_here;
}

/* What is lost over several tasks can be begun anew by all of them alone. */
static tw_status status_of_lateness(const twi_nccl_world *w)
{
    return w->comm ? TW_ABORTED : TW_DEADLINE_EXCEEDED;
}

/* Those of this process do not come to an end of `what`; whose fault that is, is not known here. */
static tw_status too_late(const twi_nccl_world *w, const char *names, const char *what, const char *where,
                          tw_error *error)
{
    char more[900], others[600] = "";
    for (int i = 0; i < w->count; i++)
        if (!is_here(w, i))
            twi_nccl_list(others, sizeof others, w->members[i].text);
    snprintf(more, sizeof more, "%s%s%s", what, others[0] ? ", and may wait for " : "", others);
    twi_nccl_too_late(names, w->patience, more, where, error);
    return error->status = status_of_lateness(w);
}

/* The call that the thread is in does not come back; under the lock. */
static tw_status hangs(const twi_nccl_world *w, tw_error *error)
{
    char names[600] = "";
    if (w->lost.status != TW_OK)
        return twi_fail(error, w->lost.status, "%s", w->lost.message);
    for (int i = 0; i < w->count; i++)
        if (is_here(w, i) && (w->rank == ALL || w->rank == i))
            twi_nccl_list(names, sizeof names, w->members[i].text);
    return twi_fail(error, status_of_lateness(w),
                    "NCCL's communicator%s of %s: %s has not come back within the collective timeout of %g s (%s)",
                    w->rank == ALL ? "s" : "", names, w->call, w->patience, w->where);
}

/* ---- calls, in the thread ---------------------------------------------------------------------------------------- */

/* Under the lock. */
static void say_call(twi_nccl_world *w, int rank, const char *call, const char *where)
{
    w->rank = rank;
    w->call = call;
    w->where = where;
    w->since = twi_monotonic_ns();
}

/* Says what the thread does from now on; false: it has been given up, and nobody wants that any more. */
static bool enter(twi_nccl_world *w, int rank, const char *call, const char *where)
{
    pthread_mutex_lock(&w->lock);
    if (!w->given_up)
        say_call(w, rank, call, where);
    bool wanted = !w->given_up;
    pthread_mutex_unlock(&w->lock);
    return wanted;
}

/* NULL: it has been aborted meanwhile, for the thread has been given up. */
static ncclComm_t comm_of(twi_nccl_world *w, int rank)
{
    pthread_mutex_lock(&w->lock);
    ncclComm_t comm = w->members[rank].comm;
    pthread_mutex_unlock(&w->lock);
    return comm;
}

/* Whoever ends a communicator takes it, so that nobody else does. */
static ncclComm_t take_comm(twi_nccl_world *w, int rank)
{
    pthread_mutex_lock(&w->lock);
    ncclComm_t comm = w->members[rank].comm;
    w->members[rank].comm = NULL;
    pthread_mutex_unlock(&w->lock);
    return comm;
}

static tw_status nccl_fail(twi_nccl_world *w, int rank, const char *call, const char *where, ncclResult_t code,
                           tw_error *error)
{
    w->may_be_theirs = w->comm && (code == ncclSystemError || code == ncclRemoteError);
    enter(w, rank, "ncclGetLastError", TWI_HERE);
    const char *more = w->nccl->ncclGetLastError(NULL);
    enter(w, rank, "ncclGetErrorString", TWI_HERE);
    const char *text = w->nccl->ncclGetErrorString(code);
    while (rank == ALL || !is_here(w, rank))
        rank++;
    return twi_fail(error, TW_INTERNAL, "%s: %s: %s%s%s (%s)", w->members[rank].text, call, text,
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

/* Another task is lost, and what waits for its cards waits in vain. */
static tw_status check_lost(twi_nccl_world *w, tw_error *error)
{
    tw_status status = TW_OK;
    pthread_mutex_lock(&w->lock);
    if (w->lost.status != TW_OK)
        status = twi_fail(error, w->lost.status, "%s", w->lost.message);
    pthread_mutex_unlock(&w->lock);
    return status;
}

/* Lists whose communicators are at work on what was asked of them. */
static tw_status check_progress(twi_nccl_world *w, const char *what, char *late, size_t size, tw_error *error)
{
    tw_status status = check_lost(w, error);
    for (int i = 0; i < w->count && status == TW_OK; i++) {
        ncclResult_t state = ncclSuccess;
        if (!comm_of(w, i))
            continue;
        NCCL_CALL(w, i, error, ncclCommGetAsyncError, comm_of(w, i), &state);
        if (state == ncclInProgress)
            twi_nccl_list(late, size, w->members[i].text);
        else if (state != ncclSuccess)
            TWI_TRY(nccl_fail(w, i, what, TWI_HERE, state, error));
    }
done:
    return status;
}

static int64_t deadline_from(const twi_nccl_world *w, int64_t begin_ns)
{
    const double later = w->comm ? 1.1 : 1; /* who is held up by a call says it before those who wait for him */
    return begin_ns + (int64_t)(later * w->patience * 1e9);
}

/* Until nothing that was asked of a communicator is in progress any more. */
static tw_status settle(twi_nccl_world *w, const char *what, tw_error *error)
{
    tw_status status;
    char late[600];
    int64_t deadline = deadline_from(w, twi_monotonic_ns());
    do {
        *late = 0;
        TWI_TRY(check_progress(w, what, late, sizeof late, error));
        if (*late && twi_monotonic_ns() > deadline)
            TWI_TRY(too_late(w, late, what, TWI_HERE, error));
        if (*late)
            nanosleep(&(struct timespec){0, 20000}, NULL);
    } while (*late);
done:
    return status;
}

/* The guard has aborted the communicators. */
static bool is_gone(twi_nccl_world *w)
{
    bool has_any = !w->opened;
    for (int i = 0; i < w->count; i++)
        has_any = has_any || comm_of(w, i);
    return !has_any;
}

/* What is asked of each rank of this process, as one group. */
static tw_status group(twi_nccl_world *w, tw_status (*each)(twi_nccl_world *, int, tw_error *), tw_error *error)
{
    tw_status status = TW_OK;
    bool grouped = false;
    NCCL_CALL(w, ALL, error, ncclGroupStart);
    grouped = true;
    for (int i = 0; i < w->count; i++)
        if (is_here(w, i))
            TWI_TRY(each(w, i, error));
    grouped = false;
    NCCL_CALL(w, ALL, error, ncclGroupEnd);
done:
    if (grouped && !is_gone(w)) { /* nothing may be asked while a group of this thread's is open, not even an end */
        enter(w, ALL, "ncclGroupEnd", TWI_HERE);
        w->nccl->ncclGroupEnd();
    }
    return status;
}

static tw_status get_id(twi_nccl_world *w, tw_error *error)
{
    tw_status status = TW_OK;
    NCCL_CALL(w, ALL, error, ncclGetUniqueId, &w->id);
done:
    return status;
}

static tw_status open_one(twi_nccl_world *w, int rank, tw_error *error)
{
    tw_status status;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    TWI_TRY(use(&w->members[rank], error));
    NCCL_CALL(w, rank, error, ncclCommInitRankConfig, &w->members[rank].comm, w->count, w->id, rank, &config);
done:
    return status;
}

static tw_status open_all(twi_nccl_world *w, tw_error *error)
{
    tw_status status;
    TWI_TRY(group(w, open_one, error));
    TWI_TRY(settle(w, "ncclCommInitRankConfig", error));
done:
    return status;
}

static tw_status reduce_one(twi_nccl_world *w, int rank, tw_error *error)
{
    tw_status status;
    const member *m = &w->members[rank];
    const twi_nccl_share *s = &m->share;
    TWI_TRY(use(m, error));
    NCCL_CALL(w, rank, error, ncclAllReduce, s->from, s->to, s->count, s->type, s->op, comm_of(w, rank), m->stream);
done:
    return status;
}

static tw_status reduce_all(twi_nccl_world *w, tw_error *error)
{
    tw_status status = group(w, reduce_one, error);
    return status == TW_OK ? settle(w, "ncclAllReduce", error) : status;
}

/* Lists whose cards have not done what they were handed. */
static tw_status check_streams(twi_nccl_world *w, char *late, size_t size, tw_error *error)
{
    for (int i = 0; i < w->count; i++) {
        if (!is_here(w, i))
            continue;
        if (!enter(w, i, "cudaStreamQuery", TWI_HERE))
            return TW_CANCELLED;
        cudaError_t code = cudaStreamQuery(w->members[i].stream);
        if (code == cudaErrorNotReady)
            twi_nccl_list(late, size, w->members[i].text);
        else if (code != cudaSuccess) {
            twi_cuda_fail(error, NULL, "cudaStreamQuery", TWI_HERE, code);
            return twi_prefix(error, "%s", w->members[i].text), error->status;
        }
    }
    return TW_OK;
}

/* What is under way goes well, as far as the library knows, and is not too late. */
static tw_status look(twi_nccl_world *w, tw_error *error)
{
    tw_status status;
    char late[600] = "", unused[600] = "";
    TWI_TRY(check_progress(w, "ncclAllReduce", unused, sizeof unused, error));
    TWI_TRY(check_streams(w, late, sizeof late, error));
    pthread_mutex_lock(&w->lock);
    w->under_way = *late;
    w->next_look_ns = twi_monotonic_ns() + LOOK_NS;
    bool is_late = *late && twi_monotonic_ns() > deadline_from(w, w->handed_ns);
    pthread_mutex_unlock(&w->lock);
    if (is_late)
        status = too_late(w, late, "ncclAllReduce has not ended there", TWI_HERE, error);
done:
    return status;
}

static tw_status finalize_one(twi_nccl_world *w, int rank, tw_error *error)
{
    tw_status status = TW_OK;
    NCCL_CALL(w, rank, error, ncclCommFinalize, comm_of(w, rank));
done:
    return status;
}

/* Those of this process that are left. */
static void end_all(twi_nccl_world *w, const char *call, ncclResult_t (*end)(ncclComm_t))
{
    for (int i = 0; i < w->count; i++) {
        ncclComm_t comm = take_comm(w, i);
        if (!comm)
            continue;
        enter(w, i, call, TWI_HERE);
        end(comm);
    }
}

static tw_status close_all(twi_nccl_world *w, tw_error *error)
{
    tw_status status;
    TWI_TRY(group(w, finalize_one, error));
    TWI_TRY(settle(w, "ncclCommFinalize", error));
    end_all(w, "ncclCommDestroy", w->nccl->ncclCommDestroy);
done:
    return status;
}

/* Also what a call has left that came back too late for all others. */
static void abort_all(twi_nccl_world *w)
{
    end_all(w, "ncclCommAbort", w->nccl->ncclCommAbort);
}

/* ---- the threads ------------------------------------------------------------------------------------------------- */

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
    case NOTHING:
        return look(w, error);
    case NAME:
        return get_id(w, error);
    case OPEN:
        return open_all(w, error);
    case REDUCE:
        return reduce_all(w, error);
    case CLOSE:
        return close_all(w, error);
    default:
        abort_all(w);
        return TW_OK;
    }
}

/* Under the lock, like those that follow. Whether there is something to look at though nobody has asked. */
static bool is_look_due(const twi_nccl_world *w)
{
    if (w->failure.status != TW_OK)
        return false;
    return w->lost.status != TW_OK || (w->under_way && twi_monotonic_ns() >= w->next_look_ns);
}

static void rest(twi_nccl_world *w)
{
    struct timespec until = {w->next_look_ns / 1000000000, w->next_look_ns % 1000000000};
    if (w->under_way && w->failure.status == TW_OK)
        pthread_cond_timedwait(&w->moved, &w->lock, &until);
    else
        pthread_cond_wait(&w->moved, &w->lock);
}

static void note_handed(twi_nccl_world *w)
{
    w->under_way = true;
    w->handed_ns = twi_monotonic_ns();
    w->next_look_ns = w->handed_ns + LOOK_NS;
}

/* The library may have found out first that another task has ended, and does not know why. */
static tw_status hear_of_loss(twi_nccl_world *w, tw_status status, tw_error *error)
{
    int64_t end = twi_monotonic_ns() + HEARSAY * INT64_C(1000000000);
    struct timespec until = {end / 1000000000, end % 1000000000};
    while (w->may_be_theirs && w->lost.status == TW_OK && twi_monotonic_ns() < end)
        pthread_cond_timedwait(&w->moved, &w->lock, &until);
    if (!w->may_be_theirs || w->lost.status == TW_OK)
        return status;
    return twi_fail(error, w->lost.status, "%s", w->lost.message);
}

/* What fails ends the communicators; nobody waits for that, which may hang too. */
static void fail(twi_nccl_world *w, bool told, tw_status status, const tw_error *error)
{
    w->failure = *error;
    w->failure.status = status;
    w->told = told;
    pthread_mutex_unlock(&w->lock);
    abort_all(w);
    pthread_mutex_lock(&w->lock);
}

static void do_next(twi_nccl_world *w)
{
    tw_error error = {0};
    task task = w->task;
    tw_status status = w->failure.status;
    w->busy = true;
    say_call(w, ALL, "the thread for NCCL's calls", TWI_HERE);
    pthread_cond_broadcast(&w->moved); /* the guard */
    if (status != TW_OK)
        error = w->failure;
    if (status == TW_OK || task == ABORT) {
        pthread_mutex_unlock(&w->lock);
        status = do_task(w, task, &error);
        pthread_mutex_lock(&w->lock);
    }
    bool fails = status != TW_OK && w->failure.status == TW_OK;
    if (fails)
        status = hear_of_loss(w, status, &error);
    if (w->given_up)
        return;
    w->opened = w->opened || (status == TW_OK && task == OPEN);
    if (status == TW_OK && task == REDUCE)
        note_handed(w);
    if (task != NOTHING) {
        w->status = status;
        w->error = error;
    }
    if (fails)
        fail(w, task != NOTHING, status, &error);
    if (w->given_up)
        return;
    w->busy = false;
    if (task != NOTHING)
        w->task = NOTHING;
    pthread_cond_broadcast(&w->moved);
}

static void *work(void *argument)
{
    twi_nccl_world *w = argument;
    pthread_mutex_lock(&w->lock);
    while (w->task != END && !w->given_up)
        if (w->task == NOTHING && !is_look_due(w))
            rest(w);
        else
            do_next(w);
    w->ended = true;
    pthread_cond_broadcast(&w->moved);
    pthread_mutex_unlock(&w->lock);
    abort_all(w);
    let_go(w);
    return NULL;
}

static int64_t last_moment(const twi_nccl_world *w)
{
    int64_t last = w->since + (int64_t)(w->patience * 1e9), lost = w->lost_ns + GRACE * INT64_C(1000000000);
    return w->lost.status != TW_OK && lost < last ? lost : last;
}

/* The thread does not come back, and nobody waits for it any more; under the lock. Who asks is told why, unless it is
 * of what went wrong before. */
static void give_up(twi_nccl_world *w)
{
    tw_error late = {0};
    w->given_up = true;
    hangs(w, &late);
    if (w->failure.status == TW_OK)
        w->failure = late;
    else
        twi_log(TWI_LOG_WARNING, "NCCL's communicators are given up: %s", late.message);
    pthread_cond_broadcast(&w->moved);
}

/* A card is at what it was handed. */
static bool is_at_work(const twi_nccl_world *w)
{
    for (int i = 0; i < w->count; i++)
        if (is_here(w, i) && cudaStreamQuery(w->members[i].stream) == cudaErrorNotReady)
            return true;
    return false;
}

/* Reductions that wait for others while a call hangs would hold their cards up for good, and who waits for those in the
 * driver. So the guard aborts them, which the library lets another thread do; a call that comes back after all may
 * find its communicator gone then. Where nothing is under way, that is left to the thread. */
static void *watch(void *argument)
{
    twi_nccl_world *w = argument;
    pthread_mutex_lock(&w->lock);
    while (!w->ended && !w->given_up) {
        int64_t last = last_moment(w);
        if (!w->busy)
            pthread_cond_wait(&w->moved, &w->lock);
        else if (twi_monotonic_ns() < last)
            pthread_cond_timedwait(&w->moved, &w->lock, &(struct timespec){last / 1000000000, last % 1000000000});
        else
            give_up(w);
    }
    bool given_up = w->given_up && w->opened;
    pthread_mutex_unlock(&w->lock);
    if (given_up && is_at_work(w))
        abort_all(w);
    let_go(w);
    return NULL;
}

/* ---- who asks ---------------------------------------------------------------------------------------------------- */

static void end_thread(pthread_t thread, bool given_up)
{
    if (given_up)
        pthread_detach(thread);
    else
        pthread_join(thread, NULL);
}

static void ask_for(twi_nccl_world *w, task task)
{
    pthread_mutex_lock(&w->lock);
    w->task = task;
    pthread_cond_broadcast(&w->moved);
    pthread_mutex_unlock(&w->lock);
}

/* Nobody asks for anything any more. */
static void leave(twi_nccl_world *w)
{
    if (w->comm)
        w->comm->ops->unwatch(w->comm, &w->watcher);
    if (w->started) {
        ask_for(w, END);
        pthread_mutex_lock(&w->lock);
        while (!w->ended && !w->given_up)
            pthread_cond_wait(&w->moved, &w->lock);
        bool given_up = w->given_up;
        pthread_mutex_unlock(&w->lock);
        end_thread(w->thread, given_up);
        end_thread(w->guard, given_up);
    }
    let_go(w);
}

/* Lets the thread do something, and waits until it has, or has been given up. */
static tw_status ask(twi_nccl_world *w, task task, tw_error *error)
{
    pthread_mutex_lock(&w->lock);
    tw_status status = w->failure.status;
    if (w->given_up) {
        *error = w->failure;
        pthread_mutex_unlock(&w->lock);
        return status;
    }
    w->status = TW_OK;
    w->task = task;
    pthread_cond_broadcast(&w->moved);
    while (w->task != NOTHING && !w->given_up)
        pthread_cond_wait(&w->moved, &w->lock);
    bool given_up = w->task != NOTHING && w->status == TW_OK;
    status = given_up ? w->failure.status : w->status;
    if (status != TW_OK)
        *error = given_up ? w->failure : w->error;
    pthread_mutex_unlock(&w->lock);
    return status;
}

/* Called by a thread of the tasks', which waits for nobody. */
static void lose_task(void *user, tw_status status, const char *why)
{
    twi_nccl_world *w = user;
    pthread_mutex_lock(&w->lock);
    twi_fail(&w->lost, status, "%s", why);
    w->lost_ns = twi_monotonic_ns();
    pthread_cond_broadcast(&w->moved);
    pthread_mutex_unlock(&w->lock);
}

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

/* What the task of the first rank says to all others that have some. */
typedef struct greeting {
    char version[32];
    ncclUniqueId id;
} greeting;

static tw_status check_version(const twi_nccl_world *w, const greeting *first, tw_error *error)
{
    const char *about, *version = twi_nccl_version(&about);
    if (strncmp(first->version, version, sizeof first->version) == 0)
        return TW_OK;
    return twi_fail(error, TW_FAILED_PRECONDITION,
                    "tasks differ in NCCL: task %d has version %s, task %d has %.31s; every task must have the same",
                    w->task_here, version, w->members[0].task, first->version);
}

static tw_status greet_others(const twi_nccl_world *w, const greeting *g, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 1; i < w->count && status == TW_OK; i++) /* tasks' cards are neighbours */
        if (w->members[i].task != w->members[i - 1].task)
            status = w->comm->ops->send(w->comm, w->members[i].task, TWI_CHANNEL_OF_ALL, g, sizeof *g, error);
    return status;
}

/* Every task makes the same worlds in the same order. */
static tw_status share_id(twi_nccl_world *w, tw_error *error)
{
    const char *about;
    greeting g = {0};
    tw_status status;
    if (is_here(w, 0)) {
        status = ask(w, NAME, error);
        if (status != TW_OK || !w->comm)
            return status;
        snprintf(g.version, sizeof g.version, "%s", twi_nccl_version(&about));
        g.id = w->id;
        return greet_others(w, &g, error);
    }
    TWI_TRY(w->comm->ops->receive(w->comm, w->members[0].task, TWI_CHANNEL_OF_ALL, &g, sizeof g,
                                  "the beginning of NCCL's communicators", error));
    TWI_TRY(check_version(w, &g, error));
    w->id = g.id;
done:
    return status;
}

static tw_status add_member(member *m, twi_device *d, tw_error *error)
{
    tw_status status = TW_OK;
    memcpy(m->text, d->text, sizeof m->text);
    m->task = d->task;
    m->ordinal = ((const twi_cuda_device *)d)->ordinal;
    if (d->absent)
        return TW_OK;
    TWI_TRY(twi_cuda_use(d, error));
    TWI_CALL(d, error, cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking));
done:
    return status;
}

static tw_status start_threads(twi_nccl_world *w, tw_error *error)
{
    tw_status status;
    TWI_TRY(twi_thread_start(&w->thread, "tower-nccl", NULL, 0, work, w, error));
    w->owners++;
    status = twi_thread_start(&w->guard, "tower-guard", NULL, 0, watch, w, error);
    w->started = status == TW_OK;
    if (w->started) {
        w->owners++;
    } else {
        ask_for(w, END);
        pthread_join(w->thread, NULL);
    }
done:
    return status;
}

static tw_status begin(twi_nccl_world *w, twi_device *const *cards, tw_error *error)
{
    tw_status status;
    TWI_TRY(twi_nccl_open(&w->nccl, error));
    for (int i = 0; i < w->count; i++)
        TWI_TRY(add_member(&w->members[i], cards[i], error));
    TWI_TRY(start_threads(w, error));
    if (w->comm) {
        w->watcher = (twi_comm_watcher){.lost = lose_task, .user = w};
        w->comm->ops->watch(w->comm, &w->watcher);
    }
done:
    return status;
}

static twi_comm *comm_among(twi_device *const *cards, int count)
{
    for (int i = 1; i < count; i++)
        if (cards[i]->task != cards[0]->task)
            return cards[0]->set->comm;
    return NULL;
}

static twi_nccl_world *make_world(twi_device *const *cards, int count, double patience)
{
    pthread_condattr_t monotonic;
    twi_nccl_world *w = twi_alloc(sizeof *w + (size_t)count * sizeof *w->members);
    if (!w)
        return NULL;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->moved, &monotonic);
    pthread_condattr_destroy(&monotonic);
    w->owners = 1;
    w->patience = patience;
    w->count = count;
    w->comm = comm_among(cards, count);
    w->task_here = cards[0]->set->task;
    return w;
}

tw_status twi_nccl_world_create(twi_device *const *cards, int count, double patience, twi_nccl_world **world,
                                tw_error *error)
{
    tw_status status;
    twi_nccl_world *w = *world = make_world(cards, count, patience);
    if (!w)
        return twi_fail_memory(error, "NCCL's communicators");
    TWI_TRY(begin(w, cards, error));
    TWI_TRY(share_id(w, error));
    TWI_TRY(ask(w, OPEN, error));
done:
    if (status != TW_OK)
        twi_nccl_world_abort(w, error);
    if (status != TW_OK && w->comm)
        w->comm->ops->abort(w->comm, status, error->message);
    return status;
}

cudaStream_t twi_nccl_stream(const twi_nccl_world *w, int rank)
{
    return w->members[rank].stream;
}

void twi_nccl_give(twi_nccl_world *w, int rank, twi_nccl_share share)
{
    w->members[rank].share = share;
}

tw_status twi_nccl_reduce(twi_nccl_world *w, tw_error *error)
{
    return ask(w, REDUCE, error);
}

tw_status twi_nccl_check(twi_nccl_world *w, tw_error *error)
{
    pthread_mutex_lock(&w->lock);
    tw_status status = w->failure.status;
    if (status != TW_OK) {
        *error = w->failure;
        w->told = true;
    }
    pthread_mutex_unlock(&w->lock);
    return status;
}

bool twi_nccl_spans_tasks(const twi_nccl_world *w)
{
    return w->comm;
}

tw_status twi_nccl_look(twi_nccl_world *w, int rank, bool *ended, tw_error *error)
{
    cudaError_t code = cudaStreamQuery(w->members[rank].stream); /* before the look: an abort ends it as well */
    *ended = code == cudaSuccess;
    if (code == cudaSuccess || code == cudaErrorNotReady)
        return twi_nccl_check(w, error);
    twi_cuda_fail(error, NULL, "cudaStreamQuery", TWI_HERE, code);
    return twi_prefix(error, "%s", w->members[rank].text), error->status;
}

void twi_nccl_world_abort(twi_nccl_world *w, const tw_error *why)
{
    tw_error error = {0};
    pthread_mutex_lock(&w->lock);
    bool given_up = w->given_up || !w->started;
    if (w->failure.status == TW_OK)
        w->failure = *why;
    w->told = true;
    pthread_mutex_unlock(&w->lock);
    if (!given_up)
        ask(w, ABORT, &error);
}

static tw_status close_politely(twi_nccl_world *w, tw_error *error)
{
    tw_status status = twi_nccl_check(w, error);
    if (status != TW_OK)
        return twi_nccl_world_abort(w, error), status; /* that has ended, too */
    return ask(w, CLOSE, error);
}

void twi_nccl_world_close(twi_nccl_world *w)
{
    tw_error error = {0};
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    bool told = w->told;
    pthread_mutex_unlock(&w->lock);
    tw_status status = w->started ? close_politely(w, &error) : TW_OK;
    if (status != TW_OK && !told && check_lost(w, NULL) == TW_OK)
        twi_log(TWI_LOG_WARNING, "NCCL's communicators are aborted, for they do not end: %s", error.message);
    leave(w);
}
#endif
