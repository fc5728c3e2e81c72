/* reasons.c - an explanation's data in one sentence. */
#include "place/colocation.h"

#include <string.h>

/* "MatMul of int32", and in a group also "('product')". */
static void tell_op(twi_text *text, const tw_explanation *e, const tw_node *node)
{
    tw_dtype type = node->kernel_type;
    twi_text_printf(text, "%s%s%s", node->op->name, type ? " of " : "", type ? tw_dtype_name(type) : "");
    if (e->group_size > 1)
        twi_text_printf(text, " ('%s')", node->name);
}

static void tell_refusal(twi_text *text, const char *refusal)
{
    if (refusal)
        twi_text_printf(text, " (%s)", refusal);
}

/* Why this one of all that were asked for, or of all: what was passed over, or the order of preference. */
static void tell_choice(twi_text *text, const twi_groups *g, const tw_explanation *e)
{
    int others = 0;
    for (int i = 0; i < e->num_rejected; i++)
        others += e->rejected[i].why != TW_REJECTED_BY_REQUEST;
    for (int i = 0; i < e->num_rejected; i++) {
        const tw_rejected_device *rejected = &e->rejected[i];
        bool preferred = strcmp(g->devices->items[g->preference[i]]->text, rejected->device) == 0;
        if (!preferred || rejected->why != TW_REJECTED_NO_KERNEL)
            continue;
        twi_text_printf(text, rejected->refusal ? ", and the kernel of a %s refuses " : ", and no %s has a kernel for ",
                        g->devices->items[g->preference[i]]->name.type);
        tell_op(text, e, rejected->by);
        tell_refusal(text, rejected->refusal);
        return;
    }
    if (e->num_rejected == 0)
        twi_text_printf(text, ", and this is the only device");
    else if (others > 0)
        twi_text_printf(text, ", and this is the first (GPUs come before CPUs, lower numbers first)");
}

/* Why the request was not met as it stands. */
static void tell_obstacle(twi_text *text, const tw_explanation *e)
{
    switch (e->obstacle) {
    case TW_OBSTACLE_NO_DEVICE:
        twi_text_printf(text, ", but there is no such device");
        break;
    case TW_OBSTACLE_NO_KERNEL:
        twi_text_printf(text, e->refusal ? ", but its kernel refuses " : ", but it has no kernel for ");
        tell_op(text, e, e->obstacles[0]);
        tell_refusal(text, e->refusal);
        if (e->num_obstacles > 1)
            twi_text_printf(text, " and %d more", e->num_obstacles - 1);
        break;
    default:
        twi_text_printf(text, ", but others of its group cannot run there");
    }
}

static void tell_rule(twi_text *text, twi_groups *g, const tw_explanation *e)
{
    static const char *const choices[] = {
        [TW_SOFT_LOWEST] = "the first device that can run it",
        [TW_SOFT_WRAP] = "one that can run it, its number wrapped around",
        [TW_SOFT_CPU] = "a CPU"};
    const twi_member *group = twi_group_of(g, e->node->id);
    char left[192];
    switch (e->rule) {
    case TW_PLACED_NOWHERE:
        twi_text_printf(text, "no device has a kernel for ");
        tell_op(text, e, e->node);
        break;
    case TW_PLACED_EARLIER:
        twi_text_printf(text, "it was before the graph grew");
        break;
    case TW_PLACED_WITH_INPUT:
        twi_text_printf(text, "it reads only the shape of '%s', which is here",
                        g->graph->nodes.items[group->chooser]->inputs[0].node->name);
        break;
    case TW_PLACED_WITH_CONSUMERS:
        twi_text_printf(text, "it has no inputs, and all that use it are here");
        break;
    case TW_PLACED_FREELY:
        twi_text_printf(text, "nothing was asked for");
        tell_choice(text, g, e);
        break;
    case TW_PLACED_SOFTLY:
        twi_text_printf(text, "'%s' was asked for", e->request);
        tell_obstacle(text, e);
        twi_text_printf(text, "; soft placement chose %s%s", choices[g->options.choice],
                        group->relaxed == 2 ? ", giving up the device of the resource too" : "");
        break;
    case TW_PLACED_AS_ASKED:
        if (!twi_device_name_print(group->requested, left, sizeof left)[0]) {
            twi_text_printf(text, "what was asked for in its group excludes each other and was dropped");
        } else {
            twi_text_printf(text, "'%s' was asked for", left);
        }
        tell_choice(text, g, e);
        break;
    }
}

void twi_tell_reason(twi_text *text, twi_groups *g, const tw_explanation *e)
{
    if (e->decided_by == e->node && e->rule == TW_PLACED_EARLIER) {
        twi_text_printf(text, "it keeps state, and was here before the graph grew");
    } else if (e->decided_by == e->node) {
        tell_rule(text, g, e);
    } else {
        twi_text_printf(text, "colocated with '%s' (%s), where ", e->decided_by->name,
                        e->num_links && e->chain[0].kind <= TW_LINK_USED_BY ? "through a resource" : "by _class");
        tell_rule(text, g, e);
    }
    if (e->gave_way)
        twi_text_printf(text, "; the '%s' asked for here gave way", e->requested);
}
