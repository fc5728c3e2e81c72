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
