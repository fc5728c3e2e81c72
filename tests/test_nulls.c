/* Nothing that is missing crashes: every public function is called without each of its pointers, without all of them,
 * with dead outputs, and with memory that fails once at each place in the code that asks for some. The calls are made
 * from the headers (public_calls.awk), so a new function is among them; each runs in a process of its own. */
#include "program.h"

#include "faulty_memory.h"

#include <signal.h>
#include <tower/tower.h>

enum { MOST_FAILURES = 100 }; /* of memory, in calls of one function */
enum { NONE = 0, ALL = -1, DEAD_OUTPUTS = -2 }; /* what is missing; above 0: the argument of that number */

/* ---- something of each kind, made when it is first asked for --------------------------------------------------- */

static _Alignas(64) unsigned char room[1 << 20]; /* for values of any kind, zeros */
static void *pointers[64];                         /* for what a function gives */

static struct {
    tw_graph *graph;
    tw_variable *variable;
    tw_devices *devices;
    tw_session *session;
    tw_dataset *dataset;
    tw_pipeline *pipeline;
    tw_checkpoint *checkpoint;
    tw_checkpoint_list *list;
    tw_event_writer *writer;
    tw_event_reader *reader;
    tw_coordinator *coordinator;
    tw_trainer *trainer;
    tw_timeline *timeline;
} some;

static tw_graph *some_tw_graph_p(void)
{
    return some.graph ? some.graph : (some.graph = tw_graph_create());
}

static tw_variable *some_tw_variable_p(void)
{
    if (!some.variable)
        some.variable = tw_get_variable(some_tw_graph_p(), "v", TW_FLOAT32, TW_SHAPE(2), (tw_initializer){0});
    return some.variable;
}

static tw_output some_tw_output(void)
{
    return some_tw_variable_p()->value;
}

static tw_devices *some_tw_devices_p(void)
{
    if (!some.devices)
        tw_devices_create(TW_OPTIONS(tw_device_options, .cpu_threads = 1, .no_gpus = true), &some.devices, NULL);
    return some.devices;
}

static tw_session *some_tw_session_p(void)
{
    some_tw_variable_p();
    if (!some.session)
        tw_session_create(some_tw_graph_p(), TW_OPTIONS(tw_session_options, .devices = some_tw_devices_p()),
                          &some.session, NULL);
    return some.session;
}

static tw_tensor *some_tw_tensor_p(void)
{
    static tw_tensor *tensor;
    return tensor ? tensor : (tensor = tw_tensor_create(TW_FLOAT32, TW_SHAPE(2)));
}

static tw_dataset *some_tw_dataset_p(void)
{
    if (!some.dataset)
        tw_dataset_synthetic(4, 28, 28, 1, 10, 1, &some.dataset, NULL);
    return some.dataset;
}

static const tw_pipeline_options *some_tw_pipeline_options_p(void)
{
    static const tw_pipeline_options options = {.batch = 1, .threads = 1};
    return &options;
}

static tw_pipeline *some_tw_pipeline_p(void)
{
    if (!some.pipeline)
        tw_pipeline_create(some_tw_dataset_p(), some_tw_pipeline_options_p(), &some.pipeline, NULL);
    return some.pipeline;
}

static const tw_named_tensor *some_tw_named_tensor_p(void)
{
    static tw_named_tensor named = {.name = "v"};
    named.tensor = some_tw_tensor_p();
    return &named;
}

static const tw_meta_graph_options *some_tw_meta_graph_options_p(void)
{
    static const tw_meta_graph_options options = {.tags = "serve"};
    return &options;
}

static const tw_load_options *some_tw_load_options_p(void)
{
    static const tw_load_options options = {.prefix = "p"};
    return &options;
}

static tw_graph_about *some_tw_graph_about_p(void)
{
    tw_graph_about *about = NULL;
    tw_graph *graph = tw_graph_create();
    tw_graph_load(graph, GOLDEN_DIR "/graph.pb", NULL, &about, NULL);
    tw_graph_destroy(graph);
    return about;
}

static tw_graph_about **some_tw_graph_about_pp(void)
{
    static tw_graph_about *about;
    return &about;
}

static void save_some(void)
{
    static bool saved;
    if (!saved)
        saved = tw_checkpoint_save("d", "x", 1, some_tw_named_tensor_p(), 1, 0, NULL) == TW_OK;
}

