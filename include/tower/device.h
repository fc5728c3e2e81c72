/* device.h - the devices of this machine and of a session.
 *
 * Names are TensorFlow's: "/job:localhost/replica:0/task:0/device:GPU:0" in full, "/gpu:0" and "/cpu:0" for short.
 * Listing devices allocates nothing on them. */
#ifndef TOWER_DEVICE_H
#define TOWER_DEVICE_H

#include <tower/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_devices tw_devices;

/* Which devices there shall be. Zero values are sensible. */
typedef struct tw_device_options {
    size_t size; /* TW_SIZED(tw_device_options) sets it: see language.h */
    int cpu_devices;         /* CPU devices that divide the usable cores among them; 0: one with all cores */
    int cpu_threads;         /* team of each CPU device; 0: its share of the cores. Part of what decides bits */
    int virtual_gpus;        /* GPUs that run on the CPU with their own memory; 0: environment TOWER_VIRTUAL_GPUS, else none */
    size_t virtual_gpu_memory; /* bytes each virtual GPU has in all; 0: as much as the host gives */
    size_t gpu_memory_limit;   /* the most bytes to take of each GPU; 0: all it has */
    double gpu_memory_fraction; /* the same as a part of what each GPU has, up to 1; 0: all. Not together with a limit */
    bool allow_growth;       /* A session takes of a GPU the buffers that the plan it runs needs, and more when a larger
                                one comes. Otherwise it takes at once what the largest it has prepared needs, and
                                never moves. Neither takes more than that */
    int logical_gpus;        /* divide each real GPU into so many, each with its share of memory and of multiprocessors
                                (as whole groups of eight); 0 or 1: not divided */
    bool tf32;               /* real GPUs may multiply floats rounded to TF32's 10 bits, several times as fast */
    bool fast;               /* real GPUs may take kernels that add in another order in every run */
    bool no_gpus;            /* leave real GPUs alone */
    double collective_timeout; /* seconds that a real GPU waits in a reduction by NCCL for one that does not come; 0: 300 */
    bool tasks;              /* the set has the devices of all tasks (processes) that this one was started with, by
                                `tower launch`: "/job:worker/replica:0/task:1/device:CPU:0". Every task must then do the
                                same with its set and its sessions; there is one such set in a process at a time */
    int ps_tasks;            /* the last so many of these tasks are the job ps, "/job:ps/replica:0/task:0/device:CPU:0",
                                and the others the job worker; each is numbered from 0. At least one is a worker */
    int plan_tasks;          /* the set has the devices of so many tasks, of which this process plays the first:
                                sessions can plan with them, as tw_trainer_options.plan_only does, and run nothing.
                                0: none */
} tw_device_options;

/* Opens devices. Yours: tw_devices_destroy(), after the sessions that use them. options NULL: all zero. */
TW_API tw_status tw_devices_create(const tw_device_options *options, tw_devices **devices, tw_error *error);
TW_API void tw_devices_destroy(tw_devices *devices); /* NULL is fine */

/* Which task this process is, from 0, and how many there are: 0 and 1 unless the options asked for tasks. */
TW_API int tw_devices_task(const tw_devices *devices);
TW_API int tw_devices_tasks(const tw_devices *devices);
/* The same as their launcher says it, before they have joined each other: what `tower launch`, mpirun or srun has made
 * this process. For what one process does for all, and needs no devices. *tasks NULL is fine. */
TW_API int tw_task_started(int *tasks);
/* The bytes that task 0 has become those of all: for what must be decided once. Every task calls it. A task that has
 * ended or hangs is named by the error (TW_ABORTED). */
TW_API tw_status tw_devices_share(tw_devices *devices, void *data, size_t bytes, tw_error *error);
/* Fails on every task with TW_FAILED_PRECONDITION if not all have the same lines of text, and says which one differs:
 * "tasks differ in WHAT: task 1 has 'steps 4', task 0 has 'steps 8'; ...". For what each task is told and all must do
 * alike, since they would wait for each other otherwise. Every task calls it. */
TW_API tw_status tw_devices_agree(tw_devices *devices, const char *lines, const char *what, tw_error *error);
/* Whether this task is to tell a person that text: what all tasks have to say alike, as all refuse the same graph,
 * task 0 says. Each task asks before it speaks, and those behind the first wait for its word for up to a second. True
 * where there is one task, or all has failed; only what one task's own step has failed with that task says, and of the
 * others the first. */
TW_API bool tw_devices_is_to_say(tw_devices *devices, const char *text);
/* What one process is asked for from outside concerns all tasks: `own`, the number of the signal that this one got or
 * 0, goes to the others with its signs of life, once a second; what comes back is what any task has got, this one
 * first. Where there is one task that is `own`. Task 0 should decide by it, and share what it has decided. A step that
 * waits for another task hears of it as well: from then on it waits for one deadline at most, or for twice the longest
 * wait that ended well if that was longer, and all end with TW_DEADLINE_EXCEEDED. Any thread may call it. */
