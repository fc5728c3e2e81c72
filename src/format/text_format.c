/* text_format.c - see text_format.h. A scanner of words, and one function for a message, which calls itself. */
#include "format/text_format.h"

#include "base/status.h"
#include "format/proto/text.pb-c.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 32, LONGEST_WORD = 128 };

typedef struct parser {
    const char *at, *end;
    int line;
    tw_error *error;
} parser;

static tw_status parse_message(parser *p, const ProtobufCMessageDescriptor *kind, char closing, int depth,
                               twi_text *wire);

/* ---- words ------------------------------------------------------------------------------------------------------- */

static void skip_blanks(parser *p)
{
    for (; p->at < p->end; p->at++) {
        if (*p->at == '#')
            while (p->at + 1 < p->end && p->at[1] != '\n')
                p->at++;
        else if (*p->at == '\n')
            p->line++;
        else if (!isspace((unsigned char)*p->at))
            return;
    }
}

/* The next character that means something; 0 at the end, and where a byte of zero is. */
static char peek(parser *p)
{
    skip_blanks(p);
    return p->at < p->end ? *p->at : 0;
}

static bool take(parser *p, char c)
{
    if (peek(p) != c)
        return false;
    p->at++;
    return true;
}

static tw_status fail(const parser *p, const char *expected)
{
    int length = 0;
    while (length < 20 && p->at + length < p->end && isprint((unsigned char)p->at[length]))
        length++;
    return twi_fail(p->error, TW_INVALID_ARGUMENT, "line %d: expected %s, found '%.*s'", p->line, expected, length,
                    p->at);
}

/* A name, a number, or a word such as true; "" if there is none. */
static void take_word(parser *p, char word[LONGEST_WORD])
{
    int length = 0;
    skip_blanks(p);
    while (p->at < p->end && (isalnum((unsigned char)*p->at) || (*p->at && strchr("_.+-", *p->at))) &&
           length < LONGEST_WORD - 1)
        word[length++] = *p->at++;
    word[length] = 0;
}

static int digit_of(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : 16;
}

/* What stands behind a backslash, as in C. */
static void append_escaped(parser *p, twi_text *bytes)
{
    static const char letters[] = "abfnrtv", meant[] = "\a\b\f\n\r\t\v";
    char c = *p->at++;
    const char *letter = memchr(letters, c, sizeof letters - 1);
    unsigned value = 0;
    if (c == 'x' || c == 'X') {
        for (int i = 0; i < 2 && p->at < p->end && digit_of(*p->at) < 16; i++)
            value = value * 16 + (unsigned)digit_of(*p->at++);
        c = (char)value;
    } else if (digit_of(c) < 8) {
        value = (unsigned)digit_of(c);
        for (int i = 0; i < 2 && p->at < p->end && digit_of(*p->at) < 8; i++)
            value = value * 8 + (unsigned)digit_of(*p->at++);
        c = (char)value;
    } else if (letter) {
        c = meant[letter - letters];
    }
    twi_text_append(bytes, &c, 1);
}

/* One or more texts in quotes, which are one; the first begins here. */
static tw_status take_string(parser *p, twi_text *bytes)
{
    while (peek(p) == '"' || peek(p) == '\'') {
        char quote = *p->at++;
        while (p->at < p->end && *p->at != quote && *p->at != '\n') {
            const char *start = p->at;
            while (p->at < p->end && *p->at != quote && *p->at != '\n' && *p->at != '\\')
                p->at++;
            twi_text_append(bytes, start, (size_t)(p->at - start));
            if (p->at < p->end && *p->at == '\\' && ++p->at < p->end)
                append_escaped(p, bytes);
        }
        if (p->at == p->end || *p->at != quote)
            return fail(p, "the quote that ends a text");
        p->at++;
    }
    return TW_OK;
}

/* ---- onto the wire ----------------------------------------------------------------------------------------------- */

static void append_varint(twi_text *wire, uint64_t value)
{
    char byte;
    for (; value >= 128; value >>= 7) {
        byte = (char)(value | 128);
        twi_text_append(wire, &byte, 1);
    }
    byte = (char)value;
    twi_text_append(wire, &byte, 1);
}

