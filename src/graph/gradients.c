/* gradients.c - reverse-mode differentiation: gradients are more nodes.
 *
 * Creation order is a topological order, so one sweep from the last node to the first meets every node after all its
 * consumers. Only nodes on a path from an x to a y are visited, and no others are looked at, so that each of many
 * towers costs what it has itself. Gradients that meet at an output are added with AddN, in the order of the consumers'
 * creation, latest first, which is a fixed order for a fixed graph.
 *
 * A loop is gone back through as a whole when its first Exit is met: what uses its values has been visited then
 * (loop_gradients.c). */
#include "graph/sweep.h"
#include "tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

static twi_outputs *arriving_at(twi_sweep *s, tw_output output)
{
    twi_outputs **row = &s->nodes[output.node->id].arriving;
    if (!*row)
        *row = twi_alloc_array((size_t)output.node->num_outputs, sizeof **row);
    return *row ? &(*row)[output.index] : NULL;
}

bool twi_sweep_arrive(twi_sweep *s, tw_output at, tw_output gradient)
{
    twi_outputs *list = arriving_at(s, at);
    return list && twi_push(list, gradient);
}

tw_output twi_sweep_sum(twi_sweep *s, tw_output at)
{
    twi_outputs *row = s->nodes[at.node->id].arriving;
    if (!row || row[at.index].count == 0)
        return (tw_output){0};
    twi_outputs *list = &row[at.index];
    if (list->count > 1) {
        tw_enter_colocation(s->graph, list->items[0]);
        tw_output sum = tw_node_output(tw_add_node(s->graph, "AddN", NULL, list->items, list->count, NULL, 0), 0);
        tw_leave_colocation(s->graph);
        list->items[0] = sum;
        list->count = 1;
    }
    return list->items[0];
}

bool twi_has_gradient(tw_dtype dtype)
{
    return dtype == TW_FLOAT32 || dtype == TW_FLOAT64 || dtype == TW_FLOAT16 || dtype == TW_BFLOAT16 ||
           tw_dtype_is_complex(dtype);
}

/* Ones shaped like y: the gradient of a sum with respect to itself. */
static tw_output ones_like(tw_graph *graph, tw_output y)
{
    tw_shape shape = tw_output_shape(y);
    if (graph->named_by_class)
        return tw_node_output(tw_add_node(graph, "OnesLike", NULL, &y, 1, NULL, 0), 0);
    if (shape.rank != 0)
        return tw_node_output(tw_add_node(graph, "OnesLike", "grad_ys", &y, 1, NULL, 0), 0);
    tw_tensor *one = tw_tensor_create(tw_output_dtype(y), TW_SCALAR);
    if (!one) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while differentiating");
        return (tw_output){0};
    }
    twi_tensor_set_number(one, 0, 1);
    tw_attr attrs[] = {tw_attr_tensor("value", one), tw_attr_type("dtype", tw_output_dtype(y))};
    tw_output output = tw_node_output(tw_add_node(graph, "Const", "grad_ys", NULL, 0, attrs, 2), 0);
    tw_tensor_release(one);
    return output;
}

/* Nodes that lead to a y, and are so marked, are in the list once; false: memory ran out. */
static bool reach(twi_sweep *s, const tw_node *node)
{
    twi_visited *v = &s->nodes[node->id];
    if (!v->leads_to_y && !twi_push(&s->reached, node->id))
        return false;
    v->leads_to_y = true;
    return true;
}

static int latest_first(const void *a, const void *b)
{
    return *(const int *)b - *(const int *)a;
}

/* Of a graph without loops; the ys are reached. */
static bool reach_all(twi_sweep *s)
{
    for (int k = 0; k < s->reached.count; k++) {
        const tw_node *node = s->graph->nodes.items[s->reached.items[k]];
        for (int i = 0; i < node->num_inputs; i++)
            if (!reach(s, node->inputs[i].node))
                return false;
    }
    if (s->reached.count > 1)
        qsort(s->reached.items, (size_t)s->reached.count, sizeof *s->reached.items, latest_first);
    return true;
}

/* Of a graph with loops, all of whose nodes are looked at. What leads to a loop's Merge by its way back, which comes
 * later, leads on from there. */
