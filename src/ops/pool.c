/* pool.c - maximum and average pooling: signatures, shapes, gradients, builders. */
#include "base/sized.h"
#include "ops/build.h"
#include "ops/window.h"
#include "ops/types.h"
#include "tensor/window.h"

/* ---- shape rules ------------------------------------------------------------------------------------------- */

/* What pooling makes of `image`, which must agree with `given`. */
static tw_status lay_pool(twi_inference *c, tw_shape image, tw_shape given, tw_shape *output)
{
    char texts[3][128];
    twi_window window;
    int n = c->num_inputs;
    bool has_attrs = twi_attr_find(c->attrs, "ksize");
    const tw_tensor *size = has_attrs ? NULL : twi_ask_value(c, n - 2);
    const tw_tensor *strides = has_attrs ? NULL : twi_ask_value(c, n - 1);
    *output = (tw_shape){4, {twi_dimension(image, 0), -1, -1, -1}};
    if (!has_attrs && !(size && strides))
        return TW_OK;
    tw_status status = has_attrs ? twi_window_lay(c->attrs, image, NULL, &window, c->error)
                                 : twi_window_lay_given(c->attrs, size, strides, image, &window, c->error);
    if (status != TW_OK)
        return status;
    tw_shape made = twi_window_output(&window, image, twi_dimension(image, window.channel_axis));
    if (twi_merge_shapes(made, given, output, NULL) == TW_OK)
        return TW_OK;
    return twi_fail(c->error, TW_INVALID_ARGUMENT, "pooling makes %s of image %s, but the output has shape %s",
                    tw_shape_text(made, texts[0], sizeof texts[0]), tw_shape_text(image, texts[1], sizeof texts[1]),
                    tw_shape_text(given, texts[2], sizeof texts[2]));
}

static tw_status pool_shape(twi_inference *c)
{
    return lay_pool(c, c->inputs[0], TW_UNKNOWN_SHAPE, &c->outputs[0]);
}

static tw_status max_pool_shape(twi_inference *c)
{
    twi_window window;
    tw_shape image = c->inputs[0];
    if (!twi_window_reaches_channels(c->attrs))
        return pool_shape(c);
    c->outputs[0] = (tw_shape){4, {twi_dimension(image, 0), -1, -1, -1}};
    if (!twi_window_is_over_channels(c->attrs)) /* it can be described, and read in a file, but has no kernel */
        return twi_expect_rank(c, 0, 4);
    tw_status status = twi_window_lay_over_channels(c->attrs, image, &window, c->error);
    if (status == TW_OK)
        c->outputs[0] = twi_window_output(&window, image, twi_dimension(image, window.channel_axis));
    return status;
}

/* x, y, dy: dx */
static tw_status max_pool_grad_shape(twi_inference *c)
{
    tw_shape output;
    tw_status status = twi_merge_shapes(c->inputs[1], c->inputs[2], &output, c->error);
    c->outputs[0] = c->inputs[0];
    return status == TW_OK ? lay_pool(c, c->inputs[0], output, &output) : status;
}

/* x, y, gradient of dx: gradient of dy */
static tw_status max_pool_grad_grad_shape(twi_inference *c)
{
    tw_shape image;
    tw_status status = twi_merge_shapes(c->inputs[0], c->inputs[2], &image, c->error);
    return status == TW_OK ? lay_pool(c, image, c->inputs[1], &c->outputs[0]) : status;
}

/* shape of x, dy: dx */
static tw_status avg_pool_grad_shape(twi_inference *c)
{
    tw_shape output;
    c->outputs[0] = twi_shape_of_value(twi_ask_value(c, 0));
    if (c->outputs[0].rank < 0)
        c->outputs[0] = (tw_shape){4, {twi_dimension(c->inputs[1], 0), -1, -1, -1}};
    return lay_pool(c, c->outputs[0], c->inputs[1], &output);
}

/* Beside the maxima where each lies: its number in its image, or in all of them. */
static tw_status max_pool_where_shape(twi_inference *c)
{
    tw_status status = pool_shape(c);
    c->outputs[1] = c->outputs[0];
    return status;
}

/* x, dy, places: dx */
static tw_status max_pool_grad_where_shape(twi_inference *c)
{
    tw_shape output;
    tw_status status = twi_merge_shapes(c->inputs[1], c->inputs[2], &output, c->error);
    c->outputs[0] = c->inputs[0];
    return status == TW_OK ? lay_pool(c, c->inputs[0], output, &output) : status;
}

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

/* What has its window and strides as its last inputs. */
static tw_output like_given(twi_gradient *g, const char *op, tw_output x, tw_output y, tw_output last)
{
    int n = tw_node_num_inputs(g->node);
    return twi_build_like(g->node, op, TWI_INPUTS(x, y, last, g->node->inputs[n - 2], g->node->inputs[n - 1]));
}

static void max_pool_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build_like(g->node, "MaxPoolGrad",
                              TWI_INPUTS(g->node->inputs[0], tw_node_output(g->node, 0), g->dy[0]));
}

static void max_pool_given_gradient(twi_gradient *g)
{
    g->dx[0] = like_given(g, "MaxPoolGradV2", g->node->inputs[0], tw_node_output(g->node, 0), g->dy[0]);
}

static void max_pool_grad_given_gradient(twi_gradient *g)
{
    g->dx[2] = like_given(g, "MaxPoolGradGradV2", g->node->inputs[0], g->node->inputs[1], g->dy[0]);
}

