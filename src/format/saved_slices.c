/* saved_slices.c - see saved_slices.h. */
#include "format/saved_slices.h"

#include "base/file.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/status.h"
#include "format/proto/saved_slices.pb-c.h"
#include "format/protobuf.h"
#include "format/slice.h"
#include "format/table.h"
#include "format/tensor_proto.h"
#include "tensor/tensor.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, MOST_EXPANSION = 8 }; /* bytes that one of the file may become: a varint is an int64 */
#define LARGEST_FILE ((size_t)1 << 34)

/* A file, while it is read. */
typedef struct reading {
    twi_saved_slices *saved;
    twi_map *places;  /* from a name to its tensor's place, counted from 1, as an address */
    size_t spare;     /* bytes that tensors may still become without standing in the file */
    bool has_list;
} reading;

/* ---- which tensors there are ------------------------------------------------------------------------------------- */

static tw_status list_tensor(reading *r, const Twi__SavedSliceMeta *meta, tw_error *error)
{
    twi_saved made = {.number = meta->type, .dtype = (tw_dtype)meta->type, .shape = TW_UNKNOWN_SHAPE};
    uintptr_t place = (uintptr_t)twi_map_get(r->places, meta->name);
    bool has_rank = !meta->shape || (!meta->shape->unknown_rank && meta->shape->n_dim <= TW_MAX_RANK);
    if (!tw_dtype_size(made.dtype) || made.dtype == TW_RESOURCE || made.dtype == TW_VARIANT)
        made.dtype = TW_INVALID_DTYPE;
    if (has_rank && (twi_shape_from_proto(meta->shape, &made.shape, error) != TW_OK || !tw_shape_is_known(made.shape)))
        return twi_fail(error, TW_DATA_LOSS, "tensor '%s' has an impossible shape", meta->name);
    if (place) { /* of another shard */
        const twi_saved *known = &r->saved->tensors.items[place - 1];
        bool same = known->number == made.number && tw_shape_equal(known->shape, made.shape);
        return same ? TW_OK : twi_fail(error, TW_DATA_LOSS, "tensor '%s' is listed twice, differently", meta->name);
    }
    made.name = twi_arena_strdup(&r->saved->names, meta->name);
    bool fits = made.name && twi_push(&r->saved->tensors, made) &&
                twi_map_put(r->places, made.name, (void *)(uintptr_t)r->saved->tensors.count);
    return fits ? TW_OK : twi_fail_memory(error, "opening a checkpoint");
}

static tw_status list_tensors(reading *r, const Twi__SavedTensorSliceMeta *meta, tw_error *error)
{
    tw_status status = TW_OK;
    if (meta->versions && meta->versions->min_consumer > VERSION)
        return twi_fail(error, TW_UNIMPLEMENTED, "it needs a reader of version %d of the format or later, this is %d",
                        meta->versions->min_consumer, VERSION);
    for (size_t i = 0; i < meta->n_tensor && status == TW_OK; i++)
        status = list_tensor(r, meta->tensor[i], error);
    r->has_list = true;
    return status;
}

/* ---- their values ------------------------------------------------------------------------------------------------ */

/* The values of a part as a tensor: what the file does not say of it is in its place. */
static tw_status make_part(reading *r, const Twi__SavedSlice *from, const twi_saved *of, const twi_slice *where,
                           tw_tensor **part, tw_error *error)
{
    static const Twi__TensorProto nothing = TWI__TENSOR_PROTO__INIT;
    twi_arena arena = {0};
    Twi__TensorProto values = from->data ? *from->data : nothing;
    values.dtype = of->number;
    values.tensor_shape = twi_shape_to_proto(&arena, twi_slice_shape(where));
    tw_status status = values.tensor_shape ? twi_tensor_from_proto(&values, &r->spare, part, error)
                                           : twi_fail_memory(error, "opening a checkpoint");
    twi_arena_free(&arena);
    return status;
}

