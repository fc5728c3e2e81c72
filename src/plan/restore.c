/* restore.c - what a node of TensorFlow's Saver that restores gives: its files are read when it runs, but shapes are
 * known before, and those are the shapes of the variables that it is for. */
#include "plan/stages.h"

#include <string.h>

/* Which output of `restore` the node assigns to a variable, perhaps by way of Identity; -1: none. */
static int restored_by(const tw_node *node, const tw_node *restore)
{
    if (node->num_inputs < 2 || twi_op_role(node->op, &node->attrs, 0) != 'w')
        return -1;
    tw_output value = node->inputs[1];
    while (twi_op_is(value.node->op, TWI_PASSES))
        value = value.node->inputs[value.index];
    return value.node == restore ? value.index : -1;
}

tw_status twi_restored_attrs(twi_planning *p, const tw_node *node, twi_attrs *attrs)
{
    const tw_graph *graph = node->graph;
    twi_attr *items = twi_arena_alloc(&p->plan->arena, 2 * sizeof *items);
    tw_shape *shapes = twi_arena_alloc(&p->plan->arena, sizeof *shapes * ((size_t)node->num_outputs + 1));
    if (!items || !shapes)
        return twi_fail_memory(p->error, "copying a graph");
    for (int i = 0; i < node->num_outputs; i++)
        shapes[i] = TW_UNKNOWN_SHAPE;
    for (int id = node->id + 1; id < graph->nodes.count; id++) {
        const tw_node *assign = graph->nodes.items[id];
        int output = restored_by(assign, node);
        if (output >= 0)
            shapes[output] = assign->inputs[0].node->output_shapes[assign->inputs[0].index];
    }
    items[0] = tw_attr_types("dtypes", node->output_types, node->num_outputs);
    items[1] = tw_attr_shapes("shapes", shapes, node->num_outputs);
    *attrs = (twi_attrs){items, 2};
    return TW_OK;
}
