/* png.c - PNGs as they are written, and those of 16 bits a number as they are read, by libpng's long interface: the
 * short one, by which decode.c reads 8 bits, would take such numbers for light and change them, and says of pixels that
 * they are sRGB, where TensorFlow says nothing. */
#include "image/image.h"

#include "base/memory.h"
#include "base/status.h"

#include <png.h>
#include <setjmp.h>
#include <string.h>

typedef struct reading {
    const uint8_t *at, *end;
    uint8_t *rows;
    const uint8_t **places; /* of rows, for libpng */
    char message[128];
} reading;

static void give_up(png_structp png, png_const_charp message)
{
    reading *r = png_get_error_ptr(png);
    strncpy(r->message, message, sizeof r->message - 1);
    longjmp(png_jmpbuf(png), 1);
}

static void take_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void read_some(png_structp png, png_bytep to, size_t size)
{
    reading *r = png_get_io_ptr(png);
    if ((size_t)(r->end - r->at) < size)
        png_error(png, "it ends early");
    memcpy(to, r->at, size);
    r->at += size;
}

static tw_status make_room(reading *r, const twi_image *image, size_t file, const char *name, tw_error *error)
{
    int64_t pixels = (int64_t)image->height * image->width; /* more than none: libpng refuses those */
    if (image->height > TWI_IMAGE_MOST_SIDE || image->width > TWI_IMAGE_MOST_SIDE || pixels > TWI_IMAGE_MOST_PIXELS ||
        2 * pixels * image->channels > TWI_IMAGE_FREE_BYTES + TWI_IMAGE_BYTES_A_BYTE * (int64_t)file)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "'%s' is an image of %d x %d, which is too large for a file of %zu bytes", name, image->height,
                        image->width, file);
    r->rows = twi_resize(NULL, 2 * (size_t)pixels * (size_t)image->channels);
    r->places = twi_alloc_array((size_t)image->height, sizeof *r->places);
    return r->rows && r->places ? TW_OK : twi_fail_memory(error, "decoding an image");
}

/* A transparent colour becomes a channel. */
static void begin(png_structp png, png_infop info, twi_image *image)
{
    png_read_info(png, info);
    if (png_get_bit_depth(png, info) != 16)
        png_error(png, "it has no words of 16 bits");
    png_set_expand(png);
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        png_set_swap(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    image->height = (int)png_get_image_height(png, info); /* of 31 bits at most, in the format */
    image->width = (int)png_get_image_width(png, info);
    image->channels = png_get_channels(png, info);
}

tw_status twi_image_decode_png_words(const void *bytes, size_t size, const char *name, twi_image *image,
                                     tw_error *error)
{
    reading r = {.at = bytes, .end = (const uint8_t *)bytes + size};
    volatile tw_status status = TW_OK;
    *image = (twi_image){0};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, give_up, take_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_read_struct(&png, NULL, NULL);
        return twi_fail_memory(error, "decoding an image");
    }
    if (setjmp(png_jmpbuf(png))) {
        status = twi_fail(error, TW_DATA_LOSS, "'%s' is a damaged PNG: %s", name, r.message);
    } else {
        png_set_read_fn(png, &r, read_some);
        begin(png, info, image);
        status = make_room(&r, image, size, name, error);
        if (status == TW_OK) {
            size_t row = png_get_rowbytes(png, info);
            for (int i = 0; i < image->height; i++)
                r.places[i] = r.rows + row * (size_t)i;
            png_read_image(png, (png_bytepp)r.places);
            png_read_end(png, NULL);
        }
    }
    png_destroy_read_struct(&png, &info, NULL);
    twi_free(r.places);
    if (status != TW_OK)
        twi_free(r.rows);
    image->pixels = status == TW_OK ? r.rows : NULL;
    return status;
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

typedef struct writing {
    char *bytes;
    size_t size, capacity;
} writing;

static void write_some(png_structp png, png_bytep from, size_t size)
{
    writing *w = png_get_io_ptr(png);
    if (w->size + size > w->capacity) {
        size_t capacity = 2 * w->capacity + size;
        char *larger = twi_resize(w->bytes, capacity);
        if (!larger)
            png_error(png, "out of memory");
        w->bytes = larger;
        w->capacity = capacity;
    }
    memcpy(w->bytes + w->size, from, size);
    w->size += size;
}

static void flush(png_structp png)
{
    (void)png;
}

tw_status twi_image_encode_png(const twi_image *image, int bits, int compression, char **bytes, size_t *size,
                               tw_error *error)
{
    enum { MOST_SIDE = 1000000 }; /* libpng's */
    static const int colours[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                  PNG_COLOR_TYPE_RGB_ALPHA};
    reading r = {0};
    writing w = {0}; /* changed by calls of the library alone, through its address */
    *bytes = NULL;
    if (image->height < 1 || image->width < 1 || image->height > MOST_SIDE || image->width > MOST_SIDE ||
        image->channels < 1 || image->channels > 4)
        return twi_fail(error, TW_INVALID_ARGUMENT, "an image of %d x %d with %d channels cannot be a PNG",
                        image->height, image->width, image->channels);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &r, give_up, take_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_write_struct(&png, NULL);
        return twi_fail_memory(error, "encoding an image");
    }
    if (setjmp(png_jmpbuf(png))) {
        png_destroy_write_struct(&png, &info);
        twi_free(w.bytes);
        return twi_fail(error, TW_RESOURCE_EXHAUSTED, "encoding a PNG: %s", r.message);
    }
    png_set_write_fn(png, &w, write_some, flush);
    png_set_IHDR(png, info, (png_uint_32)image->width, (png_uint_32)image->height, bits,
                 colours[image->channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, compression);
    png_write_info(png, info);
    if (bits == 16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        png_set_swap(png);
    size_t row = (size_t)bits / 8 * (size_t)image->channels * (size_t)image->width;
    for (int i = 0; i < image->height; i++)
        png_write_row(png, image->pixels + row * (size_t)i);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    *bytes = w.bytes;
    *size = w.size;
    return TW_OK;
}
