/* launch.h - the launchers of our own kernels: the border between the C files, which know rows, shapes and attributes,
 * and the .cu files, which know pointers and sizes.
 *
 * Every launcher hands work to a stream and returns what the launch said. Types are tw_dtype; those named "float types"
 * take float, bfloat16 and half, compute in float and round once. Sums have a fixed order: no kernel adds atomically,
 * and where the last block folds parts it does so in their order, so the bits are the same in every run. */
#ifndef TWI_CUDA_LAUNCH_H
#define TWI_CUDA_LAUNCH_H

#include "base/philox.h"
#include "stream/examples.h"
#include "device/fused/scalars.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <tower/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- elementwise.cu -------------------------------------------------------------------------------------------- */

/* Types are named as rows name them: FLOATS the float types; NUMBERS those, int32 and int64; BYTES bool and uint8; 0
 * bool, in ops that have no other.
 *
 *  X(number, "op", types, y from x) */
#define TWI_CUDA_UNARY_LIST(X)                                                                                         \
    X(NEGATIVE, "Neg", NUMBERS, -x)                                                                                    \
    X(ABSOLUTE, "Abs", NUMBERS, fabsf(x))                                                                              \
    X(SIGN, "Sign", NUMBERS, x != x ? x : (float)((x > 0) - (x < 0)))                                                  \
    X(SQUARE, "Square", NUMBERS, x *x)                                                                                 \
    X(RECIPROCAL, "Reciprocal", FLOATS, 1 / x)                                                                         \
    X(INVERSE, "Inv", FLOATS, 1 / x)                                                                                   \
    X(ROOT, "Sqrt", FLOATS, sqrtf(x))                                                                                  \
    X(RECIPROCAL_ROOT, "Rsqrt", FLOATS, 1 / sqrtf(x))                                                                  \
    X(EXPONENTIAL, "Exp", FLOATS, expf(x))                                                                             \
    X(EXPONENTIAL_1, "Expm1", FLOATS, expm1f(x))                                                                       \
    X(LOGARITHM, "Log", FLOATS, logf(x))                                                                               \
    X(LOGARITHM_1, "Log1p", FLOATS, log1pf(x))                                                                         \
    X(SINE, "Sin", FLOATS, sinf(x))                                                                                    \
    X(COSINE, "Cos", FLOATS, cosf(x))                                                                                  \
    X(TANGENT_OF, "Tan", FLOATS, tanf(x))                                                                              \
    X(SINE_H, "Sinh", FLOATS, sinhf(x))                                                                                \
    X(COSINE_H, "Cosh", FLOATS, coshf(x))                                                                              \
    X(ARC_SINE, "Asin", FLOATS, asinf(x))                                                                              \
    X(ARC_COSINE, "Acos", FLOATS, acosf(x))                                                                            \
    X(ARC_TANGENT, "Atan", FLOATS, atanf(x))                                                                           \
    X(ARC_SINE_H, "Asinh", FLOATS, asinhf(x))                                                                          \
    X(ARC_COSINE_H, "Acosh", FLOATS, acoshf(x))                                                                        \
    X(ARC_TANGENT_H, "Atanh", FLOATS, atanhf(x))                                                                       \
    X(TANGENT, "Tanh", FLOATS, tanhf(x))                                                                               \
    X(ERROR_FUNCTION, "Erf", FLOATS, erff(x))                                                                          \
    X(COMPLEMENT, "Erfc", FLOATS, erfcf(x))                                                                            \
    X(LOG_GAMMA, "Lgamma", FLOATS, lgammaf(x))                                                                         \
    X(SIGMOID, "Sigmoid", FLOATS, x < 0 ? expf(x) / (1 + expf(x)) : 1 / (1 + expf(-x)))                                \
    X(FLOOR, "Floor", FLOATS, floorf(x))                                                                               \
    X(CEILING, "Ceil", FLOATS, ceilf(x))                                                                               \
    X(ROUND, "Round", FLOATS, rintf(x))                                                                                \
    X(ROUND_INT, "Rint", FLOATS, rintf(x))                                                                             \
    X(ELU, "Elu", FLOATS, x < 0 ? expm1f(x) : x)                                                                       \
    X(SELU, "Selu", FLOATS, x < 0 ? 1.7580993f * expm1f(x) : 1.05070099f * x)                                          \
    X(SOFTPLUS, "Softplus", FLOATS, (x < 0 ? 0 : x) + log1pf(expf(-fabsf(x))))                                         \
    X(SOFTSIGN, "Softsign", FLOATS, x / (1 + fabsf(x)))                                                                \
    X(RELU, "Relu", FLOATS, x <= 0 ? 0 : x)                                                                            \
    X(RELU6, "Relu6", FLOATS, x <= 0 ? 0 : x > 6 ? 6 : x)

