/* Files: written whole or not at all, whatever call fails; and files of records: framing, refusal of damage with its
 * place. */
#include "testing.h"

#include "base/inflate.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/tfrecord.h"
#include "faulty_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *folder;
static char path[300];
static tw_error error;

static int enter(void **state)
{
    (void)state;
    folder = scratch_folder();
    snprintf(path, sizeof path, "%s/file", folder);
    error = (tw_error){0};
    return 0;
}

static int leave(void **state)
{
    (void)state;
    twi_set_files(NULL);
    remove_scratch(folder);
    return 0;
}

static void assert_file_holds(const char *expected)
{
    char *bytes;
    size_t size;
    assert_ok(twi_file_read(path, 1 << 20, &bytes, &size, &error));
    assert_string_equal(bytes, expected);
    assert_int_equal(size, strlen(expected));
    twi_free(bytes);
}

static void written_pieces_of_any_size_come_back_whole(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 65535, 1, 65536, 65537, 3, 200000};
    twi_file_writer *writer;
    uint8_t value = 0, *piece = malloc(200000);
    size_t total = 0, size;
    char *bytes;
    assert_ok(twi_file_create(path, &writer, &error));
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        for (size_t i = 0; i < sizes[k]; i++)
            piece[i] = value += 13;
        twi_file_write(writer, piece, sizes[k]);
        total += sizes[k];
    }
    assert_ok(twi_file_close(writer, true, &error));
    assert_ok(twi_file_read(path, total, &bytes, &size, &error));
    assert_int_equal(size, total);
    value = 0;
    for (size_t i = 0; i < size; i++)
        if ((uint8_t)bytes[i] != (value += 13))
            fail_msg("byte %zu differs", i);
    twi_free(bytes);
    free(piece);
}

static ssize_t write_a_little(int fd, const void *bytes, size_t size)
{
    static bool interrupted;
    interrupted = !interrupted;
    if (interrupted) {
        errno = EINTR;
        return -1;
    }
    return write(fd, bytes, size > 7 ? 7 : size);
}

static void short_and_interrupted_writes_are_continued(void **state)
{
    (void)state;
    twi_file_calls slow = twi_posix_files;
    slow.write = write_a_little;
    twi_set_files(&slow);
    assert_ok(twi_file_replace(path, "a sentence longer than seven bytes", 34, &error));
    assert_file_holds("a sentence longer than seven bytes");
}

static void replaced_file_holds_the_old_or_the_new_whatever_call_fails(void **state)
{
    (void)state;
    int n = 0;
    assert_ok(twi_file_replace(path, "old", 3, &error));
    for (bool committed = false;; n++) {
        fail_file_call(n, n % 2 ? EIO : ENOSPC);
        error = (tw_error){0};
        tw_status status = twi_file_replace(path, "new", 3, &error);
        if (!stop_failing()) {
            assert_int_equal(status, TW_OK);
            break;
        }
        assert_int_not_equal(status, TW_OK);
        assert_message(error.message, folder);
        assert_message(error.message, n % 2 ? "Input/output error" : "No space left");
        committed |= n > 4; /* open write fsync close rename, then the directory */
        assert_file_holds(committed ? "new" : "old");
        assert_int_equal(count_files(folder, "tmp"), 0);
    }
    assert_int_equal(n, 8);
    assert_file_holds("new");
}

static void first_write_error_is_the_one_reported(void **state)
{
    (void)state;
    twi_file_writer *writer;
    assert_ok(twi_file_create(path, &writer, &error));
    fail_file_call(0, ENOSPC);
    twi_file_write(writer, "x", 1);
    assert_fails(twi_file_flush(writer, &error), TW_RESOURCE_EXHAUSTED, "No space left");
    stop_failing();
    twi_file_write(writer, "y", 1);
    assert_fails(twi_file_close(writer, true, &error), TW_RESOURCE_EXHAUSTED, "write");
}

static void new_file_is_not_made_over_an_old_one(void **state)
{
    (void)state;
    twi_file_writer *writer;
    assert_ok(twi_file_create_new(path, &writer, &error));
    assert_ok(twi_file_close(writer, false, &error));
    assert_fails(twi_file_create_new(path, &writer, &error), TW_ALREADY_EXISTS, path);
}

