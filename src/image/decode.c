/* decode.c - JPEG by libjpeg-turbo, PNG by libpng; see image.h. */
#include "image/image.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h> /* after stdio.h, whose FILE it takes for granted */

#include <jerror.h>

enum { MOST_FILE = 256 << 20 };

static bool is_png(const void *bytes, size_t size)
{
    return size >= 8 && png_sig_cmp((png_const_bytep)bytes, 0, 8) == 0;
}

static bool is_jpeg(const void *bytes, size_t size)
{
    return size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0;
}

bool twi_image_is_one(const void *bytes, size_t size)
{
    return is_png(bytes, size) || is_jpeg(bytes, size);
}

void twi_image_free(twi_image *image)
{
    twi_free(image->pixels);
    *image = (twi_image){0};
}

/* The library takes `more` bytes beside. */
static tw_status make_room(twi_image *image, int64_t more, size_t file, const char *name, tw_error *error)
{
    int64_t pixels = (int64_t)image->height * image->width; /* more than none: both libraries refuse those */
    if (image->height > TWI_IMAGE_MOST_SIDE || image->width > TWI_IMAGE_MOST_SIDE || pixels > TWI_IMAGE_MOST_PIXELS)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "'%s' is an image of %d x %d; expected sides of 1 to %d, and %d pixels at "
                        "most",
                        name, image->height, image->width, TWI_IMAGE_MOST_SIDE, TWI_IMAGE_MOST_PIXELS);
    int64_t bytes = pixels * image->channels + more,
            most = TWI_IMAGE_FREE_BYTES + TWI_IMAGE_BYTES_A_BYTE * (int64_t)file;
    if (bytes > most)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "'%s' takes %lld bytes to decode; expected %lld at most of a file of %zu", name,
                        (long long)bytes, (long long)most, file);
    image->pixels = twi_resize(NULL, (size_t)pixels * (size_t)image->channels);
    return image->pixels ? TW_OK : twi_fail_memory(error, "decoding an image");
}

/* ---- PNG ------------------------------------------------------------------------------------------------------- */

/* Grey in place of each colour, as JPEG has it and television had: libpng would weigh light and not values. */
static void make_grey(twi_image *image)
{
    int64_t pixels = (int64_t)image->height * image->width;
    for (int64_t i = 0; i < pixels; i++) {
        const uint8_t *p = image->pixels + 3 * i;
        image->pixels[i] = twi_image_grey(p[0], p[1], p[2]);
    }
    image->channels = 1;
}

static tw_status decode_png(const void *bytes, size_t size, int channels, const char *name, twi_image *image,
                            tw_error *error)
{
    static const png_color white = {255, 255, 255};
    png_image png = {.version = PNG_IMAGE_VERSION};
    tw_status status = TW_OK;
    if (!png_image_begin_read_from_memory(&png, bytes, size))
        return twi_fail(error, TW_DATA_LOSS, "'%s' is a damaged PNG: %s", name, png.message);
    if (channels == 0)
        channels = png.format & PNG_FORMAT_FLAG_ALPHA ? 4 : png.format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
    bool grey_of_colours = channels == 1 && (png.format & PNG_FORMAT_FLAG_COLOR);
    channels = grey_of_colours ? 3 : channels;
    png.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
    *image = (twi_image){(int)png.height, (int)png.width, channels, NULL}; /* of 31 bits at most, in the format */
    TWI_TRY(make_room(image, 0, size, name, error));
    if (!png_image_finish_read(&png, &white, image->pixels, 0, NULL))
        TWI_LEAVE(twi_fail(error, TW_DATA_LOSS, "'%s' is a damaged PNG: %s", name, png.message));
    if (grey_of_colours)
        make_grey(image);
done:
    png_image_free(&png);
    return status;
}

/* ---- JPEG ------------------------------------------------------------------------------------------------------ */

typedef struct trouble {
    struct jpeg_error_mgr manager; /* libjpeg's own, first */
    jmp_buf back;
    bool cut_short;
    char message[JMSG_LENGTH_MAX];
} trouble;

static void give_up(j_common_ptr jpeg)
{
    trouble *t = (trouble *)jpeg->err;
    t->manager.format_message(jpeg, t->message);
    longjmp(t->back, 1);
}

/* Many files have small faults that harm nothing; one that ends early lacks a part of its picture. */
static void take_warning(j_common_ptr jpeg, int level)
{
    trouble *t = (trouble *)jpeg->err;
    if (level < 0 && (t->manager.msg_code == JWRN_JPEG_EOF || t->manager.msg_code == JWRN_HIT_MARKER))
        t->cut_short = true;
}

