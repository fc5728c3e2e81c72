/* beams.c - CTCBeamSearchDecoder: the likeliest sequences of labels, each over all the ways to stretch it and to lay
 * blanks between (Graves 2012, chapter 7.5.3), of so many as a beam holds. Likelihoods are logarithms, in double. */
#include "base/memory.h"
#include "device/kernel.h"
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

/* A sequence of labels: its last one, behind those of its parent. */
typedef struct entry {
    int32_t parent, child, sibling; /* entries; -1: none */
    int32_t label;                  /* -1: the empty sequence */
    int32_t users;                  /* its children, and the lists that it is in */
    struct likelihood {
        double total, label, blank; /* of all ways; of those that end with its label; with a blank */
    } now, before;                  /* at this step and the one before */
} entry;

typedef struct beam {
    int64_t width, paths, classes;
    bool merges;
} beam;

/* The search for one sequence. Entries that nobody uses are used again: parent is the next of these. */
typedef struct search {
    const beam *b;
    entry *entries;
    int32_t unused, count;
    int32_t *leaves, *branches; /* [width]: the beam, the likeliest first, and what it was a step before */
    int64_t num_leaves;
    double *log_y; /* [classes] */
} search;

static const struct likelihood impossible = {-INFINITY, -INFINITY, -INFINITY};

static double log_add(double a, double b)
{
    double most = fmax(a, b);
    return isinf(most) ? most : most + log1p(exp(fmin(a, b) - most));
}

static int32_t add_entry(search *s, int32_t parent, int32_t label)
{
    int32_t at = s->unused;
    if (at < 0)
        at = s->count++;
    else
        s->unused = s->entries[at].parent;
    s->entries[at] = (entry){parent, -1, -1, label, 0, impossible, impossible};
    if (parent >= 0) {
        s->entries[at].sibling = s->entries[parent].child;
        s->entries[parent].child = at;
        s->entries[parent].users++;
    }
    return at;
}

static void leave(search *s, int32_t at)
{
    while (at >= 0 && --s->entries[at].users == 0) {
        int32_t parent = s->entries[at].parent, *link = parent >= 0 ? &s->entries[parent].child : NULL;
        while (link && *link != at)
            link = &s->entries[*link].sibling;
        if (link)
            *link = s->entries[at].sibling;
        s->entries[at].parent = s->unused;
        s->unused = at;
        at = parent;
    }
}

static int32_t find_child(const search *s, int32_t parent, int32_t label)
{
    int32_t at = s->entries[parent].child;
    while (at >= 0 && s->entries[at].label != label)
        at = s->entries[at].sibling;
    return at;
}

static bool is_in_beam(const search *s, int32_t at)
{
    return s->entries[at].now.total > -INFINITY;
}

static bool fits(const search *s, double total)
{
    return total > -INFINITY &&
           (s->num_leaves < s->b->width || total > s->entries[s->leaves[s->num_leaves - 1]].now.total);
}

static void enter(search *s, int32_t at)
{
    int64_t place = s->num_leaves;
    if (place == s->b->width) {
        int32_t last = s->leaves[--place];
        s->entries[last].now = impossible;
        leave(s, last);
    }
    s->num_leaves = place + 1;
    for (; place > 0 && s->entries[s->leaves[place - 1]].now.total < s->entries[at].now.total; place--)
        s->leaves[place] = s->leaves[place - 1];
    s->leaves[place] = at;
    s->entries[at].users++;
}

/* What the sequence of an entry becomes when one more label follows. */
static double before_label(const search *s, int32_t at, int32_t label)
{
    const entry *e = &s->entries[at];
    return e->label == label ? e->before.blank : e->before.total;
}

/* The entry stays as it is for a step: its label lasts, or comes only now, or a blank follows. */
static void stay(search *s, int32_t at)
{
    entry *e = &s->entries[at];
    if (e->parent >= 0) {
        if (is_in_beam(s, e->parent))
            e->now.label = log_add(e->now.label, before_label(s, e->parent, e->label));
        e->now.label += s->log_y[e->label];
    }
    e->now.blank = e->before.total + s->log_y[s->b->classes - 1];
    e->now.total = log_add(e->now.blank, e->now.label);
}

