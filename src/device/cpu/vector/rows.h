/* rows.h - the inner loops of pooling and local response normalization over a row of pixels, images NHWC.
 *
 * A pixel is C neighbouring numbers. Everything is inlined with constant `form` and, where it pays, constant sizes. */
#ifndef TWI_ROWS_H
#define TWI_ROWS_H

#include "device/cpu/vector/vector.h"

#include <math.h>

/* ---- pooling ----------------------------------------------------------------------------------------------- */

/* The cells [first, last) of a window that lie inside of a side. */
static inline TWI_INLINE void twi_cells_inside(int64_t start, int64_t size, int64_t side, int64_t *first, int64_t *last)
{
    *first = start < 0 ? -start : 0;
    *last = start + size > side ? side - start : size;
}

/* What is wanted of a window: the largest of its cells, and which it is. */
enum { TWI_MAXIMUM = 1, TWI_ARGMAX = 2 };

static inline TWI_INLINE void twi_max_cell(twi_form from, twi_form to, const twi_pool *p, const void *image, int64_t y,
                                           int64_t x, int64_t ky0, int64_t ky1, int64_t kx0, int64_t kx1, int64_t c,
                                           twi_lanes lanes, int wanted, void *pooled, uint8_t *argmax, int64_t at)
{
    twi_floats best = twi_load_some(from, image, ((y + ky0) * p->width + x + kx0) * p->channels + c, lanes);
    twi_ints where = (twi_ints){0} + (int32_t)(ky0 * p->size[1] + kx0);
    for (int64_t ky = ky0; ky < ky1; ky++)
        for (int64_t kx = kx0; kx < kx1; kx++) {
            twi_floats v = twi_load_some(from, image, ((y + ky) * p->width + x + kx) * p->channels + c, lanes);
            twi_ints larger = v > best;
            best = twi_choose(larger, v, best);
            if (wanted & TWI_ARGMAX)
                where = (larger & (int32_t)(ky * p->size[1] + kx)) | (~larger & where);
        }
    if (wanted & TWI_MAXIMUM)
        twi_store_some(to, pooled, at + c, best, lanes);
    if (wanted & TWI_ARGMAX) {
        twi_bytes bytes = twi_bytes_of_ints(where);
        memcpy(argmax + at + c, &bytes, (size_t)lanes.count);
    }
}

/* Row oy of one image's maxima, and for each the number ky * size + kx of the first cell that holds it, as they are
 * wanted. `pooled` and `argmax` are rows of out_width pixels. */
static inline TWI_INLINE void twi_max_row(twi_form from, twi_form to, const twi_pool *p, const void *image, int64_t oy,
                                          int wanted, void *pooled, uint8_t *argmax)
{
    int64_t y = oy * p->stride[0] - p->before[0], ky0, ky1, kx0, kx1, channels = p->channels;
    twi_cells_inside(y, p->size[0], p->height, &ky0, &ky1);
    for (int64_t ox = 0; ox < p->out_width; ox++) {
        int64_t x = ox * p->stride[1] - p->before[1], c = 0, at = ox * channels;
        twi_cells_inside(x, p->size[1], p->width, &kx0, &kx1);
        for (; c + TWI_LANES <= channels; c += TWI_LANES)
            twi_max_cell(from, to, p, image, y, x, ky0, ky1, kx0, kx1, c, TWI_ALL, wanted, pooled, argmax,
                         at);
        if (c < channels)
            twi_max_cell(from, to, p, image, y, x, ky0, ky1, kx0, kx1, c, TWI_FIRST(channels - c), wanted, pooled,
                         argmax, at);
    }
}

/* Windows [first, last) of a side that cover cell y. */
static inline TWI_INLINE void twi_windows_over(int64_t y, int64_t before, int64_t size, int64_t stride, int64_t count,
                                               int64_t *first, int64_t *last)
{
    int64_t start = y + before - size + 1; /* the first window begins here or later */
    *first = start <= 0 ? 0 : (start + stride - 1) / stride;
    *last = (y + before) / stride + 1;
    if (*last > count)
        *last = count;
}

/* A window over a pixel: where its gradient and argmax begin, and the number the pixel has in it. */
typedef struct twi_cover {
    int64_t at;
    int32_t cell;
} twi_cover;

