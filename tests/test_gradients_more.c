/* test_gradients_more.c - gradient rules of ops that no tw_ function builds, against finite differences: those above
 * all that today's TensorFlow does not differentiate, or in another way than TensorFlow 1 did. */
#include "gradient_testing.h"

static tw_output add(tw_graph *g, const char *op, const tw_output *inputs, int num_inputs, const tw_attr *attrs,
                     int num_attrs)
{
    return tw_node_output(tw_add_node(g, op, NULL, inputs, num_inputs, attrs, num_attrs), 0);
}

static tw_output numbers(tw_graph *g, const int32_t *values, int count)
{
    tw_tensor *tensor = tw_tensor_from(TW_INT32, count ? TW_SHAPE(count) : TW_SCALAR, values);
    tw_output output = tw_constant(g, tensor);
    tw_tensor_release(tensor);
    return output;
}

/* ---- cells ------------------------------------------------------------------------------------------------- */

/* Of an output that only the last state depends on. */
static tw_output gru(tw_graph *g, const tw_output *xs)
{
    tw_output w_c = tw_scalar_of(g, TW_FLOAT32, 0.3), c = tw_fill(g, numbers(g, (int32_t[]){4, 2}, 2), w_c);
    tw_output b = tw_fill(g, numbers(g, (int32_t[]){2}, 1), w_c);
    tw_output inputs[] = {xs[0], xs[1], xs[2], tw_mul(g, c, tw_slice(g, xs[2], TW_SHAPE(0, 0), TW_SHAPE(4, 2))),
                          xs[3], b};
    tw_node *node = tw_add_node(g, "GRUBlockCell", NULL, inputs, 6, NULL, 0);
    return node ? tw_node_output(node, 3) : (tw_output){0};
}

static tw_output lstm(tw_graph *g, const tw_output *xs)
{
    tw_output some = tw_fill(g, numbers(g, (int32_t[]){2}, 1), tw_scalar_of(g, TW_FLOAT32, 0.2));
    tw_output b = tw_fill(g, numbers(g, (int32_t[]){8}, 1), tw_scalar_of(g, TW_FLOAT32, 0.1));
    tw_output inputs[] = {xs[0], xs[1], xs[2], xs[3], some, some, some, b};
    tw_attr attrs[] = {tw_attr_bool("use_peephole", true)};
    tw_node *node = tw_add_node(g, "LSTMBlockCell", NULL, inputs, 8, attrs, 1);
    return node ? tw_add(g, tw_node_output(node, 6), tw_node_output(node, 1)) : (tw_output){0};
}

/* ---- matrices ---------------------------------------------------------------------------------------------- */

static tw_output band_of_diagonals(tw_graph *g, const tw_output *xs)
{
    tw_output zero = tw_scalar_of(g, TW_FLOAT64, 0), all = numbers(g, (int32_t[]){-1}, 0);
    tw_output inputs[] = {xs[0], numbers(g, (int32_t[]){-1, 1}, 2), all, all, zero};
    return add(g, "MatrixDiagV2", inputs, 5, NULL, 0);
}

static tw_output diagonals(tw_graph *g, const tw_output *xs)
{
    tw_output inputs[] = {xs[0], numbers(g, (int32_t[]){-1, 1}, 2), tw_scalar_of(g, TW_FLOAT64, 0)};
    return add(g, "MatrixDiagPartV2", inputs, 3, NULL, 0);
}

static tw_output with_diagonals(tw_graph *g, const tw_output *xs)
{
    tw_output inputs[] = {xs[0], xs[1], numbers(g, (int32_t[]){-1, 0}, 2)};
    return add(g, "MatrixSetDiagV2", inputs, 3, NULL, 0);
}

/* Of a matrix that is far from singular. */
static tw_output regular(tw_graph *g, tw_output x)
{
    tw_output twos = tw_fill(g, numbers(g, (int32_t[]){3}, 1), tw_scalar_of(g, TW_FLOAT64, 4));
    return tw_add(g, x, add(g, "MatrixDiag", &twos, 1, NULL, 0));
}

static tw_output inverse(tw_graph *g, const tw_output *xs)
{
    tw_output x = regular(g, xs[0]);
    return add(g, "MatrixInverse", &x, 1, (tw_attr[]){tw_attr_bool("adjoint", true)}, 1);
}

static tw_output determinant(tw_graph *g, const tw_output *xs)
{
    tw_output x = regular(g, xs[0]);
    return add(g, "MatrixDeterminant", &x, 1, NULL, 0);
}

