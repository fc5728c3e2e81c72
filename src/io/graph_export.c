/* graph_export.c - a graph as a GraphDef message, of TensorFlow's ops alone: what brings a step's examples becomes
 * placeholders, one for each of its outputs, and a data set on a device a variable. What takes them from a queue or a
 * reader is TensorFlow's. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/graph.h"
#include "io/graph_def.h"
#include "format/proto/graph.pb-c.h"
#include "format/tensor_proto.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <tower/io.h>

#define OUTPUT_SHAPES "_output_shapes"

/* Everything below lives in one arena and goes with it; NULL means that it is full. */

static ProtobufCBinaryData bytes_of(tw_string string)
{
    return (ProtobufCBinaryData){string.size, (uint8_t *)string.data};
}

static Twi__TensorShapeProto **shape_list(twi_arena *arena, const tw_shape *shapes, int count)
{
    Twi__TensorShapeProto **list = twi_arena_alloc(arena, sizeof *list * (size_t)count);
    for (int i = 0; i < count && list; i++)
        if (!(list[i] = twi_shape_to_proto(arena, shapes[i])))
            return NULL;
    return list;
}

static bool fill_list(twi_arena *arena, const twi_attr *attr, Twi__AttrValue__ListValue *list)
{
    size_t count = (size_t)attr->count;
    switch (attr->kind) {
    case TW_ATTR_INTS:
        list->n_i = count;
        list->i = (int64_t *)attr->ints;
        return true;
    case TW_ATTR_FLOATS:
        list->n_f = count;
        list->f = (float *)attr->floats;
        return true;
    case TW_ATTR_TYPES:
        list->n_type = count;
        list->type = twi_arena_alloc(arena, sizeof *list->type * count);
        for (size_t i = 0; i < count && list->type; i++)
            list->type[i] = (int32_t)attr->types[i];
        return list->type != NULL;
    case TW_ATTR_STRINGS:
        list->n_s = count;
        list->s = twi_arena_alloc(arena, sizeof *list->s * count);
        for (size_t i = 0; i < count && list->s; i++)
            list->s[i] = bytes_of(attr->strings[i]);
        return list->s != NULL;
    default: /* TW_ATTR_SHAPES */
        list->n_shape = count;
        list->shape = shape_list(arena, attr->shapes, attr->count);
        return list->shape != NULL;
    }
}

static bool fill_value(twi_arena *arena, const twi_attr *attr, Twi__AttrValue *value)
{
    switch (attr->kind) {
    case TW_ATTR_INT:
        value->value_case = TWI__ATTR_VALUE__VALUE_I;
        value->i = attr->i;
        return true;
    case TW_ATTR_FLOAT:
        value->value_case = TWI__ATTR_VALUE__VALUE_F;
        value->f = attr->f;
        return true;
    case TW_ATTR_BOOL:
        value->value_case = TWI__ATTR_VALUE__VALUE_B;
        value->b = attr->b;
        return true;
    case TW_ATTR_TYPE:
        value->value_case = TWI__ATTR_VALUE__VALUE_TYPE;
        value->type = (int32_t)attr->type;
        return true;
    case TW_ATTR_STRING:
        value->value_case = TWI__ATTR_VALUE__VALUE_S;
        value->s = bytes_of(attr->s);
        return true;
    case TW_ATTR_SHAPE:
        value->value_case = TWI__ATTR_VALUE__VALUE_SHAPE;
        value->shape = twi_shape_to_proto(arena, attr->shape);
        return value->shape != NULL;
    case TW_ATTR_TENSOR:
        value->value_case = TWI__ATTR_VALUE__VALUE_TENSOR;
        value->tensor = twi_tensor_to_proto(arena, attr->tensor);
        return value->tensor != NULL;
    default:
        value->value_case = TWI__ATTR_VALUE__VALUE_LIST;
        value->list = twi_arena_alloc(arena, sizeof *value->list);
        if (value->list)
            twi__attr_value__list_value__init(value->list);
        return value->list && fill_list(arena, attr, value->list);
    }
}

