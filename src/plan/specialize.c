/* specialize.c - from the user's graph to the plan's region: only what the fetches need, feeds cut out, every shape known.
 *
 * Shape rules run again as nodes are copied, now with the fed shapes, and constants fold on the way, so that shapes
 * computed by nodes (Shape, Slice, Pack into Reshape) are known when the next rule asks.
 * Never here: devices (assign.c). */
#include "plan/stages.h"

#include <string.h>

typedef struct copying {
    twi_planning *p;
    twi_region *region;
    bool *needed;           /* [nodes of the user's graph] */
    bool *fed;              /* some output is */
    bool *views;            /* its output is a variable's memory, passed on as a value */
    twi_value **outputs;    /* [nodes][num_outputs] in the region; rows only for needed and fed nodes */
    twi_node **nodes;       /* [nodes] for control edges; NULL where a constant took the node's place */
} copying;

/* ---- what is needed ------------------------------------------------------------------------------------------------ */

static bool is_fed(const copying *c, tw_output output)
{
    return output.index >= 0 && c->fed[output.node->id] && c->outputs[output.node->id][output.index].node;
}

/* Nothing of the node is left to be done. */
static bool is_wholly_fed(const copying *c, const tw_node *node)
{
    bool fed = c->fed[node->id];
    for (int i = 0; i < node->num_outputs && fed; i++)
        fed = c->outputs[node->id][i].node != NULL;
    return fed;
}

static void mark_needed(copying *c)
{
    const twi_request *request = c->p->request;
    for (int i = 0; i < request->num_fetches; i++)
        if (!is_fed(c, request->fetches[i]))
            c->needed[request->fetches[i].node->id] = true;
    for (int id = request->graph->nodes.count - 1; id >= 0; id--) {
        const tw_node *node = request->graph->nodes.items[id];
        for (int i = 0; i < node->num_inputs && c->needed[id]; i++)
            if (!is_fed(c, node->inputs[i]))
                c->needed[node->inputs[i].node->id] = true;
        for (int i = 0; i < node->num_control_inputs && c->needed[id]; i++)
            if (!is_wholly_fed(c, node->control_inputs[i]))
                c->needed[node->control_inputs[i]->id] = true;
    }
}

static tw_status make_row(copying *c, const tw_node *node)
{
    twi_value **row = &c->outputs[node->id];
    if (!*row)
        *row = twi_arena_alloc(&c->p->plan->arena, sizeof **row * (size_t)(node->num_outputs + 1));
    return *row ? TW_OK : twi_fail_memory(c->p->error, "copying a graph");
}

static tw_status check_feed(copying *c, const twi_feed_shape *feed)
{
    tw_dtype dtype = tw_output_dtype(feed->output);
    tw_shape shape = tw_output_shape(feed->output);
    char got[128], want[128];
    if (feed->dtype == dtype && tw_shape_compatible(shape, feed->shape))
        return TW_OK;
    return twi_fail(c->p->error, TW_INVALID_ARGUMENT, "feed of '%s:%d' is %s %s, expected %s %s",
                    feed->output.node->name, feed->output.index, tw_dtype_name(feed->dtype),
                    tw_shape_text(feed->shape, got, sizeof got), tw_dtype_name(dtype),
                    tw_shape_text(shape, want, sizeof want));
}

/* A feed enters on the first CPU and is copied on from there. */
static tw_status make_feeds(copying *c)
{
    const twi_request *request = c->p->request;
    for (int i = 0; i < request->num_feeds; i++) {
        const twi_feed_shape *feed = &request->feeds[i];
        const tw_node *node = feed->output.node;
        tw_attr attrs[] = {tw_attr_type("dtype", feed->dtype), tw_attr_shape("shape", feed->shape), tw_attr_int("index", i)};
        tw_status status = check_feed(c, feed);
        if (status == TW_OK)
            status = make_row(c, node);
        if (status != TW_OK)
            return status;
        twi_node *made = twi_node_make(c->region, &(twi_wish){.op = c->region->known[TWI_OP__Feed], .name = node->name,
                                                              .origin = node, .rank = -1, .device = 0, .attrs = attrs,
                                                              .num_attrs = 3});
        if (!made)
            return twi_region_check(c->region, c->p->error);
        c->fed[node->id] = true;
        c->outputs[node->id][feed->output.index] = twi_out(made, 0);
        c->nodes[node->id] = c->p->plan->origins[node->id] = made;
    }
    return TW_OK;
}

/* ---- inputs of a copy ------------------------------------------------------------------------------------------- */

/* A reference, or what Identity made of one: TensorFlow passes the variable's own memory on, so whoever looks at it later
 * sees what is there then. */
static bool is_reference(const copying *c, tw_output output)
{
    return output.index >= 0 && !is_fed(c, output) && (c->views[output.node->id] || twi_output_is_reference(output));
}

