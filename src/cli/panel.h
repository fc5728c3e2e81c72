/* panel.h - how a training goes, at one glance: what the painter draws while `tower train` runs in a terminal.
 * Never here:  what trains; it only tells the panel. */
#ifndef CLI_PANEL_H
#define CLI_PANEL_H

#include <stdbool.h>
#include <stdint.h>
#include <tower/trainer.h>

typedef struct panel panel;

/* What does not change. Borrowed texts. */
typedef struct panel_job {
    const char *model, *data_set;
    const tw_trainer *trainer;
    int64_t first, max_steps, examples, data_examples; /* steps; examples of a step, and of an epoch */
} panel_job;

/* Shows it on standard output. NULL when out of memory. */
panel *panel_open(const panel_job *job);
/* The last picture stays where it is. NULL is fine, as for all that follow. */
void panel_close(panel *panel);

/* So many steps are done; the loss is the latest's. */
void panel_step(panel *panel, int64_t done, float loss, float rate);
/* When each device did what in one step. */
void panel_timeline(panel *panel, const tw_timeline *timeline);
/* Whether it wants to see one: about once a second. */
bool panel_wants_timeline(panel *panel);
/* What an evaluation found, and how long it took: no part of the training's speed. */
void panel_accuracy(panel *panel, int64_t step, double accuracy, double seconds);
void panel_saved(panel *panel, int64_t step);
void panel_stopping(panel *panel);

#endif
