/* unicode.c - UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode, UnicodeTranscode, UnicodeScript, StringUpper and
 * StringLower: characters of UTF-8, UTF-16 and UTF-32, and of ASCII and Latin-1 where they are read. What is no
 * character counts as far as it could have become one, as the Unicode Standard advises and TensorFlow's library
 * does. */
#include "base/array.h"
#include "base/letters.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/cpu/plain/move.h"

#include <ctype.h>
#include <string.h>

typedef enum encoding { UTF_8, UTF_16_BE, UTF_16_LE, UTF_32_BE, UTF_32_LE, LATIN_1, ASCII } encoding;
typedef enum errors { STRICT, REPLACE, IGNORE } errors;

typedef struct unicode {
    encoding from, to;
    errors errors;
    uint32_t replacement;
    bool controls; /* are replaced, too */
} unicode;

/* A character that was read, or what stands in its place. */
typedef struct found {
    uint32_t value;
    size_t bytes;
    bool wrong;
} found;

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static found read_utf_8(const unsigned char *at, size_t left)
{
    unsigned char first = at[0];
    size_t bytes = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    found f = {first, 1, bytes == 0};
    if (bytes > 1)
        f.value = first & (0x7fu >> bytes);
    for (; f.bytes < bytes && !f.wrong; f.bytes += !f.wrong) {
        unsigned char next = f.bytes < left ? at[f.bytes] : 0, low = 0x80, high = 0xbf;
        if (f.bytes == 1) { /* neither longer than it needs to be, nor half of a pair, nor too large */
            low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : low;
            high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : high;
        }
        f.wrong = next < low || next > high;
        f.value = f.value << 6 | (next & 0x3f);
    }
    return f;
}

static uint32_t unit(const unsigned char *at, int bytes, bool little)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | at[little ? bytes - 1 - i : i];
    return value;
}

static found read_utf_16(const unsigned char *at, size_t left, bool little)
{
    if (left < 2)
        return (found){0, left, true};
    found f = {unit(at, 2, little), 2, false};
    bool is_first = f.value >= 0xd800 && f.value < 0xdc00;
    if (is_first && left < 4)
        return (found){0, left, true};
    uint32_t second = is_first ? unit(at + 2, 2, little) : 0;
    if (second >= 0xdc00 && second < 0xe000)
        return (found){0x10000 + ((f.value - 0xd800) << 10) + (second - 0xdc00), 4, false};
    f.wrong = f.value >= 0xd800 && f.value < 0xe000;
    return f;
}

static found read_utf_32(const unsigned char *at, size_t left, bool little)
{
    if (left < 4)
        return (found){0, left, true};
    found f = {unit(at, 4, little), 4, false};
    f.wrong = f.value > 0x10ffff || (f.value >= 0xd800 && f.value < 0xe000);
    return f;
}

/* The character at the beginning of `left` bytes, of which there is one at least. */
static found read_character(const unicode *s, const char *from, size_t left)
{
    const unsigned char *at = (const unsigned char *)from;
    found f = {at[0], 1, s->from == ASCII && at[0] > 0x7f};
    if (s->from == UTF_8)
        f = read_utf_8(at, left);
    else if (s->from == UTF_16_BE || s->from == UTF_16_LE)
        f = read_utf_16(at, left, s->from == UTF_16_LE);
    else if (s->from == UTF_32_BE || s->from == UTF_32_LE)
        f = read_utf_32(at, left, s->from == UTF_32_LE);
    return f;
}

/* Whether a character is one that is replaced or left out. */
static bool is_replaced(const unicode *s, const found *f)
{
    return f->wrong || (s->controls && f->value <= 0x1f);
}

static tw_status refuse_text(const twi_run *r)
{
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Invalid formatting on input string", r->node);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_units(twi_text *text, uint32_t value, int bytes)
{
    unsigned char at[4];
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> 8 * (bytes - 1 - i));
    twi_text_append(text, at, (size_t)bytes);
}

static void put_character(twi_text *text, encoding to, uint32_t value)
{
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    if (to == UTF_32_BE) {
        put_units(text, value, 4);
    } else if (to == UTF_16_BE && value > 0xffff) {
        put_units(text, 0xd800 + ((value - 0x10000) >> 10), 2);
        put_units(text, 0xdc00 + ((value - 0x10000) & 0x3ff), 2);
    } else if (to == UTF_16_BE) {
        put_units(text, value, 2);
    } else {
        unsigned char at[4];
        int bytes = value < 0x80 ? 1 : value < 0x800 ? 2 : value < 0x10000 ? 3 : 4;
        for (int i = bytes - 1; i > 0; value >>= 6)
            at[i--] = (unsigned char)(0x80 | (value & 0x3f));
        at[0] = (unsigned char)(marks[bytes == 1 ? 0 : bytes] | value);
        twi_text_append(text, at, (size_t)bytes);
    }
}

static tw_status give(const twi_run *r, int64_t i, twi_text *text)
{
    bool given = !text->failed && twi_string_set((tw_string *)r->outputs[0] + i, twi_text_string(text), text->size);
    twi_text_free(text);
    return given ? TW_OK : twi_fail_memory(r->error, r->node);
}

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

