/* lists.c - the steps of each device in order, and what each waits for; see plan.h. */
#include "plan/plan.h"

#include "base/memory.h"

#include <string.h>

/* Waits for the producers on other devices, but not for what this list has waited for already. waited[device]: how far
 * that device is known to be when this step starts. */
static tw_status find_waits(twi_planning *p, const tw_node *node, twi_step *step, int *waited, int *wanted)
{
    int devices = p->plan->num_lists;
    for (int d = 0; d < devices; d++)
        wanted[d] = -1;
    for (int i = 0; i < node->num_inputs + node->num_control_inputs; i++) {
        const tw_node *before =
            i < node->num_inputs ? node->inputs[i].node : node->control_inputs[i - node->num_inputs];
        if (before->assigned != node->assigned && !twi_meets(node, before) &&
            before->task->position > wanted[before->assigned])
            wanted[before->assigned] = before->task->position;
    }
    for (int d = 0; d < devices; d++)
        step->num_waits += wanted[d] > waited[d];
    step->waits = twi_arena_alloc(&p->plan->arena, sizeof *step->waits * (size_t)step->num_waits);
    if (!step->waits)
        return twi_fail_memory(p->error, "making a plan");
    for (int d = 0, i = 0; d < devices; d++)
        if (wanted[d] > waited[d]) {
            step->waits[i++] = (twi_wait){d, wanted[d]};
            waited[d] = wanted[d];
        }
    return TW_OK;
}

static tw_status make_step(twi_planning *p, const tw_node *node, twi_step *step)
{
    twi_task *task = node->task;
    twi_arena *arena = &p->plan->arena;
    int n = node->num_inputs, m = node->num_outputs;
    const twi_operand *outputs = task->operands + n;
    *step = (twi_step){.kernel = task->kernel && task->kernel->run ? task->kernel : NULL, .node = node,
                       .device = p->request->devices->items[node->assigned], .workspace = task->prepare.workspace,
                       .touches = task->prepare.touches};
    if (strcmp(node->op->name, "_Copy") == 0 && !twi_task_shares(task)) {
        step->source = p->request->devices->items[node->inputs[0].node->assigned];
        step->bytes = outputs[0].bytes;
        step->copies_strings = outputs[0].dtype == TW_STRING;
        p->plan->info.copies++;
        p->plan->info.copied_bytes += (int64_t)step->bytes;
    }
    p->plan->info.kernels += step->kernel != NULL;
    step->run = (twi_run){
        .state = task->prepare.state,
        .inputs = twi_arena_alloc(arena, sizeof(void *) * (size_t)n),
        .outputs = twi_arena_alloc(arena, sizeof(void *) * (size_t)m),
        .input_operands = task->operands,
        .output_operands = outputs,
        .num_inputs = n,
        .num_outputs = m,
        .threads = p->request->devices->items[node->assigned]->threads,
        .node = node->name,
        .error = &p->plan->lists[node->assigned].error,
    };
    return step->run.inputs && step->run.outputs ? TW_OK : twi_fail_memory(p->error, "making a plan");
}

tw_status twi_make_lists(twi_planning *p)
{
    const tw_graph *graph = p->rewriting.graph;
    int devices = p->plan->num_lists;
    tw_status status = TW_OK;
    int *waited = twi_alloc_array((size_t)devices * (size_t)(devices + 1), sizeof *waited); /* a row for each device */
    if (!waited)
        return twi_fail_memory(p->error, "making a plan");
    int *wanted = waited + devices * devices;
    for (int i = 0; i < devices * devices; i++)
        waited[i] = -1;
    for (int id = 0; id < graph->nodes.count; id++)
        p->plan->lists[graph->nodes.items[id]->assigned].count++;
    for (int d = 0; d < devices; d++) {
        twi_list *list = &p->plan->lists[d];
        list->device = p->request->devices->items[d];
        list->steps = twi_arena_alloc(&p->plan->arena, sizeof *list->steps * (size_t)list->count);
        if (!list->steps)
            TWI_TRY(twi_fail_memory(p->error, "making a plan"));
    }
    for (int id = 0; id < graph->nodes.count; id++) {
        const tw_node *node = graph->nodes.items[id];
        twi_step *step = &p->plan->lists[node->assigned].steps[node->task->position];
        TWI_TRY(make_step(p, node, step));
        TWI_TRY(find_waits(p, node, step, waited + node->assigned * devices, wanted));
    }
    TWI_TRY(twi_find_stretches(p));
done:
    twi_free(waited);
    return status;
}