/*  X(number, "op", types, z from x and y) */
#define TWI_CUDA_BINARY_LIST(X)                                                                                        \
    X(ADD, "Add", NUMBERS, x + y)                                                                                      \
    X(ADD_V2, "AddV2", NUMBERS, x + y)                                                                                 \
    X(SUBTRACT, "Sub", NUMBERS, x - y)                                                                                 \
    X(MULTIPLY, "Mul", NUMBERS, x *y)                                                                                  \
    X(MULTIPLY_NO_NAN, "MulNoNan", FLOATS, y == 0 ? 0 : x * y)                                                         \
    X(DIVIDE, "RealDiv", NUMBERS, x / y)                                                                               \
    X(DIVIDE_1, "Div", NUMBERS, x / y)                                                                                 \
    X(DIVIDE_NO_NAN, "DivNoNan", FLOATS, y == 0 ? 0 : x / y)                                                           \
    X(X_DIVIDE_Y, "Xdivy", FLOATS, x == 0 ? 0 : x / y)                                                                 \
    X(TRUNCATE_DIVIDE, "TruncateDiv", NUMBERS, truncf(x / y))                                                          \
    X(FLOOR_DIVIDE, "FloorDiv", NUMBERS, floorf(x / y))                                                                \
    X(FLOOR_MODULO, "FloorMod", NUMBERS,                                                                               \
      fmodf(x, y) != 0 && (fmodf(x, y) < 0) != (y < 0) ? fmodf(x, y) + y : fmodf(x, y))                                \
    X(MODULO, "Mod", NUMBERS, fmodf(x, y))                                                                             \
    X(MAXIMUM, "Maximum", NUMBERS, x > y || x != x ? x : y)                                                            \
    X(MINIMUM, "Minimum", NUMBERS, x < y || x != x ? x : y)                                                            \
    X(SQUARED_DIFFERENCE, "SquaredDifference", NUMBERS, (x - y) * (x - y))                                             \
    X(POWER, "Pow", FLOATS, powf(x, y))                                                                                \
    X(X_LOG_Y, "Xlogy", FLOATS, x == 0 ? 0 : x * logf(y))                                                              \
    X(X_LOG_1_Y, "Xlog1py", FLOATS, x == 0 ? 0 : x * log1pf(y))                                                        \
    X(ANGLE, "Atan2", FLOATS, atan2f(x, y))                                                                            \
    X(ROOT_GRAD, "SqrtGrad", FLOATS, y == 0 ? 0 : y * 0.5f / x)                                                        \
    X(RECIPROCAL_ROOT_GRAD, "RsqrtGrad", FLOATS, y == 0 ? 0 : y * -0.5f * x * x * x)                                   \
    X(RECIPROCAL_GRAD, "ReciprocalGrad", FLOATS, y == 0 ? 0 : -y * x * x)                                              \
    X(INVERSE_GRAD, "InvGrad", FLOATS, y == 0 ? 0 : -y * x * x)                                                        \
    X(SIGMOID_GRAD, "SigmoidGrad", FLOATS, y * x * (1 - x))                                                            \
    X(TANGENT_GRAD, "TanhGrad", FLOATS, y * (1 - x * x))                                                               \
    X(ELU_GRAD, "EluGrad", FLOATS, y < 0 ? x * (y + 1) : x)                                                            \
    X(SELU_GRAD, "SeluGrad", FLOATS, y < 0 ? x * (y + 1.7580993f) : x * 1.05070099f)                                   \
    X(SOFTPLUS_GRAD, "SoftplusGrad", FLOATS, x / (expf(-y) + 1))                                                       \
    X(SOFTSIGN_GRAD, "SoftsignGrad", FLOATS, x / ((1 + fabsf(y)) * (1 + fabsf(y))))                                    \
    X(RELU_GRAD, "ReluGrad", FLOATS, y > 0 ? x : 0)                                                                    \
    X(RELU6_GRAD, "Relu6Grad", FLOATS, y > 0 && y < 6 ? x : 0)

/* The same of integers, as the unsigned U, in which all wraps. What is divided by 0 is 0: nobody could be told in time.
 *
 *  X(number, y from x) */
#define TWI_CUDA_INTEGER_UNARY_LIST(X)                                                                                 \
    X(NEGATIVE, 0 - x)                                                                                                 \
    X(ABSOLUTE, negative(x) ? 0 - x : x)                                                                               \
    X(SIGN, negative(x) ? (U)-1 : (U)(x != 0))                                                                         \
    X(SQUARE, x *x)

/*  X(number, z from x and y) */
#define TWI_CUDA_INTEGER_BINARY_LIST(X)                                                                                \
    X(ADD, x + y)                                                                                                      \
    X(ADD_V2, x + y)                                                                                                   \
    X(SUBTRACT, x - y)                                                                                                 \
    X(MULTIPLY, x *y)                                                                                                  \
    X(DIVIDE, quotient(x, y))                                                                                          \
    X(DIVIDE_1, quotient(x, y))                                                                                        \
    X(TRUNCATE_DIVIDE, quotient(x, y))                                                                                 \
    X(FLOOR_DIVIDE, quotient(x, y) - (turns(x, y) ? 1 : 0))                                                            \
    X(FLOOR_MODULO, remains(x, y) + (turns(x, y) ? y : 0))                                                             \
    X(MODULO, remains(x, y))                                                                                           \
    X(MAXIMUM, less(y, x) ? x : y)                                                                                     \
    X(MINIMUM, less(x, y) ? x : y)                                                                                     \
    X(SQUARED_DIFFERENCE, (x - y) * (x - y))

