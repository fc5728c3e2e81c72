/* random.c - rows of random numbers: the CPU's streams, at the same places. */
#include "device/state/random.h"

#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"

static tw_status run(const twi_run *r, twi_cuda_distribution distribution)
{
    int64_t n = r->output_operands[0].elements;
    twi_philox start = twi_random_take(r->state, (uint64_t)n * TWI_RANDOM_BLOCKS);
    return TWI_LAUNCH(r, twi_cuda_random(r->stream, distribution, start, n, r->outputs[0]));
}

static tw_status run_uniform(const twi_run *r)
{
    return run(r, TWI_CUDA_UNIFORM);
}

static tw_status run_normal(const twi_run *r)
{
    return run(r, TWI_CUDA_NORMAL);
}

static tw_status run_truncated(const twi_run *r)
{
    return run(r, TWI_CUDA_TRUNCATED);
}

const twi_kernel twi_cuda_random_kernels[] = {
    {"RandomUniform", "cuda", TWI_TYPE(TW_FLOAT32), twi_random_prepare, run_uniform},
    {"RandomStandardNormal", "cuda", TWI_TYPE(TW_FLOAT32), twi_random_prepare, run_normal},
    {"TruncatedNormal", "cuda", TWI_TYPE(TW_FLOAT32), twi_random_prepare, run_truncated},
    {0},
};
