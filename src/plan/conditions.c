/* conditions.c - branches of the user's graph as guards in a plan.
 *
 * Nothing is nested: all branches stand in the one region, in one order, with memory of their own, and a node of a
 * branch has a guard, a node on the host that says whether the branch is taken. A Switch is what it looks at; a Merge
 * is a chain of _Choose nodes in one piece of memory, each under the guard of its input. Where a predicate is known,
 * the branch that is not taken is not planned. */
#include "graph/branches.h"
#include "plan/specialize.h"

#include "device/tasks.h"

static tw_status fail_memory(const twi_copying *c)
{
    return twi_fail_memory(c->p->error, "looking at conditions");
}

/* ---- conditions -------------------------------------------------------------------------------------------------- */

/* Where a value was computed. */
static twi_value follow(twi_value value)
{
    while (twi_has_trait(value.node, TWI_PASSES))
        value = twi_in(value.node, value.index);
    return value;
}

/* What a Switch decides by, where it was computed. */
static tw_status find_predicate(const twi_copying *c, const tw_node *node, twi_value *predicate)
{
    char text[128];
    twi_value value = c->of[node->inputs[1].node->id].outputs[node->inputs[1].index];
    bool refers = twi_copy_refers(c, node->inputs[1]);
    if (refers && !c->of[node->id].decision)
        return twi_fail(c->p->error, TW_UNIMPLEMENTED, "%s '%s' decides by a reference", node->op->name, node->name);
    if (refers)
        value = twi_out(c->of[node->id].decision, 0);
    *predicate = value = follow(value);
    if (twi_shape(value).rank > 0)
        return twi_fail(c->p->error, TW_INVALID_ARGUMENT, "%s '%s': the predicate is %s, expected a scalar",
                        node->op->name, node->name, tw_shape_text(twi_shape(value), text, sizeof text));
    return TW_OK;
}

static tw_status with_literal(twi_copying *c, twi_guard *conditions, twi_value predicate, bool value,
                              twi_guard **result)
{
    const tw_tensor *known = twi_constant(predicate);
    *result = conditions;
    if (!known)
        return twi_guard_with(&c->guards, conditions, (twi_literal){predicate.node->id, predicate.index, value}, result,
                              c->p->error);
    if ((*(const uint8_t *)tw_tensor_data((tw_tensor *)known) != 0) != value)
        *result = &twi_never;
    return TW_OK;
}

/* Of a value that was computed before the loop: there it waited for nothing, here whoever takes it runs only where
 * there is a round. */
static tw_status conditions_of_fed(twi_copying *c, tw_output output, twi_guard **conditions)
{
    int here = twi_copy_frame(c);
    *conditions = NULL;
    if (!here || c->frames->of[output.node->id] != here || !c->frames->gated[output.node->id])
        return TW_OK;
    tw_output cond = c->frames->items.items[here].cond->inputs[0];
    return with_literal(c, NULL, follow(c->of[cond.node->id].outputs[cond.index]), true, conditions);
}

/* ---- behind a border --------------------------------------------------------------------------------------------- */

/* Whether a value comes from an earlier part, and is there. */
static bool has_crossed(const twi_copying *c, const twi_feed_shape *feed)
{
    return !feed->dead && twi_copy_is_done(c, feed->output.node);
}

/* A predicate that decides whether there is another round stays open: a plan of a round has it itself. */
static void settle(twi_copying *c, tw_output taken)
{
    tw_output root = twi_branches_root(taken.node->inputs[1]);
    if (root.index > 63 || twi_op_is(root.node->op, TWI_LOOP_COND))
        return;
    c->settled[root.node->id] |= UINT64_C(1) << root.index;
    c->held[root.node->id] |= (uint64_t)(taken.index == 1) << root.index;
}

/* Output i of a node is there, so what it was made of was, too; of a Switch that side was taken. */
static void mark_there(twi_copying *c, bool *there, tw_output output)
{
    there[output.node->id] = true;
    if (output.index >= 0 && twi_op_is(output.node->op, TWI_SWITCH))
        settle(c, output);
}

