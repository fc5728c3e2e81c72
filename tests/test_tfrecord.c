/* Record files: framing, and refusal of damage with its place. */
#include "testing.h"

#include "base/memory.h"
#include "faulty_files.h"
#include "base/tfrecord.h"

static const char *folder;
static char path[128];
static tw_error error;

static int enter(void **state)
{
    (void)state;
    folder = scratch_folder();
    snprintf(path, sizeof path, "%s/records", folder);
    error = (tw_error){0};
    return 0;
}

static int leave(void **state)
{
    (void)state;
    remove_scratch(folder);
    return 0;
}

static void write_records(const size_t *sizes, size_t count)
{
    twi_file_writer *file;
    char *record = calloc(1, 1 << 20);
    assert_ok(twi_file_create(path, &file, &error));
    for (size_t i = 0; i < count; i++) {
        memset(record, (int)(i + 1), sizes[i]);
        twi_record_write(file, record, sizes[i]);
    }
    assert_ok(twi_file_close(file, false, &error));
    free(record);
}

static void records_of_any_size_come_back_in_order(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 5, 262144, 1, 262128, 600000, 0, 7};
    size_t count = sizeof sizes / sizeof *sizes, size;
    uint64_t second = 0;
    twi_record_reader *reader;
    const char *bytes;
    write_records(sizes, count);
    assert_ok(twi_record_open(path, &reader, &error));
    for (size_t i = 0; i < count; i++) {
        if (i == 1)
            second = twi_record_offset(reader);
        assert_ok(twi_record_next(reader, &bytes, &size, &error));
        assert_int_equal(size, sizes[i]);
        for (size_t k = 0; k < size; k++)
            if (bytes[k] != (char)(i + 1))
                fail_msg("record %zu differs at %zu", i, k);
    }
    assert_fails(twi_record_next(reader, &bytes, &size, &error), TW_OUT_OF_RANGE, "no more records");
    twi_record_seek(reader, second);
    assert_ok(twi_record_next(reader, &bytes, &size, &error));
    assert_int_equal(size, 5);
    assert_int_equal(bytes[0], 2);
    twi_record_close(reader);
}

static void framing_is_tensorflows(void **state)
{
    (void)state;
    static const char event[] = "\x09\0\0\0\xc0\x0b\x5a\xd6\x41\x1a\x0d"
                                "brain.Event:2";
    static const char head[] = "\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", tail[] = "\x4c\xa9\xa4\x64";
    twi_file_writer *file;
    char *bytes;
    size_t size;
    assert_ok(twi_file_create(path, &file, &error));
    twi_record_write(file, event, 24);
    assert_ok(twi_file_close(file, false, &error));
    assert_ok(twi_file_read(path, 1000, &bytes, &size, &error));
    assert_int_equal(size, 40);
    assert_memory_equal(bytes, head, 12);
    assert_memory_equal(bytes + 12, event, 24);
    assert_memory_equal(bytes + 36, tail, 4);
    twi_free(bytes);
}

/* The statuses and messages of reading the whole file: all records, or how it ended. */
static tw_status read_all(int *records)
{
    twi_record_reader *reader;
    const char *bytes;
    size_t size;
    tw_status status = TW_OK;
    *records = 0;
    error = (tw_error){0};
    if (twi_record_open(path, &reader, &error) != TW_OK)
        return error.status;
    while ((status = twi_record_next(reader, &bytes, &size, &error)) == TW_OK)
        ++*records;
    twi_record_close(reader);
    return status;
}

static void truncated_file_is_refused_with_its_offset(void **state)
{
    (void)state;
    int records;
    write_records((size_t[]){3, 10}, 2); /* 19 and 26 bytes */
    for (off_t size = 44; size >= 0; size--) {
        assert_int_equal(truncate(path, size), 0);
        tw_status status = read_all(&records);
        assert_int_equal(records, size >= 19);
        if (size == 19 || size == 0) {
            assert_int_equal(status, TW_OUT_OF_RANGE);
            continue;
        }
        assert_int_equal(status, TW_DATA_LOSS);
        assert_message(error.message, size > 19 ? "truncated record at 19" : "truncated record at 0");
        assert_message(error.message, path);
    }
}

static void any_flipped_bit_is_refused_with_the_offset_of_its_record(void **state)
{
    (void)state;
    char *bytes;
    size_t size;
    int records;
    write_records((size_t[]){3, 10}, 2);
    assert_ok(twi_file_read(path, 1000, &bytes, &size, &error));
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        assert_ok(twi_file_replace(path, bytes, size, &error));
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        assert_int_equal(read_all(&records), TW_DATA_LOSS);
        assert_message(error.message, bit / 8 < 19 ? "corrupted record at 0" : "corrupted record at 19");
    }
    twi_free(bytes);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)
    const struct CMUnitTest tests[] = {
        TEST(records_of_any_size_come_back_in_order),
        TEST(framing_is_tensorflows),
        TEST(truncated_file_is_refused_with_its_offset),
        TEST(any_flipped_bit_is_refused_with_the_offset_of_its_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
