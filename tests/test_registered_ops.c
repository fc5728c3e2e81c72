/* Ops that a program registers (tower/op.h): they run, have gradients, and are refused in words; and memory that fails
 * leaves nothing behind. */
#include "faulty_memory.h"

#include <tower/tower.h>

static tw_error error;
static int made, destroyed;

static tw_status same_shape(void *user, const tw_op_node *node, tw_shape *outputs, tw_error *wrong)
{
    (void)user;
    (void)wrong;
    outputs[0] = node->inputs[0];
    return TW_OK;
}

static tw_status many_dimensions(void *user, const tw_op_node *node, tw_shape *outputs, tw_error *wrong)
{
    (void)user;
    (void)node;
    (void)wrong;
    outputs[0].rank = TW_MAX_RANK + 1;
    return TW_OK;
}

static tw_status create_cube(void *user, const tw_op_node *node, void **kernel, tw_error *wrong)
{
    (void)user;
    (void)wrong;
    made++;
    return (*kernel = strdup(node->name)) ? TW_OK : TW_RESOURCE_EXHAUSTED;
}

static void destroy_cube(void *kernel)
{
    destroyed++;
    free(kernel);
}

static tw_status compute_cube(void *kernel, tw_op_run *run, tw_error *wrong)
{
    tw_op_value x = tw_op_run_input(run, 0);
    const float *from = x.data;
    float *y;
    assert_string_equal(kernel, tw_op_run_node(run));
    assert_null(tw_op_run_input(run, 1).data);
    assert_int_equal(tw_op_run_output_dtype(run, 0), TW_FLOAT32);
    assert_int_equal(tw_op_run_output_dtype(run, 1), TW_INVALID_DTYPE);
    assert_false(tw_op_run_is_ending(run));
    tw_status status = tw_op_run_output(run, 0, x.shape, (void **)&y, wrong);
    for (int64_t i = 0; i < tw_shape_elements(x.shape) && status == TW_OK; i++)
        y[i] = from[i] * from[i] * from[i];
    return status;
}

static void cube_gradient(void *user, tw_graph *graph, tw_node *node, const tw_output *dy, tw_output *dx)
{
    tw_output x = tw_node_input(node, 0);
    (void)user;
    dx[0] = tw_mul(graph, dy[0], tw_mul(graph, tw_scalar(graph, 3), tw_mul(graph, x, x)));
}

/* Gives as many words as its input says. */
static tw_status compute_words(void *kernel, tw_op_run *run, tw_error *wrong)
{
    int32_t count = *(const int32_t *)tw_op_run_input(run, 0).data;
    void *words, *again;
    (void)kernel;
    assert_int_equal(tw_op_run_set_string(run, 0, 0, "early", 5), TW_INVALID_ARGUMENT);
    tw_status status = tw_op_run_output(run, 0, TW_SHAPE(count), &words, wrong);
    for (int i = 0; i < count && status == TW_OK; i++)
        status = tw_op_run_set_string(run, 0, i, "word", 4);
    if (status == TW_OK && tw_op_run_output(run, 0, TW_SHAPE(count), &again, wrong) == TW_OK)
        assert_ptr_equal(words, again);
    assert_int_equal(tw_op_run_set_string(run, 0, count, "behind", 6), TW_INVALID_ARGUMENT);
    assert_int_equal(tw_op_run_set_string(run, 1, 0, "none", 4), TW_INVALID_ARGUMENT);
    return status;
}

static tw_status wrong_shape(void *kernel, tw_op_run *run, tw_error *wrong)
{
    void *data;
    (void)kernel;
    assert_int_equal(tw_op_run_output(run, 1, TW_SCALAR, &data, wrong), TW_OUT_OF_RANGE);
    assert_int_equal(tw_op_run_output(run, 0, TW_UNKNOWN_SHAPE, &data, wrong), TW_INVALID_ARGUMENT);
    return tw_op_run_output(run, 0, TW_SHAPE(99), &data, wrong);
}

static tw_op_argument real_x = {.name = "x", .dtype = TW_FLOAT32}, real_y = {.name = "y", .dtype = TW_FLOAT32};
static tw_op_argument whole = {.name = "n", .dtype = TW_INT32}, text = {.name = "t", .dtype = TW_STRING};

static tw_status register_as(const char *name, tw_op_argument *x, tw_op_argument *y, tw_op_functions *functions)
{
    tw_op_info op = {.name = name, .inputs = x, .num_inputs = 1, .outputs = y, .num_outputs = 1};
    return tw_op_register(&op, functions, &error);
}

static int register_all(void **state)
{
    (void)state;
    assert_ok(register_as("TestCube", &real_x, &real_y,
                          TW_OPTIONS(tw_op_functions, .shape = same_shape, .create = create_cube,
                                     .compute = compute_cube, .destroy = destroy_cube, .gradient = cube_gradient)));
    assert_ok(register_as("TestWords", &whole, &text, TW_OPTIONS(tw_op_functions, .compute = compute_words)));
    assert_ok(register_as("TestWrong", &real_x, &real_y,
                          TW_OPTIONS(tw_op_functions, .shape = same_shape, .compute = wrong_shape)));
    assert_ok(register_as("TestTower", &real_x, &real_y, TW_OPTIONS(tw_op_functions, .shape = many_dimensions)));
    assert_ok(register_as("TestNever", &real_x, &real_y, TW_OPTIONS(tw_op_functions, .shape = same_shape)));
    return 0;
}

