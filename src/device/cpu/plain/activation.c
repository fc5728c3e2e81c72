/* activation.c - Relu and its relatives in plain C, element by element. */
#include "base/memory.h"
#include "device/cpu/plain/typed.h"

#include <tgmath.h>

/* The constants of self-normalizing networks (Klambauer et al., 2017): scale, and scale times alpha. */
#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_SCALE_ALPHA 1.7580993408473768599402175208123

/* y[i] from x[i] */
#define ACTIVATION(f, expression)                                                                                      \
    static tw_status NAME(f)(const twi_run *r)                                                                         \
    {                                                                                                                  \
        const REAL *x = r->inputs[0];                                                                                  \
        REAL *y = r->outputs[0];                                                                                       \
        int64_t n = r->output_operands[0].elements;                                                                    \
        TWI_PARALLEL_ELEMENTS_LOOP(r, n)                                                                               \
        for (int64_t i = 0; i < n; i++)                                                                                \
            y[i] = expression;                                                                                         \
        return TW_OK;                                                                                                  \
    }

/* dx[i] from dy[i] and x[i] */
#define GRADIENT(f, expression)                                                                                        \
    static tw_status NAME(f)(const twi_run *r)                                                                         \
    {                                                                                                                  \
        const REAL *dy = r->inputs[0], *x = r->inputs[1];                                                              \
        REAL *dx = r->outputs[0];                                                                                      \
        int64_t n = r->output_operands[0].elements;                                                                    \
        TWI_PARALLEL_ELEMENTS_LOOP(r, n)                                                                               \
        for (int64_t i = 0; i < n; i++)                                                                                \
            dx[i] = expression;                                                                                        \
        return TW_OK;                                                                                                  \
    }

#define BODY "device/cpu/plain/rectifier.inl"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#undef BODY
#define BODY "device/cpu/plain/activation.inl"
#include "device/cpu/plain/for_floats.h"

TWI_WIDENED(relu)
TWI_WIDENED(relu_grad)
TWI_WIDENED(relu6)
TWI_WIDENED(relu6_grad)
TWI_WIDENED(leaky_relu)
TWI_WIDENED(leaky_relu_grad)
TWI_WIDENED(elu)
TWI_WIDENED(elu_grad)
TWI_WIDENED(selu)
TWI_WIDENED(selu_grad)
TWI_WIDENED(softplus)
TWI_WIDENED(softplus_grad)
TWI_WIDENED(softsign)
TWI_WIDENED(softsign_grad)

/* State: alpha. */
static tw_status prepare_leaky(twi_prepare *p)
{
    float *alpha = twi_alloc(sizeof *alpha);
    if (!alpha)
        return twi_fail_memory(p->error, "preparing an activation");
    *alpha = twi_attr_float(p->attrs, "alpha", 0.2f);
    p->state = alpha;
    return twi_prepare_elementwise(p);
}

const twi_kernel twi_cpu_activation_kernels[] = {
    TWI_FLOAT_ROWS("Relu", twi_prepare_elementwise, relu, NULL),
    TWI_INTEGER_ROWS("Relu", twi_prepare_elementwise, relu, NULL),
    TWI_FLOAT_ROWS("ReluGrad", twi_prepare_elementwise, relu_grad, NULL),
    TWI_INTEGER_ROWS("ReluGrad", twi_prepare_elementwise, relu_grad, NULL),
    TWI_FLOAT_ROWS("Relu6", twi_prepare_elementwise, relu6, NULL),
    TWI_INTEGER_ROWS("Relu6", twi_prepare_elementwise, relu6, NULL),
    TWI_FLOAT_ROWS("Relu6Grad", twi_prepare_elementwise, relu6_grad, NULL),
    TWI_INTEGER_ROWS("Relu6Grad", twi_prepare_elementwise, relu6_grad, NULL),
    TWI_FLOAT_ROWS("LeakyRelu", prepare_leaky, leaky_relu, twi_free),
    TWI_FLOAT_ROWS("LeakyReluGrad", prepare_leaky, leaky_relu_grad, twi_free),
    TWI_FLOAT_ROWS("Elu", twi_prepare_elementwise, elu, NULL),
    TWI_FLOAT_ROWS("EluGrad", twi_prepare_elementwise, elu_grad, NULL),
    TWI_FLOAT_ROWS("Selu", twi_prepare_elementwise, selu, NULL),
    TWI_FLOAT_ROWS("SeluGrad", twi_prepare_elementwise, selu_grad, NULL),
    TWI_FLOAT_ROWS("Softplus", twi_prepare_elementwise, softplus, NULL),
    TWI_FLOAT_ROWS("SoftplusGrad", twi_prepare_elementwise, softplus_grad, NULL),
    TWI_FLOAT_ROWS("Softsign", twi_prepare_elementwise, softsign, NULL),
    TWI_FLOAT_ROWS("SoftsignGrad", twi_prepare_elementwise, softsign_grad, NULL),
    {0},
};
