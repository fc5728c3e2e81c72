/* text.c - kernels on strings: lengths, parts, numbers, letters, replacements, hashes. */
#include "base/inflate.h"
#include "base/text.h"

#include "base/fingerprint.h"
#include "base/little_endian.h"
#include "base/memory.h"
#include "device/cpu/library/regex.h"
#include "device/cpu/plain/broadcast.h"
#include "device/cpu/plain/move.h"
#include "tensor/tensor.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const bool characters_marker = true; /* state: units are characters of UTF-8, not bytes */

static tw_status prepare_unit(twi_prepare *p)
{
    if (strcmp(twi_attr_string(p->attrs, "unit", "BYTE"), "UTF8_CHAR") == 0)
        p->state = (void *)&characters_marker;
    return TW_OK;
}

static const tw_string *strings(const twi_run *r)
{
    return r->inputs[0];
}

static int64_t count(const twi_run *r)
{
    return r->output_operands[0].elements;
}

/* Ends a text that is built: gives it to element i of the output. */
static tw_status give(const twi_run *r, int64_t i, twi_text *text)
{
    bool given = !text->failed && twi_string_set((tw_string *)r->outputs[0] + i, twi_text_string(text), text->size);
    twi_text_free(text);
    return given ? TW_OK : twi_fail_memory(r->error, r->node);
}

static tw_status give_bytes(const twi_run *r, int64_t i, const char *bytes, size_t size)
{
    return twi_string_set((tw_string *)r->outputs[0] + i, bytes, size) ? TW_OK : twi_fail_memory(r->error, r->node);
}

/* ---- lengths and parts ------------------------------------------------------------------------------------------- */

/* Whether a byte begins a character. */
static bool begins(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

static int64_t length(const tw_string *string, bool in_characters)
{
    int64_t characters = 0;
    for (size_t i = 0; i < string->size && in_characters; i++)
        characters += begins(string->data[i]);
    return in_characters ? characters : (int64_t)string->size;
}

static tw_status run_length(const twi_run *r)
{
    for (int64_t i = 0; i < count(r); i++)
        ((int32_t *)r->outputs[0])[i] = (int32_t)length(&strings(r)[i], r->state != NULL);
    return TW_OK;
}

/* The byte at which unit number `unit` begins. */
static size_t byte_of(const tw_string *string, int64_t unit, bool in_characters)
{
    if (!in_characters)
        return (size_t)unit;
    size_t at = 0;
    for (; at < string->size; at++)
        if (begins(string->data[at]) && unit-- == 0)
            break;
    return at;
}

static tw_status cut(const twi_run *r, int64_t to, const tw_string *string, int64_t pos, int64_t len)
{
    bool in_characters = r->state != NULL;
    int64_t size = length(string, in_characters);
    if (pos < -size || pos > size)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': pos %lld out of range for string of length %lld", r->node,
                        (long long)pos, (long long)size);
    pos += pos < 0 ? size : 0;
    len = len < 0 ? 0 : len < size - pos ? len : size - pos;
    size_t begin = byte_of(string, pos, in_characters), end = byte_of(string, pos + len, in_characters);
    return give_bytes(r, to, string->data ? string->data + begin : "", end - begin);
}

