/* elementwise_float.inl - functions of floats; see elementwise.c. */

BINARY(mul_no_nan, REAL, y == 0 ? 0 : x *y)
BINARY(div, REAL, x / y)
BINARY(div_no_nan, REAL, y == 0 ? 0 : x / y)
BINARY(xdivy, REAL, x == 0 ? 0 : x / y)
BINARY(truncate_div, REAL, trunc(x / y))
BINARY(floor_div, REAL, floor(x / y))
BINARY(mod, REAL, fmod(x, y))
BINARY(floor_mod, REAL, fmod(x, y) != 0 && (fmod(x, y) < 0) != (y < 0) ? fmod(x, y) + y : fmod(x, y))
BINARY(power, REAL, pow(x, y))
UNARY(absolute, REAL, fabs(x))
#define FUNCTION(op, f, expression) UNARY(f, REAL, expression)
FLOAT_UNARY_LIST(FUNCTION)
#undef FUNCTION
UNARY(is_nan, bool, isnan(x))
UNARY(is_inf, bool, isinf(x))
UNARY(is_finite, bool, isfinite(x))

/* Gradients in terms of the output y and the incoming dy. Where y may be infinite, nothing flowing in gives nothing, as
 * in TensorFlow: so the branch of a Select that was not taken stays out of a gradient. */
#define FROM_OUTPUT(f, expression)                                                                                     \
    static tw_status NAME(f)(const twi_run *r)                                                                         \
    {                                                                                                                  \
        const REAL *ys = r->inputs[0], *dys = r->inputs[1];                                                            \
        REAL *dx = r->outputs[0];                                                                                      \
        int64_t n = r->output_operands[0].elements;                                                                    \
        TWI_PARALLEL_ELEMENTS_LOOP(r, n)                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            REAL y = ys[i], dy = dys[i];                                                                               \
            dx[i] = expression;                                                                                        \
        }                                                                                                              \
        return TW_OK;                                                                                                  \
    }
FROM_OUTPUT(sqrt_grad, dy == 0 ? 0 : dy * (REAL)0.5 / y)
FROM_OUTPUT(rsqrt_grad, dy == 0 ? 0 : dy * (REAL)-0.5 * y * y * y)
FROM_OUTPUT(reciprocal_grad, dy == 0 ? 0 : -dy * y * y)
FROM_OUTPUT(sigmoid_grad, dy *y *(1 - y))
FROM_OUTPUT(tanh_grad, dy *(1 - y * y))
#undef FROM_OUTPUT

static tw_status NAME(approximate)(const twi_run *r)
{
    const REAL *x = r->inputs[0], *y = r->inputs[1], tolerance = (REAL) * (const float *)r->state;
    bool *z = r->outputs[0];
    for (int64_t i = 0; i < r->output_operands[0].elements; i++)
        z[i] = fabs(x[i] - y[i]) < tolerance;
    return TW_OK;
}
