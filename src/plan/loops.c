/* loops.c - loops of the user's graph as one node each, with a plan for a round.
 *
 * A round is a cut of the graph like any other: what goes in are the values of the loop's Merges and what it takes from
 * outside, what comes out is whether there is another round, and its values. The nodes of the body stand under a guard,
 * for the Switches that let values into it decide by the LoopCond; so a round that finds that it is none does nothing
 * more but what leads to an Exit.
 *
 * What does not change in a loop is computed before it. Handles of variables do not go in: the round's plan has its own
 * node for the same variable, and the loop's node says which variables it writes. */
#include "plan/specialize.h"

#include "device/tasks.h"
#include "tensor/variant.h"

#include <limits.h>

enum { MOST_LOOPS = 64 }; /* that lie in each other */

typedef struct looping {
    twi_copying *c;
    const twi_frame *frame;
    int number;
    const tw_node *exit;               /* the first, for messages */
    TWI_ARRAY(const tw_node *) inside; /* what is needed of it, and of the loops in it, in the graph's order */
    TWI_ARRAY(const tw_node *) merges; /* of values that change */
    TWI_ARRAY(const tw_node *) exits;
    TWI_ARRAY(tw_output) outside; /* what the loop takes: the values that it begins with, then those that stay */
    TWI_ARRAY(twi_value) values;  /* what that is */
    TWI_ARRAY(tw_output) fetches;
    TWI_ARRAY(twi_feed_shape) feeds;
} looping;

static tw_status fail_memory(const twi_copying *c)
{
    return twi_fail_memory(c->p->error, "planning a loop");
}

static tw_status fail(const looping *l, const char *node, const char *what)
{
    return twi_fail(l->c->p->error, TW_INVALID_ARGUMENT, "loop '%s': %s%s%s%s", l->frame->name, node ? "'" : "",
                    node ? node : "", node ? "' " : "", what);
}

/* Whether it is computed before the loop. */
static bool is_hoisted(const looping *l, const tw_node *node)
{
    return l->c->frames->of[node->id] == l->number && l->c->frames->unchanging[node->id];
}

static bool is_in_loop(const looping *l, const tw_node *node)
{
    const twi_copying *c = l->c;
    int frame = c->frames->of[node->id];
    return c->of[node->id].needed && frame >= l->number && twi_frame_is_within(c->frames, frame, l->number);
}

/* ---- what is in it ----------------------------------------------------------------------------------------------- */

static bool list_inside_frame(looping *l, const twi_frame *frame)
{
    bool fits = true;
    for (int i = 0; i < frame->nodes.count && fits; i++)
        if (l->c->of[frame->nodes.items[i]->id].needed)
            fits = twi_push(&l->inside, frame->nodes.items[i]);
    for (int i = 0; i < frame->frames.count && fits; i++)
        fits = list_inside_frame(l, &l->c->frames->items.items[frame->frames.items[i]]);
    return fits;
}

static tw_status list_inside(looping *l)
{
    if (!list_inside_frame(l, l->frame))
        return fail_memory(l->c);
    if (l->frame->frames.count)
        twi_copy_sort(l->inside.items, l->inside.count);
    return TW_OK;
}

static tw_status check_merge(const looping *l, const tw_node *merge)
{
    const tw_node *enter = merge->inputs[0].node;
    if (!merge->backward.node && merge->backward.index > 0)
        return twi_fail_unknown(l->c->p->request->graph->nodes.items[merge->backward.index - 1], l->c->p->error);
    if (!merge->backward.node || !twi_op_is(merge->backward.node->op, TWI_NEXT))
        return fail(l, merge->name, "has no NextIteration");
    if (!twi_op_is(enter->op, TWI_ENTER) || merge->num_inputs != 2)
        return fail(l, merge->name, "is not a Merge of an Enter and a NextIteration");
    if (l->c->frames->of[merge->backward.node->id] != l->number)
        return fail(l, merge->backward.node->name, "leads back into a loop that it is not in");
    if (twi_output_is_reference((tw_output){(tw_node *)merge, 0}) || tw_output_dtype(merge->inputs[0]) == TW_RESOURCE)
        return fail(l, merge->name, "goes round with a variable itself, which is not supported");
    return TW_OK;
}

