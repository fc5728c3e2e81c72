/* sources.c - data sets that are made of no other: numbers, tensors, records of files. */
#include "base/file.h"
#include "base/inflate.h"
#include "base/tfrecord.h"
#include "device/dataset/kinds.h"
#include "format/csv.h"

#include <string.h>

static tw_status out_of_memory(const twi_iteration *it, tw_error *error)
{
    return twi_fail_memory(error, it->recipe->node);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static tw_status check_range(twi_recipe *r, tw_error *error)
{
    if (twi_recipe_int(r, 2) == 0)
        return twi_fail(error, TW_INVALID_ARGUMENT, "step must be a non-zero integer.");
    return TW_OK;
}

static tw_status begin_range(twi_iteration *it, tw_error *error)
{
    (void)error;
    *(int64_t *)it->state = twi_recipe_int(it->recipe, 0);
    return TW_OK;
}

static tw_status give_number(const twi_recipe *r, int64_t value, tw_tensor **element, tw_error *error)
{
    if (r->types[0] != TW_INT64 && r->types[0] != TW_INT32)
        return twi_fail(error, TW_UNIMPLEMENTED, "a range of %s", tw_dtype_name(r->types[0]));
    *element = r->types[0] == TW_INT64 ? tw_tensor_int64(value) : tw_tensor_int32((int32_t)value);
    return *element ? TW_OK : twi_fail_memory(error, r->node);
}

static tw_status next_range(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    int64_t *next = it->state, stop = twi_recipe_int(it->recipe, 1), step = twi_recipe_int(it->recipe, 2);
    pull->end = step > 0 ? *next >= stop : *next <= stop;
    if (pull->end)
        return TW_OK;
    tw_status status = give_number(it->recipe, *next, element, pull->error);
    if (__builtin_add_overflow(*next, step, next))
        *next = stop;
    return status;
}

static int64_t count_range(const twi_recipe *r)
{
    int64_t start = twi_recipe_int(r, 0), stop = twi_recipe_int(r, 1), step = twi_recipe_int(r, 2);
    uint64_t far = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    uint64_t size = step > 0 ? (uint64_t)step : -(uint64_t)step;
    uint64_t count = far / size + (far % size != 0);
    if (step > 0 ? start >= stop : start <= stop)
        return 0;
    return count > INT64_MAX ? INT64_MAX : (int64_t)count;
}

static tw_status at_range(const twi_recipe *r, int64_t index, tw_tensor **element, tw_error *error)
{
    uint64_t value = (uint64_t)twi_recipe_int(r, 0) + (uint64_t)index * (uint64_t)twi_recipe_int(r, 2);
    return give_number(r, (int64_t)value, element, error);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static int64_t count_one(const twi_recipe *r)
{
    (void)r;
    return 1;
}

static tw_status at_tensor(const twi_recipe *r, int64_t index, tw_tensor **element, tw_error *error)
{
    (void)index, (void)error;
    for (int i = 0; i < r->num_components; i++)
        element[i] = tw_tensor_retain(r->arguments[i]);
    return TW_OK;
}

static tw_status next_tensor(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    bool *given = it->state;
    pull->end = *given;
    *given = true;
    return pull->end ? TW_OK : at_tensor(it->recipe, 0, element, pull->error);
}

static tw_status check_slices(twi_recipe *r, tw_error *error)
{
    for (int i = 0; i < r->num_arguments; i++) {
        if (r->arguments[i]->shape.rank < 1)
            return twi_fail(error, TW_INVALID_ARGUMENT, "All components must be at least 1-dimensional");
        if (r->arguments[i]->shape.dims[0] != r->arguments[0]->shape.dims[0])
            return twi_fail(error, TW_INVALID_ARGUMENT,
                            "All components must have the same size in the 0th dimension: %lld and %lld",
                            (long long)r->arguments[0]->shape.dims[0], (long long)r->arguments[i]->shape.dims[0]);
    }
    return TW_OK;
}

static tw_shape row_shape(tw_shape shape)
{
    tw_shape row = {.rank = shape.rank - 1};
    memcpy(row.dims, shape.dims + 1, sizeof *row.dims * (size_t)row.rank);
    return row;
}

static int64_t count_slices(const twi_recipe *r)
{
    return r->arguments[0]->shape.dims[0];
}

static tw_status at_slice(const twi_recipe *r, int64_t index, tw_tensor **element, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < r->num_components && status == TW_OK; i++) {
        tw_shape row = row_shape(r->arguments[i]->shape);
        status = twi_take_elements(r->arguments[i], index * tw_shape_elements(row), row, &element[i], error);
    }
    return status;
}

static tw_status next_slice(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    int64_t *next = it->state;
    pull->end = *next >= count_slices(it->recipe);
    return pull->end ? TW_OK : at_slice(it->recipe, (*next)++, element, pull->error);
}

/* Arguments: indices [n, rank], values [n], dense shape [rank]; ordered by their first index. */
static tw_status check_sparse(twi_recipe *r, tw_error *error)
{
    const tw_tensor *indices = r->arguments[0], *values = r->arguments[1], *shape = r->arguments[2];
    if (indices->shape.rank != 2 || values->shape.rank != 1 || shape->shape.rank != 1 || shape->elements < 1 ||
        indices->shape.dims[0] != values->elements || indices->shape.dims[1] != shape->elements)
        return twi_fail(error, TW_INVALID_ARGUMENT, "indices, values and dense_shape are not of one sparse tensor");
    const int64_t *i = indices->data;
    for (int64_t n = 0, previous = 0; n < values->elements; n++) {
        int64_t at = i[n * shape->elements];
        if (at < previous || at >= *(const int64_t *)shape->data)
            return twi_fail(
                error, TW_UNIMPLEMENTED,
                "The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered input is "
                "not currently supported.");
        previous = at;
    }
    return TW_OK;
}

static int64_t count_sparse(const twi_recipe *r)
{
    return *(const int64_t *)r->arguments[2]->data;
}

typedef struct sparse_place {
    int64_t row, at; /* the next row, and its first value */
} sparse_place;

static tw_status next_sparse(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    sparse_place *p = it->state;
    tw_tensor *const *a = it->recipe->arguments;
    const int64_t *indices = a[0]->data, *shape = a[2]->data;
    int64_t rank = a[2]->elements, first = p->at;
    pull->end = p->row >= shape[0];
    if (pull->end)
        return TW_OK;
    while (p->at < a[1]->elements && indices[p->at * rank] == p->row)
        p->at++;
    p->row++;
    element[0] = tw_tensor_create(TW_INT64, TW_SHAPE(p->at - first, rank - 1));
    element[2] = tw_tensor_from(TW_INT64, TW_SHAPE(rank - 1), shape + 1);
    if (!element[0] || !element[2])
        return out_of_memory(it, pull->error);
    int64_t *to = element[0]->data;
    for (int64_t n = first; n < p->at; n++)
        for (int64_t k = 1; k < rank; k++)
            *to++ = indices[n * rank + k];
    return twi_take_elements(a[1], first, TW_SHAPE(p->at - first), &element[1], pull->error);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Argument 0 are the files' names. */
typedef struct files {
    int64_t next;          /* of the names */
    twi_file_reader *file; /* NULL: none is open */
    twi_file_window window;
    twi_record_reader *records;
    uint64_t at, end; /* in the file */
    twi_iteration *it;
} files;

static const char *file_name(const files *f)
{
    return ((const tw_string *)f->it->recipe->arguments[0]->data)[f->next - 1].data;
}

static void close_file(files *f)
{
    twi_file_window_free(&f->window);
    twi_file_reader_close(f->file);
    twi_record_close(f->records);
    f->file = NULL;
    f->records = NULL;
    f->window = (twi_file_window){0};
}

static tw_status begin_files(twi_iteration *it, tw_error *error)
{
    (void)error;
    ((files *)it->state)->it = it;
    return TW_OK;
}

static void end_files(twi_iteration *it)
{
    close_file(it->state);
}

/* Of compression types: where each kind of file has it among its arguments. */
enum { PACKED = 1, PACKED_FIXED = 5 };

/* How the files are packed; "" if they are not. */
static const char *packing(const twi_recipe *r, int argument)
{
    const tw_string *kind =
        argument < r->num_arguments && r->arguments[argument]->elements ? r->arguments[argument]->data : NULL;
    return kind && kind->size ? kind->data : "";
}

static tw_status check_packed(const twi_recipe *r, int argument, tw_error *error)
{
    const char *kind = packing(r, argument);
    if (!twi_packing(kind))
        return twi_fail(error, TW_INVALID_ARGUMENT, "Unsupported compression type '%s', expected GZIP or ZLIB", kind);
    return TW_OK;
}

static tw_status check_records(twi_recipe *r, tw_error *error)
{
    return check_packed(r, PACKED, error);
}

static tw_status check_fixed(twi_recipe *r, tw_error *error)
{
    if (twi_recipe_int(r, 1) < 0 || twi_recipe_int(r, 2) <= 0 || twi_recipe_int(r, 3) < 0)
        return twi_fail(
            error, TW_INVALID_ARGUMENT,
            "header_bytes %lld, record_bytes %lld, footer_bytes %lld: a record has 1 or more, the others 0 or more",
            (long long)twi_recipe_int(r, 1), (long long)twi_recipe_int(r, 2), (long long)twi_recipe_int(r, 3));
    return check_packed(r, PACKED_FIXED, error);
}

/* Opens the next file, if there is one. */
static tw_status open_next(files *f, int argument, twi_pull *pull)
{
    pull->end = f->next >= f->it->recipe->arguments[0]->elements;
    if (pull->end)
        return TW_OK;
    f->next++;
    const char *kind = packing(f->it->recipe, argument);
    tw_status status = twi_file_open_packed(file_name(f), kind, &f->file, pull->error);
    if (status != TW_OK)
        return status;
    f->window.file = f->file;
    f->at = 0;
    f->end = twi_file_size(f->file);
    return TW_OK;
}

static tw_status give_bytes(const files *f, const char *bytes, size_t size, twi_pull *pull, tw_tensor **element)
{
    element[0] = tw_tensor_string(bytes, size);
    return element[0] ? TW_OK : out_of_memory(f->it, pull->error);
}

/* Arguments: names, bytes of header, record, footer. */
static tw_status open_fixed(files *f, twi_pull *pull)
{
    uint64_t header = (uint64_t)twi_recipe_int(f->it->recipe, 1), record = (uint64_t)twi_recipe_int(f->it->recipe, 2);
    uint64_t footer = (uint64_t)twi_recipe_int(f->it->recipe, 3);
    tw_status status = open_next(f, PACKED_FIXED, pull);
    if (status != TW_OK || pull->end)
        return status;
    if (f->end < header + footer || (f->end - header - footer) % record)
        return twi_fail(
            pull->error, TW_INVALID_ARGUMENT,
            "Excess bytes in file '%s': its %llu bytes are not a header of %llu, records of %llu and a footer of "
            "%llu",
            file_name(f), (unsigned long long)f->end, (unsigned long long)header, (unsigned long long)record,
            (unsigned long long)footer);
    f->at = header;
    f->end -= footer;
    return TW_OK;
}

static tw_status next_fixed(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    files *f = it->state;
    size_t size = (size_t)twi_recipe_int(it->recipe, 2);
    tw_status status = TW_OK;
    const char *bytes;
    while (status == TW_OK && (!f->file || f->at >= f->end)) {
        close_file(f);
        status = open_fixed(f, pull);
        if (pull->end)
            return TW_OK;
    }
    if (status == TW_OK)
        status = twi_file_look(&f->window, f->at, size, &bytes, pull->error);
    f->at += size;
    if (status != TW_OK)
        close_file(f);
    return status == TW_OK ? give_bytes(f, bytes, size, pull, element) : status;
}

/* The end of a line is \n; \r are left out, as TensorFlow does. */
static tw_status next_line(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    files *f = it->state;
    const char *bytes, *stop = NULL;
    tw_status status = TW_OK;
    size_t size = 0;
    while (status == TW_OK && (!f->file || f->at >= f->end)) {
        close_file(f);
        status = open_next(f, PACKED, pull);
        if (pull->end)
            return TW_OK;
    }
    for (size_t sees = 4096; status == TW_OK && !stop && size < f->end - f->at; sees *= 2) {
        size = sees < f->end - f->at ? sees : (size_t)(f->end - f->at);
        status = twi_file_look(&f->window, f->at, size, &bytes, pull->error);
        stop = status == TW_OK ? memchr(bytes, '\n', size) : NULL;
    }
    if (status != TW_OK) {
        close_file(f);
        return status;
    }
    size = stop ? (size_t)(stop - bytes) : size;
    f->at += size + (stop != NULL);
    status = give_bytes(f, bytes, size, pull, element);
    tw_string *line = status == TW_OK ? element[0]->data : NULL;
    size_t kept = 0;
    for (size_t i = 0; line && i < size; i++)
        if (line->data[i] != '\r')
            line->data[kept++] = line->data[i];
    if (line && kept < size)
        line->data[line->size = kept] = 0;
    return status;
}

static tw_status open_records(files *f, twi_pull *pull)
{
    pull->end = f->next >= f->it->recipe->arguments[0]->elements;
    if (pull->end)
        return TW_OK;
    f->next++;
    return twi_record_open_packed(file_name(f), packing(f->it->recipe, PACKED), &f->records, pull->error);
}

static tw_status next_record(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    files *f = it->state;
    for (;;) {
        tw_error ended;
        const char *bytes;
        size_t size;
        tw_status status = TW_OK;
        if (!f->records)
            status = open_records(f, pull);
        if (status != TW_OK || pull->end)
            return status;
        ended.status = TW_OK;
        status = twi_record_next(f->records, &bytes, &size, &ended);
        if (status == TW_OK)
            return give_bytes(f, bytes, size, pull, element);
        close_file(f);
        if (status != TW_OUT_OF_RANGE)
            return twi_fail(pull->error, status, "%s", ended.message);
    }
}

/* ---- lines of fields --------------------------------------------------------------------------------------------- */

/* Arguments: names, packing, the size of a buffer, then these, a default for each component, and of the second version
 * columns that are left out. */
enum { CSV_HEADER = 3, CSV_DELIMITER, CSV_QUOTES, CSV_MISSING, CSV_COLUMNS, CSV_DEFAULTS };

static const tw_string *text_of(const twi_recipe *r, int argument)
{
    static const tw_string nothing = {0};
    return r->arguments[argument]->elements ? r->arguments[argument]->data : &nothing;
}

/* Of the columns that are taken, or left out, in their order. */
static const tw_tensor *columns_out(const twi_recipe *r)
{
    int last = CSV_DEFAULTS + r->num_components;
    return r->num_arguments > last ? r->arguments[last] : NULL;
}

static tw_status check_csv(twi_recipe *r, tw_error *error)
{
    const tw_tensor *in = r->arguments[CSV_COLUMNS], *out = columns_out(r);
    if (text_of(r, CSV_DELIMITER)->size != 1)
        return twi_fail(error, TW_INVALID_ARGUMENT, "field_delim should be only 1 char");
    if (in->elements && out && out->elements)
        return twi_fail(error, TW_INVALID_ARGUMENT, "Either select_cols or exclude_cols should be empty");
    if (in->elements && in->elements != r->num_components)
        return twi_fail(error, TW_INVALID_ARGUMENT, "select_cols should match output size: %lld columns, %d components",
                        (long long)in->elements, r->num_components);
    for (int which = 0; which < 2; which++) {
        const tw_tensor *columns = which ? out : in;
        for (int64_t i = 0; columns && i < columns->elements; i++)
            if (twi_tensor_int(columns, i) < 0 ||
                (i && twi_tensor_int(columns, i) <= twi_tensor_int(columns, i - 1)))
                return twi_fail(error, TW_INVALID_ARGUMENT, "columns must be strictly increasing indices, 0 or more");
    }
    for (int i = 0; i < r->num_components; i++)
        if (r->arguments[CSV_DEFAULTS + i]->elements > 1)
            return twi_fail(error, TW_INVALID_ARGUMENT, "Each record default should be at most 1 element");
    return check_packed(r, PACKED, error);
}

static bool has_column(const tw_tensor *columns, int64_t column)
{
    bool has = false;
    for (int64_t i = 0; columns && i < columns->elements && !has; i++)
        has = twi_tensor_int(columns, i) == column;
    return has;
}

static bool is_taken(const twi_recipe *r, int64_t column)
{
    const tw_tensor *in = r->arguments[CSV_COLUMNS];
    return in->elements ? has_column(in, column) : !has_column(columns_out(r), column);
}

/* The record that comes next, without its end. At the end of all files pull->end. */
static tw_status look_at_record(files *f, const twi_csv *csv, twi_pull *pull, const char **bytes, size_t *size)
{
    tw_status status = TW_OK;
    const char *stop = NULL;
    *size = 0;
    for (size_t sees = 4096; status == TW_OK && !stop && *size < f->end - f->at; sees *= 2) {
        *size = sees < f->end - f->at ? sees : (size_t)(f->end - f->at);
        status = twi_file_look(&f->window, f->at, *size, bytes, pull->error);
        stop = status == TW_OK ? twi_csv_record_end(csv, *bytes, *size) : NULL;
    }
    if (status != TW_OK)
        return status;
    *size = stop ? (size_t)(stop - *bytes) : *size;
    f->at += *size + (stop != NULL);
    *size -= *size && (*bytes)[*size - 1] == '\r';
    return TW_OK;
}

static tw_status open_csv(files *f, const twi_csv *csv, twi_pull *pull)
{
    const char *header;
    size_t size;
    tw_status status = open_next(f, PACKED, pull);
    if (status == TW_OK && !pull->end && twi_recipe_int(f->it->recipe, CSV_HEADER) && f->at < f->end)
        status = look_at_record(f, csv, pull, &header, &size);
    return status;
}

static tw_status make_field(const files *f, const twi_csv *csv, int i, const char *text, size_t size, twi_pull *pull,
                            tw_tensor **made)
{
    const twi_recipe *r = f->it->recipe;
    const tw_tensor *otherwise = r->arguments[CSV_DEFAULTS + i];
    bool is_missing = twi_csv_is_missing(csv, text, size);
    if (is_missing && !otherwise->elements)
        return twi_fail(pull->error, TW_INVALID_ARGUMENT, "Field %d is required but missing in record!", i);
    if (is_missing)
        return twi_take_elements(otherwise, 0, TW_SCALAR, made, pull->error);
    *made = r->types[i] == TW_STRING ? tw_tensor_string(text, size) : tw_tensor_create(r->types[i], TW_SCALAR);
    if (!*made)
        return out_of_memory(f->it, pull->error);
    if (r->types[i] == TW_STRING || twi_csv_number(r->types[i], text, size, (*made)->data))
        return TW_OK;
    return twi_fail(pull->error, TW_INVALID_ARGUMENT, "Field %d in record is not a valid %s: %.*s", i,
                    tw_dtype_name(r->types[i]), (int)size, text);
}

static tw_status take_fields(const files *f, const twi_csv *csv, const char *at, const char *end, char *text,
                             twi_pull *pull, tw_tensor **element)
{
    const twi_recipe *r = f->it->recipe;
    int taken = 0;
    tw_status status = TW_OK;
    for (int64_t column = 0; status == TW_OK; column++, at++) {
        size_t size;
        bool wanted = is_taken(r, column);
        if (!twi_csv_field(csv, &at, end, text, &size))
            return twi_fail(pull->error, TW_INVALID_ARGUMENT,
                            "'%s': field %lld has quotes or line ends where none may be", file_name(f),
                            (long long)column);
        if (wanted && taken == r->num_components)
            return twi_fail(pull->error, TW_INVALID_ARGUMENT, "Expect %d fields but have more in record", taken);
        if (wanted) {
            status = make_field(f, csv, taken, text, size, pull, &element[taken]);
            taken++;
        }
        if (at == end)
            break;
    }
    if (status == TW_OK && taken < r->num_components)
        return twi_fail(pull->error, TW_INVALID_ARGUMENT, "Expect %d fields but have %d in record", r->num_components,
                        taken);
    return status;
}

static tw_status next_csv(twi_iteration *it, twi_pull *pull, tw_tensor **element)
{
    files *f = it->state;
    const twi_recipe *r = it->recipe;
    twi_csv csv = {.delimiter = text_of(r, CSV_DELIMITER)->data[0], .quotes = twi_recipe_int(r, CSV_QUOTES),
                   .missing = text_of(r, CSV_MISSING)->size ? text_of(r, CSV_MISSING)->data : ""};
    tw_status status = TW_OK;
    const char *bytes = NULL;
    size_t size = 0;
    while (status == TW_OK && (!f->file || f->at >= f->end)) {
        close_file(f);
        status = open_csv(f, &csv, pull);
        if (pull->end)
            return TW_OK;
    }
    if (status == TW_OK)
        status = look_at_record(f, &csv, pull, &bytes, &size);
    char *text = status == TW_OK ? twi_alloc(size + 1) : NULL;
    if (text)
        status = take_fields(f, &csv, bytes, bytes + size, text, pull, element);
    else if (status == TW_OK)
        status = out_of_memory(it, pull->error);
    twi_free(text);
    if (status != TW_OK)
        twi_element_drop(element, r->num_components);
    return status;
}

#define FILES .state = sizeof(files), .begin = begin_files, .end = end_files

const twi_recipe_kind twi_source_kinds[] = {
    {"RangeDataset", next_range, .state = sizeof(int64_t), .begin = begin_range, .check = check_range,
     .count = count_range, .at = at_range},
    {"TensorDataset", next_tensor, .state = sizeof(bool), .count = count_one, .at = at_tensor, .passes = TWI_OTHER_ELEMENTS},
    {"TensorSliceDataset", next_slice, .state = sizeof(int64_t), .check = check_slices, .count = count_slices,
     .at = at_slice, .passes = TWI_OTHER_ELEMENTS},
    {"SparseTensorSliceDataset", next_sparse, .state = sizeof(sparse_place), .check = check_sparse,
     .count = count_sparse},
    {"FixedLengthRecordDataset", next_fixed, FILES, .check = check_fixed},
    {"FixedLengthRecordDatasetV2", next_fixed, FILES, .check = check_fixed},
    {"TFRecordDataset", next_record, FILES, .check = check_records},
    {"TFRecordDatasetV2", next_record, FILES, .check = check_records},
    {"TextLineDataset", next_line, FILES, .check = check_records},
    {"CSVDataset", next_csv, FILES, .check = check_csv},
    {"CSVDatasetV2", next_csv, FILES, .check = check_csv},
    {"ExperimentalCSVDataset", next_csv, FILES, .check = check_csv},
    {0},
};
