/* test_ops_array.c - ops that make, shape, cut, join and rearrange arrays: TensorFlow's results, big arrays by several
 * threads, numbers that are known only when the step runs, and refusals. */
#include "op_testing.h"

#include "faulty_memory.h"

#include <tower/session.h>

static void array_ops_give_the_results_of_tensorflow(void **state)
{
    (void)state;
    twt_run_golden("ops_array.txt");
}

extern const twi_op twi_array_ops[];

static bool has_plain_kernel(const char *op)
{
    for (const twi_kernel *const *family = twi_cpu_kernels; *family; family++)
        for (const twi_kernel *row = *family; row->op; row++)
            if (!strcmp(row->op, op) && !strcmp(row->name, "plain"))
                return true;
    return false;
}

static void every_array_op_has_a_plain_kernel(void **state)
{
    (void)state;
    for (const twi_op *op = twi_array_ops; op->name; op++)
        if (!has_plain_kernel(op->name))
            fail_msg("%s has no plain kernel", op->name);
}

/* ---- helpers ----------------------------------------------------------------------------------------------- */

static tw_tensor *ints(tw_shape shape, const int32_t *values)
{
    return tw_tensor_from(TW_INT32, shape, values);
}

#define INTS(...) ints(TW_SHAPE(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)), (int32_t[]){__VA_ARGS__})

/* 0, 1, 2, ... */
static tw_tensor *counted(tw_shape shape)
{
    tw_tensor *tensor = tw_tensor_create(TW_FLOAT32, shape);
    assert_non_null(tensor);
    for (int64_t i = 0; i < tensor->elements; i++)
        ((float *)tensor->data)[i] = (float)i;
    return tensor;
}

static float at(const tw_tensor *tensor, int64_t i)
{
    return ((const float *)tensor->data)[i];
}

/* Runs the op with inputs whose values nobody knew before; the output has the shape that was planned. */
static tw_status run_late(twt_op *op, tw_shape planned, tw_error *error)
{
    tw_devices *devices = NULL;
    tw_graph *graph = tw_graph_create();
    tw_output inputs[TWT_MOST];
    tw_status status;
    TWI_TRY(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .no_gpus = true}, &devices, error));
    for (int i = 0; i < op->num_inputs; i++)
        inputs[i] = tw_placeholder(graph, op->inputs[i]->dtype, op->inputs[i]->shape);
    tw_node *node = tw_add_node(graph, op->op, "late", inputs, op->num_inputs, op->attrs, op->num_attrs);
    assert_string_equal(tw_graph_message(graph), "");
    for (int i = 0; i < node->num_outputs; i++) {
        assert_true(tw_shape_compatible(node->output_shapes[i], planned));
        node->output_shapes[i] = planned;
    }
    TWI_TRY(twt_run_node(op, node, devices->items[0], error));
done:
    tw_devices_destroy(devices);
    tw_graph_destroy(graph);
    return status;
}

static void expect_late(twt_op op, tw_shape planned, const float *values)
{
    tw_error error = {0};
    assert_ok(run_late(&op, planned, &error));
    for (int64_t i = 0; i < op.outputs[0]->elements; i++)
        assert_true(at(op.outputs[0], i) == values[i]);
    twt_op_release(&op);
}

static void refuse_late(twt_op op, tw_shape planned, const char *words)
{
    tw_error error = {0};
    assert_fails(run_late(&op, planned, &error), TW_INVALID_ARGUMENT, words);
    twt_op_release(&op);
}

/* ---- many elements ----------------------------------------------------------------------------------------- */

/* Three threads and one; the op's output 0 is compared with from(i): the element of `x` that belongs at i. */
static void expect_big(twt_op op, const tw_tensor *x, int64_t (*from)(int64_t i))
{
    tw_error error = {0};
    for (op.threads = 1; op.threads <= 3; op.threads += 2) {
        assert_ok(twt_op_run(&op, &error));
        for (int64_t i = 0; i < op.outputs[0]->elements; i++)
            if (at(op.outputs[0], i) != at(x, from(i)))
                fail_msg("%s by %d threads: element %lld is %g, expected %g", op.op, op.threads, (long long)i,
                         at(op.outputs[0], i), at(x, from(i)));
    }
    twt_op_release(&op);
}

static int64_t transposed(int64_t i)
{
    return i % 300 * 401 + i / 300;
}

