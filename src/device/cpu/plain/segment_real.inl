/* segment_real.inl - extremes of rows by segment, rows that indices pick, and counts, for one type of real numbers; see
 * segment.c. */

REDUCTION(any_max, LEAST(REAL), COMBINES, b > a ? b : a)
REDUCTION(any_min, GREATEST(REAL), COMBINES, b < a ? b : a)
REDUCTION(sorted_max, 0, TAKES, b > a || b != b ? b : a)
REDUCTION(sorted_min, 0, TAKES, b < a || b != b ? b : a)

SORTED(max)
SORTED(min)
UNSORTED(max)
UNSORTED(min)

/* ---- rows that indices pick -------------------------------------------------------------------------------------- */

/* data, indices [n], ids [n]: a row of the output is the sum of the rows picked for it, perhaps divided. */
static tw_status NAME(sparse)(const twi_run *r)
{
    const int64_t n = r->input_operands[1].elements, segments = r->output_operands[0].shape.dims[0];
    const int64_t row = segments ? r->output_operands[0].elements / segments : 0;
    const REAL *from = r->inputs[0];
    REAL *to = r->outputs[0];
    tw_status status = check_picked(r, r->input_operands[0].shape.dims[0], segments, true);
    if (status != TW_OK)
        return status;
    twi_clear(to, sizeof *to * (size_t)r->output_operands[0].elements);
    for (int64_t i = 0, end; i < n; i = end) {
        REAL *sum = to + twi_input_int(r, 2, i) * row;
        for (end = i; end < n && twi_input_int(r, 2, end) == twi_input_int(r, 2, i); end++)
            for (int64_t k = 0; k < row; k++)
                sum[k] = ADD(sum[k], from[twi_input_int(r, 1, end) * row + k]);
        for (int64_t k = 0; k < row && r->state; k++)
            sum[k] = (REAL)(sum[k] / (REAL)share(r, end - i));
    }
    return TW_OK;
}

/* grad, indices [n], ids [n], how many rows: each picked row gets the gradient of its segment, as often as it was. */
static tw_status NAME(sparse_grad)(const twi_run *r)
{
    const int64_t n = r->input_operands[1].elements, rows = r->output_operands[0].shape.dims[0];
    const int64_t row = rows ? r->output_operands[0].elements / rows : 0;
    const int64_t segments = r->input_operands[0].shape.dims[0];
    const REAL *from = r->inputs[0];
    REAL *to = r->outputs[0];
    int64_t *counts = r->workspace;
    tw_status status = check_picked(r, rows, segments, false);
    if (status != TW_OK)
        return status;
    twi_clear(to, sizeof *to * (size_t)r->output_operands[0].elements);
    twi_clear(counts, sizeof *counts * (size_t)segments);
    for (int64_t i = 0; i < n; i++)
        counts[twi_input_int(r, 2, i)]++;
    for (int64_t i = 0; i < n; i++) {
        int64_t id = twi_input_int(r, 2, i);
        REAL divisor = r->state ? (REAL)share(r, counts[id]) : 1;
        for (int64_t k = 0; k < row; k++)
            to[twi_input_int(r, 1, i) * row + k] += (REAL)(from[id * row + k] / divisor);
    }
    return TW_OK;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

/* Each value below the size adds its weight, or 1; binary: it is 1 then. Rows of a matrix have bins of their own. */
static tw_status NAME(bincount)(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0], *out = &r->output_operands[0];
    int64_t size = out->shape.dims[out->shape.rank - 1], row = out->shape.rank == 2 ? in->shape.dims[1] : in->elements;
    const REAL *weights = r->input_operands[2].elements ? r->inputs[2] : NULL;
    REAL *bins = r->outputs[0];
    bool binary = r->state;
    twi_clear(bins, out->bytes);
    for (int64_t i = 0; i < in->elements; i++) {
        int64_t value = twi_input_int(r, 0, i);
        if (value < 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Input arr must be non-negative!", r->node);
        REAL *bin = bins + i / row * size + (value < size ? value : 0);
        if (value < size)
            *bin = binary ? 1 : ADD(*bin, weights ? weights[i] : 1);
    }
    return TW_OK;
}
