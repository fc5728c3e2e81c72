/* Layers: their variables, what they compute, what they leave for the training step. */
#include "testing.h"

#include <tower/nn.h>
#include <tower/session.h>

static tw_session *start(tw_graph *g)
{
    tw_error error = {0};
    tw_session *session;
    tw_output initialize = tw_initialize_variables(g);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, NULL, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &initialize, 1, NULL, &error));
    return session;
}

static void set(tw_session *session, const tw_graph *g, const char *name, const float *values)
{
    tw_error error = {0};
    tw_variable *variable = tw_graph_find_variable(g, name);
    assert_non_null(variable);
    tw_tensor *tensor = tw_tensor_from(TW_FLOAT32, variable->shape, values);
    assert_ok(tw_session_set_variable(session, variable, tensor, &error));
    tw_tensor_release(tensor);
}

static void expect_variable(tw_session *session, const tw_graph *g, const char *name, const float *values)
{
    tw_error error = {0};
    tw_tensor *tensor = NULL;
    assert_ok(tw_session_get_variable(session, tw_graph_find_variable(g, name), &tensor, &error));
    assert_floats_near(tw_tensor_data(tensor), values, (size_t)tw_tensor_elements(tensor), 1e-6);
    tw_tensor_release(tensor);
}

static void expect(tw_session *session, tw_output output, const float *values)
{
    tw_error error = {0};
    tw_tensor *tensor = NULL;
    assert_ok(tw_session_run(session, NULL, 0, &output, 1, &tensor, &error));
    assert_floats_near(tw_tensor_data(tensor), values, (size_t)tw_tensor_elements(tensor), 1e-6);
    tw_tensor_release(tensor);
}

