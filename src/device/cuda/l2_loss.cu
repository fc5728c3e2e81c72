/* l2_loss.cu - half the sums of squares of many tensors at once: a block for each chunk, and the last block to finish adds
 * the parts of each tensor, in their order. */
#include "device/cuda/last_block.cuh"

static const int CHUNK = 4096, LANES = 32;

/* The sum over a warp, in every lane. */
static __device__ float sum_of_warp(float x)
{
    for (int step = LANES / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

/* The sum over a block, in thread 0. */
static __device__ float sum_of_block(float x)
{
    __shared__ float sums[THREADS / LANES];
    x = sum_of_warp(x);
    if (threadIdx.x % LANES == 0)
        sums[threadIdx.x / LANES] = x;
    __syncthreads();
    float sum = 0;
    for (int warp = 0; warp < THREADS / LANES && threadIdx.x == 0; warp++)
        sum += sums[warp];
    return sum;
}

template <typename T>
static __global__ void __launch_bounds__(256) l2_loss_kernel(twi_cuda_l2_losses l, float *parts, unsigned *counter)
{
    int v = 0;
    while (l.first_block[v + 1] <= (int)blockIdx.x)
        v++;
    int begin = ((int)blockIdx.x - l.first_block[v]) * CHUNK, size = l.elements[v] - begin;
    const T *x = (const T *)l.x[v] + begin;
    float sum = 0;
    for (int i = (int)threadIdx.x; i < CHUNK && i < size; i += THREADS)
        sum += to_float(x[i]) * to_float(x[i]);
    sum = sum_of_block(sum);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
    if (!comes_last(counter, gridDim.x))
        return;
    for (int w = (int)threadIdx.x / LANES; w < l.count; w += THREADS / LANES) { /* a warp for each tensor */
        float all = 0;
        for (int b = l.first_block[w] + (int)threadIdx.x % LANES; b < l.first_block[w + 1]; b += LANES)
            all += parts[b];
        all = sum_of_warp(all);
        if (threadIdx.x % LANES == 0)
            put((T *)l.loss[w], all * 0.5f);
    }
}

int twi_cuda_l2_loss_blocks(int elements)
{
    return elements / CHUNK + 1; /* one at least, so that nobody is left out */
}

cudaError_t twi_cuda_l2_loss_many(cudaStream_t stream, tw_dtype type, twi_cuda_l2_losses *losses, float *parts,
                                  unsigned *counter)
{
    int blocks = 0;
    for (int v = 0; v < losses->count; v++) {
        losses->first_block[v] = blocks;
        blocks += twi_cuda_l2_loss_blocks(losses->elements[v]);
    }
    losses->first_block[losses->count] = blocks;
    FLOAT_TYPES(type, LAUNCH((unsigned)blocks, THREADS, 0, stream, l2_loss_kernel<T>)(*losses, parts, counter))
    return cudaGetLastError();
}
