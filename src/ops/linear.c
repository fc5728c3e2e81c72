/* linear.c - linear algebra on matrices [..., rows, columns]: inverses, determinants, systems of equations,
 * decompositions. Rows, shape rules and gradient rules, which have TensorFlow's formulas. */
#include "ops/rules.h"
#include "ops/types.h"

/* ---- shape rules ------------------------------------------------------------------------------------------- */

/* The dimension of square matrices; -1 if not known. */
static tw_status square(twi_inference *c, int input, int64_t *n)
{
    tw_shape in = c->inputs[input];
    tw_status status = twi_expect_rank_at_least(c, input, 2);
    *n = -1;
    if (status == TW_OK && in.rank >= 2 && !twi_merge_dims(in.dims[in.rank - 2], in.dims[in.rank - 1], n))
        return TWI_REFUSE(c, "matrices of %lld x %lld are not square", (long long)in.dims[in.rank - 2],
                          (long long)in.dims[in.rank - 1]);
    return status;
}

static tw_status square_shape(twi_inference *c)
{
    int64_t n;
    tw_status status = square(c, 0, &n);
    tw_shape out = c->inputs[0];
    for (int i = 1; i < c->num_inputs && status == TW_OK; i++)
        status = twi_merge_shapes(out, c->inputs[i], &out, c->error);
    if (out.rank >= 2)
        out.dims[out.rank - 1] = out.dims[out.rank - 2] = n;
    c->outputs[0] = out;
    return status;
}

/* lu, and from which row each of its rows came */
static tw_status lu_shape(twi_inference *c)
{
    tw_status status = square_shape(c);
    c->outputs[1] = c->outputs[0];
    if (c->outputs[1].rank > 0)
        c->outputs[1].rank--;
    return status;
}

static tw_status determinant_shape(twi_inference *c)
{
    int64_t n;
    tw_shape out = c->inputs[0];
    tw_status status = square(c, 0, &n);
    if (out.rank >= 2)
        out.rank -= 2;
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = out;
    return status;
}

/* How the axes of two inputs before the matrices' own become one shape. */
typedef tw_status join_batches(tw_shape a, tw_shape b, tw_shape *out, tw_error *error);

/* a [..., n, n], b [..., n, k] */
static tw_status solution_shape(twi_inference *c, join_batches *join)
{
    int64_t n, rows;
    tw_shape a = c->inputs[0], b = c->inputs[1], batch, out;
    tw_status status = square(c, 0, &n);
    if (status == TW_OK)
        status = twi_expect_rank_at_least(c, 1, 2);
    if (status != TW_OK || a.rank < 0 || b.rank < 0)
        return status;
    if (!twi_merge_dims(n, b.dims[b.rank - 2], &rows))
        return TWI_REFUSE(c, "%lld equations, but %lld right sides", (long long)n, (long long)b.dims[b.rank - 2]);
    out = b;
    a.rank -= 2;
    b.rank -= 2;
    status = join(a, b, &batch, c->error);
    if (status != TW_OK)
        return status;
    out.rank = batch.rank + 2;
    memcpy(out.dims, batch.dims, sizeof *out.dims * (size_t)batch.rank);
    out.dims[batch.rank] = rows;
    out.dims[batch.rank + 1] = c->inputs[1].dims[c->inputs[1].rank - 1];
    c->outputs[0] = out;
    return status;
}

static tw_status solve_shape(twi_inference *c)
{
    return solution_shape(c, twi_merge_shapes);
}

static tw_status triangular_shape(twi_inference *c)
{
    return solution_shape(c, twi_broadcast_shapes);
}

/* Bands [..., k, n], the diagonal first of a lower triangle and last of an upper one; rhs [..., n, m] */
static tw_status banded_shape(twi_inference *c)
{
    tw_shape bands = c->inputs[0], rhs = c->inputs[1], batch, out = rhs;
    int64_t n;
    tw_status status = twi_expect_rank_at_least(c, 0, 2);
    if (status == TW_OK)
        status = twi_expect_rank_at_least(c, 1, 2);
    if (status != TW_OK || bands.rank < 0 || rhs.rank < 0)
        return status;
    if (bands.dims[bands.rank - 2] == 0)
        return TWI_REFUSE(c, "a matrix without bands, expected the diagonal at least");
    if (!twi_merge_dims(bands.dims[bands.rank - 1], rhs.dims[rhs.rank - 2], &n))
        return TWI_REFUSE(c, "%lld equations, but %lld right sides", (long long)bands.dims[bands.rank - 1],
                          (long long)rhs.dims[rhs.rank - 2]);
    bands.rank -= 2;
    rhs.rank -= 2;
    status = twi_broadcast_shapes(bands, rhs, &batch, c->error);
    if (status != TW_OK)
        return status;
    out.rank = batch.rank + 2;
    memcpy(out.dims, batch.dims, sizeof *out.dims * (size_t)batch.rank);
    out.dims[batch.rank] = n;
    out.dims[batch.rank + 1] = c->inputs[1].dims[c->inputs[1].rank - 1];
    c->outputs[0] = out;
    return TW_OK;
}

