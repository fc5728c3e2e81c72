/* delay.c - see delay.h. */
#include "run/delay.h"

#include "run/trace.h"

#include <string.h>

static bool takes_batch_of(const twi_node *node, int tower)
{
    return twi_attr_int(&node->attrs, "tower", -1) == tower;
}

/* Whether the delay could lie at this step. */
static bool is_place(const twi_plan *plan, twi_step_id id, const tw_delay *delay)
{
    const twi_node *node = plan->lists[id.device].nodes[id.position];
    tw_time_kind kind = twi_span_of(plan, id)->kind;
    if (delay->kind == TW_TIME_INPUT)
        return kind == TW_TIME_INPUT && takes_batch_of(node, delay->tower);
    if (strcmp(plan->lists[id.device].device->text, delay->device) != 0)
        return false;
    if (delay->kind == TW_TIME_LAUNCH)
        return twi_is_tower_work(plan, id);
    return kind == delay->kind && !twi_is_update(node);
}

/* The last step that the delay could lie at; device -1: there is none. */
static twi_step_id find_place(const twi_plan *plan, const tw_delay *delay)
{
    twi_step_id place = {-1, -1};
    for (int d = 0; d < plan->num_lists; d++)
        for (int i = 0; i < plan->lists[d].count; i++)
            if (is_place(plan, (twi_step_id){d, i}, delay))
                place = (twi_step_id){d, i};
    return place;
}

static tw_status make_delays(twi_plan *plan, tw_error *error)
{
    twi_step_delay **delays = twi_arena_alloc(&plan->arena, sizeof *delays * (size_t)plan->num_lists);
    bool fits = delays != NULL;
    for (int d = 0; d < plan->num_lists && fits; d++)
        fits = (delays[d] = twi_arena_alloc(&plan->arena, sizeof **delays * (size_t)plan->lists[d].count)) != NULL;
    if (fits)
        plan->delays = delays;
    return fits ? TW_OK : twi_fail_memory(error, "delaying a step");
}

tw_status twi_delay(twi_plan *plan, const tw_delay *delay, tw_error *error)
{
    twi_step_id place = find_place(plan, delay);
    if (place.device < 0)
        return twi_fail(error, TW_NOT_FOUND, "no step of kind '%s' for tower %d, on %s: nothing there can be delayed",
                        tw_time_kind_name(delay->kind), delay->tower, delay->device);
    tw_status status = plan->delays ? TW_OK : make_delays(plan, error);
    if (status != TW_OK)
        return status;
    twi_step_delay *at = &plan->delays[place.device][place.position];
    *(delay->kind == TW_TIME_LAUNCH ? &at->before_ns : &at->behind_ns) = (int64_t)(delay->seconds * 1e9);
    return TW_OK;
}
