/* rearrange.c - the same elements in another order, or more than once: transposing, reversing, repeating, diagonals. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"

static tw_status run_transpose(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0], *out = &r->output_operands[0];
    int64_t in_strides[TW_MAX_RANK], out_strides[TW_MAX_RANK];
    bool taken[TW_MAX_RANK] = {false};
    twi_move move = {0};
    twi_row_major(in->shape, in_strides);
    twi_row_major(out->shape, out_strides);
    if (r->input_operands[1].elements != in->shape.rank)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': a permutation of %lld axes, the input has %d", r->node,
                        (long long)r->input_operands[1].elements, in->shape.rank);
    for (int i = 0; i < in->shape.rank; i++) {
        int axis;
        tw_status status = twi_input_axis(r, 1, i, in->shape.rank, &axis);
        if (status != TW_OK)
            return status;
        if (taken[axis] || in->shape.dims[axis] != out->shape.dims[i])
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': axis %d %s", r->node, axis,
                            taken[axis] ? "appears twice in the permutation" : "does not have the planned size");
        taken[axis] = true;
        twi_move_axis(&move, in->shape.dims[axis], in_strides[axis], out_strides[i]);
    }
    return twi_move_elements(r, &move, in->dtype, r->inputs[0], r->outputs[0]);
}

/* The imaginary parts, which come second, change their sign. */
static tw_status run_conjugate_transpose(const twi_run *r)
{
    tw_status status = run_transpose(r);
    const twi_operand *out = &r->output_operands[0];
    for (int64_t i = 0; i < out->elements && status == TW_OK; i++)
        if (out->dtype == TW_COMPLEX64)
            ((float *)r->outputs[0])[2 * i + 1] *= -1;
        else if (out->dtype == TW_COMPLEX128)
            ((double *)r->outputs[0])[2 * i + 1] *= -1;
    return status;
}

static tw_status run_reverse(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0];
    int64_t strides[TW_MAX_RANK], offset = 0;
    bool reversed[TW_MAX_RANK] = {false};
    twi_move move = {0};
    twi_row_major(in->shape, strides);
    for (int64_t i = 0; i < r->input_operands[1].elements; i++) {
        int axis;
        tw_status status = twi_input_axis(r, 1, i, in->shape.rank, &axis);
        if (status != TW_OK)
            return status;
        if (reversed[axis])
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': axis %d specified more than once.", r->node, axis);
        reversed[axis] = true;
    }
    if (in->elements == 0)
        return TW_OK;
    for (int i = 0; i < in->shape.rank; i++) {
        offset += reversed[i] ? (in->shape.dims[i] - 1) * strides[i] : 0;
        twi_move_axis(&move, in->shape.dims[i], reversed[i] ? -strides[i] : strides[i], strides[i]);
    }
    return twi_move_elements(r, &move, in->dtype, twi_element(r->inputs[0], in->dtype, offset), r->outputs[0]);
}

/* The output's axes are the input's, each as often as it fits in. */
static tw_status run_tile(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0], *out = &r->output_operands[0];
    int64_t in_strides[TW_MAX_RANK], out_strides[TW_MAX_RANK];
    twi_move move = {0};
    twi_row_major(in->shape, in_strides);
    twi_row_major(out->shape, out_strides);
    if (out->elements == 0)
        return TW_OK;
    for (int i = 0; i < in->shape.rank; i++) {
        int64_t dim = in->shape.dims[i], times = out->shape.dims[i] / dim;
        twi_move_axis(&move, times, 0, dim * out_strides[i]);
        twi_move_axis(&move, dim, in_strides[i], out_strides[i]);
    }
    return twi_move_elements(r, &move, in->dtype, r->inputs[0], r->outputs[0]);
}

static tw_status run_broadcast_to(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0], *out = &r->output_operands[0];
    int64_t in_strides[TW_MAX_RANK], out_strides[TW_MAX_RANK];
    int added = out->shape.rank - in->shape.rank;
    twi_move move = {0};
    twi_row_major(in->shape, in_strides);
    twi_row_major(out->shape, out_strides);
    for (int i = 0; i < out->shape.rank; i++) {
        bool repeated = i < added || in->shape.dims[i - added] == 1;
        twi_move_axis(&move, out->shape.dims[i], repeated ? 0 : in_strides[i - added], out_strides[i]);
    }
    return twi_move_elements(r, &move, in->dtype, r->inputs[0], r->outputs[0]);
}

/* ---- diagonals: of an array with 2n axes whose halves are equal, the elements whose two halves of indices are ---- */

static tw_status run_diag(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0], *out = &r->output_operands[0];
    twi_move move = {0};
    tw_status status = twi_clear_elements(r, out->elements, out->dtype, r->outputs[0]);
    twi_move_axis(&move, in->elements, 1, in->elements + 1);
    return status == TW_OK ? twi_move_elements(r, &move, in->dtype, r->inputs[0], r->outputs[0]) : status;
}

