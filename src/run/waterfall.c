/* waterfall.c - see waterfall.h.
 *
 * The chain begins at the step that ended last and goes back: each step could begin when the last of those it waited for
 * had ended, on its own device or on another. The steps of the chain and the gaps between them are the whole of the
 * run's time, so the parts add up without anything left over, and what ran beside the chain is hidden and costs nothing.
 *
 * Imbalance is what the towers' part of the chain computed longer than the least loaded of the towers' devices: with
 * equal towers on equal devices there is none. */
#include "run/waterfall.h"

#include <string.h>

const char *tw_time_kind_name(tw_time_kind kind)
{
    static const char *const names[] = {"compute", "imbalance", "reduction", "copies", "input", "launch"}; /* ORDER TIME */
    return kind >= 0 && kind < TW_TIME_KINDS ? names[kind] : "";
}

/* ---- what a step is -------------------------------------------------------------------------------------------- */

/* Whether the step writes variables, once for all towers. */
static bool is_update(const twi_step *step)
{
    const twi_node *node = step->node;
    bool writes = false;
    for (int i = 0; i < node->num_inputs && twi_op_writes(node->op); i++)
        writes = writes || twi_role_writes(twi_op_role(node->op, &node->attrs, i));
    return writes;
}

static tw_time_kind kind_of(const twi_step *step)
{
    if (step->source)
        return twi_is_reduction(step->node->inputs[0].node) ? TW_TIME_REDUCTION : TW_TIME_COPIES;
    if (!step->kernel)
        return TW_TIME_LAUNCH;
    if (twi_op_is(step->node->op, TWI_INPUT))
        return TW_TIME_INPUT;
    return twi_is_reduction(step->node) ? TW_TIME_REDUCTION : TW_TIME_COMPUTE;
}

/* Gives every step its kind; copies to a reduction are part of it as those from one are. */
static void find_kinds(twi_plan *plan)
{
    for (int d = 0; d < plan->num_lists; d++)
        for (int i = 0; i < plan->lists[d].count; i++)
            plan->lists[d].steps[i].kind = kind_of(&plan->lists[d].steps[i]);
    for (int d = 0; d < plan->num_lists; d++)
        for (int i = 0; i < plan->lists[d].count; i++) {
            const twi_node *reader = plan->lists[d].steps[i].node;
            for (int k = 0; k < reader->num_inputs && twi_is_reduction(reader); k++) {
                const twi_node *read = reader->inputs[k].node;
                twi_step *from = read->task ? &plan->lists[read->device].steps[read->task->position] : NULL;
                if (from && from->source)
                    from->kind = TW_TIME_REDUCTION;
            }
        }
    plan->has_kinds = true;
}

/* ---- the chain ------------------------------------------------------------------------------------------------- */

/* A place in a list; step -1: before the first. */
typedef struct position {
    int device, step;
} position;

static int64_t end_of(const twi_plan *plan, position p)
{
    return p.step < 0 ? plan->began_ns : plan->lists[p.device].steps[p.step].ended_ns;
}

static position last_step(const twi_plan *plan)
{
    position last = {0, -1};
    for (int d = 0; d < plan->num_lists; d++)
        for (int i = 0; i < plan->lists[d].count; i++)
            if (end_of(plan, (position){d, i}) >= end_of(plan, last))
                last = (position){d, i};
    return last;
}

static bool is_replayed(const twi_plan *plan, const twi_segment *segment)
{
    return segment && segment->recording && !plan->delayed;
}

static void take_later(const twi_plan *plan, position p, position *latest)
{
    if (end_of(plan, p) > end_of(plan, *latest))
        *latest = p;
}

static position position_of(const twi_step *step)
{
    return (position){step->node->device, step->node->task->position};
}

/* Who waits for a step of a segment that is replayed has waited for all of it. */
static void wait_for(const twi_plan *plan, position p, position *latest)
{
    const twi_segment *s = p.step < 0 ? NULL : plan->lists[p.device].steps[p.step].within;
    take_later(plan, p, latest);
    for (int i = 0; is_replayed(plan, s) && i < s->num_steps; i++)
        take_later(plan, position_of(s->steps[i]), latest);
}

/* What a step could not begin before. Waits that an earlier step of the list has waited for already are not repeated at
 * it, and need not be: that step's end is the later one. One that is replayed came after some of those with it, or else
 * after what all of them waited for. */
