/* many.cuh - many arrays in one launch: which block works on which, and a few neighbours a thread. */
#ifndef TWI_CUDA_MANY_CUH
#define TWI_CUDA_MANY_CUH

#include "device/cuda/typed.cuh"

static const int TOGETHER = 4, CHUNK = TOGETHER * THREADS; /* elements of a thread, and of a block */

static inline unsigned chunks_of(int64_t elements)
{
    return (unsigned)((elements + CHUNK - 1) / CHUNK);
}

/* The array that the block works on: the last whose first block does not lie behind it. */
static __device__ __forceinline__ int array_of_block(int count, const int *first_block)
{
    int low = 0, high = count;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (first_block[middle] <= (int)blockIdx.x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Neighbours that are read and written at once where their address allows it. */
template <typename T> struct alignas(TOGETHER * sizeof(T)) pack {
    T x[TOGETHER];
};

/* The first `count` of TOGETHER elements; the rest are 0. */
template <typename T> static __device__ __forceinline__ void load(const T *from, int count, float *x)
{
    if (count == TOGETHER && (uintptr_t)from % sizeof(pack<T>) == 0) {
        pack<T> all = *(const pack<T> *)from;
        for (int i = 0; i < TOGETHER; i++)
            x[i] = to_float(all.x[i]);
    } else {
        for (int i = 0; i < TOGETHER; i++)
            x[i] = i < count ? to_float(from[i]) : 0;
    }
}

template <typename T> static __device__ __forceinline__ void store(T *to, int count, const float *x)
{
    pack<T> all;
    for (int i = 0; i < TOGETHER; i++)
        put(all.x + i, x[i]);
    if (count == TOGETHER && (uintptr_t)to % sizeof all == 0) {
        *(pack<T> *)to = all;
    } else {
        for (int i = 0; i < TOGETHER; i++)
            if (i < count)
                to[i] = all.x[i];
    }
}

#endif
