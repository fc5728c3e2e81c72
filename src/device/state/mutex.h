/* mutex.h - mutexes of critical sections (tf.CriticalSection): from where a run locks one until it gives the lock back
 * no other run does. A run that fails in between has given it back. */
#ifndef TWI_MUTEX_H
#define TWI_MUTEX_H

#include "device/kernel.h"

typedef struct twi_mutex twi_mutex;

/* Makes the resource one, or checks that it is. */
tw_status twi_mutex_make(twi_resource *resource, const char *node, tw_error *error);
twi_mutex *twi_mutex_of(const twi_resource *resource); /* NULL if something else is behind the handle */

/* Waits until no other run has it. TW_CANCELLED when the run is given up. */
tw_status twi_mutex_lock(twi_mutex *mutex, const twi_run *r);
void twi_mutex_unlock(twi_mutex *mutex, const twi_run *r);

#endif
