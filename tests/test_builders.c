/* What builders of one's own need beside the ops: errors and memory of a graph, variables by exact names, seeds that do
 * not count what is made beside, devices by their names. */
#include "testing.h"

#include <tower/data.h>
#include <tower/nn.h>
#include <tower/ops.h>
#include <tower/session.h>
#include <tower/train.h>

static void builder_latches_an_error_of_its_own(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    assert_int_equal(tw_graph_fail(g, TW_OUT_OF_RANGE, "%d layers, expected at most %d", 9, 8), TW_OUT_OF_RANGE);
    assert_int_equal(tw_graph_fail(g, TW_INVALID_ARGUMENT, "later"), TW_OUT_OF_RANGE);
    assert_string_equal(tw_graph_message(g), "9 layers, expected at most 8");
    assert_null(tw_scalar(g, 1).node);
    tw_graph_destroy(g);
}

static void graph_keeps_what_a_builder_needs(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    const char *copy = tw_graph_keep(g, "word", 5);
    const int *zeros = tw_graph_keep(g, NULL, 1000 * sizeof *zeros);
    assert_string_equal(copy, "word");
    assert_int_equal(zeros[0] | zeros[999], 0);
    tw_graph_destroy(g);
}

static void more_dimensions_than_there_are_are_refused_where_they_come_in(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_shape deep = {.rank = TW_MAX_RANK + 1};
    tw_output x = tw_placeholder(g, TW_FLOAT32, deep);
    assert_null(x.node);
    assert_message(tw_graph_message(g), "its output 0 has 13 dimensions, the most are 12");
    tw_graph_destroy(g);
}

static void variable_has_exactly_the_name_that_was_asked_for(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_variable *weights, *slot = NULL;
    tw_enter_variable_scope(g, "conv1");
    weights = tw_get_variable(g, "weights", TW_FLOAT32, TW_SHAPE(3), (tw_initializer){TW_INIT_CONSTANT, .a = 2});
    slot = tw_make_variable(
        g, "conv1/weights/Slot",
        &(tw_new_variable){TW_FLOAT32, TW_SHAPE(3), .initial_value = tw_variable_initial_value(weights)});
    tw_leave_variable_scope(g);
    assert_ptr_equal(tw_graph_find_variable(g, "conv1/weights/Slot"), slot);
    assert_string_equal(slot->name, "conv1/weights/Slot");
    assert_string_equal(tw_node_name(slot->handle.node), "conv1/weights/Slot");
    assert_true(tw_node_is_variable(slot->handle.node));
    assert_false(tw_node_is_variable(slot->value.node));

    tw_session *session;
    tw_tensor *value = NULL;
    tw_output init = tw_initialize_variables(g);
    tw_error error = {0};
    assert_int_equal(tw_session_create(g, NULL, &session, &error), TW_OK);
    assert_int_equal(tw_session_run(session, NULL, 0, &init, 1, NULL, &error), TW_OK);
    assert_int_equal(tw_session_get_variable(session, slot, &value, &error), TW_OK);
    assert_float_equal(tw_tensor_value(value, 2), 2, 0);
    tw_tensor_release(value);
    tw_session_destroy(session);

    assert_null(tw_make_variable(g, "conv1/weights/Slot", &(tw_new_variable){TW_FLOAT32, TW_SCALAR}));
    assert_int_equal(tw_graph_status(g), TW_ALREADY_EXISTS);
    assert_non_null(strstr(tw_graph_message(g), "'conv1/weights/Slot'"));
    tw_graph_destroy(g);
}

/* seed2 of a random op behind so many nodes, made in scopes that do not count so many deep. */
static int64_t seed_behind(int nodes, int scopes)
{
    tw_graph *g = tw_graph_create();
    tw_graph_set_seed(g, 7);
    for (int i = 0; i < scopes; i++)
        tw_enter_uncounted(g);
    for (int i = 0; i < nodes; i++)
        tw_scalar(g, 0);
    for (int i = 0; i < scopes; i++)
        tw_leave_uncounted(g);
    tw_variable *v = tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(2), (tw_initializer){TW_INIT_UNIFORM, .b = 1});
    tw_node *random = tw_graph_find(g, "v/Initializer/random_uniform/RandomUniform");
    assert_non_null(v);
    assert_non_null(random);
    int64_t seed = tw_node_attr(random, "seed2")->i;
    tw_graph_destroy(g);
    return seed;
}

static void seeds_pass_over_what_does_not_count(void **state)
{
    (void)state;
    int64_t plain = seed_behind(0, 0);
    assert_int_not_equal(seed_behind(5, 0), plain);
    assert_int_equal(seed_behind(5, 1), plain);
    assert_int_equal(seed_behind(5, 3), plain);
}

