/* volume.c - convolutions and pools of volumes [N,D,H,W,C], and patches of images as rows: rows, shape rules and
 * gradient rules; dilations of images. Channels come last, as on CPUs in TensorFlow. */
#include "device/fused/volume.h"

#include "ops/rules.h"
#include "ops/types.h"

static tw_status check_format(twi_inference *c)
{
    if (strcmp(twi_attr_string(c->attrs, "data_format", "NDHWC"), "NDHWC") != 0)
        return twi_fail(c->error, TW_UNIMPLEMENTED, "data format NCDHW");
    return TW_OK;
}

/* Windows of `size` over `image`, and the shape of what they make with so many channels. */
static tw_status lay(twi_inference *c, const char *dilations, int axes, tw_shape image, const int64_t *size,
                     int64_t channels, tw_shape *made)
{
    static const int64_t unknown[TWI_VOLUME_AXES] = {-1, -1, -1};
    twi_volume v;
    const char *why = twi_volume_lay(c->attrs, dilations, axes, image.rank < 0 ? unknown : image.dims + 1, size, &v);
    if (why)
        return TWI_REFUSE(c, "%s", why);
    *made = twi_unknown_of_rank(axes + 2);
    made->dims[0] = image.rank < 0 ? -1 : image.dims[0];
    for (int i = 0; i < axes; i++)
        made->dims[i + 1] = v.out[i];
    made->dims[axes + 1] = channels;
    return TW_OK;
}

/* ---- convolutions ------------------------------------------------------------------------------------------ */

/* Of image [N,D,H,W,C] and filter [d,h,w,C,K]. */
static tw_status lay_conv(twi_inference *c, tw_shape image, tw_shape filter, tw_shape *made)
{
    int64_t merged;
    static const int64_t unknown[TWI_VOLUME_AXES] = {-1, -1, -1};
    tw_status status = check_format(c);
    if (status != TW_OK)
        return status;
    if ((image.rank >= 0 && image.rank != 5) || (filter.rank >= 0 && filter.rank != 5))
        return TWI_REFUSE(c, "volumes and filters have rank 5");
    if (image.rank == 5 && filter.rank == 5 && !twi_merge_dims(image.dims[4], filter.dims[3], &merged))
        return TWI_REFUSE(c, "the volume has %lld channels, the filter %lld", (long long)image.dims[4],
                          (long long)filter.dims[3]);
    return lay(c, "dilations", 3, image, filter.rank < 0 ? unknown : filter.dims, filter.rank < 0 ? -1 : filter.dims[4],
               made);
}

static tw_status conv_shape(twi_inference *c)
{
    return lay_conv(c, c->inputs[0], c->inputs[1], &c->outputs[0]);
}

/* The gradient that flows in is shaped as what the convolution makes. */
static tw_status check_made(twi_inference *c, tw_shape image, tw_shape filter, tw_shape given)
{
    tw_shape made, merged;
    tw_status status = lay_conv(c, image, filter, &made);
    return status == TW_OK ? twi_merge_shapes(made, given, &merged, c->error) : status;
}

static tw_status spelled(twi_inference *c, int i, tw_shape *shape)
{
    *shape = twi_ask_shape(c, i);
    for (int k = 0; c->input_values[i] && k < shape->rank; k++)
        if (shape->dims[k] < 0)
            return TWI_REFUSE(c, "dimension %d of the shape is negative", k);
    return TW_OK;
}

static tw_status conv_input_shape(twi_inference *c)
{
    tw_shape image;
    tw_status status = spelled(c, 0, &image);
    if (status == TW_OK)
        status = check_made(c, image, c->inputs[1], c->inputs[2]);
    c->outputs[0] = image.rank < 0 ? twi_unknown_of_rank(5) : image;
    return status;
}

static tw_status conv_filter_shape(twi_inference *c)
{
    tw_shape filter;
    tw_status status = spelled(c, 1, &filter);
    if (status == TW_OK)
        status = check_made(c, c->inputs[0], filter, c->inputs[2]);
    c->outputs[0] = filter.rank < 0 ? twi_unknown_of_rank(5) : filter;
    return status;
}

/* An op with the node's attributes, but for one that it does not have. */
static tw_output build_without(twi_gradient *g, const char *attr, const char *op, const tw_output *inputs,
                               int num_inputs)
{
    tw_attr attrs[TWI_MOST_LIKE];
    return twi_build(G, op, inputs, num_inputs, attrs, twi_attrs_like(g->node, attr, attrs));
}

/* A convolution and its two gradients are linear in each of what they are made of, and the gradients of each are the
 * other two. */
static tw_output conv(twi_gradient *g, tw_output image, tw_output filter)
{
    return build_without(g, "Tshape", "Conv3D", TWI_INPUTS(image, filter));
}

