/* json.c - see json.h. */
#include "json.h"

#include "command.h" /* complain */

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The shortest form of a code point that exists. */
size_t json_utf8_length(const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned c = p[0];
    size_t length = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    if (length > size)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    if ((c == 0xE0 && p[1] < 0xA0) || (c == 0xED && p[1] >= 0xA0) || (c == 0xF0 && p[1] < 0x90) ||
        (c == 0xF4 && p[1] >= 0x90))
        return 0;
    return length;
}

static void write_string(FILE *file, const char *text, size_t size)
{
    fputc('"', file);
    for (size_t i = 0; i < size;) {
        unsigned char c = (unsigned char)text[i];
        size_t length = json_utf8_length(text + i, size - i);
        if (length == 0)
            fputs("\\ufffd", file);
        else if (c < 0x20 || c == 0x7F)
            fprintf(file, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else
            fwrite(text + i, 1, length, file);
        i += length ? length : 1;
    }
    fputc('"', file);
}

static void start_line(json *out)
{
    if (out->indented)
        fprintf(out->file, "\n%*s", 2 * out->depth, "");
}

/* What stands before a value: a comma after an earlier one, and the key. */
static void start_value(json *out, const char *key)
{
    if (out->depth > 0) {
        if (out->has_members[out->depth - 1])
            fputc(',', out->file);
        out->has_members[out->depth - 1] = true;
        start_line(out);
    }
    if (key) {
        write_string(out->file, key, strlen(key));
        fputs(out->indented ? ": " : ":", out->file);
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
    if (out->has_members[--out->depth])
        start_line(out);
    fputc(out->closing[out->depth], out->file);
    if (out->depth == 0)
        fputc('\n', out->file);
}

void json_text(json *out, const char *key, const char *text)
{
    start_value(out, key);
    if (text)
        write_string(out->file, text, strlen(text));
    else
        fputs("null", out->file);
}

void json_integer(json *out, const char *key, int64_t value)
{
    start_value(out, key);
    fprintf(out->file, "%" PRId64, value);
}

void json_unsigned(json *out, const char *key, uint64_t value)
{
    start_value(out, key);
    fprintf(out->file, "%" PRIu64, value);
}

void json_number(json *out, const char *key, double value)
{
    start_value(out, key);
    if (isfinite(value))
        fprintf(out->file, "%.9g", value);
    else
        fputs("null", out->file);
}

void json_real(json *out, const char *key, double value, int digits)
{
    start_value(out, key);
    if (isfinite(value))
        fprintf(out->file, "%.*g", digits, value);
    else
        fputs(isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"", out->file);
}

void json_bytes(json *out, const char *key, const char *text, size_t size)
{
    start_value(out, key);
    write_string(out->file, text, size);
}

void json_flag(json *out, const char *key, bool value)
{
    start_value(out, key);
    fputs(value ? "true" : "false", out->file);
}

void json_copy(json *out, const char *key, const cJSON *value) /* NOLINT: as deep as the document */
{
    double number = cJSON_IsNumber(value) ? value->valuedouble : 0;
    if (cJSON_IsObject(value) || cJSON_IsArray(value)) {
        const cJSON *member;
        if (out->depth == JSON_DEPTH)
            return;
        json_begin(out, key, cJSON_IsObject(value) ? '{' : '[');
        cJSON_ArrayForEach(member, value)
            json_copy(out, cJSON_IsObject(value) ? member->string : NULL, member);
        json_end(out);
    } else if (cJSON_IsNumber(value) && number == floor(number) && fabs(number) < 9e15) {
        json_integer(out, key, (int64_t)number);
    } else if (cJSON_IsNumber(value)) {
        json_real(out, key, number, 17);
    } else if (cJSON_IsBool(value)) {
        json_flag(out, key, cJSON_IsTrue(value));
    } else {
        json_text(out, key, cJSON_GetStringValue(value));
    }
}

cJSON *json_read(const char *command, const char *path)
{
    enum { MOST_BYTES = 16 << 20 };
    struct stat about;
    if (stat(path, &about) == 0 && S_ISFIFO(about.st_mode)) { /* whoever opens it waits until somebody writes to it */
        complain(command, "'%s' is a pipe, a file was expected", path);
        return NULL;
    }
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(MOST_BYTES + 1) : NULL;
    size_t size = text ? fread(text, 1, MOST_BYTES + 1, file) : 0;
    bool whole = text && !ferror(file);
    if (!whole)
        complain(command, "cannot read '%s': %s", path, strerror(errno));
    cJSON *found = whole && size <= MOST_BYTES ? cJSON_ParseWithLength(text, size) : NULL;
    if (whole && !cJSON_IsObject(found)) {
        complain(command, "'%s' is no JSON object", path);
        cJSON_Delete(found);
        found = NULL;
    }
    free(text);
    if (file)
        fclose(file);
    return found;
}

const char *json_text_of(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

int64_t json_integer_of(const cJSON *object, const char *key, int64_t missing)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(value) && fabs(value->valuedouble) < 9e15 ? (int64_t)value->valuedouble : missing;
}

double json_number_of(const cJSON *object, const char *key, double missing)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(value) ? value->valuedouble : missing;
}
