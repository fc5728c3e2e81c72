/* parse_sequence.c - ParseSequenceExample, its V2, ParseSingleSequenceExample: features of a sequence's context, and
 * lists of features, a feature a step; of either dense ones of a shape that is told, and sparse ones. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "format/example.h"

#include <string.h>

typedef enum part { CONTEXT_SPARSE, CONTEXT_DENSE, LIST_SPARSE, LIST_DENSE, PARTS } part;

/* Where the op has what. */
typedef struct layout {
    int count[PARTS], first_output[PARTS];
    enum { KEYS_ARE_INPUTS, KEYS_ARE_VECTORS, KEYS_ARE_ATTRS } keys;
    int first_key[PARTS];          /* an input */
    const tw_string *names[PARTS]; /* of attributes */
    const twi_attr *may_miss;      /* an attribute: dense lists that need not be there; */
    int may_miss_input;            /* or an input: their names, or a bool for each */
    int first_default;             /* of the dense context */
    const tw_shape *shapes[PARTS]; /* of dense ones */
    bool lengths;                  /* of dense lists they are given, too */
} layout;

/* One that an example is asked for: its part, and its number in it. */
typedef struct wanted {
    part part;
    int i;
} wanted;

static const char *const count_attrs[] = {"context_sparse_types", "Tcontext_dense", "feature_list_sparse_types",
                                          "feature_list_dense_types"};
static const char *const key_attrs[] = {"context_sparse_keys", "context_dense_keys", "feature_list_sparse_keys",
                                        "feature_list_dense_keys"};

static bool is_sparse(part k)
{
    return k == CONTEXT_SPARSE || k == LIST_SPARSE;
}

static int keys_of(const layout *l)
{
    return l->count[CONTEXT_SPARSE] + l->count[CONTEXT_DENSE] + l->count[LIST_SPARSE] + l->count[LIST_DENSE];
}

static tw_status find_layout(twi_prepare *p, layout *l)
{
    bool single = strcmp(p->op, "ParseSingleSequenceExample") == 0,
         second = strcmp(p->op, "ParseSequenceExampleV2") == 0;
    int output = 0, input = 2;
    *l = (layout){.keys = single ? KEYS_ARE_INPUTS : second ? KEYS_ARE_VECTORS : KEYS_ARE_ATTRS, .lengths = !single};
    for (int k = 0; k < PARTS; k++) {
        static const int vectors[] = {2, 3, 5, 6};
        const twi_attr *keys = l->keys == KEYS_ARE_ATTRS ? twi_attr_find(p->attrs, key_attrs[k]) : NULL;
        l->count[k] = twi_attr_find(p->attrs, count_attrs[k])->count;
        l->first_output[k] = output;
        output += l->count[k] * (is_sparse((part)k) ? 3 : 1);
        l->first_key[k] = second ? vectors[k] : input;
        input += l->count[k];
        l->names[k] = keys ? keys->strings : NULL;
        if (keys && keys->count != l->count[k])
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': %d %s for %d features", p->op, p->node,
                            keys->count, key_attrs[k], l->count[k]);
    }
    l->shapes[CONTEXT_DENSE] = twi_attr_find(p->attrs, "context_dense_shapes")->shapes;
    l->shapes[LIST_DENSE] = twi_attr_find(p->attrs, "feature_list_dense_shapes")->shapes;
    l->may_miss = twi_attr_find(p->attrs, "feature_list_dense_missing_assumed_empty");
    l->may_miss_input = second ? 8 : 1;
    l->first_default = second ? 9 : single ? input : 2;
    return TW_OK;
}

static tw_status prepare(twi_prepare *p)
{
    layout l;
    tw_status status = find_layout(p, &l);
    if (status != TW_OK)
        return status;
    p->workspace = sizeof(twi_feature) * ((size_t)p->inputs[0].elements * (size_t)keys_of(&l) + 1);
    return twi_keep(p, &l, sizeof l);
}

static const tw_string *key_of(const twi_run *r, const layout *l, wanted w)
{
    if (l->keys == KEYS_ARE_ATTRS)
        return &l->names[w.part][w.i];
    if (l->keys == KEYS_ARE_VECTORS)
        return (const tw_string *)r->inputs[l->first_key[w.part]] + w.i;
    return r->inputs[l->first_key[w.part] + w.i];
}

static bool is_key(const tw_string *key, const char *name, size_t size)
{
    return key->size == size && (size == 0 || memcmp(key->data, name, size) == 0);
}

