/* Neural-network ops: TensorFlow's numbers, in all float types; shapes; refusals; gradients; layers. */
#include "op_testing.h"

#include <tower/nn.h>

/* ---- numbers ----------------------------------------------------------------------------------------------- */

static void neural_network_ops_give_the_numbers_of_tensorflow(void **state)
{
    (void)state;
    twt_run_golden("ops_nn.txt");
}

static tw_tensor *as_type(tw_tensor *tensor, tw_dtype dtype)
{
    tw_tensor *to = tw_tensor_create(dtype, tensor->shape);
    char text[64];
    assert_non_null(to);
    for (int64_t i = 0; i < tensor->elements; i++) {
        snprintf(text, sizeof text, "%.9g", tw_tensor_value(tensor, i));
        twt_read_value(to, i, text);
    }
    return to;
}

/* Turns the case's float tensors whose type is attribute T to dtype. False if the op does not take it. */
static bool turn_case(twt_case *c, tw_dtype dtype)
{
    uint64_t types = 0;
    bool any = false;
    if (!c->op.op || c->failure)
        return false;
    const twi_signature *s = twi_op_signature(twi_op_find(c->op.op));
    assert_non_null(s);
    for (int i = 0; i < s->num_attrs; i++)
        types |= strcmp(s->attrs[i].name, "T") ? 0 : s->attrs[i].allowed_types;
    for (int i = 0; i < s->num_inputs + s->num_outputs; i++) {
        const twi_argument *argument = i < s->num_inputs ? &s->inputs[i] : &s->outputs[i - s->num_inputs];
        tw_tensor **tensor = i < s->num_inputs ? &c->op.inputs[i] : &c->expected[i - s->num_inputs];
        if (!argument->type_attr || strcmp(argument->type_attr, "T") || !*tensor || (*tensor)->dtype != TW_FLOAT32)
            continue;
        any = true;
        tw_tensor *converted = as_type(*tensor, dtype);
        tw_tensor_release(*tensor);
        *tensor = converted;
    }
    return any && types >> dtype & 1;
}

/* Results are rounded once, but some inputs are results that were rounded before. */
static void check_type(tw_dtype dtype, double tolerance)
{
    char path[512], *text;
    size_t size;
    int converted = 0;
    tw_error error = {0};
    twt_case c = {.file = "ops_nn.txt"};
    snprintf(path, sizeof path, "%s/ops_nn.txt", GOLDEN_DIR);
    assert_ok(twi_file_read(path, (size_t)1 << 24, &text, &size, &error));
    for (char *at = text, *end; *at; at = end) {
        end = at + strcspn(at, "\n");
        if (*end)
            *end++ = 0;
        c.line++;
        if (!strncmp(at, "case ", 5))
            c.op.op = twi_arena_strdup(&c.arena, at + 5);
        else if (*at != '#')
            twt_read_line(&c, at);
        if (*end && strncmp(end, "case ", 5) != 0)
            continue;
        c.tolerance = tolerance;
        if (turn_case(&c, dtype)) {
            twt_run_case(&c, true);
            converted++;
        }
        c.op.op = NULL;
        twt_finish_case(&c, twt_run_both);
    }
    twi_free(text);
    assert_true(converted > 100);
}

static void double_gives_the_same_numbers(void **state)
{
    (void)state;
    check_type(TW_FLOAT64, 1e-5);
}

static void half_gives_the_same_numbers_rounded(void **state)
{
    (void)state;
    check_type(TW_FLOAT16, 5e-3);
}

static void bfloat16_gives_the_same_numbers_rounded(void **state)
{
    (void)state;
    check_type(TW_BFLOAT16, 4e-2);
}

/* ---- shapes ------------------------------------------------------------------------------------------------ */

static tw_output input(tw_graph *g, tw_shape shape)
{
    return tw_placeholder(g, TW_FLOAT32, shape);
}

#define assert_shape(output, ...) assert_true(tw_shape_equal(tw_output_shape(output), TW_SHAPE(__VA_ARGS__)))

