/* deprecated.c - sessions without a TF_Graph, as programs of TensorFlow's first years have them: each has a graph of
 * its own, which messages extend, and names stand for outputs.
 * Never here:  running itself, which is that of the other sessions. */
#include "capi.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct TF_DeprecatedSession {
    TF_Graph *graph;
    TF_Session *session;
    bool has_graph;
};

TF_DeprecatedSession *TF_NewDeprecatedSession(const TF_SessionOptions *options, TF_Status *status)
{
    TF_DeprecatedSession *session = calloc(1, sizeof *session);
    if (session && (session->graph = TF_NewGraph()))
        session->session = TF_NewSession(session->graph, options, status);
    else
        set_no_memory(status);
    if (is_ok(status))
        return session;
    TF_DeleteGraph(session ? session->graph : NULL);
    free(session);
    return NULL;
}

void TF_CloseDeprecatedSession(TF_DeprecatedSession *session, TF_Status *status)
{
    TF_CloseSession(session->session, status);
}

void TF_DeleteDeprecatedSession(TF_DeprecatedSession *session, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    if (!session)
        return;
    TF_DeleteSession(session->session, status);
    TF_DeleteGraph(session->graph);
    free(session);
}

TF_DeviceList *TF_DeprecatedSessionListDevices(TF_DeprecatedSession *session, TF_Status *status)
{
    return TF_SessionListDevices(session->session, status);
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* What names stand for: inputs, outputs, targets. */
typedef struct names {
    TF_Output *outputs; /* of the inputs, then of the outputs */
    const TF_Operation **targets;
} names;

static TF_Operation *find_operation(const TF_DeprecatedSession *session, const char *name, size_t length)
{
    char *copy = strndup(name, length);
    TF_Operation *found = copy ? TF_GraphOperationByName(session->graph, copy) : NULL;
    free(copy);
    return found;
}

/* "NAME:INDEX"; "NAME" is the first. `oper` NULL: there is none. */
static TF_Output output_named(const TF_DeprecatedSession *session, const char *name)
{
    const char *colon = strrchr(name, ':');
    char *end = NULL;
    long index = colon ? strtol(colon + 1, &end, 10) : 0;
    bool is_number = colon && end != colon + 1 && *end == 0 && index >= 0 && index < INT_MAX;
    return (TF_Output){find_operation(session, name, is_number ? (size_t)(colon - name) : strlen(name)),
                       is_number ? (int)index : 0};
}

static bool find_named(const TF_DeprecatedSession *session, const char *name, TF_Output *found, TF_Status *status)
{
    *found = output_named(session, name);
    if (!found->oper)
        set_status(status, TF_INVALID_ARGUMENT, "there is no '%s' in the graph", name);
    return found->oper;
}

static bool find_all(const TF_DeprecatedSession *session, const char **input_names, int ninputs,
                     const char **output_names, int noutputs, const char **target_names, int ntargets, names *found,
                     TF_Status *status)
{
    found->outputs = calloc((size_t)ninputs + (size_t)noutputs + 1, sizeof *found->outputs);
    found->targets = calloc((size_t)ntargets + 1, sizeof *found->targets);
    TF_SetStatus(status, TF_OK, "");
    if (!found->outputs || !found->targets)
        set_no_memory(status);
    else if (!session->has_graph)
        set_status(status, TF_INVALID_ARGUMENT, "Session was not created with a graph before Run()!");
    for (int i = 0; i < ninputs && is_ok(status); i++)
        find_named(session, input_names[i], &found->outputs[i], status);
    for (int i = 0; i < noutputs && is_ok(status); i++)
        find_named(session, output_names[i], &found->outputs[ninputs + i], status);
    for (int i = 0; i < ntargets && is_ok(status); i++) {
        found->targets[i] = output_named(session, target_names[i]).oper; /* may be given as an output */
        if (!found->targets[i])
            set_status(status, TF_NOT_FOUND, "there is no '%s' in the graph", target_names[i]);
    }
    return is_ok(status);
}

static void free_names(names *found)
{
    free(found->outputs);
    free(found->targets);
}

/* ---- extending -------------------------------------------------------------------------------------------------- */

/* What a node reads, runs behind or lies beside may be in the graph already. */
static void lead_to_graph(const TF_DeprecatedSession *session, const wire_field *name, size_t skipped,
                          TF_ImportGraphDefOptions *options)
{
    char *text = strndup((const char *)name->data + skipped, name->size - skipped);
    TF_Output found = text ? output_named(session, text) : (TF_Output){0};
    if (found.oper && skipped)
        TF_ImportGraphDefOptionsRemapControlDependency(options, TF_OperationName(found.oper), found.oper);
    else if (found.oper)
        TF_ImportGraphDefOptionsAddInputMapping(options, TF_OperationName(found.oper), found.index, found);
    free(text);
}

/* The field of that number, the last one, in a message that lies in another. */
static wire_field field_in(const wire_field *message, int number)
{
    wire_field field, found = {0};
    wire_reader r = wire_read(message->data, message->size);
    while (message->type == 2 && wire_next(&r, &field))
        if (field.number == number)
            found = field;
    return found;
}

static void lead_node(const TF_DeprecatedSession *session, const wire_field *node, TF_ImportGraphDefOptions *options)
{
    enum { INPUT = 3, ATTR = 5, KEY = 1, VALUE = 2, LIST = 1, S = 2, LOC = sizeof "loc:@" - 1 };
    wire_field field, beside;
    wire_reader r = wire_read(node->data, node->size);
    while (wire_next(&r, &field)) {
        if (field.number == INPUT && field.type == 2)
            lead_to_graph(session, &field, field.size > 0 && *field.data == '^', options);
        wire_field key = field.number == ATTR ? field_in(&field, KEY) : (wire_field){0};
        if (key.type != 2 || !wire_is_text(&key, "_class"))
            continue;
        wire_field value = field_in(&field, VALUE), list = field_in(&value, LIST);
        wire_reader names = wire_read(list.data, list.size);
        while (list.type == 2 && wire_next(&names, &beside))
            if (beside.number == S && beside.type == 2 && beside.size > LOC)
                lead_to_graph(session, &beside, LOC, options);
    }
}

void TF_ExtendGraph(TF_DeprecatedSession *session, const void *proto, size_t proto_len, TF_Status *status)
{
    enum { NODE = 1 };
    wire_field field;
    TF_ImportGraphDefOptions *options = TF_NewImportGraphDefOptions();
    wire_reader r = wire_read(proto, options ? proto_len : 0);
    while (wire_next(&r, &field))
        if (field.number == NODE && field.type == 2)
            lead_node(session, &field, options);
    if (options)
        TF_GraphImportGraphDef(session->graph, &(TF_Buffer){proto, proto_len, NULL}, options, status);
    else
        set_no_memory(status);
    TF_DeleteImportGraphDefOptions(options);
    session->has_graph |= is_ok(status);
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

/* Unlike TF_SessionRun() these take the inputs over. */
static void delete_inputs(TF_Tensor **inputs, int ninputs)
{
    for (int i = 0; i < ninputs; i++)
        TF_DeleteTensor(inputs[i]);
}

void TF_Run(TF_DeprecatedSession *session, const TF_Buffer *run_options, const char **input_names, TF_Tensor **inputs,
            int ninputs, const char **output_names, TF_Tensor **outputs, int noutputs, const char **target_oper_names,
            int ntargets, TF_Buffer *run_metadata, TF_Status *status)
{
    names found;
    for (int i = 0; i < noutputs; i++)
        outputs[i] = NULL;
    if (find_all(session, input_names, ninputs, output_names, noutputs, target_oper_names, ntargets, &found, status))
        TF_SessionRun(session->session, run_options, found.outputs, inputs, ninputs, found.outputs + ninputs, outputs,
                      noutputs, found.targets, ntargets, run_metadata, status);
    free_names(&found);
    delete_inputs(inputs, ninputs);
}

void TF_PRunSetup(TF_DeprecatedSession *session, const char **input_names, int ninputs, const char **output_names,
                  int noutputs, const char **target_oper_names, int ntargets, const char **handle, TF_Status *status)
{
    names found;
    *handle = NULL;
    if (find_all(session, input_names, ninputs, output_names, noutputs, target_oper_names, ntargets, &found, status))
        TF_SessionPRunSetup(session->session, found.outputs, ninputs, found.outputs + ninputs, noutputs, found.targets,
                            ntargets, handle, status);
    free_names(&found);
}

void TF_PRun(TF_DeprecatedSession *session, const char *handle, const char **input_names, TF_Tensor **inputs,
             int ninputs, const char **output_names, TF_Tensor **outputs, int noutputs, const char **target_oper_names,
             int ntargets, TF_Status *status)
{
    names found;
    for (int i = 0; i < noutputs; i++)
        outputs[i] = NULL;
    if (find_all(session, input_names, ninputs, output_names, noutputs, target_oper_names, ntargets, &found, status))
        TF_SessionPRun(session->session, handle, found.outputs, inputs, ninputs, found.outputs + ninputs, outputs,
                       noutputs, found.targets, ntargets, status);
    free_names(&found);
    delete_inputs(inputs, ninputs);
}
