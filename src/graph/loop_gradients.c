/* loop_gradients.c - going back through a loop: a second loop, with as many rounds, that goes through them from the
 * last to the first.
 *
 * Its variables are the gradients of the first one's variables, and a sum for each value that does not change. What a
 * rule needs of a round, the first loop pushes onto a stack, one for each value, and the second pops it: the rules
 * build their nodes in the body of the second loop as they would anywhere, and what they take of the first is replaced
 * on the way in (twi_revisit). So the first loop gets a counter and pushes that come behind its Exits in the graph; a
 * plan that fetches no gradient has neither.
 *
 * Loops in a loop are gone back through when their Exits are met, in the body of the outer second loop. A stack is made
 * outside of all loops; since everything is popped in the opposite order, one does for all rounds of all loops. */
#include "graph/branches.h"
#include "graph/sweep.h"

/* A value that does not change: the variable that adds its gradients up. */
typedef struct summed {
    tw_output from; /* the value, outside */
    int variable;
} summed;

/* One loop that is gone back through. */
typedef struct twi_back {
    twi_sweep *s;
    struct twi_back *outer;
    int frame;
    const twi_frame *facts;
    twi_block *forth;            /* what is added to the loop, */
    twi_block *loop;             /* and the one of the gradients */
    int rounds;                  /* the counter of `forth`, */
    int left;                    /* and of `loop` */
    TWI_ARRAY(tw_output) pushes; /* as control inputs */
    TWI_ARRAY(summed) sums;
} twi_back;

static tw_status fail_memory(twi_back *b)
{
    return twi_graph_fail(b->s->graph, TW_RESOURCE_EXHAUSTED, "out of memory while differentiating");
}

static tw_output add(tw_graph *graph, const char *op, const tw_output *inputs, int num_inputs)
{
    return tw_node_output(tw_add_node(graph, op, NULL, inputs, num_inputs, NULL, 0), 0);
}

static tw_output raw(tw_graph *graph, twi_block *block, const char *op, const tw_output *inputs, int num_inputs)
{
    return tw_node_output(twi_add_in_block(graph, block, op, inputs, num_inputs, NULL, 0), 0);
}

static tw_output constant(tw_graph *graph, tw_tensor *value, const tw_output *after, int count)
{
    tw_attr attrs[] = {tw_attr_tensor("value", value),
                       tw_attr_type("dtype", value ? tw_tensor_dtype(value) : TW_INT32)};
    if (!value)
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while differentiating");
    return value ? tw_node_output(tw_add_node(graph, "Const", NULL, after, count, attrs, 2), 0) : (tw_output){0};
}

static tw_output number(tw_graph *graph, int32_t value, const tw_output *after, int count)
{
    tw_tensor *tensor = tw_tensor_from(TW_INT32, TW_SCALAR, &value);
    tw_output made = constant(graph, tensor, after, count);
    tw_tensor_release(tensor);
    return made;
}

/* Of a handle: like the variable's value. */
static tw_output zeros_like(tw_graph *graph, tw_output x)
{
    tw_attr type = tw_attr_type("dtype", x.node->resource_dtype);
    if (tw_output_dtype(x) == TW_RESOURCE)
        x = tw_node_output(tw_add_node(graph, "ReadVariableOp", NULL, &x, 1, &type, 1), 0);
    return x.node ? add(graph, "ZerosLike", &x, 1) : x;
}

/* ---- what it was in a round ------------------------------------------------------------------------------------- */

static bool is_in_loop(const twi_back *b, const tw_node *node)
{
    return node->id < b->s->num_nodes ? b->s->frames.of[node->id] == b->frame : node->block == b->forth;
}

/* A value from outside of all loops, in this one. */
static tw_output lead_in(twi_back *b, tw_output x)
{
    tw_output outside = b->outer ? lead_in(b->outer, x) : x;
    return outside.node ? twi_loop_enter(b->s->graph, b->forth, outside, true) : outside;
}

