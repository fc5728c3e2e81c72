/* normalization.c - LRN and batch normalization: signatures, shapes, gradients, builders. */
#include "ops/build.h"

#include <string.h>
#include <tower/nn.h>

/* ---- shape rules ------------------------------------------------------------------------------------------- */

static tw_status lrn_shape(twi_inference *c)
{
    char text[128];
    tw_shape all = {4, {-1, -1, -1, -1}};
    for (int i = 0; i < c->num_inputs; i++)
        if (twi_merge_shapes(all, c->inputs[i], &all, NULL) != TW_OK)
            return twi_fail(c->error, TW_INVALID_ARGUMENT,
                            "inputs must be images of one shape [N,H,W,C]; input %d has shape %s", i,
                            tw_shape_text(c->inputs[i], text, sizeof text));
    if (twi_attr_int(c->attrs, "depth_radius", 5) < 0)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "depth_radius must not be negative, is %lld",
                        (long long)twi_attr_int(c->attrs, "depth_radius", 5));
    c->outputs[0] = all;
    return TW_OK;
}

/* Of batch normalization's data_format: NHWC, NCHW, and for volumes NDHWC and NCDHW. */
static const char *format_of(const twi_attrs *attrs)
{
    return twi_attr_string(attrs, "data_format", "NHWC");
}

/* Merges the shape of images or volumes from inputs 0 to num_images - 1, and its channels with the vectors among the
 * inputs from there on. */
static tw_status merge_images(twi_inference *c, int num_images, int num_vectors, tw_shape *images, tw_shape *vector)
{
    char texts[2][128];
    const char *format = format_of(c->attrs);
    *images = (tw_shape){(int)strlen(format), {-1, -1, -1, -1, -1}};
    for (int i = 0; i < num_images; i++)
        if (twi_merge_shapes(*images, c->inputs[i], images, NULL) != TW_OK)
            return twi_fail(c->error, TW_INVALID_ARGUMENT, "input %d must be images of shape %s, got shape %s", i,
                            tw_shape_text(*images, texts[0], sizeof texts[0]),
                            tw_shape_text(c->inputs[i], texts[1], sizeof texts[1]));
    int64_t *channels = &images->dims[strchr(format, 'C') - format];
    *vector = (tw_shape){1, {*channels}};
    for (int i = num_images; i < num_images + num_vectors; i++)
        if (twi_merge_shapes(*vector, c->inputs[i], vector, NULL) != TW_OK)
            return twi_fail(c->error, TW_INVALID_ARGUMENT, "input %d must have one entry a channel, shape %s, got %s",
                            i, tw_shape_text(*vector, texts[0], sizeof texts[0]),
                            tw_shape_text(c->inputs[i], texts[1], sizeof texts[1]));
    *channels = vector->dims[0];
    return TW_OK;
}

/* x, scale, offset, mean, variance: y, four vectors [C] and, in version 3, an empty one without meaning. In training
 * mean and variance are not read and usually empty. */
static tw_status batch_norm_shape(twi_inference *c)
{
    bool training = twi_attr_bool(c->attrs, "is_training", true);
    tw_shape images, vector;
    tw_status status = merge_images(c, 1, training ? 2 : 4, &images, &vector);
    if (status != TW_OK)
        return status;
    c->outputs[0] = images;
    for (int i = 1; i < 5; i++)
        c->outputs[i] = vector;
    if (c->num_outputs > 5)
        c->outputs[5] = TW_SHAPE(0);
    return TW_OK;
}

/* dy, x, scale, mean, variance and, in version 3, the empty one: dx, dscale, doffset, two zeros */
static tw_status batch_norm_grad_shape(twi_inference *c)
{
    tw_shape images, vector;
    tw_status status = merge_images(c, 2, 3, &images, &vector);
    if (status != TW_OK)
        return status;
    c->outputs[0] = images;
    c->outputs[1] = c->outputs[2] = vector;
    c->outputs[3] = c->outputs[4] = TW_SCALAR;
    return TW_OK;
}

/* x, mean, variance, offset, scale: y; what batch normalization was before 2016 */
static tw_status global_norm_shape(twi_inference *c)
{
    tw_shape vector;
    return merge_images(c, 1, 4, &c->outputs[0], &vector);
}

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

