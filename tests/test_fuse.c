/* test_fuse.c - the rewrites that join nodes: results stay what they are, and what others want is still there. */
#include "testing.h"

#include <tower/nn.h>
#include <tower/session.h>
#include <tower/train.h>
#include <unistd.h>

/* ---- one graph in two sessions ------------------------------------------------------------------------------ */

enum { MOST = 13, STEPS = 3 };

typedef struct lab {
    tw_graph *g;
    tw_devices *devices;
    tw_output image, labels;
    char ops[8192]; /* of the latest run: names of the ops that ran, each between commas */
} lab;

static lab open_lab_on(int cpu_devices)
{
    tw_error error = {0};
    lab l = {.g = tw_graph_create()};
    tw_device_options options = {.cpu_devices = cpu_devices, .cpu_threads = 2, .no_gpus = true};
    assert_ok(tw_devices_create(&options, &l.devices, &error));
    tw_graph_set_seed(l.g, 7);
    l.image = tw_placeholder(l.g, TW_FLOAT32, TW_SHAPE(4, 9, 8, 3));
    l.labels = tw_placeholder(l.g, TW_INT32, TW_SHAPE(4));
    return l;
}

static lab open_lab(void)
{
    return open_lab_on(1);
}

static void close_lab(lab *l)
{
    tw_devices_destroy(l->devices);
    tw_graph_destroy(l->g);
}

/* Which ops ran: from the trace. */
static void read_ops(lab *l, tw_session *session)
{
    tw_error error = {0};
    char path[] = "test_fuse_trace_XXXXXX", *text;
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_ok(tw_session_write_trace(session, path, &error));
    text = read_whole(path, NULL);
    unlink(path);
    snprintf(l->ops, sizeof l->ops, ",");
    for (char *at = text; (at = strstr(at, "\"name\":")); at++) {
        char name[128] = "";
        if (sscanf(at + 7, " \"%127[^\"]\"", name) == 1)
            snprintf(l->ops + strlen(l->ops), sizeof l->ops - strlen(l->ops), "%s,", name);
    }
    free(text);
}

static bool ran(const lab *l, const char *op)
{
    char name[128];
    snprintf(name, sizeof name, ",%s,", op);
    return strstr(l->ops, name) != NULL;
}

/* Initializes, runs the fetches STEPS times on made-up images, and returns the last results. */
static void run(lab *l, const char *disable, const tw_output *fetches, int count, tw_tensor **results)
{
    tw_error error = {0};
    tw_session *session;
    tw_output initialize = tw_initialize_variables(l->g);
    assert_string_equal(tw_graph_message(l->g), "");
    tw_session_options options = {.devices = l->devices, .disable = disable, .trace = true};
    assert_ok(tw_session_create(l->g, &options, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &initialize, 1, NULL, &error));
    tw_tensor *image = tw_tensor_create(TW_FLOAT32, tw_output_shape(l->image));
    tw_tensor *labels = tw_tensor_from(TW_INT32, TW_SHAPE(4), (int32_t[]){1, 0, 4, 2});
    for (int64_t i = 0; i < tw_tensor_elements(image); i++)
        ((float *)tw_tensor_data(image))[i] = (float)(i * 37 % 64) / 32 - 1;
    for (int step = 0; step < STEPS; step++)
        assert_ok(tw_session_run(session, (tw_feed[]){{l->image, image}, {l->labels, labels}}, 2, fetches, count,
                                 results, &error));
    read_ops(l, session);
    tw_tensor_release(image);
    tw_tensor_release(labels);
    tw_session_destroy(session);
}

/* The same with and without the rewrites, which leaves in l->ops what ran with them. */
static void compare(lab *l, const tw_output *fetches, int count, double tolerance)
{
    tw_tensor *plain[MOST] = {0}, *fused[MOST] = {0};
    run(l, "einsum,fuse,update", fetches, count, plain);
    assert_false(ran(l, "_FusedConv2D") || ran(l, "_ApplyGradientDescentMany"));
    run(l, NULL, fetches, count, fused);
    for (int i = 0; i < count; i++) {
        for (int64_t k = 0; plain[i] && k < tw_tensor_elements(plain[i]); k++) {
            double a = tw_tensor_value(fused[i], k), b = tw_tensor_value(plain[i], k);
            if (!(fabs(a - b) <= tolerance * fmax(1, fabs(b))))
                fail_msg("fetch %d, element %lld: %g, expected %g", i, (long long)k, a, b);
        }
        tw_tensor_release(plain[i]);
        tw_tensor_release(fused[i]);
    }
}

/* ---- a network like the tutorial's -------------------------------------------------------------------------- */

static const tw_pool_options pool3 = {.window = {3}, .stride = {2}};

