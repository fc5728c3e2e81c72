/* specialize.c - from the user's graph to the plan's region: only what the fetches need, feeds cut out, every shape
 * known.
 *
 * Shape rules run again as nodes are copied, now with the fed shapes, and constants fold on the way, so that shapes
 * computed by nodes (Shape, Slice, Pack into Reshape) are known when the next rule asks.
 * Never here: devices (assign.c). */
#include "plan/specialize.h"

#include "tensor/variant.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is needed ---------------------------------------------------------------------------------------------- */

static bool passes_reference(const tw_node *node)
{
    return node->num_inputs && node->num_outputs && twi_output_is_reference((tw_output){(tw_node *)node, 0});
}

/* How many of its inputs are wanted: of what lies outside of the loop, or was done before the border, those that lead
 * to the variable behind a handle. */
static int count_wanted(const twi_copying *c, const tw_node *node)
{
    int wanted = node->num_inputs;
    if (twi_copy_is_outside(c, node))
        wanted = node->num_inputs && (node->op->makes == TWI_MAKES_NOTHING || node->op->roles);
    if (twi_copy_is_done(c, node))
        wanted = passes_reference(node) || twi_copy_gives_handle(node) ||
                 (node->op->makes == TWI_MAKES_SERIES && node->op->roles);
    return wanted;
}

static bool need(twi_copying *c, const tw_node *node)
{
    bool known = c->of[node->id].needed;
    c->of[node->id].needed = true;
    return known || twi_push(&c->needed, node);
}

static int compare_nodes(const void *a, const void *b)
{
    const tw_node *const *left = a, *const *right = b;
    return ((*left)->id > (*right)->id) - ((*left)->id < (*right)->id);
}

void twi_copy_sort(const tw_node **nodes, int count)
{
    if (count > 1)
        qsort(nodes, (size_t)count, sizeof *nodes, compare_nodes);
}

/* Each node once: what leads back into a loop, too, of which there may be as many as nodes. */
static tw_status find_needed(twi_copying *c)
{
    const twi_request *request = c->p->request;
    const tw_graph *graph = request->graph;
    bool fits = true;
    for (int i = 0; i < request->num_fetches && fits; i++)
        if (!twi_copy_is_fed(c, request->fetches[i]))
            fits = need(c, request->fetches[i].node);
    for (int next = 0; next < c->needed.count && fits; next++) {
        const tw_node *node = c->needed.items[next];
        bool done = twi_copy_is_done(c, node), outside = twi_copy_is_outside(c, node);
        for (int i = 0, n = count_wanted(c, node); i < n && fits; i++)
            if (done || !twi_copy_is_fed(c, node->inputs[i]))
                fits = need(c, node->inputs[i].node);
        for (int i = 0; i < node->num_control_inputs && !outside && !done && fits; i++)
            if (!twi_copy_is_wholly_fed(c, node->control_inputs[i]) && !twi_copy_is_outside(c, node->control_inputs[i]))
                fits = need(c, node->control_inputs[i]);
        if (node->backward.node && !twi_copy_is_fed(c, (tw_output){(tw_node *)node, 0}) && fits)
            fits = need(c, node->backward.node);
    }
    if (c->needed.count > graph->nodes.count / 16) { /* to look at all is quicker than to sort */
        c->needed.count = 0;
        for (int id = 0; id < graph->nodes.count && fits; id++)
            fits = !c->of[id].needed || twi_push(&c->needed, graph->nodes.items[id]);
    } else {
        twi_copy_sort(c->needed.items, c->needed.count);
    }
    return fits ? TW_OK : twi_fail_memory(c->p->error, "copying a graph");
}

/* A condition has one predicate, however many Switches look at it: what passes a variable's memory on to them reads
 * it. */
static void note_predicates(twi_copying *c)
{
    for (int i = 0; i < c->needed.count && c->conditions; i++) {
        const tw_node *node = c->needed.items[i];
        if (!twi_op_is(node->op, TWI_SWITCH))
            continue;
        for (tw_output at = node->inputs[1];
             at.index >= 0 && at.index < at.node->num_inputs && twi_op_is(at.node->op, TWI_PASSES | TWI_SWITCH) &&
             c->of[at.node->id].needed && !c->of[at.node->id].decides;
             at = at.node->inputs[twi_op_is(at.node->op, TWI_SWITCH) ? 0 : at.index])
            c->of[at.node->id].decides = true;
    }
}

