/* trace.h - the table of a plan's latest traced run: when each step ran, and what its time is spent on. */
#ifndef TWI_TRACE_H
#define TWI_TRACE_H

#include "plan/plan.h"

/* Gives the plan its trace, unless it has one: from then on its runs are traced. Not during a run, and before the plan
 * has recorded anything, as recordings have marks in them. */
tw_status twi_trace_open(twi_plan *plan, tw_error *error);

/* What the time of a step is spent on. */
tw_time_kind twi_time_kind_of(const twi_step *step, const twi_node *node);
/* Whether the node writes variables, once for all towers. */
bool twi_is_update(const twi_node *node);
/* Whether the step of a plan that has a trace is one that towers compute. */
bool twi_is_tower_work(const twi_plan *plan, twi_step_id id);

#endif
