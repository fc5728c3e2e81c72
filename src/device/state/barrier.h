/* barrier.h - tuples whose components come one by one, by key, and are taken when they are whole.
 *
 * A barrier is a resource of the session's. Tuples are taken in the order in which their keys first came, as many as
 * are asked for; who asks for more than there are waits, as at a queue, and lets other runs go on meanwhile. One that
 * is closed takes no new keys, but lets tuples that have begun become whole. */
#ifndef TWI_BARRIER_H
#define TWI_BARRIER_H

#include "device/kernel.h"

typedef struct twi_barrier twi_barrier;

enum { TWI_BARRIER_COMPONENTS = 64 }; /* at most */

/* Makes the resource that barrier, or checks that it is one of these types already. */
tw_status twi_barrier_make(twi_resource *resource, const char *name, const tw_dtype *types, const tw_shape *shapes,
                           int count, tw_error *error);
twi_barrier *twi_barrier_of(const twi_resource *resource); /* NULL if something else is behind the handle */

/* Component number `component` of the tuples with these keys [n]: values [n,...]. */
tw_status twi_barrier_put(twi_barrier *barrier, const twi_run *r, int64_t component, const twi_operand *keys,
                          const tw_string *key, const twi_operand *values, const void *from);
/* Waits for `count` whole tuples, or with `fewer` for what a closed barrier has left, and gives them as the run's
 * outputs: when each came, keys, components. TW_OUT_OF_RANGE when there will never be as many. */
tw_status twi_barrier_take(twi_barrier *barrier, const twi_run *r, int64_t count, bool fewer);
/* TW_CANCELLED if it is closed already. With `cancel` tuples that have begun are given up. */
tw_status twi_barrier_close(twi_barrier *barrier, const twi_run *r, bool cancel);
/* How many tuples are whole, and how many are not. */
int64_t twi_barrier_count(twi_barrier *barrier, bool whole);

#endif
