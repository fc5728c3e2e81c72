/* pictures.c - an example of each class, as a small bitmap in the page itself. */
#include "report.h"

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tower/data.h>

enum { MOST_PICTURES = 40, MOST_SIDE = 64 };

static void write_base64(const uint8_t *bytes, size_t size, FILE *out)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16 | (i + 1 < size ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (i + 2 < size ? bytes[i + 2] : 0);
        fputc(letters[three >> 18], out);
        fputc(letters[three >> 12 & 63], out);
        fputc(i + 1 < size ? letters[three >> 6 & 63] : '=', out);
        fputc(i + 2 < size ? letters[three & 63] : '=', out);
    }
}

static void put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* A bitmap of 24 bits a pixel, from the bottom row up, blue first, rows of a multiple of 4 bytes. */
static void write_bitmap(const uint8_t *pixels, int height, int width, int channels, FILE *out)
{
    enum { HEAD = 54 };
    static uint8_t file[HEAD + MOST_SIDE * (MOST_SIDE * 3 + 3)];
    size_t row = ((size_t)width * 3 + 3) / 4 * 4, size = HEAD + row * (size_t)height;
    memset(file, 0, size);
    memcpy(file, "BM", 2);
    put32(file + 2, (uint32_t)size);
    put32(file + 10, HEAD);
    put32(file + 14, 40);
    put32(file + 18, (uint32_t)width);
    put32(file + 22, (uint32_t)height);
    file[26] = 1;
    file[28] = 24;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++)
                file[HEAD + (size_t)(height - 1 - y) * row + (size_t)x * 3 + (size_t)c] =
                    pixels[((size_t)y * (size_t)width + (size_t)x) * (size_t)channels +
                           (size_t)(channels == 3 ? 2 - c : 0)];
    fputs("data:image/bmp;base64,", out);
    write_base64(file, size, out);
}

/* Its pixels; false: there is none, or it cannot be read. */
static bool first_of_class(const tw_dataset *data, int class, uint8_t pixels[MOST_SIDE * MOST_SIDE * 3])
{
    for (int64_t i = 0; i < tw_dataset_count(data); i++)
        if (tw_dataset_labels(data)[i] == class)
            return tw_dataset_image(data, i, pixels, NULL) == TW_OK;
    return false;
}

static void write_classes(const tw_dataset *data, FILE *out)
{
    int classes = tw_dataset_classes(data);
    fputs("[", out);
    for (int i = 0; i < classes && i < MOST_PICTURES; i++) {
        uint8_t image[MOST_SIDE * MOST_SIDE * 3];
        bool shown = first_of_class(data, i, image);
        const char *name = tw_dataset_class_name(data, i);
        fputs(i ? ",{\"class\":" : "{\"class\":", out);
        report_text(out, name ? name : "");
        if (shown) {
            fputs(",\"image\":\"", out);
            write_bitmap(image, tw_dataset_height(data), tw_dataset_width(data), tw_dataset_channels(data), out);
            fputs("\"", out);
        }
        fputs("}", out);
    }
    fputs("]", out);
}

void report_pictures(const cJSON *run, FILE *out)
{
    const cJSON *set = cJSON_GetObjectItemCaseSensitive(run, "data_set");
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(set, "name"));
    const char *directory = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(set, "directory"));
    tw_dataset *data = NULL;
    if (name && directory)
        tw_dataset_load(name, directory, TW_SPLIT_TEST, TW_OPTIONS(tw_dataset_options, .when_needed = true), &data,
                        NULL);
    bool small = data && tw_dataset_height(data) <= MOST_SIDE && tw_dataset_width(data) <= MOST_SIDE &&
                 (tw_dataset_channels(data) == 3 || tw_dataset_channels(data) == 1);
    if (small)
        write_classes(data, out);
    else
        fputs("null", out);
    tw_dataset_destroy(data);
}