static tw_output variable(lab *l, const char *name, tw_shape shape, tw_dtype dtype)
{
    tw_initializer random = {TW_INIT_TRUNCATED_NORMAL, 0, 0.2f, 0};
    tw_variable *v = tw_get_variable(l->g, name, TW_FLOAT32, shape, random);
    assert_non_null(v);
    return tw_cast(l->g, v->value, dtype);
}

static tw_output conv(lab *l, const char *name, tw_output x, int in, int out, tw_dtype dtype)
{
    tw_output y = {0};
    TW_VARIABLE_SCOPE(l->g, "%s", name) {
        y = tw_conv2d(l->g, x, variable(l, "weights", TW_SHAPE(3, 3, in, out), dtype), NULL);
        y = tw_relu(l->g, tw_bias_add(l->g, y, variable(l, "biases", TW_SHAPE(out), dtype)));
    }
    return y;
}

/* The mean loss. Returns the normalized images of the second block too. */
static tw_output network(lab *l, tw_dtype dtype, tw_output *norm2)
{
    tw_output x = conv(l, "conv1", tw_cast(l->g, l->image, dtype), 3, 12, dtype);
    x = tw_lrn(l->g, tw_max_pool(l->g, x, &pool3), 2, 1, 0.1f, 0.75f);
    x = conv(l, "conv2", x, 12, 20, dtype);
    *norm2 = tw_lrn(l->g, x, 4, 1, 0.1f, 0.75f);
    x = tw_flatten(l->g, tw_max_pool(l->g, *norm2, &pool3));
    x = tw_relu(l->g, tw_bias_add(l->g, tw_matmul(l->g, x, variable(l, "w3", TW_SHAPE(120, 16), dtype)),
                                  variable(l, "b3", TW_SHAPE(16), dtype)));
    x = tw_add(l->g, variable(l, "b4", TW_SHAPE(5), dtype),
               tw_matmul(l->g, x, variable(l, "w4", TW_SHAPE(16, 5), dtype)));
    x = tw_sparse_softmax_cross_entropy(l->g, tw_cast(l->g, x, TW_FLOAT32), l->labels);
    tw_output decay = tw_mul(l->g, tw_l2_loss(l->g, tw_graph_find_variable(l->g, "w3")->value), tw_scalar(l->g, 0.01f));
    return tw_add(l->g, tw_reduce_mean(l->g, x, NULL, 0, false), decay);
}

/* One training step with moving averages; fetches: loss, step, then some variables. */
static int training_step(lab *l, tw_dtype dtype, tw_output *fetches, tw_output *norm2)
{
    tw_optimizer *sgd = tw_gradient_descent(l->g, tw_scalar(l->g, 0.05f));
    fetches[0] = network(l, dtype, norm2);
    tw_output step = tw_apply_gradients(sgd, tw_compute_gradients(sgd, fetches[0]), tw_global_step(l->g));
    fetches[1] = tw_moving_averages(l->g, 0.9f, NULL, step)->update;
    return 2;
}

