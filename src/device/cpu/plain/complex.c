/* complex.c - arithmetic of complex numbers, element by element, in plain C, and ops that go between them and their
 * parts. Inputs of the binary ones broadcast.
 * Never here: sums along axes (reduce.c), products of matrices (matmul.c), transforms (fourier.c). */
#include "base/memory.h"
#include "device/cpu/plain/cmplx.h"
#include "device/cpu/plain/elementwise.h"

#include <tgmath.h>

/* e^x - 1 and log(1 + x), near zero too: from the parts of x, as 1 would swallow them. */
static double _Complex expm1_of(double _Complex x)
{
    double a = creal(x), b = cimag(x), half = sin(b / 2);
    return CMPLX(expm1(a) * cos(b) - 2 * half * half, exp(a) * sin(b));
}

static double _Complex log1p_of(double _Complex x)
{
    double a = creal(x), b = cimag(x);
    if (!(hypot(a, b) < 0.5))
        return log(1 + x);
    return CMPLX(log1p(2 * a + a * a + b * b) / 2, atan2(b, 1 + a));
}
#define log1p_of_complex64 log1p_of
#define log1p_of_complex128 log1p_of

/* Functions: op, name, y from x. One more is one line more. */
#define COMPLEX_FUNCTIONS(X)                                                                                           \
    X("Neg", negative, -x)                                                                                             \
    X("Square", square, x *x)                                                                                          \
    X("Sign", sign, x == 0 ? 0 : x / fabs(x))                                                                          \
    X("Reciprocal", reciprocal, 1 / x)                                                                                 \
    X("Inv", inverse, 1 / x)                                                                                           \
    X("Sqrt", square_root, sqrt(x))                                                                                    \
    X("Rsqrt", reciprocal_root, 1 / sqrt(x))                                                                           \
    X("Exp", exponential, exp(x))                                                                                      \
    X("Expm1", exponential_1, expm1_of(x))                                                                             \
    X("Log", logarithm, log(x))                                                                                        \
    X("Log1p", logarithm_1, log1p_of(x))                                                                               \
    X("Sin", sine, sin(x))                                                                                             \
    X("Cos", cosine, cos(x))                                                                                           \
    X("Tan", tangent, tan(x))                                                                                          \
    X("Asin", arc_sine, asin(x))                                                                                       \
    X("Acos", arc_cosine, acos(x))                                                                                     \
    X("Atan", arc_tangent, atan(x))                                                                                    \
    X("Sinh", hyperbolic_sine, sinh(x))                                                                                \
    X("Cosh", hyperbolic_cosine, cosh(x))                                                                              \
    X("Tanh", hyperbolic_tangent, tanh(x))                                                                             \
    X("Asinh", area_sine, asinh(x))                                                                                    \
    X("Acosh", area_cosine, acosh(x))                                                                                  \
    X("Atanh", area_tangent, atanh(x))                                                                                 \
    X("Sigmoid", sigmoid, 1 / (1 + exp(-x)))

#define BODY "device/cpu/plain/complex.inl"
#include "device/cpu/plain/for_complex.h"

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* The parts of numbers are as precise as the numbers: float of complex64, double of complex128. */
static tw_status accepts_parts(const twi_prepare *p)
{
    tw_dtype in = p->inputs[0].dtype, out = p->outputs[0].dtype;
    if (tw_dtype_is_complex(out) ? tw_dtype_size(out) == 2 * tw_dtype_size(in)
                                 : tw_dtype_size(in) == 2 * tw_dtype_size(out))
        return TW_OK;
    return twi_fail(p->error, TW_UNIMPLEMENTED, "%s from %s", tw_dtype_name(out), tw_dtype_name(in));
}

#define BINARY_ROWS(op, f) TWI_COMPLEX_ROWS(op, twi_prepare_binary, f, twi_free)
#define UNARY_ROWS(op, f) TWI_COMPLEX_ROWS(op, twi_prepare_elementwise, f, NULL)
#define PART_ROWS(op, f) TWI_COMPLEX_ROWS(op, NULL, f, NULL, accepts_parts)
#define ROWS(op, f, expression) UNARY_ROWS(op, f),

const twi_kernel twi_cpu_complex_kernels[] = {
    COMPLEX_FUNCTIONS(ROWS)
    BINARY_ROWS("Add", add),
    BINARY_ROWS("AddV2", add),
    BINARY_ROWS("Sub", sub),
    BINARY_ROWS("Mul", mul),
    BINARY_ROWS("Div", div),
    BINARY_ROWS("RealDiv", div),
    BINARY_ROWS("MulNoNan", mul_no_nan),
    BINARY_ROWS("DivNoNan", div_no_nan),
    BINARY_ROWS("Xdivy", xdivy),
    BINARY_ROWS("Xlogy", xlogy),
    BINARY_ROWS("Xlog1py", xlog1py),
    BINARY_ROWS("SquaredDifference", squared_difference),
    BINARY_ROWS("Pow", power),
    TWI_COMPLEX_ROWS("Equal", twi_prepare_comparison, same, twi_free),
    TWI_COMPLEX_ROWS("NotEqual", twi_prepare_comparison, differs, twi_free),
    UNARY_ROWS("SqrtGrad", sqrt_grad),
    UNARY_ROWS("RsqrtGrad", rsqrt_grad),
    UNARY_ROWS("ReciprocalGrad", reciprocal_grad),
    UNARY_ROWS("InvGrad", reciprocal_grad),
    UNARY_ROWS("SigmoidGrad", sigmoid_grad),
    UNARY_ROWS("TanhGrad", tanh_grad),
    UNARY_ROWS("AddN", add_n),
    UNARY_ROWS("AccumulateNV2", add_n),
    UNARY_ROWS("Conj", conjugate),
    PART_ROWS("Real", real_part),
    PART_ROWS("Imag", imaginary_part),
    PART_ROWS("ComplexAbs", magnitude),
    PART_ROWS("Angle", angle),
    {"Complex", "plain", TWI_TYPE(TW_FLOAT32), twi_prepare_comparison, join_complex64, twi_free, accepts_parts},
    {"Complex", "plain", TWI_TYPE(TW_FLOAT64), twi_prepare_comparison, join_complex128, twi_free, accepts_parts},
    {0},
};
