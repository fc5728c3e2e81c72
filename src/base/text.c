/* text.c - see text.h. */
#include "base/text.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool make_room(twi_text *text, size_t more)
{
    if (text->failed)
        return false;
    if (text->capacity - text->size > more)
        return true;
    size_t capacity = text->capacity ? text->capacity * 2 : 64;
    if (capacity < text->size + more + 1)
        capacity = text->size + more + 1;
    char *data = twi_resize(text->data, capacity);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void twi_text_append(twi_text *text, const void *bytes, size_t size)
{
    if (!make_room(text, size))
        return;
    if (size)
        memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = 0;
}

void twi_text_printf(twi_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || !make_room(text, (size_t)length))
        return;
    va_start(arguments, format);
    vsnprintf(text->data + text->size, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->size += (size_t)length;
}

const char *twi_text_string(const twi_text *text)
{
    return text->data ? text->data : "";
}

void twi_text_free(twi_text *text)
{
    twi_free(text->data);
    *text = (twi_text){0};
}