static tw_checkpoint *some_tw_checkpoint_p(void)
{
    save_some();
    if (!some.checkpoint)
        tw_checkpoint_open("d", &some.checkpoint, NULL);
    return some.checkpoint;
}

static tw_checkpoint_list *some_tw_checkpoint_list_p(void)
{
    save_some();
    if (!some.list)
        tw_checkpoint_list_open("d", &some.list, NULL);
    return some.list;
}

static tw_event_writer *some_tw_event_writer_p(void)
{
    if (!some.writer)
        tw_event_writer_create("events", &some.writer, NULL);
    return some.writer;
}

static tw_event_reader *some_tw_event_reader_p(void)
{
    if (!some.reader && tw_event_writer_flush(some_tw_event_writer_p(), NULL) == TW_OK)
        tw_event_reader_open(tw_event_writer_path(some_tw_event_writer_p()), &some.reader, NULL);
    return some.reader;
}

static tw_coordinator *some_tw_coordinator_p(void)
{
    if (!some.coordinator && tw_coordinator_create(&some.coordinator, NULL) == TW_OK)
        tw_coordinator_request_stop(some.coordinator, NULL); /* so that nobody waits for it */
    return some.coordinator;
}

static const tw_model *some_tw_model_p(void)
{
    return tw_model_find("mnist");
}

static const tw_trainer_options *some_tw_trainer_options_p(void)
{
    static tw_trainer_options options;
    options.model = some_tw_model_p();
    options.dataset = some_tw_dataset_p();
    options.devices = some_tw_devices_p();
    options.batch = 1;
    return &options;
}

static tw_trainer *some_tw_trainer_p(void)
{
    if (!some.trainer)
        tw_trainer_create(some_tw_trainer_options_p(), &some.trainer, NULL);
    return some.trainer;
}

static tw_optimizer *some_tw_optimizer_p(void)
{
    return tw_gradient_descent(some_tw_graph_p(), tw_scalar(some_tw_graph_p(), 1));
}

static tw_loss_scale *some_tw_loss_scale_p(void)
{
    return tw_automatic_loss_scale(some_tw_graph_p(), 1, 1);
}

static tw_grads *some_tw_grads_p(void)
{
    static tw_variable *variable;
    static tw_output gradient;
    static tw_grads grads = {1, &variable, &gradient};
    variable = some_tw_variable_p();
    gradient = some_tw_output();
    return &grads;
}

static tw_explanation *some_tw_explanation_p(void)
{
    tw_explanation *explanation = NULL;
    tw_session_explain(some_tw_session_p(), some_tw_output().node, &explanation, NULL);
    return explanation;
}

static tw_op_info *some_tw_op_info_p(void)
{
    tw_op_info *info = NULL;
    tw_op_describe("MatMul", &info, NULL);
    return info;
}

static tw_moves *some_tw_moves_p(void)
{
    tw_moves *moves = NULL;
    tw_session_moves(some_tw_session_p(), &moves, NULL);
    return moves;
}

static tw_memory *some_tw_memory_p(void)
{
    tw_memory *memory = NULL;
    tw_session_memory(some_tw_session_p(), &memory, NULL);
    return memory;
}

static tw_planned *some_tw_planned_p(void)
{
    tw_planned *planned = NULL;
    tw_session_planned(some_tw_session_p(), &planned, NULL);
    return planned;
}

static tw_timeline *some_tw_timeline_p(void)
{
    if (!some.timeline) {
        some_tw_session_p();
        tw_output begin = tw_initialize_variables(some_tw_graph_p());
        tw_session_set_trace(some_tw_session_p(), true, NULL);
        tw_session_run(some_tw_session_p(), NULL, 0, &begin, 1, NULL, NULL);
        tw_session_timeline(some_tw_session_p(), &some.timeline, NULL);
    }
    return some.timeline;
}

static tw_tensor **some_tw_tensor_pp(void)
{
    return (tw_tensor **)pointers; /* results begin as NULLs */
}

static const char *device_of(void *user, const tw_node *node)
{
    (void)user;
    (void)node;
    return "";
}

static void *resize(void *user, void *block, size_t bytes)
{
    (void)user;
    if (bytes)
        return realloc(block, bytes);
    free(block);
    return NULL;
}

static void tell(void *user, int level, const char *text)
{
    (void)user;
    (void)level;
    (void)text;
}

static tw_variable *same(void *user, tw_graph *graph, tw_variable *variable)
{
    (void)user;
    (void)graph;
    return variable;
}

