/* conv.inl - convolutions, plainly. Shapes: x [N,H,W,C], filter [kh,kw,C/G,K], y [N,h,w,K]; see typed.h, window.h. */

/* y[k] += sum over c of x[c] * filter[c,k], whose rows are `row` apart */
static inline void NAME(multiply_cell)(const REAL *x, const REAL *filter, int64_t row, REAL *y, int64_t c_count,
                                       int64_t k_count)
{
    for (int64_t c = 0; c < c_count; c++, filter += row) {
        REAL value = x[c];
        TWI_VECTOR_LOOP
        for (int64_t k = 0; k < k_count; k++)
            y[k] += value * filter[k];
    }
}

static tw_status NAME(conv2d)(const twi_run *r)
{
    const twi_convolution *g = r->state;
    const twi_window *w = &g->window;
    const REAL *x = r->inputs[0], *filter = r->inputs[1];
    REAL *y = r->outputs[0];
    int64_t channels = g->in_channels, filters = g->out_channels;
    int64_t seen = channels / g->groups, made = filters / g->groups; /* channels and filters of a group */
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < g->batch * w->output[0]; row++) {
        const REAL *image = x + row / w->output[0] * w->image[0] * w->image[1] * channels;
        for (int64_t column = 0; column < w->output[1]; column++) {
            REAL *to = y + (row * w->output[1] + column) * filters;
            memset(to, 0, sizeof *to * (size_t)filters);
            for (int64_t i = 0; i < w->size[0]; i++)
                for (int64_t j = 0; j < w->size[1]; j++) {
                    int64_t h = input_cell(w, 0, row % w->output[0], i), v = input_cell(w, 1, column, j);
                    if (h < 0 || v < 0)
                        continue;
                    const REAL *from = image + (h * w->image[1] + v) * channels;
                    const REAL *weights = filter + (i * w->size[1] + j) * seen * filters;
                    for (int64_t n = 0; n < g->groups; n++)
                        NAME(multiply_cell)(from + n * seen, weights + n * made, filters, to + n * made, seen, made);
                }
        }
    }
    return TW_OK;
}

/* dx = dy through the filter; the filter is transposed to [kh,kw,K,C/G] first, so that the inner loop runs along C. */
static tw_status NAME(conv2d_backprop_input)(const twi_run *r)
{
    const twi_convolution *g = r->state;
    const twi_window *w = &g->window;
    const REAL *filter = r->inputs[1], *dy = r->inputs[2];
    REAL *dx = r->outputs[0], *transposed = r->workspace;
    int64_t channels = g->in_channels, filters = g->out_channels;
    int64_t seen = channels / g->groups, made = filters / g->groups;
    TWI_PARALLEL_LOOP(r)
    for (int64_t cell = 0; cell < w->size[0] * w->size[1]; cell++)
        for (int64_t c = 0; c < seen; c++)
            for (int64_t k = 0; k < filters; k++)
                transposed[(cell * filters + k) * seen + c] = filter[(cell * seen + c) * filters + k];
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < g->batch * w->image[0]; row++) {
        const REAL *image = dy + row / w->image[0] * w->output[0] * w->output[1] * filters;
        for (int64_t column = 0; column < w->image[1]; column++) {
            REAL *to = dx + (row * w->image[1] + column) * channels;
            memset(to, 0, sizeof *to * (size_t)channels);
            for (int64_t i = 0; i < w->size[0]; i++)
                for (int64_t j = 0; j < w->size[1]; j++) {
                    int64_t h = output_cell(w, 0, row % w->image[0], i), v = output_cell(w, 1, column, j);
                    if (h < 0 || v < 0)
                        continue;
                    const REAL *from = image + (h * w->output[1] + v) * filters;
                    const REAL *weights = transposed + (i * w->size[1] + j) * filters * seen;
                    for (int64_t n = 0; n < g->groups; n++)
                        NAME(multiply_cell)(from + n * made, weights + n * made * seen, seen, to + n * seen, made,
                                            seen);
                }
        }
    }
    return TW_OK;
}

