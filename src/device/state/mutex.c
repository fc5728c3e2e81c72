/* mutex.c - see mutex.h.
 *
 * Who has it is known by what its run looks at to see whether it is to end. Runs of one lane take turns, and sections
 * of one run do (plan/sections.c), so a lock that a run meets and that is its own was left by one before it. */
#include "device/state/mutex.h"

#include "base/memory.h"

#include <pthread.h>

struct twi_mutex {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    const atomic_bool *holder; /* the `ending` of the run that has it; NULL: nobody has */
};

static void destroy(void *object)
{
    twi_mutex *m = object;
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->changed);
    twi_free(m);
}

/* A run ends early: what it had is free, and who waits looks whether that was its own. */
static void wake(void *object)
{
    twi_mutex *m = object;
    pthread_mutex_lock(&m->lock);
    if (m->holder && atomic_load(m->holder))
        m->holder = NULL;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

twi_mutex *twi_mutex_of(const twi_resource *resource)
{
    return resource && resource->destroy == destroy ? resource->object : NULL;
}

tw_status twi_mutex_make(twi_resource *resource, const char *node, tw_error *error)
{
    if (twi_mutex_of(resource))
        return TW_OK;
    if (resource->object || resource->memory)
        return twi_fail(error, TW_INVALID_ARGUMENT, "mutex '%s': that name is taken by something that is no mutex",
                        node);
    twi_mutex *m = twi_alloc(sizeof *m);
    if (!m)
        return twi_fail_memory(error, "making a mutex");
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    resource->object = m;
    resource->destroy = destroy;
    resource->wake = wake;
    return TW_OK;
}

tw_status twi_mutex_lock(twi_mutex *m, const twi_run *r)
{
    pthread_mutex_lock(&m->lock);
    while (m->holder && m->holder != r->ending && !twi_run_is_ending(r))
        pthread_cond_wait(&m->changed, &m->lock);
    bool ends = twi_run_is_ending(r);
    if (!ends)
        m->holder = r->ending;
    pthread_mutex_unlock(&m->lock);
    return ends ? twi_fail(r->error, TW_CANCELLED, "waiting for the lock was cancelled") : TW_OK;
}

void twi_mutex_unlock(twi_mutex *m, const twi_run *r)
{
    pthread_mutex_lock(&m->lock);
    if (m->holder == r->ending)
        m->holder = NULL;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}
