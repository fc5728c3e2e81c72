/* segment_real.inl - extremes of rows by segment, rows that indices pick, and counts, for one type of real numbers; see
 * segment.c. */

REDUCTION(any_max, LEAST(REAL), COMBINES, a > b ? a : b) /* where either is no number, as TensorFlow does */
REDUCTION(any_min, GREATEST(REAL), COMBINES, a < b ? a : b)
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

/* Each value below the size, of those from `begin` to before `end`, adds its weight, or 1; binary: it is 1 then. Rows
 * of a matrix have bins of their own. */
static tw_status NAME(count)(const twi_run *r, int input, int weighs, int64_t begin, int64_t end, REAL *bins,
                             int64_t size)
{
    bool wide = r->input_operands[input].dtype == TW_INT64, binary = r->state;
    const int64_t *longs = r->inputs[input];
    const int32_t *ints = r->inputs[input];
    const REAL *weights = r->input_operands[weighs].elements ? r->inputs[weighs] : NULL;
    for (int64_t i = begin; i < end; i++) {
        int64_t value = wide ? longs[i] : ints[i];
        if (value < 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Input arr must be non-negative!", r->node);
        if (value < size)
            bins[value] = binary ? 1 : ADD(bins[value], weights ? weights[i] : 1);
    }
    return TW_OK;
}

static tw_status NAME(bincount)(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0], *out = &r->output_operands[0];
    int64_t size = out->shape.dims[out->shape.rank - 1], row = out->shape.rank == 2 ? in->shape.dims[1] : in->elements;
    tw_status status = TW_OK;
    twi_clear(r->outputs[0], out->bytes);
    REAL *bins = r->outputs[0];
    for (int64_t first = 0; first < in->elements && status == TW_OK; first += row, bins += size)
        status = NAME(count)(r, 0, 2, first, first + row, bins, size);
    return status;
}

/* indices [count, axes], values, shape, size, weights: [size], or [rows, size] */
static tw_status NAME(sparse_bincount)(const twi_run *r)
{
    const twi_operand *out = &r->output_operands[0];
    int64_t size = out->shape.dims[out->shape.rank - 1], rows = out->shape.rank == 2 ? out->shape.dims[0] : 1;
    int64_t count = r->input_operands[1].elements;
    tw_status status = TW_OK;
    twi_clear(r->outputs[0], out->bytes);
    if (r->input_operands[0].shape.dims[0] != count)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld indices for %lld values", r->node,
                        (long long)r->input_operands[0].shape.dims[0], (long long)count);
    for (int64_t i = 0; i < count && status == TW_OK; i++) {
        int64_t row = out->shape.rank == 2 ? twi_input_int(r, 0, 2 * i) : 0;
        if (row < 0 || row >= rows)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': Index out of bound. `batch` (%lld) must be less than the dimension size (%lld).",
                            r->node, (long long)row, (long long)rows);
        status = NAME(count)(r, 1, 4, i, i + 1, (REAL *)r->outputs[0] + row * size, size);
    }
    return status;
}

/* splits [rows + 1], values, size, weights: [rows, size] */
static tw_status NAME(ragged_bincount)(const twi_run *r)
{
    const twi_operand *out = &r->output_operands[0];
    int64_t rows = out->shape.dims[0], size = out->shape.dims[1], values = r->input_operands[1].elements;
    tw_status status = TW_OK;
    twi_clear(r->outputs[0], out->bytes);
    if (twi_input_int(r, 0, 0) != 0 || twi_input_int(r, 0, rows) != values)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': Splits must start with 0 and end with %lld, got %lld and %lld", r->node,
                        (long long)values, (long long)twi_input_int(r, 0, 0), (long long)twi_input_int(r, 0, rows));
    for (int64_t row = 0; row < rows && status == TW_OK; row++) {
        int64_t begin = twi_input_int(r, 0, row), end = twi_input_int(r, 0, row + 1);
        if (begin > end || end > values)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Splits must not fall: row %lld is %lld to %lld",
                            r->node, (long long)row, (long long)begin, (long long)end);
        status = NAME(count)(r, 1, 3, begin, end, (REAL *)r->outputs[0] + row * size, size);
    }
    return status;
}
