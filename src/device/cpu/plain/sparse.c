/* sparse.c - sparse tensors, indices [n,rank], values [n], shape [rank]: sorted, reshaped, cut, joined, empty rows
 * filled. Never here: arithmetic on values (segment.c). */
#include "base/memory.h"
#include "device/cpu/plain/entries.h"
#include "device/cpu/plain/move.h"

#include <stdlib.h>
#include <string.h>

static const int64_t *longs(const twi_run *r, int input)
{
    return r->inputs[input];
}

static tw_status copy_value(const twi_run *r, tw_dtype dtype, const void *from, int64_t i, void *to, int64_t k)
{
    return twi_copy_elements(1, dtype, twi_element(from, dtype, i), twi_element_of_output(to, dtype, k))
               ? TW_OK
               : twi_fail_memory(r->error, r->node);
}

static tw_status expect_entries(const twi_run *r, int indices, int values, int shape)
{
    const tw_shape of = r->input_operands[indices].shape;
    if (of.dims[0] == r->input_operands[values].elements && of.dims[1] == r->input_operands[shape].elements)
        return TW_OK;
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices [%lld,%lld] for %lld values and a shape of %lld",
                    r->node, (long long)of.dims[0], (long long)of.dims[1],
                    (long long)r->input_operands[values].elements, (long long)r->input_operands[shape].elements);
}

/* ---- SparseReorder: by index, row-major ------------------------------------------------------------------------- */

static tw_status prepare_reorder(twi_prepare *p)
{
    p->workspace = sizeof(twi_entry) * ((size_t)p->inputs[1].elements + 1);
    return TW_OK;
}

static tw_status run_reorder(const twi_run *r)
{
    int64_t n = r->input_operands[1].elements, rank = r->input_operands[2].elements;
    twi_entry *entries = r->workspace;
    int64_t *to = r->outputs[0];
    tw_status status = expect_entries(r, 0, 1, 2);
    for (int64_t i = 0; i < n && status == TW_OK; i++)
        entries[i] = (twi_entry){longs(r, 0) + i * rank, rank, i};
    if (n && status == TW_OK)
        qsort(entries, (size_t)n, sizeof *entries, twi_entry_order);
    for (int64_t i = 0; i < n && status == TW_OK; i++) {
        memcpy(to + i * rank, entries[i].index, sizeof *to * (size_t)rank);
        status = copy_value(r, r->input_operands[1].dtype, r->inputs[1], entries[i].number, r->outputs[1], i);
    }
    return status;
}

/* ---- SparseReshape ----------------------------------------------------------------------------------------------- */

/* The new shape with its open dimension, if it has one, filled in. */
static tw_status find_shape(const twi_run *r, int64_t *shape)
{
    int64_t rank = r->input_operands[2].elements, elements = 1, given = 1, open = -1;
    for (int64_t i = 0; i < r->input_operands[1].elements; i++)
        if (__builtin_mul_overflow(elements, longs(r, 1)[i], &elements))
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': the shape is too large", r->node);
    for (int64_t i = 0; i < rank; i++) {
        shape[i] = longs(r, 2)[i];
        if (shape[i] == -1 && open >= 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': only one output dimension may be -1, not both %lld and %lld", r->node,
                            (long long)open, (long long)i);
        if (shape[i] == -1)
            open = i;
        else if (shape[i] < 0 || __builtin_mul_overflow(given, shape[i], &given))
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': size %lld of axis %lld", r->node, (long long)shape[i],
                            (long long)i);
    }
    if (open >= 0)
        shape[open] = given ? elements / given : 0;
    if (open >= 0 ? given == 0 || elements % given != 0 : given != elements)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': a tensor with %lld elements cannot become one with %lld",
                        r->node, (long long)elements, (long long)given);
    return TW_OK;
}

static tw_status run_reshape(const twi_run *r)
{
    int64_t n = r->input_operands[0].shape.dims[0], from = r->input_operands[1].elements;
    int64_t to = r->input_operands[2].elements, *shape = r->outputs[1], *indices = r->outputs[0];
    tw_status status = find_shape(r, shape);
    if (status == TW_OK && r->input_operands[0].shape.dims[1] != from)
        status = twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices of %lld axes in a shape of %lld", r->node,
                          (long long)r->input_operands[0].shape.dims[1], (long long)from);
    for (int64_t i = 0; i < n && status == TW_OK; i++) {
        uint64_t wrapped = 0; /* indices that lie outside give others that do */
        for (int64_t k = 0; k < from; k++)
            wrapped = wrapped * (uint64_t)longs(r, 1)[k] + (uint64_t)longs(r, 0)[i * from + k];
        int64_t place = (int64_t)wrapped;
        for (int64_t k = to - 1; k >= 0; k--) {
            indices[i * to + k] = shape[k] ? place % shape[k] : 0;
            place = shape[k] ? place / shape[k] : 0;
        }
    }
    return status;
}

