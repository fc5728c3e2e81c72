/* loops.h - the CPU's own inner loops, built once for each kind of vector unit, and the choice among them.
 * Lives here:  what a loop is told (jobs), how its scratch is laid out, the table of loops.
 * Never here:  the loops (loops.inl, rows.h), ops (activation.c and its like).
 *
 * A loop is written with the compiler's vector types and built for AVX-512, AVX2 and the baseline; other CPUs have the
 * baseline. All builds do the same operations in the same order, lane by lane, so they give the same bits; and the bits
 * do not depend on the number of threads. */
#ifndef TWI_LOOPS_H
#define TWI_LOOPS_H

#include "base/philox.h"
#include "device/cpu/plain/broadcast.h"
#include "device/cpu/plain/reduction.h"
#include "device/cpu/team.h" /* twi_share */
#include "device/cpu/vector/casts.h"
#include "device/cpu/vector/transform.h"
#include "tensor/attr.h"
#include "tensor/window.h"

#include <stdbool.h>
#include <stdint.h>

/* How numbers lie in memory. */
typedef enum twi_form {
    TWI_FLOATS,  /* float */
    TWI_BFLOATS, /* bfloat16 */
} twi_form;

static inline twi_form twi_form_of(tw_dtype dtype)
{
    return dtype == TW_BFLOAT16 ? TWI_BFLOATS : TWI_FLOATS;
}

/* Scratch is padded to this many floats, the widest vector there is. */
enum { TWI_PAD = 16 };

/* ---- element by element ------------------------------------------------------------------------------------ */

/* Elements an item of such a job has: less is not worth waking the team. */
enum { TWI_CHUNK = 8192 };

typedef enum twi_rectifier {
    TWI_RELU,
    TWI_RELU6,
    TWI_LEAKY_RELU,
} twi_rectifier;

typedef struct twi_elements_job {
    twi_form form; /* of a cast: what it starts from; it ends in the other */
    const void *a, *b; /* b: of a gradient, the ReLU's input or (not a leaky one's) output */
    void *out;
    int64_t elements;
    twi_rectifier rectifier; /* of a ReLU, */
    float slope;             /* and of a leaky one below 0 */
} twi_elements_job;

/* Functions of floats, a loop each: an op and its y from x, or its z from x and y, which broadcast. One more is one
 * line more, to which loops.inl makes the loop and elementwise.c the row. */
#define TWI_SELU_SCALE 1.05070099f
#define TWI_SELU_SCALE_ALPHA 1.75809934f
#define TWI_UNARY_FUNCTIONS(X)                                                                                         \
    X(Tanh, twi_tanh(x))                                                                                               \
    X(Sigmoid, twi_sigmoid(x))                                                                                         \
    X(Exp, twi_exp(x))                                                                                                 \
    X(Log, twi_log(x))                                                                                                 \
    X(Log1p, twi_log1p(x))                                                                                             \
    X(Sin, twi_sine(x, false))                                                                                         \
    X(Cos, twi_sine(x, true))                                                                                          \
    X(Atan, twi_atan2(x, (twi_floats){0} + 1))                                                                         \
    X(Expm1, twi_expm1(x))                                                                                             \
    X(Asin, twi_asin(x))                                                                                               \
    X(Acos, twi_acos(x))                                                                                               \
    X(Atanh, twi_atanh(x))                                                                                             \
    X(Floor, twi_floor(x))                                                                                             \
    X(Ceil, -twi_floor(-x))                                                                                            \
    X(Round, twi_rint(x))                                                                                              \
    X(Rint, twi_rint(x))                                                                                               \
    X(Erf, twi_erf(x))                                                                                                 \
    X(Erfc, twi_erfc(x))                                                                                               \
    X(Softplus, twi_softplus(x))                                                                                       \
    X(Elu, twi_choose(x < 0, twi_expm1(x), x))                                                                         \
    X(Selu, twi_choose(x < 0, twi_expm1(x) * TWI_SELU_SCALE_ALPHA, x * TWI_SELU_SCALE))                                \
    X(Sqrt, twi_sqrt(x))                                                                                               \
    X(Rsqrt, 1 / twi_sqrt(x))                                                                                          \
    X(Square, x *x)                                                                                                    \
    X(Reciprocal, 1 / x)                                                                                               \
    X(Softsign, x / (twi_magnitude(x) + 1))                                                                            \
    X(Sign, twi_sign(x))                                                                                               \
    X(Abs, twi_magnitude(x))                                                                                           \
    X(Neg, -x)

