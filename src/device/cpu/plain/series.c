/* series.c - stacks and TensorArrays: what loops keep for each other. Elements are copied in and out; where the next
 * run keeps as many, it takes no memory. */
#include "device/state/series.h"

#include "base/memory.h"
#include "tensor/tensor.h"
#include "tensor/variant.h"

#include <string.h>

static tw_status fail_memory(const twi_run *r)
{
    return twi_fail_memory(r->error, r->node);
}

/* There is no series: a handle is of something else, or memory has run out. */
static tw_status fail_series(const twi_run *r)
{
    for (int i = 0; i < r->num_inputs; i++)
        if (r->input_operands[i].dtype == TW_RESOURCE && !twi_is_series(r->input_operands[i].resource))
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "input %d of '%s' is not the handle of a stack or an array",
                            i, r->node);
    return fail_memory(r);
}

static twi_series *input_series(const twi_run *r, int input)
{
    return twi_series_of(r->input_operands[input].resource);
}

static twi_series *output_series(const twi_run *r)
{
    return twi_series_of(r->output_operands[0].resource);
}

static int64_t integer(const twi_run *r, int input)
{
    const void *data = r->inputs[input];
    return r->input_operands[input].dtype == TW_INT64 ? *(const int64_t *)data : *(const int32_t *)data;
}

static tw_status run_nothing(const twi_run *r)
{
    (void)r;
    return TW_OK;
}

/* ---- stacks ------------------------------------------------------------------------------------------------------ */

static tw_status run_stack(const twi_run *r)
{
    twi_series *s = output_series(r);
    if (!s)
        return fail_series(r);
    s->grows = true;
    return twi_series_reset(s, 0, r->error);
}

static tw_status prepare_push(twi_prepare *p)
{
    p->can_overwrite[1] = true;
    return TW_OK;
}

static tw_status run_push(const twi_run *r)
{
    twi_series *s = input_series(r, 0);
    const twi_operand *value = &r->input_operands[1];
    bool is_list = value->dtype == TW_VARIANT; /* whose shape is that of its elements */
    if (!s)
        return fail_series(r);
    tw_status status =
        twi_series_put(r, s, s->count, value->dtype, is_list ? TW_SCALAR : value->shape, r->inputs[1]);
    if (status != TW_OK || r->outputs[0] == r->inputs[1])
        return status;
    if (is_list)
        return twi_copy_owned(TW_VARIANT, r->inputs[1], r->outputs[0], 1) ? TW_OK : fail_memory(r);
    memcpy(r->outputs[0], r->inputs[1], value->bytes);
    return TW_OK;
}

/* Of an array's handle it is kept which of those that its node has made it was: all that a gradient's loop asks for. */
static tw_status run_push_handle(const twi_run *r)
{
    twi_series *s = input_series(r, 0), *array = input_series(r, 1);
    if (!s || !array)
        return fail_series(r);
    int64_t kept[] = {array->made, array->count};
    return twi_series_put(r, s, s->count, TW_INT64, TW_SHAPE(2), kept);
}

/* So many elements of a value, or zeros and empty strings where there is none. False: memory has run out. */
static bool fill(tw_dtype dtype, void *to, const void *value, int64_t count)
{
    size_t bytes = (size_t)count * tw_dtype_size(dtype);
    if (twi_owns_memory(dtype) && value)
        return twi_copy_owned(dtype, value, to, (size_t)count);
    if (twi_owns_memory(dtype))
        twi_free_owned(dtype, to, (size_t)count);
    else if (value && bytes)
        memcpy(to, value, bytes);
    else if (bytes)
        memset(to, 0, bytes);
    return true;
}

/* An element as output 0; what nobody has put there is zeros. */
static tw_status take(const twi_run *r, twi_series *s, int64_t index)
{
    tw_dtype dtype = r->output_operands[0].dtype;
    tw_shape shape;
    const void *value;
    void *to;
    tw_status status = twi_series_get(s, index, dtype, &shape, &value, r->error);
    if (status != TW_OK)
        return status;
    if (value && dtype == TW_VARIANT)
        return twi_copy_owned(TW_VARIANT, value, r->outputs[0], 1) ? TW_OK : fail_memory(r);
    if (!value && tw_shape_is_known(r->output_operands[0].shape))
        shape = r->output_operands[0].shape;
    if (!tw_shape_is_known(shape))
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "Could not read index %lld of an array into which nothing has been put", (long long)index);
    status = twi_make_output(r, 0, shape, &to);
    if (status == TW_OK && !fill(dtype, to, value, tw_shape_elements(shape)))
        status = fail_memory(r);
    return status;
}