static inline TWI_INLINE void twi_spread_some(twi_form from, twi_form to, const void *gradient, const uint8_t *argmax,
                                              const twi_cover *covers, int num_covers, int64_t c, twi_lanes lanes,
                                              void *pixel)
{
    twi_floats sum = {0};
    for (int i = 0; i < num_covers; i++) {
        twi_bytes bytes = {0};
        memcpy(&bytes, argmax + covers[i].at + c, (size_t)lanes.count);
        twi_ints here = twi_ints_of_bytes(bytes) == covers[i].cell;
        sum += twi_pass(here, twi_load_some(from, gradient, covers[i].at + c, lanes));
    }
    twi_store_some(to, pixel, c, sum, lanes);
}

static inline TWI_INLINE void twi_spread_pixel(twi_form from, twi_form to, int64_t channels, const void *gradient,
                                               const uint8_t *argmax, const twi_cover *covers, int num_covers,
                                               void *pixel)
{
    int64_t c = 0;
    for (; c + TWI_LANES <= channels; c += TWI_LANES)
        twi_spread_some(from, to, gradient, argmax, covers, num_covers, c, TWI_ALL, pixel);
    if (c < channels)
        twi_spread_some(from, to, gradient, argmax, covers, num_covers, c, TWI_FIRST(channels - c), pixel);
}

/* Row y of the gradient of one image: each cell collects from the windows whose maximum it was. */
static inline TWI_INLINE void twi_spread_row(twi_form from, twi_form to, const twi_pool *p, const void *gradient,
                                             const uint8_t *argmax, int64_t y, void *row)
{
    int64_t oy0, oy1, ox0, ox1, channels = p->channels;
    twi_windows_over(y, p->before[0], p->size[0], p->stride[0], p->out_height, &oy0, &oy1);
    for (int64_t x = 0; x < p->width; x++) {
        twi_cover covers[TWI_MOST_CELLS];
        int n = 0;
        twi_windows_over(x, p->before[1], p->size[1], p->stride[1], p->out_width, &ox0, &ox1);
        for (int64_t oy = oy0; oy < oy1; oy++)
            for (int64_t ox = ox0; ox < ox1; ox++) {
                int64_t ky = y + p->before[0] - oy * p->stride[0], kx = x + p->before[1] - ox * p->stride[1];
                covers[n++] = (twi_cover){(oy * p->out_width + ox) * channels, (int32_t)(ky * p->size[1] + kx)};
            }
        void *pixel = (char *)row + (size_t)(x * channels) * twi_form_bytes(to);
        switch (n) { /* the same thing, with the small numbers known */
        case 1:
            twi_spread_pixel(from, to, channels, gradient, argmax, covers, 1, pixel);
            break;
        case 2:
            twi_spread_pixel(from, to, channels, gradient, argmax, covers, 2, pixel);
            break;
        case 4:
            twi_spread_pixel(from, to, channels, gradient, argmax, covers, 4, pixel);
            break;
        default:
            twi_spread_pixel(from, to, channels, gradient, argmax, covers, n, pixel);
        }
    }
}

/* ---- local response normalization -------------------------------------------------------------------------- */

/* Sums over the windows that are centred on the sixteen channels from c on. */
static inline TWI_INLINE twi_floats twi_lrn_window(const float *pixel, int64_t c, int64_t radius)
{
    c += twi_lrn_margin(radius);
    twi_floats sum = twi_load(TWI_FLOATS, pixel, c - radius);
    for (int64_t j = 1 - radius; j <= radius; j++)
        sum += twi_load(TWI_FLOATS, pixel, c + j);
    return sum;
}

/* d^-beta. The exponents in use need roots only. */
static inline TWI_INLINE twi_floats twi_lrn_power(twi_floats d, float beta)
{
    if (beta == 0.75f) {
        twi_floats root = twi_rsqrt(d);
        return root * root * twi_rsqrt(root); /* d^-1/2 * d^-1/4, the latter as sqrt(root) */
    }
    if (beta == 0.5f)
        return twi_rsqrt(d);
    if (beta == 1.f)
        return 1.f / d;
    for (int i = 0; i < TWI_LANES; i++)
        d[i] = powf(d[i], -beta);
    return d;
}

/* Channels, rounded up to whole vectors. */
static inline TWI_INLINE int64_t twi_lrn_channels(const twi_lrn *l)
{
    return (l->channels + TWI_LANES - 1) / TWI_LANES * TWI_LANES;
}

static inline TWI_INLINE twi_floats twi_lrn_load(twi_form form, const twi_lrn *l, const void *x, int64_t pixel,
                                                 int64_t c)
{
    int64_t left = l->channels - c, at = pixel * l->channels + c;
    return left >= TWI_LANES ? twi_load(form, x, at) : twi_load_some(form, x, at, TWI_FIRST(left));
}