static tw_dtype type_of(const twi_run *r, const layout *l, wanted w)
{
    return r->output_operands[l->first_output[w.part] + (is_sparse(w.part) ? l->count[w.part] : 0) + w.i].dtype;
}

static tw_status fail_at(const twi_run *r, const layout *l, wanted w, int64_t example, const char *what,
                         const char *more)
{
    const tw_string *name = key_of(r, l, w);
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Key: %.*s, Index: %lld.  %s%s", r->node, (int)name->size,
                    name->data, (long long)example, what, more);
}

/* Whether a dense list may be missing. */
static bool may_miss(const twi_run *r, const layout *l, wanted w)
{
    const tw_string *key = key_of(r, l, w), *names = l->may_miss ? l->may_miss->strings : r->inputs[l->may_miss_input];
    int64_t count = l->may_miss ? l->may_miss->count : r->input_operands[l->may_miss_input].elements;
    if (l->keys == KEYS_ARE_VECTORS)
        return w.i < count && ((const uint8_t *)r->inputs[l->may_miss_input])[w.i];
    for (int64_t i = 0; i < count; i++)
        if (is_key(key, names[i].data, names[i].size))
            return true;
    return false;
}

/* ---- finding ---------------------------------------------------------------------------------------------------- */

/* Which features of one example are there; of several by one name the last. */
static bool find_features(const twi_run *r, const layout *l, const tw_string *bytes, bool lists, twi_feature *found)
{
    twi_example e = (lists ? twi_sequence_begin : twi_example_begin)(bytes->data, bytes->size);
    twi_feature feature;
    int read;
    while ((read = (lists ? twi_sequence_next : twi_example_next)(&e, &feature)) > 0)
        for (int k = 0, at = 0; k < PARTS; at += l->count[k++])
            for (int i = 0; i < l->count[k] && lists == (k >= LIST_SPARSE); i++)
                if (is_key(key_of(r, l, (wanted){(part)k, i}), feature.key, feature.key_size))
                    found[at + i] = feature;
    return read == 0;
}

/* Of a feature that is there: its values have the type that is wanted, and can be read. */
static tw_status check_feature(const twi_run *r, const layout *l, wanted w, int64_t example, const twi_feature *f)
{
    if (f->dtype != TW_INVALID_DTYPE && f->dtype != type_of(r, l, w))
        return fail_at(r, l, w, example, "Data types don't match. Expected type: ", tw_dtype_name(type_of(r, l, w)));
    if (twi_feature_count(f) < 0)
        return fail_at(r, l, w, example, "Its values cannot be read.", "");
    return TW_OK;
}

static tw_status fail_count(const twi_run *r, const layout *l, wanted w, int64_t example, int64_t count)
{
    char shape[96];
    const tw_string *name = key_of(r, l, w);
    return twi_fail(
        r->error, TW_INVALID_ARGUMENT,
        "'%s': Key: %.*s, Index: %lld.  Number of values != expected.  values size: %lld but output shape: %s", r->node,
        (int)name->size, name->data, (long long)example, (long long)count,
        tw_shape_text(l->shapes[w.part][w.i], shape, sizeof shape));
}

