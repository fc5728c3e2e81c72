/* Mistakes that are easily made are told, in words that say what to do. */
#include "testing.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <tower/crash.h>
#include <tower/ops.h>
#include <tower/session.h>
#include <tower/train.h>
#include <unistd.h>

typedef struct fixture {
    tw_graph *g;
    tw_devices *devices;
    tw_session *s;
    tw_error error;
} fixture;

static int setup(void **state)
{
    static fixture f;
    f = (fixture){.g = tw_graph_create()};
    *state = &f;
    return tw_devices_create(TW_OPTIONS(tw_device_options, .cpu_threads = 1, .no_gpus = true), &f.devices, NULL);
}

static int teardown(void **state)
{
    fixture *f = *state;
    tw_session_destroy(f->s);
    tw_devices_destroy(f->devices);
    tw_graph_destroy(f->g);
    return 0;
}

static tw_status open_session(fixture *f, const char *disable)
{
    f->error = (tw_error){0};
    return tw_session_create(f->g, TW_OPTIONS(tw_session_options, .devices = f->devices, .disable = disable), &f->s,
                             &f->error);
}

static void a_rewrite_that_there_is_not_cannot_be_disabled(void **state)
{
    fixture *f = *state;
    static const char *const wrong[] = {"fusion", "fold,fus", "merge,,no", "Fold"};
    static const char *const right[] = {
        "", "fold,merge,einsum,collective,fuse,losses,buckets,update,sums,scalars,averages,weights,reuse", "all"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(open_session(f, wrong[i]), TW_INVALID_ARGUMENT);
        assert_message(f->error.message, "known are all, fold, layout, reuse, merge, einsum, collective, fuse");
    }
    assert_message(f->error.message, "there is no rewrite 'Fold'");
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_int_equal(open_session(f, right[i]), TW_OK);
        tw_session_destroy(f->s);
        f->s = NULL;
    }
}

static void results_are_looked_at_before_the_run(void **state)
{
    fixture *f = *state;
    tw_error error;
    tw_output x = tw_placeholder(f->g, TW_FLOAT32, TW_SHAPE(1)), both[2] = {tw_neg(f->g, x), tw_abs(f->g, x)};
    tw_tensor *results[2] = {NULL, NULL};
    tw_feed feed = {x, tw_tensor_create(TW_FLOAT32, TW_SHAPE(1))};
    assert_int_equal(open_session(f, NULL), TW_OK);
    assert_fails(tw_session_run(f->s, &feed, 1, both, 2, NULL, &error), TW_INVALID_ARGUMENT,
                 "fetch 0 has a value, but results is NULL");
    results[0] = results[1] = tw_tensor_retain(feed.tensor);
    assert_fails(tw_session_run(f->s, &feed, 1, both, 2, results, &error), TW_INVALID_ARGUMENT,
                 "results[0] is the tensor that feed 0 brings");
    tw_tensor_release(results[0]);
    results[0] = results[1] = tw_tensor_create(TW_FLOAT32, TW_SHAPE(1));
    assert_fails(tw_session_run(f->s, &feed, 1, both, 2, results, &error), TW_INVALID_ARGUMENT,
                 "results[0] and results[1] are the same tensor");
    tw_tensor_release(results[0]);
    results[0] = results[1] = NULL;
    assert_ok(tw_session_run(f->s, &feed, 1, both, 2, results, &error));
    tw_tensor_release(results[0]);
    tw_tensor_release(results[1]);
    tw_tensor_release(feed.tensor);
}

static bool was_told;

static void look_for_the_node(void *user, int level, const char *text)
{
    (void)user;
    was_told = was_told || (level == TW_LOG_INFO &&
                            strcmp(text, "here: (Const): /job:localhost/replica:0/task:0/device:CPU:0") == 0);
}

static void placement_is_logged_without_a_function_for_it(void **state)
{
    fixture *f = *state;
    tw_error error;
    tw_output here = tw_scalar(tw_name(f->g, "here"), 1);
    tw_tensor *result = NULL;
    was_told = false;
    tw_set_log(look_for_the_node, NULL, TW_LOG_INFO);
    assert_ok(tw_session_create(
        f->g, TW_OPTIONS(tw_session_options, .devices = f->devices, .log_device_placement = true), &f->s, &error));
    assert_ok(tw_session_run(f->s, NULL, 0, &here, 1, &result, &error));
    tw_set_log(NULL, NULL, TW_LOG_ERROR);
    assert_true(was_told);
    tw_tensor_release(result);
}

