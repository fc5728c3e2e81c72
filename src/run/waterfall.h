/* waterfall.h - where the wall time of a traced run went. */
#ifndef TWI_WATERFALL_H
#define TWI_WATERFALL_H

#include "plan/plan.h"

/* See tw_session_waterfall(). The plan has a trace. */
void twi_waterfall(const twi_plan *plan, const char *const *tower_devices, int count, tw_waterfall *waterfall);

#endif
