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

typedef struct constants {
    tw_feed *feeds; /* [num_feeds] what shapes tell */
    int num_feeds;
} constants;

/* What a node tells of an input's shape, as far as it is known; NULL: it is not, or the node tells something else. */
static tw_tensor *value_of_shape(tw_node *node)
{
    const char *op = tw_node_op(node);
    bool is_rank = strcmp(op, "Rank") == 0, is_size = strcmp(op, "Size") == 0;
    if (tw_node_num_inputs(node) != 1 || (!is_rank && !is_size && strcmp(op, "Shape") != 0))
        return NULL;
    tw_output input = tw_node_input(node, 0);
    tw_shape shape = tw_output_shape(input);
    int64_t size = 1;
    if (tw_output_dtype(input) == TW_RESOURCE || shape.rank < 0)
        return NULL;
    for (int i = 0; i < shape.rank && !is_rank; i++)
        if (shape.dims[i] < 0 || __builtin_mul_overflow(size, shape.dims[i], &size))
            return NULL;
    if (is_rank || is_size) {
        shape.dims[0] = is_rank ? shape.rank : size;
        shape.rank = 1;
    }
    bool is_long = tw_output_dtype((tw_output){node, 0}) == TW_INT64;
    for (int i = 0; i < shape.rank; i++)
        if (!is_long && shape.dims[i] > INT32_MAX)
            return NULL;
    tw_tensor *value = tw_tensor_create(is_long ? TW_INT64 : TW_INT32,
                                        is_rank || is_size ? TW_SCALAR : (tw_shape){1, {shape.rank}});
    for (int i = 0; i < shape.rank && value; i++)
        if (is_long)
            ((int64_t *)tw_tensor_data(value))[i] = shape.dims[i];
        else
            ((int32_t *)tw_tensor_data(value))[i] = (int32_t)shape.dims[i];
    return value;
}

/* Adds what a node tells of a shape; false: that is not known. */
static bool add_shape(constants *c, tw_node *node)
{
    tw_tensor *value = value_of_shape(node);
    tw_feed *grown = value ? realloc(c->feeds, (size_t)(c->num_feeds + 1) * sizeof *grown) : NULL;
    if (!grown) {
        tw_tensor_release(value);
        return false;
    }
    c->feeds = grown;
    c->feeds[c->num_feeds++] = (tw_feed){{node, 0}, value};
    return true;
}

/* Whether all that an output needs is the same in every run: constants, and shapes that are known. */
static bool is_constant(const TF_Graph *graph, const tw_node *node, constants *c)
{
    bool same = true;
    int last = tw_node_number(node);
    bool *needed = calloc((size_t)last + 1, sizeof *needed);
    if (!needed)
        return false;
    needed[last] = true;
    for (int i = last; i >= 0 && same; i--) {
        TF_Operation *oper = graph->operations[i];
        if (!needed[i] || add_shape(c, oper->node))
            continue;
        const tw_op_info *op = op_of(oper);
        same = op && !op->is_stateful && !tw_node_is_placeholder(oper->node) && !tw_node_may_be_fed(oper->node);
        for (int k = 0; k < tw_node_num_inputs(oper->node); k++)
            needed[tw_node_number(tw_node_input(oper->node, k).node)] = true;
        for (int k = 0; k < tw_node_num_control_inputs(oper->node); k++)
            needed[tw_node_number(tw_node_control_input(oper->node, k))] = true;
    }
    free(needed);
    return same;
}

unsigned char TF_TryEvaluateConstant(TF_Graph *graph, TF_Output output, TF_Tensor **result, TF_Status *status)
{
    tw_output found;
    tw_devices *devices = NULL;
    tw_session *session = NULL;
    tw_tensor *value = NULL;
    *result = NULL;
    if (!find_output(graph, output, &found, status))
        return 0;
    tw_device_options host = {.size = sizeof host, .no_gpus = true};
    pthread_rwlock_rdlock(&graph->lock);
    constants c = {0};
    bool same = is_constant(graph, found.node, &c);
    for (int i = 0; i < c.num_feeds && same; i++) /* what is fed cannot be fetched */
        if (c.feeds[i].output.node == found.node)
            value = tw_tensor_retain(c.feeds[i].tensor);
    if (same && !value && tw_devices_create(&host, &devices, NULL) == TW_OK) {
        tw_session_options options = {.size = sizeof options, .devices = devices, .allow_soft_placement = true};
        if (tw_session_create(graph->tower, &options, &session, NULL) == TW_OK)
            tw_session_run(session, c.feeds, c.num_feeds, &found, 1, &value, NULL);
        tw_session_destroy(session);
    }
    pthread_rwlock_unlock(&graph->lock);
    tw_devices_destroy(devices);
    for (int i = 0; i < c.num_feeds; i++)
        tw_tensor_release(c.feeds[i].tensor);
    free(c.feeds);
    if (value && !(*result = tensor_from_tower(value)))
        set_no_memory(status);
    return *result != NULL;
}
