/* thread.c - see thread.h. */
#define _GNU_SOURCE
#include "base/thread.h"

#include "base/memory.h"
#include "base/status.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static cpu_set_t process_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(getpid(), sizeof set, &set) != 0 || CPU_COUNT(&set) == 0)
        CPU_SET(0, &set);
    return set;
}

/* Cores allowed by a cgroup's CPU quota, or 0 when there is none. Version 2, then version 1. */
static int quota_cores(void)
{
    double quota = 0, period = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (file) {
        if (fscanf(file, "%lf %lf", &quota, &period) != 2)
            quota = 0;
        fclose(file);
    } else if ((file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "re"))) {
        if (fscanf(file, "%lf", &quota) != 1)
            quota = 0;
        fclose(file);
        if (quota > 0 && (file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "re"))) {
            if (fscanf(file, "%lf", &period) != 1)
                period = 0;
            fclose(file);
        }
    }
    return quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

int twi_usable_cores(void)
{
    cpu_set_t set = process_cores();
    int cores = CPU_COUNT(&set), quota = quota_cores();
    return quota > 0 && quota < cores ? quota : cores;
}

int twi_usable_core(int i)
{
    cpu_set_t set = process_cores();
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &set) && i-- == 0)
            return core;
    return 0;
}

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
    int failure = pthread_create(thread, &attributes, function, argument);
    pthread_attr_destroy(&attributes);
    if (failure)
        return twi_fail(error, TW_RESOURCE_EXHAUSTED, "cannot start thread '%s': %s", name, strerror(failure));
    char short_name[16];
    snprintf(short_name, sizeof short_name, "%s", name);
    pthread_setname_np(*thread, short_name);
    return TW_OK;
}
