/* session.c - sessions: what is fed and fetched goes to and comes from Tower's, in a lane of its own for each thread
 * that runs at the time, for a run that waits for another must not hold it up.
 * Never here:  building; what a run computes. */
#include "capi.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api_experimental.h>
#include <time.h>
#include <tower/io.h>
#include <tower/train.h>
#include <unistd.h>

enum { MOST_LANES = 512 }; /* above are those that Tower gives out */

struct TF_SessionOptions {
    char *target;
    tw_device_options devices;
    tw_session_options session;
    int64_t timeout_ms; /* of every run; not above 0: none */
    bool no_cpus;       /* are asked for: there is no session without one */
};

struct TF_Session {
    TF_Graph *graph;
    tw_devices *devices;
    tw_session *tower;
    int64_t timeout_ms; /* as the options' */
    bool closed;
    partial_run *partial_runs;
    TF_Session *next; /* of the graph's */
    pthread_mutex_t lock; /* of lanes */
    pthread_cond_t freed;
    bool busy[MOST_LANES];
    int num_traced; /* runs that ask for it, under way */
};

/* ---- options ---------------------------------------------------------------------------------------------------- */

TF_SessionOptions *TF_NewSessionOptions(void)
{
    TF_SessionOptions *options = calloc(1, sizeof *options);
    if (options) {
        options->devices.size = sizeof options->devices;
        options->session.size = sizeof options->session;
    }
    return options;
}

void TF_DeleteSessionOptions(TF_SessionOptions *options)
{
    if (options)
        free(options->target);
    free(options);
}

bool places_softly(const TF_SessionOptions *options)
{
    return options->session.allow_soft_placement;
}

void TF_SetTarget(TF_SessionOptions *options, const char *target)
{
    free(options->target);
    options->target = strdup(target);
}

/* device_count: a map from the type to how many there are. */
static void read_device_count(TF_SessionOptions *options, const wire_field *map)
{
    enum { KEY = 1, VALUE = 2 };
    wire_field field;
    bool cpus = false, gpus = false;
    int64_t count = 0;
    wire_reader r = wire_read(map->data, map->size);
    while (wire_next(&r, &field)) {
        cpus |= field.number == KEY && wire_is_text(&field, "CPU");
        gpus |= field.number == KEY && wire_is_text(&field, "GPU");
        if (field.number == VALUE)
            count = (int64_t)field.value;
    }
    if (cpus) {
        options->devices.cpu_devices = count > INT_MAX ? INT_MAX : (int)(count < 0 ? 0 : count);
        options->no_cpus = count <= 0;
    }
    if (gpus)
        options->devices.no_gpus = count == 0;
}

static void read_gpu_options(TF_SessionOptions *options, const wire_field *message)
{
    enum { MEMORY_FRACTION = 1, ALLOW_GROWTH = 4 };
    wire_field field;
    wire_reader r = wire_read(message->data, message->size);
    while (wire_next(&r, &field)) {
        if (field.number == MEMORY_FRACTION && field.type == 1)
            memcpy(&options->devices.gpu_memory_fraction, &field.value, sizeof field.value);
        if (field.number == ALLOW_GROWTH)
            options->devices.allow_growth = field.value != 0;
    }
}

void TF_SetConfig(TF_SessionOptions *options, const void *proto, size_t proto_len, TF_Status *status)
{
    enum {
        DEVICE_COUNT = 1,
        INTRA_OP_THREADS = 2,
        GPU_OPTIONS = 6,
        ALLOW_SOFT_PLACEMENT = 7,
        LOG_DEVICE_PLACEMENT = 8,
        OPERATION_TIMEOUT = 11
    };
    wire_field field;
    TF_SetStatus(status, TF_OK, "");
    if (!wire_is_message(proto, proto_len)) {
        set_status(status, TF_INVALID_ARGUMENT, "Unparseable ConfigProto");
        return;
    }
    options->devices = (tw_device_options){.size = sizeof options->devices};
    options->session = (tw_session_options){.size = sizeof options->session};
    options->timeout_ms = 0;
    options->no_cpus = false;
    wire_reader r = wire_read(proto, proto_len);
    while (wire_next(&r, &field)) {
        if (field.number == DEVICE_COUNT && field.type == 2)
            read_device_count(options, &field);
        if (field.number == INTRA_OP_THREADS && field.value <= INT_MAX)
            options->devices.cpu_threads = (int)field.value;
        if (field.number == GPU_OPTIONS && field.type == 2)
            read_gpu_options(options, &field);
        if (field.number == ALLOW_SOFT_PLACEMENT)
            options->session.allow_soft_placement = field.value != 0;
        if (field.number == LOG_DEVICE_PLACEMENT)
            options->session.log_device_placement = field.value != 0;
        if (field.number == OPERATION_TIMEOUT)
            options->timeout_ms = (int64_t)field.value;
    }
}

