/* reduce.c - sums, means, products, extremes and their places along axes, running sums, L2Loss, _ReluGradBias, in plain
 * C.
 *
 * Neighbouring axes that are all kept or all reduced are joined. Floats are summed in double, in a fixed order, and
 * rounded once; the team shares outputs, never a sum, so results do not depend on the number of threads. */
#include "base/memory.h"
#include "device/cpu/plain/chain.h"
#include "device/cpu/plain/typed.h"

#include <math.h>

#pragma GCC diagnostic ignored "-Wtype-limits" /* one body serves signed and unsigned types */

/* Output o is made of the elements at start(o) + start(k), o over the kept axes, k over the reduced ones. */
typedef struct reduction {
    bool exclusive, reverse;    /* of running sums */
    bool ready;                 /* the axes were known when the kernel was prepared */
    int64_t outputs, inputs;    /* elements of the output; elements behind one of them */
    int num_kept, num_reduced;
    int64_t kept_size[TW_MAX_RANK], kept_step[TW_MAX_RANK];
    int64_t reduced_size[TW_MAX_RANK], reduced_step[TW_MAX_RANK];
    int64_t run;                /* length of the last reduced axis if its elements are neighbours, else 1 */
} reduction;

static int64_t integer_at(const twi_operand *operand, const void *data, int64_t i)
{
    return operand->dtype == TW_INT64 ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
}

static tw_status plan_reduction(reduction *d, const twi_operand *input, const twi_operand *axes, const void *values,
                                tw_error *error)
{
    bool reduced[TW_MAX_RANK] = {false};
    int rank = input->shape.rank;
    for (int64_t i = 0; i < axes->elements; i++) {
        int64_t axis = integer_at(axes, values, i);
        if (axis < -rank || axis >= rank)
            return twi_fail(error, TW_INVALID_ARGUMENT, "axis %lld, expected -%d to %d", (long long)axis, rank, rank - 1);
        reduced[axis < 0 ? axis + rank : axis] = true;
    }
    *d = (reduction){.exclusive = d->exclusive, .reverse = d->reverse, .ready = true, .outputs = 1, .inputs = 1, .run = 1};
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) { /* fills the lists from the last axis to the first */
        int64_t size = input->shape.dims[i];
        int *count = reduced[i] ? &d->num_reduced : &d->num_kept;
        int64_t *sizes = reduced[i] ? d->reduced_size : d->kept_size;
        int64_t *steps = reduced[i] ? d->reduced_step : d->kept_step;
        bool joins = i < rank - 1 && reduced[i] == reduced[i + 1] && *count > 0;
        if (joins) {
            sizes[*count - 1] *= size;
        } else {
            sizes[*count] = size;
            steps[(*count)++] = step;
        }
        *(reduced[i] ? &d->inputs : &d->outputs) *= size;
        step *= size;
    }
    if (d->num_reduced && d->reduced_step[0] == 1)
        d->run = d->reduced_size[0];
    return TW_OK;
}

static int64_t start_of(int64_t index, int count, const int64_t *size, const int64_t *step)
{
    int64_t start = 0;
    for (int i = 0; i < count; i++) {
        start += index % size[i] * step[i];
        index /= size[i];
    }
    return start;
}

static tw_status prepare_reduction(twi_prepare *p)
{
    tw_status status = twi_prepare_typed(p);
    if (status != TW_OK)
        return status;
    reduction *d = twi_alloc(sizeof *d);
    if (!d)
        return twi_fail_memory(p->error, "preparing a reduction");
    d->exclusive = twi_attr_bool(p->attrs, "exclusive", false);
    d->reverse = twi_attr_bool(p->attrs, "reverse", false);
    if (p->inputs[1].value)
        status = plan_reduction(d, &p->inputs[0], &p->inputs[1], tw_tensor_data(p->inputs[1].value), p->error);
    if (status != TW_OK)
        twi_free(d);
    else
        p->state = d;
    return status;
}

