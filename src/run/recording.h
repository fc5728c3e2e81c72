/* recording.h - stretches of a list that their device records and replays as one, so that a step costs the host one call
 * where it cost hundreds. */
#ifndef TWI_RECORDING_H
#define TWI_RECORDING_H

#include "plan/plan.h"

/* True when the stretch has a recording now. The first time a stretch runs, it runs step by step: libraries load what
 * they need then, which cannot be recorded. The second time it is recorded. If that fails, a warning says so and it goes
 * on step by step. */
bool twi_recorded(twi_list *list, twi_stretch *stretch);

/* Runs one step: a kernel. */
tw_status twi_launch(twi_device *device, const twi_step *step);

#endif