static bool is_way_round(const twi_copying *c, const tw_node *node)
{
    return twi_op_is(node->op, TWI_MERGE) && node->num_inputs &&
           (node->backward.node || twi_op_is(node->inputs[0].node->op, TWI_ENTER)) && c->of[node->id].needed;
}

static tw_status list_merges(looping *l)
{
    const twi_copying *c = l->c;
    tw_status status = TW_OK;
    for (int i = 0; i < l->frame->nodes.count && status == TW_OK; i++) {
        const tw_node *node = l->frame->nodes.items[i];
        if (!is_way_round(c, node))
            continue;
        status = check_merge(l, node);
        if (status == TW_OK && !(twi_push(&l->merges, node) && twi_push(&l->outside, node->inputs[0].node->inputs[0])))
            status = fail_memory(c);
    }
    return status;
}

/* Those that something may come of. */
static tw_status list_exits(looping *l)
{
    const twi_copying *c = l->c;
    bool fits = true;
    for (int i = 0; i < l->frame->exits.count && fits; i++) {
        const tw_node *exit = l->frame->exits.items[i];
        if (c->of[exit->id].needed && !twi_exit_is_dead(c->frames, exit))
            fits = twi_push(&l->exits, exit);
    }
    return fits ? TW_OK : fail_memory(c);
}

/* A condition's own name for its predicate is a round's node, so that all of the condition decides by the one value
 * that goes in, whichever of the two names it has it by. Behind a border there may be nothing but the name. */
static bool passes_predicate(const twi_copying *c, const tw_node *node)
{
    return twi_op_is(node->op, TWI_PASSES) && node->num_inputs == 1 && tw_output_dtype(node->inputs[0]) == TW_BOOL &&
           c->of[node->inputs[0].node->id].outputs;
}

static bool list_outputs_once(looping *l, const tw_node *from, unsigned search)
{
    twi_copying *c = l->c;
    bool fits = true;
    if (c->frames->of[from->id] != l->number || !c->frames->unchanging[from->id])
        return true;
    while (passes_predicate(c, from))
        from = from->inputs[0].node;
    if (!twi_copy_see(c, from, search))
        return true;
    for (int k = 0; k < from->num_outputs && fits; k++)
        fits = twi_push(&l->outside, ((tw_output){(tw_node *)from, k}));
    return fits;
}

/* What a node of the loop, or of one in it, takes of what does not change, or comes after: what is outside of the loop
 * is an order for it by an Enter, whose value nobody takes. */
static tw_status list_unchanging_of(looping *l, const tw_node *node, unsigned search)
{
    bool fits = true;
    for (int i = 0; i < node->num_inputs && fits; i++)
        fits = list_outputs_once(l, node->inputs[i].node, search);
    for (int i = 0; i < node->num_control_inputs && fits; i++)
        fits = list_outputs_once(l, node->control_inputs[i], search);
    return fits ? TW_OK : fail_memory(l->c);
}

static tw_status list_unchanging(looping *l)
{
    tw_status status = TW_OK;
    unsigned search = ++l->c->copies->searches;
    for (int i = 0; i < l->inside.count && status == TW_OK; i++)
        if (!is_hoisted(l, l->inside.items[i]))
            status = list_unchanging_of(l, l->inside.items[i], search);
    return status;
}

/* What the loop takes from outside and was made behind its first Exit is copied before it: no Exit leads there. What a
 * node takes that has been copied has been, too. */
static tw_status copy_outside(looping *l)
{
    twi_copying *c = l->c;
    tw_status status = TW_OK;
    TWI_ARRAY(const tw_node *) wanted = {0};
    unsigned search = ++c->copies->searches;
    int last = l->exit->id;
    bool fits = true;
    for (int i = l->inside.count - 1; i >= 0 && l->inside.items[i]->id > last && fits; i--)
        fits = !twi_copy_see(c, l->inside.items[i], search) || twi_push(&wanted, l->inside.items[i]);
    for (int next = 0; next < wanted.count && fits; next++) {
        const tw_node *node = wanted.items[next];
        for (int i = 0; i < node->num_inputs + node->num_control_inputs && fits; i++) {
            int control = i - node->num_inputs;
            const tw_node *from = control < 0 ? node->inputs[i].node : node->control_inputs[control];
            if (from->id > last && !c->of[from->id].copied && twi_copy_see(c, from, search))
                fits = twi_push(&wanted, from);
        }
    }
    if (!fits)
        status = fail_memory(c);
    twi_copy_sort(wanted.items, wanted.count);
    for (int i = 0; i < wanted.count && status == TW_OK; i++)
        status = twi_copy_once(c, wanted.items[i]);
    twi_array_free(&wanted);
    return status;
}