static void a_constant_of_no_tensor_says_so(void **state)
{
    fixture *f = *state;
    tw_constant(f->g, tw_tensor_create(TW_FLOAT32, TW_UNKNOWN_SHAPE));
    assert_int_equal(tw_graph_status(f->g), TW_INVALID_ARGUMENT);
    assert_message(tw_graph_message(f->g), "tw_constant: the tensor is NULL");
}

static void no_graph_has_failed(void **state)
{
    (void)state;
    tw_error error;
    tw_session *session;
    assert_int_equal(tw_graph_status(NULL), TW_INVALID_ARGUMENT);
    assert_message(tw_graph_message(NULL), "the graph is NULL");
    assert_null(tw_neg(NULL, tw_scalar(NULL, 1)).node);
    assert_fails(tw_session_create(NULL, NULL, &session, &error), TW_INVALID_ARGUMENT,
                 "tw_session_create: graph is NULL");
}

static void many_runs_of_a_node_take_four_arguments(void **state)
{
    fixture *f = *state;
    tw_error error;
    tw_tensor *value = NULL;
    tw_variable *counter = tw_global_step(f->g);
    tw_tensor *one = tw_tensor_int64(1);
    tw_output count = tw_assign_add(f->g, counter->handle, tw_constant(f->g, one)),
              init = tw_initialize_variables(f->g);
    assert_int_equal(open_session(f, NULL), TW_OK);
    assert_ok(tw_session_repeat(f->s, init, 1, &error));
    assert_ok(tw_session_repeat(f->s, count, 5, &error));
    assert_ok(tw_session_get_variable(f->s, counter, &value, &error));
    assert_true(tw_tensor_value(value, 0) == 5);
    tw_tensor_release(value);
    tw_tensor_release(one);
}

static void a_run_may_fetch_nothing(void **state)
{
    fixture *f = *state;
    tw_error error;
    int64_t done = 0;
    assert_int_equal(open_session(f, NULL), TW_OK);
    assert_ok(tw_session_run(f->s, NULL, 0, NULL, 0, NULL, &error));
    assert_ok(tw_session_run_steps(f->s, 3, NULL, 0, NULL, 0, NULL, &done, &error));
    assert_int_equal(done, 3);
}

static void lanes_are_given_out_until_there_are_no_more(void **state)
{
    fixture *f = *state;
    tw_error error;
    int lane;
    assert_int_equal(open_session(f, NULL), TW_OK);
    for (int i = 1023; i >= 512; i--) {
        assert_ok(tw_session_take_lane(f->s, &lane, &error));
        assert_int_equal(lane, i);
    }
    for (int i = 0; i < 2; i++)
        assert_fails(tw_session_take_lane(f->s, &lane, &error), TW_RESOURCE_EXHAUSTED, "all 512 lanes");
    assert_int_equal(lane, 512);
}

static void the_place_of_a_stream_is_a_few_numbers(void **state)
{
    fixture *f = *state;
    enum { MOST = 4 };
    static const int64_t numbers[MOST + 1] = {1, 2, 3, 4, 5};
    tw_error error;
    assert_int_equal(open_session(f, NULL), TW_OK);
    tw_tensor *wrong[] = {
        tw_tensor_create(TW_UINT64, TW_SHAPE(MOST)),        tw_tensor_from(TW_INT64, TW_SCALAR, numbers),
        tw_tensor_create(TW_INT64, TW_SHAPE(0)),            tw_tensor_from(TW_INT64, TW_SHAPE(1, 2), numbers),
        tw_tensor_from(TW_INT64, TW_SHAPE(MOST + 1), numbers)};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_fails(tw_session_set_stream(f->s, "draw", wrong[i], &error), TW_INVALID_ARGUMENT,
                     "the place of stream 'draw' is not a vector of 1 to 4 int64 numbers");
        tw_tensor_release(wrong[i]);
    }
    assert_int_equal(tw_session_num_streams(f->s), 0);
    for (int count = 1; count <= MOST; count++) {
        const char *name;
        tw_tensor *given = tw_tensor_from(TW_INT64, TW_SHAPE(count), numbers), *back;
        assert_ok(tw_session_set_stream(f->s, "draw", given, &error));
        assert_ok(tw_session_get_stream(f->s, 0, &name, &back, &error));
        assert_string_equal(name, "draw");
        assert_true(tw_shape_equal(tw_tensor_shape(back), TW_SHAPE(count)));
        assert_memory_equal(tw_tensor_data(back), numbers, tw_tensor_bytes(back));
        tw_tensor_release(given);
        tw_tensor_release(back);
    }
}

