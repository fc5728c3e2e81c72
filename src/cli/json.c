/* json.c - see json.h. */
#include "json.h"

#include <inttypes.h>
#include <math.h>

/* Bytes of the UTF-8 character at text, 0 if there is none (the shortest form of a code point that exists). */
static int utf8_length(const unsigned char *text)
{
    unsigned c = text[0];
    int length = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    for (int i = 1; i < length; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    if ((c == 0xE0 && text[1] < 0xA0) || (c == 0xED && text[1] >= 0xA0) || (c == 0xF0 && text[1] < 0x90) ||
        (c == 0xF4 && text[1] >= 0x90))
        return 0;
    return length;
}

static void write_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        int length = utf8_length(p);
        if (length == 0)
            fputs("\\ufffd", file);
        else if (*p < 0x20 || *p == 0x7F)
            fprintf(file, "\\u%04x", *p);
        else if (*p == '"' || *p == '\\')
            fprintf(file, "\\%c", *p);
        else
            fwrite(p, 1, (size_t)length, file);
        p += length ? length : 1;
    }
    fputc('"', file);
}

/* What stands before a value: a comma after an earlier one, and the key. */
static void start_value(json *out, const char *key)
{
    if (out->depth > 0) {
        if (out->has_members[out->depth - 1])
            fputc(',', out->file);
        out->has_members[out->depth - 1] = true;
    }
    if (key) {
        write_string(out->file, key);
        fputc(':', out->file);
    }
}

void json_begin(json *out, const char *key, char bracket)
{
    start_value(out, key);
    fputc(bracket, out->file);
    out->closing[out->depth] = bracket == '{' ? '}' : ']';
    out->has_members[out->depth++] = false;
}

void json_end(json *out)
{
    fputc(out->closing[--out->depth], out->file);
    if (out->depth == 0)
        fputc('\n', out->file);
}

void json_text(json *out, const char *key, const char *text)
{
    start_value(out, key);
    if (text)
        write_string(out->file, text);
    else
        fputs("null", out->file);
}

void json_integer(json *out, const char *key, int64_t value)
{
    start_value(out, key);
    fprintf(out->file, "%" PRId64, value);
}

void json_number(json *out, const char *key, double value)
{
    start_value(out, key);
    if (isfinite(value))
        fprintf(out->file, "%.9g", value);
    else
        fputs("null", out->file);
}

void json_flag(json *out, const char *key, bool value)
{
    start_value(out, key);
    fputs(value ? "true" : "false", out->file);
}
