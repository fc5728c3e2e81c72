/* integrals.c - Dawson's, exponential, Fresnel's and Spence's integral, and modified Bessel functions of the second
 * kind: by series near 0, by what fits elsewhere. */
#include "device/cpu/plain/integrals.h"

#include <complex.h>
#include <math.h>

static const double pi = 3.14159265358979323846, euler = 0.57721566490153286061;

/* Rybicki's sum: e^-(x - n h)^2 / n of all odd n, whose error is e^-(pi / 2h)^2. */
double twi_dawson(double x)
{
    enum { REACH = 31 };
    const double h = 0.2;
    double y = fabs(x), sum = 0;
    if (isnan(x))
        return x;
    if (y > 1e8)
        return 0.5 / x;
    if (y < 1) { /* x - 2/3 x^3 + 4/15 x^5 - ... */
        double term = sum = x;
        for (int k = 1; k < 60; k++)
            sum += term *= -2 * x * x / (2 * k + 1);
        return sum;
    }
    double nearest = 2 * floor(y / h / 2) + 1;
    for (int k = -REACH; k <= REACH; k++) {
        double n = nearest + 2 * k, distance = y - n * h;
        sum += exp(-distance * distance) / n;
    }
    return copysign(sum / sqrt(pi), x);
}

double twi_exponential_integral(double x)
{
    if (!(x > 0))
        return x == 0 ? -INFINITY : NAN;
    if (x < 40) {
        double sum = euler + log(x), term = 1;
        for (int k = 1; k < 160; k++) {
            term *= x / k;
            sum += term / k;
        }
        return sum;
    }
    double sum = 1, term = 1;
    for (int k = 1; k <= 40; k++) /* k! / x^k falls up to there */
        sum += term *= k / x;
    return x > 700 ? exp(x - log(x)) * sum : exp(x) / x * sum;
}

/* C + i S: by its series, or (1 + i) / 2 less what is beyond x, a continued fraction. */
double twi_fresnel(double x, int sine)
{
    enum { LEVELS = 120 };
    double y = fabs(x);
    double _Complex both;
    if (isnan(x))
        return x;
    if (y < 1.6) {
        double _Complex term = y;
        both = 0;
        for (int k = 0; k < 40; k++) {
            both += term / (2 * k + 1);
            term *= I * (pi / 2 * y * y) / (k + 1);
        }
    } else if (y > 1e8) { /* what is beyond is less than 1 / (pi x) */
        both = 0.5 + 0.5 * I;
    } else {
        double square = pi * y * y;
        double _Complex below = 4 * LEVELS + 1 - I * square;
        for (int k = LEVELS; k > 0; k--)
            below = 4 * (k - 1) + 1 - I * square - 2.0 * k * (2 * k - 1) / below;
        double phase = pi / 2 * y * y;
        both = (0.5 + 0.5 * I) * (1 - (cos(phase) + I * sin(phase)) * y * (1 - I) / below);
    }
    return copysign(sine ? cimag(both) : creal(both), x);
}

/* Arguments are brought to where |1 - x| <= 1/2. */
double twi_spence(double x)
{
    if (!(x >= 0))
        return NAN;
    if (x == 0)
        return pi * pi / 6;
    if (x > 1.5)
        return isinf(x) ? -INFINITY : -twi_spence(1 / x) - log(x) * log(x) / 2;
    if (x < 0.5)
        return pi * pi / 6 - log(x) * log1p(-x) - twi_spence(1 - x);
    double z = 1 - x, power = 1, sum = 0;
    for (int k = 1; k < 60; k++)
        sum += (power *= z) / ((double)k * k);
    return sum;
}

/* K_0 by its series; K_1 by Wronski's determinant, I_0 K_1 + I_1 K_0 = 1 / x. */
static double small_bessel_k(int n, double x)
{
    double square = x * x / 4, term = 1, numbers = 0, i0 = 0, i1 = 0, sum = 0;
    for (int k = 0; k < 20; k++) { /* term: (x/2)^2k / k!^2 */
        numbers += k ? 1.0 / k : 0;
        i0 += term;
        i1 += term * x / 2 / (k + 1);
        sum += term * numbers;
        term *= square / (k + 1) / (k + 1);
    }
    double k0 = sum - (log(x / 2) + euler) * i0;
    return n ? (1 / x - i1 * k0) / i0 : k0;
}

/* In between, the integral of e^-x(cosh t - 1) cosh(n t), t from 0 on, by the trapezoidal rule; cosh by its recurrence,
 * which is stable where it grows. */
double twi_scaled_bessel_k(int n, double x)
{
    const double h = 0.1;
    if (!(x > 0))
        return isnan(x) ? x : INFINITY;
    if (x < 1)
        return exp(x) * small_bessel_k(n, x);
    if (x > 30) {
        double sum = 1, term = 1;
        for (int k = 1; k < 20; k++)
            sum += term *= (4.0 * n * n - (2 * k - 1) * (2 * k - 1)) / (8 * k * x);
        return sum * sqrt(pi / (2 * x));
    }
    const double first = cosh(h);
    double sum = 0.5, term = 1, before = 1, now = first; /* cosh of t - h and of t */
    for (int k = 1; k <= 50 && term > 1e-18 * sum; k++) {
        sum += term = exp(-x * (now - 1)) * (n ? now : 1);
        double next = 2 * first * now - before;
        before = now;
        now = next;
    }
    return sum * h;
}
