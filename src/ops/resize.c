/* resize.c - images [N,H,W,C] in another size, and boxes cut out of them. Rows, shape rules and gradient rules. */
#include "ops/rules.h"

/* ---- shape rules ------------------------------------------------------------------------------------------- */

/* Height and width that input i says; -1 if not known. */
static tw_status size_of(twi_inference *c, int i, int64_t size[2])
{
    tw_shape spelled = twi_shape_of_value(twi_ask_value(c, i));
    tw_status status = twi_expect_rank(c, i, 1);
    size[0] = size[1] = -1;
    if (status != TW_OK)
        return status;
    if (c->inputs[i].rank == 1 && c->inputs[i].dims[0] >= 0 && c->inputs[i].dims[0] != 2)
        return TWI_REFUSE(c, "size has %lld elements, expected 2 (height and width)", (long long)c->inputs[i].dims[0]);
    for (int k = 0; k < 2 && spelled.rank == 2; k++) {
        size[k] = spelled.dims[k];
        if (size[k] <= 0)
            return TWI_REFUSE(c, "cannot resize %lld x %lld to %lld x %lld",
                              (long long)(c->inputs[0].rank < 0 ? -1 : c->inputs[0].dims[1]),
                              (long long)(c->inputs[0].rank < 0 ? -1 : c->inputs[0].dims[2]),
                              (long long)spelled.dims[0], (long long)spelled.dims[1]);
    }
    return TW_OK;
}

static tw_status resize_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0];
    int64_t size[2];
    tw_status status = twi_expect_rank(c, 0, 4);
    if (status == TW_OK)
        status = size_of(c, 1, size);
    if (status != TW_OK)
        return status;
    c->outputs[0] = TW_SHAPE(in.rank < 0 ? -1 : in.dims[0], size[0], size[1], in.rank < 0 ? -1 : in.dims[3]);
    return TW_OK;
}

/* The gradient is shaped as the image was. */
static tw_status resize_grad_shape(twi_inference *c)
{
    tw_shape grads = c->inputs[0], image = c->inputs[1];
    tw_status status = twi_expect_rank(c, 0, 4);
    int64_t merged;
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 4);
    if (status == TW_OK && grads.rank == 4 && image.rank == 4 &&
        (!twi_merge_dims(grads.dims[0], image.dims[0], &merged) ||
         !twi_merge_dims(grads.dims[3], image.dims[3], &merged)))
        return TWI_REFUSE(c, "gradient and image differ in their batch or channels");
    c->outputs[0] = image;
    return status;
}

/* Height and width scaled, and shifted. */
static tw_status check_scale(twi_inference *c, int first)
{
    tw_status status = TW_OK;
    for (int i = first; i < first + 2 && status == TW_OK; i++) {
        status = twi_expect_rank(c, i, 1);
        if (status == TW_OK && c->inputs[i].rank == 1 && c->inputs[i].dims[0] >= 0 && c->inputs[i].dims[0] != 2)
            status = TWI_REFUSE(c, "input %d has %lld elements, expected 2 (height and width)", i,
                                (long long)c->inputs[i].dims[0]);
    }
    return status;
}

static tw_status scale_shape(twi_inference *c)
{
    tw_status status = resize_shape(c);
    return status == TW_OK ? check_scale(c, 2) : status;
}

static tw_status scale_grad_shape(twi_inference *c)
{
    tw_status status = resize_grad_shape(c);
    return status == TW_OK ? check_scale(c, 2) : status;
}

/* images [N,H,W,C], boxes [n,4], box_ind [n] */
static tw_status check_boxes(twi_inference *c, int boxes)
{
    int64_t merged;
    tw_status status = twi_expect_rank(c, boxes, 2);
    if (status == TW_OK)
        status = twi_expect_rank(c, boxes + 1, 1);
    if (status != TW_OK || c->inputs[boxes].rank < 0)
        return status;
    if (c->inputs[boxes].dims[1] >= 0 && c->inputs[boxes].dims[1] != 4)
        return TWI_REFUSE(c, "boxes have %lld numbers, expected 4", (long long)c->inputs[boxes].dims[1]);
    if (c->inputs[boxes + 1].rank == 1 &&
        !twi_merge_dims(c->inputs[boxes].dims[0], c->inputs[boxes + 1].dims[0], &merged))
        return TWI_REFUSE(c, "%lld boxes, but %lld indices", (long long)c->inputs[boxes].dims[0],
                          (long long)c->inputs[boxes + 1].dims[0]);
    return TW_OK;
}

