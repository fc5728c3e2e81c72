/* rounds.h - a loop whose values change their shape from round to round, or in whose rounds shapes are computed.
 *
 * Each round is a cut of the graph, run as a chain (run/chain.h) in a lane of the loop's own: it is planned for the
 * shapes that come, and behind its borders for the values that shapes depend on. What shapes come again has its plan.
 */
#ifndef TWI_ROUNDS_H
#define TWI_ROUNDS_H

#include "plan/plan.h"

/* Before the first run of the plan that the loop is in, whose runs end early by that. */
tw_status twi_rounds_prepare(const twi_loop *loop, const atomic_bool *ending, tw_error *error);

/* All rounds of the step's loop. */
tw_status twi_rounds_run(const twi_step *step);

#endif
