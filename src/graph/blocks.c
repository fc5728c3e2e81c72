/* blocks.c - building under a condition or in a loop: what a node takes from outside of its block is led into it.
 *
 * Into a branch it goes through a Switch. That makes the branch (TensorFlow 1 has no other word for it), and is how
 * gradients find their way out of it: what flows back to a value that only one side uses is zero where the other side
 * was taken. Into a loop it goes through an Enter, as a value that does not change. Each value is led into a block
 * once.
 *
 * Handles of variables go through no Switch, and neither does what does not change in a loop on its way into the loop's
 * body: a node that takes nothing else comes after the block's pivot. */
#include "graph/blocks.h"

#include "base/hash.h"
#include "graph/graph.h"

#include <stdio.h>

void twi_blocks_free(tw_graph *graph)
{
    for (twi_block *b = graph->latest_block; b; b = b->before) {
        twi_free(b->passages.slots);
        twi_array_free(&b->turns);
    }
    twi_map_free(&graph->branches_by_predicate);
}

static tw_status fail_memory(tw_graph *graph)
{
    return twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while opening a branch or a loop");
}

static twi_block *make(tw_graph *graph, twi_block block)
{
    twi_block *made = twi_arena_copy(&graph->arena, &block, sizeof block);
    if (!made) {
        fail_memory(graph);
        return NULL;
    }
    made->before = graph->latest_block;
    return graph->latest_block = made;
}

twi_block *twi_branch_find(tw_graph *graph, twi_block *outer, tw_output predicate, bool value)
{
    if (tw_output_dtype(predicate) != TW_BOOL) {
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "a branch is taken by a bool, and '%s' is %s",
                       predicate.node ? predicate.node->name : "",
                       predicate.node ? tw_dtype_name(tw_output_dtype(predicate)) : "a dead output");
        return NULL;
    }
    char key[64];
    snprintf(key, sizeof key, "%d:%d=%d in %p", predicate.node->id, predicate.index, value, (void *)outer);
    twi_block *b = twi_map_get(&graph->branches_by_predicate, key);
    if (b)
        return b;
    const char *kept = twi_arena_strdup(&graph->arena, key);
    b = make(graph, (twi_block){.outer = outer, .predicate = predicate, .value = value});
    if (b && (!kept || !twi_map_put(&graph->branches_by_predicate, kept, b)))
        fail_memory(graph);
    return graph->error.status == TW_OK ? b : NULL;
}

twi_block *twi_loop_begin(tw_graph *graph, twi_block *outer, const char *frame)
{
    const char *kept = twi_arena_strdup(&graph->arena, frame);
    if (!kept) {
        fail_memory(graph);
        return NULL;
    }
    return make(graph, (twi_block){.outer = outer, .frame = kept, .at_once = 1, .counter = -1});
}

static bool is_within(const twi_block *inner, const twi_block *block)
{
    while (inner && inner != block)
        inner = inner->outer;
    return inner == block;
}

/* What a loop computes in its rounds is nothing outside of it. */
static bool is_seen_from(tw_graph *graph, tw_output x, const twi_block *block)
{
    for (const twi_block *b = x.node->block; b && b != block; b = b->outer)
        if (b->frame) {
            twi_graph_fail(
                graph, TW_INVALID_ARGUMENT,
                "'%s' is computed in the rounds of the loop '%s', and cannot be taken from outside: behind the "
                "loop's block there are the values that it gives",
                x.node->name, b->frame);
            return false;
        }
    return true;
}

/* Where the value's passage lies, or shall lie. */
static twi_passage *find_passage(const twi_passages *passages, tw_output outside)
{
    twi_passage *slots = passages->slots;
    size_t at = twi_hash_mix((uintptr_t)outside.node, (uint64_t)outside.index) & (passages->capacity - 1);
    while (slots[at].outside.node &&
           (slots[at].outside.node != outside.node || slots[at].outside.index != outside.index))
        at = (at + 1) & (passages->capacity - 1);
    return &slots[at];
}

static bool has_room(twi_passages *passages)
{
    if (2 * (passages->count + 1) <= passages->capacity)
        return true;
    twi_passages larger = {.capacity = passages->capacity ? 2 * passages->capacity : 8, .count = passages->count};
    larger.slots = twi_alloc_array(larger.capacity, sizeof *larger.slots);
    for (size_t i = 0; i < passages->capacity && larger.slots; i++)
        if (passages->slots[i].outside.node)
            *find_passage(&larger, passages->slots[i].outside) = passages->slots[i];
    if (!larger.slots)
        return false;
    twi_free(passages->slots);
    *passages = larger;
    return true;
}

