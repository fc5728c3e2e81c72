/* lists.c - the steps of each device in order, and what each waits for; see stages.h. */
#include "plan/stages.h"

#include "base/memory.h"
#include "tensor/variant.h"

#include <stdlib.h>
#include <string.h>

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* The devices that a node waits for, in order of their numbers; wanted[device], -1 for all others: for which position.
 * Returns how many. */
static int list_producers(const twi_node *node, int *wanted, int *devices)
{
    int count = 0;
    for (int i = 0; i < twi_num_dependencies(node); i++) {
        const twi_node *before = twi_dependency(node, i)->node;
        if (before->device == node->device || twi_share_rendezvous(node, before) ||
            before->task->position <= wanted[before->device])
            continue;
        if (wanted[before->device] < 0)
            devices[count++] = before->device;
        wanted[before->device] = before->task->position;
    }
    if (count > 1)
        qsort(devices, (size_t)count, sizeof *devices, by_number);
    return count;
}

/* Waits for the producers on other devices, but not for what this list has waited for already. waited[device]: how far
 * that device is known to be when this step starts. `wanted` and `producers` are room for a number for each device; the
 * former is -1 before and after. A step costs what it waits for, however many devices there are. */
static tw_status find_waits(twi_planning *p, const twi_node *node, twi_step *step, int *waited, int *wanted,
                            int *producers)
{
    int count = list_producers(node, wanted, producers);
    for (int i = 0; i < count; i++)
        step->num_waits += wanted[producers[i]] > waited[producers[i]];
    twi_step_id *waits = twi_arena_alloc(&p->plan->arena, sizeof *waits * (size_t)step->num_waits);
    if (!waits)
        return twi_fail_memory(p->error, "making a plan");
    step->waits = waits;
    for (int i = 0, k = 0; i < count; i++) {
        int d = producers[i];
        if (wanted[d] > waited[d]) {
            waits[k++] = (twi_step_id){d, wanted[d]};
            waited[d] = wanted[d];
        }
        wanted[d] = -1;
    }
    return TW_OK;
}

static tw_status make_step(twi_planning *p, const twi_node *node, twi_step *step)
{
    twi_task *task = node->task;
    twi_arena *arena = &p->plan->arena;
    int n = node->num_inputs, m = node->num_results;
    const twi_operand *outputs = task->operands + n;
    *step = (twi_step){.kernel = task->kernel && task->kernel->run ? task->kernel : NULL,
                       .device = p->request->devices->items[node->device]};
    bool crosses = twi_has_trait(node, TWI_COPY) && !twi_task_shares(task);
    if (crosses || twi_has_trait(node, TWI_CHOOSE)) {
        step->source = p->request->devices->items[node->inputs[n - 1].node->device];
        step->bytes = outputs[0].bytes;
        step->owned = twi_owns_memory(outputs[0].dtype) ? outputs[0].dtype : TW_INVALID_DTYPE;
        p->plan->info.copies += crosses;
        p->plan->info.copied_bytes += crosses ? (int64_t)step->bytes : 0;
    }
    p->plan->info.kernels += step->kernel != NULL;
    step->run = (twi_run){
        .state = task->state,
        .inputs = twi_arena_alloc(arena, sizeof(void *) * (size_t)n),
        .outputs = twi_arena_alloc(arena, sizeof(void *) * (size_t)m),
        .input_operands = task->operands,
        .output_operands = outputs,
        .num_inputs = n,
        .num_outputs = m,
        .threads = p->request->one_thread ? 1 : p->request->devices->items[node->device]->threads,
        .node = node->name,
        .error = &p->plan->lists[node->device].error,
    };
    step->loop = node->loop;
    if (node->guard)
        step->condition = twi_arena_alloc(arena, sizeof *step->condition);
    bool fits = step->run.inputs && step->run.outputs && (!node->guard || step->condition);
    return fits ? TW_OK : twi_fail_memory(p->error, "making a plan");
}

static void mark(twi_plan *plan, const twi_step_id *waits, int count)
{
    for (int i = 0; i < count; i++)
        plan->lists[waits[i].device].steps[waits[i].position].awaited = true;
}

static void mark_awaited(twi_plan *plan)
{
    for (int d = 0; d < plan->num_lists; d++)
        for (int i = 0; i < plan->lists[d].count; i++)
            mark(plan, plan->lists[d].steps[i].waits, plan->lists[d].steps[i].num_waits);
    for (int i = 0; i < plan->num_segments; i++)
        mark(plan, plan->segments[i].waits, plan->segments[i].num_waits);
}

tw_status twi_make_lists(twi_planning *p)
{
    const twi_region *region = p->rewriting.region;
    int devices = p->plan->num_lists;
    tw_status status = TW_OK;
    int *waited = twi_alloc_array((size_t)devices * (size_t)(devices + 2), sizeof *waited); /* a row for each device */
    if (!waited)
        return twi_fail_memory(p->error, "making a plan");
    int *wanted = waited + (size_t)devices * (size_t)devices, *producers = wanted + devices;
    for (int *last = wanted + devices, *at = waited; at < last; at++)
        *at = -1;
    for (int id = 0; id < region->nodes.count; id++)
        p->plan->lists[region->nodes.items[id]->device].count++;
    for (int d = 0; d < devices; d++) {
        twi_list *list = &p->plan->lists[d];
        list->device = p->request->devices->items[d];
        list->steps = twi_arena_alloc(&p->plan->arena, sizeof *list->steps * (size_t)list->count);
        list->nodes = twi_arena_alloc(&p->plan->arena, sizeof *list->nodes * (size_t)list->count);
        if (!list->steps || !list->nodes)
            TWI_TRY(twi_fail_memory(p->error, "making a plan"));
    }
    for (int id = 0; id < region->nodes.count; id++) {
        const twi_node *node = region->nodes.items[id];
        twi_region_look_ahead(region, id, 1);
        twi_list *list = &p->plan->lists[node->device];
        twi_step *step = &list->steps[node->task->position];
        list->nodes[node->task->position] = node;
        TWI_TRY(make_step(p, node, step));
        TWI_TRY(find_waits(p, node, step, waited + (size_t)node->device * (size_t)devices, wanted, producers));
    }
    TWI_TRY(twi_find_segments(p));
    mark_awaited(p->plan);
done:
    twi_free(waited);
    return status;
}
