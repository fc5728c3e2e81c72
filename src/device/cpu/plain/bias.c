/* bias.c - BiasAdd, BiasAddV1 and BiasAddGrad in plain C, for every number type and both data formats. */
#include "base/memory.h"
#include "device/cpu/plain/typed.h"

#include <string.h>

enum { CHANNEL_BLOCK = 16 };

typedef struct bias {
    int64_t outer, channels, inner; /* inner is 1 unless channels come first */
} bias;

#define BODY "device/cpu/plain/bias.inl"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_complex.h"
#include "device/cpu/plain/for_integers.h"

TWI_WIDENED(bias_add)
TWI_WIDENED(bias_add_grad)

static tw_status prepare(twi_prepare *p, const twi_operand *vector)
{
    tw_shape shape = p->inputs[0].shape;
    int axis = strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NCHW") == 0 ? 1 : shape.rank - 1;
    if (shape.rank < 2 || vector->shape.rank != 1 || vector->shape.dims[0] != shape.dims[axis])
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "the bias must be a vector as long as the value has channels");
    bias *state = twi_alloc(sizeof *state);
    if (!state)
        return twi_fail_memory(p->error, "preparing a bias");
    *state = (bias){1, shape.dims[axis], 1};
    for (int i = 0; i < axis; i++)
        state->outer *= shape.dims[i];
    for (int i = axis + 1; i < shape.rank; i++)
        state->inner *= shape.dims[i];
    if (p->inputs[0].elements == 0) /* whose axes may be as long as they like */
        state->outer = 0;
    p->state = state;
    p->workspace = twi_widened_bytes(p);
    return TW_OK;
}

static tw_status prepare_add(twi_prepare *p)
{
    p->can_overwrite[0] = true;
    return prepare(p, &p->inputs[1]);
}

static tw_status prepare_grad(twi_prepare *p)
{
    return prepare(p, &p->outputs[0]);
}

const twi_kernel twi_cpu_bias_kernels[] = {
    TWI_FLOAT_ROWS("BiasAdd", prepare_add, bias_add, twi_free),
    TWI_INTEGER_ROWS("BiasAdd", prepare_add, bias_add, twi_free),
    TWI_COMPLEX_ROWS("BiasAdd", prepare_add, bias_add, twi_free),
    TWI_FLOAT_ROWS("BiasAddV1", prepare_add, bias_add, twi_free),
    TWI_INTEGER_ROWS("BiasAddV1", prepare_add, bias_add, twi_free),
    TWI_COMPLEX_ROWS("BiasAddV1", prepare_add, bias_add, twi_free),
    TWI_FLOAT_ROWS("BiasAddGrad", prepare_grad, bias_add_grad, twi_free),
    TWI_INTEGER_ROWS("BiasAddGrad", prepare_grad, bias_add_grad, twi_free),
    TWI_COMPLEX_ROWS("BiasAddGrad", prepare_grad, bias_add_grad, twi_free),
    {0},
};