/* ---- what is asked of a session ---- */

static void check_fetch(fixture *f, tw_output fetch, const char *says)
{
    tw_error error;
    tw_tensor *value = NULL;
    assert_fails(tw_session_run(f->s, NULL, 0, &fetch, 1, &value, &error), TW_INVALID_ARGUMENT, says);
}

static void fetches_must_be_outputs_of_the_graph(void **state)
{
    fixture *f = *state;
    tw_graph *other = tw_graph_create();
    tw_output one = tw_scalar(tw_name(f->g, "one"), 1);
    assert_int_equal(open_session(f, NULL), TW_OK);
    check_fetch(f, (tw_output){NULL, 0}, "fetch 0 is a dead output");
    check_fetch(f, tw_scalar(other, 1), "fetch 0 is of another graph");
    check_fetch(f, (tw_output){one.node, 1}, "FetchOutputs one: output index too large, must be < 1");
    check_fetch(f, (tw_output){one.node, -2}, "fetch 0 asks for output -2 of 'one'; -1 stands for the node");
    tw_graph_destroy(other);
}

static void feeds_must_be_outputs_of_the_graph_with_tensors(void **state)
{
    fixture *f = *state;
    tw_error error;
    tw_graph *other = tw_graph_create();
    tw_output x = tw_placeholder(f->g, TW_FLOAT32, TW_SCALAR), y = tw_neg(f->g, x);
    tw_tensor *one = tw_tensor_create(TW_FLOAT32, TW_SCALAR), *value = NULL;
    const tw_feed wrong[] = {
        {{NULL, 0}, one}, {tw_scalar(other, 1), one}, {{x.node, -1}, one}, {{x.node, 1}, one}, {x, NULL}};
    assert_int_equal(open_session(f, NULL), TW_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(tw_session_run(f->s, &wrong[i], 1, &y, 1, &value, &error), TW_INVALID_ARGUMENT,
                     "feed 0 is not an output of this graph with a tensor");
    assert_fails(tw_session_run(f->s, NULL, -1, &y, 1, &value, &error), TW_INVALID_ARGUMENT,
                 "-1 feeds and 1 fetches; expected numbers from 0");
    assert_fails(tw_session_run(f->s, NULL, 0, NULL, -1, NULL, &error), TW_INVALID_ARGUMENT, "0 feeds and -1 fetches");
    assert_ok(tw_session_prepare(f->s, NULL, 0, NULL, 0, &error));
    tw_tensor_release(one);
    tw_graph_destroy(other);
}

static void check_variable(fixture *f, const tw_variable *variable, const char *says)
{
    tw_error error;
    tw_tensor *value = NULL;
    assert_fails(tw_session_get_variable(f->s, variable, &value, &error), TW_INVALID_ARGUMENT, says);
    assert_null(value);
}

static void variables_must_be_of_the_graph_and_on_a_device_that_there_is(void **state)
{
    fixture *f = *state;
    tw_graph *other = tw_graph_create();
    tw_variable *far = NULL;
    assert_int_equal(open_session(f, NULL), TW_OK);
    check_variable(f, NULL, "that variable is not of this session's graph");
    check_variable(f, &(tw_variable){.name = "v"}, "that variable is not of this session's graph");
    check_variable(f, tw_get_variable(other, "v", TW_FLOAT32, TW_SCALAR, (tw_initializer){0}),
                   "that variable is not of this session's graph");
    TW_DEVICE(f->g, "/gpu:7")
        far = tw_get_variable(f->g, "far", TW_FLOAT32, TW_SCALAR, (tw_initializer){0});
    check_variable(f, far, "GPU:7");
    tw_graph_destroy(other);
}

/* ---- a program that crashes ---- */

static tw_status crash(void *user, int tower, void *const *outputs, tw_error *error)
{
    (void)user, (void)tower, (void)outputs, (void)error;
    raise(SIGSEGV);
    return TW_OK;
}

/* Becomes a process that crashes while a node runs, after many sessions that are gone. */
static _Noreturn void crash_in_a_node(const char *folder)
{
    enum { GONE = 300 }; /* more than a report has room for */
    tw_session *session;
    tw_output batch;
    tw_graph *g = tw_graph_create();
    signal(SIGSEGV, SIG_DFL); /* cmocka catches it */
    if (tw_set_crash_report(folder, false, NULL) != TW_OK)
        _exit(3);
    tw_input(g, "batch", 0, (tw_dtype[]){TW_FLOAT32}, (tw_shape[]){TW_SHAPE(2)}, 1, &batch);
    for (int i = 0; i < GONE; i++) {
        if (tw_session_create(g, NULL, &session, NULL) != TW_OK)
            _exit(5);
        tw_session_destroy(session);
    }
    if (tw_session_create(g, NULL, &session, NULL) == TW_OK &&
        tw_session_set_source(session, "batch", crash, NULL, NULL) == TW_OK)
        tw_session_repeat(session, batch, 1, NULL);
    _exit(4);
}

static void a_crash_leaves_a_report_that_names_the_node(void **state)
{
    (void)state;
    tw_error error = {0};
    char folder[] = "/tmp/tower-crash-XXXXXX", path[64];
    int status;
    assert_non_null(mkdtemp(folder));
    assert_fails(tw_set_crash_report("/nowhere", false, &error), TW_NOT_FOUND, "cannot be written to '/nowhere'");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        crash_in_a_node(folder);
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 1); /* a sanitizer's own end */
    snprintf(path, sizeof path, "%s/crash-0.txt", folder);
    char *report = read_whole(path, NULL);
    assert_message(report, "ended by  signal 11 (SIGSEGV");
    assert_message(report, "/job:localhost/replica:0/task:0/device:CPU:0 is at TowerInput 'TowerInput'");
    free(report);
    unlink(path);
    rmdir(folder);
}

