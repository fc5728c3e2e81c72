/* answers.c - what a session says of itself: where nodes are and why, what became of them, what plans are made of, what
 * soft placement moved, who holds which memory, where a step's time went. */
#include "run/chrome_trace.h"
#include "run/trace.h"
#include "run/delay.h"
#include "run/session.h"
#include "run/waterfall.h"

#include <stdlib.h>
#include <string.h>

static bool is_placed(const tw_session *s, const tw_node *node)
{
    return node->graph == s->graph && node->id < s->placement.count;
}

const char *tw_session_device(tw_session *s, const tw_node *node)
{
    TWI_NEED_OR(s, NULL);
    TWI_NEED_OR(node, NULL);
    pthread_mutex_lock(&s->lock);
    int device = is_placed(s, node) ? s->placement.devices[node->id] : -1;
    const char *text = device >= 0 ? s->devices->items[device]->text : NULL;
    pthread_mutex_unlock(&s->lock);
    return text;
}

const char *tw_session_why(tw_session *s, const tw_node *node)
{
    TWI_NEED_OR(s, NULL);
    TWI_NEED_OR(node, NULL);
    pthread_mutex_lock(&s->lock);
    const char *text = is_placed(s, node) ? twi_placement_why(&s->placement, node) : NULL;
    pthread_mutex_unlock(&s->lock);
    return text;
}

tw_graph *tw_session_graph(const tw_session *s)
{
    TWI_NEED_OR(s, NULL);
    return s->graph;
}

static int latest_lane(tw_session *s)
{
    pthread_mutex_lock(&s->lock);
    int number = s->latest_lane;
    pthread_mutex_unlock(&s->lock);
    return number;
}

/* A lane whose run has ended; NULL if it never had one. Leave its turn. */
static twi_lane *enter_lane(tw_session *s, int number)
{
    pthread_mutex_lock(&s->lock);
    twi_lane *lane = number >= 0 && number < TWI_MOST_LANES ? s->lanes[number] : NULL;
    pthread_mutex_unlock(&s->lock);
    if (lane)
        pthread_mutex_lock(&lane->turn);
    return lane;
}

/* A run's parts have the arena in turn. */
static tw_plan_info add_up(const twi_lane *lane)
{
    tw_plan_info sum = lane->latest.items[0]->info;
    for (int i = 1; i < lane->latest.count; i++) {
        const tw_plan_info *part = &lane->latest.items[i]->info;
        sum.nodes += part->nodes;
        sum.kernels += part->kernels;
        sum.copies += part->copies;
        sum.copied_bytes += part->copied_bytes;
        sum.constant_bytes += part->constant_bytes;
        sum.arena_bytes = part->arena_bytes > sum.arena_bytes ? part->arena_bytes : sum.arena_bytes;
        sum.variable_bytes = part->variable_bytes > sum.variable_bytes ? part->variable_bytes : sum.variable_bytes;
    }
    return sum;
}

tw_status tw_session_plan_info_in(tw_session *s, int number, tw_plan_info *info, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(info, "info", error);
    twi_lane *lane = enter_lane(s, number);
    tw_status status = TW_OK;
    if (lane && lane->latest.count)
        *info = add_up(lane);
    else
        status = twi_fail(error, TW_FAILED_PRECONDITION, "nothing has run or been prepared in this session yet");
    if (lane)
        pthread_mutex_unlock(&lane->turn);
    return status;
}

int tw_session_fed_task(tw_session *s, int number, int i)
{
    TWI_NEED_OR(s, -1);
    twi_lane *lane = enter_lane(s, number);
    const twi_plan *plan = lane && lane->latest.count ? lane->latest.items[0] : NULL;
    int task = plan && i >= 0 && i < plan->num_feeds && plan->feeds[i].buffer ? plan->feeds[i].device->task : -1;
    if (lane)
        pthread_mutex_unlock(&lane->turn);
    return task;
}

tw_status tw_session_lane_task(tw_session *s, int number, int *task, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(task, "task", error);
    twi_lane *lane = enter_lane(s, number);
    const twi_plan *plan = lane && lane->latest.count ? lane->latest.items[0] : NULL;
    if (plan)
        *task = plan->apart ? plan->lists[plan->region->nodes.items[0]->device].device->task : -1;
    if (lane)
        pthread_mutex_unlock(&lane->turn);
    return plan ? TW_OK : twi_fail(error, TW_FAILED_PRECONDITION, "nothing was prepared in lane %d", number);
}

