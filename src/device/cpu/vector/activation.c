/* activation.c - Relu and its gradient on our own loops (rows "vector"). */
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#define TYPES (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

/* Relu (features), ReluGrad (gradients, features) */
static tw_status relu_prepare(twi_prepare *p)
{
    p->can_overwrite[0] = true;
    p->can_overwrite[1] = p->num_inputs > 1;
    return TW_OK;
}

static tw_status relu_run(const twi_run *r)
{
    const twi_loops *loops = twi_loops_best();
    bool gradient = r->num_inputs > 1;
    twi_elements_job job = {twi_form_of(r->output_operands[0].dtype), r->inputs[0], gradient ? r->inputs[1] : NULL,
                            r->outputs[0], r->output_operands[0].elements};
    twi_team_run(r->threads, gradient ? loops->relu_gradient : loops->relu, &job,
                 (job.elements + TWI_CHUNK - 1) / TWI_CHUNK);
    return TW_OK;
}

const twi_kernel twi_vector_activation_kernels[] = {
    {"Relu", "vector", TYPES, relu_prepare, relu_run, NULL},
    {"ReluGrad", "vector", TYPES, relu_prepare, relu_run, NULL},
    {0},
};