static void append_tag(twi_text *wire, const ProtobufCFieldDescriptor *field, int type)
{
    append_varint(wire, (uint64_t)field->id << 3 | (uint64_t)type);
}

static void append_block(twi_text *wire, const ProtobufCFieldDescriptor *field, const twi_text *block)
{
    append_tag(wire, field, 2);
    append_varint(wire, block->size);
    twi_text_append(wire, twi_text_string(block), block->size);
    wire->failed |= block->failed;
}

/* These are given words that are not empty. */
static bool parse_enum(const ProtobufCFieldDescriptor *field, const char *word, uint64_t *value)
{
    const ProtobufCEnumValue *found = protobuf_c_enum_descriptor_get_value_by_name(field->descriptor, word);
    char *end;
    long long number = found ? found->value : strtoll(word, &end, 10);
    *value = (uint64_t)number;
    return found || !*end;
}

static bool parse_whole(const char *word, bool is_signed, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = is_signed ? (uint64_t)strtoll(word, &end, 0) : strtoull(word, &end, 0);
    return !*end && errno == 0;
}

static bool parse_bool(const char *word, uint64_t *value)
{
    *value = strcmp(word, "true") == 0 || strcmp(word, "t") == 0 || strcmp(word, "1") == 0;
    return *value || strcmp(word, "false") == 0 || strcmp(word, "f") == 0 || strcmp(word, "0") == 0;
}

/* "1.5", "1.5f", "inf", "-nan". */
static bool parse_real(const char *word, double *value)
{
    char *end;
    *value = strtod(word, &end);
    if (end != word && (*end == 'f' || *end == 'F'))
        end++;
    return !*end;
}

static tw_status append_number(parser *p, const ProtobufCFieldDescriptor *field, const char *word, twi_text *wire)
{
    uint64_t whole;
    double real;
    switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT:
        if (!parse_real(word, &real))
            return fail(p, "a number");
        append_tag(wire, field, 5);
        twi_text_append(wire, &(float){(float)real}, sizeof(float));
        return TW_OK;
    case PROTOBUF_C_TYPE_DOUBLE:
        if (!parse_real(word, &real))
            return fail(p, "a number");
        append_tag(wire, field, 1);
        twi_text_append(wire, &real, sizeof real);
        return TW_OK;
    case PROTOBUF_C_TYPE_BOOL:
        if (!parse_bool(word, &whole))
            return fail(p, "true or false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        if (!parse_enum(field, word, &whole))
            return fail(p, "the name of a type, as DT_FLOAT");
        break;
    default:
        if (!parse_whole(word, field->type == PROTOBUF_C_TYPE_INT32 || field->type == PROTOBUF_C_TYPE_INT64, &whole))
            return fail(p, "a whole number");
    }
    append_tag(wire, field, 0);
    append_varint(wire, whole);
    return TW_OK;
}

/* ---- fields ------------------------------------------------------------------------------------------------------ */

/* A value of `field`; of NULL, one that is passed over. */
static tw_status parse_value(parser *p, const ProtobufCFieldDescriptor *field, int depth, twi_text *wire)
{
    twi_text block = {0};
    char word[LONGEST_WORD], c = peek(p);
    bool is_text = c == '"' || c == '\'', is_message = c == '{' || c == '<';
    bool wants_text = field && (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_BYTES);
    bool wants_message = field && field->type == PROTOBUF_C_TYPE_MESSAGE;
    tw_status status = TW_OK;
    if (field && (is_text != wants_text || is_message != wants_message))
        return fail(p, wants_text ? "a text in quotes" : wants_message ? "a message in braces" : "a number or a word");
    if (is_text || is_message) {
        if (is_message)
            p->at++;
        status = is_text ? take_string(p, &block)
                         : parse_message(p, field ? field->descriptor : NULL, c == '{' ? '}' : '>', depth + 1, &block);
        if (status == TW_OK && field)
            append_block(wire, field, &block);
        twi_text_free(&block);
        return status;
    }
    const char *before = p->at;
    take_word(p, word);
    if (!*word)
        return fail(p, "a value");
    if (field) {
        const char *after = p->at;
        p->at = before; /* for the message */
        status = append_number(p, field, word, wire);
        p->at = status == TW_OK ? after : before;
    }
    return status;
}