static void shapes_are_known_as_far_as_the_inputs_are(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = input(g, TW_SHAPE(-1, 24, 24, 3)), filter = input(g, TW_SHAPE(5, 5, 3, 64));
    tw_output y = tw_conv2d(g, x, filter, NULL);
    assert_shape(y, -1, 24, 24, 64);
    assert_shape(tw_conv2d(g, x, filter, &(tw_conv2d_options){.stride = {2, 3}, .padding = TW_PADDING_VALID}), -1, 10,
                 7, 64);
    assert_shape(tw_conv2d(g, x, filter,
                           &(tw_conv2d_options){.padding = TW_PADDING_EXPLICIT, .explicit_padding = {1, 2, 3, 4}}),
                 -1, 23, 27, 64);
    assert_shape(tw_conv2d(g, y, input(g, TW_SHAPE(3, 3, 16, 12)), NULL), -1, 24, 24, 12); /* 4 groups */
    tw_output any = input(g, TW_SHAPE(-1, -1, -1, -1)), dx, grouped = tw_conv2d(g, any, filter, NULL);
    assert_shape(grouped, -1, -1, -1, 64);
    tw_gradients(g, &grouped, 1, NULL, &any, 1, &dx);
    assert_shape(dx, -1, -1, -1, -1); /* not 3: the image may have 6 */
    assert_shape(tw_depthwise_conv2d(g, x, input(g, TW_SHAPE(3, 3, 3, 2)), NULL), -1, 24, 24, 6);
    assert_shape(tw_max_pool(g, y, &(tw_pool_options){.window = {3}, .stride = {2}}), -1, 12, 12, 64);
    assert_shape(tw_avg_pool(g, y, &(tw_pool_options){.window = {3, 4}, .padding = TW_PADDING_VALID}), -1, 8, 6, 64);
    assert_shape(tw_bias_add(g, tw_placeholder(g, TW_FLOAT32, TW_SHAPE(-1, -1)), input(g, TW_SHAPE(7))), -1, 7);
    assert_shape(tw_lrn(g, y, 4, 1, 0.001f / 9, 0.75f), -1, 24, 24, 64);
    tw_output logits = input(g, TW_SHAPE(-1, 10));
    assert_shape(tw_sparse_softmax_cross_entropy(g, logits, tw_placeholder(g, TW_INT64, TW_SHAPE(128))), 128);
    assert_shape(tw_softmax_cross_entropy(g, logits, input(g, TW_SHAPE(128, 10))), 128);
    assert_shape(tw_in_top_k(g, logits, tw_placeholder(g, TW_INT64, TW_UNKNOWN_SHAPE), 1), -1);
    assert_shape(tw_flatten(g, y), -1, 24 * 24 * 64);
    assert_string_equal(tw_graph_message(g), "");
    tw_graph_destroy(g);
}

