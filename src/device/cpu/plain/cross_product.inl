/* cross_product.inl - a x b of vectors in space; see cross_product.c. */
static tw_status NAME(cross_product)(const twi_run *r)
{
    const REAL *a = r->inputs[0], *b = r->inputs[1];
    REAL *to = r->outputs[0];
    for (int64_t i = 0; i + 3 <= r->output_operands[0].elements; i += 3)
        for (int k = 0; k < 3; k++) {
            int64_t next = i + (k + 1) % 3, after = i + (k + 2) % 3;
            to[i + k] = SUBTRACT(MULTIPLY(a[next], b[after]), MULTIPLY(a[after], b[next]));
        }
    return TW_OK;
}
