/* segment.c - rows that belong together are reduced to one, in their order, whatever the number of threads; counts. */
#include "device/cpu/plain/indices.h"
#include "device/cpu/plain/made.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"

#include "base/memory.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#pragma GCC diagnostic ignored "-Wtype-limits" /* one body serves signed and unsigned types */
#pragma GCC diagnostic ignored "-Wunused-function"

enum {
    WORTH_A_TEAM = 32768, /* elements */
    COLUMNS = 64,         /* at least, for each thread that adds its part of every row */
};

static int64_t column_shares(const twi_run *r, int64_t columns)
{
    int64_t most = r->input_operands[0].elements < WORTH_A_TEAM ? 1 : columns / COLUMNS;
    return most < 1 ? 1 : most < r->threads ? most : r->threads;
}

static tw_status fail_segment(const twi_run *r, int64_t i)
{
    char text[128];
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': segment_ids%s = %lld is out of range [0, %lld)", r->node,
                    twi_position_text(r->input_operands[1].shape, i, text, sizeof text),
                    (long long)twi_input_int(r, 1, i), (long long)r->output_operands[0].shape.dims[0]);
}

/* Ids may be negative, but not too large. */
static tw_status check_segments(const twi_run *r)
{
    for (int64_t i = 0; i < r->input_operands[1].elements; i++)
        if (twi_input_int(r, 1, i) >= r->output_operands[0].shape.dims[0])
            return fail_segment(r, i);
    return TW_OK;
}

/* Ids rise from 0 on; some may be left out. */
static tw_status check_order(const twi_run *r)
{
    for (int64_t i = 0; i < r->input_operands[1].elements; i++) {
        int64_t id = twi_input_int(r, 1, i), last = i ? twi_input_int(r, 1, i - 1) : 0;
        if (id < 0 || id >= r->output_operands[0].shape.dims[0])
            return fail_segment(r, i);
        if (id < last)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': segment ids are not increasing: %lld at %lld, after %lld", r->node, (long long)id,
                            (long long)i, (long long)last);
    }
    return TW_OK;
}

/* Input 1 picks rows of so many, input 2 says the segments they are for, which rise (`sorted`). */
static tw_status check_picked(const twi_run *r, int64_t rows, int64_t segments, bool sorted)
{
    tw_status status = twi_indices_check(r, 1, rows);
    if (status == TW_OK)
        status = twi_indices_check(r, 2, segments);
    for (int64_t i = 1; i < r->input_operands[2].elements && sorted && status == TW_OK; i++)
        if (twi_input_int(r, 2, i) < twi_input_int(r, 2, i - 1))
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': segment ids are not increasing", r->node);
    return status;
}

/* State of those that divide: by the number of rows, or by its root. */
static const char by_number, by_root;

static double share(const twi_run *r, int64_t rows)
{
    return r->state == &by_root ? sqrt((double)rows) : (double)rows;
}

static tw_status prepare_mean(twi_prepare *p)
{
    p->state = (void *)&by_number;
    return twi_prepare_typed(p);
}

static tw_status prepare_sqrt(twi_prepare *p)
{
    p->state = (void *)&by_root;
    return twi_prepare_typed(p);
}

/* Room for a count of each segment, behind what is widened. */
static tw_status prepare_grad(twi_prepare *p)
{
    p->workspace = twi_widened_bytes(p);
    if (p->inputs[0].shape.dims[0] > INT64_MAX / 64)
        return twi_fail(p->error, TW_RESOURCE_EXHAUSTED, "'%s': too many segments", p->node);
    twi_make_room(&p->workspace, (size_t)p->inputs[0].shape.dims[0] * sizeof(int64_t));
    return TW_OK;
}

static tw_status prepare_mean_grad(twi_prepare *p)
{
    p->state = (void *)&by_number;
    return prepare_grad(p);
}

static tw_status prepare_sqrt_grad(twi_prepare *p)
{
    p->state = (void *)&by_root;
    return prepare_grad(p);
}

/* Memory is asked for when it is known how much. */
static tw_status prepare_picked(twi_prepare *p)
{
    (void)p;
    return TW_OK;
}

static tw_status prepare_picked_mean(twi_prepare *p)
{
    p->state = (void *)&by_number;
    return TW_OK;
}

static tw_status prepare_picked_sqrt(twi_prepare *p)
{
    p->state = (void *)&by_root;
    return TW_OK;
}

