/* gif.c - GIF, all of its frames: each is drawn over the one before; see image.h.
 *
 * A file is a header, perhaps a palette, and blocks: extensions, of which only the one that names a colour to see
 * through is of interest, and frames, whose pixels are packed by Lempel, Ziv and Welch's method in pieces of up to 255
 * bytes. */
#include "image/image.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>

enum { MOST_CODES = 4096, HEADER = 13, FRAME = 10 };

typedef struct reader {
    const uint8_t *at, *end;
    const uint8_t *palette; /* of all frames; NULL: each has its own */
    int colours, clear;     /* clear: the colour to see through in the next frame; -1: none */
    int frames, height, width;
} reader;

typedef struct frame {
    int left, top, width, height, colours, clear;
    bool interlaced;
    const uint8_t *palette;
} frame;

static int number(const uint8_t *at)
{
    return at[0] | at[1] << 8;
}

static int64_t left_of(const reader *r)
{
    return r->end - r->at;
}

static bool begin(reader *r, const uint8_t *bytes, size_t size)
{
    *r = (reader){.at = bytes, .end = bytes + size, .clear = -1};
    if (size < HEADER || memcmp(bytes, "GIF8", 4) != 0 || bytes[5] != 'a')
        return false;
    r->at += HEADER;
    if (bytes[10] & 0x80) {
        r->colours = 2 << (bytes[10] & 7);
        r->palette = r->at;
        if (left_of(r) < 3 * r->colours)
            return false;
        r->at += 3 * r->colours;
    }
    return true;
}

/* Past pieces, each of a length and as many bytes, up to one of length 0. */
static bool skip_pieces(reader *r)
{
    while (left_of(r) > 0) {
        int size = *r->at++;
        if (size == 0)
            return true;
        if (left_of(r) < size)
            return false;
        r->at += size;
    }
    return false;
}

static bool read_extension(reader *r)
{
    enum { GRAPHIC_CONTROL = 0xf9 };
    if (left_of(r) < 1)
        return false;
    if (*r->at++ == GRAPHIC_CONTROL && left_of(r) >= 5 && r->at[0] >= 4)
        r->clear = r->at[1] & 1 ? r->at[4] : -1;
    return skip_pieces(r);
}

static bool read_frame(reader *r, frame *f)
{
    if (left_of(r) < FRAME)
        return false;
    const uint8_t *at = r->at;
    *f = (frame){number(at), number(at + 2), number(at + 4), number(at + 6),
                 r->colours, r->clear,       at[8] & 0x40,   r->palette};
    r->at += FRAME - 1;
    if (at[8] & 0x80) {
        f->colours = 2 << (at[8] & 7);
        f->palette = r->at;
        if (left_of(r) < 3 * f->colours + 1)
            return false;
        r->at += 3 * f->colours;
    }
    r->clear = -1;
    return f->width > 0 && f->height > 0;
}

/* Leads to the next frame's packed pixels: 1; 0: there is none; -1: the file is damaged. */
static int next_frame(reader *r, frame *f)
{
    enum { EXTENSION = 0x21, IMAGE = 0x2c, TRAILER = 0x3b };
    while (left_of(r) > 0) {
        int kind = *r->at++;
        if (kind == TRAILER)
            return 0;
        if (kind == IMAGE)
            return read_frame(r, f) ? 1 : -1;
        if (kind != EXTENSION || !read_extension(r))
            return -1;
    }
    return 0;
}

/* ---- pixels ------------------------------------------------------------------------------------------------------ */

/* A code stands for what its prefix stands for, and one colour more. */
typedef struct codes {
    int16_t prefix[MOST_CODES];
    uint8_t last[MOST_CODES], stack[MOST_CODES];
} codes;

/* Bits from the pieces, the lowest first. That the pieces end within the file has been seen before. */
typedef struct bits {
    uint32_t held;
    int count, piece; /* bytes left in the piece */
} bits;

static int next_code(reader *r, bits *b, int width)
{
    for (; b->count < width; b->count += 8) {
        if (b->piece == 0 && (b->piece = *r->at++) == 0)
            return -1;
        b->held |= (uint32_t)*r->at++ << b->count;
        b->piece--;
    }
    int code = (int)(b->held & ((1u << width) - 1));
    b->held >>= width;
    b->count -= width;
    return code;
}

