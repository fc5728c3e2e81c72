/* linear.inl - decompositions of matrices of NUMBER; see linear.c. Matrices are row-major, rows `la` numbers apart.
 * What is large is halved until it is small, or taken a block of columns at a time, so that nearly all work is
 * products of matrices, which are subtracted. */

/* ---- elimination ------------------------------------------------------------------------------------------------- */

static void NAME(swap)(NUMBER *a, NUMBER *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        NUMBER x = a[i];
        a[i] = b[i];
        b[i] = x;
    }
}

/* Rows of a [.,n] change places as pivots say, in their order. */
static void NAME(exchange)(NUMBER *a, int64_t la, int64_t n, const int64_t *pivots, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (pivots[i] != i)
            NAME(swap)(a + i * la, a + pivots[i] * la, n);
}

/* Solves a x = b for a triangle a [n,n], in place of b [n,k]; `unit`: its diagonal is 1. */
static void NAME(solve)(bool upper, bool unit, const NUMBER *a, int64_t la, int64_t n, NUMBER *b, int64_t lb, int64_t k)
{
    int64_t half = n / 2, rest = n - half;
    if (n > SMALL) {
        const NUMBER *across = upper ? a + half : a + half * la;
        NUMBER *first = upper ? b + half * lb : b, *second = upper ? b : b + half * lb;
        NAME(solve)(upper, unit, upper ? a + half * (la + 1) : a, la, upper ? rest : half, first, lb, k);
        NAME(subtract)(second, lb, across, la, first, lb, upper ? half : rest, k, upper ? rest : half);
        NAME(solve)(upper, unit, upper ? a : a + half * (la + 1), la, upper ? half : rest, second, lb, k);
        return;
    }
    for (int64_t step = 0; step < n; step++) {
        int64_t i = upper ? n - 1 - step : step;
        for (int64_t j = upper ? i + 1 : 0; j < (upper ? n : i); j++)
            NAME(add)(b + i * lb, -a[i * la + j], b + j * lb, k);
        for (int64_t column = 0; column < k && !unit; column++)
            b[i * lb + column] /= a[i * la + i];
    }
}

/* a [m,n] with m >= n becomes u and, below its diagonal, l of row exchanges times a; pivots[i]: the row that row i was
 * exchanged with. False: a pivot is zero. */
static bool NAME(factor)(NUMBER *a, int64_t la, int64_t m, int64_t n, int64_t *pivots)
{
    int64_t half = n / 2;
    if (n > SMALL) {
        NUMBER *right = a + half, *low = a + half * la;
        if (!NAME(factor)(a, la, m, half, pivots))
            return false;
        NAME(exchange)(right, la, n - half, pivots, half);
        NAME(solve)(false, true, a, la, half, right, la, n - half);
        NAME(subtract)(low + half, la, low, la, right, la, m - half, n - half, half);
        bool some = NAME(factor)(low + half, la, m - half, n - half, pivots + half);
        if (some)
            NAME(exchange)(low, la, half, pivots + half, n - half);
        for (int64_t i = half; i < n && some; i++)
            pivots[i] += half;
        return some;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t pivot = i;
        for (int64_t row = i + 1; row < m; row++)
            if (SIZE(a[row * la + i]) > SIZE(a[pivot * la + i]))
                pivot = row;
        if (SIZE(a[pivot * la + i]) == 0)
            return false;
        pivots[i] = pivot;
        if (pivot != i)
            NAME(swap)(a + i * la, a + pivot * la, n);
        for (int64_t row = i + 1; row < m; row++) {
            NUMBER factor = a[row * la + i] /= a[i * la + i];
            for (int64_t column = i + 1; column < n; column++)
                a[row * la + column] -= factor * a[i * la + column];
        }
    }
    return true;
}

/* As factor() does, of a square; false as well, as in TensorFlow, where the first pivot is NaN. */
static bool NAME(factor_sure)(NUMBER *a, int64_t n, int64_t *pivots)
{
    return NAME(factor)(a, n, n, n, pivots) && !(n > 0 && isnan(SIZE(*a)));
}

