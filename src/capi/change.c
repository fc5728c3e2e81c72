/* change.c - nodes that change: what they take, what they wait for, attributes, devices. Tower's graphs only grow, so
 * one with another node is another graph: made of the same messages but for one, it takes the place of the first.
 * Never here:  attributes of the caller's own, which nodes do not have (kept_attr.c). */
#include "capi.h"

#include <stdlib.h>
#include <string.h>
#include <tower/io.h>

enum { NODE = 1, INPUT = 3, DEVICE = 4, ATTR = 5, KEY = 1, VALUE = 2 };

/* What goes of a node's message, and what comes behind the rest. */
typedef struct change {
    TF_Operation *oper;
    int input;        /* one more than the number of the one whose place `from` takes; 0: none */
    TF_Output from;
    const char *attr; /* NULL: none */
    bool device, controls;
    wire added;
} change;

static bool is_attr(const wire_field *entry, const char *name)
{
    wire_field field;
    bool is = false;
    for (wire_reader r = wire_read(entry->data, entry->size); wire_next(&r, &field);)
        is |= field.number == KEY && wire_is_text(&field, name);
    return is;
}

static bool goes(const change *c, const wire_field *field)
{
    if (field->number == INPUT)
        return c->controls && field->size > 0 && *field->data == '^';
    return field->number == DEVICE ? c->device : field->number == ATTR && c->attr && is_attr(field, c->attr);
}

/* In the message, those that only come before follow the other inputs. */
static void write_changed(wire *w, const change *c, wire_reader r)
{
    int input = 0;
    wire_field field;
    for (const uint8_t *at = r.at; wire_next(&r, &field); at = r.at)
        if (field.number == INPUT && ++input == c->input)
            wire_printf(w, INPUT, "%s:%d", TF_OperationName(c->from.oper), c->from.index);
        else if (!goes(c, &field))
            wire_append(w, at, (size_t)(r.at - at));
    wire_append(w, c->added.data, c->added.size);
    w->failed |= c->added.failed;
}

static tw_status write_node(wire *w, const change *c, const TF_Operation *oper, tw_error *error)
{
    void *bytes;
    size_t size;
    wire node = {0};
    tw_status status = tw_node_export(oper->node, &bytes, &size, error);
    if (status != TW_OK)
        return status;
    if (oper == c->oper)
        write_changed(&node, c, wire_read(bytes, size));
    else
        wire_append(&node, bytes, size);
    wire_message(w, NODE, &node);
    tw_free(bytes);
    return TW_OK;
}

/* NULL: it cannot be, and the error says why. */
static tw_graph *make_changed(const TF_Graph *graph, const change *c, tw_error *error)
{
    wire def = {0};
    tw_import_options options = {.size = sizeof options, .any_names = true};
    tw_graph *changed = tw_graph_create();
    for (int i = 0; i < graph->num_operations && error->status == TW_OK; i++)
        write_node(&def, c, graph->operations[i], error);
    write_versions(&def);
    if (error->status == TW_OK && (def.failed || !changed))
        *error = (tw_error){TW_RESOURCE_EXHAUSTED, "out of memory"};
    if (error->status == TW_OK)
        tw_graph_import_with(changed, def.data, def.size, &options, error);
    wire_free(&def);
    for (int i = 0; i < graph->num_operations && error->status == TW_OK; i++) {
        const tw_node *old = graph->operations[i]->node;
        tw_node *node = tw_graph_find(changed, tw_node_name(old));
        if (!node || tw_graph_num_nodes(changed) != graph->num_operations)
            *error = (tw_error){TW_UNIMPLEMENTED, "the graph has nodes that cannot be made again"};
        for (int k = 0; node && tw_node_num_inputs(old) == 0 && k < tw_node_num_outputs(old); k++)
            tw_output_refine((tw_output){node, k}, tw_output_shape((tw_output){(tw_node *)old, k}), error);
    }
    if (error->status == TW_OK)
        return changed;
    tw_graph_destroy(changed);
    return NULL;
}

/* Operations stand for the nodes of their names in another graph. */
static bool move_to(TF_Graph *graph, tw_graph *changed)
{
    int count = graph->num_operations;
    TF_Operation **moved = calloc((size_t)count * 2 + 1, sizeof *moved); /* room to grow, as grow() makes it */
    tw_graph **former = realloc(graph->former, sizeof *former * (size_t)(graph->num_former + 1));
    if (former)
        graph->former = former;
    if (!moved || !former) {
        free(moved);
        return false;
    }
    for (int i = 0; i < count; i++) {
        TF_Operation *o = graph->operations[i];
        o->node = tw_graph_find(changed, tw_node_name(o->node));
        o->num_consumers = o->num_controlled = 0;
        moved[tw_node_number(o->node)] = o;
    }
    free(graph->operations);
    graph->operations = moved;
    graph->former[graph->num_former++] = graph->tower;
    graph->tower = changed;
    bool noted = true;
    for (int i = 0; i < count; i++)
        noted &= note_uses(moved[i]);
    return noted;
}

