/* schur.inl - eigenvalues of matrices of any kind, their square roots and logarithms, by Schur's decomposition in
 * complex numbers: a = u t u^H, where t is a triangle; see linear.c. */

typedef double _Complex number;

/* ---- the decomposition ------------------------------------------------------------------------------------------- */

typedef struct turn {
    double cosine;
    number sine;
} turn;

/* What turns (y, z) to (length, 0). */
static turn turn_of(number y, number z)
{
    double size = hypot(cabs(y), cabs(z));
    if (!(cabs(z) > 0))
        return (turn){1, 0};
    if (!(cabs(y) > 0))
        return (turn){0, conj(z) / cabs(z)};
    return (turn){cabs(y) / size, y / cabs(y) * (conj(z) / size)};
}

/* Rows i and i + 1, from column `from` on. */
static void turn_two_rows(turn t, number *a, int64_t n, int64_t i, int64_t from)
{
    number *x = a + i * n, *y = x + n;
    for (int64_t j = from; j < n; j++) {
        number above = x[j], below = y[j];
        x[j] = t.cosine * above + t.sine * below;
        y[j] = t.cosine * below - conj(t.sine) * above;
    }
}

/* Columns i and i + 1 of the first rows, by the adjoint. */
static void turn_two_columns(turn t, number *a, int64_t n, int64_t i, int64_t rows)
{
    for (int64_t k = 0; k < rows; k++) {
        number *x = a + k * n + i, left = x[0], right = x[1];
        x[0] = t.cosine * left + conj(t.sine) * right;
        x[1] = t.cosine * right - t.sine * left;
    }
}

/* a [n,n] becomes zero below its subdiagonal; u is what it was turned by. v: room for n numbers. */
static void make_hessenberg(number *a, int64_t n, number *u, number *v)
{
    set_unit_complex(u, n, n);
    for (int64_t k = 0; k + 2 < n; k++) {
        int64_t rest = n - k - 1;
        number tau;
        for (int64_t i = 0; i < rest; i++)
            v[i] = a[(k + 1 + i) * n + k];
        number beta = reflection_complex(v, rest, &tau);
        for (int64_t j = k + 1; j < n && tau != 0; j++) { /* from the left */
            number sum = 0;
            for (int64_t i = 0; i < rest; i++)
                sum += conj(v[i]) * a[(k + 1 + i) * n + j];
            for (int64_t i = 0; i < rest; i++)
                a[(k + 1 + i) * n + j] -= conj(tau) * v[i] * sum;
        }
        for (int64_t i = 0; i < rest; i++)
            a[(k + 1 + i) * n + k] = i == 0 ? beta : 0;
        for (int64_t i = 0; i < n && tau != 0; i++) { /* from the right */
            number *row = a + i * n + k + 1, *basis = u + i * n + k + 1, sum = 0, turned = 0;
            for (int64_t j = 0; j < rest; j++) {
                sum += row[j] * v[j];
                turned += basis[j] * v[j];
            }
            for (int64_t j = 0; j < rest; j++) {
                row[j] -= tau * sum * conj(v[j]);
                basis[j] -= tau * turned * conj(v[j]);
            }
        }
    }
}

/* The eigenvalue of the last two rows up to `last` that is nearer to its corner. */
static number shift_for(const number *a, int64_t n, int64_t last)
{
    const number *corner = a + last * n + last;
    number half = (corner[-n - 1] - corner[0]) / 2, across = corner[-n] * corner[-1];
    number root = csqrt(half * half + across);
    if (creal(half * conj(root)) < 0)
        root = -root;
    number apart = half + root;
    return cabs(apart) > 0 ? corner[0] - across / apart : corner[0];
}

/* One step of the QR iteration on rows first to last, with a shift. */
static void sweep_schur(number *a, int64_t n, number *u, int64_t first, int64_t last, number shift)
{
    number y = a[first * n + first] - shift, z = a[(first + 1) * n + first];
    for (int64_t i = first; i < last; i++) {
        turn t = turn_of(y, z);
        turn_two_rows(t, a, n, i, i > first ? i - 1 : first);
        turn_two_columns(t, a, n, i, i + 3 < last + 1 ? i + 3 : last + 1);
        turn_two_columns(t, u, n, i, n);
        if (i > first)
            a[(i + 1) * n + i - 1] = 0;
        if (i + 1 < last) {
            y = a[(i + 1) * n + i];
            z = a[(i + 2) * n + i];
        }
    }
}

