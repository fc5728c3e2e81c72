/* while.c - loops: the caller builds two graphs, whether there is another round and what it does. They become parts of
 * a GraphDef of the loop as TensorFlow writes one, NAME/Enter ... NAME/cond/... NAME/body/... NAME/Exit, which is
 * imported. The condition's graph remembers where the loop is to be.
 * Never here:  what a loop of a file is. */
#include "capi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is inside of a round has the shape that the loop begins with. */
static void copy_shape(TF_Graph *inside, TF_Output made, TF_Graph *around, TF_Output input, TF_Status *status)
{
    int64_t dims[TW_MAX_RANK];
    int rank = TF_GraphGetTensorNumDims(around, input, status);
    if (is_ok(status) && rank >= 0)
        TF_GraphGetTensorShape(around, input, dims, rank, status);
    if (is_ok(status) && rank >= 0)
        TF_GraphSetTensorShape(inside, made, dims, rank, status);
}

/* A graph whose placeholders are what a round begins with. NULL: the status says why. */
static TF_Graph *begin_graph(const char *name, TF_Graph *around, const TF_Output *inputs, int count, TF_Output *made,
                             TF_Status *status)
{
    TF_Graph *graph = TF_NewGraph();
    if (!graph)
        set_no_memory(status);
    for (int i = 0; i < count && is_ok(status); i++) {
        char text[40];
        snprintf(text, sizeof text, "%s%d", name, i);
        TF_OperationDescription *d = TF_NewOperation(graph, "Placeholder", text);
        if (!d) {
            set_no_memory(status);
            break;
        }
        TF_SetAttrType(d, "dtype", TF_OperationOutputType(inputs[i]));
        made[i] = (TF_Output){TF_FinishOperation(d, status), 0};
        if (is_ok(status))
            copy_shape(graph, made[i], around, inputs[i], status);
    }
    if (is_ok(status))
        return graph;
    TF_DeleteGraph(graph);
    return NULL;
}

static void free_params(const TF_WhileParams *p)
{
    TF_DeleteGraph(p->cond_graph);
    TF_DeleteGraph(p->body_graph);
    free((TF_Output *)p->cond_inputs);
    free((TF_Output *)p->body_inputs);
    free(p->body_outputs);
}

TF_WhileParams TF_NewWhile(TF_Graph *g, TF_Output *inputs, int ninputs, TF_Status *status)
{
    tw_output found;
    TF_SetStatus(status, TF_OK, "");
    if (ninputs == 0)
        set_status(status, TF_INVALID_ARGUMENT, "TF_NewWhile() must be passed at least one input");
    for (int i = 0; i < ninputs && is_ok(status); i++)
        find_output(g, inputs[i], &found, status);
    if (!is_ok(status))
        return (TF_WhileParams){0};
    size_t room = (size_t)ninputs;
    TF_Output *cond_inputs = calloc(room, sizeof *cond_inputs), *body_inputs = calloc(room, sizeof *body_inputs);
    TF_Output *outputs = calloc(room, sizeof *outputs), *begins = calloc(room, sizeof *begins);
    TF_Graph *cond = NULL, *body = NULL;
    if (!cond_inputs || !body_inputs || !outputs || !begins)
        set_no_memory(status);
    else if ((cond = begin_graph("cond_input", g, inputs, ninputs, cond_inputs, status)))
        body = begin_graph("body_input", g, inputs, ninputs, body_inputs, status);
    const TF_WhileParams params = {.ninputs = ninputs,
                                   .cond_graph = cond,
                                   .cond_inputs = cond_inputs,
                                   .body_graph = body,
                                   .body_inputs = body_inputs,
                                   .body_outputs = outputs};
    if (!is_ok(status)) {
        free(begins);
        free_params(&params);
        return (TF_WhileParams){0};
    }
    memcpy(begins, inputs, room * sizeof *begins);
    cond->around = g;
    cond->begins = begins;
    return params;
}

void TF_AbortWhile(const TF_WhileParams *params)
{
    free_params(params);
}

static bool check_output(const TF_Graph *graph, TF_Output output, const char *field, TF_Status *status)
{
    if (!output.oper)
        set_status(status, TF_INVALID_ARGUMENT, "TF_WhileParams `%s` field isn't set", field);
    else if (output.oper->graph != graph)
        set_status(status, TF_INVALID_ARGUMENT, "Requested return tensor '%s:%d' not found in graph def",
                   TF_OperationName(output.oper), output.index);
    else if (output.index < 0 || output.index >= TF_OperationNumOutputs(output.oper))
        set_status(status, TF_INVALID_ARGUMENT, "Invalid return output %d of node '%s', which has %d output(s)",
                   output.index, TF_OperationName(output.oper), TF_OperationNumOutputs(output.oper));
    return is_ok(status);
}