static void check_training(tw_dtype dtype, double tolerance)
{
    lab l = open_lab();
    tw_output fetches[MOST], norm2;
    int count = training_step(&l, dtype, fetches, &norm2);
    static const char *const names[] = {"conv1/weights", "conv2/biases", "w3/ExponentialMovingAverage"};
    TW_CONTROL(l.g, fetches[1])
        for (int i = 0; i < 3; i++)
            fetches[count++] = tw_variable_read(l.g, tw_graph_find_variable(l.g, names[i]));
    compare(&l, fetches, count, tolerance);
    static const char *const made[] = {"_FusedConv2D", "_FusedMatMul", "_MaxPoolLRN", "_MaxPoolLRNGrad", "_LRNMaxPool",
                                       "_LRNMaxPoolGrad", "_Conv2DBackpropFilterBias", "_ReluGradBias",
                                       "_ApplyGradientDescentMany", "_MovingAverageMany"};
    static const char *const gone[] = {"BiasAdd", "Relu", "MaxPool", "LRN", "LRNGrad", "MaxPoolGrad", "Conv2D",
                                       "Conv2DBackpropFilter", "ReluGrad", "ResourceApplyGradientDescent", "AddN",
                                       "AssignSubVariableOp"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (!ran(&l, made[i]))
            fail_msg("no %s ran: %s", made[i], l.ops);
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        if (ran(&l, gone[i]))
            fail_msg("%s ran: %s", gone[i], l.ops);
    close_lab(&l);
}

static void a_network_trains_to_the_same_values(void **state)
{
    (void)state;
    check_training(TW_FLOAT32, 1e-5);
}

static void a_network_in_bfloat16_trains_to_much_the_same_values(void **state)
{
    (void)state;
    check_training(TW_BFLOAT16, 0.02);
}

/* ---- residual blocks ------------------------------------------------------------------------------------------ */

static tw_output normalized_conv(lab *l, const char *name, tw_output x, int in, bool training)
{
    tw_dtype dtype = tw_output_dtype(x);
    TW_VARIABLE_SCOPE(l->g, "%s", name) {
        x = tw_conv2d(l->g, x, variable(l, "weights", TW_SHAPE(3, 3, in, 4), dtype), NULL);
        x = tw_batch_norm_layer(l->g, "norm", x, 0.9f, 0.001f, training);
    }
    return x;
}

/* A layer, then two blocks. The mean of what they give, through a dense layer. */
static tw_output residual_network(lab *l, tw_dtype dtype, bool training, tw_output *inside)
{
    tw_output x = tw_relu(l->g, normalized_conv(l, "first", tw_cast(l->g, l->image, dtype), 3, training));
    for (int i = 0; i < 2; i++) {
        char name[2][16];
        snprintf(name[0], sizeof name[0], "block%d/a", i);
        snprintf(name[1], sizeof name[1], "block%d/b", i);
        tw_output y = tw_relu(l->g, normalized_conv(l, name[0], x, 4, training));
        *inside = normalized_conv(l, name[1], y, 4, training);
        x = tw_relu(l->g, i ? tw_add(l->g, *inside, x) : tw_add(l->g, x, *inside));
    }
    x = tw_matmul(l->g, tw_reduce_mean(l->g, x, TW_AXES(1, 2), false), variable(l, "w", TW_SHAPE(4, 5), dtype));
    x = tw_sparse_softmax_cross_entropy(l->g, tw_cast(l->g, x, TW_FLOAT32), l->labels);
    return tw_reduce_mean(l->g, x, NULL, 0, false);
}

/* A training step; fetches: loss, step, then some variables. */
static int residual_step(lab *l, tw_dtype dtype, tw_output *fetches, tw_output *inside)
{
    tw_optimizer *sgd = tw_gradient_descent(l->g, tw_scalar(l->g, 0.05f));
    int count = 2;
    fetches[0] = residual_network(l, dtype, true, inside);
    fetches[1] = tw_apply_gradients(sgd, tw_compute_gradients(sgd, fetches[0]), tw_global_step(l->g));
    static const char *const names[] = {"first/weights", "first/norm/gamma", "block0/b/norm/beta", "block1/a/weights",
                                        "block1/b/norm/gamma"};
    TW_CONTROL(l->g, fetches[1])
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            fetches[count++] = tw_variable_read(l->g, tw_graph_find_variable(l->g, names[i]));
    return count;
}

static void check_residual(tw_dtype dtype, double tolerance)
{
    lab l = open_lab();
    tw_output fetches[MOST], inside;
    int count = residual_step(&l, dtype, fetches, &inside);
    compare(&l, fetches, count, tolerance);
    static const char *const gone[] = {"Relu", "ReluGrad", "FusedBatchNormV3", "FusedBatchNormGradV3", "AddV2", "AddN"};
    assert_true(ran(&l, "_BatchNormRelu") && ran(&l, "_BatchNormReluGrad"));
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        if (ran(&l, gone[i]))
            fail_msg("%s ran: %s", gone[i], l.ops);
    close_lab(&l);
}

/* To the bit: the joint kernel does what the chain does, in its order. */
static void residual_blocks_train_to_the_same_values(void **state)
{
    (void)state;
    check_residual(TW_FLOAT32, 0);
}

static void residual_blocks_in_bfloat16_train_to_much_the_same_values(void **state)
{
    (void)state;
    check_residual(TW_BFLOAT16, 0.03);
}

static void batch_norms_by_given_moments_are_fused_too(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_output inside, loss = residual_network(&l, TW_FLOAT32, false, &inside);
    compare(&l, &loss, 1, 0);
    assert_true(ran(&l, "_BatchNormRelu") && !ran(&l, "FusedBatchNormV3") && !ran(&l, "AddV2"));
    close_lab(&l);
}

/* The gradient of the block's sum still goes to the shortcut, from a ReluGrad of its own. */
static void a_normalized_image_that_somebody_wants_stays_apart(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_output fetches[MOST], inside;
    int count = residual_step(&l, TW_FLOAT32, fetches, &inside);
    fetches[count++] = inside;
    compare(&l, fetches, count, 0);
    assert_true(ran(&l, "_BatchNormRelu") && ran(&l, "FusedBatchNormV3") && ran(&l, "FusedBatchNormGradV3") &&
                ran(&l, "ReluGrad"));
    close_lab(&l);
}

static void a_sum_with_an_image_of_another_shape_is_no_block(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_output y = normalized_conv(&l, "first", l.image, 3, true);
    y = tw_relu(l.g, tw_add(l.g, y, variable(&l, "wide", TW_SHAPE(3, 1, 1, 1, 4), TW_FLOAT32)));
    compare(&l, &y, 1, 0);
    assert_true(ran(&l, "FusedBatchNormV3") && ran(&l, "AddV2"));
    close_lab(&l);

    l = open_lab();
    y = normalized_conv(&l, "first", l.image, 3, true);
    y = tw_relu(l.g, tw_add(l.g, y, variable(&l, "narrow", TW_SHAPE(4), TW_FLOAT32)));
    compare(&l, &y, 1, 0);
    assert_true(ran(&l, "FusedBatchNormV3") && ran(&l, "AddV2"));
    close_lab(&l);
}

/* ---- what must not be joined -------------------------------------------------------------------------------- */

static void a_normalized_image_that_is_fetched_is_kept(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_output fetches[MOST];
    int count = training_step(&l, TW_FLOAT32, fetches, &fetches[2]);
    compare(&l, fetches, count + 1, 1e-5);
    assert_true(ran(&l, "_MaxPoolLRN") && !ran(&l, "_LRNMaxPool") && ran(&l, "LRN") && ran(&l, "MaxPool"));
    close_lab(&l);
}

static void networks_that_only_look_are_fused_too(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_output norm2, loss = network(&l, TW_FLOAT32, &norm2);
    compare(&l, &loss, 1, 1e-5);
    assert_true(ran(&l, "_MaxPoolLRN") && ran(&l, "_LRNMaxPool") && ran(&l, "_FusedMatMul"));
    close_lab(&l);
}

static void values_between_links_that_somebody_wants_stay_apart(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_output filter = variable(&l, "f", TW_SHAPE(3, 3, 3, 6), TW_FLOAT32),
              bias = variable(&l, "b", TW_SHAPE(6), TW_FLOAT32);
    tw_output product = tw_conv2d(l.g, l.image, filter, NULL), sum = tw_bias_add(l.g, product, bias);
    tw_output fetches[] = {tw_relu(l.g, sum), tw_reduce_sum(l.g, sum, NULL, 0, false)};
    compare(&l, fetches, 2, 1e-5);
    assert_true(ran(&l, "_FusedConv2D") && ran(&l, "Relu"));
    close_lab(&l);

    l = open_lab();
    filter = variable(&l, "f", TW_SHAPE(3, 3, 3, 6), TW_FLOAT32), bias = variable(&l, "b", TW_SHAPE(6), TW_FLOAT32);
    product = tw_conv2d(l.g, l.image, filter, NULL), sum = tw_bias_add(l.g, product, bias);
    compare(&l, (tw_output[]){sum, product}, 2, 1e-5);
    assert_true(ran(&l, "Conv2D") && ran(&l, "BiasAdd"));
    close_lab(&l);
}

/* A node stays on its device. */
static void links_of_two_devices_stay_apart(void **state)
{
    (void)state;
    lab l = open_lab_on(2);
    tw_output filter = variable(&l, "f", TW_SHAPE(3, 3, 3, 6), TW_FLOAT32),
              bias = variable(&l, "b", TW_SHAPE(6), TW_FLOAT32), sum = tw_conv2d(l.g, l.image, filter, NULL);
    TW_DEVICE(l.g, "/cpu:1")
        sum = tw_bias_add(l.g, sum, bias);
    compare(&l, &sum, 1, 1e-5);
    assert_true(ran(&l, "Conv2D") && ran(&l, "BiasAdd"));
    close_lab(&l);
}

/* The bias waits for the product: one node cannot stand for both. */
static void links_that_wait_for_each_other_stay_apart(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_output filter = variable(&l, "f", TW_SHAPE(3, 3, 3, 6), TW_FLOAT32),
              bias = variable(&l, "b", TW_SHAPE(6), TW_FLOAT32);
    tw_output product = tw_conv2d(l.g, l.image, filter, NULL);
    TW_CONTROL(l.g, product)
        bias = tw_mul(l.g, bias, tw_scalar(l.g, 2));
    tw_output sum = tw_bias_add(l.g, product, bias);
    compare(&l, &sum, 1, 1e-5);
    assert_true(ran(&l, "Conv2D") && ran(&l, "BiasAdd"));
    close_lab(&l);
}

static void a_sum_that_is_no_bias_is_left_alone(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_output flat = tw_flatten(l.g, l.image), w = variable(&l, "w", TW_SHAPE(216, 4), TW_FLOAT32);
    tw_output column = variable(&l, "c", TW_SHAPE(4, 1), TW_FLOAT32), product = tw_matmul(l.g, flat, w);
    tw_output sum = tw_add(l.g, product, column);
    compare(&l, &sum, 1, 1e-5);
    assert_true(ran(&l, "MatMul") && !ran(&l, "_FusedMatMul"));
    close_lab(&l);
}

static void updates_with_different_rates_are_joined_each_with_its_own(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_output rates[] = {tw_scalar(l.g, 0.1f), tw_scalar(l.g, 0.01f)}, updates[4], reads[5];
    tw_variable *vars[4];
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        vars[i] = tw_get_variable(l.g, name, TW_FLOAT32, TW_SHAPE(3), (tw_initializer){.a = 1 + (float)i});
        updates[i] = tw_apply_gradient_descent(l.g, vars[i]->handle, rates[i % 2],
                                               tw_mul(l.g, vars[i]->value, tw_scalar(l.g, 2)));
    }
    reads[4] = tw_group(l.g, updates, 4);
    TW_CONTROL(l.g, reads[4])
        for (int i = 0; i < 4; i++)
            reads[i] = tw_variable_read(l.g, vars[i]);
    compare(&l, reads, 5, 0);
    assert_true(ran(&l, "_ApplyGradientDescentMany") && !ran(&l, "ResourceApplyGradientDescent"));
    close_lab(&l);
}

