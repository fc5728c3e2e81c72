/* prepare.c - a kernel for every node: operands are described, the device's list is asked, fastest first. */
#include "plan/stages.h"

#include "base/array.h"
#include "base/hash.h"
#include "device/tasks.h"
#include "tensor/variant.h"

#include <stdio.h>
#include <string.h>

bool twi_task_shares(const twi_task *task)
{
    return task->kernel && !task->kernel->run && task->node->num_inputs > 0 && task->node->num_results > 0 &&
           task->node->results[0].dtype != TW_RESOURCE;
}

/* What one device made, others that see its memory look at where it is. It keeps its value to the end of the run, as
 * all that crosses does. Strings are owned by those who made them. */
static const twi_kernel shared_copy = {"_Copy", "shared", 0, NULL, NULL, NULL};

/* Each choice of a chain goes to where the one before it lies. */
static const twi_kernel choose_in_place = {"_Choose", "in place", 0, NULL, NULL, NULL};

static bool crosses_without_copy(const twi_planning *p, const twi_node *copy)
{
    twi_device *const *devices = p->request->devices->items;
    return twi_device_sees(devices[copy->device], devices[copy->inputs[0].node->device]) &&
           !twi_owns_memory(copy->results[0].dtype);
}

bool twi_makes_variable(const twi_node *node)
{
    return node->op->makes == TWI_MAKES_VARIABLE || node->op->makes == TWI_MAKES_DATA_SET;
}

/* Whether nobody looks at the variable's value or writes it. */
static bool is_only_known(const twi_node *handle)
{
    bool only = true;
    for (const twi_edge *e = handle->results[0].uses.first; e && only; e = e->next)
        only = e->user->op->roles &&
               twi_op_role(e->user->op, &e->user->attrs, (int)(e - e->user->inputs)) == 'h';
    return only;
}

#define MOST_BYTES (INT64_C(1) << 48) /* of a tensor: sums of a plan's sizes stay far from overflow */

static tw_status check_size(const twi_planning *p, const twi_node *node, int output, tw_dtype dtype, tw_shape shape)
{
    char text[128];
    int64_t elements = tw_shape_elements(shape), size = (int64_t)tw_dtype_size(dtype);
    if (elements >= 0 && (!size || elements <= MOST_BYTES / size)) /* data sets have no type */
        return TW_OK;
    return twi_fail(p->error, TW_RESOURCE_EXHAUSTED, "output %d of %s '%s' is a %s of %s, more than any memory holds",
                    output, node->op->name, node->name, tw_dtype_name(dtype), tw_shape_text(shape, text, sizeof text));
}

/* The variable behind a handle, made when it is first met; of one without a shape and a value the name alone. */
static tw_status resolve_variable(twi_planning *p, const twi_node *handle, twi_resource **resource)
{
    twi_resource_table *table = p->request->resources;
    const char *shared = twi_attr_string(&handle->attrs, "shared_name", ""), *name = shared[0] ? shared : handle->name;
    tw_shape shape = twi_shape(twi_out(handle, 0));
    tw_dtype dtype = twi_attr_type(&handle->attrs, "dtype");
    tw_status status = tw_shape_is_known(shape) ? check_size(p, handle, 0, dtype, shape) : TW_OK;
    if (status != TW_OK)
        return status;
    if (!tw_shape_is_known(shape) && is_only_known(handle)) {
        *resource = table->interface.get(&table->interface, name);
        status = *resource ? TW_OK : twi_fail_memory(p->error, "making a variable");
    } else {
        status = twi_resources_variable(table, name, dtype, shape, p->request->devices->items[handle->device], resource,
                                        p->error);
    }
    if (status == TW_OK && twi_is_growing(handle->op, &handle->attrs) && !twi_push(&p->plan->growing, *resource))
        status = twi_fail_memory(p->error, "making a plan");
    return status;
}

/* What a handle refers to: a variable, or what the node's kernel makes of an empty resource (a queue, a reader). A node
 * that passes a handle on refers to what its input does. */
