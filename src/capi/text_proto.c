/* text_proto.c - see text_proto.h. Messages lie as deep in each other as their tables do.
 * Never here:  what any message means; tables but that of what several take. */
#include "text_proto.h"

#include "capi.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_WORD = 128 };

static const text_field dim_fields[] = {{"size", 1, WHOLE, 0, 0}, {"name", 2, TEXT, 0, 0}, {0}};
static const text_field shape_fields[] = {{"dim", 2, MESSAGE, dim_fields, 0}, {"unknown_rank", 3, WHOLE, 0, 0}, {0}};
static const text_field tensor_fields[] = {
    {"dtype", 1, TYPE_NAME, 0, 0},
    {"tensor_shape", 2, MESSAGE, shape_fields, 0},
    {"version_number", 3, WHOLE, 0, 0},
    {"tensor_content", 4, TEXT, 0, 0},
    {"half_val", 13, WHOLE, 0, 0},
    {"float_val", 5, REAL, 0, 0},
    {"double_val", 6, DOUBLE, 0, 0},
    {"int_val", 7, WHOLE, 0, 0},
    {"string_val", 8, TEXT, 0, 0},
    {"scomplex_val", 9, REAL, 0, 0},
    {"int64_val", 10, WHOLE, 0, 0},
    {"bool_val", 11, WHOLE, 0, 0},
    {"dcomplex_val", 12, DOUBLE, 0, 0},
    {"uint32_val", 16, WHOLE, 0, 0},
    {"uint64_val", 17, WHOLE, 0, 0},
    {0},
};
#define VALUES                                                                                                         \
    {"s", 2, TEXT, 0, 0}, {"i", 3, WHOLE, 0, 0}, {"f", 4, REAL, 0, 0}, {"b", 5, WHOLE, 0, 0},                          \
        {"type", 6, TYPE_NAME, 0, 0}, {"shape", 7, MESSAGE, shape_fields, 0},                                          \
        {"tensor", 8, MESSAGE, tensor_fields, 0}, /* of an AttrValue, and of its list */                               \
    {                                                                                                                  \
        0                                                                                                              \
    }
static const text_field list_fields[] = {VALUES};
const text_field attr_value_text[] = {
    {"list", 1, MESSAGE, list_fields, 0},
    VALUES,
};

typedef struct parser {
    const char *at, *end;
    int line;
    TF_Status *status;
} parser;

static char peek(parser *p)
{
    for (; p->at < p->end; p->at++) {
        if (*p->at == '#')
            while (p->at + 1 < p->end && p->at[1] != '\n')
                p->at++;
        else if (*p->at == '\n')
            p->line++;
        else if (!isspace((unsigned char)*p->at))
            return *p->at;
    }
    return 0;
}

static bool take(parser *p, char c)
{
    if (peek(p) != c)
        return false;
    p->at++;
    return true;
}

static bool fail(const parser *p, const char *expected)
{
    int length = 0;
    while (length < 20 && p->at + length < p->end && isprint((unsigned char)p->at[length]))
        length++;
    set_status(p->status, TF_INVALID_ARGUMENT, "line %d: expected %s, found '%.*s'", p->line, expected, length, p->at);
    return false;
}

/* A name or a number; "" if there is none. */
static void take_word(parser *p, char word[LONGEST_WORD])
{
    int length = 0;
    peek(p);
    while (p->at < p->end && (isalnum((unsigned char)*p->at) || (*p->at && strchr("_.+-", *p->at))) &&
           length < LONGEST_WORD - 1)
        word[length++] = *p->at++;
    word[length] = 0;
}

/* ---- texts ------------------------------------------------------------------------------------------------------ */

static void take_digits(parser *p, int base, int most, unsigned *value)
{
    char digit[2] = "", *end;
    for (int i = 0; i < most && p->at < p->end; i++, p->at++) {
        digit[0] = *p->at;
        unsigned long next = strtoul(digit, &end, base);
        if (!isxdigit((unsigned char)*p->at) || end == digit)
            return;
        *value = *value * (unsigned)base + (unsigned)next;
    }
}

/* What stands behind a backslash, as in C. */
static void take_escaped(parser *p, wire *bytes)
{
    static const char letters[] = "abfnrtv", meant[] = "\a\b\f\n\r\t\v";
    const char *letter = memchr(letters, *p->at, sizeof letters - 1);
    char c = letter ? meant[letter - letters] : *p->at;
    unsigned value = 0;
    if (*p->at >= '0' && *p->at <= '7') {
        take_digits(p, 8, 3, &value);
        c = (char)value;
    } else if (*p->at++ == 'x') {
        take_digits(p, 16, 2, &value);
        c = (char)value;
    }
    wire_append(bytes, &c, 1);
}

/* Texts in quotes behind each other are one. */
static bool take_quoted(parser *p, wire *bytes)
{
    while (peek(p) == '"' || peek(p) == '\'') {
        char quote = *p->at++;
        while (p->at < p->end && *p->at != quote && *p->at != '\n')
            if (*p->at++ != '\\')
                wire_append(bytes, p->at - 1, 1);
            else if (p->at < p->end)
                take_escaped(p, bytes);
        if (p->at == p->end || *p->at != quote)
            return fail(p, "the quote that ends a text");
        p->at++;
    }
    return true;
}

