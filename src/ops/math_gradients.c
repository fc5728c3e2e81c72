/* math_gradients.c - the gradient rules of math.c's ops, built from public ops, with TensorFlow's formulas.
 * The order of the operands is TensorFlow's too, because float arithmetic is not associative. The gradient by a complex
 * number is the conjugate of what it is by calculus, as TensorFlow's: so rules conjugate what they multiply with, which
 * leaves real numbers as they are. */
#include "graph/graph.h"
#include "graph/sweep.h"
#include "ops/build.h"
#include "ops/gradients.h"
#include "tensor/tensor.h"

#include <float.h>

#include <tower/ops.h>

/* In every rule: the node's inputs, its output and the gradient that flows in. */
#define X(i) tw_node_input(g->node, i)
#define Y ((tw_output){g->node, 0})
#define DY (g->dy[0])
#define G (g->graph)

/* The conjugates of an input and of the output. */
static tw_output conj_x(twi_gradient *g, int i)
{
    return tw_conj(G, X(i));
}

static tw_output conj_y(twi_gradient *g)
{
    return tw_conj(G, Y);
}

/* ---- undoing broadcasting ---------------------------------------------------------------------------------- */

/* The axes of the broadcast shape along which x was repeated to meet y, from what is known of the shapes; their
 * number, or -1 if that depends on unknown dimensions. */
static int repeated_axes(tw_shape x, tw_shape y, int64_t axes[TW_MAX_RANK])
{
    if (x.rank < 0 || y.rank < 0)
        return -1;
    int rank = x.rank > y.rank ? x.rank : y.rank, count = 0;
    for (int i = 0; i < rank; i++) {
        int xi = i - (rank - x.rank), yi = i - (rank - y.rank);
        int64_t dx = xi < 0 ? 1 : x.dims[xi], dy = yi < 0 ? 1 : y.dims[yi];
        if (xi < 0 || (dx == 1 && dy != 1))
            axes[count++] = i;
        else if (dx < 0 && dy != 1)
            return -1;
    }
    return count;
}

/* The axes as a tensor: of x's side of a broadcast with y. Leading axes only when `batch`: the last two do not count.
 */
static tw_output repeated_axes_at_run(tw_graph *graph, tw_output x, tw_output y, bool batch)
{
    tw_output shapes[2] = {twi_shape_tensor(graph, x), twi_shape_tensor(graph, y)};
    tw_strided_slice_options leading = {.begin = TW_SHAPE(0), .end = TW_SHAPE(-2)};
    for (int i = 0; batch && i < 2; i++)
        shapes[i] = tw_strided_slice(graph, shapes[i], leading);
    return twi_build(graph, "BroadcastGradientArgs", shapes, 2, TWI_NO_ATTRS);
}

static tw_output unbroadcast(tw_graph *graph, tw_output gradient, tw_output x, tw_output y, bool batch)
{
    if (!x.node || !y.node || (x.node == y.node && x.index == y.index))
        return gradient;
    int64_t axes[TW_MAX_RANK];
    tw_shape sx = tw_output_shape(x), sy = tw_output_shape(y);
    if (batch && sx.rank >= 2 && sy.rank >= 2)
        sx.rank -= 2, sy.rank -= 2;
    int count = repeated_axes(sx, sy, axes);
    if (count == 0)
        return gradient;
    tw_output indices = count > 0 ? twi_constant_ints(graph, axes, count) : repeated_axes_at_run(graph, x, y, batch);
    tw_output sum = twi_build(graph, "Sum", TWI_INPUTS(gradient, indices), TWI_NO_ATTRS);
    if (count > 0 && sx.rank + count == (sx.rank > sy.rank ? sx.rank : sy.rank))
        return sum; /* x lacked the axes that went */
    return tw_reshape_to(graph, sum, twi_shape_tensor(graph, x));
}

