/* vector.h - a vector of numbers at a time, as wide as TWI_VECTOR_BYTES says.
 * Lives here:  loads and stores of float and bfloat16, comparisons, roots, exponentials.
 * Never here:  loops. Included by loops.inl alone, whose build decides what instructions there are. */
#ifndef TWI_VECTOR_H
#define TWI_VECTOR_H

#include "device/cpu/vector/loops.h" /* twi_form */

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { TWI_LANES = TWI_VECTOR_BYTES / 4 };

typedef float twi_floats __attribute__((vector_size(TWI_VECTOR_BYTES)));
typedef int32_t twi_ints __attribute__((vector_size(TWI_VECTOR_BYTES)));
typedef uint32_t twi_words __attribute__((vector_size(TWI_VECTOR_BYTES)));
typedef uint16_t twi_halves __attribute__((vector_size(TWI_VECTOR_BYTES / 2)));
typedef uint8_t twi_bytes __attribute__((vector_size(TWI_VECTOR_BYTES / 4)));

typedef float twi_singles __attribute__((vector_size(TWI_VECTOR_BYTES / 2))); /* as many as there are doubles */
typedef double twi_doubles __attribute__((vector_size(TWI_VECTOR_BYTES)));

typedef uint64_t twi_longs __attribute__((vector_size(TWI_VECTOR_BYTES)));

#define TWI_INLINE __attribute__((always_inline))

/* ---- loads and stores -------------------------------------------------------------------------------------- */

static inline TWI_INLINE size_t twi_form_bytes(twi_form form)
{
    return form == TWI_BFLOATS ? 2 : 4;
}

/* Changes of width. What __builtin_convertvector() says, but GCC 12 makes several instructions of it where the CPU has
 * one, and takes one from four bytes to one apart into single numbers. */
#if defined(__AVX512F__) && TWI_VECTOR_BYTES == 64

static inline TWI_INLINE twi_ints twi_ints_of_bytes(twi_bytes bytes)
{
    return (twi_ints)_mm512_cvtepu8_epi32((__m128i)bytes);
}

static inline TWI_INLINE twi_bytes twi_bytes_of_ints(twi_ints ints)
{
    return (twi_bytes)_mm512_cvtepi32_epi8((__m512i)ints);
}

static inline TWI_INLINE twi_words twi_words_of_halves(twi_halves halves)
{
    return (twi_words)_mm512_cvtepu16_epi32((__m256i)halves);
}

static inline TWI_INLINE twi_halves twi_halves_of_words(twi_words words)
{
    return (twi_halves)_mm512_cvtepi32_epi16((__m512i)words);
}

#else

static inline TWI_INLINE twi_ints twi_ints_of_bytes(twi_bytes bytes)
{
    return __builtin_convertvector(__builtin_convertvector(bytes, twi_halves), twi_ints);
}

static inline TWI_INLINE twi_bytes twi_bytes_of_ints(twi_ints ints)
{
    return __builtin_convertvector(__builtin_convertvector(ints, twi_halves), twi_bytes);
}

static inline TWI_INLINE twi_words twi_words_of_halves(twi_halves halves)
{
    return __builtin_convertvector(halves, twi_words);
}

static inline TWI_INLINE twi_halves twi_halves_of_words(twi_words words)
{
    return __builtin_convertvector(words, twi_halves);
}

#endif

static inline TWI_INLINE twi_floats twi_widen(twi_halves halves)
{
    return (twi_floats)(twi_words_of_halves(halves) << 16);
}

/* To the nearest, ties to even; a NaN stays one. */
static inline TWI_INLINE twi_halves twi_narrow(twi_floats x)
{
    twi_words bits = (twi_words)x;
    twi_words rounded = bits + 0x7fff + ((bits >> 16) & 1);
    twi_words nan = (twi_words)(x != x);
    rounded = (nan & (bits | 0x400000)) | (~nan & rounded);
    return twi_halves_of_words(rounded >> 16);
}

