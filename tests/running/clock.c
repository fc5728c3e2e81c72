/* clock.c - the clock of test_run: the machine's, and what a test skips of it. Deadlines of tests are so long that none
 * passes by itself, however slow the machine; where one is to pass, the test skips so much, when all are where they
 * shall be by then. Or the clock stands. The linker puts these in the place of base/clock.h's (--wrap). Waits take
 * their real time. */
#include "parts.h"

#include "base/clock.h"

#include <stdatomic.h>
#include <time.h>

static atomic_llong skipped_ns, look_ns, standing_ns; /* 0: it goes */

void skip_seconds(double seconds)
{
    atomic_fetch_add(&skipped_ns, (long long)(seconds * 1e9));
}

void skip_at_each_look(double seconds)
{
    atomic_store(&look_ns, (long long)(seconds * 1e9));
}

void nap(void)
{
    nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static int64_t later(int64_t ns)
{
    int64_t standing = atomic_load(&standing_ns);
    return (standing ? standing : ns) + atomic_fetch_add(&skipped_ns, atomic_load(&look_ns));
}

int64_t __real_twi_monotonic_ns(void);
int64_t __real_twi_coarse_ns(void);
int64_t __wrap_twi_monotonic_ns(void);
int64_t __wrap_twi_coarse_ns(void);

void stand_still(bool still)
{
    atomic_store(&standing_ns, still ? __real_twi_monotonic_ns() : 0);
}

int64_t __wrap_twi_monotonic_ns(void)
{
    return later(__real_twi_monotonic_ns());
}

int64_t __wrap_twi_coarse_ns(void)
{
    return later(__real_twi_coarse_ns());
}
