/* fractional.inl - fractional pools and their gradients, plainly; see typed.h. x [N,H,W,C], y [N,h,w,C]. */

static tw_status NAME(fractional_max)(const twi_run *r)
{
    regions g = draw_regions(r);
    const REAL *x = r->inputs[0];
    REAL *y = r->outputs[0];
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < g.batch * g.out[0]; row++)
        for (int64_t column = 0; column < g.out[1]; column++) {
            REAL *to = y + (row * g.out[1] + column) * g.channels;
            place from = begin_of(&g, row, column);
            for (int64_t h = from.top; h < from.bottom; h++)
                for (int64_t v = from.left; v < from.right; v++) {
                    const REAL *cell = x + (h * g.in[1] + v) * g.channels;
                    bool first = h == from.top && v == from.left;
                    for (int64_t c = 0; c < g.channels; c++)
                        to[c] = first || cell[c] > to[c] ? cell[c] : to[c];
                }
        }
    return TW_OK;
}

static tw_status NAME(fractional_average)(const twi_run *r)
{
    regions g = draw_regions(r);
    const REAL *x = r->inputs[0];
    REAL *y = r->outputs[0];
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < g.batch * g.out[0]; row++)
        for (int64_t column = 0; column < g.out[1]; column++) {
            REAL *to = y + (row * g.out[1] + column) * g.channels;
            place from = begin_of(&g, row, column);
            memset(to, 0, sizeof *to * (size_t)g.channels);
            for (int64_t h = from.top; h < from.bottom; h++)
                for (int64_t v = from.left; v < from.right; v++)
                    for (int64_t c = 0; c < g.channels; c++)
                        to[c] = ADD(to[c], x[(h * g.in[1] + v) * g.channels + c]);
            for (int64_t c = 0; c < g.channels; c++)
                to[c] /= (REAL)cells_of(&from);
        }
    return TW_OK;
}

/* What flows into a maximum flows to the first cell that has it. */
static tw_status NAME(fractional_max_grad)(const twi_run *r)
{
    regions g;
    tw_status status = given_regions(r, r->output_operands[0].shape, 2, &g);
    const REAL *x = r->inputs[0], *dy = r->inputs[2];
    REAL *dx = r->outputs[0];
    twi_clear(dx, r->output_operands[0].bytes);
    for (int64_t row = 0; row < g.batch * g.out[0] && status == TW_OK; row++)
        for (int64_t column = 0; column < g.out[1]; column++) {
            place from = begin_of(&g, row, column);
            for (int64_t c = 0; c < g.channels; c++) {
                int64_t best = (from.top * g.in[1] + from.left) * g.channels + c;
                for (int64_t h = from.top; h < from.bottom; h++)
                    for (int64_t v = from.left; v < from.right; v++) {
                        int64_t at = (h * g.in[1] + v) * g.channels + c;
                        best = x[at] > x[best] ? at : best;
                    }
                dx[best] = ADD(dx[best], dy[(row * g.out[1] + column) * g.channels + c]);
            }
        }
    return status;
}

/* Sums are kept in double, as in TensorFlow. */
static tw_status NAME(fractional_average_grad)(const twi_run *r)
{
    regions g;
    tw_status status = given_regions(r, r->output_operands[0].shape, 1, &g);
    const REAL *dy = r->inputs[1];
    double *sums = r->workspace;
    int64_t n = r->output_operands[0].elements;
    twi_clear(sums, sizeof *sums * (size_t)n);
    for (int64_t row = 0; row < g.batch * g.out[0] && status == TW_OK; row++)
        for (int64_t column = 0; column < g.out[1]; column++) {
            place from = begin_of(&g, row, column);
            for (int64_t h = from.top; h < from.bottom; h++)
                for (int64_t v = from.left; v < from.right; v++)
                    for (int64_t c = 0; c < g.channels; c++)
                        sums[(h * g.in[1] + v) * g.channels + c] +=
                            (double)(dy[(row * g.out[1] + column) * g.channels + c] / (REAL)cells_of(&from));
        }
    for (int64_t i = 0; i < n && status == TW_OK; i++)
        ((REAL *)r->outputs[0])[i] = (REAL)sums[i];
    return status;
}