/* Sequences with one label more, where they are likely enough. */
static void grow(search *s, int32_t at)
{
    for (int32_t label = 0; label < s->b->classes - 1 && fits(s, s->entries[at].before.total); label++) {
        double total = s->log_y[label] + before_label(s, at, label);
        int32_t child = find_child(s, at, label);
        if (child >= 0 && is_in_beam(s, child))
            continue;
        if (!fits(s, total)) {
            if (child >= 0) /* it has left the beam in this step, and does not grow: so TensorFlow has it */
                s->entries[child].before = impossible;
            continue;
        }
        if (child < 0)
            child = add_entry(s, at, label);
        s->entries[child].now = (struct likelihood){total, total, -INFINITY};
        enter(s, child);
    }
}

static void step(search *s)
{
    int64_t count = s->num_leaves;
    memcpy(s->branches, s->leaves, sizeof *s->leaves * (size_t)count);
    s->num_leaves = 0;
    for (int64_t i = 0; i < count; i++)
        s->entries[s->branches[i]].before = s->entries[s->branches[i]].now;
    for (int64_t i = 0; i < count; i++) {
        stay(s, s->branches[i]);
        enter(s, s->branches[i]);
    }
    for (int64_t i = 0; i < count; i++)
        grow(s, s->branches[i]);
    for (int64_t i = 0; i < count; i++)
        leave(s, s->branches[i]);
}

/* ---- the op: inputs [T,B,C], sequence_length [B] ------------------------------------------------------------------ */

/* What workspace lies where. */
typedef struct places {
    size_t log_y, entries, leaves, branches, lengths, labels, end;
} places;

static places lay_out(const beam *b, const int64_t *dims)
{
    places p = {0};
    size_t width = (size_t)b->width, sequences = (size_t)(dims[1] * b->paths);
    p.log_y = twi_make_room(&p.end, sizeof(double) * (size_t)dims[2]);
    /* those that leaves and branches end: as many for each as there are steps, and the empty one */
    p.entries = twi_make_room(&p.end, sizeof(entry) * (2 * width * (size_t)(dims[0] + 1) + 2));
    p.leaves = twi_make_room(&p.end, sizeof(int32_t) * width);
    p.branches = twi_make_room(&p.end, sizeof(int32_t) * width);
    p.lengths = twi_make_room(&p.end, sizeof(int64_t) * sequences);
    p.labels = twi_make_room(&p.end, sizeof(int32_t) * sequences * (size_t)dims[0]);
    return p;
}

static tw_status prepare(twi_prepare *p)
{
    const int64_t *dims = p->inputs[0].shape.dims;
    beam b = {twi_attr_int(p->attrs, "beam_width", 1), twi_attr_int(p->attrs, "top_paths", 1), dims[2],
              twi_attr_bool(p->attrs, "merge_repeated", true)};
    double entries = 2.0 * (double)b.width * ((double)dims[0] + 1) + 2;
    double labels = (double)dims[1] * (double)b.paths * (double)dims[0];
    if (entries > INT32_MAX || entries * sizeof(entry) + labels * sizeof(int32_t) > 1e11)
        return twi_fail(p->error, TW_RESOURCE_EXHAUSTED, "%s '%s': a beam of %lld over %lld steps takes too much memory",
                        p->op, p->node, (long long)b.width, (long long)dims[0]);
    p->workspace = lay_out(&b, dims).end;
    return twi_keep(p, &b, sizeof b);
}

static void read_step(const twi_run *r, const search *s, int64_t first)
{
    tw_tensor view = {.dtype = r->input_operands[0].dtype, .data = (void *)r->inputs[0]};
    double sum = -INFINITY;
    for (int64_t c = 0; c < s->b->classes; c++) {
        s->log_y[c] = tw_tensor_value(&view, first + c);
        sum = log_add(sum, s->log_y[c]);
    }
    for (int64_t c = 0; c < s->b->classes; c++)
        s->log_y[c] -= sum;
}

/* The labels of an entry's sequence; returns how many. */
static int64_t spell(const search *s, int32_t at, int32_t *labels)
{
    int64_t count = 0;
    for (int32_t after = -1; s->entries[at].parent >= 0; after = s->entries[at].label, at = s->entries[at].parent)
        if (!s->b->merges || s->entries[at].label != after)
            labels[count++] = s->entries[at].label;
    for (int64_t i = 0; i < count / 2; i++) {
        int32_t label = labels[i];
        labels[i] = labels[count - 1 - i];
        labels[count - 1 - i] = label;
    }
    return count;
}