static tw_status fail_empty(const twi_run *r)
{
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "Stack[%s] is empty when calling Pop().", r->node);
}

static tw_status run_pop(const twi_run *r)
{
    twi_series *s = input_series(r, 0);
    if (!s)
        return fail_series(r);
    if (s->count == 0)
        return fail_empty(r);
    tw_status status = take(r, s, s->count - 1);
    if (status == TW_OK)
        twi_series_drop_last(s);
    return status;
}

static tw_status run_pop_handle(const twi_run *r)
{
    twi_series *s = input_series(r, 0), *array = output_series(r);
    tw_shape shape;
    const void *value;
    if (!s || !array)
        return fail_series(r);
    if (s->count == 0)
        return fail_empty(r);
    tw_status status = twi_series_get(s, s->count - 1, TW_INT64, &shape, &value, r->error);
    if (status != TW_OK)
        return status;
    if (!value || !tw_shape_equal(shape, TW_SHAPE(2)))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s' takes the handle of an array off a stack of numbers",
                        r->node);
    status = twi_series_recall(array, ((const int64_t *)value)[0], ((const int64_t *)value)[1], r->error);
    if (status == TW_OK)
        twi_series_drop_last(s);
    return status;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static tw_status prepare_array(twi_prepare *p)
{
    bool grows = twi_attr_bool(p->attrs, "dynamic_size", false);
    return twi_keep(p, &grows, sizeof grows);
}

static tw_status run_array(const twi_run *r)
{
    twi_series *s = output_series(r);
    if (!s)
        return fail_series(r);
    s->grows = *(const bool *)r->state;
    *(float *)r->outputs[1] = 0;
    return twi_series_reset(s, integer(r, 0), r->error);
}

/* Asked for again, it is the one that is there. */
static tw_status run_gradient(const twi_run *r)
{
    twi_series *base = input_series(r, 0), *s = output_series(r);
    if (!base || !s)
        return fail_series(r);
    if (s->made != base->made) {
        tw_status status = twi_series_reset(s, base->count, r->error);
        s->made = base->made;
        if (status != TW_OK)
            return status;
    }
    s->grows = base->grows;
    s->sums = true;
    *(float *)r->outputs[1] = *(const float *)r->inputs[1];
    return TW_OK;
}

tw_status twi_add_elements(const twi_run *r, tw_dtype dtype, void *to, const void *from, size_t bytes)
{
#define ADD(type)                                                                                                      \
    for (size_t i = 0; i < bytes / sizeof(type); i++)                                                                  \
        ((type *)to)[i] += ((const type *)from)[i];                                                                    \
    return TW_OK
    switch (dtype) {
    case TW_COMPLEX64: /* part by part */
    case TW_FLOAT32:
        ADD(float);
    case TW_COMPLEX128:
    case TW_FLOAT64:
        ADD(double);
    case TW_INT32:
        ADD(uint32_t); /* sums of integers wrap around */
    case TW_INT64:
        ADD(uint64_t);
    case TW_FLOAT16:
        for (size_t i = 0; i < bytes / sizeof(uint16_t); i++) {
            float sum = tw_half_to_float(((uint16_t *)to)[i]) + tw_half_to_float(((const uint16_t *)from)[i]);
            ((uint16_t *)to)[i] = tw_float_to_half(sum);
        }
        return TW_OK;
    case TW_BFLOAT16:
        for (size_t i = 0; i < bytes / sizeof(uint16_t); i++) {
            float sum = tw_bfloat16_to_float(((uint16_t *)to)[i]) + tw_bfloat16_to_float(((const uint16_t *)from)[i]);
            ((uint16_t *)to)[i] = tw_float_to_bfloat16(sum);
        }
        return TW_OK;
#undef ADD
    default:
        return twi_fail(r->error, TW_UNIMPLEMENTED, "elements of %s in a stack, an array or a list are added",
                        tw_dtype_name(dtype));
    }
}

static tw_status write_element(const twi_run *r, twi_series *s, int64_t index, tw_shape shape, const void *value)
{
    if (!s->sums && twi_series_holds(s, index))
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "Could not write to TensorArray index %lld because it has already been written to.",
                        (long long)index);
    return twi_series_put(r, s, index, r->input_operands[2].dtype, shape, value);
}

