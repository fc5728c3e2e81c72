/* segments.c - which steps devices may record once and replay (on cards: a CUDA graph); see stages.h.
 * Never here:  recording (run/recording.c). */
#include "base/memory.h"
#include "device/tasks.h"
#include "plan/stages.h"

#include <string.h>

enum { FEWEST = 2 }; /* kernels and copies: less is not worth it */

/* ---- groups ------------------------------------------------------------------------------------------------------ */

/* With all of the group so far, not with its first device only. Of several tasks each device is by itself, for which
 * would record together the others, who plan the same, do not know. */
static bool joins(const twi_planning *p, int device, int group)
{
    twi_device *const *all = p->request->devices->items;
    if (p->request->devices->tasks > 1)
        return false;
    for (int i = group; i < device; i++)
        if (p->groups[i] == group && !all[device]->ops->records_with(all[device], all[i]))
            return false;
    return true;
}

tw_status twi_group_devices(twi_planning *p)
{
    const twi_region *region = p->rewriting.region;
    int count = p->request->devices->count;
    bool *used = twi_arena_alloc(&p->plan->arena, sizeof *used * (size_t)count);
    p->groups = twi_arena_alloc(&p->plan->arena, sizeof *p->groups * (size_t)count);
    if (!used || !p->groups)
        return twi_fail_memory(p->error, "making a plan");
    for (int id = 0; id < region->nodes.count; id++)
        used[region->nodes.items[id]->device] = true;
    for (int d = 0; d < count; d++) {
        p->groups[d] = -1;
        for (int g = 0; g <= d && used[d] && p->groups[d] < 0 && p->request->devices->items[d]->ops->replay; g++)
            if (g == d || (p->groups[g] == g && joins(p, d, g)))
                p->groups[d] = g;
    }
    return TW_OK;
}

/* What another task has to tell comes as a message. */
static bool hears_of_others(const twi_planning *p, const twi_node *node)
{
    const tw_devices *devices = p->request->devices;
    for (int i = 0; i < twi_num_dependencies(node) && devices->tasks > 1; i++)
        if (!twi_same_task(devices->items[twi_dependency(node, i)->node->device], devices->items[node->device]))
            return true;
    return false;
}

