/* elementwise.c - casts between float and bfloat16, and functions of floats, doubles and 16 bits, on our own loops (row
 * "vector"). */
#include "base/memory.h"
#include "device/cpu/plain/typed.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#define TYPES (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

static int64_t count_chunks(int64_t elements)
{
    return (elements + TWI_CHUNK - 1) / TWI_CHUNK;
}

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
    twi_team_run(r->threads, twi_loops_best()->cast, &job, count_chunks(job.elements));
    return TW_OK;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static tw_status unary_prepare(twi_prepare *p)
{
    p->can_overwrite[0] = true;
    p->workspace = twi_widened_bytes(p);
    return TW_OK;
}

static tw_status run_unary(const twi_run *r, twi_share *loop)
{
    twi_function_job job = {.x = r->inputs[0], .out = r->outputs[0], .elements = r->output_operands[0].elements};
    twi_team_run(r->threads, loop, &job, count_chunks(job.elements));
    return TW_OK;
}

static tw_status binary_prepare(twi_prepare *p)
{
    twi_broadcast walk;
    p->can_overwrite[0] = p->can_overwrite[1] = true;
    p->workspace = twi_widened_bytes(p);
    twi_broadcast_init(&walk, p->inputs[0].shape, p->inputs[1].shape, p->outputs[0].shape);
    return twi_keep(p, &walk, sizeof walk);
}

static tw_status run_binary(const twi_run *r, twi_share *loop)
{
    const twi_broadcast *walk = r->state;
    twi_function_job job = {.x = r->inputs[0], .y = r->inputs[1], .out = r->outputs[0], .walk = walk,
                            .elements = r->output_operands[0].elements};
    if (walk->runs == 1)
        twi_team_run(r->threads, loop, &job, count_chunks(job.elements));
    else
        twi_team_run(job.elements > TWI_CHUNK ? r->threads : 1, loop, &job, walk->runs);
    return TW_OK;
}

#define UNARY_RUN(op, expression)                                                                                      \
    static tw_status op##_run(const twi_run *r)                                                                        \
    {                                                                                                                  \
        return run_unary(r, twi_loops_best()->functions[TWI_FUNCTION_##op]);                                           \
    }
#define WIDENED_RUN(op, expression)                                                                                    \
    static tw_status op##_widened(const twi_run *r)                                                                    \
    {                                                                                                                  \
        return twi_run_widened(r, op##_run);                                                                           \
    }
TWI_UNARY_FUNCTIONS(UNARY_RUN)
TWI_UNARY_FUNCTIONS(WIDENED_RUN)

#define UNARY_RUN_OF_DOUBLES(op, expression) UNARY_RUN(op##_of_doubles, expression)
TWI_UNARY_FUNCTIONS_OF_DOUBLES(UNARY_RUN_OF_DOUBLES)

#define BINARY_RUN(op, expression)                                                                                     \
    static tw_status op##_run(const twi_run *r)                                                                        \
    {                                                                                                                  \
        return run_binary(r, twi_loops_best()->functions[TWI_FUNCTION_##op]);                                          \
    }
TWI_BINARY_FUNCTIONS(BINARY_RUN)
TWI_BINARY_FUNCTIONS(WIDENED_RUN)

#define BINARY_RUN_OF_DOUBLES(op, expression) BINARY_RUN(op##_of_doubles, expression)
TWI_BINARY_FUNCTIONS_OF_DOUBLES(BINARY_RUN_OF_DOUBLES)

#define UNARY_ROW(op, expression)                                                                                      \
    {#op, "vector", TWI_TYPE(TW_FLOAT32), unary_prepare, op##_run, NULL},                                              \
        {#op, "vector", TWI_NARROW_TYPES, unary_prepare, op##_widened, NULL},
#define BINARY_ROW(op, expression)                                                                                     \
    {#op, "vector", TWI_TYPE(TW_FLOAT32), binary_prepare, op##_run, twi_free},                                         \
        {#op, "vector", TWI_NARROW_TYPES, binary_prepare, op##_widened, twi_free},
#define UNARY_ROW_OF_DOUBLES(op, expression)                                                                           \
    {#op, "vector", TWI_TYPE(TW_FLOAT64), unary_prepare, op##_of_doubles_run, NULL},
#define BINARY_ROW_OF_DOUBLES(op, expression)                                                                          \
    {#op, "vector", TWI_TYPE(TW_FLOAT64), binary_prepare, op##_of_doubles_run, twi_free},

const twi_kernel twi_vector_elementwise_kernels[] = {
    {"Cast", "vector", TYPES, NULL, cast_run, NULL, .accepts = cast_accepts},
    TWI_UNARY_FUNCTIONS(UNARY_ROW) TWI_BINARY_FUNCTIONS(BINARY_ROW)
    TWI_UNARY_FUNCTIONS_OF_DOUBLES(UNARY_ROW_OF_DOUBLES) TWI_BINARY_FUNCTIONS_OF_DOUBLES(BINARY_ROW_OF_DOUBLES)
    {0},
};