static void nodes_know_their_place(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_scalar(g, 1), y = tw_add(g, x, x);
    assert_int_equal(tw_node_number(x.node), 0);
    assert_ptr_equal(tw_graph_node(g, tw_node_number(y.node)), y.node);
    tw_graph_destroy(g);
}

/* Only nodes make these: a tensor of them has nothing that a plan could keep. */
static void a_constant_is_no_handle(void **state)
{
    (void)state;
    tw_tensor *handles = tw_tensor_create(TW_RESOURCE, TW_SHAPE(2, 4));
    tw_graph *g = tw_graph_create();
    assert_non_null(handles);
    tw_constant(g, handles);
    assert_int_equal(tw_graph_status(g), TW_INVALID_ARGUMENT);
    assert_message(tw_graph_message(g), "a constant is a handle: only nodes make these");
    tw_graph_destroy(g);
    tw_tensor_release(handles);
}

static void sum_of_rows_is_known_by_its_rows(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_rows rows;
    const int32_t numbers[] = {4, 1, 4};
    tw_tensor *tensor = tw_tensor_from(TW_INT32, TW_SHAPE(3), numbers);
    tw_output ids = tw_constant(g, tensor), values = tw_zeros(g, TW_FLOAT32, TW_SHAPE(3, 2));
    assert_true(tw_find_rows(tw_unsorted_segment_sum(g, values, ids, 6), &rows));
    assert_ptr_equal(rows.ids.node, ids.node);
    assert_ptr_equal(rows.values.node, values.node);
    assert_int_equal(rows.count, 6);
    assert_false(tw_find_rows(values, &rows));
    assert_false(tw_find_rows((tw_output){0}, &rows));
    tw_tensor_release(tensor);
    tw_graph_destroy(g);
}

static void device_is_found_by_any_of_its_names(void **state)
{
    (void)state;
    tw_devices *devices;
    tw_error error = {0};
    tw_device_options options = {.cpu_devices = 2, .virtual_gpus = 2, .no_gpus = true};
    assert_int_equal(tw_devices_create(&options, &devices, &error), TW_OK);
    assert_int_equal(tw_devices_find(devices, "/cpu:1"), 1);
    assert_int_equal(tw_devices_find(devices, "gpu:1"), 3);
    assert_int_equal(tw_devices_find(devices, "/job:localhost/replica:0/task:0/device:GPU:0"), 2);
    assert_int_equal(tw_devices_find(devices, "/device:GPU:*"), 2);
    assert_int_equal(tw_devices_find(devices, "/gpu:2"), -1);
    assert_int_equal(tw_devices_find(devices, "no device"), -1);
    assert_true(tw_device_is("cpu:0", "CPU"));
    assert_true(tw_device_is("/task:0/device:CPU:1", "CPU"));
    assert_false(tw_device_is("/gpu:0", "CPU"));
    assert_true(tw_device_is("gpu:GPU-8a7e", "GPU"));
    assert_false(tw_device_is("/job:cpu", "CPU"));
    assert_true(tw_device_is("/job:ps/task:1", NULL));
    assert_false(tw_device_is("foo", NULL));

    tw_graph *g = tw_graph_create();
    tw_output x = tw_zeros(g, TW_INT32, TW_SHAPE(2, 2)), y = tw_matmul(g, x, x);
    assert_true(tw_devices_have_kernel(devices, 0, y.node));
    assert_false(tw_devices_have_kernel(devices, 2, y.node)); /* of int32, as in TensorFlow */
    assert_false(tw_devices_have_kernel(devices, -1, y.node));
    assert_false(tw_devices_have_kernel(devices, 4, y.node));
    tw_graph_destroy(g);
    tw_devices_destroy(devices);
}

static void size_of_augmented_images_is_known_without_a_pipeline(void **state)
{
    (void)state;
    tw_dataset *data;
    tw_error error = {0};
    int height = 0, width = 0;
    assert_int_equal(tw_dataset_synthetic(4, 32, 30, 3, 10, 1, &data, &error), TW_OK);
    tw_pipeline_options plain = {.augmentation = TW_AUGMENT_PAD_CROP_FLIP};
    assert_int_equal(tw_pipeline_image_size(data, &plain, &height, &width, &error), TW_OK);
    assert_int_equal(height * 100 + width, 3230);
    tw_pipeline_options cropped = {.augmentation = TW_AUGMENT_TUTORIAL_TRAIN};
    assert_int_equal(tw_pipeline_image_size(data, &cropped, &height, &width, &error), TW_OK);
    assert_int_equal(height * 100 + width, 2424);
    cropped.crop = 31;
    assert_int_equal(tw_pipeline_image_size(data, &cropped, &height, &width, &error), TW_INVALID_ARGUMENT);
    tw_dataset_destroy(data);
}

/* ---- lines of the program ---- */

#include <tower/located.h> /* for what follows; what stands above says nothing of its lines */

