/* run_file.h - run.json, by which a train directory says what it is: the model, the data set with its files and their
 * digest, the options as given and as decided, devices, processor, seed, and each session of training. What reads a
 * directory needs nothing else. */
#ifndef CLI_RUN_FILE_H
#define CLI_RUN_FILE_H

#include "options.h"

#include <limits.h>
#include <tower/data.h>
#include <tower/trainer.h>

struct cJSON;

#define RUN_FILE "run.json"

/* What `tower train` puts there. */
typedef struct run_facts {
    const char *directory; /* the train directory */
    const option *options; /* the table, */
    const void *settings;  /* and what was given */
    const tw_model *model;
    const tw_dataset *dataset;
    const tw_devices *devices;
    tw_trainer *trainer;
    const char *data_dir; /* "" for data without files */
    const char *reduction, *updates;
    const struct cJSON *before; /* the file that was there; NULL: none */
} run_facts;

/* Writes it beside and renames. Complains and returns false if it cannot be written. */
bool run_file_write(const char *command, const run_facts *facts);

/* Deletes what processes that were killed while they wrote it left behind; for who has the directory's lock. */
void run_file_tidy(const char *directory);

/* The file of a train directory; NULL if there is none, or, with a complaint, if it cannot be read. Yours:
 * cJSON_Delete(). */
struct cJSON *run_file_read(const char *command, const char *directory, bool *bad);

/* The train directory of a path that is one, or a checkpoint in one. */
char *run_file_directory(const char *path, char directory[PATH_MAX]);

/* The options that a run was given, as presets, but for those named ("batch-size|compat"; NULL: all). */
bool run_file_presets(const struct cJSON *run, const char *directory, const char *except, presets *presets);

/* The same for a command that looks at a trained network, named by `what`: a train directory or a checkpoint in one, or
 * a model, whose train directory is `train_dir` or MODEL_train. Adds "train-dir", "model" and what else is known from
 * run.json or the checkpoint. Complains and returns false if something cannot be read. */
bool run_file_presets_of(const char *command, const char *what, const char *train_dir, presets *presets);

/* The threads of its CPU devices, which a run that goes on keeps on any number of cores: its bits depend on them. */
bool run_file_team(const struct cJSON *run, const char *directory, presets *presets);

/* The text that a checkpoint (of a path, or the latest of a directory) has under a key; false: it has none. */
bool checkpoint_text(const char *path, const char *key, char *text, size_t size);

#endif