static tw_status run_substr(const twi_run *r)
{
    twi_broadcast b;
    tw_status status = TW_OK;
    twi_broadcast_init(&b, r->input_operands[0].shape, r->input_operands[1].shape, r->output_operands[0].shape);
    for (int64_t k = 0; k < b.runs; k++) {
        int64_t x, y;
        twi_broadcast_start(&b, k, &x, &y);
        for (int64_t i = 0; i < b.run && status == TW_OK; i++) {
            int64_t at = y + (b.y_moves ? i : 0);
            status = cut(r, k * b.run + i, &strings(r)[x + (b.x_moves ? i : 0)], twi_input_int(r, 1, at),
                         twi_input_int(r, 2, at));
        }
    }
    return status;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static tw_status run_number(const twi_run *r)
{
    for (int64_t i = 0; i < count(r); i++) {
        const char *text = strings(r)[i].data ? strings(r)[i].data : "";
        size_t size = strings(r)[i].size;
        char *end = NULL;
        tw_dtype dtype = r->output_operands[0].dtype;
        bool is_float = dtype == TW_FLOAT32 || dtype == TW_FLOAT64, fits = true;
        double real = 0;
        long long whole = 0;
        errno = 0;
        if (is_float) {
            real = dtype == TW_FLOAT32 ? (double)strtof(text, &end) : strtod(text, &end);
        } else {
            whole = strtoll(text, &end, 10);
            fits = errno == 0 && (dtype == TW_INT64 || (whole >= INT32_MIN && whole <= INT32_MAX));
        }
        bool some = end && end != text;
        while (some && isspace((unsigned char)*end))
            end++;
        if (!some || !fits || (size_t)(end - text) != size)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': StringToNumberOp could not correctly convert string: %.200s", r->node, text);
        if (dtype == TW_FLOAT32)
            ((float *)r->outputs[0])[i] = (float)real;
        else if (dtype == TW_FLOAT64)
            ((double *)r->outputs[0])[i] = real;
        else
            twi_output_int(r, 0, i, whole);
    }
    return TW_OK;
}

#define FRACTIONS (TWI_FLOAT_TYPES | TWI_COMPLEX_TYPES)

/* The element, of complex numbers the part, at place i. */
static double fraction_at(tw_dtype dtype, const void *x, int64_t i)
{
    switch (dtype) {
    case TW_FLOAT16:
        return (double)tw_half_to_float(((const uint16_t *)x)[i]);
    case TW_BFLOAT16:
        return (double)tw_bfloat16_to_float(((const uint16_t *)x)[i]);
    case TW_FLOAT32:
    case TW_COMPLEX64:
        return (double)((const float *)x)[i];
    default:
        return ((const double *)x)[i];
    }
}

/* State: printf's words for a number. */
typedef struct printing {
    char format[32];
} printing;

static tw_status prepare_as_string(twi_prepare *p)
{
    printing s = {"%"};
    int64_t precision = twi_attr_int(p->attrs, "precision", -1), width = twi_attr_int(p->attrs, "width", -1);
    const char *fill = twi_attr_string(p->attrs, "fill", "");
    bool scientific = twi_attr_bool(p->attrs, "scientific", false),
         shortest = twi_attr_bool(p->attrs, "shortest", false);
    tw_dtype dtype = p->inputs[0].dtype;
    bool is_float = FRACTIONS & TWI_TYPE(dtype);
    if (strlen(fill) > 1 || (*fill && !strchr(" +-0", *fill)))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "AsString '%s': Fill argument not supported: \"%s\"", p->node,
                        fill);
    if (!is_float && (precision > -1 || scientific || shortest || (dtype == TW_BOOL && *fill)))
        return twi_fail(p->error, TW_INVALID_ARGUMENT,
                        "AsString '%s': precision, scientific and shortest are for floats, not %s", p->node,
                        tw_dtype_name(dtype));
    if (scientific && shortest)
        return twi_fail(p->error, TW_INVALID_ARGUMENT,
                        "AsString '%s': Cannot select both scientific and shortest notation", p->node);
    if (precision > 1000 || width > 1000)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "AsString '%s': a width or precision above 1000", p->node);
    twi_text text = {0};
    twi_text_printf(&text, "%%%s", fill);
    if (width > -1 && dtype != TW_BOOL)
        twi_text_printf(&text, "%d", (int)width);
    if (precision > -1)
        twi_text_printf(&text, ".%d", (int)precision);
    twi_text_printf(&text, "%s",
                    dtype == TW_BOOL                       ? "s"
                    : TWI_UNSIGNED_TYPES & TWI_TYPE(dtype) ? "llu"
                    : !is_float                            ? "lld"
                    : scientific                           ? "e"
                    : shortest                             ? "g"
                                                           : "f");
    bool fits = !text.failed && text.size < sizeof s.format;
    if (fits)
        memcpy(s.format, twi_text_string(&text), text.size + 1);
    twi_text_free(&text);
    return fits ? twi_keep(p, &s, sizeof s) : twi_fail_memory(p->error, p->node);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static tw_status run_as_string(const twi_run *r)
{
    const char *format = ((const printing *)r->state)->format;
    const twi_operand *in = &r->input_operands[0];
    tw_status status = TW_OK;
    for (int64_t i = 0; i < count(r) && status == TW_OK; i++) {
        twi_text text = {0};
        const void *x = r->inputs[0];
        if (TWI_COMPLEX_TYPES & TWI_TYPE(in->dtype)) {
            twi_text_append(&text, "(", 1);
            twi_text_printf(&text, format, fraction_at(in->dtype, x, 2 * i));
            twi_text_append(&text, ",", 1);
            twi_text_printf(&text, format, fraction_at(in->dtype, x, 2 * i + 1));
            twi_text_append(&text, ")", 1);
        } else if (FRACTIONS & TWI_TYPE(in->dtype))
            twi_text_printf(&text, format, fraction_at(in->dtype, x, i));
        else if (in->dtype == TW_STRING)
            twi_text_append(&text, strings(r)[i].data ? strings(r)[i].data : "", strings(r)[i].size);
        else if (in->dtype == TW_BOOL)
            twi_text_printf(&text, format, ((const uint8_t *)x)[i] ? "true" : "false");
        else
            twi_text_printf(&text, format, (long long)twi_integer_at(in->dtype, x, i));
        status = give(r, i, &text);
    }
    return status;
}
#pragma GCC diagnostic pop