/* Two towers on two devices of the host; the gradients of one of the variables decay. */
static void the_mean_of_two_towers_is_taken_where_the_variables_are_updated(void **state)
{
    (void)state;
    lab l = open_lab_on(2);
    tw_output grads[2][2], means[2], updates[2], reads[3];
    tw_variable *vars[2];
    for (int i = 0; i < 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        vars[i] = tw_get_variable(l.g, name, TW_FLOAT32, TW_SHAPE(3), (tw_initializer){.a = 1.1f + (float)i});
    }
    for (int t = 0; t < 2; t++)
        TW_DEVICE(l.g, "/cpu:%d", t) {
            tw_output made = tw_reduce_sum(l.g, l.image, TW_AXES(0, 1, 2), false);
            made = t == 0 ? tw_tanh(l.g, made) : tw_cos(l.g, made);
            tw_output terms[] = {made, tw_mul(l.g, tw_scalar(l.g, 0.03f), vars[0]->value)};
            grads[0][t] = tw_add_n(l.g, terms, 2);
            grads[1][t] = tw_sin(l.g, made);
        }
    for (int i = 0; i < 2; i++) {
        tw_output rows[] = {tw_expand_dims(l.g, grads[i][0], 0), tw_expand_dims(l.g, grads[i][1], 0)};
        means[i] = tw_reduce_mean(l.g, tw_concat(l.g, rows, 2, 0), TW_AXES(0), false);
        updates[i] = tw_apply_gradient_descent(l.g, vars[i]->handle, tw_scalar(l.g, 0.1f), means[i]);
    }
    reads[2] = tw_group(l.g, updates, 2);
    TW_CONTROL(l.g, reads[2])
        for (int i = 0; i < 2; i++)
            reads[i] = tw_variable_read(l.g, vars[i]);
    compare(&l, reads, 3, 0);
    assert_true(ran(&l, "_ApplyGradientDescentMany") && !ran(&l, "ResourceApplyGradientDescent"));
    assert_false(ran(&l, "AddV2") || ran(&l, "Mul") || ran(&l, "AddN"));
    close_lab(&l);
}

