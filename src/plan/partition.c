/* partition.c - edges that cross devices become copies.
 * A copy for readers under one guard is made under that guard too; for readers of several branches it is made always.
 * A copy belongs to the receiving device. One tensor crosses to one device once, whatever the number of readers there.
 * Between devices of the host nothing is moved (prepare.c): the copy then only marks who waits for whom.
 * Constants are not copied: the receiving device gets a constant of its own, which comes after what the first does.
 * A guard is read where it was made, by all devices of that task; each other task has a copy of it. */
#include "plan/stages.h"

#include "device/tasks.h"

#include <stdio.h>

/* What has crossed already, in short lists: a variable may cross to each of a thousand devices. */
typedef struct crossing {
    struct crossing *next;
    twi_value from;
    int device;
    twi_value value; /* on the receiving device */
} crossing;

typedef struct crossings {
    crossing **lists; /* [count] */
    size_t count;
} crossings;

static crossing **list_of(const crossings *all, twi_value from, int device)
{
    return &all->lists[((size_t)from.node->id + (size_t)device * 31) % all->count];
}

/* For whom a value crosses: a node, the device where it is read, and the guard under which it is. */
typedef struct reading {
    const twi_node *node;
    int device;
    twi_node *guard;
} reading;

static twi_node *make_crossing(twi_planning *p, twi_value from, const reading *r)
{
    const twi_node *reader = r->node;
    twi_region *region = p->rewriting.region;
    bool constant = twi_has_trait(from.node, TWI_CONSTANT);
    char *name = twi_arena_printf(&region->arena, "%s/%s_%d", from.node->name, constant ? "on" : "copy_to", r->device);
    tw_attr type = tw_attr_type("T", twi_dtype(from));
    if (!name)
        return NULL;
    twi_node *made =
        twi_node_make(region, &(twi_wish){.op = constant ? from.node->op : region->known[TWI_OP__Copy], .name = name,
                                          .origin = reader->origin, .rank = reader->rank, .device = r->device,
                                          .behind = reader->previous, .inputs = &from, .num_inputs = !constant,
                                          .attrs = constant ? from.node->attrs.items : &type,
                                          .num_attrs = constant ? from.node->attrs.count : 1});
    for (int i = 0; constant && made && i < from.node->num_controls; i++)
        if (!twi_add_control(made, from.node->controls[i]->node))
            return NULL;
    return made;
}

/* The value where it is read. */
static tw_status find_crossing(twi_planning *p, const crossings *all, twi_value from, const reading *r,
                               twi_value *value)
{
    crossing **list = list_of(all, from, r->device), *c = *list;
    while (c && (c->from.node != from.node || c->from.index != from.index || c->device != r->device))
        c = c->next;
    if (!c) {
        twi_node *made = make_crossing(p, from, r);
        c = twi_arena_alloc(&p->plan->arena, sizeof *c);
        if (!made || !c)
            return twi_region_check(p->rewriting.region, p->error) == TW_OK
                       ? twi_fail_memory(p->error, "partitioning a graph")
                       : p->rewriting.region->error.status;
        *c = (crossing){*list, from, r->device, twi_out(made, 0)};
        *list = c;
        if (r->guard && twi_has_trait(made, TWI_COPY))
            twi_set_guard(made, r->guard);
    } else if (c->value.node->guard != r->guard) {
        c->value.node->guard = NULL;
    }
    *value = c->value;
    return TW_OK;
}

static tw_status partition_inputs(twi_planning *p, const crossings *all, twi_node *node)
{
    tw_status status = TW_OK;
    reading r = {node, node->device, node->guard};
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
        status = find_crossing(p, all, from, &r, &there);
        if (status == TW_OK)
            twi_set_input(node, i, there);
    }
    return status;
}

/* A node of a task that has not made its guard goes by a copy. */
static tw_status partition_guard(twi_planning *p, const crossings *all, twi_node *node)
{
    const tw_devices *devices = p->request->devices;
    twi_node *guard = node->guard;
    twi_value there;
    int task = devices->items[node->device]->task;
    if (!guard || devices->items[guard->device]->task == task)
        return TW_OK;
    reading r = {node, twi_host_of(devices, task), NULL};
    tw_status status = find_crossing(p, all, twi_out(guard, 0), &r, &there);
    if (status != TW_OK)
        return status;
    twi_drop_control(node, guard);
    twi_set_guard(node, there.node);
    return twi_region_check(p->rewriting.region, p->error);
}

tw_status twi_partition(twi_planning *p)
{
    twi_region *region = p->rewriting.region;
    int n = region->nodes.count;
    crossings all = {.count = (size_t)n + 1};
    all.lists = twi_alloc_array(all.count, sizeof *all.lists);
    tw_status status = all.lists ? TW_OK : twi_fail_memory(p->error, "partitioning a graph");
    for (int id = 0; id < n && status == TW_OK; id++)
        status = partition_inputs(p, &all, region->nodes.items[id]);
    for (int id = 0, end = region->nodes.count; id < end && status == TW_OK; id++)
        status = partition_guard(p, &all, region->nodes.items[id]);
    if (status == TW_OK)
        status = twi_region_sort(region, p->error);
    twi_free(all.lists);
    return status;
}
