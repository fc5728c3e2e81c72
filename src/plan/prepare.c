/* prepare.c - a kernel for every node: operands are described, the device's list is asked, fastest first. */
#include "plan/stages.h"

#include "base/hash.h"

#include <stdio.h>
#include <string.h>

bool twi_task_shares(const twi_task *task)
{
    return task->kernel && !task->kernel->run && task->node->num_inputs > 0 && task->node->num_results > 0 &&
           task->node->results[0].dtype != TW_RESOURCE;
}

/* Devices of the host see each other's memory: what one made, the others look at where it is. It keeps its value to the
 * end of the run, as all that crosses does. Strings are owned by those who made them. */
static const twi_kernel shared_copy = {"_Copy", "shared", 0, NULL, NULL, NULL};

static bool crosses_without_copy(const twi_planning *p, const twi_node *copy)
{
    twi_device *const *devices = p->request->devices->items;
    return devices[copy->device]->is_host && devices[copy->inputs[0].node->device]->is_host &&
           copy->results[0].dtype != TW_STRING;
}

bool twi_makes_variable(const twi_node *node)
{
    return node->op->makes == TWI_MAKES_VARIABLE || node->op->makes == TWI_MAKES_DATA_SET;
}

/* The variable behind a handle, made when it is first met. */
static tw_status resolve_variable(twi_planning *p, const twi_node *handle, twi_resource **resource)
{
    const char *name = twi_attr_string(&handle->attrs, "shared_name", "");
    return twi_resources_variable(p->request->resources, name[0] ? name : handle->name,
                                  twi_attr_type(&handle->attrs, "dtype"), twi_attr_shape(&handle->attrs, "shape"),
                                  p->request->devices->items[handle->device], resource, p->error);
}

/* What a handle refers to: a variable, or what the node's kernel makes of an empty resource (a queue, a reader). A node
 * that passes a handle on refers to what its input does. */
static tw_status resolve_resource(twi_planning *p, const twi_node *node, twi_resource **resource)
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

#define MOST_BYTES (INT64_C(1) << 48) /* of a tensor: sums of a plan's sizes stay far from overflow */

static tw_status describe_output(twi_planning *p, twi_node *node, int i, twi_operand *operand)
{
    tw_shape shape = node->results[i].shape;
    *operand = twi_operand_of(twi_out(node, i));
    if (operand->dtype == TW_RESOURCE)
        return resolve_resource(p, node, &operand->resource);
    if (operand->elements < 0) {
        char text[128];
        return twi_fail(p->error, TW_UNIMPLEMENTED,
                        "the shape of output %d of %s '%s' is not known before the step (%s); shapes that depend on "
                        "computed values are not supported",
                        i, node->op->name, node->name, tw_shape_text(shape, text, sizeof text));
    }
    if (operand->elements > MOST_BYTES / (int64_t)tw_dtype_size(operand->dtype)) {
        char text[128];
        return twi_fail(p->error, TW_RESOURCE_EXHAUSTED,
                        "output %d of %s '%s' is a %s of %s, more than any memory holds", i, node->op->name, node->name,
                        tw_dtype_name(operand->dtype), tw_shape_text(shape, text, sizeof text));
    }
    return TW_OK;
}

/* ---- nodes that are alike ------------------------------------------------------------------------------------------- */

/* Tasks whose kernel's state others may have too, by what it depends on. */
typedef struct alike {
    twi_task **slots;
    size_t capacity; /* a power of two */
} alike;

static uint64_t hash_task(const twi_task *task)
{
    const twi_node *node = task->node;
    uint64_t hash = twi_hash_mix((uintptr_t)node->op, (uint64_t)node->device);
    for (int i = 0; i < node->num_inputs + node->num_results; i++) {
        hash = twi_hash_mix(hash, (uint64_t)task->operands[i].dtype);
        for (int k = 0; k < task->operands[i].shape.rank; k++)
            hash = twi_hash_mix(hash, (uint64_t)task->operands[i].shape.dims[k]);
    }
    return hash;
}