/* e [..., n], v [..., n, n] or nothing */
static tw_status eigen_shape(twi_inference *c)
{
    int64_t n;
    tw_status status = square(c, 0, &n);
    tw_shape out = c->inputs[0];
    bool computes = twi_attr_bool(c->attrs, "compute_v", true);
    c->outputs[1] = computes ? out : TW_SHAPE(0);
    if (status != TW_OK || out.rank < 0)
        return status;
    out.dims[out.rank - 2] = out.dims[out.rank - 1] = n;
    if (computes)
        c->outputs[1] = out;
    out.rank--;
    c->outputs[0] = out;
    return status;
}

static tw_status general_eigen_shape(twi_inference *c)
{
    tw_dtype given = c->input_types[0], gives = tw_dtype_is_complex(given) ? given : twi_complex_type(given);
    if (c->output_types[0] != gives)
        return TWI_REFUSE(c, "Tout is %s, expected %s of %s", tw_dtype_name(c->output_types[0]), tw_dtype_name(gives),
                          tw_dtype_name(given));
    return eigen_shape(c);
}

static int64_t shorter(int64_t rows, int64_t columns)
{
    return rows < 0 || columns < 0 ? -1 : rows < columns ? rows : columns;
}

/* q [..., m, p], r [..., p, n] */
static tw_status qr_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], q = in, r = in;
    tw_status status = twi_expect_rank_at_least(c, 0, 2);
    if (status != TW_OK || in.rank < 0)
        return status;
    int64_t m = in.dims[in.rank - 2], n = in.dims[in.rank - 1];
    int64_t p = twi_attr_bool(c->attrs, "full_matrices", false) ? m : shorter(m, n);
    q.dims[q.rank - 1] = r.dims[r.rank - 2] = p;
    c->outputs[0] = q;
    c->outputs[1] = r;
    return TW_OK;
}

/* s [..., p], u [..., m, p or m], v [..., n, p or n]; or s alone */
static tw_status svd_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], s = in, u = in, v = in;
    bool full = twi_attr_bool(c->attrs, "full_matrices", false), computes = twi_attr_bool(c->attrs, "compute_uv", true);
    tw_status status = twi_expect_rank_at_least(c, 0, 2);
    if (!computes)
        c->outputs[1] = c->outputs[2] = TW_SHAPE(0);
    if (status != TW_OK || in.rank < 0)
        return status;
    int64_t m = in.dims[in.rank - 2], n = in.dims[in.rank - 1], p = shorter(m, n);
    s.rank--;
    s.dims[s.rank - 1] = p;
    c->outputs[0] = s;
    if (!computes)
        return TW_OK;
    u.dims[u.rank - 1] = full ? m : p;
    v.dims[v.rank - 2] = n;
    v.dims[v.rank - 1] = full ? n : p;
    c->outputs[1] = u;
    c->outputs[2] = v;
    return TW_OK;
}

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

static tw_output product(twi_gradient *g, tw_output x, tw_output y, bool adjoint_x, bool adjoint_y)
{
    return tw_batch_matmul(G, x, y, adjoint_x, adjoint_y);
}

static tw_output solve(twi_gradient *g, tw_output triangle, tw_output b, bool lower, bool adjoint)
{
    return twi_build(G, "MatrixTriangularSolve", TWI_INPUTS(triangle, b),
                     TWI_ATTRS(tw_attr_bool("lower", lower), tw_attr_bool("adjoint", adjoint)));
}

static tw_output inverse(twi_gradient *g, tw_output a)
{
    return twi_build(G, "MatrixInverse", &a, 1, TWI_ATTRS(tw_attr_bool("adjoint", true)));
}

static tw_output band(twi_gradient *g, tw_output x, bool lower)
{
    tw_output all = tw_scalar_of(G, TW_INT64, -1), none = tw_scalar_of(G, TW_INT64, 0);
    return twi_build(G, "MatrixBandPart", TWI_INPUTS(x, lower ? all : none, lower ? none : all), TWI_NO_ATTRS);
}

/* The last two axes exchanged; `op`: Transpose or ConjugateTranspose. */
static tw_output exchanged(twi_gradient *g, const char *op, tw_output x)
{
    int64_t axes[TW_MAX_RANK];
    int rank = x.node ? tw_output_shape(x).rank : -1;
    if (rank < 2) {
        twi_graph_fail(G, TW_UNIMPLEMENTED, "the gradient of %s '%s' needs a known rank", g->node->op->name,
                       g->node->name);
        return x;
    }
    for (int i = 0; i < rank; i++)
        axes[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return twi_build(G, op, TWI_INPUTS(x, twi_constant_ints(G, axes, rank)), TWI_NO_ATTRS);
}

static tw_output transposed(twi_gradient *g, tw_output x)
{
    return exchanged(g, "Transpose", x);
}

static tw_output adjoint(twi_gradient *g, tw_output x)
{
    bool complex = x.node && tw_dtype_is_complex(tw_output_dtype(x));
    return exchanged(g, complex ? "ConjugateTranspose" : "Transpose", x);
}

static void inverse_gradient(twi_gradient *g)
{
    bool adjoint = twi_attr_bool(&g->node->attrs, "adjoint", false);
    tw_output y = Y(0);
    tw_output inner = product(g, DY(0), y, adjoint, !adjoint);
    g->dx[0] = tw_neg(G, product(g, y, inner, !adjoint, false));
}

/* dy as factors of matrices. */
static tw_output of_matrices(twi_gradient *g, tw_output dy)
{
    return tw_expand_dims(G, tw_expand_dims(G, dy, -1), -1);
}

static void determinant_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, of_matrices(g, tw_mul(G, DY(0), Y(0))), inverse(g, X(0)));
}

