/* function.c - see function.h. */
#include "run/function.h"

#include "device/dataset/dataset.h"
#include "device/state/random.h"
#include "device/tasks.h"
#include "graph/graph.h"
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

enum { KEPT_PLANS = 256 }; /* of a lane: elements come in many shapes */
enum { MOST_ARGUMENTS = 2 * TWI_ELEMENT, MOST_RESULTS = 2 * TWI_ELEMENT };

/* Where an argument goes, or a result comes from. */
typedef struct port {
    tw_output output;   /* no node: it is a captured resource */
    twi_resource *slot; /* of a variant; NULL: it is a tensor */
    int argument;       /* of a result: the argument that it is; -1: it is computed */
} port;

/* One that no call, or one call, is in. */
typedef struct berth {
    twi_lane *lane;
    bool busy;
} berth;

/* Of random numbers, that a node of the function draws from. */
typedef struct stream {
    twi_resource *resource;
    uint64_t seed, seed2;
} stream;

typedef struct function {
    twi_function interface; /* first: kernels get a pointer to this */
    twi_called *owner;
    char *name;
    port arguments[MOST_ARGUMENTS], results[MOST_RESULTS];
    tw_output *fetches; /* [num_fetches] values of the results that are computed, then what only has to run */
    int num_values, num_fetches;
    bool alone; /* calls pass variants through slots, and so come one after the other */
    TWI_ARRAY(stream) streams;
    int calls; /* at the moment */
    TWI_ARRAY(berth) berths;
    struct function *next;
} function;

struct twi_called {
    twi_function_table table; /* first: kernels get a pointer to this */
    twi_planner planner;      /* the session's, for many small plans */
    void (*wake)(void *user);
    void *user;
    pthread_mutex_t lock; /* guards all below, and berths; after the planner's, if both are taken */
    pthread_cond_t ended; /* a call has */
    function *first;
    int calls;
    bool cancelled;
};

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static tw_output maker_of(tw_output output)
{
    while (output.node->num_inputs > output.index && twi_op_is(output.node->op, TWI_PASSES))
        output = output.node->inputs[output.index];
    return output;
}

static tw_status find_slot(const function *f, const tw_node *node, twi_resource **slot, tw_error *error)
{
    twi_resource_table *table = f->owner->planner.request.resources;
    if (node->op->makes != TWI_MAKES_RECIPE)
        return twi_fail(error, TW_UNIMPLEMENTED,
                        "function '%s' gives what %s '%s' chooses: a data set has to be made by a node "
                        "that is known beforehand",
                        f->name, node->op->name, node->name);
    *slot = twi_resources_object(table, "", node->name);
    return *slot ? twi_slot_make(*slot, node->name, error) : twi_fail_memory(error, f->name);
}

static tw_status find_arguments(function *f, tw_graph *graph, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < MOST_ARGUMENTS && status == TW_OK; i++) {
        char name[TWI_NAME_BYTES];
        snprintf(name, sizeof name, "%s/arg/%d", f->name, i);
        tw_node *node = tw_graph_find(graph, name);
        if (!node)
            continue;
        f->arguments[i].output = tw_node_output(node, 0);
        if (node->output_types[0] == TW_RESOURCE)
            status = find_slot(f, node, &f->arguments[i].slot, error);
        f->alone = f->alone || f->arguments[i].slot;
    }
    return status;
}

static int argument_of(const function *f, tw_output output)
{
    for (int i = 0; i < MOST_ARGUMENTS; i++)
        if (f->arguments[i].output.node == output.node)
            return i;
    return -1;
}

static tw_status find_results(function *f, tw_node *gives, tw_error *error)
{
    tw_status status = TW_OK;
    int room = gives->num_inputs + gives->num_control_inputs, extra = 0;
    if (gives->num_inputs > MOST_RESULTS)
        return twi_fail(error, TW_UNIMPLEMENTED, "function '%s' gives %d values, expected at most %d", f->name,
                        gives->num_inputs, MOST_RESULTS);
    f->fetches = twi_alloc_array((size_t)room + 1, sizeof *f->fetches);
    if (!f->fetches)
        return twi_fail_memory(error, f->name);
    f->interface.num_results = gives->num_inputs;
    for (int i = 0; i < gives->num_inputs && status == TW_OK; i++) {
        port *r = &f->results[i];
        r->output = maker_of(gives->inputs[i]);
        r->argument = argument_of(f, r->output);
        if (tw_output_dtype(r->output) == TW_RESOURCE && r->argument < 0)
            status = find_slot(f, r->output.node, &r->slot, error);
        else if (r->argument < 0)
            f->fetches[f->num_values++] = r->output;
    }
    for (int i = 0; i < gives->num_inputs && status == TW_OK; i++)
        if (f->results[i].slot)
            f->fetches[f->num_values + extra++] = (tw_output){f->results[i].output.node, -1};
    for (int i = 0; i < gives->num_control_inputs && status == TW_OK; i++)
        f->fetches[f->num_values + extra++] = (tw_output){gives->control_inputs[i], -1};
    f->num_fetches = f->num_values + extra;
    return status;
}

