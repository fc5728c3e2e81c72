/* matrix.c - diagonals and bands of matrices, for all types that are moved. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"

#include <string.h>

/* Where the diagonals of a matrix lie among those that are packed as rows, the highest first. */
typedef struct packing {
    int64_t low, high, length; /* of the longest */
    int64_t rows, columns;
    bool above_right, below_right; /* shorter diagonals stand at the right end of their row */
} packing;

/* State: how rows are aligned, LEFT or RIGHT of those above and below the main diagonal; V1 and V2: LEFT_LEFT. */
static tw_status prepare_diagonals(twi_prepare *p)
{
    const char *align = twi_attr_string(p->attrs, "align", "LEFT_LEFT"), *below = strchr(align, '_');
    packing k = {.above_right = align[0] == 'R', .below_right = below && below[1] == 'R'};
    return twi_keep(p, &k, sizeof k);
}

/* Input `k` says which diagonals, or there is none: the main one. */
static packing read_packing(const twi_run *r, int k, tw_shape matrix, tw_shape packed)
{
    packing p = *(const packing *)r->state;
    if (k < r->num_inputs) {
        p.low = twi_input_int(r, k, 0);
        p.high = twi_input_int(r, k, r->input_operands[k].elements > 1);
    }
    p.rows = matrix.dims[matrix.rank - 2];
    p.columns = matrix.dims[matrix.rank - 1];
    p.length = packed.dims[packed.rank - 1];
    return p;
}

