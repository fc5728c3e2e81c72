/* inflate.c - see inflate.h. */
#include "base/inflate.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>
#include <zlib.h>

#define MOST ((size_t)1 << 32)
enum { LEAST = 65536, MOST_AT_ONCE = 1 << 20, WINDOW = 15, WITH_GZIP_HEAD = 16 };

const char *twi_packing(const char *kind)
{
    static const char *const kinds[] = {"", "GZIP", "ZLIB"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return kinds[i];
    return NULL;
}

typedef struct expansion {
    z_stream z;
    char *bytes;
    size_t used, capacity;
} expansion;

static tw_status make_room(expansion *x, const char *path, tw_error *error)
{
    size_t wanted = x->capacity ? 2 * x->capacity : LEAST;
    if (wanted > MOST)
        return twi_fail(error, TW_RESOURCE_EXHAUSTED, "'%s' would be more than 4 GiB when it is unpacked", path);
    char *larger = twi_resize(x->bytes, wanted);
    if (!larger)
        return twi_fail_memory(error, "unpacking a file");
    x->bytes = larger;
    x->capacity = wanted;
    return TW_OK;
}

/* zlib's memory is Tower's. */
static void *allocate(void *user, unsigned items, unsigned size)
{
    (void)user;
    return twi_alloc_array(items, size);
}

static void release(void *user, void *block)
{
    (void)user;
    twi_free(block);
}

/* zlib counts in 32 bits, files do not. */
static unsigned piece(size_t size)
{
    return (unsigned)(size < MOST_AT_ONCE ? size : MOST_AT_ONCE);
}

static tw_status expand(expansion *x, const char *path, const char *kind, const char *bytes, size_t size,
                        tw_error *error)
{
    size_t at = 0;
    int state = Z_STREAM_END; /* of a piece: between two */
    while (at < size || state != Z_STREAM_END) {
        if (x->used == x->capacity) {
            tw_status status = make_room(x, path, error);
            if (status != TW_OK)
                return status;
        }
        if (state == Z_STREAM_END)
            inflateReset(&x->z); /* which a stream that is there lets be done */
        unsigned in = piece(size - at), out = piece(x->capacity - x->used);
        x->z.next_in = (unsigned char *)bytes + at;
        x->z.avail_in = in;
        x->z.next_out = (unsigned char *)x->bytes + x->used;
        x->z.avail_out = out;
        state = inflate(&x->z, Z_NO_FLUSH);
        at += in - x->z.avail_in;
        x->used += out - x->z.avail_out;
        if (state == Z_BUF_ERROR || (state == Z_OK && at == size && x->z.avail_out))
            return twi_fail(error, TW_DATA_LOSS, "'%s' ends in the middle of what was packed by %s", path, kind);
        if (state == Z_MEM_ERROR)
            return twi_fail_memory(error, "unpacking a file");
        if (state != Z_OK && state != Z_STREAM_END)
            return twi_fail(error, TW_DATA_LOSS, "'%s' is not packed by %s at byte %zu: %s", path, kind, at,
                            x->z.msg ? x->z.msg : "a dictionary is missing");
    }
    return TW_OK;
}

tw_status twi_inflate(const char *name, const char *kind, const char *packed, size_t packed_size, char **bytes,
                      size_t *size, tw_error *error)
{
    expansion x = {.z = {.zalloc = allocate, .zfree = release}};
    *bytes = NULL;
    *size = 0;
    if (!twi_packing(kind) || !*kind)
        return twi_fail(error, TW_INVALID_ARGUMENT, "Unsupported compression type '%s', expected GZIP or ZLIB", kind);
    if (inflateInit2(&x.z, WINDOW + (strcmp(kind, "GZIP") == 0 ? WITH_GZIP_HEAD : 0)) != Z_OK)
        return twi_fail_memory(error, "unpacking a file");
    tw_status status = expand(&x, name, kind, packed, packed_size, error);
    inflateEnd(&x.z);
    if (status == TW_OK) {
        *bytes = x.bytes;
        *size = x.used;
    } else {
        twi_free(x.bytes);
    }
    return status;
}

tw_status twi_file_open_packed(const char *path, const char *kind, twi_file_reader **reader, tw_error *error)
{
    char *packed = NULL, *bytes;
    size_t packed_size = 0, size;
    *reader = NULL;
    if (twi_packing(kind) && !*kind)
        return twi_file_open(path, reader, error);
    tw_status status = twi_packing(kind) ? twi_file_read(path, PTRDIFF_MAX, &packed, &packed_size, error) : TW_OK;
    if (status != TW_OK)
        return status;
    status = twi_inflate(path, kind, packed, packed_size, &bytes, &size, error);
    twi_free(packed);
    return status == TW_OK ? twi_file_open_bytes(path, bytes, size, reader, error) : status;
}