/* The second gradient is computed from what the first update left. */
static void updates_that_follow_each_other_stay_apart(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_output rate = tw_scalar(l.g, 0.1f);
    tw_variable *a = tw_get_variable(l.g, "a", TW_FLOAT32, TW_SHAPE(3), (tw_initializer){.a = 1});
    tw_variable *b = tw_get_variable(l.g, "b", TW_FLOAT32, TW_SHAPE(3), (tw_initializer){.a = 2});
    tw_output first = tw_apply_gradient_descent(l.g, a->handle, rate, tw_mul(l.g, a->value, tw_scalar(l.g, 3))),
              fetches[3];
    TW_CONTROL(l.g, first)
        fetches[0] = tw_variable_read(l.g, a);
    fetches[1] = tw_apply_gradient_descent(l.g, b->handle, rate, fetches[0]);
    TW_CONTROL(l.g, fetches[1])
        fetches[2] = tw_variable_read(l.g, b);
    compare(&l, fetches, 3, 0);
    close_lab(&l);
}

/* Variables v0, v1, ... of three elements, from 1.1 on. */
static void make_variables(lab *l, tw_variable **vars, int count)
{
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        vars[i] = tw_get_variable(l->g, name, TW_FLOAT32, TW_SHAPE(3), (tw_initializer){.a = 1.1f + (float)i});
    }
}

