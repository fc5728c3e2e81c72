/* sparse_math.c - sums of sparse tensors, and their reductions along axes. */
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"

#include <math.h>

/* ---- merging: indices [n,rank] in row-major order ---------------------------------------------------------------- */

static int compare(const int64_t *a, const int64_t *b, int64_t rank)
{
    for (int64_t k = 0; k < rank; k++)
        if (a[k] != b[k])
            return a[k] < b[k] ? -1 : 1;
    return 0;
}

/* Two lists of indices, gone through together. */
typedef struct merge {
    const int64_t *a, *b;
    int64_t num_a, num_b, rank, at_a, at_b;
} merge;

/* Below 0: the next index is a's, above 0: b's, 0: both have it. False: there is none any more. */
static bool next_of(const merge *m, int *order)
{
    if (m->at_a >= m->num_a && m->at_b >= m->num_b)
        return false;
    *order = m->at_a >= m->num_a   ? 1
             : m->at_b >= m->num_b ? -1
                                   : compare(m->a + m->at_a * m->rank, m->b + m->at_b * m->rank, m->rank);
    return true;
}

static void pass(merge *m, int order)
{
    m->at_a += order <= 0;
    m->at_b += order >= 0;
}

static tw_status expect_alike(const twi_run *r)
{
    int64_t rank = r->input_operands[2].elements;
    for (int i = 0; i < 6; i += 3)
        if (r->input_operands[i].shape.dims[0] != r->input_operands[i + 1].elements ||
            r->input_operands[i].shape.dims[1] != r->input_operands[i + 2].elements)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices [%lld,%lld] for %lld values and %lld axes",
                            r->node, (long long)r->input_operands[i].shape.dims[0],
                            (long long)r->input_operands[i].shape.dims[1], (long long)r->input_operands[i + 1].elements,
                            (long long)r->input_operands[i + 2].elements);
    if (r->input_operands[5].elements != rank)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': the shapes have %lld and %lld axes", r->node,
                        (long long)rank, (long long)r->input_operands[5].elements);
    for (int64_t k = 0; k < rank; k++)
        if (twi_input_int(r, 2, k) != twi_input_int(r, 5, k))
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': the shapes do not match: axis %lld has %lld and %lld",
                            r->node, (long long)k, (long long)twi_input_int(r, 2, k),
                            (long long)twi_input_int(r, 5, k));
    return TW_OK;
}

/* ---- reducing ---------------------------------------------------------------------------------------------------- */

enum { IS_MAX = 1 };

static tw_status prepare_sum(twi_prepare *p)
{
    return twi_prepare_typed(p);
}

static tw_status prepare_max(twi_prepare *p)
{
    p->state = (void *)(intptr_t)IS_MAX;
    p->workspace += (size_t)p->outputs[0].elements; /* which have been met */
    return TW_OK;
}

/* strides[k]: how far apart in the output neighbours along the input's axis k lie; 0 along reduced ones. */
static void find_strides(const twi_run *r, int64_t *strides)
{
    int rank = (int)r->input_operands[2].elements;
    bool reduced[TW_MAX_RANK] = {false};
    int64_t step = 1;
    for (int64_t i = 0; i < r->input_operands[3].elements; i++) {
        int64_t axis = twi_input_int(r, 3, i);
        reduced[axis + (axis < 0 ? rank : 0)] = true;
    }
    for (int k = rank - 1; k >= 0; k--) {
        strides[k] = reduced[k] ? 0 : step;
        step *= reduced[k] ? 1 : twi_input_int(r, 2, k);
    }
}

/* Where entry i goes; -1: it does not lie in the shape. */
static int64_t place_of(const twi_run *r, const int64_t *strides, int64_t i)
{
    int64_t rank = r->input_operands[2].elements, place = 0;
    for (int64_t k = 0; k < rank; k++) {
        int64_t at = twi_input_int(r, 0, i * rank + k);
        if (at < 0 || at >= twi_input_int(r, 2, k))
            return -1;
        place += at * strides[k];
    }
    return place;
}

static tw_status expect_entries(const twi_run *r)
{
    const int64_t *dims = r->input_operands[0].shape.dims;
    if (dims[0] == r->input_operands[1].elements && dims[1] == r->input_operands[2].elements)
        return TW_OK;
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices [%lld,%lld] for %lld values and %lld axes", r->node,
                    (long long)dims[0], (long long)dims[1], (long long)r->input_operands[1].elements,
                    (long long)r->input_operands[2].elements);
}

#define BODY "device/cpu/plain/sparse_math.inl"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#undef BODY

TWI_WIDENED(sparse_reduce)
TWI_WIDENED(sparse_add_gradient)

/* A widened kernel is a float's, whose workspace is behind the widened operands. */
static tw_status prepare_typed_max(twi_prepare *p)
{
    tw_status status = twi_prepare_typed(p);
    return status == TW_OK ? prepare_max(p) : status;
}

const twi_kernel twi_cpu_sparse_math_kernels[] = {
    {"SparseAdd", "plain", TWI_TYPE(TW_FLOAT32), NULL, sparse_add_float},
    {"SparseAdd", "plain", TWI_TYPE(TW_FLOAT64), NULL, sparse_add_double},
    TWI_INTEGER_ROWS("SparseAdd", NULL, sparse_add, NULL),
    TWI_FLOAT_ROWS("SparseAddGrad", twi_prepare_typed, sparse_add_gradient, NULL),
    TWI_INTEGER_ROWS("SparseAddGrad", twi_prepare_typed, sparse_add_gradient, NULL),
    TWI_FLOAT_ROWS("SparseReduceSum", prepare_sum, sparse_reduce, NULL),
    TWI_INTEGER_ROWS("SparseReduceSum", prepare_sum, sparse_reduce, NULL),
    TWI_FLOAT_ROWS("SparseReduceMax", prepare_typed_max, sparse_reduce, NULL),
    TWI_INTEGER_ROWS("SparseReduceMax", prepare_typed_max, sparse_reduce, NULL),
    {0},
};
