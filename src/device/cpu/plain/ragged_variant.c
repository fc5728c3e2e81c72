/* ragged_variant.c - ragged tensors as values (tensor/variant.h), which loops read row by row, and back. In data sets
 * they are texts, those of splits and values side by side.
 * Never here:  ops whose inputs are splits and values and nothing else (ragged.c). */
#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/ragged.h"
#include "device/cpu/plain/serialize.h"
#include "tensor/variant.h"

#include <string.h>

static tw_status fail_memory(const twi_run *r)
{
    return twi_fail_memory(r->error, r->node);
}

static int64_t row_elements(tw_shape shape)
{
    return twi_elements_between(shape, 1, shape.rank);
}

/* NULL and the empty list are the same. */
static const twi_tensor_list *list_of(const twi_run *r)
{
    static const twi_tensor_list empty = {.wanted = {.rank = -1}, .most = -1};
    const twi_tensor_list *list = *(twi_tensor_list *const *)r->inputs[0];
    return list ? list : &empty;
}

/* Lists of lists, whose first that is set tells: a ragged tensor has values. */
static bool is_array(const twi_tensor_list *list)
{
    int64_t first = twi_tensor_list_next(list, 0);
    return first == list->count || twi_tensor_list_item(list, first)->dtype == TW_VARIANT;
}

/* Of an array; NULL: nobody has set that item, or it is empty. */
static const twi_tensor_list *ragged_at(const twi_tensor_list *array, int64_t i)
{
    const tw_tensor *item = twi_tensor_list_item(array, i);
    const twi_tensor_list *list = item ? *(twi_tensor_list *const *)item->data : NULL;
    return list && list->count > 0 ? list : NULL;
}

static const tw_tensor *values_of(const twi_tensor_list *ragged)
{
    return twi_tensor_list_item(ragged, ragged->splits);
}

/* ---- RaggedTensorToVariant --------------------------------------------------------------------------------------- */

static tw_status prepare_to_variant(twi_prepare *p)
{
    bool rows = twi_attr_bool(p->attrs, "batched_input", false);
    return twi_keep(p, &rows, sizeof rows);
}

/* Splits k from row `begin` to before `end`, counted anew from 0. */
static tw_tensor *cut_splits(const twi_run *r, int k, int64_t begin, int64_t end)
{
    tw_tensor *cut = tw_tensor_create(r->input_operands[k].dtype, TW_SHAPE(end - begin + 1));
    for (int64_t i = begin; cut && i <= end; i++)
        twi_put_integer(cut->dtype, cut->data, i - begin, twi_input_int(r, k, i) - twi_input_int(r, k, begin));
    return cut;
}

/* Rows begin to before end of axis `axis`, as a ragged tensor; `flat` takes the axis of the one row away. NULL: memory
 * has run out. */
static twi_tensor_list *cut_ragged(const twi_run *r, int axis, int64_t begin, int64_t end, bool flat)
{
    int rank = r->num_inputs - 1;
    const twi_operand *values = &r->input_operands[rank];
    tw_shape shape = values->shape;
    twi_tensor_list *list = twi_tensor_list_create(rank - axis + 1);
    bool fits = list != NULL;
    for (int k = axis; k < rank && fits; k++) {
        tw_tensor *splits = cut_splits(r, k, begin, end);
        fits = splits && twi_tensor_list_put(list, k - axis, splits);
        begin = twi_input_int(r, k, begin);
        end = twi_input_int(r, k, end);
    }
    int64_t first = shape.rank > 0 ? begin * row_elements(shape) : 0;
    if (shape.rank > 0)
        shape.dims[0] = end - begin;
    if (flat)
        memmove(shape.dims, shape.dims + 1, sizeof *shape.dims * (size_t)--shape.rank);
    tw_tensor *cut =
        fits ? twi_tensor_from(values->dtype, shape, twi_element(r->inputs[rank], values->dtype, first)) : NULL;
    fits = cut && twi_tensor_list_put(list, rank - axis, cut);
    if (fits)
        list->splits = rank - axis;
    if (fits)
        return list;
    twi_tensor_list_release(list);
    return NULL;
}

