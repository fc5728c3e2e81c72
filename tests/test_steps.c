/* Steps in a row: a session runs the same again and again without coming back in between. label: threads */
#include "testing.h"

#include <pthread.h>
#include <tower/ops.h>
#include <tower/session.h>

/* Two devices that need each other in every step: a = 1 - x / 2 on one, y = y / 2 + a on the other, then x = a - y. */
typedef struct fixture {
    tw_graph *g;
    tw_devices *devices;
    tw_session *s;
    tw_output step, a, y;
} fixture;

static fixture open_fixture(bool trace)
{
    tw_error error = {0};
    fixture f = {.g = tw_graph_create()};
    tw_graph *g = f.g;
    tw_variable *x, *y;
    tw_initializer zero = {.kind = TW_INIT_CONSTANT};
    TW_DEVICE(g, "/gpu:0")
        x = tw_get_variable(g, "x", TW_FLOAT32, TW_SHAPE(1), zero);
    TW_DEVICE(g, "/gpu:1")
        y = tw_get_variable(g, "y", TW_FLOAT32, TW_SHAPE(1), zero);
    tw_output init = tw_initialize_variables(g);
    tw_output one = tw_constant_floats(g, TW_SHAPE(1), (float[]){1});
    tw_output half = tw_constant_floats(g, TW_SHAPE(1), (float[]){0.5f}), keep_x, keep_y;
    TW_DEVICE(g, "/gpu:0")
        f.a = tw_sub(g, one, tw_mul(g, half, tw_variable_read(g, x)));
    TW_DEVICE(g, "/gpu:1") {
        f.y = tw_add(g, tw_mul(g, half, tw_variable_read(g, y)), f.a);
        keep_y = tw_assign(g, y->handle, f.y);
    }
    TW_DEVICE(g, "/gpu:0")
        keep_x = tw_assign(g, x->handle, tw_sub(g, f.a, f.y));
    tw_output both[] = {keep_x, keep_y};
    f.step = tw_group(g, both, 2);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .virtual_gpus = 2}, &f.devices, &error));
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = f.devices, .trace = trace}, &f.s, &error));
    assert_ok(tw_session_run(f.s, NULL, 0, &init, 1, NULL, &error));
    return f;
}

static void close_fixture(fixture *f)
{
    tw_session_destroy(f->s);
    tw_devices_destroy(f->devices);
    tw_graph_destroy(f->g);
}

static void each_step_sees_what_the_one_before_left(void **state)
{
    (void)state;
    for (int trace = 0; trace < 2; trace++) {
        fixture f = open_fixture(trace);
        tw_error error = {0};
        tw_output fetches[] = {{f.step.node, -1}, f.a, f.y};
        tw_tensor *results[3] = {0};
        float a = 0, x = 0, y = 0;
        for (int64_t steps = 1; steps < 8; steps++) {
            int64_t done = -1;
            assert_ok(tw_session_run_steps(f.s, steps, NULL, 0, fetches, 3, results, &done, &error));
            assert_int_equal(done, steps);
            for (int64_t i = 0; i < steps; i++) { /* halves are exact: the order of rounding is all the same */
                a = 1 - x / 2;
                y = y / 2 + a;
                x = a - y;
            }
            assert_true(tw_tensor_value(results[1], 0) == a);
            assert_true(tw_tensor_value(results[2], 0) == y);
        }
        for (int i = 0; i < 3; i++)
            tw_tensor_release(results[i]);
        close_fixture(&f);
    }
}

static tw_status fill(void *user, int tower, void *const *outputs, tw_error *error)
{
    int *left = user;
    (void)tower;
    *(float *)outputs[0] = (float)*left;
    if (--*left >= 0)
        return TW_OK;
    *error = (tw_error){TW_OUT_OF_RANGE, "no batch is left"};
    return TW_OUT_OF_RANGE;
}

static tw_status fail_without_a_word(void *user, int tower, void *const *outputs, tw_error *error)
{
    (void)tower, (void)outputs;
    *error = (tw_error){TW_OK, ""};
    if (user)
        *error = (tw_error){TW_OUT_OF_RANGE, "the source of 'reader' is dry"};
    return TW_OUT_OF_RANGE;
}

/* A source whose words are about 'reader' fails by a node of that name, and by one of another, whatever the name. */
static void check_words(const char *name, const char *without, const char *with)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_devices *devices;
    tw_session *s;
    tw_output batch;
    tw_tensor *result = NULL;
    tw_input(tw_name(g, "%s", name), "batches", 0, (tw_dtype[]){TW_FLOAT32}, (tw_shape[]){TW_SHAPE(1)}, 1, &batch);
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1}, &devices, &error));
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &s, &error));
    assert_ok(tw_session_set_source(s, "batches", fail_without_a_word, NULL, &error));
    assert_int_equal(tw_session_run(s, NULL, 0, &batch, 1, &result, &error), TW_OUT_OF_RANGE);
    assert_string_equal(error.message, without);
    assert_ok(tw_session_set_source(s, "batches", fail_without_a_word, s, &error));
    assert_int_equal(tw_session_run(s, NULL, 0, &batch, 1, &result, &error), TW_OUT_OF_RANGE);
    assert_string_equal(error.message, with);
    tw_session_destroy(s);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

