/* import.c - GraphDefs become parts of a graph.
 * Never here:  reading nodes themselves, which Tower does. */
#include "capi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tower/io.h>

struct TF_ImportGraphDefOptions {
    char *prefix, *device;
    bool uniquify_names, uniquify_prefix;
    tw_import_input *inputs;  /* without what they lead to; the names are ours */
    TF_Output *input_outputs; /* [num_inputs] what they lead to */
    int num_inputs;
    TF_Operation **after;
    int num_after;
    tw_import_input *outputs; /* what is to be returned, by name and index; the names are ours */
    int num_outputs;
    char **operations;
    int num_operations;
};

struct TF_ImportGraphDefResults {
    TF_Output *outputs;
    TF_Operation **operations;
    char **missing;
    int *missing_indexes;
    int num_outputs, num_operations, num_missing;
};

/* ---- options ---------------------------------------------------------------------------------------------------- */

TF_ImportGraphDefOptions *TF_NewImportGraphDefOptions(void)
{
    return calloc(1, sizeof(TF_ImportGraphDefOptions));
}

void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions *opts)
{
    if (!opts)
        return;
    for (int i = 0; i < opts->num_inputs; i++)
        free((char *)opts->inputs[i].name);
    for (int i = 0; i < opts->num_outputs; i++)
        free((char *)opts->outputs[i].name);
    for (int i = 0; i < opts->num_operations; i++)
        free(opts->operations[i]);
    free(opts->prefix);
    free(opts->device);
    free(opts->inputs);
    free(opts->input_outputs);
    free(opts->after);
    free(opts->outputs);
    free(opts->operations);
    free(opts);
}

static void set_text(char **text, const char *value)
{
    char *copy = value ? strdup(value) : NULL;
    free(*text);
    *text = copy;
}

void TF_ImportGraphDefOptionsSetPrefix(TF_ImportGraphDefOptions *opts, const char *prefix)
{
    set_text(&opts->prefix, prefix);
    size_t length = opts->prefix ? strlen(opts->prefix) : 0;
    if (length > 0 && opts->prefix[length - 1] == '/')
        opts->prefix[length - 1] = 0;
}

void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions *opts, const char *device)
{
    set_text(&opts->device, device);
}

void TF_ImportGraphDefOptionsSetUniquifyNames(TF_ImportGraphDefOptions *opts, unsigned char uniquify_names)
{
    opts->uniquify_names = uniquify_names;
}

void TF_ImportGraphDefOptionsSetUniquifyPrefix(TF_ImportGraphDefOptions *opts, unsigned char uniquify_prefix)
{
    opts->uniquify_prefix = uniquify_prefix;
}

void TF_ImportGraphDefOptionsSetValidateColocationConstraints(TF_ImportGraphDefOptions *opts, unsigned char enable)
{
    (void)opts;
    (void)enable;
}

/* One more item at the end of a list; NULL: memory ran out, and the list is as it was. */
#define ADD_ITEM(list, count)                                                                                          \
    (__extension__({                                                                                                   \
        void *grown_ = realloc(list, sizeof *(list) * (size_t)((count) + 1));                                          \
        if (grown_)                                                                                                    \
            (list) = grown_;                                                                                           \
        grown_ ? &(list)[(count)++] : NULL;                                                                            \
    }))

void TF_ImportGraphDefOptionsAddInputMapping(TF_ImportGraphDefOptions *opts, const char *src_name, int src_index,
                                             TF_Output dst)
{
    int count = opts->num_inputs;
    for (int i = 0; i < count; i++)
        if (opts->inputs[i].index == src_index && strcmp(opts->inputs[i].name, src_name) == 0) {
            opts->input_outputs[i] = dst; /* what is told last stands */
            return;
        }
    TF_Output *output = ADD_ITEM(opts->input_outputs, count);
    tw_import_input *input = output ? ADD_ITEM(opts->inputs, opts->num_inputs) : NULL;
    if (!input)
        return;
    *output = dst;
    *input = (tw_import_input){.name = strdup(src_name), .index = src_index};
}