static void log_determinant_gradient(twi_gradient *g)
{
    if (DY(1).node)
        g->dx[0] = tw_mul(G, of_matrices(g, DY(1)), inverse(g, X(0)));
}

static void cholesky_gradient(twi_gradient *g)
{
    tw_output l = Y(0), diagonal = twi_unary(g, "MatrixDiagPart", l);
    tw_output unit = twi_unary(g, "MatrixDiag", tw_ones_like(G, diagonal));
    tw_output inverse = solve(g, l, unit, true, false);
    tw_output middle = product(g, l, DY(0), true, false);
    tw_output half = tw_mul(G, twi_number_like(g, l, 0.5), twi_unary(g, "MatrixDiagPart", middle));
    middle = band(g, twi_binary(g, "MatrixSetDiag", middle, half), true);
    tw_output a = product(g, product(g, inverse, middle, true, false), inverse, false, false);
    g->dx[0] = tw_mul(G, tw_add(G, a, adjoint(g, a)), twi_number_like(g, l, 0.5));
}

/* a x = b: what b's gradient is, and a's. */
static void solve_gradients(twi_gradient *g, tw_output by_b)
{
    bool adjoint = twi_attr_bool(&g->node->attrs, "adjoint", false);
    tw_output by_a = adjoint ? product(g, Y(0), by_b, false, true) : product(g, by_b, Y(0), false, true);
    g->dx[0] = tw_neg(G, by_a);
    g->dx[1] = by_b;
}

static void solve_gradient(twi_gradient *g)
{
    bool adjoint = twi_attr_bool(&g->node->attrs, "adjoint", false);
    solve_gradients(g,
                    twi_build(G, "MatrixSolve", TWI_INPUTS(X(0), DY(0)), TWI_ATTRS(tw_attr_bool("adjoint", !adjoint))));
}

/* Sums over the matrices that each side was repeated for. */
static void give_repeated(twi_gradient *g)
{
    for (int i = 0; i < 2; i++)
        g->dx[i] = twi_unbroadcast_matrices(G, g->dx[i], X(i), X(1 - i));
}

static void triangular_gradient(twi_gradient *g)
{
    bool adjoint = twi_attr_bool(&g->node->attrs, "adjoint", false),
         lower = twi_attr_bool(&g->node->attrs, "lower", true);
    solve_gradients(g, solve(g, X(0), DY(0), lower, !adjoint));
    g->dx[0] = band(g, g->dx[0], lower);
    give_repeated(g);
}

static void banded_gradient(twi_gradient *g)
{
    bool adjoint = twi_attr_bool(&g->node->attrs, "adjoint", false),
         lower = twi_attr_bool(&g->node->attrs, "lower", true);
    tw_shape bands = tw_output_shape(X(0));
    int64_t count = bands.rank < 2 ? -1 : bands.dims[bands.rank - 2];
    if (count < 0) {
        twi_graph_fail(G, TW_UNIMPLEMENTED,
                       "the gradient of BandedTriangularSolve '%s' needs to know how many bands "
                       "there are",
                       g->node->name);
        return;
    }
    solve_gradients(g, twi_build(G, "BandedTriangularSolve", TWI_INPUTS(X(0), DY(0)),
                                 TWI_ATTRS(tw_attr_bool("lower", lower), tw_attr_bool("adjoint", !adjoint))));
    int64_t k[] = {lower ? 1 - count : 0, lower ? 0 : count - 1};
    g->dx[0] =
        twi_build(G, "MatrixDiagPartV3", TWI_INPUTS(g->dx[0], twi_constant_ints(G, k, 2), twi_number_like(g, X(0), 0)),
                  TWI_ATTRS(tw_attr_string("align", "LEFT_RIGHT")));
    give_repeated(g);
}

static tw_output or_zeros(twi_gradient *g, tw_output dy, tw_output like)
{
    return dy.node ? dy : tw_zeros_like(G, like);
}

