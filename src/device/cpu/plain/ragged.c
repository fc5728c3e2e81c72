/* ragged.c - rows of different length in plain C. Splits are checked before they are believed: they begin with 0, never
 * fall, and end where what they divide ends. */
#include "device/cpu/plain/ragged.h"

#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

static int64_t dimension_of(tw_shape shape, int first)
{
    return twi_elements_between(shape, first, shape.rank);
}

tw_status twi_check_splits(const twi_run *r, int first, int count)
{
    for (int k = first; k < first + count; k++) {
        int64_t n = r->input_operands[k].elements;
        const twi_operand *below = &r->input_operands[k + 1];
        int64_t rows = k + 1 < first + count ? below->elements - 1 : below->shape.dims[0];
        bool good = n > 0 && twi_input_int(r, k, 0) == 0 && twi_input_int(r, k, n - 1) == rows;
        for (int64_t i = 1; i < n && good; i++)
            good = twi_input_int(r, k, i - 1) <= twi_input_int(r, k, i);
        if (!good)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': splits %d must begin with 0, never fall, and end with %lld", r->node, k - first,
                            (long long)rows);
    }
    return TW_OK;
}

/* ---- RaggedRange ------------------------------------------------------------------------------------------------- */

static double number_at(const twi_run *r, int input, int64_t row)
{
    const twi_operand *x = &r->input_operands[input];
    int64_t i = x->shape.rank ? row : 0;
    switch (x->dtype) {
    case TW_FLOAT32:
        return (double)((const float *)r->inputs[input])[i];
    case TW_FLOAT64:
        return ((const double *)r->inputs[input])[i];
    case TW_BFLOAT16:
        return (double)tw_bfloat16_to_float(((const uint16_t *)r->inputs[input])[i]);
    default:
        return (double)twi_input_int(r, input, i);
    }
}

static bool is_whole(tw_dtype dtype)
{
    return dtype == TW_INT32 || dtype == TW_INT64;
}

static int64_t integer_at(const twi_run *r, int input, int64_t row)
{
    return twi_input_int(r, input, r->input_operands[input].shape.rank ? row : 0);
}

/* How many numbers row `row` has; -1: too many to count. */
static int64_t length_of(const twi_run *r, int64_t row)
{
    if (is_whole(r->input_operands[0].dtype)) {
        int64_t start = integer_at(r, 0, row), limit = integer_at(r, 1, row), delta = integer_at(r, 2, row);
        if (delta > 0 ? limit <= start : limit >= start)
            return 0;
        uint64_t span = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
        uint64_t step = delta > 0 ? (uint64_t)delta : -(uint64_t)delta;
        uint64_t count = span / step + (span % step != 0);
        return count > INT32_MAX ? -1 : (int64_t)count;
    }
    double start = number_at(r, 0, row), limit = number_at(r, 1, row), delta = number_at(r, 2, row);
    double count = ceil((limit - start) / delta);
    return !(count > 0) ? 0 : count > INT32_MAX ? -1 : (int64_t)count;
}

static void put_numbers(const twi_run *r, int64_t row, int64_t count, void *to, int64_t at)
{
    tw_dtype dtype = r->output_operands[1].dtype;
    float single = (float)number_at(r, 0, row), single_step = (float)number_at(r, 2, row);
    double value = number_at(r, 0, row), step = number_at(r, 2, row);
    uint64_t whole = 0, whole_step = 0;
    if (is_whole(dtype)) {
        whole = (uint64_t)integer_at(r, 0, row);
        whole_step = (uint64_t)integer_at(r, 2, row);
    }
    for (int64_t i = at; i < at + count; i++) {
        if (dtype == TW_FLOAT32)
            ((float *)to)[i] = single;
        else if (dtype == TW_FLOAT64)
            ((double *)to)[i] = value;
        else if (dtype == TW_BFLOAT16)
            ((uint16_t *)to)[i] = tw_float_to_bfloat16(single);
        else
            twi_put_integer(dtype, to, i, (int64_t)whole);
        whole += whole_step;
        value += step;
        single += single_step;
        if (dtype == TW_BFLOAT16) /* rounded at each step, as TensorFlow adds them */
            single = tw_bfloat16_to_float(tw_float_to_bfloat16(single));
    }
}

