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

/* What the planner found out: the shapes of the variables that are restored. What is for none has that in the file. */
static tw_status restored_shape(twi_inference *c)
{
    const twi_attr *shapes = twi_attr_find(c->attrs, "shapes");
    for (int i = 0; i < c->num_outputs && i < shapes->count; i++)
        c->outputs[i] = shapes->shapes[i];
    return TW_OK;
}

/* The first two inputs are one name each. */
static tw_status expect_names(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 0);
    return status == TW_OK ? twi_expect_rank(c, 1, 0) : status;
}

/* Numbers of old lines for so many new ones, and how many there are. */
static tw_status lines_shape(twi_inference *c)
{
    int64_t offset = twi_attr_int(c->attrs, "new_vocab_offset", 0), lines = twi_attr_int(c->attrs, "num_new_vocab", 0);
    if (offset < 0 || lines < 0 || offset > INT64_MAX - lines || twi_attr_int(c->attrs, "old_vocab_size", -1) < -1)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "new_vocab_offset and num_new_vocab must be at least 0, "
                                                       "old_vocab_size at least -1");
    c->outputs[0] = TW_SHAPE(lines);
    c->outputs[1] = TW_SCALAR;
    return expect_names(c);
}

static tw_status matrix_shape(twi_inference *c)
{
    int64_t rows = twi_attr_int(c->attrs, "num_rows", 0), columns = twi_attr_int(c->attrs, "num_cols", 0);
    tw_shape wanted = TW_SHAPE(rows), named;
    if (rows < 0 || columns < 1)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "num_rows must be at least 0 and num_cols at least 1");
    c->outputs[0] = TW_SHAPE(rows, columns);
    tw_status status = expect_names(c);
    if (status == TW_OK)
        status = twi_merge_shapes(wanted, c->inputs[2], &wanted, c->error);
    if (status == TW_OK && tw_shape_elements(c->inputs[3]) != 0)
        status = twi_merge_shapes(TW_SHAPE(tw_shape_elements(c->inputs[3]) < 0 ? -1 : columns), c->inputs[3], &named,
                                  c->error);
    return status;
}

#define RESTORE "prefix:string, tensor_names:string, shape_and_slices:string", "tensors:dtypes"
#define STATE TWI_STATEFUL | TWI_HOST_ONLY
#define PLANNED STATE | TWI_REWRITTEN | TWI_RESTORE | TWI_MAKES_SHAPE

const twi_op twi_saver_ops[] = {
    {"SaveV2", "prefix:string, tensor_names:string, shape_and_slices:string, tensors:dtypes", "", "dtypes:types>=1",
     twi_shape_unknown, twi_not_differentiable, STATE},
    {"SaveSlices", "filename:string, tensor_names:string, shapes_and_slices:string, data:T", "", "T:types>=1",
     twi_shape_unknown, twi_not_differentiable, STATE},
    {"Save", "filename:string, tensor_names:string, data:T", "", "T:types>=1", twi_shape_unknown,
     twi_not_differentiable, STATE},
    {"RestoreV2", RESTORE, "dtypes:types>=1", twi_shape_unknown, twi_not_differentiable, STATE | TWI_RESTORE,
     .planned_as = "_RestoreV2"},
    {"RestoreSlice", "file_pattern:string, tensor_name:string, shape_and_slice:string", "tensor:dt",
     "dt:type; preferred_shard:int=-1", twi_shape_unknown, twi_not_differentiable, STATE | TWI_RESTORE,
     .planned_as = "_RestoreV2"},
    {"Restore", "file_pattern:string, tensor_name:string", "tensor:dt", "dt:type; preferred_shard:int=-1",
     twi_shape_unknown, twi_not_differentiable, STATE | TWI_RESTORE, .planned_as = "_Restore"},
    {"_Restore", "prefix:string, tensor_names:string", "tensors:dtypes", "dtypes:types; shapes:shapes", restored_shape,
     NULL, PLANNED},
    {"_RestoreV2", RESTORE, "dtypes:types; shapes:shapes", restored_shape, NULL, PLANNED},
    {"MergeV2Checkpoints", "checkpoint_prefixes:string, destination_prefix:string", "", "delete_old_dirs:bool=true",
     twi_shape_unknown, twi_not_differentiable, STATE},
    {"GenerateVocabRemapping", "new_vocab_file:string, old_vocab_file:string", "remapping:int64, num_present:int32",
     "new_vocab_offset:int; num_new_vocab:int; old_vocab_size:int=-1", lines_shape, twi_not_differentiable,
     STATE},
    {"LoadAndRemapMatrix",
     "ckpt_path:string, old_tensor_name:string, row_remapping:int64, col_remapping:int64, initializing_values:float",
     "output_matrix:float", "num_rows:int; num_cols:int; max_rows_in_memory:int=-1", matrix_shape,
     twi_not_differentiable, STATE},
    {"ShardedFilename", "basename:string, shard:int32, num_shards:int32", "filename:string", "", twi_shape_scalars,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"ShardedFilespec", "basename:string, num_shards:int32", "filename:string", "", twi_shape_scalars,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"StringJoin", "inputs:N*string", "output:string", "N:int; separator:string=", join_shape, twi_not_differentiable,
     TWI_HOST_ONLY},
    {"StaticRegexFullMatch", "input:string", "output:bool", "pattern:string", twi_shape_same, twi_not_differentiable,
     TWI_HOST_ONLY},
    {0},
};