static tw_status make_room(reading *r, twi_saved *tensor, tw_error *error)
{
    size_t bytes, elements = (size_t)tw_shape_elements(tensor->shape);
    if (tensor->dtype == TW_STRING)
        return twi_fail(error, TW_UNIMPLEMENTED, "tensor '%s' cannot be read: it has strings in parts", tensor->name);
    if (__builtin_mul_overflow(elements, tw_dtype_size(tensor->dtype), &bytes) || bytes > r->spare)
        return twi_fail(error, TW_DATA_LOSS, "tensor '%s' is larger than its file can make it", tensor->name);
    r->spare -= bytes;
    tensor->value = tw_tensor_create(tensor->dtype, tensor->shape);
    return tensor->value ? TW_OK : twi_fail_memory(error, "opening a checkpoint");
}

/* One that is all of its tensor becomes it. */
static tw_status take_part(reading *r, const Twi__SavedSlice *from, tw_error *error)
{
    uintptr_t place = (uintptr_t)twi_map_get(r->places, from->name);
    twi_slice where;
    tw_tensor *part = NULL;
    if (!place)
        return twi_fail(error, TW_DATA_LOSS, "it has values of tensor '%s', which it does not list", from->name);
    twi_saved *tensor = &r->saved->tensors.items[place - 1];
    if (tensor->dtype == TW_INVALID_DTYPE || tensor->shape.rank < 0)
        return TW_OK;
    if (!twi_slice_from_proto(from->slice, tensor->shape, &where))
        return twi_fail(error, TW_DATA_LOSS, "a part of tensor '%s' lies outside of it", tensor->name);
    tw_status status = make_part(r, from, tensor, &where, &part, error);
    if (status != TW_OK)
        return twi_prefix(error, "tensor '%s'", tensor->name), status;
    if (!tensor->value && tw_shape_equal(twi_slice_shape(&where), tensor->shape)) {
        tensor->value = part;
        tensor->filled = tw_tensor_elements(part);
        return TW_OK;
    }
    if (!tensor->value)
        status = make_room(r, tensor, error);
    twi_slice whole = twi_slice_whole(tensor->shape);
    if (status == TW_OK)
        tensor->filled += twi_slice_copy(&where, tw_tensor_data(part), &whole, tw_tensor_data(tensor->value),
                                         tw_dtype_size(tensor->dtype));
    tw_tensor_release(part);
    return status;
}

/* twi_table_entry */
static tw_status read_entry(void *user, const char *key, size_t key_size, const char *value, size_t size,
                            tw_error *error)
{
    reading *r = user;
    tw_status status = TW_OK;
    twi_proto proto;
    (void)key;
    twi_proto_start(&proto, size);
    Twi__SavedTensorSlices *saved = twi__saved_tensor_slices__unpack(&proto.allocator, size, (const uint8_t *)value);
    if (proto.out_of_memory)
        return twi_fail_memory(error, "opening a checkpoint");
    if (saved && key_size == 0 && saved->meta)
        status = list_tensors(r, saved->meta, error);
    else if (saved && key_size != 0 && saved->data && r->has_list)
        status = take_part(r, saved->data, error);
    else
        status = twi_fail(error, TW_DATA_LOSS, "an entry of it cannot be understood");
    if (saved)
        twi__saved_tensor_slices__free_unpacked(saved, &proto.allocator);
    return status;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static tw_status read_file(const char *path, twi_saved_slices *saved, twi_map *places, tw_error *error)
{
    char *bytes = NULL;
    size_t size;
    tw_status status = twi_file_read(path, LARGEST_FILE, &bytes, &size, error);
    if (status != TW_OK)
        return status;
    reading r = {.saved = saved, .places = places, .spare = size * MOST_EXPANSION};
    status = twi_table_read(bytes, size, read_entry, &r, error);
    if (status != TW_OK)
        twi_prefix(error, "'%s'", path);
    twi_free(bytes);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const twi_saved *)a)->name, ((const twi_saved *)b)->name);
}

static tw_status check_whole(const twi_saved *tensor, tw_error *error)
{
    bool known = tensor->dtype != TW_INVALID_DTYPE && tensor->shape.rank >= 0;
    if (!known || (tensor->value && tensor->filled == tw_tensor_elements(tensor->value)))
        return TW_OK;
    return twi_fail(error, TW_DATA_LOSS, "the parts of tensor '%s' do not cover it", tensor->name);
}