static void a_dense_layer_multiplies_adds_and_activates(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_constant_floats(g, TW_SHAPE(2, 2), (float[]){1, 2, -3, 4});
    tw_output y = tw_dense_layer(g, "fc", x, 3, &(tw_layer_options){.activation = tw_relu});
    tw_session *session = start(g);
    set(session, g, "fc/kernel", (float[]){1, 0, -1, 2, 1, 0.5f});
    set(session, g, "fc/bias", (float[]){0.5f, -8, 0});
    expect(session, y, (float[]){5.5f, 0, 0, 5.5f, 0, 5});
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static void a_layer_may_go_without_biases(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_constant_floats(g, TW_SHAPE(1, 2, 2, 1), (float[]){1, 2, 3, 4});
    tw_initializer twos = {.a = 2};
    tw_output y = tw_conv2d_layer(g, "conv", x, 1, 2, &(tw_conv2d_options){.padding = TW_PADDING_VALID},
                                  &(tw_layer_options){.no_biases = true, .weights = &twos});
    assert_int_equal(tw_graph_num_variables(g), 1);
    tw_session *session = start(g);
    expect(session, y, (float[]){20});
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static void a_batch_norm_layer_moves_its_averages_only_when_asked(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output x = tw_constant_floats(g, TW_SHAPE(4, 1, 1, 1), (float[]){1, 3, 5, 7}); /* mean 4, variance 5 or 20/3 */
    tw_output train = tw_batch_norm_layer(g, "norm", x, 0.75f, 0, true);
    tw_reuse_variables(g);
    tw_output test = tw_batch_norm_layer(g, "norm", x, 0.75f, 0, false);
    tw_output updates[2];
    assert_int_equal(tw_get_collection(g, "update_ops", NULL, updates, 2), 2);
    tw_session *session = start(g);
    float root = sqrtf(5);
    expect(session, train, (float[]){-3 / root, -1 / root, 1 / root, 3 / root});
    expect_variable(session, g, "norm/moving_mean", (float[]){0});
    expect(session, test, (float[]){1, 3, 5, 7});
    assert_ok(tw_session_run(session, NULL, 0, updates, 2, NULL, &error));
    expect_variable(session, g, "norm/moving_mean", (float[]){1});
    expect_variable(session, g, "norm/moving_variance", (float[]){0.75f + 5 / 3.0f});
    set(session, g, "norm/moving_mean", (float[]){5});
    set(session, g, "norm/moving_variance", (float[]){4});
    set(session, g, "norm/gamma", (float[]){2});
    set(session, g, "norm/beta", (float[]){1});
    expect(session, test, (float[]){-3, -1, 1, 3});
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static void a_batch_norm_layer_may_go_without_a_scale(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_constant_floats(g, TW_SHAPE(4, 1, 1, 1), (float[]){1, 3, 5, 7});
    tw_output y = tw_unscaled_batch_norm_layer(g, "norm", x, 0.75f, 0, true);
    assert_null(tw_graph_find_variable(g, "norm/gamma"));
    assert_int_equal(tw_graph_num_variables(g), 3);
    tw_session *session = start(g);
    float root = sqrtf(5);
    set(session, g, "norm/beta", (float[]){2});
    expect(session, y, (float[]){2 - 3 / root, 2 - 1 / root, 2 + 1 / root, 2 + 3 / root});
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* x * Phi(x); the gradient at x is Phi(x) + x * phi(x). */
static void gelu_is_x_times_the_part_of_a_normal_below_it(void **state)
{
    (void)state;
    enum { COUNT = 7 };
    static const float values[COUNT] = {-6, -2, -0.5f, 0, 0.25f, 1, 5};
    float expected[COUNT], slopes[COUNT];
    for (int i = 0; i < COUNT; i++) {
        double x = values[i], below = erfc(-x / sqrt(2)) / 2;
        expected[i] = (float)(x * below);
        slopes[i] = (float)(below + x * exp(-x * x / 2) / sqrt(2 * acos(-1)));
    }
    tw_graph *g = tw_graph_create();
    tw_output x = tw_constant_floats(g, TW_SHAPE(COUNT), values), slope, y = tw_gelu(g, x);
    tw_gradients(g, &y, 1, NULL, &x, 1, &slope);
    tw_session *session = start(g);
    expect(session, y, expected);
    expect(session, slope, slopes);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* That of the probabilities 0.05, 0.85, 0.05, 0.05, with its gradient: softmax less these. */
static void smoothed_labels_leave_a_part_to_every_class(void **state)
{
    (void)state;
    static const float values[] = {1, -2, 0.5f, 3};
    float slopes[4], sum = 0, loss = 0;
    for (int i = 0; i < 4; i++)
        sum += expf(values[i]);
    for (int i = 0; i < 4; i++) {
        float wanted = i == 1 ? 0.85f : 0.05f;
        loss -= wanted * (values[i] - logf(sum));
        slopes[i] = expf(values[i]) / sum - wanted;
    }
    tw_graph *g = tw_graph_create();
    tw_output labels = tw_constant_int32s(g, TW_SHAPE(1), (int32_t[]){1});
    tw_output logits = tw_constant_floats(g, TW_SHAPE(1, 4), values), slope;
    tw_output losses = tw_smoothed_softmax_cross_entropy(g, logits, labels, 0.2f);
    tw_gradients(g, &losses, 1, NULL, &logits, 1, &slope);
    tw_session *session = start(g);
    expect(session, losses, &loss);
    expect(session, slope, slopes);
    tw_session_destroy(session);
    tw_smoothed_softmax_cross_entropy(g, logits, labels, 1.5f);
    assert_non_null(strstr(tw_graph_message(g), "labels smoothed by 1.5, expected 0 to 1"));
    tw_graph_destroy(g);
}

/* Patches of noise, filtered, have the unit matrix for a covariance; the second half are the first with the other sign.
 */
static void whitening_filters_make_patches_uncorrelated(void **state)
{
    (void)state;
    enum { N = 6, SIDE = 9, C = 2, D = 2 * 2 * C, ROWS = N * 8 * 8 };
    static float pixels[N * SIDE * SIDE * C];
    tw_error error = {0};
    for (int i = 0; i < N * SIDE * SIDE * C; i++)
        pixels[i] = (float)(i * 7919 % 1009) / 500 + (float)(i % 2) * (i / 2 % 5 == 0);
    tw_graph *g = tw_graph_create();
    tw_output images = tw_constant_floats(g, TW_SHAPE(N, SIDE, SIDE, C), pixels);
    tw_output filters = tw_whitening_filters(g, images, 2, 0);
    assert_true(tw_shape_equal(tw_output_shape(filters), TW_SHAPE(2, 2, C, 2 * D)));
    tw_output y = tw_conv2d(g, images, filters, &(tw_conv2d_options){.padding = TW_PADDING_VALID});
    tw_session *session = start(g);
    tw_tensor *tensor = NULL;
    assert_ok(tw_session_run(session, NULL, 0, &y, 1, &tensor, &error));
    const float *rows = tw_tensor_data(tensor);
    for (int i = 0; i < D; i++)
        for (int k = 0; k < 2 * D; k++) {
            double sum = 0;
            for (int row = 0; row < ROWS; row++)
                sum += (double)rows[row * 2 * D + i] * rows[row * 2 * D + k];
            double expected = k % D == i ? k < D ? 1 : -1 : 0;
            assert_true(fabs(sum / ROWS - expected) < 1e-4);
        }
    tw_tensor_release(tensor);
    tw_session_destroy(session);
    tw_whitening_filters(g, images, 10, 0);
    assert_non_null(strstr(tw_graph_message(g), "whitening filters of 10 pixels"));
    tw_graph_destroy(g);
}

static void dropout_keeps_the_expected_value(void **state)
{
    (void)state;
    tw_error error = {0};
    enum { COUNT = 4000 };
    tw_graph *g = tw_graph_create();
    tw_output x = tw_ones(g, TW_FLOAT32, TW_SHAPE(COUNT));
    tw_output y = tw_dropout(g, x, 0.25f, 7), part = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(-1, 3));
    assert_true(tw_shape_equal(tw_output_shape(tw_dropout(g, part, 0.25f, 7)), TW_SHAPE(-1, 3)));
    assert_ptr_equal(tw_dropout(g, x, 0, 7).node, x.node);
    tw_session *session = start(g);
    tw_tensor *tensor = NULL;
    assert_ok(tw_session_run(session, NULL, 0, &y, 1, &tensor, &error));
    int kept = 0;
    for (int i = 0; i < COUNT; i++) {
        float value = ((float *)tw_tensor_data(tensor))[i];
        if (value != 0)
            assert_true(fabsf(value - 4.0f / 3) < 1e-6f);
        kept += value != 0;
    }
    assert_in_range(kept, 2880, 3120); /* 3000, give or take four standard deviations; the seed is fixed */
    tw_tensor_release(tensor);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static void a_layer_of_unknown_size_is_refused_by_name(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_dense_layer(g, "fc", tw_placeholder(g, TW_FLOAT32, TW_SHAPE(8, -1)), 3, NULL);
    assert_message(tw_graph_message(g), "variable 'fc/kernel': its shape [?,3] must be fully known");
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dense_layer_multiplies_adds_and_activates),
        cmocka_unit_test(a_layer_may_go_without_biases),
        cmocka_unit_test(a_batch_norm_layer_moves_its_averages_only_when_asked),
        cmocka_unit_test(a_batch_norm_layer_may_go_without_a_scale),
        cmocka_unit_test(gelu_is_x_times_the_part_of_a_normal_below_it),
        cmocka_unit_test(smoothed_labels_leave_a_part_to_every_class),
        cmocka_unit_test(whitening_filters_make_patches_uncorrelated),
        cmocka_unit_test(dropout_keeps_the_expected_value),
        cmocka_unit_test(a_layer_of_unknown_size_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