/* A value, or values in brackets. */
static tw_status parse_values(parser *p, const ProtobufCFieldDescriptor *field, int depth, twi_text *wire)
{
    tw_status status = TW_OK;
    if (!take(p, '['))
        return parse_value(p, field, depth, wire);
    while (status == TW_OK && !take(p, ']')) {
        status = parse_value(p, field, depth, wire);
        if (status == TW_OK && !take(p, ',') && peek(p) != ']')
            status = fail(p, "',' or ']'");
    }
    return status;
}

/* What is behind the '[' of "[type.googleapis.com/tensorflow.AssetFileDef]"; NULL for types that are passed over. */
static const ProtobufCMessageDescriptor *take_type(parser *p)
{
    static const char asset[] = "type.googleapis.com/tensorflow.AssetFileDef]";
    const char *type = p->at;
    while (p->at < p->end && *p->at++ != ']')
        ;
    bool is_asset = (size_t)(p->at - type) == sizeof asset - 1 && memcmp(type, asset, sizeof asset - 1) == 0;
    return is_asset ? &twi_text__asset_file_def__descriptor : NULL;
}

/* The message that an Any holds, of kind `held`: packed. */
static tw_status parse_held(parser *p, const ProtobufCMessageDescriptor *held, int depth, twi_text *wire)
{
    const ProtobufCFieldDescriptor *value =
        protobuf_c_message_descriptor_get_field_by_name(&twi_text__any__descriptor, "value");
    twi_text block = {0};
    char c = peek(p);
    if (c != '{' && c != '<')
        return fail(p, "a message in braces");
    p->at++;
    tw_status status = parse_message(p, held, c == '{' ? '}' : '>', depth + 1, &block);
    if (status == TW_OK)
        append_block(wire, value, &block);
    twi_text_free(&block);
    return status;
}

/* The fields up to `closing`, or to the end if that is 0; kind NULL: they are passed over. */
static tw_status parse_message(parser *p, const ProtobufCMessageDescriptor *kind, char closing, int depth,
                               twi_text *wire)
{
    tw_status status = TW_OK;
    char name[LONGEST_WORD];
    if (depth > DEEPEST)
        return fail(p, "messages that are not so deep in each other");
    while (status == TW_OK && peek(p) && peek(p) != closing) {
        const ProtobufCMessageDescriptor *held = NULL;
        snprintf(name, sizeof name, "[]");
        if (take(p, '[')) /* the type of what a message of any kind holds */
            held = take_type(p);
        else
            take_word(p, name);
        if (!*name)
            return fail(p, "the name of a field");
        const ProtobufCFieldDescriptor *field =
            kind ? protobuf_c_message_descriptor_get_field_by_name(kind, name) : NULL;
        bool colon = take(p, ':');
        if (!colon && peek(p) != '{' && peek(p) != '<')
            return fail(p, "':' or '{'");
        status = held && kind == &twi_text__any__descriptor ? parse_held(p, held, depth, wire)
                                                            : parse_values(p, field, depth, wire);
        if (!take(p, ','))
            take(p, ';');
    }
    if (status == TW_OK && closing && !take(p, closing))
        status = fail(p, closing == '}' ? "'}'" : "'>'");
    return status;
}

tw_status twi_text_to_wire(const ProtobufCMessageDescriptor *kind, const char *text, size_t size, twi_text *wire,
                           tw_error *error)
{
    parser p = {text, text + size, 1, error};
    tw_status status = parse_message(&p, kind, 0, 0, wire);
    if (status == TW_OK && p.at < p.end)
        status = fail(&p, "the name of a field");
    return status == TW_OK && wire->failed ? twi_fail_memory(error, "reading a text") : status;
}

void twi_text_first_field(const char *text, size_t text_size, char *word, size_t size)
{
    parser p = {text, text + text_size, 1, NULL};
    char name[LONGEST_WORD];
    take_word(&p, name);
    bool fits = strlen(name) < size && (peek(&p) == ':' || peek(&p) == '{' || peek(&p) == '<');
    snprintf(word, size, "%s", fits ? name : "");
}
