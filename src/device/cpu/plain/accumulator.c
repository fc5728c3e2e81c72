/* accumulator.c - the ops of accumulators (device/state/accumulator.h does the work) and of staging areas, which are
 * queues that nodes find by name (device/state/queue.h). */
#include "device/state/accumulator.h"
#include "device/state/queue.h"

#include <string.h>

/* ---- accumulators ------------------------------------------------------------------------------------------------ */

static tw_status prepare_accumulator(twi_prepare *p)
{
    const twi_attr *shape = twi_attr_find(p->attrs, "shape");
    return twi_accumulator_make(p->outputs[0].resource,
                                &(twi_accumulator_options){
                                    .name = p->node,
                                    .dtype = twi_attr_type(p->attrs, "dtype"),
                                    .shape = shape->shape,
                                    .sparse = strcmp(p->op, "SparseConditionalAccumulator") == 0,
                                    .mean = strcmp(twi_attr_string(p->attrs, "reduction_type", "MEAN"), "MEAN") == 0,
                                },
                                p->error);
}

/* state: the accumulator. */
static tw_status prepare_use(twi_prepare *p)
{
    const twi_attr *dtype = twi_attr_find(p->attrs, "dtype");
    p->state = twi_accumulator_of(p->inputs[0].resource);
    if (!p->state)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': its input 0 is not the handle of an accumulator",
                        p->op, p->node);
    if (dtype && dtype->type != twi_accumulator_what(p->state)->dtype)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': a gradient of %s, the accumulator has %s", p->op,
                        p->node, tw_dtype_name(dtype->type), tw_dtype_name(twi_accumulator_what(p->state)->dtype));
    if (dtype && twi_accumulator_what(p->state)->sparse != (strncmp(p->op, "Sparse", 6) == 0))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': the accumulator is %s", p->op, p->node,
                        twi_accumulator_what(p->state)->sparse ? "sparse" : "not sparse");
    return TW_OK;
}

static tw_status run_apply(const twi_run *r)
{
    return twi_accumulator_apply(r->state, r, *(const int64_t *)r->inputs[1], NULL, r->input_operands[2].shape,
                                 r->inputs[2]);
}

static tw_status run_sparse_apply(const twi_run *r)
{
    const twi_operand *values = &r->input_operands[3];
    if (values->shape.rank < 1 || values->shape.dims[0] != r->input_operands[2].elements)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld indices, but %lld rows", r->node,
                        (long long)r->input_operands[2].elements,
                        (long long)(values->shape.rank < 1 ? 0 : values->shape.dims[0]));
    return twi_accumulator_apply(r->state, r, *(const int64_t *)r->inputs[1], r->inputs[2], values->shape,
                                 r->inputs[3]);
}

static tw_status run_take(const twi_run *r)
{
    return twi_accumulator_take(r->state, r, *(const int32_t *)r->inputs[1]);
}

static tw_status run_set_step(const twi_run *r)
{
    twi_accumulator_set_step(r->state, *(const int64_t *)r->inputs[1]);
    return TW_OK;
}

static tw_status run_count(const twi_run *r)
{
    *(int32_t *)r->outputs[0] = (int32_t)twi_accumulator_count(r->state);
    return TW_OK;
}

/* ---- staging areas ----------------------------------------------------------------------------------------------- */

/* state: the queue that has the area's name. */
static tw_status prepare_staging(twi_prepare *p)
{
    const char *shared = twi_attr_string(p->attrs, "shared_name", ""), *name = *shared ? shared : p->node;
    const twi_attr *types = twi_attr_find(p->attrs, "dtypes");
    int64_t capacity = twi_attr_int(p->attrs, "capacity", 0);
    if (twi_attr_int(p->attrs, "memory_limit", 0))
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s': memory_limit is not supported, capacity is", p->op,
                        p->node);
    if (types->count > TWI_QUEUE_COMPONENTS)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s' has %d components, the most are %d", p->op, p->node,
                        types->count, TWI_QUEUE_COMPONENTS);
    twi_resource *resource = p->resources->get(p->resources, name);
    if (!resource)
        return twi_fail_memory(p->error, p->node);
    twi_queue_options options = {.kind = "StagingArea",
                                 .name = name,
                                 .order = TWI_QUEUE_FIFO,
                                 .capacity = capacity > 0 ? capacity : -1,
                                 .num_components = types->count,
                                 .types = types->types};
    tw_status status = twi_queue_make(resource, &options, p->error);
    p->state = status == TW_OK ? twi_queue_of(resource) : NULL;
    return status;
}

static tw_status run_stage(const twi_run *r)
{
    return twi_queue_put(r->state, r, r->input_operands, r->inputs, -1);
}

static tw_status run_unstage(const twi_run *r)
{
    return twi_queue_take(r->state, r, -1, false);
}

static tw_status run_stage_peek(const twi_run *r)
{
    return twi_queue_peek(r->state, r, *(const int32_t *)r->inputs[0]);
}

static tw_status run_stage_size(const twi_run *r)
{
    *(int32_t *)r->outputs[0] = (int32_t)twi_queue_size(r->state);
    return TW_OK;
}

static tw_status run_stage_clear(const twi_run *r)
{
    twi_queue_clear(r->state);
    return TW_OK;
}

const twi_kernel twi_cpu_accumulator_kernels[] = {
    {"ConditionalAccumulator", "plain", 0, prepare_accumulator},
    {"ResourceConditionalAccumulator", "plain", 0, prepare_accumulator},
    {"SparseConditionalAccumulator", "plain", 0, prepare_accumulator},
    {"AccumulatorApplyGradient", "plain", 0, prepare_use, run_apply},
    {"ResourceAccumulatorApplyGradient", "plain", 0, prepare_use, run_apply},
    {"SparseAccumulatorApplyGradient", "plain", 0, prepare_use, run_sparse_apply},
    {"AccumulatorTakeGradient", "plain", 0, prepare_use, run_take},
    {"ResourceAccumulatorTakeGradient", "plain", 0, prepare_use, run_take},
    {"SparseAccumulatorTakeGradient", "plain", 0, prepare_use, run_take},
    {"AccumulatorSetGlobalStep", "plain", 0, prepare_use, run_set_step},
    {"ResourceAccumulatorSetGlobalStep", "plain", 0, prepare_use, run_set_step},
    {"AccumulatorNumAccumulated", "plain", 0, prepare_use, run_count},
    {"ResourceAccumulatorNumAccumulated", "plain", 0, prepare_use, run_count},
    {"Stage", "plain", 0, prepare_staging, run_stage},
    {"Unstage", "plain", 0, prepare_staging, run_unstage},
    {"StagePeek", "plain", 0, prepare_staging, run_stage_peek},
    {"StageSize", "plain", 0, prepare_staging, run_stage_size},
    {"StageClear", "plain", 0, prepare_staging, run_stage_clear},
    {0},
};