static tw_output cholesky(tw_graph *g, const tw_output *xs)
{
    tw_output x = regular(g, xs[0]), square = tw_matmul_transposed(g, x, x, false, true);
    return add(g, "Cholesky", &square, 1, NULL, 0);
}

static tw_output solved(tw_graph *g, const tw_output *xs)
{
    tw_output inputs[] = {regular(g, xs[0]), xs[1]};
    return add(g, "MatrixSolve", inputs, 2, (tw_attr[]){tw_attr_bool("adjoint", true)}, 1);
}

static tw_output eigenvectors(tw_graph *g, const tw_output *xs)
{
    tw_output x = tw_add(g, xs[0], tw_transpose(g, xs[0], TW_SHAPE(1, 0)));
    tw_node *node = tw_add_node(g, "SelfAdjointEigV2", NULL, &x, 1, NULL, 0);
    if (!node)
        return (tw_output){0};
    return tw_add(g, tw_square(g, tw_node_output(node, 1)), tw_node_output(node, 0)); /* signs do not matter */
}

static tw_output qr(tw_graph *g, const tw_output *xs)
{
    tw_node *node = tw_add_node(g, "Qr", NULL, xs, 1, NULL, 0);
    return node ? tw_matmul(g, tw_square(g, tw_node_output(node, 0)), tw_node_output(node, 1)) : (tw_output){0};
}

/* Signs of vectors do not matter: those of u and v are the same. */
static tw_output svd(tw_graph *g, const tw_output *xs, bool full)
{
    tw_node *node = tw_add_node(g, "Svd", NULL, xs, 1, (tw_attr[]){tw_attr_bool("full_matrices", full)}, 1);
    if (!node)
        return (tw_output){0};
    tw_output s = tw_node_output(node, 0), u = tw_square(g, tw_node_output(node, 1)),
              v = tw_square(g, tw_node_output(node, 2));
    tw_output parts[] = {tw_reshape(g, s, TW_SHAPE(-1)), tw_reshape(g, u, TW_SHAPE(-1)),
                         tw_reshape(g, v, TW_SHAPE(-1))};
    return tw_concat(g, parts, 3, 0);
}

static tw_output thin_svd(tw_graph *g, const tw_output *xs)
{
    return svd(g, xs, false);
}

static tw_output full_svd(tw_graph *g, const tw_output *xs)
{
    return svd(g, xs, true);
}

static tw_output singular_values(tw_graph *g, const tw_output *xs)
{
    return add(g, "Svd", xs, 1, (tw_attr[]){tw_attr_bool("compute_uv", false)}, 1);
}

static tw_output hsv(tw_graph *g, const tw_output *xs)
{
    return add(g, "RGBToHSV", xs, 1, NULL, 0);
}

static tw_output diagonal(tw_graph *g, const tw_output *xs)
{
    return add(g, "Einsum", xs, 2, (tw_attr[]){tw_attr_string("equation", "bii,ij->bj")}, 1);
}

/* What is summed away is a diagonal, of one tensor and of two. */
static tw_output traces(tw_graph *g, const tw_output *xs)
{
    tw_output all = add(g, "Einsum", xs, 1, (tw_attr[]){tw_attr_string("equation", "biib->")}, 1);
    return tw_add(g, all, add(g, "Einsum", xs, 2, (tw_attr[]){tw_attr_string("equation", "biij,j->")}, 1));
}

static tw_output einsum(tw_graph *g, const tw_output *xs)
{
    return add(g, "Einsum", xs, 2, (tw_attr[]){tw_attr_string("equation", "...ab,bc->...c")}, 1);
}

/* A column of numbers, to be added to rows. */
static tw_output column(tw_graph *g, const double *values, int64_t count)
{
    tw_tensor *tensor = tw_tensor_from(TW_FLOAT64, TW_SHAPE(count, 1), values);
    tw_output output = tw_constant(g, tensor);
    tw_tensor_release(tensor);
    return output;
}

static tw_output solved_by_three(tw_graph *g, const tw_output *xs)
{
    tw_output inputs[] = {tw_add(g, xs[0], column(g, (double[]){0, 4, 0}, 3)), xs[1]};
    return add(g, "TridiagonalSolve", inputs, 2, NULL, 0);
}

static tw_output times_three(tw_graph *g, const tw_output *xs)
{
    return add(g, "TridiagonalMatMul", xs, 4, NULL, 0);
}

static tw_output solved_by_bands(tw_graph *g, const tw_output *xs)
{
    tw_output inputs[] = {tw_add(g, xs[0], column(g, (double[]){4, 0}, 2)), xs[1]};
    return add(g, "BandedTriangularSolve", inputs, 2, NULL, 0);
}

