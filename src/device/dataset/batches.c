/* batches.c - data sets that put several elements into one, or take one apart: batches, padded ones, windows. */
#include "device/dataset/kinds.h"
#include "format/tensor_proto.h"

#include <string.h>

typedef struct batching {
    twi_iteration *input;
    twi_rows rows; /* of a window: what was pulled and is not left behind */
    bool ended;
} batching;

static tw_status begin_batches(twi_iteration *it, tw_error *error)
{
    tw_status status = twi_begin_input(it, error);
    if (status == TW_OK)
        ((batching *)it->state)->rows.width = twi_input(it)->recipe->num_components;
    return status;
}

static void end_batches(twi_iteration *it)
{
    twi_rows_free(&((batching *)it->state)->rows);
    twi_end_input(it);
}

/* Pulls until `count` rows are there, or the input ends. */
static tw_status gather(batching *s, int64_t count, twi_pull *pull)
{
    tw_status status = TW_OK;
    while (s->rows.count < count && !s->ended && status == TW_OK) {
        tw_tensor *element[TWI_ELEMENT];
        status = twi_iteration_next(s->input, pull, element);
        s->ended = status == TW_OK && pull->end;
        if (status == TW_OK && !s->ended && !twi_rows_push(&s->rows, element)) {
            twi_element_drop(element, s->rows.width);
            status = twi_fail_memory(pull->error, "making a batch");
        }
    }
    return status;
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* Where drop_remainder is among the arguments; -1: it is not. */
static int remainder_argument(const twi_recipe *r)
{
    if (strcmp(r->kind->op, "BatchDatasetV2") == 0)
        return 2;
    if (strcmp(r->kind->op, "ParallelBatchDataset") == 0)
        return 3;
    return strcmp(r->kind->op, "PaddedBatchDatasetV2") == 0 ? twi_recipe_behind(r, 0) : -1;
}

static bool is_whole_only(const twi_recipe *r)
{
    int remainder = remainder_argument(r);
    return remainder >= 0 && twi_recipe_int(r, remainder);
}

static int64_t count_batches(const twi_recipe *r)
{
    return twi_count_batches(twi_count_same(r), twi_recipe_int(r, 1), is_whole_only(r));
}

/* Rows that make the next batch; 0: there is none. */
static tw_status gather_batch(twi_iteration *it, twi_pull *pull, int64_t *count)
{
    batching *s = it->state;
    int64_t size = twi_recipe_int(it->recipe, 1);
    bool whole = is_whole_only(it->recipe);
    tw_status status = gather(s, size, pull);
    *count = s->rows.count;
    if (status != TW_OK)
        twi_rows_drop(&s->rows, s->rows.count);
    pull->end = status == TW_OK && (*count == 0 || (whole && *count < size));
    return status;
}

static tw_status check_batch(twi_recipe *r, tw_error *error)
{
    if (twi_recipe_int(r, 1) < 1)
        return twi_fail(error, TW_INVALID_ARGUMENT, "Batch size must be greater than zero.");
    return TW_OK;
}

static tw_status fail_shapes(const tw_tensor *first, const tw_tensor *other, int64_t i, int component, tw_error *error)
{
    char a[128], b[128];
    return twi_fail(
        error, TW_INVALID_ARGUMENT,
        "Cannot batch tensors with different shapes in component %d. First element had shape %s and element "
        "%lld had shape %s.",
        component, tw_shape_text(first->shape, a, sizeof a), (long long)i, tw_shape_text(other->shape, b, sizeof b));
}

static tw_shape batch_shape(int64_t count, tw_shape row)
{
    tw_shape shape = {.rank = row.rank + 1, .dims = {count}};
    memcpy(shape.dims + 1, row.dims, sizeof *row.dims * (size_t)row.rank);
    return shape;
}

tw_status twi_batch_rows(const twi_rows *rows, int64_t count, tw_tensor **element, tw_error *error)
{
    tw_status status = TW_OK;
    for (int c = 0; c < rows->width && status == TW_OK; c++) {
        const tw_tensor *first = twi_rows_at(rows, 0)[c];
        if (first->shape.rank == TW_MAX_RANK)
            return twi_fail(error, TW_UNIMPLEMENTED, "elements have the highest rank there is, %d", TW_MAX_RANK);
        for (int64_t i = 1; i < count && status == TW_OK; i++)
            if (!tw_shape_equal(first->shape, twi_rows_at(rows, i)[c]->shape))
                status = fail_shapes(first, twi_rows_at(rows, i)[c], i, c, error);
        if (status == TW_OK && !(element[c] = tw_tensor_create(first->dtype, batch_shape(count, first->shape))))
            status = twi_fail_memory(error, "making a batch");
        for (int64_t i = 0; i < count && status == TW_OK; i++)
            status = twi_put_elements(element[c], i * first->elements, twi_rows_at(rows, i)[c], error);
    }
    return status;
}

static tw_status at_batch(const twi_recipe *r, int64_t index, tw_tensor **element, tw_error *error)
{
    const twi_recipe *input = twi_input_recipe(r);
    int64_t size = twi_recipe_int(r, 1), first = index * size, all = twi_recipe_count(input);
    twi_rows rows = {.width = input->num_components};
    tw_status status = TW_OK;
    for (int64_t i = first; i < all && i - first < size && status == TW_OK; i++) {
        tw_tensor *row[TWI_ELEMENT] = {0};
        status = twi_recipe_at(input, i, row, error);
        if (status == TW_OK && !twi_rows_push(&rows, row)) {
            twi_element_drop(row, rows.width);
            status = twi_fail_memory(error, r->node);
        }
    }
    if (status == TW_OK)
        status = twi_batch_rows(&rows, rows.count, element, error);
    twi_rows_free(&rows);
    return status;
}

static tw_status next_batch(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    batching *s = it->state;
    int64_t count;
    tw_status status = gather_batch(it, pull, &count);
    if (status == TW_OK && !pull->end)
        status = twi_batch_rows(&s->rows, count, element, pull->error);
    twi_rows_drop(&s->rows, s->rows.count);
    return status;
}

/* ---- padded batches ---------------------------------------------------------------------------------------------- */

/* Arguments: the input, the batch's size, shapes (one a component), values to pad with (one a component). */
static tw_status check_padded(twi_recipe *r, tw_error *error)
{
    tw_status status = check_batch(r, error);
    if (status == TW_OK && (r->lists[0] != r->num_components || r->lists[1] != r->num_components))
        return twi_fail(error, TW_INVALID_ARGUMENT, "%d padded shapes and %d values for %d components", r->lists[0],
                        r->lists[1], r->num_components);
    for (int c = 0; c < r->lists[1] && status == TW_OK; c++)
        if (r->arguments[2 + r->lists[0] + c]->elements != 1)
            return twi_fail(error, TW_INVALID_ARGUMENT, "All padding values must be scalars");
    return status;
}

/* As large as the largest, where nothing else is asked for. */
static tw_status padded_shape(const tw_tensor *asked, const twi_rows *rows, int64_t count, int c, tw_shape *shape,
                              tw_error *error)
{
    if (asked->elements >= TW_MAX_RANK)
        return twi_fail(error, TW_UNIMPLEMENTED, "padded shapes have rank %lld, expected at most %d",
                        (long long)asked->elements, TW_MAX_RANK - 1);
    *shape = (tw_shape){.rank = (int)asked->elements};
    for (int k = 0; k < shape->rank; k++)
        shape->dims[k] = twi_tensor_int(asked, k) >= 0 ? twi_tensor_int(asked, k) : 0;
    for (int64_t i = 0; i < count; i++) {
        tw_shape row = twi_rows_at(rows, i)[c]->shape;
        if (row.rank != shape->rank)
            return twi_fail(
                error, TW_INVALID_ARGUMENT,
                "All elements in a batch must have the same rank as the padded shape for component %d: expected "
                "rank %d but got element with rank %d",
                c, shape->rank, row.rank);
        for (int k = 0; k < shape->rank; k++) {
            if (twi_tensor_int(asked, k) >= 0 && row.dims[k] > shape->dims[k])
                return twi_fail(error, TW_DATA_LOSS,
                                "Attempted to pad to a smaller size than the input element: component %d, dimension %d",
                                c, k);
            shape->dims[k] = row.dims[k] > shape->dims[k] ? row.dims[k] : shape->dims[k];
        }
    }
    return TW_OK;
}

static tw_status fill_with(tw_tensor *t, const tw_tensor *value, tw_error *error)
{
    tw_status status = TW_OK;
    for (int64_t i = 0; i < t->elements && status == TW_OK; i++)
        status = twi_put_elements(t, i, value, error);
    return status;
}

/* Copies `from` into the first corner of place `at` of a batch of such rows. */
static tw_status put_corner(tw_tensor *to, int64_t at, tw_shape row, const tw_tensor *from, tw_error *error)
{
    int last = row.rank - 1;
    int64_t length = row.rank ? from->shape.dims[last] : 1, place[TW_MAX_RANK] = {0};
    tw_status status = TW_OK;
    for (int64_t done = 0; done < from->elements && status == TW_OK; done += length) {
        int64_t where = at;
        for (int k = 0; k < row.rank; k++)
            where = where * row.dims[k] + place[k];
        tw_tensor *line = NULL;
        status = twi_take_elements(from, done, TW_SHAPE(length), &line, error);
        if (status == TW_OK)
            status = twi_put_elements(to, where, line, error);
        tw_tensor_release(line);
        for (int k = last - 1; k >= 0 && ++place[k] == from->shape.dims[k]; k--)
            place[k] = 0;
    }
    return status;
}

static tw_status next_padded(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    const twi_recipe *r = it->recipe;
    batching *s = it->state;
    int64_t count;
    tw_status status = gather_batch(it, pull, &count);
    for (int c = 0; c < r->num_components && status == TW_OK && !pull->end; c++) {
        tw_shape row;
        status = padded_shape(r->arguments[2 + c], &s->rows, count, c, &row, pull->error);
        if (status == TW_OK && !(element[c] = tw_tensor_create(r->types[c], batch_shape(count, row))))
            status = twi_fail_memory(pull->error, r->node);
        if (status == TW_OK)
            status = fill_with(element[c], r->arguments[2 + r->lists[0] + c], pull->error);
        for (int64_t i = 0; i < count && status == TW_OK; i++)
            status = put_corner(element[c], i, row, twi_rows_at(&s->rows, i)[c], pull->error);
    }
    twi_rows_drop(&s->rows, s->rows.count);
    return status;
}

/* ---- sparse batches ---------------------------------------------------------------------------------------------- */

/* Arguments: the input, the batch's size, the shape of a row, -1 where the largest is as large as it has to be. */
static tw_status check_sparse_batch(twi_recipe *r, tw_error *error)
{
    const tw_tensor *asked = r->arguments[2];
    if (twi_input_recipe(r) && twi_input_recipe(r)->num_components != 1)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "DenseToSparseBatchDataset only supports inputs with a single component.");
    if (asked->elements >= TW_MAX_RANK)
        return twi_fail(error, TW_UNIMPLEMENTED, "row_shape has rank %lld, expected at most %d",
                        (long long)asked->elements, TW_MAX_RANK - 1);
    for (int64_t k = 0; k < asked->elements; k++)
        if (twi_tensor_int(asked, k) < -1)
            return twi_fail(error, TW_INVALID_ARGUMENT, "Dimension %lld of row_shape must be >= -1", (long long)k);
    return check_batch(r, error);
}

