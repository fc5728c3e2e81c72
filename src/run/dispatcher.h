/* dispatcher.h - the threads that run plans: one a device, each walking its own list, meeting at progress counters.
 *
 * A step that needs something from another device waits until that device's counter has passed the step that makes it.
 * Nothing else is shared while a plan runs. A failing step stops all lists; the first failure is the run's.
 *
 * One of the lists is walked by the thread that calls, so a plan of one device needs no other. Devices that are bound
 * to cores have threads of their own always. */
#ifndef TWI_DISPATCHER_H
#define TWI_DISPATCHER_H

#include "plan/plan.h"

typedef struct twi_dispatchers twi_dispatchers;

/* For a set of devices; threads start when a plan first wants them, and sleep when they have waited a while.
 * `wake(user)` is called from any thread when a run is to end early, so that kernels that wait look at their run's
 * `ending`. */
tw_status twi_dispatchers_create(tw_devices *devices, void (*wake)(void *user), void *user,
                                 twi_dispatchers **dispatchers, tw_error *error);
void twi_dispatchers_destroy(twi_dispatchers *dispatchers); /* NULL is fine; joins the threads */

/* Starts what threads the plan wants. Before its first run, and not during another. Its kernels that wait look at
 * `ending`; NULL: at what these runs end by. */
const atomic_bool *twi_dispatchers_ending(const twi_dispatchers *dispatchers); /* what these runs end by */
tw_status twi_dispatchers_prepare(twi_dispatchers *dispatchers, twi_plan *plan, const atomic_bool *ending,
                                  tw_error *error);

/* Runs a bound plan to its end, `rounds` times over; *done: how often it got there. The threads do not come back
 * between rounds, and a device with a queue of its own gets them all at once. One call at a time. A plan that has a
 * trace gets the times of the last round's steps. */
tw_status twi_dispatchers_run(twi_dispatchers *dispatchers, twi_plan *plan, int64_t rounds, int64_t *done,
                              tw_error *error);

extern const tw_error twi_cancelled; /* TW_CANCELLED, by the session's owner */
/* The run in progress, if any, ends at its next step, and this and all later ones fail with that error, which stays the
 * caller's and is there as long. Its kernels that wait are the caller's to wake. */
void twi_dispatchers_cancel(twi_dispatchers *dispatchers, const tw_error *why);
/* Between runs: later ones begin again. */
void twi_dispatchers_reopen(twi_dispatchers *dispatchers);

#endif
