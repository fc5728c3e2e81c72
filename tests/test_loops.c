/* test_loops.c - the CPU's own vector loops: against the plain kernels, against each other, on any number of threads;
 * and the arithmetic of loops on a card that a host can do too. */
#include "kernel_testing.h"

#include "device/cpu/plain/products.h"
#include "device/cpu/vector/gemm.h"
#include "device/cpu/vector/loops.h"
#include "device/cuda/divide.cuh"

/* ---- kernels against plain ones ---------------------------------------------------------------------------- */

/* Runs an op on the fast kernel and on the plain one; outputs must agree, and one thread must give the bits of
 * three. */
static void compare(const char *op, const char *kernel, const tw_attr *attrs, int num_attrs, value *inputs,
                    int num_inputs, value *outputs, int num_outputs)
{
    tw_error error = {0};
    value expected[MOST_VALUES], alone[MOST_VALUES];
    for (int i = 0; i < num_outputs; i++) {
        expected[i] = make(outputs[i].operand.dtype, outputs[i].operand.shape);
        alone[i] = make(outputs[i].operand.dtype, outputs[i].operand.shape);
    }
    kernel_call k = {op, kernel, 3, attrs, num_attrs, inputs, num_inputs, outputs, num_outputs};
    assert_ok(call(&k, &error));
    k.kernel = "plain";
    k.outputs = expected;
    assert_ok(call(&k, &error));
    k.kernel = kernel;
    k.outputs = alone;
    k.threads = 1;
    assert_ok(call(&k, &error));
    for (int i = 0; i < num_outputs; i++) {
        assert_near(&outputs[i], &expected[i]);
        assert_memory_equal(outputs[i].data, alone[i].data, outputs[i].operand.bytes);
        drop(&expected[i]);
        drop(&alone[i]);
    }
}

typedef struct tail_case {
    int64_t n, h, w, c;
    int64_t size, stride;
    const char *padding;
    int64_t radius;
    float beta;
} tail_case;

static const tail_case tail_cases[] = {
    {2, 8, 8, 64, 3, 2, "SAME", 4, 0.75f}, {3, 7, 5, 19, 3, 2, "SAME", 4, 0.75f}, {1, 6, 6, 16, 2, 2, "VALID", 2, 0.5f},
    {2, 9, 9, 3, 3, 3, "VALID", 5, 1.f},   {1, 5, 5, 40, 3, 1, "SAME", 1, 0.6f},  {1, 7, 7, 5, 2, 3, "SAME", 0, 0.75f},
};

static void check_tails(const tail_case *t, tw_dtype dtype)
{
    tw_error error = {0};
    int64_t size[] = {1, t->size, t->size, 1}, stride[] = {1, t->stride, t->stride, 1};
    tw_attr attrs[] = {tw_attr_type("T", dtype), tw_attr_ints("ksize", size, 4), tw_attr_ints("strides", stride, 4),
                       tw_attr_string("padding", t->padding), tw_attr_int("depth_radius", t->radius),
                       tw_attr_float("bias", 1), tw_attr_float("alpha", 0.3f), tw_attr_float("beta", t->beta),
                       tw_attr_bool("relu", true), tw_attr_int("height", t->h), tw_attr_int("width", t->w)};
    const int num = sizeof attrs / sizeof *attrs;
    twi_attrs list = {attrs, num};
    tw_shape image = TW_SHAPE(t->n, t->h, t->w, t->c);
    twi_window window;
    assert_ok(twi_window_lay(&list, image, NULL, &window, &error));
    tw_shape small = twi_window_output(&window, image, t->c);

    value x = filled(dtype, image, 1), dy = filled(dtype, small, 2), dx_given = filled(dtype, image, 3);
    value y = make(dtype, small), pooled = make(dtype, small), argmax = make(TW_UINT8, small);
    value normalized = make(dtype, image), dx = make(dtype, image);

    compare("MaxPool", "vector", attrs, num, &x, 1, &pooled, 1);
    compare("MaxPoolGrad", "vector", attrs, num, (value[]){x, pooled, dy}, 3, &dx, 1);
    compare("LRN", "vector", attrs, num, &x, 1, &normalized, 1);
    compare("LRNGrad", "vector", attrs, num, (value[]){dx_given, x, normalized}, 3, &dx, 1);

    compare("_MaxPoolLRN", "fused", attrs, num, &x, 1, (value[]){y, pooled, argmax}, 3);
    compare("_MaxPoolLRNGrad", "fused", attrs, num, (value[]){dy, pooled, argmax}, 3, &dx, 1);
    compare("_LRNMaxPool", "fused", attrs, num, &x, 1, (value[]){y, argmax}, 2);
    compare("_LRNMaxPoolGrad", "fused", attrs, num, (value[]){dy, x, argmax}, 3, &dx, 1);

    value *all[] = {&x, &dy, &dx_given, &y, &pooled, &argmax, &normalized, &dx};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        drop(all[i]);
}

static void pools_and_normalizations_agree_with_plain_loops(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tail_cases / sizeof *tail_cases; i++)
        check_tails(&tail_cases[i], TW_FLOAT32);
}

static void so_they_do_in_bfloat16(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tail_cases / sizeof *tail_cases; i++)
        check_tails(&tail_cases[i], TW_BFLOAT16);
}

/* The fused ops against the ops they stand for, on the plain kernels of those. */
static void fused_tails_are_the_chains_they_stand_for(void **state)
{
    (void)state;
    const tail_case *t = &tail_cases[1];
    tw_error error = {0};
    int64_t size[] = {1, 3, 3, 1}, stride[] = {1, 2, 2, 1};
    tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_ints("ksize", size, 4), tw_attr_ints("strides", stride, 4),
                       tw_attr_string("padding", "SAME"), tw_attr_int("depth_radius", t->radius),
                       tw_attr_float("bias", 1), tw_attr_float("alpha", 0.3f), tw_attr_float("beta", t->beta),
                       tw_attr_bool("relu", true), tw_attr_int("height", t->h), tw_attr_int("width", t->w)};
    tw_shape image = TW_SHAPE(t->n, t->h, t->w, t->c), small = TW_SHAPE(t->n, 4, 3, t->c);
    value before = filled(TW_FLOAT32, image, 1), dy = filled(TW_FLOAT32, small, 2), x = make(TW_FLOAT32, image);
    value pooled = make(TW_FLOAT32, small), y = make(TW_FLOAT32, small), argmax = make(TW_UINT8, small);
    value normalized = make(TW_FLOAT32, image), dpooled = make(TW_FLOAT32, small), dnormalized = make(TW_FLOAT32, image);
    value dx = make(TW_FLOAT32, image), masked = make(TW_FLOAT32, image), got = make(TW_FLOAT32, image);
    value fused_y[] = {make(TW_FLOAT32, small), make(TW_FLOAT32, small), argmax};
    value fused_z[] = {make(TW_FLOAT32, small), argmax};

    /* Relu, MaxPool, LRN */
    assert_ok(call(&(kernel_call){"Relu", "plain", 2, attrs, 11, &before, 1, &x, 1}, &error));
    assert_ok(call(&(kernel_call){"MaxPool", "plain", 2, attrs, 11, &x, 1, &pooled, 1}, &error));
    assert_ok(call(&(kernel_call){"LRN", "plain", 2, attrs, 11, &pooled, 1, &y, 1}, &error));
    assert_ok(call(&(kernel_call){"_MaxPoolLRN", "fused", 2, attrs, 11, &x, 1, fused_y, 3}, &error));
    assert_near(&fused_y[0], &y);
    assert_near(&fused_y[1], &pooled);
    assert_ok(call(&(kernel_call){"LRNGrad", "plain", 2, attrs, 11, (value[]){dy, pooled, y}, 3, &dpooled, 1}, &error));
    assert_ok(call(&(kernel_call){"MaxPoolGrad", "plain", 2, attrs, 11, (value[]){x, pooled, dpooled}, 3, &dx, 1},
                   &error));
    assert_ok(call(&(kernel_call){"ReluGrad", "plain", 2, attrs, 11, (value[]){dx, x}, 2, &masked, 1}, &error));
    assert_ok(call(&(kernel_call){"_MaxPoolLRNGrad", "fused", 2, attrs, 11, (value[]){dy, pooled, argmax}, 3, &got, 1},
                   &error));
    assert_near(&got, &masked);

    /* Relu, LRN, MaxPool */
    assert_ok(call(&(kernel_call){"LRN", "plain", 2, attrs, 11, &x, 1, &normalized, 1}, &error));
    assert_ok(call(&(kernel_call){"MaxPool", "plain", 2, attrs, 11, &normalized, 1, &y, 1}, &error));
    assert_ok(call(&(kernel_call){"_LRNMaxPool", "fused", 2, attrs, 11, &x, 1, fused_z, 2}, &error));
    assert_near(&fused_z[0], &y);
    assert_ok(call(&(kernel_call){"MaxPoolGrad", "plain", 2, attrs, 11, (value[]){normalized, y, dy}, 3, &dnormalized, 1},
                   &error));
    assert_ok(call(&(kernel_call){"LRNGrad", "plain", 2, attrs, 11, (value[]){dnormalized, x, normalized}, 3, &dx, 1},
                   &error));
    assert_ok(call(&(kernel_call){"ReluGrad", "plain", 2, attrs, 11, (value[]){dx, x}, 2, &masked, 1}, &error));
    assert_ok(call(&(kernel_call){"_LRNMaxPoolGrad", "fused", 2, attrs, 11, (value[]){dy, x, argmax}, 3, &got, 1},
                   &error));
    assert_near(&got, &masked);

    value *all[] = {&before, &dy, &x, &pooled, &y, &argmax, &normalized, &dpooled, &dnormalized, &dx, &masked, &got,
                    &fused_y[0], &fused_y[1], &fused_z[0]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        drop(all[i]);
}