static tw_status check_frame(const looping *l)
{
    if (l->frame->depth > MOST_LOOPS)
        return twi_fail(l->c->p->error, TW_RESOURCE_EXHAUSTED, "loop '%s': more than %d loops lie in each other",
                        l->frame->name, MOST_LOOPS);
    if (!l->frame->cond)
        return fail(l, NULL, "has no LoopCond");
    if (l->frame->second_cond)
        return fail(l, l->frame->second_cond->name, "is its second LoopCond");
    return TW_OK;
}

/* ---- its plan ---------------------------------------------------------------------------------------------------- */

/* What the loop takes; a variable that it begins with is read. */
static tw_status list_values(looping *l)
{
    twi_copying *c = l->c;
    tw_status status = TW_OK;
    for (int i = 0; i < l->outside.count && status == TW_OK; i++) {
        tw_output output = l->outside.items[i];
        twi_value value = c->of[output.node->id].outputs[output.index];
        if (twi_copy_refers(c, output)) {
            status = twi_read_reference(c->p, value, twi_copy_writer(c, output), l->exit, NULL, 0, &value);
            if (status == TW_OK)
                twi_set_guard(value.node, c->guard);
        }
        if (status == TW_OK && !twi_push(&l->values, value))
            status = fail_memory(c);
    }
    return status;
}

/* The values that change come in by their Merges, the others as what they are. */
static bool list_feeds(looping *l)
{
    bool fits = true;
    for (int i = 0; i < l->outside.count && fits; i++) {
        twi_value value = l->values.items[i];
        bool changes = i < l->merges.count;
        tw_output inside = changes ? (tw_output){(tw_node *)l->merges.items[i], 0} : l->outside.items[i];
        twi_feed_shape feed = {.output = inside, .dtype = twi_dtype(value), .shape = twi_shape(value)};
        if (!changes)
            feed.value = twi_constant(value);
        fits = twi_push(&l->feeds, feed);
    }
    return fits;
}

static bool list_fetches(looping *l)
{
    bool fits = twi_push(&l->fetches, l->frame->cond->inputs[0]);
    for (int i = 0; i < l->merges.count && fits; i++)
        fits = twi_push(&l->fetches, l->merges.items[i]->backward);
    for (int i = 0; i < l->exits.count && fits; i++)
        fits = twi_push(&l->fetches, l->exits.items[i]->inputs[0]);
    for (int i = 0; i < l->feeds.count && fits; i++)
        fits = twi_push(&l->fetches, l->feeds.items[i].output);
    return fits;
}

/* The device that does all the work, or the first one. */
static int find_home(const looping *l)
{
    const twi_copying *c = l->c;
    int home = -1;
    for (int i = 0; i < l->inside.count; i++) {
        const tw_node *node = l->inside.items[i];
        int device = c->p->request->placement->devices[node->id];
        bool works = !twi_op_is(node->op, TWI_SWITCH | TWI_MERGE | TWI_ENTER | TWI_EXIT | TWI_NEXT | TWI_LOOP_COND |
                                              TWI_CONSTANT | TWI_PASSES);
        if (works)
            home = home == -1 || home == device ? device : -2;
    }
    if (c->p->request->alone)
        return c->p->request->home;
    return home < 0 ? 0 : home;
}

/* Whether one plan serves every round: values come back as they went in, and no shape is computed on the way. */
static bool is_steady(const looping *l, const twi_plan *plan)
{
    bool steady = !plan->border;
    for (int i = 0; i < l->merges.count && steady; i++) {
        const twi_port *next = &plan->fetches[1 + i];
        steady = !next->device || next->dtype == TW_VARIANT || tw_shape_equal(next->shape, l->feeds.items[i].shape);
    }
    return steady;
}

static bool is_elsewhere(const twi_planning *p, const twi_device *device)
{
    return device && !twi_same_task(device, p->request->devices->items[0]);
}