/* A node whose state nobody else knows, which is a place in a stream of random numbers. */
static bool add_stream(function *f, const tw_node *node)
{
    const twi_attr *seed = twi_attr_find(&node->attrs, "seed"), *seed2 = twi_attr_find(&node->attrs, "seed2");
    twi_resources *resources = &f->owner->planner.request.resources->interface;
    f->interface.draws = true;
    if (!seed || !seed2 || seed->kind != TW_ATTR_INT || seed2->kind != TW_ATTR_INT || (!seed->i && !seed2->i))
        return true;
    stream s = {resources->get(resources, node->name), (uint64_t)seed->i, (uint64_t)seed2->i};
    return s.resource && twi_push(&f->streams, s);
}

/* What nodes of the function, and of those that it calls in turn, say of all of it. */
static tw_status look_inside(function *f, const tw_graph *graph, tw_error *error)
{
    size_t length = strlen(f->name);
    bool fits = true;
    for (int i = 0; i < graph->nodes.count && fits; i++) {
        const tw_node *node = graph->nodes.items[i];
        const twi_op *op = node->op;
        if (strncmp(node->name, f->name, length) != 0 || node->name[length] != '/')
            continue;
        if (op->makes == TWI_MAKES_RECIPE || op->makes == TWI_MAKES_ITERATOR)
            f->alone = true; /* each has one slot */
        else if (twi_op_is(op, TWI_STATEFUL) && !op->makes && !op->roles && node->num_outputs > 0)
            fits = add_stream(f, node);
    }
    return fits ? TW_OK : twi_fail_memory(error, f->name);
}

static void restart(twi_function *self)
{
    function *f = (function *)self;
    for (int i = 0; i < f->streams.count; i++)
        twi_random_restart(f->streams.items[i].resource, f->streams.items[i].seed, f->streams.items[i].seed2);
}

static void destroy(function *f)
{
    for (int i = 0; i < f->berths.count; i++)
        twi_lane_destroy(f->berths.items[i].lane);
    twi_array_free(&f->berths);
    twi_array_free(&f->streams);
    twi_free(f->fetches);
    twi_free(f->name);
    twi_free(f);
}

static tw_status call(twi_function *self, tw_tensor *const *arguments, int num_arguments, tw_tensor **results,
                      tw_error *error);

/* While a kernel is prepared: with the planner's lock held. */
static tw_status find(twi_function_table *self, const char *name, twi_function **result, tw_error *error)
{
    twi_called *c = (twi_called *)self;
    tw_graph *graph = c->planner.request.graph;
    tw_node *gives = tw_graph_find(graph, name);
    tw_status status;
    for (function *f = c->first; f; f = f->next)
        if (strcmp(f->name, name) == 0) {
            *result = &f->interface;
            return TW_OK;
        }
    if (!gives)
        return twi_fail(error, TW_NOT_FOUND, "the graph has no function '%s'", name);
    if (twi_op_is(gives->op, TWI_UNKNOWN))
        return twi_fail(error, TW_NOT_FOUND, "function '%s': %s", name, twi_attr_string(&gives->attrs, "why", ""));
    function *f = twi_alloc(sizeof *f);
    if (!f)
        return twi_fail_memory(error, name);
    f->interface.call = call;
    f->interface.restart = restart;
    f->owner = c;
    f->name = twi_strdup(name);
    if (!f->name)
        TWI_LEAVE(twi_fail_memory(error, name));
    TWI_TRY(find_arguments(f, graph, error));
    TWI_TRY(find_results(f, gives, error));
    TWI_TRY(look_inside(f, graph, error));
    pthread_mutex_lock(&c->lock);
    f->next = c->first;
    c->first = f;
    pthread_mutex_unlock(&c->lock);
    *result = &f->interface;
    return TW_OK;
done:
    destroy(f);
    return status;
}

/* ---- calling ----------------------------------------------------------------------------------------------------- */

/* With the lock held: a berth for the call, its number. */
static tw_status enter(function *f, int *number, tw_error *error)
{
    twi_called *c = f->owner;
    tw_status status = TW_OK;
    while (f->alone && f->calls && !c->cancelled)
        pthread_cond_wait(&c->ended, &c->lock);
    if (c->cancelled)
        return twi_fail(error, TW_CANCELLED, "the session was cancelled");
    for (*number = 0; *number < f->berths.count && f->berths.items[*number].busy; ++*number)
        ;
    if (*number == f->berths.count) {
        berth made = {0};
        status = twi_lane_create(&c->planner, c->wake, c->user, &made.lane, error);
        if (status == TW_OK && !twi_push(&f->berths, made)) {
            twi_lane_destroy(made.lane);
            status = twi_fail_memory(error, f->name);
        }
    }
    if (status == TW_OK) {
        f->berths.items[*number].busy = true;
        f->calls++;
        c->calls++;
    }
    return status;
}

static void leave(function *f, int number)
{
    twi_called *c = f->owner;
    pthread_mutex_lock(&c->lock);
    f->berths.items[number].busy = false;
    f->calls--;
    c->calls--;
    pthread_cond_broadcast(&c->ended);
    pthread_mutex_unlock(&c->lock);
}

