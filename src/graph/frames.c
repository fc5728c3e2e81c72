/* frames.c - see frames.h. */
#include "graph/frames.h"

#include <stdint.h>

void twi_frames_free(twi_frames *frames)
{
    for (int i = 0; i < frames->items.count; i++) {
        twi_array_free(&frames->items.items[i].nodes);
        twi_array_free(&frames->items.items[i].exits);
        twi_array_free(&frames->items.items[i].frames);
    }
    twi_array_free(&frames->items);
    twi_map_free(&frames->by_name);
    twi_arena_free(&frames->arena);
    twi_free(frames->of);
    twi_free(frames->unchanging);
    twi_free(frames->gated);
    twi_free(frames->sides);
    twi_free(frames->puts);
}

bool twi_frame_is_within(const twi_frames *frames, int inner, int frame)
{
    while (inner > frame) /* a frame has a higher number than its parent */
        inner = frames->items.items[inner].parent;
    return inner == frame;
}

int twi_frame_number(twi_frames *frames, int parent, const char *name)
{
    char *key = twi_arena_printf(&frames->arena, "%d/%s", parent, name);
    uintptr_t found = key ? (uintptr_t)twi_map_get(&frames->by_name, key) : 0;
    if (found)
        return (int)found - 1;
    twi_frame made = {.name = name, .parent = parent, .depth = frames->items.items[parent].depth + 1};
    bool fits = key && twi_push(&frames->items, made) &&
                twi_push(&frames->items.items[parent].frames, frames->items.count - 1) &&
                twi_map_put(&frames->by_name, key, (void *)(uintptr_t)frames->items.count);
    return fits ? frames->items.count - 1 : -1;
}

/* Runs in each round of the loop that it is in: a node that waits for it waits for nothing else. The Switches of a
 * condition in the loop are no such, nor is what leaves the loop. */
static bool is_pivot(const tw_node *node)
{
    tw_output from = twi_op_is(node->op, TWI_PASSES) && node->num_inputs == 1 ? node->inputs[0] : (tw_output){0};
    bool goes_on = from.node && from.index == 1 && twi_op_is(from.node->op, TWI_SWITCH) && from.node->num_inputs == 2;
    return node->backward.node || (goes_on && twi_op_is(from.node->inputs[1].node->op, TWI_LOOP_COND));
}

/* Whether what an edge brings is a value, not a variable itself, or its memory. */
static bool is_value(tw_output output)
{
    while (output.node->num_inputs > output.index && !twi_output_is_reference(output) &&
           ((twi_op_is(output.node->op, TWI_PASSES) && !output.node->op->planned_as) ||
            twi_op_is(output.node->op, TWI_ENTER)))
        output = output.node->inputs[output.index];
    return tw_output_dtype(output) != TW_RESOURCE && !twi_output_is_reference(output);
}

/* Waits for a pivot of the body, or takes something that does. */
static bool is_gated(const twi_frames *frames, const tw_node *node)
{
    bool gated = false;
    for (int i = 0; i < node->num_control_inputs; i++) /* an Enter's come from outside */
        gated = gated || (!node->control_inputs[i]->backward.node &&
                          frames->of[node->control_inputs[i]->id] == frames->of[node->id]);
    for (int i = 0; i < node->num_inputs; i++)
        gated = gated || (frames->of[node->inputs[i].node->id] == frames->of[node->id] &&
                          frames->gated[node->inputs[i].node->id]);
    return gated;
}

static bool is_unchanging(const twi_frames *frames, const tw_node *node)
{
    bool may = frames->of[node->id] > 0 && !twi_op_is(node->op, TWI_STATEFUL) && node->num_outputs > 0 &&
               is_value((tw_output){(tw_node *)node, 0});
    if (twi_op_is(node->op, TWI_ENTER))
        return may && twi_attr_bool(&node->attrs, "is_constant", false);
    may = may && !twi_op_is(node->op, TWI_SWITCH | TWI_MERGE | TWI_EXIT | TWI_NEXT | TWI_LOOP_COND) &&
          !node->op->roles && (node->num_inputs || twi_op_is(node->op, TWI_CONSTANT));
    for (int i = 0; i < node->num_inputs && may; i++)
        may = frames->unchanging[node->inputs[i].node->id];
    for (int i = 0; i < node->num_control_inputs && may; i++)
        may = is_pivot(node->control_inputs[i]);
    return may;
}

/* Whether a Switch looks at whether there is a round. */
static bool decides_by_round(const tw_node *node)
{
    tw_output by = node->inputs[1];
    while (twi_op_is(by.node->op, TWI_PASSES) && !twi_op_is(by.node->op, TWI_LOOP_COND) &&
           by.index < by.node->num_inputs)
        by = by.node->inputs[by.index];
    return twi_op_is(by.node->op, TWI_LOOP_COND);
}