static tw_status check_feed(twi_copying *c, const twi_feed_shape *feed)
{
    tw_dtype dtype = tw_output_dtype(feed->output);
    tw_shape shape = tw_output_shape(feed->output);
    char got[128], want[128];
    bool is_ours = c->p->request->frame || c->p->request->behind; /* in a loop shapes may be others than at first */
    bool fits = is_ours || c->p->request->any_fed_shapes || tw_shape_compatible(shape, feed->shape);
    if (dtype == TW_VARIANT && !is_ours)
        return twi_fail(c->p->error, TW_INVALID_ARGUMENT, "'%s' is a %s and cannot be fed", feed->output.node->name,
                        tw_dtype_name(dtype));
    if (feed->dtype == dtype && fits)
        return TW_OK;
    return twi_fail(c->p->error, TW_INVALID_ARGUMENT, "feed of '%s:%d' is %s %s, expected %s %s",
                    feed->output.node->name, feed->output.index, tw_dtype_name(feed->dtype),
                    tw_shape_text(feed->shape, got, sizeof got), tw_dtype_name(dtype),
                    tw_shape_text(shape, want, sizeof want));
}

/* A feed enters on the first CPU, or where a loop is at home, and is copied on from there. */
static tw_status make_feeds(twi_copying *c)
{
    const twi_request *request = c->p->request;
    for (int i = 0; i < request->num_feeds; i++) {
        const twi_feed_shape *feed = &request->feeds[i];
        const tw_node *node = feed->output.node;
        tw_attr attrs[] = {tw_attr_type("dtype", feed->dtype), tw_attr_shape("shape", feed->shape),
                           tw_attr_int("index", i)};
        if (feed->dead || feed->output.index < 0)
            continue;
        tw_status status = check_feed(c, feed);
        if (status == TW_OK)
            status = twi_copy_row(c, node);
        if (status != TW_OK)
            return status;
        twi_wish wish = {.op = c->region->known[TWI_OP__Feed],
                         .name = node->name,
                         .origin = node,
                         .rank = -1,
                         .device = twi_owns_memory(feed->dtype) && !request->alone ? 0 : request->home,
                         .attrs = attrs,
                         .num_attrs = 3};
        tw_attr value[] = {tw_attr_tensor("value", feed->value), tw_attr_type("dtype", feed->dtype)};
        if (feed->value)
            wish.op = c->region->known[TWI_OP_Const], wish.attrs = value, wish.num_attrs = 2;
        twi_node *made = twi_node_make(c->region, &wish);
        if (!made)
            return twi_region_check(c->region, c->p->error);
        c->of[node->id].fed = true;
        c->of[node->id].outputs[feed->output.index] = twi_out(made, 0);
        twi_copy_note(c, node, made);
        c->fed_end = c->region->nodes.count;
    }
    return TW_OK;
}

/* ---- inputs of a copy ------------------------------------------------------------------------------------------- */

/* A node that passes a reference on as a value. */
static bool is_view(const twi_copying *c, const tw_node *node)
{
    bool passes = (twi_op_is(node->op, TWI_PASSES) && !node->op->planned_as) ||
                  (twi_op_is(node->op, TWI_ENTER) && twi_attr_bool(&node->attrs, "is_constant", false));
    return passes && !c->of[node->id].decides && node->num_outputs == 1 &&
           !twi_output_is_reference((tw_output){(tw_node *)node, 0}) && twi_copy_refers(c, node->inputs[0]);
}

static tw_status read_reference(twi_copying *c, tw_output reference, const tw_node *reader, const twi_value *controls,
                                int num_controls, twi_value *value)
{
    tw_status status = twi_read_reference(c->p, c->of[reference.node->id].outputs[reference.index],
                                          twi_copy_writer(c, reference), reader, controls, num_controls, value);
    if (status == TW_OK)
        twi_set_guard(value->node, c->guard);
    return status;
}

/* What a node's read of a reference comes after: all that the node does. Where nobody has written the variable yet,
 * controls will do, and reads of several nodes are one. TensorFlow leaves out controls that an input has already, so
 * the inputs that have some count, too; the node itself comes after those anyway. */
static int list_before_read(const twi_copying *c, const tw_node *node, bool written, const twi_value *controls,
                            int num_controls, twi_value *before)
{
    int count = 0;
    for (int i = 0; i < num_controls; i++)
        before[count++] = controls[i];
    for (int i = 0; i < node->num_inputs; i++) {
        tw_output input = node->inputs[i];
        if (c->of[input.node->id].node && (input.node->num_control_inputs || (written && !twi_copy_refers(c, input))))
            before[count++] = twi_out(c->of[input.node->id].node, -1);
    }
    return count;
}

