/* Images in NCHW: on CPUs and virtual GPUs, whose kernels want NHWC, parts of a plan change their layout as a whole. */
#include "testing.h"

#include "golden/nchw.h"

#include <tower/tower.h>

typedef struct run {
    tw_graph *g;
    tw_devices *devices;
    tw_session *session;
} run;

static run open_run(int virtual_gpus, const char *disable)
{
    tw_error error = {0};
    run r = {.g = tw_graph_create()};
    assert_ok(tw_devices_create(TW_OPTIONS(tw_device_options, .virtual_gpus = virtual_gpus, .cpu_threads = 1),
                                &r.devices, &error));
    assert_ok(tw_session_create(r.g, TW_OPTIONS(tw_session_options, .devices = r.devices, .allow_soft_placement = true,
                                                .disable = disable), &r.session, &error));
    return r;
}

static void close_run(run *r)
{
    tw_session_destroy(r->session);
    tw_devices_destroy(r->devices);
    tw_graph_destroy(r->g);
}

/* How many steps of the latest plan are of that op. */
static int count_steps(run *r, const char *op)
{
    tw_error error = {0};
    tw_planned *planned;
    int count = 0;
    assert_ok(tw_session_planned(r->session, &planned, &error));
    for (int i = 0; i < planned->num_nodes; i++)
        count += planned->nodes[i].plan == planned->num_plans - 1 && planned->nodes[i].fate == TW_FATE_STEP &&
                 strcmp(planned->nodes[i].op, op) == 0;
    tw_planned_destroy(planned);
    return count;
}

static void a_network_made_for_cards_trains_as_on_channels_last(void **state)
{
    (void)state;
    tw_error error = {0};
    for (int gpus = 0; gpus <= 2; gpus++) {
        run r = open_run(gpus, NULL);
        assert_ok(tw_graph_load(r.g, GOLDEN_DIR "/nchw.meta", NULL, NULL, &error));
        tw_output init = tw_initialize_variables(r.g);
        tw_output fetches[] = {{tw_graph_find(r.g, "loss"), 0}, {tw_graph_find(r.g, "train"), -1}};
        tw_tensor *results[2] = {NULL, NULL};
        assert_ok(tw_session_run(r.session, NULL, 0, &init, 1, NULL, &error));
        for (size_t i = 0; i < sizeof nchw_losses / sizeof *nchw_losses; i++) {
            assert_ok(tw_session_run(r.session, NULL, 0, fetches, 2, results, &error));
            assert_floats_near(tw_tensor_data(results[0]), &nchw_losses[i], 1, 2e-6);
        }
        tw_tensor_release(results[0]);
        assert_true(count_steps(&r, "Transpose") <= 6); /* at borders alone: behind the mean, in the gradient of gain */
        close_run(&r);
    }
}

/* [1,2,2,3] in NCHW, through a node for each kind of rule, and back at the borders. */

static tw_output convolve(run *r, const char *name, tw_output x, const char *format)
{
    static const int64_t strides[] = {1, 1, 1, 1};
    float weights[4] = {1, 2, 3, 4};
    tw_output inputs[] = {x, tw_constant_floats(r->g, TW_SHAPE(1, 1, 2, 2), weights)};
    tw_attr attrs[] = {tw_attr_ints("strides", strides, 4), tw_attr_string("padding", "SAME"),
                       tw_attr_string("data_format", format)};
    return tw_node_output(tw_add_node(r->g, "Conv2D", name, inputs, 2, attrs, 3), 0);
}

