/* to_function.c - a graph, or a part of one, as a function: what it takes and gives, and its nodes with their inputs as
 * functions have them, ARGUMENT or NODE:OUTPUT:NUMBER.
 * Never here:  functions in graphs (function.c). */
#include "capi.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a name in a function, with an output behind it; names of Tower's nodes have 4,095 bytes. */
enum { MOST_TEXT = 8192 };

enum { FIRST_ID = 2 }; /* TensorFlow numbers nodes behind a source and a sink */

/* A node that has another name in the function, where one of its arguments or results has its own. */
typedef struct renamed {
    const tw_node *node;
    char *name;
} renamed;

typedef struct body {
    const TF_Graph *graph;
    const char *name;
    bool *within; /* [operations] is it of the body? */
    const TF_Output *inputs;
    char **arguments; /* [ninputs] their names */
    int ninputs;
    char **results; /* [noutputs] their names */
    const TF_Output *outputs;
    int noutputs;
    const TF_Operation *const *controls; /* what runs whenever the function does, */
    const char *const *control_names;    /* and how it is known by that; NULL: by the names of the operations */
    int ncontrols;
    renamed *renamed;
    int num_results, num_arguments, num_nodes, num_renamed; /* that have names so far */
    TF_Status *status;
} body;

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* As names of arguments are: small letters, digits and underscores, beginning with a letter. To be freed. */
static char *argument_name(const char *text)
{
    while (*text && !isalpha((unsigned char)*text))
        text++;
    char *name = strdup(*text ? text : "unknown");
    for (char *c = name; c && *c; c++)
        *c = (char)(isalnum((unsigned char)*c) ? tolower((unsigned char)*c) : '_');
    return name;
}

static const char *name_of(const body *b, const tw_node *node)
{
    for (int i = 0; i < b->num_renamed; i++)
        if (b->renamed[i].node == node)
            return b->renamed[i].name;
    return tw_node_name(node);
}

static bool is_taken(const body *b, const char *name)
{
    for (int i = 0; i < b->num_results; i++)
        if (strcmp(b->results[i], name) == 0)
            return true;
    for (int i = 0; i < b->num_arguments; i++)
        if (strcmp(b->arguments[i], name) == 0)
            return true;
    for (int i = 0; i < b->num_renamed; i++)
        if (strcmp(b->renamed[i].name, name) == 0)
            return true;
    const tw_node *node = b->num_nodes ? tw_graph_find(b->graph->tower, name) : NULL;
    return node && tw_node_number(node) < b->num_nodes && b->within[tw_node_number(node)] &&
           strcmp(name_of(b, node), name) == 0;
}

/* The name, which is freed, or NAME_0 and so on if it is taken. To be freed. */
static char *unique_name(const body *b, char *base)
{
    char *name = base ? malloc(strlen(base) + 16) : NULL;
    if (name)
        strcpy(name, base);
    for (int k = 0; name && is_taken(b, name); k++)
        sprintf(name, "%s_%d", base, k);
    free(base);
    return name;
}

/* Whose names are taken by arguments and results. */
static bool rename_nodes(body *b)
{
    for (int i = 0; i < b->graph->num_operations; i++) {
        const tw_node *node = b->graph->operations[i]->node;
        if (b->within[i] && is_taken(b, tw_node_name(node))) {
            renamed *grown = realloc(b->renamed, sizeof *grown * ((size_t)b->num_renamed + 1));
            if (grown)
                b->renamed = grown;
            char *name = grown ? unique_name(b, strdup(tw_node_name(node))) : NULL;
            if (!name)
                return false;
            b->renamed[b->num_renamed++] = (renamed){node, name};
        }
        b->num_nodes = i + 1;
    }
    return true;
}

