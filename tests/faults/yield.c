/* yield.c - a library to be loaded before all others (LD_PRELOAD): before one in four locks and behind one in four
 * unlocks others go first, drawn with the seed YIELD, so that threads meet in orders that a quiet machine does not
 * show. It leaves memory alone, and so goes with the thread sanitizer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_uint threads;

static void yield_at_random(void)
{
    static __thread unsigned drawn;
    if (!drawn) {
        const char *seed = getenv("YIELD");
        drawn = 2654435761u * (unsigned)(seed ? atoi(seed) : 0) + 40503u * (atomic_fetch_add(&threads, 1) + 1);
    }
    drawn = drawn * 1664525u + 1013904223u;
    if (drawn >> 30 == 0)
        sched_yield();
}

typedef int mutex_call(pthread_mutex_t *);

static mutex_call *find(const char *name)
{
    return (mutex_call *)dlsym(RTLD_NEXT, name);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static mutex_call *real;
    if (!real)
        real = find("pthread_mutex_lock");
    yield_at_random();
    return real(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    static mutex_call *real;
    if (!real)
        real = find("pthread_mutex_unlock");
    int result = real(mutex);
    yield_at_random();
    return result;
}
