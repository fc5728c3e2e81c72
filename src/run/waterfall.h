/* waterfall.h - where the wall time of a traced run went. */
#ifndef TWI_WATERFALL_H
#define TWI_WATERFALL_H

#include "plan/plan.h"

/* See tw_session_waterfall(). The plans are the parts of one run, in order, and have traces. */
void twi_waterfall(twi_plan *const *parts, int num_parts, const char *const *tower_devices, int count,
                   tw_waterfall *waterfall);

#endif
