/* conv_col2im.c - gradients of images of few channels, on the registers of AVX-512 (rows "col2im"): where a vector
 * across the channels would be empty for the most part, as it is where a generator makes its picture
 * (conv2d_transpose).
 * Lives here:  Conv2DBackpropInput of images NHWC of less than 8 channels.
 * Never here:  more channels (library/conv.c), filters with gaps.
 *
 * What each pixel of the output's gradient gives to all that it was made of is a row of a product of matrices:
 * [pixels, K] times the filter as [K, kh * kw * C]. These rows are then added to the image where its windows lie.
 *
 * Each image is one thread's, so the bits do not depend on their number. */
#include "base/memory.h"
#include "device/cpu/vector/gemm.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#include <string.h>

#ifdef __x86_64__

enum {
    PANEL = TWI_GEMM_PANEL,
    MOST_CHANNELS = TWI_GEMM_LANES / 2 - 1,
    BLOCK = 48, /* pixels of the gradient done together */
};

typedef struct col2im {
    twi_convolution c;
    int64_t columns;                  /* of the product: kh * kw * C */
    size_t at_panels, at_threads, thread_bytes;
} col2im;

typedef struct col2im_job {
    const col2im *g;
    const float *dy, *filter;
    float *panels, *dx;
    char *workspace;
} col2im_job;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Panels first to last of the filter, [kh * kw * C, K] transposed. */
static void pack(const void *job, int64_t first, int64_t last, int thread)
{
    const col2im_job *j = job;
    int64_t columns = j->g->columns, filters = j->g->c.out_channels;
    (void)thread;
    for (int64_t column = first * PANEL; column < smaller(last * PANEL, columns); column += PANEL) {
        int64_t width = twi_gemm_width(columns, column);
        float *to = j->panels + column * filters;
        for (int64_t i = 0; i < width; i++)
            for (int64_t k = 0; k < filters; k++)
                to[k * width + i] = column + i < columns ? j->filter[(column + i) * filters + k] : 0;
    }
}

/* Adds a row of the product to the window of that pixel, as far as it lies on the image. */
static void add_window(const twi_convolution *c, int64_t y, int64_t x, const float *row, float *image)
{
    const twi_window *w = &c->window;
    int64_t top = y * w->stride[0] - w->before[0], left = x * w->stride[1] - w->before[1], channels = c->in_channels;
    int64_t first = larger(0, -left), last = smaller(w->size[1], w->image[1] - left);
    for (int64_t i = larger(0, -top); i < smaller(w->size[0], w->image[0] - top); i++) {
        float *to = image + ((top + i) * w->image[1] + left) * channels;
        const float *from = row + i * w->size[1] * channels;
        for (int64_t at = first * channels; at < last * channels; at++)
            to[at] += from[at];
    }
}

/* Images first to last. */
static void make_images(const void *job, int64_t first, int64_t last, int thread)
{
    const col2im_job *j = job;
    const twi_convolution *c = &j->g->c;
    const twi_window *w = &c->window;
    int64_t columns = j->g->columns, filters = c->out_channels, pixels = w->output[0] * w->output[1];
    float *rows = (float *)(j->workspace + j->g->at_threads + (size_t)thread * j->g->thread_bytes);
    const float *from[BLOCK];
    float *to[BLOCK];
    for (int64_t n = first; n < last; n++) {
        float *image = j->dx + n * w->image[0] * w->image[1] * c->in_channels;
        memset(image, 0, (size_t)(w->image[0] * w->image[1] * c->in_channels) * sizeof *image);
        for (int64_t begin = 0; begin < pixels; begin += BLOCK) {
            int64_t count = smaller(BLOCK, pixels - begin);
            for (int64_t i = 0; i < count; i++) {
                from[i] = j->dy + (n * pixels + begin + i) * filters;
                to[i] = rows + i * columns;
            }
            twi_gemm product = {.pieces = 1, .length = filters, .from = from, .to = to};
            for (; product.column < columns; product.column += PANEL) {
                product.panel = j->panels + product.column * filters;
                product.columns = smaller(PANEL, columns - product.column);
                twi_gemm_run(&product, count);
            }
            for (int64_t i = 0; i < count; i++)
                add_window(c, (begin + i) / w->output[1], (begin + i) % w->output[1], to[i], image);
        }
    }
}

/* Conv2DBackpropInput (input_sizes, filter, out_backprop) */
static tw_status prepare(twi_prepare *p)
{
    col2im g = {0};
    const twi_operand *dx = &p->outputs[0], *filter = &p->inputs[1], *dy = &p->inputs[2];
    if (!__builtin_cpu_supports("avx512f") || dx->elements == 0 || dy->elements == 0 || filter->elements == 0 ||
        strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NHWC") != 0)
        return TW_UNIMPLEMENTED;
    tw_status status = twi_convolution_lay(p->attrs, TWI_DENSE, dx->shape, filter->shape, dy->shape, &g.c, p->error);
    if (status != TW_OK)
        return status;
    const twi_window *w = &g.c.window;
    if (g.c.in_channels > MOST_CHANNELS || w->dilation[0] != 1 || w->dilation[1] != 1)
        return TW_UNIMPLEMENTED;
    g.columns = w->size[0] * w->size[1] * g.c.in_channels;
    int64_t whole = (g.columns + TWI_GEMM_LANES - 1) / TWI_GEMM_LANES * TWI_GEMM_LANES;
    g.at_panels = twi_make_room(&p->workspace, (size_t)(whole * g.c.out_channels) * sizeof(float));
    twi_make_room(&g.thread_bytes, (size_t)(BLOCK * g.columns) * sizeof(float));
    g.at_threads = twi_make_room(&p->workspace, g.thread_bytes * (size_t)p->threads);
    return twi_keep(p, &g, sizeof g);
}

static tw_status run(const twi_run *r)
{
    const col2im *g = r->state;
    char *workspace = r->workspace;
    col2im_job job = {.g = g, .dy = r->inputs[2], .filter = r->inputs[1], .panels = (float *)(workspace + g->at_panels),
                      .dx = r->outputs[0], .workspace = workspace};
    twi_team_run(r->threads, pack, &job, (g->columns + PANEL - 1) / PANEL);
    twi_team_run(r->threads, make_images, &job, g->c.batch);
    return TW_OK;
}

const twi_kernel twi_col2im_conv_kernels[] = {
    {"Conv2DBackpropInput", "col2im", TWI_TYPE(TW_FLOAT32), prepare, run, twi_free, .shares = true},
    {0},
};

#else

const twi_kernel twi_col2im_conv_kernels[] = {{0}};

#endif
