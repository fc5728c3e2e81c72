/* test_ops_complex.c - complex and quantized numbers: ops, gradients and files, held against TensorFlow's. */
#include "gradient_testing.h"
#include "op_testing.h"

static void complex_ops_give_the_results_of_tensorflow(void **state)
{
    (void)state;
    twt_run_golden("ops_complex.txt");
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* The last input of a case is what flows in; its outputs are the gradients of the others. */
static void check_gradients_of(twt_case *c)
{
    tw_graph *g = tw_graph_create();
    tw_output inputs[TWT_MOST], grads[TWT_MOST] = {0}, fetches[TWT_MOST];
    tw_tensor *results[TWT_MOST] = {0};
    tw_session *s = NULL;
    tw_error error = {0};
    int n = c->op.num_inputs - 1, wanted = 0;
    for (int i = 0; i <= n; i++)
        inputs[i] = tw_constant(g, c->op.inputs[i]);
    tw_node *node = tw_add_node(g, c->op.op, "n", inputs, n, c->op.attrs, c->op.num_attrs);
    if (!node)
        fail_msg("complex_gradients.txt:%d: %s", c->line, tw_graph_message(g));
    tw_gradients(g, &(tw_output){node, 0}, 1, &inputs[n], inputs, n, grads);
    assert_string_equal(tw_graph_message(g), "");
    for (int i = 0; i < c->num_expected; i++)
        if (c->expected[i])
            fetches[wanted++] = grads[i];
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_ok(tw_session_run(s, NULL, 0, fetches, wanted, results, &error));
    for (int i = 0, at = 0; i < c->num_expected; i++)
        if (c->expected[i])
            twt_compare(c, i, results[at++], "gradient");
    for (int i = 0; i < wanted; i++)
        tw_tensor_release(results[i]);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void gradients_are_those_of_tensorflow(void **state)
{
    (void)state;
    twt_each_case("complex_gradients.txt", check_gradients_of);
}

/* Complex numbers from parts in a [2,...], and a real number of all of y again. */
static tw_output number_of(tw_graph *g, tw_output x)
{
    tw_output parts[2];
    tw_unpack(g, x, 0, parts, 2);
    return tw_complex(g, parts[0], parts[1]);
}

static tw_output both_parts(tw_graph *g, tw_output y)
{
    return tw_pack(g, (tw_output[]){tw_real(g, y), tw_imaginary(g, y)}, 2, 0);
}

static tw_output unary(tw_graph *g, const char *op, tw_output x)
{
    return tw_node_output(tw_add_node(g, op, NULL, &x, 1, NULL, 0), 0);
}

static tw_output binary(tw_graph *g, const char *op, tw_output x, tw_output y)
{
    return tw_node_output(tw_add_node(g, op, NULL, (tw_output[]){x, y}, 2, NULL, 0), 0);
}

#define Z(i) number_of(g, x[i])
#define OF_Z(name, expression)                                                                                         \
    static tw_output name(tw_graph *g, const tw_output *x)                                                             \
    {                                                                                                                  \
        return both_parts(g, expression);                                                                              \
    }
#define REAL_OF_Z(name, expression)                                                                                    \
    static tw_output name(tw_graph *g, const tw_output *x)                                                             \
    {                                                                                                                  \
        return expression;                                                                                             \
    }

OF_Z(mul, tw_mul(g, Z(0), Z(1)))
OF_Z(mul_no_nan, binary(g, "MulNoNan", Z(0), Z(1)))
OF_Z(xdivy, binary(g, "Xdivy", Z(0), Z(1)))
OF_Z(xlogy, binary(g, "Xlogy", Z(0), Z(1)))
OF_Z(xlog1py, binary(g, "Xlog1py", Z(0), Z(1)))
OF_Z(divide, tw_div(g, Z(0), Z(1)))
OF_Z(power, tw_pow(g, Z(0), Z(1)))
OF_Z(square, tw_square(g, Z(0)))
OF_Z(square_root, tw_sqrt(g, Z(0)))
OF_Z(reciprocal_root, tw_rsqrt(g, Z(0)))
OF_Z(reciprocal, tw_reciprocal(g, Z(0)))
OF_Z(exponential, tw_exp(g, Z(0)))
OF_Z(exponential_1, tw_expm1(g, Z(0)))
OF_Z(logarithm, tw_log(g, Z(0)))
OF_Z(logarithm_1, tw_log1p(g, Z(0)))
OF_Z(sine, tw_sin(g, Z(0)))
OF_Z(cosine, tw_cos(g, Z(0)))
OF_Z(tangent, tw_tan(g, Z(0)))
OF_Z(hyperbolic_tangent, tw_tanh(g, Z(0)))
OF_Z(sigmoid, tw_sigmoid(g, Z(0)))
OF_Z(arc_sine, unary(g, "Asin", Z(0)))
OF_Z(area_cosine, unary(g, "Acosh", Z(0)))
OF_Z(conjugate, tw_conj(g, Z(0)))
REAL_OF_Z(magnitude, tw_abs(g, Z(0)))
REAL_OF_Z(angle, tw_angle(g, Z(0)))
REAL_OF_Z(real_cast, tw_cast(g, tw_square(g, Z(0)), TW_FLOAT64))
OF_Z(complex_cast, tw_mul(g, tw_cast(g, x[0], TW_COMPLEX128), Z(1)))
OF_Z(sum, tw_reduce_sum(g, tw_square(g, Z(0)), TW_AXES(0), false))
OF_Z(mean, tw_reduce_mean(g, tw_square(g, Z(0)), TW_AXES(1), true))
OF_Z(product, tw_reduce_prod(g, Z(0), TW_AXES(1), false))
OF_Z(running_sum, tw_cumsum(g, tw_square(g, Z(0)), 1, true, true))
OF_Z(running_product, tw_cumprod(g, Z(0), 1, false, false))
OF_Z(matmul, tw_matmul_transposed(g, Z(0), Z(1), true, false))
OF_Z(adjoint_matmul, tw_batch_matmul(g, Z(0), Z(1), true, true))
OF_Z(gathered, tw_gather(g, tw_square(g, Z(0)), tw_constant_int32s(g, TW_SHAPE(3), (int32_t[]){1, 0, 1}), 0))
OF_Z(fft, tw_fft(g, Z(0), 1))
OF_Z(inverse_fft_2, tw_inverse_fft(g, Z(0), 2))
OF_Z(fft_3, tw_fft(g, Z(0), 3))
OF_Z(real_fft, tw_real_fft(g, x[0], 1, NULL))
OF_Z(short_real_fft, tw_real_fft(g, x[0], 1, (int64_t[]){4}))
OF_Z(long_real_fft, tw_real_fft(g, x[0], 2, ((int64_t[]){3, 8})))
OF_Z(real_fft_3, tw_real_fft(g, x[0], 3, NULL))
REAL_OF_Z(inverse_real_fft, tw_inverse_real_fft(g, Z(0), 1, (int64_t[]){5}))
REAL_OF_Z(short_inverse_real_fft, tw_inverse_real_fft(g, Z(0), 1, (int64_t[]){2}))
REAL_OF_Z(inverse_real_fft_2, tw_inverse_real_fft(g, Z(0), 2, ((int64_t[]){3, 6})))
REAL_OF_Z(inverse_real_fft_3, tw_inverse_real_fft(g, Z(0), 3, NULL))

static void gradients_are_slopes(void **state)
{
    (void)state;
    static const twt_gradient_case cases[] = {
        {"Mul", mul, {{3, {2, 2, 3}}, {2, {2, 3}}}, 2, .twice = true},
        {"MulNoNan", mul_no_nan, {{3, {2, 2, 3}}, {2, {2, 3}}}, 2},
        {"Xdivy", xdivy, {{3, {2, 2, 3}}, {2, {2, 3}}}, 2, 0, 0.5, 2},
        {"Xlogy", xlogy, {{3, {2, 2, 3}}, {2, {2, 3}}}, 2, 0, 0.5, 2},
        {"Xlog1py", xlog1py, {{3, {2, 2, 3}}, {2, {2, 3}}}, 2, 0, 0.5, 2},
        {"RealDiv", divide, {{3, {2, 2, 3}}, {2, {2, 3}}}, 2, 0, 0.5, 2, true},
        {"Pow", power, {{2, {2, 3}}, {2, {2, 3}}}, 2, 0, 0.5, 2},
        {"Square", square, {{2, {2, 5}}}, 1, .twice = true},
        {"Sqrt", square_root, {{2, {2, 5}}}, 1, 0, 0.5, 2, true},
        {"Rsqrt", reciprocal_root, {{2, {2, 5}}}, 1, 0, 0.5, 2, true},
        {"Reciprocal", reciprocal, {{2, {2, 5}}}, 1, 0, 0.5, 2, true},
        {"Exp", exponential, {{2, {2, 5}}}, 1, .twice = true},
        {"Expm1", exponential_1, {{2, {2, 5}}}, 1},
        {"Log", logarithm, {{2, {2, 5}}}, 1, 0, 0.5, 2, true},
        {"Log1p", logarithm_1, {{2, {2, 5}}}, 1, 0, 0.5, 2},
        {"Sin", sine, {{2, {2, 5}}}, 1, .twice = true},
        {"Cos", cosine, {{2, {2, 5}}}, 1},
        {"Tan", tangent, {{2, {2, 5}}}, 1},
        {"Tanh", hyperbolic_tangent, {{2, {2, 5}}}, 1, .twice = true},
        {"Sigmoid", sigmoid, {{2, {2, 5}}}, 1, .twice = true},
        {"Asin", arc_sine, {{2, {2, 5}}}, 1, 0, 0.5, 2},
        {"Acosh", area_cosine, {{2, {2, 5}}}, 1, 0, 0.5, 2},
        {"Conj", conjugate, {{2, {2, 3}}}, 1},
        {"ComplexAbs", magnitude, {{2, {2, 5}}}, 1, 0, 0.5, 2, true},
        {"Angle", angle, {{2, {2, 5}}}, 1, 0, 0.5, 2, true},
        {"Cast to real", real_cast, {{2, {2, 3}}}, 1},
        {"Cast to complex", complex_cast, {{1, {3}}, {2, {2, 3}}}, 2},
        {"Sum", sum, {{3, {2, 3, 2}}}, 1},
        {"Mean", mean, {{3, {2, 3, 2}}}, 1},
        {"Prod", product, {{3, {2, 2, 3}}}, 1},
        {"Prod, sizes not known", product, {{3, {2, 2, 3}}}, 1, .open = true},
        {"Cumsum", running_sum, {{3, {2, 2, 3}}}, 1},
        {"Cumprod", running_product, {{3, {2, 2, 3}}}, 1, 0, 0.5, 2},
        {"MatMul", matmul, {{3, {2, 3, 2}}, {3, {2, 3, 4}}}, 2},
        {"BatchMatMulV2", adjoint_matmul, {{4, {2, 2, 3, 2}}, {3, {2, 4, 3}}}, 2},
        {"GatherV2", gathered, {{3, {2, 2, 2}}}, 1},
        {"FFT", fft, {{3, {2, 2, 5}}}, 1},
        {"FFT, sizes not known", fft, {{3, {2, 2, 5}}}, 1, .open = true},
        {"IFFT2D", inverse_fft_2, {{3, {2, 3, 4}}}, 1},
        {"FFT3D", fft_3, {{4, {2, 2, 3, 2}}}, 1},
        {"RFFT", real_fft, {{2, {2, 6}}}, 1},
        {"RFFT of an odd length", real_fft, {{1, {5}}}, 1},
        {"RFFT of the first four", short_real_fft, {{2, {2, 6}}}, 1},
        {"RFFT2D of more than there is", long_real_fft, {{2, {2, 5}}}, 1},
        {"RFFT3D", real_fft_3, {{3, {2, 3, 4}}}, 1},
        {"IRFFT", inverse_real_fft, {{2, {2, 3}}}, 1},
        {"IRFFT of the first two", short_inverse_real_fft, {{2, {2, 3}}}, 1},
        {"IRFFT2D", inverse_real_fft_2, {{3, {2, 3, 4}}}, 1},
        {"IRFFT3D", inverse_real_fft_3, {{4, {2, 2, 3, 3}}}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        twt_check_gradients(&cases[i]);
}

static void a_complex_y_has_no_gradient_of_its_own(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(g, TW_COMPLEX64, TW_SHAPE(2)), dx;
    tw_gradients(g, &x, 1, NULL, &x, 1, &dx);
    assert_message(tw_graph_message(g), "it is complex64, which needs its grad_ys");
    tw_graph_destroy(g);
}

/* ---- transforms of any length ------------------------------------------------------------------------------------ */

/* Rows that are transformed together are the row that is transformed alone, and multiples of it. */
static void assert_rows_like(const twt_op *alone, int64_t n)
{
    enum { ROWS = 5 };
    tw_error error = {0};
    twt_op op = {.op = "FFT", .num_inputs = 1, .inputs = {tw_tensor_create(TW_COMPLEX128, TW_SHAPE(ROWS, n))}};
    const double *x = tw_tensor_data(alone->inputs[0]), *y = tw_tensor_data(alone->outputs[0]);
    for (int64_t i = 0; i < ROWS * 2 * n; i++)
        ((double *)tw_tensor_data(op.inputs[0]))[i] = x[i % (2 * n)] * (double)(i / (2 * n));
    assert_ok(twt_op_run(&op, &error));
    const double *rows = tw_tensor_data(op.outputs[0]);
    for (int64_t i = 0; i < ROWS * 2 * n; i++)
        assert_true(fabs(rows[i] - y[i % (2 * n)] * (double)(i / (2 * n))) < 1e-10);
    twt_op_release(&op);
}

/* Against the sum itself, in double, for lengths of all kinds: what comes back, too. */
static void transforms_of_any_length_are_exact(void **state)
{
    static const int64_t lengths[] = {1, 14, 15, 34, 97, 101, 128, 169, 210, 289, 360, 499, 512, 625, 1001};
    (void)state;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        tw_error error = {0};
        int64_t n = lengths[l];
        twt_op op = {.op = "FFT", .num_inputs = 1, .inputs = {tw_tensor_create(TW_COMPLEX128, TW_SHAPE(n))}};
        double *x = tw_tensor_data(op.inputs[0]);
        for (int64_t i = 0; i < 2 * n; i++)
            x[i] = (double)((i * 7919 + 13) % 2003) / 1000 - 1;
        assert_ok(twt_op_run(&op, &error));
        const double *y = tw_tensor_data(op.outputs[0]);
        for (int64_t j = 0; j < n; j++) {
            double re = 0, im = 0;
            for (int64_t k = 0; k < n; k++) {
                double angle = -2 * 3.14159265358979323846 * (double)(j * k % n) / (double)n, c = cos(angle),
                       s = sin(angle);
                re += x[2 * k] * c - x[2 * k + 1] * s;
                im += x[2 * k] * s + x[2 * k + 1] * c;
            }
            assert_true(fabs(re - y[2 * j]) < 1e-10 && fabs(im - y[2 * j + 1]) < 1e-10);
        }
        assert_rows_like(&op, n);
        twt_op back = {.op = "IFFT", .num_inputs = 1, .inputs = {tw_tensor_retain(op.outputs[0])}};
        assert_ok(twt_op_run(&back, &error));
        for (int64_t i = 0; i < 2 * n; i++)
            assert_true(fabs(((const double *)tw_tensor_data(back.outputs[0]))[i] - x[i]) < 1e-12);
        twt_op_release(&op);
        twt_op_release(&back);
    }
}

/* ---- carried ----------------------------------------------------------------------------------------------------- */

static const tw_dtype carried[] = {TW_COMPLEX64, TW_COMPLEX128, TW_QINT8, TW_QUINT8, TW_QINT16, TW_QUINT16, TW_QINT32};
enum { NUM_CARRIED = sizeof carried / sizeof *carried };

static tw_tensor *some_values(tw_dtype dtype)
{
    unsigned char bytes[6 * 16];
    float parts[12] = {1, -2, 0.5f, 3, 0, 1, -1, 2, 4, 0, -3, 0.25f};
    double doubles[12];
    for (int i = 0; i < 12; i++)
        doubles[i] = parts[i];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37 + 200);
    return tw_tensor_from(dtype, TW_SHAPE(2, 3), dtype == TW_COMPLEX64 ? (void *)parts : dtype == TW_COMPLEX128 ? (void *)doubles : bytes);
}

static void assert_same_bytes(const tw_tensor *a, const tw_tensor *b)
{
    assert_int_equal(tw_tensor_dtype(a), tw_tensor_dtype(b));
    assert_true(tw_shape_equal(tw_tensor_shape(a), tw_tensor_shape(b)));
    assert_memory_equal(tw_tensor_data(a), tw_tensor_data(b), tw_tensor_bytes(a));
}

/* Through a graph that moves them there and back, fed and as a constant, on the host though a GPU is asked for. */
static void values_are_carried_through_graphs(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_CARRIED; i++) {
        tw_tensor *value = some_values(carried[i]), *results[4] = {0};
        tw_graph *g = tw_graph_create();
        tw_devices *devices = NULL;
        tw_session *s = NULL;
        tw_error error = {0};
        tw_enter_device(g, "/gpu:0");
        tw_output fed = tw_placeholder(g, carried[i], TW_SHAPE(2, 3)), parts[3];
        tw_split(g, tw_transpose(g, tw_transpose(g, fed, TW_SHAPE(1, 0)), TW_SHAPE(1, 0)), 1, parts, 3);
        tw_output moved = tw_reshape(g, tw_concat(g, parts, 3, 1), TW_SHAPE(2, 3));
        tw_output same = tw_reduce_all(g, tw_equal(g, moved, fed), NULL, 0, false);
        tw_attr to_bytes = tw_attr_type("type", TW_UINT8), from_bytes = tw_attr_type("type", carried[i]);
        tw_output bytes = tw_node_output(tw_add_node(g, "Bitcast", NULL, &fed, 1, &to_bytes, 1), 0);
        tw_output made = tw_node_output(tw_add_node(g, "Bitcast", NULL, &bytes, 1, &from_bytes, 1), 0);
        tw_output fetches[] = {moved, tw_constant(g, value), made, same};
        tw_leave_device(g);
        assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = 1}, &devices, &error));
        assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .allow_soft_placement = true}, &s, &error));
        tw_feed feed = {fed, value};
        assert_string_equal(tw_graph_message(g), "");
        assert_ok(tw_session_run(s, &feed, 1, fetches, 4, results, &error));
        assert_same_bytes(results[0], value);
        assert_same_bytes(results[1], value);
        assert_same_bytes(results[2], value);
        assert_true(tw_tensor_value(results[3], 0) == 1);
        for (int k = 0; k < 4; k++)
            tw_tensor_release(results[k]);
        tw_session_destroy(s);
        tw_devices_destroy(devices);
        tw_graph_destroy(g);
        tw_tensor_release(value);
    }
}

static void an_axis_beyond_any_rank_is_refused(void **state)
{
    (void)state;
    const int64_t axes[] = {INT64_MAX, INT32_MAX, TW_MAX_RANK, -2};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        tw_graph *g = tw_graph_create();
        tw_output inputs[3];
        for (int k = 0; k < 3; k++)
            inputs[k] = tw_placeholder(g, TW_FLOAT32, k == 0 ? TW_SHAPE(2, 3) : TW_SHAPE(-1));
        const tw_attr attrs[] = {tw_attr_type("T", TW_QINT8), tw_attr_int("axis", axes[i])};
        assert_null(tw_add_node(g, "QuantizeV2", "n", inputs, 3, attrs, 2));
        assert_message(tw_graph_message(g), "axis must be at least -1");
        tw_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complex_ops_give_the_results_of_tensorflow),
        cmocka_unit_test(gradients_are_those_of_tensorflow),
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(a_complex_y_has_no_gradient_of_its_own),
        cmocka_unit_test(transforms_of_any_length_are_exact),
        cmocka_unit_test(values_are_carried_through_graphs),
        cmocka_unit_test(an_axis_beyond_any_rank_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
