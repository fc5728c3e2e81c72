/* references.c - reference variables of old graphs: which outputs are references, and which op does the same by handle.
 *
 * A reference is the variable itself, passed along an edge; whoever takes it may write. Graphs keep such nodes as they
 * were read. A plan has handles and explicit reads alone (plan/references.c), so there is one mechanism behind both. */
#include "graph/graph.h"

#include <string.h>

/* The signature's argument behind the index-th input or output. */
static const twi_argument *argument_at(const twi_argument *arguments, int count, const twi_attrs *attrs, int index)
{
    for (int i = 0; i < count; i++) {
        const twi_attr *list = arguments[i].list_attr ? twi_attr_find(attrs, arguments[i].list_attr) : NULL;
        int length = 1;
        if (arguments[i].number_attr)
            length = (int)twi_attr_int(attrs, arguments[i].number_attr, 1);
        else if (list)
            length = list->count;
        if (index < length)
            return &arguments[i];
        index -= length;
    }
    return NULL;
}

bool twi_output_is_reference(tw_output output)
{
    const tw_node *node = output.node;
    const twi_signature *s =
        strstr(node->op->outputs, "Ref(") ? twi_map_get(&node->graph->signatures, node->op->name) : NULL;
    const twi_argument *argument = s ? argument_at(s->outputs, s->num_outputs, &node->attrs, output.index) : NULL;
    return argument && argument->is_ref;
}

bool twi_input_is_reference(const tw_node *node, int i)
{
    const twi_signature *s =
        strstr(node->op->inputs, "Ref(") ? twi_map_get(&node->graph->signatures, node->op->name) : NULL;
    const twi_argument *argument = s ? argument_at(s->inputs, s->num_inputs, &node->attrs, i) : NULL;
    return argument && argument->is_ref;
}

const char *twi_handle_form(const char *op)
{
    static const char *const forms[][2] = {
        {"VariableV2", "VarHandleOp"},
        {"Variable", "VarHandleOp"},
        {"IsVariableInitialized", "VarIsInitializedOp"},
        {"RefIdentity", "NoOp"},
        {"Assign", "AssignVariableOp"},
        {"AssignAdd", "AssignAddVariableOp"},
        {"AssignSub", "AssignSubVariableOp"},
        {"CountUpTo", "ResourceCountUpTo"},
        {"ScatterAdd", "ResourceScatterAdd"},
        {"ScatterSub", "ResourceScatterSub"},
        {"ScatterUpdate", "ResourceScatterUpdate"},
        {"ApplyGradientDescent", "ResourceApplyGradientDescent"},
        {"ApplyMomentum", "ResourceApplyMomentum"},
        {"ApplyAdam", "ResourceApplyAdam"},
        {"ApplyRMSProp", "ResourceApplyRMSProp"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i][0], op) == 0)
            return forms[i][1];
    return op;
}
