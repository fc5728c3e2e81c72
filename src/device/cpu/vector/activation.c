/* activation.c - Relu, Relu6, LeakyRelu and their gradients on our own loops (rows "vector"). */
#include "base/memory.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#define TYPES (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

/* What of the job the node says. */
static tw_status prepare(twi_prepare *p, twi_rectifier rectifier)
{
    twi_elements_job job = {.form = twi_form_of(p->outputs[0].dtype),
                            .elements = p->outputs[0].elements,
                            .rectifier = rectifier,
                            .slope = twi_attr_float(p->attrs, "alpha", 0.2f)};
    p->can_overwrite[0] = true;
    p->can_overwrite[1] = p->num_inputs > 1;
    return twi_keep(p, &job, sizeof job);
}

/* Relu (features), ReluGrad (gradients, features), and so on */
static tw_status relu_prepare(twi_prepare *p)
{
    return prepare(p, TWI_RELU);
}

static tw_status relu6_prepare(twi_prepare *p)
{
    return prepare(p, TWI_RELU6);
}

static tw_status leaky_prepare(twi_prepare *p)
{
    return prepare(p, TWI_LEAKY_RELU);
}

static tw_status relu_run(const twi_run *r)
{
    const twi_loops *loops = twi_loops_best();
    bool gradient = r->num_inputs > 1;
    twi_elements_job job = *(const twi_elements_job *)r->state;
    job.a = r->inputs[0];
    job.b = gradient ? r->inputs[1] : NULL;
    job.out = r->outputs[0];
    twi_team_run(r->threads, gradient ? loops->relu_gradient : loops->relu, &job,
                 (job.elements + TWI_CHUNK - 1) / TWI_CHUNK);
    return TW_OK;
}

const twi_kernel twi_vector_activation_kernels[] = {
    {"Relu", "vector", TYPES, relu_prepare, relu_run, twi_free},
    {"ReluGrad", "vector", TYPES, relu_prepare, relu_run, twi_free},
    {"Relu6", "vector", TYPES, relu6_prepare, relu_run, twi_free},
    {"Relu6Grad", "vector", TYPES, relu6_prepare, relu_run, twi_free},
    {"LeakyRelu", "vector", TYPES, leaky_prepare, relu_run, twi_free},
    {"LeakyReluGrad", "vector", TYPES, leaky_prepare, relu_run, twi_free},
    {0},
};
