/* sets.c - sets: the different values along the last axis of a tensor, which may be sparse. Their sizes, and what two
 * have in common, together, or one has alone. */
#include "ops/rules.h"

#define MEMBERS "T:{int8,int16,int32,int64,uint8,uint16,string}"

static tw_status size_shape(twi_inference *c)
{
    static const int ranks[] = {2, 1, 1};
    tw_shape shape = twi_shape_of_value(twi_ask_value(c, 2));
    for (int i = 0; i < 3; i++)
        if (c->inputs[i].rank >= 0 && c->inputs[i].rank != ranks[i])
            return twi_expect_rank(c, i, ranks[i]);
    if (shape.rank >= 0 && shape.rank < 2)
        return TWI_REFUSE(c, "Shape must be > rank 1");
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 0)
            return TWI_REFUSE(c, "dimension %d of the shape is negative", i);
    if (shape.rank >= 0)
        shape.rank--;
    c->outputs[0] = shape;
    return TW_OK;
}

/* What there is in either is found when it is run. */
static tw_status operation_shape(twi_inference *c)
{
    int64_t rank = -1;
    for (int i = 0; i < c->num_inputs; i++) {
        bool is_dense = i == 0 && c->num_inputs < 6, is_shape = !is_dense && (c->num_inputs - i) % 3 == 1;
        if (c->num_inputs == 2 || is_dense)
            rank = c->inputs[i].rank >= 0 ? c->inputs[i].rank : rank;
        else if (is_shape && c->inputs[i].rank == 1 && c->inputs[i].dims[0] >= 0)
            rank = c->inputs[i].dims[0];
    }
    if (rank >= 0 && rank < 2)
        return TWI_REFUSE(c, "Shape must be > rank 1");
    c->outputs[0] = TW_SHAPE(-1, rank);
    c->outputs[1] = TW_SHAPE(-1);
    c->outputs[2] = TW_SHAPE(rank);
    return TW_OK;
}

#define RESULT "result_indices:int64, result_values:T, result_shape:int64"
#define OPERATION                                                                                                      \
    RESULT, "set_operation:string; validate_indices:bool=true; " MEMBERS, operation_shape, twi_not_differentiable,     \
        TWI_HOST_ONLY | TWI_MAKES_SHAPE

const twi_op twi_sets_ops[] = {
    {"SetSize", "set_indices:int64, set_values:T, set_shape:int64", "size:int32",
     "validate_indices:bool=true; " MEMBERS, size_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {"DenseToDenseSetOperation", "set1:T, set2:T", OPERATION},
    {"DenseToSparseSetOperation", "set1:T, set2_indices:int64, set2_values:T, set2_shape:int64", OPERATION},
    {"SparseToSparseSetOperation",
     "set1_indices:int64, set1_values:T, set1_shape:int64, set2_indices:int64, set2_values:T, set2_shape:int64",
     OPERATION},
    {0},
};