/* data [n,row], ids [n]: output [segments,row], which begins as `start`. Rows of negative ids go nowhere. Who `takes`
 * the first row of a segment as it is does not combine it with the start. */
#define REDUCTION(f, start, takes, combined)                                                                           \
    static void NAME(f)(const twi_run *r)                                                                              \
    {                                                                                                                  \
        const twi_operand *data = &r->input_operands[0], *ids = &r->input_operands[1], *out = &r->output_operands[0]; \
        const int64_t n = ids->elements, row = twi_elements_between(data->shape, ids->shape.rank, data->shape.rank);  \
        const int64_t shares = column_shares(r, row);                                                                  \
        const REAL *from = r->inputs[0];                                                                               \
        REAL *to = r->outputs[0];                                                                                      \
        for (int64_t k = 0; k < out->elements; k++)                                                                    \
            to[k] = start;                                                                                             \
        _Pragma("omp parallel for num_threads((int)shares)")                                           \
        for (int64_t s = 0; s < shares; s++)                                                                           \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                int64_t id = twi_input_int(r, 1, i);                                                                   \
                bool first = takes && (i == 0 || id != twi_input_int(r, 1, i - 1));                                    \
                for (int64_t k = row * s / shares; id >= 0 && k < row * (s + 1) / shares; k++) {                       \
                    REAL a = to[id * row + k], b = from[i * row + k];                                                  \
                    to[id * row + k] = first ? b : combined;                                                           \
                }                                                                                                      \
            }                                                                                                          \
    }

