/* table.c - the ops of lookup tables; device/state/table.h does the work. */
#include "device/state/table.h"

#include "base/file.h"
#include "base/memory.h"
#include "tensor/tensor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of as many values as keys. */
static tw_shape values_shape(tw_shape keys, tw_shape value)
{
    for (int i = 0; i < value.rank && keys.rank < TW_MAX_RANK; i++)
        keys.dims[keys.rank++] = value.dims[i];
    return keys;
}

static tw_status prepare_table(twi_prepare *p)
{
    const twi_attr *shape = twi_attr_find(p->attrs, "value_shape");
    return twi_table_make(p->outputs[0].resource, p->node, twi_attr_type(p->attrs, "key_dtype"),
                          twi_attr_type(p->attrs, "value_dtype"), shape ? shape->shape : TW_SCALAR,
                          strstr(p->op, "Mutable") != NULL, p->error);
}

static tw_status run_dense_table(const twi_run *r)
{
    bool fits = twi_table_mark(twi_table_of(r->output_operands[0].resource), r->inputs[0], r->inputs[1]);
    return fits ? TW_OK : twi_fail_memory(r->error, r->node);
}

/* One without a name is another one in each run. */
static tw_status run_anonymous(const twi_run *r)
{
    twi_table_clear(twi_table_of(r->output_operands[0].resource));
    return r->num_inputs ? run_dense_table(r) : TW_OK;
}

static tw_status expect_type(const twi_prepare *p, const char *what, tw_dtype has, tw_dtype wants)
{
    return has == wants ? TW_OK
                        : twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': %s of %s, the table has %s", p->op, p->node,
                                   what, tw_dtype_name(has), tw_dtype_name(wants));
}

/* state: the table. */
static tw_status prepare_use(twi_prepare *p)
{
    twi_table *t = twi_table_of(p->inputs[0].resource);
    p->state = t;
    if (!t)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': its input 0 is not the handle of a table", p->op,
                        p->node);
    tw_status status = TW_OK;
    if (p->num_inputs > 1 && strcmp(p->op, "InitializeTableFromTextFileV2") != 0)
        status = expect_type(p, "keys", p->inputs[1].dtype, twi_table_key(t));
    if (status == TW_OK && p->num_inputs > 2)
        status = expect_type(p, "values", p->inputs[2].dtype, twi_table_value(t));
    return status;
}

/* A default is one value; a scalar may be a vector of one. Pairs have as many values as keys. */
static tw_status prepare_find(twi_prepare *p)
{
    tw_status status = prepare_use(p);
    if (status != TW_OK || tw_shape_equal(p->inputs[2].shape, twi_table_shape(p->state)) ||
        (twi_table_shape(p->state).rank == 0 && p->inputs[2].elements == 1))
        return status;
    char has[128], wants[128];
    return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': a default of shape %s, the table's values have %s", p->op,
                    p->node, tw_shape_text(p->inputs[2].shape, has, sizeof has),
                    tw_shape_text(twi_table_shape(p->state), wants, sizeof wants));
}

static tw_status prepare_pairs(twi_prepare *p)
{
    tw_status status = prepare_use(p);
    if (status == TW_OK &&
        p->inputs[1].elements * tw_shape_elements(twi_table_shape(p->state)) != p->inputs[2].elements)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': %lld values for %lld keys", p->op, p->node,
                        (long long)p->inputs[2].elements, (long long)p->inputs[1].elements);
    return status;
}

static tw_status run_find(const twi_run *r)
{
    return twi_table_find(r->state, r->inputs[1], r->input_operands[1].elements, r->inputs[2], r->outputs[0], r->error);
}

static tw_status run_put(const twi_run *r)
{
    return twi_table_put(r->state, r->inputs[1], r->inputs[2], r->input_operands[1].elements, false, r->error);
}

/* What is imported is all there is; of a table that is filled once it is that filling. */
static tw_status run_import(const twi_run *r)
{
    if (twi_table_changes(r->state))
        twi_table_clear(r->state);
    tw_status status = run_put(r);
    twi_table_remove_marks(r->state);
    return status;
}