/* From what has crossed back, up to Merges and the borders of loops: so sides of conditions are known that were taken
 * before the border, also where a predicate crosses it that stood under another one. */
static void settle_conditions(twi_copying *c, bool *there)
{
    const twi_request *request = c->p->request;
    for (int i = 0; i < request->num_feeds; i++)
        if (has_crossed(c, &request->feeds[i]))
            mark_there(c, there, request->feeds[i].output);
    for (int id = request->graph->nodes.count - 1; id >= 0; id--) {
        const tw_node *node = request->graph->nodes.items[id];
        if (!there[id] || twi_op_is(node->op, TWI_MERGE | TWI_ENTER | TWI_EXIT | TWI_NEXT))
            continue;
        for (int i = 0; i < node->num_inputs; i++)
            mark_there(c, there, node->inputs[i]);
        for (int i = 0; i < node->num_control_inputs; i++)
            there[node->control_inputs[i]->id] = true;
    }
}

tw_status twi_settle_conditions(twi_copying *c)
{
    size_t n = (size_t)c->p->request->graph->nodes.count + 1;
    if (!c->p->request->behind || !c->conditions)
        return TW_OK;
    bool *there = twi_alloc_array(n, sizeof *there);
    c->settled = twi_alloc_array(n, sizeof *c->settled);
    c->held = twi_alloc_array(n, sizeof *c->held);
    bool fits = there && c->settled && c->held;
    if (fits)
        settle_conditions(c, there);
    twi_free(there);
    return fits ? TW_OK : fail_memory(c);
}

/* Whether it is known if the side of a Switch was taken, and if so, whether it was. */
static bool is_settled(const twi_copying *c, tw_output side, bool *taken)
{
    tw_output root = twi_branches_root(side.node->inputs[1]);
    if (!c->settled || root.index > 63 || !(c->settled[root.node->id] >> root.index & 1))
        return false;
    *taken = (c->held[root.node->id] >> root.index & 1) == (uint64_t)(side.index == 1);
    return true;
}

/* Whether what a node in an earlier part would have given is not there. */
static bool is_dead(const twi_copying *c, tw_output output)
{
    const twi_request *request = c->p->request;
    bool dead = false;
    for (int i = 0; i < request->num_feeds && !dead; i++)
        dead = request->feeds[i].dead && request->feeds[i].output.node == output.node &&
               request->feeds[i].output.index == output.index;
    return dead;
}

/* The conditions of a node, and of the side of a Switch. */
static tw_status conditions_of(twi_copying *c, tw_output output, twi_guard **conditions)
{
    twi_value predicate;
    bool taken;
    if (twi_copy_is_done(c, output.node)) { /* before the border it ran, or it did not */
        *conditions = is_dead(c, output) ? &twi_never : NULL;
        return TW_OK;
    }
    if (twi_copy_is_outside(c, output.node)) { /* there is a round, so the side was taken that it is in */
        *conditions = NULL;
        return TW_OK;
    }
    if (twi_copy_is_fed(c, output) || (output.index < 0 && twi_copy_is_wholly_fed(c, output.node)))
        return conditions_of_fed(c, output, conditions);
    *conditions = c->of[output.node->id].conditions;
    if (output.index < 0 || *conditions == &twi_never || !twi_op_is(output.node->op, TWI_SWITCH))
        return TW_OK;
    if (is_settled(c, output, &taken)) {
        *conditions = taken ? *conditions : &twi_never;
        return TW_OK;
    }
    tw_status status = find_predicate(c, output.node, &predicate);
    if (status != TW_OK)
        return status;
    return with_literal(c, *conditions, predicate, output.index == 1, conditions);
}

static tw_status join(twi_copying *c, tw_output input, twi_guard **all)
{
    twi_guard *one;
    tw_status status = conditions_of(c, input, &one);
    return status == TW_OK ? twi_guard_join(&c->guards, *all, one, all, c->p->error) : status;
}

