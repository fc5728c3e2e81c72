/* session.c - a graph bound to devices and variable values: finds or makes the plan for a run, feeds, runs, fetches.
 * Never here:  placement, planning, threads. */
#include "place/place.h"
#include "run/dispatcher.h"
#include "run/trace.h"
#include "tensor/tensor.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A plan and what it was made for. */
typedef struct planned {
    twi_plan *plan;
    twi_feed_shape *feeds;
    tw_output *fetches;
    int num_feeds, num_fetches;
    int64_t bound_at;           /* the session's `moves` when it was last told where the arenas are */
} planned;

struct tw_session {
    tw_graph *graph;
    tw_session_options options;
    char *disable;              /* copy of options.disable */
    tw_devices *devices;
    bool owns_devices;
    pthread_mutex_t lock;       /* runs take turns; guards all below */
    twi_placement placement;
    twi_resource_table resources;
    TWI_ARRAY(planned) plans;
    twi_plan *latest_plan;
    twi_dispatchers *dispatchers;
    void **arenas;              /* [devices]: shared by all plans, as large as the largest wants */
    size_t *arena_bytes;
    int64_t moves;              /* goes up whenever an arena has moved */
};

tw_status tw_session_create(tw_graph *graph, const tw_session_options *options, tw_session **result, tw_error *error)
{
    static const tw_session_options defaults;
    tw_status status;
    *result = NULL;
    if (tw_graph_status(graph) != TW_OK)
        return twi_fail(error, tw_graph_status(graph), "%s", tw_graph_message(graph));
    tw_session *s = twi_alloc(sizeof *s);
    if (!s)
        return twi_fail_memory(error, "creating a session");
    pthread_mutex_init(&s->lock, NULL);
    twi_resources_init(&s->resources);
    s->graph = graph;
    s->options = options ? *options : defaults;
    s->devices = s->options.devices;
    if (s->options.disable && !(s->disable = twi_strdup(s->options.disable)))
        TWI_TRY(twi_fail_memory(error, "creating a session"));
    if (!s->devices) {
        s->owns_devices = true;
        TWI_TRY(tw_devices_create(NULL, &s->devices, error));
    }
    s->arenas = twi_alloc_array((size_t)s->devices->count, sizeof *s->arenas);
    s->arena_bytes = twi_alloc_array((size_t)s->devices->count, sizeof *s->arena_bytes);
    if (!s->arenas || !s->arena_bytes)
        TWI_TRY(twi_fail_memory(error, "creating a session"));
    TWI_TRY(twi_dispatchers_create(s->devices, &s->dispatchers, error));
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
    pthread_mutex_lock(&s->lock); /* a run in progress ends first */
    pthread_mutex_unlock(&s->lock);
    twi_dispatchers_destroy(s->dispatchers);
    for (int i = 0; i < s->plans.count; i++) {
        twi_plan_destroy(s->plans.items[i].plan);
        twi_free(s->plans.items[i].feeds);
        twi_free(s->plans.items[i].fetches);
    }
    twi_array_free(&s->plans);
    for (int d = 0; s->arenas && s->arena_bytes && d < s->devices->count; d++)
        twi_device_free(s->devices->items[d], s->arenas[d], s->arena_bytes[d]);
    twi_free(s->arenas);
    twi_free(s->arena_bytes);
    twi_resources_free(&s->resources);
    twi_placement_free(&s->placement);
    if (s->owns_devices)
        tw_devices_destroy(s->devices);
    twi_free(s->disable);
    pthread_mutex_destroy(&s->lock);
    twi_free(s);
}

/* ---- plans ----------------------------------------------------------------------------------------------------------- */

static bool same_output(tw_output a, tw_output b)
{
    return a.node == b.node && a.index == b.index;
}

static bool fits(const planned *p, const tw_feed *feeds, int num_feeds, const tw_output *fetches, int num_fetches)
{
    if (p->num_feeds != num_feeds || p->num_fetches != num_fetches)
        return false;
    for (int i = 0; i < num_fetches; i++)
        if (!same_output(p->fetches[i], fetches[i]))
            return false;
    for (int i = 0; i < num_feeds; i++)
        if (!same_output(p->feeds[i].output, feeds[i].output) || p->feeds[i].dtype != feeds[i].tensor->dtype ||
            !tw_shape_equal(p->feeds[i].shape, feeds[i].tensor->shape))
            return false;
    return true;
}

