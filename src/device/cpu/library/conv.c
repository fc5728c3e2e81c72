/* conv.c - convolutions and their gradients on oneDNN: images NHWC, filters HWIO; volumes NDHWC, filters DHWIO.
 * Lives here:  Conv2D, _FusedConv2D, Conv2DBackpropInput, Conv2DBackpropFilter, _Conv2DBackpropFilterBias; Conv3D,
 *              Conv3DBackpropInputV2, Conv3DBackpropFilterV2.
 * Never here:  anything that names a oneDNN type (onednn.cc).
 *
 * Activations stay NHWC, which the library computes as fast as its blocked layouts and which the other ops want.
 * Filters are free: the library copies them to the layout it likes, which is nothing beside the convolution. */
#include "base/memory.h"
#include "device/cpu/library/onednn.h"
#include "device/fused/volume.h"
#include "device/kernel.h"
#include "tensor/window.h"

#include <string.h>

enum { VECTOR_CHANNELS = 16 }; /* of the widest vectors */

typedef struct conv_state {
    twi_dnnl *primitive;
    /* of an input gradient computed as a forward convolution */
    bool as_forward;
    int64_t taps;        /* cells of the filter, (kd *) kh * kw */
    size_t tap_bytes;    /* bytes of one cell's [C,K] matrix */
    size_t flipped;       /* where in the workspace the flipped filter lies */
} conv_state;

/* [N, sides..., C] */
static twi_dnnl_tensor image_tensor(const twi_operand *operand)
{
    const int64_t *d = operand->shape.dims;
    int axes = operand->shape.rank - 2;
    int64_t step = d[axes + 1];
    twi_dnnl_tensor t = {operand->dtype, axes + 2, {d[0], step}, {0, 1}, false};
    for (int i = axes; i > 0; step *= d[i--]) {
        t.dims[i + 1] = d[i];
        t.strides[i + 1] = step;
    }
    t.strides[0] = step;
    return t;
}

/* [sides..., C, K] */
static twi_dnnl_tensor filter_tensor(tw_dtype dtype, tw_shape shape, int64_t groups)
{
    const int axes = shape.rank - 2, first = groups > 1;
    int64_t c = shape.dims[axes], k = shape.dims[axes + 1], each = k / groups, step = c * k;
    twi_dnnl_tensor t = {dtype, first + axes + 2, {groups}, {each}, true};
    t.dims[first] = each, t.strides[first] = 1;
    t.dims[first + 1] = c, t.strides[first + 1] = k;
    for (int i = axes - 1; i >= 0; step *= shape.dims[i--]) {
        t.dims[first + 2 + i] = shape.dims[i];
        t.strides[first + 2 + i] = step;
    }
    return t;
}

static twi_dnnl_tensor bias_tensor(const twi_operand *operand)
{
    return (twi_dnnl_tensor){operand->dtype, 1, {operand->elements}, {1}, false};
}

static tw_status lay_volume(twi_prepare *p, tw_shape image, tw_shape filter, twi_dnnl_spec *spec)
{
    twi_volume v;
    const char *why = twi_volume_lay(p->attrs, "dilations", TWI_VOLUME_AXES, image.dims + 1, filter.dims, &v);
    if (why)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': %s", p->op, p->node, why);
    for (int i = 0; i < TWI_VOLUME_AXES; i++) {
        int64_t reach = (v.size[i] - 1) * v.dilation[i] + 1;
        int64_t after = (v.out[i] - 1) * v.stride[i] + reach - v.in[i] - v.before[i];
        spec->strides[i] = v.stride[i];
        spec->dilations[i] = v.dilation[i];
        spec->before[i] = v.before[i];
        spec->after[i] = after > 0 ? after : 0;
    }
    return TW_OK;
}

static tw_status lay_image(twi_prepare *p, tw_shape image, tw_shape filter, tw_shape output, int64_t *groups,
                           twi_dnnl_spec *spec)
{
    twi_convolution c;
    tw_status status = twi_convolution_lay(p->attrs, TWI_GROUPED, image, filter, output, &c, p->error);
    if (status != TW_OK)
        return status;
    *groups = c.groups;
    for (int i = 0; i < 2; i++) {
        spec->strides[i] = c.window.stride[i];
        spec->dilations[i] = c.window.dilation[i];
        spec->before[i] = c.window.before[i];
        spec->after[i] = c.window.after[i];
    }
    return TW_OK;
}

/* Lays the window and the filter, and refuses what oneDNN shall not do here. */
static tw_status lay(twi_prepare *p, const twi_operand *image, const twi_operand *filter, const twi_operand *output,
                     twi_dnnl_spec *spec)
{
    bool is_volume = image->shape.rank == TWI_VOLUME_AXES + 2;
    const char *order = is_volume ? "NDHWC" : "NHWC";
    int64_t groups = 1;
    if (strcmp(twi_attr_string(p->attrs, "data_format", order), order) != 0 || !twi_dnnl_has_type(image->dtype))
        return TW_UNIMPLEMENTED;
    if (image->elements == 0 || output->elements == 0 || filter->elements == 0)
        return TW_UNIMPLEMENTED;
    tw_status status = is_volume ? lay_volume(p, image->shape, filter->shape, spec)
                                 : lay_image(p, image->shape, filter->shape, output->shape, &groups, spec);
    if (status != TW_OK)
        return status;
    spec->weights = filter_tensor(filter->dtype, filter->shape, groups);
    spec->threads = p->threads;
    p->own_team = p->threads > 1;
    return TW_OK;
}