/* ---- letters ----------------------------------------------------------------------------------------------------- */

static tw_status prepare_unpack(twi_prepare *p)
{
    p->state = (void *)twi_packing(twi_attr_string(p->attrs, "compression_type", ""));
    return TW_OK;
}

static tw_status run_unpack(const twi_run *r)
{
    const char *kind = r->state;
    tw_status status = TW_OK;
    for (int64_t i = 0; i < count(r) && status == TW_OK; i++) {
        const char *data = strings(r)[i].data ? strings(r)[i].data : "";
        char *bytes = NULL;
        size_t size = strings(r)[i].size;
        if (*kind)
            status = twi_inflate(r->node, kind, data, size, &bytes, &size, r->error);
        if (status == TW_OK)
            status = give_bytes(r, i, *kind ? bytes : data, size);
        twi_free(bytes);
    }
    return status;
}

static tw_status run_strip(const twi_run *r)
{
    tw_status status = TW_OK;
    for (int64_t i = 0; i < count(r) && status == TW_OK; i++) {
        const char *from = strings(r)[i].data ? strings(r)[i].data : "", *end = from + strings(r)[i].size;
        while (from < end && isspace((unsigned char)*from))
            from++;
        while (end > from && isspace((unsigned char)end[-1]))
            end--;
        status = give_bytes(r, i, from, (size_t)(end - from));
    }
    return status;
}

/* Base64 with - and _, as addresses of the web want it. */
static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const bool pad_marker = true;

static tw_status prepare_encode(twi_prepare *p)
{
    if (twi_attr_bool(p->attrs, "pad", false))
        p->state = (void *)&pad_marker;
    return TW_OK;
}

static tw_status run_encode(const twi_run *r)
{
    tw_status status = TW_OK;
    for (int64_t i = 0; i < count(r) && status == TW_OK; i++) {
        const unsigned char *from = (const unsigned char *)strings(r)[i].data;
        size_t size = strings(r)[i].size;
        twi_text text = {0};
        for (size_t k = 0; k < size; k += 3) {
            size_t bytes = size - k < 3 ? size - k : 3;
            uint32_t bits = 0;
            char four[4];
            for (size_t b = 0; b < 3; b++)
                bits = bits << 8 | (b < bytes ? from[k + b] : 0);
            for (size_t d = 0; d < 4; d++)
                four[d] = d <= bytes ? digits[bits >> (18 - 6 * d) & 63] : '=';
            twi_text_append(&text, four, r->state ? 4 : bytes + 1);
        }
        status = give(r, i, &text);
    }
    return status;
}