/* What a branch takes a handle through, where that waits for something: the handle itself is known before. */
static twi_node *awaited_switch(const twi_copying *c, tw_output handle)
{
    twi_node *through = twi_op_is(handle.node->op, TWI_SWITCH) ? c->of[handle.node->id].node : NULL;
    return through && tw_output_dtype(handle) == TW_RESOURCE && through->num_controls ? through : NULL;
}

/* The node's data and control inputs in the region. A reference becomes the variable's handle for who writes it, and
 * for others a read, which happens when the node itself does: after all that the node comes after. */
static tw_status new_inputs(twi_copying *c, const tw_node *node, twi_value **result, int *count)
{
    int most = node->num_inputs + node->num_control_inputs, num_controls = 0, num_writers = 0;
    twi_value *inputs = twi_arena_alloc(&c->p->plan->arena, sizeof *inputs * (size_t)(node->num_inputs + 3 * most + 1));
    twi_value *controls = inputs + node->num_inputs;
    twi_value *before[2] = {controls + most, controls + 2 * most}; /* of a variable not written, and written, so far */
    int num_before[2] = {-1, -1};
    if (!inputs)
        return twi_fail_memory(c->p->error, "copying a graph");
    bool comes_early = twi_copy_is_hoisted(c, node) || twi_copy_is_outside(c, node);
    for (int i = 0; i < node->num_control_inputs && !comes_early; i++) /* all but constants' lost ones */
        if (c->of[node->control_inputs[i]->id].node)
            controls[num_controls++] = twi_out(c->of[node->control_inputs[i]->id].node, -1);
    for (int i = 0; i < node->num_inputs; i++) {
        tw_output source = node->inputs[i];
        if (!c->of[source.node->id].outputs)
            return twi_fail(c->p->error, TW_INTERNAL, "%s '%s' comes before '%s', which it takes", node->op->name,
                            node->name, source.node->name);
        twi_value value = c->of[source.node->id].outputs[source.index];
        bool refers = twi_copy_refers(c, source), writes = twi_input_is_reference(node, i);
        bool passes = refers && !writes && i == 0 && twi_op_is(node->op, TWI_SWITCH); /* on into a branch */
        tw_status status = TW_OK;
        twi_value looked;
        c->of[node->id].views = c->of[node->id].views || passes;
        if (writes && !refers)
            status = twi_fail(c->p->error, TW_INVALID_ARGUMENT, "%s '%s' changes '%s', which is fed", node->op->name,
                              node->name, source.node->name);
        else if (writes && twi_copy_writer(c, source).node)
            controls[num_controls + num_writers++] = twi_copy_writer(c, source);
        else if (refers && !writes) {
            twi_copied *variable = &c->of[value.node->origin->id];
            bool written = variable->written, decides = i == 1 && twi_op_is(node->op, TWI_SWITCH);
            if (num_before[written] < 0)
                num_before[written] = list_before_read(c, node, written, controls, num_controls, before[written]);
            if (decides && variable->decision)
                value = twi_out(variable->decision, 0);
            else
                status =
                    read_reference(c, source, node, before[written], num_before[written], passes ? &looked : &value);
            if (decides && status == TW_OK)
                c->of[node->id].decision = variable->decision = value.node;
        }
        if (passes && status == TW_OK) /* a variable without a value is missed here */
            controls[num_controls + num_writers++] = twi_out(looked.node, -1);
        else if (!comes_early && awaited_switch(c, source))
            controls[num_controls + num_writers++] = twi_out(awaited_switch(c, source), -1);
        if (status != TW_OK)
            return status;
        inputs[i] = value;
    }
    for (int i = 0; i < node->num_inputs; i++)
        if (twi_input_is_reference(node, i)) {
            twi_copied *variable = &c->of[inputs[i].node->origin->id];
            variable->written = true;
            variable->decision = NULL;
        }
    *count = node->num_inputs + num_controls + num_writers;
    *result = inputs;
    return TW_OK;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* Under another op: what a default that is not fed, a restore or an update by reference is planned as. */
static tw_status make_planned(twi_copying *c, const tw_node *node, const twi_value *inputs, int count, twi_node **made)
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
                                                 .device = -1, .behind = c->region->last, .inputs = inputs,
                                                 .num_inputs = count, .attrs = attrs.items, .num_attrs = attrs.count});
    return twi_region_check(c->region, p->error);
}

