/* Gradients of math and array ops against finite differences: odd sizes, size 1, broadcasting, shapes that are not
 * known before the step. */
#include "gradient_testing.h"

static void check(const twt_gradient_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        twt_check_gradients(&cases[i]);
}

#define CHECK(cases) check(cases, sizeof(cases) / sizeof *(cases))

/* A function of x[0], or of x[0] and x[1], for the tables below. */
#define OF_X(name, expression)                                                                                         \
    static tw_output name(tw_graph *g, const tw_output *x)                                                             \
    {                                                                                                                  \
        return expression;                                                                                             \
    }

static tw_output node(tw_graph *g, const char *op, const tw_output *inputs, int num_inputs)
{
    return tw_node_output(tw_add_node(g, op, NULL, inputs, num_inputs, NULL, 0), 0);
}

static tw_output ints(tw_graph *g, int count, const int32_t *values)
{
    return tw_constant_int32s(g, TW_SHAPE(count), values);
}

#define INTS(...) ints(g, (int)(sizeof((int32_t[]){__VA_ARGS__}) / 4), (int32_t[]){__VA_ARGS__})

/* ---- element-wise, two inputs ---------------------------------------------------------------------------------- */

OF_X(add, tw_add(g, x[0], x[1]))
OF_X(old_add, node(g, "Add", x, 2))
OF_X(sub, tw_sub(g, x[0], x[1]))
OF_X(mul, tw_mul(g, x[0], x[1]))
OF_X(squared, tw_mul(g, x[0], x[0]))
OF_X(mul_no_nan, node(g, "MulNoNan", x, 2))
OF_X(divide, tw_div(g, x[0], x[1]))
OF_X(div_no_nan, tw_div_no_nan(g, x[0], x[1]))
OF_X(xdivy, node(g, "Xdivy", x, 2))
OF_X(floor_mod, tw_floor_mod(g, x[0], x[1]))
OF_X(maximum, tw_maximum(g, x[0], x[1]))
OF_X(minimum, tw_minimum(g, x[0], x[1]))
OF_X(squared_difference, tw_squared_difference(g, x[0], x[1]))
OF_X(power, tw_pow(g, x[0], x[1]))
OF_X(clip_limits, tw_clip(g, x[0], tw_sub(g, x[1], tw_scalar_of(g, TW_FLOAT64, 0.3)),
                          tw_add(g, x[1], tw_scalar_of(g, TW_FLOAT64, 0.55))))
OF_X(add_n, tw_add_n(g, (tw_output[]){x[0], x[1], x[0]}, 3))

