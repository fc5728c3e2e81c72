/* beside.c - loops that need nothing of each other, side by side on the threads of one device.
 *
 * The nodes of a loop's round are often too small for a team: then a loop is the work of one thread, as a recurrent
 * network's. Where two loops need nothing of each other, as those of a network that reads in both directions and those
 * of its gradients, each thread may have one. Here such loops become neighbours in the order of the plan: what lies
 * between them goes before them, but what comes of one of them behind all. That is a topological order again, one for
 * all devices, so what one of them waits for waits for none of them. Memory is given to them as to one step
 * (memory.c), and they run as the shares of one parallel region (run/loop.c): whoever of the team comes takes one, and
 * kernels within do alone what else they would share. So who came decides no bit, and a loop that nobody comes for
 * waits for its turn.
 *
 * Loops run side by side change nothing but stacks and arrays, none of which two of them have, and streams of random
 * numbers, each of which is one node's. */
#include "plan/stages.h"

enum {
    MOST_ASKED = 16,   /* loops that are asked whether they go with one */
    SMALL = 256 << 10, /* bytes that a node works on, so few that a team does not help it much */
};

typedef struct group {
    twi_node *loops[TWI_WORKSPACES]; /* each has a workspace */
    int count;
} group;

/* ---- which loops ------------------------------------------------------------------------------------------------- */

/* Whether a node changes nothing that another loop's may look at: of what may not be dropped the planner's own nodes,
 * those that are there for their order, reads of variables, stacks and arrays, and draws of random numbers. */
static bool is_harmless(const twi_node *node)
{
    const twi_op *op = node->op;
    bool plain = !op->roles && op->makes == TWI_MAKES_NOTHING;
    bool known = plain && (twi_op_is(op, TWI_REWRITTEN) || node->num_inputs + node->num_results == 0 ||
                           twi_attr_find(&node->attrs, "seed2"));
    bool keeps = node->series || twi_op_is(op, TWI_PUTS | TWI_TAKES | TWI_COUNTS);
    return !twi_op_is(op, TWI_STATEFUL) || known || keeps || twi_makes_variable(node) || twi_op_only_reads(op);
}

/* Whether all of a round is one list's, and its nodes may run beside others. */
static bool is_round_harmless(const twi_loop *loop)
{
    if (loop->device < 0 || loop->spans)
        return false;
    const twi_region *region = loop->plan->region;
    bool harmless = true;
    for (int id = 0; id < region->nodes.count && harmless; id++) {
        const twi_node *node = region->nodes.items[id];
        harmless = node->loop ? is_round_harmless(node->loop) : is_harmless(node) && !node->task->own_team;
    }
    return harmless;
}

/* Whether some node of a round works on much. */
static bool has_large_node(const twi_loop *loop)
{
    const twi_region *region = loop->plan->region;
    bool large = false;
    for (int id = 0; id < region->nodes.count && !large; id++) {
        const twi_node *node = region->nodes.items[id];
        size_t bytes = 0;
        for (int i = 0; i < node->num_inputs + node->num_results && !twi_task_shares(node->task); i++)
            bytes += node->task->operands[i].bytes;
        large = node->loop ? has_large_node(node->loop) : bytes > SMALL;
    }
    return large;
}

/* Threads of the loop's device that may have a loop each. */
static int count_threads(const twi_planning *p, const twi_node *node)
{
    return p->request->one_thread ? 1 : p->request->devices->items[node->device]->threads;
}

static bool may_run_beside(const twi_planning *p, const twi_node *node)
{
    return node->loop && !node->task->seats && count_threads(p, node) > 1 && is_round_harmless(node->loop);
}

/* ---- which go together ------------------------------------------------------------------------------------------- */

/* Whether a round, or one in it, works on the stack or array. */
static bool works_on(const twi_loop *loop, const twi_series_facts *series)
{
    const twi_region *region = loop->plan->region;
    bool works = false;
    for (int id = 0; id < region->nodes.count && !works; id++) {
        const twi_node *node = region->nodes.items[id];
        works = node->series == series || (node->loop && works_on(node->loop, series));
    }
    return works;
}

static bool share_series(const twi_loop *a, const twi_loop *b)
{
    const twi_region *region = a->plan->region;
    bool share = false;
    for (int id = 0; id < region->nodes.count && !share; id++) {
        const twi_node *node = region->nodes.items[id];
        share = (node->series && works_on(b, node->series)) || (node->loop && share_series(node->loop, b));
    }
    return share;
}

static bool goes_with(const twi_planning *p, const group *g, const twi_node *node)
{
    bool goes = node->device == g->loops[0]->device && may_run_beside(p, node);
    for (int i = 0; i < g->count && goes; i++)
        goes = !twi_leads_to(g->loops[i], node) && !share_series(g->loops[i]->loop, node->loop);
    return goes;
}

/* Where a team is more than twice as many as its loops, these must be small. */
static bool is_worth_it(const twi_planning *p, const group *g)
{
    bool small = true;
    for (int i = 0; i < g->count && small; i++)
        small = !has_large_node(g->loops[i]->loop);
    return g->count > 1 && (small || 2 * g->count >= count_threads(p, g->loops[0]));
}

static void gather(const twi_planning *p, twi_node *first, group *g)
{
    const twi_region *region = p->rewriting.region;
    int threads = count_threads(p, first), most = threads < TWI_WORKSPACES ? threads : TWI_WORKSPACES, asked = 0;
    *g = (group){.loops = {first}, .count = 1};
    for (int id = first->id + 1; id < region->nodes.count && asked < MOST_ASKED && g->count < most; id++) {
        twi_node *node = region->nodes.items[id];
        asked += node->loop != NULL;
        if (node->loop && goes_with(p, g, node))
            g->loops[g->count++] = node;
    }
}

/* ---- their places ------------------------------------------------------------------------------------------------ */

/* Before, with, or behind the group. What comes of one of its loops is found in the order of the plan. */
static tw_status make_neighbours(twi_planning *p, const group *g)
{
    enum { BEFORE, WITHIN, BEHIND };
    twi_region *region = p->rewriting.region;
    int64_t *sides = twi_alloc_array((size_t)region->nodes.count + 1, sizeof *sides);
    if (!sides)
        return twi_fail_memory(p->error, "ordering a plan");
    for (int i = 0; i < g->count; i++) {
        sides[g->loops[i]->id] = WITHIN;
        g->loops[i]->task->seat = i;
        g->loops[i]->task->seats = g->count;
    }
    for (int id = 0; id < region->nodes.count; id++) {
        const twi_node *node = region->nodes.items[id];
        for (int i = 0; i < twi_num_dependencies(node) && sides[id] == BEFORE; i++)
            sides[id] = sides[twi_dependency(node, i)->node->id] == BEFORE ? BEFORE : BEHIND;
    }
    for (int id = g->loops[g->count - 1]->id + 1; id < region->nodes.count; id++)
        sides[id] = BEHIND;
    tw_status status = twi_region_sort_by(region, sides, NULL, p->error);
    twi_free(sides);
    return status;
}

tw_status twi_put_beside(twi_planning *p)
{
    const twi_region *region = p->rewriting.region;
    tw_status status = TW_OK;
    if (p->request->devices->tasks > 1)
        return TW_OK;
    for (int id = 0, next; id < region->nodes.count && status == TW_OK; id = next) {
        group g;
        next = id + 1;
        if (!may_run_beside(p, region->nodes.items[id]))
            continue;
        gather(p, region->nodes.items[id], &g);
        if (!is_worth_it(p, &g))
            continue;
        status = make_neighbours(p, &g);
        next = id; /* where another node is, or the group */
    }
    return status;
}
