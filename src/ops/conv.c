/* conv.c - convolutions and biases: signatures, shapes, gradients, builders. */
#include "base/sized.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/window.h"
#include "ops/types.h"
#include "tensor/window.h"

#include <string.h>

/* ---- shape rules ------------------------------------------------------------------------------------------- */

static twi_filters filters_of(const twi_inference *c)
{
    return twi_attr_find(c->attrs, "use_cudnn_on_gpu") ? TWI_GROUPED : TWI_DEPTHWISE; /* which has none */
}

static tw_status conv_shape(twi_inference *c)
{
    twi_convolution laid;
    tw_status status = twi_convolution_lay(c->attrs, filters_of(c), c->inputs[0], c->inputs[1], TW_UNKNOWN_SHAPE,
                                           &laid, c->error);
    if (status == TW_OK)
        c->outputs[0] = twi_window_output(&laid.window, c->inputs[0], laid.out_channels);
    return status;
}

/* The shape that input `input` spells, of rank 4. */
static tw_status spelt_shape(twi_inference *c, int input, tw_shape *shape)
{
    char text[128];
    *shape = twi_ask_shape(c, input);
    if (shape->rank < 0)
        *shape = (tw_shape){4, {-1, -1, -1, -1}};
    if (shape->rank == 4)
        return TW_OK;
    return twi_fail(c->error, TW_INVALID_ARGUMENT, "input %d must spell a shape of rank 4, not %s", input,
                    tw_shape_text(*shape, text, sizeof text));
}

static tw_status conv_backprop_input_shape(twi_inference *c)
{
    twi_convolution laid;
    tw_status status = spelt_shape(c, 0, &c->outputs[0]);
    if (status == TW_OK && c->outputs[0].dims[0] < 0)
        c->outputs[0].dims[0] = twi_dimension(c->inputs[2], 0);
    if (status == TW_OK)
        status = twi_convolution_lay(c->attrs, filters_of(c), c->outputs[0], c->inputs[1], c->inputs[2], &laid,
                                     c->error);
    if (status == TW_OK)
        c->outputs[0].dims[laid.window.channel_axis] = laid.in_channels;
    return status;
}

static tw_status conv_backprop_filter_shape(twi_inference *c)
{
    twi_convolution laid;
    tw_status status = spelt_shape(c, 1, &c->outputs[0]);
    if (status != TW_OK)
        return status;
    return twi_convolution_lay(c->attrs, filters_of(c), c->inputs[0], c->outputs[0], c->inputs[2], &laid, c->error);
}

static int channel_axis(const twi_inference *c)
{
    return strcmp(twi_attr_string(c->attrs, "data_format", "NHWC"), "NCHW") == 0 ? 1 : c->inputs[0].rank - 1;
}

static tw_status expect_channels(twi_inference *c)
{
    char text[128];
    if (c->inputs[0].rank >= 0 && c->inputs[0].rank < 2)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "the value must have at least rank 2, got shape %s",
                        tw_shape_text(c->inputs[0], text, sizeof text));
    return TW_OK;
}

tw_status twi_bias_add_shape(twi_inference *c)
{
    char texts[2][128];
    tw_status status = expect_channels(c);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 1);
    if (status != TW_OK)
        return status;
    c->outputs[0] = c->inputs[0];
    if (c->inputs[0].rank < 0)
        return TW_OK;
    int64_t *channels = &c->outputs[0].dims[channel_axis(c)], length = twi_dimension(c->inputs[1], 0);
    if (*channels >= 0 && length >= 0 && *channels != length)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "value %s has %lld channels, the bias has shape %s",
                        tw_shape_text(c->inputs[0], texts[0], sizeof texts[0]), (long long)*channels,
                        tw_shape_text(c->inputs[1], texts[1], sizeof texts[1]));
    if (*channels < 0)
        *channels = length;
    return TW_OK;
}

