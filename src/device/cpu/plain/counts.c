/* counts.c - how often numbers occur in rows, as sparse tensors: DenseCountSparseOutput, SparseCountSparseOutput and
 * RaggedCountSparseOutput. Weights are added in the order in which they come.
 * Never here:  counts into bins (segment.c). */
#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "device/state/series.h" /* twi_add_elements() */
#include "tensor/tensor.h"

#include <stdlib.h>

/* Where a number stands that is counted. */
typedef struct place {
    int64_t row, value, at;
} place;

typedef struct counting {
    int64_t least, most; /* how many numbers there are at least; exactly, where that is not negative */
    bool binary;
} counting;

/* What is counted, in the order of rows and numbers. */
typedef struct counted {
    place *places;
    int64_t count, largest;
    int weights; /* input; as the numbers are, or without elements */
} counted;

static tw_status prepare(twi_prepare *p)
{
    counting c = {twi_attr_int(p->attrs, "minlength", -1), twi_attr_int(p->attrs, "maxlength", -1),
                  twi_attr_bool(p->attrs, "binary_output", false)};
    return twi_keep(p, &c, sizeof c);
}

static int compare(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Room for all numbers of input `values`, whose weights are input `weights`. */
static tw_status begin(const twi_run *r, int values, int weights, counted *c)
{
    const twi_operand *of = &r->input_operands[weights], *numbers = &r->input_operands[values];
    char got[128], want[128];
    *c = (counted){.weights = weights};
    if (of->elements && !tw_shape_equal(of->shape, numbers->shape))
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': Weights and values must have the same shape. Weight shape: %s; values shape: %s",
                        r->node, tw_shape_text(of->shape, got, sizeof got), tw_shape_text(numbers->shape, want, sizeof want));
    c->places = twi_alloc_array((size_t)numbers->elements + 1, sizeof *c->places);
    return c->places ? TW_OK : twi_fail_memory(r->error, r->node);
}

/* Number i of input `values`, which is in that row; too large ones do not count. */
static tw_status see(const twi_run *r, counted *c, int values, int64_t row, int64_t i)
{
    const counting *s = r->state;
    int64_t value = twi_input_int(r, values, i);
    if (value < 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': Input values must all be non-negative, number %lld is %lld", r->node, (long long)i,
                        (long long)value);
    if (s->most >= 0 && value >= s->most)
        return TW_OK;
    c->places[c->count++] = (place){row, value, i};
    c->largest = value > c->largest ? value : c->largest;
    return TW_OK;
}

/* What places from `first` to before `end`, of one number in one row, give together. */
static tw_status put_count(const twi_run *r, const counted *c, int64_t first, int64_t end, void *to)
{
    const counting *s = r->state;
    tw_dtype dtype = r->output_operands[1].dtype;
    bool weighs = !s->binary && r->input_operands[c->weights].elements > 0;
    tw_status status = TW_OK;
    tw_tensor sum = {.dtype = dtype, .data = to};
    twi_tensor_set_number(&sum, 0, weighs ? 0 : s->binary ? 1 : (double)(end - first));
    for (int64_t i = first; i < end && weighs && status == TW_OK; i++)
        status = twi_add_elements(r, dtype, to, twi_element(r->inputs[c->weights], dtype, c->places[i].at),
                                  tw_dtype_size(dtype));
    return status;
}

static int64_t end_of(const counted *c, int64_t first)
{
    int64_t end = first + 1;
    while (end < c->count && c->places[end].row == c->places[first].row &&
           c->places[end].value == c->places[first].value)
        end++;
    return end;
}

/* Indices (the row only where there are several axes), counts, and the shape; lets the places go. */
static tw_status give(const twi_run *r, counted *c, int64_t rows, int axes, tw_status status)
{
    const counting *s = r->state;
    int64_t count = 0, *indices, *shape, size = s->most;
    tw_dtype dtype = r->output_operands[1].dtype;
    void *counts;
    if (size < 0) /* as many as the largest value says, if that can be said */
        size = c->largest < INT64_MAX ? c->largest + 1 : INT64_MAX;
    if (status == TW_OK)
        qsort(c->places, (size_t)c->count, sizeof *c->places, compare);
    for (int64_t i = 0; i < c->count && status == TW_OK; i = end_of(c, i))
        count++;
    if (status == TW_OK)
        status = twi_make_output(r, 0, TW_SHAPE(count, axes), (void **)&indices);
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(count), &counts);
    if (status == TW_OK)
        status = twi_make_output(r, 2, TW_SHAPE(axes), (void **)&shape);
    for (int64_t i = 0, k = 0; i < c->count && status == TW_OK; i = end_of(c, i), k++) {
        indices[k * axes] = c->places[i].row;
        indices[k * axes + axes - 1] = c->places[i].value;
        status = put_count(r, c, i, end_of(c, i), twi_element_of_output(counts, dtype, k));
    }
    if (status == TW_OK) {
        shape[0] = rows;
        shape[axes - 1] = s->most < 0 && s->least > size ? s->least : size;
    }
    twi_free(c->places);
    return status;
}

