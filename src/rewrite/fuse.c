/* fuse.c - chains of a network's layers become one node each (ops/fused.c), forward and backward:
 *
 *     Conv2D or MatMul, bias, ReLU                              _FusedConv2D, _FusedMatMul
 *     Conv2DBackpropFilter and BiasAddGrad of one gradient      _Conv2DBackpropFilterBias
 *     ReluGrad and BiasAddGrad of its result                    _ReluGradBias
 *     MaxPool, LRN;  LRNGrad, MaxPoolGrad, ReluGrad             _MaxPoolLRN, _MaxPoolLRNGrad
 *     LRN, MaxPool;  MaxPoolGrad, LRNGrad, ReluGrad             _LRNMaxPool, _LRNMaxPoolGrad
 *     MatMul and the Cast of its result                         _FusedMatMul without a bias
 *     TowerBatch and the Cast of its images                     _TowerBatch
 *     FusedBatchNorm, AddV2 of a shortcut, ReLU                 _BatchNormRelu
 *     AddN, ReluGrad, FusedBatchNormGrad                        _BatchNormReluGrad
 *
 * Only where the device has the kernel, and where nobody else wants what lies between the links.
 * Never here: updates of variables (update.c). */
#include "rewrite/rewrite.h"

#include <string.h>

enum { MOST_LINKS = 4, MOST_ATTRS = 16 };

static bool is(const tw_node *node, const char *op)
{
    return node && strcmp(node->op->name, op) == 0;
}

static tw_output out(tw_node *node, int index)
{
    return (tw_output){node, index};
}

static bool same(tw_output a, tw_output b)
{
    return a.node == b.node && a.index == b.index;
}

static tw_dtype type_of(const tw_node *node)
{
    return twi_attr_type(&node->attrs, "T");
}

/* float and bfloat16: of the other types there are plain kernels only, which gain nothing. */
static bool has_kernel(const twi_rewriting *r, const tw_node *node, const char *op)
{
    tw_dtype type = type_of(node);
    return (type == TW_FLOAT32 || type == TW_BFLOAT16) && twi_rewrite_has_kernel(r, node, op, type);
}

static bool is_channels_last(const tw_node *node)
{
    return strcmp(twi_attr_string(&node->attrs, "data_format", "NHWC"), "NHWC") == 0;
}

/* The node that alone uses the output, if it is of that op, on the same device and of the same type. */
static tw_node *next_link(const twi_rewriting *r, tw_output output, const char *op)
{
    tw_node *user = twi_rewrite_only_user(r, output);
    bool fits = is(user, op) && user->assigned == output.node->assigned &&
                (is(user, "Cast") || type_of(user) == type_of(output.node));
    return fits ? user : NULL;
}

/* ---- making the new node ------------------------------------------------------------------------------------ */

typedef struct attr_list {
    tw_attr items[MOST_ATTRS];
    int count;
} attr_list;

/* Those of the comma-separated names that the node has. */
static void take(attr_list *list, const tw_node *node, const char *names)
{
    for (int i = 0; i < node->attrs.count && list->count < MOST_ATTRS; i++) {
        const char *name = node->attrs.items[i].name, *at = strstr(names, name);
        size_t length = strlen(name);
        if (at && (at == names || at[-1] == ',') && (at[length] == ',' || at[length] == 0))
            list->items[list->count++] = node->attrs.items[i];
    }
}

static void put(attr_list *list, tw_attr attr)
{
    list->items[list->count++] = attr;
}

#define CONV_ATTRS "T,strides,padding,explicit_paddings,data_format,dilations"
#define POOL_ATTRS "T,ksize,strides,padding,data_format"
#define BATCH_NORM_ATTRS "T,epsilon,data_format,is_training"
#define LRN_ATTRS "depth_radius,bias,alpha,beta"

/* A node in the place of links[0 .. count), the last of which gives it its name. NULL if they cannot be joined or the
 * graph has failed. */
static tw_node *join(twi_rewriting *r, tw_node *const *links, int count, const char *op, const tw_output *inputs,
                     int num_inputs, const attr_list *attrs)
{
    if (!twi_rewrite_may_join(r, links, count))
        return NULL;
    tw_node *node = twi_rewrite_node(r, links[count - 1], "/fused", op, inputs, num_inputs, attrs->items, attrs->count);
    for (int i = 0; i < count && node; i++)
        twi_rewrite_move_controls(r, links[i], node);
    return node;
}

/* ---- products, their biases and ReLUs ------------------------------------------------------------------------- */

