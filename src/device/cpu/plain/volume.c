/* volume.c - convolutions and pools of volumes [N,D,H,W,C], dilations of images and patches of both: plain loops
 * over windows. */
#include "device/fused/volume.h"

#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"

enum {
    AXES = TWI_VOLUME_AXES,
    BLOCK = 16, /* channels that are done together */
};

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* The window of the output's place number `o` among all of a volume, at offset number `k` within: the place in the
 * input, in pixels; -1: in the padding. */
static int64_t place_of(const twi_volume *v, int64_t o, int64_t k)
{
    int64_t place = 0, stride = 1;
    for (int i = AXES - 1; i >= 0; i--) {
        int64_t at = o % v->out[i] * v->stride[i] - v->before[i] + k % v->size[i] * v->dilation[i];
        if (at < 0 || at >= v->in[i])
            return -1;
        place += at * stride;
        stride *= v->in[i];
        o /= v->out[i];
        k /= v->size[i];
    }
    return place;
}

/* A walk over the taps of one window that lie on pixels, in their order. */
typedef struct walk {
    const twi_volume *v;
    int64_t first[AXES];                       /* where the first tap lies along each axis, maybe in the padding */
    int64_t begin[AXES], end[AXES]; /* the taps along each axis that lie on pixels */
    int64_t at[AXES];                          /* the tap along each axis */
    int64_t left, tap, place; /* taps that follow; the tap's number, and the pixel it lies on */
} walk;

static inline int64_t rounded_up(int64_t x, int64_t by)
{
    return by == 1 ? x : (x + by - 1) / by;
}

static inline __attribute__((always_inline)) void find_place(walk *w)
{
    w->tap = w->place = 0;
#pragma GCC unroll 3
    for (int i = 0; i < AXES; i++) {
        w->tap = w->tap * w->v->size[i] + w->at[i];
        w->place = w->place * w->v->in[i] + w->first[i] + w->at[i] * w->v->dilation[i];
    }
}

/* Stands before the first tap of the window of the output's place number `o` among all of a volume. */
static inline __attribute__((always_inline)) walk walk_window(const twi_volume *v, int64_t o)
{
    walk w = {.v = v, .left = 1};
#pragma GCC unroll 3
    for (int i = AXES - 1; i >= 0; i--) {
        int64_t row = i > 0 ? o / v->out[i] : 0, first = (o - row * v->out[i]) * v->stride[i] - v->before[i];
        int64_t end = first < v->in[i] ? rounded_up(v->in[i] - first, v->dilation[i]) : 0;
        w.first[i] = first;
        w.at[i] = w.begin[i] = first < 0 ? rounded_up(-first, v->dilation[i]) : 0;
        w.end[i] = end < v->size[i] ? end : v->size[i];
        w.left *= w.end[i] > w.begin[i] ? w.end[i] - w.begin[i] : 0;
        o = row;
    }
    w.at[AXES - 1]--;
    find_place(&w);
    return w;
}

static inline __attribute__((always_inline)) bool next_tap(walk *w)
{
    if (w->left == 0)
        return false;
    w->left--;
    w->tap++;
    w->place += w->v->dilation[AXES - 1];
    if (++w->at[AXES - 1] < w->end[AXES - 1])
        return true;
    for (int i = AXES - 1; i > 0 && w->at[i] == w->end[i]; i--) {
        w->at[i] = w->begin[i];
        w->at[i - 1]++;
    }
    find_place(w);
    return true;
}

static int64_t blocks_of(int64_t channels)
{
    return (channels + BLOCK - 1) / BLOCK;
}

static inline int64_t in_block(int64_t channels, int64_t first)
{
    return channels - first < BLOCK ? channels - first : BLOCK;
}

static int64_t product(const int64_t dims[AXES])
{
    return dims[0] * dims[1] * dims[2];
}

/* An image is a volume of one layer. */
static void add_axis(twi_volume *v)
{
    int64_t *const of_axes[] = {v->in, v->size, v->out, v->stride, v->dilation, v->before};
    for (size_t i = 0; i < sizeof of_axes / sizeof *of_axes; i++) {
        memmove(of_axes[i] + 1, of_axes[i], 2 * sizeof **of_axes);
        of_axes[i][0] = of_axes[i] != v->before;
    }
    v->axes = TWI_VOLUME_AXES;
}

/* State: the windows. Those of convolutions have the filter's size, others an attribute's. */
static tw_status keep_windows(twi_prepare *p, const char *dilations, tw_shape image, const int64_t *size)
{
    twi_volume v;
    const char *why = twi_volume_lay(p->attrs, dilations, image.rank - 2, image.dims + 1, size, &v);
    if (why)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': %s", p->op, p->node, why);
    if (v.axes == 2)
        add_axis(&v);
    p->workspace = twi_widened_bytes(p);
    return twi_keep(p, &v, sizeof v);
}

