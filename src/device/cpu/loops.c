/* loops.c - choosing the loops for this CPU, and running them in a team. */
#include "device/cpu/loops.h"

#include <omp.h>
#include <stddef.h>

extern const twi_loops twi_loops_avx512, twi_loops_avx2, twi_loops_baseline;

/* Fastest first. */
static const twi_loops *const from_avx512[] = {
#ifdef __x86_64__
    &twi_loops_avx512, &twi_loops_avx2,
#endif
    &twi_loops_baseline, NULL,
};

const twi_loops *const *twi_loops_usable(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return from_avx512;
    return __builtin_cpu_supports("avx2") ? from_avx512 + 1 : from_avx512 + 2;
#else
    return from_avx512;
#endif
}

const twi_loops *twi_loops_best(void)
{
    return twi_loops_usable()[0];
}

void twi_team_run(int threads, twi_range *range, const void *job, int64_t count)
{
    if (threads < 2 || count < 2) {
        range(job, 0, count, 0);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
        range(job, count * thread / team, count * (thread + 1) / team, (int)thread);
    }
}
