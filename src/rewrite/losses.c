/* losses.c - what becomes of a network's output and its weights at the end of the forward pass is few nodes, where a
 * device has kernels for them (ops/fused.c):
 *
 *     Cast, SparseSoftmaxCrossEntropyWithLogits, Mean; Mul, Cast      _SoftmaxLoss, the gradient included
 *     two layers before it, and the gradients of both                 _DenseLoss
 *     L2Loss of many weights                                          _L2LossMany
 *     BiasAddGrad of many gradients that one node gives               _BiasAddGradMany
 *     IsFinite and All of many gradients, for their loss's scale      _AllFiniteMany
 *
 * Never here: arithmetic on the losses (scalars.c). */
#include "rewrite/pattern.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* The node of that op on the same device that alone uses the value. */
static twi_node *next_link(twi_value value, twi_known op)
{
    twi_node *user = twi_only_user(value);
    return twi_is(user, op) && user->device == value.node->device ? user : NULL;
}

/* ---- the loss of a softmax -------------------------------------------------------------------------------------- */

/* The mean of a vector. */
static bool is_mean_of_all(const twi_node *mean)
{
    const tw_tensor *axes = mean ? twi_constant(twi_in(mean, 1)) : NULL;
    return axes && tw_tensor_elements(axes) == 1 && mean->results[0].rank == 0;
}

/* What all rows of a gradient are multiplied by. */
typedef struct factor {
    twi_value scale; /* a scalar; {NULL, 0}: a constant, */
    float value;     /* which this is */
    float divisor;   /* of the scale */
} factor;

/* A constant, all of whose elements are one. */
static bool is_one_value(twi_value constant, float *value)
{
    const tw_tensor *tensor = twi_constant(constant);
    int64_t count = tensor && twi_dtype(constant) == TW_FLOAT32 ? tw_tensor_elements(tensor) : 0;
    *value = count ? (float)tw_tensor_value(tensor, 0) : 0;
    for (int64_t i = 1; i < count; i++)
        if ((float)tw_tensor_value(tensor, i) != *value)
            return false;
    return count > 0;
}

/* A column or a scalar: a constant, or ExpandDims(RealDiv(Tile(Reshape(scale)), constant)), the gradient of a mean. */
static bool find_factor(twi_value column, int64_t rows, factor *f)
{
    tw_shape shape = twi_shape(column);
    bool is_column = shape.rank == 2 && shape.dims[0] == rows && shape.dims[1] == 1;
    *f = (factor){.divisor = 1};
    if (twi_dtype(column) != TW_FLOAT32 || (shape.rank != 0 && !is_column))
        return false;
    if (is_one_value(column, &f->value))
        return true;
    const twi_node *mean = twi_is(column.node, TWI_OP_ExpandDims) ? column.node->inputs[0].node : NULL;
    bool divides = twi_is(mean, TWI_OP_RealDiv) && is_one_value(twi_in(mean, 1), &f->divisor);
    const twi_node *tile = divides ? mean->inputs[0].node : NULL;
    const twi_node *shaped = twi_is(tile, TWI_OP_Tile) ? tile->inputs[0].node : NULL;
    if (shape.rank == 0)
        f->scale = column;
    else if (twi_is(shaped, TWI_OP_Reshape) && twi_shape(twi_in(shaped, 0)).rank == 0)
        f->scale = twi_in(shaped, 0);
    return f->scale.node != NULL;
}

static bool is_half(tw_dtype dtype)
{
    return dtype == TW_BFLOAT16 || dtype == TW_FLOAT16;
}

typedef struct softmax_chain {
    twi_node *links[6];
    int count;
    twi_value logits, loss, gradient; /* what goes in, what comes out */
    factor factor;
} softmax_chain;

static void add_link(softmax_chain *c, twi_node *node)
{
    if (node)
        c->links[c->count++] = node;
}