static tw_status resolve_resource(twi_planning *p, const twi_node *node, const twi_operand *inputs, int output,
                                  twi_resource **resource)
{
    const char *shared = twi_attr_string(&node->attrs, "shared_name", "");
    const char *container = twi_attr_string(&node->attrs, "container", "");
    if (twi_makes_variable(node))
        return resolve_variable(p, node, resource);
    if (node->series) {
        *resource = p->request->resources->interface.get(&p->request->resources->interface, node->series->key);
        return *resource ? TW_OK : twi_fail_memory(p->error, "making a resource");
    }
    if (node->num_inputs && node->op->makes == TWI_MAKES_NOTHING) {
        *resource = inputs[twi_has_trait(node, TWI_PASSES) ? output : 0].resource;
        return TW_OK;
    }
    *resource = twi_resources_object(p->request->resources, container, shared[0] ? shared : node->name);
    return *resource ? TW_OK : twi_fail_memory(p->error, "making a resource");
}

static tw_status describe_output(twi_planning *p, const twi_node *node, int i, twi_operand *operands)
{
    tw_shape shape = twi_shape(twi_out(node, i));
    twi_operand *operand = &operands[node->num_inputs + i];
    *operand = twi_operand_of(twi_out(node, i));
    if (operand->dtype == TW_RESOURCE)
        return resolve_resource(p, node, operands, i, &operand->resource);
    char text[128];
    bool known = operand->elements >= 0 || tw_shape_is_known(shape);
    if (!known && twi_has_trait(node, TWI_MAKES_SHAPE))
        return TW_OK;
    if (!known)
        return twi_fail(p->error, TW_UNIMPLEMENTED,
                        "the shape of output %d of %s '%s' is not known before the step (%s); shapes that depend on "
                        "computed values are not supported",
                        i, node->op->name, node->name, tw_shape_text(shape, text, sizeof text));
    return operand->dtype == TW_VARIANT ? TW_OK : check_size(p, node, i, operand->dtype, shape);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* Types and shapes of a node's operands. A deep network has few of them: who reads no constant and no resource has them
 * for its operands, and others copies. */
typedef struct form {
    uint64_t hash;
    int count;
    twi_operand operands[];
} form;

/* Both tables use open addressing and are at most half full. */
typedef struct forms {
    form **slots;
    int count;
    size_t capacity;      /* a power of two */
    twi_operand *latest;  /* the operands of the node that is looked at */
    int room;
} forms;

static uint64_t hash_form(const twi_operand *operands, int count)
{
    uint64_t hash = (uint64_t)count;
    for (int i = 0; i < count; i++) {
        hash = twi_hash_mix(hash, (uint64_t)operands[i].dtype);
        for (int k = 0; k < operands[i].shape.rank; k++)
            hash = twi_hash_mix(hash, (uint64_t)operands[i].shape.dims[k]);
    }
    return hash;
}

static bool is_form(const form *f, const twi_operand *operands, int count, uint64_t hash)
{
    bool same = f->hash == hash && f->count == count;
    for (int i = 0; i < count && same; i++)
        same = f->operands[i].dtype == operands[i].dtype && tw_shape_equal(f->operands[i].shape, operands[i].shape);
    return same;
}

static size_t find_form(const forms *all, const twi_operand *operands, int count, uint64_t hash)
{
    size_t at = hash & (all->capacity - 1);
    while (all->slots[at] && !is_form(all->slots[at], operands, count, hash))
        at = (at + 1) & (all->capacity - 1);
    return at;
}

static bool grow_forms(forms *all)
{
    forms grown = *all;
    grown.capacity = all->capacity ? all->capacity * 2 : 64;
    grown.slots = twi_alloc_array(grown.capacity, sizeof *grown.slots);
    for (size_t i = 0; i < all->capacity && grown.slots; i++)
        if (all->slots[i])
            grown.slots[find_form(&grown, all->slots[i]->operands, all->slots[i]->count, all->slots[i]->hash)] =
                all->slots[i];
    if (!grown.slots)
        return false;
    twi_free(all->slots);
    *all = grown;
    return true;
}

static form *make_form(twi_arena *arena, const twi_operand *operands, int count, uint64_t hash)
{
    form *made = twi_arena_alloc(arena, sizeof *made + sizeof *operands * (size_t)count);
    if (!made)
        return NULL;
    made->hash = hash;
    made->count = count;
    if (count)
        memcpy(made->operands, operands, sizeof *operands * (size_t)count);
    for (int i = 0; i < count; i++) {
        made->operands[i].value = NULL;
        made->operands[i].resource = NULL;
    }
    return made;
}

/* The form of these operands; NULL when out of memory. */
static const form *form_of(forms *all, twi_arena *arena, const twi_operand *operands, int count)
{
    if (2 * (size_t)all->count >= all->capacity && !grow_forms(all))
        return NULL;
    uint64_t hash = hash_form(operands, count);
    form **slot = &all->slots[find_form(all, operands, count, hash)];
    if (!*slot) {
        *slot = make_form(arena, operands, count, hash);
        all->count += *slot != NULL;
    }
    return *slot;
}

static bool is_plain(const twi_operand *operands, int count)
{
    bool plain = true;
    for (int i = 0; i < count && plain; i++)
        plain = !operands[i].value && !operands[i].resource;
    return plain;
}

/* Describes the task's operands. */
static tw_status describe_operands(twi_planning *p, forms *all, twi_task *task, const form **its_form)
{
    const twi_node *node = task->node;
    int n = node->num_inputs, count = n + node->num_results;
    if (count > all->room && !twi_array_grow((void **)&all->latest, &all->room, count, sizeof *all->latest))
        return twi_fail_memory(p->error, "preparing kernels");
    for (int i = 0; i < n; i++) {
        const twi_task *source = node->inputs[i].node->task;
        all->latest[i] = source->operands[source->node->num_inputs + node->inputs[i].index];
    }
    for (int i = 0; i < node->num_results; i++) {
        tw_status status = describe_output(p, node, i, all->latest);
        if (status != TW_OK)
            return status;
    }
    *its_form = form_of(all, &p->plan->arena, all->latest, count);
    task->operands = !*its_form                    ? NULL
                     : is_plain(all->latest, count) ? (*its_form)->operands
                                                    : twi_arena_copy(&p->plan->arena, all->latest,
                                                                     sizeof *all->latest * (size_t)count);
    return task->operands ? TW_OK : twi_fail_memory(p->error, "preparing kernels");
}

/* ---- nodes that are alike ---------------------------------------------------------------------------------------- */

/* A task whose kernel's state others may have too, by what it depends on. */
typedef struct owner {
    twi_task *task;
    const form *form;
} owner;

typedef struct owners {
    owner *slots;
    size_t capacity; /* a power of two */
    tw_devices *devices;
} owners;

static twi_device *place_of(const owners *all, const twi_node *node)
{
    return twi_prepares_on(all->devices->items[node->device]);
}

static bool is_alike(const owners *all, const owner *owner, const twi_task *task, const form *its_form)
{
    const twi_node *x = owner->task->node, *y = task->node;
    return owner->form == its_form && x->op == y->op && x->num_inputs == y->num_inputs &&
           place_of(all, x) == place_of(all, y) && twi_attrs_equal(&x->attrs, &y->attrs);
}

/* Where the owner of a state for such a task lies, or shall lie. */
static owner *find_owner(const owners *all, const twi_task *task, const form *its_form)
{
    uint64_t hash = twi_hash_mix(its_form->hash, (uintptr_t)task->node->op);
    size_t at = twi_hash_mix(hash, (uintptr_t)place_of(all, task->node)) & (all->capacity - 1);
    while (all->slots[at].task && !is_alike(all, &all->slots[at], task, its_form))
        at = (at + 1) & (all->capacity - 1);
    return &all->slots[at];
}

/* What another's kernel has found out is so of this one. */
static void borrow(twi_task *task, const twi_task *from)
{
    task->kernel = from->kernel;
    task->state = from->state;
    task->touches = from->touches;
    task->workspace_bytes = from->workspace_bytes;
    memcpy(task->can_overwrite, from->can_overwrite, sizeof task->can_overwrite);
    task->own_team = from->own_team;
    task->varies = from->varies;
    task->borrows = true;
}

static tw_status ask_device(twi_planning *p, twi_task *task)
{
    const twi_node *node = task->node;
    twi_device *device = twi_prepares_on(p->request->devices->items[node->device]);
    twi_prepare prepare = {
        .op = node->op->name,
        .node = node->name,
        .attrs = &node->attrs,
        .roles = node->op->roles,
        .num_inputs = node->num_inputs,
        .num_outputs = node->num_results,
        .inputs = task->operands,
        .outputs = task->operands + node->num_inputs,
        .device = device,
        .threads = p->request->one_thread ? 1 : device->threads,
        .resources = &p->request->resources->interface,
        .comm = twi_is_made_by_all(p) ? p->request->devices->comm : NULL,
        .error = p->error,
    };
    tw_status status = twi_device_prepare(device, &prepare, p->request->plain_kernels, &task->kernel);
    if (status != TW_OK)
        twi_say_node(p->error, node->name);
    task->state = prepare.state;
    task->touches = prepare.touches;
    task->workspace_bytes = prepare.workspace;
    memcpy(task->can_overwrite, prepare.can_overwrite, sizeof task->can_overwrite);
    task->own_team = prepare.own_team;
    task->varies = prepare.varies;
    return status;
}

static tw_status choose_kernel(twi_planning *p, const owners *all, twi_task *task, const form *its_form)
{
    owner *slot = find_owner(all, task, its_form);
    if (slot->task) {
        borrow(task, slot->task);
        return TW_OK;
    }
    tw_status status = ask_device(p, task);
    if (status == TW_OK && task->kernel->shares)
        *slot = (owner){task, its_form};
    return status;
}

/* ---- one node after another -------------------------------------------------------------------------------------- */

static tw_status make_task(twi_planning *p, twi_node *node)
{
    size_t outputs = (size_t)node->num_results;
    twi_task *task = twi_arena_alloc(&p->plan->arena, sizeof *task + sizeof *task->outputs * outputs);
    if (!task)
        return twi_fail_memory(p->error, "preparing kernels");
    task->node = node;
    task->outputs = (twi_buffer **)(task + 1);
    node->task = task;
    return TW_OK;
}

static tw_status prepare_task(twi_planning *p, forms *forms, const owners *owners, twi_task *task)
{
    twi_node *node = task->node;
    int n = node->num_inputs;
    const form *its_form = NULL;
    tw_status status = describe_operands(p, forms, task, &its_form);
    if (status != TW_OK)
        return status;
    if (twi_has_trait(node, TWI_COPY) && crosses_without_copy(p, node))
        task->kernel = &shared_copy;
    if (node->loop && node->loop->device >= 0)
        task->workspace_bytes = node->loop->plan->lists[node->device].arena_bytes;
    if (twi_has_trait(node, TWI_CHOOSE)) {
        task->kernel = n > 1 ? &choose_in_place : NULL;
        task->can_overwrite[0] = n == 1;
    }
    if (twi_has_trait(node, TWI_FEED | TWI_COPY | TWI_CONSTANT | TWI_CHOOSE | TWI_LOOP))
        return TW_OK;
    status = choose_kernel(p, owners, task, its_form);
    if (status == TW_OK && twi_task_shares(task) && task->operands[n].bytes != task->operands[0].bytes)
        return twi_fail(p->error, TW_INTERNAL, "%s '%s' passes on %zu bytes as %zu", node->op->name, node->name,
                        task->operands[0].bytes, task->operands[n].bytes);
    return status;
}

tw_status twi_prepare_tasks(twi_planning *p)
{
    const twi_region *region = p->rewriting.region;
    forms forms = {0};
    owners owners = {.capacity = 16, .devices = p->request->devices};
    while (owners.capacity < 2 * (size_t)region->nodes.count)
        owners.capacity *= 2;
    owners.slots = twi_alloc_array(owners.capacity, sizeof *owners.slots);
    tw_status status = owners.slots ? TW_OK : twi_fail_memory(p->error, "preparing kernels");
    for (int id = 0; id < region->nodes.count && status == TW_OK; id++) {
        twi_region_look_ahead(region, id, 1);
        status = make_task(p, region->nodes.items[id]);
        if (status == TW_OK)
            status = prepare_task(p, &forms, &owners, region->nodes.items[id]->task);
    }
    twi_free(owners.slots);
    twi_free(forms.slots);
    twi_free(forms.latest);
    return status;
}
