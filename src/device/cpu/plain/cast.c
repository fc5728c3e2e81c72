/* cast.c - Cast between the types that programs mostly have, a loop for each pair of them. The row "plain" has all
 * other pairs (elementwise.c), and of these the same results, but that it takes large integers to float by way of
 * double. */
#include "base/memory.h"
#include "device/cpu/plain/typed.h"

#include <stdint.h>

/* Without a branch, as tw_half_to_float(): the exponent is moved by a product, which makes subnormal numbers normal. */
static inline float widen_half(uint16_t half)
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
static inline uint16_t narrow_float(float value)
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

/* Of floats above 0 the bits have the same order as the numbers. Compilers make branches of comparisons of floats. */
static inline uint8_t cut_to_byte(float x)
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
#define CUT(to, x, low, high, above) ((x) != (x) ? 0 : (x) >= (above) ? (high) : (x) <= (low) ? (low) : (to)(x))
#define TO_INT32(x) CUT(int32_t, x, INT32_MIN, INT32_MAX, 0x1p31f)
#define TO_INT64(x) CUT(int64_t, x, INT64_MIN, INT64_MAX, 0x1p63f)
#define TO_UINT8(x) cut_to_byte(x)

/* From and to: the name of the type, and in C; and what becomes of x. A bool is 0 or 1 in a byte. */
#define CASTS(X)                                                                                                       \
    X(FLOAT32, float, FLOAT64, double, x)                                                                              \
    X(FLOAT32, float, INT32, int32_t, TO_INT32(x))                                                                     \
    X(FLOAT32, float, INT64, int64_t, TO_INT64(x))                                                                     \
    X(FLOAT32, float, UINT8, uint8_t, TO_UINT8(x))                                                                     \
    X(FLOAT32, float, BOOL, uint8_t, x != 0)                                                                           \
    X(FLOAT32, float, FLOAT16, uint16_t, narrow_float(x))                                                              \
    X(FLOAT64, double, FLOAT32, float, (float)x)                                                                       \
    X(FLOAT64, double, INT32, int32_t, TO_INT32(x))                                                                    \
    X(FLOAT64, double, INT64, int64_t, TO_INT64(x))                                                                    \
    X(FLOAT16, uint16_t, FLOAT32, float, widen_half(x))                                                                \
    X(INT32, int32_t, FLOAT32, float, (float)x)                                                                        \
    X(INT32, int32_t, FLOAT64, double, x)                                                                              \
    X(INT32, int32_t, INT64, int64_t, x)                                                                               \
    X(INT32, int32_t, UINT8, uint8_t, (uint8_t)x)                                                                      \
    X(INT32, int32_t, BOOL, uint8_t, x != 0)                                                                           \
    X(INT64, int64_t, FLOAT32, float, (float)x)                                                                        \
    X(INT64, int64_t, FLOAT64, double, (double)x)                                                                      \
    X(INT64, int64_t, INT32, int32_t, (int32_t)x)                                                                      \
    X(INT64, int64_t, BOOL, uint8_t, x != 0)                                                                           \
    X(UINT8, uint8_t, FLOAT32, float, x)                                                                               \
    X(UINT8, uint8_t, FLOAT64, double, x)                                                                              \
    X(UINT8, uint8_t, INT32, int32_t, x)                                                                               \
    X(UINT8, uint8_t, INT64, int64_t, x)                                                                               \
    X(BOOL, uint8_t, FLOAT32, float, x)                                                                                \
    X(BOOL, uint8_t, FLOAT64, double, x)                                                                               \
    X(BOOL, uint8_t, INT32, int32_t, x)                                                                                \
    X(BOOL, uint8_t, INT64, int64_t, x)

#define LOOP(from, from_type, to, to_type, value)                                                                      \
    static tw_status from##_to_##to(const twi_run *r)                                                                  \
    {                                                                                                                  \
        const from_type *restrict xs = r->inputs[0];                                                                   \
        to_type *restrict ys = r->outputs[0];                                                                          \
        int64_t count = r->output_operands[0].elements;                                                                \
        TWI_PARALLEL_ELEMENTS_LOOP(r, count)                                                                           \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            from_type x = xs[i];                                                                                       \
            ys[i] = value;                                                                                             \
        }                                                                                                              \
        return TW_OK;                                                                                                  \
    }
CASTS(LOOP)

static tw_status accepts(const twi_prepare *p, tw_dtype from, tw_dtype to)
{
    return p->inputs[0].dtype == from && p->outputs[0].dtype == to ? TW_OK : TW_UNIMPLEMENTED;
}

#define ACCEPTS(from, from_type, to, to_type, value)                                                                   \
    static tw_status accepts_##from##_to_##to(const twi_prepare *p)                                                    \
    {                                                                                                                  \
        return accepts(p, TW_##from, TW_##to);                                                                         \
    }
CASTS(ACCEPTS)

#define ROW(from, from_type, to, to_type, value)                                                                       \
    {"Cast", "fast", 0, NULL, from##_to_##to, NULL, .accepts = accepts_##from##_to_##to},

const twi_kernel twi_cpu_cast_kernels[] = {
    CASTS(ROW){0},
};
