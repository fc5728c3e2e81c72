/* gradients.cu - a tower's gradients of many variables end to end, with weight decay. Each element is computed alone and
 * rounds as on the CPU. */
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
