/* thread.c - see thread.h. */
#define _GNU_SOURCE
#include "base/thread.h"

#include "base/status.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

tw_status twi_thread_start(pthread_t *thread, const char *name, const int *cores, int num_cores,
                           void *(*function)(void *), void *argument, tw_error *error)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (num_cores > 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        for (int i = 0; i < num_cores; i++)
            CPU_SET(cores[i], &set);
        pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    }
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    int failure = pthread_create(thread, &attributes, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failure)
        return twi_fail(error, TW_RESOURCE_EXHAUSTED, "cannot start thread '%s': %s", name, strerror(failure));
    char short_name[16];
    snprintf(short_name, sizeof short_name, "%s", name);
    pthread_setname_np(*thread, short_name);
    return TW_OK;
}
