/* conv_filter.c - gradients of filters as products of matrices, on the registers of AVX-512 (rows "gemm").
 * Lives here:  Conv2DBackpropFilter and _Conv2DBackpropFilterBias of images NHWC, of convolutions with strides, where
 *              filters are large: tens of channels, some taps.
 * Never here:  stride 1, where oneDNN and Winograd's method are quicker; small filters (library/conv.c).
 *
 * The gradient of a tap of the filter, a matrix [C, K], is the sum over the outputs of a column of the image, the C
 * numbers that the tap met, times a row, the K gradients of the output. 6 channels x 64 filters of it stay in registers
 * while a block of outputs passes by. The image is not copied: where the tap met which output stands in a table of
 * pointers, without those that it met beside the image. All taps take their turn on a block, which stays in the cache.
 *
 * A tap's 64 filters are one thread's, and their sums are made in the order of the outputs: so the bits do not depend
 * on the number of threads. */
#include "base/memory.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#include <string.h>

#ifdef __x86_64__

#include <immintrin.h>

enum {
    LANES = 16,
    ROWS = 6,
    VECTORS = 4,
    PANEL = VECTORS * LANES,
    BLOCK = 96,              /* outputs done together */
    FEWEST_CHANNELS = 20,    /* all numbers from here on are sums of fives and sixes */
    FEWEST_UNITS = 16,       /* taps x panels: what threads divide among themselves */
};

typedef struct filter_gradient {
    twi_convolution c;
    int64_t taps, panels, outputs;
    size_t at_sums;
} filter_gradient;

typedef struct filter_job {
    const filter_gradient *f;
    const float *x, *dy;
    float *out;
} filter_job;

/* Outputs that a tap met within the image: with which pixel, and their gradients. */
typedef struct block {
    int64_t count;
    const float *x[BLOCK], *dy[BLOCK];
} block;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#define TWI_TARGET "avx512f"
#include "device/cpu/vector/target.h"

/* Adds to out[rows][64], its rows `pitch` apart, the products of channels from `channel` on. */
static inline __attribute__((always_inline)) void add_tile(int rows, const block *b, int64_t channel, float *out,
                                                           int64_t pitch)
{
    __m512 sums[ROWS][VECTORS], some[VECTORS];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++)
            sums[i][v] = _mm512_loadu_ps(out + i * pitch + v * LANES);
    for (int64_t at = 0; at < b->count; at++) {
        const float *x = b->x[at] + channel, *dy = b->dy[at];
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++)
            some[v] = _mm512_loadu_ps(dy + v * LANES);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            __m512 factor = _mm512_set1_ps(x[i]);
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++)
                sums[i][v] = _mm512_fmadd_ps(factor, some[v], sums[i][v]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++)
            _mm512_storeu_ps(out + i * pitch + v * LANES, sums[i][v]);
}

static void add_block(const block *b, int64_t channels, float *out, int64_t pitch)
{
    int64_t c = 0, fives = (ROWS - channels % ROWS) % ROWS; /* tiles of one channel less, so that none is left over */
    for (; fives > 0; fives--, c += ROWS - 1)
        add_tile(ROWS - 1, b, c, out + c * pitch, pitch);
    for (; c < channels; c += ROWS)
        add_tile(ROWS, b, c, out + c * pitch, pitch);
}

#include "device/cpu/vector/target_end.h"

/* Some outputs: their gradients of one panel, and where their windows begin. */
typedef struct group {
    int64_t count;
    int64_t y[BLOCK], x[BLOCK];
    const float *image[BLOCK];
    float dy[BLOCK * PANEL];
} group;

static void find_windows(const filter_job *j, int64_t first, group *g)
{
    const twi_convolution *c = &j->f->c;
    const twi_window *w = &c->window;
    g->count = smaller(BLOCK, j->f->outputs - first);
    for (int64_t i = 0; i < g->count; i++) {
        int64_t x = (first + i) % w->output[1], row = (first + i) / w->output[1];
        g->y[i] = row % w->output[0] * w->stride[0] - w->before[0];
        g->x[i] = x * w->stride[1] - w->before[1];
        g->image[i] = j->x + row / w->output[0] * w->image[0] * w->image[1] * c->in_channels;
    }
}

static void copy_gradients(const filter_job *j, int64_t first, int64_t column, group *g)
{
    const float *from = j->dy + first * j->f->c.out_channels + column;
    for (int64_t i = 0; i < g->count; i++, from += j->f->c.out_channels)
        memcpy(g->dy + i * PANEL, from, PANEL * sizeof *from);
}

