/* cores.h - how many cores there are to be had, and who of several gets which.
 *
 * Two things limit a process. A mask (a cpuset, taskset) names the cores that it may run on: they can be divided, and
 * whoever gets some may be bound to them. A quota of a control group gives it time of any core it likes, as container
 * runtimes do: then there are no cores of its own to bind to. Bound to the first of the machine, all containers would
 * crowd there. */
#ifndef TWI_CORES_H
#define TWI_CORES_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct twi_cores {
    int count;    /* at least 1 */
    bool limited; /* by a quota, below what the mask allows */
    int allowed;  /* by the mask */
    double quota; /* cores' worth of time; 0: any */
} twi_cores;

/* Of this process. root is put before /proc and /sys, for tests; "" otherwise. */
twi_cores twi_find_cores(const char *root);

/* What each of `users` gets: equally many neighbouring cores, also when some are left over, because teams of one size
 * are what makes devices give equal bits. */
typedef struct twi_core_share {
    int threads;      /* at least 1 */
    int first, bound; /* so many cores to be bound to, from this one on (twi_usable_core()); bound 0: anywhere */
} twi_core_share;

/* One user alone is not bound, and neither are more users than there are cores. */
twi_core_share twi_share_cores(twi_cores cores, int users, int user);

/* The cores this process may use, at least 1. */
int twi_usable_cores(void);
/* Number of the i-th core of the mask, as the kernel numbers them. */
int twi_usable_core(int i);

/* Threads that run plans and do not sleep. Where they are more than there are cores nobody spins: the core that a
 * waiter looks from is the one that whom it waits for could have. */
extern atomic_int twi_awake_threads;

#endif
