/* test_ops_image.c - images and raw bytes: TensorFlow's numbers, refusals. */
#include "op_testing.h"

static void image_ops_give_the_numbers_of_tensorflow(void **state)
{
    (void)state;
    twt_run_golden("ops_image.txt");
}

static void contrast_in_half_is_that_of_floats_rounded(void **state)
{
    (void)state;
    tw_error error = {0};
    static const float values[] = {1, 4, -2.5f, 8, 0.125f, 3};
    uint16_t halves[6];
    for (int i = 0; i < 6; i++)
        halves[i] = tw_float_to_half(values[i]);
    twt_op op = {.op = "AdjustContrastv2", .num_inputs = 2};
    op.inputs[0] = tw_tensor_from(TW_FLOAT16, TW_SHAPE(3, 1, 2), halves);
    op.inputs[1] = tw_tensor_float(0.5f);
    assert_ok(twt_op_run(&op, &error));
    for (int i = 0; i < 6; i++) {
        float mean = (values[i % 2] + values[i % 2 + 2] + values[i % 2 + 4]) / 3;
        float expected = tw_half_to_float(tw_float_to_half((values[i] - mean) * 0.5f + mean));
        assert_true(fabs(tw_tensor_value(op.outputs[0], i) - expected) < 0.004);
    }
    twt_op_release(&op);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(image_ops_give_the_numbers_of_tensorflow),
        cmocka_unit_test(contrast_in_half_is_that_of_floats_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