tw_status tw_session_plan_info(tw_session *s, tw_plan_info *info, tw_error *error)
{
    TWI_NEED(s, "session", error);
    return tw_session_plan_info_in(s, latest_lane(s), info, error);
}

/* Whether the latest run was traced; else an error. */
static tw_status check_traced(const twi_lane *lane, tw_error *error)
{
    bool traced = lane->latest.count > 0;
    for (int i = 0; i < lane->latest.count && traced; i++)
        traced = lane->latest.items[i]->trace && lane->latest.items[i]->trace->ended_ns;
    return traced ? TW_OK
                  : twi_fail(error, TW_FAILED_PRECONDITION, "no traced run in this session (option trace)");
}

static tw_status gather(const twi_lane *lane, tw_error *error)
{
    tw_status status = check_traced(lane, error);
    for (int i = 0; i < lane->latest.count && status == TW_OK; i++)
        status = twi_trace_gather(lane->latest.items[i], error);
    return status;
}

tw_status tw_session_gather_times(tw_session *s, tw_error *error)
{
    TWI_NEED(s, "session", error);
    twi_lane *lane = enter_lane(s, latest_lane(s));
    tw_status status = gather(lane, error);
    pthread_mutex_unlock(&lane->turn);
    return status;
}

tw_status tw_session_write_trace(tw_session *s, const char *path, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(path, "path", error);
    twi_lane *lane = enter_lane(s, latest_lane(s));
    tw_status status = gather(lane, error);
    if (status == TW_OK && tw_devices_task(s->devices) == 0)
        status = twi_chrome_trace_write(lane->latest.items, lane->latest.count, path, error);
    pthread_mutex_unlock(&lane->turn);
    return status;
}

static void set_look(tw_session *s, unsigned look, bool on)
{
    if (on)
        atomic_fetch_or(&s->look, look);
    else
        atomic_fetch_and(&s->look, ~look);
}

tw_status tw_session_set_trace(tw_session *s, bool on, tw_error *error)
{
    TWI_NEED(s, "session", error);
    set_look(s, TWI_LOOK_TIMES, on);
    return TW_OK;
}

tw_status tw_session_check_numbers(tw_session *s, bool on, tw_error *error)
{
    TWI_NEED(s, "session", error);
    set_look(s, TWI_LOOK_NUMBERS, on);
    return TW_OK;
}

/* Which of a lane's plans it is. */
static int number_of(const twi_lane *lane, const twi_plan *plan)
{
    int i = 0;
    while (i < lane->links.count && lane->links.items[i]->plan != plan)
        i++;
    return i;
}

static int count_spans(const twi_lane *lane)
{
    int count = 0;
    for (int k = 0; k < lane->latest.count; k++)
        for (int d = 0; d < lane->latest.items[k]->num_lists; d++)
            count += lane->latest.items[k]->lists[d].count;
    return count;
}

/* Steps that neither compute nor copy, and those that were not met, have no span. */
static void list_spans(const twi_plan *plan, int number, int64_t began, tw_timeline *timeline)
{
    for (int d = 0; d < plan->num_lists; d++)
        for (int i = 0; i < plan->lists[d].count; i++) {
            const twi_list *list = &plan->lists[d];
            const twi_step *step = &list->steps[i];
            const twi_span *span = twi_span_of(plan, (twi_step_id){d, i});
            if ((!step->kernel && !step->source) || !span->started_ns)
                continue;
            timeline->spans[timeline->num_spans++] = (tw_span){
                .node = list->nodes[i]->name, .op = list->nodes[i]->op->name, .device = list->device->text,
                .kernel = step->kernel ? step->kernel->name : NULL, .plan = number, .number = list->nodes[i]->id,
                .kind = span->kind, .begin = (double)(span->started_ns - began) / 1e9,
                .end = (double)(span->ended_ns - began) / 1e9};
        }
}

static void fill_timeline(const twi_lane *lane, tw_timeline *timeline)
{
    int64_t began = lane->latest.items[0]->trace->began_ns;
    for (int k = 0; k < lane->latest.count; k++)
        list_spans(lane->latest.items[k], number_of(lane, lane->latest.items[k]), began, timeline);
    timeline->plan = number_of(lane, lane->latest.items[0]);
    timeline->seconds = (double)(lane->latest.items[lane->latest.count - 1]->trace->ended_ns - began) / 1e9;
}

tw_status tw_session_timeline(tw_session *s, tw_timeline **result, tw_error *error)
{
    TWI_NEED(s, "session", error);
    return tw_session_timeline_in(s, latest_lane(s), result, error);
}

