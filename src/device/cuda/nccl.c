/* nccl.c - reductions between cards by NCCL.
 *
 * The cards that reduce together are a clique. Their dispatchers meet at each reduction (plan/meet.c sees to it that
 * all come to the same ones in the same order); the last to come hands the work of all of them to the library, through
 * the one thread that calls it (nccl_world.h).
 *
 * The work is done on streams of its own, beside what the cards compute: NcclAllReduce starts it, _NcclDone lets the
 * card's stream wait for it. Whatever is waited for has a deadline: a card that does not come, a call that does not
 * come back, a kernel of the library that spins on a card. After every error the communicators are aborted, or given
 * up, and made anew when the next reduction is due.
 *
 * Cards of a clique may be other tasks'. Those have their rank in it; the cards of this process meet as ever, and the
 * library lets them meet the others. Then an error ends all tasks, and nothing is made anew.
 * Never here:  where reductions are in a graph (train/reduce*.c), their order (plan/meet.c), NCCL's calls. */
#include "device/cuda/nccl_world.h"

#ifdef TOWER_WITH_NCCL
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

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
    const part *part;            /* what it has come for; NULL: it is not here */
    const twi_run *run;
} member;

struct clique {
    pthread_mutex_t lock;        /* guards all below */
    pthread_cond_t moved;
    twi_nccl_world *world;       /* NULL: there is none yet */
    bool over;                   /* it has failed, and so has a run that reduced by it */
    int own;                     /* how many are this process's */
    int here;                    /* of these, how many have come */
    int64_t meetings;            /* that have taken place */
    tw_status status;            /* of the latest */
    tw_error error;
    int count;
    member members[];
};

/* ---- cliques ----------------------------------------------------------------------------------------------------- */

static twi_device *device_of(const clique *c, int rank)
{
    return &c->members[rank].card->base;
}

static double patience(const clique *c)
{
    return c->members[0].card->collective_timeout; /* all tasks have the same options */
}

static int64_t deadline_from_now(const clique *c)
{
    return twi_monotonic_ns() + (int64_t)(patience(c) * 1e9);
}

static void destroy_clique(void *object)
{
    clique *c = object;
    twi_nccl_world_close(c->world);
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
    if (d->ops->kernels != twi_cuda_kernels)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': NCCL works between whole cards, and %s is none", p->op,
                        p->node, d->text);
    if (((const twi_cuda_device *)d)->parts)
        return twi_fail(p->error, TW_INVALID_ARGUMENT,
                        "%s '%s': NCCL works between whole cards, and %s is a part of one", p->op, p->node, d->text);
    return TW_OK;
}

/* Makes what is not there, or, in one process, what is over. What fails while cards work ends their run first. */
static tw_status open_world(clique *c, tw_error *error)
{
    tw_status status = c->world ? twi_nccl_check(c->world, error) : TW_OK;
    bool anew = !c->world || (c->over && !twi_nccl_spans_tasks(c->world));
    c->over = c->over || status != TW_OK;
    if (!anew)
        return status;
    twi_device **cards = twi_alloc_array((size_t)c->count, sizeof *cards);
    if (!cards)
        return twi_fail_memory(error, "NCCL's communicators");
    for (int i = 0; i < c->count; i++)
        cards[i] = device_of(c, i);
    twi_nccl_world_close(c->world);
    *error = (tw_error){0};
    status = twi_nccl_world_create(cards, c->count, patience(c), &c->world, error);
    twi_free(cards);
    c->over = status != TW_OK;
    return status;
}

/* Who reduces next finds nothing of what went wrong. */
static void abort_world(clique *c)
{
    if (c->world)
        twi_nccl_world_abort(c->world, &c->error);
    c->over = true;
}

/* In a plan for tasks that were not started there is nobody to meet. */
static bool is_to_open(const clique *c)
{
    const tw_devices *set = device_of(c, 0)->set;
    return c->own == c->count || (c->own > 0 && set->comm);
}

