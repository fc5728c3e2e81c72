/* mutex.c - see mutex.h.
 *
 * Who has it is known by what its run looks at to see whether it is to end. Runs of one lane take turns, and sections
 * of one run do (plan/sections.c), so a lock that a run meets and that is its own was left by one before it. */
#include "device/state/mutex.h"

#include "base/memory.h"
#include "device/state/monitor.h"


struct twi_mutex {
    twi_monitor monitor; /* first; guards all that changes */
    const atomic_bool *holder; /* the `ending` of the run that has it; NULL: nobody has */
};

static void destroy(void *object)
{
    twi_mutex *m = object;
    twi_monitor_destroy(&m->monitor);
    twi_free(m);
}

/* A run ends early: what it had is free, and who waits looks whether that was its own. */
static void wake(void *object)
{
    twi_mutex *m = object;
    twi_monitor_enter(&m->monitor);
    if (m->holder && atomic_load(m->holder))
        m->holder = NULL;
    twi_monitor_notify(&m->monitor);
    twi_monitor_leave(&m->monitor);
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
    twi_monitor_init(&m->monitor);
    resource->object = m;
    resource->destroy = destroy;
    resource->wake = wake;
    return TW_OK;
}

tw_status twi_mutex_lock(twi_mutex *m, const twi_run *r)
{
    twi_monitor_enter(&m->monitor);
    while (m->holder && m->holder != r->ending && !twi_run_is_ending(r))
        twi_monitor_wait(&m->monitor);
    bool ends = twi_run_is_ending(r);
    if (!ends)
        m->holder = r->ending;
    twi_monitor_leave(&m->monitor);
    return ends ? twi_fail(r->error, TW_CANCELLED, "waiting for the lock was cancelled") : TW_OK;
}

void twi_mutex_unlock(twi_mutex *m, const twi_run *r)
{
    twi_monitor_enter(&m->monitor);
    if (m->holder == r->ending)
        m->holder = NULL;
    twi_monitor_notify(&m->monitor);
    twi_monitor_leave(&m->monitor);
}