/* Between the matrices, [batches, rows, columns], and their diagonals, [batches, number, length]. */
static tw_status move_diagonals(const twi_run *r, const packing *p, int64_t batches, const void *from, void *to,
                                bool to_matrix)
{
    tw_dtype dtype = r->output_operands[0].dtype;
    int64_t matrix = p->rows * p->columns, packed = (p->high - p->low + 1) * p->length;
    for (int64_t d = p->low; d <= p->high; d++) {
        int64_t row = d < 0 ? -d : 0, column = d > 0 ? d : 0;
        int64_t length = p->rows - row < p->columns - column ? p->rows - row : p->columns - column;
        if (length <= 0)
            continue;
        bool right = !((d >= 0 && !p->above_right) || (d <= 0 && !p->below_right));
        int64_t in_matrix = row * p->columns + column;
        int64_t in_packed = (p->high - d) * p->length + (right ? p->length - length : 0);
        twi_move move = {0};
        twi_move_axis(&move, batches, to_matrix ? packed : matrix, to_matrix ? matrix : packed);
        twi_move_axis(&move, length, to_matrix ? 1 : p->columns + 1, to_matrix ? p->columns + 1 : 1);
        tw_status status =
            twi_move_elements(r, &move, dtype, twi_element(from, dtype, to_matrix ? in_packed : in_matrix),
                              twi_element_of_output(to, dtype, to_matrix ? in_matrix : in_packed));
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

/* What is not on a diagonal: the padding that the last input says, or nothing. */
static tw_status fill_rest(const twi_run *r, int padding)
{
    const twi_operand *out = &r->output_operands[0];
    if (padding < r->num_inputs)
        return twi_fill_elements(r, out->elements, out->dtype, r->inputs[padding], r->outputs[0]);
    return twi_clear_elements(r, out->elements, out->dtype, r->outputs[0]);
}

static int64_t batches_of(tw_shape matrix)
{
    return twi_elements_between(matrix, 0, matrix.rank - 2);
}

static tw_status run_diag(const twi_run *r)
{
    tw_shape out = r->output_operands[0].shape;
    packing p = read_packing(r, 1, out, r->input_operands[0].shape);
    tw_status status = fill_rest(r, 4);
    if (status != TW_OK || r->output_operands[0].elements == 0)
        return status;
    return move_diagonals(r, &p, batches_of(out), r->inputs[0], r->outputs[0], true);
}

static tw_status run_diag_part(const twi_run *r)
{
    tw_shape in = r->input_operands[0].shape;
    packing p = read_packing(r, 1, in, r->output_operands[0].shape);
    tw_status status = fill_rest(r, 2);
    if (status != TW_OK || r->output_operands[0].elements == 0)
        return status;
    return move_diagonals(r, &p, batches_of(in), r->inputs[0], r->outputs[0], false);
}

/* What a step is fed as `k` nobody has looked at: the diagonals must be in the matrix, and as many and as long as the
 * packed ones. */
static tw_status check_packing(const twi_run *r, const packing *p, tw_shape matrix, tw_shape packed)
{
    int64_t below = p->rows + (p->high < 0 ? p->high : 0), beside = p->columns - (p->low > 0 ? p->low : 0);
    int64_t number = packed.rank == matrix.rank ? packed.dims[packed.rank - 2] : 1;
    if (p->low > -p->rows && p->high < p->columns && p->high - p->low + 1 == number &&
        p->length == (below < beside ? below : beside))
        return TW_OK;
    return twi_fail(r->error, TW_INVALID_ARGUMENT,
                    "'%s': k says diagonals %lld to %lld of %lld x %lld, and there are %lld of at most %lld", r->node,
                    (long long)p->low, (long long)p->high, (long long)p->rows, (long long)p->columns, (long long)number,
                    (long long)p->length);
}

static tw_status run_set_diag(const twi_run *r)
{
    const twi_operand *out = &r->output_operands[0];
    packing p = read_packing(r, 2, out->shape, r->input_operands[1].shape);
    if (out->elements == 0)
        return TW_OK;
    tw_status status = check_packing(r, &p, out->shape, r->input_operands[1].shape);
    if (status != TW_OK)
        return status;
    if (!twi_copy_elements(out->elements, out->dtype, r->inputs[0], r->outputs[0]))
        return twi_fail_memory(r->error, r->node);
    return move_diagonals(r, &p, batches_of(out->shape), r->inputs[1], r->outputs[0], true);
}

/* Of each row, what is not further left of the diagonal than num_lower and not further right than num_upper. */
static tw_status run_band(const twi_run *r)
{
    const twi_operand *out = &r->output_operands[0];
    int64_t rows = out->shape.dims[out->shape.rank - 2], columns = out->shape.dims[out->shape.rank - 1];
    int64_t lower = twi_input_int(r, 1, 0), upper = twi_input_int(r, 2, 0);
    if (lower > rows || upper > columns)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': num_lower %lld and num_upper %lld, of matrices of %lld x %lld", r->node,
                        (long long)lower, (long long)upper, (long long)rows, (long long)columns);
    tw_status status = twi_clear_elements(r, out->elements, out->dtype, r->outputs[0]);
    int64_t all = columns ? out->elements / columns : 0;
    for (int64_t i = 0; i < all && status == TW_OK; i++) {
        int64_t row = i % rows, first = lower < 0 || row < lower ? 0 : row - lower;
        int64_t end = upper < 0 || row + upper + 1 > columns ? columns : row + upper + 1;
        if (end > first &&
            !twi_copy_elements(end - first, out->dtype, twi_element(r->inputs[0], out->dtype, i * columns + first),
                               twi_element_of_output(r->outputs[0], out->dtype, i * columns + first)))
            status = twi_fail_memory(r->error, r->node);
    }
    return status;
}

#define DIAGONALS(op, run)                                                                                             \
    {                                                                                                                  \
        op, "plain", TWI_MOVED_TYPES, prepare_diagonals, run, twi_free                                                 \
    }

const twi_kernel twi_cpu_matrix_kernels[] = {
    DIAGONALS("MatrixDiag", run_diag),
    DIAGONALS("MatrixDiagPart", run_diag_part),
    DIAGONALS("MatrixSetDiag", run_set_diag),
    DIAGONALS("BatchMatrixDiag", run_diag),
    DIAGONALS("BatchMatrixDiagPart", run_diag_part),
    DIAGONALS("BatchMatrixSetDiag", run_set_diag),
    DIAGONALS("MatrixDiagV2", run_diag),
    DIAGONALS("MatrixDiagPartV2", run_diag_part),
    DIAGONALS("MatrixSetDiagV2", run_set_diag),
    DIAGONALS("MatrixDiagV3", run_diag),
    DIAGONALS("MatrixDiagPartV3", run_diag_part),
    DIAGONALS("MatrixSetDiagV3", run_set_diag),
    {"MatrixBandPart", "plain", TWI_MOVED_TYPES, NULL, run_band},
    {"BatchMatrixBandPart", "plain", TWI_MOVED_TYPES, NULL, run_band},
    {0},
};