static void swap(int64_t pair[2])
{
    int64_t first = pair[0];
    pair[0] = pair[1];
    pair[1] = first;
}

/* A window as wide as the image, as over the words of a sentence, sees each row as one pixel of many channels, and the
 * rows as the pixels of one row: of single channels and of narrow images oneDNN 2 has slow convolutions only. */
static void fold_width(twi_dnnl_spec *s)
{
    twi_dnnl_tensor *tensors[] = {&s->src, &s->weights, &s->dst};
    int64_t width = s->src.dims[3];
    if (s->src.rank != 4 || s->weights.rank != 4 || width != s->weights.dims[3] || s->before[1] || s->after[1] ||
        s->dilations[1] != 1)
        return;
    for (int i = 0; i < 2; i++) {
        tensors[i]->dims[1] *= width;
        tensors[i]->dims[3] = 1;
    }
    for (int i = 0; i < 3; i++) {
        swap(tensors[i]->dims + 2);
        swap(tensors[i]->strides + 2);
        tensors[i]->strides[2] = tensors[i]->strides[3] * tensors[i]->dims[3];
    }
    s->strides[1] = 1;
    swap(s->strides);
    swap(s->dilations);
    swap(s->before);
    swap(s->after);
}

static void conv_release(void *state)
{
    conv_state *s = state;
    twi_dnnl_destroy(s->primitive);
    twi_free(s);
}

static tw_status build(twi_prepare *p, const twi_dnnl_spec *spec, conv_state **state)
{
    conv_state *s = twi_alloc(sizeof *s);
    if (!s)
        return twi_fail_memory(p->error, p->node);
    tw_status status = twi_dnnl_create(spec, &s->primitive, p->error);
    if (status != TW_OK) {
        twi_free(s);
        return status;
    }
    p->state = *state = s;
    p->workspace = twi_dnnl_workspace(s->primitive);
    return TW_OK;
}

/* Conv2D, Conv3D (input, filter), _FusedConv2D (input, filter, bias) */
static tw_status forward_prepare(twi_prepare *p)
{
    conv_state *s;
    twi_dnnl_spec spec = {.kind = TWI_DNNL_CONVOLUTION};
    tw_status status = lay(p, &p->inputs[0], &p->inputs[1], &p->outputs[0], &spec);
    if (status != TW_OK)
        return status;
    spec.src = image_tensor(&p->inputs[0]);
    if (p->num_inputs > 2)
        spec.bias = bias_tensor(&p->inputs[2]);
    spec.dst = image_tensor(&p->outputs[0]);
    spec.relu = twi_attr_bool(p->attrs, "relu", false);
    fold_width(&spec);
    return build(p, &spec, &s);
}

static tw_status forward_run(const twi_run *r)
{
    conv_state *s = r->state;
    return twi_dnnl_run(s->primitive, r->inputs[0], r->inputs[1], r->num_inputs > 2 ? r->inputs[2] : NULL,
                        r->outputs[0], r->workspace, r->error);
}

/* Conv2DBackpropInput, Conv3DBackpropInputV2 (input_sizes, filter, out_backprop)
 *
 * With stride 1 this is a convolution of the gradient with the filter flipped by 180 degrees and its channels
 * exchanged; oneDNN 2 runs that a fifth faster than its own backward primitive on NHWC. */
