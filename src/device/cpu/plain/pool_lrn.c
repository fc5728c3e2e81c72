/* pool_lrn.c - pooling and local response normalization in either order, and their gradients with the ReLU's, in plain
 * C, in float: what the joint kernels are tested against. No op of TensorFlow's hands on the argmax as these do, so
 * they are written out and no chain of other kernels (chain.h). */
#include "base/memory.h"
#include "device/cpu/plain/typed.h"
#include "tensor/window.h"

#include <math.h>
#include <string.h>

typedef struct tail {
    twi_window window;
    int64_t batch, channels, radius;
    float bias, alpha, beta;
    bool relu;
} tail;

/* y = x * d^-beta of one pixel; d too, if wanted. */
static void normalize(const tail *t, const float *x, float *y, float *d)
{
    for (int64_t c = 0; c < t->channels; c++) {
        float sum = 0;
        for (int64_t k = c < t->radius ? 0 : c - t->radius; k <= c + t->radius && k < t->channels; k++)
            sum += x[k] * x[k];
        float scale = t->bias + t->alpha * sum;
        y[c] = x[c] * powf(scale, -t->beta);
        if (d)
            d[c] = scale;
    }
}

/* y and d are room for one pixel each. */
static void normalize_gradient(const tail *t, const float *dy, const float *x, float *dx, float *y, float *d)
{
    normalize(t, x, y, d);
    for (int64_t c = 0; c < t->channels; c++) {
        float sum = 0;
        for (int64_t k = c < t->radius ? 0 : c - t->radius; k <= c + t->radius && k < t->channels; k++)
            sum += dy[k] * y[k] / d[k];
        float gradient = dy[c] * powf(d[c], -t->beta) - 2 * t->alpha * t->beta * x[c] * sum;
        dx[c] = t->relu && x[c] <= 0 ? 0 : gradient;
    }
}

/* Calls for each window and channel of image n with its place in the pooled image. */
#define EACH_WINDOW(t, n)                                                                                              \
    for (int64_t oy = 0; oy < (t)->window.output[0]; oy++)                                                             \
        for (int64_t ox = 0; ox < (t)->window.output[1]; ox++)                                                         \
            for (int64_t c = 0, at = (((n) * (t)->window.output[0] + oy) * (t)->window.output[1] + ox) * (t)->channels;  \
                 c < (t)->channels; c++, at++)

static int64_t pixels_of_image(const tail *t)
{
    return t->window.image[0] * t->window.image[1];
}

static int64_t pixels_of_output(const tail *t)
{
    return t->window.output[0] * t->window.output[1];
}

/* Place of a window's cell in image n, or -1 for padding. */
static int64_t place_of(const tail *t, int64_t n, int64_t oy, int64_t ox, int64_t cell, int64_t c)
{
    const twi_window *w = &t->window;
    int64_t y = oy * w->stride[0] - w->before[0] + cell / w->size[1];
    int64_t x = ox * w->stride[1] - w->before[1] + cell % w->size[1];
    if (y < 0 || y >= w->image[0] || x < 0 || x >= w->image[1])
        return -1;
    return ((n * w->image[0] + y) * w->image[1] + x) * t->channels + c;
}

static void max_pool(const tail *t, int64_t n, const float *images, float *pooled, uint8_t *argmax)
{
    EACH_WINDOW(t, n)
    {
        bool first = true;
        for (int64_t cell = 0; cell < t->window.size[0] * t->window.size[1]; cell++) {
            int64_t place = place_of(t, n, oy, ox, cell, c);
            if (place < 0 || !(first || images[place] > pooled[at]))
                continue;
            pooled[at] = images[place];
            argmax[at] = (uint8_t)cell;
            first = false;
        }
    }
}

static void max_pool_gradient(const tail *t, int64_t n, const float *gradient, const uint8_t *argmax, float *images)
{
    EACH_WINDOW(t, n)
    {
        images[place_of(t, n, oy, ox, argmax[at], c)] += gradient[at];
    }
}

/* The cell that a maximum came from is told in a byte. The shape of the image does not matter for that. */
static tw_status accepts(const twi_prepare *p)
{
    int count;
    int64_t cells = 1;
    const int64_t *sizes = twi_attr_ints(p->attrs, "ksize", &count);
    for (int i = 0; i < count && cells <= 256; i++)
        cells *= sizes[i];
    return cells > 256 ? twi_fail(p->error, TW_UNIMPLEMENTED, "windows of more than 256 cells") : TW_OK;
}

