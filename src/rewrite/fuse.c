/* fuse.c - chains of a network's layers become one node each (ops/fused.c), forward and backward. A row a chain; what
 * must hold for all of them is in pattern.h.
 * Never here: nodes that are alike and become one (update.c, losses.c, weights.c). */
#include "rewrite/pattern.h"

#include <string.h>

/* Everywhere: plain kernels gain nothing, and of other types, as of float16 on the host, there may be no others. */
#define FAST (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

static bool is_channels_last(const twi_node *node)
{
    return !node || strcmp(twi_attr_string(&node->attrs, "data_format", "NHWC"), "NHWC") == 0;
}

/* ---- products, their biases and ReLUs ------------------------------------------------------------------------- */

static bool fits_bias(const twi_match *m)
{
    return is_channels_last(twi_matched_node(m, "p")) && is_channels_last(twi_matched_node(m, "b"));
}

/* A sum with a vector as long as a row. */
static bool fits_sum(const twi_match *m)
{
    tw_shape product = twi_shape(twi_matched(m, "p")), bias = twi_shape(twi_matched(m, "c"));
    return fits_bias(m) && product.rank >= 2 && bias.rank == 1 && bias.dims[0] >= 0 &&
           bias.dims[0] == product.dims[product.rank - 1];
}

static void put(twi_attr_list *attrs, tw_attr attr)
{
    attrs->items[attrs->count++] = attr;
}

/* U: the type that the product is given in. */
static void product_type(const twi_match *m, twi_attr_list *attrs)
{
    twi_value c = twi_matched(m, "cast");
    put(attrs, tw_attr_type("U", twi_dtype(c.node ? c : twi_matched(m, "p"))));
}

/* From bfloat16 or float16 to float. */
static bool widens(const twi_node *cast)
{
    const tw_dtype from = twi_attr_type(&cast->attrs, "SrcT");
    return twi_attr_type(&cast->attrs, "DstT") == TW_FLOAT32 && (from == TW_BFLOAT16 || from == TW_FLOAT16);
}

static bool fits_product_cast(const twi_match *m)
{
    return widens(twi_matched_node(m, "cast"));
}

/* Both gradients are cast, or none. */
static bool fits_filter_gradient(const twi_match *m)
{
    const twi_node *filter = twi_matched_node(m, "cf"), *bias = twi_matched_node(m, "cb");
    return is_channels_last(twi_matched_node(m, "f")) && is_channels_last(twi_matched_node(m, "b")) &&
           (filter && bias ? widens(filter) && widens(bias) : !filter && !bias);
}

static void filter_gradient_type(const twi_match *m, twi_attr_list *attrs)
{
    twi_value cast = twi_matched(m, "cf");
    put(attrs, tw_attr_type("U", twi_dtype(cast.node ? cast : twi_matched(m, "f"))));
}

/* Images that nobody else wants as floats are made in the type that is computed in. */
static void batch_type(const twi_match *m, twi_attr_list *attrs)
{
    put(attrs, tw_attr_type("T", twi_dtype(twi_matched(m, "c"))));
}

/* ---- pools and normalizations ------------------------------------------------------------------------------- */

/* A pool whose window's cells can be numbered with a byte. */
static bool fits_pool(const twi_match *m)
{
    const twi_node *pool = twi_matched_node(m, "p");
    int count;
    const int64_t *size = twi_attr_ints(&pool->attrs, "ksize", &count);
    return is_channels_last(pool) && count == 4 && size[1] <= 16 && size[2] <= 16 && size[3] == 1 &&
           strcmp(twi_attr_string(&pool->attrs, "padding", ""), "EXPLICIT") != 0 &&
           twi_shape(twi_matched(m, "x")).rank == 4;
}

/* The gradients are joined together or not at all. */
static bool fits_pool_lrn(const twi_match *m)
{
    return fits_pool(m) && !twi_matched_node(m, "s") == !twi_matched_node(m, "q");
}

/* Those that a convolution has, too, under other names. */
static void pool_behind(const twi_match *m, twi_attr_list *attrs)
{
    const twi_attrs *pool = &twi_matched_node(m, "n")->attrs;
    int count;
    const int64_t *strides = twi_attr_ints(pool, "strides", &count);
    put(attrs, tw_attr_ints("pool_strides", strides, count));
    put(attrs, tw_attr_string("pool_padding", twi_attr_string(pool, "padding", "")));
}

