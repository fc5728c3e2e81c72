/* golden_noise.h - the numbers that networks in golden/ were trained with; the scripts that made them have the same. */
#ifndef GOLDEN_NOISE_H
#define GOLDEN_NOISE_H

#include <stdint.h>

/* The i-th of a stream: a multiple of 2^-15 in [-1, 1). */
static inline float golden_noise(uint32_t stream, uint32_t i)
{
    uint32_t x = i + stream * 0x9E3779B9u;
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    x ^= x >> 16;
    return (float)(x >> 16) / 32768 - 1;
}

#endif
