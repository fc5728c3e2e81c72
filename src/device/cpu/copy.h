/* copy.h - large blocks of memory, copied and cleared by the team.
 *
 * Elementwise kernels divide what they compute among the team, so half of it lies in another core's cache afterwards;
 * on some machines it comes from there at a tenth of the speed. Here each thread takes the part that it has most likely
 * computed, or will.
 *
 * Never here:  elements that own memory, and other layouts (plain/move.c). */
#ifndef TWI_COPY_H
#define TWI_COPY_H

#include <stddef.h>

void twi_copy_block(void *to, const void *from, size_t bytes, int threads); /* which do not overlap, or are the same */
void twi_clear_block(void *to, size_t bytes, int threads);

#endif
