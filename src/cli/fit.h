/* fit.h - whether a training job fits into the memory of its devices, by its plan alone. */
#ifndef CLI_FIT_H
#define CLI_FIT_H

#include <tower/explain.h>
#include <tower/trainer.h>

/* Bytes of a device that a job may hold: its own limit, or on devices that towers run on `limit` if that is less; 0: no
 * end. */
int64_t fit_limit(const tw_device_memory *device, const tw_trainer *trainer, int64_t limit);

/* The most examples for each tower with which all of the job fits, found from plans; 0: not even one does, -1: there is
 * no limit that more examples would reach. `limit` as above. */
tw_status fit_largest_batch(const tw_trainer_options *job, int64_t limit, int64_t *batch, tw_error *error);

#endif
