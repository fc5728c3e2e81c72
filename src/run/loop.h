/* loop.h - a step that runs a plan of its own again and again: values go in, go round while there is another round, and
 * come out.
 *
 * Where all of a round is on one device, the thread whose step it is walks its list there and then; else the loop has
 * dispatchers of its own, which meet after each round. Where these devices are several tasks', each task runs the
 * rounds, as it runs a plan: what goes in, round and out is sent where it is needed, and whether there is another round
 * to all. Nothing is allocated but strings. A loop looks at its run's `ending` after each round. */
#ifndef TWI_LOOP_H
#define TWI_LOOP_H

#include "plan/plan.h"

/* Before the first run of the plan that has the loops, whose runs end early by that. */
tw_status twi_loops_prepare(twi_plan *plan, const atomic_bool *ending, tw_error *error);

/* Of a loop that spans tasks: all of them learn whether it is run, for its branch is taken; then each runs it, those
 * that have not its step too. */
tw_status twi_loop_agree(const twi_step *step, bool *taken);
tw_status twi_loop_run(const twi_step *step);

/* Runs steps[0] to steps[steps->beside - 1] by the device's team, each as twi_run_step() does. *failed: the first that
 * did, whose error is the list's then. */
tw_status twi_loops_run_beside(const twi_step *steps, const twi_step **failed);

#endif
