/* einsum.inl - Einsum for one type; see einsum.c. */

/* Of an input, over the labels from `first` to before `end`, which it has alone. */
static __attribute__((unused)) SUM NAME(own_sum)(const walk *w, const REAL *from, int input, int first, int end,
                                                 int64_t *at, int64_t places[3])
{
    SUM sum = 0;
    if (first == end)
        return (SUM)from[places[input]];
    if (is_empty(w, first, end))
        return sum;
    do
        sum += (SUM)from[places[input]];
    while (advance(w, first, end, at, places));
    return sum;
}

static __attribute__((unused)) tw_status NAME(einsum)(const twi_run *r)
{
    const walk *w = r->state;
    const REAL *x = r->inputs[0], *y = r->num_inputs > 1 ? r->inputs[1] : NULL;
    REAL *to = r->outputs[0];
    int64_t at[TWI_EINSUM_LABELS] = {0}, places[3] = {0, 0, 0};
    bool left = r->output_operands[0].elements > 0;
    bool nothing = is_empty(w, w->num_output, w->num_common);
    if (w->is_diagonal)
        twi_clear(to, r->output_operands[0].bytes);
    for (; left; left = advance(w, 0, w->num_output, at, places)) {
        SUM sum = 0;
        if (!nothing)
            do {
                SUM product = NAME(own_sum)(w, x, 0, w->num_common, w->num_first, at, places);
                sum += y ? product * NAME(own_sum)(w, y, 1, w->num_first, w->num_labels, at, places) : product;
            } while (advance(w, w->num_output, w->num_common, at, places));
        to[places[2]] = (REAL)sum;
    }
    return TW_OK;
}
