/* ngrams.c - StringNGrams: runs of neighbouring words of each row, joined, with pads before the first and behind the
 * last. */
#include "base/memory.h"
#include "base/text.h"
#include "device/cpu/plain/move.h"

#include <string.h>

typedef struct ngrams {
    const tw_string *separator, *left, *right; /* the node's */
    const int64_t *widths;
    int num_widths;
    int64_t pads;     /* at each end of a row; -1: one less than the words of a run */
    bool keeps_short; /* a row too short for any run becomes one */
} ngrams;

static tw_status prepare_ngrams(twi_prepare *p)
{
    ngrams s = {.separator = &twi_attr_find(p->attrs, "separator")->s, .left = &twi_attr_find(p->attrs, "left_pad")->s,
                .right = &twi_attr_find(p->attrs, "right_pad")->s, .pads = twi_attr_int(p->attrs, "pad_width", -1),
                .keeps_short = twi_attr_bool(p->attrs, "preserve_short_sequences", false)};
    s.widths = twi_attr_ints(p->attrs, "ngram_widths", &s.num_widths);
    for (int i = 0; i < s.num_widths; i++)
        if (s.widths[i] < 1 || s.widths[i] > INT32_MAX)
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': ngram_widths[%d] is %lld, expected 1 at least",
                            p->op, p->node, i, (long long)s.widths[i]);
    return twi_keep(p, &s, sizeof s);
}

static int64_t pads_for(const ngrams *s, int64_t width)
{
    return s->pads < 0 || s->pads > width - 1 ? width - 1 : s->pads;
}

static int64_t runs_of(const ngrams *s, int64_t words, int64_t width)
{
    int64_t runs = words + 2 * pads_for(s, width) - width + 1;
    return runs > 0 ? runs : 0;
}

/* Of a row too short for any run: all of it with its pads. Where pads are as many as a run wants, no row is. */
static int64_t short_width(const ngrams *s, int64_t words)
{
    return words + 2 * (s->pads < 0 ? 0 : s->pads);
}

static void put(twi_text *text, const tw_string *part)
{
    twi_text_append(text, part->data ? part->data : "", part->size);
}

/* One run: pads, words, pads, with the separator between them. */
static tw_status join(const twi_run *r, tw_string *to, int64_t left, const tw_string *words, int64_t count, int64_t right)
{
    const ngrams *s = r->state;
    twi_text text = {0};
    for (int64_t i = 0; i < left + count + right; i++) {
        if (i > 0)
            put(&text, s->separator);
        put(&text, i < left ? s->left : i < left + count ? &words[i - left] : s->right);
    }
    bool given = !text.failed && twi_string_set(to, twi_text_string(&text), text.size);
    twi_text_free(&text);
    return given ? TW_OK : twi_fail_memory(r->error, r->node);
}

/* The runs of one width, from number *at on. */
static tw_status join_runs(const twi_run *r, const tw_string *words, int64_t width, int64_t pads, int64_t runs,
                           tw_string *to, int64_t *at)
{
    tw_status status = TW_OK;
    for (int64_t k = 0; k < runs && status == TW_OK; k++) {
        int64_t left = pads > k ? pads - k : 0, right = pads > runs - 1 - k ? pads - (runs - 1 - k) : 0;
        status = join(r, &to[(*at)++], left, words + (left ? 0 : k - pads), width - left - right, right);
    }
    return status;
}

static tw_status check_splits(const twi_run *r)
{
    int64_t rows = r->input_operands[1].elements - 1, words = r->input_operands[0].elements;
    for (int64_t i = 0; i <= rows; i++) {
        int64_t split = twi_input_int(r, 1, i), before = i ? twi_input_int(r, 1, i - 1) : 0;
        if ((i == 0 && split != 0) || split < before || split > words)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': Invalid split value %lld at %lld, expected %lld to %lld", r->node, (long long)split,
                            (long long)i, (long long)before, (long long)(i ? words : 0));
    }
    if (rows >= 0 && twi_input_int(r, 1, rows) != words)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Last split value must be data size. Expected %lld, got %lld",
                        r->node, (long long)words, (long long)twi_input_int(r, 1, rows));
    return TW_OK;
}

static tw_status run_ngrams(const twi_run *r)
{
    const ngrams *s = r->state;
    const tw_string *words = r->inputs[0];
    int64_t rows = r->input_operands[1].elements - 1, total = 0, at = 0;
    tw_string *to;
    tw_status status = check_splits(r);
    if (rows >= 0)
        twi_output_int(r, 1, 0, 0);
    for (int64_t i = 0; i < rows && status == TW_OK; i++) {
        int64_t count = twi_input_int(r, 1, i + 1) - twi_input_int(r, 1, i), before = total;
        for (int w = 0; w < s->num_widths; w++)
            total += runs_of(s, count, s->widths[w]);
        total += s->keeps_short && count > 0 && total == before;
        twi_output_int(r, 1, i + 1, total);
    }
    if (status == TW_OK)
        status = twi_make_output(r, 0, TW_SHAPE(total), (void **)&to);
    for (int64_t i = 0; i < rows && status == TW_OK; i++) {
        int64_t first = twi_input_int(r, 1, i), count = twi_input_int(r, 1, i + 1) - first, before = at;
        for (int w = 0; w < s->num_widths && status == TW_OK; w++)
            status = join_runs(r, words + first, s->widths[w], pads_for(s, s->widths[w]),
                               runs_of(s, count, s->widths[w]), to, &at);
        if (status == TW_OK && s->keeps_short && count > 0 && at == before)
            status = join_runs(r, words + first, short_width(s, count), (short_width(s, count) - count) / 2, 1, to, &at);
    }
    return status;
}

const twi_kernel twi_cpu_ngrams_kernels[] = {
    {"StringNGrams", "plain", 0, prepare_ngrams, run_ngrams, twi_free},
    {0},
};
