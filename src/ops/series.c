/* series.c - stacks and TensorArrays: elements by number, that loops keep for each other.
 *
 * `flow` orders what is done to an array: each write gives the one that the next access takes. What shape an element
 * has is not said in the graph; a plan knows it from what is put in (plan/series.c), or takes what comes. */
#include "graph/graph.h"
#include "ops/build.h"
#include "ops/rules.h"

#include <stdio.h>

static tw_status push_shape(twi_inference *c)
{
    c->outputs[0] = c->inputs[1];
    return TW_OK;
}

/* What is neither a handle nor input `value` is a scalar: a size, an index, `flow`. */
static tw_status expect_scalars(twi_inference *c, int value)
{
    tw_status status = TW_OK;
    for (int i = 0; i < c->num_inputs && status == TW_OK; i++)
        if (c->input_types[i] != TW_RESOURCE && i != value)
            status = twi_expect_rank(c, i, 0);
    return status;
}

static tw_status made_shape(twi_inference *c)
{
    tw_status status = expect_scalars(c, -1);
    return status == TW_OK ? twi_shape_scalar(c) : status;
}

static tw_status taken_shape(twi_inference *c)
{
    return expect_scalars(c, -1);
}

static tw_status write_shape(twi_inference *c)
{
    tw_status status = expect_scalars(c, 2);
    return status == TW_OK ? twi_shape_scalar(c) : status;
}

/* Vectors of indices, with a row for each where some are put. */
static tw_status gather_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 1, 1);
    return status == TW_OK ? twi_expect_rank(c, 2, 0) : status;
}

static tw_status scatter_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 1, 1);
    if (status == TW_OK)
        status = twi_expect_rank_at_least(c, 2, 1);
    if (status == TW_OK)
        status = twi_expect_rank(c, 3, 0);
    if (status != TW_OK)
        return status;
    int64_t indices = c->inputs[1].rank < 0 ? -1 : c->inputs[1].dims[0];
    int64_t rows = c->inputs[2].rank < 0 ? -1 : c->inputs[2].dims[0];
    if (indices >= 0 && rows >= 0 && indices != rows)
        return twi_fail(c->error, TW_INVALID_ARGUMENT,
                        "Expected len(indices) == values.shape[0], but saw: %lld vs. %lld", (long long)indices,
                        (long long)rows);
    return twi_shape_scalar(c);
}

static tw_status split_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank_at_least(c, 1, 1);
    if (status == TW_OK)
        status = twi_expect_rank(c, 2, 1);
    if (status == TW_OK)
        status = twi_expect_rank(c, 3, 0);
    return status == TW_OK ? twi_shape_scalar(c) : status;
}

/* ---- gradients: of a loop of gradients there are none ------------------------------------------------------------ */

static void pop_gradient(twi_gradient *g)
{
    twi_graph_fail(g->graph, TW_UNIMPLEMENTED,
                   "gradients of a loop's gradients are not supported: '%s' gives what the loop has kept for these",
                   g->node->name);
}

/* ---- gradients: of an array, another one ------------------------------------------------------------------------- */

/* The array of the gradients of the one that the node works on, and what its first access comes after. */
typedef struct gradients {
    tw_output array, flow;
} gradients;

static gradients gradients_of(const twi_gradient *g, tw_output flow)
{
    char source[40];
    snprintf(source, sizeof source, "gradients/%d", g->first); /* those of one call of tw_gradients() meet */
    tw_attr attr = tw_attr_string("source", source);
    tw_output inputs[] = {g->node->inputs[0], flow};
    tw_node *node = tw_add_node(g->graph, "TensorArrayGradV3", NULL, inputs, 2, &attr, 1);
    return (gradients){tw_node_output(node, 0), tw_node_output(node, 1)};
}

/* What comes to what was taken is put where that was. */
static void put_back(twi_gradient *g, const char *op)
{
    gradients to = gradients_of(g, g->node->inputs[2]);
    g->dx[2] = twi_build(g->graph, op, TWI_INPUTS(to.array, g->node->inputs[1], g->dy[0], to.flow), TWI_NO_ATTRS);
}

static void read_gradient(twi_gradient *g)
{
    put_back(g, "TensorArrayWriteV3");
}

static void gather_gradient(twi_gradient *g)
{
    put_back(g, "TensorArrayScatterV3");
}

/* What has come there is taken. */
static void take_back(twi_gradient *g, const char *op)
{
    gradients from = gradients_of(g, g->dy[0]);
    tw_attr type = tw_attr_type("dtype", tw_output_dtype(g->node->inputs[2]));
    g->dx[2] = twi_build(g->graph, op, TWI_INPUTS(from.array, g->node->inputs[1], from.flow), &type, 1);
    g->dx[3] = g->dy[0];
}