bool twi_breaks_recording(const twi_planning *p, const twi_node *node)
{
    if (node->guard || node->loop || hears_of_others(p, node))
        return true;
    if (twi_has_trait(node, TWI_COPY))
        return p->groups[node->inputs[0].node->device] != p->groups[node->device];
    return node->task->kernel && node->task->varies;
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

static twi_step *step_of(const twi_planning *p, const twi_node *node)
{
    return &p->plan->lists[node->device].steps[node->task->position];
}

static twi_part *part_on(const twi_segment *s, int device)
{
    for (int i = 0; i < s->num_parts; i++)
        if (s->parts[i].device == device)
            return &s->parts[i];
    return NULL;
}

/* The steps of a group among nodes [begin, end), which are those of one phase. */
static tw_status gather_steps(twi_planning *p, int begin, int end, int group, twi_segment *s)
{
    twi_arena *arena = &p->plan->arena;
    s->steps = twi_arena_alloc(arena, sizeof *s->steps * (size_t)(end - begin));
    s->parts = twi_arena_alloc(arena, sizeof *s->parts * (size_t)p->plan->num_lists);
    if (!s->steps || !s->parts)
        return twi_fail_memory(p->error, "making a plan");
    for (int id = begin; id < end; id++) {
        const twi_node *node = p->rewriting.region->nodes.items[id];
        int position = node->task->position;
        if (p->groups[node->device] != group)
            continue;
        twi_part *part = part_on(s, node->device);
        if (!part)
            *(part = &s->parts[s->num_parts++]) = (twi_part){s, node->device, position, position};
        part->end = position + 1;
        p->plan->lists[node->device].members[position] = (twi_member){part, s->num_steps};
        s->steps[s->num_steps++] = (twi_recorded){.id = {node->device, position},
                                                  .workspace = node->task->workspace_bytes,
                                                  .touches = node->task->touches};
    }
    return TW_OK;
}

static void wait_for(twi_segment *s, int device, int position)
{
    int at = 0;
    const twi_part *part = part_on(s, device);
    if (position < 0 || (part && position >= part->first))
        return;
    while (at < s->num_waits && s->waits[at].device != device)
        at++;
    if (at == s->num_waits)
        s->waits[s->num_waits++] = (twi_step_id){device, position};
    else if (position > s->waits[at].position)
        s->waits[at].position = position;
}

/* Who replays waits until all others are where the segment begins, and for all that any step would wait for. */
static tw_status gather_waits(twi_planning *p, twi_segment *s)
{
    s->waits = twi_arena_alloc(&p->plan->arena, sizeof *s->waits * (size_t)p->plan->num_lists);
    if (!s->waits)
        return twi_fail_memory(p->error, "making a plan");
    for (int i = 1; i < s->num_parts; i++)
        wait_for(s, s->parts[i].device, s->parts[i].first - 1);
    for (int i = 0; i < s->num_steps; i++) {
        const twi_step *step = &p->plan->lists[s->steps[i].id.device].steps[s->steps[i].id.position];
        for (int k = 0; k < step->num_waits; k++)
            wait_for(s, step->waits[k].device, step->waits[k].position);
    }
    return TW_OK;
}

static bool is_worth_it(const twi_planning *p, int begin, int end, int group)
{
    int count = 0;
    for (int id = begin; id < end; id++) {
        const twi_node *node = p->rewriting.region->nodes.items[id];
        const twi_step *step = step_of(p, node);
        count += p->groups[node->device] == group && (step->kernel || step->source);
    }
    return count >= FEWEST;
}

static tw_status make_segment(twi_planning *p, int begin, int end, int group)
{
    twi_segment *s = &p->plan->segments[p->plan->num_segments];
    tw_status status = gather_steps(p, begin, end, group, s);
    if (status == TW_OK)
        status = gather_waits(p, s);
    p->plan->num_segments += status == TW_OK;
    return status;
}

static tw_status make_members(twi_planning *p)
{
    bool fits = true;
    for (int d = 0; d < p->plan->num_lists && fits; d++) {
        twi_list *list = &p->plan->lists[d];
        if (p->groups[d] < 0)
            continue;
        list->members = twi_arena_alloc(&p->plan->arena, sizeof *list->members * (size_t)list->count);
        fits = list->members != NULL;
    }
    return fits ? TW_OK : twi_fail_memory(p->error, "making a plan");
}

/* Nodes are sorted by phase; those of odd ones are recorded. */
tw_status twi_find_segments(twi_planning *p)
{
    const twi_region *region = p->rewriting.region;
    int count = region->nodes.count, phases = count ? region->nodes.items[count - 1]->task->phase + 1 : 0;
    tw_status status = make_members(p);
    size_t most = (size_t)phases * (size_t)p->plan->num_lists;
    p->plan->segments = twi_arena_alloc(&p->plan->arena, sizeof *p->plan->segments * most);
    if (!p->plan->segments)
        return twi_fail_memory(p->error, "making a plan");
    for (int begin = 0, end; begin < count && status == TW_OK; begin = end) {
        int phase = region->nodes.items[begin]->task->phase;
        for (end = begin; end < count && region->nodes.items[end]->task->phase == phase;)
            end++;
        for (int d = 0; d < p->plan->num_lists && phase % 2 && status == TW_OK; d++)
            if (p->groups[d] == d && !p->request->devices->items[d]->absent && is_worth_it(p, begin, end, d))
                status = make_segment(p, begin, end, d);
    }
    return status;
}

void twi_forget_recordings(twi_plan *plan)
{
    for (int i = 0; i < plan->num_segments; i++) {
        twi_segment *s = &plan->segments[i];
        twi_device *device = plan->lists[twi_leader(s)].device;
        if (s->recording)
            device->ops->forget(device, s->recording);
        s->recording = NULL;
        for (int k = 0; k < s->num_steps; k++) {
            twi_free(s->steps[k].after);
            s->steps[k].after = NULL;
            s->steps[k].num_after = 0;
        }
    }
}
