/* lists.c - the steps of each device in order, and what each waits for; see stages.h. */
#include "plan/stages.h"

#include "base/memory.h"
#include "device/tasks.h"
#include "tensor/variant.h"

#include <stdlib.h>
#include <string.h>

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* What is known of the devices' progress while steps are made, in one step after the other of each device's list. */
typedef struct progress {
    int devices;
    int *
        reported; /* [devices][devices] how far, by what the first has waited for, the second is known to be; -1: not */
    int *sent;     /* the same of copies that the first's task sends to the second's */
    int *wanted;   /* [devices] how far a device must be for the step at hand; -1 before and after */
    int *producers; /* [devices] numbers of those that are wanted */
} progress;

/* Whether `before` is a copy to another task of what the node's task has. It has read that when it is sent, and whoever
 * writes over it afterwards need not be told that it has come. */
static bool is_sent(const twi_planning *p, const twi_node *node, const twi_node *before)
{
    twi_device *const *devices = p->request->devices->items;
    if (twi_same_task(devices[node->device], devices[before->device]) ||
        !twi_has_trait(before, TWI_COPY | TWI_CHOOSE) || twi_task_shares(before->task))
        return false;
    const twi_node *source = before->inputs[before->num_inputs - 1].node;
    return twi_same_task(devices[node->device], devices[source->device]);
}

/* The devices that a node waits for, in order of their numbers, those that send or the others; wanted[device]: for
 * which position. Returns how many. */
static int list_producers(const twi_planning *p, const twi_node *node, bool sent, progress *known)
{
    int count = 0, *wanted = known->wanted;
    for (int i = 0; i < twi_num_dependencies(node); i++) {
        const twi_node *before = twi_dependency(node, i)->node;
        if (before->device == node->device || twi_share_rendezvous(node, before) ||
            before->task->position <= wanted[before->device] || is_sent(p, node, before) != sent)
            continue;
        if (wanted[before->device] < 0)
            known->producers[count++] = before->device;
        wanted[before->device] = before->task->position;
    }
    if (count > 1)
        qsort(known->producers, (size_t)count, sizeof *known->producers, by_number);
    return count;
}

/* Adds what is not known already to waits[count]; returns how many there are then. */
static int add_waits(const twi_planning *p, const twi_node *node, bool sent, progress *known, twi_step_id *waits,
                     int count)
{
    int *reported = known->reported + (size_t)node->device * (size_t)known->devices;
    int *own = sent ? known->sent + (size_t)node->device * (size_t)known->devices : reported;
    int producers = list_producers(p, node, sent, known);
    for (int i = 0; i < producers; i++) {
        int d = known->producers[i], position = known->wanted[d];
        known->wanted[d] = -1;
        if (position <= reported[d] || position <= own[d])
            continue;
        waits[count++] = (twi_step_id){d, position};
        own[d] = position;
    }
    return count;
}

/* Waits for the producers on other devices, but not for what this list has waited for already. A step costs what it
 * waits for, however many devices there are. */
static tw_status find_waits(twi_planning *p, const twi_node *node, twi_step *step, progress *known)
{
    int most = twi_num_dependencies(node);
    twi_step_id few[16], *waits = most > 16 ? twi_alloc_array((size_t)most, sizeof *waits) : few;
    if (!waits)
        return twi_fail_memory(p->error, "making a plan");
    int reported = add_waits(p, node, false, known, waits, 0);
    step->num_waits = add_waits(p, node, true, known, waits, reported);
    step->num_sent = step->num_waits - reported;
    twi_step_id *kept = twi_arena_alloc(&p->plan->arena, sizeof *waits * (size_t)step->num_waits);
    if (kept)
        memcpy(kept, waits, sizeof *waits * (size_t)step->num_waits);
    step->waits = kept;
    if (waits != few)
        twi_free(waits);
    return kept ? TW_OK : twi_fail_memory(p->error, "making a plan");
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
    step->beside = task->seat == 0 ? task->seats : 0;
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

static bool begin_progress(progress *known, int devices)
{
    size_t n = (size_t)devices, all = n * n;
    *known = (progress){.devices = devices, .reported = twi_alloc_array(2 * all + 2 * n, sizeof(int))};
    if (!known->reported)
        return false;
    known->sent = known->reported + all;
    known->wanted = known->sent + all;
    known->producers = known->wanted + n;
    for (int *at = known->reported; at < known->producers; at++)
        *at = -1;
    return true;
}

tw_status twi_make_lists(twi_planning *p)
{
    const twi_region *region = p->rewriting.region;
    int devices = p->plan->num_lists;
    tw_status status = TW_OK;
    progress known;
    if (!begin_progress(&known, devices))
        return twi_fail_memory(p->error, "making a plan");
    for (int id = 0; id < region->nodes.count; id++)
        p->plan->lists[region->nodes.items[id]->device].count++;
    for (int d = 0; d < devices; d++) {
        twi_list *list = &p->plan->lists[d];
        list->device = p->request->devices->items[d];
        list->steps = twi_arena_alloc(&p->plan->arena, sizeof *list->steps * (size_t)list->count);
        list->nodes = twi_arena_alloc(&p->plan->arena, sizeof *list->nodes * (size_t)list->count);
        if (!list->steps || !list->nodes)
            TWI_LEAVE(twi_fail_memory(p->error, "making a plan"));
    }
    for (int id = 0; id < region->nodes.count; id++) {
        const twi_node *node = region->nodes.items[id];
        twi_region_look_ahead(region, id, 1);
        twi_list *list = &p->plan->lists[node->device];
        twi_step *step = &list->steps[node->task->position];
        list->nodes[node->task->position] = node;
        TWI_TRY(make_step(p, node, step));
        TWI_TRY(find_waits(p, node, step, &known));
    }
    TWI_TRY(twi_find_segments(p));
    mark_awaited(p->plan);
done:
    twi_free(known.reported);
    return status;
}
