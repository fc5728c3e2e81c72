/* recording.h - segments of a plan that devices record and replay as one, so that a step costs the host one call where
 * it cost hundreds, and what needs nothing of each other is done side by side. */
#ifndef TWI_RECORDING_H
#define TWI_RECORDING_H

#include "plan/plan.h"

/* Records what segments of a bound plan have no recording yet. Not during a run, and not before the first one. If one
 * cannot be recorded a warning says why, and it goes on step by step. */
void twi_record(twi_plan *plan);

/* Strings or variants of two outputs: each owns its own. */
tw_status twi_copy_bytes_owned(tw_dtype dtype, const void *from, void *to, size_t bytes, tw_error *error);
/* Runs one step, if it does anything: a kernel, a copy or a loop. */
tw_status twi_run_step(const twi_step *step);
/* With marks before and behind it, if its device tells when it did what. */
tw_status twi_run_marked_step(const twi_plan *plan, twi_step_id id);

#endif
