/* clock.h - the time, for people and for durations. */
#ifndef CLI_CLOCK_H
#define CLI_CLOCK_H

#include <stddef.h>

/* "2026-11-20 22:30:01.123456", the local time, into text[size]; returns text. */
char *time_of_day(char *text, size_t size);

double seconds_now(void); /* monotonic */

#endif
