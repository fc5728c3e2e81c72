/* memory.c - which bytes every output uses.
 *
 * A buffer lives from the step that makes it to the last one that looks at it, through nodes that only pass it on.
 * Whatever another device reads, or is fetched, lives to the end of the run: only the order within one device is known.
 * The large buffers of one device are laid into its arena first, each into the smallest gap that holds it: they decide
 * how large it is. To look at all pairs of thousands more would take longer than a step; the rest is small, and lies
 * behind them in slots of few sizes, which are taken and given back in the order of time. Constants and strings lie in
 * memory of the plan's own, variables in the session's.
 *
 * A step that is skipped leaves its buffers as they are. That harms nobody: whoever looks at them is skipped too, or is
 * the next of a chain of choices; guards are looked at from everywhere, and live to the end.
 *
 * Loops that run side by side (beside.c) use what they use as long as any of them runs.
 *
 * Where a device records, steps run side by side unless they touch the same memory. So there memory is not given away
 * again at once, and kernels that follow each other have workspaces of their own. */
#include "plan/stages.h"

#include "tensor/variant.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64 /* as kernels expect it */

enum {
    LATER = 3,      /* steps of a device that records, before memory is given away */
    MOST_PAIRED = 4096, /* large buffers of a device: more than a network of a hundred layers has */
};