/* Unpacks count colours, and goes past the pieces. */
static bool unpack(reader *r, codes *c, uint8_t *colours, int64_t count)
{
    if (r->at[0] < 1 || r->at[0] > 8)
        return false;
    int least = *r->at++, clear = 1 << least, next = clear + 2, width = least + 1, before = -1, first = 0;
    bits b = {0};
    for (int64_t done = 0; done < count;) {
        int code = next_code(r, &b, width), depth = 0, at = code;
        if (code < 0 || code == clear + 1 || code > next || (code == next && before < 0))
            return false;
        if (code == clear) {
            next = clear + 2;
            width = least + 1;
            before = -1;
            continue;
        }
        if (code == next) { /* what came before, and its own first colour again */
            c->stack[depth++] = (uint8_t)first;
            at = before;
        }
        for (; at > clear; at = c->prefix[at])
            c->stack[depth++] = c->last[at];
        c->stack[depth++] = (uint8_t)(first = at);
        while (depth > 0 && done < count)
            colours[done++] = c->stack[--depth];
        if (before >= 0 && next < MOST_CODES) {
            c->prefix[next] = (int16_t)before;
            c->last[next++] = (uint8_t)first;
            width += next == 1 << width && width < 12;
        }
        before = code;
    }
    r->at += b.piece;
    return skip_pieces(r);
}

/* Which row of the image row k of the file is. */
static int row_of(const frame *f, int k)
{
    static const int starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    int y = k;
    for (int pass = 0; f->interlaced && k >= 0; pass++) {
        y = starts[pass] + k * steps[pass];
        k -= (f->height - starts[pass] + steps[pass] - 1) / steps[pass];
    }
    return y;
}

/* Onto what the frame before has left, or black. */
static bool draw(const frame *f, const uint8_t *colours, const twi_image *image, uint8_t *pixels)
{
    for (int k = 0; k < f->height; k++) {
        int y = f->top + row_of(f, k);
        for (int i = 0; i < f->width && y < image->height && f->left + i < image->width; i++) {
            int colour = colours[(int64_t)k * f->width + i];
            if (colour == f->clear)
                continue;
            if (colour >= f->colours)
                return false;
            memcpy(pixels + 3 * ((int64_t)y * image->width + f->left + i), f->palette + 3 * colour, 3);
        }
    }
    return true;
}

static bool draw_all(reader *r, codes *c, uint8_t *colours, const twi_image *image)
{
    size_t bytes = 3 * (size_t)image->height * (size_t)image->width;
    frame f;
    for (uint8_t *to = image->pixels; next_frame(r, &f) > 0; to += bytes) {
        if (to == image->pixels)
            memset(to, 0, bytes);
        else
            memcpy(to, to - bytes, bytes);
        if (!unpack(r, c, colours, (int64_t)f.width * f.height) || !draw(&f, colours, image, to))
            return false;
    }
    return true;
}

tw_status twi_image_decode_gif(const void *bytes, size_t size, const char *name, int *frames, twi_image *image,
                               tw_error *error)
{
    reader start, r;
    frame f;
    int read = -1;
    *image = (twi_image){.channels = 3};
    *frames = 0;
    bool fits = begin(&start, bytes, size);
    for (r = start; fits && (read = next_frame(&r, &f)) > 0; ++*frames) {
        image->height = f.height > image->height ? f.height : image->height;
        image->width = f.width > image->width ? f.width : image->width;
        r.at++; /* the least width of codes */
        if (!f.palette || !skip_pieces(&r))
            read = -1;
        if (read < 0)
            break;
    }
    int64_t pixels = (int64_t)image->height * image->width,
            most = TWI_IMAGE_FREE_BYTES + TWI_IMAGE_BYTES_A_BYTE * (int64_t)size;
    if (read < 0 || *frames < 1)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "'%s': Invalid GIF data (size %zu), of which %d frames could be read", name, size, *frames);
    if (image->height > TWI_IMAGE_MOST_SIDE || image->width > TWI_IMAGE_MOST_SIDE || pixels * 4 > most / *frames)
        return twi_fail(error, TW_INVALID_ARGUMENT, "'%s': %d frames of %d x %d are too much for a GIF of %zu bytes",
                        name, *frames, image->height, image->width, size);
    codes *c = twi_alloc(sizeof *c);
    uint8_t *colours = twi_resize(NULL, (size_t)pixels);
    image->pixels = twi_resize(NULL, (size_t)(pixels * 3 * *frames));
    tw_status status = TW_OK;
    if (!c || !colours || !image->pixels)
        status = twi_fail_memory(error, "decoding an image");
    else if (!draw_all(&start, c, colours, image))
        status = twi_fail(error, TW_INVALID_ARGUMENT, "'%s' is a damaged GIF", name);
    twi_free(c);
    twi_free(colours);
    if (status != TW_OK)
        twi_image_free(image);
    return status;
}