/* Results keep their names, then arguments, then nodes, as in TensorFlow. */
static bool give_names(body *b, const char *const *output_names)
{
    b->arguments = calloc((size_t)b->ninputs + 1, sizeof *b->arguments);
    b->results = calloc((size_t)b->noutputs + 1, sizeof *b->results);
    bool fits = b->arguments && b->results;
    for (int i = 0; i < b->noutputs && fits; i++) {
        const char *name = TF_OperationName(b->outputs[i].oper);
        b->results[i] = output_names ? strdup(output_names[i]) : unique_name(b, argument_name(name));
        if ((fits = b->results[i]))
            b->num_results++;
    }
    for (int i = 0; i < b->ninputs && fits; i++) {
        b->arguments[i] = unique_name(b, argument_name(TF_OperationName(b->inputs[i].oper)));
        if ((fits = b->arguments[i]))
            b->num_arguments++;
    }
    fits = fits && rename_nodes(b);
    if (!fits)
        set_no_memory(b->status);
    return fits;
}

/* ---- checks ----------------------------------------------------------------------------------------------------- */

static bool check_output(const body *b, TF_Output output, const char *what, int i)
{
    const char *to = *what == 'i' ? "into" : "from";
    if (!output.oper)
        set_status(b->status, TF_INVALID_ARGUMENT,
                   "Node is null\n\tEncountered while processing %s %d %s function '%s'", what, i, to, b->name);
    else if (output.index < 0 || output.index >= TF_OperationNumOutputs(output.oper))
        set_status(b->status, TF_OUT_OF_RANGE,
                   "Node '%s' (type: '%s', num of outputs: %d) does not have output %d\n\tEncountered while processing "
                   "%s %d %s function '%s'",
                   TF_OperationName(output.oper), TF_OperationOpType(output.oper), TF_OperationNumOutputs(output.oper),
                   output.index, what, i, to, b->name);
    else if (output.oper->graph != b->graph)
        set_status(b->status, TF_INVALID_ARGUMENT,
                   "Node with id %d is different from the passed in node. Does it belong to a different graph?\n\t"
                   "Encountered while processing %s %d %s function '%s'",
                   tw_node_number(output.oper->node) + FIRST_ID, what, i, to, b->name);
    return is_ok(b->status);
}

static int find_argument_of(const body *b, TF_Output output)
{
    for (int i = 0; i < b->ninputs; i++)
        if (b->inputs[i].oper == output.oper && b->inputs[i].index == output.index)
            return i;
    return -1;
}

/* The first argument that the node gives, unless it is of the body; -1: none. */
static int argument_from(const body *b, const tw_node *node)
{
    for (int i = 0; i < b->ninputs && !b->within[tw_node_number(node)]; i++)
        if (b->inputs[i].oper->node == node)
            return i;
    return -1;
}

/* Its name, once arguments have names; NULL: none. */
static const char *find_argument_from(const body *b, const tw_node *node)
{
    int argument = argument_from(b, node);
    return argument < 0 ? NULL : b->arguments[argument];
}

static bool check_ends(const body *b, const char *const *output_names)
{
    for (int i = 0; i < b->ninputs; i++) {
        if (!check_output(b, b->inputs[i], "input", i))
            return false;
        if (find_argument_of(b, b->inputs[i]) < i) {
            set_status(b->status, TF_INVALID_ARGUMENT, "TF_Output %s:%d appears more than once in the input list",
                       TF_OperationName(b->inputs[i].oper), b->inputs[i].index);
            return false;
        }
    }
    for (int i = 0; i < b->noutputs; i++) {
        if (!check_output(b, b->outputs[i], "output", i))
            return false;
        for (int k = 0; k < i && output_names; k++)
            if (strcmp(output_names[i], output_names[k]) == 0) {
                set_status(b->status, TF_INVALID_ARGUMENT,
                           "Cannot have duplicate output names. Name '%s' appears more than once in 'output_names' "
                           "array.",
                           output_names[i]);
                return false;
            }
    }
    return true;
}