/*  X(number, "op", types, bool from x and y) */
#define TWI_CUDA_COMPARE_LIST(X)                                                                                       \
    X(EQUAL, "Equal", NUMBERS | BYTES, x == y)                                                                         \
    X(DIFFERENT, "NotEqual", NUMBERS | BYTES, x != y)                                                                  \
    X(LESS, "Less", NUMBERS, x < y)                                                                                    \
    X(LESS_EQUAL, "LessEqual", NUMBERS, x <= y)                                                                        \
    X(GREATER, "Greater", NUMBERS, x > y)                                                                              \
    X(GREATER_EQUAL, "GreaterEqual", NUMBERS, x >= y)                                                                  \
    X(AND, "LogicalAnd", 0, x && y)                                                                                    \
    X(OR, "LogicalOr", 0, x || y)

/*  X(number, "op", types, bool from x) */
#define TWI_CUDA_TEST_LIST(X)                                                                                          \
    X(IS_NAN, "IsNan", FLOATS, x != x)                                                                                 \
    X(IS_INFINITE, "IsInf", FLOATS, fabsf(x) == INFINITY)                                                              \
    X(IS_FINITE, "IsFinite", FLOATS, fabsf(x) < INFINITY)                                                              \
    X(NOT, "LogicalNot", 0, !x)

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

typedef enum twi_cuda_compare {
#define X(number, ...) TWI_CUDA_##number,
    TWI_CUDA_COMPARE_LIST(X)
#undef X
} twi_cuda_compare;

typedef enum twi_cuda_test {
#define X(number, ...) TWI_CUDA_##number,
    TWI_CUDA_TEST_LIST(X)
#undef X
} twi_cuda_test;

enum { TWI_CUDA_MOST_WALKERS = 3 };

/* Element i of a row-major output of these sizes, outermost first, lies at sum of (index along axis) * step in each
 * input; rank 0: i itself in all. */
typedef struct twi_cuda_walk {
    int rank;
    int64_t size[TW_MAX_RANK], step[TWI_CUDA_MOST_WALKERS][TW_MAX_RANK];
} twi_cuda_walk;

/* Types as the lists say. */
cudaError_t twi_cuda_unary_run(cudaStream_t stream, tw_dtype type, twi_cuda_unary op, int64_t n, const void *x,
                               void *y);
cudaError_t twi_cuda_binary_run(cudaStream_t stream, tw_dtype type, twi_cuda_binary op, const twi_cuda_walk *walk,
                                int64_t n, const void *x, const void *y, void *z);

cudaError_t twi_cuda_compare_run(cudaStream_t stream, tw_dtype type, twi_cuda_compare op, const twi_cuda_walk *walk,
                                 int64_t n, const void *x, const void *y, bool *z);
cudaError_t twi_cuda_test_run(cudaStream_t stream, tw_dtype type, twi_cuda_test op, int64_t n, const void *x, bool *y);
/* z[i] = condition ? x : y, each at its place of the walk; `bytes` of an element: 1, 2, 4 or 8. */
cudaError_t twi_cuda_select(cudaStream_t stream, int bytes, const twi_cuda_walk *walk, int64_t n, const bool *condition,
                            const void *x, const void *y, void *z);
/* The larger of low and the smaller of x and high; limits are one element, or with a step as many as there are. Float
 * types, int32, int64. */
cudaError_t twi_cuda_clip(cudaStream_t stream, tw_dtype type, int64_t n, const void *x, const void *low, bool low_steps,
                          const void *high, bool high_steps, void *y);
/* y = x where gate > 0, else alpha * x. Float types. */
cudaError_t twi_cuda_leaky(cudaStream_t stream, tw_dtype type, float alpha, int64_t n, const void *gate, const void *x,
                           void *y);

enum { TWI_CUDA_MOST_TERMS = 128 };
/* sum = x[0] + x[1] + ..., from left to right; count from 1 to TWI_CUDA_MOST_TERMS. Float types. */
cudaError_t twi_cuda_add_n(cudaStream_t stream, tw_dtype type, int count, const void *const *x, int64_t n, void *sum);

/* Any number type or bool to any other. */
cudaError_t twi_cuda_cast(cudaStream_t stream, tw_dtype from, tw_dtype to, int64_t n, const void *x, void *y);

/* bias[channel] is added to x seen as [outer, channels, inner]; with relu, what is below 0 becomes 0. Float types. */
cudaError_t twi_cuda_bias_add(cudaStream_t stream, tw_dtype type, int64_t n, int64_t channels, int64_t inner, bool relu,
                              const void *x, const void *bias, void *y);

/* ---- move.cu --------------------------------------------------------------------------------------------------- */

enum { TWI_CUDA_MOVE_RANK = 2 * TW_MAX_RANK };

/* to[sum of k_i * to_i] = from[sum of k_i * from_i] for 0 <= k_i < size_i, outermost first; strides count elements, may
 * be 0 in `from` and negative in either. Rank 0: one element. */
