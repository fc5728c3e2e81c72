/* distort.c - see distort.h.
 *
 * The tutorial's chain needs no intermediate image. With b a byte, brightness d, contrast f, mu_c the mean of the
 * bytes of channel c over the crop and mu that over all channels:
 *     brightness        x = b + d
 *     contrast          y = (x - mean_c(x)) f + mean_c(x) = (b - mu_c) f + mu_c + d
 *     standardisation   z = (y - mean(y)) / max(stddev(y), 1 / sqrt(n))
 *                         = ((b - mu_c) f + (mu_c - mu)) / max(stddev(y), 1 / sqrt(n))
 * so d cancels (it is still drawn: the chain stays what it is called), and
 *     variance(y) = mean over c of (f^2 variance_c(b) + (mu_c - mu)^2).
 * Sums of bytes and of their squares are whole numbers, so they are exact in any order: the compiler may use vectors
 * as it likes, and other devices can give the same bits. */
#include "data/distort.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/stream.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_CROP = 24, PADDING = 4, MAX_CHANNELS = 4 };

static bool standardises(tw_augmentation augmentation)
{
    return augmentation == TW_AUGMENT_TUTORIAL_TRAIN || augmentation == TW_AUGMENT_TUTORIAL_EVAL;
}

tw_status twi_distorter_init(twi_distorter *d, tw_augmentation augmentation, int height, int width, int channels,
                             int crop, float scale, float offset, tw_error *error)
{
    *d = (twi_distorter){
        .augmentation = augmentation,
        .height = height,
        .width = width,
        .channels = channels,
        .out_height = height,
        .out_width = width,
        .scale = scale == 0 ? 1.0f / 255 : scale,
        .offset = offset,
    };
    if (augmentation < TW_AUGMENT_NONE || augmentation > TW_AUGMENT_PAD_CROP_FLIP)
        return twi_fail(error, TW_INVALID_ARGUMENT, "unknown augmentation %d", (int)augmentation);
    if (standardises(augmentation)) {
        crop = crop == 0 ? DEFAULT_CROP : crop;
        if (crop < 1 || crop > height || crop > width)
            return twi_fail(error, TW_INVALID_ARGUMENT, "cannot crop %dx%d pixels of images of %dx%d", crop, crop,
                            height, width);
        d->out_height = d->out_width = crop;
    }
    size_t row = (size_t)d->out_width * (size_t)channels;
    d->crop = twi_alloc_array((size_t)d->out_height, row);
    d->sums = twi_alloc_array(row, sizeof *d->sums);
    d->squares = twi_alloc_array(row, sizeof *d->squares);
    d->means = twi_alloc_array(row, sizeof *d->means);
    d->shifts = twi_alloc_array(row, sizeof *d->shifts);
    if (!d->crop || !d->sums || !d->squares || !d->means || !d->shifts)
        return twi_fail_memory(error, "preparing an augmentation");
    return TW_OK;
}

void twi_distorter_free(twi_distorter *d)
{
    twi_free(d->crop);
    twi_free(d->sums);
    twi_free(d->squares);
    twi_free(d->means);
    twi_free(d->shifts);
    *d = (twi_distorter){0};
}

/* 0 to count - 1 */
static int pick(uint32_t word, int count)
{
    return (int)((uint64_t)word * (uint64_t)count >> 32);
}

twi_distortion twi_draw_distortion(const twi_distorter *d, uint64_t seed, int64_t k)
{
    twi_distortion drawn = {.contrast = 1};
    twi_philox random = twi_example_random(seed, TWI_STREAM_DISTORTION, (uint64_t)k);
    uint32_t word[8];
    switch (d->augmentation) {
    case TW_AUGMENT_TUTORIAL_TRAIN:
        twi_philox_next(&random, word);
        twi_philox_next(&random, word + 4);
        drawn.top = pick(word[0], d->height - d->out_height + 1);
        drawn.left = pick(word[1], d->width - d->out_width + 1);
        drawn.flip = twi_uniform_float(word[2]) < 0.5f;
        drawn.brightness = twi_uniform_float(word[3]) * 126 - 63;
        drawn.contrast = twi_uniform_float(word[4]) * 1.6f + 0.2f;
        break;
    case TW_AUGMENT_TUTORIAL_EVAL:
        drawn.top = (d->height - d->out_height) / 2;
        drawn.left = (d->width - d->out_width) / 2;
        break;
    case TW_AUGMENT_PAD_CROP_FLIP:
        twi_philox_next(&random, word);
        drawn.top = pick(word[0], 2 * PADDING + 1) - PADDING;
        drawn.left = pick(word[1], 2 * PADDING + 1) - PADDING;
        drawn.flip = twi_uniform_float(word[2]) < 0.5f;
        break;
    case TW_AUGMENT_NONE:
        break;
    }
    return drawn;
}

