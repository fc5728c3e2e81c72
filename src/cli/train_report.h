/* train_report.h - what `tower train` prints: as lines for people, or as JSON, an object a line, for programs. */
#ifndef CLI_TRAIN_REPORT_H
#define CLI_TRAIN_REPORT_H

#include <stdbool.h>
#include <tower/trainer.h>

/* What the lines speak of. */
typedef struct train_report {
    bool as_json;
    const tw_model *model;
    const tw_dataset *dataset;
    const char *data_dir; /* "" for data without files */
    const char *train_dir;
    int64_t max_steps, save_every;
    tw_trainer *trainer;
    const tw_devices *devices;
    const char *reduction; /* how the mean over towers is made: a spec, or "one device" as it was built */
    bool as_tutorial;     /* the loss is the last tower's; the time, "sec/batch", a step's divided by the towers */
    const char *updates;  /* synchronous, or how not */
    int64_t examples;     /* a step: over all towers, or asynchronous of one */
    double started, last; /* seconds, monotonic: of the first step; of the line before */
    int64_t last_steps;   /* done at the line before */
    bool said_input;      /* that the input holds training back */
    double stale_sum;     /* since the line before, of so many updates: */
    int64_t stale_count, stale_most;
} train_report;

/* The header: what runs where. */
void report_start(train_report *report);

/* What the plan holds and moves; known once a step has run. */
void report_plan(train_report *report);

/* Of every step, for the lines of some. */
void report_count(train_report *report, const tw_trainer_step_result *result);

/* The tutorial's line; where its words would mislead, with others: the mean loss, the times of a step and of one tower's
 * batch. The speed is that of the steps since the line before. */
void report_step(train_report *report, const tw_trainer_step_result *result);

/* Says, once, that training waits for its input, when it did so for more than a tenth of the time. */
void report_input(train_report *report);

/* An event for programs that a run failed; people read it on standard error. */
void report_failure(const tw_error *error);

void report_saved(train_report *report, const char *path);
void report_end(train_report *report, int64_t steps, int signal); /* signal 0: all steps are done */

#endif
