/* list.c - lists of tensors (tensor/variant.h): made, filled, taken apart. Tensors in a list are shared, never changed;
 * what is taken out is a copy, for its memory is the plan's. */
#include "base/memory.h"
#include "device/kernel.h"
#include "device/state/series.h"
#include "tensor/variant.h"

#include <string.h>

static tw_status fail_memory(const twi_run *r)
{
    return twi_fail_memory(r->error, r->node);
}

static int64_t integer(const twi_run *r, int input, int64_t i)
{
    const void *data = r->inputs[input];
    return r->input_operands[input].dtype == TW_INT64 ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
}

/* ---- lists in and out -------------------------------------------------------------------------------------------- */

static const twi_tensor_list *list_of(const twi_run *r, int input)
{
    static const twi_tensor_list empty = {.wanted = {.rank = -1}, .most = -1};
    const twi_tensor_list *list = *(twi_tensor_list *const *)r->inputs[input];
    return list ? list : &empty;
}

static void give(const twi_run *r, twi_tensor_list *list)
{
    twi_tensor_list **to = r->outputs[0];
    twi_tensor_list_release(*to);
    *to = list;
}

/* Output 0 becomes the list of input 0, to be changed; NULL: there is no memory for that. */
static twi_tensor_list *give_copy(const twi_run *r)
{
    twi_tensor_list **to = r->outputs[0];
    if (r->outputs[0] != r->inputs[0])
        give(r, twi_tensor_list_hold(*(twi_tensor_list *const *)r->inputs[0]));
    return twi_tensor_list_own(to) ? *to : NULL;
}

/* The shape that input i spells; a scalar, -1, spells nothing. */
static tw_shape spelled(const twi_run *r, int input)
{
    const twi_operand *operand = &r->input_operands[input];
    tw_shape shape = {.rank = operand->shape.rank == 1 ? (int)operand->elements : -1};
    if (shape.rank > TW_MAX_RANK)
        return TW_UNKNOWN_SHAPE;
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = integer(r, input, i);
    return shape;
}

static tw_shape merge(tw_shape a, tw_shape b)
{
    tw_shape result = a.rank < 0 ? b : a;
    for (int i = 0; a.rank >= 0 && b.rank >= 0 && i < a.rank; i++)
        if (result.dims[i] < 0)
            result.dims[i] = b.dims[i];
    return result;
}

static tw_status check_shape(const twi_run *r, const twi_tensor_list *list, tw_shape shape)
{
    char want[128], got[128];
    if (tw_shape_compatible(list->wanted, shape))
        return TW_OK;
    return twi_fail(r->error, TW_INVALID_ARGUMENT,
                    "Tried to append a tensor with incompatible shape to a list. Op element shape: %s list shape: %s",
                    tw_shape_text(shape, got, sizeof got), tw_shape_text(list->wanted, want, sizeof want));
}

static tw_status check_index(const twi_run *r, const twi_tensor_list *list, int64_t index)
{
    if (index >= 0 && index < list->count)
        return TW_OK;
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "Trying to access element %lld in a list with %lld elements.",
                    (long long)index, (long long)list->count);
}

/* ---- putting ----------------------------------------------------------------------------------------------------- */

/* A tensor from memory of the plan becomes item i. */
static tw_status put(const twi_run *r, twi_tensor_list *list, int64_t i, tw_dtype dtype, tw_shape shape,
                     const void *data)
{
    if (dtype == TW_RESOURCE)
        return twi_fail(r->error, TW_UNIMPLEMENTED, "lists and optionals of handles are not supported");
    tw_status status = dtype == TW_VARIANT ? TW_OK : check_shape(r, list, shape);
    if (status != TW_OK)
        return status;
    tw_tensor *item = twi_tensor_from(dtype, dtype == TW_VARIANT ? TW_SCALAR : shape, data);
    return item && twi_tensor_list_put(list, i, item) ? TW_OK : fail_memory(r);
}

