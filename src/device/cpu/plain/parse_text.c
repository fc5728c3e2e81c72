/* parse_text.c - DecodeCSV, StringSplit, StringSplitV2: lines and words taken apart. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "format/csv.h"
#include "tensor/tensor.h"

#include <string.h>

/* ---- DecodeCSV --------------------------------------------------------------------------------------------------- */

typedef struct csv {
    twi_csv form;
    const int64_t *columns; /* [num_columns]; NULL: all */
    int num_columns;
} csv;

static tw_status prepare_csv(twi_prepare *p)
{
    csv s = {.form = {.quotes = twi_attr_bool(p->attrs, "use_quote_delim", true),
                      .missing = twi_attr_string(p->attrs, "na_value", "")}};
    const char *delimiter = twi_attr_string(p->attrs, "field_delim", ",");
    s.columns = twi_attr_ints(p->attrs, "select_cols", &s.num_columns);
    if (strlen(delimiter) != 1)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': field_delim should be only 1 char", p->op, p->node);
    if (s.num_columns && s.num_columns != p->num_outputs)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': %d columns are selected for %d defaults", p->op,
                        p->node, s.num_columns, p->num_outputs);
    s.form.delimiter = *delimiter;
    return twi_keep(p, &s, sizeof s);
}

static tw_status put_field(const twi_run *r, const csv *s, int output, int64_t line, const char *text, size_t size)
{
    tw_dtype dtype = r->output_operands[output].dtype;
    void *to = twi_element_of_output(r->outputs[output], dtype, line);
    bool is_missing = twi_csv_is_missing(&s->form, text, size);
    if (is_missing && r->input_operands[1 + output].elements != 1)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Field %d is required but missing in record %lld!",
                        r->node, output, (long long)line);
    if (is_missing)
        return twi_copy_elements(1, dtype, r->inputs[1 + output], to) ? TW_OK : twi_fail_memory(r->error, r->node);
    if (dtype == TW_STRING)
        return twi_string_set(to, text, size) ? TW_OK : twi_fail_memory(r->error, r->node);
    if (!twi_csv_number(dtype, text, size, to))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Field %d in record %lld is not a valid %s: %.*s", r->node,
                        output, (long long)line, tw_dtype_name(dtype), (int)size, text);
    return TW_OK;
}

static tw_status read_line(const twi_run *r, const csv *s, int64_t line, const tw_string *record, char *text)
{
    const char *at = record->data ? record->data : "", *end = at + record->size;
    int output = 0;
    tw_status status = TW_OK;
    for (int64_t column = 0; status == TW_OK; column++, at++) {
        size_t size;
        bool wanted = !s->num_columns || (output < s->num_columns && s->columns[output] == column);
        if (!twi_csv_field(&s->form, &at, end, text, &size))
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': field %lld of record %lld has quotes or line ends where none may be", r->node,
                            (long long)column, (long long)line);
        if (wanted && output == r->num_outputs)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Expect %d fields but have more in record %lld",
                            r->node, r->num_outputs, (long long)line);
        if (wanted)
            status = put_field(r, s, output++, line, text, size);
        if (at == end)
            break;
    }
    if (status == TW_OK && output < r->num_outputs)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Expect %d fields but have %d in record %lld", r->node,
                        r->num_outputs, output, (long long)line);
    return status;
}

static tw_status run_csv(const twi_run *r)
{
    const tw_string *records = r->inputs[0];
    tw_status status = TW_OK;
    size_t longest = 0;
    for (int64_t i = 0; i < r->input_operands[0].elements; i++)
        longest = records[i].size > longest ? records[i].size : longest;
    char *text = twi_alloc(longest + 1);
    if (!text)
        return twi_fail_memory(r->error, r->node);
    for (int64_t i = 0; i < r->input_operands[0].elements && status == TW_OK; i++)
        status = read_line(r, r->state, i, &records[i], text);
    twi_free(text);
    return status;
}

/* ---- splitting --------------------------------------------------------------------------------------------------- */

typedef struct splitter {
    bool words; /* V2: by a separator, or where there is none by spaces; else by any of some characters */
    bool skips_empty;
    int64_t most; /* splits; -1: any number */
} splitter;

