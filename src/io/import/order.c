/* order.c - sorts a file's nodes, which may stand in any order, so that each comes behind what it takes. */
#include "io/import/import.h"

#include "base/memory.h"

static tw_status fail_cycle(twi_importer *m, const twi_import_item *item)
{
    return twi_fail(m->error, TW_INVALID_ARGUMENT,
                    "node '%s' (%s) depends on itself: the graph has a cycle that is not a loop's, which goes through "
                    "NextIteration to Merge",
                    item->def->name, item->def->op);
}

static bool is(const twi_import_item *item, unsigned trait)
{
    return item->op && !item->why && twi_op_is(item->op, trait);
}

bool twi_import_goes_back(const twi_importer *m, const twi_import_item *item, size_t input)
{
    const twi_import_item *from = &m->items[item->inputs[input].node];
    return is(item, TWI_MERGE) && input == 1 && item->inputs[input].index >= 0 && from->goes_on;
}

/* The k-th of those that come before: -1: none; -2: there are no more. Numbers from m->count on are loops as wholes: an
 * Exit comes behind all nodes of its loop. What nodes of no known op take is left out: they are built without, and any
 * cycle may go through them. */
static int before(const twi_importer *m, int at, int k, int *member)
{
    if (at >= m->count) {
        int found = *member = k == 0 ? m->members.items[at - m->count] : *member < 0 ? -1 : m->items[*member].next;
        return found < 0 ? -2 : m->items[found].idle ? -1 : found;
    }
    const twi_import_item *item = &m->items[at];
    int inputs = item->why ? 0 : (int)item->num_inputs;
    if (k < inputs)
        return twi_import_goes_back(m, item, (size_t)k) ? -1 : item->inputs[k].node;
    if (k == inputs && inputs && is(item, TWI_EXIT) && m->items[item->inputs[0].node].frame)
        return m->count + m->items[item->inputs[0].node].frame;
    return -2;
}

enum { MOST_LET_GO = 4096 };

/* A constant that a loop takes or has may wait for what comes of that loop: where an update is to come before the
 * gradients, TensorFlow has the count of rounds, from which they begin, wait for it, and so for the loop that counts.
 * There the other values of the loop go round without that count. Here a round has all of its values, so the constant
 * does not wait; what comes behind the loop still comes behind the update, for it takes other constants of that place.
 * STACK holds a cycle through a loop as a whole, each behind the next and the last behind the first. Gives the
 * constant's place there, or -1. */
static int begin_at_once(twi_importer *m, const int *stack, int depth)
{
    int found = -1;
    bool through_loop = false;
    for (int k = 0; k < depth; k++) {
        int user = stack[k ? k - 1 : depth - 1];
        through_loop = through_loop || stack[k] >= m->count;
        if (found < 0 && user < m->count && stack[k] < m->count && is(&m->items[stack[k]], TWI_CONSTANT) &&
            (is(&m->items[user], TWI_ENTER) || m->items[stack[k]].frame))
            found = k;
    }
    return through_loop ? found : -1;
}

/* What nobody takes is in no loop: no way out of it leads there. */
static tw_status leave_idle(twi_importer *m, int first)
{
    TWI_ARRAY(int) idle = {0};
    bool fits = twi_push(&idle, first);
    while (fits && idle.count) {
        twi_import_item *item = &m->items[idle.items[--idle.count]];
        item->idle = true;
        for (size_t k = 0; k < item->num_inputs && fits; k++)
            if (--m->users[item->inputs[k].node] == 0)
                fits = twi_push(&idle, item->inputs[k].node);
    }
    twi_array_free(&idle);
    return fits ? TW_OK : twi_import_fail_memory(m);
}

static tw_status let_go_of(twi_importer *m, twi_import_item *item, size_t input)
{
    int from = item->inputs[input].node;
    item->num_inputs--;
    memmove(item->inputs + input, item->inputs + input + 1, sizeof *item->inputs * (item->num_inputs - input));
    return --m->users[from] ? TW_OK : leave_idle(m, from);
}

