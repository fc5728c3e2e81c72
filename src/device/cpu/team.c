/* team.c - the threads that share the loops of kernels.
 *
 * GCC makes of a parallel region a call of GOMP_parallel(), and the region asks which of how many it is. The linker
 * leads these calls here (--wrap in src/CMakeLists.txt). Each thread that calls kernels has a team of its own, made
 * when it first needs one. A region's shares are taken by whoever comes: the caller begins with the first and goes on
 * with those that nobody has taken. So it waits for those who are at work and for nobody else, and where other
 * processes have the cores it does all by itself. Who has nothing to do looks for a while, about as long as waking
 * takes, and sleeps.
 *
 * Who does a share decides no bit. As shares may be done one after the other, regions have no barriers and no loops
 * that are divided while they run; those of src/data, which say no size, are libgomp's.
 *
 * oneDNN's convolutions bring libgomp's own team, whose threads wait busily for milliseconds. A thread that has called
 * one leaves all its regions to that team, since two would be in each other's way. */
#include "device/cpu/team.h"

#include "base/array.h"
#include "base/cores.h"
#include "base/thread.h"

#include <omp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef void region(void *data);

void __real_GOMP_parallel(region *body, void *data, unsigned threads, unsigned flags);
void __wrap_GOMP_parallel(region *body, void *data, unsigned threads, unsigned flags);
int __real_omp_get_thread_num(void);
int __wrap_omp_get_thread_num(void);
int __real_omp_get_num_threads(void);
int __wrap_omp_get_num_threads(void);

enum { LOOKS = 2000, MOST_SHARES = 0xffff };

typedef struct team {
    /* The number of the region and, in the low 16 bits, how many shares nobody has taken: those from 1 to there. */
    _Alignas(64) _Atomic(uint64_t) open;
    _Atomic(region *) body; /* the rest of the region; it changes when nobody is at work in one */
    _Atomic(void *) data;
    atomic_uint shares;
    _Alignas(64) atomic_uint unfinished; /* shares, without the caller's first */
    atomic_int asleep;                   /* threads, without those that somebody has woken */
    atomic_bool caller_sleeps, ending;
    pthread_mutex_t lock; /* guards nothing but falling asleep and waking */
    pthread_cond_t opened, finished;
    TWI_ARRAY(pthread_t) threads; /* without the caller */
} team;

/* Threads of all teams that do not sleep. Where they are more than there are cores nobody looks: the core that he looks
 * from is the one that whom he waits for could have. */
static atomic_int awake;
static int cores;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* a thread's team, for its end */
static bool has_key;

static _Thread_local team *own;
static _Thread_local bool has_other_team; /* libgomp's */
static _Thread_local struct {
    unsigned number, of;
} share; /* that the thread is at; of 0: it is in none of our regions */

/* ---- shares ------------------------------------------------------------------------------------------------------ */

int __wrap_omp_get_thread_num(void)
{
    return share.of ? (int)share.number : __real_omp_get_thread_num();
}

int __wrap_omp_get_num_threads(void)
{
    return share.of ? (int)share.of : __real_omp_get_num_threads();
}

static void do_share(region *body, void *data, unsigned number, unsigned of)
{
    unsigned outer_number = share.number, outer_of = share.of;
    share.number = number;
    share.of = of;
    body(data);
    share.number = outer_number;
    share.of = outer_of;
}

static bool has_open_share(team *t)
{
    return atomic_load(&t->open) & MOST_SHARES;
}

static void finish_share(team *t)
{
    if (atomic_fetch_sub(&t->unfinished, 1) > 1 || !atomic_load(&t->caller_sleeps))
        return;
    pthread_mutex_lock(&t->lock);
    pthread_cond_signal(&t->finished);
    pthread_mutex_unlock(&t->lock);
}

/* While there are any. As long as `open` is what it was, so is the region. */
static void do_open_shares(team *t)
{
    for (;;) {
        uint64_t open = atomic_load_explicit(&t->open, memory_order_acquire);
        region *body = atomic_load_explicit(&t->body, memory_order_relaxed);
        void *data = atomic_load_explicit(&t->data, memory_order_relaxed);
        unsigned shares = atomic_load_explicit(&t->shares, memory_order_relaxed), number = open & MOST_SHARES;
        if (!number)
            return;
        if (!atomic_compare_exchange_strong(&t->open, &open, open - 1))
            continue;
        do_share(body, data, number, shares);
        finish_share(t);
    }
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static bool may_look(int looks)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    return looks < LOOKS && atomic_load_explicit(&awake, memory_order_relaxed) <= cores;
}