static tw_status put_input(const twi_run *r, twi_tensor_list *list, int64_t i, int input)
{
    const twi_operand *operand = &r->input_operands[input];
    return put(r, list, i, operand->dtype, operand->shape, r->inputs[input]);
}

/* A list of an array of them; NULL: nobody has set it. */
static tw_status put_list(const twi_run *r, twi_tensor_list *list, int64_t i, tw_tensor *item)
{
    if (item && item->dtype != TW_VARIANT)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "element %lld of an array of variants is a %s", (long long)i,
                        tw_dtype_name(item->dtype));
    return twi_tensor_list_put(list, i, item ? tw_tensor_retain(item) : NULL) ? TW_OK : fail_memory(r);
}

/* How many rows a tensor has along its first axis. */
static int64_t count_rows(const twi_run *r, int input)
{
    bool lists = r->input_operands[input].dtype == TW_VARIANT;
    return lists ? list_of(r, input)->count : r->input_operands[input].shape.dims[0];
}

/* Rows of a tensor along its first axis. */
static tw_status put_rows(const twi_run *r, twi_tensor_list *list, int64_t i, int input, int64_t first, int64_t rows,
                          bool flat)
{
    const twi_operand *operand = &r->input_operands[input];
    tw_shape shape = operand->shape;
    size_t row = shape.rank && shape.dims[0] ? operand->bytes / (size_t)shape.dims[0] : 0;
    if (operand->dtype == TW_VARIANT)
        return put_list(r, list, i, twi_tensor_list_item(list_of(r, input), first));
    const char *data = (const char *)r->inputs[input] + (size_t)first * row;
    shape.dims[0] = rows;
    if (!flat)
        return put(r, list, i, operand->dtype, shape, data);
    shape.rank--;
    memmove(shape.dims, shape.dims + 1, sizeof *shape.dims * (size_t)shape.rank);
    return put(r, list, i, operand->dtype, shape, data);
}

static tw_status expect_rows(const twi_run *r, int input)
{
    const twi_operand *operand = &r->input_operands[input];
    if (operand->dtype == TW_VARIANT || operand->shape.rank > 0)
        return TW_OK;
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "Tensor must be at least a vector, but saw a scalar");
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

/* What the items have in common with what the op says of them. */
static tw_shape common_shape(const twi_tensor_list *list, tw_shape wanted)
{
    tw_shape shape = merge(list->wanted, wanted);
    for (int64_t i = -1; !tw_shape_is_known(shape) && (i = twi_tensor_list_next(list, i + 1)) < list->count;)
        shape = merge(shape, twi_tensor_list_item(list, i)->shape);
    return shape;
}

static size_t bytes_of(tw_dtype dtype, tw_shape shape)
{
    return (size_t)tw_shape_elements(shape) * tw_dtype_size(dtype);
}

/* An item, or zeros where nobody has set it, into memory that has room for one of that shape. */
static tw_status take(const twi_run *r, const tw_tensor *item, tw_dtype dtype, tw_shape shape, void *to)
{
    char got[128], want[128];
    if (dtype == TW_VARIANT)
        shape = TW_SCALAR;
    if (item && (item->dtype != dtype || !tw_shape_equal(item->shape, shape)))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "an element of the list is %s %s, expected %s %s",
                        tw_dtype_name(item->dtype), tw_shape_text(item->shape, got, sizeof got), tw_dtype_name(dtype),
                        tw_shape_text(shape, want, sizeof want));
    size_t count = (size_t)tw_shape_elements(shape);
    if (!twi_owns_memory(dtype) && bytes_of(dtype, shape)) {
        if (item)
            memcpy(to, item->data, bytes_of(dtype, shape));
        else
            memset(to, 0, bytes_of(dtype, shape));
        return TW_OK;
    }
    if (!twi_owns_memory(dtype))
        return TW_OK;
    if (!item)
        twi_free_owned(dtype, to, count);
    return !item || twi_copy_owned(dtype, item->data, to, count) ? TW_OK : fail_memory(r);
}

