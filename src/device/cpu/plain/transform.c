/* transform.c - see transform.h. Of n whose prime factors are small, by Cooley's and Tukey's splitting of n into its
 * factors, with four taken at once; of others by Bluestein's, as a convolution with a chirp, which is done by
 * transforms of a power of two. */
#include "device/cpu/plain/transform.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

typedef double _Complex number;

enum { MOST_FACTORS = 64, LARGEST_FACTOR = 13 };

struct twi_transform {
    int64_t n;
    int num_factors, factors[MOST_FACTORS];
    number *roots;         /* [n]: e^(-2 pi i k / n); NULL: by a chirp */
    twi_transform *longer; /* of the convolution's length, a power of two */
    number *chirp;         /* [n]: e^(-pi i k^2 / n) */
    number *filter;        /* [length of `longer`]: transform of the chirp's conjugate */
};

/* Without C's care for infinities, which costs a call. */
static inline number times(number a, number b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
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
    static const int factors[] = {4, 2, 3, 5, 7, 11, LARGEST_FACTOR};
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
    t->filter = twi_alloc_array((size_t)length, sizeof *t->filter);
    number *scratch = t->longer ? twi_alloc_array(twi_transform_scratch(t->longer), sizeof *scratch) : NULL;
    bool made = t->chirp && t->filter && scratch;
    for (int64_t k = 0, square = 0; k < t->n && made; k++) {
        t->chirp[k] = root_of(square, 2 * t->n); /* square: k^2 modulo 2n */
        t->filter[k] = t->filter[k ? length - k : 0] = conj(t->chirp[k]);
        square = (square + 2 * k + 1) % (2 * t->n);
    }
    if (made)
        twi_transform_run(t->longer, t->filter, scratch, false);
    twi_free(scratch);
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
    twi_free(t->filter);
    twi_free(t);
}

size_t twi_transform_scratch(const twi_transform *t)
{
    return t->longer ? (size_t)t->longer->n + twi_transform_scratch(t->longer) : (size_t)t->n;
}

/* ---- by factors -------------------------------------------------------------------------------------------------- */

/* Four transforms of m numbers, one behind the other in `out`, become one of 4 m; `stride` is of the roots. */
static void join_four(const twi_transform *t, number *out, int64_t m, int64_t stride)
{
    for (int64_t k = 0; k < m; k++) {
        number a = out[k], b = times(out[k + m], t->roots[k * stride]),
               c = times(out[k + 2 * m], t->roots[2 * k * stride]), d = times(out[k + 3 * m], t->roots[3 * k * stride]);
        number even = a + c, odd = a - c, sum = b + d, difference = b - d;
        number turned = CMPLX(cimag(difference), -creal(difference)); /* times -i */
        out[k] = even + sum;
        out[k + m] = odd + turned;
        out[k + 2 * m] = even - sum;
        out[k + 3 * m] = odd - turned;
    }
}

static inline __attribute__((always_inline)) void join_parts(const twi_transform *t, number *out, int factor,
                                                             int64_t m, int64_t stride)
{
    number parts[LARGEST_FACTOR], turns[LARGEST_FACTOR];
    for (int q = 0; q < factor; q++)
        turns[q] = t->roots[q * m * stride];
    for (int64_t k = 0; k < m; k++) {
        for (int q = 0; q < factor; q++)
            parts[q] = times(out[k + q * m], t->roots[q * k * stride]);
        for (int j = 0; j < factor; j++) {
            number sum = parts[0];
            for (int q = 1, turn = j; q < factor; q++) { /* q j modulo factor */
                sum += times(parts[q], turns[turn]);
                turn = turn + j < factor ? turn + j : turn + j - factor;
            }
            out[k + j * m] = sum;
        }
    }
}

/* The compiler lays out the loops of those that come often. */
static void join(const twi_transform *t, number *out, int factor, int64_t m, int64_t stride)
{
    switch (factor) {
    case 4:
        join_four(t, out, m, stride);
        break;
    case 2:
        join_parts(t, out, 2, m, stride);
        break;
    case 3:
        join_parts(t, out, 3, m, stride);
        break;
    case 5:
        join_parts(t, out, 5, m, stride);
        break;
    default:
        join_parts(t, out, factor, m, stride);
    }
}

/* Every stride-th of `in`, count of them, transformed into `out`, by the factors from number `level` on. */
static void split(const twi_transform *t, const number *in, number *out, int64_t count, int64_t stride, int level)
{
    if (count == 1) {
        *out = *in;
        return;
    }
    int factor = t->factors[level];
    int64_t m = count / factor;
    for (int q = 0; q < factor; q++)
        if (m == 1)
            out[q] = in[q * stride];
        else
            split(t, in + q * stride, out + q * m, m, stride * factor, level + 1);
    join(t, out, factor, m, stride);
}

/* ---- by a chirp -------------------------------------------------------------------------------------------------- */

static void convolve(const twi_transform *t, number *x, number *scratch)
{
    int64_t length = t->longer->n;
    memset(scratch, 0, (size_t)length * sizeof *scratch);
    for (int64_t k = 0; k < t->n; k++)
        scratch[k] = times(x[k], t->chirp[k]);
    twi_transform_run(t->longer, scratch, scratch + length, false);
    for (int64_t k = 0; k < length; k++)
        scratch[k] = times(scratch[k], t->filter[k]);
    twi_transform_run(t->longer, scratch, scratch + length, true);
    for (int64_t k = 0; k < t->n; k++)
        x[k] = times(scratch[k], t->chirp[k]);
}

void twi_transform_run(const twi_transform *t, double _Complex *x, double _Complex *scratch, bool inverse)
{
    for (int64_t k = 0; k < t->n && inverse; k++)
        x[k] = conj(x[k]);
    if (t->longer) {
        convolve(t, x, scratch);
    } else {
        memcpy(scratch, x, (size_t)t->n * sizeof *x);
        split(t, scratch, x, t->n, 1, 0);
    }
    for (int64_t k = 0; k < t->n && inverse; k++)
        x[k] = conj(x[k]) / (double)t->n;
}