/* Solves a x = b, in place of b [n,k]; a is lost. */
static bool NAME(solve_any)(NUMBER *a, int64_t n, NUMBER *b, int64_t k, int64_t *pivots)
{
    if (!NAME(factor_sure)(a, n, pivots))
        return false;
    NAME(exchange)(b, k, k, pivots, n);
    NAME(solve)(false, true, a, n, n, b, k, k);
    NAME(solve)(true, false, a, n, n, b, k, k);
    return true;
}

/* ---- Cholesky ---------------------------------------------------------------------------------------------------- */

static void NAME(adjoint)(const NUMBER *a, int64_t la, int64_t m, int64_t n, NUMBER *to, int64_t lt)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            to[j * lt + i] = CONJUGATE(a[i * la + j]);
}

/* The lower triangle of a becomes l with l l^H = a; `rest` has room for n n / 4 numbers. False: a is not positive;
 * what is NaN is no reason. */
static bool NAME(cholesky)(NUMBER *a, int64_t la, int64_t n, NUMBER *rest)
{
    int64_t half = n / 2, low = n - half;
    if (n > SMALL) {
        NUMBER *below = a + half * la;
        if (!NAME(cholesky)(a, la, half, rest))
            return false;
        NAME(adjoint)(below, la, low, half, rest, low);
        NAME(solve)(false, false, a, la, half, rest, low, low);
        NAME(adjoint)(rest, low, half, low, below, la);
        for (int64_t i = 0; i < low; i += BLOCK) {
            int64_t end = i + BLOCK < low ? i + BLOCK : low;
            NAME(subtract)(below + i * la + half, la, below + i * la, la, rest, low, end - i, end, half);
        }
        return NAME(cholesky)(below + half, la, low, rest);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            NUMBER sum = a[i * la + j];
            for (int64_t k = 0; k < j; k++)
                sum -= a[i * la + k] * CONJUGATE(a[j * la + k]);
            if (i == j && PART(sum) <= 0)
                return false;
            a[i * la + j] = i == j ? sqrt(PART(sum)) : sum / PART(a[j * la + j]);
        }
    return true;
}

/* ---- Householder's reflections ------------------------------------------------------------------------------------
 */

/* x [n] becomes v with v[0] = 1, so that (1 - tau v v^H)^H x is beta and zeros; returns beta. */
static double NAME(reflection)(NUMBER *x, int64_t n, NUMBER *tau)
{
    double tail = 0, size;
    NUMBER first = x[0];
    for (int64_t i = 1; i < n; i++)
        tail += SQUARE(x[i]);
    *tau = 0;
    x[0] = 1;
    if (tail == 0 && !(SQUARE(first) > PART(first) * PART(first))) /* nothing is below, and it is real */
        return PART(first);
    size = sqrt(SQUARE(first) + tail);
    double beta = PART(first) >= 0 ? -size : size;
    for (int64_t i = 1; i < n; i++)
        x[i] /= first - beta;
    *tau = (beta - first) / beta;
    return beta;
}

/* Some reflections after each other as one: 1 - v t v^H. */
typedef struct NAME(reflections) {
    int64_t rows, count;
    NUMBER *v, *adjoint, *t, *product; /* [rows,count], [count,rows], [count,count], [count,columns] */
} NAME(reflections);

static NAME(reflections) NAME(reflections_in)(NUMBER *room, int64_t rows)
{
    return (NAME(reflections)){
        rows, 0, room, room + BLOCK * rows, room + 2 * BLOCK * rows, room + 2 * BLOCK * rows + BLOCK * BLOCK};
}