static void lrn_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build_like(g->node, "LRNGrad",
                              TWI_INPUTS(g->dy[0], g->node->inputs[0], tw_node_output(g->node, 0)));
}

/* Batch mean and variance pass no gradient on, as in TensorFlow. */
static void batch_norm_gradient_by(twi_gradient *g, const char *op, bool third_version)
{
    const tw_output *in = g->node->inputs;
    bool training = twi_attr_bool(&g->node->attrs, "is_training", true);
    if (!g->dy[0].node)
        return;
    tw_output inputs[6] = {g->dy[0], in[0], in[1], training ? tw_node_output(g->node, 3) : in[3],
                           training ? tw_node_output(g->node, 4) : in[4]};
    if (third_version)
        inputs[5] = tw_node_output(g->node, 5);
    tw_node *node = twi_build_like(g->node, op, inputs, third_version ? 6 : 5).node;
    for (int i = 0; node && i < 3; i++)
        g->dx[i] = tw_node_output(node, i);
}

static void batch_norm_gradient(twi_gradient *g)
{
    batch_norm_gradient_by(g, "FusedBatchNormGrad", false);
}

static void batch_norm_v2_gradient(twi_gradient *g)
{
    batch_norm_gradient_by(g, "FusedBatchNormGradV2", false);
}

static void batch_norm_v3_gradient(twi_gradient *g)
{
    batch_norm_gradient_by(g, "FusedBatchNormGradV3", true);
}

/* What the gradient of a batch normalization's gradient is made with: n pixels of each channel. */
typedef struct pixels {
    tw_graph *graph;
    const int *axes; /* all but that of channels */
    int count;       /* of axes */
    bool channels_first;
} pixels;

static tw_output mean_of(const pixels *p, tw_output x, tw_output y)
{
    return tw_reduce_mean(p->graph, y.node ? tw_mul(p->graph, x, y) : x, p->axes, p->count, false);
}

/* A number a channel, as something to broadcast along the pixels. */
static tw_output spread(const pixels *p, tw_output vector)
{
    tw_shape column = {p->count, {-1, 1, 1, 1}};
    return p->channels_first ? tw_reshape(p->graph, vector, column) : vector;
}

static tw_output scaled(const pixels *p, tw_output x, tw_output vector)
{
    return tw_mul(p->graph, x, spread(p, vector));
}

/* What of g is neither constant along the pixels nor a multiple of z: g - mean(g) - z mean(g z). */
static tw_output left_over(const pixels *p, tw_output g, tw_output z)
{
    tw_output rest = tw_sub(p->graph, g, spread(p, mean_of(p, g, (tw_output){0})));
    return tw_sub(p->graph, rest, scaled(p, z, mean_of(p, g, z)));
}

/* With z = (x - mean) r, r = 1 / sqrt(variance + epsilon) and R(g) = g - mean(g) - z mean(g z), a batch
 * normalization's gradients are dx = scale r R(dy), dscale = sum(dy z) and doffset = sum(dy); where mean and variance
 * are given, R(g) is g. Of those G, s and o come in. Then L = scale r sum(G R(dy)) + sum(dy (s z + o)) is what is
 * differentiated, for dy and scale, and for x by z and by r, which both have x in them: dr = -r^2 z dx / n. */
