/* transform.c - see transform.h. Of n whose prime factors are small, by Cooley's and Tukey's splitting of n into its
 * factors, with four taken at once; of others by Bluestein's, as a convolution with a chirp, which is done by
 * transforms of a power of two. */
#include "device/cpu/vector/transform.h"

#include "base/memory.h"
#include "device/cpu/vector/loops.h"

#include <math.h>
#include <string.h>

typedef double _Complex number;
typedef twi_transform_rows rows;

/* Without C's care for infinities, which costs a call. */
static inline number times(number a, number b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

static inline rows turned(const rows *a, number by)
{
    double re = creal(by), im = cimag(by);
    rows y;
    for (int lane = 0; lane < TWI_TRANSFORM_LANES; lane++) {
        y.re[lane] = a->re[lane] * re - a->im[lane] * im;
        y.im[lane] = a->re[lane] * im + a->im[lane] * re;
    }
    return y;
}

/* e^(-2 pi i k / n) */
static number root_of(int64_t k, int64_t n)
{
    double angle = 2 * 3.14159265358979323846 * (double)k / (double)n;
    return CMPLX(cos(angle), -sin(angle));
}

/* ---- what is known before ---------------------------------------------------------------------------------------- */

/* Fours first, for they take the least work. False: n has a large prime factor. */
static bool factorize(twi_transform *t)
{
    static const int factors[] = {4, 2, 3, 5, 7, 11, TWI_LARGEST_FACTOR};
    int64_t rest = t->n;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        while (rest > 1 && rest % factors[i] == 0) {
            t->factors[t->num_factors++] = factors[i];
            rest /= factors[i];
        }
    return rest == 1;
}

static bool prepare_roots(twi_transform *t)
{
    t->roots = twi_alloc_array((size_t)t->n, sizeof *t->roots);
    for (int64_t k = 0; k < t->n && t->roots; k++)
        t->roots[k] = root_of(k, t->n);
    return t->roots;
}

static bool prepare_chirp(twi_transform *t)
{
    int64_t length = 1;
    while (length < 2 * t->n - 1)
        length *= 2;
    t->longer = twi_transform_make(length);
    t->chirp = twi_alloc_array((size_t)t->n, sizeof *t->chirp);
    t->filter = twi_alloc_aligned((size_t)length * sizeof *t->filter, sizeof *t->filter);
    rows *scratch = t->longer ? twi_alloc_aligned((size_t)length * sizeof *scratch, sizeof *scratch) : NULL;
    bool made = t->chirp && t->filter && scratch;
    for (int64_t k = 0, square = 0; k < t->n && made; k++) {
        number root = t->chirp[k] = root_of(square, 2 * t->n); /* square: k^2 modulo 2n */
        for (int lane = 0; lane < TWI_TRANSFORM_LANES; lane++) {
            t->filter[k].re[lane] = creal(root);
            t->filter[k].im[lane] = -cimag(root);
        }
        t->filter[k ? length - k : 0] = t->filter[k];
        square = (square + 2 * k + 1) % (2 * t->n);
    }
    if (made)
        twi_transform_run(t->longer, t->filter, scratch, false);
    twi_free_aligned(scratch);
    return made;
}

twi_transform *twi_transform_make(int64_t n)
{
    twi_transform *t = n > 0 && n < INT64_MAX / 64 ? twi_alloc(sizeof *t) : NULL;
    if (!t)
        return NULL;
    t->n = n;
    if (factorize(t) ? prepare_roots(t) : prepare_chirp(t))
        return t;
    twi_transform_free(t);
    return NULL;
}

void twi_transform_free(twi_transform *t)
{
    if (!t)
        return;
    twi_transform_free(t->longer);
    twi_free(t->roots);
    twi_free(t->chirp);
    twi_free_aligned(t->filter);
    twi_free(t);
}

size_t twi_transform_scratch(const twi_transform *t)
{
    return t->longer ? (size_t)t->longer->n + twi_transform_scratch(t->longer) : (size_t)t->n;
}

/* ---- by a chirp -------------------------------------------------------------------------------------------------- */

static void convolve(const twi_transform *t, rows *x, rows *scratch)
{
    int64_t length = t->longer->n;
    memset(scratch, 0, (size_t)length * sizeof *scratch);
    for (int64_t k = 0; k < t->n; k++)
        scratch[k] = turned(&x[k], t->chirp[k]);
    twi_transform_run(t->longer, scratch, scratch + length, false);
    for (int64_t k = 0; k < length; k++)
        scratch[k] = turned(&scratch[k], CMPLX(t->filter[k].re[0], t->filter[k].im[0]));
    twi_transform_run(t->longer, scratch, scratch + length, true);
    for (int64_t k = 0; k < t->n; k++)
        x[k] = turned(&scratch[k], t->chirp[k]);
}

void twi_transform_run(const twi_transform *t, rows *x, rows *scratch, bool inverse)
{
    for (int64_t k = 0; k < t->n && inverse; k++)
        for (int lane = 0; lane < TWI_TRANSFORM_LANES; lane++)
            x[k].im[lane] = -x[k].im[lane];
    if (t->longer) {
        convolve(t, x, scratch);
    } else {
        memcpy(scratch, x, (size_t)t->n * sizeof *x);
        twi_loops_best()->transform(t, scratch, x, t->n, 1, 1, 0);
    }
    for (int64_t k = 0; k < t->n && inverse; k++)
        for (int lane = 0; lane < TWI_TRANSFORM_LANES; lane++) {
            x[k].re[lane] /= (double)t->n;
            x[k].im[lane] /= -(double)t->n;
        }
}

/* ---- one row ----------------------------------------------------------------------------------------------------- */

/* Lane q has every fourth number from q on: the transforms that the first factor of 4 asks for. */
static void run_quarters(const twi_transform *t, number *x, rows *scratch)
{
    int64_t m = t->n / TWI_TRANSFORM_LANES;
    for (int64_t k = 0; k < m; k++)
        for (int q = 0; q < TWI_TRANSFORM_LANES; q++) {
            scratch[k].re[q] = creal(x[TWI_TRANSFORM_LANES * k + q]);
            scratch[k].im[q] = cimag(x[TWI_TRANSFORM_LANES * k + q]);
        }
    rows *made = scratch + m;
    twi_loops_best()->transform(t, scratch, made, m, 1, TWI_TRANSFORM_LANES, 1);
    for (int64_t k = 0; k < m; k++) {
        number a = CMPLX(made[k].re[0], made[k].im[0]), b = times(CMPLX(made[k].re[1], made[k].im[1]), t->roots[k]),
               c = times(CMPLX(made[k].re[2], made[k].im[2]), t->roots[2 * k]),
               d = times(CMPLX(made[k].re[3], made[k].im[3]), t->roots[3 * k]);
        number even = a + c, odd = a - c, both = b + d, apart = b - d, quarter = CMPLX(cimag(apart), -creal(apart));
        x[k] = even + both;
        x[k + m] = odd + quarter;
        x[k + 2 * m] = even - both;
        x[k + 3 * m] = odd - quarter;
    }
}

void twi_transform_run_one(const twi_transform *t, number *x, rows *scratch, bool inverse)
{
    bool in_quarters = !t->longer && t->n % TWI_TRANSFORM_LANES == 0;
    for (int64_t k = 0; k < t->n && inverse && in_quarters; k++)
        x[k] = conj(x[k]);
    if (in_quarters) {
        run_quarters(t, x, scratch);
    } else {
        memset(scratch, 0, (size_t)t->n * sizeof *scratch);
        for (int64_t k = 0; k < t->n; k++) {
            scratch[k].re[0] = creal(x[k]);
            scratch[k].im[0] = cimag(x[k]);
        }
        twi_transform_run(t, scratch, scratch + t->n, inverse);
        for (int64_t k = 0; k < t->n; k++)
            x[k] = CMPLX(scratch[k].re[0], scratch[k].im[0]);
    }
    for (int64_t k = 0; k < t->n && inverse && in_quarters; k++)
        x[k] = conj(x[k]) / (double)t->n;
}