static tw_status tail_prepare(twi_prepare *p, tw_shape image)
{
    tail t = {
        .radius = twi_attr_int(p->attrs, "depth_radius", 5),
        .bias = twi_attr_float(p->attrs, "bias", 1),
        .alpha = twi_attr_float(p->attrs, "alpha", 1),
        .beta = twi_attr_float(p->attrs, "beta", 0.5f),
        .relu = twi_attr_bool(p->attrs, "relu", false),
    };
    tw_status status = twi_window_lay(p->attrs, image, NULL, &t.window, p->error);
    if (status != TW_OK)
        return status;
    t.batch = image.dims[0];
    t.channels = image.dims[3];
    p->state = twi_alloc(sizeof t);
    if (!p->state)
        return twi_fail_memory(p->error, p->node);
    memcpy(p->state, &t, sizeof t);
    /* images of floats between the links, and two pixels */
    int64_t largest = pixels_of_image(&t) > pixels_of_output(&t) ? pixels_of_image(&t) : pixels_of_output(&t);
    p->workspace = twi_widened_bytes(p) + (size_t)((t.batch * largest + 2) * t.channels) * sizeof(float);
    return TW_OK;
}

static tw_status forward_prepare(twi_prepare *p)
{
    return tail_prepare(p, p->inputs[0].shape);
}

static tw_status backward_prepare(twi_prepare *p)
{
    return tail_prepare(p, p->outputs[0].shape);
}

static tw_status pool_lrn_float(const twi_run *r)
{
    const tail *t = r->state;
    float *output = r->outputs[0], *pooled = r->outputs[1];
    for (int64_t n = 0; n < t->batch; n++)
        max_pool(t, n, r->inputs[0], pooled, r->outputs[2]);
    for (int64_t i = 0; i < t->batch * pixels_of_output(t); i++)
        normalize(t, pooled + i * t->channels, output + i * t->channels, NULL);
    return TW_OK;
}

static tw_status pool_lrn_gradient_float(const twi_run *r)
{
    const tail *t = r->state;
    const float *dy = r->inputs[0], *pooled = r->inputs[1];
    float *y = r->workspace, *d = y + t->channels, *between = d + t->channels;
    for (int64_t i = 0; i < t->batch * pixels_of_output(t); i++)
        normalize_gradient(t, dy + i * t->channels, pooled + i * t->channels, between + i * t->channels, y, d);
    memset(r->outputs[0], 0, (size_t)(t->batch * pixels_of_image(t) * t->channels) * sizeof(float));
    for (int64_t n = 0; n < t->batch; n++)
        max_pool_gradient(t, n, between, r->inputs[2], r->outputs[0]);
    return TW_OK;
}

static tw_status lrn_pool_float(const twi_run *r)
{
    const tail *t = r->state;
    const float *x = r->inputs[0];
    float *between = r->workspace;
    for (int64_t i = 0; i < t->batch * pixels_of_image(t); i++)
        normalize(t, x + i * t->channels, between + i * t->channels, NULL);
    for (int64_t n = 0; n < t->batch; n++)
        max_pool(t, n, between, r->outputs[0], r->outputs[1]);
    return TW_OK;
}

static tw_status lrn_pool_gradient_float(const twi_run *r)
{
    const tail *t = r->state;
    const float *x = r->inputs[1];
    float *y = r->workspace, *d = y + t->channels, *between = d + t->channels, *dx = r->outputs[0];
    memset(between, 0, (size_t)(t->batch * pixels_of_image(t) * t->channels) * sizeof(float));
    for (int64_t n = 0; n < t->batch; n++)
        max_pool_gradient(t, n, r->inputs[0], r->inputs[2], between);
    for (int64_t i = 0; i < t->batch * pixels_of_image(t); i++)
        normalize_gradient(t, between + i * t->channels, x + i * t->channels, dx + i * t->channels, y, d);
    return TW_OK;
}

TWI_WIDENED(pool_lrn)
TWI_WIDENED(pool_lrn_gradient)
TWI_WIDENED(lrn_pool)
TWI_WIDENED(lrn_pool_gradient)

#define ROWS(op, prepare, f)                                                                                           \
    {op, "plain", TWI_TYPE(TW_FLOAT32), prepare, f##_float, twi_free, .accepts = accepts}, \
        {op, "plain", TWI_NARROW_TYPES, prepare, f##_widened, twi_free, .accepts = accepts}

const twi_kernel twi_cpu_pool_lrn_kernels[] = {
    ROWS("_MaxPoolLRN", forward_prepare, pool_lrn),
    ROWS("_MaxPoolLRNGrad", backward_prepare, pool_lrn_gradient),
    ROWS("_LRNMaxPool", forward_prepare, lrn_pool),
    ROWS("_LRNMaxPoolGrad", backward_prepare, lrn_pool_gradient),
    {0},
};