static void activations_and_biases_agree_with_plain_loops(void **state)
{
    (void)state;
    static const tw_shape shapes[] = {{2, {50, 64}}, {4, {2, 3, 5, 7}}, {2, {700, 150}}, {2, {1, 1}}, {1, {33}}};
    for (int d = 0; d < 2; d++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            tw_dtype dtype = d ? TW_BFLOAT16 : TW_FLOAT32;
            tw_attr attrs[] = {tw_attr_type("T", dtype)};
            tw_shape channels = {1, {shapes[i].dims[shapes[i].rank - 1]}};
            value x = filled(dtype, shapes[i], 1), dy = filled(dtype, shapes[i], 2), y = make(dtype, shapes[i]);
            value bias = filled(dtype, channels, 3), db = make(dtype, channels);
            put(&x, 0, NAN);
            compare("ReluGrad", "vector", attrs, 1, (value[]){dy, x}, 2, &y, 1);
            put(&x, 0, -0.f);
            compare("Relu", "vector", attrs, 1, &x, 1, &y, 1);
            if (shapes[i].rank > 1) {
                compare("BiasAdd", "vector", attrs, 1, (value[]){x, bias}, 2, &y, 1);
                compare("BiasAddGrad", "vector", attrs, 1, &dy, 1, &db, 1);
            }
            value loss = make(dtype, TW_SCALAR);
            compare("L2Loss", "vector", attrs, 1, &dy, 1, &loss, 1);
            drop(&x), drop(&dy), drop(&y), drop(&bias), drop(&db), drop(&loss);
        }
}

static void batch_norms_agree_with_plain_loops(void **state)
{
    (void)state;
    static const tw_shape shapes[] = {{4, {2, 9, 8, 24}}, {4, {1, 1, 1, 5}}, {4, {3, 20, 20, 80}}};
    for (int d = 0; d < 2; d++)
        for (int training = 0; training < 2; training++)
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                tw_dtype dtype = d ? TW_BFLOAT16 : TW_FLOAT32;
                tw_shape c = TW_SHAPE(shapes[i].dims[3]);
                tw_attr attrs[] = {tw_attr_type("T", dtype), tw_attr_type("U", TW_FLOAT32),
                                   tw_attr_float("epsilon", 0.001f), tw_attr_bool("is_training", training)};
                value x = filled(dtype, shapes[i], 1), dy = filled(dtype, shapes[i], 2), y = make(dtype, shapes[i]);
                value scale = filled(TW_FLOAT32, c, 3), offset = filled(TW_FLOAT32, c, 4);
                value mean = filled(TW_FLOAT32, c, 5), variance = make(TW_FLOAT32, c), empty = make(TW_FLOAT32, TW_SHAPE(0));
                for (int64_t k = 0; k < c.dims[0]; k++)
                    put(&variance, k, 0.5f + (float)k / 16);
                value moments[4] = {make(TW_FLOAT32, c), make(TW_FLOAT32, c), make(TW_FLOAT32, c), make(TW_FLOAT32, c)};
                value dscale = make(TW_FLOAT32, c), doffset = make(TW_FLOAT32, c);
                value none[] = {make(TW_FLOAT32, TW_SCALAR), make(TW_FLOAT32, TW_SCALAR)};
                compare("FusedBatchNormV3", "vector", attrs, 4, (value[]){x, scale, offset, mean, variance}, 5,
                        (value[]){y, moments[0], moments[1], moments[2], moments[3], empty}, 6);
                compare("FusedBatchNormGradV3", "vector", attrs, 4,
                        (value[]){dy, x, scale, moments[2], moments[3], empty}, 6,
                        (value[]){y, dscale, doffset, none[0], none[1]}, 5);
                value *all[] = {&x, &dy, &y, &scale, &offset, &mean, &variance, &empty, &moments[0], &moments[1],
                                &moments[2], &moments[3], &dscale, &doffset, &none[0], &none[1]};
                for (size_t k = 0; k < sizeof all / sizeof *all; k++)
                    drop(all[k]);
            }
}

/* The chain of plain kernels a ReLU behind a batch norm stands for, with and without a side: `inputs` are x, scale,
 * offset, mean, variance, side; outputs of the gradient dx, dscale, doffset, dside. */
/* Numbers far enough apart to be on either side of 0 and of 6. */
static value spread_out(tw_dtype dtype, tw_shape shape, unsigned seed)
{
    value v = filled(dtype, shape, seed);
    for (int64_t i = 0; i < v.operand.elements; i++)
        put(&v, i, (float)get(&v, i) * 9);
    return v;
}

static void other_rectifiers_agree_with_plain_loops(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 7, 64, 2 * TWI_CHUNK + 19};
    static const char *const ops[] = {"Relu6", "LeakyRelu"}, *const gradients[] = {"Relu6Grad", "LeakyReluGrad"};
    for (int i = 0; i < 16; i++) {
        tw_dtype dtype = i & 1 ? TW_BFLOAT16 : TW_FLOAT32;
        tw_attr attrs[] = {tw_attr_type("T", dtype), tw_attr_float("alpha", 0.3f)};
        tw_shape shape = TW_SHAPE(sizes[i / 4]);
        value x = spread_out(dtype, shape, 3), dy = filled(dtype, shape, 4), y = make(dtype, shape);
        compare(ops[i / 2 % 2], "vector", attrs, 2, &x, 1, &y, 1);
        compare(gradients[i / 2 % 2], "vector", attrs, 2, (value[]){dy, x}, 2, &y, 1);
        drop(&x), drop(&dy), drop(&y);
    }
}

#define FUNCTION_NAME(op, expression) #op,
static const char *const unary_functions[] = {TWI_UNARY_FUNCTIONS(FUNCTION_NAME)};
static const char *const binary_functions[] = {TWI_BINARY_FUNCTIONS(FUNCTION_NAME)};

static const char *const unary_of_doubles[] = {TWI_UNARY_FUNCTIONS_OF_DOUBLES(FUNCTION_NAME)};
static const char *const binary_of_doubles[] = {TWI_BINARY_FUNCTIONS_OF_DOUBLES(FUNCTION_NAME)};

static void make_positive(value *x)
{
    for (int64_t i = 0; i < x->operand.elements; i++)
        put(x, i, fabsf((float)get(x, i)) + 0.1f);
}

static void functions_agree_with_plain_loops(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 7, 64, 2 * TWI_CHUNK + 19, 0, 35, 35};
    static const tw_dtype types[] = {TW_FLOAT32, TW_FLOAT32,  TW_FLOAT32,  TW_FLOAT32,
                                     TW_FLOAT32, TW_BFLOAT16, TW_BFLOAT16, TW_FLOAT16};
    for (size_t i = 0; i < sizeof unary_functions / sizeof *unary_functions * 8; i++) {
        const char *op = unary_functions[i / 8];
        tw_attr attr = tw_attr_type("T", types[i % 8]);
        value x = spread_out(types[i % 8], TW_SHAPE(sizes[i % 8]), 3), y = make(types[i % 8], TW_SHAPE(sizes[i % 8]));
        if (strstr(op, "qrt") || strncmp(op, "Log", 3) == 0)
            make_positive(&x);
        compare(op, "vector", &attr, 1, &x, 1, &y, 1);
        drop(&x), drop(&y);
    }
}

static void functions_of_two_agree_with_plain_loops(void **state)
{
    (void)state;
    static const tw_shape shapes[][3] = {
        {{0, {0}}, {0, {0}}, {0, {0}}},
        {{1, {2 * TWI_CHUNK + 19}}, {1, {2 * TWI_CHUNK + 19}}, {1, {2 * TWI_CHUNK + 19}}},
        {{2, {5, 37}}, {0, {0}}, {2, {5, 37}}},
        {{0, {0}}, {1, {33}}, {1, {33}}},
        {{3, {4, 300, 17}}, {2, {300, 1}}, {3, {4, 300, 17}}},
        {{3, {4, 1, 17}}, {3, {1, 300, 17}}, {3, {4, 300, 17}}},
        {{2, {600, 1}}, {1, {19}}, {2, {600, 19}}},
        {{2, {0, 3}}, {1, {3}}, {2, {0, 3}}},
    };
    enum { OF_FLOATS = sizeof binary_functions / sizeof *binary_functions };
    for (size_t i = 0; i < (OF_FLOATS + sizeof binary_of_doubles / sizeof *binary_of_doubles) * 8; i++) {
        bool is_double = i / 8 >= OF_FLOATS;
        const char *op = is_double ? binary_of_doubles[i / 8 - OF_FLOATS] : binary_functions[i / 8];
        tw_dtype dtype = is_double ? TW_FLOAT64 : i % 8 == 2 ? TW_FLOAT16 : i % 8 == 6 ? TW_BFLOAT16 : TW_FLOAT32;
        tw_attr attr = tw_attr_type("T", dtype);
        const tw_shape *s = shapes[i % 8];
        if (strstr(op, "Grad") && i % 8 > 1) /* these do not broadcast */
            continue;
        value x = spread_out(dtype, s[0], 3), y = spread_out(dtype, s[1], 4), z = make(dtype, s[2]);
        if (strstr(op, "Div"))
            make_positive(&y);
        compare(op, "vector", &attr, 1, (value[]){x, y}, 2, &z, 1);
        drop(&x), drop(&y), drop(&z);
    }
}

/* What a function gives at the ends of its range, and of what is no number. */
static void functions_are_right_where_numbers_end(void **state)
{
    (void)state;
    static const float ends[] = {0, -0.f, 1e-30f, -1e-30f, 1e-4f, 0.59f, -0.61f, 9, -9, 80, -80, 86, -86, 88.7f, 88.8f, 200,
                                 -200, INFINITY, -INFINITY, NAN};
    enum { ENDS = sizeof ends / sizeof *ends };
    tw_attr attr = tw_attr_type("T", TW_FLOAT32);
    tw_error error = {0};
    value x = make(TW_FLOAT32, TW_SHAPE(ENDS)), y = make(TW_FLOAT32, TW_SHAPE(ENDS)), plain = make(TW_FLOAT32, TW_SHAPE(ENDS));
    memcpy(x.data, ends, sizeof ends);
    for (size_t i = 0; i < sizeof unary_functions / sizeof *unary_functions; i++) {
        kernel_call k = {unary_functions[i], "vector", 1, &attr, 1, &x, 1, &y, 1};
        assert_ok(call(&k, &error));
        k.kernel = "plain";
        k.outputs = &plain;
        assert_ok(call(&k, &error));
        for (int e = 0; e < ENDS; e++) {
            float got = ((float *)y.data)[e], wanted = ((float *)plain.data)[e];
            bool same = isnan(wanted) ? isnan(got)
                                      : got == wanted || fabsf(got - wanted) <= 4e-7f * fabsf(wanted) + 1.2e-38f;
            if (!same || (!isnan(wanted) && wanted == 0 && signbit(got) != signbit(wanted)))
                fail_msg("%s(%g) is %.9g, expected %.9g", unary_functions[i], ends[e], got, wanted);
        }
    }
    drop(&x), drop(&y), drop(&plain);
}