/* Reflections from `first` on, which lie in the columns of a below its diagonal, or `shift` rows further down. */
static void NAME(gather)(NAME(reflections) * r, const NUMBER *a, int64_t la, int64_t m, int64_t first, int64_t count,
                         int64_t shift, const NUMBER *tau)
{
    r->rows = m - first - shift;
    r->count = count;
    for (int64_t i = 0; i < r->rows; i++)
        for (int64_t j = 0; j < count; j++) {
            NUMBER x = i < j ? 0 : i == j ? 1 : a[(first + shift + i) * la + first + j];
            r->v[i * count + j] = -x; /* what is subtracted */
            r->adjoint[j * r->rows + i] = CONJUGATE(x);
        }
    for (int64_t j = 0; j < count; j++)
        for (int64_t i = 0; i <= j; i++)
            r->t[i * count + j] = i == j ? tau[first + j] : 0;
    for (int64_t j = 1; j < count; j++) {
        NUMBER across[BLOCK];
        for (int64_t i = 0; i < j; i++) {
            across[i] = 0;
            for (int64_t k = j; k < r->rows; k++)
                across[i] -= r->adjoint[i * r->rows + k] * CONJUGATE(r->adjoint[j * r->rows + k]);
        }
        for (int64_t i = 0; i < j; i++) {
            NUMBER sum = 0;
            for (int64_t k = i; k < j; k++)
                sum += r->t[i * count + k] * across[k];
            r->t[i * count + j] = tau[first + j] * sum;
        }
    }
}

/* to [rows,n] becomes what they make of it, or with `adjoint` their adjoint. */
static void NAME(reflect)(const NAME(reflections) * r, bool adjoint, NUMBER *to, int64_t lt, int64_t n)
{
    int64_t count = r->count;
    NUMBER *w = r->product;
    for (int64_t i = 0; i < count * n; i++)
        w[i] = 0;
    NAME(subtract)(w, n, r->adjoint, r->rows, to, lt, count, n, r->rows);
    for (int64_t step = 0; step < count; step++) { /* by t, in place */
        int64_t i = adjoint ? count - 1 - step : step;
        NUMBER own = adjoint ? CONJUGATE(r->t[i * count + i]) : r->t[i * count + i];
        for (int64_t j = 0; j < n; j++)
            w[i * n + j] *= own;
        for (int64_t k = adjoint ? 0 : i + 1; k < (adjoint ? i : count); k++)
            NAME(add)(w + i * n, adjoint ? CONJUGATE(r->t[k * count + i]) : r->t[i * count + k], w + k * n, n);
    }
    NAME(subtract)(to, lt, r->v, count, w, n, r->rows, n, count);
}

/* to [m,n] becomes h0 h1 ... to, of reflections that lie in the columns of a. */
static void NAME(apply)(const NUMBER *a, int64_t la, int64_t m, int64_t count, int64_t shift, const NUMBER *tau,
                        NUMBER *to, int64_t n, NUMBER *room)
{
    NAME(reflections) r = NAME(reflections_in)(room, m);
    for (int64_t first = count ? (count - 1) / BLOCK * BLOCK : -1; first >= 0; first -= BLOCK) {
        NAME(gather)(&r, a, la, m, first, count - first < BLOCK ? count - first : BLOCK, shift, tau);
        NAME(reflect)(&r, false, to + (first + shift) * n, n, n);
    }
}

/* a [m,n] becomes r, with the reflections below its diagonal. */
static void NAME(triangularize)(NUMBER *a, int64_t m, int64_t n, NUMBER *tau, NUMBER *room)
{
    int64_t count = m < n ? m : n;
    NAME(reflections) r = NAME(reflections_in)(room, m);
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t some = count - first < BLOCK ? count - first : BLOCK, rows = m - first;
        NUMBER *columns = r.adjoint; /* of these columns, side by side */
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < some; j++)
                columns[j * rows + i] = a[(first + i) * n + first + j];
        for (int64_t j = 0; j < some; j++) {
            NUMBER *v = columns + j * rows + j;
            double beta = NAME(reflection)(v, rows - j, &tau[first + j]);
            for (int64_t k = j + 1; k < some && tau[first + j] != 0; k++) {
                NUMBER *x = columns + k * rows + j;
                NAME(add)(x, -CONJUGATE(tau[first + j]) * NAME(dot)(v, x, rows - j), v, rows - j);
            }
            v[0] = beta;
        }
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < some; j++)
                a[(first + i) * n + first + j] = columns[j * rows + i];
        if (first + some < n) {
            NAME(gather)(&r, a, n, m, first, some, 0, tau);
            NAME(reflect)(&r, true, a + first * n + first + some, n, n - first - some);
        }
    }
}