tw_output twi_unbroadcast(tw_graph *graph, tw_output gradient, tw_output x, tw_output y)
{
    return unbroadcast(graph, gradient, x, y, false);
}

tw_output twi_unbroadcast_matrices(tw_graph *graph, tw_output gradient, tw_output x, tw_output y)
{
    return unbroadcast(graph, gradient, x, y, true);
}

static void give(twi_gradient *g, int i, tw_output gradient)
{
    g->dx[i] = twi_unbroadcast(G, gradient, X(i), X(1 - i));
}

/* A constant of the type of `like`. */
static tw_output number(twi_gradient *g, tw_output like, double value)
{
    return tw_scalar_of(G, tw_output_dtype(like), value);
}

/* ---- element-wise, two inputs ------------------------------------------------------------------------------ */

void twi_gradient_add(twi_gradient *g)
{
    give(g, 0, DY);
    give(g, 1, DY);
}

void twi_gradient_sub(twi_gradient *g)
{
    give(g, 0, DY);
    give(g, 1, tw_neg(G, DY));
}

void twi_gradient_mul(twi_gradient *g)
{
    give(g, 0, tw_mul(G, DY, conj_x(g, 1)));
    give(g, 1, tw_mul(G, conj_x(g, 0), DY));
}

static tw_output binary(twi_gradient *g, const char *op, tw_output x, tw_output y)
{
    return twi_build(G, op, TWI_INPUTS(x, y), TWI_NO_ATTRS);
}

void twi_gradient_mul_no_nan(twi_gradient *g)
{
    give(g, 0, binary(g, "MulNoNan", DY, conj_x(g, 1)));
    give(g, 1, binary(g, "MulNoNan", conj_x(g, 0), DY));
}

/* dx = dy / y;  dy = dy * (-x / y / y) */
static void quotient(twi_gradient *g, const char *divide)
{
    tw_output x = conj_x(g, 0), y = conj_x(g, 1);
    give(g, 0, binary(g, divide, DY, y));
    give(g, 1, tw_mul(G, DY, binary(g, divide, binary(g, divide, tw_neg(G, x), y), y)));
}

void twi_gradient_real_div(twi_gradient *g)
{
    quotient(g, "RealDiv");
}

void twi_gradient_div_no_nan(twi_gradient *g)
{
    quotient(g, "DivNoNan");
}

void twi_gradient_floor_mod(twi_gradient *g)
{
    give(g, 0, DY);
    give(g, 1, tw_mul(G, DY, tw_neg(G, tw_floor_div(G, X(0), X(1)))));
}

/* The gradient goes to x where `chosen` holds, else to y. */
static void choose(twi_gradient *g, tw_output chosen)
{
    tw_output zeros = tw_zeros_like(G, DY);
    give(g, 0, twi_build(G, "Select", TWI_INPUTS(chosen, DY, zeros), TWI_NO_ATTRS));
    give(g, 1, twi_build(G, "Select", TWI_INPUTS(chosen, zeros, DY), TWI_NO_ATTRS));
}

void twi_gradient_maximum(twi_gradient *g)
{
    choose(g, tw_greater_equal(G, X(0), X(1)));
}

void twi_gradient_minimum(twi_gradient *g)
{
    choose(g, tw_less_equal(G, X(0), X(1)));
}

void twi_gradient_squared_difference(twi_gradient *g)
{
    tw_output dx = tw_mul(G, tw_mul(G, number(g, DY, 2), DY), tw_sub(G, X(0), X(1)));
    give(g, 0, dx);
    give(g, 1, tw_neg(G, dx));
}

