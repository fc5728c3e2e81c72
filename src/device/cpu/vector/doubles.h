/* doubles.h - functions of a vector of doubles at a time, as vector.h has them of floats.
 * Lives here:  exponentials, logarithms and angles. Each says how far it is off, in units in the last place.
 * Never here:  loops. Included by loops.inl alone. */
#ifndef TWI_DOUBLES_H
#define TWI_DOUBLES_H

#include "device/cpu/vector/vector.h"

enum { TWI_DOUBLE_LANES = TWI_VECTOR_BYTES / 8 };

typedef int64_t twi_double_mask __attribute__((vector_size(TWI_VECTOR_BYTES))); /* of a comparison */

static inline TWI_INLINE twi_doubles twi_double_choose(twi_double_mask mask, twi_doubles yes, twi_doubles no)
{
    return (twi_doubles)((mask & (twi_double_mask)yes) | (~mask & (twi_double_mask)no));
}

static inline TWI_INLINE twi_doubles twi_double_magnitude(twi_doubles x)
{
    return (twi_doubles)((twi_longs)x & INT64_MAX);
}

static inline TWI_INLINE twi_doubles twi_double_with_sign(twi_doubles magnitude, twi_doubles of)
{
    return (twi_doubles)((twi_longs)magnitude | ((twi_longs)of & (1ull << 63)));
}

static inline TWI_INLINE twi_doubles twi_double_sqrt(twi_doubles x)
{
#if defined(__AVX512F__) && TWI_VECTOR_BYTES == 64
    return (twi_doubles)_mm512_sqrt_pd((__m512d)x);
#elif defined(__AVX2__) && TWI_VECTOR_BYTES == 32
    return (twi_doubles)_mm256_sqrt_pd((__m256d)x);
#else
    for (int i = 0; i < TWI_DOUBLE_LANES; i++)
        x[i] = __builtin_sqrt(x[i]);
    return x;
#endif
}

/* ---- whole numbers ----------------------------------------------------------------------------------------- */

/* Halves to the even one; numbers of 2^52 and more are whole. */
static inline TWI_INLINE twi_doubles twi_double_rint(twi_doubles x)
{
    twi_doubles a = twi_double_magnitude(x);
    return twi_double_choose(a < 0x1p52, twi_double_with_sign(a + 0x1p52 - 0x1p52, x), x);
}

static inline TWI_INLINE twi_doubles twi_double_floor(twi_doubles x)
{
    twi_doubles near = twi_double_rint(x), one = (twi_doubles){0} + 1;
    twi_doubles below = near - twi_double_choose(near > x, one, one * 0);
    return twi_double_choose(near == x, x, twi_double_with_sign(twi_double_magnitude(below), x));
}

/* ---- exponentials ------------------------------------------------------------------------------------------ */

/* 2^n for a whole n from -1022 to 1023, of n + MAGIC, whose low bits are n. */
#define TWI_DOUBLE_MAGIC 0x1.8p52
static inline TWI_INLINE twi_doubles twi_double_power_of_2(twi_doubles shifted)
{
    return (twi_doubles)(((twi_longs)shifted + 1023) << 52);
}

/* e^x = (1 + rest) * first * second, where these are powers of two; each is a normal number, however small e^x. */
typedef struct twi_exponential {
    twi_doubles rest, first, second, inverse; /* inverse: 1 / second */
} twi_exponential;

/* x = n ln 2 + r, |r| <= ln 2 / 2, where n times the first 32 bits of ln 2 is exact; and a polynomial that was
 * fitted. */
static inline TWI_INLINE twi_exponential twi_double_exponential(twi_doubles x)
{
    twi_doubles most = (twi_doubles){0} + 710, least = (twi_doubles){0} - 746;
    x = twi_double_choose(x > most, most, twi_double_choose(x < least, least, x));
    twi_doubles n = x * 0x1.71547652b82fep0 + TWI_DOUBLE_MAGIC - TWI_DOUBLE_MAGIC;
    twi_doubles r = x - n * 0x1.62e42feep-1 - n * 0x1.a39ef35793c76p-33;
    twi_doubles p = r * 0x1.1f731ea5352cap-29 + 0x1.af4e196027428p-26;
    p = p * r + 0x1.27e4db57442fbp-22;
    p = p * r + 0x1.71de021a90822p-19;
    p = p * r + 0x1.a01a01a6dcaffp-16;
    p = p * r + 0x1.a01a01abef415p-13;
    p = p * r + 0x1.6c16c16c162ccp-10;
    p = p * r + 0x1.11111111100cep-7;
    p = p * r + 0x1.5555555555556p-5;
    p = p * r + 0x1.5555555555557p-3;
    p = p * r + 0.5;
    twi_doubles shifted = n * 0.5 + TWI_DOUBLE_MAGIC, others = n - (shifted - TWI_DOUBLE_MAGIC);
    return (twi_exponential){r + r * r * p, twi_double_power_of_2(shifted),
                             twi_double_power_of_2(TWI_DOUBLE_MAGIC + others),
                             twi_double_power_of_2(TWI_DOUBLE_MAGIC - others)};
}

/* To one unit in the last place. */
static inline TWI_INLINE twi_doubles twi_double_exp(twi_doubles x)
{
    twi_exponential e = twi_double_exponential(x);
    return twi_double_choose(x != x, x, (1 + e.rest) * e.first * e.second);
}

/* To two units. */
static inline TWI_INLINE twi_doubles twi_double_expm1(twi_doubles x)
{
    twi_exponential e = twi_double_exponential(x);
    twi_doubles y = (e.first - e.inverse + e.rest * e.first) * e.second;
    return twi_double_choose((x != x) | (x == 0), x, y);
}

