/* order.c - when things happen: reads of variables, and the final order of all lists.
 *
 * A read of a variable should cost nothing: its output is the variable's own memory. That is right as long as everybody
 * who looks at it runs before anybody who writes the variable, so such edges are added here. Where they would close a
 * circle (somebody needs the old value after the write), or where the value is fetched and must outlive the step, the
 * read makes a copy instead. Reads that the graph puts after a write see the new value and need nothing.
 *
 * A device that records (a card), by itself or with others, does so best when few things break the recording off. So
 * where one takes part, nodes are put into phases: even ones of what breaks a recording off (copies from elsewhere,
 * random streams), odd ones of what is recorded. A node comes in the first phase that fits behind what it needs; what it
 * needs from outside of the group that records together comes in an earlier phase, so that a recording waits for others
 * at its beginning only. Nodes of the same phase keep their order. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

static const twi_kernel shared_read = {"ReadVariableOp", "shared", 0, NULL, NULL, NULL};

static bool is(const tw_node *node, const char *op)
{
    return strcmp(node->op->name, op) == 0;
}

/* Uses of a handle that leave the variable as it is. */
static bool only_reads(const tw_node *user)
{
    return is(user, "ReadVariableOp") || is(user, "VarIsInitializedOp") || is(user, "VariableShape") ||
           is(user, "ResourceGather");
}

static bool uses_handle(const tw_node *node, const tw_node *handle)
{
    for (int i = 0; i < node->num_inputs; i++)
        if (node->inputs[i].node == handle)
            return true;
    return false;
}

/* reached[id] for everything that comes after `from`; the graph is sorted. */
static void mark_after(const tw_graph *graph, const tw_node *from, bool *reached)
{
    memset(reached, 0, (size_t)graph->nodes.count * sizeof *reached);
    reached[from->id] = true;
    for (int id = from->id + 1; id < graph->nodes.count; id++) {
        const tw_node *node = graph->nodes.items[id];
        for (int i = 0; i < node->num_inputs && !reached[id]; i++)
            reached[id] = reached[node->inputs[i].node->id];
        for (int i = 0; i < node->num_control_inputs && !reached[id]; i++)
            reached[id] = reached[node->control_inputs[i]->id];
    }
}

/* looks[id] for the read itself, all who look at its memory, and the nodes in between that only pass it on. */
static bool mark_lookers(const twi_rewriting *r, const tw_node *read, bool *looks, bool *passes)
{
    int n = r->graph->nodes.count;
    memset(looks, 0, (size_t)n * sizeof *looks);
    memset(passes, 0, (size_t)n * sizeof *passes);
    passes[read->id] = looks[read->id] = true;
    for (int id = read->id + 1; id < n; id++) {
        const tw_node *node = r->graph->nodes.items[id];
        for (int i = 0; i < node->num_inputs; i++)
            if (passes[node->inputs[i].node->id]) {
                looks[id] = true;
                passes[id] = passes[id] || (i == 0 && twi_task_shares(node->task));
            }
    }
    for (int i = 0; i < r->num_fetches; i++)
        if (r->fetches[i].index >= 0 && passes[r->fetches[i].node->id])
            return false; /* fetched: must keep its value to the end */
    return true;
}

typedef struct work {
    twi_planning *p;
    bool *after_write, *looks, *passes;
} work;

static bool writes(const tw_node *node, const tw_node *handle)
{
    return uses_handle(node, handle) && !only_reads(node);
}

/* Each of two who write what they look at would have to come before the other. */
static bool has_two_writing_lookers(const work *w, const tw_graph *graph, const tw_node *handle)
{
    int count = 0;
    for (int id = 0; id < graph->nodes.count; id++)
        count += w->looks[id] && writes(graph->nodes.items[id], handle);
    return count > 1;
}

/* One read against all writers of its variable: shares when that is safe, and adds the order that makes it so. */
static tw_status order_read(work *w, tw_node *read, tw_node *handle)
{
    twi_rewriting *r = &w->p->rewriting;
    tw_graph *graph = r->graph;
    bool resort = false;
    bool may_share = mark_lookers(r, read, w->looks, w->passes) && !has_two_writing_lookers(w, graph, handle);
    for (int pass = 0; pass < 2; pass++) /* first ask, then add edges */
        for (int id = 0; id < graph->nodes.count; id++) {
            tw_node *writer = graph->nodes.items[id];
            if (!writes(writer, handle))
                continue;
            mark_after(graph, writer, w->after_write);
            if (w->after_write[read->id])
                continue; /* this read is of the new value */
            for (int k = 0; k < graph->nodes.count; k++) {
                if (!w->looks[k] || k == id)
                    continue;
                if (pass == 0)
                    may_share = may_share && !w->after_write[k];
                else if (may_share || k == read->id) {
                    twi_rewrite_add_control(r, writer, graph->nodes.items[k]);
                    resort = resort || k > id;
                }
            }
        }
    if (may_share) {
        if (read->task->kernel->release)
            read->task->kernel->release(read->task->prepare.state);
        read->task->kernel = &shared_read;
    }
    return resort ? twi_rewrite_clean(r, w->p->error) : TW_OK;
}

