/* linear.c - linear algebra on matrices, one after the other, in double or complex double: by Gauss's elimination with
 * pivots, Cholesky's decomposition and Householder's reflections, of which eigenvalues and singular values come by
 * rotations of a few diagonals. linear.inl has what is alike for real and complex numbers. */
#include "base/memory.h"
#include "device/cpu/plain/broadcast.h"
#include "device/cpu/plain/cmplx.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/products.h"
#include "device/cpu/plain/typed.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { ADJOINT = 1, UPPER = 2, FULL = 4, VALUES_ONLY = 8, SURE = 16 };

enum {
    SMALL = 8,   /* what is not halved */
    BLOCK = 32,  /* columns that are reflected together */
    SWEEPS = 60, /* for each value at most */
};

/* Of a node: its attributes and the sizes of its matrices. */
typedef struct linear {
    int flags;
    int64_t rows, columns, beside, batches; /* beside: columns of what is solved for */
    twi_broadcast walk;                     /* of triangles and what is solved for, which may be fewer than batches */
} linear;

/* Which matrix of either input is solved as number `batch`. */
static void find_pair(const linear *s, int64_t batch, int64_t *a, int64_t *b)
{
    int64_t within = batch % s->walk.run;
    twi_broadcast_start(&s->walk, batch / s->walk.run, a, b);
    *a += s->walk.x_moves ? within : 0;
    *b += s->walk.y_moves ? within : 0;
}

/* ---- diagonals -----------------------------------------------------------------------------------------------------
 */

/* The cosine and sine that turn (y, z) to (length, 0); returns the length. */
static double find_turn(double y, double z, double *cosine, double *sine)
{
    double length = hypot(y, z);
    *cosine = length > 0 ? y / length : 1;
    *sine = length > 0 ? z / length : 0;
    return length;
}

/* Rows i and k of vectors, if there are any: i becomes cosine i + sine k, k what is orthogonal to it. */
static void turn_rows(double *vectors, int64_t width, int64_t i, int64_t k, double cosine, double sine)
{
    if (vectors)
        twi_products_best()->turn(vectors + i * width, vectors + k * width, cosine, -sine, width);
}

/* One step of the implicit QL iteration on rows first to last of a symmetric matrix with diagonal d and beside it e. */
static void sweep_three(double *d, double *e, int64_t first, int64_t last, double *vectors, int64_t width)
{
    double apart = (d[first + 1] - d[first]) / (2 * e[first]), root = hypot(apart, 1);
    double at = d[last] - d[first] + e[first] / (apart + copysign(root, apart)), cosine = 1, sine = 1, shift = 0;
    for (int64_t i = last - 1; i >= first; i--) {
        double across = sine * e[i], along = cosine * e[i];
        double length = find_turn(at, across, &cosine, &sine);
        e[i + 1] = length;
        if (length == 0) { /* it falls apart here */
            d[i + 1] -= shift;
            e[last] = 0;
            return;
        }
        at = d[i + 1] - shift;
        double turned = (d[i] - at) * sine + 2 * cosine * along;
        shift = sine * turned;
        d[i + 1] = at + shift;
        at = cosine * turned - along;
        turn_rows(vectors, width, i + 1, i, cosine, sine);
    }
    d[first] -= shift;
    e[first] = at;
    e[last] = 0;
}

/* d [n] and beside it e become the eigenvalues; rows of vectors are turned alike. */
static void diagonalize_three(double *d, double *e, int64_t n, double *vectors, int64_t width)
{
    if (n > 0)
        e[n - 1] = 0;
    for (int64_t first = 0; first < n; first++)
        for (int sweep = 0; sweep < SWEEPS; sweep++) {
            int64_t last = first;
            while (last < n - 1 && fabs(e[last]) > DBL_EPSILON * (fabs(d[last]) + fabs(d[last + 1])))
                last++;
            if (last == first)
                break;
            sweep_three(d, e, first, last, vectors, width);
        }
}

/* The singular vectors that are turned, as rows; NULL: none. */
typedef struct sides {
    double *u, *v;
    int64_t u_width, v_width;
} sides;