static position cause(const twi_plan *plan, position p)
{
    const twi_step *step = &plan->lists[p.device].steps[p.step];
    const twi_segment *s = is_replayed(plan, step->within) ? step->within : NULL;
    position latest = {p.device, -1};
    if (s && s->num_after[step->number]) {
        for (int i = 0; i < s->num_after[step->number]; i++)
            take_later(plan, position_of(s->steps[s->after[step->number][i]]), &latest);
        return latest;
    }
    const twi_wait *waits = s ? s->waits : step->waits;
    wait_for(plan, s ? (position){s->parts[0].device, s->parts[0].first - 1} : (position){p.device, p.step - 1}, &latest);
    for (int i = 0; i < (s ? s->num_waits : step->num_waits); i++)
        wait_for(plan, (position){waits[i].device, waits[i].position}, &latest);
    return latest;
}

/* ---- the towers' devices --------------------------------------------------------------------------------------- */

static bool hosts_tower(const twi_plan *plan, int device, const char *const *tower_devices, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(plan->lists[device].device->text, tower_devices[i]) == 0)
            return true;
    return false;
}

static bool is_tower_work(const twi_step *step)
{
    return step->kind == TW_TIME_COMPUTE && !is_update(step);
}

/* Seconds that the least loaded of the towers' devices computed. */
static double least_compute(const twi_plan *plan, const char *const *tower_devices, int count)
{
    double least = -1;
    for (int d = 0; d < plan->num_lists; d++) {
        const twi_list *list = &plan->lists[d];
        double seconds = 0;
        if (!hosts_tower(plan, d, tower_devices, count))
            continue;
        for (int i = 0; i < list->count; i++)
            if (is_tower_work(&list->steps[i]))
                seconds += (double)(list->steps[i].ended_ns - list->steps[i].started_ns) / 1e9;
        if (least < 0 || seconds < least)
            least = seconds;
    }
    return least < 0 ? 0 : least;
}

void twi_waterfall(twi_plan *plan, const char *const *tower_devices, int count, tw_waterfall *waterfall)
{
    double towers = 0;
    if (!plan->has_kinds)
        find_kinds(plan);
    *waterfall = (tw_waterfall){.total = (double)(plan->ended_ns - plan->began_ns) / 1e9};
    int64_t until = plan->ended_ns;
    for (position p = last_step(plan); p.step >= 0; p = cause(plan, p)) {
        const twi_step *step = &plan->lists[p.device].steps[p.step];
        double gap = (double)(until - step->ended_ns) / 1e9;
        double seconds = (double)(step->ended_ns - step->started_ns) / 1e9;
        waterfall->seconds[TW_TIME_LAUNCH] += gap;
        waterfall->seconds[step->kind] += seconds;
        if (hosts_tower(plan, p.device, tower_devices, count) && is_tower_work(step))
            towers += seconds;
        until = step->started_ns;
    }
    waterfall->seconds[TW_TIME_LAUNCH] += (double)(until - plan->began_ns) / 1e9;
    double imbalance = towers - least_compute(plan, tower_devices, count);
    if (imbalance > 0) {
        waterfall->seconds[TW_TIME_COMPUTE] -= imbalance;
        waterfall->seconds[TW_TIME_IMBALANCE] = imbalance;
    }
}

/* ---- delays ---------------------------------------------------------------------------------------------------- */

static bool takes_batch_of(const twi_step *step, int tower)
{
    return twi_attr_int(&step->node->attrs, "tower", -1) == tower;
}

/* Whether the delay could lie at this step. */
static bool is_place(const twi_plan *plan, int device, const twi_step *step, const tw_delay *delay)
{
    if (delay->kind == TW_TIME_INPUT)
        return step->kind == TW_TIME_INPUT && takes_batch_of(step, delay->tower);
    if (strcmp(plan->lists[device].device->text, delay->device) != 0)
        return false;
    if (delay->kind == TW_TIME_LAUNCH)
        return is_tower_work(step);
    return step->kind == delay->kind && !is_update(step);
}

tw_status twi_delay(twi_plan *plan, const tw_delay *delay, tw_error *error)
{
    twi_step *place = NULL;
    if (!plan->has_kinds)
        find_kinds(plan);
    for (int d = 0; d < plan->num_lists; d++)
        for (int i = 0; i < plan->lists[d].count; i++)
            if (is_place(plan, d, &plan->lists[d].steps[i], delay))
                place = &plan->lists[d].steps[i];
    if (!place)
        return twi_fail(error, TW_NOT_FOUND, "no step of kind '%s' for tower %d, on %s: nothing there can be delayed",
                        tw_time_kind_name(delay->kind), delay->tower, delay->device);
    plan->delayed = true;
    *(delay->kind == TW_TIME_LAUNCH ? &place->late_ns : &place->slow_ns) = (int64_t)(delay->seconds * 1e9);
    return TW_OK;
}
