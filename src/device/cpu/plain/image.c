/* image.c - contrast, decoding of raw bytes. */
#include "device/cpu/plain/made.h"

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
#pragma omp parallel for num_threads(count > 1 ? r->threads : 1)
    for (int64_t image = 0; image < count; image++) {
        if (images->dtype == TW_FLOAT16)
            CONTRAST(uint16_t, tw_half_to_float, tw_float_to_half)
        else
            CONTRAST(float, , )
    }
    return TW_OK;
}

/* ---- DecodeRaw, DecodePaddedRaw --------------------------------------------------------------------------------- */

static const bool swap_marker = true; /* state: bytes are in the other order; NULL if not */

static tw_status prepare_decode_raw(twi_prepare *p)
{
    bool host_is_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    if (twi_attr_bool(p->attrs, "little_endian", true) != host_is_little)
        p->state = (void *)&swap_marker;
    return TW_OK;
}

static tw_status decode_raw(const twi_run *r)
{
    const tw_string *strings = r->inputs[0];
    int64_t count = r->input_operands[0].elements;
    size_t row = count ? r->output_operands[0].bytes / (size_t)count : 0;
    size_t size = tw_dtype_size(r->output_operands[0].dtype);
    for (int64_t i = 0; i < count; i++) {
        char *to = (char *)r->outputs[0] + (size_t)i * row;
        if (strings[i].size % size)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "DecodeRaw '%s': element %lld has %zu bytes, no multiple of %zu",
                            r->node, (long long)i, strings[i].size, size);
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

/* The first string says how long all are. */
static tw_status run_decode_raw(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0];
    tw_shape shape = in->shape;
    if (r->output_operands[0].elements >= 0)
        return decode_raw(r);
    size_t bytes = in->elements ? ((const tw_string *)r->inputs[0])->size : 0,
           size = tw_dtype_size(r->output_operands[0].dtype);
    if (bytes % size != 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "DecodeRaw '%s': %zu bytes are no whole number of values of %zu bytes", r->node, bytes, size);
    shape.dims[shape.rank++] = (int64_t)(bytes / size);
    return twi_run_made(r, shape, 0, decode_raw);
}

/* Each string as long as a row is. */
static tw_status run_decode_padded(const twi_run *r)
{
    const tw_string *strings = r->inputs[0];
    int64_t count = r->input_operands[0].elements;
    size_t row = count ? r->output_operands[0].bytes / (size_t)count : 0;
    size_t size = tw_dtype_size(r->output_operands[0].dtype);
    for (int64_t i = 0; i < count; i++)
        for (size_t k = 0; k < row; k++) {
            size_t from = r->state ? k - k % size + (size - 1 - k % size) : k;
            ((char *)r->outputs[0])[(size_t)i * row + k] = from < strings[i].size ? strings[i].data[from] : 0;
        }
    return TW_OK;
}

const twi_kernel twi_cpu_image_kernels[] = {
    {"AdjustContrastv2", "plain", TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_FLOAT16), NULL, run_contrast},
    {"DecodeRaw", "plain", 0, prepare_decode_raw, run_decode_raw},
    {"DecodePaddedRaw", "plain", 0, prepare_decode_raw, run_decode_padded},
    {0},
};
