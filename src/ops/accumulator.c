/* accumulator.c - where gradients of several workers, or the batches of a pipeline, lie between runs: accumulators and
 * staging areas as nodes of a graph. */
#include "ops/rules.h"

static tw_status accumulator_shape(twi_inference *c)
{
    c->outputs[0] = TW_SCALAR;
    return TW_OK;
}

static tw_status nothing_shape(twi_inference *c)
{
    (void)c;
    return TW_OK;
}

static tw_status peek_shape(twi_inference *c)
{
    return twi_expect_rank(c, 0, 0);
}

static tw_status step_shape(twi_inference *c)
{
    return twi_expect_rank(c, 1, 0);
}

/* A gradient as the accumulator's; of a sparse one: indices, values and shape. */
static tw_status take_shape(twi_inference *c)
{
    tw_output handle = c->sources[0];
    while (twi_op_is(handle.node->op, TWI_PASSES))
        handle = handle.node->inputs[handle.index];
    const twi_attr *attr = twi_attr_find(&handle.node->attrs, "shape");
    tw_shape shape = attr && attr->kind == TW_ATTR_SHAPE ? attr->shape : TW_UNKNOWN_SHAPE;
    if (c->num_outputs == 3) {
        c->outputs[0] = TW_SHAPE(-1);
        c->outputs[2] = TW_SHAPE(shape.rank);
        if (shape.rank > 0)
            shape.dims[0] = -1;
    }
    c->outputs[c->num_outputs == 3] = shape;
    return twi_expect_rank(c, 1, 0);
}

#define STATE TWI_STATEFUL | TWI_HOST_ONLY
#define TYPE "dtype:{float,double,half}"
/* TensorFlow 1 passes these handles as references to strings; nobody looks into them, so here they are resources. */
#define MAKES "", "handle:resource", TYPE "; shape:shape; container:string=; shared_name:string=; reduction_type:{MEAN,SUM}=MEAN"
#define AREA(least)                                                                                                    \
    "capacity:int>=0=0; memory_limit:int>=0=0; dtypes:types" least "; container:string=; shared_name:string="

#define DENSE(prefix)                                                                                                  \
    {prefix "ConditionalAccumulator", MAKES, accumulator_shape, NULL, STATE, .makes = TWI_MAKES_QUEUE},                \
        {prefix "AccumulatorApplyGradient", "handle:resource, local_step:int64, gradient:dtype", "", TYPE, step_shape, \
         NULL, STATE, "q.."},                                                                                          \
        {prefix "AccumulatorTakeGradient", "handle:resource, num_required:int32", "average:dtype", TYPE, take_shape,   \
         twi_not_differentiable, STATE | TWI_MAKES_SHAPE, "q."},                                                       \
        {prefix "AccumulatorSetGlobalStep", "handle:resource, new_global_step:int64", "", "", step_shape, NULL, STATE, \
         "q."},                                                                                                        \
        {prefix "AccumulatorNumAccumulated", "handle:resource", "num_accumulated:int32", "", twi_shape_scalar, NULL,   \
         STATE, "q"}

const twi_op twi_accumulator_ops[] = {
    DENSE(""),
    DENSE("Resource"),
    {"SparseConditionalAccumulator", MAKES, accumulator_shape, NULL, STATE, .makes = TWI_MAKES_QUEUE},
    {"SparseAccumulatorApplyGradient",
     "handle:resource, local_step:int64, gradient_indices:int64, gradient_values:dtype, gradient_shape:int64", "",
     TYPE "; has_known_shape:bool", step_shape, NULL, STATE, "q...."},
    {"SparseAccumulatorTakeGradient", "handle:resource, num_required:int32", "indices:int64, values:dtype, shape:int64",
     TYPE, take_shape, twi_not_differentiable, STATE | TWI_MAKES_SHAPE, "q."},
    {"Stage", "values:dtypes", "", AREA(">=1"), nothing_shape, NULL, STATE},
    {"Unstage", "", "values:dtypes", AREA(">=1"), nothing_shape, twi_not_differentiable, STATE | TWI_MAKES_SHAPE},
    {"StagePeek", "index:int32", "values:dtypes", AREA(">=1"), peek_shape, twi_not_differentiable,
     STATE | TWI_MAKES_SHAPE},
    {"StageSize", "", "size:int32", AREA(""), twi_shape_scalar, twi_not_differentiable, STATE},
    {"StageClear", "", "", AREA(""), nothing_shape, NULL, STATE},
    {0},
};