/* All elements of all rows, with their places. */
static tw_status list_entries(const twi_rows *rows, int64_t count, tw_tensor *indices, tw_tensor *values,
                              tw_error *error)
{
    int64_t *to = indices->data, at = 0;
    tw_status status = TW_OK;
    for (int64_t i = 0; i < count && status == TW_OK; i++) {
        const tw_tensor *row = twi_rows_at(rows, i)[0];
        int64_t place[TW_MAX_RANK] = {0};
        status = twi_put_elements(values, at, row, error);
        at += row->elements;
        for (int64_t e = 0; e < row->elements; e++) {
            *to++ = i;
            for (int k = 0; k < row->shape.rank; k++)
                *to++ = place[k];
            for (int k = row->shape.rank - 1; k >= 0 && ++place[k] == row->shape.dims[k]; k--)
                place[k] = 0;
        }
    }
    return status;
}

/* A sparse tensor as elements have it: three texts. */
static tw_status sparse_element(const twi_rows *rows, int64_t count, tw_shape row, tw_tensor **element, tw_error *error)
{
    const tw_tensor *first = twi_rows_at(rows, 0)[0];
    tw_shape shape = batch_shape(count, row);
    int64_t all = 0;
    for (int64_t i = 0; i < count; i++)
        all += twi_rows_at(rows, i)[0]->elements;
    tw_tensor *parts[3] = {tw_tensor_create(TW_INT64, TW_SHAPE(all, row.rank + 1)),
                           tw_tensor_create(first->dtype, TW_SHAPE(all)),
                           tw_tensor_from(TW_INT64, TW_SHAPE(row.rank + 1), shape.dims)};
    element[0] = tw_tensor_create(TW_STRING, TW_SHAPE(3));
    tw_status status =
        parts[0] && parts[1] && parts[2] && element[0] ? TW_OK : twi_fail_memory(error, "making a batch");
    if (status == TW_OK)
        status = list_entries(rows, count, parts[0], parts[1], error);
    for (int i = 0; i < 3 && status == TW_OK; i++)
        if (!twi_tensor_to_text(parts[i], (tw_string *)element[0]->data + i))
            status = twi_fail_memory(error, "making a batch");
    twi_element_drop(parts, 3);
    return status;
}