static tw_status run_range(const twi_run *r)
{
    int64_t rows = 1, total = 0;
    void *splits, *values;
    for (int i = 0; i < 3; i++) {
        const twi_operand *x = &r->input_operands[i];
        if (x->shape.rank && rows != 1 && x->elements != rows)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "starts, limits, and deltas must have the same shape");
        rows = x->shape.rank ? x->elements : rows;
    }
    tw_status status = twi_make_output(r, 0, TW_SHAPE(rows + 1), &splits);
    if (status != TW_OK)
        return status;
    twi_put_integer(r->output_operands[0].dtype, splits, 0, 0);
    for (int64_t row = 0; row < rows; row++) {
        if (number_at(r, 2, row) == 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Requires delta != 0", r->node);
        int64_t length = length_of(r, row);
        total += length;
        if (length < 0 || total > INT32_MAX)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Requires ((limit - start) / delta) <= %d", r->node,
                            INT32_MAX);
        twi_put_integer(r->output_operands[0].dtype, splits, row + 1, total);
    }
    status = twi_make_output(r, 1, TW_SHAPE(total), &values);
    for (int64_t row = 0, at = 0; row < rows && status == TW_OK; row++) {
        int64_t length = length_of(r, row);
        put_numbers(r, row, length, values, at);
        at += length;
    }
    return status;
}

/* ---- RaggedGather ------------------------------------------------------------------------------------------------ */

typedef struct gathering {
    int in, out, fixed; /* ragged axes; those of the output that the shape of the indices makes */
    int64_t rows;
} gathering;

/* Where row `index` lies on each axis: from begin[k] to before end[k] of the splits k, and at last of the values. */
static void follow(const twi_run *r, int in, int64_t index, int64_t *begin, int64_t *end)
{
    begin[0] = index;
    end[0] = index + 1;
    for (int k = 0; k < in; k++) {
        begin[k + 1] = twi_input_int(r, k, begin[k]);
        end[k + 1] = twi_input_int(r, k, end[k]);
    }
}

static tw_status check_indices(const twi_run *r, int in)
{
    int64_t rows = r->input_operands[0].elements - 1;
    for (int64_t i = 0; i < r->input_operands[in + 1].elements; i++)
        if (twi_input_int(r, in + 1, i) < 0 || twi_input_int(r, in + 1, i) >= rows)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices[%lld] = %lld is not in [0, %lld)", r->node,
                            (long long)i, (long long)twi_input_int(r, in + 1, i), (long long)rows);
    return TW_OK;
}

/* The splits of output axis k, which is axis k - fixed of the input; begin and end are of in + 2 numbers. */
static tw_status gather_splits(const twi_run *r, const gathering *g, int k, int64_t *begin, int64_t *end)
{
    int axis = k - g->fixed;
    tw_dtype dtype = r->output_operands[k].dtype;
    int64_t count = 0, at = 0, sum = 0, n = r->input_operands[g->in + 1].elements;
    void *to;
    for (int64_t i = 0; i < n; i++) {
        follow(r, g->in, twi_input_int(r, g->in + 1, i), begin, end);
        count += end[axis] - begin[axis];
    }
    tw_status status = twi_make_output(r, k, TW_SHAPE(count + 1), &to);
    if (status != TW_OK)
        return status;
    twi_put_integer(dtype, to, at++, 0);
    for (int64_t i = 0; i < n; i++) {
        follow(r, g->in, twi_input_int(r, g->in + 1, i), begin, end);
        for (int64_t j = begin[axis]; j < end[axis]; j++) {
            sum += twi_input_int(r, axis, j + 1) - twi_input_int(r, axis, j);
            twi_put_integer(dtype, to, at++, sum);
        }
    }
    return TW_OK;
}

/* Of indices of several axes the outer ones: rows of one length. */
static tw_status even_splits(const twi_run *r, int k, tw_shape indices)
{
    void *to;
    int64_t rows = twi_elements_between(indices, 0, k + 1), length = indices.dims[k + 1];
    tw_status status = twi_make_output(r, k, TW_SHAPE(rows + 1), &to);
    for (int64_t i = 0; i <= rows && status == TW_OK; i++)
        twi_put_integer(r->output_operands[k].dtype, to, i, i * length);
    return status;
}

