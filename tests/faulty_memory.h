/* faulty_memory.h - makes the n-th allocation fail, and counts the blocks that are alive. */
#ifndef FAULTY_MEMORY_H
#define FAULTY_MEMORY_H

#include <stdbool.h>
#include <stdlib.h>
#include <tower/status.h>

static struct {
    int countdown; /* allocations until one fails */
    bool failed;
    int live;
} memory;

static inline void *faulty_resize(void *user, void *block, size_t bytes)
{
    (void)user;
    if (bytes == 0) {
        memory.live -= block != NULL;
        free(block);
        return NULL;
    }
    if (memory.countdown-- == 0) {
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
    memory.failed = false;
    memory.live = 0;
    tw_set_allocator(faulty_resize, NULL);
}

/* Back to the C library's; true if an allocation failed. */
static inline bool stop_failing_allocations(void)
{
    tw_set_allocator(NULL, NULL);
    return memory.failed;
}

#endif