static int list_feeds(const function *f, tw_tensor *const *arguments, int num_arguments, tw_feed *feeds)
{
    int count = 0;
    for (int i = 0; i < num_arguments; i++) {
        const port *a = &f->arguments[i];
        if (a->slot)
            twi_slot_put(a->slot, arguments[i] ? tw_tensor_retain(arguments[i]) : NULL);
        else if (a->output.node && arguments[i])
            feeds[count++] = (tw_feed){a->output, arguments[i]};
    }
    return count;
}

static tw_status run(const function *f, twi_lane *lane, const tw_feed *feeds, int num_feeds, tw_tensor **values,
                     tw_error *error)
{
    twi_wanted w = {.feeds = feeds, .num_feeds = num_feeds, .fetches = f->fetches, .num_fetches = f->num_fetches};
    twi_cut *cut;
    twi_link *link;
    int64_t done;
    tw_status status;
    if (!f->num_fetches)
        return TW_OK;
    pthread_mutex_lock(&lane->turn);
    status = twi_cut_find(lane, &w, &cut, error);
    if (status == TW_OK)
        status = twi_link_find(lane, cut, &w, &link, error);
    if (status == TW_OK)
        status = twi_run_links(lane, link, 1, false, feeds, NULL, values, &done, error);
    pthread_mutex_unlock(&lane->turn);
    return status;
}

static tw_status call(twi_function *self, tw_tensor *const *arguments, int num_arguments, tw_tensor **results,
                      tw_error *error)
{
    function *f = (function *)self;
    tw_feed feeds[MOST_ARGUMENTS];
    tw_tensor *values[2 * MOST_RESULTS] = {0};
    int number = 0, taken = 0;
    if (num_arguments > MOST_ARGUMENTS || f->num_fetches > 2 * MOST_RESULTS)
        return twi_fail(error, TW_UNIMPLEMENTED, "function '%s' is given %d arguments, expected at most %d", f->name,
                        num_arguments, MOST_ARGUMENTS);
    pthread_mutex_lock(&f->owner->lock);
    tw_status status = enter(f, &number, error);
    twi_lane *lane = status == TW_OK ? f->berths.items[number].lane : NULL;
    pthread_mutex_unlock(&f->owner->lock);
    if (status != TW_OK)
        return status;
    int count = list_feeds(f, arguments, num_arguments, feeds);
    status = run(f, lane, feeds, count, values, error);
    for (int i = 0; i < self->num_results && status == TW_OK; i++) {
        const port *r = &f->results[i];
        results[i] = r->argument >= 0 ? tw_tensor_retain(arguments[r->argument])
                     : r->slot        ? twi_slot_get(r->slot)
                                      : values[taken++];
    }
    for (int i = taken; i < f->num_fetches; i++)
        tw_tensor_release(values[i]);
    leave(f, number);
    return status;
}

/* ---- the session's ----------------------------------------------------------------------------------------------- */

static void keep_object(void *object)
{
    (void)object;
}

tw_status twi_functions_create(const twi_planner *planner, void (*wake)(void *user), void *user, twi_called **result,
                               tw_error *error)
{
    twi_resources *resources = &planner->request.resources->interface;
    twi_resource *door = resources->get(resources, TWI_FUNCTIONS);
    twi_called *c = twi_alloc(sizeof *c);
    *result = c;
    if (!c || !door) {
        twi_free(c);
        *result = NULL;
        return twi_fail_memory(error, "creating a session");
    }
    c->table.find = find;
    c->planner = *planner;
    c->planner.request.one_thread = true;
    if (planner->request.devices->comm) {
        c->planner.request.alone = true;
        c->planner.request.home = twi_host_of(planner->request.devices, planner->request.devices->comm->task);
        c->planner.request.planner = &c->planner;
    }
    c->planner.most = planner->most < KEPT_PLANS ? KEPT_PLANS : planner->most;
    c->wake = wake;
    c->user = user;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->ended, NULL);
    door->object = c;
    door->destroy = keep_object;
    return TW_OK;
}

void twi_functions_cancel(twi_called *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->cancelled = true;
    for (function *f = c->first; f; f = f->next)
        for (int i = 0; i < f->berths.count; i++)
            twi_dispatchers_cancel(f->berths.items[i].lane->dispatchers, &twi_cancelled);
    pthread_cond_broadcast(&c->ended);
    pthread_mutex_unlock(&c->lock);
}

void twi_functions_close(twi_called *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->cancelled = true;
    while (c->calls)
        pthread_cond_wait(&c->ended, &c->lock);
    for (function *f = c->first; f; f = f->next) {
        for (int i = 0; i < f->berths.count; i++)
            twi_lane_destroy(f->berths.items[i].lane);
        twi_array_free(&f->berths);
    }
    pthread_mutex_unlock(&c->lock);
}

void twi_functions_destroy(twi_called *c)
{
    while (c && c->first) {
        function *f = c->first;
        c->first = f->next;
        destroy(f);
    }
    if (c) {
        pthread_mutex_destroy(&c->lock);
        pthread_cond_destroy(&c->ended);
    }
    twi_free(c);
}
