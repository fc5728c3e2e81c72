/* labels.c - sequences of labels: the likeliest ones by step, and how far apart two are. Never here: CTCLoss
 * (ctc.c). */
#include "base/memory.h"
#include "device/cpu/plain/move.h"

#include <math.h>
#include <string.h>

/* ---- CTCGreedyDecoder -------------------------------------------------------------------------------------------- */

typedef struct greedy {
    bool merges;
    int64_t blank;
} greedy;

static double input_at(const twi_run *r, int64_t i)
{
    return r->input_operands[0].dtype == TW_FLOAT32 ? (double)((const float *)r->inputs[0])[i]
                                                    : ((const double *)r->inputs[0])[i];
}

static void put_number(const twi_run *r, int output, int64_t i, double value)
{
    if (r->output_operands[output].dtype == TW_FLOAT32)
        ((float *)r->outputs[output])[i] = (float)value;
    else
        ((double *)r->outputs[output])[i] = value;
}

/* The labels of one of the batch; `labels` NULL: only how many. */
static int64_t decode(const twi_run *r, int64_t batch, int64_t *labels)
{
    const greedy *g = r->state;
    const int64_t *dims = r->input_operands[0].shape.dims, of = dims[1], classes = dims[2];
    int64_t count = 0, before = -1, steps = ((const int32_t *)r->inputs[1])[batch];
    double sum = 0;
    for (int64_t t = 0; t < steps; t++) {
        int64_t best = 0, row = (t * of + batch) * classes;
        for (int64_t k = 1; k < classes; k++)
            if (input_at(r, row + k) > input_at(r, row + best))
                best = k;
        sum += -input_at(r, row + best);
        if (best != g->blank && !(g->merges && best == before)) {
            if (labels)
                labels[count] = best;
            count++;
        }
        before = best;
    }
    put_number(r, 3, batch, sum);
    return count;
}

static tw_status run_greedy(const twi_run *r)
{
    const int64_t *dims = r->input_operands[0].shape.dims;
    int64_t total = 0, longest = 0, at = 0, *indices, *values, *shape = r->outputs[2];
    for (int64_t b = 0; b < dims[1]; b++) {
        int64_t steps = ((const int32_t *)r->inputs[1])[b];
        if (steps < 0 || steps > dims[0])
            return twi_fail(r->error, TW_FAILED_PRECONDITION, "'%s': sequence_length(%lld) is %lld, of %lld steps",
                            r->node, (long long)b, (long long)steps, (long long)dims[0]);
        int64_t count = decode(r, b, NULL);
        total += count;
        longest = count > longest ? count : longest;
    }
    tw_status status = twi_make_output(r, 0, TW_SHAPE(total, 2), (void **)&indices);
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(total), (void **)&values);
    for (int64_t b = 0; b < dims[1] && status == TW_OK; b++) {
        int64_t count = decode(r, b, values + at);
        for (int64_t k = 0; k < count; k++) {
            indices[2 * (at + k)] = b;
            indices[2 * (at + k) + 1] = k;
        }
        at += count;
    }
    shape[0] = dims[1];
    shape[1] = longest;
    return status;
}

static tw_status prepare_greedy(twi_prepare *p)
{
    int64_t classes = p->inputs[0].shape.dims[2], blank = twi_attr_int(p->attrs, "blank_index", -1);
    greedy g = {twi_attr_bool(p->attrs, "merge_repeated", false), blank < 0 ? classes + blank : blank};
    if (g.blank < 0 || g.blank >= classes)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': blank_index is %lld, of %lld classes", p->op, p->node,
                        (long long)blank, (long long)classes);
    return twi_keep(p, &g, sizeof g);
}

/* ---- EditDistance ------------------------------------------------------------------------------------------------ */

/* A sparse tensor whose last axis is a sequence, its entries in order. */
typedef struct sparse {
    const int64_t *indices, *shape;
    const void *values;
    tw_dtype dtype;
    int64_t entries, rank, at; /* at: the entry that comes next */
} sparse;

static sparse read_sparse(const twi_run *r, int first)
{
    return (sparse){r->inputs[first],
                    r->inputs[first + 2],
                    r->inputs[first + 1],
                    r->input_operands[first + 1].dtype,
                    r->input_operands[first + 1].elements,
                    r->input_operands[first + 2].elements,
                    0};
}

