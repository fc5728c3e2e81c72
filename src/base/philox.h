/* philox.h - the counter-based random generator Philox4x32-10 (Salmon et al., SC'11), seeded as TensorFlow seeds it.
 * A block is a pure function of (key, counter), so any thread or device can make any part of a stream. All of it lies
 * here, for C and for the kernels of cards alike. */
#ifndef TWI_PHILOX_H
#define TWI_PHILOX_H

#include "base/anywhere.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct twi_philox {
    uint32_t counter[4];
    uint32_t key[2];
} twi_philox;

/* key = seed; counter = 0, 0, low, high of seed2 */
TWI_ANYWHERE twi_philox twi_philox_seed(uint64_t seed, uint64_t seed2)
{
    twi_philox philox = {{0, 0, (uint32_t)seed2, (uint32_t)(seed2 >> 32)}, {(uint32_t)seed, (uint32_t)(seed >> 32)}};
    return philox;
}

/* counter += blocks (128-bit) */
TWI_ANYWHERE void twi_philox_skip(twi_philox *philox, uint64_t blocks)
{
    uint64_t low = philox->counter[0] | (uint64_t)philox->counter[1] << 32;
    uint64_t high = philox->counter[2] | (uint64_t)philox->counter[3] << 32;
    low += blocks;
    high += low < blocks;
    philox->counter[0] = (uint32_t)low;
    philox->counter[1] = (uint32_t)(low >> 32);
    philox->counter[2] = (uint32_t)high;
    philox->counter[3] = (uint32_t)(high >> 32);
}

/* one block; counter += 1 */
TWI_ANYWHERE void twi_philox_next(twi_philox *philox, uint32_t block[4])
{
    uint32_t c0 = philox->counter[0], c1 = philox->counter[1], c2 = philox->counter[2], c3 = philox->counter[3];
    uint32_t k0 = philox->key[0], k1 = philox->key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    block[0] = c0;
    block[1] = c1;
    block[2] = c2;
    block[3] = c3;
    twi_philox_skip(philox, 1);
}

/* The float in [0,1) that TensorFlow makes of a word: its low 23 bits as the mantissa of [1,2), minus 1. */
TWI_ANYWHERE float twi_uniform_float(uint32_t word)
{
    uint32_t bits = (word & 0x7fffffu) | 127u << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value - 1.0f;
}

/* Two normal floats from two words by Box-Muller, with TensorFlow's guard u1 >= 1e-7. What logarithm, sine and cosine
 * give may differ between a host and a card in the last place. */
TWI_ANYWHERE void twi_normal_pair(uint32_t a, uint32_t b, float out[2])
{
    float u1 = twi_uniform_float(a);
    if (u1 < 1e-7f)
        u1 = 1e-7f;
    float angle = (float)(2 * 3.14159265358979323846 * twi_uniform_float(b)); /* rounded once, as in TensorFlow */
    float radius = sqrtf(-2.0f * logf(u1));
    out[0] = sinf(angle) * radius;
    out[1] = cosf(angle) * radius;
}

#endif