static int64_t channels_first(int64_t i)
{
    return (i / (150 * 3 * 120) * 150 * 120 + i % (150 * 120)) * 3 + i / (150 * 120) % 3;
}

static int64_t channels_last(int64_t i)
{
    return (i / (150 * 120 * 3) * 3 + i % 3) * 150 * 120 + i / 3 % (150 * 120);
}

static int64_t tiled(int64_t i)
{
    return i / 1000 % 50 * 500 + i % 500;
}

static int64_t every_second_backwards(int64_t i)
{
    return (i / 200 + 1) * 400 - 1 - 2 * (i % 200);
}

static int64_t same_element(int64_t i)
{
    return 0 * i;
}

static void big_arrays_are_moved_alike_by_any_number_of_threads(void **state)
{
    (void)state;
    tw_tensor *x = counted(TW_SHAPE(401, 300)), *image = counted(TW_SHAPE(2, 150, 120, 3));
    x->shape = TW_SHAPE(300, 401);
    expect_big((twt_op){.op = "Transpose", .num_inputs = 2, .inputs = {tw_tensor_retain(x), INTS(1, 0)}},
               x, transposed);
    expect_big((twt_op){.op = "Transpose", .num_inputs = 2, .inputs = {tw_tensor_retain(image), INTS(0, 3, 1, 2)}},
               image, channels_first);
    tw_tensor_release(x);
    image->shape = TW_SHAPE(2, 3, 150, 120);
    expect_big((twt_op){.op = "Transpose", .num_inputs = 2, .inputs = {tw_tensor_retain(image), INTS(0, 2, 3, 1)}},
               image, channels_last);
    tw_tensor_release(image);
    x = counted(TW_SHAPE(50, 500));
    expect_big((twt_op){.op = "Tile", .num_inputs = 2, .inputs = {tw_tensor_retain(x), INTS(3, 2)}}, x, tiled);
    tw_tensor_release(x);
    x = counted(TW_SHAPE(250, 400));
    twt_op slice = {.op = "StridedSlice",
                    .num_inputs = 4,
                    .num_attrs = 2,
                    .inputs = {tw_tensor_retain(x), INTS(0, 0), INTS(250, 0), INTS(1, -2)},
                    .attrs = {tw_attr_int("begin_mask", 3), tw_attr_int("end_mask", 3)}};
    expect_big(slice, x, every_second_backwards);
    expect_big((twt_op){.op = "Fill", .num_inputs = 2, .inputs = {INTS(70000), tw_tensor_float(0)}}, x, same_element);
    tw_tensor_release(x);
}

static int64_t gathered(int64_t i)
{
    return i / 40 * 7 % 1000 * 40 + i % 40;
}

static int64_t chosen(int64_t i)
{
    return i % 3 ? i : 0;
}

static void big_arrays_are_indexed_and_chosen_from_alike_by_any_number_of_threads(void **state)
{
    (void)state;
    tw_tensor *x = counted(TW_SHAPE(1000, 40)), *rows = tw_tensor_create(TW_INT32, TW_SHAPE(2000));
    for (int i = 0; i < 2000; i++)
        ((int32_t *)rows->data)[i] = i * 7 % 1000;
    expect_big((twt_op){.op = "Gather", .num_inputs = 2, .inputs = {tw_tensor_retain(x), tw_tensor_retain(rows)}}, x,
               gathered);
    rows->shape = TW_SHAPE(2000, 1);
    expect_big((twt_op){.op = "GatherNd", .num_inputs = 2, .inputs = {tw_tensor_retain(x), rows}}, x, gathered);
    tw_tensor *condition = tw_tensor_create(TW_BOOL, TW_SHAPE(1000, 40));
    for (int i = 0; i < 40000; i++)
        ((bool *)condition->data)[i] = i % 3;
    expect_big(
        (twt_op){.op = "SelectV2", .num_inputs = 3, .inputs = {condition, tw_tensor_retain(x), tw_tensor_float(0)}}, x,
        chosen);
    tw_tensor_release(x);
}

