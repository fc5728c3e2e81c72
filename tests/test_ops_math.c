/* test_ops_math.c - element-wise ops, reductions and matrix products: TensorFlow's results, and refusals. */
#include "op_testing.h"

#include <complex.h>

static void math_ops_give_the_results_of_tensorflow(void **state)
{
    (void)state;
    twt_run_golden("ops_math.txt");
}

/* Of a dimension that nobody could walk along: with the loops of a kernel this test would not end. */
static void an_empty_tensor_is_done_with_at_once(void **state)
{
    static const struct {
        const char *op, *data_format;
        tw_shape x, y; /* y of rank -1: one input */
    } cases[] = {
        {"AddV2", NULL, {2, {INT64_C(1) << 40, 0}}, {1, {0}}},
        {"Mul", NULL, {8, {2, 13, 64, 64, 64, 64, 0, 1}}, {8, {2, 13, 64, 64, 64, 64, 1, 1}}},
        {"Less", NULL, {4, {1 << 30, 2, 0, 7}}, {1, {7}}},
        {"Equal", NULL, {2, {INT64_C(1) << 40, 0}}, {1, {1}}},
        {"BiasAdd", NULL, {2, {INT64_C(1) << 40, 0}}, {1, {0}}},
        {"BiasAdd", "NCHW", {3, {INT64_C(1) << 40, 3, 0}}, {1, {3}}},
        {"BiasAddGrad", "NCHW", {3, {INT64_C(1) << 40, 3, 0}}, {-1, {0}}},
        {"Relu", NULL, {2, {INT64_C(1) << 40, 0}}, {-1, {0}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_error error = {0};
        twt_op op = {.op = cases[i].op, .num_inputs = 1, .inputs = {tw_tensor_create(TW_FLOAT32, cases[i].x)}};
        if (cases[i].y.rank >= 0)
            op.inputs[op.num_inputs++] = tw_tensor_create(TW_FLOAT32, cases[i].y);
        if (cases[i].data_format)
            op.attrs[op.num_attrs++] = tw_attr_string("data_format", cases[i].data_format);
        assert_ok(twt_op_run(&op, &error));
        for (int64_t k = 0; k < tw_tensor_elements(op.outputs[0]); k++)
            assert_true(tw_tensor_value(op.outputs[0], k) == 0);
        twt_op_release(&op);
    }
}

static void what_is_no_number_is_not_converted(void **state)
{
    static const tw_dtype others[] = {TW_STRING, TW_RESOURCE};
    (void)state;
    for (int i = 0; i < 2; i++) {
        tw_graph *g = tw_graph_create();
        tw_output from = tw_placeholder(g, others[i], TW_SHAPE(2)), number = tw_scalar(g, 1);
        assert_null(tw_cast(g, from, TW_FLOAT32).node);
        assert_message(tw_graph_message(g), tw_dtype_name(others[i]));
        tw_graph_destroy(g);
        g = tw_graph_create();
        number = tw_scalar(g, 1);
        assert_null(tw_cast(g, number, others[i]).node);
        assert_message(tw_graph_message(g), tw_dtype_name(others[i]));
        tw_graph_destroy(g);
    }
}

static void what_no_memory_holds_is_refused_when_it_is_built(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_tensor *ends[] = {tw_tensor_int64(0), tw_tensor_int64(INT64_C(1) << 62), tw_tensor_int64(1)};
    tw_output from = tw_constant(g, ends[0]), to = tw_constant(g, ends[1]), step = tw_constant(g, ends[2]);
    assert_null(tw_range(g, from, to, step).node);
    for (int i = 0; i < 3; i++)
        tw_tensor_release(ends[i]);
    assert_message(tw_graph_message(g), "a range of 4611686018427387904 elements");
    tw_graph_destroy(g);
    assert_int_equal(tw_shape_elements(TW_SHAPE(INT64_C(1) << 60)), -1); /* whose bytes cannot be counted */
    assert_int_equal(tw_shape_elements(TW_SHAPE(INT64_C(1) << 58)), INT64_C(1) << 58);
    assert_int_equal(tw_shape_elements(TW_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40, 0)), -1);
    assert_int_equal(tw_shape_elements(TW_SHAPE(INT64_C(1) << 40, 0)), 0);
}

/* What lay on the stack before is no rank: a MatrixSolveLs whose stacks differ copied that many dimensions once. */
static __attribute__((noinline)) void fill_stack(void)
{
    volatile unsigned char bytes[1 << 15];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 0x11;
}

static void systems_whose_stacks_differ_are_refused(void **state)
{
    (void)state;
    for (int least_squares = 0; least_squares <= 1; least_squares++) {
        tw_graph *g = tw_graph_create();
        tw_output inputs[] = {tw_placeholder(g, TW_FLOAT32, TW_SHAPE(2, 3, 3)),
                              tw_placeholder(g, TW_FLOAT32, TW_SHAPE(5, 3, 1)),
                              tw_placeholder(g, TW_FLOAT64, TW_SCALAR)};
        fill_stack();
        const char *op = least_squares ? "MatrixSolveLs" : "MatrixSolve";
        assert_null(tw_add_node(g, op, "x", inputs, 2 + least_squares, NULL, 0));
        assert_message(tw_graph_message(g), "shapes differ: [2] and [5]");
        tw_graph_destroy(g);
    }
}

static void eigenvalues_have_the_type_of_the_matrix(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(3, 3));
    assert_null(tw_add_node(g, "Eig", "x", &x, 1, (tw_attr[]){tw_attr_type("Tout", TW_COMPLEX128)}, 1));
    assert_message(tw_graph_message(g), "Tout is complex128, expected complex64 of float");
    tw_graph_destroy(g);
}