/* The rest of the line that begins here, without its end. */
static size_t take_line(parser *p, const char **line)
{
    *line = p->at;
    const char *end = p->at < p->end ? memchr(p->at, '\n', (size_t)(p->end - p->at)) : NULL;
    p->at = end ? end + 1 : p->end;
    p->line += end != NULL;
    return (size_t)((end ? end : p->end) - *line);
}

/* Behind "<<": the word, and the lines before one that begins with it. */
static bool take_lines(parser *p, wire *bytes)
{
    char word[LONGEST_WORD];
    const char *line;
    take_word(p, word);
    take_line(p, &line);
    size_t length = strlen(word), size;
    for (int i = 0; length > 0 && p->at < p->end; i++) {
        if ((size_t)(p->end - p->at) >= length && memcmp(p->at, word, length) == 0) {
            p->at += length;
            return true;
        }
        size = take_line(p, &line);
        if (i > 0)
            wire_append(bytes, "\n", 1);
        wire_append(bytes, line, size);
    }
    return fail(p, "the word that ends a text");
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

static bool read_whole(const text_field *field, const char *word, uint64_t *value)
{
    char *end = NULL, type[LONGEST_WORD];
    static const char *const bools[] = {"false", "true", NULL};
    const char *const *words = field->kind == WORD ? field->words : field->kind == WHOLE ? bools : NULL;
    for (int i = 0; words && words[i]; i++)
        if (strcmp(word, words[i]) == 0) {
            *value = (uint64_t)i;
            return true;
        }
    if (field->kind == TYPE_NAME && strncmp(word, "DT_", 3) == 0) {
        snprintf(type, sizeof type, "%s", word + 3);
        for (char *c = type; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        *value = (uint64_t)tw_dtype_from_name(type);
        return *value != TW_INVALID_DTYPE;
    }
    *value = (uint64_t)strtoll(word, &end, 0);
    return *word && !*end;
}

static bool parse_fields(parser *p, const text_field *fields, char closing, wire *w);

static bool parse_block(parser *p, const text_field *field, wire *w)
{
    wire block = {0};
    bool is_text = field->kind == TEXT, parsed;
    char opening = peek(p);
    if (is_text && p->end - p->at > 1 && memcmp(p->at, "<<", 2) == 0) {
        p->at += 2;
        parsed = take_lines(p, &block);
    } else if (is_text ? opening != '"' && opening != '\'' : opening != '{' && opening != '<') {
        return fail(p, is_text ? "a text in quotes" : "a message in braces");
    } else if (is_text) {
        parsed = take_quoted(p, &block);
    } else {
        p->at++;
        parsed = parse_fields(p, field->fields, opening == '{' ? '}' : '>', &block);
    }
    if (parsed)
        wire_message(w, field->number, &block);
    wire_free(&block);
    return parsed;
}

static bool parse_value(parser *p, const text_field *field, wire *w)
{
    char word[LONGEST_WORD], *end;
    uint64_t whole;
    if (field->kind == TEXT || field->kind == MESSAGE)
        return parse_block(p, field, w);
    peek(p);
    const char *before = p->at;
    take_word(p, word);
    if (field->kind == REAL || field->kind == DOUBLE) {
        double real = strtod(word, &end);
        if (field->kind == REAL)
            wire_float(w, field->number, strtof(word, &end));
        else
            wire_double(w, field->number, real);
        if (*word && !*end)
            return true;
    } else if (read_whole(field, word, &whole)) {
        wire_int(w, field->number, whole);
        return true;
    }
    p->at = before;
    return fail(p, field->kind == WORD || field->kind == TYPE_NAME ? "one of an enumeration" : "a number");
}

/* A value, or values in brackets. */
static bool parse_values(parser *p, const text_field *field, wire *w)
{
    if (!take(p, '['))
        return parse_value(p, field, w);
    while (!take(p, ']')) {
        if (!parse_value(p, field, w))
            return false;
        if (!take(p, ',') && peek(p) != ']')
            return fail(p, "',' or ']'");
    }
    return true;
}

/* Up to `closing`; 0: to the end. */
static bool parse_fields(parser *p, const text_field *fields, char closing, wire *w)
{
    char name[LONGEST_WORD];
    while (peek(p) && peek(p) != closing) {
        const char *before = p->at;
        const text_field *field = fields;
        take_word(p, name);
        while (field->name && strcmp(field->name, name) != 0)
            field++;
        if (!field->name) {
            p->at = before;
            return fail(p, "the name of a field");
        }
        if (!take(p, ':') && field->kind != MESSAGE)
            return fail(p, "':'");
        if (!parse_values(p, field, w))
            return false;
        if (!take(p, ','))
            take(p, ';');
    }
    return !closing || take(p, closing) || fail(p, "the end of a message");
}

bool text_to_wire(const text_field *fields, const char *text, size_t size, wire *w, TF_Status *status)
{
    parser p = {text, text + size, 1, status};
    if (!parse_fields(&p, fields, 0, w))
        return false;
    if (p.at < p.end) /* a byte of zero */
        return fail(&p, "the name of a field");
    if (w->failed)
        set_no_memory(status);
    return !w->failed;
}