void TF_ImportGraphDefOptionsRemapControlDependency(TF_ImportGraphDefOptions *opts, const char *src_name,
                                                    TF_Operation *dst)
{
    TF_ImportGraphDefOptionsAddInputMapping(opts, src_name, -1, (TF_Output){dst, -1});
}

void TF_ImportGraphDefOptionsAddControlDependency(TF_ImportGraphDefOptions *opts, TF_Operation *oper)
{
    TF_Operation **added = ADD_ITEM(opts->after, opts->num_after);
    if (added)
        *added = oper;
}

void TF_ImportGraphDefOptionsAddReturnOutput(TF_ImportGraphDefOptions *opts, const char *oper_name, int index)
{
    tw_import_input *added = ADD_ITEM(opts->outputs, opts->num_outputs);
    if (added)
        *added = (tw_import_input){.name = strdup(oper_name), .index = index};
}

int TF_ImportGraphDefOptionsNumReturnOutputs(const TF_ImportGraphDefOptions *opts)
{
    return opts->num_outputs;
}

void TF_ImportGraphDefOptionsAddReturnOperation(TF_ImportGraphDefOptions *opts, const char *oper_name)
{
    char **added = ADD_ITEM(opts->operations, opts->num_operations);
    if (added)
        *added = strdup(oper_name);
}

int TF_ImportGraphDefOptionsNumReturnOperations(const TF_ImportGraphDefOptions *opts)
{
    return opts->num_operations;
}

/* ---- importing -------------------------------------------------------------------------------------------------- */

char *unique_prefix(const tw_graph *graph, const char *wanted)
{
    size_t room = strlen(wanted) + 16;
    char *prefix = malloc(room);
    if (prefix)
        snprintf(prefix, room, "%s", wanted);
    for (int k = 1; prefix && find_in_scope(graph, prefix); k++)
        snprintf(prefix, room, "%s_%d", wanted, k);
    return prefix;
}

/* The functions that a GraphDef brings become the graph's, for operations that are built later. */
static void keep_functions(TF_Graph *graph, const TF_Buffer *graph_def)
{
    enum { LIBRARY = 2, FUNCTION = 1 };
    wire_field field, function;
    TF_Status status = {0};
    wire_reader r = wire_read(graph_def->data, graph_def->length);
    while (wire_next(&r, &field)) {
        wire_reader library =
            field.number == LIBRARY && field.type == 2 ? wire_read(field.data, field.size) : (wire_reader){0};
        while (wire_next(&library, &function)) {
            TF_Function *read = function.number == FUNCTION && function.type == 2
                                    ? TF_FunctionImportFunctionDef(function.data, function.size, &status)
                                    : NULL;
            if (read)
                add_function(graph, read, NULL, &status);
            TF_DeleteFunction(read);
        }
    }
    free(status.message);
}

/* A node of the GraphDef that has attributes to be kept beside its operation. */
typedef struct marked {
    char *name;
    wire_field def;
} marked;

typedef struct importing {
    TF_Graph *graph;
    const TF_ImportGraphDefOptions *options;
    TF_ImportGraphDefResults *results;
    tw_import_input *inputs;
    const char **names; /* of what is returned: outputs, then operations, then the mappings', then those marked */
    tw_node **nodes;
    tw_node **after;
    marked *marked;
    int num_names, num_marked;
    TF_Status *status;
} importing;

/* The next attribute of a NodeDef that is to be kept. Shapes are inferred anew. */
static bool next_kept(wire_reader *node, wire_field *key, wire_field *value)
{
    enum { ATTR = 5, KEY = 1, VALUE = 2 };
    wire_field field, part;
    while (wire_next(node, &field)) {
        *key = *value = (wire_field){0};
        wire_reader entry =
            field.number == ATTR && field.type == 2 ? wire_read(field.data, field.size) : (wire_reader){0};
        while (wire_next(&entry, &part))
            *(part.number == KEY ? key : value) = part;
        if (is_kept((const char *)key->data, key->size) && !wire_is_text(key, "_output_shapes"))
            return true;
    }
    return false;
}

