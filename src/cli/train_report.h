/* train_report.h - what `tower train` shows: a panel or lines for people, JSON, an object a line, for programs; and the
 * file with what a step is made of. */
#ifndef CLI_TRAIN_REPORT_H
#define CLI_TRAIN_REPORT_H

#include "panel.h"

#include <stdbool.h>
#include <tower/models.h>
#include <tower/trainer.h>

/* What the lines speak of. */
typedef struct train_report {
    bool as_json;
    const tw_model *model;
    const tw_dataset *dataset;
    const char *data_dir; /* "" for data without files */
    const char *train_dir;
    struct lock *lock; /* of that directory */
    int64_t max_steps, save_every, keep;
    tw_trainer *trainer;
    tw_devices *devices;
    const char *mode;      /* of update, as it was asked for; NULL: it was not */
    const char *reduction; /* how the mean over towers is made: a spec, or "one device" as it was built */
    bool as_tutorial;     /* the loss is the last tower's; the time, "sec/batch", a step's divided by the towers */
    bool reads_files;     /* nodes of the graph read the data, in another order in each run */
    const char *updates;  /* synchronous, or how not */
    int64_t examples;     /* a step: over all towers, or asynchronous of one */
    double started, last; /* seconds, monotonic: of the first step; of the line before */
    int64_t first_step;   /* steps done when it began */
    int64_t last_steps;   /* done at the line before */
    bool said_input;      /* that the input holds training back */
    panel *panel;         /* NULL: lines, or nothing */
    bool no_lines;        /* of steps */
    bool step_is_written; /* step.json */
    bool traced;          /* every step is, because somebody asked for it */
    const char *trace;    /* a file that was written; NULL: none */
    int64_t latest;       /* step that was done last */
    bool said_time;       /* how long it will take */
    float loss;           /* of the step before the end */
    double accuracy;      /* of the latest evaluation; below 0: there is none */
    int stopped_by;       /* a signal; 0: none */
    bool stopped_early;
    bool has_best;        /* kept in the folder of that name */
    int64_t saved_step;   /* of the newest checkpoint; -1: none is saved */
    double stale_sum;     /* since the line before, of so many updates: */
    int64_t stale_count, stale_most;
} train_report;

/* The header: what runs where. */
void report_start(train_report *report);

/* What the plan holds and moves; known once a step has run. */
void report_plan(train_report *report);

/* ORDER PROGRESS */
typedef enum progress_kind { PROGRESS_AUTO, PROGRESS_PANEL, PROGRESS_LINES, PROGRESS_NONE } progress_kind;
/* After the header: opens the panel, where that is wanted and can be. */
void report_progress(train_report *report, int kind);

/* Whether the next step is one to be looked at: it is to run alone, between the other two. The last gives what was seen
 * to the panel, and writes step.json once. Of several tasks all look if the first wants it. */
bool report_wants_look(const train_report *report, int64_t done);
void report_begin_look(const train_report *report);
void report_end_look(train_report *report);
/* How many steps may run before one is to be looked at. */
int64_t report_steps_to_look(const train_report *report, int64_t done);

/* Of every step, for the lines of some. */
void report_count(train_report *report, const tw_trainer_step_result *result);

/* The tutorial's line; where its words would mislead, with others: the mean loss, the times of a step and of one
 * tower's batch. The speed is that of the steps since the line before. */
void report_step(train_report *report, const tw_trainer_step_result *result);

/* Says, once, that training waits for its input, when it did so for more than a tenth of the time. */
void report_input(train_report *report);

/* Says, once, how long the steps that are left will take, if that is long. */
void report_time(train_report *report, int64_t done);

/* What an evaluation, which took so long, has found, and the best so far. The time does not count for the speed. */
void report_evaluation(train_report *report, const tw_scores *scores, const tw_dataset *data, double best,
                       int64_t best_step, double seconds);

/* Training diverged, as the message says, and goes back with the report's new trainer, for the count-th time of `most`.
 */
void report_rollback(train_report *report, const char *message, int64_t count, int64_t most);

/* An event for programs that a run failed; people read it on standard error. */
void report_failure(const tw_error *error);

void report_saved(train_report *report, const char *path);
/* What came of it, where it lies, and what to do next. */
void report_end(train_report *report, int64_t steps, int signal); /* signal 0: all steps are done */

#endif
