/* parse_example.c - ParseExample, ParseExampleV2, ParseSingleExample: features of serialized examples as tensors, dense
 * ones of a shape that is told, sparse and ragged ones. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "format/example.h"

#include <stdio.h>
#include <string.h>

/* Where the inputs are. */
typedef struct layout {
    enum { KEYS_ARE_INPUTS, KEYS_ARE_VECTORS, KEYS_ARE_ATTRS } keys;
    int num_sparse, num_dense, num_ragged, first_key, first_default; /* keys are sparse ones, dense ones, ragged ones */
    const tw_string *sparse_keys, *dense_keys; /* of attributes */
    const tw_dtype *sparse_types;
    const tw_shape *dense_shapes;
} layout;

static int count_keys(const layout *l)
{
    return l->num_sparse + l->num_dense + l->num_ragged;
}

static tw_status prepare(twi_prepare *p)
{
    const twi_attr *sparse_types = twi_attr_find(p->attrs, "sparse_types"),
                   *shapes = twi_attr_find(p->attrs, "dense_shapes");
    layout l = {.num_sparse = sparse_types->count,
                .num_dense = shapes->count,
                .first_key = 2,
                .sparse_types = sparse_types->types,
                .dense_shapes = shapes->shapes};
    if (strcmp(p->op, "ParseSingleExample") == 0) {
        l.keys = KEYS_ARE_ATTRS;
        l.sparse_keys = twi_attr_find(p->attrs, "sparse_keys")->strings;
        l.dense_keys = twi_attr_find(p->attrs, "dense_keys")->strings;
        l.first_default = 1;
    } else if (strcmp(p->op, "ParseExampleV2") == 0) {
        l.keys = KEYS_ARE_VECTORS;
        l.num_ragged = twi_attr_find(p->attrs, "ragged_value_types")->count;
        l.first_default = 5;
    } else {
        l.first_default = 2 + l.num_sparse + l.num_dense;
    }
    size_t examples = (size_t)p->inputs[0].elements, keys = (size_t)count_keys(&l);
    p->workspace = sizeof(twi_feature) * (examples * keys + 1);
    return twi_keep(p, &l, sizeof l);
}

static const tw_string *key_of(const twi_run *r, const layout *l, int key)
{
    bool dense = key >= l->num_sparse, ragged = key >= l->num_sparse + l->num_dense;
    int i = key - (dense ? l->num_sparse : 0) - (ragged ? l->num_dense : 0);
    if (l->keys == KEYS_ARE_ATTRS)
        return &(dense ? l->dense_keys : l->sparse_keys)[i];
    if (l->keys == KEYS_ARE_VECTORS)
        return (const tw_string *)r->inputs[l->first_key + dense + ragged] + i;
    return r->inputs[l->first_key + key];
}

static tw_status check_keys(const twi_run *r, const layout *l)
{
    static const char *const kinds[] = {"sparse", "dense", "ragged"};
    int wanted[] = {l->num_sparse, l->num_dense, l->num_ragged};
    for (int i = 0; l->keys == KEYS_ARE_VECTORS && i < 3; i++)
        if (r->input_operands[l->first_key + i].elements != wanted[i])
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld keys for %d %s features", r->node,
                            (long long)r->input_operands[l->first_key + i].elements, wanted[i], kinds[i]);
    return TW_OK;
}

static tw_dtype type_of(const twi_run *r, const layout *l, int key)
{
    return r->output_operands[key < l->num_sparse ? l->num_sparse + key : 2 * l->num_sparse + key].dtype;
}

static tw_status fail_example(const twi_run *r, const layout *l, int64_t example, int key, const char *what,
                              const char *more)
{
    const tw_string *name = key_of(r, l, key);
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Key: %.*s, Index: %lld.  %s%s", r->node, (int)name->size,
                    name->data, (long long)example, what, more);
}

