/* slice.c - cutting arrays and joining them.
 * A part of an array is the array's own strides with fewer steps, so each op here is one move a part. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "device/resources.h"
#include "tensor/strided.h"

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static tw_status run_slice(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0], *out = &r->output_operands[0];
    int64_t strides[2][TW_MAX_RANK], offset = 0;
    twi_move move = {0};
    twi_row_major(in->shape, strides[0]);
    twi_row_major(out->shape, strides[1]);
    for (int i = 0; i < in->shape.rank; i++) {
        int64_t begin = twi_input_int(r, 1, i), size = out->shape.dims[i], dim = in->shape.dims[i];
        if (begin < 0 || size > dim || begin > dim - size)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': axis %d: begin %lld, size %lld do not lie within %lld", r->node, i, (long long)begin,
                            (long long)size, (long long)dim);
        offset += begin * strides[0][i];
        twi_move_axis(&move, size, strides[0][i], strides[1][i]);
    }
    return twi_move_elements(r, &move, in->dtype, twi_element(r->inputs[0], in->dtype, offset), r->outputs[0]);
}

/* Where in an array a part of that shape begins: the numbers of an input, moved to where the part fits. */
static int64_t movable_begin(const twi_run *r, int begins, tw_shape whole, tw_shape part)
{
    int64_t strides[TW_MAX_RANK], offset = 0;
    twi_row_major(whole, strides);
    for (int i = 0; i < whole.rank; i++) {
        int64_t begin = twi_input_int(r, begins, i), last = whole.dims[i] - part.dims[i];
        offset += (begin < 0 ? 0 : begin < last ? begin : last) * strides[i];
    }
    return offset;
}

/* A part of that shape, from one array to another, or to a part of it. */
static twi_move move_between(tw_shape from, tw_shape to, tw_shape part)
{
    int64_t strides[2][TW_MAX_RANK];
    twi_move move = {0};
    twi_row_major(from, strides[0]);
    twi_row_major(to, strides[1]);
    for (int i = 0; i < part.rank; i++)
        twi_move_axis(&move, part.dims[i], strides[0][i], strides[1][i]);
    return move;
}

static tw_status run_dynamic_slice(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0], *out = &r->output_operands[0];
    int64_t offset = movable_begin(r, 1, in->shape, out->shape);
    twi_move move = move_between(in->shape, out->shape, out->shape);
    return twi_move_elements(r, &move, in->dtype, twi_element(r->inputs[0], in->dtype, offset), r->outputs[0]);
}

static tw_status prepare_dynamic_update(twi_prepare *p)
{
    p->can_overwrite[0] = true;
    return TW_OK;
}

static tw_status run_dynamic_update(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0], *part = &r->input_operands[1];
    int64_t offset = movable_begin(r, 2, in->shape, part->shape);
    twi_move move = move_between(part->shape, in->shape, part->shape);
    if (r->outputs[0] != r->inputs[0] && !twi_copy_elements(in->elements, in->dtype, r->inputs[0], r->outputs[0]))
        return twi_fail_memory(r->error, r->node);
    return twi_move_elements(r, &move, in->dtype, r->inputs[1],
                             twi_element_of_output(r->outputs[0], in->dtype, offset));
}

/* ---- strided parts ----------------------------------------------------------------------------------------------- */

static tw_status prepare_strided(twi_prepare *p)
{
    twi_strided_spec *spec = twi_alloc(sizeof *spec);
    if (!spec)
        return twi_fail_memory(p->error, p->node);
    *spec = twi_strided_masks(p->attrs);
    p->state = spec;
    return TW_OK;
}