static tw_status fail_unfed(twi_copying *c, const tw_node *node)
{
    char text[128];
    return twi_fail(c->p->error, TW_INVALID_ARGUMENT,
                    "You must feed a value for placeholder tensor '%s' with dtype %s and shape %s", node->name,
                    tw_dtype_name(node->output_types[0]), tw_shape_text(node->output_shapes[0], text, sizeof text));
}

/* Has its place in the order, and nothing else. */
static twi_node *make_mark(twi_copying *c, const tw_node *node, const twi_value *controls, int count)
{
    return twi_node_make(c->region, &(twi_wish){.op = twi_op_find("NoOp"), .name = node->name, .origin = node,
                                                .rank = node->order, .device = -1, .behind = c->region->last,
                                                .inputs = controls, .num_inputs = count});
}

/* Nothing is left of it but its place in the order; whoever takes its value reads the variable. */
static tw_status make_view(twi_copying *c, const tw_node *node, twi_node **made)
{
    int count = 0;
    twi_value *controls =
        twi_arena_alloc(&c->p->plan->arena, sizeof *controls * (size_t)(node->num_control_inputs + 1));
    if (!controls)
        return twi_fail_memory(c->p->error, "copying a graph");
    for (int i = 0; i < node->num_control_inputs && !twi_copy_is_outside(c, node); i++)
        if (c->of[node->control_inputs[i]->id].node)
            controls[count++] = twi_out(c->of[node->control_inputs[i]->id].node, -1);
    if (twi_copy_writer(c, node->inputs[0]).node)
        controls[count++] = twi_copy_writer(c, node->inputs[0]);
    *made = make_mark(c, node, controls, count);
    twi_copy_note(c, node, *made);
    if (!c->of[node->id].outputs[0].node) /* not fed */
        c->of[node->id].outputs[0] = c->of[node->inputs[0].node->id].outputs[node->inputs[0].index];
    c->of[node->id].views = true;
    if (*made)
        twi_set_guard(*made, c->guard);
    return twi_region_check(c->region, c->p->error);
}

/* What is folded of constants comes after what they come after, and what passes them on: who looks at a variable when
 * it is there sees what was written before. */
static bool take_places(const twi_node *made, twi_node *folded)
{
    bool fits = true;
    for (int i = 0; i < made->num_inputs; i++)
        for (twi_value from = twi_in(made, i); from.node; from = twi_in(from.node, from.index)) {
            bool passes = twi_has_trait(from.node, TWI_PASSES);
            for (int k = 0; (passes || twi_has_trait(from.node, TWI_CONSTANT)) && k < from.node->num_controls; k++)
                fits = twi_add_control(folded, from.node->controls[k]->node) && fits;
            if (!passes || from.node->opaque)
                break;
        }
    return fits;
}

/* Where the outputs of the copy are found. */
static void map_outputs(twi_copying *c, const tw_node *node, twi_node *made, const twi_value *inputs,
                        const twi_value *folded)
{
    twi_copy_note(c, node, made);
    if (folded) {
        made->became = folded[0].node;
        if (!take_places(made, folded[0].node))
            twi_region_fail(c->region, TW_INTERNAL, "'%s' depends on itself", node->name);
        if (!made->num_controls && folded[0].node->num_controls)
            c->of[node->id].node = folded[0].node;
        else if (!made->num_controls)
            c->of[node->id].node = NULL;
    }
    for (int i = 0; i < node->num_outputs; i++) {
        bool passes_reference = node->num_inputs && twi_copy_refers(c, (tw_output){(tw_node *)node, i});
        if (!c->of[node->id].outputs[i].node) /* not fed */
            c->of[node->id].outputs[i] = folded             ? folded[i]
                                      : passes_reference ? inputs[0] /* the handle */
                                                         : twi_out(made, i);
    }
    if (!twi_has_trait(made, TWI_CONSTANT))
        twi_set_guard(made, c->guard);
}

static tw_status check_frame(twi_copying *c, const tw_node *node)
{
    if (c->frames->of[node->id] < 0 && twi_op_is(node->op, TWI_EXIT))
        return twi_fail(c->p->error, TW_INVALID_ARGUMENT, "Exit '%s' is of no loop", node->name);
    if (c->frames->of[node->id] < 0)
        return twi_fail(c->p->error, TW_INVALID_ARGUMENT,
                        "%s '%s' takes something of a loop and something of outside, or of two loops: frames cross",
                        node->op->name, node->name);
    return TW_OK;
}