/* ---- phases -------------------------------------------------------------------------------------------------------- */

static int phase_of(const twi_planning *p, const tw_node *node)
{
    int phase = 0, group = p->groups[node->assigned];
    bool records = group >= 0, breaks = twi_breaks_recording(p, node);
    for (int i = 0; i < node->num_inputs + node->num_control_inputs; i++) {
        const tw_node *before =
            i < node->num_inputs ? node->inputs[i].node : node->control_inputs[i - node->num_inputs];
        bool crosses = records && !breaks && p->groups[before->assigned] != group;
        if (before->task->phase + crosses > phase)
            phase = before->task->phase + crosses;
    }
    return records && (phase % 2 == 0) != breaks ? phase + 1 : phase;
}

static tw_status sort_by_phase(twi_planning *p)
{
    const tw_graph *graph = p->rewriting.graph;
    int64_t *phases = twi_alloc_array((size_t)graph->nodes.count + 1, sizeof *phases);
    if (!phases)
        return twi_fail_memory(p->error, "ordering a plan");
    for (int id = 0; id < graph->nodes.count; id++)
        phases[id] = graph->nodes.items[id]->task->phase = phase_of(p, graph->nodes.items[id]);
    tw_status status = twi_sort_by(p, phases);
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
static bool any_meets(const tw_graph *graph)
{
    bool any = false;
    for (int id = 0; id < graph->nodes.count; id++)
        any = any || twi_attr_find(&graph->nodes.items[id]->attrs, "_members");
    return any;
}

/* ---- all of it ----------------------------------------------------------------------------------------------------- */

typedef struct keyed {
    int64_t key;
    tw_node *node;
} keyed;

static int by_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->node->id > y->node->id) - (x->node->id < y->node->id);
}

tw_status twi_sort_by(twi_planning *p, const int64_t *keys)
{
    tw_graph *graph = p->rewriting.graph;
    int count = graph->nodes.count;
    keyed *sorted = twi_alloc_array((size_t)count + 1, sizeof *sorted);
    if (!sorted)
        return twi_fail_memory(p->error, "ordering a plan");
    for (int id = 0; id < count; id++)
        sorted[id] = (keyed){keys[id], graph->nodes.items[id]};
    qsort(sorted, (size_t)count, sizeof *sorted, by_key);
    for (int id = 0; id < count; id++) {
        graph->nodes.items[id] = sorted[id].node;
        sorted[id].node->id = id;
    }
    twi_free(sorted);
    return TW_OK;
}

tw_status twi_order(twi_planning *p)
{
    tw_graph *graph = p->rewriting.graph;
    size_t n = (size_t)graph->nodes.count + 1;
    tw_status status = TW_OK;
    int count = 0;
    work w = {p, twi_alloc(n), twi_alloc(n), twi_alloc(n)};
    tw_node **reads = twi_alloc_array(n, sizeof *reads); /* ids change when the graph is sorted again */
    int *positions = twi_alloc_array((size_t)p->request->devices->count, sizeof *positions);
    if (!w.after_write || !w.looks || !w.passes || !reads || !positions)
        TWI_TRY(twi_fail_memory(p->error, "ordering a plan"));
    for (int id = 0; id < graph->nodes.count; id++)
        if (is(graph->nodes.items[id], "ReadVariableOp"))
            reads[count++] = graph->nodes.items[id];
    for (int i = 0; i < count; i++)
        TWI_TRY(order_read(&w, reads[i], reads[i]->inputs[0].node));
    TWI_TRY(twi_rewrite_clean(&p->rewriting, p->error));
    if (!any_meets(graph))
        TWI_TRY(twi_overlap(p));
    if (any_records(p))
        TWI_TRY(sort_by_phase(p));
    for (int id = 0; id < graph->nodes.count; id++) {
        tw_node *node = graph->nodes.items[id];
        node->task->position = positions[node->assigned]++;
    }
done:
    twi_free(w.after_write);
    twi_free(w.looks);
    twi_free(w.passes);
    twi_free(reads);
    twi_free(positions);
    return status;
}