/* False: memory ran out. */
static bool find_marked(importing *m, const TF_Buffer *graph_def)
{
    enum { NODE = 1, NAME = 1 };
    wire_field field, part, name, value;
    wire_reader r = wire_read(graph_def->data, graph_def->length);
    while (wire_next(&r, &field)) {
        bool is_node = field.number == NODE && field.type == 2;
        wire_reader attrs = is_node ? wire_read(field.data, field.size) : (wire_reader){0}, parts = attrs;
        if (!next_kept(&attrs, &name, &value))
            continue;
        for (name = (wire_field){0}; wire_next(&parts, &part);)
            if (part.number == NAME)
                name = part;
        marked *added = ADD_ITEM(m->marked, m->num_marked);
        if (!added)
            return false;
        *added = (marked){strndup(name.data ? (const char *)name.data : "", name.size), field};
        if (!added->name)
            return false;
    }
    return true;
}

/* Beside the operations that the marked nodes have become. */
static bool keep_marked(const importing *m)
{
    wire_field key, value;
    bool kept = true;
    for (int i = 0; i < m->num_marked; i++) {
        TF_Operation *oper = operation_of(m->graph, m->nodes[m->num_names - m->num_marked + i]);
        wire_reader r = wire_read(m->marked[i].def.data, m->marked[i].def.size);
        while (oper && kept && next_kept(&r, &key, &value))
            kept = keep_attr(oper, (const char *)key.data, key.size, value.data, value.size);
    }
    return kept;
}

/* A return output that is mapped is what it is mapped to. */
static bool find_mapped(const TF_ImportGraphDefOptions *o, const tw_import_input *wanted, TF_Output *output)
{
    for (int i = 0; i < o->num_inputs; i++)
        if (o->inputs[i].index == wanted->index && strcmp(o->inputs[i].name, wanted->name) == 0) {
            *output = o->input_outputs[i];
            return true;
        }
    return false;
}

static bool fill_results(importing *m)
{
    const TF_ImportGraphDefOptions *o = m->options;
    TF_ImportGraphDefResults *r = m->results;
    for (int i = 0; i < o->num_outputs; i++) {
        const tw_import_input *wanted = &o->outputs[i];
        if (find_mapped(o, wanted, &r->outputs[i]))
            continue;
        int outputs = m->nodes[i] ? tw_node_num_outputs(m->nodes[i]) : 0;
        if (!m->nodes[i])
            set_status(m->status, TF_INVALID_ARGUMENT, "Requested return tensor '%s:%d' not found in graph def",
                       wanted->name, wanted->index);
        else if (wanted->index < 0 || wanted->index >= outputs)
            set_status(m->status, TF_INVALID_ARGUMENT, "Invalid return output %d of node '%s', which has %d output(s)",
                       wanted->index, wanted->name, outputs);
        if (!is_ok(m->status))
            return false;
        r->outputs[i] = output_of(m->graph, (tw_output){m->nodes[i], wanted->index});
    }
    for (int i = 0; i < o->num_operations; i++) {
        r->operations[i] = operation_of(m->graph, m->nodes[o->num_outputs + i]);
        if (!r->operations[i]) {
            set_status(m->status, TF_INVALID_ARGUMENT, "Requested return node '%s' not found in graph def",
                       o->operations[i]);
            return false;
        }
    }
    for (int i = 0; i < o->num_inputs; i++) {
        const tw_node *from = m->nodes[o->num_outputs + o->num_operations + i];
        if (!m->inputs[i].used && (!from || o->inputs[i].index >= tw_node_num_outputs(from))) {
            r->missing[r->num_missing] = strdup(o->inputs[i].name);
            r->missing_indexes[r->num_missing++] = o->inputs[i].index;
        }
    }
    return true;
}