static long double sigmoid_of(long double x)
{
    return 1 / (1 + expl(-x));
}

static long double softplus_of(long double x)
{
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

static long double elu_of(long double x)
{
    return x < 0 ? expm1l(x) : x;
}

static long double selu_of(long double x)
{
    return x < 0 ? expm1l(x) * 1.7580993408473768599L : x * 1.0507009873554804934L;
}

static long double relu_of(long double x)
{
    return x <= 0 ? 0 : x;
}

static long double relu6_of(long double x)
{
    return x <= 0 ? 0 : x > 6 ? 6 : x;
}

static long double rsqrt_of(long double x)
{
    return 1 / sqrtl(x);
}

/* By how many units in the last place a double is off; infinities and what is no number are as they are, or are not. */
static long double units_off(double got, long double wanted)
{
    double rounded = (double)wanted;
    if (isnan(rounded) || isinf(rounded) || isinf(got) || isnan(got))
        return (isnan(rounded) && isnan(got)) || got == rounded ? 0 : INFINITY;
    int exponent = ilogb(rounded) < -1022 || rounded == 0 ? -1022 : ilogb(rounded);
    return rounded == 0 && signbit(got) != signbit(rounded) ? INFINITY : fabsl(got - wanted) / ldexpl(1, exponent - 52);
}

/* Numbers of ordinary sizes, of every size there is, and those where something begins or ends. */
static void fill_with_all_sizes(double *x, int count)
{
    static const double ends[] = {0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
                                  -1.7976931348623157e308, 709.78271289338397, 709.78271289338409, -745.13321910194111,
                                  -745.13321910194122, -708.4, 36.8, -36.8, 0.5, 1, -1, -1.0000000000000002, 0x1p52,
                                  0x1p52 - 0.5, 0x1p-53, 0.41421356237309503, 0.41421356237309509, 2.5, -1.5,
                                  INFINITY, -INFINITY, NAN};
    enum { ENDS = sizeof ends / sizeof *ends };
    uint64_t random = 1;
    memcpy(x, ends, sizeof ends);
    for (int i = ENDS; i < count; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        double ordinary = ((double)(random >> 11) / 0x1p52 - 1) * (i & 2 ? 1 : 40);
        memcpy(&x[i], &random, sizeof random);
        if (i & 1 || isnan(x[i]))
            x[i] = ordinary;
    }
}

/* Against the C library's long doubles; how far off they were is said of each in vector/doubles.h. */
static void functions_of_doubles_are_right_to_a_few_units(void **state)
{
    static const struct {
        const char *op;
        long double (*right)(long double);
        long double units;
    } functions[] = {
        {"Exp", expl, 1},         {"Expm1", expm1l, 2},    {"Log", logl, 1},   {"Log1p", log1pl, 2},
        {"Tanh", tanhl, 3},       {"Sigmoid", sigmoid_of, 3}, {"Atan", atanl, 2}, {"Softplus", softplus_of, 3},
        {"Elu", elu_of, 2},       {"Selu", selu_of, 3},    {"Sqrt", sqrtl, 0.5L}, {"Rsqrt", rsqrt_of, 1.5L},
        {"Relu", relu_of, 0},     {"Relu6", relu6_of, 0},
        {"Floor", floorl, 0},     {"Ceil", ceill, 0},      {"Round", rintl, 0}, {"Rint", rintl, 0},
    };
    enum { COUNT = 20000, FUNCTIONS = sizeof functions / sizeof *functions };
    tw_attr attr = tw_attr_type("T", TW_FLOAT64);
    tw_error error = {0};
    value x = make(TW_FLOAT64, TW_SHAPE(COUNT)), y = make(TW_FLOAT64, TW_SHAPE(COUNT));
    const double *from = x.data, *got = y.data;
    (void)state;
    assert_int_equal(FUNCTIONS, sizeof unary_of_doubles / sizeof *unary_of_doubles);
    fill_with_all_sizes(x.data, COUNT);
    for (int f = 0; f < FUNCTIONS; f++) {
        kernel_call k = {functions[f].op, "vector", 1, &attr, 1, &x, 1, &y, 1};
        assert_ok(call(&k, &error));
        for (int i = 0; i < COUNT; i++) {
            long double units = units_off(got[i], functions[f].right(from[i]));
            if (units > functions[f].units)
                fail_msg("%s(%a) is %a, expected %La, off by %Lg units", functions[f].op, from[i], got[i],
                         functions[f].right(from[i]), units);
        }
    }
    drop(&x), drop(&y);
}

static void angles_of_doubles_are_right_to_two_units(void **state)
{
    enum { COUNT = 20000 };
    static const double ends[] = {0, -0.0, 1, -1, INFINITY, -INFINITY, 5e-324, -1.7976931348623157e308, NAN};
    enum { ENDS = sizeof ends / sizeof *ends };
    tw_attr attr = tw_attr_type("T", TW_FLOAT64);
    tw_error error = {0};
    tw_shape shape = TW_SHAPE(COUNT);
    value x = make(TW_FLOAT64, shape), y = make(TW_FLOAT64, shape), z = make(TW_FLOAT64, shape);
    double *ys = y.data, *xs = x.data;
    (void)state;
    fill_with_all_sizes(ys, COUNT);
    for (int i = 0; i < COUNT; i++)
        xs[i] = i < ENDS * ENDS ? ends[i / ENDS] : ys[(i * 7919) % COUNT];
    for (int i = 0; i < ENDS * ENDS; i++)
        ys[i] = ends[i % ENDS];
    kernel_call k = {"Atan2", "vector", 1, &attr, 1, (value[]){y, x}, 2, &z, 1};
    assert_ok(call(&k, &error));
    for (int i = 0; i < COUNT; i++) {
        long double units = units_off(((double *)z.data)[i], atan2l(ys[i], xs[i]));
        if (units > 2)
            fail_msg("Atan2(%a, %a) is %a, off by %Lg units", ys[i], xs[i], ((double *)z.data)[i], units);
    }
    drop(&x), drop(&y), drop(&z);
}

/* Channel c of what has its channels last; a shape stays, but that it is of one channel. */
static value one_channel(const value *all, int64_t c)
{
    tw_shape shape = all->operand.shape;
    if (all->operand.dtype == TW_INT32) {
        value sizes = make(TW_INT32, shape);
        memcpy(sizes.data, all->data, all->operand.bytes);
        ((int32_t *)sizes.data)[shape.dims[0] - 1] = 1;
        return sizes;
    }
    int64_t channels = shape.dims[shape.rank - 1];
    shape.dims[shape.rank - 1] = 1;
    value one = make(all->operand.dtype, shape);
    for (int64_t i = 0; i < one.operand.elements; i++)
        put(&one, i, (float)get(all, i * channels + c));
    return one;
}

/* Channels are taken in blocks, which the team shares: more of them than one block has are as each is by itself. */
static void channels_of_volumes_know_nothing_of_each_other(void **state)
{
    enum { CHANNELS = 19 };
    static const int64_t size[] = {1, 2, 3, 2, 1}, strides[] = {1, 1, 2, 2, 1};
    static const int64_t ones[] = {1, 1, 1, 1}, rates[] = {1, 2, 1, 1};
    const tw_attr pool[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_ints("ksize", size, 5),
                            tw_attr_ints("strides", strides, 5), tw_attr_string("padding", "SAME")};
    const tw_attr image[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_ints("strides", ones, 4),
                             tw_attr_ints("rates", rates, 4), tw_attr_string("padding", "SAME")};
    const tw_shape large = TW_SHAPE(2, 3, 5, 4, CHANNELS), small = TW_SHAPE(2, 3, 3, 2, CHANNELS);
    const tw_shape picture = TW_SHAPE(2, 5, 4, CHANNELS), taps = TW_SHAPE(3, 2, CHANNELS);
    const struct {
        const char *op;
        const tw_attr *attrs;
        int num_inputs;
        tw_shape inputs[3], output;
    } cases[] = {
        {"MaxPool3D", pool, 1, {large}, small},
        {"MaxPool3DGrad", pool, 3, {large, small, small}, large},
        {"MaxPool3DGradGrad", pool, 3, {large, small, large}, small},
        {"AvgPool3D", pool, 1, {large}, small},
        {"AvgPool3DGrad", pool, 2, {TW_SHAPE(5), small}, large},
        {"Dilation2D", image, 2, {picture, taps}, picture},
        {"Dilation2DBackpropInput", image, 3, {picture, taps, picture}, picture},
        {"Dilation2DBackpropFilter", image, 3, {picture, taps, picture}, taps},
    };
    tw_error error = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        value inputs[3], out = make(TW_FLOAT32, cases[i].output);
        for (int k = 0; k < cases[i].num_inputs; k++) {
            inputs[k] = cases[i].inputs[k].rank == 1 ? make(TW_INT32, TW_SHAPE(5))
                                                     : filled(TW_FLOAT32, cases[i].inputs[k], (unsigned)k + 1);
            for (int d = 0; d < 5 && cases[i].inputs[k].rank == 1; d++)
                ((int32_t *)inputs[k].data)[d] = (int32_t)large.dims[d];
        }
        kernel_call all = {cases[i].op, "plain", 3, cases[i].attrs, 4, inputs, cases[i].num_inputs, &out, 1};
        assert_ok(call(&all, &error));
        for (int64_t c = 0; c < CHANNELS; c++) {
            value channel[3], wanted = one_channel(&out, c), alone = make(TW_FLOAT32, wanted.operand.shape);
            for (int k = 0; k < cases[i].num_inputs; k++)
                channel[k] = one_channel(&inputs[k], c);
            kernel_call one = {cases[i].op, "plain", 1, cases[i].attrs, 4, channel, cases[i].num_inputs, &alone, 1};
            assert_ok(call(&one, &error));
            assert_memory_equal(alone.data, wanted.data, wanted.operand.bytes);
            for (int k = 0; k < cases[i].num_inputs; k++)
                drop(&channel[k]);
            drop(&wanted), drop(&alone);
        }
        for (int k = 0; k < cases[i].num_inputs; k++)
            drop(&inputs[k]);
        drop(&out);
    }
}

