/* border.c - where a plan ends because a shape depends on a value that is not there before the run.
 *
 * A node is late if its shape depends on such a value, or if it follows a late one. What is early is planned; it gives
 * what was wanted of it and what late nodes need of it: the values that cross. Of those that a shape rule asked for,
 * what is in them matters (twi_ask_value()): what lies behind is planned for these contents and for the shapes of the
 * others, as a cut of the same graph in which crossing values are fed (run/chain.h). It may have a border of its own.
 *
 * Some early nodes are made again behind the border instead of sending their values across: constants, handles, what
 * passes references on, and reads of variables that nobody writes before the border. All else has been done when the
 * rest begins and is not done again. Late is closed under "follows", so no order that the graph asks for is broken;
 * what the graph leaves open is early.
 *
 * Where the graph has branches, values cross that may not be there, as their branch was not taken: then what follows
 * them is not planned behind the border, and a Merge whose inputs differ in shape has the one that is there.
 *
 * A node of a branch whose inputs do not fit is late as well: where the branch is taken, planning what is behind fails
 * by the node's name, and else it is not planned.
 *
 * An assignment that gives a variable another shape than it has is late, too. What follows it is planned for the new
 * shape, and the assignment is done on the way, when the parts before it have ended (run/chain.c). So is what follows a
 * loop in which there may be such.
 *
 * A graph without such shapes pays for one look at each node's results. */
#include "plan/specialize.h"

#include <string.h>

enum { MOST_BORDERS = 1000 }; /* one behind the other; each part is planned by itself */

/* ---- late nodes -------------------------------------------------------------------------------------------------- */

/* Of a value that a node of the user's graph has in the region; one in a branch that never runs has none. */
static bool is_unknown(const twi_copying *c, tw_output output)
{
    const twi_value *row = c->of[output.node->id].outputs;
    twi_value value = row ? row[output.index] : (twi_value){0};
    return value.node && !twi_shape_is_settled(value);
}

static bool has_unknown_outputs(const twi_copying *c, const tw_node *node)
{
    bool unknown = false;
    for (int i = 0; i < node->num_outputs && !unknown; i++)
        unknown = is_unknown(c, (tw_output){(tw_node *)node, i});
    return unknown;
}

static bool has_unknown_inputs(const twi_copying *c, const tw_node *node)
{
    bool unknown = false;
    for (int i = 0; i < node->num_inputs && !unknown; i++)
        unknown = is_unknown(c, node->inputs[i]);
    return unknown;
}

/* What comes after the node is late. */
static bool is_last(const twi_copying *c, const tw_node *node)
{
    return (c->late && c->late[node->id]) || (c->reshaped && c->reshaped[node->id]);
}

bool twi_follows_late(const twi_copying *c, const tw_node *node)
{
    bool any = c->late || c->reshaped, late = false;
    for (int i = 0; i < node->num_inputs && any && !late; i++)
        late = is_last(c, node->inputs[i].node) && !twi_copy_is_fed(c, node->inputs[i]);
    for (int i = 0; i < node->num_control_inputs && any && !late; i++)
        late = is_last(c, node->control_inputs[i]);
    return late;
}

static bool was_asked(uint64_t asked, int input)
{
    return asked >> (input < 63 ? input : 63) & 1;
}

/* Nothing is left of it but constants; or it never runs. */
static bool is_settled(const twi_copying *c, const tw_node *node)
{
    const twi_value *row = c->of[node->id].outputs;
    bool settled = !c->of[node->id].node;
    for (int i = 0; i < node->num_outputs && settled; i++)
        settled = !row || !row[i].node || twi_constant(row[i]);
    return settled;
}

/* Whether a predicate that its conditions name is late, or has a shape that is not known, so that it comes before the
 * border alone. */
static bool is_decided_late(const twi_copying *c, const tw_node *node)
{
    const twi_guard *conditions = c->conditions ? c->of[node->id].conditions : NULL;
    bool late = false;
    for (; conditions && conditions != &twi_never && !late; conditions = conditions->rest) {
        const twi_node *predicate = c->region->nodes.items[conditions->last.predicate];
        late = !twi_shape_is_settled(twi_out((twi_node *)predicate, conditions->last.index)) ||
               (c->late && predicate->origin && c->late[predicate->origin->id]);
    }
    return late;
}

