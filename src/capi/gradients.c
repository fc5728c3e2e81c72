/* gradients.c - gradients, and what can be computed from constants alone.
 * Never here:  rules of ops, which are Tower's. */
#include "capi.h"

#include <stdlib.h>
#include <string.h>

/* Tower's outputs for ours; entries without an operation stay without. False: one is not of the graph. */
static bool translate(const TF_Graph *graph, const TF_Output *outputs, int count, tw_output *found, TF_Status *status)
{
    for (int i = 0; i < count && outputs; i++)
        if (!outputs[i].oper)
            found[i] = (tw_output){0};
        else if (!find_output(graph, outputs[i], &found[i], status))
            return false;
    return true;
}

/* An op without a rule is said in TensorFlow's words. */
static void tell_error(TF_Status *status, const tw_graph *graph)
{
    const char *message = tw_graph_message(graph), *type = strstr(message, "(op type: ");
    if (tw_graph_status(graph) == TW_UNIMPLEMENTED && type) {
        type += strlen("(op type: ");
        set_status(status, TF_NOT_FOUND,
                   "No gradient defined for op: %.*s. Please see "
                   "https://www.tensorflow.org/code/tensorflow/cc/gradients/README.md for instructions on how to add "
                   "C++ gradients.",
                   (int)strcspn(type, ")"), type);
        return;
    }
    set_status(status, (TF_Code)tw_graph_status(graph), "%s", message);
}

typedef struct differentiation {
    TF_Graph *graph;
    const char *prefix; /* NULL: "gradients", or what is free of it */
    tw_output *y, *given, *x, *found;
    int ny, nx;
    TF_Status *status;
} differentiation;

/* Every x is something that some y needs. */
static bool check_reach(const differentiation *d)
{
    int count = d->graph->num_operations;
    bool *needed = calloc((size_t)count + 1, sizeof *needed);
    if (!needed)
        set_no_memory(d->status);
    for (int i = 0; i < d->ny && needed; i++)
        if (d->y[i].node)
            needed[tw_node_number(d->y[i].node)] = true;
    for (int i = count - 1; i >= 0 && needed; i--) {
        const tw_node *node = d->graph->operations[i]->node;
        for (int k = 0; k < tw_node_num_inputs(node) && needed[i]; k++)
            needed[tw_node_number(tw_node_input(node, k).node)] = true;
    }
    for (int i = 0; i < d->nx && is_ok(d->status); i++)
        if (d->x[i].node && !needed[tw_node_number(d->x[i].node)])
            set_status(d->status, TF_INVALID_ARGUMENT,
                       "Cannot compute the partial derivative for node '%s' as it's unreachable from the output "
                       "node(s).",
                       tw_node_name(d->x[i].node));
    free(needed);
    return is_ok(d->status);
}

static void differentiate(const differentiation *d, bool has_given, TF_Output *dy)
{
    tw_graph *tower = d->graph->tower;
    int before = d->graph->num_operations;
    if (!check_reach(d))
        return;
    const char *taken = d->prefix ? find_in_scope(tower, d->prefix) : NULL;
    if (taken) {
        set_status(d->status, TF_INVALID_ARGUMENT, "prefix [%s] conflicts with existing node in the graph named [%s]",
                   d->prefix, taken);
        return;
    }
    tw_gradients_under(tower, d->prefix ? d->prefix : "gradients", d->y, d->ny, has_given ? d->given : NULL, d->x,
                       d->nx, d->found);
    if (tw_graph_status(tower) != TW_OK) {
        tell_error(d->status, tower);
        take_back(d->graph, before);
    } else if (!sync_graph(d->graph)) {
        set_no_memory(d->status);
    }
    for (int i = 0; i < d->nx && is_ok(d->status); i++)
        dy[i] = output_of(d->graph, d->found[i]);
}

void TF_AddGradientsWithPrefix(TF_Graph *g, const char *prefix, TF_Output *y, int ny, TF_Output *x, int nx,
                               TF_Output *dx, TF_Status *status, TF_Output *dy)
{
    size_t ys = (size_t)ny + 1, xs = (size_t)nx + 1;
    differentiation d = {g,
                         prefix,
                         calloc(ys, sizeof *d.y),
                         calloc(ys, sizeof *d.given),
                         calloc(xs, sizeof *d.x),
                         calloc(xs, sizeof *d.found),
                         ny,
                         nx,
                         status};
    TF_SetStatus(status, TF_OK, "");
    for (int i = 0; i < nx; i++)
        dy[i] = (TF_Output){NULL, 0};
    if (!d.y || !d.given || !d.x || !d.found)
        set_no_memory(status);
    begin_building(g);
    if (is_ok(status) && translate(g, y, ny, d.y, status) && translate(g, dx, ny, d.given, status) &&
        translate(g, x, nx, d.x, status))
        differentiate(&d, dx != NULL, dy);
    end_building(g);
    free(d.y);
    free(d.given);
    free(d.x);
    free(d.found);
}