/* How many steps a list has, and values in all of them; checks each. `each`: of a dense one, how many a step has. */
static tw_status measure_list(const twi_run *r, const layout *l, wanted w, int64_t example, const twi_feature *list,
                              int64_t each, int64_t *steps, int64_t *values, int64_t *most)
{
    const char *at = list->values;
    twi_feature f;
    tw_status status = TW_OK;
    int read;
    *steps = *values = 0;
    while (status == TW_OK && (read = twi_list_next(list, &at, &f)) != 0) {
        if (read < 0)
            return fail_at(r, l, w, example, "The list cannot be read.", "");
        status = check_feature(r, l, w, example, &f);
        int64_t count = status == TW_OK ? twi_feature_count(&f) : 0;
        if (status == TW_OK && each >= 0 && count != each)
            status = fail_count(r, l, w, example, count);
        *values += count;
        *most = count > *most ? count : *most;
        ++*steps;
    }
    return status;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static bool read_into(const twi_feature *f, void *data, tw_dtype dtype, int64_t at)
{
    return twi_feature_read(f, twi_element_of_output(data, dtype, at));
}

/* The three outputs of a sparse feature. `dims` is its shape, without the batch where there is none. */
static tw_status make_sparse(const twi_run *r, const layout *l, wanted w, int64_t total, const int64_t *dims, int axes,
                             int64_t **indices, void **values)
{
    int first = l->first_output[w.part] + w.i, count = l->count[w.part];
    int64_t *shape;
    tw_status status = twi_make_output(r, first, TW_SHAPE(total, axes), (void **)indices);
    if (status == TW_OK)
        status = twi_make_output(r, first + count, TW_SHAPE(total), values);
    if (status == TW_OK)
        status = twi_make_output(r, first + 2 * count, TW_SHAPE(axes), (void **)&shape);
    for (int k = 0; k < axes && status == TW_OK; k++)
        shape[k] = dims[k];
    return status;
}

static tw_status write_sparse_context(const twi_run *r, const layout *l, wanted w, const twi_feature *features,
                                      int keys)
{
    int64_t examples = r->input_operands[0].elements, dims[] = {examples, 0}, total = 0, at = 0, *indices;
    int batch = r->input_operands[0].shape.rank;
    void *values;
    tw_status status = TW_OK;
    for (int64_t i = 0; i < examples && status == TW_OK; i++) {
        status = check_feature(r, l, w, i, &features[i * keys]);
        int64_t count = status == TW_OK ? twi_feature_count(&features[i * keys]) : 0;
        total += count;
        dims[1] = count > dims[1] ? count : dims[1];
    }
    if (status == TW_OK)
        status = make_sparse(r, l, w, total, dims + 1 - batch, batch + 1, &indices, &values);
    for (int64_t i = 0; i < examples && status == TW_OK; i++) {
        const twi_feature *f = &features[i * keys];
        int64_t count = twi_feature_count(f);
        if (!read_into(f, values, type_of(r, l, w), at))
            status = twi_fail_memory(r->error, r->node);
        for (int64_t k = 0; k < count; k++, at++) {
            indices[at * (batch + 1)] = i;
            indices[at * (batch + 1) + batch] = k;
        }
    }
    return status;
}

static tw_status write_sparse_lists(const twi_run *r, const layout *l, wanted w, const twi_feature *features, int keys)
{
    int64_t examples = r->input_operands[0].elements, dims[] = {examples, 0, 0}, total = 0, at = 0, *indices = NULL;
    int batch = r->input_operands[0].shape.rank, axes = batch + 2;
    void *values = NULL;
    tw_status status = TW_OK;
    for (int64_t i = 0; i < examples && status == TW_OK; i++) {
        int64_t steps, count;
        status = measure_list(r, l, w, i, &features[i * keys], -1, &steps, &count, &dims[2]);
        total += count;
        dims[1] = steps > dims[1] ? steps : dims[1];
    }
    if (status == TW_OK)
        status = make_sparse(r, l, w, total, dims + 1 - batch, axes, &indices, &values);
    for (int64_t i = 0; i < examples && status == TW_OK; i++) {
        const twi_feature *list = &features[i * keys];
        const char *place = list->values;
        twi_feature f;
        for (int64_t step = 0; status == TW_OK && twi_list_next(list, &place, &f) > 0; step++) {
            int64_t count = twi_feature_count(&f);
            if (!read_into(&f, values, type_of(r, l, w), at))
                status = twi_fail_memory(r->error, r->node);
            for (int64_t k = 0; k < count; k++, at++) {
                indices[at * axes] = i;
                indices[at * axes + batch] = step;
                indices[at * axes + batch + 1] = k;
            }
        }
    }
    return status;
}

static tw_status write_default(const twi_run *r, const layout *l, wanted w, int64_t example, int64_t each, void *to)
{
    const twi_operand *otherwise = &r->input_operands[l->first_default + w.i];
    const tw_string *name = key_of(r, l, w);
    if (otherwise->elements == 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': Context feature '%.*s' is required but could not be found, in example %lld", r->node,
                        (int)name->size, name->data, (long long)example);
    if (otherwise->elements != each)
        return fail_at(r, l, w, example, "The default has another shape than the feature.", "");
    return twi_copy_elements(each, otherwise->dtype, r->inputs[l->first_default + w.i], to)
               ? TW_OK
               : twi_fail_memory(r->error, r->node);
}

static tw_shape behind_batch(const twi_run *r, int64_t steps, tw_shape own)
{
    tw_shape shape = r->input_operands[0].shape;
    if (steps >= 0)
        shape.dims[shape.rank++] = steps;
    for (int k = 0; k < own.rank; k++)
        shape.dims[shape.rank++] = own.dims[k];
    return shape;
}

static tw_status write_dense_context(const twi_run *r, const layout *l, wanted w, const twi_feature *features, int keys)
{
    int64_t each = tw_shape_elements(l->shapes[w.part][w.i]);
    tw_dtype dtype = type_of(r, l, w);
    void *to;
    tw_status status =
        twi_make_output(r, l->first_output[w.part] + w.i, behind_batch(r, -1, l->shapes[w.part][w.i]), &to);
    for (int64_t i = 0; i < r->input_operands[0].elements && status == TW_OK; i++) {
        const twi_feature *f = &features[i * keys];
        status = check_feature(r, l, w, i, f);
        if (status == TW_OK && f->dtype == TW_INVALID_DTYPE)
            status = write_default(r, l, w, i, each, twi_element_of_output(to, dtype, i * each));
        else if (status == TW_OK && twi_feature_count(f) != each)
            status = fail_count(r, l, w, i, twi_feature_count(f));
        else if (status == TW_OK && !read_into(f, to, dtype, i * each))
            status = twi_fail_memory(r->error, r->node);
    }
    return status;
}

/* As many steps as the longest has; behind the others zeros. */
static tw_status write_dense_lists(const twi_run *r, const layout *l, wanted w, const twi_feature *features, int keys)
{
    int64_t each = tw_shape_elements(l->shapes[w.part][w.i]), most = 0, steps, ignored = 0, examples;
    int output = l->first_output[w.part] + w.i;
    tw_dtype dtype = type_of(r, l, w);
    int64_t *lengths = NULL;
    void *to = NULL;
    tw_status status = TW_OK;
    examples = r->input_operands[0].elements;
    if (l->lengths)
        status = twi_make_output(r, output + l->count[w.part], r->input_operands[0].shape, (void **)&lengths);
    for (int64_t i = 0; i < examples && status == TW_OK; i++) {
        const twi_feature *list = &features[i * keys];
        const tw_string *name = key_of(r, l, w);
        int64_t values;
        if (!list->values && !may_miss(r, l, w))
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': Feature list '%.*s' is required but could not be found, in example %lld", r->node,
                            (int)name->size, name->data, (long long)i);
        status = measure_list(r, l, w, i, list, each, &steps, &values, &ignored);
        most = steps > most ? steps : most;
        if (lengths)
            lengths[i] = steps;
    }
    if (status == TW_OK)
        status = twi_make_output(r, output, behind_batch(r, most, l->shapes[w.part][w.i]), &to);
    if (status == TW_OK)
        status = twi_clear_elements(r, examples * most * each, dtype, to);
    for (int64_t i = 0; i < examples && status == TW_OK; i++) {
        const char *place = features[i * keys].values;
        twi_feature f;
        for (int64_t at = i * most; status == TW_OK && twi_list_next(&features[i * keys], &place, &f) > 0; at++)
            if (!read_into(&f, to, dtype, at * each))
                status = twi_fail_memory(r->error, r->node);
    }
    return status;
}