static tw_status run_diag_part(const twi_run *r)
{
    const twi_operand *out = &r->output_operands[0];
    twi_move move = {0};
    twi_move_axis(&move, out->elements, out->elements + 1, 1);
    return twi_move_elements(r, &move, out->dtype, r->inputs[0], r->outputs[0]);
}

/* ---- along an axis ----------------------------------------------------------------------------------------------- */

/* Each axis falls in two parts that change places; the parts of all axes, in every combination, are moved. */
static tw_status move_parts(const twi_run *r, const int64_t *shifts, int axis, twi_move move, int64_t from, int64_t to)
{
    const twi_operand *in = &r->input_operands[0];
    if (axis == in->shape.rank)
        return twi_move_elements(r, &move, in->dtype, twi_element(r->inputs[0], in->dtype, from),
                                 twi_element_of_output(r->outputs[0], in->dtype, to));
    int64_t strides[TW_MAX_RANK], size = in->shape.dims[axis], shift = shifts[axis];
    twi_row_major(in->shape, strides);
    twi_move first = move, last = move;
    twi_move_axis(&first, size - shift, strides[axis], strides[axis]);
    tw_status status = move_parts(r, shifts, axis + 1, first, from, to + shift * strides[axis]);
    if (status != TW_OK || shift == 0)
        return status;
    twi_move_axis(&last, shift, strides[axis], strides[axis]);
    return move_parts(r, shifts, axis + 1, last, from + (size - shift) * strides[axis], to);
}

static tw_status run_roll(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0];
    int64_t shifts[TW_MAX_RANK] = {0};
    for (int64_t i = 0; i < r->input_operands[2].elements; i++) {
        int axis;
        tw_status status = twi_input_axis(r, 2, i, in->shape.rank, &axis);
        if (status != TW_OK)
            return status;
        int64_t size = in->shape.dims[axis] ? in->shape.dims[axis] : 1, shift = twi_input_int(r, 1, i) % size;
        shifts[axis] = (shifts[axis] + shift + size) % size;
    }
    return in->elements ? move_parts(r, shifts, 0, (twi_move){0}, 0, 0) : TW_OK;
}

typedef struct sequence_axes {
    int sequence, batch;
} sequence_axes;

static tw_status prepare_reverse_sequence(twi_prepare *p)
{
    sequence_axes axes = {(int)twi_attr_int(p->attrs, "seq_dim", 0), (int)twi_attr_int(p->attrs, "batch_dim", 0)};
    return twi_keep(p, &axes, sizeof axes);
}

static tw_status run_reverse_sequence(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0];
    const sequence_axes axes = *(const sequence_axes *)r->state;
    int64_t strides[TW_MAX_RANK], size = in->shape.dims[axes.sequence], batches = in->shape.dims[axes.batch];
    twi_row_major(in->shape, strides);
    for (int64_t b = 0; b < batches; b++) {
        int64_t length = twi_input_int(r, 1, b);
        if (length < 0 || length > size)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': seq_lens(%lld) is %lld, expected 0 to %lld", r->node,
                            (long long)b, (long long)length, (long long)size);
        for (int part = 0; part < 2 && in->elements; part++) { /* what is turned round, and what follows */
            int64_t offset = b * strides[axes.batch] + (part ? length * strides[axes.sequence] : 0);
            int64_t last = part || !length ? 0 : (length - 1) * strides[axes.sequence];
            twi_move move = {0};
            for (int i = 0; i < in->shape.rank; i++)
                if (i == axes.sequence)
                    twi_move_axis(&move, part ? size - length : length, part ? strides[i] : -strides[i], strides[i]);
                else if (i != axes.batch)
                    twi_move_axis(&move, in->shape.dims[i], strides[i], strides[i]);
            tw_status status =
                twi_move_elements(r, &move, in->dtype, twi_element(r->inputs[0], in->dtype, offset + last),
                                  twi_element_of_output(r->outputs[0], in->dtype, offset));
            if (status != TW_OK)
                return status;
        }
    }
    return TW_OK;
}

const twi_kernel twi_cpu_rearrange_kernels[] = {
    {"Transpose", "plain", TWI_MOVED_TYPES, NULL, run_transpose},
    {"ConjugateTranspose", "plain", TWI_MOVED_TYPES, NULL, run_conjugate_transpose},
    {"ReverseV2", "plain", TWI_MOVED_TYPES, NULL, run_reverse},
    {"Tile", "plain", TWI_MOVED_TYPES, NULL, run_tile},
    {"BroadcastTo", "plain", TWI_MOVED_TYPES, NULL, run_broadcast_to},
    {"Roll", "plain", TWI_MOVED_TYPES, NULL, run_roll},
    {"ReverseSequence", "plain", TWI_MOVED_TYPES, prepare_reverse_sequence, run_reverse_sequence, twi_free},
    {"Diag", "plain", TWI_NUMBER_TYPES | TWI_COMPLEX_TYPES, NULL, run_diag},
    {"DiagPart", "plain", TWI_NUMBER_TYPES | TWI_COMPLEX_TYPES, NULL, run_diag_part},
    {0},
};
