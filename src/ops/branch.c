/* branch.c - what runs under a condition: Switch and Merge, as TensorFlow 1 writes them, and what a plan makes of them.
 *
 * A plan has no Switch: who takes something from one carries a guard (graph/guards.h), and looks at what the Switch
 * looked at. A Merge becomes a chain of _Choose nodes, one an input, each under the guard of its input. */
#include "graph/blocks.h"
#include "graph/branches.h"
#include "graph/graph.h"
#include "ops/build.h"
#include "tensor/variant.h"

#include <tower/ops.h>

static tw_status switch_shape(twi_inference *c)
{
    c->outputs[0] = c->outputs[1] = c->inputs[0];
    return twi_expect_rank(c, 1, 0);
}

/* What two shapes have in common; dimensions in which they differ are unknown. */
static tw_shape common_shape(tw_shape a, tw_shape b)
{
    if (a.rank != b.rank)
        return TW_UNKNOWN_SHAPE;
    for (int i = 0; i < a.rank; i++)
        if (a.dims[i] != b.dims[i])
            a.dims[i] = -1;
    return a;
}

static tw_status merge_shape(twi_inference *c)
{
    bool lists = c->num_outputs && c->output_types[0] == TW_VARIANT;
    c->outputs[0] = c->num_inputs ? c->inputs[0] : TW_UNKNOWN_SHAPE;
    for (int i = 1; i < c->num_inputs; i++)
        c->outputs[0] =
            lists ? twi_join_elements(c->outputs[0], c->inputs[i]) : common_shape(c->outputs[0], c->inputs[i]);
    if (c->num_outputs > 1)
        c->outputs[1] = TW_SCALAR;
    return TW_OK;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static tw_output switched(twi_gradient *g, tw_output x, tw_output predicate, bool side)
{
    return tw_node_output(tw_add_node(g->graph, "Switch", NULL, (tw_output[]){x, predicate}, 2, NULL, 0), side);
}

/* Of a handle: like the variable's value. */
static tw_output zeros_like(twi_gradient *g, tw_output x)
{
    tw_attr type = tw_attr_type("dtype", x.node->resource_dtype);
    if (tw_output_dtype(x) == TW_RESOURCE)
        x = twi_build(g->graph, "ReadVariableOp", &x, 1, &type, 1);
    return twi_build(g->graph, "ZerosLike", &x, 1, TWI_NO_ATTRS);
}

/* What came back through the side that was taken; through one that nobody uses, zeros did. */
static void switch_gradient(twi_gradient *g)
{
    tw_output sides[] = {g->dy[0], g->dy[1]};
    for (int side = 0; side < 2; side++)
        if (!sides[side].node)
            sides[side] = switched(g, zeros_like(g, g->node->inputs[0]), g->node->inputs[1], side);
    g->dx[0] = tw_node_output(tw_add_node(g->graph, "Merge", NULL, sides, 2, NULL, 0), 0);
}

/* Goes back through the input that was taken: to the side of each condition that the input is on. */
static void merge_gradient(twi_gradient *g)
{
    for (int i = 0; i < g->node->num_inputs && g->dy[0].node; i++) {
        twi_condition_side sides[TWI_MOST_CONDITIONS];
        bool never;
        int count = twi_branches_between(g->graph, g->node, i, sides, &never);
        if (count < 0)
            return;
        if (never)
            continue;
        g->dx[i] = g->dy[0];
        for (int k = 0; k < count; k++)
            g->dx[i] = switched(g, g->dx[i], sides[k].predicate, sides[k].value);
    }
}

const twi_op twi_branch_ops[] = {
    {"Switch", "data:T, pred:bool", "output_false:T, output_true:T", "T:type", switch_shape, switch_gradient,
     TWI_SWITCH | TWI_UNBOUND, .planned_as = "Identity"},
    {"RefSwitch", "data:Ref(T), pred:bool", "output_false:Ref(T), output_true:Ref(T)", "T:type", switch_shape,
     switch_gradient, TWI_SWITCH, "h.", .planned_as = "NoOp"},
    {"Merge", "inputs:N*T", "output:T, value_index:int32", "T:type; N:int", merge_shape, merge_gradient, TWI_MERGE,
     .planned_as = "Identity"},
    {"RefMerge", "inputs:N*Ref(T)", "output:Ref(T), value_index:int32", "T:type; N:int", merge_shape, merge_gradient,
     TWI_MERGE, "h", .planned_as = "NoOp"},

    /* Made by the planner. Whether all predicates have the values that they must have. */
    {"_Guard", "predicates:N*bool", "holds:bool", "N:int; values:ints", twi_shape_scalar, NULL,
     TWI_STATEFUL | TWI_HOST_ONLY | TWI_REWRITTEN},
    /* Of numbers the one of the last guard that holds; the first is for when none does. */
    {"_Which", "guards:N*bool", "index:int32", "N:int; numbers:ints", twi_shape_scalar, NULL,
     TWI_HOST_ONLY | TWI_REWRITTEN},
    /* One input: the first of the chain. Two: what the chain gave so far, whose memory it keeps, and the next. */
    {"_Choose", "inputs:N*T", "output:T", "T:type; N:int", merge_shape, NULL,
     TWI_STATEFUL | TWI_REWRITTEN | TWI_CHOOSE},
    {0},
};

/* ---- builder ----------------------------------------------------------------------------------------------------- */

/* x as the branch gives it: what was not made there passes through it. */
static tw_output give(tw_graph *graph, tw_output predicate, bool value, tw_output x)
{
    tw_enter_branch(graph, predicate, value);
    if (x.node && x.node->block != twi_scope_block(graph))
        x = twi_build(graph, "Identity", &x, 1, TWI_NO_ATTRS);
    tw_leave_branch(graph);
    return x;
}

tw_output tw_cond(tw_graph *graph, tw_output predicate, tw_output then, tw_output otherwise)
{
    TWI_NEED_OR(graph, (tw_output){0});
    tw_node *merge = NULL;
    tw_enter_name_scope(graph, "%s", graph->next_name ? graph->next_name : "cond");
    graph->next_name = NULL;
    if (graph->error.status == TW_OK && (!then.node || !otherwise.node))
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "cond: %s is a dead output", then.node ? "otherwise" : "then");
    tw_output sides[] = {give(graph, predicate, false, otherwise), give(graph, predicate, true, then)};
    if (graph->error.status == TW_OK)
        merge = tw_add_node(graph, "Merge", NULL, sides, 2, NULL, 0);
    tw_leave_name_scope(graph);
    return tw_node_output(merge, 0);
}
