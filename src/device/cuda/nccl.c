/* nccl.c - reductions between cards by NCCL.
 *
 * The cards that reduce together are a clique: a communicator and a stream for each. Their dispatchers meet at each
 * reduction (plan/meet.c sees to it that all come to the same ones in the same order); the last to come hands the work of
 * all of them to the library as one group, so that only one thread is ever inside it, and an abort finds nobody there.
 *
 * The work is done on the clique's own streams, beside what the cards compute: NcclAllReduce starts it, _NcclDone lets the
 * card's stream wait for it. Communicators do not block. Whatever is waited for has a deadline, also where a kernel of
 * the library spins on a card for one that does not come; then, and after every error, the communicators are aborted,
 * and made anew when the next reduction is due.
 * Never here:  where reductions are in a graph (train/reduce*.c), their order (plan/meet.c). */
#include "device/cuda/libraries.h"

#ifdef TOWER_WITH_NCCL
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct clique clique;

/* A card's share in one reduction. Plans that have the reduction share it: their runs take turns. */
typedef struct part {
    clique *clique;
    int rank;
    const char *name;            /* of the reduction */
    ncclRedOp_t op;
    cudaEvent_t ready, done;     /* what is reduced has been computed; it has been reduced */
} part;

typedef struct member {
    clique *clique;
    twi_cuda_device *card;
    ncclComm_t comm;
    cudaStream_t stream;
    const part *part;            /* what it has come for; NULL: it is not here */
    const twi_run *run;
} member;

struct clique {
    pthread_mutex_t lock;        /* held around all calls of the library and all below */
    pthread_cond_t moved;
    bool open;                   /* all communicators are there */
    int here;                    /* how many have come */
    int64_t meetings;            /* that have taken place */
    tw_status status;            /* of the latest */
    tw_error error;
    int count;
    member members[];
};

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static tw_status nccl_fail(tw_error *error, const twi_device *d, const char *call, const char *where, ncclResult_t code,
                           const twi_nccl *nccl)
{
    const char *more = nccl->ncclGetLastError(NULL);
    return twi_fail(error, TW_INTERNAL, "%s: %s: %s%s%s (%s)", d->text, call, nccl->ncclGetErrorString(code),
                    more && *more ? ": " : "", more ? more : "", where);
}

/* In a function with `nccl`, `status` and a label `done`. What is in progress has not failed: see settle(). */
#define NCCL_CALL(d, error, function, ...)                                                                             \
    do {                                                                                                               \
        ncclResult_t code_ = nccl->function(__VA_ARGS__);                                                              \
        if (code_ != ncclSuccess && code_ != ncclInProgress) {                                                         \
            status = nccl_fail(error, d, #function, TWI_HERE, code_, nccl);                                            \
            goto done;                                                                                                 \
        }                                                                                                              \
    } while (0)

static twi_device *device_of(const clique *c, int rank)
{
    return &c->members[rank].card->base;
}

static double patience(const clique *c)
{
    return c->members[0].card->collective_timeout;
}

static int64_t deadline_from_now(const clique *c)
{
    return twi_monotonic_ns() + (int64_t)(patience(c) * 1e9);
}

static void nap(void)
{
    nanosleep(&(struct timespec){0, 20000}, NULL);
}

/* "/job:localhost/.../device:GPU:1" and the others that `late` is true for. */
static void list_late(const clique *c, const bool *late, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < c->count && used + 1 < size; i++)
        if (late[i])
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", device_of(c, i)->text);
}

static tw_status too_late(const clique *c, const bool *late, const char *what, const char *where, tw_error *error)
{
    char names[600];
    list_late(c, late, names, sizeof names);
    return twi_fail(error, TW_DEADLINE_EXCEEDED, "%s has not come within the collective timeout of %g s: %s (%s)", names,
                    patience(c), what, where);
}

/* ---- communicators ----------------------------------------------------------------------------------------------- */

/* Gives all communicators up; kernels of theirs that are under way end. */
static void abort_all(clique *c, const twi_nccl *nccl)
{
    for (int i = 0; i < c->count; i++)
        if (c->members[i].comm)
            nccl->ncclCommAbort(c->members[i].comm);
    for (int i = 0; i < c->count; i++)
        c->members[i].comm = NULL;
    c->open = false;
}