static bool allocate(importing *m)
{
    const TF_ImportGraphDefOptions *o = m->options;
    TF_ImportGraphDefResults *r = m->results;
    m->num_names = o->num_outputs + o->num_operations + o->num_inputs + m->num_marked;
    size_t names = (size_t)m->num_names + 1;
    m->names = calloc(names, sizeof *m->names);
    m->nodes = calloc(names, sizeof *m->nodes);
    m->after = calloc((size_t)o->num_after + 1, sizeof *m->after);
    m->inputs = calloc((size_t)o->num_inputs + 1, sizeof *m->inputs);
    if (r) {
        r->num_outputs = o->num_outputs;
        r->num_operations = o->num_operations;
        r->outputs = calloc(names, sizeof *r->outputs);
        r->operations = calloc(names, sizeof *r->operations);
        r->missing = calloc(names, sizeof *r->missing);
        r->missing_indexes = calloc(names, sizeof *r->missing_indexes);
    }
    return m->names && m->nodes && m->after && m->inputs && r && r->outputs && r->operations && r->missing &&
           r->missing_indexes;
}

/* What the options say of other operations, for Tower. */
static bool translate(importing *m)
{
    const TF_ImportGraphDefOptions *o = m->options;
    int count = 0;
    for (int i = 0; i < o->num_outputs; i++)
        m->names[count++] = o->outputs[i].name;
    for (int i = 0; i < o->num_operations; i++)
        m->names[count++] = o->operations[i];
    for (int i = 0; i < o->num_inputs; i++) {
        TF_Output to = o->input_outputs[i];
        m->names[count++] = o->inputs[i].name;
        if (!to.oper || to.oper->graph != m->graph) {
            set_status(m->status, TF_INVALID_ARGUMENT, "what '%s:%d' is mapped to is not in the graph",
                       o->inputs[i].name, o->inputs[i].index);
            return false;
        }
        m->inputs[i] = o->inputs[i];
        m->inputs[i].output = (tw_output){to.oper->node, to.index};
    }
    for (int i = 0; i < m->num_marked; i++)
        m->names[count++] = m->marked[i].name;
    for (int i = 0; i < o->num_after; i++)
        m->after[i] = o->after[i] && o->after[i]->graph == m->graph ? o->after[i]->node : NULL;
    return true;
}

/* Of all operations from number `from` on. */
static bool check_made(importing *m, int from)
{
    for (int i = from; i < m->graph->num_operations && is_ok(m->status); i++)
        check_minima(m->graph->operations[i], m->status);
    return is_ok(m->status);
}

static void import(importing *m, const TF_Buffer *graph_def)
{
    const TF_ImportGraphDefOptions *o = m->options;
    tw_error error = TW_NO_ERROR;
    tw_graph *tower = m->graph->tower;
    int before = m->graph->num_operations;
    char *prefix = o->prefix && o->uniquify_prefix ? unique_prefix(tower, o->prefix) : NULL;
    tw_import_options options = {.size = sizeof options,
                                 .prefix = prefix ? prefix : o->prefix,
                                 .device = o->device,
                                 .inputs = m->inputs,
                                 .num_inputs = o->num_inputs,
                                 .after = m->after,
                                 .num_after = o->num_after,
                                 .rename = o->uniquify_names,
                                 .names = m->names,
                                 .nodes = m->nodes,
                                 .num_names = m->num_names};
    wire def = {0};
    if (m->graph->num_functions) { /* which may be called, too */
        wire_append(&def, graph_def->data, graph_def->length);
        write_library(&def, m->graph);
    }
    bool copied = def.size > 0;
    if (def.failed)
        error = (tw_error){TW_RESOURCE_EXHAUSTED, "out of memory"};
    else
        tw_graph_import_with(tower,
                             copied              ? def.data
                             : graph_def->length ? graph_def->data
                                                 : "",
                             copied ? def.size : graph_def->length, &options, &error);
    wire_free(&def);
    free(prefix);
    set_graph_error(m->status, &error);
    if (!is_ok(m->status))
        return;
    if (!sync_graph(m->graph))
        set_no_memory(m->status);
    else if (!check_made(m, before) || !fill_results(m))
        take_back(m->graph, before);
    else if (!keep_marked(m)) {
        take_back(m->graph, before);
        set_no_memory(m->status);
    } else
        keep_functions(m->graph, graph_def);
}