/* A shape that is not known and will be: it follows from values that are asked for, or from which branch is taken. */
static bool will_be_known(const twi_copying *c, const tw_node *node)
{
    const twi_node *made = c->of[node->id].node;
    return has_unknown_outputs(c, node) && !twi_op_is(made ? made->op : node->op, TWI_MAKES_SHAPE) &&
           (c->region->asked || twi_op_is(node->op, TWI_MERGE));
}

static bool is_reshaping(const twi_copying *c, const tw_node *node)
{
    bool found = false;
    for (int i = 0; i < c->reshaping.count && !found; i++)
        found = c->reshaping.items[i].assign == node;
    return found;
}

tw_status twi_find_late(twi_copying *c, const tw_node *node)
{
    uint64_t asked = c->region->asked;
    bool reshapes = is_reshaping(c, node), misfits = c->region->misfits;
    c->unknown = c->unknown || reshapes || misfits || has_unknown_outputs(c, node);
    if (!c->unknown || twi_copy_is_done(c, node))
        return TW_OK;
    bool decided = is_decided_late(c, node);
    bool never = c->conditions && c->of[node->id].conditions == &twi_never;
    bool may_act = never && twi_follows_late(c, node); /* what it comes after */
    if (is_settled(c, node) && !decided && !may_act && !reshapes && !misfits)
        return TW_OK;
    if (!decided && !reshapes && !misfits && !will_be_known(c, node) && !has_unknown_inputs(c, node) &&
        !twi_follows_late(c, node))
        return TW_OK; /* what cannot be known is refused by name when the node is prepared */
    if (!c->late && !(c->late = twi_alloc((size_t)c->p->request->graph->nodes.count)))
        return twi_fail_memory(c->p->error, "finding a border");
    c->late[node->id] = true;
    c->cause = c->cause ? c->cause : node;
    for (int i = 0; i < node->num_inputs && !reshapes; i++)
        if (was_asked(asked, i) && !twi_push(&c->asked, node->inputs[i]))
            return twi_fail_memory(c->p->error, "finding a border");
    return TW_OK;
}

/* ---- what crosses ------------------------------------------------------------------------------------------------ */

typedef struct making {
    twi_copying *c;
    twi_border *border;
    bool *behind;    /* [nodes] late, or made again */
    bool *ends;      /* [nodes] early, and has to run though no value of it crosses */
    int **numbers;   /* [nodes][1 + num_outputs] of crossings, from 1; rows where there are any */
    twi_map written; /* variables that early nodes write, by name */
    TWI_ARRAY(twi_crossing) crossings;
    TWI_ARRAY(twi_value) values;  /* what the region gives */
    TWI_ARRAY(twi_node *) guards; /* [values] which say whether it has a value; NULL: always */
} making;

static const char *variable_name(const twi_node *handle)
{
    while (handle->num_inputs)
        handle = handle->inputs[0].node;
    const char *name = twi_attr_string(&handle->attrs, "shared_name", "");
    return name[0] ? name : handle->name;
}

static bool note_writes(making *m, const twi_node *node)
{
    bool fits = true;
    for (int i = 0; node->op->roles && i < node->num_inputs && fits; i++)
        if (twi_role_writes(twi_op_role(node->op, &node->attrs, i)))
            fits = twi_map_put(&m->written, variable_name(node->inputs[i].node), (void *)node);
    return fits;
}

static bool reads_unwritten(const making *m, const tw_node *node)
{
    const twi_node *read = m->c->of[node->id].node;
    return twi_op_is(node->op, TWI_READ) && read && !has_unknown_outputs(m->c, node) &&
           !twi_map_get(&m->written, variable_name(read->inputs[0].node));
}

/* Whether an early node is made again behind the border. */
static bool is_made_again(const making *m, const tw_node *node)
{
    const twi_copying *c = m->c;
    bool gives_handle = node->num_outputs > 0 && (node->output_types[0] == TW_RESOURCE ||
                                                  twi_output_is_reference((tw_output){(tw_node *)node, 0}));
    if (c->of[node->id].fed || twi_copy_is_done(c, node))
        return false;
    bool is_kept = node->op->makes == TWI_MAKES_RECIPE || node->op->makes == TWI_MAKES_TABLE;
    bool makes = gives_handle && (!node->num_inputs || is_kept);
    return twi_op_is(node->op, TWI_CONSTANT) || c->of[node->id].views || makes ||
           (gives_handle && twi_op_is(node->op, TWI_PASSES | TWI_SWITCH | TWI_MERGE | TWI_ENTER)) ||
           reads_unwritten(m, node);
}

