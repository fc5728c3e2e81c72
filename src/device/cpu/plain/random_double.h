/* random_double.h - numbers in double precision from words of a random stream, as TensorFlow makes them. */
#ifndef TWI_CPU_RANDOM_DOUBLE_H
#define TWI_CPU_RANDOM_DOUBLE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* In [0,1). */
static inline double twi_uniform_double(uint32_t a, uint32_t b)
{
    uint64_t bits = (uint64_t)1023 << 52 | (uint64_t)(a & 0xfffff) << 32 | b;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value - 1.0;
}

/* Box-Muller in double precision. */
static inline void twi_normal_pair_double(const uint32_t words[4], double out[2])
{
    double u = fmax(twi_uniform_double(words[0], words[1]), 1e-7);
    double angle = 2 * 3.14159265358979323846 * twi_uniform_double(words[2], words[3]);
    double radius = sqrt(-2 * log(u));
    out[0] = sin(angle) * radius;
    out[1] = cos(angle) * radius;
}

#endif
