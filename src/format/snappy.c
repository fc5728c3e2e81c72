/* snappy.c - see snappy.h.
 *
 * A block is the expanded size as a varint, then elements. The low two bits of an element's first byte say what it is:
 *     0  literal: the upper six bits are its length - 1, or 60..63 for a length - 1 in the next 1..4 bytes
 *     1  copy of 4..11 bytes, offset of 11 bits: 3 in this byte, 8 in the next
 *     2  copy of 1..64 bytes, offset in the next 2 bytes
 *     3  copy of 1..64 bytes, offset in the next 4 bytes
 * An offset counts back from the end of what has been expanded; a copy may run into the bytes it makes. */
#include "format/snappy.h"

#include "base/memory.h"
#include "base/little_endian.h"

#include <stdbool.h>
#include <string.h>

#define MOST_EXPANSION 32 /* at best 3 bytes stand for 64: a larger claim is a lie, told to make us allocate */

static bool expand(const char *in, const char *end, char *out, size_t out_size)
{
    size_t made = 0;
    while (in < end) {
        unsigned tag = (uint8_t)*in++;
        unsigned more = tag & 3 ? (tag & 3) == 3 ? 4 : tag & 3 : tag >> 2 < 60 ? 0 : (tag >> 2) - 59;
        if ((size_t)(end - in) < more)
            return false;
        size_t number = 0, length = (tag >> 2) + 1;
        for (unsigned i = 0; i < more; i++)
            number |= (size_t)(uint8_t)in[i] << 8 * i;
        in += more;
        if ((tag & 3) == 0) {
            length = more ? number + 1 : length;
            if (length > (size_t)(end - in) || length > out_size - made)
                return false;
            memcpy(out + made, in, length);
            in += length;
            made += length;
            continue;
        }
        if ((tag & 3) == 1) {
            length = (tag >> 2 & 7) + 4;
            number |= (size_t)(tag >> 5) << 8;
        }
        if (number == 0 || number > made || length > out_size - made)
            return false;
        for (size_t i = 0; i < length; i++, made++)
            out[made] = out[made - number];
    }
    return made == out_size;
}

tw_status twi_snappy_expand(const char *bytes, size_t size, char **expanded, size_t *expanded_size)
{
    uint64_t out_size;
    const char *in = bytes, *end = bytes + size;
    if (!twi_get_varint(&in, end, &out_size) || out_size / MOST_EXPANSION > size)
        return TW_DATA_LOSS;
    char *out = twi_resize(NULL, (size_t)out_size);
    if (!out)
        return TW_RESOURCE_EXHAUSTED;
    if (!expand(in, end, out, (size_t)out_size)) {
        twi_free(out);
        return TW_DATA_LOSS;
    }
    *expanded = out;
    *expanded_size = (size_t)out_size;
    return TW_OK;
}