static tw_status join_controls(twi_copying *c, const tw_node *node, twi_guard **all)
{
    tw_status status = TW_OK;
    for (int i = 0; i < node->num_control_inputs && status == TW_OK; i++)
        status = join(c, (tw_output){node->control_inputs[i], -1}, all);
    return status;
}

/* ---- guards ------------------------------------------------------------------------------------------------------ */

static tw_status fill_guard(twi_copying *c, const twi_guard *conditions, twi_value *predicates, int64_t *values)
{
    for (int i = conditions->count - 1; i >= 0; i--, conditions = conditions->rest) {
        predicates[i] = twi_out(c->region->nodes.items[conditions->last.predicate], conditions->last.index);
        values[i] = conditions->last.value;
    }
    return TW_OK;
}

/* The node that says whether the predicates have these values. */
static twi_node *make_guard_node(twi_copying *c, const char *of, const char *how, const tw_node *origin, int rank,
                                 twi_value *predicates, const int64_t *values, int count)
{
    const tw_devices *devices = c->p->request->devices;
    int task = devices->items[c->p->request->home]->task; /* a loop at home elsewhere has its guards there */
    tw_attr attr = tw_attr_ints("values", values, count);
    char *name = twi_arena_printf(&c->region->arena, "%s/%s", of, how);
    if (!name) {
        twi_region_fail_memory(c->region);
        return NULL;
    }
    return twi_node_make(c->region, &(twi_wish){.op = c->region->known[TWI_OP__Guard],
                                                .name = name,
                                                .origin = origin,
                                                .rank = rank,
                                                .device = twi_host_of(devices, task),
                                                .inputs = predicates,
                                                .num_inputs = count,
                                                .attrs = &attr,
                                                .num_attrs = 1});
}

/* The node that says whether the conditions hold: one for each set; NULL for the empty one. */
static tw_status make_guard(twi_copying *c, twi_guard *conditions, twi_node **guard)
{
    twi_value predicates[TWI_MOST_CONDITIONS];
    int64_t values[TWI_MOST_CONDITIONS];
    *guard = conditions ? conditions->user : NULL;
    if (!conditions || *guard)
        return TW_OK;
    fill_guard(c, conditions, predicates, values);
    const twi_node *last = predicates[conditions->count - 1].node;
    conditions->user = *guard = make_guard_node(c, last->name, values[conditions->count - 1] ? "holds" : "fails", NULL,
                                                last->rank, predicates, values, conditions->count);
    return twi_region_check(c->region, c->p->error);
}

/* Of a Merge whose inputs are of several conditions, as of one that takes the k-th input where a number is k: it runs
 * if any of them does. Behind a border one may be known to be there. */
static tw_status merge_any(twi_copying *c, const tw_node *node, twi_guard **sets, int count, twi_guard **merged)
{
    twi_value *guards = twi_arena_alloc(&c->p->plan->arena, sizeof *guards * (size_t)count);
    int64_t *values = twi_arena_alloc(&c->p->plan->arena, sizeof *values * (size_t)count);
    tw_status status = guards && values ? TW_OK : fail_memory(c);
    *merged = NULL;
    for (int i = 0; i < count && status == TW_OK; i++) {
        twi_node *guard = NULL;
        if (!sets[i])
            return c->p->request->behind
                       ? TW_OK
                       : twi_fail(c->p->error, TW_INVALID_ARGUMENT, "its inputs are not the branches of conditions");
        status = make_guard(c, sets[i], &guard);
        guards[i] = twi_out(guard, 0);
    }
    if (status != TW_OK)
        return status;
    twi_node *none = make_guard_node(c, node->name, "none", node, node->order, guards, values, count);
    return none ? twi_guard_with(&c->guards, NULL, (twi_literal){none->id, 0, false}, merged, c->p->error)
                : twi_region_check(c->region, c->p->error);
}