typedef struct twi_cuda_move {
    int rank;
    int64_t size[TWI_CUDA_MOVE_RANK], from[TWI_CUDA_MOVE_RANK], to[TWI_CUDA_MOVE_RANK];
} twi_cuda_move;

/* `bytes` of an element: 1, 2, 4 or 8. */
cudaError_t twi_cuda_move_run(cudaStream_t stream, int bytes, const twi_cuda_move *move, const void *from, void *to);

/* Up to TWI_CUDA_PIECES tables of as many rows in one launch: row k of a piece, `width` elements, goes from
 * from + k * from_step to to + k * to_step. */
enum { TWI_CUDA_PIECES = 128 };
typedef struct twi_cuda_pieces {
    int count;
    int64_t rows;
    const void *from[TWI_CUDA_PIECES];
    void *to[TWI_CUDA_PIECES];
    int64_t width[TWI_CUDA_PIECES], from_step[TWI_CUDA_PIECES], to_step[TWI_CUDA_PIECES];
} twi_cuda_pieces;
cudaError_t twi_cuda_move_pieces(cudaStream_t stream, int bytes, const twi_cuda_pieces *pieces);

/* ---- reduce.cu ------------------------------------------------------------------------------------------------- */

typedef enum twi_cuda_fold {
    TWI_CUDA_SUM,
    TWI_CUDA_MEAN,
    TWI_CUDA_HALF_SQUARES, /* half the sum of squares */
    TWI_CUDA_PASSED,   /* the sum of what a ReLU's gradient lets pass, of columns: twi_cuda_relu_grad_bias() */
    TWI_CUDA_LARGEST,  /* of bools: any */
    TWI_CUDA_SMALLEST, /* all */
    TWI_CUDA_PRODUCT,
} twi_cuda_fold;

/* Output o is made of the elements at start(o) + start(k), o over the kept axes, k over the reduced ones; axes are
 * listed from the last to the first, neighbours of one kind joined. An output's elements are shared out over `splits`
 * parts by number; each is folded in an order, and then the parts in one, that sizes alone decide. */
typedef struct twi_cuda_reduction {
    twi_cuda_fold fold;
    int64_t outputs, inputs;        /* elements of the output; elements behind one of them */
    int num_kept, num_reduced;
    int64_t kept_size[TW_MAX_RANK], kept_step[TW_MAX_RANK];
    int64_t reduced_size[TW_MAX_RANK], reduced_step[TW_MAX_RANK];
    bool columns;                   /* one kept axis, the last, under one reduced: rows are read as they lie */
    int width, across, splits;      /* elements a thread takes at once; threads side by side; parts of an output */
    int64_t part;                   /* inputs of each */
} twi_cuda_reduction;

/* The number along the one reduced axis of the first extreme; NaN is none, unless it comes first. To int32 or int64. */
cudaError_t twi_cuda_find_extreme(cudaStream_t stream, tw_dtype type, const twi_cuda_reduction *d, const void *x,
                                  tw_dtype to, void *places);

/* Sets `columns` and what follows it from the rest; returns the bytes of workspace that a run needs. */
size_t twi_cuda_reduction_plan(twi_cuda_reduction *d, tw_dtype type);
/* The counters are the device's (last_block.cuh). */
cudaError_t twi_cuda_reduce(cudaStream_t stream, tw_dtype type, const twi_cuda_reduction *d, const void *x, void *y,
                            void *workspace, unsigned *counters);
/* The sums of many at once, all of them of columns; of parts there are as many floats, and of counters as many, as
 * twi_cuda_columns_parts() and twi_cuda_columns_blocks() of each add up to. */
enum { TWI_CUDA_SUMMED = 32 };
cudaError_t twi_cuda_sum_columns(cudaStream_t stream, tw_dtype type, int count, const twi_cuda_reduction *const *d,
                                 const void *const *x, void *const *y, float *parts, unsigned *counters);
int64_t twi_cuda_columns_parts(const twi_cuda_reduction *d);
int64_t twi_cuda_columns_blocks(const twi_cuda_reduction *d);
/* Sums of columns of dx, which is dy where y > 0, else 0, and may lie over either. */
cudaError_t twi_cuda_relu_grad_bias(cudaStream_t stream, tw_dtype type, const twi_cuda_reduction *d, const void *dy,
                                    const void *y, void *dx, void *db, void *workspace, unsigned *counters);

/* Kernels of images count elements in 32 bits, and beyond the end a block's worth of threads. */
enum { TWI_CUDA_MOST_ELEMENTS = 1 << 30 };

/* ---- pool.cu ----------------------------------------------------------------------------------------------------- */

/* Images [N,height,width,C], windows as in tensor/window.h; {vertical, horizontal}. Elements of an image tensor, pooled
 * or not, are at most TWI_CUDA_MOST_ELEMENTS, so that kernels count in 32 bits. */
typedef struct twi_cuda_pool {
    int batch, channels, image[2], output[2], size[2], stride[2], before[2];
    size_t shared;        /* bytes of shared memory that a block may have */
} twi_cuda_pool;

cudaError_t twi_cuda_max_pool(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const void *x, void *y);
/* Each pixel collects, window after window, the gradients of those whose first maximum it is. */
cudaError_t twi_cuda_max_pool_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const void *x,
                                   const void *dy, void *dx);
