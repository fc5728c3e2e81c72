/* Checkpoints byte by byte: the layout against files that TensorFlow wrote, sorted tables, and that no damage, failing
 * call or kill loses one. */
#include "testing.h"

#include "base/crc32c.h"
#include "base/file.h"
#include "base/little_endian.h"
#include "base/memory.h"
#include "faulty_files.h"
#include "faulty_memory.h"
#include "format/bundle.h"
#include "format/saved_slices.h"
#include "format/slice.h"
#include "format/snappy.h"
#include "format/table.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define BYTES(text) (text), sizeof(text) - 1

static const char *folder;
static tw_error error;
static char log_text[8192];
static int descriptors; /* that are open before a test */

static void take_log(void *user, int level, const char *text)
{
    (void)user, (void)level;
    size_t used = strlen(log_text);
    snprintf(log_text + used, sizeof log_text - used, "%s\n", text);
}

static int enter(void **state)
{
    (void)state;
    folder = scratch_folder();
    error = (tw_error){0};
    log_text[0] = 0;
    descriptors = count_files("/proc/self/fd", "");
    tw_set_log(take_log, NULL, 1);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    twi_set_files(NULL);
    tw_set_log(NULL, NULL, 0);
    remove_scratch(folder);
    assert_int_equal(count_files("/proc/self/fd", ""), descriptors);
    return 0;
}

/* A path in the scratch folder, in one of a few buffers that take turns. */
static const char *in_folder(const char *name)
{
    static char paths[4][256];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

typedef struct file {
    char *bytes;
    size_t size;
} file;

static file load(const char *path)
{
    file file;
    assert_ok(twi_file_read(path, 1 << 20, &file.bytes, &file.size, &error));
    return file;
}

static void store(const char *path, const char *bytes, size_t size)
{
    assert_ok(twi_file_replace(path, bytes, size, &error));
}

/* Calls of the C library, which these stand in place of, that fail: locks so many times, and the end of a directory.
 * And who else has what is locked: -1 if nobody has yet, -2 if nobody is to. */
static struct {
    int locks, reason, copy;
    bool listing;
} refused = {.copy = -2};

int flock(int fd, int operation)
{
    if (operation != LOCK_UN && refused.locks-- > 0) {
        errno = refused.reason;
        return -1;
    }
    if (refused.copy == -1)
        refused.copy = dup(fd);
    return (int)syscall(SYS_flock, fd, operation);
}

struct dirent *readdir64(DIR *directory); /* on machines of 64 bits the same */

struct dirent *readdir(DIR *directory)
{
    struct dirent *entry = readdir64(directory);
    if (!entry && refused.listing)
        errno = EIO;
    return entry;
}

static void assert_same_file(const char *a, const char *b)
{
    file x = load(a), y = load(b);
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.bytes, y.bytes, x.size);
    twi_free(x.bytes);
    twi_free(y.bytes);
}

/* A checkpoint whose tensors depend on the step. */
static tw_status save_keeping(int64_t step, float value, int keep)
{
    tw_string words[2] = {{"tower", 5}, {"", 0}};
    float weights[4] = {value, 1, 2, 3};
    tw_named_tensor tensors[] = {
        {"weights", tw_tensor_from(TW_FLOAT32, TW_SHAPE(2, 2), weights)},
        {"global_step", tw_tensor_int64(step)},
        {"words", tw_tensor_from(TW_STRING, TW_SHAPE(2), words)},
    };
    error = (tw_error){0};
    tw_status status = tw_checkpoint_save(folder, "model.ckpt", step, tensors, 3, keep, &error);
    for (int i = 0; i < 3; i++)
        tw_tensor_release((tw_tensor *)tensors[i].tensor);
    return status;
}

static tw_status save(int64_t step)
{
    return save_keeping(step, (float)step, 5);
}

static void assert_latest(int64_t step)
{
    char path[256], expected[256];
    int64_t found = -2;
    assert_ok(tw_checkpoint_latest(folder, path, sizeof path, &found, &error));
    assert_int_equal(found, step);
    snprintf(expected, sizeof expected, "%s/model.ckpt-%d", folder, (int)step);
    assert_string_equal(path, expected);
}

static double first_weight(const char *path)
{
    tw_checkpoint *checkpoint;
    tw_tensor *tensor;
    assert_ok(tw_checkpoint_open(path, &checkpoint, &error));
    assert_ok(tw_checkpoint_read(checkpoint, "weights", &tensor, &error));
    double value = tw_tensor_value(tensor, 0);
    tw_tensor_release(tensor);
    tw_checkpoint_close(checkpoint);
    return value;
}

/* ---- against TensorFlow ---- */

static void checkpoint_of_tensorflow_is_listed_and_read(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        tw_dtype dtype;
        int rank;
        int64_t i;
        double value; /* of element i */
    } expected[] = {
        {"a/bfloat16", TW_BFLOAT16, 1, 1, -2.5},
        {"a/bool", TW_BOOL, 1, 2, 1},
        {"conv1/weights", TW_FLOAT32, 3, 23, 11.5},
        {"conv1/weights/Momentum", TW_FLOAT32, 3, 0, 0},
        {"double", TW_FLOAT64, 0, 0, 3.25},
        {"empty", TW_FLOAT32, 2, 0, 0},
        {"global_step", TW_INT64, 0, 0, 1234567890123},
        {"half", TW_FLOAT16, 1, 1, 65504},
        {"int16", TW_INT16, 1, 0, -300},
        {"int32", TW_INT32, 2, 1, -8},
        {"int8", TW_INT8, 1, 0, -1},
        {"no_strings", TW_STRING, 1, 0, 0},
        {"strings", TW_STRING, 1, 0, 0},
        {"uint8", TW_UINT8, 1, 0, 255},
    };
    tw_checkpoint *checkpoint;
    assert_ok(tw_checkpoint_verify(GOLDEN_DIR "/checkpoint", &error));
    assert_ok(tw_checkpoint_open(GOLDEN_DIR "/checkpoint.index", &checkpoint, &error));
    assert_int_equal(tw_checkpoint_count(checkpoint), sizeof expected / sizeof *expected);
    assert_int_equal(tw_checkpoint_step(checkpoint), -1);
    for (int i = 0; i < tw_checkpoint_count(checkpoint); i++) {
        tw_tensor *tensor;
        assert_string_equal(tw_checkpoint_name(checkpoint, i), expected[i].name);
        assert_int_equal(tw_checkpoint_find(checkpoint, expected[i].name), i);
        assert_int_equal(tw_checkpoint_dtype(checkpoint, i), expected[i].dtype);
        assert_int_equal(tw_checkpoint_shape(checkpoint, i).rank, expected[i].rank);
        assert_ok(tw_checkpoint_read(checkpoint, expected[i].name, &tensor, &error));
        assert_true(tw_shape_equal(tw_tensor_shape(tensor), tw_checkpoint_shape(checkpoint, i)));
        if (expected[i].dtype != TW_STRING && tw_tensor_elements(tensor) > 0)
            assert_true(tw_tensor_value(tensor, expected[i].i) == expected[i].value);
        if (strcmp(expected[i].name, "strings") == 0) {
            const tw_string *strings = tw_tensor_data(tensor);
            assert_string_equal(strings[0].data, "tower");
            assert_int_equal(strings[1].size, 0);
            assert_int_equal(strings[2].size, 200);
            assert_int_equal(strings[3].size, 3);
            assert_memory_equal(strings[3].data, "a\0b", 3);
        }
        tw_tensor_release(tensor);
    }
    assert_int_equal(tw_checkpoint_find(checkpoint, "conv1"), -1);
    tw_tensor *tensor;
    assert_fails(tw_checkpoint_read(checkpoint, "conv1", &tensor, &error), TW_NOT_FOUND, "has no tensor 'conv1'");
    tw_checkpoint_close(checkpoint);
}

/* Of the first version of the format: what it has is what the second one has. */
static void an_old_checkpoint_is_read_like_a_new_one(void **state)
{
    (void)state;
    tw_checkpoint *old, *new;
    assert_ok(tw_checkpoint_verify(GOLDEN_DIR "/checkpoint_old", &error));
    assert_ok(tw_checkpoint_open(GOLDEN_DIR "/checkpoint_old", &old, &error));
    assert_ok(tw_checkpoint_open(GOLDEN_DIR "/checkpoint", &new, &error));
    assert_int_equal(tw_checkpoint_count(old), tw_checkpoint_count(new) - 1); /* there was no bfloat16 */
    for (int i = 0; i < tw_checkpoint_count(old); i++) {
        tw_tensor *a, *b;
        const char *name = tw_checkpoint_name(old, i);
        assert_int_equal(tw_checkpoint_find(old, name), i);
        assert_int_equal(tw_checkpoint_bytes(old, i), strcmp(name, "strings") == 0 ? 208
                                                      : tw_checkpoint_dtype(old, i) == TW_STRING ? 0
                                                      : tw_checkpoint_bytes(new, tw_checkpoint_find(new, name)));
        assert_ok(tw_checkpoint_read(old, name, &a, &error));
        assert_ok(tw_checkpoint_read(new, name, &b, &error));
        assert_int_equal(tw_tensor_dtype(a), tw_tensor_dtype(b));
        assert_true(tw_shape_equal(tw_tensor_shape(a), tw_tensor_shape(b)));
        if (tw_tensor_dtype(a) == TW_STRING)
            for (int64_t k = 0; k < tw_tensor_elements(a); k++) {
                const tw_string *x = (const tw_string *)tw_tensor_data(a) + k;
                const tw_string *y = (const tw_string *)tw_tensor_data(b) + k;
                assert_int_equal(x->size, y->size);
                assert_memory_equal(x->data ? x->data : "", y->data ? y->data : "", x->size);
            }
        else
            assert_memory_equal(tw_tensor_data(a), tw_tensor_data(b), tw_tensor_bytes(a));
        tw_tensor_release(a);
        tw_tensor_release(b);
    }
    tw_checkpoint_close(old);
    tw_checkpoint_close(new);
}

static void assert_same_tensor(tw_checkpoint *a, tw_checkpoint *b, const char *name, const char *part)
{
    tw_tensor *of_a, *of_b;
    assert_ok(tw_checkpoint_read_part(a, name, part, &of_a, &error));
    assert_ok(tw_checkpoint_read_part(b, name, part, &of_b, &error));
    assert_true(tw_shape_equal(tw_tensor_shape(of_a), tw_tensor_shape(of_b)));
    assert_memory_equal(tw_tensor_data(of_a), tw_tensor_data(of_b), tw_tensor_bytes(of_a));
    tw_tensor_release(of_a);
    tw_tensor_release(of_b);
}

static void parts_of_an_old_checkpoint_come_together_from_all_of_its_files(void **state)
{
    (void)state;
    tw_checkpoint *old, *new;
    assert_ok(tw_checkpoint_open(GOLDEN_DIR "/checkpoint_old_parts-*-of-00002", &old, &error));
    assert_ok(tw_checkpoint_open(GOLDEN_DIR "/checkpoint_parts", &new, &error));
    assert_int_equal(tw_checkpoint_count(old), 3);
    assert_same_tensor(old, new, "grid", NULL);
    assert_same_tensor(old, new, "m/rows", NULL);
    assert_same_tensor(old, new, "m/rows", "600 3 60,100:1,2");
    tw_checkpoint_close(new);
    tw_checkpoint_close(old);
    assert_fails(tw_checkpoint_open(GOLDEN_DIR "/checkpoint_old_parts-00000-of-00002", &old, &error), TW_DATA_LOSS,
                 "the parts of tensor 'grid' do not cover it");
    assert_fails(tw_checkpoint_open(GOLDEN_DIR "/checkpoint_old_parts", &old, &error), TW_NOT_FOUND,
                 "there is no checkpoint");
}

static void assert_written_like(const char *golden, const tw_named_tensor *tensors, int count)
{
    char *ours, *theirs;
    size_t our_size, their_size;
    assert_ok(twi_saved_slices_write(in_folder("old"), tensors, count, &error));
    assert_ok(twi_file_read(in_folder("old"), 100000, &ours, &our_size, &error));
    assert_ok(twi_file_read(golden, 100000, &theirs, &their_size, &error));
    assert_int_equal(our_size, their_size);
    assert_memory_equal(ours, theirs, our_size);
    twi_free(ours);
    twi_free(theirs);
}

/* Whole tensors of all types, and parts; and what memory lacks for leaves no half of it. */
static void an_old_checkpoint_is_written_as_tensorflow_writes_it(void **state)
{
    (void)state;
    enum { MOST = 64 };
    static const char *const parts[] = {"4 5 2,2:1,4", "600 3 127,473:-", "600 3 64,63:-"};
    tw_named_tensor tensors[MOST], of_parts[3];
    tw_tensor *read[MOST], *read_parts[3];
    tw_checkpoint *old, *new;
    bool failed = true;
    assert_ok(tw_checkpoint_open(GOLDEN_DIR "/checkpoint_old", &old, &error));
    int count = tw_checkpoint_count(old);
    assert_true(count <= MOST);
    for (int i = 0; i < count; i++) {
        assert_ok(tw_checkpoint_read(old, tw_checkpoint_name(old, i), &read[i], &error));
        tensors[count - 1 - i] = (tw_named_tensor){tw_checkpoint_name(old, i), read[i], i % 2 ? "" : NULL};
    }
    assert_written_like(GOLDEN_DIR "/checkpoint_old", tensors, count);
    assert_ok(tw_checkpoint_open(GOLDEN_DIR "/checkpoint_parts", &new, &error));
    for (int i = 0; i < 3; i++) {
        const char *name = i ? "m/rows" : "grid";
        assert_ok(tw_checkpoint_read_part(new, name, parts[i], &read_parts[i], &error));
        of_parts[i] = (tw_named_tensor){name, read_parts[i], parts[i]};
    }
    assert_written_like(GOLDEN_DIR "/checkpoint_old_parts-00001-of-00002", of_parts, 3);
    skip_syncs();
    for (int n = 0; failed; n++) {
        size_t before = memory.live;
        unlink(in_folder("old"));
        fail_allocation(n);
        tw_status status = twi_saved_slices_write(in_folder("old"), of_parts, 3, &error);
        failed = stop_failing_allocations();
        assert_int_equal(memory.live, before);
        assert_int_equal(status, failed ? TW_RESOURCE_EXHAUSTED : TW_OK);
        assert_true(count_files(folder, "old") == 1 || (failed && count_files(folder, "old") == 0));
    }
    for (int i = 0; i < count; i++)
        tw_tensor_release(read[i]);
    for (int i = 0; i < 3; i++)
        tw_tensor_release(read_parts[i]);
    tw_checkpoint_close(old);
    tw_checkpoint_close(new);
}

