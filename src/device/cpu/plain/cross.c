/* cross.c - SparseCross, SparseCrossV2 and RaggedCross: of several features of an example every combination, joined as
 * text or hashed to a number. */
#include "base/fingerprint.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/cpu/plain/move.h"
#include "tensor/tensor.h"

#include <string.h>

enum { MOST_COLUMNS = 64 };

/* A feature of all examples: values of example b from first[b] to before first[b + 1], or the same number of each. */
typedef struct column {
    tw_dtype dtype; /* int64 or string */
    const void *values;
    const int64_t *first; /* [batch + 1]; NULL: `width` each */
    int64_t width;
} column;

typedef struct cross {
    const twi_run *r;
    column *columns;
    int count;
    int64_t batch, sparse;
    int64_t buckets;
    uint64_t key;
    bool hashes;
    tw_string separator;
} cross;

static int64_t first_of(const column *c, int64_t example)
{
    return c->first ? c->first[example] : example * c->width;
}

static int64_t count_of(const column *c, int64_t example)
{
    return first_of(c, example + 1) - first_of(c, example);
}

static int64_t crosses_of(const cross *c, int64_t example)
{
    int64_t product = 1;
    for (int i = 0; i < c->count; i++)
        if (__builtin_mul_overflow(product, count_of(&c->columns[i], example), &product))
            return -1;
    return product;
}

/* ---- one of them ------------------------------------------------------------------------------------------------- */

static uint64_t shift_mix(uint64_t x)
{
    return x ^ x >> 47;
}

/* Two fingerprints as one, by TensorFlow's formula. */
static uint64_t join_fingerprints(uint64_t a, uint64_t b)
{
    const uint64_t by = UINT64_C(0xc6a4a7935bd1e995);
    uint64_t joined = ((a ^ by) ^ (shift_mix(b * by) * by)) * by;
    return shift_mix(shift_mix(joined) * by);
}

static int64_t hash_cross(const cross *c, int64_t example, const int64_t *chosen)
{
    uint64_t hash = c->key;
    for (int i = 0; i < c->count; i++) {
        const column *column = &c->columns[i];
        int64_t at = first_of(column, example) + chosen[i];
        const tw_string *text = (const tw_string *)column->values + at;
        hash = join_fingerprints(hash, column->dtype == TW_STRING ? twi_fingerprint(text->data, text->size)
                                                                  : (uint64_t)((const int64_t *)column->values)[at]);
    }
    return (int64_t)(hash % (c->buckets > 0 ? (uint64_t)c->buckets : (uint64_t)INT64_MAX));
}

static bool join_texts(const cross *c, int64_t example, const int64_t *chosen, tw_string *to)
{
    twi_text text = {0};
    for (int i = 0; i < c->count; i++) {
        const column *column = &c->columns[i];
        int64_t at = first_of(column, example) + chosen[i];
        const tw_string *word = (const tw_string *)column->values + at;
        if (i)
            twi_text_append(&text, c->separator.data, c->separator.size);
        if (column->dtype == TW_STRING)
            twi_text_append(&text, word->data, word->size);
        else
            twi_text_printf(&text, "%lld", (long long)((const int64_t *)column->values)[at]);
    }
    bool given = !text.failed && twi_string_set(to, twi_text_string(&text), text.size);
    twi_text_free(&text);
    return given;
}

