/* report.c - what a plan says of itself: what became of the user's nodes, what crosses between devices, and how much of
 * that is owed to soft placement.
 *
 * A node of the user's graph is followed from its first copy through `became` to the node that does its work. A node
 * of the plan stands for the user's node that has its `order`. */
#include "plan/stages.h"

#include <string.h>

/* The node that does the work of a user's node; NULL: none. Ways of many steps are halved, so that asking for each node
 * of a long chain that was folded takes no time that grows with its square; those who ask hold the session's lock. */
static const twi_node *find_worker(const twi_plan *plan, int id)
{
    twi_node *node = id < plan->num_origins ? plan->origins[id] : NULL;
    while (node && node->gone) {
        if (node->became && node->became->gone)
            node->became = node->became->became;
        node = node->became;
    }
    return node;
}

/* A copy that moves bytes. */
static bool crosses(const twi_node *node)
{
    return twi_has_trait(node, TWI_COPY) && !twi_task_shares(node->task);
}

static int64_t bytes_of(const twi_node *copy)
{
    return (int64_t)copy->task->operands[copy->num_inputs].bytes;
}

/* ---- one node -------------------------------------------------------------------------------------------------- */

static tw_fate fate_of(const twi_plan *plan, int id, const twi_node *worker)
{
    if (plan->border && id < plan->border->num_done && plan->border->late[id])
        return TW_FATE_LATER;
    if (!worker)
        return id < plan->num_origins && plan->origins[id] ? TW_FATE_DROPPED : TW_FATE_UNPLANNED;
    if (twi_has_trait(worker, TWI_FEED))
        return TW_FATE_FED;
    if (twi_has_trait(worker, TWI_CONSTANT))
        return TW_FATE_CONSTANT;
    if (worker != plan->origins[id])
        return TW_FATE_JOINED;
    return worker->task->kernel && worker->task->kernel->run ? TW_FATE_STEP : TW_FATE_FREE;
}

/* What runs for the node; NULL: nothing does. */
static const char *kernel_of(const twi_node *node)
{
    const twi_kernel *kernel = node->task->kernel;
    return kernel && kernel->run ? kernel->name : NULL;
}

static void add_crossing(const twi_plan *plan, const twi_node *copy, bool arrives, tw_explanation *e)
{
    const twi_node *from = copy->inputs[0].node;
    e->crossings[e->num_crossings++] = (tw_crossing){
        .tensor = from->name,
        .from = plan->lists[from->device].device->text,
        .to = plan->lists[copy->device].device->text,
        .bytes = bytes_of(copy),
        .arrives = arrives,
    };
    e->crossing_bytes += bytes_of(copy);
}

/* Calls add_crossing() for what arrives at the node and what leaves it, each once; with crossings NULL it only
 * counts. */
static int list_crossings(const twi_plan *plan, const twi_node *worker, tw_explanation *e)
{
    int count = 0;
    for (int i = 0; i < worker->num_inputs; i++) {
        const twi_node *copy = worker->inputs[i].node;
        bool first = crosses(copy) && twi_uses_of(twi_out(copy, 0))->first;
        for (int k = 0; k < i && first; k++)
            first = worker->inputs[k].node != copy;
        count += first;
        if (first && e->crossings)
            add_crossing(plan, copy, true, e);
    }
    for (int i = 0; i < worker->num_results; i++)
        for (const twi_edge *use = worker->results[i].uses.first; use; use = use->next) {
            count += crosses(use->user);
            if (e->crossings && crosses(use->user))
                add_crossing(plan, use->user, false, e);
        }
    return count;
}

tw_status twi_plan_explain(const twi_plan *plan, const tw_node *node, twi_arena *arena, tw_explanation *e,
                           tw_error *error)
{
    const twi_node *worker = find_worker(plan, node->id);
    e->fate = fate_of(plan, node->id, worker);
    if (!worker)
        return TW_OK;
    e->became = worker->name;
    e->became_op = worker->op->name;
    e->kernel = kernel_of(worker);
    e->crossings = NULL;
    e->crossings = twi_arena_alloc(arena, sizeof *e->crossings * (size_t)list_crossings(plan, worker, e));
    if (!e->crossings)
        return twi_fail_memory(error, "explaining a node");
    list_crossings(plan, worker, e);
    return TW_OK;
}

/* ---- all nodes ------------------------------------------------------------------------------------------------- */

static tw_fate fate_in_plan(const twi_node *node, const char *kernel)
{
    tw_fate fate = kernel || crosses(node) ? TW_FATE_STEP : TW_FATE_FREE;
    if (twi_has_trait(node, TWI_FEED))
        fate = TW_FATE_FED;
    else if (twi_has_trait(node, TWI_CONSTANT))
        fate = TW_FATE_CONSTANT;
    return fate;
}

/* Of what a step makes; variables behind handles are not made by it. */
static int64_t made_bytes(const twi_node *node)
{
    int64_t bytes = 0;
    for (int i = 0; i < node->num_results; i++)
        if (node->results[i].dtype != TW_RESOURCE && tw_shape_elements(twi_shape(twi_out(node, i))) > 0)
            bytes += tw_shape_elements(twi_shape(twi_out(node, i))) * (int64_t)tw_dtype_size(node->results[i].dtype);
    return bytes;
}

