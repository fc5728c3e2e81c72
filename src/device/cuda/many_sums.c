/* many_sums.c - the rows of many L2 losses at once, and of whether many tensors are finite. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))

/* Launches of one node follow each other, so they share counter and parts. */
typedef struct plan {
    unsigned *counters; /* last_block.cuh */
} plan;

static tw_status accepts(const twi_prepare *p)
{
    for (int i = 0; i < p->num_inputs; i++)
        if (p->inputs[i].elements > INT32_MAX)
            return twi_fail(p->error, TW_UNIMPLEMENTED, "input %d has %lld elements, expected %d at most", i,
                            (long long)p->inputs[i].elements, INT32_MAX);
    return TW_OK;
}

static tw_status prepare(twi_prepare *p)
{
    plan kept = {NULL};
    twi_make_room(&p->workspace, TWI_CUDA_MANY_SUMS_PARTS * sizeof(float));
    tw_status status = twi_cuda_take_counters(p, &kept.counters);
    return status != TW_OK ? status : twi_keep(p, &kept, sizeof kept);
}

static tw_status run_many(const twi_run *r, bool finite)
{
    const plan *kept = r->state;
    tw_status status = TW_OK;
    for (int begin = 0; begin < r->num_inputs && status == TW_OK; begin += TWI_CUDA_MANY) {
        twi_cuda_many_sums some = {.count = r->num_inputs - begin};
        if (some.count > TWI_CUDA_MANY)
            some.count = TWI_CUDA_MANY;
        for (int i = 0; i < some.count; i++) {
            some.x[i] = r->inputs[begin + i];
            some.to[i] = r->outputs[begin + i];
            some.elements[i] = (int)r->input_operands[begin + i].elements;
        }
        status = TWI_LAUNCH(r, twi_cuda_many_sums_run(r->stream, r->input_operands[0].dtype, finite, &some,
                                                      r->workspace, kept->counters));
    }
    return status;
}

static tw_status run_losses(const twi_run *r)
{
    return run_many(r, false);
}

static tw_status run_finite(const twi_run *r)
{
    return run_many(r, true);
}

const twi_kernel twi_cuda_many_sums_kernels[] = {
    {"_L2LossMany", "cuda", FLOATS, prepare, run_losses, twi_free, .accepts = accepts},
    {"_AllFiniteMany", "cuda", FLOATS, prepare, run_finite, twi_free, .accepts = accepts},
    {0},
};