/* ---- SparseSlice ------------------------------------------------------------------------------------------------- */

/* How far `a` is behind `b`, or as far as can be counted. */
static int64_t distance(int64_t a, int64_t b)
{
    int64_t difference;
    return __builtin_sub_overflow(a, b, &difference) ? (a < b ? INT64_MIN : INT64_MAX) : difference;
}

static bool lies_within(const twi_run *r, int64_t i, int64_t rank)
{
    bool within = true;
    for (int64_t k = 0; k < rank && within; k++) {
        int64_t at = distance(longs(r, 0)[i * rank + k], longs(r, 3)[k]);
        within = at >= 0 && at < longs(r, 4)[k];
    }
    return within;
}

static tw_status run_slice(const twi_run *r)
{
    int64_t n = r->input_operands[1].elements, rank = r->input_operands[2].elements, count = 0, at = 0;
    int64_t *indices, *shape = r->outputs[2];
    void *values;
    tw_dtype dtype = r->input_operands[1].dtype;
    tw_status status = expect_entries(r, 0, 1, 2);
    if (status == TW_OK && (r->input_operands[3].elements != rank || r->input_operands[4].elements != rank))
        status = twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': start and size must have %lld numbers", r->node,
                          (long long)rank);
    for (int64_t i = 0; i < n && status == TW_OK; i++)
        count += lies_within(r, i, rank);
    if (status == TW_OK)
        status = twi_make_output(r, 0, TW_SHAPE(count, rank), (void **)&indices);
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(count), &values);
    for (int64_t k = 0; k < rank && status == TW_OK; k++) {
        int64_t left = distance(longs(r, 2)[k], longs(r, 3)[k]);
        shape[k] = longs(r, 4)[k] < left ? longs(r, 4)[k] : left < 0 ? 0 : left;
    }
    for (int64_t i = 0; i < n && status == TW_OK; i++) {
        if (!lies_within(r, i, rank))
            continue;
        for (int64_t k = 0; k < rank; k++)
            indices[at * rank + k] = longs(r, 0)[i * rank + k] - longs(r, 3)[k];
        status = copy_value(r, dtype, r->inputs[1], i, values, at++);
    }
    return status;
}

/* Of each entry: the gradient of the entry of the slice that it has become; 0 where it was left out. */
static tw_status run_slice_gradient(const twi_run *r)
{
    int64_t n = r->output_operands[0].elements, count = r->input_operands[0].elements, at = 0;
    int64_t rank = r->input_operands[1].shape.dims[1];
    tw_dtype dtype = r->input_operands[0].dtype;
    if (r->input_operands[2].elements != rank || r->input_operands[3].shape.dims[0] != count ||
        r->input_operands[3].shape.dims[1] != rank)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': indices of %lld numbers, start of %lld, output indices [%lld,%lld] for %lld gradients",
                        r->node, (long long)rank, (long long)r->input_operands[2].elements,
                        (long long)r->input_operands[3].shape.dims[0], (long long)r->input_operands[3].shape.dims[1],
                        (long long)count);
    tw_status status = twi_clear_elements(r, n, dtype, r->outputs[0]);
    for (int64_t i = 0; i < n && at < count && status == TW_OK; i++) {
        bool same = true;
        for (int64_t k = 0; k < rank && same; k++)
            same = distance(longs(r, 1)[i * rank + k], longs(r, 2)[k]) == longs(r, 3)[at * rank + k];
        if (same)
            status = copy_value(r, dtype, r->inputs[0], at++, r->outputs[0], i);
    }
    if (status == TW_OK && at < count)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': entry %lld of the slice is no entry, or out of order",
                        r->node, (long long)at);
    return status;
}

/* ---- SparseFillEmptyRows ----------------------------------------------------------------------------------------- */