/* How many lanes of a vector are meant. `all` is a constant wherever it is inlined, so that no choice is left. */
typedef struct twi_lanes {
    bool all;
    int count;
} twi_lanes;

#define TWI_ALL ((twi_lanes){true, TWI_LANES})
#define TWI_FIRST(n) ((twi_lanes){false, (int)(n)})

/* Lanes at element i of p and after; others are 0 and are not read. */
static inline TWI_INLINE twi_floats twi_load_some(twi_form form, const void *p, int64_t i, twi_lanes lanes)
{
    if (form == TWI_BFLOATS) {
        twi_halves halves = {0};
        memcpy(&halves, (const uint16_t *)p + i, (size_t)lanes.count * 2);
        return twi_widen(halves);
    }
    twi_floats x = {0};
#if defined(__AVX512F__) && TWI_VECTOR_BYTES == 64
    if (!lanes.all)
        return (twi_floats)_mm512_maskz_loadu_ps((__mmask16)((1u << lanes.count) - 1), (const float *)p + i);
#endif
    memcpy(&x, (const float *)p + i, (size_t)lanes.count * 4);
    return x;
}

static inline TWI_INLINE void twi_store_some(twi_form form, void *p, int64_t i, twi_floats x, twi_lanes lanes)
{
    if (form == TWI_BFLOATS) {
        twi_halves halves = twi_narrow(x);
        memcpy((uint16_t *)p + i, &halves, (size_t)lanes.count * 2);
        return;
    }
#if defined(__AVX512F__) && TWI_VECTOR_BYTES == 64
    if (!lanes.all) {
        _mm512_mask_storeu_ps((float *)p + i, (__mmask16)((1u << lanes.count) - 1), (__m512)x);
        return;
    }
#endif
    memcpy((float *)p + i, &x, (size_t)lanes.count * 4);
}

static inline TWI_INLINE twi_floats twi_load(twi_form form, const void *p, int64_t i)
{
    return twi_load_some(form, p, i, TWI_ALL);
}

static inline TWI_INLINE void twi_store(twi_form form, void *p, int64_t i, twi_floats x)
{
    twi_store_some(form, p, i, x, TWI_ALL);
}

/* ---- arithmetic -------------------------------------------------------------------------------------------- */

/* yes where the mask (of a comparison) is set, no elsewhere */
static inline TWI_INLINE twi_floats twi_choose(twi_ints mask, twi_floats yes, twi_floats no)
{
    return (twi_floats)((mask & (twi_ints)yes) | (~mask & (twi_ints)no));
}

/* x where the mask is set, 0 elsewhere */
static inline TWI_INLINE twi_floats twi_pass(twi_ints mask, twi_floats x)
{
    return (twi_floats)(mask & (twi_ints)x);
}

/* e^x to two units in the last place where that is a normal number, 2^-by times it for a whole number `by` within
 * reach; below, 0, above, infinity. A NaN stays one. In powers of two: x = n ln 2 + r, and a polynomial for e^r, |r| <=
 * ln 2 / 2. */
static inline TWI_INLINE twi_floats twi_scaled_exp(twi_floats x, twi_ints by)
{
    twi_floats least = (twi_floats){0} - 87.3f, bounded = twi_choose(x < least, least, x);
    twi_floats shifted = bounded * 1.44269504f + 12582912.f; /* rounds to a whole number, which its low bits are */
    twi_floats n = shifted - 12582912.f;
    twi_floats r = bounded - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    twi_floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1;
    twi_floats y = (twi_floats)((twi_ints)p + (((twi_ints)shifted - by) << 23));
    return twi_choose(x != x, x, twi_pass(x >= least, y));
}

static inline TWI_INLINE twi_floats twi_exp_of_negative(twi_floats x)
{
    return twi_scaled_exp(x, (twi_ints){0});
}