static Twi__NodeDef__AttrEntry *make_entry(twi_arena *arena, const twi_attr *attr)
{
    Twi__NodeDef__AttrEntry *entry = twi_arena_alloc(arena, sizeof *entry);
    Twi__AttrValue *value = twi_arena_alloc(arena, sizeof *value);
    if (!entry || !value)
        return NULL;
    twi__node_def__attr_entry__init(entry);
    twi__attr_value__init(value);
    entry->key = (char *)attr->name;
    entry->value = value;
    return fill_value(arena, attr, value) ? entry : NULL;
}

/* TensorFlow's ops have no such attribute. */
static bool is_own(const twi_attr *attr)
{
    return strncmp(attr->name, "Tower", strlen("Tower")) == 0;
}

/* Whether an attribute tells of what TensorFlow lacks, who knows other shapes. */
static bool has_own(const twi_attrs *attrs)
{
    for (int i = 0; i < attrs->count; i++)
        if (is_own(&attrs->items[i]))
            return true;
    return false;
}

/* That of a handle or of a list itself is a scalar's; a stack's or an array's handle has another form in TensorFlow. */
static tw_shape handle_shape(const tw_node *node)
{
    while (node->op->makes == TWI_MAKES_NOTHING && node->num_inputs && !has_own(&node->attrs))
        node = node->inputs[0].node;
    return node->op->makes == TWI_MAKES_SERIES || has_own(&node->attrs) ? TW_UNKNOWN_SHAPE : TW_SCALAR;
}

/* Shapes of all outputs, for TensorBoard. */
static Twi__NodeDef__AttrEntry *make_shapes_entry(twi_arena *arena, const tw_node *node)
{
    tw_shape *shapes = twi_arena_copy(arena, node->output_shapes, sizeof *shapes * (size_t)node->num_outputs);
    for (int i = 0; i < node->num_outputs && shapes; i++)
        if (node->output_types[i] == TW_RESOURCE || node->output_types[i] == TW_VARIANT || has_own(&node->attrs))
            shapes[i] = handle_shape(node);
    twi_attr attr = tw_attr_shapes(OUTPUT_SHAPES, shapes, node->num_outputs);
    return shapes ? make_entry(arena, &attr) : NULL;
}

static bool fill_attrs(twi_arena *arena, const tw_node *node, bool with_shapes, Twi__NodeDef *def)
{
    def->attr = twi_arena_alloc(arena, sizeof *def->attr * (size_t)(node->attrs.count + 1));
    if (!def->attr)
        return false;
    for (int i = 0; i < node->attrs.count; i++) {
        if (strcmp(node->attrs.items[i].name, OUTPUT_SHAPES) == 0 || is_own(&node->attrs.items[i]))
            continue;
        if (!(def->attr[def->n_attr++] = make_entry(arena, &node->attrs.items[i])))
            return false;
    }
    return !with_shapes || node->num_outputs == 0 || (def->attr[def->n_attr++] = make_shapes_entry(arena, node));
}

/* What brings examples from outside of the graph. */
static bool is_written_by_outputs(const tw_node *node)
{
    return twi_op_is(node->op, TWI_INPUT) && node->op->written_as;
}

/* The name of the placeholder that stands for output k of such a node. */
static char *placeholder_name(twi_arena *arena, const tw_node *node, int k)
{
    char *name = k ? twi_arena_printf(arena, "%s/output_%d", node->name, k) : (char *)node->name;
    while (k && name && tw_graph_find(node->graph, name))
        name = twi_arena_printf(arena, "%s_", name);
    return name;
}

/* An output as an input of others is written. */
static char *output_name(twi_arena *arena, tw_output from)
{
    if (is_written_by_outputs(from.node))
        return placeholder_name(arena, from.node, from.index);
    return from.index ? twi_arena_printf(arena, "%s:%d", from.node->name, from.index) : (char *)from.node->name;
}

/* "node", "node:1", then "^node". */
static bool fill_inputs(twi_arena *arena, const tw_node *node, Twi__NodeDef *def)
{
    def->n_input = (size_t)node->num_inputs + (size_t)node->num_control_inputs;
    def->input = twi_arena_alloc(arena, sizeof *def->input * def->n_input);
    if (!def->input)
        return false;
    for (int i = 0; i < node->num_inputs; i++)
        def->input[i] =
            output_name(arena, node->backward.node && i == node->num_inputs - 1 ? node->backward : node->inputs[i]);
    for (int i = 0; i < node->num_control_inputs; i++)
        def->input[node->num_inputs + i] = twi_arena_printf(arena, "^%s", node->control_inputs[i]->name);
    for (size_t i = 0; i < def->n_input; i++)
        if (!def->input[i])
            return false;
    return true;
}