/* Resolves inputs `first` (begins), first + 1 (ends) and first + 2 (strides) against a shape. */
static tw_status resolve(const twi_run *r, int first, tw_shape shape, twi_strided *out)
{
    int64_t numbers[3][32], count = r->input_operands[first].elements;
    twi_strided_spec spec = *(const twi_strided_spec *)r->state;
    for (int k = 0; k < 3; k++) {
        if (count > 32 || r->input_operands[first + k].elements != count)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld begins, %lld ends and %lld strides", r->node,
                            (long long)count, (long long)r->input_operands[first + 1].elements,
                            (long long)r->input_operands[first + 2].elements);
        for (int64_t i = 0; i < count; i++)
            numbers[k][i] = twi_input_int(r, first + k, i);
    }
    spec.count = (int)count;
    spec.begin = numbers[0];
    spec.end = numbers[1];
    spec.stride = numbers[2];
    tw_status status = twi_strided_resolve(&spec, shape, out, r->error);
    if (status != TW_OK)
        twi_prefix(r->error, "'%s'", r->node);
    return status;
}

static tw_status expect_planned(const twi_run *r, tw_shape found, tw_shape planned)
{
    char text[2][128];
    if (tw_shape_equal(found, planned))
        return TW_OK;
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': the slice has shape %s, planned was %s", r->node,
                    tw_shape_text(found, text[0], sizeof text[0]), tw_shape_text(planned, text[1], sizeof text[1]));
}

/* Where in an array of that shape the selection begins, and how far apart its elements lie. */
static int64_t selected(const twi_strided *part, tw_shape shape, int64_t strides[TW_MAX_RANK])
{
    int64_t offset = 0;
    twi_row_major(shape, strides);
    for (int i = 0; i < part->rank; i++) {
        offset += part->begin[i] * strides[i];
        strides[i] = part->size[i] > 1 ? strides[i] * part->stride[i] : 0; /* of one element it may be any number */
    }
    return offset;
}

static tw_status run_strided_slice(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0];
    int64_t in_strides[TW_MAX_RANK], out_strides[TW_MAX_RANK];
    twi_strided part;
    twi_move move = {0};
    tw_status status = resolve(r, 1, in->shape, &part);
    if (status == TW_OK)
        status = expect_planned(r, part.output, r->output_operands[0].shape);
    if (status != TW_OK || r->output_operands[0].elements == 0)
        return status;
    int64_t offset = selected(&part, in->shape, in_strides);
    tw_shape sizes = {.rank = part.rank};
    for (int i = 0; i < part.rank; i++)
        sizes.dims[i] = part.size[i];
    twi_row_major(sizes, out_strides);
    for (int i = 0; i < part.rank; i++)
        twi_move_axis(&move, part.size[i], in_strides[i], out_strides[i]);
    return twi_move_elements(r, &move, in->dtype, twi_element(r->inputs[0], in->dtype, offset), r->outputs[0]);
}

/* Puts input 4 where inputs 1 to 3 select, in an array of that shape. */
static tw_status put_part(const twi_run *r, tw_shape shape, void *to)
{
    const twi_operand *from = &r->input_operands[4];
    int64_t from_strides[TW_MAX_RANK], to_strides[TW_MAX_RANK];
    twi_strided part;
    twi_move move = {0};
    tw_status status = resolve(r, 1, shape, &part);
    if (status == TW_OK)
        status = expect_planned(r, part.output, from->shape);
    if (status != TW_OK || from->elements == 0)
        return status;
    int64_t offset = selected(&part, shape, to_strides);
    tw_shape sizes = {.rank = part.rank};
    for (int i = 0; i < part.rank; i++)
        sizes.dims[i] = part.size[i];
    twi_row_major(sizes, from_strides);
    for (int i = 0; i < part.rank; i++)
        twi_move_axis(&move, part.size[i], from_strides[i], to_strides[i]);
    return twi_move_elements(r, &move, from->dtype, r->inputs[4], twi_element_of_output(to, from->dtype, offset));
}

/* dy where the slice was, zeros elsewhere. */
static tw_status run_strided_slice_grad(const twi_run *r)
{
    const twi_operand *out = &r->output_operands[0];
    tw_status status = twi_clear_elements(r, out->elements, out->dtype, r->outputs[0]);
    return status == TW_OK ? put_part(r, out->shape, r->outputs[0]) : status;
}

static tw_status prepare_assign(twi_prepare *p)
{
    tw_status status =
        twi_resource_check_type(p->inputs[0].resource, twi_kernel_type(p->attrs), p->op, p->node, p->error);
    return status == TW_OK ? prepare_strided(p) : status;
}

