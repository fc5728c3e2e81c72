/* conv_direct.c - convolutions of images NHWC computed directly, on the registers of AVX2 (rows "direct"): for CPUs
 * without AVX-512, where oneDNN has no better kernels than these and makes its threads spin while they wait for each
 * other, which is slow wherever other programs run too.
 * Lives here:  Conv2D, _FusedConv2D, Conv2DBackpropInput of stride 1, Conv2DBackpropFilter, _Conv2DBackpropFilterBias.
 * Never here:  other layouts, dilations, numbers of filters that are no multiple of 16 (library/conv.c).
 *
 * Some rows of an image are copied into a band that has its padding, so that a cell of the filter is nothing but an
 * offset; a row of the filter, kw * C numbers, lies side by side there. On this band
 *
 *   forward:  6 pixels x 16 filters stay in registers while the filter passes by, in panels of 16 columns;
 *   filter:   6 rows of the filter x 16 columns stay in registers while the pixels pass by.
 *
 * The input's gradient is the forward convolution of the output's gradient with the filter flipped by 180 degrees.
 * Gradients of filters are summed over a fixed number of parts of the batch, each alone, and the parts in order. So the
 * bits do not depend on the number of threads. */
#include "base/memory.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#include <string.h>

#ifdef __x86_64__

#include <immintrin.h>

enum {
    SIDE = 6,                  /* pixels or rows of a tile */
    PANEL = 16,                /* columns of a tile: filters */
    BAND = 32 << 10,           /* bytes that a band should not exceed */
    MOST_PARTS = 16,           /* of a batch */
    MOST_PART_BYTES = 1 << 20, /* of a filter's gradient; each part has one */
    MOST_ROWS = 4096,          /* of a filter: its panel stays in the cache */
};

typedef struct direct {
    int64_t batch, height, width, channels; /* of the image that goes through the filter */
    int64_t out_height, out_width, filters;
    int64_t kh, kw, stride[2], before[2];
    int64_t rows;                           /* of the filter as a matrix: kh * kw * channels */
    int64_t block, blocks;                  /* rows of the output done together, and how often in an image */
    int64_t pitch;                          /* numbers in a row of a band */
    int64_t parts;                          /* of the batch, for the filter's gradient */
    bool flipped;                            /* the input's gradient: the filter is used backwards */
    bool relu;
    /* places in the workspace, in bytes */
    size_t band_bytes, at_bands;            /* each thread has one */
    size_t at_panels, at_parts, at_sums;
} direct;

typedef struct direct_job {
    const direct *d;
    const float *x, *filter, *bias, *dy;
    float *out;
    char *workspace;
} direct_job;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- bands ---------------------------------------------------------------------------------------------------- */

static float *band_of(const direct_job *j, int thread)
{
    return (float *)(j->workspace + j->d->at_bands + (size_t)thread * j->d->band_bytes);
}

static void copy_band(const direct *d, const float *image, int64_t first_row, int64_t out_rows, float *band)
{
    int64_t rows = (out_rows - 1) * d->stride[0] + d->kh, width = d->pitch / d->channels;
    int64_t inside = smaller(d->width, width - d->before[1]);
    for (int64_t i = 0; i < rows; i++) {
        float *to = band + i * d->pitch;
        int64_t y = first_row * d->stride[0] - d->before[0] + i;
        if (y < 0 || y >= d->height) {
            memset(to, 0, (size_t)d->pitch * sizeof *to);
            continue;
        }
        int64_t left = d->before[1] * d->channels, middle = inside * d->channels;
        memset(to, 0, (size_t)left * sizeof *to);
        memcpy(to + left, image + y * d->width * d->channels, (size_t)middle * sizeof *to);
        memset(to + left + middle, 0, (size_t)(d->pitch - left - middle) * sizeof *to);
    }
}

/* ---- tiles ---------------------------------------------------------------------------------------------------- */

#define TWI_TARGET "avx2,fma"
#include "device/cpu/vector/target.h"