/* Where each row's entries begin in the output. False: an index is no row. */
static bool count_rows(const twi_run *r, int64_t rows, int64_t rank, int64_t *starts)
{
    memset(starts, 0, sizeof *starts * (size_t)(rows + 1));
    for (int64_t i = 0; i < r->input_operands[1].elements; i++) {
        int64_t row = longs(r, 0)[i * rank];
        if (row < 0 || row >= rows)
            return false;
        starts[row + 1]++;
    }
    return true;
}

static tw_status fill_rows(const twi_run *r, int64_t rows, int64_t rank, int64_t *starts)
{
    int64_t n = r->input_operands[1].elements, *indices, *places = r->outputs[3];
    tw_dtype dtype = r->input_operands[1].dtype;
    bool *empty;
    void *values;
    tw_status status = twi_make_output(r, 2, TW_SHAPE(rows), (void **)&empty);
    for (int64_t row = 0; row < rows && status == TW_OK; row++) {
        empty[row] = starts[row + 1] == 0;
        starts[row + 1] = starts[row] + (empty[row] ? 1 : starts[row + 1]);
    }
    if (status == TW_OK)
        status = twi_make_output(
            r, 0, r->input_operands[0].shape.rank == 1 ? TW_SHAPE(starts[rows]) : TW_SHAPE(starts[rows], rank),
            (void **)&indices);
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(starts[rows]), &values);
    for (int64_t row = 0; row < rows && status == TW_OK; row++)
        if (empty[row]) {
            memset(indices + starts[row] * rank, 0, sizeof *indices * (size_t)rank);
            indices[starts[row] * rank] = row;
            status = copy_value(r, dtype, r->inputs[3], 0, values, starts[row]);
        }
    for (int64_t i = 0; i < n && status == TW_OK; i++) {
        places[i] = starts[longs(r, 0)[i * rank]]++;
        memcpy(indices + places[i] * rank, longs(r, 0) + i * rank, sizeof *indices * (size_t)rank);
        status = copy_value(r, dtype, r->inputs[1], i, values, places[i]);
    }
    return status;
}

/* A ragged tensor's rows are given by their numbers alone. */
static tw_status run_fill(const twi_run *r)
{
    int64_t rank = r->input_operands[2].elements, rows = rank ? longs(r, 2)[0] : -1;
    bool ragged = r->input_operands[0].shape.rank == 1;
    tw_status status = ragged ? TW_OK : expect_entries(r, 0, 1, 2);
    if (ragged && r->input_operands[0].elements != r->input_operands[1].elements)
        status = twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld value_rowids for %lld values", r->node,
                          (long long)r->input_operands[0].elements, (long long)r->input_operands[1].elements);
    if (status == TW_OK && rows < 0)
        status = twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': dense_shape has no rows", r->node);
    int64_t *starts = status == TW_OK ? twi_alloc_array((size_t)rows + 1, sizeof *starts) : NULL;
    if (status == TW_OK && !starts)
        status = twi_fail_memory(r->error, r->node);
    if (status == TW_OK && !count_rows(r, rows, rank, starts))
        status = twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': an index lies outside of the %lld rows", r->node,
                          (long long)rows);
    if (status == TW_OK)
        status = fill_rows(r, rows, rank, starts);
    twi_free(starts);
    return status;
}

static tw_status prepare_fill_gradient(twi_prepare *p)
{
    p->workspace = (size_t)p->inputs[1].elements + 1;
    return TW_OK;
}

static double real_at(const twi_run *r, int input, int64_t i)
{
    return r->input_operands[input].dtype == TW_FLOAT64 ? ((const double *)r->inputs[input])[i]
                                                        : (double)((const float *)r->inputs[input])[i];
}

static void put_real(const twi_run *r, int output, int64_t i, double value)
{
    if (r->output_operands[output].dtype == TW_FLOAT64)
        ((double *)r->outputs[output])[i] = value;
    else
        ((float *)r->outputs[output])[i] = (float)value;
}

/* Gradients of what was there; what was filled in has the sum of the rest. */
static tw_status run_fill_gradient(const twi_run *r)
{
    int64_t n = r->input_operands[0].elements, filled = r->input_operands[1].elements;
    bool *was_there = r->workspace;
    double rest = 0;
    memset(was_there, 0, (size_t)filled);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = longs(r, 0)[i];
        if (at < 0 || at >= filled)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': reverse_index_map[%lld] is %lld, expected 0 to %lld",
                            r->node, (long long)i, (long long)at, (long long)filled - 1);
        was_there[at] = true;
        put_real(r, 0, i, real_at(r, 1, at));
    }
    for (int64_t i = 0; i < filled; i++)
        rest += was_there[i] ? 0 : real_at(r, 1, i);
    put_real(r, 1, 0, rest);
    return TW_OK;
}

