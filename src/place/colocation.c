/* colocation.c - groups of nodes that must share a device: whoever touches a variable runs where the variable lives,
 * and whoever names a node in `_class` runs where that node runs. */
#include "place/colocation.h"

#include "base/log.h"

#include <stdio.h>
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

/* What can run on one can run on the other, whichever task they are of. */
static bool is_same_kind(const twi_device *a, const twi_device *b)
{
    return a->kernels == b->kernels && a->is_host == b->is_host && strcmp(a->ops->kind, b->ops->kind) == 0;
}

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
        while (kind < g->num_kinds && !is_same_kind(g->kinds[kind], d))
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
                      twi_device_lacks(d, node->op->name, node->kernel_type) ||
                      twi_refusal_of(g, node, kind);
        if (!barred && twi_device_has_kernel(d, twi_op_planned(node->op), node->kernel_type))
            kinds |= 1u << kind;
    }
    return kinds;
}

static bool is_same_name(const twi_device_name *a, const twi_device_name *b)
{
    return a->replica == b->replica && a->task == b->task && a->id == b->id && strcmp(a->job, b->job) == 0 &&
           strcmp(a->type, b->type) == 0 && strcmp(a->uuid, b->uuid) == 0;
}

const twi_device_name *twi_keep_name(twi_groups *g, const twi_device_name *name)
{
    char key[192]; /* all of it; what is printed has no UUID beside a number */
    if (g->latest_name && is_same_name(g->latest_name, name)) /* the next node asks for it, too */
        return g->latest_name;
    snprintf(key, sizeof key, "%s/%d/%d/%s/%d/%s", name->job, name->replica, name->task, name->type, name->id,
             name->uuid);
    twi_device_name *kept = twi_map_get(&g->names, key);
    if (!kept) {
        const char *own = twi_arena_strdup(&g->arena, key);
        kept = twi_arena_copy(&g->arena, name, sizeof *name);
        if (!own || !kept || !twi_map_put(&g->names, own, kept))
            return NULL;
    }
    return g->latest_name = kept;
}

static bool asks_for_nothing(const twi_groups *g, const twi_device_name *name)
{
    return name == g->nothing;
}

/* What the latest node asked for: nodes of one scope have one text. */
typedef struct request {
    const char *text;
    const twi_device_name *name;
} request;

static tw_status read_request(twi_groups *g, const tw_node *node, request *latest, tw_error *error)
{
    tw_error malformed;
    twi_device_name name = TWI_NO_DEVICE;
    if (latest->text == node->device)
        return TW_OK;
    if (node->device[0] && twi_device_name_parse(node->device, &name, &malformed) != TW_OK)
        return twi_fail_malformed(node, &malformed, error);
    *latest = (request){node->device, twi_keep_name(g, &name)};
    return latest->name ? TW_OK : twi_fail_memory(error, "placing the graph");
}

static bool gives_resource(const tw_node *node)
{
    bool gives = false;
    for (int i = 0; i < node->num_outputs && !gives; i++)
        gives = node->output_types[i] == TW_RESOURCE || twi_output_is_reference((tw_output){(tw_node *)node, i});
    return gives;
}