/* Whether a loop on several devices, whose step is the first one's, has some of another task. Where rounds have no plan
 * yet they may. */
static bool spans_tasks(const twi_planning *p, const twi_plan *round)
{
    bool spans = !round || round->depth > 0;
    if (spans)
        return true;
    for (int d = 0; d < round->num_lists && !spans; d++)
        spans = round->lists[d].count > 0 && is_elsewhere(p, round->lists[d].device);
    for (int i = 0; i < round->num_feeds && !spans; i++)
        spans = round->feeds[i].buffer && is_elsewhere(p, round->feeds[i].device);
    return spans;
}

/* What tasks say to each other in its rounds has channels that are no other run's, which lie behind those around it.
 * depth: of loops in a round. */
static void note_span(const twi_planning *p, twi_loop *loop, int depth)
{
    loop->spans = loop->device < 0 && !p->request->alone && p->request->devices->tasks > 1 &&
                  spans_tasks(p, loop->plan);
    loop->lane = loop->spans ? twi_lane_within(p->request->lane) : TWI_ALONE;
    if (loop->plan)
        loop->plan->lane = loop->lane;
    if (loop->spans && p->plan->depth < 1 + depth)
        p->plan->depth = 1 + depth;
}

/* Each round is planned when it comes (run/rounds.h): what it is cut of. */
static tw_status make_chained(looping *l, twi_loop *loop)
{
    twi_plan *plan = l->c->p->plan;
    twi_chained *chained = twi_arena_alloc(&plan->arena, sizeof *chained);
    int fed = l->feeds.count, fetches = 1 + l->merges.count + l->exits.count;
    twi_plan_destroy(loop->plan);
    loop->plan = NULL;
    loop->device = -1;
    if (!chained)
        return fail_memory(l->c);
    *chained = (twi_chained){
        .fed = twi_arena_alloc(&plan->arena, sizeof *chained->fed * (size_t)(fed + 1)),
        .fetches = twi_arena_copy(&plan->arena, l->fetches.items, sizeof *chained->fetches * (size_t)fetches),
        .known = twi_arena_alloc(&plan->arena, sizeof *chained->known * (size_t)(fed + 1)),
        .num_fed = fed,
        .num_fetches = fetches,
        .frame = l->number,
        .series = l->c->p->request->series ? l->c->p->request->series : &plan->series,
        .planner = l->c->p->request->planner,
    };
    if (!chained->fed || !chained->fetches || !chained->known)
        return fail_memory(l->c);
    for (int i = 0; i < fed; i++) {
        chained->fed[i] = l->feeds.items[i].output;
        chained->known[i] = l->feeds.items[i].value ? tw_tensor_retain(l->feeds.items[i].value) : NULL;
    }
    loop->chained = chained;
    tw_status status = TW_OK;
    int depth = 0;
    for (int i = 0; i < l->inside.count && status == TW_OK; i++) {
        const tw_node *node = l->inside.items[i];
        chained->ends = chained->ends || twi_may_end(node->op, &node->attrs, node->num_inputs);
        int within = l->c->frames->items.items[l->c->frames->of[node->id]].depth - l->frame->depth;
        depth = depth > within ? depth : within;
        if (twi_op_is(node->op, TWI_PUTS))
            status = twi_series_vary(l->c, node);
    }
    note_span(l->c->p, loop, depth);
    return status;
}

/* What is known of a list's elements has to hold in every round: what a round puts into it counts in the next. */
static bool learn_elements(looping *l, const twi_plan *plan)
{
    bool learned = false;
    for (int i = 0; i < l->merges.count; i++) {
        twi_feed_shape *feed = &l->feeds.items[i];
        const twi_port *next = &plan->fetches[1 + i];
        tw_shape both = next->device ? twi_join_elements(feed->shape, next->shape) : feed->shape;
        if (feed->dtype != TW_VARIANT || tw_shape_equal(feed->shape, both))
            continue;
        feed->shape = both;
        learned = true;
    }
    return learned;
}

