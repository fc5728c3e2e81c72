/* validation.h - evaluation while training: every so many steps the checkpoint just saved is measured on data that is
 * not trained on; the best one is kept, and training that gets no better can be ended. Training goes on to the same
 * bits. */
#ifndef CLI_VALIDATION_H
#define CLI_VALIDATION_H

#include "train_report.h"
#include "training.h"

typedef struct validation {
    const train_settings *settings;
    const tw_model *model;
    const char *directory;
    tw_devices *devices;
    const char *names[MOST_JOB_DEVICES]; /* of the devices that towers run on */
    int num_names;
    tw_dataset *data; /* NULL: there is none to be looked at */
    double best;      /* the best accuracy so far; below 0: there is none */
    int64_t best_step;
    int worse; /* evaluations since then */
} validation;

/* Loads the data and reads what earlier sessions of the run have found, up to the trainer's step. Complains and returns
 * false if it cannot. Without --eval-every does nothing. */
bool validation_open(const training *t, tw_trainer *trainer, validation *v);
void validation_close(validation *v);
/* Another trainer takes the place of the one before, and may have fewer steps done. */
void validation_follow(validation *v, tw_trainer *trainer);

/* Measures the newest checkpoint of the directory, tells the report, the event log and the directory's eval.jsonl, and
 * keeps it if it is the best. */
tw_status validation_run(validation *v, tw_trainer *trainer, tw_event_writer *events, train_report *report,
                         tw_error *error);

/* Whether it has got no better for as long as --early-stopping says. */
bool validation_says_stop(const validation *v);

#endif