/* The input of a bias's node that is the product, or -1: BiasAdd, or a sum with a vector as long as a row. */
static int product_input(const tw_node *node)
{
    if (is(node, "BiasAdd"))
        return is_channels_last(node) ? 0 : -1;
    if (!is(node, "Add") && !is(node, "AddV2"))
        return -1;
    for (int i = 0; i < 2; i++) {
        tw_shape product = tw_output_shape(node->inputs[i]), bias = tw_output_shape(node->inputs[1 - i]);
        if (product.rank >= 2 && bias.rank == 1 && bias.dims[0] >= 0 && bias.dims[0] == product.dims[product.rank - 1])
            return i;
    }
    return -1;
}

static void fuse_product(twi_rewriting *r, tw_node *bias)
{
    int input = product_input(bias);
    if (input < 0)
        return;
    tw_node *product = bias->inputs[input].node;
    bool conv = is(product, "Conv2D");
    const char *op = conv ? "_FusedConv2D" : "_FusedMatMul";
    if ((!conv && !is(product, "MatMul")) || !is_channels_last(product) || !has_kernel(r, product, op) ||
        next_link(r, out(product, 0), bias->op->name) != bias)
        return;
    tw_node *relu = next_link(r, out(bias, 0), "Relu");
    tw_node *links[] = {product, bias, relu};
    int count = relu ? 3 : 2;
    attr_list attrs = {0};
    take(&attrs, product, conv ? CONV_ATTRS : "T,transpose_a,transpose_b");
    put(&attrs, tw_attr_bool("relu", relu != NULL));
    if (!conv)
        put(&attrs, tw_attr_type("U", type_of(product)));
    tw_output inputs[] = {product->inputs[0], product->inputs[1], bias->inputs[1 - input]};
    tw_node *fused = join(r, links, count, op, inputs, 3, &attrs);
    if (fused)
        twi_rewrite_replace(r, out(links[count - 1], 0), out(fused, 0));
}

/* What a gradient is cast to if nobody wants it as it is, else NULL. */
static tw_node *cast_to_float(const twi_rewriting *r, tw_node *node)
{
    tw_node *cast = next_link(r, out(node, 0), "Cast");
    return cast && twi_attr_type(&cast->attrs, "DstT") == TW_FLOAT32 && type_of(node) == TW_BFLOAT16 ? cast : NULL;
}

static void fuse_filter_gradient(twi_rewriting *r, tw_node *filter)
{
    tw_node *bias = NULL, *user;
    if (!is(filter, "Conv2DBackpropFilter") || !is_channels_last(filter) ||
        !has_kernel(r, filter, "_Conv2DBackpropFilterBias"))
        return;
    for (int i = 0; !bias && (user = twi_rewrite_user(r, filter->inputs[2], i)); i++)
        if (is(user, "BiasAddGrad") && user->assigned == filter->assigned && is_channels_last(user))
            bias = user;
    if (!bias)
        return;
    tw_node *links[MOST_LINKS] = {bias, filter};
    tw_node *casts[] = {cast_to_float(r, filter), cast_to_float(r, bias)};
    bool casting = casts[0] && casts[1];
    attr_list attrs = {0};
    take(&attrs, filter, CONV_ATTRS);
    put(&attrs, tw_attr_type("U", casting ? TW_FLOAT32 : type_of(filter)));
    if (casting)
        memcpy(links + 2, casts, sizeof casts);
    tw_node *fused = join(r, links, casting ? 4 : 2, "_Conv2DBackpropFilterBias", filter->inputs, 3, &attrs);
    if (!fused)
        return;
    twi_rewrite_replace(r, out(casting ? casts[0] : filter, 0), out(fused, 0));
    twi_rewrite_replace(r, out(casting ? casts[1] : bias, 0), out(fused, 1));
}

/* The bias's gradient is the sum of what the ReLU's lets pass, which others want too. */
static void fuse_relu_gradient(twi_rewriting *r, tw_node *relu)
{
    tw_node *bias = NULL, *user;
    if (!is(relu, "ReluGrad") || !has_kernel(r, relu, "_ReluGradBias"))
        return;
    for (int i = 0; !bias && (user = twi_rewrite_user(r, out(relu, 0), i)); i++)
        if (is(user, "BiasAddGrad") && user->assigned == relu->assigned && is_channels_last(user))
            bias = user;
    if (!bias)
        return;
    tw_node *links[] = {relu, bias};
    attr_list attrs = {0};
    take(&attrs, relu, "T");
    tw_node *fused = join(r, links, 2, "_ReluGradBias", relu->inputs, 2, &attrs);
    if (!fused)
        return;
    twi_rewrite_replace(r, out(relu, 0), out(fused, 0));
    twi_rewrite_replace(r, out(bias, 0), out(fused, 1));
}