static tw_output node_of(tw_graph *g, const char *op, tw_output x)
{
    return tw_node_output(tw_add_node(g, op, NULL, &x, 1, NULL, 0), 0);
}

/* The output for one number, on a virtual GPU's session: such nodes are the host's. Destroys the graph. */
static tw_tensor *run_once(tw_graph *g, tw_output x, tw_tensor *value, tw_output y)
{
    tw_devices *devices = NULL;
    tw_session *session = NULL;
    tw_tensor *result = NULL;
    tw_status status =
        tw_devices_create(TW_OPTIONS(tw_device_options, .virtual_gpus = 1, .no_gpus = true), &devices, &error);
    if (status == TW_OK)
        status = tw_session_create(g, TW_OPTIONS(tw_session_options, .devices = devices), &session, &error);
    if (status == TW_OK && value)
        tw_session_run(session, &(tw_feed){x, value}, 1, &y, 1, &result, &error);
    tw_tensor_release(value);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    return result;
}

static void they_run_and_have_gradients(void **state)
{
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SCALAR), y = node_of(g, "TestCube", x), dx;
    (void)state;
    tw_gradients(g, &y, 1, NULL, &x, 1, &dx);
    assert_int_equal(tw_graph_status(g), TW_OK);
    made = destroyed = 0;
    tw_tensor *result = run_once(g, x, tw_tensor_float(2), tw_add(g, dx, y));
    assert_non_null(result);
    assert_float_equal(tw_tensor_value(result, 0), 3 * 4 + 8, 0);
    tw_tensor_release(result);
    assert_int_equal(made, 1);
    assert_int_equal(destroyed, 1);
}

static void they_make_texts_of_any_number(void **state)
{
    tw_graph *g = tw_graph_create();
    tw_output n = tw_placeholder(g, TW_INT32, TW_SCALAR);
    (void)state;
    tw_tensor *words = run_once(g, n, tw_tensor_int32(3), node_of(g, "TestWords", n));
    assert_non_null(words);
    assert_int_equal(tw_tensor_elements(words), 3);
    assert_string_equal(((tw_string *)tw_tensor_data(words))[2].data, "word");
    tw_tensor_release(words);
}

static void what_is_wrong_is_said(void **state)
{
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(2));
    (void)state;
    assert_null(run_once(g, x, tw_tensor_create(TW_FLOAT32, TW_SHAPE(2)), node_of(g, "TestWrong", x)));
    assert_message(error.message, "output 0 has shape [99], expected [2]");
    g = tw_graph_create();
    x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(2));
    assert_null(run_once(g, x, tw_tensor_create(TW_FLOAT32, TW_SHAPE(2)), node_of(g, "TestNever", x)));
    assert_message(error.message, "it was registered without one");
    g = tw_graph_create();
    node_of(g, "TestTower", tw_placeholder(g, TW_FLOAT32, TW_SCALAR));
    assert_message(tw_graph_message(g), "its output 0 has 13 dimensions, the most are 12");
    tw_graph_destroy(g);

    tw_op_argument bad[] = {{.name = "x", .type_attr = "T"}, {.name = "", .dtype = TW_FLOAT32}, {.name = "x"}};
    const char *const words[] = {"no attribute that is a type", "no name of an input",
                                 "one thing says the type of 'x'"};
    for (int i = 0; i < 3; i++)
        assert_fails(register_as("TestBad", &bad[i], &real_y, &(tw_op_functions){0}), TW_INVALID_ARGUMENT, words[i]);
    tw_op_argument many[65];
    for (int i = 0; i < 65; i++)
        many[i] = real_x;
    tw_op_info op = {.name = "TestBad", .inputs = many, .num_inputs = 65};
    assert_fails(tw_op_register(&op, &(tw_op_functions){0}, &error), TW_INVALID_ARGUMENT,
                 "at most 64 can be told apart");
    op.num_inputs = -1;
    assert_fails(tw_op_register(&op, &(tw_op_functions){0}, &error), TW_INVALID_ARGUMENT, "shorter than nothing");
    assert_fails(register_as("TestCube", &real_x, &real_y, &(tw_op_functions){0}), TW_ALREADY_EXISTS,
                 "'TestCube' already");
    assert_fails(register_as("TestBad", &real_x, &real_y, &(tw_op_functions){.size = 3}), TW_INVALID_ARGUMENT,
                 "tw_op_functions.size is 3");
}

static void memory_that_fails_leaves_nothing_behind(void **state)
{
    char name[32] = "";
    bool failed = true;
    (void)state;
    for (int n = 0; failed; n++) {
        snprintf(name, sizeof name, "TestFailing%d", n);
        fail_allocation(n);
        tw_status status = register_as(name, &real_x, &real_y, &(tw_op_functions){.compute = compute_cube});
        failed = stop_failing_allocations();
        assert_true(failed ? status == TW_RESOURCE_EXHAUSTED : status == TW_OK);
        assert_true(!failed || memory.live <= 2); /* the list of ops may have grown */
    }
    failed = true;
    made = destroyed = 0;
    for (int n = 0; failed && n < 2000; n += 3) {
        fail_allocation(n);
        tw_graph *g = tw_graph_create();
        tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SCALAR);
        tw_tensor *result = run_once(g, x, tw_tensor_float(2), node_of(g, "TestCube", x));
        tw_tensor_release(result);
        failed = stop_failing_allocations();
        assert_int_equal(memory.live, 0);
    }
    assert_int_equal(made, destroyed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_run_and_have_gradients),
        cmocka_unit_test(they_make_texts_of_any_number),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(memory_that_fails_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, register_all, NULL);
}
