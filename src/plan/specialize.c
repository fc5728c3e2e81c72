/* specialize.c - from the user's graph to the plan's own: only what the fetches need, feeds cut out, every shape known.
 *
 * Shape rules run again as nodes are copied, now with the fed shapes, and constants fold on the way, so that shapes
 * computed by nodes (Shape, Slice, Pack into Reshape) are known when the next rule asks. */
#include "plan/plan.h"

#include <string.h>

typedef struct copying {
    twi_planning *p;
    bool *needed;           /* [nodes of the user's graph] */
    tw_output **outputs;    /* [nodes][num_outputs] in the new graph; rows only for needed nodes */
    tw_node **nodes;        /* [nodes] for control edges; NULL where a constant took the node's place */
} copying;

static int find_feed(const twi_request *request, tw_output output)
{
    for (int i = 0; i < request->num_feeds; i++)
        if (request->feeds[i].output.node == output.node && request->feeds[i].output.index == output.index)
            return i;
    return -1;
}

static void need(copying *c, tw_output output)
{
    if (output.index < 0 || find_feed(c->p->request, output) < 0)
        c->needed[output.node->id] = true;
}

static void mark_needed(copying *c)
{
    const tw_graph *graph = c->p->request->graph;
    for (int i = 0; i < c->p->request->num_fetches; i++)
        need(c, c->p->request->fetches[i]);
    for (int id = graph->nodes.count - 1; id >= 0; id--) {
        const tw_node *node = graph->nodes.items[id];
        if (!c->needed[id])
            continue;
        for (int i = 0; i < node->num_inputs; i++)
            need(c, node->inputs[i]);
        for (int i = 0; i < node->num_control_inputs; i++)
            c->needed[node->control_inputs[i]->id] = true;
    }
}

static tw_status make_rows(copying *c)
{
    const tw_graph *graph = c->p->request->graph;
    for (int id = 0; id < graph->nodes.count; id++) {
        c->outputs[id] = twi_arena_alloc(&c->p->plan->arena,
                                         sizeof **c->outputs * (size_t)(graph->nodes.items[id]->num_outputs + 1));
        if (!c->outputs[id])
            return twi_fail_memory(c->p->error, "copying a graph");
    }
    return TW_OK;
}

/* A feed enters on the first CPU and is copied on from there. */
static tw_status make_feeds(copying *c)
{
    const twi_request *request = c->p->request;
    tw_graph *graph = c->p->rewriting.graph;
    for (int i = 0; i < request->num_feeds; i++) {
        const twi_feed_shape *feed = &request->feeds[i];
        const tw_node *node = feed->output.node;
        tw_dtype dtype = tw_output_dtype(feed->output);
        tw_shape shape = tw_output_shape(feed->output);
        char got[128], want[128];
        if (feed->dtype != dtype || !tw_shape_compatible(shape, feed->shape))
            return twi_fail(c->p->error, TW_INVALID_ARGUMENT, "feed of '%s:%d' is %s %s, expected %s %s", node->name,
                            feed->output.index, tw_dtype_name(feed->dtype), tw_shape_text(feed->shape, got, sizeof got),
                            tw_dtype_name(dtype), tw_shape_text(shape, want, sizeof want));
        tw_attr attrs[] = {tw_attr_type("dtype", dtype), tw_attr_shape("shape", feed->shape), tw_attr_int("index", i)};
        tw_node *made = twi_add_plain_node(graph, "_Feed", node->name, request->devices->items[0]->text, 0, NULL, 0,
                                           attrs, 3);
        if (!made)
            return TW_INTERNAL;
        made->order = -1;
        c->outputs[node->id][feed->output.index] = tw_node_output(made, 0);
    }
    return TW_OK;
}

static tw_status fail_unfed(copying *c, const tw_node *node)
{
    char text[128];
    return twi_fail(c->p->error, TW_INVALID_ARGUMENT,
                    "You must feed a value for placeholder tensor '%s' with dtype %s and shape %s", node->name,
                    tw_dtype_name(node->output_types[0]), tw_shape_text(node->output_shapes[0], text, sizeof text));
}

