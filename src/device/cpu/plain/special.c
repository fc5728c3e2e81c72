/* special.c - functions beyond those of elementwise.c, in plain C: inverse trigonometric and hyperbolic ones, of the
 * gamma family, of bits. Those of the gamma family are computed in double. */
#include "base/memory.h"
#include "device/cpu/plain/elementwise.h"
#include "device/cpu/plain/integrals.h"

#include <tgmath.h>

#pragma GCC diagnostic ignored "-Wtype-limits" /* one body serves signed and unsigned types */

enum { MOST_TERMS = 20000 };
#define EPSILON 1e-17
#define PI 3.14159265358979323846

/* ---- the gamma family -------------------------------------------------------------------------------------------- */

/* B_2k: Bernoulli's numbers, for Euler's and Maclaurin's sums. */
static const double bernoulli[] = {1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,     5.0 / 66,
                                   -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};
enum { NUM_BERNOULLI = sizeof bernoulli / sizeof *bernoulli };

/* The derivative of lgamma. Behind a reflection and steps up, ln x - 1/2x - sum of B_2k / 2k x^2k. */
static double digamma(double x)
{
    double sum = 0;
    if (x <= 0) {
        if (x == floor(x))
            return NAN;
        return digamma(1 - x) - PI / tan(PI * x);
    }
    for (; x < 12; x++)
        sum -= 1 / x;
    double square = 1 / (x * x), power = square;
    sum += log(x) - 0.5 / x;
    for (int k = 0; k < 8; k++, power *= square)
        sum -= bernoulli[k] / (2 * k + 2) * power;
    return sum;
}

/* The sum of (q + k)^-x for k from 0 on: some terms, then the integral and Euler's and Maclaurin's corrections. */
static double zeta(double x, double q)
{
    enum { TERMS = 12 };
    if (x == 1)
        return INFINITY;
    if (!(x > 1))
        return NAN;
    if (x == INFINITY && !isnan(q))
        return q < 1 ? INFINITY : q == 1;
    if (q == INFINITY)
        return 0;
    if (q <= 0 && q == floor(q))
        return x == floor(x) && fmod(x, 2) == 0 ? INFINITY : NAN;
    if (q <= 0 && (x != floor(x) || q < -1e6)) /* too far to walk */
        return NAN;
    double sum = 0;
    for (int k = 0; k < TERMS || q < TERMS; k++, q++)
        sum += pow(q, -x);
    double last = pow(q, -x);
    if (last == 0 || isinf(sum)) /* there are no corrections, of an x as large */
        return sum;
    double factor = x / q; /* x (x+1) ... (x+2k-2) / q^(2k-1) / (2k)! */
    sum += last * q / (x - 1) + 0.5 * last;
    factor /= 2;
    for (int k = 1; k <= NUM_BERNOULLI; k++) {
        double term = last * factor * bernoulli[k - 1];
        sum += term;
        if (fabs(term) < EPSILON * fabs(sum))
            break;
        factor *= (x + 2 * k - 1) * (x + 2 * k) / (q * q) / ((2 * k + 1) * (2 * k + 2));
    }
    return sum;
}

/* The derivative of digamma of order n. */
static double polygamma(double n, double x)
{
    if (n != floor(n) || n < 0)
        return NAN;
    if (n == 0)
        return digamma(x);
    double value = tgamma(n + 1) * zeta(n + 1, x);
    return isinf(n) || fmod(n + 1, 2) == 0 ? value : -value; /* n + 1, as TensorFlow: from 2^53 on that is even, too */
}

/* x^a e^-x / gamma(a + 1), the first term of both sums below. */
static double first_term(double a, double x)
{
    return exp(a * log(x) - x - lgamma(a + 1));
}