static void fuse_product_cast(twi_rewriting *r, tw_node *product)
{
    tw_node *cast = is(product, "MatMul") && has_kernel(r, product, "_FusedMatMul") ? cast_to_float(r, product) : NULL;
    if (!cast)
        return;
    tw_node *links[] = {product, cast};
    attr_list attrs = {0};
    take(&attrs, product, "T,transpose_a,transpose_b");
    put(&attrs, tw_attr_int("N", 0));
    put(&attrs, tw_attr_type("U", TW_FLOAT32));
    tw_node *fused = join(r, links, 2, "_FusedMatMul", product->inputs, 2, &attrs);
    if (fused)
        twi_rewrite_replace(r, out(cast, 0), out(fused, 0));
}

/* Images that nobody else wants as floats are made in the type that is computed in. */
static void fuse_batch_cast(twi_rewriting *r, tw_node *batch)
{
    tw_node *cast = is(batch, "TowerBatch") ? next_link(r, out(batch, 0), "Cast") : NULL;
    tw_dtype type = cast ? twi_attr_type(&cast->attrs, "DstT") : TW_INVALID_DTYPE;
    if (!cast || !twi_rewrite_has_kernel(r, batch, "_TowerBatch", type))
        return;
    tw_node *links[] = {batch, cast};
    attr_list attrs = {0};
    take(&attrs, batch, "batch,examples,first,seed,shuffle,augmentation,crop,scale,offset");
    put(&attrs, tw_attr_type("T", type));
    tw_node *fused = join(r, links, 2, "_TowerBatch", batch->inputs, 3, &attrs);
    if (!fused)
        return;
    twi_rewrite_replace(r, out(cast, 0), out(fused, 0));
    twi_rewrite_replace(r, out(batch, 1), out(fused, 1));
}

/* ---- pools and normalizations ------------------------------------------------------------------------------- */

/* A pool whose window's cells can be numbered with a byte. */
static bool is_small_pool(const tw_node *node)
{
    int count;
    const int64_t *size = twi_attr_ints(&node->attrs, "ksize", &count);
    return is(node, "MaxPool") && is_channels_last(node) && count == 4 && size[1] <= 16 && size[2] <= 16 &&
           strcmp(twi_attr_string(&node->attrs, "padding", ""), "EXPLICIT") != 0;
}

/* The user of `output` that is of that op and has `other` as its input number `at`; `output` is its input `own`. */
static tw_node *find_user(const twi_rewriting *r, tw_output output, const char *op, int own, int at, tw_output other)
{
    tw_node *user;
    for (int i = 0; (user = twi_rewrite_user(r, output, i)); i++)
        if (is(user, op) && user->assigned == output.node->assigned && same(user->inputs[own], output) &&
            same(user->inputs[at], other))
            return user;
    return NULL;
}

/* The ReluGrad that follows a gradient and masks it with x. */
static tw_node *relu_gradient(const twi_rewriting *r, tw_node *gradient, tw_output x)
{
    tw_node *relu = next_link(r, out(gradient, 0), "ReluGrad");
    return relu && same(relu->inputs[1], x) && same(relu->inputs[0], out(gradient, 0)) ? relu : NULL;
}

/* The gradients' node in the place of first, second and perhaps a ReluGrad. */
static void join_gradients(twi_rewriting *r, tw_node *first, tw_node *second, tw_output x, const char *op,
                           const tw_output *inputs, attr_list *attrs)
{
    tw_node *relu = relu_gradient(r, second, x);
    tw_node *links[] = {first, second, relu};
    int count = relu ? 3 : 2;
    put(attrs, tw_attr_bool("relu", relu != NULL));
    tw_node *fused = join(r, links, count, op, inputs, 3, attrs);
    if (fused)
        twi_rewrite_replace(r, out(links[count - 1], 0), out(fused, 0));
}

