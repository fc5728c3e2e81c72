/* cluster.h - which of the tasks of a run is what, by tf_cnn_benchmarks' flags: options of `tower train` and `tower
 * bench`. */
#ifndef CLI_CLUSTER_H
#define CLI_CLUSTER_H

#include "options.h"

#include <tower/device.h>
#include <tower/graph.h>

typedef struct cluster {
    const char *ps_hosts, *worker_hosts; /* NULL: not given */
    int64_t task_index;
    int job; /* ORDER JOB; -1: not given */
} cluster;

/* Rows for the members of `settings.cluster`. They are of one start: a run goes on with other tasks. */
#define CLUSTER_OPTIONS(settings)                                                                                      \
    {"ps-hosts",                                                                                                       \
     "HOST,...",                                                                                                       \
     OPTION_TEXT,                                                                                                      \
     offsetof(settings, cluster.ps_hosts),                                                                             \
     "so many of the tasks that 'tower launch', mpirun or srun has started, the last ones, are the job ps: they have " \
     "the variables, and no towers. Hosts are counted; where tasks run the launcher says",                             \
     .section = "tasks",                                                                                               \
     .may_be_empty = true, /* which is tf_cnn_benchmarks' default */                                                   \
     .once = true},                                                                                                    \
        {"worker-hosts",                                                                                               \
         "HOST,...",                                                                                                   \
         OPTION_TEXT,                                                                                                  \
         offsetof(settings, cluster.worker_hosts),                                                                     \
         "and so many, the first ones, are the job worker; without it all others",                                     \
         .may_be_empty = true,                                                                                         \
         .once = true},                                                                                                \
        {"job-name",                                                                                                   \
         "JOB",                                                                                                        \
         OPTION_CHOICE,                                                                                                \
         offsetof(settings, cluster.job),                                                                              \
         "the job that this task is expected to be of; without it whichever its launcher's number makes it",           \
         .choices = "worker|ps", /* ORDER JOB */                                                                       \
         .may_be_empty = true,                                                                                         \
         .once = true},                                                                                                \
    {                                                                                                                  \
        "task-index", "N", OPTION_NUMBER, offsetof(settings, cluster.task_index),                                      \
            "the number that it is expected to have in its job, from 0", .most = 1 << 20, .once = true                 \
    }

/* tf_cnn_benchmarks' flags of clusters that are answered with a reason; rows of a list of refusals. */
#define CLUSTER_REFUSALS                                                                                               \
    {"controller-host", "every task plans the whole step and runs its own part: none drives the others"},              \
        {"server-protocol", "the launcher joins the tasks: no server listens, by whatever protocol"},                  \
    {                                                                                                                  \
        "horovod-device", "sums are made where the towers are"                                                         \
    }

/* How many tasks are to be of the job ps. */
int cluster_servers(const cluster *cluster);
/* Whether the tasks of the set are those that were expected; complains in the name of `command`. */
bool cluster_check(const char *command, const cluster *cluster, const tw_devices *devices);
/* Says how the tasks that the graph's nodes name are started, if they were not; the first task does. */
void cluster_advise(const char *command, const cluster *cluster, const tw_graph *graph, const tw_devices *devices);

#endif
