/* elementwise.cu - arithmetic and conversion, element by element. The op is a number that all threads share, so one
 * kernel a type serves them all. */
#include "device/cuda/typed.cuh"

static __device__ float unary(twi_cuda_unary op, float x)
{
    switch (op) {
#define X(number, name, expression)                                                                                    \
    case TWI_CUDA_##number:                                                                                            \
        return expression;
        TWI_CUDA_UNARY_LIST(X)
#undef X
    }
    return 0;
}

static __device__ float binary(twi_cuda_binary op, float x, float y)
{
    switch (op) {
#define X(number, name, broadcasts, expression)                                                                        \
    case TWI_CUDA_##number:                                                                                            \
        return expression;
        TWI_CUDA_BINARY_LIST(X)
#undef X
    }
    return 0;
}

template <typename T> static __global__ void unary_kernel(twi_cuda_unary op, int64_t n, const T *x, T *y)
{
    EACH(i, n)
        put(y + i, unary(op, to_float(x[i])));
}

template <typename T>
static __global__ void binary_kernel(twi_cuda_binary op, twi_cuda_walk walk, int64_t n, const T *x, const T *y, T *z)
{
    EACH(i, n)
    {
        int64_t xi = walk.rank ? 0 : i, yi = xi, rest = i;
        for (int axis = walk.rank - 1; axis >= 0; axis--) {
            int64_t at = rest % walk.size[axis];
            rest /= walk.size[axis];
            xi += at * walk.x_step[axis];
            yi += at * walk.y_step[axis];
        }
        put(z + i, binary(op, to_float(x[xi]), to_float(y[yi])));
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
    FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, unary_kernel<T>)(op, n, (const T *)x, (T *)y))
    return cudaGetLastError();
}

cudaError_t twi_cuda_binary_run(cudaStream_t stream, tw_dtype type, twi_cuda_binary op, const twi_cuda_walk *walk,
                                int64_t n, const void *x, const void *y, void *z)
{
    FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, binary_kernel<T>)(op, *walk, n, (const T *)x,
                                                                              (const T *)y, (T *)z))
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
