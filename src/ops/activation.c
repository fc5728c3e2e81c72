/* activation.c - Relu and its relatives: signatures, gradients, builders. */
#include "ops/build.h"
#include "ops/types.h"

#include <tower/nn.h>

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

/* Those written by their results: dx from dy and y. */
static void from_output(twi_gradient *g, const char *op)
{
    g->dx[0] = twi_build_like(g->node, op, TWI_INPUTS(g->dy[0], tw_node_output(g->node, 0)));
}

/* And by their arguments: dx from dy and x. */
static void from_input(twi_gradient *g, const char *op)
{
    g->dx[0] = twi_build_like(g->node, op, TWI_INPUTS(g->dy[0], g->node->inputs[0]));
}

/* The gradient of a gradient that only lets dy through here and there, or scales it by parts: the same again. */
static void through_same_gate(twi_gradient *g)
{
    g->dx[0] = twi_build_like(g->node, g->node->op->name, TWI_INPUTS(g->dy[0], g->node->inputs[1]));
}

static void relu_gradient(twi_gradient *g)
{
    from_output(g, "ReluGrad");
}

static void relu6_gradient(twi_gradient *g)
{
    from_output(g, "Relu6Grad");
}

static void leaky_relu_gradient(twi_gradient *g)
{
    from_input(g, "LeakyReluGrad");
}

static void elu_gradient(twi_gradient *g)
{
    from_output(g, "EluGrad");
}

static void selu_gradient(twi_gradient *g)
{
    from_output(g, "SeluGrad");
}

static void softplus_gradient(twi_gradient *g)
{
    from_input(g, "SoftplusGrad");
}

static void softsign_gradient(twi_gradient *g)
{
    from_input(g, "SoftsignGrad");
}

/* Of dx = dy * (y + constant) where y < 0, and of dx = dy * constant elsewhere. */
static void elu_grad_gradient(twi_gradient *g)
{
    tw_output dy = g->node->inputs[0], y = g->node->inputs[1], zeros = tw_zeros_like(g->graph, y);
    through_same_gate(g);
    g->dx[1] = tw_select(g->graph, tw_less(g->graph, y, zeros), tw_mul(g->graph, g->dy[0], dy), zeros);
}

/* Of dx = dy / (exp(-x) + 1), whose derivative by x is dx / (exp(x) + 1). */
static void softplus_grad_gradient(twi_gradient *g)
{
    tw_output x = g->node->inputs[1], dx = tw_node_output(g->node, 0);
    through_same_gate(g);
    g->dx[1] = twi_build(g->graph, "SoftplusGrad", TWI_INPUTS(tw_mul(g->graph, g->dy[0], dx), tw_neg(g->graph, x)),
                         TWI_NO_ATTRS);
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define FLOATS "T:{half,bfloat16,float,double}"
#define NUMBERS "T:{" TWI_REALS "}"
#define ALPHA "alpha:float=0.2; " FLOATS "=float"
#define UNARY "features:T", "activations:T"
#define GRADIENT "gradients:T, features:T", "backprops:T"
#define GRADIENT_BY_OUTPUTS "gradients:T, outputs:T", "backprops:T"

const twi_op twi_activation_ops[] = {
    {"Relu", UNARY, NUMBERS, twi_shape_same, relu_gradient, TWI_ELEMENTWISE},
    {"ReluGrad", GRADIENT, NUMBERS, twi_shape_merged, through_same_gate, TWI_ELEMENTWISE},
    {"Relu6", UNARY, NUMBERS, twi_shape_same, relu6_gradient, TWI_ELEMENTWISE},
    {"Relu6Grad", GRADIENT, NUMBERS, twi_shape_merged, through_same_gate, TWI_ELEMENTWISE},
    {"LeakyRelu", UNARY, ALPHA, twi_shape_same, leaky_relu_gradient, TWI_ELEMENTWISE},
    {"LeakyReluGrad", GRADIENT, ALPHA, twi_shape_merged, through_same_gate, TWI_ELEMENTWISE},
    {"Elu", UNARY, FLOATS, twi_shape_same, elu_gradient, TWI_ELEMENTWISE},
    {"EluGrad", GRADIENT_BY_OUTPUTS, FLOATS, twi_shape_merged, elu_grad_gradient, TWI_ELEMENTWISE},
    {"Selu", UNARY, FLOATS, twi_shape_same, selu_gradient, TWI_ELEMENTWISE},
    {"SeluGrad", GRADIENT_BY_OUTPUTS, FLOATS, twi_shape_merged, elu_grad_gradient, TWI_ELEMENTWISE},
    {"Softplus", UNARY, FLOATS, twi_shape_same, softplus_gradient, TWI_ELEMENTWISE},
    {"SoftplusGrad", GRADIENT, FLOATS, twi_shape_merged, softplus_grad_gradient, TWI_ELEMENTWISE},
    {"Softsign", UNARY, FLOATS, twi_shape_same, softsign_gradient, TWI_ELEMENTWISE},
    {"SoftsignGrad", GRADIENT, FLOATS, twi_shape_merged, NULL, TWI_ELEMENTWISE},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------- */

tw_output tw_relu(tw_graph *graph, tw_output x)
{
    return twi_build(graph, "Relu", TWI_INPUTS(x), TWI_NO_ATTRS);
}

tw_output tw_relu6(tw_graph *graph, tw_output x)
{
    return twi_build(graph, "Relu6", TWI_INPUTS(x), TWI_NO_ATTRS);
}

tw_output tw_leaky_relu(tw_graph *graph, tw_output x, float alpha)
{
    return twi_build(graph, "LeakyRelu", TWI_INPUTS(x), TWI_ATTRS(tw_attr_float("alpha", alpha)));
}

tw_output tw_elu(tw_graph *graph, tw_output x)
{
    return twi_build(graph, "Elu", TWI_INPUTS(x), TWI_NO_ATTRS);
}

tw_output tw_selu(tw_graph *graph, tw_output x)
{
    return twi_build(graph, "Selu", TWI_INPUTS(x), TWI_NO_ATTRS);
}

tw_output tw_softplus(tw_graph *graph, tw_output x)
{
    return twi_build(graph, "Softplus", TWI_INPUTS(x), TWI_NO_ATTRS);
}

tw_output tw_softsign(tw_graph *graph, tw_output x)
{
    return twi_build(graph, "Softsign", TWI_INPUTS(x), TWI_NO_ATTRS);
}

tw_output tw_gelu(tw_graph *graph, tw_output x)
{
    tw_dtype dtype = tw_output_dtype(x);
    if (!x.node)
        return x;
    tw_output y = {0};
    TW_NAME_SCOPE(graph, "gelu")
    {
        tw_output inside = tw_erf(graph, tw_mul(graph, x, tw_scalar_of(graph, dtype, 0.70710678118654752440)));
        tw_output half = tw_mul(graph, x, tw_scalar_of(graph, dtype, 0.5));
        y = tw_mul(graph, half, tw_add(graph, inside, tw_scalar_of(graph, dtype, 1)));
    }
    return y;
}
