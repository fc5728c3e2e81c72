/* memory.c - see memory.h. */
#define _GNU_SOURCE /* MADV_HUGEPAGE */
#include "base/memory.h"

#include "base/room.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tower/status.h>

#define HUGE_PAGE ((size_t)2 << 20)

static void *libc_resize(void *user, void *block, size_t bytes)
{
    (void)user;
    if (bytes == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, bytes);
}

static tw_resize_function *resize_function = libc_resize;
static void *resize_user;
static atomic_int_fast64_t allocations;

void tw_set_allocator(tw_resize_function *resize, void *user)
{
    resize_function = resize ? resize : libc_resize;
    resize_user = user;
}

int64_t tw_allocation_count(void)
{
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}

void twi_count_allocation(void)
{
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
}

void *twi_resize(void *block, size_t bytes)
{
    twi_count_allocation();
    return twi_has_room(bytes) ? resize_function(resize_user, block, bytes ? bytes : 1) : NULL;
}

void *twi_alloc(size_t bytes)
{
    void *block = twi_resize(NULL, bytes);
    if (block)
        memset(block, 0, bytes);
    return block;
}

void *twi_alloc_array(size_t count, size_t bytes)
{
    if (bytes && count > SIZE_MAX / bytes)
        return NULL;
    return twi_alloc(count * bytes);
}

void twi_free(void *block)
{
    if (block)
        resize_function(resize_user, block, 0);
}

void tw_free(void *block)
{
    twi_free(block);
}

char *twi_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = twi_resize(NULL, bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

/* The first touch of a large block costs more than anything done to it later, unless its pages are huge. This is
 * advice, for the whole pages inside a block of the C library's; nothing depends on it. */
static void prefer_huge_pages(void *block, size_t bytes)
{
    uintptr_t start = ((uintptr_t)block + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)block + bytes) & ~(HUGE_PAGE - 1);
    if (resize_function == libc_resize && start < end)
        madvise((void *)start, end - start, MADV_HUGEPAGE);
}

/* The start of the heap block is kept in the word before the aligned address. */
void *twi_reserve_aligned(size_t bytes, size_t alignment)
{
    if (bytes > SIZE_MAX - alignment - sizeof(void *))
        return NULL;
    char *block = twi_resize(NULL, bytes + alignment + sizeof(void *));
    if (!block)
        return NULL;
    prefer_huge_pages(block, bytes);
    uintptr_t start = ((uintptr_t)block + sizeof(void *) + alignment - 1) & ~(uintptr_t)(alignment - 1);
    ((void **)start)[-1] = block;
    return (void *)start;
}

void *twi_alloc_aligned(size_t bytes, size_t alignment)
{
    void *block = twi_reserve_aligned(bytes, alignment);
    return block ? memset(block, 0, bytes) : NULL;
}

void twi_free_aligned(void *block)
{
    if (block)
        twi_free(((void **)block)[-1]);
}