#define TWI_BINARY_FUNCTIONS(X)                                                                                        \
    X(Add, x + y)                                                                                                      \
    X(AddV2, x + y)                                                                                                    \
    X(Sub, x - y)                                                                                                      \
    X(Mul, x *y)                                                                                                       \
    X(Div, x / y)                                                                                                      \
    X(RealDiv, x / y)                                                                                                  \
    X(Maximum, twi_choose((x > y) | (x != x), x, y))                                                                   \
    X(Minimum, twi_choose((x < y) | (x != x), x, y))                                                                   \
    X(DivNoNan, twi_pass(~(y == 0), x / y))                                                                            \
    X(Atan2, twi_atan2(x, y))                                                                                          \
    X(FloorDiv, twi_floor(x / y))                                                                                      \
    X(SquaredDifference, (x - y) * (x - y))                                                                            \
    X(TanhGrad, y *(1 - x * x))                                                                                        \
    X(SigmoidGrad, y *x *(1 - x))                                                                                      \
    X(SoftplusGrad, x / (twi_exp(0 - y) + 1))                                                                          \
    X(EluGrad, twi_choose(y < 0, x * (y + 1), x))                                                                      \
    X(SeluGrad, twi_choose(y < 0, x * (y + TWI_SELU_SCALE_ALPHA), x * TWI_SELU_SCALE))

/* The same of doubles: those that cost more than to read and write. */
#define TWI_DOUBLE_SELU_SCALE 1.0507009873554805
#define TWI_DOUBLE_SELU_SCALE_ALPHA 1.7580993408473769
#define TWI_UNARY_FUNCTIONS_OF_DOUBLES(X)                                                                              \
    X(Tanh, twi_double_tanh(x))                                                                                        \
    X(Sigmoid, twi_double_sigmoid(x))                                                                                  \
    X(Exp, twi_double_exp(x))                                                                                          \
    X(Expm1, twi_double_expm1(x))                                                                                      \
    X(Log, twi_double_log(x))                                                                                          \
    X(Log1p, twi_double_log1p(x))                                                                                      \
    X(Atan, twi_double_atan2(x, (twi_doubles){0} + 1))                                                                 \
    X(Floor, twi_double_floor(x))                                                                                      \
    X(Ceil, -twi_double_floor(-x))                                                                                     \
    X(Round, twi_double_rint(x))                                                                                       \
    X(Rint, twi_double_rint(x))                                                                                        \
    X(Softplus, twi_double_softplus(x))                                                                                \
    X(Elu, twi_double_choose(x < 0, twi_double_expm1(x), x))                                                           \
    X(Selu, twi_double_choose(x < 0, twi_double_expm1(x) * TWI_DOUBLE_SELU_SCALE_ALPHA,                                \
                              x * TWI_DOUBLE_SELU_SCALE))                                                              \
    X(Relu, twi_double_choose(x <= 0, (twi_doubles){0}, x))                                                            \
    X(Relu6, twi_double_choose(x <= 0, (twi_doubles){0}, twi_double_choose(x > 6, (twi_doubles){0} + 6, x)))           \
    X(Sqrt, twi_double_sqrt(x))                                                                                        \
    X(Rsqrt, 1 / twi_double_sqrt(x))

#define TWI_BINARY_FUNCTIONS_OF_DOUBLES(X)                                                                             \
    X(Atan2, twi_double_atan2(x, y))                                                                                   \
    X(ReluGrad, twi_double_choose(y > 0, x, (twi_doubles){0}))                                                         \
    X(Relu6Grad, twi_double_choose((y > 0) & (y < 6), x, (twi_doubles){0}))                                            \
    X(SoftplusGrad, x / (twi_double_exp(0 - y) + 1))

#define TWI_FUNCTION_NUMBER(op, expression) TWI_FUNCTION_##op,
#define TWI_DOUBLE_FUNCTION_NUMBER(op, expression) TWI_FUNCTION_##op##_of_doubles,
enum {
    TWI_UNARY_FUNCTIONS(TWI_FUNCTION_NUMBER) TWI_BINARY_FUNCTIONS(TWI_FUNCTION_NUMBER)
    TWI_UNARY_FUNCTIONS_OF_DOUBLES(TWI_DOUBLE_FUNCTION_NUMBER)
    TWI_BINARY_FUNCTIONS_OF_DOUBLES(TWI_DOUBLE_FUNCTION_NUMBER)
    TWI_FUNCTIONS
};

typedef struct twi_function_job {
    const void *x, *y; /* y: of a binary function, */
    void *out;
    int64_t elements;
    const twi_broadcast *walk; /* and so is this; where it has one run items are chunks, else runs */
} twi_function_job;

