/* picture.c - JPEG and PNG, decoded and encoded; the work is done in src/image. */
#include "base/memory.h"
#include "device/kernel.h"
#include "image/image.h"
#include "tensor/tensor.h"

#include <string.h>

typedef struct decoding {
    bool bmp; /* it may be one */
    twi_image_wanted wanted;
} decoding;

static tw_status prepare_decode(twi_prepare *p)
{
    decoding s = {strcmp(p->op, "DecodeBmp") == 0 || strcmp(p->op, "DecodeImage") == 0,
                  {.channels = (int)twi_attr_int(p->attrs, "channels", 0),
                   .ratio = (int)twi_attr_int(p->attrs, "ratio", 1),
                   .fast = strcmp(twi_attr_string(p->attrs, "dct_method", ""), "INTEGER_ACCURATE") != 0,
                   .plain_colours = !twi_attr_bool(p->attrs, "fancy_upscaling", true),
                   .printed = true}};
    return twi_keep(p, &s, sizeof s);
}

/* A grey PNG with alpha has two channels. */
static bool is_grey_with_alpha(const tw_string *file)
{
    enum { COLOUR_TYPE = 25, GREY_ALPHA = 4 };
    return file->size > COLOUR_TYPE && memcmp(file->data, "\x89PNG", 4) == 0 && file->data[COLOUR_TYPE] == GREY_ALPHA;
}

/* Decodes what the file has, in its own channels: 2 of them are given as 4. */
static tw_status decode(const twi_run *r, const twi_image_wanted *wanted, twi_image *image)
{
    const tw_string *file = r->inputs[0];
    const char *data = file->data ? file->data : "";
    if (file->size >= 3 && memcmp(data, "GIF", 3) == 0)
        return twi_fail(r->error, TW_UNIMPLEMENTED, "'%s': a GIF, which DecodeGif reads", r->node);
    if (file->size >= 2 && memcmp(data, "BM", 2) == 0)
        return twi_fail(r->error, TW_UNIMPLEMENTED, "'%s': a BMP, which DecodeBmp and DecodeImage read", r->node);
    tw_status status = twi_image_decode_as(data, file->size, wanted, r->node, image, r->error);
    if (status == TW_DATA_LOSS)
        r->error->status = status = TW_INVALID_ARGUMENT; /* as TensorFlow has it */
    return status;
}

/* A channel of a pixel with `has` of them, of `wants`. What is see-through is not mixed with anything. */
static uint8_t channel(const uint8_t *pixel, int has, int wants, int c)
{
    if (c == 3 || (wants == 2 && c == 1))
        return has == 4 ? pixel[3] : 255;
    if (has < 3)
        return pixel[0];
    if (wants < 3) /* libpng's weights, and no rounding */
        return (uint8_t)((pixel[0] * 9797 + pixel[1] * 19234 + pixel[2] * 3737) >> 15);
    return pixel[c];
}

/* The same of words of 16 bits, which the library rounds. */
static uint16_t channel_of_words(const uint16_t *pixel, int has, int wants, int c)
{
    bool alpha = has == 2 || has == 4;
    if (c == 3 || (wants == 2 && c == 1))
        return alpha ? pixel[has - 1] : UINT16_MAX;
    if (has < 3)
        return pixel[0];
    if (wants < 3)
        return (uint16_t)((pixel[0] * 9797u + pixel[1] * 19234u + pixel[2] * 3737u + 16384) >> 15);
    return pixel[c];
}

static bool is_png(const tw_string *file)
{
    return file->size > 4 && memcmp(file->data, "\x89PNG", 4) == 0;
}

/* Whether a PNG has 16 bits for each number. */
static bool has_words(const tw_string *file)
{
    enum { BIT_DEPTH = 24 };
    return is_png(file) && file->size > BIT_DEPTH && file->data[BIT_DEPTH] == 16;
}

static bool is_bmp(const tw_string *file)
{
    return file->size >= 2 && memcmp(file->data, "BM", 2) == 0;
}

static tw_status decode_bmp(const twi_run *r, int wants, twi_image *image)
{
    const tw_string *file = r->inputs[0];
    tw_status status = twi_image_decode_bmp(file->data ? file->data : "", file->size, r->node, image, r->error);
    if (status != TW_OK || !wants || wants == image->channels)
        return status;
    status = twi_fail(r->error, TW_INVALID_ARGUMENT,
                      "'%s': channels attribute %d does not match bits per pixel from file %d", r->node, wants,
                      image->channels * 8);
    twi_image_free(image);
    return status;
}