static void *take(void *arena, size_t size)
{
    return twi_arena_alloc(arena, size);
}

static void leave(void *arena, void *bytes)
{
    (void)arena;
    (void)bytes;
}

/* What an import did not know goes out as it came in. */
static Twi__NodeDef *make_unknown(twi_arena *arena, const tw_node *node)
{
    ProtobufCAllocator allocator = {take, leave, arena};
    tw_string def = twi_attr_find(&node->attrs, "node")->s;
    return twi__node_def__unpack(&allocator, def.size, (const uint8_t *)def.data);
}

static Twi__NodeDef *make_node(twi_arena *arena, const tw_node *node, bool with_shapes)
{
    if (twi_op_is(node->op, TWI_UNKNOWN))
        return make_unknown(arena, node);
    Twi__NodeDef *def = twi_arena_alloc(arena, sizeof *def);
    if (!def)
        return NULL;
    twi__node_def__init(def);
    def->name = (char *)node->name;
    def->op = (char *)(node->op->written_as ? node->op->written_as : node->op->name);
    def->device = (char *)node->device;
    return fill_inputs(arena, node, def) && fill_attrs(arena, node, with_shapes, def) ? def : NULL;
}

/* Output k of a node that brings examples from outside. */
static Twi__NodeDef *make_placeholder(twi_arena *arena, const tw_node *node, int k)
{
    Twi__NodeDef *def = twi_arena_alloc(arena, sizeof *def);
    twi_attr attrs[] = {tw_attr_type("dtype", node->output_types[k]), tw_attr_shape("shape", node->output_shapes[k]),
                        tw_attr_shapes(OUTPUT_SHAPES, &node->output_shapes[k], 1)};
    size_t count = sizeof attrs / sizeof *attrs;
    if (!def)
        return NULL;
    twi__node_def__init(def);
    def->name = placeholder_name(arena, node, k);
    def->op = (char *)node->op->written_as;
    def->device = (char *)node->device;
    def->attr = twi_arena_alloc(arena, sizeof *def->attr * count);
    while (def->name && def->attr && def->n_attr < count)
        if (!(def->attr[def->n_attr] = make_entry(arena, &attrs[def->n_attr])))
            return NULL;
        else
            def->n_attr++;
    return def->n_attr == count ? def : NULL;
}

/* Appends what becomes of a node. False: out of memory. */
static bool add_node(twi_arena *arena, const tw_node *node, Twi__GraphDef *def)
{
    bool brings = is_written_by_outputs(node);
    for (int k = 0; k < (brings ? node->num_outputs : 1); k++)
        if (!(def->node[def->n_node++] = brings ? make_placeholder(arena, node, k) : make_node(arena, node, true)))
            return false;
    return true;
}

/* How many nodes there will be. */
static size_t count_nodes(const tw_graph *graph)
{
    size_t count = 0;
    for (int i = 0; i < graph->nodes.count; i++) {
        const tw_node *node = graph->nodes.items[i];
        count += is_written_by_outputs(node) ? (size_t)node->num_outputs : 1;
    }
    return count;
}

/* Marks what the outputs need: inputs stand before those who use them. */
static bool *mark_needed(twi_arena *arena, const tw_graph *graph, const tw_output *outputs, int num_outputs)
{
    bool *needed = twi_arena_alloc(arena, (size_t)graph->nodes.count + 1);
    if (!needed)
        return NULL;
    memset(needed, 0, (size_t)graph->nodes.count + 1);
    for (int i = 0; i < num_outputs; i++)
        needed[outputs[i].node->id] = true;
    for (int i = graph->nodes.count - 1; i >= 0; i--) {
        const tw_node *node = graph->nodes.items[i];
        for (int k = 0; k < node->num_inputs && needed[i]; k++)
            needed[node->inputs[k].node->id] = true;
        for (int k = 0; k < node->num_control_inputs && needed[i]; k++)
            needed[node->control_inputs[k]->id] = true;
    }
    return needed;
}

