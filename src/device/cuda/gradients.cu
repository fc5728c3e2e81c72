/* gradients.cu - a tower's gradients of many variables end to end, with weight decay; and the mean of towers. Each
 * element is computed alone and rounds as on the CPU. */
#include "device/cuda/many.cuh"

static __global__ void join_kernel(twi_cuda_joins j)
{
    int v = array_of_block(j.count, j.first_block);
    int64_t at = ((int)blockIdx.x - j.first_block[v]) * (int64_t)CHUNK + (int)threadIdx.x * TOGETHER;
    int count = (int)min(j.elements[v] - at, (int64_t)TOGETHER);
    float g[TOGETHER], x[TOGETHER];
    if (count <= 0)
        return;
    load_gradient((tw_dtype)j.type[v], j.from[v], j.elements[v], j.columns[v], at, count, g);
    if (j.decay[v]) {
        load(j.var[v] + at, count, x);
        for (int i = 0; i < TOGETHER; i++)
            g[i] += *j.decay[v] * x[i];
    }
    store(j.to + j.begin[v] + at, count, g);
}

cudaError_t twi_cuda_join_gradients(cudaStream_t stream, twi_cuda_joins *j)
{
    unsigned blocks = 0;
    for (int v = 0; v < j->count; v++) {
        j->first_block[v] = (int)blocks;
        blocks += chunks_of(j->elements[v]);
    }
    if (blocks == 0)
        return cudaSuccess;
    LAUNCH(blocks, THREADS, 0, stream, join_kernel)(*j);
    return cudaGetLastError();
}

/* ---- means ------------------------------------------------------------------------------------------------------- */

template <int N> static __global__ void mean_kernel(twi_cuda_mean m)
{
    int64_t at = blockIdx.x * (int64_t)CHUNK + (int)threadIdx.x * TOGETHER;
    int count = (int)min(m.elements - at, (int64_t)TOGETHER);
    float x[N][TOGETHER];
    if (count <= 0)
        return;
#pragma unroll
    for (int n = 0; n < N; n++)
        load(m.from[n] + at, count, x[n]);
#pragma unroll
    for (int stride = 1; stride < N; stride *= 2)
#pragma unroll
        for (int n = 0; n + stride < N; n += 2 * stride)
            for (int i = 0; i < TOGETHER; i++)
                x[n][i] += x[n + stride][i];
    for (int i = 0; i < TOGETHER; i++)
        x[0][i] *= m.scale;
    store(m.to + at, count, x[0]);
}

cudaError_t twi_cuda_mean_run(cudaStream_t stream, const twi_cuda_mean *mean)
{
    unsigned blocks = chunks_of(mean->elements);
    if (blocks == 0)
        return cudaSuccess;
#define MEAN_OF(n)                                                                                                     \
    case n: LAUNCH(blocks, THREADS, 0, stream, mean_kernel<n>)(*mean); break;
    switch (mean->count) {
        MEAN_OF(2)
        MEAN_OF(3)
        MEAN_OF(4)
        MEAN_OF(5)
        MEAN_OF(6)
        MEAN_OF(7)
        MEAN_OF(8)
    default: return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}