/* d[zero] is 0: e[zero], beside it, becomes 0, too, and so does e[last - 1] if it is the last. */
static void split(double *d, double *e, int64_t first, int64_t last, int64_t zero, const sides *s)
{
    double cosine, sine, rest;
    d[zero] = 0;
    if (zero < last) {
        rest = e[zero];
        e[zero] = 0;
        for (int64_t j = zero + 1; j <= last; j++) {
            d[j] = find_turn(d[j], rest, &cosine, &sine);
            rest = j < last ? -sine * e[j] : 0;
            if (j < last)
                e[j] *= cosine;
            turn_rows(s->u, s->u_width, j, zero, cosine, sine);
        }
        return;
    }
    rest = e[last - 1];
    e[last - 1] = 0;
    for (int64_t j = last - 1; j >= first; j--) {
        d[j] = find_turn(d[j], rest, &cosine, &sine);
        rest = j > first ? -sine * e[j - 1] : 0;
        if (j > first)
            e[j - 1] *= cosine;
        turn_rows(s->v, s->v_width, j, last, cosine, sine);
    }
}

/* One step of Golub's and Kahan's iteration on rows first to last of a matrix with diagonal d and e above it, with the
 * shift that Wilkinson chose. */
static void sweep_two(double *d, double *e, int64_t first, int64_t last, const sides *s)
{
    double above = last - 1 > first ? e[last - 2] : 0, cosine, sine;
    double a = d[last - 1] * d[last - 1] + above * above, b = d[last - 1] * e[last - 1];
    double c = d[last] * d[last] + e[last - 1] * e[last - 1], half = (a - c) / 2;
    double root = half + copysign(hypot(half, b), half), shift = root != 0 ? c - b * b / root : c;
    double y = d[first] * d[first] - shift, z = d[first] * e[first];
    for (int64_t k = first; k < last; k++) {
        double length = find_turn(y, z, &cosine, &sine);
        if (k > first)
            e[k - 1] = length;
        y = cosine * d[k] + sine * e[k];
        e[k] = cosine * e[k] - sine * d[k];
        z = sine * d[k + 1];
        d[k + 1] *= cosine;
        turn_rows(s->v, s->v_width, k, k + 1, cosine, sine);
        d[k] = find_turn(y, z, &cosine, &sine);
        y = cosine * e[k] + sine * d[k + 1];
        d[k + 1] = cosine * d[k + 1] - sine * e[k];
        e[k] = y;
        if (k + 1 < last) {
            z = sine * e[k + 1];
            e[k + 1] *= cosine;
        }
        turn_rows(s->u, s->u_width, k, k + 1, cosine, sine);
    }
}

/* d [n] and above it e become the singular values, perhaps negative; rows of u and v are turned alike. */
static void diagonalize_two(double *d, double *e, int64_t n, double *u, int64_t u_width, double *v, int64_t v_width)
{
    const sides s = {u, v, u_width, v_width};
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fmax(fabs(d[i]), i < n - 1 ? fabs(e[i]) : 0));
    if (!(largest > 0 && largest < INFINITY))
        return;
    for (int64_t i = 0; i < n; i++) { /* what is squared should not overflow */
        d[i] /= largest;
        e[i] = i < n - 1 ? e[i] / largest : 0;
    }
    int64_t steps = SWEEPS * n;
    for (int64_t last = n - 1; last > 0 && steps > 0; steps--) {
        int64_t first = last, zero = -1;
        while (first > 0 && fabs(e[first - 1]) > DBL_EPSILON * (fabs(d[first - 1]) + fabs(d[first])))
            first--;
        if (first > 0)
            e[first - 1] = 0;
        for (int64_t i = first; i <= last && first < last; i++)
            zero = fabs(d[i]) <= DBL_EPSILON * DBL_EPSILON ? i : zero;
        if (first == last)
            last--;
        else if (zero >= 0)
            split(d, e, first, last, zero, &s);
        else
            sweep_two(d, e, first, last, &s);
    }
    for (int64_t i = 0; i < n; i++)
        d[i] *= largest;
}

/* ---- both kinds of numbers -----------------------------------------------------------------------------------------
 */

/* Room for the scratch of a decomposition, in numbers. */
static int64_t room_for(int64_t most)
{
    return most * most + 2 * BLOCK * most + BLOCK * BLOCK + BLOCK * most + 6 * most;
}

