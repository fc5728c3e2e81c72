/* files.c - whole files as strings, names of files, and the time. Never here: records of files (reader.c), checkpoints
 * (saver.c). */
#include "ops/rules.h"

/* As many as there are. */
static tw_status names_shape(twi_inference *c)
{
    c->outputs[0] = TW_SHAPE(-1);
    return c->inputs[0].rank > 1 ? twi_expect_rank(c, 0, 1) : TW_OK;
}

#define STATE TWI_STATEFUL | TWI_HOST_ONLY

const twi_op twi_files_ops[] = {
    {"ReadFile", "filename:string", "contents:string", "", twi_shape_scalars, twi_not_differentiable, STATE},
    {"WriteFile", "filename:string, contents:string", "", "", twi_shape_scalars, NULL, STATE},
    {"MatchingFiles", "pattern:string", "filenames:string", "", names_shape, twi_not_differentiable,
     STATE | TWI_MAKES_SHAPE},
    {"Timestamp", "", "ts:double", "", twi_shape_scalars, twi_not_differentiable, STATE},
    {0},
};