static void who_stays_behind_gets_the_old_layout(void **state)
{
    (void)state;
    tw_error error = {0};
    run r = open_run(0, NULL);
    tw_output x = tw_placeholder(r.g, TW_FLOAT32, TW_SHAPE(1, 2, 2, 3)); /* NCHW */
    tw_output y = convolve(&r, "conv", x, "NCHW");
    tw_output both = tw_add(r.g, tw_relu(r.g, y), tw_constant_floats(r.g, TW_SHAPE(2, 1, 1), TW_ARRAY(float, 10, 20)));
    tw_output flat = tw_reshape(r.g, both, TW_SHAPE(12));
    tw_output rows = tw_reduce_sum(r.g, both, TW_LIST(int, 3), false); /* another order of what is left: stays behind */
    tw_output channels = tw_reduce_sum(r.g, both, TW_LIST(int, 0, 2, 3), false);
    tw_output kept = tw_reduce_sum(r.g, both, TW_LIST(int, 1), true);
    tw_tensor *in = tw_tensor_create(TW_FLOAT32, TW_SHAPE(1, 2, 2, 3)), *results[5] = {NULL};
    for (int i = 0; i < 12; i++)
        ((float *)tw_tensor_data(in))[i] = (float)i;
    tw_output fetches[] = {y, flat, rows, channels, kept};
    assert_ok(tw_session_run(r.session, &(tw_feed){x, in}, 1, fetches, 5, results, &error));
    for (int i = 0; i < 6; i++) { /* channel 0 is x0 + 3 x1, channel 1 is 2 x0 + 4 x1, where x1 is x0 + 6 */
        float first = (float)(i + 3 * (i + 6)), second = (float)(2 * i + 4 * (i + 6));
        assert_float_equal(((float *)tw_tensor_data(results[0]))[i], first, 0);
        assert_float_equal(((float *)tw_tensor_data(results[0]))[6 + i], second, 0);
        assert_float_equal(((float *)tw_tensor_data(results[1]))[i], first + 10, 0);
        assert_float_equal(((float *)tw_tensor_data(results[1]))[6 + i], second + 20, 0);
        assert_float_equal(((float *)tw_tensor_data(results[4]))[i], first + second + 30, 0);
    }
    static const float sums[] = {96, 132, 150, 204}, of_channels[] = {228, 354};
    assert_floats_near(tw_tensor_data(results[2]), sums, 4, 0);
    assert_floats_near(tw_tensor_data(results[3]), of_channels, 2, 0);
    assert_true(tw_shape_equal(tw_tensor_shape(results[4]), TW_SHAPE(1, 1, 2, 3)));
    assert_int_equal(count_steps(&r, "Transpose"), 4); /* in; back for y, for both, for what was kept */
    for (int i = 0; i < 5; i++)
        tw_tensor_release(results[i]);
    tw_tensor_release(in);
    close_run(&r);
}

static void images_that_are_wanted_so_are_left_alone(void **state)
{
    (void)state;
    tw_error error = {0};
    run r = open_run(0, NULL);
    tw_output x = tw_placeholder(r.g, TW_FLOAT32, TW_SHAPE(1, 3, 2, 2));
    tw_output y = tw_relu(r.g, convolve(&r, "conv", x, "NHWC"));
    tw_feed_shape feed = {x, TW_SHAPE(1, 3, 2, 2)};
    assert_ok(tw_session_prepare(r.session, &feed, 1, &y, 1, &error));
    assert_int_equal(count_steps(&r, "Transpose"), 0);
    close_run(&r);
}

static void the_change_of_layout_can_be_left_out(void **state)
{
    (void)state;
    tw_error error = {0};
    run r = open_run(0, "layout");
    tw_output x = tw_placeholder(r.g, TW_FLOAT32, TW_SHAPE(1, 2, 2, 3));
    tw_output y = convolve(&r, "conv", x, "NCHW");
    tw_feed_shape feed = {x, TW_SHAPE(1, 2, 2, 3)};
    assert_fails(tw_session_prepare(r.session, &feed, 1, &y, 1, &error), TW_UNIMPLEMENTED, "conv");
    close_run(&r);
}

enum { LOOKS = 15 };

/* What programs do to images: along axes that are named in one way or another, with operands of fewer dimensions.
 * `axes` is known late. */
static void look_at(tw_graph *g, tw_output y, tw_output axes, tw_output looks[LOOKS])
{
    static const int64_t wide[] = {-1, 1};
    tw_tensor *long_axes = tw_tensor_from(TW_INT64, TW_SHAPE(2), wide);
    tw_output late[] = {y, axes}, known[] = {y, tw_constant(g, long_axes)};
    tw_output all[] = {
        tw_reduce_sum(g, y, TW_LIST(int, -1, -2), false),
        tw_reduce_max(g, y, TW_LIST(int, -2), true),
        tw_reduce_sum(g, y, TW_LIST(int, -3), false),
        tw_node_output(tw_add_node(g, "Sum", "late", late, 2, NULL, 0), 0),
        tw_node_output(tw_add_node(g, "ReverseV2", "late_reverse", late, 2, NULL, 0), 0),
        tw_node_output(tw_add_node(g, "ReverseV2", "wide_reverse", known, 2, NULL, 0), 0),
        tw_reverse(g, y, TW_LIST(int, 2)),
        tw_pad(g, y, TW_SHAPE(0, 1, 0, 2), TW_SHAPE(0, 0, 1, 0)),
        tw_mirror_pad(g, y, TW_SHAPE(0, 1, 0, 2), TW_SHAPE(0, 0, 1, 0), false),
        tw_tile(g, y, TW_SHAPE(1, 2, 1, 3)),
        tw_slice(g, y, TW_SHAPE(0, 1, 0, 1), TW_SHAPE(1, 1, 2, 2)),
        tw_add(g, y, tw_constant_floats(g, TW_SHAPE(3), TW_ARRAY(float, 1, 2, 3))),
        tw_add(g, y, tw_constant_floats(g, TW_SHAPE(2, 1, 3), TW_ARRAY(float, 1, 2, 3, 4, 5, 6))),
        tw_add(g, y, tw_constant_floats(g, TW_SHAPE(1, 2, 1, 1), TW_ARRAY(float, 1, 2))),
        tw_transpose(g, y, TW_SHAPE(0, 1, 3, 2)),
    };
    _Static_assert(sizeof all == sizeof *looks * LOOKS, "as many as are wanted");
    memcpy(looks, all, sizeof all);
    tw_tensor_release(long_axes);
}

