/* linear_run.inl - the ops of linear algebra, for matrices of NUMBER; see linear.c. */

/* ---- matrices in double ------------------------------------------------------------------------------------------ */

static NUMBER NAME(number_at)(tw_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case TW_FLOAT16:
        return (double)tw_half_to_float(((const uint16_t *)data)[i]);
    case TW_BFLOAT16:
        return (double)tw_bfloat16_to_float(((const uint16_t *)data)[i]);
    case TW_FLOAT32:
        return (double)((const float *)data)[i];
    case TW_FLOAT64:
        return ((const double *)data)[i];
    case TW_COMPLEX64:
        return (NUMBER)((const float _Complex *)data)[i];
    default:
        return ((const NUMBER *)data)[i];
    }
}

static void NAME(put_number)(tw_dtype dtype, void *data, int64_t i, NUMBER x)
{
    switch (dtype) {
    case TW_FLOAT16:
        ((uint16_t *)data)[i] = tw_float_to_half((float)PART(x));
        break;
    case TW_BFLOAT16:
        ((uint16_t *)data)[i] = tw_float_to_bfloat16((float)PART(x));
        break;
    case TW_FLOAT32:
        ((float *)data)[i] = (float)PART(x);
        break;
    case TW_FLOAT64:
        ((double *)data)[i] = PART(x);
        break;
    case TW_COMPLEX64:
        ((float _Complex *)data)[i] = (float _Complex)x;
        break;
    default:
        ((NUMBER *)data)[i] = x;
    }
}

/* Matrix number b of an operand, or its adjoint. */
static void NAME(read)(const twi_run *r, int input, int64_t b, int64_t rows, int64_t columns, bool adjoint, NUMBER *to)
{
    tw_dtype dtype = r->input_operands[input].dtype;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            NUMBER x = NAME(number_at)(dtype, r->inputs[input], (b * rows + i) * columns + j);
            to[adjoint ? j * rows + i : i * columns + j] = adjoint ? CONJUGATE(x) : x;
        }
}

static void NAME(write)(const twi_run *r, int output, int64_t b, int64_t count, const NUMBER *from)
{
    for (int64_t i = 0; i < count; i++)
        NAME(put_number)(r->output_operands[output].dtype, r->outputs[output], b * count + i, from[i]);
}

static bool NAME(is_finite)(const NUMBER *a, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!(SIZE(a[i]) <= DBL_MAX))
            return false;
    return true;
}

static void NAME(fill_nan)(NUMBER *a, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        a[i] = NAN;
}

/* Rows of a [m,n] as columns. */
static void NAME(write_columns)(const twi_run *r, int output, int64_t b, int64_t m, int64_t n, const NUMBER *a)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            NAME(put_number)(r->output_operands[output].dtype, r->outputs[output], b * m * n + j * m + i, a[i * n + j]);
}

/* Of a complex decomposition, too, these are real, and written as the output has them. */
static void NAME(write_values)(const twi_run *r, int output, int64_t b, int64_t count, const double *from)
{
    for (int64_t i = 0; i < count; i++)
        NAME(put_number)(r->output_operands[output].dtype, r->outputs[output], b * count + i, from[i]);
}

/* ---- systems of equations ---------------------------------------------------------------------------------------- */

static tw_status NAME(fail_singular)(const twi_run *r)
{
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Input matrix is not invertible.", r->node);
}

static tw_status NAME(run_inverse)(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows;
    NUMBER *a = r->workspace, *b = a + n * n;
    for (int64_t i = 0; i < s->batches; i++) {
        NAME(read)(r, 0, i, n, n, s->flags & ADJOINT, a);
        NAME(set_unit)(b, n, n);
        if (!NAME(solve_any)(a, n, b, n, (int64_t *)(b + n * n)))
            return NAME(fail_singular)(r);
        NAME(write)(r, 0, i, n * n, b);
    }
    return TW_OK;
}

static tw_status NAME(run_determinant)(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows;
    NUMBER *a = r->workspace;
    int64_t *pivots = (int64_t *)(a + n * n);
    for (int64_t i = 0; i < s->batches; i++) {
        NAME(read)(r, 0, i, n, n, false, a);
        bool finite = NAME(is_finite)(a, n * n), some = NAME(factor)(a, n, n, n, pivots);
        NUMBER product = some || finite ? some : NAN, sign = product;
        double size = some ? 0 : finite ? -INFINITY : NAN;
        for (int64_t k = 0; k < n && some; k++) {
            NUMBER pivot = pivots[k] == k ? a[k * n + k] : -a[k * n + k];
            product *= pivot;
            sign *= pivot / SIZE(pivot);
            size += log(SIZE(pivot));
        }
        NAME(write)(r, 0, i, 1, r->num_outputs == 1 ? &product : &sign);
        if (r->num_outputs == 2)
            NAME(write_values)(r, 1, i, 1, &size);
    }
    return TW_OK;
}