static tw_status check_node(twi_copying *c, const tw_node *node)
{
    if (node->backward.node)
        return twi_fail(c->p->error, TW_UNIMPLEMENTED, "Merge '%s' of a loop: which input it gives is not told",
                        node->name);
    if (twi_op_is(node->op, TWI_PLACEHOLDER))
        return fail_unfed(c, node);
    if (twi_op_is(node->op, TWI_UNKNOWN))
        return twi_fail_unknown(node, c->p->error);
    if (c->p->request->placement->devices[node->id] < 0)
        return twi_placement_check(c->p->request->placement, node, c->p->error);
    return twi_copy_row(c, node);
}

/* A loop takes a variable as it is; so does a branch that the loop is in. */
static bool is_handle_passed(const twi_copying *c, const tw_node *node)
{
    tw_output first = {(tw_node *)node, 0};
    bool is_handle = node->num_outputs && (tw_output_dtype(first) == TW_RESOURCE || twi_output_is_reference(first));
    return is_handle && node->num_inputs && (twi_op_is(node->op, TWI_ENTER) || twi_copy_is_outside(c, node));
}

static tw_status pass_handle(twi_copying *c, const tw_node *node)
{
    if (node->op->makes == TWI_MAKES_SERIES || twi_copy_gives_handle(node))
        return twi_copy_outer_series(c, node);
    for (int i = 0; i < node->num_outputs; i++)
        c->of[node->id].outputs[i] = c->of[node->inputs[0].node->id].outputs[node->inputs[0].index];
    return TW_OK;
}

/* Of what an earlier part has done only references are left, which name the variable still. */
static tw_status pass_done(twi_copying *c, const tw_node *node)
{
    tw_status status = twi_copy_row(c, node);
    if (status == TW_OK && (node->op->makes == TWI_MAKES_SERIES || twi_copy_gives_handle(node)))
        return twi_copy_outer_series(c, node);
    if (status == TW_OK && passes_reference(node) && !c->of[node->id].outputs[0].node)
        c->of[node->id].outputs[0] = c->of[node->inputs[0].node->id].outputs[node->inputs[0].index];
    return status;
}

/* Whether an assignment gives a variable another shape than it has, as the graph lets it. */
static tw_status find_reshaping(twi_copying *c, const tw_node *node, const twi_value *inputs, bool *reshapes)
{
    char text[2][128];
    *reshapes = false;
    if (node->num_inputs < 2 || twi_op_role(node->op, &node->attrs, 0) != 'w' ||
        !twi_is_growing(inputs[0].node->op, &inputs[0].node->attrs) ||
        twi_attr_type(&inputs[0].node->attrs, "dtype") != twi_dtype(inputs[1]))
        return TW_OK;
    tw_shape open = twi_attr_shape(&inputs[0].node->attrs, "shape");
    tw_shape has = twi_shape(inputs[0]), gets = twi_shape(inputs[1]);
    bool late = !tw_shape_is_known(gets) || twi_follows_late(c, node);
    if (!tw_shape_is_known(has) || (!late && tw_shape_equal(has, gets)))
        return TW_OK;
    if (!tw_shape_compatible(open, gets))
        return twi_fail(c->p->error, TW_INVALID_ARGUMENT,
                        "%s '%s': the variable has shape %s, but input 1 has shape %s", node->op->name, node->name,
                        tw_shape_text(open, text[0], sizeof text[0]), tw_shape_text(gets, text[1], sizeof text[1]));
    *reshapes = !late;
    if (late) /* it is planned for the shape that the variable has then */
        twi_node_set_shape(inputs[0].node, 0, open);
    return twi_push(&c->reshaping, (twi_reshaping){late ? NULL : node, inputs[0].node, has})
               ? TW_OK
               : twi_fail_memory(c->p->error, "copying a graph");
}

/* What follows an assignment that changes a variable's shape is planned behind the border, for the shape that it has
 * then; all else sees the one before. */
static void show_variables(twi_copying *c, bool late)
{
    for (int i = 0; i < c->reshaping.count; i++) {
        const twi_reshaping *r = &c->reshaping.items[i];
        twi_node_set_shape(r->handle, 0, late ? twi_attr_shape(&r->handle->attrs, "shape") : r->before);
    }
}

