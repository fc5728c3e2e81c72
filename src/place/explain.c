/* explain.c - why a node is where it is, as data: read off the groups that the placer left behind. */
#include "place/colocation.h"

#include <string.h>

static const tw_node *node_at(const twi_groups *g, int id)
{
    return g->graph->nodes.items[id];
}

/* Whose request, or else whose place, the group follows. */
static int lead_of(const twi_member *group, int node)
{
    int lead = group->kept || group->asker < 0 ? group->chooser : group->asker;
    return lead >= 0 ? lead : node;
}

static bool is_unmet(const tw_node *node, const twi_device *device)
{
    twi_device_name own;
    return node->device[0] && twi_device_name_parse(node->device, &own, NULL) == TW_OK &&
           !twi_device_name_matches(&own, &device->name);
}

bool twi_is_moved(twi_placement *p, const tw_node *node)
{
    return p->devices[node->id] >= 0 && twi_group_of(p->groups, node->id)->relaxed > 0 &&
           is_unmet(node, p->groups->devices->items[p->devices[node->id]]);
}

static tw_placement_rule rule_of(const twi_groups *g, const twi_member *group)
{
    if (group->nowhere)
        return TW_PLACED_NOWHERE;
    if (group->kept)
        return TW_PLACED_EARLIER;
    if (group->wished && node_at(g, group->chooser)->num_inputs > 0)
        return TW_PLACED_WITH_INPUT;
    if (group->wished && group->asker < 0)
        return TW_PLACED_WITH_CONSUMERS;
    return group->relaxed ? TW_PLACED_SOFTLY : group->asker >= 0 ? TW_PLACED_AS_ASKED : TW_PLACED_FREELY;
}

/* ---- obstacles ------------------------------------------------------------------------------------------------- */

/* The first device that a request allows; -1: there is none. */
static int first_asked(const twi_groups *g, const char *request)
{
    twi_device_name asked;
    if (twi_device_name_parse(request, &asked, NULL) != TW_OK)
        return -1;
    for (int i = 0; i < g->devices->count; i++)
        if (twi_device_name_matches(&asked, &g->devices->items[i]->name))
            return i;
    return -1;
}

static tw_status list_obstacles(twi_groups *g, const twi_member *group, int kind, twi_arena *arena, tw_explanation *e,
                                tw_error *error)
{
    e->obstacles = twi_arena_alloc(arena, sizeof *e->obstacles * (size_t)group->size);
    if (!e->obstacles)
        return twi_fail_memory(error, "explaining a node");
    for (int id = 0; id < g->graph->nodes.count && e->num_obstacles < group->size; id++)
        if (twi_group_of(g, id) == group && !(twi_kinds_with_kernel(g, node_at(g, id)) >> kind & 1))
            e->obstacles[e->num_obstacles++] = node_at(g, id);
    e->refusal = e->num_obstacles ? twi_refusal_of(g, e->obstacles[0], kind) : NULL;
    return TW_OK;
}

static tw_status find_obstacles(twi_groups *g, const twi_member *group, twi_arena *arena, tw_explanation *e,
                                tw_error *error)
{
    if (e->rule == TW_PLACED_NOWHERE) {
        e->obstacle = TW_OBSTACLE_NO_KERNEL;
        return list_obstacles(g, group, 0, arena, e, error);
    }
    int asked = first_asked(g, e->request);
    e->obstacle = TW_OBSTACLE_NO_DEVICE;
    if (asked < 0)
        return TW_OK;
    bool lacking = group->lacking[g->kind_of[asked]] >= 0;
    e->obstacle = lacking ? TW_OBSTACLE_NO_KERNEL : TW_OBSTACLE_GROUP;
    return lacking ? list_obstacles(g, group, g->kind_of[asked], arena, e, error) : TW_OK;
}

/* ---- devices that were passed over ----------------------------------------------------------------------------- */

static tw_rejected_device reject(const twi_groups *g, const twi_member *group, int device, bool preferred)
{
    const twi_device *d = g->devices->items[device];
    int lacking = group->lacking[g->kind_of[device]];
    tw_rejected_device rejected = {.device = d->text, .why = TW_REJECTED_LATER};
    if (group->kept)
        rejected.why = TW_REJECTED_STATE;
    else if (!twi_device_name_matches(group->requested, &d->name)) {
        rejected.why = TW_REJECTED_BY_REQUEST;
        rejected.by = group->asker >= 0 ? node_at(g, group->asker) : NULL;
    } else if (lacking >= 0) {
        rejected.why = TW_REJECTED_NO_KERNEL;
        rejected.by = node_at(g, lacking);
        rejected.refusal = twi_refusal_of(g, rejected.by, g->kind_of[device]);
    } else if (preferred && group->wished)
        rejected.why = TW_REJECTED_FOR_COPIES;
    return rejected;
}

