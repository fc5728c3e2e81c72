/* conv_winograd.c - 3x3 convolutions of images NHWC by Winograd's method, on AVX-512 (rows "winograd"): 16 products
 * where the definition has 36, which is what such a network's time goes to.
 * Lives here:  Conv2D, _FusedConv2D, Conv2DBackpropInput, Conv2DBackpropFilter and _Conv2DBackpropFilterBias of stride
 *              1, with numbers of channels and filters that are multiples of 16. Filters are constant or stay in the
 *              cache.
 * Never here:  all else (library/conv.c); other CPUs (conv_direct.c).
 *
 * An output tile of 2x2 pixels depends on 4x4 pixels d. With the filter g it is A'((G g G') . (B' d B)) A, where . is
 * element by element in a pixel, and a product of matrices over channels (Lavin and Gray, 2015):
 *
 *        1  0 -1  0           1   0   0
 *   B' = 0  1  1  0      G = 1/2 1/2 1/2     A' = 1  1  1  0
 *        0 -1  1  0          1/2-1/2 1/2          0  1 -1 -1
 *        0  1  0 -1           0   0   1
 *
 * So the filter becomes 16 matrices [C, K] at first; once, when the kernel is prepared, if it is constant. Then each
 * thread takes a block of tiles after the other: into 16 matrices [tiles, C], times a panel (gemm.h) of the filter's
 * after the other, and back. All stays in the cache in between. B' and A' only add and subtract, so little precision
 * is lost. Infinity in an image makes NaN of all its tile.
 *
 * The filter's gradient is G' (sum over tiles of (B' d B) . (A e A')) G, e being the tile's gradient.
 *
 * A tile's numbers do not depend on the block it is in, and gradients of filters are summed over a fixed number of
 * parts of the tiles, each alone, and the parts in order. So the bits do not depend on the number of threads. */
#include "base/memory.h"
#include "device/cpu/vector/gemm.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#include <string.h>

#ifdef __x86_64__

#include <immintrin.h>

enum {
    LANES = TWI_GEMM_LANES,
    PANEL = TWI_GEMM_PANEL,
    POINTS = 16,             /* of a tile of 4x4 */
    BLOCK = 24,              /* tiles done together: a multiple of the rows in registers */
    MOST_FILTER = 128 * 64,  /* channels * filters: 512 KB when transformed */
    FEWEST_TILES = 4 * BLOCK,
    MOST_CONSTANT = 1 << 20, /* channels * filters that are transformed once: 64 MB */
    FEWEST_CONSTANT = 12,    /* tiles for which it is read */
    MOST_PARTS = 16,         /* of the tiles; each has a gradient of the filter */
    FEWEST_SUMS = 16 * 32,   /* channels * filters of a gradient; below, the definition is as quick */
};

typedef struct winograd {
    int64_t batch, height, width, channels; /* of what goes through the filter */
    int64_t out_height, out_width, filters;
    int64_t before[2];
    int64_t rows, columns, tiles;           /* tiles of an image, and of all */
    bool flipped;                            /* the input's gradient: the filter is used backwards */
    bool relu;
    int64_t blocks;                         /* of tiles */
    int64_t panels;                         /* of the filter's columns */
    float *constant;                        /* the filter transformed; NULL: each run does it */
    int64_t parts;                          /* of the tiles, for the filter's gradient */
    /* places in the workspace, in bytes */
    size_t at_filter, at_flipped, at_parts, at_sums, at_threads, thread_bytes;
} winograd;

typedef struct winograd_job {
    const winograd *w;
    const float *x, *filter, *bias, *dy;
    float *transformed, *out; /* of the filter */
    char *workspace;
} winograd_job;

/* Numbers from one of a block's matrices, of so many columns, to the next: not a power of two, as all 16 are written at
 * the same time, and would fall into the same places of a cache. */
static int64_t block_size(int64_t columns)
{
    return BLOCK * columns + LANES;
}

