/* einsum.inl - Einsum for one type; see einsum.c. */
static __attribute__((unused)) tw_status NAME(einsum)(const twi_run *r)
{
    const walk *w = r->state;
    const REAL *x = r->inputs[0], *y = r->num_inputs > 1 ? r->inputs[1] : NULL;
    REAL *to = r->outputs[0];
    int64_t at[TWI_EINSUM_LABELS] = {0}, places[2] = {0, 0};
    bool nothing = false;
    for (int k = w->num_output; k < w->num_labels; k++)
        nothing = nothing || w->size[k] == 0;
    for (int64_t i = 0; i < r->output_operands[0].elements; i++) {
        SUM sum = 0;
        do
            sum += nothing ? 0 : y ? (SUM)x[places[0]] * (SUM)y[places[1]] : (SUM)x[places[0]];
        while (!nothing && advance(w, w->num_output, w->num_labels, at, places));
        to[i] = (REAL)sum;
        advance(w, 0, w->num_output, at, places);
    }
    return TW_OK;
}
