/* Gradients of neural-network ops against finite differences. */
#include "gradient_testing.h"

#include <tower/nn.h>

static void check(const twt_gradient_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        twt_check_gradients(&cases[i]);
}

#define CHECK(cases) check(cases, sizeof(cases) / sizeof *(cases))

/* ---- convolutions ------------------------------------------------------------------------------------------ */

static tw_output conv_same(tw_graph *g, const tw_output *x)
{
    return tw_conv2d(g, x[0], x[1], &(tw_conv2d_options){.stride = {2, 1}});
}

static tw_output conv_valid_dilated(tw_graph *g, const tw_output *x)
{
    return tw_conv2d(g, x[0], x[1], &(tw_conv2d_options){.padding = TW_PADDING_VALID, .dilation = {2, 1}});
}

static tw_output conv_explicit(tw_graph *g, const tw_output *x)
{
    return tw_conv2d(g, x[0], x[1],
                     &(tw_conv2d_options){.stride = {3}, .padding = TW_PADDING_EXPLICIT, .explicit_padding = {0, 2, 1, 1}});
}

static tw_output depthwise(tw_graph *g, const tw_output *x)
{
    return tw_depthwise_conv2d(g, x[0], x[1], &(tw_conv2d_options){.stride = {2}});
}

static tw_output conv_grouped(tw_graph *g, const tw_output *x)
{
    return tw_conv2d(g, x[0], x[1], &(tw_conv2d_options){.stride = {1, 2}, .dilation = {2, 1}});
}

static tw_output conv_bias_square(tw_graph *g, const tw_output *x)
{
    tw_output y = tw_bias_add(g, tw_conv2d(g, x[0], x[1], NULL), x[2]);
    return tw_mul(g, y, y);
}

static void convolutions(void **state)
{
    (void)state;
    static const twt_gradient_case cases[] = {
        {"conv, SAME", conv_same, {{4, {2, 5, 4, 2}}, {4, {3, 2, 2, 3}}}, 2, .twice = true},
        {"conv, VALID, dilated", conv_valid_dilated, {{4, {1, 6, 4, 2}}, {4, {3, 2, 2, 2}}}, 2, .twice = true},
        {"conv, EXPLICIT", conv_explicit, {{4, {1, 5, 6, 1}}, {4, {2, 3, 1, 2}}}, 2, .twice = true},
        {"depthwise conv", depthwise, {{4, {1, 5, 4, 2}}, {4, {3, 3, 2, 2}}}, 2, .twice = true},
        {"conv, in groups", conv_grouped, {{4, {1, 4, 3, 4}}, {4, {2, 2, 2, 6}}}, 2, .twice = true},
        {"conv, in unknown groups", conv_grouped, {{4, {1, 4, 3, 4}}, {4, {2, 2, 2, 6}}}, 2, .twice = true,
         .open = true},
        {"conv, as many groups as channels", conv_same, {{4, {1, 5, 4, 3}}, {4, {3, 2, 1, 3}}}, 2, .twice = true},
        {"conv, bias, square", conv_bias_square, {{4, {1, 3, 3, 1}}, {4, {2, 2, 1, 2}}, {1, {2}}}, 3, .twice = true},
    };
    CHECK(cases);
}

/* ---- activations ------------------------------------------------------------------------------------------- */

static tw_output relu(tw_graph *g, const tw_output *x)
{
    return tw_relu(g, tw_mul(g, x[0], x[0]));
}

static tw_output relu6(tw_graph *g, const tw_output *x)
{
    return tw_relu6(g, x[0]);
}

static tw_output leaky_relu(tw_graph *g, const tw_output *x)
{
    return tw_leaky_relu(g, x[0], 0.3f);
}

static tw_output elu(tw_graph *g, const tw_output *x)
{
    return tw_elu(g, x[0]);
}

static tw_output selu(tw_graph *g, const tw_output *x)
{
    return tw_selu(g, x[0]);
}

static tw_output softplus(tw_graph *g, const tw_output *x)
{
    return tw_softplus(g, x[0]);
}

static tw_output softsign(tw_graph *g, const tw_output *x)
{
    return tw_softsign(g, x[0]);
}