/* dfilter[i,j,c,k] = sum over the output cells of x under (i,j) times dy; one job an [i,j,c] of all groups. */
static tw_status NAME(conv2d_backprop_filter)(const twi_run *r)
{
    const twi_convolution *g = r->state;
    const twi_window *w = &g->window;
    const REAL *x = r->inputs[0], *dy = r->inputs[2];
    REAL *dfilter = r->outputs[0];
    int64_t channels = g->in_channels, filters = g->out_channels;
    int64_t seen = channels / g->groups, made = filters / g->groups;
    TWI_PARALLEL_LOOP(r)
    for (int64_t job = 0; job < w->size[0] * w->size[1] * seen; job++) {
        int64_t c = job % seen, j = job / seen % w->size[1], i = job / seen / w->size[1];
        REAL *to = dfilter + job * filters;
        memset(to, 0, sizeof *to * (size_t)filters);
        for (int64_t row = 0; row < g->batch * w->output[0]; row++) {
            int64_t h = input_cell(w, 0, row % w->output[0], i);
            if (h < 0)
                continue;
            const REAL *line = x + (row / w->output[0] * w->image[0] + h) * w->image[1] * channels + c;
            for (int64_t column = 0; column < w->output[1]; column++) {
                int64_t v = input_cell(w, 1, column, j);
                const REAL *from = dy + (row * w->output[1] + column) * filters;
                for (int64_t n = 0; n < g->groups && v >= 0; n++)
                    NAME(multiply_cell)(line + v * channels + n * seen, from + n * made, 0, to + n * made, 1, made);
            }
        }
    }
    return TW_OK;
}

/* ---- depthwise: filter [kh,kw,C,M]; output channel c * M + m sees input channel c alone --------------------- */

static tw_status NAME(depthwise)(const twi_run *r)
{
    const twi_convolution *g = r->state;
    const twi_window *w = &g->window;
    const REAL *x = r->inputs[0], *filter = r->inputs[1];
    REAL *y = r->outputs[0];
    int64_t channels = g->in_channels, filters = g->out_channels, multiplier = channels ? filters / channels : 0;
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < g->batch * w->output[0]; row++) {
        const REAL *image = x + row / w->output[0] * w->image[0] * w->image[1] * channels;
        for (int64_t column = 0; column < w->output[1]; column++) {
            REAL *to = y + (row * w->output[1] + column) * filters;
            memset(to, 0, sizeof *to * (size_t)filters);
            for (int64_t i = 0; i < w->size[0]; i++)
                for (int64_t j = 0; j < w->size[1]; j++) {
                    int64_t h = input_cell(w, 0, row % w->output[0], i), v = input_cell(w, 1, column, j);
                    if (h < 0 || v < 0)
                        continue;
                    const REAL *from = image + (h * w->image[1] + v) * channels;
                    const REAL *weights = filter + (i * w->size[1] + j) * filters;
                    for (int64_t c = 0; c < channels; c++)
                        for (int64_t k = c * multiplier; k < (c + 1) * multiplier; k++)
                            to[k] += from[c] * weights[k];
                }
        }
    }
    return TW_OK;
}

/* to[i] += a[i] b[i] */
static void NAME(add_products)(REAL *restrict to, const REAL *restrict a, const REAL *restrict b, int64_t count)
{
    TWI_VECTOR_LOOP
    for (int64_t i = 0; i < count; i++)
        to[i] += a[i] * b[i];
}

