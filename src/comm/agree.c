/* agree.c - see comm.h: what every task calls in the same order, made of sending and receiving alone. Plug-ins have it,
 * too. */
#include "comm/comm.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

tw_status twi_comm_share_in(twi_comm *c, int channel, int from, void *data, size_t bytes, const char *what,
                            tw_error *error)
{
    tw_status status = TW_OK;
    if (c->task != from)
        return c->ops->receive(c, from, channel, data, bytes, what, error);
    for (int task = 0; task < c->tasks && status == TW_OK; task++)
        if (task != from)
            status = c->ops->send(c, task, channel, data, bytes, error);
    return status;
}

tw_status twi_comm_share(twi_comm *c, int from, void *data, size_t bytes, const char *what, tw_error *error)
{
    return twi_comm_share_in(c, TWI_CHANNEL_OF_ALL, from, data, bytes, what, error);
}

/* Task 0 asks for the other's clock a few times, and believes the answer that came soonest. */
static tw_status ask_clock(twi_comm *c, int task, int64_t *ahead, tw_error *error)
{
    enum { TIMES = 5 };
    int64_t soonest = INT64_MAX, theirs;
    tw_status status = TW_OK;
    for (int i = 0; i < TIMES && status == TW_OK; i++) {
        int64_t asked = twi_monotonic_ns();
        if (c->task != 0)
            status = c->ops->receive(c, 0, TWI_CHANNEL_OF_ALL, NULL, 0, "a question for the time", error);
        theirs = twi_monotonic_ns();
        if (status == TW_OK)
            status = c->task == 0 ? c->ops->send(c, task, TWI_CHANNEL_OF_ALL, NULL, 0, error)
                                  : c->ops->send(c, 0, TWI_CHANNEL_OF_ALL, &theirs, sizeof theirs, error);
        if (status == TW_OK && c->task == 0)
            status = c->ops->receive(c, task, TWI_CHANNEL_OF_ALL, &theirs, sizeof theirs, "its time", error);
        int64_t took = twi_monotonic_ns() - asked;
        if (took < soonest) {
            soonest = took;
            *ahead = asked + took / 2 - theirs;
        }
    }
    if (status == TW_OK)
        status = c->task == 0 ? c->ops->send(c, task, TWI_CHANNEL_OF_ALL, ahead, sizeof *ahead, error)
                              : c->ops->receive(c, 0, TWI_CHANNEL_OF_ALL, ahead, sizeof *ahead, "its clock", error);
    return status;
}

tw_status twi_comm_clock(twi_comm *c, int64_t *ahead, tw_error *error)
{
    tw_status status = TW_OK;
    int64_t others;
    *ahead = 0;
    for (int task = 1; task < c->tasks && status == TW_OK; task++)
        if (c->task == 0 || c->task == task)
            status = ask_clock(c, task, c->task == 0 ? &others : ahead, error);
    return status;
}

/* ---- comparing lists --------------------------------------------------------------------------------------------- */

/* What task 0 finds. */
typedef struct verdict {
    int64_t task; /* the first that has another list; -1: none */
    uint64_t at;  /* the first item that differs */
} verdict;

static void look_at(const twi_comm_list *mine, const uint64_t *theirs, size_t count, int task, verdict *v)
{
    size_t i = 0;
    while (i < count && i < mine->count && theirs[i] == mine->hashes[i])
        i++;
    if (v->task < 0 && (i < count || i < mine->count))
        *v = (verdict){task, i};
}

/* Task 0 looks at the list of another. */
static tw_status look_at_task(twi_comm *c, const twi_comm_list *list, int task, const char *what, verdict *v,
                              tw_error *error)
{
    uint64_t count;
    tw_status status = c->ops->receive(c, task, TWI_CHANNEL_OF_ALL, &count, sizeof count, what, error);
    if (status != TW_OK)
        return status;
    uint64_t *theirs = count < SIZE_MAX / 16 ? twi_alloc_array((size_t)count + 1, sizeof *theirs) : NULL;
    if (!theirs)
        return twi_fail_memory(error, "comparing what tasks have");
    status = c->ops->receive(c, task, TWI_CHANNEL_OF_ALL, theirs, sizeof *theirs * (size_t)count, what, error);
    if (status == TW_OK)
        look_at(list, theirs, (size_t)count, task, v);
    twi_free(theirs);
    return status;
}

static tw_status find_difference(twi_comm *c, const twi_comm_list *list, const char *what, verdict *v, tw_error *error)
{
    tw_status status = TW_OK;
    uint64_t count = list->count;
    *v = (verdict){-1, 0};
    for (int task = 1; task < c->tasks && status == TW_OK && c->task == 0; task++)
        status = look_at_task(c, list, task, what, v, error);
    if (c->task != 0)
        status = c->ops->send(c, 0, TWI_CHANNEL_OF_ALL, &count, sizeof count, error);
    if (c->task != 0 && status == TW_OK)
        status = c->ops->send(c, 0, TWI_CHANNEL_OF_ALL, list->hashes, sizeof *list->hashes * list->count, error);
    return status == TW_OK ? twi_comm_share(c, 0, v, sizeof *v, what, error) : status;
}

tw_status twi_comm_compare(twi_comm *c, const twi_comm_list *list, const char *what, tw_error *error)
{
    enum { TEXT = 400 };
    char first[TEXT] = "", other[TEXT] = "", waited[TEXT];
    verdict v;
    snprintf(waited, sizeof waited, "a word on %s", what); /* "task 0 waited for X of task 1" */
    tw_status status = find_difference(c, list, waited, &v, error);
    if (status != TW_OK || v.task < 0)
        return status;
    if (c->task == 0)
        list->describe(list->user, (size_t)v.at, first, sizeof first);
    if (c->task == (int)v.task)
        list->describe(list->user, (size_t)v.at, other, sizeof other);
    status = twi_comm_share(c, 0, first, sizeof first, waited, error);
    if (status == TW_OK)
        status = twi_comm_share(c, (int)v.task, other, sizeof other, waited, error);
    if (status != TW_OK)
        return status;
    return twi_fail(error, TW_FAILED_PRECONDITION,
                    "tasks differ in %s: task %d has %s%s%s, task 0 has %s%s%s; every task must do the same", what,
                    (int)v.task, other[0] ? "'" : "nothing more", other, other[0] ? "'" : "",
                    first[0] ? "'" : "nothing more", first, first[0] ? "'" : "");
}
