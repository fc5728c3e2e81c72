/* reduce.c - sums, means, products, extremes and their places along axes, running sums, L2Loss, _ReluGradBias, in plain
 * C.
 *
 * Neighbouring axes that are all kept or all reduced are joined. Floats are summed in double, in a fixed order, and
 * rounded once; the team shares outputs, never a sum, so results do not depend on the number of threads. */
#include "base/memory.h"
#include "device/cpu/plain/chain.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/reduction.h"
#include "device/cpu/plain/typed.h"

#include <math.h>

#pragma GCC diagnostic ignored "-Wtype-limits" /* one body serves signed and unsigned types */

/* A reduction's items first to last - 1, done for a run. */
typedef struct reduction_job {
    const twi_run *r;
    const twi_reduction *d;
} reduction_job;

#define REDUCTION_JOB                                                                                                  \
    const reduction_job *j = job;                                                                                      \
    const twi_reduction *d = j->d;                                                                                     \
    const REAL *x = j->r->inputs[0];                                                                                   \
    (void)thread

/* Where the last axis is kept, COLUMNS neighbouring outputs are made together, so that rows are read as they lie. */
#define COLUMNS 64
#define REDUCE_COLUMNS(f, ACCUMULATOR, first_value, combine, finish)                                                   \
    static void NAME(f##_columns)(const void *job, int64_t first, int64_t last, int thread)                            \
    {                                                                                                                  \
        REDUCTION_JOB;                                                                                                 \
        int64_t width = d->kept_size[0], blocks = (width + COLUMNS - 1) / COLUMNS, count = d->inputs;                  \
        (void)count;                                                                                                   \
        for (int64_t block = first; block < last; block++) {                                                           \
            int64_t column = block % blocks * COLUMNS, o = block / blocks * width + column;                            \
            int64_t n = width - column < COLUMNS ? width - column : COLUMNS;                                           \
            const REAL *base = x + twi_reduction_start(o, d->num_kept, d->kept_size, d->kept_step);                    \
            ACCUMULATOR results[COLUMNS];                                                                              \
            for (int i = 0; i < COLUMNS; i++)                                                                          \
                results[i] = first_value;                                                                              \
            for (int64_t k = 0; k < d->inputs; k++) {                                                                  \
                const REAL *row = base + twi_reduction_start(k, d->num_reduced, d->reduced_size, d->reduced_step);     \
                TWI_VECTOR_LOOP                                                                                        \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                    ACCUMULATOR a = results[i], b = row[i];                                                            \
                    results[i] = combine;                                                                              \
                }                                                                                                      \
            }                                                                                                          \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                ACCUMULATOR a = results[i];                                                                            \
                ((REAL *)j->r->outputs[0])[o + i] = (REAL)(finish);                                                    \
            }                                                                                                          \
        }                                                                                                              \
    }

/* out[o] = finish(fold of combine over x), from left to right; a run of neighbours goes through LANES partial results,
 * so that it can use vector instructions, and these are combined in order. */