TF_ImportGraphDefResults *import_graph(TF_Graph *graph, const TF_Buffer *graph_def,
                                       const TF_ImportGraphDefOptions *options, TF_Status *status)
{
    importing m = {.graph = graph, .options = options, .results = calloc(1, sizeof *m.results), .status = status};
    TF_SetStatus(status, TF_OK, "");
    if (!wire_is_message(graph_def->data, graph_def->length))
        set_status(status, TF_INVALID_ARGUMENT, "Invalid GraphDef");
    else if (!find_marked(&m, graph_def) || !allocate(&m))
        set_no_memory(status);
    else if (translate(&m))
        import(&m, graph_def);
    for (int i = 0; i < m.num_marked; i++)
        free(m.marked[i].name);
    free(m.marked);
    free(m.names);
    free(m.nodes);
    free(m.after);
    free(m.inputs);
    if (is_ok(status))
        return m.results;
    TF_DeleteImportGraphDefResults(m.results);
    return NULL;
}

TF_ImportGraphDefResults *TF_GraphImportGraphDefWithResults(TF_Graph *graph, const TF_Buffer *graph_def,
                                                            const TF_ImportGraphDefOptions *options, TF_Status *status)
{
    begin_building(graph);
    TF_ImportGraphDefResults *results = import_graph(graph, graph_def, options, status);
    end_building(graph);
    return results;
}

void TF_GraphImportGraphDef(TF_Graph *graph, const TF_Buffer *graph_def, const TF_ImportGraphDefOptions *options,
                            TF_Status *status)
{
    TF_DeleteImportGraphDefResults(TF_GraphImportGraphDefWithResults(graph, graph_def, options, status));
}

void TF_GraphImportGraphDefWithReturnOutputs(TF_Graph *graph, const TF_Buffer *graph_def,
                                             const TF_ImportGraphDefOptions *options, TF_Output *return_outputs,
                                             int num_return_outputs, TF_Status *status)
{
    if (num_return_outputs != options->num_outputs) {
        set_status(status, TF_INVALID_ARGUMENT, "Expected 'num_return_outputs' to be %d, got %d", options->num_outputs,
                   num_return_outputs);
        return;
    }
    if (num_return_outputs > 0 && !return_outputs) {
        set_status(status, TF_INVALID_ARGUMENT, "'return_outputs' must be preallocated to length %d",
                   num_return_outputs);
        return;
    }
    TF_ImportGraphDefResults *results = TF_GraphImportGraphDefWithResults(graph, graph_def, options, status);
    for (int i = 0; results && i < num_return_outputs; i++)
        return_outputs[i] = results->outputs[i];
    TF_DeleteImportGraphDefResults(results);
}

/* ---- results ---------------------------------------------------------------------------------------------------- */

void TF_ImportGraphDefResultsReturnOutputs(TF_ImportGraphDefResults *results, int *num_outputs, TF_Output **outputs)
{
    *num_outputs = results->num_outputs;
    *outputs = results->outputs;
}

void TF_ImportGraphDefResultsReturnOperations(TF_ImportGraphDefResults *results, int *num_opers, TF_Operation ***opers)
{
    *num_opers = results->num_operations;
    *opers = results->operations;
}

void TF_ImportGraphDefResultsMissingUnusedInputMappings(TF_ImportGraphDefResults *results,
                                                        int *num_missing_unused_input_mappings, const char ***src_names,
                                                        int **src_indexes)
{
    *num_missing_unused_input_mappings = results->num_missing;
    *src_names = (const char **)results->missing;
    *src_indexes = results->missing_indexes;
}

void TF_DeleteImportGraphDefResults(TF_ImportGraphDefResults *results)
{
    if (!results)
        return;
    for (int i = 0; i < results->num_missing; i++)
        free(results->missing[i]);
    free(results->outputs);
    free(results->operations);
    free(results->missing);
    free(results->missing_indexes);
    free(results);
}
