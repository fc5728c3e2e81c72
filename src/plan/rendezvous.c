/* rendezvous.c - nodes that meet: one on each device, all of one name, that do together what none can do alone.
 *
 * Lists are walked in order, so who comes to a rendezvous late holds up those who wait there, and two of them in
 * another order on two devices would wait for each other for ever. Here the members of one become neighbours in the
 * order of the plan: all of them come after what any of them needs, and who uses the result of one comes after all of
 * them. So whatever lies before it can be done without it, on every device.
 *
 * A member becomes two nodes: one that starts the work, as early as may be, and one just before the result is used,
 * which waits for it and until then keeps the memory that is worked in. */
#include "plan/stages.h"

#include <string.h>

/* The members of one rendezvous, in order of devices. */
typedef struct rendezvous {
    twi_node **members, **starts; /* [count] */
    int64_t *devices;
    int count;
    int rank;                    /* the latest member's */
} rendezvous;

static bool is_member(const twi_node *node)
{
    return twi_has_trait(node, TWI_COLLECTIVE);
}

static const char *name_of(const twi_node *member)
{
    return twi_attr_string(&member->attrs, "shared_name", "");
}

static tw_status check_shape(const twi_node *a, const twi_node *b, tw_error *error)
{
    char x[96], y[96];
    if (tw_shape_equal(twi_shape(twi_out(a, 0)), twi_shape(twi_out(b, 0))))
        return TW_OK;
    return twi_fail(error, TW_INVALID_ARGUMENT, "'%s' and '%s' reduce '%s' together and have shapes %s and %s", a->name,
                    b->name, name_of(a), tw_shape_text(twi_shape(twi_out(a, 0)), x, sizeof x),
                    tw_shape_text(twi_shape(twi_out(b, 0)), y, sizeof y));
}

static tw_status check_attrs(const twi_node *a, const twi_node *b, tw_error *error)
{
    static const char *const names[] = {"T", "reduction", "num_devices"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!twi_attr_equal(twi_attr_find(&a->attrs, names[i]), twi_attr_find(&b->attrs, names[i])))
            return twi_fail(error, TW_INVALID_ARGUMENT, "'%s' and '%s' reduce '%s' together and differ in %s", a->name,
                            b->name, name_of(a), names[i]);
    return TW_OK;
}

static tw_status add_member(const twi_planning *p, rendezvous *m, twi_node *node)
{
    int i = m->count;
    for (int k = 0; k < m->count; k++)
        if (m->members[k]->device == node->device)
            return twi_fail(p->error, TW_INVALID_ARGUMENT,
                            "'%s' and '%s' reduce '%s' together and are both on %s: each needs a device of its own",
                            m->members[k]->name, node->name, name_of(node),
                            p->request->devices->items[node->device]->text);
    for (; i > 0 && m->members[i - 1]->device > node->device; i--)
        m->members[i] = m->members[i - 1];
    m->members[i] = node;
    m->count++;
    m->rank = node->rank > m->rank ? node->rank : m->rank;
    return TW_OK;
}

/* Those that come together are in a list, in order of the region: next[id] is the one behind a node, -1 the end. */
static tw_status gather(const twi_planning *p, twi_node *first, const int *next, rendezvous *m)
{
    tw_status status = TW_OK;
    m->count = 0;
    m->rank = first->rank;
    for (int id = first->id; id >= 0; id = next[id]) {
        twi_node *node = p->rewriting.region->nodes.items[id];
        TWI_TRY(check_attrs(first, node, p->error));
        TWI_TRY(check_shape(first, node, p->error));
        TWI_TRY(add_member(p, m, node));
    }
    int64_t expected = twi_attr_int(&first->attrs, "num_devices", 0);
    if (m->count != expected)
        TWI_LEAVE(twi_fail(p->error, TW_INVALID_ARGUMENT,
                           "%d of the %lld nodes that reduce '%s' together are part of this step", m->count,
                           (long long)expected, name_of(first)));
    for (int i = 0; i < m->count; i++)
        m->devices[i] = m->members[i]->device;
done:
    return status;
}

/* The member with its rank, and who the others are. */
static twi_node *make_start(twi_planning *p, const rendezvous *m, int rank)
{
    const twi_node *member = m->members[rank];
    twi_region *region = p->rewriting.region;
    twi_value input = twi_in(member, 0);
    int count = member->attrs.count;
    tw_attr *attrs = twi_arena_alloc(&region->arena, sizeof *attrs * (size_t)(count + 2));
    if (!attrs)
        return NULL;
    memcpy(attrs, member->attrs.items, sizeof *attrs * (size_t)count);
    attrs[count] = tw_attr_int("_rank", rank);
    attrs[count + 1] = tw_attr_ints("_members", m->devices, m->count);
    twi_node *start = twi_node_like(region, member, "/start", member->op, &input, 1, attrs, count + 2);
    if (start)
        start->rank = m->rank;
    return start;
}