/* Names as people write them: letters of either case, with or without - and _. */
static bool find_encoding(const char *name, encoding *found)
{
    static const struct {
        const char *name;
        encoding encoding;
    } names[] = {{"utf8", UTF_8}, {"utf16be", UTF_16_BE}, {"utf16le", UTF_16_LE}, {"utf32be", UTF_32_BE},
                 {"utf32le", UTF_32_LE}, {"iso88591", LATIN_1}, {"latin1", LATIN_1}, {"usascii", ASCII}, {"ascii", ASCII}};
    char plain[16] = "";
    size_t size = 0;
    for (; *name && size < sizeof plain - 1; name++)
        if (isalnum((unsigned char)*name))
            plain[size++] = (char)tolower((unsigned char)*name);
    for (size_t i = 0; i < sizeof names / sizeof *names && !*name; i++)
        if (strcmp(plain, names[i].name) == 0)
            return *found = names[i].encoding, true;
    return false;
}

static bool is_character(int64_t value)
{
    return value >= 0 && value <= 0x10ffff && (value < 0xd800 || value > 0xdfff);
}

static tw_status prepare_unicode(twi_prepare *p)
{
    const char *errors = twi_attr_string(p->attrs, "errors", "replace");
    const char *from = twi_attr_string(p->attrs, "input_encoding", "UTF-8");
    int64_t replacement = twi_attr_int(p->attrs, "replacement_char", 65533);
    unicode s = {.errors = strcmp(errors, "strict") == 0    ? STRICT
                           : strcmp(errors, "replace") == 0 ? REPLACE
                                                            : IGNORE,
                 .replacement = (uint32_t)replacement,
                 .controls = twi_attr_bool(p->attrs, "replace_control_characters", false)};
    if (replacement < 0 || replacement > 0x10ffff)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': replacement_char %lld out of unicode codepoint range",
                        p->op, p->node, (long long)replacement);
    if (!find_encoding(from, &s.from))
        return twi_fail(p->error, TW_INVALID_ARGUMENT,
                        "%s '%s': Could not create converter for input encoding: \"%s\"; expected UTF-8, UTF-16-BE, "
                        "UTF-16-LE, UTF-32-BE, UTF-32-LE, ISO-8859-1 or US-ASCII",
                        p->op, p->node, from);
    find_encoding(twi_attr_string(p->attrs, "output_encoding", "UTF-8"), &s.to);
    return twi_keep(p, &s, sizeof s);
}

/* ---- the ops ----------------------------------------------------------------------------------------------------- */

typedef struct characters {
    TWI_ARRAY(int32_t) values;
    TWI_ARRAY(int64_t) starts;
} characters;

static tw_status decode(const twi_run *r, const tw_string *text, characters *all)
{
    const unicode *s = r->state;
    found f;
    for (size_t at = 0; at < text->size; at += f.bytes) {
        f = read_character(s, text->data + at, text->size - at);
        if (f.wrong && s->errors == STRICT)
            return refuse_text(r);
        if (is_replaced(s, &f) && s->errors == IGNORE)
            continue;
        if (!twi_push(&all->values, (int32_t)(is_replaced(s, &f) ? s->replacement : f.value)) ||
            !twi_push(&all->starts, (int64_t)at))
            return twi_fail_memory(r->error, r->node);
    }
    return TW_OK;
}

static tw_status run_decode(const twi_run *r)
{
    const tw_string *texts = r->inputs[0];
    characters all = {0};
    void *values, *starts;
    tw_status status = TW_OK;
    twi_output_int(r, 0, 0, 0);
    for (int64_t i = 0; i < r->input_operands[0].elements && status == TW_OK; i++) {
        status = decode(r, &texts[i], &all);
        twi_output_int(r, 0, i + 1, all.values.count);
    }
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(all.values.count), &values);
    if (status == TW_OK && all.values.count)
        memcpy(values, all.values.items, (size_t)all.values.count * sizeof *all.values.items);
    if (status == TW_OK && r->num_outputs == 3)
        status = twi_make_output(r, 2, TW_SHAPE(all.values.count), &starts);
    if (status == TW_OK && r->num_outputs == 3 && all.values.count)
        memcpy(starts, all.starts.items, (size_t)all.values.count * sizeof *all.starts.items);
    twi_array_free(&all.values);
    twi_array_free(&all.starts);
    return status;
}

/* Where text i ends: splits begin at 0, do not fall, and end at the number of characters. */
static tw_status end_of_text(const twi_run *r, int64_t i, int64_t *end)
{
    int64_t texts = r->output_operands[0].elements, count = r->input_operands[0].elements;
    int64_t begin = twi_input_int(r, 1, i);
    *end = twi_input_int(r, 1, i + 1);
    if (i == 0 && begin != 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': First value in input_splits must be zero, not %lld",
                        r->node, (long long)begin);
    if (*end < begin || *end > count || (i == texts - 1 && *end != count))
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': Invalid split value: text %lld of %lld ends at %lld of %lld characters", r->node,
                        (long long)i, (long long)texts, (long long)*end, (long long)count);
    return TW_OK;
}

