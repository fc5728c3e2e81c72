/* bmp.c - BMP without compression, of 8 bits a pixel (grey; a palette is not looked at), 24 or 32; see image.h. */
#include "image/image.h"

#include "base/little_endian.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>

enum { HEADER = 32, PIXELS_AT = 10, WIDTH_AT = 18, HEIGHT_AT = 22, BITS_AT = 28 };

/* Blue comes first in the file. */
static void copy_row(const uint8_t *from, uint8_t *to, int width, int channels)
{
    for (int i = 0; i < width * channels; i++) {
        int c = i % channels;
        to[i] = from[i - c + (c < 3 && channels > 1 ? 2 - c : c)];
    }
}

tw_status twi_image_decode_bmp(const void *bytes, size_t size, const char *name, twi_image *image, tw_error *error)
{
    const uint8_t *file = bytes;
    if (size < HEADER || file[0] != 'B' || file[1] != 'M')
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "'%s': Incomplete bmp content, requires at least %d bytes, found %zu", name, HEADER, size);
    uint32_t begins = twi_get32((const char *)file + PIXELS_AT);
    int32_t width = (int32_t)twi_get32((const char *)file + WIDTH_AT),
            height = (int32_t)twi_get32((const char *)file + HEIGHT_AT);
    int bits = file[BITS_AT] | file[BITS_AT + 1] << 8, channels = bits / 8;
    int64_t rows = height < 0 ? -(int64_t)height : height, row = ((int64_t)bits * width + 31) / 32 * 4;
    if (bits != 8 && bits != 24 && bits != 32)
        return twi_fail(error, TW_INVALID_ARGUMENT, "'%s': a BMP of %d bits a pixel, expected 8, 24 or 32", name, bits);
    if (width < 1 || rows < 1 || width > TWI_IMAGE_MOST_SIDE || rows > TWI_IMAGE_MOST_SIDE ||
        begins + (uint64_t)(row * rows) > size)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "'%s': a BMP of %d x %lld with pixels from byte %u on, in %zu bytes", name, width,
                        (long long)rows, begins, size);
    *image = (twi_image){(int)rows, width, channels, twi_resize(NULL, (size_t)(rows * width * channels))};
    if (!image->pixels)
        return twi_fail_memory(error, "decoding an image");
    for (int64_t y = 0; y < rows; y++) /* the lowest row comes first, unless the height is negative */
        copy_row(file + begins + row * (height < 0 ? y : rows - 1 - y), image->pixels + y * width * channels, width,
                 channels);
    return TW_OK;
}