static tw_status prepare_conv(twi_prepare *p)
{
    return keep_windows(p, "dilations", p->inputs[0].shape, p->inputs[1].shape.dims);
}

static tw_status prepare_conv_input(twi_prepare *p)
{
    return keep_windows(p, "dilations", p->outputs[0].shape, p->inputs[1].shape.dims);
}

static tw_status prepare_conv_filter(twi_prepare *p)
{
    return keep_windows(p, "dilations", p->inputs[0].shape, p->outputs[0].shape.dims);
}

static tw_status prepare_pool(twi_prepare *p)
{
    int count;
    return keep_windows(p, "dilations", p->inputs[0].shape, twi_attr_ints(p->attrs, "ksize", &count) + 1);
}

static tw_status prepare_avg_grad(twi_prepare *p)
{
    int count;
    return keep_windows(p, "dilations", p->outputs[0].shape, twi_attr_ints(p->attrs, "ksize", &count) + 1);
}

static tw_status prepare_dilation(twi_prepare *p)
{
    return keep_windows(p, "rates", p->inputs[0].shape, p->inputs[1].shape.dims);
}

static tw_status prepare_patches(twi_prepare *p)
{
    int count;
    return keep_windows(p, "rates", p->inputs[0].shape, twi_attr_ints(p->attrs, "ksizes", &count) + 1);
}

#define BODY "device/cpu/plain/volume.inl"
#include "device/cpu/plain/for_floats.h"
#undef BODY

TWI_WIDENED(dilation)
TWI_WIDENED(dilation_input)
TWI_WIDENED(dilation_filter)
TWI_WIDENED(conv)
TWI_WIDENED(conv_input)
TWI_WIDENED(conv_filter)
TWI_WIDENED(max_pool)
TWI_WIDENED(max_pool_grad)
TWI_WIDENED(max_pool_grad_grad)
TWI_WIDENED(avg_pool)
TWI_WIDENED(avg_pool_grad)

/* A patch is its pixels side by side; zeros where they are padding. */
static tw_status run_patches(const twi_run *r)
{
    const twi_volume *v = r->state;
    tw_dtype dtype = r->input_operands[0].dtype;
    tw_shape shape = r->input_operands[0].shape;
    int64_t channels = shape.dims[shape.rank - 1], images = shape.dims[0];
    int64_t outs = product(v->out), ins = product(v->in), window = product(v->size);
    tw_status status = twi_clear_elements(r, r->output_operands[0].elements, dtype, r->outputs[0]);
    for (int64_t i = 0; i < images * outs && channels && status == TW_OK; i++)
        for (walk w = walk_window(v, i % outs); next_tap(&w);)
            twi_copy_elements(channels, dtype, twi_element(r->inputs[0], dtype, (i / outs * ins + w.place) * channels),
                              twi_element_of_output(r->outputs[0], dtype, (i * window + w.tap) * channels));
    return status;
}

const twi_kernel twi_cpu_volume_kernels[] = {
    TWI_FLOAT_ROWS("Conv3D", prepare_conv, conv, twi_free),
    TWI_FLOAT_ROWS("Conv3DBackpropInputV2", prepare_conv_input, conv_input, twi_free),
    TWI_FLOAT_ROWS("Conv3DBackpropFilterV2", prepare_conv_filter, conv_filter, twi_free),
    TWI_FLOAT_BUT_DOUBLE_ROWS("MaxPool3D", prepare_pool, max_pool, twi_free),
    TWI_FLOAT_BUT_DOUBLE_ROWS("MaxPool3DGrad", prepare_pool, max_pool_grad, twi_free),
    TWI_FLOAT_BUT_DOUBLE_ROWS("MaxPool3DGradGrad", prepare_pool, max_pool_grad_grad, twi_free),
    TWI_FLOAT_ROWS("AvgPool3D", prepare_pool, avg_pool, twi_free),
    TWI_FLOAT_ROWS("AvgPool3DGrad", prepare_avg_grad, avg_pool_grad, twi_free),
    TWI_FLOAT_ROWS("Dilation2D", prepare_dilation, dilation, twi_free),
    TWI_FLOAT_ROWS("Dilation2DBackpropInput", prepare_dilation, dilation_input, twi_free),
    TWI_FLOAT_ROWS("Dilation2DBackpropFilter", prepare_dilation, dilation_filter, twi_free),
    {"ExtractImagePatches", "plain", TWI_NUMBER_TYPES | TWI_TYPE(TW_BOOL), prepare_patches, run_patches, twi_free},
    {"ExtractVolumePatches", "plain", TWI_NUMBER_TYPES, prepare_patches, run_patches, twi_free},
    {0},
};
