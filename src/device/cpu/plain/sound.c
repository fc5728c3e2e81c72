/* sound.c - WAV files read and written, spectrograms, cepstral coefficients. All in double, as TensorFlow has it. */
#include "base/little_endian.h"
#include "base/memory.h"
#include "device/cpu/vector/transform.h"
#include "device/kernel.h"
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* ---- DecodeWav: RIFF, "WAVE", and pieces of a name, a length and bytes ------------------------------------------ */

typedef struct wav {
    int channels, rate, bits;
    const char *samples; /* 16 bits each, channel by channel; NULL: none yet */
    int64_t count;       /* of each channel */
} wav;

static int short_at(const char *at)
{
    return (unsigned char)at[0] | (unsigned char)at[1] << 8;
}

static tw_status read_format(const twi_run *r, const char *piece, size_t size, wav *w)
{
    if (size < 16)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': Bad format chunk size for WAV: Expected 16 or 18, but got %zu", r->node, size);
    if (short_at(piece) != 1)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Bad audio format for WAV: Expected 1 (PCM), but got %d",
                        r->node, short_at(piece));
    w->channels = short_at(piece + 2);
    w->rate = (int)twi_get32(piece + 4);
    w->bits = short_at(piece + 14);
    if (w->bits != 16 || w->channels < 1 || w->rate < 1)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': Can only read 16-bit WAV files, but received %d bits, %d channels, a rate of %d",
                        r->node, w->bits, w->channels, w->rate);
    return TW_OK;
}

static tw_status read_wav(const twi_run *r, const tw_string *file, wav *w)
{
    const char *at = file->data, *end = at + file->size;
    tw_status status = TW_OK;
    *w = (wav){0};
    if (file->size < 12 || memcmp(at, "RIFF", 4) != 0 || memcmp(at + 8, "WAVE", 4) != 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Header mismatch: Expected RIFF and WAVE in %zu bytes",
                        r->node, file->size);
    for (at += 12; status == TW_OK && end - at >= 8 && !w->samples;) {
        size_t size = twi_get32(at + 4), left = (size_t)(end - at) - 8;
        if (size > left)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Data too short: a piece of %zu bytes, %zu are left",
                            r->node, size, left);
        if (memcmp(at, "fmt ", 4) == 0)
            status = read_format(r, at + 8, size, w);
        else if (memcmp(at, "data", 4) == 0 && w->channels) {
            w->samples = at + 8;
            w->count = (int64_t)size / (2 * w->channels);
        }
        at += 8 + size;
    }
    if (status == TW_OK && !w->samples)
        status = twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': No data chunk found in WAV", r->node);
    return status;
}

/* state: the samples and channels that are wanted; -1: as there are. */
static tw_status prepare_decode(twi_prepare *p)
{
    int64_t wanted[] = {twi_attr_int(p->attrs, "desired_samples", -1), twi_attr_int(p->attrs, "desired_channels", -1)};
    return twi_keep(p, wanted, sizeof wanted);
}

/* Silence behind the end; channels that the file has not are its last one. */
static tw_status run_decode(const twi_run *r)
{
    const int64_t *wanted = r->state;
    wav w;
    float *to;
    tw_status status = read_wav(r, r->inputs[0], &w);
    if (status != TW_OK)
        return status;
    int64_t samples = wanted[0] < 0 ? w.count : wanted[0], channels = wanted[1] < 0 ? w.channels : wanted[1];
    *(int32_t *)r->outputs[1] = w.rate;
    status = twi_make_output(r, 0, TW_SHAPE(samples, channels), (void **)&to);
    for (int64_t i = 0; status == TW_OK && i < samples * channels; i++) {
        int64_t sample = i / channels, channel = i % channels < w.channels ? i % channels : w.channels - 1;
        const char *at = w.samples + 2 * (sample * w.channels + channel);
        to[i] = sample < w.count ? (float)(int16_t)short_at(at) / 32768 : 0;
    }
    return status;
}

/* ---- EncodeWav --------------------------------------------------------------------------------------------------- */

static void put_short(char *at, int value)
{
    at[0] = (char)value;
    at[1] = (char)(value >> 8);
}

