/* order.c - when things happen: reads of variables, and the final order of all lists.
 *
 * A read of a variable should cost nothing: its output is the variable's own memory. That is right as long as everybody
 * who looks at it runs before anybody who writes the variable, so such edges are added here. Where they would close a
 * circle (somebody needs the old value after the write), or where the value is fetched and must outlive the step, the
 * read makes a copy instead. Reads that the graph puts after a write see the new value and need nothing.
 *
 * A device that records (a card), by itself or with others, does so best when few things break the recording off. So
 * where one takes part, nodes are put into phases: even ones of what breaks a recording off (copies from elsewhere,
 * random streams), odd ones of what is recorded. A node comes in the first phase that fits behind what it needs; what
 * it needs from outside of the group that records together comes in an earlier phase, so that a recording waits for
 * others at its beginning only. Nodes of the same phase keep their order. */
#include "plan/stages.h"

static const twi_kernel shared_read = {"ReadVariableOp", "shared", 0, NULL, NULL, NULL};

typedef struct work {
    twi_planning *p;
    TWI_ARRAY(twi_node *) lookers; /* of one read: itself and all who look at its memory */
    TWI_ARRAY(twi_node *) passing; /* those whose output 0 is that memory */
    bool *looks, *passes;          /* [ids] whether a node is among them */
} work;

/* ---- reads ------------------------------------------------------------------------------------------------------- */

/* Whether the use of a handle writes the variable. */
static bool writes(const twi_edge *use)
{
    const twi_node *user = use->user;
    return user->op->roles && twi_role_writes(twi_op_role(user->op, &user->attrs, (int)(use - user->inputs)));
}

static bool add_looker(work *w, twi_node *node)
{
    bool known = w->looks[node->id];
    w->looks[node->id] = true;
    return known || twi_push(&w->lookers, node);
}

static bool add_passing(work *w, twi_node *node)
{
    bool known = w->passes[node->id];
    w->passes[node->id] = true;
    return known || twi_push(&w->passing, node);
}

/* What is fetched must keep its value to the end. False when out of memory. */
static bool find_lookers(work *w, twi_node *read, bool *fetched)
{
    bool fits = add_looker(w, read) && add_passing(w, read);
    *fetched = false;
    for (int i = 0; i < w->passing.count && fits; i++)
        for (const twi_edge *e = w->passing.items[i]->results[0].uses.first; e && fits; e = e->next) {
            *fetched = *fetched || e->user == read->region->end;
            if (e->user == read->region->end)
                continue;
            fits = add_looker(w, e->user);
            if (e == &e->user->inputs[0] && twi_task_shares(e->user->task))
                fits = add_passing(w, e->user) && fits;
        }
    return fits;
}

static void forget_lookers(work *w)
{
    for (int i = 0; i < w->lookers.count; i++)
        w->looks[w->lookers.items[i]->id] = w->passes[w->lookers.items[i]->id] = false;
    w->lookers.count = w->passing.count = 0;
}

/* Whether the writer comes before one who looks. */
static bool leads_to_looker(const work *w, const twi_node *writer)
{
    for (int i = 0; i < w->lookers.count; i++)
        if (w->lookers.items[i] != writer && twi_leads_to(writer, w->lookers.items[i]))
            return true;
    return false;
}

/* Calls `visit` for every writer of the variable that the read does not come after, until one says no. */
static bool each_later_writer(work *w, twi_node *read, bool (*visit)(work *w, twi_node *read, twi_node *writer))
{
    twi_value handle = twi_in(read, 0);
    bool goes_on = true;
    for (const twi_edge *e = twi_uses_of(handle)->first; e && goes_on; e = e->next)
        if (e->user != read && writes(e) && !twi_leads_to(e->user, read))
            goes_on = visit(w, read, e->user);
    return goes_on;
}

static bool may_come_last(work *w, twi_node *read, twi_node *writer)
{
    (void)read;
    return !leads_to_looker(w, writer);
}

static bool put_after_lookers(work *w, twi_node *read, twi_node *writer)
{
    (void)read;
    for (int i = 0; i < w->lookers.count; i++)
        if (w->lookers.items[i] != writer && !twi_add_control(writer, w->lookers.items[i]))
            return false;
    return true;
}

static bool put_after_read(work *w, twi_node *read, twi_node *writer)
{
    (void)w;
    return twi_add_control(writer, read);
}

/* Each of two who write what they look at would have to come before the other. */
static bool has_two_writing_lookers(const work *w, twi_value handle)
{
    const twi_node *first = NULL;
    bool two = false;
    for (const twi_edge *e = twi_uses_of(handle)->first; e && !two; e = e->next)
        if (writes(e) && w->looks[e->user->id]) {
            two = first && first != e->user;
            first = e->user;
        }
    return two;
}

/* One read against all writers of its variable: shares when that is safe, and adds the order that makes it so. */
static tw_status order_read(work *w, twi_node *read)
{
    bool fetched;
    if (!find_lookers(w, read, &fetched))
        return twi_fail_memory(w->p->error, "ordering a plan");
    bool shares = !fetched && !has_two_writing_lookers(w, twi_in(read, 0)) && each_later_writer(w, read, may_come_last);
    bool ordered = each_later_writer(w, read, shares ? put_after_lookers : put_after_read);
    forget_lookers(w);
    if (!ordered && twi_region_check(read->region, w->p->error) == TW_OK)
        return twi_fail(w->p->error, TW_INTERNAL, "'%s' depends on itself", read->name);
    if (shares) {
        if (read->task->kernel->release && !read->task->borrows)
            read->task->kernel->release(read->task->state);
        read->task->kernel = &shared_read;
    }
    return read->region->error.status;
}