static tw_status fill(void *user, int tower, void *const *outputs, tw_error *why)
{
    (void)user;
    (void)tower;
    (void)outputs;
    (void)why;
    return TW_OK;
}

static bool go_on(void *user, const char *file, int64_t done, int64_t total)
{
    (void)user;
    (void)file;
    (void)done;
    (void)total;
    return false;
}

static tw_status work(tw_coordinator *coordinator, void *user, tw_error *why)
{
    (void)coordinator;
    (void)user;
    (void)why;
    return TW_OK;
}

static void scan_nothing(void *user, tw_graph *graph, const tw_output *elements, tw_output *state, tw_output *results)
{
    (void)user;
    (void)graph;
    (void)elements;
    (void)state;
    (void)results;
}

static void map_nothing(void *user, tw_graph *graph, const tw_output *elements, tw_output *results)
{
    scan_nothing(user, graph, elements, NULL, results);
}

#define SOME(type, name, ...)                                                                                          \
    static type *some_##name(void)                                                                                     \
    {                                                                                                                  \
        static type value[] = {__VA_ARGS__};                                                                           \
        return value;                                                                                                  \
    }
SOME(tw_dtype, tw_dtype_p, TW_FLOAT32)
SOME(tw_shape, tw_shape_p, {.rank = 1, .dims = {2}})
SOME(const tw_attr, tw_attr_p, {"T", TW_ATTR_TYPE, 0, {TW_FLOAT32}})
SOME(tw_string, tw_string_p, {"x", 1})
SOME(tw_error, tw_error_p, {0})
SOME(const tw_new_variable, tw_new_variable_p, {.dtype = TW_FLOAT32})
SOME(tw_rows, tw_rows_p, {.count = 0})
SOME(tw_scope_, tw_scope__p, {0})
SOME(const tw_device_options, tw_device_options_p, {.cpu_threads = 1, .no_gpus = true})
SOME(tw_device_info, tw_device_info_p, {0})
SOME(const tw_session_options, tw_session_options_p, {0})
SOME(const tw_import_options, tw_import_options_p, {0})
SOME(const tw_dataset_options, tw_dataset_options_p, {0})
SOME(const tw_conv2d_options, tw_conv2d_options_p, {0})
SOME(const tw_pool_options, tw_pool_options_p, {.window = {1}})
SOME(const tw_muon_options, tw_muon_options_p, {.momentum = 0.9f})
SOME(const tw_layer_options, tw_layer_options_p, {0})
SOME(const tw_queue_options, tw_queue_options_p, {0})
SOME(const tw_batch_options, tw_batch_options_p, {.batch = 1})
SOME(const tw_input_producer_options, tw_input_producer_options_p, {0})
SOME(const tw_average_options, tw_average_options_p, {0})
SOME(const tw_save_options, tw_save_options_p, {0})
SOME(const tw_restore_options, tw_restore_options_p, {0})
SOME(const tw_evaluation_options, tw_evaluation_options_p, {0})
SOME(tw_evaluation, tw_evaluation_p, {0})
#define some_tw_scores_p() calloc(1, sizeof(tw_scores))
SOME(tw_update_trial, tw_update_trial_p, {.towers = 1}, {.towers = 1}, {.towers = 1}, {.towers = 1})
SOME(tw_trainer_step_result, tw_trainer_step_result_p, {0})
SOME(tw_staleness, tw_staleness_p, {0})
SOME(tw_plan_info, tw_plan_info_p, {0})
SOME(const tw_receivers, tw_receivers_p, {-1, -1})
SOME(tw_waterfall, tw_waterfall_p, {.total = 0})
SOME(const tw_delay, tw_delay_p, {.device = "/cpu:0"})
SOME(tw_link, tw_link_p, {0})
SOME(tw_pipeline_statistics, tw_pipeline_statistics_p, {0})
SOME(tw_pipeline_batch_view, tw_pipeline_batch_view_p, {0})

#define SOME_IN_GRAPH(type, name, ...)                                                                                 \
    static type *some_##name(void)                                                                                     \
    {                                                                                                                  \
        static type value[4];                                                                                          \
        value[0] = (type){__VA_ARGS__};                                                                                \
        return value;                                                                                                  \
    }
