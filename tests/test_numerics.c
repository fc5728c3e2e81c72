/* test_numerics.c - the edges of docs/numerics.md: where TensorFlow's kernels differ among themselves, leave it open,
 * or are departed from. What is TensorFlow's on purpose is in tests/golden. */
#include "op_testing.h"

#include <float.h>
#include <tower/session.h>
#include <tower/train.h>

static tw_tensor *floats(tw_dtype dtype, int count, const float *values)
{
    tw_tensor *t = tw_tensor_create(dtype, TW_SHAPE(count));
    assert_non_null(t);
    for (int i = 0; i < count; i++)
        if (dtype == TW_FLOAT32)
            ((float *)t->data)[i] = values[i];
        else
            ((uint16_t *)t->data)[i] =
                dtype == TW_FLOAT16 ? tw_float_to_half(values[i]) : tw_float_to_bfloat16(values[i]);
    return t;
}

/* Output 0 by the plain and by the fastest kernel; NaN is NaN. */
static void expect(twt_op op, const double *expected)
{
    tw_error error = {0};
    for (int plain = 0; plain < 2; plain++) {
        op.plain = plain;
        assert_ok(twt_op_run(&op, &error));
        for (int64_t i = 0; i < op.outputs[0]->elements; i++) {
            double got = tw_tensor_value(op.outputs[0], i);
            if (isnan(expected[i]) ? !isnan(got) : got != expected[i])
                fail_msg("%s (%s): element %lld is %.17g, expected %.17g", op.op, op.kernel, (long long)i, got,
                         expected[i]);
        }
    }
    twt_op_release(&op);
}

#define VALUES(...) (int)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)), (float[]){__VA_ARGS__}