static tw_status run_remove(const twi_run *r)
{
    twi_table_remove(r->state, r->inputs[1], r->input_operands[1].elements);
    return TW_OK;
}

static tw_status run_size(const twi_run *r)
{
    *(int64_t *)r->outputs[0] = twi_table_size(r->state);
    return TW_OK;
}

static tw_status prepare_export(twi_prepare *p)
{
    tw_status status = prepare_use(p);
    if (status == TW_OK)
        status = expect_type(p, "keys", p->outputs[0].dtype, twi_table_key(p->state));
    return status == TW_OK ? expect_type(p, "values", p->outputs[1].dtype, twi_table_value(p->state)) : status;
}

/* One with marks has rows of keys, and of values whatever their shape. */
static tw_status run_export(const twi_run *r)
{
    int64_t rows = twi_table_rows(r->state);
    bool marked = twi_table_is_marked(r->state);
    tw_shape value = twi_table_shape(r->state);
    void *keys, *values;
    tw_status status = twi_make_output(r, 0, marked ? TW_SHAPE(rows, 1) : TW_SHAPE(rows), &keys);
    if (status == TW_OK)
        status = twi_make_output(
            r, 1, marked ? TW_SHAPE(rows, tw_shape_elements(value)) : values_shape(TW_SHAPE(rows), value), &values);
    if (status == TW_OK && !twi_table_list(r->state, rows, keys, values))
        status = twi_fail_memory(r->error, r->node);
    return status;
}

/* ---- text files -------------------------------------------------------------------------------------------------- */

enum { WHOLE_LINE = -2, LINE_NUMBER = -1 }; /* else a column */

typedef struct text_file {
    twi_table *table;
    int64_t key, value, lines, first; /* lines: so many are read, below 0 all; first: the number of the first one */
    char delimiter;
} text_file;

static tw_status prepare_text_file(twi_prepare *p)
{
    tw_status status = prepare_use(p);
    if (status != TW_OK)
        return status;
    text_file f = {p->state,
                   twi_attr_int(p->attrs, "key_index", 0),
                   twi_attr_int(p->attrs, "value_index", 0),
                   twi_attr_int(p->attrs, "vocab_size", -1),
                   twi_attr_int(p->attrs, "offset", 0),
                   twi_attr_string(p->attrs, "delimiter", "\t")[0]};
    return twi_keep(p, &f, sizeof f);
}

/* What stands at a place of a line, as an element of that type. */
static bool read_place(const text_file *f, int64_t place, tw_dtype dtype, int64_t line, const char *at, const char *end,
                       void *to)
{
    char *stop;
    for (int64_t column = 0; place >= 0 && column < place && at; column++) {
        const char *next = memchr(at, f->delimiter, (size_t)(end - at));
        at = next ? next + 1 : NULL;
    }
    if (!at)
        return false;
    const char *last = place >= 0 ? memchr(at, f->delimiter, (size_t)(end - at)) : NULL;
    end = last ? last : end;
    if (dtype == TW_STRING && place != LINE_NUMBER)
        return twi_string_set(to, at, (size_t)(end - at));
    char number[64];
    size_t size = (size_t)(end - at) < sizeof number ? (size_t)(end - at) : sizeof number - 1;
    memcpy(number, at, size);
    number[size] = 0;
    errno = 0;
    long long integer = place == LINE_NUMBER ? line : strtoll(number, &stop, 10);
    bool fits = place == LINE_NUMBER || (size && *stop == 0 && errno == 0);
    switch (dtype) {
    case TW_INT64:
        *(int64_t *)to = integer;
        return fits;
    case TW_INT32:
        *(int32_t *)to = (int32_t)integer;
        return fits && integer >= INT32_MIN && integer <= INT32_MAX;
    case TW_FLOAT32:
        *(float *)to = strtof(number, &stop);
        return size && *stop == 0;
    case TW_FLOAT64:
        *(double *)to = strtod(number, &stop);
        return size && *stop == 0;
    default:
        return false;
    }
}

