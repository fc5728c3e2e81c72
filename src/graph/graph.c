/* graph.c - making graphs and nodes: types and attributes are matched with the op's signature, shapes are inferred,
 * the first error latches.
 * Never here: scopes (scopes.c), variables (variables.c), gradients (gradients.c). */
#include "graph/blocks.h"
#include "graph/branches.h"
#include "graph/match.h"

#include "base/log.h"
#include "base/text.h"
#include "device/kernel.h"

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
    if (graph->error.status == TW_OK && twi_scopes_check(graph, "the graph is destroyed") != TW_OK)
        twi_log(TWI_LOG_ERROR, "%s", tw_graph_message(graph));
    for (int i = 0; i < graph->nodes.count; i++)
        twi_attrs_release(&graph->nodes.items[i]->attrs);
    for (int i = 0; i < graph->collections.count; i++)
        twi_array_free(&graph->collections.items[i]->members);
    twi_free(graph->marks);
    twi_array_free(&graph->nodes);
    twi_array_free(&graph->variables);
    twi_array_free(&graph->collections);
    twi_map_free(&graph->by_name);
    twi_map_free(&graph->used_names);
    twi_map_free(&graph->variables_by_name);
    twi_map_free(&graph->files);
    twi_scopes_destroy(graph->scopes);
    twi_branches_destroy(graph->conditions);
    twi_blocks_free(graph);
    twi_arena_free(&graph->arena);
    twi_free(graph);
}

/* No graph has failed as well: tw_graph_create() had no memory for one, which nobody had to look at. */
static const tw_error no_graph = {TW_INVALID_ARGUMENT,
                                  "the graph is NULL: tw_graph_create() had no memory, or was not called"};

tw_status tw_graph_status(const tw_graph *graph)
{
    return graph ? graph->error.status : no_graph.status;
}

const char *tw_graph_message(const tw_graph *graph)
{
    return graph ? graph->error.message : no_graph.message;
}

/* ---- where it is built ------------------------------------------------------------------------------------- */

tw_graph *tw_graph_at(tw_graph *graph, const char *file, int line)
{
    TWI_NEED_OR(graph, NULL);
    graph->line = line;
    if (file && graph->file && strcmp(file, graph->file) == 0)
        return graph;
    graph->file = file ? twi_map_get(&graph->files, file) : NULL;
    if (graph->file || !file)
        return graph;
    char *copy = twi_arena_copy(&graph->arena, file, strlen(file) + 1);
    if (copy && twi_map_put(&graph->files, copy, copy)) /* without memory messages say less */
        graph->file = copy;
    return graph;
}

/* Unless the message has it already. */
static void add_place(tw_error *error, const char *file, int line)
{
    char place[300];
    size_t used = strlen(error->message);
    if (!file)
        return;
    snprintf(place, sizeof place, " (%s:%d)", file, line);
    if (!strstr(error->message, place))
        snprintf(error->message + used, sizeof error->message - used, "%s", place);
}

/* The node called so, but for ":0" behind. */
static const tw_node *node_named(const tw_graph *graph, const char *name, size_t length)
{
    char key[TWI_NAME_BYTES];
    if (length >= sizeof key)
        return NULL;
    memcpy(key, name, length);
    key[length] = 0;
    const tw_node *node = twi_map_get(&graph->by_name, key);
    key[strcspn(key, ":")] = 0;
    return node ? node : twi_map_get(&graph->by_name, key);
}

void twi_graph_say_where(const tw_graph *graph, tw_error *error)
{
    static const struct {
        const char *begin, *end;
    } marks[] = {{"{{node ", "}}"}, {"'", "'"}};
    const tw_node *node = NULL;
    for (size_t i = 0; i < sizeof marks / sizeof *marks && error && !node; i++) {
        const char *name = strstr(error->message, marks[i].begin), *end;
        while (name && !node && (end = strstr(name += strlen(marks[i].begin), marks[i].end))) {
            node = node_named(graph, name, (size_t)(end - name));
            name = strstr(end + strlen(marks[i].end), marks[i].begin);
        }
    }
    if (node)
        add_place(error, node->file, node->line);
}

