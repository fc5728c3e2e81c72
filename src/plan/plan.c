/* plan.c - making a plan: the stages in their order, where feeds and fetches lie, which variables need a value. */
#include "plan/stages.h"

#include "tensor/variant.h"

#include <stdlib.h>
#include <string.h>

tw_shape twi_feed_shape_of(const tw_tensor *value)
{
    return value->dtype == TW_VARIANT ? twi_tensor_list_shape(*(twi_tensor_list **)value->data) : value->shape;
}

/* ---- ports and variables ----------------------------------------------------------------------------------------- */

static twi_port port_of(twi_planning *p, twi_value output)
{
    const twi_operand *operand = &output.node->task->operands[output.node->num_inputs + output.index];
    return (twi_port){
        .device = p->request->devices->items[output.node->device],
        .buffer = twi_buffer_of(output),
        .is_made = twi_buffer_of(output)->is_made,
        .dtype = operand->dtype,
        .shape = operand->shape,
        .bytes = operand->bytes,
    };
}

static tw_status make_ports(twi_planning *p)
{
    twi_plan *plan = p->plan;
    const twi_region *region = p->rewriting.region;
    plan->num_feeds = p->request->num_feeds;
    plan->num_wanted = p->request->frame ? 0 : p->request->num_fetches; /* of a round half is not there */
    plan->feeds = twi_arena_alloc(&plan->arena, sizeof *plan->feeds * (size_t)plan->num_feeds);
    plan->fetches = twi_arena_alloc(&plan->arena, sizeof *plan->fetches * (size_t)plan->num_fetches);
    if (!plan->feeds || !plan->fetches)
        return twi_fail_memory(p->error, "making a plan");
    for (int id = 0; id < region->nodes.count; id++)
        if (twi_has_trait(region->nodes.items[id], TWI_FEED))
            plan->feeds[twi_attr_int(&region->nodes.items[id]->attrs, "index", 0)] =
                port_of(p, twi_out(region->nodes.items[id], 0));
    for (int i = 0; i < plan->num_fetches; i++) {
        twi_value fetch = twi_in(region->end, i);
        if (fetch.index < 0)
            continue;
        plan->fetches[i] = port_of(p, fetch);
        plan->fetches[i].name = fetch.node->name;
        plan->fetches[i].is_again = plan->fetches[i].buffer->fetched;
        plan->fetches[i].buffer->fetched = true;
        bool is_wanted = !p->request->frame && i < p->request->num_fetches;
        if (plan->fetches[i].dtype == TW_RESOURCE || (is_wanted && plan->fetches[i].dtype == TW_VARIANT))
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "'%s' is a %s and cannot be fetched", fetch.node->name,
                            tw_dtype_name(plan->fetches[i].dtype));
    }
    return TW_OK;
}

bool twi_may_lend(const twi_planning *p, const twi_buffer *b)
{
    return b->place == TWI_IN_ARENA && b->bytes && !p->request->frame && p->request->devices->tasks == 1 &&
           p->request->devices->items[b->device]->is_host;
}

static void lend(twi_port *port)
{
    port->lent = true;
    port->buffer->lent = port;
}

static bool list_pointer(twi_plan *plan, const twi_buffer *buffer, void **at)
{
    return !buffer->lent || twi_push(&plan->pointers, ((twi_pointer){at, buffer->lent}));
}

static bool list_pointers_of(twi_plan *plan, const twi_node *node)
{
    const twi_step *step = &plan->lists[node->device].steps[node->task->position];
    bool fits = true;
    for (int i = 0; i < node->num_inputs && fits; i++)
        fits = list_pointer(plan, twi_buffer_of(twi_in(node, i)), (void **)&step->run.inputs[i]);
    for (int i = 0; i < node->num_results && fits; i++)
        fits = list_pointer(plan, node->task->outputs[i], (void **)&step->run.outputs[i]);
    if (fits && node->guard)
        fits = list_pointer(plan, node->guard->task->outputs[0], (void **)&step->condition->holds);
    return fits;
}

/* What is fed is the caller's for as long as the run takes. If nobody writes over it, it need not be copied. What is
 * fetched is made where the caller gets it; other fetches of the same are copied from there. */