/* What is done behind a convolution of channels first gives what it does to the same numbers where none is. */
static void what_is_done_to_images_gives_the_same_in_either_layout(void **state)
{
    static const int32_t numbers[] = {3, 1};
    (void)state;
    tw_error error = {0};
    run laid = open_run(0, NULL), plain = open_run(0, NULL);
    tw_output x = tw_placeholder(laid.g, TW_FLOAT32, TW_SHAPE(1, 2, 2, 3));
    tw_output axes[] = {tw_placeholder(laid.g, TW_INT32, TW_SHAPE(2)), tw_placeholder(plain.g, TW_INT32, TW_SHAPE(2))};
    tw_output y = convolve(&laid, "conv", x, "NCHW"), looks[LOOKS + 1];
    tw_output same = tw_placeholder(plain.g, TW_FLOAT32, TW_SHAPE(1, 2, 2, 3)), plain_looks[LOOKS];
    look_at(laid.g, y, axes[0], looks);
    looks[LOOKS] = y;
    look_at(plain.g, same, axes[1], plain_looks);
    tw_tensor *in = tw_tensor_create(TW_FLOAT32, TW_SHAPE(1, 2, 2, 3)), *results[LOOKS + 1] = {NULL};
    tw_tensor *given = tw_tensor_from(TW_INT32, TW_SHAPE(2), numbers), *expected[LOOKS] = {NULL};
    for (int i = 0; i < 12; i++)
        ((float *)tw_tensor_data(in))[i] = (float)(i * i % 7);
    tw_feed feeds[] = {{x, in}, {axes[0], given}};
    assert_ok(tw_session_run(laid.session, feeds, 2, looks, LOOKS + 1, results, &error));
    tw_feed plain_feeds[] = {{same, results[LOOKS]}, {axes[1], given}};
    assert_ok(tw_session_run(plain.session, plain_feeds, 2, plain_looks, LOOKS, expected, &error));
    for (int i = 0; i < LOOKS; i++) {
        assert_true(tw_shape_equal(tw_tensor_shape(results[i]), tw_tensor_shape(expected[i])));
        assert_floats_near(tw_tensor_data(results[i]), tw_tensor_data(expected[i]),
                           (size_t)tw_tensor_elements(expected[i]), 0);
        tw_tensor_release(results[i]);
        tw_tensor_release(expected[i]);
    }
    tw_tensor_release(results[LOOKS]);
    tw_tensor_release(given);
    tw_tensor_release(in);
    close_run(&laid);
    close_run(&plain);
}

/* A program that has images in NHWC and turns them itself, for the convolution, and back. */
static void a_programs_own_changes_of_layout_are_taken_up(void **state)
{
    (void)state;
    tw_error error = {0};
    run r = open_run(0, NULL);
    tw_output x = tw_placeholder(r.g, TW_FLOAT32, TW_SHAPE(1, 2, 3, 2)); /* NHWC */
    tw_output turned = convolve(&r, "turned", tw_transpose(r.g, x, TW_SHAPE(0, 3, 1, 2)), "NCHW");
    tw_output fetches[] = {tw_transpose(r.g, tw_relu(r.g, turned), TW_SHAPE(0, 2, 3, 1)),
                           tw_relu(r.g, convolve(&r, "plain", x, "NHWC"))};
    tw_tensor *in = tw_tensor_create(TW_FLOAT32, TW_SHAPE(1, 2, 3, 2)), *results[2] = {NULL};
    for (int i = 0; i < 12; i++)
        ((float *)tw_tensor_data(in))[i] = (float)(i - 4);
    assert_ok(tw_session_run(r.session, &(tw_feed){x, in}, 1, fetches, 2, results, &error));
    assert_floats_near(tw_tensor_data(results[0]), tw_tensor_data(results[1]), 12, 0);
    assert_int_equal(count_steps(&r, "Transpose"), 0);
    tw_tensor_release(results[0]);
    tw_tensor_release(results[1]);
    tw_tensor_release(in);
    close_run(&r);
}