/* ---- making and letting go -------------------------------------------------------------------------------------- */

static bool check_options(const TF_SessionOptions *opts, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    if (opts && opts->target && *opts->target && strcmp(opts->target, "local") != 0)
        set_status(status, strncmp(opts->target, "grpc", 4) == 0 ? TF_UNIMPLEMENTED : TF_NOT_FOUND,
                   "sessions run in this process: there is no target '%s'", opts->target);
    else if (opts && opts->no_cpus)
        set_status(status, TF_NOT_FOUND, "No CPU devices are available in this process");
    return is_ok(status);
}

TF_Session *new_session(TF_Graph *graph, const TF_SessionOptions *opts, int kept_plans, TF_Status *status)
{
    tw_error error = TW_NO_ERROR;
    if (!check_options(opts, status))
        return NULL;
    TF_Session *session = calloc(1, sizeof *session);
    if (!session) {
        set_no_memory(status);
        return NULL;
    }
    tw_session_options options = opts ? opts->session : (tw_session_options){.size = sizeof options};
    if (tw_devices_create(opts ? &opts->devices : NULL, &session->devices, &error) == TW_OK) {
        options.devices = session->devices;
        options.any_fed_shapes = true;
        options.kept_plans = kept_plans;
        pthread_rwlock_wrlock(&graph->lock);
        if (tw_session_create(graph->tower, &options, &session->tower, &error) == TW_OK) {
            session->next = graph->sessions;
            graph->sessions = session;
        }
        pthread_rwlock_unlock(&graph->lock);
    }
    set_error(status, &error);
    if (!is_ok(status)) {
        tw_devices_destroy(session->devices);
        free(session);
        return NULL;
    }
    retain_graph(graph);
    session->graph = graph;
    session->timeout_ms = opts ? opts->timeout_ms : 0;
    pthread_mutex_init(&session->lock, NULL);
    pthread_cond_init(&session->freed, NULL);
    return session;
}

TF_Session *TF_NewSession(TF_Graph *graph, const TF_SessionOptions *opts, TF_Status *status)
{
    return new_session(graph, opts, 0, status);
}

void TF_CloseSession(TF_Session *session, TF_Status *status)
{
    __atomic_store_n(&session->closed, true, __ATOMIC_RELEASE);
    tw_session_cancel(session->tower);
    TF_SetStatus(status, TF_OK, "");
}

void TF_DeleteSession(TF_Session *session, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    if (!session)
        return;
    pthread_rwlock_wrlock(&session->graph->lock);
    TF_Session **link = &session->graph->sessions;
    while (*link != session)
        link = &(*link)->next;
    *link = session->next;
    tw_session_destroy(session->tower);
    pthread_rwlock_unlock(&session->graph->lock);
    free_partial_runs(session->partial_runs);
    tw_devices_destroy(session->devices);
    release_graph(session->graph);
    pthread_mutex_destroy(&session->lock);
    pthread_cond_destroy(&session->freed);
    free(session);
}

/* ---- building under runs ---------------------------------------------------------------------------------------- */

void begin_building(TF_Graph *graph)
{
    pthread_rwlock_wrlock(&graph->lock);
    for (TF_Session *session = graph->sessions; session; session = session->next)
        tw_session_hold(session->tower);
}

