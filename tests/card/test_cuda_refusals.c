/* What becomes of nodes that a card's kernel refuses once their shapes are known: they move to the CPU where soft
 * placement may move them, and what rewrites made of several is left apart. On a card that is not there (card.h). */
#include "testing.h"

#include "card.h"
#include "grouped_training.h"
#include "planned_nodes.h"

#include <math.h>
#include <tower/tower.h>

enum { CHANNELS = 5000 }; /* more than a card's local response normalization takes */

#define REASON "LRN of more than 4096 channels"

static tw_devices *devices;

static tw_output pixels(tw_graph *g)
{
    tw_tensor *values = tw_tensor_create(TW_FLOAT32, TW_SHAPE(1, 2, 2, CHANNELS));
    float *to = tw_tensor_data(values);
    for (int i = 0; i < 4 * CHANNELS; i++)
        to[i] = (float)(i % 17) / 8 - 1;
    tw_output x = tw_relu(g, tw_constant(g, values)); /* what a constant is made of is not folded */
    tw_tensor_release(values);
    return x;
}

/* A ReLU, perhaps a pool, and the normalization called "lrn". */
static tw_output build(tw_graph *g, const char *device, bool pools)
{
    tw_output x = {0};
    TW_DEVICE(g, "%s", device) {
        x = pixels(g);
        if (pools)
            x = tw_max_pool(tw_name(g, "pool"), x, &(tw_pool_options){.window = {2, 2}, .stride = {2, 2}});
        x = tw_lrn(tw_name(g, "lrn"), x, 4, 1, 0.1f, 0.75f);
    }
    return x;
}

static tw_session *open_session(tw_graph *g, bool soft)
{
    tw_error error = {0};
    tw_session *s;
    assert_string_equal(tw_graph_message(g), "");
    tw_session_options options = {.devices = devices, .allow_soft_placement = soft, .disable = "fold"};
    assert_ok(tw_session_create(g, &options, &s, &error));
    return s;
}

static tw_tensor *fetch(tw_session *s, tw_output output)
{
    tw_error error = {0};
    tw_tensor *value = NULL;
    assert_ok(tw_session_run(s, NULL, 0, &output, 1, &value, &error));
    return value;
}

static void assert_on(tw_session *s, const tw_node *node, const char *type)
{
    assert_non_null(strstr(tw_session_device(s, node), type));
}

static void assert_same_as_on_the_cpu(tw_session *s, tw_output output, bool pools)
{
    tw_graph *g = tw_graph_create();
    tw_output expected = build(g, "/cpu:0", pools);
    tw_session *cpu = open_session(g, false);
    tw_tensor *a = fetch(s, output), *b = fetch(cpu, expected);
    assert_int_equal(tw_tensor_elements(a), tw_tensor_elements(b));
    assert_floats_near(tw_tensor_data(a), tw_tensor_data(b), (size_t)tw_tensor_elements(b), 1e-6);
    tw_tensor_release(a);
    tw_tensor_release(b);
    tw_session_destroy(cpu);
    tw_graph_destroy(g);
}

static void a_refused_node_moves_and_its_parts_stay(void **state)
{
    (void)state;
    for (int pools = 0; pools < 2; pools++) {
        tw_graph *g = tw_graph_create();
        tw_output y = build(g, "/gpu:0", pools);
        tw_session *s = open_session(g, true);
        assert_same_as_on_the_cpu(s, y, pools);
        assert_on(s, y.node, "CPU:0");
        assert_on(s, tw_node_input(y.node, 0).node, "GPU:0"); /* the ReLU, or the pool, which is not fused now */
        assert_false(plans_have(s, "_MaxPoolLRN"));
        assert_same_as_on_the_cpu(s, y, pools);        /* by the same plan */
        assert_int_equal(planned_plans(s), 1);
        tw_session_destroy(s);
        tw_graph_destroy(g);
    }
}

