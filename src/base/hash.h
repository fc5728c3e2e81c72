/* hash.h - a number mixed into a hash: for tables whose keys are several numbers. Keys that are texts: map.h. */
#ifndef TWI_HASH_H
#define TWI_HASH_H

#include <stdint.h>

static inline uint64_t twi_hash_mix(uint64_t hash, uint64_t value)
{
    hash ^= value + 0x9E3779B97F4A7C15u + (hash << 6) + (hash >> 2);
    return hash * 0xBF58476D1CE4E5B9u;
}

#endif
