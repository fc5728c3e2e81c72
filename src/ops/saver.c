/* saver.c - the ops of TensorFlow 1's Saver: checkpoints written and read by nodes of the graph. */
#include "ops/build.h"

#include <string.h>

/* One string of scalars, and of shapes that agree. */
static tw_status join_shape(twi_inference *c)
{
    tw_status status = TW_OK;
    c->outputs[0] = TW_SCALAR;
    for (int i = 0; i < c->num_inputs && status == TW_OK; i++) {
        if (c->inputs[i].rank == 0)
            continue;
        if (c->outputs[0].rank == 0)
            c->outputs[0] = c->inputs[i];
        else
            status = twi_merge_shapes(c->outputs[0], c->inputs[i], &c->outputs[0], c->error);
    }
    return status;
}

/* What the planner found out: the shapes of the variables that are restored. */
static tw_status restored_shape(twi_inference *c)
{
    const twi_attr *shapes = twi_attr_find(c->attrs, "shapes");
    for (int i = 0; i < c->num_outputs && i < shapes->count; i++)
        c->outputs[i] = shapes->shapes[i];
    return TW_OK;
}

#define RESTORE "prefix:string, tensor_names:string, shape_and_slices:string", "tensors:dtypes"
#define STATE TWI_STATEFUL | TWI_HOST_ONLY

const twi_op twi_saver_ops[] = {
    {"SaveV2", "prefix:string, tensor_names:string, shape_and_slices:string, tensors:dtypes", "", "dtypes:types",
     twi_shape_unknown, twi_not_differentiable, STATE},
    {"RestoreV2", RESTORE, "dtypes:types", twi_shape_unknown, twi_not_differentiable, STATE | TWI_RESTORE,
     .planned_as = "_RestoreV2"},
    {"_RestoreV2", RESTORE, "dtypes:types; shapes:shapes", restored_shape, NULL, STATE | TWI_REWRITTEN | TWI_RESTORE},
    {"MergeV2Checkpoints", "checkpoint_prefixes:string, destination_prefix:string", "", "delete_old_dirs:bool=true",
     twi_shape_unknown, twi_not_differentiable, STATE},
    {"ShardedFilename", "basename:string, shard:int32, num_shards:int32", "filename:string", "", twi_shape_scalar,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"StringJoin", "inputs:N*string", "output:string", "N:int; separator:string=", join_shape, twi_not_differentiable,
     TWI_HOST_ONLY},
    {"StaticRegexFullMatch", "input:string", "output:bool", "pattern:string", twi_shape_same, twi_not_differentiable,
     TWI_HOST_ONLY},
    {0},
};