static tw_output square_root(tw_graph *g, const tw_output *xs)
{
    tw_output x = regular(g, xs[0]);
    return add(g, "MatrixSquareRoot", &x, 1, NULL, 0);
}

/* Of values that are apart: the sizes of these and of their vectors, whose phases do not matter. */
static tw_output of_any_matrix(tw_graph *g, const tw_output *xs)
{
    tw_output apart = tw_reshape(g, column(g, (double[]){1, 4, 8}, 3), TW_SHAPE(3));
    tw_output x = tw_add(g, xs[0], add(g, "MatrixDiag", &apart, 1, NULL, 0));
    tw_node *node = tw_add_node(g, "Eig", NULL, &x, 1, (tw_attr[]){tw_attr_type("Tout", TW_COMPLEX128)}, 1);
    tw_output parts[2];
    for (int i = 0; i < 2 && node; i++) {
        tw_output of = tw_node_output(node, i);
        parts[i] = add(g, "ComplexAbs", &of, 1, (tw_attr[]){tw_attr_type("Tout", TW_FLOAT64)}, 1);
        parts[i] = tw_reshape(g, parts[i], TW_SHAPE(-1));
    }
    return node ? tw_concat(g, parts, 2, 0) : (tw_output){0};
}

/* ---- segments, places, patches ----------------------------------------------------------------------------- */

static tw_output segment_products(tw_graph *g, const tw_output *xs)
{
    tw_output inputs[] = {xs[0], numbers(g, (int32_t[]){0, 0, 2, 2}, 4)};
    return add(g, "SegmentProd", inputs, 2, NULL, 0);
}

static tw_output volume_patches(tw_graph *g, const tw_output *xs)
{
    static const int64_t sizes[] = {1, 2, 2, 1, 1}, strides[] = {1, 1, 2, 1, 1};
    tw_attr attrs[] = {tw_attr_ints("ksizes", sizes, 5), tw_attr_ints("strides", strides, 5),
                       tw_attr_string("padding", "SAME")};
    return add(g, "ExtractVolumePatches", xs, 1, attrs, 3);
}

static tw_output patches(tw_graph *g, const tw_output *xs)
{
    static const int64_t sizes[] = {1, 2, 3, 1}, strides[] = {1, 2, 1, 1}, rates[] = {1, 1, 2, 1};
    tw_attr attrs[] = {tw_attr_ints("ksizes", sizes, 4), tw_attr_ints("strides", strides, 4),
                       tw_attr_ints("rates", rates, 4), tw_attr_string("padding", "SAME")};
    return add(g, "ExtractImagePatches", xs, 1, attrs, 4);
}

static tw_output blocks(tw_graph *g, const tw_output *xs)
{
    return add(g, "SpaceToBatch",
               (tw_output[]){xs[0], tw_reshape(g, numbers(g, (int32_t[]){1, 1, 0, 0}, 4), TW_SHAPE(2, 2))}, 2,
               (tw_attr[]){tw_attr_int("block_size", 2)}, 1);
}

/* ---- sparse tensors ------------------------------------------------------------------------------------------ */

static tw_output longs(tw_graph *g, const int64_t *values, tw_shape shape)
{
    tw_tensor *tensor = tw_tensor_from(TW_INT64, shape, values);
    tw_output output = tw_constant(g, tensor);
    tw_tensor_release(tensor);
    return output;
}

/* Four entries of a tensor [2,3], two a row. */
static tw_output entries(tw_graph *g)
{
    return longs(g, (int64_t[]){0, 0, 0, 2, 1, 1, 1, 2}, TW_SHAPE(4, 2));
}

static tw_output with_dense(tw_graph *g, const char *op, const tw_output *xs)
{
    return add(g, op, (tw_output[]){entries(g), xs[0], longs(g, (int64_t[]){2, 3}, TW_SHAPE(2)), xs[1]}, 4, NULL, 0);
}

static tw_output plus_dense(tw_graph *g, const tw_output *xs)
{
    return with_dense(g, "SparseDenseCwiseAdd", xs);
}

static tw_output times_dense(tw_graph *g, const tw_output *xs)
{
    return with_dense(g, "SparseDenseCwiseMul", xs);
}

static tw_output by_dense(tw_graph *g, const tw_output *xs)
{
    return with_dense(g, "SparseDenseCwiseDiv", xs);
}

static tw_output added_to_dense(tw_graph *g, const tw_output *xs)
{
    return with_dense(g, "SparseTensorDenseAdd", xs);
}

