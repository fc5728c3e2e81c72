/* regions.c - boxes over images: drawn, and sampled as crops. Never here: choosing among boxes (find.c), cutting them
 * out (resize.c). */
#include "ops/rules.h"

/* images [B,H,W,C], boxes [B,N,4] in parts of height and width: y0, x0, y1, x1; colours [k,C] */
static tw_status draw_shape(twi_inference *c)
{
    static const int ranks[] = {4, 3, 2};
    tw_status status = TW_OK;
    int64_t merged;
    for (int i = 0; i < c->num_inputs && status == TW_OK; i++)
        status = twi_expect_rank(c, i, ranks[i]);
    if (status != TW_OK)
        return status;
    tw_shape images = c->inputs[0], boxes = c->inputs[1];
    if (images.rank == 4 && images.dims[3] != -1 && images.dims[3] != 1 && images.dims[3] != 3 && images.dims[3] != 4)
        return TWI_REFUSE(c, "images have %lld channels, expected 1, 3 or 4", (long long)images.dims[3]);
    if (boxes.rank == 3 && boxes.dims[2] != -1 && boxes.dims[2] != 4)
        return TWI_REFUSE(c, "boxes have %lld numbers, expected 4", (long long)boxes.dims[2]);
    if (images.rank == 4 && boxes.rank == 3 && !twi_merge_dims(images.dims[0], boxes.dims[0], &merged))
        return TWI_REFUSE(c, "boxes of %lld images for %lld", (long long)boxes.dims[0], (long long)images.dims[0]);
    c->outputs[0] = images;
    return TW_OK;
}

/* image_size [3], bounding_boxes [B,N,4], perhaps min_object_covered and a seed [2]: where the crop begins [3] and how
 * large it is [3], as Slice takes them, and the crop as a box [1,1,4] */
static tw_status sample_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 1);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 3);
    if (status == TW_OK && c->num_inputs > 2)
        status = twi_expect_rank(c, 2, 0);
    if (status == TW_OK && c->num_inputs > 3)
        status = twi_expect_rank(c, 3, 1);
    if (status == TW_OK && c->num_inputs > 3 && c->inputs[3].rank == 1 && c->inputs[3].dims[0] >= 0 &&
        c->inputs[3].dims[0] != 2)
        return TWI_REFUSE(c, "seed must have 2 numbers, not %lld", (long long)c->inputs[3].dims[0]);
    if (status == TW_OK && c->inputs[0].rank == 1 && c->inputs[0].dims[0] >= 0 && c->inputs[0].dims[0] != 3)
        return TWI_REFUSE(c, "image_size must be a vector of 3 numbers, not %lld", (long long)c->inputs[0].dims[0]);
    c->outputs[0] = c->outputs[1] = TW_SHAPE(3);
    c->outputs[2] = TW_SHAPE(1, 1, 4);
    return status;
}

#define SAMPLE_OUTPUTS "begin:T, size:T, bboxes:float"
#define SEEDS "seed:int=0; seed2:int=0; "
#define SAMPLE_ATTRS(more)                                                                                             \
    "T:{uint8,int8,int16,int32,int64}; " more                                                                          \
    "aspect_ratio_range:floats=[0.75,1.33]; area_range:floats=[0.05,1]; max_attempts:int=100; "                        \
    "use_image_if_no_bounding_boxes:bool=false"

const twi_op twi_regions_ops[] = {
    {"DrawBoundingBoxes", "images:T, boxes:float", "output:T", "T:{float,half}=float", draw_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"DrawBoundingBoxesV2", "images:T, boxes:float, colors:float", "output:T", "T:{float,half}=float", draw_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"SampleDistortedBoundingBox", "image_size:T, bounding_boxes:float", SAMPLE_OUTPUTS,
     SAMPLE_ATTRS(SEEDS "min_object_covered:float=0.1; "), sample_shape, twi_not_differentiable,
     TWI_STATEFUL | TWI_HOST_ONLY},
    {"SampleDistortedBoundingBoxV2", "image_size:T, bounding_boxes:float, min_object_covered:float", SAMPLE_OUTPUTS,
     SAMPLE_ATTRS(SEEDS), sample_shape, twi_not_differentiable, TWI_STATEFUL | TWI_HOST_ONLY},
    {"StatelessSampleDistortedBoundingBox",
     "image_size:T, bounding_boxes:float, min_object_covered:float, seed:Tseed", SAMPLE_OUTPUTS,
     SAMPLE_ATTRS("Tseed:{int32,int64}; "), sample_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {0},
};