/* Or is refused, where TensorFlow's had no such type; and what memory lacks for is not written. */
static void an_old_checkpoint_gives_back_each_type(void **state)
{
    (void)state;
    int held = 0;
    skip_syncs();
    for (int dtype = 1; dtype < 30; dtype++) {
        tw_tensor *tensor = tw_tensor_create(dtype, TW_SHAPE(2)), *read = NULL;
        if (!tensor)
            continue; /* no type has that number */
        tw_named_tensor named = {"x", tensor};
        tw_checkpoint *checkpoint = NULL;
        tw_status status = TW_OK;
        for (size_t i = 0; i < tw_tensor_bytes(tensor) && dtype != TW_STRING && dtype != TW_RESOURCE; i++)
            ((unsigned char *)tw_tensor_data(tensor))[i] = dtype == TW_BOOL ? i % 2 : (unsigned char)(60 + i);
        for (int n = 0; n == 0 || status == TW_RESOURCE_EXHAUSTED; n++) {
            fail_allocation(n);
            status = twi_saved_slices_write(in_folder("typed"), &named, 1, &error);
            stop_failing_allocations();
            assert_int_equal(memory.live, 0);
        }
        assert_int_equal(status, status == TW_OK ? TW_OK : TW_UNIMPLEMENTED);
        if (status == TW_OK) {
            assert_ok(tw_checkpoint_open(in_folder("typed"), &checkpoint, &error));
            assert_ok(tw_checkpoint_read(checkpoint, "x", &read, &error));
            assert_int_equal(tw_tensor_dtype(read), dtype);
            if (dtype != TW_STRING)
                assert_memory_equal(tw_tensor_data(read), tw_tensor_data(tensor), tw_tensor_bytes(tensor));
            held++;
        }
        tw_tensor_release(read);
        tw_tensor_release(tensor);
        tw_checkpoint_close(checkpoint);
    }
    assert_int_equal(held, 13);
}

