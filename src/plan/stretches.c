/* stretches.c - which steps of a list a device may record once and replay (on a card: a CUDA graph); see plan.h.
 * Never here:  recording (run/recording.c). */
#include "plan/plan.h"

#include <string.h>

enum { FEWEST_KERNELS = 2 }; /* less is not worth it */

bool twi_breaks_recording(const tw_node *node)
{
    bool copies = strcmp(node->op->name, "_Copy") == 0 && !twi_task_shares(node->task);
    return copies || (node->task->kernel && node->task->prepare.varies);
}

static int phase_at(const twi_list *list, int i)
{
    return list->steps[i].node->task->phase;
}

/* The end of the stretch that begins at `first`; `first` itself if there is none. */
static int end_of(const twi_list *list, int first)
{
    int i = first, kernels = 0;
    for (; i < list->count && phase_at(list, i) == phase_at(list, first) && phase_at(list, i) % 2; i++)
        kernels += list->steps[i].kernel != NULL;
    return kernels >= FEWEST_KERNELS ? i : first;
}

/* The first step of a stretch waits for all that the others would wait for, which is of earlier phases. */
static tw_status gather_waits(twi_planning *p, twi_list *list, const twi_stretch *stretch)
{
    twi_step *first = &list->steps[stretch->first];
    twi_wait *all = twi_arena_alloc(&p->plan->arena, sizeof *all * (size_t)p->plan->num_lists);
    int count = 0;
    if (!all)
        return twi_fail_memory(p->error, "making a plan");
    for (int i = stretch->first; i < stretch->end; i++) {
        twi_step *step = &list->steps[i];
        for (int k = 0, at; k < step->num_waits; k++) {
            for (at = 0; at < count && all[at].device != step->waits[k].device; at++)
                ;
            if (at == count || step->waits[k].position > all[at].position)
                all[at] = step->waits[k];
            count += at == count;
        }
        step->num_waits = 0;
    }
    first->waits = all;
    first->num_waits = count;
    return TW_OK;
}

static int walk(twi_list *list, twi_stretch *stretches)
{
    int count = 0;
    for (int i = 0; i < list->count;) {
        int end = end_of(list, i);
        if (end > i && stretches) {
            stretches[count] = (twi_stretch){.first = i, .end = end};
            list->steps[i].stretch = &stretches[count];
        }
        count += end > i;
        i = end > i ? end : i + 1;
    }
    return count;
}

tw_status twi_find_stretches(twi_planning *p)
{
    for (int d = 0; d < p->plan->num_lists; d++) {
        twi_list *list = &p->plan->lists[d];
        if (!list->device->ops->replay)
            continue;
        int count = walk(list, NULL);
        list->stretches = twi_arena_alloc(&p->plan->arena, sizeof *list->stretches * (size_t)count);
        if (!list->stretches)
            return twi_fail_memory(p->error, "making a plan");
        list->num_stretches = walk(list, list->stretches);
        for (int i = 0; i < list->num_stretches; i++) {
            tw_status status = gather_waits(p, list, &list->stretches[i]);
            if (status != TW_OK)
                return status;
        }
    }
    return TW_OK;
}

void twi_forget_recordings(twi_plan *plan)
{
    for (int d = 0; plan->lists && d < plan->num_lists; d++)
        for (int i = 0; i < plan->lists[d].num_stretches; i++) {
            twi_stretch *s = &plan->lists[d].stretches[i];
            if (s->recording)
                plan->lists[d].device->ops->forget(plan->lists[d].device, s->recording);
            s->recording = NULL;
        }
}