/* Which operations are of the body: those named, or all but those that give the inputs. */
static bool choose(body *b, int num_opers, const TF_Operation *const *opers)
{
    b->within = calloc((size_t)b->graph->num_operations + 1, sizeof *b->within);
    if (!b->within) {
        set_no_memory(b->status);
        return false;
    }
    for (int i = 0; i < b->graph->num_operations; i++)
        b->within[i] = num_opers < 0;
    for (int i = 0; i < num_opers; i++) {
        if (!opers[i] || opers[i]->graph != b->graph) {
            set_status(b->status, TF_INVALID_ARGUMENT, "operation %d of function '%s' is not in the graph", i, b->name);
            return false;
        }
        b->within[tw_node_number(opers[i]->node)] = true;
    }
    for (int i = 0; i < b->ninputs && num_opers < 0; i++) {
        TF_Operation *from = b->inputs[i].oper;
        if (TF_OperationNumOutputs(from) > 1) {
            set_status(b->status, TF_INVALID_ARGUMENT,
                       "When `num_opers` is set to -1, nodes referenced in `inputs` must have a single output. Node %s "
                       "has %d outputs. Encountered while creating function '%s'",
                       TF_OperationName(from), TF_OperationNumOutputs(from), b->name);
            return false;
        }
        b->within[tw_node_number(from->node)] = false;
    }
    return true;
}

static const char *control_name(const body *b, int i)
{
    return b->control_names ? b->control_names[i] : tw_node_name(b->controls[i]->node);
}

/* The first in the alphabet behind another; NULL: that was the last. */
static const char *next_control_name(const body *b, const char *last)
{
    const char *next = NULL;
    for (int i = 0; i < b->ncontrols; i++) {
        const char *name = control_name(b, i);
        if (strcmp(name, last) > 0 && (!next || strcmp(name, next) < 0))
            next = name;
    }
    return next;
}

