/* linear.c - linear algebra on matrices, one after the other, in double: by Gauss's elimination with pivots, Cholesky's
 * and Householder's decompositions and Jacobi's rotations. For the sizes that models have them in; large ones are slow.
 */
#include "base/memory.h"
#include "device/cpu/plain/typed.h"

#include <math.h>

enum { ADJOINT = 1, UPPER = 2, FULL = 4, VALUES_ONLY = 8 };

/* Of a node: its attributes and the sizes of its matrices. */
typedef struct linear {
    int flags;
    int64_t rows, columns, batches;
} linear;

/* ---- matrices in double ------------------------------------------------------------------------------------------ */

/* Matrix number b of an operand. */
static void load(const twi_operand *operand, const void *data, int64_t b, int64_t rows, int64_t columns,
                 bool transposes, double *to)
{
    for (int64_t i = 0; i < rows * columns; i++) {
        int64_t at = b * rows * columns + i, place = transposes ? i % columns * rows + i / columns : i;
        to[place] = operand->dtype == TW_FLOAT64    ? ((const double *)data)[at]
                    : operand->dtype == TW_FLOAT16  ? (double)tw_half_to_float(((const uint16_t *)data)[at])
                    : operand->dtype == TW_BFLOAT16 ? (double)tw_bfloat16_to_float(((const uint16_t *)data)[at])
                                                    : (double)((const float *)data)[at];
    }
}

static void store(const twi_operand *operand, void *data, int64_t b, int64_t count, const double *from)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t at = b * count + i;
        if (operand->dtype == TW_FLOAT64)
            ((double *)data)[at] = from[i];
        else if (operand->dtype == TW_FLOAT16)
            ((uint16_t *)data)[at] = tw_float_to_half((float)from[i]);
        else if (operand->dtype == TW_BFLOAT16)
            ((uint16_t *)data)[at] = tw_float_to_bfloat16((float)from[i]);
        else
            ((float *)data)[at] = (float)from[i];
    }
}

static void set_unit(double *a, int64_t n)
{
    for (int64_t i = 0; i < n * n; i++)
        a[i] = i % (n + 1) == 0;
}

static void swap(double *a, double *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double x = a[i];
        a[i] = b[i];
        b[i] = x;
    }
}

/* ---- elimination ------------------------------------------------------------------------------------------------- */

/* a [n,n] becomes upper triangular, what is done to it is done to b [n,k]. Returns the sign of the exchanges; 0: some
 * pivot is zero. */
static int eliminate(double *a, int64_t n, double *b, int64_t k)
{
    int sign = 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t pivot = i;
        for (int64_t row = i + 1; row < n; row++)
            if (fabs(a[row * n + i]) > fabs(a[pivot * n + i]))
                pivot = row;
        if (!(fabs(a[pivot * n + i]) > 0))
            return 0;
        if (pivot != i) {
            swap(a + i * n, a + pivot * n, n);
            swap(b + i * k, b + pivot * k, k);
            sign = -sign;
        }
        for (int64_t row = i + 1; row < n; row++) {
            double factor = a[row * n + i] / a[i * n + i];
            for (int64_t column = i; column < n; column++)
                a[row * n + column] -= factor * a[i * n + column];
            for (int64_t column = 0; column < k; column++)
                b[row * k + column] -= factor * b[i * k + column];
        }
    }
    return sign;
}

/* Solves a x = b for a triangle a, in place of b. */
static void substitute(const double *a, int64_t n, bool upper, double *b, int64_t k)
{
    for (int64_t step = 0; step < n; step++) {
        int64_t i = upper ? n - 1 - step : step;
        for (int64_t column = 0; column < k; column++) {
            double sum = b[i * k + column];
            for (int64_t j = upper ? i + 1 : 0; j < (upper ? n : i); j++)
                sum -= a[i * n + j] * b[j * k + column];
            b[i * k + column] = sum / a[i * n + i];
        }
    }
}

static tw_status fail_singular(const twi_run *r)
{
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Input matrix is not invertible.", r->node);
}