static void accidental_hits_are_of_as_many_classes_as_are_said(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output inputs[] = {tw_placeholder(g, TW_INT64, TW_SHAPE(3, 1)), tw_placeholder(g, TW_INT64, TW_SHAPE(4))};
    assert_null(tw_add_node(g, "ComputeAccidentalHits", "x", inputs, 2, (tw_attr[]){tw_attr_int("num_true", 2)}, 1));
    assert_message(tw_graph_message(g), "1 true classes, num_true says 2");
    tw_graph_destroy(g);
}

enum { SIDE = 21, COLUMNS = 3 }; /* of matrices that are taken apart by halves, the last of them odd */

typedef double complex square[SIDE][SIDE];

static tw_tensor *matrix(tw_dtype dtype, int64_t columns, const double complex *numbers)
{
    tw_tensor *made = tw_tensor_create(dtype, TW_SHAPE(SIDE, columns));
    for (int64_t i = 0; i < SIDE * columns; i++)
        if (dtype == TW_FLOAT32)
            ((float *)tw_tensor_data(made))[i] = (float)creal(numbers[i]);
        else if (dtype == TW_FLOAT64)
            ((double *)tw_tensor_data(made))[i] = creal(numbers[i]);
        else if (dtype == TW_COMPLEX64)
            ((float complex *)tw_tensor_data(made))[i] = (float complex)numbers[i];
        else
            ((double complex *)tw_tensor_data(made))[i] = numbers[i];
    return made;
}

static void assert_matrix(const tw_tensor *got, const double complex *expected, double tolerance)
{
    for (int64_t i = 0; i < tw_tensor_elements(got); i++) {
        double complex number = CMPLX(tw_tensor_value(got, i), tw_tensor_imaginary(got, i));
        if (!(cabs(number - expected[i]) <= tolerance))
            fail_msg("element %d of %s is off by %g", (int)i, tw_dtype_name(tw_tensor_dtype(got)),
                     cabs(number - expected[i]));
    }
}

/* Rows must change places in it: what is large stands beside the diagonal. */
static void fill(bool is_complex, square a)
{
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            a[i][j] = sin(7 * i + 3 * j) + (j == (i + 5) % SIDE ? 9 : 0) + (is_complex ? I * cos(5 * i - 2 * j) : 0);
}

