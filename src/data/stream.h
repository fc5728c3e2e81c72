/* stream.h - what example k of a stream is: a pure function of (seed, k).
 * Lives here:  the random numbers of an example, and the permutation of an epoch.
 * Never here:  threads and buffers (pipeline.c), pixels (distort.h). */
#ifndef TWI_STREAM_H
#define TWI_STREAM_H

#include "base/philox.h"

/* Which random numbers; kept in the second word of the Philox counter, where no other user of a seed comes. */
typedef enum twi_stream {
    TWI_STREAM_ORDER = 1,  /* counted by epoch */
    TWI_STREAM_DISTORTION, /* counted by example of the stream */
    TWI_STREAM_SYNTHETIC,  /* counted by image */
} twi_stream;

twi_philox twi_example_random(uint64_t seed, twi_stream stream, uint64_t number);

/* A keyed permutation of 0 to count - 1 in constant memory. */
enum { TWI_PERMUTATION_ROUNDS = 8 };
typedef struct twi_permutation {
    int64_t count;
    int left_bits, right_bits;
    uint32_t keys[TWI_PERMUTATION_ROUNDS];
} twi_permutation;

twi_permutation twi_epoch_permutation(int64_t count, uint64_t seed, int64_t epoch);
int64_t twi_permute(const twi_permutation *permutation, int64_t position);

#endif
