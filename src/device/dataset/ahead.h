/* ahead.h - elements made before they are asked for, by threads beside: prefetching, and maps that run in parallel.
 *
 * One thread at a time pulls an element, and several may work on what was pulled; they are given in the order in which
 * they were pulled, so how many threads there are changes no value. An error takes an element's place. */
#ifndef TWI_AHEAD_H
#define TWI_AHEAD_H

#include "device/dataset/dataset.h"

typedef struct twi_ahead twi_ahead;

typedef struct twi_ahead_options {
    twi_iteration *source; /* borrowed */
    int threads;           /* at least 1 */
    int room;              /* elements that are made or being made, at least 1 */
    int num_components;    /* of what is made */
    /* Makes an element of a pulled one, whose tensors it borrows; *end: there is none, and no more. NULL: it stays as
     * it is. */
    tw_status (*work)(void *user, tw_tensor **from, tw_tensor **to, bool *end, tw_error *error);
    void *user;
} twi_ahead_options;

/* Starts the threads. */
tw_status twi_ahead_start(const twi_ahead_options *options, twi_monitor *monitor, twi_ahead **ahead, tw_error *error);
tw_status twi_ahead_next(twi_ahead *ahead, twi_pull *pull, tw_tensor **element);
void twi_ahead_end(twi_ahead *ahead); /* waits for the threads; NULL is fine */

#endif
