/* bundle.c - see bundle.h. */
#include "format/bundle.h"

#include "base/arena.h"
#include "base/array.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/little_endian.h"
#include "format/proto/bundle.pb-c.h"
#include "format/object_keys.h"
#include "format/protobuf.h"
#include "format/saved_slices.h"
#include "format/slice.h"
#include "format/table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "checkpoints hold tensors in little-endian order, and nothing here swaps bytes"
#endif

#define VERSION 1 /* of the format */
#define CHUNK_BYTES (1 << 20)
#define MOST_INDEX_BYTES ((size_t)1 << 30)
#define MOST_NAME_EXPANSION 64 /* names share prefixes on disk but not in memory */

enum { DT_VARIANT = 21 };

static uint32_t crc_of_length(uint32_t crc, uint64_t length)
{
    char bytes[8];
    twi_put64(bytes, length);
    return twi_crc32c(crc, bytes, length > UINT32_MAX ? 8 : 4);
}

/* ---- writing ---- */

/* What a save writes: a tensor under its name, a part of one under a key of its own, or of the tensor that parts make
 * the entry that lists them. */
typedef struct item {
    twi_text key;
    const tw_named_tensor *tensor;
    bool is_part, is_list;
    twi_slice slice; /* of a part */
    int64_t offset, size;
    uint32_t crc;
} item;