/* Item i becomes a list, whose reference is let go. */
static bool put_ragged(twi_tensor_list *array, int64_t i, twi_tensor_list *ragged)
{
    tw_tensor *item = ragged ? twi_tensor_from(TW_VARIANT, TW_SCALAR, &ragged) : NULL;
    twi_tensor_list_release(ragged);
    return item && twi_tensor_list_put(array, i, item);
}

static twi_tensor_list *cut_rows(const twi_run *r, int64_t rows)
{
    int rank = r->num_inputs - 1;
    twi_tensor_list *array = twi_tensor_list_create(rows);
    bool fits = array != NULL;
    for (int64_t i = 0; i < rows && fits; i++)
        fits = put_ragged(array, i,
                          rank ? cut_ragged(r, 1, twi_input_int(r, 0, i), twi_input_int(r, 0, i + 1), false)
                               : cut_ragged(r, 0, i, i + 1, true));
    if (fits)
        return array;
    twi_tensor_list_release(array);
    return NULL;
}

static tw_status write_ragged(const twi_run *r, const twi_tensor_list *ragged, tw_string *texts)
{
    tw_status status = TW_OK;
    for (int64_t k = 0; k < ragged->count && status == TW_OK; k++)
        status = twi_write_text(r, twi_tensor_list_item(ragged, k), texts + k);
    return status;
}

static tw_status write_texts(const twi_run *r, const twi_tensor_list *made, bool rows)
{
    tw_shape shape = r->output_operands[0].shape;
    tw_string *texts = r->outputs[0];
    tw_status status = rows ? TW_OK : write_ragged(r, made, texts);
    for (int64_t i = 0; rows && i < made->count && status == TW_OK; i++)
        status = write_ragged(r, ragged_at(made, i), texts + i * shape.dims[1]);
    return status;
}

static tw_status run_to_variant(const twi_run *r)
{
    int rank = r->num_inputs - 1;
    tw_shape values = r->input_operands[rank].shape;
    bool by_rows = *(const bool *)r->state, texts = r->output_operands[0].dtype == TW_STRING;
    twi_tensor_list **to = r->outputs[0];
    tw_status status = twi_check_splits(r, 0, rank);
    if (status != TW_OK)
        return status;
    int64_t rows = rank ? r->input_operands[0].elements - 1 : values.rank > 0 ? values.dims[0] : 0;
    twi_tensor_list *made = by_rows ? cut_rows(r, rows) : cut_ragged(r, 0, 0, rows, false);
    if (made && texts) {
        status = write_texts(r, made, by_rows);
        twi_tensor_list_release(made);
        return status;
    }
    twi_tensor_list_release(*to);
    *to = made;
    return made ? TW_OK : fail_memory(r);
}

/* ---- RaggedTensorFromVariant ------------------------------------------------------------------------------------- */

typedef struct ranks {
    int in, out; /* in: -1, as many as there are */
} ranks;

static tw_status prepare_from_variant(twi_prepare *p)
{
    ranks s = {(int)twi_attr_int(p->attrs, "input_ragged_rank", -1), p->num_outputs - 1};
    return twi_keep(p, &s, sizeof s);
}

/* One that has so many splits, of the types that the outputs have. */
static tw_status check_ragged(const twi_run *r, const twi_tensor_list *ragged, int64_t i, int splits)
{
    int rank = r->num_outputs - 1;
    char text[128];
    if (!ragged)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "element %lld of the input is no ragged tensor", (long long)i);
    if (ragged->count != ragged->splits + 1 || !values_of(ragged))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "element %lld of the input is a list, no ragged tensor",
                        (long long)i);
    if (ragged->splits != splits)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "element %lld of the input has ragged rank %d. Expected ragged_rank=%d", (long long)i,
                        ragged->splits, splits);
    if (values_of(ragged)->dtype != r->output_operands[rank].dtype)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "Expected values Tensor dtype: %s, found: %s",
                        tw_dtype_name(r->output_operands[rank].dtype), tw_dtype_name(values_of(ragged)->dtype));
    for (int k = 0; k < splits; k++) {
        const tw_tensor *item = twi_tensor_list_item(ragged, k);
        if (item->dtype != r->output_operands[0].dtype)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "Expected row_splits Tensor dtype: %s, found: %s",
                            tw_dtype_name(r->output_operands[0].dtype), tw_dtype_name(item->dtype));
        if (item->shape.rank != 1 || item->elements < 1) /* who sets items of a list may have set this */
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "element %lld of the input has row_splits of shape %s",
                            (long long)i, tw_shape_text(item->shape, text, sizeof text));
    }
    return TW_OK;
}