static tw_status run_decode(const twi_run *r)
{
    tw_status status = TW_OK;
    for (int64_t i = 0; i < count(r) && status == TW_OK; i++) {
        const char *from = strings(r)[i].data;
        size_t size = strings(r)[i].size;
        twi_text text = {0};
        uint32_t bits = 0;
        int held = 0;
        bool valid = true;
        while (size && from[size - 1] == '=' && strings(r)[i].size - size < 2)
            size--;
        valid = size % 4 != 1 && (size == strings(r)[i].size || strings(r)[i].size % 4 == 0);
        for (size_t k = 0; k < size && valid; k++) {
            const char *digit = from[k] ? strchr(digits, from[k]) : NULL;
            valid = digit != NULL;
            bits = bits << 6 | (uint32_t)(valid ? digit - digits : 0);
            held += 6;
            if (held >= 8) {
                char byte = (char)(bits >> (held -= 8));
                twi_text_append(&text, &byte, 1);
            }
        }
        if (!valid) {
            twi_text_free(&text);
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Invalid character found in base64.", r->node);
        }
        status = give(r, i, &text);
    }
    return status;
}

/* ---- regular expressions ----------------------------------------------------------------------------------------- */

/* The pattern is an attribute, and compiled once, or an input. */
typedef struct replacing {
    twi_regex *regex;
    const tw_string *rewrite;
    bool all;
} replacing;

static tw_status prepare_replace(twi_prepare *p)
{
    replacing s = {.all = twi_attr_bool(p->attrs, "replace_global", true)};
    const twi_attr *pattern = twi_attr_find(p->attrs, "pattern"), *rewrite = twi_attr_find(p->attrs, "rewrite");
    if (pattern && rewrite) {
        tw_status status = twi_regex_compile(&pattern->s, &s.regex, p->error);
        if (status != TW_OK)
            return twi_prefix(p->error, "%s '%s'", p->op, p->node), status;
        s.rewrite = &rewrite->s;
    }
    tw_status status = twi_keep(p, &s, sizeof s);
    if (status != TW_OK)
        twi_regex_free(s.regex);
    return status;
}

static void release_replace(void *state)
{
    if (state)
        twi_regex_free(((replacing *)state)->regex);
    twi_free(state);
}

static tw_status run_replace(const twi_run *r)
{
    const replacing *s = r->state;
    twi_regex *own = NULL;
    tw_status status = TW_OK;
    if (!s->regex)
        status = twi_regex_compile(r->inputs[1], &own, r->error);
    for (int64_t i = 0; i < count(r) && status == TW_OK; i++)
        status = twi_regex_replace(s->regex ? s->regex : own, &strings(r)[i], s->regex ? s->rewrite : r->inputs[2],
                                   s->all, (tw_string *)r->outputs[0] + i, r->error);
    twi_regex_free(own);
    return status;
}

static tw_status run_full_match(const twi_run *r)
{
    twi_regex *own = NULL;
    tw_status status = twi_regex_compile(r->inputs[1], &own, r->error);
    for (int64_t i = 0; i < count(r) && status == TW_OK; i++)
        status = twi_regex_match(own, &strings(r)[i], (bool *)r->outputs[0] + i, r->error);
    twi_regex_free(own);
    return status;
}

/* ---- hashes ------------------------------------------------------------------------------------------------------ */

typedef struct hashing {
    uint64_t buckets, key[2];
    bool strong, old;
} hashing;

static tw_status prepare_hash(twi_prepare *p)
{
    int numbers;
    const int64_t *key = twi_attr_ints(p->attrs, "key", &numbers);
    if (twi_attr_find(p->attrs, "key") && numbers != 2) /* TensorFlow builds it, too, and refuses to run it */
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s: Key must have 2 elements, not %d", p->node, numbers);
    hashing s = {.buckets = (uint64_t)twi_attr_int(p->attrs, "num_buckets", 1), .strong = numbers == 2,
                 .old = strcmp(p->op, "StringToHashBucket") == 0};
    for (int i = 0; i < 2 && s.strong; i++)
        s.key[i] = (uint64_t)key[i];
    return twi_keep(p, &s, sizeof s);
}

