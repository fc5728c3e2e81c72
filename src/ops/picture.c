/* picture.c - pictures as files have them: decoding and encoding JPEG and PNG. Rows and shape rules. */
#include "ops/rules.h"

/* [height, width, channels], which the file says. */
static tw_status decode_shape(twi_inference *c)
{
    int64_t channels = twi_attr_int(c->attrs, "channels", 0);
    if (channels != 0 && channels != 1 && channels != 3 && channels != 4)
        return TWI_REFUSE(c, "channels must be 0, 1, 3, or 4, got %lld", (long long)channels);
    int64_t ratio = twi_attr_int(c->attrs, "ratio", 1);
    if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
        return TWI_REFUSE(c, "ratio must be 1, 2, 4, or 8, got %lld", (long long)ratio);
    c->outputs[0] = TW_SHAPE(-1, -1, channels ? channels : -1);
    return twi_expect_rank(c, 0, 0);
}

/* crop_window: the first row, the first column, height, width. */
static tw_status crop_shape(twi_inference *c)
{
    tw_status status = decode_shape(c);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 1);
    if (status == TW_OK && c->inputs[1].rank == 1 && c->inputs[1].dims[0] >= 0 && c->inputs[1].dims[0] != 4)
        return TWI_REFUSE(c, "crop_window must have four elements, got %lld", (long long)c->inputs[1].dims[0]);
    return status;
}

static tw_status frames_shape(twi_inference *c)
{
    c->outputs[0] = TW_SHAPE(-1, -1, -1, 3);
    return twi_expect_rank(c, 0, 0);
}

static tw_status sizes_shape(twi_inference *c)
{
    c->outputs[0] = TW_SHAPE(3);
    return twi_expect_rank(c, 0, 0);
}

/* An image, and perhaps how well it is to be encoded. */
static tw_status encode_shape(twi_inference *c)
{
    c->outputs[0] = TW_SCALAR;
    tw_status status = twi_expect_rank(c, 0, 3);
    return status == TW_OK && c->num_inputs > 1 ? twi_expect_rank(c, 1, 0) : status;
}

#define JPEG                                                                                                           \
    "channels:int=0; ratio:int=1; fancy_upscaling:bool=true; try_recover_truncated:bool=false; "                       \
    "acceptable_fraction:float=1; dct_method:string="
#define MADE (TWI_HOST_ONLY | TWI_MAKES_SHAPE)

const twi_op twi_picture_ops[] = {
    {"DecodeJpeg", "contents:string", "image:uint8", JPEG, decode_shape, twi_not_differentiable, MADE},
    {"DecodePng", "contents:string", "image:dtype", "channels:int=0; dtype:{uint8,uint16}=uint8", decode_shape,
     twi_not_differentiable, MADE},
    {"DecodeImage", "contents:string", "image:dtype",
     "channels:int=0; dtype:{uint8,uint16,float}=uint8; expand_animations:bool=true", decode_shape,
     twi_not_differentiable, MADE},
    {"DecodeAndCropJpeg", "contents:string, crop_window:int32", "image:uint8", JPEG, crop_shape, twi_not_differentiable,
     MADE},
    {"DecodeBmp", "contents:string", "image:uint8", "channels:int=0", decode_shape, twi_not_differentiable, MADE},
    {"DecodeGif", "contents:string", "image:uint8", "", frames_shape, twi_not_differentiable, MADE},
    {"ExtractJpegShape", "contents:string", "image_shape:output_type", "output_type:{int32,int64}=int32", sizes_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"EncodePng", "image:T", "contents:string", "compression:int=-1; T:{uint8,uint16}=uint8", encode_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"EncodeJpeg", "image:uint8", "contents:string",
     "format:string=; quality:int=95; progressive:bool=false; optimize_size:bool=false; chroma_downsampling:bool=true; "
     "density_unit:{in,cm}=in; x_density:int=300; y_density:int=300; xmp_metadata:string=",
     encode_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {"EncodeJpegVariableQuality", "images:uint8, quality:int32", "contents:string", "", encode_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {0},
};
