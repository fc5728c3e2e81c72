/* branch_scopes.c - building under a condition: what a node of a branch takes from outside goes through a Switch.
 *
 * That makes the branch (TensorFlow 1 has no other word for it), and is how gradients find their way out of it: what
 * flows back to a value that only one side uses is zero where the other side was taken. Each value has one Switch a
 * branch. Handles of variables do not go through one: who has nothing else comes after the branch's pivot. */
#include "graph/branches.h"

#include "graph/graph.h"

typedef struct passage {
    tw_output outside, inside;
} passage;

struct twi_branch {
    twi_branch *outer, *before; /* of which it is a part; that was made before it */
    tw_output predicate;
    bool value;
    tw_node *pivot; /* runs where the branch does; NULL: nobody has needed it */
    TWI_ARRAY(passage) passages;
};

void twi_branch_scopes_free(tw_graph *graph)
{
    for (twi_branch *b = graph->latest_branch; b; b = b->before)
        twi_array_free(&b->passages);
}

tw_output twi_branch_predicate(const twi_branch *branch)
{
    return branch ? branch->predicate : (tw_output){0};
}

twi_branch *twi_branch_find(tw_graph *graph, twi_branch *outer, tw_output predicate, bool value)
{
    if (tw_output_dtype(predicate) != TW_BOOL) {
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "a branch is taken by a bool, and '%s' is %s",
                       predicate.node ? predicate.node->name : "",
                       predicate.node ? tw_dtype_name(tw_output_dtype(predicate)) : "a dead output");
        return NULL;
    }
    twi_branch *b = graph->latest_branch;
    while (b && (b->outer != outer || b->predicate.node != predicate.node || b->predicate.index != predicate.index ||
                 b->value != value))
        b = b->before;
    if (b)
        return b;
    b = twi_arena_alloc(&graph->arena, sizeof *b);
    if (!b) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while opening a branch");
        return NULL;
    }
    *b = (twi_branch){.outer = outer, .before = graph->latest_branch, .predicate = predicate, .value = value};
    return graph->latest_branch = b;
}

static bool is_within(const twi_branch *inner, const twi_branch *branch)
{
    while (inner && inner != branch)
        inner = inner->outer;
    return inner == branch;
}

/* Variables stay where they are. */
static bool is_passed(const twi_branch *branch, tw_output x)
{
    return !is_within(x.node->branch, branch) && tw_output_dtype(x) != TW_RESOURCE && !twi_output_is_reference(x);
}

/* x as the branch has it; no node: the graph has failed. */
static tw_output pass(tw_graph *graph, twi_branch *branch, tw_output x)
{
    if (!branch || !is_passed(branch, x))
        return x;
    for (int i = 0; i < branch->passages.count; i++)
        if (branch->passages.items[i].outside.node == x.node && branch->passages.items[i].outside.index == x.index)
            return branch->passages.items[i].inside;
    tw_output inputs[] = {pass(graph, branch->outer, x), pass(graph, branch->outer, branch->predicate)};
    twi_enter_no_control(graph); /* and no branch */
    tw_enter_colocation(graph, inputs[0]);
    tw_node *node = tw_add_node(graph, "Switch", NULL, inputs, 2, NULL, 0);
    tw_leave_colocation(graph);
    tw_leave_control(graph);
    passage made = {x, tw_node_output(node, branch->value)};
    if (node && !twi_push(&branch->passages, made))
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while building a branch");
    if (node)
        node->branch = branch;
    return made.inside;
}

static tw_node *pivot_of(tw_graph *graph, twi_branch *branch)
{
    tw_output predicate = branch->pivot ? (tw_output){0} : pass(graph, branch, branch->predicate);
    if (!predicate.node)
        return branch->pivot;
    twi_enter_no_control(graph);
    branch->pivot = tw_add_node(graph, "Identity", "pivot", &predicate, 1, NULL, 0);
    tw_leave_control(graph);
    if (branch->pivot)
        branch->pivot->branch = branch;
    return branch->pivot;
}

bool twi_branch_inputs(tw_graph *graph, twi_branch *branch, const tw_output *inputs, int num_inputs, tw_output *inside,
                       tw_node **pivot)
{
    bool any = false;
    for (int i = 0; i < num_inputs; i++) {
        bool is_value = inputs[i].node && inputs[i].index >= 0 && inputs[i].index < inputs[i].node->num_outputs;
        inside[i] = is_value ? pass(graph, branch, inputs[i]) : inputs[i]; /* what is wrong is said of the node */
        any = any || (is_value && inside[i].node && is_within(inside[i].node->branch, branch));
    }
    *pivot = any ? NULL : pivot_of(graph, branch);
    return graph->error.status == TW_OK;
}