static tw_status bias_add_grad_shape(twi_inference *c)
{
    c->outputs[0] = (tw_shape){1, {-1}};
    if (c->inputs[0].rank > 0)
        c->outputs[0].dims[0] = c->inputs[0].dims[channel_axis(c)];
    return expect_channels(c);
}

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

/* y = x * w is linear in both, so each of the three ops has the other two as its gradients. */

static tw_output backprop_input(twi_gradient *g, const char *op, tw_output x, tw_output filter, tw_output dy)
{
    return twi_build_like(g->node, op, TWI_INPUTS(twi_shape_tensor(g->graph, x), filter, dy));
}

static tw_output backprop_filter(twi_gradient *g, const char *op, tw_output x, tw_output filter, tw_output dy)
{
    return twi_build_like(g->node, op, TWI_INPUTS(x, twi_shape_tensor(g->graph, filter), dy));
}

static void conv2d_gradient(twi_gradient *g)
{
    const tw_output *in = g->node->inputs; /* x, filter */
    g->dx[0] = backprop_input(g, "Conv2DBackpropInput", in[0], in[1], g->dy[0]);
    g->dx[1] = backprop_filter(g, "Conv2DBackpropFilter", in[0], in[1], g->dy[0]);
}

static void conv2d_backprop_input_gradient(twi_gradient *g)
{
    const tw_output *in = g->node->inputs; /* shape, filter, dy */
    g->dx[1] = backprop_filter(g, "Conv2DBackpropFilter", g->dy[0], in[1], in[2]);
    g->dx[2] = twi_build_like(g->node, "Conv2D", TWI_INPUTS(g->dy[0], in[1]));
}

static void conv2d_backprop_filter_gradient(twi_gradient *g)
{
    const tw_output *in = g->node->inputs; /* x, shape, dy */
    g->dx[0] = backprop_input(g, "Conv2DBackpropInput", in[0], g->dy[0], in[2]);
    g->dx[2] = twi_build_like(g->node, "Conv2D", TWI_INPUTS(in[0], g->dy[0]));
}

#define DEPTHWISE "DepthwiseConv2dNative"

static void depthwise_gradient(twi_gradient *g)
{
    const tw_output *in = g->node->inputs;
    g->dx[0] = backprop_input(g, DEPTHWISE "BackpropInput", in[0], in[1], g->dy[0]);
    g->dx[1] = backprop_filter(g, DEPTHWISE "BackpropFilter", in[0], in[1], g->dy[0]);
}

static void depthwise_backprop_input_gradient(twi_gradient *g)
{
    const tw_output *in = g->node->inputs;
    g->dx[1] = backprop_filter(g, DEPTHWISE "BackpropFilter", g->dy[0], in[1], in[2]);
    g->dx[2] = twi_build_like(g->node, DEPTHWISE, TWI_INPUTS(g->dy[0], in[1]));
}

static void depthwise_backprop_filter_gradient(twi_gradient *g)
{
    const tw_output *in = g->node->inputs;
    g->dx[0] = backprop_input(g, DEPTHWISE "BackpropInput", in[0], g->dy[0], in[2]);
    g->dx[2] = twi_build_like(g->node, DEPTHWISE, TWI_INPUTS(in[0], g->dy[0]));
}

static void bias_add_gradient(twi_gradient *g)
{
    g->dx[0] = g->dy[0];
    g->dx[1] = twi_build_like(g->node, "BiasAddGrad", TWI_INPUTS(g->dy[0]));
}