/* Eighths of the size that leave a side of at least so many pixels. */
static unsigned eighths_for(const struct jpeg_decompress_struct *jpeg, int side)
{
    unsigned least = jpeg->image_height < jpeg->image_width ? jpeg->image_height : jpeg->image_width, eighths = 1;
    while (side > 0 && eighths < 8 && least * eighths / 8 < (unsigned)side)
        eighths *= 2;
    return side > 0 ? eighths : 8;
}

static bool is_printed(const struct jpeg_decompress_struct *jpeg)
{
    return jpeg->num_components == 4;
}

static void set_format(struct jpeg_decompress_struct *jpeg, int channels, const twi_image_wanted *w)
{
    jpeg->dct_method = w->fast ? JDCT_IFAST : JDCT_ISLOW;
    jpeg->do_fancy_upsampling = !w->plain_colours;
    jpeg->out_color_space = channels == 1      ? JCS_GRAYSCALE
                            : is_printed(jpeg) ? JCS_CMYK
                            : channels == 3    ? JCS_RGB
                                               : JCS_EXT_RGBA;
    jpeg->scale_num = w->ratio > 1 ? 8 / (unsigned)w->ratio : eighths_for(jpeg, w->side);
    jpeg->scale_denom = 8;
}

/* Inks, which Adobe's programs write as what they leave of the light, become light. */
static void make_light(const uint8_t *inks, int width, bool inverted, uint8_t *light)
{
    for (int i = 0; i < width; i++, inks += 4)
        for (int c = 0; c < 3; c++)
            *light++ = (uint8_t)(inverted ? inks[3] * inks[c] / 255 : (255 - inks[3]) * (255 - inks[c]) / 255);
}

/* Leads the reader to the window's first row, and leaves out the columns beside it, but for those of a block that the
 * window shares: how many of these come before it. What lies beyond is not looked at, so the window's edge is one. */
static int enter_window(struct jpeg_decompress_struct *jpeg, const int32_t *window)
{
    JDIMENSION first = (JDIMENSION)window[1], width = (JDIMENSION)window[3];
    if (window[1] > 0 || width != jpeg->output_width)
        jpeg_crop_scanline(jpeg, &first, &width);
    jpeg_skip_scanlines(jpeg, (JDIMENSION)window[0]);
    return window[1] - (int)first;
}

/* Reads the rows that are wanted; `line` has room for one of the reader's. */
static void read_rows(struct jpeg_decompress_struct *jpeg, trouble *t, const twi_image_wanted *w, uint8_t *line,
                      twi_image *image)
{
    size_t before = w->window ? (size_t)enter_window(jpeg, w->window) * (size_t)jpeg->output_components : 0;
    size_t row_bytes = (size_t)image->width * (size_t)image->channels;
    for (int i = 0; i < image->height && !t->cut_short; i++) { /* a few bytes may claim any number of rows */
        uint8_t *to = image->pixels + (size_t)i * row_bytes;
        JSAMPROW row = line ? line : to;
        jpeg_read_scanlines(jpeg, &row, 1);
        if (line && is_printed(jpeg))
            make_light(line + before, image->width, jpeg->saw_Adobe_marker, to);
        else if (line)
            memcpy(to, line + before, row_bytes);
    }
}

static tw_status check_window(const int32_t *window, const twi_image *image, const char *name, tw_error *error)
{
    int64_t bottom = (int64_t)window[0] + window[2], right = (int64_t)window[1] + window[3];
    if (window[0] >= 0 && window[1] >= 0 && window[2] > 0 && window[3] > 0 && bottom <= image->height &&
        right <= image->width)
        return TW_OK;
    return twi_fail(error, TW_INVALID_ARGUMENT,
                    "'%s': Invalid crop window: [%d,%d,%d,%d] does not lie in an image of %d x %d", name, window[0],
                    window[1], window[2], window[3], image->height, image->width);
}