/* dx = dy * y * x^(y-1);  dy = dy * z * log(x), and 0 where x <= 0, or is the complex 0 */
void twi_gradient_pow(twi_gradient *g)
{
    tw_output x = conj_x(g, 0), y = conj_x(g, 1), zero = number(g, x, 0);
    give(g, 0, tw_mul(G, tw_mul(G, DY, y), tw_pow(G, x, tw_sub(G, y, number(g, y, 1)))));
    bool is_complex = tw_dtype_is_complex(tw_output_dtype(x));
    tw_output has_log = is_complex ? tw_not_equal(G, x, zero) : tw_greater(G, x, zero);
    tw_output log_x = twi_build(G, "Select", TWI_INPUTS(has_log, tw_log(G, x), tw_zeros_like(G, x)), TWI_NO_ATTRS);
    give(g, 1, tw_mul(G, tw_mul(G, DY, conj_y(g)), log_x));
}

void twi_gradient_xdivy(twi_gradient *g)
{
    tw_output x = conj_x(g, 0), y = conj_x(g, 1);
    tw_output not_zero = tw_cast(G, tw_not_equal(G, x, number(g, x, 0)), tw_output_dtype(x));
    give(g, 0, tw_mul(G, DY, binary(g, "Xdivy", not_zero, y)));
    give(g, 1, tw_mul(G, DY, binary(g, "Xdivy", tw_neg(G, x), tw_square(G, y))));
}

void twi_gradient_clip_by_value(twi_gradient *g)
{
    tw_output below = tw_less(G, X(0), X(1)), above = tw_greater(G, X(0), X(2));
    tw_output zeros = tw_zeros_like(G, DY);
    g->dx[0] = tw_select(G, tw_logical_or(G, below, above), zeros, DY);
    g->dx[1] = twi_unbroadcast(G, tw_select(G, below, DY, zeros), X(1), X(0));
    g->dx[2] = twi_unbroadcast(G, tw_select(G, above, DY, zeros), X(2), X(0));
}

/* ---- element-wise, one input ------------------------------------------------------------------------------- */

void twi_gradient_neg(twi_gradient *g)
{
    g->dx[0] = tw_neg(G, DY);
}

void twi_gradient_abs(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY, tw_sign(G, X(0)));
}

void twi_gradient_sign(twi_gradient *g)
{
    g->dx[0] = tw_zeros_like(G, X(0));
}

void twi_gradient_square(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY, tw_mul(G, conj_x(g, 0), number(g, X(0), 2)));
}

void twi_gradient_sqrt(twi_gradient *g)
{
    g->dx[0] = binary(g, "SqrtGrad", Y, DY);
}

void twi_gradient_rsqrt(twi_gradient *g)
{
    g->dx[0] = binary(g, "RsqrtGrad", Y, DY);
}

void twi_gradient_reciprocal(twi_gradient *g)
{
    g->dx[0] = binary(g, "ReciprocalGrad", Y, DY);
}

void twi_gradient_exp(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY, conj_y(g));
}

void twi_gradient_expm1(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY, tw_exp(G, conj_x(g, 0)));
}

void twi_gradient_log(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY, tw_reciprocal(G, conj_x(g, 0)));
}

void twi_gradient_log1p(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY, tw_reciprocal(G, tw_add(G, number(g, X(0), 1), conj_x(g, 0))));
}

void twi_gradient_sin(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY, tw_cos(G, conj_x(g, 0)));
}

void twi_gradient_cos(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, tw_neg(G, DY), tw_sin(G, conj_x(g, 0)));
}

void twi_gradient_tan(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY, tw_square(G, tw_reciprocal(G, tw_cos(G, conj_x(g, 0)))));
}

void twi_gradient_tanh(twi_gradient *g)
{
    g->dx[0] = binary(g, "TanhGrad", conj_y(g), DY);
}

void twi_gradient_sigmoid(twi_gradient *g)
{
    g->dx[0] = binary(g, "SigmoidGrad", conj_y(g), DY);
}

void twi_gradient_erf(twi_gradient *g)
{
    tw_output two_over_root_pi = number(g, DY, 1.1283791670955125739);
    g->dx[0] = tw_mul(G, tw_mul(G, DY, two_over_root_pi), tw_exp(G, tw_neg(G, tw_square(G, X(0)))));
}