static bool reach_through_loops(twi_sweep *s)
{
    for (int id = s->num_nodes - 1; id >= 0; id--) {
        const tw_node *node = s->graph->nodes.items[id], *back = node->backward.node;
        if (!s->nodes[id].leads_to_y)
            continue;
        for (int i = 0; i < node->num_inputs; i++)
            s->nodes[node->inputs[i].node->id].leads_to_y = true;
        if (back && !s->nodes[back->id].leads_to_y) {
            s->nodes[back->id].leads_to_y = true;
            id = back->id + 1;
        }
    }
    s->reached.count = 0;
    for (int id = s->num_nodes - 1; id >= 0; id--)
        if (!twi_push(&s->reached, id))
            return false;
    return true;
}

/* A bool that x decides hands on no gradient: it does not make all that it decides depend on x. */
static bool comes_from_x(const twi_sweep *s, const tw_node *node)
{
    bool comes = node->backward.node && s->nodes[node->backward.node->id].comes_from_x;
    for (int i = 0; !comes && i < node->num_inputs; i++)
        comes = tw_output_dtype(node->inputs[i]) != TW_BOOL && s->nodes[node->inputs[i].node->id].comes_from_x;
    return comes;
}

/* What is popped from a stack comes from what was pushed there. True: that was not known yet. */
static bool mark_stack(twi_sweep *s, const tw_node *put)
{
    const tw_node *stack = put;
    if (!twi_op_is(put->op, TWI_PUTS) || put->num_inputs != 2 || !s->nodes[put->id].comes_from_x)
        return false;
    while (stack->num_inputs && stack->op->makes == TWI_MAKES_NOTHING)
        stack = stack->inputs[0].node;
    bool is_new = !s->nodes[stack->id].comes_from_x;
    s->nodes[stack->id].comes_from_x = true;
    return is_new;
}

static void mark_from_xs(twi_sweep *s)
{
    bool goes_back = true;
    while (goes_back) {
        goes_back = false;
        for (int k = s->reached.count - 1; k >= 0; k--) {
            twi_visited *v = &s->nodes[s->reached.items[k]];
            v->comes_from_x = v->comes_from_x || comes_from_x(s, s->graph->nodes.items[s->reached.items[k]]);
        }
        for (int id = 0; id < s->num_nodes && s->graph->loops; id++) {
            const tw_node *node = s->graph->nodes.items[id];
            goes_back = goes_back || (node->backward.node && !s->nodes[id].comes_from_x && comes_from_x(s, node));
            goes_back = mark_stack(s, node) || goes_back;
        }
    }
}

static tw_status mark_paths(twi_sweep *s, const tw_output *ys, int num_ys, const tw_output *xs, int num_xs)
{
    bool fits = true;
    for (int i = 0; i < num_ys; i++)
        fits = fits && reach(s, ys[i].node);
    if (!fits || !(s->graph->loops ? reach_through_loops(s) : reach_all(s)))
        return twi_graph_fail(s->graph, TW_RESOURCE_EXHAUSTED, "out of memory while differentiating");
    for (int i = 0; i < num_xs; i++)
        if (xs[i].node)
            s->nodes[xs[i].node->id].comes_from_x = s->nodes[xs[i].node->id].is_x = true;
    mark_from_xs(s);
    return TW_OK;
}

/* ---- marks ------------------------------------------------------------------------------------------------------ */

/* The graph keeps the marks of its nodes from one sweep to the next, all zero in between. A sweep that is begun within
 * another makes its own. */
static bool take_marks(twi_sweep *s)
{
    tw_graph *graph = s->graph;
    s->nodes = graph->marks;
    s->room = graph->marks_room;
    graph->marks = NULL;
    graph->marks_room = 0;
    if (s->room >= s->num_nodes)
        return true;
    twi_free(s->nodes);
    s->room = 2 * s->num_nodes;
    s->nodes = twi_alloc_array((size_t)s->room + 1, sizeof *s->nodes);
    return s->nodes != NULL;
}

static void forget(twi_sweep *s, const tw_node *node)
{
    if (!node || node->graph != s->graph || node->id >= s->num_nodes)
        return;
    twi_visited *v = &s->nodes[node->id];
    for (int i = 0; v->arriving && i < node->num_outputs; i++)
        twi_array_free(&v->arriving[i]);
    twi_free(v->arriving);
    *v = (twi_visited){0};
}