static tw_status start_member(twi_groups *g, const tw_node *node, int earlier, request *latest, tw_error *error)
{
    twi_member *m = &g->members[node->id];
    *m = (twi_member){.parent = node->id,
                      .size = 1,
                      .resource = g->nothing,
                      .asker = -1,
                      .assigned = earlier,
                      .kept = earlier >= 0,
                      .chooser = earlier >= 0 ? node->id : -1};
    memset(m->lacking, -1, sizeof m->lacking);
    bool makes_one = node->num_inputs == 0 && node->num_outputs == 1, gives = gives_resource(node);
    g->gives_resource[node->id] = gives;
    g->generates[node->id] = makes_one && (!gives || node->output_types[0] == TW_RESOURCE); /* no reference */
    if (earlier >= 0) {
        m->requested = twi_keep_name(g, &g->devices->items[earlier]->name);
        m->kinds = 1u << g->kind_of[earlier];
        return m->requested ? TW_OK : twi_fail_memory(error, "placing the graph");
    }
    tw_status status = read_request(g, node, latest, error);
    if (status != TW_OK)
        return status;
    m->requested = latest->name;
    if (!asks_for_nothing(g, m->requested))
        m->asker = node->id;
    if (makes_one && gives)
        m->resource = m->requested; /* of the variable or the like that it makes out of nothing */
    m->kinds = twi_kinds_with_kernel(g, node);
    for (int kind = 0; kind < g->num_kinds; kind++)
        if (!(m->kinds >> kind & 1))
            m->lacking[kind] = node->id;
    m->nowhere = m->kinds == 0;
    return TW_OK;
}

/* ---- joining --------------------------------------------------------------------------------------------------- */

/* twi_device_name_merge() of kept names. */
static tw_status merge_names(twi_groups *g, const twi_device_name *a, const twi_device_name *b, bool soft,
                             const twi_device_name **merged, tw_error *error)
{
    twi_device_name name;
    *merged = asks_for_nothing(g, a) ? b : a;
    if (a == b || asks_for_nothing(g, a) || asks_for_nothing(g, b))
        return TW_OK;
    tw_status status = twi_device_name_merge(a, b, soft, &name, error);
    if (status != TW_OK)
        return status;
    *merged = twi_keep_name(g, &name);
    return *merged ? TW_OK : twi_fail_memory(error, "placing the graph");
}

/* twi_device_name_override() of kept names; NULL when out of memory. */
static const twi_device_name *override_name(twi_groups *g, const twi_device_name *outer, const twi_device_name *inner)
{
    if (outer == inner || asks_for_nothing(g, inner))
        return outer;
    twi_device_name name = twi_device_name_override(outer, inner);
    return twi_keep_name(g, &name);
}

/* The requests of the group that results. Over a resource edge a's request wins where the two cannot both hold. */
static tw_status merge_requests(twi_groups *g, const twi_member *a, const twi_member *b, twi_link link,
                                twi_member *merged, tw_error *error)
{
    tw_status status = TW_OK;
    twi_device_name both;
    *merged = *a;
    if (a->assigned >= 0 && b->assigned >= 0 && a->assigned != b->assigned)
        TWI_TRY(twi_device_name_merge(a->requested, b->requested, false, &both, error));
    TWI_TRY(merge_names(g, a->resource, b->resource, false, &merged->resource, error));
    if (link == TWI_BY_CLASS)
        TWI_TRY(merge_names(g, a->requested, b->requested, g->options.soft, &merged->requested, error));
    else if (merge_names(g, a->requested, b->requested, false, &merged->requested, NULL) != TW_OK)
        merged->requested = a->requested;
    merged->assigned = a->assigned >= 0 ? a->assigned : b->assigned;
    merged->chooser = a->assigned >= 0 ? a->chooser : b->chooser;
    merged->kept = a->kept || b->kept;
    merged->requested = merged->assigned >= 0 ? twi_keep_name(g, &g->devices->items[merged->assigned]->name)
                                              : override_name(g, merged->requested, merged->resource);
    if (!merged->requested)
        TWI_LEAVE(twi_fail_memory(error, "placing the graph"));
    if (a->asker < 0 || (!a->requested->type[0] && b->requested->type[0]))
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
        twi_device_name_merge(a->requested, b->requested, false, &both, NULL) == TW_OK || b->asker < 0)
        return;
    twi_log(TWI_LOG_INFO,
            "Ignoring device specification %s for node '%s' because the input edge from '%s' is a reference connection "
            "and already has a device field set to %s",
            twi_device_name_print(b->requested, asked, sizeof asked), g->graph->nodes.items[to->id]->name, from->name,
            twi_device_name_print(a->requested, kept, sizeof kept));
}