static void write_gradient(twi_gradient *g)
{
    take_back(g, "TensorArrayReadV3");
}

static void scatter_gradient(twi_gradient *g)
{
    take_back(g, "TensorArrayGatherV3");
}

static void split_gradient(twi_gradient *g)
{
    gradients from = gradients_of(g, g->dy[0]);
    tw_attr type = tw_attr_type("dtype", tw_output_dtype(g->node->inputs[1]));
    g->dx[1] = twi_build(g->graph, "TensorArrayConcatV3", TWI_INPUTS(from.array, from.flow), &type, 1);
    g->dx[3] = g->dy[0];
}

static void concat_gradient(twi_gradient *g)
{
    gradients to = gradients_of(g, g->node->inputs[1]);
    tw_output lengths = {g->node, 1};
    g->dx[1] =
        twi_build(g->graph, "TensorArraySplitV3", TWI_INPUTS(to.array, g->dy[0], lengths, to.flow), TWI_NO_ATTRS);
}

#define ON(flags) TWI_STATEFUL | TWI_HOST_ONLY | (flags)

const twi_op twi_series_ops[] = {
    {"StackV2", "max_size:int32", "handle:resource", "elem_type:type; stack_name:string=", made_shape, NULL,
     ON(0), .makes = TWI_MAKES_SERIES},
    {"StackPushV2", "handle:resource, elem:T", "output:T", "T:type; swap_memory:bool=false", push_shape, NULL,
     ON(TWI_PUTS), "q."},
    {"StackPopV2", "handle:resource", "elem:elem_type", "elem_type:type", twi_shape_unknown, pop_gradient,
     ON(TWI_TAKES | TWI_MAKES_SHAPE), "q"},
    {"StackCloseV2", "handle:resource", "", "", twi_shape_unknown, NULL, ON(0), "q"},

    {"TensorArrayV3", "size:int32", "handle:resource, flow:float",
     "dtype:type; element_shape:shape=unknown; dynamic_size:bool=false; clear_after_read:bool=true; "
     "identical_element_shapes:bool=false; tensor_array_name:string=",
     made_shape, twi_not_differentiable, ON(0), .makes = TWI_MAKES_SERIES},
    {"TensorArrayGradV3", "handle:resource, flow_in:float", "grad_handle:resource, flow_out:float", "source:string",
     made_shape, NULL, ON(0), "q.", .makes = TWI_MAKES_SERIES},
    {"TensorArrayWriteV3", "handle:resource, index:int32, value:T, flow_in:float", "flow_out:float", "T:type",
     write_shape, write_gradient, ON(TWI_PUTS), "q..."},
    {"TensorArrayReadV3", "handle:resource, index:int32, flow_in:float", "value:dtype", "dtype:type", taken_shape,
     read_gradient, ON(TWI_TAKES | TWI_MAKES_SHAPE), "q.."},
    {"TensorArrayScatterV3", "handle:resource, indices:int32, value:T, flow_in:float", "flow_out:float", "T:type",
     scatter_shape, scatter_gradient, ON(TWI_PUTS), "q..."},
    {"TensorArrayGatherV3", "handle:resource, indices:int32, flow_in:float", "value:dtype",
     "dtype:type; element_shape:shape=unknown", gather_shape, gather_gradient, ON(TWI_TAKES | TWI_MAKES_SHAPE),
     "q.."},
    {"TensorArraySplitV3", "handle:resource, value:T, lengths:int64, flow_in:float", "flow_out:float", "T:type",
     split_shape, split_gradient, ON(0), "q..."},
    {"TensorArrayConcatV3", "handle:resource, flow_in:float", "value:dtype, lengths:int64",
     "dtype:type; element_shape_except0:shape=unknown", taken_shape, concat_gradient, ON(TWI_MAKES_SHAPE), "q."},
    {"TensorArraySizeV3", "handle:resource, flow_in:float", "size:int32", "", made_shape, twi_not_differentiable,
     ON(TWI_COUNTS), "q."},
    {"TensorArrayCloseV3", "handle:resource", "", "", twi_shape_unknown, NULL, ON(0), "q"},

    /* Made by the planner: one that was made outside of the loop. */
    {"_Series", "", "handle:resource", "", twi_shape_scalar, NULL, ON(TWI_REWRITTEN), .makes = TWI_MAKES_SERIES},
    {0},
};