/* Where the tile's output begins. */
typedef struct tile {
    int64_t image, y, x;
} tile;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static size_t reserve(size_t *size, int64_t floats)
{
    return twi_make_room(size, (size_t)floats * sizeof(float));
}

#define TWI_TARGET "avx512f"
#include "device/cpu/vector/target.h"

/* ---- the filter ----------------------------------------------------------------------------------------------- */

/* Cells first to last of the filter, flipped by 180 degrees, channels and filters exchanged. */
static void flip(const void *job, int64_t first, int64_t last, int thread)
{
    const winograd_job *j = job;
    int64_t in = j->w->channels, out = j->w->filters, matrix = in * out;
    float *to = (float *)(j->workspace + j->w->at_flipped);
    (void)thread;
    for (int64_t cell = first; cell < last; cell++)
        for (int64_t o = 0; o < out; o++)
            for (int64_t i = 0; i < in; i++)
                to[cell * matrix + i * out + o] = j->filter[(8 - cell) * matrix + o * in + i];
}

/* (a, b, c) to (a, (a + b + c) / 2, (a - b + c) / 2, c) */
static inline __attribute__((always_inline)) void spread(__m512 a, __m512 b, __m512 c, __m512 to[4])
{
    __m512 half = _mm512_set1_ps(0.5f);
    __m512 outer = _mm512_mul_ps(_mm512_add_ps(a, c), half), inner = _mm512_mul_ps(b, half);
    to[0] = a;
    to[1] = _mm512_add_ps(outer, inner);
    to[2] = _mm512_sub_ps(outer, inner);
    to[3] = c;
}

/* Channels first to last: [3,3,C,K] to 16 matrices [C,K] in panels. */
static void transform_filter(const void *job, int64_t first, int64_t last, int thread)
{
    const winograd_job *j = job;
    const winograd *w = j->w;
    int64_t filters = w->filters, matrix = w->channels * filters;
    const float *from = (w->flipped ? (const float *)(j->workspace + w->at_flipped) : j->filter) + first * filters;
    (void)thread;
    for (int64_t c = first; c < last; c++)
        for (int64_t k = 0; k < filters; k += LANES, from += LANES) {
            int64_t column = k / PANEL * PANEL;
            float *to = j->transformed + column * w->channels + c * twi_gemm_width(filters, column) + k - column;
            __m512 half[4][3], row[4];
            for (int x = 0; x < 3; x++) {
                spread(_mm512_loadu_ps(from + x * matrix), _mm512_loadu_ps(from + (3 + x) * matrix),
                       _mm512_loadu_ps(from + (6 + x) * matrix), row);
                for (int y = 0; y < 4; y++)
                    half[y][x] = row[y];
            }
            for (int y = 0; y < 4; y++) {
                spread(half[y][0], half[y][1], half[y][2], row);
                for (int x = 0; x < 4; x++)
                    _mm512_storeu_ps(to + (y * 4 + x) * matrix, row[x]);
            }
        }
}

/* (a, b, c, d) to (a + (b + c) / 2, (b - c) / 2, (b + c) / 2 + d) */
static inline __attribute__((always_inline)) void gather(const __m512 from[4], __m512 to[3])
{
    __m512 half = _mm512_set1_ps(0.5f), sum = _mm512_mul_ps(_mm512_add_ps(from[1], from[2]), half);
    to[0] = _mm512_add_ps(from[0], sum);
    to[1] = _mm512_mul_ps(_mm512_sub_ps(from[1], from[2]), half);
    to[2] = _mm512_add_ps(sum, from[3]);
}