#define SCALAR                                                                                                         \
    {                                                                                                                  \
        0,                                                                                                             \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

static void binary_ops(void **state)
{
    (void)state;
    static const twt_gradient_case cases[] = {
        {"Add", old_add, {{2, {2, 3}}, {1, {3}}}, 2},
        {"AddV2, same shapes", add, {{2, {2, 3}}, {2, {2, 3}}}, 2},
        {"AddV2, a row", add, {{2, {2, 3}}, {1, {3}}}, 2},
        {"AddV2, a column", add, {{2, {2, 1}}, {2, {2, 3}}}, 2},
        {"AddV2, both repeated", add, {{3, {2, 1, 3}}, {2, {4, 1}}}, 2},
        {"AddV2, a scalar", add, {SCALAR, {2, {2, 2}}}, 2},
        {"AddV2, axes of size 1", add, {{3, {1, 1, 3}}, {2, {1, 3}}}, 2},
        {"Sub", sub, {{2, {3, 1}}, {1, {2}}}, 2},
        {"Mul", mul, {{2, {2, 3}}, {2, {2, 3}}}, 2, .twice = true},
        {"Mul, broadcast", mul, {{3, {2, 1, 3}}, {2, {4, 1}}}, 2, .twice = true},
        {"Mul by itself", squared, {{1, {5}}}, 1, .twice = true},
        {"MulNoNan", mul_no_nan, {{2, {2, 3}}, {1, {3}}}, 2},
        {"RealDiv", divide, {{2, {2, 3}}, {2, {2, 3}}}, 2, 0, 0.5, 2, true},
        {"RealDiv, broadcast", divide, {{1, {3}}, {3, {2, 1, 1}}}, 2, 0, 0.5, 2, true},
        {"DivNoNan", div_no_nan, {{2, {2, 3}}, {1, {3}}}, 2, 0, 0.5, 2},
        {"Xdivy", xdivy, {{2, {2, 3}}, {1, {3}}}, 2, 0, 0.5, 2},
        {"FloorMod", floor_mod, {{1, {5}}, {1, {1}}}, 2, 0, 0.5, 2},
        {"Maximum", maximum, {{2, {3, 4}}, {1, {4}}}, 2, 0, -0.9, 1},
        {"Minimum", minimum, {{2, {3, 1}}, {1, {4}}}, 2, 0, -0.9, 1},
        {"SquaredDifference", squared_difference, {{2, {2, 3}}, {1, {1}}}, 2, .twice = true},
        {"Pow", power, {{2, {2, 3}}, {1, {3}}}, 2, 0, 0.5, 2, true},
        {"ClipByValue", clip_limits, {{1, {7}}, SCALAR}, 2},
        {"ClipByValue, limits for each", clip_limits, {{1, {3}}, {1, {3}}}, 2},
        {"AddN", add_n, {{2, {2, 3}}, {2, {2, 3}}}, 2},
    };
    CHECK(cases);
}

/* ---- element-wise, one input ----------------------------------------------------------------------------------- */

OF_X(negative, tw_neg(g, x[0]))
OF_X(absolute, tw_abs(g, x[0]))
OF_X(sign, tw_sign(g, x[0]))
OF_X(square, tw_square(g, x[0]))
OF_X(square_root, tw_sqrt(g, x[0]))
OF_X(reciprocal_root, tw_rsqrt(g, x[0]))
OF_X(reciprocal, tw_reciprocal(g, x[0]))
OF_X(inverse, node(g, "Inv", x, 1))
OF_X(exponential, tw_exp(g, x[0]))
OF_X(exponential_1, tw_expm1(g, x[0]))
OF_X(logarithm, tw_log(g, x[0]))
OF_X(logarithm_1, tw_log1p(g, x[0]))
OF_X(sine, tw_sin(g, x[0]))
OF_X(cosine, tw_cos(g, x[0]))
OF_X(tangent, tw_tan(g, x[0]))
OF_X(hyperbolic_tangent, tw_tanh(g, x[0]))
OF_X(sigmoid, tw_sigmoid(g, x[0]))
OF_X(error_function, tw_erf(g, x[0]))
OF_X(there_and_back, tw_cast(g, tw_square(g, tw_cast(g, x[0], TW_FLOAT64)), TW_FLOAT32))
OF_X(clip, tw_clip(g, x[0], tw_scalar_of(g, TW_FLOAT64, -0.5), tw_scalar_of(g, TW_FLOAT64, 0.3)))

static void unary_ops(void **state)
{
    (void)state;
    static const twt_gradient_case cases[] = {
        {"Neg", negative, {{1, {3}}}, 1},
        {"Abs", absolute, {{1, {6}}}, 1, 0, -1, 0.9},
        {"Sign", sign, {{1, {4}}}, 1, 0, -1, 0.9},
        {"Square", square, {{1, {5}}}, 1, .twice = true},
        {"Sqrt", square_root, {{1, {5}}}, 1, 0, 0.5, 2, true},
        {"Rsqrt", reciprocal_root, {{1, {5}}}, 1, 0, 0.5, 2, true},
        {"Reciprocal", reciprocal, {{1, {5}}}, 1, 0, 0.5, 2, true},
        {"Inv", inverse, {{1, {5}}}, 1, 0, 0.5, 2, true},
        {"Exp", exponential, {{2, {2, 3}}}, 1, .twice = true},
        {"Expm1", exponential_1, {{1, {5}}}, 1, .twice = true},
        {"Log", logarithm, {{1, {5}}}, 1, 0, 0.5, 2, true},
        {"Log1p", logarithm_1, {{1, {5}}}, 1, 0, -0.5, 2, true},
        {"Sin", sine, {{1, {5}}}, 1, .twice = true},
        {"Cos", cosine, {{1, {5}}}, 1, .twice = true},
        {"Tan", tangent, {{1, {5}}}, 1, .twice = true},
        {"Tanh", hyperbolic_tangent, {{1, {5}}}, 1, .twice = true},
        {"Sigmoid", sigmoid, {{1, {5}}}, 1, 0, -3, 3, true},
        {"Erf", error_function, {{1, {5}}}, 1, .twice = true},
        {"ClipByValue, constant limits", clip, {{1, {9}}}, 1},
        {"Cast", there_and_back, {{1, {3}}}, 1, TW_FLOAT32},
    };
    CHECK(cases);
}

/* ---- reductions and products ----------------------------------------------------------------------------------- */

OF_X(sum_all, tw_reduce_sum(g, x[0], NULL, 0, false))
OF_X(sum_outer, tw_reduce_sum(g, x[0], TW_AXES(0), false))
OF_X(sum_ends, tw_reduce_sum(g, x[0], TW_AXES(-1, 0), false))
OF_X(sum_kept, tw_reduce_sum(g, x[0], TW_AXES(1), true))
OF_X(mean_all, tw_reduce_mean(g, x[0], NULL, 0, false))
OF_X(mean_outer, tw_reduce_mean(g, x[0], TW_AXES(0), false))
OF_X(mean_kept, tw_reduce_mean(g, x[0], TW_AXES(1, 2), true))
OF_X(product_all, tw_reduce_prod(g, x[0], NULL, 0, false))
OF_X(product_middle, tw_reduce_prod(g, x[0], TW_AXES(1), false))
OF_X(product_ends, tw_reduce_prod(g, x[0], TW_AXES(0, 2), true))
OF_X(greatest, tw_reduce_max(g, x[0], TW_AXES(1), false))
OF_X(least, tw_reduce_min(g, x[0], TW_AXES(0, 2), true))
OF_X(running_sum, tw_cumsum(g, x[0], 1, false, false))
OF_X(running_sum_back, tw_cumsum(g, x[0], 0, true, true))
OF_X(running_product, tw_cumprod(g, x[0], 1, true, false))
OF_X(half_squares, tw_l2_loss(g, x[0]))
OF_X(matmul, tw_matmul(g, x[0], x[1]))
OF_X(matmul_ta, tw_matmul_transposed(g, x[0], x[1], true, false))
OF_X(matmul_tb, tw_matmul_transposed(g, x[0], x[1], false, true))
OF_X(matmul_tt, tw_matmul_transposed(g, x[0], x[1], true, true))
OF_X(batch, tw_batch_matmul(g, x[0], x[1], false, false))
OF_X(batch_ta, tw_batch_matmul(g, x[0], x[1], true, false))
OF_X(batch_tb, tw_batch_matmul(g, x[0], x[1], false, true))
OF_X(batch_tt, tw_batch_matmul(g, x[0], x[1], true, true))

static void reductions_and_products(void **state)
{
    (void)state;
    static const twt_gradient_case cases[] = {
        {"Sum of all", sum_all, {{2, {2, 3}}}, 1},
        {"Sum of a scalar", sum_all, {SCALAR}, 1},
        {"Sum, outer axis", sum_outer, {{3, {2, 3, 1}}}, 1},
        {"Sum, both ends", sum_ends, {{3, {2, 3, 2}}}, 1},
        {"Sum, kept axis", sum_kept, {{3, {2, 3, 2}}}, 1},
        {"Mean of all", mean_all, {{2, {2, 3}}}, 1},
        {"Mean, outer axis", mean_outer, {{2, {5, 2}}}, 1},
        {"Mean, kept axes", mean_kept, {{3, {2, 3, 2}}}, 1},
        {"Prod of all", product_all, {{2, {2, 3}}}, 1, 0, -1.1, 1, true},
        {"Prod, middle axis", product_middle, {{3, {2, 3, 2}}}, 1},
        {"Prod, both ends", product_ends, {{3, {2, 3, 2}}}, 1},
        {"Max", greatest, {{2, {3, 5}}}, 1},
        {"Min", least, {{3, {2, 3, 2}}}, 1},
        {"Cumsum", running_sum, {{3, {2, 4, 2}}}, 1},
        {"Cumsum, exclusive and reverse", running_sum_back, {{2, {4, 3}}}, 1},
        {"Cumprod", running_product, {{2, {2, 4}}}, 1, 0, 0.5, 2},
        {"L2Loss", half_squares, {{2, {2, 3}}}, 1, .twice = true},
        {"MatMul", matmul, {{2, {2, 3}}, {2, {3, 4}}}, 2, .twice = true},
        {"MatMul, a transposed", matmul_ta, {{2, {3, 2}}, {2, {3, 4}}}, 2, .twice = true},
        {"MatMul, b transposed", matmul_tb, {{2, {2, 3}}, {2, {4, 3}}}, 2, .twice = true},
        {"MatMul, both transposed", matmul_tt, {{2, {3, 2}}, {2, {4, 3}}}, 2, .twice = true},
        {"BatchMatMulV2", batch, {{3, {2, 2, 3}}, {3, {2, 3, 2}}}, 2},
        {"BatchMatMulV2, broadcast", batch, {{4, {2, 1, 2, 3}}, {3, {3, 3, 1}}}, 2},
        {"BatchMatMulV2, a matrix", batch, {{3, {2, 2, 3}}, {2, {3, 2}}}, 2},
        {"BatchMatMulV2, x transposed", batch_ta, {{3, {2, 3, 2}}, {3, {2, 3, 1}}}, 2},
        {"BatchMatMulV2, y transposed", batch_tb, {{3, {2, 1, 3}}, {3, {2, 2, 3}}}, 2},
        {"BatchMatMulV2, both transposed", batch_tt, {{3, {2, 3, 1}}, {3, {2, 2, 3}}}, 2},
    };
    CHECK(cases);
}

/* ---- arrays ---------------------------------------------------------------------------------------------------- */

OF_X(reshape, tw_reshape(g, x[0], TW_SHAPE(3, -1)))
OF_X(expand, tw_expand_dims(g, tw_squeeze(g, x[0], NULL, 0), 0))
OF_X(checked,
     tw_node_output(tw_add_node(g, "CheckNumerics", NULL, x, 1, (tw_attr[]){tw_attr_string("message", "x")}, 1), 0))
OF_X(fill, tw_fill(g, INTS(2, 3), x[0]))
OF_X(broadcast_to, tw_broadcast_to(g, x[0], TW_SHAPE(2, 3, 2)))
OF_X(slice, tw_slice(g, x[0], TW_SHAPE(1, 0), TW_SHAPE(2, 2)))
OF_X(strided,
     tw_strided_slice(g, x[0],
                      (tw_strided_slice_options){
                          .begin = TW_SHAPE(-1, 1), .end = TW_SHAPE(0, 4), .strides = TW_SHAPE(-2, 1), .end_mask = 1}))
OF_X(shrunk,
     tw_strided_slice(g, x[0],
                      (tw_strided_slice_options){
                          .begin = TW_SHAPE(0, 1), .end = TW_SHAPE(0, 2), .new_axis_mask = 1, .shrink_axis_mask = 2}))
OF_X(concat, tw_concat(g, (tw_output[]){x[0], x[1], x[0]}, 3, -1))
OF_X(pack, tw_pack(g, (tw_output[]){x[0], x[1]}, 2, 1))
OF_X(tile, tw_tile(g, x[0], TW_SHAPE(2, 1, 3)))
OF_X(transpose, tw_transpose(g, x[0], TW_SHAPE(2, 0, 1)))
OF_X(pad, tw_pad(g, x[0], TW_SHAPE(1, 0), TW_SHAPE(0, 2)))
OF_X(reflect, tw_mirror_pad(g, x[0], TW_SHAPE(1, 0), TW_SHAPE(1, 2), false))
OF_X(mirror, tw_mirror_pad(g, x[0], TW_SHAPE(2, 0), TW_SHAPE(1, 3), true))
OF_X(reverse, tw_reverse(g, x[0], TW_AXES(1)))
OF_X(gather, tw_gather(g, x[0], INTS(2, 0, 2), 0))
OF_X(old_gather, node(g, "Gather", (tw_output[]){x[0], INTS(2, 0, 2)}, 2))
OF_X(gather_inner, tw_gather(g, x[0], tw_reshape(g, INTS(1, 0, 1, 1), TW_SHAPE(2, 2)), 1))
OF_X(gather_nd, tw_gather_nd(g, x[0], tw_reshape(g, INTS(0, 1, 2, 0, 0, 1), TW_SHAPE(3, 2))))
OF_X(scatter_nd, tw_scatter_nd(g, tw_reshape(g, INTS(3, 0, 3), TW_SHAPE(3, 1)), x[0], INTS(4, 2)))
OF_X(segments, tw_unsorted_segment_sum(g, x[0], INTS(1, -1, 1), 3))
OF_X(stitch, node(g, "DynamicStitch", (tw_output[]){INTS(3, 0), INTS(1, 2), x[0], x[1]}, 4))
OF_X(choose, tw_select(g, tw_greater(g, x[0], tw_scalar_of(g, TW_FLOAT64, 0)), x[0], x[1]))
OF_X(choose_rows,
     node(g, "Select",
          (tw_output[]){tw_greater(g, tw_reduce_sum(g, x[0], TW_AXES(1), false), tw_scalar_of(g, TW_FLOAT64, 0)), x[0],
                        x[1]},
          3))
OF_X(diag, tw_diag(g, x[0]))
OF_X(diag_part, tw_diag_part(g, x[0]))

static tw_output split(tw_graph *g, const tw_output *x)
{
    tw_output parts[3];
    tw_split(g, x[0], 1, parts, 3);
    return tw_mul(g, parts[0], parts[2]); /* nothing flows into the second */
}

static tw_output split_sizes(tw_graph *g, const tw_output *x)
{
    tw_output parts[3];
    tw_split_sizes(g, x[0], 0, (int64_t[]){1, 3, 1}, parts, 3);
    return tw_mul(g, parts[0], parts[1]);
}

static tw_output unpack(tw_graph *g, const tw_output *x)
{
    tw_output parts[3];
    tw_unpack(g, x[0], 1, parts, 3);
    return tw_mul(g, parts[0], parts[2]);
}

static tw_output identity_n(tw_graph *g, const tw_output *x)
{
    tw_node *both = tw_add_node(g, "IdentityN", NULL, x, 2, NULL, 0);
    return tw_mul(g, tw_node_output(both, 0), tw_node_output(both, 1));
}

static tw_output top_k(tw_graph *g, const tw_output *x)
{
    tw_output values, indices;
    tw_top_k(g, x[0], 2, &values, &indices);
    return values;
}

static void array_ops(void **state)
{
    (void)state;
    static const twt_gradient_case cases[] = {
        {"Reshape", reshape, {{2, {2, 3}}}, 1},
        {"Squeeze and ExpandDims", expand, {{3, {1, 3, 1}}}, 1},
        {"IdentityN", identity_n, {{1, {3}}, {1, {3}}}, 2},
        {"CheckNumerics", checked, {{1, {3}}}, 1},
        {"Fill", fill, {SCALAR}, 1},
        {"BroadcastTo", broadcast_to, {{2, {3, 1}}}, 1},
        {"Slice", slice, {{2, {3, 4}}}, 1, .twice = true},
        {"StridedSlice, backward", strided, {{2, {4, 5}}}, 1, .twice = true},
        {"StridedSlice, new and shrunk axes", shrunk, {{2, {3, 2}}}, 1},
        {"ConcatV2", concat, {{2, {2, 3}}, {2, {2, 1}}}, 2},
        {"Split", split, {{2, {2, 6}}}, 1},
        {"SplitV", split_sizes, {{2, {5, 2}}}, 1},
        {"Pack", pack, {{2, {2, 3}}, {2, {2, 3}}}, 2},
        {"Unpack", unpack, {{2, {2, 3}}}, 1},
        {"Tile", tile, {{3, {2, 3, 1}}}, 1},
        {"Transpose", transpose, {{3, {2, 3, 2}}}, 1},
        {"Pad", pad, {{2, {2, 3}}}, 1},
        {"MirrorPad, REFLECT", reflect, {{2, {3, 3}}}, 1, .twice = true},
        {"MirrorPad, SYMMETRIC", mirror, {{2, {2, 3}}}, 1},
        {"ReverseV2", reverse, {{2, {2, 3}}}, 1},
        {"GatherV2", gather, {{2, {3, 2}}}, 1},
        {"Gather", old_gather, {{2, {3, 2}}}, 1},
        {"GatherV2, inner axis", gather_inner, {{3, {2, 2, 3}}}, 1},
        {"GatherNd", gather_nd, {{2, {3, 2}}}, 1},
        {"ScatterNd", scatter_nd, {{2, {3, 2}}}, 1},
        {"UnsortedSegmentSum", segments, {{2, {3, 2}}}, 1},
        {"DynamicStitch", stitch, {{2, {2, 2}}, {2, {2, 2}}}, 2},
        {"SelectV2", choose, {{2, {2, 3}}, {1, {3}}}, 2, 0, -1, 0.9},
        {"Select by rows", choose_rows, {{2, {3, 2}}, {2, {3, 2}}}, 2, 0, -1, 0.9},
        {"Diag", diag, {{2, {2, 2}}}, 1},
        {"DiagPart", diag_part, {{2, {3, 3}}}, 1},
        {"TopKV2", top_k, {{2, {2, 5}}}, 1},
    };
    CHECK(cases);
}

/* ---- shapes that only the step knows --------------------------------------------------------------------------- */

OF_X(reshape_to_two, tw_reshape(g, x[0], TW_SHAPE(-1, 2)))
OF_X(slice_rest, tw_slice(g, x[0], TW_SHAPE(1, 0), TW_SHAPE(-1, 2)))
OF_X(pad_outer, tw_pad(g, tw_square(g, x[0]), TW_SHAPE(1, 0), TW_SHAPE(2, 0)))
OF_X(repeat, tw_tile(g, x[0], TW_SHAPE(2, 3)))
OF_X(join_columns, tw_concat(g, (tw_output[]){x[0], x[1]}, 2, 1))
OF_X(rows, tw_gather(g, x[0], INTS(1, 1, 0), 0))
OF_X(centred, tw_sub(g, x[0], tw_reduce_mean(g, x[0], TW_AXES(0), true)))
OF_X(add_row, tw_mul(g, x[0], tw_reshape(g, x[1], TW_SHAPE(-1))))

static void gradients_of_open_shapes(void **state)
{
    (void)state;
    static const twt_gradient_case cases[] = {
        {"Sum of all", sum_all, {{2, {2, 3}}}, 1, .open = true},
        {"Sum, both ends", sum_ends, {{3, {2, 3, 2}}}, 1, .open = true},
        {"Mean of all", mean_all, {{2, {2, 3}}}, 1, .open = true},
        {"Mean, outer axis", mean_outer, {{2, {5, 2}}}, 1, .open = true},
        {"Mean, kept axes", mean_kept, {{3, {2, 3, 2}}}, 1, .open = true},
        {"Max", greatest, {{2, {3, 5}}}, 1, .open = true},
        {"Mul, a row", mul, {{2, {2, 3}}, {1, {3}}}, 2, .open = true},
        {"Mul, both repeated", mul, {{3, {2, 1, 3}}, {2, {4, 1}}}, 2, .open = true},
        {"Mul, same shapes", mul, {{2, {2, 3}}, {2, {2, 3}}}, 2, .open = true},
        {"Mul, unknown rank", add_row, {{2, {2, 3}}, {1, {3}}}, 2, .open = true},
        {"RealDiv, size 1", divide, {{1, {3}}, {2, {1, 1}}}, 2, 0, 0.5, 2, .open = true},
        {"Maximum", maximum, {{2, {3, 4}}, {1, {4}}}, 2, 0, -0.9, 1, .open = true},
        {"SelectV2", choose, {{2, {2, 3}}, {1, {3}}}, 2, 0, -1, 0.9, .open = true},
        {"BatchMatMulV2", batch, {{4, {2, 1, 2, 3}}, {3, {3, 3, 1}}}, 2, .open = true},
        {"MatMul", matmul, {{2, {2, 3}}, {2, {3, 4}}}, 2, .open = true},
        {"Reshape", reshape_to_two, {{2, {2, 3}}}, 1, .open = true},
        {"Slice", slice_rest, {{2, {3, 2}}}, 1, .open = true},
        {"StridedSlice", strided, {{2, {4, 5}}}, 1, .open = true},
        {"Pad", pad_outer, {{2, {2, 3}}}, 1, .open = true},
        {"Tile", repeat, {{2, {2, 3}}}, 1, .open = true},
        {"ConcatV2", join_columns, {{2, {2, 3}}, {2, {2, 1}}}, 2, .open = true},
        {"GatherV2", rows, {{2, {3, 2}}}, 1, .open = true},
        {"UnsortedSegmentSum", segments, {{2, {3, 2}}}, 1, .open = true},
        {"a column less its mean", centred, {{2, {3, 2}}}, 1, .open = true},
    };
    CHECK(cases);
}

/* ---- where there is none ----------------------------------------------------------------------------------------- */

static void no_gradient_flows_where_ops_stop_it(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(3)), grad;
    tw_output stopped[] = {tw_stop_gradient(g, x),
                           tw_floor(g, x),
                           tw_ceil(g, x),
                           tw_round(g, x),
                           tw_cast(g, tw_cast(g, x, TW_INT32), TW_FLOAT32),
                           tw_zeros_like(g, x),
                           tw_cast(g, tw_arg_max(g, x, 0), TW_FLOAT32),
                           tw_cast(g, tw_shape_of(g, x), TW_FLOAT32),
                           tw_cast(g, tw_less(g, x, tw_square(g, x)), TW_FLOAT32),
                           tw_floor_div(g, x, x)};
    for (size_t i = 0; i < sizeof stopped / sizeof *stopped; i++) {
        tw_gradients(g, &stopped[i], 1, NULL, &x, 1, &grad);
        assert_string_equal(tw_graph_message(g), "");
        assert_null(grad.node);
    }
    tw_graph_destroy(g);
}