static tw_status check_keys(const twi_run *r, const layout *l)
{
    for (int k = 0; k < PARTS && l->keys == KEYS_ARE_VECTORS; k++)
        if (r->input_operands[l->first_key[k]].elements != l->count[k])
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld %s for %d features", r->node,
                            (long long)r->input_operands[l->first_key[k]].elements, key_attrs[k], l->count[k]);
    return TW_OK;
}

static tw_status run(const twi_run *r)
{
    static tw_status (*const write[])(const twi_run *, const layout *, wanted, const twi_feature *, int) = {
        write_sparse_context, write_dense_context, write_sparse_lists, write_dense_lists};
    const layout *l = r->state;
    int keys = keys_of(l);
    int64_t examples = r->input_operands[0].elements;
    twi_feature *features = r->workspace;
    tw_status status = check_keys(r, l);
    memset(features, 0, sizeof *features * (size_t)(examples * keys));
    for (int64_t i = 0; i < examples && status == TW_OK; i++) {
        const tw_string *bytes = (const tw_string *)r->inputs[0] + i;
        if (!find_features(r, l, bytes, false, features + i * keys) ||
            !find_features(r, l, bytes, true, features + i * keys))
            status = twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Could not parse example input %lld", r->node,
                              (long long)i);
    }
    for (int k = 0, at = 0; k < PARTS; at += l->count[k++])
        for (int i = 0; i < l->count[k] && status == TW_OK; i++)
            status = write[k](r, l, (wanted){(part)k, i}, features + at + i, keys);
    return status;
}

const twi_kernel twi_cpu_parse_sequence_kernels[] = {
    {"ParseSequenceExample", "plain", 0, prepare, run, twi_free},
    {"ParseSequenceExampleV2", "plain", 0, prepare, run, twi_free},
    {"ParseSingleSequenceExample", "plain", 0, prepare, run, twi_free},
    {0},
};