static tw_status list_rejected(const twi_groups *g, const twi_member *group, int device, twi_arena *arena,
                               tw_explanation *e, tw_error *error)
{
    bool preferred = device >= 0;
    e->rejected = twi_arena_alloc(arena, sizeof *e->rejected * (size_t)g->devices->count);
    if (!e->rejected)
        return twi_fail_memory(error, "explaining a node");
    for (int i = 0; i < g->devices->count; i++)
        if (g->preference[i] == device)
            preferred = false;
        else
            e->rejected[e->num_rejected++] = reject(g, group, g->preference[i], preferred);
    return TW_OK;
}

/* ---- the chain of colocation ----------------------------------------------------------------------------------- */

static tw_colocation_link link_from(const twi_groups *g, const twi_join *join, int node)
{
    bool user = join->to == node;
    tw_link_kind kind = join->link == TWI_BY_RESOURCE ? (user ? TW_LINK_USES : TW_LINK_USED_BY)
                                                      : (user ? TW_LINK_NAMES : TW_LINK_NAMED_BY);
    return (tw_colocation_link){node_at(g, node), node_at(g, user ? join->from : join->to), kind};
}

/* Walks from `lead` outwards, a link at a time, until it meets `node`; the way back is the chain. */
static tw_status find_chain(const twi_groups *g, int node, int lead, twi_arena *arena, tw_explanation *e,
                            tw_error *error)
{
    size_t count = (size_t)g->graph->nodes.count;
    int *towards = twi_alloc_array(count, sizeof *towards); /* join that leads to `lead`, plus 1 */
    int *queue = twi_alloc_array(count, sizeof *queue), first = 0, end = 0;
    tw_status status = TW_OK;
    if (!towards || !queue)
        TWI_LEAVE(twi_fail_memory(error, "explaining a node"));
    for (queue[end++] = lead; first < end && !towards[node]; first++)
        for (int j = 0; j < g->joins.count; j++) {
            const twi_join *join = &g->joins.items[j];
            int next = join->from == queue[first] ? join->to : join->to == queue[first] ? join->from : lead;
            if (next == lead || towards[next])
                continue;
            towards[next] = j + 1;
            queue[end++] = next;
        }
    for (int pass = 0; pass < 2; pass++) {
        int links = 0;
        for (int at = node; at != lead && towards[at]; links++) {
            tw_colocation_link link = link_from(g, &g->joins.items[towards[at] - 1], at);
            if (pass)
                e->chain[links] = link;
            at = link.with->id;
        }
        e->num_links = links;
        if (!pass && !(e->chain = twi_arena_alloc(arena, sizeof *e->chain * (size_t)links)))
            TWI_LEAVE(twi_fail_memory(error, "explaining a node"));
    }
done:
    twi_free(towards);
    twi_free(queue);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

tw_status twi_explain(twi_placement *p, const tw_node *node, twi_arena *arena, tw_explanation *e, tw_error *error)
{
    twi_groups *g = p->groups;
    const twi_member *group = twi_group_of(g, node->id);
    int device = p->devices[node->id], lead = lead_of(group, node->id);
    *e = (tw_explanation){
        .node = node,
        .device = device >= 0 ? g->devices->items[device]->text : NULL,
        .requested = node->device,
        .rule = rule_of(g, group),
        .decided_by = node_at(g, lead),
        .request = group->asker >= 0 ? node_at(g, group->asker)->device : "",
        .gave_way =
            device >= 0 && (group->kept || group->asker != node->id) && is_unmet(node, g->devices->items[device]),
        .group_size = group->size,
    };
    tw_status status = TW_OK;
    if (e->rule == TW_PLACED_SOFTLY || e->rule == TW_PLACED_NOWHERE)
        status = find_obstacles(g, group, arena, e, error);
    if (status == TW_OK)
        status = list_rejected(g, group, device, arena, e, error);
    if (status == TW_OK && lead != node->id)
        status = find_chain(g, node->id, lead, arena, e, error);
    if (status != TW_OK)
        return status;
    twi_text text = {0};
    twi_tell_reason(&text, g, e);
    e->sentence = text.failed ? NULL : twi_arena_strdup(arena, twi_text_string(&text));
    twi_text_free(&text);
    return e->sentence ? TW_OK : twi_fail_memory(error, "explaining a node");
}

const char *twi_placement_why(twi_placement *p, const tw_node *node)
{
    const char **sentence = &p->sentences[node->id];
    twi_arena arena = {0};
    tw_explanation e;
    if (!*sentence && twi_explain(p, node, &arena, &e, NULL) == TW_OK)
        *sentence = twi_arena_strdup(&p->arena, e.sentence);
    twi_arena_free(&arena);
    return *sentence;
}