/* Rows that end elsewhere than what is marked at a time, of each size of element; of floats -0 is zero, too. */
static void places_that_are_set_are_found_in_their_order(void **state)
{
    static const tw_dtype types[] = {TW_FLOAT32, TW_FLOAT64, TW_FLOAT16, TW_BFLOAT16, TW_BOOL,
                                     TW_INT16,   TW_INT32,   TW_INT64,   TW_COMPLEX64};
    static const int64_t sizes[][3] = {{1, 1, 5000}, {1, 45, 137}, {3, 45, 37}};
    tw_error error = {0};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types * 3; i++) {
        int rank = (int)(i % 3) + 1;
        const int64_t *dims = sizes[i % 3];
        tw_shape shape = {.rank = rank};
        memcpy(shape.dims, dims + 3 - rank, sizeof *dims * (size_t)rank);
        tw_tensor *x = tw_tensor_create(types[i / 3], shape);
        assert_non_null(x);
        size_t size = tw_dtype_size(x->dtype), found = 0;
        bool is_float = i / 3 < 4;
        for (int64_t e = 0; e < x->elements; e++) { /* 0, or the last byte's least bit; or, of floats, -0 */
            memset((char *)x->data + (size_t)e * size, 0, size);
            ((uint8_t *)x->data)[(size_t)(e + 1) * size - 1] = e % 7 == 3 ? 1 : e % 7 == 5 && is_float ? 0x80 : 0;
        }
        tw_attr attr = tw_attr_type("T", x->dtype);
        twt_op op = {.op = "Where", .num_inputs = 1, .num_attrs = 1, .attrs = {attr}, .inputs = {x}};
        assert_ok(twt_op_run(&op, &error));
        const int64_t *places = op.outputs[0]->data;
        for (int64_t e = 3; e < dims[0] * dims[1] * dims[2]; e += 7, found++)
            for (int64_t k = rank - 1, rest = e; k >= 0; rest /= shape.dims[k--])
                assert_int_equal(places[(int64_t)found * rank + k], rest % shape.dims[k]);
        assert_int_equal(op.outputs[0]->elements, (int64_t)found * rank);
        twt_op_release(&op);
    }
}

static void negatives_of_zeros_have_the_other_sign(void **state)
{
    (void)state;
    tw_attr attr = tw_attr_type("T", TW_FLOAT32);
    tw_error error = {0};
    float zeros[] = {0, -0.f, 0}, negatives[3];
    value x = make(TW_FLOAT32, TW_SHAPE(3)), y = make(TW_FLOAT32, TW_SHAPE(3));
    memcpy(x.data, zeros, sizeof zeros);
    static const char *const kernels[] = {"plain", "vector"};
    for (int i = 0; i < 2; i++) {
        assert_ok(call(&(kernel_call){"Neg", kernels[i], 1, &attr, 1, &x, 1, &y, 1}, &error));
        memcpy(negatives, y.data, sizeof negatives);
        for (int e = 0; e < 3; e++)
            assert_int_equal(!signbit(negatives[e]), !!signbit(zeros[e]));
    }
    drop(&x), drop(&y);
}

static void sums_are_those_of_plain_loops_to_the_bit(void **state)
{
    (void)state;
    static const struct sum_case {
        tw_shape shape;
        int num_axes;
        int32_t axes[3];
    } cases[] = {
        {{1, {5000}}, 1, {0}},        {{2, {300, 150}}, 1, {0}},          {{2, {30, 150}}, 1, {1}},
        {{3, {32, 20, 128}}, 1, {1}}, {{3, {32, 20, 128}}, 2, {0, 1}},    {{3, {6, 20, 37}}, 2, {0, 2}},
        {{3, {6, 20, 5}}, 1, {-1}},   {{4, {3, 20, 7, 70}}, 2, {0, 2}},   {{4, {3, 20, 1, 70}}, 3, {0, 2, 3}},
        {{2, {1, 19}}, 1, {1}},       {{3, {3, 1, 19}}, 2, {0, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases * 2; i++) {
        const struct sum_case *t = &cases[i / 2];
        const char *op = i % 2 ? "Mean" : "Sum";
        tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_type("Tidx", TW_INT32)};
        tw_tensor *axes = tw_tensor_create(TW_INT32, TW_SHAPE(t->num_axes));
        memcpy(tw_tensor_data(axes), t->axes, (size_t)t->num_axes * sizeof *t->axes);
        value inputs[] = {spread_out(TW_FLOAT32, t->shape, 3), make(TW_INT32, TW_SHAPE(t->num_axes))};
        memcpy(inputs[1].data, t->axes, (size_t)t->num_axes * sizeof *t->axes);
        inputs[1].operand.value = axes;
        bool reduced[4] = {false};
        tw_shape out = {0};
        for (int k = 0; k < t->num_axes; k++)
            reduced[t->axes[k] < 0 ? t->axes[k] + t->shape.rank : t->axes[k]] = true;
        for (int k = 0; k < t->shape.rank; k++)
            if (!reduced[k])
                out.dims[out.rank++] = t->shape.dims[k];
        for (int64_t k = 0; k < inputs[0].operand.elements; k++)
            ((float *)inputs[0].data)[k] += 1e-6f * (float)k;
        value y = make(TW_FLOAT32, out), expected = make(TW_FLOAT32, out);
        tw_error error = {0};
        for (int threads = 1; threads <= 3; threads += 2) {
            kernel_call k = {op, "vector", threads, attrs, 2, inputs, 2, &y, 1};
            assert_ok(call(&k, &error));
            k.kernel = "plain";
            k.outputs = &expected;
            assert_ok(call(&k, &error));
            assert_memory_equal(y.data, expected.data, y.operand.bytes);
        }
        tw_tensor_release(axes);
        drop(&inputs[0]), drop(&inputs[1]), drop(&y), drop(&expected);
    }
}

typedef struct depthwise_case {
    int64_t n, h, w, c, size, stride, dilation;
    const char *padding;
} depthwise_case;

static void depthwise_convolutions_agree_with_plain_loops(void **state)
{
    (void)state;
    static const depthwise_case cases[] = {
        {2, 8, 8, 64, 3, 1, 1, "SAME"}, {1, 9, 7, 19, 3, 2, 1, "SAME"},  {2, 11, 6, 37, 5, 2, 1, "VALID"},
        {1, 5, 5, 3, 3, 1, 2, "SAME"},  {3, 12, 10, 16, 3, 1, 4, "SAME"}, {1, 3, 2, 33, 7, 1, 1, "SAME"},
        {1, 4, 4, 16, 1, 3, 1, "VALID"},
    };
    tw_error error = {0};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const depthwise_case *d = &cases[i / 2];
        tw_dtype dtype = i & 1 ? TW_BFLOAT16 : TW_FLOAT32;
        int64_t strides[] = {1, d->stride, d->stride, 1}, dilations[] = {1, d->dilation, d->dilation, 1};
        tw_attr attrs[] = {tw_attr_type("T", dtype), tw_attr_ints("strides", strides, 4),
                           tw_attr_ints("dilations", dilations, 4), tw_attr_string("padding", d->padding)};
        twi_attrs list = {attrs, 4};
        twi_window window;
        tw_shape image = TW_SHAPE(d->n, d->h, d->w, d->c), filter = TW_SHAPE(d->size, d->size, d->c, 1);
        assert_ok(twi_window_lay(&list, image, &filter, &window, &error));
        value in[] = {filled(dtype, image, 1), filled(dtype, filter, 2)};
        value y = make(dtype, twi_window_output(&window, image, d->c));
        compare("DepthwiseConv2dNative", "vector", attrs, 4, in, 2, &y, 1);
        drop(&in[0]), drop(&in[1]), drop(&y);
    }
}

/* Of numbers as large as logits are, and of some that leave nothing; labels of either width. */
static void softmaxes_of_many_classes_agree_with_plain_loops(void **state)
{
    (void)state;
    static const int64_t classes[] = {64, 79, 256, 1001, 5000};
    for (int i = 0; i < 10; i++) {
        int64_t rows = 5, count = classes[i / 2];
        tw_dtype wide = i & 1 ? TW_INT64 : TW_INT32;
        tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_type("Tlabels", wide)};
        tw_shape shape = TW_SHAPE(rows, count);
        value x = spread_out(TW_FLOAT32, shape, 5), labels = make(wide, TW_SHAPE(rows)), y = make(TW_FLOAT32, shape);
        value loss[] = {make(TW_FLOAT32, TW_SHAPE(rows)), make(TW_FLOAT32, shape)};
        ((float *)x.data)[count + 3] = 300;
        ((float *)x.data)[2 * count + 1] = -INFINITY;
        for (int64_t row = 0; row < rows; row++)
            if (i & 1)
                ((int64_t *)labels.data)[row] = row * (count - 1) / 4;
            else
                ((int32_t *)labels.data)[row] = (int32_t)(row * (count - 1) / 4);
        compare("Softmax", "vector", attrs, 1, &x, 1, &y, 1);
        compare("LogSoftmax", "vector", attrs, 1, &x, 1, &y, 1);
        compare("SparseSoftmaxCrossEntropyWithLogits", "vector", attrs, 2, (value[]){x, labels}, 2, loss, 2);
        drop(&x), drop(&labels), drop(&y), drop(&loss[0]), drop(&loss[1]);
    }
}

static void a_softmax_hands_nan_on_to_its_row_alone(void **state)
{
    (void)state;
    enum { CLASSES = 70 };
    tw_error error = {0};
    tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT32)};
    value x = filled(TW_FLOAT32, TW_SHAPE(2, CLASSES), 5), y = make(TW_FLOAT32, TW_SHAPE(2, CLASSES));
    ((float *)x.data)[CLASSES - 1] = NAN;
    assert_ok(call(&(kernel_call){"Softmax", "vector", 2, attrs, 1, &x, 1, &y, 1}, &error));
    for (int i = 0; i < 2 * CLASSES; i++)
        assert_int_equal(isnan(((float *)y.data)[i]) != 0, i < CLASSES);
    drop(&x), drop(&y);
}