static tw_status next_sparse_batch(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    batching *s = it->state;
    int64_t count;
    tw_shape row;
    tw_status status = gather_batch(it, pull, &count);
    if (status == TW_OK && !pull->end) {
        status = padded_shape(it->recipe->arguments[2], &s->rows, count, 0, &row, pull->error);
        if (status == TW_OK)
            status = sparse_element(&s->rows, count, row, element, pull->error);
    }
    twi_rows_drop(&s->rows, s->rows.count);
    return status;
}

/* ---- taken apart ------------------------------------------------------------------------------------------------- */

typedef struct unbatching {
    twi_iteration *input;
    tw_tensor *batch[TWI_ELEMENT]; /* whose rows are given; none: the next one's turn */
    int64_t next;
} unbatching;

static void end_unbatch(twi_iteration *it)
{
    unbatching *s = it->state;
    twi_element_drop(s->batch, it->recipe->num_components);
    twi_end_input(it);
}

static tw_status pull_batch(unbatching *s, twi_pull *pull, int components)
{
    tw_status status = twi_iteration_next(s->input, pull, s->batch);
    s->next = 0;
    for (int c = 0; c < components && status == TW_OK && !pull->end; c++)
        if (s->batch[c]->shape.rank < 1 || s->batch[c]->shape.dims[0] != s->batch[0]->shape.dims[0])
            status = twi_fail(pull->error, TW_INVALID_ARGUMENT,
                              "Input element must have the same batch size in each component.");
    if (status != TW_OK)
        twi_element_drop(s->batch, components);
    return status;
}