/* The op with strides, windows, dilations and paddings that differ from dimension to dimension: the result in NHWC. */
static tw_output look_through(tw_graph *g, const char *op, tw_output x, tw_output filter, bool first)
{
    static const int64_t lists[4][2][8] = {{{1, 2, 1, 1}, {1, 1, 2, 1}},                          /* strides */
                                           {{1, 2, 3, 1}, {1, 1, 2, 3}},                          /* windows */
                                           {{1, 1, 2, 1}, {1, 1, 1, 2}},                          /* dilations */
                                           {{0, 0, 1, 0, 1, 2, 0, 0}, {0, 0, 0, 0, 1, 0, 1, 2}}}; /* paddings */
    bool convolves = filter.node != NULL;
    tw_attr attrs[] = {tw_attr_string("data_format", first ? "NCHW" : "NHWC"),
                       tw_attr_string("padding", "EXPLICIT"),
                       tw_attr_ints("strides", lists[0][first], 4),
                       tw_attr_ints("explicit_paddings", lists[3][first], 8),
                       convolves ? tw_attr_ints("dilations", lists[2][first], 4)
                                 : tw_attr_ints("ksize", lists[1][first], 4)};
    if (first)
        x = tw_transpose(g, x, TW_SHAPE(0, 3, 1, 2));
    tw_output y = tw_node_output(tw_add_node(g, op, first ? "first" : "last", (tw_output[]){x, filter}, 1 + convolves,
                                             attrs, 5), 0);
    return first ? tw_transpose(g, y, TW_SHAPE(0, 2, 3, 1)) : y;
}

static void lists_of_each_dimension_change_their_order_with_the_layout(void **state)
{
    (void)state;
    tw_error error = {0};
    static const float weights[2 * 3 * 2 * 2] = {1, 2, -1, 3, 0, 1, 4, -2, 1, 1, 2, 5, -3, 1, 2, 0, 1, 2, 3, -1};
    for (int pools = 0; pools < 2; pools++) {
        run r = open_run(0, NULL);
        tw_output x = tw_placeholder(r.g, TW_FLOAT32, TW_SHAPE(1, 5, 6, 2)), fetches[2], none = {0};
        tw_output filter = pools ? none : tw_constant_floats(r.g, TW_SHAPE(2, 3, 2, 2), weights);
        for (int first = 0; first < 2; first++)
            fetches[first] = look_through(r.g, pools ? "MaxPool" : "Conv2D", x, filter, first);
        assert_string_equal(tw_graph_message(r.g), "");
        tw_tensor *in = tw_tensor_create(TW_FLOAT32, TW_SHAPE(1, 5, 6, 2)), *results[2] = {NULL};
        for (int i = 0; i < 60; i++)
            ((float *)tw_tensor_data(in))[i] = (float)(i * i % 13 - 5);
        assert_ok(tw_session_run(r.session, &(tw_feed){x, in}, 1, fetches, 2, results, &error));
        assert_true(tw_shape_equal(tw_tensor_shape(results[0]), tw_tensor_shape(results[1])));
        assert_floats_near(tw_tensor_data(results[1]), tw_tensor_data(results[0]),
                           (size_t)tw_tensor_elements(results[0]), 0);
        assert_int_equal(count_steps(&r, "Transpose"), 0);
        tw_tensor_release(results[0]);
        tw_tensor_release(results[1]);
        tw_tensor_release(in);
        close_run(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network_made_for_cards_trains_as_on_channels_last),
        cmocka_unit_test(who_stays_behind_gets_the_old_layout),
        cmocka_unit_test(images_that_are_wanted_so_are_left_alone),
        cmocka_unit_test(the_change_of_layout_can_be_left_out),
        cmocka_unit_test(what_is_done_to_images_gives_the_same_in_either_layout),
        cmocka_unit_test(a_programs_own_changes_of_layout_are_taken_up),
        cmocka_unit_test(lists_of_each_dimension_change_their_order_with_the_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