static void give_marks_back(twi_sweep *s, const tw_output *ys, int num_ys, const tw_output *xs, int num_xs)
{
    for (int k = 0; k < s->reached.count && s->nodes; k++)
        forget(s, s->graph->nodes.items[s->reached.items[k]]);
    for (int i = 0; i < num_ys + num_xs && s->nodes; i++)
        forget(s, i < num_ys ? ys[i].node : xs[i - num_ys].node);
    twi_array_free(&s->reached);
    twi_free(s->graph->marks);
    s->graph->marks = s->nodes;
    s->graph->marks_room = s->nodes ? s->room : 0;
}

/* ---- the sweep -------------------------------------------------------------------------------------------------- */

/* A gradient is like what it is a gradient of; that of a handle is like the variable behind it. The gradient may not
 * have known all of that shape. */
static tw_status check_gradient(tw_graph *graph, const tw_node *node, int i, tw_output dx)
{
    char got[128], want[128];
    tw_output x = node->inputs[i];
    tw_dtype dtype = tw_output_dtype(x) == TW_RESOURCE ? x.node->resource_dtype : tw_output_dtype(x);
    tw_shape *shape = &dx.node->output_shapes[dx.index];
    if (tw_output_dtype(dx) == TW_VARIANT && dtype == TW_VARIANT) /* of a list: what is known of it is its elements' */
        return TW_OK;
    if (tw_output_dtype(dx) == dtype && twi_merge_shapes(*shape, tw_output_shape(x), shape, NULL) == TW_OK)
        return TW_OK;
    bool passed_on = node->num_outputs == 1 && !tw_shape_is_known(node->output_shapes[0]); /* what users made of it */
    return twi_graph_fail(graph, passed_on ? TW_INVALID_ARGUMENT : TW_INTERNAL,
                          "the gradient of %s '%s' for input %d is %s %s, expected %s %s",
                          node->op->name, node->name, i, tw_dtype_name(tw_output_dtype(dx)),
                          tw_shape_text(tw_output_shape(dx), got, sizeof got), tw_dtype_name(dtype),
                          tw_shape_text(tw_output_shape(x), want, sizeof want));
}

/* Whole numbers have gradients in TensorFlow's C++ alone (start_at), where fewer ops stop them without a word. */
static bool refuses_whole_numbers(const tw_node *node)
{
    tw_dtype dtype = node->output_types[0];
    return node->op->gradient == twi_not_differentiable && dtype != TW_BOOL && !twi_has_gradient(dtype);
}

/* Calls the rule of one node and hands its results to the inputs. */
static tw_status differentiate(twi_sweep *s, tw_node *node)
{
    tw_graph *graph = s->graph;
    bool any = false;
    tw_output *dy = twi_alloc_array((size_t)node->num_outputs + (size_t)node->num_inputs + 1, sizeof *dy);
    if (!dy)
        return twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while differentiating");
    tw_output *dx = dy + node->num_outputs;
    for (int i = 0; i < node->num_outputs; i++) {
        dy[i] = twi_sweep_sum(s, (tw_output){node, i});
        any = any || dy[i].node;
    }
    if (!any)
        goto done;
    if (!node->op->gradient || (graph->named_by_class && refuses_whole_numbers(node))) {
        twi_graph_fail(graph, TW_UNIMPLEMENTED, "No gradient defined for operation '%s' (op type: %s)", node->name,
                       node->op->name);
        goto done;
    }
    twi_gradient context = {graph, node, dy, dx, s->num_nodes};
    tw_enter_colocation(graph, (tw_output){node, -1});
    if (!graph->named_by_class)
        tw_enter_name_scope(graph, "%s_grad", node->name);
    node->op->gradient(&context);
    if (!graph->named_by_class)
        tw_leave_name_scope(graph);
    tw_leave_colocation(graph);
    for (int i = 0; i < node->num_inputs && graph->error.status == TW_OK; i++) {
        tw_output x = node->inputs[i];
        if (!dx[i].node || !s->nodes[x.node->id].comes_from_x)
            continue;
        if (check_gradient(graph, node, i, dx[i]) == TW_OK && !twi_sweep_arrive(s, x, dx[i]))
            twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while differentiating");
    }
done:
    twi_free(dy);
    return graph->error.status;
}

