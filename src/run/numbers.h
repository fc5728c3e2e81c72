/* numbers.h - looking for the node that makes a NaN or an infinity: what a step takes is looked at before it runs, and
 * what it makes and the variables that it writes behind it. */
#ifndef TWI_NUMBERS_H
#define TWI_NUMBERS_H

#include "plan/plan.h"

/* Runs one step. TW_OUT_OF_RANGE, with a message that has the ranges of what it took, if not all that it made is
 * finite. A loop is looked at from outside. */
tw_status twi_run_checked_step(const twi_plan *plan, twi_step_id id);

#endif