/* Fetches what the variables are after all updates, and those; compares them, and the others. */
static void compare_updates(lab *l, tw_variable **vars, const tw_output *updates, int count, tw_output other)
{
    tw_output fetches[MOST] = {tw_group(l->g, updates, count), other};
    TW_CONTROL(l->g, fetches[0])
        for (int i = 0; i < count; i++)
            fetches[2 + i] = tw_variable_read(l->g, vars[i]);
    compare(l, fetches, 2 + count, 0);
}

static void what_only_looks_like_weight_decay_is_a_part_of_the_gradient(void **state)
{
    (void)state;
    enum { COUNT = 8 };
    lab l = open_lab();
    tw_variable *vars[COUNT];
    make_variables(&l, vars, COUNT);
    tw_output made = tw_tanh(l.g, tw_reduce_sum(l.g, l.image, TW_AXES(0, 1, 2), false)), small = tw_scalar(l.g, 0.03f);
    tw_output shares = tw_constant_floats(l.g, TW_SHAPE(3), (float[]){0.01f, 0.02f, 0.04f});
    tw_output terms[COUNT] = {
        tw_mul(l.g, small, vars[1]->value),              /* of another variable */
        tw_mul(l.g, tw_sin(l.g, vars[1]->value), small), /* of no variable */
        tw_mul(l.g, vars[2]->value, shares),             /* another share of each element */
        tw_add(l.g, vars[3]->value, small),              /* no product */
        tw_mul(l.g, small, vars[4]->value),              /* decay, but of a sum that is fetched */
        tw_mul(l.g, vars[5]->value, small),              /* decay, */
        tw_mul(l.g, vars[6]->value, small),              /* and something more, */
        tw_mul(l.g, vars[7]->value, small),              /* and growth */
    };
    tw_output updates[COUNT], sums[COUNT];
    for (int i = 0; i < COUNT; i++) {
        sums[i] = i == 7 ? tw_sub(l.g, made, terms[i])
                         : tw_add_n(l.g, (tw_output[]){made, terms[i], tw_sin(l.g, made)}, i < 6 ? 2 : 3);
        updates[i] = tw_apply_gradient_descent(l.g, vars[i]->handle, tw_scalar(l.g, 0.1f), sums[i]);
    }
    compare_updates(&l, vars, updates, COUNT, sums[4]);
    assert_true(ran(&l, "_ApplyGradientDescentMany") && ran(&l, "AddN"));
    close_lab(&l);
}

/* The first update and the decay in the second have the variable as it was. */
static void decay_of_a_variable_that_another_update_changes_stays_apart(void **state)
{
    (void)state;
    lab l = open_lab();
    tw_variable *v;
    make_variables(&l, &v, 1);
    tw_output rate = tw_scalar(l.g, 0.1f), updates[2];
    tw_output terms[] = {tw_tanh(l.g, tw_reduce_sum(l.g, l.image, TW_AXES(0, 1, 2), false)),
                         tw_mul(l.g, v->value, tw_scalar(l.g, 0.03f))};
    tw_output sum = tw_add_n(l.g, terms, 2);
    TW_CONTROL(l.g, terms[1])
        updates[0] = tw_apply_gradient_descent(l.g, v->handle, rate, tw_mul(l.g, v->value, tw_scalar(l.g, 3)));
    TW_CONTROL(l.g, updates[0])
        updates[1] = tw_apply_gradient_descent(l.g, v->handle, rate, sum);
    compare_updates(&l, &v, &updates[1], 1, updates[0]);
    close_lab(&l);
}

static void what_only_looks_like_the_mean_of_two_towers_is_taken_as_it_is(void **state)
{
    (void)state;
    enum { COUNT = 6 };
    lab l = open_lab();
    tw_variable *vars[COUNT];
    make_variables(&l, vars, COUNT);
    tw_output made = tw_tanh(l.g, tw_reduce_sum(l.g, l.image, TW_AXES(0, 1, 2), false)), half = tw_scalar(l.g, 0.5f);
    tw_output other = tw_sin(l.g, made), one = tw_reduce_sum(l.g, made, NULL, 0, false);
    tw_output shares = tw_constant_floats(l.g, TW_SHAPE(3), (float[]){0.25f, 0.5f, 1});
    tw_output fetched = tw_add(l.g, made, tw_cos(l.g, made));
    tw_output means[COUNT] = {
        tw_mul(l.g, tw_add(l.g, made, other), shares), /* another share of each element */
        tw_mul(l.g, tw_add(l.g, made, other), one),    /* a share that is not known */
        tw_mul(l.g, tw_add(l.g, made, one), half),     /* of different shapes */
        tw_mul(l.g, tw_add(l.g, one, made), half),     /* the other way round */
        tw_mul(l.g, tw_sub(l.g, made, other), half),   /* no sum */
        tw_mul(l.g, fetched, half),                    /* of a sum that is fetched */
    };
    tw_output updates[COUNT];
    for (int i = 0; i < COUNT; i++)
        updates[i] = tw_apply_gradient_descent(l.g, vars[i]->handle, tw_scalar(l.g, 0.1f), means[i]);
    compare_updates(&l, vars, updates, COUNT, fetched);
    assert_true(ran(&l, "_ApplyGradientDescentMany") && ran(&l, "Mul"));
    close_lab(&l);
}

