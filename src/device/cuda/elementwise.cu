/* elementwise.cu - arithmetic and conversion, element by element. The op is a number that all threads share, so one
 * kernel a type serves them all. */
#include "device/cuda/typed.cuh"

#define CASE(number, name, types, expression)                                                                          \
    case TWI_CUDA_##number:                                                                                            \
        return expression;
#define INTEGER_CASE(number, expression)                                                                               \
    case TWI_CUDA_##number:                                                                                            \
        return expression;

static __device__ float unary(twi_cuda_unary op, float x)
{
    switch (op) {
        TWI_CUDA_UNARY_LIST(CASE)
    }
    return 0;
}

static __device__ float binary(twi_cuda_binary op, float x, float y)
{
    switch (op) {
        TWI_CUDA_BINARY_LIST(CASE)
    }
    return 0;
}

/* ---- integers, as unsigned numbers, which wrap ------------------------------------------------------------------- */

static __device__ bool negative(uint32_t x)
{
    return (int32_t)x < 0;
}

static __device__ bool negative(uint64_t x)
{
    return (int64_t)x < 0;
}

template <typename U> static __device__ bool less(U x, U y)
{
    return negative(x) != negative(y) ? negative(x) : x < y;
}

template <typename U> static __device__ U quotient(U x, U y)
{
    if (y == 0)
        return 0;
    U size = (negative(x) ? 0 - x : x) / (negative(y) ? 0 - y : y);
    return negative(x) != negative(y) ? 0 - size : size;
}

template <typename U> static __device__ U remains(U x, U y)
{
    return y == 0 ? 0 : x - quotient(x, y) * y;
}

/* Cutting a quotient towards zero and rounding it down are two things here. */
template <typename U> static __device__ bool turns(U x, U y)
{
    return remains(x, y) != 0 && negative(x) != negative(y);
}

template <typename U> static __device__ U integer_unary(twi_cuda_unary op, U x)
{
    switch (op) {
        TWI_CUDA_INTEGER_UNARY_LIST(INTEGER_CASE)
    default:
        return 0;
    }
}

template <typename U> static __device__ U integer_binary(twi_cuda_binary op, U x, U y)
{
    switch (op) {
        TWI_CUDA_INTEGER_BINARY_LIST(INTEGER_CASE)
    default:
        return 0;
    }
}

template <typename T> static __device__ void unary_at(twi_cuda_unary op, const T *x, T *y)
{
    put(y, unary(op, to_float(*x)));
}

static __device__ void unary_at(twi_cuda_unary op, const int32_t *x, int32_t *y)
{
    *y = (int32_t)integer_unary(op, (uint32_t)*x);
}

static __device__ void unary_at(twi_cuda_unary op, const int64_t *x, int64_t *y)
{
    *y = (int64_t)integer_unary(op, (uint64_t)*x);
}

template <typename T> static __device__ void binary_at(twi_cuda_binary op, const T *x, const T *y, T *z)
{
    put(z, binary(op, to_float(*x), to_float(*y)));
}

static __device__ void binary_at(twi_cuda_binary op, const int32_t *x, const int32_t *y, int32_t *z)
{
    *z = (int32_t)integer_binary(op, (uint32_t)*x, (uint32_t)*y);
}

static __device__ void binary_at(twi_cuda_binary op, const int64_t *x, const int64_t *y, int64_t *z)
{
    *z = (int64_t)integer_binary(op, (uint64_t)*x, (uint64_t)*y);
}

/* ---- comparisons ------------------------------------------------------------------------------------------------- */

/* Numbers as they are compared: half types as float. */
template <typename T> static __device__ T wide(T x)
{
    return x;
}

static __device__ float wide(__nv_bfloat16 x)
{
    return to_float(x);
}

static __device__ float wide(__half x)
{
    return to_float(x);
}

template <typename W> static __device__ bool compare(twi_cuda_compare op, W x, W y)
{
    switch (op) {
        TWI_CUDA_COMPARE_LIST(CASE)
    }
    return false;
}

static __device__ bool test(twi_cuda_test op, float x)
{
    switch (op) {
        TWI_CUDA_TEST_LIST(CASE)
    }
    return false;
}

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