static int feed_of(const twi_copying *c, tw_output output)
{
    const twi_request *request = c->p->request;
    for (int i = 0; i < request->num_feeds; i++)
        if (request->feeds[i].output.node == output.node && request->feeds[i].output.index == output.index)
            return i;
    return -1;
}

static bool add_crossing(making *m, tw_output output)
{
    twi_copying *c = m->c;
    int **row = &m->numbers[output.node->id];
    if (!*row && !(*row = twi_arena_alloc(&c->p->plan->arena, sizeof **row * (size_t)(output.node->num_outputs + 1))))
        return false;
    if ((*row)[output.index + 1])
        return true;
    (*row)[output.index + 1] = m->crossings.count + 1;
    return twi_push(&m->crossings, (twi_crossing){.output = output, .fetch = -1, .feed = feed_of(c, output)});
}

/* A node behind the border takes the output: it is made again, has a number among those that cross, or names a variable
 * whose writer has to run, or a stack or an array, which is there from then on. */
static bool take_output(making *m, tw_output output)
{
    const twi_copying *c = m->c;
    const tw_node *node = output.node;
    if (m->behind[node->id] && !twi_copy_is_fed(c, output))
        return true;
    if (is_made_again(m, node)) {
        m->behind[node->id] = true;
        return true;
    }
    bool is_series = (node->op->makes == TWI_MAKES_SERIES && tw_output_dtype(output) == TW_RESOURCE) ||
                     (output.index == 0 && twi_copy_gives_handle(node));
    if (twi_copy_refers(c, output) || is_series) {
        m->ends[node->id] = true;
        return true;
    }
    return add_crossing(m, output);
}

/* A node behind the border comes after this one: which has to run, and whether it does may depend on a branch. */
static bool take_control(making *m, const tw_node *before)
{
    const twi_copying *c = m->c;
    tw_output output = {(tw_node *)before, -1};
    if (m->behind[before->id])
        return true;
    if (is_made_again(m, before)) {
        m->behind[before->id] = true;
        return true;
    }
    m->ends[before->id] = true;
    return !((c->conditions && c->of[before->id].conditions) || feed_of(c, output) >= 0) || add_crossing(m, output);
}

/* What an assignment that changes a variable's shape gives it, and whether its branch was taken. */
static bool take_reshapes(making *m)
{
    const twi_copying *c = m->c;
    bool fits = true;
    for (int i = 0; i < c->reshaping.count && fits; i++) {
        const tw_node *node = c->reshaping.items[i].assign;
        fits = !node || add_crossing(m, node->inputs[1]);
        if (fits && node && c->conditions && c->of[node->id].conditions)
            fits = add_crossing(m, (tw_output){(tw_node *)node, -1});
    }
    return fits;
}

/* Nodes behind the border, last to first. */
static bool take_inputs(making *m)
{
    const tw_graph *graph = m->c->p->request->graph;
    bool fits = true;
    for (int id = graph->nodes.count - 1; id >= 0; id--) {
        const tw_node *node = graph->nodes.items[id];
        for (int i = 0; i < node->num_inputs && m->behind[id] && fits; i++)
            fits = take_output(m, node->inputs[i]);
        for (int i = 0; i < node->num_control_inputs && m->behind[id] && fits; i++)
            fits = take_control(m, node->control_inputs[i]);
    }
    return fits;
}

/* ---- what the plan gives ----------------------------------------------------------------------------------------- */

/* Stands for what is wanted and lies behind. */
static twi_node *make_mark(twi_copying *c)
{
    return twi_node_make(c->region, &(twi_wish){.op = twi_op_find("NoOp"),
                                                .name = c->cause->name,
                                                .origin = c->cause,
                                                .rank = c->cause->order,
                                                .device = -1});
}

/* One thing more that the plan gives. */
static tw_status give(making *m, twi_value value, twi_node *guard)
{
    return twi_push(&m->values, value) && twi_push(&m->guards, guard)
               ? TW_OK
               : twi_fail_memory(m->c->p->error, "making a border");
}

