/* transform.inl - the transform of several rows at once by the factors of their length (transform.h), Cooley's and
 * Tukey's: a part of loops.inl, which is built for each vector unit. The rows are the lanes, of vectors that the unit
 * has: one of 32 bytes, or two of 16. */
#include "device/cpu/vector/transform.h"

#if TWI_VECTOR_BYTES > 16
#define PART_BYTES 32
#define EACH_PART(expression) {expression(0)}
#else
#define PART_BYTES 16
#define EACH_PART(expression) {expression(0), expression(1)}
#endif
enum { PARTS = 8 * TWI_TRANSFORM_LANES / PART_BYTES };
typedef double part __attribute__((vector_size(PART_BYTES), may_alias));
typedef struct many {
    part re[PARTS], im[PARTS];
} many; /* twi_transform_rows, as it is computed with */

static inline TWI_INLINE many turned(many a, double _Complex by)
{
    double re = __builtin_creal(by), im = __builtin_cimag(by);
#define REAL_PART(i) a.re[i] * re - a.im[i] * im
#define IMAGINARY_PART(i) a.re[i] * im + a.im[i] * re
    return (many){EACH_PART(REAL_PART), EACH_PART(IMAGINARY_PART)};
#undef REAL_PART
#undef IMAGINARY_PART
}

#define EACH_OF_BOTH(name, real, imaginary)                                                                            \
    static inline TWI_INLINE many name(many a, many b)                                                                 \
    {                                                                                                                  \
        return (many){EACH_PART(real), EACH_PART(imaginary)};                                                          \
    }
#define REAL_SUM(i) a.re[i] + b.re[i]
#define IMAGINARY_SUM(i) a.im[i] + b.im[i]
#define REAL_DIFFERENCE(i) a.re[i] - b.re[i]
#define IMAGINARY_DIFFERENCE(i) a.im[i] - b.im[i]
#define REAL_QUARTER(i) a.re[i] + b.im[i]
#define IMAGINARY_QUARTER(i) a.im[i] - b.re[i]
#define REAL_BACK(i) a.re[i] - b.im[i]
#define IMAGINARY_BACK(i) a.im[i] + b.re[i]
EACH_OF_BOTH(added, REAL_SUM, IMAGINARY_SUM)
EACH_OF_BOTH(subtracted, REAL_DIFFERENCE, IMAGINARY_DIFFERENCE)
EACH_OF_BOTH(added_a_quarter_back, REAL_QUARTER, IMAGINARY_QUARTER) /* a - i b */
EACH_OF_BOTH(added_a_quarter_on, REAL_BACK, IMAGINARY_BACK)         /* a + i b */

/* One number of each of four transforms of m numbers, one behind the other from `out` on, becomes four of one of
 * 4 m. */
static inline void join_four_at(many *out, int64_t m, many a, many b, many c, many d)
{
    many even = added(a, c), odd = subtracted(a, c), both = added(b, d), apart = subtracted(b, d);
    out[0] = added(even, both);
    out[m] = added_a_quarter_back(odd, apart);
    out[2 * m] = subtracted(even, both);
    out[3 * m] = added_a_quarter_on(odd, apart);
}

/* `stride` is of the roots. */
static void join_four(const twi_transform *t, many *out, int64_t m, int64_t stride)
{
    join_four_at(out, m, out[0], out[m], out[2 * m], out[3 * m]);
    for (int64_t k = 1; k < m; k++)
        join_four_at(out + k, m, out[k], turned(out[k + m], t->roots[k * stride]),
                     turned(out[k + 2 * m], t->roots[2 * k * stride]),
                     turned(out[k + 3 * m], t->roots[3 * k * stride]));
}

static inline __attribute__((always_inline)) void join_parts(const twi_transform *t, many *out, int factor, int64_t m,
                                                             int64_t stride)
{
    many parts[TWI_LARGEST_FACTOR];
    double _Complex turns[TWI_LARGEST_FACTOR];
    for (int q = 0; q < factor; q++)
        turns[q] = t->roots[q * m * stride];
    for (int64_t k = 0; k < m; k++) {
        for (int q = 0; q < factor; q++)
            parts[q] = turned(out[k + q * m], t->roots[q * k * stride]);
        for (int j = 0; j < factor; j++) {
            many all = parts[0];
            for (int q = 1, turn = j; q < factor; q++) { /* q j modulo factor */
                all = added(all, turned(parts[q], turns[turn]));
                turn = turn + j < factor ? turn + j : turn + j - factor;
            }
            out[k + j * m] = all;
        }
    }
}

/* The compiler lays out the loops of those that come often. */
static void join(const twi_transform *t, many *out, int factor, int64_t m, int64_t stride)
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

/* Every step-th of `in`, count of them, transformed into `out`, by the factors from number `level` on; their root is
 * t's with number `stride`. */
static void transform_many(const twi_transform *t, const many *in, many *out, int64_t count, int64_t step,
                           int64_t stride, int level)
{
    if (count == 1) {
        *out = *in;
        return;
    }
    int factor = t->factors[level];
    int64_t m = count / factor;
    for (int q = 0; q < factor; q++)
        if (m == 1)
            out[q] = in[q * step];
        else
            transform_many(t, in + q * step, out + q * m, m, step * factor, stride * factor, level + 1);
    join(t, out, factor, m, stride);
}

static void transform(const twi_transform *t, const twi_transform_rows *in, twi_transform_rows *out, int64_t count,
                      int64_t step, int64_t stride, int level)
{
    transform_many(t, (const many *)(const void *)in, (many *)(void *)out, count, step, stride, level);
}
