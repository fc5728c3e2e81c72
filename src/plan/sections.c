/* sections.c - critical sections of one plan come one after the other.
 *
 * A section begins with a node that locks a mutex and ends with the one that gives the lock back. A list is walked by
 * one thread, which would wait for itself for ever if a second section of the mutex began before the first has ended.
 * So those of one mutex get an order, by control edges, that of the region, in which each comes after what it needs.
 * A loop with sections in its rounds is kept out of all others that it is no part of. A lock that nobody gives back,
 * because the section's end is not asked for, is given back at once: as TensorFlow does when nobody uses a lock. */
#include "plan/stages.h"

#include <string.h>

typedef struct section {
    twi_node *mutex;        /* NULL: whichever the rounds of a loop lock, */
    twi_node *first, *last; /* which it is itself */
} section;

typedef TWI_ARRAY(section) sections;

static bool has_role(const twi_node *node, char role)
{
    return node->op->roles && node->num_inputs && twi_op_role(node->op, &node->attrs, 0) == role;
}

/* Whether rounds of the loop lock something; of those that are planned when they come that is not known. */
static bool locks_inside(const twi_loop *loop)
{
    bool locks = loop->chained;
    for (int id = 0; loop->plan && id < loop->plan->region->nodes.count && !locks; id++) {
        const twi_node *node = loop->plan->region->nodes.items[id];
        locks = has_role(node, 'm') || (node->loop && locks_inside(node->loop));
    }
    return locks;
}

/* The node that gives the lock back; NULL: there is none. *crosses: the region gives it, so there may be one behind a
 * border. */
static twi_node *find_last(twi_value lock, bool *crosses)
{
    twi_node *last = NULL;
    for (const twi_edge *e = twi_uses_of(lock)->first; e && !last; e = e->next) {
        *crosses = *crosses || e->user == lock.node->region->end;
        if (has_role(e->user, 'k'))
            last = e->user;
        else if (twi_has_trait(e->user, TWI_PASSES))
            last = find_last(twi_out(e->user, (int)(e - e->user->inputs)), crosses);
    }
    for (const twi_edge *e = lock.node->followers.first; e; e = e->next)
        *crosses = *crosses || e->user == lock.node->region->end;
    return last;
}

/* Gives the lock back where nobody does, and lets the region need that. */
static twi_node *add_last(twi_node *lock)
{
    twi_region *region = lock->region;
    int count = region->end->num_inputs;
    twi_value out = twi_out(lock, 0);
    twi_value *wanted = twi_alloc_array((size_t)count + 1, sizeof *wanted);
    twi_node *made =
        wanted ? twi_node_like(region, lock, "/back", twi_op_find("ConsumeMutexLock"), &out, 1, NULL, 0) : NULL;
    for (int i = 0; i < count && made; i++)
        wanted[i] = twi_in(region->end, i);
    if (made)
        wanted[count] = twi_out(made, -1);
    if (!made || !twi_region_set_end(region, wanted, count + 1))
        twi_region_fail_memory(region);
    twi_free(wanted);
    return made;
}

static twi_node *mutex_of(const twi_node *lock)
{
    twi_value handle = twi_in(lock, 0);
    while (handle.node->num_inputs && handle.node->op->makes == TWI_MAKES_NOTHING)
        handle = twi_in(handle.node, twi_has_trait(handle.node, TWI_PASSES) ? handle.index : 0);
    return handle.node;
}

/* Two nodes may stand for one mutex, which they name. */
static bool is_same(const twi_node *a, const twi_node *b)
{
    static const char *const names[] = {"shared_name", "container"};
    bool same = a && b && *twi_attr_string(&a->attrs, "shared_name", "");
    for (int i = 0; i < 2 && same; i++)
        same = strcmp(twi_attr_string(&a->attrs, names[i], ""), twi_attr_string(&b->attrs, names[i], "")) == 0;
    return same || a == b || !a || !b;
}

/* In the order of the region. */
static bool list_sections(twi_region *region, sections *all)
{
    bool fits = true;
    for (twi_node *node = region->first; node && fits; node = node->next) {
        bool crosses = false, locks = has_role(node, 'm');
        section s = {.first = node, .last = node};
        if (locks) {
            s.mutex = mutex_of(node);
            s.last = find_last(twi_out(node, 0), &crosses);
        }
        if (!s.last && !crosses)
            fits = (s.last = add_last(node)) != NULL;
        if (s.last && (locks || (node->loop && locks_inside(node->loop))))
            fits = fits && twi_push(all, s);
    }
    return fits;
}

/* The first one comes first where that can be. A loop may be part of the other. */
static bool put_behind(const section *a, const section *b)
{
    bool loop = !a->mutex || !b->mutex;
    if (!is_same(a->mutex, b->mutex) || (!a->mutex && !b->mutex) || twi_leads_to(a->last, b->first) ||
        twi_leads_to(b->last, a->first))
        return true;
    if (loop && (twi_leads_to(a->first, b->first) || twi_leads_to(b->first, a->first)))
        return true;
    return twi_add_control(b->first, a->last) || twi_add_control(a->first, b->last);
}

/* Puts the i-th in its place among those before it, which have theirs: those of one mutex are in their order, so behind
 * the last of them that it comes after it comes after all. */
static bool put_in_place(sections *all, int i)
{
    section s = all->items[i];
    int at = i;
    bool fits = true, settled = false;
    for (int k = i - 1; k >= 0 && fits; k--) {
        const section *before = &all->items[k];
        bool own = before->mutex && s.mutex && is_same(before->mutex, s.mutex);
        if (own && settled)
            continue;
        fits = put_behind(before, &s);
        settled = settled || (own && twi_leads_to(before->last, s.first));
        at = own && !settled ? k : at;
        if (!fits)
            twi_region_fail(s.first->region, TW_INVALID_ARGUMENT, "critical sections '%s' and '%s' wait for each other",
                            before->first->name, s.first->name);
    }
    memmove(all->items + at + 1, all->items + at, sizeof s * (size_t)(i - at));
    all->items[at] = s;
    return fits;
}

tw_status twi_order_sections(twi_planning *p)
{
    twi_region *region = p->rewriting.region;
    sections all = {0};
    bool fits = list_sections(region, &all);
    for (int i = 0; i < all.count && fits; i++)
        fits = put_in_place(&all, i);
    tw_status status = twi_region_check(region, p->error);
    if (!fits && status == TW_OK)
        status = twi_fail_memory(p->error, "ordering critical sections");
    if (status == TW_OK && all.count)
        status = twi_region_sort(region, p->error);
    twi_array_free(&all);
    return status;
}