/* The next combination; the last column changes fastest. */
static void step(const cross *c, int64_t example, int64_t *chosen)
{
    for (int i = c->count - 1; i >= 0; i--) {
        if (++chosen[i] < count_of(&c->columns[i], example))
            return;
        chosen[i] = 0;
    }
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* Inputs are indices, values and shapes of the sparse columns, then the dense ones; SparseCrossV2's last is the
 * separator. */
static tw_status read_sparse(const cross *c, int i, int input, column *to, int64_t *first)
{
    const twi_run *r = c->r;
    const twi_operand *places = &r->input_operands[input], *values = places + c->sparse;
    int64_t rows = places->shape.rank == 2 ? places->shape.dims[0] : -1, at = 0;
    const int64_t *indices = r->inputs[input];
    if (rows < 0 || places->shape.dims[1] != 2 || values->elements != rows)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': sparse column %d has %lld values and %lld numbers of indices, expected two each",
                        r->node, i, (long long)values->elements, (long long)places->elements);
    for (int64_t example = 0; example <= c->batch; example++) {
        while (example && at < rows && indices[2 * at] == example - 1)
            at++;
        first[example] = at;
    }
    *to = (column){values->dtype, r->inputs[input + c->sparse], first, 0};
    return at == rows ? TW_OK
                      : twi_fail(r->error, TW_INVALID_ARGUMENT,
                                 "'%s': index %lld of sparse column %d is out of order or not "
                                 "below the batch's %lld",
                                 r->node, (long long)indices[2 * at], i, (long long)c->batch);
}

static tw_status read_columns(cross *c, int64_t *places)
{
    const twi_run *r = c->r;
    tw_status status = TW_OK;
    for (int i = 0; i < c->count && status == TW_OK; i++) {
        int input = (int)(2 * c->sparse) + i;
        const twi_operand *x = &r->input_operands[input];
        bool is_sparse = i < c->sparse;
        int64_t batch = is_sparse ? x->elements == 2 ? *(const int64_t *)r->inputs[input] : -1
                                  : x->shape.rank == 2 ? x->shape.dims[0] : -1;
        if (batch < 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': column %d is no matrix", r->node, i);
        if (i && batch != c->batch)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Expected batch size %lld, got %lld of column %d",
                            r->node, (long long)c->batch, (long long)batch, i);
        c->batch = batch;
        if (!is_sparse)
            c->columns[i] = (column){x->dtype, r->inputs[input], NULL, x->shape.dims[1]};
    }
    for (int i = 0; i < c->sparse && status == TW_OK; i++)
        status = read_sparse(c, i, i, &c->columns[i], places + i * (c->batch + 1));
    return status;
}

/* One after the other, and their places where somebody wants them. */
static tw_status write_values(const cross *c, void *values, int64_t *index)
{
    int64_t chosen[MOST_COLUMNS] = {0}, at = 0;
    for (int64_t example = 0; example < c->batch; example++) {
        int64_t count = crosses_of(c, example);
        memset(chosen, 0, sizeof chosen);
        for (int64_t k = 0; k < count; k++, at++, step(c, example, chosen)) {
            if (index) {
                *index++ = example;
                *index++ = k;
            }
            if (c->hashes)
                ((int64_t *)values)[at] = hash_cross(c, example, chosen);
            else if (!join_texts(c, example, chosen, (tw_string *)values + at))
                return twi_fail_memory(c->r->error, c->r->node);
        }
    }
    return TW_OK;
}

static tw_status write(const cross *c, int64_t total, int64_t widest)
{
    const twi_run *r = c->r;
    void *indices, *values, *shape;
    tw_status status = twi_make_output(r, 0, TW_SHAPE(total, 2), &indices);
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(total), &values);
    if (status == TW_OK)
        status = twi_make_output(r, 2, TW_SHAPE(2), &shape);
    if (status == TW_OK && total)
        status = write_values(c, values, indices);
    if (status == TW_OK) {
        ((int64_t *)shape)[0] = c->batch;
        ((int64_t *)shape)[1] = widest;
    }
    return status;
}

typedef struct settings {
    int64_t buckets, sparse;
    uint64_t key;
    bool hashes, is_separated;
    int ragged;                   /* of RaggedCross: how many of its columns are, */
    char order[MOST_COLUMNS + 1]; /* and of what kind each is */
} settings;

