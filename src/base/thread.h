/* thread.h - threads with a name, a set of cores and a size; everything else is pthreads'. */
#ifndef TWI_THREAD_H
#define TWI_THREAD_H

#include <pthread.h>
#include <tower/status.h>

/* The cores this process may use (affinity mask and cgroup quota respected). At least 1. */
int twi_usable_cores(void);
/* Number of the i-th usable core, as the kernel numbers them. */
int twi_usable_core(int i);

/* Starts `function(argument)`. name shows in debuggers (15 characters). With num_cores > 0 the thread, and every
 * thread it starts, is bound to those cores. Join with pthread_join. */
tw_status twi_thread_start(pthread_t *thread, const char *name, const int *cores, int num_cores,
                           void *(*function)(void *), void *argument, tw_error *error);

#endif
