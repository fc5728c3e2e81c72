/* pool.inl - maximum and average pooling, plainly. Shapes: x [N,H,W,C], y [N,h,w,C]; see typed.h, window.h. */

static tw_status NAME(max_pool)(const twi_run *r)
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
            memset(to, 0, sizeof *to * (size_t)channels);
            for (int64_t h = rows.begin; h < rows.end; h++)
                for (int64_t v = columns.begin; v < columns.end; v++) {
                    const REAL *from = image + (h * w->image[1] + v) * channels;
                    bool first = h == rows.begin && v == columns.begin;
                    TWI_VECTOR_LOOP
                    for (int64_t c = 0; c < channels; c++)
                        to[c] = first || from[c] > to[c] ? from[c] : to[c];
                }
        }
    }
    return TW_OK;
}

/* Where in its image each of `count` channels has the maximum of one window: the first one in row-major order. */
static inline void NAME(find_maximum)(const twi_window *w, const REAL *image, int64_t channels, int64_t count,
                                      int64_t row, int64_t column, int64_t *where)
{
    REAL best[CHANNEL_BLOCK];
    span rows = cells_under(w, 0, row), columns = cells_under(w, 1, column);
    for (int64_t h = rows.begin; h < rows.end; h++)
        for (int64_t v = columns.begin; v < columns.end; v++) {
            int64_t place = (h * w->image[1] + v) * channels;
            bool first = h == rows.begin && v == columns.begin;
            for (int64_t c = 0; c < count; c++)
                if (first || image[place + c] > best[c]) {
                    best[c] = image[place + c];
                    where[c] = place + c;
                }
        }
}

static tw_status NAME(max_pool_where)(const twi_run *r)
{
    const pool *p = r->state;
    const twi_window *w = &p->window;
    const REAL *x = r->inputs[0];
    int64_t channels = p->channels, blocks = (channels + CHANNEL_BLOCK - 1) / CHANNEL_BLOCK;
    TWI_PARALLEL_LOOP(r)
    for (int64_t job = 0; job < p->batch * w->output[0] * blocks; job++) {
        int64_t row = job / blocks, begin = job % blocks * CHANNEL_BLOCK, where[CHANNEL_BLOCK];
        int64_t count = channels - begin < CHANNEL_BLOCK ? channels - begin : CHANNEL_BLOCK;
        int64_t image = row / w->output[0] * w->image[0] * w->image[1] * channels;
        for (int64_t column = 0; column < w->output[1]; column++) {
            int64_t to = (row * w->output[1] + column) * channels + begin;
            NAME(find_maximum)(w, x + image + begin, channels, count, row % w->output[0], column, where);
            for (int64_t c = 0; c < count; c++) {
                ((REAL *)r->outputs[0])[to + c] = x[image + begin + where[c]];
                twi_output_int(r, 1, to + c, begin + where[c] + (p->counts_batch ? image : 0));
            }
        }
    }
    return TW_OK;
}

/* What flows into a maximum flows to where it was. */
static tw_status NAME(max_pool_grad_where)(const twi_run *r)
{
    const REAL *dy = r->inputs[1];
    REAL *dx = r->outputs[0];
    twi_clear(dx, r->output_operands[0].bytes);
    for (int64_t i = 0; i < r->input_operands[1].elements; i++) {
        int64_t place = place_in_all(r, i);
        if (place < 0)
            return fail_place(r, i);
        dx[place] = ADD(dx[place], dy[i]);
    }
    return TW_OK;
}

/* Windows overlap, so a job is a block of channels of one image. */
static tw_status NAME(max_pool_grad)(const twi_run *r)
{
    const pool *p = r->state;
    const twi_window *w = &p->window;
    const REAL *x = r->inputs[0], *dy = r->inputs[2];
    REAL *dx = r->outputs[0];
    int64_t channels = p->channels, blocks = (channels + CHANNEL_BLOCK - 1) / CHANNEL_BLOCK;
    twi_clear(dx, r->output_operands[0].bytes);
    TWI_PARALLEL_LOOP(r)
    for (int64_t job = 0; job < p->batch * blocks; job++) {
        int64_t n = job / blocks, begin = job % blocks * CHANNEL_BLOCK;
        int64_t count = channels - begin < CHANNEL_BLOCK ? channels - begin : CHANNEL_BLOCK;
        int64_t offset = n * w->image[0] * w->image[1] * channels + begin, where[CHANNEL_BLOCK];
        for (int64_t row = 0; row < w->output[0]; row++)
            for (int64_t column = 0; column < w->output[1]; column++) {
                const REAL *from = dy + ((n * w->output[0] + row) * w->output[1] + column) * channels + begin;
                NAME(find_maximum)(w, x + offset, channels, count, row, column, where);
                for (int64_t c = 0; c < count; c++)
                    dx[offset + where[c]] = ADD(dx[offset + where[c]], from[c]);
            }
    }
    return TW_OK;
}

/* The gradient of max_pool_grad: picks from a gradient shaped like x what lies at each maximum. */
static tw_status NAME(max_pool_grad_grad)(const twi_run *r)
{
    const pool *p = r->state;
    const twi_window *w = &p->window;
    const REAL *x = r->inputs[0], *ddx = r->inputs[2];
    REAL *ddy = r->outputs[0];
    int64_t channels = p->channels, blocks = (channels + CHANNEL_BLOCK - 1) / CHANNEL_BLOCK;
    twi_clear(ddy, r->output_operands[0].bytes);
    TWI_PARALLEL_LOOP(r)
    for (int64_t job = 0; job < p->batch * blocks; job++) {
        int64_t n = job / blocks, begin = job % blocks * CHANNEL_BLOCK;
        int64_t count = channels - begin < CHANNEL_BLOCK ? channels - begin : CHANNEL_BLOCK;
        int64_t offset = n * w->image[0] * w->image[1] * channels + begin, where[CHANNEL_BLOCK];
        for (int64_t row = 0; row < w->output[0]; row++)
            for (int64_t column = 0; column < w->output[1]; column++) {
                REAL *to = ddy + ((n * w->output[0] + row) * w->output[1] + column) * channels + begin;
                NAME(find_maximum)(w, x + offset, channels, count, row, column, where);
                for (int64_t c = 0; c < count; c++)
                    to[c] = ddx[offset + where[c]];
            }
    }
    return TW_OK;
}