static void symbolic_links_are_replaced_and_never_followed(void **state)
{
    (void)state;
    char other[300], text[8] = {0};
    twi_file_writer *writer;
    snprintf(other, sizeof other, "%s/other", folder);
    assert_ok(twi_file_replace(other, "kept", 4, &error));
    assert_int_equal(symlink(other, path), 0);
    assert_fails(twi_file_append(path, &writer, &error), TW_UNKNOWN, path);
    assert_ok(twi_file_create(path, &writer, &error));
    twi_file_write(writer, "new", 3);
    assert_ok(twi_file_close(writer, false, &error));
    assert_file_holds("new");
    assert_int_equal(readlink(path, text, sizeof text), -1);
    snprintf(path, sizeof path, "%s", other);
    assert_file_holds("kept");
}

static void names_beside_a_file_are_never_the_same(void **state)
{
    (void)state;
    twi_text a = {0}, b = {0};
    twi_name_beside(&a, path);
    twi_name_beside(&b, path);
    assert_string_not_equal(a.data, b.data);
    assert_true(twi_is_beside(a.data) && twi_is_beside(b.data) && !twi_is_beside(path));
    assert_int_equal(strncmp(a.data, path, strlen(path)), 0);
    twi_text_free(&a);
    twi_text_free(&b);
}

static void file_over_the_limit_is_refused(void **state)
{
    (void)state;
    char *bytes;
    size_t size;
    assert_ok(twi_file_replace(path, "12345678", 8, &error));
    assert_ok(twi_file_read(path, 8, &bytes, &size, &error));
    twi_free(bytes);
    assert_fails(twi_file_read(path, 7, &bytes, &size, &error), TW_OUT_OF_RANGE, "larger than the 7 bytes");
    assert_fails(twi_file_read("/dev/zero", 1000000, &bytes, &size, &error), TW_OUT_OF_RANGE, "/dev/zero");
}

static void file_that_is_absent_or_a_folder_is_named(void **state)
{
    (void)state;
    char *bytes;
    size_t size;
    assert_fails(twi_file_read(path, 100, &bytes, &size, &error), TW_NOT_FOUND, path);
    assert_fails(twi_file_read(folder, 100, &bytes, &size, &error), TW_FAILED_PRECONDITION, "is a directory");
}

static void part_beyond_the_end_is_refused_with_its_place(void **state)
{
    (void)state;
    twi_file_reader *reader;
    char part[4] = {0};
    assert_ok(twi_file_replace(path, "12345678", 8, &error));
    assert_ok(twi_file_open(path, &reader, &error));
    assert_int_equal(twi_file_size(reader), 8);
    assert_ok(twi_file_read_at(reader, 5, part, 3, &error));
    assert_string_equal(part, "678");
    assert_fails(twi_file_read_at(reader, 6, part, 3, &error), TW_DATA_LOSS, "ends at 8, 1 more");
    assert_fails(twi_file_read_at(reader, UINT64_MAX, part, 1, &error), TW_DATA_LOSS, path);
    twi_file_reader_close(reader);
    twi_file_reader_close(NULL);
}

/* A file of which `times` copies of the first bytes of golden lines.txt.gzip are written. */
static tw_status open_packed(size_t size, int times, const char *kind, twi_file_reader **reader, tw_error *error)
{
    size_t whole;
    char *bytes = read_whole(GOLDEN_DIR "/datasets/lines.txt.gzip", &whole);
    FILE *file = fopen("packed", "wb");
    assert_non_null(file);
    for (int i = 0; i < times; i++)
        fwrite(bytes, 1, size < whole ? size : whole, file);
    fclose(file);
    free(bytes);
    tw_status status = twi_file_open_packed("packed", kind, reader, error);
    remove("packed");
    return status;
}

