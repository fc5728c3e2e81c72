/* order.c - the topological order of a region's nodes, kept up to date.
 *
 * Nodes stand in a list and have numbers that grow along it, with room between. An edge that agrees with the order
 * costs a comparison. One that does not makes those that must come later move, which are looked for between the edge's
 * two ends only (as Pearce and Kelly keep an order, "A Dynamic Topological Sort Algorithm for Directed Acyclic Graphs",
 * 2006). */
#include "ir/ir.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ROOM (INT64_C(1) << 32) /* between neighbours at first */
#define LEAST (INT64_C(1) << 12) /* once there is none left */

/* ---- places ----------------------------------------------------------------------------------------------------- */

/* Moves the places of those behind `node` up until there is room again. */
static void make_room(twi_node *node)
{
    for (twi_node *next = node->next; next && next->place - node->place < LEAST; node = next, next = next->next)
        next->place = node->place + 2 * LEAST;
}

static void enlist(twi_region *region, twi_node *node, twi_node *before)
{
    twi_node *after = before ? before->next : region->first;
    node->previous = before;
    node->next = after;
    *(before ? &before->next : &region->first) = node;
    *(after ? &after->previous : &region->last) = node;
}

void twi_order_insert(twi_region *region, twi_node *node, twi_node *before)
{
    twi_node *after = before ? before->next : region->first;
    if (before && after && after->place - before->place < 2) {
        make_room(before);
    }
    node->place = before && after ? before->place + (after->place - before->place) / 2
                  : before        ? before->place + ROOM
                  : after         ? after->place - ROOM
                                  : 0;
    enlist(region, node, before);
}

void twi_order_remove(twi_region *region, twi_node *node)
{
    *(node->previous ? &node->previous->next : &region->first) = node->next;
    *(node->next ? &node->next->previous : &region->last) = node->previous;
    node->next = node->previous = NULL;
}

/* ---- paths ------------------------------------------------------------------------------------------------------ */

/* Puts who comes after the node, up to a place, on the stack, but for those that have been seen. True if one of them
 * has the goal's number. */
static bool push_users(twi_region *region, const twi_node *node, int64_t limit, unsigned goal)
{
    bool reached = false;
    for (int i = -1; i < node->num_results && !reached; i++)
        for (const twi_edge *e = twi_uses_of(twi_out(node, i))->first; e && !reached; e = e->next) {
            twi_node *user = e->user;
            if (user->place > limit || user->seen == region->epoch)
                continue;
            reached = user->goal == goal;
            user->seen = region->epoch;
            if (!reached && !twi_push(&region->stack, user)) {
                twi_region_fail_memory(region);
                reached = true; /* the answer that changes nothing */
            }
        }
    return reached;
}

/* Whether a path leads on from what is on the stack to a node with the goal's number; keeps what it meets in `found` if
 * that is wanted. */
static bool search(twi_region *region, int64_t limit, unsigned goal, bool keeps)
{
    bool reached = false;
    while (region->stack.count && !reached) {
        twi_node *node = region->stack.items[--region->stack.count];
        if (keeps && !twi_push(&region->found, node)) {
            twi_region_fail_memory(region);
            return true;
        }
        reached = push_users(region, node, limit, goal);
    }
    region->stack.count = 0;
    return reached;
}

static unsigned new_epoch(twi_region *region)
{
    return ++region->epoch;
}

bool twi_leads_to(const twi_node *from, const twi_node *to)
{
    twi_region *region = from->region;
    if (from == to)
        return true;
    if (from->place > to->place)
        return false;
    unsigned goal = new_epoch(region);
    ((twi_node *)to)->goal = goal;
    region->stack.count = 0;
    return push_users(region, from, to->place, goal) || search(region, to->place, goal, false);
}