static bool is_one(const char *path)
{
    twi_file_reader *file = NULL;
    char end[TWI_TABLE_MAGIC_BYTES];
    bool is = twi_file_open(path, &file, NULL) == TW_OK && /* of a file that is too short there is no such place */
              twi_file_read_at(file, twi_file_size(file) - sizeof end, end, sizeof end, NULL) == TW_OK &&
              twi_ends_table(end);
    twi_file_reader_close(file);
    return is;
}

bool twi_saved_slices_are_there(const char *pattern)
{
    glob_t found = {0};
    bool are = glob(pattern, 0, NULL, &found) == 0;
    for (size_t i = 0; i < found.gl_pathc && are; i++)
        are = is_one(found.gl_pathv[i]);
    globfree(&found);
    return are || is_one(pattern);
}

tw_status twi_saved_slices_read(const char *pattern, twi_saved_slices *saved, tw_error *error)
{
    glob_t found = {0};
    twi_map places = {0};
    tw_status status = TW_OK;
    if (twi_file_exists(pattern) || glob(pattern, 0, NULL, &found) != 0)
        status = read_file(pattern, saved, &places, error);
    for (size_t i = 0; i < found.gl_pathc && status == TW_OK; i++)
        status = read_file(found.gl_pathv[i], saved, &places, error);
    for (int i = 0; i < saved->tensors.count && status == TW_OK; i++)
        status = check_whole(&saved->tensors.items[i], error);
    if (status == TW_OK && saved->tensors.count)
        qsort(saved->tensors.items, (size_t)saved->tensors.count, sizeof *saved->tensors.items, by_name);
    twi_map_free(&places);
    globfree(&found);
    return status;
}