static inline TWI_INLINE void twi_lrn_store(twi_form form, const twi_lrn *l, void *y, int64_t pixel, int64_t c,
                                            twi_floats v)
{
    int64_t left = l->channels - c, at = pixel * l->channels + c;
    if (left >= TWI_LANES)
        twi_store(form, y, at, v);
    else
        twi_store_some(form, y, at, v, TWI_FIRST(left));
}

static inline TWI_INLINE void twi_lrn_some(twi_form form, twi_form out, const twi_lrn *l, int64_t radius, float beta,
                                           int64_t pixels, const void *x, void *y, float *squares)
{
    int64_t pitch = twi_lrn_pitch(l), channels = twi_lrn_channels(l), margin = twi_lrn_margin(radius);
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t c = 0; c < channels; c += TWI_LANES) {
            twi_floats v = twi_lrn_load(form, l, x, i, c);
            twi_store(TWI_FLOATS, squares, i * pitch + margin + c, v * v);
        }
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t c = 0; c < channels; c += TWI_LANES) {
            twi_floats d = l->bias + l->alpha * twi_lrn_window(squares + i * pitch, c, radius);
            twi_lrn_store(out, l, y, i, c, twi_lrn_load(form, l, x, i, c) * twi_lrn_power(d, beta));
        }
}

/* y = normalized x, up to TWI_LRN_PIXELS pixels of it. */
static inline TWI_INLINE void twi_lrn_pixels(twi_form form, twi_form out, const twi_lrn *l, int64_t pixels,
                                             const void *x, void *y, float *scratch)
{
    if (l->radius == 4 && l->beta == 0.75f)
        twi_lrn_some(form, out, l, 4, 0.75f, pixels, x, y, scratch);
    else
        twi_lrn_some(form, out, l, l->radius, l->beta, pixels, x, y, scratch);
}

static inline TWI_INLINE void twi_lrn_gradient_some(twi_form in, twi_form form, twi_form out, const twi_lrn *l,
                                                    int64_t radius, float beta, bool relu, int64_t pixels,
                                                    const void *dy, const void *x, const void *y, void *dx,
                                                    float *squares)
{
    int64_t pitch = twi_lrn_pitch(l), channels = twi_lrn_channels(l), margin = twi_lrn_margin(radius);
    float *shares = squares + TWI_LRN_PIXELS * pitch; /* dy * y / d */
    float *direct = shares + TWI_LRN_PIXELS * pitch;  /* dy * d^-beta */
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t c = 0; c < channels; c += TWI_LANES) {
            twi_floats v = twi_lrn_load(form, l, x, i, c);
            twi_store(TWI_FLOATS, squares, i * pitch + margin + c, v * v);
        }
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t c = 0; c < channels; c += TWI_LANES) {
            twi_floats d = l->bias + l->alpha * twi_lrn_window(squares + i * pitch, c, radius);
            twi_floats g = twi_lrn_load(in, l, dy, i, c) * twi_lrn_power(d, beta);
            twi_store(TWI_FLOATS, direct, i * channels + c, g);
            twi_floats share = y ? twi_lrn_load(in, l, dy, i, c) * twi_lrn_load(form, l, y, i, c)
                                 : g * twi_lrn_load(form, l, x, i, c);
            twi_store(TWI_FLOATS, shares, i * pitch + margin + c, share / d);
        }
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t c = 0; c < channels; c += TWI_LANES) {
            twi_floats v = twi_lrn_load(form, l, x, i, c);
            twi_floats g = twi_load(TWI_FLOATS, direct, i * channels + c) -
                           2 * l->alpha * beta * v * twi_lrn_window(shares + i * pitch, c, radius);
            if (relu)
                g = twi_pass(v > 0, g);
            twi_lrn_store(out, l, dx, i, c, g);
        }
}

/* dx = gradient of the normalization where its output's gradient is dy and its output y (NULL: what x gives); with
 * `relu` only where x > 0, which is the gradient before a ReLU that made x. */
static inline TWI_INLINE void twi_lrn_gradient_pixels(twi_form in, twi_form form, twi_form out, const twi_lrn *l,
                                                      bool relu, int64_t pixels, const void *dy, const void *x,
                                                      const void *y, void *dx, float *scratch)
{
    if (l->radius == 4 && l->beta == 0.75f)
        twi_lrn_gradient_some(in, form, out, l, 4, 0.75f, relu, pixels, dy, x, y, dx, scratch);
    else
        twi_lrn_gradient_some(in, form, out, l, l->radius, l->beta, relu, pixels, dy, x, y, dx, scratch);
}

#endif
