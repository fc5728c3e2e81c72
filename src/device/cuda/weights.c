/* weights.c - the row of variables as a step computes with them; see rewrite/weights.c. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"

static tw_status run_cast_many(const twi_run *r)
{
    tw_status status = TW_OK;
    const bool *transposed = r->state;
    for (int begin = 0; begin < r->num_inputs && status == TW_OK; begin += TWI_CUDA_MANY) {
        twi_cuda_casts some = {0};
        for (; some.count < TWI_CUDA_MANY && begin + some.count < r->num_inputs; some.count++) {
            const twi_operand *to = &r->output_operands[begin + some.count];
            some.from[some.count] = r->inputs[begin + some.count];
            some.to[some.count] = r->outputs[begin + some.count];
            some.elements[some.count] = to->elements;
            some.columns[some.count] = transposed[begin + some.count] ? (int)to->shape.dims[0] : 0;
        }
        status = TWI_LAUNCH(r, twi_cuda_cast_many(r->stream, r->output_operands[0].dtype, &some));
    }
    return status;
}

static tw_status prepare_cast_many(twi_prepare *p)
{
    int count = 0;
    const int64_t *transposed = twi_attr_ints(p->attrs, "transposed", &count);
    bool *state = twi_alloc_array((size_t)p->num_inputs, sizeof *state);
    if (!state)
        return twi_fail_memory(p->error, p->node);
    for (int i = 0; i < count && i < p->num_inputs; i++)
        state[i] = transposed[i];
    p->state = state;
    return TW_OK;
}

const twi_kernel twi_cuda_weights_kernels[] = {
    {"_CastMany", "cuda", TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16), prepare_cast_many,
     run_cast_many, twi_free},
    {0},
};
