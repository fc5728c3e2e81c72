/* delay.h - steps that are held up on purpose, so that tests know where a run's time must be found. */
#ifndef TWI_DELAY_H
#define TWI_DELAY_H

#include "plan/plan.h"

/* See tw_session_delay(). The plan has a trace. */
tw_status twi_delay(twi_plan *plan, const tw_delay *delay, tw_error *error);

#endif