/* grads [n,h,w,C] of as many crops as there are boxes, of so many channels. */
static tw_status check_crops(twi_inference *c, int boxes, int64_t channels)
{
    tw_shape grads = c->inputs[0];
    int64_t merged;
    if (grads.rank >= 0 && c->inputs[boxes].rank >= 0 &&
        !twi_merge_dims(grads.dims[0], c->inputs[boxes].dims[0], &merged))
        return TWI_REFUSE(c, "gradients of %lld crops, but %lld boxes", (long long)grads.dims[0],
                          (long long)c->inputs[boxes].dims[0]);
    if (grads.rank >= 0 && !twi_merge_dims(grads.dims[3], channels, &merged))
        return TWI_REFUSE(c, "gradients of %lld channels, but images of %lld", (long long)grads.dims[3],
                          (long long)channels);
    return TW_OK;
}

static tw_status crop_shape(twi_inference *c)
{
    tw_shape image = c->inputs[0], boxes = c->inputs[1];
    int64_t size[2];
    tw_status status = twi_expect_rank(c, 0, 4);
    if (status == TW_OK)
        status = check_boxes(c, 1);
    if (status == TW_OK)
        status = size_of(c, 3, size);
    if (status != TW_OK)
        return status;
    c->outputs[0] =
        TW_SHAPE(boxes.rank < 0 ? -1 : boxes.dims[0], size[0], size[1], image.rank < 0 ? -1 : image.dims[3]);
    return TW_OK;
}

static tw_status crop_grad_image_shape(twi_inference *c)
{
    tw_shape spelled = twi_shape_of_value(twi_ask_value(c, 3));
    tw_status status = twi_expect_rank(c, 0, 4);
    if (status == TW_OK)
        status = check_boxes(c, 1);
    if (status != TW_OK)
        return status;
    if (spelled.rank >= 0 && spelled.rank != 4)
        return TWI_REFUSE(c, "image_size has %d elements, expected 4", spelled.rank);
    c->outputs[0] = spelled.rank == 4 ? spelled : twi_unknown_of_rank(4);
    for (int i = 0; i < spelled.rank; i++)
        if (spelled.dims[i] < 0)
            return TWI_REFUSE(c, "dimension %d of image_size is negative", i);
    return check_crops(c, 1, spelled.rank == 4 ? spelled.dims[3] : -1);
}

static tw_status crop_grad_boxes_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 4);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 4);
    c->outputs[0] = c->inputs[2];
    if (status == TW_OK)
        status = check_boxes(c, 2);
    return status == TW_OK ? check_crops(c, 2, c->inputs[1].rank == 4 ? c->inputs[1].dims[3] : -1) : status;
}

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

static void linear_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build_like(g->node, "ResizeBilinearGrad", TWI_INPUTS(DY(0), X(0)));
}

static void scale_gradient(twi_gradient *g)
{
    tw_attr attrs[] = {tw_attr_string("kernel_type", twi_attr_string(&g->node->attrs, "kernel_type", "lanczos3")),
                       tw_attr_bool("antialias", twi_attr_bool(&g->node->attrs, "antialias", true))};
    g->dx[0] = twi_build(G, "ScaleAndTranslateGrad", TWI_INPUTS(DY(0), X(0), X(2), X(3)), attrs, 2);
}

static void cubic_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build_like(g->node, "ResizeBicubicGrad", TWI_INPUTS(DY(0), X(0)));
}

static tw_attr attr_bool(const twi_gradient *g, const char *name)
{
    return tw_attr_bool(name, twi_attr_bool(&g->node->attrs, name, false));
}

