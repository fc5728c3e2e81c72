/* distort.h - from the bytes of one image to the floats a network sees.
 * Lives here:  what is drawn for an image, and the arithmetic; what a card needs of it is in this header.
 * Never here:  where the random numbers come from (stream.h), files, threads. */
#ifndef TWI_DISTORT_H
#define TWI_DISTORT_H

#include "stream/stream.h"

#include <tower/data.h>

enum { TWI_DISTORT_PADDING = 4, TWI_DISTORT_REFLECTED = 2, TWI_DISTORT_CHANNELS = 4 }; /* the most channels of an image */

/* What was drawn for one image. A crop that starts before the image (top or left below 0) or ends beyond it reads
 * zeros there, or the image's reflection. */
typedef struct twi_distortion {
    int top, left; /* of the crop, pixels */
    bool flip;     /* left to right, after the crop */
    float brightness, contrast;
} twi_distortion;

/* How images of one kind are treated; a plain value. */
typedef struct twi_distorter {
    tw_augmentation augmentation;
    int height, width, channels; /* of the images that come in */
    int out_height, out_width;   /* of those that go out; channels stay */
    float scale, offset;
} twi_distorter;

/* crop, scale and offset are those of tw_pipeline_options. */
tw_status twi_distorter_init(twi_distorter *distorter, tw_augmentation augmentation, int height, int width,
                             int channels, int crop, float scale, float offset, tw_error *error);

/* image [height, width, channels] to out [out_height, out_width, channels], by way of so many bytes of scratch memory,
 * aligned to 8. */
size_t twi_distort_scratch(const twi_distorter *distorter);
void twi_distort(const twi_distorter *distorter, const twi_distortion *distortion, const uint8_t *image, float *out,
                 void *scratch);

/* ---- for cards, too ------------------------------------------------------------------------------------------ */

TWI_ANYWHERE bool twi_standardises(const twi_distorter *d)
{
    return d->augmentation == TW_AUGMENT_TUTORIAL_TRAIN || d->augmentation == TW_AUGMENT_TUTORIAL_EVAL;
}

TWI_ANYWHERE bool twi_reflects(const twi_distorter *d)
{
    return d->augmentation == TW_AUGMENT_REFLECT_CROP_ALTERNATE;
}

/* Which of `size` pixels is seen at a place up to size - 1 before the first or behind the last. */
TWI_ANYWHERE int twi_reflected(int at, int size)
{
    return at < 0 ? -at : at < size ? at : 2 * (size - 1) - at;
}

/* 0 to count - 1 */
TWI_ANYWHERE int twi_pick(uint32_t word, int count)
{
    return (int)((uint64_t)word * (uint64_t)count >> 32);
}

/* Whether an image is flipped in an epoch, where flips alternate. */
TWI_ANYWHERE bool twi_alternate(uint64_t seed, int64_t index, int64_t epoch)
{
    uint32_t word[4];
    twi_philox random = twi_example_random(seed, TWI_STREAM_FLIP, (uint64_t)index);
    twi_philox_next(&random, word);
    return ((word[0] >> 31) ^ ((uint64_t)epoch & 1)) != 0;
}

/* What example k of the stream of `seed` gets, which is image `index` of `count`. */
TWI_ANYWHERE twi_distortion twi_draw_distortion(const twi_distorter *d, uint64_t seed, int64_t k, int64_t count,
                                                int64_t index)
{
    twi_distortion drawn = {0, 0, false, 0, 1};
    twi_philox random = twi_example_random(seed, TWI_STREAM_DISTORTION, (uint64_t)k);
    uint32_t word[8];
    switch (d->augmentation) {
    case TW_AUGMENT_TUTORIAL_TRAIN:
        twi_philox_next(&random, word);
        twi_philox_next(&random, word + 4);
        drawn.top = twi_pick(word[0], d->height - d->out_height + 1);
        drawn.left = twi_pick(word[1], d->width - d->out_width + 1);
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
        drawn.top = twi_pick(word[0], 2 * TWI_DISTORT_PADDING + 1) - TWI_DISTORT_PADDING;
        drawn.left = twi_pick(word[1], 2 * TWI_DISTORT_PADDING + 1) - TWI_DISTORT_PADDING;
        drawn.flip = twi_uniform_float(word[2]) < 0.5f;
        break;
    case TW_AUGMENT_REFLECT_CROP_ALTERNATE:
        twi_philox_next(&random, word);
        drawn.top = twi_pick(word[0], 2 * TWI_DISTORT_REFLECTED + 1) - TWI_DISTORT_REFLECTED;
        drawn.left = twi_pick(word[1], 2 * TWI_DISTORT_REFLECTED + 1) - TWI_DISTORT_REFLECTED;
        drawn.flip = twi_alternate(seed, index, (int64_t)((uint64_t)k / (uint64_t)count));
        break;
    case TW_AUGMENT_NONE:
        break;
    }
    return drawn;
}

/* How the bytes of a crop become floats: (byte - mean[channel]) * scale + shift[channel]. */
typedef struct twi_standard {
    float scale, mean[TWI_DISTORT_CHANNELS], shift[TWI_DISTORT_CHANNELS];
} twi_standard;

/* The tutorial's chain needs no intermediate image. With b a byte, brightness d, contrast f, mu_c the mean of the
 * bytes of channel c over the crop and mu that over all channels:
 *     brightness        x = b + d
 *     contrast          y = (x - mean_c(x)) f + mean_c(x) = (b - mu_c) f + mu_c + d
 *     standardisation   z = (y - mean(y)) / max(stddev(y), 1 / sqrt(n))
 *                         = ((b - mu_c) f + (mu_c - mu)) / max(stddev(y), 1 / sqrt(n))
 * so d cancels (it is still drawn: the chain stays what it is called), and
 *     variance(y) = mean over c of (f^2 variance_c(b) + (mu_c - mu)^2).
 * sum and square [channels], of the crop's bytes and of their squares, are whole numbers, so they are exact in any
 * order: a compiler may use vectors as it likes, a card a tree, and the bits are the same. */
TWI_ANYWHERE twi_standard twi_standardise(const twi_distorter *d, float contrast, const uint64_t *sum,
                                          const uint64_t *square)
{
    twi_standard standard;
    const int channels = d->channels;
    const double pixels = (double)d->out_height * d->out_width;
    /* Loops of known length: a card keeps the arrays in registers. */
    double mean[TWI_DISTORT_CHANNELS], all = 0, variance = 0;
    for (int c = 0; c < TWI_DISTORT_CHANNELS && c < channels; c++) {
        mean[c] = (double)sum[c] / pixels;
        all += mean[c] / channels;
    }
    for (int c = 0; c < TWI_DISTORT_CHANNELS && c < channels; c++) {
        double between = mean[c] - all, within = ((double)square[c] * pixels - (double)sum[c] * (double)sum[c]);
        variance += ((double)contrast * contrast * (within / (pixels * pixels)) + between * between) / channels;
    }
    double deviation = fmax(sqrt(variance), 1 / sqrt(pixels * channels));
    for (int c = 0; c < TWI_DISTORT_CHANNELS && c < channels; c++) {
        standard.mean[c] = (float)mean[c];
        standard.shift[c] = (float)((mean[c] - all) / deviation);
    }
    standard.scale = (float)(contrast / deviation);
    return standard;
}

#endif