static size_t align(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

size_t twi_buffer_room(const twi_buffer *buffer)
{
    return align(buffer->bytes);
}

twi_buffer *twi_buffer_of(twi_value output)
{
    return output.node->task->outputs[output.index];
}

/* ---- lifetimes ------------------------------------------------------------------------------------------------- */

typedef struct lives {
    int **last; /* [nodes][outputs]: last position that looks, on the output's own device */
} lives;

static void extend(int *last, int position)
{
    if (position > *last)
        *last = position;
}

/* Backwards, so that the lives of what a node passes on are known when the node is met. */
static tw_status find_lives(twi_planning *p, lives *l)
{
    const twi_region *region = p->rewriting.region;
    bool reuse = !twi_rewrite_is_disabled(p->request->disable, "reuse");
    for (int id = 0; id < region->nodes.count; id++) {
        const twi_node *node = region->nodes.items[id];
        l->last[id] = twi_arena_alloc(&p->plan->arena, sizeof **l->last * (size_t)(node->num_results + 1));
        if (!l->last[id])
            return twi_fail_memory(p->error, "planning memory");
        for (int i = 0; i < node->num_results; i++)
            l->last[id][i] = reuse ? node->task->last : INT_MAX;
    }
    for (int i = 0; i < region->end->num_inputs; i++)
        if (region->end->inputs[i].index >= 0)
            l->last[region->end->inputs[i].node->id][region->end->inputs[i].index] = INT_MAX;
    for (int id = region->nodes.count - 1; id >= 0; id--) {
        const twi_node *node = region->nodes.items[id];
        twi_region_look_ahead(region, id, -1);
        if (node->guard)
            l->last[node->guard->id][0] = INT_MAX;
        for (int i = 0; i < node->num_inputs; i++) {
            twi_value input = twi_in(node, i);
            int *last = &l->last[input.node->id][input.index];
            extend(last, input.node->device == node->device ? node->task->last : INT_MAX);
            if (i == 0 && twi_task_shares(node->task))
                extend(last, l->last[id][0]);
        }
    }
    return TW_OK;
}

/* ---- buffers --------------------------------------------------------------------------------------------------- */

/* What may be read where the caller has it would have to be copied to be written over. */
static bool is_better_lent(const twi_planning *p, const twi_buffer *b)
{
    return twi_has_trait(b->maker, TWI_FEED) && b->bytes >= TWI_WORTH_LENDING && twi_may_lend(p, b);
}

/* Output 0 may take over the memory of an input that dies here. */
static twi_buffer *overwritten_input(const twi_planning *p, const twi_node *node)
{
    const twi_task *task = node->task;
    bool computes = task->kernel ? task->kernel->run != NULL : twi_has_trait(node, TWI_CHOOSE);
    if (!computes || node->num_results == 0)
        return NULL;
    size_t bytes = task->operands[node->num_inputs].bytes;
    if (task->operands[node->num_inputs].elements < 0) /* what is there is not the value */
        return NULL;
    for (int i = 0; i < node->num_inputs && i < 4; i++) {
        twi_buffer *b = task->can_overwrite[i] ? twi_buffer_of(twi_in(node, i)) : NULL;
        if (!b || b->place != TWI_IN_ARENA || b->bytes != bytes || b->last != task->position || is_better_lent(p, b))
            continue; /* what another device looks at lives on */
        bool safe = true; /* the same memory as another input: then that one must allow it too */
        for (int k = 0; k < node->num_inputs && safe; k++)
            safe = twi_buffer_of(twi_in(node, k)) != b || (k < 4 && task->can_overwrite[k]);
        if (safe)
            return b;
    }
    return NULL;
}

static twi_buffer *new_buffer(twi_planning *p, const twi_node *node, int i, int last)
{
    const twi_operand *operand = &node->task->operands[node->num_inputs + i];
    twi_buffer *b = twi_arena_alloc(&p->plan->arena, sizeof *b);
    if (!b)
        return NULL;
    *b = (twi_buffer){
        .device = node->device, .maker = node, .bytes = operand->bytes, .first = node->task->first, .last = last};
    if (operand->dtype == TW_RESOURCE) {
        b->place = TWI_IN_VARIABLE;
        b->variable = operand->resource;
    } else if (operand->elements < 0) {
        b->place = TWI_IN_KEPT;
        b->is_made = true;
        b->bytes = sizeof(tw_tensor *);
    } else if (operand->value || twi_owns_memory(operand->dtype)) {
        b->place = TWI_IN_KEPT;
        b->constant = operand->value;
    } else if (twi_has_trait(node, TWI_FEED)) {
        b->first = -1; /* written before the first step */
    }
    return b;
}

static tw_status make_buffers(twi_planning *p, const lives *l, twi_buffer **all, int *count)
{
    const twi_region *region = p->rewriting.region;
    bool reuse = !twi_rewrite_is_disabled(p->request->disable, "reuse");
    for (int id = 0; id < region->nodes.count; id++) {
        twi_node *node = region->nodes.items[id];
        twi_region_look_ahead(region, id, 1);
        for (int i = 0; i < node->num_results; i++) {
            twi_buffer *b = NULL;
            bool shares = i == 0 && twi_task_shares(node->task);
            if (shares)
                b = twi_buffer_of(twi_in(node, 0));
            else if (i == 0 && reuse)
                b = overwritten_input(p, node);
            if (!b) {
                b = new_buffer(p, node, i, l->last[id][i]);
                if (!b)
                    return twi_fail_memory(p->error, "planning memory");
                all[(*count)++] = b;
            } else {
                extend(&b->last, l->last[id][i]);
                b->overwritten = b->overwritten || !shares || twi_has_trait(node, TWI_CHOOSE);
            }
            node->task->outputs[i] = b;
        }
    }
    return TW_OK;
}

/* ---- offsets --------------------------------------------------------------------------------------------------- */

/* A large buffer that has its place: all that another is compared with, since thousands are. */
typedef struct placed {
    size_t offset, end;
    int first, last;
} placed;

/* What has its place on one device, in order of offset. */
typedef struct layout {
    placed *placed;
    int count;
    size_t bytes; /* where the last one ends */
    int num_small; /* which have no place yet */
    int later;    /* steps for which memory is kept besides */
} layout;

static bool live_together(const layout *l, const twi_buffer *a, const placed *b)
{
    return a->first - l->later <= b->last && b->first - l->later <= a->last;
}

/* Into the smallest gap that holds it between those that live when it does; the open end is the last choice. */
static void insert(layout *l, twi_buffer *b)
{
    size_t size = align(b->bytes), end = 0, best_gap = SIZE_MAX;
    int at = 0;
    for (int i = 0; i < l->count; i++) {
        const placed *other = &l->placed[i];
        if (!live_together(l, b, other))
            continue;
        if (other->offset > end && other->offset - end >= size && other->offset - end < best_gap) {
            best_gap = other->offset - end;
            b->offset = end;
        }
        end = other->end > end ? other->end : end;
    }
    if (best_gap == SIZE_MAX)
        b->offset = end;
    while (at < l->count && l->placed[at].offset <= b->offset)
        at++;
    memmove(l->placed + at + 1, l->placed + at, sizeof *l->placed * (size_t)(l->count - at));
    l->placed[at] = (placed){b->offset, b->offset + size, b->first, b->last};
    l->count++;
    if (b->offset + size > l->bytes)
        l->bytes = b->offset + size;
}

/* The largest first, since small ones fit into what is left between large ones; then in order of time. */
static int by_size(const void *a, const void *b)
{
    const twi_buffer *x = *(twi_buffer *const *)a, *y = *(twi_buffer *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->last != y->last ? (x->last < y->last ? -1 : 1) : 0;
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

enum { STEPS = 4, SLOT_SIZES = 64 * STEPS }; /* sizes of slots between one power of two and the next */

typedef struct slots {
    TWI_ARRAY(size_t) empty[SLOT_SIZES]; /* offsets, by size */
    int made[SLOT_SIZES];
} slots;

/* The number of the smallest size that is enough, which *room becomes. */
static int size_of_slot(size_t bytes, size_t *room)
{
    int power = 0;
    while (bytes > (size_t)ALIGNMENT << power)
        power++;
    size_t most = (size_t)ALIGNMENT << power, step = most / 2 / STEPS;
    int number = power * STEPS;
    *room = most;
    for (; power && step >= ALIGNMENT && *room - step >= bytes; number--)
        *room -= step;
    return number;
}

static bool take_slot(layout *l, slots *s, twi_buffer *b)
{
    size_t room;
    int size = size_of_slot(align(b->bytes), &room);
    if (s->empty[size].count) {
        b->offset = s->empty[size].items[--s->empty[size].count];
        return true;
    }
    b->offset = l->bytes;
    l->bytes += room;
    s->made[size]++;
    return twi_reserve(&s->empty[size], s->made[size]); /* so that it can be given back */
}

static void give_slot(slots *s, const twi_buffer *b)
{
    size_t room;
    int size = size_of_slot(align(b->bytes), &room);
    s->empty[size].items[s->empty[size].count++] = b->offset;
}

static int by_first(const void *a, const void *b)
{
    const twi_buffer *x = *(twi_buffer *const *)a, *y = *(twi_buffer *const *)b;
    return (x->first > y->first) - (x->first < y->first);
}

static int by_last(const void *a, const void *b)
{
    const twi_buffer *x = *(twi_buffer *const *)a, *y = *(twi_buffer *const *)b;
    return (x->last > y->last) - (x->last < y->last);
}

/* Buffers of one device, behind what lies there. */
static tw_status fill_slots(layout *l, twi_buffer **small, int count, tw_error *error)
{
    slots *s = twi_alloc(sizeof *s);
    twi_buffer **ending = twi_alloc_array((size_t)count + 1, sizeof *ending);
    bool fits = s && ending;
    if (fits && count) {
        memcpy(ending, small, sizeof *ending * (size_t)count);
        qsort(small, (size_t)count, sizeof *small, by_first);
        qsort(ending, (size_t)count, sizeof *ending, by_last);
    }
    for (int i = 0, ended = 0; i < count && fits; i++) {
        while ((int64_t)ending[ended]->last + l->later < small[i]->first)
            give_slot(s, ending[ended++]);
        fits = take_slot(l, s, small[i]);
    }
    for (int i = 0; i < SLOT_SIZES && s; i++)
        twi_array_free(&s->empty[i]);
    twi_free(s);
    twi_free(ending);
    return fits ? TW_OK : twi_fail_memory(error, "planning memory");
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void keep_constants(twi_planning *p, twi_buffer **all, int count)
{
    for (int i = 0; i < count; i++)
        if (all[i]->place == TWI_IN_KEPT) {
            twi_list *list = &p->plan->lists[all[i]->device];
            all[i]->offset = list->kept_bytes;
            list->kept_bytes += align(all[i]->bytes);
        }
}

static tw_status lay_out(twi_planning *p, twi_buffer **all, int count, layout *layouts)
{
    tw_status status = TW_OK;
    twi_buffer **small = twi_alloc_array((size_t)count + 1, sizeof *small);
    if (!small)
        return twi_fail_memory(p->error, "planning memory");
    keep_constants(p, all, count);
    if (count)
        qsort(all, (size_t)count, sizeof *all, by_size);
    for (int i = 0; i < count; i++)
        if (all[i]->place == TWI_IN_ARENA && all[i]->bytes > 0 && layouts[all[i]->device].count < MOST_PAIRED)
            insert(&layouts[all[i]->device], all[i]);
        else if (all[i]->place == TWI_IN_ARENA && all[i]->bytes > 0)
            layouts[all[i]->device].num_small++;
    for (int d = 0; d < p->plan->num_lists && status == TW_OK; d++) {
        int placed = 0, found = 0;
        for (int i = 0; i < count && found < layouts[d].num_small; i++)
            if (all[i]->place == TWI_IN_ARENA && all[i]->bytes > 0 && all[i]->device == d && placed++ >= MOST_PAIRED)
                small[found++] = all[i];
        status = fill_slots(&layouts[d], small, found, p->error);
        p->plan->lists[d].arena_bytes = layouts[d].bytes;
    }
    twi_free(small);
    return status;
}

/* One workspace a device, as large as the hungriest kernel wants: kernels of a device run one after another. Where they
 * do not there are some, taken in turn, and loops that run side by side have one each. */
static void add_workspaces(twi_planning *p)
{
    const twi_region *region = p->rewriting.region;
    for (int id = 0; id < region->nodes.count; id++) {
        const twi_node *node = region->nodes.items[id];
        twi_list *list = &p->plan->lists[node->device];
        size_t bytes = align(node->task->workspace_bytes);
        if (!bytes)
            continue;
        node->task->workspace =
            p->groups[node->device] < 0 ? node->task->seat : list->num_workspaces++ % TWI_WORKSPACES;
        size_t *most = &list->workspaces[node->task->workspace];
        *most = bytes > *most ? bytes : *most;
    }
    for (int d = 0; d < p->plan->num_lists; d++) {
        twi_list *list = &p->plan->lists[d];
        for (int i = 0; i < TWI_WORKSPACES; i++) {
            size_t bytes = list->workspaces[i];
            list->workspaces[i] = list->arena_bytes;
            list->arena_bytes += bytes;
        }
    }
}

tw_status twi_assign_memory(twi_planning *p)
{
    const twi_region *region = p->rewriting.region;
    int outputs = 0, count = 0, devices = p->plan->num_lists;
    tw_status status = TW_OK;
    for (int id = 0; id < region->nodes.count; id++)
        outputs += region->nodes.items[id]->num_results;
    lives l = {twi_alloc_array((size_t)region->nodes.count + 1, sizeof *l.last)};
    twi_buffer **all = twi_alloc_array((size_t)outputs + 1, sizeof *all);
    size_t most = outputs < MOST_PAIRED ? (size_t)outputs + 1 : MOST_PAIRED;
    placed *live = twi_alloc_array(most * (size_t)devices, sizeof *live);
    layout *layouts = twi_alloc_array((size_t)devices, sizeof *layouts);
    if (!l.last || !all || !live || !layouts)
        TWI_LEAVE(twi_fail_memory(p->error, "planning memory"));
    for (int d = 0; d < devices; d++) {
        layouts[d].placed = live + (size_t)d * most;
        layouts[d].later = p->groups[d] < 0 ? 0 : LATER;
    }
    TWI_TRY(find_lives(p, &l));
    TWI_TRY(make_buffers(p, &l, all, &count));
    TWI_TRY(lay_out(p, all, count, layouts));
    add_workspaces(p);
    for (int d = 0; d < devices; d++)
        p->plan->info.arena_bytes += (int64_t)p->plan->lists[d].arena_bytes;
done:
    twi_free(l.last);
    twi_free(all);
    twi_free(live);
    twi_free(layouts);
    return status;
}
