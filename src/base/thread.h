/* thread.h - threads with a name, a set of cores and a size; everything else is pthreads'. */
#ifndef TWI_THREAD_H
#define TWI_THREAD_H

#include <pthread.h>
#include <tower/status.h>

/* Starts `function(argument)`. name shows in debuggers (15 characters). With num_cores > 0 the thread, and every
 * thread it starts, is bound to those cores. All signals are blocked there. Join with pthread_join. */
tw_status twi_thread_start(pthread_t *thread, const char *name, const int *cores, int num_cores,
                           void *(*function)(void *), void *argument, tw_error *error);

#endif
