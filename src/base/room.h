/* room.h - how much memory there is to be had.
 *
 * The kernel promises more than there is, and ends a process that takes what it was promised. So who wants much asks
 * first, and is refused with a message.
 *
 * Never here:  taking it (memory.c, a device's backend). */
#ifndef TWI_ROOM_H
#define TWI_ROOM_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that the machine can give, with what it takes back from files and what it can swap, and that the control groups
 * of this process allow; INFINITY where nobody says. root is put before /proc and /sys, for tests; "" otherwise. */
double twi_memory_left(const char *root);

/* Whether so many bytes are there; of less than 256 MiB nobody asks. */
bool twi_has_room(size_t bytes);

/* Whether this process's limits (ulimit -v, -d) leave so many bytes: for what others take who do not look whether they
 * got it, and crash. */
bool twi_may_have(size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
