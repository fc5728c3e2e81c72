/* Checkpoints' indexes as tables of blocks: written, read, and refused when hostile. */
#include "testing.h"

#include "base/crc32c.h"
#include "base/memory.h"
#include "faulty_memory.h"
#include "base/little_endian.h"
#include "format/snappy.h"
#include "format/table.h"

static tw_error error;

typedef struct seen {
    int count;
    char first[64], last[64];
    bool matches;
} seen;

/* Keys are "key" and a number of five digits; values say the number again. */
static tw_status see(void *user, const char *key, size_t key_size, const char *value, size_t value_size, tw_error *why)
{
    seen *seen = user;
    char text[64];
    (void)why;
    snprintf(text, sizeof text, "%.*s", (int)key_size, key);
    strcpy(seen->count == 0 ? seen->first : seen->last, text);
    snprintf(text, sizeof text, "value of key%05d", seen->count);
    seen->matches &= strlen(text) == value_size && memcmp(text, value, value_size) == 0;
    seen->count++;
    return TW_OK;
}

static void build(twi_table_builder *table, size_t block_bytes, int count)
{
    char key[16], value[32];
    twi_table_start(table, block_bytes);
    for (int i = 0; i < count; i++) {
        snprintf(key, sizeof key, "key%05d", i);
        snprintf(value, sizeof value, "value of key%05d", i);
        twi_table_add(table, key, strlen(key), value, strlen(value));
    }
    assert_ok(twi_table_finish(table, &error));
}

static tw_status read_table(const twi_table_builder *table, seen *seen)
{
    *seen = (struct seen){.matches = true};
    error = (tw_error){0};
    return twi_table_read(table->file.data, table->file.size, see, seen, &error);
}

static void entries_come_back_whatever_the_size_of_blocks(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 64, 1000, 0};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int count = 0; count <= 300; count = count * 3 + 1) {
            twi_table_builder table;
            seen seen;
            build(&table, sizes[k], count);
            assert_ok(read_table(&table, &seen));
            assert_int_equal(seen.count, count);
            assert_true(seen.matches);
            twi_table_free(&table);
        }
}

static void table_in_blocks_is_refused_for_any_flipped_bit_or_missing_end(void **state)
{
    (void)state;
    twi_table_builder table;
    seen seen;
    build(&table, 100, 9);
    for (size_t bit = 0; bit < 8 * table.file.size; bit++) {
        table.file.data[bit / 8] ^= (char)(1 << bit % 8);
        assert_int_equal(read_table(&table, &seen), TW_DATA_LOSS);
        table.file.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t size = table.file.size; table.file.size-- > 0;) {
        assert_int_equal(read_table(&table, &seen), TW_DATA_LOSS);
        (void)size;
    }
    twi_table_free(&table);
}

/* A table with one data block of these contents and type, everything else in order. */
static void wrap_block(twi_table_builder *table, const void *bytes, size_t size, char type)
{
    char crc[4], handle[2 * TWI_VARINT_BYTES], footer[48] = {0};
    twi_text index = {0}, blocks[3] = {0};
    uint64_t offset = 0;
    int used = twi_put_varint(handle, 0);
    used += twi_put_varint(handle + used, size);
    twi_text_append(&index, (char[]){0, 1, (char)used, '~'}, 4);
    twi_text_append(&index, handle, (size_t)used);
    twi_text_append(&index, "\0\0\0\0\1\0\0\0", 8);
    twi_text_append(&blocks[0], bytes, size);
    twi_text_append(&blocks[1], "\0\0\0\0\1\0\0\0", 8);
    twi_text_append(&blocks[2], index.data, index.size);
    *table = (twi_table_builder){0};
    used = 0;
    for (int i = 0; i < 3; i++) {
        if (i > 0) {
            used += twi_put_varint(footer + used, offset);
            used += twi_put_varint(footer + used, blocks[i].size);
        }
        offset += blocks[i].size + 5;
        twi_text_append(&blocks[i], i == 0 ? &type : "", 1);
        twi_put32(crc, twi_crc32c_mask(twi_crc32c(0, blocks[i].data, blocks[i].size)));
        twi_text_append(&table->file, blocks[i].data, blocks[i].size);
        twi_text_append(&table->file, crc, 4);
        twi_text_free(&blocks[i]);
    }
    twi_put64(footer + 40, UINT64_C(0xdb4775248b80fb57));
    twi_text_append(&table->file, footer, sizeof footer);
    twi_text_free(&index);
}

static tw_status count_entry(void *user, const char *key, size_t key_size, const char *value, size_t value_size,
                             tw_error *why)
{
    (void)key, (void)key_size, (void)value, (void)value_size, (void)why;
    ++*(int *)user;
    return TW_OK;
}

#define assert_block_refused(contents, part)                                                                           \
    do {                                                                                                               \
        twi_table_builder table_;                                                                                      \
        int count_ = 0;                                                                                                \
        wrap_block(&table_, contents, sizeof contents - 1, 0);                                                         \
        assert_fails(twi_table_read(table_.file.data, table_.file.size, count_entry, &count_, &error), TW_DATA_LOSS,   \
                     part);                                                                                            \
        twi_table_free(&table_);                                                                                       \
    } while (0)

#define END "\0\0\0\0\1\0\0\0" /* one restart, at 0 */