static void an_op_without_gradient_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        const char *message;
    } cases[] = {
        {"Mod", "No gradient defined for operation 'it' (op type: Mod)"},
        {"PreventGradient", "Gradient explicitly disabled at 'it'. Reason: because"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_graph *g = tw_graph_create();
        tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(3)), grad;
        tw_attr message = tw_attr_string("message", "because");
        int num_inputs = i == 0 ? 2 : 1;
        tw_output y = tw_node_output(
            tw_add_node(g, cases[i].op, "it", (tw_output[]){x, x}, num_inputs, &message, i == 0 ? 0 : 1), 0);
        tw_gradients(g, &y, 1, NULL, &x, 1, &grad);
        assert_message(tw_graph_message(g), cases[i].message);
        tw_graph_destroy(g);
    }
}

static void outputs_that_do_not_exist_have_no_gradients(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        tw_graph *g = tw_graph_create(), *other = tw_graph_create();
        tw_output x = tw_placeholder(tw_name(g, "x"), TW_FLOAT32, TW_SHAPE(3)), y = tw_square(tw_name(g, "y"), x), grad;
        tw_output stranger = tw_placeholder(tw_name(other, "stranger"), TW_FLOAT32, TW_SHAPE(3));
        tw_output ys[] = {y, y, stranger, {y.node, 1}}, xs[] = {stranger, {x.node, 2}, x, x};
        static const char *const messages[] = {
            "gradients: x number 0, 'stranger', is of another graph",
            "gradients: x number 0 is output 2 of 'x', which has 1",
            "gradients: y number 0, 'stranger', is of another graph",
            "gradients: y number 0 is output 1 of 'y', which has 1",
        };
        tw_gradients(g, &ys[i], 1, NULL, &xs[i], 1, &grad);
        assert_string_equal(tw_graph_message(g), messages[i]);
        assert_null(grad.node);
        tw_graph_destroy(g);
        tw_graph_destroy(other);
    }
}