/* Whoever was woken too late for a region looks for the next one before sleeping again, and says so when sleeping. */
static void wait_for_shares(team *t)
{
    for (int looks = 0; may_look(looks); looks++)
        if (has_open_share(t))
            return;
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->asleep, 1);
    if (has_open_share(t) || atomic_load(&t->ending)) {
        atomic_fetch_sub(&t->asleep, 1);
    } else {
        atomic_fetch_sub(&awake, 1);
        pthread_cond_wait(&t->opened, &t->lock);
        atomic_fetch_add(&awake, 1);
    }
    pthread_mutex_unlock(&t->lock);
}

static void wake_all(team *t)
{
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->asleep, 0);
    pthread_cond_broadcast(&t->opened);
    pthread_mutex_unlock(&t->lock);
}

static void wait_for_others(team *t)
{
    for (int looks = 0; may_look(looks); looks++)
        if (!atomic_load_explicit(&t->unfinished, memory_order_acquire))
            return;
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->caller_sleeps, true);
    while (atomic_load(&t->unfinished))
        pthread_cond_wait(&t->finished, &t->lock);
    atomic_store(&t->caller_sleeps, false);
    pthread_mutex_unlock(&t->lock);
}

/* ---- teams ------------------------------------------------------------------------------------------------------- */

static void *work(void *argument)
{
    team *t = argument;
    while (!atomic_load(&t->ending)) {
        wait_for_shares(t);
        do_open_shares(t);
    }
    atomic_fetch_sub(&awake, 1);
    return NULL;
}

static void end_team(void *argument)
{
    team *t = argument;
    atomic_store(&t->ending, true);
    wake_all(t);
    for (int i = 0; i < t->threads.count; i++)
        pthread_join(t->threads.items[i], NULL);
    atomic_fetch_sub(&awake, 1);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->opened);
    pthread_cond_destroy(&t->finished);
    twi_array_free(&t->threads);
    twi_free_aligned(t);
    own = NULL;
}

static void begin(void)
{
    cores = twi_usable_cores();
    has_key = pthread_key_create(&key, end_team) == 0;
}

/* The calling thread's; NULL: there can be none. */
static team *own_team(void)
{
    if (own)
        return own;
    pthread_once(&once, begin);
    team *t = has_key ? twi_alloc_aligned(sizeof *t, 64) : NULL;
    if (!t)
        return NULL;
    *t = (team){.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER, .finished = PTHREAD_COND_INITIALIZER};
    if (pthread_setspecific(key, t) != 0) {
        twi_free_aligned(t);
        return NULL;
    }
    atomic_fetch_add(&awake, 1);
    return own = t;
}

/* Whoever cannot be had is not needed. */
static void fill_team(team *t, unsigned threads)
{
    while ((unsigned)t->threads.count + 1 < threads && twi_reserve(&t->threads, t->threads.count + 1)) {
        atomic_fetch_add(&awake, 1);
        if (twi_thread_start(&t->threads.items[t->threads.count], "tower-team", NULL, 0, work, t, NULL) != TW_OK) {
            atomic_fetch_sub(&awake, 1);
            return;
        }
        t->threads.count++;
    }
}

static void share_out(team *t, region *body, void *data, unsigned shares)
{
    uint64_t number = (atomic_load_explicit(&t->open, memory_order_relaxed) >> 16) + 1;
    atomic_store_explicit(&t->body, body, memory_order_relaxed);
    atomic_store_explicit(&t->data, data, memory_order_relaxed);
    atomic_store_explicit(&t->shares, shares, memory_order_relaxed);
    atomic_store_explicit(&t->unfinished, shares - 1, memory_order_relaxed);
    atomic_store(&t->open, number << 16 | (shares - 1));
    if (atomic_load(&t->asleep))
        wake_all(t);
    do_share(body, data, 0, shares);
    do_open_shares(t);
    wait_for_others(t);
}

void __wrap_GOMP_parallel(region *body, void *data, unsigned threads, unsigned flags)
{
    bool within = share.of || omp_in_parallel();
    bool alone = threads == 1 || (threads && within); /* libgomp makes a team even for one: 300 ns and system calls */
    team *t = alone || !threads || threads > MOST_SHARES || has_other_team ? NULL : own_team();
    if (alone) {
        do_share(body, data, 0, 1);
    } else if (t) {
        fill_team(t, threads);
        share_out(t, body, data, threads);
    } else {
        __real_GOMP_parallel(body, data, threads, flags);
    }
}

void twi_team_is_libgomps(void)
{
    has_other_team = true;
}

bool twi_team_is_here(void)
{
    return own || has_other_team;
}

void twi_team_run(int threads, twi_share *range, const void *job, int64_t count)
{
    if (threads < 2 || count < 2) {
        range(job, 0, count, 0);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
        range(job, count * thread / team, count * (thread + 1) / team, (int)thread);
    }
}
