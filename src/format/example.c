/* example.c - see example.h. The wire format is that of protocol buffers:
 *
 *     Example    1: Features                       Features  1: entries of a map, key 1, Feature 2
 *     Feature    1: bytes, 2: floats, 3: integers  each list  1: values, one by one or packed
 *     SequenceExample  1: Features, 2: FeatureLists     FeatureLists  1: entries of a map, key 1, FeatureList 2
 *     FeatureList      1: Features' values, one by one */
#include "format/example.h"

#include "format/wire.h"
#include "tensor/tensor.h"

#include <string.h>

twi_example twi_example_begin(const void *bytes, size_t size)
{
    const char *at = bytes ? bytes : "";
    return (twi_example){.at = at, .end = at + size, .number = 1};
}

twi_example twi_sequence_begin(const void *bytes, size_t size)
{
    twi_example e = twi_example_begin(bytes, size);
    e.number = 2;
    return e;
}

/* Of several lists the last counts. */
static bool read_feature(const char *at, const char *end, twi_feature *feature)
{
    static const tw_dtype types[] = {TW_INVALID_DTYPE, TW_STRING, TW_FLOAT32, TW_INT64};
    twi_field f;
    int read;
    while ((read = twi_next_field(&at, end, &f)) > 0)
        if (f.wire == TWI_BYTES && f.number >= 1 && f.number <= 3) {
            feature->dtype = types[f.number];
            feature->values = f.bytes;
            feature->end = f.bytes + f.size;
        }
    return read == 0;
}

/* Of a map; values and end become its value as it was written. */
static bool read_entry(const twi_field *entry, twi_feature *feature)
{
    const char *at = entry->bytes, *end = at + entry->size;
    twi_field f;
    int read;
    *feature = (twi_feature){.key = ""};
    while ((read = twi_next_field(&at, end, &f)) > 0) {
        if (f.wire == TWI_BYTES && f.number == 1) {
            feature->key = f.bytes;
            feature->key_size = f.size;
        } else if (f.wire == TWI_BYTES && f.number == 2) {
            feature->values = f.bytes;
            feature->end = f.bytes + f.size;
        }
    }
    return read == 0;
}

/* The next entry of the maps that the example has in its field. */
int twi_sequence_next(twi_example *e, twi_feature *feature)
{
    twi_field f;
    for (;;) {
        int read = e->feature ? twi_next_field(&e->feature, e->last, &f) : 0;
        if (read < 0)
            return -1;
        if (read > 0) {
            if (f.wire == TWI_BYTES && f.number == 1)
                return read_entry(&f, feature) ? 1 : -1;
            continue;
        }
        read = twi_next_field(&e->at, e->end, &f);
        if (read <= 0)
            return read;
        if (f.wire == TWI_BYTES && f.number == e->number) {
            e->feature = f.bytes;
            e->last = f.bytes + f.size;
        }
    }
}

/* What was written as a feature becomes its list. */
static bool open_feature(twi_feature *feature)
{
    const char *at = feature->values, *end = feature->end;
    feature->values = feature->end = NULL;
    return !at || read_feature(at, end, feature);
}

int twi_example_next(twi_example *e, twi_feature *feature)
{
    int read = twi_sequence_next(e, feature);
    return read <= 0 || open_feature(feature) ? read : -1;
}

int twi_list_next(const twi_feature *list, const char **at, twi_feature *feature)
{
    twi_field f;
    int read;
    while ((read = *at ? twi_next_field(at, list->end, &f) : 0) > 0)
        if (f.wire == TWI_BYTES && f.number == 1) {
            *feature = (twi_feature){.key = "", .values = f.bytes, .end = f.bytes + f.size};
            return open_feature(feature) ? 1 : -1;
        }
    return read;
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

/* Reads one list field, packed or not, and moves *to behind it; to NULL: counts only. -1: it cannot be read. */
static int64_t read_integers(const twi_field *f, int64_t **to)
{
    const char *at = f->bytes, *end = f->wire == TWI_BYTES ? at + f->size : at;
    int64_t count = 0;
    uint64_t value = f->value;
    if (f->wire == TWI_VARINT) {
        if (to)
            *(*to)++ = (int64_t)value;
        return 1;
    }
    for (; f->wire == TWI_BYTES && at < end; count++) {
        if (!twi_get_varint(&at, end, &value))
            return -1;
        if (to)
            *(*to)++ = (int64_t)value;
    }
    return f->wire == TWI_BYTES ? count : -1;
}

static int64_t read_floats(const twi_field *f, float **to)
{
    if ((f->wire != TWI_BYTES && f->wire != TWI_FIXED32) || f->size % 4 != 0)
        return -1;
    for (size_t i = 0; to && i < f->size; i += 4) {
        uint32_t bits = twi_get32(f->bytes + i);
        memcpy((*to)++, &bits, sizeof bits);
    }
    return (int64_t)(f->size / 4);
}

int64_t twi_feature_count(const twi_feature *feature)
{
    const char *at = feature->values;
    int64_t count = 0;
    twi_field f;
    int read = 0;
    while (feature->dtype != TW_INVALID_DTYPE && (read = twi_next_field(&at, feature->end, &f)) > 0) {
        int64_t more = f.number != 1                  ? 0
                       : feature->dtype == TW_INT64   ? read_integers(&f, NULL)
                       : feature->dtype == TW_FLOAT32 ? read_floats(&f, NULL)
                       : f.wire == TWI_BYTES              ? 1
                                                      : -1;
        if (more < 0)
            return -1;
        count += more;
    }
    return read < 0 ? -1 : count;
}

bool twi_feature_read(const twi_feature *feature, void *to)
{
    const char *at = feature->values;
    int64_t *integers = to;
    float *floats = to;
    tw_string *strings = to;
    bool fits = true;
    twi_field f;
    while (fits && feature->dtype != TW_INVALID_DTYPE && twi_next_field(&at, feature->end, &f) > 0) {
        if (f.number != 1)
            continue;
        if (feature->dtype == TW_INT64)
            read_integers(&f, &integers);
        else if (feature->dtype == TW_FLOAT32)
            read_floats(&f, &floats);
        else
            fits = twi_string_set(strings++, f.bytes, f.size);
    }
    return fits;
}
