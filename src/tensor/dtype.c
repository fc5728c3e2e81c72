/* dtype.c - the element types, and the two 16-bit floats. */
#include "base/status.h"

#include <string.h>
#include <tower/tensor.h>

const char *tw_dtype_name(tw_dtype dtype)
{
    switch (dtype) {
#define X(name, number, bytes, text)                                                                                   \
    case TW_##name:                                                                                                    \
        return text;
        TW_DTYPE_LIST(X)
#undef X
    default:
        return "invalid";
    }
}

size_t tw_dtype_size(tw_dtype dtype)
{
    switch (dtype) {
#define X(name, number, bytes, text)                                                                                   \
    case TW_##name:                                                                                                    \
        return bytes;
        TW_DTYPE_LIST(X)
#undef X
    default:
        return 0;
    }
}

tw_dtype tw_dtype_from_name(const char *name)
{
    TWI_NEED_OR(name, TW_INVALID_DTYPE);
    static const struct {
        const char *name;
        tw_dtype dtype;
    } names[] = {
#define X(name, number, bytes, text) {text, TW_##name},
        TW_DTYPE_LIST(X)
#undef X
        {"float32", TW_FLOAT32}, {"float64", TW_FLOAT64}, {"float16", TW_FLOAT16},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].dtype;
    return TW_INVALID_DTYPE;
}

bool tw_dtype_is_complex(tw_dtype dtype)
{
    return dtype == TW_COMPLEX64 || dtype == TW_COMPLEX128;
}

uint16_t tw_float_to_bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) /* NaN stays NaN whatever its low bits */
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

float tw_bfloat16_to_float(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t tw_float_to_half(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00); /* NaN */
    if (magnitude >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00); /* rounds to infinity */
    if (magnitude < 0x33000001u)
        return (uint16_t)sign; /* rounds to zero */
    int shift = magnitude < 0x38800000u ? 126 - (int)(magnitude >> 23) : 13; /* subnormals lose more bits */
    uint32_t mantissa = shift == 13 ? magnitude - 0x38000000u : (magnitude & 0x7fffffu) | 0x800000u;
    uint32_t half = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), middle = 1u << (shift - 1);
    half += rest > middle || (rest == middle && (half & 1));
    return (uint16_t)(sign | half);
}

float tw_half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, mantissa = half & 0x3ff, bits;
    float value;
    if (exponent == 31) {
        bits = sign | 0x7f800000u | mantissa << 13;
    } else if (exponent) {
        bits = sign | (exponent + 112) << 23 | mantissa << 13;
    } else {
        value = (float)mantissa * 0x1p-24f; /* exact */
        return sign ? -value : value;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}
