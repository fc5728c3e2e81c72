/* math.c - the ops of mathematics: element-wise, reductions, matrix products. Rows, shape rules, builders.
 * Never here: gradient rules (math_gradients.c), kernels (src/device). */
#include "graph/graph.h"
#include "ops/build.h"
#include "ops/gradients.h"
#include "ops/rules.h"
#include "ops/types.h"
#include "tensor/tensor.h"

#include <tower/ops.h>

/* ---- shape rules ------------------------------------------------------------------------------------------- */

/* t, and limits that are scalars or shaped as t. */
static tw_status clip_shape(twi_inference *c)
{
    tw_shape shape = c->inputs[0];
    for (int i = 1; i <= 2; i++) {
        tw_status status = TW_OK;
        if (c->inputs[i].rank != 0 && c->inputs[i].rank >= 0)
            status = twi_merge_shapes(shape, c->inputs[i], &shape, c->error);
        if (status != TW_OK)
            return status;
    }
    c->outputs[0] = shape;
    return TW_OK;
}

static tw_status reduce_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], out = in;
    const tw_tensor *axes = twi_ask_value(c, 1);
    bool keep = twi_attr_bool(c->attrs, "keep_dims", false);
    if (c->inputs[1].rank > 1)
        return twi_expect_rank(c, 1, 1);
    if (in.rank < 0)
        return TW_OK;
    if (!axes) {
        int64_t count = c->inputs[1].rank < 0 ? -1 : c->inputs[1].rank ? c->inputs[1].dims[0] : 1;
        bool all = c->is_building && count == in.rank; /* whichever they are: none is named twice */
        for (int i = 0; i < in.rank; i++)
            out.dims[i] = all ? 1 : -1;
        if (keep || all)
            c->outputs[0] = keep ? out : TW_SCALAR;
        return TW_OK;
    }
    bool reduced[TW_MAX_RANK] = {false};
    for (int64_t i = 0; i < axes->elements; i++) {
        int64_t axis = twi_tensor_int(axes, i);
        tw_status status = twi_normal_axis(c, &axis, in.rank);
        if (status != TW_OK)
            return status;
        if (reduced[axis])
            return twi_fail(c->error, TW_INVALID_ARGUMENT, "axis %d is given twice", (int)axis);
        reduced[axis] = true;
    }
    out.rank = 0;
    for (int i = 0; i < in.rank; i++)
        if (!reduced[i])
            out.dims[out.rank++] = in.dims[i];
        else if (keep)
            out.dims[out.rank++] = 1;
    c->outputs[0] = out;
    return TW_OK;
}

/* ArgMax: the axis goes. */
static tw_status arg_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0];
    if (in.rank < 0)
        return TW_OK;
    if (in.rank == 0)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "input 0 is a scalar, expected at least one axis");
    tw_shape out = {.rank = in.rank - 1};
    const tw_tensor *value = twi_ask_value(c, 1);
    int64_t axis = -1;
    if (c->inputs[1].rank > 0)
        return twi_expect_rank(c, 1, 0);
    if (value) {
        axis = twi_tensor_int(value, 0);
        tw_status status = twi_normal_axis(c, &axis, in.rank);
        if (status != TW_OK)
            return status;
    }
    for (int i = 0; i < out.rank; i++)
        out.dims[i] = axis < 0 ? -1 : in.dims[i < axis ? i : i + 1];
    c->outputs[0] = out;
    return TW_OK;
}

static tw_status scan_shape(twi_inference *c)
{
    c->outputs[0] = c->inputs[0];
    if (c->inputs[1].rank > 0)
        return twi_expect_rank(c, 1, 0);
    if (c->inputs[0].rank < 0 || !c->input_values[1])
        return TW_OK;
    int64_t axis = twi_tensor_int(c->input_values[1], 0);
    return twi_normal_axis(c, &axis, c->inputs[0].rank);
}

