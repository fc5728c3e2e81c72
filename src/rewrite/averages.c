/* averages.c - moving averages of variables become part of the update that they follow, where a device has a kernel for
 * both: a launch less in a row, and the variables are not read again. What happens between the two and concerns neither
 * (Adam's powers of beta grow) happens behind both then. Never here: making one node of many updates, or of many
 * averages (update.c); that the averages' weight does not wait for the updates (counters.c). Both have been before. */
#include "rewrite/rewrite.h"

#include "base/array.h"

typedef TWI_ARRAY(twi_node *) nodes;

static bool is_update(const twi_node *node)
{
    return twi_is(node, TWI_OP__ApplyMany) || twi_is(node, TWI_OP__ApplyGradientDescentMany);
}

static int count_of(const twi_node *node)
{
    return (int)twi_attr_int(&node->attrs, "N", 0);
}

/* What average i follows: a read of a variable. */
static twi_node *read_of(const twi_node *average, int i)
{
    twi_node *read = twi_in(average, count_of(average) + 1 + i).node;
    return twi_has_trait(read, TWI_READ) ? read : NULL;
}

/* The update of all variables that the averages follow, in their order. */
static twi_node *find_update(const twi_node *average)
{
    const twi_node *first = read_of(average, 0);
    twi_node *update = NULL;
    for (const twi_edge *e = first ? twi_uses_of(twi_in(first, 0))->first : NULL; e && !update; e = e->next)
        update = is_update(e->user) ? e->user : NULL;
    bool fits = update && update->device == average->device && update->guard == average->guard &&
                count_of(update) == count_of(average);
    for (int i = 0; fits && i < count_of(average); i++) {
        const twi_node *read = read_of(average, i);
        fits = read && twi_same(twi_in(read, 0), twi_in(update, i));
    }
    return fits ? update : NULL;
}

/* What the averages wait for, but for the update. */
typedef struct waiting {
    const twi_node *average, *update;
    nodes before;  /* and need not for the update: the joint node does so, too */
    nodes between; /* and for the update: they come behind the joint node, and behind them who waits for the averages */
} waiting;

static bool add_once(nodes *all, twi_node *node)
{
    bool known = false;
    for (int i = 0; i < all->count && !known; i++)
        known = all->items[i] == node;
    return known || twi_push(all, node);
}

/* Whether the node uses a variable that is updated or averaged. */
static bool uses_any(const twi_node *node, const waiting *w)
{
    bool any = false;
    for (int i = 0; i < node->num_inputs && !any; i++)
        for (int k = 0; k < count_of(w->average) && !any; k++)
            any = twi_same(twi_in(node, i), twi_in(w->average, k)) || twi_same(twi_in(node, i), twi_in(w->update, k));
    return any;
}

/* Does nothing, or nothing that could be told from the averages: arithmetic, and what variables of its own become. */
static bool is_indifferent(const twi_node *node, const waiting *w)
{
    bool known = twi_is(node, TWI_OP_NoOp) || !twi_has_trait(node, TWI_STATEFUL) || node->op->roles;
    return known && node->guard == w->update->guard && !uses_any(node, w);
}

/* Notes what a read or the averages wait for (`before`: among these), or what lies between (NULL). *follows: it comes
 * behind the update. False: it must stay where it is. */
static bool note(waiting *w, twi_node *node, nodes *before, bool *follows)
{
    bool behind = node == w->update || twi_leads_to(w->update, node);
    *follows = *follows || behind;
    if (node == w->update)
        return true;
    if (behind)
        return is_indifferent(node, w) && add_once(&w->between, node);
    return !before || add_once(before, node);
}

/* The same of all that the node waits for. */
static bool note_all(waiting *w, const twi_node *node, nodes *before, bool *follows)
{
    bool fits = true;
    *follows = false;
    for (int i = 0; i < twi_num_dependencies(node) && fits; i++)
        fits = note(w, twi_dependency(node, i)->node, before, follows);
    return fits;
}

