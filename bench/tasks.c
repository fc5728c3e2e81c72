/* tasks.c - what a message between two tasks costs, whoever carries it.
 *
 *     tower launch --tasks 2 -- bench_tasks
 *     TOWER_PLUGIN_PATH=build/src mpirun -n 2 bench_tasks
 *
 * Prints for messages of 4 B to 64 MB the median time of one way, there and back being two, what that is in bytes a
 * second, and the time of an all-reduce of as many bytes of float32 as a tree of two does it: they go there, are added,
 * and the sum comes back. bench_plain_openmpi and bench_plain_mpich (plain_mpi.c) do the same with MPI's own calls, so
 * that a run of each by the same mpirun tells what Tower adds: a look at who is there, and one copy where a message is
 * received. */
#include "comm/comm.h"
#include "device/plugin.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHANNEL = 1, ROUNDS = 401, FEW_ROUNDS = 7, LARGE = 1 << 18, MOST = 64 << 20 };

static tw_error error;

static void check(tw_status status)
{
    if (status == TW_OK)
        return;
    fprintf(stderr, "bench_tasks: %s\n", error.message);
    exit(1);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void go(twi_comm *c, char *data, size_t bytes)
{
    check(c->ops->send(c, 1 - c->task, CHANNEL, data, bytes, &error));
}

static void come(twi_comm *c, char *data, size_t bytes)
{
    check(c->ops->receive(c, 1 - c->task, CHANNEL, data, bytes, "a round", &error));
}

static void reduce(twi_comm *c, float *data, float *other, size_t bytes)
{
    if (c->task == 1) {
        go(c, (char *)data, bytes);
        come(c, (char *)data, bytes);
        return;
    }
    come(c, (char *)other, bytes);
    for (size_t i = 0; i < bytes / sizeof *data; i++)
        data[i] += other[i];
    go(c, (char *)data, bytes);
}

static double median(double *times, int rounds)
{
    qsort(times, (size_t)rounds, sizeof *times, compare);
    return times[rounds / 2];
}

int main(void)
{
    const char *refused;
    twi_comm *c;
    double times[ROUNDS], sums[ROUNDS];
    char *data = calloc(1, MOST), *other = calloc(1, MOST);
    const twi_comm_way *const *ways = twi_plugin_ways(&refused);
    check(twi_comm_open(ways, refused, &c, &error));
    if (!c || c->tasks != 2 || !data || !other) {
        fprintf(stderr, "bench_tasks: expected to be started as two tasks\n");
        return 1;
    }
    for (size_t bytes = 4; bytes <= MOST; bytes *= 4) {
        int rounds = bytes < LARGE ? ROUNDS : FEW_ROUNDS;
        for (int i = 0; i < 2 * rounds; i++) { /* the first half warms up */
            int64_t begin = twi_monotonic_ns();
            char *here = i % 2 ? other : data, *next = i % 2 ? data : other; /* as in plain_mpi.c's "tested" */
            if (c->task == 0)
                go(c, here, bytes);
            come(c, next, bytes);
            if (c->task == 1)
                go(c, next, bytes);
            times[i % rounds] = (double)(twi_monotonic_ns() - begin) / 2e3;
        }
        for (int i = 0; i < 2 * rounds; i++) {
            int64_t begin = twi_monotonic_ns();
            reduce(c, (float *)data, (float *)other, bytes);
            sums[i % rounds] = (double)(twi_monotonic_ns() - begin) / 1e3;
        }
        double way = median(times, rounds), all = median(sums, rounds);
        if (c->task == 0)
            printf("%9zu B %10.2f us %8.2f GB/s, all-reduce %10.1f us\n", bytes, way, (double)bytes / way / 1e3, all);
    }
    twi_comm_close(c);
    free(data);
    free(other);
    return 0;
}