static void what_only_looks_like_a_moving_average_is_left_alone(void **state)
{
    (void)state;
    enum { COUNT = 11 };
    lab l = open_lab();
    tw_variable *vars[COUNT];
    make_variables(&l, vars, COUNT);
    tw_output made = tw_tanh(l.g, tw_reduce_sum(l.g, l.image, TW_AXES(0, 1, 2), false)), small = tw_scalar(l.g, 0.1f);
    tw_output shares = tw_constant_floats(l.g, TW_SHAPE(3), (float[]){0.1f, 0.2f, 0.4f});
    tw_output one = tw_reduce_sum(l.g, made, NULL, 0, false), fetched = tw_sub(l.g, vars[3]->value, made);
    tw_output moves[COUNT] = {
        tw_mul(l.g, tw_sub(l.g, vars[1]->value, made), small),  /* from another variable */
        tw_mul(l.g, tw_sub(l.g, made, vars[1]->value), small),  /* away from it */
        tw_mul(l.g, tw_sub(l.g, vars[2]->value, made), shares), /* each element by itself, */
        tw_mul(l.g, fetched, small),                            /* with a difference that somebody wants */
        tw_mul(l.g, small, tw_sub(l.g, vars[4]->value, made)),  /* moving averages, */
        tw_mul(l.g, tw_sub(l.g, vars[5]->value, made), small),  /* of which one alone is no joint node */
        tw_mul(l.g, tw_sub(l.g, vars[6]->value, made), shares), /* of more than one */
        tw_mul(l.g, tw_add(l.g, vars[7]->value, made), small),  /* no difference */
        tw_mul(l.g, tw_sub(l.g, vars[8]->value, one), small),   /* towards a scalar */
        tw_mul(l.g, tw_sub(l.g, vars[9]->value, made), small),  /* a move that somebody wants */
        tw_div(l.g, tw_sub(l.g, vars[10]->value, made), small), /* a quotient */
    };
    tw_output updates[COUNT];
    for (int i = 0; i < COUNT; i++)
        updates[i] = tw_assign_sub(l.g, vars[i]->handle, moves[i]);
    compare_updates(&l, vars, updates, COUNT, tw_add(l.g, fetched, moves[9]));
    assert_true(ran(&l, "_MovingAverageMany") && ran(&l, "AssignSubVariableOp"));
    close_lab(&l);
}

/* Joint nodes compute in float. */
static void variables_of_double_are_updated_one_by_one(void **state)
{
    (void)state;
    enum { COUNT = 4 };
    lab l = open_lab();
    tw_variable *vars[COUNT];
    tw_output updates[COUNT], tenth = tw_scalar_of(l.g, TW_FLOAT64, 0.1);
    tw_output made = tw_cast(l.g, tw_tanh(l.g, tw_reduce_sum(l.g, l.image, TW_AXES(0, 1, 2), false)), TW_FLOAT64);
    for (int i = 0; i < COUNT; i++) {
        char name[8];
        snprintf(name, sizeof name, "v%d", i);
        vars[i] = tw_get_variable(l.g, name, TW_FLOAT64, TW_SHAPE(3), (tw_initializer){.a = 1.1f + (float)i});
        updates[i] = i < 2 ? tw_apply_gradient_descent(l.g, vars[i]->handle, tenth, made)
                           : tw_assign_sub(l.g, vars[i]->handle,
                                           tw_mul(l.g, tw_sub(l.g, vars[i]->value, made), tenth));
    }
    compare_updates(&l, vars, updates, COUNT, made);
    close_lab(&l);
}

/* ---- products of tensors ------------------------------------------------------------------------------------- */

static tw_output einsum(lab *l, const char *equation, const tw_output *inputs, int count)
{
    tw_attr attr = tw_attr_string("equation", equation);
    return tw_node_output(tw_add_node(l->g, "Einsum", NULL, inputs, count, &attr, 1), 0);
}