static tw_status NAME(run_lu)(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows;
    NUMBER *a = r->workspace;
    int64_t *pivots = (int64_t *)(a + n * n), *from = pivots + n;
    bool wide = r->output_operands[1].dtype == TW_INT64;
    for (int64_t b = 0; b < s->batches; b++) {
        NAME(read)(r, 0, b, n, n, false, a);
        if (!NAME(factor_sure)(a, n, pivots))
            return NAME(fail_singular)(r);
        NAME(write)(r, 0, b, n * n, a);
        for (int64_t i = 0; i < n; i++)
            from[i] = i;
        for (int64_t i = 0; i < n; i++) {
            int64_t row = from[i];
            from[i] = from[pivots[i]];
            from[pivots[i]] = row;
        }
        for (int64_t i = 0; i < n; i++)
            if (wide)
                ((int64_t *)r->outputs[1])[b * n + i] = from[i];
            else
                ((int32_t *)r->outputs[1])[b * n + i] = (int32_t)from[i];
    }
    return TW_OK;
}

static tw_status NAME(run_solve)(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows, k = s->beside;
    NUMBER *a = r->workspace, *b = a + n * n;
    for (int64_t i = 0; i < s->batches; i++) {
        NAME(read)(r, 0, i, n, n, s->flags & ADJOINT, a);
        NAME(read)(r, 1, i, n, k, false, b);
        if (!NAME(solve_any)(a, n, b, k, (int64_t *)(b + n * k)))
            return NAME(fail_singular)(r);
        NAME(write)(r, 0, i, n * k, b);
    }
    return TW_OK;
}

static tw_status NAME(run_triangular)(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows, k = s->beside;
    NUMBER *a = r->workspace, *b = a + n * n;
    bool upper = !(s->flags & UPPER) != !(s->flags & ADJOINT);
    for (int64_t i = 0; i < s->batches; i++) {
        int64_t first, second;
        find_pair(s, i, &first, &second);
        NAME(read)(r, 0, first, n, n, s->flags & ADJOINT, a);
        NAME(read)(r, 1, second, n, k, false, b);
        NAME(solve)(upper, false, a, n, n, b, k, k);
        NAME(write)(r, 0, i, n * k, b);
    }
    return TW_OK;
}

/* A triangle of `bands` diagonals, each as long as the matrix, with its end or its beginning free. */
static tw_status NAME(run_banded)(const twi_run *r)
{
    const linear *s = r->state;
    int64_t bands = s->rows, n = s->columns, k = s->beside, most = bands - 1;
    bool upper = s->flags & UPPER, adjoint = s->flags & ADJOINT, downwards = upper == adjoint; /* the way of solving */
    NUMBER *a = r->workspace, *b = a + bands * n;
    for (int64_t at = 0; at < s->batches; at++) {
        int64_t first, second;
        find_pair(s, at, &first, &second);
        NAME(read)(r, 0, first, bands, n, false, a);
        NAME(read)(r, 1, second, n, k, false, b);
        for (int64_t step = 0; step < n; step++) {
            int64_t i = downwards ? step : n - 1 - step;
            for (int64_t apart = most < step ? most : step; apart >= 0; apart--) {
                int64_t other = downwards ? i - apart : i + apart, row = adjoint ? other : i;
                NUMBER factor = a[(upper ? most - apart : apart) * n + row];
                factor = adjoint ? CONJUGATE(factor) : factor;
                if (apart == 0 && !(SIZE(factor) > 0))
                    return NAME(fail_singular)(r);
                for (int64_t j = 0; j < k; j++)
                    b[i * k + j] = apart ? b[i * k + j] - factor * b[other * k + j] : b[i * k + j] / factor;
            }
        }
        NAME(write)(r, 0, at, n * k, b);
    }
    return TW_OK;
}