/* One row of the crop from one of the image (NULL: it lies outside, zeros). */
static void take_row(const twi_distorter *d, const twi_distortion *by, const uint8_t *from, uint8_t *to)
{
    int channels = d->channels;
    int first = by->left < 0 ? -by->left : 0; /* pixels of the crop that lie inside: first to last - 1 */
    int last = d->width - by->left < d->out_width ? d->width - by->left : d->out_width;
    if (!from || first > 0 || last < d->out_width)
        memset(to, 0, (size_t)(d->out_width * channels));
    if (!from)
        return;
    from += by->left * channels;
    if (!by->flip) {
        memcpy(to + first * channels, from + first * channels, (size_t)((last - first) * channels));
    } else if (channels == 3) {
        for (int x = first; x < last; x++) {
            const uint8_t *pixel = from + 3 * x;
            uint8_t *place = to + 3 * (d->out_width - 1 - x);
            place[0] = pixel[0];
            place[1] = pixel[1];
            place[2] = pixel[2];
        }
    } else {
        for (int x = first; x < last; x++)
            memcpy(to + (d->out_width - 1 - x) * channels, from + x * channels, (size_t)channels);
    }
}

static void take_crop(twi_distorter *d, const twi_distortion *by, const uint8_t *image)
{
    for (int y = 0; y < d->out_height; y++) {
        int row = by->top + y;
        bool inside = row >= 0 && row < d->height;
        take_row(d, by, inside ? image + row * d->width * d->channels : NULL, d->crop + y * d->out_width * d->channels);
    }
}

static void standardise(twi_distorter *d, float contrast, float *out)
{
    const int row = d->out_width * d->channels, channels = d->channels;
    const double pixels = (double)d->out_height * d->out_width;
    uint32_t *restrict sums = d->sums, *restrict squares = d->squares;
    float *restrict means = d->means, *restrict shifts = d->shifts;

    memset(sums, 0, (size_t)row * sizeof *sums);
    memset(squares, 0, (size_t)row * sizeof *squares);
    for (int y = 0; y < d->out_height; y++) {
        const uint8_t *restrict bytes = d->crop + y * row;
#pragma omp simd
        for (int i = 0; i < row; i++) {
            uint32_t b = bytes[i];
            sums[i] += b;
            squares[i] += b * b;
        }
    }

    uint64_t sum[MAX_CHANNELS] = {0}, square[MAX_CHANNELS] = {0};
    for (int i = 0; i < row; i += channels)
        for (int c = 0; c < channels; c++) {
            sum[c] += sums[i + c];
            square[c] += squares[i + c];
        }
    double mean[MAX_CHANNELS], all = 0, variance = 0;
    for (int c = 0; c < channels; c++) {
        mean[c] = (double)sum[c] / pixels;
        all += mean[c] / channels;
    }
    for (int c = 0; c < channels; c++) {
        double between = mean[c] - all, within = ((double)square[c] * pixels - (double)sum[c] * (double)sum[c]);
        variance += ((double)contrast * contrast * (within / (pixels * pixels)) + between * between) / channels;
    }
    double deviation = fmax(sqrt(variance), 1 / sqrt(pixels * channels));

    for (int i = 0; i < row; i += channels)
        for (int c = 0; c < channels; c++) {
            means[i + c] = (float)mean[c];
            shifts[i + c] = (float)((mean[c] - all) / deviation);
        }
    const float scale = (float)(contrast / deviation);
    for (int y = 0; y < d->out_height; y++) {
        const uint8_t *restrict bytes = d->crop + y * row;
        float *restrict values = out + y * row;
#pragma omp simd
        for (int i = 0; i < row; i++)
            values[i] = ((float)bytes[i] - means[i]) * scale + shifts[i];
    }
}

void twi_distort(twi_distorter *d, const twi_distortion *by, const uint8_t *image, float *out)
{
    take_crop(d, by, image);
    if (standardises(d->augmentation)) {
        standardise(d, by->contrast, out);
        return;
    }
    const int size = d->out_height * d->out_width * d->channels;
    const uint8_t *restrict bytes = d->crop;
    float *restrict values = out;
    const float scale = d->scale, offset = d->offset;
#pragma omp simd
    for (int i = 0; i < size; i++)
        values[i] = (float)bytes[i] * scale + offset;
}