static bool check(const TF_WhileParams *p, TF_Status *status)
{
    char field[40];
    TF_SetStatus(status, TF_OK, "");
    if (!p->name)
        set_status(status, TF_INVALID_ARGUMENT, "TF_WhileParams `name` field is null");
    if (is_ok(status) && check_output(p->cond_graph, p->cond_output, "cond_output", status) &&
        TF_OperationOutputType(p->cond_output) != TF_BOOL)
        set_status(status, TF_INVALID_ARGUMENT, "BuildWhileLoop: 'cond' argument must return a boolean output, got %s",
                   tw_dtype_name((tw_dtype)TF_OperationOutputType(p->cond_output)));
    for (int i = 0; i < p->ninputs && is_ok(status); i++) {
        snprintf(field, sizeof field, "body_outputs[%d]", i);
        check_output(p->body_graph, p->body_outputs[i], field, status);
    }
    return is_ok(status);
}

/* ---- the loop as a GraphDef -------------------------------------------------------------------------------------- */

enum { MOST_TEXT = 8192 }; /* of a name and what stands around it */
enum { NODE = 1, LIBRARY = 2 };
enum { NAME = 1, OP = 2, INPUT = 3, ATTR = 5, KEY = 1, VALUE = 2 };

/* One of the two graphs in the loop: what its placeholders stand for are outputs of the loop's own nodes. */
typedef struct part {
    const char *loop, *name;  /* its nodes are LOOP/NAME/... */
    const TF_Output *inputs;  /* [count] the placeholders */
    int count;
    const char *from, *index; /* these are LOOP/FROM, LOOP/FROM_1, ..., with the index behind */
} part;

/* LOOP/NAME for the first, then LOOP/NAME_1 and so on; how long that is. */
static int name_node(char *text, size_t size, const char *loop, const char *name, int i)
{
    return i ? snprintf(text, size, "%s/%s_%d", loop, name, i) : snprintf(text, size, "%s/%s", loop, name);
}

/* Which of the placeholders; -1: none. */
static int find_input(const part *p, const char *name, size_t length)
{
    for (int i = 0; i < p->count; i++) {
        const char *input = TF_OperationName(p->inputs[i].oper);
        if (strncmp(input, name, length) == 0 && !input[length])
            return i;
    }
    return -1;
}

/* "NODE", "NODE:1" or "^NODE" of the graph as the loop has it; whether it is a node of its own. */
static bool name_input(const part *p, const char *input, char text[MOST_TEXT])
{
    bool waits = *input == '^';
    int found = find_input(p, input + waits, strcspn(input + waits, ":"));
    if (found < 0) {
        snprintf(text, MOST_TEXT, "%s%s/%s/%s", waits ? "^" : "", p->loop, p->name, input + waits);
        return true;
    }
    *text = '^';
    int length = waits + name_node(text + waits, MOST_TEXT - 1, p->loop, p->from, found);
    if (!waits)
        snprintf(text + length, (size_t)(MOST_TEXT - length), "%s", p->index);
    return false;
}

static void name_output(const part *p, TF_Output output, char text[MOST_TEXT])
{
    char input[MOST_TEXT];
    snprintf(input, sizeof input, "%s:%d", TF_OperationName(output.oper), output.index);
    name_input(p, input, text);
}

static void copy_text(const wire_field *field, char text[MOST_TEXT])
{
    snprintf(text, MOST_TEXT, "%.*s", (int)field->size, (const char *)field->data);
}

/* The AttrValue of "_class", whose "loc:@NODE" are nodes of the loop now. */
static void copy_class(const part *p, const wire_field *value, wire *copy)
{
    enum { LIST = 1, ITEM = 2 };
    static const char at[] = "loc:@";
    char node[MOST_TEXT], text[MOST_TEXT];
    wire_field list = {0}, item;
    wire made = {0};
    wire_reader r = wire_read(value->data, value->size);
    wire_next(&r, &list);
    for (wire_reader items = wire_read(list.data, list.size); wire_next(&items, &item);) {
        copy_text(&item, node);
        if (strncmp(node, at, sizeof at - 1) == 0) {
            name_input(p, node + sizeof at - 1, text);
            text[strcspn(text, ":")] = 0;
            wire_printf(&made, ITEM, "%s%s", at, text);
        }
    }
    wire_message(copy, LIST, &made);
}

