/* trace.h - the table of a plan's latest traced run: when each step ran, and what its time is spent on. */
#ifndef TWI_TRACE_H
#define TWI_TRACE_H

#include "plan/plan.h"

/* Before a run: whether it is to be traced. The first that is gives the plan its trace; but recordings have marks in
 * them, so a plan that has recorded without a trace stays untraced (twi_is_traced). */
tw_status twi_trace_begin(twi_plan *plan, bool wanted, tw_error *error);
bool twi_is_traced(const twi_plan *plan);

/* Of a plan over several tasks: every task gets the times that the others have taken, by the clock of task 0. */
tw_status twi_trace_gather(twi_plan *plan, tw_error *error);

/* What the time of a step is spent on. */
tw_time_kind twi_time_kind_of(const twi_step *step, const twi_node *node);
/* Whether the node writes variables, once for all towers. */
bool twi_is_update(const twi_node *node);
/* Whether the step of a plan that has a trace is one that towers compute. */
bool twi_is_tower_work(const twi_plan *plan, twi_step_id id);

#endif
