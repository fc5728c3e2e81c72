/* session.c - a graph bound to devices and variable values: finds or makes the plan for a run, feeds, runs, fetches.
 * Never here:  placement, planning, threads.
 *
 * Two kinds of locks, always taken in this order: a lane's `turn` for as long as a run lasts, then the session's `lock`
 * while it plans or looks something up. Whoever holds `lock` waits for no run. */
#include "run/session.h"

#include "base/log.h"
#include "base/sized.h"
#include "comm/comm.h"
#include "device/tasks.h"
#include "rewrite/rewrite.h" /* twi_rewrite_check_names */
#include "run/messages.h"
#include "tensor/tensor.h"
#include "tensor/variant.h"

#include <stdio.h>
#include <string.h>

enum { KEPT_PLANS = 64 };

static void on_failure(void *session);
static void lose_tasks(void *session, tw_status status, const char *why);
static int64_t oldest_run(void *session, const twi_lane *lane);
static tw_status place(void *session, tw_error *error);

static twi_planner make_planner(tw_session *s)
{
    return (twi_planner){
        .request =
            {
                .graph = s->graph,
                .placement = &s->placement,
                .soft_budget = s->options.soft_budget,
                .devices = s->devices,
                .resources = &s->resources,
                .disable = s->disable,
                .plain_kernels = s->options.plain_kernels,
                .any_fed_shapes = s->options.any_fed_shapes,
            },
        .lock = &s->lock,
        .place = place,
        .user = s,
        .wake = on_failure,
        .oldest = oldest_run,
        .most = s->options.kept_plans > 0 ? s->options.kept_plans : KEPT_PLANS,
    };
}

static tw_status make_lane(tw_session *s, int number, tw_error *error)
{
    tw_status status = twi_lane_create(&s->planner, on_failure, s, &s->lanes[number], error);
    if (status == TW_OK) {
        s->lanes[number]->number = number;
        s->lanes[number]->together = number < TWI_FIRST_GIVEN;
    }
    return status;
}

tw_status tw_session_create(tw_graph *graph, const tw_session_options *options, tw_session **result, tw_error *error)
{
    TWI_NEED(graph, "graph", error);
    TWI_NEED(result, "session", error);
    tw_status status;
    *result = NULL;
    twi_scopes_check(graph, "a session is created");
    if (tw_graph_status(graph) != TW_OK)
        return twi_fail(error, tw_graph_status(graph), "%s", tw_graph_message(graph));
    tw_session *s = twi_alloc(sizeof *s);
    if (!s)
        return twi_fail_memory(error, "creating a session");
    pthread_mutex_init(&s->lock, NULL);
    twi_resources_init(&s->resources);
    s->graph = graph;
    TWI_TRY(twi_sized(&s->options, options, TWI_SIZE(tw_session_options, trace), error));
    TWI_TRY(twi_rewrite_check_names(s->options.disable, error));
    s->devices = s->options.devices;
    atomic_store(&s->look, s->options.trace ? TWI_LOOK_TIMES : 0);
    if (s->options.disable && !(s->disable = twi_strdup(s->options.disable)))
        TWI_LEAVE(twi_fail_memory(error, "creating a session"));
    if (!s->devices) {
        s->owns_devices = true;
        TWI_TRY(tw_devices_create(NULL, &s->devices, error));
    }
    s->planner = make_planner(s);
    s->planner.request.planner = &s->planner;
    TWI_TRY(make_lane(s, 0, error));
    TWI_TRY(twi_functions_create(&s->planner, on_failure, s, &s->functions, error));
    if (s->devices->comm) {
        s->watcher = (twi_comm_watcher){.lost = lose_tasks, .user = s};
        s->devices->comm->ops->watch(s->devices->comm, &s->watcher);
    }
    *result = s;
    return TW_OK;
done:
    tw_session_destroy(s);
    return status;
}

