/* random.cu - TensorFlow's random streams: the generator is base/philox.h's, its words are the CPU's to the bit. What
 * logarithm, sine and cosine make of them may differ in the last place. */
#include "device/cuda/typed.cuh"

typedef struct philox {
    uint32_t counter[4], key[2];
} philox;

static __device__ void skip(philox *p, uint64_t blocks)
{
    uint64_t low = p->counter[0] | (uint64_t)p->counter[1] << 32;
    uint64_t high = p->counter[2] | (uint64_t)p->counter[3] << 32;
    low += blocks;
    high += low < blocks;
    p->counter[0] = (uint32_t)low;
    p->counter[1] = (uint32_t)(low >> 32);
    p->counter[2] = (uint32_t)high;
    p->counter[3] = (uint32_t)(high >> 32);
}

static __device__ void next(philox *p, uint32_t words[4])
{
    uint32_t c0 = p->counter[0], c1 = p->counter[1], c2 = p->counter[2], c3 = p->counter[3];
    uint32_t k0 = p->key[0], k1 = p->key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
    skip(p, 1);
}

static __device__ float uniform(uint32_t word)
{
    return __uint_as_float((word & 0x7fffffu) | 127u << 23) - 1.0f;
}

/* Box-Muller; see twi_normal_pair(). */
static __device__ void normal_pair(uint32_t a, uint32_t b, float out[2])
{
    float u = fmaxf(uniform(a), 1e-7f);
    float angle = (float)(2 * 3.14159265358979323846 * uniform(b)), radius = sqrtf(-2.0f * logf(u));
    out[0] = sinf(angle) * radius;
    out[1] = cosf(angle) * radius;
}

static __device__ void draw(twi_cuda_distribution distribution, philox *p, float drawn[4])
{
    uint32_t words[4];
    next(p, words);
    if (distribution == TWI_CUDA_UNIFORM) {
        for (int i = 0; i < 4; i++)
            drawn[i] = uniform(words[i]);
        return;
    }
    normal_pair(words[0], words[1], drawn);
    normal_pair(words[2], words[3], drawn + 2);
}

/* A thread makes a group. Groups of truncated numbers draw until four lie within two standard deviations. */
static __global__ void random_kernel(twi_cuda_distribution distribution, philox start, uint64_t blocks_of_group,
                                     int64_t n, float *y)
{
    EACH(group, (n + 3) / 4)
    {
        philox own = start;
        float values[4], drawn[4];
        skip(&own, (uint64_t)group * blocks_of_group);
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

cudaError_t twi_cuda_random(cudaStream_t stream, twi_cuda_distribution distribution, const uint32_t key[2],
                            const uint32_t counter[4], int64_t n, float *y)
{
    philox start = {{counter[0], counter[1], counter[2], counter[3]}, {key[0], key[1]}};
    if (n == 0)
        return cudaSuccess;
    LAUNCH(blocks_for((n + 3) / 4), THREADS, 0, stream, random_kernel)(
        distribution, start, distribution == TWI_CUDA_TRUNCATED ? 256 : 1, n, y);
    return cudaGetLastError();
}
