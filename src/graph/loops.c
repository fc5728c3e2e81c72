/* loops.c - building loops, as TensorFlow 1 writes them: a frame between Enters and Exits, whose values go round.
 *
 *     initial -> Enter -> Merge -> Switch -> body -> NextIteration -> back to the Merge
 *                                     |
 *                                     +-> Exit -> result
 *
 * A loop is two blocks (blocks.h): what is computed of the Merges before there is a LoopCond, and the body, the branch
 * in which that holds. Variables may be added until the loop is left, so TW_LOOP and gradients (loop_gradients.c) build
 * with the same few functions. */
#include "graph/blocks.h"
#include "graph/graph.h"

#include <string.h>
#include <tower/ops.h>

/* ---- one at a time ---------------------------------------------------------------------------------------------- */

int twi_loop_variable(tw_graph *graph, twi_block *loop, tw_output initial)
{
    tw_output x = initial.node ? twi_block_pass(graph, loop->outer, initial) : initial;
    tw_output entered = x.node ? twi_loop_enter(graph, loop, x, false) : x;
    tw_node *merge =
        entered.node ? twi_add_in_block(graph, loop, "Merge", (tw_output[]){entered, entered}, 2, NULL, 0) : NULL;
    if (!twi_push(&loop->turns, merge))
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while building the loop '%s'", loop->frame);
    if (!loop->pivot)
        loop->pivot = merge;
    return loop->turns.count - 1;
}

tw_output twi_loop_value(const twi_block *loop, int variable)
{
    return tw_node_output(variable >= 0 && variable < loop->turns.count ? loop->turns.items[variable] : NULL, 0);
}

void twi_loop_test(tw_graph *graph, twi_block *loop, tw_output predicate)
{
    char text[128];
    tw_shape shape = tw_output_shape(predicate);
    if (predicate.node && (tw_output_dtype(predicate) != TW_BOOL || !tw_shape_compatible(shape, TW_SCALAR)))
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "loop '%s': there is a round while a bool holds, and '%s' is %s %s",
                       loop->frame, predicate.node->name, tw_dtype_name(tw_output_dtype(predicate)),
                       tw_shape_text(shape, text, sizeof text));
    tw_output here = predicate.node ? twi_block_pass(graph, loop, predicate) : predicate;
    tw_node *cond = here.node ? twi_add_in_block(graph, loop, "LoopCond", &here, 1, NULL, 0) : NULL;
    if (cond)
        loop->body = twi_branch_find(graph, loop, tw_node_output(cond, 0), true);
}

/* What comes round is of the type and the shape that the variable began with. */
static bool check_next(tw_graph *graph, const twi_block *loop, int variable, tw_output next)
{
    char is[128], was[128];
    tw_output merge = twi_loop_value(loop, variable);
    if (!next.node || !merge.node)
        return twi_graph_fail(graph, TW_INVALID_ARGUMENT, "loop '%s': value %d comes back as a dead output",
                              loop->frame, variable),
               false;
    if (tw_output_dtype(next) == tw_output_dtype(merge) &&
        tw_shape_compatible(tw_output_shape(next), tw_output_shape(merge)))
        return true;
    twi_graph_fail(
        graph, TW_INVALID_ARGUMENT,
        "loop '%s': value %d begins as %s %s and comes back as %s %s ('%s'); one whose shape changes begins with a "
        "shape that is not known",
        loop->frame, variable, tw_dtype_name(tw_output_dtype(merge)),
        tw_shape_text(tw_output_shape(merge), was, sizeof was), tw_dtype_name(tw_output_dtype(next)),
        tw_shape_text(tw_output_shape(next), is, sizeof is), next.node->name);
    return false;
}

/* What does not change is there in the last round, too, and must not go round then. */
void twi_loop_next(tw_graph *graph, twi_block *loop, int variable, tw_output next)
{
    if (graph->error.status != TW_OK || !check_next(graph, loop, variable, next))
        return;
    tw_output here = twi_block_pass(graph, loop->body, next);
    if (here.node && here.node->block == loop) {
        twi_enter_block(graph, loop->body, false);
        here = tw_node_output(tw_add_node(graph, "Identity", NULL, &here, 1, NULL, 0), 0);
        tw_leave_branch(graph);
    }
    tw_node *round = here.node ? twi_add_in_block(graph, loop->body, "NextIteration", &here, 1, NULL, 0) : NULL;
    if (round)
        loop->turns.items[variable]->backward = tw_node_output(round, 0);
}

tw_output twi_loop_result(tw_graph *graph, twi_block *loop, int variable)
{
    tw_output merge = twi_loop_value(loop, variable);
    tw_output inside = merge.node && loop->body ? twi_block_pass(graph, loop->body, merge) : (tw_output){0};
    if (!inside.node)
        return inside;
    return tw_node_output(twi_add_in_block(graph, loop->outer, "Exit", &(tw_output){inside.node, 0}, 1, NULL, 0), 0);
}

/* ---- TW_LOOP ---------------------------------------------------------------------------------------------------- */

/* The loop whose scope is the innermost; NULL: the graph has failed. */
static twi_block *find_loop(tw_graph *graph, const char *call)
{
    twi_block *loop = twi_scope_loop(graph);
    if (!loop && graph->error.status == TW_OK)
        twi_graph_fail(graph, TW_FAILED_PRECONDITION,
                       "%s(): stands in the block of a TW_LOOP, and in no other scope in it", call);
    return graph->error.status == TW_OK ? loop : NULL;
}