/* The features that are wanted of one example; of several by one name the last. */
static tw_status find_features(const twi_run *r, const layout *l, int64_t example, twi_feature *found)
{
    const tw_string *bytes = (const tw_string *)r->inputs[0] + example;
    int keys = count_keys(l), read;
    twi_example e = twi_example_begin(bytes->data, bytes->size);
    twi_feature feature;
    memset(found, 0, sizeof *found * (size_t)keys);
    while ((read = twi_example_next(&e, &feature)) > 0)
        for (int k = 0; k < keys; k++) {
            const tw_string *key = key_of(r, l, k);
            if (key->size == feature.key_size && (key->size == 0 || memcmp(key->data, feature.key, key->size) == 0))
                found[k] = feature;
        }
    if (read < 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Could not parse example input %lld", r->node,
                        (long long)example);
    for (int k = 0; k < keys; k++) {
        if (found[k].dtype == TW_INVALID_DTYPE)
            continue;
        if (found[k].dtype != type_of(r, l, k))
            return fail_example(r, l, example, k,
                                "Data types don't match. Expected type: ", tw_dtype_name(type_of(r, l, k)));
        if (twi_feature_count(&found[k]) < 0)
            return fail_example(r, l, example, k, "Its values cannot be read.", "");
    }
    return TW_OK;
}

/* ---- sparse features --------------------------------------------------------------------------------------------- */

static tw_status write_sparse(const twi_run *r, const layout *l, int key, const twi_feature *features, int64_t examples)
{
    int keys = count_keys(l), axes = (int)r->output_operands[2 * l->num_sparse + key].elements;
    int64_t total = 0, most = 0, at = 0, *indices, *shape = r->outputs[2 * l->num_sparse + key];
    tw_dtype dtype = type_of(r, l, key);
    void *values;
    for (int64_t i = 0; i < examples; i++) {
        int64_t count = twi_feature_count(&features[i * keys + key]);
        total += count;
        most = count > most ? count : most;
    }
    tw_status status = twi_make_output(r, key, TW_SHAPE(total, axes), (void **)&indices);
    if (status == TW_OK)
        status = twi_make_output(r, l->num_sparse + key, TW_SHAPE(total), &values);
    for (int64_t i = 0; i < examples && status == TW_OK; i++) {
        const twi_feature *f = &features[i * keys + key];
        int64_t count = twi_feature_count(f);
        if (!twi_feature_read(f, twi_element_of_output(values, dtype, at)))
            status = twi_fail_memory(r->error, r->node);
        for (int64_t k = 0; k < count; k++, at++) {
            indices[at * axes] = i;
            indices[at * axes + axes - 1] = k;
        }
    }
    if (axes == 2)
        shape[0] = examples;
    shape[axes - 1] = most;
    return status;
}

/* ---- dense features ---------------------------------------------------------------------------------------------- */

static tw_status use_default(const twi_run *r, const layout *l, int key, int64_t example, int64_t elements, void *to)
{
    const twi_operand *otherwise = &r->input_operands[l->first_default + key - l->num_sparse];
    const void *from = r->inputs[l->first_default + key - l->num_sparse];
    const tw_string *name = key_of(r, l, key);
    if (otherwise->elements == 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': Example id: %lld, Feature: %.*s (data type: %s) is required but could not be found.",
                        r->node, (long long)example, (int)name->size, name->data, tw_dtype_name(otherwise->dtype));
    if (otherwise->elements != elements)
        return fail_example(r, l, example, key, "The default has another shape than the feature.", "");
    return twi_copy_elements(elements, otherwise->dtype, from, to) ? TW_OK : twi_fail_memory(r->error, r->node);
}

static tw_status write_fixed(const twi_run *r, const layout *l, int key, const twi_feature *features, int64_t examples)
{
    int keys = count_keys(l);
    const twi_operand *out = &r->output_operands[2 * l->num_sparse + key];
    int64_t each = tw_shape_elements(l->dense_shapes[key - l->num_sparse]);
    tw_status status = TW_OK;
    for (int64_t i = 0; i < examples && status == TW_OK; i++) {
        const twi_feature *f = &features[i * keys + key];
        void *to = twi_element_of_output(r->outputs[2 * l->num_sparse + key], out->dtype, i * each);
        char text[160], shape[96];
        if (f->dtype == TW_INVALID_DTYPE) {
            status = use_default(r, l, key, i, each, to);
        } else if (twi_feature_count(f) != each) {
            snprintf(text, sizeof text, "%lld but output shape: %s", (long long)twi_feature_count(f),
                     tw_shape_text(l->dense_shapes[key - l->num_sparse], shape, sizeof shape));
            status = fail_example(r, l, i, key, "Number of values != expected.  values size: ", text);
        } else if (!twi_feature_read(f, to)) {
            status = twi_fail_memory(r->error, r->node);
        }
    }
    return status;
}