static tw_status place(tw_session *s, tw_error *error)
{
    if (s->placement.count == s->graph->nodes.count)
        return TW_OK;
    twi_placement_options options = {.soft = s->options.allow_soft_placement, .devices = s->devices};
    tw_status status = twi_place(s->graph, &options, &s->placement, error);
    if (status != TW_OK)
        return status;
    if (s->options.log_device_placement && s->options.placement_log)
        twi_placement_log(s->graph, s->devices, &s->placement, s->options.placement_log,
                          s->options.placement_log_user);
    return TW_OK;
}

/* Arenas grow to what the largest plan wants. One that cannot is gone, and the next run gets what it needs itself: a
 * plan that does not fit takes nothing away from those that do. */
static tw_status grow_arenas(tw_session *s, const twi_plan *plan, tw_error *error)
{
    for (int d = 0; d < s->devices->count; d++) {
        size_t bytes = plan->lists[d].arena_bytes;
        if (bytes <= s->arena_bytes[d])
            continue;
        twi_device_free(s->devices->items[d], s->arenas[d], s->arena_bytes[d]);
        s->arenas[d] = NULL;
        s->arena_bytes[d] = 0;
        s->moves++;
        tw_status status = twi_device_alloc(s->devices->items[d], bytes, "the buffers of a step", &s->arenas[d], error);
        if (status != TW_OK)
            return status;
        s->arena_bytes[d] = bytes;
    }
    return TW_OK;
}

static tw_status give_arenas(tw_session *s, planned *p, tw_error *error)
{
    tw_status status = grow_arenas(s, p->plan, error);
    if (status == TW_OK && p->bound_at != s->moves) {
        twi_plan_bind(p->plan, s->arenas);
        p->bound_at = s->moves;
    }
    return status;
}

static tw_status make_plan(tw_session *s, const tw_feed *feeds, int num_feeds, const tw_output *fetches,
                           int num_fetches, planned *made, tw_error *error)
{
    tw_status status;
    *made = (planned){.num_feeds = num_feeds, .num_fetches = num_fetches, .bound_at = -1};
    made->feeds = twi_alloc_array((size_t)num_feeds + 1, sizeof *made->feeds);
    made->fetches = twi_alloc_array((size_t)num_fetches + 1, sizeof *made->fetches);
    if (!made->feeds || !made->fetches)
        TWI_TRY(twi_fail_memory(error, "making a plan"));
    for (int i = 0; i < num_feeds; i++)
        made->feeds[i] = (twi_feed_shape){feeds[i].output, feeds[i].tensor->dtype, feeds[i].tensor->shape};
    if (num_fetches)
        memcpy(made->fetches, fetches, sizeof *fetches * (size_t)num_fetches);
    TWI_TRY(place(s, error));
    twi_request request = {
        .graph = s->graph,
        .placement = s->placement.devices,
        .feeds = made->feeds,
        .num_feeds = num_feeds,
        .fetches = made->fetches,
        .num_fetches = num_fetches,
        .devices = s->devices,
        .resources = &s->resources,
        .disable = s->disable,
        .plain_kernels = s->options.plain_kernels,
    };
    TWI_TRY(twi_plan_create(&request, &made->plan, error));
    TWI_TRY(give_arenas(s, made, error));
done:
    if (status != TW_OK) {
        twi_plan_destroy(made->plan);
        twi_free(made->feeds);
        twi_free(made->fetches);
    }
    return status;
}