static tw_output whole_number(tw_graph *graph, int32_t number)
{
    tw_tensor *value = tw_tensor_from(TW_INT32, TW_SCALAR, &number);
    tw_attr attrs[] = {tw_attr_tensor("value", value), tw_attr_type("dtype", TW_INT32)};
    tw_node *node = value ? tw_add_node(graph, "Const", "number", NULL, 0, attrs, 2) : NULL;
    if (!value)
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while building a loop");
    tw_tensor_release(value);
    return tw_node_output(node, 0);
}

/* What the open scopes of control inputs hold back: who stands in the loop comes after its ways in. */
static tw_output held_back(tw_graph *graph, tw_output x)
{
    tw_node *const *controls;
    bool held = x.node && twi_scope_controls(graph, &controls) > 0;
    return held ? tw_node_output(tw_add_node(graph, "Identity", NULL, &x, 1, NULL, 0), 0) : x;
}

void tw_enter_loop(tw_graph *graph, tw_output *values, int count)
{
    TWI_NEED_OR(graph, );
    tw_enter_name_scope(graph, "%s", graph->next_name ? graph->next_name : "while");
    graph->next_name = NULL;
    const char *name = tw_name_scope(graph);
    char *frame = twi_arena_printf(&graph->arena, "%.*s", (int)strlen(name) - (name[0] != 0), name);
    if (!frame)
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while building a loop");
    twi_block *loop = frame ? twi_loop_begin(graph, twi_scope_block(graph), frame) : NULL;
    if (!values && count > 0)
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "loop '%s': its values are NULL", frame ? frame : "");
    for (int i = 0; i < count && loop && graph->error.status == TW_OK; i++) {
        if (!values[i].node)
            twi_graph_fail(graph, TW_INVALID_ARGUMENT, "loop '%s': value %d is a dead output", frame, i);
        twi_loop_variable(graph, loop, held_back(graph, values[i]));
    }
    if (loop && count <= 0) /* something goes round in every loop */
        loop->counter = twi_loop_variable(graph, loop, held_back(graph, whole_number(graph, 0)));
    if (loop) {
        loop->values = values;
        loop->num_values = graph->error.status == TW_OK ? count : 0;
        for (int i = 0; i < loop->num_values; i++)
            values[i] = twi_loop_value(loop, i);
    }
    twi_enter_loop_block(graph, loop);
}

void tw_while(tw_graph *graph, tw_output predicate)
{
    TWI_NEED_OR(graph, );
    twi_block *loop = find_loop(graph, "tw_while");
    if (!loop)
        return;
    if (loop->body)
        twi_graph_fail(graph, TW_FAILED_PRECONDITION, "loop '%s': tw_while() is called twice", loop->frame);
    if (!predicate.node)
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "loop '%s': what decides is a dead output", loop->frame);
    if (graph->error.status == TW_OK)
        twi_loop_test(graph, loop, predicate);
    if (loop->body)
        twi_scope_go_on(graph, loop->body);
}

tw_output tw_round_number(tw_graph *graph)
{
    TWI_NEED_OR(graph, (tw_output){0});
    twi_block *loop = twi_scope_block(graph);
    while (loop && !loop->frame)
        loop = loop->outer;
    if (!loop)
        twi_graph_fail(graph, TW_FAILED_PRECONDITION, "tw_round_number(): stands in the block of a TW_LOOP");
    if (graph->error.status != TW_OK)
        return (tw_output){0};
    if (loop->counter < 0) {
        twi_enter_block(graph, loop->outer, false);
        tw_output zero = whole_number(graph, 0);
        tw_leave_branch(graph);
        loop->counter = twi_loop_variable(graph, loop, zero);
    }
    return twi_loop_value(loop, loop->counter);
}

static void close_loop(tw_graph *graph, twi_block *loop)
{
    if (!loop->body)
        twi_graph_fail(graph, TW_FAILED_PRECONDITION,
                       "loop '%s' has no end: tw_while() in its block says how long it goes on", loop->frame);
    for (int i = 0; i < loop->num_values; i++)
        twi_loop_next(graph, loop, i, loop->values[i]);
    if (loop->counter >= 0 && graph->error.status == TW_OK) {
        tw_output terms[] = {twi_loop_value(loop, loop->counter), whole_number(graph, 1)};
        tw_output next = tw_node_output(tw_add_node(graph, "AddV2", NULL, terms, 2, NULL, 0), 0);
        twi_loop_next(graph, loop, loop->counter, next);
    }
    for (int i = 0; i < loop->num_values && graph->error.status == TW_OK; i++) /* Exits come last */
        twi_block_pass(graph, loop->body, twi_loop_value(loop, i));
}

void tw_leave_loop(tw_graph *graph)
{
    TWI_NEED_OR(graph, );
    twi_block *loop = find_loop(graph, "tw_leave_loop");
    if (loop)
        close_loop(graph, loop);
    twi_leave_loop_block(graph);
    for (int i = 0; loop && i < loop->num_values; i++)
        loop->values[i] = graph->error.status == TW_OK ? twi_loop_result(graph, loop, i) : (tw_output){0};
    tw_leave_name_scope(graph);
}