/* The x [n,k] of least length among those that bring a [m,n] x nearest to b [m,k]: by singular values. */
static void NAME(solve_nearest)(NUMBER *a, int64_t m, int64_t n, NUMBER *b, int64_t k, NUMBER *x, NUMBER *rest)
{
    int64_t p = m < n ? m : n, longer = m < n ? n : m;
    NUMBER *turned = rest, *u = turned + m * n, *v = u + p * longer, *tau = v + p * p;
    double *d = (double *)(tau + 2 * p);
    if (m < n)
        NAME(adjoint)(a, n, m, n, turned, m);
    else
        memcpy(turned, a, sizeof *a * (size_t)(m * n));
    NAME(decompose)(turned, longer, p, p, u, v, d, tau, tau + 4 * p);
    const NUMBER *left = m < n ? v : u, *right = m < n ? u : v; /* rows are vectors; those of a's columns and rows */
    for (int64_t i = 0; i < n * k; i++)
        x[i] = 0;
    for (int64_t i = 0; i < p && d[i] > (double)longer * DBL_EPSILON * d[0]; i++)
        for (int64_t j = 0; j < k; j++) {
            NUMBER along = 0;
            for (int64_t row = 0; row < m; row++)
                along += CONJUGATE(left[i * m + row]) * b[row * k + j];
            for (int64_t row = 0; row < n; row++)
                x[row * k + j] += right[i * n + row] * along / d[i];
        }
}

/* (a^H a + l)^-1 a^H b of a that is higher than wide, else a^H (a a^H + l)^-1 b. False: there is no inverse. */
static bool NAME(solve_normal)(NUMBER *a, int64_t m, int64_t n, double l, NUMBER *b, int64_t k, NUMBER *x, NUMBER *rest)
{
    int64_t p = m < n ? m : n;
    NUMBER *other = rest, *square = other + m * n, *right = square + p * p;
    NAME(adjoint)(a, n, m, n, other, m);
    for (int64_t i = 0; i < p * p; i++)
        square[i] = i % (p + 1) ? 0 : -l;
    for (int64_t i = 0; i < n * k; i++)
        x[i] = 0;
    if (m < n)
        NAME(subtract)(square, p, a, n, other, m, p, p, n);
    else
        NAME(subtract)(square, p, other, m, a, n, p, p, m);
    for (int64_t i = 0; i < p * p; i++)
        square[i] = -square[i];
    if (m >= n)
        NAME(subtract)(x, k, other, m, b, k, n, k, m);
    NUMBER *y = m < n ? b : x; /* the other way about, of x */
    if (!NAME(cholesky)(square, p, p, right))
        return false;
    NAME(solve)(false, false, square, p, p, y, k, k);
    NAME(adjoint)(square, p, p, p, right, p);
    NAME(solve)(true, false, right, p, p, y, k, k);
    if (m < n)
        NAME(subtract)(x, k, other, m, b, k, n, k, m);
    for (int64_t i = 0; i < n * k; i++)
        x[i] = -x[i];
    return true;
}

static tw_status NAME(run_least_squares)(const twi_run *r)
{
    const linear *s = r->state;
    int64_t m = s->rows, n = s->columns, k = s->beside;
    double l = *(const double *)r->inputs[2];
    NUMBER *a = r->workspace, *b = a + m * n, *x = b + m * k, *rest = x + n * k;
    for (int64_t i = 0; i < s->batches; i++) {
        NAME(read)(r, 0, i, m, n, false, a);
        NAME(read)(r, 1, i, m, k, false, b);
        if (s->flags & SURE && !NAME(is_finite)(a, m * n))
            NAME(fill_nan)(x, n * k);
        else if (s->flags & SURE)
            NAME(solve_nearest)(a, m, n, b, k, x, rest);
        else if (!NAME(solve_normal)(a, m, n, l, b, k, x, rest))
            return twi_fail(
                r->error, TW_INVALID_ARGUMENT,
                "'%s': Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a "
                "larger l2_regularizer > 0.",
                r->node);
        NAME(write)(r, 0, i, n * k, x);
    }
    return TW_OK;
}

/* ---- decompositions ---------------------------------------------------------------------------------------------- */

static tw_status NAME(run_cholesky)(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows;
    NUMBER *a = r->workspace;
    for (int64_t b = 0; b < s->batches; b++) {
        NAME(read)(r, 0, b, n, n, false, a);
        if (!NAME(cholesky)(a, n, n, a + n * n)) /* no error, as in TensorFlow 2: training goes on, and shows it */
            NAME(fill_nan)(a, n * n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i + 1; j < n; j++)
                a[i * n + j] = 0;
        NAME(write)(r, 0, b, n * n, a);
    }
    return TW_OK;
}