/* One that is set. */
static tw_status take_known(const twi_run *r, const tw_tensor *item, int output)
{
    tw_dtype dtype = r->output_operands[output].dtype;
    void *to = r->outputs[output];
    tw_status status = dtype == TW_VARIANT ? TW_OK : twi_make_output(r, output, item->shape, &to);
    return status == TW_OK ? take(r, item, dtype, item->shape, to) : status;
}

static tw_status take_item(const twi_run *r, const twi_tensor_list *list, int64_t index, int shape_input, int output)
{
    const tw_tensor *item = twi_tensor_list_item(list, index);
    tw_dtype dtype = r->output_operands[output].dtype;
    tw_shape shape = common_shape(list, spelled(r, shape_input));
    void *to = r->outputs[output];
    if (item)
        return take_known(r, item, output);
    if (dtype == TW_VARIANT)
        return take(r, NULL, dtype, TW_SCALAR, to);
    if (!tw_shape_is_known(shape))
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "Trying to read an uninitialized tensor but element_shape is not fully defined");
    tw_status status = twi_make_output(r, output, shape, &to);
    return status == TW_OK ? take(r, NULL, dtype, shape, to) : status;
}

/* ---- what makes lists -------------------------------------------------------------------------------------------- */

/* Output 0 becomes a list of `count` items that nobody has set; NULL: there is no memory for it. */
static twi_tensor_list *make(const twi_run *r, int64_t count, tw_shape wanted)
{
    twi_tensor_list *list = twi_tensor_list_create(count);
    if (list) {
        list->wanted = wanted;
        give(r, list);
    }
    return list;
}

static tw_status run_empty(const twi_run *r)
{
    twi_tensor_list *list = make(r, 0, spelled(r, 0));
    if (!list)
        return fail_memory(r);
    list->most = integer(r, 1, 0);
    return TW_OK;
}

static tw_status run_reserve(const twi_run *r)
{
    int64_t count = integer(r, 1, 0);
    if (count < 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "The num_elements to reserve must be a non negative number, but got %lld", (long long)count);
    return make(r, count, spelled(r, 0)) ? TW_OK : fail_memory(r);
}

static tw_status run_from_tensor(const twi_run *r)
{
    tw_status status = expect_rows(r, 0);
    if (status != TW_OK)
        return status;
    int64_t count = count_rows(r, 0);
    twi_tensor_list *list = make(r, count, spelled(r, 1));
    if (!list)
        return fail_memory(r);
    for (int64_t i = 0; i < count && status == TW_OK; i++)
        status = put_rows(r, list, i, 0, i, 1, true);
    return status;
}

static tw_status scatter(const twi_run *r, twi_tensor_list *list, int rows, int indices)
{
    tw_status status = TW_OK;
    for (int64_t i = 0; i < r->input_operands[indices].elements && status == TW_OK; i++) {
        int64_t at = integer(r, indices, i);
        if (at < 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "Indices in TensorListScatter must all be non-negative.");
        if (at >= list->count && !twi_tensor_list_resize(list, at + 1))
            return fail_memory(r);
        status = put_rows(r, list, at, rows, i, 1, true);
    }
    return status;
}

static tw_status check_rows(const twi_run *r, int rows, int indices)
{
    int64_t given = r->input_operands[indices].elements;
    tw_status status = expect_rows(r, rows);
    if (status != TW_OK)
        return status;
    if (count_rows(r, rows) < given)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "Invalid number of rows in input tensor. Expected at least: %lld Actual: %lld",
                        (long long)given, (long long)count_rows(r, rows));
    return TW_OK;
}

static tw_status run_scatter(const twi_run *r)
{
    int64_t count = r->num_inputs > 3 ? integer(r, 3, 0) : 0;
    tw_status status = check_rows(r, 0, 1);
    if (status != TW_OK)
        return status;
    twi_tensor_list *list = make(r, count < 0 ? 0 : count, spelled(r, 2));
    return list ? scatter(r, list, 0, 1) : fail_memory(r);
}