static void what_an_old_checkpoint_cannot_hold_is_refused_by_name(void **state)
{
    (void)state;
    tw_tensor *two = tw_tensor_create(TW_FLOAT32, TW_SHAPE(2)), *ints = tw_tensor_create(TW_INT32, TW_SHAPE(2));
    tw_tensor *narrow = tw_tensor_create(TW_BFLOAT16, TW_SHAPE(2));
    const struct {
        tw_named_tensor tensors[2];
        int count;
        tw_status status;
        const char *words;
    } cases[] = {
        {{{"a", two}, {"a", two}}, 2, TW_INVALID_ARGUMENT, "tensor 'a' is there twice"},
        {{{"a", two, "4 0,2"}, {"a", ints, "4 2,2"}}, 2, TW_INVALID_ARGUMENT, "the parts of 'a' disagree"},
        {{{"a", two, "4 0,2"}, {"a", two, "5 2,2"}}, 2, TW_INVALID_ARGUMENT, "the parts of 'a' disagree"},
        {{{"a", two, "4 0,3"}}, 1, TW_INVALID_ARGUMENT, "tensor 'a' is [2], which is not the part '4 0,3'"},
        {{{"a", two, "4 two"}}, 1, TW_INVALID_ARGUMENT, "tensor 'a': "},
        {{{"b", narrow}}, 1, TW_UNIMPLEMENTED, "tensor 'b': the first version of checkpoints has no bfloat16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(twi_saved_slices_write(in_folder("none"), cases[i].tensors, cases[i].count, &error),
                     cases[i].status, cases[i].words);
    assert_int_equal(count_files(folder, "none"), 0);
    tw_tensor_release(two);
    tw_tensor_release(ints);
    tw_tensor_release(narrow);
}

/* Each byte matters. */
static void an_old_checkpoint_that_was_cut_or_changed_is_refused(void **state)
{
    (void)state;
    char *bytes;
    size_t size;
    tw_checkpoint *old;
    assert_ok(twi_file_read(GOLDEN_DIR "/checkpoint_old", 10000, &bytes, &size, &error));
    for (size_t i = 0; i < 2 * size; i++) {
        FILE *file = fopen(in_folder("damaged"), "wb");
        bytes[i / 2] ^= i % 2 ? 0 : 0x10;
        assert_int_equal(fwrite(bytes, 1, i % 2 ? i / 2 : size, file), i % 2 ? i / 2 : size);
        fclose(file);
        bytes[i / 2] ^= i % 2 ? 0 : 0x10;
        tw_status status = tw_checkpoint_open(in_folder("damaged"), &old, &error);
        assert_true(status == TW_DATA_LOSS || status == TW_NOT_FOUND);
    }
    twi_free(bytes);
}

static void tensors_of_every_type_are_saved_as_tensorflow_saves_them(void **state)
{
    (void)state;
    tw_checkpoint *checkpoint;
    tw_named_tensor tensors[32] = {{NULL}};
    assert_ok(tw_checkpoint_open(GOLDEN_DIR "/checkpoint", &checkpoint, &error));
    int count = tw_checkpoint_count(checkpoint);
    for (int i = 0; i < count; i++) { /* in another order */
        tensors[i].name = tw_checkpoint_name(checkpoint, (i * 5 + 3) % count);
        assert_ok(tw_checkpoint_read(checkpoint, tensors[i].name, (tw_tensor **)&tensors[i].tensor, &error));
    }
    assert_ok(tw_checkpoint_save(folder, "copy", 3, tensors, count, 0, &error));
    assert_same_file(in_folder("copy-3.index"), GOLDEN_DIR "/checkpoint.index");
    assert_same_file(in_folder("copy-3.data-00000-of-00001"), GOLDEN_DIR "/checkpoint.data-00000-of-00001");
    for (int i = 0; i < count; i++)
        tw_tensor_release((tw_tensor *)tensors[i].tensor);
    tw_checkpoint_close(checkpoint);
}

static void what_tower_lacks_is_listed_and_refused_by_name(void **state)
{
    (void)state;
    tw_checkpoint *checkpoint;
    tw_tensor *tensor;
    assert_ok(tw_checkpoint_verify(GOLDEN_DIR "/checkpoint_foreign", &error));
    assert_ok(tw_checkpoint_open(GOLDEN_DIR "/checkpoint_foreign", &checkpoint, &error));
    assert_int_equal(tw_checkpoint_count(checkpoint), 7);
    assert_int_equal(tw_checkpoint_dtype(checkpoint, 5), TW_INVALID_DTYPE);
    assert_int_equal(tw_checkpoint_shape(checkpoint, 1).rank, 9);
    assert_true(tw_shape_equal(tw_checkpoint_shape(checkpoint, 2), TW_SHAPE(4, 2)));
    assert_fails(tw_checkpoint_read(checkpoint, "tiny", &tensor, &error), TW_UNIMPLEMENTED, "number 24");
    assert_ok(tw_checkpoint_read(checkpoint, "unsigned", &tensor, &error));
    assert_int_equal(tw_tensor_dtype(tensor), TW_UINT32);
    assert_int_equal(tw_tensor_value(tensor, 0), 9);
    tw_tensor_release(tensor);
    assert_ok(tw_checkpoint_read(checkpoint, "deep", &tensor, &error)); /* nine dimensions are not too many */
    tw_tensor_release(tensor);
    assert_ok(tw_checkpoint_read(checkpoint, "parts", &tensor, &error));
    for (int i = 0; i < 8; i++)
        assert_int_equal(tw_tensor_value(tensor, i), 1);
    tw_tensor_release(tensor);
    assert_ok(tw_checkpoint_read(checkpoint, "plain", &tensor, &error));
    assert_int_equal(tw_tensor_value(tensor, 0), 5);
    tw_tensor_release(tensor);
    assert_ok(tw_checkpoint_read(checkpoint, "complex", &tensor, &error));
    assert_int_equal(tw_tensor_dtype(tensor), TW_COMPLEX64);
    assert_true(tw_tensor_value(tensor, 0) == 0 && tw_tensor_imaginary(tensor, 0) == 1);
    tw_tensor_release(tensor);
    assert_ok(tw_checkpoint_read(checkpoint, "quantized", &tensor, &error));
    assert_int_equal(tw_tensor_dtype(tensor), TW_QINT16);
    assert_true(tw_tensor_value(tensor, 0) == -3 && tw_tensor_value(tensor, 1) == 7);
    tw_tensor_release(tensor);
    tw_checkpoint_close(checkpoint);
}

/* ---- tensors in parts ---- */

static void a_tensor_in_parts_is_read_whole_and_in_other_parts(void **state)
{
    (void)state;
    tw_checkpoint *checkpoint;
    tw_tensor *tensor;
    assert_ok(tw_checkpoint_verify(GOLDEN_DIR "/checkpoint_parts", &error));
    assert_ok(tw_checkpoint_open(GOLDEN_DIR "/checkpoint_parts", &checkpoint, &error));
    assert_int_equal(tw_checkpoint_count(checkpoint), 3);
    assert_string_equal(tw_checkpoint_name(checkpoint, 2), "m/rows");
    assert_true(tw_shape_equal(tw_checkpoint_shape(checkpoint, 2), TW_SHAPE(600, 3)));
    assert_int_equal(tw_checkpoint_bytes(checkpoint, 2), 7200);
    assert_ok(tw_checkpoint_read(checkpoint, "m/rows", &tensor, &error));
    for (int i = 0; i < 1800; i++)
        assert_int_equal(tw_tensor_value(tensor, i), i);
    tw_tensor_release(tensor);
    assert_ok(tw_checkpoint_read_part(checkpoint, "m/rows", "600 3 60,100:1,2", &tensor, &error));
    assert_true(tw_shape_equal(tw_tensor_shape(tensor), TW_SHAPE(100, 2)));
    for (int i = 0; i < 200; i++)
        assert_int_equal(tw_tensor_value(tensor, i), (60 + i / 2) * 3 + 1 + i % 2);
    tw_tensor_release(tensor);
    assert_ok(tw_checkpoint_read_part(checkpoint, "grid", "4 5 1,3:-", &tensor, &error));
    for (int i = 0; i < 15; i++)
        assert_int_equal(tw_tensor_value(tensor, i), 5 + i);
    tw_tensor_release(tensor);
    assert_fails(tw_checkpoint_read_part(checkpoint, "grid", "4 6 1,3:-", &tensor, &error), TW_INVALID_ARGUMENT,
                 "does not match the shape stored in checkpoint: [4,5]");
    static const char *const wrong[] = {"4 5", "4 5 0,2", "4 5 0,2:-:-", "4 5 3,2:-", "4 5 0,2:x", " -", "4  5 -:-",
                                        "-1 5 -:-", "4 5 5,0:-", "4 5 0;2:-", "4 5 0,:-", "4 5 0,2;-",
                                        "x 5 -:-", "4x5 -:-",
                                        "1 1 1 1 1 1 1 1 1 1 1 1 1 -:-:-:-:-:-:-:-:-:-:-:-:-", "9223372036854775807 9 -:-",
                                        "whole"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(tw_checkpoint_read_part(checkpoint, "grid", wrong[i], &tensor, &error), TW_INVALID_ARGUMENT, wrong[i]);
    tw_checkpoint_close(checkpoint);
}

static void assert_key(const char *name, const twi_slice *slice, const char *expected, size_t size)
{
    twi_text key = {0};
    twi_slice_key(name, slice, &key);
    assert_int_equal(key.size, size);
    assert_memory_equal(key.data, expected, size);
    twi_text_free(&key);
}

/* The table is sorted by the bytes of its keys. */
static void keys_of_parts_sort_as_names_and_numbers_do(void **state)
{
    (void)state;
    twi_slice slice = twi_slice_whole(TW_SHAPE(INT64_MAX));
    twi_text last = {0};
    assert_key("a", &slice, BYTES("\0a\0\1\1\1\x80\x7f"));
    assert_key("a\xff", &slice, BYTES("\0a\xff\0\0\1\1\1\x80\x7f"));
    slice.start[0] = (int64_t)1 << 62; /* takes all ten bytes */
    assert_key("a", &slice, BYTES("\0a\0\1\1\1\xff\xc0\x40\0\0\0\0\0\0\0\x7f"));
    for (int bits = 0; bits <= 62; bits++)
        for (int off = -1; off <= 1; off++) {
            slice.start[0] = ((int64_t)1 << bits) + off;
            twi_text key = {0};
            twi_slice_key("a", &slice, &key);
            size_t shorter = key.size < last.size ? key.size : last.size;
            int order = memcmp(key.data, twi_text_string(&last), shorter);
            if (bits > 2 && order <= 0)
                fail_msg("the key of %lld is not above that before it", (long long)slice.start[0]);
            twi_text_free(&last);
            last = key;
        }
    twi_text_free(&last);
}

static void parts_are_saved_as_tensorflow_saves_them(void **state)
{
    (void)state;
    tw_checkpoint *checkpoint;
    tw_named_tensor tensors[] = {{"m/rows", NULL, "600 3 0,64:-"}, {"m/rows", NULL, "600 3 64,63:-"},
                                 {"m/rows", NULL, "600 3 127,473:-"}, {"after", NULL, NULL}, {"grid", NULL, "4 5 0,2:-"},
                                 {"grid", NULL, "4 5 2,2:0,1"}, {"grid", NULL, "4 5 2,2:1,4"}};
    assert_ok(tw_checkpoint_open(GOLDEN_DIR "/checkpoint_parts", &checkpoint, &error));
    for (int i = 0; i < 7; i++)
        assert_ok(tw_checkpoint_read_part(checkpoint, tensors[i].name, tensors[i].part, (tw_tensor **)&tensors[i].tensor, &error));
    tw_checkpoint_close(checkpoint);
    assert_ok(tw_checkpoint_save(folder, "parts", 3, tensors, 7, 0, &error));
    assert_same_file(in_folder("parts-3.index"), GOLDEN_DIR "/checkpoint_parts.index");
    assert_same_file(in_folder("parts-3.data-00000-of-00001"), GOLDEN_DIR "/checkpoint_parts.data-00000-of-00001");
    tensors[0].part = "600 3 1,64:-";
    tensors[1].part = "600 3 64,64:-";
    assert_fails(tw_checkpoint_save(folder, "parts", 4, tensors, 7, 0, &error), TW_INVALID_ARGUMENT,
                 "'m/rows' is [63,3], which is not the part '600 3 64,64:-'");
    tensors[1].part = "601 3 64,63:-";
    assert_fails(tw_checkpoint_save(folder, "parts", 4, tensors, 7, 0, &error), TW_INVALID_ARGUMENT,
                 "the parts of 'm/rows' disagree");
    for (int i = 0; i < 7; i++)
        tw_tensor_release((tw_tensor *)tensors[i].tensor);
}

static void parts_are_merged_as_parts(void **state)
{
    (void)state;
    const char *const golden = GOLDEN_DIR "/checkpoint_parts";
    assert_ok(twi_bundle_merge(&golden, 1, in_folder("merged"), false, &error));
    assert_same_file(in_folder("merged.index"), GOLDEN_DIR "/checkpoint_parts.index");
    assert_same_file(in_folder("merged.data-00000-of-00001"), GOLDEN_DIR "/checkpoint_parts.data-00000-of-00001");
}

/* Of one name, a bundle is what is meant; what is wrong is said of the tensor, or of the checkpoint. */
static void a_checkpoint_is_what_its_name_says(void **state)
{
    (void)state;
    tw_checkpoint *checkpoint;
    tw_tensor *one = tw_tensor_float(1), *tensor;
    tw_named_tensor new = {"new", one}, old = {"old", one};
    char message[200];
    assert_ok(tw_checkpoint_save(folder, "m", 1, &new, 1, 0, &error));
    assert_ok(twi_saved_slices_write(in_folder("m-1"), &old, 1, &error));
    assert_ok(tw_checkpoint_open(in_folder("m-1"), &checkpoint, &error));
    assert_string_equal(tw_checkpoint_name(checkpoint, 0), "new");
    error = (tw_error){0};
    assert_ok(tw_checkpoint_read(checkpoint, "new", &tensor, &error));
    assert_string_equal(error.message, "");
    tw_tensor_release(tensor);
    assert_fails(tw_checkpoint_read(checkpoint, "gone", &tensor, &error), TW_NOT_FOUND, "'gone'");
    snprintf(message, sizeof message, "'%s': ", in_folder("m-1"));
    assert_int_not_equal(strncmp(error.message, message, strlen(message)), 0);
    assert_fails(tw_checkpoint_read_part(checkpoint, "new", "4 5", &tensor, &error), TW_INVALID_ARGUMENT, message);
    tw_checkpoint_close(checkpoint);
    tw_tensor_release(one);
}

static void what_an_old_checkpoint_holds_goes_with_it(void **state)
{
    (void)state;
    tw_checkpoint *checkpoint;
    fail_allocation(-1);
    assert_ok(tw_checkpoint_open(GOLDEN_DIR "/checkpoint_old", &checkpoint, &error));
    assert_true(memory.live > tw_checkpoint_count(checkpoint));
    tw_checkpoint_close(checkpoint);
    assert_int_equal(memory.live, 0);
    stop_failing_allocations();
}

/* ---- of objects ---- */

static void put_bytes(twi_text *to, int field, const char *bytes, size_t size)
{
    const char begin[] = {(char)(field << 3 | 2), (char)size}; /* below 128 */
    twi_text_append(to, begin, 2);
    twi_text_append(to, bytes, size);
}

/* An object with one tensor, of what its variable is called and under which key it lies; NULL: neither is said. */
static void put_object(twi_text *graph, const char *name, const char *key)
{
    twi_text tensor = {0}, object = {0};
    put_bytes(&tensor, 1, BYTES("VARIABLE_VALUE"));
    if (name)
        put_bytes(&tensor, 2, name, strlen(name));
    if (key)
        put_bytes(&tensor, 3, key, strlen(key));
    put_bytes(&object, 1, "", 0); /* a child */
    put_bytes(&object, 2, tensor.data, tensor.size);
    put_bytes(graph, 1, object.data, object.size);
    twi_text_free(&tensor);
    twi_text_free(&object);
}

static void save_objects(int64_t step, const char *graph, size_t size)
{
    tw_tensor *value = tw_tensor_float(7);
    tw_named_tensor tensors[] = {{"a/.ATTRIBUTES/VARIABLE_VALUE", value},
                                 {"b/.ATTRIBUTES/VARIABLE_VALUE", value},
                                 {"_CHECKPOINTABLE_OBJECT_GRAPH", tw_tensor_string(graph, size)}};
    assert_ok(tw_checkpoint_save(folder, "model.ckpt", step, tensors, 3, 0, &error));
    tw_tensor_release(value);
    tw_tensor_release((tw_tensor *)tensors[2].tensor);
}

static tw_status find_key(int64_t step, const char *name, char found[64])
{
    tw_checkpoint *checkpoint;
    char path[64];
    const char *key = "";
    found[0] = 0;
    snprintf(path, sizeof path, "model.ckpt-%d", (int)step);
    tw_status status = tw_checkpoint_open(in_folder(path), &checkpoint, &error);
    for (int i = 0; i < 2 && status == TW_OK; i++) /* what is known already is as what is read */
        status = tw_checkpoint_key(checkpoint, name, &key, &error);
    if (status == TW_OK && key)
        snprintf(found, 64, "%s", key);
    tw_checkpoint_close(checkpoint);
    return status;
}

static void a_checkpoint_of_objects_knows_what_variables_are_called(void **state)
{
    (void)state;
    static const char *const keys[] = {"a/.ATTRIBUTES/VARIABLE_VALUE", "b/.ATTRIBUTES/VARIABLE_VALUE"};
    twi_text objects = {0};
    put_object(&objects, "layer", keys[0]);
    put_object(&objects, "layer2", keys[1]);
    put_object(&objects, "layer2", keys[1]); /* once more the same */
    put_object(&objects, "twice", keys[0]);
    put_object(&objects, "twice", keys[1]);
    put_object(&objects, "gone", "c/.ATTRIBUTES/VARIABLE_VALUE");
    put_object(&objects, "keyless", NULL);
    put_object(&objects, NULL, keys[0]);
    put_bytes(&objects, 2, "", 0); /* something of later */
    char key[64];
    bool failed = true;
    save_objects(1, objects.data, objects.size);
    twi_text_free(&objects);
    assert_ok(find_key(1, "layer", key));
    assert_string_equal(key, keys[0]);
    assert_ok(find_key(1, "layer2", key));
    assert_string_equal(key, keys[1]);
    static const char *const none[] = {"twice", "gone", "keyless", "lay", ""};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_ok(find_key(1, none[i], key));
        assert_string_equal(key, "");
    }
    for (int n = 0; failed; n++) {
        fail_allocation(n);
        tw_status status = find_key(1, "layer2", key);
        failed = stop_failing_allocations();
        assert_int_equal(status, failed ? TW_RESOURCE_EXHAUSTED : TW_OK);
        assert_int_equal(memory.live, 0);
    }
    static const char *const wrong[] = {"\x0a\x05", "\x0a\x02\x12\x05", "\x0a\x04\x12\x02\x12\x05"};
    for (int i = 0; i < 3; i++) { /* longer than what they are in */
        save_objects(2 + i, wrong[i], strlen(wrong[i]));
        assert_fails(find_key(2 + i, "layer", key), TW_DATA_LOSS, "_CHECKPOINTABLE_OBJECT_GRAPH");
    }
    assert_ok(save(9));
    assert_ok(find_key(9, "weights", key));
    assert_string_equal(key, "");
}

/* ---- a directory of them ---- */

static void old_checkpoints_go_and_the_state_file_lists_the_rest(void **state)
{
    (void)state;
    for (int step = 8; step <= 11; step++)
        assert_ok(save_keeping(step, 0, 3));
    store(in_folder("other-1.index"), "not ours", 8);
    store(in_folder("model.ckpt-best.index"), "not ours", 8);
    assert_ok(save_keeping(12, 0, 2));
    file text = load(in_folder("checkpoint"));
    assert_string_equal(text.bytes, "model_checkpoint_path: \"model.ckpt-12\"\n"
                                    "all_model_checkpoint_paths: \"model.ckpt-11\"\n"
                                    "all_model_checkpoint_paths: \"model.ckpt-12\"\n");
    twi_free(text.bytes);
    assert_int_equal(count_files(folder, ""), 7);
    assert_true(twi_file_exists(in_folder("model.ckpt-11.data-00000-of-00001")));
    assert_string_equal(log_text, ""); /* nothing has gone wrong */
    assert_latest(12);
    assert_ok(save_keeping(13, 0, 0));
    assert_int_equal(count_files(folder, "model.ckpt-1"), 6);
    assert_ok(tw_checkpoint_save(in_folder("new/folder"), "m", 0, NULL, 0, 1, &error));
    assert_ok(tw_checkpoint_verify(in_folder("new/folder/m-0"), &error));
    remove_scratch(in_folder("new/folder"));
    rmdir(in_folder("new"));
}

static void list_is_ordered_by_step_as_a_number(void **state)
{
    (void)state;
    static const int64_t steps[] = {9, 10, 100};
    tw_checkpoint_list *list;
    for (int i = 2; i >= 0; i--)
        assert_ok(save(steps[i]));
    assert_message(log_text, "later step");
    store(in_folder("nameless.index"), "", 0);
    assert_ok(tw_checkpoint_list_open(folder, &list, &error));
    assert_int_equal(tw_checkpoint_list_count(list), 4);
    assert_int_equal(tw_checkpoint_list_step(list, 0), -1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tw_checkpoint_list_step(list, i + 1), steps[i]);
    assert_string_equal(tw_checkpoint_list_path(list, 3), in_folder("model.ckpt-100"));
    tw_checkpoint_list_close(list);
    assert_latest(100);
    assert_fails(tw_checkpoint_list_open(in_folder("absent"), &list, &error), TW_NOT_FOUND, "absent");
    store(in_folder(".index"), "", 0); /* of no name */
    char with_slash[300];
    snprintf(with_slash, sizeof with_slash, "%s/", folder);
    assert_ok(tw_checkpoint_list_open(with_slash, &list, &error));
    assert_int_equal(tw_checkpoint_list_count(list), 4);
    assert_string_equal(tw_checkpoint_list_path(list, 3), in_folder("model.ckpt-100"));
    tw_checkpoint_list_close(list);
    refused.listing = true;
    assert_fails(tw_checkpoint_list_open(folder, &list, &error), TW_UNKNOWN, "Input/output error");
    refused.listing = false;
}

static void latest_passes_over_damaged_checkpoints_and_says_why(void **state)
{
    (void)state;
    const char *data = in_folder("model.ckpt-30.data-00000-of-00001");
    assert_ok(save(10));
    assert_ok(save(20));
    assert_ok(save(30));
    file good = load(data);
    good.bytes[11] ^= 4;
    store(data, good.bytes, good.size);
    twi_free(good.bytes);
    unlink(in_folder("model.ckpt-20.data-00000-of-00001"));
    assert_latest(10);
    assert_message(log_text, "model.ckpt-30': tensor 'weights' is damaged");
    assert_message(log_text, "model.ckpt-20.data-00000-of-00001': No such file");
    assert_true(first_weight(folder) == 10); /* a directory stands for its latest */
    truncate(in_folder("model.ckpt-10.index"), 0);
    char path[256];
    assert_fails(tw_checkpoint_latest(folder, path, sizeof path, NULL, &error), TW_NOT_FOUND, "none of the 3");
    assert_message(error.message, "footer");
}

/* Of one step: what was set aside comes before what has replaced it, and what the state file names comes last. */
static void of_one_step_the_named_one_is_the_latest(void **state)
{
    (void)state;
    static const char *const names[] = {"a-2", "m-2", "z-2", "z-2.replaced"};
    tw_tensor *one = tw_tensor_float(1);
    tw_named_tensor tensor = {"x", one};
    tw_checkpoint_list *list;
    char path[256], text[64];
    for (int i = 3; i >= 0; i--)
        assert_ok(twi_bundle_save(in_folder(names[i]), &tensor, 1, &error));
    assert_ok(tw_checkpoint_list_open(folder, &list, &error));
    assert_string_equal(tw_checkpoint_list_path(list, 0), in_folder("z-2.replaced"));
    assert_string_equal(tw_checkpoint_list_path(list, 3), in_folder("z-2"));
    tw_checkpoint_list_close(list);
    for (int i = 0; i < 3; i++) {
        int size = snprintf(text, sizeof text, "model_checkpoint_path: \"%s\"\n", names[i]);
        store(in_folder("checkpoint"), text, (size_t)size);
        assert_ok(tw_checkpoint_latest(folder, path, sizeof path, NULL, &error));
        assert_string_equal(path, in_folder(names[i]));
    }
    unlink(in_folder("checkpoint"));
    assert_ok(tw_checkpoint_latest(folder, path, sizeof path, NULL, &error));
    assert_string_equal(log_text, ""); /* a folder may be without a state file */
    assert_int_equal(mkdir(in_folder("checkpoint"), 0700), 0); /* no state file, and no reason to stop */
    assert_ok(tw_checkpoint_latest(folder, path, sizeof path, NULL, &error));
    assert_message(log_text, "is a directory");
    assert_int_equal(rmdir(in_folder("checkpoint")), 0);
    tw_tensor_release(one);
}

static void state_file_may_name_a_checkpoint_elsewhere(void **state)
{
    (void)state;
    char path[256];
    const char *text = "all_model_checkpoint_paths: \"x\"\nmodel_checkpoint_path: \"" GOLDEN_DIR "/check\\160oint\"\n";
    store(in_folder("checkpoint"), text, strlen(text));
    assert_ok(tw_checkpoint_latest(folder, path, sizeof path, NULL, &error));
    assert_string_equal(path, GOLDEN_DIR "/checkpoint");
    size_t size = strlen(path);
    assert_ok(tw_checkpoint_latest(folder, path, size + 1, NULL, &error));
    assert_fails(tw_checkpoint_latest(folder, path, size, NULL, &error), TW_OUT_OF_RANGE, "bytes");
    assert_fails(tw_checkpoint_latest(folder, path, 5, NULL, &error), TW_OUT_OF_RANGE, "5 bytes");
    static const char *const numbers[][2] = {{"a\\0611\\0678-1", "a1178-1"}, {"b\\12-1", "b\n-1"}};
    assert_ok(twi_bundle_save(in_folder("z-1"), NULL, 0, &error)); /* which it would be else */
    for (int i = 0; i < 2; i++) { /* of three digits, or what there are of them */
        char state_text[100];
        assert_ok(twi_bundle_save(in_folder(numbers[i][1]), NULL, 0, &error));
        snprintf(state_text, sizeof state_text, "model_checkpoint_path: \"%s\"\n", numbers[i][0]);
        store(in_folder("checkpoint"), state_text, strlen(state_text));
        assert_ok(tw_checkpoint_latest(folder, path, sizeof path, NULL, &error));
        assert_string_equal(path, in_folder(numbers[i][1]));
    }
    remove_scratch(folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    static const char *const broken[] = {"",
                                         "model_checkpoint_path",
                                         "model_checkpoint_path: \"",
                                         "model_checkpoint_path: x",
                                         "model_checkpoint_path: \"a\\",
                                         "model_checkpoint_path: \"\"",
                                         "\n\n"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        store(in_folder("checkpoint"), broken[i], strlen(broken[i]));
        assert_fails(tw_checkpoint_latest(folder, path, sizeof path, NULL, &error), TW_NOT_FOUND, folder);
    }
}

static void leftovers_of_killed_processes_are_removed_by_the_next_save(void **state)
{
    (void)state;
    static const char *const leftovers[] = {"model.ckpt-5.index.tmp-77", "model.ckpt-5.data-00000-of-00001.tmp-77",
                                            "checkpoint.tmp-12",         "model.ckpt-4.data-00000-of-00001",
                                            "model.ckpt-4.meta",         "model.ckpt-4.replaced.data-00000-of-00001"};
    static const char *const others[] = {"notes.tmp-1", "model.ckpt.txt", "model.ckpt-old.data",
                                         "other-4.data-00000-of-00001", "model.ckpt-4x.meta",
                                         "model.ckpt_4.meta", "model.next-4.meta", ".meta", ".data-4"};
    for (size_t i = 0; i < sizeof leftovers / sizeof *leftovers; i++)
        store(in_folder(leftovers[i]), "x", 1);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        store(in_folder(others[i]), "x", 1);
    assert_ok(save(6));
    for (size_t i = 0; i < sizeof leftovers / sizeof *leftovers; i++)
        assert_false(twi_file_exists(in_folder(leftovers[i])));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_true(twi_file_exists(in_folder(others[i])));
    assert_int_equal(count_files(folder, ""), 7 + 3);
    assert_latest(6);
}

/* A child that begins while the directory is locked has the descriptor for as long as it runs. */
static void a_lock_ends_with_the_saving_whoever_has_the_directory(void **state)
{
    (void)state;
    refused.copy = -1;
    assert_ok(save(6));
    int other = open(folder, O_RDONLY | O_DIRECTORY);
    assert_true(refused.copy >= 0 && other >= 0);
    assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
    close(other);
    close(refused.copy);
    refused.copy = -2;
}

/* Whoever waits for a lock may be woken by a signal; where there are no locks, what lies there may be another's. */
static void without_locks_what_others_may_be_writing_stays(void **state)
{
    (void)state;
    const char *left = in_folder("model.ckpt-5.index.tmp-77"), *file = in_folder("model.ckpt-4.meta");
    store(left, "x", 1);
    store(file, "x", 1);
    refused.locks = 1;
    refused.reason = ENOLCK;
    assert_ok(save(6));
    assert_true(twi_file_exists(left));
    assert_false(twi_file_exists(file)); /* no index owns it */
    store(file, "x", 1);
    refused.locks = 1;
    assert_ok(tw_checkpoint_tidy(folder, "model.ckpt", &error));
    assert_true(twi_file_exists(left));
    assert_false(twi_file_exists(file));
    refused.locks = 3;
    refused.reason = EINTR;
    assert_ok(tw_checkpoint_tidy(folder, "model.ckpt", &error));
    assert_false(twi_file_exists(left));
    assert_int_equal(refused.locks, -1);
    assert_fails(tw_checkpoint_tidy(in_folder("absent"), "m", &error), TW_NOT_FOUND, "absent");
    assert_ok(tw_checkpoint_tidy(in_folder("checkpoint"), "m", &error)); /* a file, in which nothing lies */
    assert_message(log_text, "Not a directory");
    assert_latest(6);
}

/* A disk that fails for a moment says of no file that it is there. */
static void data_whose_index_cannot_be_looked_at_stays(void **state)
{
    (void)state;
    const char *data = in_folder("model.ckpt-4.data-00000-of-00001"), *index = in_folder("model.ckpt-4.index");
    store(data, "x", 1);
    assert_int_equal(symlink(index, index), 0);
    assert_ok(tw_checkpoint_tidy(folder, "model.ckpt", &error));
    assert_true(twi_file_exists(data));
    assert_int_equal(unlink(index), 0);
    assert_ok(tw_checkpoint_tidy(folder, "model.ckpt", &error));
    assert_false(twi_file_exists(data));
}

/* So the lock's descriptor is 0. */
static void a_process_without_an_input_has_locks_too(void **state)
{
    (void)state;
    const char *left = in_folder("model.ckpt-5.index.tmp-77");
    int input = dup(0);
    close(0);
    for (int i = 0; i < 2; i++) {
        store(left, "x", 1);
        refused.locks = 2;
        refused.reason = EINTR;
        assert_ok(i == 0 ? save(6) : tw_checkpoint_tidy(folder, "model.ckpt", &error));
        assert_false(twi_file_exists(left));
        assert_int_equal(refused.locks, -1);
        assert_int_equal(fcntl(0, F_GETFD), -1); /* closed again */
    }
    store(left, "x", 1);
    refused.locks = 1;
    refused.reason = ENOLCK;
    assert_ok(tw_checkpoint_tidy(folder, "model.ckpt", &error));
    assert_true(twi_file_exists(left));
    assert_int_equal(fcntl(0, F_GETFD), -1);
    assert_int_equal(dup2(input, 0), 0);
    close(input);
}

/* A folder of its own, which the process is in, has no name; and a name may have any character but one. */
static void folders_without_a_name_and_names_of_odd_characters(void **state)
{
    (void)state;
    static const char odd[] = "o\"d\\d ~\n\x7f\xc3\xa4";
    tw_tensor *one = tw_tensor_float(1);
    tw_named_tensor tensor = {"x", one}, nameless = {"", one};
    char before[4096], path[256], expected[256], far[400];
    const char *parts[] = {"part-1", "other-1"};
    tw_checkpoint *checkpoint;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    assert_ok(tw_checkpoint_save("", odd, 3, &tensor, 1, 0, &error));
    assert_ok(tw_checkpoint_latest(".", path, sizeof path, NULL, &error));
    snprintf(expected, sizeof expected, "./%s-3", odd);
    assert_string_equal(path, expected);
    file text = load("checkpoint");
    assert_string_equal(text.bytes, "model_checkpoint_path: \"o\\\"d\\\\d ~\\012\\177\\303\\244-3\"\n"
                                    "all_model_checkpoint_paths: \"o\\\"d\\\\d ~\\012\\177\\303\\244-3\"\n");
    twi_free(text.bytes);
    assert_ok(twi_bundle_save("part-1", &tensor, 1, &error));
    assert_ok(twi_bundle_merge(parts, 1, "other-1", true, &error));
    assert_false(twi_file_exists("part-1.index"));
    assert_ok(twi_bundle_merge(parts + 1, 1, "other-1", true, &error)); /* into itself */
    assert_ok(tw_checkpoint_verify("other-1", &error));
    assert_fails(tw_checkpoint_open(".index", &checkpoint, &error), TW_NOT_FOUND, "nor '.index' is there");
    assert_int_equal(chdir(before), 0);
    assert_fails(twi_bundle_save("/x-1", &nameless, 1, &error), TW_INVALID_ARGUMENT, "empty name");
    memset(far, 'x', sizeof far - 1);
    far[sizeof far - 1] = 0;
    assert_fails(tw_checkpoint_open(far, &checkpoint, &error), TW_INVALID_ARGUMENT, "File name too long");
    tw_tensor_release(one);
}

static void several_processes_may_save_in_one_directory(void **state)
{
    (void)state;
    enum { PROCESSES = 3, STEPS = 40 };
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        if ((children[i] = fork()) == 0) {
            tw_status status = TW_OK;
            for (int step = 1; step <= STEPS && status == TW_OK; step++)
                status = save(step);
            if (status != TW_OK)
                fprintf(stderr, "%s\n", error.message);
            _exit(status != TW_OK);
        }
    for (int i = 0; i < PROCESSES; i++) {
        int how;
        assert_int_equal(waitpid(children[i], &how, 0), children[i]);
        assert_int_equal(how, 0);
    }
    assert_ok(save(STEPS + 1));
    assert_latest(STEPS + 1);
    assert_int_equal(count_files(folder, "tmp"), 0);
}

static void links_planted_in_a_directory_lead_nowhere(void **state)
{
    (void)state;
    char old[64], *bytes;
    size_t size;
    store(in_folder("precious"), "kept", 4);
    char *precious = strdup(in_folder("precious"));
    static const char *const names[] = {"model.ckpt-6.data-00000-of-00001", "model.ckpt-6.index", "checkpoint"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(symlink(precious, in_folder(names[i])), 0);
        snprintf(old, sizeof old, "%s.tmp-%ld", names[i], (long)getpid());
        assert_int_equal(symlink(precious, in_folder(old)), 0);
    }
    assert_ok(save(6));
    assert_latest(6);
    assert_ok(twi_file_read(precious, 100, &bytes, &size, &error));
    assert_int_equal(size, 4);
    twi_free(bytes);
    free(precious);
}

static void a_step_is_the_number_behind_the_last_dash(void **state)
{
    (void)state;
    static const char digits[] = "-7";
    assert_int_equal(twi_checkpoint_step_of("model.ckpt-12"), 12);
    assert_int_equal(twi_checkpoint_step_of("model.ckpt-12.replaced"), 12);
    assert_true(twi_checkpoint_step_of("m-123456789012345678") == 123456789012345678);
    assert_int_equal(twi_checkpoint_step_of("m-1234567890123456789"), -1); /* it might be more than fits */
    assert_int_equal(twi_checkpoint_step_of("m-"), -1);
    assert_int_equal(twi_checkpoint_step_of(digits + 1), -1); /* whatever stands before the name */
}

static void a_string_longer_than_the_pieces_of_a_file_is_read_whole(void **state)
{
    (void)state;
    size_t size = 3 << 20;
    char *text = malloc(size);
    tw_tensor *read = NULL;
    tw_checkpoint *checkpoint;
    for (size_t i = 0; i < size; i++)
        text[i] = (char)(i * 7 + i / 1000);
    tw_named_tensor long_one = {"long", tw_tensor_string(text, size)};
    assert_ok(tw_checkpoint_save(folder, "model.ckpt", 1, &long_one, 1, 5, &error));
    assert_ok(tw_checkpoint_verify(in_folder("model.ckpt-1"), &error));
    assert_ok(tw_checkpoint_open(in_folder("model.ckpt-1"), &checkpoint, &error));
    assert_ok(tw_checkpoint_read(checkpoint, "long", &read, &error));
    const tw_string *found = tw_tensor_data(read);
    assert_int_equal(found->size, size);
    assert_memory_equal(found->data, text, size);
    tw_tensor_release(read);
    tw_checkpoint_close(checkpoint);
    tw_tensor_release((tw_tensor *)long_one.tensor);
    free(text);
}

/* Which is what is done without a tensor to read it into. */
static void a_tensor_is_checked_piece_by_piece(void **state)
{
    (void)state;
    enum { ELEMENTS = 700000 };
    tw_tensor *tensor = tw_tensor_create(TW_FLOAT32, TW_SHAPE(ELEMENTS));
    tw_named_tensor named = {"long", tensor};
    for (int i = 0; i < ELEMENTS; i++)
        ((float *)tw_tensor_data(tensor))[i] = (float)i;
    assert_ok(tw_checkpoint_save(folder, "model.ckpt", 1, &named, 1, 5, &error));
    assert_ok(tw_checkpoint_verify(in_folder("model.ckpt-1"), &error));
    tw_tensor_release(tensor);
}

static void impossible_requests_are_refused_by_name(void **state)
{
    (void)state;
    tw_tensor *one = tw_tensor_float(1), *handle = tw_tensor_create(TW_RESOURCE, TW_SCALAR);
    tw_named_tensor twice[] = {{"a", one}, {"b", one}, {"a", one}}, nameless[] = {{"", one}},
                    resource[] = {{"h", handle}};
    assert_fails(tw_checkpoint_save(folder, "m", 1, twice, 3, 0, &error), TW_INVALID_ARGUMENT, "called 'a'");
    assert_fails(tw_checkpoint_save(folder, "m", 1, nameless, 1, 0, &error), TW_INVALID_ARGUMENT, "empty name");
    assert_fails(tw_checkpoint_save(folder, "m", 1, resource, 1, 0, &error), TW_INVALID_ARGUMENT, "'h' is a resource");
    assert_fails(tw_checkpoint_save(folder, "a/b", 1, twice, 1, 0, &error), TW_INVALID_ARGUMENT, "'a/b'");
    assert_fails(tw_checkpoint_save(folder, "", 1, twice, 1, 0, &error), TW_INVALID_ARGUMENT, "prefix");
    assert_fails(tw_checkpoint_save(folder, "m", -1, twice, 1, 0, &error), TW_INVALID_ARGUMENT, "step (-1)");
    assert_fails(tw_checkpoint_save(folder, "m", 1, twice, 1, -1, &error), TW_INVALID_ARGUMENT, "keep (-1)");
    assert_fails(tw_checkpoint_save(folder, "m", 1, twice, -1, 0, &error), TW_INVALID_ARGUMENT, "tensors (-1)");
    assert_int_equal(count_files(folder, ""), 0);
    tw_checkpoint *checkpoint;
    assert_fails(tw_checkpoint_open(in_folder("m-1"), &checkpoint, &error), TW_NOT_FOUND, "m-1.index");
    assert_null(checkpoint);
    assert_ok(tw_checkpoint_save(folder, "m", 1, NULL, 0, 0, &error)); /* nothing to save is no mistake */
    assert_ok(tw_checkpoint_verify(in_folder("m-1"), &error));
    tw_tensor_release(one);
    tw_tensor_release(handle);
}

/* ---- damage ---- */

/* The checkpoint opens and reads without a mistake; otherwise it must say why, naming a file of it. */
static bool is_good(const char *path)
{
    error = (tw_error){0};
    tw_status status = tw_checkpoint_verify(path, &error);
    if (status == TW_OK)
        return true;
    assert_true(status == TW_DATA_LOSS || status == TW_NOT_FOUND || status == TW_UNIMPLEMENTED);
    assert_message(error.message, path);
    return false;
}

static void damage_every_bit_and_length(const char *name)
{
    const char *base = in_folder("model.ckpt-7"), *path = in_folder(name);
    file good = load(path);
    assert_true(is_good(base));
    for (size_t bit = 0; bit < 8 * good.size; bit++) {
        good.bytes[bit / 8] ^= (char)(1 << bit % 8);
        store(path, good.bytes, good.size);
        good.bytes[bit / 8] ^= (char)(1 << bit % 8);
        if (is_good(base))
            fail_msg("bit %zu of %s was flipped and nobody noticed", bit, name);
    }
    for (size_t size = 0; size < good.size; size++) {
        store(path, good.bytes, size);
        if (is_good(base))
            fail_msg("%s was cut to %zu bytes and nobody noticed", name, size);
    }
    store(path, good.bytes, good.size);
    assert_true(is_good(base));
    twi_free(good.bytes);
}

static void any_flipped_bit_or_missing_end_is_refused(void **state)
{
    (void)state;
    assert_ok(save(7));
    skip_syncs();
    damage_every_bit_and_length("model.ckpt-7.index");
    damage_every_bit_and_length("model.ckpt-7.data-00000-of-00001");
}

/* ---- what others, or nobody, would write ---- */

/* An index of these entries, checksums and all, beside a data file of `words`, four floats; a second one has
 * `others`. */
typedef struct stored {
    const char *key;
    size_t key_size;
    int64_t dtype;
    const char *shape; /* packed; NULL: none */
    size_t shape_size;
    int64_t shard, offset, size;
    const char *slices; /* packed, with their tags */
    size_t slices_size;
} stored;

static const float words[] = {1, 2, 3, 4}, others[] = {10, 20, 30, 40};
enum { LAST = sizeof words };
static const char good_header[] = "\x08\1\x1a\2\x08\1";

static void put_field(twi_text *to, int field, int64_t value)
{
    char bytes[1 + TWI_VARINT_BYTES] = {(char)(field << 3)};
    twi_text_append(to, bytes, 1 + (size_t)twi_put_varint(bytes + 1, (uint64_t)value));
}

static void put_entry(twi_table_builder *table, const stored *e)
{
    twi_text value = {0};
    char crc[5] = {6 << 3 | 5};
    const char *data = (const char *)(e->shard == 1 ? others : words);
    put_field(&value, 1, e->dtype);
    if (e->shape) {
        twi_text_append(&value, (char[]){2 << 3 | 2, (char)e->shape_size}, 2);
        twi_text_append(&value, e->shape, e->shape_size);
    }
    put_field(&value, 3, e->shard);
    put_field(&value, 4, e->offset);
    put_field(&value, 5, e->size);
    if (e->offset >= 0 && e->size >= 0 && e->offset <= LAST && e->size <= LAST - e->offset)
        twi_put32(crc + 1, twi_crc32c_mask(twi_crc32c(0, data + e->offset, (size_t)e->size)));
    twi_text_append(&value, crc, 5);
    twi_text_append(&value, e->slices ? e->slices : "", e->slices_size);
    twi_table_add(table, e->key, e->key_size, value.data, value.size);
    twi_text_free(&value);
}

static void store_made(const char *header, size_t header_size, const stored *entries, int count)
{
    twi_table_builder table;
    twi_table_start(&table, 0);
    if (header)
        twi_table_add(&table, "", 0, header, header_size);
    for (int i = 0; i < count; i++)
        put_entry(&table, &entries[i]);
    assert_ok(twi_table_finish(&table, &error));
    store(in_folder("made-1.index"), table.file.data, table.file.size);
    store(in_folder("made-1.data-00000-of-00001"), (const char *)words, sizeof words);
    twi_table_free(&table);
}

/* What reading all of the checkpoint ends with: opening, checking, or reading tensor "a". */
static void assert_made(tw_status expected, const char *part)
{
    tw_checkpoint *checkpoint = NULL;
    tw_tensor *tensor = NULL;
    error = (tw_error){0};
    tw_status status = tw_checkpoint_open(in_folder("made-1"), &checkpoint, &error);
    if (status == TW_OK && tw_checkpoint_find(checkpoint, "a") >= 0)
        status = tw_checkpoint_read(checkpoint, "a", &tensor, &error);
    if (status == TW_OK)
        status = twi_bundle_verify(checkpoint, &error);
    tw_tensor_release(tensor);
    tw_checkpoint_close(checkpoint);
    if (status != expected || !strstr(error.message, part))
        fail_msg("status %d, \"%s\"; expected %d, \"%s\"", status, error.message, expected, part);
    if (expected != TW_OK)
        assert_message(error.message, "made-1");
}

#define ONE BYTES("\x12\2\x08\1") /* the shape [1] */
#define MANY "\x12\6\x08\x80\x80\x80\x80\x10" /* a dimension of 2^32 */

static void headers_of_other_formats_are_refused_by_what_they_say(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t size;
        tw_status status;
        const char *part;
    } cases[] = {
        {BYTES(good_header), TW_OK, ""},
        {BYTES("\x08\1"), TW_OK, ""},                                      /* without a version */
        {BYTES("\x08\1\x1a\2\x10\1"), TW_OK, ""},                          /* for readers of our version on */
        {BYTES("\x08\1\x1a\2\x10\2"), TW_UNIMPLEMENTED, "version 2 of the format or later, this is 1"},
        {BYTES("\x08\1\x1a\2\x18\2"), TW_OK, ""},                          /* not for those of another version */
        {BYTES("\x08\1\x1a\4\x18\2\x18\1"), TW_UNIMPLEMENTED, "not to be read by version 1 of the format"},
        {BYTES("\x08\1\x10\1"), TW_UNIMPLEMENTED, "big-endian"},
        {BYTES("\x08\1\x10\7"), TW_UNIMPLEMENTED, "big-endian"},
        {BYTES(""), TW_DATA_LOSS, "0 data files"},
        {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"), TW_DATA_LOSS, "-1 data files"},
        {BYTES("\x08\xa0\x8d\6"), TW_DATA_LOSS, "100000 data files"},
        {BYTES("\x08\x9f\x8d\6"), TW_NOT_FOUND, "made-1.data-00000-of-99999"},
        {BYTES("\x08\2"), TW_NOT_FOUND, "made-1.data-00000-of-00002"},
        {BYTES("\x08"), TW_DATA_LOSS, "its header cannot be understood"},
        {BYTES("\x1a\x7f"), TW_DATA_LOSS, "its header cannot be understood"},
        {NULL, 0, TW_DATA_LOSS, "it has no header"},
    };
    static const stored one = {BYTES("a"), TW_FLOAT32, ONE, 0, 0, 4, NULL, 0};
    skip_syncs();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        store_made(cases[i].header, cases[i].size, &one, 1);
        assert_made(cases[i].status, cases[i].part);
    }
    store_made(NULL, 0, NULL, 0);
    assert_made(TW_DATA_LOSS, "it has no header");
    store_made(BYTES(good_header), NULL, 0);
    assert_made(TW_OK, "");
}

static void entries_that_contradict_the_data_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        stored entry;
        tw_status status;
        const char *part;
    } cases[] = {
        {{BYTES("a"), TW_FLOAT32, ONE, 0, 4, 4, NULL, 0}, TW_OK, ""},
        {{BYTES("a"), TW_FLOAT32, NULL, 0, 0, 12, 4, NULL, 0}, TW_OK, ""}, /* no shape: a scalar */
        /* types */
        {{BYTES("a"), 0, ONE, 0, 0, 4, NULL, 0}, TW_UNIMPLEMENTED, "TensorFlow's number 0"},
        {{BYTES("a"), 999, ONE, 0, 0, 4, NULL, 0}, TW_UNIMPLEMENTED, "TensorFlow's number 999"},
        {{BYTES("a"), TW_RESOURCE, ONE, 0, 0, 4, NULL, 0}, TW_UNIMPLEMENTED, "'a' cannot be read"},
        {{BYTES("a"), TW_VARIANT, ONE, 0, 0, 4, NULL, 0}, TW_UNIMPLEMENTED, "'a' cannot be read"},
        {{BYTES("b"), TW_VARIANT, ONE, 0, 0, 4, NULL, 0}, TW_UNIMPLEMENTED, "'b' cannot be checked"},
        {{BYTES("a"), TW_FLOAT64, ONE, 0, 0, 4, NULL, 0}, TW_DATA_LOSS, "1 elements of type double, but 4 bytes"},
        {{BYTES("a"), TW_INT8, ONE, 0, 0, 4, NULL, 0}, TW_DATA_LOSS, "1 elements of type int8, but 4 bytes"},
        {{BYTES("a"), TW_STRING, ONE, 0, 0, 4, NULL, 0}, TW_DATA_LOSS, "1 elements of type string, but 4 bytes"},
        {{BYTES("a"), TW_STRING, ONE, 0, 0, 3, NULL, 0}, TW_DATA_LOSS, "1 elements of type string, but 3 bytes"},
        {{BYTES("a"), TW_STRING, ONE, 0, 0, 16, NULL, 0}, TW_DATA_LOSS, "the lengths of its strings do not add up"},
        /* places */
        {{BYTES("a"), TW_FLOAT32, ONE, 1, 0, 4, NULL, 0}, TW_DATA_LOSS, "'a' lies in data file 1 of 1"},
        {{BYTES("a"), TW_FLOAT32, ONE, -1, 0, 4, NULL, 0}, TW_DATA_LOSS, "'a' lies in data file -1 of 1"},
        {{BYTES("a"), TW_FLOAT32, ONE, 0, -1, 4, NULL, 0}, TW_DATA_LOSS, "4 bytes at -1"},
        {{BYTES("a"), TW_FLOAT32, ONE, 0, 13, 4, NULL, 0}, TW_DATA_LOSS, "at 13, but its data file has only 16"},
        {{BYTES("a"), TW_FLOAT32, ONE, 0, 17, 4, NULL, 0}, TW_DATA_LOSS, "4 bytes at 17"},
        {{BYTES("a"), TW_FLOAT32, ONE, 0, INT64_MAX, 4, NULL, 0}, TW_DATA_LOSS, "its data file has only 16"},
        {{BYTES("a"), TW_FLOAT32, ONE, 0, 0, -4, NULL, 0}, TW_DATA_LOSS, "-4 bytes at 0"},
        {{BYTES("a"), TW_FLOAT32, ONE, 0, 0, 8, NULL, 0}, TW_DATA_LOSS, "1 elements of type float, but 8 bytes"},
        {{BYTES("a"), TW_FLOAT32, ONE, 0, 0, INT64_MAX, NULL, 0}, TW_DATA_LOSS, "its data file has only 16"},
        /* shapes */
        {{BYTES("a"), TW_FLOAT32, BYTES("\x12\2\x08\2"), 0, 0, 4, NULL, 0}, TW_DATA_LOSS, "2 elements of type float"},
        {{BYTES("a"), TW_FLOAT32, BYTES("\x12\2\x08\0"), 0, 0, 0, NULL, 0}, TW_OK, ""},
        {{BYTES("a"), TW_FLOAT32, BYTES("\x12\2\x08\0"), 0, LAST, 0, NULL, 0}, TW_OK, ""}, /* nothing, at the end */
        {{BYTES("a"), TW_FLOAT32, BYTES("\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"), 0, 0, 4, NULL, 0},
         TW_DATA_LOSS, "'a' has an impossible shape"},
        {{BYTES("a"), TW_FLOAT32, BYTES("\x18\1"), 0, 0, 4, NULL, 0}, TW_DATA_LOSS, "'a' has an impossible shape"},
        {{BYTES("a"), TW_FLOAT32, BYTES("\x12\x0a\x08\x80\x80\x80\x80\x80\x80\x80\x80\x40"), 0, 0, 4, NULL, 0},
         TW_DATA_LOSS, "4 bytes of data"}, /* elements that fit, bytes that do not */
        {{BYTES("a"), TW_FLOAT32, BYTES(MANY MANY), 0, 0, 4, NULL, 0},
         TW_DATA_LOSS, "'a' has an impossible shape"},
        /* names, and what is no entry */
        {{BYTES("a\0b"), TW_FLOAT32, ONE, 0, 0, 4, NULL, 0}, TW_DATA_LOSS, "has a zero byte"},
        {{BYTES("a"), TW_FLOAT32, BYTES("\x12\x7f"), 0, 0, 4, NULL, 0}, TW_DATA_LOSS, "'a' cannot be understood"},
    };
    skip_syncs();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        store_made(BYTES(good_header), &cases[i].entry, 1);
        assert_made(cases[i].status, cases[i].part);
    }
}