/* l^-H phi(l^H dl) l^-1, made Hermitian: phi takes the lower triangle and half of the diagonal. */
static __attribute__((unused)) tw_status NAME(run_cholesky_grad)(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows;
    NUMBER *l = r->workspace, *dl = l + n * n, *middle = dl + n * n, *across = middle + n * n;
    for (int64_t b = 0; b < s->batches; b++) {
        NAME(read)(r, 0, b, n, n, true, l); /* upper: l^H */
        NAME(read)(r, 1, b, n, n, false, dl);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                middle[i * n + j] = 0;
                l[i * n + j] = j < i ? 0 : l[i * n + j];
                dl[i * n + j] = j > i ? 0 : dl[i * n + j];
            }
        NAME(subtract)(middle, n, l, n, dl, n, n, n, n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                middle[i * n + j] = j > i ? 0 : i == j ? -middle[i * n + j] / 2 : -middle[i * n + j];
        NAME(solve)(true, false, l, n, n, middle, n, n);
        NAME(adjoint)(middle, n, n, n, across, n);
        NAME(solve)(true, false, l, n, n, across, n, n);
        NAME(adjoint)(across, n, n, n, middle, n);
        for (int64_t i = 0; i < n * n; i++)
            middle[i] = (across[i] + middle[i]) / 2;
        NAME(write)(r, 0, b, n * n, middle);
    }
    return TW_OK;
}

static tw_status NAME(run_qr)(const twi_run *r)
{
    const linear *s = r->state;
    int64_t m = s->rows, n = s->columns, p = s->flags & FULL || m < n ? m : n, count = m < n ? m : n;
    NUMBER *a = r->workspace, *q = a + m * n, *tau = q + m * p, *room = tau + m;
    for (int64_t b = 0; b < s->batches; b++) {
        NAME(read)(r, 0, b, m, n, false, a);
        NAME(triangularize)(a, m, n, tau, room);
        NAME(set_unit)(q, m, p);
        NAME(apply)(a, n, m, count, 0, tau, q, p, room);
        NAME(write)(r, 0, b, m * p, q);
        for (int64_t i = 0; i < p; i++)
            for (int64_t j = 0; j < i && j < n; j++)
                a[i * n + j] = 0;
        NAME(write)(r, 1, b, p * n, a);
    }
    return TW_OK;
}

static tw_status NAME(run_eigen)(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows;
    bool vectors = !(s->flags & VALUES_ONLY);
    NUMBER *a = r->workspace, *v = a + n * n, *tau = v + n * n, *room = tau + 3 * n;
    double *d = (double *)(tau + n);
    for (int64_t b = 0; b < s->batches; b++) {
        NAME(read)(r, 0, b, n, n, false, a);
        for (int64_t i = 0; i < n; i++) /* the lower triangle counts */
            for (int64_t k = i + 1; k < n; k++)
                a[i * n + k] = CONJUGATE(a[k * n + i]);
        if (!NAME(is_finite)(a, n * n))
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': Self-adjoint eigen decomposition was not successful. The input might not be valid.",
                            r->node);
        NAME(diagonalize)(a, n, vectors ? v : NULL, d, tau, room);
        NAME(write_values)(r, 0, b, n, d);
        if (vectors)
            NAME(write_columns)(r, 1, b, n, n, v);
    }
    return TW_OK;
}

static tw_status NAME(run_svd)(const twi_run *r)
{
    const linear *s = r->state;
    int64_t m = s->rows, n = s->columns, p = m < n ? m : n, longer = m < n ? n : m;
    bool wide = m < n, vectors = !(s->flags & VALUES_ONLY);
    int64_t width = s->flags & FULL ? longer : p;
    NUMBER *a = r->workspace, *u = a + m * n, *v = u + width * longer, *tau = v + p * p, *room = tau + 4 * p;
    double *d = (double *)(tau + 2 * p);
    for (int64_t b = 0; b < s->batches; b++) {
        NAME(read)(r, 0, b, m, n, wide, a);
        if (NAME(is_finite)(a, m * n)) {
            NAME(decompose)(a, longer, p, width, vectors ? u : NULL, vectors ? v : NULL, d, tau, room);
        } else {
            for (int64_t i = 0; i < p; i++)
                d[i] = NAN;
            if (vectors) {
                NAME(fill_nan)(u, width * longer);
                NAME(fill_nan)(v, p * p);
            }
        }
        NAME(write_values)(r, 0, b, p, d);
        if (vectors) {
            NAME(write_columns)(r, wide ? 2 : 1, b, width, longer, u);
            NAME(write_columns)(r, wide ? 1 : 2, b, p, p, v);
        }
    }
    return TW_OK;
}