static void rows_of_a_segment_are_added_in_order_whatever_the_number_of_threads(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_tensor *x = counted(TW_SHAPE(200, 300)), *ids = tw_tensor_create(TW_INT32, TW_SHAPE(200));
    float expected[7 * 300] = {0};
    for (int i = 0; i < 200; i++) {
        ((int32_t *)ids->data)[i] = i % 7;
        for (int k = 0; k < 300; k++) {
            ((float *)x->data)[i * 300 + k] += 0.1f;
            expected[i % 7 * 300 + k] += at(x, i * 300 + k);
        }
    }
    twt_op op = {.op = "UnsortedSegmentSum", .num_inputs = 3, .inputs = {x, ids, tw_tensor_int32(7)}};
    for (op.threads = 1; op.threads <= 3; op.threads++) {
        assert_ok(twt_op_run(&op, &error));
        assert_memory_equal(op.outputs[0]->data, expected, sizeof expected);
    }
    twt_op_release(&op);
}

/* ---- numbers that come while the step runs ----------------------------------------------------------------- */

static void where_to_cut_may_be_computed_by_the_step(void **state)
{
    (void)state;
    tw_shape two = TW_SHAPE(2);
    expect_late((twt_op){.op = "Slice", .num_inputs = 3, .inputs = {counted(TW_SHAPE(5)), INTS(3), INTS(2)}}, two,
                (float[]){3, 4});
    refuse_late((twt_op){.op = "Slice", .num_inputs = 3, .inputs = {counted(TW_SHAPE(5)), INTS(4), INTS(2)}}, two,
                "'late': axis 0: begin 4, size 2 do not lie within 5");
    refuse_late((twt_op){.op = "Slice", .num_inputs = 3, .inputs = {counted(TW_SHAPE(5)), INTS(-1), INTS(2)}}, two,
                "axis 0: begin -1, size 2");
    twt_op row = {.op = "StridedSlice",
                  .num_inputs = 4,
                  .num_attrs = 1,
                  .inputs = {counted(TW_SHAPE(3, 2)), INTS(-2), INTS(0), INTS(1)},
                  .attrs = {tw_attr_int("shrink_axis_mask", 1)}};
    expect_late(row, two, (float[]){2, 3});
    row.inputs[0] = counted(TW_SHAPE(3, 2)), row.inputs[1] = INTS(3), row.inputs[2] = INTS(4), row.inputs[3] = INTS(1);
    refuse_late(row, two, "'late': slice index 3 of dimension 0 out of bounds (size 3)");
    twt_op range = {.op = "StridedSlice", .num_inputs = 4, .inputs = {counted(TW_SHAPE(5)), INTS(0), INTS(3), INTS(1)}};
    refuse_late(range, two, "the slice has shape [3], planned was [2]");
    expect_late((twt_op){.op = "ReverseV2", .num_inputs = 2, .inputs = {counted(TW_SHAPE(2, 2)), INTS(-1)}},
                TW_SHAPE(2, 2), (float[]){1, 0, 3, 2});
}

static void pads_are_of_one_value(void **state)
{
    (void)state;
    for (int count = 0; count <= 2; count += 2) {
        tw_graph *g = tw_graph_create();
        tw_output inputs[] = {tw_placeholder(g, TW_STRING, TW_SHAPE(3)),
                              tw_constant_int32s(g, TW_SHAPE(1, 2), (int32_t[]){0, 1}),
                              tw_placeholder(g, TW_STRING, TW_SHAPE(count))};
        assert_null(tw_add_node(g, "PadV2", "padded", inputs, 3, NULL, 0));
        assert_message(tw_graph_message(g), "input 2 has shape");
        assert_message(tw_graph_message(g), "expected rank 0");
        tw_graph_destroy(g);
    }
}

static void a_shape_without_numbers_is_a_scalars_whether_it_is_fed_or_not(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output inputs[] = {tw_placeholder(g, TW_FLOAT32, TW_SHAPE(0, 3)), tw_placeholder(g, TW_INT32, TW_SHAPE(0))};
    assert_null(tw_add_node(g, "Reshape", "reshaped", inputs, 2, NULL, 0));
    assert_message(tw_graph_message(g), "cannot reshape [0,3] (0 elements) to []");
    tw_graph_destroy(g);
}

