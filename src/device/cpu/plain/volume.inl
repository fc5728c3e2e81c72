/* volume.inl - convolutions and pools of volumes for one type; see volume.c. Sums are kept in double and made in a
 * fixed order; the team shares what is written. */

/* x [N,in,C], w [k,C,K]: y [N,out,K] */
static tw_status NAME(conv)(const twi_run *r)
{
    const twi_volume *v = r->state;
    const REAL *x = r->inputs[0], *w = r->inputs[1];
    REAL *y = r->outputs[0];
    int64_t outs = product(v->out), ins = product(v->in);
    int64_t channels = r->input_operands[1].shape.dims[3], filters = r->input_operands[1].shape.dims[4];
    int64_t places = r->output_operands[0].elements ? r->input_operands[0].shape.dims[0] * outs : 0;
    TWI_PARALLEL_LOOP(r)
    for (int64_t job = 0; job < places * blocks_of(filters); job++) {
        int64_t i = job / blocks_of(filters), first = job % blocks_of(filters) * BLOCK;
        int64_t count = in_block(filters, first);
        double sums[BLOCK] = {0};
        for (walk at = walk_window(v, i % outs); next_tap(&at);) {
            const REAL *pixel = x + (i / outs * ins + at.place) * channels;
            for (int64_t c = 0; c < channels; c++)
                for (int64_t f = 0; f < count; f++)
                    sums[f] += (double)pixel[c] * (double)w[(at.tap * channels + c) * filters + first + f];
        }
        for (int64_t f = 0; f < count; f++)
            y[i * filters + first + f] = (REAL)sums[f];
    }
    return TW_OK;
}

/* sizes, w, dy: dx. One after the other, since windows overlap. */
static tw_status NAME(conv_input)(const twi_run *r)
{
    const twi_volume *v = r->state;
    const REAL *w = r->inputs[1], *dy = r->inputs[2];
    REAL *dx = r->outputs[0];
    int64_t outs = product(v->out), ins = product(v->in);
    int64_t channels = r->input_operands[1].shape.dims[3], filters = r->input_operands[1].shape.dims[4];
    bool idle = r->input_operands[1].elements == 0 || r->input_operands[2].elements == 0;
    int64_t places = idle ? 0 : r->output_operands[0].shape.dims[0] * outs;
    twi_clear(dx, sizeof *dx * (size_t)r->output_operands[0].elements);
    for (int64_t i = 0; i < places; i++)
        for (walk at = walk_window(v, i % outs); next_tap(&at);) {
            REAL *pixel = dx + (i / outs * ins + at.place) * channels;
            for (int64_t c = 0; c < channels; c++) {
                double sum = 0;
                for (int64_t f = 0; f < filters; f++)
                    sum += (double)dy[i * filters + f] * (double)w[(at.tap * channels + c) * filters + f];
                pixel[c] += (REAL)sum;
            }
        }
    return TW_OK;
}

/* x, sizes, dy: dw */
static tw_status NAME(conv_filter)(const twi_run *r)
{
    const twi_volume *v = r->state;
    const REAL *x = r->inputs[0], *dy = r->inputs[2];
    REAL *dw = r->outputs[0];
    int64_t outs = product(v->out), ins = product(v->in), window = product(v->size);
    int64_t channels = r->output_operands[0].shape.dims[3], filters = r->output_operands[0].shape.dims[4];
    int64_t places = r->input_operands[2].elements ? r->input_operands[0].shape.dims[0] * outs : 0;
    TWI_PARALLEL_LOOP(r)
    for (int64_t weight = 0; weight < window * channels * filters; weight++) {
        int64_t f = weight % filters, c = weight / filters % channels, k = weight / filters / channels;
        double sum = 0;
        for (int64_t i = 0; i < places; i++) {
            int64_t place = place_of(v, i % outs, k);
            if (place >= 0)
                sum += (double)x[(i / outs * ins + place) * channels + c] * (double)dy[i * filters + f];
        }
        dw[weight] = (REAL)sum;
    }
    return TW_OK;
}

/* The first place of a window counts whatever it is, NaN too, and later ones that are greater. */
static __attribute__((unused)) tw_status NAME(max_pool)(const twi_run *r)
{
    const twi_volume *v = r->state;
    int64_t outs = product(v->out), ins = product(v->in), channels = r->input_operands[0].shape.dims[4];
    int64_t places = channels ? r->output_operands[0].elements / channels : 0;
    TWI_PARALLEL_LOOP(r)
    for (int64_t i = 0; i < places; i++) {
        const REAL *volume = (const REAL *)r->inputs[0] + i / outs * ins * channels;
        REAL *y = (REAL *)r->outputs[0] + i * channels;
        walk w = walk_window(v, i % outs);
        if (next_tap(&w))
            memcpy(y, volume + w.place * channels, sizeof *y * (size_t)channels);
        else
            twi_clear(y, sizeof *y * (size_t)channels);
        while (next_tap(&w)) {
            const REAL *pixel = volume + w.place * channels;
            TWI_VECTOR_LOOP
            for (int64_t c = 0; c < channels; c++)
                y[c] = pixel[c] > y[c] ? pixel[c] : y[c];
        }
    }
    return TW_OK;
}

