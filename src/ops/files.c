/* files.c - whole files as strings, names of files, and the time. Never here: records of files (reader.c), checkpoints
 * (saver.c). */
#include "ops/rules.h"

static tw_status scalars_shape(twi_inference *c)
{
    tw_status status = TW_OK;
    for (int i = 0; i < c->num_inputs && status == TW_OK; i++)
        status = twi_expect_rank(c, i, 0);
    if (c->num_outputs)
        c->outputs[0] = TW_SCALAR;
    return status;
}

/* As many as there are. */
static tw_status names_shape(twi_inference *c)
{
    c->outputs[0] = TW_SHAPE(-1);
    return c->inputs[0].rank > 1 ? twi_expect_rank(c, 0, 1) : TW_OK;
}

#define STATE TWI_STATEFUL | TWI_HOST_ONLY

const twi_op twi_files_ops[] = {
    {"ReadFile", "filename:string", "contents:string", "", scalars_shape, twi_not_differentiable, STATE},
    {"WriteFile", "filename:string, contents:string", "", "", scalars_shape, NULL, STATE},
    {"MatchingFiles", "pattern:string", "filenames:string", "", names_shape, twi_not_differentiable,
     STATE | TWI_MAKES_SHAPE},
    {"Timestamp", "", "ts:double", "", scalars_shape, twi_not_differentiable, STATE},
    {0},
};
