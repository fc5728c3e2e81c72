/* beta.c - Betainc: the incomplete beta function, regularized. */
#include "device/cpu/plain/typed.h"

#include <math.h>

enum { MOST_TERMS = 2000 };

/* The continued fraction of I_x(a, b), which converges fast where x < (a + 1) / (a + b + 2); by Lentz's method. */
static double fraction(double a, double b, double x)
{
    double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), value = d;
    for (int m = 1; m < MOST_TERMS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), before = value;
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        value *= c * d;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        value *= c * d;
        if (fabs(value - before) <= 1e-16 * fabs(value))
            break;
    }
    return value;
}

static double betainc(double a, double b, double x)
{
    int sign;
    if (!(a > 0) || !(b > 0) || !(x >= 0 && x <= 1))
        return NAN;
    if (x == 0 || x == 1)
        return x;
    double front = exp(a * log(x) + b * log1p(-x) + lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign));
    if (x < (a + 1) / (a + b + 2))
        return front * fraction(a, b, x) / a;
    return 1 - front * fraction(b, a, 1 - x) / b;
}

#define RUN(type)                                                                                                      \
    static tw_status run_##type(const twi_run *r)                                                                      \
    {                                                                                                                  \
        const type *a = r->inputs[0], *b = r->inputs[1], *x = r->inputs[2];                                            \
        const twi_operand *in = r->input_operands;                                                                     \
        type *to = r->outputs[0];                                                                                      \
        for (int64_t i = 0; i < r->output_operands[0].elements; i++)                                                   \
            to[i] = (type)betainc((double)a[in[0].shape.rank ? i : 0], (double)b[in[1].shape.rank ? i : 0],            \
                                  (double)x[in[2].shape.rank ? i : 0]);                                                \
        return TW_OK;                                                                                                  \
    }
RUN(float)
RUN(double)

const twi_kernel twi_cpu_beta_kernels[] = {
    {"Betainc", "plain", TWI_TYPE(TW_FLOAT32), NULL, run_float},
    {"Betainc", "plain", TWI_TYPE(TW_FLOAT64), NULL, run_double},
    {0},
};