static void a_cast_out_of_range_gives_the_nearest_integer_and_zero_for_nan(void **state)
{
    (void)state;
    static const struct {
        tw_dtype to;
        double expected[6];
    } cases[] = {
        {TW_INT32, {0, INT32_MAX, INT32_MIN, 300, -1, 2}}, {TW_UINT8, {0, 255, 0, 255, 0, 2}},
        {TW_INT8, {0, 127, -128, 127, -1, 2}},             {TW_INT64, {0, 0x1p63, -0x1p63, 300, -1, 2}},
        {TW_BOOL, {1, 1, 1, 1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect((twt_op){.op = "Cast", .num_inputs = 1, .num_attrs = 1, .attrs = {tw_attr_type("DstT", cases[i].to)},
                        .inputs = {floats(TW_FLOAT32, VALUES(NAN, 1e20f, -INFINITY, 300, -1, 2.9f))}},
               cases[i].expected);
    tw_tensor *wide = tw_tensor_int32(300);
    expect((twt_op){.op = "Cast", .num_inputs = 1, .num_attrs = 1, .attrs = {tw_attr_type("DstT", TW_UINT8)},
                    .inputs = {wide}}, (double[]){44}); /* of integers the low bits */
}

/* The cast of `x`, which is released, by the plain kernel or the fastest. */
static tw_tensor *cast(tw_tensor *x, tw_dtype to, bool plain)
{
    tw_error error = {0};
    twt_op op = {.op = "Cast",
                 .num_inputs = 1,
                 .num_attrs = 1,
                 .attrs = {tw_attr_type("DstT", to)},
                 .inputs = {x},
                 .plain = plain};
    assert_ok(twt_op_run(&op, &error));
    tw_tensor *y = tw_tensor_retain(op.outputs[0]);
    twt_op_release(&op);
    return y;
}

static void assert_same_casts(tw_tensor *x, tw_dtype to)
{
    tw_tensor *plain = cast(tw_tensor_retain(x), to, true), *fast = cast(tw_tensor_retain(x), to, false);
    const size_t bytes = tw_dtype_size(to);
    for (int64_t i = 0; i < plain->elements; i++) {
        double a = tw_tensor_value(plain, i), b = tw_tensor_value(fast, i);
        bool same = memcmp((char *)plain->data + i * bytes, (char *)fast->data + i * bytes, bytes) == 0;
        if (!same && !(isnan(a) && isnan(b)))
            fail_msg("%s to %s: element %lld is %.17g, expected %.17g", tw_dtype_name(x->dtype), tw_dtype_name(to),
                     (long long)i, b, a);
    }
    tw_tensor_release(plain);
    tw_tensor_release(fast);
}

static void casts_of_common_types_give_the_same_bits(void **state)
{
    (void)state;
    static const tw_dtype types[] = {TW_FLOAT32, TW_FLOAT64, TW_FLOAT16, TW_BFLOAT16,
                                     TW_INT32,   TW_INT64,   TW_UINT8,   TW_BOOL};
    enum { TYPES = sizeof types / sizeof *types };
    for (int i = 0; i < TYPES * TYPES; i++) {
        tw_tensor *x =
            floats(TW_FLOAT32, VALUES(0, -0.0f, 1, -1, 0.5f, -0.5f, 2.5f, 254.9f, 255, 255.5f, 256, -127.5f, 300, 65504,
                                      65519.9f, 65520, 1e-8f, 6e-8f, 0x1p-14f, 0x1p31f, 2147483520, -0x1p31f, 0x1p63f,
                                      -0x1p63f, 9e18f, 1e30f, NAN, INFINITY, -INFINITY));
        tw_tensor *from = cast(x, types[i / TYPES], true);
        assert_same_casts(from, types[i % TYPES]);
        tw_tensor_release(from);
    }
    tw_tensor *halves = tw_tensor_create(TW_FLOAT16, TW_SHAPE(1 << 16)); /* all, and floats near each and between */
    tw_tensor *near = tw_tensor_create(TW_FLOAT32, TW_SHAPE(6 << 16)), *large = tw_tensor_create(TW_INT64, TW_SHAPE(2));
    for (int i = 0; i < 1 << 16; i++) {
        ((uint16_t *)halves->data)[i] = (uint16_t)i;
        for (int k = 0; k < 6; k++) {
            float half = tw_half_to_float((uint16_t)i), next = tw_half_to_float((uint16_t)(i + 1));
            float at = k < 3 ? half : half / 2 + next / 2;
            ((float *)near->data)[6 * i + k] = k % 3 == 0 ? at : nextafterf(at, k % 3 == 1 ? INFINITY : -INFINITY);
        }
    }
    assert_same_casts(halves, TW_FLOAT32);
    assert_same_casts(near, TW_FLOAT16);
    memcpy(large->data, (int64_t[]){(INT64_C(1) << 53) + (1 << 29) + 1, -1},
           16); /* is rounded once, as in TensorFlow */
    tw_tensor *rounded = cast(large, TW_FLOAT32, false);
    assert_true(tw_tensor_value(rounded, 0) == 0x1p53 + 0x1p30);
    tw_tensor_release(rounded);
    tw_tensor_release(halves);
    tw_tensor_release(near);
}

static double of_softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double of_elu(double x)
{
    return x < 0 ? expm1(x) : x;
}

static double of_selu(double x)
{
    return x < 0 ? expm1(x) * 1.7580993408473768599402175208123 : x * 1.0507009873554804934193349852946;
}

/* Functions of floats that have vector loops of their own, everywhere, against those of the C library. */
static void functions_of_floats_are_right_to_a_few_units_in_the_last_place(void **state)
{
    (void)state;
    enum { STEPS = 20000, EDGES = 12, COUNT = 2 * STEPS + EDGES };
    static const float edges[EDGES] = {0, -0.0f, 1, -1, 0.5f, -0.7f, 88.7f, -88.7f, NAN, INFINITY, -INFINITY, 1e-40f};
    static const struct {
        const char *op;
        double (*f)(double);
        double units;
    } cases[] = {{"Log", log, 3},    {"Erf", erf, 3},      {"Erfc", erfc, 6}, {"Softplus", of_softplus, 4},
                 {"Elu", of_elu, 2}, {"Selu", of_selu, 3}, {"Exp", exp, 3},   {"Tanh", tanh, 3},
                 {"Sin", sin, 1},    {"Cos", cos, 1},      {"Atan", atan, 3}, {"Log1p", log1p, 4},
                 {"Floor", floor, 0}, {"Ceil", ceil, 0},   {"Round", rint, 0}, {"Rint", rint, 0}};
    float *x = calloc(COUNT, sizeof *x);
    for (int i = 0; i < STEPS; i++) {
        x[i] = (float)(i - STEPS / 2) * (12.0f / STEPS);
        x[STEPS + i] = (i % 2 ? 1 : -1) * powf(10, (float)(i - STEPS / 2) * (75.0f / STEPS));
    }
    memcpy(x + 2 * STEPS, edges, sizeof edges);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        tw_error error = {0};
        twt_op op = {.op = cases[k].op, .num_inputs = 1, .inputs = {floats(TW_FLOAT32, COUNT, x)}};
        assert_ok(twt_op_run(&op, &error));
        for (int i = 0; i < COUNT; i++) {
            double got = tw_tensor_value(op.outputs[0], i), expected = cases[k].f((double)x[i]), size = fabs(expected);
            double unit = size < FLT_MIN ? FLT_MIN : nextafterf((float)size, INFINITY) - (double)(float)size;
            bool fits = isnan(expected)
                            ? isnan(got)
                            : got == (double)(float)expected || fabs(got - expected) <= cases[k].units * unit;
            if (!fits)
                fail_msg("%s(%.9g) is %.9g, expected %.9g", cases[k].op, (double)x[i], got, expected);
        }
        twt_op_release(&op);
    }
    free(x);
}

static void angles_of_two_floats_are_right_to_a_few_units_in_the_last_place_with_their_sign(void **state)
{
    (void)state;
    enum { SIDE = 100, COUNT = SIDE * SIDE };
    static const float edges[] = {0, -0.0f, 1, -1, INFINITY, -INFINITY, NAN, 1e-40f, -1e-40f, 3e38f, -3e38f, 3.3e38f};
    enum { EDGES = sizeof edges / sizeof *edges };
    float *y = calloc(COUNT, sizeof *y), *x = calloc(COUNT, sizeof *x), values[SIDE];
    tw_error error = {0};
    memcpy(values, edges, sizeof edges);
    for (int i = EDGES; i < SIDE; i++)
        values[i] = (i % 2 ? 1 : -1) * (i % 3 ? powf(10, (float)(i - 50) * 0.7f) : (float)i * 0.037f);
    for (int i = 0; i < COUNT; i++)
        y[i] = values[i / SIDE], x[i] = values[i % SIDE];
    twt_op op = {.op = "Atan2", .num_inputs = 2,
                 .inputs = {floats(TW_FLOAT32, COUNT, y), floats(TW_FLOAT32, COUNT, x)}};
    assert_ok(twt_op_run(&op, &error));
    for (int i = 0; i < COUNT; i++) {
        double got = tw_tensor_value(op.outputs[0], i), expected = atan2((double)y[i], (double)x[i]);
        double size = fabs(expected), unit = size < FLT_MIN ? FLT_MIN : ldexp(1, ilogb(size) - 23);
        if (isnan(expected) ? !isnan(got) : !(fabs(got - expected) <= 3 * unit) || signbit(got) != signbit(expected))
            fail_msg("Atan2(%.9g, %.9g) is %.9g, expected %.9g", (double)y[i], (double)x[i], got, expected);
    }
    twt_op_release(&op);
    free(x), free(y);
}

static void floats_are_divided_to_the_whole_number_below(void **state)
{
    (void)state;
    expect((twt_op){.op = "FloorDiv", .num_inputs = 2,
                    .inputs = {floats(TW_FLOAT32, VALUES(7, -7, 7, -7, 0, 1, -1, 1e30f, INFINITY, 5, 0, 0.5f)),
                               floats(TW_FLOAT32, VALUES(2, 2, -2, -2, 5, 0, 0, 3, 2, INFINITY, 0, -1))}},
           (double[]){3, -4, -4, 3, 0, INFINITY, -INFINITY, (double)(1e30f / 3), INFINITY, 0, NAN, -1});
}

static void denormals_are_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        double expected[2];
    } cases[] = {{"Ceil", {1, 0}}, {"Floor", {0, -1}}, {"Sign", {1, -1}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect((twt_op){.op = cases[i].op, .num_inputs = 1, .inputs = {floats(TW_FLOAT32, VALUES(1e-40f, -1e-40f))}},
               cases[i].expected);
    expect((twt_op){.op = "Greater", .num_inputs = 2, .inputs = {floats(TW_FLOAT32, VALUES(1e-40f)),
                                                                 floats(TW_FLOAT32, VALUES(0))}}, (double[]){1});
    expect((twt_op){.op = "Mul", .num_inputs = 2, .inputs = {floats(TW_FLOAT32, VALUES(FLT_MIN)),
                                                             floats(TW_FLOAT32, VALUES(0.5f))}}, (double[]){FLT_MIN / 2});
}

static void nothing_flows_through_a_closed_relu_not_even_nan(void **state)
{
    (void)state;
    expect((twt_op){.op = "ReluGrad", .num_inputs = 2, .inputs = {floats(TW_FLOAT32, VALUES(NAN, NAN, NAN, 1, 1)),
                                                                  floats(TW_FLOAT32, VALUES(-1, 0, 1, NAN, 2))}},
           (double[]){0, 0, NAN, 0, 1});
    expect((twt_op){.op = "Relu6Grad", .num_inputs = 2, .inputs = {floats(TW_FLOAT32, VALUES(NAN, NAN, NAN)),
                                                                   floats(TW_FLOAT32, VALUES(-1, 6, 1))}},
           (double[]){0, 0, NAN});
}

static void a_pool_begins_with_the_first_value_of_a_window_and_takes_what_is_larger(void **state)
{
    (void)state;
    static const int64_t two[] = {1, 2, 2, 1};
    tw_tensor *x = floats(TW_FLOAT32, VALUES(1, NAN, 3, 4, 5, NAN, NAN, 1, NAN, 2, 7, 1, 3, 2, 8, 1));
    x->shape = TW_SHAPE(1, 2, 8, 1);
    expect((twt_op){.op = "MaxPool", .num_inputs = 1, .inputs = {x}, .num_attrs = 3,
                    .attrs = {tw_attr_ints("ksize", two, 4), tw_attr_ints("strides", two, 4),
                              tw_attr_string("padding", "VALID")}}, (double[]){2, 7, 5, NAN});
}

static void sixteen_bits_are_rounded_once_at_the_end(void **state)
{
    (void)state;
    static const tw_dtype narrow[] = {TW_FLOAT16, TW_BFLOAT16};
    for (int i = 0; i < 2; i++)
        expect((twt_op){.op = "FloorDiv", .num_inputs = 2, .inputs = {floats(narrow[i], VALUES(87)),
                                                                      floats(narrow[i], VALUES(-0.625f))}},
               (double[]){-140});
    expect((twt_op){.op = "AddN", .num_inputs = 3, .inputs = {floats(TW_BFLOAT16, VALUES(256)),
                                                              floats(TW_BFLOAT16, VALUES(1)),
                                                              floats(TW_BFLOAT16, VALUES(1))}}, (double[]){258});
}

static void a_range_of_floats_adds_its_step_again_and_again(void **state)
{
    (void)state;
    double expected[10];
    float value = 0;
    for (int i = 0; i < 10; i++, value += 0.1f)
        expected[i] = value;
    expect((twt_op){.op = "Range", .num_inputs = 3, .inputs = {tw_tensor_float(0), tw_tensor_float(0.95f),
                                                               tw_tensor_float(0.1f)}}, expected);
}

static void the_gradient_of_a_running_product_is_nan_where_a_factor_is_zero(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *s;
    tw_output x = tw_constant_floats(g, TW_SHAPE(3), (float[]){2, 0, 3}), y = tw_cumprod(g, x, 0, false, false), dx;
    tw_tensor *got = NULL;
    tw_gradients(g, &y, 1, NULL, &x, 1, &dx);
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_ok(tw_session_run(s, NULL, 0, &dx, 1, &got, &error));
    assert_true(tw_tensor_value(got, 0) == 1 && isnan(tw_tensor_value(got, 1)) && tw_tensor_value(got, 2) == 0);
    tw_tensor_release(got);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cast_out_of_range_gives_the_nearest_integer_and_zero_for_nan),
        cmocka_unit_test(casts_of_common_types_give_the_same_bits),
        cmocka_unit_test(functions_of_floats_are_right_to_a_few_units_in_the_last_place),
        cmocka_unit_test(angles_of_two_floats_are_right_to_a_few_units_in_the_last_place_with_their_sign),
        cmocka_unit_test(floats_are_divided_to_the_whole_number_below),
        cmocka_unit_test(denormals_are_numbers),
        cmocka_unit_test(nothing_flows_through_a_closed_relu_not_even_nan),
        cmocka_unit_test(a_pool_begins_with_the_first_value_of_a_window_and_takes_what_is_larger),
        cmocka_unit_test(sixteen_bits_are_rounded_once_at_the_end),
        cmocka_unit_test(a_range_of_floats_adds_its_step_again_and_again),
        cmocka_unit_test(the_gradient_of_a_running_product_is_nan_where_a_factor_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
