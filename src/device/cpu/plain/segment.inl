/* segment.inl - sums of rows by segment for one type; see typed.h. */

/* data [n,row], ids [n]: output [segments,row]. Rows of negative ids go nowhere. */
static void NAME(add_rows)(const twi_run *r)
{
    const twi_operand *data = &r->input_operands[0], *ids = &r->input_operands[1], *out = &r->output_operands[0];
    const int64_t n = ids->elements, row = twi_elements_between(data->shape, ids->shape.rank, data->shape.rank);
    const int64_t shares = column_shares(r, row);
    const REAL *from = r->inputs[0];
    REAL *to = r->outputs[0];
    twi_clear(to, sizeof *to * (size_t)out->elements);
#pragma omp parallel for num_threads((int)shares) if (shares > 1)
    for (int64_t s = 0; s < shares; s++)
        for (int64_t i = 0; i < n; i++) {
            int64_t id = twi_input_int(r, 1, i);
            for (int64_t k = row * s / shares; id >= 0 && k < row * (s + 1) / shares; k++)
                to[id * row + k] = ADD(to[id * row + k], from[i * row + k]);
        }
}

static tw_status NAME(unsorted_segment_sum)(const twi_run *r)
{
    tw_status status = check_segments(r);
    if (status == TW_OK)
        NAME(add_rows)(r);
    return status;
}

static tw_status NAME(segment_sum)(const twi_run *r)
{
    tw_status status = check_order(r);
    if (status == TW_OK)
        NAME(add_rows)(r);
    return status;
}