static tw_status check_request(tw_session *s, const tw_feed *feeds, int num_feeds, const tw_output *fetches,
                               int num_fetches, tw_error *error)
{
    if (tw_graph_status(s->graph) != TW_OK)
        return twi_fail(error, tw_graph_status(s->graph), "%s", tw_graph_message(s->graph));
    for (int i = 0; i < num_fetches; i++) {
        const tw_node *node = fetches[i].node;
        if (!node || node->graph != s->graph)
            return twi_fail(error, TW_INVALID_ARGUMENT, "fetch %d is %s", i,
                            node ? "of another graph" : "a dead output");
        if (fetches[i].index >= node->num_outputs)
            return twi_fail(error, TW_INVALID_ARGUMENT, "FetchOutputs %s: output index too large, must be < %d",
                            node->name, node->num_outputs);
        if (fetches[i].index < -1)
            return twi_fail(error, TW_INVALID_ARGUMENT, "fetch %d asks for output %d of '%s'; -1 stands for the node", i,
                            fetches[i].index, node->name);
    }
    for (int i = 0; i < num_feeds; i++) {
        if (!feeds[i].output.node || feeds[i].output.node->graph != s->graph || feeds[i].output.index < 0 ||
            feeds[i].output.index >= feeds[i].output.node->num_outputs || !feeds[i].tensor)
            return twi_fail(error, TW_INVALID_ARGUMENT, "feed %d is not an output of this graph with a tensor", i);
        for (int k = 0; k < i; k++)
            if (same_output(feeds[k].output, feeds[i].output))
                return twi_fail(error, TW_INVALID_ARGUMENT, "'%s:%d' is fed twice, as feed %d and %d",
                                feeds[i].output.node->name, feeds[i].output.index, k, i);
    }
    return TW_OK;
}

static tw_status find_plan(tw_session *s, const tw_feed *feeds, int num_feeds, const tw_output *fetches,
                           int num_fetches, twi_plan **plan, tw_error *error)
{
    for (int i = 0; i < s->plans.count; i++)
        if (fits(&s->plans.items[i], feeds, num_feeds, fetches, num_fetches)) {
            *plan = s->plans.items[i].plan;
            return give_arenas(s, &s->plans.items[i], error);
        }
    planned made;
    if (!twi_reserve(&s->plans, s->plans.count + 1))
        return twi_fail_memory(error, "making a plan");
    tw_status status = make_plan(s, feeds, num_feeds, fetches, num_fetches, &made, error);
    if (status != TW_OK)
        return status;
    s->plans.items[s->plans.count++] = made;
    *plan = made.plan;
    return TW_OK;
}

/* ---- running --------------------------------------------------------------------------------------------------------- */

static tw_status check_variables(const twi_plan *plan, tw_error *error)
{
    for (int i = 0; i < plan->num_needed; i++)
        if (!plan->needed[i]->initialized)
            return twi_fail(error, TW_FAILED_PRECONDITION,
                            "Error while reading resource variable %s from Container: localhost. This could mean that "
                            "the variable was uninitialized.",
                            plan->needed[i]->name);
    return TW_OK;
}

