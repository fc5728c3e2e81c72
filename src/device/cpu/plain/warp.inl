/* warp.inl - images through a projective transform, for one type; see warp.c. */

/* The image's value there; `fill` outside. */
static float NAME(value_at)(const REAL *image, const int64_t *dims, float y, float x, int64_t channel, float fill)
{
    if (!(y >= 0 && y < (float)dims[1] && x >= 0 && x < (float)dims[2]))
        return fill;
    return (float)image[((int64_t)y * dims[2] + (int64_t)x) * dims[3] + channel];
}

static float NAME(between)(const REAL *image, const int64_t *dims, float y, float x, int64_t channel, float fill)
{
    float top = floorf(y), left = floorf(x), bottom = top + 1, right = left + 1;
    float upper = (right - x) * NAME(value_at)(image, dims, top, left, channel, fill) +
                  (x - left) * NAME(value_at)(image, dims, top, right, channel, fill);
    float lower = (right - x) * NAME(value_at)(image, dims, bottom, left, channel, fill) +
                  (x - left) * NAME(value_at)(image, dims, bottom, right, channel, fill);
    return (bottom - y) * upper + (y - top) * lower;
}

static __attribute__((unused)) tw_status NAME(warped)(const twi_run *r)
{
    const warp *s = r->state;
    const int64_t *in = r->input_operands[0].shape.dims, *out = r->output_operands[0].shape.dims;
    int64_t rows = r->input_operands[1].shape.dims[0];
    const float fill = r->num_inputs > 3 ? (float)(REAL)*(const float *)r->inputs[3] : 0;
    if (rows != 1 && rows != in[0])
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld transforms for %lld images", r->node,
                        (long long)rows, (long long)in[0]);
    int64_t pixels = out[3] ? out[0] * out[1] * out[2] : 0;
    TWI_PARALLEL_LOOP(r)
    for (int64_t i = 0; i < pixels; i++) {
        const float x = (float)(i % out[2]), y = (float)(i / out[2] % out[1]);
        const float *t = (const float *)r->inputs[1] + (rows == 1 ? 0 : 8 * (i / (out[1] * out[2])));
        const REAL *image = (const REAL *)r->inputs[0] + i / (out[1] * out[2]) * in[1] * in[2] * in[3];
        REAL *to = (REAL *)r->outputs[0] + i * out[3];
        float depth = t[6] * x + t[7] * y + 1;
        float from_x = inside(s->outside, (t[0] * x + t[1] * y + t[2]) / depth, in[2]);
        float from_y = inside(s->outside, (t[3] * x + t[4] * y + t[5]) / depth, in[1]);
        for (int64_t c = 0; c < out[3]; c++)
            to[c] = depth == 0    ? (REAL)fill
                    : s->bilinear ? (REAL)NAME(between)(image, in, from_y, from_x, c, fill)
                                  : (REAL)NAME(value_at)(image, in, roundf(from_y), roundf(from_x), c, fill);
    }
    return TW_OK;
}
