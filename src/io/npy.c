/* npy.c - NumPy's files of one array: a header that is a Python dictionary in text, and the values.
 *
 *     \x93NUMPY  version (2 bytes)  length of the header (2 bytes; from version 2 on, 4)
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      filled up with blanks, a newline at the end
 *     values */
#include "base/file.h"
#include "base/little_endian.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tower/io.h>

#define MAGIC "\x93NUMPY"
enum { MAGIC_SIZE = 6, ALIGNMENT = 64 };

static const struct {
    const char *descr; /* without the order of bytes */
    tw_dtype dtype;
} types[] = {
    {"f4", TW_FLOAT32}, {"f8", TW_FLOAT64}, {"f2", TW_FLOAT16},   {"i1", TW_INT8},        {"i2", TW_INT16},
    {"i4", TW_INT32},   {"i8", TW_INT64},   {"u1", TW_UINT8},     {"u2", TW_UINT16},      {"u4", TW_UINT32},
    {"u8", TW_UINT64},  {"b1", TW_BOOL},    {"c8", TW_COMPLEX64}, {"c16", TW_COMPLEX128},
};
enum { TYPES = sizeof types / sizeof *types };

typedef struct header {
    tw_dtype dtype;
    tw_shape shape;
    bool big_endian, columns_first;
} header;

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* What stands behind a key of the dictionary; NULL if it is not there. */
static const char *find_value(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    at = at ? at + strlen(key) : NULL;
    while (at && (*at == '\'' || *at == '"' || *at == ':' || *at == ' '))
        at++;
    return at;
}

static tw_status parse_shape(const char *text, tw_shape *shape, tw_error *error)
{
    shape->rank = 0;
    for (text++; *text && *text != ')';) {
        char *end;
        long long dim = strtoll(text, &end, 10);
        if (end == text || dim < 0)
            return twi_fail(error, TW_DATA_LOSS, "its shape is not one");
        if (shape->rank == TW_MAX_RANK)
            return twi_fail(error, TW_UNIMPLEMENTED, "it has more than %d dimensions", TW_MAX_RANK);
        shape->dims[shape->rank++] = dim;
        text = end + strspn(end, ", ");
    }
    return TW_OK;
}

static tw_status parse_header(const char *text, header *h, tw_error *error)
{
    const char *descr = find_value(text, "descr"), *order = find_value(text, "fortran_order"),
               *shape = find_value(text, "shape");
    if (!descr || !order || !shape || *shape != '(')
        return twi_fail(error, TW_DATA_LOSS, "its header is not one of an array");
    int length = (int)strcspn(descr, "'\"");
    h->big_endian = *descr == '>';
    h->columns_first = *order == 'T';
    for (int i = 0; i < TYPES; i++)
        if (length == 1 + (int)strlen(types[i].descr) && strncmp(descr + 1, types[i].descr, (size_t)length - 1) == 0)
            h->dtype = types[i].dtype;
    if (h->dtype == TW_INVALID_DTYPE)
        return twi_fail(error, TW_UNIMPLEMENTED, "it holds '%.*s'; numbers and bools can be read", length, descr);
    return parse_shape(shape, &h->shape, error);
}

/* The text of the header, and where the values begin. */
static tw_status find_header(const char *bytes, size_t size, char **text, size_t *values, tw_error *error)
{
    if (size < 12 || memcmp(bytes, MAGIC, MAGIC_SIZE) != 0)
        return twi_fail(error, TW_DATA_LOSS, "it is not a .npy file");
    size_t start = bytes[MAGIC_SIZE] == 1 ? 10 : 12;
    size_t length = start == 10 ? (twi_get32(bytes + 8) & 0xFFFF) : twi_get32(bytes + 8);
    if (length > size - start)
        return twi_fail(error, TW_DATA_LOSS, "it is cut short");
    *text = twi_resize(NULL, length + 1);
    if (!*text)
        return twi_fail_memory(error, "reading an array");
    memcpy(*text, bytes + start, length);
    (*text)[length] = 0;
    *values = start + length;
    return TW_OK;
}

/* The place in a file whose first dimension runs fastest of the element that comes i-th in row-major order. */
static size_t place_of(tw_shape shape, size_t i)
{
    size_t place = 0;
    for (int d = 0; d < shape.rank; d++) {
        size_t inner = 1, stride = 1;
        for (int k = d + 1; k < shape.rank; k++)
            inner *= (size_t)shape.dims[k];
        for (int k = 0; k < d; k++)
            stride *= (size_t)shape.dims[k];
        place += i / inner % (size_t)shape.dims[d] * stride;
    }
    return place;
}

