/* summary.c - values as serialized Summary messages (tensorflow/core/framework/summary.proto):
 *
 *     Summary           1: value, repeated
 *     Summary.Value     1: tag   2: simple_value, a float   4: image   5: histo
 *     Summary.Image     1: height   2: width   3: colorspace, the number of channels   4: encoded_image_string, a PNG
 *     Summary.Audio     1: sample_rate   2: num_channels   3: length_frames   4: encoded_audio_string, a WAV
 *                       5: content_type
 *     HistogramProto    1: min   2: max   3: num   4: sum   5: sum_squares   6: bucket_limit   7: bucket, packed
 *
 * Written by hand: a value's bytes are made once, and go to an output, or to the event file of a summary writer. Such
 * nodes have the writer and a step before the inputs of those that give a summary. */
#include "base/histogram.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/state/summary_writer.h"
#include "format/tensor_proto.h"
#include "image/image.h"
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

/* ---- the wire format ------------------------------------------------------------------------------------------- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static void put_varint(twi_text *text, uint64_t value)
{
    do {
        unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        twi_text_append(text, &byte, 1);
        value >>= 7;
    } while (value);
}

static void put_key(twi_text *text, int field, int wire)
{
    put_varint(text, (uint64_t)field << 3 | (uint64_t)wire);
}

static void put_bytes(twi_text *text, int field, const void *bytes, size_t size)
{
    put_key(text, field, BYTES);
    put_varint(text, size);
    twi_text_append(text, bytes, size);
}

/* The lowest `size` bytes of a number, lowest first. */
static void put_little_endian(twi_text *text, uint64_t bits, int size)
{
    for (int i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)(bits >> (8 * i));
        twi_text_append(text, &byte, 1);
    }
}

static void put_raw_double(twi_text *text, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_little_endian(text, bits, 8);
}

static void put_double(twi_text *text, int field, double value)
{
    if (value == 0 && !signbit(value))
        return; /* the default is not written */
    put_key(text, field, FIXED64);
    put_raw_double(text, value);
}

static void put_doubles(twi_text *text, int field, const double *values, int count)
{
    put_key(text, field, BYTES);
    put_varint(text, (uint64_t)count * 8);
    for (int i = 0; i < count; i++)
        put_raw_double(text, values[i]);
}

/* Starts a Value with its tag. */
static void put_tag(twi_text *value, const tw_string *tag)
{
    if (tag->size)
        put_bytes(value, 1, tag->data, tag->size);
}

/* The same with what is shown, and which one that is where there may be several. */
static void put_tag_of(twi_text *value, const tw_string *tag, const char *what, bool several, int64_t i)
{
    twi_text name = {0};
    twi_text_append(&name, tag->data ? tag->data : "", tag->size);
    twi_text_printf(&name, "/%s", what);
    if (several)
        twi_text_printf(&name, "/%lld", (long long)i);
    put_bytes(value, 1, twi_text_string(&name), name.size);
    value->failed = value->failed || name.failed;
    twi_text_free(&name);
}

/* Appends a finished Value to a Summary and empties it. */
static void put_value(twi_text *summary, twi_text *value)
{
    put_bytes(summary, 1, twi_text_string(value), value->size);
    summary->failed = summary->failed || value->failed;
    twi_text_free(value);
}

/* Where the inputs begin that a summary is made of. */
static int first_input(int num_outputs)
{
    return num_outputs ? 0 : 2;
}

/* Of what writes. */
static tw_status check_writer(twi_prepare *p)
{
    if (p->num_outputs || twi_summary_writer_of(p->inputs[0].resource))
        return TW_OK;
    return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': its input 0 is not the handle of a summary writer", p->op,
                    p->node);
}

static tw_status write_summary(const twi_run *r, twi_text *summary)
{
    tw_status status = summary->failed ? twi_fail_memory(r->error, r->node)
                                       : twi_summary_writer_add(twi_summary_writer_of(r->input_operands[0].resource),
                                                                TWI_WRITE_SUMMARY, *(const int64_t *)r->inputs[1],
                                                                twi_text_string(summary), summary->size, r->error);
    twi_text_free(summary);
    return status;
}

/* Hands the message over to a string output, or to the writer. */
static tw_status finish(const twi_run *r, twi_text *summary)
{
    if (!r->num_outputs)
        return write_summary(r, summary);
    bool done = !summary->failed && twi_string_set(r->outputs[0], twi_text_string(summary), summary->size);
    twi_text_free(summary);
    return done ? TW_OK : twi_fail_memory(r->error, r->node);
}