/* Whoever writes a variable that a loop's rounds look at comes after the loop, unless the loop comes after him. */
static tw_status order_loop(twi_node *loop, tw_error *error)
{
    for (int i = 0; i < loop->num_controls; i++) {
        const twi_node *variable = loop->controls[i]->node;
        if (variable->op->makes != TWI_MAKES_VARIABLE)
            continue;
        for (const twi_edge *e = variable->results[0].uses.first; e; e = e->next)
            if (e->user != loop && writes(e) && !twi_leads_to(e->user, loop) && !twi_add_control(e->user, loop))
                return twi_region_check(loop->region, error);
    }
    return TW_OK;
}

/* Who works on a variable to which a loop may give another shape comes before it: what the graph puts behind it is
 * behind a border, too. Only rounds that are planned when they come have the variable as it is then. */
static tw_status order_growing(twi_node *loop, tw_error *error)
{
    for (int i = 0; i < loop->num_inputs && loop->loop->chained; i++) {
        const twi_node *variable = loop->inputs[i].node;
        if (!twi_is_growing(variable->op, &variable->attrs))
            continue;
        for (const twi_edge *e = variable->results[0].uses.first; e; e = e->next) {
            bool works = e->user->op->roles && !(e->user->loop && e->user->loop->chained);
            if (works && !twi_leads_to(e->user, loop) && !twi_add_control(loop, e->user))
                return twi_region_check(loop->region, error);
        }
    }
    return TW_OK;
}

/* ---- phases ------------------------------------------------------------------------------------------------------ */

static int phase_of(const twi_planning *p, const twi_node *node)
{
    int phase = 0, group = p->groups[node->device];
    bool records = group >= 0, breaks = twi_breaks_recording(p, node);
    for (int i = 0; i < twi_num_dependencies(node); i++) {
        const twi_node *before = twi_dependency(node, i)->node;
        bool crosses = records && !breaks && p->groups[before->device] != group;
        if (before->task->phase + crosses > phase)
            phase = before->task->phase + crosses;
    }
    return records && (phase % 2 == 0) != breaks ? phase + 1 : phase;
}

static tw_status sort_by_phase(twi_planning *p)
{
    twi_region *region = p->rewriting.region;
    int64_t *phases = twi_alloc_array((size_t)region->nodes.count + 1, sizeof *phases);
    if (!phases)
        return twi_fail_memory(p->error, "ordering a plan");
    for (int id = 0; id < region->nodes.count; id++)
        phases[id] = region->nodes.items[id]->task->phase = phase_of(p, region->nodes.items[id]);
    tw_status status = twi_region_sort_by(region, phases, NULL, p->error);
    twi_free(phases);
    return status;
}

static bool any_records(const twi_planning *p)
{
    bool any = false;
    for (int d = 0; d < p->request->devices->count; d++)
        any = any || p->groups[d] >= 0;
    return any;
}

/* Who meets the others somewhere must come there in the order of the graph. */
static bool any_meets(const twi_region *region)
{
    bool any = false;
    for (int id = 0; id < region->nodes.count; id++)
        any = any || twi_has_trait(region->nodes.items[id], TWI_COLLECTIVE);
    return any;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

tw_status twi_order(twi_planning *p)
{
    twi_region *region = p->rewriting.region;
    tw_status status = TW_OK;
    work w = {.p = p, .looks = twi_alloc((size_t)region->nodes.count + 1),
              .passes = twi_alloc((size_t)region->nodes.count + 1)};
    int *positions = twi_alloc_array((size_t)p->request->devices->count, sizeof *positions);
    if (!w.looks || !w.passes || !positions)
        TWI_LEAVE(twi_fail_memory(p->error, "ordering a plan"));
    for (int id = 0; id < region->nodes.count; id++)
        if (twi_has_trait(region->nodes.items[id], TWI_READ))
            TWI_TRY(order_read(&w, region->nodes.items[id]));
    for (int id = 0; id < region->nodes.count; id++)
        if (region->nodes.items[id]->loop) {
            TWI_TRY(order_growing(region->nodes.items[id], p->error));
            TWI_TRY(order_loop(region->nodes.items[id], p->error));
        }
    TWI_TRY(twi_region_sort(region, p->error));
    if (!any_meets(region))
        TWI_TRY(twi_overlap(p));
    if (any_records(p))
        TWI_TRY(sort_by_phase(p));
    else if (!any_meets(region))
        TWI_TRY(twi_put_beside(p));
    for (int id = 0; id < region->nodes.count; id++) {
        const twi_node *node = region->nodes.items[id];
        twi_task *task = node->task;
        task->position = positions[node->device]++;
        task->first = task->position - task->seat;
        task->last = task->first + (task->seats ? task->seats - 1 : 0);
    }
done:
    twi_array_free(&w.lookers);
    twi_array_free(&w.passing);
    twi_free(w.looks);
    twi_free(w.passes);
    twi_free(positions);
    return status;
}
