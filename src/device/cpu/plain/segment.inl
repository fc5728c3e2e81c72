/* segment.inl - rows reduced by segment for one type; see segment.c. */

/* data [n,row], ids [n]: output [segments,row], which begins as `start`. Rows of negative ids go nowhere. Who `takes` the
 * first row of a segment as it is does not combine it with the start. */
#define REDUCTION(f, start, takes, combined)                                                                           \
    static void NAME(f)(const twi_run *r)                                                                              \
    {                                                                                                                  \
        const twi_operand *data = &r->input_operands[0], *ids = &r->input_operands[1], *out = &r->output_operands[0]; \
        const int64_t n = ids->elements, row = twi_elements_between(data->shape, ids->shape.rank, data->shape.rank);  \
        const int64_t shares = column_shares(r, row);                                                                  \
        const REAL *from = r->inputs[0];                                                                               \
        REAL *to = r->outputs[0];                                                                                      \
        for (int64_t k = 0; k < out->elements; k++)                                                                    \
            to[k] = start;                                                                                             \
        _Pragma("omp parallel for num_threads((int)shares) if (shares > 1)")                                           \
        for (int64_t s = 0; s < shares; s++)                                                                           \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                int64_t id = twi_input_int(r, 1, i);                                                                   \
                bool first = takes && (i == 0 || id != twi_input_int(r, 1, i - 1));                                    \
                for (int64_t k = row * s / shares; id >= 0 && k < row * (s + 1) / shares; k++) {                       \
                    REAL a = to[id * row + k], b = from[i * row + k];                                                  \
                    to[id * row + k] = first ? b : combined;                                                           \
                }                                                                                                      \
            }                                                                                                          \
    }

#define SORTED(f)                                                                                                      \
    static tw_status NAME(segment_##f)(const twi_run *r)                                                               \
    {                                                                                                                  \
        tw_status status = check_order(r);                                                                             \
        if (status == TW_OK)                                                                                           \
            NAME(sorted_##f)(r);                                                                                       \
        return status;                                                                                                 \
    }
#define UNSORTED(f)                                                                                                    \
    static tw_status NAME(unsorted_segment_##f)(const twi_run *r)                                                      \
    {                                                                                                                  \
        tw_status status = check_segments(r);                                                                          \
        if (status == TW_OK)                                                                                           \
            NAME(any_##f)(r);                                                                                          \
        return status;                                                                                                 \
    }

#define TAKES true
#define COMBINES false
REDUCTION(any_sum, 0, COMBINES, ADD(a, b))
REDUCTION(any_prod, 1, COMBINES, MULTIPLY(a, b))
REDUCTION(any_max, LEAST(REAL), COMBINES, b > a ? b : a)
REDUCTION(any_min, GREATEST(REAL), COMBINES, b < a ? b : a)
REDUCTION(sorted_prod, 1, TAKES, MULTIPLY(a, b))
REDUCTION(sorted_max, 0, TAKES, b > a || b != b ? b : a)
REDUCTION(sorted_min, 0, TAKES, b < a || b != b ? b : a)
#undef TAKES
#undef COMBINES

static void NAME(sorted_sum)(const twi_run *r)
{
    NAME(any_sum)(r);
}

/* Sums, then each divided by the rows it is of. */
static void NAME(sorted_mean)(const twi_run *r)
{
    const int64_t n = r->input_operands[1].elements, segments = r->output_operands[0].shape.dims[0];
    const int64_t row = segments ? r->output_operands[0].elements / segments : 0;
    REAL *to = r->outputs[0];
    NAME(any_sum)(r);
    for (int64_t i = 0, end; i < n; i = end) {
        int64_t id = twi_input_int(r, 1, i);
        for (end = i + 1; end < n && twi_input_int(r, 1, end) == id;)
            end++;
        for (int64_t k = 0; k < row; k++)
            to[id * row + k] = (REAL)(to[id * row + k] / (REAL)(end - i));
    }
}

SORTED(sum)
SORTED(mean)
SORTED(prod)
SORTED(max)
SORTED(min)
UNSORTED(sum)
UNSORTED(prod)
UNSORTED(max)
UNSORTED(min)
#undef REDUCTION
#undef SORTED
#undef UNSORTED

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

/* Each value below the size adds its weight, or 1. */
static tw_status NAME(bincount)(const twi_run *r)
{
    const int64_t n = r->input_operands[0].elements, size = r->output_operands[0].elements;
    const int32_t *values = r->inputs[0];
    const REAL *weights = r->input_operands[2].elements ? r->inputs[2] : NULL;
    REAL *bins = r->outputs[0];
    twi_clear(bins, sizeof *bins * (size_t)size);
    for (int64_t i = 0; i < n; i++) {
        if (values[i] < 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Input arr must be non-negative!", r->node);
        if (values[i] < size)
            bins[values[i]] = ADD(bins[values[i]], weights ? weights[i] : 1);
    }
    return TW_OK;
}