/* One input of a Merge runs whenever the Merge does. */
static tw_status merge_inputs(twi_copying *c, const tw_node *node, twi_guard **merged)
{
    tw_status status = TW_OK;
    int left = node->num_inputs;
    twi_guard **sets = twi_arena_alloc(&c->p->plan->arena, sizeof *sets * (size_t)(node->num_inputs + 1));
    if (!sets)
        return fail_memory(c);
    for (int i = 0; i < node->num_inputs && status == TW_OK; i++)
        status = conditions_of(c, node->inputs[i], &sets[i]);
    if (status == TW_OK)
        status = twi_guard_merge(&c->guards, sets, &left, c->p->error);
    if (status == TW_OK && left > 1)
        status = merge_any(c, node, sets, left, merged);
    else if (status == TW_OK)
        *merged = left ? sets[0] : &twi_never;
    if (status != TW_OK)
        twi_prefix(c->p->error, "%s '%s'", node->op->name, node->name);
    return status;
}

tw_status twi_find_conditions(twi_copying *c, const tw_node *node, bool *never)
{
    bool merges = twi_op_is(node->op, TWI_MERGE), triggers = merges && !node->num_inputs;
    twi_guard *all = NULL;
    tw_status status = TW_OK;
    *never = false;
    c->guard = NULL;
    if (twi_copy_is_outside(c, node) || triggers) /* which runs whatever came of what it comes after */
        return TW_OK;
    if (merges && !node->backward.node)
        status = merge_inputs(c, node, &all);
    for (int i = 0; i < node->num_inputs && !merges && status == TW_OK; i++)
        status = join(c, node->inputs[i], &all);
    if (status == TW_OK && !merges && !twi_copy_is_hoisted(c, node)) /* a Merge waits, whatever came of those */
        status = join_controls(c, node, &all);
    c->of[node->id].conditions = all;
    *never = all == &twi_never;
    return status == TW_OK && !*never ? make_guard(c, all, &c->guard) : status;
}

tw_status twi_find_loop_conditions(twi_copying *c, const tw_output *inputs, int num_inputs, const tw_node *exit,
                                   bool *never)
{
    twi_guard *all = NULL;
    tw_status status = TW_OK;
    for (int i = 0; i < num_inputs && status == TW_OK; i++)
        status = join(c, inputs[i], &all);
    c->of[exit->id].conditions = all;
    c->guard = NULL;
    *never = all == &twi_never;
    return status == TW_OK && !*never ? make_guard(c, all, &c->guard) : status;
}

tw_status twi_guard_of(twi_copying *c, tw_output output, twi_node **guard, bool *never)
{
    twi_guard *conditions = NULL;
    tw_status status = conditions_of(c, output, &conditions);
    *guard = NULL;
    *never = conditions == &twi_never;
    return status == TW_OK && !*never ? make_guard(c, conditions, guard) : status;
}

/* ---- Switch ------------------------------------------------------------------------------------------------------ */

/* What comes after its outputs comes after what it comes after itself. A handle is passed on as it is: who writes what
 * is behind it is known by the handle. */
tw_status twi_copy_switch(twi_copying *c, const tw_node *node, twi_value data, const twi_value *controls,
                          int num_controls)
{
    twi_value *inputs = twi_arena_alloc(&c->p->plan->arena, sizeof *inputs * (size_t)(num_controls + 1));
    bool is_handle = twi_dtype(data) == TW_RESOURCE;
    tw_attr type = tw_attr_type("T", twi_dtype(data));
    if (!inputs)
        return fail_memory(c);
    inputs[0] = data;
    for (int i = 0; i < num_controls; i++)
        inputs[i + 1] = controls[i];
    twi_node *made =
        twi_node_make(c->region, &(twi_wish){.op = is_handle ? twi_op_find("NoOp") : c->region->known[TWI_OP_Identity],
                                             .name = node->name,
                                             .origin = node,
                                             .rank = node->order,
                                             .device = -1,
                                             .inputs = inputs + is_handle,
                                             .num_inputs = num_controls + !is_handle,
                                             .attrs = &type,
                                             .num_attrs = !is_handle});
    if (!made)
        return twi_region_check(c->region, c->p->error);
    twi_set_guard(made, c->guard);
    twi_copy_note(c, node, made);
    for (int i = 0; i < 2; i++)
        if (!c->of[node->id].outputs[i].node) /* not fed */
            c->of[node->id].outputs[i] = is_handle ? data : twi_out(made, 0);
    return twi_region_check(c->region, c->p->error);
}