/* The key of a part of "a", [4]. */
static twi_text part_key(const char *text)
{
    twi_slice slice;
    twi_text key = {0};
    assert_ok(twi_slice_parse(text, &slice, &error));
    twi_slice_key("a", &slice, &key);
    return key;
}

static void parts_that_do_not_make_a_whole_are_refused(void **state)
{
    (void)state;
#define FOUR BYTES("\x12\2\x08\4")
#define TWO BYTES("\x12\2\x08\2")
#define HALF(start) "\x3a\6\x0a\4\x08" start "\x10\2" /* two from there */
#define EXTENT "\x0a\4\x08\0\x10\2"
#define MINUS "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"
    static const struct {
        int64_t dtype, part_dtype;
        const char *slices;
        size_t size;
        tw_status status;
        const char *part;
    } cases[] = {
        {TW_FLOAT32, TW_FLOAT32, BYTES(HALF("\0") HALF("\2")), TW_OK, ""},
        {TW_FLOAT32, TW_FLOAT32, BYTES(HALF("\0")), TW_NOT_FOUND, "do not cover what is asked for"},
        {TW_FLOAT32, TW_FLOAT32, BYTES(HALF("\0") HALF("\1")), TW_DATA_LOSS, "part 1 of tensor 'a' is not there"},
        {TW_FLOAT32, TW_INT32, BYTES(HALF("\0") HALF("\2")), TW_DATA_LOSS, "part 0 of tensor 'a' is not there"},
        {TW_STRING, TW_STRING, BYTES(HALF("\0") HALF("\2")), TW_UNIMPLEMENTED, "strings in parts"},
        {TW_FLOAT32, TW_FLOAT32, BYTES("\x3a\2\x0a\0"), TW_DATA_LOSS, "part 0 of tensor 'a' is not there"}, /* all */
        {TW_FLOAT32, TW_FLOAT32, BYTES("\x3a\0"), TW_DATA_LOSS, "part 0 of tensor 'a' is not there"},
        {TW_FLOAT32, TW_FLOAT32, BYTES("\x3a\x0c" EXTENT EXTENT HALF("\2")), TW_OK, ""}, /* more than dimensions */
        {TW_FLOAT32, TW_FLOAT32, BYTES(HALF("\3")), TW_DATA_LOSS, "part 0 of tensor 'a' lies outside"},
        {TW_FLOAT32, TW_FLOAT32, BYTES(HALF("\5")), TW_DATA_LOSS, "part 0 of tensor 'a' lies outside"},
        {TW_FLOAT32, TW_FLOAT32, BYTES("\x3a\x0f\x0a\x0d\x08" MINUS "\x10\2"), TW_DATA_LOSS, "lies outside"},
        {TW_FLOAT32, TW_FLOAT32, BYTES("\x3a\x0f\x0a\x0d\x08\0\x10" MINUS), TW_DATA_LOSS, "lies outside"},
    };
    twi_text keys[] = {part_key("4 0,2"), part_key("4 2,2")};
    skip_syncs();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stored entries[] = {
            {keys[0].data, keys[0].size, cases[i].part_dtype, TWO, 0, 0, 8, NULL, 0},
            {keys[1].data, keys[1].size, cases[i].part_dtype, TWO, 0, 8, 8, NULL, 0},
            {BYTES("a"), cases[i].dtype, FOUR, 0, 0, 0, cases[i].slices, cases[i].size},
        };
        int without = cases[i].dtype == TW_STRING ? 2 : 0;
        store_made(BYTES(good_header), entries + without, 3 - without);
        assert_made(cases[i].status, cases[i].part);
    }
    stored wide[] = {{keys[0].data, keys[0].size, TW_FLOAT32, FOUR, 0, 0, 16, NULL, 0},
                     {BYTES("a"), TW_FLOAT32, FOUR, 0, 0, 0, BYTES(HALF("\0"))}};
    store_made(BYTES(good_header), wide, 2);
    assert_made(TW_DATA_LOSS, "a part of it has another shape than its place");
    /* a part that is in parts again: more bytes than it has room for were written */
    stored again[] = {{keys[0].data, keys[0].size, TW_FLOAT32, TWO, 0, 0, 16, BYTES(HALF("\0"))},
                      {BYTES("a"), TW_FLOAT32, FOUR, 0, 0, 0, BYTES(HALF("\0"))}};
    store_made(BYTES(good_header), again, 2);
    assert_made(TW_DATA_LOSS, "part 0 of tensor 'a' is not there");
    twi_text_free(&keys[0]);
    twi_text_free(&keys[1]);
}

