/* complex.inl - functions of complex numbers; see complex.c. */

BINARY(add, REAL, x + y)
BINARY(sub, REAL, x - y)
BINARY(mul, REAL, x *y)
BINARY(div, REAL, x / y)
BINARY(mul_no_nan, REAL, y == 0 ? 0 : x *y)
BINARY(div_no_nan, REAL, y == 0 ? 0 : x / y)
BINARY(xdivy, REAL, x == 0 ? 0 : x / y)
BINARY(xlogy, REAL, x == 0 ? 0 : x *log(y))
BINARY(xlog1py, REAL, x == 0 ? 0 : x *NAME(log1p_of)(y))
BINARY(squared_difference, REAL, (x - y) * conj(x - y))
BINARY(power, REAL, pow(x, y))
BINARY(same, bool, x == y)
BINARY(differs, bool, x != y)

#define FUNCTION(op, f, expression) UNARY(f, REAL, expression)
COMPLEX_FUNCTIONS(FUNCTION)
#undef FUNCTION

UNARY(conjugate, REAL, conj(x))
UNARY(real_part, PART, creal(x))
UNARY(imaginary_part, PART, cimag(x))
UNARY(magnitude, PART, fabs(x))
UNARY(angle, PART, carg(x))

/* Of parts, which broadcast. */
#define JOIN(x, y) ((REAL)CMPLX((double)(x), (double)(y)))
static tw_status NAME(join)(const twi_run *r)
{
    const twi_broadcast *b = r->state;
    for (int64_t k = 0; k < b->runs; k++) {
        int64_t x, y;
        twi_broadcast_start(b, k, &x, &y);
        const PART *real = (const PART *)r->inputs[0] + x, *imaginary = (const PART *)r->inputs[1] + y;
        REAL *to = (REAL *)r->outputs[0] + k * b->run;
        for (int64_t i = 0; i < b->run; i++)
            to[i] = JOIN(real[b->x_moves ? i : 0], imaginary[b->y_moves ? i : 0]);
    }
    return TW_OK;
}
#undef JOIN

/* Gradients in terms of the output y and the incoming dy; see elementwise_float.inl. As TensorFlow's, some take the
 * conjugate of y themselves, and of the others it is taken before. */
#define FROM_OUTPUT(f, expression)                                                                                     \
    static tw_status NAME(f)(const twi_run *r)                                                                         \
    {                                                                                                                  \
        const REAL *ys = r->inputs[0], *dys = r->inputs[1];                                                            \
        REAL *dx = r->outputs[0];                                                                                      \
        for (int64_t i = 0; i < r->output_operands[0].elements; i++) {                                                 \
            REAL y = ys[i], dy = dys[i];                                                                               \
            dx[i] = expression;                                                                                        \
        }                                                                                                              \
        return TW_OK;                                                                                                  \
    }
FROM_OUTPUT(sqrt_grad, dy == 0 ? 0 : dy * (PART)0.5 / conj(y))
FROM_OUTPUT(rsqrt_grad, dy == 0 ? 0 : dy * (PART)-0.5 * conj(y * y * y))
FROM_OUTPUT(reciprocal_grad, dy == 0 ? 0 : -dy * conj(y * y))
FROM_OUTPUT(sigmoid_grad, dy *y *(1 - y))
FROM_OUTPUT(tanh_grad, dy *(1 - y * y))
#undef FROM_OUTPUT

static tw_status NAME(add_n)(const twi_run *r)
{
    for (int64_t i = 0; i < r->output_operands[0].elements; i++) {
        REAL sum = ((const REAL *)r->inputs[0])[i];
        for (int k = 1; k < r->num_inputs; k++)
            sum += ((const REAL *)r->inputs[k])[i];
        ((REAL *)r->outputs[0])[i] = sum;
    }
    return TW_OK;
}
