/* elementwise.cu - arithmetic and conversion, element by element; what becomes of one is in arithmetic.cuh. The op is a
 * number that all threads share, so one kernel a type serves them all. */
#include "device/cuda/arithmetic.cuh"

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* Where in input k element i of the output comes from. */
static __device__ int64_t place_of(const twi_cuda_walk &walk, int k, int64_t i)
{
    int64_t place = walk.rank ? 0 : i;
    for (int axis = walk.rank - 1; axis >= 0; axis--) {
        place += i % walk.size[axis] * walk.step[k][axis];
        i /= walk.size[axis];
    }
    return place;
}

/* The same in inputs 0 and 1. */
static __device__ void places_of(const twi_cuda_walk &walk, int64_t i, int64_t *x, int64_t *y)
{
    *x = *y = walk.rank ? 0 : i;
    for (int axis = walk.rank - 1; axis >= 0; axis--) {
        int64_t at = i % walk.size[axis];
        i /= walk.size[axis];
        *x += at * walk.step[0][axis];
        *y += at * walk.step[1][axis];
    }
}

template <typename T> static __global__ void unary_kernel(twi_cuda_unary op, int64_t n, const T *x, T *y)
{
    EACH(i, n)
        unary_at(op, x + i, y + i);
}

template <typename T>
static __global__ void binary_kernel(twi_cuda_binary op, twi_cuda_walk walk, int64_t n, const T *x, const T *y, T *z)
{
    EACH(i, n)
    {
        int64_t xi, yi;
        places_of(walk, i, &xi, &yi);
        binary_at(op, x + xi, y + yi, z + i);
    }
}

template <typename T>
static __global__ void compare_kernel(twi_cuda_compare op, twi_cuda_walk walk, int64_t n, const T *x, const T *y, bool *z)
{
    EACH(i, n)
    {
        int64_t xi, yi;
        places_of(walk, i, &xi, &yi);
        z[i] = compare(op, wide(x[xi]), wide(y[yi]));
    }
}

template <typename T> static __global__ void test_kernel(twi_cuda_test op, int64_t n, const T *x, bool *y)
{
    EACH(i, n)
        y[i] = test(op, to_float(x[i]));
}

template <typename U>
static __global__ void select_kernel(twi_cuda_walk walk, int64_t n, const bool *condition, const U *x, const U *y, U *z)
{
    EACH(i, n)
        z[i] = condition[place_of(walk, 0, i)] ? x[place_of(walk, 1, i)] : y[place_of(walk, 2, i)];
}

template <typename T>
static __global__ void clip_kernel(int64_t n, const T *x, const T *low, bool low_steps, const T *high, bool high_steps,
                                   T *y)
{
    EACH(i, n)
    {
        T value = x[i], least = low[low_steps ? i : 0], most = high[high_steps ? i : 0];
        value = wide(value) < wide(most) ? value : most;
        y[i] = wide(value) > wide(least) ? value : least;
    }
}

typedef struct terms {
    const void *x[TWI_CUDA_MOST_TERMS];
} terms;

template <typename T> static __global__ void add_n_kernel(int count, terms t, int64_t n, T *sum)
{
    EACH(i, n)
    {
        float total = to_float(((const T *)t.x[0])[i]);
        for (int k = 1; k < count; k++)
            total += to_float(((const T *)t.x[k])[i]);
        put(sum + i, total);
    }
}

template <typename T>
static __global__ void bias_kernel(int64_t n, int64_t channels, int64_t inner, bool relu, const T *x, const T *bias, T *y)
{
    EACH(i, n)
    {
        float sum = to_float(x[i]) + to_float(bias[i / inner % channels]);
        put(y + i, relu && sum <= 0 ? 0 : sum);
    }
}

