/* faulty_memory.h - makes the n-th allocation fail, alone or with all that follow, or the first from a place in the
 * code of which none has failed yet, and counts the blocks that are alive.
 *
 *     for (int n = 0; failed; n++) {
 *         fail_allocation(n); (or fail_at_new_place())
 *         tw_status status = work();
 *         ... what must hold after a failure; memory.live is 0 when nothing has leaked ...
 *         failed = stop_failing_allocations();
 *     }
 */
#ifndef FAULTY_MEMORY_H
#define FAULTY_MEMORY_H

#include "testing.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <tower/status.h>
#include <unwind.h>

enum { MOST_PLACES = 1 << 16 };

static struct {
    atomic_long countdown; /* allocations until one fails; below 0: none does */
    atomic_bool for_good;  /* so do those that follow */
    atomic_bool by_place;  /* one fails that comes from a new place */
    atomic_bool failed;
    atomic_int live;
} memory;

/* ---- places: told by the latest calls that lead there ------------------------------------------------------------ */

static struct {
    atomic_uint_fast64_t seen[MOST_PLACES]; /* hashes, by open addressing */
    atomic_int count;
    int calls; /* that tell a place; with fewer of them, more calls far away lead to the same */
} places = {.calls = UNDER_THREAD_SANITIZER ? 4 : UNDER_SANITIZER ? 6 : 8};

typedef struct place_walk {
    uint64_t hash;
    int left;
} place_walk;

static inline _Unwind_Reason_Code add_call(struct _Unwind_Context *context, void *data)
{
    place_walk *walk = data;
    walk->hash = (walk->hash ^ _Unwind_GetIP(context)) * UINT64_C(1099511628211);
    return --walk->left > 0 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static inline bool is_new_place(void)
{
    place_walk walk = {UINT64_C(14695981039346656037), places.calls};
    _Unwind_Backtrace(add_call, &walk);
    for (uint64_t i = walk.hash >> 20;; i++) {
        uint_fast64_t was = 0;
        if (places.count < MOST_PLACES / 2 &&
            atomic_compare_exchange_strong(&places.seen[i % MOST_PLACES], &was, walk.hash)) {
            places.count++;
            return true;
        }
        if (was == walk.hash || places.count >= MOST_PLACES / 2)
            return false;
    }
}

/* ---- failing ----------------------------------------------------------------------------------------------------- */

static inline void *faulty_resize(void *user, void *block, size_t bytes)
{
    (void)user;
    if (bytes == 0) {
        memory.live -= block != NULL;
        free(block);
        return NULL;
    }
    long left = atomic_load(&memory.countdown) >= 0 ? atomic_fetch_sub(&memory.countdown, 1) : -1;
    bool new_place = memory.by_place && !memory.failed && is_new_place();
    if (left == 0 || new_place || (memory.failed && memory.for_good)) {
        memory.failed = true;
        return NULL;
    }
    void *moved = realloc(block, bytes);
    memory.live += moved && !block;
    return moved;
}

static inline void fail_allocation(int n)
{
    memory.countdown = n;
    memory.for_good = memory.by_place = false;
    memory.failed = false;
    memory.live = 0;
    tw_set_allocator(faulty_resize, NULL);
}

static inline void fail_allocations_from(int n)
{
    fail_allocation(n);
    memory.for_good = true;
}

static inline void fail_at_new_place(void)
{
    fail_allocation(-1);
    memory.by_place = true;
}

/* From here on all succeed, and are still counted; true if one has failed. */
static inline bool forgive_allocations(void)
{
    bool failed = memory.failed;
    memory.countdown = -1;
    memory.by_place = false;
    memory.failed = false;
    return failed;
}

/* Back to the C library's; true if an allocation failed. */
static inline bool stop_failing_allocations(void)
{
    tw_set_allocator(NULL, NULL);
    return memory.failed;
}

#endif