/* Waits for what never comes, as a handler does that asks for a lock which the signal came under; but not for long. */
static void hang(int number)
{
    (void)number;
    if (alarm(1) == 0)
        _exit(3);
    for (;;)
        pause();
}

static void a_handler_that_hangs_does_not_keep_what_crashed(void **state)
{
    (void)state;
    char folder[] = "/tmp/tower-crash-XXXXXX", path[64];
    int status;
    assert_non_null(mkdtemp(folder));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, hang);
        tw_set_crash_report(folder, false, NULL);
        raise(SIGABRT);
        _exit(4);
    }
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    snprintf(path, sizeof path, "%s/crash-0.txt", folder);
    assert_int_equal(unlink(path), 0);
    rmdir(folder);
}

/* Whose number more than an int holds, and so is none of the last ones. */
static void an_axis_that_no_tensor_has_is_refused(void **state)
{
    (void)state;
    static const int64_t axes[] = {TW_MAX_RANK, INT32_MAX, UINT32_MAX, INT64_MAX};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        tw_graph *g = tw_graph_create();
        tw_attr axis = tw_attr_int("axis", axes[i]);
        tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(2, 3)), range = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(3));
        tw_add_node(g, "QuantizeAndDequantizeV4Grad", "rounded", (tw_output[]){x, x, range, range}, 4, &axis, 1);
        assert_int_equal(tw_graph_status(g), TW_INVALID_ARGUMENT);
        assert_message(tw_graph_message(g), "there are at most 12");
        tw_graph_destroy(g);
    }
}