static void batch_norm_grad_gradient(twi_gradient *g)
{
    static const int last[] = {0, 1, 2, 3}, first[] = {0, 2, 3, 4};
    const tw_output *in = g->node->inputs, none = {0};
    const char *format = format_of(&g->node->attrs);
    bool channels_first = format[1] == 'C';
    bool training = twi_attr_bool(&g->node->attrs, "is_training", true);
    tw_graph *graph = g->graph;
    pixels p = {graph, channels_first ? first : last, (int)strlen(format) - 1, channels_first};
    tw_output dy = tw_cast(graph, in[0], TW_FLOAT32), x = tw_cast(graph, in[1], TW_FLOAT32), scale = in[2];
    tw_output epsilon = tw_scalar_of(graph, TW_FLOAT32, (double)twi_attr_float(&g->node->attrs, "epsilon", 0.0001f));
    tw_output centred = tw_sub(graph, x, spread(&p, training ? mean_of(&p, x, none) : in[3]));
    tw_output variance = training ? mean_of(&p, centred, centred) : in[4];
    tw_output r = tw_rsqrt(graph, tw_add(graph, variance, epsilon)), z = scaled(&p, centred, r);
    tw_output G = g->dy[0].node ? tw_cast(graph, g->dy[0], TW_FLOAT32) : tw_zeros_like(graph, x);
    tw_output s = g->dy[1].node ? g->dy[1] : tw_zeros_like(graph, scale);
    tw_output o = g->dy[2].node ? g->dy[2] : tw_zeros_like(graph, scale), factor = tw_mul(graph, scale, r);
    tw_output rest = training ? left_over(&p, dy, z) : dy;
    tw_output to_dy = scaled(&p, training ? left_over(&p, G, z) : G, factor);
    to_dy = tw_add(graph, to_dy, tw_add(graph, scaled(&p, z, s), spread(&p, o)));
    tw_output to_z = scaled(&p, dy, s), to_x = scaled(&p, to_z, r);
    if (training) {
        tw_output products = tw_add(graph, scaled(&p, dy, mean_of(&p, G, z)), scaled(&p, G, mean_of(&p, dy, z)));
        to_z = tw_sub(graph, to_z, scaled(&p, products, factor));
        tw_output by_r = tw_mul(graph, tw_mul(graph, factor, r), mean_of(&p, G, rest));
        to_x = tw_sub(graph, scaled(&p, left_over(&p, to_z, z), r), scaled(&p, z, by_r));
    }
    g->dx[0] = tw_cast(graph, to_dy, tw_output_dtype(in[0]));
    g->dx[1] = tw_cast(graph, to_x, tw_output_dtype(in[1]));
    g->dx[2] = tw_mul(graph, r, tw_reduce_sum(graph, tw_mul(graph, G, rest), p.axes, p.count, false));
}

/* y = (x - mean) s + offset, where s is 1 / sqrt(variance + epsilon), times scale if that is asked for; else the
 * gradient of scale is 0, as in TensorFlow. */
