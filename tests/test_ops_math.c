/* test_ops_math.c - element-wise ops, reductions and matrix products: TensorFlow's results, and refusals. */
#include "op_testing.h"

static void math_ops_give_the_results_of_tensorflow(void **state)
{
    (void)state;
    twt_run_golden("ops_math.txt");
}

/* Of a dimension that nobody could walk along: with the loops of a kernel this test would not end. */
static void an_empty_tensor_is_done_with_at_once(void **state)
{
    static const struct {
        const char *op, *data_format;
        tw_shape x, y; /* y of rank -1: one input */
    } cases[] = {
        {"AddV2", NULL, {2, {INT64_C(1) << 40, 0}}, {1, {0}}},
        {"Mul", NULL, {8, {2, 13, 64, 64, 64, 64, 0, 1}}, {8, {2, 13, 64, 64, 64, 64, 1, 1}}},
        {"Less", NULL, {4, {1 << 30, 2, 0, 7}}, {1, {7}}},
        {"Equal", NULL, {2, {INT64_C(1) << 40, 0}}, {1, {1}}},
        {"BiasAdd", NULL, {2, {INT64_C(1) << 40, 0}}, {1, {0}}},
        {"BiasAdd", "NCHW", {3, {INT64_C(1) << 40, 3, 0}}, {1, {3}}},
        {"BiasAddGrad", "NCHW", {3, {INT64_C(1) << 40, 3, 0}}, {-1, {0}}},
        {"Relu", NULL, {2, {INT64_C(1) << 40, 0}}, {-1, {0}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_error error = {0};
        twt_op op = {.op = cases[i].op, .num_inputs = 1, .inputs = {tw_tensor_create(TW_FLOAT32, cases[i].x)}};
        if (cases[i].y.rank >= 0)
            op.inputs[op.num_inputs++] = tw_tensor_create(TW_FLOAT32, cases[i].y);
        if (cases[i].data_format)
            op.attrs[op.num_attrs++] = tw_attr_string("data_format", cases[i].data_format);
        assert_ok(twt_op_run(&op, &error));
        for (int64_t k = 0; k < tw_tensor_elements(op.outputs[0]); k++)
            assert_true(tw_tensor_value(op.outputs[0], k) == 0);
        twt_op_release(&op);
    }
}

static void what_is_no_number_is_not_converted(void **state)
{
    static const tw_dtype others[] = {TW_STRING, TW_RESOURCE};
    (void)state;
    for (int i = 0; i < 2; i++) {
        tw_graph *g = tw_graph_create();
        tw_output from = tw_placeholder(g, others[i], TW_SHAPE(2)), number = tw_scalar(g, 1);
        assert_null(tw_cast(g, from, TW_FLOAT32).node);
        assert_message(tw_graph_message(g), tw_dtype_name(others[i]));
        tw_graph_destroy(g);
        g = tw_graph_create();
        number = tw_scalar(g, 1);
        assert_null(tw_cast(g, number, others[i]).node);
        assert_message(tw_graph_message(g), tw_dtype_name(others[i]));
        tw_graph_destroy(g);
    }
}

static void what_no_memory_holds_is_refused_when_it_is_built(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_tensor *ends[] = {tw_tensor_int64(0), tw_tensor_int64(INT64_C(1) << 62), tw_tensor_int64(1)};
    tw_output from = tw_constant(g, ends[0]), to = tw_constant(g, ends[1]), step = tw_constant(g, ends[2]);
    assert_null(tw_range(g, from, to, step).node);
    for (int i = 0; i < 3; i++)
        tw_tensor_release(ends[i]);
    assert_message(tw_graph_message(g), "a range of 4611686018427387904 elements");
    tw_graph_destroy(g);
    assert_int_equal(tw_shape_elements(TW_SHAPE(INT64_C(1) << 60)), -1); /* whose bytes cannot be counted */
    assert_int_equal(tw_shape_elements(TW_SHAPE(INT64_C(1) << 58)), INT64_C(1) << 58);
    assert_int_equal(tw_shape_elements(TW_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40, 0)), -1);
    assert_int_equal(tw_shape_elements(TW_SHAPE(INT64_C(1) << 40, 0)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(math_ops_give_the_results_of_tensorflow),
        cmocka_unit_test(an_empty_tensor_is_done_with_at_once),
        cmocka_unit_test(what_is_no_number_is_not_converted),
        cmocka_unit_test(what_no_memory_holds_is_refused_when_it_is_built),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
