/* inplace.inl - rows added to rows, one after the other; see typed.h. */

static void NAME(add_rows)(const twi_run *r)
{
    bool adds = strcmp(r->state, "InplaceAdd") == 0;
    int64_t row = row_elements(r), rows = r->input_operands[1].elements;
    const REAL *v = r->inputs[2];
    for (int64_t k = 0; k < rows; k++) {
        REAL *to = (REAL *)r->outputs[0] + row_of(r, k) * row;
        for (int64_t i = 0; i < row; i++)
            to[i] = adds ? ADD(to[i], v[k * row + i]) : SUBTRACT(to[i], v[k * row + i]);
    }
}

static tw_status NAME(inplace)(const twi_run *r)
{
    if (r->outputs[0] != r->inputs[0])
        twi_copy_elements(r->output_operands[0].elements, r->output_operands[0].dtype, r->inputs[0], r->outputs[0]);
    if (r->input_operands[0].shape.dims[0])
        NAME(add_rows)(r);
    return TW_OK;
}
