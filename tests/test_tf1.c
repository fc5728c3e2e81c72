/* test_tf1.c - graphs as TensorFlow 1 wrote them: references as variables, queue runners, towers on GPUs that are not
 * there. They give TensorFlow's losses. */
#include "testing.h"

#include "golden/tf1.h"

#include <tower/io.h>
#include <tower/ops.h>
#include <tower/queue.h>
#include <tower/session.h>
#include <tower/train.h>
#include <unistd.h>

enum { STEPS = sizeof golden_sgd / sizeof(float) };

static char *read_golden(const char *name, size_t *size)
{
    char path[600];
    snprintf(path, sizeof path, "%s/tf1_%s", GOLDEN_DIR, name);
    return read_whole(path, size);
}

static tw_graph *read_graph(const char *name)
{
    char file[64], *bytes;
    size_t size;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    snprintf(file, sizeof file, "%s.meta", name);
    bytes = read_golden(file, &size);
    assert_ok(tw_meta_graph_import(g, bytes, size, NULL, &error));
    free(bytes);
    return g;
}

static tw_output output_of(tw_graph *g, const char *name)
{
    tw_node *node = tw_graph_find(g, name);
    assert_non_null(node);
    return tw_node_output(node, 0);
}

static void run_node(tw_session *s, tw_output node)
{
    tw_error error = {0};
    node.index = -1;
    assert_ok(tw_session_run(s, NULL, 0, &node, 1, NULL, &error));
}

/* Multiples of 1/64, as in make_tf1.py. */
static tw_tensor *numbers(int64_t rows, int64_t columns, int64_t stream)
{
    tw_tensor *t = tw_tensor_create(TW_FLOAT32, TW_SHAPE(rows, columns));
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)tw_tensor_data(t))[i] = (float)((i * 7919 + stream * 104729) % 128 - 64) / 64;
    return t;
}

static tw_tensor *labels(int step)
{
    int32_t y[4];
    for (int i = 0; i < 4; i++)
        y[i] = (i + step) % 3;
    return tw_tensor_from(TW_INT32, TW_SHAPE(4), y);
}

/* One step with its feeds; the loss. */
static float train_step(tw_session *s, tw_graph *g, int step)
{
    tw_error error = {0};
    tw_tensor *x = numbers(4, 6, 10 + step), *y = labels(step), *results[2] = {0};
    tw_feed feeds[] = {{output_of(g, "x"), x}, {output_of(g, "y"), y}};
    tw_output fetches[] = {output_of(g, "loss"), {tw_graph_find(g, "train"), -1}};
    assert_ok(tw_session_run(s, feeds, 2, fetches, 2, results, &error));
    float loss = *(float *)tw_tensor_data(results[0]);
    tw_tensor_release(results[0]);
    tw_tensor_release(x);
    tw_tensor_release(y);
    return loss;
}

static int64_t fetch_integer(tw_session *s, tw_output fetch)
{
    tw_error error = {0};
    tw_tensor *result = NULL;
    assert_ok(tw_session_run(s, NULL, 0, &fetch, 1, &result, &error));
    int64_t value = (int64_t)tw_tensor_value(result, 0);
    tw_tensor_release(result);
    return value;
}

/* ---- references -------------------------------------------------------------------------------------------- */

static void training_by_references_gives_tensorflows_losses(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const float *golden;
    } cases[] = {
        {"sgd", golden_sgd}, {"momentum", golden_momentum}, {"adam", golden_adam}, {"rmsprop", golden_rmsprop}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int plain = 0; plain < 2; plain++) {
            tw_error error = {0};
            tw_graph *g = read_graph(cases[i].name);
            tw_session_options options = {.plain_kernels = plain, .disable = plain ? "all" : NULL};
            tw_session *s;
            assert_ok(tw_session_create(g, &options, &s, &error));
            run_node(s, output_of(g, "init"));
            for (int step = 0; step < STEPS; step++) {
                float loss = train_step(s, g, step);
                assert_floats_near(&loss, &cases[i].golden[step], 1, 2e-6);
            }
            assert_int_equal(fetch_integer(s, output_of(g, "global_step")), STEPS); /* a reference, fetched */
            assert_int_equal(fetch_integer(s, output_of(g, "steps_done")), STEPS);
            tw_session_destroy(s);
            tw_graph_destroy(g);
        }
}