static tw_status run_split(const twi_run *r)
{
    tw_status status = expect_rows(r, 0);
    if (status == TW_OK && r->input_operands[0].dtype == TW_VARIANT)
        status = twi_fail(r->error, TW_UNIMPLEMENTED, "lists of arrays of variants are not supported");
    if (status != TW_OK)
        return status;
    int64_t count = r->input_operands[2].elements, first = 0, all = r->input_operands[0].shape.dims[0];
    twi_tensor_list *list = make(r, count, spelled(r, 1));
    if (!list)
        return fail_memory(r);
    for (int64_t i = 0; i < count && status == TW_OK; i++) {
        int64_t rows = integer(r, 2, i);
        if (rows < 0 || rows > all - first)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "Attempting to slice [%lld, %lld] from tensor with length %lld", (long long)first,
                            (long long)rows, (long long)all);
        status = put_rows(r, list, i, 0, first, rows, false);
        first += rows;
    }
    if (status == TW_OK && first != all)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "Unused values in tensor. Length of tensor: %lld Values used: %lld", (long long)all,
                        (long long)first);
    return status;
}

/* ---- what changes them ------------------------------------------------------------------------------------------- */

static tw_status run_push(const twi_run *r)
{
    twi_tensor_list *list = give_copy(r);
    if (!list)
        return fail_memory(r);
    if (list->most >= 0 && list->count >= list->most)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "Tried to push item into a full list list size: %lld max_num_elements: %lld",
                        (long long)list->count, (long long)list->most);
    if (!twi_tensor_list_resize(list, list->count + 1))
        return fail_memory(r);
    return put_input(r, list, list->count - 1, 1);
}

static tw_status run_pop(const twi_run *r)
{
    twi_tensor_list *list = give_copy(r);
    if (!list)
        return fail_memory(r);
    if (list->count == 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "Trying to pop from an empty list.");
    tw_status status = take_item(r, list, list->count - 1, 1, 1);
    if (status != TW_OK)
        return status;
    return twi_tensor_list_resize(list, list->count - 1) ? TW_OK : fail_memory(r);
}

static tw_status prepare_set(twi_prepare *p)
{
    bool grows = twi_attr_bool(p->attrs, "resize_if_index_out_of_bounds", false);
    return twi_keep(p, &grows, sizeof grows);
}

static tw_status run_set(const twi_run *r)
{
    twi_tensor_list *list = give_copy(r);
    int64_t index = integer(r, 1, 0);
    bool grows = *(const bool *)r->state;
    if (!list || (grows && index >= list->count && !twi_tensor_list_resize(list, index + 1)))
        return fail_memory(r);
    tw_status status = check_index(r, list, index);
    return status == TW_OK ? put_input(r, list, index, 2) : status;
}

static tw_status run_scatter_into(const twi_run *r)
{
    tw_status status = check_rows(r, 1, 2);
    if (status != TW_OK)
        return status;
    twi_tensor_list *list = give_copy(r);
    return list ? scatter(r, list, 1, 2) : fail_memory(r);
}

static tw_status run_resize(const twi_run *r)
{
    int64_t count = integer(r, 1, 0);
    if (count < 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "TensorListSlice expects size to be non-negative. Got: %lld",
                        (long long)count);
    twi_tensor_list *list = give_copy(r);
    return list && twi_tensor_list_resize(list, count) ? TW_OK : fail_memory(r);
}

static tw_status run_concat_lists(const twi_run *r)
{
    const twi_tensor_list *more = list_of(r, 1);
    twi_tensor_list *list = give_copy(r);
    int64_t first = list ? list->count : 0;
    if (!list || !twi_tensor_list_resize(list, first + more->count))
        return fail_memory(r);
    for (int64_t i = -1; (i = twi_tensor_list_next(more, i + 1)) < more->count;)
        if (!twi_tensor_list_put(list, first + i, tw_tensor_retain(twi_tensor_list_item(more, i))))
            return fail_memory(r);
    return TW_OK;
}

/* ---- what looks at them ------------------------------------------------------------------------------------------ */