/* Means of the cells of a window that lie inside the image. */
cudaError_t twi_cuda_average_pool(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const void *x, void *y);
cudaError_t twi_cuda_average_pool_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const void *dy,
                                       void *dx);

/* ---- normalization.cu -------------------------------------------------------------------------------------------- */

enum { TWI_CUDA_MOST_LRN_CHANNELS = 4096 };

typedef struct twi_cuda_lrn {
    int pixels, channels, radius; /* a radius above the number of channels is as good as that */
    float bias, alpha, beta;
} twi_cuda_lrn;

cudaError_t twi_cuda_lrn_run(cudaStream_t stream, tw_dtype type, const twi_cuda_lrn *l, const void *x, void *y);
cudaError_t twi_cuda_lrn_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_lrn *l, const void *dy, const void *x,
                              const void *y, void *dx);

/* ---- pool_lrn.cu ------------------------------------------------------------------------------------------------- */

/* Whether rows of these images are short enough for all of the following. */
bool twi_cuda_bands_fit(const twi_cuda_pool *p);
/* Pooling, then normalization, or the other way round; argmax is the number of a window's cell that held the first
 * maximum, row by row. Gradients are those of both and, with relu, of the ReLU before them. */
cudaError_t twi_cuda_pool_lrn(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const twi_cuda_lrn *l,
                              const void *x, void *y, void *pooled, uint8_t *argmax);
cudaError_t twi_cuda_lrn_pool(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const twi_cuda_lrn *l,
                              const void *x, void *y, uint8_t *argmax);
cudaError_t twi_cuda_pool_lrn_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const twi_cuda_lrn *l,
                                   bool relu, const void *dy, const void *pooled, const uint8_t *argmax, void *dx);
cudaError_t twi_cuda_lrn_pool_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const twi_cuda_lrn *l,
                                   bool relu, const void *dy, const void *x, const uint8_t *argmax, void *dx);

/* ---- batch_norm.cu ----------------------------------------------------------------------------------------------- */

enum { TWI_CUDA_MOST_CHANNELS = 1 << 20 };

/* x is [rows, channels], of at most TWI_CUDA_MOST_ELEMENTS and TWI_CUDA_MOST_CHANNELS. */
typedef struct twi_cuda_batch_norm {
    int rows, channels;
    float epsilon;
    bool training;       /* moments are those of x itself */
    bool relu;           /* stands behind */
    /* Set by the plan: parts of the rows, each summed by itself; 1 / rows, and rows / (rows - 1). */
    int parts, rows_of_part;
    bool counted;        /* parts are of as many rows as stands behind them, a float for each: a convolution's */
    float share, bessel;
} twi_cuda_batch_norm;

/* Images are of a float type. */
typedef struct twi_cuda_normed {
    const void *gradients[2]; /* of y, to be added; the second may be NULL; forward there are none */
    const void *x, *side;     /* the image, and what is added before the ReLU; NULL: nothing */
    const void *y;            /* of the ReLU, for the gradient; NULL: it is computed again */
    const float *scale, *offset, *mean, *variance; /* [channels]; offset is not read by gradients without a ReLU */
} twi_cuda_normed;

/* [channels]: what the gradient wants, the variance biased; and what is passed on, with Bessel's correction. */
typedef struct twi_cuda_moments {
    float *mean, *variance, *batch_mean, *batch_variance;
} twi_cuda_moments;

/* Sets the parts from the rest; returns the bytes of workspace that a run needs. */
size_t twi_cuda_batch_norm_plan(twi_cuda_batch_norm *b);
/* What the parts of x give, for the run: the workspace holds [parts][quads of channels] of two times four floats, means
 * and sums of squares of what values differ from those. */
cudaError_t twi_cuda_batch_norm_moments(cudaStream_t stream, tw_dtype type, const twi_cuda_batch_norm *b, const void *x,
                                        void *workspace);
/* While training `to` is made of the parts; else the given moments are used. */
cudaError_t twi_cuda_batch_norm_run(cudaStream_t stream, tw_dtype type, const twi_cuda_batch_norm *b,
                                    const twi_cuda_normed *in, const twi_cuda_moments *to, void *y, void *workspace);
/* dside NULL: nobody wants what the ReLU let pass. */
cudaError_t twi_cuda_batch_norm_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_batch_norm *b,
                                     const twi_cuda_normed *in, void *dx, float *dscale, float *doffset, void *dside,
                                     void *workspace);

/* ---- index.cu ---------------------------------------------------------------------------------------------------- */

/* From x [batch, outer, rows, a row's bytes], by numbers [batch, picked]. */
typedef struct twi_cuda_picking {
    int64_t batch, outer, rows, picked, row_bytes;
} twi_cuda_picking;

/* Numbers, here and below, are int64 where `wide`, else int32; what is made has 2^31 elements at most. y [batch, outer,
 * picked, a row's bytes]; rows of zeros where a number is none of a row. */
cudaError_t twi_cuda_gather(cudaStream_t stream, const twi_cuda_picking *p, const void *x, bool wide,
                            const void *numbers, void *y);