static tw_status gather_values(const twi_run *r, const gathering *g, int64_t *begin, int64_t *end)
{
    const twi_operand *values = &r->input_operands[g->in];
    int64_t rows = 0, row = dimension_of(values->shape, 1), at = 0, n = r->input_operands[g->in + 1].elements;
    tw_shape shape = values->shape;
    void *to;
    for (int64_t i = 0; i < n; i++) {
        follow(r, g->in, twi_input_int(r, g->in + 1, i), begin, end);
        rows += end[g->in] - begin[g->in];
    }
    shape.dims[0] = rows;
    tw_status status = twi_make_output(r, g->out, shape, &to);
    for (int64_t i = 0; i < n && status == TW_OK; i++) {
        follow(r, g->in, twi_input_int(r, g->in + 1, i), begin, end);
        int64_t taken = end[g->in] - begin[g->in];
        if (!twi_copy_elements(taken * row, values->dtype,
                               twi_element(r->inputs[g->in], values->dtype, begin[g->in] * row),
                               twi_element_of_output(to, values->dtype, at * row)))
            status = twi_fail_memory(r->error, r->node);
        at += taken;
    }
    return status;
}

static tw_status prepare_gather(twi_prepare *p)
{
    gathering g = {.in = p->num_inputs - 2, .out = p->num_outputs - 1};
    g.fixed = g.out - g.in;
    p->workspace = 2 * sizeof(int64_t) * (size_t)(g.in + 1);
    return twi_keep(p, &g, sizeof g);
}

static tw_status run_gather(const twi_run *r)
{
    const gathering *g = r->state;
    tw_shape indices = r->input_operands[g->in + 1].shape;
    int64_t *begin = r->workspace, *end = begin + g->in + 1;
    tw_status status = twi_check_splits(r, 0, g->in);
    if (status == TW_OK)
        status = check_indices(r, g->in);
    for (int k = 0; k < g->out && status == TW_OK; k++)
        status = k < g->fixed ? even_splits(r, k, indices) : gather_splits(r, g, k, begin, end);
    return status == TW_OK ? gather_values(r, g, begin, end) : status;
}

/* ---- RaggedTensorToSparse ---------------------------------------------------------------------------------------- */

/* index[axis] for 0 <= axis < rank of value row i; `at` has for each axis its row. */
static void index_of(const twi_run *r, int rank, int64_t i, int64_t *rows, int64_t *index)
{
    int64_t below = i;
    for (int k = rank - 1; k >= 0; k--) {
        while (twi_input_int(r, k, rows[k] + 1) <= below)
            rows[k]++;
        index[k + 1] = below - twi_input_int(r, k, rows[k]);
        below = rows[k];
    }
    index[0] = below;
}

static tw_status prepare_to_sparse(twi_prepare *p)
{
    p->workspace = sizeof(int64_t) * (size_t)(p->num_inputs + 1);
    return TW_OK;
}

static tw_status run_to_sparse(const twi_run *r)
{
    int rank = r->num_inputs - 1;
    const twi_operand *values = &r->input_operands[rank];
    int64_t inner = dimension_of(values->shape, 1), *rows = r->workspace, *indices, *shape;
    int width = rank + values->shape.rank;
    void *to;
    tw_status status = twi_check_splits(r, 0, rank);
    if (status == TW_OK)
        status = twi_make_output(r, 0, TW_SHAPE(values->elements, width), (void **)&indices);
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(values->elements), &to);
    if (status == TW_OK)
        status = twi_make_output(r, 2, TW_SHAPE(width), (void **)&shape);
    if (status != TW_OK)
        return status;
    if (!twi_copy_elements(values->elements, values->dtype, r->inputs[rank], to))
        return twi_fail_memory(r->error, r->node);
    memset(rows, 0, sizeof *rows * (size_t)(rank + 1));
    for (int64_t i = 0; i < values->elements; i++) {
        int64_t *index = indices + i * width, rest = i % inner;
        index_of(r, rank, i / inner, rows, index);
        for (int axis = values->shape.rank - 1; axis > 0; axis--) {
            index[rank + axis] = rest % values->shape.dims[axis];
            rest /= values->shape.dims[axis];
        }
    }
    shape[0] = r->input_operands[0].elements - 1;
    for (int k = 0; k < rank; k++) {
        shape[k + 1] = 0;
        for (int64_t i = 0; i < r->input_operands[k].elements - 1; i++) {
            int64_t length = twi_input_int(r, k, i + 1) - twi_input_int(r, k, i);
            shape[k + 1] = length > shape[k + 1] ? length : shape[k + 1];
        }
    }
    for (int axis = 1; axis < values->shape.rank; axis++)
        shape[rank + axis] = values->shape.dims[axis];
    return TW_OK;
}