/* So a file may have it that was written of a graph of which something was let go. */
static tw_status find_idle(twi_importer *m)
{
    tw_status status = TW_OK;
    m->users = twi_arena_alloc(&m->arena, sizeof *m->users * ((size_t)m->count + 1));
    if (!m->users)
        return twi_import_fail_memory(m);
    for (int i = 0; i < m->count; i++)
        for (size_t k = 0; k < m->items[i].num_inputs; k++)
            m->users[m->items[i].inputs[k].node]++;
    for (int i = 0; i < m->count && status == TW_OK; i++)
        if (m->items[i].frame && !m->users[i] && !m->items[i].idle)
            status = leave_idle(m, i);
    return status;
}

/* Depth first, so that a file that is in order keeps its order. */
static tw_status sort(twi_importer *m)
{
    enum { UNSEEN, OPEN, DONE };
    size_t all = (size_t)m->count + (size_t)m->frames.items.count;
    char *states = twi_arena_alloc(&m->arena, all);
    int *next = twi_arena_alloc(&m->arena, sizeof *next * all); /* which to look at */
    int *members = twi_arena_alloc(&m->arena, sizeof *members * all);
    int *stack = twi_arena_alloc(&m->arena, sizeof *stack * all), sorted = 0, let_go = 0;
    if (!states || !next || !stack || !members)
        return twi_import_fail_memory(m);
    for (int start = 0; start < m->count; start++) {
        int depth = 0;
        if (states[start] == UNSEEN)
            stack[depth++] = start;
        while (depth) {
            int at = stack[depth - 1], found = before(m, at, next[at], &members[at]);
            states[at] = OPEN;
            next[at]++;
            if (found == -2) {
                states[at] = DONE;
                if (at < m->count)
                    m->order[sorted++] = at;
                depth--;
            } else if (found >= 0 && states[found] == OPEN) {
                int first = depth - 1;
                while (stack[first] != found)
                    first--;
                int opened = let_go++ < MOST_LET_GO ? begin_at_once(m, stack + first, depth - first) : -1;
                if (opened < 0)
                    return fail_cycle(m, &m->items[at < m->count ? at : found < m->count ? found : start]);
                while (depth > first + opened + 1) { /* looked at for the constant's sake only */
                    states[stack[--depth]] = UNSEEN;
                    next[stack[depth]] = 0;
                }
                tw_status status = let_go_of(m, &m->items[stack[depth - 1]], (size_t)--next[stack[depth - 1]]);
                if (status != TW_OK)
                    return status;
            } else if (found >= 0 && states[found] == UNSEEN) {
                stack[depth++] = found;
            }
        }
    }
    return TW_OK;
}

/* The loop that an item is in, from those that it takes something of, which have been seen. */
static int frame_of(twi_importer *m, const twi_import_item *item)
{
    int frame = 0;
    for (size_t i = 0; i < item->num_inputs; i++)
        if (!twi_import_goes_back(m, item, i) && m->items[item->inputs[i].node].frame > frame)
            frame = m->items[item->inputs[i].node].frame;
    if (is(item, TWI_EXIT) && frame)
        frame = m->frames.items.items[frame].parent;
    for (int i = 0; i < item->num_attrs && is(item, TWI_ENTER); i++)
        if (strcmp(item->attrs[i].name, "frame_name") == 0 && item->attrs[i].kind == TW_ATTR_STRING)
            return twi_frame_number(&m->frames, frame, item->attrs[i].s.data);
    return frame;
}

/* Sorts, and once more if there are loops. */
tw_status twi_import_sort(twi_importer *m)
{
    bool any = false, fits = twi_push(&m->frames.items, ((twi_frame){.name = "", .parent = -1}));
    tw_status status = fits ? sort(m) : twi_import_fail_memory(m);
    for (int k = 0; k < m->count && status == TW_OK; k++) {
        twi_import_item *item = &m->items[m->order[k]];
        any = any || is(item, TWI_ENTER);
        item->frame = any ? frame_of(m, item) : 0;
        while (item->frame >= 0 && m->members.count < m->frames.items.count && fits)
            fits = twi_push(&m->members, -1);
        if (item->frame < 0 || !fits)
            return twi_import_fail_memory(m);
        item->next = m->members.items[item->frame];
        m->members.items[item->frame] = (int)(item - m->items);
    }
    if (status == TW_OK && any)
        status = find_idle(m);
    return status == TW_OK && any ? sort(m) : status;
}