void twi_saved_slices_free(twi_saved_slices *saved)
{
    for (int i = 0; i < saved->tensors.count; i++)
        tw_tensor_release(saved->tensors.items[i].value);
    twi_array_free(&saved->tensors);
    twi_arena_free(&saved->names);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* What one entry holds. */
typedef struct part {
    const tw_named_tensor *of;
    twi_slice where;
    const char *key;
    size_t key_size;
    Twi__TensorSliceProto *slice;
} part;

static int by_key(const void *a, const void *b)
{
    const part *x = a, *y = b;
    int order = memcmp(x->key, y->key, x->key_size < y->key_size ? x->key_size : y->key_size);
    return order ? order : (x->key_size > y->key_size) - (x->key_size < y->key_size);
}

/* Of a dimension that is there whole nothing is said. */
static Twi__TensorSliceProto *slice_to_proto(twi_arena *arena, const twi_slice *slice)
{
    Twi__TensorSliceProto *made = twi_arena_alloc(arena, sizeof *made);
    if (!made)
        return NULL;
    twi__tensor_slice_proto__init(made);
    made->extent = twi_arena_alloc(arena, sizeof *made->extent * (size_t)(slice->full.rank + 1));
    for (int i = 0; i < slice->full.rank && made->extent; i++) {
        Twi__TensorSliceProto__Extent *extent = made->extent[i] = twi_arena_alloc(arena, sizeof *extent);
        if (!extent)
            return NULL;
        twi__tensor_slice_proto__extent__init(extent);
        made->n_extent++;
        if (slice->all[i])
            continue;
        extent->start = slice->start[i];
        extent->has_length_case = TWI__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH;
        extent->length = slice->length[i];
    }
    return made->extent ? made : NULL;
}

static tw_status find_part(twi_arena *arena, const tw_named_tensor *tensor, part *made, tw_error *error)
{
    char text[128];
    twi_text key = {0};
    tw_shape shape = tw_tensor_shape(tensor->tensor);
    *made = (part){.of = tensor, .where = twi_slice_whole(shape)};
    if (tensor->part && *tensor->part) {
        tw_status status = twi_slice_parse(tensor->part, &made->where, error);
        if (status != TW_OK)
            return twi_prefix(error, "tensor '%s'", tensor->name), status;
    }
    if (!tw_shape_equal(shape, twi_slice_shape(&made->where)))
        return twi_fail(error, TW_INVALID_ARGUMENT, "tensor '%s' is %s, which is not the part '%s'", tensor->name,
                        tw_shape_text(shape, text, sizeof text), tensor->part);
    twi_slice_key(tensor->name, &made->where, &key);
    made->key_size = key.size;
    made->key = key.failed ? NULL : twi_arena_copy(arena, twi_text_string(&key), key.size);
    made->slice = slice_to_proto(arena, &made->where);
    twi_text_free(&key);
    return made->key && made->slice ? TW_OK : twi_fail_memory(error, "saving a checkpoint");
}

/* Narrow numbers, and the bits of half ones, go into lists of int32. */
static int32_t *widened(twi_arena *arena, const tw_tensor *tensor, size_t count)
{
    int32_t *list = twi_arena_alloc(arena, sizeof *list * (count + 1));
    tw_dtype dtype = tw_tensor_dtype(tensor);
    for (size_t i = 0; i < count && list; i++)
        list[i] = dtype == TW_FLOAT16 ? ((const uint16_t *)tw_tensor_data(tensor))[i]
                                      : (int32_t)tw_tensor_value(tensor, (int64_t)i);
    return list;
}

static protobuf_c_boolean *truths(twi_arena *arena, const bool *from, size_t count)
{
    protobuf_c_boolean *list = twi_arena_alloc(arena, sizeof *list * (count + 1));
    for (size_t i = 0; i < count && list; i++)
        list[i] = from[i];
    return list;
}

/* The values, which are borrowed where they lie as they are wanted. */
static tw_status list_values(twi_arena *arena, const tw_tensor *tensor, Twi__TensorProto *to, tw_error *error)
{
    size_t count = (size_t)tw_tensor_elements(tensor);
    void *data = tw_tensor_data(tensor), *list = data;
    switch (tw_tensor_dtype(tensor)) {
    case TW_FLOAT32:
        to->n_float_val = count;
        to->float_val = data;
        break;
    case TW_FLOAT64:
        to->n_double_val = count;
        to->double_val = data;
        break;
    case TW_COMPLEX64:
        to->n_scomplex_val = 2 * count;
        to->scomplex_val = data;
        break;
    case TW_COMPLEX128:
        to->n_dcomplex_val = 2 * count;
        to->dcomplex_val = data;
        break;
    case TW_INT64:
        to->n_int64_val = count;
        to->int64_val = data;
        break;
    case TW_INT32:
        to->n_int_val = count;
        to->int_val = data;
        break;
    case TW_UINT8:
    case TW_INT8:
    case TW_INT16:
    case TW_UINT16:
        to->n_int_val = count;
        list = to->int_val = widened(arena, tensor, count);
        break;
    case TW_FLOAT16:
        to->n_half_val = count;
        list = to->half_val = widened(arena, tensor, count);
        break;
    case TW_BOOL:
        to->n_bool_val = count;
        list = to->bool_val = truths(arena, data, count);
        break;
    case TW_STRING:
        to->n_string_val = count;
        list = to->string_val = twi_strings_to_proto(arena, tensor);
        break;
    default:
        return twi_fail(error, TW_UNIMPLEMENTED, "the first version of checkpoints has no %s",
                        tw_dtype_name(tw_tensor_dtype(tensor)));
    }
    return list || count == 0 ? TW_OK : twi_fail_memory(error, "saving a checkpoint");
}

static tw_status add_entry(twi_table_builder *table, const char *key, size_t key_size,
                           const Twi__SavedTensorSlices *saved, tw_error *error)
{
    size_t size = twi__saved_tensor_slices__get_packed_size(saved);
    uint8_t *bytes = size <= INT32_MAX ? twi_resize(NULL, size + 1) : NULL;
    if (size > INT32_MAX)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "it takes %zu bytes, but an entry of the first version of checkpoints holds at most %d", size,
                        INT32_MAX);
    if (!bytes)
        return twi_fail_memory(error, "saving a checkpoint");
    twi_table_add(table, key, key_size, bytes, twi__saved_tensor_slices__pack(saved, bytes));
    twi_free(bytes);
    return TW_OK;
}

