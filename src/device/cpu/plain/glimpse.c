/* glimpse.c - windows of images. Noise is drawn from a stream of the node's own: its numbers are not TensorFlow's. */
#include "base/memory.h"
#include "device/state/random.h"

#include <math.h>
#include <string.h>

typedef enum noise { NOISE_UNIFORM, NOISE_GAUSSIAN, NOISE_ZERO } noise;

typedef struct glimpse {
    bool centered, normalized, second; /* the second version leaves a window alone that is not centered */
    noise noise;
    twi_resource *stream;
} glimpse;

/* One image, its window, and where in the image that begins. */
typedef struct view {
    const float *image;
    float *window;
    int64_t in[2], out[2], channels, begin[2];
} view;

static int64_t begin_of(const glimpse *g, float offset, int64_t in, int64_t out)
{
    float at = offset;
    if (g->normalized)
        at *= (float)in;
    if (g->second && !g->normalized)
        return (int64_t)(g->centered ? at + (float)in / 2.0f : at);
    if (g->centered)
        at = at / 2.0f + (float)in / 2.0f;
    if (g->centered || !g->second)
        at -= (float)out / 2.0f;
    return (int64_t)at;
}

static bool lies_inside(const view *v)
{
    bool inside = true;
    for (int side = 0; side < 2; side++)
        inside = inside && v->begin[side] >= 0 && v->begin[side] + v->out[side] < v->in[side];
    return inside;
}

/* ---- noise ------------------------------------------------------------------------------------------------------- */

static void fill_uniform(const view *v, twi_philox *philox)
{
    uint32_t words[4];
    float least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < v->in[0] * v->in[1] * v->channels; i++) {
        least = fminf(least, v->image[i]);
        most = fmaxf(most, v->image[i]);
    }
    for (int64_t i = 0; i < v->out[0] * v->out[1] * v->channels; i++) {
        if (i % 4 == 0)
            twi_philox_next(philox, words);
        v->window[i] = least + twi_uniform_float(words[i % 4]) * (most - least);
    }
}

/* Each channel with its own mean and deviation. */
static void fill_gaussian(const view *v, twi_philox *philox)
{
    int64_t cells = v->in[0] * v->in[1];
    for (int64_t c = 0; c < v->channels; c++) {
        uint32_t words[4];
        float pair[2] = {0};
        double mean = 0, squares = 0;
        for (int64_t i = 0; i < cells; i++)
            mean += (double)v->image[i * v->channels + c] / (double)cells;
        for (int64_t i = 0; i < cells; i++) {
            double off = (double)v->image[i * v->channels + c] - mean;
            squares += off * off / (double)cells;
        }
        for (int64_t i = 0; i < v->out[0] * v->out[1]; i++) {
            if (i % 2 == 0) {
                twi_philox_next(philox, words);
                twi_normal_pair(words[0], words[1], pair);
            }
            v->window[i * v->channels + c] = (float)(mean + sqrt(squares) * (double)pair[i % 2]);
        }
    }
}

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

static void copy_inside(const view *v)
{
    for (int64_t y = 0; y < v->out[0]; y++)
        for (int64_t x = 0; x < v->out[1]; x++) {
            int64_t row = v->begin[0] + y, column = v->begin[1] + x;
            if (row >= 0 && row < v->in[0] && column >= 0 && column < v->in[1])
                memcpy(v->window + (y * v->out[1] + x) * v->channels,
                       v->image + (row * v->in[1] + column) * v->channels, sizeof(float) * (size_t)v->channels);
        }
}

static tw_status run(const twi_run *r)
{
    const glimpse *g = r->state;
    tw_shape in = r->input_operands[0].shape, out = r->output_operands[0].shape;
    const float *offsets = r->inputs[2];
    int64_t each = out.dims[1] * out.dims[2] * out.dims[3];
    twi_philox philox = {{0}, {0}};
    if (g->stream)
        philox = twi_random_take(g->stream, (uint64_t)(out.dims[0] * (each + out.dims[3])));
    for (int64_t n = 0; n < out.dims[0]; n++) {
        view v = {(const float *)r->inputs[0] + n * in.dims[1] * in.dims[2] * in.dims[3],
                  (float *)r->outputs[0] + n * each,
                  {in.dims[1], in.dims[2]},
                  {out.dims[1], out.dims[2]},
                  in.dims[3],
                  {0}};
        for (int side = 0; side < 2; side++)
            v.begin[side] = begin_of(g, offsets[2 * n + side], v.in[side], v.out[side]);
        memset(v.window, 0, sizeof(float) * (size_t)each);
        if (!lies_inside(&v) && g->noise == NOISE_UNIFORM)
            fill_uniform(&v, &philox);
        else if (!lies_inside(&v) && g->noise == NOISE_GAUSSIAN)
            fill_gaussian(&v, &philox);
        copy_inside(&v);
    }
    return TW_OK;
}

static tw_status prepare(twi_prepare *p)
{
    static const char *const names[] = {"uniform", "gaussian", "zero"};
    const char *name = twi_attr_string(p->attrs, "noise", "uniform");
    glimpse g = {.centered = twi_attr_bool(p->attrs, "centered", true),
                 .normalized = twi_attr_bool(p->attrs, "normalized", true),
                 .second = strcmp(p->op, "ExtractGlimpseV2") == 0};
    tw_status status = TW_OK;
    int i = 0;
    while (i < 3 && strcmp(name, names[i]) != 0)
        i++;
    if (i == 3)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "noise is '%s', expected uniform, gaussian or zero", name);
    bool is_plain = i == NOISE_UNIFORM && !twi_attr_bool(p->attrs, "uniform_noise", true);
    g.noise = is_plain ? NOISE_GAUSSIAN : (noise)i;
    if (g.noise != NOISE_ZERO)
        status = twi_random_find(p, &g.stream);
    return status == TW_OK ? twi_keep(p, &g, sizeof g) : status;
}

const twi_kernel twi_cpu_glimpse_kernels[] = {
    {"ExtractGlimpse", "plain", 0, prepare, run, twi_free},
    {"ExtractGlimpseV2", "plain", 0, prepare, run, twi_free},
    {0},
};