static void packed_file_is_expanded_or_refused(void **state)
{
    (void)state;
    static const char lines[] = "one\r\ntwo\nthree";
    size_t length = sizeof lines - 1;
    char found[2 * sizeof lines];
    twi_file_reader *reader = NULL;
    tw_error error = {0};
    for (int times = 0; times <= 2; times++) {
        assert_ok(open_packed(SIZE_MAX, times, "GZIP", &reader, &error));
        assert_int_equal(twi_file_size(reader), (size_t)times * length);
        assert_ok(twi_file_read_at(reader, 0, found, (size_t)times * length, &error));
        for (int i = 0; i < times; i++)
            assert_memory_equal(found + (size_t)i * length, lines, length);
        assert_int_equal(twi_file_read_at(reader, 0, found, (size_t)times * length + 1, &error), TW_DATA_LOSS);
        twi_file_reader_close(reader);
    }
    for (size_t size = 1; size < 20; size++) {
        assert_int_equal(open_packed(size, 1, "GZIP", &reader, &error), TW_DATA_LOSS);
        assert_non_null(strstr(error.message, "'packed'"));
        assert_null(reader);
    }
    assert_int_equal(open_packed(SIZE_MAX, 1, "ZLIB", &reader, &error), TW_DATA_LOSS);
    assert_int_equal(open_packed(SIZE_MAX, 1, "zip", &reader, &error), TW_INVALID_ARGUMENT);
}

static void directories_are_made_all_the_way_down(void **state)
{
    (void)state;
    char deep[320];
    snprintf(deep, sizeof deep, "%s/a/b//c/", folder);
    assert_ok(twi_make_directories(deep, &error));
    assert_ok(twi_make_directories(deep, &error));
    assert_ok(twi_make_directories("/", &error));
    static const char *const made[] = {"a/b/c", "a/b", "a"};
    for (int i = 0; i < 3; i++) {
        snprintf(deep, sizeof deep, "%s/%s", folder, made[i]);
        assert_int_equal(rmdir(deep), 0);
    }
    assert_ok(twi_file_replace(path, "", 0, &error));
    snprintf(deep, sizeof deep, "%s/under", path);
    assert_fails(twi_make_directories(deep, &error), TW_FAILED_PRECONDITION, "Not a directory");
}

/* ---- files of records -------------------------------------------------------------------------------------------- */

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

/* Whoever opens a pipe waits until somebody writes to it. */
static void pipe_is_refused_unless_any_will_do(void **state)
{
    (void)state;
    char *bytes;
    size_t size;
    twi_file_reader *reader;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_fails(twi_file_open(path, &reader, &error), TW_FAILED_PRECONDITION, "file' is a pipe, a file was expected");
    assert_null(reader);
    assert_fails(twi_file_read(path, 100, &bytes, &size, &error), TW_FAILED_PRECONDITION, "is a pipe");
    pid_t child = fork();
    if (child == 0) {
        int fd = open(path, O_WRONLY);
        _exit(write(fd, "words", 5) != 5);
    }
    assert_ok(twi_file_read_any(path, 100, &bytes, &size, &error));
    assert_string_equal(bytes, "words");
    twi_free(bytes);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* A link to itself cannot be followed, whoever asks. */
static void only_what_is_known_to_be_absent_is_absent(void **state)
{
    (void)state;
    char below[320];
    assert_false(twi_file_exists(path));
    assert_int_equal(symlink(path, path), 0);
    assert_true(twi_file_exists(path));
    assert_int_equal(unlink(path), 0);
    assert_ok(twi_file_replace(path, "", 0, &error));
    assert_true(twi_file_exists(path));
    snprintf(below, sizeof below, "%s/below", path);
    assert_false(twi_file_exists(below));
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
        TEST(written_pieces_of_any_size_come_back_whole),
        TEST(short_and_interrupted_writes_are_continued),
        TEST(replaced_file_holds_the_old_or_the_new_whatever_call_fails),
        TEST(first_write_error_is_the_one_reported),
        TEST(new_file_is_not_made_over_an_old_one),
        TEST(symbolic_links_are_replaced_and_never_followed),
        TEST(names_beside_a_file_are_never_the_same),
        TEST(file_over_the_limit_is_refused),
        TEST(file_that_is_absent_or_a_folder_is_named),
        TEST(part_beyond_the_end_is_refused_with_its_place),
        TEST(packed_file_is_expanded_or_refused),
        TEST(directories_are_made_all_the_way_down),
        TEST(pipe_is_refused_unless_any_will_do),
        TEST(only_what_is_known_to_be_absent_is_absent),
        TEST(records_of_any_size_come_back_in_order),
        TEST(framing_is_tensorflows),
        TEST(truncated_file_is_refused_with_its_offset),
        TEST(any_flipped_bit_is_refused_with_the_offset_of_its_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