static int64_t count_unbatched(const twi_recipe *r)
{
    int64_t count = twi_count_same(r), rows = twi_input_recipe(r)->rows, all;
    if (count < 0 || rows < 0)
        return count < 0 ? count : TWI_UNCOUNTED;
    return __builtin_mul_overflow(count, rows, &all) ? INT64_MAX : all;
}

static tw_status next_unbatched(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    unbatching *s = it->state;
    int components = it->recipe->num_components;
    while (!s->batch[0] || s->next >= s->batch[0]->shape.dims[0]) {
        twi_element_drop(s->batch, components);
        tw_status status = pull_batch(s, pull, components);
        if (status != TW_OK || pull->end)
            return status;
    }
    tw_status status = TW_OK;
    for (int c = 0; c < components && status == TW_OK; c++) {
        tw_shape row = {.rank = s->batch[c]->shape.rank - 1};
        memcpy(row.dims, s->batch[c]->shape.dims + 1, sizeof *row.dims * (size_t)row.rank);
        status = twi_take_elements(s->batch[c], s->next * tw_shape_elements(row), row, &element[c], pull->error);
    }
    s->next++;
    return status;
}

/* ---- other batches ----------------------------------------------------------------------------------------------- */

typedef struct rebatching {
    unbatching rows; /* of the input's batches, one by one */
    int64_t turn;    /* whose of the sizes it is */
} rebatching;

