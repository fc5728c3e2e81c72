/* arithmetic.cuh - one number at a time: what the lists of launch.h say of an op, and conversions between types. The op
 * and the types are numbers that all threads share, so one kernel serves them all. */
#ifndef TWI_CUDA_ARITHMETIC_CUH
#define TWI_CUDA_ARITHMETIC_CUH

#include "device/cuda/typed.cuh"

#define CASE(number, name, types, expression)                                                                          \
    case TWI_CUDA_##number:                                                                                            \
        return expression;
#define INTEGER_CASE(number, expression)                                                                               \
    case TWI_CUDA_##number:                                                                                            \
        return expression;

static __device__ inline float unary(twi_cuda_unary op, float x)
{
    switch (op) {
        TWI_CUDA_UNARY_LIST(CASE)
    }
    return 0;
}

static __device__ inline float binary(twi_cuda_binary op, float x, float y)
{
    switch (op) {
        TWI_CUDA_BINARY_LIST(CASE)
    }
    return 0;
}

/* ---- integers, as unsigned numbers, which wrap ------------------------------------------------------------------- */

static __device__ inline bool negative(uint32_t x)
{
    return (int32_t)x < 0;
}

static __device__ inline bool negative(uint64_t x)
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

static __device__ inline void unary_at(twi_cuda_unary op, const int32_t *x, int32_t *y)
{
    *y = (int32_t)integer_unary(op, (uint32_t)*x);
}

static __device__ inline void unary_at(twi_cuda_unary op, const int64_t *x, int64_t *y)
{
    *y = (int64_t)integer_unary(op, (uint64_t)*x);
}

template <typename T> static __device__ void binary_at(twi_cuda_binary op, const T *x, const T *y, T *z)
{
    put(z, binary(op, to_float(*x), to_float(*y)));
}

static __device__ inline void binary_at(twi_cuda_binary op, const int32_t *x, const int32_t *y, int32_t *z)
{
    *z = (int32_t)integer_binary(op, (uint32_t)*x, (uint32_t)*y);
}

static __device__ inline void binary_at(twi_cuda_binary op, const int64_t *x, const int64_t *y, int64_t *z)
{
    *z = (int64_t)integer_binary(op, (uint64_t)*x, (uint64_t)*y);
}

/* ---- comparisons ------------------------------------------------------------------------------------------------- */

/* Numbers as they are compared: half types as float. */
template <typename T> static __device__ T wide(T x)
{
    return x;
}

static __device__ inline float wide(__nv_bfloat16 x)
{
    return to_float(x);
}

static __device__ inline float wide(__half x)
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

static __device__ inline bool test(twi_cuda_test op, float x)
{
    switch (op) {
        TWI_CUDA_TEST_LIST(CASE)
    }
    return false;
}

/* ---- conversion -------------------------------------------------------------------------------------------------- */

static __device__ inline bool is_float(tw_dtype type)
{
    return type == TW_FLOAT32 || type == TW_FLOAT64 || type == TW_FLOAT16 || type == TW_BFLOAT16;
}

static __device__ inline double read_float(tw_dtype type, const void *x, int64_t i)
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

static __device__ inline int64_t read_integer(tw_dtype type, const void *x, int64_t i)
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

static __device__ inline void write_float(tw_dtype type, void *y, int64_t i, double value)
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

static __device__ inline void write_integer(tw_dtype type, void *y, int64_t i, int64_t value)
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
static __device__ inline int64_t to_integer(double value, int64_t low, int64_t high)
{
    if (value != value)
        return 0;
    return value <= (double)low ? low : value >= (double)high ? high : (int64_t)value;
}

/* The least and the most of an integer type. */
static __device__ inline int64_t least_of(tw_dtype type)
{
    return type == TW_INT64   ? INT64_MIN
           : type == TW_INT32 ? INT32_MIN
           : type == TW_INT16 ? INT16_MIN
           : type == TW_INT8  ? INT8_MIN
                              : 0;
}

static __device__ inline int64_t most_of(tw_dtype type)
{
    return type == TW_INT64   ? INT64_MAX
           : type == TW_INT32 ? INT32_MAX
           : type == TW_INT16 ? INT16_MAX
           : type == TW_INT8  ? INT8_MAX
                              : UINT8_MAX;
}

static __device__ inline void cast_at(tw_dtype from, const void *x, tw_dtype to, void *y, int64_t i)
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
            write_integer(to, y, i, to == TW_BOOL ? value != 0 : to_integer(value, least_of(to), most_of(to)));
    }
}

#endif
