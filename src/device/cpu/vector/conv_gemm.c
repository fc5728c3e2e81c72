/* conv_gemm.c - convolutions of images NHWC with constant filters as products of matrices, on the registers of AVX-512
 * (rows "gemm"): what oneDNN computes as fast, but it would pack the filter in each run, which takes as long as the
 * convolution where a batch is small.
 * Lives here:  Conv2D, _FusedConv2D, with any size of filter, strides and dilations.
 * Never here:  3x3 filters that Winograd's method is quicker with (conv_winograd.c); filters that change; gradients.
 *
 * An output is the sum over the taps of the filter, each a matrix [C, K] that a pixel of the image is multiplied by.
 * The image is not copied: for a block of outputs there is a table of pointers, a row a tap, of which those beside the
 * image lead to zeros. The filter is packed into panels (gemm.h) when the kernel is prepared.
 *
 * All of an output's sum is made by one thread, in an order that does not depend on the number of threads. */
#include "base/memory.h"
#include "device/cpu/vector/gemm.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#include <string.h>

#ifdef __x86_64__

enum {
    PANEL = TWI_GEMM_PANEL,
    BLOCK = 96, /* outputs done together */
    FEWEST_FILTERS = TWI_GEMM_LANES / 2, /* below, most of a vector would be empty */
};

typedef struct gemm {
    twi_convolution c;
    int64_t taps_across, taps; /* of a row of the filter, which is one tap where there are no gaps; of all */
    int64_t run;               /* numbers of the image side by side for a tap */
    int64_t outputs, blocks, panels;
    bool relu;
    float *packed;             /* panels [taps * run][width] of the filter */
    size_t at_zeros, at_threads, thread_bytes;
} gemm;

typedef struct gemm_job {
    const gemm *g;
    const float *x, *bias, *zeros;
    float *out;
    char *workspace;
} gemm_job;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- blocks --------------------------------------------------------------------------------------------------- */

/* Where the outputs of a block are and what they are made of. */
typedef struct block {
    int64_t count;
    float **to;         /* [BLOCK] */
    const float **from; /* [taps][BLOCK] */
} block;

static void point(const gemm_job *j, int64_t first, block *b)
{
    const gemm *g = j->g;
    const twi_window *w = &g->c.window;
    int64_t channels = g->c.in_channels, image = w->image[0] * w->image[1] * channels;
    int64_t row = first / w->output[1], x = first % w->output[1], y = row % w->output[0];
    const float *from = j->x + row / w->output[0] * image;
    b->count = smaller(BLOCK, g->outputs - first);
    for (int64_t i = 0; i < b->count; i++) {
        b->to[i] = j->out + (first + i) * g->c.out_channels;
        for (int64_t tap = 0, cell_y = 0; tap < g->taps; cell_y++) {
            int64_t in_y = y * w->stride[0] - w->before[0] + cell_y * w->dilation[0];
            for (int64_t cell_x = 0; cell_x < g->taps_across; cell_x++, tap++) {
                int64_t in_x = x * w->stride[1] - w->before[1] + cell_x * w->dilation[1];
                bool inside = in_y >= 0 && in_y < w->image[0] && in_x >= 0 && in_x < w->image[1];
                b->from[tap * BLOCK + i] = inside ? from + (in_y * w->image[1] + in_x) * channels : j->zeros;
            }
        }
        if (++x == w->output[1]) {
            x = 0;
            if (++y == w->output[0])
                y = 0, from += image;
        }
    }
}