void end_building(TF_Graph *graph)
{
    for (TF_Session *session = graph->sessions; session; session = session->next)
        tw_session_release(session->tower);
    pthread_rwlock_unlock(&graph->lock);
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

/* The lowest that nobody is in: who is alone is always in the same, whose plans are kept. */
static int take_lane(TF_Session *session)
{
    int lane = 0;
    pthread_mutex_lock(&session->lock);
    while (session->busy[lane])
        if (++lane == MOST_LANES) {
            pthread_cond_wait(&session->freed, &session->lock);
            lane = 0;
        }
    session->busy[lane] = true;
    pthread_mutex_unlock(&session->lock);
    return lane;
}

static void leave_lane(TF_Session *session, int lane)
{
    pthread_mutex_lock(&session->lock);
    session->busy[lane] = false;
    pthread_cond_signal(&session->freed);
    pthread_mutex_unlock(&session->lock);
}

/* ---- deadlines -------------------------------------------------------------------------------------------------- */

/* Of one run, which a thread of its own cancels when it takes too long. */
typedef struct deadline {
    TF_Session *session;
    int lane;
    pthread_t watcher;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t ended;
    struct timespec at;
    bool has_ended, has_passed;
} deadline;

static void add_ms(struct timespec *at, int64_t ms)
{
    at->tv_sec += ms / 1000;
    at->tv_nsec += ms % 1000 * 1000000;
    at->tv_sec += at->tv_nsec / 1000000000;
    at->tv_nsec %= 1000000000;
}

/* More than once, for the lane may only come to be, or a part of the run begin, behind the first time. */
static void *watch(void *user)
{
    enum { AGAIN_MS = 20 };
    deadline *d = user;
    pthread_mutex_lock(&d->lock);
    while (!d->has_ended)
        if (pthread_cond_timedwait(&d->ended, &d->lock, &d->at) == ETIMEDOUT && !d->has_ended) {
            d->has_passed = true;
            tw_session_cancel_lane(d->session->tower, d->lane);
            add_ms(&d->at, AGAIN_MS);
        }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static bool begin_deadline(deadline *d, TF_Session *session, int lane, int64_t ms)
{
    pthread_condattr_t attributes;
    *d = (deadline){.session = session, .lane = lane};
    clock_gettime(CLOCK_MONOTONIC, &d->at);
    add_ms(&d->at, ms);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    return pthread_create(&d->watcher, NULL, watch, d) == 0;
}

/* Whether it has passed; then the lane is as good as before. */
static bool end_deadline(deadline *d)
{
    pthread_mutex_lock(&d->lock);
    d->has_ended = true;
    pthread_cond_signal(&d->ended);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->watcher, NULL);
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->ended);
    if (d->has_passed)
        tw_session_reopen_lane(d->session->tower, d->lane);
    return d->has_passed;
}

/* ---- a run ------------------------------------------------------------------------------------------------------ */

typedef struct running {
    TF_Session *session;
    tw_feed *feeds;
    tw_output *fetches; /* then the targets */
    tw_tensor **results;
    int num_feeds, num_fetches, num_results;
    TF_Status *status;
} running;

static bool collect_feeds(running *r, const TF_Output *inputs, TF_Tensor *const *values, int count)
{
    tw_error error = TW_NO_ERROR;
    for (int i = 0; i < count; i++) {
        tw_feed *feed = &r->feeds[i];
        if (!find_output_as(r->session->graph, inputs[i], &feed->output, TF_INVALID_ARGUMENT, TF_OUT_OF_RANGE,
                            r->status))
            return false;
        if (!values[i]) {
            set_status(r->status, TF_INVALID_ARGUMENT, "input %d, '%s:%d', has no value", i,
                       TF_OperationName(inputs[i].oper), inputs[i].index);
            return false;
        }
        if (!(feed->tensor = tensor_to_tower(values[i], &error))) {
            set_error(r->status, &error);
            return false;
        }
        r->num_feeds++;
    }
    return true;
}

int find_fed(const tw_feed *feeds, int num_feeds, tw_output output)
{
    while ((output = tw_output_passed(output)).node)
        for (int i = 0; i < num_feeds; i++)
            if (feeds[i].output.node == output.node && feeds[i].output.index == output.index)
                return i;
    return -1;
}

