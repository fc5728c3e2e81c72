/* random.cu - TensorFlow's random streams: the generator is the CPU's (base/philox.h), its words are so to the bit. */
#include "device/cuda/typed.cuh"

static __device__ void draw(twi_cuda_distribution distribution, twi_philox *p, float drawn[4])
{
    uint32_t words[4];
    twi_philox_next(p, words);
    if (distribution == TWI_CUDA_UNIFORM) {
        for (int i = 0; i < 4; i++)
            drawn[i] = twi_uniform_float(words[i]);
        return;
    }
    twi_normal_pair(words[0], words[1], drawn);
    twi_normal_pair(words[2], words[3], drawn + 2);
}

/* A thread makes a group. Groups of truncated numbers draw until four lie within two standard deviations. */
static __global__ void random_kernel(twi_cuda_distribution distribution, twi_philox start, uint64_t blocks_of_group,
                                     int64_t n, float *y)
{
    EACH(group, (n + 3) / 4)
    {
        twi_philox own = start;
        float values[4], drawn[4];
        twi_philox_skip(&own, (uint64_t)group * blocks_of_group);
        for (int found = 0; found < 4;) {
            draw(distribution, &own, drawn);
            for (int i = 0; i < 4 && found < 4; i++)
                if (distribution != TWI_CUDA_TRUNCATED || fabsf(drawn[i]) < 2)
                    values[found++] = drawn[i];
        }
        for (int i = 0; i < 4 && group * 4 + i < n; i++)
            y[group * 4 + i] = values[i];
    }
}

cudaError_t twi_cuda_random(cudaStream_t stream, twi_cuda_distribution distribution, twi_philox start, int64_t n, float *y)
{
    if (n == 0)
        return cudaSuccess;
    LAUNCH(blocks_for((n + 3) / 4), THREADS, 0, stream, random_kernel)(
        distribution, start, distribution == TWI_CUDA_TRUNCATED ? 256 : 1, n, y);
    return cudaGetLastError();
}
