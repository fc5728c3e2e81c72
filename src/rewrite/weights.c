/* weights.c - what a step makes of its variables before it computes with them is made at once, by one node at its
 * beginning: casts to the type that is computed in, and filters with their last axis first, where the device's
 * convolutions want them so. Forward and backward passes share the latter.
 * Never here: gradients of filters, which the update reads as they come (update.c).
 *
 * Only reads that wait for nothing, before anybody writes their variable: those are the same wherever they stand. */
#include "rewrite/rewrite.h"

#include "base/array.h"

#include <string.h>

/* A value that is wanted: of a variable, or of a Cast of one. */
typedef struct weight {
    tw_output read, value;
    bool turned;
} weight;

typedef TWI_ARRAY(weight) weights;

static bool is(const tw_node *node, const char *op)
{
    return strcmp(node->op->name, op) == 0;
}

static bool same(tw_output a, tw_output b)
{
    return a.node == b.node && a.index == b.index;
}

/* The op that does the same with a turned filter; NULL: the node has no filter, or its device no kernel. */
static const char *turned_op(const twi_rewriting *r, const tw_node *node)
{
    const char *op = is(node, "Conv2D") || is(node, "_FusedConv2D") ? "_TurnedConv2D"
                     : is(node, "Conv2DBackpropInput")             ? "_TurnedConv2DBackpropInput"
                                                                   : NULL;
    bool fits = op && strcmp(twi_attr_string(&node->attrs, "data_format", "NHWC"), "NHWC") == 0 &&
                twi_rewrite_has_kernel(r, node, op, twi_attr_type(&node->attrs, "T"));
    return fits ? op : NULL;
}

static bool takes_as_filter(const twi_rewriting *r, const tw_node *node, tw_output value)
{
    return node->assigned == value.node->assigned && turned_op(r, node) && same(node->inputs[1], value) &&
           !same(node->inputs[0], value);
}

/* A read of a float variable that every writer comes after. */
static bool is_early_read(const twi_rewriting *r, const tw_node *read)
{
    tw_node *user;
    if (!is(read, "ReadVariableOp") || read->num_control_inputs || read->output_types[0] != TW_FLOAT32 ||
        read->inputs[0].node->num_inputs)
        return false;
    for (int i = 0; (user = twi_rewrite_user(r, read->inputs[0], i)); i++)
        if (!is(user, "ReadVariableOp") && user->id < read->id)
            return false;
    return true;
}

/* Notes in which forms the value, of a read or a cast of one, is wanted. */
static bool note(const twi_rewriting *r, tw_output read, tw_output value, weights *all)
{
    int filters = 0;
    tw_node *user;
    for (int i = 0; (user = twi_rewrite_user(r, value, i)); i++)
        filters += takes_as_filter(r, user, value);
    bool rest = value.node != read.node && twi_rewrite_count_uses(r, value) > filters;
    return (!filters || twi_push(all, ((weight){read, value, true}))) &&
           (!rest || twi_push(all, ((weight){read, value, false})));
}

static bool gather(const twi_rewriting *r, weights *all)
{
    for (int id = 0; id < r->graph->nodes.count; id++) {
        tw_node *node = r->graph->nodes.items[id];
        bool casts = is(node, "Cast") && !node->num_control_inputs && node->inputs[0].node->assigned == node->assigned;
        tw_output value = {node, 0}, read = casts ? node->inputs[0] : value;
        if (is_early_read(r, read.node) && twi_rewrite_has_kernel(r, node, "_CastMany", node->output_types[0]) &&
            !note(r, read, value, all))
            return false;
    }
    return true;
}

/* Those that are made where and of the type that the first one is; returns how many there are. */
static int take_alike(const weights *all, bool *taken, weight *group)
{
    int count = 0;
    for (int i = 0; i < all->count; i++) {
        const weight *w = &all->items[i];
        if (taken[i] || (count && (w->value.node->assigned != group[0].value.node->assigned ||
                                   tw_output_dtype(w->value) != tw_output_dtype(group[0].value))))
            continue;
        group[count++] = *w;
        taken[i] = true;
    }
    return count;
}

/* Leads who wants the value as a filter to the turned one. */
static void use_turned(twi_rewriting *r, tw_output value, tw_output turned)
{
    tw_node *user;
    for (int i = 0; (user = twi_rewrite_user(r, value, i)); i++) {
        if (!takes_as_filter(r, user, value))
            continue;
        tw_output inputs[] = {user->inputs[0], turned, user->num_inputs > 2 ? user->inputs[2] : (tw_output){0}};
        tw_node *conv = twi_rewrite_node(r, user, "/turned", turned_op(r, user), inputs, user->num_inputs,
                                         user->attrs.items, user->attrs.count);
        if (!conv)
            return;
        twi_rewrite_replace(r, (tw_output){user, 0}, (tw_output){conv, 0});
        twi_rewrite_move_controls(r, user, conv);
    }
}

static tw_status make(twi_rewriting *r, const weight *group, int count, tw_error *error)
{
    tw_output *reads = twi_alloc_array((size_t)count, sizeof *reads);
    int64_t *turned = twi_alloc_array((size_t)count, sizeof *turned);
    tw_status status = reads && turned ? TW_OK : twi_fail_memory(error, "joining casts of variables");
    for (int i = 0; i < count && status == TW_OK; i++) {
        reads[i] = group[i].read;
        turned[i] = group[i].turned;
    }
    tw_attr attrs[] = {tw_attr_type("T", tw_output_dtype(group[0].value)), tw_attr_int("N", count),
                       tw_attr_ints("turned", turned, count)};
    tw_node *made = status == TW_OK
                        ? twi_rewrite_node(r, group[0].value.node, "/many", "_CastMany", reads, count, attrs, 3)
                        : NULL;
    for (int i = 0; i < count && made; i++) {
        tw_output weight = {made, i};
        if (group[i].turned)
            use_turned(r, group[i].value, weight);
        else
            twi_rewrite_replace(r, group[i].value, weight);
        if (is(group[i].value.node, "Cast"))
            twi_rewrite_move_controls(r, group[i].value.node, made);
    }
    twi_free(reads);
    twi_free(turned);
    return status;
}

tw_status twi_rewrite_weights(twi_rewriting *r, tw_error *error)
{
    tw_status status = TW_OK;
    weights all = {0};
    weight *group = NULL;
    bool *taken = NULL;
    if (!gather(r, &all))
        TWI_TRY(twi_fail_memory(error, "joining casts of variables"));
    group = twi_alloc_array((size_t)all.count + 1, sizeof *group);
    taken = twi_alloc_array((size_t)all.count + 1, sizeof *taken);
    if (!group || !taken)
        TWI_TRY(twi_fail_memory(error, "joining casts of variables"));
    for (int count; (count = take_alike(&all, taken, group)) > 0;)
        if ((count > 1 || group[0].turned) && r->graph->error.status == TW_OK)
            TWI_TRY(make(r, group, count, error));
done:
    twi_array_free(&all);
    twi_free(group);
    twi_free(taken);
    return status;
}