/* As long as the longest; behind the shorter ones the default. */
static tw_status write_padded(const twi_run *r, const layout *l, int key, const twi_feature *features, int64_t examples)
{
    int keys = count_keys(l), output = 2 * l->num_sparse + key;
    tw_shape own = l->dense_shapes[key - l->num_sparse], shape = r->output_operands[output].shape;
    tw_dtype dtype = r->output_operands[output].dtype;
    const twi_operand *padding = &r->input_operands[l->first_default + key - l->num_sparse];
    const void *pad = r->inputs[l->first_default + key - l->num_sparse];
    int64_t row = twi_elements_between(own, 1, own.rank), most = 0;
    void *to;
    for (int64_t i = 0; i < examples; i++) {
        int64_t count = twi_feature_count(&features[i * keys + key]);
        if (row ? count % row != 0 : count != 0)
            return fail_example(r, l, i, key, "Number of values is no multiple of a row's.", "");
        most = row && count / row > most ? count / row : most;
    }
    shape.dims[shape.rank - own.rank] = most;
    tw_status status = twi_make_output(r, output, shape, &to);
    for (int64_t i = 0; i < examples && status == TW_OK; i++) {
        const twi_feature *f = &features[i * keys + key];
        bool fits = twi_feature_read(f, twi_element_of_output(to, dtype, i * most * row));
        for (int64_t k = twi_feature_count(f); k < most * row && fits && padding->elements == 1; k++)
            fits = twi_copy_elements(1, dtype, pad, twi_element_of_output(to, dtype, i * most * row + k));
        if (!fits)
            status = twi_fail_memory(r->error, r->node);
    }
    return status;
}

/* ---- ragged features --------------------------------------------------------------------------------------------- */

/* All values in a row, and where each example's begin; of one example there is nothing to say. */
static tw_status write_ragged(const twi_run *r, const layout *l, int key, const twi_feature *features, int64_t examples)
{
    int keys = count_keys(l), output = 2 * l->num_sparse + key, splits = output + l->num_ragged;
    tw_dtype dtype = r->output_operands[output].dtype, splits_dtype = r->output_operands[splits].dtype;
    bool many = r->input_operands[0].shape.rank > 0;
    int64_t total = 0, at = 0;
    void *values;
    for (int64_t i = 0; i < examples; i++)
        total += twi_feature_count(&features[i * keys + key]);
    if (total > INT32_MAX && splits_dtype == TW_INT32)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld values are too many for splits of int32", r->node,
                        (long long)total);
    tw_status status = twi_make_output(r, output, TW_SHAPE(total), &values);
    for (int64_t i = 0; i < examples && status == TW_OK; i++) {
        const twi_feature *f = &features[i * keys + key];
        if (!twi_feature_read(f, twi_element_of_output(values, dtype, at)))
            status = twi_fail_memory(r->error, r->node);
        if (many)
            twi_output_int(r, splits, i, at);
        at += twi_feature_count(f);
    }
    if (many && status == TW_OK)
        twi_output_int(r, splits, examples, at);
    return status;
}

static tw_status write_dense(const twi_run *r, const layout *l, int key, const twi_feature *features, int64_t examples)
{
    bool fixed = tw_shape_is_known(l->dense_shapes[key - l->num_sparse]);
    return fixed ? write_fixed(r, l, key, features, examples) : write_padded(r, l, key, features, examples);
}

static tw_status run(const twi_run *r)
{
    const layout *l = r->state;
    int keys = count_keys(l);
    int64_t examples = r->input_operands[0].elements;
    twi_feature *features = r->workspace;
    tw_status status = check_keys(r, l);
    for (int64_t i = 0; i < examples && status == TW_OK; i++)
        status = find_features(r, l, i, features + i * keys);
    for (int k = 0; k < keys && status == TW_OK; k++)
        status = k < l->num_sparse                  ? write_sparse(r, l, k, features, examples)
                 : k < l->num_sparse + l->num_dense ? write_dense(r, l, k, features, examples)
                                                    : write_ragged(r, l, k, features, examples);
    return status;
}

const twi_kernel twi_cpu_parse_example_kernels[] = {
    {"ParseExample", "plain", 0, prepare, run, twi_free},
    {"ParseExampleV2", "plain", 0, prepare, run, twi_free},
    {"ParseSingleExample", "plain", 0, prepare, run, twi_free},
    {0},
};