static void shapes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const char *const messages[] = {
        "Conv2D 'Conv2D': image [8,5,5,3] has 3 channels, filter [3,3,4,8] takes 4",
        "Conv2D 'Conv2D': images must be [N,H,W,C], got shape [8,5]",
        "BiasAdd 'BiasAdd': value [8,5,5,3] has 3 channels, the bias has shape [4]",
        "MaxPool 'MaxPool': attribute 'ksize' must be positive",
        "AvgPool 'AvgPool': window of height 7 (dilation 1) does not fit image of height 5 with padding VALID",
        "LRN 'LRN': inputs must be images of one shape [N,H,W,C]; input 0 has shape [8,5]",
        "SparseSoftmaxCrossEntropyWithLogits 'SparseSoftmaxCrossEntropyWithLogits': logits must be [N,C] and labels "
        "[N], got [8,5] and [9]",
        "SoftmaxCrossEntropyWithLogits 'SoftmaxCrossEntropyWithLogits': logits and labels must be [N,C]",
        "input 1 must have one entry a channel, shape [3], got [4]",
        "AvgPool 'AvgPool': has no attribute 'explicit_paddings'",
        "Conv2D 'Conv2D': the 8 filters of [3,3,1,8] cannot be divided among 3 groups of the channels of image "
        "[8,5,5,3]",
        "Conv2D 'Conv2D': image [8,5,5,3] has 3 channels, filter [3,3,2,6] takes 2",
        "Conv2D 'Conv2D': image [8,5,5,3] has 3 channels, filter [3,3,0,6] takes 0",
        "DepthwiseConv2dNative 'DepthwiseConv2dNative': image [8,5,5,3] has 3 channels, filter [3,3,1,3] takes 1",
    };
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        tw_graph *g = tw_graph_create();
        tw_output x = input(g, TW_SHAPE(8, 5, 5, 3)), matrix = input(g, TW_SHAPE(8, 5)), four = input(g, TW_SHAPE(4));
        switch (i) {
        case 0:
            tw_conv2d(g, x, input(g, TW_SHAPE(3, 3, 4, 8)), NULL);
            break;
        case 1:
            tw_conv2d(g, matrix, input(g, TW_SHAPE(3, 3, 4, 8)), NULL);
            break;
        case 2:
            tw_bias_add(g, x, four);
            break;
        case 3:
            tw_max_pool(g, x, &(tw_pool_options){.stride = {2}});
            break;
        case 4:
            tw_avg_pool(g, x, &(tw_pool_options){.window = {7}, .stride = {1}, .padding = TW_PADDING_VALID});
            break;
        case 5:
            tw_lrn(g, matrix, 4, 1, 1, 1);
            break;
        case 6:
            tw_sparse_softmax_cross_entropy(g, matrix, tw_placeholder(g, TW_INT64, TW_SHAPE(9)));
            break;
        case 7:
            tw_softmax_cross_entropy(g, matrix, four);
            break;
        case 8:
            tw_fused_batch_norm(g, x, four, four, four, four, 0.001f, true);
            break;
        case 9:
            tw_avg_pool(g, x, &(tw_pool_options){.window = {2}, .padding = TW_PADDING_EXPLICIT});
            break;
        case 10:
            tw_conv2d(g, x, input(g, TW_SHAPE(3, 3, 1, 8)), NULL);
            break;
        case 11:
            tw_conv2d(g, x, input(g, TW_SHAPE(3, 3, 2, 6)), NULL);
            break;
        case 12:
            tw_conv2d(g, x, input(g, TW_SHAPE(3, 3, 0, 6)), NULL);
            break;
        case 13:
            tw_depthwise_conv2d(g, x, input(g, TW_SHAPE(3, 3, 1, 3)), NULL);
            break;
        }
        assert_int_equal(tw_graph_status(g), TW_INVALID_ARGUMENT);
        assert_message(tw_graph_message(g), messages[i]);
        tw_graph_destroy(g);
    }
}

/* ---- refusals while running -------------------------------------------------------------------------------- */

static tw_tensor *zeros(tw_shape shape)
{
    return tw_tensor_create(TW_FLOAT32, shape);
}

static void a_label_out_of_range_is_named_with_all_labels(void **state)
{
    (void)state;
    tw_error error = {0};
    int32_t labels[] = {0, 2, 3, 1};
    twt_op op = {.op = "SparseSoftmaxCrossEntropyWithLogits", .num_inputs = 2, .plain = true,
                 .inputs = {zeros(TW_SHAPE(4, 3)), tw_tensor_from(TW_INT32, TW_SHAPE(4), labels)}};
    assert_fails(twt_op_run(&op, &error), TW_INVALID_ARGUMENT,
                 "Received a label value of 3 which is outside the valid range of [0, 3).  Label values: 0 2 3 1");
    ((int32_t *)op.inputs[1]->data)[2] = -1;
    assert_fails(twt_op_run(&op, &error), TW_INVALID_ARGUMENT, "Received a label value of -1");
    twt_op_release(&op);
}