/* The losses of rows must be wanted for their mean alone, and the gradient for its product with a factor. */
static bool find_chain(const twi_rewriting *r, twi_node *softmax, softmax_chain *c)
{
    if (!twi_is(softmax, TWI_OP_SparseSoftmaxCrossEntropyWithLogits) || twi_dtype(twi_in(softmax, 0)) != TW_FLOAT32)
        return false;
    twi_node *mean = next_link(twi_out(softmax, 0), TWI_OP_Mean);
    twi_node *stop = next_link(twi_out(softmax, 1), TWI_OP_PreventGradient);
    twi_value backprop = stop ? twi_out(stop, 0) : twi_out(softmax, 1);
    twi_node *mul = next_link(backprop, TWI_OP_Mul), *widened = softmax->inputs[0].node;
    *c = (softmax_chain){.logits = twi_in(softmax, 0)};
    if (!is_mean_of_all(mean) || !mul ||
        !find_factor(twi_in(mul, mul->inputs[0].node == backprop.node), twi_shape(c->logits).dims[0], &c->factor))
        return false;
    twi_node *narrowed = next_link(twi_out(mul, 0), TWI_OP_Cast);
    if (narrowed && !is_half(narrowed->results[0].dtype))
        narrowed = NULL;
    if (twi_only_user(c->logits) == softmax && twi_is(widened, TWI_OP_Cast) && widened->device == softmax->device &&
        is_half(twi_dtype(twi_in(widened, 0)))) {
        c->logits = twi_in(widened, 0);
        add_link(c, widened);
    }
    add_link(c, softmax);
    add_link(c, mean);
    add_link(c, stop);
    add_link(c, mul);
    add_link(c, narrowed);
    c->loss = twi_out(mean, 0);
    c->gradient = twi_out(narrowed ? narrowed : mul, 0);
    return twi_rewrite_has_kernel(r, softmax, "_SoftmaxLoss", twi_dtype(c->logits)) && twi_may_join(c->links, c->count);
}

/* The constant as a scalar of its own. */
static twi_value make_scale(twi_rewriting *r, const twi_node *like, float value)
{
    tw_tensor *tensor = tw_tensor_float(value);
    twi_node *scale = twi_node_constant(r->region, like, "/scale", tensor);
    tw_tensor_release(tensor);
    return twi_out(scale, 0);
}

static void join_softmax(twi_rewriting *r, twi_node *softmax)
{
    softmax_chain c;
    if (!find_chain(r, softmax, &c))
        return;
    int before = r->region->nodes.count;
    twi_value scale = c.factor.scale.node ? c.factor.scale : make_scale(r, softmax, c.factor.value);
    tw_attr attrs[] = {tw_attr_type("T", twi_dtype(c.logits)), tw_attr_type("U", twi_dtype(c.gradient)),
                       tw_attr_float("divisor", c.factor.divisor)};
    twi_value inputs[] = {c.logits, twi_in(softmax, 1), scale};
    twi_node *joint = scale.node ? twi_rewrite_make(r, softmax, "/joint", "_SoftmaxLoss", inputs, 3, attrs, 3) : NULL;
    if (!joint) {
        twi_rewrite_undo(r, before);
        return;
    }
    for (int i = 0; i < c.count; i++)
        twi_move_controls(c.links[i], joint);
    twi_replace(c.loss, twi_out(joint, 0));
    twi_replace(c.gradient, twi_out(joint, 1));
}

/* ---- the layers before it --------------------------------------------------------------------------------------- */

static bool turns(const twi_match *m, const char *product, bool b)
{
    const twi_node *node = twi_matched_node(m, product);
    return !twi_attr_bool(&node->attrs, "transpose_a", false) && twi_attr_bool(&node->attrs, "transpose_b", false) == b;
}

/* A layer with a ReLU and one without, all in one type. */
static bool fits_layers(const twi_match *m)
{
    tw_dtype type = twi_dtype(twi_matched(m, "x"));
    return twi_attr_bool(&twi_matched_node(m, "h")->attrs, "relu", false) &&
           !twi_attr_bool(&twi_matched_node(m, "l")->attrs, "relu", false) && turns(m, "h", false) &&
           turns(m, "l", false) && turns(m, "g", true) && turns(m, "dx", true) &&
           twi_dtype(twi_matched(m, "h")) == type && twi_dtype(twi_matched(m, "l")) == type &&
           twi_dtype(twi_matched(m, "d")) == type;
}

/* Of all that there is. */
static bool fits_all(const twi_match *m)
{
    return twi_shape(twi_matched(m, "a")).rank == 0;
}

static const twi_fusion layers[] = {
    {"loss, d = _SoftmaxLoss(l, labels, scale); l = _FusedMatMul(h, v, a); h = _FusedMatMul(x, w, c); "
     "g = MatMul(d, v); e, b = _ReluGradBias(g, h); dx = MatMul(e, w); ?ex, bx = _ReluGradBias(dx, x)",
     "_DenseLoss(x, w, c, v, a, labels, scale) -> h, loss, d, e, ex|dx; BiasAddGrad(e) -> b; BiasAddGrad(ex) -> bx",
     "loss: T,divisor; relu = ?ex", fits_layers, NULL, 0},
    {"f = IsFinite(x); a = All(f, axes)", "_AllFiniteMany(x) -> a", "f: T; N = #f", fits_all, NULL, 0},
};