static void check_relu_chain(value *inputs, value *dy, bool has_side, value *fused_y, value *fused_moments,
                             value *fused_gradients)
{
    tw_error error = {0};
    tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_type("U", TW_FLOAT32), tw_attr_float("epsilon", 0.001f),
                       tw_attr_bool("is_training", true), tw_attr_int("N", 2)};
    tw_shape image = dy[0].operand.shape, c = inputs[1].operand.shape;
    value y[6] = {make(TW_FLOAT32, image), make(TW_FLOAT32, c), make(TW_FLOAT32, c), make(TW_FLOAT32, c),
                  make(TW_FLOAT32, c), make(TW_FLOAT32, TW_SHAPE(0))};
    value sum = make(TW_FLOAT32, image), positive = make(TW_FLOAT32, image), masked = make(TW_FLOAT32, image);
    value gradients[5] = {make(TW_FLOAT32, image), make(TW_FLOAT32, c), make(TW_FLOAT32, c),
                          make(TW_FLOAT32, TW_SCALAR), make(TW_FLOAT32, TW_SCALAR)};
    assert_ok(call(&(kernel_call){"FusedBatchNormV3", "plain", 2, attrs, 5, inputs, 5, y, 6}, &error));
    if (has_side)
        assert_ok(call(&(kernel_call){"AddV2", "plain", 2, attrs, 5, (value[]){y[0], inputs[5]}, 2, &sum, 1}, &error));
    assert_ok(call(&(kernel_call){"Relu", "plain", 2, attrs, 5, has_side ? &sum : y, 1, &positive, 1}, &error));
    assert_near(fused_y, &positive);
    for (int i = 0; i < 4; i++)
        assert_near(&fused_moments[i], &y[1 + i]);
    assert_ok(call(&(kernel_call){"AddN", "plain", 2, attrs, 5, dy, 2, &sum, 1}, &error));
    assert_ok(call(&(kernel_call){"ReluGrad", "plain", 2, attrs, 5, (value[]){sum, positive}, 2, &masked, 1}, &error));
    assert_ok(call(&(kernel_call){"FusedBatchNormGradV3", "plain", 2, attrs, 5,
                                  (value[]){masked, inputs[0], inputs[1], y[3], y[4], y[5]}, 6, gradients, 5}, &error));
    for (int i = 0; i < 3; i++)
        assert_near(&fused_gradients[i], &gradients[i]);
    if (has_side)
        assert_near(&fused_gradients[3], &masked);
    value *all[] = {&sum, &positive, &masked};
    for (int i = 0; i < 6; i++)
        drop(&y[i]);
    for (int i = 0; i < 5; i++)
        drop(&gradients[i]);
    for (int i = 0; i < 3; i++)
        drop(all[i]);
}

static void check_norm_relu(tw_dtype dtype, tw_shape image, bool training, bool has_side, int num_dy)
{
    tw_shape c = TW_SHAPE(image.dims[3]);
    tw_attr attrs[] = {tw_attr_type("T", dtype), tw_attr_float("epsilon", 0.001f),
                       tw_attr_bool("is_training", training), tw_attr_int("N", has_side), tw_attr_int("M", num_dy)};
    value in[] = {filled(dtype, image, 1), filled(TW_FLOAT32, c, 2), filled(TW_FLOAT32, c, 3), filled(TW_FLOAT32, c, 4),
                  make(TW_FLOAT32, c), filled(dtype, image, 6)};
    value out[] = {make(dtype, image), make(TW_FLOAT32, c), make(TW_FLOAT32, c), make(TW_FLOAT32, c),
                   make(TW_FLOAT32, c), make(TW_FLOAT32, TW_SHAPE(0))};
    value dy[] = {filled(dtype, image, 7), filled(dtype, image, 8)};
    value gradients[] = {make(dtype, image), make(TW_FLOAT32, c), make(TW_FLOAT32, c), make(dtype, image)};
    for (int64_t k = 0; k < c.dims[0]; k++)
        put(&in[4], k, 0.5f + (float)k / 16);
    compare("_BatchNormRelu", "vector", attrs, 5, in, has_side ? 6 : 5, out, 6);
    value back[MOST_VALUES];
    int count = 0;
    for (int i = 0; i < num_dy; i++)
        back[count++] = dy[i];
    value rest[] = {in[0], in[1], out[3], out[4], in[2], out[0]};
    for (int i = 0; i < (has_side ? 6 : 5); i++)
        back[count++] = rest[i];
    compare("_BatchNormReluGrad", "vector", attrs, 5, back, count, gradients, has_side ? 4 : 3);
    if (dtype == TW_FLOAT32 && training && num_dy == 2)
        check_relu_chain(in, dy, has_side, &out[0], &out[1], gradients);
    for (int i = 0; i < 6; i++)
        drop(&in[i]), drop(&out[i]);
    for (int i = 0; i < 4; i++)
        drop(&gradients[i]);
    drop(&dy[0]), drop(&dy[1]);
}

static void batch_norms_with_relus_are_the_chains_they_stand_for(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++) {
        tw_dtype dtype = i & 1 ? TW_BFLOAT16 : TW_FLOAT32;
        check_norm_relu(dtype, TW_SHAPE(2, 9, 16, 24), i & 2, i & 4, i & 8 ? 2 : 1);
        check_norm_relu(dtype, TW_SHAPE(1, 5, 3, 80), i & 2, i & 4, i & 8 ? 2 : 1);
    }
}

static void a_side_of_another_shape_is_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_shape image = TW_SHAPE(2, 3, 3, 4), c = TW_SHAPE(4);
    tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_int("N", 1)};
    value in[] = {filled(TW_FLOAT32, image, 1), filled(TW_FLOAT32, c, 2), filled(TW_FLOAT32, c, 3),
                  filled(TW_FLOAT32, c, 4), filled(TW_FLOAT32, c, 5), filled(TW_FLOAT32, TW_SHAPE(1, 3, 3, 4), 6)};
    value out[] = {make(TW_FLOAT32, image), make(TW_FLOAT32, c), make(TW_FLOAT32, c), make(TW_FLOAT32, c),
                   make(TW_FLOAT32, c), make(TW_FLOAT32, TW_SHAPE(0))};
    assert_fails(call(&(kernel_call){"_BatchNormRelu", "plain", 2, attrs, 2, in, 6, out, 6}, &error),
                 TW_INVALID_ARGUMENT, "input 5 has shape [1,3,3,4], the image [2,3,3,4]");
    for (int i = 0; i < 6; i++)
        drop(&in[i]), drop(&out[i]);
}

static void fused_convolutions_agree_with_their_links(void **state)
{
    (void)state;
    int64_t ones[] = {1, 1, 1, 1};
    for (int relu = 0; relu < 2; relu++) {
        tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_ints("strides", ones, 4),
                           tw_attr_string("padding", "SAME"), tw_attr_bool("relu", relu), tw_attr_type("U", TW_FLOAT32)};
        value x = filled(TW_FLOAT32, TW_SHAPE(2, 5, 5, 4), 1), f = filled(TW_FLOAT32, TW_SHAPE(3, 3, 4, 6), 2);
        value bias = filled(TW_FLOAT32, TW_SHAPE(6), 3), y = make(TW_FLOAT32, TW_SHAPE(2, 5, 5, 6));
        value dy = filled(TW_FLOAT32, TW_SHAPE(2, 5, 5, 6), 4), sizes = make(TW_INT32, TW_SHAPE(4));
        value gradients[] = {make(TW_FLOAT32, TW_SHAPE(3, 3, 4, 6)), make(TW_FLOAT32, TW_SHAPE(6))};
        compare("_FusedConv2D", "onednn", attrs, 5, (value[]){x, f, bias}, 3, &y, 1);
        compare("_Conv2DBackpropFilterBias", "onednn", attrs, 5, (value[]){x, sizes, dy}, 3, gradients, 2);
        value *all[] = {&x, &f, &bias, &y, &dy, &sizes, &gradients[0], &gradients[1]};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            drop(all[i]);
    }
}

/* ---- updates ----------------------------------------------------------------------------------------------- */

/* What a new value should be: from the old one, what goes in, of each tower, and the decay. */
typedef float expect(float var, const float *values, float decay);

/* Runs a joint update over variables of several sizes, on the fused and on the plain kernel. Every other variable
 * decays. */
static void check_many(const char *op, int towers, bool decays, expect *expected)
{
    tw_error error = {0};
    static const int64_t sizes[] = {20000, 1, 8192, 17, 8193};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    value vars[COUNT], values[2 * COUNT], before[COUNT], rate = make(TW_FLOAT32, TW_SCALAR), decay = make(TW_FLOAT32, TW_SCALAR);
    twi_resource resources[COUNT] = {0};
    twi_operand in[5 * COUNT + 1];
    const void *from[5 * COUNT + 1];
    const int num_values = towers * COUNT, num_inputs = COUNT + 1 + (decays ? 2 : 1) * num_values;
    tw_tensor *zero = tw_tensor_float(0);
    put(&rate, 0, 0.1f);
    put(&decay, 0, 0.3f);
    for (int v = 0; v < COUNT; v++) {
        vars[v] = filled(TW_FLOAT32, TW_SHAPE(sizes[v]), (unsigned)v);
        before[v] = filled(TW_FLOAT32, TW_SHAPE(sizes[v]), (unsigned)v);
        resources[v] = (twi_resource){.name = "v", .dtype = TW_FLOAT32, .shape = TW_SHAPE(sizes[v])};
        in[v] = (twi_operand){TW_RESOURCE, TW_SHAPE(sizes[v]), 1, sizeof(void *), NULL, &resources[v]};
        from[v] = vars[v].data;
    }
    for (int i = 0; i < num_values; i++) {
        int decay_at = COUNT + 1 + num_values + i;
        values[i] = filled(TW_FLOAT32, TW_SHAPE(sizes[i % COUNT]), 100 + (unsigned)i);
        in[COUNT + 1 + i] = values[i].operand;
        in[decay_at] = decay.operand;
        in[decay_at].value = i % COUNT % 2 ? zero : NULL;
        from[COUNT + 1 + i] = values[i].data, from[decay_at] = decay.data;
    }
    in[COUNT] = rate.operand, from[COUNT] = rate.data;
    tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_int("N", COUNT), tw_attr_int("M", num_values),
                       tw_attr_float("scale", 0.7f)};
    twi_attrs list = {attrs, 4};
    const twi_kernel *kernel;
    twi_prepare p = {.op = op, .node = "n", .attrs = &list, .num_inputs = num_inputs, .inputs = in,
                     .device = devices->items[0], .threads = 3, .error = &error};
    for (int plain = 0; plain < 2; plain++) {
        assert_ok(twi_device_prepare(devices->items[0], &p, plain, &kernel));
        assert_string_equal(kernel->name, plain ? "plain" : "fused");
        assert_ok(kernel->run(&(twi_run){.state = p.state, .inputs = from, .input_operands = in,
                                         .num_inputs = num_inputs, .threads = 3, .node = "n", .error = &error}));
        kernel->release(p.state);
        for (int v = 0; v < COUNT; v++)
            for (int64_t i = 0; i < sizes[v]; i++) {
                float gone_in[] = {get(&values[v], i), towers == 2 ? get(&values[COUNT + v], i) : 0};
                put(&before[v], i, expected(get(&before[v], i), gone_in, v % 2 ? 0 : 0.3f));
                assert_true(get(&vars[v], i) == get(&before[v], i));
            }
    }
    in[0].shape = TW_SHAPE(3);
    assert_fails(twi_device_prepare(devices->items[0], &p, false, &kernel), TW_INVALID_ARGUMENT, "[3]");
    in[0].shape = TW_SHAPE(sizes[0]);
    resources[2].dtype = TW_FLOAT64;
    assert_fails(twi_device_prepare(devices->items[0], &p, false, &kernel), TW_INVALID_ARGUMENT, "double, not float");
    for (int v = 0; v < COUNT; v++)
        drop(&vars[v]), drop(&before[v]);
    for (int i = 0; i < num_values; i++)
        drop(&values[i]);
    drop(&rate), drop(&decay);
    tw_tensor_release(zero);
}

