/* pixels.c - the pixels of one image, on the host; see stream/distort.h. */
#include "stream/distort.h"

#include <string.h>

/* The scratch memory: values of a row [out_width, channels], then the crop [out_height, out_width, channels]. */
typedef struct scratch {
    uint32_t *sums, *squares;
    float *means, *shifts;
    uint8_t *crop;
} scratch;

size_t twi_distort_scratch(const twi_distorter *d)
{
    size_t row = (size_t)d->out_width * (size_t)d->channels;
    return row * (4 * sizeof(uint32_t) + (size_t)d->out_height);
}

static scratch divide(const twi_distorter *d, void *memory)
{
    size_t row = (size_t)d->out_width * (size_t)d->channels;
    uint32_t *rows = memory;
    return (scratch){rows, rows + row, (float *)(rows + 2 * row), (float *)(rows + 3 * row),
                     (uint8_t *)(rows + 4 * row)};
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

/* Those pixels of a row of the crop that lie outside the image's. */
static void reflect_row(const twi_distorter *d, const twi_distortion *by, const uint8_t *from, uint8_t *to)
{
    for (int x = 0; x < d->out_width; x++) {
        int column = by->left + x, place = by->flip ? d->out_width - 1 - x : x;
        if (column < 0 || column >= d->width)
            memcpy(to + place * d->channels, from + twi_reflected(column, d->width) * d->channels, (size_t)d->channels);
    }
}

static void take_crop(const twi_distorter *d, const twi_distortion *by, const uint8_t *image, uint8_t *crop)
{
    const bool reflects = twi_reflects(d);
    for (int y = 0; y < d->out_height; y++) {
        int row = reflects ? twi_reflected(by->top + y, d->height) : by->top + y;
        const uint8_t *from = row >= 0 && row < d->height ? image + row * d->width * d->channels : NULL;
        uint8_t *to = crop + y * d->out_width * d->channels;
        take_row(d, by, from, to);
        if (reflects)
            reflect_row(d, by, from, to);
    }
}

static void standardise(const twi_distorter *d, const scratch *s, float contrast, float *out)
{
    const int row = d->out_width * d->channels, channels = d->channels;
    uint32_t *restrict sums = s->sums, *restrict squares = s->squares;
    float *restrict means = s->means, *restrict shifts = s->shifts;

    memset(sums, 0, (size_t)row * sizeof *sums);
    memset(squares, 0, (size_t)row * sizeof *squares);
    for (int y = 0; y < d->out_height; y++) {
        const uint8_t *restrict bytes = s->crop + y * row;
#pragma omp simd
        for (int i = 0; i < row; i++) {
            uint32_t b = bytes[i];
            sums[i] += b;
            squares[i] += b * b;
        }
    }

    uint64_t sum[TWI_DISTORT_CHANNELS] = {0}, square[TWI_DISTORT_CHANNELS] = {0};
    for (int i = 0; i < row; i += channels)
        for (int c = 0; c < channels; c++) {
            sum[c] += sums[i + c];
            square[c] += squares[i + c];
        }
    const twi_standard standard = twi_standardise(d, contrast, sum, square);
    for (int i = 0; i < row; i += channels)
        for (int c = 0; c < channels; c++) {
            means[i + c] = standard.mean[c];
            shifts[i + c] = standard.shift[c];
        }
    const float scale = standard.scale;
    for (int y = 0; y < d->out_height; y++) {
        const uint8_t *restrict bytes = s->crop + y * row;
        float *restrict values = out + y * row;
#pragma omp simd
        for (int i = 0; i < row; i++)
            values[i] = ((float)bytes[i] - means[i]) * scale + shifts[i];
    }
}

void twi_distort(const twi_distorter *d, const twi_distortion *by, const uint8_t *image, float *out, void *memory)
{
    const scratch s = divide(d, memory);
    take_crop(d, by, image, s.crop);
    if (twi_standardises(d)) {
        standardise(d, &s, by->contrast, out);
        return;
    }
    const int size = d->out_height * d->out_width * d->channels;
    const uint8_t *restrict bytes = s.crop;
    float *restrict values = out;
    const float scale = d->scale, offset = d->offset;
#pragma omp simd
    for (int i = 0; i < size; i++)
        values[i] = (float)bytes[i] * scale + offset;
}