tw_status tw_session_timeline_in(tw_session *s, int number, tw_timeline **result, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(result, "timeline", error);
    twi_lane *lane = enter_lane(s, number);
    tw_status status = lane ? check_traced(lane, error)
                            : twi_fail(error, TW_FAILED_PRECONDITION, "nothing has run in lane %d", number);
    tw_timeline *t = NULL;
    *result = NULL;
    if (status == TW_OK && !(t = twi_alloc(sizeof *t + sizeof *t->spans * (size_t)count_spans(lane))))
        status = twi_fail_memory(error, "listing when devices did what");
    if (t) {
        *t = (tw_timeline){.spans = (tw_span *)(t + 1), .lane = number};
        fill_timeline(lane, t);
    }
    if (lane)
        pthread_mutex_unlock(&lane->turn);
    *result = t;
    return status;
}

void tw_timeline_destroy(tw_timeline *timeline)
{
    twi_free(timeline);
}

tw_status tw_session_waterfall(tw_session *s, const char *const *tower_devices, int count, tw_waterfall *waterfall,
                               tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(tower_devices || count <= 0, "tower_devices", error);
    TWI_NEED(waterfall, "waterfall", error);
    twi_lane *lane = enter_lane(s, latest_lane(s));
    tw_status status = check_traced(lane, error);
    if (status == TW_OK)
        twi_waterfall(lane->latest.items, lane->latest.count, tower_devices, count, waterfall);
    pthread_mutex_unlock(&lane->turn);
    return status;
}

tw_status tw_session_delay(tw_session *s, const tw_delay *delay, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(delay, "delay", error);
    twi_lane *lane = enter_lane(s, latest_lane(s));
    tw_status status = check_traced(lane, error);
    bool delayed = false;
    for (int i = lane->latest.count - 1; i >= 0 && status == TW_OK && !delayed; i--) {
        status = twi_delay(lane->latest.items[i], delay, error);
        delayed = status == TW_OK;
        status = status == TW_NOT_FOUND && i > 0 ? TW_OK : status; /* another part may have such a step */
    }
    pthread_mutex_unlock(&lane->turn);
    return status;
}

/* ---- all plans, for those who hold the lock --------------------------------------------------------------------- */

/* The i-th plan of the session, newest first within a lane; NULL: there are no more. */
static const twi_plan *plan_at(const tw_session *s, int i)
{
    for (int l = 0; l < TWI_MOST_LANES; l++) {
        const twi_lane *lane = s->lanes[l];
        if (lane && i < lane->links.count)
            return lane->links.items[lane->links.count - 1 - i]->plan;
        i -= lane ? lane->links.count : 0;
    }
    return NULL;
}

/* ---- one node --------------------------------------------------------------------------------------------------- */

/* An answer and the arena that holds what it refers to. */
typedef struct explanation {
    tw_explanation e; /* first: that is what the user has */
    twi_arena arena;
} explanation;

/* The newest plan in which something became of the node. */
static tw_status explain_plan(const tw_session *s, const tw_node *node, explanation *x, tw_error *error)
{
    const twi_plan *plan;
    bool later = false;
    for (int i = 0; (plan = plan_at(s, i)); i++) {
        tw_status status = twi_plan_explain(plan, node, &x->arena, &x->e, error);
        later = later || x->e.fate == TW_FATE_LATER;
        bool settled = x->e.fate != TW_FATE_UNPLANNED && x->e.fate != TW_FATE_DROPPED && x->e.fate != TW_FATE_LATER;
        if (status != TW_OK || settled)
            return status;
    }
    if (later)
        x->e.fate = TW_FATE_LATER;
    return TW_OK;
}

tw_status tw_session_explain(tw_session *s, const tw_node *node, tw_explanation **result, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(result, "explanation", error);
    tw_status status;
    *result = NULL;
    if (!node || node->graph != s->graph)
        return twi_fail(error, TW_INVALID_ARGUMENT, "that node is not of this session's graph");
    explanation *x = twi_alloc(sizeof *x);
    if (!x)
        return twi_fail_memory(error, "explaining a node");
    pthread_mutex_lock(&s->lock);
    TWI_TRY(twi_session_place(s, error));
    TWI_TRY(twi_explain(&s->placement, node, &x->arena, &x->e, error));
    TWI_TRY(explain_plan(s, node, x, error));
    *result = &x->e;
    x = NULL;
done:
    pthread_mutex_unlock(&s->lock);
    if (x)
        tw_explanation_destroy(&x->e);
    return status;
}

void tw_explanation_destroy(tw_explanation *e)
{
    explanation *x = (explanation *)e;
    if (x)
        twi_arena_free(&x->arena);
    twi_free(x);
}