static tw_status write_feeds(const twi_plan *plan, const tw_feed *feeds, tw_error *error)
{
    for (int i = 0; i < plan->num_feeds; i++) {
        const twi_port *port = &plan->feeds[i];
        if (!port->buffer)
            continue; /* folded away or not needed */
        if (port->dtype == TW_STRING)
            return twi_fail(error, TW_UNIMPLEMENTED, "feeding strings is not supported (feed %d)", i);
        tw_status status =
            port->device->ops->write(port->device, port->memory, feeds[i].tensor->data, port->bytes, error);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

static tw_status read_value(twi_device *device, const void *memory, tw_tensor *into, tw_error *error)
{
    if (into->dtype != TW_STRING)
        return device->ops->read(device, into->data, memory, tw_tensor_bytes(into), error);
    const tw_string *strings = memory;
    for (int64_t i = 0; i < into->elements; i++)
        if (tw_tensor_set_string(into, i, strings[i].data, strings[i].size) != TW_OK)
            return twi_fail_memory(error, "fetching strings");
    return TW_OK;
}

/* Forgets the tensors that were made for a run which has failed. */
static void drop_results(const twi_plan *plan, tw_tensor **results)
{
    for (int i = 0; i < plan->num_fetches; i++) {
        twi_port *port = &plan->fetches[i];
        if (port->result != results[i])
            tw_tensor_release(port->result);
        port->result = NULL;
    }
}

/* Finds room for the values before the run, so that a step is not lost for want of it. A tensor of an earlier run that
 * fits is filled again. */
static tw_status make_results(const twi_plan *plan, tw_tensor **results, tw_error *error)
{
    for (int i = 0; i < plan->num_fetches; i++) {
        twi_port *port = &plan->fetches[i];
        tw_tensor *old = results[i];
        if (!port->buffer)
            continue;
        bool fits = old && twi_tensor_is_sole(old) && old->dtype == port->dtype && tw_shape_equal(old->shape, port->shape);
        port->result = fits ? old : tw_tensor_create(port->dtype, port->shape);
        if (!port->result) {
            drop_results(plan, results);
            return twi_fail_memory(error, "fetching results");
        }
    }
    return TW_OK;
}

/* Reads all values first, then hands them over. */
static tw_status read_results(const twi_plan *plan, tw_tensor **results, tw_error *error)
{
    for (int i = 0; i < plan->num_fetches; i++) {
        const twi_port *port = &plan->fetches[i];
        tw_status status = port->result ? read_value(port->device, port->memory, port->result, error) : TW_OK;
        if (status != TW_OK)
            return status;
    }
    for (int i = 0; i < plan->num_fetches; i++) {
        twi_port *port = &plan->fetches[i];
        if (port->result != results[i])
            tw_tensor_release(results[i]);
        results[i] = port->result;
        port->result = NULL;
    }
    return TW_OK;
}

static tw_status run_plan(tw_session *s, twi_plan *plan, const tw_feed *feeds, tw_tensor **results, tw_error *error)
{
    tw_status status;
    TWI_TRY(write_feeds(plan, feeds, error));
    TWI_TRY(twi_dispatchers_run(s->dispatchers, plan, s->options.trace, error));
    for (int i = 0; i < plan->num_assigned; i++)
        plan->assigned[i]->initialized = true;
    if (results)
        TWI_TRY(read_results(plan, results, error));
done:
    if (results && status != TW_OK)
        drop_results(plan, results);
    return status;
}

tw_status tw_session_run(tw_session *s, const tw_feed *feeds, int num_feeds, const tw_output *fetches,
                         int num_fetches, tw_tensor **results, tw_error *error)
{
    twi_plan *plan = NULL;
    tw_status status;
    pthread_mutex_lock(&s->lock);
    TWI_TRY(check_request(s, feeds, num_feeds, fetches, num_fetches, error));
    TWI_TRY(find_plan(s, feeds, num_feeds, fetches, num_fetches, &plan, error));
    s->latest_plan = plan;
    TWI_TRY(check_variables(plan, error));
    if (results)
        TWI_TRY(make_results(plan, results, error));
    TWI_TRY(run_plan(s, plan, feeds, results, error));
done:
    pthread_mutex_unlock(&s->lock);
    return status;
}

tw_status tw_session_set_source(tw_session *s, const char *name, tw_source_function *fill, void *user, tw_error *error)
{
    char key[300];
    snprintf(key, sizeof key, "source/%s", name);
    tw_status status = TW_OK;
    pthread_mutex_lock(&s->lock);
    twi_resource *r = s->resources.interface.get(&s->resources.interface, key);
    twi_source *source = r ? r->object ? r->object : twi_alloc(sizeof *source) : NULL;
    if (source) {
        *source = (twi_source){fill, user};
        r->object = source;
        r->destroy = twi_free;
    } else {
        status = twi_fail_memory(error, "setting a source");
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* ---- variables ----------------------------------------------------------------------------------------------------------- */

/* The variable's memory, made if no plan has needed it yet. */
static tw_status find_variable(tw_session *s, const tw_variable *variable, twi_resource **resource, tw_error *error)
{
    if (!variable || !variable->handle.node || variable->handle.node->graph != s->graph)
        return twi_fail(error, TW_INVALID_ARGUMENT, "that variable is not of this session's graph");
    tw_status status = place(s, error);
    if (status != TW_OK)
        return status;
    twi_device *device = s->devices->items[s->placement.devices[variable->handle.node->id]];
    return twi_resources_variable(&s->resources, variable->name, variable->dtype, variable->shape, device, resource,
                                  error);
}

tw_status tw_session_get_variable(tw_session *s, const tw_variable *variable, tw_tensor **value, tw_error *error)
{
    twi_resource *r;
    tw_status status;
    tw_tensor *tensor = NULL;
    pthread_mutex_lock(&s->lock);
    TWI_TRY(find_variable(s, variable, &r, error));
    if (!r->initialized)
        TWI_TRY(twi_fail(error, TW_FAILED_PRECONDITION, "variable %s has no value yet", variable->name));
    tensor = tw_tensor_create(r->dtype, r->shape);
    if (!tensor)
        TWI_TRY(twi_fail_memory(error, "reading a variable"));
    TWI_TRY(r->device->ops->read(r->device, tensor->data, r->memory, tw_tensor_bytes(tensor), error));
    *value = tensor;
    tensor = NULL;
done:
    pthread_mutex_unlock(&s->lock);
    tw_tensor_release(tensor);
    return status;
}

tw_status tw_session_set_variable(tw_session *s, const tw_variable *variable, const tw_tensor *value, tw_error *error)
{
    twi_resource *r;
    tw_status status;
    char has[128], wants[128];
    pthread_mutex_lock(&s->lock);
    TWI_TRY(find_variable(s, variable, &r, error));
    if (value->dtype != r->dtype || !tw_shape_equal(value->shape, r->shape))
        TWI_TRY(twi_fail(error, TW_INVALID_ARGUMENT, "variable %s is %s %s, the value for it is %s %s", variable->name,
                         tw_dtype_name(r->dtype), tw_shape_text(r->shape, wants, sizeof wants),
                         tw_dtype_name(value->dtype), tw_shape_text(value->shape, has, sizeof has)));
    TWI_TRY(r->device->ops->write(r->device, r->memory, value->data, tw_tensor_bytes(value), error));
    r->initialized = true;
done:
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* ---- streams --------------------------------------------------------------------------------------------------- */

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
    int count = 0;
    pthread_mutex_lock(&s->lock);
    while (find_stream(s, count))
        count++;
    pthread_mutex_unlock(&s->lock);
    return count;
}

tw_status tw_session_get_stream(tw_session *s, int i, const char **name, tw_tensor **place, tw_error *error)
{
    tw_status status = TW_OK;
    pthread_mutex_lock(&s->lock);
    const twi_resource *r = find_stream(s, i);
    if (!r) {
        status = twi_fail(error, TW_NOT_FOUND, "there is no stream number %d", i);
    } else if (!(*place = tw_tensor_from(TW_INT64, TW_SHAPE(r->num_counters), r->counters))) {
        status = twi_fail_memory(error, "reading a stream");
    } else {
        *name = r->name;
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

tw_status tw_session_set_stream(tw_session *s, const char *name, const tw_tensor *place, tw_error *error)
{
    enum { MOST = sizeof((twi_resource *)0)->counters / sizeof(int64_t) };
    tw_status status = TW_OK;
    pthread_mutex_lock(&s->lock);
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
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* ---- answering questions ----------------------------------------------------------------------------------------------- */

static bool is_placed(const tw_session *s, const tw_node *node)
{
    return node->graph == s->graph && node->id < s->placement.count;
}

const char *tw_session_device(tw_session *s, const tw_node *node)
{
    pthread_mutex_lock(&s->lock);
    const char *text = is_placed(s, node) ? s->devices->items[s->placement.devices[node->id]]->text : NULL;
    pthread_mutex_unlock(&s->lock);
    return text;
}

const char *tw_session_why(tw_session *s, const tw_node *node)
{
    pthread_mutex_lock(&s->lock);
    const char *text = is_placed(s, node) ? s->placement.reasons[node->id] : NULL;
    pthread_mutex_unlock(&s->lock);
    return text;
}

tw_graph *tw_session_graph(const tw_session *s)
{
    return s->graph;
}

tw_status tw_session_plan_info(tw_session *s, tw_plan_info *info, tw_error *error)
{
    pthread_mutex_lock(&s->lock);
    tw_status status = TW_OK;
    if (s->latest_plan)
        *info = s->latest_plan->info;
    else
        status = twi_fail(error, TW_FAILED_PRECONDITION, "nothing has run in this session yet");
    pthread_mutex_unlock(&s->lock);
    return status;
}

tw_status tw_session_write_trace(tw_session *s, const char *path, tw_error *error)
{
    pthread_mutex_lock(&s->lock);
    tw_status status = s->latest_plan && s->options.trace
                           ? twi_trace_write(s->latest_plan, path, error)
                           : twi_fail(error, TW_FAILED_PRECONDITION, "no traced run in this session (option trace)");
    pthread_mutex_unlock(&s->lock);
    return status;
}
