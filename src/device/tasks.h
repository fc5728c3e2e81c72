/* tasks.h - sets that have the devices of several processes; see tasks.c. */
#ifndef TWI_DEVICE_TASKS_H
#define TWI_DEVICE_TASKS_H

#include "comm/comm.h"
#include "device/device.h"

/* The device of a set of several tasks becomes `task`'s, of which the last `ps_tasks` are the job ps: it gets its name
 * and, if that is not this process, `own` as its table. */
void twi_device_join(twi_device *d, int task, int ps_tasks, twi_device_ops *own);
/* When all of a kind have, which are those from `first` on, `each` of every task: who stands in for another's. */
void twi_devices_stand_in(tw_devices *set, int first, int each);
/* Whether steps can run with the set: not if other tasks are there in plans only. */
tw_status twi_devices_check_tasks(const tw_devices *set, tw_error *error);
/* Every task must have the same devices. */
tw_status twi_devices_compare(const tw_devices *set, tw_error *error);

/* The first device of a task, whose memory all its others can read. */
static inline int twi_host_of(const tw_devices *set, int task)
{
    int device = 0;
    while (set->items[device]->task != task || !set->items[device]->is_host)
        device++;
    return device;
}

/* Whether both are of one process. */
static inline bool twi_same_task(const twi_device *a, const twi_device *b)
{
    return a->task == b->task;
}

#endif