static tw_status make_clique(const twi_prepare *p, const int64_t *devices, int count, clique **made)
{
    tw_status status = TW_OK;
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
        c->own += !d->absent;
    }
    *made = c;
    return TW_OK;
done:
    destroy_clique(c);
    return status;
}

/* "nccl/3,5": by the devices' numbers. NULL: memory has run out. */
static twi_resource *find_resource(const twi_prepare *p, const int64_t *devices, int count)
{
    twi_text key = {0};
    twi_text_printf(&key, "nccl");
    for (int i = 0; i < count; i++)
        twi_text_printf(&key, "%c%d", i ? ',' : '/', (int)devices[i]);
    twi_resource *found = key.failed ? NULL : p->resources->get(p->resources, key.data);
    twi_text_free(&key);
    return found;
}

/* A clique that cannot be opened now is kept: it may be known to who watches the tasks. */
static tw_status find_clique(const twi_prepare *p, const int64_t *devices, int count, clique **found)
{
    tw_status status = TW_OK;
    twi_resource *r = find_resource(p, devices, count);
    if (!r)
        return twi_fail_memory(p->error, p->node);
    if (!r->object) {
        clique *c = NULL;
        status = make_clique(p, devices, count, &c);
        r->object = c;
        r->wake = c ? wake_clique : NULL;
        r->destroy = c ? destroy_clique : NULL;
    }
    clique *c = *found = r->object;
    if (status != TW_OK || !is_to_open(c))
        return status;
    if (c->own < c->count && !p->comm)
        return twi_fail(p->error, TW_UNIMPLEMENTED,
                        "%s '%s': NCCL between tasks works in what all tasks plan at the same moment, not in a loop "
                        "whose rounds are planned as they come, or in a queue runner", p->op, p->node);
    pthread_mutex_lock(&c->lock);
    if (!c->world || c->over)
        status = open_world(c, p->error);
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* ---- shares in a reduction --------------------------------------------------------------------------------------- */

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
    int most = p->device->set ? p->device->set->count : 1;
    if (count < 1 || count > most)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s': a reduction over %lld cards, expected 1 to %d", p->op,
                        p->node, (long long)count, most);
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
    if (count < 1)
        TWI_LEAVE(twi_fail(p->error, TW_INTERNAL, "%s '%s' has nobody to meet", p->op, p->node));
    TWI_TRY(find_clique(p, devices, count, &a->clique));
    *made = a;
    if (device_of(a->clique, a->rank)->absent) /* there it is prepared as well */
        return TW_OK;
    TWI_TRY(twi_cuda_use(p->device, p->error));
    TWI_CALL(p->device, p->error, cudaEventCreateWithFlags(&a->ready, cudaEventDisableTiming));
    TWI_CALL(p->device, p->error, cudaEventCreateWithFlags(&a->done, cudaEventDisableTiming));
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

/* The first member of this process. */
static const member *first_here(const clique *c)
{
    int i = 0;
    while (device_of(c, i)->absent)
        i++;
    return &c->members[i];
}

static tw_status check_name(const member *a, const member *b, tw_error *error)
{
    if (strcmp(strstr(a->part->name, " of "), strstr(b->part->name, " of ")) == 0)
        return TW_OK;
    return twi_fail(error, TW_INTERNAL, "%s has come to reduce '%s' and %s '%s'", a->card->base.text, a->run->node,
                    b->card->base.text, b->run->node);
}

/* What the member has computed is to be reduced on the world's stream. */
static tw_status give_share(clique *c, int rank, tw_error *error)
{
    tw_status status;
    const member *m = &c->members[rank];
    const twi_operand *x = &m->run->input_operands[0];
    TWI_TRY(check_name(first_here(c), m, error));
    twi_nccl_give(c->world, rank,
                  (twi_nccl_share){m->run->inputs[0], m->run->outputs[0], (size_t)x->elements, type_of(x->dtype),
                                   m->part->op});
    TWI_TRY(twi_cuda_use(&m->card->base, error));
    TWI_CALL(&m->card->base, error, cudaStreamWaitEvent(twi_nccl_stream(c->world, rank), m->part->ready, 0));
done:
    return status;
}