/* Of numbers above 0 a power of two is left out and multiplied in last, which gives infinity where it should. */
static inline TWI_INLINE twi_floats twi_exp(twi_floats x)
{
    twi_ints large = x > 0;
    twi_floats most = (twi_floats){0} + 89, one = (twi_floats){0} + 1;
    return twi_scaled_exp(twi_choose(x > most, most, x), large & 64) * twi_choose(large, one * 0x1p64f, one);
}

static inline TWI_INLINE twi_floats twi_magnitude(twi_floats x)
{
    return (twi_floats)((twi_ints)x & 0x7fffffff);
}

/* To two units in the last place: from e^-2|x|, near 0 x + x^3 P(x^2). The polynomial was fitted for |x| <= 0.6. */
static inline TWI_INLINE twi_floats twi_tanh(twi_floats x)
{
    twi_floats a = twi_magnitude(x), e = twi_exp_of_negative(-2 * a), u = x * x;
    twi_floats p = u * -0.0059058396f + 0.020805359f;
    p = p * u - 0.053786676f;
    p = p * u + 0.13331959f;
    p = p * u - 0.333333f;
    twi_floats y = twi_choose(a < 0.6f, a + a * (u * p), (1 - e) / (1 + e));
    return (twi_floats)((twi_ints)y | ((twi_ints)x & (int32_t)0x80000000));
}

static inline TWI_INLINE twi_floats twi_sigmoid(twi_floats x)
{
    twi_floats e = twi_exp_of_negative(-twi_magnitude(x)), one = (twi_floats){0} + 1;
    return twi_choose(x < 0, e, one) / (one + e);
}

static inline TWI_INLINE twi_floats twi_with_sign(twi_floats magnitude, twi_floats of)
{
    return (twi_floats)((twi_ints)magnitude | ((twi_ints)of & (int32_t)0x80000000));
}

/* To three units in the last place: x = 2^n m, sqrt(1/2) <= m < sqrt(2), and the series of log m = 2 artanh(s) for
 * s = (m - 1) / (m + 1). */
static inline TWI_INLINE twi_floats twi_log(twi_floats x)
{
    twi_ints small = x < 0x1p-126f;
    twi_floats one = (twi_floats){0} + 1, scaled = x * twi_choose(small, one * 0x1p23f, one);
    twi_ints n = (twi_ints)((twi_words)scaled - 0x3f3504f3u) >> 23;
    twi_floats m = (twi_floats)((twi_words)scaled - ((twi_words)n << 23)), f = m - 1, s = f / (2 + f), u = s * s;
    twi_floats e = __builtin_convertvector(n, twi_floats) - twi_choose(small, one * 23, one * 0);
    twi_floats p = u * 0.222222222f + 0.285714286f;
    p = p * u + 0.4f;
    p = p * u + 0.666666667f;
    twi_floats y = e * 0.693359375f + (s * (2 + u * p) - e * 2.12194440e-4f);
    y = twi_choose(x == 0, one * -__builtin_inff(), y);
    y = twi_choose(x == __builtin_inff(), x, y);
    return twi_choose((x < 0) | (x != x), one * __builtin_nanf(""), y);
}

/* log(1 + e^x), to four units in the last place: what 1 + e^-|x| is rounded by is made good. */
static inline TWI_INLINE twi_floats twi_softplus(twi_floats x)
{
    twi_floats e = twi_exp_of_negative(-twi_magnitude(x)), sum = 1 + e;
    return twi_choose(x < 0, (twi_floats){0}, x) + (twi_log(sum) + (e - (sum - 1)) / sum);
}

/* e^x - 1, to three units in the last place; near 0 its series. */
static inline TWI_INLINE twi_floats twi_expm1(twi_floats x)
{
    twi_ints near = twi_magnitude(x) <= 0.7f;
    twi_floats bounded = twi_pass(near, x);
    twi_floats p = bounded * 2.75573192e-06f + 2.48015873e-05f;
    p = p * bounded + 0.000198412698f;
    p = p * bounded + 0.00138888889f;
    p = p * bounded + 0.00833333333f;
    p = p * bounded + 0.0416666667f;
    p = p * bounded + 0.166666667f;
    p = p * bounded + 0.5f;
    p = p * bounded + 1;
    return twi_choose(near, p * bounded, twi_exp(x) - 1);
}