/* ---- Merge ------------------------------------------------------------------------------------------------------- */

/* An input that may be the one. */
typedef struct choice {
    int input;
    twi_value value;
    twi_node *guard;
} choice;

static tw_status list_choices(twi_copying *c, const tw_node *node, choice *choices, int *count)
{
    tw_status status = TW_OK;
    for (int i = 0; i < node->num_inputs && status == TW_OK; i++) {
        tw_output input = node->inputs[i];
        twi_guard *conditions;
        status = conditions_of(c, input, &conditions);
        if (status != TW_OK || conditions == &twi_never)
            continue;
        choice *next = &choices[(*count)++];
        *next = (choice){.input = i, .value = c->of[input.node->id].outputs[input.index]};
        status = make_guard(c, conditions, &next->guard);
        if (status == TW_OK && twi_copy_refers(c, input) && !twi_input_is_reference(node, i)) {
            status = twi_read_reference(c->p, next->value, twi_copy_writer(c, input), node, NULL, 0, &next->value);
            if (status == TW_OK)
                twi_set_guard(next->value.node, next->guard);
        }
    }
    return status;
}

static bool all_are_one(const choice *choices, int count)
{
    bool same = true;
    for (int i = 1; i < count; i++)
        same = same && twi_same(choices[i].value, choices[0].value);
    return same;
}

/* Two that run whenever the other does: nothing says which of them it is. */
static bool any_two_meet(const choice *choices, int count)
{
    bool meet = false;
    for (int i = 0; i < count && !meet; i++)
        for (int k = i + 1; k < count && !meet; k++)
            meet = choices[i].guard == choices[k].guard && !twi_same(choices[i].value, choices[k].value);
    return meet;
}

static int list_controls(const twi_copying *c, const tw_node *node, twi_value *controls)
{
    int count = 0;
    for (int i = 0; i < node->num_control_inputs; i++)
        if (c->of[node->control_inputs[i]->id].node)
            controls[count++] = twi_out(c->of[node->control_inputs[i]->id].node, -1);
    return count;
}

/* One piece of memory that each choice whose guard holds is put into. */
static tw_status make_chain(twi_copying *c, const tw_node *node, const choice *choices, int count, twi_value *value)
{
    twi_value *inputs = twi_arena_alloc(&c->p->plan->arena, sizeof *inputs * (size_t)(node->num_control_inputs + 2));
    if (!inputs)
        return fail_memory(c);
    for (int i = 0; i < count; i++) {
        bool is_last = i == count - 1;
        int n = 0;
        char *name = is_last ? (char *)node->name
                             : twi_arena_printf(&c->region->arena, "%s/input_%d", node->name, choices[i].input);
        if (!name)
            return fail_memory(c);
        if (i > 0)
            inputs[n++] = *value;
        inputs[n++] = choices[i].value;
        n += list_controls(c, node, inputs + n);
        twi_node *made = twi_node_make(c->region, &(twi_wish){.op = c->region->known[TWI_OP__Choose],
                                                              .name = name,
                                                              .origin = node,
                                                              .rank = node->order,
                                                              .device = -1,
                                                              .inputs = inputs,
                                                              .num_inputs = n});
        if (!made)
            return twi_region_check(c->region, c->p->error);
        twi_set_guard(made, choices[i].guard);
        *value = twi_out(made, 0);
        twi_copy_note(c, node, made);
    }
    return twi_region_check(c->region, c->p->error);
}

