/* random.c - RandomUniform of floats on our own loops (row "vector"): the plain kernel's stream, bit for bit. */
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"
#include "device/state/random.h"

/* RandomUniform (shape) */
static tw_status uniform_run(const twi_run *r)
{
    uint64_t elements = (uint64_t)r->output_operands[0].elements;
    twi_uniform_job job = {.start = twi_random_take(r->state, elements * TWI_RANDOM_BLOCKS), .out = r->outputs[0],
                           .elements = (int64_t)elements};
    twi_team_run(r->threads, twi_loops_best()->uniform, &job, (job.elements + TWI_CHUNK - 1) / TWI_CHUNK);
    return TW_OK;
}

const twi_kernel twi_vector_random_kernels[] = {
    {"RandomUniform", "vector", TWI_TYPE(TW_FLOAT32), twi_random_prepare, uniform_run, NULL},
    {0},
};