static void eigen_gradient(twi_gradient *g)
{
    bool computes = twi_attr_bool(&g->node->attrs, "compute_v", true);
    tw_output x = X(0);
    tw_node *whole = computes ? g->node : tw_add_node(G, "SelfAdjointEigV2", NULL, &x, 1, NULL, 0);
    if (!whole)
        return;
    tw_output e = Y(0), v = {whole, 1}, de = or_zeros(g, DY(0), e),
              dv = or_zeros(g, computes ? DY(1) : (tw_output){0}, v);
    tw_output apart = tw_sub(G, tw_expand_dims(G, e, -2), tw_expand_dims(G, e, -1));
    tw_output f = twi_binary(g, "DivNoNan", tw_ones_like(G, apart), apart);
    f = twi_binary(g, "MatrixSetDiag", f, tw_zeros_like(G, e));
    tw_output middle = tw_add(G, twi_unary(g, "MatrixDiag", de), tw_mul(G, f, product(g, v, dv, true, false)));
    tw_output a = product(g, v, product(g, middle, v, false, true), false, false);
    a = band(g, tw_add(G, a, adjoint(g, a)), true);
    tw_output half = tw_mul(G, twi_number_like(g, a, 0.5), twi_unary(g, "MatrixDiagPart", a));
    g->dx[0] = twi_binary(g, "MatrixSetDiag", a, half);
}

/* 1 / x, and 0 where x is 0. */
static tw_output safe_reciprocal(twi_gradient *g, tw_output x)
{
    return twi_binary(g, "DivNoNan", tw_ones_like(G, x), x);
}

/* Columns from `begin` to before `end` of matrices. */
static tw_output columns(twi_gradient *g, tw_output x, int64_t begin, int64_t end)
{
    tw_strided_slice_options some = {.begin = TW_SHAPE(0, begin), .end = TW_SHAPE(0, end), .ellipsis_mask = 1};
    return tw_strided_slice(G, x, some);
}

/* What rotates singular vectors into each other: x^T dx over the differences of the squared values, and its
 * transpose. */
static tw_output rotation(twi_gradient *g, tw_output x, tw_output dx, tw_output apart)
{
    tw_output turned = tw_mul(G, apart, product(g, x, dx, true, false));
    return tw_add(G, turned, adjoint(g, turned));
}

/* Of a = u s v^T that is not higher than wide: by Giles and Townsend, as TensorFlow's. Of the wide v only the first
 * columns belong to values; `whole` says that the others are there. */
static tw_output wide_svd_gradient(twi_gradient *g, const tw_output x[3], const tw_output dx[3], int64_t m, int64_t n,
                                   bool whole)
{
    tw_output s = x[0], u = x[1], v = columns(g, x[2], 0, m), dv = columns(g, dx[2], 0, m);
    tw_output values = twi_unary(g, "MatrixDiag", s), squares = tw_square(G, s);
    tw_output apart = tw_sub(G, tw_expand_dims(G, squares, -2), tw_expand_dims(G, squares, -1));
    apart = twi_binary(g, "MatrixSetDiag", safe_reciprocal(g, apart), tw_zeros_like(G, s));
    tw_output inner = tw_add(G, twi_unary(g, "MatrixDiag", dx[0]),
                             tw_add(G, product(g, rotation(g, u, dx[1], apart), values, false, false),
                                    product(g, values, rotation(g, v, dv, apart), false, false)));
    tw_output sum = product(g, u, product(g, inner, v, false, true), false, false);
    if (m == n)
        return sum;
    tw_output rest = tw_sub(G, adjoint(g, dv), product(g, product(g, dv, v, true, false), v, false, true));
    if (whole) {
        tw_output v2 = columns(g, x[2], m, n), dv2 = columns(g, dx[2], m, n);
        rest = tw_sub(G, rest, product(g, product(g, v, dv2, true, false), v2, false, true));
    }
    tw_output over = product(g, u, twi_unary(g, "MatrixDiag", safe_reciprocal(g, s)), false, false);
    return tw_add(G, sum, product(g, over, rest, false, false));
}

/* Of complex vectors the phases are free, too: u (l^H - l) / 2s v^H, with l the diagonal of v^H dv. */
static tw_output phase_gradient(twi_gradient *g, const tw_output x[3], tw_output dv, int64_t m)
{
    tw_output v = columns(g, x[2], 0, m), turned = product(g, v, columns(g, dv, 0, m), true, false);
    tw_output l = twi_unary(g, "MatrixDiagPart", turned);
    tw_output twice = tw_mul(G, tw_sub(G, twi_unary(g, "Conj", l), l), safe_reciprocal(g, x[0]));
    tw_output middle = twi_unary(g, "MatrixDiag", tw_mul(G, twice, twi_number_like(g, l, 0.5)));
    return product(g, x[1], product(g, middle, v, false, true), false, false);
}

/* Of a that is not higher than wide. */
static tw_output svd_gradient_of(twi_gradient *g, const tw_output x[3], const tw_output dx[3], int64_t m, int64_t n,
                                 bool whole)
{
    tw_output da = wide_svd_gradient(g, x, dx, m, n, whole);
    return tw_dtype_is_complex(tw_output_dtype(X(0))) ? tw_add(G, da, phase_gradient(g, x, dx[2], m)) : da;
}