/* Gives those that are fed at once. */
static bool collect_fetches(running *r, TF_Tensor *const *inputs, const TF_Output *outputs, TF_Tensor **values,
                            int noutputs, const TF_Operation *const *targets, int ntargets)
{
    for (int i = 0; i < noutputs; i++) {
        tw_output *fetch = &r->fetches[r->num_fetches++];
        if (!find_output_as(r->session->graph, outputs[i], fetch, TF_INVALID_ARGUMENT, TF_OUT_OF_RANGE, r->status))
            return false;
        int fed = find_fed(r->feeds, r->num_feeds, *fetch);
        if (fed >= 0 && !(values[i] = share_tensor(inputs[fed]))) {
            set_no_memory(r->status);
            return false;
        }
        fetch->index = fed >= 0 ? -1 : fetch->index;
    }
    for (int i = 0; i < ntargets; i++) {
        if (!targets[i] || targets[i]->graph != r->session->graph) {
            set_status(r->status, TF_INVALID_ARGUMENT, "target %d is not in the session's graph", i);
            return false;
        }
        r->fetches[r->num_fetches++] = (tw_output){targets[i]->node, -1};
    }
    return true;
}

static bool give_results(running *r, TF_Tensor **values)
{
    for (int i = 0; i < r->num_results; i++) {
        if (values[i])
            continue; /* as it was fed */
        values[i] = tensor_from_tower(r->results[i]);
        r->results[i] = NULL;
        if (!values[i])
            set_no_memory(r->status);
    }
    return is_ok(r->status);
}

const TF_Graph *session_graph(const TF_Session *session)
{
    return session->graph;
}

bool is_closed(const TF_Session *session)
{
    return __atomic_load_n(&session->closed, __ATOMIC_ACQUIRE);
}

tw_session *tower_session_of(const TF_Session *session)
{
    return session->tower;
}

partial_run **partial_runs_of(TF_Session *session)
{
    return &session->partial_runs;
}

/* A session is traced as long as one of its runs is. */
static void trace(TF_Session *session, int runs)
{
    tw_error error = TW_NO_ERROR;
    pthread_mutex_lock(&session->lock);
    session->num_traced += runs;
    tw_session_set_trace(session->tower, session->num_traced > 0, &error);
    pthread_mutex_unlock(&session->lock);
}

/* A plan that cannot be traced tells nothing. */
static void tell_times(const TF_Session *session, int lane, wire *metadata)
{
    tw_error error = TW_NO_ERROR;
    tw_timeline *timeline = NULL;
    if (tw_session_timeline_in(session->tower, lane, &timeline, &error) == TW_OK)
        write_step_stats(metadata, timeline);
    tw_timeline_destroy(timeline);
}

void run_session(TF_Session *session, run_settings settings, const tw_feed *feeds, int num_feeds,
                 const tw_output *fetches, int num_fetches, tw_tensor **results, TF_Status *status)
{
    tw_error error = TW_NO_ERROR;
    deadline deadline;
    int lane = take_lane(session);
    int64_t ms = settings.timeout_ms > 0 ? settings.timeout_ms : session->timeout_ms;
    if (ms > 0 && !begin_deadline(&deadline, session, lane, ms)) {
        leave_lane(session, lane);
        set_status(status, TF_RESOURCE_EXHAUSTED, "there is no thread that waits for the run's deadline");
        return;
    }
    if (settings.metadata)
        trace(session, 1);
    if (is_closed(session))
        error = (tw_error){TW_CANCELLED, "Session has been closed."};
    else
        tw_session_run_in(session->tower, lane, feeds, num_feeds, fetches, num_fetches, results, &error);
    bool closed = is_closed(session);
    if (ms > 0 && end_deadline(&deadline) && error.status == TW_CANCELLED && !closed)
        error = (tw_error){TW_DEADLINE_EXCEEDED, "Timed out waiting for notification"};
    if (settings.metadata) {
        trace(session, -1);
        if (error.status == TW_OK)
            tell_times(session, lane, settings.metadata);
    }
    leave_lane(session, lane);
    set_error(status, &error);
}