static void a_variable_that_was_not_assigned_is_missed_by_name(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = read_graph("sgd");
    tw_session *s;
    tw_tensor *result = NULL;
    tw_output weights = output_of(g, "hidden/weights");
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_fails(tw_session_run(s, NULL, 0, &weights, 1, &result, &error), TW_FAILED_PRECONDITION, "hidden/weights");
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void a_read_comes_after_the_nodes_that_control_it(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = read_graph("sgd");
    tw_session *s;
    assert_ok(tw_session_create(g, NULL, &s, &error));
    run_node(s, output_of(g, "init"));
    tw_tensor *x = numbers(4, 6, 10), *y = labels(0), *results[2] = {0};
    tw_feed feeds[] = {{output_of(g, "x"), x}, {output_of(g, "y"), y}};
    tw_output both[] = {output_of(g, "step_after"), output_of(g, "global_step/read")};
    for (int step = 1; step < 4; step++) {
        assert_ok(tw_session_run(s, feeds, 2, both, 1, results, &error));
        assert_int_equal((int)tw_tensor_value(results[0], 0), step);
    }
    tw_tensor_release(results[0]);
    tw_tensor_release(x);
    tw_tensor_release(y);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void reference_variables_are_variables_of_the_graph_and_are_saved(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = read_graph("momentum");
    assert_int_equal(tw_graph_num_variables(g), 9);
    int trainable = 0;
    for (int i = 0; i < tw_graph_num_variables(g); i++)
        trainable += tw_graph_variable(g, i)->trainable;
    assert_int_equal(trainable, 4);
    tw_variable *weights = tw_graph_find_variable(g, "hidden/weights");
    assert_true(tw_shape_equal(weights->shape, TW_SHAPE(6, 5)));
    assert_non_null(tw_graph_find_variable(g, "hidden/weights/Momentum"));

    tw_output initialize = tw_initialize_variables(g);
    tw_session *first, *second;
    float losses[STEPS];
    char directory[] = "/tmp/tower-tf1-XXXXXX", path[600];
    assert_non_null(mkdtemp(directory));
    assert_ok(tw_session_create(g, NULL, &first, &error));
    run_node(first, initialize);
    for (int step = 0; step < STEPS; step++) {
        losses[step] = train_step(first, g, step);
        if (step == 3)
            assert_ok(tw_save(first, directory, 4, NULL, &error));
    }
    assert_ok(tw_session_create(g, NULL, &second, &error));
    tw_checkpoint *checkpoint;
    assert_ok(tw_checkpoint_open(directory, &checkpoint, &error));
    assert_true(tw_checkpoint_find(checkpoint, "output/biases/Momentum") >= 0);
    assert_ok(tw_restore(second, checkpoint, NULL, NULL, &error));
    tw_checkpoint_close(checkpoint);
    for (int step = 4; step < STEPS; step++)
        assert_true(train_step(second, g, step) == losses[step]);
    tw_session_destroy(first);
    tw_session_destroy(second);
    tw_graph_destroy(g);
    snprintf(path, sizeof path, "rm -r %s", directory);
    assert_int_equal(system(path), 0);
}

static tw_output add(tw_graph *g, const char *op, tw_output a, tw_output b, tw_output c)
{
    tw_output inputs[] = {a, b, c};
    return tw_node_output(tw_add_node(g, op, NULL, inputs, 1 + (b.node != NULL) + (c.node != NULL), NULL, 0), 0);
}

/* Assign, ScatterAdd of what it passes on, RefIdentity of that, a look at the end: each comes after the one before. */
static void a_reference_passed_on_is_seen_as_the_last_writer_left_it(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output none = {0};
    tw_attr attrs[] = {tw_attr_type("dtype", TW_FLOAT32), tw_attr_shape("shape", TW_SHAPE(3, 2))};
    tw_output v = tw_node_output(tw_add_node(g, "VariableV2", "v", NULL, 0, attrs, 2), 0);
    tw_output assigned = add(g, "Assign", v, tw_ones(g, TW_FLOAT32, TW_SHAPE(3, 2)), none);
    tw_output rows = tw_constant_int32s(g, TW_SHAPE(2), (int32_t[]){2, 2}), far = tw_scalar_of(g, TW_INT32, 3);
    tw_output updates = tw_constant_floats(g, TW_SHAPE(2, 2), (float[]){1, 2, 10, 20});
    tw_output scattered = add(g, "ScatterAdd", assigned, rows, updates);
    tw_output passed_on = add(g, "RefIdentity", scattered, none, none);
    tw_output doubled = tw_add(g, passed_on, passed_on);
    tw_output one = tw_slice(g, updates, TW_SHAPE(0, 0), TW_SHAPE(1, 2)), flat = tw_reshape(g, one, TW_SHAPE(2));
    tw_output outside = add(g, "ScatterUpdate", v, far, flat);
    tw_session *s;
    tw_tensor *result = NULL;
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, NULL, &s, &error));
    for (int i = 0; i < 2; i++) {
        assert_ok(tw_session_run(s, NULL, 0, &doubled, 1, &result, &error));
        assert_floats_near(tw_tensor_data(result), (float[]){2, 2, 2, 2, 24, 46}, 6, 0);
    }
    assert_fails(tw_session_run(s, NULL, 0, &outside, 1, &result, &error), TW_INVALID_ARGUMENT, "3");
    assert_ok(tw_session_run(s, NULL, 0, &v, 1, &result, &error));
    assert_floats_near(tw_tensor_data(result), (float[]){1, 1, 1, 1, 12, 23}, 6, 0);
    tw_tensor *value = tw_tensor_float(1);
    assert_fails(tw_session_run(s, &(tw_feed){assigned, value}, 1, &scattered, 1, &result, &error),
                 TW_INVALID_ARGUMENT, "feed of 'Assign:0'");
    tw_tensor_release(value);
    tw_tensor_release(result);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* v/read is the variable's memory: r = identity(v/read) behind u = assign_add(v, 1) is what u has left, in TensorFlow
 * 1. */
static void a_read_passed_on_is_seen_as_the_last_writer_left_it(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    tw_session *session;
    tw_tensor *value = NULL;
    tw_graph *g = tw_graph_create();
    tw_attr variable[] = {tw_attr_type("dtype", TW_FLOAT32), tw_attr_shape("shape", TW_SCALAR)};
    tw_output v = tw_node_output(tw_add_node(g, "VariableV2", "v", NULL, 0, variable, 2), 0), r = {0};
    tw_output zero[] = {v, tw_scalar(g, 0)}, one[] = {v, tw_scalar(g, 1)};
    tw_output init = tw_node_output(tw_add_node(g, "Assign", "init", zero, 2, NULL, 0), 0);
    tw_output read = tw_identity(tw_name(g, "v/read"), v);
    tw_output u = tw_node_output(tw_add_node(g, "AssignAdd", "u", one, 2, NULL, 0), 0);
    TW_CONTROL(g, u)
        r = tw_identity(g, read);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_devices_create(NULL, &devices, &error));
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    run_node(session, init);
    for (int step = 1; step <= 3; step++) {
        assert_ok(tw_session_run(session, NULL, 0, &r, 1, &value, &error));
        assert_true(tw_tensor_value(value, 0) == step);
    }
    assert_ok(tw_session_run(session, NULL, 0, &read, 1, &value, &error));
    assert_true(tw_tensor_value(value, 0) == 3);
    tw_tensor_release(value);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

/* Nothing is left to do of a placeholder that is fed, so who comes after it need not wait. */
static void a_node_may_come_after_a_placeholder_that_is_fed(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    tw_session *session;
    tw_tensor *value = NULL, *fed = tw_tensor_float(2);
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SCALAR), y = {0};
    TW_CONTROL(g, x)
        y = tw_square(g, tw_get_variable(g, "w", TW_FLOAT32, TW_SCALAR, (tw_initializer){.kind = TW_INIT_CONSTANT, .a = 3})->value);
    assert_ok(tw_devices_create(NULL, &devices, &error));
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    run_node(session, tw_initialize_variables(g));
    assert_ok(tw_session_run(session, &(tw_feed){x, fed}, 1, &y, 1, &value, &error));
    assert_true(tw_tensor_value(value, 0) == 9);
    tw_tensor_release(value);
    tw_tensor_release(fed);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

static void what_is_written_must_be_a_variable(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output inputs[] = {tw_scalar(g, 1), tw_scalar(g, 2)};
    assert_null(tw_add_node(g, "Assign", NULL, inputs, 2, NULL, 0));
    assert_message(tw_graph_message(g),
                   "Assign 'Assign': input 0 ('ref') is to be written, and 'Const' is not a variable");
    tw_graph_destroy(g);
}

/* ---- queues, towers ---------------------------------------------------------------------------------------- */

static void a_graph_with_queue_runners_trains_to_the_end_of_its_data(void **state)
{
    (void)state;
    enum { COUNT = sizeof golden_queues / sizeof(float) };
    tw_error error = {0};
    tw_graph *g = read_graph("queues");
    tw_session *s;
    tw_coordinator *c;
    assert_ok(tw_session_create(g, NULL, &s, &error));
    run_node(s, output_of(g, "initialize"));
    assert_ok(tw_coordinator_create(&c, &error));
    assert_ok(tw_start_queue_runners(s, c, &error));
    tw_output fetches[] = {output_of(g, "loss"), {tw_graph_find(g, "train"), -1}};
    tw_tensor *results[2] = {0};
    for (int step = 0; step < COUNT; step++) {
        assert_ok(tw_session_run(s, NULL, 0, fetches, 2, results, &error));
        assert_floats_near(tw_tensor_data(results[0]), &golden_queues[step], 1, 1e-6);
    }
    assert_fails(tw_session_run(s, NULL, 0, fetches, 2, results, &error), TW_OUT_OF_RANGE, "insufficient elements");
    tw_coordinator_request_stop(c, &error);
    assert_ok(tw_coordinator_join(c, PATIENCE, &error));
    tw_tensor_release(results[0]);
    tw_coordinator_destroy(c);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void towers_run_on_gpus_or_where_there_are_none_softly_on_the_cpu(void **state)
{
    (void)state;
    for (int gpus = 0; gpus <= 2; gpus++) {
        tw_error error = {0};
        tw_graph *g = read_graph("towers");
        tw_devices *devices;
        tw_session *s;
        assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = gpus, .no_gpus = gpus == 0}, &devices, &error));
        tw_session_options options = {.devices = devices, .allow_soft_placement = true};
        assert_ok(tw_session_create(g, &options, &s, &error));
        run_node(s, output_of(g, "init"));
        tw_output fetches[] = {output_of(g, "loss"), {tw_graph_find(g, "train"), -1}};
        tw_tensor *results[2] = {0};
        for (int step = 0; step < STEPS; step++) {
            assert_ok(tw_session_run(s, NULL, 0, fetches, 2, results, &error));
            assert_floats_near(tw_tensor_data(results[0]), &golden_towers[step], 1, 1e-6);
        }
        const char *where = tw_session_device(s, tw_graph_find(g, "tower_1/output/MatMul"));
        assert_message(where, gpus == 2 ? "GPU:1" : gpus == 1 ? "GPU:0" : "CPU:0");
        assert_message(tw_session_device(s, tw_graph_find(g, "hidden/weights")), "CPU:0");
        tw_tensor_release(results[0]);
        tw_session_destroy(s);
        tw_devices_destroy(devices);
        tw_graph_destroy(g);
    }
}