/* y [outer, depth, inner] of elements of so many bytes: *on where the number [outer, inner] is the place along depth,
 * else *off. */
cudaError_t twi_cuda_one_hot(cudaStream_t stream, int bytes, int64_t outer, int64_t depth, int64_t inner, bool wide,
                             const void *numbers, const void *on, const void *off, void *y);
/* What lies at most *lower below and *upper above the diagonal, or anywhere below or above where that is negative, else
 * zeros. */
cudaError_t twi_cuda_band(cudaStream_t stream, int bytes, int64_t matrices, int64_t rows, int64_t columns, bool wide,
                          const void *lower, const void *upper, const void *x, void *y);
/* to [rows, row], at numbers[i], += or -= updates[i], for i from 0 to n - 1 in this order. Float types, int32, int64.
 */
cudaError_t twi_cuda_add_rows(cudaStream_t stream, tw_dtype type, bool subtracts, int64_t n, int64_t rows, int64_t row,
                              bool wide, const void *numbers, const void *updates, void *to);

/* ---- softmax.cu -------------------------------------------------------------------------------------------------- */

cudaError_t twi_cuda_softmax(cudaStream_t stream, tw_dtype type, bool logarithm, int64_t rows, int64_t classes,
                             const void *logits, void *y);
/* Labels are int32 or int64. A label that is no class gives NaN in its row, as on TensorFlow's GPUs: nobody could be
 * told in time. */
cudaError_t twi_cuda_sparse_cross_entropy(cudaStream_t stream, tw_dtype type, int64_t rows, int64_t classes,
                                          const void *logits, tw_dtype label_type, const void *labels, void *loss,
                                          void *backprop);

/* The same of labels that are distributions over classes, of the logits' type. */
cudaError_t twi_cuda_cross_entropy(cudaStream_t stream, tw_dtype type, int64_t rows, int64_t classes,
                                   const void *logits, const void *labels, void *loss, void *backprop);

/* The mean of losses by classes, float, and the gradient times *scale / divisor as numbers of type `to`; scale is a
 * float on the card. Types are float types. */
cudaError_t twi_cuda_softmax_loss(cudaStream_t stream, tw_dtype type, tw_dtype to, int64_t rows, int64_t classes,
                                  const void *logits, tw_dtype label_type, const void *labels, const float *scale,
                                  float divisor, float *loss, void *backprop);

/* Whether fewer than k of a row's float predictions exceed that of its target; all of them must be finite, the target
 * one of them. Targets and k, a scalar on the card, are int32 or int64. */
cudaError_t twi_cuda_in_top(cudaStream_t stream, int64_t rows, int64_t classes, const float *predictions,
                            tw_dtype target_type, const void *targets, const void *k, bool *in);

/* ---- many at once ------------------------------------------------------------------------------------------------ */

/* Arrays that a launch takes, whatever it does with them: a kernel may be called with 32 KB. */
enum { TWI_CUDA_MANY = 144 };

/* ---- state.cu ---------------------------------------------------------------------------------------------------- */

/* var = var + sign * value. Float types, int32, int64. */
cudaError_t twi_cuda_assign_add(cudaStream_t stream, tw_dtype type, int sign, int64_t n, void *var, const void *value);
/* How a variable follows its gradient; the numbers are scalars on the card, in the order of the op's inputs. */
typedef enum twi_cuda_rule {
    TWI_CUDA_DESCENT,   /* rate: var -= rate * gradient */
    TWI_CUDA_FOLLOWING, /* weight: var -= (var - gradient) * weight, an average of what is in the gradient's place */
    TWI_CUDA_MOMENTUM,  /* rate, momentum; those from here on have slots */
    TWI_CUDA_ADAGRAD,   /* rate, epsilon, which is 0 where it is not given */
    TWI_CUDA_ADAM,      /* two slots from here on: beta1_power, beta2_power, rate, beta1, beta2, epsilon */
    TWI_CUDA_RMS_PROP,  /* rate, rho, momentum, epsilon */
} twi_cuda_rule;

enum { TWI_CUDA_NUMBERS = 6 };

/* Up to TWI_CUDA_MANY variables of one float type, the numbers', in one launch. A gradient, of a float type of its own,
 * is gradient[0] + decay[0] * var, with two towers the sum of theirs times scale; decay NULL: none. Where there is a
 * loss, a scalar on the card, then first var -= loss * var; where there is an average, it follows what the variable has
 * become by *weight. */
typedef struct twi_cuda_update {
    twi_cuda_rule rule;
    bool nesterov;
    int count, towers;
    float scale;
    const void *numbers[TWI_CUDA_NUMBERS], *weight;
    void *var[TWI_CUDA_MANY], *slots[2][TWI_CUDA_MANY], *average[TWI_CUDA_MANY];
    const void *gradient[2][TWI_CUDA_MANY], *decay[2][TWI_CUDA_MANY], *loss[TWI_CUDA_MANY];
    uint8_t type[2][TWI_CUDA_MANY]; /* of the gradients: tw_dtype */
    int columns[TWI_CUDA_MANY];     /* 0, or the last axis of the variable, which is the first of its gradients */
    int64_t elements[TWI_CUDA_MANY];
    int first_block[TWI_CUDA_MANY]; /* filled in by the launcher */
} twi_cuda_update;

