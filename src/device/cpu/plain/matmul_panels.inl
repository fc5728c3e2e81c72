/* matmul_panels.inl - the product of REAL matrices by blocks; see matmul.c and multiply.inl. */
#include "device/cpu/plain/multiply.inl"

static tw_status NAME(matmul_panels)(const twi_run *r)
{
    const product *d = r->state;
    int64_t blocks = (d->m + NAME(BLOCK) - 1) / NAME(BLOCK), panels = (d->n + NAME(PANEL) - 1) / NAME(PANEL);
    int64_t jobs = d->batches * blocks * panels;
    TWI_PRAGMA(omp parallel for num_threads(twi_team_for(r, jobs, d->m * d->n * d->k)))
    for (int64_t job = 0; job < jobs; job++) {
        int64_t batch = job / panels / blocks, a_from, b_from;
        find_operands(d, batch, &a_from, &b_from);
        const NAME(factors) f = {.a = (const REAL *)r->inputs[0] + a_from, .b = (const REAL *)r->inputs[1] + b_from,
                                 .m = d->m, .n = d->n, .k = d->k, .a_row = d->a_row, .a_column = d->a_column,
                                 .b_row = d->b_row, .b_column = d->b_column};
        NAME(multiply_block)(&f, job / panels % blocks * NAME(BLOCK), job % panels * NAME(PANEL), false,
                             (REAL *)r->outputs[0] + batch * d->m * d->n, d->n);
    }
    return TW_OK;
}