/* What longjmp leaves behind is found through the pointers that were given. */
static tw_status decompress(struct jpeg_decompress_struct *jpeg, trouble *t, const void *bytes, size_t size,
                            const twi_image_wanted *w, const char *name, uint8_t **line, twi_image *image,
                            tw_error *error)
{
    if (setjmp(t->back))
        return t->manager.msg_code == JERR_OUT_OF_MEMORY
                   ? twi_fail_memory(error, "decoding an image")
                   : twi_fail(error, TW_DATA_LOSS, "'%s' is a damaged JPEG: %s", name, t->message);
    jpeg_create_decompress(jpeg);
    jpeg_mem_src(jpeg, bytes, (unsigned long)size);
    jpeg_read_header(jpeg, TRUE);
    if (is_printed(jpeg) && (!w->printed || w->channels == 1 || w->channels == 4))
        return twi_fail(error, TW_INVALID_ARGUMENT, "'%s' is a JPEG for printing (CMYK); expected %s", name,
                        w->printed ? "3 channels of one" : "grey or RGB");
    image->printed = is_printed(jpeg);
    image->channels = w->channels ? w->channels : image->printed ? 3 : jpeg->num_components;
    set_format(jpeg, image->channels, w);
    jpeg_calc_output_dimensions(jpeg);
    image->height = (int)jpeg->output_height;
    image->width = (int)jpeg->output_width;
    tw_status status = w->window ? check_window(w->window, image, name, error) : TW_OK;
    size_t row = (size_t)image->width * (size_t)jpeg->output_components;
    if (status == TW_OK && (w->window || is_printed(jpeg)) && !(*line = twi_resize(NULL, row)))
        status = twi_fail_memory(error, "decoding an image");
    if (w->window) {
        image->height = w->window[2];
        image->width = w->window[3];
    }
    int64_t coefficients =
        (int64_t)jpeg->image_width * jpeg->image_height * jpeg->num_components * (int64_t)sizeof(JCOEF);
    if (status == TW_OK)
        status = make_room(image, jpeg_has_multiple_scans(jpeg) ? coefficients : 0, size, name, error);
    if (status != TW_OK)
        return status;
    jpeg_start_decompress(jpeg);
    read_rows(jpeg, t, w, *line, image);
    if (!t->cut_short && !w->window)
        jpeg_finish_decompress(jpeg);
    return t->cut_short ? twi_fail(error, TW_DATA_LOSS, "'%s' is a JPEG that ends early", name) : TW_OK;
}

static tw_status decode_jpeg(const void *bytes, size_t size, const twi_image_wanted *w, const char *name,
                             twi_image *image, tw_error *error)
{
    struct jpeg_decompress_struct jpeg;
    uint8_t *line = NULL;
    trouble t = {.cut_short = false};
    jpeg.err = jpeg_std_error(&t.manager);
    t.manager.error_exit = give_up;
    t.manager.emit_message = take_warning;
    tw_status status = decompress(&jpeg, &t, bytes, size, w, name, &line, image, error);
    jpeg_destroy_decompress(&jpeg);
    twi_free(line);
    return status;
}

/* ---- either ---------------------------------------------------------------------------------------------------- */

static tw_status decode(const void *bytes, size_t size, const twi_image_wanted *w, const char *name, twi_image *image,
                        tw_error *error)
{
    *image = (twi_image){0};
    tw_status status = is_png(bytes, size) && !w->window ? decode_png(bytes, size, w->channels, name, image, error)
                       : is_jpeg(bytes, size)            ? decode_jpeg(bytes, size, w, name, image, error)
                       : w->window                       ? twi_fail(error, TW_INVALID_ARGUMENT, "'%s' is no JPEG", name)
                                   : twi_fail(error, TW_INVALID_ARGUMENT, "'%s' is neither a JPEG nor a PNG", name);
    if (status != TW_OK)
        twi_image_free(image);
    return status;
}

tw_status twi_image_decode(const void *bytes, size_t size, int channels, int side, const char *name, twi_image *image,
                           tw_error *error)
{
    return decode(bytes, size, &(twi_image_wanted){.channels = channels, .side = side}, name, image, error);
}

tw_status twi_image_decode_as(const void *bytes, size_t size, const twi_image_wanted *wanted, const char *name,
                              twi_image *image, tw_error *error)
{
    return decode(bytes, size, wanted, name, image, error);
}

tw_status twi_image_read(const char *path, int channels, int side, twi_image *image, tw_error *error)
{
    char *bytes = NULL;
    size_t size;
    *image = (twi_image){0};
    tw_status status = twi_file_read_any(path, MOST_FILE, &bytes, &size, error);
    if (status == TW_OK)
        status = twi_image_decode(bytes, size, channels, side, path, image, error);
    twi_free(bytes);
    return status;
}
