/* loops.c - choosing the loops for this CPU. */
#include "device/cpu/vector/loops.h"

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

void twi_sum_columns(int threads, twi_form form, const void *dy, int64_t rows, int64_t channels, float *sums,
                     twi_form out_form, void *out)
{
    twi_rows_job job = {.form = form, .rows = rows, .channels = channels, .x = dy, .sums = sums};
    int64_t chunks = twi_row_chunks(rows);
    twi_team_run(rows * channels > TWI_CHUNK ? threads : 1, twi_loops_best()->sum_rows, &job, chunks);
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0;
        for (int64_t k = 0; k < chunks; k++)
            sum += sums[k * channels + c];
        if (out_form == TWI_BFLOATS)
            ((uint16_t *)out)[c] = tw_float_to_bfloat16((float)sum);
        else
            ((float *)out)[c] = (float)sum;
    }
}