static tw_status lend_ports(twi_planning *p)
{
    twi_plan *plan = p->plan;
    const twi_region *region = p->rewriting.region;
    bool any = false, fits = true;
    for (int i = 0; i < plan->num_feeds; i++) {
        twi_buffer *b = plan->feeds[i].buffer;
        if (b && !b->overwritten && twi_may_lend(p, b))
            lend(&plan->feeds[i]), any = true;
    }
    for (int i = 0; i < plan->num_wanted; i++) {
        twi_buffer *b = plan->fetches[i].buffer;
        if (b && !plan->fetches[i].is_again && !twi_has_trait(b->maker, TWI_FEED) && b->bytes >= TWI_WORTH_LENDING &&
            twi_may_lend(p, b))
            lend(&plan->fetches[i]), any = true;
    }
    for (int id = 0; id < region->nodes.count && any && fits; id++)
        fits = list_pointers_of(plan, region->nodes.items[id]);
    for (int i = 0; i < plan->num_fetches && any && fits; i++) {
        twi_port *port = &plan->fetches[i];
        int guard = plan->guards_of_fetches[i];
        fits = !port->buffer || port->lent || list_pointer(plan, port->buffer, &port->memory);
        if (fits && guard >= 0)
            fits = list_pointer(plan, twi_buffer_of(twi_in(region->end, guard)), (void **)&port->holds);
    }
    return fits ? TW_OK : twi_fail_memory(p->error, "making a plan");
}

/* A node's use of a variable. */
typedef struct variable_use {
    twi_resource *variable;
    const twi_node *node;
    int order;
    bool needs; /* a value that is there before */
} variable_use;

