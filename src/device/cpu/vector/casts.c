/* casts.c - Cast, IsNan, IsInf and IsFinite on our own loops (row "vector"), a row for each pair of types. */
#include "device/cpu/vector/casts.h"

#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

static tw_status run_cast(const twi_run *r, int number)
{
    twi_elements_job job = {.a = r->inputs[0], .out = r->outputs[0], .elements = r->output_operands[0].elements};
    twi_team_run(r->threads, twi_loops_best()->casts[number], &job, (job.elements + TWI_CHUNK - 1) / TWI_CHUNK);
    return TW_OK;
}

static tw_status accepts(const twi_prepare *p, tw_dtype from, tw_dtype to)
{
    return p->inputs[0].dtype == from && p->outputs[0].dtype == to ? TW_OK : TW_UNIMPLEMENTED;
}

#define HALVES(op, from, from_type, to, to_type, value)                                                                \
    static tw_status accepts_##op##_##from##_##to(const twi_prepare *p)                                                \
    {                                                                                                                  \
        return accepts(p, TW_##from, TW_##to);                                                                         \
    }                                                                                                                  \
    static tw_status run_##op##_##from##_##to(const twi_run *r)                                                        \
    {                                                                                                                  \
        return run_cast(r, TWI_CAST_##op##_##from##_##to);                                                             \
    }
TWI_CASTS(HALVES)

#define ROW(op, from, from_type, to, to_type, value)                                                                   \
    {#op, "vector", 0, NULL, run_##op##_##from##_##to, NULL, .accepts = accepts_##op##_##from##_##to},

const twi_kernel twi_vector_casts_kernels[] = {
    TWI_CASTS(ROW){0},
};