static tw_status run_inverse(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows;
    double *a = r->workspace, *b = a + n * n;
    for (int64_t i = 0; i < s->batches; i++) {
        load(&r->input_operands[0], r->inputs[0], i, n, n, s->flags & ADJOINT, a);
        set_unit(b, n);
        if (!eliminate(a, n, b, n))
            return fail_singular(r);
        substitute(a, n, true, b, n);
        store(&r->output_operands[0], r->outputs[0], i, n * n, b);
    }
    return TW_OK;
}

static tw_status run_determinant(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows;
    double *a = r->workspace;
    for (int64_t i = 0; i < s->batches; i++) {
        load(&r->input_operands[0], r->inputs[0], i, n, n, false, a);
        double sign = eliminate(a, n, NULL, 0), log_size = sign != 0 ? 0 : -INFINITY, product = sign;
        for (int64_t k = 0; k < n && sign != 0; k++) {
            product *= a[k * n + k];
            log_size += log(fabs(a[k * n + k]));
        }
        sign = product > 0 ? 1 : product < 0 ? -1 : product;
        if (r->num_outputs == 1) {
            store(&r->output_operands[0], r->outputs[0], i, 1, &product);
        } else {
            store(&r->output_operands[0], r->outputs[0], i, 1, &sign);
            store(&r->output_operands[1], r->outputs[1], i, 1, &log_size);
        }
    }
    return TW_OK;
}

static tw_status run_solve(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows, k = s->columns;
    double *a = r->workspace, *b = a + n * n;
    for (int64_t i = 0; i < s->batches; i++) {
        load(&r->input_operands[0], r->inputs[0], i, n, n, s->flags & ADJOINT, a);
        load(&r->input_operands[1], r->inputs[1], i, n, k, false, b);
        if (!eliminate(a, n, b, k))
            return fail_singular(r);
        substitute(a, n, true, b, k);
        store(&r->output_operands[0], r->outputs[0], i, n * k, b);
    }
    return TW_OK;
}

static tw_status run_triangular(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows, k = s->columns;
    double *a = r->workspace, *b = a + n * n;
    bool upper = !(s->flags & UPPER) != !(s->flags & ADJOINT);
    for (int64_t i = 0; i < s->batches; i++) {
        load(&r->input_operands[0], r->inputs[0], i, n, n, s->flags & ADJOINT, a);
        load(&r->input_operands[1], r->inputs[1], i, n, k, false, b);
        for (int64_t j = 0; j < n; j++)
            if (!(fabs(a[j * n + j]) > 0))
                return fail_singular(r);
        substitute(a, n, upper, b, k);
        store(&r->output_operands[0], r->outputs[0], i, n * k, b);
    }
    return TW_OK;
}

/* ---- Cholesky ---------------------------------------------------------------------------------------------------- */

static tw_status run_cholesky(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows;
    double *a = r->workspace;
    for (int64_t b = 0; b < s->batches; b++) {
        load(&r->input_operands[0], r->inputs[0], b, n, n, false, a);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = a[i * n + j];
                for (int64_t k = 0; k < j && j <= i; k++)
                    sum -= a[i * n + k] * a[j * n + k];
                if (i == j && !(sum > 0))
                    return twi_fail(r->error, TW_INVALID_ARGUMENT,
                                    "'%s': Cholesky decomposition was not successful. The input might not be valid.",
                                    r->node);
                a[i * n + j] = j > i ? 0 : i == j ? sqrt(sum) : sum / a[j * n + j];
            }
        store(&r->output_operands[0], r->outputs[0], b, n * n, a);
    }
    return TW_OK;
}

/* l^-T phi(l^T dl) l^-1, made symmetric: phi takes the lower triangle and half of the diagonal. */
static tw_status run_cholesky_grad(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows;
    double *l = r->workspace, *dl = l + n * n, *middle = dl + n * n, *across = middle + n * n;
    for (int64_t b = 0; b < s->batches; b++) {
        load(&r->input_operands[0], r->inputs[0], b, n, n, true, l); /* upper: l^T */
        load(&r->input_operands[1], r->inputs[1], b, n, n, false, dl);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t k = i; k < n && j <= i; k++)
                    sum += l[i * n + k] * (k >= j ? dl[k * n + j] : 0);
                middle[i * n + j] = i == j ? sum / 2 : sum;
            }
        substitute(l, n, true, middle, n);
        for (int64_t i = 0; i < n * n; i++)
            across[i % n * n + i / n] = middle[i];
        substitute(l, n, true, across, n);
        for (int64_t i = 0; i < n * n; i++)
            middle[i] = (across[i] + across[i % n * n + i / n]) / 2;
        store(&r->output_operands[0], r->outputs[0], b, n * n, middle);
    }
    return TW_OK;
}