/* The memory of a variable. */
static int64_t variable_bytes(const twi_resource *variable)
{
    int64_t elements = variable && variable->device ? tw_shape_elements(variable->shape) : 0;
    return elements > 0 ? elements * (int64_t)tw_dtype_size(variable->dtype) : 0;
}

static bool takes_again(const twi_node *node, int input)
{
    for (int i = 0; i < input; i++)
        if (twi_same(twi_in(node, i), twi_in(node, input)))
            return true;
    return false;
}

/* What passes between a node that runs and memory, if it goes over everything once. What is known on the host, such as
 * sizes, kernels have with them. */
static void count_moved(const twi_node *node, int64_t *read, int64_t *written)
{
    const twi_operand *operands = node->task->operands;
    for (int i = 0; i < node->num_inputs; i++) {
        const twi_operand *input = &operands[i];
        char role = twi_op_role(node->op, &node->attrs, i);
        if (takes_again(node, i))
            continue;
        if (input->dtype == TW_RESOURCE) {
            *read += twi_role_reads(role) ? variable_bytes(input->resource) : 0;
            *written += twi_role_writes(role) ? variable_bytes(input->resource) : 0;
        } else if (!input->value)
            *read += (int64_t)input->bytes;
    }
    for (int i = 0; i < node->num_results; i++)
        *written += (int64_t)operands[node->num_inputs + i].bytes;
}

/* False when out of memory. */
static bool list_node(const twi_plan *plan, twi_placement *placement, const twi_node *node, twi_arena *arena,
                      tw_planned_node *listed)
{
    const char *kernel = kernel_of(node), *name = twi_arena_strdup(arena, node->name);
    tw_fate fate = fate_in_plan(node, kernel);
    int *inputs = twi_arena_alloc(arena, sizeof *inputs * (size_t)node->num_inputs);
    const char *why =
        node->origin && fate == TW_FATE_STEP && !crosses(node) ? twi_placement_why(placement, node->origin) : NULL;
    if (why)
        why = twi_arena_strdup(arena, why);
    if (!name || (!inputs && node->num_inputs))
        return false;
    for (int i = 0; i < node->num_inputs; i++)
        inputs[i] = node->inputs[i].node->id;
    *listed = (tw_planned_node){.name = name,
                                .op = node->op->name,
                                .fate = fate,
                                .device = plan->lists[node->device].device->text,
                                .kernel = kernel,
                                .inputs = inputs,
                                .num_inputs = node->num_inputs,
                                .bytes = fate == TW_FATE_FREE ? 0 : made_bytes(node),
                                .why = why};
    if (fate == TW_FATE_STEP)
        count_moved(node, &listed->read, &listed->written);
    return true;
}

bool twi_plan_list_nodes(const twi_plan *plan, twi_placement *placement, twi_arena *arena, tw_planned_node *nodes)
{
    bool kept = true;
    for (int i = 0; i < plan->region->nodes.count && kept; i++)
        kept = list_node(plan, placement, plan->region->nodes.items[i], arena, &nodes[i]);
    return kept;
}

/* ---- what soft placement costs --------------------------------------------------------------------------------- */

/* The moved node of the user's graph that a node of the plan stands for; NULL: it was not moved, or the plan's node is
 * one that a rewrite has put elsewhere. */
static const tw_node *moved_node(twi_placement *placement, const twi_node *node)
{
    const tw_node *origin = node->rank >= 0 ? node->origin : NULL;
    bool same_place = origin && placement->devices[origin->id] == node->device;
    return same_place && twi_is_moved(placement, origin) ? origin : NULL;
}

static bool asked_for(const tw_node *moved, const twi_device *device)
{
    twi_device_name name;
    return twi_device_name_parse(moved->device, &name, NULL) == TW_OK && twi_device_name_matches(&name, &device->name);
}

/* The moved node without whose move nothing would cross from a to b: they would be on one device. */
static const tw_node *culprit(const twi_plan *plan, twi_placement *placement, const twi_node *a, const twi_node *b)
{
    const tw_node *moved_a = moved_node(placement, a), *moved_b = moved_node(placement, b);
    if (moved_a && moved_b)
        return strcmp(moved_a->device, moved_b->device) == 0 ? moved_a : NULL;
    if (moved_a)
        return asked_for(moved_a, plan->lists[b->device].device) ? moved_a : NULL;
    return moved_b && asked_for(moved_b, plan->lists[a->device].device) ? moved_b : NULL;
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

void twi_plan_charge(const twi_plan *plan, twi_placement *placement, tw_moves *moves)
{
    moves->planned = true;
    for (int id = 0; id < plan->region->nodes.count && moves->num_nodes; id++) {
        const twi_node *copy = plan->region->nodes.items[id];
        const tw_node *why = NULL;
        if (!crosses(copy))
            continue;
        for (const twi_edge *e = copy->results[0].uses.first; e && !why; e = e->next)
            if (e->user != plan->region->end)
                why = culprit(plan, placement, copy->inputs[0].node, e->user);
        if (why)
            charge(moves, why, bytes_of(copy));
    }
}
