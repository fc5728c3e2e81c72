/* elementwise.c - casts between float and bfloat16 on our own loops (row "vector"). */
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#define TYPES (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

/* Cast (x), between float and bfloat16 */
static tw_status cast_accepts(const twi_prepare *p)
{
    tw_dtype from = p->inputs[0].dtype, to = p->outputs[0].dtype;
    bool known = (from == TW_FLOAT32 && to == TW_BFLOAT16) || (from == TW_BFLOAT16 && to == TW_FLOAT32);
    return known ? TW_OK : TW_UNIMPLEMENTED;
}

static tw_status cast_run(const twi_run *r)
{
    twi_elements_job job = {.form = twi_form_of(r->input_operands[0].dtype), .a = r->inputs[0], .out = r->outputs[0],
                            .elements = r->input_operands[0].elements};
    twi_team_run(r->threads, twi_loops_best()->cast, &job, (job.elements + TWI_CHUNK - 1) / TWI_CHUNK);
    return TW_OK;
}

const twi_kernel twi_vector_elementwise_kernels[] = {
    {"Cast", "vector", TYPES, NULL, cast_run, NULL, .accepts = cast_accepts},
    {0},
};