static void what_does_not_fit_the_plan_is_refused_before_anything_is_moved(void **state)
{
    (void)state;
    refuse_late((twt_op){.op = "Transpose", .num_inputs = 2, .inputs = {counted(TW_SHAPE(2, 3)), INTS(0, 1)}},
                TW_SHAPE(3, 2), "axis 0 does not have the planned size");
    refuse_late((twt_op){.op = "Transpose", .num_inputs = 2, .inputs = {counted(TW_SHAPE(2, 2)), INTS(1, 1)}},
                TW_SHAPE(2, 2), "axis 1 appears twice");
    tw_tensor *paddings = ints(TW_SHAPE(1, 2), (int32_t[]){1, 2});
    refuse_late((twt_op){.op = "Pad", .num_inputs = 2, .inputs = {counted(TW_SHAPE(3)), paddings}}, TW_SHAPE(5),
                "axis 0 of size 3 with 1 before and 2 after it, planned was size 5");
    twt_op mirror = {.op = "MirrorPad",
                     .num_inputs = 2,
                     .num_attrs = 1,
                     .inputs = {counted(TW_SHAPE(3)), ints(TW_SHAPE(1, 2), (int32_t[]){0, 3})},
                     .attrs = {tw_attr_string("mode", "REFLECT")}};
    refuse_late(mirror, TW_SHAPE(6), "axis 0 of size 3 cannot be mirrored to 0 before and 3 after it");
    twt_op join = {.op = "ConcatV2",
                   .num_inputs = 3,
                   .inputs = {counted(TW_SHAPE(2, 2)), counted(TW_SHAPE(2, 2)), tw_tensor_int32(1)}};
    refuse_late(join, TW_SHAPE(4, 2), "part 0 of shape [2,2] does not fit into [4,2] at 0 of axis 1");
    join.inputs[0] = counted(TW_SHAPE(1, 2)), join.inputs[1] = counted(TW_SHAPE(2, 2));
    join.inputs[2] = tw_tensor_int32(0);
    refuse_late(join, TW_SHAPE(4, 2), "the parts fill 3 of 4 of axis 0");
    refuse_late((twt_op){.op = "Split",
                         .num_inputs = 2,
                         .inputs = {tw_tensor_int32(2), counted(TW_SHAPE(2, 2))},
                         .num_attrs = 1,
                         .attrs = {tw_attr_int("num_split", 2)}},
                TW_SHAPE(2, 1), "axis 2, expected -2 to 1");
    refuse_late((twt_op){.op = "BroadcastGradientArgs", .num_inputs = 2, .inputs = {INTS(2, 3), INTS(2, 1)}},
                TW_SHAPE(0), "1 axes of side 1 were repeated, planned were 0");
    refuse_late((twt_op){.op = "Gather", .num_inputs = 2, .inputs = {counted(TW_SHAPE(3)), INTS(0, 3)}}, TW_SHAPE(2),
                "'late': indices[1] = 3 is not in [0, 3)");
}

/* ---- what the golden file cannot say ----------------------------------------------------------------------- */

static void sizes_beyond_int32_need_int64(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_tensor *wide = tw_tensor_create(TW_FLOAT32, TW_SHAPE(INT64_C(3) << 30, 0));
    twt_op op = {.op = "Shape", .num_inputs = 1, .inputs = {wide}};
    assert_fails(twt_op_run(&op, &error), TW_INVALID_ARGUMENT, "3221225472 is too large for int32");
    op.num_attrs = 1;
    op.attrs[0] = tw_attr_type("out_type", TW_INT64);
    assert_ok(twt_op_run(&op, &error));
    assert_int_equal(((int64_t *)op.outputs[0]->data)[0], INT64_C(3) << 30);
    twt_op_release(&op);
}

static void strings_that_find_no_memory_fail_the_step_and_leak_nothing(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    const twi_kernel *kernel;
    tw_string words[] = {{"tower", 5}, {"of", 2}, {"words", 5}};
    tw_tensor *x = tw_tensor_from(TW_STRING, TW_SHAPE(3), words), *times = INTS(2);
    twi_operand inputs[] = {twt_operand(x, false), twt_operand(times, false)};
    twi_attr type = tw_attr_type("T", TW_STRING);
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .no_gpus = true}, &devices, &error));
    for (int n = 0; n <= 6; n++) {
        tw_tensor *y = tw_tensor_create(TW_STRING, TW_SHAPE(6));
        twi_operand output = twt_operand(y, false);
        twi_prepare p = {.op = "Tile",
                         .node = "n",
                         .attrs = &(twi_attrs){&type, 1},
                         .num_inputs = 2,
                         .num_outputs = 1,
                         .inputs = inputs,
                         .outputs = &output,
                         .device = devices->items[0],
                         .threads = 1,
                         .error = &error};
        assert_ok(twi_device_prepare(devices->items[0], &p, true, &kernel));
        twi_run run = {.inputs = (const void *[]){x->data, times->data},
                       .outputs = (void *[]){y->data},
                       .input_operands = inputs,
                       .output_operands = &output,
                       .num_inputs = 2,
                       .num_outputs = 1,
                       .threads = 1,
                       .node = "n",
                       .error = &error};
        fail_allocation(n);
        tw_status status = kernel->run(&run);
        assert_int_equal(stop_failing_allocations(), n < 6);
        assert_int_equal(status, n < 6 ? TW_RESOURCE_EXHAUSTED : TW_OK);
        tw_tensor_release(y);
    }
    tw_tensor_release(x);
    tw_tensor_release(times);
    tw_devices_destroy(devices);
}

