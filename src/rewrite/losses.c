/* losses.c - what becomes of a network's output and its weights at the end of the forward pass is few nodes, where a
 * device has kernels for them (ops/fused.c):
 *
 *     Cast, SparseSoftmaxCrossEntropyWithLogits, Mean; Mul, Cast      _SoftmaxLoss, the gradient included
 *     L2Loss of many weights                                          _L2LossMany
 *
 * Never here: arithmetic on the losses (scalars.c). */
#include "rewrite/rewrite.h"

#include <string.h>

static bool is(const tw_node *node, const char *op)
{
    return node && strcmp(node->op->name, op) == 0;
}

static tw_output out(tw_node *node, int index)
{
    return (tw_output){node, index};
}

/* The node of that op on the same device that alone uses the output. */
static tw_node *next_link(const twi_rewriting *r, tw_output output, const char *op)
{
    tw_node *user = twi_rewrite_only_user(r, output);
    return is(user, op) && user->assigned == output.node->assigned ? user : NULL;
}

/* ---- the loss of a softmax -------------------------------------------------------------------------------------- */

/* The mean of a vector. */
static bool is_mean_of_all(const tw_node *mean)
{
    const tw_tensor *axes = mean ? twi_constant_value(mean->inputs[1]) : NULL;
    return axes && tw_tensor_elements(axes) == 1 && tw_output_shape(out((tw_node *)mean, 0)).rank == 0;
}

/* What all rows of a gradient are multiplied by. */
typedef struct factor {
    tw_output scale; /* a scalar; {NULL, 0}: a constant, */
    float value;     /* which this is */
    float divisor;   /* of the scale */
} factor;

/* A constant, all of whose elements are one. */
static bool is_one_value(tw_output output, float *value)
{
    const tw_tensor *constant = twi_constant_value(output);
    int64_t count = constant && tw_output_dtype(output) == TW_FLOAT32 ? tw_tensor_elements(constant) : 0;
    *value = count ? (float)tw_tensor_value(constant, 0) : 0;
    for (int64_t i = 1; i < count; i++)
        if ((float)tw_tensor_value(constant, i) != *value)
            return false;
    return count > 0;
}

/* A column or a scalar: a constant, or ExpandDims(RealDiv(Tile(Reshape(scale)), constant)), the gradient of a mean. */
static bool find_factor(tw_output column, int64_t rows, factor *f)
{
    tw_shape shape = tw_output_shape(column);
    bool is_column = shape.rank == 2 && shape.dims[0] == rows && shape.dims[1] == 1;
    *f = (factor){.divisor = 1};
    if (tw_output_dtype(column) != TW_FLOAT32 || (shape.rank != 0 && !is_column))
        return false;
    if (is_one_value(column, &f->value))
        return true;
    const tw_node *mean = is(column.node, "ExpandDims") ? column.node->inputs[0].node : NULL;
    bool divides = is(mean, "RealDiv") && is_one_value(mean->inputs[1], &f->divisor);
    const tw_node *tile = divides ? mean->inputs[0].node : NULL;
    const tw_node *shaped = is(tile, "Tile") ? tile->inputs[0].node : NULL;
    if (shape.rank == 0)
        f->scale = column;
    else if (is(shaped, "Reshape") && tw_output_shape(shaped->inputs[0]).rank == 0)
        f->scale = shaped->inputs[0];
    return f->scale.node != NULL;
}

/* The constant as a scalar of its own. */
static tw_output make_scale(twi_rewriting *r, const tw_node *like, float value, tw_error *error)
{
    tw_tensor *tensor = tw_tensor_float(value);
    if (!tensor) {
        twi_fail_memory(error, "joining losses");
        return (tw_output){0};
    }
    tw_attr attrs[] = {tw_attr_type("dtype", TW_FLOAT32), tw_attr_tensor("value", tensor)};
    tw_node *node = twi_rewrite_node(r, like, "/scale", "Const", NULL, 0, attrs, 2);
    tw_tensor_release(tensor);
    return out(node, 0);
}

static bool is_half(tw_dtype dtype)
{
    return dtype == TW_BFLOAT16 || dtype == TW_FLOAT16;
}

typedef struct softmax_chain {
    tw_node *links[6];
    int count;
    tw_output logits, loss, gradient; /* what goes in, what comes out */
    factor factor;
} softmax_chain;

static void add_link(softmax_chain *c, tw_node *node)
{
    if (node)
        c->links[c->count++] = node;
}

