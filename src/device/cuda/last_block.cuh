/* last_block.cuh - lets the block of a launch that is the last to finish go on with what the others have made, so that
 * parts of a sum need no second launch. Which block that is, is chance; so it must fold the parts in an order of their
 * own.
 *
 * Blocks count themselves at counters of the device's (twi_cuda_take_counters), which are 0 before and after each
 * launch. That is right as long as one launch after the other uses them: a device has one stream, and kernels touch
 * those they have taken (twi_prepare), so that recordings do not have two of the same side by side. */
#ifndef TWI_CUDA_LAST_BLOCK_CUH
#define TWI_CUDA_LAST_BLOCK_CUH

#include "device/cuda/typed.cuh"

/* Called by all threads of the `blocks` blocks that share the counter. True in those of the last, which then see what
 * all wrote before they called. One thread's fences stand for those of all, which it meets before and behind them. */
static __device__ __forceinline__ bool comes_last(unsigned *counter, unsigned blocks)
{
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        __threadfence();
        last = atomicInc(counter, blocks - 1) == blocks - 1; /* and is 0 again */
        __threadfence();
    }
    __syncthreads();
    return last;
}

/* The same, called by one warp of each block, behind a barrier behind what the block wrote: the others go on. */
static __device__ __forceinline__ bool comes_last_with_its_warp(unsigned *counter, unsigned blocks)
{
    float last = 0;
    if (threadIdx.x % 32 == 0) {
        __threadfence();
        last = atomicInc(counter, blocks - 1) == blocks - 1;
    }
    last = __shfl_sync(0xffffffffu, last, 0);
    __threadfence();
    return last != 0;
}

#endif
