/* test_direct_conv.c - convolutions on the registers of AVX2, where this CPU has no wider ones, against the plain
 * kernels. */
#include "conv_testing.h"

static const conv_case cases[] = {
    {3, 12, 12, 64, 64, 5, 5, 1, "SAME"},  {2, 32, 32, 16, 16, 3, 3, 1, "SAME"},  {2, 24, 24, 3, 64, 5, 5, 1, "SAME"},
    {17, 8, 8, 64, 32, 3, 3, 1, "SAME"},   {2, 18, 18, 32, 64, 3, 3, 2, "VALID"}, {5, 28, 28, 1, 64, 3, 3, 1, "VALID"},
    {1, 2, 2, 16, 16, 3, 3, 1, "SAME"},    {2, 7, 9, 48, 16, 3, 2, 2, "SAME"},    {2, 1, 1, 16, 32, 1, 1, 1, "VALID"},
    {1, 9, 200, 48, 16, 7, 5, 1, "SAME"},  {3, 10, 5, 16, 48, 2, 4, 1, "SAME"},   {2, 11, 11, 5, 16, 1, 1, 3, "VALID"},
};

static void images_are_convolved_as_plainly_on_any_number_of_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = 1; threads <= 3; threads++) {
            int64_t strides[4];
            lab l = open_lab(&cases[i], strides);
            bool ran = agrees("direct", "Conv2D", &l, (value[]){l.x, l.filter}, 2, &l.dy, false, threads) &&
                       agrees("direct", "_FusedConv2D", &l, (value[]){l.x, l.filter, l.bias}, 3, &l.dy, false, threads);
            close_lab(&l);
            if (!ran)
                skip();
        }
}

static void gradients_of_filters_are_as_the_plain_ones_on_any_number_of_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = 1; threads <= 3; threads++) {
            int64_t strides[4];
            lab l = open_lab(&cases[i], strides);
            value inputs[] = {l.x, l.sizes, l.dy};
            bool ran = agrees("direct", "Conv2DBackpropFilter", &l, inputs, 3, &l.filter, false, threads) &&
                       agrees("direct", "_Conv2DBackpropFilterBias", &l, inputs, 3, &l.filter, true, threads);
            close_lab(&l);
            if (!ran)
                skip();
        }
}

static void gradients_of_images_are_as_the_plain_ones_on_any_number_of_threads(void **state)
{
    (void)state;
    int ran = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = 1; threads <= 3; threads++) {
            int64_t strides[4];
            lab l = open_lab(&cases[i], strides);
            ran += agrees("direct", "Conv2DBackpropInput", &l, (value[]){l.sizes, l.filter, l.dy}, 3, &l.x, false,
                          threads);
            close_lab(&l);
        }
    if (!ran)
        skip();
    assert_int_equal(ran, 3 * 7); /* stride 1 and images of 16 n channels */
}

static void not_a_number_passes_through_a_fused_relu(void **state)
{
    (void)state;
    if (!not_a_number_passes("direct", &cases[1]))
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_convolved_as_plainly_on_any_number_of_threads),
        cmocka_unit_test(gradients_of_filters_are_as_the_plain_ones_on_any_number_of_threads),
        cmocka_unit_test(gradients_of_images_are_as_the_plain_ones_on_any_number_of_threads),
        cmocka_unit_test(not_a_number_passes_through_a_fused_relu),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