/* ---- conversion -------------------------------------------------------------------------------------------------- */

static __device__ bool is_float(tw_dtype type)
{
    return type == TW_FLOAT32 || type == TW_FLOAT64 || type == TW_FLOAT16 || type == TW_BFLOAT16;
}

static __device__ double read_float(tw_dtype type, const void *x, int64_t i)
{
    switch (type) {
    case TW_FLOAT32:
        return ((const float *)x)[i];
    case TW_FLOAT64:
        return ((const double *)x)[i];
    case TW_FLOAT16:
        return to_float(((const __half *)x)[i]);
    default:
        return to_float(((const __nv_bfloat16 *)x)[i]);
    }
}

static __device__ int64_t read_integer(tw_dtype type, const void *x, int64_t i)
{
    switch (type) {
    case TW_INT8:
        return ((const int8_t *)x)[i];
    case TW_INT16:
        return ((const int16_t *)x)[i];
    case TW_INT32:
        return ((const int32_t *)x)[i];
    case TW_INT64:
        return ((const int64_t *)x)[i];
    default: /* uint8, bool */
        return ((const uint8_t *)x)[i];
    }
}

static __device__ void write_float(tw_dtype type, void *y, int64_t i, double value)
{
    switch (type) {
    case TW_FLOAT32:
        ((float *)y)[i] = (float)value;
        break;
    case TW_FLOAT64:
        ((double *)y)[i] = value;
        break;
    case TW_FLOAT16:
        put((__half *)y + i, (float)value);
        break;
    default:
        put((__nv_bfloat16 *)y + i, (float)value);
    }
}

static __device__ void write_integer(tw_dtype type, void *y, int64_t i, int64_t value)
{
    switch (type) {
    case TW_INT8:
        ((int8_t *)y)[i] = (int8_t)value;
        break;
    case TW_INT16:
        ((int16_t *)y)[i] = (int16_t)value;
        break;
    case TW_INT32:
        ((int32_t *)y)[i] = (int32_t)value;
        break;
    case TW_INT64:
        ((int64_t *)y)[i] = value;
        break;
    case TW_BOOL:
        ((uint8_t *)y)[i] = value != 0;
        break;
    default:
        ((uint8_t *)y)[i] = (uint8_t)value;
    }
}

/* Floats are cut towards zero; out of range becomes the nearest integer, NaN 0: as on the CPU. */
static __device__ int64_t to_integer(double value, int64_t low, int64_t high)
{
    if (value != value)
        return 0;
    return value <= (double)low ? low : value >= (double)high ? high : (int64_t)value;
}

static __global__ void cast_kernel(tw_dtype from, tw_dtype to, int64_t low, int64_t high, int64_t n, const void *x,
                                   void *y)
{
    EACH(i, n)
    {
        if (!is_float(from)) {
            int64_t value = read_integer(from, x, i);
            if (is_float(to))
                write_float(to, y, i, (double)value);
            else
                write_integer(to, y, i, value);
        } else {
            double value = read_float(from, x, i);
            if (is_float(to))
                write_float(to, y, i, value);
            else
                write_integer(to, y, i, to == TW_BOOL ? value != 0 : to_integer(value, low, high));
        }
    }
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
    int bits = to == TW_INT64 ? 64 : to == TW_INT32 ? 32 : to == TW_INT16 ? 16 : 8;
    int64_t high = to == TW_UINT8 ? UINT8_MAX : bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - 1)) - 1;
    int64_t low = to == TW_UINT8 ? 0 : -high - 1;
    LAUNCH(blocks_for(n), THREADS, 0, stream, cast_kernel)(from, to, low, high, n, x, y);
    return cudaGetLastError();
}

cudaError_t twi_cuda_bias_add(cudaStream_t stream, tw_dtype type, int64_t n, int64_t channels, int64_t inner, bool relu,
                              const void *x, const void *bias, void *y)
{
    FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, bias_kernel<T>)(n, channels, inner, relu, (const T *)x,
                                                                               (const T *)bias, (T *)y))
    return cudaGetLastError();
}
