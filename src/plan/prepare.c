/* prepare.c - a kernel for every node: operands are described, the device's list is asked, fastest first. */
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

bool twi_task_shares(const twi_task *task)
{
    return task->kernel && !task->kernel->run && task->node->num_inputs > 0 && task->node->num_outputs > 0 &&
           task->node->output_types[0] != TW_RESOURCE;
}

static bool is(const tw_node *node, const char *op)
{
    return strcmp(node->op->name, op) == 0;
}

/* Devices of the host see each other's memory: what one made, the others look at where it is. It keeps its value to the
 * end of the run, as all that crosses does. Strings are owned by those who made them. */
static const twi_kernel shared_copy = {"_Copy", "shared", 0, NULL, NULL, NULL};

static bool crosses_without_copy(const twi_planning *p, const tw_node *copy)
{
    twi_device *const *devices = p->request->devices->items;
    return devices[copy->assigned]->is_host && devices[copy->inputs[0].node->assigned]->is_host &&
           copy->output_types[0] != TW_STRING;
}

bool twi_makes_variable(const tw_node *node)
{
    return is(node, "VarHandleOp") || is(node, "TowerData");
}

/* The variable behind a handle, made when it is first met. */
static tw_status resolve_variable(twi_planning *p, const tw_node *handle, twi_resource **resource)
{
    const char *name = twi_attr_string(&handle->attrs, "shared_name", "");
    return twi_resources_variable(p->request->resources, name[0] ? name : handle->name,
                                  twi_attr_type(&handle->attrs, "dtype"), twi_attr_shape(&handle->attrs, "shape"),
                                  p->request->devices->items[handle->assigned], resource, p->error);
}

/* What a handle refers to: a variable, or what the node's kernel makes of an empty resource (a queue, a reader). A node
 * that passes a handle on refers to what its input does. */
static tw_status resolve_resource(twi_planning *p, const tw_node *node, twi_resource **resource)
{
    char key[700];
    const char *shared = twi_attr_string(&node->attrs, "shared_name", "");
    const char *container = twi_attr_string(&node->attrs, "container", "");
    if (twi_makes_variable(node))
        return resolve_variable(p, node, resource);
    if (node->num_inputs) {
        *resource = node->task->operands[0].resource;
        return TW_OK;
    }
    snprintf(key, sizeof key, "object/%.64s/%.600s", container, shared[0] ? shared : node->name);
    *resource = p->request->resources->interface.get(&p->request->resources->interface, key);
    return *resource ? TW_OK : twi_fail_memory(p->error, "making a resource");
}

static tw_status describe_output(twi_planning *p, tw_node *node, int i, twi_operand *operand)
{
    tw_shape shape = node->output_shapes[i];
    *operand = (twi_operand){.dtype = node->output_types[i], .shape = shape};
    if (operand->dtype == TW_RESOURCE) {
        operand->elements = 1;
        operand->bytes = sizeof(void *);
        return resolve_resource(p, node, &operand->resource);
    }
    operand->elements = tw_shape_elements(shape);
    if (operand->elements < 0) {
        char text[128];
        return twi_fail(p->error, TW_UNIMPLEMENTED,
                        "the shape of output %d of %s '%s' is not known before the step (%s); shapes that depend on "
                        "computed values are not supported",
                        i, node->op->name, node->name, tw_shape_text(shape, text, sizeof text));
    }
    operand->bytes = (size_t)operand->elements * tw_dtype_size(operand->dtype);
    operand->value = is(node, "Const") ? twi_attr_tensor(&node->attrs, "value") : NULL;
    return TW_OK;
}

/* What its device says no to may run elsewhere, or, if a rewrite made it, as the parts it was made of. */
static tw_status note_refusal(twi_planning *p, const tw_node *node, const char *reason)
{
    for (int id = 0; id < p->plan->num_origins; id++)
        if (p->plan->origins[id] == node)
            return twi_placement_refuse(p->request->placement, p->request->graph->nodes.items[id], reason, p->error);
    if (node->op->flags & TWI_REWRITTEN && !twi_push(p->refused, (twi_refused_op){node->op->name, node->assigned}))
        return twi_fail_memory(p->error, "preparing kernels");
    return TW_OK;
}

static tw_status prepare_task(twi_planning *p, twi_task *task)
{
    tw_error refusal = {0};
    tw_node *node = task->node;
    twi_device *device = p->request->devices->items[node->assigned];
    int n = node->num_inputs, m = node->num_outputs;
    for (int i = 0; i < n; i++) {
        const twi_task *source = node->inputs[i].node->task;
        task->operands[i] = source->operands[source->node->num_inputs + node->inputs[i].index];
    }
    for (int i = 0; i < m; i++) {
        tw_status status = describe_output(p, node, i, &task->operands[n + i]);
        if (status != TW_OK)
            return status;
    }
    if (is(node, "_Copy") && crosses_without_copy(p, node))
        task->kernel = &shared_copy;
    if (is(node, "_Feed") || is(node, "_Copy") || is(node, "Const"))
        return TW_OK;
    task->prepare = (twi_prepare){
        .op = node->op->name,
        .node = node->name,
        .attrs = &node->attrs,
        .num_inputs = n,
        .num_outputs = m,
        .inputs = task->operands,
        .outputs = task->operands + n,
        .device = device,
        .threads = device->threads,
        .resources = &p->request->resources->interface,
        .error = p->error,
        .refusal = &refusal,
    };
    tw_status status = twi_device_prepare(device, &task->prepare, p->request->plain_kernels, &task->kernel);
    task->prepare.refusal = NULL;
    if (status == TW_UNIMPLEMENTED && refusal.message[0] && note_refusal(p, node, refusal.message) != TW_OK)
        return TW_RESOURCE_EXHAUSTED;
    if (status == TW_OK && twi_task_shares(task) && task->operands[n].bytes != task->operands[0].bytes)
        return twi_fail(p->error, TW_INTERNAL, "%s '%s' passes on %zu bytes as %zu", node->op->name, node->name,
                        task->operands[0].bytes, task->operands[n].bytes);
    return status;
}

tw_status twi_prepare_tasks(twi_planning *p)
{
    tw_graph *graph = p->rewriting.graph;
    for (int id = 0; id < graph->nodes.count; id++) {
        tw_node *node = graph->nodes.items[id];
        twi_task *task = twi_arena_alloc(&p->plan->arena, sizeof *task);
        if (!task)
            return twi_fail_memory(p->error, "preparing kernels");
        task->node = node;
        task->operands = twi_arena_alloc(&p->plan->arena,
                                         sizeof *task->operands * (size_t)(node->num_inputs + node->num_outputs));
        task->outputs = twi_arena_alloc(&p->plan->arena, sizeof *task->outputs * (size_t)node->num_outputs);
        if (!task->operands || !task->outputs)
            return twi_fail_memory(p->error, "preparing kernels");
        node->task = task;
        tw_status status = prepare_task(p, task);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}