static void NAME(set_unit)(NUMBER *a, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            a[i * n + j] = i == j;
}

/* ---- eigenvalues --------------------------------------------------------------------------------------------------
 */

/* What the reflection by v and w still has to do to rows: row[i] -= v[i] w^H + w[i] v^H. */
typedef struct NAME(pending) {
    NUMBER *v, *w, *v_conjugate, *w_conjugate;
} NAME(pending);

/* The Hermitian a [n,n] becomes tridiagonal, d and e, by reflections that lie below its subdiagonal. */
static void NAME(tridiagonalize)(NUMBER *a, int64_t n, double *d, double *e, NUMBER *tau, NUMBER *room)
{
    NAME(pending) old = {room, room + n, room + 2 * n, room + 3 * n}, now = old;
    NUMBER *next = room + 4 * n, *sums = next + n;
    bool is_pending = false;
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = n - i - 1;
        /* `old` begins at row i */
        for (int64_t j = 0; j <= rest && is_pending; j++)
            a[(i + j) * n + i] -= old.v[j] * old.w_conjugate[0] + old.w[j] * old.v_conjugate[0];
        d[i] = PART(a[i * n + i]);
        if (rest == 0)
            break;
        for (int64_t j = 0; j < rest; j++)
            next[j] = a[(i + 1 + j) * n + i];
        e[i] = NAME(reflection)(next, rest, &tau[i]);
        for (int64_t j = 1; j < rest; j++)
            a[(i + 1 + j) * n + i] = next[j];
        for (int64_t j = 0; j < rest; j++) {
            NUMBER *row = a + (i + 1 + j) * n + i + 1;
            sums[j] = is_pending ? NAME(add_two)(row, -old.v[1 + j], old.w_conjugate + 1, -old.w[1 + j],
                                                 old.v_conjugate + 1, next, rest)
                                 : NAME(dot_plain)(row, next, rest);
        }
        is_pending = tau[i] != 0;
        NUMBER along = 0;
        for (int64_t j = 0; j < rest; j++) {
            sums[j] *= tau[i];
            along += CONJUGATE(sums[j]) * next[j];
        }
        along *= -tau[i] / 2;
        for (int64_t j = 0; j < rest; j++) {
            now.v[j] = next[j];
            now.w[j] = sums[j] + along * next[j];
            now.v_conjugate[j] = CONJUGATE(now.v[j]);
            now.w_conjugate[j] = CONJUGATE(now.w[j]);
        }
    }
}

/* The Hermitian a [n,n] is lost; e has its eigenvalues in rising order, and v [n,n], if there is one, their vectors as
 * rows. */
static void NAME(diagonalize)(NUMBER *a, int64_t n, NUMBER *v, double *d, NUMBER *tau, NUMBER *room)
{
    double *e = d + n;
    NAME(tridiagonalize)(a, n, d, e, tau, room);
    if (v) {
        NUMBER *columns = room;
        NAME(set_unit)(columns, n, n);
        NAME(apply)(a, n, n, n - 1, 1, tau, columns, n, columns + n * n);
        for (int64_t i = 0; i < n * n; i++)
            v[i % n * n + i / n] = columns[i];
    }
    diagonalize_three(d, e, n, (double *)v, n * (int64_t)(sizeof(NUMBER) / sizeof(double)));
    for (int64_t i = 0; i < n; i++) {
        int64_t least = i;
        for (int64_t k = i + 1; k < n; k++)
            least = d[k] < d[least] ? k : least;
        double x = d[i];
        d[i] = d[least];
        d[least] = x;
        if (v && least != i)
            NAME(swap)(v + i * n, v + least * n, n);
    }
}