/* Data lie by name, the parts of a tensor in the order in which they were given. */
static int by_name(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int order = strcmp(x->tensor->name, y->tensor->name); /* strcmp compares as unsigned bytes, as the table does */
    return order ? order : (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

/* As unsigned bytes, as the table does. */
static int by_key(const void *a, const void *b)
{
    const item *x = a, *y = b;
    size_t shorter = x->key.size < y->key.size ? x->key.size : y->key.size;
    int order = memcmp(twi_text_string(&x->key), twi_text_string(&y->key), shorter);
    return order ? order : x->key.size < y->key.size ? -1 : x->key.size > y->key.size;
}

/* Appends a tensor's data; gives their size in the file and the checksum for the entry. */
static void write_data(twi_file_writer *file, const tw_tensor *tensor, int64_t *size, uint32_t *crc)
{
    const tw_string *strings = tw_tensor_data(tensor);
    int64_t count = tw_tensor_elements(tensor);
    char bytes[TWI_VARINT_BYTES];
    if (tw_tensor_dtype(tensor) != TW_STRING) {
        *size = (int64_t)tw_tensor_bytes(tensor);
        *crc = twi_crc32c(0, tw_tensor_data(tensor), (size_t)*size);
        twi_file_write(file, tw_tensor_data(tensor), (size_t)*size);
        return;
    }
    *size = 4;
    *crc = 0;
    for (int64_t i = 0; i < count; i++) {
        int length = twi_put_varint(bytes, strings[i].size);
        twi_file_write(file, bytes, (size_t)length);
        *crc = crc_of_length(*crc, strings[i].size);
        *size += length + (int64_t)strings[i].size;
    }
    twi_put32(bytes, twi_crc32c_mask(*crc));
    twi_file_write(file, bytes, 4);
    *crc = twi_crc32c(*crc, bytes, 4);
    for (int64_t i = 0; i < count; i++) {
        twi_file_write(file, strings[i].data, strings[i].size);
        *crc = twi_crc32c(*crc, strings[i].data, strings[i].size);
    }
}

static void add_header(twi_table_builder *table)
{
    Twi__VersionDef version = TWI__VERSION_DEF__INIT;
    Twi__BundleHeaderProto header = TWI__BUNDLE_HEADER_PROTO__INIT;
    uint8_t packed[64];
    version.producer = VERSION;
    header.num_shards = 1;
    header.version = &version;
    twi_table_add(table, "", 0, packed, twi__bundle_header_proto__pack(&header, packed));
}

static void add_entry(twi_table_builder *table, const item *item)
{
    tw_shape known = tw_tensor_shape(item->tensor->tensor);
    Twi__TensorShapeProto__Dim dims[TW_MAX_RANK], *dim_list[TW_MAX_RANK];
    Twi__TensorShapeProto shape = TWI__TENSOR_SHAPE_PROTO__INIT;
    Twi__BundleEntryProto entry = TWI__BUNDLE_ENTRY_PROTO__INIT;
    uint8_t packed[256]; /* at most 8 dimensions of 13 bytes and 48 for the rest */
    for (int i = 0; i < known.rank; i++) {
        dims[i] = (Twi__TensorShapeProto__Dim)TWI__TENSOR_SHAPE_PROTO__DIM__INIT;
        dims[i].size = known.dims[i];
        dim_list[i] = &dims[i];
    }
    shape.n_dim = (size_t)known.rank;
    shape.dim = dim_list;
    entry.dtype = (int32_t)tw_tensor_dtype(item->tensor->tensor);
    entry.shape = &shape; /* there even for scalars, where it is empty */
    entry.offset = item->offset;
    entry.size = item->size;
    entry.crc32c = twi_crc32c_mask(item->crc);
    twi_table_add(table, twi_text_string(&item->key), item->key.size, packed,
                  twi__bundle_entry_proto__pack(&entry, packed));
}

/* A dimension that is there as a whole has an extent without start and length. */
static Twi__TensorSliceProto *slice_proto(twi_arena *arena, const twi_slice *slice)
{
    size_t rank = (size_t)slice->full.rank;
    Twi__TensorSliceProto *proto = twi_arena_alloc(arena, sizeof *proto);
    Twi__TensorSliceProto__Extent *extents = twi_arena_alloc(arena, sizeof *extents * rank);
    if (!proto || !extents || !(proto->extent = twi_arena_alloc(arena, sizeof *proto->extent * rank)))
        return NULL;
    Twi__TensorSliceProto__Extent **list = proto->extent;
    twi__tensor_slice_proto__init(proto);
    proto->extent = list;
    proto->n_extent = rank;
    for (size_t i = 0; i < rank; i++) {
        twi__tensor_slice_proto__extent__init(&extents[i]);
        list[i] = &extents[i];
        if (slice->all[i])
            continue;
        extents[i].start = slice->start[i];
        extents[i].has_length_case = TWI__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH;
        extents[i].length = slice->length[i];
    }
    return proto;
}

/* The entry of a tensor that lies in parts: type, shape and where the parts are. */
static tw_status add_list(twi_table_builder *table, const item *items, int count, const item *list, tw_error *error)
{
    twi_arena arena = {0};
    Twi__BundleEntryProto entry = TWI__BUNDLE_ENTRY_PROTO__INIT;
    Twi__TensorShapeProto shape = TWI__TENSOR_SHAPE_PROTO__INIT;
    tw_status status = TW_OK;
    size_t rank = (size_t)list->slice.full.rank;
    Twi__TensorShapeProto__Dim *dims = twi_arena_alloc(&arena, sizeof *dims * rank);
    shape.dim = twi_arena_alloc(&arena, sizeof *shape.dim * rank);
    entry.slices = twi_arena_alloc(&arena, sizeof *entry.slices * (size_t)count);
    if (!dims || !shape.dim || !entry.slices)
        TWI_LEAVE(twi_fail_memory(error, "saving a checkpoint"));
    for (; shape.n_dim < rank; shape.n_dim++) {
        twi__tensor_shape_proto__dim__init(&dims[shape.n_dim]);
        dims[shape.n_dim].size = list->slice.full.dims[shape.n_dim];
        shape.dim[shape.n_dim] = &dims[shape.n_dim];
    }
    for (int i = 0; i < count; i++) {
        if (!items[i].is_part || strcmp(items[i].tensor->name, list->tensor->name) != 0)
            continue;
        if (!tw_shape_equal(items[i].slice.full, list->slice.full) ||
            tw_tensor_dtype(items[i].tensor->tensor) != tw_tensor_dtype(list->tensor->tensor))
            TWI_LEAVE(twi_fail(error, TW_INVALID_ARGUMENT, "the parts of '%s' disagree about its shape or type",
                               list->tensor->name));
        if (!(entry.slices[entry.n_slices++] = slice_proto(&arena, &items[i].slice)))
            TWI_LEAVE(twi_fail_memory(error, "saving a checkpoint"));
    }
    entry.dtype = (int32_t)tw_tensor_dtype(list->tensor->tensor);
    entry.shape = &shape;
    uint8_t *packed = twi_arena_alloc(&arena, twi__bundle_entry_proto__get_packed_size(&entry));
    if (!packed)
        TWI_LEAVE(twi_fail_memory(error, "saving a checkpoint"));
    twi_table_add(table, list->key.data, list->key.size, packed, twi__bundle_entry_proto__pack(&entry, packed));
done:
    twi_arena_free(&arena);
    return status;
}

static tw_status check_items(const item *items, int count, tw_error *error)
{
    for (int i = 0; i < count; i++) {
        const char *name = items[i].tensor->name;
        if (!*name)
            return twi_fail(error, TW_INVALID_ARGUMENT, "a tensor to be saved has an empty name");
        if (i > 0 && by_key(&items[i], &items[i - 1]) == 0)
            return twi_fail(error, TW_INVALID_ARGUMENT, "two tensors to be saved are called '%s'", name);
        if (tw_tensor_dtype(items[i].tensor->tensor) == TW_RESOURCE)
            return twi_fail(error, TW_INVALID_ARGUMENT, "tensor '%s' is a resource: its value must be saved, not it",
                            name);
        tw_shape has = tw_tensor_shape(items[i].tensor->tensor);
        if (items[i].is_part && !tw_shape_equal(has, twi_slice_shape(&items[i].slice))) {
            char text[128];
            return twi_fail(error, TW_INVALID_ARGUMENT, "tensor '%s' is %s, which is not the part '%s'", name,
                            tw_shape_text(has, text, sizeof text), items[i].tensor->part);
        }
    }
    return TW_OK;
}

/* A tensor's item; of the first part of one, also that of the list. items has room for both. */
static tw_status make_items(const tw_named_tensor *tensor, item *items, int *count, tw_error *error)
{
    item *made = &items[(*count)++];
    made->tensor = tensor;
    if (tensor->part && *tensor->part) {
        tw_status status = twi_slice_parse(tensor->part, &made->slice, error);
        if (status != TW_OK)
            return status;
        made->is_part = !twi_slice_is_whole(&made->slice);
    }
    if (!made->is_part) {
        twi_text_printf(&made->key, "%s", tensor->name);
        return TW_OK;
    }
    twi_slice_key(tensor->name, &made->slice, &made->key);
    for (int i = 0; i < *count; i++)
        if (items[i].is_list && strcmp(items[i].tensor->name, tensor->name) == 0)
            return TW_OK;
    item *list = &items[(*count)++];
    *list = (item){.tensor = tensor, .is_list = true, .slice = made->slice};
    twi_text_printf(&list->key, "%s", tensor->name);
    return TW_OK;
}

/* Writes the tensors' data. */
static void write_items(item *items, int count, twi_file_writer *file)
{
    int64_t offset = 0;
    qsort(items, (size_t)count, sizeof *items, by_name);
    for (int i = 0; i < count; i++) {
        if (items[i].is_list)
            continue;
        items[i].offset = offset;
        write_data(file, items[i].tensor->tensor, &items[i].size, &items[i].crc);
        offset += items[i].size;
    }
}

/* Lists them in the table. */
static tw_status list_items(const item *items, int count, twi_table_builder *table, tw_error *error)
{
    tw_status status = TW_OK;
    add_header(table);
    for (int i = 0; i < count && status == TW_OK; i++)
        if (items[i].is_list)
            status = add_list(table, items, count, &items[i], error);
        else
            add_entry(table, &items[i]);
    return status;
}

tw_status twi_bundle_write(const char *data_path, const char *index_path, const tw_named_tensor *tensors, int count,
                           tw_error *error)
{
    tw_status status = TW_OK;
    twi_table_builder table;
    twi_file_writer *file = NULL;
    bool made_data = false, made_index = false;
    int num_items = 0;
    item *items = twi_alloc_array(2 * (size_t)count + 1, sizeof *items);
    twi_table_start(&table, 0);
    if (!items) {
        status = twi_fail_memory(error, "saving a checkpoint");
        goto done;
    }
    for (int i = 0; i < count; i++)
        TWI_TRY(make_items(&tensors[i], items, &num_items, error));
    for (int i = 0; i < num_items; i++)
        if (items[i].key.failed)
            TWI_LEAVE(twi_fail_memory(error, "saving a checkpoint"));
    qsort(items, (size_t)num_items, sizeof *items, by_key);
    TWI_TRY(check_items(items, num_items, error));

    TWI_TRY(twi_file_create_new(data_path, &file, error));
    made_data = true;
    write_items(items, num_items, file);
    status = twi_file_close(file, true, error);
    file = NULL;
    if (status != TW_OK)
        goto done;
    qsort(items, (size_t)num_items, sizeof *items, by_key);
    TWI_TRY(list_items(items, num_items, &table, error));

    TWI_TRY(twi_table_finish(&table, error));
    TWI_TRY(twi_file_create_new(index_path, &file, error));
    made_index = true;
    twi_file_write(file, table.file.data, table.file.size);
    status = twi_file_close(file, true, error);
    file = NULL;
done:
    if (status != TW_OK && made_index)
        twi_files()->unlink(index_path);
    if (status != TW_OK && made_data)
        twi_files()->unlink(data_path);
    twi_table_free(&table);
    for (int i = 0; i < num_items; i++)
        twi_text_free(&items[i].key);
    twi_free(items);
    return status;
}

/* ---- reading ---- */

typedef struct entry {
    const char *name;
    int32_t number; /* of its type, as in the file */
    tw_dtype dtype; /* TW_INVALID_DTYPE if Tower has no such type */
    tw_shape shape; /* TW_UNKNOWN_SHAPE if Tower has no such rank */
    int64_t elements;
    int num_parts;    /* the value lies in parts, under keys of their own; 0: it does not */
    twi_slice *parts;
    size_t key_size;
    int shard;
    int64_t offset, size;
    uint32_t crc; /* masked */
    tw_tensor *held; /* its value, where all was read at once; else NULL */
} entry;

struct tw_checkpoint {
    char *prefix;
    bool has_header;
    int num_shards;
    TWI_ARRAY(entry) entries;
    int first_named; /* entries before it are parts of partitioned tensors: their keys begin with a zero byte */
    twi_arena names;
    size_t name_bytes_left;
    twi_file_reader *data; /* the data file used last */
    int data_shard;
    twi_object_keys objects; /* read when somebody asks for them */
    bool has_objects;
};

int64_t twi_checkpoint_step_of(const char *name)
{
    static const char replaced[] = ".replaced";
    size_t size = strlen(name), tail = sizeof replaced - 1;
    int64_t step = 0, unit = 1;
    if (size > tail && strcmp(name + size - tail, replaced) == 0)
        size -= tail;
    size_t at = size;
    for (; at > 0 && isdigit((unsigned char)name[at - 1]) && size - at < 18; at--, unit *= 10)
        step += (name[at - 1] - '0') * unit;
    return at < size && at > 0 && name[at - 1] == '-' ? step : -1;
}

/* Makes checkpoint->data the reader of a shard. */
static tw_status open_shard(tw_checkpoint *checkpoint, int shard, tw_error *error)
{
    tw_status status = TW_OK;
    twi_text path = {0};
    if (checkpoint->data && checkpoint->data_shard == shard)
        return TW_OK;
    twi_file_reader_close(checkpoint->data);
    checkpoint->data = NULL;
    twi_text_printf(&path, "%s.data-%05d-of-%05d", checkpoint->prefix, shard, checkpoint->num_shards);
    if (path.failed) {
        status = twi_fail_memory(error, "opening a checkpoint");
        goto done;
    }
    TWI_TRY(twi_file_open(path.data, &checkpoint->data, error));
    checkpoint->data_shard = shard;
done:
    twi_text_free(&path);
    return status;
}

static tw_status read_header(tw_checkpoint *checkpoint, const char *value, size_t size, tw_error *error)
{
    tw_status status = TW_OK;
    twi_proto proto;
    twi_proto_start(&proto, size);
    Twi__BundleHeaderProto *header = twi__bundle_header_proto__unpack(&proto.allocator, size, (const uint8_t *)value);
    if (proto.out_of_memory)
        return twi_fail_memory(error, "opening a checkpoint");
    if (!header)
        return twi_fail(error, TW_DATA_LOSS, "its header cannot be understood");
    const Twi__VersionDef *version = header->version;
    bool refused = false;
    for (size_t i = 0; version && i < version->n_bad_consumers; i++)
        refused |= version->bad_consumers[i] == VERSION;
    if (header->endianness != TWI__BUNDLE_HEADER_PROTO__ENDIANNESS__LITTLE)
        status = twi_fail(error, TW_UNIMPLEMENTED, "it was written on a big-endian machine");
    else if (version && version->min_consumer > VERSION)
        status = twi_fail(error, TW_UNIMPLEMENTED, "it needs a reader of version %d of the format or later, this is %d",
                          version->min_consumer, VERSION);
    else if (refused)
        status = twi_fail(error, TW_UNIMPLEMENTED, "it is not to be read by version %d of the format, which this is",
                          VERSION);
    else if (header->num_shards < 1 || header->num_shards > 99999)
        status = twi_fail(error, TW_DATA_LOSS, "it claims to have %d data files", header->num_shards);
    checkpoint->num_shards = header->num_shards;
    checkpoint->has_header = true;
    twi__bundle_header_proto__free_unpacked(header, &proto.allocator);
    return status;
}

/* Elements of a tensor in the file, whatever its rank; -1 for an impossible shape. */
static int64_t elements_of(const Twi__TensorShapeProto *shape)
{
    int64_t elements = 1;
    if (shape && shape->unknown_rank)
        return -1;
    for (size_t i = 0; shape && i < shape->n_dim; i++)
        if (shape->dim[i]->size < 0 || __builtin_mul_overflow(elements, shape->dim[i]->size, &elements))
            return -1;
    return elements;
}

/* Refuses a place outside of the data file, or a size that is not that of the tensor. */
static tw_status check_place(tw_checkpoint *checkpoint, const entry *entry, tw_error *error)
{
    int64_t needed = entry->size; /* exactly, or at least, for strings */
    if (entry->shard < 0 || entry->shard >= checkpoint->num_shards)
        return twi_fail(error, TW_DATA_LOSS, "tensor '%s' lies in data file %d of %d", entry->name, entry->shard,
                        checkpoint->num_shards);
    tw_status status = open_shard(checkpoint, entry->shard, error);
    if (status != TW_OK)
        return status;
    uint64_t file_size = twi_file_size(checkpoint->data);
    if (entry->offset < 0 || entry->size < 0 || (uint64_t)entry->offset > file_size ||
        (uint64_t)entry->size > file_size - (uint64_t)entry->offset)
        return twi_fail(error, TW_DATA_LOSS, "tensor '%s' has %lld bytes at %lld, but its data file has only %llu",
                        entry->name, (long long)entry->size, (long long)entry->offset, (unsigned long long)file_size);
    size_t each = entry->dtype == TW_STRING ? 1 : tw_dtype_size(entry->dtype);
    if (entry->dtype != TW_INVALID_DTYPE &&
        (__builtin_mul_overflow(entry->elements, (int64_t)each, &needed) ||
         (entry->dtype == TW_STRING ? needed > entry->size - 4 : needed != entry->size)))
        return twi_fail(error, TW_DATA_LOSS, "tensor '%s' has %lld elements of type %s, but %lld bytes of data",
                        entry->name, (long long)entry->elements, tw_dtype_name(entry->dtype), (long long)entry->size);
    return TW_OK;
}

/* Where a tensor's parts lie in it. Of one that has more dimensions than we know of, nothing is kept. */
static tw_status read_parts(tw_checkpoint *checkpoint, entry *entry, const Twi__BundleEntryProto *stored,
                            tw_error *error)
{
    entry->parts = twi_arena_alloc(&checkpoint->names, sizeof *entry->parts * stored->n_slices);
    if (!entry->parts)
        return twi_fail_memory(error, "opening a checkpoint");
    for (size_t i = 0; i < stored->n_slices && entry->shape.rank >= 0; i++)
        if (!twi_slice_from_proto(stored->slices[i], entry->shape, &entry->parts[i]))
            return twi_fail(error, TW_DATA_LOSS, "part %zu of tensor '%s' lies outside of it", i, entry->name);
    return TW_OK;
}

/* Takes in one entry of the index: twi_table_entry. */
static tw_status read_entry(void *user, const char *key, size_t key_size, const char *value, size_t value_size,
                            tw_error *error)
{
    tw_checkpoint *checkpoint = user;
    tw_status status = TW_OK;
    twi_proto proto;
    if (key_size == 0)
        return read_header(checkpoint, value, value_size, error);
    if (!checkpoint->has_header)
        return twi_fail(error, TW_DATA_LOSS, "it has no header");
    if (key_size > checkpoint->name_bytes_left)
        return twi_fail(error, TW_DATA_LOSS, "its names are too long for a file of its size");
    checkpoint->name_bytes_left -= key_size;
    if (*key && memchr(key, 0, key_size))
        return twi_fail(error, TW_DATA_LOSS, "the name '%s...' has a zero byte in it", key);
    char *name = twi_arena_alloc(&checkpoint->names, key_size + 1);
    if (!name)
        return twi_fail_memory(error, "opening a checkpoint");
    memcpy(name, key, key_size);

    twi_proto_start(&proto, value_size);
    Twi__BundleEntryProto *stored =
        twi__bundle_entry_proto__unpack(&proto.allocator, value_size, (const uint8_t *)value);
    if (proto.out_of_memory)
        return twi_fail_memory(error, "opening a checkpoint");
    if (!stored)
        return twi_fail(error, TW_DATA_LOSS, "the entry of tensor '%s' cannot be understood", name);
    size_t rank = stored->shape ? stored->shape->n_dim : 0;
    entry made = {
        .name = name,
        .number = stored->dtype,
        .dtype = tw_dtype_size((tw_dtype)stored->dtype) ? (tw_dtype)stored->dtype : TW_INVALID_DTYPE,
        .shape = TW_UNKNOWN_SHAPE,
        .elements = elements_of(stored->shape),
        .num_parts = (int)stored->n_slices,
        .key_size = key_size,
        .shard = stored->shard_id,
        .offset = stored->offset,
        .size = stored->size,
        .crc = stored->crc32c,
    };
    if (made.dtype == TW_RESOURCE || made.dtype == TW_VARIANT) /* no bytes of ours */
        made.dtype = TW_INVALID_DTYPE;
    if (rank <= TW_MAX_RANK) {
        made.shape.rank = (int)rank;
        for (size_t i = 0; i < rank; i++)
            made.shape.dims[i] = stored->shape->dim[i]->size;
    }
    if (made.elements < 0)
        status = twi_fail(error, TW_DATA_LOSS, "tensor '%s' has an impossible shape", name);
    else if (made.num_parts)
        status = read_parts(checkpoint, &made, stored, error);
    else
        status = check_place(checkpoint, &made, error);
    if (status == TW_OK && !twi_push(&checkpoint->entries, made))
        status = twi_fail_memory(error, "opening a checkpoint");
    if (status == TW_OK && *key == 0)
        checkpoint->first_named = checkpoint->entries.count;
    twi__bundle_entry_proto__free_unpacked(stored, &proto.allocator);
    return status;
}

static int64_t bytes_of(const tw_tensor *tensor)
{
    const tw_string *strings = tw_tensor_data(tensor);
    int64_t bytes = 0;
    if (tw_tensor_dtype(tensor) != TW_STRING)
        return (int64_t)tw_tensor_bytes(tensor);
    for (int64_t i = 0; i < tw_tensor_elements(tensor); i++)
        bytes += (int64_t)strings[i].size;
    return bytes;
}

/* Takes in what an older TensorFlow has written. */
static tw_status read_saved_slices(tw_checkpoint *checkpoint, tw_error *error)
{
    twi_saved_slices saved = {0};
    tw_status status = twi_saved_slices_read(checkpoint->prefix, &saved, error);
    for (int i = 0; i < saved.tensors.count && status == TW_OK; i++) {
        twi_saved *from = &saved.tensors.items[i];
        entry made = {.name = twi_arena_strdup(&checkpoint->names, from->name), .number = from->number,
                      .dtype = from->dtype, .shape = from->shape, .held = from->value};
        if (from->value) {
            made.elements = tw_tensor_elements(from->value);
            made.size = bytes_of(from->value);
        }
        if (!made.name || !twi_push(&checkpoint->entries, made))
            status = twi_fail_memory(error, "opening a checkpoint");
        else
            from->value = NULL;
    }
    twi_saved_slices_free(&saved);
    return status;
}

tw_status twi_bundle_open(const char *prefix, tw_checkpoint **checkpoint, tw_error *error)
{
    tw_status status = TW_OK;
    twi_text path = {0};
    char *bytes = NULL;
    size_t size;
    tw_checkpoint *made = twi_alloc(sizeof *made);
    *checkpoint = NULL;
    twi_text_printf(&path, "%s.index", prefix);
    if (!made || path.failed || !(made->prefix = twi_strdup(prefix))) {
        status = twi_fail_memory(error, "opening a checkpoint");
        goto done;
    }
    if (!twi_file_exists(path.data) && twi_saved_slices_are_there(prefix)) {
        status = read_saved_slices(made, error);
    } else {
        TWI_TRY(twi_file_read(path.data, MOST_INDEX_BYTES, &bytes, &size, error));
        made->name_bytes_left = size * MOST_NAME_EXPANSION;
        status = twi_table_read(bytes, size, read_entry, made, error);
        if (status == TW_OK && !made->has_header)
            status = twi_fail(error, TW_DATA_LOSS, "it has no header");
        if (status != TW_OK)
            twi_prefix(error, "'%s'", path.data);
    }
    if (status == TW_OK) {
        *checkpoint = made;
        made = NULL;
    }
done:
    twi_text_free(&path);
    twi_free(bytes);
    tw_checkpoint_close(made);
    return status;
}

void tw_checkpoint_close(tw_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    twi_file_reader_close(checkpoint->data);
    for (int i = 0; i < checkpoint->entries.count; i++)
        tw_tensor_release(checkpoint->entries.items[i].held);
    twi_array_free(&checkpoint->entries);
    twi_arena_free(&checkpoint->names);
    twi_object_keys_free(&checkpoint->objects);
    twi_free(checkpoint->prefix);
    twi_free(checkpoint);
}

static const entry *named(const tw_checkpoint *checkpoint, int i)
{
    return &checkpoint->entries.items[checkpoint->first_named + i];
}

const char *tw_checkpoint_path(const tw_checkpoint *checkpoint)
{
    TWI_NEED_OR(checkpoint, "");
    return checkpoint->prefix;
}

int64_t tw_checkpoint_step(const tw_checkpoint *checkpoint)
{
    TWI_NEED_OR(checkpoint, 0);
    return twi_checkpoint_step_of(checkpoint->prefix);
}

int tw_checkpoint_count(const tw_checkpoint *checkpoint)
{
    TWI_NEED_OR(checkpoint, 0);
    return checkpoint->entries.count - checkpoint->first_named;
}

const char *tw_checkpoint_name(const tw_checkpoint *checkpoint, int i)
{
    TWI_NEED_OR(checkpoint, "");
    return named(checkpoint, i)->name;
}

tw_dtype tw_checkpoint_dtype(const tw_checkpoint *checkpoint, int i)
{
    TWI_NEED_OR(checkpoint, TW_INVALID_DTYPE);
    return named(checkpoint, i)->dtype;
}

tw_shape tw_checkpoint_shape(const tw_checkpoint *checkpoint, int i)
{
    TWI_NEED_OR(checkpoint, TW_UNKNOWN_SHAPE);
    return named(checkpoint, i)->shape;
}

int64_t tw_checkpoint_bytes(const tw_checkpoint *checkpoint, int i)
{
    TWI_NEED_OR(checkpoint, 0);
    const entry *entry = named(checkpoint, i);
    return entry->num_parts ? entry->elements * (int64_t)tw_dtype_size(entry->dtype) : entry->size;
}

int tw_checkpoint_find(const tw_checkpoint *checkpoint, const char *name)
{
    TWI_NEED_OR(checkpoint, 0);
    TWI_NEED_OR(name, 0);
    int low = 0, high = tw_checkpoint_count(checkpoint);
    while (low < high) {
        int middle = low + (high - low) / 2, order = strcmp(named(checkpoint, middle)->name, name);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static tw_status check_crc(const entry *entry, uint32_t crc, tw_error *error)
{
    if (!twi_crc32c_matches(entry->crc, crc))
        return twi_fail(error, TW_DATA_LOSS,
                        "tensor '%s' is damaged: its %lld bytes at %lld do not match their checksum", entry->name,
                        (long long)entry->size, (long long)entry->offset);
    return TW_OK;
}

/* Checks the data of a string tensor and, if `tensor` is not NULL, copies the strings into it. */
static tw_status read_strings(const entry *entry, const char *bytes, tw_tensor *tensor, tw_error *error)
{
    const char *at = bytes, *end = bytes + entry->size;
    uint64_t length = 0, total = 0;
    uint32_t crc = 0;
    for (int64_t i = 0; i < entry->elements; i++) {
        if (!twi_get_varint(&at, end, &length) || length > (uint64_t)entry->size - total)
            return twi_fail(error, TW_DATA_LOSS, "tensor '%s' is damaged: string %lld is longer than all of it",
                            entry->name, (long long)i);
        total += length;
        crc = crc_of_length(crc, length);
    }
    if (end - at < 4 || total != (uint64_t)(end - at) - 4 || !twi_crc32c_matches(twi_get32(at), crc))
        return twi_fail(error, TW_DATA_LOSS, "tensor '%s' is damaged: the lengths of its strings do not add up",
                        entry->name);
    tw_status status = check_crc(entry, twi_crc32c(crc, at, (size_t)(end - at)), error);
    const char *string = at + 4;
    at = bytes;
    for (int64_t i = 0; i < entry->elements && tensor && status == TW_OK; i++) {
        twi_get_varint(&at, end, &length);
        if (tw_tensor_set_string(tensor, i, string, (size_t)length) != TW_OK)
            status = twi_fail_memory(error, "reading a tensor");
        string += length;
    }
    return status;
}

/* Checks one entry's data; fills in `tensor`, of its type and shape, unless that is NULL. */
static tw_status read_data(tw_checkpoint *checkpoint, const entry *entry, tw_tensor *tensor, tw_error *error)
{
    tw_status status = TW_OK;
    bool strings = entry->dtype == TW_STRING;
    char *buffer = NULL;
    size_t size = (size_t)entry->size, piece = size;
    uint32_t crc = 0;
    if (tensor && !strings) {
        TWI_TRY(open_shard(checkpoint, entry->shard, error));
        TWI_TRY(twi_file_read_at(checkpoint->data, (uint64_t)entry->offset, tw_tensor_data(tensor), size, error));
        return check_crc(entry, twi_crc32c(0, tw_tensor_data(tensor), size), error);
    }
    if (!strings && size > CHUNK_BYTES)
        piece = CHUNK_BYTES;
    if (!(buffer = twi_resize(NULL, piece))) {
        status = twi_fail_memory(error, "reading a tensor");
        goto done;
    }
    TWI_TRY(open_shard(checkpoint, entry->shard, error));
    for (size_t at = 0; at < size; at += piece) {
        if (piece > size - at)
            piece = size - at;
        TWI_TRY(twi_file_read_at(checkpoint->data, (uint64_t)entry->offset + at, buffer, piece, error));
        crc = twi_crc32c(crc, buffer, piece);
    }
    status = strings ? read_strings(entry, buffer, tensor, error) : check_crc(entry, crc, error);
done:
    twi_free(buffer);
    return status;
}

/* What the reader cannot do. `what` for the message: "read", "checked". */
static tw_status refuse_foreign(const entry *entry, const char *what, tw_error *error)
{
    return twi_fail(error, TW_UNIMPLEMENTED, "tensor '%s' cannot be %s: its type is TensorFlow's number %d",
                    entry->name, what, entry->number);
}

/* The entry of a part of a tensor; NULL if there is none that fits. */
static tw_status find_part(const tw_checkpoint *checkpoint, const entry *whole, const twi_slice *slice,
                           const entry **found, tw_error *error)
{
    twi_text key = {0};
    twi_slice_key(whole->name, slice, &key);
    *found = NULL;
    for (int i = 0; i < checkpoint->first_named && !*found && !key.failed; i++) {
        const entry *entry = &checkpoint->entries.items[i];
        if (entry->key_size == key.size && memcmp(entry->name, key.data, key.size) == 0 &&
            entry->dtype == whole->dtype && entry->shape.rank >= 0 && entry->num_parts == 0)
            *found = entry; /* one in parts again has no bytes of its own, and what it says of them is not checked */
    }
    tw_status status = key.failed ? twi_fail_memory(error, "reading a tensor") : TW_OK;
    twi_text_free(&key);
    return status;
}

/* A tensor of an entry's own, read whole. */
static tw_status read_whole(tw_checkpoint *checkpoint, const entry *entry, tw_tensor **tensor, tw_error *error)
{
    if (entry->held) {
        *tensor = tw_tensor_from(entry->dtype, entry->shape, tw_tensor_data(entry->held));
        return *tensor ? TW_OK : twi_fail_memory(error, "reading a tensor");
    }
    tw_tensor *made = tw_tensor_create(entry->dtype, entry->shape);
    tw_status status = made ? read_data(checkpoint, entry, made, error) : twi_fail_memory(error, "reading a tensor");
    if (status == TW_OK)
        *tensor = made;
    else
        tw_tensor_release(made);
    return status;
}

/* Fills what `wanted` says from one stored part; *copied counts elements. */
static tw_status read_from(tw_checkpoint *checkpoint, const entry *stored, const twi_slice *where,
                           const twi_slice *wanted, tw_tensor *into, int64_t *copied, tw_error *error)
{
    tw_tensor *part = NULL;
    tw_status status = read_whole(checkpoint, stored, &part, error);
    if (status == TW_OK && !tw_shape_equal(tw_tensor_shape(part), twi_slice_shape(where)))
        status = twi_fail(error, TW_DATA_LOSS, "a part of it has another shape than its place");
    if (status == TW_OK)
        *copied +=
            twi_slice_copy(where, tw_tensor_data(part), wanted, tw_tensor_data(into), tw_dtype_size(stored->dtype));
    tw_tensor_release(part);
    return status;
}

/* Puts a tensor, or a part of one, together of what is stored. Parts of strings are not known to be anywhere. */
static tw_status assemble(tw_checkpoint *checkpoint, const entry *entry, const twi_slice *wanted, tw_tensor *into,
                          tw_error *error)
{
    int64_t copied = 0;
    twi_slice whole = twi_slice_whole(entry->shape);
    tw_status status = TW_OK;
    if (entry->dtype == TW_STRING)
        return twi_fail(error, TW_UNIMPLEMENTED, "tensor '%s' cannot be read: it has strings in parts", entry->name);
    if (entry->num_parts == 0)
        status = read_from(checkpoint, entry, &whole, wanted, into, &copied, error);
    for (int i = 0; i < entry->num_parts && status == TW_OK; i++) {
        const struct entry *part;
        status = find_part(checkpoint, entry, &entry->parts[i], &part, error);
        if (status == TW_OK && !part)
            return twi_fail(error, TW_DATA_LOSS, "part %d of tensor '%s' is not there", i, entry->name);
        if (status == TW_OK)
            status = read_from(checkpoint, part, &entry->parts[i], wanted, into, &copied, error);
    }
    if (status == TW_OK && copied < tw_tensor_elements(into))
        status = twi_fail(error, TW_NOT_FOUND, "the parts of tensor '%s' do not cover what is asked for", entry->name);
    return status;
}

static tw_status check_readable(const entry *entry, tw_error *error)
{
    if (entry->dtype == TW_INVALID_DTYPE)
        return refuse_foreign(entry, "read", error);
    if (entry->shape.rank < 0)
        return twi_fail(error, TW_UNIMPLEMENTED, "tensor '%s' cannot be read: it has more than %d dimensions",
                        entry->name, TW_MAX_RANK);
    return TW_OK;
}

/* part "": all of it. */
static tw_status read_part(tw_checkpoint *checkpoint, const char *name, const char *part, tw_tensor **tensor,
                           tw_error *error)
{
    int i = tw_checkpoint_find(checkpoint, name);
    if (i < 0)
        return twi_fail(error, TW_NOT_FOUND, "'%s' has no tensor '%s'", checkpoint->prefix, name);
    const entry *entry = named(checkpoint, i);
    tw_status status = check_readable(entry, error);
    twi_slice wanted = twi_slice_whole(entry->shape);
    if (status == TW_OK && *part)
        status = twi_slice_parse(part, &wanted, error);
    if (status == TW_OK && !tw_shape_equal(wanted.full, entry->shape)) {
        char text[128];
        status = twi_fail(error, TW_INVALID_ARGUMENT, "tensor_name = %s; shape in shape_and_slice spec %s does not match "
                          "the shape stored in checkpoint: %s", name, part,
                          tw_shape_text(entry->shape, text, sizeof text));
    }
    if (status == TW_OK && entry->num_parts == 0 && twi_slice_is_whole(&wanted))
        return read_whole(checkpoint, entry, tensor, error);
    tw_tensor *made = status == TW_OK ? tw_tensor_create(entry->dtype, twi_slice_shape(&wanted)) : NULL;
    if (status == TW_OK)
        status = made ? assemble(checkpoint, entry, &wanted, made, error) : twi_fail_memory(error, "reading a tensor");
    if (status == TW_OK)
        *tensor = made;
    else
        tw_tensor_release(made);
    return status;
}

tw_status tw_checkpoint_read_part(tw_checkpoint *checkpoint, const char *name, const char *part, tw_tensor **tensor,
                                  tw_error *error)
{
    TWI_NEED(checkpoint, "checkpoint", error);
    TWI_NEED(name, "name", error);
    TWI_NEED(tensor, "tensor", error);
    *tensor = NULL;
    bool known = tw_checkpoint_find(checkpoint, name) >= 0;
    tw_status status = read_part(checkpoint, name, part ? part : "", tensor, error);
    if (status != TW_OK && known)
        twi_prefix(error, "'%s'", checkpoint->prefix);
    return status;
}

tw_status tw_checkpoint_read(tw_checkpoint *checkpoint, const char *name, tw_tensor **tensor, tw_error *error)
{
    return tw_checkpoint_read_part(checkpoint, name, NULL, tensor, error);
}

static tw_status read_objects(tw_checkpoint *checkpoint, tw_error *error)
{
    tw_tensor *graph = NULL;
    if (checkpoint->has_objects || tw_checkpoint_find(checkpoint, TWI_OBJECT_GRAPH) < 0)
        return TW_OK;
    tw_status status = tw_checkpoint_read(checkpoint, TWI_OBJECT_GRAPH, &graph, error);
    bool is_text = status == TW_OK && tw_tensor_dtype(graph) == TW_STRING && tw_tensor_elements(graph) == 1;
    if (is_text) {
        const tw_string *bytes = tw_tensor_data(graph);
        twi_object_keys_free(&checkpoint->objects); /* what was read of them when memory ran out */
        status = twi_object_keys_read(&checkpoint->objects, bytes->data, bytes->size, error);
        if (status != TW_OK)
            twi_prefix(error, "tensor '" TWI_OBJECT_GRAPH "' of %s", checkpoint->prefix);
    }
    tw_tensor_release(graph);
    checkpoint->has_objects = status == TW_OK;
    return status;
}

tw_status tw_checkpoint_key(tw_checkpoint *checkpoint, const char *name, const char **key, tw_error *error)
{
    TWI_NEED(checkpoint, "checkpoint", error);
    TWI_NEED(name, "name", error);
    TWI_NEED(key, "key", error);
    *key = NULL;
    tw_status status = read_objects(checkpoint, error);
    const char *found = status == TW_OK ? twi_map_get(&checkpoint->objects.keys, name) : NULL;
    if (found && tw_checkpoint_find(checkpoint, found) >= 0)
        *key = found;
    return status;
}

int twi_bundle_num_parts(const tw_checkpoint *checkpoint, int i)
{
    return named(checkpoint, i)->num_parts;
}

void twi_bundle_part(const tw_checkpoint *checkpoint, int i, int k, twi_text *part)
{
    twi_slice_print(&named(checkpoint, i)->parts[k], part);
}

tw_status twi_bundle_verify(tw_checkpoint *checkpoint, tw_error *error)
{
    for (int i = 0; i < checkpoint->entries.count; i++) {
        const entry *entry = &checkpoint->entries.items[i];
        tw_status status = TW_OK;
        if (entry->number == DT_VARIANT) /* its checksum does not run over its bytes alone */
            status = refuse_foreign(entry, "checked", error);
        else if (checkpoint->num_shards && !entry->num_parts) /* saved slices were checked when they were read */
            status = read_data(checkpoint, entry, NULL, error);
        if (status != TW_OK) {
            twi_prefix(error, "'%s'", checkpoint->prefix);
            return status;
        }
    }
    return TW_OK;
}
