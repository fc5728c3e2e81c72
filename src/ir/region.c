/* region.c - making nodes and leading their edges; see ir.h. */
#include "ir/ir.h"

#include "graph/match.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

twi_region *twi_region_create(void)
{
    static const char *const names[] = {
#define X(name) #name,
        TWI_KNOWN_OPS(X)
#undef X
    };
    static const twi_op end = {.name = "_End"};
    twi_region *region = twi_alloc(sizeof *region);
    if (!region)
        return NULL;
    for (int i = 0; i < TWI_NUM_KNOWN; i++)
        region->known[i] = twi_op_find(names[i]);
    region->end = twi_arena_alloc(&region->arena, sizeof *region->end);
    if (!region->end) {
        twi_region_destroy(region);
        return NULL;
    }
    *region->end = (twi_node){.id = -1, .device = -1, .region = region, .op = &end, .name = "", .place = INT64_MAX};
    return region;
}

static void release_attrs(twi_node *node)
{
    if (node->owns_attrs)
        twi_attrs_release(&node->attrs);
    node->owns_attrs = false;
}

void twi_region_destroy(twi_region *region)
{
    if (!region)
        return;
    for (int i = 0; i < region->nodes.count; i++)
        release_attrs(region->nodes.items[i]);
    twi_array_free(&region->nodes);
    twi_array_free(&region->stack);
    twi_array_free(&region->found);
    twi_arena_free(&region->arena);
    twi_free(region);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

void twi_region_fail(twi_region *region, tw_status code, const char *format, ...)
{
    va_list arguments;
    if (region->error.status != TW_OK)
        return;
    va_start(arguments, format);
    twi_vfail(&region->error, code, format, arguments);
    va_end(arguments);
}

void twi_region_fail_memory(twi_region *region)
{
    twi_region_fail(region, TW_RESOURCE_EXHAUSTED, "out of memory while making a plan");
}

tw_status twi_region_check(const twi_region *region, tw_error *error)
{
    if (region->error.status != TW_OK && error)
        *error = region->error;
    return region->error.status;
}

/* ---- edges ------------------------------------------------------------------------------------------------------- */

static void link_edge(twi_edge *edge)
{
    edge->user->region->touched = true;
    twi_uses *uses = twi_uses_of((twi_value){edge->node, edge->index});
    edge->previous = uses->last;
    edge->next = NULL;
    *(uses->last ? &uses->last->next : &uses->first) = edge;
    uses->last = edge;
    uses->count++;
}

static void unlink_edge(twi_edge *edge)
{
    twi_uses *uses = twi_uses_of((twi_value){edge->node, edge->index});
    *(edge->previous ? &edge->previous->next : &uses->first) = edge->next;
    *(edge->next ? &edge->next->previous : &uses->last) = edge->previous;
    uses->count--;
}

/* Leads an edge elsewhere. */
static void lead(twi_edge *edge, twi_value value)
{
    unlink_edge(edge);
    edge->node = value.node;
    edge->index = value.index;
    link_edge(edge);
    if (!twi_order_edge(edge->user->region, value.node, edge->user))
        twi_region_fail(edge->user->region, TW_INTERNAL, "'%s' depends on itself", edge->user->name);
}

void twi_set_input(twi_node *node, int i, twi_value value)
{
    lead(&node->inputs[i], value);
}

void twi_replace(twi_value from, twi_value to)
{
    if (from.node != to.node)
        from.node->became = to.node;
    for (twi_edge *edge = twi_uses_of(from)->first, *next; edge; edge = next) {
        next = edge->next;
        if (edge->user != to.node)
            lead(edge, to);
    }
}

/* Looks where less is to be looked at: a joint node waits for thousands. */
static bool has_control(const twi_node *node, const twi_node *before)
{
    bool found = false;
    if (before->followers.count < node->num_controls)
        for (const twi_edge *e = before->followers.first; e && !found; e = e->next)
            found = e->user == node;
    else
        for (int i = 0; i < node->num_controls && !found; i++)
            found = node->controls[i]->node == before;
    return found;
}

/* Without a look at the order. */
static bool append_control(twi_node *node, twi_node *before)
{
    twi_region *region = node->region;
    twi_edge *edge = twi_arena_alloc(&region->arena, sizeof *edge);
    if (node->num_controls == node->room) {
        int room = 2 * node->room + 2;
        twi_edge **grown = twi_arena_alloc(&region->arena, sizeof *grown * (size_t)room);
        if (grown && node->num_controls)
            memcpy(grown, node->controls, sizeof *grown * (size_t)node->num_controls);
        node->controls = grown ? grown : node->controls;
        node->room = grown ? room : node->room;
    }
    if (!edge || node->num_controls == node->room) {
        twi_region_fail_memory(region);
        return false;
    }
    *edge = (twi_edge){.node = before, .index = -1, .user = node};
    node->controls[node->num_controls++] = edge;
    link_edge(edge);
    return true;
}

bool twi_add_control(twi_node *node, twi_node *before)
{
    return has_control(node, before) ||
           (twi_order_edge(node->region, before, node) && append_control(node, before));
}

void twi_drop_control(twi_node *node, const twi_node *before)
{
    for (int i = 0; i < node->num_controls; i++)
        if (node->controls[i]->node == before) {
            unlink_edge(node->controls[i]);
            node->controls[i--] = node->controls[--node->num_controls];
            node->region->touched = true;
        }
}

void twi_set_guard(twi_node *node, twi_node *guard)
{
    node->guard = guard;
    if (guard && !twi_add_control(node, guard))
        twi_region_fail(node->region, TW_INTERNAL, "'%s' decides whether it runs itself", node->name);
}

void twi_move_controls(twi_node *from, twi_node *to)
{
    bool fits = true;
    from->became = to;
    for (int i = 0; i < from->num_controls; i++)
        if (from->controls[i]->node != to)
            fits = twi_add_control(to, from->controls[i]->node) && fits;
    for (twi_edge *edge = from->followers.first, *next; edge; edge = next) {
        next = edge->next;
        if (edge->user != to)
            lead(edge, twi_out(to, -1));
    }
    if (!fits)
        twi_region_fail(to->region, TW_INTERNAL, "'%s' depends on itself", to->name);
}

void twi_node_drop(twi_node *node)
{
    for (int i = 0; i < node->num_inputs; i++)
        unlink_edge(&node->inputs[i]);
    for (int i = 0; i < node->num_controls; i++)
        unlink_edge(node->controls[i]);
    twi_order_remove(node->region, node);
    node->region->touched = true;
    release_attrs(node);
    node->gone = true;
}

static bool make_inputs(twi_node *node, const twi_value *inputs, int count)
{
    node->inputs = twi_arena_alloc(&node->region->arena, sizeof *node->inputs * (size_t)count);
    if (!node->inputs)
        return false;
    for (int i = 0; i < count; i++)
        node->inputs[i] = (twi_edge){.node = inputs[i].node, .index = inputs[i].index, .user = node};
    node->num_inputs = count;
    return true;
}

bool twi_region_set_end(twi_region *region, const twi_value *values, int count)
{
    for (int i = 0; i < region->end->num_inputs; i++)
        unlink_edge(&region->end->inputs[i]);
    if (!make_inputs(region->end, values, count))
        return false;
    for (int i = 0; i < count; i++)
        link_edge(&region->end->inputs[i]);
    return true;
}

/* ---- shapes and constants ---------------------------------------------------------------------------------------- */

tw_tensor *twi_constant(twi_value value)
{
    while (twi_has_trait(value.node, TWI_PASSES) && !value.node->opaque)
        value = twi_in(value.node, value.index);
    return twi_has_trait(value.node, TWI_CONSTANT) ? twi_attr_tensor(&value.node->attrs, "value") : NULL;
}

enum { FEW = 32 };

/* What a shape rule is told of a node's inputs. */
typedef struct facts {
    tw_dtype few_types[FEW], *types;
    tw_shape few_shapes[FEW], *shapes;
    tw_tensor *few_values[FEW], **values;
    tw_output few_sources[FEW], *sources;
} facts;

static bool reserve_facts(facts *f, int count)
{
    size_t n = (size_t)count;
    f->types = count > FEW ? twi_alloc_array(n, sizeof *f->types) : f->few_types;
    f->shapes = count > FEW ? twi_alloc_array(n, sizeof *f->shapes) : f->few_shapes;
    f->values = count > FEW ? twi_alloc_array(n, sizeof *f->values) : f->few_values;
    f->sources = count > FEW ? twi_alloc_array(n, sizeof *f->sources) : f->few_sources;
    return f->types && f->shapes && f->values && f->sources;
}

static void free_facts(facts *f, int count)
{
    if (count <= FEW)
        return;
    twi_free(f->types);
    twi_free(f->shapes);
    twi_free(f->values);
    twi_free(f->sources);
}

void twi_node_set_shape(twi_node *node, int output, tw_shape shape)
{
    twi_result *result = &node->results[output];
    size_t bytes = shape.rank > 0 ? sizeof *shape.dims * (size_t)shape.rank : 0;
    if (bytes && result->rank != shape.rank)
        result->dims = twi_arena_alloc(&node->region->arena, bytes);
    result->rank = bytes && !result->dims ? -1 : shape.rank;
    if (result->rank != shape.rank)
        twi_region_fail_memory(node->region);
    else if (bytes)
        memcpy(result->dims, shape.dims, bytes);
}

static tw_status infer_shapes(twi_node *node, tw_error *error)
{
    facts f;
    int n = node->num_inputs, m = node->num_results;
    tw_shape few[4], *shapes = m > 4 ? twi_alloc_array((size_t)m, sizeof *shapes) : few;
    tw_dtype few_types[4], *types = m > 4 ? twi_alloc_array((size_t)m, sizeof *types) : few_types;
    tw_status status = reserve_facts(&f, n) && shapes && types ? TW_OK : twi_fail_memory(error, "inferring shapes");
    for (int i = 0; i < n && status == TW_OK; i++) {
        const twi_node *from = node->inputs[i].node;
        f.types[i] = from->results[node->inputs[i].index].dtype;
        f.shapes[i] = twi_shape(twi_in(node, i));
        f.values[i] = twi_constant(twi_in(node, i));
        f.sources[i] = (tw_output){(tw_node *)from->origin, node->inputs[i].index};
    }
    for (int i = 0; i < m && status == TW_OK; i++) {
        shapes[i] = TW_UNKNOWN_SHAPE;
        types[i] = node->results[i].dtype;
    }
    if (status == TW_OK) {
        twi_inference context = {
            .op = node->op, .node = node->name, .attrs = &node->attrs, .num_inputs = n, .input_types = f.types, .inputs = f.shapes,
            .input_values = f.values, .sources = f.sources, .num_outputs = m, .output_types = types, .outputs = shapes,
            .error = error,
        };
        status = node->op->shape(&context);
        node->region->asked = context.asked;
        node->region->misfits = node->region->may_misfit && status == TW_INVALID_ARGUMENT;
        if (node->region->misfits) {
            status = TW_OK;
            *error = (tw_error){0};
            for (int i = 0; i < m; i++)
                shapes[i] = TW_UNKNOWN_SHAPE;
        }
        if (status != TW_OK)
            twi_prefix(error, "%s '%s'", node->op->name, node->name);
    }
    for (int i = 0; i < m && status == TW_OK; i++)
        twi_node_set_shape(node, i, shapes[i]);
    free_facts(&f, n);
    if (m > 4) {
        twi_free(shapes);
        twi_free(types);
    }
    return status;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static int count_data(const twi_value *inputs, int count)
{
    int data = 0;
    while (data < count && inputs[data].index >= 0)
        data++;
    return data;
}

/* Types, attributes and results. */
static bool match(twi_node *node, const twi_wish *w, int num_data)
{
    twi_region *region = node->region;
    tw_error error;
    tw_dtype few[FEW], *types = num_data > FEW ? twi_alloc_array((size_t)num_data, sizeof *types) : few;
    twi_call call = {.arena = &region->arena, .op = w->op, .signature = twi_op_signature(w->op),
                     .node = w->name, .input_types = types, .num_inputs = num_data, .attrs = w->attrs,
                     .num_attrs = w->num_attrs, .error = &error};
    bool fits = types && call.signature;
    for (int i = 0; i < num_data && fits; i++)
        types[i] = twi_dtype(w->inputs[i]);
    if (!fits)
        twi_region_fail_memory(region);
    else if (twi_match_call(&call) != TW_OK)
        twi_region_fail(region, error.status, "%s", error.message), fits = false;
    if (num_data > FEW)
        twi_free(types);
    if (!fits)
        return false;
    node->attrs = call.completed;
    node->kernel_type = twi_kernel_type(&node->attrs);
    node->owns_attrs = true;
    node->num_results = call.num_outputs;
    node->results = twi_arena_alloc(&region->arena, sizeof *node->results * (size_t)call.num_outputs);
    for (int i = 0; i < call.num_outputs && node->results; i++)
        node->results[i].dtype = call.output_types[i];
    if (!node->results)
        twi_region_fail_memory(region);
    return node->results != NULL;
}

/* What the node's place is behind. */
static twi_node *latest(const twi_wish *w)
{
    twi_node *last = w->behind;
    for (int i = 0; i < w->num_inputs; i++)
        if (!last || w->inputs[i].node->place > last->place)
            last = w->inputs[i].node;
    return last;
}

/* All that a new node waits for, each once: a node that groups others waits for many. */
static void append_controls(twi_node *node, const twi_value *before, int count)
{
    twi_region *region = node->region;
    region->epoch++;
    for (int i = 0; i < count && region->error.status == TW_OK; i++) {
        if (before[i].node->seen != region->epoch)
            append_control(node, before[i].node);
        before[i].node->seen = region->epoch;
    }
}

/* Edges, shapes and its place: behind `before`. */
static bool finish(twi_node *node, const twi_value *inputs, int num_inputs, int num_data, twi_node *before)
{
    twi_region *region = node->region;
    tw_error error;
    node->id = region->nodes.count;
    region->touched = true;
    region->has_images |= node->op->layout != NULL;
    if (!make_inputs(node, inputs, num_data) || !twi_push(&region->nodes, node)) {
        twi_region_fail_memory(region);
        return false;
    }
    for (int i = 0; i < node->num_results; i++)
        if (node->results[i].dtype == TW_RESOURCE)
            node->resource_dtype = twi_attr_type(&node->attrs, "dtype");
    twi_order_insert(region, node, before);
    for (int i = 0; i < num_data; i++)
        link_edge(&node->inputs[i]);
    if (num_inputs > num_data)
        append_controls(node, inputs + num_data, num_inputs - num_data);
    node->opaque = twi_op_is(node->op, TWI_PASSES);
    for (int i = 0; i < num_data && node->opaque; i++)
        node->opaque = !twi_constant(inputs[i]);
    if (region->error.status == TW_OK && infer_shapes(node, &error) != TW_OK)
        twi_region_fail(region, error.status, "%s", error.message);
    return region->error.status == TW_OK;
}

twi_node *twi_node_make(twi_region *region, const twi_wish *w)
{
    int num_data = count_data(w->inputs, w->num_inputs);
    if (region->error.status != TW_OK)
        return NULL;
    twi_node *node = twi_arena_alloc(&region->arena, sizeof *node);
    if (!node || !w->op) {
        twi_region_fail(region, node ? TW_INTERNAL : TW_RESOURCE_EXHAUSTED, "cannot make '%s'", w->name);
        return NULL;
    }
    *node = (twi_node){.rank = w->rank, .device = w->device, .region = region, .op = w->op, .name = w->name,
                       .origin = w->origin};
    bool made = match(node, w, num_data) &&
                finish(node, w->inputs, w->num_inputs, num_data, latest(w));
    if (!made && (node->id >= region->nodes.count || region->nodes.items[node->id] != node))
        release_attrs(node);
    return made ? node : NULL;
}

twi_node *twi_node_copy(twi_region *region, const tw_node *origin, const twi_value *inputs, int num_inputs)
{
    if (region->error.status != TW_OK)
        return NULL;
    twi_node *node = twi_arena_alloc(&region->arena, sizeof *node);
    twi_result *results = twi_arena_alloc(&region->arena, sizeof *results * (size_t)origin->num_outputs);
    if (!node || !results) {
        twi_region_fail_memory(region);
        return NULL;
    }
    *node = (twi_node){.rank = origin->order, .device = -1, .region = region, .op = origin->op, .name = origin->name,
                       .origin = origin, .attrs = origin->attrs, .kernel_type = origin->kernel_type, .num_results = origin->num_outputs, .results = results};
    for (int i = 0; i < origin->num_outputs; i++)
        results[i].dtype = origin->output_types[i];
    return finish(node, inputs, num_inputs, count_data(inputs, num_inputs), region->last) ? node : NULL;
}

twi_node *twi_node_like(twi_region *region, const twi_node *like, const char *suffix, const twi_op *op,
                        const twi_value *inputs, int num_inputs, const twi_attr *attrs, int num_attrs)
{
    char *name = twi_arena_printf(&region->arena, "%s%s", like->name, suffix);
    if (!name) {
        twi_region_fail_memory(region);
        return NULL;
    }
    twi_node *node = twi_node_make(region, &(twi_wish){.op = op, .name = name, .origin = like->origin, .rank = like->rank,
                                                       .device = like->device, .behind = like->previous,
                                                       .inputs = inputs, .num_inputs = num_inputs, .attrs = attrs,
                                                       .num_attrs = num_attrs});
    bool guards = node && !twi_has_trait(node, TWI_CONSTANT) && !twi_has_trait(like, TWI_CHOOSE);
    if (guards) /* a choice's guard is its input's, not that of what it gives */
        twi_set_guard(node, like->guard);
    return node;
}

twi_node *twi_node_constant(twi_region *region, const twi_node *like, const char *suffix, tw_tensor *value)
{
    if (!value) {
        twi_region_fail_memory(region);
        return NULL;
    }
    tw_attr attrs[] = {tw_attr_tensor("value", value), tw_attr_type("dtype", tw_tensor_dtype(value))};
    return twi_node_like(region, like, suffix, region->known[TWI_OP_Const], NULL, 0, attrs, 2);
}

twi_node *twi_only_user(twi_value value)
{
    const twi_uses *uses = twi_uses_of(value);
    return uses->count == 1 && uses->first->user != value.node->region->end ? uses->first->user : NULL;
}