/* MaxPool, LRN. Both results stay at hand, so it does not matter who else wants them. */
static void fuse_pool_lrn(twi_rewriting *r, tw_node *lrn)
{
    tw_node *pool = is(lrn, "LRN") ? lrn->inputs[0].node : NULL;
    if (!pool || !is_small_pool(pool) || pool->assigned != lrn->assigned || !has_kernel(r, pool, "_MaxPoolLRN") ||
        !has_kernel(r, pool, "_MaxPoolLRNGrad"))
        return;
    tw_output x = pool->inputs[0], pooled = out(pool, 0), normalized = out(lrn, 0);
    tw_shape image = tw_output_shape(x);
    tw_node *lrn_gradient = find_user(r, normalized, "LRNGrad", 2, 1, pooled);
    tw_node *pool_gradient = lrn_gradient ? next_link(r, out(lrn_gradient, 0), "MaxPoolGrad") : NULL;
    if (pool_gradient && (!same(pool_gradient->inputs[0], x) || !same(pool_gradient->inputs[1], pooled) ||
                          !same(pool_gradient->inputs[2], out(lrn_gradient, 0)) || image.rank != 4))
        pool_gradient = NULL;

    attr_list attrs = {0};
    take(&attrs, pool, POOL_ATTRS);
    take(&attrs, lrn, LRN_ATTRS);
    tw_node *links[] = {pool, lrn};
    tw_node *fused = join(r, links, 2, "_MaxPoolLRN", &x, 1, &attrs);
    if (!fused)
        return;
    twi_rewrite_replace(r, normalized, out(fused, 0));
    twi_rewrite_replace(r, pooled, out(fused, 1));
    if (!pool_gradient)
        return;
    put(&attrs, tw_attr_int("height", image.dims[1]));
    put(&attrs, tw_attr_int("width", image.dims[2]));
    tw_output inputs[] = {lrn_gradient->inputs[0], out(fused, 1), out(fused, 2)};
    join_gradients(r, lrn_gradient, pool_gradient, x, "_MaxPoolLRNGrad", inputs, &attrs);
}

/* LRN, MaxPool. The normalized image is gone afterwards, so only these links and their gradients may want it. */
static void fuse_lrn_pool(twi_rewriting *r, tw_node *pool)
{
    tw_node *lrn = is_small_pool(pool) ? pool->inputs[0].node : NULL;
    if (!is(lrn, "LRN") || pool->assigned != lrn->assigned || !has_kernel(r, pool, "_LRNMaxPool") ||
        !has_kernel(r, pool, "_LRNMaxPoolGrad"))
        return;
    tw_output x = lrn->inputs[0], pooled = out(pool, 0), normalized = out(lrn, 0);
    tw_node *pool_gradient = find_user(r, normalized, "MaxPoolGrad", 0, 1, pooled);
    tw_node *lrn_gradient = pool_gradient ? next_link(r, out(pool_gradient, 0), "LRNGrad") : NULL;
    if (lrn_gradient && (!same(lrn_gradient->inputs[0], out(pool_gradient, 0)) || !same(lrn_gradient->inputs[1], x) ||
                         !same(lrn_gradient->inputs[2], normalized)))
        lrn_gradient = NULL;
    if (twi_rewrite_count_uses(r, normalized) != (lrn_gradient ? 3 : 1))
        return;

    attr_list attrs = {0};
    take(&attrs, pool, POOL_ATTRS);
    take(&attrs, lrn, LRN_ATTRS);
    tw_node *links[] = {lrn, pool}, *gradients[] = {pool_gradient, lrn_gradient};
    if (lrn_gradient && !twi_rewrite_may_join(r, gradients, 2))
        return;
    tw_node *fused = join(r, links, 2, "_LRNMaxPool", &x, 1, &attrs);
    if (!fused)
        return;
    twi_rewrite_replace(r, pooled, out(fused, 0));
    if (!lrn_gradient)
        return;
    tw_output inputs[] = {pool_gradient->inputs[2], x, out(fused, 1)};
    join_gradients(r, pool_gradient, lrn_gradient, x, "_LRNMaxPoolGrad", inputs, &attrs);
}

/* ---- batch normalizations --------------------------------------------------------------------------------------- */

/* One of the three versions, or of their gradients. */
static bool is_batch_norm(const tw_node *node, const char *op)
{
    size_t length = strlen(op);
    const char *version = node && strncmp(node->op->name, op, length) == 0 ? node->op->name + length : "-";
    return !*version || strcmp(version, "V2") == 0 || strcmp(version, "V3") == 0;
}

/* The sum of an image and another of its shape. */
static tw_node *sum_with_side(const twi_rewriting *r, tw_output image, tw_output *side)
{
    tw_node *sum = next_link(r, image, "AddV2");
    sum = sum ? sum : next_link(r, image, "Add");
    if (!sum)
        return NULL;
    *side = sum->inputs[same(sum->inputs[0], image)];
    return tw_shape_equal(tw_output_shape(*side), tw_output_shape(image)) ? sum : NULL;
}

