/* stream.h - what example k of a stream is: a pure function of (seed, k), wherever it is asked, on the host or on a card.
 * Lives here:  the random numbers of an example, the permutation of an epoch, which image example k is.
 * Never here:  threads and buffers (data/pipeline.c), pixels (distort.h). */
#ifndef TWI_STREAM_H
#define TWI_STREAM_H

#include "base/philox.h"

#include <stdbool.h>

/* Which random numbers; kept in the second word of the Philox counter, where no other user of a seed comes. */
typedef enum twi_stream {
    TWI_STREAM_ORDER = 1,  /* counted by epoch */
    TWI_STREAM_DISTORTION, /* counted by example of the stream */
    TWI_STREAM_SYNTHETIC,  /* counted by image */
    TWI_STREAM_FLIP,       /* counted by image */
} twi_stream;

TWI_ANYWHERE twi_philox twi_example_random(uint64_t seed, twi_stream stream, uint64_t number)
{
    twi_philox philox = twi_philox_seed(seed, number);
    philox.counter[1] = (uint32_t)stream;
    return philox;
}

/* A keyed permutation of 0 to count - 1 in constant memory: a Feistel network. Each round changes one half of the bits
 * of a number by a function of the other half, which can be undone whatever the function is, so the network is a
 * permutation of 0 to 2^bits - 1. A number that lands beyond `count` goes through again until it does not; that leaves
 * a permutation of 0 to count - 1, and takes less than two turns on average since 2^bits < 2 count (small counts
 * excepted). */
enum { TWI_PERMUTATION_ROUNDS = 8, TWI_PERMUTATION_LEAST_BITS = 8 }; /* fewer bits: too few orders of small sets */
typedef struct twi_permutation {
    int64_t count;
    int left_bits, right_bits;
    uint32_t keys[TWI_PERMUTATION_ROUNDS];
} twi_permutation;

TWI_ANYWHERE twi_permutation twi_epoch_permutation(int64_t count, uint64_t seed, int64_t epoch)
{
    twi_permutation p;
    int bits = TWI_PERMUTATION_LEAST_BITS;
    while (bits < 62 && (int64_t)1 << bits < count)
        bits++;
    p.count = count;
    p.left_bits = bits / 2;
    p.right_bits = bits - p.left_bits;
    twi_philox random = twi_example_random(seed, TWI_STREAM_ORDER, (uint64_t)epoch);
    twi_philox_next(&random, p.keys);
    twi_philox_next(&random, p.keys + 4);
    return p;
}

/* The finaliser of MurmurHash3, with the key added before. */
TWI_ANYWHERE uint32_t twi_permutation_mix(uint32_t x, uint32_t key)
{
    x += key;
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ x >> 16;
}

TWI_ANYWHERE int64_t twi_permute(const twi_permutation *p, int64_t position)
{
    const uint32_t left_mask = (uint32_t)(((uint64_t)1 << p->left_bits) - 1);
    const uint32_t right_mask = (uint32_t)(((uint64_t)1 << p->right_bits) - 1);
    uint64_t number = (uint64_t)position;
    do {
        uint32_t left = (uint32_t)(number >> p->right_bits) & left_mask, right = (uint32_t)number & right_mask;
        for (int round = 0; round < TWI_PERMUTATION_ROUNDS; round += 2) {
            left ^= twi_permutation_mix(right, p->keys[round]) & left_mask;
            right ^= twi_permutation_mix(left, p->keys[round + 1]) & right_mask;
        }
        number = (uint64_t)left << p->right_bits | right;
    } while (number >= (uint64_t)p->count);
    return (int64_t)number;
}

/* Which of the `count` images example k is. */
TWI_ANYWHERE int64_t twi_example_index(int64_t count, uint64_t seed, bool shuffle, int64_t k)
{
    int64_t position = (int64_t)((uint64_t)k % (uint64_t)count);
    if (!shuffle)
        return position;
    twi_permutation order = twi_epoch_permutation(count, seed, (int64_t)((uint64_t)k / (uint64_t)count));
    return twi_permute(&order, position);
}

#endif