/* As of savers that TensorFlow shards: one tensor here, one there, and read in turn. */
static void tensors_may_lie_in_several_data_files(void **state)
{
    (void)state;
    stored entries[] = {{BYTES("a"), TW_FLOAT32, ONE, 1, 4, 4, NULL, 0},
                        {BYTES("b"), TW_FLOAT32, ONE, 0, 8, 4, NULL, 0}};
    tw_checkpoint *checkpoint = NULL;
    tw_tensor *tensor = NULL;
    skip_syncs();
    store_made(BYTES("\x08\2\x1a\2\x08\1"), entries, 2);
    store(in_folder("made-1.data-00000-of-00002"), (const char *)words, sizeof words);
    assert_fails(tw_checkpoint_open(in_folder("made-1"), &checkpoint, &error), TW_NOT_FOUND, "data-00001-of-00002");
    store(in_folder("made-1.data-00001-of-00002"), (const char *)others, sizeof others);
    assert_ok(tw_checkpoint_open(in_folder("made-1"), &checkpoint, &error));
    for (int i = 0; i < 4; i++) {
        assert_ok(tw_checkpoint_read(checkpoint, i % 2 ? "b" : "a", &tensor, &error));
        assert_float_equal(tw_tensor_value(tensor, 0), (i % 2 ? 3 : 20), 0);
        tw_tensor_release(tensor);
    }
    assert_ok(twi_bundle_verify(checkpoint, &error)); /* the one of "b" is open now */
    assert_int_equal(unlink(in_folder("made-1.data-00001-of-00002")), 0);
    assert_fails(tw_checkpoint_read(checkpoint, "a", &tensor, &error), TW_NOT_FOUND, "data-00001-of-00002");
    assert_fails(twi_bundle_verify(checkpoint, &error), TW_NOT_FOUND, "data-00001-of-00002");
    tw_checkpoint_close(checkpoint);
    for (int i = 0; i < 2; i++)
        unlink(in_folder(i ? "made-1.data-00001-of-00002" : "made-1.data-00000-of-00002"));
}