/* ---- kernels --------------------------------------------------------------------------------------------------- */

static tw_status run_scalar(const twi_run *r)
{
    int first = first_input(r->num_outputs);
    const twi_operand *values = &r->input_operands[first + 1];
    tw_tensor view = {.dtype = values->dtype, .data = (void *)r->inputs[first + 1]};
    twi_text summary = {0}, value = {0};
    for (int64_t i = 0; i < values->elements; i++) {
        float number = (float)tw_tensor_value(&view, i);
        uint32_t bits;
        memcpy(&bits, &number, sizeof bits);
        put_tag(&value, (const tw_string *)r->inputs[first] + i);
        put_key(&value, 2, FIXED32);
        put_little_endian(&value, bits, 4);
        put_value(&summary, &value);
    }
    return finish(r, &summary);
}

static tw_status prepare_histogram(twi_prepare *p)
{
    p->workspace = sizeof(twi_histogram);
    return check_writer(p);
}

static tw_status run_histogram(const twi_run *r)
{
    int first = first_input(r->num_outputs);
    const twi_operand *values = &r->input_operands[first + 1];
    tw_tensor view = {.dtype = values->dtype, .data = (void *)r->inputs[first + 1]};
    twi_histogram *h = r->workspace;
    twi_histogram_start(h);
    int64_t added = 0;
    if (values->dtype == TW_FLOAT32)
        added = twi_histogram_add_floats(h, r->inputs[first + 1], values->elements);
    else
        for (double value; added < values->elements && isfinite(value = tw_tensor_value(&view, added)); added++)
            twi_histogram_add(h, value);
    if (added < values->elements)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "%s in summary histogram for: %s",
                        isnan(tw_tensor_value(&view, added)) ? "Nan" : "Infinity", r->node);
    int count = twi_histogram_squeeze(h);
    twi_text summary = {0}, value = {0}, histo = {0};
    put_double(&histo, 1, h->min);
    put_double(&histo, 2, h->max);
    put_double(&histo, 3, h->num);
    put_double(&histo, 4, h->sum);
    put_double(&histo, 5, h->sum_squares);
    put_doubles(&histo, 6, h->limits, count);
    put_doubles(&histo, 7, h->buckets, count);
    put_tag(&value, r->inputs[first]);
    put_bytes(&value, 5, twi_text_string(&histo), histo.size);
    value.failed = value.failed || histo.failed;
    put_value(&summary, &value);
    twi_text_free(&histo);
    return finish(r, &summary);
}

/* ---- merging: the inputs one after the other, if no tag comes twice -------------------------------------------- */

typedef struct bytes {
    const unsigned char *at, *end;
    bool broken; /* they made no sense from here on */
} bytes;

static bool get_varint(bytes *b, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && b->at < b->end; shift += 7) {
        *value |= (uint64_t)(*b->at & 0x7f) << shift;
        if (!(*b->at++ & 0x80))
            return true;
    }
    b->broken = true;
    return false;
}

/* The next field; `body` is what a BYTES field holds. False at the end and when the bytes make no sense. */
static bool get_field(bytes *b, uint64_t *field, bytes *body)
{
    uint64_t key, size = 0;
    if (b->at == b->end || !get_varint(b, &key))
        return false;
    *field = key >> 3;
    *body = (bytes){0};
    switch (key & 7) {
    case VARINT:
        return get_varint(b, &size);
    case FIXED64:
        size = 8;
        break;
    case FIXED32:
        size = 4;
        break;
    case BYTES:
        if (!get_varint(b, &size))
            return false;
        break;
    default:
        b->broken = true;
    }
    if (b->broken || size > (uint64_t)(b->end - b->at)) {
        b->broken = true;
        return false;
    }
    *body = (bytes){b->at, b->at + size, false};
    b->at += size;
    return true;
}

/* The tags seen so far; their texts lie in one block, one after the other, each with its 0. */
typedef struct tags {
    twi_map seen;
    char *block, *next;
} tags;

static tw_status note_tag(const twi_run *r, tags *tags, bytes tag)
{
    size_t size = (size_t)(tag.end - tag.at);
    if (size)
        memcpy(tags->next, tag.at, size);
    if (twi_map_get(&tags->seen, tags->next))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "Duplicate tag %s found in summary inputs (%s)", tags->next,
                        r->node);
    if (!twi_map_put(&tags->seen, tags->next, tags->next))
        return twi_fail_memory(r->error, r->node);
    tags->next += size + 1;
    return TW_OK;
}

