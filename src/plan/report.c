/* report.c - what a plan says of itself: what became of the user's nodes, what crosses between devices, and how much of
 * that is owed to soft placement.
 *
 * A node of the user's graph is followed from its first copy through `became` to the node that does its work. A node
 * of the plan stands for the user's node that has its `order`. */
#include "plan/plan.h"

#include <string.h>

static bool is(const tw_node *node, const char *op)
{
    return strcmp(node->op->name, op) == 0;
}

static bool is_in(const twi_plan *plan, const tw_node *node)
{
    return node->id < plan->graph->nodes.count && plan->graph->nodes.items[node->id] == node;
}

/* The node that does the work of a user's node; NULL: none. */
static const tw_node *find_worker(const twi_plan *plan, int id)
{
    const tw_node *node = id < plan->num_origins ? plan->origins[id] : NULL;
    while (node && !is_in(plan, node))
        node = node->became;
    return node;
}

/* A copy that moves bytes. */
static bool crosses(const tw_node *node)
{
    return is(node, "_Copy") && !twi_task_shares(node->task);
}

static int64_t bytes_of(const tw_node *copy)
{
    return (int64_t)copy->task->operands[copy->num_inputs].bytes;
}

static bool reads(const tw_node *node, const tw_node *from)
{
    for (int i = 0; i < node->num_inputs; i++)
        if (node->inputs[i].node == from)
            return true;
    return false;
}

/* ---- one node -------------------------------------------------------------------------------------------------- */

static tw_fate fate_of(const twi_plan *plan, int id, const tw_node *worker)
{
    if (!worker)
        return id < plan->num_origins && plan->origins[id] ? TW_FATE_DROPPED : TW_FATE_UNPLANNED;
    if (is(worker, "_Feed"))
        return TW_FATE_FED;
    if (is(worker, "Const"))
        return TW_FATE_CONSTANT;
    if (worker != plan->origins[id])
        return TW_FATE_JOINED;
    return worker->task->kernel && worker->task->kernel->run ? TW_FATE_STEP : TW_FATE_FREE;
}

tw_status twi_plan_explain(const twi_plan *plan, const tw_node *node, twi_arena *arena, tw_explanation *e,
                           tw_error *error)
{
    const tw_graph *graph = plan->graph;
    const tw_node *worker = find_worker(plan, node->id);
    e->fate = fate_of(plan, node->id, worker);
    if (!worker)
        return TW_OK;
    e->became = worker->name;
    e->became_op = worker->op->name;
    e->kernel = worker->task->kernel && worker->task->kernel->run ? worker->task->kernel->name : NULL;
    e->crossings = twi_arena_alloc(arena, sizeof *e->crossings * (size_t)graph->nodes.count);
    if (!e->crossings)
        return twi_fail_memory(error, "explaining a node");
    for (int id = 0; id < graph->nodes.count; id++) {
        const tw_node *copy = graph->nodes.items[id];
        if (!crosses(copy) || (copy->inputs[0].node != worker && !reads(worker, copy)))
            continue;
        const tw_node *from = copy->inputs[0].node;
        e->crossings[e->num_crossings++] = (tw_crossing){
            .tensor = from->name,
            .from = plan->lists[from->assigned].device->text,
            .to = plan->lists[copy->assigned].device->text,
            .bytes = bytes_of(copy),
            .arrives = from != worker,
        };
        e->crossing_bytes += bytes_of(copy);
    }
    return TW_OK;
}

/* ---- what soft placement costs --------------------------------------------------------------------------------- */

/* The moved node of the user's graph that a node of the plan stands for; NULL: it was not moved, or the plan's node is one
 * that a rewrite has put elsewhere. */
static const tw_node *moved_node(const tw_graph *graph, twi_placement *placement, const tw_node *node)
{
    bool known = node->order >= 0 && node->order < placement->count;
    const tw_node *origin = known ? graph->nodes.items[node->order] : NULL;
    bool same_place = origin && placement->devices[origin->id] == node->assigned;
    return same_place && twi_is_moved(placement, origin) ? origin : NULL;
}

static bool asked_for(const tw_node *moved, const twi_device *device)
{
    twi_device_name name;
    return twi_device_name_parse(moved->device, &name, NULL) == TW_OK && twi_device_name_matches(&name, &device->name);
}

/* The moved node without whose move nothing would cross from a to b: they would be on one device. */
static const tw_node *culprit(const twi_plan *plan, const tw_graph *graph, twi_placement *placement, const tw_node *a,
                              const tw_node *b)
{
    const tw_node *moved_a = moved_node(graph, placement, a), *moved_b = moved_node(graph, placement, b);
    if (moved_a && moved_b)
        return strcmp(moved_a->device, moved_b->device) == 0 ? moved_a : NULL;
    if (moved_a)
        return asked_for(moved_a, plan->lists[b->assigned].device) ? moved_a : NULL;
    return moved_b && asked_for(moved_b, plan->lists[a->assigned].device) ? moved_b : NULL;
}

static void charge(tw_moves *moves, const tw_node *moved, int64_t bytes)
{
    moves->bytes += bytes;
    for (int i = 0; i < moves->num_groups; i++)
        for (int k = 0; k < moves->groups[i].num_nodes; k++)
            if (moves->groups[i].nodes[k] == moved) {
                moves->groups[i].bytes += bytes;
                return;
            }
}

void twi_plan_charge(const twi_plan *plan, const tw_graph *user_graph, twi_placement *placement, tw_moves *moves)
{
    const tw_graph *graph = plan->graph;
    moves->planned = true;
    for (int id = 0; id < graph->nodes.count && moves->num_nodes; id++) {
        const tw_node *copy = graph->nodes.items[id], *why = NULL;
        if (!crosses(copy))
            continue;
        for (int k = 0; k < graph->nodes.count && !why; k++)
            if (reads(graph->nodes.items[k], copy))
                why = culprit(plan, user_graph, placement, copy->inputs[0].node, graph->nodes.items[k]);
        if (why)
            charge(moves, why, bytes_of(copy));
    }
}
