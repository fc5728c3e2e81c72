/* examples.c - rows of a tower's batch and of the data set that it is made of. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"

static tw_status prepare(twi_prepare *p)
{
    twi_examples e;
    tw_status status = twi_examples_init(&e, p->attrs, p->inputs[0].shape, p->error);
    return status == TW_OK ? twi_keep(p, &e, sizeof e) : status;
}

static tw_status run(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_examples(r->stream, r->output_operands[0].dtype, r->state, r->inputs[0], r->inputs[1],
                                           r->inputs[2], r->outputs[0], r->outputs[1]));
}

static tw_status run_into(const twi_run *r)
{
    return TWI_LAUNCH(r, twi_cuda_examples(r->stream, TW_FLOAT32, r->state, r->inputs[0], r->inputs[1], r->inputs[2],
                                           (void *)r->inputs[3], (void *)r->inputs[4]));
}

const twi_kernel twi_cuda_examples_kernels[] = {
    {"TowerData", "cuda", 0},
    {"TowerBatch", "cuda", 0, prepare, run, twi_free},
    {"_TowerBatch", "cuda", TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16), prepare, run, twi_free},
    {"_TowerBatchInto", "cuda", 0, prepare, run_into, twi_free},
    {0},
};
