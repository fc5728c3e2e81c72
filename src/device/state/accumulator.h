/* accumulator.h - gradients that several workers hand in and one takes: their mean or sum, once there are enough.
 *
 * It counts steps. A gradient that was computed for an earlier step than the one it stands at is dropped; taking what
 * was gathered makes it stand at the next. Who takes waits, as at a queue, and lets other runs go on meanwhile. A
 * sparse one gathers rows by their index, and the mean of a row is that of the gradients that had it. */
#ifndef TWI_ACCUMULATOR_H
#define TWI_ACCUMULATOR_H

#include "device/kernel.h"

typedef struct twi_accumulator twi_accumulator;

typedef struct twi_accumulator_options {
    const char *name; /* for messages */
    tw_dtype dtype;   /* float16, float32, float64 */
    tw_shape shape;   /* may be unknown in part; then the first gradient says it */
    bool sparse, mean;
} twi_accumulator_options;

/* Makes the resource that accumulator, or checks that it is one of these options already. */
tw_status twi_accumulator_make(twi_resource *resource, const twi_accumulator_options *options, tw_error *error);
twi_accumulator *twi_accumulator_of(const twi_resource *resource); /* NULL if something else is behind the handle */
const twi_accumulator_options *twi_accumulator_what(const twi_accumulator *accumulator);

/* Rows [n,...] at their indices [n]; of a dense one indices NULL and all of the gradient. */
tw_status twi_accumulator_apply(twi_accumulator *accumulator, const twi_run *r, int64_t step, const int64_t *indices,
                                tw_shape shape, const void *values);
/* Waits until so many have come, and gives them as the run's outputs: the gradient, or indices, values and shape. */
tw_status twi_accumulator_take(twi_accumulator *accumulator, const twi_run *r, int64_t required);
void twi_accumulator_set_step(twi_accumulator *accumulator, int64_t step);
int64_t twi_accumulator_count(twi_accumulator *accumulator); /* gradients since the last were taken */

#endif