static int by_variable(const void *a, const void *b)
{
    const variable_use *x = a, *y = b;
    if (x->variable != y->variable)
        return (uintptr_t)x->variable < (uintptr_t)y->variable ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static int by_order(const void *a, const void *b)
{
    const variable_use *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

typedef TWI_ARRAY(variable_use) variable_uses;

static bool list_uses(const twi_region *region, variable_uses *uses)
{
    bool fits = true;
    for (int id = 0; id < region->nodes.count && fits; id++) {
        const twi_node *node = region->nodes.items[id];
        for (int i = 0; i < node->num_inputs && node->op->roles && fits; i++) {
            twi_resource *r = node->task->operands[i].resource;
            char role = r && r->device ? twi_op_role(node->op, &node->attrs, i) : '.';
            if (twi_role_reads(role) || twi_role_writes(role))
                fits = twi_push(uses, (variable_use){r, node, uses->count, twi_role_reads(role)});
        }
    }
    return fits;
}

/* What the node's step looks at when its turn comes, with room for all of its variables; NULL: memory has run out. */
static twi_condition *condition_of(twi_planning *p, const twi_node *node)
{
    twi_step *step = &p->plan->lists[node->device].steps[node->task->position];
    twi_arena *arena = &p->plan->arena;
    size_t most = sizeof(twi_resource *) * (size_t)node->num_inputs;
    if (!step->condition)
        step->condition = twi_arena_alloc(arena, sizeof *step->condition);
    twi_condition *c = step->condition;
    if (c && !c->needed) {
        c->needed = twi_arena_alloc(arena, most);
        c->assigned = twi_arena_alloc(arena, most);
    }
    return c && c->needed && c->assigned ? c : NULL;
}

/* Whether a use is seen to before the run or after it, as most are, or when its step's turn comes: that of a step which
 * may be skipped, or which comes after an assignment that may be. A value that the variable had once it has for
 * good. */
typedef struct knowledge {
    bool needed, assigned, maybe_assigned;
} knowledge;

static bool settle_use(twi_planning *p, const variable_use *use, knowledge *k, bool *kept)
{
    bool later = use->node->guard || (use->needs && k->maybe_assigned);
    *kept = !later && !k->assigned && (use->needs ? !k->needed : true);
    if (later && !k->assigned && !(use->needs && k->needed)) {
        twi_condition *c = condition_of(p, use->node);
        if (!c)
            return false;
        if (use->needs)
            c->needed[c->num_needed++] = use->variable;
        else
            c->assigned[c->num_assigned++] = use->variable;
    }
    k->needed = k->needed || (*kept && use->needs);
    k->assigned = k->assigned || (!use->needs && !later);
    k->maybe_assigned = k->maybe_assigned || (!use->needs && later);
    return true;
}

/* Leaves of each variable what is seen to before and after the run; in the order of the plan. */
static bool keep_first_uses(twi_planning *p, variable_uses *uses)
{
    int kept = 0;
    bool fits = true;
    knowledge k = {0};
    if (uses->count)
        qsort(uses->items, (size_t)uses->count, sizeof *uses->items, by_variable);
    for (int i = 0; i < uses->count && fits; i++) {
        variable_use use = uses->items[i];
        bool keeps;
        if (i == 0 || uses->items[i - 1].variable != use.variable)
            k = (knowledge){0};
        fits = settle_use(p, &use, &k, &keeps);
        uses->items[kept] = keeps ? use : uses->items[kept];
        kept += keeps;
    }
    uses->count = kept;
    if (kept)
        qsort(uses->items, (size_t)kept, sizeof *uses->items, by_order);
    return fits;
}

/* A variable must have its value before the run unless every use comes after an assignment of this run. In the final
 * order an assignment that precedes a use in the list of their (common) device precedes it in time. */
static tw_status find_variables(twi_planning *p)
{
    twi_plan *plan = p->plan;
    variable_uses uses = {0};
    bool fits = list_uses(p->rewriting.region, &uses) && keep_first_uses(p, &uses);
    tw_status status = fits ? TW_OK : twi_fail_memory(p->error, "making a plan");
    if (status == TW_OK) {
        plan->needed = twi_arena_alloc(&plan->arena, sizeof *plan->needed * (size_t)uses.count);
        plan->assigned = twi_arena_alloc(&plan->arena, sizeof *plan->assigned * (size_t)uses.count);
        if (!plan->needed || !plan->assigned)
            status = twi_fail_memory(p->error, "making a plan");
    }
    for (int i = 0; i < uses.count && status == TW_OK; i++)
        if (uses.items[i].needs)
            plan->needed[plan->num_needed++] = uses.items[i].variable;
        else
            plan->assigned[plan->num_assigned++] = uses.items[i].variable;
    twi_array_free(&uses);
    return status;
}

/* ---- the budget of soft placement -------------------------------------------------------------------------------- */

static tw_status refuse_moves(const tw_moves *moves, int64_t budget, tw_error *error)
{
    char *table = tw_moves_table(moves, false);
    if (!table)
        return twi_fail_memory(error, "listing what soft placement moved");
    tw_status status = twi_fail(error, TW_FAILED_PRECONDITION,
                                "soft placement makes %lld bytes cross between devices in a step, the budget is %lld:\n%s",
                                (long long)moves->bytes, (long long)(budget < 0 ? 0 : budget), table);
    tw_free(table);
    return status;
}

static tw_status check_budget(twi_planning *p)
{
    const twi_request *request = p->request;
    twi_arena arena = {0};
    tw_moves moves;
    if (request->soft_budget == 0)
        return TW_OK;
    tw_status status = twi_list_moves(request->placement, &arena, &moves, p->error);
    if (status == TW_OK) {
        twi_plan_charge(p->plan, request->placement, &moves);
        if (moves.bytes > request->soft_budget && moves.bytes > 0)
            status = refuse_moves(&moves, request->soft_budget, p->error);
    }
    twi_arena_free(&arena);
    return status;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

tw_status twi_plan_create(const twi_request *request, twi_plan **result, tw_error *error)
{
    tw_status status;
    *result = NULL;
    twi_plan *plan = twi_alloc(sizeof *plan);
    if (!plan)
        return twi_fail_memory(error, "making a plan");
    twi_planning p = {.request = request, .plan = plan, .error = error};
    plan->num_lists = request->devices->count;
    plan->lane = request->lane;
    plan->lists = twi_arena_alloc(&plan->arena, sizeof *plan->lists * (size_t)plan->num_lists);
    plan->region = twi_region_create();
    p.rewriting = (twi_rewriting){
        .region = plan->region,
        .devices = request->devices,
        .fold_everything = !twi_rewrite_is_disabled(request->disable, "fold"),
    };
    if (!plan->lists || !plan->region)
        TWI_LEAVE(twi_fail_memory(error, "making a plan"));
    TWI_TRY(twi_specialize(&p));
    TWI_TRY(twi_order_sections(&p));
    TWI_TRY(twi_assign_devices(&p));
    TWI_TRY(twi_rewrite(&p.rewriting, request->disable, error));
    TWI_TRY(twi_region_sort(plan->region, error));
    TWI_TRY(twi_partition(&p));
    TWI_TRY(twi_rendezvous(&p));
    TWI_TRY(twi_prepare_tasks(&p));
    TWI_TRY(twi_group_devices(&p));
    TWI_TRY(twi_order(&p));
    TWI_TRY(twi_assign_memory(&p));
    TWI_TRY(twi_make_lists(&p));
    TWI_TRY(make_ports(&p));
    TWI_TRY(lend_ports(&p));
    TWI_TRY(find_variables(&p));
    for (int d = 0; d < plan->num_lists; d++)
        plan->info.constant_bytes += (int64_t)plan->lists[d].kept_bytes;
    TWI_TRY(check_budget(&p));
    TWI_TRY(twi_agree_on_plan(&p));
    plan->info.nodes = plan->region->nodes.count;
    plan->info.variable_bytes = request->frame ? 0 : twi_resources_variable_bytes(request->resources);
    *result = plan;
    return TW_OK;
done:
    twi_plan_destroy(plan);
    return status;
}

/* ---- memory that the plan holds ---------------------------------------------------------------------------------- */

static tw_status put_strings(tw_string *to, const tw_tensor *value, tw_error *error)
{
    for (int64_t i = 0; i < tw_tensor_elements(value); i++) { /* the tensor outlives the plan's copy of the node */
        const tw_string *from = (tw_string *)tw_tensor_data(value) + i;
        if (!twi_string_set(&to[i], from->data, from->size))
            return twi_fail_memory(error, "making a plan");
    }
    return TW_OK;
}

static void free_owned(twi_plan *plan, const twi_node *node)
{
    for (int i = 0; i < node->num_results; i++) {
        const twi_buffer *b = node->task->outputs[i];
        tw_dtype dtype = node->results[i].dtype;
        if (twi_owns_memory(dtype) && b && b->place == TWI_IN_KEPT && !b->is_made && plan->lists[b->device].kept)
            twi_free_owned(dtype, (char *)plan->lists[b->device].kept + b->offset, b->bytes / tw_dtype_size(dtype));
    }
}

static void free_made(twi_plan *plan, const twi_node *node)
{
    for (int i = 0; i < node->num_results; i++) {
        const twi_buffer *b = node->task->outputs[i];
        if (b && b->is_made && plan->lists[b->device].kept)
            tw_tensor_release(*(tw_tensor **)((char *)plan->lists[b->device].kept + b->offset));
    }
}

static void let_go(twi_plan *plan)
{
    for (int id = 0; plan->region && id < plan->region->nodes.count; id++)
        if (plan->region->nodes.items[id]->task) {
            free_owned(plan, plan->region->nodes.items[id]);
            free_made(plan, plan->region->nodes.items[id]);
        }
    for (int d = 0; plan->lists && d < plan->num_lists; d++) {
        twi_device_free(plan->lists[d].device, plan->lists[d].kept, plan->lists[d].kept_bytes);
        plan->lists[d].kept = NULL;
    }
    plan->held = false;
}

static tw_status fill_constant(twi_plan *plan, const twi_node *node, tw_error *error)
{
    const tw_tensor *value = twi_has_trait(node, TWI_CONSTANT) ? twi_attr_tensor(&node->attrs, "value") : NULL;
    if (!value || tw_tensor_bytes(value) == 0) /* a list of empty ones alone has no memory to put them in */
        return TW_OK;
    twi_list *list = &plan->lists[node->device];
    char *to = (char *)list->kept + node->task->outputs[0]->offset;
    if (tw_tensor_dtype(value) == TW_STRING)
        return put_strings((tw_string *)to, value, error);
    return list->device->ops->write(list->device, to, tw_tensor_data(value), tw_tensor_bytes(value), error);
}

tw_status twi_plan_hold(twi_plan *plan, tw_error *error)
{
    const twi_region *region = plan->region;
    tw_status status = TW_OK;
    if (plan->held)
        return TW_OK;
    for (int id = 0; id < region->nodes.count; id++) {
        const twi_node *node = region->nodes.items[id];
        if (twi_makes_variable(node))
            TWI_TRY(twi_resource_hold(node->task->operands[node->num_inputs].resource, error));
    }
    for (int d = 0; d < plan->num_lists; d++) {
        twi_list *list = &plan->lists[d];
        if (list->kept_bytes)
            TWI_TRY(twi_device_alloc(list->device, list->kept_bytes, "constants", &list->kept, error));
    }
    for (int id = 0; id < region->nodes.count; id++)
        TWI_TRY(fill_constant(plan, region->nodes.items[id], error));
    for (int i = 0; i < plan->loops.count; i++)
        TWI_TRY(twi_loop_hold(plan->loops.items[i], error));
    plan->held = true;
done:
    if (status != TW_OK)
        let_go(plan);
    return status;
}

void twi_plan_destroy(twi_plan *plan)
{
    if (!plan)
        return;
    twi_forget_recordings(plan);
    for (int i = 0; i < plan->loops.count; i++)
        twi_loop_destroy(plan->loops.items[i]);
    twi_array_free(&plan->loops);
    twi_array_free(&plan->pointers);
    twi_array_free(&plan->growing);
    for (int i = 0; i < plan->series.values.count; i++)
        tw_tensor_release(plan->series.values.items[i]);
    twi_array_free(&plan->series.values);
    twi_map_free(&plan->series.by_name);
    twi_arena_free(&plan->series.arena);
    for (int d = 0; plan->trace && d < plan->num_lists; d++)
        if (plan->trace->tracks[d].timeline)
            plan->lists[d].device->ops->close_timeline(plan->lists[d].device, plan->trace->tracks[d].timeline);
    let_go(plan);
    for (int i = 0; plan->border && i < plan->border->num_crossings; i++)
        tw_tensor_release(plan->border->crossings[i].constant);
    for (int id = 0; plan->region && id < plan->region->nodes.count; id++) {
        twi_task *task = plan->region->nodes.items[id]->task;
        if (task && task->kernel && task->kernel->release && !task->borrows)
            task->kernel->release(task->state);
    }
    twi_region_destroy(plan->region);
    twi_arena_free(&plan->arena);
    twi_free(plan);
}

static void *address_of(const twi_plan *plan, const twi_buffer *b, void *const *arenas)
{
    static _Alignas(64) char nothing[64]; /* where no bytes lie: not all who copy them take NULL */
    if (b->bytes == 0)
        return nothing;
    if (b->place == TWI_IN_VARIABLE)
        return b->variable ? b->variable->memory : NULL;
    return (char *)(b->place == TWI_IN_KEPT ? plan->lists[b->device].kept : arenas[b->device]) + b->offset;
}

void twi_plan_bind(twi_plan *plan, void *const *arenas)
{
    twi_forget_recordings(plan);
    for (int id = 0; id < plan->region->nodes.count; id++) {
        const twi_node *node = plan->region->nodes.items[id];
        twi_list *list = &plan->lists[node->device];
        twi_step *step = &list->steps[node->task->position];
        for (int i = 0; i < node->num_inputs; i++)
            ((const void **)step->run.inputs)[i] = address_of(plan, twi_buffer_of(twi_in(node, i)), arenas);
        for (int i = 0; i < node->num_results; i++)
            ((void **)step->run.outputs)[i] = address_of(plan, node->task->outputs[i], arenas);
        if (node->guard)
            step->condition->holds = address_of(plan, node->guard->task->outputs[0], arenas);
        step->run.workspace =
            node->task->workspace_bytes ? (char *)arenas[node->device] + list->workspaces[node->task->workspace] : NULL;
        if (node->loop)
            twi_loop_bind(node->loop, step->run.workspace);
    }
    for (int i = 0; i < plan->num_feeds; i++)
        if (plan->feeds[i].buffer)
            plan->feeds[i].where = plan->feeds[i].memory = address_of(plan, plan->feeds[i].buffer, arenas);
    for (int i = 0; i < plan->num_fetches; i++)
        if (plan->fetches[i].buffer)
            plan->fetches[i].where = plan->fetches[i].memory = address_of(plan, plan->fetches[i].buffer, arenas);
    for (int i = 0; i < plan->num_fetches; i++)
        if (plan->guards_of_fetches[i] >= 0) {
            twi_value guard = twi_in(plan->region->end, plan->guards_of_fetches[i]);
            plan->fetches[i].holds = address_of(plan, twi_buffer_of(guard), arenas);
            plan->fetches[i].guard = plan->lists[guard.node->device].device;
        }
}

void twi_plan_lead(const twi_plan *plan)
{
    for (int i = 0; i < plan->pointers.count; i++)
        *plan->pointers.items[i].at = plan->pointers.items[i].port->where;
}
