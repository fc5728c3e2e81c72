/* memory.h - the one door to the heap.
 * Lives here:  allocation through the table a user (or a test that makes the n-th call fail) may replace, counted.
 * Never here:  device memory, arenas. */
#ifndef TWI_MEMORY_H
#define TWI_MEMORY_H

#include <stddef.h>
#include <stdint.h>

void *twi_alloc(size_t bytes);                             /* zeroed, of nothing too; NULL: no memory; twi_free() */
void *twi_alloc_array(size_t count, size_t bytes);         /* zeroed; NULL also on overflow */
void *twi_resize(void *block, size_t bytes);               /* new bytes are not zeroed */
void twi_free(void *block);                                /* NULL is fine */
char *twi_strdup(const char *text);
void *twi_alloc_aligned(size_t bytes, size_t alignment);   /* zeroed; twi_free_aligned() */
void *twi_reserve_aligned(size_t bytes, size_t alignment); /* not zeroed; twi_free_aligned() */
void twi_free_aligned(void *block);
void twi_count_allocation(void);                           /* devices report theirs here */

#endif