/* Until nothing that was asked of a communicator is in progress any more. */
static tw_status settle(clique *c, const twi_nccl *nccl, const char *what, tw_error *error)
{
    tw_status status = TW_OK;
    bool late[TWI_CUDA_MOST_CARDS] = {false};
    int64_t deadline = deadline_from_now(c);
    for (bool busy = true; busy; busy ? nap() : (void)0) {
        busy = false;
        for (int i = 0; i < c->count; i++) {
            ncclResult_t state = ncclSuccess;
            NCCL_CALL(device_of(c, i), error, ncclCommGetAsyncError, c->members[i].comm, &state);
            late[i] = state == ncclInProgress;
            busy = busy || late[i];
            if (state != ncclSuccess && !late[i])
                TWI_TRY(nccl_fail(error, device_of(c, i), what, TWI_HERE, state, nccl));
        }
        if (busy && twi_monotonic_ns() > deadline)
            TWI_TRY(too_late(c, late, what, TWI_HERE, error));
    }
done:
    return status;
}

/* Makes all communicators at once; the threads of this process need no other way to find each other. */
static tw_status open_clique(clique *c, const twi_nccl *nccl, tw_error *error)
{
    tw_status status = TW_OK;
    bool grouped = false;
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    NCCL_CALL(device_of(c, 0), error, ncclGetUniqueId, &id);
    NCCL_CALL(device_of(c, 0), error, ncclGroupStart);
    grouped = true;
    for (int i = 0; i < c->count; i++) {
        TWI_TRY(twi_cuda_use(device_of(c, i), error));
        NCCL_CALL(device_of(c, i), error, ncclCommInitRankConfig, &c->members[i].comm, c->count, id, i, &config);
    }
    grouped = false;
    NCCL_CALL(device_of(c, 0), error, ncclGroupEnd);
    TWI_TRY(settle(c, nccl, "ncclCommInitRankConfig", error));
    c->open = true;
done:
    if (grouped)
        nccl->ncclGroupEnd();
    if (status != TW_OK)
        abort_all(c, nccl);
    return status;
}

/* The polite end: without an error, nobody is cut short. There is nobody left who could be told of one but the log. */
static void close_communicators(clique *c, const twi_nccl *nccl)
{
    tw_status status = TW_OK;
    tw_error error = {0};
    bool grouped = false;
    if (!c->open)
        return;
    NCCL_CALL(device_of(c, 0), &error, ncclGroupStart);
    grouped = true;
    for (int i = 0; i < c->count; i++)
        NCCL_CALL(device_of(c, i), &error, ncclCommFinalize, c->members[i].comm);
    grouped = false;
    NCCL_CALL(device_of(c, 0), &error, ncclGroupEnd);
    TWI_TRY(settle(c, nccl, "ncclCommFinalize", &error));
done:
    if (grouped)
        nccl->ncclGroupEnd();
    if (status != TW_OK) {
        twi_log(TWI_LOG_WARNING, "NCCL's communicators are aborted, for they do not end: %s", error.message);
        abort_all(c, nccl);
    }
    for (int i = 0; i < c->count; i++)
        if (c->members[i].comm)
            nccl->ncclCommDestroy(c->members[i].comm);
}

/* ---- cliques ------------------------------------------------------------------------------------------------------- */

static void destroy_clique(void *object)
{
    clique *c = object;
    tw_error ignored = {0};
    const twi_nccl *nccl;
    if (twi_nccl_open(&nccl, &ignored) == TW_OK)
        close_communicators(c, nccl);
    for (int i = 0; i < c->count; i++) {
        member *m = &c->members[i];
        if (m->stream)
            cudaStreamDestroy(m->stream);
    }
    pthread_cond_destroy(&c->moved);
    pthread_mutex_destroy(&c->lock);
    twi_free(c);
}

static void wake_clique(void *object)
{
    clique *c = object;
    pthread_mutex_lock(&c->lock);
    pthread_cond_broadcast(&c->moved);
    pthread_mutex_unlock(&c->lock);
}

/* NCCL refuses two communicators on one card, and knows nothing of parts of one. */
static tw_status check_card(const twi_prepare *p, const twi_device *d)
{
    if (!d->ops || d->ops != p->device->ops)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': NCCL works between whole cards, and %s is none", p->op,
                        p->node, d->text);
    if (((const twi_cuda_device *)d)->parts)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': NCCL works between whole cards, and %s is a part of one",
                        p->op, p->node, d->text);
    return TW_OK;
}

