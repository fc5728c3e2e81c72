/* arena.h - memory that is freed all at once: what a graph or a plan owns. */
#ifndef TWI_ARENA_H
#define TWI_ARENA_H

#include <stddef.h>
#include <tower/status.h>

typedef struct twi_arena {
    struct twi_arena_block *blocks;
    size_t used, size; /* of the newest block */
} twi_arena;           /* all zeros is an empty arena */

void *twi_arena_alloc(twi_arena *arena, size_t bytes); /* zeroed, aligned to 16; NULL when out of memory */
void *twi_arena_copy(twi_arena *arena, const void *from, size_t bytes);
char *twi_arena_strdup(twi_arena *arena, const char *text);
char *twi_arena_printf(twi_arena *arena, const char *format, ...) TW_PRINTF(2, 3);
void twi_arena_free(twi_arena *arena); /* everything; the arena is empty again */

#endif
