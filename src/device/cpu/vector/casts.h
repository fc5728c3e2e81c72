/* casts.h - what becomes of an element where the result has another type: Cast between the types that programs mostly
 * have, and what is asked of floats.
 * Lives here:  the list of them, of which loops.inl makes a loop each, and casts.c a row.
 * Never here:  the loops, float to bfloat16 and back (vector.h). The row "plain" has all other pairs (elementwise.c),
 * and of these the same results, but that it takes large integers to float by way of double.
 *
 * All is written for loops without branches, which compilers turn into vectors. */
#ifndef TWI_CASTS_H
#define TWI_CASTS_H

#include <stdint.h>
#include <string.h>

/* Without a branch, as tw_half_to_float(): the exponent is moved by a product, which makes subnormal numbers normal. */
static inline float twi_widen_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = (uint32_t)(half & 0x7fff) << 13, bits;
    float value;
    memcpy(&value, &magnitude, sizeof value);
    value *= 0x1p112f;
    memcpy(&bits, &value, sizeof bits);
    bits = magnitude >= 0xf800000u ? magnitude | 0x7f800000u : bits; /* infinities, NaN */
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Likewise tw_float_to_half(): the sum with a half rounds what will be subnormal. */
static inline uint16_t twi_narrow_float(float value)
{
    uint32_t bits, magnitude, small_bits;
    float small;
    memcpy(&bits, &value, sizeof bits);
    magnitude = bits & 0x7fffffffu;
    memcpy(&small, &magnitude, sizeof small);
    small += 0.5f;
    memcpy(&small_bits, &small, sizeof small_bits);
    uint32_t normal = (magnitude - 0x38000000u + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t half = magnitude < 0x38800000u ? small_bits - 0x3f000000u : normal;
    half = magnitude >= 0x477ff000u ? 0x7c00 : half;
    half = magnitude > 0x7f800000u ? 0x7e00 : half;
    return (uint16_t)(half | (bits >> 16 & 0x8000));
}

static inline float twi_widen_bfloat16(uint16_t narrow)
{
    uint32_t bits = (uint32_t)narrow << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* As tw_float_to_bfloat16(). */
static inline uint16_t twi_narrow_to_bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16, nan = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/* Of floats above 0 the bits have the same order as the numbers. Compilers make branches of comparisons of floats. */
static inline uint8_t twi_cut_to_byte(float x)
{
    int32_t bits, most = 0x437f0000; /* 255 */
    memcpy(&bits, &x, sizeof bits);
    bits = bits > 0x7f800000 ? 0 : bits; /* NaN */
    bits = bits > 0 ? bits : 0;
    bits = bits < most ? bits : most;
    memcpy(&x, &bits, sizeof x);
    return (uint8_t)(int32_t)x;
}

/* Floats are cut towards zero; out of range becomes the nearest integer, NaN 0. `above` is the least float beyond. */
#define TWI_CUT(f, from, to, low, high, above)                                                                         \
    static inline to f(from x)                                                                                         \
    {                                                                                                                  \
        from within = ((x > -above) & (x < above)) ? x : 0;                                                            \
        to y = (to)within;                                                                                             \
        y = x >= above ? high : y;                                                                                     \
        return x <= -above ? low : y;                                                                                  \
    }
TWI_CUT(twi_cut_float_to_int32, float, int32_t, INT32_MIN, INT32_MAX, 0x1p31f)
TWI_CUT(twi_cut_float_to_int64, float, int64_t, INT64_MIN, INT64_MAX, 0x1p63f)
TWI_CUT(twi_cut_double_to_int32, double, int32_t, INT32_MIN, INT32_MAX, 0x1p31)
TWI_CUT(twi_cut_double_to_int64, double, int64_t, INT64_MIN, INT64_MAX, 0x1p63)

static inline uint8_t twi_cut_double_to_byte(double x)
{
    int32_t y = twi_cut_double_to_int32(x);
    y = y > 0 ? y : 0;
    return (uint8_t)(y < 255 ? y : 255);
}

/* Op, from and to, each as the name of the type and in C; and what becomes of x. A bool is 0 or 1 in a byte. */
#define TWI_CASTS(X)                                                                                                   \
    X(Cast, FLOAT32, float, FLOAT64, double, x)                                                                        \
    X(Cast, FLOAT32, float, INT32, int32_t, twi_cut_float_to_int32(x))                                                 \
    X(Cast, FLOAT32, float, INT64, int64_t, twi_cut_float_to_int64(x))                                                 \
    X(Cast, FLOAT32, float, UINT8, uint8_t, twi_cut_to_byte(x))                                                        \
    X(Cast, FLOAT32, float, BOOL, uint8_t, x != 0)                                                                     \
    X(Cast, FLOAT32, float, FLOAT16, uint16_t, twi_narrow_float(x))                                                    \
    X(Cast, FLOAT64, double, FLOAT32, float, (float)x)                                                                 \
    X(Cast, FLOAT64, double, INT32, int32_t, twi_cut_double_to_int32(x))                                               \
    X(Cast, FLOAT64, double, INT64, int64_t, twi_cut_double_to_int64(x))                                               \
    X(Cast, FLOAT16, uint16_t, FLOAT32, float, twi_widen_half(x))                                                      \
    X(Cast, INT32, int32_t, FLOAT32, float, (float)x)                                                                  \
    X(Cast, INT32, int32_t, FLOAT64, double, x)                                                                        \
    X(Cast, INT32, int32_t, INT64, int64_t, x)                                                                         \
    X(Cast, INT32, int32_t, UINT8, uint8_t, (uint8_t)x)                                                                \
    X(Cast, INT32, int32_t, BOOL, uint8_t, x != 0)                                                                     \
    X(Cast, INT64, int64_t, FLOAT32, float, (float)x)                                                                  \
    X(Cast, INT64, int64_t, FLOAT64, double, (double)x)                                                                \
    X(Cast, INT64, int64_t, INT32, int32_t, (int32_t)x)                                                                \
    X(Cast, INT64, int64_t, BOOL, uint8_t, x != 0)                                                                     \
    X(Cast, UINT8, uint8_t, FLOAT32, float, x)                                                                         \
    X(Cast, UINT8, uint8_t, FLOAT64, double, x)                                                                        \
    X(Cast, UINT8, uint8_t, INT32, int32_t, x)                                                                         \
    X(Cast, UINT8, uint8_t, INT64, int64_t, x)                                                                         \
    X(Cast, BOOL, uint8_t, FLOAT32, float, x)                                                                          \
    X(Cast, BOOL, uint8_t, FLOAT64, double, x)                                                                         \
    X(Cast, BOOL, uint8_t, INT32, int32_t, x)                                                                          \
    X(Cast, BOOL, uint8_t, INT64, int64_t, x)                                                                          \
    X(Cast, FLOAT64, double, UINT8, uint8_t, twi_cut_double_to_byte(x))                                                \
    X(Cast, FLOAT64, double, BOOL, uint8_t, x != 0)                                                                    \
    X(Cast, FLOAT64, double, FLOAT16, uint16_t, twi_narrow_float((float)x))                                            \
    X(Cast, FLOAT16, uint16_t, FLOAT64, double, twi_widen_half(x))                                                     \
    X(Cast, FLOAT16, uint16_t, INT32, int32_t, twi_cut_float_to_int32(twi_widen_half(x)))                              \
    X(Cast, FLOAT16, uint16_t, BOOL, uint8_t, (x & 0x7fff) != 0)                                                       \
    X(Cast, BFLOAT16, uint16_t, FLOAT64, double, twi_widen_bfloat16(x))                                                \
    X(Cast, BFLOAT16, uint16_t, INT32, int32_t, twi_cut_float_to_int32(twi_widen_bfloat16(x)))                         \
    X(Cast, BFLOAT16, uint16_t, BOOL, uint8_t, (x & 0x7fff) != 0)                                                      \
    X(Cast, INT32, int32_t, FLOAT16, uint16_t, twi_narrow_float((float)x))                                             \
    X(Cast, INT32, int32_t, BFLOAT16, uint16_t, twi_narrow_to_bfloat16((float)x))                                      \
    X(Cast, UINT8, uint8_t, BOOL, uint8_t, x != 0)                                                                     \
    X(Cast, UINT8, uint8_t, FLOAT16, uint16_t, twi_narrow_float(x))                                                    \
    X(Cast, UINT8, uint8_t, BFLOAT16, uint16_t, twi_narrow_to_bfloat16(x))                                             \
    X(Cast, BOOL, uint8_t, UINT8, uint8_t, x)                                                                          \
    X(Cast, BOOL, uint8_t, FLOAT16, uint16_t, twi_narrow_float(x))                                                     \
    X(Cast, BOOL, uint8_t, BFLOAT16, uint16_t, twi_narrow_to_bfloat16(x))                                              \
    X(IsNan, FLOAT32, float, BOOL, uint8_t, x != x)                                                                    \
    X(IsInf, FLOAT32, float, BOOL, uint8_t, __builtin_fabsf(x) == __builtin_inff())                                    \
    X(IsFinite, FLOAT32, float, BOOL, uint8_t, __builtin_fabsf(x) < __builtin_inff())                                  \
    X(IsNan, FLOAT64, double, BOOL, uint8_t, x != x)                                                                   \
    X(IsInf, FLOAT64, double, BOOL, uint8_t, __builtin_fabs(x) == __builtin_inf())                                     \
    X(IsFinite, FLOAT64, double, BOOL, uint8_t, __builtin_fabs(x) < __builtin_inf())

#define TWI_CAST_NUMBER(op, from, from_type, to, to_type, value) TWI_CAST_##op##_##from##_##to,
enum { TWI_CASTS(TWI_CAST_NUMBER) TWI_NUM_CASTS };

#endif
