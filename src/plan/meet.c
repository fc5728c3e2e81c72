/* meet.c - nodes that meet: one on each device, all of one name, that do together what none can do alone.
 *
 * Lists are walked in order, so who comes to a meeting late holds up those who wait there, and two meetings in another
 * order on two devices would wait for each other for ever. Here the members of a meeting become neighbours in the order
 * of the plan: all of them come after what any of them needs, and who uses the result of one comes after all of them. So
 * whatever lies before a meeting can be done without it, on every device.
 *
 * A member becomes two nodes: one that starts the work, as early as may be, and one just before the result is used, which
 * waits for it and until then keeps the memory that is worked in. */
#include "plan/plan.h"

#include <string.h>

/* The members of one meeting, in order of devices. */
typedef struct meeting {
    tw_node **members, **starts; /* [count] */
    int64_t *devices;
    int count;
    int order;                   /* the latest member's */
} meeting;

static bool is_member(const tw_node *node)
{
    return strcmp(node->op->name, "NcclAllReduce") == 0;
}

static const char *name_of(const tw_node *member)
{
    return twi_attr_string(&member->attrs, "shared_name", "");
}

static tw_status check_shape(const tw_node *a, const tw_node *b, tw_error *error)
{
    char x[96], y[96];
    if (tw_shape_equal(a->output_shapes[0], b->output_shapes[0]))
        return TW_OK;
    return twi_fail(error, TW_INVALID_ARGUMENT, "'%s' and '%s' reduce '%s' together and have shapes %s and %s", a->name,
                    b->name, name_of(a), tw_shape_text(a->output_shapes[0], x, sizeof x),
                    tw_shape_text(b->output_shapes[0], y, sizeof y));
}

static tw_status check_attrs(const tw_node *a, const tw_node *b, tw_error *error)
{
    static const char *const names[] = {"T", "reduction", "num_devices"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!twi_attr_equal(twi_attr_find(&a->attrs, names[i]), twi_attr_find(&b->attrs, names[i])))
            return twi_fail(error, TW_INVALID_ARGUMENT, "'%s' and '%s' reduce '%s' together and differ in %s", a->name,
                            b->name, name_of(a), names[i]);
    return TW_OK;
}

static tw_status add_member(meeting *m, tw_node *node, tw_error *error)
{
    int i = m->count;
    for (int k = 0; k < m->count; k++)
        if (m->members[k]->assigned == node->assigned)
            return twi_fail(error, TW_INVALID_ARGUMENT,
                            "'%s' and '%s' reduce '%s' together and are both on %s: each needs a device of its own",
                            m->members[k]->name, node->name, name_of(node), node->device);
    for (; i > 0 && m->members[i - 1]->assigned > node->assigned; i--)
        m->members[i] = m->members[i - 1];
    m->members[i] = node;
    m->count++;
    m->order = node->order > m->order ? node->order : m->order;
    return TW_OK;
}

/* All that meet `first`, which is the first of them in the graph. */
static tw_status gather(const twi_planning *p, tw_node *first, meeting *m)
{
    const tw_graph *graph = p->rewriting.graph;
    tw_status status = TW_OK;
    m->count = 0;
    m->order = first->order;
    for (int id = first->id; id < graph->nodes.count && status == TW_OK; id++) {
        tw_node *node = graph->nodes.items[id];
        if (!is_member(node) || strcmp(name_of(node), name_of(first)) != 0)
            continue;
        TWI_TRY(check_attrs(first, node, p->error));
        TWI_TRY(check_shape(first, node, p->error));
        TWI_TRY(add_member(m, node, p->error));
    }
    int64_t expected = twi_attr_int(&first->attrs, "num_devices", 0);
    if (m->count != expected)
        TWI_TRY(twi_fail(p->error, TW_INVALID_ARGUMENT, "%d of the %lld nodes that reduce '%s' together are part of this step",
                         m->count, (long long)expected, name_of(first)));
    for (int i = 0; i < m->count; i++)
        m->devices[i] = m->members[i]->assigned;
done:
    return status;
}