/* The series of 2 / sqrt(pi) times the integral of e^-t^2 from 0 to x, for |x| <= 1. */
static inline TWI_INLINE twi_floats twi_erf_near_0(twi_floats x)
{
    twi_floats u = x * x;
    twi_floats p = u * -1.63658447e-07f + 1.64621144e-06f;
    p = p * u - 1.49256504e-05f;
    p = p * u + 0.00012055333f;
    p = p * u - 0.000854832702f;
    p = p * u + 0.00522397763f;
    p = p * u - 0.0268661706f;
    p = p * u + 0.112837917f;
    p = p * u - 0.376126389f;
    p = p * u + 1.12837917f;
    return p * x;
}

/* What is left of 1 from there, for 1/2 <= x: e^-x^2 Q(1 / (1 + x)) with a polynomial that was fitted for x <= 10.
 * Where it is wanted to the last places the square is taken in two parts, for what it is rounded by would show. */
static inline TWI_INLINE twi_floats twi_erfc_far(twi_floats x, bool exact)
{
    twi_floats t = 1 / (1 + x), high = exact ? (twi_floats)((twi_ints)x & (int32_t)0xfffff000) : x;
    twi_floats q = t * 0.784939326f - 2.81707699f;
    q = q * t + 4.00983831f;
    q = q * t - 2.49002974f;
    q = q * t + 0.170193557f;
    q = q * t + 0.211080894f;
    q = q * t + 0.570956199f;
    q = q * t + 0.563832562f;
    q = q * t + 7.96780505e-06f;
    q *= twi_exp_of_negative(-(high * high));
    return exact ? q * twi_exp_of_negative(-((x - high) * (x + high))) : q;
}

/* To three units in the last place. */
static inline TWI_INLINE twi_floats twi_erf(twi_floats x)
{
    twi_floats a = twi_magnitude(x), one = (twi_floats){0} + 1;
    twi_floats y = twi_choose(a < 1, twi_erf_near_0(a), twi_choose(a < 4, one - twi_erfc_far(a, false), one));
    return twi_choose(x != x, x, twi_with_sign(y, x));
}

/* To six. */
static inline TWI_INLINE twi_floats twi_erfc(twi_floats x)
{
    twi_floats a = twi_magnitude(x), zero = {0}, far = twi_choose(a < 10, twi_erfc_far(a, true), zero);
    twi_floats y = twi_choose(a < 0.5f, 1 - twi_erf_near_0(x), twi_choose(x < 0, 2 - far, far));
    return twi_choose(x != x, x, y);
}

static inline TWI_INLINE twi_floats twi_sign(twi_floats x)
{
    twi_floats one = (twi_floats){0} + 1;
    return twi_choose(x != x, x, twi_choose(x > 0, one, twi_pass(x < 0, -one)));
}

static inline TWI_INLINE twi_floats twi_sqrt(twi_floats x)
{
#if defined(__AVX512F__) && TWI_VECTOR_BYTES == 64
    return (twi_floats)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__) && TWI_VECTOR_BYTES == 32
    return (twi_floats)_mm256_sqrt_ps((__m256)x);
#else
    for (int i = 0; i < TWI_LANES; i++)
        x[i] = __builtin_sqrtf(x[i]);
    return x;
#endif
}

/* ---- whole numbers ----------------------------------------------------------------------------------------- */

/* Numbers of 2^23 and more are whole, and of NaN and infinities there is nothing to be rounded. */
static inline TWI_INLINE twi_floats twi_floor(twi_floats x)
{
    twi_ints small = twi_magnitude(x) < 0x1p23f;
    twi_floats whole = __builtin_convertvector(__builtin_convertvector(twi_pass(small, x), twi_ints), twi_floats);
    return twi_choose(small, twi_with_sign(twi_magnitude(whole - twi_pass(whole > x, (twi_floats){0} + 1)), x), x);
}