/* Of values alone: u ds v^T. */
static void values_gradient(twi_gradient *g)
{
    tw_output a = X(0);
    tw_node *svd = tw_add_node(G, "Svd", NULL, &a, 1, NULL, 0);
    if (!svd || !DY(0).node)
        return;
    tw_output right = product(g, twi_unary(g, "MatrixDiag", DY(0)), (tw_output){svd, 2}, false, true);
    g->dx[0] = product(g, (tw_output){svd, 1}, right, false, false);
}

static void svd_gradient(twi_gradient *g)
{
    tw_shape in = tw_output_shape(X(0));
    int64_t m = in.rank < 2 ? -1 : in.dims[in.rank - 2], n = in.rank < 2 ? -1 : in.dims[in.rank - 1];
    bool whole = twi_attr_bool(&g->node->attrs, "full_matrices", false);
    if (!twi_attr_bool(&g->node->attrs, "compute_uv", true)) {
        values_gradient(g);
        return;
    }
    if (m < 0 || n < 0 || (whole && (m - n > 1 || n - m > 1))) {
        twi_graph_fail(G, TW_UNIMPLEMENTED,
                       "the gradient of Svd '%s' is of matrices of known size, and with full_matrices of those that are at "
                       "most one longer one way than the other",
                       g->node->name);
        return;
    }
    tw_output dy[3];
    for (int i = 0; i < 3; i++)
        dy[i] = or_zeros(g, DY(i), Y(i));
    if (m <= n)
        g->dx[0] = svd_gradient_of(g, (tw_output[]){Y(0), Y(1), Y(2)}, dy, m, n, whole);
    else
        g->dx[0] = adjoint(
            g, svd_gradient_of(g, (tw_output[]){Y(0), Y(2), Y(1)}, (tw_output[]){dy[0], dy[2], dy[1]}, n, m, whole));
}

/* x r^-T, for the upper triangle r. */
static tw_output over_triangle(twi_gradient *g, tw_output x, tw_output r)
{
    return adjoint(g, solve(g, r, adjoint(g, x), false, false));
}

static void qr_gradient(twi_gradient *g)
{
    tw_shape in = tw_output_shape(X(0));
    if (in.rank < 2 || in.dims[in.rank - 2] < 0 || in.dims[in.rank - 2] < in.dims[in.rank - 1] ||
        (in.dims[in.rank - 2] != in.dims[in.rank - 1] && twi_attr_bool(&g->node->attrs, "full_matrices", false))) {
        twi_graph_fail(G, TW_UNIMPLEMENTED,
                       "the gradient of Qr '%s' is of matrices that are known not to be wider than high",
                       g->node->name);
        return;
    }
    tw_output q = Y(0), r = Y(1), dq = or_zeros(g, DY(0), q), dr = or_zeros(g, DY(1), r);
    tw_output qdq = product(g, q, dq, true, false), rdr = product(g, r, dr, false, true);
    tw_output both = tw_add(G, tw_sub(G, qdq, adjoint(g, qdq)), tw_sub(G, rdr, adjoint(g, rdr)));
    tw_output a = product(g, q, tw_add(G, dr, over_triangle(g, band(g, both, true), r)), false, false);
    tw_output b = over_triangle(g, tw_sub(G, dq, product(g, q, qdq, false, false)), r);
    g->dx[0] = tw_add(G, a, b);
    if (!tw_dtype_is_complex(tw_output_dtype(q)))
        return;
    /* the diagonal of r is real: what would turn it is taken back */
    tw_output diagonal = twi_unary(g, "MatrixDiagPart", tw_sub(G, rdr, adjoint(g, qdq)));
    tw_output half = twi_number_like(g, diagonal, 0.5);
    tw_output imaginary = tw_mul(G, tw_sub(G, diagonal, twi_unary(g, "Conj", diagonal)), half);
    tw_output correction = twi_unary(g, "MatrixDiag", imaginary);
    g->dx[0] = tw_add(G, g->dx[0], over_triangle(g, product(g, q, correction, false, true), r));
}

/* ---- least squares ----------------------------------------------------------------------------------------- */

/* x [n,k] of a [m,n] and b [m,k]. */
static tw_status least_squares_shape(twi_inference *c)
{
    tw_shape a = c->inputs[0], b = c->inputs[1], out = b, batch;
    tw_status status = twi_expect_rank_at_least(c, 0, 2);
    int64_t rows;
    if (status == TW_OK)
        status = twi_expect_rank_at_least(c, 1, 2);
    if (status == TW_OK)
        status = twi_expect_rank(c, 2, 0);
    if (status != TW_OK || a.rank < 0 || b.rank < 0)
        return status;
    if (!twi_merge_dims(a.dims[a.rank - 2], b.dims[b.rank - 2], &rows))
        return TWI_REFUSE(c, "%lld equations, but %lld right sides", (long long)a.dims[a.rank - 2],
                          (long long)b.dims[b.rank - 2]);
    out.dims[out.rank - 2] = a.dims[a.rank - 1];
    a.rank -= 2;
    b.rank -= 2;
    status = twi_merge_shapes(a, b, &batch, c->error);
    if (status != TW_OK)
        return status;
    memcpy(out.dims, batch.dims, sizeof *out.dims * (size_t)batch.rank);
    c->outputs[0] = out;
    return status;
}

