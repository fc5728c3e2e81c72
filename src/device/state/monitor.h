/* monitor.h - what guards a resource whose ops may wait: a lock, and a condition that says that something has changed
 * behind it. A monitor stands first in what it guards. */
#ifndef TWI_MONITOR_H
#define TWI_MONITOR_H

#include <pthread.h>

typedef struct twi_monitor {
    pthread_mutex_t lock;
    pthread_cond_t changed;
} twi_monitor;

void twi_monitor_init(twi_monitor *m);
void twi_monitor_destroy(twi_monitor *m);
void twi_monitor_enter(twi_monitor *m);
void twi_monitor_leave(twi_monitor *m);
void twi_monitor_wait(twi_monitor *m);   /* from within: until something has changed, or for no reason */
void twi_monitor_notify(twi_monitor *m); /* from within: all who wait look again */

/* All who wait look whether their run is to end: a resource's `wake`. */
void twi_monitor_wake(void *guarded);

#endif