static void global_norm_gradient(twi_gradient *g)
{
    static const int axes[] = {0, 1, 2};
    const tw_output *in = g->node->inputs;
    tw_output dy = g->dy[0], mean = in[1], gamma = in[4];
    float epsilon = twi_attr_float(&g->node->attrs, "variance_epsilon", 0);
    tw_output number = tw_scalar_of(g->graph, tw_output_dtype(in[2]), (double)epsilon);
    tw_output inverse = tw_rsqrt(g->graph, tw_add(g->graph, in[2], number));
    bool scales = twi_attr_bool(&g->node->attrs, "scale_after_normalization", false);
    tw_output scale = scales ? tw_mul(g->graph, inverse, gamma) : inverse;
    tw_output sum = tw_reduce_sum(g->graph, dy, axes, 3, false);
    tw_output product = tw_reduce_sum(g->graph, tw_mul(g->graph, dy, tw_sub(g->graph, in[0], mean)), axes, 3, false);
    tw_output cube = tw_mul(g->graph, tw_mul(g->graph, scale, inverse), inverse);
    tw_output half = tw_scalar_of(g->graph, tw_output_dtype(in[2]), -0.5);
    g->dx[0] = tw_mul(g->graph, dy, scale);
    g->dx[1] = tw_neg(g->graph, tw_mul(g->graph, sum, scale));
    g->dx[2] = tw_mul(g->graph, half, tw_mul(g->graph, product, cube));
    g->dx[3] = sum;
    g->dx[4] = scales ? tw_mul(g->graph, product, inverse) : tw_zeros_like(g->graph, gamma);
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define LRN_ATTRS "depth_radius:int=5; bias:float=1; alpha:float=1; beta:float=0.5; T:{half,bfloat16,float}=float"
#define BATCH_NORM_ATTRS(formats) "epsilon:float=0.0001; data_format:{" formats "}=NHWC; is_training:bool=true"
#define ONE_TYPE "T:{float}; " BATCH_NORM_ATTRS("NHWC,NCHW")
#define TWO_TYPES "T:{half,bfloat16,float}; U:{float}; " BATCH_NORM_ATTRS("NHWC,NCHW")
#define VOLUMES_TOO "T:{half,bfloat16,float}; U:{float}; " BATCH_NORM_ATTRS("NHWC,NCHW,NDHWC,NCDHW")

const twi_op twi_normalization_ops[] = {
    {"BatchNormWithGlobalNormalization", "t:T, m:T, v:T, beta:T, gamma:T", "result:T",
     "T:{half,bfloat16,float,double}; variance_epsilon:float; scale_after_normalization:bool", global_norm_shape,
     global_norm_gradient},
    {"LRN", "input:T", "output:T", LRN_ATTRS, lrn_shape, lrn_gradient},
    {"LRNGrad", "input_grads:T, input_image:T, output_image:T", "output:T", LRN_ATTRS, lrn_shape, NULL},
    {"FusedBatchNorm", "x:T, scale:T, offset:T, mean:T, variance:T",
     "y:T, batch_mean:T, batch_variance:T, reserve_space_1:T, reserve_space_2:T", ONE_TYPE, batch_norm_shape,
     batch_norm_gradient, .layout = "i....:i...."},
    {"FusedBatchNormV2", "x:T, scale:U, offset:U, mean:U, variance:U",
     "y:T, batch_mean:U, batch_variance:U, reserve_space_1:U, reserve_space_2:U", TWO_TYPES, batch_norm_shape,
     batch_norm_v2_gradient, .layout = "i....:i...."},
    {"FusedBatchNormV3", "x:T, scale:U, offset:U, mean:U, variance:U",
     "y:T, batch_mean:U, batch_variance:U, reserve_space_1:U, reserve_space_2:U, reserve_space_3:U", VOLUMES_TOO,
     batch_norm_shape, batch_norm_v3_gradient, .layout = "i....:i....."},
    {"FusedBatchNormGrad", "y_backprop:T, x:T, scale:T, reserve_space_1:T, reserve_space_2:T",
     "x_backprop:T, scale_backprop:T, offset_backprop:T, reserve_space_3:T, reserve_space_4:T", ONE_TYPE,
     batch_norm_grad_shape, batch_norm_grad_gradient, .layout = "ii...:i...."},
    {"FusedBatchNormGradV2", "y_backprop:T, x:T, scale:float, reserve_space_1:U, reserve_space_2:U",
     "x_backprop:T, scale_backprop:U, offset_backprop:U, reserve_space_3:U, reserve_space_4:U", TWO_TYPES,
     batch_norm_grad_shape, batch_norm_grad_gradient, .layout = "ii...:i...."},
    {"FusedBatchNormGradV3", "y_backprop:T, x:T, scale:float, reserve_space_1:U, reserve_space_2:U, reserve_space_3:U",
     "x_backprop:T, scale_backprop:U, offset_backprop:U, reserve_space_4:U, reserve_space_5:U", VOLUMES_TOO,
     batch_norm_grad_shape, batch_norm_grad_gradient, .layout = "ii....:i...."},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------- */

tw_output tw_lrn(tw_graph *graph, tw_output images, int radius, float bias, float alpha, float beta)
{
    return twi_build(graph, "LRN", TWI_INPUTS(images),
                     TWI_ATTRS(tw_attr_int("depth_radius", radius), tw_attr_float("bias", bias),
                               tw_attr_float("alpha", alpha), tw_attr_float("beta", beta)));
}

tw_batch_norm tw_fused_batch_norm(tw_graph *graph, tw_output images, tw_output scale, tw_output offset, tw_output mean,
                                  tw_output variance, float epsilon, bool training)
{
    if (training)
        mean = variance = tw_zeros(graph, TW_FLOAT32, TW_SHAPE(0));
    tw_node *node = twi_build(graph, "FusedBatchNormV3", TWI_INPUTS(images, scale, offset, mean, variance),
                              TWI_ATTRS(tw_attr_float("epsilon", epsilon), tw_attr_bool("is_training", training)))
                        .node;
    if (!node)
        return (tw_batch_norm){0};
    return (tw_batch_norm){tw_node_output(node, 0), tw_node_output(node, 1), tw_node_output(node, 2)};
}
