/* broadcast.h - walking two inputs that broadcast to one output.
 *
 * Neighbouring axes that behave alike are joined, so that most calls are one run of equal shapes, or runs against a
 * single element. A run is the last joined axis: along it either input moves by one or stays. */
#ifndef TWI_BROADCAST_H
#define TWI_BROADCAST_H

#include "device/kernel.h"

typedef struct twi_broadcast {
    int64_t runs, run;                  /* number of runs, elements of one */
    bool x_moves, y_moves;              /* along a run */
    int rank;                           /* of the joined axes before the run */
    int64_t size[TW_MAX_RANK], x_step[TW_MAX_RANK], y_step[TW_MAX_RANK];
} twi_broadcast;

/* The walk of shapes x and y to their broadcast; they are known to fit. */
void twi_broadcast_init(twi_broadcast *b, tw_shape x, tw_shape y, tw_shape out);
/* Where run number `index` begins in x and y, in elements. */
void twi_broadcast_start(const twi_broadcast *b, int64_t index, int64_t *x, int64_t *y);

#endif
