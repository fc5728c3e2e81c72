/* table.c - see table.h. */
#include "format/table.h"

#include "base/crc32c.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/little_endian.h"
#include "format/snappy.h"

#include <string.h>

#define BLOCK_BYTES 262144
#define RESTART_INTERVAL 16
#define TRAILER 5
#define FOOTER 48
#define MAGIC UINT64_C(0xdb4775248b80fb57)

enum { PLAIN = 0, SNAPPY = 1 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t common_prefix(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t limit = smaller(a_size, b_size), i = 0;
    while (i < limit && a[i] == b[i])
        i++;
    return i;
}

static int compare(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t shared = smaller(a_size, b_size);
    int order = shared ? memcmp(a, b, shared) : 0;
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

static void append_varint(twi_text *text, uint64_t value)
{
    char bytes[TWI_VARINT_BYTES];
    twi_text_append(text, bytes, (size_t)twi_put_varint(bytes, value));
}

static void append32(twi_text *text, uint32_t value)
{
    char bytes[4];
    twi_put32(bytes, value);
    twi_text_append(text, bytes, 4);
}

static void set(twi_text *text, const void *bytes, size_t size)
{
    text->size = 0;
    twi_text_append(text, bytes, size);
}

/* ---- building ---- */

static void block_add(twi_table_block *block, const char *key, size_t key_size, const void *value, size_t value_size)
{
    size_t shared = 0;
    if (block->restarts.size == 0 || block->since_restart == block->interval) {
        append32(&block->restarts, (uint32_t)block->bytes.size);
        block->since_restart = 0;
    } else {
        shared = common_prefix(block->last_key.data, block->last_key.size, key, key_size);
    }
    block->since_restart++;
    append_varint(&block->bytes, shared);
    append_varint(&block->bytes, key_size - shared);
    append_varint(&block->bytes, value_size);
    twi_text_append(&block->bytes, key + shared, key_size - shared);
    twi_text_append(&block->bytes, value, value_size);
    set(&block->last_key, key, key_size);
}

/* Moves a block into the file and empties it. Its last key stays. */
static void close_block(twi_table_builder *builder, twi_table_block *block)
{
    if (block->restarts.size == 0)
        append32(&block->restarts, 0);
    twi_text_append(&block->bytes, twi_text_string(&block->restarts), block->restarts.size);
    append32(&block->bytes, (uint32_t)(block->restarts.size / 4));
    builder->offset = builder->file.size;
    builder->size = block->bytes.size;
    twi_text_append(&block->bytes, "\0", 1); /* PLAIN */
    uint32_t crc = twi_crc32c(0, twi_text_string(&block->bytes), block->bytes.size);
    append32(&block->bytes, twi_crc32c_mask(crc));
    twi_text_append(&builder->file, twi_text_string(&block->bytes), block->bytes.size);
    block->bytes.size = block->restarts.size = 0;
}

/* The index entry of the closed block. Its key is the shortest that is not below the block's last key and, where
 * another follows, below that: the same choice as TensorFlow's, so that equal tensors give equal bytes. */
static void index_closed_block(twi_table_builder *builder, const char *next, size_t next_size)
{
    twi_text *last = &builder->data.last_key;
    char handle[2 * TWI_VARINT_BYTES];
    size_t at = 0;
    bool shorter;
    if (last->failed)
        return;
    if (next) {
        at = common_prefix(last->data, last->size, next, next_size);
        shorter = at < last->size && (uint8_t)last->data[at] + 1 < (uint8_t)next[at];
    } else {
        while (at < last->size && (uint8_t)last->data[at] == 0xff)
            at++;
        shorter = at < last->size;
    }
    if (shorter) {
        last->data[at]++;
        last->size = at + 1;
    }
    int length = twi_put_varint(handle, builder->offset);
    length += twi_put_varint(handle + length, builder->size);
    block_add(&builder->index, twi_text_string(last), last->size, handle, (size_t)length);
    builder->closed = false;
}

void twi_table_start(twi_table_builder *builder, size_t block_bytes)
{
    *builder = (twi_table_builder){.block_bytes = block_bytes ? block_bytes : BLOCK_BYTES};
    builder->data.interval = RESTART_INTERVAL;
    builder->index.interval = 1;
}

void twi_table_add(twi_table_builder *builder, const void *key, size_t key_size, const void *value, size_t value_size)
{
    twi_table_block *block = &builder->data;
    if (builder->closed)
        index_closed_block(builder, key, key_size);
    block_add(block, key, key_size, value, value_size);
    if (block->bytes.size + block->restarts.size + 4 >= builder->block_bytes) {
        close_block(builder, block);
        builder->closed = true;
    }
}

static void free_block(twi_table_block *block)
{
    twi_text_free(&block->bytes);
    twi_text_free(&block->restarts);
    twi_text_free(&block->last_key);
}

static bool block_failed(const twi_table_block *block)
{
    return block->bytes.failed || block->restarts.failed || block->last_key.failed;
}

tw_status twi_table_finish(twi_table_builder *builder, tw_error *error)
{
    char footer[FOOTER] = {0};
    twi_table_block metaindex = {.interval = 1};
    if (!builder->closed && builder->data.bytes.size > 0) {
        close_block(builder, &builder->data);
        builder->closed = true;
    }
    if (builder->closed)
        index_closed_block(builder, NULL, 0);
    close_block(builder, &metaindex);
    int length = twi_put_varint(footer, builder->offset);
    length += twi_put_varint(footer + length, builder->size);
    close_block(builder, &builder->index);
    length += twi_put_varint(footer + length, builder->offset);
    twi_put_varint(footer + length, builder->size);
    twi_put64(footer + FOOTER - 8, MAGIC);
    twi_text_append(&builder->file, footer, FOOTER);
    bool failed = builder->file.failed || block_failed(&builder->data) || block_failed(&builder->index) ||
                  block_failed(&metaindex);
    free_block(&metaindex);
    return failed ? twi_fail_memory(error, "building an index") : TW_OK;
}

void twi_table_free(twi_table_builder *builder)
{
    twi_text_free(&builder->file);
    free_block(&builder->data);
    free_block(&builder->index);
}

/* ---- reading ---- */

/* A walk through the entries of one block. */
typedef struct block_reader {
    uint64_t offset; /* of the block in the file, for messages */
    const char *at, *end;
    char *expanded; /* of a compressed block */
    twi_text key;
    const char *value;
    size_t value_size;
} block_reader;

typedef struct handle {
    uint64_t offset, size;
} handle;

static bool get_handle(const char **at, const char *end, handle *handle)
{
    return twi_get_varint(at, end, &handle->offset) && twi_get_varint(at, end, &handle->size);
}

/* Opens the block that must lie between `from` and `limit`, checks it and moves *from behind it. */
static tw_status open_block(const char *bytes, handle place, uint64_t *from, uint64_t limit, block_reader *block,
                            tw_error *error)
{
    unsigned long long offset = place.offset;
    if (place.offset != *from || limit - *from < TRAILER || place.size > limit - *from - TRAILER)
        return twi_fail(error, TW_DATA_LOSS,
                        "a block of %llu bytes is said to be at %llu; it must begin at %llu and end before %llu",
                        (unsigned long long)place.size, offset, (unsigned long long)*from, (unsigned long long)limit);
    const char *start = bytes + place.offset;
    size_t size = (size_t)place.size;
    if (!twi_crc32c_matches(twi_get32(start + size + 1), twi_crc32c(0, start, size + 1)))
        return twi_fail(error, TW_DATA_LOSS, "the block at %llu does not match its checksum", offset);
    if (start[size] == SNAPPY) {
        tw_status status = twi_snappy_expand(start, size, &block->expanded, &size);
        if (status == TW_RESOURCE_EXHAUSTED)
            return twi_fail_memory(error, "expanding a block of an index");
        if (status != TW_OK)
            return twi_fail(error, status, "the compressed block at %llu cannot be expanded", offset);
        start = block->expanded;
    } else if (start[size] != PLAIN) {
        return twi_fail(error, TW_DATA_LOSS, "the block at %llu has the unknown type %d", offset, start[size]);
    }
    uint64_t restarts = size >= 4 ? twi_get32(start + size - 4) : 0;
    if (restarts == 0 || restarts > (size - 4) / 4)
        return twi_fail(error, TW_DATA_LOSS, "the block at %llu has an impossible list of restarts", offset);
    block->offset = place.offset;
    block->at = start;
    block->end = start + size - 4 - 4 * restarts;
    block->key.size = 0;
    *from += place.size + TRAILER;
    return TW_OK;
}

static tw_status next_entry(block_reader *block, tw_error *error)
{
    uint64_t shared, rest, value_size;
    if (!twi_get_varint(&block->at, block->end, &shared) || !twi_get_varint(&block->at, block->end, &rest) ||
        !twi_get_varint(&block->at, block->end, &value_size) || shared > block->key.size ||
        rest > (uint64_t)(block->end - block->at) || value_size > (uint64_t)(block->end - block->at) - rest)
        return twi_fail(error, TW_DATA_LOSS, "the block at %llu has an entry that does not fit into it",
                        (unsigned long long)block->offset);
    block->key.size = (size_t)shared;
    twi_text_append(&block->key, block->at, (size_t)rest);
    block->value = block->at + rest;
    block->value_size = (size_t)value_size;
    block->at = block->value + value_size;
    return block->key.failed ? twi_fail_memory(error, "reading an index") : TW_OK;
}

static void close_reader(block_reader *block)
{
    twi_free(block->expanded);
    block->expanded = NULL;
    twi_text_free(&block->key);
}

static tw_status out_of_order(const block_reader *block, tw_error *error)
{
    return twi_fail(error, TW_DATA_LOSS, "the block at %llu has keys that are not in order",
                    (unsigned long long)block->offset);
}

bool twi_ends_table(const char *end)
{
    return twi_get64(end) == MAGIC;
}

tw_status twi_table_read(const char *bytes, size_t size, twi_table_entry *entry, void *user, tw_error *error)
{
    tw_status status = TW_OK;
    block_reader index = {0}, data = {0}, metaindex = {0};
    twi_text last = {0}; /* the greatest key so far, of entries and of the index */
    bool first = true;
    handle meta_place, index_place, place;
    if (size < FOOTER)
        return twi_fail(error, TW_DATA_LOSS, "%zu bytes are too few for an index, whose footer alone has %d", size,
                        FOOTER);
    uint64_t end = size - FOOTER, data_end, from;
    const char *at = bytes + end, *padding = bytes + size - 8;
    if (twi_get64(padding) != MAGIC)
        return twi_fail(error, TW_DATA_LOSS, "its last 8 bytes are not those of a checkpoint's index");
    bool good = get_handle(&at, padding, &meta_place) && get_handle(&at, padding, &index_place);
    for (; good && at < padding; at++)
        good = *at == 0;
    if (!good || meta_place.offset > end)
        return twi_fail(error, TW_DATA_LOSS, "the footer at %llu is damaged", (unsigned long long)end);

    data_end = from = meta_place.offset;
    TWI_TRY(open_block(bytes, meta_place, &from, end, &metaindex, error));
    TWI_TRY(open_block(bytes, index_place, &from, end, &index, error));
    if (from != end || metaindex.at != metaindex.end) {
        status =
            twi_fail(error, TW_DATA_LOSS, "there is something beside the index between %llu and the footer at %llu",
                     (unsigned long long)data_end, (unsigned long long)end);
        goto done;
    }
    for (from = 0; index.at < index.end;) {
        TWI_TRY(next_entry(&index, error));
        at = index.value;
        if (!get_handle(&at, index.value + index.value_size, &place) || at != index.value + index.value_size) {
            status = twi_fail(error, TW_DATA_LOSS, "the index block at %llu has an entry without a place",
                              (unsigned long long)index.offset);
            goto done;
        }
        close_reader(&data);
        TWI_TRY(open_block(bytes, place, &from, data_end, &data, error));
        while (data.at < data.end) {
            TWI_TRY(next_entry(&data, error));
            if (!first && compare(data.key.data, data.key.size, last.data, last.size) <= 0) {
                status = out_of_order(&data, error);
                goto done;
            }
            first = false;
            set(&last, data.key.data, data.key.size);
            if (last.failed) {
                status = twi_fail_memory(error, "reading an index");
                goto done;
            }
            TWI_TRY(entry(user, data.key.data, data.key.size, data.value, data.value_size, error));
        }
        if (compare(index.key.data, index.key.size, twi_text_string(&last), last.size) < 0) {
            status = out_of_order(&index, error);
            goto done;
        }
        set(&last, index.key.data, index.key.size);
        if (last.failed) {
            status = twi_fail_memory(error, "reading an index");
            goto done;
        }
    }
    if (from != data_end)
        status = twi_fail(error, TW_DATA_LOSS, "the bytes from %llu to %llu belong to no block",
                          (unsigned long long)from, (unsigned long long)data_end);
done:
    close_reader(&index);
    close_reader(&data);
    close_reader(&metaindex);
    twi_text_free(&last);
    return status;
}
