/* test_amx.c - gradients of filters on matrix units, where this CPU has them, against the plain kernels. */
#include "kernel_testing.h"

typedef struct filter_case {
    int64_t n, h, w, c, k, kh, kw;
    const char *padding;
} filter_case;

static const filter_case filter_cases[] = {
    {3, 12, 12, 64, 64, 5, 5, "SAME"},  {2, 24, 24, 3, 64, 5, 5, "SAME"},   {9, 7, 5, 16, 16, 3, 3, "SAME"},
    {2, 6, 9, 32, 48, 3, 2, "VALID"},   {1, 10, 10, 48, 16, 1, 1, "SAME"},  {17, 5, 6, 1, 32, 3, 3, "VALID"},
    {2, 9, 8, 5, 16, 7, 7, "SAME"},     {1, 33, 40, 16, 80, 1, 3, "VALID"}, {2, 4, 3, 16, 16, 4, 3, "VALID"},
};

/* False if the CPU has no such units. */
static bool check(const filter_case *t, int threads, bool to_float)
{
    tw_error error = {0};
    int64_t ones[] = {1, 1, 1, 1};
    tw_dtype out = to_float ? TW_FLOAT32 : TW_BFLOAT16;
    tw_attr attrs[] = {tw_attr_type("T", TW_BFLOAT16), tw_attr_ints("strides", ones, 4),
                       tw_attr_string("padding", t->padding), tw_attr_type("U", out)};
    twi_attrs list = {attrs, 4};
    tw_shape image = TW_SHAPE(t->n, t->h, t->w, t->c), filter = TW_SHAPE(t->kh, t->kw, t->c, t->k);
    twi_window window;
    assert_ok(twi_window_lay(&list, image, &filter, &window, &error));
    value x = filled(TW_BFLOAT16, image, 1), dy = filled(TW_BFLOAT16, twi_window_output(&window, image, t->k), 2);
    value sizes = make(TW_INT32, TW_SHAPE(4));
    value found[] = {make(out, filter), make(out, TW_SHAPE(t->k))};
    value expected[] = {make(out, filter), make(out, TW_SHAPE(t->k))};
    kernel_call k = {"_Conv2DBackpropFilterBias", "amx", threads, attrs, 4, (value[]){x, sizes, dy}, 3, found, 2};
    tw_status status = call(&k, &error);
    if (status == TW_OK) {
        k.kernel = "plain";
        k.outputs = expected;
        assert_ok(call(&k, &error));
        for (int i = 0; i < 2; i++)
            assert_near(&found[i], &expected[i]);
        k.op = "Conv2DBackpropFilter";
        k.kernel = "amx";
        k.num_outputs = 1;
        k.threads = 1;
        assert_ok(call(&k, &error));
        assert_memory_equal(found[0].data, expected[0].data, found[0].operand.bytes);
    }
    for (int i = 0; i < 2; i++)
        drop(&found[i]), drop(&expected[i]);
    drop(&x), drop(&dy), drop(&sizes);
    return status == TW_OK;
}

static void filter_gradients_agree_with_plain_ones_on_any_number_of_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof filter_cases / sizeof *filter_cases; i++)
        for (int threads = 1; threads <= 3; threads++)
            if (!check(&filter_cases[i], threads, threads != 2))
                skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filter_gradients_agree_with_plain_ones_on_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