static void blocks_with_right_checksums_and_wrong_contents_are_refused(void **state)
{
    (void)state;
    twi_table_builder table;
    int count = 0;
    wrap_block(&table, "\0\1\1bx\0\1\1cy" END, 18, 0);
    assert_ok(twi_table_read(table.file.data, table.file.size, count_entry, &count, &error));
    assert_int_equal(count, 2);
    twi_table_free(&table);
    assert_block_refused("\0\1\1cx\0\1\1by" END, "not in order");
    assert_block_refused("\0\1\1bx\0\1\1by" END, "not in order");
    assert_block_refused("\0\1\1\x7fx" END, "not in order"); /* above its key in the index */
    assert_block_refused("\1\1\1bx" END, "does not fit");    /* shares a byte with nothing */
    assert_block_refused("\0\x70\1bx" END, "does not fit");
    assert_block_refused("\0\1\x70"
                         "bx" END,
                         "does not fit");
    assert_block_refused("\0\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
                         "bx" END,
                         "does not fit");
    assert_block_refused("\0\x81\0\1bx" END, "does not fit"); /* a number spelt too long */
    assert_block_refused("", "restarts");
    assert_block_refused("\0\0\0\0", "restarts");
    assert_block_refused("\0\0\0\0\2\0\0\0", "restarts");
    assert_block_refused("\0\0\0\0\xff\xff\xff\xff", "restarts");
}

static void compressed_block_is_expanded(void **state)
{
    (void)state;
    /* 18 bytes: the literal of 5, a copy of 4 from 5 back, then a literal of 9 */
    static const char packed[] = "\x12\x10\0\1\1bx\x01\x05\x20"
                                 "y\0\0\0\0\1\0\0\0";
    twi_table_builder table;
    int count = 0;
    wrap_block(&table, packed, sizeof packed - 1, 1);
    assert_fails(twi_table_read(table.file.data, table.file.size, count_entry, &count, &error), TW_DATA_LOSS,
                 "not in order"); /* "b" twice: it was expanded */
    twi_table_free(&table);
    wrap_block(&table, "\xff\xff\xff\xff\x0f\0", 6, 1);
    assert_fails(twi_table_read(table.file.data, table.file.size, count_entry, &count, &error), TW_DATA_LOSS,
                 "cannot be expanded");
    twi_table_free(&table);
    wrap_block(&table, "x", 1, 2);
    assert_fails(twi_table_read(table.file.data, table.file.size, count_entry, &count, &error), TW_DATA_LOSS,
                 "unknown type 2");
    twi_table_free(&table);
}

static void assert_expands(const char *packed, size_t size, const char *expected)
{
    char *bytes = NULL;
    size_t expanded;
    assert_true(twi_snappy_expand(packed, size, &bytes, &expanded));
    assert_int_equal(expanded, strlen(expected));
    assert_memory_equal(bytes, expected, expanded);
    twi_free(bytes);
}

static void snappy_knows_literals_and_all_three_copies(void **state)
{
    (void)state;
    char *bytes = NULL, packed[80];
    size_t size;
    assert_expands("\x05\x10hello", 7, "hello");
    assert_expands("\x07\xf0\x06"
                   "literal",
                   10, "literal");
    assert_expands("\x07\xf4\x06\0literal", 11, "literal");
    assert_expands("\x0a\x04"
                   "ab\x11\x02",
                   6,
                   "abababab"
                   "ab"); /* copy of 8 over itself */
    assert_expands("\x06\x08"
                   "abc\x0a\x03\0",
                   8, "abcabc"); /* two bytes of offset */
    assert_expands("\x06\x08"
                   "abc\x0b\x03\0\0\0",
                   10, "abcabc"); /* four */
    static const struct {
        const char *packed;
        size_t size;
    } bad[] = {
        {"", 0},
        {"\x05", 1},
        {"\x05\x10hell", 6},   /* ends within a literal */
        {"\x05\x14hello!", 8}, /* more than it said */
        {"\x06\x10hello", 7},  /* less than it said */
        {"\x06\x08"
         "abc\x0a\x04\0",
         8}, /* copies from before the start */
        {"\x06\x08"
         "abc\x0a\0\0",
         8}, /* offset 0 */
        {"\x06\x08"
         "abc\x0b\x03\0\0",
         9}, /* offset cut short */
        {"\x05\xfc\xff\xff\xff\xff"
         "hello",
         11},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (twi_snappy_expand(bad[i].packed, bad[i].size, &bytes, &size))
            fail_msg("bad block %zu was expanded", i);
    for (int i = 0; i < 20000; i++) { /* noise */
        for (size_t k = 0; k < sizeof packed; k++)
            packed[k] = (char)(rand() >> 7);
        if (twi_snappy_expand(packed, sizeof packed, &bytes, &size))
            twi_free(bytes);
    }
}

static void running_out_of_memory_is_reported(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        twi_table_builder table;
        char key[] = "a";
        seen seen = {.matches = true};
        error = (tw_error){0};
        fail_allocation(n);
        twi_table_start(&table, 20);
        for (; *key <= 'e'; ++*key)
            twi_table_add(&table, key, 1, "value", 5);
        tw_status status = twi_table_finish(&table, &error);
        if (status == TW_OK)
            status = twi_table_read(table.file.data, table.file.size, see, &seen, &error);
        twi_table_free(&table);
        assert_int_equal(memory.live, 0);
        if (!stop_failing_allocations()) {
            assert_int_equal(status, TW_OK);
            break;
        }
        assert_int_equal(status, TW_RESOURCE_EXHAUSTED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_come_back_whatever_the_size_of_blocks),
        cmocka_unit_test(table_in_blocks_is_refused_for_any_flipped_bit_or_missing_end),
        cmocka_unit_test(blocks_with_right_checksums_and_wrong_contents_are_refused),
        cmocka_unit_test(compressed_block_is_expanded),
        cmocka_unit_test(snappy_knows_literals_and_all_three_copies),
        cmocka_unit_test(running_out_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