#define NUMBER double
#define NAME(f) f##_real
#define CONJUGATE(x) (x)
#define PART(x) (x)
#define SIZE(x) fabs(x)
#define SQUARE(x) ((x) * (x))
#define subtract_real twi_products_best()->subtract
#define dot_real twi_products_best()->dot
#define dot_plain_real twi_products_best()->dot
#define add_real twi_products_best()->add
#define add_two_real twi_products_best()->add_two
#include "device/cpu/plain/linear.inl"
#include "device/cpu/plain/linear_run.inl"
#undef NUMBER
#undef NAME
#undef CONJUGATE
#undef PART
#undef SIZE
#undef SQUARE

/* The same loops in complex numbers, as they are said; products.h explains them. `dot` conjugates x. */

static void subtract_complex(double _Complex *c, int64_t lc, const double _Complex *a, int64_t la,
                             const double _Complex *b, int64_t lb, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++) {
            double x = creal(a[i * la + l]), y = cimag(a[i * la + l]);
            const double *from = (const double *)(b + l * lb);
            double *to = (double *)(c + i * lc);
            for (int64_t j = 0; j < n; j++) {
                to[2 * j] -= x * from[2 * j] - y * from[2 * j + 1];
                to[2 * j + 1] -= x * from[2 * j + 1] + y * from[2 * j];
            }
        }
}

static double _Complex dot_complex(const double _Complex *x, const double _Complex *y, int64_t n)
{
    double _Complex sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += conj(x[i]) * y[i];
    return sum;
}