static tw_status run_length(const twi_run *r)
{
    *(int32_t *)r->outputs[0] = (int32_t)list_of(r, 0)->count;
    return TW_OK;
}

static tw_status run_item(const twi_run *r)
{
    const twi_tensor_list *list = list_of(r, 0);
    int64_t index = integer(r, 1, 0);
    tw_status status = check_index(r, list, index);
    return status == TW_OK ? take_item(r, list, index, 2, 0) : status;
}

/* Lists in a row are a list of them, as an array of variants is. */
static tw_status take_lists(const twi_run *r, const twi_tensor_list *list, int64_t count, bool indexed)
{
    twi_tensor_list *array = make(r, count, TW_UNKNOWN_SHAPE);
    tw_status status = array ? TW_OK : fail_memory(r);
    for (int64_t i = 0; i < count && status == TW_OK; i++) {
        int64_t index = indexed ? integer(r, 1, i) : i;
        status = check_index(r, list, index);
        if (status == TW_OK)
            status = put_list(r, array, i, twi_tensor_list_item(list, index));
    }
    return status;
}

/* Items in a row, along a new first axis; `indices` names them: input 1, or all. */
static tw_status take_many(const twi_run *r, const twi_tensor_list *list, int shape_input, int64_t count, bool indexed)
{
    tw_dtype dtype = r->output_operands[0].dtype;
    tw_shape shape = common_shape(list, spelled(r, shape_input)), all = {.rank = shape.rank + 1, .dims = {count}};
    void *to;
    if (dtype == TW_VARIANT)
        return take_lists(r, list, count, indexed);
    if (!tw_shape_is_known(shape) || shape.rank == TW_MAX_RANK)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "Tried to stack elements of an empty list with non-fully-defined element_shape");
    memcpy(all.dims + 1, shape.dims, sizeof *shape.dims * (size_t)shape.rank);
    tw_status status = twi_make_output(r, 0, all, &to);
    for (int64_t i = 0; i < count && status == TW_OK; i++) {
        int64_t index = indexed ? integer(r, 1, i) : i;
        status = check_index(r, list, index);
        if (status == TW_OK)
            status = take(r, twi_tensor_list_item(list, index), dtype, shape,
                          (char *)to + (size_t)i * bytes_of(dtype, shape));
    }
    return status;
}

static tw_status prepare_stack(twi_prepare *p)
{
    int64_t count = twi_attr_int(p->attrs, "num_elements", -1);
    return twi_keep(p, &count, sizeof count);
}

static tw_status run_stack(const twi_run *r)
{
    const twi_tensor_list *list = list_of(r, 0);
    int64_t wanted = *(const int64_t *)r->state;
    if (wanted >= 0 && wanted != list->count)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "Operation expected a list with %lld elements but got a list with %lld elements.",
                        (long long)wanted, (long long)list->count);
    return take_many(r, list, 1, list->count, false);
}

static tw_status run_gather(const twi_run *r)
{
    return take_many(r, list_of(r, 0), 2, r->input_operands[1].elements, true);
}

/* Items behind each other along their first axis, whose lengths may differ. */
static tw_status run_concat(const twi_run *r)
{
    const twi_tensor_list *list = list_of(r, 0);
    tw_dtype dtype = r->output_operands[0].dtype;
    tw_shape all = TW_UNKNOWN_SHAPE;
    void *to, *lengths;
    int64_t rows = 0;
    for (int64_t i = 0; i < list->count; i++) {
        const tw_tensor *item = twi_tensor_list_item(list, i);
        if (!item || item->shape.rank < 1)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "element %lld of the list has no rows to join",
                            (long long)i);
        tw_shape shape = item->shape;
        rows += shape.dims[0];
        shape.dims[0] = rows;
        if (i > 0)
            all.dims[0] = rows;
        if (i > 0 && !tw_shape_equal(shape, all))
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "Inconsistent shapes seen in the input list: elements differ beyond their first axis");
        all = shape;
    }
    if (list->count == 0)
        all = common_shape(list, r->num_inputs > 1 ? spelled(r, 1) : r->output_operands[0].shape), all.dims[0] = 0;
    if (!tw_shape_is_known(all))
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "All except the first dimension must be fully defined when concating an empty tensor list.");
    tw_status status = twi_make_output(r, 0, all, &to);
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(list->count), &lengths);
    for (int64_t i = 0; i < list->count && status == TW_OK; i++) {
        const tw_tensor *item = twi_tensor_list_item(list, i);
        status = take(r, item, dtype, item->shape, to);
        to = (char *)to + tw_tensor_bytes(item);
        ((int64_t *)lengths)[i] = item->shape.dims[0];
    }
    return status;
}

