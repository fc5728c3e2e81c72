/* json.h - writes JSON, a value at a time: for `--format json` one line for a whole document, for files lines that
 * people can read. Files are read with cJSON; what was read can be written again.
 *
 *     json out = {.file = stdout};
 *     json_begin(&out, NULL, '{');
 *     json_text(&out, "name", "tower");
 *     json_end(&out);
 *
 * Inside an array keys are NULL. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 16 };

typedef struct json {
    FILE *file;
    bool indented; /* a line for each member */
    int depth;
    char closing[JSON_DEPTH];
    bool has_members[JSON_DEPTH];
} json;

void json_begin(json *out, const char *key, char bracket);    /* '{' or '[' */
void json_end(json *out);                                     /* the innermost; ends the line after the outermost */
void json_text(json *out, const char *key, const char *text); /* NULL gives null; what is not UTF-8 becomes U+FFFD */
void json_integer(json *out, const char *key, int64_t value);
void json_unsigned(json *out, const char *key, uint64_t value);
void json_number(json *out, const char *key, double value); /* nine digits; null where there is none */
/* A number that was computed: so many digits, or "NaN", "Infinity", "-Infinity". */
void json_real(json *out, const char *key, double value, int digits);
/* A text that may hold zeros. */
void json_bytes(json *out, const char *key, const char *text, size_t size);
void json_flag(json *out, const char *key, bool value);
/* What cJSON has read, with all that is in it. */
struct cJSON;
void json_copy(json *out, const char *key, const struct cJSON *value);

/* The document in a file, an object; complains in the name of `command` and returns NULL if there is none. Yours:
 * cJSON_Delete(). */
struct cJSON *json_read(const char *command, const char *path);
/* Members; NULL or `missing` where there is none of the kind. Borrowed. */
const char *json_text_of(const struct cJSON *object, const char *key);
int64_t json_integer_of(const struct cJSON *object, const char *key, int64_t missing);
double json_number_of(const struct cJSON *object, const char *key, double missing);

/* Bytes of the UTF-8 character that the text begins with, 0 if there is none. */
size_t json_utf8_length(const char *text, size_t size);

#endif