/* The member with its rank, and who the others are. */
static tw_node *make_start(twi_planning *p, const meeting *m, int rank)
{
    const tw_node *member = m->members[rank];
    int count = member->attrs.count;
    tw_attr *attrs = twi_arena_alloc(&p->rewriting.graph->arena, sizeof *attrs * (size_t)(count + 2));
    if (!attrs)
        return NULL;
    memcpy(attrs, member->attrs.items, sizeof *attrs * (size_t)count);
    attrs[count] = tw_attr_int("_rank", rank);
    attrs[count + 1] = tw_attr_ints("_members", m->devices, m->count);
    tw_node *start = twi_rewrite_node(&p->rewriting, member, "/start", member->op->name, member->inputs, 1, attrs, count + 2);
    if (start)
        start->order = m->order;
    return start;
}

/* As late as may be: where the first who uses the result is. */
static int order_of_users(const twi_rewriting *r, tw_output output, int otherwise)
{
    int order = INT_MAX;
    const tw_node *user;
    for (int i = 0; (user = twi_rewrite_user(r, output, i)); i++)
        order = user->order < order ? user->order : order;
    return order < INT_MAX ? order : otherwise;
}

static tw_node *make_done(twi_planning *p, const meeting *m, int rank)
{
    tw_node *member = m->members[rank], *start = m->starts[rank];
    tw_output inputs[] = {{start, 0}, member->inputs[0]}, old = {member, 0};
    tw_node *done = twi_rewrite_node(&p->rewriting, member, "/done", "_NcclDone", inputs, 2, start->attrs.items,
                                     start->attrs.count);
    if (!done)
        return NULL;
    done->order = order_of_users(&p->rewriting, old, member->order);
    twi_rewrite_replace(&p->rewriting, old, (tw_output){done, 0});
    return done;
}

/* Why a node could not be made. */
static tw_status fail(const twi_planning *p)
{
    const tw_error *why = &p->rewriting.graph->error;
    return why->status == TW_OK ? twi_fail_memory(p->error, "arranging a meeting")
                                : twi_fail(p->error, why->status, "%s", why->message);
}

static tw_status arrange(twi_planning *p, const meeting *m)
{
    twi_rewriting *r = &p->rewriting;
    for (int i = 0; i < m->count; i++)
        if (!(m->starts[i] = make_start(p, m, i)))
            return fail(p);
    for (int i = 0; i < m->count; i++)
        for (int k = 0; k < m->count; k++) {
            twi_rewrite_add_control(r, m->starts[i], m->members[k]->inputs[0].node);
            for (int c = 0; c < m->members[k]->num_control_inputs; c++)
                twi_rewrite_add_control(r, m->starts[i], m->members[k]->control_inputs[c]);
        }
    for (int i = 0; i < m->count; i++) {
        tw_node *done = make_done(p, m, i);
        if (!done)
            return fail(p);
        for (int k = 0; k < m->count; k++)
            twi_rewrite_add_control(r, done, m->starts[k]);
        twi_rewrite_move_controls(r, m->members[i], done);
    }
    return TW_OK;
}

static bool was_met(const tw_graph *graph, const tw_node *node)
{
    for (int id = 0; id < node->id; id++)
        if (is_member(graph->nodes.items[id]) && strcmp(name_of(graph->nodes.items[id]), name_of(node)) == 0)
            return true;
    return false;
}

bool twi_meets(const tw_node *node, const tw_node *before)
{
    int count;
    const int64_t *devices = twi_attr_ints(&node->attrs, "_members", &count);
    for (int i = 0; i < count; i++)
        if (devices[i] == before->assigned)
            return true;
    return false;
}

tw_status twi_meet(twi_planning *p)
{
    tw_graph *graph = p->rewriting.graph;
    int n = graph->nodes.count;
    size_t most = (size_t)p->request->devices->count;
    bool any = false;
    tw_status status = TW_OK;
    meeting m = {.members = twi_alloc_array(most, sizeof(tw_node *)), .starts = twi_alloc_array(most, sizeof(tw_node *)),
                 .devices = twi_alloc_array(most, sizeof *m.devices)};
    if (!m.members || !m.starts || !m.devices)
        TWI_TRY(twi_fail_memory(p->error, "arranging meetings"));
    for (int id = 0; id < n; id++) {
        tw_node *node = graph->nodes.items[id];
        if (!is_member(node) || was_met(graph, node))
            continue;
        TWI_TRY(gather(p, node, &m));
        TWI_TRY(arrange(p, &m));
        any = true;
    }
    if (any)
        status = twi_rewrite_clean(&p->rewriting, p->error);
done:
    twi_free(m.members);
    twi_free(m.starts);
    twi_free(m.devices);
    return status;
}