static void channels_first_are_refused_on_the_cpu(void **state)
{
    (void)state;
    tw_error error = {0};
    int64_t ones[] = {1, 1, 1, 1};
    twt_op conv = {.op = "Conv2D", .num_inputs = 2, .num_attrs = 3,
                   .inputs = {zeros(TW_SHAPE(1, 2, 4, 4)), zeros(TW_SHAPE(3, 3, 2, 1))},
                   .attrs = {tw_attr_ints("strides", ones, 4), tw_attr_string("padding", "SAME"),
                             tw_attr_string("data_format", "NCHW")}};
    assert_fails(twt_op_run(&conv, &error), TW_UNIMPLEMENTED,
                 "The Conv2D op currently only supports the NHWC tensor format on the CPU. The op was given the "
                 "format: NCHW");
    twt_op_release(&conv);
    twt_op pool = {.op = "MaxPool", .num_inputs = 1, .num_attrs = 4, .inputs = {zeros(TW_SHAPE(1, 2, 4, 4))},
                   .attrs = {tw_attr_ints("ksize", ones, 4), tw_attr_ints("strides", ones, 4),
                             tw_attr_string("padding", "SAME"), tw_attr_string("data_format", "NCHW")}};
    assert_fails(twt_op_run(&pool, &error), TW_UNIMPLEMENTED, "only supports NHWC on device type CPU");
    twt_op_release(&pool);
}

static void shapes_of_a_gradient_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    int64_t ones[] = {1, 1, 1, 1};
    int32_t sizes[] = {1, 6, 6, 2};
    twt_op op = {.op = "Conv2DBackpropInput", .num_inputs = 3, .num_attrs = 2,
                 .inputs = {tw_tensor_from(TW_INT32, TW_SHAPE(4), sizes), zeros(TW_SHAPE(3, 3, 2, 1)),
                            zeros(TW_SHAPE(1, 5, 5, 1))},
                 .attrs = {tw_attr_ints("strides", ones, 4), tw_attr_string("padding", "SAME")}};
    assert_fails(twt_op_run(&op, &error), TW_INVALID_ARGUMENT, "but the output has shape [1,5,5,1]");
    twt_op_release(&op);
}

/* ---- gradients --------------------------------------------------------------------------------------------- */

static void gradients_have_the_shapes_of_their_inputs(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = input(g, TW_SHAPE(8, 9, 9, 3)), filter = input(g, TW_SHAPE(5, 5, 3, 6)), bias = input(g, TW_SHAPE(6));
    tw_output labels = tw_placeholder(g, TW_INT64, TW_SHAPE(8));
    tw_output y = tw_relu(g, tw_bias_add(g, tw_conv2d(g, x, filter, NULL), bias));
    y = tw_lrn(g, tw_max_pool(g, y, &(tw_pool_options){.window = {3}, .stride = {2}}), 4, 1, 0.001f / 9, 0.75f);
    y = tw_avg_pool(g, y, &(tw_pool_options){.window = {5}});
    tw_output loss = tw_sparse_softmax_cross_entropy(g, tw_flatten(g, y), labels);
    tw_output xs[] = {x, filter, bias}, grads[3];
    tw_gradients(g, &loss, 1, NULL, xs, 3, grads);
    assert_string_equal(tw_graph_message(g), "");
    assert_shape(grads[0], 8, 9, 9, 3);
    assert_shape(grads[1], 5, 5, 3, 6);
    assert_shape(grads[2], 6);
    assert_string_equal(tw_node_op(grads[0].node), "Conv2DBackpropInput");
    assert_string_equal(tw_node_op(grads[1].node), "Conv2DBackpropFilter");
    assert_string_equal(tw_node_op(grads[2].node), "BiasAddGrad");
    tw_graph_destroy(g);
}

static void gradients_carry_the_attributes_of_their_op(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = input(g, TW_SHAPE(1, 9, 9, 3)), filter = input(g, TW_SHAPE(3, 3, 3, 6)), grads[1];
    tw_output y = tw_conv2d(g, x, filter,
                            &(tw_conv2d_options){.stride = {2, 1}, .dilation = {2}, .padding = TW_PADDING_EXPLICIT,
                                                 .explicit_padding = {1, 0, 2, 3}});
    tw_gradients(g, &y, 1, NULL, &x, 1, grads);
    assert_string_equal(tw_graph_message(g), "");
    const char *const names[] = {"strides", "dilations", "padding", "explicit_paddings", "data_format"};
    for (int i = 0; i < 5; i++)
        assert_true(twi_attr_equal(tw_node_attr(y.node, names[i]), tw_node_attr(grads[0].node, names[i])));
    tw_graph_destroy(g);
}