/* By its node, and as the output of a Switch. */
static uint8_t sides_of_output(const twi_frames *frames, tw_output output)
{
    uint8_t sides = frames->sides[output.node->id];
    bool decides = output.index >= 0 && twi_op_is(output.node->op, TWI_SWITCH) && output.node->num_inputs == 2 &&
                   decides_by_round(output.node);
    return decides ? sides | (uint8_t)(1 << (output.index == 1)) : sides;
}

/* A Merge waits for what all of its inputs wait for, and a ControlTrigger for nothing. */
static uint8_t sides_of(const twi_frames *frames, const tw_node *node)
{
    bool merges = twi_op_is(node->op, TWI_MERGE);
    uint8_t sides = merges && node->num_inputs ? 3 : 0;
    if (frames->of[node->id] <= 0 || twi_op_is(node->op, TWI_ENTER | TWI_EXIT) || node->backward.node ||
        (merges && !node->num_inputs))
        return 0;
    for (int i = 0; i < node->num_inputs; i++) {
        uint8_t one = sides_of_output(frames, node->inputs[i]);
        sides = merges ? sides & one : sides | one;
    }
    for (int i = 0; i < node->num_control_inputs; i++)
        sides |= frames->sides[node->control_inputs[i]->id];
    return sides;
}

bool twi_exit_is_dead(const twi_frames *frames, const tw_node *exit)
{
    return sides_of_output(frames, exit->inputs[0]) == 3;
}

/* Of what a node takes; a Merge's way back counts no more than that it is there. */
static int frame_of_inputs(const twi_frames *frames, const tw_node *node)
{
    int frame = -2;
    for (int i = 0; i < node->num_inputs + node->num_control_inputs; i++) {
        const tw_node *from = i < node->num_inputs ? node->inputs[i].node : node->control_inputs[i - node->num_inputs];
        int one = frames->of[from->id];
        frame = frame == -2 || frame == one ? one : -1;
    }
    return frame == -2 ? 0 : frame;
}

static bool place(twi_frames *frames, const tw_node *node)
{
    int frame = frame_of_inputs(frames, node);
    if (frame >= 0 && twi_op_is(node->op, TWI_ENTER)) {
        frame = twi_frame_number(frames, frame, twi_attr_string(&node->attrs, "frame_name", ""));
        if (frame < 0)
            return false;
    } else if (frame == 0 && twi_op_is(node->op, TWI_EXIT)) {
        frame = -1;
    } else if (frame >= 0 && twi_op_is(node->op, TWI_EXIT)) {
        if (!twi_push(&frames->items.items[frame].exits, node))
            return false;
        frame = frames->items.items[frame].parent;
    } else if (frame >= 0 && twi_op_is(node->op, TWI_LOOP_COND)) {
        twi_frame *f = &frames->items.items[frame];
        *(f->cond ? &f->second_cond : &f->cond) = node;
    }
    frames->of[node->id] = frame;
    frames->unchanging[node->id] = is_unchanging(frames, node);
    frames->gated[node->id] = frames->unchanging[node->id] && is_gated(frames, node);
    frames->sides[node->id] = sides_of(frames, node);
    return frame < 0 || twi_push(&frames->items.items[frame].nodes, node);
}

const tw_node *twi_made_by(const tw_node *handle)
{
    while (handle->op->makes == TWI_MAKES_NOTHING && handle->num_inputs)
        handle = handle->inputs[0].node;
    return handle;
}

tw_status twi_frames_find(const tw_graph *graph, twi_frames *frames, tw_error *error)
{
    bool fits = twi_push(&frames->items, ((twi_frame){.name = "", .parent = -1}));
    frames->of = twi_alloc_array((size_t)graph->nodes.count + 1, sizeof *frames->of);
    frames->unchanging = twi_alloc_array((size_t)graph->nodes.count + 1, sizeof *frames->unchanging);
    frames->gated = twi_alloc_array((size_t)graph->nodes.count + 1, sizeof *frames->gated);
    frames->sides = twi_alloc_array((size_t)graph->nodes.count + 1, sizeof *frames->sides);
    frames->puts = twi_alloc_array((size_t)graph->nodes.count + 1, sizeof *frames->puts);
    fits = fits && frames->of && frames->unchanging && frames->gated && frames->sides && frames->puts;
    for (int id = 0; id < graph->nodes.count && fits; id++) {
        const tw_node *node = graph->nodes.items[id];
        fits = place(frames, node);
        if (twi_op_is(node->op, TWI_PUTS))
            frames->puts[twi_made_by(node->inputs[0].node)->id]++;
    }
    return fits ? TW_OK : twi_fail_memory(error, "looking at loops");
}
