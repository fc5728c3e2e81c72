/* pad.c - arrays with something around them: Pad, PadV2, MirrorPad and its gradient. */
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"

/* How many elements there are before and after each axis of the smaller array. */
typedef struct paddings {
    int64_t before[TW_MAX_RANK], after[TW_MAX_RANK];
    int64_t strides[TW_MAX_RANK]; /* of the padded array */
    int64_t offset;               /* of the first inner element in it */
} paddings;

/* Paddings are input 1. `edge`: at least this many elements of an axis must not be mirrored; -1: none is mirrored. */
static tw_status read_paddings(const twi_run *r, tw_shape inner, tw_shape padded, int edge, paddings *p)
{
    *p = (paddings){.offset = 0};
    twi_row_major(padded, p->strides);
    for (int i = 0; i < inner.rank; i++) {
        int64_t before = twi_input_int(r, 1, 2 * i), after = twi_input_int(r, 1, 2 * i + 1), dim = inner.dims[i];
        if (before < 0 || after < 0 || before > padded.dims[i] - dim || after != padded.dims[i] - dim - before)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': axis %d of size %lld with %lld before and %lld after "
                            "it, planned was size %lld",
                            r->node, i, (long long)dim, (long long)before, (long long)after, (long long)padded.dims[i]);
        if (edge >= 0 && (before > dim - edge || after > dim - edge) && before + after > 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': axis %d of size %lld cannot be mirrored to %lld before "
                            "and %lld after it",
                            r->node, i, (long long)dim, (long long)before, (long long)after);
        p->before[i] = before;
        p->after[i] = after;
        p->offset += before * p->strides[i];
    }
    return TW_OK;
}

/* From an array of its own to the inner part of the padded one. */
static twi_move inner_move(const paddings *p, tw_shape inner)
{
    int64_t own[TW_MAX_RANK];
    twi_move move = {0};
    twi_row_major(inner, own);
    for (int i = 0; i < inner.rank; i++)
        twi_move_axis(&move, inner.dims[i], own[i], p->strides[i]);
    return move;
}

static tw_status run_pad(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0], *out = &r->output_operands[0];
    paddings p;
    tw_status status = read_paddings(r, in->shape, out->shape, -1, &p);
    if (status != TW_OK)
        return status;
    status = r->num_inputs > 2 ? twi_fill_elements(r, out->elements, out->dtype, r->inputs[2], r->outputs[0])
                               : twi_clear_elements(r, out->elements, out->dtype, r->outputs[0]);
    if (status != TW_OK || in->elements == 0)
        return status;
    twi_move move = inner_move(&p, in->shape);
    return twi_move_elements(r, &move, in->dtype, r->inputs[0],
                             twi_element_of_output(r->outputs[0], out->dtype, p.offset));
}

/* ---- mirrors ----------------------------------------------------------------------------------------------------- */

/* The two pads of one axis within a padded array, with the inner elements that they mirror. Axes before it are seen
 * where they are inner, axes behind it whole: done from the last axis to the first, corners are mirrored twice. */
typedef struct mirror {
    twi_move move; /* from inner elements to pads */
    int64_t inner_offset, pad_offset;
} mirror;

static mirror mirror_of(const paddings *p, tw_shape inner, tw_shape padded, int edge, int axis, bool after)
{
    mirror m = {{0}, 0, 0};
    for (int i = 0; i < inner.rank; i++) {
        int64_t stride = p->strides[i], end = p->before[i] + inner.dims[i];
        if (i < axis) {
            twi_move_axis(&m.move, inner.dims[i], stride, stride);
            m.inner_offset += p->before[i] * stride;
            m.pad_offset += p->before[i] * stride;
        } else if (i > axis) {
            twi_move_axis(&m.move, padded.dims[i], stride, stride);
        } else if (after) {
            twi_move_axis(&m.move, p->after[i], -stride, stride);
            m.inner_offset += (end - 1 - edge) * stride;
            m.pad_offset += end * stride;
        } else {
            twi_move_axis(&m.move, p->before[i], stride, -stride);
            m.inner_offset += (p->before[i] + edge) * stride;
            m.pad_offset += (p->before[i] - 1) * stride;
        }
    }
    return m;
}

/* The state is the edge: 1 if the outermost element is not repeated (REFLECT), else 0. */
static tw_status prepare_mirror(twi_prepare *p)
{
    p->state = (void *)(intptr_t)(strcmp(twi_attr_string(p->attrs, "mode", "REFLECT"), "REFLECT") == 0);
    return TW_OK;
}

static tw_status run_mirror_pad(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0], *out = &r->output_operands[0];
    int edge = (int)(intptr_t)r->state;
    void *to = r->outputs[0];
    paddings p;
    tw_status status = read_paddings(r, in->shape, out->shape, edge, &p);
    if (status != TW_OK || in->elements == 0)
        return status;
    twi_move move = inner_move(&p, in->shape);
    status = twi_move_elements(r, &move, in->dtype, r->inputs[0], twi_element_of_output(to, out->dtype, p.offset));
    for (int i = in->shape.rank - 1; i >= 0; i--)
        for (int after = 0; after < 2 && status == TW_OK; after++) {
            mirror m = mirror_of(&p, in->shape, out->shape, edge, i, after);
            status = twi_move_elements(r, &m.move, out->dtype, twi_element(to, out->dtype, m.inner_offset),
                                       twi_element_of_output(to, out->dtype, m.pad_offset));
        }
    return status;
}

/* The workspace holds dy while pads are added to what they mirror. */
static tw_status prepare_mirror_grad(twi_prepare *p)
{
    const twi_operand *dy = &p->inputs[0];
    size_t widened = twi_widened_bytes(p);
    p->workspace = widened + (size_t)dy->elements * (widened ? sizeof(float) : tw_dtype_size(dy->dtype));
    return prepare_mirror(p);
}

#define BODY "device/cpu/plain/pad.inl"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#undef BODY

TWI_WIDENED(mirror_pad_grad)

const twi_kernel twi_cpu_pad_kernels[] = {
    {"Pad", "plain", TWI_MOVED_TYPES, NULL, run_pad},
    {"PadV2", "plain", TWI_MOVED_TYPES, NULL, run_pad},
    {"MirrorPad", "plain", TWI_MOVED_TYPES, prepare_mirror, run_mirror_pad},
    TWI_FLOAT_ROWS("MirrorPadGrad", prepare_mirror_grad, mirror_pad_grad, NULL),
    TWI_INTEGER_ROWS("MirrorPadGrad", prepare_mirror_grad, mirror_pad_grad, NULL),
    {0},
};