static tw_status note_tags(const twi_run *r, tags *tags, bytes summary)
{
    uint64_t field;
    bytes value, tag;
    while (get_field(&summary, &field, &value)) {
        while (field == 1 && get_field(&value, &field, &tag)) {
            tw_status status = field == 1 ? note_tag(r, tags, tag) : TW_OK;
            if (status != TW_OK)
                return status;
            field = 1; /* on with this value */
        }
        summary.broken = summary.broken || value.broken;
    }
    if (summary.broken)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "Could not parse one of the summary inputs (%s)", r->node);
    return TW_OK;
}

static tw_status run_merge(const twi_run *r)
{
    tw_status status = TW_OK;
    size_t total = 0;
    for (int i = 0; i < r->num_inputs; i++)
        total += ((const tw_string *)r->inputs[i])->size;
    tags tags = {.block = twi_alloc(total + 1)}; /* a tag is shorter than its field, so its 0 fits too */
    twi_text merged = {0};
    if (!tags.block)
        return twi_fail_memory(r->error, r->node);
    tags.next = tags.block;
    for (int i = 0; i < r->num_inputs; i++) {
        const tw_string *input = r->inputs[i];
        const unsigned char *data = (const unsigned char *)input->data;
        if (!input->size)
            continue;
        TWI_TRY(note_tags(r, &tags, (bytes){data, data + input->size}));
        twi_text_append(&merged, data, input->size);
    }
    TWI_TRY(finish(r, &merged));
done:
    twi_map_free(&tags.seen);
    twi_text_free(&merged);
    twi_free(tags.block);
    return status;
}

/* ---- images ---------------------------------------------------------------------------------------------------- */

typedef struct picturing {
    int64_t most;
    uint8_t bad[4]; /* what a pixel becomes that is not finite; red, unless the attribute says another colour */
} picturing;

static tw_status prepare_images(twi_prepare *p)
{
    picturing s = {twi_attr_int(p->attrs, "max_images", 3), {255, 0, 0, 255}};
    const tw_tensor *bad = twi_attr_tensor(p->attrs, "bad_color");
    for (int i = 0; bad && bad->dtype == TW_UINT8 && i < 4 && i < bad->elements; i++)
        s.bad[i] = ((const uint8_t *)bad->data)[i];
    const twi_operand *in = &p->inputs[first_input(p->num_outputs) + 1];
    size_t images = in->shape.dims[0] ? (size_t)in->shape.dims[0] : 1;
    p->workspace = (size_t)in->elements / images; /* bytes of one */
    tw_status status = check_writer(p);
    return status == TW_OK ? twi_keep(p, &s, sizeof s) : status;
}

/* Whether a pixel is, in all channels. */
static bool is_finite(const tw_tensor *values, int64_t first, int64_t channels)
{
    bool finite = true;
    for (int64_t c = 0; c < channels; c++)
        finite = finite && isfinite((float)tw_tensor_value(values, first + c));
    return finite;
}

/* Numbers from 0 up fill the range of bytes; where some are negative, 0 lies in the middle. */
static void to_bytes(const tw_tensor *values, int64_t first, int64_t pixels, int64_t channels, const uint8_t *bad,
                     uint8_t *bytes)
{
    float least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t c = 0; c < channels && is_finite(values, first + i * channels, channels); c++) {
            float value = (float)tw_tensor_value(values, first + i * channels + c);
            least = fminf(least, value);
            most = fmaxf(most, value);
        }
    bool centred = least < 0;
    float largest = centred ? fmaxf(fabsf(least), fabsf(most)) : most;
    float scale = largest < 1e-6f ? 0 : (centred ? 127.0f : 255.0f) / largest;
    for (int64_t i = 0; i < pixels; i++) {
        bool finite = is_finite(values, first + i * channels, channels);
        for (int64_t c = 0; c < channels; c++) {
            float value = (float)tw_tensor_value(values, first + i * channels + c) * scale + (centred ? 128.0f : 0.0f);
            bytes[i * channels + c] = finite ? (uint8_t)value : bad[c];
        }
    }
}

static tw_status put_image(const twi_run *r, twi_text *value, const twi_image *image)
{
    char *bytes = NULL;
    size_t size = 0;
    twi_text picture = {0};
    tw_status status = twi_image_encode_png(image, 8, -1, &bytes, &size, r->error);
    const int numbers[] = {image->height, image->width, image->channels};
    for (int field = 1; field <= 3; field++) {
        put_key(&picture, field, VARINT);
        put_varint(&picture, (uint64_t)numbers[field - 1]);
    }
    if (status == TW_OK)
        put_bytes(&picture, 4, bytes, size);
    put_bytes(value, 4, twi_text_string(&picture), picture.size);
    value->failed = value->failed || picture.failed;
    twi_text_free(&picture);
    twi_free(bytes);
    return status;
}