/* The product of [..., m, k] and [..., k, n] with the last two axes of either perhaps exchanged. */
static tw_status product_dims(twi_inference *c, bool transpose_a, bool transpose_b, int64_t *m, int64_t *n)
{
    tw_shape a = c->inputs[0], b = c->inputs[1];
    int64_t ak = -1, bk = -1;
    *m = *n = -1;
    if (a.rank >= 2) {
        *m = a.dims[a.rank - (transpose_a ? 1 : 2)];
        ak = a.dims[a.rank - (transpose_a ? 2 : 1)];
    }
    if (b.rank >= 2) {
        *n = b.dims[b.rank - (transpose_b ? 2 : 1)];
        bk = b.dims[b.rank - (transpose_b ? 1 : 2)];
    }
    char text_a[128], text_b[128];
    if (ak >= 0 && bk >= 0 && ak != bk)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "%s%s x %s%s: inner dimensions %lld and %lld differ",
                        tw_shape_text(a, text_a, sizeof text_a), transpose_a ? "ᵀ" : "",
                        tw_shape_text(b, text_b, sizeof text_b), transpose_b ? "ᵀ" : "", (long long)ak, (long long)bk);
    return TW_OK;
}

tw_status twi_matmul_shape(twi_inference *c)
{
    tw_shape out = {.rank = 2};
    tw_status status;
    TWI_TRY(twi_expect_rank(c, 0, 2));
    TWI_TRY(twi_expect_rank(c, 1, 2));
    TWI_TRY(product_dims(c, twi_attr_bool(c->attrs, "transpose_a", false),
                         twi_attr_bool(c->attrs, "transpose_b", false), &out.dims[0], &out.dims[1]));
    c->outputs[0] = out;
done:
    return status;
}