/* Whether each read comes behind the update, the averages behind the reads, and nothing that matters between them. */
static bool follow(waiting *w)
{
    const twi_node *average = w->average;
    const int count = count_of(average);
    bool follows = true, fits = !twi_leads_to(w->update, twi_in(average, count).node);
    for (int i = 0; i < count && fits; i++)
        fits = note_all(w, read_of(average, i), &w->before, &follows) && follows;
    for (int i = 0; i < average->num_controls && fits; i++)
        fits = note(w, average->controls[i]->node, &w->before, &follows);
    for (int i = 0; i < w->between.count && fits; i++) /* which grows */
        fits = note_all(w, w->between.items[i], NULL, &follows);
    return fits;
}

/* The update's inputs, then the averages and their weight. */
static twi_node *make_joint(twi_rewriting *r, const twi_node *average, twi_node *update)
{
    const twi_attrs *a = &update->attrs;
    const bool descends = twi_is(update, TWI_OP__ApplyGradientDescentMany);
    const int count = count_of(update), values = (int)twi_attr_int(a, "M", count);
    int num_transposed = 0, num_offsets = 0, num_inputs = update->num_inputs;
    const int64_t *transposed = twi_attr_ints(a, "transposed", &num_transposed);
    const int64_t *offsets = twi_attr_ints(a, "offsets", &num_offsets);
    twi_value *inputs = twi_alloc_array((size_t)(num_inputs + count + 1), sizeof *inputs);
    if (!inputs) {
        twi_region_fail_memory(r->region);
        return NULL;
    }
    for (int i = 0; i < num_inputs; i++)
        inputs[i] = twi_in(update, i);
    for (int i = 0; i <= count; i++)
        inputs[num_inputs + i] = twi_in(average, i);
    tw_attr attrs[] = {
        tw_attr_string("update", descends ? "ResourceApplyGradientDescent" : twi_attr_string(a, "update", "")),
        tw_attr_int("N", count),
        tw_attr_int("M", values),
        tw_attr_int("S", twi_attr_int(a, "S", 0)),
        tw_attr_int("K", twi_attr_int(a, "K", 1)),
        tw_attr_int("D", twi_attr_int(a, "D", values)), /* gradient descent's has one for each gradient */
        tw_attr_int("L", twi_attr_int(a, "L", 0)),
        tw_attr_type("T", twi_attr_type(a, "T")),
        tw_attr_ints("transposed", transposed, num_transposed),
        tw_attr_ints("offsets", offsets, num_offsets),
        tw_attr_float("scale", twi_attr_float(a, "scale", 1)),
        tw_attr_bool("use_nesterov", twi_attr_bool(a, "use_nesterov", false)),
    };
    twi_node *joint = twi_rewrite_make(r, update, "/averaged", "_ApplyAveragedMany", inputs, num_inputs + count + 1,
                                       attrs, (int)(sizeof attrs / sizeof *attrs));
    twi_free(inputs);
    return joint;
}

/* Who comes behind the averages goes on coming behind what lies between. */
static bool keep_order(twi_node *average, const nodes *between)
{
    bool fits = true;
    for (const twi_edge *e = average->followers.first; e && fits; e = e->next)
        for (int i = 0; i < between->count && fits; i++)
            fits = twi_add_control(e->user, between->items[i]);
    return fits;
}

static void join(twi_rewriting *r, twi_node *average)
{
    twi_node *update = find_update(average);
    waiting w = {.average = average, .update = update};
    twi_node *joint = update && follow(&w) ? make_joint(r, average, update) : NULL;
    if (joint) {
        bool fits = keep_order(average, &w.between);
        while (average->num_controls)
            twi_drop_control(average, average->controls[0]->node);
        twi_move_controls(update, joint);
        twi_move_controls(average, joint);
        for (int i = 0; i < w.before.count && fits; i++)
            fits = twi_add_control(joint, w.before.items[i]);
        if (!fits)
            twi_region_fail_memory(r->region);
    }
    twi_array_free(&w.before);
    twi_array_free(&w.between);
}

tw_status twi_rewrite_averages(twi_rewriting *r, tw_error *error)
{
    (void)error; /* what goes wrong is on the region */
    for (int id = 0, count = r->region->nodes.count; id < count; id++) {
        twi_node *node = r->region->nodes.items[id];
        if (!node->gone && twi_is(node, TWI_OP__MovingAverageMany) &&
            twi_rewrite_has_kernel(r, node, "_ApplyAveragedMany", TW_FLOAT32))
            join(r, node);
    }
    return TW_OK;
}