bool twi_may_join(twi_node *const *nodes, int count)
{
    twi_region *region = count ? nodes[0]->region : NULL;
    int64_t limit = INT64_MIN;
    if (!region)
        return true;
    for (int i = 1; i < count; i++)
        if (nodes[i]->guard != nodes[0]->guard)
            return false;
    unsigned goal = new_epoch(region);
    for (int i = 0; i < count; i++) {
        nodes[i]->goal = nodes[i]->seen = goal; /* seen: an edge from one to another is no way through others */
        limit = nodes[i]->place > limit ? nodes[i]->place : limit;
    }
    region->stack.count = 0;
    for (int i = 0; i < count; i++)
        push_users(region, nodes[i], limit, UINT_MAX);
    for (int i = 0; i < count; i++)
        nodes[i]->seen = 0;
    return !search(region, limit, goal, false) && region->error.status == TW_OK;
}

static int by_place(const void *a, const void *b)
{
    const twi_node *x = *(twi_node *const *)a, *y = *(twi_node *const *)b;
    return (x->place > y->place) - (x->place < y->place);
}

bool twi_order_edge(twi_region *region, twi_node *before, twi_node *after)
{
    if (before->place < after->place)
        return true;
    if (before == after)
        return false;
    unsigned goal = new_epoch(region);
    before->goal = goal;
    region->stack.count = region->found.count = 0;
    after->seen = goal;
    if (!twi_push(&region->stack, after))
        return twi_region_fail_memory(region), false;
    if (search(region, before->place, goal, true))
        return false;
    qsort(region->found.items, (size_t)region->found.count, sizeof *region->found.items, by_place);
    for (int i = 0; i < region->found.count; i++) {
        twi_node *moved = region->found.items[i];
        twi_order_remove(region, moved);
        twi_order_insert(region, moved, before);
        before = moved;
    }
    return true;
}

/* ---- dropping what nobody needs ---------------------------------------------------------------------------------- */

static bool is_used(const twi_node *node)
{
    bool used = node->followers.first != NULL;
    for (int i = 0; i < node->num_results && !used; i++)
        used = node->results[i].uses.first != NULL;
    return used;
}

/* What only nodes looked at that are part of another now is part of that too: the middle of a chain. */
static void note_what_became(const twi_node *gone)
{
    for (int i = 0; i < gone->num_inputs && gone->became; i++) {
        twi_node *before = gone->inputs[i].node;
        if (before->gone && !before->became && before != gone->became)
            before->became = gone->became;
    }
}

/* Asks for the memory of a node that a walk along the list comes to soon: where it stood when the nodes were numbered
 * last is near enough. */
__attribute__((always_inline)) static inline void look_along(const twi_region *region, const twi_node *node, int step)
{
    enum { FAR = 12 };
    int64_t far = (int64_t)node->id + FAR * step;
    const twi_node *there = far >= 0 && far < region->nodes.count ? region->nodes.items[far] : NULL;
    if (!there)
        return;
    __builtin_prefetch(there);
    __builtin_prefetch((const char *)there + 64);
    __builtin_prefetch((const char *)there + 128);
}

/* Ids in the order of the list, with room between places. */
static void number(twi_region *region)
{
    int count = 0;
    for (twi_node *node = region->first; node; node = node->next) {
        look_along(region, node, 1);
        region->nodes.items[count] = node;
        node->id = count++;
        node->place = count * ROOM;
    }
    region->nodes.count = count;
}

/* Users come behind what they use, so from the end every node is met after all who might have needed it. */
void twi_region_sweep(twi_region *region)
{
    if (!region->touched)
        return;
    region->stack.count = 0;
    for (twi_node *node = region->last, *previous; node; node = previous) {
        previous = node->previous;
        look_along(region, node, -1);
        if (is_used(node))
            continue;
        if (!twi_push(&region->stack, node)) {
            twi_region_fail_memory(region);
            return;
        }
        twi_node_drop(node);
    }
    for (int i = 0; i < region->stack.count; i++)
        note_what_became(region->stack.items[i]);
    region->stack.count = 0;
    number(region);
    region->touched = false;
}

/* ---- sorting ----------------------------------------------------------------------------------------------------- */