/* Which sequence an entry is of, as an element of the output; -1: of none. */
static int64_t place_of(const sparse *s, int64_t entry, const tw_shape *out)
{
    int64_t place = 0;
    for (int i = 0; i < out->rank; i++) {
        int64_t at = s->indices[entry * s->rank + i];
        if (at < 0 || at >= out->dims[i])
            return -1;
        place = place * out->dims[i] + at;
    }
    return place;
}

/* Takes the entries of a sequence; returns how many. */
static int64_t take(sparse *s, int64_t place, const tw_shape *out)
{
    int64_t first = s->at;
    while (s->at < s->entries && place_of(s, s->at, out) == place)
        s->at++;
    return s->at - first;
}

static bool same(const sparse *a, int64_t i, const sparse *b, int64_t k)
{
    const void *x = twi_element(a->values, a->dtype, i), *y = twi_element(b->values, b->dtype, k);
    const tw_string *s = x, *t = y;
    if (a->dtype == TW_STRING)
        return s->size == t->size && (s->size == 0 || memcmp(s->data, t->data, s->size) == 0);
    if (a->dtype == TW_FLOAT32)
        return *(const float *)x == *(const float *)y;
    if (a->dtype == TW_FLOAT64)
        return *(const double *)x == *(const double *)y;
    return memcmp(x, y, tw_dtype_size(a->dtype)) == 0;
}

/* Levenshtein's: how many insertions, deletions and replacements. `row` has a place more than b has elements. */
static int64_t distance(const sparse *a, int64_t first_a, int64_t n, const sparse *b, int64_t first_b, int64_t m,
                        int64_t *row)
{
    for (int64_t k = 0; k <= m; k++)
        row[k] = k;
    for (int64_t i = 0; i < n; i++) {
        int64_t diagonal = row[0];
        row[0] = i + 1;
        for (int64_t k = 0; k < m; k++) {
            int64_t other = row[k + 1] < row[k] ? row[k + 1] : row[k];
            int64_t replaced = diagonal + !same(a, first_a + i, b, first_b + k);
            diagonal = row[k + 1];
            row[k + 1] = other + 1 < replaced ? other + 1 : replaced;
        }
    }
    return row[m];
}

static tw_status prepare_distance(twi_prepare *p)
{
    static const bool normalizes = true;
    p->workspace = sizeof(int64_t) * ((size_t)p->inputs[4].elements + 1);
    p->state = twi_attr_bool(p->attrs, "normalize", true) ? (void *)(uintptr_t)&normalizes : NULL;
    for (int i = 0; i < 6; i += 3)
        if (p->inputs[i].shape.dims[0] != p->inputs[i + 1].elements ||
            p->inputs[i].shape.dims[1] != p->inputs[i + 2].elements)
            return twi_fail(p->error, TW_INVALID_ARGUMENT,
                            "%s '%s': indices [%lld,%lld] for %lld values and a shape of %lld", p->op, p->node,
                            (long long)p->inputs[i].shape.dims[0], (long long)p->inputs[i].shape.dims[1],
                            (long long)p->inputs[i + 1].elements, (long long)p->inputs[i + 2].elements);
    return TW_OK;
}

static tw_status run_distance(const twi_run *r)
{
    sparse guess = read_sparse(r, 0), truth = read_sparse(r, 3);
    const tw_shape *out = &r->output_operands[0].shape;
    float *distances = r->outputs[0];
    for (int64_t place = 0; place < r->output_operands[0].elements; place++) {
        int64_t first[2] = {guess.at, truth.at}, n = take(&guess, place, out), m = take(&truth, place, out);
        float edits = (float)distance(&guess, first[0], n, &truth, first[1], m, r->workspace);
        distances[place] = !r->state ? edits : m ? edits / (float)m : n ? INFINITY : 0;
    }
    if (guess.at < guess.entries || truth.at < truth.entries)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices are out of order or outside of the shape",
                        r->node);
    return TW_OK;
}

const twi_kernel twi_cpu_labels_kernels[] = {
    {"CTCGreedyDecoder", "plain", TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_FLOAT64), prepare_greedy, run_greedy, twi_free},
    {"EditDistance", "plain", TWI_NUMBER_TYPES | TWI_TYPE(TW_STRING), prepare_distance, run_distance},
    {0},
};