/* Of a row of what input 2 is. */
static tw_shape row_shape(const twi_run *r)
{
    tw_shape shape = r->input_operands[2].shape;
    shape.rank--;
    memmove(shape.dims, shape.dims + 1, sizeof *shape.dims * (size_t)shape.rank);
    return shape;
}

static tw_status run_write(const twi_run *r)
{
    twi_series *s = input_series(r, 0);
    *(float *)r->outputs[0] = *(const float *)r->inputs[3];
    return s ? write_element(r, s, integer(r, 1), r->input_operands[2].shape, r->inputs[2]) : fail_series(r);
}

static tw_status run_read(const twi_run *r)
{
    twi_series *s = input_series(r, 0);
    return s ? take(r, s, integer(r, 1)) : fail_series(r);
}

static tw_status run_scatter(const twi_run *r)
{
    twi_series *s = input_series(r, 0);
    int64_t count = r->input_operands[1].elements;
    size_t bytes = count ? r->input_operands[2].bytes / (size_t)count : 0;
    tw_status status = s ? TW_OK : fail_series(r);
    *(float *)r->outputs[0] = *(const float *)r->inputs[3];
    for (int64_t i = 0; i < count && status == TW_OK; i++)
        status = write_element(r, s, ((const int32_t *)r->inputs[1])[i], row_shape(r),
                               (const char *)r->inputs[2] + (size_t)i * bytes);
    return status;
}

/* Elements of one shape, of which there is at least one, or which is known. */
static tw_status gathered_shape(const twi_run *r, twi_series *s, tw_shape *shape)
{
    const int32_t *indices = r->inputs[1];
    const void *value;
    tw_shape known = r->output_operands[0].shape, one;
    *shape = TW_UNKNOWN_SHAPE;
    if (tw_shape_is_known(known) && known.rank > 0) {
        *shape = known;
        shape->rank--;
        memmove(shape->dims, shape->dims + 1, sizeof *shape->dims * (size_t)shape->rank);
    }
    for (int64_t i = 0; i < r->input_operands[1].elements; i++) {
        tw_status status = twi_series_get(s, indices[i], r->output_operands[0].dtype, &one, &value, r->error);
        if (status != TW_OK)
            return status;
        if (value && shape->rank >= 0 && !tw_shape_equal(one, *shape))
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "TensorArray has inconsistent shapes: index %d differs from those before", (int)indices[i]);
        if (value)
            *shape = one;
    }
    if (!tw_shape_is_known(*shape))
        *shape = *(const tw_shape *)r->state;
    if (!tw_shape_is_known(*shape))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "TensorArray has no element whose shape is known");
    return TW_OK;
}

/* state: the shape that elements are said to have. */
static tw_status prepare_gather(twi_prepare *p)
{
    tw_shape said = twi_attr_shape(p->attrs, "element_shape");
    return twi_keep(p, &said, sizeof said);
}

static tw_status run_gather(const twi_run *r)
{
    twi_series *s = input_series(r, 0);
    tw_shape shape, all;
    void *to;
    int64_t count = r->input_operands[1].elements;
    tw_status status = s ? gathered_shape(r, s, &shape) : fail_series(r);
    if (status != TW_OK)
        return status;
    all = shape;
    memmove(all.dims + 1, shape.dims, sizeof *shape.dims * (size_t)(TW_MAX_RANK - 1));
    all.dims[0] = count;
    all.rank++;
    status = twi_make_output(r, 0, all, &to);
    tw_dtype dtype = r->output_operands[0].dtype;
    int64_t elements = tw_shape_elements(shape);
    size_t bytes = (size_t)elements * tw_dtype_size(dtype);
    for (int64_t i = 0; i < count && status == TW_OK; i++) {
        const void *value;
        status = twi_series_get(s, ((const int32_t *)r->inputs[1])[i], dtype, &shape, &value, r->error);
        if (status == TW_OK && !fill(dtype, (char *)to + (size_t)i * bytes, value, elements))
            status = fail_memory(r);
    }
    return status;
}

