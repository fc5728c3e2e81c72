/* faulty_memory.h - makes the n-th allocation fail, alone or with all that follow, and counts the blocks that are alive.
 *
 *     for (int n = 0; failed; n++) {
 *         fail_allocation(n);
 *         tw_status status = work();
 *         ... what must hold after a failure; memory.live is 0 when nothing has leaked ...
 *         failed = stop_failing_allocations();
 *     }
 */
#ifndef FAULTY_MEMORY_H
#define FAULTY_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <tower/status.h>

static struct {
    atomic_long countdown; /* allocations until one fails; below 0: none does */
    bool for_good;         /* so do those that follow */
    atomic_bool failed;
    atomic_int live;
} memory;

static inline void *faulty_resize(void *user, void *block, size_t bytes)
{
    (void)user;
    if (bytes == 0) {
        memory.live -= block != NULL;
        free(block);
        return NULL;
    }
    long left = atomic_load(&memory.countdown) >= 0 ? atomic_fetch_sub(&memory.countdown, 1) : -1;
    if (left == 0 || (memory.failed && memory.for_good)) {
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
    memory.for_good = false;
    memory.failed = false;
    memory.live = 0;
    tw_set_allocator(faulty_resize, NULL);
}

static inline void fail_allocations_from(int n)
{
    fail_allocation(n);
    memory.for_good = true;
}

/* From here on all succeed, and are still counted; true if one has failed. */
static inline bool forgive_allocations(void)
{
    bool failed = memory.failed;
    memory.countdown = -1;
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