/* "(tests/test_builders.c:LINE)" ends the message. */
static void assert_at(const char *message, int line)
{
    char end[64];
    snprintf(end, sizeof end, "test_builders.c:%d)", line);
    if (strlen(message) < strlen(end) || strcmp(message + strlen(message) - strlen(end), end) != 0)
        fail_msg("'%s' does not end with '%s'", message, end);
    if (strstr(message, end) != message + strlen(message) - strlen(end))
        fail_msg("'%s' has '%s' twice", message, end);
}

static void errors_name_the_line_that_built_what_failed(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output a = tw_constant_floats(g, TW_SHAPE(2, 3), (float[6]){0});
    int line = __LINE__ + 1;
    tw_output wrong = tw_matmul(tw_name(g, "wrong"), a, a);
    tw_relu(g, wrong);
    assert_message(tw_graph_message(g), "wrong");
    assert_at(tw_graph_message(g), line);
    tw_graph_destroy(g);

    g = tw_graph_create();
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.1f));
    tw_output loss = tw_constant_floats(g, TW_SHAPE(2), (float[]){1, 2}); /* no scalar */
    line = __LINE__ + 1;
    tw_compute_gradients(sgd, loss);
    assert_at(tw_graph_message(g), line);
    tw_graph_destroy(g);
}

static void a_run_names_the_line_of_the_node_that_failed(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_error error = {0};
    tw_session *session;
    tw_output rows = tw_constant_floats(g, TW_SHAPE(2), (float[]){1, 2});
    tw_output which = tw_placeholder(tw_name(g, "which"), TW_INT32, TW_SHAPE(1));
    int line = __LINE__ + 1;
    tw_output row = tw_gather(tw_name(g, "row"), rows, which, 0);
    int unfed = line - 2;
    assert_int_equal(tw_session_create(g, NULL, &session, &error), TW_OK);
    tw_tensor *result = NULL, *fed = tw_tensor_from(TW_INT32, TW_SHAPE(1), &(int32_t){7});
    assert_int_equal(tw_session_run(session, &(tw_feed){which, fed}, 1, &row, 1, &result, &error), TW_INVALID_ARGUMENT);
    assert_message(error.message, "'row'");
    assert_at(error.message, line);
    assert_int_equal(tw_session_run(session, NULL, 0, &row, 1, &result, &error), TW_INVALID_ARGUMENT);
    assert_message(error.message, "'which'");
    assert_at(error.message, unfed);
    tw_tensor_release(fed);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static void who_cannot_be_placed_is_named_with_its_line(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_error error = {0};
    tw_session *session;
    tw_tensor *result = NULL;
    tw_output far;
    int line = __LINE__ + 1;
    TW_DEVICE(g, "/job:worker/task:7") far = tw_scalar(tw_name(g, "far"), 1);
    assert_int_equal(tw_session_create(g, NULL, &session, &error), TW_OK);
    assert_int_equal(tw_session_run(session, NULL, 0, &far, 1, &result, &error), TW_INVALID_ARGUMENT);
    assert_message(error.message, "Cannot assign a device for operation 'far'");
    assert_at(error.message, line);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static void a_call_through_a_pointer_or_in_parentheses_is_a_call(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output (*relu)(tw_graph *, tw_output) = tw_relu;
    tw_graph_at(g, "model.py", 12);
    tw_output y = relu(g, (tw_scalar)(g, -1));
    assert_string_equal(tw_node_op(y.node), "Relu");
    (tw_matmul)(g, y, y);
    assert_message(tw_graph_message(g), "(model.py:12)");
    tw_graph_destroy(g);
    assert_null(tw_graph_at(NULL, "model.py", 1));
    assert_null(tw_scalar(NULL, 1).node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builder_latches_an_error_of_its_own),
        cmocka_unit_test(graph_keeps_what_a_builder_needs),
        cmocka_unit_test(more_dimensions_than_there_are_are_refused_where_they_come_in),
        cmocka_unit_test(variable_has_exactly_the_name_that_was_asked_for),
        cmocka_unit_test(seeds_pass_over_what_does_not_count),
        cmocka_unit_test(nodes_know_their_place),
        cmocka_unit_test(a_constant_is_no_handle),
        cmocka_unit_test(sum_of_rows_is_known_by_its_rows),
        cmocka_unit_test(device_is_found_by_any_of_its_names),
        cmocka_unit_test(size_of_augmented_images_is_known_without_a_pipeline),
        cmocka_unit_test(errors_name_the_line_that_built_what_failed),
        cmocka_unit_test(a_run_names_the_line_of_the_node_that_failed),
        cmocka_unit_test(who_cannot_be_placed_is_named_with_its_line),
        cmocka_unit_test(a_call_through_a_pointer_or_in_parentheses_is_a_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