/* a [n,n] becomes the triangle. False: there is none, or it was not found. */
static bool find_schur(number *a, int64_t n, number *u, number *room)
{
    int64_t last = n - 1;
    make_hessenberg(a, n, u, room);
    for (int64_t sweeps = 0, alone = 0; last > 0; sweeps++, alone++) {
        int64_t first = last;
        for (; first > 0; first--) {
            double beside = cabs(a[first * n + first]) + cabs(a[(first - 1) * n + first - 1]);
            if (cabs(a[first * n + first - 1]) <= DBL_EPSILON * beside)
                break;
        }
        if (first > 0)
            a[first * n + first - 1] = 0;
        if (first == last) {
            last--;
            alone = 0;
            continue;
        }
        if (sweeps >= SWEEPS * n)
            return false;
        number shift = shift_for(a, n, last);
        if (alone % 10 == 9) /* it goes round in circles */
            shift = cabs(a[last * n + last - 1]) + (last > 1 ? cabs(a[(last - 1) * n + last - 2]) : 0);
        sweep_schur(a, n, u, first, last, shift);
    }
    for (int64_t i = 0; i < n * n; i++)
        if (!isfinite(creal(a[i])) || !isfinite(cimag(a[i])))
            return false;
    return true;
}

/* ---- eigenvalues ------------------------------------------------------------------------------------------------- */

/* Column k of v [n,n] becomes the vector of the triangle's value k, turned by u and of length 1, whose largest number
 * is real. x: room for n. */
static void find_vector(const number *t, const number *u, int64_t n, int64_t k, number *v, number *x)
{
    double size = 0, largest = 0;
    number most = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, cabs(t[i * n + i]));
    for (int64_t i = k; i >= 0; i--) {
        number sum = 0, apart = t[i * n + i] - t[k * n + k];
        for (int64_t j = i + 1; j <= k; j++)
            sum -= t[i * n + j] * x[j];
        if (!(cabs(apart) > DBL_EPSILON * largest)) /* the same value once more */
            apart = DBL_EPSILON * fmax(largest, DBL_MIN);
        x[i] = i == k ? 1 : sum / apart;
    }
    for (int64_t i = 0; i < n; i++) {
        number sum = 0;
        for (int64_t j = 0; j <= k; j++)
            sum += u[i * n + j] * x[j];
        v[i * n + k] = sum;
        size = hypot(size, cabs(sum));
        most = cabs(sum) > cabs(most) ? sum : most;
    }
    for (int64_t i = 0; i < n; i++)
        v[i * n + k] *= conj(most) / cabs(most) / size;
}

static tw_status fail_schur(const twi_run *r)
{
    return twi_fail(r->error, TW_INVALID_ARGUMENT,
                    "'%s': Eigen decomposition was not successful. The input might not "
                    "be valid.",
                    r->node);
}

static tw_status run_eig(const twi_run *r)
{
    const linear *s = r->state;
    int64_t n = s->rows;
    bool vectors = !(s->flags & VALUES_ONLY);
    number *a = r->workspace, *u = a + n * n, *v = u + n * n, *values = v + n * n, *room = values + n;
    for (int64_t b = 0; b < s->batches; b++) {
        read_complex(r, 0, b, n, n, false, a);
        if (!find_schur(a, n, u, room))
            return fail_schur(r);
        for (int64_t k = 0; k < n; k++) {
            values[k] = a[k * n + k];
            if (vectors)
                find_vector(a, u, n, k, v, room);
        }
        write_complex(r, 0, b, n, values);
        if (vectors)
            write_complex(r, 1, b, n * n, v);
    }
    return TW_OK;
}

/* ---- functions of triangles -------------------------------------------------------------------------------------- */

