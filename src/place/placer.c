/* placer.c - chooses a device for every node, group by group, in order of creation.
 *
 * Nodes without inputs that make one value wait for a second sweep and go where their consumers are, so that a constant
 * is not computed on one device and copied to another. Shape, Size and Rank go where their input is, so that no tensor
 * crosses devices only to be measured. */
#include "place/colocation.h"

#include "base/log.h"

#include <string.h>

/* ---- candidates ------------------------------------------------------------------------------------------------ */

static bool is_candidate(const twi_groups *g, const twi_member *group, const twi_device_name *spec, int device)
{
    return (group->kinds >> g->kind_of[device] & 1) && twi_device_name_matches(spec, &g->devices->items[device]->name);
}

static int first_candidate(const twi_groups *g, const twi_member *group, const twi_device_name *spec)
{
    for (int i = 0; i < g->devices->count; i++)
        if (is_candidate(g, group, spec, g->preference[i]))
            return g->preference[i];
    return -1;
}

/* The one that soft placement takes of all that match `spec` for want of `asked`; -1 if there is none. */
static int soft_candidate(const twi_groups *g, const twi_member *group, const twi_device_name *spec,
                          const twi_device_name *asked)
{
    twi_device_name narrowed = *spec;
    int first = first_candidate(g, group, spec), count = 0;
    if (g->options.choice == TW_SOFT_CPU) {
        strcpy(narrowed.type, "CPU");
        int cpu = first_candidate(g, group, &narrowed);
        return cpu >= 0 ? cpu : first;
    }
    if (g->options.choice != TW_SOFT_WRAP || first < 0 || asked->id < 0)
        return first;
    strcpy(narrowed.type, g->devices->items[first]->name.type);
    for (int i = 0; i < g->devices->count; i++)
        count += is_candidate(g, group, &narrowed, i);
    for (int i = 0, skip = asked->id % count; i < g->devices->count; i++)
        if (is_candidate(g, group, &narrowed, g->preference[i]) && skip-- == 0)
            return g->preference[i];
    return first;
}

/* The device the group gets; -1 if there is none. Settles how far its request is relaxed and leaves in group->requested
 * what still counts. */
static int settle(const twi_groups *g, twi_member *group)
{
    if (group->assigned >= 0)
        return group->assigned;
    int device = first_candidate(g, group, &group->requested);
    twi_device_name asked = group->requested;
    for (int relaxed = 1; device < 0 && g->options.soft && relaxed <= 2; relaxed++) {
        twi_device_name spec = asked;
        spec.type[0] = 0;
        spec.id = -1;
        spec.uuid[0] = 0;
        if (relaxed == 1)
            spec = twi_device_name_override(&spec, &group->resource);
        device = soft_candidate(g, group, &spec, &asked);
        if (device >= 0) {
            group->requested = spec;
            group->relaxed = relaxed;
        }
    }
    return device;
}

int twi_nearest_device(const twi_groups *g, const twi_member *group)
{
    twi_groups soft = *g;
    twi_member copy = *group;
    soft.options.soft = true;
    return settle(&soft, &copy);
}

static void warn_of_resource(const twi_groups *g, int device)
{
    twi_log(TWI_LOG_WARNING,
            "Failed to place the graph without changing the devices of some resources. Some of the operations (that "
            "had to be colocated with resource generating operations) are not supported on the resources' devices. "
            "The device chosen is %s",
            g->devices->items[device]->text);
}

/* ---- the two heuristics ---------------------------------------------------------------------------------------- */

static bool is_generator(const tw_node *node)
{
    return node->num_inputs == 0 && node->num_outputs == 1 && !twi_output_is_reference((tw_output){(tw_node *)node, 0});
}

/* Consumers of the waiting nodes, data and control alike: those of node n are items[starts[n]...starts[n+1]]. */
typedef struct consumers {
    int *starts, *items;
} consumers;