static twt_op solve_op(tw_dtype dtype, square a, double complex b[SIDE][COLUMNS])
{
    return (twt_op){.op = "MatrixSolve", .num_inputs = 2,
                    .inputs = {matrix(dtype, SIDE, a[0]), matrix(dtype, COLUMNS, b[0])}};
}

static void matrices_that_are_taken_apart_are_solved(void **state)
{
    static const tw_dtype types[] = {TW_FLOAT32, TW_FLOAT64, TW_COMPLEX64, TW_COMPLEX128};
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        double tolerance = types[t] == TW_FLOAT64 || types[t] == TW_COMPLEX128 ? 1e-11 : 1e-4;
        tw_error error = {0};
        square a;
        double complex x[SIDE][COLUMNS], b[SIDE][COLUMNS] = {{0}};
        fill(tw_dtype_is_complex(types[t]), a);
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < COLUMNS; j++)
                x[i][j] = i - 4 * j;
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < COLUMNS; j++)
                for (int k = 0; k < SIDE; k++)
                    b[i][j] += a[i][k] * x[k][j];
        twt_op op = solve_op(types[t], a, b);
        assert_ok(twt_op_run(&op, &error));
        assert_matrix(op.outputs[0], x[0], 10 * tolerance);
        twt_op_release(&op);
        for (int row = 3; row < SIDE; row += 15) { /* a column of nothing, among the first and among the last */
            for (int i = 0; i < SIDE; i++)
                a[i][row] = 0;
            op = solve_op(types[t], a, b);
            assert_fails(twt_op_run(&op, &error), TW_INVALID_ARGUMENT, "not invertible");
            twt_op_release(&op);
            fill(tw_dtype_is_complex(types[t]), a);
        }
    }
}

static void large_positive_matrices_have_a_root(void **state)
{
    static const tw_dtype types[] = {TW_FLOAT32, TW_FLOAT64, TW_COMPLEX64, TW_COMPLEX128};
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        double tolerance = types[t] == TW_FLOAT64 || types[t] == TW_COMPLEX128 ? 1e-11 : 1e-4;
        tw_error error = {0};
        square root, product;
        fill(tw_dtype_is_complex(types[t]), root);
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < SIDE; j++)
                root[i][j] = j > i ? 0 : j == i ? 5 + i : root[i][j];
        memset(product, 0, sizeof product);
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < SIDE; j++)
                for (int k = 0; k < SIDE; k++)
                    product[i][j] += root[i][k] * conj(root[j][k]);
        twt_op op = {.op = "Cholesky", .num_inputs = 1, .inputs = {matrix(types[t], SIDE, product[0])}};
        assert_ok(twt_op_run(&op, &error));
        assert_matrix(op.outputs[0], root[0], 10 * tolerance);
        twt_op_release(&op);
        for (int row = 18; row > 0; row -= 15) { /* not positive among the last, then among the first */
            product[row][row] = -1;
            op = (twt_op){.op = "Cholesky", .num_inputs = 1, .inputs = {matrix(types[t], SIDE, product[0])}};
            assert_ok(twt_op_run(&op, &error));
            assert_true(isnan(tw_tensor_value(op.outputs[0], 0)) && tw_tensor_value(op.outputs[0], 1) == 0);
            twt_op_release(&op);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(math_ops_give_the_results_of_tensorflow),
        cmocka_unit_test(an_empty_tensor_is_done_with_at_once),
        cmocka_unit_test(what_is_no_number_is_not_converted),
        cmocka_unit_test(what_no_memory_holds_is_refused_when_it_is_built),
        cmocka_unit_test(systems_whose_stacks_differ_are_refused),
        cmocka_unit_test(eigenvalues_have_the_type_of_the_matrix),
        cmocka_unit_test(accidental_hits_are_of_as_many_classes_as_are_said),
        cmocka_unit_test(matrices_that_are_taken_apart_are_solved),
        cmocka_unit_test(large_positive_matrices_have_a_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
