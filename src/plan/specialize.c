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
        c->p->plan->origins[node->id] = made;
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

/* The node's control inputs in the new graph, from inputs[*count] on: all but constants' lost ones. */
static void add_controls(copying *c, const tw_node *node, tw_output *inputs, int *count)
{
    for (int i = 0; i < node->num_control_inputs; i++) {
        tw_node *before = c->nodes[node->control_inputs[i]->id];
        if (before)
            inputs[(*count)++] = (tw_output){before, -1};
    }
}

static bool is_reference(const copying *c, tw_output output)
{
    return output.index >= 0 && twi_output_is_reference(output) && find_feed(c->p->request, output) < 0;
}

/* Who wrote the variable last before the reference was passed on; no node: its maker. */
static tw_output written_by(const copying *c, tw_output reference)
{
    return (tw_output){reference.node->num_inputs ? c->nodes[reference.node->id] : NULL, -1};
}

/* The node's data and control inputs in the new graph. A reference becomes the variable's handle for who writes it, and
 * for others a read, which happens when the node itself does: after all that the node comes after. */
static tw_status new_inputs(copying *c, const tw_node *node, tw_output **result, int *count)
{
    int most = 2 * node->num_inputs + node->num_control_inputs + 1, num_controls = 0, num_writers = 0;
    tw_output *inputs = twi_arena_alloc(&c->p->plan->arena, sizeof *inputs * (size_t)most);
    tw_output *controls = inputs + node->num_inputs;
    if (!inputs)
        return twi_fail_memory(c->p->error, "copying a graph");
    add_controls(c, node, controls, &num_controls);
    for (int i = 0; i < node->num_inputs; i++) {
        tw_output source = node->inputs[i], value = c->outputs[source.node->id][source.index];
        bool refers = is_reference(c, source), writes = twi_input_is_reference(node, i);
        tw_status status = TW_OK;
        if (writes && !refers)
            status = twi_fail(c->p->error, TW_INVALID_ARGUMENT, "%s '%s' changes '%s', which is fed", node->op->name,
                              node->name, source.node->name);
        else if (writes && written_by(c, source).node)
            controls[num_controls + num_writers++] = written_by(c, source);
        else if (refers && !writes)
            status = twi_read_reference(c->p, value, written_by(c, source), node, controls, num_controls, &value);
        if (status != TW_OK)
            return status;
        inputs[i] = value;
    }
    *count = node->num_inputs + num_controls + num_writers;
    *result = inputs;
    return TW_OK;
}

/* What has the node's name, device and place in the order, under whatever op. */
static tw_status make_copy(copying *c, const tw_node *node, const tw_output *inputs, int count, tw_node **made)
{
    twi_planning *p = c->p;
    int device = p->request->placement->devices[node->id];
    const char *op = node->op->name, *form = twi_handle_form(op);
    twi_attrs attrs = node->attrs;
    tw_attr type = tw_attr_type("T", node->num_outputs ? node->output_types[0] : TW_INVALID_DTYPE);
    if (strcmp(op, "PlaceholderWithDefault") == 0) { /* not fed: the default, of its own shape */
        form = "Identity";
        attrs = (twi_attrs){&type, 1};
    } else if (strcmp(op, "RestoreV2") == 0) {
        form = "_RestoreV2";
        tw_status status = twi_restored_attrs(p, node, &attrs);
        if (status != TW_OK)
            return status;
    } else if (form != op) {
        tw_status status = twi_handle_attrs(p, node, form, &attrs);
        if (status != TW_OK)
            return status;
        if (strcmp(form, "NoOp") == 0) /* passes a reference on, and only its place in the order counts */
            count -= node->num_inputs, inputs += node->num_inputs;
    }
    *made = twi_add_plain_node(p->rewriting.graph, form, node->name, p->request->devices->items[device]->text, device,
                               inputs, count, attrs.items, attrs.count);
    if (!*made)
        return TW_INTERNAL; /* the graph holds the message */
    (*made)->order = node->order;
    return TW_OK;
}

static tw_status copy_node(copying *c, const tw_node *node)
{
    twi_planning *p = c->p;
    tw_output *row = c->outputs[node->id], folded_row[16], *inputs = NULL;
    tw_node *made = NULL;
    bool folded = false;
    int count = 0;
    if (strncmp(node->op->name, "Placeholder", 11) == 0 && node->num_inputs == 0)
        return fail_unfed(c, node);
    if (strcmp(node->op->name, "_Unknown") == 0)
        return twi_fail(p->error, TW_NOT_FOUND, "node '%s' (%s): %s", node->name, twi_attr_string(&node->attrs, "op", ""),
                        twi_attr_string(&node->attrs, "why", ""));
    if (p->request->placement->devices[node->id] < 0)
        return twi_placement_check(p->request->placement, node, p->error);
    tw_status status = new_inputs(c, node, &inputs, &count);
    if (status == TW_OK)
        status = make_copy(c, node, inputs, count, &made);
    if (status != TW_OK)
        return status;
    c->nodes[node->id] = p->plan->origins[node->id] = made;
    if (node->num_outputs <= 16) {
        status = twi_fold(&p->rewriting, made, folded_row, &folded, p->error);
        if (status != TW_OK)
            return status;
    }
    if (folded) {
        made->became = folded_row[0].node;
        if (!made->num_control_inputs)
            c->nodes[node->id] = NULL;
    }
    bool refers = node->num_outputs == 1 && is_reference(c, (tw_output){(tw_node *)node, 0});
    for (int i = 0; i < node->num_outputs; i++)
        if (!row[i].node) /* not fed */
            row[i] = folded                       ? folded_row[i]
                     : refers && node->num_inputs ? inputs[0] /* the handle passed on */
                                                  : tw_node_output(made, i);
    return TW_OK;
}

static tw_status map_fetches(copying *c)
{
    twi_planning *p = c->p;
    for (int i = 0; i < p->request->num_fetches; i++) {
        tw_output fetch = p->request->fetches[i];
        if (fetch.index >= 0 && find_feed(p->request, fetch) >= 0)
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s is both fed and fetched.", fetch.node->name);
        if (is_reference(c, fetch)) {
            tw_status status = twi_read_reference(p, c->outputs[fetch.node->id][fetch.index], written_by(c, fetch),
                                                  fetch.node, NULL, 0, &p->rewriting.fetches[i]);
            if (status != TW_OK)
                return status;
            continue;
        }
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
    p->plan->num_origins = graph->nodes.count;
    p->plan->origins = twi_arena_alloc(&p->plan->arena, n * sizeof *p->plan->origins);
    if (!c.needed || !c.outputs || !c.nodes || !p->plan->origins)
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