static tw_status run_decode_window(const twi_run *r)
{
    const tw_string *file = r->inputs[0];
    const decoding *s = r->state;
    twi_image image;
    void *to;
    twi_image_wanted wanted = s->wanted;
    wanted.window = r->inputs[1];
    tw_status status =
        twi_image_decode_as(file->data ? file->data : "", file->size, &wanted, r->node, &image, r->error);
    if (status != TW_OK)
        return status;
    status = twi_make_output(r, 0, TW_SHAPE(image.height, image.width, image.channels), &to);
    if (status == TW_OK)
        memcpy(to, image.pixels, (size_t)image.height * (size_t)image.width * (size_t)image.channels);
    twi_image_free(&image);
    return status;
}

static tw_status run_gif(const twi_run *r)
{
    const tw_string *file = r->inputs[0];
    twi_image image;
    int frames;
    void *to;
    const char *data = file->data ? file->data : "";
    tw_status status = twi_image_decode_gif(data, file->size, r->node, &frames, &image, r->error);
    if (status != TW_OK)
        return status;
    status = twi_make_output(r, 0, TW_SHAPE(frames, image.height, image.width, 3), &to);
    if (status == TW_OK)
        memcpy(to, image.pixels, (size_t)frames * (size_t)image.height * (size_t)image.width * 3);
    twi_image_free(&image);
    return status;
}

/* Of words the upper byte is what bytes are of them. */
static tw_status decode_words(const twi_run *r, int wants)
{
    const tw_string *file = r->inputs[0];
    tw_dtype dtype = r->output_operands[0].dtype;
    twi_image image;
    void *data;
    tw_status status = twi_image_decode_png_words(file->data, file->size, r->node, &image, r->error);
    if (status == TW_DATA_LOSS)
        r->error->status = status = TW_INVALID_ARGUMENT;
    if (status != TW_OK)
        return status;
    const uint16_t *words = (const uint16_t *)(const void *)image.pixels;
    wants = wants ? wants : image.channels;
    status = twi_make_output(r, 0, TW_SHAPE(image.height, image.width, wants), &data);
    for (int64_t i = 0; i < (int64_t)image.height * image.width * wants && status == TW_OK; i++) {
        uint16_t value = channel_of_words(words + i / wants * image.channels, image.channels, wants, (int)(i % wants));
        if (dtype == TW_FLOAT32)
            ((float *)data)[i] = (float)value / 65535.0f;
        else if (dtype == TW_UINT16)
            ((uint16_t *)data)[i] = value;
        else
            ((uint8_t *)data)[i] = (uint8_t)(value >> 8);
    }
    twi_image_free(&image);
    return status;
}

static tw_status run_decode(const twi_run *r)
{
    const tw_string *file = r->inputs[0];
    const decoding *s = r->state;
    int wants = s->wanted.channels;
    bool alpha = is_grey_with_alpha(file);
    twi_image image;
    void *data;
    if (has_words(file))
        return decode_words(r, wants);
    twi_image_wanted wanted = s->wanted;
    wanted.channels = is_png(file) ? 0 : wants;
    tw_status status = s->bmp && is_bmp(file) ? decode_bmp(r, wants, &image) : decode(r, &wanted, &image);
    if (status != TW_OK)
        return status;
    wants = wants ? wants : alpha ? 2 : image.channels;
    int64_t pixels = (int64_t)image.height * image.width;
    status = twi_make_output(r, 0, TW_SHAPE(image.height, image.width, wants), &data);
    for (int64_t i = 0; i < pixels * wants && status == TW_OK; i++) {
        uint8_t value = channel(image.pixels + i / wants * image.channels, image.channels, wants, (int)(i % wants));
        if (r->output_operands[0].dtype == TW_FLOAT32)
            ((float *)data)[i] = (float)value / 255.0f;
        else if (r->output_operands[0].dtype == TW_UINT16)
            ((uint16_t *)data)[i] = (uint16_t)(value * (is_png(file) ? 257 : 256)); /* as TensorFlow has it */
        else
            ((uint8_t *)data)[i] = value;
    }
    twi_image_free(&image);
    return status;
}