/* values, weights */
static tw_status run_dense(const twi_run *r)
{
    const twi_operand *values = &r->input_operands[0];
    bool rows = values->shape.rank == 2;
    counted c;
    if (values->shape.rank != 1 && !rows)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Input must be a 1 or 2-dimensional tensor.", r->node);
    if (rows && values->shape.dims[0] == 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Invalid input: Shapes dimension cannot be 0.", r->node);
    tw_status status = begin(r, 0, 1, &c);
    for (int64_t i = 0; i < values->elements && status == TW_OK; i++)
        status = see(r, &c, 0, rows ? i / values->shape.dims[1] : 0, i);
    return give(r, &c, rows ? values->shape.dims[0] : 1, rows ? 2 : 1, status);
}

/* indices, values, shape, weights */
static tw_status run_sparse(const twi_run *r)
{
    const int64_t *indices = r->inputs[0], *shape = r->inputs[2];
    int64_t axes = r->input_operands[2].elements, count = r->input_operands[1].elements;
    counted c;
    if (axes < 1 || r->input_operands[0].shape.dims[0] != count || r->input_operands[0].shape.dims[1] != axes)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices [%lld,%lld] for %lld values and a shape of %lld",
                        r->node, (long long)r->input_operands[0].shape.dims[0],
                        (long long)r->input_operands[0].shape.dims[1], (long long)count, (long long)axes);
    if (axes > 1 && (shape[0] < 1 || shape[0] >= INT32_MAX))
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': Cannot allocate %lld batches, is the dense shape too wide?", r->node,
                        (long long)shape[0]);
    tw_status status = begin(r, 1, 3, &c);
    for (int64_t i = 0; i < count && status == TW_OK; i++) {
        for (int64_t k = 0; k < axes && status == TW_OK; k++)
            if (indices[i * axes + k] < 0 || indices[i * axes + k] >= shape[k])
                status = twi_fail(r->error, TW_INVALID_ARGUMENT,
                                  "'%s': Invalid index value at %lld: dimension %lld has value %lld which is not in "
                                  "[0, %lld)",
                                  r->node, (long long)i, (long long)k, (long long)indices[i * axes + k],
                                  (long long)shape[k]);
        if (status == TW_OK)
            status = see(r, &c, 1, axes > 1 ? indices[i * axes] : 0, i);
    }
    return give(r, &c, axes > 1 ? shape[0] : 1, axes > 1 ? 2 : 1, status);
}

/* splits, values, weights */
static tw_status run_ragged(const twi_run *r)
{
    const int64_t *splits = r->inputs[0];
    int64_t rows = r->input_operands[0].elements - 1, count = r->input_operands[1].elements;
    counted c;
    bool good = rows > 0 && splits[0] == 0 && splits[rows] == count;
    for (int64_t i = 0; i < rows && good; i++)
        good = splits[i] <= splits[i + 1];
    if (!good)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': Splits must have at least 2 numbers, start with 0, never fall, and end with the number "
                        "of values, %lld",
                        r->node, (long long)count);
    tw_status status = begin(r, 1, 2, &c);
    for (int64_t row = 0; row < rows && status == TW_OK; row++)
        for (int64_t i = splits[row]; i < splits[row + 1] && status == TW_OK; i++)
            status = see(r, &c, 1, row, i);
    return give(r, &c, rows, 2, status);
}

const twi_kernel twi_cpu_counts_kernels[] = {
    {"DenseCountSparseOutput", "plain", 0, prepare, run_dense, twi_free},
    {"SparseCountSparseOutput", "plain", 0, prepare, run_sparse, twi_free},
    {"RaggedCountSparseOutput", "plain", 0, prepare, run_ragged, twi_free},
    {0},
};