static tw_status make_clique(const twi_prepare *p, const int64_t *devices, int count, clique **made)
{
    tw_status status = TW_OK;
    const twi_nccl *nccl;
    pthread_condattr_t monotonic;
    clique *c = twi_alloc(sizeof *c + (size_t)count * sizeof *c->members);
    *made = NULL;
    if (!c)
        return twi_fail_memory(p->error, p->node);
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->moved, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (; c->count < count; c->count++) {
        twi_device *d = p->device->set->items[devices[c->count]];
        member *m = &c->members[c->count];
        TWI_TRY(check_card(p, d));
        m->clique = c;
        m->card = (twi_cuda_device *)d;
    }
    TWI_TRY(twi_nccl_open(&nccl, p->error));
    for (int i = 0; i < count; i++) {
        TWI_TRY(twi_cuda_use(device_of(c, i), p->error));
        TWI_CALL(device_of(c, i), p->error, cudaStreamCreateWithFlags(&c->members[i].stream, cudaStreamNonBlocking));
    }
    TWI_TRY(open_clique(c, nccl, p->error));
    *made = c;
done:
    if (status != TW_OK)
        destroy_clique(c);
    return status;
}

static tw_status find_clique(const twi_prepare *p, const int64_t *devices, int count, clique **found)
{
    char key[640];
    int used = snprintf(key, sizeof key, "nccl");
    for (int i = 0; i < count && used < (int)sizeof key; i++)
        used += snprintf(key + used, sizeof key - (size_t)used, "%c%d", i ? ',' : '/', (int)devices[i]);
    twi_resource *r = p->resources->get(p->resources, key);
    tw_status status = TW_OK;
    if (!r)
        return twi_fail_memory(p->error, p->node);
    if (!r->object) {
        clique *c = NULL;
        status = make_clique(p, devices, count, &c);
        r->object = c;
        r->wake = c ? wake_clique : NULL;
        r->destroy = c ? destroy_clique : NULL;
    }
    *found = r->object;
    return status;
}

/* ---- shares in a reduction ----------------------------------------------------------------------------------------- */

static void destroy_part(void *object)
{
    part *a = object;
    if (a->ready)
        cudaEventDestroy(a->ready);
    if (a->done)
        cudaEventDestroy(a->done);
    twi_free(a);
}

static ncclRedOp_t op_of(const twi_attrs *attrs)
{
    const char *name = twi_attr_string(attrs, "reduction", "sum");
    return strcmp(name, "min") == 0 ? ncclMin : strcmp(name, "max") == 0 ? ncclMax : strcmp(name, "prod") == 0 ? ncclProd
                                                                                                             : ncclSum;
}

static tw_status accepts(const twi_prepare *p)
{
    int64_t count = twi_attr_int(p->attrs, "num_devices", 1); /* who they are is known when all are placed */
    if (count < 1 || count > TWI_CUDA_MOST_CARDS)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s': a reduction over %lld cards, expected 1 to %d", p->op,
                        p->node, (long long)count, TWI_CUDA_MOST_CARDS);
    return TW_OK;
}

static tw_status make_part(const twi_prepare *p, const char *name, part **made)
{
    tw_status status;
    int count = 0;
    const int64_t *devices = twi_attr_ints(p->attrs, "_members", &count);
    part *a = twi_alloc(sizeof *a);
    if (!a)
        return twi_fail_memory(p->error, p->node);
    a->rank = (int)twi_attr_int(p->attrs, "_rank", 0);
    a->name = name;
    a->op = op_of(p->attrs);
    if (count < 1 || count > TWI_CUDA_MOST_CARDS)
        TWI_TRY(twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': %d cards, expected 1 to %d", p->op, p->node, count,
                         TWI_CUDA_MOST_CARDS));
    TWI_TRY(find_clique(p, devices, count, &a->clique));
    TWI_TRY(twi_cuda_use(p->device, p->error));
    TWI_CALL(p->device, p->error, cudaEventCreateWithFlags(&a->ready, cudaEventDisableTiming));
    TWI_CALL(p->device, p->error, cudaEventCreateWithFlags(&a->done, cudaEventDisableTiming));
    *made = a;