static tw_status input_gradient_prepare(twi_prepare *p)
{
    conv_state *s;
    const twi_operand *filter = &p->inputs[1], *dy = &p->inputs[2], *dx = &p->outputs[0];
    twi_dnnl_spec spec = {.kind = TWI_DNNL_CONVOLUTION_DATA};
    tw_status status = lay(p, dx, filter, dy, &spec);
    if (status != TW_OK)
        return status;

    spec.src = image_tensor(dx);
    spec.dst = image_tensor(dy);
    fold_width(&spec);
    bool as_forward = true;
    const twi_dnnl_tensor w = spec.weights;
    const int axes = spec.src.rank - 2;
    const int from = w.rank - axes - 2, to = from + 1, cells = from + 2; /* where its channels and sides are */
    int64_t before[3], after[3], taps = 1;
    for (int i = 0; i < axes; i++) {
        int64_t reach = (w.dims[cells + i] - 1) * spec.dilations[i];
        before[i] = reach - spec.before[i];
        after[i] = reach - spec.after[i];
        int64_t width = spec.dst.dims[i + 2]; /* oneDNN 3.7 gives zeros for bfloat16 where more than that is padding */
        as_forward = as_forward && spec.strides[i] == 1 && before[i] >= 0 && after[i] >= 0 && before[i] <= width;
        taps *= w.dims[cells + i];
    }
    if (!as_forward)
        return build(p, &spec, &s);

    twi_dnnl_tensor flipped = w;
    flipped.dims[from] = w.dims[to], flipped.dims[to] = w.dims[from];
    flipped.strides[from] = w.strides[to], flipped.strides[to] = w.strides[from];
    twi_dnnl_tensor dx_tensor = spec.src;
    spec.kind = TWI_DNNL_CONVOLUTION;
    spec.src = spec.dst;
    spec.dst = dx_tensor;
    spec.weights = flipped;
    memcpy(spec.before, before, (size_t)axes * sizeof *before);
    memcpy(spec.after, after, (size_t)axes * sizeof *after);
    status = build(p, &spec, &s);
    if (status != TW_OK)
        return status;
    s->as_forward = true;
    s->taps = taps;
    s->tap_bytes = filter->bytes / (size_t)s->taps;
    s->flipped = (p->workspace + 63) / 64 * 64;
    p->workspace = s->flipped + filter->bytes;
    return TW_OK;
}

static tw_status input_gradient_run(const twi_run *r)
{
    conv_state *s = r->state;
    if (!s->as_forward)
        return twi_dnnl_run(s->primitive, r->outputs[0], r->inputs[1], NULL, r->inputs[2], r->workspace, r->error);
    const char *filter = r->inputs[1];
    char *flipped = (char *)r->workspace + s->flipped;
    for (int64_t i = 0; i < s->taps; i++)
        memcpy(flipped + (size_t)i * s->tap_bytes, filter + (size_t)(s->taps - 1 - i) * s->tap_bytes, s->tap_bytes);
    return twi_dnnl_run(s->primitive, r->inputs[2], flipped, NULL, r->outputs[0], r->workspace, r->error);
}

/* Filters of one cell with strides: where there are fewer channels than in a vector, oneDNN 2.6 writes beyond the rows
 * that each thread has of its scratchpad, and gives other sums at each turn. */
static bool loses_channels(const twi_dnnl_spec *s)
{
    const twi_dnnl_tensor *w = &s->weights;
    const int axes = s->src.rank - 2;
    bool one_cell = true, strides = false;
    for (int i = 0; i < axes; i++) {
        one_cell = one_cell && w->dims[w->rank - 1 - i] == 1;
        strides = strides || s->strides[i] > 1;
    }
    return one_cell && strides && w->dims[w->rank - axes - 1] < VECTOR_CHANNELS;
}

/* Conv2DBackpropFilter, Conv3DBackpropFilterV2 (input, filter_sizes, out_backprop); _Conv2DBackpropFilterBias has a
 * second output. */
static tw_status filter_gradient_prepare(twi_prepare *p)
{
    conv_state *s;
    twi_dnnl_spec spec = {.kind = TWI_DNNL_CONVOLUTION_WEIGHTS};
    tw_status status = lay(p, &p->inputs[0], &p->outputs[0], &p->inputs[2], &spec);
    if (status != TW_OK)
        return status;
    spec.src = image_tensor(&p->inputs[0]);
    if (p->num_outputs > 1)
        spec.bias = bias_tensor(&p->outputs[1]);
    spec.dst = image_tensor(&p->inputs[2]);
    if (loses_channels(&spec))
        return TW_UNIMPLEMENTED;
    fold_width(&spec);
    return build(p, &spec, &s);
}

static tw_status filter_gradient_run(const twi_run *r)
{
    conv_state *s = r->state;
    return twi_dnnl_run(s->primitive, r->inputs[0], r->outputs[0], r->num_outputs > 1 ? r->outputs[1] : NULL,
                        r->inputs[2], r->workspace, r->error);
}

#define TYPES (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

const twi_kernel twi_onednn_conv_kernels[] = {
    {"Conv2D", "onednn", TYPES, forward_prepare, forward_run, conv_release, .shares = true},
    {"_FusedConv2D", "onednn", TYPES, forward_prepare, forward_run, conv_release, .shares = true},
    {"Conv2DBackpropInput", "onednn", TYPES, input_gradient_prepare, input_gradient_run, conv_release, .shares = true},
    {"Conv2DBackpropFilter", "onednn", TYPES, filter_gradient_prepare, filter_gradient_run, conv_release,
     .shares = true},
    {"_Conv2DBackpropFilterBias", "onednn", TYPES, filter_gradient_prepare, filter_gradient_run, conv_release,
     .shares = true},
    {"Conv3D", "onednn", TYPES, forward_prepare, forward_run, conv_release, .shares = true},
    {"Conv3DBackpropInputV2", "onednn", TYPES, input_gradient_prepare, input_gradient_run, conv_release,
     .shares = true},
    {"Conv3DBackpropFilterV2", "onednn", TYPES, filter_gradient_prepare, filter_gradient_run, conv_release,
     .shares = true},
    {0},
};