static tw_status join(twi_groups *g, const tw_node *from, const tw_node *to, twi_link link, tw_error *error)
{
    int root_a = find_root(g->members, from->id), root_b = find_root(g->members, to->id);
    twi_member *a = &g->members[root_a], *b = &g->members[root_b], merged;
    if (root_a == root_b || a->nowhere || b->nowhere)
        return TW_OK;
    tw_error merge_error;
    twi_clear_error(&merge_error);
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

/* Where a handle comes from, through nodes that need not be there. */
static tw_output maker_of(tw_output handle)
{
    while (twi_op_is(handle.node->op, TWI_UNBOUND) && handle.node->num_inputs)
        handle = handle.node->inputs[twi_op_is(handle.node->op, TWI_PASSES) ? handle.index : 0];
    return handle;
}

/* With those whose resources it uses, which have been met before it. */
static tw_status join_resources(twi_groups *g, const tw_node *node, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < node->num_inputs && !twi_op_is(node->op, TWI_UNBOUND) && status == TW_OK; i++) {
        tw_output input = node->inputs[i];
        if (g->gives_resource[input.node->id] &&
            (input.node->output_types[input.index] == TW_RESOURCE ||
             (twi_output_is_reference(input) && twi_input_is_reference(node, i))))
            status = join(g, maker_of(input).node, node, TWI_BY_RESOURCE, error);
    }
    return status;
}

typedef TWI_ARRAY(tw_node *) classes; /* nodes with the attribute */

/* The first who names a node that is absent from the graph stands for it. */
static tw_status join_classes(twi_groups *g, const classes *c, tw_error *error)
{
    twi_map absent = {0};
    tw_status status = TW_OK;
    for (int k = 0; k < c->count; k++) {
        tw_node *node = c->items[k];
        if (node->beside) {
            TWI_TRY(join(g, node->beside, node, TWI_BY_CLASS, error));
            continue;
        }
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
                TWI_LEAVE(twi_fail_memory(error, "placing the graph"));
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
    twi_device_name nothing = TWI_NO_DEVICE;
    request latest = {0};
    classes with_class = {0};
    *g = (twi_groups){.graph = graph, .devices = options->devices, .options = *options, .refusals = refusals};
    g->members = twi_alloc_array((size_t)graph->nodes.count, sizeof *g->members);
    g->generates = twi_alloc_array((size_t)graph->nodes.count, sizeof *g->generates);
    g->gives_resource = twi_alloc_array((size_t)graph->nodes.count, sizeof *g->gives_resource);
    g->nothing = twi_keep_name(g, &nothing);
    if (!g->members || !g->generates || !g->gives_resource || !g->nothing)
        TWI_LEAVE(twi_fail_memory(error, "placing the graph"));
    TWI_TRY(list_kinds(g, error));
    for (int id = 0; id < graph->nodes.count; id++) {
        tw_node *node = graph->nodes.items[id];
        twi_look_ahead(graph, id, 1);
        TWI_TRY(start_member(g, node, id < num_earlier ? earlier[id] : -1, &latest, error));
        TWI_TRY(join_resources(g, node, error));
        bool has_class = node->beside || twi_attr_find(&node->attrs, "_class");
        if (has_class && !twi_push(&with_class, node))
            TWI_LEAVE(twi_fail_memory(error, "placing the graph"));
    }
    TWI_TRY(join_classes(g, &with_class, error));
done:
    twi_array_free(&with_class);
    return status;
}

void twi_groups_free(twi_groups *g)
{
    twi_free(g->members);
    twi_free(g->generates);
    twi_free(g->gives_resource);
    twi_free(g->kind_of);
    twi_free(g->preference);
    twi_array_free(&g->joins);
    twi_map_free(&g->names);
    twi_arena_free(&g->arena);
}