static void activations(void **state)
{
    (void)state;
    static const twt_gradient_case cases[] = {
        {"relu", relu, {{1, {9}}}, 1, .twice = true},
        {"relu6", relu6, {{1, {9}}}, 1, .low = -4, .high = 12, .twice = true},
        {"leaky relu", leaky_relu, {{1, {9}}}, 1, .twice = true},
        {"elu", elu, {{1, {9}}}, 1, .twice = true},
        {"selu", selu, {{1, {9}}}, 1, .twice = true},
        {"softplus", softplus, {{1, {9}}}, 1, .low = -3, .high = 3, .twice = true},
        {"softsign", softsign, {{1, {9}}}, 1},
    };
    CHECK(cases);
}

/* ---- pools ------------------------------------------------------------------------------------------------- */

static tw_output max_pool(tw_graph *g, const tw_output *x)
{
    return tw_max_pool(g, x[0], &(tw_pool_options){.window = {3, 2}, .stride = {2, 1}});
}

static tw_output max_pool_explicit(tw_graph *g, const tw_output *x)
{
    return tw_max_pool(g, x[0],
                       &(tw_pool_options){.window = {3}, .stride = {2}, .padding = TW_PADDING_EXPLICIT,
                                          .explicit_padding = {1, 0, 2, 1}});
}

static tw_output avg_pool(tw_graph *g, const tw_output *x)
{
    return tw_avg_pool(g, x[0], &(tw_pool_options){.window = {3, 2}, .stride = {2, 1}});
}

static tw_output max_pool_of_square(tw_graph *g, const tw_output *x)
{
    return max_pool(g, (tw_output[]){tw_mul(g, x[0], x[0])});
}

static tw_output max_pool_3d(tw_graph *g, const tw_output *x)
{
    static const int64_t window[] = {1, 2, 2, 3, 1}, strides[] = {1, 1, 2, 1, 1};
    tw_output square = tw_mul(g, x[0], x[0]);
    const tw_attr attrs[] = {tw_attr_ints("ksize", window, 5), tw_attr_ints("strides", strides, 5),
                             tw_attr_string("padding", "SAME")};
    return tw_node_output(tw_add_node(g, "MaxPool3D", NULL, &square, 1, attrs, 3), 0);
}

static void pools(void **state)
{
    (void)state;
    static const twt_gradient_case cases[] = {
        {"max pool", max_pool, {{4, {2, 5, 4, 2}}}, 1, .twice = true},
        {"max pool, EXPLICIT", max_pool_explicit, {{4, {1, 4, 4, 2}}}, 1},
        {"max pool of volumes", max_pool_3d, {{5, {1, 2, 3, 3, 1}}}, 1, .dtype = TW_FLOAT32, .low = 0.5, .high = 2,
         .twice = true},
        {"max pool of squares", max_pool_of_square, {{4, {1, 4, 4, 1}}}, 1, .low = 0.1, .high = 2, .twice = true},
        {"average pool", avg_pool, {{4, {2, 5, 4, 2}}}, 1, .twice = true},
    };
    CHECK(cases);
}

/* ---- normalization ----------------------------------------------------------------------------------------- */

static tw_output lrn(tw_graph *g, const tw_output *x)
{
    return tw_lrn(g, x[0], 2, 1, 0.5f, 0.75f);
}

/* By a mean, a variance, an offset and, if it is asked for, a scale. */
static tw_output global_norm(tw_graph *g, const tw_output *x, bool scales)
{
    const tw_attr attrs[] = {tw_attr_float("variance_epsilon", 0.25f),
                             tw_attr_bool("scale_after_normalization", scales)};
    tw_output positive = tw_mul(g, x[2], x[2]);
    tw_output inputs[] = {x[0], x[1], positive, x[3], x[3]};
    return tw_node_output(tw_add_node(g, "BatchNormWithGlobalNormalization", NULL, inputs, 5, attrs, 2), 0);
}

static tw_output global_norm_scaled(tw_graph *g, const tw_output *x)
{
    return global_norm(g, x, true);
}

static tw_output global_norm_alone(tw_graph *g, const tw_output *x)
{
    return global_norm(g, x, false);
}