static tw_status run_element_shape(const twi_run *r)
{
    const twi_tensor_list *list = list_of(r, 0);
    const twi_operand *output = &r->output_operands[0];
    tw_shape shape = r->input_operands[0].shape.rank >= 0 ? r->input_operands[0].shape : list->wanted;
    void *to;
    tw_status status = twi_make_output(r, 0, shape.rank < 0 ? TW_SCALAR : TW_SHAPE(shape.rank), &to);
    for (int i = 0; i < (shape.rank < 0 ? 1 : shape.rank) && status == TW_OK; i++) {
        int64_t value = shape.rank < 0 ? -1 : shape.dims[i];
        if (output->dtype == TW_INT64)
            ((int64_t *)to)[i] = value;
        else
            ((int32_t *)to)[i] = (int32_t)value;
    }
    return status;
}

/* ---- optionals --------------------------------------------------------------------------------------------------- */

static tw_status run_some(const twi_run *r)
{
    twi_tensor_list *list = make(r, r->num_inputs, TW_UNKNOWN_SHAPE);
    tw_status status = list ? TW_OK : fail_memory(r);
    for (int i = 0; i < r->num_inputs && status == TW_OK; i++)
        status = put_input(r, list, i, i);
    return status;
}

static tw_status run_none(const twi_run *r)
{
    give(r, NULL);
    return TW_OK;
}

static tw_status run_has_value(const twi_run *r)
{
    *(bool *)r->outputs[0] = list_of(r, 0)->count > 0;
    return TW_OK;
}

static tw_status run_get_value(const twi_run *r)
{
    const twi_tensor_list *list = list_of(r, 0);
    tw_status status = TW_OK;
    if (list->count == 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "The given optional does not have a value.");
    if (list->count != r->num_outputs)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "The given optional has %lld components, expected %d.",
                        (long long)list->count, r->num_outputs);
    for (int i = 0; i < r->num_outputs && status == TW_OK; i++)
        status = take_known(r, twi_tensor_list_item(list, i), i);
    return status;
}

/* ---- sums and zeros ---------------------------------------------------------------------------------------------- */

static tw_status add_list(const twi_run *r, twi_tensor_list *sum, const twi_tensor_list *list);

/* Both are there: the sum is a tensor of its own. */
static tw_status add_item(const twi_run *r, twi_tensor_list *sum, int64_t i, const tw_tensor *item)
{
    const tw_tensor *first = twi_tensor_list_item(sum, i);
    tw_tensor *made = twi_tensor_from(first->dtype, first->shape, first->data);
    if (!made || !twi_tensor_list_put(sum, i, made))
        return fail_memory(r);
    if (made->dtype != item->dtype || !tw_shape_equal(made->shape, item->shape))
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "Trying to add two tensors with incompatible element types or shapes");
    if (made->dtype != TW_VARIANT)
        return twi_add_elements(r, made->dtype, made->data, item->data, tw_tensor_bytes(made));
    if (!twi_tensor_list_own(made->data))
        return fail_memory(r);
    const twi_tensor_list *inner = *(twi_tensor_list **)item->data;
    return inner ? add_list(r, *(twi_tensor_list **)made->data, inner) : TW_OK;
}