static void copy_attr(const part *p, const wire_field *attr, wire *node)
{
    wire entry = {0}, value = {0};
    wire_field field, is_class = {0}, old = {0};
    for (wire_reader r = wire_read(attr->data, attr->size); wire_next(&r, &field);) {
        if (field.number == KEY && wire_is_text(&field, "_class"))
            is_class = field;
        if (field.number == VALUE)
            old = field;
    }
    if (!is_class.data) {
        wire_bytes(node, ATTR, attr->data, attr->size);
        return;
    }
    copy_class(p, &old, &value);
    wire_text(&entry, KEY, "_class");
    wire_message(&entry, VALUE, &value);
    wire_message(node, ATTR, &entry);
}

/* A NodeDef of the part's graph. What takes nothing of its own graph waits for the round to begin. */
static void copy_node(const part *p, const wire_field *def, wire *loop)
{
    char name[MOST_TEXT], text[MOST_TEXT];
    bool takes_own = false, is_input = false;
    wire node = {0};
    wire_field field;
    wire_reader r = wire_read(def->data, def->size);
    for (const uint8_t *from = r.at; wire_next(&r, &field); from = r.at) {
        if (field.number == NAME || field.number == INPUT)
            copy_text(&field, name);
        if (field.number == NAME) {
            is_input = find_input(p, name, strlen(name)) >= 0;
            wire_printf(&node, NAME, "%s/%s/%s", p->loop, p->name, name);
        } else if (field.number == INPUT) {
            takes_own |= name_input(p, name, text);
            wire_text(&node, INPUT, text);
        } else if (field.number == ATTR) {
            copy_attr(p, &field, &node);
        } else {
            wire_append(&node, from, (size_t)(r.at - from));
        }
    }
    if (!takes_own)
        wire_printf(&node, INPUT, "^%s/%s", p->loop, p->from);
    if (is_input)
        wire_free(&node);
    else
        wire_message(loop, NODE, &node);
}

static void copy_part(const part *p, TF_Graph *graph, wire *loop, TF_Status *status)
{
    TF_Buffer *def = TF_NewBuffer();
    if (def)
        TF_GraphToGraphDef(graph, def, status);
    else
        set_no_memory(status);
    wire_field field;
    wire_reader r = def && is_ok(status) ? wire_read(def->data, def->length) : (wire_reader){0};
    while (r.at && wire_next(&r, &field)) {
        if (field.number == NODE)
            copy_node(p, &field, loop);
        if (field.number == LIBRARY)
            wire_bytes(loop, LIBRARY, field.data, field.size);
    }
    TF_DeleteBuffer(def);
}

static void write_attr(wire *node, const char *key, wire *value)
{
    wire entry = {0};
    wire_text(&entry, KEY, key);
    wire_message(&entry, VALUE, value);
    wire_message(node, ATTR, &entry);
}

static void write_number(wire *node, const char *key, int field, uint64_t number)
{
    wire value = {0};
    wire_int(&value, field, number);
    write_attr(node, key, &value);
}

enum { TEXT = 2, INT = 3, BOOL = 5, TYPE = 6 }; /* of an AttrValue */

/* One of the loop's own nodes, LOOP/OP for each value that goes round; second NULL: it has one input. */
static wire begin_node(const char *loop, const char *op, int i, const char *input, const char *second)
{
    char text[MOST_TEXT];
    wire node = {0};
    name_node(text, sizeof text, loop, op, i);
    wire_text(&node, NAME, text);
    wire_text(&node, OP, op);
    wire_text(&node, INPUT, input);
    if (second)
        wire_text(&node, INPUT, second);
    return node;
}

static void end_node(wire *loop, wire *node, TF_DataType type)
{
    write_number(node, "T", TYPE, (uint64_t)type);
    wire_message(loop, NODE, node);
}