/* Under the graph's lock. What is added is freed. */
static void apply(TF_Graph *graph, change *c, TF_Status *status)
{
    tw_error error = TW_NO_ERROR;
    tw_graph *changed = NULL;
    if (!c->oper || c->oper->graph != graph)
        set_status(status, TF_INVALID_ARGUMENT, "the operation that is to change is not in the graph");
    else if (graph->sessions)
        set_status(status, TF_FAILED_PRECONDITION,
                   "operations change only as long as there is no session of the graph");
    else if (!(changed = make_changed(graph, c, &error)))
        set_graph_error(status, &error);
    else if (!move_to(graph, changed))
        set_no_memory(status);
    wire_free(&c->added);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

static bool check_edge(const TF_Graph *graph, TF_Output from, TF_Input to, TF_Status *status)
{
    tw_output found;
    if (!find_output(graph, from, &found, status))
        return false;
    if (!to.oper || to.oper->graph != graph)
        set_status(status, TF_INVALID_ARGUMENT, "the operation whose input is to change is not in the graph");
    else if (to.index < 0 || to.index >= tw_node_num_inputs(to.oper->node))
        set_status(status, TF_OUT_OF_RANGE, "Node '%s' (type: '%s', num of inputs: %d) does not have input %d",
                   TF_OperationName(to.oper), TF_OperationOpType(to.oper), tw_node_num_inputs(to.oper->node), to.index);
    else if (tw_output_dtype(found) != tw_output_dtype(tw_node_input(to.oper->node, to.index)))
        set_status(status, TF_INVALID_ARGUMENT, "input %d of '%s' is %s, and '%s:%d' is %s", to.index,
                   TF_OperationName(to.oper), tw_dtype_name(tw_output_dtype(tw_node_input(to.oper->node, to.index))),
                   TF_OperationName(from.oper), from.index, tw_dtype_name(tw_output_dtype(found)));
    return is_ok(status);
}

void TF_UpdateEdge(TF_Graph *graph, TF_Output new_src, TF_Input dst, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    pthread_rwlock_wrlock(&graph->lock);
    if (check_edge(graph, new_src, dst, status))
        apply(graph, &(change){.oper = dst.oper, .input = dst.index + 1, .from = new_src}, status);
    pthread_rwlock_unlock(&graph->lock);
}

/* Where nobody is told what is wrong, the graph stays as it was. */
static void apply_silently(TF_Graph *graph, change *c)
{
    TF_Status status = {0};
    pthread_rwlock_wrlock(&graph->lock);
    apply(graph, c, &status);
    pthread_rwlock_unlock(&graph->lock);
    free(status.message);
}

void TF_AddOperationControlInput(TF_Graph *graph, TF_Operation *op, TF_Operation *input)
{
    change c = {.oper = op};
    wire_printf(&c.added, INPUT, "^%s", TF_OperationName(input));
    apply_silently(graph, &c);
}

void TF_RemoveAllControlInputs(TF_Graph *graph, TF_Operation *op)
{
    apply_silently(graph, &(change){.oper = op, .controls = true});
}

/* ---- devices, attributes ---------------------------------------------------------------------------------------- */

void TF_SetRequestedDevice(TF_Graph *graph, TF_Operation *op, const char *device)
{
    change c = {.oper = op, .device = true};
    wire_text(&c.added, DEVICE, device);
    apply_silently(graph, &c);
}

void TF_SetAttr(TF_Graph *graph, TF_Operation *op, const char *attr_name, TF_Buffer *attr_value_proto,
                TF_Status *status)
{
    change c = {.oper = op, .attr = attr_name};
    wire entry = {0};
    TF_SetStatus(status, TF_OK, "");
    if (!wire_is_message(attr_value_proto->data, attr_value_proto->length)) {
        set_status(status, TF_INVALID_ARGUMENT, "Invalid AttrValue proto");
        return;
    }
    wire_text(&entry, KEY, attr_name);
    wire_bytes(&entry, VALUE, attr_value_proto->data, attr_value_proto->length);
    wire_message(&c.added, ATTR, &entry);
    pthread_rwlock_wrlock(&graph->lock);
    if (!is_kept(attr_name, strlen(attr_name)))
        apply(graph, &c, status);
    else if (!keep_attr(op, attr_name, strlen(attr_name), attr_value_proto->data, attr_value_proto->length))
        set_no_memory(status);
    pthread_rwlock_unlock(&graph->lock);
    wire_free(&c.added);
}

void TF_ClearAttr(TF_Graph *graph, TF_Operation *op, const char *attr_name, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    pthread_rwlock_wrlock(&graph->lock);
    if (!is_kept(attr_name, strlen(attr_name)))
        apply(graph, &(change){.oper = op, .attr = attr_name}, status);
    else
        drop_attr(op, attr_name, strlen(attr_name));
    pthread_rwlock_unlock(&graph->lock);
}

/* ---- what need not be told -------------------------------------------------------------------------------------- */

void TF_SetFullType(TF_Graph *graph, TF_Operation *op, const TF_Buffer *full_type_proto)
{
    (void)graph;
    (void)op;
    (void)full_type_proto;
}

void TF_SetRequireShapeInferenceFns(TF_Graph *graph, bool require)
{
    (void)graph;
    (void)require;
}

/* Shapes behind handles are found in the graph itself. */
TF_Buffer *TF_GetHandleShapeAndType(TF_Graph *graph, TF_Output output)
{
    (void)graph;
    (void)output;
    return TF_NewBufferFromString("", 0);
}

void TF_SetHandleShapeAndType(TF_Graph *graph, TF_Output output, const void *proto, size_t proto_len,
                              TF_Status *status)
{
    (void)graph;
    (void)output;
    TF_SetStatus(status, TF_OK, "");
    if (!wire_is_message(proto, proto_len))
        set_status(status, TF_INVALID_ARGUMENT, "Couldn't deserialize HandleData proto");
}

void TF_ExtendSession(TF_Session *session, TF_Status *status)
{
    (void)session;
    TF_SetStatus(status, TF_OK, "");
}