/* `metadata` NULL: nobody takes it. */
static run_settings read_settings(const TF_Buffer *run_options, wire *metadata)
{
    enum { TRACE_LEVEL = 1, TIMEOUT_IN_MS = 2 };
    run_settings settings = {0};
    wire_field field;
    wire_reader r = run_options ? wire_read(run_options->data, run_options->length) : (wire_reader){0};
    while (run_options && wire_next(&r, &field)) {
        if (field.number == TRACE_LEVEL)
            settings.metadata = field.value ? metadata : NULL;
        if (field.number == TIMEOUT_IN_MS)
            settings.timeout_ms = (int64_t)field.value;
    }
    return settings;
}

void TF_SessionRun(TF_Session *session, const TF_Buffer *run_options, const TF_Output *inputs,
                   TF_Tensor *const *input_values, int ninputs, const TF_Output *outputs, TF_Tensor **output_values,
                   int noutputs, const TF_Operation *const *target_opers, int ntargets, TF_Buffer *run_metadata,
                   TF_Status *status)
{
    running r = {.session = session, .num_results = noutputs, .status = status};
    wire metadata = {0};
    TF_SetStatus(status, TF_OK, "");
    for (int i = 0; i < noutputs; i++)
        output_values[i] = NULL;
    if (run_options && !wire_is_message(run_options->data, run_options->length)) {
        set_status(status, TF_INVALID_ARGUMENT, "Unparseable RunOptions proto");
        return;
    }
    if (run_metadata && run_metadata->data) {
        set_status(status, TF_INVALID_ARGUMENT, "Passing non-empty run_metadata is invalid.");
        return;
    }
    if (noutputs == 0 && ntargets == 0) {
        set_status(status, TF_INVALID_ARGUMENT, "Must specify at least one target to fetch or execute.");
        return;
    }
    size_t fetches = (size_t)noutputs + (size_t)ntargets;
    r.feeds = calloc((size_t)ninputs + 1, sizeof *r.feeds);
    r.fetches = calloc(fetches + 1, sizeof *r.fetches);
    r.results = calloc(fetches + 1, sizeof(tw_tensor *));
    if (!r.feeds || !r.fetches || !r.results)
        set_no_memory(status);
    else if (collect_feeds(&r, inputs, input_values, ninputs) &&
             collect_fetches(&r, input_values, outputs, output_values, noutputs, target_opers, ntargets))
        run_session(session, read_settings(run_options, run_metadata ? &metadata : NULL), r.feeds, r.num_feeds,
                    r.fetches, r.num_fetches, r.results, status);
    if (is_ok(status) && give_results(&r, output_values) && run_metadata)
        fill_buffer(run_metadata, &metadata, status);
    else
        wire_free(&metadata);
    for (int i = 0; i < noutputs && !is_ok(status); i++) {
        TF_DeleteTensor(output_values[i]);
        output_values[i] = NULL;
    }
    for (int i = 0; r.feeds && i < r.num_feeds; i++)
        tw_tensor_release(r.feeds[i].tensor);
    for (size_t i = 0; r.results && i < fetches; i++)
        tw_tensor_release(r.results[i]);
    free(r.feeds);
    free(r.fetches);
    free(r.results);
}

/* ---- saved models ----------------------------------------------------------------------------------------------- */

static int compare_tags(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The tags in their order, each once, with something between them; "" for none. To be freed; NULL: memory ran out. */
static char *join_tags(const char *const *tags, int count, const char *between)
{
    size_t size = 1;
    const char **sorted = calloc((size_t)count + 1, sizeof *sorted);
    for (int i = 0; i < count && sorted; i++)
        size += strlen(sorted[i] = tags[i]) + strlen(between);
    char *list = sorted ? calloc(size, 1) : NULL;
    if (sorted)
        qsort(sorted, (size_t)count, sizeof *sorted, compare_tags);
    for (int i = 0; i < count && list; i++)
        if (i == 0 || strcmp(sorted[i - 1], sorted[i]) != 0)
            sprintf(list + strlen(list), "%s%s", *list ? between : "", sorted[i]);
    free(sorted);
    return list;
}

static bool has_model(const char *directory)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/saved_model.pb", directory);
    if (access(path, F_OK) == 0)
        return true;
    snprintf(path, sizeof path, "%s/saved_model.pbtxt", directory);
    return access(path, F_OK) == 0;
}