static tw_output softmax_of_entries(tw_graph *g, const tw_output *xs)
{
    return add(g, "SparseSoftmax", (tw_output[]){entries(g), xs[0], longs(g, (int64_t[]){2, 3}, TW_SHAPE(2))}, 3, NULL,
               0);
}

static tw_output product_of_sparse(tw_graph *g, const tw_output *xs)
{
    return add(g, "SparseMatMul", xs, 2,
               (tw_attr[]){tw_attr_bool("transpose_a", true), tw_attr_bool("a_is_sparse", true)}, 2);
}

/* ---- parts, norms, running sums, special functions ----------------------------------------------------------- */

static tw_output part_replaced(tw_graph *g, const tw_output *xs)
{
    tw_output inputs[] = {xs[0], numbers(g, (int32_t[]){0, 1}, 2), numbers(g, (int32_t[]){2, 4}, 2),
                          numbers(g, (int32_t[]){1, 2}, 2), xs[1]};
    return add(g, "TensorStridedSliceUpdate", inputs, 5, NULL, 0);
}

static tw_output cross(tw_graph *g, const tw_output *xs)
{
    return add(g, "Cross", xs, 2, NULL, 0);
}

static tw_output norm(tw_graph *g, const tw_output *xs)
{
    return add(g, "EuclideanNorm", (tw_output[]){xs[0], numbers(g, (int32_t[]){1}, 1)}, 2, NULL, 0);
}

static tw_output running_logsumexp(tw_graph *g, const tw_output *xs)
{
    return add(g, "CumulativeLogsumexp", (tw_output[]){xs[0], numbers(g, (int32_t[]){0}, 0)}, 2,
               (tw_attr[]){tw_attr_bool("reverse", true)}, 1);
}

static tw_output incomplete_beta(tw_graph *g, const tw_output *xs)
{
    tw_output inputs[] = {tw_scalar_of(g, TW_FLOAT64, 0.7), tw_scalar_of(g, TW_FLOAT64, 2.5), xs[0]};
    return add(g, "Betainc", inputs, 3, NULL, 0);
}

static tw_output bessel(tw_graph *g, const tw_output *xs)
{
    return tw_mul(g, add(g, "BesselI0e", xs, 1, NULL, 0), add(g, "BesselI1e", xs, 1, NULL, 0));
}

/* The sum of functions of x. */
static tw_output sum_of(tw_graph *g, const tw_output *xs, const char *const *ops)
{
    tw_output sum = xs[0];
    for (int i = 0; ops[i]; i++)
        sum = tw_add(g, sum, add(g, ops[i], xs, 1, NULL, 0));
    return sum;
}

static tw_output waves(tw_graph *g, const tw_output *xs)
{
    return sum_of(g, xs, (const char *[]){"BesselJ0", "BesselJ1", "Dawsn", "FresnelCos", "FresnelSin", NULL});
}

static tw_output half_lines(tw_graph *g, const tw_output *xs)
{
    return sum_of(g, xs, (const char *[]){"BesselY0", "BesselY1", "BesselK0", "BesselK1", "BesselK0e", "BesselK1e",
                                          "Expint", "Spence", NULL});
}

