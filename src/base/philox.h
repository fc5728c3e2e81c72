/* philox.h - the counter-based random generator Philox4x32-10 (Salmon et al., SC'11), seeded as TensorFlow seeds it.
 * A block is a pure function of (key, counter), so any thread or device can make any part of a stream. */
#ifndef TWI_PHILOX_H
#define TWI_PHILOX_H

#include <stdint.h>

typedef struct twi_philox {
    uint32_t counter[4];
    uint32_t key[2];
} twi_philox;

twi_philox twi_philox_seed(uint64_t seed, uint64_t seed2);       /* key = seed; counter = 0, 0, low, high of seed2 */
void twi_philox_skip(twi_philox *philox, uint64_t blocks);       /* counter += blocks (128-bit) */
void twi_philox_next(twi_philox *philox, uint32_t block[4]);     /* one block; counter += 1 */

/* The float in [0,1) that TensorFlow makes of a word: its low 23 bits as the mantissa of [1,2), minus 1. */
float twi_uniform_float(uint32_t word);

/* Two normal floats from two words by Box-Muller, with TensorFlow's guard u1 >= 1e-7. */
void twi_normal_pair(uint32_t a, uint32_t b, float out[2]);

#endif