/* x, y, dy: dx. Of equals each gets all of the gradient, as in TensorFlow. Windows overlap, so a job is a block of
 * channels of one volume. */
static __attribute__((unused)) tw_status NAME(max_pool_grad)(const twi_run *r)
{
    const twi_volume *v = r->state;
    int64_t outs = product(v->out), ins = product(v->in), channels = r->input_operands[0].shape.dims[4];
    int64_t volumes = r->input_operands[2].elements ? r->input_operands[0].shape.dims[0] : 0;
    twi_clear(r->outputs[0], r->output_operands[0].bytes);
    TWI_PARALLEL_LOOP(r)
    for (int64_t job = 0; job < volumes * blocks_of(channels); job++) {
        int64_t n = job / blocks_of(channels), first = job % blocks_of(channels) * BLOCK;
        int64_t count = in_block(channels, first);
        for (int64_t o = 0; o < outs; o++) {
            const REAL *y = (const REAL *)r->inputs[1] + (n * outs + o) * channels + first;
            const REAL *dy = (const REAL *)r->inputs[2] + (n * outs + o) * channels + first;
            for (walk w = walk_window(v, o); next_tap(&w);) {
                const REAL *x = (const REAL *)r->inputs[0] + (n * ins + w.place) * channels + first;
                REAL *dx = (REAL *)r->outputs[0] + (n * ins + w.place) * channels + first;
                TWI_VECTOR_LOOP
                for (int64_t c = 0; c < count; c++)
                    dx[c] = x[c] == y[c] ? dx[c] + dy[c] : dx[c];
            }
        }
    }
    return TW_OK;
}

/* x, y, dx: dy, for each window what dx has where x is greatest, the first of equals */
static __attribute__((unused)) tw_status NAME(max_pool_grad_grad)(const twi_run *r)
{
    const twi_volume *v = r->state;
    int64_t outs = product(v->out), ins = product(v->in), channels = r->input_operands[0].shape.dims[4];
    int64_t places = channels ? r->output_operands[0].elements / channels : 0;
    TWI_PARALLEL_LOOP(r)
    for (int64_t job = 0; job < places * blocks_of(channels); job++) {
        int64_t i = job / blocks_of(channels), first = job % blocks_of(channels) * BLOCK;
        int64_t count = in_block(channels, first), volume = i / outs * ins * channels + first;
        const REAL *x = (const REAL *)r->inputs[0] + volume, *dx = (const REAL *)r->inputs[2] + volume;
        REAL most[BLOCK], *dy = (REAL *)r->outputs[0] + i * channels + first;
        bool found = false;
        memset(dy, 0, sizeof *dy * (size_t)count);
        for (walk w = walk_window(v, i % outs); next_tap(&w); found = true)
            for (int64_t c = 0, at = w.place * channels; c < count; c++, at++)
                if (!found || x[at] > most[c]) {
                    most[c] = x[at];
                    dy[c] = dx[at];
                }
    }
    return TW_OK;
}

static tw_status NAME(avg_pool)(const twi_run *r)
{
    const twi_volume *v = r->state;
    int64_t outs = product(v->out), ins = product(v->in), channels = r->input_operands[0].shape.dims[4];
    int64_t places = channels ? r->output_operands[0].elements / channels : 0;
    TWI_PARALLEL_LOOP(r)
    for (int64_t job = 0; job < places * blocks_of(channels); job++) {
        int64_t i = job / blocks_of(channels), first = job % blocks_of(channels) * BLOCK;
        int64_t count = in_block(channels, first);
        const REAL *volume = (const REAL *)r->inputs[0] + i / outs * ins * channels + first;
        double sums[BLOCK] = {0};
        walk w = walk_window(v, i % outs);
        double pixels = (double)w.left;
        while (next_tap(&w))
            TWI_VECTOR_LOOP
            for (int64_t c = 0; c < count; c++)
                sums[c] += (double)volume[w.place * channels + c];
        for (int64_t c = 0; c < count; c++)
            ((REAL *)r->outputs[0])[i * channels + first + c] = (REAL)(sums[c] / pixels);
    }
    return TW_OK;
}