/* A gradient [16,C,K] to [3,3,C,K]. */
static void restore_filter(int64_t matrix, const float *from, float *to)
{
    for (int64_t i = 0; i < matrix; i += LANES) {
        __m512 half[3][4], column[4], three[3];
        for (int x = 0; x < 4; x++) {
            for (int y = 0; y < 4; y++)
                column[y] = _mm512_loadu_ps(from + (y * 4 + x) * matrix + i);
            gather(column, three);
            for (int y = 0; y < 3; y++)
                half[y][x] = three[y];
        }
        for (int y = 0; y < 3; y++) {
            gather(half[y], three);
            for (int x = 0; x < 3; x++)
                _mm512_storeu_ps(to + (y * 3 + x) * matrix + i, three[x]);
        }
    }
}

/* Vectors first to last of the filter: the sums of the parts' gradients. */
static void add_parts(const void *job, int64_t first, int64_t last, int thread)
{
    const winograd_job *j = job;
    const float *parts = (const float *)(j->workspace + j->w->at_parts);
    int64_t size = 9 * j->w->channels * j->w->filters;
    (void)thread;
    for (int64_t i = first * LANES; i < last * LANES; i += LANES) {
        __m512 sum = _mm512_loadu_ps(parts + i);
        for (int64_t part = 1; part < j->w->parts; part++)
            sum = _mm512_add_ps(sum, _mm512_loadu_ps(parts + part * size + i));
        _mm512_storeu_ps(j->out + i, sum);
    }
}

/* ---- tiles ---------------------------------------------------------------------------------------------------- */

#define EACH_OF_4(X) X(0) X(1) X(2) X(3)

/* 4x4 pixels from `from` on, which the image may not have all: then the others are 0. Asked for is what the tile below
 * will need. */
