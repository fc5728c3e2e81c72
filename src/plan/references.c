/* references.c - references of old graphs as handles and reads: a plan knows nothing else.
 *
 * A reference passed to who does not write it is a look at the variable when that node runs. So a read of its own is made
 * for each such node, with the node's own control inputs; equal ones are merged later, and order.c lets them share the
 * variable's memory. */
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

tw_status twi_read_reference(twi_planning *p, tw_output handle, tw_output writer, const tw_node *reader,
                             const tw_output *controls, int num_controls, tw_output *value)
{
    char name[640];
    tw_node *variable = handle.node;
    tw_attr type = tw_attr_type("dtype", variable->resource_dtype);
    tw_output *inputs = twi_arena_alloc(&p->plan->arena, sizeof *inputs * (size_t)(num_controls + 2));
    int count = 0;
    if (!inputs)
        return twi_fail_memory(p->error, "copying a graph");
    inputs[count++] = handle;
    for (int i = 0; i < num_controls; i++)
        inputs[count++] = controls[i];
    if (writer.node)
        inputs[count++] = writer;
    snprintf(name, sizeof name, "%.600s/read_value", variable->name);
    tw_node *read = twi_add_plain_node(p->rewriting.graph, "ReadVariableOp", name, variable->device,
                                       variable->assigned, inputs, count, &type, 1);
    if (!read)
        return TW_INTERNAL; /* the graph holds the message */
    read->order = reader->order;
    *value = tw_node_output(read, 0);
    return TW_OK;
}

tw_status twi_handle_attrs(twi_planning *p, const tw_node *node, const char *form, twi_attrs *attrs)
{
    const twi_op *op = twi_op_find(form);
    const twi_signature *s = op ? twi_graph_signature(p->rewriting.graph, op) : NULL;
    if (!op)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s' is not supported", node->op->name, node->name);
    attrs->count = 0;
    attrs->items = s ? twi_arena_alloc(&p->plan->arena, sizeof *attrs->items * (size_t)(s->num_attrs + 1)) : NULL;
    if (!attrs->items)
        return twi_fail_memory(p->error, "copying a graph");
    for (int i = 0; i < s->num_attrs; i++) {
        const char *name = s->attrs[i].name;
        const twi_attr *found = twi_attr_find(&node->attrs, name);
        if (!found && strcmp(name, "dtype") == 0)
            found = twi_attr_find(&node->attrs, "T");
        if (!found)
            continue;
        twi_attr *attr = &attrs->items[attrs->count++];
        *attr = *found;
        attr->name = name;
        if (strcmp(name, "shared_name") == 0 && found->s.size == 0)
            *attr = tw_attr_string(name, node->name);
    }
    return TW_OK;
}