/* Of thirteen dimensions nothing is kept but the name, of a list of parts as of a part. */
static void what_has_thirteen_dimensions_is_listed_and_not_read(void **state)
{
    (void)state;
#define DIM "\x12\2\x08\1"
#define TWELVE DIM DIM DIM DIM DIM DIM DIM DIM DIM DIM DIM DIM
#define THIRTEEN BYTES(TWELVE DIM)
    twi_text key = part_key("4 0,2");
    stored list[] = {{BYTES("a"), TW_FLOAT32, THIRTEEN, 0, 0, 0, BYTES(HALF("\0"))}};
    stored part[] = {{key.data, key.size, TW_FLOAT32, THIRTEEN, 0, 0, 4, NULL, 0},
                     {BYTES("a"), TW_FLOAT32, FOUR, 0, 0, 0, BYTES(HALF("\0"))}};
    stored most = {BYTES("a"), TW_FLOAT32, BYTES(TWELVE), 0, 0, 4, NULL, 0};
    skip_syncs();
    store_made(BYTES(good_header), &most, 1);
    assert_made(TW_OK, "");
    store_made(BYTES(good_header), list, 1);
    assert_made(TW_UNIMPLEMENTED, "'a' cannot be read: it has more than 12 dimensions");
    store_made(BYTES(good_header), part, 2);
    assert_made(TW_DATA_LOSS, "part 0 of tensor 'a' is not there");
    twi_text_free(&key);
}

/* A length of two bytes leaves no room for the checksum of all lengths; one is longer than all; and two bytes come
 * behind lengths that have the right checksum and say that there is one. */
static void lengths_of_strings_that_leave_no_room_are_refused(void **state)
{
    (void)state;
    enum { SIZE = 200, COUNT = SIZE - 4 };
    stored one = {BYTES("a"), TW_STRING, ONE, 0, 0, 7, NULL, 0};
    char lengths[7] = {1}, length[4];
    char data[SIZE] = {(char)0x80, 1}; /* 128, then zeros */
    stored entry = {BYTES("a"), TW_STRING, BYTES("\x12\3\x08\xc4\1"), 0, 0, SIZE, NULL, 0};
    skip_syncs();
    store_made(BYTES(good_header), &entry, 1);
    store(in_folder("made-1.data-00000-of-00001"), data, sizeof data);
    assert_made(TW_DATA_LOSS, "the lengths of its strings do not add up");
    store_made(BYTES(good_header), &one, 1);
    twi_put32(length, 1);
    twi_put32(lengths + 1, twi_crc32c_mask(twi_crc32c(0, length, 4)));
    store(in_folder("made-1.data-00000-of-00001"), lengths, sizeof lengths);
    assert_made(TW_DATA_LOSS, "the lengths of its strings do not add up");
    lengths[0] = 8;
    store(in_folder("made-1.data-00000-of-00001"), lengths, sizeof lengths);
    assert_made(TW_DATA_LOSS, "string 0 is longer than all of it");
}

static void parts_that_cannot_be_saved_are_refused_by_what_is_wrong_in_them(void **state)
{
    (void)state;
    tw_tensor *floats = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2), words);
    tw_tensor *whole = tw_tensor_from(TW_INT32, TW_SHAPE(2), words);
    tw_named_tensor types[] = {{"a", floats, "4 0,2"}, {"a", whole, "4 2,2"}};
    tw_named_tensor shapes[] = {{"a", floats, "4 0,2"}, {"a", floats, "5 2,2"}}, wrong[] = {{"a", floats, "4 two"}};
    assert_fails(tw_checkpoint_save(folder, "p", 1, types, 2, 0, &error), TW_INVALID_ARGUMENT,
                 "the parts of 'a' disagree about its shape or type");
    assert_fails(tw_checkpoint_save(folder, "p", 1, shapes, 2, 0, &error), TW_INVALID_ARGUMENT,
                 "the parts of 'a' disagree about its shape or type");
    assert_fails(tw_checkpoint_save(folder, "p", 1, wrong, 1, 0, &error), TW_INVALID_ARGUMENT, "4 two");
    assert_int_equal(count_files(folder, "p-1"), 0);
    tw_tensor_release(floats);
    tw_tensor_release(whole);
}

/* Each file of a checkpoint beside the other one of another. */
static void files_of_different_checkpoints_are_not_taken_for_one(void **state)
{
    (void)state;
    static const char *const suffixes[] = {".index", ".data-00000-of-00001"};
    char from[6][200], name[64];
    int refused = 0;
    skip_syncs();
    for (int step = 1; step <= 3; step++) {
        assert_ok(save(step));
        snprintf(from[step - 1], sizeof from[0], "%s/model.ckpt-%d", folder, step);
    }
    snprintf(from[3], sizeof from[0], "%s/checkpoint", GOLDEN_DIR);
    snprintf(from[4], sizeof from[0], "%s/checkpoint_foreign", GOLDEN_DIR);
    snprintf(from[5], sizeof from[0], "%s/checkpoint_parts", GOLDEN_DIR);
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++) {
            for (int f = 0; f < 2; f++) {
                char path[256];
                snprintf(path, sizeof path, "%s%s", from[f ? k : i], suffixes[f]);
                file file = load(path);
                snprintf(name, sizeof name, "mixed-9%s", suffixes[f]);
                store(in_folder(name), file.bytes, file.size);
                twi_free(file.bytes);
            }
            error = (tw_error){0};
            tw_status status = tw_checkpoint_verify(in_folder("mixed-9"), &error);
            assert_int_equal(status, i == k ? TW_OK : TW_DATA_LOSS);
            refused += i != k;
            if (i != k)
                assert_message(error.message, "mixed-9");
        }
    assert_int_equal(refused, 30);
}

/* ---- faults ---- */

static void failed_save_loses_nothing_and_can_be_repeated(void **state)
{
    (void)state;
    int n = 0, nameless = 0; /* whose state file could not be written */
    remove_scratch(folder);
    for (;; n++) {
        folder = scratch_folder();
        assert_ok(save_keeping(1, 1, 2));
        assert_ok(save_keeping(2, 2, 2));
        fail_file_call(n, n % 2 ? EIO : ENOSPC);
        tw_status status = save_keeping(3, 3, 2);
        bool failed = stop_failing(), committed = twi_file_exists(in_folder("model.ckpt-3.index"));
        if (status != TW_OK) {
            assert_message(error.message, folder);
            assert_message(error.message, n % 2 ? "Input/output error" : "No space left");
            assert_int_equal(count_files(folder, ".tmp"), 0);
            nameless += strstr(error.message, "is saved, but its name is not in") != NULL;
        } else if (failed) {
            assert_message(log_text, "cannot delete"); /* the only call whose failure does no harm */
        }
        assert_latest(committed ? 3 : 2);
        assert_ok(save_keeping(3, 3, 2));
        assert_latest(3);
        assert_true(first_weight(in_folder("model.ckpt-3")) == 3);
        assert_int_equal(count_files(folder, ""), 5); /* two checkpoints and `checkpoint` */
        remove_scratch(folder);
        if (!failed) {
            assert_int_equal(status, TW_OK);
            break;
        }
    }
    assert_true(n > 20);
    assert_true(nameless >= 5);
    folder = scratch_folder();
}