/* A variable that was made without a shape has, in a session, that of the value which it has, or else gets first. */
static void settle_variable(twi_copying *c, twi_node *made)
{
    const char *name = twi_attr_string(&made->attrs, "shared_name", "");
    if (made->op->makes == TWI_MAKES_VARIABLE && !tw_shape_is_known(twi_shape(twi_out(made, 0)))) {
        const twi_resource *r = twi_resources_find(c->p->request->resources, name[0] ? name : made->name);
        if (r && r->device)
            twi_node_set_shape(made, 0, r->shape);
        return;
    }
    twi_node *handle = made->num_inputs > 1 ? twi_in(made, 0).node : NULL;
    bool assigns = handle && handle->op->makes == TWI_MAKES_VARIABLE && twi_op_role(made->op, &made->attrs, 0) == 'w';
    if (assigns && !tw_shape_is_known(twi_shape(twi_in(made, 0))) && tw_shape_is_known(twi_shape(twi_in(made, 1))))
        twi_node_set_shape(handle, 0, twi_shape(twi_in(made, 1)));
}

/* Of a branch that is taken or not by a value that only a run has: whether its inputs fit is seen behind a border,
 * where it is known. What was the border's cause has waited for that once. */
static bool may_misfit(const twi_copying *c, const tw_node *node)
{
    const twi_border *behind = c->p->request->behind;
    return c->guard && !twi_copy_frame(c) && (!behind || behind->cause != node);
}

static tw_status copy_node(twi_copying *c, const tw_node *node)
{
    enum { MOST_FOLDED = 16 };
    twi_planning *p = c->p;
    twi_value folded_row[MOST_FOLDED] = {{0}}, *inputs = NULL;
    twi_node *made = NULL;
    bool folded = false, never = false, reshapes = false;
    int count = 0;
    if (twi_copy_is_done(c, node))
        return pass_done(c, node);
    if (c->frames && twi_op_is(node->op, TWI_EXIT) && c->frames->of[node->id] == twi_copy_frame(c))
        return twi_copy_loop(c, node);
    tw_status status = c->frames ? check_frame(c, node) : TW_OK;
    if (status == TW_OK && c->conditions)
        status = twi_find_conditions(c, node, &never);
    if (status == TW_OK && never) {
        c->skipped = true;
        return twi_copy_row(c, node);
    }
    if (status == TW_OK)
        status = check_node(c, node);
    if (status == TW_OK && is_view(c, node))
        return make_view(c, node, &made);
    if (status == TW_OK && is_handle_passed(c, node))
        return pass_handle(c, node);
    if (status == TW_OK && twi_op_is(node->op, TWI_MERGE) && node->num_inputs)
        return twi_copy_merge(c, node);
    if (status == TW_OK)
        status = new_inputs(c, node, &inputs, &count);
    if (status == TW_OK)
        status = find_reshaping(c, node, inputs, &reshapes);
    if (status == TW_OK && twi_op_is(node->op, TWI_SWITCH) && !twi_output_is_reference((tw_output){(tw_node *)node, 0}))
        return twi_copy_switch(c, node, inputs[0], inputs + node->num_inputs, count - node->num_inputs);
    if (status == TW_OK && reshapes) {
        made = make_mark(c, node, inputs + node->num_inputs, count - node->num_inputs);
        status = twi_region_check(c->region, p->error);
    } else if (status == TW_OK && (node->op->planned_as || twi_op_is(node->op, TWI_RESTORE))) {
        status = make_planned(c, node, inputs, count, &made);
    } else if (status == TW_OK) {
        c->region->may_misfit = may_misfit(c, node);
        made = twi_node_copy(c->region, node, inputs, count);
        c->region->may_misfit = false;
        status = twi_region_check(c->region, p->error);
    }
    if (status == TW_OK && c->region->misfits) {
        map_outputs(c, node, made, inputs, NULL);
        return TW_OK;
    }
    if (status == TW_OK && !reshapes)
        settle_variable(c, made);
    if (status == TW_OK)
        status = twi_copy_series(c, node, made, inputs, &folded_row[0]);
    folded = status == TW_OK && folded_row[0].node;
    if (status == TW_OK && node->num_outputs <= MOST_FOLDED && !folded)
        status = twi_fold(&p->rewriting, made, folded_row, &folded, p->error);
    if (status == TW_OK)
        map_outputs(c, node, made, inputs, folded ? folded_row : NULL);
    return status == TW_OK ? twi_region_check(c->region, p->error) : status;
}

tw_status twi_copy_once(twi_copying *c, const tw_node *node)
{
    if (!c->of[node->id].needed || c->of[node->id].copied || twi_copy_is_inside(c, node))
        return TW_OK;
    c->of[node->id].copied = true;
    show_variables(c, c->reshaping.count && twi_follows_late(c, node));
    c->region->misfits = false;
    tw_status status = copy_node(c, node);
    show_variables(c, false);
    return status == TW_OK ? twi_find_late(c, node) : status;
}

