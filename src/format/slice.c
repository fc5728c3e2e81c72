/* slice.c - see slice.h. */
#include "format/slice.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static tw_status fail(const char *text, tw_error *error)
{
    return twi_fail(error, TW_INVALID_ARGUMENT,
                    "'%s' does not say which part of a tensor is meant, as '8 3 0,4:-' does", text);
}

static bool take_number(const char **at, int64_t *number)
{
    char *end;
    *number = strtoll(*at, &end, 10);
    bool good = end != *at && **at >= '0'; /* neither a blank nor a sign, which come before the digits */
    *at = end;
    return good;
}

/* "0,500" or "-" of one dimension. */
static bool take_extent(const char **at, twi_slice *slice, int i)
{
    slice->start[i] = 0;
    slice->length[i] = slice->full.dims[i];
    slice->all[i] = **at == '-';
    if (slice->all[i]) {
        ++*at;
        return true;
    }
    if (!take_number(at, &slice->start[i]) || *(*at)++ != ',' || !take_number(at, &slice->length[i]))
        return false;
    return slice->start[i] <= slice->full.dims[i] && slice->length[i] <= slice->full.dims[i] - slice->start[i];
}

tw_status twi_slice_parse(const char *text, twi_slice *slice, tw_error *error)
{
    const char *at = text, *extents = strrchr(text, ' ');
    slice->full = TW_SCALAR;
    while (extents && at < extents) {
        if (slice->full.rank == TW_MAX_RANK || !take_number(&at, &slice->full.dims[slice->full.rank++]) || *at++ != ' ')
            return fail(text, error);
    }
    if (!extents || slice->full.rank == 0 || tw_shape_elements(slice->full) < 0)
        return fail(text, error);
    for (int i = 0; i < slice->full.rank; i++)
        if (!take_extent(&at, slice, i) || *at++ != (i + 1 < slice->full.rank ? ':' : 0))
            return fail(text, error);
    return TW_OK;
}

twi_slice twi_slice_whole(tw_shape full)
{
    twi_slice slice = {.full = full};
    memcpy(slice.length, full.dims, sizeof slice.length);
    memset(slice.all, true, sizeof slice.all);
    return slice;
}

bool twi_slice_from_proto(const Twi__TensorSliceProto *from, tw_shape full, twi_slice *slice)
{
    *slice = twi_slice_whole(full);
    for (size_t k = 0; from && k < from->n_extent && k < (size_t)full.rank; k++) {
        const Twi__TensorSliceProto__Extent *extent = from->extent[k];
        if (extent->has_length_case != TWI__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH)
            continue;
        slice->all[k] = false;
        slice->start[k] = extent->start;
        slice->length[k] = extent->length;
        if (extent->start < 0 || extent->length < 0 || extent->start > full.dims[k] ||
            extent->length > full.dims[k] - extent->start)
            return false;
    }
    return true;
}

bool twi_slice_is_whole(const twi_slice *slice)
{
    for (int i = 0; i < slice->full.rank; i++)
        if (slice->length[i] != slice->full.dims[i])
            return false;
    return true;
}

tw_shape twi_slice_shape(const twi_slice *slice)
{
    tw_shape shape = {.rank = slice->full.rank};
    memcpy(shape.dims, slice->length, sizeof shape.dims);
    return shape;
}

void twi_slice_print(const twi_slice *slice, twi_text *text)
{
    for (int i = 0; i < slice->full.rank; i++)
        twi_text_printf(text, "%lld ", (long long)slice->full.dims[i]);
    for (int i = 0; i < slice->full.rank; i++) {
        const char *end = i + 1 < slice->full.rank ? ":" : "";
        if (slice->all[i])
            twi_text_printf(text, "-%s", end);
        else
            twi_text_printf(text, "%lld,%lld%s", (long long)slice->start[i], (long long)slice->length[i], end);
    }
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* Big-endian without leading zeros, behind the number of its bytes. */
static void append_number(twi_text *key, uint64_t value)
{
    unsigned char bytes[9];
    int length = 0;
    for (uint64_t rest = value; rest; rest >>= 8)
        length++;
    bytes[0] = (unsigned char)length;
    for (int i = 0; i < length; i++)
        bytes[1 + i] = (unsigned char)(value >> 8 * (length - 1 - i));
    twi_text_append(key, bytes, (size_t)length + 1);
}

/* A signed number whose first bits are as many ones as it has bytes, turned over if it is negative: with n bytes 7n - 1
 * bits and the sign fit. */
static void append_signed(twi_text *key, int64_t value)
{
    unsigned char bytes[10];
    uint64_t magnitude = value < 0 ? ~(uint64_t)value : (uint64_t)value;
    int length = 1;
    while (length < 10 && magnitude >> (7 * length - 1))
        length++;
    for (int i = 0; i < length; i++) {
        int shift = 8 * (length - 1 - i);
        bytes[i] = (unsigned char)(shift < 64 ? magnitude >> shift : 0);
    }
    bytes[0] |= (unsigned char)(0xFF00 >> (length < 8 ? length : 8));
    if (length > 8)
        bytes[1] |= (unsigned char)(length == 9 ? 0x80 : 0xC0);
    for (int i = 0; i < length && value < 0; i++)
        bytes[i] = (unsigned char)~bytes[i];
    twi_text_append(key, bytes, (size_t)length);
}

/* Zeros and 0xFF are marked, so that the two bytes at its end are found nowhere in it. */
static void append_name(twi_text *key, const char *name)
{
    for (; *name; name++) {
        twi_text_append(key, name, 1);
        if (*(const unsigned char *)name == 0xFF)
            twi_text_append(key, "\0", 1);
    }
    twi_text_append(key, "\0\1", 2);
}

void twi_slice_key(const char *name, const twi_slice *slice, twi_text *key)
{
    append_number(key, 0);
    append_name(key, name);
    append_number(key, (uint64_t)slice->full.rank);
    for (int i = 0; i < slice->full.rank; i++) {
        append_signed(key, slice->start[i]);
        append_signed(key, slice->all[i] ? -1 : slice->length[i]);
    }
}

/* ---- copying ----------------------------------------------------------------------------------------------------- */

/* Where an element of the whole tensor lies in a part. */
static size_t place_in(const twi_slice *slice, const int64_t at[TW_MAX_RANK])
{
    size_t place = 0;
    for (int i = 0; i < slice->full.rank; i++)
        place = place * (size_t)slice->length[i] + (size_t)(at[i] - slice->start[i]);
    return place;
}

int64_t twi_slice_copy(const twi_slice *from, const void *source, const twi_slice *to, void *target, size_t bytes)
{
    int rank = to->full.rank, last = rank - 1;
    int64_t start[TW_MAX_RANK] = {0}, end[TW_MAX_RANK] = {0}, at[TW_MAX_RANK] = {0}, copied = 0;
    for (int i = 0; i < rank; i++) {
        int64_t ends[2] = {from->start[i] + from->length[i], to->start[i] + to->length[i]};
        at[i] = start[i] = from->start[i] > to->start[i] ? from->start[i] : to->start[i];
        end[i] = ends[0] < ends[1] ? ends[0] : ends[1];
        if (start[i] >= end[i])
            return 0;
    }
    int64_t row = end[last] - start[last];
    for (int i = last; i >= 0;) { /* a row at a time, counting the dimensions before it up */
        memcpy((char *)target + place_in(to, at) * bytes, (const char *)source + place_in(from, at) * bytes,
               (size_t)row * bytes);
        copied += row;
        for (i = last - 1; i >= 0 && ++at[i] == end[i]; i--)
            at[i] = start[i];
    }
    return copied;
}