static float descended(float var, const float *values, float decay)
{
    float step = decay * var;
    step = values[0] + step;
    step = 0.1f * step;
    return var - step;
}

static float descended_by_mean(float var, const float *values, float decay)
{
    float decayed = decay * var, sum = values[0] + decayed, other = values[1] + decayed;
    sum = sum + other;
    sum = sum * 0.7f;
    sum = 0.1f * sum;
    return var - sum;
}

static float followed(float var, const float *values, float decay)
{
    (void)decay;
    float apart = var - values[0];
    apart *= 0.1f;
    return var - apart;
}

static void many_variables_descend_and_decay_as_one_would(void **state)
{
    (void)state;
    check_many("_ApplyGradientDescentMany", 1, true, descended);
}

static void many_variables_descend_by_the_mean_of_two_towers(void **state)
{
    (void)state;
    check_many("_ApplyGradientDescentMany", 2, true, descended_by_mean);
}

static void many_averages_follow_as_one_would(void **state)
{
    (void)state;
    check_many("_MovingAverageMany", 1, false, followed);
}

/* ---- builds of the loops against each other ---------------------------------------------------------------- */

/* Channels that fill vectors of every width, some or none; windows of one cell to nine; the tutorial's normalization,
 * whose sizes loops know, and others. */
static const struct {
    int64_t channels;
    twi_pool pool; /* of images of nine by nine */
    twi_lrn lrn;
    bool relu;
} image_cases[] = {
    {37, {9, 9, 37, 5, 5, {3, 3}, {2, 2}, {1, 1}}, {37, 3, 1, 0.2f, 0.75f}, true},
    {64, {9, 9, 64, 5, 5, {3, 3}, {2, 2}, {1, 1}}, {64, 4, 1, 0.2f, 0.75f}, true},
    {19, {9, 9, 19, 4, 4, {2, 2}, {2, 2}, {0, 0}}, {19, 4, 1, 0.2f, 0.75f}, false},
    {3, {9, 9, 3, 9, 9, {3, 3}, {1, 1}, {1, 1}}, {3, 1, 2, 0.3f, 0.5f}, false},
    {32, {9, 9, 32, 9, 9, {2, 3}, {1, 1}, {0, 1}}, {32, 2, 1, 0.1f, 1}, false},
    {16, {9, 9, 16, 9, 9, {1, 1}, {1, 1}, {0, 0}}, {16, 0, 1, 0.1f, 0.6f}, true},
};

enum { IMAGES = 2, SIDE = 9, OF_IMAGES = 11 };

/* Pools, normalizations, one behind the other, and their gradients, by one build. */
static void run_image_loops(const twi_loops *loops, twi_image_job job, const value *x, const value *dy, value *out)
{
    int64_t rows = IMAGES * job.pool.out_height, pixels = IMAGES * SIDE * SIDE;
    int64_t groups = (pixels + TWI_LRN_PIXELS - 1) / TWI_LRN_PIXELS;
    job.input = x->data;
    job.output = out[0].data, job.pooled = out[1].data, job.argmax_out = out[2].data;
    loops->pool_lrn(&job, 0, rows, 0);
    job.output = out[3].data, job.argmax_out = out[4].data;
    loops->lrn_pool(&job, 0, IMAGES, 0);
    job.output = out[5].data;
    loops->max_pool(&job, 0, rows, 0);
    job.output = out[6].data, job.pixels = pixels;
    loops->lrn(&job, 0, groups, 0);
    job.gradient = x->data, job.output = out[7].data;
    loops->lrn(&job, 0, groups, 0);
    job.gradient = dy->data, job.output = out[8].data;
    loops->max_pool_gradient(&job, 0, IMAGES, 0);
    job.argmax = out[4].data, job.output = out[9].data;
    loops->lrn_pool_gradient(&job, 0, IMAGES, 0);
    job.input = out[1].data, job.argmax = out[2].data, job.output = out[10].data;
    loops->pool_lrn_gradient(&job, 0, IMAGES, 0);
}

static void every_build_of_the_loops_gives_the_same_bits(void **state)
{
    (void)state;
    const twi_loops *const *usable = twi_loops_usable();
    for (size_t k = 0; k < 2 * sizeof image_cases / sizeof *image_cases; k++) {
        const twi_pool *pool = &image_cases[k / 2].pool;
        tw_dtype dtype = k % 2 ? TW_BFLOAT16 : TW_FLOAT32;
        int64_t channels = image_cases[k / 2].channels;
        tw_shape large = TW_SHAPE(IMAGES, SIDE, SIDE, channels);
        tw_shape small = TW_SHAPE(IMAGES, pool->out_height, pool->out_width, channels);
        value first[OF_IMAGES], x = filled(dtype, large, 1), dy = filled(dtype, small, 2);
        twi_image_job job = {.form = twi_form_of(dtype), .relu = image_cases[k / 2].relu, .pool = *pool,
                             .lrn = image_cases[k / 2].lrn};
        job.lrn_scratch = twi_lrn_scratch(&job.lrn);
        job.scratch = job.lrn_scratch + SIDE * SIDE * (size_t)channels * sizeof(float);
        value workspace = make(TW_UINT8, TW_SHAPE((int64_t)job.scratch));
        job.workspace = workspace.data;
        for (int u = 0; usable[u]; u++) {
            value out[OF_IMAGES];
            for (int i = 0; i < OF_IMAGES; i++)
                out[i] = make(i == 2 || i == 4 ? TW_UINT8 : dtype, i < 6 ? small : large);
            run_image_loops(usable[u], job, &x, &dy, out);
            for (int i = 0; i < OF_IMAGES; i++) {
                if (u == 0) {
                    first[i] = out[i];
                    continue;
                }
                assert_memory_equal(out[i].data, first[i].data, out[i].operand.bytes);
                drop(&out[i]);
            }
        }
        for (int i = 0; i < OF_IMAGES; i++)
            drop(&first[i]);
        drop(&x), drop(&dy), drop(&workspace);
    }
}

/* Against sums in double, which these are: whole numbers are exact. */
static void every_build_multiplies_adds_and_turns_doubles_to_the_same_bits(void **state)
{
    enum { M = 15, N = 261, K = 131, NUMBERS = 37 };
    static double a[M * K], b[K * N], c[M * N], x[NUMBERS], y[NUMBERS], z[NUMBERS];
    (void)state;
    for (const twi_products *const *usable = twi_products_usable(); *usable; usable++) {
        for (int i = 0; i < M * K; i++)
            a[i] = i % 7 - 3;
        for (int i = 0; i < K * N; i++)
            b[i] = i % 5 - 2;
        memset(c, 0, sizeof c);
        (*usable)->subtract(c, N, a, K, b, N, M, N, K);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0;
                for (int k = 0; k < K; k++)
                    sum -= a[i * K + k] * b[k * N + j];
                assert_true(c[i * N + j] == sum);
            }
        double product = 0, returned = 0;
        for (int i = 0; i < NUMBERS; i++) {
            x[i] = i % 9, y[i] = i % 4 - 1, z[i] = i % 3;
            product += x[i] * y[i];
            returned += (z[i] + 2 * x[i] + 3 * y[i]) * x[i];
        }
        assert_true((*usable)->dot(x, y, NUMBERS) == product);
        assert_true((*usable)->add_two(z, 2, x, 3, y, x, NUMBERS) == returned);
        (*usable)->add(z, -2, x, NUMBERS);
        (*usable)->turn(x, y, 3, 4, NUMBERS);
        for (int i = 0; i < NUMBERS; i++) {
            double u = i % 9, v = i % 4 - 1;
            assert_true(z[i] == i % 3 + 3 * v && x[i] == 3 * u - 4 * v && y[i] == 4 * u + 3 * v);
        }
    }
}

/* Sums in the order of k, of each type, for numbers of rows around those that a build takes together. */
#define CHECK_PANEL(type, number, panel_of)                                                                            \
    for (int rows = 1; rows <= MOST; rows++) {                                                                         \
        enum { COLUMNS = TWI_PANEL_BYTES / sizeof(type) };                                                             \
        type a[K * MOST], panel[K * (COLUMNS + 3)], sums[MOST * COLUMNS];                                              \
        for (int i = 0; i < K * MOST; i++)                                                                             \
            a[i] = (type)(1e9 / (i + 3));                                                                              \
        for (int i = 0; i < K * (COLUMNS + 3); i++)                                                                    \
            panel[i] = (type)(1e9 / (7 - 3 * i));                                                                      \
        for (int i = 0; i < rows * COLUMNS; i++)                                                                       \
            sums[i] = (type)i;                                                                                         \
        (panel_of)(sums, rows, a, 1, MOST, panel, COLUMNS + 3, K);                                                     \
        for (int i = 0; i < rows * COLUMNS; i++) {                                                                     \
            number sum = (number)i;                                                                                    \
            for (int k = 0; k < K; k++)                                                                                \
                sum += (number)a[k * MOST + i / COLUMNS] * (number)panel[k * (COLUMNS + 3) + i % COLUMNS];             \
            assert_true(sums[i] == (type)sum);                                                                         \
        }                                                                                                              \
    }