/* The graph with just these tags, with its message in *about. */
static void load_graph(TF_Graph *graph, const char *directory, const char *const *tags, int count,
                       tw_graph_about **about, TF_Status *status)
{
    tw_error error = TW_NO_ERROR;
    char *list = join_tags(tags, count, ","), *shown = join_tags(tags, count, " ");
    tw_load_options options = {.size = sizeof options, .tags = list, .just_tags = true, .keep_message = true};
    if (!list || !shown)
        set_no_memory(status);
    else if (!has_model(directory))
        set_status(status, TF_NOT_FOUND,
                   "Could not find SavedModel .pb or .pbtxt at supplied export directory path: %s. Check that the "
                   "directory exists and that you have the right permissions for accessing it.",
                   directory);
    else if (tw_graph_load(graph->tower, directory, &options, about, &error) == TW_NOT_FOUND)
        set_status(status, TF_NOT_FOUND, "Could not find meta graph def matching supplied tags: { %s }. %s", shown,
                   error.message);
    else
        set_error(status, &error);
    free(list);
    free(shown);
}

static tw_status restore(tw_session *session, const char *path, tw_error *error)
{
    tw_checkpoint *checkpoint;
    tw_status status = tw_checkpoint_open(path, &checkpoint, error);
    if (status != TW_OK)
        return status;
    status = tw_restore(session, checkpoint, NULL, NULL, error);
    tw_checkpoint_close(checkpoint);
    return status;
}

/* Gives variables and tables their values: the model's own nodes know under which names they lie in its files. */
static tw_status load_values(tw_session *session, const tw_graph_about *about, tw_error *error)
{
    tw_status status = TW_OK;
    tw_feed *feeds = calloc((size_t)about->num_assets + 1, sizeof *feeds);
    bool fits = feeds != NULL;
    int num_feeds = 0;
    for (int i = 0; i < about->num_assets && fits; i++) {
        const tw_signature_value *asset = &about->assets[i];
        tw_tensor *path = asset->output.index < 0 ? NULL : tw_tensor_string(asset->name, strlen(asset->name));
        fits = path || asset->output.index < 0;
        if (path)
            feeds[num_feeds++] = (tw_feed){asset->output, path};
    }
    tw_tensor *path = about->variables ? tw_tensor_string(about->variables, strlen(about->variables)) : NULL;
    if (!fits || (about->variables && !path))
        status = (*error = (tw_error){TW_RESOURCE_EXHAUSTED, "out of memory"}).status;
    tw_output own = {about->saver_restore.node, -1};
    bool has_own = own.node && !tw_node_is_unknown(own.node) && about->saver_filename.index >= 0;
    if (status == TW_OK && path)
        status = has_own ? tw_session_run(session, &(tw_feed){about->saver_filename, path}, 1, &own, 1, NULL, error)
                         : restore(session, about->variables, error);
    for (int i = 0; i < about->num_initializers && status == TW_OK; i++)
        status = tw_session_run(session, feeds, num_feeds, &about->initializers[i], 1, NULL, error);
    for (int i = 0; i < num_feeds; i++)
        tw_tensor_release(feeds[i].tensor);
    tw_tensor_release(path);
    free(feeds);
    return status;
}

static TF_Session *start(TF_Graph *graph, const TF_SessionOptions *options, const tw_graph_about *about,
                         TF_Status *status)
{
    tw_error error = TW_NO_ERROR;
    TF_Session *session = TF_NewSession(graph, options, status);
    if (!session || load_values(session->tower, about, &error) == TW_OK)
        return session;
    TF_DeleteSession(session, status);
    set_error(status, &error);
    return NULL;
}

