/* sets.c - sets along the last axis of tensors, dense or sparse: their sizes, and what two of them make. */
#include "base/array.h"
#include "device/cpu/plain/move.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- members ---------------------------------------------------------------------------------------------------- */

typedef struct member {
    const tw_string *text; /* NULL: a number */
    int64_t number;
} member;

static member member_at(tw_dtype dtype, const void *data, int64_t i)
{
    return dtype == TW_STRING ? (member){.text = (const tw_string *)data + i}
                              : (member){.number = twi_integer_at(dtype, data, i)};
}

static int compare(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (!x->text)
        return x->number < y->number ? -1 : x->number > y->number;
    size_t common = x->text->size < y->text->size ? x->text->size : y->text->size;
    int order = common ? memcmp(x->text->data, y->text->data, common) : 0;
    return order ? order : x->text->size < y->text->size ? -1 : x->text->size > y->text->size;
}

typedef TWI_ARRAY(member) members;

/* Sorts them and leaves each once. */
static void make_set(members *m)
{
    int kept = 0;
    if (m->count)
        qsort(m->items, (size_t)m->count, sizeof *m->items, compare);
    for (int i = 0; i < m->count; i++)
        if (kept == 0 || compare(&m->items[kept - 1], &m->items[i]) != 0)
            m->items[kept++] = m->items[i];
    m->count = kept;
}

/* ---- collections: sets one after the other ---------------------------------------------------------------------- */

/* Of a tensor with the axes `dims`; a set is what lies along the last one, and has the number of its place among the
 * others. */
typedef struct collection {
    tw_dtype dtype;
    const void *values;
    const int64_t *indices; /* of a sparse one; NULL: dense */
    int64_t count, at;      /* elements; the next one */
    int rank;
    int64_t dims[TW_MAX_RANK];
} collection;

static tw_status dense_collection(const twi_run *r, int input, collection *c)
{
    const twi_operand *operand = &r->input_operands[input];
    *c = (collection){operand->dtype, r->inputs[input], NULL, operand->elements, 0, operand->shape.rank, {0}};
    memcpy(c->dims, operand->shape.dims, sizeof *c->dims * (size_t)c->rank);
    return TW_OK;
}

/* Indices, which must be in order, values and shape. */
static tw_status sparse_collection(const twi_run *r, int first, collection *c)
{
    const twi_operand *in = &r->input_operands[first];
    int64_t rank = in[2].elements, before[TW_MAX_RANK] = {0};
    if (in[0].shape.dims[0] != in[1].elements || in[0].shape.dims[1] != rank || rank < 2 || rank > TW_MAX_RANK)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices [%lld,%lld] for %lld values and %lld axes",
                        r->node, (long long)in[0].shape.dims[0], (long long)in[0].shape.dims[1],
                        (long long)in[1].elements, (long long)rank);
    *c = (collection){in[1].dtype, r->inputs[first + 1], r->inputs[first], in[1].elements, 0, (int)rank, {0}};
    memcpy(c->dims, r->inputs[first + 2], sizeof *c->dims * (size_t)rank);
    for (int64_t i = 0; i < c->count; i++) {
        const int64_t *index = c->indices + i * rank;
        int k = 0;
        while (i > 0 && k < rank && index[k] == before[k])
            k++;
        bool within = i == 0 || (k < rank && index[k] > before[k]);
        for (int j = 0; j < rank && within; j++)
            within = index[j] >= 0 && index[j] < c->dims[j];
        if (!within)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices[%lld] is out of order or out of bounds",
                            r->node, (long long)i);
        memcpy(before, index, sizeof *before * (size_t)rank);
    }
    return TW_OK;
}

/* The number of the set in which element i lies. */
static int64_t set_of(const collection *c, int64_t i)
{
    int64_t number = 0;
    if (!c->indices)
        return c->dims[c->rank - 1] ? i / c->dims[c->rank - 1] : 0;
    for (int k = 0; k < c->rank - 1; k++)
        number = number * c->dims[k] + c->indices[i * c->rank + k];
    return number;
}

static int64_t next_set(const collection *c)
{
    return c->at < c->count ? set_of(c, c->at) : INT64_MAX;
}

/* What lies in that set, if it is the next. */
static bool take_set(collection *c, int64_t number, members *m)
{
    bool fits = true;
    m->count = 0;
    for (; fits && next_set(c) == number; c->at++)
        fits = twi_push(m, member_at(c->dtype, c->values, c->at));
    make_set(m);
    return fits;
}

/* ---- SetSize ---------------------------------------------------------------------------------------------------- */