/* ---- many as one ------------------------------------------------------------------------------------------------ */

enum { MOST_LINKS = 512 };

typedef TWI_ARRAY(twi_node *) found;

/* Those of a device and a type may be of one node; gradients of biases also wait for the same, so that none of them is
 * held up by the others. */
static int compare_kinds(const twi_node *a, const twi_node *b)
{
    tw_dtype x = twi_dtype(twi_in(a, 0)), y = twi_dtype(twi_in(b, 0));
    int m = twi_is(a, TWI_OP_BiasAddGrad) ? a->inputs[0].node->id : 0;
    int n = twi_is(b, TWI_OP_BiasAddGrad) ? b->inputs[0].node->id : 0;
    if (a->device != b->device)
        return (a->device > b->device) - (a->device < b->device);
    return x != y ? (x > y) - (x < y) : (m > n) - (m < n);
}

static int by_kind(const void *a, const void *b)
{
    const twi_node *x = *(twi_node *const *)a, *y = *(twi_node *const *)b;
    int order = compare_kinds(x, y);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

static bool has_channels_last(const twi_node *node)
{
    return strcmp(twi_attr_string(&node->attrs, "data_format", "NHWC"), "NHWC") == 0;
}

static bool gather(const twi_rewriting *r, twi_known op, const char *joint, found *all)
{
    bool fits = true;
    for (int id = 0; id < r->region->nodes.count && fits; id++) {
        twi_node *node = r->region->nodes.items[id];
        if (!node->gone && twi_is(node, op) && tw_shape_elements(twi_shape(twi_in(node, 0))) <= INT32_MAX &&
            has_channels_last(node) && twi_rewrite_has_kernel(r, node, joint, twi_dtype(twi_in(node, 0))))
            fits = twi_push(all, node);
    }
    return fits;
}

/* If not all together, for one waits for another or the device refuses so many, then each half. */
static void join(twi_rewriting *r, const char *op, twi_node *const *links, int count)
{
    twi_value inputs[MOST_LINKS];
    if (count < 2)
        return;
    for (int i = 0; i < count; i++)
        inputs[i] = twi_in(links[i], 0);
    tw_attr attrs[] = {tw_attr_int("N", count), tw_attr_type("T", twi_dtype(inputs[0]))};
    twi_node *joint = twi_may_join(links, count)
                          ? twi_rewrite_make(r, links[count - 1], "/joint", op, inputs, count, attrs, 2)
                          : NULL;
    for (int i = 0; i < count && joint; i++) {
        twi_move_controls(links[i], joint);
        twi_replace(twi_out(links[i], 0), twi_out(joint, i));
    }
    if (!joint) {
        join(r, op, links, count / 2);
        join(r, op, links + count / 2, count - count / 2);
    }
}

static tw_status join_all(twi_rewriting *r, twi_known op, const char *joint, tw_error *error)
{
    found all = {0};
    bool fits = gather(r, op, joint, &all);
    if (fits && all.count)
        qsort(all.items, (size_t)all.count, sizeof *all.items, by_kind);
    for (int i = 0, end; i < all.count && fits; i = end) {
        for (end = i + 1; end < all.count && end - i < MOST_LINKS && !compare_kinds(all.items[i], all.items[end]);)
            end++;
        join(r, joint, &all.items[i], end - i);
    }
    twi_array_free(&all);
    return fits ? TW_OK : twi_fail_memory(error, "joining losses");
}

tw_status twi_rewrite_losses(twi_rewriting *r, tw_error *error)
{
    tw_status status;
    for (int id = 0, count = r->region->nodes.count; id < count; id++)
        if (!r->region->nodes.items[id]->gone)
            join_softmax(r, r->region->nodes.items[id]);
    twi_region_sweep(r->region); /* who has vanished uses nothing any more */
    TWI_TRY(twi_apply_fusions(r, layers, sizeof layers / sizeof *layers, error));
    TWI_TRY(join_all(r, TWI_OP_L2Loss, "_L2LossMany", error)); /* an error may be on the region, too */
    TWI_TRY(join_all(r, TWI_OP_BiasAddGrad, "_BiasAddGradMany", error));
    TWI_TRY(join_all(r, TWI_OP__AllFiniteMany, "_AllFiniteMany", error));
done:
    return status;
}