/* To three. */
static inline TWI_INLINE twi_doubles twi_double_tanh(twi_doubles x)
{
    twi_doubles t = twi_double_expm1(-2 * twi_double_magnitude(x));
    return twi_double_choose(x != x, x, twi_double_with_sign(twi_double_magnitude(t / (t + 2)), x));
}

/* To three. */
static inline TWI_INLINE twi_doubles twi_double_sigmoid(twi_doubles x)
{
    twi_doubles e = twi_double_exp(-twi_double_magnitude(x)), one = (twi_doubles){0} + 1;
    return twi_double_choose(x != x, x, twi_double_choose(x < 0, e, one) / (one + e));
}

/* ---- logarithms -------------------------------------------------------------------------------------------- */

/* To one unit: x = 2^n m, sqrt(1/2) <= m < sqrt(2), and log m = 2 artanh(s) for s = (m - 1) / (m + 1), whose series was
 * fitted; 2 s is m - 1 - s (m - 1). */
static inline TWI_INLINE twi_doubles twi_double_log(twi_doubles x)
{
    twi_double_mask small = x < 0x1p-1022;
    twi_doubles one = (twi_doubles){0} + 1, zero = {0}, scaled = x * twi_double_choose(small, one * 0x1p54, one);
    twi_longs exponent = ((twi_longs)scaled - 0x3fe6a09e667f3bcdull + (1023ull << 52)) >> 52; /* n + 1023 */
    twi_doubles n = (twi_doubles)(exponent | 0x4330000000000000ull) - (0x1p52 + 1023);
    twi_doubles f = (twi_doubles)((twi_longs)scaled - ((exponent - 1023) << 52)) - 1, s = f / (2 + f), u = s * s;
    twi_doubles p = u * 0x1.0c06cf14c641bp-3 + 0x1.0fbe478772696p-3;
    p = p * u + 0x1.3b1c38474d3eep-3;
    p = p * u + 0x1.745cf8f6c9119p-3;
    p = p * u + 0x1.c71c72017a15cp-3;
    p = p * u + 0x1.2492492476ba1p-2;
    p = p * u + 0x1.9999999999a38p-2;
    p = p * u + 0x1.5555555555555p-1;
    n -= twi_double_choose(small, one * 54, zero);
    twi_doubles y = n * 0x1.62e42feep-1 + (f - (s * (f - u * p) - n * 0x1.a39ef35793c76p-33));
    y = twi_double_choose(x == 0, one * -__builtin_inf(), y);
    y = twi_double_choose(x == __builtin_inf(), x, y);
    return twi_double_choose((x < 0) | (x != x), one * __builtin_nan(""), y);
}

/* To two: what 1 + x is rounded by is made good. */
static inline TWI_INLINE twi_doubles twi_double_log1p(twi_doubles x)
{
    twi_doubles sum = 1 + x, log = twi_double_log(sum), y = log + (x - (sum - 1)) / sum;
    return twi_double_choose((x == 0) | (x == __builtin_inf()), x, twi_double_choose(sum == 0, log, y));
}

/* log(1 + e^x), to three. */
static inline TWI_INLINE twi_doubles twi_double_softplus(twi_doubles x)
{
    twi_doubles zero = {0}, e = twi_double_exp(-twi_double_magnitude(x));
    return twi_double_choose(x < 0, zero, x) + twi_double_log1p(e);
}

/* ---- angles ------------------------------------------------------------------------------------------------ */

/* To two: as twi_atan2() does it. */
static inline TWI_INLINE twi_doubles twi_double_atan2(twi_doubles y, twi_doubles x)
{
    twi_doubles one = (twi_doubles){0} + 1, a = twi_double_magnitude(x), b = twi_double_magnitude(y);
    twi_double_mask steep = b > a, endless = (a == __builtin_inf()) & (b == __builtin_inf());
    twi_doubles most = twi_double_choose(steep, b, a), least = twi_double_choose(steep, a, b);
    most = twi_double_choose(endless | (most == 0), one, most);
    least = twi_double_choose(endless, one, least);
    twi_doubles unit = twi_double_choose(most > 0x1p1022, one * 0x1p-2, one); /* their sum must not be infinite */
    most *= unit, least *= unit;
    twi_double_mask wide = least > most * 0.41421356237309503;
    twi_doubles t = twi_double_choose(wide, least - most, least) / twi_double_choose(wide, least + most, most);
    twi_doubles u = t * t;
    twi_doubles p = u * 0x1.0ad10221730d6p-6 - 0x1.1b32a3266af2ep-5;
    p = p * u + 0x1.74dd67f0d3109p-5;
    p = p * u - 0x1.ac7a7bd8f05c0p-5;
    p = p * u + 0x1.e19a10824a50bp-5;
    p = p * u - 0x1.110e87e6a8722p-4;
    p = p * u + 0x1.3b1392d7e8f74p-4;
    p = p * u - 0x1.745d165de250bp-4;
    p = p * u + 0x1.c71c71c3045bap-4;
    p = p * u - 0x1.249249248d7e6p-3;
    p = p * u + 0x1.9999999999953p-3;
    p = p * u - 0x1.5555555555555p-2;
    twi_doubles angle = t + t * (u * p);
    angle = twi_double_choose(wide, 0x1.921fb54442d18p-1 + (angle + 0x1.1a62633145c07p-55), angle);
    angle = twi_double_choose(steep, 0x1.921fb54442d18p0 - (angle - 0x1.1a62633145c07p-54), angle);
    angle = twi_double_choose((twi_double_mask)x < 0, 0x1.921fb54442d18p1 - (angle - 0x1.1a62633145c07p-53), angle);
    return twi_double_choose((x != x) | (y != y), x + y, twi_double_with_sign(angle, y));
}

#endif
