/* while.c - loops: the caller builds two graphs, whether there is another round and what it does; they become
 * functions, and the loop a While that calls them. The condition's graph remembers where the loop is to be.
 * Never here:  loops of files, which Tower reads. */
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

/* Adds the While, whose outputs are what the last round left. Functions of the graph by these names are there. */
static TF_Operation *add(const TF_WhileParams *p, const TF_Function *cond, const TF_Function *body, TF_Status *status)
{
    TF_Graph *graph = p->cond_graph->around;
    const TF_Output *begins = p->cond_graph->begins;
    TF_DataType *types = calloc((size_t)p->ninputs, sizeof *types);
    TF_OperationDescription *d = types ? TF_NewOperation(graph, "While", p->name) : NULL;
    if (!d) {
        free(types);
        set_no_memory(status);
        return NULL;
    }
    for (int i = 0; i < p->ninputs; i++)
        types[i] = TF_OperationOutputType(begins[i]);
    TF_AddInputList(d, begins, p->ninputs);
    TF_SetAttrTypeList(d, "T", types, p->ninputs);
    TF_SetAttrFuncName(d, "cond", cond->name, strlen(cond->name));
    TF_SetAttrFuncName(d, "body", body->name, strlen(body->name));
    free(types);
    return TF_FinishOperation(d, status);
}

void TF_FinishWhile(const TF_WhileParams *params, TF_Status *status, TF_Output *outputs)
{
    char name[4096];
    TF_Function *cond = NULL, *body = NULL;
    TF_Operation *made = NULL;
    TF_Status *unasked = TF_NewStatus();
    if (!unasked)
        set_no_memory(status);
    else if (check(params, status)) {
        snprintf(name, sizeof name, "%.4000s_cond", params->name);
        cond = TF_GraphToFunction(params->cond_graph, name, 1, -1, NULL, params->ninputs, params->cond_inputs, 1,
                                  &params->cond_output, NULL, NULL, NULL, status);
        snprintf(name, sizeof name, "%.4000s_body", params->name);
    }
    if (cond)
        body = TF_GraphToFunction(params->body_graph, name, 1, -1, NULL, params->ninputs, params->body_inputs,
                                  params->ninputs, params->body_outputs, NULL, NULL, NULL, status);
    if (body) {
        TF_Graph *graph = params->cond_graph->around;
        TF_GraphCopyFunction(graph, cond, NULL, status);
        if (is_ok(status))
            TF_GraphCopyFunction(graph, body, NULL, status);
        if (is_ok(status))
            made = add(params, cond, body, status);
        TF_GraphRemoveFunction(graph, cond->name, unasked); /* nodes are all that is left of them */
        TF_GraphRemoveFunction(graph, body->name, unasked);
    }
    for (int i = 0; i < params->ninputs && made; i++)
        outputs[i] = (TF_Output){made, i};
    TF_DeleteFunction(cond);
    TF_DeleteFunction(body);
    TF_DeleteStatus(unasked);
    free_params(params);
}
