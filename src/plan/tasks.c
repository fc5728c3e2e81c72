/* tasks.c - a plan over the devices of several tasks: what each waits for of the others, and that all have planned the
 * same. */
#include "plan/stages.h"

#include "base/fingerprint.h"
#include "base/hash.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "device/tasks.h"

#include <stdio.h>
#include <string.h>

bool twi_step_needs(const twi_plan *plan, const twi_step *step, int task)
{
    bool needs = step->source && step->source->task == task;
    for (int i = 0; i < step->num_waits - step->num_sent && !needs; i++)
        needs = plan->lists[step->waits[i].device].device->task == task;
    return needs;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return twi_hash_mix(hash, twi_fingerprint(text, strlen(text)));
}

static uint64_t hash_node(const twi_node *node)
{
    const twi_kernel *kernel = node->task->kernel;
    uint64_t hash = hash_text(hash_text((uint64_t)node->device, node->name), node->op->name);
    hash = hash_text(hash, kernel ? kernel->name : "");
    hash = twi_hash_mix(hash, node->guard ? (uint64_t)node->guard->id + 1 : 0);
    for (int i = 0; i < node->num_inputs; i++)
        hash = twi_hash_mix(twi_hash_mix(hash, (uint64_t)node->inputs[i].node->id), (uint64_t)node->inputs[i].index);
    for (int i = 0; i < node->num_results; i++)
        hash = twi_hash_mix(twi_hash_mix(hash, (uint64_t)node->results[i].dtype),
                            node->task->operands[node->num_inputs + i].bytes);
    for (int i = 0; i < node->attrs.count; i++)
        hash = twi_attr_hash(hash, &node->attrs.items[i]);
    return twi_hash_mix(hash, (uint64_t)node->task->position);
}

/* What a constant is, as far as there is room, and what attributes are in all: else nodes that differ may look alike. */
static void describe_attrs(const twi_node *node, char *text, size_t size)
{
    enum { SHOWN = 4 };
    const tw_tensor *value = twi_attr_tensor(&node->attrs, "value");
    int64_t count = value && tw_tensor_dtype(value) != TW_STRING ? tw_tensor_elements(value) : 0;
    uint64_t hash = 0;
    size_t used = 0;
    for (int i = 0; i < node->attrs.count; i++)
        hash = twi_attr_hash(hash, &node->attrs.items[i]);
    for (int64_t i = 0; i < count && i < SHOWN && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%.9g", i ? " " : ", value ", tw_tensor_value(value, i));
    if (used < size)
        snprintf(text + used, size - used, "%s, attributes %08x", count > SHOWN ? " ..." : "", (unsigned)hash);
}

static void describe_node(const void *user, size_t i, char *text, size_t size)
{
    const twi_plan *plan = user;
    if (i >= (size_t)plan->region->nodes.count)
        return;
    twi_node *node = plan->region->nodes.items[i];
    const twi_kernel *kernel = node->task->kernel;
    char shape[128] = "", attrs[128];
    describe_attrs(node, attrs, sizeof attrs);
    if (node->num_results)
        tw_shape_text(twi_shape(twi_out(node, 0)), shape, sizeof shape);
    snprintf(text, size, "%s (%s%s%s, kernel %s%s) on %s", node->name, node->op->name, shape[0] ? " " : "", shape,
             kernel ? kernel->name : "-", attrs, plan->lists[node->device].device->text);
}

static tw_status compare(twi_planning *p)
{
    const twi_region *region = p->rewriting.region;
    uint64_t *hashes = twi_alloc_array((size_t)region->nodes.count + 1, sizeof *hashes);
    if (!hashes)
        return twi_fail_memory(p->error, "comparing plans");
    for (int id = 0; id < region->nodes.count; id++)
        hashes[id] = hash_node(region->nodes.items[id]);
    twi_comm_list list = {hashes, (size_t)region->nodes.count, describe_node, p->plan};
    tw_status status = twi_comm_compare(p->request->devices->comm, &list, "what they plan", p->error);
    twi_free(hashes);
    return status;
}

/* Whether all is on devices of one task, and no value is fetched. */
static bool is_apart(const twi_planning *p)
{
    const twi_region *region = p->rewriting.region;
    const twi_plan *plan = p->plan;
    bool apart = region->nodes.count > 0 && plan->depth == 0;
    for (int id = 0; id < region->nodes.count && apart; id++)
        apart = twi_same_task(plan->lists[region->nodes.items[id]->device].device,
                              plan->lists[region->nodes.items[0]->device].device);
    for (int i = 0; i < plan->num_fetches && apart; i++)
        apart = !plan->fetches[i].buffer;
    return apart;
}

/* All that a function needs must be in the task that calls it. */
static tw_status check_alone(const twi_planning *p)
{
    const tw_devices *devices = p->request->devices;
    for (int i = 0; i < p->plan->num_needed; i++) {
        const twi_resource *r = p->plan->needed[i];
        if (r->device->absent)
            return twi_fail(p->error, TW_UNIMPLEMENTED,
                            "a function that runs on task %d needs variable '%s', which is on %s: a function of a data "
                            "set reaches what is in its own task",
                            devices->comm->task, r->name, r->device->text);
    }
    return TW_OK;
}

bool twi_may_end(const twi_op *op, const twi_attrs *attrs, int num_inputs)
{
    bool ends = false;
    for (int i = 0; i < num_inputs && op->outputs[0] && !ends; i++)
        ends = twi_op_role(op, attrs, i) == 'q';
    return ends;
}

/* In a plan and its loops. Where rounds are planned when they come it may be anybody. */
static void mark_who_may_end(const twi_plan *plan, bool *ends, int tasks)
{
    for (int id = 0; id < plan->region->nodes.count; id++) {
        const twi_node *node = plan->region->nodes.items[id];
        if (twi_may_end(node->op, &node->attrs, node->num_inputs))
            ends[plan->lists[node->device].device->task] = true;
    }
    for (int i = 0; i < plan->loops.count; i++) {
        const twi_loop *loop = plan->loops.items[i];
        if (loop->plan)
            mark_who_may_end(loop->plan, ends, tasks);
        for (int task = 0; task < tasks && loop->chained && loop->chained->ends; task++)
            ends[task] = true;
    }
}

static tw_status find_who_may_end(const twi_planning *p)
{
    twi_plan *plan = p->plan;
    int tasks = p->request->devices->comm->tasks;
    bool any = false;
    if (plan->apart)
        return TW_OK;
    bool *ends = twi_arena_alloc(&plan->arena, (size_t)tasks * sizeof *ends);
    if (!ends)
        return twi_fail_memory(p->error, "planning for several tasks");
    mark_who_may_end(plan, ends, tasks);
    for (int task = 0; task < tasks; task++)
        any = any || ends[task];
    plan->ends = any ? ends : NULL;
    return TW_OK;
}

bool twi_is_made_by_all(const twi_planning *p)
{
    return !p->request->alone && !p->request->beside;
}

/* Plans are compared one after the other, so those that queue runners and loops make while others run are not: the
 * graph is the same, and what they began with was. */
tw_status twi_agree_on_plan(twi_planning *p)
{
    if (!p->request->devices->comm)
        return TW_OK;
    if (p->request->alone) {
        p->plan->apart = true;
        return check_alone(p);
    }
    p->plan->apart = is_apart(p);
    tw_status status = find_who_may_end(p);
    return p->plan->apart || !twi_is_made_by_all(p) || status != TW_OK ? status : compare(p);
}
