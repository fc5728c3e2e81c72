/* colocation.c - groups of nodes that must share a device: whoever touches a variable runs where the variable lives,
 * and whoever names a node in `_class` runs where that node runs. */
#include "place/colocation.h"

#include "base/log.h"

#include <string.h>

bool twi_names_a_device(const twi_device_name *name)
{
    return name->job[0] || name->type[0] || name->replica >= 0 || name->task >= 0 || name->id >= 0 ||
           name->uuid[0];
}

static int find_root(twi_member *members, int node)
{
    while (members[node].parent != node) {
        members[node].parent = members[members[node].parent].parent;
        node = members[node].parent;
    }
    return node;
}

twi_member *twi_group_of(twi_groups *groups, int node)
{
    return &groups->members[find_root(groups->members, node)];
}

/* ---- every node alone ------------------------------------------------------------------------------------------ */

static tw_status list_kinds(twi_groups *g, tw_error *error)
{
    int count = g->devices->count, preferred = 0;
    g->kind_of = twi_alloc_array((size_t)count, sizeof *g->kind_of);
    g->preference = twi_alloc_array((size_t)count, sizeof *g->preference);
    if (!g->kind_of || !g->preference)
        return twi_fail_memory(error, "placing the graph");
    for (int i = 0; i < count; i++) {
        twi_device *d = g->devices->items[i];
        int kind = 0;
        while (kind < g->num_kinds && g->kinds[kind]->ops != d->ops)
            kind++;
        if (kind == TWI_MOST_KINDS)
            return twi_fail(error, TW_INTERNAL, "more than %d kinds of devices", TWI_MOST_KINDS);
        if (kind == g->num_kinds)
            g->kinds[g->num_kinds++] = d;
        g->kind_of[i] = kind;
    }
    for (int is_cpu = 0; is_cpu < 2; is_cpu++)
        for (int i = 0; i < count; i++)
            if ((strcmp(g->devices->items[i]->name.type, "CPU") == 0) == is_cpu)
                g->preference[preferred++] = i;
    return TW_OK;
}

const char *twi_refusal_of(const twi_groups *g, const tw_node *node, int kind)
{
    for (int i = 0; i < g->refusals->count; i++)
        if (g->refusals->items[i].node == node && g->kind_of[g->refusals->items[i].device] == kind)
            return g->refusals->items[i].reason;
    return NULL;
}

unsigned twi_kinds_with_kernel(const twi_groups *g, const tw_node *node)
{
    unsigned kinds = 0;
    for (int kind = 0; kind < g->num_kinds; kind++) {
        const twi_device *d = g->kinds[kind];
        bool barred = ((node->op->flags & TWI_HOST_ONLY) && !d->is_host) ||
                      twi_device_lacks(d, node->op->name, twi_kernel_type(&node->attrs)) ||
                      twi_refusal_of(g, node, kind);
        if (!barred && twi_device_has_kernel(d, twi_op_planned(node->op), &node->attrs))
            kinds |= 1u << kind;
    }
    return kinds;
}

/* Makes a variable or the like out of nothing: the device asked for it is the resource's. */
static bool makes_a_resource(const tw_node *node)
{
    return node->num_inputs == 0 && node->num_outputs == 1 &&
           (node->output_types[0] == TW_RESOURCE || twi_output_is_reference((tw_output){(tw_node *)node, 0}));
}

static tw_status start_member(twi_groups *g, const tw_node *node, int earlier, tw_error *error)
{
    twi_member *m = &g->members[node->id];
    *m = (twi_member){.parent = node->id,
                      .size = 1,
                      .requested = TWI_NO_DEVICE,
                      .resource = TWI_NO_DEVICE,
                      .asker = -1,
                      .assigned = earlier,
                      .kept = earlier >= 0,
                      .chooser = earlier >= 0 ? node->id : -1};
    memset(m->lacking, -1, sizeof m->lacking);
    if (earlier >= 0) {
        m->requested = g->devices->items[earlier]->name;
        m->kinds = 1u << g->kind_of[earlier];
        return TW_OK;
    }
    tw_error malformed = {0};
    if (node->device[0] && twi_device_name_parse(node->device, &m->requested, &malformed) != TW_OK)
        return twi_fail_malformed(node, &malformed, error);
    if (twi_names_a_device(&m->requested))
        m->asker = node->id;
    if (makes_a_resource(node))
        m->resource = m->requested;
    m->kinds = twi_kinds_with_kernel(g, node);
    for (int kind = 0; kind < g->num_kinds; kind++)
        if (!(m->kinds >> kind & 1))
            m->lacking[kind] = node->id;
    m->nowhere = m->kinds == 0;
    return TW_OK;
}

/* ---- joining --------------------------------------------------------------------------------------------------- */

/* The requests of the group that results. Over a resource edge a's request wins where the two cannot both hold. */
static tw_status merge_requests(const twi_groups *g, const twi_member *a, const twi_member *b, twi_link link,
                                twi_member *merged, tw_error *error)
{
    tw_status status = TW_OK;
    *merged = *a;
    if (a->assigned >= 0 && b->assigned >= 0 && a->assigned != b->assigned)
        TWI_TRY(twi_device_name_merge(&a->requested, &b->requested, false, &merged->requested, error));
    TWI_TRY(twi_device_name_merge(&a->resource, &b->resource, false, &merged->resource, error));
    if (link == TWI_BY_CLASS)
        TWI_TRY(twi_device_name_merge(&a->requested, &b->requested, g->options.soft, &merged->requested, error));
    else if (twi_device_name_merge(&a->requested, &b->requested, false, &merged->requested, NULL) != TW_OK)
        merged->requested = a->requested;
    merged->assigned = a->assigned >= 0 ? a->assigned : b->assigned;
    merged->chooser = a->assigned >= 0 ? a->chooser : b->chooser;
    merged->kept = a->kept || b->kept;
    merged->requested = twi_device_name_override(&merged->requested, &merged->resource);
    if (merged->assigned >= 0)
        merged->requested = g->devices->items[merged->assigned]->name;
    if (a->asker < 0 || (!a->requested.type[0] && b->requested.type[0]))
        merged->asker = b->asker;
    merged->kinds = a->kinds & b->kinds;
    for (int kind = 0; kind < g->num_kinds; kind++)
        if (merged->lacking[kind] < 0)
            merged->lacking[kind] = b->lacking[kind];
done:
    return status;
}

