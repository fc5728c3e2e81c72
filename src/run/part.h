/* part.h - one plan, run: feeds are written, the dispatchers walk its lists, what is fetched is read. */
#ifndef TWI_PART_H
#define TWI_PART_H

#include "run/lane.h"
#include "run/messages.h"

/* A plan that twi_lane_take() has given its memory; look: for what it is looked at (lane.h); results[plan->num_fetches]
 * as of tw_session_run(), or NULL. to[plan->num_fetches]: which tasks get them; NULL: all. */
tw_status twi_part_run(twi_lane *lane, twi_plan *plan, int64_t steps, unsigned look, const tw_feed *feeds,
                       const tw_receivers *to, tw_tensor **results, int64_t *done, tw_error *error);

#endif