static tw_status add_list(const twi_run *r, twi_tensor_list *sum, const twi_tensor_list *list)
{
    tw_status status = TW_OK;
    if (sum->count != list->count)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "Trying to add two lists of tensors with different number of elements.");
    for (int64_t i = sum->splits - 1; status == TW_OK && (i = twi_tensor_list_next(list, i + 1)) < list->count;) {
        tw_tensor *item = twi_tensor_list_item(list, i);
        if (twi_tensor_list_item(sum, i))
            status = add_item(r, sum, i, item);
        else if (!twi_tensor_list_put(sum, i, tw_tensor_retain(item)))
            status = fail_memory(r);
    }
    return status;
}

static tw_status run_add(const twi_run *r)
{
    twi_tensor_list *sum = give_copy(r);
    tw_status status = sum ? TW_OK : fail_memory(r);
    for (int i = 1; i < r->num_inputs && status == TW_OK; i++)
        status = add_list(r, sum, list_of(r, i));
    return status;
}

static bool clear_list(twi_tensor_list *list)
{
    for (int64_t i = list->splits - 1; (i = twi_tensor_list_next(list, i + 1)) < list->count;) {
        const tw_tensor *item = twi_tensor_list_item(list, i);
        bool is_list = item->dtype == TW_VARIANT;
        tw_tensor *zeros = is_list ? twi_tensor_from(item->dtype, item->shape, item->data)
                                   : tw_tensor_create(item->dtype, item->shape);
        if (!zeros)
            return false;
        if (!is_list && tw_tensor_bytes(zeros))
            memset(zeros->data, 0, tw_tensor_bytes(zeros));
        if (!twi_tensor_list_put(list, i, zeros))
            return false;
        if (is_list && !(twi_tensor_list_own(zeros->data) && clear_list(*(twi_tensor_list **)zeros->data)))
            return false;
    }
    return true;
}

static tw_status run_zeros(const twi_run *r)
{
    twi_tensor_list *list = give_copy(r);
    return list && clear_list(list) ? TW_OK : fail_memory(r);
}

const twi_kernel twi_cpu_list_kernels[] = {
    {"EmptyTensorList", "plain", 0, NULL, run_empty},
    {"TensorListReserve", "plain", 0, NULL, run_reserve},
    {"TensorListFromTensor", "plain", 0, NULL, run_from_tensor},
    {"TensorListScatter", "plain", 0, NULL, run_scatter},
    {"TensorListScatterV2", "plain", 0, NULL, run_scatter},
    {"TensorListSplit", "plain", 0, NULL, run_split},
    {"TensorListPushBack", "plain", 0, NULL, run_push},
    {"TensorListPopBack", "plain", 0, NULL, run_pop},
    {"TensorListSetItem", "plain", 0, prepare_set, run_set, twi_free},
    {"TensorListScatterIntoExistingList", "plain", 0, NULL, run_scatter_into},
    {"TensorListConcatLists", "plain", 0, NULL, run_concat_lists},
    {"TensorListResize", "plain", 0, NULL, run_resize},
    {"TensorListGetItem", "plain", 0, NULL, run_item},
    {"TensorListStack", "plain", 0, prepare_stack, run_stack, twi_free},
    {"TensorListGather", "plain", 0, NULL, run_gather},
    {"TensorListConcat", "plain", 0, NULL, run_concat},
    {"TensorListConcatV2", "plain", 0, NULL, run_concat},
    {"TensorListLength", "plain", 0, NULL, run_length},
    {"TensorListElementShape", "plain", 0, NULL, run_element_shape},
    {"OptionalFromValue", "plain", 0, NULL, run_some},
    {"OptionalNone", "plain", 0, NULL, run_none},
    {"OptionalHasValue", "plain", 0, NULL, run_has_value},
    {"OptionalGetValue", "plain", 0, NULL, run_get_value},
    {"AddN", "plain", TWI_TYPE(TW_VARIANT), NULL, run_add},
    {"ZerosLike", "plain", TWI_TYPE(TW_VARIANT), NULL, run_zeros},
    {0},
};
