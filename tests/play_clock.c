/* play_clock.c - a library to be loaded before all others (LD_PRELOAD), in which the monotonic clock goes by looks:
 * each look at it is PLAY_CLOCK seconds later than the one before, of whatever thread; with 0 it stands. So what a
 * program does after so many seconds it does whatever the machine has to do beside. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BEGIN = 1000 }; /* seconds; 0 may mean "never" */

static double step;
static atomic_long looks;

__attribute__((constructor)) static void read_step(void)
{
    const char *text = getenv("PLAY_CLOCK");
    step = text ? atof(text) : 0;
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    if (id != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, id, time);
    double seconds = BEGIN + step * (double)atomic_fetch_add(&looks, 1);
    time->tv_sec = (time_t)seconds;
    time->tv_nsec = (long)((seconds - (double)time->tv_sec) * 1e9);
    return 0;
}