/* A node that passes a reference on as a value. */
static bool is_view(const copying *c, const tw_node *node)
{
    return twi_op_is(node->op, TWI_PASSES) && !node->op->planned_as && node->num_outputs == 1 &&
           is_reference(c, node->inputs[0]);
}

/* Who wrote the variable last before the reference was passed on; no node: its maker. */
static twi_value written_by(const copying *c, tw_output reference)
{
    return (twi_value){reference.node->num_inputs ? c->nodes[reference.node->id] : NULL, -1};
}

/* The node's data and control inputs in the region. A reference becomes the variable's handle for who writes it, and for
 * others a read, which happens when the node itself does: after all that the node comes after. */
static tw_status new_inputs(copying *c, const tw_node *node, twi_value **result, int *count)
{
    int most = 2 * node->num_inputs + node->num_control_inputs + 1, num_controls = 0, num_writers = 0;
    twi_value *inputs = twi_arena_alloc(&c->p->plan->arena, sizeof *inputs * (size_t)most);
    twi_value *controls = inputs + node->num_inputs;
    if (!inputs)
        return twi_fail_memory(c->p->error, "copying a graph");
    for (int i = 0; i < node->num_control_inputs; i++) /* all but constants' lost ones */
        if (c->nodes[node->control_inputs[i]->id])
            controls[num_controls++] = twi_out(c->nodes[node->control_inputs[i]->id], -1);
    for (int i = 0; i < node->num_inputs; i++) {
        tw_output source = node->inputs[i];
        twi_value value = c->outputs[source.node->id][source.index];
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

/* ---- copies ------------------------------------------------------------------------------------------------------- */

/* Under another op: what a default that is not fed, a restore or an update by reference is planned as. */
static tw_status make_planned(copying *c, const tw_node *node, const twi_value *inputs, int count, twi_node **made)
{
    twi_planning *p = c->p;
    const twi_op *form = twi_op_find(twi_op_planned(node->op));
    twi_attrs attrs = {0};
    tw_attr type = tw_attr_type("T", node->num_outputs ? node->output_types[0] : TW_INVALID_DTYPE);
    tw_status status = TW_OK;
    if (!form)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s' is not supported", node->op->name, node->name);
    if (twi_op_is(node->op, TWI_RESTORE))
        status = twi_restored_attrs(p, node, &attrs);
    else if (twi_op_is(form, TWI_PASSES)) /* the default, of its own shape */
        attrs = (twi_attrs){&type, 1};
    else
        status = twi_handle_attrs(p, node, form, &attrs);
    if (status != TW_OK)
        return status;
    if (!form->inputs[0] && node->num_inputs) /* passes a reference on, and only its place in the order counts */
        count -= node->num_inputs, inputs += node->num_inputs;
    *made = twi_node_make(c->region, &(twi_wish){.op = form, .name = node->name, .origin = node, .rank = node->order,
                                                 .device = -1, .inputs = inputs, .num_inputs = count,
                                                 .attrs = attrs.items, .num_attrs = attrs.count});
    return twi_region_check(c->region, p->error);
}

static tw_status fail_unfed(copying *c, const tw_node *node)
{
    char text[128];
    return twi_fail(c->p->error, TW_INVALID_ARGUMENT,
                    "You must feed a value for placeholder tensor '%s' with dtype %s and shape %s", node->name,
                    tw_dtype_name(node->output_types[0]), tw_shape_text(node->output_shapes[0], text, sizeof text));
}

/* Nothing is left of it but its place in the order; whoever takes its value reads the variable. */
static tw_status make_view(copying *c, const tw_node *node, twi_node **made)
{
    int count = 0;
    twi_value *controls = twi_arena_alloc(&c->p->plan->arena, sizeof *controls * (size_t)(node->num_control_inputs + 1));
    if (!controls)
        return twi_fail_memory(c->p->error, "copying a graph");
    for (int i = 0; i < node->num_control_inputs; i++)
        if (c->nodes[node->control_inputs[i]->id])
            controls[count++] = twi_out(c->nodes[node->control_inputs[i]->id], -1);
    if (written_by(c, node->inputs[0]).node)
        controls[count++] = written_by(c, node->inputs[0]);
    *made = twi_node_make(c->region, &(twi_wish){.op = twi_op_find("NoOp"), .name = node->name, .origin = node,
                                                 .rank = node->order, .device = -1, .inputs = controls,
                                                 .num_inputs = count});
    c->nodes[node->id] = c->p->plan->origins[node->id] = *made;
    if (!c->outputs[node->id][0].node) /* not fed */
        c->outputs[node->id][0] = c->outputs[node->inputs[0].node->id][node->inputs[0].index];
    c->views[node->id] = true;
    return twi_region_check(c->region, c->p->error);
}

static tw_status copy_node(copying *c, const tw_node *node)
{
    enum { MOST_FOLDED = 16 };
    twi_planning *p = c->p;
    twi_value folded_row[MOST_FOLDED], *inputs = NULL;
    twi_node *made = NULL;
    bool folded = false;
    int count = 0;
    if (twi_op_is(node->op, TWI_PLACEHOLDER))
        return fail_unfed(c, node);
    if (twi_op_is(node->op, TWI_UNKNOWN))
        return twi_fail(p->error, TW_NOT_FOUND, "node '%s' (%s): %s", node->name, twi_attr_string(&node->attrs, "op", ""),
                        twi_attr_string(&node->attrs, "why", ""));
    if (p->request->placement->devices[node->id] < 0)
        return twi_placement_check(p->request->placement, node, p->error);
    tw_status status = make_row(c, node);
    if (status == TW_OK && is_view(c, node))
        return make_view(c, node, &made);
    if (status == TW_OK)
        status = new_inputs(c, node, &inputs, &count);
    if (status == TW_OK && (node->op->planned_as || twi_op_is(node->op, TWI_RESTORE))) {
        status = make_planned(c, node, inputs, count, &made);
    } else if (status == TW_OK) {
        made = twi_node_copy(c->region, node, inputs, count);
        status = twi_region_check(c->region, p->error);
    }
    if (status == TW_OK && node->num_outputs <= MOST_FOLDED)
        status = twi_fold(&p->rewriting, made, folded_row, &folded, p->error);
    if (status != TW_OK)
        return status;
    c->nodes[node->id] = p->plan->origins[node->id] = made;
    if (folded) {
        made->became = folded_row[0].node;
        if (!made->num_controls)
            c->nodes[node->id] = NULL;
    }
    bool refers = node->num_outputs == 1 && is_reference(c, (tw_output){(tw_node *)node, 0});
    for (int i = 0; i < node->num_outputs; i++)
        if (!c->outputs[node->id][i].node) /* not fed */
            c->outputs[node->id][i] = folded                       ? folded_row[i]
                                      : refers && node->num_inputs ? inputs[0] /* the handle passed on */
                                                                   : twi_out(made, i);
    return TW_OK;
}

static tw_status map_fetch(copying *c, tw_output fetch, twi_value *value)
{
    if (is_fed(c, fetch))
        return twi_fail(c->p->error, TW_INVALID_ARGUMENT, "%s is both fed and fetched.", fetch.node->name);
    if (is_reference(c, fetch))
        return twi_read_reference(c->p, c->outputs[fetch.node->id][fetch.index], written_by(c, fetch), fetch.node, NULL, 0,
                                  value);
    *value = fetch.index >= 0           ? c->outputs[fetch.node->id][fetch.index]
             : c->nodes[fetch.node->id] ? twi_out(c->nodes[fetch.node->id], -1)
                                        : twi_out(c->outputs[fetch.node->id][0].node, -1);
    return TW_OK;
}

static tw_status map_fetches(copying *c)
{
    const twi_request *request = c->p->request;
    tw_status status = TW_OK;
    twi_value *values = twi_alloc_array((size_t)request->num_fetches + 1, sizeof *values);
    if (!values)
        return twi_fail_memory(c->p->error, "copying a graph");
    for (int i = 0; i < request->num_fetches && status == TW_OK; i++)
        status = map_fetch(c, request->fetches[i], &values[i]);
    if (status == TW_OK && !twi_region_set_end(c->region, values, request->num_fetches))
        status = twi_fail_memory(c->p->error, "copying a graph");
    twi_free(values);
    return status;
}

tw_status twi_specialize(twi_planning *p)
{
    const tw_graph *graph = p->request->graph;
    size_t n = (size_t)graph->nodes.count + 1;
    copying c = {.p = p, .region = p->rewriting.region};
    tw_status status;
    c.needed = twi_alloc_array(n, sizeof *c.needed);
    c.fed = twi_alloc_array(n, sizeof *c.fed);
    c.views = twi_alloc_array(n, sizeof *c.views);
    c.outputs = twi_alloc_array(n, sizeof *c.outputs);
    c.nodes = twi_alloc_array(n, sizeof *c.nodes);
    p->plan->num_origins = graph->nodes.count;
    p->plan->origins = twi_arena_alloc(&p->plan->arena, n * sizeof *p->plan->origins);
    if (!c.needed || !c.fed || !c.views || !c.outputs || !c.nodes || !p->plan->origins)
        TWI_TRY(twi_fail_memory(p->error, "copying a graph"));
    TWI_TRY(make_feeds(&c));
    mark_needed(&c);
    for (int id = 0; id < graph->nodes.count; id++)
        if (c.needed[id])
            TWI_TRY(copy_node(&c, graph->nodes.items[id]));
    TWI_TRY(map_fetches(&c));
    TWI_TRY(twi_region_sort(p->rewriting.region, p->error));
done:
    twi_free(c.needed);
    twi_free(c.fed);
    twi_free(c.views);
    twi_free(c.outputs);
    twi_free(c.nodes);
    return status;
}