void twi_gradient_cast(twi_gradient *g)
{
    tw_dtype from = tw_output_dtype(X(0));
    if (twi_has_gradient(from) && twi_has_gradient(tw_output_dtype(Y)))
        g->dx[0] = tw_cast(G, DY, from);
}

/* ---- gradients of gradients -------------------------------------------------------------------------------- */

/* z = dy / 2 / conj(y) */
void twi_gradient_sqrt_grad(twi_gradient *g)
{
    tw_output over_y = tw_div(G, DY, X(0));
    g->dx[0] = tw_mul(G, tw_neg(G, tw_conj(G, over_y)), Y);
    g->dx[1] = tw_mul(G, number(g, DY, 0.5), over_y);
}

/* z = -dy conj(y)^3 / 2 */
void twi_gradient_rsqrt_grad(twi_gradient *g)
{
    tw_output y = conj_x(g, 0), dy = X(1);
    tw_output factor = tw_mul(G, tw_mul(G, number(g, DY, -1.5), tw_conj(G, DY)), dy);
    g->dx[0] = tw_mul(G, factor, tw_square(G, y));
    g->dx[1] = binary(g, "RsqrtGrad", y, DY);
}

/* z = -dy conj(y)^2 */
void twi_gradient_reciprocal_grad(twi_gradient *g)
{
    tw_output y = conj_x(g, 0);
    g->dx[0] = tw_mul(G, tw_mul(G, tw_mul(G, tw_conj(G, DY), number(g, DY, -2)), X(1)), y);
    g->dx[1] = binary(g, "ReciprocalGrad", y, DY);
}

/* z = dy y (1 - y) */
void twi_gradient_sigmoid_grad(twi_gradient *g)
{
    tw_output y = conj_x(g, 0), gradient = tw_mul(G, DY, conj_x(g, 1));
    g->dx[0] = tw_sub(G, gradient, tw_mul(G, tw_mul(G, number(g, DY, 2), gradient), y));
    g->dx[1] = binary(g, "SigmoidGrad", y, DY);
}

/* z = dy (1 - y^2) */
void twi_gradient_tanh_grad(twi_gradient *g)
{
    tw_output y = conj_x(g, 0);
    g->dx[0] = tw_mul(G, tw_mul(G, tw_mul(G, DY, number(g, DY, -2)), conj_x(g, 1)), y);
    g->dx[1] = binary(g, "TanhGrad", y, DY);
}

/* ---- reductions -------------------------------------------------------------------------------------------- */

void twi_gradient_add_n(twi_gradient *g)
{
    for (int i = 0; i < tw_node_num_inputs(g->node); i++)
        g->dx[i] = DY;
}

/* What a reduction's gradient needs: the shape with reduced axes as 1, and how often each axis was folded. */
typedef struct reduced {
    bool known; /* the static ones below hold */
    tw_shape kept, multiples;
    bool axis[TW_MAX_RANK]; /* is reduced; if known */
    tw_output kept_tensor, multiples_tensor;
} reduced;

static bool static_reduction(twi_gradient *g, reduced *r)
{
    tw_shape shape = tw_output_shape(X(0));
    const tw_tensor *axes = twi_constant_value(X(1));
    if (!tw_shape_is_known(shape) || !axes)
        return false;
    r->kept = shape;
    r->multiples = shape;
    for (int i = 0; i < shape.rank; i++)
        r->multiples.dims[i] = 1;
    for (int64_t k = 0; k < axes->elements; k++) {
        int64_t axis = twi_tensor_int(axes, k);
        axis = axis < 0 ? axis + shape.rank : axis;
        r->axis[axis] = true;
        r->kept.dims[axis] = 1;
        r->multiples.dims[axis] = shape.dims[axis];
    }
    return true;
}

