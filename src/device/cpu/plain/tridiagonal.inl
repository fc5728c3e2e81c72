/* tridiagonal.inl - matrices of three diagonals, of REAL; see tridiagonal.c. */

/* to[i] = a[i] - factor * b[i] */
static void NAME(take_off)(const REAL *a, REAL factor, const REAL *b, REAL *to, int64_t columns)
{
    for (int64_t k = 0; k < columns; k++)
        to[k] = a[k] - factor * b[k];
}

/* One matrix; above, middle and below [n] are its diagonals, of which above[n-1] and below[0] are not used. Rows i and
 * i + 1 change places where that gives the larger pivot, so what is above the diagonal afterwards has two diagonals:
 * `upper` and `second`. False: a pivot is zero. */
static bool NAME(eliminate)(const REAL *diagonals, int64_t n, const REAL *b, int64_t columns, bool pivots, REAL *x,
                            REAL *room)
{
    const REAL *above = diagonals, *middle = diagonals + n, *below = diagonals + 2 * n;
    REAL *pivot = room, *upper = room + n, *second = room + 2 * n;
    pivot[0] = middle[0];
    upper[0] = n > 1 ? above[0] : 0;
    memcpy(x, b, (size_t)columns * sizeof *x);
    for (int64_t i = 0; i < n - 1; i++) {
        REAL *row = x + i * columns, *next = row + columns, beyond = i + 1 < n - 1 ? above[i + 1] : 0;
        const REAL *given = b + (i + 1) * columns;
        if (!pivots || cabs((double _Complex)pivot[i]) >= cabs((double _Complex)below[i + 1])) {
            if (pivot[i] == 0)
                return false;
            REAL factor = below[i + 1] / pivot[i];
            pivot[i + 1] = middle[i + 1] - factor * upper[i];
            NAME(take_off)(given, factor, row, next, columns);
            upper[i + 1] = beyond;
            second[i] = 0;
        } else {
            REAL factor = pivot[i] / below[i + 1];
            pivot[i] = below[i + 1];
            pivot[i + 1] = upper[i] - factor * middle[i + 1];
            upper[i] = middle[i + 1];
            NAME(take_off)(row, factor, given, next, columns);
            memcpy(row, given, (size_t)columns * sizeof *row);
            second[i] = beyond;
            upper[i + 1] = -factor * beyond;
        }
    }
    if (pivot[n - 1] == 0)
        return false;
    for (int64_t i = n - 1; i >= 0; i--)
        for (int64_t k = 0; k < columns; k++) {
            REAL *at = x + i * columns + k, value = *at;
            if (i + 1 < n)
                value -= upper[i] * at[columns];
            if (i + 2 < n)
                value -= second[i] * at[2 * columns];
            *at = value / pivot[i];
        }
    return true;
}

/* diagonals [...,3,n], rhs [...,n,k]. What has no solution is NaN, as TensorFlow has it of reals. */
static tw_status NAME(solve_diagonals)(const twi_run *r)
{
    tw_shape rhs = r->input_operands[1].shape;
    int64_t n = rhs.dims[rhs.rank - 2], columns = rhs.dims[rhs.rank - 1];
    int64_t matrices = twi_elements_between(rhs, 0, rhs.rank - 2);
    const REAL *diagonals = r->inputs[0], *b = r->inputs[1];
    REAL *x = r->outputs[0];
    bool pivots = r->state;
    for (int64_t i = 0; i < matrices && n > 0; i++, diagonals += 3 * n, b += n * columns, x += n * columns)
        if (!NAME(eliminate)(diagonals, n, b, columns, pivots, x, r->workspace))
            for (int64_t k = 0; k < n * columns; k++)
                x[k] = NAN;
    return TW_OK;
}

/* The diagonals [...,1,n] one by one, rhs [...,n,k] */
static tw_status NAME(multiply_diagonals)(const twi_run *r)
{
    tw_shape rhs = r->input_operands[3].shape;
    int64_t n = rhs.dims[rhs.rank - 2], columns = rhs.dims[rhs.rank - 1];
    int64_t rows = twi_elements_between(rhs, 0, rhs.rank - 1);
    const REAL *above = r->inputs[0], *middle = r->inputs[1], *below = r->inputs[2];
    for (int64_t i = 0; i < rows; i++) {
        const REAL *x = (const REAL *)r->inputs[3] + i * columns;
        REAL *y = (REAL *)r->outputs[0] + i * columns;
        bool first = i % n == 0, last = i % n == n - 1;
        for (int64_t k = 0; k < columns; k++)
            y[k] = middle[i] * x[k] + (last ? 0 : above[i] * x[k + columns]) + (first ? 0 : below[i] * x[k - columns]);
    }
    return TW_OK;
}
