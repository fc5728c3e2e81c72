/* images.cuh - what kernels of images share, NHWC: which cells windows cover, and the sums of local response
 * normalization. */
#ifndef TWI_CUDA_IMAGES_CUH
#define TWI_CUDA_IMAGES_CUH

#include "device/cuda/typed.cuh"

/* ---- windows --------------------------------------------------------------------------------------------------------- */

/* The cells [first, last) of window o of a side that lie inside the image. */
static __device__ void cells_under(const twi_cuda_pool &p, int side, int64_t o, int64_t *first, int64_t *last)
{
    int64_t begin = o * p.stride[side] - p.before[side], end = begin + p.size[side];
    *first = begin < 0 ? 0 : begin;
    *last = end > p.image[side] ? p.image[side] : end;
}

/* The windows [first, last) of a side that cover a cell. */
static __device__ void windows_over(const twi_cuda_pool &p, int side, int64_t cell, int64_t *first, int64_t *last)
{
    int64_t start = cell + p.before[side] - p.size[side] + 1;
    *first = start <= 0 ? 0 : (start + p.stride[side] - 1) / p.stride[side];
    *last = (cell + p.before[side]) / p.stride[side] + 1;
    if (*last > p.output[side])
        *last = p.output[side];
}

/* ---- local response normalization ------------------------------------------------------------------------------------ */

/* x^-beta, x > 0 */
static __device__ float to_minus(float x, float beta)
{
    if (beta == 0.5f)
        return 1 / sqrtf(x);
    if (beta == 0.75f)
        return 1 / (sqrtf(x) * sqrtf(sqrtf(x)));
    return beta == 1 ? 1 / x : powf(x, -beta);
}

/* Sum over |j - c| <= radius of values[j] * weights[j]; both are one pixel's channels. */
static __device__ float around(const twi_cuda_lrn &l, const float *values, const float *weights, int64_t c)
{
    int64_t first = c < l.radius ? 0 : c - l.radius;
    int64_t last = c + l.radius < l.channels ? c + l.radius : l.channels - 1;
    float sum = 0;
    for (int64_t j = first; j <= last; j++)
        sum += values[j] * weights[j];
    return sum;
}

/* About a value a thread; 48 KB of shared memory hold three arrays of TWI_CUDA_MOST_LRN_CHANNELS. */
static inline int64_t pixels_of_block(int64_t channels)
{
    return channels > 0 && channels < THREADS ? THREADS / channels : 1;
}

#endif