static void queues_and_variables_of_before_2017_are_those_of_today(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    size_t size;
    char *bytes = read_golden("old.pb", &size);
    assert_ok(tw_graph_import(g, bytes, size, NULL, &error));
    free(bytes);
    assert_string_equal(tw_node_op(tw_graph_find(g, "queue")), "FIFOQueueV2");
    tw_session *s;
    tw_tensor *result = NULL;
    tw_output two = output_of(g, "two");
    assert_ok(tw_session_create(g, NULL, &s, &error));
    run_node(s, output_of(g, "put"));
    assert_ok(tw_session_run(s, NULL, 0, &two, 1, &result, &error));
    assert_true(tw_tensor_value(result, 0) == 1 && tw_tensor_value(result, 1) == 2);
    assert_int_equal(fetch_integer(s, output_of(g, "size")), 1);
    run_node(s, output_of(g, "close"));
    assert_fails(tw_session_run(s, NULL, 0, &two, 1, &result, &error), TW_OUT_OF_RANGE,
                 "(requested 2, current size 1)");
    assert_int_equal(fetch_integer(s, output_of(g, "five")), 5);
    tw_tensor_release(result);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* ---- files that are not what they should be ---------------------------------------------------------------- */

static void names_may_have_a_prefix_and_may_not_be_taken(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = read_graph("queues");
    size_t size;
    char *bytes = read_golden("queues.meta", &size);
    int nodes = tw_graph_num_nodes(g), runners = tw_get_collection(g, "queue_runners", NULL, NULL, 0);
    assert_int_equal(runners, 8); /* two queues, each with two nodes to close it and one to fill it */
    assert_fails(tw_meta_graph_import(g, bytes, size, NULL, &error), TW_ALREADY_EXISTS, "already exists");
    assert_int_equal(tw_graph_num_nodes(g), nodes);
    assert_ok(tw_meta_graph_import(g, bytes, size, "again", &error));
    assert_int_equal(tw_graph_num_nodes(g), 2 * nodes);
    assert_int_equal(tw_get_collection(g, "queue_runners", "again", NULL, 0), 8);
    free(bytes);
    tw_graph_destroy(g);
}

static void a_damaged_file_is_an_error_and_changes_nothing(void **state)
{
    (void)state;
    size_t size;
    char *bytes = read_golden("queues.meta", &size), *damaged = malloc(size);
    unsigned draw = 1;
    int failed = 0;
    for (int i = 0; i < 300; i++) {
        tw_error error = {0};
        tw_graph *g = tw_graph_create();
        memcpy(damaged, bytes, size);
        size_t kept = i % 3 ? size : size * (size_t)i / 300;
        for (int k = 0; k < 1 + i % 4 && i % 3; k++) {
            draw = draw * 1664525 + 1013904223;
            damaged[draw % size] = (char)(draw >> 24);
        }
        tw_status status = tw_meta_graph_import(g, damaged, kept, NULL, &error);
        if (status != TW_OK) {
            assert_true(error.message[0] && error.status == status);
            assert_int_equal(tw_graph_num_nodes(g), 0);
            failed++;
        }
        tw_graph_destroy(g);
    }
    assert_true(failed > 50);
    free(damaged);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_by_references_gives_tensorflows_losses),
        cmocka_unit_test(a_variable_that_was_not_assigned_is_missed_by_name),
        cmocka_unit_test(a_read_comes_after_the_nodes_that_control_it),
        cmocka_unit_test(reference_variables_are_variables_of_the_graph_and_are_saved),
        cmocka_unit_test(a_reference_passed_on_is_seen_as_the_last_writer_left_it),
        cmocka_unit_test(a_read_passed_on_is_seen_as_the_last_writer_left_it),
        cmocka_unit_test(a_node_may_come_after_a_placeholder_that_is_fed),
        cmocka_unit_test(what_is_written_must_be_a_variable),
        cmocka_unit_test(a_graph_with_queue_runners_trains_to_the_end_of_its_data),
        cmocka_unit_test(queues_and_variables_of_before_2017_are_those_of_today),
        cmocka_unit_test(names_may_have_a_prefix_and_may_not_be_taken),
        cmocka_unit_test(a_damaged_file_is_an_error_and_changes_nothing),
        cmocka_unit_test(towers_run_on_gpus_or_where_there_are_none_softly_on_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
