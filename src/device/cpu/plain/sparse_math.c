/* sparse_math.c - sums of sparse tensors, the larger of two, what a dense tensor does to entries, and reductions. */
#include "device/cpu/plain/entries.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"

#include <math.h>
#include <stdlib.h>

#pragma GCC diagnostic ignored "-Wtype-limits" /* one body serves signed and unsigned types */

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

/* ---- reducing to a sparse tensor: entries sorted by what is left of their index ---------------------------------- */

/* Makes room for the sorted entries, and their indices behind them. state: IS_MAX, or 0. */
static void make_sorting_room(twi_prepare *p, bool is_max)
{
    p->state = (void *)(intptr_t)(is_max ? IS_MAX : 0);
    twi_make_room(&p->workspace, sizeof(twi_entry) * ((size_t)p->inputs[1].elements + 1));
    twi_make_room(&p->workspace, sizeof(int64_t) * ((size_t)p->inputs[0].elements + 1));
}

static tw_status prepare_sum_sparse(twi_prepare *p)
{
    make_sorting_room(p, false);
    return TW_OK;
}

static tw_status prepare_max_sparse(twi_prepare *p)
{
    make_sorting_room(p, true);
    return TW_OK;
}

/* The axes that are left, with keep_dims all: then indices are 0 along those that are reduced. */
typedef struct left {
    bool reduced[TW_MAX_RANK];
    int rank, axes[TW_MAX_RANK];
} left;

static tw_status find_left(const twi_run *r, bool keep, left *l)
{
    int64_t rank = r->input_operands[2].elements;
    *l = (left){.rank = 0};
    if (rank > TW_MAX_RANK)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': a shape of %lld axes, expected at most %d", r->node,
                        (long long)rank, TW_MAX_RANK);
    for (int64_t i = 0; i < r->input_operands[3].elements; i++) {
        int axis;
        tw_status status = twi_input_axis(r, 3, i, (int)rank, &axis);
        if (status != TW_OK)
            return status;
        l->reduced[axis] = true;
    }
    for (int k = 0; k < rank; k++)
        if (keep || !l->reduced[k])
            l->axes[l->rank++] = k;
    return TW_OK;
}

/* The entries, sorted, in the workspace; returns how many indices differ. */
static int64_t sort_left(const twi_run *r, const left *l, twi_entry *entries)
{
    int64_t n = r->input_operands[1].elements, rank = r->input_operands[2].elements, groups = 0;
    size_t room = 0;
    twi_make_room(&room, sizeof(twi_entry) * ((size_t)n + 1));
    int64_t *indices = (int64_t *)((char *)entries + room);
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < l->rank; k++)
            indices[i * l->rank + k] = l->reduced[l->axes[k]] ? 0 : twi_input_int(r, 0, i * rank + l->axes[k]);
        entries[i] = (twi_entry){indices + i * l->rank, l->rank, i};
    }
    if (n)
        qsort(entries, (size_t)n, sizeof *entries, twi_entry_order);
    for (int64_t i = 0; i < n; i++)
        groups += i == 0 || compare(entries[i - 1].index, entries[i].index, l->rank) != 0;
    return groups;
}

/* ---- a dense tensor, broadcast to the entries -------------------------------------------------------------------- */

enum { PLUS, TIMES, BY };

static tw_status prepare_plus(twi_prepare *p)
{
    p->state = (void *)(intptr_t)PLUS;
    return twi_prepare_typed(p);
}

static tw_status prepare_times(twi_prepare *p)
{
    p->state = (void *)(intptr_t)TIMES;
    return twi_prepare_typed(p);
}

static tw_status prepare_by(twi_prepare *p)
{
    p->state = (void *)(intptr_t)BY;
    return twi_prepare_typed(p);
}

/* strides[k]: how far apart in the dense tensor neighbours along the entries' axis k lie; 0 along those it lacks. */
static tw_status find_dense_strides(const twi_run *r, int64_t *strides)
{
    tw_shape dense = r->input_operands[3].shape;
    int64_t rank = r->input_operands[2].elements, own[TW_MAX_RANK];
    bool fits = rank <= TW_MAX_RANK && dense.rank <= rank;
    twi_row_major(dense, own);
    for (int64_t k = 0; fits && k < rank; k++) {
        int64_t axis = k - (rank - dense.rank), dim = axis < 0 ? 1 : dense.dims[axis];
        strides[k] = dim == 1 ? 0 : own[axis];
        fits = dim == 1 || dim == twi_input_int(r, 2, k);
    }
    if (fits)
        return TW_OK;
    char text[128];
    return twi_fail(
        r->error, TW_INVALID_ARGUMENT,
        "'%s': a dense tensor is broadcast to the sparse one only; got the incompatible shape %s for %lld axes",
        r->node, tw_shape_text(dense, text, sizeof text), (long long)rank);
}

/* ---- SparseSplit ------------------------------------------------------------------------------------------------- */

typedef struct cut {
    int64_t axis, whole, longer; /* parts are `whole` long, the first `longer` of them one more */
} cut;

static int64_t start_of(const cut *c, int64_t part)
{
    return part * c->whole + (part < c->longer ? part : c->longer);
}

static tw_status find_cut(const twi_run *r, cut *c)
{
    int64_t n = r->num_outputs / 3, rank = r->input_operands[3].elements;
    c->axis = twi_input_int(r, 0, 0);
    c->axis += c->axis < 0 ? rank : 0;
    if (c->axis < 0 || c->axis >= rank)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': split_dim is outside of %lld axes", r->node,
                        (long long)rank);
    int64_t size = twi_input_int(r, 3, c->axis);
    if (n < 1 || n > size)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': cannot split %lld along axis %lld in %lld parts", r->node,
                        (long long)size, (long long)c->axis, (long long)n);
    c->whole = size / n;
    c->longer = size % n;
    return TW_OK;
}