static tw_status run_assign(const twi_run *r)
{
    return put_part(r, r->input_operands[0].shape, (void *)r->inputs[0]);
}

static tw_status prepare_update(twi_prepare *p)
{
    p->can_overwrite[0] = true;
    return prepare_strided(p);
}

static tw_status run_update(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0];
    if (r->outputs[0] != r->inputs[0] && !twi_copy_elements(in->elements, in->dtype, r->inputs[0], r->outputs[0]))
        return twi_fail_memory(r->error, r->node);
    return put_part(r, in->shape, r->outputs[0]);
}

/* ---- parts along one axis ---------------------------------------------------------------------------------------- */

/* A whole, seen as [before, size, after], and where in it the next part lies. */
typedef struct whole {
    const twi_operand *operand;
    int axis;
    bool stacked; /* parts lack the axis (Pack, Unpack) */
    int64_t before, size, after;
    int64_t done; /* sizes of the parts so far */
} whole;

static whole begin_whole(const twi_operand *operand, int axis, bool stacked)
{
    return (whole){.operand = operand,
                   .axis = axis,
                   .stacked = stacked,
                   .size = operand->shape.dims[axis],
                   .before = twi_elements_between(operand->shape, 0, axis),
                   .after = twi_elements_between(operand->shape, axis + 1, operand->shape.rank)};
}

/* Counts a part in: its size along the axis and where it begins. Fails if it does not fit. */
static tw_status next_part(const twi_run *r, whole *w, int number, const twi_operand *part, int64_t *size,
                           int64_t *begin)
{
    tw_shape expected = w->operand->shape;
    char text[2][128];
    if (w->stacked) {
        for (int i = w->axis; i + 1 < expected.rank; i++)
            expected.dims[i] = expected.dims[i + 1];
        expected.rank--;
        *size = 1;
    } else {
        *size = part->shape.rank == expected.rank ? part->shape.dims[w->axis] : 0;
        expected.dims[w->axis] = *size;
    }
    *begin = w->done;
    if (!tw_shape_equal(part->shape, expected) || *size > w->size - w->done)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': part %d of shape %s does not fit into %s at %lld of axis %d", r->node, number,
                        tw_shape_text(part->shape, text[0], sizeof text[0]),
                        tw_shape_text(w->operand->shape, text[1], sizeof text[1]), (long long)*begin, w->axis);
    w->done += *size;
    return TW_OK;
}

static tw_status expect_done(const twi_run *r, const whole *w)
{
    if (w->done == w->size)
        return TW_OK;
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': the parts fill %lld of %lld of axis %d", r->node,
                    (long long)w->done, (long long)w->size, w->axis);
}

static tw_status join(const twi_run *r, int first, int count, int axis, bool stacked)
{
    whole w = begin_whole(&r->output_operands[0], axis, stacked);
    tw_dtype dtype = w.operand->dtype;
    for (int i = 0; i < count; i++) {
        int64_t size, begin;
        twi_move move = {0};
        tw_status status = next_part(r, &w, i, &r->input_operands[first + i], &size, &begin);
        if (status != TW_OK)
            return status;
        twi_move_axis(&move, w.before, size * w.after, w.size * w.after);
        twi_move_axis(&move, size * w.after, 1, 1);
        status = twi_move_elements(r, &move, dtype, r->inputs[first + i],
                                   twi_element_of_output(r->outputs[0], dtype, begin * w.after));
        if (status != TW_OK)
            return status;
    }
    return expect_done(r, &w);
}

static tw_status cut(const twi_run *r, int input, int axis, bool stacked)
{
    whole w = begin_whole(&r->input_operands[input], axis, stacked);
    tw_dtype dtype = w.operand->dtype;
    for (int i = 0; i < r->num_outputs; i++) {
        int64_t size, begin;
        twi_move move = {0};
        tw_status status = next_part(r, &w, i, &r->output_operands[i], &size, &begin);
        if (status != TW_OK)
            return status;
        twi_move_axis(&move, w.before, w.size * w.after, size * w.after);
        twi_move_axis(&move, size * w.after, 1, 1);
        status =
            twi_move_elements(r, &move, dtype, twi_element(r->inputs[input], dtype, begin * w.after), r->outputs[i]);
        if (status != TW_OK)
            return status;
    }
    return expect_done(r, &w);
}