/* The gradient of a fused node, where the ReLU's gradient goes to the normalization's, and elsewhere only to a side. */
static void fuse_batch_norm_gradient(twi_rewriting *r, tw_node *fused, bool has_side)
{
    tw_node *relu = NULL, *norm = NULL, *user;
    for (int i = 0; !relu && (user = twi_rewrite_user(r, out(fused, 0), i)); i++)
        if (is(user, "ReluGrad") && user->assigned == fused->assigned && same(user->inputs[1], out(fused, 0)))
            relu = user;
    for (int i = 0; relu && !norm && (user = twi_rewrite_user(r, out(relu, 0), i)); i++)
        if (is_batch_norm(user, "FusedBatchNormGrad") && user->assigned == fused->assigned &&
            same(user->inputs[0], out(relu, 0)) && same(user->inputs[1], fused->inputs[0]) &&
            same(user->inputs[3], out(fused, 3)))
            norm = user;
    if (!norm || (!has_side && twi_rewrite_count_uses(r, out(relu, 0)) != 1) ||
        twi_rewrite_count_uses(r, out(norm, 3)) || twi_rewrite_count_uses(r, out(norm, 4)))
        return;
    tw_node *sum = relu->inputs[0].node, *links[MOST_LINKS];
    bool sums = is(sum, "AddN") && sum->num_inputs == 2 && sum->assigned == relu->assigned &&
                twi_rewrite_only_user(r, out(sum, 0)) == relu;
    int count = 0, num_inputs = 0;
    if (sums)
        links[count++] = sum;
    links[count++] = relu;
    links[count++] = norm;
    tw_output inputs[8];
    for (int i = 0; i < (sums ? 2 : 1); i++)
        inputs[num_inputs++] = sums ? sum->inputs[i] : relu->inputs[0];
    for (int i = 1; i < 5; i++)
        inputs[num_inputs++] = norm->inputs[i];
    inputs[num_inputs++] = fused->inputs[2];
    if (has_side)
        inputs[num_inputs++] = out(fused, 0);
    attr_list attrs = {0};
    take(&attrs, norm, BATCH_NORM_ATTRS);
    put(&attrs, tw_attr_int("N", has_side));
    put(&attrs, tw_attr_int("M", sums ? 2 : 1));
    tw_node *gradient = join(r, links, count, "_BatchNormReluGrad", inputs, num_inputs, &attrs);
    if (!gradient)
        return;
    for (int i = 0; i < 3; i++)
        twi_rewrite_replace(r, out(norm, i), out(gradient, i));
    if (has_side)
        twi_rewrite_replace(r, out(relu, 0), out(gradient, 3));
}

static void fuse_batch_norm(twi_rewriting *r, tw_node *norm)
{
    if (!is_batch_norm(norm, "FusedBatchNorm") || !is_channels_last(norm) || !has_kernel(r, norm, "_BatchNormRelu") ||
        !has_kernel(r, norm, "_BatchNormReluGrad"))
        return;
    tw_output inputs[6];
    memcpy(inputs, norm->inputs, 5 * sizeof *inputs);
    tw_node *sum = sum_with_side(r, out(norm, 0), &inputs[5]);
    tw_node *relu = next_link(r, out(sum ? sum : norm, 0), "Relu"), *links[MOST_LINKS];
    if (!relu)
        return;
    int count = 0;
    links[count++] = norm;
    if (sum)
        links[count++] = sum;
    links[count++] = relu;
    attr_list attrs = {0};
    take(&attrs, norm, BATCH_NORM_ATTRS);
    put(&attrs, tw_attr_int("N", sum != NULL));
    tw_node *fused = join(r, links, count, "_BatchNormRelu", inputs, sum ? 6 : 5, &attrs);
    if (!fused)
        return;
    twi_rewrite_replace(r, out(relu, 0), out(fused, 0));
    for (int i = 1; i < norm->num_outputs; i++)
        twi_rewrite_replace(r, out(norm, i), out(fused, i));
    fuse_batch_norm_gradient(r, fused, sum != NULL);
}

/* ---- the pass ------------------------------------------------------------------------------------------------- */

/* One kind of chain after the other, over the nodes that were there before. What a chain leaves behind is dropped in
 * between, so that it does not count as a user. */
tw_status twi_rewrite_fuse(twi_rewriting *r, tw_error *error)
{
    static void (*const kinds[])(twi_rewriting *, tw_node *) = {
        fuse_product, fuse_filter_gradient, fuse_product_cast, fuse_batch_cast, fuse_pool_lrn, fuse_lrn_pool, fuse_batch_norm,
        fuse_relu_gradient,
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        int count = r->graph->nodes.count;
        for (int id = 0; id < count && r->graph->error.status == TW_OK; id++)
            kinds[k](r, r->graph->nodes.items[id]);
        if (r->graph->error.status != TW_OK)
            return TW_OK; /* the driver reports it */
        tw_status status = twi_rewrite_clean(r, error);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}
