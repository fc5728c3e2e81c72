/* many.cuh - many arrays in one launch: which block works on which, and a few neighbours a thread. */
#ifndef TWI_CUDA_MANY_CUH
#define TWI_CUDA_MANY_CUH

#include "device/cuda/vector.cuh"

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

/* The first `count` of TOGETHER elements, all at once where their address allows it; the rest are 0. */
template <typename T> static __device__ __forceinline__ void load(const T *from, int count, float *x)
{
    if (count == TOGETHER && is_aligned(from, sizeof(vector<T, TOGETHER>))) {
        widen(load<TOGETHER, TOGETHER>(from), x);
    } else {
        for (int i = 0; i < TOGETHER; i++)
            x[i] = i < count ? to_float(from[i]) : 0;
    }
}

template <typename T> static __device__ __forceinline__ void store(T *to, int count, const float *x)
{
    const vector<T, TOGETHER> all = narrow<T, TOGETHER>(x);
    if (count == TOGETHER && is_aligned(to, sizeof all)) {
        store<TOGETHER>(to, all);
    } else {
        for (int i = 0; i < TOGETHER; i++)
            if (i < count)
                to[i] = all.at[i];
    }
}

/* Of a type that is known when it runs. */
static __device__ __forceinline__ void load_any(tw_dtype type, const void *from, int64_t at, int count, float *x)
{
    if (type == TW_BFLOAT16)
        load((const __nv_bfloat16 *)from + at, count, x);
    else if (type == TW_FLOAT16)
        load((const __half *)from + at, count, x);
    else
        load((const float *)from + at, count, x);
}

/* The same of a gradient [columns, rows], by a place of its variable, which is [rows, columns]. */
static __device__ __forceinline__ void load_transposed(tw_dtype type, const void *from, unsigned at, unsigned columns,
                                                   unsigned rows, int count, float *x)
{
    unsigned row = at / columns, column = at - row * columns;
    for (int i = 0; i < TOGETHER; i++) {
        int64_t place = (int64_t)column * rows + row;
        x[i] = i >= count               ? 0
               : type == TW_BFLOAT16    ? to_float(((const __nv_bfloat16 *)from)[place])
               : type == TW_FLOAT16     ? to_float(((const __half *)from)[place])
                                        : ((const float *)from)[place];
        row += ++column == columns;
        column = column == columns ? 0 : column;
    }
}

/* A gradient by the place `at` of its variable, of which `columns` is 0 or the last axis, the gradient's first. */
static __device__ __forceinline__ void load_gradient(tw_dtype type, const void *from, int64_t elements, int columns,
                                                     int64_t at, int count, float *x)
{
    if (columns)
        load_transposed(type, from, (unsigned)at, (unsigned)columns, (unsigned)elements / (unsigned)columns, count, x);
    else
        load_any(type, from, at, count, x);
}

#endif