/* The triangle t becomes its square root (Björck, Hammarling 1983). */
static void take_root(number *t, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        t[j * n + j] = csqrt(t[j * n + j]);
        for (int64_t i = j - 1; i >= 0; i--) {
            number sum = t[i * n + j], both = t[i * n + i] + t[j * n + j];
            for (int64_t k = i + 1; k < j; k++)
                sum -= t[i * n + k] * t[k * n + j];
            t[i * n + j] = sum / both;
        }
    }
}

/* The largest sum of sizes in a row of t - 1. */
static double distance_from_unit(const number *t, int64_t n)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++) {
        double sum = cabs(t[i * n + i] - 1);
        for (int64_t j = i + 1; j < n; j++)
            sum += cabs(t[i * n + j]);
        largest = fmax(largest, sum);
    }
    return largest;
}

static void multiply_triangles(const number *a, const number *b, int64_t n, number *to)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            number sum = 0;
            for (int64_t k = i; k <= j; k++)
                sum += a[i * n + k] * b[k * n + j];
            to[i * n + j] = sum;
        }
}

/* The triangle t becomes its logarithm: of a root that is near to 1, log t = 2 (z + z^3 / 3 + z^5 / 5 ...) with
 * z = (t - 1) (t + 1)^-1. room: for 3 n n numbers. */
static void take_logarithm(number *t, int64_t n, number *room)
{
    enum { MOST_ROOTS = 100, TERMS = 10 };
    number *z = room, *square = z + n * n, *power = square + n * n;
    double factor = 2;
    for (int i = 0; i < MOST_ROOTS && distance_from_unit(t, n) > 0.25; i++, factor *= 2)
        take_root(t, n);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i >= 0; i--) { /* z (t + 1) = t - 1, row by row */
            number sum = t[i * n + j] - (i == j);
            for (int64_t k = i; k < j; k++)
                sum -= z[i * n + k] * t[k * n + j];
            z[i * n + j] = sum / (t[j * n + j] + 1);
        }
    multiply_triangles(z, z, n, square);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++) {
            t[i * n + j] = factor * z[i * n + j];
            if (i < j)
                z[j * n + i] = 0;
        }
    for (int term = 1; term < TERMS; term++) {
        multiply_triangles(z, square, n, power);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i; j < n; j++) {
                z[i * n + j] = power[i * n + j];
                t[i * n + j] += factor / (2 * term + 1) * z[i * n + j];
            }
    }
}

/* to = u t u^H */
static void turn_back(const number *t, const number *u, int64_t n, number *across, number *to)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            number sum = 0;
            for (int64_t k = 0; k <= j; k++)
                sum += u[i * n + k] * t[k * n + j];
            across[i * n + j] = sum;
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            to[i * n + j] = dot_complex(u + j * n, across + i * n, n);
}

/* A real matrix with a negative value has no real root. */
static bool has_real_root(const number *t, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (creal(t[i * n + i]) < 0 && fabs(cimag(t[i * n + i])) <= 1e-8 * -creal(t[i * n + i]))
            return false;
    return true;
}

static tw_status run_of_triangle(const twi_run *r, bool logarithm)
{
    const linear *s = r->state;
    int64_t n = s->rows;
    bool is_complex = tw_dtype_is_complex(r->input_operands[0].dtype);
    number *a = r->workspace, *u = a + n * n, *room = u + n * n;
    for (int64_t b = 0; b < s->batches; b++) {
        read_complex(r, 0, b, n, n, false, a);
        bool found = find_schur(a, n, u, room) && (is_complex || has_real_root(a, n));
        if (found && logarithm)
            take_logarithm(a, n, room);
        else if (found)
            take_root(a, n);
        if (found)
            turn_back(a, u, n, room, room + n * n);
        for (int64_t i = 0; i < n * n && !found; i++)
            room[n * n + i] = NAN;
        write_complex(r, 0, b, n * n, room + n * n);
    }
    return TW_OK;
}

static tw_status run_root(const twi_run *r)
{
    return run_of_triangle(r, false);
}

static tw_status run_logarithm(const twi_run *r)
{
    return run_of_triangle(r, true);
}
