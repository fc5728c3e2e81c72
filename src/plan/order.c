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
 * others at its beginning only. Nodes of the same phase keep their order.
 *
 * What takes from a queue or an accumulator may wait for another run, and that for what this one has still to do, as
 * the workers of a SyncReplicasOptimizer that are in one graph do: each waits for a token that comes of the gradients
 * of all. A list goes on with nothing else meanwhile. So such a node begins a phase behind all that needs none. */
#include "plan/stages.h"

#include <stdlib.h>

static const twi_kernel shared_read = {"ReadVariableOp", "shared", 0, NULL, NULL, NULL};

/* One who writes a variable. */
typedef struct writer {
    twi_node *node; /* NULL: there are no more of the variable */
    int run;        /* the first of some each of which comes after the one before: how many; 0: another one of them */
} writer;

typedef struct work {
    twi_planning *p;
    TWI_ARRAY(writer) writers; /* of each variable that is read, in an order in which they may run */
    int *writers_of;           /* [ids] of what gives handles: where in `writers` + 1; 0: not listed so far */
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

static int by_place(const void *a, const void *b)
{
    const writer *x = a, *y = b;
    return (x->node->place > y->node->place) - (x->node->place < y->node->place);
}

/* Where the writers of the variable begin; -1: out of memory. */
static int list_writers(work *w, twi_value handle)
{
    int *at = &w->writers_of[handle.node->id], begin = w->writers.count;
    bool fits = true;
    if (*at && handle.index == 0)
        return *at - 1;
    for (const twi_edge *e = twi_uses_of(handle)->first; e && fits; e = e->next)
        if (writes(e))
            fits = twi_push(&w->writers, (writer){e->user, 0});
    int count = w->writers.count - begin;
    if (!fits || !twi_push(&w->writers, (writer){NULL, 0}))
        return -1;
    writer *list = w->writers.items + begin;
    qsort(list, (size_t)count, sizeof *list, by_place);
    for (int i = 0, first = 0; i < count; i++) {
        if (i > 0 && !twi_leads_to(list[i - 1].node, list[i].node))
            first = i;
        list[first].run++;
    }
    *at = handle.index == 0 ? begin + 1 : 0;
    return begin;
}

static bool comes_before(const writer *writer, const twi_node *read, bool in_the_list)
{
    return in_the_list ? writer->node->place < read->place : twi_leads_to(writer->node, read);
}

/* How many of a run's first writers come before the read, which all that they come after do too. */
static int count_before(const writer *run, int count, const twi_node *read, bool in_the_list)
{
    int before = 0, behind = count;
    while (before < behind) {
        int middle = before + (behind - before) / 2;
        if (comes_before(&run[middle], read, in_the_list))
            before = middle + 1;
        else
            behind = middle;
    }
    return before;
}

/* The first of a run of writers that the read does not come after; `count`: there is none. Mostly it is the first that
 * stands behind the read, and a look at its neighbour says so. */
static int find_later(const writer *run, int count, const twi_node *read)
{
    int near = count_before(run, count, read, true);
    int later = near && !twi_leads_to(run[near - 1].node, read) ? count_before(run, near - 1, read, false) : near;
    return later + (later < count && run[later].node == read);
}

/* Calls `visit` for every writer of the variable, from `first` on, that the read does not come after, but for those that
 * come after another such one, until it says no. */
static bool each_later_writer(work *w, twi_node *read, int first,
                              bool (*visit)(work *w, twi_node *read, twi_node *writer))
{
    bool goes_on = true;
    for (const writer *run = w->writers.items + first; goes_on && run->node; run += run->run) {
        int later = find_later(run, run->run, read);
        if (later < run->run)
            goes_on = visit(w, read, run[later].node);
    }
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
    int count = 0;
    for (int i = 0; i < w->lookers.count; i++) {
        const twi_node *looker = w->lookers.items[i];
        bool both = false;
        for (int k = 0; looker->op->roles && k < looker->num_inputs && !both; k++) /* else it writes nothing */
            both = twi_same(twi_in(looker, k), handle) && writes(&looker->inputs[k]);
        count += both;
    }
    return count > 1;
}

/* One read against all writers of its variable: shares when that is safe, and adds the order that makes it so. */
static tw_status order_read(work *w, twi_node *read)
{
    bool fetched;
    int first = list_writers(w, twi_in(read, 0));
    if (first < 0 || !find_lookers(w, read, &fetched))
        return twi_fail_memory(w->p->error, "ordering a plan");
    bool shares = !fetched && !has_two_writing_lookers(w, twi_in(read, 0)) &&
                  each_later_writer(w, read, first, may_come_last);
    bool ordered = each_later_writer(w, read, first, shares ? put_after_lookers : put_after_read);
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

static bool takes(const twi_node *node)
{
    return twi_may_end(node->op, &node->attrs, node->num_inputs);
}

/* So may what puts into a queue that this run takes from as well, for it may be full: these keep their order. */
static bool may_wait_for_a_run(const twi_node *node)
{
    bool waits = takes(node), is_queues = false;
    for (int i = 0; i < node->num_inputs; i++) {
        if (twi_op_role(node->op, &node->attrs, i) != 'q')
            continue;
        is_queues = is_queues || twi_in(node, i).node->op->makes != TWI_MAKES_ITERATOR;
        for (const twi_edge *e = twi_uses_of(twi_in(node, i))->first; e && !waits; e = e->next)
            waits = takes(e->user);
    }
    return waits && is_queues;
}

static int phase_of(const twi_planning *p, const twi_node *node)
{
    enum { NEXT = 2 }; /* even or odd as before */
    int phase = 0, group = p->groups[node->device];
    bool records = group >= 0, breaks = twi_breaks_recording(p, node);
    for (int i = 0; i < twi_num_dependencies(node); i++) {
        const twi_node *before = twi_dependency(node, i)->node;
        bool crosses = records && !breaks && p->groups[before->device] != group;
        if (before->task->phase + crosses > phase)
            phase = before->task->phase + crosses;
    }
    phase += may_wait_for_a_run(node) ? NEXT : 0;
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

static bool any_waits(const twi_region *region)
{
    bool any = false;
    for (int id = 0; id < region->nodes.count && !any; id++)
        any = may_wait_for_a_run(region->nodes.items[id]);
    return any;
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
              .passes = twi_alloc((size_t)region->nodes.count + 1),
              .writers_of = twi_alloc_array((size_t)region->nodes.count + 1, sizeof *w.writers_of)};
    int *positions = twi_alloc_array((size_t)p->request->devices->count, sizeof *positions);
    if (!w.looks || !w.passes || !w.writers_of || !positions)
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
    bool records = any_records(p);
    if (records || any_waits(region))
        TWI_TRY(sort_by_phase(p));
    if (!records && !any_meets(region))
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
    twi_array_free(&w.writers);
    twi_free(w.writers_of);
    twi_free(positions);
    return status;
}