static tw_status plan_round(looping *l, twi_loop **result)
{
    twi_copying *c = l->c;
    twi_plan *plan = c->p->plan;
    twi_request request = *c->p->request;
    int devices = request.devices->count, used = 0;
    twi_loop *loop = twi_alloc(sizeof *loop);
    if (!loop || !twi_push(&plan->loops, loop)) {
        twi_free(loop);
        return fail_memory(c);
    }
    *loop = (twi_loop){.num_changing = l->merges.count, .num_results = l->exits.count, .device = -1};
    loop->arenas = twi_alloc_array((size_t)devices, sizeof *loop->arenas);
    if (!loop->arenas || !list_feeds(l) || !list_fetches(l))
        return fail_memory(c);
    request.feeds = l->feeds.items;
    request.num_feeds = l->feeds.count;
    request.fetches = l->fetches.items;
    request.num_fetches = l->fetches.count;
    request.frames = c->frames;
    request.copies = c->copies;
    request.frame = l->number;
    request.home = find_home(l);
    request.num_changing = l->merges.count;
    request.soft_budget = 0;
    request.behind = NULL;
    request.lane = twi_lane_within(request.lane);
    request.series = request.series ? request.series : &plan->series;
    tw_status status = twi_plan_create(&request, &loop->plan, c->p->error);
    while (status == TW_OK && !loop->plan->border && learn_elements(l, loop->plan)) {
        twi_plan_destroy(loop->plan);
        loop->plan = NULL;
        status = twi_plan_create(&request, &loop->plan, c->p->error);
    }
    if (status != TW_OK)
        return status;
    *result = loop;
    if (!is_steady(l, loop->plan))
        return make_chained(l, loop);
    for (int d = 0; d < devices; d++)
        used += loop->plan->lists[d].count > 0;
    bool one = used <= 1 && (!used || loop->plan->lists[request.home].count);
    loop->device = one && loop->plan->depth == 0 ? request.home : -1;
    loop->owns_arenas = loop->device < 0;
    note_span(c->p, loop, loop->plan->depth);
    return TW_OK;
}

/* ---- its node ---------------------------------------------------------------------------------------------------- */

/* The user's node that makes what a round's node writes. */
static const tw_node *maker_of(twi_value handle)
{
    while (handle.node->num_inputs)
        handle = twi_in(handle.node, 0);
    return handle.node->origin;
}

/* Adds the handles of the variables that the round writes, each once. */
static bool list_changes(const looping *l, const twi_plan *round, twi_value *inputs, int most, int *count)
{
    int first = *count;
    for (int id = 0; id < round->region->nodes.count; id++) {
        const twi_node *node = round->region->nodes.items[id];
        for (int i = 0; i < node->num_inputs && node->op->roles; i++) {
            if (!twi_role_writes(twi_op_role(node->op, &node->attrs, i)) || twi_dtype(twi_in(node, i)) != TW_RESOURCE)
                continue;
            const tw_node *maker = maker_of(twi_in(node, i));
            twi_value handle = maker && l->c->of[maker->id].outputs ? l->c->of[maker->id].outputs[0] : (twi_value){0};
            bool known = !handle.node;
            for (int k = first; k < *count && !known; k++)
                known = twi_same(inputs[k], handle);
            if (!known && *count == most)
                return false;
            if (!known)
                inputs[(*count)++] = handle;
        }
    }
    return true;
}

/* Whether a node of the loop works on what is behind its inputs, or brings a variable's reference into the loop. */
static bool takes_handles(const looping *l, const tw_node *node)
{
    bool brings = twi_op_is(node->op, TWI_ENTER) && twi_copy_refers(l->c, node->inputs[0]);
    return node->op->roles || brings;
}

/* What rounds that have no plan yet work on: handles of the variables that they may write, then, as what the loop comes
 * after, who makes stacks, arrays and variables that they look at. */
static int list_handles(const looping *l, twi_value *handles, bool written)
{
    const twi_copying *c = l->c;
    int count = 0;
    for (int n = 0; n < l->inside.count; n++) {
        const tw_node *node = l->inside.items[n];
        for (int i = 0; i < node->num_inputs && takes_handles(l, node); i++) {
            bool writes = node->op->roles && twi_role_writes(twi_op_role(node->op, &node->attrs, i));
            const tw_node *maker = node->inputs[i].node;
            while (maker->num_inputs && (maker->op->makes == TWI_MAKES_NOTHING || maker->op->roles))
                maker = maker->inputs[0].node;
            const twi_value *row = is_in_loop(l, maker) ? NULL : c->of[maker->id].outputs;
            bool known = !row || !row[0].node || writes != written || twi_dtype(row[0]) != TW_RESOURCE;
            for (int k = 0; k < count && !known; k++)
                known = handles[k].node == row[0].node;
            if (!known)
                handles[count++] = written ? row[0] : twi_out(row[0].node, -1);
        }
    }
    return count;
}

