/* average_pool.inl - average pooling, plainly: the mean of the real cells of a window, padding left out. */

static tw_status NAME(average_pool)(const twi_run *r)
{
    const pool *p = r->state;
    const twi_window *w = &p->window;
    const REAL *x = r->inputs[0];
    REAL *y = r->outputs[0];
    int64_t channels = p->channels;
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < p->batch * w->output[0]; row++) {
        const REAL *image = x + row / w->output[0] * w->image[0] * w->image[1] * channels;
        for (int64_t column = 0; column < w->output[1]; column++) {
            REAL *to = y + (row * w->output[1] + column) * channels;
            span rows = cells_under(w, 0, row % w->output[0]), columns = cells_under(w, 1, column);
            REAL cells = (REAL)((rows.end - rows.begin) * (columns.end - columns.begin));
            memset(to, 0, sizeof *to * (size_t)channels);
            for (int64_t h = rows.begin; h < rows.end; h++)
                for (int64_t v = columns.begin; v < columns.end; v++) {
                    const REAL *from = image + (h * w->image[1] + v) * channels;
                    TWI_VECTOR_LOOP
                    for (int64_t c = 0; c < channels; c++)
                        to[c] += from[c];
                }
            TWI_VECTOR_LOOP
            for (int64_t c = 0; c < channels; c++)
                to[c] /= cells;
        }
    }
    return TW_OK;
}

/* Each input cell gathers from the windows that cover it. */
static tw_status NAME(average_pool_grad)(const twi_run *r)
{
    const pool *p = r->state;
    const twi_window *w = &p->window;
    const REAL *dy = r->inputs[1];
    REAL *dx = r->outputs[0];
    int64_t channels = p->channels;
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < p->batch * w->image[0]; row++) {
        const REAL *image = dy + row / w->image[0] * w->output[0] * w->output[1] * channels;
        span over_rows = windows_over(w, 0, row % w->image[0]);
        for (int64_t column = 0; column < w->image[1]; column++) {
            REAL *to = dx + (row * w->image[1] + column) * channels;
            span over_columns = windows_over(w, 1, column);
            memset(to, 0, sizeof *to * (size_t)channels);
            for (int64_t h = over_rows.begin; h < over_rows.end; h++)
                for (int64_t v = over_columns.begin; v < over_columns.end; v++) {
                    const REAL *from = image + (h * w->output[1] + v) * channels;
                    span rows = cells_under(w, 0, h), columns = cells_under(w, 1, v);
                    REAL cells = (REAL)((rows.end - rows.begin) * (columns.end - columns.begin));
                    TWI_VECTOR_LOOP
                    for (int64_t c = 0; c < channels; c++)
                        to[c] += from[c] / cells;
                }
        }
    }
    return TW_OK;
}
