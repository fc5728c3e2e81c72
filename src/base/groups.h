/* groups.h - the control groups that this process is in, and what those that they are in allow as well.
 * Lives here:  where a group's files are, of either version; the least of what they say.
 * Never here:  what the numbers mean (cores.c, room.c). */
#ifndef TWI_GROUPS_H
#define TWI_GROUPS_H

#include <stdbool.h>

/* The least that of_group() says of a folder of the process's groups, and of each folder above it; INFINITY: nothing
 * limits it. controller is "cpu" or "memory"; root is put before /proc and /sys, for tests; "" otherwise. */
double twi_least_of_groups(const char *root, const char *controller, double (*of_group)(const char *folder));

/* The first `count` numbers of a file; "max" is none. */
bool twi_read_numbers(const char *folder, const char *name, double *numbers, int count);

#endif
