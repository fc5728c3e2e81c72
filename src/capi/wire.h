/* wire.h - protobuf's messages as they lie on the wire: writing them field by field, and reading them so. TensorFlow's
 * C API takes and gives serialized messages, and a few fields of them are all that is needed here. */
#ifndef CAPI_WIRE_H
#define CAPI_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tower/language.h>

/* Bytes that grow. All zeros is an empty one; when memory ran out `failed` is set, and stays. */
typedef struct wire {
    uint8_t *data;
    size_t size, room;
    bool failed;
} wire;

void wire_free(wire *w);
void wire_append(wire *w, const void *data, size_t size);
void wire_int(wire *w, int field, uint64_t value); /* int32, int64, bool, enum; zeros too */
void wire_float(wire *w, int field, float value);
void wire_double(wire *w, int field, double value);
void wire_bytes(wire *w, int field, const void *data, size_t size);
void wire_text(wire *w, int field, const char *text);
void wire_printf(wire *w, int field, const char *format, ...) TW_PRINTF(3, 4);
void wire_message(wire *w, int field, wire *message); /* which is freed */
void wire_packed(wire *w, uint64_t value);            /* a number without a field: an item of a packed list */

/* What is left to be read. */
typedef struct wire_reader {
    const uint8_t *at, *end;
    bool wrong; /* it is not a message */
} wire_reader;

typedef struct wire_field {
    int number, type; /* 0: `value`; 1, 5: `value` has the 64 or 32 bits; 2: data[size] */
    uint64_t value;
    const uint8_t *data;
    size_t size;
} wire_field;

wire_reader wire_read(const void *data, size_t size);
bool wire_next(wire_reader *reader, wire_field *field);      /* false: that was all, or reader->wrong */
bool wire_next_packed(wire_reader *reader, uint64_t *value); /* of the bytes of a packed list */
bool wire_is_message(const void *data, size_t size);         /* whether fields are all that it has */
bool wire_is_text(const wire_field *field, const char *text);

#endif