/* As late as may be: where the first who uses the result is. */
static int rank_of_users(twi_value value, int otherwise)
{
    int rank = INT_MAX;
    for (const twi_edge *e = twi_uses_of(value)->first; e; e = e->next)
        if (e->user != value.node->region->end)
            rank = e->user->rank < rank ? e->user->rank : rank;
    return rank < INT_MAX ? rank : otherwise;
}

static twi_node *make_done(twi_planning *p, const rendezvous *m, int rank)
{
    twi_node *member = m->members[rank], *start = m->starts[rank];
    twi_value inputs[] = {twi_out(start, 0), twi_in(member, 0)}, old = twi_out(member, 0);
    twi_node *done = twi_node_like(p->rewriting.region, member, "/done", twi_op_find("_NcclDone"), inputs, 2,
                                   start->attrs.items, start->attrs.count);
    if (!done)
        return NULL;
    done->rank = rank_of_users(old, member->rank);
    twi_replace(old, twi_out(done, 0));
    return done;
}

/* Why a node could not be made, or led behind another. */
static tw_status fail(const twi_planning *p)
{
    tw_status status = twi_region_check(p->rewriting.region, p->error);
    return status == TW_OK
               ? twi_fail(p->error, TW_INVALID_ARGUMENT, "reductions of several devices wait for each other")
               : status;
}

/* Whether all starts can come after all that any member needs. */
static bool put_starts_after_needs(const rendezvous *m)
{
    bool fits = true;
    for (int i = 0; i < m->count && fits; i++)
        for (int k = 0; k < m->count && fits; k++) {
            fits = twi_add_control(m->starts[i], m->members[k]->inputs[0].node);
            for (int c = 0; c < m->members[k]->num_controls && fits; c++)
                fits = twi_add_control(m->starts[i], m->members[k]->controls[c]->node);
        }
    return fits;
}

static tw_status arrange(twi_planning *p, const rendezvous *m)
{
    for (int i = 0; i < m->count; i++)
        if (!(m->starts[i] = make_start(p, m, i)))
            return fail(p);
    if (!put_starts_after_needs(m))
        return fail(p);
    for (int i = 0; i < m->count; i++) {
        twi_node *done = make_done(p, m, i);
        bool fits = done != NULL;
        for (int k = 0; k < m->count && fits; k++)
            fits = twi_add_control(done, m->starts[k]);
        if (!fits)
            return fail(p);
        twi_move_controls(m->members[i], done);
    }
    return TW_OK;
}

bool twi_share_rendezvous(const twi_node *node, const twi_node *before)
{
    int count;
    const int64_t *devices = twi_attr_ints(&node->attrs, "_members", &count);
    for (int i = 0; i < count; i++)
        if (devices[i] == before->device)
            return true;
    return false;
}

/* first[id]: whether the node is the first of its rendezvous; next[id]: who follows it there. */
static tw_status list_members(twi_planning *p, bool *first, int *next)
{
    const twi_region *region = p->rewriting.region;
    twi_map last = {0}; /* by name: the node that came last */
    tw_status status = TW_OK;
    for (int id = 0; id < region->nodes.count && status == TW_OK; id++) {
        twi_node *node = region->nodes.items[id];
        next[id] = -1;
        if (!is_member(node))
            continue;
        const twi_node *before = twi_map_get(&last, name_of(node));
        first[id] = !before;
        if (before)
            next[before->id] = id;
        if (!twi_map_put(&last, name_of(node), node))
            status = twi_fail_memory(p->error, "arranging a rendezvous");
    }
    twi_map_free(&last);
    return status;
}

tw_status twi_rendezvous(twi_planning *p)
{
    twi_region *region = p->rewriting.region;
    int n = region->nodes.count;
    size_t most = (size_t)p->request->devices->count;
    bool any = false, *first = twi_alloc_array((size_t)n + 1, sizeof *first);
    int *next = twi_alloc_array((size_t)n + 1, sizeof *next);
    tw_status status = TW_OK;
    rendezvous m = {.members = twi_alloc_array(most, sizeof(twi_node *)),
                    .starts = twi_alloc_array(most, sizeof(twi_node *)),
                    .devices = twi_alloc_array(most, sizeof *m.devices)};
    if (!first || !next || !m.members || !m.starts || !m.devices)
        TWI_LEAVE(twi_fail_memory(p->error, "arranging a rendezvous"));
    TWI_TRY(list_members(p, first, next));
    for (int id = 0; id < n; id++) {
        if (!first[id])
            continue;
        TWI_TRY(gather(p, region->nodes.items[id], next, &m));
        TWI_TRY(arrange(p, &m));
        any = true;
    }
    if (any)
        status = twi_region_sort(region, p->error);
done:
    twi_free(first);
    twi_free(next);
    twi_free(m.members);
    twi_free(m.starts);
    twi_free(m.devices);
    return status;
}