static tw_output by_input(twi_gradient *g, tw_output image, tw_output filter, tw_output dy)
{
    return build_without(g, "Tshape", "Conv3DBackpropInputV2", TWI_INPUTS(twi_shape_tensor(G, image), filter, dy));
}

static tw_output by_filter(twi_gradient *g, tw_output image, tw_output filter, tw_output dy)
{
    return build_without(g, "Tshape", "Conv3DBackpropFilterV2", TWI_INPUTS(image, twi_shape_tensor(G, filter), dy));
}

static void conv_gradient(twi_gradient *g)
{
    g->dx[0] = by_input(g, X(0), X(1), DY(0));
    g->dx[1] = by_filter(g, X(0), X(1), DY(0));
}

static void conv_input_gradient(twi_gradient *g)
{
    g->dx[1] = by_filter(g, DY(0), X(1), X(2));
    g->dx[2] = conv(g, DY(0), X(1));
}

static void conv_filter_gradient(twi_gradient *g)
{
    g->dx[0] = by_input(g, X(0), DY(0), X(2));
    g->dx[2] = conv(g, X(0), DY(0));
}

/* ---- pools ------------------------------------------------------------------------------------------------- */

static tw_status lay_pool(twi_inference *c, tw_shape image, tw_shape given, tw_shape *merged)
{
    int count;
    const int64_t *size = twi_attr_ints(c->attrs, "ksize", &count);
    tw_shape made;
    tw_status status = check_format(c);
    if (status != TW_OK)
        return status;
    if (count != 5 || size[0] != 1 || size[4] != 1 || size[1] < 1 || size[2] < 1 || size[3] < 1)
        return TWI_REFUSE(c, "ksize has 5 numbers, 1 for batch and channels");
    if (image.rank >= 0 && image.rank != 5)
        return TWI_REFUSE(c, "volumes have rank 5, not %d", image.rank);
    status = lay(c, "dilations", 3, image, size + 1, image.rank < 0 ? -1 : image.dims[4], &made);
    return status == TW_OK ? twi_merge_shapes(made, given, merged, c->error) : status;
}

static tw_status pool_shape(twi_inference *c)
{
    return lay_pool(c, c->inputs[0], TW_UNKNOWN_SHAPE, &c->outputs[0]);
}

static tw_status max_pool_grad_shape(twi_inference *c)
{
    tw_shape made;
    tw_dtype type = twi_attr_type(c->attrs, "T"), pooled = twi_attr_type(c->attrs, "TInput");
    if (type != pooled)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "the gradient has type %s, and what was pooled type %s",
                        tw_dtype_name(type), tw_dtype_name(pooled));
    tw_status status = twi_merge_shapes(c->inputs[1], c->inputs[2], &made, c->error);
    c->outputs[0] = c->inputs[0];
    return status == TW_OK ? lay_pool(c, c->inputs[0], made, &made) : status;
}

static tw_status avg_pool_grad_shape(twi_inference *c)
{
    tw_shape image, made;
    tw_status status = spelled(c, 0, &image);
    c->outputs[0] = image.rank < 0 ? twi_unknown_of_rank(5) : image;
    return status == TW_OK ? lay_pool(c, image, c->inputs[1], &made) : status;
}

/* x, y, a gradient shaped as x: shaped as y */
static tw_status max_pool_grad_grad_shape(twi_inference *c)
{
    tw_shape image;
    tw_status status = twi_merge_shapes(c->inputs[0], c->inputs[2], &image, c->error);
    return status == TW_OK ? lay_pool(c, image, c->inputs[1], &c->outputs[0]) : status;
}

/* T is of the gradient, and TInput of what was pooled. */
static tw_output max_pool_grad(twi_gradient *g, tw_output x, tw_output y, tw_output dy)
{
    tw_attr attrs[TWI_MOST_LIKE + 1];
    int count = twi_attrs_like(g->node, NULL, attrs);
    attrs[count++] = tw_attr_type("TInput", tw_output_dtype(x));
    return twi_build(G, "MaxPool3DGrad", TWI_INPUTS(x, y, dy), attrs, count);
}

static void max_pool_gradient(twi_gradient *g)
{
    g->dx[0] = max_pool_grad(g, X(0), Y(0), DY(0));
}

/* Both are linear in their last input, and each other's transpose. */
static void max_pool_grad_gradient(twi_gradient *g)
{
    g->dx[2] = build_without(g, "TInput", "MaxPool3DGradGrad", TWI_INPUTS(X(0), X(1), DY(0)));
}

static void max_pool_grad_grad_gradient(twi_gradient *g)
{
    g->dx[2] = max_pool_grad(g, X(0), X(1), DY(0));
}

