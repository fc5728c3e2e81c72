/* waterfall.c - see waterfall.h.
 *
 * The chain begins at the step that ended last and goes back: each step could begin when the last of those it waited
 * for had ended, on its own device or on another. The steps of the chain and the gaps between them are the whole of the
 * run's time, so the parts add up without anything left over, and what ran beside the chain is hidden and costs
 * nothing.
 *
 * Imbalance is what the towers' part of the chain computed longer than the least loaded of the towers' devices: with
 * equal towers on equal devices there is none. */
#include "run/waterfall.h"

#include "run/trace.h"

#include <string.h>

const char *tw_time_kind_name(tw_time_kind kind)
{
    static const char *const names[] = {"compute", "imbalance", "reduction", "copies", "input", "launch"}; /* ORDER TIME */
    return kind >= 0 && kind < TW_TIME_KINDS ? names[kind] : "";
}

/* ---- the chain ------------------------------------------------------------------------------------------------- */

/* Position -1: before the first step. */
static int64_t end_of(const twi_plan *plan, twi_step_id p)
{
    return p.position < 0 ? plan->trace->began_ns : twi_span_of(plan, p)->ended_ns;
}

static twi_step_id last_step(const twi_plan *plan)
{
    twi_step_id last = {0, -1};
    for (int d = 0; d < plan->num_lists; d++)
        for (int i = 0; i < plan->lists[d].count; i++)
            if (end_of(plan, (twi_step_id){d, i}) >= end_of(plan, last))
                last = (twi_step_id){d, i};
    return last;
}

static void take_later(const twi_plan *plan, twi_step_id p, twi_step_id *latest)
{
    if (end_of(plan, p) > end_of(plan, *latest))
        *latest = p;
}

/* Where the step is in a segment that is replayed; part NULL: in none. */
static twi_member replayed_member(const twi_plan *plan, twi_step_id p)
{
    const twi_list *list = &plan->lists[p.device];
    twi_member member = list->members && p.position >= 0 ? list->members[p.position] : (twi_member){0};
    return member.part && twi_is_replayed(plan, member.part->segment) ? member : (twi_member){0};
}

/* Who waits for a step of a segment that is replayed has waited for all of it. */
static void wait_for(const twi_plan *plan, twi_step_id p, twi_step_id *latest)
{
    const twi_part *part = replayed_member(plan, p).part;
    take_later(plan, p, latest);
    for (int i = 0; part && i < part->segment->num_steps; i++)
        take_later(plan, part->segment->steps[i].id, latest);
}

/* What a step could not begin before. Waits that an earlier step of the list has waited for already are not repeated at
 * it, and need not be: that step's end is the later one. One that is replayed came after some of those with it, or else
 * after what all of them waited for. */
static twi_step_id cause(const twi_plan *plan, twi_step_id p)
{
    const twi_step *step = &plan->lists[p.device].steps[p.position];
    twi_member member = replayed_member(plan, p);
    const twi_segment *s = member.part ? member.part->segment : NULL;
    const twi_recorded *recorded = s ? &s->steps[member.number] : NULL;
    twi_step_id latest = {p.device, -1};
    if (recorded && recorded->num_after) {
        for (int i = 0; i < recorded->num_after; i++)
            take_later(plan, s->steps[recorded->after[i]].id, &latest);
        return latest;
    }
    const twi_step_id *waits = s ? s->waits : step->waits;
    twi_step_id before = {p.device, p.position - 1};
    if (s)
        before = (twi_step_id){twi_leader(s), s->parts[0].first - 1};
    wait_for(plan, before, &latest);
    for (int i = 0; i < (s ? s->num_waits : step->num_waits); i++)
        wait_for(plan, waits[i], &latest);
    return latest;
}

/* ---- the towers' devices --------------------------------------------------------------------------------------- */

/* Which of the towers' devices it is; -1: none. */
static int find_tower_device(const twi_plan *plan, int device, const char *const *tower_devices, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(plan->lists[device].device->text, tower_devices[i]) == 0)
            return i;
    return -1;
}

