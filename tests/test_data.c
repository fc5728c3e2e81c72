/* Readers of data sets, the pipeline. That its stream is what is drawn: test_drawn.c. label: threads */
#include "testing.h"

#include <pthread.h>
#include <stdbool.h>
#include <tower/data.h>

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static tw_error error;

/* ---- files to read ----------------------------------------------------------------------------------------- */

static char directory[256];

static int make_directory(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/tower-data-XXXXXX", base ? base : "/tmp");
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command);
}

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(path_of(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void write_gz(const char *name, const void *bytes, size_t size)
{
    gzFile file = gzopen(path_of(name), "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)size), size);
    gzclose(file);
}

enum { RECORD = 3073 };

/* Record r of file f: label (r + f) mod 10; byte i of the planes is (i + 7 r + f) mod 251. */
static void write_cifar10_file(const char *name, int f, int records, long cut)
{
    uint8_t *bytes = malloc((size_t)records * RECORD);
    for (int r = 0; r < records; r++) {
        bytes[r * RECORD] = (uint8_t)((r + f) % 10);
        for (int i = 0; i < RECORD - 1; i++)
            bytes[r * RECORD + 1 + i] = (uint8_t)((i + 7 * r + f) % 251);
    }
    write_file(name, bytes, (size_t)(records * RECORD - cut));
    free(bytes);
}

static void write_cifar10(const char *prefix)
{
    for (int f = 1; f <= 5; f++) {
        char name[64];
        snprintf(name, sizeof name, "%sdata_batch_%d.bin", prefix, f);
        write_cifar10_file(name, f, f, 0);
    }
}

static const tw_dataset_options few = {.allow_fewer = true};

static void cifar10_records_become_interleaved_pixels_in_file_order(void **state)
{
    (void)state;
    tw_dataset *d;
    write_cifar10("");
    assert_ok(tw_dataset_load("cifar10", directory, TW_SPLIT_TRAIN, &few, &d, &error));
    assert_int_equal(tw_dataset_count(d), 1 + 2 + 3 + 4 + 5);
    assert_int_equal(tw_dataset_height(d), 32);
    assert_int_equal(tw_dataset_width(d), 32);
    assert_int_equal(tw_dataset_channels(d), 3);
    assert_int_equal(tw_dataset_classes(d), 10);
    const int f = 4, r = 2, index = 1 + 2 + 3 + r;
    assert_int_equal(tw_dataset_labels(d)[index], (r + f) % 10);
    for (int i = 0; i < 1024; i++)
        for (int c = 0; c < 3; c++)
            assert_int_equal(tw_dataset_images(d)[(index * 1024 + i) * 3 + c], (c * 1024 + i + 7 * r + f) % 251);
    assert_string_equal(tw_dataset_class_name(d, 6), "frog");
    assert_string_equal(tw_dataset_detect(directory), "cifar10");
    tw_dataset_destroy(d);
}

static void cifar10_is_found_in_the_folder_its_archive_makes(void **state)
{
    (void)state;
    tw_dataset *d;
    mkdir(path_of("cifar-10-batches-bin"), 0700);
    write_cifar10("cifar-10-batches-bin/");
    assert_ok(tw_dataset_load("cifar10", directory, TW_SPLIT_TRAIN, &few, &d, &error));
    assert_int_equal(tw_dataset_count(d), 15);
    assert_string_equal(tw_dataset_detect(directory), "cifar10");
    tw_dataset_destroy(d);
}

static void full_cifar10_file_needs_no_option(void **state)
{
    (void)state;
    tw_dataset *d;
    write_file("test_batch.bin", "", 0);
    assert_int_equal(truncate(path_of("test_batch.bin"), 10000L * RECORD), 0);
    assert_ok(tw_dataset_load("cifar10", directory, TW_SPLIT_TEST, NULL, &d, &error));
    assert_int_equal(tw_dataset_count(d), 10000);
    tw_dataset_destroy(d);
}

static void missing_data_says_what_was_looked_for_and_how_to_get_it(void **state)
{
    (void)state;
    tw_dataset *d = NULL;
    assert_fails(tw_dataset_load("cifar10", path_of("absent"), TW_SPLIT_TRAIN, NULL, &d, &error), TW_NOT_FOUND,
                 "absent");
    assert_message(error.message, "tw_data_fetch(\"cifar10\", \"");
    assert_fails(tw_dataset_load("cifar10", directory, TW_SPLIT_TEST, NULL, &d, &error), TW_NOT_FOUND,
                 "test_batch.bin there and in cifar-10-batches-bin/");
    assert_message(error.message, "tw_data_fetch(\"cifar10\", \"");
    assert_fails(tw_dataset_load("fashion-mnist", directory, TW_SPLIT_TEST, NULL, &d, &error), TW_NOT_FOUND,
                 "t10k-images-idx3-ubyte.gz");
    assert_message(error.message, "tw_data_fetch(\"fashion-mnist\", \"");
    write_cifar10("");
    unlink(path_of("data_batch_3.bin"));
    assert_fails(tw_dataset_load("cifar10", directory, TW_SPLIT_TRAIN, &few, &d, &error), TW_NOT_FOUND,
                 "data_batch_3.bin");
    assert_fails(tw_dataset_load("imagenet", directory, TW_SPLIT_TRAIN, NULL, &d, &error), TW_INVALID_ARGUMENT,
                 "known are cifar10, mnist, fashion-mnist and images");
    assert_fails(tw_dataset_load("mnist", NULL, TW_SPLIT_TRAIN, NULL, &d, &error), TW_INVALID_ARGUMENT,
                 "no data directory");
    assert_null(d);
    assert_null(tw_dataset_detect(path_of("absent")));
}

static void sizes_are_known_without_files(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool as_rgb32;
        tw_dataset_split split;
        int64_t count;
        int side, channels;
    } expected[] = {
        {"cifar10", false, TW_SPLIT_TRAIN, 50000 - 7, 32, 3}, {"cifar10", true, TW_SPLIT_TEST, 10000, 32, 3},
        {"mnist", false, TW_SPLIT_TRAIN, 60000 - 7, 28, 1},   {"fashion-mnist", true, TW_SPLIT_TEST, 10000, 32, 3},
    };
    for (int i = 0; i < 4; i++) {
        tw_dataset_options options = {.as_rgb32 = expected[i].as_rgb32, .hold_back = 7, .sizes_only = true};
        tw_dataset *d;
        assert_ok(tw_dataset_load(expected[i].name, NULL, expected[i].split, &options, &d, &error));
        assert_string_equal(tw_dataset_name(d), expected[i].name);
        assert_int_equal(tw_dataset_count(d), expected[i].count);
        assert_int_equal(tw_dataset_height(d), expected[i].side);
        assert_int_equal(tw_dataset_width(d), expected[i].side);
        assert_int_equal(tw_dataset_channels(d), expected[i].channels);
        assert_int_equal(tw_dataset_classes(d), 10);
        tw_dataset_destroy(d);
    }
}

static void examples_held_back_from_training_are_the_validation_half(void **state)
{
    (void)state;
    tw_dataset *all, *most, *rest = NULL;
    tw_dataset_options options = {.allow_fewer = true, .hold_back = 5};
    write_cifar10("");
    assert_ok(tw_dataset_load("cifar10", directory, TW_SPLIT_TRAIN, &few, &all, &error));
    assert_ok(tw_dataset_load("cifar10", directory, TW_SPLIT_TRAIN, &options, &most, &error));
    assert_ok(tw_dataset_load("cifar10", directory, TW_SPLIT_VALIDATION, &options, &rest, &error));
    assert_int_equal(tw_dataset_count(most), 10);
    assert_int_equal(tw_dataset_count(rest), 5);
    assert_memory_equal(tw_dataset_images(most), tw_dataset_images(all), 10 * 3072);
    assert_memory_equal(tw_dataset_images(rest), tw_dataset_images(all) + 10 * 3072, 5 * 3072);
    assert_memory_equal(tw_dataset_labels(rest), tw_dataset_labels(all) + 10, 5 * sizeof(int32_t));
    tw_dataset_destroy(all);
    tw_dataset_destroy(most);
    tw_dataset_destroy(rest);
    rest = NULL;
    options.hold_back = 15;
    assert_fails(tw_dataset_load("cifar10", directory, TW_SPLIT_TRAIN, &options, &rest, &error), TW_INVALID_ARGUMENT,
                 "expected 1 to 14 examples to hold back, found 15");
    assert_fails(tw_dataset_load("cifar10", directory, TW_SPLIT_VALIDATION, &few, &rest, &error), TW_INVALID_ARGUMENT,
                 "found 0");
    assert_null(rest);
}

static void damaged_cifar10_is_refused_with_sizes_and_places(void **state)
{
    (void)state;
    tw_dataset *d = NULL;
    write_cifar10_file("test_batch.bin", 0, 12, 0);
    assert_fails(tw_dataset_load("cifar10", directory, TW_SPLIT_TEST, NULL, &d, &error), TW_DATA_LOSS,
                 "truncated: 36876 bytes found, 30730000 expected");
    write_cifar10_file("test_batch.bin", 0, 12, 100);
    assert_fails(tw_dataset_load("cifar10", directory, TW_SPLIT_TEST, &few, &d, &error), TW_DATA_LOSS,
                 "36776 bytes, which is not a whole number of CIFAR-10 records");
    write_file("test_batch.bin", "", 0);
    assert_fails(tw_dataset_load("cifar10", directory, TW_SPLIT_TEST, &few, &d, &error), TW_DATA_LOSS, "0 bytes");
    assert_int_equal(truncate(path_of("test_batch.bin"), 10001L * RECORD), 0);
    assert_fails(tw_dataset_load("cifar10", directory, TW_SPLIT_TEST, &few, &d, &error), TW_DATA_LOSS, "more than");

    write_cifar10_file("test_batch.bin", 0, 100, 0);
    FILE *file = fopen(path_of("test_batch.bin"), "r+b");
    fseek(file, 70 * RECORD, SEEK_SET);
    fputc(10, file);
    fclose(file);
    assert_fails(tw_dataset_load("cifar10", directory, TW_SPLIT_TEST, &few, &d, &error), TW_DATA_LOSS,
                 "record 70 (byte 215110) has label 10");
    unlink(path_of("test_batch.bin"));
    mkdir(path_of("test_batch.bin"), 0700);
    assert_fails(tw_dataset_load("cifar10", directory, TW_SPLIT_TEST, &few, &d, &error), TW_INVALID_ARGUMENT,
                 "not a regular file");
    assert_null(d);
}

enum { IDX_IMAGES = 16 + 6 * 28 * 28, IDX_LABELS = 8 + 6 };
static uint8_t idx_images[IDX_IMAGES + 1], idx_labels[IDX_LABELS + 1];

/* Six images; byte i is i mod 253, labels 9 0 0 3 0 2. */
static void make_idx(void)
{
    memcpy(idx_images, "\0\0\10\3\0\0\0\6\0\0\0\34\0\0\0\34", 16);
    for (int i = 0; i < 6 * 28 * 28; i++)
        idx_images[16 + i] = (uint8_t)(i % 253);
    memcpy(idx_labels, "\0\0\10\1\0\0\0\6\11\0\0\3\0\2", IDX_LABELS);
}

static void idx_files_load_plain_and_compressed(void **state)
{
    (void)state;
    make_idx();
    write_file("train-images-idx3-ubyte", idx_images, IDX_IMAGES);
    write_gz("train-labels-idx1-ubyte.gz", idx_labels, IDX_LABELS);
    write_gz("t10k-images-idx3-ubyte.gz", idx_images, IDX_IMAGES);
    write_file("t10k-labels-idx1-ubyte", idx_labels, IDX_LABELS);
    for (int split = TW_SPLIT_TRAIN; split <= TW_SPLIT_TEST; split++) {
        tw_dataset *d;
        assert_ok(tw_dataset_load("mnist", directory, split, NULL, &d, &error));
        assert_int_equal(tw_dataset_count(d), 6);
        assert_int_equal(tw_dataset_height(d), 28);
        assert_int_equal(tw_dataset_channels(d), 1);
        assert_memory_equal(tw_dataset_images(d), idx_images + 16, 6 * 28 * 28);
        for (int i = 0; i < 6; i++)
            assert_int_equal(tw_dataset_labels(d)[i], idx_labels[8 + i]);
        tw_dataset_destroy(d);
    }
}

static void grey_images_become_32x32x3_with_black_borders(void **state)
{
    (void)state;
    make_idx();
    write_file("train-images-idx3-ubyte", idx_images, IDX_IMAGES);
    write_file("train-labels-idx1-ubyte", idx_labels, IDX_LABELS);
    tw_dataset *d;
    assert_ok(tw_dataset_load("fashion-mnist", directory, TW_SPLIT_TRAIN, &(tw_dataset_options){.as_rgb32 = true}, &d,
                              &error));
    assert_int_equal(tw_dataset_height(d), 32);
    assert_int_equal(tw_dataset_width(d), 32);
    assert_int_equal(tw_dataset_channels(d), 3);
    for (int n = 0; n < 6; n++)
        for (int y = 0; y < 32; y++)
            for (int x = 0; x < 32; x++)
                for (int c = 0; c < 3; c++) {
                    bool inside = y >= 2 && y < 30 && x >= 2 && x < 30;
                    assert_int_equal(tw_dataset_images(d)[((n * 32 + y) * 32 + x) * 3 + c],
                                     inside ? idx_images[16 + (n * 28 + y - 2) * 28 + x - 2] : 0);
                }
    assert_int_equal(tw_dataset_labels(d)[3], 3);
    assert_string_equal(tw_dataset_class_name(d, 9), "ankle boot");
    assert_string_equal(tw_dataset_file(d, 0), path_of("train-images-idx3-ubyte"));
    tw_dataset_destroy(d);
    static uint8_t larger[16 + 33 * 33] = "\0\0\10\3\0\0\0\1\0\0\0\41\0\0\0\41";
    write_file("train-images-idx3-ubyte", larger, sizeof larger);
    write_file("train-labels-idx1-ubyte", "\0\0\10\1\0\0\0\1\0", 9);
    assert_fails(tw_dataset_load("mnist", directory, TW_SPLIT_TRAIN, &(tw_dataset_options){.as_rgb32 = true}, &d,
                                 &error),
                 TW_INVALID_ARGUMENT, "cannot make 32x32x3 images of 'mnist', which has 33x33x1");
}

static void sets_with_equal_file_names_are_told_apart_by_their_labels(void **state)
{
    (void)state;
    write_file("train-labels-idx1-ubyte", "\0\0\10\1\0\0\0\10\5\0\4\1\11\2\1\3", 16);
    assert_string_equal(tw_dataset_detect(directory), "mnist");
    write_file("train-labels-idx1-ubyte", "\0\0\10\1\0\0\0\10\11\0\0\3\0\2\7\2", 16);
    assert_string_equal(tw_dataset_detect(directory), "fashion-mnist");
    write_file("train-labels-idx1-ubyte", "\0\0\10\1\0\0\0\10\0\0\0\0\0\0\0\0", 16);
    assert_null(tw_dataset_detect(directory));
}

static void load_idx_expecting(const char *part)
{
    tw_dataset *d = NULL;
    assert_fails(tw_dataset_load("mnist", directory, TW_SPLIT_TRAIN, NULL, &d, &error), TW_DATA_LOSS, part);
    assert_null(d);
}

static void damaged_idx_files_are_refused_with_sizes_and_places(void **state)
{
    (void)state;
    make_idx();
    write_file("train-labels-idx1-ubyte", idx_labels, IDX_LABELS);
    write_file("train-images-idx3-ubyte", idx_images, IDX_IMAGES - 9);
    load_idx_expecting("is truncated: 4711 bytes found, 4720 expected");
    write_file("train-images-idx3-ubyte", idx_images, IDX_IMAGES + 1);
    load_idx_expecting("is too long: 4721 bytes found");
    write_file("train-images-idx3-ubyte", idx_images, 7);
    load_idx_expecting("truncated: 7 bytes found, 16 expected");
    write_file("train-images-idx3-ubyte", idx_labels, IDX_LABELS);
    load_idx_expecting("truncated");
    idx_images[3] = 1;
    write_file("train-images-idx3-ubyte", idx_images, IDX_IMAGES);
    load_idx_expecting("starts with 00 00 08 01, expected 00 00 08 03");
    idx_images[3] = 3;
    idx_images[8] = 255;
    write_file("train-images-idx3-ubyte", idx_images, IDX_IMAGES);
    load_idx_expecting("dimension 1 is 4278190108");
    idx_images[8] = 0;
    idx_images[4] = 255; /* 4 billion images */
    write_gz("train-images-idx3-ubyte", idx_images, IDX_IMAGES);
    load_idx_expecting("its header speaks of");
    idx_images[4] = 0;
    idx_images[7] = 5;
    write_gz("train-images-idx3-ubyte", idx_images, IDX_IMAGES - 784);
    load_idx_expecting("has 5 images");
    idx_images[7] = 6;
    write_gz("train-images-idx3-ubyte", idx_images, IDX_IMAGES - 784);
    load_idx_expecting("is truncated: 3936 bytes (unpacked) found, 4720 expected");
    write_gz("train-images-idx3-ubyte", idx_images, IDX_IMAGES + 1);
    load_idx_expecting("is too long");
    idx_labels[10] = 77;
    write_gz("train-images-idx3-ubyte", idx_images, IDX_IMAGES);
    write_file("train-labels-idx1-ubyte", idx_labels, IDX_LABELS);
    load_idx_expecting("label 2 (byte 10) is 77");
}

static void every_cut_and_flipped_byte_of_a_gz_file_is_noticed(void **state)
{
    (void)state;
    make_idx();
    uint8_t packed[200];
    write_file("train-images-idx3-ubyte", idx_images, IDX_IMAGES);
    write_gz("train-labels-idx1-ubyte.gz", idx_labels, IDX_LABELS);
    FILE *file = fopen(path_of("train-labels-idx1-ubyte.gz"), "rb");
    size_t size = fread(packed, 1, sizeof packed, file);
    fclose(file);
    tw_dataset *d = NULL;
    for (size_t cut = 0; cut < size; cut++) {
        write_file("train-labels-idx1-ubyte.gz", packed, cut);
        assert_int_equal(tw_dataset_load("mnist", directory, TW_SPLIT_TRAIN, NULL, &d, &error), TW_DATA_LOSS);
    }
    int unnoticed = 0;
    for (size_t i = 10; i < size; i++) { /* the ten bytes before are a date and the like */
        packed[i] ^= 0x10;
        write_file("train-labels-idx1-ubyte.gz", packed, size);
        tw_status status = tw_dataset_load("mnist", directory, TW_SPLIT_TRAIN, NULL, &d, &error);
        if (status == TW_OK) { /* a bit that only fills up the last byte */
            unnoticed++;
            for (int n = 0; n < 6; n++)
                assert_int_equal(tw_dataset_labels(d)[n], idx_labels[8 + n]);
            tw_dataset_destroy(d);
            d = NULL;
        } else {
            assert_int_equal(status, TW_DATA_LOSS);
        }
        packed[i] ^= 0x10;
    }
    assert_in_range(unnoticed, 0, 1);
    assert_null(d);
}

static int fail_at, calls;

static void *failing_resize(void *user, void *block, size_t bytes)
{
    (void)user;
    if (bytes && calls++ == fail_at)
        return NULL;
    if (bytes)
        return realloc(block, bytes);
    free(block);
    return NULL;
}

static void running_out_of_memory_anywhere_is_an_error(void **state)
{
    (void)state;
    write_cifar10("");
    make_idx();
    write_file("train-images-idx3-ubyte", idx_images, IDX_IMAGES);
    write_file("train-labels-idx1-ubyte", idx_labels, IDX_LABELS);
    tw_set_allocator(failing_resize, NULL);
    tw_status status = TW_UNKNOWN;
    for (fail_at = 0; status != TW_OK; fail_at++) {
        tw_dataset *cifar10 = NULL, *mnist = NULL;
        tw_pipeline *pipeline = NULL;
        calls = 0;
        status = tw_dataset_load("cifar10", directory, TW_SPLIT_TRAIN, &few, &cifar10, &error);
        if (status == TW_OK)
            status = tw_dataset_load("mnist", directory, TW_SPLIT_TRAIN, &(tw_dataset_options){.as_rgb32 = true},
                                     &mnist, &error);
        if (status == TW_OK)
            status = tw_pipeline_create(cifar10, &(tw_pipeline_options){.batch = 3, .threads = 2}, &pipeline, &error);
        assert_true(status == TW_OK || status == TW_RESOURCE_EXHAUSTED);
        tw_pipeline_destroy(pipeline);
        tw_dataset_destroy(cifar10);
        tw_dataset_destroy(mnist);
    }
    tw_set_allocator(NULL, NULL);
    assert_true(fail_at > 10);
}

static void own_images_are_copied_and_checked(void **state)
{
    (void)state;
    static const uint8_t images[2][2][3][1] = {{{{0}, {10}, {20}}, {{30}, {40}, {50}}}};
    int32_t labels[] = {2, 0};
    tw_dataset *d;
    assert_ok(tw_dataset_from("mine", &images[0][0][0][0], labels, 2, 2, 3, 1, 3, &d, &error));
    labels[0] = 3;
    assert_int_equal(tw_dataset_labels(d)[0], 2);
    assert_string_equal(tw_dataset_name(d), "mine");
    assert_string_equal(tw_dataset_class_name(d, 0), "");
    int64_t counts[3];
    double mean, stddev;
    tw_dataset_info(d, counts, &mean, &stddev);
    assert_int_equal(counts[0] * 100 + counts[1] * 10 + counts[2], 101);
    assert_true(fabs(mean - 12.5) < 1e-12 && fabs(stddev - sqrt(5500 / 12. - 12.5 * 12.5)) < 1e-12);
    tw_dataset_destroy(d);
    assert_fails(tw_dataset_from("mine", &images[0][0][0][0], labels, 2, 2, 3, 1, 3, &d, &error), TW_INVALID_ARGUMENT,
                 "label 0 is 3, expected 0 to 2");
    labels[0] = -1;
    assert_fails(tw_dataset_from("mine", &images[0][0][0][0], labels, 2, 2, 3, 1, 3, &d, &error), TW_INVALID_ARGUMENT,
                 "label 0 is -1, expected 0 to 2");
    static const int wrong[][5] = {{0, 2, 2, 1, 3}, {1, 0, 2, 1, 3}, {1, 4097, 2, 1, 3}, {1, 2, 0, 1, 3},
                                   {1, 2, 4097, 1, 3}, {1, 2, 2, 0, 3}, {1, 2, 2, 5, 3}, {1, 2, 2, 1, 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char message[64];
        const int *w = wrong[i];
        snprintf(message, sizeof message, "%d images of %dx%dx%d in %d classes", w[0], w[1], w[2], w[3], w[4]);
        assert_fails(tw_dataset_synthetic(w[0], w[1], w[2], w[3], w[4], 1, &d, &error), TW_INVALID_ARGUMENT, message);
    }
}

/* Checkpoints have it: SHA-256 of a line that says how many images of what size in how many classes there are, the
 * labels, little-endian, and the pixels. */
static void a_digest_is_of_sizes_labels_and_pixels(void **state)
{
    (void)state;
    static const struct {
        int32_t labels[2];
        uint8_t pixel;
        int height, width, classes;
    } rows[] = {{{2, 0}, 10, 2, 3, 3}, {{2, 1}, 10, 2, 3, 3}, {{2, 0}, 11, 2, 3, 3}, {{2, 0}, 10, 3, 2, 3},
                {{2, 0}, 10, 2, 3, 4}};
    static const char expected[] = "942d9e90522edd940d63e3f4372582927cdc69ae00a2e326e0a993d27658f893";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint8_t images[12] = {0, rows[i].pixel, 20, 30, 40, 50};
        tw_dataset *d;
        assert_ok(tw_dataset_from("mine", images, rows[i].labels, 2, rows[i].height, rows[i].width, 1, rows[i].classes,
                                  &d, &error));
        assert_int_equal(strcmp(tw_dataset_digest(d), expected) == 0, i == 0);
        tw_dataset_destroy(d);
    }
}

static tw_dataset *synthetic(int64_t count, int side, int channels)
{
    tw_dataset *d = NULL;
    assert_ok(tw_dataset_synthetic(count, side, side, channels, 10, 7, &d, &error));
    return d;
}

static void synthetic_images_are_normal_within_two_deviations_and_repeatable(void **state)
{
    (void)state;
    tw_dataset *a = synthetic(500, 32, 3), *b = synthetic(300, 32, 3);
    int64_t counts[10];
    double mean[3], stddev[3];
    assert_memory_equal(tw_dataset_images(a), tw_dataset_images(b), 300 * 32 * 32 * 3);
    assert_memory_equal(tw_dataset_labels(a), tw_dataset_labels(b), 300 * sizeof(int32_t));
    tw_dataset_info(a, counts, mean, stddev);
    for (int c = 0; c < 3; c++) {
        assert_true(fabs(mean[c] - 127) < 0.5);
        assert_true(fabs(stddev[c] - 60 * sqrt(0.7737)) < 0.5); /* a normal cut at two deviations */
    }
    int least = 255, most = 0;
    for (int i = 0; i < 500 * 32 * 32 * 3; i++) {
        least = tw_dataset_images(a)[i] < least ? tw_dataset_images(a)[i] : least;
        most = tw_dataset_images(a)[i] > most ? tw_dataset_images(a)[i] : most;
    }
    assert_true(least >= 7 && least < 20 && most <= 247 && most > 230);
    for (int i = 0; i < 10; i++)
        assert_in_range(counts[i], 20, 80);
    tw_dataset_destroy(a);
    tw_dataset_destroy(b);
}

/* ---- the pipeline ------------------------------------------------------------------------------------------ */

enum { SIDE = 6, IMAGE = SIDE * SIDE, COUNT = 37, BATCH = 5 };

static tw_pipeline *make_pipeline(const tw_dataset *d, tw_pipeline_options options)
{
    tw_pipeline *p = NULL;
    if (!options.batch)
        options.batch = BATCH;
    if (!options.crop)
        options.crop = 4;
    assert_ok(tw_pipeline_create(d, &options, &p, &error));
    return p;
}

static void plain_pipeline_repeats_the_files_in_order(void **state)
{
    (void)state;
    tw_dataset *d = synthetic(COUNT, SIDE, 1);
    tw_pipeline *p = make_pipeline(d, (tw_pipeline_options){.scale = 1});
    float images[BATCH][IMAGE];
    int32_t labels[BATCH];
    for (int k = 0; k < 3 * COUNT; k++) {
        if (k % BATCH == 0)
            assert_ok(tw_pipeline_next(p, 0, images[0], labels, &error));
        assert_int_equal(labels[k % BATCH], tw_dataset_labels(d)[k % COUNT]);
        for (int i = 0; i < IMAGE; i++)
            assert_true(images[k % BATCH][i] == tw_dataset_images(d)[k % COUNT * IMAGE + i]);
    }
    tw_pipeline_destroy(p);
    tw_dataset_destroy(d);
}

static void towers_that_nobody_takes_batches_for_change_no_others(void **state)
{
    (void)state;
    static const bool untaken[] = {false, true, false};
    tw_dataset *d = synthetic(COUNT, SIDE, 1);
    tw_pipeline *all = make_pipeline(d, (tw_pipeline_options){.towers = 3, .shuffle = true});
    tw_pipeline_options options = TW_SIZED(tw_pipeline_options);
    options.towers = 3;
    options.shuffle = true;
    options.untaken = untaken;
    tw_pipeline *some = make_pipeline(d, options);
    float images[2][BATCH][IMAGE];
    int32_t labels[2][BATCH];
    for (int step = 0; step < 9; step++)
        for (int tower = 0; tower < 3; tower += 2) {
            assert_ok(tw_pipeline_next(all, tower, images[0][0], labels[0], &error));
            assert_ok(tw_pipeline_next(some, tower, images[1][0], labels[1], &error));
            assert_memory_equal(labels[0], labels[1], sizeof labels[0]);
        }
    assert_fails(tw_pipeline_next(some, 1, images[1][0], labels[1], &error), TW_FAILED_PRECONDITION,
                 "makes no batches for tower 1");
    tw_pipeline_destroy(all);
    tw_pipeline_destroy(some);
    tw_dataset_destroy(d);
}

static void each_shuffled_epoch_holds_every_example_once(void **state)
{
    (void)state;
    uint8_t images[COUNT];
    int32_t labels[COUNT];
    for (int i = 0; i < COUNT; i++) {
        images[i] = (uint8_t)i;
        labels[i] = i;
    }
    tw_dataset *d;
    assert_ok(tw_dataset_from("numbers", images, labels, COUNT, 1, 1, 1, COUNT, &d, &error));
    tw_pipeline *p = make_pipeline(d, (tw_pipeline_options){.batch = 1, .shuffle = true, .scale = 1, .seed = 9});
    int in_place = 0;
    for (int epoch = 0; epoch < 20; epoch++) {
        bool seen[COUNT] = {false};
        for (int i = 0; i < COUNT; i++) {
            float image;
            int32_t label;
            assert_ok(tw_pipeline_next(p, 0, &image, &label, &error));
            assert_true(image == (float)label);
            assert_false(seen[label]);
            seen[label] = true;
            in_place += label == i;
        }
    }
    assert_in_range(in_place, 5, 45); /* 20 expected */
    tw_pipeline_destroy(p);
    tw_dataset_destroy(d);
}

enum { STREAM = 120, CROPPED = 16 }; /* a multiple of all global batches below */

struct stream {
    float images[STREAM][CROPPED];
    int32_t labels[STREAM];
};

static void read_stream(struct stream *stream, const tw_dataset *d, int batch, int towers, int threads, int prefetch)
{
    tw_pipeline *p = make_pipeline(d, (tw_pipeline_options){.batch = batch,
                                                            .towers = towers,
                                                            .threads = threads,
                                                            .prefetch = prefetch,
                                                            .seed = 4,
                                                            .shuffle = true,
                                                            .augmentation = TW_AUGMENT_TUTORIAL_TRAIN});
    for (int k = 0; k < STREAM; k += batch)
        assert_ok(tw_pipeline_next(p, k / batch % towers, stream->images[k], stream->labels + k, &error));
    tw_pipeline_destroy(p);
}

static void examples_do_not_depend_on_batches_towers_or_threads(void **state)
{
    (void)state;
    static struct stream expected, found;
    tw_dataset *d = synthetic(COUNT, SIDE, 1);
    read_stream(&expected, d, 1, 1, 1, 1);
    static const int settings[][4] = {{1, 1, 1, 2},  {5, 2, 1, 2},  {3, 8, 4, 2},
                                      {30, 4, 3, 1}, {60, 1, 2, 7}, {1, 24, 5, 3}};
    for (int i = 0; i < 6; i++) {
        memset(&found, 0, sizeof found);
        read_stream(&found, d, settings[i][0], settings[i][1], settings[i][2], settings[i][3]);
        assert_memory_equal(&found, &expected, sizeof found);
    }
    tw_dataset_destroy(d);
}

static void shares_deal_out_the_same_stream(void **state)
{
    (void)state;
    static struct stream expected, found;
    static const int shares[] = {1, 4, 3}; /* 8 a step */
    tw_dataset *d = synthetic(COUNT, SIDE, 1);
    read_stream(&expected, d, 1, 1, 1, 1);
    tw_pipeline *p = make_pipeline(d, (tw_pipeline_options){.towers = 3,
                                                            .shares = shares,
                                                            .seed = 4,
                                                            .shuffle = true,
                                                            .augmentation = TW_AUGMENT_TUTORIAL_TRAIN});
    assert_int_equal(tw_pipeline_batch(p), 4);
    for (int k = 0, t = 0; k < STREAM; k += shares[t], t = (t + 1) % 3)
        assert_ok(tw_pipeline_next(p, t, found.images[k], found.labels + k, &error));
    assert_memory_equal(&found, &expected, sizeof found);
    tw_pipeline_destroy(p);
    tw_dataset_destroy(d);
}

static void seeking_continues_the_same_stream(void **state)
{
    (void)state;
    tw_dataset *d = synthetic(COUNT, SIDE, 1);
    tw_pipeline_options options = {
        .towers = 2, .threads = 2, .shuffle = true, .augmentation = TW_AUGMENT_TUTORIAL_TRAIN};
    tw_pipeline *p = make_pipeline(d, options);
    static float expected[40][2][BATCH][CROPPED];
    float found[BATCH][CROPPED];
    int32_t labels[BATCH];
    for (int step = 0; step < 40; step++)
        for (int t = 0; t < 2; t++)
            assert_ok(tw_pipeline_next(p, t, expected[step][t][0], labels, &error));
    for (int i = 0, step = 17; i < 300; i++, step = (step * 7 + 3) % 40) {
        assert_ok(tw_pipeline_seek(p, step, &error));
        for (int t = 0; t < i % 3; t++) {
            assert_ok(tw_pipeline_next(p, t, found[0], labels, &error));
            assert_memory_equal(found, expected[step][t], sizeof found);
        }
    }
    assert_fails(tw_pipeline_seek(p, -1, &error), TW_INVALID_ARGUMENT, "step -1");
    tw_pipeline_destroy(p);

    options.first_step = 33;
    p = make_pipeline(d, options);
    assert_ok(tw_pipeline_next(p, 1, found[0], labels, &error));
    assert_memory_equal(found, expected[33][1], sizeof found);
    tw_pipeline_destroy(p);
    tw_dataset_destroy(d);
}

static void one_tower_may_run_ahead_of_the_others(void **state)
{
    (void)state;
    tw_dataset *d = synthetic(COUNT, SIDE, 1);
    tw_pipeline *p = make_pipeline(d, (tw_pipeline_options){.towers = 3, .prefetch = 1});
    float images[BATCH * IMAGE];
    int32_t labels[BATCH];
    for (int step = 0; step < 50; step++)
        assert_ok(tw_pipeline_next(p, 2, images, labels, &error));
    tw_pipeline_batch_view view;
    assert_ok(tw_pipeline_acquire(p, 0, &view, &error));
    assert_int_equal(view.step, 0);
    tw_pipeline_release(p, &view);
    assert_ok(tw_pipeline_acquire(p, 2, &view, &error));
    assert_int_equal(view.step, 50);
    assert_int_equal(view.labels[0], tw_dataset_labels(d)[(50 * 3 + 2) * BATCH % COUNT]);
    tw_pipeline_release(p, &view);
    tw_pipeline_destroy(p);
    tw_dataset_destroy(d);
}

static void lent_batch_stays_whole_until_released(void **state)
{
    (void)state;
    tw_dataset *d = synthetic(COUNT, SIDE, 1);
    tw_pipeline *p = make_pipeline(d, (tw_pipeline_options){.threads = 2, .prefetch = 3});
    tw_pipeline_batch_view held;
    float copy[BATCH * IMAGE], images[BATCH * IMAGE];
    int32_t labels[BATCH];
    assert_ok(tw_pipeline_acquire(p, 0, &held, &error)); /* place 0 of 3 */
    memcpy(copy, held.images, sizeof copy);
    for (int i = 0; i < 50; i++) {
        assert_ok(tw_pipeline_seek(p, 3 * i + 1, &error)); /* places 1 and 2 */
        assert_ok(tw_pipeline_next(p, 0, images, labels, &error));
        assert_ok(tw_pipeline_next(p, 0, images, labels, &error));
    }
    assert_memory_equal(copy, held.images, sizeof copy);
    tw_pipeline_release(p, &held);
    assert_ok(tw_pipeline_acquire(p, 0, &held, &error));
    assert_int_equal(held.step, 3 * 49 + 3);
    assert_memory_not_equal(copy, held.images, sizeof copy);
    tw_pipeline_release(p, &held);
    tw_pipeline_destroy(p);
    tw_dataset_destroy(d);
}

struct taker {
    tw_pipeline *pipeline;
    pthread_t thread;
    tw_pipeline_batch_view view;
    tw_error error;
    tw_status ended;
};

static void *take(void *argument)
{
    struct taker *t = argument;
    t->ended = tw_pipeline_acquire(t->pipeline, 0, &t->view, &t->error);
    return NULL;
}

/* Starts a thread that takes the next batch, and comes back once it waits for it. */
static void start_taking(struct taker *t, int waits)
{
    tw_pipeline_statistics s;
    assert_int_equal(pthread_create(&t->thread, NULL, take, t), 0);
    do {
        usleep(1000);
        tw_pipeline_get_statistics(t->pipeline, &s);
    } while (s.waits < waits);
    assert_int_equal(s.waits, waits);
}

/* With one place, which is lent, nothing comes until it is back; a seek sends away who waits, with nothing taken. */
static void who_waits_is_woken_by_a_release_and_by_a_seek(void **state)
{
    (void)state;
    tw_dataset *d = synthetic(COUNT, SIDE, 1);
    tw_pipeline *p = make_pipeline(d, (tw_pipeline_options){.prefetch = 1, .threads = 1});
    tw_pipeline_batch_view lent;
    tw_pipeline_statistics s;
    struct taker taker = {.pipeline = p};
    assert_ok(tw_pipeline_acquire(p, 0, &lent, &error)); /* which may have waited */
    tw_pipeline_get_statistics(p, &s);
    int waits = (int)s.waits;
    start_taking(&taker, waits + 1);
    tw_pipeline_release(p, &lent);
    pthread_join(taker.thread, NULL);
    assert_int_equal(taker.ended, TW_OK);
    assert_int_equal(taker.view.step, 1);
    tw_pipeline_get_statistics(p, &s);
    assert_true(s.wait_seconds > 0);

    lent = taker.view;
    start_taking(&taker, waits + 2);
    assert_ok(tw_pipeline_seek(p, 7, &error));
    pthread_join(taker.thread, NULL);
    assert_int_equal(taker.ended, TW_ABORTED);
    assert_message(taker.error.message, "while tower 0 waited for step 2");
    tw_pipeline_get_statistics(p, &s);
    assert_int_equal(s.batches, 2);
    tw_pipeline_release(p, &lent);
    assert_ok(tw_pipeline_acquire(p, 0, &lent, &error));
    assert_int_equal(lent.step, 7);
    tw_pipeline_destroy(p);
    tw_dataset_destroy(d);
}

static void nothing_is_allocated_once_it_runs(void **state)
{
    (void)state;
    tw_dataset *d = synthetic(COUNT, SIDE, 1);
    tw_pipeline *p = make_pipeline(d, (tw_pipeline_options){.threads = 3, .shuffle = true});
    float images[BATCH * IMAGE];
    int32_t labels[BATCH];
    int64_t before = tw_allocation_count();
    for (int i = 0; i < 100; i++)
        assert_ok(tw_pipeline_next(p, 0, images, labels, &error));
    assert_int_equal(tw_allocation_count(), before);
    tw_pipeline_statistics s;
    tw_pipeline_get_statistics(p, &s);
    assert_int_equal(s.batches, 100);
    assert_int_equal(s.threads, 3);
    assert_true(s.waits >= 0 && s.waits <= 100 && s.fill_seconds > 0 && (s.waits == 0) == (s.wait_seconds == 0));
    tw_pipeline_destroy(p);
    tw_dataset_destroy(d);
}

struct consumer {
    tw_pipeline *pipeline;
    pthread_t thread;
    int tower;
    tw_status ended;
};

static void *consume(void *argument)
{
    struct consumer *c = argument;
    float images[BATCH * IMAGE];
    int32_t labels[BATCH];
    do
        c->ended = tw_pipeline_next(c->pipeline, c->tower, images, labels, NULL);
    while (c->ended == TW_OK || c->ended == TW_ABORTED);
    return NULL;
}

static void shutdown_at_any_moment_ends_everybody(void **state)
{
    (void)state;
    tw_dataset *d = synthetic(COUNT, SIDE, 1);
    for (int round = 0; round < 100; round++) {
        struct consumer consumers[4] = {{0}};
        tw_pipeline *p = make_pipeline(d, (tw_pipeline_options){.towers = 2, .threads = 1 + round % 3});
        if (round % 10 != 9) {
            for (int i = 0; i < 4; i++) { /* two for each tower */
                consumers[i] = (struct consumer){.pipeline = p, .tower = i % 2};
                assert_int_equal(pthread_create(&consumers[i].thread, NULL, consume, &consumers[i]), 0);
            }
            for (int i = 0; i < round % 4; i++)
                assert_ok(tw_pipeline_seek(p, round, &error));
            usleep((unsigned)(round % 5) * 100);
            tw_pipeline_cancel(p);
            for (int i = 0; i < 4; i++) {
                pthread_join(consumers[i].thread, NULL);
                assert_int_equal(consumers[i].ended, TW_CANCELLED);
            }
        }
        tw_pipeline_destroy(p);
    }
    tw_dataset_destroy(d);
}

static void impossible_options_are_refused(void **state)
{
    (void)state;
    static const int64_t LAST_STEP = INT32_MAX; /* so that every example has a number */
    tw_dataset *d = synthetic(COUNT, SIDE, 1);
    tw_pipeline *p = NULL;
    static const int one_empty[] = {3, 0};
    static const struct {
        tw_pipeline_options options;
        const char *part;
    } cases[] = {
        {{.batch = 0}, "batch is 0, expected 1"},
        {{.towers = 2, .shares = one_empty}, "a tower's share is 0, expected 1"},
        {{.batch = 1, .towers = -2}, "towers is -2"},
        {{.batch = 1, .threads = -1}, "threads is -1"},
        {{.batch = 1, .prefetch = 1025}, "prefetch is 1025, expected 1 to 1024"},
        {{.batch = 1, .first_step = -1}, "step -1"},
        {{.batch = 1, .augmentation = 9}, "unknown augmentation 9"},
        {{.batch = 1, .augmentation = TW_AUGMENT_TUTORIAL_EVAL}, "cannot crop 24x24 pixels of images of 6x6"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(tw_pipeline_create(d, &cases[i].options, &p, &error), TW_INVALID_ARGUMENT, cases[i].part);
    assert_null(p);
    p = make_pipeline(d, (tw_pipeline_options){.prefetch = 1024}); /* the most there are */
    assert_ok(tw_pipeline_seek(p, LAST_STEP, &error));
    assert_fails(tw_pipeline_seek(p, LAST_STEP + 1, &error), TW_INVALID_ARGUMENT, "step 2147483648");
    tw_pipeline_destroy(p);
    int height = 0, width = 0;
    tw_pipeline_options cropped = TW_SIZED(tw_pipeline_options);
    cropped.augmentation = TW_AUGMENT_TUTORIAL_EVAL;
    cropped.crop = 4;
    assert_ok(tw_pipeline_image_size(d, &cropped, &height, &width, &error));
    assert_int_equal(height * 10 + width, 44);
    p = make_pipeline(d, (tw_pipeline_options){.augmentation = TW_AUGMENT_TUTORIAL_EVAL});
    assert_int_equal(tw_pipeline_height(p) * 100 + tw_pipeline_width(p) * 10 + tw_pipeline_channels(p), 441);
    assert_int_equal(tw_pipeline_batch(p) * 10 + tw_pipeline_towers(p), 51);
    tw_pipeline_batch_view view;
    assert_fails(tw_pipeline_acquire(p, 1, &view, &error), TW_INVALID_ARGUMENT, "no tower 1; it has 1");
    tw_pipeline_destroy(p);
    tw_dataset_destroy(d);
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_a_directory(cifar10_records_become_interleaved_pixels_in_file_order),
        in_a_directory(cifar10_is_found_in_the_folder_its_archive_makes),
        in_a_directory(full_cifar10_file_needs_no_option),
        in_a_directory(missing_data_says_what_was_looked_for_and_how_to_get_it),
        cmocka_unit_test(sizes_are_known_without_files),
        in_a_directory(examples_held_back_from_training_are_the_validation_half),
        in_a_directory(damaged_cifar10_is_refused_with_sizes_and_places),
        in_a_directory(idx_files_load_plain_and_compressed),
        in_a_directory(grey_images_become_32x32x3_with_black_borders),
        in_a_directory(sets_with_equal_file_names_are_told_apart_by_their_labels),
        in_a_directory(damaged_idx_files_are_refused_with_sizes_and_places),
        in_a_directory(every_cut_and_flipped_byte_of_a_gz_file_is_noticed),
        in_a_directory(running_out_of_memory_anywhere_is_an_error),
        cmocka_unit_test(own_images_are_copied_and_checked),
        cmocka_unit_test(a_digest_is_of_sizes_labels_and_pixels),
        cmocka_unit_test(synthetic_images_are_normal_within_two_deviations_and_repeatable),
        cmocka_unit_test(plain_pipeline_repeats_the_files_in_order),
        cmocka_unit_test(towers_that_nobody_takes_batches_for_change_no_others),
        cmocka_unit_test(each_shuffled_epoch_holds_every_example_once),
        cmocka_unit_test(examples_do_not_depend_on_batches_towers_or_threads),
        cmocka_unit_test(shares_deal_out_the_same_stream),
        cmocka_unit_test(seeking_continues_the_same_stream),
        cmocka_unit_test(one_tower_may_run_ahead_of_the_others),
        cmocka_unit_test(lent_batch_stays_whole_until_released),
        cmocka_unit_test(who_waits_is_woken_by_a_release_and_by_a_seek),
        cmocka_unit_test(nothing_is_allocated_once_it_runs),
        cmocka_unit_test(shutdown_at_any_moment_ends_everybody),
        cmocka_unit_test(impossible_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
