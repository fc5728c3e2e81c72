/* usage.c - who holds which memory of a plan: constants, and the arena at the moment when it is fullest. */
#include "plan/stages.h"

#include <string.h>

static bool add(twi_memory_items *items, tw_memory_use use, const char *name, const char *op, size_t bytes)
{
    return twi_push(items, (tw_memory_item){use, name, op, (int64_t)bytes});
}

/* Calls `visit` with every buffer on a device, once each, in the order in which they are made. */
static tw_status each_buffer(const twi_plan *plan, int device, tw_status (*visit)(void *user, const twi_buffer *b),
                             void *user)
{
    const twi_list *list = &plan->lists[device];
    tw_status status = TW_OK;
    for (int k = 0; k < list->count && status == TW_OK; k++) {
        const twi_node *node = list->nodes[k];
        for (int i = 0; i < node->num_results && status == TW_OK; i++) {
            const twi_buffer *b = node->task->outputs[i];
            if (b->maker == node && b->bytes > 0)
                status = visit(user, b);
        }
    }
    return status;
}

typedef struct listing {
    const twi_plan *plan;
    twi_memory_items *items;
    int64_t *changes;      /* [steps + 2] of what is live, by position + 1: before the first step, then after each */
    int steps;
    int fullest;           /* position */
    size_t live;           /* bytes then */
} listing;

/* ---- constants ------------------------------------------------------------------------------------------------- */

static tw_status list_constant(void *user, const twi_buffer *b)
{
    listing *l = user;
    bool listed = b->place != TWI_IN_KEPT ||
                  add(l->items, TW_MEMORY_CONSTANT, b->maker->name, b->maker->op->name, twi_buffer_room(b));
    return listed ? TW_OK : TW_RESOURCE_EXHAUSTED;
}

tw_status twi_plan_list_constants(const twi_plan *plan, int device, twi_memory_items *items, tw_error *error)
{
    listing l = {.plan = plan, .items = items};
    return each_buffer(plan, device, list_constant, &l) == TW_OK ? TW_OK : twi_fail_memory(error, "listing memory");
}

/* ---- the arena ------------------------------------------------------------------------------------------------- */

static tw_status note_life(void *user, const twi_buffer *b)
{
    listing *l = user;
    if (b->place != TWI_IN_ARENA)
        return TW_OK;
    l->changes[b->first + 1] += (int64_t)twi_buffer_room(b);
    if (b->last < l->steps - 1)
        l->changes[b->last + 2] -= (int64_t)twi_buffer_room(b);
    return TW_OK;
}

/* The first position at which most is live. */
static void find_fullest(listing *l)
{
    int64_t live = 0, most = 0;
    for (int i = 0; i <= l->steps; i++) {
        live += l->changes[i];
        if (live > most) {
            most = live;
            l->fullest = i - 1;
        }
    }
}

static bool is_input(const twi_node *node)
{
    while (twi_has_trait(node, TWI_COPY))
        node = node->inputs[0].node;
    return twi_has_trait(node, TWI_FEED | TWI_INPUT);
}

static tw_status list_live(void *user, const twi_buffer *b)
{
    listing *l = user;
    if (b->place != TWI_IN_ARENA || b->first > l->fullest || b->last < l->fullest)
        return TW_OK;
    l->live += twi_buffer_room(b);
    tw_memory_use use = is_input(b->maker) ? TW_MEMORY_INPUT : TW_MEMORY_BUFFER;
    return add(l->items, use, b->maker->name, b->maker->op->name, twi_buffer_room(b)) ? TW_OK : TW_RESOURCE_EXHAUSTED;
}

static const twi_node *hungriest(const twi_list *list)
{
    const twi_node *most = NULL;
    for (int i = 0; i < list->count; i++)
        if (list->nodes[i]->task->workspace_bytes > (most ? most->task->workspace_bytes : 0))
            most = list->nodes[i];
    return most;
}

tw_status twi_plan_list_arena(const twi_plan *plan, int device, twi_memory_items *items, const char **fullest,
                              tw_error *error)
{
    const twi_list *list = &plan->lists[device];
    const twi_node *most = hungriest(list);
    size_t workspace = list->arena_bytes - list->workspaces[0];
    listing l = {.plan = plan, .items = items, .steps = list->count};
    l.changes = twi_alloc_array((size_t)list->count + 2, sizeof *l.changes);
    bool listed = l.changes && each_buffer(plan, device, note_life, &l) == TW_OK;
    if (listed) {
        find_fullest(&l);
        listed = each_buffer(plan, device, list_live, &l) == TW_OK;
    }
    *fullest = list->count && list->arena_bytes ? list->nodes[l.fullest > 0 ? l.fullest : 0]->name : NULL;
    if (most && listed)
        listed = add(items, TW_MEMORY_WORKSPACE, most->name, most->op->name, workspace);
    if (listed && list->workspaces[0] > l.live)
        listed = add(items, TW_MEMORY_REST, NULL, NULL, list->workspaces[0] - l.live);
    twi_free(l.changes);
    return listed ? TW_OK : twi_fail_memory(error, "listing memory");
}
