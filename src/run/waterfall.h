/* waterfall.h - where the wall time of a traced run went. */
#ifndef TWI_WATERFALL_H
#define TWI_WATERFALL_H

#include "plan/plan.h"

/* See tw_session_waterfall() and tw_session_delay(). The plan has a trace. */
void twi_waterfall(const twi_plan *plan, const char *const *tower_devices, int count, tw_waterfall *waterfall);
tw_status twi_delay(twi_plan *plan, const tw_delay *delay, tw_error *error);

#endif
