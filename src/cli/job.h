/* job.h - what `tower train` and `tower eval` have in common: the model, the devices, the data set. */
#ifndef CLI_JOB_H
#define CLI_JOB_H

#include "options.h"

#include <tower/data.h>
#include <tower/device.h>
#include <tower/models.h>

/* The first part of the settings of both commands. */
typedef struct job {
    int model;    /* for tw_model_at() */
    int data_set; /* ORDER DATA_SET */
    const char *data_dir, *train_dir; /* NULL: not given */
    int64_t cpu_devices, cpu_threads, virtual_gpus;
    int format;
} job;

#define MODEL_NAMES "cifar10|resnet20|resnet32|resnet44|resnet56|resnet110|mnist" /* as tw_model_at() counts them */
#define DATA_SET_CHOICES "auto|cifar10|mnist|fashion-mnist|synthetic"

/* Rows for the members of `settings.job`. */
#define MODEL_OPERAND(settings)                                                                                        \
    {                                                                                                                  \
        NULL, "MODEL", OPTION_CHOICE, offsetof(settings, job.model), "the network", .choices = MODEL_NAMES             \
    }
#define DATA_OPTIONS(settings)                                                                                         \
    {"data-dir", "DIR", OPTION_DIRECTORY, offsetof(settings, job.data_dir),                                            \
     "where the data set lies; without it MODEL in $TOWER_DATA_DIR, $XDG_CACHE_HOME/tower or ~/.cache/tower, where "   \
     "'tower data fetch' puts it"},                                                                                    \
        {"data-set",                                                                                                   \
         "NAME",                                                                                                       \
         OPTION_CHOICE,                                                                                                \
         offsetof(settings, job.data_set),                                                                             \
         "which data set that is; auto: what its files say; synthetic: random images, no files at all",                \
         .initial = "auto",                                                                                            \
         .choices = DATA_SET_CHOICES},                                                                                 \
    {                                                                                                                  \
        "train-dir", "DIR", OPTION_DIRECTORY, offsetof(settings, job.train_dir),                                       \
            "where checkpoints and event logs lie; without it MODEL_train"                                             \
    }
#define CPU_DEVICES_OPTION(settings)                                                                                   \
    {                                                                                                                  \
        "cpu-devices", "N", OPTION_NUMBER, offsetof(settings, job.cpu_devices),                                        \
            "CPU devices that divide the cores among them", .initial = "1", .least = 1, .most = 256                    \
    }
#define CPU_THREADS_OPTION(settings)                                                                                   \
    {                                                                                                                  \
        "cpu-threads", "N", OPTION_NUMBER, offsetof(settings, job.cpu_threads),                                        \
            "threads of each CPU device; 0: its share of the cores", .initial = "0", .most = 4096                      \
    }
#define VIRTUAL_GPUS_OPTION(settings)                                                                                  \
    {                                                                                                                  \
        "virtual-gpus", "N", OPTION_NUMBER, offsetof(settings, job.virtual_gpus),                                      \
            "GPUs that run on the CPU with memory of their own; 0: as many as TOWER_VIRTUAL_GPUS says",                \
            .initial = "0", .most = 256                                                                                \
    }

/* The train directory: what was given, or the model's own, which is written to path[size]. */
const char *job_train_dir(const job *job, char *path, size_t size);

/* Reads one half of the data set, its images made to fit the model's. *directory (of PATH_MAX bytes) becomes where it
 * came from. Complains, in the name of `command`, and returns NULL if there is none. Yours: tw_dataset_destroy(). */
tw_dataset *job_load_data(const char *command, const job *job, tw_dataset_split split, char *directory);

/* The devices the job may use; complains and returns NULL if they cannot be opened. Yours: tw_devices_destroy(). */
tw_devices *job_open_devices(const char *command, const job *job);

#endif