static void count_or_keep(consumers *c, const tw_node *from, const tw_node *to, bool keep)
{
    if (!is_generator(from))
        return;
    if (keep)
        c->items[c->starts[from->id]++] = to->id;
    else
        c->starts[from->id + 1]++;
}

static void visit_edges(const tw_graph *graph, consumers *c, bool keep)
{
    for (int id = 0; id < graph->nodes.count; id++) {
        const tw_node *node = graph->nodes.items[id];
        for (int i = 0; i < node->num_inputs; i++)
            count_or_keep(c, node->inputs[i].node, node, keep);
        for (int i = 0; i < node->num_control_inputs; i++)
            count_or_keep(c, node->control_inputs[i], node, keep);
    }
}

static tw_status find_consumers(const tw_graph *graph, consumers *c, tw_error *error)
{
    int count = graph->nodes.count;
    c->starts = twi_alloc_array((size_t)count + 1, sizeof *c->starts);
    if (!c->starts)
        return twi_fail_memory(error, "placing the graph");
    visit_edges(graph, c, false);
    for (int id = 0; id < count; id++)
        c->starts[id + 1] += c->starts[id];
    c->items = twi_alloc_array((size_t)c->starts[count], sizeof *c->items);
    if (!c->items)
        return twi_fail_memory(error, "placing the graph");
    visit_edges(graph, c, true);
    memmove(c->starts + 1, c->starts, (size_t)count * sizeof *c->starts); /* filling moved each start to its end */
    c->starts[0] = 0;
    return TW_OK;
}

/* The one device of all consumers; -1 if there is none or they differ. */
static int device_of_consumers(const consumers *c, const int *devices, int node)
{
    int common = -1;
    for (int i = c->starts[node]; i < c->starts[node + 1]; i++) {
        int device = devices[c->items[i]];
        if (device >= 0 && common >= 0 && device != common)
            return -1;
        common = device >= 0 ? device : common;
    }
    return common;
}

/* ---- the sweeps ------------------------------------------------------------------------------------------------ */

/* wish: the device a heuristic would like, or -1; it is taken if the group may have it. */
static tw_status place_node(twi_groups *g, const tw_node *node, int wish, twi_placement *p, tw_error *error)
{
    twi_member *group = twi_group_of(g, node->id);
    p->order[p->count++] = node->id;
    if (group->nowhere)
        return TW_OK;
    bool was_open = group->assigned < 0;
    int device = settle(g, group);
    if (device < 0)
        return twi_fail_to_place(g, node, error);
    if (was_open) {
        group->wished = wish >= 0 && is_candidate(g, group, &group->requested, wish);
        group->assigned = group->wished ? wish : device;
        group->chooser = node->id;
        if (group->relaxed == 2)
            warn_of_resource(g, device);
    }
    p->devices[node->id] = group->assigned;
    return TW_OK;
}

static tw_status place_all(twi_groups *g, const consumers *c, twi_placement *p, tw_error *error)
{
    const tw_graph *graph = g->graph;
    tw_status status = TW_OK;
    for (int id = 0; id < graph->nodes.count; id++) {
        const tw_node *node = graph->nodes.items[id];
        if (is_generator(node))
            continue;
        bool tells_of_one = twi_op_is(node->op, TWI_METADATA) && node->num_inputs == 1;
        int wish = tells_of_one ? p->devices[node->inputs[0].node->id] : -1;
        TWI_TRY(place_node(g, node, wish, p, error));
    }
    for (int id = 0; id < graph->nodes.count; id++) {
        const tw_node *node = graph->nodes.items[id];
        if (is_generator(node))
            TWI_TRY(place_node(g, node, device_of_consumers(c, p->devices, id), p, error));
    }
done:
    return status;
}