static tw_status run_split(const twi_run *r)
{
    twi_series *s = input_series(r, 0);
    const twi_operand *value = &r->input_operands[1];
    const int64_t *lengths = r->inputs[2];
    const char *from = r->inputs[1];
    int64_t count = r->input_operands[2].elements, rows = value->shape.rank ? value->shape.dims[0] : 0;
    tw_shape shape = value->shape;
    tw_status status = s ? TW_OK : fail_series(r);
    *(float *)r->outputs[0] = *(const float *)r->inputs[3];
    for (int64_t i = 0; i < count && status == TW_OK; i++) {
        if (lengths[i] < 0 || lengths[i] > rows)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is more");
        if (!s->sums && twi_series_holds(s, i))
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "Could not write to TensorArray index %lld because it has already been written to.",
                            (long long)i);
        shape.dims[0] = lengths[i];
        status = twi_series_put(r, s, i, value->dtype, shape, from);
        from += (size_t)tw_shape_elements(shape) * tw_dtype_size(value->dtype);
        rows -= lengths[i];
    }
    if (status == TW_OK && rows)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is less by %lld",
                        (long long)rows);
    return status;
}

/* Elements behind each other along their first axis, whose lengths may differ. */
static tw_status run_concat(const twi_run *r)
{
    twi_series *s = input_series(r, 0);
    tw_dtype dtype = r->output_operands[0].dtype;
    tw_shape all = TW_SHAPE(0), shape;
    const void *value;
    void *to, *lengths;
    tw_status status = TW_OK;
    if (!s)
        return fail_series(r);
    for (int64_t i = 0; i < s->count; i++) {
        status = twi_series_get(s, i, dtype, &shape, &value, r->error);
        if (status != TW_OK)
            return status;
        if (!value || shape.rank < 1)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "Concat saw a scalar shape or nothing at index %lld",
                            (long long)i);
        int64_t rows = i ? all.dims[0] : 0;
        if (i)
            all.dims[0] = shape.dims[0];
        if (i && !tw_shape_equal(all, shape))
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "TensorArray has inconsistent shapes: index %lld differs from those before", (long long)i);
        all = shape;
        all.dims[0] += rows;
    }
    status = twi_make_output(r, 0, all, &to);
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(s->count), &lengths);
    for (int64_t i = 0; status == TW_OK && i < s->count; i++) {
        status = twi_series_get(s, i, dtype, &shape, &value, r->error);
        if (status == TW_OK && !fill(dtype, to, value, tw_shape_elements(shape)))
            status = fail_memory(r);
        to = (char *)to + (size_t)tw_shape_elements(shape) * tw_dtype_size(dtype);
        ((int64_t *)lengths)[i] = shape.dims[0];
    }
    return status;
}

static tw_status run_size(const twi_run *r)
{
    const twi_series *s = input_series(r, 0);
    *(int32_t *)r->outputs[0] = s ? (int32_t)s->count : 0;
    return s ? TW_OK : fail_series(r);
}

#define ARRAY_TYPES (TWI_STORED_TYPES | TWI_TYPE(TW_STRING))

const twi_kernel twi_cpu_series_kernels[] = {
    {"StackV2", "plain", 0, NULL, run_stack},
    {"StackPushV2", "plain", TWI_STORED_TYPES | TWI_TYPE(TW_VARIANT), prepare_push, run_push},
    {"StackPushV2", "plain", TWI_TYPE(TW_RESOURCE), NULL, run_push_handle},
    {"StackPopV2", "plain", TWI_TYPE(TW_RESOURCE), NULL, run_pop_handle},
    {"StackPopV2", "plain", 0, NULL, run_pop},
    {"StackCloseV2", "plain", 0, NULL, run_nothing},
    {"TensorArrayV3", "plain", 0, prepare_array, run_array, twi_free},
    {"TensorArrayGradV3", "plain", 0, NULL, run_gradient},
    {"TensorArrayWriteV3", "plain", ARRAY_TYPES, NULL, run_write},
    {"TensorArrayReadV3", "plain", ARRAY_TYPES, NULL, run_read},
    {"TensorArrayScatterV3", "plain", ARRAY_TYPES, NULL, run_scatter},
    {"TensorArrayGatherV3", "plain", ARRAY_TYPES, prepare_gather, run_gather, twi_free},
    {"TensorArraySplitV3", "plain", ARRAY_TYPES, NULL, run_split},
    {"TensorArrayConcatV3", "plain", ARRAY_TYPES, NULL, run_concat},
    {"TensorArraySizeV3", "plain", 0, NULL, run_size},
    {"TensorArrayCloseV3", "plain", 0, NULL, run_nothing},
    {"_Series", "plain", 0, NULL, run_nothing},
    {0},
};
