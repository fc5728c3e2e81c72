/* table.h - sorted string tables, as LevelDB lays them out: the index file of a checkpoint.
 *
 *     file    data blocks, metaindex block (empty), index block, footer
 *     block   entries, restart offsets (uint32 each), their count (uint32), then 5 bytes not counted in its size:
 *             type (0 plain, 1 Snappy), masked CRC-32C of all before
 *     entry   varints shared, rest, value size; then `rest` key bytes (the first `shared` are those of the key before);
 *             then the value. Entries at restart offsets share nothing.
 *     index   one entry a data block: a key not below its last and below the next one's first; value = offset, size
 *     footer  (offset, size) of metaindex and of index as varints, zeros up to 40 bytes, 8 bytes magic
 *
 * Lives here:  the layout, and what makes it trustworthy. Never here: what keys and values mean. */
#ifndef TWI_TABLE_H
#define TWI_TABLE_H

#include "base/text.h"

#include <stdint.h>

typedef struct twi_table_block {
    twi_text bytes, restarts, last_key;
    int interval, since_restart; /* entries from one restart to the next */
} twi_table_block;

/* Builds a table in memory; running out of it latches and is reported by finish. */
typedef struct twi_table_builder {
    twi_text file; /* the table, once finished */
    twi_table_block data, index;
    size_t block_bytes;    /* a data block is closed when it reaches this */
    bool closed;           /* the last data block is in the file, its index entry waits for the next key */
    uint64_t offset, size; /* of that block */
} twi_table_builder;

void twi_table_start(twi_table_builder *builder, size_t block_bytes); /* 0: as TensorFlow does, 256 KiB */
/* Keys must rise strictly, as unsigned bytes. */
void twi_table_add(twi_table_builder *builder, const void *key, size_t key_size, const void *value, size_t value_size);
tw_status twi_table_finish(twi_table_builder *builder, tw_error *error);
void twi_table_free(twi_table_builder *builder);

/* Whether a file that ends so may be a table. */
enum { TWI_TABLE_MAGIC_BYTES = 8 };
bool twi_ends_table(const char *end);

/* Calls `entry` for every entry in order; its arguments are borrowed for the call, and what it fails with is passed
 * on. Every byte of the table is covered by a check: checksums, the order of keys, blocks that lie one behind the
 * other without gaps. TW_DATA_LOSS with the offset of the block for anything else. */
typedef tw_status twi_table_entry(void *user, const char *key, size_t key_size, const char *value, size_t value_size,
                                  tw_error *error);
tw_status twi_table_read(const char *bytes, size_t size, twi_table_entry *entry, void *user, tw_error *error);

#endif