static tw_status split_part(const twi_run *r, const cut *c, int64_t part)
{
    int64_t n = r->num_outputs / 3, rank = r->input_operands[3].elements, count = 0, at = 0, *indices = NULL, *shape;
    int64_t first = start_of(c, part), end = start_of(c, part + 1);
    const int64_t *from = r->inputs[1];
    tw_dtype dtype = r->input_operands[2].dtype;
    void *values = NULL;
    for (int64_t i = 0; i < r->input_operands[2].elements; i++)
        count += from[i * rank + c->axis] >= first && from[i * rank + c->axis] < end;
    tw_status status = twi_make_output(r, (int)part, TW_SHAPE(count, rank), (void **)&indices);
    if (status == TW_OK)
        status = twi_make_output(r, (int)(n + part), TW_SHAPE(count), &values);
    if (status == TW_OK)
        status = twi_make_output(r, (int)(2 * n + part), TW_SHAPE(rank), (void **)&shape);
    for (int64_t i = 0; i < r->input_operands[2].elements && status == TW_OK; i++) {
        if (from[i * rank + c->axis] < first || from[i * rank + c->axis] >= end)
            continue;
        memcpy(indices + at * rank, from + i * rank, sizeof *indices * (size_t)rank);
        indices[at * rank + c->axis] -= first;
        if (!twi_copy_elements(1, dtype, twi_element(r->inputs[2], dtype, i),
                               twi_element_of_output(values, dtype, at++)))
            status = twi_fail_memory(r->error, r->node);
    }
    for (int64_t k = 0; k < rank && status == TW_OK; k++)
        shape[k] = k == c->axis ? end - first : twi_input_int(r, 3, k);
    return status;
}

static tw_status run_split(const twi_run *r)
{
    const int64_t *dims = r->input_operands[1].shape.dims;
    cut c = {0};
    if (dims[0] != r->input_operands[2].elements || dims[1] != r->input_operands[3].elements)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices [%lld,%lld] for %lld values and %lld axes",
                        r->node, (long long)dims[0], (long long)dims[1], (long long)r->input_operands[2].elements,
                        (long long)r->input_operands[3].elements);
    tw_status status = find_cut(r, &c);
    for (int64_t part = 0; part < r->num_outputs / 3 && status == TW_OK; part++)
        status = split_part(r, &c, part);
    return status;
}

#define BODY "device/cpu/plain/sparse_math.inl"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#undef BODY

TWI_WIDENED(sparse_reduce)
TWI_WIDENED(sparse_add_gradient)
TWI_WIDENED(with_dense)
TWI_WIDENED(sparse_softmax)

/* A widened kernel is a float's, whose workspace is behind the widened operands. */
static tw_status prepare_typed_max(twi_prepare *p)
{
    tw_status status = twi_prepare_typed(p);
    return status == TW_OK ? prepare_max(p) : status;
}

/* Rows of kernels that make their outputs. */
#define MADE_ROWS(op, prepare, f)                                                                                      \
    {op, "plain", TWI_TYPE(TW_FLOAT32), prepare, f##_float}, {op, "plain", TWI_TYPE(TW_FLOAT64), prepare, f##_double}, \
        TWI_INTEGER_ROWS(op, prepare, f, NULL)

const twi_kernel twi_cpu_sparse_math_kernels[] = {
    {"SparseAdd", "plain", TWI_TYPE(TW_FLOAT32), NULL, sparse_add_float},
    {"SparseAdd", "plain", TWI_TYPE(TW_FLOAT64), NULL, sparse_add_double},
    TWI_SIGNED_INTEGER_ROWS("SparseAdd", NULL, sparse_add, NULL),
    TWI_FLOAT_ROWS("SparseAddGrad", twi_prepare_typed, sparse_add_gradient, NULL),
    TWI_INTEGER_ROWS("SparseAddGrad", twi_prepare_typed, sparse_add_gradient, NULL),
    TWI_FLOAT_ROWS("SparseReduceSum", prepare_sum, sparse_reduce, NULL),
    TWI_INTEGER_ROWS("SparseReduceSum", prepare_sum, sparse_reduce, NULL),
    TWI_FLOAT_ROWS("SparseReduceMax", prepare_typed_max, sparse_reduce, NULL),
    TWI_INTEGER_ROWS("SparseReduceMax", prepare_typed_max, sparse_reduce, NULL),
    TWI_FLOAT_ROWS("SparseDenseCwiseAdd", prepare_plus, with_dense, NULL),
    TWI_INTEGER_ROWS("SparseDenseCwiseAdd", prepare_plus, with_dense, NULL),
    TWI_FLOAT_ROWS("SparseDenseCwiseMul", prepare_times, with_dense, NULL),
    TWI_INTEGER_ROWS("SparseDenseCwiseMul", prepare_times, with_dense, NULL),
    TWI_FLOAT_ROWS("SparseDenseCwiseDiv", prepare_by, with_dense, NULL),
    TWI_INTEGER_ROWS("SparseDenseCwiseDiv", prepare_by, with_dense, NULL),
    TWI_FLOAT_ROWS("SparseSoftmax", twi_prepare_typed, sparse_softmax, NULL),
    {"SparseSplit", "plain", 0, NULL, run_split},
    MADE_ROWS("SparseReduceSumSparse", prepare_sum_sparse, sparse_reduce_to_sparse),
    MADE_ROWS("SparseReduceMaxSparse", prepare_max_sparse, sparse_reduce_to_sparse),
    MADE_ROWS("SparseSparseMaximum", NULL, larger_of),
    MADE_ROWS("SparseSparseMinimum", NULL, smaller_of),
    {0},
};
