/* job.h - what commands that run networks have in common: the model, the devices, the data set. */
#ifndef CLI_JOB_H
#define CLI_JOB_H

#include "options.h"

#include <tower/data.h>
#include <tower/device.h>
#include <tower/trainer.h>

/* The first part of their settings. */
typedef struct job {
    int model;    /* for tw_model_at() */
    int data_set; /* ORDER DATA_SET */
    const char *data_dir, *train_dir; /* NULL: not given */
    int64_t hold_back, cpu_devices, cpu_threads, virtual_gpus, logical_gpus, collective_timeout;
    bool tasks;   /* its devices are those of all tasks that it was started with, ... */
    int ps_tasks; /* ... of which so many are the job ps */
    int64_t plan_tasks; /* or those of so many that are planned for; below 1: none */
    bool tf32, fast, verbose;
    int64_t virtual_gpu_memory, gpu_memory_limit, image_memory; /* bytes; not above 0: not given */
    double gpu_memory_fraction;                   /* the same */
    bool allow_growth;
    int format;
} job;

/* "cifar10|resnet|...": the models as tw_model_at() counts them. */
const char *job_model_names(void);
#define DATA_SET_CHOICES "auto|cifar10|mnist|fashion-mnist|synthetic|images"

/* What a real GPU is, or a part of one that is divided: "NVIDIA H200, 139.8 GiB, 132 multiprocessors", and of a logical
 * one which part; "" for all else. */
const char *job_card_text(const tw_devices *devices, const char *device, char *text, size_t size);
/* A line for each real GPU, whole or logical, under a heading that is as wide as `indent`. */
void job_print_cards(const tw_devices *devices, const char *indent);

/* Rows for the members of `settings.job`. */
#define MODEL_OPERAND(settings)                                                                                        \
    {                                                                                                                  \
        NULL, "MODEL", OPTION_CHOICE, offsetof(settings, job.model), "the network", .list_choices = job_model_names    \
    }
#define DATA_OPTIONS(settings)                                                                                         \
    {"data-dir", "DIR", OPTION_DIRECTORY, offsetof(settings, job.data_dir),                                            \
     "where the data set lies; without it MODEL in $TOWER_DATA_DIR, $XDG_CACHE_HOME/tower or ~/.cache/tower, where "   \
     "'tower data fetch' puts it"},                                                                                    \
        {"data-set",                                                                                                   \
         "NAME",                                                                                                       \
         OPTION_CHOICE,                                                                                                \
         offsetof(settings, job.data_set),                                                                             \
         "which data set that is; auto: what its files say; images: your own, in a folder for each class, a "           \
     "labels.csv or images.npy and labels.npy; synthetic: random images, no files at all, which is what trivial, alexnet, "      \
     "vgg16, resnet50 and inception3 take without --data-dir",                                                      \
         .initial = "auto",                                                                                            \
         .choices = DATA_SET_CHOICES},                                                                                 \
        {"hold-back",                                                                                                  \
         "N",                                                                                                          \
         OPTION_NUMBER,                                                                                                \
         offsetof(settings, job.hold_back),                                                                            \
         "leave so many examples at the end of the training half out of training; they are 'validation' to eval",      \
         .initial = "0",                                                                                               \
         .most = 1 << 30},                                                                                             \
        {"image-memory",                                                                                               \
         "BYTES",                                                                                                      \
         OPTION_BYTES,                                                                                                 \
         offsetof(settings, job.image_memory),                                                                         \
         "keep so many bytes of your own pictures once they are decoded, such as 8G, and decode the others each time; "\
         "without it a third of the memory that is left, which tasks share",                                           \
         .least = 1,                                                                                                   \
         .most = INT64_MAX},                                                                                           \
    {                                                                                                                  \
        "train-dir", "DIR", OPTION_DIRECTORY, offsetof(settings, job.train_dir),                                       \
            "where checkpoints and event logs lie; without it MODEL_train", .also = "job-dir|checkpoint-dir",          \
            .once = true                                                                                               \
    }
#define CPU_DEVICES_OPTION(settings)                                                                                   \
    {                                                                                                                  \
        "cpu-devices", "N", OPTION_NUMBER, offsetof(settings, job.cpu_devices),                                        \
            "CPU devices that divide the cores among them", .initial = "1", .least = 1, .most = 256                    \
    }
#define CPU_THREADS_OPTION(settings)                                                                                   \
    {                                                                                                                  \
        "cpu-threads", "N", OPTION_NUMBER, offsetof(settings, job.cpu_threads),                                        \
            "threads of each CPU device; 0: its share of the cores", .initial = "0", .most = 4096,                     \
            .also = "num-intra-threads"                                                                                \
    }
#define VIRTUAL_GPUS_OPTION(settings)                                                                                  \
    {                                                                                                                  \
        "virtual-gpus", "N", OPTION_NUMBER, offsetof(settings, job.virtual_gpus),                                      \
            "GPUs that run on the CPU with memory of their own; 0: as many as TOWER_VIRTUAL_GPUS says",                \
            .initial = "0", .most = 256                                                                                \
    }

#define LOGICAL_GPUS_OPTION(settings)                                                                                  \
    {                                                                                                                  \
        "logical-gpus", "N", OPTION_NUMBER, offsetof(settings, job.logical_gpus),                                      \
            "divide each real GPU into N, each with its share of memory and of multiprocessors; 0: whole ones",        \
            .initial = "0", .most = 16                                                                                 \
    }