/* The lower part of gamma(a) as a series, good where x is not much more than a. */
static double lower_series(double a, double x)
{
    double term = 1, sum = 1, first = first_term(a, x);
    if (!(first > 0)) /* nothing, or infinitely far to either */
        return 0;
    for (int k = 1; k < MOST_TERMS && term > EPSILON * sum; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return first * sum;
}

/* The upper part, divided by x^a e^-x, as a continued fraction (Lentz), good where x is more than a + 1; and how much
 * that grows with a. */
static double upper_fraction(double a, double x, double *by_a)
{
    double b = x + 1 - a, c = 1e300, d = 1 / b, value = d;
    double c_by_a = 0, d_by_a = d * d, value_by_a = d_by_a;
    for (int k = 1; k < MOST_TERMS; k++) {
        double step = -k * (k - a), last = c;
        b += 2;
        c = b + step / last;
        c_by_a = -1 + (k - step * c_by_a / last) / last;
        double next = 1 / (step * d + b);
        d_by_a = -(k * d + step * d_by_a - 1) * next * next;
        d = next;
        value_by_a = value_by_a * c * d + value * (c_by_a * d + c * d_by_a);
        value *= c * d;
        if (fabs(c * d - 1) < 1e-16 && fabs(c_by_a * d + c * d_by_a) < 1e-14)
            break;
    }
    if (by_a)
        *by_a = value_by_a;
    return value;
}

/* Of an a above which the sums take too many terms: Temme's expansion, by how far x is from a. */
#define LARGE 1e6
static double large_upper(double a, double x)
{
    double by = (x - a) / a, square = 2 * (by - log1p(by)), eta = copysign(sqrt(fmax(square, 0)), by);
    double rest = fabs(by) < 1e-3 ? -1.0 / 3 + by / 12 : 1 / by - 1 / eta;
    return 0.5 * erfc(eta * sqrt(a / 2)) + exp(-a * square / 2) / sqrt(2 * PI * a) * rest;
}

static double upper_part(double a, double x)
{
    double first = first_term(a, x);
    return !(first > 0) ? 0 : first * a * upper_fraction(a, x, NULL);
}

static double igamma(double a, double x)
{
    if (x == 0) /* whatever a is, as in TensorFlow */
        return 0;
    if (!(x > 0) || !(a > 0))
        return NAN;
    if (isinf(x))
        return isinf(a) ? NAN : 1;
    if (a > LARGE && !isinf(a))
        return 1 - large_upper(a, x);
    return x > 1 && x > a ? 1 - upper_part(a, x) : lower_series(a, x);
}

static double igammac(double a, double x)
{
    if (!(x >= 0) || !(a > 0))
        return NAN;
    if (x == 0 || isinf(x))
        return x == 0;
    if (a > LARGE && !isinf(a))
        return large_upper(a, x);
    return x > 1 && x > a ? upper_part(a, x) : 1 - lower_series(a, x);
}

/* The derivative of igamma by a: of each term t of its series, t (ln x - digamma(a + k + 1)). */
static double igamma_by_a(double a, double x)
{
    if (x == 0)
        return 0;
    if (!(x > 0) || !(a > 0))
        return NAN;
    double term = first_term(a, x);
    if (isinf(x) || !(term > 0))
        return 0;
    double slope = log(x) - digamma(a + 1), sum = term * slope;
    for (int k = 1; k < MOST_TERMS; k++) {
        term *= x / (a + k);
        slope -= 1 / (a + k);
        sum += term * slope;
        if (k > x && fabs(term * slope) < EPSILON * fabs(sum))
            break;
    }
    return sum;
}

/* How much a sample x of gamma's distribution grows with a: it keeps its quantile. */
static double gamma_sample_by_a(double a, double x)
{
    if (x == 0)
        return 0;
    if (!(x > 0) || !(a > 0))
        return NAN;
    double density = first_term(a, x) * a / x;
    if (!(density > 0)) /* as TensorFlow, far out in a tail */
        return 0;
    if (x > 1 && x > a + 1) { /* beyond most of it: by what lies above, for what lies below is 1 */
        double by_a, above = upper_fraction(a, x, &by_a);
        return x * (above * (log(x) - digamma(a)) + by_a);
    }
    return -igamma_by_a(a, x) / density;
}

/* e^-|x| I_n(x) of the modified Bessel functions, n 0 or 1: by the series in x^2 / 4, or, where x is large, in 1 / x.
 */
static double scaled_bessel(int n, double x)
{
    double y = fabs(x), term = n ? y / 2 : 1, sum = term;
    if (y > 30) {
        term = sum = 1;
        for (int k = 1; k < 20; k++)
            sum += term *= -(4.0 * n * n - (2 * k - 1) * (2 * k - 1)) / (8 * k * y);
        sum /= sqrt(2 * PI) * sqrt(y); /* 2 pi y may be too large a number */
    } else {
        for (int k = 1; k < 200 && term > 1e-17 * sum; k++)
            sum += term *= y * y / 4 / k / (k + n);
        sum *= exp(-y);
    }
    return n && x < 0 ? -sum : sum;
}

static double whole_bessel(int n, double x)
{
    return scaled_bessel(n, x) * exp(fabs(x));
}

/* Waves have no limit at infinity: NaN, as TensorFlow has it, rather than 0. */
static double bessel_j(int n, double x)
{
    return isinf(x) ? NAN : n ? j1(x) : j0(x);
}

static double bessel_y(int n, double x)
{
    return x == INFINITY ? NAN : x <= 0 ? -INFINITY : n ? y1(x) : y0(x);
}

/* lgamma() of the C library may set a variable that threads share. */
static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/* The x below which a part p of the normal distribution lies: Newton's and Halley's steps from a start that the tails'
 * logarithm gives. */
static double normal_quantile(double p)
{
    if (!(p >= 0 && p <= 1))
        return NAN;
    if (p == 0 || p == 1)
        return p == 0 ? -INFINITY : INFINITY;
    double tail = p < 0.5 ? p : 1 - p, t = sqrt(-2 * log(tail));
    double x = t - (2.30753 + 0.27061 * t) / (1 + t * (0.99229 + 0.04481 * t)); /* Hastings' start, within 0.003 */
    for (int k = 0; k < 4; k++) { /* the tail above x is erfc(x / sqrt 2) / 2 */
        double density = exp(-x * x / 2) / sqrt(2 * PI), error = 0.5 * erfc(x / sqrt(2)) - tail;
        double by = error / density;
        x += by / (1 + x * by / 2);
    }
    return p < 0.5 ? -x : x;
}

static double inverse_erf(double x)
{
    if (fabs(x) > 0.5 || isnan(x))
        return normal_quantile((x + 1) / 2) / sqrt(2);
    double y = x * sqrt(PI) / 2;
    for (int k = 0; k < 6; k++)
        y -= (erf(y) - x) * sqrt(PI) / 2 * exp(y * y);
    return y;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* Functions of floats: op, name, y from x. */
#define FUNCTIONS(X)                                                                                                   \
    X("Asin", arc_sine, asin(x))                                                                                       \
    X("Acos", arc_cosine, acos(x))                                                                                     \
    X("Atan", arc_tangent, atan(x))                                                                                    \
    X("Sinh", hyperbolic_sine, sinh(x))                                                                                \
    X("Cosh", hyperbolic_cosine, cosh(x))                                                                              \
    X("Asinh", area_sine, asinh(x))                                                                                    \
    X("Acosh", area_cosine, acosh(x))                                                                                  \
    X("Atanh", area_tangent, atanh(x))                                                                                 \
    X("Rint", to_integer, rint(x))                                                                                     \
    X("Lgamma", log_of_gamma, log_gamma((double)x))                                                                    \
    X("Digamma", slope_of_gamma, digamma((double)x))                                                                   \
    X("Erfc", error_function_rest, erfc(x))                                                                            \
    X("Erfinv", inverse_error_function, inverse_erf((double)x))                                                        \
    X("BesselI0", whole_bessel_0, whole_bessel(0, (double)x))                                  \
    X("BesselI1", whole_bessel_1, whole_bessel(1, (double)x))                                  \
    X("BesselI0e", bessel_0, scaled_bessel(0, (double)x))                                                              \
    X("BesselI1e", bessel_1, scaled_bessel(1, (double)x))                                                              \
    X("BesselJ0", waves_0, bessel_j(0, (double)x))                                                                     \
    X("BesselJ1", waves_1, bessel_j(1, (double)x))                                                                     \
    X("BesselY0", other_waves_0, bessel_y(0, (double)x))                                                               \
    X("BesselY1", other_waves_1, bessel_y(1, (double)x))                                                               \
    X("BesselK0", falling_0, exp(-(double)x) * twi_scaled_bessel_k(0, (double)x))                                      \
    X("BesselK1", falling_1, exp(-(double)x) * twi_scaled_bessel_k(1, (double)x))                                      \
    X("BesselK0e", scaled_falling_0, twi_scaled_bessel_k(0, (double)x))                                                \
    X("BesselK1e", scaled_falling_1, twi_scaled_bessel_k(1, (double)x))                                                \
    X("Dawsn", dawson, twi_dawson((double)x))                                                                          \
    X("Expint", exponential_integral, twi_exponential_integral((double)x))                                             \
    X("FresnelCos", fresnel_cosine, twi_fresnel((double)x, 0))                                                         \
    X("FresnelSin", fresnel_sine, twi_fresnel((double)x, 1))                                                           \
    X("Spence", dilogarithm, twi_spence((double)x))                                                                    \
    X("Ndtri", quantile, normal_quantile((double)x))
#define FUNCTIONS_OF_TWO(X)                                                                                            \
    X("Atan2", angle, atan2(x, y))                                                                                     \
    X("Xlogy", x_log_y, x == 0 ? 0 : x * log(y))                                                                       \
    X("Xlog1py", x_log1p_y, x == 0 ? 0 : x * log1p(y))                                                                 \
    X("Igamma", lower_gamma, igamma((double)x, (double)y))                                                             \
    X("Igammac", upper_gamma, igammac((double)x, (double)y))                                                           \
    X("IgammaGradA", lower_gamma_by_a, igamma_by_a((double)x, (double)y))
#define FUNCTIONS_OF_TWO_WIDE(X)                                                                                       \
    X("RandomGammaGrad", gamma_sample_slope, gamma_sample_by_a((double)x, (double)y))                                  \
    X("Zeta", hurwitz_zeta, zeta((double)x, (double)y))                                                                \
    X("Polygamma", slopes_of_gamma, polygamma((double)x, (double)y))                                                   \
    X("NextAfter", next, nextafter(x, y))

#define BODY "device/cpu/plain/special_float.inl"
#include "device/cpu/plain/for_floats.h"
#undef BODY
#define BODY "device/cpu/plain/special_integer.inl"
#include "device/cpu/plain/for_integers.h"
#undef BODY

#define WIDEN(op, f, expression) TWI_WIDENED(f)
FUNCTIONS(WIDEN)
FUNCTIONS_OF_TWO(WIDEN)

#define ROWS(op, f, expression) TWI_FLOAT_ROWS(op, twi_prepare_elementwise, f, NULL),
#define ROWS_OF_TWO(op, f, expression) TWI_FLOAT_ROWS(op, twi_prepare_binary, f, twi_free),
#define ROWS_OF_TWO_WIDE(op, f, expression)                                                                            \
    {op, "plain", TWI_TYPE(TW_FLOAT32), twi_prepare_binary, f##_float, twi_free},                                      \
        {op, "plain", TWI_TYPE(TW_FLOAT64), twi_prepare_binary, f##_double, twi_free},

const twi_kernel twi_cpu_special_kernels[] = {
    FUNCTIONS(ROWS) FUNCTIONS_OF_TWO(ROWS_OF_TWO) FUNCTIONS_OF_TWO_WIDE(ROWS_OF_TWO_WIDE)
        TWI_INTEGER_ROWS("BitwiseAnd", twi_prepare_binary, both_bits, twi_free),
    TWI_INTEGER_ROWS("BitwiseOr", twi_prepare_binary, any_bits, twi_free),
    TWI_INTEGER_ROWS("BitwiseXor", twi_prepare_binary, odd_bits, twi_free),
    TWI_INTEGER_ROWS("LeftShift", twi_prepare_binary, shift_left, twi_free),
    TWI_INTEGER_ROWS("RightShift", twi_prepare_binary, shift_right, twi_free),
    TWI_INTEGER_ROWS("Invert", twi_prepare_elementwise, invert, NULL),
    TWI_INTEGER_ROWS("PopulationCount", NULL, count_bits, NULL),
    {0},
};