static void every_build_goes_through_a_panel_to_the_same_bits(void **state)
{
    enum { K = 21, MOST = 19 };
    (void)state;
    for (const twi_products *const *usable = twi_products_usable(); *usable; usable++) {
        CHECK_PANEL(float, float, (*usable)->panel_float)
        CHECK_PANEL(double, double, (*usable)->panel_double)
        CHECK_PANEL(int32_t, uint32_t, (*usable)->panel_int32)
        CHECK_PANEL(int64_t, uint64_t, (*usable)->panel_int64)
    }
}

/* Of rows, columns and depths around the blocks of plain/matmul.c; products of thirds, so that another order tells. */
static void products_of_doubles_are_sums_in_order_whatever_their_size_and_team(void **state)
{
    static const int64_t sizes[][3] = {{1, 16, 300}, {5, 33, 128}, {48, 16, 1}, {49, 31, 129}, {97, 50, 260}, {3, 0, 4},
                                       {3, 4, 0}};
    (void)state;
    tw_error error = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int turned = 0; turned < 4; turned++) {
            int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
            bool ta = turned & 1, tb = turned & 2;
            const tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT64), tw_attr_bool("transpose_a", ta),
                                     tw_attr_bool("transpose_b", tb)};
            value a = make(TW_FLOAT64, ta ? TW_SHAPE(k, m) : TW_SHAPE(m, k));
            value b = make(TW_FLOAT64, tb ? TW_SHAPE(n, k) : TW_SHAPE(k, n));
            double *x = a.data, *y = b.data;
            for (int64_t e = 0; e < m * k; e++)
                x[e] = (double)(e % 17 - 8) / 3;
            for (int64_t e = 0; e < k * n; e++)
                y[e] = (double)(e % 13 - 5) / 7;
            for (int threads = 1; threads <= 3; threads++) {
                value c = make(TW_FLOAT64, TW_SHAPE(m, n));
                kernel_call call_of = {"MatMul", "plain", threads, attrs, 3, (value[]){a, b}, 2, &c, 1};
                assert_ok(call(&call_of, &error));
                for (int64_t e = 0; e < m * n; e++) {
                    double sum = 0;
                    for (int64_t l = 0; l < k; l++)
                        sum += x[ta ? l * m + e / n : e / n * k + l] * y[tb ? e % n * k + l : l * n + e % n];
                    assert_true(((double *)c.data)[e] == sum);
                }
                drop(&c);
            }
            drop(&a), drop(&b);
        }
}

static void every_build_rectifies_convolves_and_softens_to_the_same_bits(void **state)
{
    (void)state;
    enum { N = 2, H = 9, C = 37 };
    const twi_loops *const *usable = twi_loops_usable();
    for (int form = TWI_FLOATS; form <= TWI_BFLOATS; form++) {
        tw_dtype dtype = form == TWI_BFLOATS ? TW_BFLOAT16 : TW_FLOAT32;
        tw_shape image = TW_SHAPE(N, H, H, C);
        value x = filled(dtype, image, 1), filter = filled(dtype, TW_SHAPE(3, 3, C, 1), 2);
        value first = make(dtype, image), out = make(dtype, image);
        twi_depthwise_job job = {.form = (twi_form)form, .rows = N * H, .channels = C, .input = x.data,
                                 .filter = filter.data, .output = first.data,
                                 .window = {.image = {H, H}, .size = {3, 3}, .output = {H, H}, .stride = {1, 1},
                                            .dilation = {1, 1}, .before = {1, 1}}};
        twi_elements_job slopes = {.form = (twi_form)form, .a = x.data, .elements = N * H * H * C,
                                   .rectifier = TWI_LEAKY_RELU, .slope = 0.3f};
        for (int u = 0; usable[u]; u++, job.output = out.data) {
            usable[u]->depthwise(&job, 0, N * H, 0);
            if (u > 0)
                assert_memory_equal(out.data, first.data, first.operand.bytes);
        }
        twi_softmax_job of_rows = {.rows = H, .classes = 2 * C, .logits = x.data, .output = first.data};
        for (int u = 0; usable[u] && form == TWI_FLOATS; u++, of_rows.output = out.data) {
            usable[u]->softmax(&of_rows, 0, H, 0);
            if (u > 0)
                assert_memory_equal(out.data, first.data, H * 2 * C * sizeof(float));
        }
        slopes.out = first.data;
        for (int u = 0; usable[u]; u++, slopes.out = out.data) {
            usable[u]->relu(&slopes, 0, 1, 0);
            if (u > 0)
                assert_memory_equal(out.data, first.data, first.operand.bytes);
        }
        drop(&x), drop(&filter), drop(&first), drop(&out);
    }
}

/* Of normalizations too: widths that fill vectors and one that does not, two chunks of rows. */
/* Operands that move together, or one of which stays where it is along a run or starts again with each; runs that fill
 * vectors, and such that do not. */
static const struct {
    tw_shape x, y;
} layouts[] = {
    {{2, {3, 37}}, {1, {37}}}, {{2, {3, 37}}, {2, {3, 37}}}, {{2, {3, 37}}, {2, {3, 1}}},
    {{2, {3, 1}}, {2, {3, 37}}}, {{1, {37}}, {2, {3, 37}}}, {{2, {2, 64}}, {1, {64}}},
    {{2, {2, 64}}, {2, {2, 64}}}, {{2, {2, 64}}, {2, {2, 1}}}, {{2, {2, 1}}, {2, {2, 64}}},
    {{2, {3, 3}}, {1, {3}}}, {{2, {3, 3}}, {2, {3, 3}}}, {{2, {3, 3}}, {2, {3, 1}}},
    {{2, {3, 1}}, {2, {3, 3}}}, {{1, {37}}, {0, {0}}}, {{0, {0}}, {1, {37}}},
    {{1, {64}}, {0, {0}}},
};

static void every_build_gives_functions_the_same_bits(void **state)
{
    enum {
        UNARY = sizeof unary_functions / sizeof *unary_functions,
        OF_DOUBLES = UNARY + sizeof binary_functions / sizeof *binary_functions,
        UNARY_OF_DOUBLES = sizeof unary_of_doubles / sizeof *unary_of_doubles,
    };
    (void)state;
    const twi_loops *const *usable = twi_loops_usable();
    for (int f = 0; f < TWI_FUNCTIONS; f++)
        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
            bool unary = f < UNARY || (f >= OF_DOUBLES && f < OF_DOUBLES + UNARY_OF_DOUBLES);
            tw_dtype dtype = f < OF_DOUBLES ? TW_FLOAT32 : TW_FLOAT64;
            tw_shape shape = layouts[i].x;
            assert_true(unary || twi_broadcast_shapes(layouts[i].x, layouts[i].y, &shape, NULL) == TW_OK);
            value x = spread_out(dtype, layouts[i].x, 1), y = spread_out(dtype, layouts[i].y, 2);
            value first = make(dtype, shape), out = make(dtype, shape);
            twi_broadcast walk;
            twi_broadcast_init(&walk, layouts[i].x, layouts[i].y, shape);
            twi_function_job job = {.x = x.data, .y = y.data, .out = first.data, .elements = tw_shape_elements(shape),
                                    .walk = &walk};
            for (int u = 0; usable[u]; u++, job.out = out.data) {
                usable[u]->functions[f](&job, 0, unary ? 1 : walk.runs, 0);
                if (u > 0)
                    assert_memory_equal(out.data, first.data, first.operand.bytes);
            }
            drop(&x), drop(&y), drop(&first), drop(&out);
        }
}

#ifdef __x86_64__
enum { MOST_ROWS = 26, MOST_COLUMNS = TWI_GEMM_PANEL, PIECES = 2, LENGTH = 3, DEPTH = PIECES * LENGTH };

/* So many rows times so many columns, of small whole numbers, which are exact. */
static void check_product(int rows, int columns, bool starts, bool relu)
{
    static float a[MOST_ROWS][DEPTH], b[DEPTH * MOST_COLUMNS], start[MOST_COLUMNS], c[MOST_ROWS][MOST_COLUMNS + 1];
    const float *from[PIECES][MOST_ROWS];
    float *to[MOST_ROWS];
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < DEPTH; k++)
            a[i][k] = (float)((5 * i + 3 * k) % 7 - 3);
    for (int k = 0; k < DEPTH; k++)
        for (int j = 0; j < columns; j++)
            b[k * columns + j] = (float)((2 * k + 3 * j) % 5 - 2);
    for (int j = 0; j < columns; j++)
        start[j] = (float)(j % 3);
    for (int i = 0; i < rows; i++) {
        for (int p = 0; p < PIECES; p++)
            from[p][i] = &a[i][p * LENGTH];
        to[i] = c[i];
        c[i][columns] = 77;
    }
    float *panel = twi_gemm_pack(b, DEPTH, columns);
    assert_non_null(panel);
    twi_gemm g = {.pieces = PIECES, .length = LENGTH, .from = from[0], .pitch = MOST_ROWS, .panel = panel,
                  .columns = columns, .start = starts ? start : NULL, .to = to, .relu = relu};
    twi_gemm_run(&g, rows);
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) {
            float sum = starts ? start[j] : 0;
            for (int k = 0; k < DEPTH; k++)
                sum += a[i][k] * b[k * columns + j];
            if (c[i][j] != (relu && sum < 0 ? 0 : sum))
                fail_msg("%d x %d: element %d, %d is %g, expected %g", rows, columns, i, j, c[i][j], sum);
        }
        assert_true(c[i][columns] == 77);
    }
    twi_free_aligned(panel);
}
#endif

static void products_of_any_number_of_rows_and_columns_are_exact(void **state)
{
    (void)state;
#ifdef __x86_64__
    if (!__builtin_cpu_supports("avx512f"))
        skip();
    for (int rows = 1; rows <= MOST_ROWS; rows++)
        for (int columns = 1; columns <= MOST_COLUMNS; columns += columns % 16 ? 5 : 1)
            for (int way = 0; way < 4; way++)
                check_product(rows, columns, way & 1, way & 2);
#endif
}