static void a_reduction_of_unknown_shape_is_differentiated_also_for_a_scalar(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session = NULL;
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_UNKNOWN_SHAPE);
    tw_output sums[] = {tw_reduce_sum(g, x, NULL, 0, false), tw_reduce_mean(g, x, NULL, 0, false),
                        tw_reduce_max(g, x, NULL, 0, false), tw_reduce_min(g, x, NULL, 0, false)};
    tw_output dx[4];
    for (int i = 0; i < 4; i++)
        tw_gradients(g, &sums[i], 1, NULL, &x, 1, &dx[i]);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, NULL, &session, &error));
    tw_tensor *scalar = tw_tensor_float(3), *got[4] = {0};
    assert_ok(tw_session_run(session, &(tw_feed){x, scalar}, 1, dx, 4, got, &error));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tw_tensor_shape(got[i]).rank, 0);
        assert_true(tw_tensor_value(got[i], 0) == 1);
        tw_tensor_release(got[i]);
    }
    tw_tensor_release(scalar);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* The nodes of a graph whose second gradients lead through `b`, of which nobody wants one then; the first were asked
 * for `b` too or were not, and did not come to it. */
static int nodes_after_two_sweeps(bool asked)
{
    tw_graph *g = tw_graph_create();
    tw_output a = tw_scalar(g, 2), b = tw_square(g, tw_scalar(g, 5)), first = tw_mul(g, a, a), grads[2];
    tw_output second = tw_mul(g, tw_exp(g, tw_square(g, b)), a), wanted[] = {a, b};
    tw_gradients(g, &first, 1, NULL, wanted, asked ? 2 : 1, grads);
    assert_true(grads[0].node && (!asked || !grads[1].node));
    tw_gradients(g, &second, 1, NULL, &a, 1, grads);
    assert_string_equal(tw_graph_message(g), "");
    assert_non_null(grads[0].node);
    int nodes = tw_graph_num_nodes(g);
    tw_graph_destroy(g);
    return nodes;
}

