/* reasons.c - one sentence a node: why it is where it is. */
#include "place/colocation.h"

#include <string.h>

static const tw_node *node_at(const twi_groups *g, int id)
{
    return g->graph->nodes.items[id];
}

/* "MatMul of int32" */
static void tell_op(twi_text *text, const tw_node *node)
{
    tw_dtype type = twi_kernel_type(&node->attrs);
    twi_text_printf(text, "%s%s%s", node->op->name, type ? " of " : "", type ? tw_dtype_name(type) : "");
}

static bool exists(const twi_groups *g, const twi_device_name *spec)
{
    for (int i = 0; i < g->devices->count; i++)
        if (twi_device_name_matches(spec, &g->devices->items[i]->name))
            return true;
    return false;
}

/* Why this one of all that match `spec`: what was passed over, or the order of preference. */
static void tell_choice(twi_text *text, const twi_groups *g, const twi_member *group, const twi_device_name *spec,
                        int device)
{
    int candidates = 0;
    for (int i = 0; i < g->devices->count; i++)
        candidates += twi_device_name_matches(spec, &g->devices->items[i]->name);
    for (int i = 0; i < g->devices->count && g->preference[i] != device; i++) {
        const twi_device *d = g->devices->items[g->preference[i]];
        int lacking = group->lacking[g->kind_of[g->preference[i]]];
        if (lacking < 0 || !twi_device_name_matches(spec, &d->name))
            continue;
        twi_text_printf(text, ", and no %s has a kernel for ", d->name.type);
        tell_op(text, node_at(g, lacking));
        if (group->size > 1)
            twi_text_printf(text, " ('%s')", node_at(g, lacking)->name);
        return;
    }
    if (g->devices->count == 1)
        twi_text_printf(text, ", and this is the only device");
    else if (candidates > 1)
        twi_text_printf(text, ", and this is the first (GPUs come before CPUs, lower numbers first)");
}

/* Why the request was not met as it stands. */
static void tell_failure(twi_text *text, const twi_groups *g, const twi_member *group, const twi_device_name *asked)
{
    if (!exists(g, asked)) {
        twi_text_printf(text, ", but there is no such device");
        return;
    }
    for (int i = 0; i < g->devices->count; i++) {
        int lacking = group->lacking[g->kind_of[i]];
        if (lacking < 0 || !twi_device_name_matches(asked, &g->devices->items[i]->name))
            continue;
        twi_text_printf(text, ", but it has no kernel for ");
        tell_op(text, node_at(g, lacking));
        if (group->size > 1)
            twi_text_printf(text, " ('%s')", node_at(g, lacking)->name);
        return;
    }
    twi_text_printf(text, ", but others of its group cannot run there");
}

static void tell_group(twi_text *text, const twi_groups *g, const twi_member *group, int device)
{
    char requested[192];
    if (group->kept) {
        twi_text_printf(text, "it was before the graph grew");
        return;
    }
    if (group->asker < 0) {
        twi_text_printf(text, "nothing was asked for");
        tell_choice(text, g, group, &TWI_NO_DEVICE, device);
        return;
    }
    const char *asked = node_at(g, group->asker)->device;
    if (group->relaxed) {
        twi_device_name name = TWI_NO_DEVICE;
        twi_device_name_parse(asked, &name, NULL);
        twi_text_printf(text, "'%s' was asked for", asked);
        tell_failure(text, g, group, &name);
        twi_text_printf(text, "; soft placement chose the first device that can run it%s",
                        group->relaxed == 2 ? ", giving up the device of the resource too" : "");
        return;
    }
    twi_device_name_print(&group->requested, requested, sizeof requested);
    if (requested[0])
        twi_text_printf(text, "'%s' was asked for", requested);
    else
        twi_text_printf(text, "what was asked for in its group excludes each other and was dropped");
    tell_choice(text, g, group, &group->requested, device);
}

const char *twi_reason(twi_groups *g, const tw_node *node, int device, twi_rule rule, twi_arena *arena)
{
    const twi_member *group = twi_group_of(g, node->id), *self = &g->members[node->id];
    twi_text text = {0};
    int lead = group->kept || group->asker < 0 ? group->chooser : group->asker;
    if (rule == TWI_RULE_KEPT)
        twi_text_printf(&text, "it keeps state, and was here before the graph grew");
    else if (lead != node->id && lead >= 0) {
        twi_text_printf(&text, "colocated with '%s' (%s), where ", node_at(g, lead)->name,
                        self->link == TWI_BY_RESOURCE ? "through a resource" : "by _class");
        tell_group(&text, g, group, device);
    } else if (rule == TWI_RULE_METADATA)
        twi_text_printf(&text, "it reads only the shape of '%s', which is here", node->inputs[0].node->name);
    else if (rule == TWI_RULE_CONSUMERS && !node->device[0])
        twi_text_printf(&text, "it has no inputs, and all that use it are here");
    else
        tell_group(&text, g, group, device);

    twi_device_name own;
    if ((group->kept || group->asker != node->id) && node->device[0] &&
        twi_device_name_parse(node->device, &own, NULL) == TW_OK &&
        !twi_device_name_matches(&own, &g->devices->items[device]->name))
        twi_text_printf(&text, "; the '%s' asked for here gave way", node->device);
    const char *kept = text.failed ? NULL : twi_arena_strdup(arena, twi_text_string(&text));
    twi_text_free(&text);
    return kept;
}