static void max_pool_grad_grad_given_gradient(twi_gradient *g)
{
    g->dx[2] = like_given(g, "MaxPoolGradV2", g->node->inputs[0], g->node->inputs[1], g->dy[0]);
}

static void max_pool_where_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build_like(g->node, "MaxPoolGradWithArgmax",
                              TWI_INPUTS(g->node->inputs[0], g->dy[0], tw_node_output(g->node, 1)));
}

/* Both are linear in their last input, and each other's transpose. */
static void max_pool_grad_gradient(twi_gradient *g)
{
    const tw_output *in = g->node->inputs;
    g->dx[2] = twi_build_like(g->node, "MaxPoolGradGrad", TWI_INPUTS(in[0], in[1], g->dy[0]));
}

static void max_pool_grad_grad_gradient(twi_gradient *g)
{
    const tw_output *in = g->node->inputs;
    g->dx[2] = twi_build_like(g->node, "MaxPoolGrad", TWI_INPUTS(in[0], in[1], g->dy[0]));
}

static void avg_pool_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build_like(g->node, "AvgPoolGrad",
                              TWI_INPUTS(twi_shape_tensor(g->graph, g->node->inputs[0]), g->dy[0]));
}

static void avg_pool_grad_gradient(twi_gradient *g)
{
    g->dx[1] = twi_build_like(g->node, "AvgPool", TWI_INPUTS(g->dy[0]));
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define FLOATS "T:{half,bfloat16,float,double}"
#define NUMBERS "T:{" TWI_REALS "}=float"
#define WINDOW "ksize:ints; strides:ints; data_format:{NHWC,NCHW}=NHWC; "
#define MAX_ATTRS WINDOW "padding:{SAME,VALID,EXPLICIT}; explicit_paddings:ints=[]; " NUMBERS
#define GIVEN_ATTRS "padding:{SAME,VALID}; data_format:{NHWC,NCHW}=NHWC; " NUMBERS
#define GIVEN "ksize:int32, strides:int32"
#define WHERE_ATTRS                                                                                                    \
    "ksize:ints; strides:ints; Targmax:{int32,int64}=int64; padding:{SAME,VALID}; include_batch_in_index:bool=false; " \
    "T:{" TWI_REALS "}"
#define AVG_ATTRS WINDOW "padding:{SAME,VALID}; " FLOATS

const twi_op twi_pool_ops[] = {
    {"MaxPool", "input:T", "output:T", MAX_ATTRS, max_pool_shape, max_pool_gradient, .layout = "i:i"},
    {"MaxPoolGrad", "orig_input:T, orig_output:T, grad:T", "output:T", MAX_ATTRS, max_pool_grad_shape,
     max_pool_grad_gradient, .layout = "iii:i"},
    {"MaxPoolGradGrad", "orig_input:T, orig_output:T, grad:T", "output:T", MAX_ATTRS, max_pool_grad_grad_shape,
     max_pool_grad_grad_gradient, .layout = "iii:i"},
    {"MaxPoolWithArgmax", "input:T", "output:T, argmax:Targmax", WHERE_ATTRS, max_pool_where_shape,
     max_pool_where_gradient, TWI_HOST_ONLY},
    {"MaxPoolGradWithArgmax", "input:T, grad:T, argmax:Targmax", "output:T", WHERE_ATTRS, max_pool_grad_where_shape,
     NULL, TWI_HOST_ONLY},
    {"MaxPoolV2", "input:T, " GIVEN, "output:T", GIVEN_ATTRS, pool_shape, max_pool_given_gradient, TWI_HOST_ONLY},
    {"MaxPoolGradV2", "orig_input:T, orig_output:T, grad:T, " GIVEN, "output:T", GIVEN_ATTRS, max_pool_grad_shape,
     max_pool_grad_given_gradient, TWI_HOST_ONLY},
    {"MaxPoolGradGradV2", "orig_input:T, orig_output:T, grad:T, " GIVEN, "output:T", GIVEN_ATTRS,
     max_pool_grad_grad_shape, max_pool_grad_grad_given_gradient, TWI_HOST_ONLY},
    {"AvgPool", "value:T", "output:T", AVG_ATTRS, pool_shape, avg_pool_gradient, .layout = "i:i"},
    {"AvgPoolGrad", "orig_input_shape:int32, grad:T", "output:T", AVG_ATTRS, avg_pool_grad_shape,
     avg_pool_grad_gradient, .layout = "si:i"},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------- */

static tw_output build_pool(tw_graph *graph, const char *op, tw_output images, const tw_pool_options *given)
{
    tw_pool_options whole, *options = &whole;
    TWI_TAKE_IN(graph, options, given, TWI_SIZE(tw_pool_options, explicit_padding), (tw_output){0});
    int64_t window[4], strides[4], paddings[8];
    twi_four(options->window, 0, window);
    twi_four(options->stride, 0, strides);
    for (int i = 1; i < 3; i++)
        strides[i] = strides[i] ? strides[i] : window[i];
    tw_attr attrs[4] = {tw_attr_ints("ksize", window, 4), tw_attr_ints("strides", strides, 4)};
    int count = 2 + twi_padding_attrs(options->padding, options->explicit_padding, paddings, attrs + 2);
    return twi_build(graph, op, TWI_INPUTS(images), attrs, count);
}

tw_output tw_max_pool(tw_graph *graph, tw_output images, const tw_pool_options *options)
{
    return build_pool(graph, "MaxPool", images, options);
}

tw_output tw_avg_pool(tw_graph *graph, tw_output images, const tw_pool_options *options)
{
    return build_pool(graph, "AvgPool", images, options);
}
