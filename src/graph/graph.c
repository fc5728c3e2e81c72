/* graph.c - making graphs and nodes: types and attributes are matched with the op's signature, shapes are inferred,
 * the first error latches.
 * Never here: scopes (scopes.c), variables (variables.c), gradients (gradients.c). */
#include "graph/graph.h"

#include "base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tw_graph *tw_graph_create(void)
{
    tw_graph *graph = twi_alloc(sizeof *graph);
    if (graph && !(graph->scopes = twi_scopes_create())) {
        twi_free(graph);
        return NULL;
    }
    return graph;
}

void tw_graph_destroy(tw_graph *graph)
{
    if (!graph)
        return;
    for (int i = 0; i < graph->nodes.count; i++)
        for (int k = 0; k < graph->nodes.items[i]->attrs.count; k++)
            twi_attr_release(&graph->nodes.items[i]->attrs.items[k]);
    for (int i = 0; i < graph->collections.count; i++)
        twi_array_free(&graph->collections.items[i]->members);
    twi_array_free(&graph->nodes);
    twi_array_free(&graph->variables);
    twi_array_free(&graph->collections);
    twi_map_free(&graph->by_name);
    twi_map_free(&graph->used_names);
    twi_map_free(&graph->variables_by_name);
    twi_map_free(&graph->signatures);
    twi_scopes_destroy(graph->scopes);
    twi_arena_free(&graph->arena);
    twi_free(graph);
}

tw_status tw_graph_status(const tw_graph *graph)
{
    return graph->error.status;
}

const char *tw_graph_message(const tw_graph *graph)
{
    return graph->error.message;
}

tw_status twi_graph_latch(tw_graph *graph, const tw_error *error)
{
    if (graph->error.status == TW_OK)
        graph->error = *error;
    return graph->error.status;
}

tw_status twi_graph_fail(tw_graph *graph, tw_status code, const char *format, ...)
{
    if (graph->error.status != TW_OK)
        return graph->error.status;
    va_list arguments;
    va_start(arguments, format);
    twi_vfail(&graph->error, code, format, arguments);
    va_end(arguments);
    return code;
}

static tw_status fail_memory(tw_graph *graph)
{
    return twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while building the graph");
}

void tw_graph_set_seed(tw_graph *graph, int64_t seed)
{
    graph->seed = seed;
    graph->has_seed = true;
}

enum { MOST_NAME_BYTES = 512, MOST_ITEMS = 65535 /* of a list of inputs or outputs */ };

/* ---- names ------------------------------------------------------------------------------------------------- */

/* As in TensorFlow names differ if they differ in more than case; the counter of a name remembers what was given. */
const char *twi_graph_unique_name(tw_graph *graph, const char *base)
{
    char key[MOST_NAME_BYTES];
    const char *name = base;
    for (int number = 0;; number++) {
        if (number && !(name = twi_arena_printf(&graph->arena, "%s_%d", base, number)))
            return NULL;
        size_t length = strlen(name);
        if (length >= sizeof key) {
            twi_graph_fail(graph, TW_INVALID_ARGUMENT, "the name '%.60s...' is longer than %zu characters", name,
                           sizeof key - 1);
            return NULL;
        }
        for (size_t i = 0; i <= length; i++)
            key[i] = (char)tolower((unsigned char)name[i]);
        int *next = number ? NULL : twi_map_get(&graph->used_names, key);
        if (next) {
            number = *next - 1; /* skip the numbers known to be taken */
            (*next)++;
            continue;
        }
        if (number && twi_map_get(&graph->used_names, key))
            continue;
        int *counter = twi_arena_alloc(&graph->arena, sizeof *counter);
        char *kept = twi_arena_strdup(&graph->arena, key);
        if (!counter || !kept || !twi_map_put(&graph->used_names, kept, counter))
            return NULL;
        *counter = 1;
        return name == base ? twi_arena_strdup(&graph->arena, base) : name;
    }
}