done:
    if (status != TW_OK)
        destroy_part(a);
    return status;
}

/* What starts a reduction and what ends it have the same share in it. */
static tw_status prepare_part(twi_prepare *p)
{
    char key[700];
    snprintf(key, sizeof key, "nccl part %d of %.600s", (int)twi_attr_int(p->attrs, "_rank", 0),
             twi_attr_string(p->attrs, "shared_name", ""));
    twi_resource *r = p->resources ? p->resources->get(p->resources, key) : NULL;
    if (!r)
        return twi_fail_memory(p->error, p->node);
    if (!r->object) {
        part *a = NULL;
        tw_status status = make_part(p, r->name, &a);
        if (status != TW_OK)
            return status;
        r->object = a;
        r->destroy = destroy_part;
    }
    p->state = r->object;
    p->varies = true; /* meets others on the host */
    return TW_OK;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static ncclDataType_t type_of(tw_dtype dtype)
{
    switch (dtype) {
    case TW_FLOAT16:
        return ncclFloat16;
    case TW_FLOAT64:
        return ncclFloat64;
    case TW_INT32:
        return ncclInt32;
    case TW_INT64:
        return ncclInt64;
    default:
        return ncclFloat32;
    }
}

static tw_status join(const clique *c, const twi_nccl *nccl, tw_error *error)
{
    tw_status status;
    bool grouped = false;
    for (int i = 1; i < c->count; i++)
        if (strcmp(strstr(c->members[i].part->name, " of "), strstr(c->members[0].part->name, " of ")) != 0)
            return twi_fail(error, TW_INTERNAL, "%s has come to reduce '%s' and %s '%s'", device_of(c, 0)->text,
                            c->members[0].run->node, device_of(c, i)->text, c->members[i].run->node);
    NCCL_CALL(device_of(c, 0), error, ncclGroupStart);
    grouped = true;
    status = TW_OK;
    for (int i = 0; i < c->count; i++) {
        const member *m = &c->members[i];
        const twi_operand *x = &m->run->input_operands[0];
        TWI_TRY(twi_cuda_use(device_of(c, i), error));
        NCCL_CALL(device_of(c, i), error, ncclAllReduce, m->run->inputs[0], m->run->outputs[0], (size_t)x->elements,
                  type_of(x->dtype), m->part->op, m->comm, m->stream);
    }
    grouped = false;
    NCCL_CALL(device_of(c, 0), error, ncclGroupEnd);
done:
    if (grouped)
        nccl->ncclGroupEnd();
    return status;
}

/* Everybody is here, and under the lock. */
static void hold_meeting(clique *c, const twi_nccl *nccl)
{
    c->error = (tw_error){0};
    c->status = c->open ? TW_OK : open_clique(c, nccl, &c->error);
    if (c->status == TW_OK)
        c->status = join(c, nccl, &c->error);
    if (c->status == TW_OK)
        c->status = settle(c, nccl, "ncclAllReduce", &c->error);
    if (c->status != TW_OK)
        abort_all(c, nccl);
    for (int i = 0; i < c->count; i++)
        c->members[i].part = NULL;
    c->here = 0;
    c->meetings++;
    pthread_cond_broadcast(&c->moved);
}

/* Waits until all have come, or one has not for too long, or the run is to end. */
static void wait_for_others(clique *c, member *m, const twi_nccl *nccl, const twi_run *r)
{
    int64_t before = c->meetings, deadline = deadline_from_now(c);
    struct timespec until = {deadline / 1000000000, deadline % 1000000000};
    bool late[TWI_CUDA_MOST_CARDS];
    int code = 0;
    while (c->meetings == before && code == 0 && !atomic_load(r->ending))
        code = pthread_cond_timedwait(&c->moved, &c->lock, &until);
    if (c->meetings != before)
        return;
    for (int i = 0; i < c->count; i++)
        late[i] = !c->members[i].part;
    m->part = NULL;
    c->here--;
    c->status = atomic_load(r->ending) ? TW_CANCELLED : too_late(c, late, r->node, TWI_HERE, &c->error);
    if (c->status != TW_CANCELLED)
        abort_all(c, nccl);
}

static _Thread_local member *started; /* by this thread, a dispatcher's, and not yet seen to have ended; NULL: nothing */

static tw_status meet(member *m, const part *a, const twi_nccl *nccl, const twi_run *r)
{
    clique *c = a->clique;
    pthread_mutex_lock(&c->lock);
    m->part = a;
    m->run = r;
    if (++c->here == c->count)
        hold_meeting(c, nccl);
    else
        wait_for_others(c, m, nccl, r);
    tw_status status = c->status;
    if (status == TW_OK)
        started = m;
    else if (status != TW_CANCELLED)
        *r->error = c->error;
    pthread_mutex_unlock(&c->lock);
    return status;
}

static tw_status run_start(const twi_run *r)
{
    const part *a = r->state;
    member *m = &a->clique->members[a->rank];
    tw_status status;
    const twi_nccl *nccl;
    TWI_TRY(twi_nccl_open(&nccl, r->error));
    TWI_CALL(&m->card->base, r->error, cudaEventRecord(a->ready, r->stream));
    TWI_CALL(&m->card->base, r->error, cudaStreamWaitEvent(m->stream, a->ready, 0));
    TWI_TRY(meet(m, a, nccl, r));
    TWI_TRY(twi_cuda_use(&m->card->base, r->error)); /* who called the library went from card to card */
    TWI_CALL(&m->card->base, r->error, cudaEventRecord(a->done, m->stream));
done:
    return status;
}

static tw_status run_done(const twi_run *r)
{
    const part *a = r->state;
    const twi_device *d = &a->clique->members[a->rank].card->base;
    tw_status status = TW_OK;
    TWI_CALL(d, r->error, cudaStreamWaitEvent(r->stream, a->done, 0));
    if (r->outputs[0] != r->inputs[0] && r->output_operands[0].bytes)
        TWI_CALL(d, r->error, cudaMemcpyAsync(r->outputs[0], r->inputs[0], r->output_operands[0].bytes,
                                              cudaMemcpyDeviceToDevice, r->stream));
done:
    return status;
}

static tw_status prepare_done(twi_prepare *p)
{
    p->can_overwrite[0] = true;
    return prepare_part(p);
}

/* ---- the watch ------------------------------------------------------------------------------------------------------- */

/* What is under way goes well as far as the library knows, and is not too late. */
static tw_status look(clique *c, const twi_nccl *nccl, const bool *late, int64_t deadline, tw_error *error)
{
    tw_status status = TW_OK;
    pthread_mutex_lock(&c->lock);
    if (!c->open) { /* another card's thread was first */
        *error = c->error;
        status = c->status;
    } else {
        status = settle(c, nccl, "ncclAllReduce", &c->error);
        if (status == TW_OK && twi_monotonic_ns() > deadline)
            status = too_late(c, late, "ncclAllReduce has not ended there", TWI_HERE, &c->error);
        if (status != TW_OK) {
            c->status = status;
            *error = c->error;
            abort_all(c, nccl);
        }
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}

tw_status twi_nccl_finish(tw_error *error)
{
    member *m = started;
    tw_status status = TW_OK;
    const twi_nccl *nccl;
    if (!m)
        return TW_OK;
    started = NULL;
    TWI_TRY(twi_nccl_open(&nccl, error));
    clique *c = m->clique;
    bool late[TWI_CUDA_MOST_CARDS] = {false};
    late[m - c->members] = true;
    for (int64_t deadline = deadline_from_now(c);; nap()) {
        cudaError_t code = cudaStreamQuery(m->stream);
        if (code == cudaSuccess)
            break;
        if (code != cudaErrorNotReady)
            TWI_TRY(twi_cuda_fail(error, &m->card->base, "cudaStreamQuery", TWI_HERE, code));
        TWI_TRY(look(c, nccl, late, deadline, error));
    }
done:
    return status;
}

#define REDUCED (TWI_TYPE(TW_FLOAT16) | TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_FLOAT64) | TWI_TYPE(TW_INT32) | TWI_TYPE(TW_INT64))

const twi_kernel twi_cuda_nccl_kernels[] = {
    {"NcclAllReduce", "nccl", REDUCED, prepare_part, run_start, .accepts = accepts},
    {"_NcclDone", "nccl", REDUCED, prepare_done, run_done, .accepts = accepts},
    {0},
};
#else
tw_status twi_nccl_finish(tw_error *error)
{
    (void)error;
    return TW_OK;
}

const twi_kernel twi_cuda_nccl_kernels[] = {{0}};
#endif