/* In place of a node of a branch that is not taken. */
static twi_value nothing(twi_copying *c, const tw_node *node)
{
    twi_wish w = {.op = twi_op_find("NoOp"), .name = node->name, .rank = node->order, .device = 0};
    return (twi_value){twi_node_make(c->region, &w), -1};
}

static tw_status map_fetch(twi_copying *c, tw_output fetch, twi_value *value)
{
    const twi_value *row = c->of[fetch.node->id].outputs;
    if (twi_copy_refers(c, fetch))
        return read_reference(c, fetch, fetch.node, NULL, 0, value);
    if (fetch.index >= 0)
        *value = row[fetch.index];
    else if (c->of[fetch.node->id].node)
        *value = twi_out(c->of[fetch.node->id].node, -1);
    else if (row && row[0].node)
        *value = twi_out(row[0].node, -1);
    else
        *value = nothing(c, fetch.node);
    return twi_region_check(c->region, c->p->error);
}

/* A value for a loop's next round lies in memory of its own, or in that of the value it becomes: then they can be moved
 * one after the other. */
static twi_value apart(twi_copying *c, tw_output fetch, int changing, twi_value value)
{
    twi_value source = value;
    while (twi_has_trait(source.node, TWI_PASSES) && source.node->num_inputs > source.index)
        source = twi_in(source.node, source.index);
    bool stays = twi_has_trait(source.node, TWI_FEED) && twi_attr_int(&source.node->attrs, "index", -1) == changing;
    if (stays || value.index < 0)
        return value;
    char *name = twi_arena_printf(&c->region->arena, "%s/next", fetch.node->name);
    twi_node *made = name ? twi_node_make(c->region, &(twi_wish){.op = c->region->known[TWI_OP__Choose], .name = name,
                                                                 .origin = fetch.node, .rank = INT_MAX, .device = -1,
                                                                 .inputs = &value, .num_inputs = 1})
                          : NULL;
    if (made)
        twi_set_guard(made, c->guard);
    else if (!name)
        twi_region_fail_memory(c->region);
    return twi_out(made, 0);
}

tw_status twi_copy_fetch(twi_copying *c, int number, twi_value *value, twi_node **guard)
{
    tw_output fetch = c->p->request->fetches[number];
    bool never = false;
    tw_status status = TW_OK;
    *guard = NULL;
    if (c->frames && twi_copy_is_inside(c, fetch.node))
        return twi_fail(c->p->error, TW_INVALID_ARGUMENT, "'%s' is in the loop '%s' and cannot be fetched",
                        fetch.node->name, c->frames->items.items[c->frames->of[fetch.node->id]].name);
    if (twi_copy_is_fed(c, fetch) && !c->p->request->frame)
        return twi_fail(c->p->error, TW_INVALID_ARGUMENT, "%s:%d is both fed and fetched.", fetch.node->name,
                        fetch.index);
    if (c->conditions && fetch.index >= 0)
        status = twi_guard_of(c, fetch, guard, &never);
    if (status != TW_OK)
        return status;
    *value = never && c->p->request->frame ? nothing(c, fetch.node) : (twi_value){0};
    if (value->node) /* what a loop that has no further round would go on with */
        return twi_region_check(c->region, c->p->error);
    if (never)
        return twi_fail(c->p->error, TW_INVALID_ARGUMENT, "Retval[%d] does not have value", number);
    c->guard = *guard;
    status = map_fetch(c, fetch, value);
    if (status == TW_OK && number > 0 && number <= c->p->request->num_changing)
        *value = apart(c, fetch, number - 1, *value);
    return status == TW_OK ? twi_region_check(c->region, c->p->error) : status;
}

twi_node *twi_copy_effect(const twi_copying *c, int id)
{
    twi_node *made = c->skipped && !c->of[id].fed && !(c->late && c->late[id]) ? c->of[id].node : NULL;
    bool acts = made && made->op->makes == TWI_MAKES_NOTHING && (twi_has_trait(made, TWI_STATEFUL) || made->loop);
    return acts ? made : NULL;
}