static void nearest_gradient(twi_gradient *g)
{
    tw_shape in = tw_output_shape(X(0));
    tw_output size = in.rank == 4 && in.dims[1] >= 0 && in.dims[2] >= 0
                         ? twi_constant_ints(G, in.dims + 1, 2)
                         : tw_strided_slice(G, tw_shape_of(G, X(0)),
                                            (tw_strided_slice_options){.begin = TW_SHAPE(1), .end = TW_SHAPE(3)});
    g->dx[0] = twi_build(G, "ResizeNearestNeighborGrad", TWI_INPUTS(DY(0), size),
                         TWI_ATTRS(attr_bool(g, "align_corners"), attr_bool(g, "half_pixel_centers")));
}

static void crop_gradient(twi_gradient *g)
{
    const char *method = twi_attr_string(&g->node->attrs, "method", "bilinear");
    tw_dtype dtype = tw_output_dtype(X(0));
    if (dtype == TW_FLOAT16 || dtype == TW_FLOAT32 || dtype == TW_FLOAT64)
        g->dx[0] = twi_build(G, "CropAndResizeGradImage", TWI_INPUTS(DY(0), X(1), X(2), twi_shape_tensor(G, X(0))),
                             TWI_ATTRS(tw_attr_type("T", dtype), tw_attr_string("method", method)));
    g->dx[1] = twi_build(G, "CropAndResizeGradBoxes", TWI_INPUTS(DY(0), X(0), X(1), X(2)), TWI_NO_ATTRS);
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define IMAGES "T:{int8,uint8,int16,uint16,int32,int64,half,float,double,bfloat16}"
#define CENTERS "; align_corners:bool=false; half_pixel_centers:bool=false"
#define METHOD "; method:{bilinear,nearest}=bilinear"

const twi_op twi_resize_ops[] = {
    {"ResizeNearestNeighbor", "images:T, size:int32", "resized_images:T", IMAGES CENTERS, resize_shape,
     nearest_gradient},
    {"ResizeBilinear", "images:T, size:int32", "resized_images:float", IMAGES CENTERS, resize_shape, linear_gradient},
    {"ResizeBicubic", "images:T, size:int32", "resized_images:float", IMAGES CENTERS, resize_shape, cubic_gradient,
     TWI_HOST_ONLY},
    {"ResizeArea", "images:T, size:int32", "resized_images:float", IMAGES "; align_corners:bool=false", resize_shape,
     NULL, TWI_HOST_ONLY},
    {"ResizeNearestNeighborGrad", "grads:T, size:int32", "output:T",
     "T:{uint8,int8,int32,half,float,double,bfloat16}" CENTERS, resize_shape, NULL},
    {"ResizeBilinearGrad", "grads:float, original_image:T", "output:T", "T:{float,bfloat16,half,double}" CENTERS,
     resize_grad_shape, NULL},
    {"ResizeBicubicGrad", "grads:float, original_image:T", "output:T", "T:{float,double}" CENTERS, resize_grad_shape,
     NULL, TWI_HOST_ONLY},
    {"ScaleAndTranslate", "images:T, size:int32, scale:float, translation:float", "resized_images:float",
     IMAGES "; kernel_type:string=lanczos3; antialias:bool=true", scale_shape, scale_gradient, TWI_HOST_ONLY},
    {"ScaleAndTranslateGrad", "grads:T, original_image:T, scale:float, translation:float", "output:T",
     "T:{float}; kernel_type:string=lanczos3; antialias:bool=true", scale_grad_shape, NULL, TWI_HOST_ONLY},
    {"CropAndResize", "image:T, boxes:float, box_ind:int32, crop_size:int32", "crops:float",
     "T:{uint8,uint16,int8,int16,int32,int64,half,float,double}" METHOD "; extrapolation_value:float=0", crop_shape,
     crop_gradient},
    {"CropAndResizeGradImage", "grads:float, boxes:float, box_ind:int32, image_size:int32", "output:T",
     "T:{float,half,double}" METHOD, crop_grad_image_shape, NULL},
    {"CropAndResizeGradBoxes", "grads:float, image:T, boxes:float, box_ind:int32", "output:float",
     "T:{uint8,uint16,int8,int16,int32,int64,half,float,double}; method:{bilinear}=bilinear", crop_grad_boxes_shape,
     NULL},
    {0},
};
