/* references.c - reference variables of old graphs: which outputs are references, and which op does the same by handle.
 *
 * A reference is the variable itself, passed along an edge; whoever takes it may write. Graphs keep such nodes as they
 * were read. A plan has handles and explicit reads alone (plan/references.c), so there is one mechanism behind both. */
#include "graph/graph.h"

bool twi_output_is_reference(tw_output output)
{
    return twi_op_gives_reference(output.node->op, &output.node->attrs, output.index);
}

bool twi_input_is_reference(const tw_node *node, int i)
{
    return twi_op_takes_reference(node->op, &node->attrs, i);
}
