/* references.c - references of old graphs as handles and reads: a plan knows nothing else.
 *
 * A reference passed to who does not write it is a look at the variable when that node runs. So a read of its own is
 * made for each such node, with the node's own control inputs; equal ones are merged later, and order.c lets them share
 * the variable's memory. */
#include "plan/stages.h"

#include <string.h>

tw_status twi_read_reference(twi_planning *p, twi_value handle, twi_value writer, const tw_node *reader,
                             const twi_value *controls, int num_controls, twi_value *value)
{
    const twi_node *variable = handle.node;
    twi_region *region = p->rewriting.region;
    tw_attr type = tw_attr_type("dtype", variable->resource_dtype);
    twi_value *inputs = twi_arena_alloc(&p->plan->arena, sizeof *inputs * (size_t)(num_controls + 2));
    char *name = twi_arena_printf(&region->arena, "%s/read_value", variable->name);
    int count = 0;
    if (!inputs || !name)
        return twi_fail_memory(p->error, "copying a graph");
    inputs[count++] = handle;
    for (int i = 0; i < num_controls; i++)
        inputs[count++] = controls[i];
    if (writer.node)
        inputs[count++] = writer;
    twi_node *read = twi_node_make(region, &(twi_wish){.op = region->known[TWI_OP_ReadVariableOp], .name = name,
                                                       .origin = variable->origin, .rank = reader->order, .device = -1,
                                                       .behind = region->last, .inputs = inputs, .num_inputs = count,
                                                       .attrs = &type, .num_attrs = 1});
    *value = twi_out(read, 0);
    return twi_region_check(region, p->error);
}

tw_status twi_handle_attrs(twi_planning *p, const tw_node *node, const twi_op *form, twi_attrs *attrs)
{
    const twi_signature *s = twi_op_signature(form);
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
