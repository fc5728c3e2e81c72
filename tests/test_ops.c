/* test_ops.c - what graphs say about shapes and types while they are built. The rows of ops: test_op_rows.c. */
#include "testing.h"

#include <tower/ops.h>

static void expect_shape(tw_output output, tw_shape expected)
{
    char got[128], want[128];
    assert_string_equal(tw_shape_text(tw_output_shape(output), got, sizeof got),
                        tw_shape_text(expected, want, sizeof want));
}

static void shapes_are_inferred_while_building(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(-1, 4, 3)), parts[3];
    expect_shape(tw_add(g, x, tw_scalar(g, 1)), TW_SHAPE(-1, 4, 3));
    expect_shape(tw_reshape(g, x, TW_SHAPE(-1, 12)), TW_SHAPE(-1, 12));
    expect_shape(tw_reduce_mean(g, x, TW_AXES(0, -1), true), TW_SHAPE(1, 4, 1));
    expect_shape(tw_reduce_sum(g, x, NULL, 0, false), TW_SCALAR);
    expect_shape(tw_transpose(g, x, TW_SHAPE(2, 0, 1)), TW_SHAPE(3, -1, 4));
    expect_shape(tw_concat(g, (tw_output[]){x, x}, 2, 1), TW_SHAPE(-1, 8, 3));
    expect_shape(tw_pack(g, (tw_output[]){x, x}, 2, -1), TW_SHAPE(-1, 4, 3, 2));
    expect_shape(tw_slice(g, x, TW_SHAPE(0, 1, 0), TW_SHAPE(-1, 2, -1)), TW_SHAPE(-1, 2, 3));
    expect_shape(tw_shape_of(g, x), TW_SHAPE(3));
    tw_split(g, x, 2, parts, 3);
    expect_shape(parts[2], TW_SHAPE(-1, 4, 1));
    tw_strided_slice_options last = {TW_SHAPE(0, -1), TW_SHAPE(0, 0), .begin_mask = 1, .end_mask = 1,
                                     .shrink_axis_mask = 2};
    expect_shape(tw_strided_slice(g, x, last), TW_SHAPE(-1, 3));
    expect_shape(tw_matmul(g, tw_reshape(g, x, TW_SHAPE(-1, 12)), tw_zeros(g, TW_FLOAT32, TW_SHAPE(12, 10))),
                 TW_SHAPE(-1, 10));
    assert_string_equal(tw_graph_message(g), "");
    tw_graph_destroy(g);
}

static void shapes_that_do_not_fit_are_named_in_the_error(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output a = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(128, 784));
    tw_output b = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(10, 784));
    tw_output c = tw_matmul(tw_name(g, "fc1"), a, b);
    assert_null(c.node);
    assert_null(tw_add(g, c, c).node);
    assert_int_equal(tw_graph_status(g), TW_INVALID_ARGUMENT);
    assert_message(tw_graph_message(g), "MatMul 'fc1': [128,784] x [10,784]");
    tw_graph_destroy(g);
}

static void gradients_of_a_broadcast_are_summed_only_where_shapes_ask_for_it(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(-1, 10)), b = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(10));
    tw_output y = tw_reduce_sum(g, tw_add(g, x, b), NULL, 0, false), grads[2];
    tw_gradients(g, &y, 1, NULL, (tw_output[]){x, b}, 2, grads);
    assert_string_equal(tw_graph_message(g), "");
    assert_string_equal(tw_node_op(grads[0].node), "Tile");
    assert_string_equal(tw_node_op(grads[1].node), "Sum");
    expect_shape(grads[1], TW_SHAPE(10));
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_inferred_while_building),
        cmocka_unit_test(shapes_that_do_not_fit_are_named_in_the_error),
        cmocka_unit_test(gradients_of_a_broadcast_are_summed_only_where_shapes_ask_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