/* (l l^H)^-1 b */
static tw_output solve_by_triangle(twi_gradient *g, tw_output l, tw_output b)
{
    return solve(g, l, solve(g, l, b, true, false), true, true);
}

/* By the normal equations, with TensorFlow's formulas. */
static void least_squares_gradient(twi_gradient *g)
{
    tw_output a = X(0), b = X(1), x = Y(0);
    tw_shape shape = tw_output_shape(a);
    int64_t m = shape.rank < 2 ? -1 : shape.dims[shape.rank - 2], n = shape.rank < 2 ? -1 : shape.dims[shape.rank - 1];
    if (m < 0 || n < 0 || !twi_attr_bool(&g->node->attrs, "fast", true)) {
        twi_graph_fail(G, TW_UNIMPLEMENTED,
                       "the gradient of MatrixSolveLs '%s' is of matrices of known size and with fast", g->node->name);
        return;
    }
    bool high = m >= n;
    tw_output square = product(g, a, a, high, !high);
    tw_output ones = tw_ones_like(G, twi_unary(g, "MatrixDiagPart", square));
    tw_output regularizer = tw_cast(G, X(2), tw_output_dtype(a));
    square = tw_add(G, square, tw_mul(G, twi_unary(g, "MatrixDiag", ones), regularizer));
    tw_output l = twi_unary(g, "Cholesky", square);
    if (high) {
        tw_output z = solve_by_triangle(g, l, DY(0)), xz = product(g, x, z, false, true);
        tw_output both = tw_add(G, xz, transposed(g, xz)); /* of complex numbers, too: as TensorFlow has it */
        g->dx[0] = tw_sub(G, product(g, b, z, false, true), product(g, a, both, false, false));
        g->dx[1] = product(g, a, z, false, false);
        return;
    }
    tw_output db = solve_by_triangle(g, l, product(g, a, DY(0), false, false)), y = solve_by_triangle(g, l, b);
    tw_output first = product(g, db, product(g, y, a, true, false), false, false);
    tw_output rest = tw_sub(G, DY(0), product(g, a, db, true, false));
    g->dx[0] = tw_sub(G, product(g, y, rest, false, true), first);
    g->dx[1] = db;
}

/* ---- eigenvalues of any matrices, and roots ---------------------------------------------------------------- */

/* By Boeddeker and others, https://arxiv.org/abs/1701.00392, as TensorFlow has it: of values that differ. */
static void eig_gradient(twi_gradient *g)
{
    tw_output x = X(0), e = Y(0);
    bool computes = twi_attr_bool(&g->node->attrs, "compute_v", true);
    tw_dtype dtype = tw_output_dtype(e), given = tw_output_dtype(x);
    tw_node *whole = g->node;
    if (!computes)
        whole = tw_add_node(G, "Eig", NULL, &x, 1, TWI_ATTRS(tw_attr_type("Tout", dtype)));
    if (!whole)
        return;
    tw_output v = {whole, 1}, middle = twi_unary(g, "MatrixDiag", or_zeros(g, DY(0), e));
    if (computes && DY(1).node) {
        tw_output apart = tw_sub(G, tw_expand_dims(G, e, -2), tw_expand_dims(G, e, -1));
        tw_output f = twi_binary(g, "MatrixSetDiag", safe_reciprocal(g, apart), tw_zeros_like(G, e));
        tw_output along = product(g, v, DY(1), true, false);
        tw_output real = twi_build(G, "Real", TWI_INPUTS(twi_unary(g, "MatrixDiagPart", along)),
                                   TWI_ATTRS(tw_attr_type("Tout", twi_part_type(dtype))));
        tw_output length = product(g, product(g, v, v, true, false),
                                   twi_unary(g, "MatrixDiag", tw_cast(G, real, dtype)), false, false);
        middle = tw_add(G, middle, tw_mul(G, twi_unary(g, "Conj", f), tw_sub(G, along, length)));
    }
    tw_output a = twi_build(G, "MatrixSolve", TWI_INPUTS(v, product(g, middle, v, false, true)),
                            TWI_ATTRS(tw_attr_bool("adjoint", true)));
    bool real = !tw_dtype_is_complex(given);
    g->dx[0] = real ? twi_build(G, "Real", TWI_INPUTS(a), TWI_ATTRS(tw_attr_type("Tout", given))) : a;
}

/* Each element of a times all of b, as a matrix [batch, n * n, n * n]. */
static tw_output kronecker(twi_gradient *g, tw_output a, tw_output b, int64_t n)
{
    tw_output each = tw_mul(G, tw_reshape(G, a, TW_SHAPE(-1, n, 1, n, 1)), tw_reshape(G, b, TW_SHAPE(-1, 1, n, 1, n)));
    return tw_reshape(G, each, TW_SHAPE(-1, n * n, n * n));
}