static void batch_norm_differentiates_by_batch_or_by_given_moments(void **state)
{
    (void)state;
    for (int training = 0; training < 2; training++) {
        tw_graph *g = tw_graph_create();
        tw_output x = input(g, TW_SHAPE(8, 3, 3, 2)), vector = input(g, TW_SHAPE(2)), grads[1];
        tw_batch_norm norm = tw_fused_batch_norm(g, x, vector, vector, vector, vector, 0.001f, training);
        assert_shape(norm.variance, 2);
        tw_gradients(g, &norm.y, 1, NULL, &x, 1, grads);
        assert_string_equal(tw_graph_message(g), "");
        assert_string_equal(tw_node_op(grads[0].node), "FusedBatchNormGradV3");
        tw_node *mean = tw_node_input(grads[0].node, 3).node;
        assert_ptr_equal(mean, training ? norm.y.node : vector.node);
        tw_graph_destroy(g);
    }
}

static void a_sparse_cross_entropy_refuses_second_derivatives(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = input(g, TW_SHAPE(2, 3)), labels = tw_placeholder(g, TW_INT32, TW_SHAPE(2)), first, second;
    tw_output loss = tw_sparse_softmax_cross_entropy(g, x, labels);
    tw_gradients(g, &loss, 1, NULL, &x, 1, &first);
    assert_string_equal(tw_graph_message(g), "");
    tw_gradients(g, &first, 1, NULL, &x, 1, &second);
    assert_true(tw_graph_status(g) != TW_OK);
    assert_message(tw_graph_message(g), "PreventGradient");
    tw_graph_destroy(g);
}

/* ---- layers ------------------------------------------------------------------------------------------------ */

static void layers_name_and_share_their_variables(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = input(g, TW_SHAPE(8, 6, 6, 3)), y[2];
    for (int i = 0; i < 2; i++)
        TW_NAME_SCOPE(g, "tower_%d", i) {
            y[i] = tw_conv2d_layer(g, "conv1", x, 4, 3, NULL, &(tw_layer_options){.activation = tw_relu});
            y[i] = tw_batch_norm_layer(g, "norm1", y[i], 0.9f, 0.001f, true);
            y[i] = tw_dense_layer(g, "fc", tw_flatten(g, y[i]), 10, NULL);
            tw_reuse_variables(g);
        }
    assert_string_equal(tw_graph_message(g), "");
    assert_shape(y[1], 8, 10);
    const char *const names[] = {"conv1/kernel", "conv1/bias",        "norm1/gamma",           "norm1/beta",
                                 "norm1/moving_mean", "norm1/moving_variance", "fc/kernel", "fc/bias"};
    assert_int_equal(tw_graph_num_variables(g), 8);
    for (int i = 0; i < 8; i++)
        assert_non_null(tw_graph_find_variable(g, names[i]));
    assert_true(tw_shape_equal(tw_graph_find_variable(g, "fc/kernel")->shape, TW_SHAPE(144, 10)));
    assert_false(tw_graph_find_variable(g, "norm1/moving_mean")->trainable);
    assert_int_equal(tw_get_collection(g, "update_ops", "tower_0", NULL, 0), 2);
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neural_network_ops_give_the_numbers_of_tensorflow),
        cmocka_unit_test(double_gives_the_same_numbers),
        cmocka_unit_test(half_gives_the_same_numbers_rounded),
        cmocka_unit_test(bfloat16_gives_the_same_numbers_rounded),
        cmocka_unit_test(shapes_are_known_as_far_as_the_inputs_are),
        cmocka_unit_test(shapes_that_do_not_fit_are_refused),
        cmocka_unit_test(a_label_out_of_range_is_named_with_all_labels),
        cmocka_unit_test(channels_first_are_refused_on_the_cpu),
        cmocka_unit_test(shapes_of_a_gradient_that_contradict_each_other_are_refused),
        cmocka_unit_test(gradients_have_the_shapes_of_their_inputs),
        cmocka_unit_test(gradients_carry_the_attributes_of_their_op),
        cmocka_unit_test(batch_norm_differentiates_by_batch_or_by_given_moments),
        cmocka_unit_test(a_sparse_cross_entropy_refuses_second_derivatives),
        cmocka_unit_test(layers_name_and_share_their_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