static void avg_pool_grad_gradient(twi_gradient *g)
{
    g->dx[1] = twi_build_like(g->node, "AvgPool3D", TWI_INPUTS(DY(0)));
}

static void avg_pool_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build_like(g->node, "AvgPool3DGrad", TWI_INPUTS(twi_shape_tensor(G, X(0)), DY(0)));
}

/* ---- patches ----------------------------------------------------------------------------------------------- */

static tw_status lay_patches(twi_inference *c, int axes)
{
    int count;
    const int64_t *size = twi_attr_ints(c->attrs, "ksizes", &count);
    tw_shape in = c->inputs[0];
    tw_status status = twi_expect_rank(c, 0, axes + 2);
    if (status != TW_OK)
        return status;
    bool fits = count == axes + 2 && size[0] == 1 && size[axes + 1] == 1;
    for (int i = 1; i <= axes && fits; i++)
        fits = size[i] >= 1 && size[i] <= INT16_MAX;
    if (!fits)
        return TWI_REFUSE(c, "ksizes has %d numbers, 1 for batch and channels", axes + 2);
    int64_t depth = in.rank < 0 ? -1 : in.dims[axes + 1];
    if (depth > INT32_MAX)
        return TWI_REFUSE(c, "%lld channels are too many", (long long)depth);
    for (int i = 1; i <= axes && depth > 0; i++)
        if (__builtin_mul_overflow(depth, size[i], &depth))
            return TWI_REFUSE(c, "patches of more numbers than can be counted");
    return lay(c, "rates", axes, in, size + 1, depth, &c->outputs[0]);
}

static tw_status patches_shape(twi_inference *c)
{
    return lay_patches(c, 2);
}

static tw_status volume_patches_shape(twi_inference *c)
{
    return lay_patches(c, 3);
}

/* A patch is what a convolution by filters of a single 1 makes, one for each place and channel; so its gradient is.
 * Without a node: the channels are not known. */
static tw_output unit_filter(twi_gradient *g, int axes)
{
    int count;
    const int64_t *size = twi_attr_ints(&g->node->attrs, "ksizes", &count);
    tw_shape in = tw_output_shape(X(0)), shape = {.rank = axes + 2};
    int64_t channels = in.rank == axes + 2 ? in.dims[axes + 1] : -1, depth = channels;
    if (channels < 0) {
        twi_graph_fail(G, TW_UNIMPLEMENTED, "the gradient of %s '%s' needs to know the channels", g->node->op->name,
                       g->node->name);
        return (tw_output){0};
    }
    for (int i = 0; i < axes; i++)
        depth *= shape.dims[i] = size[i + 1];
    shape.dims[axes] = channels;
    shape.dims[axes + 1] = depth;
    tw_output ones = tw_fill(G, twi_constant_ints(G, &depth, 1), twi_number_like(g, DY(0), 1));
    return tw_reshape(G, twi_unary(g, "MatrixDiag", ones), shape);
}

static void volume_patches_gradient(twi_gradient *g)
{
    int count;
    const int64_t *strides = twi_attr_ints(&g->node->attrs, "strides", &count);
    tw_output filter = unit_filter(g, 3);
    if (filter.node)
        g->dx[0] =
            twi_build(G, "Conv3DBackpropInputV2", TWI_INPUTS(twi_shape_tensor(G, X(0)), filter, DY(0)),
                      TWI_ATTRS(tw_attr_ints("strides", strides, 5),
                                tw_attr_string("padding", twi_attr_string(&g->node->attrs, "padding", "VALID"))));
}

static void patches_gradient(twi_gradient *g)
{
    int count;
    const int64_t *strides = twi_attr_ints(&g->node->attrs, "strides", &count);
    const int64_t *rates = twi_attr_ints(&g->node->attrs, "rates", &count);
    tw_output filter = unit_filter(g, 2);
    if (!filter.node)
        return;
    g->dx[0] = twi_build(G, "Conv2DBackpropInput", TWI_INPUTS(twi_shape_tensor(G, X(0)), filter, DY(0)),
                         TWI_ATTRS(tw_attr_ints("strides", strides, 4), tw_attr_ints("dilations", rates, 4),
                                   tw_attr_string("padding", twi_attr_string(&g->node->attrs, "padding", "VALID"))));
}

/* ---- morphology -------------------------------------------------------------------------------------------- */