static tw_status count_crosses(const cross *c, int64_t *total, int64_t *widest)
{
    bool any = true; /* of an empty column there may be more rows than can be gone through */
    for (int i = 0; i < c->count; i++)
        any = any && (c->columns[i].first || c->columns[i].width);
    *total = *widest = 0;
    for (int64_t i = 0; i < c->batch && any; i++) {
        int64_t crosses = crosses_of(c, i);
        if (crosses < 0 || __builtin_add_overflow(*total, crosses, total))
            return twi_fail(c->r->error, TW_RESOURCE_EXHAUSTED, "'%s': more combinations than can be counted",
                            c->r->node);
        *widest = crosses > *widest ? crosses : *widest;
    }
    return TW_OK;
}

static tw_status run(const twi_run *r)
{
    const settings *s = r->state;
    int last = r->num_inputs - 1, count = last + !s->is_separated - 2 * (int)s->sparse;
    column columns[MOST_COLUMNS];
    tw_string separator = s->is_separated ? *(const tw_string *)r->inputs[last] : (tw_string){"_X_", 3};
    cross c = {r, columns, count, 0, s->sparse, s->buckets, s->key, s->hashes, separator};
    int64_t total = 0, widest = 0, batch = 0;
    const int64_t *shape = s->sparse ? r->inputs[2 * s->sparse] : NULL;
    if (shape && r->input_operands[2 * s->sparse].elements == 2)
        batch = shape[0];
    if (batch < 0 || batch > INT32_MAX)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': a batch of %lld", r->node, (long long)batch);
    int64_t *places = twi_alloc_array((size_t)(s->sparse * (batch + 1) + 1), sizeof *places);
    if (!places)
        return twi_fail_memory(r->error, r->node);
    tw_status status = read_columns(&c, places);
    if (status == TW_OK)
        status = count_crosses(&c, &total, &widest);
    if (status == TW_OK)
        status = write(&c, total, widest);
    twi_free(places);
    return status;
}

/* ---- ragged ------------------------------------------------------------------------------------------------------ */

/* Row splits begin with 0, do not fall, and end with the number of values. */
static tw_status read_splits(const cross *c, int input, int64_t values, int64_t *first)
{
    const twi_run *r = c->r;
    for (int64_t i = 0; i <= c->batch; i++) {
        first[i] = twi_input_int(r, input, i);
        if (i ? first[i] < first[i - 1] : first[i] != 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': row split %lld of input %d is %lld, expected %s",
                            r->node, (long long)i, input, (long long)first[i], i ? "no less than the one before" : "0");
    }
    if (first[c->batch] == values)
        return TW_OK;
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': the last row split of input %d is %lld, of %lld values",
                    r->node, input, (long long)first[c->batch], (long long)values);
}

/* How many examples each column of RaggedCross says that there are. */
static tw_status find_batch(cross *c, const settings *s)
{
    const twi_run *r = c->r;
    int sparse = 2 * s->ragged, dense = sparse + 3 * (int)s->sparse;
    for (int i = s->ragged; i < r->num_inputs; i++) {
        const twi_operand *x = &r->input_operands[i];
        int64_t batch = i < sparse ? x->elements - 1 : x->shape.rank == 2 ? x->shape.dims[0] : -1;
        if (i >= sparse && i < sparse + 2 * s->sparse)
            continue; /* their shapes say it */
        if (i >= sparse && i < dense)
            batch = x->elements == 2 ? *(const int64_t *)r->inputs[i] : -1;
        if (batch < 0 || batch > INT32_MAX)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': input %d tells of no number of rows", r->node, i);
        if (c->batch >= 0 && batch != c->batch)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': input %d has %lld rows, those before %lld", r->node,
                            i, (long long)batch, (long long)c->batch);
        c->batch = batch;
    }
    c->batch = c->batch < 0 ? 0 : c->batch;
    return TW_OK;
}