/* A tensor as output i. */
static tw_status give(const twi_run *r, int i, const tw_tensor *tensor)
{
    void *to;
    tw_status status = twi_make_output(r, i, tensor->shape, &to);
    if (status == TW_OK && !twi_copy_elements(tensor->elements, tensor->dtype, tensor->data, to))
        status = fail_memory(r);
    return status;
}

static tw_status read_one(const twi_run *r, const twi_tensor_list *ragged)
{
    tw_status status = check_ragged(r, ragged, 0, r->num_outputs - 1);
    for (int k = 0; k < r->num_outputs && status == TW_OK; k++)
        status = give(r, k, twi_tensor_list_item(ragged, k));
    return status;
}

/* How many rows item i has along its first axis. */
static int64_t count_rows(const twi_tensor_list *array, int64_t i)
{
    const twi_tensor_list *ragged = ragged_at(array, i);
    return ragged->splits ? twi_tensor_list_item(ragged, 0)->elements - 1 : values_of(ragged)->shape.dims[0];
}

/* Of an array of several axes the outermost splits, whose rows are all as long as its next axis. */
static tw_status give_axes(const twi_run *r, tw_shape axes)
{
    int64_t rows = 1;
    tw_status status = TW_OK;
    for (int k = 0; k < axes.rank - 1 && status == TW_OK; k++) {
        void *to;
        rows *= axes.dims[k];
        status = twi_make_output(r, k, TW_SHAPE(rows + 1), &to);
        for (int64_t i = 0; i <= rows && status == TW_OK; i++)
            twi_put_integer(r->output_operands[k].dtype, to, i, i * axes.dims[k + 1]);
    }
    return status;
}

/* Splits `output`: how long each item is. */
static tw_status give_lengths(const twi_run *r, const twi_tensor_list *array, int output)
{
    void *to;
    int64_t at = 0;
    tw_dtype dtype = r->output_operands[output].dtype;
    tw_status status = twi_make_output(r, output, TW_SHAPE(array->count + 1), &to);
    for (int64_t i = 0; i < array->count && status == TW_OK; i++) {
        twi_put_integer(dtype, to, i, at);
        at += count_rows(array, i);
    }
    if (status == TW_OK)
        twi_put_integer(dtype, to, array->count, at);
    return status;
}

/* The items' splits k, each behind the last of the one before, as splits `output`. */
static tw_status give_splits(const twi_run *r, const twi_tensor_list *array, int k, int output)
{
    void *to;
    int64_t count = 1, at = 0, next = 0;
    tw_dtype dtype = r->output_operands[output].dtype;
    for (int64_t i = 0; i < array->count; i++)
        count += twi_tensor_list_item(ragged_at(array, i), k)->elements - 1;
    tw_status status = twi_make_output(r, output, TW_SHAPE(count), &to);
    if (status == TW_OK)
        twi_put_integer(dtype, to, next++, 0);
    for (int64_t i = 0; i < array->count && status == TW_OK; i++) {
        const tw_tensor *splits = twi_tensor_list_item(ragged_at(array, i), k);
        for (int64_t j = 1; j < splits->elements; j++)
            twi_put_integer(dtype, to, next++, at + twi_tensor_int(splits, j));
        at += twi_tensor_int(splits, splits->elements - 1);
    }
    return status;
}

