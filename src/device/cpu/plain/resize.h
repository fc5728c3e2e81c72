/* resize.h - numbers of any type as floats, and back, for kernels on images. */
#ifndef TWI_CPU_RESIZE_H
#define TWI_CPU_RESIZE_H

#include "device/kernel.h"

void twi_widen_numbers(tw_dtype dtype, int64_t count, const void *from, float *to);
/* To a float type, or to int8, uint8 or int32. */
void twi_narrow_numbers(tw_dtype dtype, int64_t count, const double *from, void *to);

#endif