SOME_IN_GRAPH(tw_output, tw_output_p, some_tw_output().node, 0)
SOME_IN_GRAPH(tw_variable *, tw_variable_pp, some_tw_variable_p())
SOME_IN_GRAPH(tw_grads *, tw_grads_pp, some_tw_grads_p())
SOME_IN_GRAPH(tw_feed, tw_feed_p, some_tw_output(), some_tw_tensor_p())
SOME_IN_GRAPH(tw_feed_shape, tw_feed_shape_p, some_tw_output(), TW_SHAPE(2))
SOME_IN_GRAPH(tw_queue_runner, tw_queue_runner_p, some_tw_output(), .enqueues = some_tw_output_p(), .num_enqueues = 1)

static const char **some_char_pp(void)
{
    static const char *texts[2] = {"/cpu:0"};
    return texts;
}

#define some_char_p() strcpy(malloc(4096), "x") /* that some functions write to */
#define some_void_p() room
#define some_int_p() room
#define some_int32_t_p() room
#define some_int64_t_p() room
#define some_uint8_t_p() room
#define some_float_p() room
#define some_double_p() room
#define some_size_t_p() room
#define some_tw_node_p() some_tw_output().node
#define some_tw_device_function_p() device_of
#define some_tw_log_function_p() tell
#define some_tw_resize_function_p() resize
#define some_tw_source_function_p() fill
#define some_tw_variable_getter_p() same
#define some_tw_fetch_progress_p() go_on
#define some_tw_read_progress_p() go_on
#define some_tw_coordinator_thread_p() work
#define some_tw_scan_function_p() scan_nothing
#define some_tw_map_function_p() map_nothing
#define some_void_pp() pointers
#define some_tw_devices_pp() pointers
#define some_tw_session_pp() pointers
#define some_tw_op_info_pp() pointers
#define some_tw_op_functions_p() room
#define some_tw_op_run_p() NULL /* there is one in a run alone: test_registered_ops.c */
#define some_tw_dataset_pp() pointers
#define some_tw_pipeline_pp() pointers
#define some_tw_checkpoint_pp() pointers
#define some_tw_checkpoint_list_pp() pointers
#define some_tw_event_writer_pp() pointers
#define some_tw_event_reader_pp() pointers
#define some_tw_event_p() ((void *)room)
#define some_tw_trainer_pp() pointers
#define some_tw_coordinator_pp() pointers
#define some_tw_explanation_pp() pointers
#define some_tw_moves_pp() pointers
#define some_tw_memory_pp() pointers
#define some_tw_scores_pp() pointers
#define some_tw_planned_pp() pointers
#define some_tw_timeline_pp() pointers

#define SOME_int 1
#define SOME_int32_t 1
#define SOME_int64_t 1
#define SOME_uint64_t 1
#define SOME_uint16_t 1
#define SOME_size_t 16
#define SOME_float 0.5f
#define SOME_double 0.5
#define SOME_bool true
#define SOME_tw_dtype TW_FLOAT32
#define SOME_tw_status TW_INTERNAL
#define SOME_tw_shape TW_SHAPE(2)
#define SOME_tw_output (missing == DEAD_OUTPUTS ? (tw_output){0} : some_tw_output())
#define SOME_tw_initializer ((tw_initializer){0})
#define SOME_tw_strided_slice_options ((tw_strided_slice_options){0})
#define SOME_tw_scan_values ((tw_scan_values){0})
#define SOME_tw_dataset_split TW_SPLIT_TRAIN
#define SOME_tw_queue_kind TW_QUEUE_FIFO
#define SOME_tw_time_kind TW_TIME_COMPUTE
#define SOME_tw_variable_update TW_UPDATE_REPLICATED

/* ---- the calls --------------------------------------------------------------------------------------------------- */

enum { NOTHING, SUCCESS, FAILURE }; /* what a call gave; nothing: it cannot say */

#define GIVEN(number, type, name) (missing == (number) || missing == ALL ? NULL : (type)some_##name())
#define GIVES_STATUS(call) ((call) == TW_OK ? SUCCESS : FAILURE)
#define GIVES_OUTPUT(call) ((call).node ? SUCCESS : FAILURE)
#define GIVES_VALUE(call) ((void)(call), NOTHING)
#define GIVES_NOTHING(call) ((call), NOTHING)
#define CALLBACK_tw_device_function(function) ((void)function(missing == 2 ? room : NULL, NULL), NOTHING)

#include "public_calls.inl"

typedef struct call {
    const char *name;
    int (*function)(int missing);
    const char *kinds; /* of the arguments: a pointer, an output, another value */
} call;