#define VERBOSE_OPTION(settings)                                                                                       \
    {                                                                                                                  \
        "verbose", NULL, OPTION_FLAG, offsetof(settings, job.verbose),                                                 \
            "say more on standard error: what soft placement moved, node by node; on real GPUs which of cuDNN's and "  \
            "cuBLASLt's algorithms each node got, timed now or remembered (in $XDG_CACHE_HOME/tower or "               \
            "~/.cache/tower; the environment's TOWER_ALGORITHM_CACHE=off leaves that alone)", .once = true             \
    }
#define COLLECTIVE_TIMEOUT_OPTION(settings)                                                                            \
    {                                                                                                                  \
        "collective-timeout", "SECONDS", OPTION_NUMBER, offsetof(settings, job.collective_timeout),                    \
            "how long a GPU waits in a reduction by NCCL for one that does not come, before the run fails",            \
            .initial = "300", .least = 1, .most = 1000000                                                              \
    }
#define GPU_NUMBERS_OPTIONS(settings)                                                                                  \
    {"tf32", NULL, OPTION_FLAG, offsetof(settings, job.tf32),                                                          \
     "let real GPUs multiply floats rounded to TF32's 10 bits, several times as fast"},                                \
    {                                                                                                                  \
        "fast", NULL, OPTION_FLAG, offsetof(settings, job.fast),                                                       \
            "let real GPUs add in another order in every run: faster kernels, but no two runs agree to the bit"        \
    }
#define GPU_MEMORY_OPTIONS(settings)                                                                                   \
    {"virtual-gpu-memory",                                                                                             \
     "BYTES",                                                                                                          \
     OPTION_BYTES,                                                                                                     \
     offsetof(settings, job.virtual_gpu_memory),                                                                       \
     "memory that each virtual GPU has, such as 512M; without it as much as there is",                                 \
     .least = 1,                                                                                                       \
     .most = INT64_MAX},                                                                                               \
        {"gpu-memory-limit",                                                                                           \
         "BYTES",                                                                                                      \
         OPTION_BYTES,                                                                                                 \
         offsetof(settings, job.gpu_memory_limit),                                                                     \
         "take at most so much of each GPU's memory; a job that needs more says so before it starts",                  \
         .least = 1,                                                                                                   \
         .most = INT64_MAX},                                                                                           \
        {"gpu-memory-fraction",                                                                                        \
         "F",                                                                                                          \
         OPTION_REAL,                                                                                                  \
         offsetof(settings, job.gpu_memory_fraction),                                                                  \
         "the same as a part of what each GPU has: 0.4",                                                               \
         .most = 1,                                                                                                    \
         .positive = true,                                                                                             \
         .also = "per-process-gpu-memory-fraction"},                                                                   \
    {                                                                                                                  \
        "allow-growth", NULL, OPTION_FLAG, offsetof(settings, job.allow_growth),                                       \
            "take buffers on GPUs when a plan first needs them; without it, at once what the largest needs"            \
    }

/* The train directory: what was given, or the model's own, which is written to path[size]. */
const char *job_train_dir(const job *job, char *path, size_t size);

/* Reads one half of the data set, its images made to fit the model's. *directory (of PATH_MAX bytes) becomes where it
 * came from. Complains, in the name of `command`, and returns NULL if there is none. Yours: tw_dataset_destroy(). */
tw_dataset *job_load_data(const char *command, const job *job, tw_dataset_split split, char *directory);

/* Of the images a model is given, before they are cropped: as CIFAR-10 and MNIST have them, or as large as it takes. */
int job_image_side(const tw_model *model);

/* As many classes as images of one's own have, where --num-classes does not say (*num_classes is NOT_GIVEN). */
void job_count_classes(const tw_dataset *data, int64_t *num_classes);

/* As large as that, from no file: what a plan needs of it. */
tw_dataset *job_data_sizes(const char *command, const job *job);

/* All GPUs, or where there is none all CPU devices; names are the devices'. Returns how many. */
enum { MOST_JOB_DEVICES = 256 };
int job_all_devices(const tw_devices *devices, const char *names[MOST_JOB_DEVICES]);

/* Where --tasks may say for how many tasks to plan, and does not: for those that were started together. */
void job_plan_for_started(job *job);
/* The devices the job may use; complains and returns NULL if they cannot be opened. Yours: tw_devices_destroy(). */
tw_devices *job_open_devices(const char *command, const job *job);
/* The same, with the exit code if it is NULL: of several tasks another may be lost by now. What all complain of alike
 * then one says. Yours: job_close_tasks(). */
tw_devices *job_open_tasks(const char *command, const job *job, int *code);
void job_close_tasks(tw_devices *devices);
/* The exit code if not all tasks have the same command, network and options, but for those of devices and of tasks,
 * and for where data lie. Who plans otherwise is told so when plans are compared, but who saves or stops at another
 * step would let all wait. */
int job_options_agree(const char *command, const option *table, const void *settings, tw_devices *devices);
/* Of several tasks the first alone prints: the others' standard output goes nowhere from here on. */
bool job_leave_printing(const char *command, const tw_devices *devices);

#endif