static double seconds_of(const twi_span *span)
{
    return (double)(span->ended_ns - span->started_ns) / 1e9;
}

/* What the towers' devices computed for them. */
typedef struct loads {
    double least, most; /* seconds */
    int slowest;        /* the device that has the most; -1: there is none */
} loads;

static double tower_seconds(const twi_plan *plan, int device)
{
    double seconds = 0;
    for (int i = 0; i < plan->lists[device].count; i++)
        if (twi_is_tower_work(plan, (twi_step_id){device, i}))
            seconds += seconds_of(twi_span_of(plan, (twi_step_id){device, i}));
    return seconds;
}

static loads find_loads(const twi_plan *plan, const char *const *tower_devices, int count)
{
    loads found = {.slowest = -1};
    for (int d = 0; d < plan->num_lists; d++) {
        int tower_device = find_tower_device(plan, d, tower_devices, count);
        double seconds = tower_device < 0 ? 0 : tower_seconds(plan, d);
        if (tower_device < 0)
            continue;
        if (found.slowest < 0 || seconds < found.least)
            found.least = seconds;
        if (found.slowest < 0 || seconds > found.most) {
            found.most = seconds;
            found.slowest = tower_device;
        }
    }
    return found;
}

/* All that brings gradients together, on all devices. */
static double reduction_seconds(const twi_plan *plan)
{
    double seconds = 0;
    for (int d = 0; d < plan->num_lists; d++)
        for (int i = 0; i < plan->lists[d].count; i++) {
            const twi_span *span = twi_span_of(plan, (twi_step_id){d, i});
            seconds += span->kind == TW_TIME_REDUCTION ? seconds_of(span) : 0;
        }
    return seconds;
}

/* *longest: the imbalance of a part so far. */
static void add_part(const twi_plan *plan, const char *const *tower_devices, int count, tw_waterfall *waterfall,
                     double *longest)
{
    double towers = 0, reduction = waterfall->seconds[TW_TIME_REDUCTION];
    const twi_trace *trace = plan->trace;
    int64_t until = trace->ended_ns;
    for (twi_step_id p = last_step(plan); p.position >= 0; p = cause(plan, p)) {
        const twi_span *span = twi_span_of(plan, p);
        waterfall->seconds[TW_TIME_LAUNCH] += (double)(until - span->ended_ns) / 1e9;
        waterfall->seconds[span->kind] += seconds_of(span);
        if (find_tower_device(plan, p.device, tower_devices, count) >= 0 && twi_is_tower_work(plan, p))
            towers += seconds_of(span);
        until = span->started_ns;
    }
    waterfall->seconds[TW_TIME_LAUNCH] += (double)(until - trace->began_ns) / 1e9;
    waterfall->hidden += reduction_seconds(plan) - (waterfall->seconds[TW_TIME_REDUCTION] - reduction);
    loads loads = find_loads(plan, tower_devices, count);
    double imbalance = towers - loads.least;
    if (imbalance <= 0 || loads.most <= loads.least) /* of one device it is what numbers are rounded by */
        return;
    waterfall->seconds[TW_TIME_COMPUTE] -= imbalance;
    waterfall->seconds[TW_TIME_IMBALANCE] += imbalance;
    if (imbalance > *longest)
        waterfall->slowest = loads.slowest;
    *longest = imbalance > *longest ? imbalance : *longest;
}

/* Between two parts the next plan is found or made. */
void twi_waterfall(twi_plan *const *parts, int num_parts, const char *const *tower_devices, int count,
                   tw_waterfall *waterfall)
{
    int64_t ended = parts[0]->trace->began_ns;
    double longest = 0;
    *waterfall = (tw_waterfall){.slowest = -1};
    for (int i = 0; i < num_parts; i++) {
        waterfall->seconds[TW_TIME_LAUNCH] += (double)(parts[i]->trace->began_ns - ended) / 1e9;
        add_part(parts[i], tower_devices, count, waterfall, &longest);
        ended = parts[i]->trace->ended_ns;
    }
    waterfall->total = (double)(ended - parts[0]->trace->began_ns) / 1e9;
}