/* audio [samples, channels], a rate: a format of 16 bytes, and the samples as 16 bits each. */
static tw_status run_encode(const twi_run *r)
{
    enum { HEADER = 44, MOST_CHANNELS = 65535 };
    tw_shape shape = r->input_operands[0].shape;
    int64_t rate = *(const int32_t *)r->inputs[1], channels = shape.dims[1], count = r->input_operands[0].elements;
    const float *samples = r->inputs[0];
    if (channels < 1 || channels > MOST_CHANNELS || count > (INT32_MAX - HEADER) / 2)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': audio is [%lld,%lld], expected 1 to %d channels and 2 GB at most", r->node,
                        (long long)shape.dims[0], (long long)channels, MOST_CHANNELS);
    if (rate < 1)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': sample_rate must be positive, not %lld", r->node,
                        (long long)rate);
    uint32_t bytes = (uint32_t)(2 * count), frame = (uint32_t)(2 * channels);
    char *file = twi_alloc(HEADER + (size_t)bytes);
    if (!file)
        return twi_fail_memory(r->error, r->node);
    memcpy(file, "RIFF....WAVEfmt ", 16);
    twi_put32(file + 4, HEADER - 8 + bytes);
    twi_put32(file + 16, 16);
    put_short(file + 20, 1); /* PCM */
    put_short(file + 22, (int)channels);
    twi_put32(file + 24, (uint32_t)rate);
    twi_put32(file + 28, (uint32_t)rate * frame);
    put_short(file + 32, (int)frame);
    put_short(file + 34, 16);
    memcpy(file + 36, "data", 4);
    twi_put32(file + 40, bytes);
    for (int64_t i = 0; i < count; i++) {
        float sample = roundf(samples[i] * 32768);
        put_short(file + HEADER + 2 * i, (int)fminf(fmaxf(sample, INT16_MIN), INT16_MAX));
    }
    bool given = twi_string_set(r->outputs[0], file, HEADER + (size_t)bytes);
    twi_free(file);
    return given ? TW_OK : twi_fail_memory(r->error, r->node);
}

/* ---- AudioSpectrogram: of windows that fade in and out, how strong each frequency is ---------------------------- */

typedef struct spectrum {
    int64_t window, stride, length; /* length: of the transform, a power of two */
    bool squared;
    twi_transform *transform; /* NULL: there is nothing to do */
    size_t scratch;           /* numbers of rows that it needs, before the window's own */
} spectrum;

static void release_spectrum(void *state)
{
    spectrum *s = state;
    twi_transform_free(s ? s->transform : NULL);
    twi_free(s);
}

static tw_status prepare_spectrum(twi_prepare *p)
{
    spectrum s = {.window = twi_attr_int(p->attrs, "window_size", 2),
                  .stride = twi_attr_int(p->attrs, "stride", 1),
                  .length = 1,
                  .squared = twi_attr_bool(p->attrs, "magnitude_squared", false)};
    while (s.length < s.window)
        s.length *= 2;
    if (p->outputs[0].elements == 0) /* nothing to do, whatever the window */
        return twi_keep(p, &s, sizeof s);
    s.transform = twi_transform_make(s.length);
    if (!s.transform)
        return twi_fail_memory(p->error, p->node);
    s.scratch = (size_t)s.length + twi_transform_scratch(s.transform);
    p->workspace = s.scratch * sizeof(twi_transform_rows) + (size_t)s.length * sizeof(double _Complex);
    tw_status status = twi_keep(p, &s, sizeof s);
    if (status != TW_OK)
        twi_transform_free(s.transform);
    return status;
}

static tw_status run_spectrum(const twi_run *r)
{
    const spectrum *s = r->state;
    const int64_t *dims = r->output_operands[0].shape.dims, channels = dims[0], windows = dims[1], bins = dims[2];
    const float *from = r->inputs[0];
    float *to = r->outputs[0];
    twi_transform_rows *scratch = r->workspace;
    double _Complex *x = (void *)(scratch + s->scratch);
    for (int64_t k = 0; k < channels * windows; k++) {
        int64_t channel = k / windows, first = k % windows * s->stride;
        memset(x, 0, sizeof *x * (size_t)s->length);
        for (int64_t i = 0; i < s->window; i++)
            x[i] = from[(first + i) * channels + channel] * (0.5 - 0.5 * cos(2 * pi * (double)i / (double)s->window));
        twi_transform_run_one(s->transform, x, scratch, false);
        for (int64_t i = 0; i < bins; i++) {
            double power = creal(x[i]) * creal(x[i]) + cimag(x[i]) * cimag(x[i]);
            to[k * bins + i] = s->squared ? (float)power : sqrtf((float)power);
        }
    }
    return TW_OK;
}