static tw_status run_hash(const twi_run *r)
{
    const hashing *s = r->state;
    for (int64_t i = 0; i < count(r); i++) {
        const char *data = strings(r)[i].data ? strings(r)[i].data : "";
        size_t size = strings(r)[i].size;
        uint64_t hash = s->strong ? twi_keyed_hash(s->key, data, size)
                        : s->old  ? twi_murmur_hash(data, size)
                                  : twi_fingerprint(data, size);
        ((int64_t *)r->outputs[0])[i] = (int64_t)(hash % s->buckets);
    }
    return TW_OK;
}

static uint64_t fingerprint_of(const tw_string *text)
{
    return twi_fingerprint(text->data ? text->data : "", text->size);
}

/* Of a row's bytes; of several texts those of their fingerprints. The workspace has room for these. */
static tw_status run_fingerprint(const twi_run *r)
{
    const twi_operand *data = &r->input_operands[0];
    const tw_string *method = r->inputs[1], *texts = r->inputs[0];
    int64_t rows = data->shape.dims[0], width = rows ? data->elements / rows : 0;
    size_t bytes = (size_t)width * (data->dtype == TW_STRING ? sizeof(uint64_t) : tw_dtype_size(data->dtype));
    uint8_t *to = r->outputs[0], *hashes = r->workspace;
    if (method->size != 10 || memcmp(method->data, "farmhash64", 10) != 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Unsupported fingerprint method: %.*s", r->node,
                        (int)(method->size < 64 ? method->size : 64), method->data ? method->data : "");
    for (int64_t row = 0; row < rows; row++, to += sizeof(uint64_t)) {
        const char *from = data->dtype == TW_STRING ? (const char *)hashes : (const char *)r->inputs[0] + row * bytes;
        for (int64_t i = 0; i < width && data->dtype == TW_STRING; i++)
            twi_put64(hashes + 8 * i, fingerprint_of(&texts[row * width + i]));
        bool is_one_text = data->dtype == TW_STRING && width == 1;
        twi_put64(to, is_one_text ? fingerprint_of(&texts[row]) : twi_fingerprint(bytes ? from : "", bytes));
    }
    return TW_OK;
}

static tw_status prepare_fingerprint(twi_prepare *p)
{
    const twi_operand *data = &p->inputs[0];
    int64_t rows = data->shape.dims[0];
    if (data->dtype == TW_STRING && rows)
        p->workspace = (size_t)(data->elements / rows) * sizeof(uint64_t);
    return TW_OK;
}

const twi_kernel twi_cpu_text_kernels[] = {
    {"Fingerprint", "plain", 0, prepare_fingerprint, run_fingerprint},
    {"StringLength", "plain", 0, prepare_unit, run_length},
    {"Substr", "plain", 0, prepare_unit, run_substr},
    {"StringToNumber", "plain", 0, NULL, run_number},
    {"AsString", "plain", 0, prepare_as_string, run_as_string, twi_free},
    {"DecodeCompressed", "plain", 0, prepare_unpack, run_unpack},
    {"StringStrip", "plain", 0, NULL, run_strip},
    {"EncodeBase64", "plain", 0, prepare_encode, run_encode},
    {"DecodeBase64", "plain", 0, NULL, run_decode},
    {"RegexFullMatch", "plain", 0, NULL, run_full_match},
    {"RegexReplace", "plain", 0, prepare_replace, run_replace, release_replace},
    {"StaticRegexReplace", "plain", 0, prepare_replace, run_replace, release_replace},
    {"StringToHashBucket", "plain", 0, prepare_hash, run_hash, twi_free},
    {"StringToHashBucketFast", "plain", 0, prepare_hash, run_hash, twi_free},
    {"StringToHashBucketStrong", "plain", 0, prepare_hash, run_hash, twi_free},
    {0},
};