cudaError_t twi_cuda_update_many(cudaStream_t stream, tw_dtype type, twi_cuda_update *update);

/* ---- implicit_gemm.cu ------------------------------------------------------------------------------------------- */

typedef enum twi_conv_direction { TWI_CONV_FORWARD, TWI_CONV_BACKWARD_DATA, TWI_CONV_BACKWARD_FILTER } twi_conv_direction;

/* A convolution, or a gradient of one, by the matrix units of cards of compute capability 8.0 and newer, of floats that
 * are rounded to TF32. Images are [batch, sides, channels], filters [out channels, sides, in channels]; strides and
 * dilations are 1. */
typedef struct twi_cuda_conv {
    tw_dtype type; /* a float type */
    twi_conv_direction direction;
    bool relu;     /* cuts off what is not above 0, after the bias: forward, or where it is pooled */
    bool moments;  /* forward: those of the output will be wanted */
    bool pooled;   /* this pool and this normalization stand behind; not of the image's gradient */
    twi_cuda_pool pool;
    twi_cuda_lrn lrn;
    size_t shared; /* bytes of shared memory that a block may have */
    int batch, in_channels, out_channels;
    int image[2], output[2], size[2], before[2];
    unsigned *counters; /* for the filter's gradient: TWI_CUDA_COUNTERS of the device's (last_block.cuh) */
} twi_cuda_conv;

/* There are variants of the same numbers from 0 on, of which some card likes one best; none for most sizes. */
bool twi_cuda_conv_fits(const twi_cuda_conv *conv, int variant, size_t *workspace);
/* How many parts of its rows a variant leaves the moments of, where the convolution has `moments`. */
int twi_cuda_conv_parts(const twi_cuda_conv *conv, int variant);
/* What the direction computes is written, of the image, the filter and the output; bias may be NULL. Moments: NULL, or
 * where those of the output's parts go, as batch normalization's; then addresses are multiples of 16, and there is
 * neither bias nor ReLU. */
cudaError_t twi_cuda_conv_run(cudaStream_t stream, const twi_cuda_conv *conv, int variant, void *image, void *filter,
                              void *output, const void *bias, void *moments, void *workspace);

/* ---- conv_pool.cu ----------------------------------------------------------------------------------------------- */

enum { TWI_CUDA_CONV_POOLS = 6 }; /* the number of the variant that does what follows */

/* Whether one launch does a convolution that is pooled, forward, or all that follows here of its gradients. */
bool twi_cuda_conv_pool_fits(const twi_cuda_conv *conv, size_t *workspace);
/* With the pool and the normalization behind it; argmax as in pool_lrn.cu. */
cudaError_t twi_cuda_conv_pool(cudaStream_t stream, const twi_cuda_conv *conv, const void *image, const void *filter,
                               const void *bias, void *y, void *pooled, uint8_t *argmax);
/* The gradients of the filter, [sides, in channels, out channels], and of the bias, by that of y. */
cudaError_t twi_cuda_conv_pool_grad(cudaStream_t stream, const twi_cuda_conv *conv, const void *image, const void *dy,
                                    const void *pooled, const uint8_t *argmax, void *filter, void *bias,
                                    void *workspace);

/* ---- dense_loss.cu ---------------------------------------------------------------------------------------------- */

enum { TWI_CUDA_DENSE_WIDTH = 1000 }; /* most numbers of a row in what goes in, between the layers, and in the logits */

/* h = Relu(x * weights + bias); logits = h * last_weights + last_bias; their mean loss, and with that times *scale /
 * divisor the gradients of the logits, of what the ReLU let pass, and of x or, with relu, of what x let pass. */
typedef struct twi_cuda_dense_loss {
    int64_t rows;
    int inputs, hidden, classes;
    bool wide, relu; /* labels are int64 */
    float divisor;
    size_t shared;        /* bytes of shared memory that a block may have */
    const void *x, *weights, *bias, *last_weights, *last_bias, *labels;
    const float *scale;
    void *h, *dlogits, *dhidden, *dx;
    float *loss, *losses; /* of each row */
    unsigned *counter;    /* one of the device's (last_block.cuh) */
} twi_cuda_dense_loss;

bool twi_cuda_dense_loss_fits(int64_t inputs, int64_t hidden, int64_t classes);
cudaError_t twi_cuda_dense_loss_run(cudaStream_t stream, tw_dtype type, const twi_cuda_dense_loss *p);

/* ---- many_sums.cu ------------------------------------------------------------------------------------------------ */

enum { TWI_CUDA_MANY_SUMS_PARTS = 512 };

/* Half the sums of squares of up to TWI_CUDA_MANY tensors of one float type in one launch, or, if `finite`, bools
 * that say whether all of each is. Parts has room for TWI_CUDA_MANY_SUMS_PARTS; the counter is one of the device's
 * (last_block.cuh). */