/* ---- Householder ------------------------------------------------------------------------------------------------- */

/* a [m,n] becomes r, the unit matrix q [m,m] the product of the reflections. */
static void reflect(double *a, int64_t m, int64_t n, double *q, double *v)
{
    set_unit(q, m);
    for (int64_t i = 0; i < n && i < m - 1; i++) {
        double norm = 0, dot, square = 0;
        for (int64_t k = i; k < m; k++)
            norm += a[k * n + i] * a[k * n + i];
        double tail = norm - a[i * n + i] * a[i * n + i];
        if (!(tail > 0))
            continue; /* there is nothing below */
        norm = a[i * n + i] >= 0 ? -sqrt(norm) : sqrt(norm);
        for (int64_t k = i; k < m; k++) {
            v[k] = a[k * n + i] - (k == i ? norm : 0);
            square += v[k] * v[k];
        }
        for (int64_t column = i; column < n; column++) {
            dot = 0;
            for (int64_t k = i; k < m; k++)
                dot += v[k] * a[k * n + column];
            for (int64_t k = i; k < m; k++)
                a[k * n + column] -= 2 * dot / square * v[k];
        }
        for (int64_t row = 0; row < m; row++) {
            dot = 0;
            for (int64_t k = i; k < m; k++)
                dot += q[row * m + k] * v[k];
            for (int64_t k = i; k < m; k++)
                q[row * m + k] -= 2 * dot / square * v[k];
        }
        for (int64_t k = i + 1; k < m; k++)
            a[k * n + i] = 0;
    }
}

static tw_status run_qr(const twi_run *r)
{
    const linear *s = r->state;
    int64_t m = s->rows, n = s->columns, p = s->flags & FULL || m < n ? m : n;
    double *a = r->workspace, *q = a + m * n, *v = q + m * m, *part = v + m;
    for (int64_t b = 0; b < s->batches; b++) {
        load(&r->input_operands[0], r->inputs[0], b, m, n, false, a);
        reflect(a, m, n, q, v);
        for (int64_t i = 0; i < m * p; i++)
            part[i] = q[i / p * m + i % p];
        store(&r->output_operands[0], r->outputs[0], b, m * p, part);
        store(&r->output_operands[1], r->outputs[1], b, p * n, a);
    }
    return TW_OK;
}

/* ---- Jacobi ------------------------------------------------------------------------------------------------------ */

enum { MOST_SWEEPS = 60 };

/* Rows i and k of a [count,n] turned by an angle. */
static void turn(double *a, int64_t n, int64_t i, int64_t k, double cosine, double sine)
{
    for (int64_t j = 0; j < n; j++) {
        double x = a[i * n + j], y = a[k * n + j];
        a[i * n + j] = cosine * x - sine * y;
        a[k * n + j] = sine * x + cosine * y;
    }
}

/* The angle that makes [x, z; z, y] diagonal. */
static void find_angle(double x, double y, double z, double *cosine, double *sine)
{
    double t = (y - x) / (2 * z);
    t = (t >= 0 ? 1 : -1) / (fabs(t) + sqrt(t * t + 1));
    *cosine = 1 / sqrt(t * t + 1);
    *sine = t * *cosine;
}

/* The symmetric a [n,n] becomes diagonal, the unit matrix v the eigenvectors, as rows. */
static void diagonalize(double *a, int64_t n, double *v)
{
    set_unit(v, n);
    for (int sweep = 0; sweep < MOST_SWEEPS; sweep++) {
        double off = 0, all = 0;
        for (int64_t i = 0; i < n * n; i++) {
            all += a[i] * a[i];
            off += i % (n + 1) ? a[i] * a[i] : 0;
        }
        if (!(off > all * 1e-34))
            return;
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = i + 1; k < n; k++) {
                double cosine, sine;
                if (a[i * n + k] == 0)
                    continue;
                find_angle(a[i * n + i], a[k * n + k], a[i * n + k], &cosine, &sine);
                turn(a, n, i, k, cosine, sine);
                for (int64_t j = 0; j < n; j++) { /* columns, too */
                    double x = a[j * n + i], y = a[j * n + k];
                    a[j * n + i] = cosine * x - sine * y;
                    a[j * n + k] = sine * x + cosine * y;
                }
                turn(v, n, i, k, cosine, sine);
            }
    }
}

