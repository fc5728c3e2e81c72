/* cross_product.c - Cross. */
#include "device/cpu/plain/typed.h"

#define BODY "device/cpu/plain/cross_product.inl"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#undef BODY

TWI_WIDENED(cross_product)

const twi_kernel twi_cpu_cross_product_kernels[] = {
    TWI_FLOAT_ROWS("Cross", twi_prepare_typed, cross_product, NULL),
    TWI_INTEGER_ROWS("Cross", twi_prepare_typed, cross_product, NULL),
    {0},
};