static tw_output cond_of(const twi_back *b)
{
    return (tw_output){(tw_node *)b->facts->cond, 0};
}

static bool decides_rounds(const twi_back *b, tw_output predicate)
{
    tw_output root = twi_branches_root(predicate), cond = twi_branches_root(cond_of(b));
    return root.node == cond.node && root.index == cond.index;
}

/* The conditions in the loop that x has a value under, as control inputs in the gradients' loop. *is_in_body: x is not
 * there in the last, broken round. How many; -1: the graph has failed. */
static int list_conditions(twi_back *b, tw_output x, tw_output after[TWI_MOST_CONDITIONS], bool *is_in_body)
{
    tw_graph *graph = b->s->graph;
    twi_condition_side sides[TWI_MOST_CONDITIONS];
    int found = 0, count = twi_branches_of(graph, x, sides);
    *is_in_body = false;
    for (int i = 0; i < count; i++) {
        bool is_round = decides_rounds(b, sides[i].predicate);
        *is_in_body = *is_in_body || is_round;
        if (is_round || !is_in_loop(b, sides[i].predicate.node))
            continue;
        tw_output predicate = twi_block_pass(graph, b->loop->body, sides[i].predicate);
        tw_output both[] = {predicate, predicate};
        tw_output side = predicate.node ? raw(graph, b->loop->body, "Switch", both, 2) : predicate;
        side.index = sides[i].value;
        tw_output pivot = side.node ? raw(graph, b->loop->body, "Identity", &side, 1) : side;
        after[found++] = (tw_output){pivot.node, -1};
    }
    return count < 0 || graph->error.status != TW_OK ? -1 : found;
}

/* Pushes x in the loop; the stack. */
static tw_output push(twi_back *b, tw_output x, bool is_in_body)
{
    tw_graph *graph = b->s->graph;
    tw_output value = x, switched[] = {x, cond_of(b)};
    if (!is_in_body) {
        value = raw(graph, b->forth, "Switch", switched, 2);
        value.index = 1;
    }
    twi_enter_block(graph, b->s->block, false);
    tw_output size = number(graph, -1, NULL, 0);
    tw_attr attrs[] = {tw_attr_type("elem_type", tw_output_dtype(x)), tw_attr_string("stack_name", x.node->name)};
    tw_output stack = tw_node_output(tw_add_node(graph, "StackV2", NULL, &size, 1, attrs, 2), 0);
    tw_leave_branch(graph);
    tw_output handle = stack.node ? lead_in(b, stack) : stack;
    tw_output pushed = handle.node && value.node ? raw(graph, b->forth, "StackPushV2", (tw_output[]){handle, value}, 2)
                                                 : (tw_output){0};
    if (pushed.node && !twi_push(&b->pushes, ((tw_output){pushed.node, -1})))
        fail_memory(b);
    return stack;
}

static tw_output pop(twi_back *b, tw_output x)
{
    tw_graph *graph = b->s->graph;
    tw_output inputs[1 + TWI_MOST_CONDITIONS];
    bool is_in_body;
    int count = list_conditions(b, x, inputs + 1, &is_in_body);
    if (count < 0)
        return (tw_output){0};
    twi_enter_host(graph, x);
    inputs[0] = push(b, x, is_in_body);
    twi_enter_block(graph, b->loop->body, false);
    tw_attr type = tw_attr_type("elem_type", tw_output_dtype(x));
    tw_node *node = inputs[0].node ? tw_add_node(graph, "StackPopV2", NULL, inputs, 1 + count, &type, 1) : NULL;
    tw_leave_branch(graph);
    twi_leave_host(graph);
    if (node)
        node->output_shapes[0] = tw_output_shape(x); /* which the op cannot know */
    return tw_node_output(node, 0);
}