/* Behind the fetches come the guards of those that may have no value, and what runs for what it does. */
static tw_status map_fetches(twi_copying *c)
{
    const twi_request *request = c->p->request;
    tw_status status = TW_OK;
    int count = request->num_fetches;
    int most = 2 * count + 1;
    for (int i = 0; i < c->needed.count; i++)
        most += twi_copy_effect(c, c->needed.items[i]->id) != NULL;
    twi_value *values = twi_alloc_array((size_t)most, sizeof *values);
    c->p->plan->num_fetches = count;
    c->p->plan->guards_of_fetches = twi_arena_alloc(&c->p->plan->arena, sizeof(int) * (size_t)count);
    if (!values || !c->p->plan->guards_of_fetches)
        TWI_LEAVE(twi_fail_memory(c->p->error, "copying a graph"));
    for (int i = 0; i < request->num_fetches; i++) {
        twi_node *guard;
        TWI_TRY(twi_copy_fetch(c, i, &values[i], &guard));
        c->p->plan->guards_of_fetches[i] = guard ? count : -1;
        if (guard)
            values[count++] = twi_out(guard, 0);
    }
    for (int i = 0; i < c->needed.count; i++)
        if (twi_copy_effect(c, c->needed.items[i]->id))
            values[count++] = twi_out(twi_copy_effect(c, c->needed.items[i]->id), -1);
    if (!twi_region_set_end(c->region, values, count))
        status = twi_fail_memory(c->p->error, "copying a graph");
done:
    twi_free(values);
    return status;
}

/* Which loop each node is in: found for a run of the graph, and shared by the plans of its loops. */
static tw_status find_frames(twi_copying *c, twi_frames *own)
{
    const twi_request *request = c->p->request;
    if (!request->graph->loops)
        return TW_OK;
    tw_status status = request->frames ? TW_OK : twi_frames_find(request->graph, own, c->p->error);
    c->frames = request->frames ? request->frames : own;
    c->looped = twi_alloc_array((size_t)c->frames->items.count + 1, sizeof *c->looped);
    return status == TW_OK && !c->looped ? twi_fail_memory(c->p->error, "copying a graph") : status;
}

static tw_status take_records(twi_copying *c)
{
    const twi_request *request = c->p->request;
    twi_plan *plan = c->p->plan;
    size_t n = (size_t)request->graph->nodes.count + 1;
    c->copies = request->copies ? request->copies : &c->own;
    c->records = c->copies->spare;
    if (c->records)
        c->copies->spare = c->records->next;
    else
        c->records = twi_alloc(sizeof *c->records + n * sizeof *c->records->of);
    if (!request->frame) {
        plan->num_origins = request->graph->nodes.count;
        plan->origins = twi_arena_alloc(&plan->arena, n * sizeof *plan->origins);
    }
    if (!c->records || !(plan->origins || request->frame))
        return twi_fail_memory(c->p->error, "copying a graph");
    c->of = c->records->of;
    return TW_OK;
}

static void give_back_records(twi_copying *c)
{
    const twi_request *request = c->p->request;
    bool others_come = c->of && request->copies;
    for (int i = 0; i < c->needed.count && others_come; i++)
        c->of[c->needed.items[i]->id] = (twi_copied){0};
    for (int i = 0; i < request->num_feeds && others_come; i++)
        c->of[request->feeds[i].output.node->id] = (twi_copied){0};
    if (c->records) {
        c->records->next = c->copies->spare;
        c->copies->spare = c->records;
    }
    while (c->own.spare) {
        twi_records *next = c->own.spare->next;
        twi_free(c->own.spare);
        c->own.spare = next;
    }
}

tw_status twi_specialize(twi_planning *p)
{
    const tw_graph *graph = p->request->graph;
    twi_copying c = {.p = p, .region = p->rewriting.region, .conditions = graph->branches || graph->loops};
    twi_frames frames = {0};
    tw_status status;
    TWI_TRY(take_records(&c));
    TWI_TRY(find_frames(&c, &frames));
    TWI_TRY(make_feeds(&c));
    TWI_TRY(twi_settle_conditions(&c));
    TWI_TRY(find_needed(&c));
    note_predicates(&c);
    for (int i = 0; i < c.needed.count; i++) {
        twi_look_ahead(graph, c.needed.items[i]->id, 1);
        TWI_TRY(twi_copy_once(&c, c.needed.items[i]));
    }
    TWI_TRY(c.late ? twi_make_border(&c) : map_fetches(&c));
    TWI_TRY(twi_region_sort(p->rewriting.region, p->error));
done:
    give_back_records(&c);
    twi_array_free(&c.needed);
    twi_free(c.looped);
    twi_frames_free(&frames);
    twi_free(c.late);
    twi_array_free(&c.asked);
    twi_array_free(&c.reshaping);
    twi_free(c.reshaped);
    twi_free(c.settled);
    twi_free(c.held);
    twi_guards_free(&c.guards);
    return status;
}