static void failed_save_over_the_same_step_leaves_the_old_or_the_new(void **state)
{
    (void)state;
    int n = 0;
    remove_scratch(folder);
    for (;; n++) {
        folder = scratch_folder();
        assert_ok(save_keeping(1, 1, 2));
        assert_ok(save_keeping(2, 20, 2));
        fail_file_call(n, n % 2 ? EIO : ENOSPC);
        tw_status status = save_keeping(2, 21, 2);
        bool failed = stop_failing();
        char path[256];
        int64_t step;
        assert_ok(tw_checkpoint_latest(folder, path, sizeof path, &step, &error));
        assert_int_equal(step, 2);
        double value = first_weight(path);
        assert_true(value == 21 || (value == 20 && status != TW_OK));
        if (value == 20) /* all is as it was */
            assert_int_equal(count_files(folder, ".replaced"), 0);
        assert_ok(save_keeping(2, 22, 2));
        assert_latest(2);
        assert_true(first_weight(in_folder("model.ckpt-2")) == 22);
        assert_int_equal(count_files(folder, ""), 5);
        remove_scratch(folder);
        if (!failed) {
            assert_int_equal(status, TW_OK);
            break;
        }
    }
    assert_true(n > 20);
    folder = scratch_folder();
}

/* What is done, a letter a call: files and directories are synced, names are given and go. */
static char done[100];

static void note(char call)
{
    snprintf(done + strlen(done), sizeof done - strlen(done), "%c", call);
}

static int noted_fsync(int fd)
{
    struct stat about;
    note(fstat(fd, &about) == 0 && S_ISDIR(about.st_mode) ? 'd' : 's');
    return twi_posix_files.fsync(fd);
}

static int noted_rename(const char *from, const char *to)
{
    note('r');
    return twi_posix_files.rename(from, to);
}

static int noted_unlink(const char *path)
{
    if (twi_file_exists(path))
        note('u');
    return twi_posix_files.unlink(path);
}

/* Files first, then their names, then what the names lead to: only behind that do old ones go. */
static void what_is_saved_is_on_the_disk_before_old_ones_go(void **state)
{
    (void)state;
    twi_file_calls noting = twi_posix_files;
    noting.fsync = noted_fsync;
    noting.rename = noted_rename;
    noting.unlink = noted_unlink;
    assert_ok(save_keeping(1, 1, 1));
    done[0] = 0;
    twi_set_files(&noting);
    tw_status status = save_keeping(2, 2, 1);
    twi_set_files(NULL);
    assert_ok(status);
    assert_string_equal(done, "ss" "rrd" "srd" "uu"); /* the pair, its names, the state file, the old pair */
    done[0] = 0;
    twi_set_files(&noting);
    status = save_keeping(2, 3, 1);
    twi_set_files(NULL);
    assert_ok(status);
    assert_string_equal(done, "ss" "d" "rrd" "u" "srd" "u"); /* second names are there before the first ones go */
}

/* From the n-th call on nothing reaches the disk any more, as if the process had been killed there. */
static struct {
    int calls_left;
} killed;

static bool is_dead(void)
{
    errno = EIO;
    return killed.calls_left-- <= 0;
}

static int dead_open(const char *path, int flags, unsigned mode)
{
    return is_dead() ? -1 : twi_posix_files.open(path, flags, mode);
}

static ssize_t dead_write(int fd, const void *bytes, size_t size)
{
    return is_dead() ? -1 : twi_posix_files.write(fd, bytes, size);
}

static int dead_fsync(int fd)
{
    return is_dead() ? -1 : twi_posix_files.fsync(fd);
}

static int dead_rename(const char *from, const char *to)
{
    return is_dead() ? -1 : twi_posix_files.rename(from, to);
}

static int dead_link(const char *from, const char *to)
{
    return is_dead() ? -1 : twi_posix_files.link(from, to);
}

static int dead_unlink(const char *path)
{
    return is_dead() ? -1 : twi_posix_files.unlink(path);
}

static void save_killed_at_any_call_loses_nothing(void **state)
{
    (void)state;
    static const twi_file_calls dying = {dead_open, dead_write, dead_fsync, close, dead_rename, dead_link, dead_unlink};
    remove_scratch(folder);
    for (int64_t step = 2; step <= 3; step++) /* over an old checkpoint, and beside it */
        for (int n = 0;; n++) {
            folder = scratch_folder();
            assert_ok(save_keeping(1, 1, 2));
            assert_ok(save_keeping(2, 20, 2));
            killed.calls_left = n;
            twi_set_files(&dying);
            tw_status status = save_keeping(step, 30, 2);
            twi_set_files(NULL);
            char path[256];
            int64_t found;
            assert_ok(tw_checkpoint_latest(folder, path, sizeof path, &found, &error));
            assert_true(found >= 2);
            assert_true(first_weight(path) == 20 || first_weight(path) == 30);
            assert_ok(save_keeping(4, 4, 2));
            assert_latest(4);
            assert_int_equal(count_files(folder, "tmp"), 0);
            remove_scratch(folder);
            if (status == TW_OK && killed.calls_left >= 0)
                break;
        }
    folder = scratch_folder();
}

static void running_out_of_memory_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    tw_tensor *one = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2, 1), (float[]){1, 2});
    tw_tensor *two = tw_tensor_string("tower", 5);
    tw_named_tensor tensors[] = {
        {"one", one}, {"parts", one, "4 1 2,2:-"}, {"parts", one, "4 1 0,2:-"}, {"two", two, ""}};
    bool failed = true;
    for (int n = 0; failed; n++) {
        tw_checkpoint *checkpoint = NULL;
        tw_tensor *read = NULL;
        tw_status status;
        error = (tw_error){0};
        fail_allocation(n);
        status = tw_checkpoint_save(folder, "m", 1, tensors, 4, 2, &error);
        if (status == TW_OK)
            status = tw_checkpoint_open(folder, &checkpoint, &error);
        if (status == TW_OK)
            status = tw_checkpoint_read(checkpoint, "two", &read, &error);
        if (status == TW_OK) {
            tw_tensor_release(read);
            status = tw_checkpoint_read(checkpoint, "parts", &read, &error);
        }
        tw_tensor_release(read);
        tw_checkpoint_close(checkpoint);
        assert_int_equal(memory.live, 0);
        failed = stop_failing_allocations();
        if (!failed)
            assert_int_equal(status, TW_OK);
        else if (status != TW_OK && status != TW_RESOURCE_EXHAUSTED)
            fail_msg("allocation %d: status %d: %s", n, status, error.message);
    }
    tw_tensor_release(one);
    tw_tensor_release(two);
}

/* A list has all that there are, or is none; and a checkpoint's name may be that of its index. */
static void a_list_that_memory_lacks_for_is_no_shorter(void **state)
{
    (void)state;
    bool failed = true;
    assert_ok(save(1));
    assert_ok(save(2));
    for (int n = 0; failed; n++) {
        tw_checkpoint_list *list = NULL;
        tw_checkpoint *checkpoint = NULL;
        fail_allocation(n);
        tw_status status = tw_checkpoint_list_open(folder, &list, &error);
        if (status == TW_OK) {
            assert_int_equal(tw_checkpoint_list_count(list), 2);
            status = tw_checkpoint_open(in_folder("model.ckpt-2.index"), &checkpoint, &error);
        }
        tw_checkpoint_list_close(list);
        tw_checkpoint_close(checkpoint);
        assert_int_equal(memory.live, 0);
        failed = stop_failing_allocations();
        assert_int_equal(status, failed ? TW_RESOURCE_EXHAUSTED : TW_OK);
    }
}

/* Memory that runs out while old ones are deleted harms nothing: the next save deletes them. */
static void an_old_checkpoint_that_memory_lacks_for_stays(void **state)
{
    (void)state;
    tw_tensor *one = tw_tensor_float(1);
    tw_named_tensor tensor = {"x", one};
    bool failed = true;
    skip_syncs();
    for (int n = 0; failed; n++) {
        assert_ok(save_keeping(1, 1, 0));
        assert_ok(save_keeping(2, 2, 0));
        fail_allocation(n);
        tw_status status = tw_checkpoint_save(folder, "model.ckpt", 3, &tensor, 1, 1, &error);
        failed = stop_failing_allocations();
        assert_int_equal(memory.live, 0);
        assert_true(status == TW_OK || (failed && status == TW_RESOURCE_EXHAUSTED));
        assert_ok(save_keeping(4, 4, 1));
        assert_latest(4);
        assert_int_equal(count_files(folder, ""), 3);
        unlink(in_folder("model.ckpt-4.index"));
    }
    tw_tensor_release(one);
}

/* ---- sorted tables, of which an index is one --------------------------------------------------------------------- */

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

/* Bytes of a table: its blocks, each with the lists of restarts and five bytes behind it, and what they hold. */
enum { RESTART = 4, BEHIND_BLOCK = 4 + 5, FOOTER = 48, ENTRY = 3, INDEX_ENTRY = ENTRY + 1 + 2 };

/* A block is closed when what it takes with its restarts is all that it may take. */
static void a_block_is_closed_as_soon_as_it_is_full(void **state)
{
    (void)state;
    enum { VALUE = 100, FULL = ENTRY + 1 + VALUE + RESTART + 4 };
    static const char value[VALUE];
    for (size_t block_bytes = FULL; block_bytes < FULL + 2; block_bytes++) {
        twi_table_builder table;
        twi_table_start(&table, block_bytes);
        twi_table_add(&table, "a", 1, value, VALUE);
        assert_true(table.closed == (block_bytes == FULL));
        assert_ok(twi_table_finish(&table, &error));
        assert_int_equal(table.file.size, ENTRY + 1 + VALUE + RESTART + BEHIND_BLOCK + RESTART + BEHIND_BLOCK +
                                              INDEX_ENTRY + RESTART + BEHIND_BLOCK + FOOTER);
        twi_table_free(&table);
    }
}