static void the_gradient_of_a_segment_sum_goes_back_to_the_rows(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(3, 2)), dx;
    tw_output inputs[] = {x, tw_constant_int32s(g, TW_SHAPE(3), (int32_t[]){0, 0, 2})};
    tw_output y = tw_node_output(tw_add_node(g, "SegmentSum", NULL, inputs, 2, NULL, 0), 0);
    assert_true(tw_shape_equal(tw_output_shape(y), TW_SHAPE(3, 2)));
    tw_gradients(g, &y, 1, NULL, &x, 1, &dx);
    assert_string_equal(tw_graph_message(g), "");
    assert_string_equal(tw_node_op(dx.node), "GatherV2");
    assert_true(tw_shape_equal(tw_output_shape(dx), TW_SHAPE(3, 2)));
    tw_graph_destroy(g);
}

/* A ragged tensor is a list whose items somebody may set (TensorFlow refuses that). */
static void splits_that_were_set_in_a_ragged_tensor_are_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_session *s;
    tw_tensor *result = NULL;
    tw_graph *g = tw_graph_create();
    tw_output splits[] = {tw_constant_int32s(g, TW_SHAPE(3), (int32_t[]){0, 2, 3}),
                          tw_constant_floats(g, TW_SHAPE(3), (float[]){1, 2, 3})};
    tw_attr make[] = {tw_attr_int("RAGGED_RANK", 1), tw_attr_bool("batched_input", false)};
    tw_output ragged = tw_node_output(tw_add_node(g, "RaggedTensorToVariant", "to", splits, 2, make, 2), 0);
    tw_output set[] = {ragged, tw_constant_int32s(g, TW_SCALAR, (int32_t[]){0}),
                       tw_constant_int32s(g, TW_SHAPE(0), (int32_t[]){0})};
    tw_output other = tw_node_output(tw_add_node(g, "TensorListSetItem", "set", set, 3, NULL, 0), 0);
    tw_attr read[] = {tw_attr_int("input_ragged_rank", 1), tw_attr_int("output_ragged_rank", 1),
                      tw_attr_type("Tvalues", TW_FLOAT32), tw_attr_type("Tsplits", TW_INT32)};
    tw_output lengths = tw_node_output(tw_add_node(g, "RaggedTensorFromVariant", "from", &other, 1, read, 4), 0);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_fails(tw_session_run(s, NULL, 0, &lengths, 1, &result, &error), TW_INVALID_ARGUMENT,
                 "element 0 of the input has row_splits of shape [0]");
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(array_ops_give_the_results_of_tensorflow),
        cmocka_unit_test(every_array_op_has_a_plain_kernel),
        cmocka_unit_test(big_arrays_are_moved_alike_by_any_number_of_threads),
        cmocka_unit_test(big_arrays_are_indexed_and_chosen_from_alike_by_any_number_of_threads),
        cmocka_unit_test(rows_of_a_segment_are_added_in_order_whatever_the_number_of_threads),
        cmocka_unit_test(where_to_cut_may_be_computed_by_the_step),
        cmocka_unit_test(pads_are_of_one_value),
        cmocka_unit_test(a_shape_without_numbers_is_a_scalars_whether_it_is_fed_or_not),
        cmocka_unit_test(what_does_not_fit_the_plan_is_refused_before_anything_is_moved),
        cmocka_unit_test(sizes_beyond_int32_need_int64),
        cmocka_unit_test(strings_that_find_no_memory_fail_the_step_and_leak_nothing),
        cmocka_unit_test(the_gradient_of_a_segment_sum_goes_back_to_the_rows),
        cmocka_unit_test(splits_that_were_set_in_a_ragged_tensor_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
