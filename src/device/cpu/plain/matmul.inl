/* matmul.inl - the product of REAL matrices; see matmul.c. A block of a row of the product is summed at a time. */

static __attribute__((unused)) tw_status NAME(matmul)(const twi_run *r)
{
    enum { BLOCK = 64 };
    const product *d = r->state;
    TWI_PRAGMA(omp parallel for num_threads(twi_team_for(r, d->batches * d->m, d->m * d->n * d->k)))
    for (int64_t row = 0; row < d->batches * d->m; row++) {
        int64_t batch = row / d->m, i = row % d->m;
        int64_t a_from, b_from;
        find_operands(d, batch, &a_from, &b_from);
        const REAL *a = (const REAL *)r->inputs[0] + a_from + i * d->a_row, *b = (const REAL *)r->inputs[1] + b_from;
        REAL *out = (REAL *)r->outputs[0] + row * d->n;
        for (int64_t j0 = 0; j0 < d->n; j0 += BLOCK) {
            int64_t width = d->n - j0 < BLOCK ? d->n - j0 : BLOCK;
            SUM sums[BLOCK] = {0};
            for (int64_t k = 0; k < d->k; k++) {
                SUM factor = CONJUGATED(d->conj_a, (SUM)a[k * d->a_column]);
                const REAL *b_row = b + k * d->b_row + j0 * d->b_column;
                TWI_VECTOR_LOOP
                for (int64_t j = 0; j < width; j++)
                    sums[j] += factor * CONJUGATED(d->conj_b, (SUM)b_row[j * d->b_column]);
            }
            for (int64_t j = 0; j < width; j++)
                out[j0 + j] = (REAL)sums[j];
        }
    }
    return TW_OK;
}