static bool check_controls(const body *b)
{
    for (int i = 0; i < b->ncontrols; i++) {
        const TF_Operation *oper = b->controls[i];
        bool is_here = oper && oper->graph == b->graph;
        if (!is_here || (!b->within[tw_node_number(oper->node)] && argument_from(b, oper->node) < 0)) {
            set_status(b->status, TF_INVALID_ARGUMENT, "control output %d of function '%s' is not in its body", i,
                       b->name);
            return false;
        }
        const char *name = control_name(b, i);
        if (!*name) {
            set_status(b->status, TF_INVALID_ARGUMENT, "Control output name must be not empty");
            return false;
        }
        for (int k = 0; k < i; k++)
            if (strcmp(name, control_name(b, k)) == 0) {
                set_status(b->status, TF_INVALID_ARGUMENT, "Repeated control output name: %s", name);
                return false;
            }
    }
    return true;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* The output as the function's nodes name it; false: the function has no such thing. */
static bool name_output(const body *b, TF_Output output, char *text, size_t size)
{
    int first = 0, argument = find_argument_of(b, output);
    if (argument >= 0) {
        snprintf(text, size, "%s", b->arguments[argument]);
        return true;
    }
    const tw_op_info *op = op_of(output.oper);
    const tw_op_argument *result =
        op ? find_argument(output.oper->node, op->outputs, op->num_outputs, output.index, &first) : NULL;
    if (!b->within[tw_node_number(output.oper->node)] || !result)
        return false;
    snprintf(text, size, "%s:%s:%d", name_of(b, output.oper->node), result->name, output.index - first);
    return true;
}

/* "node" or "node:1", of the graph. */
static TF_Output read_output(const body *b, const wire_field *field)
{
    char text[MOST_TEXT];
    snprintf(text, sizeof text, "%.*s", (int)field->size, (const char *)field->data);
    char *colon = strrchr(text, ':');
    int index = colon ? atoi(colon + 1) : 0;
    if (colon)
        *colon = 0;
    return output_of(b->graph, (tw_output){tw_graph_find(b->graph->tower, text), index});
}

/* TensorFlow's number of an edge: behind that of its source and sink, in the order in which nodes came. */
static int edge_id(const tw_graph *graph, const tw_node *to, int control)
{
    int id = 1 + tw_node_num_inputs(to) + control;
    for (int i = 0; i < tw_node_number(to); i++) {
        const tw_node *node = tw_graph_node(graph, i);
        id += tw_node_num_inputs(node) + tw_node_num_control_inputs(node);
    }
    return id;
}

/* `inputs` are those of the operation's NodeDef: the way back of a loop is among them, and nowhere else. */
static bool write_inputs(const body *b, TF_Operation *oper, wire_reader inputs, wire *node)
{
    enum { INPUT = 3 };
    char text[MOST_TEXT];
    wire_field field;
    for (int i = 0; wire_next(&inputs, &field); i++) {
        if (field.number != INPUT || field.type != 2 || (field.size && field.data[0] == '^')) {
            i--;
            continue;
        }
        TF_Output from = read_output(b, &field);
        if (!name_output(b, from, text, sizeof text)) {
            set_status(b->status, TF_INVALID_ARGUMENT,
                       "Input %d, '%s:%d', of node '%s' in function '%s' is not available. You might need to include "
                       "it in inputs or include its source node in the body",
                       i, TF_OperationName(from.oper), from.index, TF_OperationName(oper), b->name);
            return false;
        }
        wire_text(node, INPUT, text);
    }
    for (int i = 0; i < tw_node_num_control_inputs(oper->node); i++) {
        const tw_node *from = tw_node_control_input(oper->node, i);
        const char *argument = find_argument_from(b, from);
        if (!b->within[tw_node_number(from)] && !argument) {
            set_status(b->status, TF_INVALID_ARGUMENT,
                       "The source of control edge [id=%d %s:-1 -> %s:-1] is not in the body. Encountered while "
                       "creating function '%s'",
                       edge_id(b->graph->tower, oper->node, i), tw_node_name(from), TF_OperationName(oper), b->name);
            return false;
        }
        snprintf(text, sizeof text, "^%s", argument ? argument : name_of(b, from));
        wire_text(node, INPUT, text);
    }
    return true;
}

/* What a NodeDef says but its inputs. */
static bool write_node(const body *b, TF_Operation *oper, wire *def)
{
    enum { NODE = 3, NAME = 1, INPUT = 3 };
    wire node = {0};
    wire_field field;
    TF_Buffer whole = {0};
    TF_OperationToNodeDef(oper, &whole, b->status);
    wire_reader r = wire_read(whole.data, whole.length);
    wire_text(&node, NAME, name_of(b, oper->node));
    for (const uint8_t *from = r.at; is_ok(b->status) && wire_next(&r, &field); from = r.at)
        if (field.number != NAME && field.number != INPUT)
            wire_append(&node, from, (size_t)(r.at - from));
    bool written = is_ok(b->status) && write_inputs(b, oper, wire_read(whole.data, whole.length), &node);
    if (whole.data_deallocator)
        whole.data_deallocator((void *)whole.data, whole.length);
    if (written)
        wire_message(def, NODE, &node);
    wire_free(&node);
    return written;
}

static void write_pair(wire *def, int field, const char *key, const char *value)
{
    enum { KEY = 1, VALUE = 2 };
    wire pair = {0};
    wire_text(&pair, KEY, key);
    wire_text(&pair, VALUE, value);
    wire_message(def, field, &pair);
}

static void write_argument(wire *signature, int field, const char *name, TF_Output output)
{
    enum { NAME = 1, TYPE = 3, REFERENCE = 100 };
    wire argument = {0};
    wire_text(&argument, NAME, name);
    wire_int(&argument, TYPE, (uint64_t)(TF_OperationOutputType(output) % REFERENCE));
    wire_message(signature, field, &argument);
}

/* The argument's attribute that says its shape, a TensorShapeProto. */
static void write_argument_shape(const wire_field *shape, wire *attrs)
{
    enum { ATTR = 1, KEY = 1, VALUE = 2, LIST = 1, SHAPE = 7 };
    wire list = {0}, shapes = {0}, entry = {0};
    wire_bytes(&list, SHAPE, shape->data, shape->size);
    wire_message(&shapes, LIST, &list);
    wire_text(&entry, KEY, "_output_shapes");
    wire_message(&entry, VALUE, &shapes);
    wire_message(attrs, ATTR, &entry);
}

/* An attribute "shape" is the argument's, as that of a constant's "value" is, and those that begin with an underscore
 * go with it. */
static void write_argument_attr(const wire_field *attr, bool is_constant, wire *attrs)
{
    enum { ATTR = 1, KEY = 1, SHAPE = 7, TENSOR = 8, TENSOR_SHAPE = 2 };
    wire_field field, key = {0}, value = {0}, part;
    for (wire_reader r = wire_read(attr->data, attr->size); wire_next(&r, &field);)
        *(field.number == KEY ? &key : &value) = field;
    if (key.size > 0 && *key.data == '_')
        wire_bytes(attrs, ATTR, attr->data, attr->size);
    wire_reader r = wire_read(value.data, value.size);
    if (wire_is_text(&key, "shape") && wire_next(&r, &part) && part.number == SHAPE)
        write_argument_shape(&part, attrs);
    if (is_constant && wire_is_text(&key, "value") && wire_next(&r, &part) && part.number == TENSOR) {
        for (r = wire_read(part.data, part.size); wire_next(&r, &part);)
            if (part.number == TENSOR_SHAPE)
                write_argument_shape(&part, attrs);
    }
}

static void write_argument_attrs(const body *b, int argument, wire *def)
{
    enum { NODE_ATTR = 5, ARG_ATTR = 7, KEY = 1, VALUE = 2 };
    wire attrs = {0}, entry = {0};
    wire_field field;
    TF_Buffer node = {0};
    bool is_constant = tw_node_is_constant(b->inputs[argument].oper->node);
    TF_OperationToNodeDef(b->inputs[argument].oper, &node, b->status);
    for (wire_reader r = wire_read(node.data, node.length); is_ok(b->status) && wire_next(&r, &field);)
        if (field.number == NODE_ATTR && field.type == 2)
            write_argument_attr(&field, is_constant, &attrs);
    if (node.data_deallocator)
        node.data_deallocator((void *)node.data, node.length);
    if (attrs.size > 0) {
        wire_int(&entry, KEY, (uint64_t)argument);
        wire_bytes(&entry, VALUE, attrs.data, attrs.size);
        wire_message(def, ARG_ATTR, &entry);
    }
    wire_free(&attrs);
}

static bool write_function(const body *b, const char *description, wire *def)
{
    enum {
        SIGNATURE = 1,
        NAME = 1,
        INPUT = 2,
        OUTPUT = 3,
        DESCRIPTION = 6,
        IS_STATEFUL = 17,
        CONTROL_OUTPUT = 20,
        RET = 4,
        CONTROL_RET = 6
    };
    wire signature = {0};
    bool is_stateful = false;
    char text[MOST_TEXT];
    wire_text(&signature, NAME, b->name);
    for (int i = 0; i < b->ninputs; i++)
        write_argument(&signature, INPUT, b->arguments[i], b->inputs[i]);
    for (int i = 0; i < b->noutputs; i++)
        write_argument(&signature, OUTPUT, b->results[i], b->outputs[i]);
    for (int i = 0; i < b->graph->num_operations; i++) {
        const tw_op_info *op = b->within[i] ? op_of(b->graph->operations[i]) : NULL;
        is_stateful |= op && op->is_stateful && !tw_node_is_placeholder(b->graph->operations[i]->node);
    }
    if (description)
        wire_text(&signature, DESCRIPTION, description);
    if (is_stateful)
        wire_int(&signature, IS_STATEFUL, 1);
    for (const char *name = ""; (name = next_control_name(b, name));)
        wire_text(&signature, CONTROL_OUTPUT, name);
    wire_message(def, SIGNATURE, &signature);
    for (int i = 0; i < b->graph->num_operations; i++)
        if (b->within[i] && !write_node(b, b->graph->operations[i], def))
            return false;
    for (int i = 0; i < b->noutputs; i++) {
        if (!name_output(b, b->outputs[i], text, sizeof text)) {
            set_status(b->status, TF_INVALID_ARGUMENT,
                       "TF_Output %s:%d is neither in the function body nor among function inputs. Encountered while "
                       "creating function '%s'",
                       TF_OperationName(b->outputs[i].oper), b->outputs[i].index, b->name);
            return false;
        }
        write_pair(def, RET, b->results[i], text);
    }
    for (int i = 0; i < b->ncontrols; i++) {
        const tw_node *node = b->controls[i]->node;
        const char *argument = find_argument_from(b, node);
        write_pair(def, CONTROL_RET, control_name(b, i), argument ? argument : name_of(b, node));
    }
    for (int i = 0; i < b->ninputs && is_ok(b->status); i++)
        write_argument_attrs(b, i, def);
    return is_ok(b->status);
}

/* NAME_HASH, of what the function is. */
static void append_hash(char *name, size_t size, const wire *def)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < def->size; i++)
        hash = (hash ^ def->data[i]) * 1099511628211u;
    size_t length = strlen(name);
    snprintf(name + length, size - length, "_%016llx", (unsigned long long)hash);
}