static int count_handles(const looping *l)
{
    int count = 0;
    for (int i = 0; i < l->inside.count; i++)
        count += takes_handles(l, l->inside.items[i]) ? l->inside.items[i]->num_inputs : 0;
    return count;
}

/* The nodes that make what the round works on, variables among them: it comes after them, and who writes such a
 * variable later comes after the loop (order.c). */
static int list_makers(const looping *l, const twi_plan *round, twi_value *controls)
{
    int count = 0;
    for (int id = 0; id < round->region->nodes.count; id++) {
        const twi_node *node = round->region->nodes.items[id];
        bool makes = node->series || node->op->makes == TWI_MAKES_VARIABLE;
        const twi_value *row = makes && node->origin ? l->c->of[node->origin->id].outputs : NULL;
        if (row && row[0].node && l->c->frames->of[node->origin->id] != l->number)
            controls[count++] = twi_out(row[0].node, -1);
    }
    return count;
}

/* Whether the loop lies behind the border: it takes something whose shape is not known yet. */
static bool is_late(const looping *l)
{
    const twi_copying *c = l->c;
    bool late = false;
    for (int i = 0; i < l->values.count && !late; i++)
        late = (c->late && c->late[l->outside.items[i].node->id] && !twi_copy_is_fed(c, l->outside.items[i])) ||
               !twi_shape_is_settled(l->values.items[i]);
    return late;
}

/* All of it is behind the border then, but what was computed before it. Its results have no shape so far. */
static tw_status put_behind(looping *l, twi_node **made)
{
    twi_copying *c = l->c;
    int results = l->exits.count;
    tw_dtype *types = twi_arena_alloc(&c->region->arena, sizeof *types * (size_t)(results + 1));
    tw_shape *shapes = twi_arena_alloc(&c->region->arena, sizeof *shapes * (size_t)(results + 1));
    c->late = c->late ? c->late : twi_alloc((size_t)c->p->request->graph->nodes.count);
    if (!c->late || !types || !shapes)
        return fail_memory(c);
    c->unknown = true;
    c->cause = c->cause ? c->cause : l->exit;
    for (int i = 0; i < l->inside.count; i++)
        if (!is_hoisted(l, l->inside.items[i]))
            c->late[l->inside.items[i]->id] = true;
    for (int i = 0; i < results; i++) {
        types[i] = tw_output_dtype((tw_output){(tw_node *)l->exits.items[i], 0});
        shapes[i] = TW_UNKNOWN_SHAPE;
    }
    tw_attr attrs[] = {tw_attr_types("T", NULL, 0), tw_attr_types("U", types, results), tw_attr_int("N", 0),
                       tw_attr_shapes("shapes", shapes, results)};
    *made = twi_node_make(c->region, &(twi_wish){.op = twi_op_find("_While"),
                                                 .name = l->frame->name,
                                                 .rank = l->exit->order,
                                                 .attrs = attrs,
                                                 .num_attrs = 4});
    return twi_region_check(c->region, c->p->error);
}

/* What its ways in come after besides: so does the loop. Returns their number; NULL: to count them. */
static int list_before(const looping *l, twi_value *controls)
{
    int count = 0;
    for (int i = 0; i < l->frame->nodes.count; i++) {
        const tw_node *node = l->frame->nodes.items[i];
        bool enters = twi_op_is(node->op, TWI_ENTER) && l->c->of[node->id].needed;
        for (int k = 0; k < node->num_control_inputs && enters; k++) {
            twi_node *before = l->c->of[node->control_inputs[k]->id].node;
            if (before && controls)
                controls[count] = twi_out(before, -1);
            count += before != NULL;
        }
    }
    return count;
}

static int count_writes(const twi_plan *round)
{
    int count = 0;
    for (int id = 0; id < round->region->nodes.count; id++)
        count += round->region->nodes.items[id]->num_inputs;
    return count;
}

