/* test_direct_conv.c - convolutions on the registers of AVX2, where this CPU has no wider ones, against the plain
 * kernels. */
#include "kernel_testing.h"

#include "tensor/window.h"

typedef struct conv_case {
    int64_t n, h, w, c, k, kh, kw, stride;
    const char *padding;
} conv_case;

static const conv_case cases[] = {
    {3, 12, 12, 64, 64, 5, 5, 1, "SAME"},  {2, 32, 32, 16, 16, 3, 3, 1, "SAME"},  {2, 24, 24, 3, 64, 5, 5, 1, "SAME"},
    {17, 8, 8, 64, 32, 3, 3, 1, "SAME"},   {2, 18, 18, 32, 64, 3, 3, 2, "VALID"}, {5, 28, 28, 1, 64, 3, 3, 1, "VALID"},
    {1, 2, 2, 16, 16, 3, 3, 1, "SAME"},    {2, 7, 9, 48, 16, 3, 2, 2, "SAME"},    {2, 1, 1, 16, 32, 1, 1, 1, "VALID"},
    {1, 9, 200, 48, 16, 7, 5, 1, "SAME"},  {3, 10, 5, 16, 48, 2, 4, 1, "SAME"},   {2, 11, 11, 5, 16, 1, 1, 3, "VALID"},
};

typedef struct lab {
    tw_attr attrs[5];
    value x, filter, bias, dy, sizes;
} lab;

static lab open_lab(const conv_case *t, int64_t strides[4])
{
    tw_error error = {0};
    tw_shape image = TW_SHAPE(t->n, t->h, t->w, t->c), filter = TW_SHAPE(t->kh, t->kw, t->c, t->k);
    strides[0] = strides[3] = 1;
    strides[1] = strides[2] = t->stride;
    lab l = {.attrs = {tw_attr_type("T", TW_FLOAT32), tw_attr_ints("strides", strides, 4),
                       tw_attr_string("padding", t->padding), tw_attr_type("U", TW_FLOAT32),
                       tw_attr_bool("relu", true)}}; /* the last for fused ones only */
    twi_attrs list = {l.attrs, 5};
    twi_window window;
    assert_ok(twi_window_lay(&list, image, &filter, &window, &error));
    l.x = filled(TW_FLOAT32, image, 1);
    l.filter = filled(TW_FLOAT32, filter, 2);
    l.bias = filled(TW_FLOAT32, TW_SHAPE(t->k), 3);
    l.dy = filled(TW_FLOAT32, twi_window_output(&window, image, t->k), 4);
    l.sizes = make(TW_INT32, TW_SHAPE(4));
    return l;
}

static void close_lab(lab *l)
{
    drop(&l->x), drop(&l->filter), drop(&l->bias), drop(&l->dy), drop(&l->sizes);
}

/* False if this CPU is not one for these kernels. `like` has the output's shape; bias: there is a second output. */
static bool agrees(const char *op, const lab *l, value *inputs, int num_inputs, const value *like, bool has_bias,
                   int threads)
{
    tw_error error = {0};
    value found[2], expected[2];
    found[0] = make(TW_FLOAT32, like->operand.shape), expected[0] = make(TW_FLOAT32, like->operand.shape);
    found[1] = make(TW_FLOAT32, l->bias.operand.shape), expected[1] = make(TW_FLOAT32, l->bias.operand.shape);
    kernel_call k = {op, "direct", threads, l->attrs, *op == '_' ? 5 : 4, inputs, num_inputs, found, has_bias ? 2 : 1};
    tw_status status = call(&k, &error);
    if (status == TW_OK) {
        k.kernel = "plain";
        k.outputs = expected;
        assert_ok(call(&k, &error));
        for (int i = 0; i < k.num_outputs; i++)
            assert_near(&found[i], &expected[i]);
        k.kernel = "direct"; /* once more, alone: to the same bits */
        k.outputs = expected;
        k.threads = 1;
        assert_ok(call(&k, &error));
        for (int i = 0; i < k.num_outputs; i++)
            assert_memory_equal(found[i].data, expected[i].data, found[i].operand.bytes);
    }
    for (int i = 0; i < 2; i++)
        drop(&found[i]), drop(&expected[i]);
    return status == TW_OK;
}

static void images_are_convolved_as_plainly_on_any_number_of_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = 1; threads <= 3; threads++) {
            int64_t strides[4];
            lab l = open_lab(&cases[i], strides);
            bool ran = agrees("Conv2D", &l, (value[]){l.x, l.filter}, 2, &l.dy, false, threads) &&
                       agrees("_FusedConv2D", &l, (value[]){l.x, l.filter, l.bias}, 3, &l.dy, false, threads);
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
            bool ran = agrees("Conv2DBackpropFilter", &l, inputs, 3, &l.filter, false, threads) &&
                       agrees("_Conv2DBackpropFilterBias", &l, inputs, 3, &l.filter, true, threads);
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
            ran += agrees("Conv2DBackpropInput", &l, (value[]){l.sizes, l.filter, l.dy}, 3, &l.x, false, threads);
            close_lab(&l);
        }
    if (!ran)
        skip();
    assert_int_equal(ran, 3 * 7); /* stride 1 and images of 16 n channels */
}

static void not_a_number_passes_through_a_fused_relu(void **state)
{
    (void)state;
    int64_t strides[4];
    lab l = open_lab(&cases[1], strides);
    tw_error error = {0};
    value out = make(TW_FLOAT32, l.dy.operand.shape);
    put(&l.x, 0, NAN);
    kernel_call k = {"_FusedConv2D", "direct", 1, l.attrs, 5, (value[]){l.x, l.filter, l.bias}, 3, &out, 1};
    bool ran = call(&k, &error) == TW_OK;
    if (ran)
        assert_true(isnan(get(&out, 0)));
    drop(&out);
    close_lab(&l);
    if (!ran)
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