TF_Function *TF_GraphToFunctionWithControlOutputs(
    const TF_Graph *fn_body, const char *fn_name, unsigned char append_hash_to_fn_name, int num_opers,
    const TF_Operation *const *opers, int ninputs, const TF_Output *inputs, int noutputs, const TF_Output *outputs,
    const char *const *output_names, int ncontrol_outputs, const TF_Operation *const *control_outputs,
    const char *const *control_output_names, const TF_FunctionOptions *opts, const char *description, TF_Status *status)
{
    (void)opts;
    char name[MOST_TEXT];
    wire def = {0};
    TF_Function *function = NULL;
    TF_Graph *graph = (TF_Graph *)fn_body; /* its lock changes */
    snprintf(name, sizeof name - 20, "%s", fn_name);
    body b = {.graph = fn_body,
              .name = name,
              .inputs = inputs,
              .ninputs = ninputs,
              .outputs = outputs,
              .noutputs = noutputs,
              .controls = control_outputs,
              .control_names = control_output_names,
              .ncontrols = ncontrol_outputs,
              .status = status};
    TF_SetStatus(status, TF_OK, "");
    pthread_rwlock_rdlock(&graph->lock);
    bool written = check_ends(&b, output_names) && choose(&b, num_opers, opers) && check_controls(&b) &&
                   give_names(&b, output_names) && write_function(&b, description, &def);
    if (written && append_hash_to_fn_name) {
        append_hash(name, sizeof name, &def);
        wire_free(&def);
        written = write_function(&b, description, &def);
    }
    pthread_rwlock_unlock(&graph->lock);
    if (written)
        function = new_function(&def, status);
    wire_free(&def);
    for (int i = 0; i < b.num_arguments; i++)
        free(b.arguments[i]);
    for (int i = 0; i < b.num_results; i++)
        free(b.results[i]);
    for (int i = 0; i < b.num_renamed; i++)
        free(b.renamed[i].name);
    free(b.renamed);
    free(b.arguments);
    free(b.results);
    free(b.within);
    return function;
}

TF_Function *TF_GraphToFunction(const TF_Graph *fn_body, const char *fn_name, unsigned char append_hash_to_fn_name,
                                int num_opers, const TF_Operation *const *opers, int ninputs, const TF_Output *inputs,
                                int noutputs, const TF_Output *outputs, const char *const *output_names,
                                const TF_FunctionOptions *opts, const char *description, TF_Status *status)
{
    return TF_GraphToFunctionWithControlOutputs(fn_body, fn_name, append_hash_to_fn_name, num_opers, opers, ninputs,
                                                inputs, noutputs, outputs, output_names, 0, NULL, NULL, opts,
                                                description, status);
}