/* What all values together are: behind each other, or `stacked` along a new axis. Nothing says what none are like. */
static tw_status find_shape(const twi_run *r, const twi_tensor_list *array, bool stacked, tw_shape *all)
{
    int64_t rows = 0;
    *all = TW_SHAPE(0);
    for (int64_t i = 0; i < array->count; i++) {
        tw_shape shape = values_of(ragged_at(array, i))->shape, rest = *all;
        int first = stacked ? 0 : 1;
        if (shape.rank < first || shape.rank == TW_MAX_RANK)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "Ragged values must have rank >= 1 and less than %d",
                            TW_MAX_RANK);
        rows += stacked ? 1 : shape.dims[0];
        memmove(shape.dims + 1, shape.dims + first, sizeof *shape.dims * (size_t)(shape.rank - first));
        shape.rank += 1 - first;
        shape.dims[0] = rest.dims[0] = rows;
        if (i > 0 && !tw_shape_equal(shape, rest))
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "Rank of values must match for all components, and sizes beyond their first axis");
        *all = shape;
    }
    return TW_OK;
}

static tw_status give_values(const twi_run *r, const twi_tensor_list *array, bool stacked)
{
    int rank = r->num_outputs - 1;
    tw_dtype dtype = r->output_operands[rank].dtype;
    tw_shape shape;
    void *to;
    tw_status status = find_shape(r, array, stacked, &shape);
    if (status == TW_OK)
        status = twi_make_output(r, rank, shape, &to);
    for (int64_t i = 0; i < array->count && status == TW_OK; i++) {
        const tw_tensor *values = values_of(ragged_at(array, i));
        if (!twi_copy_elements(values->elements, dtype, values->data, to))
            status = fail_memory(r);
        to = twi_element_of_output(to, dtype, values->elements);
    }
    return status;
}

/* An array of those axes, or one ragged tensor where it has none. */
static tw_status read_ragged(const twi_run *r, const twi_tensor_list *array, tw_shape axes)
{
    const ranks *s = r->state;
    int dims = axes.rank, in = s->in >= 0 ? s->in : s->out - dims;
    bool stacked = s->out == 0;
    if (in < -1 || (stacked && dims > 1) || (s->out != 0 && s->out != dims + in))
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); "
                        "output_ragged_rank: %d, input_ragged_rank: %d, encoded_variant.dims(): %d.",
                        s->out, in, dims);
    if (!dims)
        return read_one(r, array);
    in = in < 0 ? 0 : in;
    tw_status status = TW_OK;
    for (int64_t i = 0; i < array->count && status == TW_OK; i++)
        status = check_ragged(r, ragged_at(array, i), i, in);
    if (status == TW_OK && !stacked)
        status = give_axes(r, axes);
    if (status == TW_OK && !stacked)
        status = give_lengths(r, array, dims - 1);
    for (int k = 0; k < in && status == TW_OK && !stacked; k++)
        status = give_splits(r, array, k, dims + k);
    return status == TW_OK ? give_values(r, array, stacked) : status;
}

/* So many texts, the last of which is that of the values; NULL with *status. */
static twi_tensor_list *ragged_of_texts(const twi_run *r, const tw_string *texts, int parts, tw_status *status)
{
    twi_tensor_list *list = twi_tensor_list_create(parts);
    *status = list ? TW_OK : fail_memory(r);
    for (int k = 0; k < parts && *status == TW_OK; k++) {
        tw_tensor *part;
        tw_dtype dtype = r->output_operands[k + 1 < parts ? 0 : r->num_outputs - 1].dtype;
        *status = twi_read_text(r, texts + k, dtype, &part);
        if (*status == TW_OK && !twi_tensor_list_put(list, k, part))
            *status = fail_memory(r);
    }
    if (*status == TW_OK) {
        list->splits = parts - 1;
        return list;
    }
    twi_tensor_list_release(list);
    return NULL;
}

static tw_status read_texts(const twi_run *r)
{
    const tw_string *texts = r->inputs[0];
    tw_shape axes = r->input_operands[0].shape;
    if (axes.rank < 1 || axes.dims[axes.rank - 1] < 1 || axes.dims[axes.rank - 1] > r->num_outputs)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "the texts are none of ragged tensors of rank %d",
                        r->num_outputs - 1);
    int parts = (int)axes.dims[--axes.rank];
    tw_status status = TW_OK;
    int64_t count = tw_shape_elements(axes);
    twi_tensor_list *all = axes.rank ? twi_tensor_list_create(count) : ragged_of_texts(r, texts, parts, &status);
    for (int64_t i = 0; i < count && all && axes.rank && status == TW_OK; i++)
        if (!put_ragged(all, i, ragged_of_texts(r, texts + i * parts, parts, &status)) && status == TW_OK)
            status = fail_memory(r);
    if (!all && status == TW_OK)
        status = fail_memory(r);
    if (status == TW_OK)
        status = read_ragged(r, all, axes);
    twi_tensor_list_release(all);
    return status;
}