/* The likeliest sequences of one of the batch: their lengths, labels and likelihoods. */
static tw_status decode(const twi_run *r, search *s, int64_t batch, int64_t *lengths, int32_t *labels)
{
    const int64_t *dims = r->input_operands[0].shape.dims, steps = ((const int32_t *)r->inputs[1])[batch];
    if (steps < 0 || steps > dims[0])
        return twi_fail(r->error, TW_FAILED_PRECONDITION, "'%s': sequence_length(%lld) is %lld, of %lld steps", r->node,
                        (long long)batch, (long long)steps, (long long)dims[0]);
    s->unused = -1;
    s->count = 0;
    s->num_leaves = 0;
    int32_t root = add_entry(s, -1, -1);
    s->entries[root].now = (struct likelihood){0, -INFINITY, 0};
    enter(s, root);
    for (int64_t t = 0; t < steps; t++) {
        read_step(r, s, (t * dims[1] + batch) * dims[2]);
        step(s);
    }
    if (s->num_leaves < s->b->paths)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': Less leaves in the beam search than requested: %lld, top_paths is %lld", r->node,
                        (long long)s->num_leaves, (long long)s->b->paths);
    for (int64_t i = 0; i < s->b->paths; i++) {
        double total = s->entries[s->leaves[i]].now.total;
        void *to = r->outputs[3 * s->b->paths];
        lengths[i] = spell(s, s->leaves[i], labels + i * dims[0]);
        if (r->input_operands[0].dtype == TW_FLOAT64)
            ((double *)to)[batch * s->b->paths + i] = total;
        else
            ((float *)to)[batch * s->b->paths + i] = (float)total;
    }
    return TW_OK;
}

/* The path of that number of all the batch, as a sparse tensor. */
static tw_status put_path(const twi_run *r, const beam *b, int64_t path, const int64_t *lengths, const int32_t *labels)
{
    const int64_t *dims = r->input_operands[0].shape.dims;
    int64_t *indices = NULL, *values = NULL, total = 0, longest = 0, at = 0;
    for (int64_t k = 0; k < dims[1]; k++) {
        int64_t length = lengths[k * b->paths + path];
        total += length;
        longest = length > longest ? length : longest;
    }
    tw_status status = twi_make_output(r, (int)path, TW_SHAPE(total, 2), (void **)&indices);
    if (status == TW_OK)
        status = twi_make_output(r, (int)(b->paths + path), TW_SHAPE(total), (void **)&values);
    if (status != TW_OK)
        return status;
    for (int64_t k = 0; k < dims[1]; k++)
        for (int64_t i = 0; i < lengths[k * b->paths + path]; i++, at++) {
            indices[2 * at] = k;
            indices[2 * at + 1] = i;
            values[at] = labels[(k * b->paths + path) * dims[0] + i];
        }
    ((int64_t *)r->outputs[2 * b->paths + path])[0] = dims[1];
    ((int64_t *)r->outputs[2 * b->paths + path])[1] = longest;
    return TW_OK;
}

static tw_status run(const twi_run *r)
{
    const beam *b = r->state;
    const int64_t *dims = r->input_operands[0].shape.dims;
    places p = lay_out(b, dims);
    char *w = r->workspace;
    int64_t *lengths = (int64_t *)(w + p.lengths);
    int32_t *labels = (int32_t *)(w + p.labels);
    search s = {.b = b,
                .entries = (entry *)(w + p.entries),
                .leaves = (int32_t *)(w + p.leaves),
                .branches = (int32_t *)(w + p.branches),
                .log_y = (double *)(w + p.log_y)};
    tw_status status = TW_OK;
    for (int64_t k = 0; k < dims[1] && status == TW_OK; k++)
        status = decode(r, &s, k, lengths + k * b->paths, labels + k * b->paths * dims[0]);
    for (int64_t path = 0; path < b->paths && status == TW_OK; path++)
        status = put_path(r, b, path, lengths, labels);
    return status;
}

const twi_kernel twi_cpu_beams_kernels[] = {
    {"CTCBeamSearchDecoder", "plain", TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_FLOAT64), prepare, run, twi_free},
    {0},
};