/* The node's data and control inputs in the new graph; *count of them, *moved of which are constants' lost controls. */
static tw_output *new_inputs(copying *c, const tw_node *node, int *count)
{
    tw_output *inputs = twi_arena_alloc(&c->p->plan->arena,
                                        sizeof *inputs * (size_t)(node->num_inputs + node->num_control_inputs + 1));
    if (!inputs)
        return NULL;
    *count = node->num_inputs;
    for (int i = 0; i < node->num_inputs; i++)
        inputs[i] = c->outputs[node->inputs[i].node->id][node->inputs[i].index];
    for (int i = 0; i < node->num_control_inputs; i++) {
        tw_node *before = c->nodes[node->control_inputs[i]->id];
        if (before)
            inputs[(*count)++] = (tw_output){before, -1};
    }
    return inputs;
}

static tw_status copy_node(copying *c, const tw_node *node)
{
    twi_planning *p = c->p;
    tw_output *row = c->outputs[node->id], folded_row[16];
    bool folded = false;
    int count, device = p->request->placement[node->id];
    if (strncmp(node->op->name, "Placeholder", 11) == 0 && node->num_inputs == 0)
        return fail_unfed(c, node);
    tw_output *inputs = new_inputs(c, node, &count);
    if (!inputs)
        return twi_fail_memory(p->error, "copying a graph");
    tw_attr type = tw_attr_type("T", node->num_outputs ? node->output_types[0] : TW_INVALID_DTYPE);
    bool defaults = strcmp(node->op->name, "PlaceholderWithDefault") == 0; /* not fed: the default, of its own shape */
    tw_node *made = twi_add_plain_node(p->rewriting.graph, defaults ? "Identity" : node->op->name, node->name,
                                       p->request->devices->items[device]->text, device, inputs, count,
                                       defaults ? &type : node->attrs.items, defaults ? 1 : node->attrs.count);
    if (!made)
        return TW_INTERNAL; /* the graph holds the message */
    made->order = node->order;
    c->nodes[node->id] = made;
    if (node->num_outputs <= 16) {
        tw_status status = twi_fold(&p->rewriting, made, folded_row, &folded, p->error);
        if (status != TW_OK)
            return status;
    }
    if (folded && !made->num_control_inputs)
        c->nodes[node->id] = NULL;
    for (int i = 0; i < node->num_outputs; i++)
        if (!row[i].node) /* not fed */
            row[i] = folded ? folded_row[i] : tw_node_output(made, i);
    return TW_OK;
}

static tw_status map_fetches(copying *c)
{
    twi_planning *p = c->p;
    for (int i = 0; i < p->request->num_fetches; i++) {
        tw_output fetch = p->request->fetches[i];
        if (fetch.index >= 0 && find_feed(p->request, fetch) >= 0)
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s is both fed and fetched.", fetch.node->name);
        p->rewriting.fetches[i] = fetch.index >= 0           ? c->outputs[fetch.node->id][fetch.index]
                                  : c->nodes[fetch.node->id] ? (tw_output){c->nodes[fetch.node->id], -1}
                                                             : (tw_output){c->outputs[fetch.node->id][0].node, -1};
    }
    return TW_OK;
}

tw_status twi_specialize(twi_planning *p)
{
    const tw_graph *graph = p->request->graph;
    size_t n = (size_t)graph->nodes.count + 1;
    copying c = {.p = p};
    tw_status status;
    c.needed = twi_alloc_array(n, sizeof *c.needed);
    c.outputs = twi_alloc_array(n, sizeof *c.outputs);
    c.nodes = twi_alloc_array(n, sizeof *c.nodes);
    if (!c.needed || !c.outputs || !c.nodes)
        TWI_TRY(twi_fail_memory(p->error, "copying a graph"));
    mark_needed(&c);
    TWI_TRY(make_rows(&c));
    TWI_TRY(make_feeds(&c));
    for (int id = 0; id < graph->nodes.count; id++)
        if (c.needed[id])
            TWI_TRY(copy_node(&c, graph->nodes.items[id]));
    TWI_TRY(map_fetches(&c));
    TWI_TRY(twi_rewrite_clean(&p->rewriting, p->error));
done:
    if (status == TW_INTERNAL && p->rewriting.graph->error.status != TW_OK) {
        status = p->rewriting.graph->error.status;
        if (p->error)
            *p->error = p->rewriting.graph->error;
    }
    twi_free(c.needed);
    twi_free(c.outputs);
    twi_free(c.nodes);
    return status;
}