static tw_status run_eigen(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows;
    double *a = r->workspace, *v = a + n * n, *e = v + n * n, *columns = a;
    for (int64_t b = 0; b < s->batches; b++) {
        load(&r->input_operands[0], r->inputs[0], b, n, n, false, a);
        for (int64_t i = 0; i < n; i++) /* the lower triangle counts */
            for (int64_t k = i + 1; k < n; k++)
                a[i * n + k] = a[k * n + i];
        diagonalize(a, n, v);
        for (int64_t i = 0; i < n; i++)
            e[i] = a[i * n + i];
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = i + 1; k < n; k++)
                if (e[k] < e[i]) {
                    swap(e + i, e + k, 1);
                    swap(v + i * n, v + k * n, n);
                }
        store(&r->output_operands[0], r->outputs[0], b, n, e);
        for (int64_t i = 0; i < n * n; i++)
            columns[i % n * n + i / n] = v[i];
        if (!(s->flags & VALUES_ONLY))
            store(&r->output_operands[1], r->outputs[1], b, n * n, columns);
    }
    return TW_OK;
}

/* Rows of a [p,m] are turned until they are orthogonal: their lengths are the singular values, and the turns, done to
 * the unit matrix v [p,p], the other side. Sorted, the greatest first; rows of a are then of length 1. */
static void orthogonalize(double *a, int64_t p, int64_t m, double *v, double *lengths)
{
    bool turned = true;
    set_unit(v, p);
    for (int sweep = 0; sweep < MOST_SWEEPS && turned; sweep++) {
        turned = false;
        for (int64_t i = 0; i < p; i++)
            for (int64_t k = i + 1; k < p; k++) {
                double x = 0, y = 0, z = 0, cosine, sine;
                for (int64_t j = 0; j < m; j++) {
                    x += a[i * m + j] * a[i * m + j];
                    y += a[k * m + j] * a[k * m + j];
                    z += a[i * m + j] * a[k * m + j];
                }
                if (!(fabs(z) > 1e-15 * sqrt(x * y)))
                    continue;
                find_angle(x, y, z, &cosine, &sine);
                turn(a, m, i, k, cosine, sine);
                turn(v, p, i, k, cosine, sine);
                turned = true;
            }
    }
    for (int64_t i = 0; i < p; i++) {
        double square = 0;
        for (int64_t j = 0; j < m; j++)
            square += a[i * m + j] * a[i * m + j];
        lengths[i] = sqrt(square);
    }
    for (int64_t i = 0; i < p; i++)
        for (int64_t k = i + 1; k < p; k++)
            if (lengths[k] > lengths[i]) {
                swap(lengths + i, lengths + k, 1);
                swap(a + i * m, a + k * m, m);
                swap(v + i * p, v + k * p, p);
            }
}

/* The first `count` rows of a, orthogonal vectors of length m, made unit vectors and columns of `to` [m,width]; where
 * they have no length, and behind them, any that are orthogonal to all before. */
static void complete(const double *a, const double *lengths, int64_t count, int64_t m, int64_t width, double *to)
{
    for (int64_t i = 0; i < width; i++) {
        bool given = i < count && lengths[i] > lengths[0] * 1e-14;
        for (int64_t j = 0; j < m && given; j++)
            to[j * width + i] = a[i * m + j] / lengths[i];
        double best = given ? 1 : 0;
        for (int64_t axis = 0; axis < m && best < 0.5 / sqrt((double)m); axis++) {
            for (int64_t j = 0; j < m; j++)
                to[j * width + i] = j == axis;
            for (int pass = 0; pass < 2; pass++)
                for (int64_t k = 0; k < i; k++) {
                    double dot = 0;
                    for (int64_t j = 0; j < m; j++)
                        dot += to[j * width + k] * to[j * width + i];
                    for (int64_t j = 0; j < m; j++)
                        to[j * width + i] -= dot * to[j * width + k];
                }
            best = 0;
            for (int64_t j = 0; j < m; j++)
                best += to[j * width + i] * to[j * width + i];
            best = sqrt(best);
            for (int64_t j = 0; j < m && best > 0; j++)
                to[j * width + i] /= best;
        }
    }
}