static void tell_ignored_request(const twi_groups *g, const twi_member *a, const twi_member *b, const tw_node *from,
                                 const tw_node *to)
{
    char asked[192], kept[192];
    twi_device_name both;
    if (!twi_log_wants(TWI_LOG_INFO) ||
        twi_device_name_merge(&a->requested, &b->requested, false, &both, NULL) == TW_OK || b->asker < 0)
        return;
    twi_log(TWI_LOG_INFO,
            "Ignoring device specification %s for node '%s' because the input edge from '%s' is a reference connection "
            "and already has a device field set to %s",
            twi_device_name_print(&b->requested, asked, sizeof asked), g->graph->nodes.items[to->id]->name, from->name,
            twi_device_name_print(&a->requested, kept, sizeof kept));
}

static tw_status join(twi_groups *g, const tw_node *from, const tw_node *to, twi_link link, tw_error *error)
{
    int root_a = find_root(g->members, from->id), root_b = find_root(g->members, to->id);
    twi_member *a = &g->members[root_a], *b = &g->members[root_b], merged;
    if (root_a == root_b || a->nowhere || b->nowhere)
        return TW_OK;
    tw_error merge_error = {0};
    tw_status status = merge_requests(g, a, b, link, &merged, &merge_error);
    bool joined = status == TW_OK && merged.kinds != 0;
    if (!joined && g->options.soft && link == TWI_BY_CLASS) {
        twi_log(TWI_LOG_INFO, "Ignoring the colocation of '%s' with '%s': %s", to->name, from->name,
                status != TW_OK ? merge_error.message : "no device type supports both");
        return TW_OK;
    }
    if (!joined)
        return twi_fail_to_colocate(g, from, to, status != TW_OK ? &merge_error : NULL, error);
    if (link == TWI_BY_RESOURCE)
        tell_ignored_request(g, a, b, from, to);

    if (!twi_push(&g->joins, (twi_join){from->id, to->id, link}))
        return twi_fail_memory(error, "placing the graph");
    int root = a->size >= b->size ? root_a : root_b, child = root == root_a ? root_b : root_a;
    merged.parent = root;
    merged.size = a->size + b->size;
    g->members[root] = merged;
    g->members[child].parent = root;
    return TW_OK;
}

static tw_status join_resource_edges(twi_groups *g, tw_error *error)
{
    tw_status status = TW_OK;
    for (int id = 0; id < g->graph->nodes.count; id++) {
        const tw_node *node = g->graph->nodes.items[id];
        if (twi_op_is(node->op, TWI_UNBOUND))
            continue;
        for (int i = 0; i < node->num_inputs; i++) {
            tw_output input = node->inputs[i];
            if (input.node->output_types[input.index] == TW_RESOURCE ||
                (twi_output_is_reference(input) && twi_input_is_reference(node, i)))
                TWI_TRY(join(g, input.node, node, TWI_BY_RESOURCE, error));
        }
    }
done:
    return status;
}

/* The first who names a node that is absent from the graph stands for it. */
static tw_status join_classes(twi_groups *g, tw_error *error)
{
    twi_map absent = {0};
    tw_status status = TW_OK;
    for (int id = 0; id < g->graph->nodes.count; id++) {
        tw_node *node = g->graph->nodes.items[id];
        const twi_attr *class = twi_attr_find(&node->attrs, "_class");
        for (int i = 0; class && class->kind == TW_ATTR_STRINGS && i < class->count; i++) {
            const char *text = class->strings[i].data;
            if (strncmp(text, "loc:@", 5) != 0)
                continue;
            tw_node *with = twi_map_get(&g->graph->by_name, text + 5);
            if (!with)
                with = twi_map_get(&absent, text + 5);
            if (with)
                TWI_TRY(join(g, with, node, TWI_BY_CLASS, error));
            else if (!twi_map_put(&absent, text + 5, node))
                TWI_TRY(twi_fail_memory(error, "placing the graph"));
        }
    }
done:
    twi_map_free(&absent);
    return status;
}

tw_status twi_groups_build(twi_groups *g, const tw_graph *graph, const twi_placement_options *options,
                           const twi_refusals *refusals, const int *earlier, int num_earlier, tw_error *error)
{
    tw_status status = TW_OK;
    *g = (twi_groups){.graph = graph, .devices = options->devices, .options = *options, .refusals = refusals};
    g->members = twi_alloc_array((size_t)graph->nodes.count, sizeof *g->members);
    if (!g->members)
        TWI_TRY(twi_fail_memory(error, "placing the graph"));
    TWI_TRY(list_kinds(g, error));
    for (int id = 0; id < graph->nodes.count; id++)
        TWI_TRY(start_member(g, graph->nodes.items[id], id < num_earlier ? earlier[id] : -1, error));
    TWI_TRY(join_resource_edges(g, error));
    TWI_TRY(join_classes(g, error));
done:
    return status;
}

void twi_groups_free(twi_groups *g)
{
    twi_free(g->members);
    twi_free(g->kind_of);
    twi_free(g->preference);
    twi_array_free(&g->joins);
}