/* image [N,H,W,C], filter [h,w,C]: of each window the largest sum of a pixel and its tap */
static tw_status lay_dilation(twi_inference *c, tw_shape *made)
{
    static const int64_t unknown[TWI_VOLUME_AXES] = {-1, -1, -1};
    tw_shape image = c->inputs[0], filter = c->inputs[1];
    int64_t channels = image.rank == 4 ? image.dims[3] : -1;
    tw_status status = twi_expect_rank(c, 0, 4);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 3);
    if (status == TW_OK && filter.rank == 3 && !twi_merge_dims(channels, filter.dims[2], &channels))
        return TWI_REFUSE(c, "the image has %lld channels, the filter %lld", (long long)image.dims[3],
                          (long long)filter.dims[2]);
    return status == TW_OK ? lay(c, "rates", 2, image, filter.rank < 0 ? unknown : filter.dims, channels, made) : status;
}

static tw_status dilation_shape(twi_inference *c)
{
    return lay_dilation(c, &c->outputs[0]);
}

/* image, filter, dy: the gradient of either */
static tw_status dilation_grad_shape(twi_inference *c, int of)
{
    tw_shape made, merged;
    tw_status status = lay_dilation(c, &made);
    c->outputs[0] = c->inputs[of];
    return status == TW_OK ? twi_merge_shapes(made, c->inputs[2], &merged, c->error) : status;
}

static tw_status dilation_input_shape(twi_inference *c)
{
    return dilation_grad_shape(c, 0);
}

static tw_status dilation_filter_shape(twi_inference *c)
{
    return dilation_grad_shape(c, 1);
}

static void dilation_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build_like(g->node, "Dilation2DBackpropInput", TWI_INPUTS(X(0), X(1), DY(0)));
    g->dx[1] = twi_build_like(g->node, "Dilation2DBackpropFilter", TWI_INPUTS(X(0), X(1), DY(0)));
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define FORMAT "padding:{SAME,VALID}; data_format:{NDHWC,NCDHW}=NDHWC"
#define CONV "T:{half,bfloat16,float,double}; strides:ints>=5; " FORMAT "; dilations:ints=[1,1,1,1,1]"
#define DILATION "T:{half,bfloat16,float,double}; strides:ints>=4; rates:ints>=4; padding:{SAME,VALID}"
#define POOL "ksize:ints>=5; strides:ints>=5; " FORMAT

const twi_op twi_volume_ops[] = {
    {"Conv3D", "input:T, filter:T", "output:T", CONV, conv_shape, conv_gradient},
    {"Conv3DBackpropInputV2", "input_sizes:Tshape, filter:T, out_backprop:T", "output:T",
     CONV "; Tshape:{int32,int64}=int32", conv_input_shape, conv_input_gradient},
    {"Conv3DBackpropFilterV2", "input:T, filter_sizes:int32, out_backprop:T", "output:T", CONV, conv_filter_shape,
     conv_filter_gradient},
    {"MaxPool3D", "input:T", "output:T", POOL "; T:{half,bfloat16,float}", pool_shape, max_pool_gradient},
    {"MaxPool3DGrad", "orig_input:TInput, orig_output:TInput, grad:T", "output:T",
     POOL "; T:{half,bfloat16,float}=float; TInput:{half,bfloat16,float}=float", max_pool_grad_shape,
     max_pool_grad_gradient},
    {"MaxPool3DGradGrad", "orig_input:T, orig_output:T, grad:T", "output:T", POOL "; T:{half,bfloat16,float}",
     max_pool_grad_grad_shape, max_pool_grad_grad_gradient},
    {"AvgPool3D", "input:T", "output:T", POOL "; T:{half,bfloat16,float,double}", pool_shape, avg_pool_gradient},
    {"AvgPool3DGrad", "orig_input_shape:int32, grad:T", "output:T", POOL "; T:{half,bfloat16,float,double}",
     avg_pool_grad_shape, avg_pool_grad_gradient},
    {"ExtractImagePatches", "images:T", "patches:T",
     "ksizes:ints>=4; strides:ints>=4; rates:ints>=4; T:{bool," TWI_REALS "}; "
     "padding:{SAME,VALID}",
     patches_shape, patches_gradient},
    {"ExtractVolumePatches", "input:T", "patches:T",
     "ksizes:ints>=5; strides:ints>=5; T:{" TWI_REALS "}; padding:{SAME,VALID}", volume_patches_shape,
     volume_patches_gradient, TWI_HOST_ONLY},
    {"Dilation2D", "input:T, filter:T", "output:T", DILATION, dilation_shape, dilation_gradient, TWI_HOST_ONLY},
    {"Dilation2DBackpropInput", "input:T, filter:T, out_backprop:T", "in_backprop:T", DILATION, dilation_input_shape,
     NULL, TWI_HOST_ONLY},
    {"Dilation2DBackpropFilter", "input:T, filter:T, out_backprop:T", "filter_backprop:T", DILATION,
     dilation_filter_shape, NULL, TWI_HOST_ONLY},
    {0},
};