static tw_status run_sizes(const twi_run *r)
{
    twi_image image;
    tw_status status = decode(r, &(twi_image_wanted){.fast = true, .printed = true}, &image);
    if (status != TW_OK)
        return status;
    const int64_t sizes[] = {image.height, image.width, image.printed ? 4 : image.channels};
    for (int i = 0; i < 3; i++)
        if (r->output_operands[0].dtype == TW_INT64)
            ((int64_t *)r->outputs[0])[i] = sizes[i];
        else
            ((int32_t *)r->outputs[0])[i] = (int32_t)sizes[i];
    twi_image_free(&image);
    return TW_OK;
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

static twi_image given(const twi_run *r)
{
    const int64_t *dims = r->input_operands[0].shape.dims;
    bool fits = dims[0] <= INT32_MAX && dims[1] <= INT32_MAX && dims[2] <= 4;
    return (twi_image){fits ? (int)dims[0] : -1, fits ? (int)dims[1] : -1, fits ? (int)dims[2] : -1,
                       (uint8_t *)r->inputs[0]};
}

static tw_status give(const twi_run *r, tw_status status, char *bytes, size_t size)
{
    if (status == TW_OK && !twi_string_set(r->outputs[0], bytes, size))
        status = twi_fail_memory(r->error, r->node);
    twi_free(bytes);
    return status;
}

static tw_status prepare_png(twi_prepare *p)
{
    int64_t compression = twi_attr_int(p->attrs, "compression", -1);
    if (compression < -1 || compression > 9)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "EncodePng '%s': compression is %lld, expected -1 to 9", p->node,
                        (long long)compression);
    return twi_keep(p, &(int){(int)compression}, sizeof(int));
}

static tw_status run_png(const twi_run *r)
{
    twi_image image = given(r);
    char *bytes;
    size_t size = 0;
    int bits = r->input_operands[0].dtype == TW_UINT16 ? 16 : 8;
    tw_status status = twi_image_encode_png(&image, bits, *(const int *)r->state, &bytes, &size, r->error);
    return give(r, status, bytes, size);
}

typedef struct jpeg_encoding {
    twi_jpeg_options options;
    int channels; /* that the format says; 0: any */
} jpeg_encoding;

static tw_status prepare_jpeg(twi_prepare *p)
{
    const char *format = twi_attr_string(p->attrs, "format", "");
    jpeg_encoding s = {.options = {.quality = (int)twi_attr_int(p->attrs, "quality", 95),
                                   .progressive = twi_attr_bool(p->attrs, "progressive", false),
                                   .optimized = twi_attr_bool(p->attrs, "optimize_size", false),
                                   .full_colours = !twi_attr_bool(p->attrs, "chroma_downsampling", true),
                                   .by_centimetre = strcmp(twi_attr_string(p->attrs, "density_unit", "in"), "cm") == 0,
                                   .x_density = (int)twi_attr_int(p->attrs, "x_density", 300),
                                   .y_density = (int)twi_attr_int(p->attrs, "y_density", 300)},
                       .channels = strcmp(format, "grayscale") == 0 ? 1
                                   : strcmp(format, "rgb") == 0     ? 3
                                                                    : 0};
    if (*format && !s.channels)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "EncodeJpeg '%s': format \"%s\", expected grayscale or rgb",
                        p->node, format);
    if (s.options.quality < 0 || s.options.quality > 100)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "EncodeJpeg '%s': quality must be in [0,100], got %d", p->node,
                        s.options.quality);
    return twi_keep(p, &s, sizeof s);
}

/* The quality is input 1, or an attribute. */
static tw_status run_jpeg(const twi_run *r)
{
    const jpeg_encoding *s = r->state;
    twi_jpeg_options options = s->options;
    twi_image image = given(r);
    char *bytes;
    size_t size = 0;
    if (s->channels && image.channels != s->channels)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %d channels, the format has %d", r->node, image.channels,
                        s->channels);
    if (r->num_inputs > 1)
        options.quality = *(const int32_t *)r->inputs[1];
    if (options.quality < 0 || options.quality > 100)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': quality must be in [0,100], got %d", r->node,
                        options.quality);
    tw_status status = twi_image_encode_jpeg(&image, &options, &bytes, &size, r->error);
    return give(r, status, bytes, size);
}

const twi_kernel twi_cpu_picture_kernels[] = {
    {"DecodeJpeg", "plain", 0, prepare_decode, run_decode, twi_free},
    {"DecodePng", "plain", 0, prepare_decode, run_decode, twi_free},
    {"DecodeImage", "plain", 0, prepare_decode, run_decode, twi_free},
    {"DecodeAndCropJpeg", "plain", 0, prepare_decode, run_decode_window, twi_free},
    {"DecodeBmp", "plain", 0, prepare_decode, run_decode, twi_free},
    {"DecodeGif", "plain", 0, NULL, run_gif},
    {"ExtractJpegShape", "plain", 0, NULL, run_sizes},
    {"EncodePng", "plain", 0, prepare_png, run_png, twi_free},
    {"EncodeJpeg", "plain", 0, prepare_jpeg, run_jpeg, twi_free},
    {"EncodeJpegVariableQuality", "plain", 0, prepare_jpeg, run_jpeg, twi_free},
    {0},
};