static tw_status run_concat_v2(const twi_run *r)
{
    int axis, n = r->num_inputs - 1;
    tw_status status = twi_input_axis(r, n, 0, r->output_operands[0].shape.rank, &axis);
    return status == TW_OK ? join(r, 0, n, axis, false) : status;
}

static tw_status run_concat(const twi_run *r)
{
    int axis;
    tw_status status = twi_input_axis(r, 0, 0, r->output_operands[0].shape.rank, &axis);
    return status == TW_OK ? join(r, 1, r->num_inputs - 1, axis, false) : status;
}

static tw_status run_parallel_concat(const twi_run *r)
{
    return join(r, 0, r->num_inputs, 0, false);
}

static tw_status run_split(const twi_run *r)
{
    int axis;
    tw_status status = twi_input_axis(r, 0, 0, r->input_operands[1].shape.rank, &axis);
    return status == TW_OK ? cut(r, 1, axis, false) : status;
}

/* The sizes are those of the outputs. */
static tw_status run_split_v(const twi_run *r)
{
    int axis;
    tw_status status = twi_input_axis(r, 2, 0, r->input_operands[0].shape.rank, &axis);
    return status == TW_OK ? cut(r, 0, axis, false) : status;
}

/* The state of Pack and Unpack is attribute axis itself; the shape rules have checked its range. */
static tw_status prepare_stacked(twi_prepare *p, int rank)
{
    int64_t axis = twi_attr_int(p->attrs, "axis", 0);
    if (axis < -rank || axis >= rank)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': axis %lld, expected -%d to %d", p->op, p->node,
                        (long long)axis, rank, rank - 1);
    p->state = (void *)(intptr_t)(axis < 0 ? axis + rank : axis);
    return TW_OK;
}

static tw_status prepare_pack(twi_prepare *p)
{
    return prepare_stacked(p, p->outputs[0].shape.rank);
}

static tw_status prepare_unpack(twi_prepare *p)
{
    return prepare_stacked(p, p->inputs[0].shape.rank);
}

static tw_status run_pack(const twi_run *r)
{
    return join(r, 0, r->num_inputs, (int)(intptr_t)r->state, true);
}

static tw_status run_unpack(const twi_run *r)
{
    return cut(r, 0, (int)(intptr_t)r->state, true);
}

const twi_kernel twi_cpu_slice_kernels[] = {
    {"Slice", "plain", TWI_MOVED_TYPES, NULL, run_slice},
    {"XlaDynamicSlice", "plain", TWI_MOVED_TYPES, NULL, run_dynamic_slice},
    {"XlaDynamicUpdateSlice", "plain", TWI_MOVED_TYPES, prepare_dynamic_update, run_dynamic_update},
    {"StridedSlice", "plain", TWI_MOVED_TYPES, prepare_strided, run_strided_slice, twi_free},
    {"StridedSliceGrad", "plain", TWI_MOVED_TYPES, prepare_strided, run_strided_slice_grad, twi_free},
    {"ResourceStridedSliceAssign", "plain", TWI_MOVED_TYPES, prepare_assign, run_assign, twi_free},
    {"TensorStridedSliceUpdate", "plain", TWI_MOVED_TYPES, prepare_update, run_update, twi_free},
    {"ConcatV2", "plain", TWI_MOVED_TYPES, NULL, run_concat_v2},
    {"Concat", "plain", TWI_MOVED_TYPES, NULL, run_concat},
    {"ParallelConcat", "plain", TWI_MOVED_TYPES, NULL, run_parallel_concat},
    {"Split", "plain", TWI_MOVED_TYPES, NULL, run_split},
    {"SplitV", "plain", TWI_MOVED_TYPES, NULL, run_split_v},
    {"Pack", "plain", TWI_MOVED_TYPES, prepare_pack, run_pack},
    {"Unpack", "plain", TWI_MOVED_TYPES, prepare_unpack, run_unpack},
    {0},
};
