/* plain_mpi.c - the rounds of tasks.c with MPI's own calls, and MPI_Allreduce of as many bytes of float32.
 *
 *     mpirun -n 2 bench_plain_openmpi
 *     mpirun.mpich -n 2 bench_plain_mpich */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 41, FEW_ROUNDS = 7, LARGE = 1 << 20, MOST = 64 << 20 };

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

int main(int count, char **words)
{
    int task, tasks;
    double ways[ROUNDS], sums[ROUNDS];
    char *data = calloc(1, MOST), *sum = calloc(1, MOST);
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &task);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    if (tasks != 2 || !data || !sum) {
        fprintf(stderr, "bench_plain: expected to be started as two tasks\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int bytes = 4; bytes <= MOST; bytes *= 4) {
        int rounds = bytes < LARGE ? ROUNDS : FEW_ROUNDS;
        for (int i = 0; i < rounds; i++) {
            double begin = MPI_Wtime();
            if (task == 0)
                MPI_Send(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(data, bytes, MPI_BYTE, 1 - task, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (task == 1)
                MPI_Send(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            ways[i] = (MPI_Wtime() - begin) * 5e5;
        }
        for (int i = 0; i < rounds; i++) {
            double begin = MPI_Wtime();
            MPI_Allreduce(data, sum, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            sums[i] = (MPI_Wtime() - begin) * 1e6;
        }
        double way = median(ways, rounds), all = median(sums, rounds);
        if (task == 0)
            printf("%9d B %10.2f us %8.2f GB/s, all-reduce %10.1f us\n", bytes, way, bytes / way / 1e3, all);
    }
    MPI_Finalize();
    free(data);
    free(sum);
    return 0;
}