/* ---- RaggedTensorToTensor ---------------------------------------------------------------------------------------- */

typedef struct partitions {
    int first, axes; /* the first input that is one, without that which counts rows */
    bool counts, ids[TW_MAX_RANK];
} partitions;

static tw_status prepare_to_tensor(twi_prepare *p)
{
    const twi_attr *types = twi_attr_find(p->attrs, "row_partition_types");
    partitions s = {.first = 3};
    for (int i = 0; i < types->count; i++) {
        const char *type = types->strings[i].data;
        if (strcmp(type, "FIRST_DIM_SIZE") == 0)
            s.counts = true, s.first = 4;
        else if (s.axes < TW_MAX_RANK)
            s.ids[s.axes++] = strcmp(type, "VALUE_ROWIDS") == 0;
    }
    return twi_keep(p, &s, sizeof s);
}

/* Where the rows of each axis begin, and the last one ends. */
typedef struct nested {
    int64_t rows[TW_MAX_RANK], *splits[TW_MAX_RANK];
} nested;

/* Of the rows that values are in, the splits. False: they fall, or lie outside. */
static bool split_by_ids(const twi_run *r, int input, int64_t rows, int64_t *splits)
{
    int64_t n = r->input_operands[input].elements, row = 0;
    splits[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t id = twi_input_int(r, input, i);
        if (id < row || id >= rows)
            return false;
        while (row < id)
            splits[++row] = i;
    }
    while (row < rows)
        splits[++row] = n;
    return true;
}

/* Axis k has so many rows; what it divides, the next axis has. */
static tw_status read_axis(const twi_run *r, const partitions *s, int k, int64_t rows, nested *to)
{
    int input = s->first + k;
    int64_t n = r->input_operands[input].elements;
    bool good = s->ids[k] || (n > 0 && n - 1 == rows);
    to->rows[k] = rows;
    to->splits[k] = good ? twi_alloc_array((size_t)rows + 1, sizeof *to->splits[k]) : NULL;
    if (good && !to->splits[k])
        return twi_fail_memory(r->error, r->node);
    if (good && s->ids[k])
        good = split_by_ids(r, input, rows, to->splits[k]);
    for (int64_t i = 0; i <= rows && good && !s->ids[k]; i++) {
        to->splits[k][i] = twi_input_int(r, input, i);
        good = i ? to->splits[k][i - 1] <= to->splits[k][i] : to->splits[k][i] == 0;
    }
    return good ? TW_OK
                : twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': partition %d is not one of %lld rows", r->node, k,
                           (long long)rows);
}

static tw_status read_axes(const twi_run *r, const partitions *s, nested *to)
{
    int64_t rows = s->counts ? twi_input_int(r, 3, 0) : r->input_operands[s->first].elements - 1;
    tw_status status = TW_OK;
    for (int k = 0; k < s->axes && status == TW_OK; k++) {
        if (rows < 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld rows", r->node, (long long)rows);
        status = read_axis(r, s, k, rows, to);
        rows = status == TW_OK ? to->splits[k][rows] : 0;
    }
    if (status == TW_OK && rows != r->input_operands[1].shape.dims[0])
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': the partitions divide %lld rows, values have %lld",
                        r->node, (long long)rows, (long long)r->input_operands[1].shape.dims[0]);
    return status;
}

