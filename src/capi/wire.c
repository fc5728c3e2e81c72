/* wire.c - see wire.h.
 * Never here:  what any message means. */
#include "wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, BITS64 = 1, BLOCK = 2, BITS32 = 5, MOST_VARINT_BYTES = 10 };

void wire_free(wire *w)
{
    free(w->data);
    *w = (wire){0};
}

void wire_append(wire *w, const void *data, size_t size)
{
    if (w->failed || size == 0)
        return;
    if (size > w->room - w->size) {
        size_t room = w->room < 64 ? 64 : w->room * 2;
        while (room - w->size < size && room <= SIZE_MAX / 2)
            room *= 2;
        uint8_t *grown = room - w->size >= size ? realloc(w->data, room) : NULL;
        if (!grown) {
            w->failed = true;
            return;
        }
        w->data = grown;
        w->room = room;
    }
    memcpy(w->data + w->size, data, size);
    w->size += size;
}

void wire_packed(wire *w, uint64_t value)
{
    uint8_t bytes[MOST_VARINT_BYTES];
    size_t count = 0;
    do {
        bytes[count++] = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value);
    wire_append(w, bytes, count);
}

static void put_key(wire *w, int field, int type)
{
    wire_packed(w, (uint64_t)field << 3 | (uint64_t)type);
}

void wire_int(wire *w, int field, uint64_t value)
{
    put_key(w, field, VARINT);
    wire_packed(w, value);
}

void wire_float(wire *w, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint8_t bytes[] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16), (uint8_t)(bits >> 24)};
    put_key(w, field, BITS32);
    wire_append(w, bytes, sizeof bytes);
}

void wire_double(wire *w, int field, double value)
{
    uint8_t bytes[sizeof value];
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
    put_key(w, field, BITS64);
    wire_append(w, bytes, sizeof bytes);
}

void wire_bytes(wire *w, int field, const void *data, size_t size)
{
    put_key(w, field, BLOCK);
    wire_packed(w, size);
    wire_append(w, data, size);
}

void wire_text(wire *w, int field, const char *text)
{
    wire_bytes(w, field, text, strlen(text));
}

void wire_printf(wire *w, int field, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        w->failed = true;
    else
        wire_text(w, field, text);
    va_end(arguments);
    free(text);
}

void wire_message(wire *w, int field, wire *message)
{
    if (message->failed)
        w->failed = true;
    wire_bytes(w, field, message->data, message->size);
    wire_free(message);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

wire_reader wire_read(const void *data, size_t size)
{
    return (wire_reader){.at = data, .end = size ? (const uint8_t *)data + size : data};
}

bool wire_next_packed(wire_reader *r, uint64_t *value)
{
    *value = 0;
    if (r->wrong || r->at == r->end)
        return false;
    for (int i = 0; i < MOST_VARINT_BYTES && r->at < r->end; i++) {
        uint8_t byte = *r->at++;
        *value |= (uint64_t)(byte & 127) << (7 * i);
        if (!(byte & 128))
            return true;
    }
    r->wrong = true;
    return false;
}

static bool take_bits(wire_reader *r, int bytes, uint64_t *value)
{
    *value = 0;
    r->wrong = r->end - r->at < bytes;
    for (int i = 0; i < bytes && !r->wrong; i++)
        *value |= (uint64_t)*r->at++ << (8 * i);
    return !r->wrong;
}

bool wire_next(wire_reader *r, wire_field *field)
{
    uint64_t key;
    *field = (wire_field){0};
    if (!wire_next_packed(r, &key))
        return false;
    field->number = (int)(key >> 3 & 0x1fffffff);
    field->type = (int)(key & 7);
    r->wrong = field->number == 0;
    if (r->wrong)
        return false;
    switch (field->type) {
    case VARINT:
        r->wrong = !wire_next_packed(r, &field->value);
        return !r->wrong;
    case BITS64:
        return take_bits(r, 8, &field->value);
    case BITS32:
        return take_bits(r, 4, &field->value);
    case BLOCK:
        r->wrong = !wire_next_packed(r, &field->value) || field->value > (uint64_t)(r->end - r->at);
        if (r->wrong)
            return false;
        field->data = r->at;
        field->size = (size_t)field->value;
        r->at += field->size;
        return true;
    default:
        r->wrong = true;
        return false;
    }
}

bool wire_is_message(const void *data, size_t size)
{
    wire_field field;
    wire_reader r = wire_read(data, size);
    while (wire_next(&r, &field))
        ;
    return !r.wrong;
}

bool wire_is_text(const wire_field *field, const char *text)
{
    return field->type == BLOCK && field->size == strlen(text) && memcmp(field->data, text, field->size) == 0;
}