static tw_status run_from_variant(const twi_run *r)
{
    if (r->input_operands[0].dtype == TW_STRING)
        return read_texts(r);
    const twi_tensor_list *array = list_of(r);
    return read_ragged(r, array, is_array(array) ? TW_SHAPE(array->count) : TW_SCALAR);
}

/* ---- RaggedTensorToVariantGradient ------------------------------------------------------------------------------- */

/* How many elements row i of the outermost axis has, where nothing came back for it. */
static int64_t missing_elements(const twi_run *r, int64_t i, tw_shape shape)
{
    const twi_operand *splits = &r->input_operands[1];
    if (splits->shape.rank == 0)
        return row_elements(shape);
    return i + 1 < splits->elements ? (twi_input_int(r, 1, i + 1) - twi_input_int(r, 1, i)) * row_elements(shape) : -1;
}

static tw_status fail_length(const twi_run *r, tw_shape shape)
{
    char text[128];
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "the gradients of all rows together do not fill %s",
                    tw_shape_text(shape, text, sizeof text));
}

/* Item i's values, or zeros, go behind what is there already. */
static tw_status add_values(const twi_run *r, const twi_tensor_list *ragged, int64_t i, tw_shape shape, void *to,
                            int64_t *at)
{
    tw_dtype dtype = r->output_operands[0].dtype;
    const tw_tensor *values = ragged ? values_of(ragged) : NULL;
    int64_t count = values ? values->elements : missing_elements(r, i, shape);
    if (values && values->dtype != dtype)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "Expected values Tensor dtype: %s, found: %s",
                        tw_dtype_name(dtype), tw_dtype_name(values->dtype));
    if (count < 0 || count > tw_shape_elements(shape) - *at)
        return fail_length(r, shape);
    void *place = twi_element_of_output(to, dtype, *at);
    *at += count;
    if (!values)
        return twi_clear_elements(r, count, dtype, place);
    return twi_copy_elements(count, dtype, values->data, place) ? TW_OK : fail_memory(r);
}

static tw_status run_gradient(const twi_run *r)
{
    const twi_tensor_list *array = list_of(r);
    tw_shape shape = {.rank = (int)r->input_operands[2].elements};
    void *to;
    int64_t at = 0;
    if (r->input_operands[2].elements > TW_MAX_RANK)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "dense_values_shape has %lld axes, expected at most %d",
                        (long long)r->input_operands[2].elements, TW_MAX_RANK);
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = twi_input_int(r, 2, i);
    if (!tw_shape_is_known(shape) || tw_shape_elements(shape) < 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "dense_values_shape has a dimension less than 0");
    tw_status status = twi_make_output(r, 0, shape, &to);
    if (status != TW_OK)
        return status;
    if (array->count == 0 && r->input_operands[1].shape.rank == 0) /* nothing came back at all */
        return twi_clear_elements(r, tw_shape_elements(shape), r->output_operands[0].dtype, to);
    if (!is_array(array))
        status = add_values(r, array, 0, shape, to, &at);
    for (int64_t i = 0; i < array->count && status == TW_OK && is_array(array); i++)
        status = add_values(r, ragged_at(array, i), i, shape, to, &at);
    return status == TW_OK && at != tw_shape_elements(shape) ? fail_length(r, shape) : status;
}

#define VALUES (TWI_STORED_TYPES | TWI_TYPE(TW_STRING))

const twi_kernel twi_cpu_ragged_variant_kernels[] = {
    {"RaggedTensorToVariant", "plain", VALUES, prepare_to_variant, run_to_variant, twi_free},
    {"RaggedTensorFromVariant", "plain", VALUES, prepare_from_variant, run_from_variant, twi_free},
    {"RaggedTensorToVariantGradient", "plain", VALUES, NULL, run_gradient},
    {0},
};
