/* graph.c - graphs: their operations, shapes, and what they are as messages.
 * Never here:  what describes or imports operations (build.c, import.c). */
#include "capi.h"

#include <stdlib.h>
#include <string.h>
#include <tower/io.h>

/* ---- making and letting go -------------------------------------------------------------------------------------- */

TF_Graph *TF_NewGraph(void)
{
    TF_Graph *graph = calloc(1, sizeof *graph);
    if (!graph || !(graph->tower = tw_graph_create())) {
        free(graph);
        return NULL;
    }
    graph->references = 1;
    pthread_rwlock_init(&graph->lock, NULL);
    return graph;
}

void retain_graph(TF_Graph *graph)
{
    __atomic_add_fetch(&graph->references, 1, __ATOMIC_RELAXED);
}

static void free_operation(TF_Operation *operation)
{
    free(operation->consumers);
    free(operation->controlled);
    free_kept_attrs(operation);
    free(operation);
}

void release_graph(TF_Graph *graph)
{
    if (!graph || __atomic_sub_fetch(&graph->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (int i = 0; i < graph->num_operations; i++)
        free_operation(graph->operations[i]);
    for (int i = 0; i < graph->num_functions; i++)
        release_function(graph->functions[i]);
    free(graph->operations);
    free(graph->functions);
    free(graph->begins);
    for (int i = 0; i < graph->num_former; i++)
        tw_graph_destroy(graph->former[i]);
    free(graph->former);
    tw_graph_destroy(graph->tower);
    pthread_rwlock_destroy(&graph->lock);
    free(graph);
}

void TF_DeleteGraph(TF_Graph *graph)
{
    release_graph(graph);
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* Room for one more item; lists have room until the next power of two. */
static bool grow(void *list, int count, size_t size)
{
    if (count & (count - 1))
        return true;
    void **items = list, *grown = realloc(*items, (count ? (size_t)count * 2 : 1) * size);
    if (grown)
        *items = grown;
    return grown;
}

bool note_uses(TF_Operation *user)
{
    TF_Graph *graph = user->graph;
    for (int i = 0; i < tw_node_num_inputs(user->node); i++) {
        TF_Operation *from = operation_of(graph, tw_node_input(user->node, i).node);
        if (!grow(&from->consumers, from->num_consumers, sizeof *from->consumers))
            return false;
        from->consumers[from->num_consumers++] = (TF_Input){user, i};
    }
    for (int i = 0; i < tw_node_num_control_inputs(user->node); i++) {
        TF_Operation *from = operation_of(graph, tw_node_control_input(user->node, i));
        if (!grow(&from->controlled, from->num_controlled, sizeof *from->controlled))
            return false;
        from->controlled[from->num_controlled++] = user;
    }
    return true;
}

static bool add_operation(TF_Graph *graph, tw_node *node)
{
    TF_Operation *operation = calloc(1, sizeof *operation);
    if (!operation || !grow(&graph->operations, graph->num_operations, sizeof *graph->operations)) {
        free(operation);
        return false;
    }
    operation->graph = graph;
    operation->node = node;
    graph->operations[graph->num_operations++] = operation;
    return note_uses(operation);
}

/* Operations from number `count` on go. Uses stand in their order, so those that go are the last. */
static void forget_operations(TF_Graph *graph, int count)
{
    for (int i = 0; i < count; i++) {
        TF_Operation *o = graph->operations[i];
        while (o->num_consumers && tw_node_number(o->consumers[o->num_consumers - 1].oper->node) >= count)
            o->num_consumers--;
        while (o->num_controlled && tw_node_number(o->controlled[o->num_controlled - 1]->node) >= count)
            o->num_controlled--;
    }
    while (graph->num_operations > count)
        free_operation(graph->operations[--graph->num_operations]);
}

bool sync_graph(TF_Graph *graph)
{
    int before = graph->num_operations;
    for (int i = before; i < tw_graph_num_nodes(graph->tower); i++)
        if (!add_operation(graph, tw_graph_node(graph->tower, i))) {
            take_back(graph, before);
            return false;
        }
    return true;
}

void take_back(TF_Graph *graph, int count)
{
    forget_operations(graph, count);
    tw_graph_take_back(graph->tower, count);
}

TF_Operation *TF_GraphOperationByName(TF_Graph *graph, const char *oper_name)
{
    pthread_rwlock_rdlock(&graph->lock);
    TF_Operation *found = operation_of(graph, tw_graph_find(graph->tower, oper_name));
    pthread_rwlock_unlock(&graph->lock);
    return found;
}

TF_Operation *TF_GraphNextOperation(TF_Graph *graph, size_t *pos)
{
    pthread_rwlock_rdlock(&graph->lock);
    TF_Operation *next = *pos < (size_t)graph->num_operations ? graph->operations[(*pos)++] : NULL;
    pthread_rwlock_unlock(&graph->lock);
    return next;
}

const char *find_in_scope(const tw_graph *graph, const char *scope)
{
    size_t length = strlen(scope);
    for (int i = 0; i < tw_graph_num_nodes(graph); i++) {
        const char *name = tw_node_name(tw_graph_node(graph, i));
        if (strncmp(name, scope, length) == 0 && (name[length] == 0 || name[length] == '/'))
            return name;
    }
    return NULL;
}

/* A node that cannot run, for its op or one before it is not known, has no outputs, and says why. */
static void fail_output(TF_Output output, TF_Code below, TF_Code above, TF_Status *status)
{
    const char *name = TF_OperationName(output.oper), *op = TF_OperationOpType(output.oper);
    const tw_attr *why = tw_node_is_unknown(output.oper->node) ? tw_node_attr(output.oper->node, "why") : NULL;
    if (why)
        set_status(status, TF_NOT_FOUND, "node '%s' (%s): %s", name, op, why->s.data);
    else
        set_status(status, output.index < 0 ? below : above,
                   "Node '%s' (type: '%s', num of outputs: %d) does not have output %d", name, op,
                   tw_node_num_outputs(output.oper->node), output.index);
}

bool find_output_as(const TF_Graph *graph, TF_Output output, tw_output *found, TF_Code below, TF_Code above,
                    TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    if (!output.oper)
        set_status(status, TF_INVALID_ARGUMENT, "Node is null");
    else if (output.oper->graph != graph)
        set_status(status, TF_INVALID_ARGUMENT, "Node %s was not found in the graph", TF_OperationName(output.oper));
    else if (output.index < 0 || output.index >= tw_node_num_outputs(output.oper->node))
        fail_output(output, below, above, status);
    if (is_ok(status))
        *found = (tw_output){output.oper->node, output.index};
    return is_ok(status);
}

bool find_output(const TF_Graph *graph, TF_Output output, tw_output *found, TF_Status *status)
{
    return find_output_as(graph, output, found, TF_OUT_OF_RANGE, TF_OUT_OF_RANGE, status);
}

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

tw_shape shape_of(const int64_t *dims, int num_dims)
{
    tw_shape shape = {.rank = num_dims < 0 ? -1 : num_dims};
    for (int i = 0; i < num_dims && i < TW_MAX_RANK; i++)
        shape.dims[i] = dims[i] < 0 ? -1 : dims[i];
    return shape;
}

void TF_GraphSetTensorShape(TF_Graph *graph, TF_Output output, const int64_t *dims, const int num_dims,
                            TF_Status *status)
{
    tw_output found;
    tw_error error = TW_NO_ERROR;
    if (!find_output(graph, output, &found, status))
        return;
    begin_building(graph);
    tw_output_refine(found, shape_of(dims, num_dims), &error);
    end_building(graph);
    set_error(status, &error);
}

/* A handle is a scalar; what Tower knows of it is the shape of what it stands for. */
static tw_shape shape_of_output(TF_Graph *graph, tw_output output)
{
    pthread_rwlock_rdlock(&graph->lock);
    tw_shape shape = tw_output_shape(output);
    pthread_rwlock_unlock(&graph->lock);
    return tw_output_dtype(output) == TW_RESOURCE ? TW_SCALAR : shape;
}

int TF_GraphGetTensorNumDims(TF_Graph *graph, TF_Output output, TF_Status *status)
{
    tw_output found;
    return find_output(graph, output, &found, status) ? shape_of_output(graph, found).rank : -1;
}

void TF_GraphGetTensorShape(TF_Graph *graph, TF_Output output, int64_t *dims, int num_dims, TF_Status *status)
{
    tw_output found;
    if (!find_output(graph, output, &found, status))
        return;
    tw_shape shape = shape_of_output(graph, found);
    if (shape.rank >= 0 && shape.rank != num_dims) {
        set_status(status, TF_INVALID_ARGUMENT, "Expected rank is %d but actual rank is %d", num_dims, shape.rank);
        return;
    }
    for (int i = 0; i < shape.rank; i++)
        dims[i] = shape.dims[i];
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

static void write_version_def(wire *w)
{
    enum { PRODUCER = 1 };
    wire_int(w, PRODUCER, GRAPH_VERSION);
}

void write_versions(wire *def)
{
    enum { VERSIONS = 4 };
    wire versions = {0};
    write_version_def(&versions);
    wire_message(def, VERSIONS, &versions);
}

void TF_GraphVersions(TF_Graph *graph, TF_Buffer *output_version_def, TF_Status *status)
{
    (void)graph;
    wire versions = {0};
    write_version_def(&versions);
    fill_buffer(output_version_def, &versions, status);
}

static tw_status write_node(wire *w, const TF_Operation *oper, tw_error *error)
{
    enum { NODE = 1 };
    wire def = {0};
    tw_status status = write_node_def(&def, oper, error);
    if (status == TW_OK)
        wire_message(w, NODE, &def);
    return status;
}

void TF_GraphToGraphDef(TF_Graph *graph, TF_Buffer *output_graph_def, TF_Status *status)
{
    wire def = {0};
    tw_error error = TW_NO_ERROR;
    pthread_rwlock_rdlock(&graph->lock);
    for (int i = 0; i < graph->num_operations && error.status == TW_OK; i++)
        write_node(&def, graph->operations[i], &error);
    write_library(&def, graph);
    pthread_rwlock_unlock(&graph->lock);
    write_versions(&def);
    if (error.status == TW_OK && def.size > INT32_MAX)
        set_status(
            status, TF_INVALID_ARGUMENT,
            "Unable to serialize GraphDef protocol buffer, perhaps the serialized size (%zu bytes) is too large?",
            def.size);
    else if (error.status != TW_OK)
        set_error(status, &error);
    else {
        fill_buffer(output_graph_def, &def, status);
        return;
    }
    wire_free(&def);
}
