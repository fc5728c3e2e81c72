/* step_file.h - DIRECTORY/step.json: what a step of a run is made of, and when each device did what in one of them. It
 * is what `tower report` draws placement, timeline, waterfall and memory from; docs/step-file.md says what is in it. */
#ifndef CLI_STEP_FILE_H
#define CLI_STEP_FILE_H

#include <tower/trainer.h>

/* `step` is the traced one; timeline NULL: none was, so the file has what is planned alone. */
tw_status step_file_write(const char *directory, tw_trainer *trainer, int64_t step, const tw_timeline *timeline,
                          tw_error *error);

#endif