/* A node that is itself an x is passed through only when some of its own inputs lead on to another x. */
static bool must_visit(const twi_sweep *s, const tw_node *node)
{
    const twi_visited *v = &s->nodes[node->id];
    if (!v->leads_to_y || !v->comes_from_x || !v->arriving)
        return false;
    bool leads_on = !v->is_x;
    for (int i = 0; i < node->num_inputs && !leads_on; i++)
        leads_on = s->nodes[node->inputs[i].node->id].comes_from_x;
    return leads_on;
}

/* The way back of a loop takes no whole numbers along. */
static tw_status sweep_loop(twi_sweep *s, tw_node *exit)
{
    const twi_visited *v = &s->nodes[exit->id];
    tw_dtype dtype = exit->output_types[0];
    if (s->graph->named_by_class && v->arriving && v->comes_from_x && dtype != TW_VARIANT && !twi_has_gradient(dtype))
        return twi_graph_fail(s->graph, TW_INVALID_ARGUMENT,
                              "gradients of '%s': it is %s, only floats and complex numbers have them through a loop",
                              exit->name, tw_dtype_name(dtype));
    return twi_sweep_loop(s, exit);
}

static tw_status sweep_node(twi_sweep *s, tw_node *node)
{
    if (twi_op_is(node->op, TWI_EXIT))
        return sweep_loop(s, node);
    return must_visit(s, node) && !twi_sweep_round(s, node) ? differentiate(s, node) : TW_OK;
}

tw_status twi_sweep_nodes(twi_sweep *s, int frame)
{
    tw_status status = TW_OK;
    const twi_frame *of = s->graph->loops ? &s->frames.items.items[frame] : NULL;
    for (int k = of ? of->nodes.count - 1 : -1; k >= 0 && status == TW_OK; k--)
        status = sweep_node(s, s->graph->nodes.items[of->nodes.items[k]->id]);
    for (int k = 0; k < s->reached.count && !of && status == TW_OK; k++)
        status = sweep_node(s, s->graph->nodes.items[s->reached.items[k]]);
    return status != TW_OK ? status : s->graph->error.status;
}

/* Outputs that are there belong to the graph and exist; index -1, the node itself, is passed over where it may be. */
static tw_status check_outputs(tw_graph *graph, const char *what, const tw_output *outputs, int count)
{
    for (int i = 0; i < count && outputs; i++) {
        const tw_node *node = outputs[i].node;
        if (node && node->graph != graph)
            return twi_graph_fail(graph, TW_INVALID_ARGUMENT, "gradients: %s number %d, '%s', is of another graph",
                                  what, i, node->name);
        if (node && (outputs[i].index < -1 || outputs[i].index >= node->num_outputs))
            return twi_graph_fail(graph, TW_INVALID_ARGUMENT,
                                  "gradients: %s number %d is output %d of '%s', which has %d", what, i,
                                  outputs[i].index, node->name, node->num_outputs);
    }
    return TW_OK;
}

static tw_status start_at(twi_sweep *s, const tw_output *ys, int num_ys, const tw_output *grad_ys)
{
    for (int i = 0; i < num_ys; i++) {
        if (!ys[i].node || ys[i].index < 0)
            return twi_graph_fail(s->graph, TW_INVALID_ARGUMENT, "gradients of a dead output (y number %d)", i);
        if (!twi_has_gradient(tw_output_dtype(ys[i])) && !s->graph->named_by_class) /* in C++ all that has ones does */
            return twi_graph_fail(s->graph, TW_INVALID_ARGUMENT,
                                  "gradients of '%s': it is %s, only floats and complex numbers have them",
                                  ys[i].node->name, tw_dtype_name(tw_output_dtype(ys[i])));
        tw_output start = grad_ys && grad_ys[i].node ? grad_ys[i] : (tw_output){0};
        if (!start.node && tw_dtype_is_complex(tw_output_dtype(ys[i])))
            return twi_graph_fail(s->graph, TW_INVALID_ARGUMENT, "gradients of '%s': it is %s, which needs its grad_ys",
                                  ys[i].node->name, tw_dtype_name(tw_output_dtype(ys[i])));
        if (!start.node) {
            tw_enter_colocation(s->graph, ys[i]);
            start = ones_like(s->graph, ys[i]);
            tw_leave_colocation(s->graph);
        }
        if (s->graph->error.status == TW_OK && !twi_sweep_arrive(s, ys[i], start))
            return twi_graph_fail(s->graph, TW_RESOURCE_EXHAUSTED, "out of memory while differentiating");
    }
    return s->graph->error.status;
}

