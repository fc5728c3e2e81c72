/* volume.inl - convolutions and pools of volumes for one type; see volume.c. Sums are kept in double and made in a
 * fixed order; the team shares what is written. */

/* x [N,in,C], w [k,C,K]: y [N,out,K] */
static tw_status NAME(conv)(const twi_run *r)
{
    const twi_volume *v = r->state;
    const REAL *x = r->inputs[0], *w = r->inputs[1];
    REAL *y = r->outputs[0];
    int64_t outs = product(v->out, 3), ins = product(v->in, 3), window = product(v->size, 3);
    int64_t channels = r->input_operands[1].shape.dims[3], filters = r->input_operands[1].shape.dims[4];
    int64_t places = r->output_operands[0].elements ? r->input_operands[0].shape.dims[0] * outs : 0;
    TWI_PARALLEL_LOOP(r)
    for (int64_t i = 0; i < places; i++)
        for (int64_t f = 0; f < filters; f++) {
            double sum = 0;
            for (int64_t k = 0; k < window; k++) {
                int64_t place = place_of(v, i % outs, k);
                const REAL *pixel = x + (i / outs * ins + place) * channels;
                for (int64_t c = 0; c < channels && place >= 0; c++)
                    sum += (double)pixel[c] * (double)w[(k * channels + c) * filters + f];
            }
            y[i * filters + f] = (REAL)sum;
        }
    return TW_OK;
}

