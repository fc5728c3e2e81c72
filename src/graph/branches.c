/* branches.c - see branches.h. */
#include "graph/branches.h"

#include "graph/graph.h"

struct twi_branches {
    twi_guards guards;
    TWI_ARRAY(twi_guard *) nodes; /* of the first nodes of the graph */
};

void twi_branches_destroy(twi_branches *b)
{
    if (!b)
        return;
    twi_guards_free(&b->guards);
    twi_array_free(&b->nodes);
    twi_free(b);
}

tw_output twi_branches_root(tw_output predicate)
{
    while (predicate.node->num_inputs && predicate.index < predicate.node->num_inputs &&
           twi_op_is(predicate.node->op, TWI_PASSES | TWI_SWITCH))
        predicate = predicate.node->inputs[twi_op_is(predicate.node->op, TWI_SWITCH) ? 0 : predicate.index];
    return predicate;
}

static twi_literal literal_of(tw_output predicate, bool value)
{
    tw_output root = twi_branches_root(predicate);
    return (twi_literal){root.node->id, root.index, value};
}

static tw_status guard_of(twi_branches *b, tw_output output, twi_guard **guard, tw_error *error)
{
    *guard = b->nodes.items[output.node->id];
    if (output.index < 0 || !twi_op_is(output.node->op, TWI_SWITCH))
        return TW_OK;
    return twi_guard_with(&b->guards, *guard, literal_of(output.node->inputs[1], output.index == 1), guard, error);
}

static tw_status join_inputs(twi_branches *b, const tw_node *node, twi_guard **guard, tw_error *error)
{
    twi_guard *one = NULL;
    tw_status status = TW_OK;
    bool leaves = twi_op_is(node->op, TWI_EXIT); /* a loop: that its last round is none is no condition outside */
    for (int i = 0; i < node->num_inputs && status == TW_OK; i++) {
        tw_output input = {node->inputs[i].node, leaves ? -1 : node->inputs[i].index};
        status = guard_of(b, input, &one, error);
        if (status == TW_OK)
            status = twi_guard_join(&b->guards, *guard, one, guard, error);
    }
    return status;
}

static tw_status merge_inputs(twi_branches *b, const tw_node *node, twi_guard **guard, tw_error *error)
{
    tw_status status = TW_OK;
    twi_guard **inputs = twi_alloc_array((size_t)node->num_inputs + 1, sizeof *inputs);
    if (!inputs)
        return twi_fail_memory(error, "looking at conditions");
    for (int i = 0; i < node->num_inputs && status == TW_OK; i++)
        status = guard_of(b, node->inputs[i], &inputs[i], error);
    int left = node->num_inputs;
    if (status == TW_OK)
        status = twi_guard_merge(&b->guards, inputs, &left, error);
    if (status == TW_OK) /* of inputs of several conditions nothing is known */
        *guard = left == 1 ? inputs[0] : left == 0 ? &twi_never : NULL;
    twi_free(inputs);
    return status;
}

static tw_status find(tw_graph *graph, twi_branches **result, tw_error *error)
{
    tw_status status = TW_OK;
    twi_branches *b = graph->conditions ? graph->conditions : twi_alloc(sizeof *b);
    graph->conditions = b;
    if (!b || !twi_reserve(&b->nodes, graph->nodes.count))
        return twi_fail_memory(error, "looking at conditions");
    while (b->nodes.count < graph->nodes.count && status == TW_OK) {
        const tw_node *node = graph->nodes.items[b->nodes.count];
        twi_guard *guard = NULL;
        bool merges = twi_op_is(node->op, TWI_MERGE), triggers = merges && !node->num_inputs;
        if (!triggers) /* which runs whatever came of what it comes after */
            status = merges ? merge_inputs(b, node, &guard, error) : join_inputs(b, node, &guard, error);
        for (int i = 0; i < node->num_control_inputs && !triggers && status == TW_OK; i++)
            status = twi_guard_join(&b->guards, guard, b->nodes.items[node->control_inputs[i]->id], &guard, error);
        b->nodes.items[b->nodes.count++] = guard;
    }
    *result = b;
    return status;
}

/* The literals of `inner` that are not in `outer`, the first node's first. */
static int list_rest(const tw_graph *graph, const twi_guard *inner, const twi_guard *outer, twi_condition_side *sides)
{
    int count = 0;
    for (; inner; inner = inner->rest) {
        const twi_guard *same = outer;
        while (same && (same->last.predicate != inner->last.predicate || same->last.index != inner->last.index))
            same = same->rest;
        if (!same)
            sides[count++] =
                (twi_condition_side){{graph->nodes.items[inner->last.predicate], inner->last.index}, inner->last.value};
    }
    for (int i = 0; i < count / 2; i++) {
        twi_condition_side side = sides[i];
        sides[i] = sides[count - 1 - i];
        sides[count - 1 - i] = side;
    }
    return count;
}

/* Whether some input of a Merge but number i may come. */
static tw_status look_at_others(twi_branches *b, const tw_node *merge, int i, bool *may_come, tw_error *error)
{
    tw_status status = TW_OK;
    *may_come = false;
    for (int k = 0; k < merge->num_inputs && !*may_come && status == TW_OK; k++) {
        twi_guard *guard = NULL;
        status = guard_of(b, merge->inputs[k], &guard, error);
        *may_come = k != i && guard != &twi_never;
    }
    return status;
}

int twi_branches_between(tw_graph *graph, const tw_node *merge, int i, twi_condition_side sides[TWI_MOST_CONDITIONS],
                         bool *never)
{
    tw_error error = {0};
    twi_branches *b = NULL;
    twi_guard *input = NULL;
    bool others = false;
    tw_status status = find(graph, &b, &error);
    if (status == TW_OK)
        status = guard_of(b, merge->inputs[i], &input, &error);
    *never = input == &twi_never;
    int count = status == TW_OK && !*never ? list_rest(graph, input, b->nodes.items[merge->id], sides) : 0;
    if (status == TW_OK && count == 0 && !*never)
        status = look_at_others(b, merge, i, &others, &error);
    if (status == TW_OK && others)
        status = twi_fail(&error, TW_INVALID_ARGUMENT, "%s '%s': its inputs are not the branches of one condition",
                          merge->op->name, merge->name);
    if (status != TW_OK)
        twi_graph_fail(graph, status, "%s", error.message);
    return status == TW_OK ? count : -1;
}

int twi_branches_of(tw_graph *graph, tw_output output, twi_condition_side sides[TWI_MOST_CONDITIONS])
{
    tw_error error = {0};
    twi_branches *b = NULL;
    twi_guard *guard = NULL;
    tw_status status = find(graph, &b, &error);
    if (status == TW_OK)
        status = guard_of(b, output, &guard, &error);
    if (status != TW_OK)
        twi_graph_fail(graph, status, "%s", error.message);
    return status != TW_OK ? -1 : guard == &twi_never ? 0 : list_rest(graph, guard, NULL, sides);
}