static void the_move_is_told_in_the_kernels_words(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output y = build(g, "/gpu:0", false);
    tw_session *s = open_session(g, true);
    tw_moves *moves;
    tw_explanation *why;
    assert_ok(tw_session_moves(s, &moves, &error));
    assert_int_equal(moves->num_nodes, 0); /* nothing is known of shapes yet */
    tw_moves_destroy(moves);
    assert_ok(tw_session_prepare(s, NULL, 0, &y, 1, &error));

    assert_ok(tw_session_moves(s, &moves, &error));
    assert_int_equal(moves->num_nodes, 1);
    assert_string_equal(moves->groups[0].op, "LRN");
    assert_int_equal(moves->groups[0].obstacle, TW_OBSTACLE_NO_KERNEL);
    assert_string_equal(moves->groups[0].refusal, REASON);
    assert_int_equal(moves->groups[0].bytes, 4 * CHANNELS * sizeof(float));
    char *table = tw_moves_table(moves, false);
    assert_message(table, "the kernel there refuses LRN of float: " REASON);
    tw_free(table);
    tw_moves_destroy(moves);

    assert_ok(tw_session_explain(s, y.node, &why, &error));
    assert_int_equal(why->rule, TW_PLACED_SOFTLY);
    assert_ptr_equal(why->obstacles[0], y.node);
    assert_string_equal(why->refusal, REASON);
    assert_message(why->sentence, "but its kernel refuses LRN of float (" REASON "); soft placement chose");
    assert_message(why->rejected[0].device, "GPU:0");
    assert_string_equal(why->rejected[0].refusal, REASON);
    tw_explanation_destroy(why);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void nothing_asked_for_is_told_too(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output y = build(g, "", false);
    tw_session *s = open_session(g, true);
    assert_same_as_on_the_cpu(s, y, false);
    assert_on(s, y.node, "CPU:0");
    assert_message(tw_session_why(s, y.node),
                   "nothing was asked for, and the kernel of a GPU refuses LRN of float (" REASON);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void without_soft_placement_the_refusal_is_the_error(void **state)
{
    (void)state;
    for (int pools = 0; pools < 2; pools++) {
        tw_graph *g = tw_graph_create();
        tw_output y = build(g, "/gpu:0", pools);
        tw_session *s = open_session(g, false);
        tw_error error = {0};
        assert_fails(tw_session_prepare(s, NULL, 0, &y, 1, &error), TW_UNIMPLEMENTED,
                     "device:GPU:0 has no kernel for LRN of type float (node 'lrn'): " REASON);
        tw_output before = tw_node_input(y.node, 0);
        tw_tensor_release(fetch(s, before)); /* the session goes on */
        tw_session_destroy(s);
        tw_graph_destroy(g);
    }
}

/* Where the parts of a fused node are taken, nothing moves: soft placement is not asked. */
static void a_refused_fused_node_is_left_apart(void **state)
{
    (void)state;
    const float numbers[] = {-1, 2, 3};
    tw_graph *g = tw_graph_create();
    tw_output y = {0};
    tw_tensor *nothing = tw_tensor_create(TW_FLOAT32, TW_SHAPE(2, 0)),
              *none = tw_tensor_create(TW_FLOAT32, TW_SHAPE(0, 3));
    tw_tensor *bias = tw_tensor_from(TW_FLOAT32, TW_SHAPE(3), numbers);
    TW_DEVICE(g, "/gpu:0")
    y = tw_relu(g, tw_bias_add(g, tw_matmul(g, tw_constant(g, nothing), tw_constant(g, none)), tw_constant(g, bias)));
    tw_session *s = open_session(g, false);
    tw_tensor *value = fetch(s, y);
    for (int i = 0; i < 6; i++)
        assert_true(tw_tensor_value(value, i) == fmax(numbers[i % 3], 0));
    assert_false(plans_have(s, "_FusedMatMul"));
    assert_true(plans_have(s, "MatMul"));
    tw_tensor_release(nothing);
    tw_tensor_release(none);
    tw_tensor_release(bias);
    tw_tensor_release(value);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* Once refused is refused, when the graph has grown and is placed again too. */
static void what_was_refused_is_remembered(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_moves *moves;
    tw_graph *g = tw_graph_create();
    tw_output y = build(g, "/gpu:0", false), more = {0};
    tw_session *s = open_session(g, true);
    tw_tensor_release(fetch(s, y));
    TW_DEVICE(g, "/gpu:0")
        more = tw_relu(g, y);
    tw_tensor_release(fetch(s, more));
    assert_on(s, y.node, "CPU:0");
    assert_on(s, more.node, "GPU:0");
    assert_ok(tw_session_moves(s, &moves, &error));
    assert_int_equal(moves->num_nodes, 1);
    tw_moves_destroy(moves);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* Convolutions in groups are the CPU's: no kernel of a card takes one for what it is not. */
static void convolutions_in_groups_move_and_train_as_on_the_cpu(void **state)
{
    (void)state;
    float expected[GROUPED_STEPS], losses[GROUPED_STEPS];
    grouped_train(devices, &(grouped_run){"/cpu:0"}, expected);
    for (int apart = 0; apart < 2; apart++) {
        grouped_train(devices, &(grouped_run){"/gpu:0", .apart = apart}, losses);
        assert_floats_near(losses, expected, GROUPED_STEPS, 1e-5);
    }
}

/* What could be mended is no refusal: it would be a bad surprise if convolutions went to the CPU for it. With a
 * libcudnn.so that is none. */
static void a_library_that_is_missing_moves_nothing(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_session *s;
    tw_graph *g = tw_graph_create();
    tw_output y = {0};
    tw_tensor *filter = tw_tensor_create(TW_FLOAT32, TW_SHAPE(1, 1, CHANNELS, 1));
    memset(tw_tensor_data(filter), 0, tw_tensor_bytes(filter));
    TW_DEVICE(g, "/gpu:0")
        y = tw_conv2d(g, pixels(g), tw_constant(g, filter), NULL);
    s = open_session(g, true);
    assert_fails(tw_session_prepare(s, NULL, 0, &y, 1, &error), TW_UNAVAILABLE, "device:GPU:0: cuDNN cannot be used: ");
    assert_on(s, y.node, "GPU:0");
    tw_tensor_release(filter);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

int main(int count, char **words)
{
    const struct CMUnitTest without_cudnn[] = {cmocka_unit_test(a_library_that_is_missing_moves_nothing)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_node_moves_and_its_parts_stay),
        cmocka_unit_test(the_move_is_told_in_the_kernels_words),
        cmocka_unit_test(nothing_asked_for_is_told_too),
        cmocka_unit_test(without_soft_placement_the_refusal_is_the_error),
        cmocka_unit_test(a_refused_fused_node_is_left_apart),
        cmocka_unit_test(what_was_refused_is_remembered),
        cmocka_unit_test(convolutions_in_groups_move_and_train_as_on_the_cpu),
    };
    tw_error error;
    assert_ok(tw_devices_create(NULL, &devices, &error));
    bool lacks = count > 1 && strcmp(words[1], "without-cudnn") == 0;
    int failed = lacks ? cmocka_run_group_tests(without_cudnn, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
    tw_devices_destroy(devices);
    return failed;
}