typedef struct twi_cuda_many_sums {
    const void *x[TWI_CUDA_MANY];
    void *to[TWI_CUDA_MANY];
    int elements[TWI_CUDA_MANY], first_block[TWI_CUDA_MANY + 1]; /* the latter are filled in by the launcher */
    int count;
} twi_cuda_many_sums;

cudaError_t twi_cuda_many_sums_run(cudaStream_t stream, tw_dtype type, bool finite, twi_cuda_many_sums *sums,
                                   float *parts, unsigned *counter);

/* ---- gradients.cu ------------------------------------------------------------------------------------------------ */

/* Up to TWI_CUDA_MANY gradients, each of a float type of its own, end to end in one launch: to + begin gets
 * from + decay * var; decay NULL: none. Where `columns` is not 0, it is the first axis of from and the last of var. */
typedef struct twi_cuda_joins {
    int count;
    float *to;
    const void *from[TWI_CUDA_MANY];
    const float *var[TWI_CUDA_MANY], *decay[TWI_CUDA_MANY];
    int64_t begin[TWI_CUDA_MANY], elements[TWI_CUDA_MANY];
    int columns[TWI_CUDA_MANY];
    int first_block[TWI_CUDA_MANY]; /* filled in by the launcher */
    uint8_t type[TWI_CUDA_MANY];    /* tw_dtype */
} twi_cuda_joins;

cudaError_t twi_cuda_join_gradients(cudaStream_t stream, twi_cuda_joins *joins);

enum { TWI_CUDA_TERMS = 8 }; /* ORDER TERMS: rewrite/sums.c */

/* to = scale * the sum of 2 or more, neighbours first. */
typedef struct twi_cuda_mean {
    const float *from[TWI_CUDA_TERMS];
    float *to;
    int64_t elements;
    float scale;
    int count;
} twi_cuda_mean;

cudaError_t twi_cuda_mean_run(cudaStream_t stream, const twi_cuda_mean *mean);

/* ---- scalars.cu -------------------------------------------------------------------------------------------------- */

typedef enum twi_cuda_scalar_kind {
    TWI_CUDA_SCALAR_UNARY, /* by numbers of the lists above */
    TWI_CUDA_SCALAR_BINARY,
    TWI_CUDA_SCALAR_COMPARE,
    TWI_CUDA_SCALAR_TEST,
    TWI_CUDA_SCALAR_CAST,
    TWI_CUDA_SCALAR_SELECT,
    TWI_CUDA_SCALAR_ADD_N,
} twi_cuda_scalar_kind;

/* operands[first .. first + count); steps of one level do not wait for each other. */
typedef struct twi_cuda_scalar_step {
    uint8_t kind, op, type, to; /* types: tw_dtype, of the last operand and of the result */
    uint8_t first, count, level;
} twi_cuda_scalar_step;

/* A program of rewrite/scalars.c. Slot i holds input i, slot num_inputs + i the result of step i. */
typedef struct twi_cuda_scalars {
    const void *inputs[TWI_SCALARS_INPUTS];
    void *results[TWI_SCALARS_RESULTS];
    uint8_t input_bytes[TWI_SCALARS_INPUTS], result_bytes[TWI_SCALARS_RESULTS], result_slots[TWI_SCALARS_RESULTS];
    uint8_t operands[TWI_SCALARS_OPERANDS]; /* slots */
    twi_cuda_scalar_step steps[TWI_SCALARS_STEPS];
    int num_inputs, num_steps, num_results, num_levels;
} twi_cuda_scalars;

cudaError_t twi_cuda_scalars_run(cudaStream_t stream, const twi_cuda_scalars *scalars);

/* ---- weights.cu -------------------------------------------------------------------------------------------------- */

/* Up to TWI_CUDA_MANY arrays of floats in one launch, rounded to a float type. Where `columns` is not 0, `from` is
 * [elements / columns, columns], and `to` has its axes the other way round. */
typedef struct twi_cuda_casts {
    int count;
    const float *from[TWI_CUDA_MANY];
    void *to[TWI_CUDA_MANY];
    int64_t elements[TWI_CUDA_MANY];
    int columns[TWI_CUDA_MANY];
    int first_block[TWI_CUDA_MANY]; /* filled in by the launcher */
} twi_cuda_casts;

cudaError_t twi_cuda_cast_many(cudaStream_t stream, tw_dtype type, twi_cuda_casts *casts);

/* ---- random.cu --------------------------------------------------------------------------------------------------- */

typedef enum twi_cuda_distribution { TWI_CUDA_UNIFORM, TWI_CUDA_NORMAL, TWI_CUDA_TRUNCATED } twi_cuda_distribution;

/* Four floats a group, each group at its own place of the stream that begins at `start`. */
cudaError_t twi_cuda_random(cudaStream_t stream, twi_cuda_distribution distribution, twi_philox start, int64_t n,
                            float *y);

/* ---- examples.cu ------------------------------------------------------------------------------------------------- */

/* The batch of step *step, which lies on the card like all else: images and labels of a data set to numbers of that
 * type and labels. */
cudaError_t twi_cuda_examples(cudaStream_t stream, tw_dtype type, const twi_examples *examples, const void *images,
                              const void *labels, const void *step, void *batch, void *batch_labels);

#ifdef __cplusplus
}
#endif
#endif
