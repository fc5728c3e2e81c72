/* random.h - the stream of random numbers that a node draws from, wherever it runs.
 *
 * It is a resource of the session's, named after the node, counters = {key, low and high half of the Philox counter}.
 * An execution draws where the stream stands and moves it on by TWI_RANDOM_BLOCKS an element, whatever was used, so
 * that every group of outputs knows its place in the stream and any thread can make it. */
#ifndef TWI_RANDOM_H
#define TWI_RANDOM_H

#include "base/philox.h"
#include "device/kernel.h"

#define TWI_RANDOM_BLOCKS 256 /* of Philox, reserved for an element */

enum { TWI_PHILOX = 1, TWI_THREEFRY, TWI_ANY_ALGORITHM }; /* TensorFlow's numbers of algorithms */

/* Finds the stream while a kernel is prepared, which varies then; seeded by attributes seed and seed2 when it is
 * new. */
tw_status twi_random_find(twi_prepare *p, twi_resource **stream);
/* The prepare() of random kernels whose state is the stream alone. */
tw_status twi_random_prepare(twi_prepare *p);
/* Puts the stream, if it has begun, at its beginning. */
void twi_random_restart(twi_resource *stream, uint64_t seed, uint64_t seed2);
/* A generator at the stream's place; the stream itself moves on by `blocks`. */
twi_philox twi_random_take(twi_resource *stream, uint64_t blocks);
/* The generator of ops without a stream: of the two seeds in an input, mixed by one block of Philox. */
twi_philox twi_random_seeded(const twi_run *r, int input);
/* That of those whose inputs 1, 2 and 3 are its key, its counter and the algorithm, which has to be Philox. */
tw_status twi_random_keyed(const twi_run *r, twi_philox *start);

/* For ops whose input 0 is a variable that holds a generator's state, a counter of two words and a key, and whose input
 * 1 is the algorithm: the checks of preparing, and a generator where it stands, which moves on by `blocks`. */
tw_status twi_random_prepare_kept(twi_prepare *p);
tw_status twi_random_kept(const twi_run *r, uint64_t blocks, twi_philox *start);

#endif
