/* messages.h - what crosses between tasks while a plan runs.
 *
 * Every task walks the lists of all devices. In those of its own it does what they say; in those of another's it sends
 * what they need of it, when it is there. So messages of two tasks for one device come in the order of that device's
 * list, and nothing is looked up. Who may write over what another task reads waits until that is sent, which is known
 * here, and not for word that it has come. What a branch would give is sent whether it was taken or not: its readers do
 * not look then. Runs of different lanes overlap: each lane has a channel for each device, and one for what is
 * fetched. */
#ifndef TWI_MESSAGES_H
#define TWI_MESSAGES_H

#include "plan/plan.h"

/* For a step of another task's device: sends what it needs from here, if it needs anything. What it waits for here is
 * done. */
tw_status twi_send_for(const twi_plan *plan, twi_step_id id);
/* For a step of a device of this task: waits for what it needs from others. *done: that was all there was to do. */
tw_status twi_receive_for(const twi_plan *plan, twi_step_id id, bool *done);
/* A value of one task's device goes to where it is wanted on another task's. Every task calls it, in the same order in
 * a lane; those that are neither have nothing to do. */
tw_status twi_move_value(int lane, twi_device *to_device, void *to, twi_device *from_device, const void *from,
                         tw_dtype dtype, size_t bytes, const char *what, tw_error *error);
/* The bytes at `memory` of a device become those of all tasks in `host`, beside what other lanes do. */
tw_status twi_share_value(int lane, twi_device *device, const void *memory, void *host, size_t bytes, const char *what,
                          tw_error *error);
/* Whether no more than the plan's lane ends where a run has ended with that status: when there is no more. */
bool twi_ends_lane(const twi_plan *plan, tw_status status);
/* All tasks' runs of the lane end with that status, this and those to come, if they have to do with other tasks. */
void twi_end_lane(const twi_device *any, int lane, tw_status status, const char *why);
/* The same of the plan's lane, and of those of its loops: who waits there waits for the run, too. */
void twi_end_run(const twi_plan *plan, tw_status status, const char *why);
/* Every task calls it with what its run of a plan that `ends` has ended with: it is TW_OK on all or on none, and where
 * there was no more the lane's next run begins anew. */
tw_status twi_end_together(const twi_plan *plan, tw_status status, tw_error *error);
/* Whether runs of the lane have to do with other tasks. */
bool twi_is_among_tasks(const twi_device *device, int lane);
/* The shape of what a kernel of the device has made becomes known to all tasks. */
tw_status twi_share_shape(int lane, twi_device *device, tw_shape *shape, const char *what, tw_error *error);
/* The same of values of any type; strings that `into` has are let go. */
tw_status twi_share_tensor(int lane, twi_device *device, const void *memory, tw_tensor *into, const char *what,
                           tw_error *error);
/* The same to some tasks only; the elements on others are whatever they were. Strings and lists go to all. */
tw_status twi_give_tensor(int lane, twi_device *device, const void *memory, tw_tensor *into, tw_receivers to,
                          const char *what, tw_error *error);

#endif