static tw_status check_rebatch(twi_recipe *r, tw_error *error)
{
    const tw_tensor *sizes = r->arguments[1];
    if (sizes->elements < 1)
        return twi_fail(error, TW_INVALID_ARGUMENT, "batch_sizes must not be empty.");
    for (int64_t i = 0; i < sizes->elements; i++)
        if (twi_tensor_int(sizes, i) < 1)
            return twi_fail(error, twi_tensor_int(sizes, i) ? TW_INVALID_ARGUMENT : TW_UNIMPLEMENTED,
                            "batch_sizes has %lld, expected more than 0", (long long)twi_tensor_int(sizes, i));
    return TW_OK;
}

/* The sizes take turns. */
static tw_status next_rebatched(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    rebatching *s = it->state;
    const tw_tensor *sizes = it->recipe->arguments[1];
    int64_t size = twi_tensor_int(sizes, s->turn++ % sizes->elements);
    bool whole = twi_recipe_int(it->recipe, 2);
    twi_rows rows = {.width = it->recipe->num_components};
    tw_status status = TW_OK;
    while (rows.count < size && status == TW_OK && !pull->end) {
        tw_tensor *row[TWI_ELEMENT] = {NULL};
        status = next_unbatched(it, pull, row);
        if (status == TW_OK && !pull->end && !twi_rows_push(&rows, row))
            status = twi_fail_memory(pull->error, it->recipe->node);
        else if (status == TW_OK && !pull->end)
            continue;
        twi_element_drop(row, rows.width);
    }
    pull->end = status == TW_OK && (rows.count == 0 || (whole && rows.count < size));
    if (status == TW_OK && !pull->end)
        status = twi_batch_rows(&rows, rows.count, element, pull->error);
    twi_rows_free(&rows);
    return status;
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

static tw_status next_row(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    int64_t *next = it->state;
    const twi_recipe *r = it->recipe;
    pull->end = *next >= r->num_arguments;
    for (int c = 0; c < r->num_components && !pull->end; c++)
        element[c] = tw_tensor_retain(r->arguments[*next + c]);
    *next += r->num_components;
    return TW_OK;
}

static tw_status at_row(const twi_recipe *r, int64_t index, tw_tensor **element, tw_error *error)
{
    (void)error;
    for (int c = 0; c < r->num_components; c++)
        element[c] = tw_tensor_retain(r->arguments[index * r->num_components + c]);
    return TW_OK;
}

static int64_t count_rows(const twi_recipe *r)
{
    return r->num_arguments / r->num_components;
}

static tw_status check_list(twi_recipe *r, tw_error *error)
{
    if (r->num_arguments % r->num_components)
        return twi_fail(error, TW_INVALID_ARGUMENT, "%d tensors for elements of %d components", r->num_arguments,
                        r->num_components);
    return TW_OK;
}

static const twi_recipe_kind rows_kind = {"a window", next_row, .state = sizeof(int64_t), .count = count_rows};

tw_tensor *twi_recipe_of_rows(const twi_recipe *maker, const twi_recipe *like, tw_tensor **const *rows, int64_t count,
                              int first, int components)
{
    if (count * components > INT32_MAX)
        return NULL;
    twi_recipe *r = twi_recipe_make(&rows_kind, maker->node, (int)(count * components), components);
    if (!r)
        return NULL;
    for (int c = 0; c < components; c++)
        r->types[c] = like->types[first + c];
    for (int64_t i = 0; i < count; i++)
        for (int c = 0; c < components; c++)
            r->arguments[i * components + c] = tw_tensor_retain(rows[i][first + c]);
    return twi_variant(r, twi_recipe_free);
}

/* Arguments: the input, size, shift, stride, drop_remainder. */
static tw_status check_window(twi_recipe *r, tw_error *error)
{
    static const char *const names[] = {"Window size", "Window shift", "Window stride"};
    for (int i = 0; i < 3; i++)
        if (twi_recipe_int(r, 1 + i) < 1)
            return twi_fail(error, TW_INVALID_ARGUMENT, "%s must be greater than zero.", names[i]);
    return TW_OK;
}

static int64_t count_windows(const twi_recipe *r)
{
    int64_t size = twi_recipe_int(r, 1), shift = twi_recipe_int(r, 2), stride = twi_recipe_int(r, 3), reach;
    int64_t count = twi_count_same(r);
    bool whole = twi_recipe_int(r, 4), far = __builtin_mul_overflow(size - 1, stride, &reach) || reach == INT64_MAX;
    if (count < 0)
        return count;
    if (whole)
        return far || count < reach + 1 ? 0 : (count - reach - 1) / shift + 1;
    return count / shift + (count % shift != 0);
}

/* Each component of a window is a data set of its own. */
static tw_status next_window(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    batching *s = it->state;
    const twi_recipe *r = it->recipe;
    int64_t size = twi_recipe_int(r, 1), shift = twi_recipe_int(r, 2), stride = twi_recipe_int(r, 3), count;
    int64_t span;
    if (__builtin_mul_overflow(size - 1, stride, &span) || span == INT64_MAX)
        span = INT64_MAX - 1; /* all there is */
    tw_status status = gather(s, span + 1, pull);
    count = s->rows.count ? (s->rows.count - 1) / stride + 1 : 0;
    count = count < size ? count : size;
    pull->end = count == 0 || (count < size && twi_recipe_int(r, 4));
    if (status != TW_OK || pull->end)
        return status;
    tw_tensor ***rows = twi_alloc_array((size_t)count, sizeof *rows);
    for (int64_t i = 0; rows && i < count; i++)
        rows[i] = twi_rows_at(&s->rows, i * stride);
    for (int c = 0; c < r->num_components && status == TW_OK; c++) {
        element[c] = rows ? twi_recipe_of_rows(r, s->input->recipe, rows, count, c, 1) : NULL;
        status = element[c] ? TW_OK : twi_fail_memory(pull->error, r->node);
    }
    twi_free(rows);
    if (status == TW_OK && shift > s->rows.count) {
        int64_t beyond = shift - s->rows.count;
        twi_rows_drop(&s->rows, s->rows.count);
        for (int64_t i = 0; i < beyond && status == TW_OK && !s->ended; i++) {
            status = gather(s, 1, pull);
            twi_rows_drop(&s->rows, 1);
        }
    } else if (status == TW_OK) {
        twi_rows_drop(&s->rows, shift);
    }
    pull->end = false;
    return status;
}

#define BATCHES .state = sizeof(batching), .begin = begin_batches, .end = end_batches
#define BATCH next_batch, BATCHES, .check = check_batch, .count = count_batches, .at = at_batch
#define PADDED                                                                                                         \
    next_padded, BATCHES, .check = check_padded, .before = 2, .lists = {"N", "Toutput_types"}, .count = count_batches
#define SPARSE_BATCH                                                                                                   \
    next_sparse_batch, BATCHES, .check = check_sparse_batch, .count = count_batches, .passes = TWI_OTHER_ELEMENTS
#define UNBATCH                                                                                                        \
    next_unbatched, .state = sizeof(unbatching), .begin = twi_begin_input, .end = end_unbatch, .count = count_unbatched

const twi_recipe_kind twi_batch_kinds[] = {
    {"BatchDataset", BATCH},
    {"BatchDatasetV2", BATCH},
    {"ParallelBatchDataset", BATCH}, /* copies are made one after the other */
    {"PaddedBatchDataset", PADDED},
    {"PaddedBatchDatasetV2", PADDED},
    {"DenseToSparseBatchDataset", SPARSE_BATCH},
    {"ExperimentalDenseToSparseBatchDataset", SPARSE_BATCH},
    {"ListDataset", next_row, .state = sizeof(int64_t), .check = check_list, .lists = {"Tinput_types"},
     .count = count_rows, .at = at_row},
    {"UnbatchDataset", UNBATCH},
    {"ExperimentalUnbatchDataset", UNBATCH},
    {"RebatchDatasetV2", next_rebatched, .state = sizeof(rebatching), .begin = twi_begin_input, .end = end_unbatch,
     .check = check_rebatch},
    {"WindowDataset", next_window, BATCHES, .check = check_window, .count = count_windows},
    {0},
};