static void a_sweep_knows_nothing_of_those_before_it(void **state)
{
    (void)state;
    assert_int_equal(nodes_after_two_sweeps(true), nodes_after_two_sweeps(false));
}

/* A default's shape is left open, and who takes it says another one. */
static void a_gradient_of_another_shape_than_its_value_is_the_graphs_fault(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_scalar(g, 2), gradient;
    tw_output open = tw_placeholder_with_default(tw_name(g, "open"), x, TW_UNKNOWN_SHAPE);
    tw_output y = tw_reduce_sum(g, tw_placeholder_with_default(g, open, TW_SHAPE(2, 3)), NULL, 0, false);
    assert_string_equal(tw_graph_message(g), "");
    tw_gradients(g, &y, 1, NULL, &x, 1, &gradient);
    assert_int_equal(tw_graph_status(g), TW_INVALID_ARGUMENT);
    assert_non_null(strstr(tw_graph_message(g), "PlaceholderWithDefault 'open' for input 0 is float [2,3], expected"));
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reduction_of_unknown_shape_is_differentiated_also_for_a_scalar),
        cmocka_unit_test(binary_ops),
        cmocka_unit_test(unary_ops),
        cmocka_unit_test(reductions_and_products),
        cmocka_unit_test(array_ops),
        cmocka_unit_test(gradients_of_open_shapes),
        cmocka_unit_test(no_gradient_flows_where_ops_stop_it),
        cmocka_unit_test(an_op_without_gradient_is_named),
        cmocka_unit_test(outputs_that_do_not_exist_have_no_gradients),
        cmocka_unit_test(a_gradient_of_another_shape_than_its_value_is_the_graphs_fault),
        cmocka_unit_test(a_sweep_knows_nothing_of_those_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