/* There is nothing to choose; what is left is its place in the order. */
static tw_status pass_on(twi_copying *c, const tw_node *node, const choice *choices, int count)
{
    twi_value *controls =
        twi_arena_alloc(&c->p->plan->arena, sizeof *controls * (size_t)(node->num_control_inputs + count + 1));
    if (!controls)
        return fail_memory(c);
    int n = list_controls(c, node, controls);
    for (int i = 0; i < count; i++) {
        tw_output input = node->inputs[choices[i].input];
        twi_node *before = twi_output_is_reference(input) ? twi_copy_writer(c, input).node : choices[i].value.node;
        if (before)
            controls[n++] = twi_out(before, -1);
    }
    twi_node *made = twi_node_make(c->region, &(twi_wish){.op = twi_op_find("NoOp"),
                                                          .name = node->name,
                                                          .origin = node,
                                                          .rank = node->order,
                                                          .device = -1,
                                                          .inputs = controls,
                                                          .num_inputs = n});
    if (!made)
        return twi_region_check(c->region, c->p->error);
    twi_set_guard(made, c->guard);
    twi_copy_note(c, node, made);
    return twi_region_check(c->region, c->p->error);
}

/* Which of its inputs a Merge has given. */
static tw_status make_index(twi_copying *c, const tw_node *node, const choice *choices, int count, twi_value *index)
{
    char *name = twi_arena_printf(&c->region->arena, "%s/value_index", node->name);
    twi_value *guards = twi_arena_alloc(&c->p->plan->arena, sizeof *guards * (size_t)count);
    int64_t *numbers = twi_arena_alloc(&c->p->plan->arena, sizeof *numbers * (size_t)count);
    int32_t only = choices[0].input;
    if (!name || !guards || !numbers)
        return fail_memory(c);
    tw_tensor *value = tw_tensor_from(TW_INT32, TW_SCALAR, &only);
    if (!value)
        return fail_memory(c);
    for (int i = 0; i < count; i++) {
        numbers[i] = choices[i].input;
        if (i > 0)
            guards[i - 1] = twi_out(choices[i].guard, 0);
    }
    tw_attr constant[] = {tw_attr_tensor("value", value), tw_attr_type("dtype", TW_INT32)};
    tw_attr which = tw_attr_ints("numbers", numbers, count);
    twi_wish w = {
        .op = c->region->known[TWI_OP_Const], .name = name, .rank = node->order, .attrs = constant, .num_attrs = 2};
    if (count > 1)
        w = (twi_wish){.op = c->region->known[TWI_OP__Which],
                       .name = name,
                       .rank = node->order,
                       .inputs = guards,
                       .num_inputs = count - 1,
                       .attrs = &which,
                       .num_attrs = 1};
    *index = twi_out(twi_node_make(c->region, &w), 0);
    tw_tensor_release(value);
    return twi_region_check(c->region, c->p->error);
}

tw_status twi_copy_merge(twi_copying *c, const tw_node *node)
{
    int count = 0;
    twi_value value = {0}, index = {0};
    tw_status status = TW_OK;
    choice *first = twi_arena_alloc(&c->p->plan->arena, sizeof *first * (size_t)(node->num_inputs + 1));
    choice *choices = first;
    if (!choices)
        return fail_memory(c);
    TWI_TRY(list_choices(c, node, choices, &count));
    if (!c->p->request->behind && any_two_meet(choices, count))
        TWI_LEAVE(twi_fail(c->p->error, TW_INVALID_ARGUMENT, "%s '%s': two of its inputs run under the same conditions",
                           node->op->name, node->name));
    for (int i = count - 1; i > 0 && choices == first; i--)
        if (!choices[i].guard) /* it is there, and the last that is counts */
            choices += i, count -= i;
    value = choices[0].value;
    bool passes = all_are_one(choices, count), is_handle = twi_dtype(value) == TW_RESOURCE;
    if (!passes && is_handle)
        TWI_LEAVE(twi_fail(c->p->error, TW_UNIMPLEMENTED, "%s '%s' chooses between variables, which is not supported",
                           node->op->name, node->name));
    if (passes)
        TWI_TRY(pass_on(c, node, choices, count));
    else
        TWI_TRY(make_chain(c, node, choices, count, &value));
    TWI_TRY(make_index(c, node, choices, count, &index));
    if (!c->of[node->id].outputs[0].node) /* not fed */
        c->of[node->id].outputs[0] = value;
    if (!c->of[node->id].outputs[1].node)
        c->of[node->id].outputs[1] = index;
done:
    return status;
}