/* ---- Mfcc: bands as the ear has them, their logarithms, and a cosine transform of those ------------------------- */

typedef struct cepstrum {
    double low, high; /* Hz */
    int bands, count;
} cepstrum;

static tw_status prepare_cepstrum(twi_prepare *p)
{
    enum { MOST_BANDS = 1 << 16 };
    int64_t bands = twi_attr_int(p->attrs, "filterbank_channel_count", 40);
    cepstrum s = {twi_attr_float(p->attrs, "lower_frequency_limit", 20),
                  twi_attr_float(p->attrs, "upper_frequency_limit", 4000),
                  (int)bands, (int)twi_attr_int(p->attrs, "dct_coefficient_count", 13)};
    if (!(s.low >= 0 && s.high > s.low))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': frequencies from %g to %g", p->op, p->node, s.low,
                        s.high);
    if (bands > MOST_BANDS)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': filterbank_channel_count is %lld, expected %d at most",
                        p->op, p->node, (long long)bands, MOST_BANDS);
    p->workspace = (size_t)s.bands * sizeof(double);
    return twi_keep(p, &s, sizeof s);
}

static double mel(double frequency)
{
    return 1127.0 * log1p(frequency / 700.0);
}

/* The middle of band i; that of band -1 is where the first one begins. */
static double middle(const cepstrum *s, int i)
{
    return mel(s->low) + (mel(s->high) - mel(s->low)) / (s->bands + 1.0) * (i + 1.0);
}

/* Each frequency goes to the two bands between whose middles it lies, by how near it is. */
static void fill_bands(const cepstrum *s, const float *power, int64_t bins, double step, double *bands)
{
    int64_t first = (int64_t)(1.5 + s->low / step), last = (int64_t)(s->high / step);
    int band = 0;
    memset(bands, 0, sizeof *bands * (size_t)s->bands);
    for (int64_t i = first; i <= last && i < bins; i++) {
        double at = mel((double)i * step), strength = sqrt((double)power[i]);
        while (band < s->bands && middle(s, band) < at)
            band++;
        double share = (middle(s, band) - at) / (middle(s, band) - middle(s, band - 1));
        if (band > 0)
            bands[band - 1] += strength * share;
        if (band < s->bands)
            bands[band] += strength - strength * share;
    }
}

static tw_status run_cepstrum(const twi_run *r)
{
    const cepstrum *s = r->state;
    const int64_t *dims = r->input_operands[0].shape.dims, windows = dims[0] * dims[1], bins = dims[2];
    double step = 0.5 * *(const int32_t *)r->inputs[1] / (double)(bins - 1), *bands = r->workspace;
    float *to = r->outputs[0];
    if (bins < 2 || !(step > 0))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld frequencies at a sample rate of %d", r->node,
                        (long long)bins, *(const int32_t *)r->inputs[1]);
    for (int64_t k = 0; k < windows; k++) {
        fill_bands(s, (const float *)r->inputs[0] + k * bins, bins, step, bands);
        for (int j = 0; j < s->bands; j++)
            bands[j] = log(bands[j] < 1e-12 ? 1e-12 : bands[j]);
        for (int i = 0; i < s->count; i++) {
            double sum = 0;
            for (int j = 0; j < s->bands; j++)
                sum += sqrt(2.0 / s->bands) * cos(i * pi / s->bands * (j + 0.5)) * bands[j];
            *to++ = (float)sum;
        }
    }
    return TW_OK;
}

const twi_kernel twi_cpu_sound_kernels[] = {
    {"DecodeWav", "plain", 0, prepare_decode, run_decode, twi_free},
    {"EncodeWav", "plain", 0, NULL, run_encode},
    {"AudioSpectrogram", "plain", 0, prepare_spectrum, run_spectrum, release_spectrum},
    {"Mfcc", "plain", 0, prepare_cepstrum, run_cepstrum, twi_free},
    {0},
};