/* `needed` NULL: all. */
static Twi__GraphDef *make_graph(twi_arena *arena, const tw_graph *graph, const bool *needed)
{
    Twi__GraphDef *def = twi_arena_alloc(arena, sizeof *def);
    Twi__VersionDef *versions = twi_arena_alloc(arena, sizeof *versions);
    if (!def || !versions)
        return NULL;
    twi__graph_def__init(def);
    twi__version_def__init(versions);
    versions->producer = TWI_GRAPH_VERSION;
    def->versions = versions;
    def->node = twi_arena_alloc(arena, sizeof *def->node * count_nodes(graph));
    for (int i = 0; i < graph->nodes.count && def->node; i++)
        if ((!needed || needed[i]) && !add_node(arena, graph->nodes.items[i], def))
            return NULL;
    return def->node ? def : NULL;
}

static tw_status export(const tw_graph *graph, const tw_output *outputs, int num_outputs, void **bytes, size_t *size,
                        tw_error *error)
{
    tw_status status = TW_OK;
    twi_arena arena = {0};
    if (graph->error.status != TW_OK)
        return twi_fail(error, graph->error.status, "%s", graph->error.message);
    bool *wanted = outputs ? mark_needed(&arena, graph, outputs, num_outputs) : NULL;
    Twi__GraphDef *def = outputs && !wanted ? NULL : make_graph(&arena, graph, wanted);
    if (!def)
        TWI_LEAVE(twi_fail_memory(error, "exporting a graph"));
    size_t needed = twi__graph_def__get_packed_size(def);
    if (needed > INT_MAX)
        TWI_LEAVE(twi_fail(error, TW_INVALID_ARGUMENT, "the graph takes %zu bytes, but a GraphDef holds at most %d",
                           needed, INT_MAX));
    *bytes = twi_resize(NULL, needed + 1); /* one more: an empty graph has bytes too */
    if (!*bytes)
        TWI_LEAVE(twi_fail_memory(error, "exporting a graph"));
    *size = twi__graph_def__pack(def, *bytes);
done:
    twi_arena_free(&arena);
    return status;
}

tw_status tw_graph_export(const tw_graph *graph, void **bytes, size_t *size, tw_error *error)
{
    TWI_NEED(graph, "graph", error);
    TWI_NEED(bytes, "bytes", error);
    TWI_NEED(size, "size", error);
    return export(graph, NULL, 0, bytes, size, error);
}

tw_status tw_graph_export_part(const tw_graph *graph, const tw_output *outputs, int num_outputs, void **bytes,
                               size_t *size, tw_error *error)
{
    TWI_NEED(graph, "graph", error);
    TWI_NEED(outputs, "outputs", error);
    TWI_NEED(bytes, "bytes", error);
    TWI_NEED(size, "size", error);
    for (int i = 0; i < num_outputs; i++)
        TWI_NEED(outputs[i].node, "output", error);
    return export(graph, outputs, num_outputs, bytes, size, error);
}

tw_status tw_node_export(const tw_node *node, void **bytes, size_t *size, tw_error *error)
{
    TWI_NEED(node, "node", error);
    TWI_NEED(bytes, "bytes", error);
    TWI_NEED(size, "size", error);
    twi_arena arena = {0};
    const Twi__NodeDef *def = make_node(&arena, node, false);
    size_t needed = def ? twi__node_def__get_packed_size(def) : 0;
    tw_status status = TW_OK;
    if (def && needed > INT_MAX)
        status = twi_fail(error, TW_INVALID_ARGUMENT, "'%s' takes %zu bytes, but a NodeDef holds at most %d",
                          node->name, needed, INT_MAX);
    void *packed = def && status == TW_OK ? twi_resize(NULL, needed + 1) : NULL;
    if (packed) {
        *size = twi__node_def__pack(def, packed);
        *bytes = packed;
    } else if (status == TW_OK) {
        status = twi_fail_memory(error, "exporting a node");
    }
    twi_arena_free(&arena);
    return status;
}