static tw_status run_svd(const twi_run *r)
{
    const linear *s = r->state;
    int64_t m = s->rows, n = s->columns, p = m < n ? m : n, longer = m < n ? n : m;
    bool wide = m < n, full = s->flags & FULL;
    double *a = r->workspace, *turns = a + m * n, *lengths = turns + p * p, *ones = lengths + p, *sides = ones + p;
    for (int64_t b = 0; b < s->batches; b++) {
        load(&r->input_operands[0], r->inputs[0], b, m, n, !wide, a); /* rows of the longer side */
        orthogonalize(a, p, longer, turns, lengths);
        store(&r->output_operands[0], r->outputs[0], b, p, lengths);
        if (s->flags & VALUES_ONLY)
            continue;
        for (int64_t i = 0; i < p; i++)
            ones[i] = 1;
        int64_t width = full ? longer : p;
        complete(a, lengths, p, longer, width, sides);
        store(&r->output_operands[wide ? 2 : 1], r->outputs[wide ? 2 : 1], b, longer * width, sides);
        complete(turns, ones, p, p, p, sides);
        store(&r->output_operands[wide ? 1 : 2], r->outputs[wide ? 1 : 2], b, p * p, sides);
    }
    return TW_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static tw_status prepare(twi_prepare *p)
{
    const twi_operand *last = &p->inputs[p->num_inputs - 1];
    int rank = last->shape.rank;
    linear s = {.rows = last->shape.dims[rank - 2], .columns = last->shape.dims[rank - 1], .batches = 1};
    bool idle = true; /* there may be many matrices of nothing */
    for (int i = 0; i < p->num_outputs; i++)
        idle = idle && p->outputs[i].elements == 0;
    for (int i = 0; i < rank - 2; i++)
        s.batches = idle ? 0 : s.batches * last->shape.dims[i];
    s.flags =
        (twi_attr_bool(p->attrs, "adjoint", false) ? ADJOINT : 0) |
        (twi_attr_bool(p->attrs, "lower", true) ? 0 : UPPER) |
        (twi_attr_bool(p->attrs, "full_matrices", false) ? FULL : 0) |
        (twi_attr_bool(p->attrs, "compute_v", true) && twi_attr_bool(p->attrs, "compute_uv", true) ? 0 : VALUES_ONLY);
    double most = (double)s.rows + (double)s.columns + 2;
    if (most > 1e4)
        return twi_fail(p->error, TW_RESOURCE_EXHAUSTED, "%s '%s': matrices of %lld x %lld are too large", p->op,
                        p->node, (long long)s.rows, (long long)s.columns);
    p->workspace = (size_t)(most * most * 3) * sizeof(double);
    return twi_keep(p, &s, sizeof s);
}

#define REALS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_FLOAT64) | TWI_TYPE(TW_FLOAT16))
#define LINEAR(op, run)                                                                                                \
    {                                                                                                                  \
        op, "plain", REALS, prepare, run, twi_free                                                                     \
    }

const twi_kernel twi_cpu_linear_kernels[] = {
    LINEAR("MatrixInverse", run_inverse),
    LINEAR("MatrixDeterminant", run_determinant),
    LINEAR("LogMatrixDeterminant", run_determinant),
    LINEAR("Cholesky", run_cholesky),
    LINEAR("CholeskyGrad", run_cholesky_grad),
    LINEAR("MatrixSolve", run_solve),
    {"MatrixTriangularSolve", "plain", TWI_FLOAT_TYPES, prepare, run_triangular, twi_free},
    LINEAR("SelfAdjointEigV2", run_eigen),
    LINEAR("Qr", run_qr),
    LINEAR("Svd", run_svd),
    {0},
};