static tw_status read_in_order(const cross *c, const settings *s, int64_t *places)
{
    const twi_run *r = c->r;
    int ragged = 0, sparse = 0, dense = 2 * s->ragged + 3 * (int)s->sparse;
    tw_status status = TW_OK;
    for (int i = 0; i < c->count && status == TW_OK; i++, places += c->batch + 1) {
        const twi_operand *x;
        switch (s->order[i]) {
        case 'R':
            x = &r->input_operands[ragged];
            status = read_splits(c, s->ragged + ragged, x->elements, places);
            c->columns[i] = (column){x->dtype, r->inputs[ragged++], places, 0};
            break;
        case 'S':
            status = read_sparse(c, i, 2 * s->ragged + sparse++, &c->columns[i], places);
            break;
        default:
            x = &r->input_operands[dense];
            c->columns[i] = (column){x->dtype, r->inputs[dense++], NULL, x->shape.dims[1]};
        }
    }
    return status;
}

static tw_status write_ragged(const cross *c, int64_t total)
{
    const twi_run *r = c->r;
    void *values, *splits;
    tw_status status = twi_make_output(r, 0, TW_SHAPE(total), &values);
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(c->batch + 1), &splits);
    if (status == TW_OK && total)
        status = write_values(c, values, NULL);
    int64_t end = 0;
    for (int64_t i = 0; i <= c->batch && status == TW_OK; i++) {
        if (r->output_operands[1].dtype == TW_INT64)
            ((int64_t *)splits)[i] = end;
        else
            ((int32_t *)splits)[i] = (int32_t)end;
        end += i < c->batch ? crosses_of(c, i) : 0;
    }
    return status;
}

static tw_status run_ragged(const twi_run *r)
{
    const settings *s = r->state;
    column columns[MOST_COLUMNS];
    cross c = {r, columns, (int)strlen(s->order), -1, s->sparse, s->buckets, s->key, s->hashes, {"_X_", 3}};
    int64_t total, widest;
    tw_status status = find_batch(&c, s);
    if (status != TW_OK)
        return status;
    int64_t *places = twi_alloc_array((size_t)(c.count * (c.batch + 1) + 1), sizeof *places);
    if (!places)
        return twi_fail_memory(r->error, r->node);
    status = read_in_order(&c, s, places);
    if (status == TW_OK)
        status = count_crosses(&c, &total, &widest);
    if (status == TW_OK && total > INT32_MAX && r->output_operands[1].dtype == TW_INT32)
        status = twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld combinations, more than int32 row splits can tell",
                          r->node, (long long)total);
    if (status == TW_OK)
        status = write_ragged(&c, total);
    twi_free(places);
    return status;
}

static tw_status prepare_ragged(twi_prepare *p)
{
    const char *order = twi_attr_string(p->attrs, "input_order", "");
    settings s = {.buckets = twi_attr_int(p->attrs, "num_buckets", 0),
                  .sparse = twi_attr_int(p->attrs, "Nsparse", 0),
                  .key = (uint64_t)twi_attr_int(p->attrs, "hash_key", 0),
                  .hashes = twi_attr_bool(p->attrs, "hashed_output", false)};
    if (strlen(order) > MOST_COLUMNS)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': the most columns are 64", p->op, p->node);
    strcpy(s.order, order);
    twi_attr_ints(p->attrs, "ragged_values_types", &s.ragged);
    return twi_keep(p, &s, sizeof s);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static tw_status prepare(twi_prepare *p)
{
    settings s = {.buckets = twi_attr_int(p->attrs, "num_buckets", 0),
                  .sparse = twi_attr_int(p->attrs, "N", 0),
                  .key = (uint64_t)twi_attr_int(p->attrs, "hash_key", 0),
                  .hashes = twi_attr_bool(p->attrs, "hashed_output", false),
                  .is_separated = strcmp(p->op, "SparseCrossV2") == 0};
    if (p->num_inputs - s.is_separated - 2 * s.sparse > MOST_COLUMNS)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': the most columns are 64", p->op, p->node);
    return twi_keep(p, &s, sizeof s);
}

const twi_kernel twi_cpu_cross_kernels[] = {
    {"SparseCross", "plain", 0, prepare, run, twi_free},
    {"SparseCrossV2", "plain", 0, prepare, run, twi_free},
    {"RaggedCross", "plain", 0, prepare_ragged, run_ragged, twi_free},
    {0},
};