TW_API int tw_devices_asked(tw_devices *devices, int own);

TW_API int tw_devices_count(const tw_devices *devices, const char *type); /* "CPU", "GPU" or NULL for all */

typedef struct tw_device_info {
    size_t size; /* TW_SIZED(tw_device_info) sets it: see language.h */
    const char *name;        /* full; borrowed from the set */
    const char *type;        /* "CPU", "GPU" */
    const char *kind;        /* "cpu", "virtual", "cuda" */
    const char *description; /* for people */
    int threads;
    size_t memory_limit, memory_used, memory_peak; /* bytes; limit 0: none */
    size_t memory_total;     /* bytes it has; 0: not known, or as much as the host gives */
    const char *model;       /* of a real GPU, else "": borrowed from the set, like what follows */
    const char *uuid;        /* "GPU-8a7e...": may stand for the number in names, "gpu:GPU-8a7e..." */
    const char *pci;         /* "0000:1b:00.0": GPUs are numbered by it */
    int multiprocessors;
    int part, parts;         /* it is this part, from 0, of a GPU that is divided into so many; parts 0: a whole one */
    int task;                /* whose device it is, as tw_devices_task() numbers them */
    const char *arithmetic;  /* what it computes with, where another would give other bits: a library's version and
                                instructions; "" where nothing does. Borrowed from the set */
} tw_device_info;

/* Fills in what is known of device i, from 0: CPU devices first. TW_OUT_OF_RANGE beyond the last. */
TW_API tw_status tw_devices_describe(const tw_devices *devices, int i, tw_device_info *info, tw_error *error);
/* The same by value; all empty beyond the last. */
static inline tw_device_info tw_devices_info(const tw_devices *devices, int i)
{
    tw_device_info info = TW_SIZED(tw_device_info);
    info.name = info.type = info.kind = info.description = info.model = info.uuid = info.pci = info.arithmetic = "";
    tw_devices_describe(devices, i, &info, NULL);
    return info;
}

/* Names as placement takes them: "/gpu:0", "cpu:1", "gpu:GPU-8a7e...". The first device of the set that has all that
 * the name gives, as for tw_devices_info(); -1: there is none, or this is no device's name. */
TW_API int tw_devices_find(const tw_devices *devices, const char *name);
/* Whether the name gives that type: "CPU", "GPU"; NULL: whether it is a name of devices at all. */
TW_API bool tw_device_is(const char *name, const char *type);
TW_API bool tw_device_in_job(const char *name, const char *job); /* or that job: "worker", "ps" */

typedef struct tw_link {
    double seconds;          /* that a copy of few bytes takes, until it is there */
    double bytes_per_second; /* of a long one */
    bool direct;             /* not through the host's memory */
} tw_link;

/* Measures copies from device i to device k (numbers as in tw_devices_info), or within one. Takes and gives back up to
 * 64 MiB on either; a fraction of a second. */
TW_API tw_status tw_devices_measure_link(tw_devices *devices, int from, int to, tw_link *link, tw_error *error);

/* What of this machine's processor is to be had, and what its kernels make of it. */
typedef struct tw_processor {
    int online, allowed; /* cores of the machine; of these, what this process may run on (taskset, a cpuset) */
    double quota;        /* cores' worth of time that a control group leaves, as containers have it; 0: any */
    int usable;          /* what CPU devices divide among them */
    const char *loops;   /* the widest vector loops it can run: "avx512", "avx2", "baseline"; valid for ever */
    const char *name;    /* as it calls itself, "AMD EPYC 9654"; "" if that is not known; valid for ever */
} tw_processor;
TW_API tw_processor tw_processor_info(void);

/* A file that was opened as a plug-in with devices, libtower_NAME.so. */
typedef struct tw_plugin {
    const char *path;    /* NULL: there are no more */
    const char *refusal; /* why it cannot be used; NULL: it is in use */
} tw_plugin;
TW_API tw_plugin tw_plugin_at(int i); /* from 0; texts are valid for ever */

/* Why there is no real GPU, in one plain line; "" if there is one. Borrowed, valid for ever. */
TW_API const char *tw_devices_why_no_gpu(void);

/* The version of NCCL, which reduces between real GPUs; it is opened for that, and *about is the library's file. NULL:
 * *about says in one plain line why it cannot be used. Both are borrowed, valid for ever. */
TW_API const char *tw_devices_nccl(const char **about);

/* Whether NCCL can reduce between towers on these devices (names[count], as in placement); the message says why not:
 * each needs a whole card of its own. */
TW_API tw_status tw_devices_check_nccl(const tw_devices *devices, const char *const *names, int count, tw_error *error);

#ifdef __cplusplus
}
#endif
#endif
