/* regression.c - IsotonicRegression: of the rows of a matrix the nearest ones that nowhere grow. */
#include "ops/rules.h"
#include "ops/types.h"

static tw_status isotonic_shape(twi_inference *c)
{
    c->outputs[0] = c->outputs[1] = c->inputs[0];
    return TW_OK;
}

const twi_op twi_regression_ops[] = {
    {"IsotonicRegression", "input:T", "output:output_dtype, segments:int32",
     "T:{" TWI_REALS "}; output_dtype:{half,bfloat16,float,double}=float", isotonic_shape, NULL, TWI_HOST_ONLY},
    {0},
};