/* Halves to the even one. */
static inline TWI_INLINE twi_floats twi_rint(twi_floats x)
{
    twi_floats a = twi_magnitude(x);
    return twi_choose(a < 0x1p23f, twi_with_sign(a + 0x1p23f - 0x1p23f, x), x);
}

/* ---- angles ------------------------------------------------------------------------------------------------ */

static inline TWI_INLINE bool twi_any(twi_ints mask)
{
#if defined(__AVX512F__) && TWI_VECTOR_BYTES == 64
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__) && TWI_VECTOR_BYTES == 32
    return _mm256_movemask_ps((__m256)mask) != 0;
#else
    twi_longs longs = (twi_longs)mask;
    uint64_t any = 0;
    for (int i = 0; i < TWI_LANES / 2; i++)
        any |= longs[i];
    return any != 0;
#endif
}

/* The sine of x + turn pi / 2, for |x| < 2^20: x = n pi / 2 + r, in double, where n times the first 33 bits of pi / 2
 * is exact; and the series of sine and cosine for |r| <= pi / 4. */
static inline TWI_INLINE twi_singles twi_near_sine(twi_singles x, uint64_t turn)
{
    twi_doubles d = __builtin_convertvector(x, twi_doubles), shifted = d * 0.63661977236758134 + 0x1.8p52;
    twi_doubles n = shifted - 0x1.8p52, r = d - n * 0x1.921fb544p0 - n * 0x1.0b4611a626331p-34, u = r * r;
    twi_longs quarter = (twi_longs)shifted + turn, odd = 0 - (quarter & 1);
    twi_doubles s = u * (1.0 / 362880) - 1.0 / 5040, c = u * (-1.0 / 3628800) + 1.0 / 40320;
    s = s * u + 1.0 / 120;
    s = s * u - 1.0 / 6;
    s = r * (s * u + 1);
    c = c * u - 1.0 / 720;
    c = c * u + 1.0 / 24;
    c = c * u - 0.5;
    c = c * u + 1;
    twi_longs y = ((twi_longs)c & odd) | ((twi_longs)s & ~odd);
    return __builtin_convertvector((twi_doubles)(y ^ (quarter & 2) << 62), twi_singles);
}

/* To one unit in the last place; what is far from 0 the C library turns around. */
static inline TWI_INLINE twi_floats twi_sine(twi_floats x, bool is_cosine)
{
    twi_singles halves[2];
    twi_ints far = ~(twi_magnitude(x) < 0x1p20f);
    twi_floats y;
    memcpy(halves, &x, sizeof x);
    for (int i = 0; i < 2; i++)
        halves[i] = twi_near_sine(halves[i], is_cosine);
    memcpy(&y, halves, sizeof y);
    for (int i = 0; i < TWI_LANES && twi_any(far); i++)
        if (far[i])
            y[i] = (float)(is_cosine ? __builtin_cos((double)x[i]) : __builtin_sin((double)x[i]));
    return y;
}

/* To three units in the last place: the angle of the smaller by the larger, or, where they are nearly as large, of what
 * they differ by by their sum, which is pi / 4 less; a polynomial that was fitted for at most tan(pi / 8). */
static inline TWI_INLINE twi_floats twi_atan2(twi_floats y, twi_floats x)
{
    twi_floats one = (twi_floats){0} + 1, a = twi_magnitude(x), b = twi_magnitude(y);
    twi_ints steep = b > a, endless = (a == __builtin_inff()) & (b == __builtin_inff());
    twi_floats most = twi_choose(steep, b, a), least = twi_choose(steep, a, b);
    most = twi_choose(endless | (most == 0), one, most);
    least = twi_choose(endless, one, least);
    twi_floats unit = twi_choose(most > 0x1p126f, one * 0x1p-2f, one); /* their sum must not be infinite */
    most *= unit, least *= unit;
    twi_ints wide = least > most * 0.41421356f;
    twi_floats t = twi_choose(wide, least - most, least) / twi_choose(wide, least + most, most), u = t * t;
    twi_floats p = u * 0.0805372132f - 0.138776783f;
    p = p * u + 0.1997771f;
    p = p * u - 0.333329491f;
    twi_floats angle = t + t * (u * p);
    angle = twi_choose(wide, angle + 0.785398163f, angle);
    angle = twi_choose(steep, 1.57079633f - angle, angle);
    angle = twi_choose((twi_ints)x < 0, 3.14159265f - angle, angle); /* -0, too */
    return twi_choose((x != x) | (y != y), x + y, twi_with_sign(angle, y));
}

