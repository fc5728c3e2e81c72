/* csv.c - see csv.h. */
#include "format/csv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *twi_csv_record_end(const twi_csv *csv, const char *bytes, size_t size)
{
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n' && !quoted)
            return bytes + i;
        quoted = quoted != (csv->quotes && bytes[i] == '"');
    }
    return NULL;
}

bool twi_csv_field(const twi_csv *csv, const char **at, const char *end, char *text, size_t *size)
{
    const char *p = *at;
    *size = 0;
    if (!csv->quotes || p == end || *p != '"') {
        while (p < end && *p != csv->delimiter) {
            if (csv->quotes && (*p == '"' || *p == '\n' || *p == '\r'))
                return false;
            text[(*size)++] = *p++;
        }
    } else {
        for (p++;; p++) {
            if (p == end)
                return false;
            if (*p == '"' && (p + 1 == end || p[1] != '"'))
                break;
            p += *p == '"';
            text[(*size)++] = *p;
        }
        if (++p < end && *p != csv->delimiter)
            return false;
    }
    *at = p;
    return true;
}

bool twi_csv_is_missing(const twi_csv *csv, const char *text, size_t size)
{
    return size == 0 || (size == strlen(csv->missing) && memcmp(text, csv->missing, size) == 0);
}

bool twi_csv_number(tw_dtype dtype, const char *text, size_t size, void *to)
{
    char copy[64], *end;
    if (size == 0 || size >= sizeof copy)
        return false;
    memcpy(copy, text, size);
    copy[size] = 0;
    errno = 0;
    long long integer = dtype == TW_INT32 || dtype == TW_INT64 ? strtoll(copy, &end, 10) : 0;
    if (dtype == TW_INT64)
        *(int64_t *)to = integer;
    else if (dtype == TW_INT32)
        *(int32_t *)to = (int32_t)integer;
    else if (dtype == TW_FLOAT32)
        *(float *)to = strtof(copy, &end);
    else
        *(double *)to = strtod(copy, &end);
    bool in_range = dtype == TW_INT32 ? integer == (int32_t)integer && !errno : dtype == TW_INT64 ? !errno : true;
    while (*end == ' ')
        end++;
    return in_range && end == copy + size;
}