/* dx with y^T dx + dx y^T = dy, as TensorFlow has it of complex numbers, too: one system of n * n equations. */
static void root_gradient(twi_gradient *g)
{
    tw_output y = Y(0);
    tw_shape shape = tw_output_shape(y);
    int64_t n = shape.rank < 2 ? -1 : shape.dims[shape.rank - 1];
    if (n < 1) {
        twi_graph_fail(G, TW_UNIMPLEMENTED, "the gradient of MatrixSquareRoot '%s' is of matrices of known size",
                       g->node->name);
        return;
    }
    tw_output ones = tw_fill(G, twi_constant_ints(G, &n, 1), twi_number_like(g, y, 1));
    tw_output unit = twi_unary(g, "MatrixDiag", ones);
    tw_output system = tw_add(G, kronecker(g, unit, transposed(g, y), n), kronecker(g, y, unit, n));
    tw_output columns = tw_reshape(G, transposed(g, DY(0)), TW_SHAPE(-1, n * n, 1));
    tw_output solved = twi_build(G, "MatrixSolve", TWI_INPUTS(system, columns), TWI_NO_ATTRS);
    g->dx[0] = transposed(g, twi_binary(g, "Reshape", solved, twi_shape_tensor(G, y)));
}

/* ---- three diagonals --------------------------------------------------------------------------------------- */

/* From `begin` to before `end`, or to the end where that is 0, along the last axis but one, or the last. */
static tw_output cut_out(twi_gradient *g, tw_output x, bool rows, int64_t begin, int64_t end)
{
    int whole = rows ? 4 : 0;
    tw_strided_slice_options some = {.begin = rows ? TW_SHAPE(0, begin, 0) : TW_SHAPE(0, begin),
                                     .end = rows ? TW_SHAPE(0, end, 0) : TW_SHAPE(0, end),
                                     .ellipsis_mask = 1,
                                     .begin_mask = whole,
                                     .end_mask = whole | (end ? 0 : 2)};
    return tw_strided_slice(G, x, some);
}

/* Everything one place nearer to the beginning, or further from it; a zero comes in. */
static tw_output moved(twi_gradient *g, tw_output x, bool rows, bool back)
{
    tw_output zero = tw_zeros_like(G, cut_out(g, x, rows, 0, 1));
    tw_output rest = back ? cut_out(g, x, rows, 1, 0) : cut_out(g, x, rows, 0, -1);
    tw_output both[] = {back ? rest : zero, back ? zero : rest};
    return tw_concat(G, both, 2, rows ? -2 : -1);
}

/* What dy [..., n, k] and x give to the diagonals, each [..., 1, n]: above, on and below the main one. */
static void of_diagonals(twi_gradient *g, tw_output dy, tw_output x, tw_output made[3])
{
    for (int i = 0; i < 3; i++) {
        tw_output beside = i == 1 ? x : moved(g, x, true, i == 0);
        made[i] = tw_expand_dims(G, tw_reduce_sum(G, tw_mul(G, dy, beside), TW_AXES(-1), false), -2);
    }
}

/* By the transposed matrix, without conjugates, as TensorFlow has it. */
static void tridiagonal_gradient(twi_gradient *g)
{
    tw_output parts[3];
    for (int i = 0; i < 3; i++)
        parts[2 - i] = cut_out(g, X(0), true, i, i + 1);
    parts[0] = moved(g, parts[0], false, true);
    parts[2] = moved(g, parts[2], false, false);
    g->dx[1] = twi_build_like(g->node, "TridiagonalSolve", TWI_INPUTS(tw_concat(G, parts, 3, -2), DY(0)));
    of_diagonals(g, g->dx[1], Y(0), parts);
    g->dx[0] = tw_neg(G, tw_concat(G, parts, 3, -2));
}