static const twt_gradient_case cases[] = {
    {"SparseDenseCwiseAdd", plus_dense, {{1, {4}}, {1, {3}}}, 2, 0, 0, 0, true, false},
    {"SparseDenseCwiseMul", times_dense, {{1, {4}}, {2, {2, 1}}}, 2, 0, 0, 0, true, false},
    {"SparseDenseCwiseDiv", by_dense, {{1, {4}}, {2, {2, 3}}}, 2, 0, 0.5, 2, true, false},
    {"SparseTensorDenseAdd", added_to_dense, {{1, {4}}, {2, {2, 3}}}, 2, 0, 0, 0, true, false},
    {"SparseSoftmax", softmax_of_entries, {{1, {4}}}, 1, 0, 0, 0, true, false},
    {"SparseMatMul", product_of_sparse, {{2, {3, 2}}, {2, {3, 4}}}, 2, TW_FLOAT32, 0, 0, false, false},
    {"TensorStridedSliceUpdate", part_replaced, {{2, {3, 4}}, {2, {2, 2}}}, 2, 0, 0, 0, true, false},
    {"Cross", cross, {{2, {2, 3}}, {2, {2, 3}}}, 2, 0, 0, 0, true, false},
    {"EuclideanNorm", norm, {{2, {2, 3}}}, 1, 0, 0.5, 2, true, false},
    {"CumulativeLogsumexp", running_logsumexp, {{2, {4, 2}}}, 1, 0, 0, 0, true, false},
    {"Betainc", incomplete_beta, {{1, {5}}}, 1, 0, 0.1, 0.9, true, false},
    {"BesselI0e, BesselI1e", bessel, {{1, {6}}}, 1, 0, -3, 3, true, false},
    {"BesselJ0 and others of all numbers", waves, {{1, {6}}}, 1, 0, -3, 3, true, false},
    {"BesselY0 and others of positive numbers", half_lines, {{1, {6}}}, 1, 0, 0.6, 3, true, false},
    {"GRUBlockCell", gru, {{2, {3, 2}}, {2, {3, 2}}, {2, {4, 4}}, {1, {4}}}, 4, TW_FLOAT32, 0, 0, false, false},
    {"LSTMBlockCell", lstm, {{2, {3, 2}}, {2, {3, 2}}, {2, {3, 2}}, {2, {4, 8}}}, 4, TW_FLOAT32, 0, 0, false, false},
    {"MatrixDiagV2", band_of_diagonals, {{3, {2, 3, 4}}}, 1, 0, 0, 0, true, false},
    {"MatrixDiagPartV2", diagonals, {{3, {2, 3, 4}}}, 1, 0, 0, 0, true, false},
    {"MatrixSetDiagV2", with_diagonals, {{2, {3, 3}}, {2, {2, 3}}}, 2, 0, 0, 0, true, false},
    {"TridiagonalSolve", solved_by_three, {{2, {3, 4}}, {2, {4, 2}}}, 2, 0, 0, 0, true, false},
    {"TridiagonalMatMul", times_three, {{2, {1, 4}}, {2, {1, 4}}, {2, {1, 4}}, {2, {4, 2}}}, 4, 0, 0, 0, true, false},
    {"BandedTriangularSolve", solved_by_bands, {{2, {2, 4}}, {2, {4, 2}}}, 2, 0, 0, 0, false, false},
    {"MatrixSquareRoot", square_root, {{2, {3, 3}}}, 1, 0, 0, 0, false, false},
    {"Eig", of_any_matrix, {{2, {3, 3}}}, 1, 0, 0, 0, false, false},
    {"MatrixInverse", inverse, {{2, {3, 3}}}, 1, 0, 0, 0, true, false},
    {"MatrixDeterminant", determinant, {{2, {3, 3}}}, 1, 0, 0, 0, true, false},
    {"Cholesky", cholesky, {{2, {3, 3}}}, 1, 0, 0, 0, false, false},
    {"MatrixSolve", solved, {{2, {3, 3}}, {2, {3, 2}}}, 2, 0, 0, 0, true, false},
    {"SelfAdjointEigV2", eigenvectors, {{2, {3, 3}}}, 1, 0, 0, 0, false, false},
    {"Qr", qr, {{2, {4, 3}}}, 1, 0, 0, 0, false, false},
    {"Svd", thin_svd, {{2, {3, 3}}}, 1, 0, 0, 0, false, false},
    {"Svd of wide matrices", thin_svd, {{3, {2, 2, 4}}}, 1, 0, 0, 0, false, false},
    {"Svd of high matrices", thin_svd, {{2, {4, 2}}}, 1, 0, 0, 0, false, false},
    {"Svd, full", full_svd, {{2, {2, 3}}}, 1, 0, 0, 0, false, false},
    {"Svd, full, high", full_svd, {{2, {3, 2}}}, 1, 0, 0, 0, false, false},
    {"Svd, values", singular_values, {{3, {2, 3, 2}}}, 1, 0, 0, 0, false, false},
    {"RGBToHSV", hsv, {{3, {2, 5, 3}}}, 1, 0, 0.1, 0.9, false, false},
    {"Einsum of a diagonal", diagonal, {{3, {2, 3, 3}}, {2, {3, 3}}}, 2, 0, 0, 0, true, false},
    {"Einsum of traces", traces, {{4, {2, 3, 3, 2}}, {1, {2}}}, 2, 0, 0, 0, true, false},
    {"Einsum", einsum, {{3, {2, 2, 3}}, {2, {3, 2}}}, 2, 0, 0, 0, true, false},
    {"SegmentProd", segment_products, {{2, {4, 3}}}, 1, 0, 0.5, 2, false, false},
    {"ExtractVolumePatches", volume_patches, {{5, {1, 2, 3, 2, 2}}}, 1, 0, 0, 0, false, false},
    {"ExtractImagePatches", patches, {{4, {1, 4, 5, 2}}}, 1, 0, 0, 0, true, false},
    {"SpaceToBatch", blocks, {{4, {1, 2, 4, 2}}}, 1, 0, 0, 0, true, false},
};

static void gradients_agree_with_differences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        twt_check_gradients(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_agree_with_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