/* The reduction to do now: as prepared, or from the axes of this run. */
static const reduction *reduction_of(const twi_run *r, reduction *now)
{
    const reduction *prepared = r->state;
    *now = *prepared;
    if (prepared->ready)
        return prepared;
    return plan_reduction(now, &r->input_operands[0], &r->input_operands[1], r->inputs[1], r->error) == TW_OK ? now
                                                                                                               : NULL;
}

/* Where the last axis is kept, COLUMNS neighbouring outputs are made together, so that rows are read as they lie. */
#define COLUMNS 64
#define REDUCE_COLUMNS(f, ACCUMULATOR, first, combine, finish)                                                         \
    static void NAME(f##_columns)(const twi_run *r, const reduction *d)                                                \
    {                                                                                                                  \
        int64_t width = d->kept_size[0], blocks = (width + COLUMNS - 1) / COLUMNS, count = d->inputs;                  \
        int64_t jobs = d->outputs / width * blocks;                                                                    \
        (void)count;                                                                                                   \
        TWI_PRAGMA(omp parallel for num_threads(r->threads)                                                            \
                       if (r->threads > 1 && jobs > 1 && d->outputs * d->inputs > TWI_PARALLEL_ELEMENTS))              \
        for (int64_t job = 0; job < jobs; job++) {                                                                     \
            int64_t column = job % blocks * COLUMNS, o = job / blocks * width + column;                                \
            int64_t n = width - column < COLUMNS ? width - column : COLUMNS;                                           \
            const REAL *base = (const REAL *)r->inputs[0] + start_of(o, d->num_kept, d->kept_size, d->kept_step);      \
            ACCUMULATOR results[COLUMNS];                                                                              \
            for (int i = 0; i < COLUMNS; i++)                                                                          \
                results[i] = first;                                                                                    \
            for (int64_t k = 0; k < d->inputs; k++) {                                                                  \
                const REAL *row = base + start_of(k, d->num_reduced, d->reduced_size, d->reduced_step);                \
                TWI_VECTOR_LOOP                                                                                        \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                    ACCUMULATOR a = results[i], b = row[i];                                                            \
                    results[i] = combine;                                                                              \
                }                                                                                                      \
            }                                                                                                          \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                ACCUMULATOR a = results[i];                                                                            \
                ((REAL *)r->outputs[0])[o + i] = (REAL)(finish);                                                       \
            }                                                                                                          \
        }                                                                                                              \
    }

/* out[o] = finish(fold of combine over x), from left to right; a run of neighbours goes through LANES partial results,
 * so that it can use vector instructions, and these are combined in order. */
