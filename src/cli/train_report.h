/* train_report.h - what `tower train` prints: as lines for people, or as JSON, an object a line, for programs. */
#ifndef CLI_TRAIN_REPORT_H
#define CLI_TRAIN_REPORT_H

#include <stdbool.h>
#include <tower/models.h>

/* What the lines speak of. */
typedef struct train_report {
    bool as_json;
    const tw_model *model;
    const tw_dataset *dataset;
    const char *data_dir; /* "" for data without files */
    const char *train_dir;
    int64_t max_steps, save_every;
    const tw_trainer *trainer;
    bool tree;            /* the mean over towers is added up in a tree, and not left as built */
    int64_t examples;     /* a step, over all towers */
    double started, last; /* seconds, monotonic: of the first step; of the line before */
    int64_t last_steps;   /* done at the line before */
    bool said_input;      /* that the input holds training back */
} train_report;

/* The header: what runs where. */
void report_start(train_report *report);

/* What the plan holds and moves; known once a step has run. */
void report_plan(train_report *report);

/* The tutorial's line. Its speed is that of the steps since the line before; sec/batch is the time of one tower's
 * batch, which is a step's divided by the number of towers. */
void report_step(train_report *report, const tw_trainer_step_result *result);

/* Says, once, that training waits for its input, when it did so for more than a tenth of the time. */
void report_input(train_report *report);

void report_saved(train_report *report, const char *path);
void report_end(train_report *report, int64_t steps, int signal); /* signal 0: all steps are done */

#endif
