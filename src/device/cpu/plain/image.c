/* image.c - contrast, decoding of raw bytes, resizing. */
#include "device/kernel.h"

#include <math.h>
#include <string.h>

/* ---- AdjustContrastv2: (x - mean) * factor + mean, the mean over an image's H and W, per channel --------------- */

#define CONTRAST(T, load, store)                                                                                       \
    for (int64_t c = 0; c < channels; c++) {                                                                           \
        const T *from = (const T *)r->inputs[0] + image * pixels * channels + c;                                       \
        T *to = (T *)r->outputs[0] + image * pixels * channels + c;                                                    \
        double sum = 0;                                                                                                \
        for (int64_t i = 0; i < pixels; i++)                                                                           \
            sum += load(from[i * channels]);                                                                           \
        float mean = (float)(sum / (double)pixels);                                                                    \
        for (int64_t i = 0; i < pixels; i++)                                                                           \
            to[i * channels] = store((load(from[i * channels]) - mean) * factor + mean);                               \
    }

static tw_status run_contrast(const twi_run *r)
{
    const twi_operand *images = &r->input_operands[0];
    const int64_t *last = images->shape.dims + images->shape.rank - 3;
    int64_t pixels = last[0] * last[1], channels = last[2];
    float factor = *(const float *)r->inputs[1];
    if (!images->elements)
        return TW_OK;
    int64_t count = images->elements / (pixels * channels);
#pragma omp parallel for if (r->threads > 1 && count > 1) num_threads(r->threads)
    for (int64_t image = 0; image < count; image++) {
        if (images->dtype == TW_FLOAT16)
            CONTRAST(uint16_t, tw_half_to_float, tw_float_to_half)
        else
            CONTRAST(float, , )
    }
    return TW_OK;
}

/* ---- DecodeRaw -------------------------------------------------------------------------------------------------- */

static const bool swap_marker = true; /* state: bytes are in the other order; NULL if not */

static tw_status prepare_decode_raw(twi_prepare *p)
{
    bool host_is_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    if (twi_attr_bool(p->attrs, "little_endian", true) != host_is_little)
        p->state = (void *)&swap_marker;
    return TW_OK;
}

static tw_status run_decode_raw(const twi_run *r)
{
    const tw_string *strings = r->inputs[0];
    int64_t count = r->input_operands[0].elements;
    size_t row = count ? r->output_operands[0].bytes / (size_t)count : 0;
    size_t size = tw_dtype_size(r->output_operands[0].dtype);
    for (int64_t i = 0; i < count; i++) {
        char *to = (char *)r->outputs[0] + (size_t)i * row;
        if (strings[i].size != row)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "DecodeRaw '%s': element %lld has %zu bytes, expected %zu",
                            r->node, (long long)i, strings[i].size, row);
        if (!r->state && row)
            memcpy(to, strings[i].data, row);
        for (size_t k = 0; r->state && k < row; k++)
            to[k] = strings[i].data[k - k % size + (size - 1 - k % size)];
    }
    return TW_OK;
}

/* ---- ResizeNearestNeighbor -------------------------------------------------------------------------------------- */

enum { ALIGN_CORNERS = 1, HALF_PIXEL_CENTERS = 2 };
static const char resize_modes[4]; /* state: the place of the mode */

static tw_status prepare_resize(twi_prepare *p)
{
    bool align = twi_attr_bool(p->attrs, "align_corners", false);
    bool half = twi_attr_bool(p->attrs, "half_pixel_centers", false);
    if (align && half)
        return twi_fail(p->error, TW_INVALID_ARGUMENT,
                        "ResizeNearestNeighbor '%s': align_corners and half_pixel_centers exclude each other", p->node);
    p->state = (void *)&resize_modes[align * ALIGN_CORNERS + half * HALF_PIXEL_CENTERS];
    return TW_OK;
}

/* Which of `in` places the output place i of `out` takes. */
static int64_t nearest(int64_t i, int64_t in, int64_t out, int mode)
{
    bool align = mode & ALIGN_CORNERS;
    float scale = align && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
    float at = mode & HALF_PIXEL_CENTERS ? ((float)i + 0.5f) * scale : (float)i * scale;
    int64_t place = (int64_t)(align ? roundf(at) : floorf(at));
    return place < in - 1 ? place : in - 1;
}

static tw_status run_resize(const twi_run *r)
{
    const int64_t *in = r->input_operands[0].shape.dims, *out = r->output_operands[0].shape.dims;
    const int32_t *size = r->inputs[1];
    int mode = (int)((const char *)r->state - resize_modes);
    size_t pixel = (size_t)in[3] * tw_dtype_size(r->input_operands[0].dtype);
    if (size[0] != out[1] || size[1] != out[2] || size[0] <= 0 || size[1] <= 0 || in[1] <= 0 || in[2] <= 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "ResizeNearestNeighbor '%s': cannot resize %lld x %lld to %d x %d", r->node, (long long)in[1],
                        (long long)in[2], size[0], size[1]);
    if (r->output_operands[0].elements == 0)
        return TW_OK; /* without channels, however many pixels there are */
#pragma omp parallel for if (r->threads > 1 && out[0] * out[1] > 8) num_threads(r->threads)
    for (int64_t row = 0; row < out[0] * out[1]; row++) {
        int64_t image = row / out[1], y = nearest(row % out[1], in[1], out[1], mode);
        for (int64_t x = 0; x < out[2]; x++)
            memcpy((char *)r->outputs[0] + (size_t)(row * out[2] + x) * pixel,
                   (const char *)r->inputs[0] +
                       (size_t)((image * in[1] + y) * in[2] + nearest(x, in[2], out[2], mode)) * pixel,
                   pixel);
    }
    return TW_OK;
}

const twi_kernel twi_cpu_image_kernels[] = {
    {"AdjustContrastv2", "plain", TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_FLOAT16), NULL, run_contrast},
    {"DecodeRaw", "plain", 0, prepare_decode_raw, run_decode_raw},
    {"ResizeNearestNeighbor", "plain", TWI_NUMBER_TYPES, prepare_resize, run_resize},
    {0},
};
