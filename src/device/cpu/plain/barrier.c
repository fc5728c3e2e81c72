/* barrier.c - the ops of barriers; device/state/barrier.h does the work. */
#include "device/state/barrier.h"

#include "base/memory.h"

static tw_status prepare_barrier(twi_prepare *p)
{
    const twi_attr *types = twi_attr_find(p->attrs, "component_types"), *shapes = twi_attr_find(p->attrs, "shapes");
    if (types->count > TWI_BARRIER_COMPONENTS)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "Barrier '%s' has %d components, the most are %d", p->node,
                        types->count, TWI_BARRIER_COMPONENTS);
    return twi_barrier_make(p->outputs[0].resource, p->node, types->types, shapes->count ? shapes->shapes : NULL,
                            types->count, p->error);
}

static tw_status expect_barrier(const twi_prepare *p)
{
    if (twi_barrier_of(p->inputs[0].resource))
        return TW_OK;
    return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': its input 0 is not the handle of a barrier", p->op,
                    p->node);
}

/* state: a number of the node's own. */
static tw_status prepare_put(twi_prepare *p)
{
    int64_t component = twi_attr_int(p->attrs, "component_index", 0);
    tw_status status = expect_barrier(p);
    return status == TW_OK ? twi_keep(p, &component, sizeof component) : status;
}

static tw_status prepare_take(twi_prepare *p)
{
    int64_t fewer = twi_attr_bool(p->attrs, "allow_small_batch", false);
    tw_status status = expect_barrier(p);
    return status == TW_OK ? twi_keep(p, &fewer, sizeof fewer) : status;
}

static tw_status prepare_close(twi_prepare *p)
{
    int64_t cancel = twi_attr_bool(p->attrs, "cancel_pending_enqueues", false);
    tw_status status = expect_barrier(p);
    return status == TW_OK ? twi_keep(p, &cancel, sizeof cancel) : status;
}

static tw_status prepare_size(twi_prepare *p)
{
    return expect_barrier(p);
}

static twi_barrier *barrier_of(const twi_run *r)
{
    return twi_barrier_of(r->input_operands[0].resource);
}

static tw_status run_put(const twi_run *r)
{
    return twi_barrier_put(barrier_of(r), r, *(const int64_t *)r->state, &r->input_operands[1], r->inputs[1],
                           &r->input_operands[2], r->inputs[2]);
}

static tw_status run_take(const twi_run *r)
{
    return twi_barrier_take(barrier_of(r), r, *(const int32_t *)r->inputs[1], *(const int64_t *)r->state);
}

static tw_status run_close(const twi_run *r)
{
    return twi_barrier_close(barrier_of(r), r, *(const int64_t *)r->state);
}

static tw_status run_whole(const twi_run *r)
{
    *(int32_t *)r->outputs[0] = (int32_t)twi_barrier_count(barrier_of(r), true);
    return TW_OK;
}

static tw_status run_begun(const twi_run *r)
{
    *(int32_t *)r->outputs[0] = (int32_t)twi_barrier_count(barrier_of(r), false);
    return TW_OK;
}

const twi_kernel twi_cpu_barrier_kernels[] = {
    {"Barrier", "plain", 0, prepare_barrier},
    {"BarrierInsertMany", "plain", 0, prepare_put, run_put, twi_free},
    {"BarrierTakeMany", "plain", 0, prepare_take, run_take, twi_free},
    {"BarrierClose", "plain", 0, prepare_close, run_close, twi_free},
    {"BarrierReadySize", "plain", 0, prepare_size, run_whole},
    {"BarrierIncompleteSize", "plain", 0, prepare_size, run_begun},
    {0},
};
