/* plain_mpi.c - the rounds of tasks.c with MPI's own calls, and MPI_Allreduce of as many bytes of float32. "Tested": by
 * MPI_Isend, MPI_Irecv and MPI_Test, as a program must wait that is to notice when nothing comes: MPI_Recv cannot be
 * left. As Tower asks MPI to take calls from several threads, one at a time, so does this, which makes Open MPI's
 * small messages a quarter longer; with the word "single" it does not.
 *
 *     mpirun -n 2 bench_plain_openmpi [single]
 *     mpirun.mpich -n 2 bench_plain_mpich */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 401, FEW_ROUNDS = 7, LARGE = 1 << 18, MOST = 64 << 20 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times, int rounds)
{
    qsort(times, (size_t)rounds, sizeof *times, compare);
    return times[rounds / 2];
}

static void wait_for(MPI_Request *request)
{
    for (int done = 0; !done;)
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
}

/* Two places that take turns: what has come to one is sent on while a receive is open for the other. */
typedef struct places {
    char *here, *next;
    MPI_Request coming; /* to `next` */
} places;

static void send_on(const places *p, int task, int bytes)
{
    MPI_Request going;
    MPI_Isend(p->here, bytes, MPI_BYTE, 1 - task, 0, MPI_COMM_WORLD, &going);
    wait_for(&going);
}

static double tested_round(places *p, int task, int bytes)
{
    double begin = MPI_Wtime();
    if (task == 0)
        send_on(p, task, bytes);
    wait_for(&p->coming);
    char *came = p->next;
    p->next = p->here;
    p->here = came;
    MPI_Irecv(p->next, bytes, MPI_BYTE, 1 - task, 0, MPI_COMM_WORLD, &p->coming);
    if (task == 1)
        send_on(p, task, bytes);
    return (MPI_Wtime() - begin) * 5e5;
}

int main(int count, char **words)
{
    int task, tasks, level;
    bool single = count == 2 && strcmp(words[1], "single") == 0;
    double ways[ROUNDS], tested[ROUNDS], sums[ROUNDS];
    char *data = calloc(1, MOST), *sum = calloc(1, MOST);
    MPI_Init_thread(&count, &words, single ? MPI_THREAD_SINGLE : MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &task);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    if (tasks != 2 || !data || !sum) {
        fprintf(stderr, "bench_plain: expected to be started as two tasks\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int bytes = 4; bytes <= MOST; bytes *= 4) {
        int rounds = bytes < LARGE ? ROUNDS : FEW_ROUNDS;
        for (int i = 0; i < 2 * rounds; i++) { /* the first half warms up */
            double begin = MPI_Wtime();
            if (task == 0)
                MPI_Send(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(data, bytes, MPI_BYTE, 1 - task, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (task == 1)
                MPI_Send(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            ways[i % rounds] = (MPI_Wtime() - begin) * 5e5;
        }
        places places = {data, sum};
        MPI_Irecv(sum, bytes, MPI_BYTE, 1 - task, 0, MPI_COMM_WORLD, &places.coming);
        for (int i = 0; i < 2 * rounds; i++)
            tested[i % rounds] = tested_round(&places, task, bytes);
        MPI_Cancel(&places.coming);
        MPI_Wait(&places.coming, MPI_STATUS_IGNORE);
        for (int i = 0; i < 2 * rounds; i++) {
            double begin = MPI_Wtime();
            MPI_Allreduce(data, sum, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            sums[i % rounds] = (MPI_Wtime() - begin) * 1e6;
        }
        double way = median(ways, rounds), look = median(tested, rounds), all = median(sums, rounds);
        if (task == 0)
            printf("%9d B %10.2f us %8.2f GB/s, tested %10.2f us, all-reduce %10.1f us\n", bytes, way,
                   bytes / way / 1e3, look, all);
    }
    MPI_Finalize();
    free(data);
    free(sum);
    return 0;
}