/* What is given, and where nothing is, as much as the longest row needs. */
static tw_status find_shape(const twi_run *r, const partitions *s, const nested *in, tw_shape *shape)
{
    const twi_operand *given = &r->input_operands[0], *values = &r->input_operands[1];
    *shape = values->shape;
    shape->rank += s->axes;
    memmove(shape->dims + s->axes, values->shape.dims, sizeof *shape->dims * (size_t)values->shape.rank);
    if (given->shape.rank && given->elements != shape->rank && given->elements != s->axes + 1)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': shape has %lld numbers, expected %d", r->node,
                        (long long)given->elements, shape->rank);
    for (int k = 0; k <= s->axes; k++) {
        int64_t longest = k ? 0 : in->rows[0];
        for (int64_t i = 0; k && i < in->rows[k - 1]; i++)
            longest = in->splits[k - 1][i + 1] - in->splits[k - 1][i] > longest
                          ? in->splits[k - 1][i + 1] - in->splits[k - 1][i]
                          : longest;
        int64_t wanted = given->shape.rank ? twi_input_int(r, 0, k) : -1;
        shape->dims[k] = wanted < 0 ? longest : wanted;
    }
    return TW_OK;
}

/* Rows begin to before end of axis k go to `to`, whose axis has room for dims[k] of them. */
static bool place_rows(const twi_run *r, const nested *in, int axes, tw_shape shape, int k, int64_t begin, int64_t end,
                       char *to)
{
    tw_dtype dtype = r->output_operands[0].dtype;
    int64_t step = dimension_of(shape, k + 1), count = end - begin < shape.dims[k] ? end - begin : shape.dims[k];
    bool fits = true;
    if (k == axes)
        return twi_copy_elements(count * step, dtype, twi_element(r->inputs[1], dtype, begin * step), to);
    for (int64_t i = 0; i < count && fits; i++)
        fits = place_rows(r, in, axes, shape, k + 1, in->splits[k][begin + i], in->splits[k][begin + i + 1],
                          twi_element_of_output(to, dtype, i * step));
    return fits;
}

/* The default everywhere, broadcast to a row of values. */
static tw_status fill_default(const twi_run *r, int axes, tw_shape shape, void *to)
{
    const twi_operand *value = &r->input_operands[2];
    twi_move move = {0};
    int64_t steps[TW_MAX_RANK], own[TW_MAX_RANK];
    int missing = shape.rank - value->shape.rank;
    bool fits = missing > axes || (missing >= 0 && value->shape.rank == 0);
    for (int i = 0; i < value->shape.rank && fits; i++)
        fits = value->shape.dims[i] == 1 || value->shape.dims[i] == shape.dims[missing + i];
    if (!fits)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': default_value cannot be broadcast to a row of values",
                        r->node);
    twi_row_major(shape, steps);
    twi_row_major(value->shape, own);
    for (int i = 0; i < shape.rank; i++) {
        bool goes = i >= missing && value->shape.dims[i - missing] > 1;
        twi_move_axis(&move, shape.dims[i], goes ? own[i - missing] : 0, steps[i]);
    }
    return twi_move_elements(r, &move, r->output_operands[0].dtype, r->inputs[2], to);
}

static tw_status run_to_tensor(const twi_run *r)
{
    const partitions *s = r->state;
    nested in = {{0}, {0}};
    tw_shape shape;
    void *to = NULL;
    tw_status status = read_axes(r, s, &in);
    if (status == TW_OK)
        status = find_shape(r, s, &in, &shape);
    if (status == TW_OK)
        status = twi_make_output(r, 0, shape, &to);
    if (status == TW_OK)
        status = fill_default(r, s->axes, shape, to);
    if (status == TW_OK && !place_rows(r, &in, s->axes, shape, 0, 0, in.rows[0], to))
        status = twi_fail_memory(r->error, r->node);
    for (int k = 0; k < s->axes; k++)
        twi_free(in.splits[k]);
    return status;
}

const twi_kernel twi_cpu_ragged_kernels[] = {
    {"RaggedRange", "plain", 0, NULL, run_range},
    {"RaggedGather", "plain", 0, prepare_gather, run_gather, twi_free},
    {"RaggedTensorToSparse", "plain", 0, prepare_to_sparse, run_to_sparse},
    {"RaggedTensorToTensor", "plain", 0, prepare_to_tensor, run_to_tensor, twi_free},
    {0},
};