#define ROW(name, kinds) {#name, call_##name, kinds},
static const call calls[] = {CALLS(ROW)};

/* Functions that may do without their first argument; others fail without it. */
static bool may_lack_the_first(const char *name)
{
    static const char *const names[] = {
        "tw_devices_create",     /* options */
        "tw_event_writer_close", /* like all that closes */
        "tw_set_crash_report",   /* no report */
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* In a process of its own: 0 if all is well. */
static int make_call(const call *c, int missing)
{
    signal(SIGSEGV, SIG_DFL); /* cmocka catches it, and a child has no test to fail */
    alarm(PATIENCE);
    bool is_needed = (missing == 1 || missing == ALL) && c->kinds[0] == 'p' && !may_lack_the_first(c->name);
    return c->function(missing) == SUCCESS && is_needed;
}

static bool can_be_missing(const call *c, int missing)
{
    if (missing == ALL)
        return strchr(c->kinds, 'p');
    if (missing == DEAD_OUTPUTS)
        return strchr(c->kinds, 'o');
    return missing != NONE && c->kinds[missing - 1] == 'p';
}

static int run_apart(const call *c, int missing)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(make_call(c, missing));
    assert_true(child > 0);
    waitpid(child, &status, 0);
    return status;
}

static void what_the_calls_are_given_is_there(void **state)
{
    (void)state;
    if (fork() == 0) {
        bool all = some_tw_session_p() && some_tw_pipeline_p() && some_tw_trainer_p() && some_tw_output().node &&
                   some_tw_coordinator_p() && some_tw_moves_p() && some_tw_memory_p() && some_tw_planned_p() &&
                   some_tw_timeline_p() && some_tw_event_reader_p() &&
                   some_tw_explanation_p();
        _exit(all ? 0 : 1);
    }
    int status;
    wait(&status);
    assert_int_equal(status, 0);
}

static void nothing_that_is_missing_crashes(void **state)
{
    (void)state;
    char folder[] = "/tmp/tower-nulls-XXXXXX";
    int wrong = 0;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (int missing = DEAD_OUTPUTS; missing <= (int)strlen(calls[i].kinds); missing++) {
            int status = can_be_missing(&calls[i], missing) ? run_apart(&calls[i], missing) : 0;
            if (status)
                printf("%s without %s %d: %s\n", calls[i].name,
                       missing == ALL ? "all pointers," : missing == DEAD_OUTPUTS ? "live outputs," : "argument", missing,
                       WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "does not say that it failed");
            wrong += status != 0;
        }
    }
    assert_int_equal(wrong, 0);
}

/* Those that end something have nothing left for a second call, as who holds a session has none, and who sets the
 * allocator takes away what fails. A trainer takes seconds: test_every_fault.c has its places. */
static bool is_for_failures(const char *name)
{
    static const char *const parts[] = {"_destroy",         "_close",      "_release",          "_free",
                                        "tw_set_allocator", "tw_trainer_", "tw_compare_updates", "tw_session_hold"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i]))
            return false;
    return true;
}

/* What a call is given is made by a call before, with memory; a graph that has failed is no use for another. */
static int make_failing_calls(const call *c)
{
    bool failed = true;
    signal(SIGSEGV, SIG_DFL);
    alarm(PATIENCE);
    for (int i = 0; i < MOST_FAILURES && failed; i++) {
        memset(&some, 0, sizeof some);
        some_tw_output();
        c->function(NONE);
        fail_at_new_place();
        c->function(NONE);
        failed = stop_failing_allocations();
    }
    return 0;
}

static void memory_that_fails_crashes_no_call(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        int status = 0;
        fflush(NULL);
        pid_t child = is_for_failures(calls[i].name) ? fork() : -1;
        if (child == 0)
            _exit(make_failing_calls(&calls[i]));
        if (child > 0)
            waitpid(child, &status, 0);
        if (status)
            printf("%s with memory that fails: %s\n", calls[i].name, strsignal(WTERMSIG(status)));
        wrong += status != 0;
    }
    assert_int_equal(wrong, 0);
}

/* Some calls write files where they stand. */
static int enter_folder(void **state)
{
    return make_directory(state) != 0 || chdir(directory) != 0;
}

static int leave_folder(void **state)
{
    return chdir("/") != 0 || remove_directory(state) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_calls_are_given_is_there),
        cmocka_unit_test(nothing_that_is_missing_crashes),
        cmocka_unit_test(memory_that_fails_crashes_no_call),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