static tw_output batch_norm_training(tw_graph *g, const tw_output *x)
{
    return tw_fused_batch_norm(g, x[0], x[1], x[2], (tw_output){0}, (tw_output){0}, 0.1f, true).y;
}

static tw_output batch_norm_inference(tw_graph *g, const tw_output *x)
{
    tw_output mean = tw_constant_floats(g, TW_SHAPE(2), (float[]){0.5f, -1});
    tw_output variance = tw_constant_floats(g, TW_SHAPE(2), (float[]){0.5f, 2});
    return tw_fused_batch_norm(g, x[0], x[1], x[2], mean, variance, 0.1f, false).y;
}

static tw_output batch_norm_nchw(tw_graph *g, const tw_output *x)
{
    const tw_attr attrs[] = {tw_attr_float("epsilon", 0.1f), tw_attr_string("data_format", "NCHW")};
    tw_output empty = tw_constant_floats(g, TW_SHAPE(0), (float[]){0}), inputs[] = {x[0], x[1], x[2], empty, empty};
    return tw_node_output(tw_add_node(g, "FusedBatchNormV3", NULL, inputs, 5, attrs, 2), 0);
}

static void normalizations(void **state)
{
    (void)state;
    static const twt_gradient_case cases[] = {
        {"global norm, scaled", global_norm_scaled, {{4, {2, 2, 1, 2}}, {1, {2}}, {1, {2}}, {1, {2}}}, 4,
         .twice = true},
        {"global norm", global_norm_alone, {{4, {2, 2, 1, 2}}, {1, {2}}, {1, {2}}, {1, {2}}}, 4},
        {"LRN", lrn, {{4, {1, 2, 2, 6}}}, 1, TW_FLOAT32},
        {"batch norm, training", batch_norm_training, {{4, {2, 2, 3, 2}}, {1, {2}}, {1, {2}}}, 3, TW_FLOAT32,
         .twice = true},
        {"batch norm, NCHW", batch_norm_nchw, {{4, {2, 2, 3, 2}}, {1, {2}}, {1, {2}}}, 3, TW_FLOAT32, .twice = true},
        {"batch norm, inference", batch_norm_inference, {{4, {2, 2, 3, 2}}, {1, {2}}, {1, {2}}}, 3, TW_FLOAT32,
         .twice = true},
    };
    CHECK(cases);
}

/* ---- softmax and losses ------------------------------------------------------------------------------------ */

static tw_output softmax(tw_graph *g, const tw_output *x)
{
    return tw_softmax(g, x[0]);
}

static tw_output log_softmax(tw_graph *g, const tw_output *x)
{
    return tw_log_softmax(g, x[0]);
}

/* The gradient is right for labels that add up to 1. */
static tw_output cross_entropy(tw_graph *g, const tw_output *x)
{
    return tw_softmax_cross_entropy(g, x[0], tw_softmax(g, x[1]));
}

static tw_output sparse_cross_entropy(tw_graph *g, const tw_output *x)
{
    return tw_sparse_softmax_cross_entropy(g, x[0], tw_constant_int32s(g, TW_SHAPE(3), (int32_t[]){2, 0, 3}));
}

static void losses(void **state)
{
    (void)state;
    static const twt_gradient_case cases[] = {
        {"softmax", softmax, {{2, {3, 4}}}, 1, .low = -2, .high = 2, .twice = true},
        {"softmax of a vector", softmax, {{1, {5}}}, 1},
        {"log softmax", log_softmax, {{2, {3, 4}}}, 1, .low = -2, .high = 2, .twice = true},
        {"cross entropy", cross_entropy, {{2, {3, 4}}, {2, {3, 4}}}, 2, .twice = true},
        {"cross entropy, broadcast", cross_entropy, {{2, {3, 4}}, {2, {1, 4}}}, 2},
        {"cross entropy, broadcast logits", cross_entropy, {{2, {1, 4}}, {2, {3, 4}}}, 2},
        {"sparse cross entropy", sparse_cross_entropy, {{2, {3, 4}}}, 1},
    };
    CHECK(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions),   cmocka_unit_test(activations), cmocka_unit_test(pools),
        cmocka_unit_test(normalizations), cmocka_unit_test(losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
