/* matmul_panels.inl - the product of REAL matrices by the panels of products.h; see matmul.c. Who has a block of rows
 * and a panel of columns lays the panel down row after row, as much of it as a cache holds, and goes through it with
 * his rows; few rows take it as it lies. Each sum is made in the order of k, whatever the sizes and the team. */

static tw_status NAME(matmul_panels)(const twi_run *r)
{
    enum { ROWS = 48, FEW = 6, DEEP = 128, COLUMNS = TWI_PANEL_BYTES / sizeof(REAL) };
    const product *d = r->state;
    const twi_products *unit = twi_products_best();
    int64_t blocks = (d->m + ROWS - 1) / ROWS, panels = (d->n + COLUMNS - 1) / COLUMNS;
    int64_t jobs = d->batches * blocks * panels;
    TWI_PRAGMA(omp parallel for num_threads(twi_team_for(r, jobs, d->m * d->n * d->k)))
    for (int64_t job = 0; job < jobs; job++) {
        int64_t i0 = job / panels % blocks * ROWS, rows = d->m - i0 < ROWS ? d->m - i0 : ROWS;
        int64_t j0 = job % panels * COLUMNS, width = d->n - j0 < COLUMNS ? d->n - j0 : COLUMNS;
        int64_t batch = job / panels / blocks, a_from, b_from;
        find_operands(d, batch, &a_from, &b_from);
        const REAL *a = (const REAL *)r->inputs[0] + a_from + i0 * d->a_row;
        const REAL *b = (const REAL *)r->inputs[1] + b_from + j0 * d->b_column;
        bool as_it_lies = d->b_column == 1 && width == COLUMNS && rows <= FEW;
        REAL sums[ROWS * COLUMNS], panel[DEEP * COLUMNS];
        memset(sums, 0, (size_t)rows * COLUMNS * sizeof *sums);
        memset(panel, 0, width < COLUMNS ? sizeof panel : 0);
        for (int64_t k0 = 0; k0 < d->k; k0 += DEEP) {
            int64_t deep = d->k - k0 < DEEP ? d->k - k0 : DEEP;
            const REAL *from = b + k0 * d->b_row;
            for (int64_t k = 0; k < deep && !as_it_lies; k++)
                for (int64_t j = 0; j < width; j++)
                    panel[k * COLUMNS + j] = from[k * d->b_row + j * d->b_column];
            unit->NAME(panel)(sums, rows, a + k0 * d->a_column, d->a_row, d->a_column, as_it_lies ? from : panel,
                              as_it_lies ? d->b_row : COLUMNS, deep);
        }
        REAL *out = (REAL *)r->outputs[0] + (batch * d->m + i0) * d->n + j0;
        for (int64_t i = 0; i < rows; i++)
            memcpy(out + i * d->n, sums + i * COLUMNS, (size_t)width * sizeof *out);
    }
    return TW_OK;
}