static void image_size(const twi_match *m, twi_attr_list *attrs)
{
    tw_shape image = twi_shape(twi_matched(m, "x"));
    put(attrs, tw_attr_int("height", image.dims[1]));
    put(attrs, tw_attr_int("width", image.dims[2]));
}

/* ---- batch normalizations -------------------------------------------------------------------------------------- */

/* The sum of an image and another of its shape. */
static bool fits_batch_norm(const twi_match *m)
{
    twi_value side = twi_matched(m, "side");
    return is_channels_last(twi_matched_node(m, "r")) && is_channels_last(twi_matched_node(m, "s1")) &&
           (!side.node || tw_shape_equal(twi_shape(side), twi_shape(twi_matched(m, "x"))));
}

/* A batch's own moments, which a convolution may leave. */
static bool fits_conv_norm(const twi_match *m)
{
    const twi_node *norm = twi_matched_node(m, "r");
    return is_channels_last(twi_matched_node(m, "p")) && twi_attr_bool(&norm->attrs, "is_training", true);
}

/* M: gradients that are added up. */
static void count_gradients(const twi_match *m, twi_attr_list *attrs)
{
    put(attrs, tw_attr_int("M", twi_matched_node(m, "g2") ? 2 : 1));
}

static void count_gradients_and_side(const twi_match *m, twi_attr_list *attrs)
{
    count_gradients(m, attrs);
    put(attrs, tw_attr_int("N", 1));
}

static void count_gradients_alone(const twi_match *m, twi_attr_list *attrs)
{
    count_gradients(m, attrs);
    put(attrs, tw_attr_int("N", 0));
}

/* ---- the rows --------------------------------------------------------------------------------------------------- */

#define CONV "T,strides,padding,explicit_paddings,data_format,dilations"
#define PRODUCT "T,transpose_a,transpose_b"
#define CONV_NORM "p: " CONV "; r: epsilon; N = "
#define POOL_LRN "p: T,ksize,strides,padding,data_format; n: depth_radius,bias,alpha,beta"
#define BATCH_NORM "T,epsilon,data_format,is_training"
#define NORM "FusedBatchNorm|FusedBatchNormV2|FusedBatchNormV3"
#define NORM_GRAD "FusedBatchNormGrad|FusedBatchNormGradV2|FusedBatchNormGradV3"