/* Which tensors there are, and in which parts. Those of one tensor come one after the other. */
static tw_status add_list(twi_arena *arena, twi_table_builder *table, const part *parts, int count, tw_error *error)
{
    Twi__SavedTensorSlices saved = TWI__SAVED_TENSOR_SLICES__INIT;
    Twi__SavedTensorSliceMeta meta = TWI__SAVED_TENSOR_SLICE_META__INIT;
    Twi__VersionDef versions = TWI__VERSION_DEF__INIT;
    Twi__SavedSliceMeta *tensor = NULL;
    versions.producer = VERSION;
    meta.versions = &versions;
    saved.meta = &meta;
    meta.tensor = twi_arena_alloc(arena, sizeof *meta.tensor * (size_t)(count + 1));
    for (int i = 0; i < count && meta.tensor; i++) {
        const tw_named_tensor *of = parts[i].of;
        if (!tensor || strcmp(tensor->name, of->name) != 0) {
            tensor = meta.tensor[meta.n_tensor++] = twi_arena_alloc(arena, sizeof *tensor);
            if (!tensor)
                return twi_fail_memory(error, "saving a checkpoint");
            twi__saved_slice_meta__init(tensor);
            tensor->name = (char *)of->name;
            tensor->type = (int32_t)tw_tensor_dtype(of->tensor);
            tensor->shape = twi_shape_to_proto(arena, parts[i].where.full);
            tensor->slice = twi_arena_alloc(arena, sizeof *tensor->slice * (size_t)(count - i));
            if (!tensor->shape || !tensor->slice)
                return twi_fail_memory(error, "saving a checkpoint");
        } else if (by_key(&parts[i - 1], &parts[i]) == 0) {
            return twi_fail(error, TW_INVALID_ARGUMENT, "tensor '%s' is there twice", of->name);
        } else if (!tw_shape_equal(parts[i - 1].where.full, parts[i].where.full) ||
                   tensor->type != (int32_t)tw_tensor_dtype(of->tensor)) {
            return twi_fail(error, TW_INVALID_ARGUMENT, "the parts of '%s' disagree about its shape or type", of->name);
        }
        tensor->slice[tensor->n_slice++] = parts[i].slice;
    }
    return meta.tensor ? add_entry(table, "", 0, &saved, error) : twi_fail_memory(error, "saving a checkpoint");
}

static tw_status add_part(twi_table_builder *table, const part *from, tw_error *error)
{
    twi_arena arena = {0};
    Twi__SavedTensorSlices saved = TWI__SAVED_TENSOR_SLICES__INIT;
    Twi__SavedSlice data = TWI__SAVED_SLICE__INIT;
    Twi__TensorProto values = TWI__TENSOR_PROTO__INIT;
    data.name = (char *)from->of->name;
    data.slice = from->slice;
    data.data = &values;
    saved.data = &data;
    tw_status status = list_values(&arena, from->of->tensor, &values, error);
    if (status == TW_OK)
        status = add_entry(table, from->key, from->key_size, &saved, error);
    twi_arena_free(&arena);
    return status == TW_OK ? TW_OK : (twi_prefix(error, "tensor '%s'", from->of->name), status);
}

tw_status twi_saved_slices_write(const char *path, const tw_named_tensor *tensors, int count, tw_error *error)
{
    twi_arena arena = {0};
    twi_table_builder table;
    tw_status status = TW_OK;
    part *parts = twi_alloc_array((size_t)count + 1, sizeof *parts);
    twi_table_start(&table, 0);
    if (!parts)
        TWI_LEAVE(twi_fail_memory(error, "saving a checkpoint"));
    for (int i = 0; i < count; i++)
        TWI_TRY(find_part(&arena, &tensors[i], &parts[i], error));
    qsort(parts, (size_t)count, sizeof *parts, by_key);
    TWI_TRY(add_list(&arena, &table, parts, count, error));
    for (int i = 0; i < count; i++)
        TWI_TRY(add_part(&table, &parts[i], error));
    TWI_TRY(twi_table_finish(&table, error));
    status = twi_file_replace(path, twi_text_string(&table.file), table.file.size, error);
done:
    twi_table_free(&table);
    twi_arena_free(&arena);
    twi_free(parts);
    return status;
}
