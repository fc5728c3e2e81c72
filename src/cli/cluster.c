/* cluster.c - see cluster.h. Whoever starts the tasks numbers them; of W workers and P servers the numbers 0 to W-1 are
 * the workers, and those behind them the servers. */
#include "cluster.h"

#include "command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ORDER JOB */
enum { WORKER, PS };
static const char *const jobs[] = {"worker", "ps"};

static int count_hosts(const char *list)
{
    int count = list != NULL;
    for (const char *at = list; at && (at = strchr(at, ',')); at++)
        count++;
    return count;
}

int cluster_servers(const cluster *c)
{
    return count_hosts(c->ps_hosts);
}

bool cluster_check(const char *command, const cluster *c, const tw_devices *devices)
{
    int tasks = tw_devices_tasks(devices), task = tw_devices_task(devices);
    int servers = count_hosts(c->ps_hosts), workers = count_hosts(c->worker_hosts);
    if (workers && workers + servers != tasks)
        return complain(command,
                        "--worker-hosts and --ps-hosts name %d task%s, and %d %s started: 'tower launch --tasks "
                        "%d' or 'mpirun -n %d' before the command starts as many",
                        workers + servers, workers + servers == 1 ? "" : "s", tasks, tasks == 1 ? "was" : "were",
                        workers + servers, workers + servers);
    int first = tasks - servers, job = task < first ? WORKER : PS;
    int index = job == WORKER ? task : task - first;
    if ((c->job < 0 || c->job == job) && (c->task_index == NOT_GIVEN || c->task_index == index))
        return true;
    return complain(command, "--job-name and --task-index: this is task %d of job %s, because it was started as number %d of "
                             "%d and workers come first; 'tower launch' and mpirun number the tasks, so leave them out or "
                             "start them in this order", index, jobs[job], task, tasks);
}

/* Tasks that nodes are for: 3 of "/job:ps/task:2". */
static int count_named(const tw_graph *graph, const char *job)
{
    int count = 0;
    for (int i = 0; i < tw_graph_num_nodes(graph); i++) {
        const char *device = tw_node_device(tw_graph_node(graph, i)), *task = strstr(device, "task:");
        if (!tw_device_in_job(device, job))
            continue;
        int number = task ? atoi(task + strlen("task:")) : 0;
        count = number < count ? count : number + 1;
    }
    return count;
}

void cluster_advise(const char *command, const cluster *c, const tw_graph *graph, const tw_devices *devices)
{
    char servers_too[96] = "";
    int started = tw_devices_tasks(devices);
    int workers = count_named(graph, jobs[WORKER]), servers = count_named(graph, jobs[PS]);
    int wanted = servers + (workers ? workers : 1);
    if (tw_devices_task(devices) != 0 || (wanted <= started && servers <= cluster_servers(c)))
        return;
    if (servers)
        snprintf(servers_too, sizeof servers_too, ", and --ps-hosts with %d name%s makes the last of them the job ps",
                 servers, servers == 1 ? "" : "s");
    complain(command,
             "the graph has nodes for %d task%s of job worker and %d of job ps, and %d task%s started: 'tower launch "
             "--tasks %d' or 'mpirun -n %d' before the command starts as many%s",
             wanted - servers, wanted - servers == 1 ? "" : "s", servers, started, started == 1 ? " was" : "s were",
             wanted, wanted, servers_too);
}