static const twi_fusion rows[] = {
    {"p = Conv2D(x, w); b = BiasAdd(p, c); ?r = Relu(b)", "_FusedConv2D(x, w, c) -> r|b", "p: " CONV "; relu = ?r",
     fits_bias, NULL, FAST},
    {"p = Conv2D(x, w); b = Add|AddV2(p, c); ?r = Relu(b)", "_FusedConv2D(x, w, c) -> r|b", "p: " CONV "; relu = ?r",
     fits_sum, NULL, FAST},
    {"p = MatMul(x, w); b = BiasAdd(p, c); ?r = Relu(b)", "_FusedMatMul(x, w, c) -> r|b", "p: " PRODUCT "; relu = ?r",
     fits_bias, product_type, FAST},
    {"p = MatMul(x, w); b = Add|AddV2(p, c); ?r = Relu(b)", "_FusedMatMul(x, w, c) -> r|b", "p: " PRODUCT "; relu = ?r",
     fits_sum, product_type, FAST},
    {"f = Conv2DBackpropFilter(x, sizes, g); b = BiasAddGrad(g); ?cf = Cast(f); ?cb = Cast(b)",
     "_Conv2DBackpropFilterBias(x, sizes, g) -> cf|f, cb|b", "f: " CONV, fits_filter_gradient, filter_gradient_type, FAST},
    {"p = MatMul(x, w); cast = Cast(p)", "_FusedMatMul(x, w) -> cast", "p: " PRODUCT "; N = #none", fits_product_cast,
     product_type, FAST},
    {"i, l = TowerBatch(images, labels, step); c = Cast(i)", "_TowerBatch(images, labels, step) -> c, l",
     "i: batch,examples,first,seed,shuffle,augmentation,crop,scale,offset", NULL, batch_type, 0},
    /* both results stay at hand, so it does not matter who else wants them */
    {"p = MaxPool(x); n = LRN(p); ?s = LRNGrad(g, p, n); ?q = MaxPoolGrad(x, p, s); ?r = ReluGrad(q, x)",
     "_MaxPoolLRN(x) -> n, p, a; _MaxPoolLRNGrad(g, p, a) -> r|q", POOL_LRN "; relu = ?r", fits_pool_lrn, image_size,
     FAST},
    {"f = _FusedConv2D(x, w, c); n, p, a = _MaxPoolLRN(f)", "_Conv2DMaxPoolLRN(x, w, c) -> n, p, a",
     "f: " CONV ",relu; n: ksize,depth_radius,bias,alpha,beta", NULL, pool_behind, FAST},
    {"n = _MaxPoolLRNGrad(g, p, a); f = Conv2DBackpropFilter(x, sizes, n); b = BiasAddGrad(n)",
     "_Conv2DMaxPoolLRNGrad(x, sizes, g, p, a) -> f, b", "f: " CONV "; n: ksize,depth_radius,bias,alpha,beta,relu",
     fits_filter_gradient, pool_behind, FAST},
    /* the normalized image is gone afterwards, so only these may want it */
    {"n = LRN(x); p = MaxPool(n); ?q = MaxPoolGrad(n, p, g); ?s = LRNGrad(q, x, n); ?r = ReluGrad(s, x)",
     "_LRNMaxPool(x) -> p, a; _LRNMaxPoolGrad(g, x, a) -> r|s", POOL_LRN "; relu = ?r", fits_pool_lrn, NULL, FAST},
    {"y, m, v, s1, s2, s3 = " NORM "(x, scale, offset, mean, var); ?z = AddV2|Add(y, side); r = Relu(z|y)",
     "_BatchNormRelu(x, scale, offset, mean, var, side?) -> r, m, v, s1, s2, s3", "y: " BATCH_NORM "; N = #side",
     fits_batch_norm, NULL, FAST},
    {"& r, _, _, s1 = _BatchNormRelu(x, _, offset, _, _, side); e = ReluGrad(g, r); ?g = AddN(g1, g2); "
     "d, ds, do = " NORM_GRAD "(e, x, gscale, s1, gs2, ...)",
     "_BatchNormReluGrad(g1|g, g2?, x, gscale, s1, gs2, offset, r) -> d, ds, do, e", "d: " BATCH_NORM, NULL,
     count_gradients_and_side, FAST},
    {"& r, _, _, s1 = _BatchNormRelu(x, _, offset, _, _); e = ReluGrad(g, r); ?g = AddN(g1, g2); "
     "d, ds, do = " NORM_GRAD "(e, x, gscale, s1, gs2, ...)",
     "_BatchNormReluGrad(g1|g, g2?, x, gscale, s1, gs2, offset) -> d, ds, do", "d: " BATCH_NORM, NULL,
     count_gradients_alone, FAST},
    {"p = Conv2D(x, w); r, m, v, s1, s2, s3 = _BatchNormRelu(p, scale, offset, _, _, side)",
     "_Conv2DBatchNormRelu(x, w, scale, offset, side) -> r, m, v, s1, s2, s3, p", CONV_NORM "#side", fits_conv_norm,
     NULL, FAST},
    {"p = Conv2D(x, w); r, m, v, s1, s2, s3 = _BatchNormRelu(p, scale, offset, _, _)",
     "_Conv2DBatchNormRelu(x, w, scale, offset) -> r, m, v, s1, s2, s3, p", CONV_NORM "#none", fits_conv_norm, NULL,
     FAST},
    /* the bias's gradient is the sum of what the ReLU's lets pass, which others want too */
    {"e = ReluGrad(g, f); b = BiasAddGrad(e)", "_ReluGradBias(g, f) -> e, b", "e: T", fits_bias, NULL, FAST},
};

tw_status twi_rewrite_fuse(twi_rewriting *r, tw_error *error)
{
    twi_make_batches_in_place(r);
    return twi_apply_fusions(r, rows, sizeof rows / sizeof *rows, error);
}