/* The entry of line `number`, into pair, whose texts are used again. */
static tw_status put_line(const twi_run *r, const text_file *f, int64_t number, const char *at, const char *end,
                          tw_string pair[2])
{
    tw_dtype key = twi_table_key(f->table), value = twi_table_value(f->table);
    if (at == end)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': line %lld is empty", r->node, (long long)number);
    if (!read_place(f, f->key, key, number, at, end, &pair[0]) ||
        !read_place(f, f->value, value, number, at, end, &pair[1]))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': line %lld has no key and value as they were asked for",
                        r->node, (long long)number);
    return twi_table_put(f->table, &pair[0], &pair[1], 1, true, r->error);
}

static tw_status put_lines(const twi_run *r, const text_file *f, const char *at, const char *end)
{
    tw_string pair[2] = {{0}, {0}};
    tw_status status = TW_OK;
    int64_t count = 0;
    for (; at < end && status == TW_OK && (f->lines < 0 || count < f->lines); count++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        status = put_line(r, f, f->first + count, at, stop > at && stop[-1] == '\r' ? stop - 1 : stop, pair);
        at = stop < end ? stop + 1 : end;
    }
    if (status == TW_OK && (count == 0 || count < f->lines))
        status = twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': the file has %lld lines, expected %lld", r->node,
                          (long long)count, (long long)(f->lines < 0 ? 1 : f->lines));
    if (status == TW_OK)
        status = twi_table_put(f->table, NULL, NULL, 0, false, r->error);
    if (twi_table_key(f->table) == TW_STRING)
        twi_free(pair[0].data);
    if (twi_table_value(f->table) == TW_STRING)
        twi_free(pair[1].data);
    return status;
}

#define LARGEST_FILE ((size_t)1 << 32)

/* Once it is filled from a file it stays so. */
static tw_status run_text_file(const twi_run *r)
{
    const text_file *f = r->state;
    const tw_string *name = r->inputs[1];
    char path[4096], *bytes = NULL;
    size_t size = 0;
    if (name->size >= sizeof path)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': the file's name is too long", r->node);
    if (twi_table_size(f->table))
        return TW_OK;
    memcpy(path, name->data, name->size);
    path[name->size] = 0;
    tw_status status = twi_file_read(path, LARGEST_FILE, &bytes, &size, r->error);
    if (status == TW_OK)
        status = put_lines(r, f, bytes, bytes + size);
    if (status != TW_OK)
        twi_table_clear(f->table); /* nor is it filled in part */
    twi_free(bytes);
    return status;
}

const twi_kernel twi_cpu_table_kernels[] = {
    {"HashTableV2", "plain", 0, prepare_table},
    {"MutableDenseHashTableV2", "plain", 0, prepare_table, run_dense_table},
    {"MutableHashTableV2", "plain", 0, prepare_table},
    {"MutableHashTableOfTensorsV2", "plain", 0, prepare_table},
    {"AnonymousHashTable", "plain", 0, prepare_table, run_anonymous},
    {"AnonymousMutableHashTable", "plain", 0, prepare_table, run_anonymous},
    {"AnonymousMutableHashTableOfTensors", "plain", 0, prepare_table, run_anonymous},
    {"AnonymousMutableDenseHashTable", "plain", 0, prepare_table, run_anonymous},
    {"InitializeTableV2", "plain", 0, prepare_pairs, run_put},
    {"InitializeTableFromTextFileV2", "plain", 0, prepare_text_file, run_text_file, twi_free},
    {"LookupTableFindV2", "plain", 0, prepare_find, run_find},
    {"LookupTableInsertV2", "plain", 0, prepare_pairs, run_put},
    {"LookupTableImportV2", "plain", 0, prepare_pairs, run_import},
    {"LookupTableRemoveV2", "plain", 0, prepare_use, run_remove},
    {"LookupTableSizeV2", "plain", 0, prepare_use, run_size},
    {"LookupTableExportV2", "plain", 0, prepare_export, run_export},
    {0},
};