static void every_build_draws_the_numbers_of_the_stream(void **state)
{
    (void)state;
    enum { N = 2 * TWI_CHUNK + 1003 };
    static const uint32_t starts[][4] = {{0, 0, 7, 0}, {UINT32_MAX - 3000, 1, 2, 3}, {UINT32_MAX - 9, UINT32_MAX, 5, 6}};
    value out = make(TW_FLOAT32, TW_SHAPE(N));
    for (const twi_loops *const *loops = twi_loops_usable(); *loops; loops++)
        for (int s = 0; s < 3; s++) {
            twi_uniform_job job = {.out = out.data, .elements = N, .start = {.key = {0x12345678, 0x9abcdef0}}};
            memcpy(job.start.counter, starts[s], sizeof starts[s]);
            (*loops)->uniform(&job, 1, 3, 0);
            (*loops)->uniform(&job, 0, 1, 0);
            twi_philox philox = job.start;
            uint32_t words[4];
            for (int i = 0; i < N; i++) {
                if (i % 4 == 0)
                    twi_philox_next(&philox, words);
                assert_true(((float *)out.data)[i] == twi_uniform_float(words[i % 4]));
            }
        }
    drop(&out);
}

static void every_build_casts_to_the_same_bits(void **state)
{
    (void)state;
    enum { ELEMENTS = 83 };
    const twi_loops *const *usable = twi_loops_usable();
    uint64_t words[ELEMENTS], made[ELEMENTS], first[ELEMENTS], word = 1;
    for (int i = 0; i < ELEMENTS; i++)
        words[i] = word = word * 6364136223846793005u + 1442695040888963407u;
    for (int number = 0; number < TWI_NUM_CASTS; number++)
        for (int u = 0; usable[u]; u++) {
            twi_elements_job job = {.a = words, .out = made, .elements = ELEMENTS};
            memset(made, 0, sizeof made);
            usable[u]->casts[number](&job, 0, 1, 0);
            if (u == 0)
                memcpy(first, made, sizeof made);
            assert_memory_equal(made, first, sizeof made);
        }
}

static void every_build_transforms_to_the_same_bits(void **state)
{
    (void)state;
    enum { N = 4 * 2 * 3 * 5 * 7 };
    const twi_loops *const *usable = twi_loops_usable();
    twi_transform *t = twi_transform_make(N);
    static twi_transform_rows x[N], y[N], first[N];
    for (int i = 0; i < N; i++)
        for (int lane = 0; lane < TWI_TRANSFORM_LANES; lane++) {
            x[i].re[lane] = (i * 7919 + lane * 31) % 2003 - 1000;
            x[i].im[lane] = (i * 104729 + lane * 17) % 1999 - 1000;
        }
    for (int u = 0; usable[u]; u++) {
        usable[u]->transform(t, x, y, N, 1, 1, 0);
        if (u == 0)
            memcpy(first, y, sizeof y);
        assert_memory_equal(y, first, sizeof y);
    }
    twi_transform_free(t);
}

static void every_build_normalizes_to_the_same_bits(void **state)
{
    (void)state;
    enum { ROWS = TWI_CHUNK_ROWS + 9, C = 85, OUTPUTS = 8 };
    const twi_loops *const *usable = twi_loops_usable();
    tw_shape image = TW_SHAPE(ROWS, C), sums = TW_SHAPE(2, C);
    for (int form = TWI_FLOATS; form <= TWI_BFLOATS; form++) {
        tw_dtype dtype = form == TWI_BFLOATS ? TW_BFLOAT16 : TW_FLOAT32;
        value first[OUTPUTS], vectors[5], images[4];
        for (int i = 0; i < 5; i++)
            vectors[i] = filled(TW_FLOAT32, TW_SHAPE(C), 10 + (unsigned)i);
        for (int i = 0; i < 4; i++)
            images[i] = filled(dtype, image, 20 + (unsigned)i);
        for (int u = 0; usable[u]; u++) {
            value out[OUTPUTS];
            for (int i = 0; i < OUTPUTS; i++)
                out[i] = make(i < 4 ? TW_FLOAT32 : dtype, i < 4 ? sums : image);
            twi_rows_job job = {.form = (twi_form)form, .rows = ROWS, .channels = C, .x = images[0].data, .relu = true,
                                .dy = images[1].data, .more_dy = images[2].data, .side = images[3].data,
                                .masked = out[4].data, .sums = out[0].data, .products = out[1].data,
                                .mean = vectors[0].data, .factor = vectors[1].data, .offset = vectors[2].data,
                                .mean_dy = vectors[3].data, .mean_product = vectors[4].data};
            usable[u]->sum_moments(&job, 0, 2, 0);
            job.sums = out[2].data, job.products = out[3].data;
            usable[u]->sum_products(&job, 0, 2, 0);
            job.out = out[5].data;
            usable[u]->normalize_rows(&job, 0, ROWS, 0);
            job.out = out[6].data;
            usable[u]->normalize_rows_gradient(&job, 0, ROWS, 0);
            job.out = out[7].data, job.y = out[5].data;
            usable[u]->normalize_rows_gradient(&job, 0, ROWS, 0);
            for (int i = 0; i < OUTPUTS; i++) {
                if (u == 0) {
                    first[i] = out[i];
                    continue;
                }
                assert_memory_equal(out[i].data, first[i].data, out[i].operand.bytes);
                drop(&out[i]);
            }
        }
        for (int i = 0; i < OUTPUTS; i++)
            drop(&first[i]);
        for (int i = 0; i < 5; i++)
            drop(&vectors[i]);
        for (int i = 0; i < 4; i++)
            drop(&images[i]);
    }
}

/* ---- division on a card: a multiplication ------------------------------------------------------------------------ */

static void check(uint32_t divisor, int64_t n)
{
    uint32_t rest, quotient;
    if (n < 0 || n > TWI_MOST_DIVIDED)
        return;
    twi_divider by = twi_divider_of(divisor);
    quotient = twi_divide(by, (uint32_t)n, &rest);
    if (quotient != n / divisor || rest != n % divisor || twi_quotient(by, (uint32_t)n) != quotient)
        fail_msg("%lld by %u gives %u and %u", (long long)n, divisor, quotient, rest);
}

/* Where a quotient that is off by a little would be the wrong whole number: beside multiples of the divisor. */
static void check_edges(uint32_t divisor)
{
    int64_t last = TWI_MOST_DIVIDED / divisor, multiples[] = {0, 1, 2, 3, last / 3, last / 2, last - 1, last};
    for (size_t i = 0; i < sizeof multiples / sizeof *multiples; i++)
        for (int64_t n = multiples[i] * divisor - 1; n <= multiples[i] * divisor + 1; n++)
            check(divisor, n);
    check(divisor, TWI_MOST_DIVIDED);
}

static void small_divisors_and_those_beside_powers_of_two_are_exact(void **state)
{
    (void)state;
    for (uint32_t divisor = 1; divisor < 5000; divisor++)
        check_edges(divisor);
    for (int bit = 12; bit < 31; bit++)
        for (uint32_t divisor = (1u << bit) - 2; divisor <= (1u << bit) + 2; divisor++)
            check_edges(divisor);
    for (uint32_t divisor = TWI_MOST_DIVIDED; divisor > TWI_MOST_DIVIDED - 100; divisor--)
        check_edges(divisor);
}

static void any_number_by_any_divisor_is_exact(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int i = 0; i < 1000000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint32_t divisor = (uint32_t)(random >> 33) >> (random >> 28 & 31);
        check(divisor ? divisor : 1, (int64_t)(random & TWI_MOST_DIVIDED));
        check_edges(divisor ? divisor : 1);
    }
}

static void what_cannot_divide_becomes_one(void **state)
{
    (void)state;
    int64_t none[] = {0, -1, (int64_t)1 << 31, (int64_t)1 << 40};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(twi_quotient(twi_divider_of(none[i]), 12345), 12345);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_and_normalizations_agree_with_plain_loops),
        cmocka_unit_test(so_they_do_in_bfloat16),
        cmocka_unit_test(fused_tails_are_the_chains_they_stand_for),
        cmocka_unit_test(activations_and_biases_agree_with_plain_loops),
        cmocka_unit_test(other_rectifiers_agree_with_plain_loops),
        cmocka_unit_test(functions_agree_with_plain_loops),
        cmocka_unit_test(functions_of_two_agree_with_plain_loops),
        cmocka_unit_test(functions_are_right_where_numbers_end),
        cmocka_unit_test(functions_of_doubles_are_right_to_a_few_units),
        cmocka_unit_test(angles_of_doubles_are_right_to_two_units),
        cmocka_unit_test(channels_of_volumes_know_nothing_of_each_other),
        cmocka_unit_test(places_that_are_set_are_found_in_their_order),
        cmocka_unit_test(negatives_of_zeros_have_the_other_sign),
        cmocka_unit_test(sums_are_those_of_plain_loops_to_the_bit),
        cmocka_unit_test(depthwise_convolutions_agree_with_plain_loops),
        cmocka_unit_test(softmaxes_of_many_classes_agree_with_plain_loops),
        cmocka_unit_test(a_softmax_hands_nan_on_to_its_row_alone),
        cmocka_unit_test(every_build_goes_through_a_panel_to_the_same_bits),
        cmocka_unit_test(products_of_doubles_are_sums_in_order_whatever_their_size_and_team),
        cmocka_unit_test(every_build_rectifies_convolves_and_softens_to_the_same_bits),
        cmocka_unit_test(batch_norms_agree_with_plain_loops),
        cmocka_unit_test(batch_norms_with_relus_are_the_chains_they_stand_for),
        cmocka_unit_test(a_side_of_another_shape_is_refused),
        cmocka_unit_test(fused_convolutions_agree_with_their_links),
        cmocka_unit_test(many_variables_descend_and_decay_as_one_would),
        cmocka_unit_test(many_variables_descend_by_the_mean_of_two_towers),
        cmocka_unit_test(many_averages_follow_as_one_would),
        cmocka_unit_test(every_build_of_the_loops_gives_the_same_bits),
        cmocka_unit_test(every_build_multiplies_adds_and_turns_doubles_to_the_same_bits),
        cmocka_unit_test(every_build_gives_functions_the_same_bits),
        cmocka_unit_test(products_of_any_number_of_rows_and_columns_are_exact),
        cmocka_unit_test(every_build_draws_the_numbers_of_the_stream),
        cmocka_unit_test(every_build_casts_to_the_same_bits),
        cmocka_unit_test(every_build_transforms_to_the_same_bits),
        cmocka_unit_test(every_build_normalizes_to_the_same_bits),
        cmocka_unit_test(small_divisors_and_those_beside_powers_of_two_are_exact),
        cmocka_unit_test(any_number_by_any_divisor_is_exact),
        cmocka_unit_test(what_cannot_divide_becomes_one),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
