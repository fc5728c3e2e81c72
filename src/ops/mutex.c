/* mutex.c - critical sections as nodes of a graph: a mutex, locking it, and giving the lock back. The handle of a lock
 * is that of its mutex. */
#include "ops/rules.h"

static tw_status handle_shape(twi_inference *c)
{
    c->outputs[0] = TW_SCALAR;
    return TW_OK;
}

static tw_status nothing_shape(twi_inference *c)
{
    (void)c;
    return TW_OK;
}

#define STATE TWI_STATEFUL | TWI_HOST_ONLY

const twi_op twi_mutex_ops[] = {
    {"MutexV2", "", "resource:resource", "container:string=; shared_name:string=", handle_shape, NULL, STATE,
     .makes = TWI_MAKES_QUEUE},
    {"MutexLock", "mutex:resource", "mutex_lock:resource", "", handle_shape, NULL, STATE, "m"},
    {"ConsumeMutexLock", "mutex_lock:resource", "", "", nothing_shape, NULL, STATE, "k"},
    {0},
};
