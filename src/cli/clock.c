/* clock.c - see clock.h. */
#include "clock.h"

#include <stdio.h>
#include <time.h>

char *time_of_day(char *text, size_t size)
{
    struct timespec now;
    struct tm local;
    char seconds[32];
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    strftime(seconds, sizeof seconds, "%Y-%m-%d %H:%M:%S", &local);
    snprintf(text, size, "%s.%06ld", seconds, now.tv_nsec / 1000);
    return text;
}

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
