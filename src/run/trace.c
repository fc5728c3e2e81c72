/* trace.c - see trace.h. */
#include "run/trace.h"

#include "base/clock.h"
#include "comm/comm.h"

bool twi_is_update(const twi_node *node)
{
    bool writes = false;
    for (int i = 0; i < node->num_inputs && twi_op_writes(node->op); i++)
        writes = writes || twi_role_writes(twi_op_role(node->op, &node->attrs, i));
    return writes;
}

bool twi_is_tower_work(const twi_plan *plan, twi_step_id id)
{
    return twi_span_of(plan, id)->kind == TW_TIME_COMPUTE && !twi_is_update(plan->lists[id.device].nodes[id.position]);
}

/* Copies to a reduction are part of it as those from one are. */
static bool copies_for_reduction(const twi_node *copy)
{
    bool found = twi_is_reduction(copy->inputs[0].node);
    for (const twi_edge *use = copy->results[0].uses.first; use && !found; use = use->next)
        found = use->user != copy->region->end && twi_is_reduction(use->user);
    return found;
}

tw_time_kind twi_time_kind_of(const twi_step *step, const twi_node *node)
{
    if (step->source)
        return copies_for_reduction(node) ? TW_TIME_REDUCTION : TW_TIME_COPIES;
    if (!step->kernel)
        return TW_TIME_LAUNCH;
    if (twi_op_is(node->op, TWI_INPUT))
        return TW_TIME_INPUT;
    return twi_is_reduction(node) ? TW_TIME_REDUCTION : TW_TIME_COMPUTE;
}

static tw_status open_track(twi_plan *plan, const twi_list *list, twi_track *track, tw_error *error)
{
    size_t count = (size_t)list->count;
    track->spans = twi_arena_alloc(&plan->arena, sizeof *track->spans * count);
    if (!track->spans)
        return twi_fail_memory(error, "tracing a plan");
    for (int i = 0; i < list->count; i++)
        track->spans[i].kind = twi_time_kind_of(&list->steps[i], list->nodes[i]);
    if (!list->count || !list->device->ops->open_timeline)
        return TW_OK;
    track->marks = twi_arena_alloc(&plan->arena, sizeof *track->marks * 2 * count);
    if (!track->marks)
        return twi_fail_memory(error, "tracing a plan");
    return list->device->ops->open_timeline(list->device, 2 * list->count, &track->timeline, error);
}

/* What was recorded without marks stays without. */
static bool has_recorded(const twi_plan *plan)
{
    bool found = false;
    for (int i = 0; i < plan->num_segments && !found; i++)
        found = plan->segments[i].recording != NULL;
    return found;
}

/* One that fails half-way leaves the plan as it was. */
static tw_status open_trace(twi_plan *plan, tw_error *error)
{
    tw_status status = TW_OK;
    if (plan->trace)
        return TW_OK;
    twi_trace *trace = twi_arena_alloc(&plan->arena, sizeof *trace);
    if (trace)
        trace->tracks = twi_arena_alloc(&plan->arena, sizeof *trace->tracks * (size_t)plan->num_lists);
    if (!trace || !trace->tracks)
        return twi_fail_memory(error, "tracing a plan");
    for (int d = 0; d < plan->num_lists && status == TW_OK; d++)
        status = open_track(plan, &plan->lists[d], &trace->tracks[d], error);
    for (int d = 0; d < plan->num_lists && status != TW_OK; d++)
        if (trace->tracks[d].timeline)
            plan->lists[d].device->ops->close_timeline(plan->lists[d].device, trace->tracks[d].timeline);
    plan->trace = status == TW_OK ? trace : NULL;
    return status;
}

tw_status twi_trace_begin(twi_plan *plan, bool wanted, tw_error *error)
{
    tw_status status = wanted && !plan->trace && !has_recorded(plan) ? open_trace(plan, error) : TW_OK;
    if (status == TW_OK && plan->trace) {
        plan->trace->on = wanted;
        plan->trace->gathered = plan->trace->gathered && !wanted;
        if (wanted)
            plan->trace->began_ns = twi_monotonic_ns();
    }
    return status;
}

bool twi_is_traced(const twi_plan *plan)
{
    return plan->trace && plan->trace->on;
}

/* ---- over tasks ------------------------------------------------------------------------------------------------ */

/* Times that are 0 say that the step did not run. */
static void shift(twi_span *spans, int count, int64_t ns)
{
    for (int i = 0; i < count; i++) {
        spans[i].started_ns += spans[i].started_ns ? ns : 0;
        spans[i].ended_ns += spans[i].ended_ns ? ns : 0;
    }
}

static int64_t end_of(const twi_plan *plan, twi_step_id id)
{
    return twi_span_of(plan, id)->ended_ns;
}

/* What came from another task was on its way since it was there and there was room for it. */
static void note_ways(twi_plan *plan)
{
    for (int d = 0; d < plan->num_lists; d++)
        for (int i = 0; i < plan->lists[d].count; i++) {
            const twi_step *step = &plan->lists[d].steps[i];
            twi_span *span = twi_span_of(plan, (twi_step_id){d, i});
            int64_t begin = i ? end_of(plan, (twi_step_id){d, i - 1}) : plan->trace->began_ns;
            for (int k = 0; k < step->num_waits; k++)
                begin = end_of(plan, step->waits[k]) > begin ? end_of(plan, step->waits[k]) : begin;
            if (step->source && step->source->task != step->device->task && begin < span->ended_ns)
                span->started_ns = begin;
        }
}

/* The run is as long as all that was done in it, by other clocks too. */
static void widen(twi_plan *plan)
{
    for (int d = 0; d < plan->num_lists; d++)
        for (int i = 0; i < plan->lists[d].count; i++)
            if (end_of(plan, (twi_step_id){d, i}) > plan->trace->ended_ns)
                plan->trace->ended_ns = end_of(plan, (twi_step_id){d, i});
}

tw_status twi_trace_gather(twi_plan *plan, tw_error *error)
{
    int64_t ahead;
    twi_comm *c = plan->num_lists && plan->lists[0].device->set ? plan->lists[0].device->set->comm : NULL;
    if (!c || plan->trace->gathered)
        return TW_OK;
    tw_status status = twi_comm_clock(c, &ahead, error);
    for (int d = 0; d < plan->num_lists && status == TW_OK; d++) {
        twi_track *track = &plan->trace->tracks[d];
        const twi_list *list = &plan->lists[d];
        if (list->device->task == c->task)
            shift(track->spans, list->count, ahead);
        status = twi_comm_share(c, list->device->task, track->spans, sizeof *track->spans * (size_t)list->count,
                                "the times of a step", error);
    }
    if (status != TW_OK)
        return status;
    note_ways(plan);
    widen(plan);
    plan->trace->gathered = true;
    return TW_OK;
}