/* Adds to the tap's filters from `column` on what the outputs of a group give. */
static void add_group(const filter_job *j, const group *g, int64_t tap, int64_t column)
{
    const twi_convolution *c = &j->f->c;
    const twi_window *w = &c->window;
    int64_t down = tap / w->size[1] * w->dilation[0], across = tap % w->size[1] * w->dilation[1];
    block b = {.count = 0};
    for (int64_t i = 0; i < g->count; i++) {
        int64_t y = g->y[i] + down, x = g->x[i] + across;
        bool inside = y >= 0 && y < w->image[0] && x >= 0 && x < w->image[1];
        b.x[b.count] = inside ? g->image[i] + (y * w->image[1] + x) * c->in_channels : NULL;
        b.dy[b.count] = g->dy + i * PANEL;
        b.count += inside;
    }
    add_block(&b, c->in_channels, j->out + tap * c->in_channels * c->out_channels + column, c->out_channels);
}

/* Units first to last: a tap with a panel, all taps of a panel in turn. */
static void add_units(const void *job, int64_t first, int64_t last, int thread)
{
    const filter_job *j = job;
    const filter_gradient *f = j->f;
    int64_t channels = f->c.in_channels, filters = f->c.out_channels;
    group g;
    (void)thread;
    for (int64_t i = first; i < last; i++)
        for (int64_t c = 0; c < channels; c++)
            memset(j->out + (i % f->taps * channels + c) * filters + i / f->taps * PANEL, 0, PANEL * sizeof *j->out);
    for (int64_t begin = 0; begin < f->outputs; begin += BLOCK) {
        find_windows(j, begin, &g);
        for (int64_t i = first; i < last; i++) {
            int64_t column = i / f->taps * PANEL;
            if (i == first || i % f->taps == 0)
                copy_gradients(j, begin, column, &g);
            add_group(j, &g, i % f->taps, column);
        }
    }
}

/* Conv2DBackpropFilter (input, filter_sizes, out_backprop); _Conv2DBackpropFilterBias has a second output. */
static tw_status prepare(twi_prepare *p)
{
    filter_gradient f = {0};
    const twi_operand *x = &p->inputs[0], *dy = &p->inputs[2], *out = &p->outputs[0];
    if (!__builtin_cpu_supports("avx512f") || out->dtype != TW_FLOAT32 || x->elements == 0 || dy->elements == 0 ||
        out->elements == 0 || strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NHWC") != 0)
        return TW_UNIMPLEMENTED;
    tw_status status = twi_convolution_lay(p->attrs, TWI_DENSE, x->shape, out->shape, dy->shape, &f.c, p->error);
    if (status != TW_OK)
        return status;
    f.taps = f.c.window.size[0] * f.c.window.size[1];
    f.panels = f.c.out_channels / PANEL;
    f.outputs = dy->elements / f.c.out_channels;
    bool has_strides = f.c.window.stride[0] > 1 || f.c.window.stride[1] > 1;
    if (!has_strides || f.c.in_channels < FEWEST_CHANNELS || f.c.out_channels % PANEL != 0 ||
        f.taps * f.panels < FEWEST_UNITS)
        return TW_UNIMPLEMENTED;
    int64_t sums = twi_row_chunks(f.outputs) * f.c.out_channels;
    if (p->num_outputs > 1)
        f.at_sums = twi_make_room(&p->workspace, (size_t)sums * sizeof(float));
    return twi_keep(p, &f, sizeof f);
}

static tw_status run(const twi_run *r)
{
    const filter_gradient *f = r->state;
    filter_job job = {.f = f, .x = r->inputs[0], .dy = r->inputs[2], .out = r->outputs[0]};
    twi_team_run(r->threads, add_units, &job, f->taps * f->panels);
    if (r->num_outputs > 1)
        twi_sum_columns(r->threads, TWI_FLOATS, job.dy, f->outputs, f->c.out_channels,
                        (float *)((char *)r->workspace + f->at_sums), TWI_FLOATS, r->outputs[1]);
    return TW_OK;
}

#define TYPES TWI_TYPE(TW_FLOAT32)

const twi_kernel twi_filter_conv_kernels[] = {
    {"Conv2DBackpropFilter", "gemm", TYPES, prepare, run, twi_free, .shares = true},
    {"_Conv2DBackpropFilterBias", "gemm", TYPES, prepare, run, twi_free, .shares = true},
    {0},
};

#else

const twi_kernel twi_filter_conv_kernels[] = {{0}};

#endif