/* shape of x, dy: dx; jobs are as those of max_pool_grad */
static tw_status NAME(avg_pool_grad)(const twi_run *r)
{
    const twi_volume *v = r->state;
    int64_t outs = product(v->out), ins = product(v->in), channels = r->output_operands[0].shape.dims[4];
    int64_t volumes = r->input_operands[1].elements ? r->output_operands[0].shape.dims[0] : 0;
    twi_clear(r->outputs[0], r->output_operands[0].bytes);
    TWI_PARALLEL_LOOP(r)
    for (int64_t job = 0; job < volumes * blocks_of(channels); job++) {
        int64_t n = job / blocks_of(channels), first = job % blocks_of(channels) * BLOCK;
        int64_t count = in_block(channels, first);
        for (int64_t o = 0; o < outs; o++) {
            const REAL *dy = (const REAL *)r->inputs[1] + (n * outs + o) * channels + first;
            walk w = walk_window(v, o);
            REAL pixels = (REAL)w.left, share[BLOCK];
            for (int64_t c = 0; c < count; c++)
                share[c] = dy[c] / pixels;
            while (next_tap(&w)) {
                REAL *dx = (REAL *)r->outputs[0] + (n * ins + w.place) * channels + first;
                TWI_VECTOR_LOOP
                for (int64_t c = 0; c < count; c++)
                    dx[c] += share[c];
            }
        }
    }
    return TW_OK;
}

/* x [N,in,C], w [k,C]: y [N,out,C] */
static tw_status NAME(dilation)(const twi_run *r)
{
    const twi_volume *v = r->state;
    int64_t outs = product(v->out), ins = product(v->in), channels = r->input_operands[1].shape.dims[2];
    int64_t places = channels ? r->output_operands[0].elements / channels : 0;
    TWI_PARALLEL_LOOP(r)
    for (int64_t i = 0; i < places; i++) {
        REAL *y = (REAL *)r->outputs[0] + i * channels;
        walk at = walk_window(v, i % outs);
        twi_clear(y, sizeof *y * (size_t)channels);
        for (bool first = true; next_tap(&at); first = false) {
            const REAL *x = (const REAL *)r->inputs[0] + (i / outs * ins + at.place) * channels;
            const REAL *w = (const REAL *)r->inputs[1] + at.tap * channels;
            for (int64_t c = 0; c < channels && first; c++)
                y[c] = x[c] + w[c];
            TWI_VECTOR_LOOP
            for (int64_t c = 0; c < channels; c++) {
                REAL sum = x[c] + w[c], most = y[c];
                y[c] = sum > most ? sum : most;
            }
        }
    }
    return TW_OK;
}

/* Of each of `count` channels from `first` on the first place of those, in the input or in the filter, that make the
 * largest sum under the window of output place i; false: the window has no pixel. */
static inline bool NAME(find_largest)(const twi_run *r, bool in_input, int64_t i, int64_t first, int64_t count,
                                      int64_t where[BLOCK])
{
    const twi_volume *v = r->state;
    int64_t outs = product(v->out), ins = product(v->in), channels = r->input_operands[1].shape.dims[2];
    REAL most[BLOCK];
    bool found = false;
    for (walk at = walk_window(v, i % outs); next_tap(&at); found = true) {
        int64_t pixel = (i / outs * ins + at.place) * channels + first, tap = at.tap * channels + first;
        for (int64_t c = 0; c < count; c++) {
            REAL sum = ((const REAL *)r->inputs[0])[pixel + c] + ((const REAL *)r->inputs[1])[tap + c];
            if (found && !(sum > most[c]))
                continue;
            most[c] = sum;
            where[c] = (in_input ? pixel : tap) + c;
        }
    }
    return found;
}

/* x, w, dy: what flows in goes to the pixel, or to the tap, that made the largest sum. A job is a block of channels. */
static tw_status NAME(dilation_grad)(const twi_run *r, bool to_input)
{
    const REAL *dy = r->inputs[2];
    REAL *out = r->outputs[0];
    int64_t channels = r->input_operands[1].shape.dims[2];
    int64_t places = channels ? r->input_operands[2].elements / channels : 0;
    twi_clear(out, sizeof *out * (size_t)r->output_operands[0].elements);
    TWI_PARALLEL_LOOP(r)
    for (int64_t block = 0; block < blocks_of(channels); block++) {
        int64_t first = block * BLOCK, count = in_block(channels, first), where[BLOCK];
        for (int64_t i = 0; i < places; i++) {
            bool found = NAME(find_largest)(r, to_input, i, first, count, where);
            for (int64_t c = 0; c < count && found; c++)
                out[where[c]] += dy[i * channels + first + c];
        }
    }
    return TW_OK;
}

static tw_status NAME(dilation_input)(const twi_run *r)
{
    return NAME(dilation_grad)(r, true);
}

static tw_status NAME(dilation_filter)(const twi_run *r)
{
    return NAME(dilation_grad)(r, false);
}