/* Units first to last: a block's product with one panel, all panels of a block in turn. */
static void convolve(const void *job, int64_t first, int64_t last, int thread)
{
    const gemm_job *j = job;
    const gemm *g = j->g;
    char *own = j->workspace + g->at_threads + (size_t)thread * g->thread_bytes;
    block b = {.to = (float **)own, .from = (const float **)own + BLOCK};
    int64_t pointed = -1;
    for (int64_t i = first; i < last; i++) {
        int64_t column = i % g->panels * PANEL;
        if (i / g->panels != pointed)
            point(j, (pointed = i / g->panels) * BLOCK, &b);
        twi_gemm product = {
            .pieces = g->taps, .length = g->run, .from = b.from, .pitch = BLOCK,
            .panel = g->packed + g->taps * g->run * column, .columns = smaller(PANEL, g->c.out_channels - column),
            .start = j->bias ? j->bias + column : NULL, .to = b.to, .column = column, .relu = g->relu,
        };
        twi_gemm_run(&product, b.count);
    }
}

/* ---- kernels -------------------------------------------------------------------------------------------------- */

static void release(void *state)
{
    gemm *g = state;
    twi_free_aligned(g->packed);
    twi_free(g);
}

static tw_status lay(twi_prepare *p, gemm *g)
{
    const twi_operand *image = &p->inputs[0], *filter = &p->inputs[1];
    if (!__builtin_cpu_supports("avx512f") || !filter->value || image->elements == 0 || p->outputs[0].elements == 0 ||
        filter->elements == 0 || strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NHWC") != 0)
        return TW_UNIMPLEMENTED;
    tw_status status = twi_convolution_lay(p->attrs, TWI_DENSE, image->shape, filter->shape, p->outputs[0].shape, &g->c,
                                           p->error);
    if (status != TW_OK)
        return status;
    const twi_window *w = &g->c.window;
    bool has_gaps = w->before[1] > 0 || w->after[1] > 0 || w->dilation[1] > 1;
    g->taps_across = has_gaps ? w->size[1] : 1;
    g->taps = w->size[0] * g->taps_across;
    g->run = w->size[1] / g->taps_across * g->c.in_channels;
    g->outputs = g->c.batch * w->output[0] * w->output[1];
    g->blocks = (g->outputs + BLOCK - 1) / BLOCK;
    g->panels = (g->c.out_channels + PANEL - 1) / PANEL;
    return g->c.out_channels < FEWEST_FILTERS ? TW_UNIMPLEMENTED : TW_OK;
}

/* Conv2D (input, filter), _FusedConv2D (input, filter, bias) */
static tw_status forward_prepare(twi_prepare *p)
{
    gemm g = {.relu = twi_attr_bool(p->attrs, "relu", false)};
    tw_status status = lay(p, &g);
    if (status != TW_OK)
        return status;
    g.packed = twi_gemm_pack(tw_tensor_data(p->inputs[1].value), g.taps * g.run, g.c.out_channels);
    if (!g.packed)
        return twi_fail_memory(p->error, p->node);
    g.at_zeros = twi_make_room(&p->workspace, (size_t)g.run * sizeof(float));
    g.thread_bytes = (size_t)((g.taps + 1) * BLOCK) * sizeof(float *);
    g.at_threads = twi_make_room(&p->workspace, g.thread_bytes * (size_t)p->threads);
    status = twi_keep(p, &g, sizeof g);
    if (status != TW_OK)
        twi_free_aligned(g.packed);
    return status;
}

static tw_status forward_run(const twi_run *r)
{
    const gemm *g = r->state;
    char *workspace = r->workspace;
    gemm_job job = {.g = g, .x = r->inputs[0], .bias = r->num_inputs > 2 ? r->inputs[2] : NULL, .out = r->outputs[0],
                    .zeros = (float *)(workspace + g->at_zeros), .workspace = workspace};
    memset(workspace + g->at_zeros, 0, (size_t)g->run * sizeof(float));
    twi_team_run(r->threads, convolve, &job, g->blocks * g->panels);
    return TW_OK;
}

#define TYPES TWI_TYPE(TW_FLOAT32)

const twi_kernel twi_gemm_conv_kernels[] = {
    {"Conv2D", "gemm", TYPES, forward_prepare, forward_run, release},
    {"_FusedConv2D", "gemm", TYPES, forward_prepare, forward_run, release},
    {0},
};

#else

const twi_kernel twi_gemm_conv_kernels[] = {{0}};

#endif