#define LANES 16
#define REDUCE(f, ACCUMULATOR, first_value, combine, finish)                                                           \
    REDUCE_COLUMNS(f, ACCUMULATOR, first_value, combine, finish)                                                       \
    static void NAME(f##_outputs)(const void *job, int64_t first, int64_t last, int thread)                            \
    {                                                                                                                  \
        REDUCTION_JOB;                                                                                                 \
        REAL *out = j->r->outputs[0];                                                                                  \
        int64_t runs = d->run ? d->inputs / d->run : 0, count = d->inputs;                                             \
        int within = d->run > 1; /* axis 0 of the reduced ones is the run */                                           \
        (void)count;                                                                                                   \
        for (int64_t o = first; o < last; o++) {                                                                       \
            const REAL *base = x + twi_reduction_start(o, d->num_kept, d->kept_size, d->kept_step);                    \
            ACCUMULATOR lanes[LANES], a;                                                                               \
            for (int i = 0; i < LANES; i++)                                                                            \
                lanes[i] = first_value;                                                                                \
            for (int64_t k = 0; k < runs; k++) {                                                                       \
                const REAL *at = base + twi_reduction_start(k, d->num_reduced - within, d->reduced_size + within,      \
                                                            d->reduced_step + within);                                 \
                int64_t i = 0;                                                                                         \
                for (; i + LANES <= d->run; i += LANES) {                                                              \
                    TWI_VECTOR_LOOP                                                                                    \
                    for (int lane = 0; lane < LANES; lane++) {                                                         \
                        ACCUMULATOR b = at[i + lane];                                                                  \
                        a = lanes[lane];                                                                               \
                        lanes[lane] = combine;                                                                         \
                    }                                                                                                  \
                }                                                                                                      \
                for (; i < d->run; i++) {                                                                              \
                    ACCUMULATOR b = at[i];                                                                             \
                    a = lanes[0];                                                                                      \
                    lanes[0] = combine;                                                                                \
                }                                                                                                      \
            }                                                                                                          \
            for (int lane = 1; lane < LANES; lane++) {                                                                 \
                ACCUMULATOR b = lanes[lane];                                                                           \
                a = lanes[0];                                                                                          \
                lanes[0] = combine;                                                                                    \
            }                                                                                                          \
            a = lanes[0];                                                                                              \
            out[o] = (REAL)(finish);                                                                                   \
        }                                                                                                              \
    }                                                                                                                  \
    static tw_status NAME(f)(const twi_run *r)                                                                         \
    {                                                                                                                  \
        return reduce(r, NAME(f##_columns), NAME(f##_outputs));                                                        \
    }

/* Along the one reduced axis: each place has what lies up to it, or before it. */
#define RUNNING(f, first_value, combine)                                                                               \
    static void NAME(f##_outputs)(const void *job, int64_t first, int64_t last, int thread)                            \
    {                                                                                                                  \
        REDUCTION_JOB;                                                                                                 \
        for (int64_t o = first; o < last; o++) {                                                                       \
            int64_t start = twi_reduction_start(o, d->num_kept, d->kept_size, d->kept_step);                           \
            int64_t step = d->num_reduced ? d->reduced_step[0] : 0;                                                    \
            REAL a = first_value;                                                                                      \
            for (int64_t k = 0; k < d->inputs; k++) {                                                                  \
                int64_t at = start + (d->reverse ? d->inputs - 1 - k : k) * step;                                      \
                REAL b = x[at], before = a;                                                                            \
                a = combine;                                                                                           \
                ((REAL *)j->r->outputs[0])[at] = d->exclusive ? before : a;                                            \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static tw_status NAME(f)(const twi_run *r)                                                                         \
    {                                                                                                                  \
        return reduce(r, NULL, NAME(f##_outputs));                                                                     \
    }

/* The team shares outputs, or groups of columns. */
static tw_status reduce(const twi_run *r, twi_share *columns, twi_share *outputs)
{
    twi_reduction now;
    const twi_reduction *d = twi_reduction_of(r, &now);
    if (!d)
        return TW_INVALID_ARGUMENT;
    reduction_job job = {r, d};
    int64_t width = d->kept_size[0], items = r->output_operands[0].elements ? d->outputs : 0;
    bool by_columns = columns && d->run == 1 && d->outputs > 1 && d->kept_step[0] == 1;
    if (by_columns)
        items = d->outputs / width * ((width + COLUMNS - 1) / COLUMNS);
    twi_team_run(twi_team_for(r, items, d->outputs * d->inputs), by_columns ? columns : outputs, &job, items);
    return TW_OK;
}

static tw_status find_extreme(const twi_run *r, twi_share *outputs)
{
    if (r->input_operands[0].elements == 0 && r->output_operands[0].elements > 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "the axis to search is empty");
    return reduce(r, NULL, outputs);
}

/* The logarithm of e^a + e^b; of nothing and nothing, nothing. */
static double logsumexp(double a, double b)
{
    double more = a > b ? a : b, less = a > b ? b : a;
    return isinf(more) ? more : isnan(a + b) ? NAN : more + log1p(exp(less - more));
}

#define BODY "device/cpu/plain/reduce.inl"
#define LEAST -INFINITY
#define GREATEST INFINITY
#define MEAN_OF(sum, count) ((sum) / (double)(count))
#include "device/cpu/plain/for_floats.h"
#undef MEAN_OF
#define MEAN_OF(sum, count) ((count) ? (sum) / (double)(count) : 0) /* as TensorFlow's of none */
#include "device/cpu/plain/for_complex.h"
#undef BODY
#define BODY "device/cpu/plain/reduce_ordered.inl"
#include "device/cpu/plain/for_floats.h"
#undef BODY
#define BODY "device/cpu/plain/reduce_float.inl"
#include "device/cpu/plain/for_floats.h"
#undef BODY
#define BODY "device/cpu/plain/reduce.inl"
#undef LEAST
#undef GREATEST
#undef MEAN_OF
#define LEAST (REAL)-1 < 0 ? (REAL)((uint64_t)1 << (8 * sizeof(REAL) - 1)) : 0
#define GREATEST (REAL)-1 < 0 ? (REAL)(((uint64_t)1 << (8 * sizeof(REAL) - 1)) - 1) : (REAL)-1
/* The sum is whole, so the mean lies among the values; it is cut towards zero. */
#define MEAN_OF(sum, count)                                                                                            \
    (!(count) ? 0 : (REAL)-1 < 0 ? (REAL)((int64_t)(sum) / (count)) : (REAL)((sum) / (uint64_t)(count)))
#include "device/cpu/plain/for_integers.h"
#undef BODY
#define BODY "device/cpu/plain/reduce_ordered.inl"
#include "device/cpu/plain/for_integers.h"
#undef BODY

#define REAL uint8_t
#define NAME(f) f##_bool
REDUCE(all, uint8_t, 1, a &&b, a)
REDUCE(any, uint8_t, 0, a || b, a)
#undef REAL
#undef NAME

/* Half the sum of squares. Blocks of a fixed size, whose sums are added in order: the team shares blocks. */
#define L2_LOSS(f, REAL)                                                                                               \
    static tw_status f(const twi_run *r)                                                                               \
    {                                                                                                                  \
        enum { BLOCK = 8192, MOST = 4096 };                                                                            \
        const REAL *x = r->inputs[0];                                                                                  \
        int64_t n = r->input_operands[0].elements, blocks = (n + BLOCK - 1) / BLOCK;                                   \
        double total = 0, sums[MOST];                                                                                  \
        for (int64_t first = 0; first < blocks; first += MOST) {                                                       \
            int64_t last = blocks - first < MOST ? blocks : first + MOST;                                              \
            TWI_PRAGMA(omp parallel for num_threads(twi_team_for(r, last - first, n)))                                 \
            for (int64_t k = first; k < last; k++) {                                                                   \
                double lanes[LANES] = {0};                                                                             \
                int64_t end = n - k * BLOCK < BLOCK ? n : (k + 1) * BLOCK, i = k * BLOCK;                              \
                for (; i + LANES <= end; i += LANES) {                                                                 \
                    TWI_VECTOR_LOOP                                                                                    \
                    for (int lane = 0; lane < LANES; lane++)                                                           \
                        lanes[lane] += (double)x[i + lane] * (double)x[i + lane];                                      \
                }                                                                                                      \
                for (; i < end; i++)                                                                                   \
                    lanes[0] += (double)x[i] * (double)x[i];                                                           \
                for (int lane = 1; lane < LANES; lane++)                                                               \
                    lanes[0] += lanes[lane];                                                                           \
                sums[k - first] = lanes[0];                                                                            \
            }                                                                                                          \
            for (int64_t k = first; k < last; k++)                                                                     \
                total += sums[k - first];                                                                              \
        }                                                                                                              \
        *(REAL *)r->outputs[0] = (REAL)(total / 2);                                                                    \
        return TW_OK;                                                                                                  \
    }
L2_LOSS(l2_loss_float, float)
L2_LOSS(l2_loss_double, double)

TWI_WIDENED(sum)
TWI_WIDENED(mean)
TWI_WIDENED(product)
TWI_WIDENED(maximum)
TWI_WIDENED(minimum)
TWI_WIDENED(arg_max)
TWI_WIDENED(arg_min)
TWI_WIDENED(running_sum)
TWI_WIDENED(running_product)
TWI_WIDENED(running_logsumexp)
TWI_WIDENED(euclidean_norm)
TWI_WIDENED(l2_loss)

#define NUMBER_ROWS(op, prepare, f, release)                                                                           \
    TWI_FLOAT_ROWS(op, prepare, f, release), TWI_INTEGER_ROWS(op, prepare, f, release)

/* _ReluGradBias (gradients, features): also by the links' fastest kernels. On a CPU nothing is gained by joining them,
 * and nothing shall be lost. */
static const twi_link relu_grad_bias[] = {{"ReluGrad", 2, {0, 1}, -1}, {"BiasAddGrad", 1, {-1}, -2}};

static tw_status prepare_relu_grad_bias(twi_prepare *p)
{
    return twi_chain_prepare(p, true, relu_grad_bias, 2);
}

static tw_status prepare_fast_relu_grad_bias(twi_prepare *p)
{
    p->can_overwrite[0] = p->can_overwrite[1] = true; /* as ReluGrad may */
    return twi_chain_prepare(p, false, relu_grad_bias, 2);
}

#define FUSED_TYPES (TWI_NARROW_TYPES | TWI_TYPE(TW_FLOAT32))

const twi_kernel twi_cpu_reduce_kernels[] = {
    NUMBER_ROWS("Sum", twi_prepare_reduction, sum, twi_free),
    TWI_COMPLEX_ROWS("Sum", twi_prepare_reduction, sum, twi_free),
    NUMBER_ROWS("Mean", twi_prepare_reduction, mean, twi_free),
    TWI_COMPLEX_ROWS("Mean", twi_prepare_reduction, mean, twi_free),
    NUMBER_ROWS("Prod", twi_prepare_reduction, product, twi_free),
    TWI_COMPLEX_ROWS("Prod", twi_prepare_reduction, product, twi_free),
    NUMBER_ROWS("Max", twi_prepare_reduction, maximum, twi_free),
    NUMBER_ROWS("Min", twi_prepare_reduction, minimum, twi_free),
    {"All", "plain", 0, twi_prepare_reduction, all_bool, twi_free},
    {"Any", "plain", 0, twi_prepare_reduction, any_bool, twi_free},
    NUMBER_ROWS("ArgMax", twi_prepare_reduction, arg_max, twi_free),
    NUMBER_ROWS("ArgMin", twi_prepare_reduction, arg_min, twi_free),
    {"ArgMax", "plain", TWI_TYPE(TW_BOOL), twi_prepare_reduction, arg_max_uint8, twi_free},
    {"ArgMin", "plain", TWI_TYPE(TW_BOOL), twi_prepare_reduction, arg_min_uint8, twi_free},
    NUMBER_ROWS("Cumsum", twi_prepare_reduction, running_sum, twi_free),
    TWI_COMPLEX_ROWS("Cumsum", twi_prepare_reduction, running_sum, twi_free),
    NUMBER_ROWS("Cumprod", twi_prepare_reduction, running_product, twi_free),
    TWI_COMPLEX_ROWS("Cumprod", twi_prepare_reduction, running_product, twi_free),
    TWI_FLOAT_ROWS("CumulativeLogsumexp", twi_prepare_reduction, running_logsumexp, twi_free),
    TWI_FLOAT_ROWS("EuclideanNorm", twi_prepare_reduction, euclidean_norm, twi_free),
    TWI_FLOAT_ROWS("L2Loss", twi_prepare_typed, l2_loss, NULL),
    {"_ReluGradBias", "chain", FUSED_TYPES, prepare_fast_relu_grad_bias, twi_chain_run, twi_chain_release},
    {"_ReluGradBias", "plain", FUSED_TYPES, prepare_relu_grad_bias, twi_chain_run, twi_chain_release},
    {0},
};