static tw_status make_node(looping *l, twi_loop *loop, twi_node **made)
{
    twi_copying *c = l->c;
    twi_arena *arena = &c->region->arena;
    bool chained = loop->chained;
    int count = 0, most = l->outside.count + (chained ? count_handles(l) : count_writes(loop->plan));
    int results = l->exits.count, spare = (chained ? most : loop->plan->region->nodes.count) + list_before(l, NULL);
    twi_value *inputs = twi_arena_alloc(arena, sizeof *inputs * (size_t)(most + spare + 1));
    tw_dtype *types = twi_arena_alloc(arena, sizeof *types * (size_t)(l->outside.count + results + 1));
    tw_shape *shapes = twi_arena_alloc(arena, sizeof *shapes * (size_t)(results + 1));
    if (!inputs || !types || !shapes)
        return fail_memory(c);
    for (; count < l->outside.count; count++) {
        inputs[count] = l->values.items[count];
        types[count] = twi_dtype(inputs[count]);
    }
    if (chained)
        count += list_handles(l, inputs + count, true);
    else
        list_changes(l, loop->plan, inputs, most, &count);
    for (int i = 0; i < results; i++) {
        const twi_port *port = chained ? NULL : &loop->plan->fetches[1 + loop->num_changing + i];
        types[l->outside.count + i] = tw_output_dtype((tw_output){(tw_node *)l->exits.items[i], 0});
        shapes[i] = chained        ? TW_UNKNOWN_SHAPE
                    : port->device ? port->shape
                                   : TW_SCALAR; /* of a loop that has no end nothing comes out */
    }
    tw_attr attrs[] = {tw_attr_types("T", types, l->outside.count),
                       tw_attr_types("U", types + l->outside.count, results),
                       tw_attr_int("N", count - l->outside.count), tw_attr_shapes("shapes", shapes, results)};
    int before = chained ? list_handles(l, inputs + count, false) : list_makers(l, loop->plan, inputs + count);
    before += list_before(l, inputs + count + before);
    *made = twi_node_make(c->region, &(twi_wish){.op = twi_op_find("_While"),
                                                 .name = l->frame->name,
                                                 .rank = l->exit->order,
                                                 .device = c->p->request->home,
                                                 .inputs = inputs,
                                                 .num_inputs = count + before,
                                                 .attrs = attrs,
                                                 .num_attrs = 4});
    if (!*made)
        return twi_region_check(c->region, c->p->error);
    (*made)->loop = loop;
    (*made)->device = loop->device < 0 ? 0 : loop->device;
    twi_set_guard(*made, c->guard);
    return twi_region_check(c->region, c->p->error);
}

/* Of rounds that are planned when they come: variables that they may give another shape, which what follows the loop
 * sees. */