/* Once: by the failure itself, or behind it. */
static void a_failure_names_the_op_and_the_node(void **state)
{
    (void)state;
    check_words("reader", "TowerInput failed [[{{node reader}}]]", "the source of 'reader' is dry");
    check_words("read", "TowerInput failed [[{{node read}}]]", "the source of 'reader' is dry [[{{node read}}]]");
    check_words("a", "TowerInput failed [[{{node a}}]]", "the source of 'reader' is dry [[{{node a}}]]");
}

static void a_step_that_fails_ends_the_row_and_is_counted(void **state)
{
    (void)state;
    tw_error error = {0};
    int left = 5;
    int64_t done = -1;
    tw_graph *g = tw_graph_create();
    tw_devices *devices;
    tw_session *s;
    tw_output batch, y;
    tw_tensor *result = NULL;
    tw_input(g, "batches", 0, (tw_dtype[]){TW_FLOAT32}, (tw_shape[]){TW_SHAPE(1)}, 1, &batch);
    TW_DEVICE(g, "/gpu:0")
        y = tw_neg(g, batch);
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .virtual_gpus = 1}, &devices, &error));
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &s, &error));
    assert_ok(tw_session_set_source(s, "batches", fill, &left, &error));
    assert_ok(tw_session_run_steps(s, 3, NULL, 0, &y, 1, &result, &done, &error));
    assert_true(done == 3 && tw_tensor_value(result, 0) == -3);
    assert_fails(tw_session_run_steps(s, 4, NULL, 0, &y, 1, &result, &done, &error), TW_OUT_OF_RANGE,
                 "no batch is left");
    assert_int_equal(done, 2);
    assert_message(error.message, "no batch is left [[{{node ");
    assert_true(tw_tensor_value(result, 0) == -3);
    tw_tensor_release(result);
    tw_session_destroy(s);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

static void what_is_fed_is_there_in_every_step(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *s;
    tw_tensor *result = NULL, *five = tw_tensor_from(TW_FLOAT32, TW_SHAPE(1), (float[]){5});
    tw_variable *sum = tw_get_variable(g, "sum", TW_FLOAT32, TW_SHAPE(1), (tw_initializer){.kind = TW_INIT_CONSTANT});
    tw_output init = tw_initialize_variables(g), fed = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(1));
    tw_output added = tw_assign_add(g, sum->handle, tw_exp(g, tw_log(g, fed)));
    tw_feed feed = {fed, five};
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_ok(tw_session_run(s, NULL, 0, &init, 1, NULL, &error));
    assert_ok(tw_session_run_steps(s, 4, &feed, 1, &(tw_output){added.node, -1}, 1, NULL, NULL, &error));
    assert_ok(tw_session_get_variable(s, sum, &result, &error));
    assert_true(fabs(tw_tensor_value(result, 0) - 20) < 1e-4);
    assert_fails(tw_session_run_steps(s, -1, &feed, 1, &(tw_output){added.node, -1}, 1, NULL, NULL, &error),
                 TW_INVALID_ARGUMENT, "-1 steps: expected at least 1");
    tw_tensor_release(result);
    tw_tensor_release(five);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void *cancel(void *session)
{
    struct timespec a_while = {0, 20000000};
    nanosleep(&a_while, NULL);
    tw_session_cancel(session);
    return NULL;
}

static void a_row_that_would_take_for_ever_can_be_cancelled(void **state)
{
    (void)state;
    fixture f = open_fixture(false);
    tw_error error = {0};
    int64_t done = -1;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel, f.s), 0);
    assert_fails(tw_session_run_steps(f.s, INT64_MAX / 64, NULL, 0, &(tw_output){f.step.node, -1}, 1, NULL, &done, &error), TW_CANCELLED,
                 "the session was cancelled");
    pthread_join(thread, NULL);
    assert_true(done >= 0 && done < INT64_MAX / 64);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_sees_what_the_one_before_left),
        cmocka_unit_test(a_failure_names_the_op_and_the_node),
        cmocka_unit_test(a_step_that_fails_ends_the_row_and_is_counted),
        cmocka_unit_test(what_is_fed_is_there_in_every_step),
        cmocka_unit_test(a_row_that_would_take_for_ever_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