/* Their splits would be outputs that nobody fills. */
static void ragged_features_of_sequences_are_refused_by_the_types_of_their_splits(void **state)
{
    (void)state;
    static const char *const attrs[] = {"context_ragged_split_types", "feature_list_ragged_split_types"};
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++) {
        tw_graph *g = tw_graph_create();
        tw_output none = tw_placeholder(g, TW_STRING, TW_SHAPE(0)), missing = tw_placeholder(g, TW_BOOL, TW_SHAPE(0));
        tw_output inputs[] = {none, none, none, none, none, none, none, none, missing};
        tw_attr types = tw_attr_types(attrs[i], (tw_dtype[]){TW_INT64}, 1);
        tw_add_node(g, "ParseSequenceExampleV2", NULL, inputs, 9, &types, 1);
        assert_message(tw_graph_message(g), "ragged features are not supported");
        tw_graph_destroy(g);
    }
}

static void samples_of_a_sound_that_no_memory_holds_are_refused(void **state)
{
    fixture *f = *state;
    static const char silence[] = "RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0"
                                  "data\2\0\0\0\0\0";
    tw_tensor *result = NULL, *bytes = tw_tensor_string(silence, sizeof silence - 1);
    tw_attr attrs[] = {tw_attr_int("desired_channels", INT64_MAX), tw_attr_int("desired_samples", INT64_MAX)};
    tw_output sound = tw_constant(f->g, bytes);
    tw_tensor_release(bytes);
    tw_output y = tw_node_output(tw_add_node(f->g, "DecodeWav", "sound", &sound, 1, attrs, 2), 0);
    assert_string_equal(tw_graph_message(f->g), "");
    assert_int_equal(open_session(f, NULL), TW_OK);
    tw_error error = {0};
    assert_fails(tw_session_run(f->s, NULL, 0, &y, 1, &result, &error), TW_RESOURCE_EXHAUSTED, "sound");
}

static void bands_of_a_cepstrum_that_no_int_holds_are_refused(void **state)
{
    fixture *f = *state;
    tw_tensor *result = NULL;
    tw_attr attrs[] = {tw_attr_int("filterbank_channel_count", INT64_MAX), tw_attr_int("dct_coefficient_count", 1)};
    tw_output inputs[] = {tw_ones(f->g, TW_FLOAT32, TW_SHAPE(1, 1, 9)), tw_scalar_of(f->g, TW_INT32, 16000)};
    tw_output y = tw_node_output(tw_add_node(f->g, "Mfcc", "cepstrum", inputs, 2, attrs, 2), 0);
    assert_string_equal(tw_graph_message(f->g), "");
    assert_int_equal(open_session(f, NULL), TW_OK);
    tw_error error = {0};
    assert_fails(tw_session_run(f->s, NULL, 0, &y, 1, &result, &error), TW_INVALID_ARGUMENT,
                 "Mfcc 'cepstrum': filterbank_channel_count is 9223372036854775807");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_rewrite_that_there_is_not_cannot_be_disabled, setup, teardown),
        cmocka_unit_test_setup_teardown(results_are_looked_at_before_the_run, setup, teardown),
        cmocka_unit_test_setup_teardown(placement_is_logged_without_a_function_for_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_constant_of_no_tensor_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(no_graph_has_failed, setup, teardown),
        cmocka_unit_test_setup_teardown(many_runs_of_a_node_take_four_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_may_fetch_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(lanes_are_given_out_until_there_are_no_more, setup, teardown),
        cmocka_unit_test_setup_teardown(the_place_of_a_stream_is_a_few_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(fetches_must_be_outputs_of_the_graph, setup, teardown),
        cmocka_unit_test_setup_teardown(feeds_must_be_outputs_of_the_graph_with_tensors, setup, teardown),
        cmocka_unit_test_setup_teardown(variables_must_be_of_the_graph_and_on_a_device_that_there_is, setup, teardown),
        cmocka_unit_test(ragged_features_of_sequences_are_refused_by_the_types_of_their_splits),
        cmocka_unit_test_setup_teardown(samples_of_a_sound_that_no_memory_holds_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(bands_of_a_cepstrum_that_no_int_holds_are_refused, setup, teardown),
        cmocka_unit_test(an_axis_that_no_tensor_has_is_refused),
        cmocka_unit_test(a_crash_leaves_a_report_that_names_the_node),
        cmocka_unit_test(a_handler_that_hangs_does_not_keep_what_crashed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