static reduced reduction_of(twi_gradient *g)
{
    reduced r = {0};
    r.known = static_reduction(g, &r);
    if (r.known) {
        r.kept_tensor = twi_constant_ints(G, r.kept.dims, r.kept.rank);
        r.multiples_tensor = twi_constant_ints(G, r.multiples.dims, r.multiples.rank);
        return r;
    }
    tw_output shape = tw_shape_of(G, X(0)), rank = tw_rank_of(G, X(0));
    tw_output zero = twi_constant_int(G, 0), one = twi_constant_int(G, 1);
    tw_output axes = tw_floor_mod(G, tw_add(G, tw_cast(G, X(1), TW_INT32), rank), rank);
    tw_output all_axes = tw_range(G, zero, rank, one), ones = tw_fill(G, tw_shape_of(G, axes), one);
    r.kept_tensor = twi_build(G, "DynamicStitch", TWI_INPUTS(all_axes, axes, shape, ones), TWI_NO_ATTRS);
    r.multiples_tensor = tw_floor_div(G, shape, tw_maximum(G, r.kept_tensor, one));
    return r;
}

/* dy repeated over the reduced axes: the gradient of Sum. */
static tw_output spread(twi_gradient *g)
{
    reduced r = reduction_of(g);
    tw_output kept = tw_reshape_to(G, DY, r.kept_tensor);
    if (r.known && tw_shape_elements(r.multiples) == 1)
        return kept;
    return twi_build(G, "Tile", TWI_INPUTS(kept, r.multiples_tensor), TWI_NO_ATTRS);
}

void twi_gradient_sum(twi_gradient *g)
{
    g->dx[0] = spread(g);
}

void twi_gradient_mean(twi_gradient *g)
{
    tw_output sum = spread(g);
    int64_t in = tw_shape_elements(tw_output_shape(X(0))), out = tw_shape_elements(tw_output_shape(Y));
    tw_output factor;
    if (in >= 0 && out >= 0)
        factor = number(g, DY, (double)(in / (out ? out : 1)));
    else
        factor =
            tw_cast(G, tw_floor_div(G, tw_size_of(G, X(0)), tw_maximum(G, tw_size_of(G, Y), twi_constant_int(G, 1))),
                    tw_output_dtype(DY));
    g->dx[0] = tw_div(G, sum, factor);
}

/* The same as below of shapes that are known when it runs. */
static void prod_back(twi_gradient *g, const reduced *r)
{
    tw_output shape = tw_shape_of(G, X(0)), rank = tw_rank_of(G, X(0)), zero = twi_constant_int(G, 0);
    tw_output axes = tw_reshape(G, tw_cast(G, X(1), TW_INT32), TW_SHAPE(-1));
    axes = tw_floor_mod(G, tw_add(G, axes, rank), rank);
    tw_output all = tw_range(G, zero, rank, twi_constant_int(G, 1));
    tw_output others = twi_build(G, "ListDiff", TWI_INPUTS(all, axes), TWI_NO_ATTRS);
    tw_output order = tw_concat(G, (tw_output[]){axes, others}, 2, 0);
    tw_output front = twi_build(G, "Transpose", TWI_INPUTS(X(0), order), TWI_NO_ATTRS);
    tw_output sizes[] = {twi_build(G, "Prod", TWI_INPUTS(tw_gather(G, shape, axes, 0), zero), TWI_NO_ATTRS),
                         twi_build(G, "Prod", TWI_INPUTS(tw_gather(G, shape, others, 0), zero), TWI_NO_ATTRS)};
    tw_output flat = tw_reshape_to(G, front, tw_pack(G, sizes, 2, 0));
    tw_output rest = tw_mul(G, tw_cumprod(G, flat, 0, true, false), tw_cumprod(G, flat, 0, true, true));
    tw_output back = twi_build(G, "InvertPermutation", TWI_INPUTS(order), TWI_NO_ATTRS);
    rest = twi_build(G, "Transpose", TWI_INPUTS(tw_reshape_to(G, rest, tw_shape_of(G, front)), back), TWI_NO_ATTRS);
    rest = tw_conj(G, rest);
    tw_output dy = tw_reshape_to(G, DY, r->kept_tensor);
    g->dx[0] = tw_mul(G, twi_build(G, "Tile", TWI_INPUTS(dy, r->multiples_tensor), TWI_NO_ATTRS), rest);
}

