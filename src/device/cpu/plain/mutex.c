/* mutex.c - the ops of critical sections; device/state/mutex.h does the work. */
#include "device/state/mutex.h"

static tw_status prepare_mutex(twi_prepare *p)
{
    return twi_mutex_make(p->outputs[0].resource, p->node, p->error);
}

/* state: the mutex. */
static tw_status prepare_use(twi_prepare *p)
{
    p->state = twi_mutex_of(p->inputs[0].resource);
    return p->state ? TW_OK
                    : twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': its input 0 is not the handle of a mutex",
                               p->op, p->node);
}

static tw_status run_lock(const twi_run *r)
{
    return twi_mutex_lock(r->state, r);
}

static tw_status run_unlock(const twi_run *r)
{
    twi_mutex_unlock(r->state, r);
    return TW_OK;
}

const twi_kernel twi_cpu_mutex_kernels[] = {
    {"MutexV2", "plain", 0, prepare_mutex},
    {"MutexLock", "plain", 0, prepare_use, run_lock},
    {"ConsumeMutexLock", "plain", 0, prepare_use, run_unlock},
    {0},
};