static tw_status run_size(const twi_run *r)
{
    collection c;
    members m = {0};
    int32_t *sizes = r->outputs[0];
    tw_status status = twi_clear_elements(r, r->output_operands[0].elements, TW_INT32, sizes);
    if (status == TW_OK)
        status = sparse_collection(r, 0, &c);
    for (int64_t number; status == TW_OK && (number = next_set(&c)) != INT64_MAX;) {
        if (!take_set(&c, number, &m))
            status = twi_fail_memory(r->error, r->node);
        sizes[number] = m.count;
    }
    twi_array_free(&m);
    return status;
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

enum { FIRST_ALONE = 1, SECOND_ALONE = 2, BOTH = 4 }; /* state: which members are wanted */

static tw_status prepare_operation(twi_prepare *p)
{
    static const struct {
        const char *name;
        int wanted;
    } operations[] = {{"a-b", FIRST_ALONE},
                      {"b-a", SECOND_ALONE},
                      {"intersection", BOTH},
                      {"union", FIRST_ALONE | SECOND_ALONE | BOTH}};
    const char *name = twi_attr_string(p->attrs, "set_operation", "");
    for (int i = 0; i < 4; i++)
        if (strcasecmp(name, operations[i].name) == 0)
            p->state = (void *)(intptr_t)operations[i].wanted;
    return p->state
               ? TW_OK
               : twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': Invalid set_operation %s.", p->op, p->node, name);
}

/* The members of results, set by set. */
typedef struct results {
    TWI_ARRAY(int64_t) sets; /* of each member, its set */
    members members;
    int64_t most; /* in one set */
} results;

static bool combine(intptr_t wanted, int64_t number, const members *a, const members *b, results *out)
{
    int before = out->members.count;
    bool fits = true;
    for (int i = 0, k = 0; fits && (i < a->count || k < b->count);) {
        int order = i == a->count ? 1 : k == b->count ? -1 : compare(&a->items[i], &b->items[k]);
        member m = order <= 0 ? a->items[i] : b->items[k];
        if (wanted & (order < 0 ? FIRST_ALONE : order > 0 ? SECOND_ALONE : BOTH))
            fits = twi_push(&out->members, m) && twi_push(&out->sets, number);
        i += order <= 0;
        k += order >= 0;
    }
    if (out->members.count - before > out->most)
        out->most = out->members.count - before;
    return fits;
}

static tw_status put_results(const twi_run *r, const collection *like, const results *out)
{
    int rank = like->rank;
    int64_t *indices = NULL, *shape = NULL, place = 0;
    tw_dtype dtype = like->dtype;
    void *values = NULL;
    tw_status status = twi_make_output(r, 0, TW_SHAPE(out->members.count, rank), (void **)&indices);
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(out->members.count), &values);
    if (status == TW_OK)
        status = twi_make_output(r, 2, TW_SHAPE(rank), (void **)&shape);
    for (int i = 0; i < out->members.count && status == TW_OK; i++) {
        const member *m = &out->members.items[i];
        int64_t rest = out->sets.items[i];
        place = i && out->sets.items[i - 1] == rest ? place + 1 : 0;
        indices[(int64_t)i * rank + rank - 1] = place;
        for (int k = rank - 2; k >= 0; rest /= like->dims[k--])
            indices[(int64_t)i * rank + k] = rest % like->dims[k];
        /* of a little-endian number the first bytes are the narrower number */
        if (!twi_copy_elements(1, dtype, m->text ? (const void *)m->text : &m->number,
                               twi_element_of_output(values, dtype, i)))
            status = twi_fail_memory(r->error, r->node);
    }
    for (int k = 0; k < rank && status == TW_OK; k++)
        shape[k] = k == rank - 1 ? out->most : like->dims[k];
    return status;
}

static tw_status operate(const twi_run *r, collection *a, collection *b)
{
    members x = {0}, y = {0};
    results out = {.most = 0};
    tw_status status = TW_OK;
    bool alike =
        a->rank == b->rank && a->rank >= 2 && memcmp(a->dims, b->dims, sizeof *a->dims * (size_t)(a->rank - 1)) == 0;
    if (!alike)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Mismatched group shapes of %d and %d axes", r->node,
                        a->rank, b->rank);
    while (status == TW_OK && (a->at < a->count || b->at < b->count)) {
        int64_t number = next_set(a) < next_set(b) ? next_set(a) : next_set(b);
        if (!take_set(a, number, &x) || !take_set(b, number, &y) || !combine((intptr_t)r->state, number, &x, &y, &out))
            status = twi_fail_memory(r->error, r->node);
    }
    if (status == TW_OK)
        status = put_results(r, a, &out);
    twi_array_free(&x);
    twi_array_free(&y);
    twi_array_free(&out.members);
    twi_array_free(&out.sets);
    return status;
}

/* The first dense, if there are no inputs for three parts of it; likewise the second. */
static tw_status run_operation(const twi_run *r)
{
    collection a, b;
    bool first_dense = r->num_inputs < 6, second_dense = r->num_inputs == 2;
    tw_status status = first_dense ? dense_collection(r, 0, &a) : sparse_collection(r, 0, &a);
    if (status == TW_OK)
        status = second_dense ? dense_collection(r, 1, &b) : sparse_collection(r, first_dense ? 1 : 3, &b);
    return status == TW_OK ? operate(r, &a, &b) : status;
}

const twi_kernel twi_cpu_sets_kernels[] = {
    {"SetSize", "plain", 0, NULL, run_size},
    {"DenseToDenseSetOperation", "plain", 0, prepare_operation, run_operation},
    {"DenseToSparseSetOperation", "plain", 0, prepare_operation, run_operation},
    {"SparseToSparseSetOperation", "plain", 0, prepare_operation, run_operation},
    {0},
};
