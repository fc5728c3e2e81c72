/* comm.c - see comm.h: the ways to be started.
 * Never here:  what is made of sending and receiving (agree.c). */
#include "comm/comm.h"

#include "base/cores.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEADLINE = 30 }; /* seconds */

static const twi_comm_way *const ways[] = {&twi_comm_local};

static tw_status find_deadline(double *deadline, tw_error *error)
{
    const char *text = getenv("TOWER_DEADLINE");
    char *end;
    *deadline = DEADLINE;
    if (!text || !text[0])
        return TW_OK;
    *deadline = strtod(text, &end);
    if (!*end && *deadline >= 1 && *deadline <= 1e6)
        return TW_OK;
    return twi_fail(error, TW_INVALID_ARGUMENT, "TOWER_DEADLINE: expected seconds from 1 to 1e6, found '%.64s'", text);
}

#define PLUGIN "the plug-in libtower_mpi.so"

/* Variables in which launchers say how many processes they have started and which this is, and what serves those. */
static const struct {
    const char *count, *number, *launcher, *advice;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI's mpirun",
     PLUGIN ", built with Open MPI's development files"},
    {"PMI_SIZE", "PMI_RANK", "MPICH's mpirun", PLUGIN ", built with MPICH's development files"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun",
     "--mpi=pmix or --mpi=pmi2, as 'srun --mpi=list' names them, and " PLUGIN},
};

int twi_comm_started(int *tasks)
{
    const char *at = getenv("TOWER_TASK_SOCKETS");
    int task = twi_number_in("TOWER_TASK");
    for (*tasks = at != NULL; at && (at = strchr(at, ',')); at++)
        ++*tasks;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers && *tasks < 1; i++) {
        *tasks = twi_number_in(launchers[i].count);
        task = twi_number_in(launchers[i].number);
    }
    if (task >= 0 && task < *tasks)
        return task;
    *tasks = 1;
    return 0;
}

/* What there is instead of the plug-in that is needed. */
static void say_found(const twi_comm_way *const *more, const char *refused, char *text, size_t size)
{
    int used = snprintf(text, size, "%s", *more ? "found is one for " : refused[0] ? refused : "none was found");
    for (int i = 0; more[i] && used < (int)size; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%s", i ? " and " : "", more[i]->name);
}

static tw_status check_alone(const twi_comm_way *const *more, const char *refused, tw_error *error)
{
    char found[600];
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (twi_number_in(launchers[i].count) <= 1)
            continue;
        say_found(more, refused, found, sizeof found);
        return twi_fail(error, TW_FAILED_PRECONDITION,
                        "%s has started %d processes, which would not know of each other: they need %s; %s",
                        launchers[i].launcher, twi_number_in(launchers[i].count), launchers[i].advice, found);
    }
    return TW_OK;
}

/* A library of another MPI than the launcher's knows nothing of the others: each process would train for itself. */
static tw_status check_joined(twi_comm **comm, tw_error *error)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers && (*comm)->tasks == 1; i++) {
        int started = twi_number_in(launchers[i].count);
        if (started <= 1)
            continue;
        twi_comm_close(*comm);
        *comm = NULL;
        return twi_fail(error, TW_FAILED_PRECONDITION,
                        "%s has started %d processes, as %s says, and this one has found no other: the MPI library "
                        "that was opened belongs to another mpirun (TOWER_MPI_LIBRARY says which to open), or the "
                        "variable is left over from another run",
                        launchers[i].launcher, started, launchers[i].count);
    }
    return TW_OK;
}

static const twi_comm_way *find_way(const twi_comm_way *const *more)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i]->is_here())
            return ways[i];
    while (*more && !(*more)->is_here())
        more++;
    return *more;
}

tw_status twi_comm_open(const twi_comm_way *const *more, const char *refused, twi_comm **comm, tw_error *error)
{
    double deadline;
    const twi_comm_way *way = find_way(more);
    *comm = NULL;
    tw_status status = find_deadline(&deadline, error);
    if (status != TW_OK)
        return status;
    status = way ? way->open(deadline, comm, error) : check_alone(more, refused, error);
    if (*comm && way != &twi_comm_local)
        status = check_joined(comm, error);
    if (*comm) {
        (*comm)->cores = twi_usable_cores();
        (*comm)->awake = &twi_awake_threads;
    }
    return status;
}

void twi_comm_close(twi_comm *c)
{
    if (c)
        c->ops->close(c);
}