/* Two vectors a row of a tile, each in a variable of its own: of arrays GCC makes memory. */
#define EACH_OF_SIDE(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define MULTIPLY(i)                                                                                                    \
    {                                                                                                                  \
        __m256 factor = _mm256_broadcast_ss(p##i + at);                                                                \
        low##i = _mm256_fmadd_ps(factor, low, low##i);                                                                 \
        high##i = _mm256_fmadd_ps(factor, high, high##i);                                                              \
    }

/* out[6][16], its rows `pitch` apart, = start[16] + the filter's panel applied to six pixels of a band. */
static void forward_tile(const direct *d, const float *const pixels[SIDE], const float *panel, const float *start,
                         float *out, int64_t pitch)
{
    __m256 low = _mm256_loadu_ps(start), high = _mm256_loadu_ps(start + 8);
#define BEGIN(i) __m256 low##i = low, high##i = high;
    EACH_OF_SIDE(BEGIN)
    int64_t run = d->kw * d->channels;
    for (int64_t y = 0; y < d->kh; y++) {
#define POINT(i) const float *p##i = pixels[i] + y * d->pitch;
        EACH_OF_SIDE(POINT)
        for (int64_t at = 0; at < run; at++, panel += PANEL) {
            low = _mm256_loadu_ps(panel);
            high = _mm256_loadu_ps(panel + 8);
            EACH_OF_SIDE(MULTIPLY)
        }
    }
    if (d->relu) { /* NaN is handed on: the second operand counts where one is NaN */
        __m256 zero = _mm256_setzero_ps();
#define RECTIFY(i) low##i = _mm256_max_ps(zero, low##i), high##i = _mm256_max_ps(zero, high##i);
        EACH_OF_SIDE(RECTIFY)
    }
#define STORE(i) _mm256_storeu_ps(out + (i) * pitch, low##i), _mm256_storeu_ps(out + (i) * pitch + 8, high##i);
    EACH_OF_SIDE(STORE)
}

/* Adds to out[6][16], its rows `pitch` apart: the products of six numbers around each pixel with its gradient. */
static void filter_tile(const direct *d, const float *const rows[SIDE], int64_t out_rows, const float *dy, float *out,
                        int64_t pitch)
{
#define LOAD(i)                                                                                                        \
    __m256 low##i = _mm256_loadu_ps(out + (i) * pitch), high##i = _mm256_loadu_ps(out + (i) * pitch + 8);              \
    const float *p##i = rows[i];
    EACH_OF_SIDE(LOAD)
    int64_t step = d->stride[1] * d->channels;
    for (int64_t y = 0; y < out_rows; y++) {
        int64_t at = y * d->stride[0] * d->pitch;
        for (int64_t x = 0; x < d->out_width; x++, at += step, dy += d->filters) {
            __m256 low = _mm256_loadu_ps(dy), high = _mm256_loadu_ps(dy + 8);
            EACH_OF_SIDE(MULTIPLY)
        }
    }
    EACH_OF_SIDE(STORE)
}

#include "device/cpu/vector/target_end.h"

/* ---- forward -------------------------------------------------------------------------------------------------- */

/* Panels first to last: [rows][16] of the filter, whose cells and channels trade places when it is flipped. */
static void pack_panels(const void *job, int64_t first, int64_t last, int thread)
{
    const direct_job *j = job;
    const direct *d = j->d;
    float *to = (float *)(j->workspace + d->at_panels) + first * d->rows * PANEL;
    int64_t cells = d->kh * d->kw, matrix = d->channels * d->filters;
    (void)thread;
    for (int64_t k = first * PANEL; k < last * PANEL; k += PANEL)
        for (int64_t cell = 0; cell < cells; cell++)
            for (int64_t c = 0; c < d->channels; c++, to += PANEL)
                if (d->flipped)
                    for (int i = 0; i < PANEL; i++)
                        to[i] = j->filter[(cells - 1 - cell) * matrix + (k + i) * d->channels + c];
                else
                    memcpy(to, j->filter + cell * matrix + c * d->filters + k, PANEL * sizeof *to);
}

static void forward_block(const direct_job *j, const float *band, int64_t out_rows, float *out)
{
    static const float zeros[PANEL];
    const direct *d = j->d;
    const float *panels = (const float *)(j->workspace + d->at_panels);
    int64_t pixels = out_rows * d->out_width;
    for (int64_t k = 0; k < d->filters; k += PANEL, panels += d->rows * PANEL)
        for (int64_t first = 0; first < pixels; first += SIDE) {
            const float *from[SIDE];
            float rest[SIDE * PANEL], *to = out + first * d->filters + k;
            int64_t count = smaller(SIDE, pixels - first);
            for (int64_t i = 0; i < SIDE; i++) { /* the last tile has the last pixel several times */
                int64_t pixel = smaller(first + i, pixels - 1), y = pixel / d->out_width, x = pixel % d->out_width;
                from[i] = band + y * d->stride[0] * d->pitch + x * d->stride[1] * d->channels;
            }
            forward_tile(d, from, panels, j->bias ? j->bias + k : zeros, count == SIDE ? to : rest,
                         count == SIDE ? d->filters : PANEL);
            for (int64_t i = 0; i < count && count < SIDE; i++)
                memcpy(to + i * d->filters, rest + i * PANEL, PANEL * sizeof *to);
        }
}

/* Blocks first to last of all images. */
static void forward(const void *job, int64_t first, int64_t last, int thread)
{
    const direct_job *j = job;
    const direct *d = j->d;
    float *band = band_of(j, thread);
    for (int64_t i = first; i < last; i++) {
        int64_t n = i / d->blocks, y = i % d->blocks * d->block, rows = smaller(d->block, d->out_height - y);
        copy_band(d, j->x + n * d->height * d->width * d->channels, y, rows, band);
        forward_block(j, band, rows, j->out + (n * d->out_height + y) * d->out_width * d->filters);
    }
}

/* ---- the filter's gradient -------------------------------------------------------------------------------------- */

static void filter_block(const direct *d, const float *band, const float *dy, int64_t out_rows, float *part)
{
    int64_t run = d->kw * d->channels;
    for (int64_t k = 0; k < d->filters; k += PANEL)
        for (int64_t first = 0; first < d->rows; first += SIDE) {
            const float *from[SIDE];
            float rest[SIDE * PANEL], *to = part + first * d->filters + k;
            int64_t count = smaller(SIDE, d->rows - first);
            for (int64_t i = 0; i < SIDE; i++) {
                int64_t row = smaller(first + i, d->rows - 1);
                from[i] = band + row / run * d->pitch + row % run;
            }
            if (count == SIDE) {
                filter_tile(d, from, out_rows, dy + k, to, d->filters);
                continue;
            }
            memset(rest, 0, sizeof rest);
            filter_tile(d, from, out_rows, dy + k, rest, PANEL);
            for (int64_t i = 0; i < count * PANEL; i++)
                to[i / PANEL * d->filters + i % PANEL] += rest[i];
        }
}

/* Parts first to last of the batch. */
static void filter_parts(const void *job, int64_t first, int64_t last, int thread)
{
    const direct_job *j = job;
    const direct *d = j->d;
    float *band = band_of(j, thread);
    for (int64_t i = first; i < last; i++) {
        float *part = (float *)(j->workspace + d->at_parts) + i * d->rows * d->filters;
        memset(part, 0, (size_t)(d->rows * d->filters) * sizeof *part);
        for (int64_t n = d->batch * i / d->parts; n < d->batch * (i + 1) / d->parts; n++)
            for (int64_t y = 0; y < d->out_height; y += d->block) {
                int64_t rows = smaller(d->block, d->out_height - y);
                copy_band(d, j->x + n * d->height * d->width * d->channels, y, rows, band);
                filter_block(d, band, j->dy + (n * d->out_height + y) * d->out_width * d->filters, rows, part);
            }
    }
}

/* Rows first to last of the filter: the sum of the parts. */
static void add_parts(const void *job, int64_t first, int64_t last, int thread)
{
    const direct_job *j = job;
    const direct *d = j->d;
    const float *part = (const float *)(j->workspace + d->at_parts);
    int64_t begin = first * d->filters, end = last * d->filters;
    (void)thread;
    memcpy(j->out + begin, part + begin, (size_t)(end - begin) * sizeof *part);
    for (int64_t i = 1; i < d->parts; i++) {
        part += d->rows * d->filters;
        for (int64_t at = begin; at < end; at++)
            j->out[at] += part[at];
    }
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

static tw_status lay(const twi_prepare *p, const twi_operand *image, tw_shape filter, const twi_operand *output,
                     direct *d)
{
    twi_convolution c;
    bool is_for_us = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                     !__builtin_cpu_supports("avx512f");
    if (!is_for_us || image->dtype != TW_FLOAT32 || output->dtype != TW_FLOAT32 || image->elements == 0 ||
        output->elements == 0 || strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NHWC") != 0)
        return TW_UNIMPLEMENTED;
    tw_status status = twi_convolution_lay(p->attrs, TWI_DENSE, image->shape, filter, output->shape, &c, p->error);
    if (status != TW_OK)
        return status;
    const twi_window *w = &c.window;
    *d = (direct){
        .batch = c.batch, .height = w->image[0], .width = w->image[1], .channels = c.in_channels,
        .out_height = w->output[0], .out_width = w->output[1], .filters = c.out_channels, .kh = w->size[0],
        .kw = w->size[1], .stride = {w->stride[0], w->stride[1]}, .before = {w->before[0], w->before[1]},
    };
    return w->dilation[0] == 1 && w->dilation[1] == 1 ? TW_OK : TW_UNIMPLEMENTED;
}

/* What follows from the shapes; the caller's own parts of the workspace come behind. */
static tw_status plan(twi_prepare *p, direct *d)
{
    d->rows = d->kh * d->kw * d->channels;
    d->pitch = ((d->out_width - 1) * d->stride[1] + d->kw) * d->channels;
    if (d->filters % PANEL != 0 || d->rows > MOST_ROWS)
        return TW_UNIMPLEMENTED;
    int64_t fitting = (BAND / (int64_t)sizeof(float) / d->pitch - d->kh) / d->stride[0] + 1;
    d->block = smaller(fitting < 1 ? 1 : fitting, d->out_height);
    d->blocks = (d->out_height + d->block - 1) / d->block;
    d->band_bytes = (size_t)(((d->block - 1) * d->stride[0] + d->kh) * d->pitch) * sizeof(float);
    d->band_bytes = (d->band_bytes + 63) / 64 * 64;
    d->at_bands = twi_make_room(&p->workspace, d->band_bytes * (size_t)p->threads);
    return TW_OK;
}

static tw_status finish_forward(twi_prepare *p, direct *d)
{
    d->at_panels = twi_make_room(&p->workspace, (size_t)(d->rows * d->filters) * sizeof(float));
    return twi_keep(p, d, sizeof *d);
}

static void run_forward(const twi_run *r, const float *x, const float *bias)
{
    const direct *d = r->state;
    direct_job job = {.d = d, .x = x, .filter = r->inputs[1], .bias = bias, .out = r->outputs[0],
                      .workspace = r->workspace};
    twi_team_run(r->threads, pack_panels, &job, d->filters / PANEL);
    twi_team_run(r->threads, forward, &job, d->batch * d->blocks);
}

/* Conv2D (input, filter), _FusedConv2D (input, filter, bias) */
static tw_status forward_prepare(twi_prepare *p)
{
    direct d;
    tw_status status = lay(p, &p->inputs[0], p->inputs[1].shape, &p->outputs[0], &d);
    if (status == TW_OK)
        status = plan(p, &d);
    d.relu = twi_attr_bool(p->attrs, "relu", false);
    return status == TW_OK ? finish_forward(p, &d) : status;
}

static tw_status forward_run(const twi_run *r)
{
    run_forward(r, r->inputs[0], r->num_inputs > 2 ? r->inputs[2] : NULL);
    return TW_OK;
}

/* Conv2DBackpropInput (input_sizes, filter, out_backprop) */
static tw_status input_prepare(twi_prepare *p)
{
    direct d;
    tw_status status = lay(p, &p->outputs[0], p->inputs[1].shape, &p->inputs[2], &d);
    if (status != TW_OK)
        return status;
    if (d.stride[0] != 1 || d.stride[1] != 1 || d.before[0] >= d.kh || d.before[1] >= d.kw)
        return TW_UNIMPLEMENTED;
    direct flipped = {
        .batch = d.batch, .height = d.out_height, .width = d.out_width, .channels = d.filters,
        .out_height = d.height, .out_width = d.width, .filters = d.channels, .kh = d.kh, .kw = d.kw,
        .stride = {1, 1}, .before = {d.kh - 1 - d.before[0], d.kw - 1 - d.before[1]}, .flipped = true,
    };
    status = plan(p, &flipped);
    return status == TW_OK ? finish_forward(p, &flipped) : status;
}

static tw_status input_run(const twi_run *r)
{
    run_forward(r, r->inputs[2], NULL);
    return TW_OK;
}

/* Conv2DBackpropFilter (input, filter_sizes, out_backprop); _Conv2DBackpropFilterBias has a second output. */
static tw_status filter_prepare(twi_prepare *p)
{
    direct d;
    tw_status status = lay(p, &p->inputs[0], p->outputs[0].shape, &p->inputs[2], &d);
    if (status == TW_OK && p->outputs[0].dtype != TW_FLOAT32)
        return TW_UNIMPLEMENTED;
    if (status == TW_OK)
        status = plan(p, &d);
    if (status != TW_OK)
        return status;
    int64_t bytes = d.rows * d.filters * (int64_t)sizeof(float);
    if (bytes > MOST_PART_BYTES)
        return TW_UNIMPLEMENTED;
    d.parts = smaller(d.batch, MOST_PARTS);
    d.at_parts = twi_make_room(&p->workspace, (size_t)(d.parts * bytes));
    if (p->num_outputs > 1)
        d.at_sums = twi_make_room(&p->workspace, (size_t)(twi_row_chunks(d.batch * d.out_height * d.out_width) * d.filters) *
                                               sizeof(float));
    return twi_keep(p, &d, sizeof d);
}

static tw_status filter_run(const twi_run *r)
{
    const direct *d = r->state;
    direct_job job = {.d = d, .x = r->inputs[0], .dy = r->inputs[2], .out = r->outputs[0], .workspace = r->workspace};
    twi_team_run(r->threads, filter_parts, &job, d->parts);
    twi_team_run(r->threads, add_parts, &job, d->rows);
    if (r->num_outputs > 1)
        twi_sum_columns(r->threads, TWI_FLOATS, job.dy, d->batch * d->out_height * d->out_width, d->filters,
                        (float *)(job.workspace + d->at_sums), TWI_FLOATS, r->outputs[1]);
    return TW_OK;
}

#define TYPES TWI_TYPE(TW_FLOAT32)

const twi_kernel twi_direct_conv_kernels[] = {
    {"Conv2D", "direct", TYPES, forward_prepare, forward_run, twi_free, .shares = true},
    {"_FusedConv2D", "direct", TYPES, forward_prepare, forward_run, twi_free, .shares = true},
    {"Conv2DBackpropInput", "direct", TYPES, input_prepare, input_run, twi_free, .shares = true},
    {"Conv2DBackpropFilter", "direct", TYPES, filter_prepare, filter_run, twi_free, .shares = true},
    {"_Conv2DBackpropFilterBias", "direct", TYPES, filter_prepare, filter_run, twi_free, .shares = true},
    {0},
};

#else

const twi_kernel twi_direct_conv_kernels[] = {{0}};

#endif