/* A line for each group of moves, not for each node: the log of a large graph is to be read. */
static void tell_moves(twi_placement *p)
{
    twi_arena arena = {0};
    tw_moves moves;
    if (twi_log_wants(TWI_LOG_INFO) && twi_list_moves(p, &arena, &moves, NULL) == TW_OK)
        for (int i = 0; i < moves.num_groups; i++) {
            const tw_move_group *group = &moves.groups[i];
            const char *why = twi_placement_why(p, group->nodes[0]);
            twi_log(TWI_LOG_INFO, "soft placement moved %d %s from %s to %s: %s", group->num_nodes, group->op ? group->op : "nodes",
                    group->asked, group->device, why ? why : "");
        }
    twi_arena_free(&arena);
}

static void forget_refusals(twi_placement *placement, int known)
{
    while (placement->refusals.count > known)
        twi_free(placement->refusals.items[--placement->refusals.count].reason);
}

tw_status twi_place(const tw_graph *graph, const twi_placement_options *options, twi_placement *placement,
                    tw_error *error)
{
    size_t count = (size_t)graph->nodes.count;
    twi_placement p = {0};
    consumers c = {0};
    tw_status status = TW_OK;
    int *earlier = twi_alloc_array((size_t)placement->count, sizeof *earlier);

    p.devices = twi_arena_alloc(&p.arena, count * sizeof *p.devices);
    p.order = twi_arena_alloc(&p.arena, count * sizeof *p.order);
    p.sentences = twi_arena_alloc(&p.arena, count * sizeof *p.sentences);
    p.groups = twi_alloc(sizeof *p.groups);
    if (!earlier || !p.devices || !p.order || !p.sentences || !p.groups)
        TWI_TRY(twi_fail_memory(error, "placing the graph"));
    for (size_t i = 0; i < count; i++)
        p.devices[i] = -1;
    for (int i = 0; i < placement->count; i++)
        earlier[i] = graph->nodes.items[i]->op->flags & TWI_STATEFUL ? placement->devices[i] : -1;

    TWI_TRY(twi_groups_build(p.groups, graph, options, &placement->refusals, earlier, placement->count, error));
    TWI_TRY(find_consumers(graph, &c, error));
    TWI_TRY(place_all(p.groups, &c, &p, error));
    p.refusals = placement->refusals;
    placement->refusals = (twi_refusals){0};
    twi_placement_free(placement);
    *placement = p;
    p = (twi_placement){0};
    tell_moves(placement);
done:
    twi_free(c.starts);
    twi_free(c.items);
    twi_free(earlier);
    twi_placement_free(&p);
    return status;
}

void twi_placement_free(twi_placement *placement)
{
    if (placement->groups)
        twi_groups_free(placement->groups);
    twi_free(placement->groups);
    forget_refusals(placement, 0);
    twi_array_free(&placement->refusals);
    twi_arena_free(&placement->arena);
    *placement = (twi_placement){0};
}

tw_status twi_place_again(const tw_graph *graph, twi_placement *placement, int known)
{
    twi_placement_options options = placement->groups->options;
    tw_status status = twi_place(graph, &options, placement, NULL);
    if (status != TW_OK)
        forget_refusals(placement, known);
    return status;
}

tw_status twi_placement_check(const twi_placement *placement, const tw_node *node, tw_error *error)
{
    return placement->devices[node->id] >= 0 ? TW_OK : twi_fail_no_kernel(placement->groups, node, error);
}

tw_status twi_placement_refuse(twi_placement *placement, const tw_node *node, const char *reason, tw_error *error)
{
    const twi_groups *g = placement->groups;
    int device = placement->devices[node->id];
    unsigned others = twi_kinds_with_kernel(g, node) & ~(1u << g->kind_of[device]);
    if (!g->options.soft || node->op->flags & TWI_STATEFUL || g->devices->items[device]->is_host || !others)
        return TW_OK;
    char *words = twi_strdup(reason);
    if (!words || !twi_push(&placement->refusals, (twi_refusal){node, device, words})) {
        twi_free(words);
        return twi_fail_memory(error, "noting what a kernel refuses");
    }
    twi_log(TWI_LOG_WARNING, "%s refuses %s '%s': %s", g->devices->items[device]->text, node->op->name, node->name, words);
    return TW_OK;
}