static tw_status run_images(const twi_run *r)
{
    const picturing *s = r->state;
    int first = first_input(r->num_outputs);
    const twi_operand *in = &r->input_operands[first + 1];
    const int64_t *dims = in->shape.dims, pixels = dims[1] * dims[2];
    const uint8_t *bad = r->num_outputs ? s->bad : r->inputs[4];
    tw_tensor view = {.dtype = in->dtype, .data = (void *)r->inputs[first + 1]};
    twi_text summary = {0}, value = {0};
    tw_status status = TW_OK;
    for (int64_t i = 0; i < dims[0] && i < s->most && status == TW_OK; i++) {
        twi_image image = {(int)dims[1], (int)dims[2], (int)dims[3], r->workspace};
        if (in->dtype == TW_UINT8)
            image.pixels = (uint8_t *)r->inputs[first + 1] + i * pixels * dims[3];
        else if (pixels > 0)
            to_bytes(&view, i * pixels * dims[3], pixels, dims[3], bad, image.pixels);
        put_tag_of(&value, r->inputs[first], "image", s->most > 1, i);
        status = put_image(r, &value, &image);
        put_value(&summary, &value);
    }
    if (status == TW_OK)
        return finish(r, &summary);
    twi_text_free(&summary);
    return status;
}

/* ---- sound ------------------------------------------------------------------------------------------------------ */

/* Frames of 16 bits a channel, as a WAV file of one piece. */
static void put_wav(twi_text *wav, const float *samples, int64_t frames, int64_t channels, int64_t rate)
{
    uint64_t bytes = (uint64_t)(frames * channels) * 2;
    twi_text_append(wav, "RIFF", 4);
    put_little_endian(wav, 36 + bytes, 4);
    twi_text_append(wav, "WAVEfmt ", 8);
    put_little_endian(wav, 16, 4); /* bytes of the format: */
    put_little_endian(wav, 1, 2);  /* not compressed */
    put_little_endian(wav, (uint64_t)channels, 2);
    put_little_endian(wav, (uint64_t)rate, 4);
    put_little_endian(wav, (uint64_t)(rate * channels * 2), 4); /* bytes a second */
    put_little_endian(wav, (uint64_t)channels * 2, 2);          /* bytes a frame */
    put_little_endian(wav, 16, 2);                              /* bits a sample */
    twi_text_append(wav, "data", 4);
    put_little_endian(wav, bytes, 4);
    for (int64_t i = 0; i < frames * channels; i++) {
        float sample = isnan(samples[i]) ? 0 : roundf(samples[i] * 32768);
        put_little_endian(wav, (uint16_t)(int16_t)fmaxf(fminf(sample, INT16_MAX), INT16_MIN), 2);
    }
}

static void put_sound(twi_text *value, const float *samples, int64_t frames, int64_t channels, float rate)
{
    static const char type[] = "audio/wav";
    twi_text wav = {0}, sound = {0};
    uint32_t bits;
    memcpy(&bits, &rate, sizeof bits);
    put_wav(&wav, samples, frames, channels, rate < 1 ? 1 : llrintf(rate));
    put_key(&sound, 1, FIXED32);
    put_little_endian(&sound, bits, 4);
    put_key(&sound, 2, VARINT);
    put_varint(&sound, (uint64_t)channels);
    if (frames) { /* the default is not written */
        put_key(&sound, 3, VARINT);
        put_varint(&sound, (uint64_t)frames);
    }
    put_bytes(&sound, 4, twi_text_string(&wav), wav.size);
    put_bytes(&sound, 5, type, sizeof type - 1);
    put_bytes(value, 6, twi_text_string(&sound), sound.size);
    value->failed = value->failed || sound.failed || wav.failed;
    twi_text_free(&sound);
    twi_text_free(&wav);
}

typedef struct sounding {
    int64_t most;
    float rate; /* of the attribute, which the first version has */
} sounding;

