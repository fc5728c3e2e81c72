/* indices.h - integer inputs that say places: checked as a whole before any of them is followed. */
#ifndef TWI_CPU_INDICES_H
#define TWI_CPU_INDICES_H

#include "device/kernel.h"

/* All numbers of an input lie in [0, limit); the message says which one does not, and where it stands. */
tw_status twi_indices_check(const twi_run *r, int input, int64_t limit);

/* Indices [count..., depth]: each row of `depth` numbers says a place along the first axes of an array, where a slice
 * of the others begins. */
typedef struct twi_places {
    int64_t count, slice; /* rows; elements of one slice */
    int depth;
    int64_t strides[TW_MAX_RANK]; /* of the array */
    bool ignores;                 /* rows that are no places stay; then the array's axes are */
    tw_shape array;
} twi_places;

tw_status twi_places_check(const twi_run *r, int input, tw_shape array, twi_places *places);
/* The prepare() of ops that TensorFlow's bad_indices_policy tells what to do with rows that are no places. */
tw_status twi_places_prepare(twi_prepare *p);
/* twi_places_check() for those: with the policy IGNORE, which is the state, such rows pass. */
tw_status twi_places_check_by_policy(const twi_run *r, int input, tw_shape array, twi_places *places);
/* Where the slice of a row begins, in elements; the row has been checked. -1: it is to be ignored. */
int64_t twi_places_offset(const twi_run *r, int input, const twi_places *places, int64_t row);

#endif
