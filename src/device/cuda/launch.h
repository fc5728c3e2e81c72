/* launch.h - the launchers of our own kernels: the border between the C files, which know rows, shapes and attributes,
 * and the .cu files, which know pointers and sizes.
 *
 * Every launcher hands work to a stream and returns what the launch said. Types are tw_dtype; those named "float types"
 * take float, bfloat16 and half, compute in float and round once. Sums have a fixed order: no kernel adds atomically, so
 * the bits are the same in every run. */
#ifndef TWI_CUDA_LAUNCH_H
#define TWI_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <tower/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- elementwise.cu -------------------------------------------------------------------------------------------- */

/*  X(number, "op", y from x) */
#define TWI_CUDA_UNARY_LIST(X)                                                                                         \
    X(NEGATIVE, "Neg", -x)                                                                                             \
    X(ABSOLUTE, "Abs", fabsf(x))                                                                                       \
    X(SIGN, "Sign", x != x ? x : (float)((x > 0) - (x < 0)))                                                           \
    X(SQUARE, "Square", x *x)                                                                                          \
    X(RECIPROCAL, "Reciprocal", 1 / x)                                                                                 \
    X(INVERSE, "Inv", 1 / x)                                                                                           \
    X(ROOT, "Sqrt", sqrtf(x))                                                                                          \
    X(RECIPROCAL_ROOT, "Rsqrt", 1 / sqrtf(x))                                                                          \
    X(EXPONENTIAL, "Exp", expf(x))                                                                                     \
    X(EXPONENTIAL_1, "Expm1", expm1f(x))                                                                               \
    X(LOGARITHM, "Log", logf(x))                                                                                       \
    X(LOGARITHM_1, "Log1p", log1pf(x))                                                                                 \
    X(TANGENT, "Tanh", tanhf(x))                                                                                       \
    X(SIGMOID, "Sigmoid", x < 0 ? expf(x) / (1 + expf(x)) : 1 / (1 + expf(-x)))                                        \
    X(FLOOR, "Floor", floorf(x))                                                                                       \
    X(CEILING, "Ceil", ceilf(x))                                                                                       \
    X(RELU, "Relu", x <= 0 ? 0 : x)                                                                                    \
    X(RELU6, "Relu6", x <= 0 ? 0 : x > 6 ? 6 : x)

/*  X(number, "op", broadcasts, z from x and y) */
#define TWI_CUDA_BINARY_LIST(X)                                                                                        \
    X(ADD, "Add", true, x + y)                                                                                         \
    X(ADD_V2, "AddV2", true, x + y)                                                                                    \
    X(SUBTRACT, "Sub", true, x - y)                                                                                    \
    X(MULTIPLY, "Mul", true, x *y)                                                                                     \
    X(DIVIDE, "RealDiv", true, x / y)                                                                                  \
    X(DIVIDE_1, "Div", true, x / y)                                                                                    \
    X(DIVIDE_NO_NAN, "DivNoNan", true, y == 0 ? 0 : x / y)                                                             \
    X(MAXIMUM, "Maximum", true, x > y || x != x ? x : y)                                                               \
    X(MINIMUM, "Minimum", true, x < y || x != x ? x : y)                                                               \
    X(SQUARED_DIFFERENCE, "SquaredDifference", true, (x - y) * (x - y))                                                \
    X(POWER, "Pow", true, powf(x, y))                                                                                  \
    X(ROOT_GRAD, "SqrtGrad", false, y * 0.5f / x)                                                                      \
    X(RECIPROCAL_ROOT_GRAD, "RsqrtGrad", false, y * -0.5f * x * x * x)                                                 \
    X(RECIPROCAL_GRAD, "ReciprocalGrad", false, -y * x * x)                                                            \
    X(INVERSE_GRAD, "InvGrad", false, -y * x * x)                                                                      \
    X(SIGMOID_GRAD, "SigmoidGrad", false, y * x * (1 - x))                                                             \
    X(TANGENT_GRAD, "TanhGrad", false, y * (1 - x * x))                                                                \
    X(RELU_GRAD, "ReluGrad", false, y > 0 ? x : 0)                                                                     \
    X(RELU6_GRAD, "Relu6Grad", false, y > 0 && y < 6 ? x : 0)

typedef enum twi_cuda_unary {
#define X(number, ...) TWI_CUDA_##number,
    TWI_CUDA_UNARY_LIST(X)
#undef X
} twi_cuda_unary;

typedef enum twi_cuda_binary {
#define X(number, ...) TWI_CUDA_##number,
    TWI_CUDA_BINARY_LIST(X)
#undef X
} twi_cuda_binary;

/* Element i of a row-major output of these sizes, outermost first, lies at sum of (index along axis) * step in x and y;
 * rank 0: i itself in both. */
typedef struct twi_cuda_walk {
    int rank;
    int64_t size[TW_MAX_RANK], x_step[TW_MAX_RANK], y_step[TW_MAX_RANK];
} twi_cuda_walk;

/* Float types. */
cudaError_t twi_cuda_unary_run(cudaStream_t stream, tw_dtype type, twi_cuda_unary op, int64_t n, const void *x,
                               void *y);
cudaError_t twi_cuda_binary_run(cudaStream_t stream, tw_dtype type, twi_cuda_binary op, const twi_cuda_walk *walk,
                                int64_t n, const void *x, const void *y, void *z);

enum { TWI_CUDA_MOST_TERMS = 16 };
/* sum = x[0] + x[1] + ..., from left to right; count from 1 to TWI_CUDA_MOST_TERMS. Float types. */
cudaError_t twi_cuda_add_n(cudaStream_t stream, tw_dtype type, int count, const void *const *x, int64_t n, void *sum);

/* Any number type or bool to any other. */
cudaError_t twi_cuda_cast(cudaStream_t stream, tw_dtype from, tw_dtype to, int64_t n, const void *x, void *y);

/* value[channel] is added to x seen as [outer, channels, inner]. Float types. */
cudaError_t twi_cuda_bias_add(cudaStream_t stream, tw_dtype type, int64_t n, int64_t channels, int64_t inner,
                              const void *x, const void *bias, void *y);

#ifdef __cplusplus
}
#endif
#endif
