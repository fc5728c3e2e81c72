/* stretches.c - which steps of a list a device may record once and replay (on a card: a CUDA graph); see plan.h.
 * Never here:  recording (run/recording.c). */
#include "plan/plan.h"

enum { FEWEST_KERNELS = 2 }; /* less is not worth it */

static bool may_be_inside(const twi_step *step)
{
    return !step->source && !(step->kernel && step->node->task->prepare.varies);
}

/* The end of the stretch that begins at `first`; `first` itself if there is none. */
static int end_of(const twi_list *list, int first)
{
    int i = first, kernels = 0;
    for (; i < list->count && may_be_inside(&list->steps[i]) && (i == first || !list->steps[i].num_waits); i++)
        kernels += list->steps[i].kernel != NULL;
    return kernels >= FEWEST_KERNELS ? i : first;
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
