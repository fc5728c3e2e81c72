/* coordinator.c - threads that end together. */
#include "base/array.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "base/thread.h"

#include <errno.h>
#include <tower/queue.h>

typedef struct member {
    tw_coordinator *coordinator;
    char *name;
    tw_coordinator_thread *function;
    void *user;
    pthread_t thread;
    bool ended, joined;
} member;

struct tw_coordinator {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    bool stop;
    tw_error why;         /* TW_OK: all is well */
    TWI_ARRAY(member *) members;
    int live;
};

tw_status tw_coordinator_create(tw_coordinator **coordinator, tw_error *error)
{
    TWI_NEED(coordinator, "coordinator", error);
    pthread_condattr_t attributes;
    tw_coordinator *c = *coordinator = twi_alloc(sizeof *c);
    if (!c)
        return twi_fail_memory(error, "creating a coordinator");
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return TW_OK;
}

void tw_coordinator_destroy(tw_coordinator *c)
{
    if (!c)
        return;
    tw_coordinator_request_stop(c, NULL);
    for (int i = 0; i < c->members.count; i++) {
        member *m = c->members.items[i];
        if (!m->joined)
            pthread_join(m->thread, NULL);
        twi_free(m->name);
        twi_free(m);
    }
    twi_array_free(&c->members);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    twi_free(c);
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

static void *run_member(void *argument)
{
    member *m = argument;
    tw_coordinator *c = m->coordinator;
    tw_error error = {0};
    tw_status status = m->function(c, m->user, &error);
    error.status = status;
    if (status != TW_OK)
        tw_coordinator_request_stop(c, &error);
    pthread_mutex_lock(&c->lock);
    m->ended = true;
    c->live--;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

tw_status tw_coordinator_start(tw_coordinator *c, const char *name, tw_coordinator_thread *function, void *user,
                               tw_error *error)
{
    TWI_NEED(c, "coordinator", error);
    TWI_NEED(name, "name", error);
    TWI_NEED(function, "thread", error);
    member *m = twi_alloc(sizeof *m);
    char *kept = twi_strdup(name);
    tw_status status = TW_OK;
    pthread_mutex_lock(&c->lock);
    if (!m || !kept || !twi_reserve(&c->members, c->members.count + 1))
        TWI_LEAVE(twi_fail_memory(error, "starting a thread"));
    *m = (member){.coordinator = c, .name = kept, .function = function, .user = user};
    TWI_TRY(twi_thread_start(&m->thread, name, NULL, 0, run_member, m, error));
    c->members.items[c->members.count++] = m;
    c->live++;
done:
    pthread_mutex_unlock(&c->lock);
    if (status != TW_OK) {
        twi_free(m);
        twi_free(kept);
    }
    return status;
}

/* ---- stopping --------------------------------------------------------------------------------------------------- */

void tw_coordinator_request_stop(tw_coordinator *c, const tw_error *why)
{
    TWI_NEED_OR(c, );
    pthread_mutex_lock(&c->lock);
    if (!c->stop && why && why->status != TW_OUT_OF_RANGE)
        c->why = *why;
    c->stop = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

bool tw_coordinator_should_stop(tw_coordinator *c)
{
    TWI_NEED_OR(c, false);
    pthread_mutex_lock(&c->lock);
    bool stop = c->stop;
    pthread_mutex_unlock(&c->lock);
    return stop;
}

bool tw_coordinator_wait_for_stop(tw_coordinator *c, double seconds)
{
    TWI_NEED_OR(c, false);
    struct timespec until = twi_time_in(seconds);
    pthread_mutex_lock(&c->lock);
    while (!c->stop && pthread_cond_timedwait(&c->changed, &c->lock, &until) != ETIMEDOUT)
        ;
    bool stop = c->stop;
    pthread_mutex_unlock(&c->lock);
    return stop;
}

/* With the lock held. */
static tw_status fail_late(tw_coordinator *c, double grace, tw_error *error)
{
    twi_text names = {0};
    for (int i = 0; i < c->members.count; i++)
        if (!c->members.items[i]->ended)
            twi_text_printf(&names, " %s", c->members.items[i]->name);
    tw_status status = twi_fail(error, TW_DEADLINE_EXCEEDED, "%g seconds after the request to stop still run:%s%s%s",
                                grace, twi_text_string(&names), c->why.status != TW_OK ? "; the request: " : "",
                                c->why.message);
    twi_text_free(&names);
    return status;
}

tw_status tw_coordinator_join(tw_coordinator *c, double grace_seconds, tw_error *error)
{
    TWI_NEED(c, "coordinator", error);
    tw_status status = TW_OK;
    pthread_mutex_lock(&c->lock);
    while (!c->stop)
        pthread_cond_wait(&c->changed, &c->lock);
    struct timespec until = twi_time_in(grace_seconds);
    while (c->live && pthread_cond_timedwait(&c->changed, &c->lock, &until) != ETIMEDOUT)
        ;
    for (int i = 0; i < c->members.count; i++) {
        member *m = c->members.items[i];
        if (m->ended && !m->joined)
            pthread_join(m->thread, NULL);
        m->joined = m->ended;
    }
    if (c->live)
        status = fail_late(c, grace_seconds, error);
    else if (c->why.status != TW_OK)
        status = twi_fail(error, c->why.status, "%s", c->why.message);
    pthread_mutex_unlock(&c->lock);
    return status;
}