/* Whether a text names the node: between marks or at its beginning, and not as the beginning of another name. */
static bool names_node(const char *text, const char *name)
{
    static const char mark[] = "{{node ";
    static const char of_names[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/-.";
    enum { MARK = sizeof mark - 1 };
    size_t length = strlen(name);
    bool named = false;
    for (const char *at = text; length && !named && (at = strstr(at, name)); at++) {
        bool begins = at == text ? at[length] == ':' : strchr("'\"[({", at[-1]) != NULL;
        bool marked = at - text >= MARK && strncmp(at - MARK, mark, MARK) == 0;
        named = (begins || marked) && (!at[length] || !strchr(of_names, at[length]));
    }
    return named;
}

void twi_say_node(tw_error *error, const char *name)
{
    char text[TW_MESSAGE_SIZE];
    if (!error || names_node(error->message, name))
        return;
    memcpy(text, error->message, sizeof text);
    twi_fail(error, error->status, "%s [[{{node %s}}]]", text, name);
}

/* ---- errors ------------------------------------------------------------------------------------------------ */

tw_status twi_graph_latch(tw_graph *graph, const tw_error *error)
{
    if (!graph)
        return no_graph.status;
    if (graph->error.status != TW_OK)
        return graph->error.status;
    graph->error = *error;
    add_place(&graph->error, graph->file, graph->line);
    return graph->error.status;
}

tw_status tw_graph_fail(tw_graph *graph, tw_status code, const char *format, ...)
{
    if (!graph)
        return no_graph.status;
    if (graph->error.status != TW_OK)
        return graph->error.status;
    TWI_NEED_IN(graph, format, "format", TW_INVALID_ARGUMENT);
    va_list arguments;
    va_start(arguments, format);
    twi_vfail(&graph->error, code, format, arguments);
    va_end(arguments);
    add_place(&graph->error, graph->file, graph->line);
    return code;
}

void *tw_graph_keep(tw_graph *graph, const void *from, size_t bytes)
{
    TWI_NEED_OR(graph, NULL);
    return from ? twi_arena_copy(&graph->arena, from, bytes) : twi_arena_alloc(&graph->arena, bytes);
}

static tw_status fail_memory(tw_graph *graph)
{
    return twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while building the graph");
}

void tw_graph_set_seed(tw_graph *graph, int64_t seed)
{
    TWI_NEED_OR(graph, );
    graph->seed = seed;
    graph->has_seed = true;
}

/* ---- names ------------------------------------------------------------------------------------------------- */

static tw_status fail_long_name(tw_graph *graph, const char *name)
{
    return twi_graph_fail(graph, TW_INVALID_ARGUMENT, "the name '%.60s...' is longer than %d characters", name,
                          TWI_NAME_BYTES - 1);
}

/* Writes `base`, or base_NUMBER, into name[size], and the same in lower case into key[size]. */
static tw_status write_name(tw_graph *graph, const char *base, int number, char *name, char *key, size_t size)
{
    int length = number ? snprintf(name, size, "%s_%d", base, number) : snprintf(name, size, "%s", base);
    if (length >= (int)size)
        return fail_long_name(graph, name);
    for (int i = 0; i <= length; i++)
        key[i] = (char)tolower((unsigned char)name[i]);
    return TW_OK;
}

/* As in TensorFlow names differ if they differ in more than case. A used name has the number to try first when it is
 * asked for again: all below are taken. */
const char *twi_graph_unique_name(tw_graph *graph, const char *base)
{
    char name[TWI_NAME_BYTES], key[TWI_NAME_BYTES];
    if (write_name(graph, base, 0, name, key, sizeof name) != TW_OK)
        return NULL;
    int *next = twi_map_get(&graph->used_names, key);
    for (bool taken = next; taken; taken = twi_map_get(&graph->used_names, key))
        if (write_name(graph, base, (*next)++, name, key, sizeof name) != TW_OK)
            return NULL;
    const char *given = twi_arena_strdup(&graph->arena, name);
    int *counter = twi_arena_alloc(&graph->arena, sizeof *counter);
    char *kept = twi_arena_strdup(&graph->arena, key);
    if (!given || !counter || !kept || !twi_map_put(&graph->used_names, kept, counter))
        return NULL;
    *counter = 1;
    return given;
}

tw_graph *tw_name(tw_graph *graph, const char *format, ...)
{
    char name[512];
    TWI_NEED_OR(graph && format, graph);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    graph->next_name = twi_arena_strdup(&graph->arena, name);
    if (!graph->next_name)
        fail_memory(graph);
    return graph;
}

bool twi_is_node_name(const char *name)
{
    if (!isalnum((unsigned char)name[0]) && name[0] != '.' && name[0] != '_')
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.\\-/>") == strlen(name);
}

/* ---- nodes ------------------------------------------------------------------------------------------------- */

/* Whether all inputs are outputs of this graph; control inputs (index -1) come last. */
static bool check_inputs(tw_graph *graph, const twi_op *op, const char *name, const tw_output *inputs, int num_inputs,
                         int num_data)
{
    for (int i = 0; i < num_inputs; i++) {
        const tw_node *from = inputs[i].node;
        const char *wrong = !from                  ? "is missing (a dead output, or a gradient that is none)"
                            : from->graph != graph ? "belongs to another graph"
                            : (i < num_data ? inputs[i].index >= from->num_outputs : inputs[i].index >= 0)
                                ? "names an output that does not exist"
                                : NULL;
        if (wrong)
            return twi_graph_fail(graph, TW_INVALID_ARGUMENT, "%s '%s': input %d %s", op->name, name, i, wrong), false;
    }
    return true;
}

/* Everything but name, device and what scopes add. */
static tw_node *make_node(tw_graph *graph, const twi_op *op, const char *name, const tw_output *inputs, int num_inputs,
                          const tw_attr *attrs, int num_attrs)
{
    tw_error error = {0};
    int num_data = 0;
    while (num_data < num_inputs && inputs[num_data].index >= 0)
        num_data++;
    if (!check_inputs(graph, op, name, inputs, num_inputs, num_data))
        return NULL;
    tw_node *node = twi_arena_alloc(&graph->arena, sizeof *node);
    tw_dtype *types = twi_arena_alloc(&graph->arena, sizeof *types * (size_t)num_data);
    twi_call call = {.arena = &graph->arena, .op = op, .signature = twi_op_signature(op), .node = name,
                     .input_types = types, .num_inputs = num_data, .sources = inputs, .attrs = attrs,
                     .num_attrs = num_attrs, .error = &error};
    if (!node || !types || !call.signature) {
        fail_memory(graph);
        return NULL;
    }
    for (int i = 0; i < num_data; i++)
        types[i] = tw_output_dtype(inputs[i]);
    if (twi_match_call(&call) != TW_OK) {
        twi_graph_latch(graph, &error);
        return NULL;
    }
    *node = (tw_node){.graph = graph, .op = op, .name = name, .device = "", .num_inputs = num_data,
                      .file = graph->file, .line = graph->line,
                      .attrs = call.completed, .num_outputs = call.num_outputs, .output_types = call.output_types};
    node->inputs = twi_arena_copy(&graph->arena, inputs, sizeof *inputs * (size_t)num_data);
    node->output_shapes = twi_arena_alloc(&graph->arena, sizeof *node->output_shapes * (size_t)node->num_outputs);
    if (!node->inputs || !node->output_shapes) {
        twi_attrs_release(&node->attrs);
        fail_memory(graph);
        return NULL;
    }
    node->kernel_type = twi_kernel_type(&node->attrs);
    for (int i = 0; i < node->num_outputs; i++)
        if (node->output_types[i] == TW_RESOURCE)
            node->resource_dtype = twi_op_is(op, TWI_SWITCH | TWI_MERGE | TWI_ENTER | TWI_EXIT | TWI_NEXT | TWI_PASSES) && num_data
                                       ? inputs[0].node->resource_dtype
                                       : twi_attr_type(&node->attrs, "dtype");
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

/* Once each; a node gets all of its control inputs before the next node is made. */
static void add_control(tw_node *node, tw_node *before)
{
    if (before->awaited_by == node)
        return;
    before->awaited_by = node;
    node->control_inputs[node->num_control_inputs++] = before;
}

/* Control inputs given among the inputs, shapes, and the node's place in the graph. */
static tw_node *finish_node(tw_graph *graph, tw_node *node, const tw_output *inputs, int num_inputs)
{
    bool fits = graph->error.status == TW_OK && reserve_controls(graph, node, num_inputs - node->num_inputs);
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
    if (graph->error.status == TW_OK) {
        graph->branches = graph->branches || twi_op_is(node->op, TWI_SWITCH | TWI_MERGE);
        graph->loops = graph->loops || twi_op_is(node->op, TWI_ENTER | TWI_EXIT | TWI_NEXT);
        return node;
    }
    twi_attrs_release(&node->attrs);
    return NULL;
}

static tw_status add_attr(tw_graph *graph, tw_node *node, const twi_attr *attr)
{
    twi_attr *grown = twi_arena_alloc(&graph->arena, sizeof *grown * (size_t)(node->attrs.count + 1));
    if (!grown)
        return fail_memory(graph);
    if (node->attrs.count)
        memcpy(grown, node->attrs.items, sizeof *grown * (size_t)node->attrs.count);
    node->attrs.items = grown;
    return twi_attr_copy(&graph->arena, attr, &grown[node->attrs.count++]) ? TW_OK : fail_memory(graph);
}

/* "loc:@X" for the node's `_class`: X's own groups if it has any. */
static tw_status add_colocation(tw_graph *graph, tw_node *node, const tw_node *with)
{
    const twi_attr *theirs = twi_attr_find(&with->attrs, "_class");
    char text[TWI_NAME_BYTES + 8];
    snprintf(text, sizeof text, "loc:@%s", with->name);
    tw_string own = {text, strlen(text)};
    twi_attr attr = theirs ? *theirs : tw_attr_strings("_class", &own, 1);
    if (twi_attr_find(&node->attrs, "_class"))
        return TW_OK;
    node->beside = theirs ? with->beside : with;
    return add_attr(graph, node, &attr);
}

tw_status twi_mark_node(tw_node *node, const char *mark)
{
    twi_attr attr = tw_attr_bool(mark, true);
    return add_attr(node->graph, node, &attr);
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
    if (!twi_is_node_name(scoped)) {
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

/* A node with what the open scopes give it. */
static tw_node *add_in_scopes(tw_graph *graph, const twi_op *op, const char *name, const tw_output *inputs,
                              int num_inputs, const tw_attr *attrs, int num_attrs)
{
    tw_node *pivot = NULL, *const *controls;
    twi_block *block = twi_scope_block(graph);
    bool leads = graph->latest_block && !twi_scope_is_raw(graph);
    tw_output *inside =
        leads && block ? twi_arena_alloc(&graph->arena, sizeof *inside * (size_t)(num_inputs + 1)) : NULL;
    if (leads && block && !inside)
        return fail_memory(graph), NULL;
    if (leads && !twi_block_inputs(graph, block, inputs, num_inputs, inside, &pivot))
        return NULL;
    inputs = inside ? inside : inputs;
    tw_node *node = make_node(graph, op, name, inputs, num_inputs, attrs, num_attrs);
    if (!node)
        return NULL;
    int num_controls = twi_scope_controls(graph, &controls);
    if (!reserve_controls(graph, node, num_controls + (pivot != NULL)))
        num_controls = 0, pivot = NULL, fail_memory(graph);
    for (int i = 0; i < num_controls; i++)
        add_control(node, controls[i]);
    if (pivot)
        add_control(node, pivot);
    node->block = block;
    tw_node *with = twi_scope_colocation(graph);
    if (with && add_colocation(graph, node, with) == TW_OK)
        node->device = with->device;
    else if (!with)
        node->device = twi_scope_device(graph, node);
    return finish_node(graph, node, inputs, num_inputs);
}

/* What TensorFlow's class of C++ that makes an op is called, where it is not as the op is. */
static const char *class_name(const char *op)
{
    static const char *const others[][2] = {
        {"ConcatV2", "Concat"}, {"ListDiff", "SetDiff1D"}, {"Mul", "Multiply"},  {"Neg", "Negate"},
        {"Pack", "Stack"},      {"ReverseV2", "Reverse"},  {"Select", "Where3"}, {"Sub", "Subtract"},
        {"TopKV2", "TopK"},     {"Unpack", "Unstack"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(op, others[i][0]) == 0)
            return others[i][1];
    return op;
}

tw_node *tw_add_node(tw_graph *graph, const char *op_name, const char *name, const tw_output *inputs, int num_inputs,
                     const tw_attr *attrs, int num_attrs)
{
    TWI_NEED_OR(graph, NULL);
    const char *wanted = name ? name : graph->next_name;
    graph->next_name = NULL;
    if (graph->error.status != TW_OK)
        return NULL;
    if (!op_name || (!inputs && num_inputs > 0) || (!attrs && num_attrs > 0)) {
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "a node of op '%s': %s", op_name ? op_name : "",
                       !op_name ? "the op is NULL" : !inputs && num_inputs > 0 ? "its inputs are NULL" : "its attributes are NULL");
        return NULL;
    }
    const twi_op *op = twi_op_find(op_name);
    if (!op) {
        twi_graph_fail(graph, TW_NOT_FOUND,
                       "Op type not registered '%s' in this library. Its name may be misspelt, or the op is not "
                       "implemented.",
                       op_name);
        return NULL;
    }
    if (!wanted)
        wanted = graph->named_by_class ? class_name(op_name) : op_name;
    const char *unique = name_in_scope(graph, wanted);
    if (!unique)
        return NULL;
    return add_in_scopes(graph, op, unique, inputs, num_inputs, attrs, num_attrs);
}

/* `name` and `device` as they are, in the graph's arena. */
static tw_node *add_without_scopes(tw_graph *graph, const twi_op *op, const char *name, const char *device,
                                   const tw_output *inputs, int num_inputs, const tw_attr *attrs, int num_attrs)
{
    tw_node *node = make_node(graph, op, name, inputs, num_inputs, attrs, num_attrs);
    if (!node)
        return NULL;
    node->device = device;
    return finish_node(graph, node, inputs, num_inputs);
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
    if (strlen(name) >= TWI_NAME_BYTES) {
        fail_long_name(graph, name);
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
    return add_without_scopes(graph, op, kept, where, inputs, num_inputs, attrs, num_attrs);
}

/* ---- taking back --------------------------------------------------------------------------------------------- */

static void forget_node(tw_graph *graph, tw_node *node)
{
    char key[TWI_NAME_BYTES];
    size_t length = strlen(node->name);
    for (size_t i = 0; i <= length && i < sizeof key; i++)
        key[i] = (char)tolower((unsigned char)node->name[i]);
    twi_map_forget(&graph->by_name, node->name);
    twi_map_forget(&graph->used_names, key);
    twi_attrs_release(&node->attrs);
}

void twi_graph_cut(tw_graph *graph, int count)
{
    int kept = 0;
    for (int i = 0; i < graph->variables.count; i++) {
        tw_variable *variable = graph->variables.items[i];
        if (variable->handle.node->id < count)
            graph->variables.items[kept++] = variable;
        else
            twi_map_forget(&graph->variables_by_name, variable->name);
    }
    graph->variables.count = kept;
    int collections = 0;
    for (int i = 0; i < graph->collections.count; i++) {
        twi_collection *collection = graph->collections.items[i];
        kept = 0;
        for (int k = 0; k < collection->members.count; k++)
            if (collection->members.items[k].node->id < count)
                collection->members.items[kept++] = collection->members.items[k];
        collection->members.count = kept;
        if (kept)
            graph->collections.items[collections++] = collection;
        else
            twi_array_free(&collection->members);
    }
    graph->collections.count = collections;
    while (graph->nodes.count > count)
        forget_node(graph, graph->nodes.items[--graph->nodes.count]);
    twi_branches_destroy(graph->conditions); /* whoever asks again finds out again */
    graph->conditions = NULL;
}

void tw_graph_take_back(tw_graph *graph, int num_nodes)
{
    TWI_NEED_OR(graph, );
    if (num_nodes >= 0 && num_nodes <= graph->nodes.count)
        twi_graph_cut(graph, num_nodes);
    graph->error = (tw_error){0};
}

/* ---- shapes and constants ---------------------------------------------------------------------------------- */

/* Each node that passes values on knows which constants they are, so nobody walks along a chain of them. */
static tw_node *find_constant(tw_output output)
{
    if (!output.node || twi_op_is(output.node->op, TWI_CONSTANT))
        return output.node;
    return output.node->constants ? output.node->constants[output.index] : NULL;
}

static bool note_constants(tw_node *node)
{
    node->constants = twi_arena_alloc(&node->graph->arena, sizeof *node->constants * (size_t)node->num_outputs);
    for (int i = 0; i < node->num_outputs && node->constants; i++)
        node->constants[i] = find_constant(node->inputs[i]);
    return node->constants != NULL;
}

tw_tensor *twi_constant_value(tw_output output)
{
    tw_node *constant = find_constant(output);
    return constant ? twi_attr_tensor(&constant->attrs, "value") : NULL;
}

tw_status twi_infer_shapes(tw_node *node, tw_error *error)
{
    enum { FEW = 64 };
    tw_dtype few_types[FEW];
    tw_shape few_shapes[FEW];
    tw_tensor *few_values[FEW];
    int n = node->num_inputs;
    bool any_constant = false;
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
        any_constant = any_constant || values[i];
    }
    if (any_constant && twi_op_is(node->op, TWI_PASSES) && !node->constants && !note_constants(node)) {
        status = twi_fail_memory(error, "inferring shapes");
        goto done;
    }
    twi_inference context = {
        .op = node->op,
        .node = node->name,
        .attrs = &node->attrs,
        .num_inputs = n,
        .input_types = types,
        .inputs = shapes,
        .input_values = values,
        .sources = node->inputs,
        .is_building = true,
        .num_outputs = node->num_outputs,
        .output_types = node->output_types,
        .outputs = node->output_shapes,
        .error = error,
    };
    status = node->op->shape(&context);
    for (int i = 0; i < node->num_outputs && status == TW_OK; i++)
        if (node->output_shapes[i].rank > TW_MAX_RANK) /* so that no rule meets what it has no room for */
            status = twi_fail(error, TW_INVALID_ARGUMENT, "its output %d has %d dimensions, the most are %d", i,
                              node->output_shapes[i].rank, TW_MAX_RANK);
    if (status == TW_INVALID_ARGUMENT && node->graph->may_misfit) {
        status = TW_OK;
        node->graph->may_misfit = false;
        *error = (tw_error){0};
        for (int i = 0; i < node->num_outputs; i++)
            node->output_shapes[i] = TW_UNKNOWN_SHAPE;
    }
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
    TWI_NEED_OR(node, "");
    return node->name;
}

const char *tw_node_op(const tw_node *node)
{
    TWI_NEED_OR(node, "");
    return node->op->name;
}

const char *tw_node_device(const tw_node *node)
{
    TWI_NEED_OR(node, "");
    return node->device;
}

int tw_node_num_inputs(const tw_node *node)
{
    TWI_NEED_OR(node, 0);
    return node->num_inputs;
}

tw_output tw_node_input(const tw_node *node, int i)
{
    TWI_NEED_OR(node, (tw_output){0});
    return i >= 0 && i < node->num_inputs ? node->inputs[i] : (tw_output){0};
}

tw_output tw_output_passed(tw_output output)
{
    const tw_node *node = output.node;
    bool passes = node && twi_op_is(node->op, TWI_PASSES) && !node->op->planned_as && !node->num_control_inputs;
    return passes && output.index >= 0 ? tw_node_input(node, output.index) : (tw_output){0};
}

int tw_node_num_outputs(const tw_node *node)
{
    TWI_NEED_OR(node, 0);
    return node->num_outputs;
}

bool tw_node_is_constant(const tw_node *node)
{
    TWI_NEED_OR(node, false);
    return twi_op_is(node->op, TWI_CONSTANT);
}

bool tw_node_may_be_fed(const tw_node *node)
{
    TWI_NEED_OR(node, false);
    return twi_op_is(node->op, TWI_MAY_BE_FED);
}

bool tw_node_is_placeholder(const tw_node *node)
{
    TWI_NEED_OR(node, false);
    return twi_op_is(node->op, TWI_PLACEHOLDER);
}

bool tw_node_is_variable(const tw_node *node)
{
    TWI_NEED_OR(node, false);
    return node->op->makes == TWI_MAKES_VARIABLE;
}

bool tw_node_tells_shapes(const tw_node *node)
{
    TWI_NEED_OR(node, false);
    return twi_op_is(node->op, TWI_METADATA);
}

bool tw_node_is_unknown(const tw_node *node)
{
    TWI_NEED_OR(node, false);
    return twi_op_is(node->op, TWI_UNKNOWN);
}

tw_status twi_fail_unknown(const tw_node *node, tw_error *error)
{
    return twi_fail(error, TW_NOT_FOUND, "node '%s' (%s): %s", node->name, twi_attr_string(&node->attrs, "op", ""),
                    twi_attr_string(&node->attrs, "why", ""));
}

int tw_node_num_control_inputs(const tw_node *node)
{
    TWI_NEED_OR(node, 0);
    return node->num_control_inputs;
}

tw_node *tw_node_control_input(const tw_node *node, int i)
{
    TWI_NEED_OR(node, NULL);
    return i >= 0 && i < node->num_control_inputs ? node->control_inputs[i] : NULL;
}

const tw_attr *tw_node_attr(const tw_node *node, const char *name)
{
    TWI_NEED_OR(node, NULL);
    TWI_NEED_OR(name, NULL);
    return twi_attr_find(&node->attrs, name);
}

int tw_node_num_attrs(const tw_node *node)
{
    TWI_NEED_OR(node, 0);
    return node->attrs.count;
}

const tw_attr *tw_node_attr_at(const tw_node *node, int i)
{
    TWI_NEED_OR(node, NULL);
    return i >= 0 && i < node->attrs.count ? &node->attrs.items[i] : NULL;
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

tw_status tw_output_refine(tw_output output, tw_shape shape, tw_error *error)
{
    TWI_NEED(output.node, "output", error);
    if (output.index < 0 || output.index >= output.node->num_outputs)
        return twi_fail(error, TW_INVALID_ARGUMENT, "'%s' has no output %d", output.node->name, output.index);
    tw_status status = shape.rank > TW_MAX_RANK
                           ? twi_fail(error, TW_INVALID_ARGUMENT, "a shape has %d dimensions, the most are %d",
                                      shape.rank, TW_MAX_RANK)
                           : twi_merge_shapes(output.node->output_shapes[output.index], shape,
                                              &output.node->output_shapes[output.index], error);
    if (status != TW_OK)
        twi_prefix(error, "'%s:%d'", output.node->name, output.index);
    return status;
}

tw_node *tw_graph_find(const tw_graph *graph, const char *name)
{
    TWI_NEED_OR(graph && name, NULL);
    return twi_map_get(&graph->by_name, name);
}

int tw_graph_num_nodes(const tw_graph *graph)
{
    TWI_NEED_OR(graph, 0);
    return graph->nodes.count;
}

int tw_node_number(const tw_node *node)
{
    TWI_NEED_OR(node, -1);
    return node->id;
}

tw_node *tw_graph_node(const tw_graph *graph, int i)
{
    TWI_NEED_OR(graph, NULL);
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
    TWI_NEED_OR(graph, );
    TWI_NEED_IN(graph, name, "collection", );
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
    TWI_NEED_OR(graph, 0);
    TWI_NEED_OR(name, 0);
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

int tw_graph_num_collections(const tw_graph *graph)
{
    TWI_NEED_OR(graph, 0);
    return graph->collections.count;
}

const char *tw_graph_collection(const tw_graph *graph, int i)
{
    TWI_NEED_OR(graph, NULL);
    return i >= 0 && i < graph->collections.count ? graph->collections.items[i]->name : NULL;
}