/* The sum over all but the channels gives each of its terms the gradient: a bias on zeros. */
static void bias_add_grad_gradient(twi_gradient *g)
{
    tw_output zeros = tw_zeros_like(g->graph, g->node->inputs[0]);
    g->dx[0] = twi_build_like(g->node, "BiasAdd", TWI_INPUTS(zeros, g->dy[0]));
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define FLOATS "T:{half,bfloat16,float,double}"
#define NUMBERS "T:{" TWI_REALS "," TWI_COMPLEX "}"
#define FORMAT "data_format:{NHWC,NCHW}=NHWC"
#define PADDING "padding:{SAME,VALID,EXPLICIT}; explicit_paddings:ints=[]"
#define CONV_ATTRS FLOATS "; strides:ints; use_cudnn_on_gpu:bool=true; " PADDING "; " FORMAT "; dilations:ints=[1,1,1,1]"
#define DEPTHWISE_ATTRS FLOATS "; strides:ints; " PADDING "; " FORMAT "; dilations:ints=[1,1,1,1]"

const twi_op twi_conv_ops[] = {
    {"Conv2D", "input:T, filter:T", "output:T", CONV_ATTRS, conv_shape, conv2d_gradient, .layout = "i.:i"},
    {"Conv2DBackpropInput", "input_sizes:int32, filter:T, out_backprop:T", "output:T", CONV_ATTRS,
     conv_backprop_input_shape, conv2d_backprop_input_gradient, .layout = "s.i:i"},
    {"Conv2DBackpropFilter", "input:T, filter_sizes:int32, out_backprop:T", "output:T", CONV_ATTRS,
     conv_backprop_filter_shape, conv2d_backprop_filter_gradient, .layout = "i.i:."},
    {DEPTHWISE, "input:T, filter:T", "output:T", DEPTHWISE_ATTRS, conv_shape, depthwise_gradient, .layout = "i.:i"},
    {DEPTHWISE "BackpropInput", "input_sizes:int32, filter:T, out_backprop:T", "output:T", DEPTHWISE_ATTRS,
     conv_backprop_input_shape, depthwise_backprop_input_gradient, .layout = "s.i:i"},
    {DEPTHWISE "BackpropFilter", "input:T, filter_sizes:int32, out_backprop:T", "output:T", DEPTHWISE_ATTRS,
     conv_backprop_filter_shape, depthwise_backprop_filter_gradient, .layout = "i.i:."},
    {"BiasAdd", "value:T, bias:T", "output:T", NUMBERS "; " FORMAT, twi_bias_add_shape, bias_add_gradient, .layout = "i.:i"},
    {"BiasAddV1", "value:T, bias:T", "output:T", NUMBERS, twi_bias_add_shape, bias_add_gradient},
    {"BiasAddGrad", "out_backprop:T", "output:T", NUMBERS "; " FORMAT, bias_add_grad_shape, bias_add_grad_gradient,
     .layout = "i:."},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------- */

static tw_output build_conv(tw_graph *graph, const char *op, tw_output images, tw_output filter,
                            const tw_conv2d_options *given)
{
    tw_conv2d_options whole, *options = &whole;
    TWI_TAKE_IN(graph, options, given, TWI_SIZE(tw_conv2d_options, explicit_padding), (tw_output){0});
    int64_t strides[4], dilations[4], paddings[8];
    twi_four(options->stride, 1, strides);
    twi_four(options->dilation, 1, dilations);
    tw_attr attrs[4] = {tw_attr_ints("strides", strides, 4), tw_attr_ints("dilations", dilations, 4)};
    int count = 2 + twi_padding_attrs(options->padding, options->explicit_padding, paddings, attrs + 2);
    return twi_build(graph, op, TWI_INPUTS(images, filter), attrs, count);
}

tw_output tw_conv2d(tw_graph *graph, tw_output images, tw_output filter, const tw_conv2d_options *options)
{
    return build_conv(graph, "Conv2D", images, filter, options);
}

tw_output tw_depthwise_conv2d(tw_graph *graph, tw_output images, tw_output filter, const tw_conv2d_options *options)
{
    return build_conv(graph, DEPTHWISE, images, filter, options);
}

tw_output tw_bias_add(tw_graph *graph, tw_output value, tw_output bias)
{
    return twi_build(graph, "BiasAdd", TWI_INPUTS(value, bias), TWI_NO_ATTRS);
}