/* The product of all others: of those before times those after, which is right also where one is zero. The reduced
 * axes are brought to the front for that, as one. */
void twi_gradient_prod(twi_gradient *g)
{
    reduced r = reduction_of(g);
    if (!r.known) {
        prod_back(g, &r);
        return;
    }
    tw_shape shape = tw_output_shape(X(0)), order = {.rank = shape.rank}, back = order, folded = TW_SHAPE(1, 1);
    for (int pass = 0, to = 0; pass < 2; pass++)
        for (int i = 0; i < shape.rank; i++)
            if (r.axis[i] == (pass == 0)) {
                order.dims[to] = i;
                back.dims[i] = to++;
                folded.dims[pass] *= shape.dims[i];
            }
    tw_output front = tw_transpose(G, X(0), order);
    tw_output flat = tw_reshape(G, front, folded);
    tw_output others = tw_mul(G, tw_cumprod(G, flat, 0, true, false), tw_cumprod(G, flat, 0, true, true));
    others = tw_conj(G, tw_transpose(G, tw_reshape_to(G, others, twi_shape_tensor(G, front)), back));
    tw_output dy = tw_reshape_to(G, DY, r.kept_tensor);
    g->dx[0] = tw_mul(G, twi_build(G, "Tile", TWI_INPUTS(dy, r.multiples_tensor), TWI_NO_ATTRS), others);
}

/* Equal extrema share the gradient equally. */
void twi_gradient_extremum(twi_gradient *g)
{
    reduced r = reduction_of(g);
    tw_output y = tw_reshape_to(G, Y, r.kept_tensor), dy = tw_reshape_to(G, DY, r.kept_tensor);
    tw_output is_extremum = tw_cast(G, tw_equal(G, y, X(0)), tw_output_dtype(DY));
    tw_output count = twi_build(G, "Sum", TWI_INPUTS(is_extremum, X(1)), TWI_NO_ATTRS);
    g->dx[0] = tw_mul(G, tw_div(G, is_extremum, tw_reshape_to(G, count, r.kept_tensor)), dy);
}

/* dx = x dy / y; where y is 0 it is NaN, as in TensorFlow. */
void twi_gradient_euclidean_norm(twi_gradient *g)
{
    reduced r = reduction_of(g);
    tw_output y = tw_reshape_to(G, Y, r.kept_tensor), dy = tw_reshape_to(G, DY, r.kept_tensor);
    g->dx[0] = tw_div(G, X(0), tw_div(G, y, dy));
}

/* e^(the running logarithm of the sum of those of dy, less y, from the other side, plus x), of what of dy is positive.
 */
static tw_output logsumexp_back(twi_gradient *g, tw_output dy)
{
    bool exclusive = twi_attr_bool(&g->node->attrs, "exclusive", false);
    bool reverse = twi_attr_bool(&g->node->attrs, "reverse", false);
    tw_output zero = tw_scalar_of(G, tw_output_dtype(dy), 0), is_more = tw_greater(G, dy, zero);
    tw_dtype dtype = tw_output_dtype(dy);
    double least = dtype == TW_FLOAT64   ? -DBL_MAX
                   : dtype == TW_FLOAT16 ? -65504
                                         : -3.38e38; /* differences stay numbers */
    tw_output nothing = tw_mul(G, tw_ones_like(G, dy), tw_scalar_of(G, dtype, least));
    tw_output logs = tw_select(G, is_more, tw_log(G, tw_select(G, is_more, dy, tw_ones_like(G, dy))), nothing);
    tw_output sums = twi_build(G, "CumulativeLogsumexp", TWI_INPUTS(tw_sub(G, logs, Y), X(1)),
                               TWI_ATTRS(tw_attr_bool("exclusive", exclusive), tw_attr_bool("reverse", !reverse)));
    return tw_exp(G, tw_add(G, sums, X(0)));
}