static void a_table_of_nothing_has_no_block_of_data(void **state)
{
    (void)state;
    twi_table_builder table;
    build(&table, 0, 0);
    assert_int_equal(table.file.size, 2 * (RESTART + BEHIND_BLOCK) + FOOTER);
    twi_table_free(&table);
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

static size_t bytes_of_table(const char *first, const char *second)
{
    twi_table_builder table;
    seen seen;
    twi_table_start(&table, 1); /* a block each */
    twi_table_add(&table, first, strlen(first), "", 0);
    if (second)
        twi_table_add(&table, second, strlen(second), "", 0);
    assert_ok(twi_table_finish(&table, &error));
    assert_ok(read_table(&table, &seen));
    size_t bytes = table.file.size;
    twi_table_free(&table);
    return bytes;
}

/* Nor shorter: those of a block that ends with the beginning of the next key, or with what nothing of its length
 * follows. */
static void keys_of_the_index_are_as_short_as_tensorflows(void **state)
{
    (void)state;
    assert_int_equal(bytes_of_table("kaa", "m"), bytes_of_table("k", "m") + 2);
    assert_int_equal(bytes_of_table("k", "kz"), bytes_of_table("k", "m") + 1);
    assert_int_equal(bytes_of_table("kaa", NULL), bytes_of_table("k", NULL) + 2);
    assert_int_equal(bytes_of_table("\xff", NULL), bytes_of_table("k", NULL));
    assert_int_equal(bytes_of_table("", NULL), bytes_of_table("k", NULL) - 2);
}

/* The first block is written with the key c in the index, since d follows, which then is c. */
static void a_block_that_does_not_come_behind_the_last_ones_key_is_refused(void **state)
{
    (void)state;
    twi_table_builder table;
    seen seen;
    twi_table_start(&table, 1);
    twi_table_add(&table, "b", 1, "", 0);
    table.block_bytes = 100;
    twi_table_add(&table, "d", 1, "", 0);
    assert_int_equal(table.data.bytes.data[3], 'd');
    table.data.bytes.data[3] = 'c';
    assert_ok(twi_table_finish(&table, &error));
    assert_fails(read_table(&table, &seen), TW_DATA_LOSS, "not in order");
    twi_table_free(&table);
}

#define END "\0\0\0\0\1\0\0\0" /* one restart, at 0 */

/* A block of that type with its checksum. */
static void append_block(twi_text *file, const twi_text *contents, char type)
{
    char crc[4];
    size_t at = file->size;
    twi_text_append(file, twi_text_string(contents), contents->size);
    twi_text_append(file, &type, 1);
    twi_put32(crc, twi_crc32c_mask(twi_crc32c(0, file->data + at, file->size - at)));
    twi_text_append(file, crc, 4);
}

/* A table of three blocks of these types, data, metaindex and index, with what may stand behind the data. */
static void wrap_blocks(twi_table_builder *table, const twi_text blocks[3], const char types[3], const twi_text *behind)
{
    char footer[48] = {0};
    uint64_t offset = 0;
    int used = 0;
    *table = (twi_table_builder){0};
    for (int i = 0; i < 3; i++) {
        if (i > 0) {
            used += twi_put_varint(footer + used, offset);
            used += twi_put_varint(footer + used, blocks[i].size);
        }
        append_block(&table->file, &blocks[i], types[i]);
        if (i == 0 && behind)
            twi_text_append(&table->file, twi_text_string(behind), behind->size);
        offset = table->file.size;
    }
    twi_put64(footer + 40, UINT64_C(0xdb4775248b80fb57));
    twi_text_append(&table->file, footer, sizeof footer);
}

/* A table with one data block of these contents and type, everything else in order. */
static void wrap_block(twi_table_builder *table, const void *bytes, size_t size, char type)
{
    char handle[2 * TWI_VARINT_BYTES];
    twi_text blocks[3] = {0};
    int used = twi_put_varint(handle, 0);
    used += twi_put_varint(handle + used, size);
    twi_text_append(&blocks[0], bytes, size);
    twi_text_append(&blocks[1], END, 8);
    twi_text_append(&blocks[2], (char[]){0, 1, (char)used, '~'}, 4);
    twi_text_append(&blocks[2], handle, (size_t)used);
    twi_text_append(&blocks[2], END, 8);
    wrap_blocks(table, blocks, (char[]){type, 0, 0}, NULL);
    for (int i = 0; i < 3; i++)
        twi_text_free(&blocks[i]);
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
    assert_block_refused("\x80" END, "does not fit");          /* numbers that go on at the end */
    assert_block_refused("\0\x80" END, "does not fit");
    assert_block_refused("\0\1\x80" END, "does not fit");
    assert_block_refused("", "restarts");
    assert_block_refused("\0\0\0\0", "restarts");
    assert_block_refused("\0\0\0\0\2\0\0\0", "restarts");
    assert_block_refused("\0\0\0\0\xff\xff\xff\xff", "restarts");
}

/* Data of one entry, 13 bytes, and what stands around it. */
static void blocks_that_do_not_fit_together_are_refused(void **state)
{
    (void)state;
#define DATA "\0\1\1bx" END
    static const struct {
        const char *metaindex, *index, *behind, *part;
        size_t metaindex_size, index_size;
        char metaindex_type;
    } cases[] = {
        {END, "\0\1\2~\0\x0d" END, "", NULL, 8, 14},
        {"\x08\x1c" END, "\0\1\2~\0\x0d" END, "", NULL, 10, 14, 1}, /* compressed: a literal of 8 */
        {"\0\1\1bx" END, "\0\1\2~\0\x0d" END, "", "something beside the index", 13, 14},
        {END, "\0\1\1~\0" END, "", "an entry without a place", 8, 13},
        {END, "\0\1\2~\0\x80" END, "", "an entry without a place", 8, 14},
        {END, "\0\1\3~\0\x0d\0" END, "", "an entry without a place", 8, 15},
        {END, "\0\1\2~\0\x0d" END, "more", "the bytes from 18 to 22 belong to no block", 8, 14},
        {END, "\0\1\2~\1\x0d" END, "", "it must begin at 0", 8, 14},
        {END, "\0\1\2~\0\x0e" END, "", "and end before 18", 8, 14},
        {END, "\0\1\2~\0\x0d\0\1\2\x7f\x12\0" END, "", "a block of 0 bytes is said to be at 18", 8, 20},
        {END, "\0\1\2~\0\x0d\0\1\2\x7f\x12\0" END, "four", "a block of 0 bytes is said to be at 18", 8, 20},
        {END, "\0\1\2a\0\x0d" END, "", "not in order", 8, 14},
        {END, END, "", "the bytes from 0 to 18 belong to no block", 8, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        twi_table_builder table;
        twi_text blocks[3] = {0}, behind = {0};
        int count = 0;
        twi_text_append(&blocks[0], DATA, sizeof DATA - 1);
        twi_text_append(&blocks[1], cases[i].metaindex, cases[i].metaindex_size);
        twi_text_append(&blocks[2], cases[i].index, cases[i].index_size);
        twi_text_append(&behind, cases[i].behind, strlen(cases[i].behind));
        wrap_blocks(&table, blocks, (char[]){0, cases[i].metaindex_type, 0}, &behind);
        error = (tw_error){0};
        tw_status status = twi_table_read(table.file.data, table.file.size, count_entry, &count, &error);
        bool right = status == TW_OK && count == 1;
        if (cases[i].part)
            right = status == TW_DATA_LOSS && strstr(error.message, cases[i].part);
        if (!right)
            fail_msg("case %zu: status %d, %d entries: %s", i, status, count, error.message);
        twi_table_free(&table);
        twi_text_free(&behind);
        for (int k = 0; k < 3; k++)
            twi_text_free(&blocks[k]);
    }
}

static void nothing_may_lie_between_the_index_and_the_footer(void **state)
{
    (void)state;
    twi_table_builder table;
    twi_text gap = {0};
    int count = 0;
    wrap_block(&table, BYTES(DATA), 0);
    twi_text_append(&gap, table.file.data, table.file.size - 48);
    twi_text_append(&gap, "more", 4);
    twi_text_append(&gap, table.file.data + table.file.size - 48, 48);
    assert_ok(twi_table_read(table.file.data, table.file.size, count_entry, &count, &error));
    assert_fails(twi_table_read(gap.data, gap.size, count_entry, &count, &error), TW_DATA_LOSS,
                 "something beside the index");
    twi_text_free(&gap);
    twi_table_free(&table);
}

/* Reads it, counting entries, while the n-th allocation fails: whether there was one, which then was told. */
static bool read_when_memory_fails(const twi_table_builder *table, int n, int *count)
{
    *count = 0;
    error = (tw_error){0};
    fail_allocation(n);
    tw_status status = twi_table_read(table->file.data, table->file.size, count_entry, count, &error);
    bool failed = stop_failing_allocations();
    assert_int_equal(memory.live, 0);
    assert_int_equal(status, failed ? TW_RESOURCE_EXHAUSTED : TW_OK);
    return failed;
}

/* The key of a block in the index may take more than all keys in it. */
static void a_long_key_that_memory_lacks_for_is_not_called_damaged(void **state)
{
    (void)state;
    twi_table_builder table;
    twi_text blocks[3] = {0};
    bool failed = true;
    twi_text_append(&blocks[0], BYTES(DATA));
    twi_text_append(&blocks[1], END, 8);
    twi_text_append(&blocks[2], (char[]){0, 100, 2}, 3);
    for (int i = 0; i < 100; i++)
        twi_text_append(&blocks[2], "~", 1);
    twi_text_append(&blocks[2], BYTES("\0\x0d" END));
    wrap_blocks(&table, blocks, (char[3]){0}, NULL);
    for (int n = 0, count; failed; n++)
        failed = read_when_memory_fails(&table, n, &count);
    twi_table_free(&table);
    for (int i = 0; i < 3; i++)
        twi_text_free(&blocks[i]);
}

/* Names share what they begin with in the file, and not in memory. */
static void names_may_not_take_many_times_the_memory_of_the_file(void **state)
{
    (void)state;
    enum { LONG = 100 };
    static const char value[] = "\x08\1\x28\4"; /* a float */
    twi_text block = {0};
    twi_table_builder table;
    store(in_folder("made-1.data-00000-of-00001"), "1234", 4);
    twi_text_append(&block, "\0\0\2\x08\1", 5);
    twi_text_append(&block, (char[]){0, LONG, sizeof value - 1}, 3);
    skip_syncs();
    for (int i = 0; i < LONG; i++)
        twi_text_append(&block, "n", 1);
    twi_text_append(&block, value, sizeof value - 1);
    for (int names = 2; names < 2000; names++) { /* each one byte longer than that before it */
        char shared[TWI_VARINT_BYTES];
        twi_text_append(&block, shared, (size_t)twi_put_varint(shared, LONG + (uint64_t)names - 2));
        twi_text_append(&block, (char[]){1, sizeof value - 1, 'n'}, 3);
        twi_text_append(&block, value, sizeof value - 1);
        if (names != 20 && names != 1999)
            continue;
        twi_text whole = {0};
        twi_text_append(&whole, block.data, block.size);
        twi_text_append(&whole, END, 8);
        wrap_block(&table, whole.data, whole.size, 0);
        store(in_folder("made-1.index"), table.file.data, table.file.size);
        tw_checkpoint *checkpoint = NULL;
        error = (tw_error){0};
        tw_status status = tw_checkpoint_open(in_folder("made-1"), &checkpoint, &error);
        if (names == 20) {
            assert_ok(status);
            assert_int_equal(tw_checkpoint_count(checkpoint), 20);
        } else {
            assert_int_equal(status, TW_DATA_LOSS);
            assert_message(error.message, "its names are too long for a file of its size");
        }
        tw_checkpoint_close(checkpoint);
        twi_table_free(&table);
        twi_text_free(&whole);
    }
    twi_text_free(&block);
}

/* The one before is let go of, as the address sanitizer sees. */
static void compressed_blocks_are_expanded_one_after_the_other(void **state)
{
    (void)state;
    enum { PACKED = 15 };
    twi_table_builder table;
    twi_text blocks[3] = {0}, next = {0}, behind = {0};
    int count = 0;
    twi_text_append(&blocks[0], "\x0d\x30\0\1\1bx" END, PACKED); /* a literal of 13 */
    twi_text_append(&blocks[1], END, 8);
    twi_text_append(&blocks[2], "\0\1\2b\0\x0f\0\1\2c\x14\x0f" END, 20);
    twi_text_append(&next, "\x0d\x30\0\1\1cx" END, PACKED);
    append_block(&behind, &next, 1);
    wrap_blocks(&table, blocks, (char[]){1, 0, 0}, &behind);
    assert_ok(twi_table_read(table.file.data, table.file.size, count_entry, &count, &error));
    assert_int_equal(count, 2);
    twi_table_free(&table);
    twi_text_free(&next);
    twi_text_free(&behind);
    for (int i = 0; i < 3; i++)
        twi_text_free(&blocks[i]);
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
    assert_int_equal(twi_snappy_expand(packed, size, &bytes, &expanded), TW_OK);
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
        if (twi_snappy_expand(bad[i].packed, bad[i].size, &bytes, &size) != TW_DATA_LOSS)
            fail_msg("bad block %zu was expanded", i);
    for (int i = 0; i < 20000; i++) { /* noise */
        for (size_t k = 0; k < sizeof packed; k++)
            packed[k] = (char)(rand() >> 7);
        if (twi_snappy_expand(packed, sizeof packed, &bytes, &size) == TW_OK)
            twi_free(bytes);
    }
}

static void a_compressed_block_that_memory_lacks_for_is_not_called_damaged(void **state)
{
    (void)state;
    static const char packed[] = "\x0d\x30\0\1\1ax\0\0\0\0\1\0\0\0"; /* one literal: "a" is "x" */
    twi_table_builder table;
    bool failed = true;
    wrap_block(&table, packed, sizeof packed - 1, 1);
    for (int n = 0, count; failed; n++) {
        failed = read_when_memory_fails(&table, n, &count);
        assert_int_equal(count, !failed);
    }
    twi_table_free(&table);
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)
    const struct CMUnitTest tests[] = {
        TEST(checkpoint_of_tensorflow_is_listed_and_read),
        TEST(an_old_checkpoint_is_read_like_a_new_one),
        TEST(parts_of_an_old_checkpoint_come_together_from_all_of_its_files),
        TEST(an_old_checkpoint_is_written_as_tensorflow_writes_it),
        TEST(an_old_checkpoint_gives_back_each_type),
        TEST(what_an_old_checkpoint_cannot_hold_is_refused_by_name),
        TEST(an_old_checkpoint_that_was_cut_or_changed_is_refused),
        TEST(tensors_of_every_type_are_saved_as_tensorflow_saves_them),
        TEST(what_tower_lacks_is_listed_and_refused_by_name),
        TEST(a_tensor_in_parts_is_read_whole_and_in_other_parts),
        TEST(keys_of_parts_sort_as_names_and_numbers_do),
        TEST(parts_are_saved_as_tensorflow_saves_them),
        TEST(parts_are_merged_as_parts),
        TEST(a_checkpoint_is_what_its_name_says),
        TEST(what_an_old_checkpoint_holds_goes_with_it),
        TEST(a_checkpoint_of_objects_knows_what_variables_are_called),
        TEST(old_checkpoints_go_and_the_state_file_lists_the_rest),
        TEST(list_is_ordered_by_step_as_a_number),
        TEST(latest_passes_over_damaged_checkpoints_and_says_why),
        TEST(of_one_step_the_named_one_is_the_latest),
        TEST(state_file_may_name_a_checkpoint_elsewhere),
        TEST(leftovers_of_killed_processes_are_removed_by_the_next_save),
        TEST(without_locks_what_others_may_be_writing_stays),
        TEST(a_lock_ends_with_the_saving_whoever_has_the_directory),
        TEST(data_whose_index_cannot_be_looked_at_stays),
        TEST(a_process_without_an_input_has_locks_too),
        TEST(folders_without_a_name_and_names_of_odd_characters),
        TEST(several_processes_may_save_in_one_directory),
        TEST(links_planted_in_a_directory_lead_nowhere),
        TEST(a_step_is_the_number_behind_the_last_dash),
        TEST(a_string_longer_than_the_pieces_of_a_file_is_read_whole),
        TEST(a_tensor_is_checked_piece_by_piece),
        TEST(impossible_requests_are_refused_by_name),
        TEST(any_flipped_bit_or_missing_end_is_refused),
        TEST(headers_of_other_formats_are_refused_by_what_they_say),
        TEST(entries_that_contradict_the_data_are_refused_by_name),
        TEST(parts_that_do_not_make_a_whole_are_refused),
        TEST(tensors_may_lie_in_several_data_files),
        TEST(what_has_thirteen_dimensions_is_listed_and_not_read),
        TEST(lengths_of_strings_that_leave_no_room_are_refused),
        TEST(parts_that_cannot_be_saved_are_refused_by_what_is_wrong_in_them),
        TEST(files_of_different_checkpoints_are_not_taken_for_one),
        TEST(failed_save_loses_nothing_and_can_be_repeated),
        TEST(failed_save_over_the_same_step_leaves_the_old_or_the_new),
        TEST(what_is_saved_is_on_the_disk_before_old_ones_go),
        TEST(save_killed_at_any_call_loses_nothing),
        TEST(running_out_of_memory_is_reported_and_leaks_nothing),
        TEST(a_list_that_memory_lacks_for_is_no_shorter),
        TEST(an_old_checkpoint_that_memory_lacks_for_stays),
        cmocka_unit_test(entries_come_back_whatever_the_size_of_blocks),
        cmocka_unit_test(a_block_is_closed_as_soon_as_it_is_full),
        cmocka_unit_test(a_table_of_nothing_has_no_block_of_data),
        cmocka_unit_test(keys_of_the_index_are_as_short_as_tensorflows),
        cmocka_unit_test(a_block_that_does_not_come_behind_the_last_ones_key_is_refused),
        cmocka_unit_test(table_in_blocks_is_refused_for_any_flipped_bit_or_missing_end),
        cmocka_unit_test(blocks_with_right_checksums_and_wrong_contents_are_refused),
        cmocka_unit_test(blocks_that_do_not_fit_together_are_refused),
        cmocka_unit_test(nothing_may_lie_between_the_index_and_the_footer),
        cmocka_unit_test(a_long_key_that_memory_lacks_for_is_not_called_damaged),
        TEST(names_may_not_take_many_times_the_memory_of_the_file),
        cmocka_unit_test(compressed_block_is_expanded),
        cmocka_unit_test(compressed_blocks_are_expanded_one_after_the_other),
        cmocka_unit_test(a_compressed_block_that_memory_lacks_for_is_not_called_damaged),
        cmocka_unit_test(snappy_knows_literals_and_all_three_copies),
        cmocka_unit_test(running_out_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
