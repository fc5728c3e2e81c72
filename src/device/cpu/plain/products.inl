/* products.inl - the loops of products.h, for a vector unit of BYTES. Numbers are taken eight at a time, PARTS vectors,
 * on any of them: so sums of eight are the same. */

typedef double NAME(part) __attribute__((vector_size(BYTES)));
#define PART NAME(part)
enum { NAME(LANES) = BYTES / 8, NAME(PARTS) = 64 / BYTES };
#define LANES NAME(LANES)
#define PARTS NAME(PARTS)
#define EACH_PART for (int p = 0; p < PARTS; p++)
#define INLINE static inline __attribute__((always_inline))

INLINE PART NAME(load)(const double *from)
{
    PART x;
    memcpy(&x, from, sizeof x);
    return x;
}

INLINE void NAME(store)(double *to, PART x)
{
    memcpy(to, &x, sizeof x);
}

/* The sum of eight sums, in their order, and of what was left over. */
INLINE double NAME(sum_of)(const PART *sums, double rest)
{
    EACH_PART
    for (int k = 0; k < LANES; k++)
        rest += sums[p][k];
    return rest;
}

/* Eight columns of `rows` rows, at most ROWS. */
INLINE void NAME(tile)(int rows, double *c, int64_t lc, const double *a, int64_t la, const double *b, int64_t lb,
                       int64_t k)
{
    PART sum[ROWS][PARTS];
    for (int i = 0; i < rows; i++)
        EACH_PART
    sum[i][p] = NAME(load)(c + i * lc + p * LANES);
    for (int64_t l = 0; l < k; l++) {
        PART row[PARTS];
        EACH_PART
        row[p] = NAME(load)(b + l * lb + p * LANES);
        for (int i = 0; i < rows; i++)
            EACH_PART
        sum[i][p] -= a[i * la + l] * row[p];
    }
    for (int i = 0; i < rows; i++)
        EACH_PART
    NAME(store)(c + i * lc + p * LANES, sum[i][p]);
}

INLINE void NAME(rows)(int rows, double *c, int64_t lc, const double *a, int64_t la, const double *b, int64_t lb,
                       int64_t n, int64_t k)
{
    int64_t j = 0;
    for (; j + 8 <= n; j += 8)
        NAME(tile)(rows, c + j, lc, a, la, b + j, lb, k);
    for (; j < n; j++)
        for (int i = 0; i < rows; i++) {
            double sum = c[i * lc + j];
            for (int64_t l = 0; l < k; l++)
                sum -= a[i * la + l] * b[l * lb + j];
            c[i * lc + j] = sum;
        }
}

static void NAME(subtract)(double *c, int64_t lc, const double *a, int64_t la, const double *b, int64_t lb, int64_t m,
                           int64_t n, int64_t k)
{
    for (int64_t l = 0; l < k; l += DEEP)
        for (int64_t j = 0; j < n; j += WIDE) {
            int64_t deep = k - l < DEEP ? k - l : DEEP, wide = n - j < WIDE ? n - j : WIDE, i = 0;
            for (; i + ROWS <= m; i += ROWS)
                NAME(rows)(ROWS, c + i * lc + j, lc, a + i * la + l, la, b + l * lb + j, lb, wide, deep);
            for (; i < m; i++)
                NAME(rows)(1, c + i * lc + j, lc, a + i * la + l, la, b + l * lb + j, lb, wide, deep);
        }
}

static double NAME(dot)(const double *x, const double *y, int64_t n)
{
    PART sums[PARTS] = {{0}};
    double rest = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        EACH_PART
    sums[p] += NAME(load)(x + i + p * LANES) * NAME(load)(y + i + p * LANES);
    for (; i < n; i++)
        rest += x[i] * y[i];
    return NAME(sum_of)(sums, rest);
}

static void NAME(add)(double *to, double factor, const double *x, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        NAME(store)(to + i, NAME(load)(to + i) + factor * NAME(load)(x + i));
    for (; i < n; i++)
        to[i] += factor * x[i];
}

static double NAME(add_two)(double *to, double f, const double *x, double g, const double *y, const double *z,
                            int64_t n)
{
    PART sums[PARTS] = {{0}};
    double rest = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        EACH_PART
        {
            int64_t at = i + p * LANES;
            PART now = NAME(load)(to + at) + (f * NAME(load)(x + at) + g * NAME(load)(y + at));
            NAME(store)(to + at, now);
            sums[p] += now * NAME(load)(z + at);
        }
    for (; i < n; i++) {
        to[i] += f * x[i] + g * y[i];
        rest += to[i] * z[i];
    }
    return NAME(sum_of)(sums, rest);
}

static void NAME(turn)(double *x, double *y, double c, double s, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        PART a = NAME(load)(x + i), b = NAME(load)(y + i);
        NAME(store)(x + i, c * a - s * b);
        NAME(store)(y + i, s * a + c * b);
    }
    for (; i < n; i++) {
        double a = x[i], b = y[i];
        x[i] = c * a - s * b;
        y[i] = s * a + c * b;
    }
}

#define TYPE float
#define NUMBER float
#define OF(f) NAME(f##_float)
#include "device/cpu/plain/panel.inl"
#define TYPE double
#define NUMBER double
#define OF(f) NAME(f##_double)
#include "device/cpu/plain/panel.inl"
#define TYPE int32_t
#define NUMBER uint32_t
#define OF(f) NAME(f##_int32)
#include "device/cpu/plain/panel.inl"
#define TYPE int64_t
#define NUMBER uint64_t
#define OF(f) NAME(f##_int64)
#include "device/cpu/plain/panel.inl"

static const twi_products NAME(products) = {
    UNIT,
    NAME(subtract),
    NAME(dot),
    NAME(add),
    NAME(add_two),
    NAME(turn),
    NAME(panel_float),
    NAME(panel_double),
    NAME(panel_int32),
    NAME(panel_int64),
};

#undef PART
#undef LANES
#undef PARTS
#undef EACH_PART
#undef INLINE
#undef BYTES
#undef UNIT
#undef NAME