void twi_gradient_cumulative_logsumexp(twi_gradient *g)
{
    g->dx[0] = tw_sub(G, logsumexp_back(g, DY), logsumexp_back(g, tw_neg(G, DY)));
}

static tw_output scan_back(twi_gradient *g, tw_output values)
{
    bool exclusive = twi_attr_bool(&g->node->attrs, "exclusive", false);
    bool reverse = twi_attr_bool(&g->node->attrs, "reverse", false);
    return twi_build(G, "Cumsum", TWI_INPUTS(values, X(1)),
                     TWI_ATTRS(tw_attr_bool("exclusive", exclusive), tw_attr_bool("reverse", !reverse)));
}

void twi_gradient_cumsum(twi_gradient *g)
{
    g->dx[0] = scan_back(g, DY);
}

void twi_gradient_cumprod(twi_gradient *g)
{
    g->dx[0] = tw_div(G, scan_back(g, tw_mul(G, conj_y(g), DY)), conj_x(g, 0));
}

void twi_gradient_l2_loss(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, X(0), DY);
}

/* ---- matrix products --------------------------------------------------------------------------------------- */

typedef tw_output product(tw_graph *graph, tw_output a, tw_output b, bool transpose_a, bool transpose_b);

static void differentiate_product(twi_gradient *g, product *times, tw_output a, tw_output b, bool transpose_a,
                                  bool transpose_b)
{
    tw_output dy = DY;
    if (!transpose_a && !transpose_b) {
        g->dx[0] = times(G, dy, b, false, true);
        g->dx[1] = times(G, a, dy, true, false);
    } else if (!transpose_a) {
        g->dx[0] = times(G, dy, b, false, false);
        g->dx[1] = times(G, dy, a, true, false);
    } else if (!transpose_b) {
        g->dx[0] = times(G, b, dy, false, true);
        g->dx[1] = times(G, a, dy, false, false);
    } else {
        g->dx[0] = times(G, b, dy, true, true);
        g->dx[1] = times(G, dy, a, true, true);
    }
}

void twi_gradient_matmul(twi_gradient *g)
{
    differentiate_product(g, tw_matmul_transposed, conj_x(g, 0), conj_x(g, 1),
                          twi_attr_bool(&g->node->attrs, "transpose_a", false),
                          twi_attr_bool(&g->node->attrs, "transpose_b", false));
}

static tw_output product_of_floats(tw_graph *graph, tw_output a, tw_output b, bool transpose_a, bool transpose_b)
{
    return tw_matmul_transposed(graph, tw_cast(graph, a, TW_FLOAT32), tw_cast(graph, b, TW_FLOAT32), transpose_a,
                                transpose_b);
}

/* Of operands that are float or bfloat16, each for itself. */
void twi_gradient_sparse_matmul(twi_gradient *g)
{
    differentiate_product(g, product_of_floats, X(0), X(1), twi_attr_bool(&g->node->attrs, "transpose_a", false),
                          twi_attr_bool(&g->node->attrs, "transpose_b", false));
    for (int i = 0; i < 2; i++)
        g->dx[i] = tw_cast(G, g->dx[i], tw_output_dtype(X(i)));
}

void twi_gradient_batch_matmul(twi_gradient *g)
{
    differentiate_product(g, tw_batch_matmul, X(0), X(1), twi_attr_bool(&g->node->attrs, "adj_x", false),
                          twi_attr_bool(&g->node->attrs, "adj_y", false));
    for (int i = 0; i < 2; i++)
        g->dx[i] = twi_unbroadcast_matrices(G, g->dx[i], X(i), X(1 - i));
}
