/* warp.c - images seen through a projective transform. */
#include "ops/rules.h"

/* images [N,H,W,C], transforms [N or 1, 8], output_shape [2], and of V3 a scalar fill_value: [N,h,w,C] */
static tw_status warp_shape(twi_inference *c)
{
    static const int ranks[] = {4, 2, 1, 0};
    tw_status status = TW_OK;
    tw_shape out = c->inputs[0].rank == 4 ? c->inputs[0] : TW_SHAPE(-1, -1, -1, -1),
             size = twi_shape_of_value(twi_ask_value(c, 2));
    for (int i = 0; i < c->num_inputs && status == TW_OK; i++)
        status = twi_expect_rank(c, i, ranks[i]);
    if (status != TW_OK)
        return status;
    if (c->inputs[1].rank == 2 && c->inputs[1].dims[1] >= 0 && c->inputs[1].dims[1] != 8)
        return TWI_REFUSE(c, "a transform has 8 numbers, not %lld", (long long)c->inputs[1].dims[1]);
    if (size.rank >= 0 && (size.rank != 2 || size.dims[0] < 1 || size.dims[1] < 1))
        return TWI_REFUSE(c, "output_shape has %d numbers, expected 2, both positive", size.rank);
    out.dims[1] = size.rank < 0 ? -1 : size.dims[0];
    out.dims[2] = size.rank < 0 ? -1 : size.dims[1];
    c->outputs[0] = out;
    return TW_OK;
}

/* The other way round: rows of 8 numbers, of 3 x 3 matrices whose last number is 1, inverted. */
static tw_output inverted(twi_gradient *g, tw_output transforms)
{
    tw_output one = tw_fill(G, twi_constant_ints(G, (int64_t[]){1, 1}, 2), tw_scalar_of(G, TW_FLOAT32, 1));
    tw_output ones = tw_add(
        G, tw_mul(G, tw_slice(G, transforms, TW_SHAPE(0, 0), TW_SHAPE(-1, 1)), tw_scalar_of(G, TW_FLOAT32, 0)), one);
    tw_output matrices = tw_reshape(G, tw_concat(G, (tw_output[]){transforms, ones}, 2, 1), TW_SHAPE(-1, 3, 3));
    tw_output rows = tw_reshape(G, twi_unary(g, "MatrixInverse", matrices), TW_SHAPE(-1, 9));
    rows = tw_div(G, rows, tw_slice(G, rows, TW_SHAPE(0, 8), TW_SHAPE(-1, 1)));
    return tw_slice(G, rows, TW_SHAPE(0, 0), TW_SHAPE(-1, 8));
}

/* As TensorFlow has it: gradients seen through the inverse, which is the transpose of rotations only. */
static void warp_gradient(twi_gradient *g)
{
    tw_output size = tw_slice(G, tw_shape_of(G, X(0)), TW_SHAPE(1), TW_SHAPE(2));
    g->dx[0] = twi_build_like(g->node, "ImageProjectiveTransformV2", TWI_INPUTS(DY(0), inverted(g, X(1)), size));
}

/* What is outside has no gradient: it is 0 there. */
static void warp_filled_gradient(twi_gradient *g)
{
    tw_output size = tw_slice(G, tw_shape_of(G, X(0)), TW_SHAPE(1), TW_SHAPE(2));
    g->dx[0] = twi_build_like(g->node, "ImageProjectiveTransformV3",
                              TWI_INPUTS(DY(0), inverted(g, X(1)), size, tw_scalar_of(G, TW_FLOAT32, 0)));
}

#define ATTRS                                                                                                          \
    "dtype:{uint8,int32,int64,half,bfloat16,float,double}; interpolation:{NEAREST,BILINEAR,nearest,bilinear}; "        \
    "fill_mode:string=CONSTANT"

const twi_op twi_warp_ops[] = {
    {"ImageProjectiveTransformV2", "images:dtype, transforms:float, output_shape:int32", "transformed_images:dtype",
     ATTRS, warp_shape, warp_gradient, TWI_HOST_ONLY},
    {"ImageProjectiveTransformV3", "images:dtype, transforms:float, output_shape:int32, fill_value:float",
     "transformed_images:dtype", ATTRS, warp_shape, warp_filled_gradient, TWI_HOST_ONLY},
    {0},
};
