/* Sizes, padding and refusals of windows over images. */
#include "op_testing.h"

static twi_attrs conv_attrs(tw_attr items[5], int64_t stride, int64_t dilation, const char *padding)
{
    static int64_t strides[4], dilations[4];
    memcpy(strides, (int64_t[]){1, stride, stride, 1}, sizeof strides);
    memcpy(dilations, (int64_t[]){1, dilation, dilation, 1}, sizeof dilations);
    items[0] = tw_attr_ints("strides", strides, 4);
    items[1] = tw_attr_ints("dilations", dilations, 4);
    items[2] = tw_attr_string("padding", padding);
    return (twi_attrs){items, 3};
}

static void same_padding_puts_the_odd_cell_behind(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_attr items[5];
    twi_attrs attrs = conv_attrs(items, 2, 1, "SAME");
    twi_window w;
    tw_shape filter = TW_SHAPE(3, 2, 3, 8);
    assert_ok(twi_window_lay(&attrs, TW_SHAPE(1, 6, 7, 3), &filter, &w, &error));
    assert_int_equal(w.output[0], 3);
    assert_int_equal(w.before[0], 0);
    assert_int_equal(w.after[0], 1);
    assert_int_equal(w.output[1], 4);
    assert_int_equal(w.before[1], 0);
    assert_int_equal(w.after[1], 1);
}

static void valid_windows_stay_inside(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_attr items[5];
    twi_attrs attrs = conv_attrs(items, 3, 2, "VALID");
    twi_window w;
    tw_shape filter = TW_SHAPE(3, 1, 3, 8);
    assert_ok(twi_window_lay(&attrs, TW_SHAPE(1, 11, 7, 3), &filter, &w, &error));
    assert_int_equal(w.output[0], 3); /* a reach of 5 at 0, 3 and 6 */
    assert_int_equal(w.output[1], 3);
    assert_ok(twi_window_lay(&attrs, TW_SHAPE(1, 4, 7, 3), &filter, &w, &error));
    assert_int_equal(w.output[0], 0);
    assert_fails(twi_window_lay(&attrs, TW_SHAPE(1, 0, 7, 3), &(tw_shape){4, {9, 1, 3, 8}}, &w, &error),
                 TW_INVALID_ARGUMENT, "does not fit image of height 0");
}

static void unknown_sizes_stay_unknown(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_attr items[5];
    twi_attrs attrs = conv_attrs(items, 2, 1, "SAME");
    twi_window w;
    tw_shape unknown = TW_UNKNOWN_SHAPE;
    assert_ok(twi_window_lay(&attrs, TW_SHAPE(-1, -1, 7, 3), &unknown, &w, &error));
    assert_true(tw_shape_equal(twi_window_output(&w, TW_SHAPE(-1, -1, 7, 3), 5), TW_SHAPE(-1, -1, 4, 5)));
    attrs = conv_attrs(items, 2, 1, "VALID");
    assert_ok(twi_window_lay(&attrs, TW_SHAPE(4, 8, 8, 3), &unknown, &w, &error));
    assert_int_equal(w.output[0], -1);
}

static void explicit_padding_is_read_in_the_order_of_the_format(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_attr items[5];
    int64_t paddings[8] = {0, 0, 0, 0, 1, 2, 3, 4};
    twi_attrs attrs = conv_attrs(items, 1, 1, "EXPLICIT");
    int64_t ones[4] = {1, 1, 1, 1};
    items[0].ints = ones;
    items[3] = tw_attr_ints("explicit_paddings", paddings, 8);
    items[4] = tw_attr_string("data_format", "NCHW");
    attrs.count = 5;
    twi_window w;
    tw_shape filter = TW_SHAPE(3, 3, 2, 1);
    assert_ok(twi_window_lay(&attrs, TW_SHAPE(1, 2, 5, 6), &filter, &w, &error));
    assert_int_equal(w.before[0], 1);
    assert_int_equal(w.after[1], 4);
    assert_true(tw_shape_equal(twi_window_output(&w, TW_SHAPE(1, 2, 5, 6), 9), TW_SHAPE(1, 9, 6, 11)));
    attrs.count = 4; /* NHWC: the last pair is the channels' */
    assert_fails(twi_window_lay(&attrs, TW_SHAPE(1, 5, 6, 2), &filter, &w, &error), TW_INVALID_ARGUMENT,
                 "must be 0 for batch and channels");
}

static void bad_attributes_are_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_attr items[5];
    twi_window w;
    tw_shape filter = TW_SHAPE(3, 3, 2, 1), image = TW_SHAPE(1, 5, 5, 2);
    twi_attrs attrs = conv_attrs(items, 0, 1, "SAME");
    assert_fails(twi_window_lay(&attrs, image, &filter, &w, &error), TW_INVALID_ARGUMENT, "must be positive");
    attrs = conv_attrs(items, INT64_MAX, 1, "SAME");
    assert_fails(twi_window_lay(&attrs, image, &filter, &w, &error), TW_INVALID_ARGUMENT, "below 2^31");
    attrs = conv_attrs(items, 1, 1, "SAME");
    items[0].ints = (int64_t[]){2, 1, 1, 1};
    assert_fails(twi_window_lay(&attrs, image, &filter, &w, &error), TW_INVALID_ARGUMENT,
                 "'strides' must be 1 for batch and channels, is [2,1,1,1]");
    items[0].count = 3;
    assert_fails(twi_window_lay(&attrs, image, &filter, &w, &error), TW_INVALID_ARGUMENT, "must have 4 entries");
    attrs = conv_attrs(items, 1, 1, "SAME");
    assert_fails(twi_window_lay(&attrs, TW_SHAPE(5, 5, 2), &filter, &w, &error), TW_INVALID_ARGUMENT,
                 "[N,H,W,C], got shape [5,5,2]");
    assert_fails(twi_window_lay(&attrs, image, &(tw_shape){4, {0, 3, 2, 1}}, &w, &error), TW_INVALID_ARGUMENT,
                 "height of the window is 0");
}

