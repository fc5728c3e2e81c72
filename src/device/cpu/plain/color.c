/* color.c - colours as red, green and blue, and as hue, saturation and value, each from 0 to 1. */
#include "device/cpu/plain/typed.h"

#include <tgmath.h>

#define BODY "device/cpu/plain/color.inl"
#include "device/cpu/plain/for_floats.h"
#undef BODY

TWI_WIDENED(to_hsv)
TWI_WIDENED(to_rgb)
TWI_WIDENED(adjust_hue)
TWI_WIDENED(adjust_saturation)

const twi_kernel twi_cpu_color_kernels[] = {
    TWI_FLOAT_ROWS("RGBToHSV", twi_prepare_typed, to_hsv, NULL),
    TWI_FLOAT_ROWS("HSVToRGB", twi_prepare_typed, to_rgb, NULL),
    TWI_FLOAT_BUT_DOUBLE_ROWS("AdjustHue", twi_prepare_typed, adjust_hue, NULL),
    TWI_FLOAT_BUT_DOUBLE_ROWS("AdjustSaturation", twi_prepare_typed, adjust_saturation, NULL),
    {0},
};