/* log(1 + x), to four units in the last place: what 1 + x is rounded by is made good. */
static inline TWI_INLINE twi_floats twi_log1p(twi_floats x)
{
    twi_floats sum = 1 + x, y = twi_log(sum) + (x - (sum - 1)) / sum;
    return twi_choose((x == 0) | (x == __builtin_inff()), x, twi_choose(sum == 0, twi_log(sum), y));
}

/* (log(1 + x) - log(1 - x)) / 2, to five. */
static inline TWI_INLINE twi_floats twi_atanh(twi_floats x)
{
    twi_floats a = twi_magnitude(x);
    return twi_with_sign(twi_magnitude(0.5f * twi_log1p(2 * a / (1 - a))), x);
}

/* Of |x| the arc sine, or, where |x| > 1/2, half of what it lacks to pi / 2; a polynomial that was fitted up to 1/2. */
static inline TWI_INLINE twi_floats twi_small_asin(twi_floats x)
{
    twi_floats a = twi_magnitude(x), u = twi_choose(a > 0.5f, (1 - a) * 0.5f, a * a);
    twi_floats s = twi_choose(a > 0.5f, twi_sqrt(u), a);
    twi_floats p = u * 0.0336908472f + 0.0171492384f;
    p = p * u + 0.0311006627f;
    p = p * u + 0.0445994015f;
    p = p * u + 0.0750009454f;
    p = p * u + 0.166666663f;
    return s + s * (u * p);
}

/* To two units in the last place; NaN beyond 1. */
static inline TWI_INLINE twi_floats twi_asin(twi_floats x)
{
    twi_floats y = twi_small_asin(x), a = twi_magnitude(x);
    y = twi_choose(a > 0.5f, 1.57079633f - (2 * y + 4.37113883e-8f), y);
    return twi_choose(x != x, x, twi_with_sign(y, x));
}

/* Likewise. */
static inline TWI_INLINE twi_floats twi_acos(twi_floats x)
{
    twi_floats y = twi_small_asin(x), a = twi_magnitude(x);
    twi_floats far = twi_choose(x < 0, 3.14159265f - (2 * y + 8.74227766e-8f), 2 * y);
    twi_floats near = 1.57079633f - (twi_with_sign(y, x) + 4.37113883e-8f);
    return twi_choose(x != x, x, twi_choose(a > 0.5f, far, near));
}

/* The products of the low halves. GCC 12 multiplies all of both, for which there is no fast instruction. */
static inline TWI_INLINE twi_longs twi_product_of_words(twi_longs a, uint32_t b)
{
#if defined(__AVX512F__) && TWI_VECTOR_BYTES == 64
    return (twi_longs)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(b));
#elif defined(__AVX2__) && TWI_VECTOR_BYTES == 32
    return (twi_longs)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#else
    return (a & 0xffffffffu) * (uint64_t)b;
#endif
}

/* 1 / sqrt(x) to two units in the last place for normal x > 0: a guess from the exponent, then Newton's steps. */
static inline TWI_INLINE twi_floats twi_rsqrt(twi_floats x)
{
    twi_floats half = x * 0.5f;
    twi_floats y = (twi_floats)(0x5f375a86 - ((twi_ints)x >> 1));
    y = y * (1.5f - half * y * y);
    y = y * (1.5f - half * y * y);
    y = y * (1.5f - half * y * y);
    return y;
}

#endif
