/* clock.c - see clock.h. */
#include "base/clock.h"

#include <math.h>

int64_t twi_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t twi_coarse_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct timespec twi_time_in(double seconds)
{
    struct timespec at;
    double whole = floor(seconds < 0 ? 0 : seconds < 1e9 ? seconds : 1e9);
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)whole;
    at.tv_nsec += (long)((seconds > whole && seconds < 1e9 ? seconds - whole : 0) * 1e9);
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

double twi_wall_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
