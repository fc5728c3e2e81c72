/* training.h - the job that the options of `tower train` describe: for that command, and for those that explain what it
 * would do. */
#ifndef CLI_TRAINING_H
#define CLI_TRAINING_H

#include "asynchronous.h"
#include "cluster.h"
#include "job.h"
#include "pace.h"
#include "recipe.h"
#include "reduction.h"
#include "rule.h"
#include "update.h"

#include <limits.h>
#include <pthread.h>

enum { MOST_DEVICES = 256, MOST_TOWERS = 1024 };

typedef struct train_settings {
    job job;
    recipe recipe;
    rule rule;
    reduction reduction;
    update update;
    asynchronous asynchronous;
    cluster cluster;
    int64_t max_steps, batch_size, global_batch_size, towers, num_gpus, seed;
    int64_t eval_every, early_stopping, keep, keep_every, check_replicas;
    int64_t save_every, log_every, summary_every, steps_per_execution, input_threads, soft_budget;
    int64_t unused_number; /* of flags that are taken and not needed */
    int unused_choice;
    const char *devices, *trace, *disable, *tower_shares, *learning_rate, *config, *on_divergence;
    int soft_placement, dtype, input; /* ORDER INPUT_PLACE */
    int eval_data; /* as in --eval-data's choices */
    int progress;  /* ORDER PROGRESS */
    bool log_device_placement, resume, accept_other_bits, keep_best;
} train_settings;

/* Its table; the first row is MODEL. Another command's may lead on to what follows that (option.more) if its settings
 * begin with train_settings. */
extern const option train_options[];

/* The row of who plans for tasks that are not started; it goes before that table. */
#define PLAN_TASKS_OPTION(settings)                                                                                    \
    {                                                                                                                  \
        "tasks", "N", OPTION_NUMBER, offsetof(settings, train.job.plan_tasks),                                         \
            "plan for so many tasks as 'tower launch' or mpirun would start, each with the devices that the options "  \
            "give this one; none is started. Without it for those that were started together, or this process alone",  \
            .least = 1, .most = 1024, .also = "n|np"                                                                   \
    }

/* Where towers go, as names for the trainer; it puts tower i on number i modulo count. Count 0: it chooses. */
typedef struct tower_devices {
    char text[4096];
    const char *names[MOST_DEVICES];
    int count;
} tower_devices;

/* The job, with all that its options refer to; not to be copied. */
typedef struct training {
    train_settings settings; /* all filled in */
    char data_dir[PATH_MAX], own_train_dir[64], order_log[PATH_MAX];
    tw_devices *devices;
    tw_dataset *data;
    pthread_t hashing; /* of the data: it takes as long as planning, beside which it goes on */
    bool hashes;
    tower_devices where;
    int shares[MOST_TOWERS];
    tw_model model;
    tw_average_options average;
    tw_trainer_options options;
} training;

/* Opens devices and, unless the job is only to be planned, its data. Complains in the name of `command`; returns the
 * exit code, and only with EXIT_DONE there is something to be closed. */
enum { TRAINING_WITH_DATA, TRAINING_WITHOUT_DATA };
int training_open(const char *command, const train_settings *given, int with_data, training *training);
void training_close(training *training);

/* What the options say of placement, rewrites and traces. */
tw_session_options training_session_options(const train_settings *settings);

/* Whether --disable names a rewrite, by itself or with all others. */
bool leaves_out(const char *list, const char *rewrite);

#endif