static double _Complex dot_plain_complex(const double _Complex *x, const double _Complex *y, int64_t n)
{
    double _Complex sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static void add_complex(double _Complex *to, double _Complex factor, const double _Complex *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += factor * x[i];
}

static double _Complex add_two_complex(double _Complex *to, double _Complex f, const double _Complex *x,
                                       double _Complex g, const double _Complex *y, const double _Complex *z, int64_t n)
{
    double _Complex sum = 0;
    for (int64_t i = 0; i < n; i++) {
        to[i] += f * x[i] + g * y[i];
        sum += to[i] * z[i];
    }
    return sum;
}

#define NUMBER double _Complex
#define NAME(f) f##_complex
#define CONJUGATE(x) conj(x)
#define PART(x) creal(x)
#define SIZE(x) cabs(x)
#define SQUARE(x) (creal(x) * creal(x) + cimag(x) * cimag(x))
#include "device/cpu/plain/linear.inl"
#include "device/cpu/plain/linear_run.inl"
#include "device/cpu/plain/schur.inl"

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* What is solved for is beside the matrix, of any shape. */
static tw_status prepare(twi_prepare *p)
{
    const twi_operand *matrix = &p->inputs[0], *beside = &p->inputs[p->num_inputs > 1];
    int rank = matrix->shape.rank;
    linear s = {.rows = matrix->shape.dims[rank - 2],
                .columns = matrix->shape.dims[rank - 1],
                .beside = beside->shape.dims[beside->shape.rank - 1],
                .batches = 1};
    bool idle = true; /* there may be many matrices of nothing */
    for (int i = 0; i < p->num_outputs; i++)
        idle = idle && p->outputs[i].elements == 0;
    for (int i = 0; i < rank - 2; i++)
        s.batches = idle ? 0 : s.batches * matrix->shape.dims[i];
    s.flags =
        (twi_attr_bool(p->attrs, "adjoint", false) ? ADJOINT : 0) |
        (twi_attr_bool(p->attrs, "lower", true) ? 0 : UPPER) |
        (twi_attr_bool(p->attrs, "full_matrices", false) ? FULL : 0) |
        (twi_attr_bool(p->attrs, "fast", true) ? 0 : SURE) |
        (twi_attr_bool(p->attrs, "compute_v", true) && twi_attr_bool(p->attrs, "compute_uv", true) ? 0 : VALUES_ONLY);
    double rows = (double)s.rows, columns = (double)s.columns, most = fmax(rows, columns) + 1;
    if (most + (double)s.beside > 2e4)
        return twi_fail(p->error, TW_RESOURCE_EXHAUSTED, "%s '%s': matrices of %lld x %lld are too large", p->op,
                        p->node, (long long)s.rows, (long long)s.columns);
    size_t size = tw_dtype_is_complex(matrix->dtype) ? sizeof(double _Complex) : sizeof(double);
    p->workspace = size * (size_t)(5 * most * most + 2 * most * (double)s.beside + (double)room_for((int64_t)most));
    return twi_keep(p, &s, sizeof s);
}

/* The walk over pairs of matrices; returns how many there are. */
static int64_t pair(linear *s, const twi_prepare *p)
{
    tw_shape shapes[3] = {p->inputs[0].shape, p->inputs[1].shape, p->outputs[0].shape};
    if (p->outputs[0].elements == 0)
        return 0;
    for (int i = 0; i < 3; i++)
        shapes[i].rank -= 2;
    twi_broadcast_init(&s->walk, shapes[0], shapes[1], shapes[2]);
    return twi_elements_between(shapes[2], 0, shapes[2].rank);
}

static tw_status prepare_triangular(twi_prepare *p)
{
    tw_status status = prepare(p);
    if (status == TW_OK)
        ((linear *)p->state)->batches = pair(p->state, p);
    return status;
}

/* Bands are few and may be long. */
static tw_status prepare_banded(twi_prepare *p)
{
    tw_shape bands = p->inputs[0].shape, rhs = p->inputs[1].shape;
    linear s = {.rows = bands.dims[bands.rank - 2],
                .columns = bands.dims[bands.rank - 1],
                .beside = rhs.dims[rhs.rank - 1],
                .flags = (twi_attr_bool(p->attrs, "adjoint", false) ? ADJOINT : 0) |
                         (twi_attr_bool(p->attrs, "lower", true) ? 0 : UPPER)};
    size_t size = tw_dtype_is_complex(p->inputs[0].dtype) ? sizeof(double _Complex) : sizeof(double);
    s.batches = pair(&s, p);
    if (s.batches)
        p->workspace = size * (size_t)(s.rows * s.columns + s.columns * s.beside);
    return twi_keep(p, &s, sizeof s);
}

/* Its numbers are complex ones, whatever the matrix has. */
static tw_status prepare_schur(twi_prepare *p)
{
    tw_status status = prepare(p);
    if (status == TW_OK && !tw_dtype_is_complex(p->inputs[0].dtype))
        p->workspace *= 2;
    return status;
}

#define REALS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_FLOAT64) | TWI_TYPE(TW_FLOAT16))
#define LINEAR(op, run) LINEAR_AS(op, prepare, run)
#define LINEAR_AS(op, prepare, run)                                                                                    \
    {op, "plain", REALS, prepare, run##_real, twi_free},                                                               \
    {                                                                                                                  \
        op, "plain", TWI_COMPLEX_TYPES, prepare, run##_complex, twi_free                                               \
    }

const twi_kernel twi_cpu_linear_kernels[] = {
    LINEAR("MatrixInverse", run_inverse),
    LINEAR("MatrixDeterminant", run_determinant),
    LINEAR("LogMatrixDeterminant", run_determinant),
    LINEAR("Cholesky", run_cholesky),
    LINEAR("Lu", run_lu),
    {"CholeskyGrad", "plain", REALS, prepare, run_cholesky_grad_real, twi_free},
    LINEAR("MatrixSolve", run_solve),
    LINEAR("MatrixSolveLs", run_least_squares),
    {"MatrixTriangularSolve", "plain", TWI_FLOAT_TYPES, prepare_triangular, run_triangular_real, twi_free},
    {"MatrixTriangularSolve", "plain", TWI_COMPLEX_TYPES, prepare_triangular, run_triangular_complex, twi_free},
    LINEAR("SelfAdjointEigV2", run_eigen),
    {"Eig", "plain", TWI_FLOAT_TYPES | TWI_COMPLEX_TYPES, prepare_schur, run_eig, twi_free},
    {"MatrixSquareRoot", "plain", REALS | TWI_COMPLEX_TYPES, prepare_schur, run_root, twi_free},
    {"MatrixLogarithm", "plain", TWI_COMPLEX_TYPES, prepare, run_logarithm, twi_free},
    LINEAR_AS("BandedTriangularSolve", prepare_banded, run_banded),
    LINEAR("Qr", run_qr),
    LINEAR("Svd", run_svd),
    {0},
};
