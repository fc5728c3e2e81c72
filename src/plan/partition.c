/* partition.c - edges that cross devices become copies.
 * A copy for readers under one guard is made under that guard too; for readers of several branches it is made always.
 * A copy belongs to the receiving device. One tensor crosses to one device once, whatever the number of readers there.
 * Between devices of the host nothing is moved (prepare.c): the copy then only marks who waits for whom.
 * Constants are not copied: the receiving device gets a constant of its own. */
#include "plan/stages.h"

#include <stdio.h>

/* What has crossed already: by producing node a short list. */
typedef struct crossing {
    struct crossing *next;
    int index, device;
    twi_value value; /* on the receiving device */
} crossing;

static twi_node *make_crossing(twi_planning *p, twi_value from, const twi_node *reader)
{
    twi_region *region = p->rewriting.region;
    bool constant = twi_has_trait(from.node, TWI_CONSTANT);
    char *name = twi_arena_printf(&region->arena, "%s/%s_%d", from.node->name, constant ? "on" : "copy_to", reader->device);
    tw_attr type = tw_attr_type("T", twi_dtype(from));
    if (!name)
        return NULL;
    return twi_node_make(region, &(twi_wish){.op = constant ? from.node->op : region->known[TWI_OP__Copy], .name = name,
                                             .origin = reader->origin, .rank = reader->rank, .device = reader->device,
                                             .behind = reader->previous, .inputs = &from, .num_inputs = !constant,
                                             .attrs = constant ? from.node->attrs.items : &type,
                                             .num_attrs = constant ? from.node->attrs.count : 1});
}

/* The value on the reader's device. */
static tw_status find_crossing(twi_planning *p, crossing **crossings, twi_value from, const twi_node *reader,
                               twi_value *value)
{
    crossing *c = crossings[from.node->id];
    while (c && (c->index != from.index || c->device != reader->device))
        c = c->next;
    if (!c) {
        twi_node *made = make_crossing(p, from, reader);
        c = twi_arena_alloc(&p->plan->arena, sizeof *c);
        if (!made || !c)
            return twi_region_check(p->rewriting.region, p->error) == TW_OK
                       ? twi_fail_memory(p->error, "partitioning a graph")
                       : p->rewriting.region->error.status;
        *c = (crossing){crossings[from.node->id], from.index, reader->device, twi_out(made, 0)};
        crossings[from.node->id] = c;
        if (reader->guard && twi_has_trait(made, TWI_COPY))
            twi_set_guard(made, reader->guard);
    } else if (c->value.node->guard != reader->guard) {
        c->value.node->guard = NULL;
    }
    *value = c->value;
    return TW_OK;
}

static tw_status partition_inputs(twi_planning *p, crossing **crossings, twi_node *node)
{
    tw_status status = TW_OK;
    for (int i = 0; i < node->num_inputs && status == TW_OK; i++) {
        twi_value from = twi_in(node, i), there;
        if (from.node->device == node->device)
            continue;
        if (twi_dtype(from) == TW_RESOURCE && twi_has_trait(node, TWI_UNBOUND))
            continue;
        if (twi_dtype(from) == TW_RESOURCE)
            return twi_fail(p->error, TW_INVALID_ARGUMENT,
                            "'%s' on %s uses the resource '%s' on %s: a resource and its users must be colocated",
                            node->name, p->request->devices->items[node->device]->text, from.node->name,
                            p->request->devices->items[from.node->device]->text);
        status = find_crossing(p, crossings, from, node, &there);
        if (status == TW_OK)
            twi_set_input(node, i, there);
    }
    return status;
}

tw_status twi_partition(twi_planning *p)
{
    twi_region *region = p->rewriting.region;
    int n = region->nodes.count;
    crossing **crossings = twi_alloc_array((size_t)n + 1, sizeof *crossings);
    tw_status status = crossings ? TW_OK : twi_fail_memory(p->error, "partitioning a graph");
    for (int id = 0; id < n && status == TW_OK; id++) {
        status = partition_inputs(p, crossings, region->nodes.items[id]);
    }
    if (status == TW_OK)
        status = twi_region_sort(region, p->error);
    twi_free(crossings);
    return status;
}