static tw_status note_reshaped(looping *l)
{
    twi_copying *c = l->c;
    bool any = false;
    for (int i = 0; i < l->inside.count; i++) {
        const tw_node *node = l->inside.items[i];
        bool assigns = node->num_inputs > 1 && twi_op_role(node->op, &node->attrs, 0) == 'w';
        const tw_node *maker = assigns ? node->inputs[0].node : NULL;
        while (maker && maker->num_inputs && (maker->op->makes == TWI_MAKES_NOTHING || maker->op->roles))
            maker = maker->inputs[0].node;
        const twi_value *row = maker ? c->of[maker->id].outputs : NULL;
        if (!row || !row[0].node || !twi_is_growing(row[0].node->op, &row[0].node->attrs))
            continue;
        any = true;
        if (!twi_push(&c->reshaping, (twi_reshaping){NULL, row[0].node, twi_shape(row[0])}))
            return fail_memory(c);
    }
    if (any && !c->reshaped && !(c->reshaped = twi_alloc((size_t)c->p->request->graph->nodes.count)))
        return fail_memory(c);
    for (int i = 0; i < l->exits.count && any; i++)
        c->reshaped[l->exits.items[i]->id] = true;
    c->unknown = c->unknown || any;
    return TW_OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* What takes something of them is not planned. */
static tw_status map_dead_exits(const looping *l)
{
    tw_status status = TW_OK;
    for (int i = 0; i < l->frame->exits.count && status == TW_OK; i++) {
        const tw_node *exit = l->frame->exits.items[i];
        if (!l->c->of[exit->id].needed || !twi_exit_is_dead(l->c->frames, exit))
            continue;
        status = twi_copy_row(l->c, exit);
        l->c->of[exit->id].conditions = &twi_never;
        l->c->skipped = true;
    }
    return status;
}

static tw_status map_exits(looping *l, twi_node *made, bool never)
{
    twi_copying *c = l->c;
    for (int i = 0; i < l->exits.count; i++) {
        const tw_node *exit = l->exits.items[i];
        tw_status status = twi_copy_row(c, exit);
        if (status != TW_OK)
            return status;
        c->of[exit->id].conditions = c->of[l->exit->id].conditions;
        c->skipped |= never;
        if (never)
            continue;
        twi_copy_note(c, exit, made);
        if (!c->of[exit->id].outputs[0].node) /* not fed */
            c->of[exit->id].outputs[0] = twi_out(made, i);
    }
    for (int i = 0; i < l->frame->nodes.count && !never && c->p->plan->origins; i++)
        if (c->of[l->frame->nodes.items[i]->id].needed)
            c->p->plan->origins[l->frame->nodes.items[i]->id] = made;
    return TW_OK;
}

tw_status twi_copy_loop(twi_copying *c, const tw_node *exit)
{
    int number = c->frames->of[exit->inputs[0].node->id];
    looping l = {.c = c, .frame = &c->frames->items.items[number], .number = number, .exit = exit};
    twi_node *made = NULL;
    twi_loop *loop = NULL;
    bool never = false;
    tw_status status = TW_OK;
    if (c->looped[number])
        return TW_OK;
    c->looped[number] = true;
    TWI_TRY(list_inside(&l));
    TWI_TRY(copy_outside(&l));
    TWI_TRY(check_frame(&l));
    TWI_TRY(list_merges(&l));
    TWI_TRY(list_exits(&l));
    TWI_TRY(list_unchanging(&l));
    TWI_TRY(twi_find_loop_conditions(c, l.outside.items, l.outside.count, exit, &never));
    twi_node *guard = c->guard;
    if (!never)
        TWI_TRY(list_values(&l));
    bool late = !never && is_late(&l);
    if (late)
        TWI_TRY(put_behind(&l, &made));
    if (!never && !late)
        TWI_TRY(plan_round(&l, &loop));
    c->guard = guard;
    if (!never && !late)
        TWI_TRY(make_node(&l, loop, &made));
    TWI_TRY(map_exits(&l, made, never));
    if (loop && loop->chained)
        TWI_TRY(note_reshaped(&l));
    TWI_TRY(map_dead_exits(&l));
done:
    twi_array_free(&l.inside);
    twi_array_free(&l.merges);
    twi_array_free(&l.exits);
    twi_array_free(&l.outside);
    twi_array_free(&l.values);
    twi_array_free(&l.fetches);
    twi_array_free(&l.feeds);
    return status;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

void twi_loop_destroy(twi_loop *loop)
{
    if (loop->dispatchers)
        loop->close(loop->dispatchers);
    if (loop->chained && loop->chained->rounds)
        loop->chained->close(loop->chained->rounds);
    for (int i = 0; loop->chained && i < loop->chained->num_fed; i++)
        tw_tensor_release(loop->chained->known[i]);
    for (int d = 0; loop->owns_arenas && loop->plan && loop->arenas && d < loop->plan->num_lists; d++)
        twi_device_free(loop->plan->lists[d].device, loop->arenas[d], loop->plan->lists[d].arena_bytes);
    twi_plan_destroy(loop->plan);
    twi_free(loop->arenas);
    twi_free(loop);
}

void twi_loop_bind(twi_loop *loop, void *workspace)
{
    if (loop->chained)
        return;
    if (!loop->owns_arenas)
        loop->arenas[loop->device] = workspace;
    twi_plan_bind(loop->plan, loop->arenas);
}

tw_status twi_loop_hold(twi_loop *loop, tw_error *error)
{
    if (loop->chained)
        return TW_OK;
    tw_status status = twi_plan_hold(loop->plan, error);
    for (int d = 0; loop->owns_arenas && d < loop->plan->num_lists && status == TW_OK; d++) {
        const twi_list *list = &loop->plan->lists[d];
        if (list->arena_bytes && !loop->arenas[d])
            status =
                twi_device_alloc(list->device, list->arena_bytes, "the buffers of a loop", &loop->arenas[d], error);
    }
    return status;
}