void tw_session_destroy(tw_session *s)
{
    if (!s)
        return;
    if (s->watcher.lost)
        s->devices->comm->ops->unwatch(s->devices->comm, &s->watcher);
    tw_session_cancel(s);
    twi_functions_close(s->functions); /* threads of iterators may still call, and are refused */
    for (int i = 0; i < TWI_MOST_LANES; i++) {
        if (!s->lanes[i])
            continue;
        pthread_mutex_lock(&s->lanes[i]->turn); /* a run in progress ends first */
        pthread_mutex_unlock(&s->lanes[i]->turn);
        twi_lane_destroy(s->lanes[i]);
    }
    twi_resources_free(&s->resources);
    twi_functions_destroy(s->functions);
    twi_placement_free(&s->placement);
    if (s->owns_devices)
        tw_devices_destroy(s->devices);
    twi_free(s->disable);
    pthread_mutex_destroy(&s->lock);
    twi_free(s);
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

/* Of all kernels that wait; those whose run does not end go on waiting. */
static void wake_waiting(tw_session *s)
{
    for (twi_resource *r = s->resources.first; r; r = r->next)
        if (r->wake)
            r->wake(r->object);
}

/* A run fails while some of its kernels may wait. */
static void on_failure(void *session)
{
    tw_session *s = session;
    pthread_mutex_lock(&s->lock);
    wake_waiting(s);
    pthread_mutex_unlock(&s->lock);
}

/* For ever. What it was cancelled with first stays what runs fail with. */
static void cancel(tw_session *s, const tw_error *why)
{
    pthread_mutex_lock(&s->lock);
    s->cancelled = s->cancelled ? s->cancelled : why;
    for (int i = 0; i < TWI_MOST_LANES; i++)
        if (s->lanes[i])
            twi_dispatchers_cancel(s->lanes[i]->dispatchers, s->cancelled);
    twi_functions_cancel(s->functions);
    wake_waiting(s);
    pthread_mutex_unlock(&s->lock);
}

void tw_session_cancel(tw_session *s)
{
    TWI_NEED_OR(s, );
    cancel(s, &twi_cancelled);
}

/* The other tasks end. A step that waits at a queue of its own would not hear of it. */
static void lose_tasks(void *session, tw_status status, const char *why)
{
    tw_session *s = session;
    twi_fail(&s->lost, status, "%s", why);
    cancel(s, &s->lost);
}

void tw_session_cancel_lane(tw_session *s, int number)
{
    TWI_NEED_OR(s, );
    static const char why[] = "the lane was cancelled";
    bool given = number >= TWI_FIRST_GIVEN && number < TWI_MOST_LANES;
    pthread_mutex_lock(&s->lock);
    twi_lane *lane = number >= 0 && number < TWI_MOST_LANES ? s->lanes[number] : NULL;
    if (lane) {
        twi_dispatchers_cancel(lane->dispatchers, s->cancelled ? s->cancelled : &twi_cancelled);
        wake_waiting(s);
    }
    for (int i = 0; given && lane && i < lane->links.count; i++)
        twi_end_run(lane->links.items[i]->plan, TW_CANCELLED, why);
    pthread_mutex_unlock(&s->lock);
    if (given)
        twi_end_lane(s->devices->items[0], number, TW_CANCELLED, why);
}

void tw_session_reopen_lane(tw_session *s, int number)
{
    TWI_NEED_OR(s, );
    pthread_mutex_lock(&s->lock);
    if (number >= 0 && number < TWI_FIRST_GIVEN && s->lanes[number] && !s->cancelled)
        twi_dispatchers_reopen(s->lanes[number]->dispatchers);
    pthread_mutex_unlock(&s->lock);
}

/* The lane of that number, made when first used. */
static tw_status find_lane(tw_session *s, int number, twi_lane **lane, tw_error *error)
{
    tw_status status = TW_OK;
    if (number < 0 || number >= TWI_MOST_LANES)
        return twi_fail(error, TW_INVALID_ARGUMENT, "lane %d: expected a number from 0 to %d", number, TWI_MOST_LANES - 1);
    pthread_mutex_lock(&s->lock);
    if (s->cancelled)
        TWI_LEAVE(twi_fail(error, s->cancelled->status, "%s", s->cancelled->message));
    if (!s->lanes[number])
        TWI_TRY(make_lane(s, number, error));
    if (number < TWI_FIRST_GIVEN) /* those given out work behind the scenes, and may wait for ever */
        s->latest_lane = number;
    *lane = s->lanes[number];
done:
    pthread_mutex_unlock(&s->lock);
    return status;
}

tw_status tw_session_take_lane(tw_session *s, int *lane, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(lane, "lane", error);
    tw_status status = TW_OK;
    pthread_mutex_lock(&s->lock);
    if (s->lanes_taken < TWI_MOST_LANES - TWI_FIRST_GIVEN)
        *lane = TWI_MOST_LANES - ++s->lanes_taken;
    else
        status = twi_fail(error, TW_RESOURCE_EXHAUSTED, "all %d lanes that a session gives out are taken",
                          TWI_MOST_LANES - TWI_FIRST_GIVEN);
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

/* Where placement is logged unless the options say otherwise. */
static void log_line(void *user, const char *line)
{
    (void)user;
    twi_log(TWI_LOG_INFO, "%s", line);
}

tw_status twi_session_place(tw_session *s, tw_error *error)
{
    if (s->placement.count == s->graph->nodes.count)
        return TW_OK;
    twi_placement_options options = {
        .soft = s->options.allow_soft_placement,
        .choice = s->options.soft_choice,
        .devices = s->devices,
    };
    tw_status status = twi_place(s->graph, &options, &s->placement, error);
    if (status != TW_OK)
        return status;
    if (s->options.log_device_placement)
        twi_placement_log(s->graph, s->devices, &s->placement,
                          s->options.placement_log ? s->options.placement_log : log_line, s->options.placement_log_user);
    return TW_OK;
}

static tw_status place(void *session, tw_error *error)
{
    return twi_session_place(session, error);
}

static tw_status check_fetches(const tw_session *s, const twi_wanted *w, tw_error *error)
{
    for (int i = 0; i < w->num_fetches; i++) {
        tw_output fetch = w->fetches[i];
        const tw_node *node = fetch.node;
        if (!node || node->graph != s->graph)
            return twi_fail(error, TW_INVALID_ARGUMENT, "fetch %d is %s", i,
                            node ? "of another graph" : "a dead output");
        if (fetch.index >= node->num_outputs && twi_op_is(node->op, TWI_UNKNOWN))
            return twi_fail_unknown(node, error);
        if (fetch.index >= node->num_outputs)
            return twi_fail(error, TW_INVALID_ARGUMENT, "FetchOutputs %s: output index too large, must be < %d",
                            node->name, node->num_outputs);
        if (fetch.index < -1)
            return twi_fail(error, TW_INVALID_ARGUMENT, "fetch %d asks for output %d of '%s'; -1 stands for the node", i,
                            fetch.index, node->name);
    }
    return TW_OK;
}

/* What is to be filled again must be somebody's result, and one's alone. Whether it began as NULL nobody can tell. */
static tw_status check_results(const twi_wanted *w, tw_tensor *const *results, tw_error *error)
{
    for (int i = 0; i < w->num_fetches; i++) {
        if (!results && w->fetches[i].index >= 0)
            return twi_fail(error, TW_INVALID_ARGUMENT, "fetch %d has a value, but results is NULL", i);
        for (int k = 0; results && results[i] && k < i; k++)
            if (results[k] == results[i])
                return twi_fail(error, TW_INVALID_ARGUMENT,
                                "results[%d] and results[%d] are the same tensor; an array of results begins as NULLs", k, i);
        for (int k = 0; results && results[i] && k < w->num_feeds; k++)
            if (w->feeds[k].tensor == results[i])
                return twi_fail(error, TW_INVALID_ARGUMENT, "results[%d] is the tensor that feed %d brings", i, k);
    }
    return TW_OK;
}

static tw_status check_wanted(const tw_session *s, const twi_wanted *w, tw_error *error)
{
    if (tw_graph_status(s->graph) != TW_OK)
        return twi_fail(error, tw_graph_status(s->graph), "%s", tw_graph_message(s->graph));
    if (w->num_feeds < 0 || w->num_fetches < 0)
        return twi_fail(error, TW_INVALID_ARGUMENT, "%d feeds and %d fetches; expected numbers from 0", w->num_feeds,
                        w->num_fetches);
    tw_status status = check_fetches(s, w, error);
    for (int i = 0; i < w->num_feeds && status == TW_OK; i++) {
        tw_output fed = twi_wanted_output(w, i);
        if (!fed.node || fed.node->graph != s->graph || fed.index < 0 || fed.index >= fed.node->num_outputs ||
            (w->feeds && !w->feeds[i].tensor))
            return twi_fail(error, TW_INVALID_ARGUMENT, "feed %d is not an output of this graph with a tensor", i);
        if (!w->feeds && !tw_shape_is_known(w->feed_shapes[i].shape))
            return twi_fail(error, TW_INVALID_ARGUMENT, "feed %d, '%s:%d': its shape must be wholly known", i,
                            fed.node->name, fed.index);
        for (int k = 0; k < i; k++)
            if (twi_wanted_output(w, k).node == fed.node && twi_wanted_output(w, k).index == fed.index)
                return twi_fail(error, TW_INVALID_ARGUMENT, "'%s:%d' is fed twice, as feed %d and %d", fed.node->name,
                                fed.index, k, i);
    }
    return status;
}

/* The plan for such a run, found or made. The lane's turn is the caller's. */
static tw_status find_plan(tw_session *s, twi_lane *lane, const twi_wanted *w, twi_link **link, tw_error *error)
{
    twi_cut *cut;
    pthread_mutex_lock(&s->lock);
    tw_status status = check_wanted(s, w, error);
    if (status == TW_OK)
        atomic_store(&lane->began, ++s->resources.clock);
    pthread_mutex_unlock(&s->lock);
    if (status == TW_OK)
        status = twi_cut_find(lane, w, &cut, error);
    return status == TW_OK ? twi_link_find(lane, cut, w, link, error) : status;
}

/* A graph's own error has a place already. */
static void say_where(tw_session *s, tw_error *error)
{
    pthread_mutex_lock(&s->lock);
    if (tw_graph_status(s->graph) == TW_OK)
        twi_graph_say_where(s->graph, error);
    pthread_mutex_unlock(&s->lock);
}

static int64_t oldest_run(void *session, const twi_lane *lane)
{
    tw_session *s = session;
    int64_t oldest = INT64_MAX;
    for (int i = 0; i < TWI_MOST_LANES; i++) {
        const twi_lane *other = s->lanes[i];
        int64_t began = other ? atomic_load(&other->began) : 0;
        bool own = other == lane || (other && lane->ending == twi_dispatchers_ending(other->dispatchers));
        if (began && !own && began < oldest)
            oldest = began;
    }
    return oldest;
}

static void give_turn_back(twi_lane *lane)
{
    atomic_store(&lane->began, 0);
    pthread_mutex_unlock(&lane->turn);
}

/* Takes the lane's turn, for whoever gives it back, and finds the plan. Without a plan the turn is not taken. */
static tw_status take_turn(tw_session *s, int number, const twi_wanted *w, twi_lane **lane, twi_link **link,
                           tw_error *error)
{
    tw_status status = find_lane(s, number, lane, error);
    if (status != TW_OK)
        return status;
    pthread_mutex_lock(&(*lane)->turn);
    status = find_plan(s, *lane, w, link, error);
    if (status == TW_OK)
        return TW_OK;
    say_where(s, error);
    give_turn_back(*lane);
    return status;
}

tw_status tw_session_prepare_in(tw_session *s, int number, const tw_feed_shape *feeds, int num_feeds,
                                const tw_output *fetches, int num_fetches, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(feeds || num_feeds <= 0, "feeds", error);
    TWI_NEED(fetches || num_fetches <= 0, "fetches", error);
    twi_wanted w = {.feed_shapes = feeds, .num_feeds = num_feeds, .fetches = fetches, .num_fetches = num_fetches};
    twi_lane *lane = NULL;
    twi_link *link;
    tw_status status = take_turn(s, number, &w, &lane, &link, error);
    if (status != TW_OK)
        return status;
    lane->latest.count = 0;
    if (!twi_push(&lane->latest, link->plan))
        status = twi_fail_memory(error, "preparing a run");
    give_turn_back(lane);
    return status;
}

tw_status tw_session_prepare(tw_session *s, const tw_feed_shape *feeds, int num_feeds, const tw_output *fetches,
                             int num_fetches, tw_error *error)
{
    return tw_session_prepare_in(s, 0, feeds, num_feeds, fetches, num_fetches, error);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Once the turn is given back the session may be gone. */
static tw_status run(tw_session *s, int number, int64_t steps, const twi_wanted *w, tw_tensor **results, int64_t *done,
                     tw_error *error)
{
    twi_lane *lane = NULL;
    twi_link *link;
    tw_status status = check_results(w, results, error);
    *done = 0;
    if (status == TW_OK)
        status = twi_devices_check_tasks(s->devices, error);
    if (status == TW_OK)
        status = take_turn(s, number, w, &lane, &link, error);
    if (status != TW_OK)
        return status;
    status = twi_run_links(lane, link, steps, atomic_load(&s->look), w->feeds, w->to, results, done, error);
    if (status != TW_OK)
        say_where(s, error);
    give_turn_back(lane);
    return status;
}

tw_status tw_session_run_to(tw_session *s, int number, const tw_feed *feeds, int num_feeds, const tw_output *fetches,
                             int num_fetches, const tw_receivers *to, tw_tensor **results, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(feeds || num_feeds <= 0, "feeds", error);
    TWI_NEED(fetches || num_fetches <= 0, "fetches", error);
    twi_wanted w = {
        .feeds = feeds, .num_feeds = num_feeds, .fetches = fetches, .num_fetches = num_fetches, .to = to};
    int64_t done;
    return run(s, number, 1, &w, results, &done, error);
}

tw_status tw_session_run_in(tw_session *s, int number, const tw_feed *feeds, int num_feeds, const tw_output *fetches,
                            int num_fetches, tw_tensor **results, tw_error *error)
{
    return tw_session_run_to(s, number, feeds, num_feeds, fetches, num_fetches, NULL, results, error);
}

tw_status tw_session_run_steps(tw_session *s, int64_t steps, const tw_feed *feeds, int num_feeds,
                               const tw_output *fetches, int num_fetches, tw_tensor **results, int64_t *done,
                               tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(feeds || num_feeds <= 0, "feeds", error);
    TWI_NEED(fetches || num_fetches <= 0, "fetches", error);
    twi_wanted w = {.feeds = feeds, .num_feeds = num_feeds, .fetches = fetches, .num_fetches = num_fetches};
    int64_t own;
    if (steps < 1)
        return twi_fail(error, TW_INVALID_ARGUMENT, "%lld steps: expected at least 1", (long long)steps);
    return run(s, 0, steps, &w, results, done ? done : &own, error);
}

tw_status tw_session_repeat(tw_session *s, tw_output node, int64_t steps, tw_error *error)
{
    node.index = -1;
    return tw_session_run_steps(s, steps, NULL, 0, &node, 1, NULL, NULL, error);
}

tw_status tw_session_run(tw_session *s, const tw_feed *feeds, int num_feeds, const tw_output *fetches,
                         int num_fetches, tw_tensor **results, tw_error *error)
{
    return tw_session_run_in(s, 0, feeds, num_feeds, fetches, num_fetches, results, error);
}

tw_devices *tw_session_devices(const tw_session *s)
{
    TWI_NEED_OR(s, NULL);
    return s->devices;
}

/* ---- its graph ------------------------------------------------------------------------------------------------- */

void tw_session_hold(tw_session *s)
{
    TWI_NEED_OR(s, );
    pthread_mutex_lock(&s->lock);
}

void tw_session_release(tw_session *s)
{
    TWI_NEED_OR(s, );
    pthread_mutex_unlock(&s->lock);
}

/* ---- what outlives a run --------------------------------------------------------------------------------------- */

/* Looking at resources and changing them takes its turn with the runs of lane 0. */
static void begin_access(tw_session *s)
{
    pthread_mutex_lock(&s->lanes[0]->turn);
    pthread_mutex_lock(&s->lock);
}

static void end_access(tw_session *s)
{
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_unlock(&s->lanes[0]->turn);
}

tw_status tw_session_set_source(tw_session *s, const char *name, tw_source_function *fill, void *user, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(name, "source", error);
    TWI_NEED(fill, "fill", error);
    char key[300];
    snprintf(key, sizeof key, "source/%s", name);
    tw_status status = TW_OK;
    begin_access(s);
    twi_resource *r = s->resources.interface.get(&s->resources.interface, key);
    twi_source *source = r ? r->object ? r->object : twi_alloc(sizeof *source) : NULL;
    if (source) {
        *source = (twi_source){fill, user};
        r->object = source;
        r->destroy = twi_free;
    } else {
        status = twi_fail_memory(error, "setting a source");
    }
    end_access(s);
    return status;
}

/* ---- variables --------------------------------------------------------------------------------------------------- */

/* The variable's memory, made if no plan has needed it yet; where its graph leaves the shape open, of the shape that
 * it has, or else of the value's that it is given. */
static tw_status find_variable(tw_session *s, const tw_variable *variable, const tw_tensor *value,
                               twi_resource **resource, tw_error *error)
{
    if (!variable || !variable->handle.node || variable->handle.node->graph != s->graph)
        return twi_fail(error, TW_INVALID_ARGUMENT, "that variable is not of this session's graph");
    const tw_node *handle = variable->handle.node;
    const twi_resource *known = twi_resources_find(&s->resources, variable->name);
    tw_shape shape = variable->shape;
    if (!tw_shape_is_known(shape) && known && known->device)
        shape = known->shape;
    else if (!tw_shape_is_known(shape) && value)
        shape = value->shape;
    tw_status status = twi_session_place(s, error);
    if (status == TW_OK)
        status = twi_placement_check(&s->placement, handle, error);
    if (status == TW_OK)
        status = twi_resources_variable(&s->resources, variable->name, variable->dtype, shape,
                                        s->devices->items[s->placement.devices[handle->id]], resource, error);
    return status == TW_OK ? twi_resource_hold(*resource, error) : status;
}

tw_status tw_session_get_variable(tw_session *s, const tw_variable *variable, tw_tensor **value, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(value, "value", error);
    twi_resource *r;
    tw_status status;
    tw_tensor *tensor = NULL;
    begin_access(s);
    TWI_TRY(find_variable(s, variable, NULL, &r, error));
    if (!r->initialized)
        TWI_LEAVE(twi_fail(error, TW_FAILED_PRECONDITION, "variable %s has no value yet", variable->name));
    tensor = tw_tensor_create(r->dtype, r->shape);
    if (!tensor)
        TWI_LEAVE(twi_fail_memory(error, "reading a variable"));
    TWI_TRY(twi_share_tensor(0, r->device, r->memory, tensor, variable->name, error));
    *value = tensor;
    tensor = NULL;
done:
    end_access(s);
    tw_tensor_release(tensor);
    return status;
}

tw_status tw_session_set_variable(tw_session *s, const tw_variable *variable, const tw_tensor *value, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(value, "value", error);
    twi_resource *r;
    tw_status status;
    char has[128], wants[128];
    begin_access(s);
    TWI_TRY(find_variable(s, variable, value, &r, error));
    bool is_open = !tw_shape_is_known(variable->shape) && tw_shape_compatible(value->shape, variable->shape);
    bool same = tw_shape_equal(value->shape, r->shape);
    if (value->dtype != r->dtype || !(same || is_open))
        TWI_LEAVE(twi_fail(error, TW_INVALID_ARGUMENT, "variable %s is %s %s, the value for it is %s %s",
                           variable->name, tw_dtype_name(r->dtype), tw_shape_text(r->shape, wants, sizeof wants),
                           tw_dtype_name(value->dtype), tw_shape_text(value->shape, has, sizeof has)));
    if (same)
        TWI_TRY(twi_resource_write(r, value, error));
    else
        TWI_TRY(twi_resources_reshape(&s->resources, variable->name, value, oldest_run(s, s->lanes[0]), error));
    r->initialized = true;
done:
    end_access(s);
    return status;
}

/* ---- streams --------------------------------------------------------------------------------------------------- */

/* Lanes may be drawing from it. */
static void copy_counters(twi_resource *r, int64_t *counters)
{
    while (atomic_exchange_explicit(&r->counting, true, memory_order_acquire))
        ; /* for the few instructions that follow */
    memcpy(counters, r->counters, sizeof r->counters);
    atomic_store_explicit(&r->counting, false, memory_order_release);
}

/* The i-th stream, or NULL. */
static twi_resource *find_stream(const tw_session *s, int i)
{
    for (twi_resource *r = s->resources.first; r; r = r->next)
        if (r->num_counters && i-- == 0)
            return r;
    return NULL;
}

int tw_session_num_streams(tw_session *s)
{
    TWI_NEED_OR(s, 0);
    int count = 0;
    begin_access(s);
    while (find_stream(s, count))
        count++;
    end_access(s);
    return count;
}

/* Among several tasks a stream stands where that task is which draws from it; elsewhere it has not moved. */
static tw_status share_stream(twi_comm *c, twi_resource *r, int64_t *counters, tw_error *error)
{
    tw_status status = TW_OK;
    int n = r->num_counters;
    for (int task = 0; task < c->tasks && status == TW_OK; task++) {
        int64_t there[sizeof r->counters / sizeof *r->counters];
        copy_counters(r, there);
        status = twi_comm_share(c, task, there, sizeof *there * (size_t)n, r->name, error);
        int i = n - 1; /* the last number is the highest half of the place */
        while (status == TW_OK && i > 0 && there[i] == counters[i])
            i--;
        if (status == TW_OK && (uint64_t)there[i] > (uint64_t)counters[i])
            memcpy(counters, there, sizeof *there * (size_t)n);
    }
    return status;
}

tw_status tw_session_get_stream(tw_session *s, int i, const char **name, tw_tensor **place, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(name, "name", error);
    TWI_NEED(place, "place", error);
    tw_status status = TW_OK;
    begin_access(s);
    twi_resource *r = find_stream(s, i);
    int64_t counters[sizeof r->counters / sizeof *r->counters];
    if (r)
        copy_counters(r, counters);
    if (r && s->devices->comm)
        status = share_stream(s->devices->comm, r, counters, error);
    if (!r) {
        status = twi_fail(error, TW_NOT_FOUND, "there is no stream number %d", i);
    } else if (status == TW_OK && !(*place = tw_tensor_from(TW_INT64, TW_SHAPE(r->num_counters), counters))) {
        status = twi_fail_memory(error, "reading a stream");
    } else if (status == TW_OK) {
        *name = r->name;
    }
    end_access(s);
    return status;
}

tw_status tw_session_set_stream(tw_session *s, const char *name, const tw_tensor *place, tw_error *error)
{
    TWI_NEED(s, "session", error);
    TWI_NEED(name, "name", error);
    TWI_NEED(place, "place", error);
    enum { MOST = sizeof((twi_resource *)0)->counters / sizeof(int64_t) };
    tw_status status = TW_OK;
    begin_access(s);
    twi_resource *r = NULL;
    if (place->dtype != TW_INT64 || place->shape.rank != 1 || place->elements < 1 || place->elements > MOST)
        status = twi_fail(error, TW_INVALID_ARGUMENT, "the place of stream '%s' is not a vector of 1 to %d int64 numbers",
                          name, MOST);
    else if (!(r = s->resources.interface.get(&s->resources.interface, name)))
        status = twi_fail_memory(error, "setting a stream");
    if (r) {
        memcpy(r->counters, place->data, tw_tensor_bytes(place));
        r->num_counters = (int)place->elements;
    }
    end_access(s);
    return status;
}
