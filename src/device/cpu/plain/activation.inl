/* activation.inl - activations of floats; see activation.c. `x` of a gradient is what its op takes there: the features,
 * or for elu and selu the outputs. */

ACTIVATION(elu, x[i] < 0 ? expm1(x[i]) : x[i])
GRADIENT(elu_grad, x[i] < 0 ? dy[i] * (x[i] + 1) : dy[i])
ACTIVATION(selu, x[i] < 0 ? expm1(x[i]) * (REAL)SELU_SCALE_ALPHA : x[i] * (REAL)SELU_SCALE)
GRADIENT(selu_grad, x[i] < 0 ? dy[i] * (x[i] + (REAL)SELU_SCALE_ALPHA) : dy[i] * (REAL)SELU_SCALE)
/* log(1 + exp(x)), without overflow */
ACTIVATION(softplus, (x[i] < 0 ? 0 : x[i]) + log1p(exp(-fabs(x[i]))))
GRADIENT(softplus_grad, dy[i] / (exp(-x[i]) + 1))
ACTIVATION(softsign, x[i] / (fabs(x[i]) + 1))
GRADIENT(softsign_grad, dy[i] / ((fabs(x[i]) + 1) * (fabs(x[i]) + 1)))

static tw_status NAME(leaky_relu)(const twi_run *r)
{
    const REAL *x = r->inputs[0];
    REAL *y = r->outputs[0], alpha = (REAL) * (const float *)r->state;
    int64_t n = r->output_operands[0].elements;
    TWI_PARALLEL_ELEMENTS_LOOP(r, n)
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] > 0 ? x[i] : alpha * x[i];
    return TW_OK;
}

static tw_status NAME(leaky_relu_grad)(const twi_run *r)
{
    const REAL *dy = r->inputs[0], *x = r->inputs[1];
    REAL *dx = r->outputs[0], alpha = (REAL) * (const float *)r->state;
    int64_t n = r->output_operands[0].elements;
    TWI_PARALLEL_ELEMENTS_LOOP(r, n)
    for (int64_t i = 0; i < n; i++)
        dx[i] = x[i] > 0 ? dy[i] : alpha * dy[i];
    return TW_OK;
}
