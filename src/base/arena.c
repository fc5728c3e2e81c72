/* arena.c - see arena.h. Blocks double in size and hang in a list. Builds for tests may have a block for each piece:
 * then each may fail, and a sanitizer sees where it ends. */
#include "base/arena.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct twi_arena_block {
    struct twi_arena_block *next;
    size_t padding; /* data starts 16-byte aligned behind the header */
    char data[];
};

#ifdef TOWER_SMALL_BLOCKS
enum { FIRST_BLOCK = 0, LARGEST_BLOCK = 0 };
#else
enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };
#endif

void *twi_arena_alloc(twi_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    if (!arena->blocks || arena->size - arena->used < bytes) {
        size_t size = arena->size ? arena->size * 2 : FIRST_BLOCK;
        if (size > LARGEST_BLOCK)
            size = LARGEST_BLOCK;
        if (size < bytes)
            size = bytes;
        struct twi_arena_block *block = twi_resize(NULL, sizeof *block + size);
        if (!block)
            return NULL;
        block->next = arena->blocks;
        arena->blocks = block;
        arena->size = size;
        arena->used = 0;
    }
    void *result = arena->blocks->data + arena->used;
    arena->used += bytes;
    return memset(result, 0, bytes);
}

void *twi_arena_copy(twi_arena *arena, const void *from, size_t bytes)
{
    void *copy = twi_arena_alloc(arena, bytes);
    if (copy && bytes)
        memcpy(copy, from, bytes);
    return copy;
}

char *twi_arena_strdup(twi_arena *arena, const char *text)
{
    return twi_arena_copy(arena, text, strlen(text) + 1);
}

char *twi_arena_printf(twi_arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = length < 0 ? NULL : twi_arena_alloc(arena, (size_t)length + 1);
    if (text) {
        va_start(arguments, format);
        vsnprintf(text, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    return text;
}

void twi_arena_free(twi_arena *arena)
{
    while (arena->blocks) {
        struct twi_arena_block *next = arena->blocks->next;
        twi_free(arena->blocks);
        arena->blocks = next;
    }
    *arena = (twi_arena){0};
}
