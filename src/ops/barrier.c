/* barrier.c - barriers as nodes of a graph: making, filling and emptying them. */
#include "ops/rules.h"

static tw_status barrier_shape(twi_inference *c)
{
    const twi_attr *types = twi_attr_find(c->attrs, "component_types"), *shapes = twi_attr_find(c->attrs, "shapes");
    c->outputs[0] = TW_SCALAR;
    if (shapes->count && shapes->count != types->count)
        return TWI_REFUSE(c, "%d shapes for %d components", shapes->count, types->count);
    for (int i = 0; i < types->count; i++)
        if (types->types[i] == TW_RESOURCE || types->types[i] == TW_VARIANT)
            return TWI_REFUSE(c, "component %d is a %s, which cannot wait in a barrier", i,
                              tw_dtype_name(types->types[i]));
    if (twi_attr_int(c->attrs, "capacity", -1) != -1)
        return TWI_REFUSE(
            c, "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to enforce a "
               "limited capacity.");
    return TW_OK;
}

static tw_status put_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 1, 1);
    return status == TW_OK ? twi_expect_rank_at_least(c, 2, 1) : status;
}

/* How many come, and of which shape, the barrier knows. */
static tw_status take_shape(twi_inference *c)
{
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = i < 2 ? TW_SHAPE(-1) : TW_UNKNOWN_SHAPE;
    return twi_expect_rank(c, 1, 0);
}

static tw_status nothing_shape(twi_inference *c)
{
    (void)c;
    return TW_OK;
}

#define STATE TWI_STATEFUL | TWI_HOST_ONLY

const twi_op twi_barrier_ops[] = {
    {"Barrier", "", "handle:resource",
     "component_types:types>=1; shapes:shapes=[]; capacity:int=-1; container:string=; shared_name:string=",
     barrier_shape, NULL, STATE, .makes = TWI_MAKES_QUEUE},
    {"BarrierInsertMany", "handle:resource, keys:string, values:T", "", "T:type; component_index:int", put_shape, NULL,
     STATE, "q.."},
    {"BarrierTakeMany", "handle:resource, num_elements:int32", "indices:int64, keys:string, values:component_types",
     "component_types:types>=1; allow_small_batch:bool=false; wait_for_incomplete:bool=false; timeout_ms:int=-1",
     take_shape, twi_not_differentiable, STATE | TWI_INPUT | TWI_MAKES_SHAPE, "q."},
    {"BarrierClose", "handle:resource", "", "cancel_pending_enqueues:bool=false", nothing_shape, NULL, STATE, "q"},
    {"BarrierReadySize", "handle:resource", "size:int32", "", twi_shape_scalar, twi_not_differentiable, STATE, "q"},
    {"BarrierIncompleteSize", "handle:resource", "size:int32", "", twi_shape_scalar, twi_not_differentiable, STATE,
     "q"},
    {0},
};