/* What was wanted, in its order, with the mark where it lies behind. */
static tw_status give_wanted(making *m)
{
    twi_copying *c = m->c;
    const twi_request *request = c->p->request;
    twi_border *border = m->border;
    twi_value mark = twi_out(make_mark(c), -1);
    tw_status status = twi_region_check(c->region, c->p->error);
    for (int i = 0; i < request->num_fetches && status == TW_OK; i++) {
        tw_output fetch = request->fetches[i];
        twi_value value = mark;
        twi_node *guard = NULL;
        if (c->late[fetch.node->id] && !twi_copy_is_fed(c, fetch)) {
            border->fetches[border->num_fetches] = fetch;
            border->places[border->num_fetches++] = i;
        } else {
            status = twi_copy_fetch(c, i, &value, &guard);
        }
        if (status == TW_OK)
            status = give(m, value, guard);
    }
    return status;
}

/* A value that crosses: known already, fed to this plan, or given by it, if the branch it is in is taken. */
static tw_status give_crossing(making *m, twi_crossing *crossing)
{
    twi_copying *c = m->c;
    tw_output output = crossing->output;
    const twi_value *row = c->of[output.node->id].outputs;
    twi_value value = output.index < 0 ? twi_out(c->of[output.node->id].node, -1)
                      : row            ? row[output.index]
                                       : (twi_value){0};
    twi_node *guard = NULL;
    tw_status status = c->conditions ? twi_guard_of(c, output, &guard, &crossing->dead) : TW_OK;
    if (status != TW_OK || crossing->dead || (crossing->feed >= 0 && output.index < 0))
        return status;
    tw_tensor *constant = guard || output.index < 0 ? NULL : twi_constant(value);
    if (constant)
        crossing->constant = constant, crossing->feed = -1;
    if (constant || crossing->feed >= 0)
        return TW_OK;
    crossing->fetch = m->values.count;
    return give(m, value.node ? value : twi_out(make_mark(c), -1), guard);
}

/* The values that cross, and nodes that only have to run. */
static tw_status give_crossings(making *m)
{
    twi_copying *c = m->c;
    tw_status status = TW_OK;
    for (int i = 0; i < m->crossings.count && status == TW_OK; i++)
        status = give_crossing(m, &m->crossings.items[i]);
    for (int id = 0; id < c->p->request->graph->nodes.count && status == TW_OK; id++)
        if ((m->ends[id] && c->of[id].node && !c->of[id].fed) || twi_copy_effect(c, id))
            status = give(m, twi_out(c->of[id].node, -1), NULL);
    return status;
}

/* Behind it all come the guards. */
static bool end_region(making *m)
{
    twi_plan *plan = m->c->p->plan;
    plan->num_fetches = m->values.count;
    plan->guards_of_fetches =
        twi_arena_alloc(&plan->arena, sizeof *plan->guards_of_fetches * ((size_t)plan->num_fetches + 1));
    bool fits = plan->guards_of_fetches;
    for (int i = 0; i < plan->num_fetches && fits; i++) {
        plan->guards_of_fetches[i] = m->guards.items[i] ? m->values.count : -1;
        if (m->guards.items[i])
            fits = twi_push(&m->values, twi_out(m->guards.items[i], 0));
    }
    return fits && twi_region_set_end(m->c->region, m->values.items, m->values.count);
}

/* ---- the border -------------------------------------------------------------------------------------------------- */

static bool note_done(making *m)
{
    twi_copying *c = m->c;
    int count = c->p->request->graph->nodes.count;
    bool *done = twi_arena_alloc(&c->p->plan->arena, (size_t)count + 1);
    bool *late = twi_arena_alloc(&c->p->plan->arena, (size_t)count + 1);
    if (late && count)
        memcpy(late, c->late, (size_t)count);
    for (int id = 0; id < count && done; id++) {
        const tw_node *node = c->p->request->graph->nodes.items[id];
        bool early = (c->of[id].needed || c->of[id].fed) && !c->late[id];
        done[id] = twi_copy_is_done(c, node) || (early && !is_made_again(m, node));
    }
    for (int i = 0; i < c->reshaping.count && done; i++)
        if (c->reshaping.items[i].assign)
            done[c->reshaping.items[i].assign->id] = true;
    m->border->done = done;
    m->border->late = late;
    m->border->num_done = count;
    return done && late;
}

static bool prepare_border(making *m)
{
    twi_copying *c = m->c;
    size_t nodes = (size_t)c->p->request->graph->nodes.count + 1, fetches = (size_t)c->p->request->num_fetches + 1;
    twi_arena *arena = &c->p->plan->arena;
    m->border = twi_arena_alloc(arena, sizeof *m->border);
    m->behind = twi_alloc(nodes);
    m->ends = twi_alloc(nodes);
    m->numbers = twi_alloc_array(nodes, sizeof *m->numbers);
    if (!m->border || !m->behind || !m->ends || !m->numbers)
        return false;
    m->border->fetches = twi_arena_alloc(arena, sizeof *m->border->fetches * fetches);
    m->border->places = twi_arena_alloc(arena, sizeof *m->border->places * fetches);
    return m->border->fetches && m->border->places;
}