static tw_output add_to(tw_graph *graph, twi_block *block, tw_output outside, tw_output inside)
{
    if (!inside.node)
        return inside;
    if (!has_room(&block->passages)) {
        fail_memory(graph);
        return inside;
    }
    *find_passage(&block->passages, outside) = (twi_passage){outside, inside};
    block->passages.count++;
    return inside;
}

tw_output twi_loop_enter(tw_graph *graph, twi_block *loop, tw_output x, bool is_constant)
{
    const char *op = twi_output_is_reference(x) ? "RefEnter" : "Enter";
    tw_attr attrs[] = {tw_attr_string("frame_name", loop->frame), tw_attr_bool("is_constant", is_constant),
                       tw_attr_int("parallel_iterations", loop->at_once)};
    return tw_node_output(twi_add_in_block(graph, loop, op, &x, 1, attrs, 3), 0);
}

/* Whether a Switch leads x into the branch: not variables, which stay where they are, and not what is the same in each
 * round. */
static bool is_switched(const twi_block *branch, tw_output before, tw_output x)
{
    bool same = branch->outer && branch->outer->frame && !is_within(before.node->block, branch->outer);
    return !same && tw_output_dtype(x) != TW_RESOURCE && !twi_output_is_reference(x);
}

tw_output twi_block_pass(tw_graph *graph, twi_block *block, tw_output x)
{
    if (!block || is_within(x.node->block, block))
        return is_seen_from(graph, x, block) ? x : (tw_output){0};
    const twi_passage *known = block->passages.count ? find_passage(&block->passages, x) : NULL;
    if (known && known->outside.node)
        return known->inside;
    tw_output before = x;
    if (block->revisit && block->revisit(block->revisitor, &before))
        return add_to(graph, block, x, before);
    tw_output outside = twi_block_pass(graph, block->outer, before);
    if (!outside.node || graph->error.status != TW_OK)
        return (tw_output){0};
    if (block->frame)
        return add_to(graph, block, x, twi_loop_enter(graph, block, outside, true));
    if (!is_switched(block, before, outside))
        return outside;
    tw_output inputs[] = {outside, twi_block_pass(graph, block->outer, block->predicate)};
    tw_node *made = twi_add_in_block(graph, block, "Switch", inputs, 2, NULL, 0);
    return add_to(graph, block, x, tw_node_output(made, block->value));
}

/* Of a loop it is the first of its Merges. */
static tw_node *pivot_of(tw_graph *graph, twi_block *block)
{
    tw_output predicate = block->pivot ? (tw_output){0} : twi_block_pass(graph, block, block->predicate);
    if (predicate.node)
        block->pivot = twi_add_in_block(graph, block, "Identity", &predicate, 1, NULL, 0);
    return block->pivot;
}

bool twi_block_inputs(tw_graph *graph, twi_block *block, const tw_output *inputs, int num_inputs, tw_output *inside,
                      tw_node **pivot)
{
    bool any = false;
    for (int i = 0; i < num_inputs; i++) {
        tw_output x = inputs[i]; /* what is wrong is said of the node */
        bool is_value = x.node && x.index >= 0 && x.index < x.node->num_outputs;
        if (is_value)
            x = twi_block_pass(graph, block, x);
        if (graph->error.status != TW_OK)
            return false;
        any = any || (is_value && is_within(x.node->block, block));
        if (inside)
            inside[i] = x;
    }
    *pivot = any || !block ? NULL : pivot_of(graph, block);
    return graph->error.status == TW_OK;
}

tw_node *twi_add_in_block(tw_graph *graph, twi_block *block, const char *op, const tw_output *inputs, int num_inputs,
                          const tw_attr *attrs, int num_attrs)
{
    twi_enter_block(graph, block, true);
    tw_enter_colocation(graph, inputs[0]);
    tw_node *node = tw_add_node(graph, op, NULL, inputs, num_inputs, attrs, num_attrs);
    tw_leave_colocation(graph);
    tw_leave_branch(graph);
    return node;
}