/* ---- what plans are made of -------------------------------------------------------------------------------------- */

typedef struct planned {
    tw_planned p; /* first */
    twi_arena arena;
} planned;

static int count_planned(const tw_session *s)
{
    const twi_plan *plan;
    int count = 0;
    for (int i = 0; (plan = plan_at(s, i)); i++)
        count += plan->region->nodes.count;
    return count;
}

static tw_status list_lane(tw_session *s, const twi_lane *lane, int number, planned *x, tw_error *error)
{
    for (int i = 0; i < lane->links.count; i++) {
        const twi_plan *plan = lane->links.items[i]->plan;
        tw_planned_node *nodes = x->p.nodes + x->p.num_nodes;
        if (!twi_plan_list_nodes(plan, &s->placement, &x->arena, nodes))
            return twi_fail_memory(error, "listing what is planned");
        for (int k = 0; k < plan->region->nodes.count; k++) {
            nodes[k].lane = number;
            nodes[k].plan = i;
        }
        x->p.num_nodes += plan->region->nodes.count;
        x->p.num_plans++;
    }
    return TW_OK;
}

tw_status tw_session_planned(tw_session *s, tw_planned **result, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(result, "planned", error);
    tw_status status = TW_OK;
    *result = NULL;
    planned *x = twi_alloc(sizeof *x);
    if (!x)
        return twi_fail_memory(error, "listing what is planned");
    pthread_mutex_lock(&s->lock);
    x->p.nodes = twi_arena_alloc(&x->arena, sizeof *x->p.nodes * (size_t)count_planned(s));
    if (!x->p.nodes)
        status = twi_fail_memory(error, "listing what is planned");
    for (int l = 0; l < TWI_MOST_LANES && status == TW_OK; l++)
        if (s->lanes[l])
            status = list_lane(s, s->lanes[l], l, x, error);
    pthread_mutex_unlock(&s->lock);
    if (status == TW_OK)
        *result = &x->p;
    else
        tw_planned_destroy(&x->p);
    return status;
}

void tw_planned_destroy(tw_planned *p)
{
    planned *x = (planned *)p;
    if (x)
        twi_arena_free(&x->arena);
    twi_free(x);
}

/* ---- soft placement ---------------------------------------------------------------------------------------------- */

typedef struct moves {
    tw_moves m; /* first */
    twi_arena arena;
} moves;

tw_status tw_session_moves(tw_session *s, tw_moves **result, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(result, "moves", error);
    tw_status status;
    const twi_plan *plan = NULL;
    *result = NULL;
    moves *x = twi_alloc(sizeof *x);
    if (!x)
        return twi_fail_memory(error, "listing what soft placement moved");
    pthread_mutex_lock(&s->lock);
    TWI_TRY(twi_session_place(s, error));
    TWI_TRY(twi_list_moves(&s->placement, &x->arena, &x->m, error));
    if ((plan = plan_at(s, 0)))
        twi_plan_charge(plan, &s->placement, &x->m);
    *result = &x->m;
    x = NULL;
done:
    pthread_mutex_unlock(&s->lock);
    if (x)
        tw_moves_destroy(&x->m);
    return status;
}

