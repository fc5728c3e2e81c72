/* test_winograd_conv.c - 3x3 convolutions by Winograd's method, where a CPU has AVX-512, against the plain kernels. */
#include "conv_testing.h"

#include <math.h>

/* Odd and even sides, tiles that end within a block and between two, one to eight vectors of channels and filters. */
static const conv_case cases[] = {
    {2, 32, 32, 16, 16, 3, 3, 1, "SAME"}, {3, 13, 11, 32, 16, 3, 3, 1, "SAME"}, {7, 8, 8, 64, 64, 3, 3, 1, "SAME"},
    {4, 12, 13, 16, 112, 3, 3, 1, "VALID"}, {100, 1, 2, 48, 16, 3, 3, 1, "SAME"}, {6, 9, 10, 80, 32, 3, 3, 1, "VALID"},
};

/* Of other kernels: another filter, stride, number of channels; a filter that is too large; too few tiles. */
static const conv_case refused[] = {
    {2, 32, 32, 16, 16, 5, 5, 1, "SAME"}, {2, 32, 32, 16, 16, 3, 3, 2, "SAME"}, {2, 32, 32, 8, 16, 3, 3, 1, "SAME"},
    {2, 32, 32, 16, 24, 3, 3, 1, "SAME"}, {2, 16, 16, 128, 80, 3, 3, 1, "SAME"}, {1, 16, 16, 16, 16, 3, 3, 1, "SAME"},
};

static bool forward_agrees(const lab *l, int threads)
{
    return agrees("winograd", "Conv2D", l, (value[]){l->x, l->filter}, 2, &l->dy, false, threads) &&
           agrees("winograd", "_FusedConv2D", l, (value[]){l->x, l->filter, l->bias}, 3, &l->dy, false, threads);
}

static bool backward_agrees(const lab *l, int threads)
{
    value inputs[] = {l->sizes, l->filter, l->dy};
    return agrees("winograd", "Conv2DBackpropInput", l, inputs, 3, &l->x, false, threads);
}

static void images_are_convolved_as_plainly_on_any_number_of_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = 1; threads <= 3; threads++) {
            int64_t strides[4];
            lab l = open_lab(&cases[i], strides);
            bool ran = forward_agrees(&l, threads);
            close_lab(&l);
            if (!ran && i == 0)
                skip();
            assert_true(ran);
        }
}

static void gradients_of_images_are_as_the_plain_ones_on_any_number_of_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = 1; threads <= 3; threads++) {
            int64_t strides[4];
            lab l = open_lab(&cases[i], strides);
            bool ran = backward_agrees(&l, threads);
            close_lab(&l);
            if (!ran && i == 0)
                skip();
            assert_true(ran);
        }
}

/* Of which the ones need more room than others may have, and the others few tiles. */
static void constant_filters_are_transformed_beforehand(void **state)
{
    static const conv_case large[] = {
        {2, 14, 14, 128, 80, 3, 3, 1, "SAME"}, {1, 7, 7, 144, 96, 3, 3, 1, "SAME"},
        {3, 13, 11, 32, 16, 3, 3, 1, "SAME"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        for (int threads = 1; threads <= 3; threads++) {
            int64_t strides[4];
            lab l = open_lab(&large[i], strides);
            make_filter_constant(&l);
            bool ran = forward_agrees(&l, threads);
            close_lab(&l);
            if (!ran && i == 0)
                skip();
            assert_true(ran);
        }
}

static bool filter_agrees(const lab *l, int threads)
{
    value inputs[] = {l->x, l->sizes, l->dy};
    return agrees("winograd", "Conv2DBackpropFilter", l, inputs, 3, &l->filter, false, threads) &&
           agrees("winograd", "_Conv2DBackpropFilterBias", l, inputs, 3, &l->filter, true, threads);
}

static void gradients_of_filters_are_as_the_plain_ones_on_any_number_of_threads(void **state)
{
    (void)state;
    for (size_t i = 1; i < sizeof cases / sizeof *cases; i++) /* the first has too few channels */
        for (int threads = 1; threads <= 3; threads++) {
            int64_t strides[4];
            lab l = open_lab(&cases[i], strides);
            bool ran = filter_agrees(&l, threads);
            close_lab(&l);
            if (!ran && i == 1)
                skip();
            assert_true(ran);
        }
}

static void other_convolutions_are_left_to_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        int64_t strides[4];
        lab l = open_lab(&refused[i], strides);
        assert_false(forward_agrees(&l, 1) || backward_agrees(&l, 1) || filter_agrees(&l, 1));
        close_lab(&l);
    }
}

/* Sums of 288 products of numbers that fill a float's bits; the largest sums are above 20. */
static void little_precision_is_lost(void **state)
{
    (void)state;
    int64_t strides[4];
    lab l = open_lab(&cases[1], strides);
    tw_error error = {0};
    value *drawn[] = {&l.x, &l.filter}, found = make(TW_FLOAT32, l.dy.operand.shape);
    uint32_t seed = 1;
    for (int v = 0; v < 2; v++)
        for (int64_t i = 0; i < drawn[v]->operand.elements; i++) {
            seed = seed * 1664525 + 1013904223;
            put(drawn[v], i, (float)seed * 0x1p-31f - 1);
        }
    kernel_call k = {"Conv2D", "winograd", 1, l.attrs, 4, (value[]){l.x, l.filter}, 2, &found, 1};
    bool ran = call(&k, &error) == TW_OK;
    const conv_case *t = &cases[1];
    const float *x = l.x.data, *filter = l.filter.data;
    double most = 0;
    for (int64_t i = 0; i < found.operand.elements && ran; i++) {
        int64_t filter_k = i % t->k, px = i / t->k % t->w, py = i / t->k / t->w % t->h, n = i / t->k / t->w / t->h;
        double sum = 0;
        for (int64_t cell = 0; cell < 9; cell++) {
            int64_t y = py + cell / 3 - 1, at = px + cell % 3 - 1;
            for (int64_t c = 0; c < t->c && y >= 0 && y < t->h && at >= 0 && at < t->w; c++)
                sum += (double)x[((n * t->h + y) * t->w + at) * t->c + c] * filter[(cell * t->c + c) * t->k + filter_k];
        }
        most = fmax(most, fabs(sum - get(&found, i)));
    }
    drop(&found);
    close_lab(&l);
    if (!ran)
        skip();
    if (most > 2e-5)
        fail_msg("off by %g", most);
}

static void not_a_number_passes_through_a_fused_relu(void **state)
{
    (void)state;
    if (!not_a_number_passes("winograd", &cases[0]))
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_convolved_as_plainly_on_any_number_of_threads),
        cmocka_unit_test(constant_filters_are_transformed_beforehand),
        cmocka_unit_test(gradients_of_images_are_as_the_plain_ones_on_any_number_of_threads),
        cmocka_unit_test(gradients_of_filters_are_as_the_plain_ones_on_any_number_of_threads),
        cmocka_unit_test(other_convolutions_are_left_to_others),
        cmocka_unit_test(little_precision_is_lost),
        cmocka_unit_test(not_a_number_passes_through_a_fused_relu),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