TF_Session *TF_LoadSessionFromSavedModel(const TF_SessionOptions *session_options, const TF_Buffer *run_options,
                                         const char *export_dir, const char *const *tags, int tags_len, TF_Graph *graph,
                                         TF_Buffer *meta_graph_def, TF_Status *status)
{
    tw_graph_about *about = NULL;
    TF_Session *session = NULL;
    TF_SetStatus(status, TF_OK, "");
    if (run_options && !wire_is_message(run_options->data, run_options->length))
        set_status(status, TF_INVALID_ARGUMENT, "Unparseable RunOptions proto");
    else if (meta_graph_def && meta_graph_def->data)
        set_status(status, TF_INVALID_ARGUMENT, "Passing non-empty TF_Buffer is invalid.");
    if (!is_ok(status) || !check_options(session_options, status))
        return NULL;
    begin_building(graph);
    if (graph->num_operations > 0)
        set_status(status, TF_INVALID_ARGUMENT, "Graph is non-empty.");
    else
        load_graph(graph, export_dir, tags, tags_len, &about, status);
    if (is_ok(status) && !sync_graph(graph))
        set_no_memory(status);
    end_building(graph);
    if (is_ok(status) && !(session = start(graph, session_options, about, status))) {
        begin_building(graph);
        take_back(graph, 0);
        end_building(graph);
    }
    if (session && meta_graph_def) {
        wire message = {0};
        wire_append(&message, about->meta_graph, about->meta_graph_size);
        fill_buffer(meta_graph_def, &message, status);
    }
    tw_graph_about_destroy(about);
    return session;
}

/* ---- devices ---------------------------------------------------------------------------------------------------- */

typedef struct listed_device {
    char *name, *type;
    int64_t memory;
    uint64_t incarnation;
} listed_device;

struct TF_DeviceList {
    listed_device *devices;
    int count;
};

TF_DeviceList *TF_SessionListDevices(TF_Session *session, TF_Status *status)
{
    enum { MEMORY_OF_A_CPU = 256 << 20 }; /* as TensorFlow says it, which does not know either */
    const tw_devices *devices = session->devices;
    TF_DeviceList *list = calloc(1, sizeof *list);
    int count = tw_devices_count(devices, NULL);
    TF_SetStatus(status, TF_OK, "");
    if (list)
        list->devices = calloc((size_t)count + 1, sizeof *list->devices);
    for (int i = 0; list && list->devices && i < count; i++) {
        tw_device_info info = tw_devices_info(devices, i);
        size_t memory = info.memory_limit ? info.memory_limit : info.memory_total;
        list->devices[list->count++] =
            (listed_device){strdup(info.name), strdup(info.type), memory ? (int64_t)memory : MEMORY_OF_A_CPU,
                            (uint64_t)(uintptr_t)devices + (uint64_t)i};
    }
    if (list && list->devices)
        return list;
    set_no_memory(status);
    free(list);
    return NULL;
}

void TF_DeleteDeviceList(TF_DeviceList *list)
{
    for (int i = 0; list && i < list->count; i++) {
        free(list->devices[i].name);
        free(list->devices[i].type);
    }
    if (list)
        free(list->devices);
    free(list);
}

int TF_DeviceListCount(const TF_DeviceList *list)
{
    return list->count;
}

static const listed_device *find_device(const TF_DeviceList *list, int index, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    if (!list)
        set_status(status, TF_INVALID_ARGUMENT, "list is null!");
    else if (index < 0 || index >= list->count)
        set_status(status, TF_INVALID_ARGUMENT, "index out of bounds");
    return is_ok(status) ? &list->devices[index] : NULL;
}

const char *TF_DeviceListName(const TF_DeviceList *list, int index, TF_Status *status)
{
    const listed_device *device = find_device(list, index, status);
    return device ? device->name : NULL;
}

const char *TF_DeviceListType(const TF_DeviceList *list, int index, TF_Status *status)
{
    const listed_device *device = find_device(list, index, status);
    return device ? device->type : NULL;
}

int64_t TF_DeviceListMemoryBytes(const TF_DeviceList *list, int index, TF_Status *status)
{
    const listed_device *device = find_device(list, index, status);
    return device ? device->memory : -1;
}

uint64_t TF_DeviceListIncarnation(const TF_DeviceList *list, int index, TF_Status *status)
{
    const listed_device *device = find_device(list, index, status);
    return device ? device->incarnation : 0;
}
