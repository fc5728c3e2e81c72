/* examples.h - a tower's batch, made where the tower is of a data set that lies there: what a TowerBatch node asks for,
 * read off its attributes.
 *
 * Step s of a training run consists of the examples s * of_step to (s + 1) * of_step - 1 of a stream (stream.h), of
 * which the tower gets `batch` from s * of_step + first: what an input pipeline gives it, to the bit. */
#ifndef TWI_EXAMPLES_H
#define TWI_EXAMPLES_H

#include "stream/distort.h"

#include <tower/tensor.h>

struct twi_attrs;

typedef struct twi_examples {
    twi_distorter distorter;
    uint64_t seed;
    bool shuffle;
    int64_t count; /* images of the data set */
    int64_t of_step, first, batch;
} twi_examples;

/* From the node's attributes and the shape of the images, [count, height, width, channels]. */
tw_status twi_examples_init(twi_examples *examples, const struct twi_attrs *attrs, tw_shape images, tw_error *error);

/* The number in the stream of example i of the batch of a step. */
TWI_ANYWHERE int64_t twi_example_number(const twi_examples *examples, int64_t step, int64_t i)
{
    return (int64_t)((uint64_t)step * (uint64_t)examples->of_step + (uint64_t)(examples->first + i));
}

#endif
