/* transform.h - the discrete Fourier transform of one row of complex numbers, of any length, in double.
 *
 * The j-th of n becomes the sum over k of x_k e^(-2 pi i j k / n); the inverse has e^(+2 pi i j k / n) and divides by
 * n. */
#ifndef TWI_CPU_TRANSFORM_H
#define TWI_CPU_TRANSFORM_H

#include "device/cpu/plain/cmplx.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a transform of a length needs to know: its factors and roots of 1. May be used by several threads at once. */
typedef struct twi_transform twi_transform;

/* Of n numbers, n > 0. NULL when out of memory. Yours: twi_transform_free(), which takes NULL. */
twi_transform *twi_transform_make(int64_t n);
void twi_transform_free(twi_transform *transform);

/* How many numbers of scratch a run needs; and the run, in place. */
size_t twi_transform_scratch(const twi_transform *transform);
void twi_transform_run(const twi_transform *transform, double _Complex *x, double _Complex *scratch, bool inverse);

#endif