/* What passes x on: it has a value where x has one, if not elsewhere too. */
static bool passes_on(const twi_back *b, tw_output x)
{
    bool goes_on = twi_op_is(x.node->op, TWI_SWITCH) && x.index == 1 && decides_rounds(b, x.node->inputs[1]);
    return goes_on || twi_op_is(x.node->op, TWI_PASSES);
}

/* Where a value of the loop comes from: so each is kept once, and conditions are told apart by it. A variable that
 * comes round as it was is what it began with. */
static tw_output origin_of(const twi_back *b, tw_output x)
{
    while (is_in_loop(b, x.node)) {
        tw_output next = x.node->backward.node ? x.node->backward.node->inputs[0] : x;
        while (is_in_loop(b, next.node) && passes_on(b, next))
            next = next.node->inputs[twi_op_is(next.node->op, TWI_PASSES) ? next.index : 0];
        bool stays = x.node->backward.node && next.node == x.node && next.index == x.index;
        if (!twi_op_is(x.node->op, TWI_ENTER) && !passes_on(b, x) && !stays)
            break;
        x = x.node->inputs[twi_op_is(x.node->op, TWI_PASSES) ? x.index : 0];
    }
    return x;
}

/* A constant. */
static tw_output again(twi_back *b, tw_tensor *value)
{
    twi_enter_block(b->s->graph, b->loop->body, false);
    tw_output made = constant(b->s->graph, value, NULL, 0);
    tw_leave_branch(b->s->graph);
    return made;
}

static bool revisit(void *user, tw_output *x)
{
    twi_back *b = user;
    tw_graph *graph = b->s->graph;
    twi_block *body = b->loop->body;
    if (!is_in_loop(b, x->node))
        return false;
    tw_output origin = origin_of(b, *x);
    bool is_it = origin.node == x->node && origin.index == x->index;
    tw_tensor *known = twi_constant_value(origin);
    if (!is_it && !is_in_loop(b, origin.node)) {
        *x = origin;
        return false;
    }
    if (!is_it)
        *x = twi_block_pass(graph, body, origin);
    else
        *x = known ? again(b, known) : pop(b, origin);
    return true;
}

/* ---- rounds ----------------------------------------------------------------------------------------------------- */

/* The loop counts its rounds; what the counter is behind them is there before it is known how it goes round. */
static tw_output begin_counting(twi_back *b)
{
    tw_graph *graph = b->s->graph;
    tw_enter_colocation(graph, cond_of(b));
    twi_enter_block(graph, b->s->block, false);
    tw_output zero = number(graph, 0, NULL, 0);
    tw_leave_branch(graph);
    tw_leave_colocation(graph);
    tw_output outside = b->outer && zero.node ? lead_in(b->outer, zero) : zero;
    if (!outside.node)
        return outside;
    b->rounds = twi_loop_variable(graph, b->forth, outside);
    tw_output merge = twi_loop_value(b->forth, b->rounds), switched[] = {merge, cond_of(b)};
    tw_output left = merge.node ? raw(graph, b->forth, "Switch", switched, 2) : merge;
    return left.node ? raw(graph, b->forth->outer, "Exit", &left, 1) : left;
}

/* Each round comes after what was pushed in it, whichever way its conditions went. */
static void end_counting(twi_back *b)
{
    tw_graph *graph = b->s->graph;
    tw_node *merge = twi_loop_value(b->forth, b->rounds).node;
    tw_output one = {0}, terms[3] = {{0}}, switched[] = {{merge, 0}, cond_of(b)};
    int count = 2;
    tw_enter_colocation(graph, cond_of(b));
    twi_enter_block(graph, b->forth, true);
    tw_output side = {add(graph, "Switch", switched, 2).node, 1};
    if (side.node)
        terms[0] = add(graph, "Identity", &side, 1);
    if (terms[0].node)
        one = number(graph, 1, &(tw_output){terms[0].node, -1}, 1);
    if (b->pushes.count)
        terms[count++] =
            (tw_output){tw_add_node(graph, "ControlTrigger", NULL, b->pushes.items, b->pushes.count, NULL, 0), -1};
    terms[1] = one;
    tw_output next = one.node ? add(graph, "AddV2", terms, count) : one;
    if (next.node)
        merge->backward = add(graph, "NextIteration", &next, 1);
    tw_leave_branch(graph);
    tw_leave_colocation(graph);
}