static tw_status run_encode(const twi_run *r)
{
    const unicode *s = r->state;
    const int32_t *values = r->inputs[0];
    tw_status status = TW_OK;
    for (int64_t i = 0, at = 0, end; i < r->output_operands[0].elements && status == TW_OK; i++) {
        twi_text text = {0};
        for (status = end_of_text(r, i, &end); at < end && status == TW_OK; at++) {
            bool known = is_character(values[at]);
            if (!known && s->errors == STRICT)
                status = twi_fail(r->error, TW_INVALID_ARGUMENT,
                                  "'%s': Code point is out of range for Unicode: %d", r->node, values[at]);
            else if (known || (s->errors == REPLACE && is_character(s->replacement)))
                put_character(&text, s->to, known ? (uint32_t)values[at] : s->replacement);
        }
        if (status == TW_OK)
            status = give(r, i, &text);
        else
            twi_text_free(&text);
    }
    return status;
}

static tw_status run_transcode(const twi_run *r)
{
    const unicode *s = r->state;
    const tw_string *texts = r->inputs[0];
    tw_status status = TW_OK;
    for (int64_t i = 0; i < r->output_operands[0].elements && status == TW_OK; i++) {
        twi_text text = {0};
        for (size_t at = 0; at < texts[i].size && status == TW_OK;) {
            found f = read_character(s, texts[i].data + at, texts[i].size - at);
            at += f.bytes;
            if (is_replaced(s, &f) && s->errors == STRICT)
                status = refuse_text(r);
            else if (!is_replaced(s, &f) || s->errors == REPLACE)
                put_character(&text, s->to, is_replaced(s, &f) ? s->replacement : f.value);
        }
        if (status == TW_OK)
            status = give(r, i, &text);
        else
            twi_text_free(&text);
    }
    return status;
}

/* Of StringUpper and StringLower: of characters, or of ASCII's letters alone, whatever else the bytes are. */
typedef struct casing {
    bool upper, characters;
} casing;

static tw_status prepare_case(twi_prepare *p)
{
    casing s = {strcmp(p->op, "StringUpper") == 0, *twi_attr_string(p->attrs, "encoding", "")};
    return twi_keep(p, &s, sizeof s);
}

static void change_bytes(const casing *s, const tw_string *from, twi_text *text)
{
    twi_text_append(text, from->data ? from->data : "", from->size);
    for (size_t k = 0; k < text->size && !text->failed; k++) {
        char c = text->data[k];
        bool changes = s->upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z';
        text->data[k] = changes ? (char)(c ^ 0x20) : c;
    }
}

static tw_status change_characters(const twi_run *r, const casing *s, const tw_string *from, twi_text *text)
{
    enum { REPLACEMENT = 0xfffd };
    TWI_ARRAY(uint32_t) all = {0};
    tw_status status = TW_OK;
    found f;
    for (size_t at = 0; at < from->size && status == TW_OK; at += f.bytes) {
        f = read_utf_8((const unsigned char *)from->data + at, from->size - at);
        if (!twi_push(&all, f.wrong ? REPLACEMENT : f.value))
            status = twi_fail_memory(r->error, r->node);
    }
    for (size_t k = 0; k < (size_t)all.count && status == TW_OK; k++) {
        uint32_t to[3];
        int many = twi_to_case(all.items, (size_t)all.count, k, s->upper, to);
        for (int i = 0; i < many; i++)
            put_character(text, UTF_8, to[i]);
    }
    twi_array_free(&all);
    return status;
}

static tw_status run_case(const twi_run *r)
{
    const casing *s = r->state;
    const tw_string *texts = r->inputs[0];
    tw_status status = TW_OK;
    for (int64_t i = 0; i < r->output_operands[0].elements && status == TW_OK; i++) {
        twi_text text = {0};
        if (s->characters)
            status = change_characters(r, s, &texts[i], &text);
        else
            change_bytes(s, &texts[i], &text);
        if (status == TW_OK)
            status = give(r, i, &text);
        else
            twi_text_free(&text);
    }
    return status;
}

static tw_status run_scripts(const twi_run *r)
{
    for (int64_t i = 0; i < r->output_operands[0].elements; i++)
        ((int32_t *)r->outputs[0])[i] = twi_script_of(((const int32_t *)r->inputs[0])[i]);
    return TW_OK;
}

const twi_kernel twi_cpu_unicode_kernels[] = {
    {"UnicodeDecode", "plain", 0, prepare_unicode, run_decode, twi_free},
    {"UnicodeDecodeWithOffsets", "plain", 0, prepare_unicode, run_decode, twi_free},
    {"UnicodeEncode", "plain", 0, prepare_unicode, run_encode, twi_free},
    {"UnicodeTranscode", "plain", 0, prepare_unicode, run_transcode, twi_free},
    {"UnicodeScript", "plain", 0, NULL, run_scripts},
    {"StringUpper", "plain", 0, prepare_case, run_case, twi_free},
    {"StringLower", "plain", 0, prepare_case, run_case, twi_free},
    {0},
};