#define SORTED(f)                                                                                                      \
    static tw_status NAME(segment_##f)(const twi_run *r)                                                               \
    {                                                                                                                  \
        tw_status status = check_order(r);                                                                             \
        if (status == TW_OK)                                                                                           \
            NAME(sorted_##f)(r);                                                                                       \
        return status;                                                                                                 \
    }
#define UNSORTED(f)                                                                                                    \
    static tw_status NAME(unsorted_segment_##f)(const twi_run *r)                                                      \
    {                                                                                                                  \
        tw_status status = check_segments(r);                                                                          \
        if (status == TW_OK)                                                                                           \
            NAME(any_##f)(r);                                                                                          \
        return status;                                                                                                 \
    }

#define TAKES true
#define COMBINES false

#define BODY "device/cpu/plain/segment.inl"
#include "device/cpu/plain/for_complex.h"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#undef BODY
#define BODY "device/cpu/plain/segment_real.inl"
#define LEAST(T) (-(T)(sizeof(T) == 4 ? FLT_MAX : DBL_MAX))
#define GREATEST(T) ((T)(sizeof(T) == 4 ? FLT_MAX : DBL_MAX))
#include "device/cpu/plain/for_floats.h"
#undef LEAST
#undef GREATEST
#define IS_SIGNED(T) ((T)-1 < 0)
#define GREATEST(T) ((T)(UINT64_MAX >> (64 - 8 * sizeof(T) + IS_SIGNED(T))))
#define LEAST(T) ((T)(IS_SIGNED(T) ? -GREATEST(T) - 1 : 0))
#include "device/cpu/plain/for_integers.h"
#undef BODY

#define SORTED_LIST(X)                                                                                                 \
    X("SegmentSum", segment_sum)                                                                                       \
    X("SegmentMean", segment_mean)                                                                                     \
    X("SegmentProd", segment_prod)                                                                                     \
    X("SegmentMax", segment_max)                                                                                       \
    X("SegmentMin", segment_min)
#define UNSORTED_SUMS(X)                                                                                               \
    X("UnsortedSegmentSum", unsorted_segment_sum)                                                                      \
    X("UnsortedSegmentProd", unsorted_segment_prod)
#define UNSORTED_EXTREMES(X)                                                                                           \
    X("UnsortedSegmentMax", unsorted_segment_max)                                                                      \
    X("UnsortedSegmentMin", unsorted_segment_min)
#define UNSORTED_LIST(X) UNSORTED_SUMS(X) UNSORTED_EXTREMES(X)

#define WIDEN(op, f) TWI_WIDENED(f)
SORTED_LIST(WIDEN)
UNSORTED_SUMS(WIDEN)

/* What float32 begins with is beyond the narrow type, whose own last finite number it is to be: in both types that of
 * the bits before an infinity's. */
static tw_status run_widened_extreme(const twi_run *r, tw_status (*f)(const twi_run *r), float beyond)
{
    bool half = r->output_operands[0].dtype == TW_FLOAT16;
    uint16_t *to = r->outputs[0], infinity = (uint16_t)((half ? 0x7C00 : 0x7F80) | (beyond < 0 ? 0x8000 : 0));
    tw_status status = twi_run_widened(r, f);
    for (int64_t i = 0; i < r->output_operands[0].elements && status == TW_OK; i++)
        if (to[i] == infinity)
            to[i]--;
    return status;
}

static tw_status unsorted_segment_max_widened(const twi_run *r)
{
    return run_widened_extreme(r, unsorted_segment_max_float, -INFINITY);
}

static tw_status unsorted_segment_min_widened(const twi_run *r)
{
    return run_widened_extreme(r, unsorted_segment_min_float, INFINITY);
}

TWI_WIDENED(sparse)
TWI_WIDENED(sparse_grad)

/* The last id, of the last input, says how many segments there are. */
static tw_status run_made(const twi_run *r, tw_status (*f)(const twi_run *r))
{
    const twi_operand *data = &r->input_operands[0], *ids = &r->input_operands[r->num_inputs - 1];
    tw_shape shape = data->shape;
    if (r->output_operands[0].elements >= 0)
        return f(r);
    int64_t last = ids->elements ? twi_input_int(r, r->num_inputs - 1, ids->elements - 1) : -1;
    if (last < -1 || last == INT64_MAX)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': the last segment id is %lld", r->node, (long long)last);
    shape.dims[0] = last + 1;
    int64_t both = data->elements + tw_shape_elements(shape);
    bool narrow = data->dtype == TW_FLOAT16 || data->dtype == TW_BFLOAT16;
    return twi_run_made(r, shape, narrow ? sizeof(float) * (size_t)both + 128 : 0, f);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Of the rows that are picked at all, in their order; output 1 says which they are. Input 3 says how many rows there
 * are in the whole. */
static tw_status run_picked(const twi_run *r, tw_status (*f)(const twi_run *r))
{
    const twi_operand *grad = &r->input_operands[0];
    int64_t n = r->input_operands[1].elements, count = 0;
    int64_t *picked = twi_alloc_array(2 * (size_t)n + 1, sizeof *picked), *places = picked ? picked + n : NULL;
    twi_operand operands[] = {*grad, r->input_operands[1], r->input_operands[2], r->input_operands[3]};
    const void *inputs[] = {r->inputs[0], places, r->inputs[2], r->inputs[3]};
    tw_shape shape = grad->shape;
    void *rows = NULL;
    twi_run known = *r;
    tw_status status;
    if (!picked)
        return twi_fail_memory(r->error, r->node);
    TWI_TRY(twi_indices_check(r, 1, twi_input_int(r, 3, 0)));
    for (int64_t i = 0; i < n; i++)
        picked[i] = twi_input_int(r, 1, i);
    qsort(picked, (size_t)n, sizeof *picked, by_value);
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || picked[i] != picked[count - 1])
            picked[count++] = picked[i];
    TWI_TRY(twi_make_output(r, 1, TW_SHAPE(count), &rows));
    for (int64_t i = 0; i < count; i++)
        if (r->output_operands[1].dtype == TW_INT64)
            ((int64_t *)rows)[i] = picked[i];
        else
            ((int32_t *)rows)[i] = (int32_t)picked[i];
    for (int64_t i = 0; i < n; i++) {
        int64_t row = twi_input_int(r, 1, i);
        places[i] = (const int64_t *)bsearch(&row, picked, (size_t)count, sizeof row, by_value) - picked;
    }
    operands[1].dtype = TW_INT64;
    operands[1].bytes = sizeof *places * (size_t)n;
    known.inputs = inputs;
    known.input_operands = operands;
    known.num_outputs = 1;
    shape.dims[0] = count;
    bool narrow = grad->dtype == TW_FLOAT16 || grad->dtype == TW_BFLOAT16;
    size_t widened = narrow ? sizeof(float) * (size_t)(grad->elements + tw_shape_elements(shape)) + 128 : 0;
    status = twi_run_made(&known, shape, widened + sizeof(int64_t) * (size_t)grad->shape.dims[0] + 64, f);
done:
    twi_free(picked);
    return status;
}

#define PICKED(f)                                                                                                      \
    static tw_status picked_##f(const twi_run *r)                                                                      \
    {                                                                                                                  \
        return run_picked(r, sparse_grad_##f);                                                                         \
    }
PICKED(float)
PICKED(double)
PICKED(widened)

#define MADE(name)                                                                                                     \
    static tw_status made_##name(const twi_run *r)                                                                     \
    {                                                                                                                  \
        return run_made(r, name);                                                                                      \
    }
#define MADE_OF_ALL(op, f)                                                                                             \
    MADE(f##_float)                                                                                                    \
    MADE(f##_double)                                                                                                   \
    MADE(f##_widened)                                                                                                  \
    MADE(f##_int32)                                                                                                    \
    MADE(f##_int64) MADE(f##_int16) MADE(f##_int8) MADE(f##_uint8) MADE(f##_uint16) MADE(f##_uint32) MADE(f##_uint64)
SORTED_LIST(MADE_OF_ALL)
MADE(segment_sum_complex64) MADE(segment_sum_complex128) MADE(segment_mean_complex64) MADE(segment_mean_complex128)
    MADE_OF_ALL("SparseSegmentSum", sparse)

#define SORTED_ROWS(op, f)                                                                                             \
    TWI_FLOAT_ROWS(op, twi_prepare_typed, made_##f, NULL), TWI_INTEGER_ROWS(op, twi_prepare_typed, made_##f, NULL),
#define UNSORTED_ROWS(op, f)                                                                                           \
    TWI_FLOAT_ROWS(op, twi_prepare_typed, f, NULL), TWI_INTEGER_ROWS(op, twi_prepare_typed, f, NULL),
#define SPARSE_ROWS(op, prepare)                                                                                       \
    TWI_FLOAT_ROWS(op, prepare, made_sparse, NULL), TWI_FLOAT_ROWS(op "WithNumSegments", prepare, sparse, NULL)

#define COUNTING(op, prepare, f)                                                                                       \
    {op, "plain", TWI_TYPE(TW_FLOAT32), prepare, f##_float},                                                           \
        {op, "plain", TWI_TYPE(TW_FLOAT64), prepare, f##_double},                                                      \
        {op, "plain", TWI_TYPE(TW_INT32), prepare, f##_int32},                                                         \
    {                                                                                                                  \
        op, "plain", TWI_TYPE(TW_INT64), prepare, f##_int64                                                            \
    }

static tw_status prepare_counting(twi_prepare *p)
{
    static const bool binary = true;
    p->state = twi_attr_bool(p->attrs, "binary_output", false) ? (void *)(uintptr_t)&binary : NULL;
    return TW_OK;
}

        const twi_kernel twi_cpu_segment_kernels[] = {
            SORTED_LIST(SORTED_ROWS) UNSORTED_LIST(UNSORTED_ROWS) SPARSE_ROWS("SparseSegmentSum", twi_prepare_typed),
            TWI_COMPLEX_ROWS("SegmentSum", twi_prepare_typed, made_segment_sum, NULL),
            TWI_COMPLEX_ROWS("SegmentMean", twi_prepare_typed, made_segment_mean, NULL),
            TWI_COMPLEX_ROWS("UnsortedSegmentSum", twi_prepare_typed, unsorted_segment_sum, NULL),
            TWI_INTEGER_ROWS("SparseSegmentSum", twi_prepare_typed, made_sparse, NULL),
            TWI_INTEGER_ROWS("SparseSegmentSumWithNumSegments", twi_prepare_typed, sparse, NULL),
            SPARSE_ROWS("SparseSegmentMean", prepare_mean),
            SPARSE_ROWS("SparseSegmentSqrtN", prepare_sqrt),
            TWI_FLOAT_ROWS("SparseSegmentSumGrad", prepare_grad, sparse_grad, NULL),
            TWI_FLOAT_ROWS("SparseSegmentMeanGrad", prepare_mean_grad, sparse_grad, NULL),
            TWI_FLOAT_ROWS("SparseSegmentSqrtNGrad", prepare_sqrt_grad, sparse_grad, NULL),
            TWI_FLOAT_ROWS("SparseSegmentSumGradV2", prepare_picked, picked, NULL),
            TWI_FLOAT_ROWS("SparseSegmentMeanGradV2", prepare_picked_mean, picked, NULL),
            TWI_FLOAT_ROWS("SparseSegmentSqrtNGradV2", prepare_picked_sqrt, picked, NULL),
            COUNTING("Bincount", NULL, bincount),
            COUNTING("DenseBincount", prepare_counting, bincount),
            COUNTING("RaggedBincount", prepare_counting, ragged_bincount),
            COUNTING("SparseBincount", prepare_counting, sparse_bincount),
            {0},
};