static tw_status prepare_split(twi_prepare *p)
{
    splitter s = {.words = strcmp(p->op, "StringSplitV2") == 0,
                  .skips_empty = twi_attr_bool(p->attrs, "skip_empty", true),
                  .most = twi_attr_int(p->attrs, "maxsplit", -1)};
    return twi_keep(p, &s, sizeof s);
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* How many bytes at `at` separate words: 0 none. */
static size_t separates(const splitter *s, const tw_string *by, const char *at, const char *end)
{
    if (s->words)
        return (size_t)(end - at) >= by->size && memcmp(at, by->data, by->size) == 0 ? by->size : 0;
    return memchr(by->data, *at, by->size) != NULL;
}

/* One word more; with `values` NULL only counted. */
static bool add_word(const char *start, const char *end, int64_t *count, tw_string *values)
{
    int64_t i = (*count)++;
    return !values || twi_string_set(&values[i], start, (size_t)(end - start));
}

/* After the last split that is allowed comes what is left, even nothing, as in TensorFlow. */
static bool split_by_spaces(const splitter *s, const char *at, const char *end, int64_t *count, tw_string *values)
{
    bool fits = true, open = s->most != 0;
    for (int64_t splits = 0; fits && open; splits++) {
        while (at < end && is_space(*at))
            at++;
        const char *start = at;
        if (splits == s->most)
            return add_word(start, end, count, values);
        while (at < end && !is_space(*at))
            at++;
        open = at > start;
        fits = !open || add_word(start, at, count, values);
    }
    return s->most == 0 ? add_word(at, end, count, values) : fits;
}

static bool split_by_bytes(const char *at, const char *end, int64_t *count, tw_string *values)
{
    bool fits = true;
    for (; at < end && fits; at++)
        fits = add_word(at, at + 1, count, values);
    return fits;
}

static bool split_by(const splitter *s, const tw_string *by, const char *at, const char *end, int64_t *count,
                     tw_string *values)
{
    bool fits = true, more = s->words || at < end; /* by characters, an empty text has no words */
    for (int64_t splits = 0; more && fits; splits++) {
        const char *start = at;
        size_t gap = 0;
        bool last = s->words && splits == s->most;
        while (at < end && (last || !(gap = separates(s, by, at, end))))
            at++;
        if (at > start || s->words || !s->skips_empty)
            fits = add_word(start, at, count, values);
        more = gap > 0;
        at += gap;
    }
    return fits;
}

static tw_status split(const twi_run *r, const splitter *s, const tw_string *text, int64_t *count, tw_string *values)
{
    const tw_string *by = r->inputs[1];
    const char *at = text->data ? text->data : "", *end = at + text->size;
    bool fits = by->size   ? split_by(s, by, at, end, count, values)
                : s->words ? split_by_spaces(s, at, end, count, values)
                           : split_by_bytes(at, end, count, values);
    return fits ? TW_OK : twi_fail_memory(r->error, r->node);
}

static tw_status run_split(const twi_run *r)
{
    const splitter *s = r->state;
    const tw_string *texts = r->inputs[0];
    int64_t n = r->input_operands[0].elements, total = 0, most = 0, at = 0, *indices;
    tw_string *values;
    tw_status status = TW_OK;
    for (int64_t i = 0; i < n && status == TW_OK; i++) {
        int64_t count = 0;
        status = split(r, s, &texts[i], &count, NULL);
        total += count;
        most = count > most ? count : most;
    }
    if (status == TW_OK)
        status = twi_make_output(r, 0, TW_SHAPE(total, 2), (void **)&indices);
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(total), (void **)&values);
    for (int64_t i = 0; i < n && status == TW_OK; i++) {
        int64_t first = at;
        status = split(r, s, &texts[i], &at, values);
        for (int64_t k = first; k < at; k++) {
            indices[2 * k] = i;
            indices[2 * k + 1] = k - first;
        }
    }
    ((int64_t *)r->outputs[2])[0] = n;
    ((int64_t *)r->outputs[2])[1] = most;
    return status;
}

const twi_kernel twi_cpu_parse_text_kernels[] = {
    {"DecodeCSV", "plain", 0, prepare_csv, run_csv, twi_free},
    {"StringSplit", "plain", 0, prepare_split, run_split, twi_free},
    {"StringSplitV2", "plain", 0, prepare_split, run_split, twi_free},
    {0},
};