/* Each equation with a tensor [8,6,4,7] and one of the shape; the walk of the plain kernel says what they are. */
static void products_of_tensors_become_products_of_matrices(void **state)
{
    static const struct {
        const char *equation;
        tw_shape second; /* rank 0: none */
    } cases[] = {
        {"abcd,abed->abce", {4, {8, 6, 5, 7}}}, /* rows and columns of many matrices, the second turned */
        {"abcd,abed->abec", {4, {8, 6, 5, 7}}}, /* the second's first */
        {"abcd,bed->eacb", {3, {6, 5, 7}}},     /* in an order of its own */
        {"abcd,cde->abe", {3, {4, 7, 5}}},      /* one matrix, two letters summed over */
        {"abcd,edc->eab", {3, {5, 7, 4}}},      /* as they do not lie */
        {"abcd,abe->ce", {3, {8, 6, 5}}},       /* the first turned, and d its own */
        {"abcd,ef->abf", {2, {5, 3}}},          /* letters that each has alone */
        {"abcd,abcd->abcd", {4, {8, 6, 4, 7}}}, /* nothing to sum over */
        {"abcd,ec->abcde", {2, {5, 4}}},        /* nor here */
        {"abcd,abcd->", {4, {8, 6, 4, 7}}},     /* all */
        {"...bcd,...cde->...be", {4, {8, 4, 7, 5}}},
        {"abcd->dca", {0}},
        {"abcd->cbad", {0}},
    };
    lab l = open_lab();
    tw_output first = variable(&l, "first", TW_SHAPE(8, 6, 4, 7), TW_FLOAT32), products[MOST];
    const int count = sizeof cases / sizeof *cases;
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "second%d", i);
        int inputs = cases[i].second.rank ? 2 : 1;
        tw_output second = inputs > 1 ? variable(&l, name, cases[i].second, TW_FLOAT32) : first;
        products[i] = einsum(&l, cases[i].equation, (tw_output[]){first, second}, inputs);
    }
    compare(&l, products, count, 1e-5);
    assert_true(ran(&l, "BatchMatMulV2") && ran(&l, "MatMul") && ran(&l, "Transpose") && !ran(&l, "Einsum"));
    close_lab(&l);
    (void)state;
}

static void other_products_of_tensors_are_walked(void **state)
{
    lab l = open_lab();
    tw_output x = variable(&l, "x", TW_SHAPE(12, 12, 12), TW_FLOAT32),
              y = variable(&l, "y", TW_SHAPE(12, 1, 12), TW_FLOAT32);
    const tw_output products[] = {
        einsum(&l, "aab,cbd->acd", (tw_output[]){x, x}, 2), /* diagonals, */
        einsum(&l, "abc,dbd->acd", (tw_output[]){x, x}, 2), einsum(&l, "abc,cbd->aada", (tw_output[]){x, x}, 2),
        einsum(&l, "...a,...b->...ab", (tw_output[]){x, y}, 2)}; /* an axis of 1 that is repeated */
    compare(&l, products, 4, 1e-5);
    assert_true(ran(&l, "Einsum") && !ran(&l, "BatchMatMulV2") && !ran(&l, "MatMul"));
    close_lab(&l);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network_trains_to_the_same_values),
        cmocka_unit_test(a_network_in_bfloat16_trains_to_much_the_same_values),
        cmocka_unit_test(residual_blocks_train_to_the_same_values),
        cmocka_unit_test(residual_blocks_in_bfloat16_train_to_much_the_same_values),
        cmocka_unit_test(batch_norms_by_given_moments_are_fused_too),
        cmocka_unit_test(a_normalized_image_that_somebody_wants_stays_apart),
        cmocka_unit_test(a_sum_with_an_image_of_another_shape_is_no_block),
        cmocka_unit_test(a_normalized_image_that_is_fetched_is_kept),
        cmocka_unit_test(networks_that_only_look_are_fused_too),
        cmocka_unit_test(values_between_links_that_somebody_wants_stay_apart),
        cmocka_unit_test(links_of_two_devices_stay_apart),
        cmocka_unit_test(links_that_wait_for_each_other_stay_apart),
        cmocka_unit_test(a_sum_that_is_no_bias_is_left_alone),
        cmocka_unit_test(updates_with_different_rates_are_joined_each_with_its_own),
        cmocka_unit_test(the_mean_of_two_towers_is_taken_where_the_variables_are_updated),
        cmocka_unit_test(updates_that_follow_each_other_stay_apart),
        cmocka_unit_test(what_only_looks_like_weight_decay_is_a_part_of_the_gradient),
        cmocka_unit_test(decay_of_a_variable_that_another_update_changes_stays_apart),
        cmocka_unit_test(what_only_looks_like_the_mean_of_two_towers_is_taken_as_it_is),
        cmocka_unit_test(what_only_looks_like_a_moving_average_is_left_alone),
        cmocka_unit_test(variables_of_double_are_updated_one_by_one),
        cmocka_unit_test(products_of_tensors_become_products_of_matrices),
        cmocka_unit_test(other_products_of_tensors_are_walked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