static tw_status prepare_audio(twi_prepare *p)
{
    sounding s = {twi_attr_int(p->attrs, "max_outputs", 3), twi_attr_float(p->attrs, "sample_rate", 0)};
    const tw_shape *shape = &p->inputs[first_input(p->num_outputs) + 1].shape;
    int64_t channels = shape->rank == 3 ? shape->dims[2] : 1;
    tw_status status = check_writer(p);
    if (status != TW_OK)
        return status;
    if ((double)shape->dims[1] * (double)channels > INT32_MAX / 4)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': %lld frames of %lld channels are too much for a WAV",
                        p->op, p->node, (long long)shape->dims[1], (long long)channels);
    return twi_keep(p, &s, sizeof s);
}

static tw_status run_audio(const twi_run *r)
{
    const sounding *s = r->state;
    int first = first_input(r->num_outputs);
    const tw_shape *shape = &r->input_operands[first + 1].shape;
    int64_t frames = shape->dims[1], channels = shape->rank == 3 ? shape->dims[2] : 1;
    float rate = r->num_inputs == first + 3 ? *(const float *)r->inputs[first + 2] : s->rate;
    twi_text summary = {0}, value = {0};
    if (!(rate > 0))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': sample_rate must be > 0, got: %g", r->node, (double)rate);
    if (!((double)rate < 4294967296.0))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': sample_rate must be in (0, 2^32), got: %g", r->node,
                        (double)rate);
    for (int64_t i = 0; i < shape->dims[0] && i < s->most; i++) {
        put_tag_of(&value, r->inputs[first], "audio", s->most > 1, i);
        put_sound(&value, (const float *)r->inputs[first + 1] + i * frames * channels, frames, channels, rate);
        put_value(&summary, &value);
    }
    return finish(r, &summary);
}

/* ---- whole tensors, as texts are -------------------------------------------------------------------------------- */

static void put_tensor(twi_text *value, const tw_tensor *tensor)
{
    twi_arena arena = {0};
    const Twi__TensorProto *proto = twi_tensor_to_proto(&arena, tensor);
    size_t size = proto ? twi__tensor_proto__get_packed_size(proto) : 0;
    uint8_t *bytes = proto ? twi_arena_alloc(&arena, size + 1) : NULL;
    if (bytes)
        put_bytes(value, 8, bytes, twi__tensor_proto__pack(proto, bytes));
    value->failed = value->failed || !bytes;
    twi_arena_free(&arena);
}

static tw_status make_tensor(const twi_run *r, int input, const tw_string *tag, const tw_string *about)
{
    const twi_operand *in = &r->input_operands[input];
    tw_tensor view = {
        .dtype = in->dtype, .shape = in->shape, .elements = in->elements, .data = (void *)r->inputs[input]};
    twi_text summary = {0}, value = {0};
    if (tag)
        put_bytes(&value, 1, tag->data ? tag->data : "", tag->size);
    else
        put_bytes(&value, 7, r->node, strlen(r->node));
    put_tensor(&value, &view);
    if (about)
        put_bytes(&value, 9, about->data ? about->data : "", about->size);
    put_value(&summary, &value);
    return finish(r, &summary);
}

/* Of the second version the first and the last input: the tag, and what the reader is told of the tensor. */
static tw_status run_tensor(const twi_run *r)
{
    bool second = r->num_inputs == 3;
    return make_tensor(r, second, second ? r->inputs[0] : NULL, second ? r->inputs[2] : NULL);
}

/* The writer, a step, the tensor, the tag, what the reader is told, which may be nothing. */
static tw_status run_write_tensor(const twi_run *r)
{
    const tw_string *about = r->inputs[4];
    return make_tensor(r, 2, r->inputs[3], about->size ? about : NULL);
}

const twi_kernel twi_cpu_summary_kernels[] = {
    {"AudioSummary", "plain", 0, prepare_audio, run_audio, twi_free},
    {"AudioSummaryV2", "plain", 0, prepare_audio, run_audio, twi_free},
    {"ImageSummary", "plain", 0, prepare_images, run_images, twi_free},
    {"ScalarSummary", "plain", 0, NULL, run_scalar},
    {"HistogramSummary", "plain", 0, prepare_histogram, run_histogram},
    {"TensorSummary", "plain", 0, NULL, run_tensor},
    {"TensorSummaryV2", "plain", 0, NULL, run_tensor},
    {"MergeSummary", "plain", 0, NULL, run_merge},
    {"WriteScalarSummary", "plain", 0, check_writer, run_scalar},
    {"WriteHistogramSummary", "plain", 0, prepare_histogram, run_histogram},
    {"WriteImageSummary", "plain", 0, prepare_images, run_images, twi_free},
    {"WriteAudioSummary", "plain", 0, prepare_audio, run_audio, twi_free},
    {"WriteSummary", "plain", 0, check_writer, run_write_tensor},
    {0},
};
