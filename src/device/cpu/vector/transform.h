/* transform.h - the discrete Fourier transform of rows of complex numbers, of any length, in double.
 *
 * The j-th of n becomes the sum over k of x_k e^(-2 pi i j k / n); the inverse has e^(+2 pi i j k / n) and divides by
 * n. */
#ifndef TWI_TRANSFORM_H
#define TWI_TRANSFORM_H

#include "device/cpu/plain/cmplx.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TWI_TRANSFORM_FACTORS = 64, TWI_LARGEST_FACTOR = 13, TWI_TRANSFORM_LANES = 4 };

/* Rows that are transformed together, each in a lane: number j of all of them. */
typedef struct twi_transform_rows {
    double re[TWI_TRANSFORM_LANES], im[TWI_TRANSFORM_LANES];
} __attribute__((aligned(8 * TWI_TRANSFORM_LANES))) twi_transform_rows;

/* What a transform of a length needs to know: its factors and roots of 1. May be used by several threads at once. */
typedef struct twi_transform {
    int64_t n;
    int num_factors, factors[TWI_TRANSFORM_FACTORS];
    double _Complex *roots;       /* [n]: e^(-2 pi i k / n); NULL: by a chirp */
    struct twi_transform *longer; /* of the convolution's length, a power of two */
    double _Complex *chirp;       /* [n]: e^(-pi i k^2 / n) */
    twi_transform_rows *filter;   /* [length of `longer`]: transform of the chirp's conjugate, in each lane */
} twi_transform;

/* Of n numbers, n > 0. NULL when out of memory. Yours: twi_transform_free(), which takes NULL. */
twi_transform *twi_transform_make(int64_t n);
void twi_transform_free(twi_transform *transform);

/* How many such numbers of scratch a run needs; and the run, of x[n] in place. */
size_t twi_transform_scratch(const twi_transform *transform);
void twi_transform_run(const twi_transform *transform, twi_transform_rows *x, twi_transform_rows *scratch,
                       bool inverse);
/* The same of one row, whose parts have the lanes where n is a multiple of their number; scratch has room for n
 * more. */
void twi_transform_run_one(const twi_transform *transform, double _Complex *x, twi_transform_rows *scratch,
                           bool inverse);

#endif
