/* dispatcher.h - the threads that run plans: one a device, each walking its own list, meeting at progress counters.
 *
 * A step that needs something from another device waits until that device's counter has passed the step that makes it.
 * Nothing else is shared while a plan runs. A failing step stops all lists; the first failure is the run's. */
#ifndef TWI_DISPATCHER_H
#define TWI_DISPATCHER_H

#include "plan/plan.h"

typedef struct twi_dispatchers twi_dispatchers;

/* Starts a thread for each device of the set. */
tw_status twi_dispatchers_create(tw_devices *devices, twi_dispatchers **dispatchers, tw_error *error);
void twi_dispatchers_destroy(twi_dispatchers *dispatchers); /* NULL is fine; joins the threads */

/* Runs a bound plan to its end. One call at a time. With `trace` the steps' times are kept. */
tw_status twi_dispatchers_run(twi_dispatchers *dispatchers, twi_plan *plan, bool trace, tw_error *error);

#endif
