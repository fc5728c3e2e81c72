/* test_gemm_conv.c - convolutions as products of matrices, where a CPU has AVX-512, against the plain kernels. */
#include "conv_testing.h"

/* Outputs that end within a tile and within a block, one to five vectors of filters and parts of one, taps that are
 * beside the image or between pixels, strides that leave pixels out. */
static const conv_case cases[] = {
    {3, 12, 12, 64, 64, 5, 5, 1, "SAME"},  {2, 32, 32, 16, 16, 3, 3, 1, "SAME"}, {2, 24, 24, 3, 80, 5, 5, 1, "SAME"},
    {1, 7, 7, 128, 200, 1, 1, 1, "VALID"}, {2, 18, 18, 3, 24, 3, 3, 2, "VALID"}, {5, 28, 28, 1, 64, 3, 3, 1, "VALID"},
    {1, 2, 2, 16, 8, 3, 3, 1, "SAME"},     {2, 7, 9, 48, 33, 3, 2, 2, "SAME"},   {2, 1, 1, 16, 32, 1, 1, 1, "VALID"},
    {1, 9, 50, 40, 17, 7, 5, 1, "SAME"},   {3, 10, 5, 16, 9, 2, 4, 1, "SAME"},   {2, 11, 11, 5, 16, 1, 1, 3, "VALID"},
    {9, 14, 14, 8, 12, 5, 5, 2, "SAME"},   {1, 1, 13, 7, 10, 1, 3, 4, "SAME"},
};

static void images_are_convolved_as_plainly_on_any_number_of_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = 1; threads <= 3; threads++) {
            int64_t strides[4];
            lab l = open_lab(&cases[i], strides);
            make_filter_constant(&l);
            bool ran = agrees("gemm", "Conv2D", &l, (value[]){l.x, l.filter}, 2, &l.dy, false, threads) &&
                       agrees("gemm", "_FusedConv2D", &l, (value[]){l.x, l.filter, l.bias}, 3, &l.dy, false, threads);
            close_lab(&l);
            if (!ran && i == 0)
                skip();
            assert_true(ran);
        }
}

static void filters_that_change_and_few_of_them_are_left_to_others(void **state)
{
    conv_case few = cases[0];
    int64_t strides[4];
    (void)state;
    lab l = open_lab(&few, strides);
    assert_false(agrees("gemm", "Conv2D", &l, (value[]){l.x, l.filter}, 2, &l.dy, false, 1));
    close_lab(&l);
    few.k = 7;
    l = open_lab(&few, strides);
    make_filter_constant(&l);
    assert_false(agrees("gemm", "Conv2D", &l, (value[]){l.x, l.filter}, 2, &l.dy, false, 1));
    close_lab(&l);
}

/* Rows of the product that end within a vector, within a panel and behind one. */
static void gradients_of_images_of_few_channels_are_as_the_plain_ones_on_any_number_of_threads(void **state)
{
    static const conv_case few[] = {
        {3, 28, 28, 1, 64, 5, 5, 2, "SAME"}, {2, 9, 8, 3, 17, 7, 7, 2, "SAME"}, {5, 10, 13, 7, 40, 3, 3, 1, "VALID"},
        {1, 11, 11, 5, 16, 1, 1, 3, "VALID"}, {2, 1, 2, 3, 8, 4, 3, 1, "SAME"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof few / sizeof *few; i++)
        for (int threads = 1; threads <= 3; threads++) {
            int64_t strides[4];
            lab l = open_lab(&few[i], strides);
            bool ran = agrees("col2im", "Conv2DBackpropInput", &l, (value[]){l.sizes, l.filter, l.dy}, 3, &l.x, false,
                              threads);
            close_lab(&l);
            if (!ran && i == 0)
                skip();
            assert_true(ran);
        }
}

/* Channels that are 5 n and 6 n and neither, taps that never meet the image. */
static void gradients_of_filters_are_as_the_plain_ones_on_any_number_of_threads(void **state)
{
    static const conv_case large[] = {
        {3, 14, 14, 64, 128, 5, 5, 2, "SAME"}, {2, 9, 11, 20, 64, 4, 4, 2, "VALID"}, {5, 6, 5, 35, 64, 5, 4, 2, "SAME"},
        {1, 2, 3, 21, 192, 7, 7, 3, "SAME"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        for (int threads = 1; threads <= 3; threads++) {
            int64_t strides[4];
            lab l = open_lab(&large[i], strides);
            value inputs[] = {l.x, l.sizes, l.dy};
            bool ran = agrees("gemm", "Conv2DBackpropFilter", &l, inputs, 3, &l.filter, false, threads) &&
                       agrees("gemm", "_Conv2DBackpropFilterBias", &l, inputs, 3, &l.filter, true, threads);
            close_lab(&l);
            if (!ran && i == 0)
                skip();
            assert_true(ran);
        }
}

static void not_a_number_passes_through_a_fused_relu(void **state)
{
    (void)state;
    if (!not_a_number_passes("gemm", &cases[0]))
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_convolved_as_plainly_on_any_number_of_threads),
        cmocka_unit_test(filters_that_change_and_few_of_them_are_left_to_others),
        cmocka_unit_test(gradients_of_images_of_few_channels_are_as_the_plain_ones_on_any_number_of_threads),
        cmocka_unit_test(gradients_of_filters_are_as_the_plain_ones_on_any_number_of_threads),
        cmocka_unit_test(not_a_number_passes_through_a_fused_relu),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