static __global__ void cast_kernel(tw_dtype from, tw_dtype to, int64_t n, const void *x, void *y)
{
    EACH(i, n)
        cast_at(from, x, to, y, i);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------ */

cudaError_t twi_cuda_unary_run(cudaStream_t stream, tw_dtype type, twi_cuda_unary op, int64_t n, const void *x, void *y)
{
    NUMBER_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, unary_kernel<T>)(op, n, (const T *)x, (T *)y))
    return cudaGetLastError();
}

cudaError_t twi_cuda_binary_run(cudaStream_t stream, tw_dtype type, twi_cuda_binary op, const twi_cuda_walk *walk,
                                int64_t n, const void *x, const void *y, void *z)
{
    NUMBER_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, binary_kernel<T>)(op, *walk, n, (const T *)x,
                                                                               (const T *)y, (T *)z))
    return cudaGetLastError();
}

cudaError_t twi_cuda_compare_run(cudaStream_t stream, tw_dtype type, twi_cuda_compare op, const twi_cuda_walk *walk,
                                 int64_t n, const void *x, const void *y, bool *z)
{
    if (type == TW_BOOL || type == TW_UINT8)
        LAUNCH(blocks_for(n), THREADS, 0, stream, compare_kernel<uint8_t>)(op, *walk, n, (const uint8_t *)x,
                                                                       (const uint8_t *)y, z);
    else
        NUMBER_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, compare_kernel<T>)(op, *walk, n, (const T *)x,
                                                                                    (const T *)y, z))
    return cudaGetLastError();
}

cudaError_t twi_cuda_test_run(cudaStream_t stream, tw_dtype type, twi_cuda_test op, int64_t n, const void *x, bool *y)
{
    if (type == TW_BOOL)
        LAUNCH(blocks_for(n), THREADS, 0, stream, test_kernel<bool>)(op, n, (const bool *)x, y);
    else
        FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, test_kernel<T>)(op, n, (const T *)x, y))
    return cudaGetLastError();
}

#define SELECT(U)                                                                                                      \
    LAUNCH(blocks_for(n), THREADS, 0, stream, select_kernel<U>)(*walk, n, condition, (const U *)x, (const U *)y, (U *)z)

cudaError_t twi_cuda_select(cudaStream_t stream, int bytes, const twi_cuda_walk *walk, int64_t n, const bool *condition,
                            const void *x, const void *y, void *z)
{
    switch (bytes) {
    case 1:
        SELECT(uint8_t);
        break;
    case 2:
        SELECT(uint16_t);
        break;
    case 4:
        SELECT(uint32_t);
        break;
    case 8:
        SELECT(uint64_t);
        break;
    default:
        return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}

cudaError_t twi_cuda_clip(cudaStream_t stream, tw_dtype type, int64_t n, const void *x, const void *low, bool low_steps,
                          const void *high, bool high_steps, void *y)
{
    NUMBER_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, clip_kernel<T>)(
                           n, (const T *)x, (const T *)low, low_steps, (const T *)high, high_steps, (T *)y))
    return cudaGetLastError();
}

cudaError_t twi_cuda_add_n(cudaStream_t stream, tw_dtype type, int count, const void *const *x, int64_t n, void *sum)
{
    terms t = {};
    for (int i = 0; i < count; i++)
        t.x[i] = x[i];
    FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, add_n_kernel<T>)(count, t, n, (T *)sum))
    return cudaGetLastError();
}

cudaError_t twi_cuda_cast(cudaStream_t stream, tw_dtype from, tw_dtype to, int64_t n, const void *x, void *y)
{
    LAUNCH(blocks_for(n), THREADS, 0, stream, cast_kernel)(from, to, n, x, y);
    return cudaGetLastError();
}

cudaError_t twi_cuda_bias_add(cudaStream_t stream, tw_dtype type, int64_t n, int64_t channels, int64_t inner, bool relu,
                              const void *x, const void *bias, void *y)
{
    FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, bias_kernel<T>)(n, channels, inner, relu, (const T *)x,
                                                                               (const T *)bias, (T *)y))
    return cudaGetLastError();
}