static void begin_going_back(twi_back *b, tw_output rounds)
{
    tw_graph *graph = b->s->graph;
    b->left = twi_loop_variable(graph, b->loop, rounds);
    tw_enter_colocation(graph, cond_of(b));
    twi_enter_block(graph, b->loop, false);
    tw_output both[] = {twi_loop_value(b->loop, b->left), number(graph, 0, NULL, 0)};
    tw_output goes_on = add(graph, "Greater", both, 2);
    tw_leave_branch(graph);
    tw_leave_colocation(graph);
    if (goes_on.node)
        twi_loop_test(graph, b->loop, goes_on);
    if (b->loop->body) {
        b->loop->body->revisit = revisit;
        b->loop->body->revisitor = b;
    }
}

/* ---- what changes, and what does not ---------------------------------------------------------------------------- */

/* A variable of the loop whose gradient goes round. */
typedef struct turn {
    const tw_node *merge;
    int variable;
} turn;

typedef TWI_ARRAY(turn) turns;

/* Of which an Exit gives the last value; NULL: of none. */
static const tw_node *merge_of(const tw_node *exit)
{
    const tw_node *from = exit->inputs[0].node, *merge = twi_op_is(from->op, TWI_SWITCH) ? from->inputs[0].node : NULL;
    return merge && merge->backward.node ? merge : NULL;
}

static const tw_node *exit_of(const twi_back *b, const tw_node *merge)
{
    for (int i = 0; i < b->facts->exits.count; i++)
        if (merge_of(b->facts->exits.items[i]) == merge)
            return b->facts->exits.items[i];
    return NULL;
}

/* Of a list only where one has come to what the loop gave, or where it is the same in each round: that a list leads to
 * y says little, for what TensorFlow 2 keeps for its own gradients leaves its loops and branches together with the
 * rest. */
static bool has_gradient(const twi_back *b, const tw_node *merge, const tw_node *exit)
{
    const twi_visited *v = &b->s->nodes[merge->id];
    bool is_list = merge->output_types[0] == TW_VARIANT, asked = exit && b->s->nodes[exit->id].arriving;
    if (!v->leads_to_y || !v->comes_from_x)
        return false;
    if (is_list)
        return asked || !is_in_loop(b, origin_of(b, (tw_output){(tw_node *)merge, 0}).node);
    return twi_has_gradient(merge->output_types[0]);
}

static bool is_asked(const twi_back *b)
{
    bool asked = false;
    for (int i = 0; i < b->facts->exits.count && !asked; i++)
        asked = b->s->nodes[b->facts->exits.items[i]->id].arriving;
    return asked;
}

/* Each begins with what has come to what the loop gave. */
static tw_status begin_turns(twi_back *b, turns *all)
{
    tw_graph *graph = b->s->graph;
    for (int i = 0; i < b->facts->nodes.count && graph->error.status == TW_OK; i++) {
        const tw_node *merge = b->facts->nodes.items[i];
        const tw_node *exit = merge->backward.node ? exit_of(b, merge) : NULL;
        if (!merge->backward.node || !has_gradient(b, merge, exit))
            continue;
        tw_output last = {(tw_node *)exit, 0}, gradient = exit ? twi_sweep_sum(b->s, last) : (tw_output){0};
        tw_enter_colocation(graph, (tw_output){(tw_node *)merge, -1});
        if (!gradient.node)
            gradient = zeros_like(graph, exit ? last : merge->inputs[0].node->inputs[0]);
        tw_leave_colocation(graph);
        if (!gradient.node)
            break;
        turn one = {merge, twi_loop_variable(graph, b->loop, gradient)};
        tw_output next = merge->backward.node->inputs[0];
        if (!twi_push(all, one) || !twi_sweep_arrive(b->s, next, twi_loop_value(b->loop, one.variable)))
            return fail_memory(b);
    }
    return graph->error.status;
}