void TF_AddGradients(TF_Graph *g, TF_Output *y, int ny, TF_Output *x, int nx, TF_Output *dx, TF_Status *status,
                     TF_Output *dy)
{
    TF_AddGradientsWithPrefix(g, NULL, y, ny, x, nx, dx, status, dy);
}

/* ---- constants -------------------------------------------------------------------------------------------------- */

/* What is only looked at for its shape, which is known. */
typedef struct shapes {
    tw_feed *feeds; /* [count] without values */
    int count;
} shapes;

/* False: the shape is not known, or memory ran out. */
static bool add_shape(shapes *s, tw_output output)
{
    tw_shape shape = tw_output_shape(output);
    tw_dtype dtype = tw_output_dtype(output);
    if (!tw_shape_is_known(shape) || dtype == TW_STRING || dtype == TW_RESOURCE || dtype == TW_VARIANT)
        return false;
    for (int i = 0; i < s->count; i++)
        if (s->feeds[i].output.node == output.node && s->feeds[i].output.index == output.index)
            return true;
    tw_feed *grown = realloc(s->feeds, (size_t)(s->count + 1) * sizeof *grown);
    if (grown)
        s->feeds = grown;
    tw_tensor *shaped = grown ? tw_tensor_wrap(dtype, shape, NULL, NULL, NULL) : NULL;
    if (shaped)
        s->feeds[s->count++] = (tw_feed){output, shaped};
    return shaped;
}

static void drop_shapes(shapes *s, const bool *needed)
{
    int kept = 0;
    for (int i = 0; i < s->count; i++)
        if (needed && !needed[tw_node_number(s->feeds[i].output.node)])
            s->feeds[kept++] = s->feeds[i];
        else
            tw_tensor_release(s->feeds[i].tensor);
    s->count = kept;
}

/* Whether all that an output needs is the same in every run, given the shapes of what is fed so. */
static bool is_constant(const TF_Graph *graph, const tw_node *node, shapes *fed)
{
    bool same = true;
    int last = tw_node_number(node);
    bool *needed = calloc((size_t)last + 1, sizeof *needed);
    if (!needed)
        return false;
    needed[last] = true;
    for (int i = last; i >= 0 && same; i--) {
        TF_Operation *oper = graph->operations[i];
        if (!needed[i])
            continue;
        const tw_op_info *op = op_of(oper);
        same = op && !op->is_stateful && !tw_node_is_placeholder(oper->node) && !tw_node_may_be_fed(oper->node);
        for (int k = 0; k < tw_node_num_inputs(oper->node); k++) {
            tw_output input = tw_node_input(oper->node, k);
            needed[tw_node_number(input.node)] |= !tw_node_tells_shapes(oper->node) || !add_shape(fed, input);
        }
        for (int k = 0; k < tw_node_num_control_inputs(oper->node); k++)
            needed[tw_node_number(tw_node_control_input(oper->node, k))] = true;
    }
    drop_shapes(fed, needed); /* of what is needed anyway */
    free(needed);
    return same;
}

unsigned char TF_TryEvaluateConstant(TF_Graph *graph, TF_Output output, TF_Tensor **result, TF_Status *status)
{
    tw_output found;
    tw_devices *devices = NULL;
    tw_session *session = NULL;
    tw_tensor *value = NULL;
    shapes fed = {0};
    *result = NULL;
    if (!find_output(graph, output, &found, status))
        return 0;
    tw_device_options host = {.size = sizeof host, .no_gpus = true};
    pthread_rwlock_rdlock(&graph->lock);
    if (is_constant(graph, found.node, &fed) && tw_devices_create(&host, &devices, NULL) == TW_OK) {
        tw_session_options options = {.size = sizeof options, .devices = devices, .allow_soft_placement = true};
        if (tw_session_create(graph->tower, &options, &session, NULL) == TW_OK)
            tw_session_run(session, fed.feeds, fed.count, &found, 1, &value, NULL);
        tw_session_destroy(session);
    }
    pthread_rwlock_unlock(&graph->lock);
    tw_devices_destroy(devices);
    drop_shapes(&fed, NULL);
    free(fed.feeds);
    if (value && !(*result = tensor_from_tower(value)))
        set_no_memory(status);
    return *result != NULL;
}
