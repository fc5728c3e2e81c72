/* rearrange.c - the same elements in another order, or more than once: transposing, reversing, repeating, diagonals. */
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

const twi_kernel twi_cpu_rearrange_kernels[] = {
    {"Transpose", "plain", TWI_MOVED_TYPES, NULL, run_transpose},
    {"ReverseV2", "plain", TWI_MOVED_TYPES, NULL, run_reverse},
    {"Tile", "plain", TWI_MOVED_TYPES, NULL, run_tile},
    {"BroadcastTo", "plain", TWI_MOVED_TYPES, NULL, run_broadcast_to},
    {"Diag", "plain", TWI_NUMBER_TYPES, NULL, run_diag},
    {"DiagPart", "plain", TWI_NUMBER_TYPES, NULL, run_diag_part},
    {0},
};