/* A binary heap of nodes, smallest (rank, id) on top. */
static bool comes_first(const twi_node *a, const twi_node *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->id < b->id;
}

static void heap_push(twi_node **heap, int *count, twi_node *node)
{
    int i = (*count)++;
    for (; i > 0 && comes_first(node, heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = node;
}

static twi_node *heap_pop(twi_node **heap, int *count)
{
    twi_node *top = heap[0], *last = heap[--*count];
    int i = 0;
    for (int child; (child = 2 * i + 1) < *count; i = child) {
        child += child + 1 < *count && comes_first(heap[child + 1], heap[child]);
        if (comes_first(last, heap[child]))
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

/* Then nothing is to be done: what comes next is always the lowest of those that are left. */
static bool is_sorted(const twi_region *region)
{
    bool sorted = true;
    for (int id = 1; id < region->nodes.count && sorted; id++)
        sorted = region->nodes.items[id - 1]->rank <= region->nodes.items[id]->rank;
    return sorted;
}

/* Puts the nodes into the order in which they stand in `nodes`. */
static void relist(twi_region *region)
{
    twi_node *before = NULL;
    region->first = region->last = NULL;
    for (int i = 0; i < region->nodes.count; i++) {
        enlist(region, region->nodes.items[i], before);
        before = region->nodes.items[i];
    }
    number(region);
}

tw_status twi_region_sort(twi_region *region, tw_error *error)
{
    tw_status status = twi_region_check(region, error);
    int ready = 0, sorted = 0;
    if (status != TW_OK)
        return status;
    twi_region_sweep(region);
    if (is_sorted(region))
        return twi_region_check(region, error);
    int n = region->nodes.count;
    twi_node **heap = twi_alloc_array((size_t)n + 1, sizeof *heap), **order = twi_alloc_array((size_t)n + 1, sizeof *order);
    int *missing = twi_alloc_array((size_t)n + 1, sizeof *missing); /* dependencies not yet placed */
    if (!heap || !order || !missing)
        TWI_LEAVE(twi_fail_memory(error, "sorting a plan"));
    TWI_TRY(twi_region_check(region, error));
    for (int i = 0; i < n; i++)
        if ((missing[i] = twi_num_dependencies(region->nodes.items[i])) == 0)
            heap_push(heap, &ready, region->nodes.items[i]);
    while (ready) {
        const twi_node *node = order[sorted++] = heap_pop(heap, &ready);
        for (int i = -1; i < node->num_results; i++)
            for (const twi_edge *e = twi_uses_of(twi_out(node, i))->first; e; e = e->next)
                if (e->user != region->end && --missing[e->user->id] == 0)
                    heap_push(heap, &ready, e->user);
    }
    if (sorted < n)
        TWI_LEAVE(twi_fail(error, TW_INTERNAL, "nodes of a plan depend on themselves"));
    memcpy(region->nodes.items, order, sizeof *order * (size_t)n);
    relist(region);
done:
    twi_free(heap);
    twi_free(order);
    twi_free(missing);
    return status;
}

typedef struct keyed {
    int64_t key, tie;
    twi_node *node;
} keyed;

static int by_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->tie != y->tie)
        return x->tie < y->tie ? -1 : 1;
    return (x->node->id > y->node->id) - (x->node->id < y->node->id);
}

tw_status twi_region_sort_by(twi_region *region, const int64_t *keys, const int64_t *ties, tw_error *error)
{
    int count = region->nodes.count;
    keyed *sorted = twi_alloc_array((size_t)count + 1, sizeof *sorted);
    if (!sorted)
        return twi_fail_memory(error, "ordering a plan");
    for (int id = 0; id < count; id++)
        sorted[id] = (keyed){keys[id], ties ? ties[id] : 0, region->nodes.items[id]};
    qsort(sorted, (size_t)count, sizeof *sorted, by_key);
    for (int id = 0; id < count; id++)
        region->nodes.items[id] = sorted[id].node;
    relist(region);
    twi_free(sorted);
    return TW_OK;
}