#define LANES 16
#define REDUCE(f, ACCUMULATOR, first, combine, finish)                                                                 \
    REDUCE_COLUMNS(f, ACCUMULATOR, first, combine, finish)                                                             \
    static tw_status NAME(f)(const twi_run *r)                                                                         \
    {                                                                                                                  \
        reduction now;                                                                                                 \
        const reduction *d = reduction_of(r, &now);                                                                    \
        if (!d)                                                                                                        \
            return TW_INVALID_ARGUMENT;                                                                                \
        if (d->run == 1 && d->outputs > 1 && d->kept_step[0] == 1) {                                                   \
            NAME(f##_columns)(r, d);                                                                                   \
            return TW_OK;                                                                                              \
        }                                                                                                              \
        const REAL *x = r->inputs[0];                                                                                  \
        REAL *out = r->outputs[0];                                                                                     \
        int64_t runs = d->run ? d->inputs / d->run : 0, count = d->inputs;                                             \
        (void)count;                                                                                                   \
        TWI_PRAGMA(omp parallel for num_threads(r->threads)                                                            \
                       if (r->threads > 1 && d->outputs > 1 && d->outputs * d->inputs > TWI_PARALLEL_ELEMENTS))        \
        for (int64_t o = 0; o < d->outputs; o++) {                                                                     \
            const REAL *base = x + start_of(o, d->num_kept, d->kept_size, d->kept_step);                               \
            ACCUMULATOR lanes[LANES], a;                                                                               \
            for (int i = 0; i < LANES; i++)                                                                            \
                lanes[i] = first;                                                                                      \
            for (int64_t k = 0; k < runs; k++) {                                                                       \
                const REAL *at = base + start_of(k, d->num_reduced - (d->run > 1), d->reduced_size + (d->run > 1),     \
                                                 d->reduced_step + (d->run > 1));                                      \
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
        return TW_OK;                                                                                                  \
    }

/* Along the one reduced axis: each place has what lies up to it, or before it. */
#define RUNNING(f, first, combine)                                                                                     \
    static tw_status NAME(f)(const twi_run *r)                                                                         \
    {                                                                                                                  \
        reduction now;                                                                                                 \
        const reduction *d = reduction_of(r, &now);                                                                    \
        if (!d)                                                                                                        \
            return TW_INVALID_ARGUMENT;                                                                                \
        bool exclusive = ((const reduction *)r->state)->exclusive, reverse = ((const reduction *)r->state)->reverse;   \
        for (int64_t o = 0; o < d->outputs; o++) {                                                                     \
            int64_t start = start_of(o, d->num_kept, d->kept_size, d->kept_step);                                      \
            int64_t step = d->num_reduced ? d->reduced_step[0] : 0;                                                    \
            REAL a = first;                                                                                            \
            for (int64_t k = 0; k < d->inputs; k++) {                                                                  \
                int64_t at = start + (reverse ? d->inputs - 1 - k : k) * step;                                         \
                REAL b = ((const REAL *)r->inputs[0])[at], before = a;                                                 \
                a = combine;                                                                                           \
                ((REAL *)r->outputs[0])[at] = exclusive ? before : a;                                                  \
            }                                                                                                          \
        }                                                                                                              \
        return TW_OK;                                                                                                  \
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
            TWI_PRAGMA(omp parallel for num_threads(r->threads) if (r->threads > 1 && last - first > 3))               \
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
    NUMBER_ROWS("Sum", prepare_reduction, sum, twi_free),
    TWI_COMPLEX_ROWS("Sum", prepare_reduction, sum, twi_free),
    NUMBER_ROWS("Mean", prepare_reduction, mean, twi_free),
    TWI_COMPLEX_ROWS("Mean", prepare_reduction, mean, twi_free),
    NUMBER_ROWS("Prod", prepare_reduction, product, twi_free),
    TWI_COMPLEX_ROWS("Prod", prepare_reduction, product, twi_free),
    NUMBER_ROWS("Max", prepare_reduction, maximum, twi_free),
    NUMBER_ROWS("Min", prepare_reduction, minimum, twi_free),
    {"All", "plain", 0, prepare_reduction, all_bool, twi_free},
    {"Any", "plain", 0, prepare_reduction, any_bool, twi_free},
    NUMBER_ROWS("ArgMax", prepare_reduction, arg_max, twi_free),
    NUMBER_ROWS("ArgMin", prepare_reduction, arg_min, twi_free),
    NUMBER_ROWS("Cumsum", prepare_reduction, running_sum, twi_free),
    TWI_COMPLEX_ROWS("Cumsum", prepare_reduction, running_sum, twi_free),
    NUMBER_ROWS("Cumprod", prepare_reduction, running_product, twi_free),
    TWI_COMPLEX_ROWS("Cumprod", prepare_reduction, running_product, twi_free),
    TWI_FLOAT_ROWS("CumulativeLogsumexp", prepare_reduction, running_logsumexp, twi_free),
    TWI_FLOAT_ROWS("EuclideanNorm", prepare_reduction, euclidean_norm, twi_free),
    TWI_FLOAT_ROWS("L2Loss", twi_prepare_typed, l2_loss, NULL),
    {"_ReluGradBias", "chain", FUSED_TYPES, prepare_fast_relu_grad_bias, twi_chain_run, twi_chain_release},
    {"_ReluGradBias", "plain", FUSED_TYPES, prepare_relu_grad_bias, twi_chain_run, twi_chain_release},
    {0},
};
