/* integrals.h - functions that are said by integrals, in double.
 * Never here:  kernels (special.c). */
#ifndef TWI_INTEGRALS_H
#define TWI_INTEGRALS_H

double twi_dawson(double x);                 /* e^(-x^2) times the integral of e^(t^2), t from 0 to x */
double twi_exponential_integral(double x);   /* Ei; NaN below 0 */
double twi_fresnel(double x, int sine);      /* of the cosine or the sine of pi t^2 / 2, t from 0 to x */
double twi_spence(double x);                 /* of ln(t) / (1 - t), t from 1 to x, negated: Li2(1 - x); NaN below 0 */
double twi_scaled_bessel_k(int n, double x); /* e^x K_n(x), n 0 or 1; infinite below 0, as TensorFlow has it */

#endif
