/* clock.cc - the plug-in's clock: the machine's, and what is skipped of it. Where something hangs, so much is skipped as
 * it takes to see that, so that no test waits for it, nor takes a slow machine for one that hangs. The linker puts these
 * in the place of the functions that the plug-in calls (--wrap). */
#include "inside.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <map>
#include <pthread.h>

static std::atomic<int64_t> skipped;
static std::atomic<double> hang;

static std::mutex counting;
static std::map<pthread_cond_t *, int> waiting; /* threads, with the lock */

static int64_t machine_ns(void)
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void count(pthread_cond_t *at, int change)
{
    std::lock_guard<std::mutex> guard(counting);
    waiting[at] += change;
}

extern "C" int64_t __wrap_twi_monotonic_ns(void)
{
    return machine_ns() + skipped;
}

/* For a millisecond at most: who is woken before the time looks whether there is a reason, and waits again. */
extern "C" int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const timespec *until)
{
    int64_t end = until->tv_sec * INT64_C(1000000000) + until->tv_nsec - skipped, now = machine_ns();
    if (end <= now)
        return card::seen("wait in vain"), ETIMEDOUT;
    int64_t next = std::min(end, now + 1000000);
    timespec look = {(time_t)(next / 1000000000), (long)(next % 1000000000)};
    count(cond, 1);
    int code = pthread_cond_timedwait(cond, mutex, &look);
    count(cond, -1);
    return code == ETIMEDOUT ? 0 : code;
}

extern "C" void card_hang_for(double seconds)
{
    hang = seconds;
}

extern "C" void card_skip(double part)
{
    skipped += (int64_t)(part * hang * 1e9);
}

extern "C" int card_waiting(void)
{
    std::lock_guard<std::mutex> guard(counting);
    int most = 0;
    for (auto &[at, threads] : waiting)
        most = std::max(most, threads);
    return most;
}
