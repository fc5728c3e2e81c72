// A C++ program: every header, every documented macro, and what the examples write.
#include "every_header.h" // made by CMakeLists.txt

#include <cstdio>
#include <cstring>

static int failures;

static void check(bool holds, const char *what)
{
    if (!holds)
        std::printf("%s\n", what);
    failures += !holds;
}

static tw_output layers(tw_graph *g, tw_output x)
{
    x = tw_max_pool(g, x, TW_OPTIONS(tw_pool_options, .window[0] = 2, .padding = TW_PADDING_VALID));
    x = tw_conv2d_layer(g, "conv", x, 2, 1, TW_OPTIONS(tw_conv2d_options, .stride[0] = 1),
                        TW_OPTIONS(tw_layer_options, .activation = tw_relu, .no_biases = true));
    tw_initializer tenth = TW_VALUE(tw_initializer, TW_INIT_CONSTANT, 0.1f, 0, 0);
    return tw_dense_layer(g, "dense", tw_flatten(g, x), 2, TW_OPTIONS(tw_layer_options, .weights = &tenth));
}

static tw_graph *build(tw_output *loss, tw_output *train, tw_output *x)
{
    tw_graph *g = tw_graph_create();
    tw_output on_device = TW_VALUE(tw_output, NULL, 0);
    int towers = 2;
    *x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(towers, 4, 4, 1));
    TW_DEVICE(g, "/cpu:%d", 0)
    TW_NAME_SCOPE(g, "tower_%d", 0)
    TW_VARIABLE_SCOPE(g, "net")
    {
        tw_output y = layers(g, *x);
        *loss = tw_reduce_mean(g, tw_square(g, y), TW_AXES(0, 1), false);
        TW_CONTROL(g, y)
        TW_COLOCATE(g, y)
            on_device = tw_identity(tw_name(g, "here_%d", 1), y);
    }
    check(std::strcmp(tw_node_name(on_device.node), "tower_0/net/here_1") == 0, "a name in nested scopes");
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.1f));
    *train = tw_apply_gradients(sgd, tw_compute_gradients(sgd, *loss), tw_global_step(g));
    tw_output ones = tw_constant_floats(g, TW_SHAPE(3), TW_ARRAY(float, 1, 1, 1));
    tw_group(g, TW_LIST(tw_output, ones, *train));
    check(tw_shape_equal(tw_output_shape(*loss), TW_SCALAR), "a scalar");
    check(!tw_shape_is_known(TW_UNKNOWN_SHAPE), "an unknown shape");
    return g;
}

static void left_by_an_exception(tw_graph *g)
{
    TW_DEVICE(g, "/cpu:0")
        throw 1;
}

static void a_scope_that_an_exception_leaves_is_closed_and_named()
{
    tw_graph *g = tw_graph_create();
    try {
        left_by_an_exception(g);
    } catch (int) {
    }
    check(std::strstr(tw_graph_message(g), "TW_DEVICE(\"/device:CPU:0\")") != NULL, tw_graph_message(g));
    tw_graph_destroy(g);
}

static void a_network_is_trained()
{
    tw_error error = TW_NO_ERROR;
    tw_devices *devices = NULL;
    tw_session *session = NULL;
    tw_tensor *results[2] = {NULL, NULL};
    tw_output loss, train, x;
    tw_graph *g = build(&loss, &train, &x);
    tw_tensor *values = tw_tensor_create(TW_FLOAT32, TW_SHAPE(2, 4, 4, 1));
    check(tw_graph_status(g) == TW_OK, tw_graph_message(g));
    check(tw_devices_create(TW_OPTIONS(tw_device_options, .cpu_threads = 1, .no_gpus = true), &devices, &error) ==
              TW_OK,
          error.message);
    tw_session_options options = TW_SIZED(tw_session_options);
    options.devices = devices;
    check(tw_session_create(g, &options, &session, &error) == TW_OK, error.message);
    check(tw_session_repeat(session, tw_initialize_variables(g), 1, &error) == TW_OK, error.message);
    check(tw_session_run(session, TW_LIST(tw_feed, {x, values}), TW_LIST(tw_output, loss, train), results, &error) ==
              TW_OK,
          error.message);
    check(results[0] && tw_tensor_value(results[0], 0) == 0, "the loss of zeros");
    check(std::strcmp(tw_devices_info(devices, 0).type, "CPU") == 0, "a device");
    tw_tensor_release(results[0]);
    tw_tensor_release(values);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

int main()
{
    a_network_is_trained();
    a_scope_that_an_exception_leaves_is_closed_and_named();
    return failures != 0;
}
