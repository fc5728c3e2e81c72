/* glimpse.c - a window of each image around a point of its own; what lies outside of the image is noise. */
#include "ops/rules.h"

/* input [N,H,W,C], size [2], offsets [N,2]: [N,h,w,C] */
static tw_status glimpse_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], out = twi_unknown_of_rank(4), at = c->inputs[2];
    tw_status status = twi_expect_rank(c, 0, 4);
    if (status == TW_OK)
        status = twi_expect_rank(c, 2, 2);
    if (status != TW_OK)
        return status;
    const tw_tensor *size = twi_ask_value(c, 1);
    if (size && size->elements != 2)
        return TWI_REFUSE(c, "input size must be 2 numbers, height and width, not %lld", (long long)size->elements);
    for (int i = 0; i < 2 && size; i++) {
        out.dims[1 + i] = twi_tensor_int(size, i);
        if (out.dims[1 + i] <= 0)
            return TWI_REFUSE(c, "grid size must be strictly positive; but got %lld", (long long)out.dims[1 + i]);
    }
    if (at.rank == 2 && at.dims[1] >= 0 && at.dims[1] != 2)
        return TWI_REFUSE(c, "offsets must have 2 numbers for each image, not %lld", (long long)at.dims[1]);
    if (!twi_merge_dims(in.rank < 0 ? -1 : in.dims[0], at.rank < 0 ? -1 : at.dims[0], &out.dims[0]))
        return TWI_REFUSE(c, "input should have the same size as the number of offsets: %lld, %lld",
                          (long long)in.dims[0], (long long)at.dims[0]);
    out.dims[3] = in.rank < 0 ? -1 : in.dims[3];
    c->outputs[0] = out;
    return TW_OK;
}

#define GLIMPSE                                                                                                        \
    "input:float, size:int32, offsets:float", "glimpse:float",                                                         \
        "centered:bool=true; normalized:bool=true; uniform_noise:bool=true; noise:string=uniform", glimpse_shape,      \
        twi_not_differentiable, TWI_STATEFUL | TWI_HOST_ONLY

const twi_op twi_glimpse_ops[] = {
    {"ExtractGlimpse", GLIMPSE},
    {"ExtractGlimpseV2", GLIMPSE},
    {0},
};