static tw_status NAME(depthwise_backprop_input)(const twi_run *r)
{
    const twi_convolution *g = r->state;
    const twi_window *w = &g->window;
    const REAL *filter = r->inputs[1], *dy = r->inputs[2];
    REAL *dx = r->outputs[0];
    int64_t channels = g->in_channels, filters = g->out_channels, multiplier = channels ? filters / channels : 0;
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < g->batch * w->image[0]; row++) {
        const REAL *image = dy + row / w->image[0] * w->output[0] * w->output[1] * filters;
        for (int64_t column = 0; column < w->image[1]; column++) {
            REAL *to = dx + (row * w->image[1] + column) * channels;
            memset(to, 0, sizeof *to * (size_t)channels);
            for (int64_t i = 0; i < w->size[0]; i++)
                for (int64_t j = 0; j < w->size[1]; j++) {
                    int64_t h = output_cell(w, 0, row % w->image[0], i), v = output_cell(w, 1, column, j);
                    if (h < 0 || v < 0)
                        continue;
                    const REAL *from = image + (h * w->output[1] + v) * filters;
                    const REAL *weights = filter + (i * w->size[1] + j) * filters;
                    if (multiplier == 1)
                        NAME(add_products)(to, from, weights, channels);
                    else
                        for (int64_t c = 0; c < channels; c++)
                            for (int64_t k = c * multiplier; k < (c + 1) * multiplier; k++)
                                to[c] += from[k] * weights[k];
                }
        }
    }
    return TW_OK;
}

/* Of filters that are one a channel the gradient of a cell, for a few channels that lie beside each other. */
static void NAME(depthwise_cell)(const twi_convolution *g, const REAL *x, const REAL *dy, REAL *dfilter, int64_t cell,
                                 int64_t begin, int64_t count)
{
    const twi_window *w = &g->window;
    int64_t channels = g->in_channels, i = cell / w->size[1], j = cell % w->size[1];
    REAL *to = dfilter + cell * channels + begin;
    memset(to, 0, sizeof *to * (size_t)count);
    for (int64_t row = 0; row < g->batch * w->output[0]; row++) {
        int64_t h = input_cell(w, 0, row % w->output[0], i), image = row / w->output[0] * w->image[0];
        for (int64_t column = 0; column < w->output[1] && h >= 0; column++) {
            int64_t v = input_cell(w, 1, column, j);
            if (v >= 0)
                NAME(add_products)(to, x + ((image + h) * w->image[1] + v) * channels + begin,
                                   dy + (row * w->output[1] + column) * channels + begin, count);
        }
    }
}

static tw_status NAME(depthwise_backprop_filter)(const twi_run *r)
{
    const twi_convolution *g = r->state;
    const twi_window *w = &g->window;
    const REAL *x = r->inputs[0], *dy = r->inputs[2];
    REAL *dfilter = r->outputs[0];
    int64_t channels = g->in_channels, filters = g->out_channels, multiplier = channels ? filters / channels : 0;
    if (multiplier == 1) {
        int64_t blocks = (channels + CHANNELS_TOGETHER - 1) / CHANNELS_TOGETHER;
        TWI_PARALLEL_LOOP(r)
        for (int64_t job = 0; job < w->size[0] * w->size[1] * blocks; job++) {
            int64_t begin = job % blocks * CHANNELS_TOGETHER, left = channels - begin;
            NAME(depthwise_cell)(g, x, dy, dfilter, job / blocks, begin,
                                 left < CHANNELS_TOGETHER ? left : CHANNELS_TOGETHER);
        }
        return TW_OK;
    }
    TWI_PARALLEL_LOOP(r)
    for (int64_t job = 0; job < w->size[0] * w->size[1] * channels; job++) {
        int64_t c = job % channels, j = job / channels % w->size[1], i = job / channels / w->size[1];
        REAL *to = dfilter + job * multiplier;
        memset(to, 0, sizeof *to * (size_t)multiplier);
        for (int64_t row = 0; row < g->batch * w->output[0]; row++)
            for (int64_t column = 0; column < w->output[1]; column++) {
                int64_t h = input_cell(w, 0, row % w->output[0], i), v = input_cell(w, 1, column, j);
                if (h >= 0 && v >= 0)
                    NAME(multiply_cell)(
                        x + ((row / w->output[0] * w->image[0] + h) * w->image[1] + v) * channels + c,
                        dy + (row * w->output[1] + column) * filters + c * multiplier, 0, to, 1, multiplier);
            }
    }
    return TW_OK;
}