static void tridiagonal_product_gradient(twi_gradient *g)
{
    tw_output x = X(3), sum = tw_mul(G, adjoint(g, X(1)), DY(0));
    if (x.node && tw_dtype_is_complex(tw_output_dtype(x)))
        x = twi_unary(g, "Conj", x);
    of_diagonals(g, DY(0), x, g->dx);
    for (int i = 0; i < 3; i += 2)
        sum = tw_add(G, sum, moved(g, tw_mul(G, adjoint(g, X(i)), DY(0)), true, i == 2));
    g->dx[3] = sum;
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

/* a x b of vectors of three numbers, which lie along the last axis. */
static tw_status cross_shape(twi_inference *c)
{
    tw_status status = twi_merge_shapes(c->inputs[0], c->inputs[1], &c->outputs[0], c->error);
    tw_shape out = c->outputs[0];
    if (status == TW_OK && out.rank == 0)
        return TWI_REFUSE(c, "input must be at least 1D");
    if (status == TW_OK && out.rank > 0 && out.dims[out.rank - 1] >= 0 && out.dims[out.rank - 1] != 3)
        return TWI_REFUSE(c, "vectors of %lld numbers, expected 3", (long long)out.dims[out.rank - 1]);
    return status;
}

static void cross_gradient(twi_gradient *g)
{
    g->dx[0] = twi_binary(g, "Cross", X(1), DY(0));
    g->dx[1] = twi_binary(g, "Cross", DY(0), X(0));
}

/* The last inputs' matrices [...,n,k] times, or solved for, matrices of three diagonals: one input [...,3,n], or three
 * [...,1,n]. */
static tw_status tridiagonal_shape(twi_inference *c)
{
    int last = c->num_inputs - 1;
    int64_t diagonals = last == 1 ? 3 : 1;
    tw_shape rhs = c->inputs[last];
    tw_status status = twi_expect_rank_at_least(c, last, 2);
    if (twi_attr_bool(c->attrs, "perturb_singular", false))
        return twi_fail(c->error, TW_UNIMPLEMENTED, "attribute 'perturb_singular' is true");
    for (int i = 0; i < last && status == TW_OK; i++) {
        tw_shape given = c->inputs[i], wanted = rhs;
        if (rhs.rank >= 2) {
            wanted.dims[rhs.rank - 2] = diagonals;
            wanted.dims[rhs.rank - 1] = rhs.dims[rhs.rank - 2];
        }
        if (rhs.rank >= 2 && !tw_shape_compatible(given, wanted)) {
            char a[128], b[128];
            return TWI_REFUSE(c, "input %d has shape %s, expected %s", i, tw_shape_text(given, a, sizeof a),
                              tw_shape_text(wanted, b, sizeof b));
        }
    }
    c->outputs[0] = rhs;
    return status;
}

#define FIELD "{double,float,half," TWI_COMPLEX "}"

const twi_op twi_linear_ops[] = {
    {"MatrixInverse", "input:T", "output:T", "adjoint:bool=false; T:" FIELD, square_shape, inverse_gradient},
    {"MatrixDeterminant", "input:T", "output:T", "T:" FIELD, determinant_shape, determinant_gradient},
    {"LogMatrixDeterminant", "input:T", "sign:T, log_abs_determinant:T", "T:" FIELD, determinant_shape,
     log_determinant_gradient},
    {"Cholesky", "input:T", "output:T", "T:" FIELD, square_shape, cholesky_gradient},
    {"Lu", "input:T", "lu:T, p:output_idx_type", "T:" FIELD "; output_idx_type:{int32,int64}=int32", lu_shape, NULL,
     TWI_HOST_ONLY},
    {"CholeskyGrad", "l:T, grad:T", "output:T", "T:{double,float,half}", square_shape, NULL},
    {"MatrixSolve", "matrix:T, rhs:T", "output:T", "adjoint:bool=false; T:" FIELD, solve_shape, solve_gradient},
    {"MatrixSolveLs", "matrix:T, rhs:T, l2_regularizer:double", "output:T",
     "T:{double,float," TWI_COMPLEX "}; fast:bool=true", least_squares_shape, least_squares_gradient},
    {"MatrixTriangularSolve", "matrix:T, rhs:T", "output:T",
     "lower:bool=true; adjoint:bool=false; T:{bfloat16,double,float,half," TWI_COMPLEX "}", triangular_shape,
     triangular_gradient},
    {"BandedTriangularSolve", "matrix:T, rhs:T", "output:T", "lower:bool=true; adjoint:bool=false; T:" FIELD,
     banded_shape, banded_gradient, TWI_HOST_ONLY},
    {"SelfAdjointEigV2", "input:T", "e:T, v:T", "compute_v:bool=true; T:" FIELD, eigen_shape, eigen_gradient},
    {"Eig", "input:T", "e:Tout, v:Tout",
     "compute_v:bool=true; T:{float,double," TWI_COMPLEX "}; Tout:{" TWI_COMPLEX "}", general_eigen_shape, eig_gradient,
     TWI_HOST_ONLY},
    {"MatrixSquareRoot", "input:T", "output:T", "T:" FIELD, square_shape, root_gradient, TWI_HOST_ONLY},
    {"MatrixLogarithm", "input:T", "output:T", "T:{" TWI_COMPLEX "}", square_shape, NULL, TWI_HOST_ONLY},
    {"Qr", "input:T", "q:T, r:T", "full_matrices:bool=false; T:" FIELD, qr_shape, qr_gradient},
    {"Svd", "input:T", "s:T, u:T, v:T", "compute_uv:bool=true; full_matrices:bool=false; T:" FIELD, svd_shape,
     svd_gradient},
    {"TridiagonalSolve", "diagonals:T, rhs:T", "output:T",
     "partial_pivoting:bool=true; perturb_singular:bool=false; T:{double,float," TWI_COMPLEX "}", tridiagonal_shape,
     tridiagonal_gradient, TWI_HOST_ONLY},
    {"TridiagonalMatMul", "superdiag:T, maindiag:T, subdiag:T, rhs:T", "output:T", "T:{double,float," TWI_COMPLEX "}",
     tridiagonal_shape, tridiagonal_product_gradient, TWI_HOST_ONLY},
    {"Cross", "a:T, b:T", "product:T", "T:{" TWI_REALS "}", cross_shape, cross_gradient},
    {0},
};
