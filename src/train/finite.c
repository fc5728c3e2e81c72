/* finite.c - see finite.h. */
#include "train/finite.h"

#include <math.h>

/* Exponents of 16-bit floats that stand for no number. */
static bool is_finite_half(uint16_t half, unsigned exponent)
{
    return (half & exponent) != exponent;
}

bool twi_is_finite(const tw_tensor *tensor)
{
    const void *data = tw_tensor_data((tw_tensor *)tensor);
    int64_t elements = tw_tensor_elements(tensor);
    bool finite = true;
    switch (tw_tensor_dtype(tensor)) {
    case TW_FLOAT32:
        for (int64_t i = 0; i < elements && finite; i++)
            finite = isfinite(((const float *)data)[i]);
        return finite;
    case TW_FLOAT64:
        for (int64_t i = 0; i < elements && finite; i++)
            finite = isfinite(((const double *)data)[i]);
        return finite;
    case TW_FLOAT16:
    case TW_BFLOAT16:
        for (int64_t i = 0; i < elements && finite; i++)
            finite =
                is_finite_half(((const uint16_t *)data)[i], tw_tensor_dtype(tensor) == TW_FLOAT16 ? 0x7c00 : 0x7f80);
        return finite;
    default:
        return true;
    }
}