/* All of ys and xs are in one loop, or in none. */
static tw_status find_home(twi_sweep *s, const tw_output *ys, int num_ys, const tw_output *xs, int num_xs)
{
    tw_error error = {0};
    if (!s->graph->loops)
        return TW_OK;
    if (twi_frames_find(s->graph, &s->frames, &error) != TW_OK)
        return twi_graph_latch(s->graph, &error);
    s->home = num_ys > 0 && ys[0].node ? s->frames.of[ys[0].node->id] : 0;
    for (int i = 0; i < num_ys + num_xs; i++) {
        const tw_node *node = i < num_ys ? ys[i].node : xs[i - num_ys].node;
        int frame = node ? s->frames.of[node->id] : s->home;
        if (frame < 0)
            return twi_graph_fail(s->graph, TW_INVALID_ARGUMENT,
                                  "gradients: '%s' takes something of a loop and something of outside, or of two loops",
                                  node->name);
        if (frame != s->home)
            return twi_graph_fail(s->graph, TW_INVALID_ARGUMENT,
                                  "gradients: '%s' is computed in the rounds of a loop, and '%s' is not in the same",
                                  frame > 0 ? node->name : ys[0].node->name, frame > 0 ? ys[0].node->name : node->name);
    }
    return TW_OK;
}

/* Prefix NULL: as tw_gradients() names what it adds. */
static void add_gradients(tw_graph *graph, const char *prefix, const tw_output *ys, int num_ys,
                          const tw_output *grad_ys, const tw_output *xs, int num_xs, tw_output *grads)
{
    memset(grads, 0, sizeof *grads * (size_t)num_xs);
    if (graph->error.status != TW_OK || check_outputs(graph, "y", ys, num_ys) != TW_OK ||
        check_outputs(graph, "x", xs, num_xs) != TW_OK || check_outputs(graph, "gradient", grad_ys, num_ys) != TW_OK)
        return;
    twi_sweep s = {.graph = graph, .num_nodes = graph->nodes.count, .block = twi_scope_block(graph)};
    graph->named_by_class = prefix;
    tw_enter_name_scope(graph, "%s", prefix ? prefix : "gradients");
    if (!take_marks(&s)) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while differentiating");
        goto done;
    }
    if (find_home(&s, ys, num_ys, xs, num_xs) != TW_OK || start_at(&s, ys, num_ys, grad_ys) != TW_OK)
        goto done;
    if (mark_paths(&s, ys, num_ys, xs, num_xs) != TW_OK || twi_sweep_nodes(&s, s.home) != TW_OK)
        goto done;
    for (int i = 0; i < num_xs; i++)
        if (xs[i].node && xs[i].index >= 0)
            grads[i] = twi_sweep_sum(&s, xs[i]);
done:
    graph->named_by_class = false;
    tw_leave_name_scope(graph);
    give_marks_back(&s, ys, num_ys, xs, num_xs);
    twi_frames_free(&s.frames);
}

void tw_gradients(tw_graph *graph, const tw_output *ys, int num_ys, const tw_output *grad_ys, const tw_output *xs,
                  int num_xs, tw_output *grads)
{
    TWI_NEED_OR(graph, );
    TWI_NEED_IN(graph, ys || num_ys <= 0, "ys", );
    TWI_NEED_IN(graph, xs || num_xs <= 0, "xs", );
    TWI_NEED_IN(graph, grads, "grads", );
    add_gradients(graph, NULL, ys, num_ys, grad_ys, xs, num_xs, grads);
}

void tw_gradients_under(tw_graph *graph, const char *prefix, const tw_output *ys, int num_ys, const tw_output *grad_ys,
                        const tw_output *xs, int num_xs, tw_output *grads)
{
    TWI_NEED_OR(graph, );
    TWI_NEED_IN(graph, ys || num_ys <= 0, "ys", );
    TWI_NEED_IN(graph, xs || num_xs <= 0, "xs", );
    TWI_NEED_IN(graph, grads, "grads", );
    TWI_NEED_IN(graph, prefix, "prefix", );
    add_gradients(graph, prefix, ys, num_ys, grad_ys, xs, num_xs, grads);
}