static void end_turns(twi_back *b, const turns *all)
{
    tw_graph *graph = b->s->graph;
    for (int i = 0; i < all->count && graph->error.status == TW_OK; i++) {
        const turn *one = &all->items[i];
        tw_output gradient = twi_sweep_sum(b->s, (tw_output){(tw_node *)one->merge, 0});
        if (!gradient.node)
            gradient = zeros_like(graph, twi_loop_value(b->loop, one->variable));
        if (gradient.node)
            twi_loop_next(graph, b->loop, one->variable, gradient);
    }
}

/* Adds what has come to a value that does not change to what the other rounds have found. */
static void add_up(twi_back *b, const tw_node *enter)
{
    tw_graph *graph = b->s->graph;
    tw_output from = enter->inputs[0], gradient = twi_sweep_sum(b->s, (tw_output){(tw_node *)enter, 0});
    if (!gradient.node || !b->s->nodes[from.node->id].comes_from_x)
        return;
    twi_enter_block(graph, b->loop->outer, false);
    tw_enter_colocation(graph, from);
    tw_output zeros = zeros_like(graph, from);
    tw_leave_colocation(graph);
    tw_leave_branch(graph);
    if (!zeros.node)
        return;
    summed sum = {from, twi_loop_variable(graph, b->loop, zeros)};
    tw_output terms[] = {twi_loop_value(b->loop, sum.variable), gradient};
    tw_enter_colocation(graph, (tw_output){(tw_node *)enter, -1});
    tw_output next = terms[0].node ? add(graph, "AddN", terms, 2) : terms[0];
    tw_leave_colocation(graph);
    if (next.node)
        twi_loop_next(graph, b->loop, sum.variable, next);
    if (!twi_push(&b->sums, sum))
        fail_memory(b);
}