static inline __attribute__((always_inline)) void transform_pixels(const winograd *w, const tile *t, bool edge,
                                                                   const float *from, float *to)
{
    int64_t channels = w->channels, pitch = w->width * channels, matrix = block_size(channels);
    int64_t top = t->y - w->before[0], left = t->x - w->before[1];
#define IS_ROW(i) int is_row##i = top + (i) >= 0 && top + (i) < w->height ? 0xffff : 0;
#define IS_COLUMN(i) int is_column##i = left + (i) >= 0 && left + (i) < w->width ? 0xffff : 0;
    EACH_OF_4(IS_ROW)
    EACH_OF_4(IS_COLUMN)
    for (int64_t c = 0; c < channels; c += LANES, from += LANES, to += LANES) {
#define PIXEL(y, x) (from + (y) * pitch + (x) * channels)
#define LOAD(y, x)                                                                                                     \
    (edge ? _mm512_maskz_loadu_ps((__mmask16)(is_row##y & is_column##x), PIXEL(y, x)) : _mm512_loadu_ps(PIXEL(y, x)))
#define COLUMN(x)                                                                                                      \
    __m512 a##x = LOAD(0, x), b##x = LOAD(1, x), c##x = LOAD(2, x), d##x = LOAD(3, x);                                 \
    a##x = _mm512_sub_ps(a##x, c##x);                                                                                  \
    d##x = _mm512_sub_ps(b##x, d##x);                                                                                  \
    __m512 sum##x = _mm512_add_ps(b##x, c##x);                                                                         \
    c##x = _mm512_sub_ps(c##x, b##x);                                                                                  \
    b##x = sum##x;
        EACH_OF_4(COLUMN)
#define ROW(y, r)                                                                                                      \
    _mm512_storeu_ps(to + ((y) * 4 + 0) * matrix, _mm512_sub_ps(r##0, r##2));                                          \
    _mm512_storeu_ps(to + ((y) * 4 + 1) * matrix, _mm512_add_ps(r##1, r##2));                                          \
    _mm512_storeu_ps(to + ((y) * 4 + 2) * matrix, _mm512_sub_ps(r##2, r##1));                                          \
    _mm512_storeu_ps(to + ((y) * 4 + 3) * matrix, _mm512_sub_ps(r##1, r##3));
        ROW(0, a)
        ROW(1, b)
        ROW(2, c)
        ROW(3, d)
        if (!edge)
            for (int i = 0; i < 4; i++)
                __builtin_prefetch(PIXEL(4 + i / 2, 1 + i % 2), 0, 2);
    }
}

/* A tile to its place in 16 matrices [BLOCK, C]. */
static void transform_tile(const winograd *w, const tile *t, const float *images, float *to)
{
    int64_t y = t->y - w->before[0], x = t->x - w->before[1];
    const float *from = images + ((t->image * w->height + y) * w->width + x) * w->channels;
    if (y >= 0 && y + 4 <= w->height && x >= 0 && x + 4 <= w->width)
        transform_pixels(w, t, false, from, to);
    else
        transform_pixels(w, t, true, from, to);
}

/* Its place in 16 matrices [BLOCK, 64] to so many channels of 2x2 pixels, or as many as there are in the image. */
static void restore_tile(const winograd *w, const tile *t, const float *from, const float *bias, float *images,
                         int64_t column, int64_t columns)
{
    int64_t matrix = block_size(PANEL), pitch = w->out_width * w->filters;
    float *to = images + ((t->image * w->out_height + t->y) * w->out_width + t->x) * w->filters + column;
    bool right = t->x + 1 < w->out_width, below = t->y + 1 < w->out_height;
    __m512 zero = _mm512_setzero_ps();
    for (int64_t k = 0; k < columns; k += LANES, from += LANES, to += LANES) {
        __m512 start = bias ? _mm512_loadu_ps(bias + column + k) : zero;
#define PRODUCT(y, x) _mm512_loadu_ps(from + ((y) * 4 + (x)) * matrix)
#define SUMS(x)                                                                                                        \
    __m512 second##x = PRODUCT(1, x), third##x = PRODUCT(2, x);                                                        \
    __m512 top##x = _mm512_add_ps(_mm512_add_ps(PRODUCT(0, x), second##x), third##x);                                  \
    __m512 bottom##x = _mm512_sub_ps(_mm512_sub_ps(second##x, third##x), PRODUCT(3, x));
        EACH_OF_4(SUMS)
#define PIXELS(r)                                                                                                      \
    __m512 r##_left = _mm512_add_ps(_mm512_add_ps(_mm512_add_ps(r##0, r##1), r##2), start);                            \
    __m512 r##_right = _mm512_add_ps(_mm512_sub_ps(_mm512_sub_ps(r##1, r##2), r##3), start);                           \
    if (w->relu) { /* NaN is handed on: the second operand counts where one is NaN */                                  \
        r##_left = _mm512_max_ps(zero, r##_left);                                                                      \
        r##_right = _mm512_max_ps(zero, r##_right);                                                                    \
    }
        PIXELS(top)
        PIXELS(bottom)
        _mm512_storeu_ps(to, top_left);
        if (right)
            _mm512_storeu_ps(to + w->filters, top_right);
        if (below)
            _mm512_storeu_ps(to + pitch, bottom_left);
        if (right && below)
            _mm512_storeu_ps(to + pitch + w->filters, bottom_right);
        for (int i = 0; i < 4; i++) /* of the tile below */
            __builtin_prefetch(to + (2 + i / 2) * pitch + i % 2 * w->filters, 0, 2);
    }
}

/* 2x2 pixels of a gradient, or as many as there are, the others 0, to their place in 16 matrices [BLOCK, K]: A e A'. */
static void transform_gradient(const winograd *w, const tile *t, const float *images, float *to)
{
    int64_t matrix = block_size(w->filters), pitch = w->out_width * w->filters;
    const float *from = images + ((t->image * w->out_height + t->y) * w->out_width + t->x) * w->filters;
    __mmask16 right = t->x + 1 < w->out_width ? 0xffff : 0, below = t->y + 1 < w->out_height ? 0xffff : 0;
    __m512 zero = _mm512_setzero_ps();
    for (int64_t k = 0; k < w->filters; k += LANES, from += LANES, to += LANES) {
        __m512 l0 = _mm512_loadu_ps(from), l3 = _mm512_maskz_loadu_ps(below, from + pitch);
        __m512 r0 = _mm512_maskz_loadu_ps(right, from + w->filters);
        __m512 r3 = _mm512_maskz_loadu_ps(right & below, from + pitch + w->filters);
        __m512 l1 = _mm512_add_ps(l0, l3), l2 = _mm512_sub_ps(l0, l3);
        __m512 r1 = _mm512_add_ps(r0, r3), r2 = _mm512_sub_ps(r0, r3);
        l3 = _mm512_sub_ps(zero, l3), r3 = _mm512_sub_ps(zero, r3);
#define GRADIENT_ROW(y)                                                                                                \
    _mm512_storeu_ps(to + ((y) * 4 + 0) * matrix, l##y);                                                               \
    _mm512_storeu_ps(to + ((y) * 4 + 1) * matrix, _mm512_add_ps(l##y, r##y));                                          \
    _mm512_storeu_ps(to + ((y) * 4 + 2) * matrix, _mm512_sub_ps(l##y, r##y));                                          \
    _mm512_storeu_ps(to + ((y) * 4 + 3) * matrix, _mm512_sub_ps(zero, r##y));
        EACH_OF_4(GRADIENT_ROW)
        for (int i = 0; i < 4; i++) /* of the tile below */
            __builtin_prefetch(from + (2 + i / 2) * pitch + i % 2 * w->filters, 0, 2);
    }
}

/* ---- products ------------------------------------------------------------------------------------------------- */

/* 16 / vectors columns of a [count, C], as rows, times 16 * vectors columns of b [count, K], added to out, whose rows
 * are K apart. */
static inline __attribute__((always_inline)) void accumulate_some(int vectors, const float *a, const float *b,
                                                                  int64_t count, int64_t channels, int64_t filters,
                                                                  float *out)
{
    __m512 sums[LANES], some[4];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        sums[i] = _mm512_loadu_ps(out + i / vectors * filters + i % vectors * LANES);
    for (int64_t t = 0; t < count; t++, a += channels, b += filters) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            some[v] = _mm512_loadu_ps(b + v * LANES);
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            sums[i] = _mm512_fmadd_ps(_mm512_set1_ps(a[i / vectors]), some[i % vectors], sums[i]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        _mm512_storeu_ps(out + i / vectors * filters + i % vectors * LANES, sums[i]);
}

/* [BLOCK, C] transposed, times [BLOCK, K], of which the first `count` rows count, added to [C, K]. */
static void accumulate(const float *a, const float *b, int64_t channels, int64_t filters, int64_t count, float *out)
{
    for (int64_t c = 0; c < channels; c += LANES, a += LANES, out += LANES * filters) {
        int64_t k = 0;
        for (; k + 4 * LANES <= filters; k += 4 * LANES)
            for (int64_t row = 0; row < LANES; row += LANES / 4)
                accumulate_some(4, a + row, b + k, count, channels, filters, out + row * filters + k);
        for (; k + 2 * LANES <= filters; k += 2 * LANES)
            for (int64_t row = 0; row < LANES; row += LANES / 2)
                accumulate_some(2, a + row, b + k, count, channels, filters, out + row * filters + k);
        for (; k < filters; k += LANES)
            accumulate_some(1, a, b + k, count, channels, filters, out + k);
    }
}

#include "device/cpu/vector/target_end.h"

/* ---- blocks --------------------------------------------------------------------------------------------------- */

static void next_tile(const winograd *w, tile *t)
{
    t->x += 2;
    if (t->x < w->out_width)
        return;
    t->x = 0;
    t->y += 2;
    if (t->y < w->out_height)
        return;
    t->y = 0;
    t->image++;
}

static tile tile_at(const winograd *w, int64_t at)
{
    int64_t in_image = at % (w->rows * w->columns);
    return (tile){at / (w->rows * w->columns), in_image / w->columns * 2, in_image % w->columns * 2};
}

static float *scratch_of(const winograd_job *j, int thread)
{
    return (float *)(j->workspace + j->w->at_threads + (size_t)thread * j->w->thread_bytes);
}

/* A block's matrices [count, C] times a panel of the filter's, to [count, 64]. */
static void multiply(const winograd_job *j, int64_t count, int64_t column, const float *tiles, float *products)
{
    const winograd *w = j->w;
    const float *from[BLOCK];
    float *to[BLOCK];
    twi_gemm product = {.pieces = 1, .length = w->channels, .from = from, .to = to,
                        .panel = j->transformed + column * w->channels, .columns = smaller(PANEL, w->filters - column)};
    for (int64_t point = 0; point < POINTS; point++, product.panel += w->channels * w->filters) {
        for (int64_t i = 0; i < count; i++) {
            from[i] = tiles + point * block_size(w->channels) + i * w->channels;
            to[i] = products + point * block_size(PANEL) + i * PANEL;
        }
        twi_gemm_run(&product, count);
    }
}

/* Units first to last: a block of tiles with one panel, all panels of a block in turn. Blocks have 24 tiles, or some
 * fewer where that makes them equal. */
static void convolve(const void *job, int64_t first, int64_t last, int thread)
{
    const winograd_job *j = job;
    const winograd *w = j->w;
    float *tiles = scratch_of(j, thread), *products = tiles + POINTS * block_size(w->channels);
    int64_t transformed = -1;
    for (int64_t unit = first; unit < last; unit++) {
        int64_t block = unit / w->panels, column = unit % w->panels * PANEL;
        int64_t begin = w->tiles * block / w->blocks, count = w->tiles * (block + 1) / w->blocks - begin;
        tile t = tile_at(w, begin);
        for (int64_t i = 0; i < count && block != transformed; i++, next_tile(w, &t))
            transform_tile(w, &t, j->x, tiles + i * w->channels);
        transformed = block;
        multiply(j, count, column, tiles, products);
        t = tile_at(w, begin);
        for (int64_t i = 0; i < count; i++, next_tile(w, &t))
            restore_tile(w, &t, products + i * PANEL, j->bias, j->out, column, smaller(PANEL, w->filters - column));
    }
}

/* Parts first to last of the tiles: the gradient of the filter from each. */
static void filter_parts(const void *job, int64_t first, int64_t last, int thread)
{
    const winograd_job *j = job;
    const winograd *w = j->w;
    int64_t channels = w->channels, filters = w->filters, matrix = channels * filters, blocks = w->blocks;
    float *tiles = scratch_of(j, thread), *gradients = tiles + POINTS * block_size(channels);
    float *sums = gradients + POINTS * block_size(filters);
    for (int64_t part = first; part < last; part++) {
        int64_t begin = blocks * part / w->parts * BLOCK;
        int64_t end = smaller(blocks * (part + 1) / w->parts * BLOCK, w->tiles);
        tile t = tile_at(w, begin);
        memset(sums, 0, (size_t)(POINTS * matrix) * sizeof *sums);
        for (; begin < end; begin += BLOCK) {
            int64_t count = smaller(BLOCK, end - begin);
            for (int64_t i = 0; i < count; i++, next_tile(w, &t)) {
                transform_tile(w, &t, j->x, tiles + i * channels);
                transform_gradient(w, &t, j->dy, gradients + i * filters);
            }
            for (int64_t i = 0; i < POINTS; i++)
                accumulate(tiles + i * block_size(channels), gradients + i * block_size(filters), channels, filters,
                           count, sums + i * matrix);
        }
        restore_filter(matrix, sums, (float *)(j->workspace + w->at_parts) + part * 9 * matrix);
    }
}

/* ---- kernels -------------------------------------------------------------------------------------------------- */

static tw_status lay(const twi_prepare *p, const twi_operand *image, tw_shape filter, const twi_operand *output,
                     winograd *w)
{
    twi_convolution c;
    if (!__builtin_cpu_supports("avx512f") || image->dtype != TW_FLOAT32 || image->elements == 0 ||
        output->elements == 0 || strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NHWC") != 0)
        return TW_UNIMPLEMENTED;
    tw_status status = twi_convolution_lay(p->attrs, TWI_DENSE, image->shape, filter, output->shape, &c, p->error);
    if (status != TW_OK)
        return status;
    const twi_window *window = &c.window;
    *w = (winograd){
        .batch = c.batch, .height = window->image[0], .width = window->image[1], .channels = c.in_channels,
        .out_height = window->output[0], .out_width = window->output[1], .filters = c.out_channels,
        .before = {window->before[0], window->before[1]},
    };
    for (int i = 0; i < 2; i++)
        if (window->size[i] != 3 || window->stride[i] != 1 || window->dilation[i] != 1)
            return TW_UNIMPLEMENTED;
    return TW_OK;
}

/* What follows from the shapes. */
static tw_status plan(winograd *w, bool constant)
{
    w->rows = (w->out_height + 1) / 2;
    w->columns = (w->out_width + 1) / 2;
    w->tiles = w->batch * w->rows * w->columns;
    w->blocks = (w->tiles + BLOCK - 1) / BLOCK;
    w->panels = (w->filters + PANEL - 1) / PANEL;
    bool is_for_us = w->channels % LANES == 0 && w->filters % LANES == 0 &&
                     w->channels * w->filters <= (constant ? MOST_CONSTANT : MOST_FILTER) &&
                     w->tiles >= (constant ? FEWEST_CONSTANT : FEWEST_TILES);
    return is_for_us ? TW_OK : TW_UNIMPLEMENTED;
}

static void release(void *state)
{
    winograd *w = state;
    twi_free_aligned(w->constant);
    twi_free(w);
}

static tw_status finish_forward(twi_prepare *p, winograd *w)
{
    int64_t matrix = w->channels * w->filters;
    const tw_tensor *constant = w->flipped ? NULL : p->inputs[1].value;
    tw_status status = plan(w, constant != NULL);
    if (status != TW_OK)
        return status;
    w->at_filter = reserve(&p->workspace, constant ? 0 : POINTS * matrix);
    w->at_flipped = reserve(&p->workspace, w->flipped ? 9 * matrix : 0);
    reserve(&w->thread_bytes, POINTS * (block_size(w->channels) + block_size(PANEL)));
    w->at_threads = reserve(&p->workspace, p->threads * (int64_t)(w->thread_bytes / sizeof(float)));
    if (constant) {
        w->constant = twi_alloc_aligned((size_t)(POINTS * matrix) * sizeof(float), 64);
        if (!w->constant)
            return twi_fail_memory(p->error, p->node);
        winograd_job job = {.w = w, .filter = tw_tensor_data(constant), .transformed = w->constant};
        transform_filter(&job, 0, w->channels, 0);
    }
    status = twi_keep(p, w, sizeof *w);
    if (status != TW_OK)
        twi_free_aligned(w->constant);
    return status;
}

static void run(const twi_run *r, const float *x, const float *bias)
{
    const winograd *w = r->state;
    char *workspace = r->workspace;
    winograd_job job = {.w = w, .x = x, .filter = r->inputs[1], .bias = bias, .out = r->outputs[0],
                        .transformed = w->constant ? w->constant : (float *)(workspace + w->at_filter),
                        .workspace = workspace};
    if (w->flipped)
        twi_team_run(r->threads, flip, &job, 9);
    if (!w->constant)
        twi_team_run(r->threads, transform_filter, &job, w->channels);
    twi_team_run(r->threads, convolve, &job, w->blocks * w->panels);
}

/* Conv2D (input, filter), _FusedConv2D (input, filter, bias) */
static tw_status forward_prepare(twi_prepare *p)
{
    winograd w;
    tw_status status = lay(p, &p->inputs[0], p->inputs[1].shape, &p->outputs[0], &w);
    if (status != TW_OK)
        return status;
    w.relu = twi_attr_bool(p->attrs, "relu", false);
    return finish_forward(p, &w);
}

static tw_status forward_run(const twi_run *r)
{
    run(r, r->inputs[0], r->num_inputs > 2 ? r->inputs[2] : NULL);
    return TW_OK;
}

/* Conv2DBackpropInput (input_sizes, filter, out_backprop) */
static tw_status input_prepare(twi_prepare *p)
{
    winograd w;
    tw_status status = lay(p, &p->outputs[0], p->inputs[1].shape, &p->inputs[2], &w);
    if (status != TW_OK)
        return status;
    if (w.before[0] > 2 || w.before[1] > 2)
        return TW_UNIMPLEMENTED;
    winograd flipped = {
        .batch = w.batch, .height = w.out_height, .width = w.out_width, .channels = w.filters,
        .out_height = w.height, .out_width = w.width, .filters = w.channels,
        .before = {2 - w.before[0], 2 - w.before[1]}, .flipped = true,
    };
    return finish_forward(p, &flipped);
}

static tw_status input_run(const twi_run *r)
{
    run(r, r->inputs[2], NULL);
    return TW_OK;
}

/* Conv2DBackpropFilter (input, filter_sizes, out_backprop); _Conv2DBackpropFilterBias has a second output. */
static tw_status filter_prepare(twi_prepare *p)
{
    winograd w;
    tw_status status = lay(p, &p->inputs[0], p->outputs[0].shape, &p->inputs[2], &w);
    if (status == TW_OK)
        status = plan(&w, false);
    if (status != TW_OK)
        return status;
    int64_t matrix = w.channels * w.filters;
    if (p->outputs[0].dtype != TW_FLOAT32 || matrix < FEWEST_SUMS)
        return TW_UNIMPLEMENTED;
    w.parts = smaller(w.blocks, MOST_PARTS);
    w.at_parts = reserve(&p->workspace, w.parts * 9 * matrix);
    if (p->num_outputs > 1)
        w.at_sums = reserve(&p->workspace, twi_row_chunks(w.batch * w.out_height * w.out_width) * w.filters);
    reserve(&w.thread_bytes, POINTS * (block_size(w.channels) + block_size(w.filters) + matrix));
    w.at_threads = reserve(&p->workspace, p->threads * (int64_t)(w.thread_bytes / sizeof(float)));
    return twi_keep(p, &w, sizeof w);
}

static tw_status filter_run(const twi_run *r)
{
    const winograd *w = r->state;
    winograd_job job = {.w = w, .x = r->inputs[0], .dy = r->inputs[2], .out = r->outputs[0], .workspace = r->workspace};
    twi_team_run(r->threads, filter_parts, &job, w->parts);
    twi_team_run(r->threads, add_parts, &job, 9 * w->channels * w->filters / LANES);
    if (r->num_outputs > 1)
        twi_sum_columns(r->threads, TWI_FLOATS, job.dy, w->batch * w->out_height * w->out_width, w->filters,
                        (float *)(job.workspace + w->at_sums), TWI_FLOATS, r->outputs[1]);
    return TW_OK;
}

#define TYPES TWI_TYPE(TW_FLOAT32)

const twi_kernel twi_winograd_conv_kernels[] = {
    {"Conv2D", "winograd", TYPES, forward_prepare, forward_run, release},
    {"_FusedConv2D", "winograd", TYPES, forward_prepare, forward_run, release},
    {"Conv2DBackpropInput", "winograd", TYPES, input_prepare, input_run, release, .shares = true},
    {"Conv2DBackpropFilter", "winograd", TYPES, filter_prepare, filter_run, twi_free, .shares = true},
    {"_Conv2DBackpropFilterBias", "winograd", TYPES, filter_prepare, filter_run, twi_free, .shares = true},
    {0},
};

#else

const twi_kernel twi_winograd_conv_kernels[] = {{0}};

#endif