/* Numbers in [0, 1) of a stream, four a block; items are chunks. */
typedef struct twi_uniform_job {
    twi_philox start;
    float *out;
    int64_t elements;
} twi_uniform_job;

/* An update of many variables; chunks are counted through all of them. */
typedef struct twi_update_job {
    float rate, scale;
    int count, towers;          /* towers: 1, or 2, whose gradients are added and multiplied by scale */
    const int64_t *elements;    /* [count] */
    const int64_t *first_chunk; /* [count + 1] of each, and the number of all */
    const void *const *vars;    /* [count], written to */
    const void *const *values;  /* [towers][count]: gradients, or what averages follow */
    const float *const *decays; /* [towers][count]; an entry may be NULL */
} twi_update_job;

/* Sums over rows are made chunk by chunk, each alone, and the chunks' sums added in order: so the bits depend on the
 * shape only, never on the team. */
enum { TWI_CHUNK_ROWS = 256 };

/* Matrices [rows, channels] and vectors [channels]. */
typedef struct twi_rows_job {
    twi_form form;
    int64_t rows, channels;
    const void *x;         /* values */
    const void *bias;
    const void *dy;        /* gradient of the output */
    /* of a normalization with a ReLU behind it */
    bool relu;
    const void *side;      /* what is added before the ReLU; NULL: nothing */
    const void *more_dy;   /* is added to dy; NULL: nothing */
    const void *y;         /* of a gradient: what the ReLU gave; NULL: it is computed again */
    void *masked;          /* [rows, channels] if not NULL: where sum_products puts the gradient the ReLU lets pass */
    void *out;
    float *sums, *products; /* [chunks, channels] */
    const float *mean, *factor, *offset, *mean_dy, *mean_product; /* of a normalization; see loops.inl */
} twi_rows_job;

static inline int64_t twi_row_chunks(int64_t rows)
{
    return (rows + TWI_CHUNK_ROWS - 1) / TWI_CHUNK_ROWS;
}

/* ---- sums of axes ------------------------------------------------------------------------------------------ */

/* Columns that are summed up together where the last axis is kept. */
enum { TWI_SUM_COLUMNS = 64 };

typedef struct twi_sum_job {
    const twi_reduction *reduction;
    const float *x;
    float *out;
    double divisor; /* of a mean; else 1 */
} twi_sum_job;

/* ---- pools ------------------------------------------------------------------------------------------------- */

/* Cells of a window whose maximum is remembered as a byte. */
enum { TWI_MOST_CELLS = 256 };

typedef struct twi_pool {
    int64_t height, width, channels;    /* of the image */
    int64_t out_height, out_width;
    int64_t size[2], stride[2], before[2];
} twi_pool;

static inline twi_pool twi_pool_of(const twi_window *w, int64_t channels)
{
    return (twi_pool){
        .height = w->image[0], .width = w->image[1], .channels = channels,
        .out_height = w->output[0], .out_width = w->output[1],
        .size = {w->size[0], w->size[1]}, .stride = {w->stride[0], w->stride[1]},
        .before = {w->before[0], w->before[1]},
    };
}

/* ---- local response normalization -------------------------------------------------------------------------- */

/* y = x * d^-beta,  d = bias + alpha * (sum of squares of the channels c-radius ... c+radius) */
typedef struct twi_lrn {
    int64_t channels, radius;
    float bias, alpha, beta;
} twi_lrn;

static inline twi_lrn twi_lrn_of(const twi_attrs *attrs, int64_t channels)
{
    return (twi_lrn){
        .channels = channels, .radius = twi_attr_int(attrs, "depth_radius", 5),
        .bias = twi_attr_float(attrs, "bias", 1), .alpha = twi_attr_float(attrs, "alpha", 1),
        .beta = twi_attr_float(attrs, "beta", 0.5f),
    };
}

/* Pixels done together: what is stored to the scratch is read back shifted by single channels, which is slow until it
 * has left the store buffer, so a few pixels go in before the first comes out. */
enum { TWI_LRN_PIXELS = 16 };

static inline int64_t twi_lrn_padded(const twi_lrn *l)
{
    return (l->channels + TWI_PAD - 1) / TWI_PAD * TWI_PAD;
}

/* Zeros before and after a scratch pixel, for the windows that reach over its ends. */
static inline int64_t twi_lrn_margin(int64_t radius)
{
    return (radius + TWI_PAD - 1) / TWI_PAD * TWI_PAD;
}

/* Floats of a scratch pixel. */
static inline int64_t twi_lrn_pitch(const twi_lrn *l)
{
    return twi_lrn_padded(l) + 2 * twi_lrn_margin(l->radius);
}

