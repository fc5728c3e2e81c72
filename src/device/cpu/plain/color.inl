/* color.inl - conversion of colours for one type; see color.c. */

static inline void NAME(hsv_of)(const REAL *rgb, REAL *hsv)
{
    REAL red = rgb[0], green = rgb[1], blue = rgb[2];
    REAL value = fmax(red, fmax(green, blue)), range = value - fmin(red, fmin(green, blue)), hue = 0;
    if (range > 0)
        hue = (red == value     ? (green - blue) / range
               : green == value ? (blue - red) / range + 2
                                : (red - green) / range + 4) / 6;
    hsv[0] = hue < 0 ? hue + 1 : hue;
    hsv[1] = value > 0 ? range / value : 0;
    hsv[2] = value;
}

static inline REAL NAME(unit)(REAL x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static inline void NAME(rgb_of)(const REAL *hsv, REAL *rgb)
{
    REAL hue = hsv[0] * 6, saturation = hsv[1], value = hsv[2];
    REAL full[3] = {NAME(unit)(fabs(hue - 3) - 1), NAME(unit)(2 - fabs(hue - 2)), NAME(unit)(2 - fabs(hue - 4))};
    for (int c = 0; c < 3; c++)
        rgb[c] = (1 - saturation + saturation * full[c]) * value;
}

/* The output's pixel `to` from the input's pixel `from`, in between perhaps changed by the number that input 1 is. */
#define EACH_PIXEL(f, pixel)                                                                                           \
    static __attribute__((unused)) tw_status NAME(f)(const twi_run *r)                                                 \
    {                                                                                                                  \
        float by = r->num_inputs > 1 ? *(const float *)r->inputs[1] : 0;                                               \
        (void)by;                                                                                                      \
        TWI_PARALLEL_LOOP(r)                                                                                           \
        for (int64_t i = 0; i < r->output_operands[0].elements; i += 3) {                                              \
            const REAL *from = (const REAL *)r->inputs[0] + i;                                                         \
            REAL *to = (REAL *)r->outputs[0] + i;                                                                      \
            pixel                                                                                                      \
        }                                                                                                              \
        return TW_OK;                                                                                                  \
    }

EACH_PIXEL(to_hsv, NAME(hsv_of)(from, to);)
EACH_PIXEL(to_rgb, NAME(rgb_of)(from, to);)
EACH_PIXEL(adjust_hue, {
    REAL hsv[3];
    NAME(hsv_of)(from, hsv);
    hsv[0] += (REAL)by;
    hsv[0] -= floor(hsv[0]);
    NAME(rgb_of)(hsv, to);
})
EACH_PIXEL(adjust_saturation, {
    REAL hsv[3];
    NAME(hsv_of)(from, hsv);
    hsv[1] = NAME(unit)(hsv[1] * (REAL)by);
    NAME(rgb_of)(hsv, to);
})
#undef EACH_PIXEL