static tw_status batch_matmul_shape(twi_inference *c)
{
    tw_shape batch[2], out;
    int64_t m, n;
    tw_status status;
    for (int i = 0; i < 2; i++) {
        batch[i] = c->inputs[i];
        if (batch[i].rank >= 0 && batch[i].rank < 2)
            return twi_fail(c->error, TW_INVALID_ARGUMENT, "input %d has rank %d, expected at least 2", i,
                            batch[i].rank);
        batch[i].rank = batch[i].rank < 0 ? -1 : batch[i].rank - 2;
    }
    TWI_TRY(product_dims(c, twi_attr_bool(c->attrs, "adj_x", false), twi_attr_bool(c->attrs, "adj_y", false), &m, &n));
    TWI_TRY(twi_broadcast_shapes(batch[0], batch[1], &out, c->error));
    if (out.rank >= 0) {
        out.dims[out.rank++] = m;
        out.dims[out.rank++] = n;
    }
    c->outputs[0] = out;
done:
    return status;
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define FLOATS "{bfloat16,half,float,double}"
#define FIELD "{bfloat16,half,float,double," TWI_COMPLEX "}"
#define SIGNED "{bfloat16,half,float,double,int8,int16,int32,int64}"
#define WIDE "{bfloat16,half,float,double,int32,int64}"
#define RING "{bfloat16,half,float,double,int32,int64," TWI_COMPLEX "}"
#define SIGNED_RING "{bfloat16,half,float,double,int8,int16,int32,int64," TWI_COMPLEX "}"
#define NUMBERS "{" TWI_REALS "}"
#define ADDED "{" TWI_NUMBERS "}"
#define ORDERED NUMBERS
#define CONVERTED "{bool," TWI_NUMBERS "," TWI_QUANTIZED "}"
#define COMPARED "{bool,string," TWI_NUMBERS "," TWI_QUANTIZED "}"

/* clang-format off */
#define UNARY(name, types, gradient) {name, "x:T", "y:T", "T:" types, twi_shape_same, gradient, TWI_ELEMENTWISE}
#define BINARY(name, types, gradient)                                                                                  \
    {name, "x:T, y:T", "z:T", "T:" types, twi_shape_broadcast, gradient, TWI_ELEMENTWISE}
#define SYMMETRIC(name, types, gradient)                                                                               \
    {name, "x:T, y:T", "z:T", "T:" types, twi_shape_broadcast, gradient, TWI_ELEMENTWISE | TWI_COMMUTATIVE}
#define GRADIENT(name, gradient) {name, "y:T, dy:T", "z:T", "T:" FIELD, twi_shape_merged, gradient, TWI_ELEMENTWISE}
#define COMPARE(name, types, flags)                                                                                    \
    {name, "x:T, y:T", "z:bool", "T:" types, twi_shape_broadcast, twi_not_differentiable, TWI_ELEMENTWISE | flags}
#define TEST(name) {name, "x:T", "y:bool", "T:" FLOATS, twi_shape_same, NULL, TWI_ELEMENTWISE}
#define REDUCE(name, types, gradient)                                                                                  \
    {name, "input:T, reduction_indices:Tidx", "output:T",                                                              \
     "keep_dims:bool=false; T:" types "; Tidx:{int32,int64}=int32", reduce_shape, gradient, TWI_REDUCES}
#define REDUCE_BOOL(name)                                                                                              \
    {name, "input:bool, reduction_indices:Tidx", "output:bool", "keep_dims:bool=false; Tidx:{int32,int64}=int32",      \
     reduce_shape, NULL, TWI_REDUCES}
#define ARG(name)                                                                                                      \
    {name, "input:T, dimension:Tidx", "output:output_type",                                                            \
     "T:{bool," TWI_REALS "}; Tidx:{int32,int64}=int32; output_type:{int32,int64}=int64", arg_shape,                   \
     twi_not_differentiable}
#define SCAN(name, gradient)                                                                                           \
    {name, "x:T, axis:Tidx", "out:T",                                                                                  \
     "exclusive:bool=false; reverse:bool=false; T:" ADDED "; Tidx:{int32,int64}=int32", scan_shape, gradient}
/* clang-format on */

const twi_op twi_math_ops[] = {
    {"Add", "x:T, y:T", "z:T", "T:{string," TWI_NUMBERS "}",
     twi_shape_broadcast, twi_gradient_add, TWI_ELEMENTWISE},
    SYMMETRIC("AddV2", ADDED, twi_gradient_add),
    BINARY("Sub", ADDED, twi_gradient_sub),
    SYMMETRIC("Mul", ADDED, twi_gradient_mul),
    BINARY("MulNoNan", "{half,bfloat16,float,double," TWI_COMPLEX "}", twi_gradient_mul_no_nan),
    BINARY("Div", ADDED, twi_gradient_real_div),
    BINARY("RealDiv", ADDED, twi_gradient_real_div),
    BINARY("DivNoNan", "{half,bfloat16,float,double," TWI_COMPLEX "}", twi_gradient_div_no_nan),
    BINARY("FloorDiv", NUMBERS, twi_not_differentiable),
    BINARY("TruncateDiv", NUMBERS, twi_not_differentiable),
    BINARY("FloorMod", NUMBERS, twi_gradient_floor_mod),
    BINARY("Mod", WIDE, NULL),
    BINARY("TruncateMod", WIDE, NULL),
    SYMMETRIC("Maximum", NUMBERS, twi_gradient_maximum),
    SYMMETRIC("Minimum", NUMBERS, twi_gradient_minimum),
    SYMMETRIC("SquaredDifference", RING, twi_gradient_squared_difference),
    BINARY("Pow", SIGNED_RING, twi_gradient_pow),
    BINARY("Xdivy", FIELD, twi_gradient_xdivy),

    UNARY("Neg", SIGNED_RING, twi_gradient_neg),
    UNARY("Abs", SIGNED, twi_gradient_abs),
    UNARY("Sign", SIGNED_RING, twi_gradient_sign),
    UNARY("Square", ADDED, twi_gradient_square),
    UNARY("Sqrt", FIELD, twi_gradient_sqrt),
    UNARY("Rsqrt", FIELD, twi_gradient_rsqrt),
    UNARY("Reciprocal", RING, twi_gradient_reciprocal),
    UNARY("Inv", RING, twi_gradient_reciprocal),
    UNARY("Exp", FIELD, twi_gradient_exp),
    UNARY("Expm1", FIELD, twi_gradient_expm1),
    UNARY("Log", FIELD, twi_gradient_log),
    UNARY("Log1p", FIELD, twi_gradient_log1p),
    UNARY("Sin", FIELD, twi_gradient_sin),
    UNARY("Cos", FIELD, twi_gradient_cos),
    UNARY("Tan", RING, twi_gradient_tan),
    UNARY("Tanh", FIELD, twi_gradient_tanh),
    UNARY("Sigmoid", FIELD, twi_gradient_sigmoid),
    UNARY("Erf", FLOATS, twi_gradient_erf),
    UNARY("Floor", FLOATS, twi_not_differentiable),
    UNARY("Ceil", FLOATS, twi_not_differentiable),
    UNARY("Round", WIDE, twi_not_differentiable),
    {"Cast", "x:SrcT", "y:DstT", "SrcT:" CONVERTED "; DstT:" CONVERTED "; Truncate:bool=false", twi_shape_same,
     twi_gradient_cast, TWI_ELEMENTWISE},
    {"ClipByValue", "t:T, clip_value_min:T, clip_value_max:T", "output:T", "T:" NUMBERS, clip_shape,
     twi_gradient_clip_by_value, TWI_ELEMENTWISE},
    GRADIENT("SqrtGrad", twi_gradient_sqrt_grad),
    GRADIENT("RsqrtGrad", twi_gradient_rsqrt_grad),
    GRADIENT("ReciprocalGrad", twi_gradient_reciprocal_grad),
    GRADIENT("InvGrad", twi_gradient_reciprocal_grad),
    GRADIENT("SigmoidGrad", twi_gradient_sigmoid_grad),
    GRADIENT("TanhGrad", twi_gradient_tanh_grad),

    COMPARE("Equal", COMPARED, TWI_COMMUTATIVE),
    COMPARE("NotEqual", COMPARED, TWI_COMMUTATIVE),
    COMPARE("Less", ORDERED, 0),
    COMPARE("LessEqual", ORDERED, 0),
    COMPARE("Greater", ORDERED, 0),
    COMPARE("GreaterEqual", ORDERED, 0),
    {"ApproximateEqual", "x:T, y:T", "z:bool", "T:" NUMBERS "; tolerance:float=1e-05", twi_shape_merged,
     twi_not_differentiable, TWI_COMMUTATIVE | TWI_ELEMENTWISE},
    {"LogicalAnd", "x:bool, y:bool", "z:bool", "", twi_shape_broadcast, twi_not_differentiable,
     TWI_COMMUTATIVE | TWI_ELEMENTWISE},
    {"LogicalOr", "x:bool, y:bool", "z:bool", "", twi_shape_broadcast, twi_not_differentiable,
     TWI_COMMUTATIVE | TWI_ELEMENTWISE},
    {"LogicalNot", "x:bool", "y:bool", "", twi_shape_same, twi_not_differentiable, TWI_ELEMENTWISE},
    TEST("IsNan"),
    TEST("IsInf"),
    TEST("IsFinite"),

    {"AddN", "inputs:N*T", "sum:T", "N:int; T:{variant," TWI_NUMBERS "}", twi_shape_merged, twi_gradient_add_n,
     TWI_COMMUTATIVE | TWI_ELEMENTWISE},
    {"AccumulateNV2", "inputs:N*T", "sum:T", "N:int; T:" ADDED "; shape:shape", twi_shape_merged, twi_gradient_add_n,
     TWI_COMMUTATIVE | TWI_ELEMENTWISE},
    REDUCE("Sum", ADDED, twi_gradient_sum),
    REDUCE("Mean", ADDED, twi_gradient_mean),
    REDUCE("Prod", ADDED, twi_gradient_prod),
    REDUCE("Max", NUMBERS, twi_gradient_extremum),
    REDUCE("Min", NUMBERS, twi_gradient_extremum),
    REDUCE_BOOL("All"),
    REDUCE_BOOL("Any"),
    ARG("ArgMax"),
    ARG("ArgMin"),
    SCAN("Cumsum", twi_gradient_cumsum),
    SCAN("Cumprod", twi_gradient_cumprod),
    {"CumulativeLogsumexp", "x:T, axis:Tidx", "out:T",
     "exclusive:bool=false; reverse:bool=false; T:{bfloat16,half,float,double}; Tidx:{int32,int64}=int32", scan_shape,
     twi_gradient_cumulative_logsumexp},
    {"EuclideanNorm", "input:T, reduction_indices:Tidx", "output:T",
     "keep_dims:bool=false; T:{bfloat16,half,float,double}; Tidx:{int32,int64}=int32", reduce_shape,
     twi_gradient_euclidean_norm, TWI_REDUCES},
    {"L2Loss", "t:T", "output:T", "T:" FLOATS, twi_shape_scalar, twi_gradient_l2_loss},
    {"MatMul", "a:T, b:T", "product:T", "transpose_a:bool=false; transpose_b:bool=false; T:" RING, twi_matmul_shape,
     twi_gradient_matmul},
    {"SparseMatMul", "a:Ta, b:Tb", "product:float",
     "transpose_a:bool=false; transpose_b:bool=false; a_is_sparse:bool=false; b_is_sparse:bool=false; "
     "Ta:{float,bfloat16}=float; Tb:{float,bfloat16}=float",
     twi_matmul_shape, twi_gradient_sparse_matmul, TWI_HOST_ONLY},
    {"BatchMatMul", "x:T, y:T", "output:T", "T:" RING "; adj_x:bool=false; adj_y:bool=false", batch_matmul_shape,
     twi_gradient_batch_matmul},
    {"BatchMatMulV2", "x:T, y:T", "output:T",
     "T:{bfloat16,half,float,double,int16,int32,int64," TWI_COMPLEX "}; adj_x:bool=false; adj_y:bool=false",
     batch_matmul_shape, twi_gradient_batch_matmul},
    {"BatchMatMulV3", "x:Ta, y:Tb", "output:Tout",
     "Ta:{bfloat16,half,float,double,uint8,int8,int16,int32,int64," TWI_COMPLEX
     "}; Tb:{bfloat16,half,float,double,uint8,int8,int16,int32,int64," TWI_COMPLEX
     "}; Tout:{bfloat16,half,float,double,int16,int32,int64," TWI_COMPLEX
     "}; adj_x:bool=false; adj_y:bool=false; grad_x:bool=false; grad_y:bool=false",
     batch_matmul_shape, twi_gradient_batch_matmul, TWI_HOST_ONLY},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------- */

#define UNARY_BUILDER(function, op)                                                                                    \
    tw_output function(tw_graph *graph, tw_output x)                                                                   \
    {                                                                                                                  \
        return twi_build(graph, op, &x, 1, TWI_NO_ATTRS);                                                              \
    }
#define BINARY_BUILDER(function, op)                                                                                   \
    tw_output function(tw_graph *graph, tw_output x, tw_output y)                                                      \
    {                                                                                                                  \
        return twi_build(graph, op, TWI_INPUTS(x, y), TWI_NO_ATTRS);                                                   \
    }
#define REDUCTION_BUILDER(function, op)                                                                                \
    tw_output function(tw_graph *graph, tw_output x, const int *axes, int num_axes, bool keep_dims)                    \
    {                                                                                                                  \
        return reduce(graph, op, x, axes, num_axes, keep_dims);                                                        \
    }

BINARY_BUILDER(tw_add, "AddV2")
BINARY_BUILDER(tw_sub, "Sub")
BINARY_BUILDER(tw_mul, "Mul")
BINARY_BUILDER(tw_div, "RealDiv")
BINARY_BUILDER(tw_div_no_nan, "DivNoNan")
BINARY_BUILDER(tw_floor_div, "FloorDiv")
BINARY_BUILDER(tw_floor_mod, "FloorMod")
BINARY_BUILDER(tw_maximum, "Maximum")
BINARY_BUILDER(tw_minimum, "Minimum")
BINARY_BUILDER(tw_squared_difference, "SquaredDifference")
BINARY_BUILDER(tw_pow, "Pow")
BINARY_BUILDER(tw_equal, "Equal")
BINARY_BUILDER(tw_not_equal, "NotEqual")
BINARY_BUILDER(tw_less, "Less")
BINARY_BUILDER(tw_less_equal, "LessEqual")
BINARY_BUILDER(tw_greater, "Greater")
BINARY_BUILDER(tw_greater_equal, "GreaterEqual")
BINARY_BUILDER(tw_logical_and, "LogicalAnd")
BINARY_BUILDER(tw_logical_or, "LogicalOr")

UNARY_BUILDER(tw_neg, "Neg")
UNARY_BUILDER(tw_sign, "Sign")
UNARY_BUILDER(tw_square, "Square")
UNARY_BUILDER(tw_sqrt, "Sqrt")
UNARY_BUILDER(tw_rsqrt, "Rsqrt")
UNARY_BUILDER(tw_reciprocal, "Reciprocal")
UNARY_BUILDER(tw_exp, "Exp")
UNARY_BUILDER(tw_expm1, "Expm1")
UNARY_BUILDER(tw_log, "Log")
UNARY_BUILDER(tw_log1p, "Log1p")
UNARY_BUILDER(tw_sin, "Sin")
UNARY_BUILDER(tw_cos, "Cos")
UNARY_BUILDER(tw_tan, "Tan")
UNARY_BUILDER(tw_tanh, "Tanh")
UNARY_BUILDER(tw_sigmoid, "Sigmoid")
UNARY_BUILDER(tw_erf, "Erf")
UNARY_BUILDER(tw_floor, "Floor")
UNARY_BUILDER(tw_ceil, "Ceil")
UNARY_BUILDER(tw_round, "Round")
UNARY_BUILDER(tw_logical_not, "LogicalNot")
UNARY_BUILDER(tw_is_nan, "IsNan")
UNARY_BUILDER(tw_is_inf, "IsInf")
UNARY_BUILDER(tw_is_finite, "IsFinite")
UNARY_BUILDER(tw_l2_loss, "L2Loss")

tw_output tw_abs(tw_graph *graph, tw_output x)
{
    TWI_NEED_OR(graph, (tw_output){0});
    tw_dtype dtype = x.node ? tw_output_dtype(x) : TW_INVALID_DTYPE;
    if (!tw_dtype_is_complex(dtype))
        return twi_build(graph, "Abs", &x, 1, TWI_NO_ATTRS);
    return twi_build(graph, "ComplexAbs", &x, 1, TWI_ATTRS(tw_attr_type("Tout", twi_part_type(dtype))));
}

tw_output tw_cast(tw_graph *graph, tw_output x, tw_dtype dtype)
{
    TWI_NEED_OR(graph, (tw_output){0});
    if (x.node && tw_output_dtype(x) == dtype)
        return x;
    return twi_build(graph, "Cast", &x, 1, TWI_ATTRS(tw_attr_type("DstT", dtype)));
}

tw_output tw_clip(tw_graph *graph, tw_output x, tw_output low, tw_output high)
{
    return twi_build(graph, "ClipByValue", TWI_INPUTS(x, low, high), TWI_NO_ATTRS);
}

tw_output tw_add_n(tw_graph *graph, const tw_output *inputs, int num_inputs)
{
    return twi_build(graph, "AddN", inputs, num_inputs, TWI_NO_ATTRS);
}

static tw_output reduce(tw_graph *graph, const char *op, tw_output x, const int *axes, int num_axes, bool keep_dims)
{
    int64_t values[TW_MAX_RANK];
    if (!x.node)
        return twi_build(graph, op, &x, 1, TWI_NO_ATTRS);
    int rank = tw_output_shape(x).rank;
    tw_output indices;
    if (axes && num_axes <= TW_MAX_RANK) {
        for (int i = 0; i < num_axes; i++)
            values[i] = axes[i];
        indices = twi_constant_ints(graph, values, num_axes);
    } else if (rank >= 0) {
        for (int i = 0; i < rank; i++)
            values[i] = i;
        indices = twi_constant_ints(graph, values, rank);
    } else {
        indices = tw_range(graph, twi_constant_int(graph, 0), tw_rank_of(graph, x), twi_constant_int(graph, 1));
    }
    return twi_build(graph, op, TWI_INPUTS(x, indices), TWI_ATTRS(tw_attr_bool("keep_dims", keep_dims)));
}

REDUCTION_BUILDER(tw_reduce_sum, "Sum")
REDUCTION_BUILDER(tw_reduce_mean, "Mean")
REDUCTION_BUILDER(tw_reduce_prod, "Prod")
REDUCTION_BUILDER(tw_reduce_max, "Max")
REDUCTION_BUILDER(tw_reduce_min, "Min")
REDUCTION_BUILDER(tw_reduce_all, "All")
REDUCTION_BUILDER(tw_reduce_any, "Any")

tw_output tw_arg_max(tw_graph *graph, tw_output x, int axis)
{
    return twi_build(graph, "ArgMax", TWI_INPUTS(x, twi_constant_int(graph, axis)), TWI_NO_ATTRS);
}

tw_output tw_arg_min(tw_graph *graph, tw_output x, int axis)
{
    return twi_build(graph, "ArgMin", TWI_INPUTS(x, twi_constant_int(graph, axis)), TWI_NO_ATTRS);
}

static tw_output scan(tw_graph *graph, const char *op, tw_output x, int axis, bool exclusive, bool reverse)
{
    return twi_build(graph, op, TWI_INPUTS(x, twi_constant_int(graph, axis)),
                     TWI_ATTRS(tw_attr_bool("exclusive", exclusive), tw_attr_bool("reverse", reverse)));
}

tw_output tw_cumsum(tw_graph *graph, tw_output x, int axis, bool exclusive, bool reverse)
{
    return scan(graph, "Cumsum", x, axis, exclusive, reverse);
}

tw_output tw_cumprod(tw_graph *graph, tw_output x, int axis, bool exclusive, bool reverse)
{
    return scan(graph, "Cumprod", x, axis, exclusive, reverse);
}

tw_output tw_matmul(tw_graph *graph, tw_output a, tw_output b)
{
    return tw_matmul_transposed(graph, a, b, false, false);
}

tw_output tw_matmul_transposed(tw_graph *graph, tw_output a, tw_output b, bool transpose_a, bool transpose_b)
{
    return twi_build(graph, "MatMul", TWI_INPUTS(a, b),
                     TWI_ATTRS(tw_attr_bool("transpose_a", transpose_a), tw_attr_bool("transpose_b", transpose_b)));
}

tw_output tw_batch_matmul(tw_graph *graph, tw_output x, tw_output y, bool transpose_x, bool transpose_y)
{
    return twi_build(graph, "BatchMatMulV2", TWI_INPUTS(x, y),
                     TWI_ATTRS(tw_attr_bool("adj_x", transpose_x), tw_attr_bool("adj_y", transpose_y)));
}
