/* sparse_dense.inl - a sparse matrix times a dense one, and a sparse tensor plus a dense one, for one type; see
 * sparse_dense.c. */

/* a_indices [n,2], a_values [n], a_shape, b: output [m,p]. In the order of the values. */
static __attribute__((unused)) tw_status NAME(sparse_product)(const twi_run *r)
{
    int flags = (int)(intptr_t)r->state;
    const int64_t rows = r->output_operands[0].shape.dims[0], columns = r->output_operands[0].shape.dims[1];
    const int64_t *b_dims = r->input_operands[3].shape.dims, inner = b_dims[flags & ADJOINT_B ? 1 : 0];
    const REAL *values = r->inputs[1], *b = r->inputs[3];
    REAL *to = r->outputs[0];
    twi_clear(to, sizeof *to * (size_t)r->output_operands[0].elements);
    for (int64_t i = 0; i < r->input_operands[1].elements; i++) {
        int64_t m = twi_input_int(r, 0, 2 * i + (flags & ADJOINT_A ? 1 : 0));
        int64_t k = twi_input_int(r, 0, 2 * i + (flags & ADJOINT_A ? 0 : 1));
        if (k < 0 || k >= inner || m < 0 || m >= rows)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices[%lld] = [%lld,%lld] does not lie in a", r->node,
                            (long long)i, (long long)(flags & ADJOINT_A ? k : m),
                            (long long)(flags & ADJOINT_A ? m : k));
        const REAL x = CONJUGATED(flags & ADJOINT_A, values[i]);
        for (int64_t n = 0; n < columns; n++) {
            REAL y = flags & ADJOINT_B ? b[n * inner + k] : b[k * columns + n];
            to[m * columns + n] = ADD(to[m * columns + n], MULTIPLY(x, CONJUGATED(flags & ADJOINT_B, y)));
        }
    }
    return TW_OK;
}

/* a_indices, a_values, a_shape, b: b, and at a's places what a has. */
static __attribute__((unused)) tw_status NAME(sparse_plus_dense)(const twi_run *r)
{
    const twi_operand *b = &r->input_operands[3];
    const REAL *values = r->inputs[1];
    REAL *to = r->outputs[0];
    twi_places places;
    tw_status status = check_operands(r);
    if (status == TW_OK)
        status = twi_places_check(r, 0, b->shape, &places);
    if (status == TW_OK && b->bytes && r->inputs[3] != r->outputs[0])
        memcpy(to, r->inputs[3], b->bytes);
    for (int64_t i = 0; i < r->input_operands[1].elements && status == TW_OK; i++) {
        int64_t at = twi_places_offset(r, 0, &places, i);
        to[at] = ADD(to[at], values[i]);
    }
    return status;
}
