/* moments.cuh - means and sums of squares of what there is of a quad of channels, merged without losing digits however
 * large the means are, and as parts of all rows that another launch merges: batch_norm.cu's, or a convolution's. */
#ifndef TWI_CUDA_MOMENTS_CUH
#define TWI_CUDA_MOMENTS_CUH

#include "device/cuda/images.cuh"

/* How many values there are in each channel of a quad, their means, and sums of squares of what they differ from it. */
struct moments {
    float mean[QUAD], squares[QUAD], count;
};

/* Moments, or sums, of a part; how many rows a part has is known. */
struct part {
    vector<float, QUAD> first, second;
};

static __device__ __forceinline__ void merge(moments *a, const moments &b)
{
    float count = a->count + b.count, inverse = count == 0 ? 0 : __fdividef(1, count);
    float own = a->count * inverse, others = b.count * inverse, weight = a->count * b.count * inverse;
    for (int k = 0; k < QUAD; k++) {
        float apart = b.mean[k] - a->mean[k];
        a->mean[k] = a->mean[k] * own + b.mean[k] * others;
        a->squares[k] = a->squares[k] + b.squares[k] + apart * apart * weight;
    }
    a->count = count;
}

/* What the lane that differs by `step` has. */
template <typename V> static __device__ __forceinline__ V other_lane(const V &value, int step)
{
    V other;
    const float *from = (const float *)&value;
    float *to = (float *)&other;
#pragma unroll
    for (unsigned i = 0; i < sizeof(V) / sizeof(float); i++)
        to[i] = __shfl_xor_sync(0xffffffffu, from[i], step);
    return other;
}

static __device__ __forceinline__ part part_of(const moments &m)
{
    return {narrow<float, QUAD>(m.mean), narrow<float, QUAD>(m.squares)};
}

static __device__ __forceinline__ void take_part(const part &p, float rows, moments *m)
{
    widen(p.first, m->mean);
    widen(p.second, m->squares);
    m->count = rows;
}

/* Parts that convolutions have left say themselves how many rows they have, behind all of them: see launch.h. */
static __host__ __device__ __forceinline__ float *rows_of_parts(part *parts, int count, int quads)
{
    return (float *)(parts + (int64_t)count * quads);
}

#endif