/* sizes, w, dy: dx. One after the other, since windows overlap. */
static tw_status NAME(conv_input)(const twi_run *r)
{
    const twi_volume *v = r->state;
    const REAL *w = r->inputs[1], *dy = r->inputs[2];
    REAL *dx = r->outputs[0];
    int64_t outs = product(v->out, 3), ins = product(v->in, 3), window = product(v->size, 3);
    int64_t channels = r->input_operands[1].shape.dims[3], filters = r->input_operands[1].shape.dims[4];
    bool idle = r->input_operands[1].elements == 0 || r->input_operands[2].elements == 0;
    int64_t places = idle ? 0 : r->output_operands[0].shape.dims[0] * outs;
    twi_clear(dx, sizeof *dx * (size_t)r->output_operands[0].elements);
    for (int64_t i = 0; i < places; i++)
        for (int64_t k = 0; k < window; k++) {
            int64_t place = place_of(v, i % outs, k);
            REAL *pixel = dx + (i / outs * ins + place) * channels;
            for (int64_t c = 0; c < channels && place >= 0; c++) {
                double sum = 0;
                for (int64_t f = 0; f < filters; f++)
                    sum += (double)dy[i * filters + f] * (double)w[(k * channels + c) * filters + f];
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
    int64_t outs = product(v->out, 3), ins = product(v->in, 3), window = product(v->size, 3);
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

/* Which pixel of a window has the greatest value of channel c, the first of equals; -1: there is none. */
static __attribute__((unused)) int64_t NAME(greatest)(const twi_volume *v, const REAL *volume, int64_t channels,
                                                      int64_t o, int64_t c)
{
    int64_t window = product(v->size, 3), best = -1;
    for (int64_t k = 0; k < window; k++) {
        int64_t place = place_of(v, o, k);
        if (place >= 0 && (best < 0 || volume[place * channels + c] > volume[best * channels + c]))
            best = place;
    }
    return best;
}

/* The first place of a window counts whatever it is, NaN too, and later ones that are greater. */
static __attribute__((unused)) tw_status NAME(max_pool)(const twi_run *r)
{
    const twi_volume *v = r->state;
    int64_t outs = product(v->out, 3), ins = product(v->in, 3), channels = r->input_operands[0].shape.dims[4];
    int64_t places = channels ? r->output_operands[0].elements / channels : 0;
    TWI_PARALLEL_LOOP(r)
    for (int64_t i = 0; i < places; i++) {
        const REAL *volume = (const REAL *)r->inputs[0] + i / outs * ins * channels;
        REAL *y = (REAL *)r->outputs[0] + i * channels;
        bool found = false;
        twi_clear(y, sizeof *y * (size_t)channels);
        for (int64_t k = 0; k < product(v->size, 3); k++) {
            int64_t place = place_of(v, i % outs, k);
            const REAL *pixel = volume + place * channels;
            if (place >= 0 && !found)
                memcpy(y, pixel, sizeof *y * (size_t)channels);
            for (int64_t c = 0; c < channels && place >= 0 && found; c++)
                y[c] = pixel[c] > y[c] ? pixel[c] : y[c];
            found = found || place >= 0;
        }
    }
    return TW_OK;
}

/* x, y, dy: dx. Of equals each gets all of the gradient, as in TensorFlow. */
static __attribute__((unused)) tw_status NAME(max_pool_grad)(const twi_run *r)
{
    const twi_volume *v = r->state;
    int64_t outs = product(v->out, 3), ins = product(v->in, 3), channels = r->input_operands[0].shape.dims[4];
    const REAL *x = r->inputs[0], *y = r->inputs[1], *dy = r->inputs[2];
    REAL *dx = r->outputs[0];
    int64_t places = channels ? r->input_operands[2].elements / channels : 0;
    twi_clear(dx, sizeof *dx * (size_t)r->output_operands[0].elements);
    for (int64_t i = 0; i < places; i++, y += channels, dy += channels)
        for (int64_t k = 0; k < product(v->size, 3); k++) {
            int64_t place = place_of(v, i % outs, k), at = (i / outs * ins + place) * channels;
            for (int64_t c = 0; c < channels && place >= 0; c++)
                dx[at + c] = x[at + c] == y[c] ? dx[at + c] + dy[c] : dx[at + c];
        }
    return TW_OK;
}

/* x, y, dx: dy, for each window what dx has where x is greatest */
static __attribute__((unused)) tw_status NAME(max_pool_grad_grad)(const twi_run *r)
{
    const twi_volume *v = r->state;
    int64_t outs = product(v->out, 3), ins = product(v->in, 3), channels = r->input_operands[0].shape.dims[4];
    TWI_PARALLEL_LOOP(r)
    for (int64_t i = 0; i < r->output_operands[0].elements; i++) {
        int64_t first = i / channels / outs * ins * channels;
        int64_t best =
            NAME(greatest)(v, (const REAL *)r->inputs[0] + first, channels, i / channels % outs, i % channels);
        ((REAL *)r->outputs[0])[i] =
            best < 0 ? 0 : ((const REAL *)r->inputs[2])[first + best * channels + i % channels];
    }
    return TW_OK;
}

/* How many pixels a window has that are not padding. */
static int64_t NAME(pixels)(const twi_volume *v, int64_t o)
{
    int64_t count = 0;
    for (int64_t k = 0; k < product(v->size, 3); k++)
        count += place_of(v, o, k) >= 0;
    return count;
}

static tw_status NAME(avg_pool)(const twi_run *r)
{
    enum { BLOCK = 64 };
    const twi_volume *v = r->state;
    int64_t outs = product(v->out, 3), ins = product(v->in, 3), channels = r->input_operands[0].shape.dims[4];
    int64_t places = channels ? r->output_operands[0].elements / channels : 0;
    TWI_PARALLEL_LOOP(r)
    for (int64_t i = 0; i < places; i++) {
        double pixels = (double)NAME(pixels)(v, i % outs);
        for (int64_t first = 0; first < channels; first += BLOCK) {
            const REAL *volume = (const REAL *)r->inputs[0] + i / outs * ins * channels + first;
            int64_t count = channels - first < BLOCK ? channels - first : BLOCK;
            double sums[BLOCK] = {0};
            for (int64_t k = 0; k < product(v->size, 3); k++) {
                int64_t place = place_of(v, i % outs, k);
                for (int64_t c = 0; c < count && place >= 0; c++)
                    sums[c] += (double)volume[place * channels + c];
            }
            for (int64_t c = 0; c < count; c++)
                ((REAL *)r->outputs[0])[i * channels + first + c] = (REAL)(sums[c] / pixels);
        }
    }
    return TW_OK;
}

/* shape of x, dy: dx */
static tw_status NAME(avg_pool_grad)(const twi_run *r)
{
    const twi_volume *v = r->state;
    int64_t outs = product(v->out, 3), ins = product(v->in, 3), channels = r->output_operands[0].shape.dims[4];
    const REAL *dy = r->inputs[1];
    REAL *dx = r->outputs[0];
    int64_t places = channels ? r->input_operands[1].elements / channels : 0;
    twi_clear(dx, sizeof *dx * (size_t)r->output_operands[0].elements);
    for (int64_t i = 0; i < places; i++, dy += channels) {
        REAL pixels = (REAL)NAME(pixels)(v, i % outs);
        for (int64_t k = 0; k < product(v->size, 3); k++) {
            int64_t place = place_of(v, i % outs, k), at = (i / outs * ins + place) * channels;
            for (int64_t c = 0; c < channels && place >= 0; c++)
                dx[at + c] += dy[c] / pixels;
        }
    }
    return TW_OK;
}

/* Under the window of output place i, which tap gives channel c its largest sum with a pixel, the first one, and where that
 * pixel is; false: the window has no pixel. */
static inline bool NAME(find_tap)(const twi_run *r, int64_t i, int64_t c, int64_t *tap, int64_t *pixel, REAL *most)
{
    const twi_volume *v = r->state;
    const REAL *x = r->inputs[0], *w = r->inputs[1];
    int64_t outs = product(v->out, 2), ins = product(v->in, 2), window = product(v->size, 2);
    int64_t channels = r->input_operands[1].shape.dims[2];
    bool found = false;
    for (int64_t k = 0; k < window; k++) {
        int64_t place = place_of(v, i % outs, k), at = (i / outs * ins + place) * channels + c;
        if (place < 0)
            continue;
        REAL sum = x[at] + w[k * channels + c];
        if (found && !(sum > *most))
            continue;
        *tap = k * channels + c;
        *pixel = at;
        *most = sum;
        found = true;
    }
    return found;
}

/* x [N,in,C], w [k,C]: y [N,out,C] */
static tw_status NAME(dilation)(const twi_run *r)
{
    int64_t channels = r->input_operands[1].shape.dims[2], tap = 0, pixel = 0;
    for (int64_t i = 0; i < r->output_operands[0].elements; i++) {
        REAL most = 0;
        NAME(find_tap)(r, i / channels, i % channels, &tap, &pixel, &most);
        ((REAL *)r->outputs[0])[i] = most;
    }
    return TW_OK;
}

/* x, w, dy: what flows in goes to the pixel, or to the tap, that made the largest sum. */
static tw_status NAME(dilation_grad)(const twi_run *r, bool to_pixel)
{
    const REAL *dy = r->inputs[2];
    REAL *out = r->outputs[0], most;
    int64_t channels = r->input_operands[1].shape.dims[2], tap = 0, pixel = 0;
    twi_clear(out, sizeof *out * (size_t)r->output_operands[0].elements);
    for (int64_t i = 0; i < r->input_operands[2].elements; i++)
        if (NAME(find_tap)(r, i / channels, i % channels, &tap, &pixel, &most))
            out[to_pixel ? pixel : tap] += dy[i];
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
