/* image.h - pictures as files have them: decoding and encoding JPEG and PNG, decoding BMP and GIF, and making them as
 * large as they are wanted. Everything read is untrusted: sizes are checked before memory is taken. Never here:
 * tensors, labels. */
#ifndef TWI_IMAGE_H
#define TWI_IMAGE_H

#include <stddef.h>
#include <stdint.h>
#include <tower/status.h>

/* A file of a few bytes may unpack to gigabytes: decoding takes no more than so many bytes, and so many for each of the
 * file's. */
enum { TWI_IMAGE_MOST_SIDE = 16384, TWI_IMAGE_MOST_PIXELS = 100000000, TWI_IMAGE_FREE_BYTES = 48 << 20,
       TWI_IMAGE_BYTES_A_BYTE = 7 };

typedef struct twi_image {
    int height, width, channels;
    uint8_t *pixels; /* [height, width, channels] */
    bool printed;    /* of four inks, made RGB */
} twi_image;

/* How bright a colour is, as JPEG has it. */
static inline uint8_t twi_image_grey(int red, int green, int blue)
{
    return (uint8_t)((299 * red + 587 * green + 114 * blue + 500) / 1000);
}

/* Whether the bytes begin as a JPEG or a PNG does. */
bool twi_image_is_one(const void *bytes, size_t size);

/* Decodes a JPEG or a PNG. channels: 1 (grey), 3 (RGB) or 4 (RGBA); 0: as many as the file has. What is see-through
 * lies on white unless there are 4. A JPEG of which only so small a side is needed (0: all of it) may come out smaller,
 * but no smaller than that. `name` is what errors call it. TW_DATA_LOSS: it is damaged or cut short;
 * TW_INVALID_ARGUMENT: it is neither, or larger than anything that is meant. Free it. */
tw_status twi_image_decode(const void *bytes, size_t size, int channels, int side, const char *name, twi_image *image,
                           tw_error *error);
/* What else may be wanted of a JPEG; zeros are what twi_image_decode() does. */
typedef struct twi_image_wanted {
    int channels, side;    /* as twi_image_decode() has them */
    int ratio;             /* 2, 4, 8: of that part of its size */
    bool fast;             /* the faster, coarser transform, which TensorFlow takes unless it is told otherwise */
    bool plain_colours;    /* colours stand for several pixels without going over into each other */
    bool printed;          /* one for printing (CMYK) is made RGB, not refused */
    const int32_t *window; /* a window alone: its first row, its first column, height, width; NULL: all of it */
} twi_image_wanted;
tw_status twi_image_decode_as(const void *bytes, size_t size, const twi_image_wanted *wanted, const char *name,
                              twi_image *image, tw_error *error);
/* A BMP, in the channels that it has: 1, 3 or 4. */
tw_status twi_image_decode_bmp(const void *bytes, size_t size, const char *name, twi_image *image, tw_error *error);
/* A PNG of words of 16 bits, in the channels that it has: 1, 2 (grey and alpha), 3 or 4; pixels are words. */
tw_status twi_image_decode_png_words(const void *bytes, size_t size, const char *name, twi_image *image,
                                     tw_error *error);
/* All frames of a GIF, RGB, as large as the largest: pixels [*frames, height, width, 3]. */
tw_status twi_image_decode_gif(const void *bytes, size_t size, const char *name, int *frames, twi_image *image,
                               tw_error *error);
/* As twi_image_decode(), of a file. */
tw_status twi_image_read(const char *path, int channels, int side, twi_image *image, tw_error *error);
void twi_image_free(twi_image *image);

/* Encodes pixels [height, width, channels] as a PNG (1 grey, 2 grey and alpha, 3 RGB, 4 RGBA) of 8 bits a number, or of
 * words of 16, compressed by zlib's level 0 to 9, or its own choice (-1), or as a JPEG (1 or 3) of a quality from 1 to
 * 100. *bytes is yours: twi_free(). */
tw_status twi_image_encode_png(const twi_image *image, int bits, int compression, char **bytes, size_t *size,
                               tw_error *error);
typedef struct twi_jpeg_options {
    int quality;
    bool progressive, optimized, full_colours; /* full_colours: colours as fine as brightness */
    bool by_centimetre;                        /* the unit of density, else an inch */
    int x_density, y_density;
} twi_jpeg_options;
tw_status twi_image_encode_jpeg(const twi_image *image, const twi_jpeg_options *options, char **bytes, size_t *size,
                                tw_error *error);

/* The middle of the image, as much of it as has the wanted proportions, in the wanted size: pixels [height, width,
 * channels]. Smaller sides are means over what they stand for, larger ones lie on straight lines between neighbours. */
tw_status twi_image_fit(const twi_image *image, int height, int width, uint8_t *pixels, tw_error *error);

#endif
