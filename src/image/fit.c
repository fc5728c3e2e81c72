/* fit.c - an image in another size; see image.h. Columns first, into floats, then rows: the same sums on any machine.
 */
#include "image/image.h"

#include "base/memory.h"
#include "base/status.h"

#include <math.h>

/* Which of the old cells, from `first` on, a new one is made of, and with what weights, which add up to 1. */
typedef struct span {
    int first, count;
    float *weights;
} span;

/* Cell `at` of `to`, which stand for `length` old cells from `start` on. */
static void find_span(int at, int to, int start, int length, span *s)
{
    double scale = (double)length / to;
    if (scale > 1) { /* a mean over what it covers */
        double begin = at * scale, end = begin + scale;
        int last = (int)ceil(end) < length ? (int)ceil(end) : length;
        s->first = (int)begin;
        s->count = last - s->first;
        for (int i = 0; i < s->count; i++) {
            double from = fmax(begin, s->first + i), until = fmin(end, s->first + i + 1);
            s->weights[i] = (float)((until - from) / scale);
        }
    } else { /* between the two whose middles are nearest */
        double middle = fmin(fmax((at + 0.5) * scale - 0.5, 0), length - 1);
        s->first = (int)middle;
        s->count = s->first + 1 < length ? 2 : 1;
        s->weights[1] = s->count == 2 ? (float)(middle - s->first) : 0;
        s->weights[0] = 1 - s->weights[1];
    }
    s->first += start;
}

/* The rows that are needed, each as wide as wanted: columns [length of the rows' crop, width, channels]. */
static void fit_columns(const twi_image *image, int top, int rows, int left, int columns, int width, float *weights,
                        float *out)
{
    int channels = image->channels;
    for (int x = 0; x < width; x++) {
        span s = {.weights = weights};
        find_span(x, width, left, columns, &s);
        for (int y = 0; y < rows; y++) {
            const uint8_t *from =
                image->pixels + ((size_t)(top + y) * (size_t)image->width + (size_t)s.first) * (size_t)channels;
            for (int c = 0; c < channels; c++) {
                float sum = 0;
                for (int i = 0; i < s.count; i++)
                    sum += s.weights[i] * from[i * channels + c];
                out[((size_t)y * (size_t)width + (size_t)x) * (size_t)channels + (size_t)c] = sum;
            }
        }
    }
}

static void fit_rows(const float *columns, int rows, int height, size_t row, float *weights, uint8_t *pixels)
{
    for (int y = 0; y < height; y++) {
        span s = {.weights = weights};
        find_span(y, height, 0, rows, &s);
        for (size_t x = 0; x < row; x++) {
            float sum = 0;
            for (int i = 0; i < s.count; i++)
                sum += s.weights[i] * columns[(size_t)(s.first + i) * row + x];
            pixels[(size_t)y * row + x] = (uint8_t)fminf(fmaxf(sum + 0.5f, 0), 255);
        }
    }
}

tw_status twi_image_fit(const twi_image *image, int height, int width, uint8_t *pixels, tw_error *error)
{
    /* As much as has the proportions: all columns or all rows. */
    int64_t by_width = (int64_t)image->width * height, by_height = (int64_t)image->height * width;
    int columns = by_width <= by_height ? image->width : (int)(by_height / height);
    int rows = by_width <= by_height ? (int)(by_width / width) : image->height;
    columns = columns > 0 ? columns : 1;
    rows = rows > 0 ? rows : 1;
    size_t row = (size_t)width * (size_t)image->channels, most = (size_t)(rows > columns ? rows : columns) + 2;
    float *narrow = twi_alloc_array((size_t)rows * row, sizeof *narrow),
          *weights = twi_alloc_array(most, sizeof *weights);
    if (narrow && weights) {
        fit_columns(image, (image->height - rows) / 2, rows, (image->width - columns) / 2, columns, width, weights,
                    narrow);
        fit_rows(narrow, rows, height, row, weights, pixels);
    }
    bool good = narrow && weights;
    twi_free(narrow);
    twi_free(weights);
    return good ? TW_OK : twi_fail_memory(error, "scaling an image");
}