bool twi_sweep_round(twi_sweep *s, tw_node *node)
{
    twi_back *b = s->back;
    if (!b)
        return false;
    if (twi_op_is(node->op, TWI_ENTER)) {
        if (twi_attr_bool(&node->attrs, "is_constant", false))
            add_up(b, node);
        return true;
    }
    if (twi_op_is(node->op, TWI_SWITCH) && decides_rounds(b, node->inputs[1])) { /* the way into the body */
        tw_output gradient = twi_sweep_sum(s, (tw_output){node, 1});
        if (gradient.node && !twi_sweep_arrive(s, node->inputs[0], gradient))
            fail_memory(b);
        return true;
    }
    if (node->backward.node && node->output_types[0] == TW_VARIANT && !has_gradient(b, node, exit_of(b, node)))
        twi_graph_fail(s->graph, TW_UNIMPLEMENTED,
                       "gradients of the list '%s', which a loop changes, uses and does not give, are not supported",
                       node->name);
    return node->backward.node || twi_op_is(node->op, TWI_NEXT | TWI_LOOP_COND);
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

static void hand_out(twi_back *b, tw_output to, int variable)
{
    twi_sweep *s = b->s;
    tw_output gradient = twi_loop_result(s->graph, b->loop, variable);
    if (gradient.node && s->nodes[to.node->id].comes_from_x && !twi_sweep_arrive(s, to, gradient))
        fail_memory(b);
}

/* Of a loop's Enters all say the same; 1 in those that are built here: what rounds push and pop has an order. */
static int64_t rounds_at_once(const twi_back *b)
{
    const tw_node *merge = b->facts->nodes.items[0];
    for (int i = 0; i < b->facts->nodes.count && !merge->backward.node; i++)
        merge = b->facts->nodes.items[i];
    return merge->backward.node ? twi_attr_int(&merge->inputs[0].node->attrs, "parallel_iterations", 1) : 1;
}

static tw_status go_back(twi_back *b, turns *all)
{
    twi_sweep *s = b->s;
    tw_graph *graph = s->graph;
    tw_output rounds = begin_counting(b);
    if (rounds.node)
        begin_going_back(b, rounds);
    if (graph->error.status != TW_OK || begin_turns(b, all) != TW_OK)
        return graph->error.status;
    s->back = b;
    twi_enter_block(graph, b->loop->body, false);
    twi_sweep_nodes(s, b->frame);
    end_turns(b, all);
    tw_enter_colocation(graph, cond_of(b));
    tw_output left[] = {twi_loop_value(b->loop, b->left), number(graph, 1, NULL, 0)};
    twi_loop_next(graph, b->loop, b->left, add(graph, "Sub", left, 2));
    tw_leave_colocation(graph);
    tw_leave_branch(graph);
    s->back = b->outer;
    if (graph->error.status == TW_OK)
        end_counting(b);
    for (int i = 0; i < all->count && graph->error.status == TW_OK; i++)
        hand_out(b, all->items[i].merge->inputs[0].node->inputs[0], all->items[i].variable);
    for (int i = 0; i < b->sums.count && graph->error.status == TW_OK; i++)
        hand_out(b, b->sums.items[i].from, b->sums.items[i].variable);
    return graph->error.status;
}

/* Graphs that are read may have anything in place of a loop. */
static tw_status check_loop(const twi_back *b)
{
    tw_graph *graph = b->s->graph;
    const char *wrong = b->facts->cond ? NULL : b->facts->name;
    for (int i = 0; i < b->facts->nodes.count && !wrong; i++) {
        const tw_node *merge = b->facts->nodes.items[i], *back = merge->backward.node;
        if (back &&
            !(twi_op_is(merge->inputs[0].node->op, TWI_ENTER) && twi_op_is(back->op, TWI_NEXT) && is_in_loop(b, back)))
            wrong = merge->name;
    }
    for (int i = 0; i < b->facts->exits.count && !wrong; i++) {
        const tw_node *exit = b->facts->exits.items[i];
        if (b->s->nodes[exit->id].arriving && !merge_of(exit))
            wrong = exit->name;
    }
    if (!wrong)
        return TW_OK;
    return twi_graph_fail(graph, TW_UNIMPLEMENTED,
                          "gradients of the loop '%s': '%s' is not what TensorFlow's loops are made of", b->facts->name,
                          wrong);
}

tw_status twi_sweep_loop(twi_sweep *s, const tw_node *exit)
{
    tw_graph *graph = s->graph;
    int frame = s->frames.of[exit->inputs[0].node->id];
    twi_back b = {.s = s, .outer = s->back, .frame = frame, .facts = &s->frames.items.items[frame > 0 ? frame : 0]};
    turns all = {0};
    if (frame <= 0 || b.facts->exits.items[0] != exit || !is_asked(&b))
        return graph->error.status;
    if (check_loop(&b) != TW_OK)
        return graph->error.status;
    tw_enter_name_scope(graph, "%s_grad", exit->name);
    const char *name = tw_name_scope(graph);
    b.forth = twi_loop_begin(graph, s->back ? s->back->forth : s->block, b.facts->name);
    b.loop = twi_loop_begin(graph, twi_scope_block(graph), name);
    if (b.forth)
        b.forth->at_once = rounds_at_once(&b);
    tw_status status = b.forth && b.loop ? go_back(&b, &all) : graph->error.status;
    tw_leave_name_scope(graph);
    if (b.loop && b.loop->body)
        b.loop->body->revisit = NULL;
    twi_array_free(&b.pushes);
    twi_array_free(&b.sums);
    twi_array_free(&all);
    return status;
}