/* The losses of rows must be wanted for their mean alone, and the gradient for its product with a factor. */
static bool find_chain(const twi_rewriting *r, tw_node *softmax, softmax_chain *c)
{
    if (!is(softmax, "SparseSoftmaxCrossEntropyWithLogits") || tw_output_dtype(softmax->inputs[0]) != TW_FLOAT32)
        return false;
    tw_node *mean = next_link(r, out(softmax, 0), "Mean"), *stop = next_link(r, out(softmax, 1), "PreventGradient");
    tw_output backprop = stop ? out(stop, 0) : out(softmax, 1);
    tw_node *mul = next_link(r, backprop, "Mul"), *widened = softmax->inputs[0].node;
    *c = (softmax_chain){.logits = softmax->inputs[0]};
    if (!is_mean_of_all(mean) || !mul ||
        !find_factor(mul->inputs[mul->inputs[0].node == backprop.node], tw_output_shape(c->logits).dims[0], &c->factor))
        return false;
    tw_node *narrowed = next_link(r, out(mul, 0), "Cast");
    if (narrowed && !is_half(tw_output_dtype(out(narrowed, 0))))
        narrowed = NULL;
    if (next_link(r, c->logits, softmax->op->name) && is(widened, "Cast") && widened->assigned == softmax->assigned &&
        is_half(tw_output_dtype(widened->inputs[0]))) {
        c->logits = widened->inputs[0];
        add_link(c, widened);
    }
    add_link(c, softmax);
    add_link(c, mean);
    add_link(c, stop);
    add_link(c, mul);
    add_link(c, narrowed);
    c->loss = out(mean, 0);
    c->gradient = out(narrowed ? narrowed : mul, 0);
    return twi_rewrite_has_kernel(r, softmax, "_SoftmaxLoss", tw_output_dtype(c->logits)) &&
           twi_rewrite_may_join(r, c->links, c->count);
}

static tw_status join_softmax(twi_rewriting *r, tw_node *softmax, tw_error *error)
{
    softmax_chain c;
    if (!find_chain(r, softmax, &c))
        return TW_OK;
    tw_output scale = c.factor.scale.node ? c.factor.scale : make_scale(r, softmax, c.factor.value, error);
    if (!scale.node) /* the driver reports the graph's error */
        return r->graph->error.status != TW_OK ? TW_OK : TW_RESOURCE_EXHAUSTED;
    tw_attr attrs[] = {tw_attr_type("T", tw_output_dtype(c.logits)), tw_attr_type("U", tw_output_dtype(c.gradient)),
                       tw_attr_float("divisor", c.factor.divisor)};
    tw_output inputs[] = {c.logits, softmax->inputs[1], scale};
    tw_node *joint = twi_rewrite_node(r, softmax, "/joint", "_SoftmaxLoss", inputs, 3, attrs, 3);
    for (int i = 0; i < c.count && joint; i++)
        twi_rewrite_move_controls(r, c.links[i], joint);
    if (joint) {
        twi_rewrite_replace(r, c.loss, out(joint, 0));
        twi_rewrite_replace(r, c.gradient, out(joint, 1));
    }
    return TW_OK;
}

/* ---- weights ------------------------------------------------------------------------------------------------------ */

enum { MOST_WEIGHTS = 512 };

/* Whether two losses may be of one node: those of a device and type. */
static bool goes_with(const tw_node *a, const tw_node *b)
{
    return is(b, "L2Loss") && a->assigned == b->assigned && !b->became &&
           tw_output_dtype(a->inputs[0]) == tw_output_dtype(b->inputs[0]) &&
           tw_shape_elements(tw_output_shape(b->inputs[0])) <= INT32_MAX;
}

/* The first L2Loss and those behind it that go with it. */
static void join_weights(twi_rewriting *r, tw_node *first, int nodes)
{
    tw_node *links[MOST_WEIGHTS];
    tw_output inputs[MOST_WEIGHTS];
    int count = 0;
    if (!goes_with(first, first) ||
        !twi_rewrite_has_kernel(r, first, "_L2LossMany", tw_output_dtype(first->inputs[0])))
        return;
    for (int id = first->id; id < nodes && count < MOST_WEIGHTS; id++)
        if (goes_with(first, r->graph->nodes.items[id])) {
            links[count] = r->graph->nodes.items[id];
            inputs[count] = links[count]->inputs[0];
            count++;
        }
    if (count < 2 || !twi_rewrite_may_join(r, links, count))
        return;
    tw_attr attrs[] = {tw_attr_int("N", count), tw_attr_type("T", tw_output_dtype(inputs[0]))};
    tw_node *joint = twi_rewrite_node(r, links[count - 1], "/joint", "_L2LossMany", inputs, count, attrs, 2);
    for (int i = 0; i < count && joint; i++) {
        twi_rewrite_move_controls(r, links[i], joint);
        twi_rewrite_replace(r, out(links[i], 0), out(joint, i));
    }
}

tw_status twi_rewrite_losses(twi_rewriting *r, tw_error *error)
{
    int count = r->graph->nodes.count;
    tw_status status = TW_OK;
    for (int id = 0; id < count && status == TW_OK; id++) {
        status = join_softmax(r, r->graph->nodes.items[id], error);
        join_weights(r, r->graph->nodes.items[id], count);
    }
    return status;
}
