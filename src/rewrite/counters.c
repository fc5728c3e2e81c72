/* counters.c - what counts steps, and what is computed of the count alone (the weight of moving averages), need not
 * wait for the updates of variables that it comes after: on a card they are launches in a row, which are beside each
 * other so. Whoever comes after the count goes on coming after the updates, and who reads the count before does so. So
 * nothing can tell, but for a step that fails in between. What an assignment of a scalar puts there need not wait for
 * them either, though the assignment does. Never here: making one launch of them (scalars.c). */
#include "rewrite/rewrite.h"

#include "base/array.h"

#include <string.h>

typedef TWI_ARRAY(twi_node *) nodes;

/* ---- what it is -------------------------------------------------------------------------------------------------- */

/* Of a variable by its gradient; or what makes it ready for the next one, as Adam's powers of beta. */
static bool is_update(const twi_node *node)
{
    const char *roles = node->op->roles;
    bool scalar = twi_is(node, TWI_OP_AssignVariableOp) && twi_shape(twi_in(node, 1)).rank == 0;
    return scalar || (roles && strchr(roles, 'u') && strchr(roles, 'g'));
}

/* An update, or what stands for some. */
static bool stands_for_updates(const twi_node *node)
{
    bool all = twi_is(node, TWI_OP_NoOp) && node->num_controls > 0;
    for (int i = 0; i < node->num_controls && all; i++)
        all = is_update(node->controls[i]->node);
    return all || is_update(node);
}

/* A scalar grows by a constant, and whoever reads it does so clearly before or clearly after. */
static bool is_counter(const twi_rewriting *r, const twi_node *node)
{
    bool counts = twi_is(node, TWI_OP_AssignAddVariableOp) && !node->guard && twi_constant(twi_in(node, 1)) &&
                  twi_shape(twi_in(node, 0)).rank == 0 && twi_shape(twi_in(node, 1)).rank == 0 &&
                  twi_rewrite_has_kernel(r, node, "_Scalars", TW_INVALID_DTYPE);
    for (const twi_edge *e = counts ? twi_uses_of(twi_in(node, 0))->first : NULL; e && counts; e = e->next)
        counts = e->user == node ||
                 (twi_has_trait(e->user, TWI_READ) && (twi_leads_to(e->user, node) || twi_leads_to(node, e->user)));
    return counts;
}

/* Computed of the count and constants. */
static bool is_of_count(const twi_node *node, const twi_node *counter)
{
    if (node->guard || (twi_has_trait(node, TWI_READ) && !twi_same(twi_in(node, 0), twi_in(counter, 0))))
        return false;
    return twi_has_trait(node, TWI_READ) || twi_has_trait(node, TWI_CONSTANT) ||
           (!twi_has_trait(node, TWI_STATEFUL) && !node->op->roles && node->num_results == 1 &&
            twi_shape(twi_out(node, 0)).rank == 0);
}

/* ---- who comes after it ------------------------------------------------------------------------------------------ */

static bool add_once(nodes *all, twi_node *node)
{
    bool known = false;
    for (int i = 0; i < all->count && !known; i++)
        known = all->items[i] == node;
    return known || twi_push(all, node);
}

static bool sort_user(const twi_node *counter, twi_node *user, nodes *early, nodes *late)
{
    return add_once(is_of_count(user, counter) ? early : late, user);
}

/* Early: the counter, and what is computed of it alone. Late: who uses any of these and is none. */
static bool find_users(twi_node *counter, nodes *early, nodes *late)
{
    bool fits = twi_push(early, counter);
    for (int i = 0; i < early->count && fits; i++) {
        const twi_node *node = early->items[i];
        for (const twi_edge *e = node->followers.first; e && fits; e = e->next)
            fits = sort_user(counter, e->user, early, late);
        for (int k = 0; k < node->num_results; k++)
            for (const twi_edge *e = node->results[k].uses.first; e && fits; e = e->next)
                fits = sort_user(counter, e->user, early, late);
    }
    return fits;
}

static bool has(const nodes *all, const twi_node *node)
{
    bool found = false;
    for (int i = 0; i < all->count && !found; i++)
        found = all->items[i] == node;
    return found;
}

/* ---- setting it free --------------------------------------------------------------------------------------------- */

static bool keep_order(twi_node *counter, const nodes *late, const nodes *updates)
{
    bool fits = true;
    for (const twi_edge *e = twi_uses_of(twi_in(counter, 0))->first; e && fits; e = e->next)
        if (e->user != counter && twi_leads_to(e->user, counter))
            fits = twi_add_control(counter, e->user);
    for (int i = 0; i < late->count; i++)
        for (int k = 0; k < updates->count && fits; k++)
            fits = twi_add_control(late->items[i], updates->items[k]);
    return fits;
}

/* A constant that waits for nobody in the place of what it grows by. */
static bool free_constant(const twi_rewriting *r, twi_node *counter)
{
    twi_node *one = counter->inputs[1].node;
    if (!one->num_controls)
        return true;
    twi_node *free = twi_node_constant(r->region, one, "/free", twi_constant(twi_in(counter, 1)));
    if (free)
        twi_set_input(counter, 1, twi_out(free, 0));
    return free != NULL;
}

static bool set_free(const twi_rewriting *r, twi_node *counter)
{
    nodes early = {0}, late = {0}, updates = {0};
    bool fits = true;
    for (int i = 0; i < counter->num_controls && fits; i++)
        if (stands_for_updates(counter->controls[i]->node))
            fits = twi_push(&updates, counter->controls[i]->node);
    if (fits && updates.count)
        fits = find_users(counter, &early, &late);
    if (fits && updates.count && early.count > 1 && !has(&late, r->region->end)) {
        fits = keep_order(counter, &late, &updates) && free_constant(r, counter);
        for (int i = 0; i < updates.count && fits; i++)
            twi_drop_control(counter, updates.items[i]);
    }
    twi_array_free(&early);
    twi_array_free(&late);
    twi_array_free(&updates);
    return fits;
}

/* What a scalar becomes (Adam's powers of beta) is computed at any time; only that it becomes so waits. */
static bool free_value(const twi_rewriting *r, twi_node *assign)
{
    if (!twi_is(assign, TWI_OP_AssignVariableOp) || twi_shape(twi_in(assign, 1)).rank != 0)
        return true;
    twi_value value = twi_in(assign, 1);
    bool fits = twi_only_user(value) == assign && value.node->num_inputs > 0 && value.node->guard == assign->guard &&
                !twi_has_trait(value.node, TWI_STATEFUL) &&
                twi_rewrite_has_kernel(r, assign, "_Scalars", TW_INVALID_DTYPE);
    if (!fits)
        return true;
    while (value.node->num_controls && fits) {
        twi_node *before = value.node->controls[0]->node;
        twi_drop_control(value.node, before);
        fits = twi_add_control(assign, before);
    }
    return fits;
}

tw_status twi_free_counters(twi_rewriting *r, tw_error *error)
{
    bool fits = true;
    for (int id = 0, count = r->region->nodes.count; id < count && fits; id++)
        if (!r->region->nodes.items[id]->gone)
            fits = free_value(r, r->region->nodes.items[id]);
    for (int id = 0, count = r->region->nodes.count; id < count && fits; id++)
        if (!r->region->nodes.items[id]->gone && is_counter(r, r->region->nodes.items[id]))
            fits = set_free(r, r->region->nodes.items[id]);
    return fits ? TW_OK : twi_fail_memory(error, "counting");
}