static bool is_alike(const twi_task *a, const twi_task *b)
{
    const twi_node *x = a->node, *y = b->node;
    bool same = x->op == y->op && x->device == y->device && x->num_inputs == y->num_inputs &&
                x->num_results == y->num_results && twi_attrs_equal(&x->attrs, &y->attrs);
    for (int i = 0; i < x->num_inputs + x->num_results && same; i++)
        same = a->operands[i].dtype == b->operands[i].dtype && tw_shape_equal(a->operands[i].shape, b->operands[i].shape);
    return same;
}

/* Where a task that is alike lies, or shall lie. */
static twi_task **find_alike(const alike *all, const twi_task *task)
{
    size_t at = hash_task(task) & (all->capacity - 1);
    while (all->slots[at] && !is_alike(all->slots[at], task))
        at = (at + 1) & (all->capacity - 1);
    return &all->slots[at];
}

/* What another's kernel has found out is so of this one. */
static void borrow(twi_task *task, const twi_task *from)
{
    task->prepare.state = from->prepare.state;
    task->prepare.workspace = from->prepare.workspace;
    memcpy(task->prepare.can_overwrite, from->prepare.can_overwrite, sizeof task->prepare.can_overwrite);
    task->prepare.touches = from->prepare.touches;
    task->prepare.varies = from->prepare.varies;
    task->kernel = from->kernel;
    task->borrows = true;
}

static tw_status choose_kernel(twi_planning *p, const alike *all, twi_task *task)
{
    twi_task **slot = find_alike(all, task);
    if (*slot) {
        borrow(task, *slot);
        return TW_OK;
    }
    tw_status status = twi_device_prepare(task->prepare.device, &task->prepare, p->request->plain_kernels, &task->kernel);
    if (status == TW_OK && task->kernel->shares)
        *slot = task;
    return status;
}

/* ---- one node after another ----------------------------------------------------------------------------------------- */

static tw_status prepare_task(twi_planning *p, const alike *all, twi_task *task)
{
    twi_node *node = task->node;
    twi_device *device = p->request->devices->items[node->device];
    int n = node->num_inputs, m = node->num_results;
    for (int i = 0; i < n; i++) {
        const twi_task *source = node->inputs[i].node->task;
        task->operands[i] = source->operands[source->node->num_inputs + node->inputs[i].index];
    }
    for (int i = 0; i < m; i++) {
        tw_status status = describe_output(p, node, i, &task->operands[n + i]);
        if (status != TW_OK)
            return status;
    }
    if (twi_has_trait(node, TWI_COPY) && crosses_without_copy(p, node))
        task->kernel = &shared_copy;
    if (twi_has_trait(node, TWI_FEED | TWI_COPY | TWI_CONSTANT))
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
    };
    tw_status status = choose_kernel(p, all, task);
    if (status == TW_OK && twi_task_shares(task) && task->operands[n].bytes != task->operands[0].bytes)
        return twi_fail(p->error, TW_INTERNAL, "%s '%s' passes on %zu bytes as %zu", node->op->name, node->name,
                        task->operands[0].bytes, task->operands[n].bytes);
    return status;
}

static tw_status make_task(twi_planning *p, twi_node *node)
{
    twi_task *task = twi_arena_alloc(&p->plan->arena, sizeof *task);
    if (!task)
        return twi_fail_memory(p->error, "preparing kernels");
    task->node = node;
    task->operands = twi_arena_alloc(&p->plan->arena,
                                     sizeof *task->operands * (size_t)(node->num_inputs + node->num_results));
    task->outputs = twi_arena_alloc(&p->plan->arena, sizeof *task->outputs * (size_t)node->num_results);
    if (!task->operands || !task->outputs)
        return twi_fail_memory(p->error, "preparing kernels");
    node->task = task;
    return TW_OK;
}

tw_status twi_prepare_tasks(twi_planning *p)
{
    const twi_region *region = p->rewriting.region;
    alike all = {.capacity = 16};
    while (all.capacity < 2 * (size_t)region->nodes.count)
        all.capacity *= 2;
    all.slots = twi_alloc_array(all.capacity, sizeof *all.slots);
    tw_status status = all.slots ? TW_OK : twi_fail_memory(p->error, "preparing kernels");
    for (int id = 0; id < region->nodes.count && status == TW_OK; id++) {
        status = make_task(p, region->nodes.items[id]);
        if (status == TW_OK)
            status = prepare_task(p, &all, region->nodes.items[id]->task);
    }
    twi_free(all.slots);
    return status;
}