/* ---- singular values ----------------------------------------------------------------------------------------------
 */

/* a [m,n] with m >= n becomes bidiagonal, d and e, by reflections from the left that lie below its diagonal, and from
 * the right that lie in rows behind the next diagonal. */
static void NAME(bidiagonalize)(NUMBER *a, int64_t m, int64_t n, double *d, double *e, NUMBER *left, NUMBER *right,
                                NUMBER *room)
{
    NUMBER *v = room, *w = v + m, *u = w + n, *u_conjugate = u + n;
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = n - i - 1;
        NUMBER *row = a + i * n + i + 1;
        for (int64_t j = i; j < m; j++)
            v[j - i] = a[j * n + i];
        d[i] = NAME(reflection)(v, m - i, &left[i]);
        for (int64_t j = i + 1; j < m; j++)
            a[j * n + i] = v[j - i];
        if (rest == 0)
            break;
        for (int64_t j = 0; j < rest; j++)
            w[j] = 0;
        for (int64_t j = i; j < m; j++)
            NAME(add)(w, CONJUGATE(v[j - i]), row + (j - i) * n, rest);
        NAME(add)(row, -CONJUGATE(left[i]), w, rest);
        for (int64_t j = 0; j < rest; j++)
            u[j] = CONJUGATE(row[j]);
        e[i] = NAME(reflection)(u, rest, &right[i]);
        for (int64_t j = 0; j < rest; j++) {
            u_conjugate[j] = CONJUGATE(u[j]);
            row[j] = u[j];
        }
        for (int64_t j = i + 1; j < m; j++) {
            NUMBER *to = row + (j - i) * n;
            NAME(add)(to, -CONJUGATE(left[i]) * v[j - i], w, rest);
            NAME(add)(to, -right[i] * NAME(dot_plain)(to, u, rest), u_conjugate, rest);
        }
    }
}

/* Of a [m,n] with m >= n, which is lost: the singular values d in falling order; where they are asked for, the vectors
 * as rows of u [width,m] and v [n,n]. */
static void NAME(decompose)(NUMBER *a, int64_t m, int64_t n, int64_t width, NUMBER *u, NUMBER *v, double *d,
                            NUMBER *tau, NUMBER *room)
{
    double *e = d + n;
    NUMBER *left = tau, *right = tau + n;
    int64_t parts = sizeof(NUMBER) / sizeof(double);
    NAME(bidiagonalize)(a, m, n, d, e, left, right, room);
    if (u) {
        NUMBER *columns = room;
        NAME(set_unit)(columns, m, width);
        NAME(apply)(a, n, m, n, 0, left, columns, width, columns + m * width);
        for (int64_t i = 0; i < m * width; i++)
            u[i % width * m + i / width] = columns[i];
        for (int64_t i = 0; i < n; i++) /* rows become columns */
            for (int64_t j = i + 1; j < n; j++)
                a[j * n + i] = a[i * n + j];
        NAME(set_unit)(columns, n, n);
        NAME(apply)(a, n, n, n - 1, 1, right, columns, n, columns + n * n);
        for (int64_t i = 0; i < n * n; i++)
            v[i % n * n + i / n] = columns[i];
    }
    diagonalize_two(d, e, n, (double *)u, m * parts, (double *)v, n * parts);
    for (int64_t i = 0; i < n; i++) {
        int64_t most = i;
        for (int64_t k = i; k < n; k++)
            most = fabs(d[k]) > fabs(d[most]) ? k : most;
        double x = d[i], size = fabs(d[most]);
        bool negative = d[most] < 0;
        d[most] = x;
        d[i] = size;
        for (int64_t k = 0; k < n && v && negative; k++)
            v[most * n + k] = -v[most * n + k];
        if (v && most != i) {
            NAME(swap)(u + i * m, u + most * m, m);
            NAME(swap)(v + i * n, v + most * n, n);
        }
    }
}