tw_graph *tw_name(tw_graph *graph, const char *format, ...)
{
    char name[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    graph->next_name = twi_arena_strdup(&graph->arena, name);
    if (!graph->next_name)
        fail_memory(graph);
    return graph;
}

static bool valid_name(const char *name)
{
    if (!isalnum((unsigned char)name[0]) && name[0] != '.' && name[0] != '_')
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.\\-/>") == strlen(name);
}

/* ---- matching a call with a signature ---------------------------------------------------------------------- */

/* A node under construction: attribute values by place in the signature; kind 0 where none is known yet. */
typedef struct draft {
    tw_graph *graph;
    const twi_op *op;
    const twi_signature *signature;
    const char *name;
    const tw_output *inputs;
    int num_inputs;
    twi_attr *values;
} draft;

static twi_attr *value_of(const draft *d, const char *name)
{
    for (int i = 0; i < d->signature->num_attrs; i++)
        if (strcmp(d->signature->attrs[i].name, name) == 0)
            return &d->values[i];
    return NULL;
}

static tw_status draft_fail(const draft *d, const char *format, ...) TW_PRINTF(2, 3);
static tw_status draft_fail(const draft *d, const char *format, ...)
{
    char text[TW_MESSAGE_SIZE / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return twi_graph_fail(d->graph, TW_INVALID_ARGUMENT, "%s '%s': %s", d->op->name, d->name, text);
}

static const char *kind_name(tw_attr_kind kind)
{
    static const char *const names[] = {"nothing", "an int",     "a float", "a bool",    "a type",        "a string",
                                        "a shape", "a tensor",   "ints",    "floats",    "types",         "strings",
                                        "shapes"};
    return names[kind];
}

static tw_status take_given_attrs(draft *d, const tw_attr *attrs, int num_attrs)
{
    for (int i = 0; i < num_attrs; i++) {
        if (attrs[i].name[0] == '_')
            continue; /* "_class" and other marks are not the op's own */
        twi_attr *value = value_of(d, attrs[i].name);
        if (!value)
            return draft_fail(d, "has no attribute '%s'", attrs[i].name);
        tw_attr_kind wanted = d->signature->attrs[value - d->values].kind;
        if (attrs[i].kind != wanted)
            return draft_fail(d, "attribute '%s' is %s, expected %s", attrs[i].name, kind_name(attrs[i].kind),
                              kind_name(wanted));
        *value = attrs[i];
    }
    return TW_OK;
}

/* Lengths of lists that were given as attributes (N of N*T) may come from anywhere. */
static tw_status check_length(const draft *d, const twi_argument *argument)
{
    const twi_attr *value = argument->number_attr ? value_of(d, argument->number_attr) : NULL;
    if (!value || !value->kind || (value->i >= 0 && value->i <= MOST_ITEMS))
        return TW_OK;
    return draft_fail(d, "attribute '%s' is %lld, expected 0 to %d", argument->number_attr, (long long)value->i,
                      MOST_ITEMS);
}

static tw_status check_lengths(const draft *d)
{
    tw_status status = TW_OK;
    for (int i = 0; i < d->signature->num_inputs && status == TW_OK; i++)
        status = check_length(d, &d->signature->inputs[i]);
    for (int i = 0; i < d->signature->num_outputs && status == TW_OK; i++)
        status = check_length(d, &d->signature->outputs[i]);
    return status;
}

/* How many inputs argument i takes. Lists share what the single arguments leave over; an N that is not given yet is
 * found by division among the lists of that N. */
static int argument_length(const draft *d, int i)
{
    const twi_argument *argument = &d->signature->inputs[i];
    if (!argument->number_attr && !argument->list_attr)
        return 1;
    twi_attr *value = value_of(d, argument->number_attr ? argument->number_attr : argument->list_attr);
    if (value->kind)
        return argument->number_attr ? (int)value->i : value->count;
    int left = d->num_inputs, sharing = 0;
    for (int k = 0; k < d->signature->num_inputs; k++) {
        const twi_argument *other = &d->signature->inputs[k];
        bool same = argument->number_attr ? other->number_attr && !strcmp(other->number_attr, argument->number_attr)
                                          : k == i;
        if (same)
            sharing++;
        else
            left -= argument_length(d, k);
    }
    return left < 0 ? 0 : left / sharing;
}

static tw_status match_input(draft *d, const twi_argument *argument, int index, tw_dtype *list_types, int at)
{
    tw_dtype dtype = tw_output_dtype(d->inputs[index]), wanted = argument->dtype;
    if (argument->list_attr) {
        const twi_attr *given = value_of(d, argument->list_attr);
        list_types[at] = wanted = given->kind ? given->types[at] : dtype;
    } else if (argument->type_attr) {
        twi_attr *type = value_of(d, argument->type_attr);
        if (!type->kind)
            *type = tw_attr_type(argument->type_attr, dtype);
        wanted = type->type;
    }
    if (dtype != wanted)
        return draft_fail(d, "input %d ('%s', from '%s') is %s, expected %s", index, argument->name,
                          d->inputs[index].node->name, tw_dtype_name(dtype), tw_dtype_name(wanted));
    if (argument->is_ref && !twi_output_is_reference(d->inputs[index]))
        return draft_fail(d, "input %d ('%s') is to be written, and '%s' is not a variable", index, argument->name,
                          d->inputs[index].node->name);
    return TW_OK;
}

static tw_status match_inputs(draft *d)
{
    int lengths[64], total = 0;
    for (int i = 0; i < d->signature->num_inputs; i++) {
        total += lengths[i] = argument_length(d, i);
        if (d->signature->inputs[i].number_attr && lengths[i] < 1 && !(d->op->flags & TWI_REWRITTEN))
            return draft_fail(d, "the list '%s' is empty", d->signature->inputs[i].name);
    }
    if (total != d->num_inputs)
        return draft_fail(d, "got %d input%s, expected %d (%s)", d->num_inputs, d->num_inputs == 1 ? "" : "s", total,
                          d->op->inputs[0] ? d->op->inputs : "none");
    int index = 0;
    for (int i = 0; i < d->signature->num_inputs; i++) {
        const twi_argument *argument = &d->signature->inputs[i];
        tw_dtype *types = twi_arena_alloc(&d->graph->arena, sizeof *types * (size_t)lengths[i]);
        if (!types)
            return fail_memory(d->graph);
        for (int at = 0; at < lengths[i]; at++, index++) {
            tw_status status = match_input(d, argument, index, types, at);
            if (status != TW_OK)
                return status;
        }
        if (argument->number_attr && !value_of(d, argument->number_attr)->kind)
            *value_of(d, argument->number_attr) = tw_attr_int(argument->number_attr, lengths[i]);
        if (argument->list_attr && !value_of(d, argument->list_attr)->kind)
            *value_of(d, argument->list_attr) = tw_attr_types(argument->list_attr, types, lengths[i]);
    }
    return TW_OK;
}

static tw_status check_types(const draft *d, const char *name, const tw_dtype *types, int count)
{
    for (int i = 0; i < count; i++)
        if (tw_dtype_size(types[i]) == 0)
            return draft_fail(d, "attribute '%s' holds %d, which is not the number of a type", name, (int)types[i]);
    return TW_OK;
}

static tw_status check_value(const draft *d, const twi_attr_spec *spec, const twi_attr *value)
{
    tw_status status = spec->kind == TW_ATTR_TYPE    ? check_types(d, spec->name, &value->type, 1)
                       : spec->kind == TW_ATTR_TYPES ? check_types(d, spec->name, value->types, value->count)
                                                     : TW_OK;
    if (status != TW_OK)
        return status;
    if (spec->allowed_types && !(spec->allowed_types >> value->type & 1))
        return draft_fail(d, "attribute '%s' is %s, which this op does not take", spec->name,
                          tw_dtype_name(value->type));
    if (!spec->num_allowed_strings)
        return TW_OK;
    for (int i = 0; i < spec->num_allowed_strings; i++)
        if (strcmp(spec->allowed_strings[i], value->s.data) == 0)
            return TW_OK;
    return draft_fail(d, "attribute '%s' is \"%s\", expected %s%s%s", spec->name, value->s.data,
                      spec->allowed_strings[0], spec->num_allowed_strings > 1 ? " or " : "",
                      spec->num_allowed_strings > 1 ? spec->allowed_strings[1] : "");
}

static tw_status complete_attrs(draft *d)
{
    for (int i = 0; i < d->signature->num_attrs; i++) {
        const twi_attr_spec *spec = &d->signature->attrs[i];
        if (!d->values[i].kind) {
            if (!spec->has_default)
                return draft_fail(d, "attribute '%s' (%s) is required", spec->name, kind_name(spec->kind));
            d->values[i] = spec->value;
        }
        tw_status status = check_value(d, spec, &d->values[i]);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

static int output_length(const draft *d, const twi_argument *argument)
{
    if (argument->number_attr)
        return (int)value_of(d, argument->number_attr)->i;
    return argument->list_attr ? value_of(d, argument->list_attr)->count : 1;
}

static tw_status make_outputs(const draft *d, tw_node *node)
{
    for (int i = 0; i < d->signature->num_outputs; i++)
        node->num_outputs += output_length(d, &d->signature->outputs[i]);
    node->output_types = twi_arena_alloc(&d->graph->arena, sizeof *node->output_types * (size_t)node->num_outputs);
    node->output_shapes = twi_arena_alloc(&d->graph->arena, sizeof *node->output_shapes * (size_t)node->num_outputs);
    if (!node->output_types || !node->output_shapes)
        return fail_memory(d->graph);
    for (int i = 0, index = 0; i < d->signature->num_outputs; i++) {
        const twi_argument *argument = &d->signature->outputs[i];
        for (int at = 0, length = output_length(d, argument); at < length; at++, index++) {
            if (argument->list_attr)
                node->output_types[index] = value_of(d, argument->list_attr)->types[at];
            else if (argument->type_attr)
                node->output_types[index] = value_of(d, argument->type_attr)->type;
            else
                node->output_types[index] = argument->dtype;
            if (node->output_types[index] == TW_RESOURCE)
                node->resource_dtype = twi_attr_type(&node->attrs, "dtype");
        }
    }
    return TW_OK;
}

/* The op's own attributes in the order of its signature, then the marks ("_class"). */
static tw_status keep_attrs(const draft *d, const tw_attr *given, int num_given, tw_node *node)
{
    int marks = 0;
    for (int i = 0; i < num_given; i++)
        marks += given[i].name[0] == '_';
    int limit = d->signature->num_attrs + marks;
    node->attrs.items = twi_arena_alloc(&d->graph->arena, sizeof *node->attrs.items * (size_t)(limit + 1));
    if (!node->attrs.items)
        return fail_memory(d->graph);
    for (int i = 0; i < d->signature->num_attrs; i++)
        if (!twi_attr_copy(&d->graph->arena, &d->values[i], &node->attrs.items[node->attrs.count++]))
            return fail_memory(d->graph);
    for (int i = 0; i < num_given; i++)
        if (given[i].name[0] == '_' &&
            !twi_attr_copy(&d->graph->arena, &given[i], &node->attrs.items[node->attrs.count++]))
            return fail_memory(d->graph);
    return TW_OK;
}

const twi_signature *twi_graph_signature(tw_graph *graph, const twi_op *op)
{
    twi_signature *signature = twi_map_get(&graph->signatures, op->name);
    if (signature)
        return signature;
    signature = twi_arena_alloc(&graph->arena, sizeof *signature);
    if (!signature || !twi_signature_parse(&graph->arena, op, signature) ||
        !twi_map_put(&graph->signatures, op->name, signature))
        return NULL;
    return signature;
}

/* Everything but name, device and what scopes add. */
static tw_node *make_node(tw_graph *graph, const twi_op *op, const char *name, const tw_output *inputs, int num_inputs,
                          const tw_attr *attrs, int num_attrs)
{
    int num_data = 0;
    while (num_data < num_inputs && inputs[num_data].index >= 0)
        num_data++;
    draft d = {graph, op, twi_graph_signature(graph, op), name, inputs, num_data, NULL};
    if (!d.signature) {
        fail_memory(graph);
        return NULL;
    }
    for (int i = 0; i < num_inputs; i++)
        if (!inputs[i].node || inputs[i].node->graph != graph ||
            (i < num_data ? inputs[i].index >= inputs[i].node->num_outputs : inputs[i].index >= 0)) {
            draft_fail(&d, !inputs[i].node ? "input %d is missing (a dead output, or a gradient that is none)"
                           : inputs[i].node->graph != graph ? "input %d belongs to another graph"
                                                            : "input %d names an output that does not exist",
                       i);
            return NULL;
        }
    tw_node *node = twi_arena_alloc(&graph->arena, sizeof *node);
    d.values = twi_arena_alloc(&graph->arena, sizeof *d.values * (size_t)d.signature->num_attrs);
    if (!node || !d.values) {
        fail_memory(graph);
        return NULL;
    }
    *node = (tw_node){.graph = graph, .op = op, .name = name, .device = "", .assigned = -1, .num_inputs = num_data};
    node->inputs = twi_arena_copy(&graph->arena, inputs, sizeof *inputs * (size_t)num_data);
    if (!node->inputs) {
        fail_memory(graph);
        return NULL;
    }
    if (take_given_attrs(&d, attrs, num_attrs) != TW_OK || check_lengths(&d) != TW_OK || match_inputs(&d) != TW_OK ||
        complete_attrs(&d) != TW_OK)
        return NULL;
    if (keep_attrs(&d, attrs, num_attrs, node) != TW_OK || make_outputs(&d, node) != TW_OK) {
        for (int i = 0; i < node->attrs.count; i++)
            twi_attr_release(&node->attrs.items[i]);
        return NULL;
    }
    return node;
}

/* Room for `more` control inputs; taken at once, because an arena gives nothing back. */
static bool reserve_controls(tw_graph *graph, tw_node *node, int more)
{
    if (more == 0)
        return true;
    tw_node **grown = twi_arena_alloc(&graph->arena, sizeof *grown * (size_t)(node->num_control_inputs + more));
    if (!grown)
        return false;
    if (node->num_control_inputs)
        memcpy(grown, node->control_inputs, sizeof *grown * (size_t)node->num_control_inputs);
    node->control_inputs = grown;
    return true;
}

static void add_control(tw_node *node, tw_node *before)
{
    for (int i = 0; i < node->num_control_inputs; i++)
        if (node->control_inputs[i] == before)
            return;
    node->control_inputs[node->num_control_inputs++] = before;
}

/* Control inputs given among the inputs, shapes, and the node's place in the graph. */
static tw_node *finish_node(tw_graph *graph, tw_node *node, const tw_output *inputs, int num_inputs)
{
    bool fits = reserve_controls(graph, node, num_inputs - node->num_inputs);
    for (int i = node->num_inputs; i < num_inputs && fits; i++)
        add_control(node, inputs[i].node);
    tw_error error = {0};
    if (fits && twi_infer_shapes(node, &error) != TW_OK) {
        twi_graph_latch(graph, &error);
    } else {
        node->order = node->id = graph->nodes.count;
        fits = fits && twi_push(&graph->nodes, node) && twi_map_put(&graph->by_name, node->name, node);
        if (!fits) {
            if (graph->nodes.count > node->id)
                graph->nodes.count--;
            fail_memory(graph);
        }
    }
    if (graph->error.status == TW_OK)
        return node;
    for (int i = 0; i < node->attrs.count; i++)
        twi_attr_release(&node->attrs.items[i]);
    return NULL;
}

/* "loc:@X" for the node's `_class`: X's own groups if it has any. */
static tw_status add_colocation(tw_graph *graph, tw_node *node, const tw_node *with)
{
    const twi_attr *theirs = twi_attr_find(&with->attrs, "_class");
    char text[600];
    snprintf(text, sizeof text, "loc:@%s", with->name);
    tw_string own = {text, strlen(text)};
    twi_attr attr = theirs ? *theirs : tw_attr_strings("_class", &own, 1);
    if (twi_attr_find(&node->attrs, "_class"))
        return TW_OK;
    /* keep_attrs() left one free place at the end */
    return twi_attr_copy(&graph->arena, &attr, &node->attrs.items[node->attrs.count++]) ? TW_OK : fail_memory(graph);
}

tw_status twi_mark_node(tw_node *node, const char *mark)
{
    tw_graph *graph = node->graph;
    twi_attr attr = tw_attr_bool(mark, true);
    twi_attr *grown = twi_arena_alloc(&graph->arena, sizeof *grown * (size_t)(node->attrs.count + 2)); /* and `_class` */
    if (!grown)
        return fail_memory(graph);
    memcpy(grown, node->attrs.items, sizeof *grown * (size_t)node->attrs.count);
    node->attrs.items = grown;
    return twi_attr_copy(&graph->arena, &attr, &grown[node->attrs.count++]) ? TW_OK : fail_memory(graph);
}

/* The whole name of a new node; NULL when the graph has failed. A name that ends in '/' is that of a scope which was
 * entered before, and is taken as it is: the node that gives the scope its name. */
static const char *name_in_scope(tw_graph *graph, const char *wanted)
{
    size_t length = strlen(wanted);
    bool is_scope = length && wanted[length - 1] == '/';
    const char *scoped = is_scope ? twi_arena_printf(&graph->arena, "%.*s", (int)length - 1, wanted)
                                  : twi_arena_printf(&graph->arena, "%s%s", tw_name_scope(graph), wanted);
    if (!scoped) {
        fail_memory(graph);
        return NULL;
    }
    if (!valid_name(scoped)) {
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "'%s' is not a valid node name", scoped);
        return NULL;
    }
    if (is_scope && !twi_map_get(&graph->by_name, scoped))
        return scoped;
    const char *unique = twi_graph_unique_name(graph, scoped);
    if (!unique)
        fail_memory(graph);
    return unique;
}

tw_node *tw_add_node(tw_graph *graph, const char *op_name, const char *name, const tw_output *inputs, int num_inputs,
                     const tw_attr *attrs, int num_attrs)
{
    const char *wanted = name ? name : graph->next_name;
    graph->next_name = NULL;
    if (graph->error.status != TW_OK)
        return NULL;
    const twi_op *op = twi_op_find(op_name);
    if (!op) {
        twi_graph_fail(graph, TW_NOT_FOUND,
                       "Op type not registered '%s' in this library. Its name may be misspelt, or the op is not "
                       "implemented.",
                       op_name);
        return NULL;
    }
    if (!wanted)
        wanted = op_name;
    const char *unique = name_in_scope(graph, wanted);
    if (!unique)
        return NULL;
    tw_node *node = make_node(graph, op, unique, inputs, num_inputs, attrs, num_attrs);
    if (!node)
        return NULL;
    tw_node *const *controls;
    int num_controls = twi_scope_controls(graph, &controls);
    if (!reserve_controls(graph, node, num_controls))
        num_controls = 0, fail_memory(graph);
    for (int i = 0; i < num_controls; i++)
        add_control(node, controls[i]);
    tw_node *with = twi_scope_colocation(graph);
    if (with && add_colocation(graph, node, with) == TW_OK)
        node->device = with->device;
    else if (!with)
        node->device = twi_scope_device(graph, node);
    return finish_node(graph, node, inputs, num_inputs);
}

/* `name` and `device` as they are, in the graph's arena. */
static tw_node *add_without_scopes(tw_graph *graph, const twi_op *op, const char *name, const char *device,
                                   int assigned, const tw_output *inputs, int num_inputs, const tw_attr *attrs,
                                   int num_attrs)
{
    tw_node *node = make_node(graph, op, name, inputs, num_inputs, attrs, num_attrs);
    if (!node)
        return NULL;
    node->device = device;
    node->assigned = assigned;
    return finish_node(graph, node, inputs, num_inputs);
}

tw_node *twi_add_plain_node(tw_graph *graph, const char *op_name, const char *name, const char *device, int assigned,
                            const tw_output *inputs, int num_inputs, const tw_attr *attrs, int num_attrs)
{
    const twi_op *op = twi_op_find(op_name);
    if (graph->error.status != TW_OK)
        return NULL;
    if (!op) {
        twi_graph_fail(graph, TW_INTERNAL, "a rewrite made an unknown op '%s'", op_name);
        return NULL;
    }
    const char *unique = twi_graph_unique_name(graph, name);
    const char *kept = twi_arena_strdup(&graph->arena, device);
    if (!unique || !kept) {
        fail_memory(graph);
        return NULL;
    }
    return add_without_scopes(graph, op, unique, kept, assigned, inputs, num_inputs, attrs, num_attrs);
}

/* Marks a name as used that was given from outside. */
static bool use_name(tw_graph *graph, const char *name)
{
    char *key = twi_arena_strdup(&graph->arena, name);
    int *counter = twi_arena_alloc(&graph->arena, sizeof *counter);
    if (!key || !counter)
        return false;
    for (char *c = key; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    *counter = 1;
    return twi_map_get(&graph->used_names, key) || twi_map_put(&graph->used_names, key, counter);
}

tw_node *twi_add_named_node(tw_graph *graph, const twi_op *op, const char *name, const char *device,
                            const tw_output *inputs, int num_inputs, const tw_attr *attrs, int num_attrs)
{
    if (graph->error.status != TW_OK)
        return NULL;
    if (!valid_name(name) || strlen(name) >= MOST_NAME_BYTES) {
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "'%.60s' is not a valid node name", name);
        return NULL;
    }
    if (twi_map_get(&graph->by_name, name)) {
        twi_graph_fail(graph, TW_ALREADY_EXISTS, "Node name '%s' already exists in the Graph", name);
        return NULL;
    }
    const char *kept = twi_arena_strdup(&graph->arena, name), *where = twi_arena_strdup(&graph->arena, device);
    if (!kept || !where || !use_name(graph, kept)) {
        fail_memory(graph);
        return NULL;
    }
    return add_without_scopes(graph, op, kept, where, -1, inputs, num_inputs, attrs, num_attrs);
}

/* ---- shapes and constants ---------------------------------------------------------------------------------- */

tw_tensor *twi_constant_value(tw_output output)
{
    while (output.node && (!strcmp(output.node->op->name, "Identity") ||
                           !strcmp(output.node->op->name, "StopGradient")))
        output = output.node->inputs[0];
    if (!output.node || strcmp(output.node->op->name, "Const") != 0)
        return NULL;
    return twi_attr_tensor(&output.node->attrs, "value");
}

tw_status twi_infer_shapes(tw_node *node, tw_error *error)
{
    enum { FEW = 64 };
    tw_dtype few_types[FEW];
    tw_shape few_shapes[FEW];
    tw_tensor *few_values[FEW];
    int n = node->num_inputs;
    for (int i = 0; i < node->num_outputs; i++)
        node->output_shapes[i] = TW_UNKNOWN_SHAPE;
    tw_dtype *types = n > FEW ? twi_alloc_array((size_t)n, sizeof *types) : few_types;
    tw_shape *shapes = n > FEW ? twi_alloc_array((size_t)n, sizeof *shapes) : few_shapes;
    tw_tensor **values = n > FEW ? twi_alloc_array((size_t)n, sizeof *values) : few_values;
    tw_status status = TW_OK;
    if (!types || !shapes || !values) {
        status = twi_fail_memory(error, "inferring shapes");
        goto done;
    }
    for (int i = 0; i < n; i++) {
        types[i] = tw_output_dtype(node->inputs[i]);
        shapes[i] = node->inputs[i].node->output_shapes[node->inputs[i].index];
        values[i] = twi_constant_value(node->inputs[i]);
    }
    twi_inference context = {
        .node = node->name,
        .attrs = &node->attrs,
        .num_inputs = n,
        .input_types = types,
        .inputs = shapes,
        .input_values = values,
        .sources = node->inputs,
        .num_outputs = node->num_outputs,
        .output_types = node->output_types,
        .outputs = node->output_shapes,
        .error = error,
    };
    status = node->op->shape(&context);
    if (status != TW_OK)
        twi_prefix(error, "%s '%s'", node->op->name, node->name);
done:
    if (n > FEW) {
        twi_free(types);
        twi_free(shapes);
        twi_free(values);
    }
    return status;
}

/* ---- looking --------------------------------------------------------------------------------------------------- */

tw_output tw_node_output(tw_node *node, int index)
{
    if (!node)
        return (tw_output){0};
    return (tw_output){node, node->num_outputs ? index : -1};
}

const char *tw_node_name(const tw_node *node)
{
    return node->name;
}

const char *tw_node_op(const tw_node *node)
{
    return node->op->name;
}

const char *tw_node_device(const tw_node *node)
{
    return node->device;
}

int tw_node_num_inputs(const tw_node *node)
{
    return node->num_inputs;
}

tw_output tw_node_input(const tw_node *node, int i)
{
    return node->inputs[i];
}

int tw_node_num_outputs(const tw_node *node)
{
    return node->num_outputs;
}

int tw_node_num_control_inputs(const tw_node *node)
{
    return node->num_control_inputs;
}

tw_node *tw_node_control_input(const tw_node *node, int i)
{
    return node->control_inputs[i];
}

const tw_attr *tw_node_attr(const tw_node *node, const char *name)
{
    return twi_attr_find(&node->attrs, name);
}

tw_dtype tw_output_dtype(tw_output output)
{
    if (!output.node || output.index < 0 || output.index >= output.node->num_outputs)
        return TW_INVALID_DTYPE;
    return output.node->output_types[output.index];
}

tw_shape tw_output_shape(tw_output output)
{
    if (!output.node || output.index < 0 || output.index >= output.node->num_outputs)
        return TW_UNKNOWN_SHAPE;
    return output.node->output_shapes[output.index];
}

tw_node *tw_graph_find(const tw_graph *graph, const char *name)
{
    return twi_map_get(&graph->by_name, name);
}

int tw_graph_num_nodes(const tw_graph *graph)
{
    return graph->nodes.count;
}

tw_node *tw_graph_node(const tw_graph *graph, int i)
{
    return graph->nodes.items[i];
}

/* ---- collections --------------------------------------------------------------------------------------------- */

static twi_collection *find_collection(const tw_graph *graph, const char *name)
{
    for (int i = 0; i < graph->collections.count; i++)
        if (strcmp(graph->collections.items[i]->name, name) == 0)
            return graph->collections.items[i];
    return NULL;
}

void tw_add_to_collection(tw_graph *graph, const char *name, tw_output output)
{
    if (graph->error.status != TW_OK || !output.node)
        return;
    twi_collection *collection = find_collection(graph, name);
    if (!collection) {
        collection = twi_arena_alloc(&graph->arena, sizeof *collection);
        if (!collection || !(collection->name = twi_arena_strdup(&graph->arena, name)) ||
            !twi_push(&graph->collections, collection)) {
            fail_memory(graph);
            return;
        }
    }
    if (!twi_push(&collection->members, output))
        fail_memory(graph);
}

/* "tower_1" and "tower_1/" both mean the names below tower_1/. */
static bool inside_scope(const char *name, const char *scope)
{
    size_t length = scope ? strlen(scope) : 0;
    while (length && scope[length - 1] == '/')
        length--;
    return length == 0 || (strncmp(name, scope, length) == 0 && (name[length] == '/' || name[length] == 0));
}

int tw_get_collection(const tw_graph *graph, const char *name, const char *scope, tw_output *outputs, int limit)
{
    const twi_collection *collection = find_collection(graph, name);
    int count = 0;
    for (int i = 0; collection && i < collection->members.count; i++) {
        if (!inside_scope(collection->members.items[i].node->name, scope))
            continue;
        if (count < limit)
            outputs[count] = collection->members.items[i];
        count++;
    }
    return count;
}