static bool find_written(making *m)
{
    const twi_copying *c = m->c;
    bool fits = true;
    for (int id = 0; id < c->p->request->graph->nodes.count && fits; id++) {
        m->behind[id] = c->late[id];
        if (c->of[id].needed && !c->late[id] && !c->of[id].fed && c->of[id].node)
            fits = note_writes(m, c->of[id].node);
    }
    for (int i = 0; i < c->reshaping.count && fits; i++)
        fits = !c->reshaping.items[i].assign ||
               twi_map_put(&m->written, variable_name(c->reshaping.items[i].handle), m);
    return fits;
}

static int number_of(const making *m, const tw_node *node, int index)
{
    return m->numbers[node->id] ? m->numbers[node->id][index + 1] - 1 : -1;
}

static bool keep_reshapes(making *m)
{
    const twi_copying *c = m->c;
    int count = c->reshaping.count;
    m->border->reshapes = twi_arena_alloc(&c->p->plan->arena, sizeof *m->border->reshapes * ((size_t)count + 1));
    for (int i = 0; i < count && m->border->reshapes; i++) {
        const tw_node *node = c->reshaping.items[i].assign;
        if (!node)
            continue;
        tw_output value = node->inputs[1];
        m->border->reshapes[m->border->num_reshapes++] =
            (twi_reshape){.variable = variable_name(c->reshaping.items[i].handle),
                          .value = number_of(m, value.node, value.index),
                          .taken = number_of(m, node, -1)};
    }
    return m->border->reshapes;
}

static bool keep_crossings(making *m)
{
    twi_copying *c = m->c;
    twi_border *border = m->border;
    for (int i = 0; i < c->asked.count; i++) {
        tw_output output = c->asked.items[i];
        int number = m->numbers[output.node->id] ? m->numbers[output.node->id][output.index + 1] : 0;
        if (number)
            m->crossings.items[number - 1].by_value = true;
    }
    border->num_crossings = m->crossings.count;
    border->crossings =
        twi_arena_alloc(&c->p->plan->arena, sizeof *border->crossings * ((size_t)m->crossings.count + 1));
    if (!border->crossings)
        return false;
    if (m->crossings.count)
        memcpy(border->crossings, m->crossings.items, sizeof *border->crossings * (size_t)m->crossings.count);
    for (int i = 0; i < border->num_crossings; i++)
        tw_tensor_retain(border->crossings[i].constant);
    c->p->plan->border = border;
    return true;
}

/* What became of late nodes is for the plan behind to say. */
static void forget_late(twi_copying *c)
{
    for (int id = 0; id < c->p->plan->num_origins; id++)
        if (c->late[id])
            c->p->plan->origins[id] = NULL;
}

static tw_status make(making *m)
{
    twi_copying *c = m->c;
    const twi_border *behind = c->p->request->behind;
    tw_status status;
    if (!prepare_border(m) || !find_written(m) || !take_reshapes(m) || !take_inputs(m) || !note_done(m))
        return twi_fail_memory(c->p->error, "making a border");
    m->border->cause = c->cause;
    m->border->depth = behind ? behind->depth + 1 : 0;
    if (m->border->depth == MOST_BORDERS)
        return twi_fail(c->p->error, TW_RESOURCE_EXHAUSTED,
                        "the shape of '%s' is computed behind %d others, more than are planned one by one",
                        c->cause->name, MOST_BORDERS);
    TWI_TRY(give_wanted(m));
    TWI_TRY(give_crossings(m));
    if (!keep_crossings(m) || !keep_reshapes(m) || !end_region(m))
        status = twi_fail_memory(c->p->error, "making a border");
    forget_late(c);
done:
    return status;
}

tw_status twi_make_border(twi_copying *c)
{
    making m = {.c = c};
    tw_status status = make(&m);
    twi_free(m.behind);
    twi_free(m.ends);
    twi_free(m.numbers);
    twi_map_free(&m.written);
    twi_array_free(&m.crossings);
    twi_array_free(&m.values);
    twi_array_free(&m.guards);
    return status;
}