/* The window may reach over a pixel's ends, within reason. */
static inline bool twi_lrn_fits(const twi_lrn *l)
{
    bool positive = l->bias > 0 && l->alpha >= 0; /* what there are roots of */
    return positive && l->radius >= 0 && l->radius <= l->channels + TWI_PAD;
}

/* Bytes of scratch for one thread; zero before the first pixels, as the margins stay. */
static inline size_t twi_lrn_scratch(const twi_lrn *l)
{
    return (size_t)(2 * twi_lrn_pitch(l) + twi_lrn_padded(l)) * TWI_LRN_PIXELS * sizeof(float);
}

/* ---- jobs of images ---------------------------------------------------------------------------------------- */

typedef struct twi_image_job {
    twi_form form;
    bool relu;             /* of gradients: a ReLU stands before */
    twi_pool pool;
    twi_lrn lrn;
    int64_t pixels;        /* of a normalization alone; where there is a pool, images (or what the kernel counts) */
    size_t scratch;        /* bytes of workspace a thread has: lrn_scratch for the normalization, then the image */
    size_t lrn_scratch;
    const void *input;     /* images; of gradients: what went into the pool or the normalization */
    const void *gradient;  /* of the output; NULL: forward */
    const void *normalized; /* of the gradient of a normalization alone: what it gave */
    const uint8_t *argmax;
    void *output, *pooled;
    uint8_t *argmax_out;
    char *workspace;
} twi_image_job;

/* ---- softmax ----------------------------------------------------------------------------------------------- */

/* Rows [rows, classes] of floats. With `loss` output is the gradient of the losses, else the softmax. */
typedef struct twi_softmax_job {
    int64_t rows, classes;
    const float *logits;
    const void *labels; /* [rows] each 0 to classes - 1; NULL where there is no loss */
    bool wide_labels;   /* they are int64_t, not int32_t */
    bool logarithm;     /* the softmax's; then output lies elsewhere than logits */
    float *output, *loss;
} twi_softmax_job;

/* ---- depthwise convolutions -------------------------------------------------------------------------------- */

/* Images NHWC, filter [kh,kw,channels]: each channel sees itself alone. */
typedef struct twi_depthwise_job {
    twi_form form;
    twi_window window;
    int64_t rows, channels; /* rows: of all outputs, which are the items */
    const void *input, *filter;
    void *output;
} twi_depthwise_job;

/* ---- the table --------------------------------------------------------------------------------------------- */

typedef struct twi_loops {
    const char *name; /* "avx512" */
    twi_share *cast, *relu, *relu_gradient; /* twi_elements_job; items are chunks */
    twi_share *casts[TWI_NUM_CASTS];        /* the same, from a to out */
    twi_share *functions[TWI_FUNCTIONS];    /* twi_function_job */
    /* Every step-th of `in`, count of them, by t's factors from number `level` on; their root is t's of number
     * `stride`. */
    void (*transform)(const twi_transform *t, const twi_transform_rows *in, twi_transform_rows *out, int64_t count,
                      int64_t step, int64_t stride, int level);
    twi_share *uniform;                     /* twi_uniform_job; chunks */
    twi_share *descend, *follow;            /* twi_update_job; chunks */
    twi_share *sum_runs, *sum_columns;      /* twi_sum_job; items are outputs, and groups of columns */
    twi_share *add_bias;                    /* twi_rows_job; items are rows */
    twi_share *sum_rows, *sum_squares, *sum_moments; /* chunks of rows; see loops.inl */
    twi_share *normalize_rows;              /* rows */
    twi_share *sum_products;                /* chunks of rows */
    twi_share *normalize_rows_gradient;     /* rows */
    twi_share *softmax;                     /* twi_softmax_job; rows */
    twi_share *depthwise;                   /* twi_depthwise_job; rows of the output */
    twi_share *max_pool;                    /* twi_image_job; rows of the output */
    twi_share *max_pool_gradient;           /* images */
    twi_share *lrn;                         /* groups of TWI_LRN_PIXELS pixels; with a gradient, its gradient */
    twi_share *pool_lrn;                    /* rows of the output */
    twi_share *pool_lrn_gradient;           /* images */
    twi_share *lrn_pool, *lrn_pool_gradient; /* images */
} twi_loops;

const twi_loops *twi_loops_best(void);          /* for this CPU */
const twi_loops *const *twi_loops_usable(void); /* all that this CPU can run, ended by NULL; for tests */

/* Sums of dy's columns, which are the gradient of a bias; sums is room for twi_row_chunks(rows) * channels floats. */
void twi_sum_columns(int threads, twi_form form, const void *dy, int64_t rows, int64_t channels, float *sums,
                     twi_form out_form, void *out);

#endif