/* What begins a round: the values from outside and those of the round before. */
static void write_beginning(const TF_WhileParams *p, const char *name, wire *loop)
{
    char text[MOST_TEXT], next[MOST_TEXT];
    const TF_Output *begins = p->cond_graph->begins;
    for (int i = 0; i < p->ninputs; i++) {
        wire node = begin_node(name, "Enter", i, TF_OperationName(p->cond_inputs[i].oper), NULL), frame = {0};
        wire_text(&frame, TEXT, name);
        write_attr(&node, "frame_name", &frame);
        write_number(&node, "is_constant", BOOL, 0);
        write_number(&node, "parallel_iterations", INT, 10);
        end_node(loop, &node, TF_OperationOutputType(begins[i]));
    }
    for (int i = 0; i < p->ninputs; i++) {
        name_node(text, sizeof text, name, "Enter", i);
        name_node(next, sizeof next, name, "NextIteration", i);
        wire node = begin_node(name, "Merge", i, text, next);
        write_number(&node, "N", INT, 2);
        end_node(loop, &node, TF_OperationOutputType(begins[i]));
    }
}

static void write_loop(const TF_WhileParams *p, const char *name, wire *loop, TF_Status *status)
{
    char text[MOST_TEXT], test[MOST_TEXT];
    const part cond = {name, "cond", p->cond_inputs, p->ninputs, "Merge", ""};
    const part body = {name, "body", p->body_inputs, p->ninputs, "Switch", ":1"};
    write_beginning(p, name, loop);
    copy_part(&cond, p->cond_graph, loop, status);
    name_output(&cond, p->cond_output, text);
    wire node = begin_node(name, "LoopCond", 0, text, NULL);
    wire_message(loop, NODE, &node);
    name_node(test, sizeof test, name, "LoopCond", 0);
    for (int i = 0; i < p->ninputs; i++) {
        name_node(text, sizeof text, name, "Merge", i);
        node = begin_node(name, "Switch", i, text, test);
        end_node(loop, &node, TF_OperationOutputType(p->cond_inputs[i]));
    }
    if (is_ok(status))
        copy_part(&body, p->body_graph, loop, status);
    for (int i = 0; i < p->ninputs; i++) {
        name_output(&body, p->body_outputs[i], text);
        node = begin_node(name, "NextIteration", i, text, NULL);
        end_node(loop, &node, TF_OperationOutputType(p->body_outputs[i]));
    }
    for (int i = 0; i < p->ninputs; i++) {
        name_node(text, sizeof text, name, "Switch", i);
        node = begin_node(name, "Exit", i, text, NULL);
        end_node(loop, &node, TF_OperationOutputType(p->cond_inputs[i]));
    }
    write_versions(loop);
    if (loop->failed)
        set_no_memory(status);
}

/* What the loop begins with takes the place of the condition's placeholders. */
static void import_loop(const TF_WhileParams *p, const char *name, const wire *loop, TF_Output *outputs,
                        TF_Status *status)
{
    int count;
    char text[MOST_TEXT];
    TF_Output *exits;
    const TF_Buffer def = {.data = loop->data, .length = loop->size};
    TF_ImportGraphDefOptions *options = TF_NewImportGraphDefOptions();
    if (!options) {
        set_no_memory(status);
        return;
    }
    for (int i = 0; i < p->ninputs; i++) {
        TF_ImportGraphDefOptionsAddInputMapping(options, TF_OperationName(p->cond_inputs[i].oper), 0,
                                                p->cond_graph->begins[i]);
        name_node(text, sizeof text, name, "Exit", i);
        TF_ImportGraphDefOptionsAddReturnOutput(options, text, 0);
    }
    TF_ImportGraphDefResults *results = import_graph(p->cond_graph->around, &def, options, status);
    if (results) {
        TF_ImportGraphDefResultsReturnOutputs(results, &count, &exits);
        memcpy(outputs, exits, (size_t)count * sizeof *outputs);
    }
    TF_DeleteImportGraphDefResults(results);
    TF_DeleteImportGraphDefOptions(options);
}

/* Nobody else builds between the choice of a name and the nodes that have it. */
static void add_loop(const TF_WhileParams *p, TF_Output *outputs, TF_Status *status)
{
    wire loop = {0};
    TF_Graph *around = p->cond_graph->around;
    begin_building(around);
    char *name = unique_prefix(around->tower, p->name);
    if (name)
        write_loop(p, name, &loop, status);
    else
        set_no_memory(status);
    if (is_ok(status))
        import_loop(p, name, &loop, outputs, status);
    end_building(around);
    wire_free(&loop);
    free(name);
}

void TF_FinishWhile(const TF_WhileParams *params, TF_Status *status, TF_Output *outputs)
{
    if (check(params, status))
        add_loop(params, outputs, status);
    free_params(params);
}