void tw_moves_destroy(tw_moves *m)
{
    moves *x = (moves *)m;
    if (x)
        twi_arena_free(&x->arena);
    twi_free(x);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

typedef struct memory {
    tw_memory m; /* first */
    twi_arena arena;
} memory;

static tw_status list_variables(const tw_session *s, int device, twi_memory_items *items, tw_error *error)
{
    for (const twi_resource *r = s->resources.first; r; r = r->next) {
        if (r->device != s->devices->items[device])
            continue;
        const tw_variable *v = tw_graph_find_variable(s->graph, r->name);
        while (v && v->copy_of)
            v = v->copy_of;
        const tw_node *maker = twi_map_get(&s->graph->by_name, r->name);
        bool is_data = maker && maker->op->makes == TWI_MAKES_DATA_SET;
        tw_memory_use use = is_data ? TW_MEMORY_INPUT : v && v->trainable ? TW_MEMORY_VARIABLE : TW_MEMORY_SLOT;
        const char *op = is_data ? maker->op->name : "VarHandleOp";
        if (!twi_push(items, (tw_memory_item){use, r->name, op, (int64_t)twi_resource_bytes(r)}))
            return twi_fail_memory(error, "listing memory");
    }
    return TW_OK;
}

/* The plan that wants the largest arena of a lane's device; NULL: none wants any. */
static const twi_plan *largest_plan(const twi_lane *lane, int device)
{
    const twi_plan *largest = NULL;
    for (int i = 0; i < lane->links.count; i++) {
        const twi_plan *plan = lane->links.items[i]->plan;
        if (plan->lists[device].arena_bytes > (largest ? largest->lists[device].arena_bytes : 0))
            largest = plan;
    }
    return largest;
}

static tw_status list_arenas(const tw_session *s, int device, tw_device_memory *m, twi_memory_items *items,
                             tw_error *error)
{
    int64_t most = 0;
    for (int l = 0; l < TWI_MOST_LANES; l++) {
        const twi_plan *plan = s->lanes[l] ? largest_plan(s->lanes[l], device) : NULL;
        const char *fullest;
        if (!plan)
            continue;
        tw_status status = twi_plan_list_arena(plan, device, items, &fullest, error);
        if (status != TW_OK)
            return status;
        int64_t bytes = (int64_t)plan->lists[device].arena_bytes;
        m->arena += bytes;
        m->fullest = bytes > most ? fullest : m->fullest;
        most = bytes > most ? bytes : most;
    }
    return TW_OK;
}

/* By use, the largest first, then by name. */
static int compare_items(const void *a, const void *b)
{
    const tw_memory_item *x = a, *y = b;
    int use_x = x->use == TW_MEMORY_INPUT ? TW_MEMORY_BUFFER : (int)x->use;
    int use_y = y->use == TW_MEMORY_INPUT ? TW_MEMORY_BUFFER : (int)y->use;
    if (use_x != use_y)
        return use_x - use_y;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->name && y->name ? strcmp(x->name, y->name) : 0;
}

/* Items and their names outlive plans. */
static tw_status keep_items(memory *x, tw_device_memory *m, const twi_memory_items *items, tw_error *error)
{
    m->num_items = items->count;
    m->items = twi_arena_alloc(&x->arena, sizeof *m->items * (size_t)items->count);
    if (!m->items)
        return twi_fail_memory(error, "listing memory");
    for (int i = 0; i < items->count; i++) {
        tw_memory_item *item = &m->items[i];
        *item = items->items[i];
        if (item->name && !(item->name = twi_arena_strdup(&x->arena, item->name)))
            return twi_fail_memory(error, "listing memory");
    }
    if (items->count)
        qsort(m->items, (size_t)items->count, sizeof *m->items, compare_items);
    if (m->fullest && !(m->fullest = twi_arena_strdup(&x->arena, m->fullest)))
        return twi_fail_memory(error, "listing memory");
    return TW_OK;
}

static tw_status list_device(const tw_session *s, int device, memory *x, tw_error *error)
{
    tw_device_memory *m = &x->m.devices[device];
    twi_memory_items items = {0};
    const twi_plan *plan;
    tw_status status;
    m->device = s->devices->items[device]->text;
    m->limit = (int64_t)s->devices->items[device]->memory_limit;
    TWI_TRY(list_variables(s, device, &items, error));
    for (int i = 0; i < items.count; i++)
        m->variables += items.items[i].bytes;
    for (int i = 0; (plan = plan_at(s, i)); i++) {
        TWI_TRY(twi_plan_list_constants(plan, device, &items, error));
        m->constants += (int64_t)plan->lists[device].kept_bytes;
    }
    TWI_TRY(list_arenas(s, device, m, &items, error));
    m->total = m->variables + m->constants + m->arena;
    TWI_TRY(keep_items(x, m, &items, error));
done:
    twi_array_free(&items);
    return status;
}

tw_status tw_session_memory(tw_session *s, tw_memory **result, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(result, "memory", error);
    tw_status status = TW_OK;
    *result = NULL;
    memory *x = twi_alloc(sizeof *x);
    if (!x)
        return twi_fail_memory(error, "listing memory");
    pthread_mutex_lock(&s->lock);
    x->m.num_devices = s->devices->count;
    x->m.devices = twi_arena_alloc(&x->arena, sizeof *x->m.devices * (size_t)s->devices->count);
    if (!x->m.devices)
        TWI_LEAVE(twi_fail_memory(error, "listing memory"));
    for (int d = 0; d < s->devices->count; d++)
        TWI_TRY(list_device(s, d, x, error));
    *result = &x->m;
    x = NULL;
done:
    pthread_mutex_unlock(&s->lock);
    if (x)
        tw_memory_destroy(&x->m);
    return status;
}

void tw_memory_destroy(tw_memory *m)
{
    memory *x = (memory *)m;
    if (x)
        twi_arena_free(&x->arena);
    twi_free(x);
}
