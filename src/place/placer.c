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

/* The first that is as the group asks. */
static int requested_candidate(twi_groups *g, const twi_member *group)
{
    if (g->latest.name != group->requested || g->latest.kinds != group->kinds) {
        g->latest.name = group->requested;
        g->latest.kinds = group->kinds;
        g->latest.device = first_candidate(g, group, group->requested);
    }
    return g->latest.device;
}

/* The device the group gets; -1 if there is none. Settles how far its request is relaxed, and what of it still
 * counts. */
static int settle(twi_groups *g, const twi_member *group, int *relaxed, twi_device_name *left)
{
    *relaxed = group->relaxed;
    *left = *group->requested;
    if (group->assigned >= 0)
        return group->assigned;
    int device = requested_candidate(g, group);
    for (int level = 1; device < 0 && g->options.soft && level <= 2; level++) {
        twi_device_name spec = *group->requested;
        spec.type[0] = 0;
        spec.id = -1;
        spec.uuid[0] = 0;
        if (level == 1)
            spec = twi_device_name_override(&spec, group->resource);
        device = soft_candidate(g, group, &spec, group->requested);
        if (device >= 0) {
            *left = spec;
            *relaxed = level;
        }
    }
    return device;
}

int twi_nearest_device(const twi_groups *g, const twi_member *group)
{
    twi_groups soft = *g;
    twi_device_name left;
    int relaxed;
    soft.options.soft = true;
    return settle(&soft, group, &relaxed, &left);
}

static void warn_of_resource(const twi_groups *g, int device)
{
    twi_log(TWI_LOG_WARNING,
            "Failed to place the graph without changing the devices of some resources. Some of the operations (that "
            "had to be colocated with resource generating operations) are not supported on the resources' devices. "
            "The device chosen is %s",
            g->devices->items[device]->text);
}

/* ---- the sweeps ------------------------------------------------------------------------------------------------ */

/* What the consumers of a node want, data and control alike, as far as they have been placed. */
enum { NOBODY = -1, THEY_DIFFER = -2 };

static void note_wish(int *wishes, const tw_node *from, int device)
{
    int *wish = &wishes[from->id];
    *wish = *wish == NOBODY || *wish == device ? device : THEY_DIFFER;
}

static void note_wishes(int *wishes, const tw_node *node, int device)
{
    for (int i = 0; i < node->num_inputs; i++)
        note_wish(wishes, node->inputs[i].node, device);
    for (int i = 0; i < node->num_control_inputs; i++)
        note_wish(wishes, node->control_inputs[i], device);
}

/* The group's device, and what of its request counts with it. */
static tw_status choose(twi_groups *g, twi_member *group, const tw_node *node, int wish, tw_error *error)
{
    twi_device_name left;
    int relaxed, device = settle(g, group, &relaxed, &left);
    if (device < 0)
        return twi_fail_to_place(g, node, error);
    if (relaxed != group->relaxed)
        group->requested = twi_keep_name(g, &left);
    if (!group->requested)
        return twi_fail_memory(error, "placing the graph");
    group->relaxed = relaxed;
    group->wished = wish >= 0 && is_candidate(g, group, group->requested, wish);
    group->assigned = group->wished ? wish : device;
    group->chooser = node->id;
    if (relaxed == 2)
        warn_of_resource(g, device);
    return TW_OK;
}

/* wish: the device a heuristic would like, or -1; it is taken if the group may have it. */
static tw_status place_node(twi_groups *g, const tw_node *node, int wish, twi_placement *p, tw_error *error)
{
    twi_member *group = twi_group_of(g, node->id);
    p->order[p->count++] = node->id;
    if (group->nowhere)
        return TW_OK;
    tw_status status = group->assigned < 0 ? choose(g, group, node, wish, error) : TW_OK;
    p->devices[node->id] = group->assigned;
    return status;
}

static tw_status place_all(twi_groups *g, int *wishes, twi_placement *p, tw_error *error)
{
    const tw_graph *graph = g->graph;
    tw_status status = TW_OK;
    for (int id = 0; id < graph->nodes.count; id++)
        wishes[id] = NOBODY;
    for (int id = 0; id < graph->nodes.count; id++) {
        const tw_node *node = graph->nodes.items[id];
        twi_look_ahead(graph, id, 1);
        if (g->generates[id])
            continue;
        bool tells_of_one = twi_op_is(node->op, TWI_METADATA) && node->num_inputs == 1;
        int wish = tells_of_one ? p->devices[node->inputs[0].node->id] : -1;
        TWI_TRY(place_node(g, node, wish, p, error));
        if (p->devices[id] >= 0)
            note_wishes(wishes, node, p->devices[id]);
    }
    for (int id = 0; id < graph->nodes.count; id++)
        if (g->generates[id])
            TWI_TRY(place_node(g, graph->nodes.items[id], wishes[id], p, error));
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
    tw_status status = TW_OK;
    int *wishes = twi_alloc_array(count, sizeof *wishes);
    int *earlier = twi_alloc_array((size_t)placement->count, sizeof *earlier);

    p.devices = twi_arena_alloc(&p.arena, count * sizeof *p.devices);
    p.order = twi_arena_alloc(&p.arena, count * sizeof *p.order);
    p.sentences = twi_arena_alloc(&p.arena, count * sizeof *p.sentences);
    p.groups = twi_alloc(sizeof *p.groups);
    if (!wishes || !earlier || !p.devices || !p.order || !p.sentences || !p.groups)
        TWI_LEAVE(twi_fail_memory(error, "placing the graph"));
    for (size_t i = 0; i < count; i++)
        p.devices[i] = -1;
    for (int i = 0; i < placement->count; i++)
        earlier[i] = graph->nodes.items[i]->op->flags & TWI_STATEFUL ? placement->devices[i] : -1;

    TWI_TRY(twi_groups_build(p.groups, graph, options, &placement->refusals, earlier, placement->count, error));
    TWI_TRY(place_all(p.groups, wishes, &p, error));
    p.refusals = placement->refusals;
    placement->refusals = (twi_refusals){0};
    twi_placement_free(placement);
    *placement = p;
    p = (twi_placement){0};
    tell_moves(placement);
done:
    twi_free(wishes);
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
