/* typed.cuh - what the .cu files share: numbers of any float type as float, and the size of a launch. */
#ifndef TWI_CUDA_TYPED_CUH
#define TWI_CUDA_TYPED_CUH

#include "device/cuda/launch.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* LAUNCH(blocks, threads, shared, stream, kernel)(arguments): a launch in words that a compiler for the host can read,
 * too; there, tests give them a meaning, and to shared memory of a size that the launch says (tests/card/emulate.h). */
#ifdef __CUDACC__
#define LAUNCH(blocks, threads, shared, stream, ...) __VA_ARGS__<<<blocks, threads, shared, stream>>>
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

static const int THREADS = 256, MOST_BLOCKS = 4096;

static __device__ __forceinline__ float to_float(float x)
{
    return x;
}

static __device__ __forceinline__ float to_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

static __device__ __forceinline__ float to_float(__half x)
{
    return __half2float(x);
}

static __device__ __forceinline__ void put(float *to, float x)
{
    *to = x;
}

static __device__ __forceinline__ void put(__nv_bfloat16 *to, float x)
{
    *to = __float2bfloat16_rn(x);
}

static __device__ __forceinline__ void put(__half *to, float x)
{
    *to = __float2half_rn(x);
}

/* What storing a number as a T makes of it. */
template <typename T> static __device__ __forceinline__ float rounded(float x)
{
    T narrow;
    put(&narrow, x);
    return to_float(narrow);
}

static __device__ __forceinline__ float to_float(bool x)
{
    return x;
}

static __device__ __forceinline__ void put(bool *to, float x)
{
    *to = x > 0;
}

/* Of int64 where `wide`, else of int32. */
static __device__ __forceinline__ int64_t integer_at(bool wide, const void *x, int64_t i)
{
    return wide ? ((const int64_t *)x)[i] : ((const int32_t *)x)[i];
}

/* for (i = 0; i < n; i++), shared by all threads of the launch */
#define EACH(i, n)                                                                                                     \
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < (n); i += (int64_t)gridDim.x * blockDim.x)

static inline unsigned blocks_for(int64_t n)
{
    int64_t blocks = (n + THREADS - 1) / THREADS;
    return (unsigned)(blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks);
}

/* Runs the statement with T one of the float types. What threads do to each other is the same in all, so the thread
 * sanitizer's build has but one. */
#define FLOAT_TYPE(name, type, ...)                                                                                    \
    case name: {                                                                                                       \
        using T = type;                                                                                                \
        __VA_ARGS__;                                                                                                   \
        break;                                                                                                         \
    }
#ifdef __SANITIZE_THREAD__
#define NARROW_TYPES(...)
#else
#define NARROW_TYPES(...)                                                                                              \
    FLOAT_TYPE(TW_BFLOAT16, __nv_bfloat16, __VA_ARGS__)                                                                \
    FLOAT_TYPE(TW_FLOAT16, __half, __VA_ARGS__)
#endif
#define FLOAT_TYPES(type, ...)                                                                                         \
    switch (type) {                                                                                                    \
        FLOAT_TYPE(TW_FLOAT32, float, __VA_ARGS__)                                                                     \
        NARROW_TYPES(__VA_ARGS__)                                                                                      \
    default:                                                                                                           \
        return cudaErrorInvalidValue;                                                                                  \
    }

/* The same, or T is int32_t or int64_t. */
#define NUMBER_TYPES(type, ...)                                                                                        \
    if ((type) == TW_INT32) {                                                                                          \
        using T = int32_t;                                                                                             \
        __VA_ARGS__;                                                                                                   \
    } else if ((type) == TW_INT64) {                                                                                   \
        using T = int64_t;                                                                                             \
        __VA_ARGS__;                                                                                                   \
    } else {                                                                                                           \
        FLOAT_TYPES(type, __VA_ARGS__)                                                                                 \
    }

/* The same with T an unsigned type of 1, 2, 4 or 8 bytes, for what is only moved. */
#define SIZED_TYPES(bytes, ...)                                                                                        \
    switch (bytes) {                                                                                                   \
        FLOAT_TYPE(1, uint8_t, __VA_ARGS__)                                                                            \
        FLOAT_TYPE(2, uint16_t, __VA_ARGS__)                                                                           \
        FLOAT_TYPE(4, uint32_t, __VA_ARGS__)                                                                           \
        FLOAT_TYPE(8, uint64_t, __VA_ARGS__)                                                                           \
    default:                                                                                                           \
        return cudaErrorInvalidValue;                                                                                  \
    }

#endif