static void copy_values(const header *h, const char *from, tw_tensor *tensor)
{
    size_t bytes = tw_dtype_size(h->dtype), count = (size_t)tw_tensor_elements(tensor);
    size_t part = tw_dtype_is_complex(h->dtype) ? bytes / 2 : bytes; /* whose bytes are in order */
    char *to = tw_tensor_data(tensor);
    if (!h->big_endian && !h->columns_first) {
        memcpy(to, from, bytes * count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const char *value = from + bytes * (h->columns_first ? place_of(h->shape, i) : i);
        for (size_t b = 0; b < bytes; b++)
            to[i * bytes + b] = value[h->big_endian ? b / part * part + part - 1 - b % part : b];
    }
}

static tw_status read_array(const char *bytes, size_t size, tw_tensor **tensor, tw_error *error)
{
    char *text = NULL;
    size_t values = 0;
    header h = {.dtype = TW_INVALID_DTYPE};
    tw_tensor *made = NULL;
    tw_status status;
    TWI_TRY(find_header(bytes, size, &text, &values, error));
    TWI_TRY(parse_header(text, &h, error));
    int64_t count = tw_shape_elements(h.shape);
    if (count < 0 || (uint64_t)count > (size - values) / tw_dtype_size(h.dtype))
        TWI_LEAVE(twi_fail(error, TW_DATA_LOSS, "it is cut short: %zu bytes of values", size - values));
    made = tw_tensor_create(h.dtype, h.shape);
    if (!made)
        TWI_LEAVE(twi_fail_memory(error, "reading an array"));
    copy_values(&h, bytes + values, made);
    *tensor = made;
done:
    twi_free(text);
    return status;
}

tw_status tw_tensor_read_npy(const char *path, tw_tensor **tensor, tw_error *error)
{
    TWI_NEED(path, "path", error);
    TWI_NEED(tensor, "tensor", error);
    char *bytes;
    size_t size;
    tw_status status = twi_file_read_any(path, PTRDIFF_MAX, &bytes, &size, error);
    if (status != TW_OK)
        return status;
    tw_error found = {0};
    status = read_array(bytes, size, tensor, &found);
    twi_free(bytes);
    return status == TW_OK ? TW_OK : twi_fail(error, status, "'%s': %s", path, found.message);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void write_header(twi_text *file, const char *descr, tw_shape shape)
{
    twi_text text = {0};
    twi_text_printf(&text, "{'descr': '%s%s', 'fortran_order': False, 'shape': (", strcmp(descr + 1, "1") == 0 ? "|" : "<", descr);
    for (int i = 0; i < shape.rank; i++)
        twi_text_printf(&text, "%lld,%s", (long long)shape.dims[i], i + 1 < shape.rank ? " " : "");
    twi_text_printf(&text, "), }");
    size_t before = MAGIC_SIZE + 4, length = (before + text.size + ALIGNMENT) / ALIGNMENT * ALIGNMENT - before;
    twi_text_append(file, MAGIC "\1", MAGIC_SIZE + 2); /* version 1.0: the text's own zero ends it */
    twi_text_append(file, (char[]){(char)length, (char)(length >> 8)}, 2);
    twi_text_printf(file, "%-*s\n", (int)length - 1, twi_text_string(&text));
    file->failed |= text.failed;
    twi_text_free(&text);
}

tw_status tw_tensor_write_npy(const tw_tensor *tensor, const char *path, tw_error *error)
{
    TWI_NEED(tensor, "tensor", error);
    TWI_NEED(path, "path", error);
    twi_text file = {0};
    tw_dtype dtype = tw_tensor_dtype(tensor);
    tw_status status = TW_UNIMPLEMENTED;
    for (int i = 0; i < TYPES && status != TW_OK; i++) {
        if (types[i].dtype != dtype)
            continue;
        status = TW_OK;
        write_header(&file, types[i].descr, tw_tensor_shape(tensor));
    }
    if (status != TW_OK)
        return twi_fail(error, status, "'%s': NumPy has no type %s", path, tw_dtype_name(dtype));
    twi_text_append(&file, tw_tensor_data(tensor), tw_tensor_bytes(tensor));
    status = file.failed ? twi_fail_memory(error, "writing an array")
                         : twi_file_replace(path, twi_text_string(&file), file.size, error);
    twi_text_free(&file);
    return status;
}
