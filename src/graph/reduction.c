/* reduction.c - nodes that bring together what several devices computed, known to all that asks what a node is for.
 * Never here:  how they are made (train/reduce.c), what comes of it (plan/overlap.c, run/waterfall.c). */
#include "graph/graph.h"

/* A node runs right after what it needs, as if it had been made with it: so the first gradients meet while the last
 * ones are still being computed. What looks at the result of NCCL, which works on beside the device, does not. */
static void run_early(tw_node *node, int first)
{
    int order = -1;
    for (int i = 0; i < node->num_inputs; i++) {
        const tw_node *input = node->inputs[i].node;
        bool constant = input->id >= first && input->num_inputs == 0;
        if (twi_op_is(input->op, TWI_COLLECTIVE))
            return;
        if (!constant && input->order > order)
            order = input->order;
    }
    if (order >= 0)
        node->order = order;
}

void tw_mark_reduction(tw_graph *graph, int first)
{
    TWI_NEED_OR(graph, );
    for (int id = first; id < graph->nodes.count && graph->error.status == TW_OK; id++) {
        twi_mark_node(graph->nodes.items[id], "_reduction");
        run_early(graph->nodes.items[id], first);
    }
}