static tw_status note_done(clique *c, int rank, tw_error *error)
{
    tw_status status;
    const member *m = &c->members[rank];
    TWI_TRY(twi_cuda_use(&m->card->base, error));
    TWI_CALL(&m->card->base, error, cudaEventRecord(m->part->done, twi_nccl_stream(c->world, rank)));
done:
    return status;
}

static tw_status each_here(clique *c, tw_status (*each)(clique *c, int rank, tw_error *error), tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < c->count && status == TW_OK; i++)
        if (!device_of(c, i)->absent)
            status = each(c, i, error);
    return status;
}

/* Everybody of this process is here, and under the lock. */
static tw_status reduce(clique *c, tw_error *error)
{
    tw_status status;
    TWI_TRY(each_here(c, give_share, error));
    TWI_TRY(twi_nccl_reduce(c->world, error));
    TWI_TRY(each_here(c, note_done, error));
done:
    return status;
}

static void hold_meeting(clique *c)
{
    c->error = (tw_error){0};
    c->status = open_world(c, &c->error);
    if (c->status == TW_OK)
        c->status = reduce(c, &c->error);
    if (c->status != TW_OK)
        abort_world(c);
    for (int i = 0; i < c->count; i++)
        c->members[i].part = NULL;
    c->here = 0;
    c->meetings++;
    pthread_cond_broadcast(&c->moved);
}

/* Waits until all have come, or one has not for too long, or the run is to end. */
static void wait_for_others(clique *c, member *m, const twi_run *r)
{
    int64_t before = c->meetings, deadline = deadline_from_now(c);
    struct timespec until = {deadline / 1000000000, deadline % 1000000000};
    char late[600] = "";
    int code = 0;
    while (c->meetings == before && code == 0 && !atomic_load(r->ending))
        code = pthread_cond_timedwait(&c->moved, &c->lock, &until);
    if (c->meetings != before)
        return;
    for (int i = 0; i < c->count; i++)
        if (!c->members[i].part && !device_of(c, i)->absent)
            twi_nccl_list(late, sizeof late, device_of(c, i)->text);
    m->part = NULL;
    c->here--;
    c->status = atomic_load(r->ending) ? TW_CANCELLED
                                         : twi_nccl_too_late(late, patience(c), r->node, TWI_HERE, &c->error);
    if (c->status != TW_CANCELLED)
        abort_world(c);
}

static _Thread_local member
    *started; /* by this thread, a dispatcher's, and not yet seen to have ended; NULL: nothing */

static tw_status meet(member *m, const part *a, const twi_run *r)
{
    clique *c = a->clique;
    pthread_mutex_lock(&c->lock);
    m->part = a;
    m->run = r;
    if (++c->here == c->own)
        hold_meeting(c);
    else
        wait_for_others(c, m, r);
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
    TWI_CALL(&m->card->base, r->error, cudaEventRecord(a->ready, r->stream));
    TWI_TRY(meet(m, a, r));
    TWI_TRY(twi_cuda_use(&m->card->base, r->error)); /* who met the others went from card to card */
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

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Whether what the member has started has ended, and well. */
static tw_status look(member *m, bool *ended, tw_error *error)
{
    clique *c = m->clique;
    pthread_mutex_lock(&c->lock);
    tw_status status = c->world ? twi_nccl_look(c->world, (int)(m - c->members), ended, error)
                                : twi_fail_memory(error, "NCCL's communicators"); /* for new ones, at once */
    c->over = c->over || status != TW_OK;
    pthread_mutex_unlock(&c->lock);
    return status;
}

tw_status twi_nccl_finish(tw_error *error)
{
    member *m = started;
    tw_status status = TW_OK;
    bool ended = false;
    if (!m)
        return TW_OK;
    started = NULL;
    while ((status = look(m, &ended, error)) == TW_OK && !ended)
        nanosleep(&(struct timespec){0, 20000}, NULL);
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