/* ---- SparseConcat ------------------------------------------------------------------------------------------------ */

static tw_status prepare_concat(twi_prepare *p)
{
    int64_t n = p->outputs[1].elements;
    p->state = (void *)(intptr_t)twi_attr_int(p->attrs, "concat_dim", 0);
    p->workspace = (sizeof(twi_entry) + sizeof(int64_t) * 2) * ((size_t)n + 1) +
                   sizeof(int64_t) * ((size_t)p->outputs[0].elements + 1);
    return TW_OK;
}

static tw_status find_concat_shape(const twi_run *r, int64_t axis, int64_t *shape)
{
    int n = r->num_inputs / 3;
    int64_t rank = r->output_operands[2].elements;
    for (int i = 0; i < n; i++)
        if (r->input_operands[2 * n + i].elements != rank ||
            r->input_operands[i].elements != r->input_operands[n + i].elements * rank)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': number %d has other axes than the %lld of the first",
                            r->node, i, (long long)rank);
    for (int64_t k = 0; k < rank; k++)
        shape[k] = longs(r, 2 * n)[k];
    for (int i = 1; i < n; i++)
        for (int64_t k = 0; k < rank; k++) {
            int64_t dim = longs(r, 2 * n + i)[k];
            if (k == axis)
                shape[k] += dim;
            else if (dim != shape[k])
                return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': axis %lld has sizes %lld and %lld", r->node,
                                (long long)k, (long long)shape[k], (long long)dim);
        }
    return TW_OK;
}

static tw_status run_concat(const twi_run *r)
{
    int n = r->num_inputs / 3;
    int64_t rank = r->output_operands[2].elements, axis = (int64_t)(intptr_t)r->state, offset = 0, count = 0;
    twi_entry *entries = r->workspace;
    int64_t *sources = (int64_t *)(entries + r->output_operands[1].elements + 1);
    int64_t *moved = sources + 2 * (r->output_operands[1].elements + 1), *to = r->outputs[0];
    tw_status status = TW_OK;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': concat_dim is outside of %lld axes", r->node,
                        (long long)rank);
    status = find_concat_shape(r, axis, r->outputs[2]);
    for (int i = 0; i < n && status == TW_OK; i++) {
        for (int64_t e = 0; e < r->input_operands[n + i].elements; e++, count++) {
            memcpy(moved + count * rank, longs(r, i) + e * rank, sizeof *moved * (size_t)rank);
            moved[count * rank + axis] += offset;
            entries[count] = (twi_entry){moved + count * rank, rank, count};
            sources[2 * count] = n + i;
            sources[2 * count + 1] = e;
        }
        offset += longs(r, 2 * n + i)[axis];
    }
    if (count && status == TW_OK)
        qsort(entries, (size_t)count, sizeof *entries, twi_entry_order);
    for (int64_t i = 0; i < count && status == TW_OK; i++) {
        int64_t from = entries[i].number;
        memcpy(to + i * rank, entries[i].index, sizeof *to * (size_t)rank);
        status = copy_value(r, r->output_operands[1].dtype, r->inputs[sources[2 * from]], sources[2 * from + 1],
                            r->outputs[1], i);
    }
    return status;
}

const twi_kernel twi_cpu_sparse_kernels[] = {
    {"SparseReorder", "plain", 0, prepare_reorder, run_reorder, NULL},
    {"SparseReshape", "plain", 0, NULL, run_reshape, NULL},
    {"SparseSlice", "plain", 0, NULL, run_slice, NULL},
    {"SparseSliceGrad", "plain", TWI_NUMBER_TYPES, NULL, run_slice_gradient, NULL},
    {"SparseFillEmptyRows", "plain", 0, NULL, run_fill, NULL},
    {"RaggedFillEmptyRows", "plain", 0, NULL, run_fill, NULL},
    {"RaggedFillEmptyRowsGrad", "plain", 0, prepare_fill_gradient, run_fill_gradient, NULL},
    {"SparseFillEmptyRowsGrad", "plain", 0, prepare_fill_gradient, run_fill_gradient, NULL},
    {"SparseConcat", "plain", 0, prepare_concat, run_concat, NULL},
    {0},
};