static void a_pool_of_nothing_but_padding_is_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    int64_t window[4] = {1, 2, 2, 1}, strides[4] = {1, 1, 1, 1}, paddings[8] = {0, 0, 1, 1, 2, 1, 0, 0};
    tw_attr items[] = {tw_attr_ints("ksize", window, 4), tw_attr_ints("strides", strides, 4),
                       tw_attr_string("padding", "EXPLICIT"), tw_attr_ints("explicit_paddings", paddings, 8)};
    twi_attrs attrs = {items, 4};
    twi_window w;
    assert_fails(twi_window_lay(&attrs, TW_SHAPE(1, 4, 4, 1), NULL, &w, &error), TW_INVALID_ARGUMENT,
                 "must be smaller than its window: width 2");
    paddings[4] = 1;
    assert_ok(twi_window_lay(&attrs, TW_SHAPE(1, 4, 4, 1), NULL, &w, &error));
    assert_int_equal(w.output[1], 5);
}

static void shapes_of_a_convolution_must_agree(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_attr items[5];
    twi_attrs attrs = conv_attrs(items, 1, 1, "SAME");
    twi_convolution c;
    tw_shape image = TW_SHAPE(2, 5, 5, 3), filter = TW_SHAPE(3, 3, 3, 4);
    assert_ok(twi_convolution_lay(&attrs, TWI_DENSE, image, filter, TW_SHAPE(2, 5, 5, 4), &c, &error));
    assert_int_equal(c.out_channels, 4);
    assert_ok(twi_convolution_lay(&attrs, TWI_DEPTHWISE, image, filter, TW_UNKNOWN_SHAPE, &c, &error));
    assert_int_equal(c.out_channels, 12);
    assert_fails(twi_convolution_lay(&attrs, TWI_DENSE, image, filter, TW_SHAPE(2, 5, 4, 4), &c, &error),
                 TW_INVALID_ARGUMENT, "make [2,5,5,4], but the output has shape [2,5,4,4]");
    assert_fails(twi_convolution_lay(&attrs, TWI_DENSE, TW_SHAPE(2, 5, 5, 2), filter, TW_UNKNOWN_SHAPE, &c, &error),
                 TW_INVALID_ARGUMENT, "has 2 channels, filter [3,3,3,4] takes 3");
}

static void a_filter_of_fewer_channels_makes_groups_for_who_takes_them(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_attr items[5];
    twi_attrs attrs = conv_attrs(items, 1, 1, "SAME");
    twi_convolution c;
    tw_shape image = TW_SHAPE(2, 5, 5, 6), filter = TW_SHAPE(3, 3, 3, 4), any = TW_UNKNOWN_SHAPE;
    assert_ok(twi_convolution_lay(&attrs, TWI_GROUPED, image, filter, TW_SHAPE(2, 5, 5, 4), &c, &error));
    assert_int_equal(c.groups, 2);
    assert_int_equal(c.in_channels, 6);
    assert_int_equal(c.out_channels, 4);
    assert_fails(twi_convolution_lay(&attrs, TWI_DENSE, image, filter, any, &c, &error), TW_UNIMPLEMENTED,
                 "no convolution in groups (image [2,5,5,6] has 6 channels, filter [3,3,3,4] takes 3)");
    assert_fails(twi_convolution_lay(&attrs, TWI_DEPTHWISE, image, filter, any, &c, &error), TW_INVALID_ARGUMENT,
                 "has 6 channels, filter [3,3,3,4] takes 3");
    assert_ok(twi_convolution_lay(&attrs, TWI_GROUPED, any, filter, any, &c, &error));
    assert_int_equal(c.groups, -1);
    assert_int_equal(c.in_channels, -1);
    assert_ok(twi_convolution_lay(&attrs, TWI_DENSE, any, filter, any, &c, &error));
    assert_int_equal(c.groups, 1);
    assert_int_equal(c.in_channels, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_padding_puts_the_odd_cell_behind),
        cmocka_unit_test(valid_windows_stay_inside),
        cmocka_unit_test(unknown_sizes_stay_unknown),
        cmocka_unit_test(explicit_padding_is_read_in_the_order_of_the_format),
        cmocka_unit_test(bad_attributes_are_refused),
        cmocka_unit_test(a_pool_of_nothing_but_padding_is_refused),
        cmocka_unit_test(shapes_of_a_convolution_must_agree),
        cmocka_unit_test(a_filter_of_fewer_channels_makes_groups_for_who_takes_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
