/* finite.h - whether a tensor's numbers are all finite. */
#ifndef TWI_FINITE_H
#define TWI_FINITE_H

#include <stdbool.h>
#include <tower/tensor.h>

/* Of what holds no floating-point numbers, true. */
bool twi_is_finite(const tw_tensor *tensor);

#endif
