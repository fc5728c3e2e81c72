/* Pictures of one's own: read into data sets, and trained, evaluated, predicted and exported from the command line. */
#include "program.h"

#include <dirent.h>
#include <errno.h>
#include <png.h>
#include <stdio.h>

#include <jpeglib.h> /* after stdio.h */
#include <math.h>

#include <tower/data.h>
#include <tower/io.h>

typedef struct colour {
    uint8_t red, green, blue;
} colour;

static const colour red = {200, 0, 0}, green = {0, 200, 0}, blue = {0, 0, 200};

/* A picture of height x width whose left half is of one colour, the right half of another; by the ending a PNG or a
 * JPEG. */
static void write_picture(int height, int width, colour left, colour right, const char *format, ...) TW_PRINTF(5, 6);
static void write_picture(int height, int width, colour left, colour right, const char *format, ...)
{
    char name[256], path[600];
    static colour pixels[200 * 200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    snprintf(path, sizeof path, "%s/%s", directory, name);
    for (int i = 0; i < height * width; i++)
        pixels[i] = i % width < width / 2 ? left : right;
    if (strstr(name, ".png")) {
        png_image image = {.version = PNG_IMAGE_VERSION,
                           .height = (unsigned)height,
                           .width = (unsigned)width,
                           .format = PNG_FORMAT_RGB};
        assert_true(png_image_write_to_file(&image, path, 0, pixels, 0, NULL));
        return;
    }
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr trouble;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    jpeg.err = jpeg_std_error(&trouble);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_height = (unsigned)height;
    jpeg.image_width = (unsigned)width;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 95, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    for (int y = 0; y < height; y++) {
        JSAMPROW row = (JSAMPROW)(pixels + y * width);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    fclose(file);
}

/* Folders of ten pictures for each of three classes, half of them JPEGs. */
static void write_photos(const char *where)
{
    static const struct {
        const char *name;
        const colour *colour;
    } classes[] = {{"10", &blue}, {"9", &red}, {"cat", &green}};
    for (int c = 0; c < 3; c++) {
        assert_runs(0, "mkdir -p %s/%s && echo not a picture >%s/%s/notes.txt", where, classes[c].name, where,
                    classes[c].name);
        for (int i = 0; i < 10; i++)
            write_picture(40 + i, 60, *classes[c].colour, *classes[c].colour, "%s/%s/%d.%s", where, classes[c].name, i,
                          i % 2 ? "jpg" : "png");
    }
}

static const char *inside(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static tw_dataset *load(const char *name, tw_dataset_split split, int side, int channels)
{
    tw_error error = {0};
    tw_dataset *data;
    assert_string_equal(tw_dataset_detect(inside(name)), "images");
    assert_ok(tw_dataset_load("images", inside(name), split,
                              TW_OPTIONS(tw_dataset_options, .height = side, .width = side, .channels = channels),
                              &data, &error));
    return data;
}

static const char *refusal(const char *name)
{
    static tw_error error;
    tw_dataset *data;
    assert_int_not_equal(tw_dataset_load("images", inside(name), TW_SPLIT_TRAIN, NULL, &data, &error), TW_OK);
    return error.message;
}

/* ---- data sets ---- */

static void folders_are_classes_in_the_order_of_their_names(void **state)
{
    (void)state;
    write_photos("photos");
    assert_runs(0, "mkdir photos/.hidden");
    write_picture(8, 8, red, red, "photos/.hidden/1.png"); /* what is hidden is no class and no picture */
    write_picture(8, 8, red, red, "photos/cat/.1.png");
    assert_runs(0, "mkfifo photos/cat/pipe.jpg && mkdir photos/cat/folder.png"); /* nor are these, who would wait */
    tw_dataset *train = load("photos", TW_SPLIT_TRAIN, 16, 3), *test = load("photos", TW_SPLIT_TEST, 16, 3);
    int64_t counts[3];
    assert_int_equal(tw_dataset_classes(train), 3);
    assert_string_equal(tw_dataset_class_name(train, 0), "9"); /* numbers as numbers */
    assert_string_equal(tw_dataset_class_name(train, 1), "10");
    assert_string_equal(tw_dataset_class_name(train, 2), "cat");
    tw_dataset_info(train, counts, NULL, NULL);
    for (int c = 0; c < 3; c++)
        assert_int_equal(counts[c], 8);
    tw_dataset_info(test, counts, NULL, NULL);
    for (int c = 0; c < 3; c++)
        assert_int_equal(counts[c], 2);
    for (int64_t i = 0; i < tw_dataset_count(train); i++) { /* each has the colour of its class, JPEGs nearly */
        static const colour *const colours[] = {&red, &blue, &green};
        const uint8_t *pixel = tw_dataset_images(train) + i * 16 * 16 * 3 + 3 * 77;
        const colour *is = colours[tw_dataset_labels(train)[i]];
        assert_in_range(pixel[0] + 5, is->red, is->red + 10);
        assert_in_range(pixel[1] + 5, is->green, is->green + 10);
        assert_in_range(pixel[2] + 5, is->blue, is->blue + 10);
    }
    tw_dataset_destroy(train);
    tw_dataset_destroy(test);
}

static void examples_are_in_the_same_order_wherever_they_lie(void **state)
{
    (void)state;
    write_photos("here");
    assert_runs(0, "mkdir there && for c in cat 9 10; do cp -r here/$c there; done");
    tw_dataset *here = load("here", TW_SPLIT_TRAIN, 8, 3), *there = load("there", TW_SPLIT_TRAIN, 8, 3);
    assert_string_equal(tw_dataset_digest(here), tw_dataset_digest(there));
    int changes = 0; /* classes are mixed, so that the last examples are a sample of all */
    for (int64_t i = 1; i < tw_dataset_count(here); i++)
        changes += tw_dataset_labels(here)[i] != tw_dataset_labels(here)[i - 1];
    assert_true(changes > 4);
    tw_dataset_destroy(here);
    tw_dataset_destroy(there);
}

static void folders_of_halves_are_taken_as_they_are(void **state)
{
    (void)state;
    assert_runs(0, "mkdir -p halves/train/a halves/train/b halves/val/b");
    write_picture(8, 8, red, red, "halves/train/a/1.png");
    write_picture(8, 8, red, red, "halves/train/b/1.png");
    write_picture(8, 8, blue, blue, "halves/val/b/1.png");
    tw_dataset *train = load("halves", TW_SPLIT_TRAIN, 8, 1), *test = load("halves", TW_SPLIT_TEST, 8, 1);
    assert_int_equal(tw_dataset_count(train), 2);
    assert_int_equal(tw_dataset_count(test), 1);
    assert_int_equal(tw_dataset_labels(test)[0], 1); /* though 'a' has no examples there */
    assert_int_equal(tw_dataset_channels(test), 1);
    assert_in_range(tw_dataset_images(test)[0], 10, 60); /* grey of blue */
    tw_dataset_destroy(train);
    tw_dataset_destroy(test);
    assert_runs(0, "mv halves/train halves/training");
    static const char *const names[] = {"val", "validation", "valid", "test"};
    for (int i = 1; i < 4; i++) {
        assert_runs(0, "mv halves/%s halves/%s", names[i - 1], names[i]);
        test = load("halves", TW_SPLIT_TEST, 8, 1);
        assert_int_equal(tw_dataset_count(test), 1);
        tw_dataset_destroy(test);
    }
}

/* The call of the C library, which this stands in place of, that fails so late. */
static int names_until_failure = -1; /* below 0: never */

struct dirent *readdir64(DIR *directory); /* on machines of 64 bits the same */

struct dirent *readdir(DIR *directory)
{
    if (names_until_failure == 0) {
        errno = EIO;
        return NULL;
    }
    names_until_failure -= names_until_failure > 0;
    return readdir64(directory);
}

/* What a disk does not tell of must not be missing without a word. */
static void folder_that_cannot_be_listed_to_its_end_is_refused(void **state)
{
    (void)state;
    int refusals = 0;
    assert_runs(0, "mkdir -p failing/a failing/b");
    for (int i = 0; i < 6; i++)
        write_picture(8, 8, red, red, "failing/%c/%d.png", 'a' + i % 2, i);
    for (int n = 0;; n++) {
        tw_dataset *set = NULL;
        tw_error error = {0};
        names_until_failure = n;
        tw_status status = tw_dataset_load("images", inside("failing"), TW_SPLIT_TRAIN, NULL, &set, &error);
        names_until_failure = -1;
        if (status == TW_OK) { /* so many are not read */
            assert_int_equal(tw_dataset_count(set), 6);
            tw_dataset_destroy(set);
            break;
        }
        assert_message(error.message, "cannot list '");
        refusals++;
    }
    assert_in_range(refusals, 16, 40);
    assert_runs(0, "ln -s c failing/c"); /* a link to itself */
    assert_message(refusal("failing"), "cannot list '");
    assert_message(refusal("failing"), "failing/c': ");
}

static void pictures_that_lie_beside_the_folders_of_classes_are_told_of(void **state)
{
    (void)state;
    assert_runs(0, "mkdir -p vehicles/car vehicles/train");
    for (int i = 0; i < 5; i++) {
        write_picture(8, 8, red, red, "vehicles/car/%d.png", i);
        write_picture(8, 8, blue, blue, "vehicles/train/%d.png", i);
    }
    assert_message(refusal("vehicles"), "vehicles/train' has pictures in it, expected a folder for each class");
    assert_runs(0, "cd vehicles && mkdir all && mv car train all && mv all train");
    tw_dataset *train = load("vehicles", TW_SPLIT_TRAIN, 8, 3);
    assert_int_equal(tw_dataset_classes(train), 2);
    assert_int_equal(tw_dataset_count(train), 8);
    tw_dataset_destroy(train);
}

/* With letters of several bytes, some of two columns, and with such that would move the terminal. */
static void names_of_classes_stand_in_columns(void **state)
{
    (void)state;
    assert_runs(0, "mkdir -p named && : >named/labels.csv && for i in 1 2 3 4 5; do "
                   "printf 'c.png,Füchse\\nc.png,猫\\nc.png,a\\tb\\n' >>named/labels.csv; done");
    write_picture(1, 1, red, red, "named/c.png");
    assert_runs(0, "$T data info named");
    assert_prints("    0  Füchse                4        1\n    1  a?b                   4        1\n"
                  "    2  猫                    4        1\n");
}

/* 65536 at most. */
static void thousands_of_classes_are_counted_and_too_many_are_refused(void **state)
{
    (void)state;
    assert_runs(0, "mkdir thousands && for i in 1 2 3 4 5; do seq -f c.png,%%g 1001; done >thousands/labels.csv");
    write_picture(1, 1, red, red, "thousands/c.png");
    assert_runs(0, "$T data info thousands");
    assert_prints(" 1000  1001                  4        1\n");
    assert_runs(0, "seq -f c.png,%%g 65537 >thousands/labels.csv");
    assert_message(refusal("thousands"), "thousands' has more than 65536 classes: '65537' is one too many");
}

static void lists_name_files_and_labels(void **state)
{
    (void)state;
    assert_runs(0,
                "mkdir -p list/sub && printf 'file,label\\n\"sub/a, b.png\",tree\\nc.png,house\\n' >list/train.csv && "
                "printf 'c.png,house' >list/test.csv");
    write_picture(8, 8, red, red, "list/sub/a, b.png");
    write_picture(8, 8, blue, blue, "list/c.png");
    tw_dataset *train = load("list", TW_SPLIT_TRAIN, 8, 3), *test = load("list", TW_SPLIT_TEST, 8, 3);
    assert_int_equal(tw_dataset_count(train), 2);
    assert_int_equal(tw_dataset_count(test), 1);
    assert_string_equal(tw_dataset_class_name(train, 1), "tree");
    assert_int_equal(tw_dataset_labels(test)[0], 0);
    tw_dataset_destroy(train);
    tw_dataset_destroy(test);
    assert_runs(0, "rm list/test.csv && for class in 1 1. 00 -2 0p -10 10; do echo c.png,$class; done >list/train.csv");
    static const char *const order[] = {"-10", "-2", "1", "00", "10", "0p", "1."};
    train = load("list", TW_SPLIT_TRAIN, 8, 3);
    assert_int_equal(tw_dataset_classes(train), 7);
    for (int i = 0; i < 7; i++)
        assert_string_equal(tw_dataset_class_name(train, i), order[i]);
    tw_dataset_destroy(train);
    write_picture(8, 8, red, red, "list/a\"\".png");
    write_picture(8, 8, red, red, "list/a\".png");
    assert_runs(0, "printf 'a\"\".png,as it is\\n\"a\"\".png\",\"quoted, with one\"\n' >list/train.csv && "
                   "echo $(pwd)/list/c.png,elsewhere >>list/train.csv");
    train = load("list", TW_SPLIT_TRAIN, 8, 3);
    assert_int_equal(tw_dataset_count(train), 3);
    assert_string_equal(tw_dataset_class_name(train, 0), "as it is");
    assert_string_equal(tw_dataset_class_name(train, 1), "elsewhere");
    assert_string_equal(tw_dataset_class_name(train, 2), "quoted, with one");
    for (int64_t i = 0; i < 3; i++)
        assert_int_equal(tw_dataset_images(train)[i * 8 * 8 * 3], tw_dataset_labels(train)[i] == 1 ? 0 : 200);
    tw_dataset_destroy(train);
    assert_runs(0, "printf 'file,label\\nc.png,house\\nc.png,tree\\nd.png,house\\n' >list/train.csv");
    assert_message(refusal("list"), "train.csv', line 4: cannot read '");
    assert_runs(0, "mkfifo list/pipe.png && printf 'c.png,house\\npipe.png,tree\\n' >list/train.csv");
    assert_message(refusal("list"), "train.csv', line 2: '");
    assert_message(refusal("list"), "pipe.png' is no file");
    assert_runs(0, "printf 'file,label\\r\\n\\r\\nd.png,house\\r\\n' >list/train.csv"); /* empty lines are lines */
    assert_message(refusal("list"), "train.csv', line 3: cannot read '");
    assert_runs(0, "echo c.png >list/train.csv");
    assert_message(refusal("list"), "line 1: expected 'file,label', found no label");
    assert_runs(0, "printf '\\357\\273\\277c.png,house\\r\\nc.png,tree' >list/train.csv"); /* as Excel writes UTF-8 */
    train = load("list", TW_SPLIT_TRAIN, 8, 3);
    assert_int_equal(tw_dataset_count(train), 2);
    tw_dataset_destroy(train);
}

static void arrays_of_numpy_are_images_and_labels(void **state)
{
    (void)state;
    enum { COUNT = 10, SIDE = 4 };
    uint8_t pixels[COUNT * SIDE * SIDE];
    int64_t numbers[COUNT];
    tw_error error = {0};
    assert_runs(0, "mkdir arrays");
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = 7 + i % 2;
        memset(pixels + i * SIDE * SIDE, numbers[i] == 7 ? 50 : 150, SIDE * SIDE);
    }
    tw_tensor *images = tw_tensor_from(TW_UINT8, TW_SHAPE(COUNT, SIDE, SIDE), pixels);
    tw_tensor *labels = tw_tensor_from(TW_INT64, TW_SHAPE(COUNT), numbers);
    assert_ok(tw_tensor_write_npy(images, inside("arrays/images.npy"), &error));
    assert_ok(tw_tensor_write_npy(labels, inside("arrays/labels.npy"), &error));
    tw_dataset *train = load("arrays", TW_SPLIT_TRAIN, SIDE, 3), *test = load("arrays", TW_SPLIT_TEST, SIDE, 3);
    assert_int_equal(tw_dataset_count(train), 8);
    assert_int_equal(tw_dataset_count(test), 2);
    assert_string_equal(tw_dataset_class_name(train, 1), "8");
    for (int64_t i = 0; i < 8; i++)
        assert_int_equal(tw_dataset_images(train)[i * SIDE * SIDE * 3 + 5], tw_dataset_labels(train)[i] ? 150 : 50);
    tw_dataset_destroy(train);
    tw_dataset_destroy(test);
    assert_ok(tw_tensor_write_npy(images, inside("arrays/labels.npy"), &error));
    assert_message(refusal("arrays"), "labels.npy': expected 10 whole numbers, one for each of the images");
    tw_tensor_release(images);
    tw_tensor_release(labels);
}

static void write_array(const char *name, tw_dtype dtype, tw_shape shape)
{
    tw_error error = {0};
    tw_tensor *zeros = tw_tensor_create(dtype, shape);
    assert_non_null(zeros);
    memset(tw_tensor_data(zeros), 0, tw_tensor_bytes(zeros));
    assert_ok(tw_tensor_write_npy(zeros, inside(name), &error));
    tw_tensor_release(zeros);
}

static void arrays_that_are_no_images_or_labels_are_refused(void **state)
{
    (void)state;
    static const struct {
        tw_dtype dtype, of_labels;
        tw_shape shape;
        const char *message; /* NULL: they are taken */
    } rows[] = {
        {TW_UINT8, TW_INT32, {3, {2, 4, 4}}, NULL},
        {TW_UINT8, TW_UINT8, {4, {2, 4, 4, 1}}, NULL},
        {TW_UINT8, TW_INT16, {4, {2, 4, 4, 3}}, NULL},
        {TW_UINT8, TW_UINT16, {4, {2, 4, 4, 4}}, NULL},
        {TW_UINT8, TW_INT8, {3, {2, 4, 4}}, NULL},
        {TW_UINT8, TW_UINT32, {3, {2, 4, 4}}, NULL},
        {TW_UINT8, TW_UINT64, {3, {2, 4, 4}}, NULL},
        {TW_UINT8, TW_FLOAT32, {3, {2, 4, 4}}, "expected 2 whole numbers"},
        {TW_INT8, TW_INT32, {3, {2, 4, 4}}, "expected uint8 [images,height,width]"},
        {TW_UINT8, TW_INT32, {2, {2, 4}}, "expected uint8 [images,height,width]"},
        {TW_UINT8, TW_INT32, {5, {2, 4, 4, 3, 1}}, "expected uint8 [images,height,width]"},
        {TW_UINT8, TW_INT32, {4, {2, 4, 4, 2}}, "expected uint8 [images,height,width]"},
        {TW_UINT8, TW_INT32, {4, {2, 4, 4, 5}}, "expected uint8 [images,height,width]"},
    };
    assert_runs(0, "mkdir others");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_array("others/x_train.npy", rows[i].dtype, rows[i].shape);
        write_array("others/y_train.npy", rows[i].of_labels, TW_SHAPE(2));
        if (rows[i].message)
            assert_message(refusal("others"), rows[i].message);
        else
            tw_dataset_destroy(load("others", TW_SPLIT_TRAIN, 4, 3));
    }
    write_array("others/x_train.npy", TW_UINT8, TW_SHAPE(2, 4, 4));
    write_array("others/images.npy", TW_UINT8, TW_SHAPE(200, 40, 40));
    write_array("others/labels.npy", TW_UINT8, TW_SHAPE(200));
    assert_message(refusal("others"), "x_train.npy' is a second array of images for training, expected one");
}

static void records_of_tensorflow_are_examples(void **state)
{
    (void)state;
    assert_runs(0, "cp -r " GOLDEN_DIR "/records shards && mv shards/raw raw");
    tw_dataset *train = load("shards", TW_SPLIT_TRAIN, 4, 3), *test = load("shards", TW_SPLIT_TEST, 4, 3);
    assert_int_equal(tw_dataset_count(train), 6);
    assert_int_equal(tw_dataset_count(test), 1); /* what the file says that is called validation... */
    assert_string_equal(tw_dataset_class_name(test, tw_dataset_labels(test)[0]), "blue");
    for (int64_t i = 0; i < 6; i++) { /* JPEGs have nearly the colour of their class */
        static const colour *const colours[] = {&blue, &green, &red};
        const uint8_t *pixel = tw_dataset_images(train) + i * 4 * 4 * 3;
        const colour *is = colours[tw_dataset_labels(train)[i]];
        assert_in_range(pixel[0] + 5, is->red, is->red + 10);
        assert_in_range(pixel[1] + 5, is->green, is->green + 10);
        assert_in_range(pixel[2] + 5, is->blue, is->blue + 10);
    }
    tw_dataset_destroy(train);
    tw_dataset_destroy(test);
    train = load("raw", TW_SPLIT_TRAIN, 4, 3); /* pixels as they are; no half is named, so every fifth is for testing */
    assert_int_equal(tw_dataset_count(train), 12);
    assert_string_equal(tw_dataset_class_name(train, 2), "2");
    for (int64_t i = 0; i < 12; i++)
        assert_int_equal(tw_dataset_images(train)[i * 4 * 4 * 3 + tw_dataset_labels(train)[i]], 200);
    tw_dataset_destroy(train);
}

static void records_that_are_none_are_named(void **state)
{
    (void)state;
    assert_runs(0, "mkdir bad && cp " GOLDEN_DIR "/records/train-00000-of-00002 bad/train.tfrecord && "
                   "truncate -s 600 bad/train.tfrecord");
    assert_message(refusal("bad"), "bad/train.tfrecord");
    assert_runs(0, "sed 's:image/class/t:other/name/t:; s:image/class/l:other/name/l:' " GOLDEN_DIR
                   "/records/validation-00000-of-00001 > bad/train.tfrecord");
    assert_message(refusal("bad"), "bad/train.tfrecord"); /* its checksum is that of other bytes */
    assert_runs(0, "echo 'no records' > bad/train.tfrecord");
    assert_message(refusal("bad"), "bad/train.tfrecord");
    assert_runs(0, "cp " GOLDEN_DIR "/files/events bad/train.tfrecord");
    assert_message(refusal("bad"), "bad/train.tfrecord', the record at byte 0: ");
}

static void the_middle_of_a_picture_is_scaled(void **state)
{
    (void)state;
    uint8_t pixels[8 * 8 * 3];
    tw_error error = {0};
    write_picture(20, 40, red, blue, "wide.png"); /* the middle square: half red, half blue */
    assert_ok(tw_image_read(inside("wide.png"), 2, 2, 3, pixels, &error));
    assert_memory_equal(pixels, ((uint8_t[]){200, 0, 0, 0, 0, 200, 200, 0, 0, 0, 0, 200}), 12);
    assert_ok(tw_image_read(inside("wide.png"), 1, 1, 3, pixels, &error)); /* the mean */
    assert_memory_equal(pixels, ((uint8_t[]){100, 0, 100}), 3);
    write_picture(1, 2, red, blue, "tiny.png"); /* enlarged: a straight line between the two middles */
    assert_ok(tw_image_read(inside("tiny.png"), 4, 8, 3, pixels, &error));
    static const int wrong[][3] = {{0, 1, 3}, {1, 0, 3}, {1, 1, 2}};
    for (int i = 0; i < 3; i++)
        assert_fails(tw_image_read(inside("tiny.png"), wrong[i][0], wrong[i][1], wrong[i][2], pixels, &error),
                     TW_INVALID_ARGUMENT, "expected sides of at least 1, and 1, 3 or 4 channels");
    const uint8_t expected[8] = {200, 200, 175, 125, 75, 25, 0, 0};
    for (int x = 0; x < 8; x++)
        assert_int_equal(pixels[3 * 8 * 3 + 3 * x], expected[x]);
    write_picture(200, 200, red, red, "large.jpg"); /* which is decoded smaller */
    assert_ok(tw_image_read(inside("large.jpg"), 8, 8, 3, pixels, &error));
    assert_in_range(pixels[0], 195, 205);
}

static void damaged_pictures_are_named(void **state)
{
    (void)state;
    uint8_t pixels[8 * 8 * 3];
    tw_error error = {0};
    write_photos("hurt");
    assert_runs(0, "truncate -s 200 hurt/cat/1.jpg");
    assert_message(refusal("hurt"), "hurt/cat/1.jpg' is a ");
    assert_runs(0, "rm hurt/cat/1.jpg && truncate -s 80 hurt/cat/2.png");
    assert_message(refusal("hurt"), "hurt/cat/2.png' is a damaged PNG: ");
    assert_runs(0, "echo text >hurt/cat/2.png");
    assert_message(refusal("hurt"), "hurt/cat/2.png' is neither a JPEG nor a PNG");
    assert_int_equal(tw_image_read(inside("hurt/none.png"), 8, 8, 3, pixels, &error), TW_NOT_FOUND);
    assert_runs(0, "mkdir -p empty/a");
    assert_null(tw_dataset_detect(inside("empty")));
    assert_message(refusal("empty"), "there are no images in '");
    assert_message(refusal("empty"), "expected a folder for each class with JPEG or PNG files in it");
}

/* Every byte of a small file changed: an error or a picture, never anything else. */
static void changed_bytes_do_no_harm(void **state)
{
    (void)state;
    static const char *const names[] = {"small.png", "small.jpg"};
    for (int k = 0; k < 2; k++) {
        char bytes[4096], path[600];
        uint8_t pixels[4 * 4 * 3];
        write_picture(6, 6, red, green, "%s", names[k]);
        snprintf(path, sizeof path, "%s", inside(names[k]));
        FILE *file = fopen(path, "rb");
        size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        for (size_t i = 0; i < size; i++) {
            bytes[i] = (char)~bytes[i];
            file = fopen(path, "wb");
            fwrite(bytes, 1, size, file);
            fclose(file);
            tw_error error = {0};
            tw_status status = tw_image_read(path, 4, 4, 3, pixels, &error);
            assert_true(status == TW_OK || error.message[0]);
            bytes[i] = (char)~bytes[i];
        }
    }
}

/* ---- from the command line ---- */

static void own_pictures_are_trained_evaluated_predicted_and_exported(void **state)
{
    (void)state;
    write_photos("pets");
    assert_runs(0, "$T data info pets");
    assert_prints("images in pets");
    assert_prints("    2  cat                   8        2\n");
    assert_runs(0, "$T train cifar10 --data-dir pets --batch-size 8 --max-steps 60 --train-dir run --eval-every 60");
    assert_prints("data set       images in pets, 24 examples");
    assert_runs(0, "cd / && $T eval '%s/run'", directory); /* from anywhere */
    assert_prints("precision @ 1 = ");
    assert_prints("6 of images: ");
    /* Beside what one left that had the same number and was killed. */
    assert_runs(0, "sh -c ': >run/report.html.tmp-$$; exec \"$0\" report run' $T && "
                   "grep -c 'class.*cat.*data:image/bmp;base64,Qk0' run/report.html");
    assert_runs(0, "$T predict run pets/cat/1.jpg pets/9/2.png --raw");
    assert_prints("pets/cat/1.jpg: cat ");
    assert_prints("\npets/9/2.png: 9 ");
    assert_runs(1, "$T predict run pets/cat/1.jpg pets/cat/notes.txt --top 1 --format json --raw");
    assert_prints("notes.txt' is neither a JPEG nor a PNG");
    assert_prints(
        "{\"images\":[{\"path\":\"pets/cat/1.jpg\",\"classes\":[{\"name\":\"cat\",\"number\":2,\"probability\":");
    assert_runs(0, "$T export run pets.pb && $T export run pets.npz");
    assert_prints("pets.pb: a frozen graph of ");
    assert_prints("images are (pixel - mean) / max(deviation, 1 / sqrt(1728)) of each image's own values");
    assert_prints("fetch probabilities:0 or logits:0 [?,3]");
    assert_prints("pets.npz: ");
    assert_runs(0, "$T show pets.pb");
    assert_prints("images");
    assert_runs(1, "$T export run pets.pb");
    assert_prints("'pets.pb' is there already; --overwrite replaces it");
    assert_runs(2, "$T export run pets.onnx");
    assert_prints("expected a name that ends in .pb");
    assert_runs(0, "$T export run/model.ckpt-60 served && $T show served");
    assert_prints("served: a SavedModel; its signature serving_default takes images [?,24,24,3]");
    assert_prints("serving_default");
    assert_runs(1, "$T export run served");
    assert_runs(1, "mkdir more && cp -r pets/9 pets/10 more && mkdir more/dog && cp pets/cat/* more/dog && "
                   "$T eval run --data-dir more");
    assert_prints("class 2 was 'cat' in training and is 'dog' here");
}

/* ---- pictures that are read when they are needed ---- */

enum { NEED_SIDE = 8, NEED_IMAGE = NEED_SIDE * NEED_SIDE * 3, NEED_BATCH = 70 /* several threads' work */ };

static tw_dataset *load_when_needed(const char *name, tw_dataset_split split, int64_t memory, int64_t hold_back)
{
    tw_error error = {0};
    tw_dataset *data;
    assert_ok(tw_dataset_load("images", inside(name), split,
                              TW_OPTIONS(tw_dataset_options, .height = NEED_SIDE, .when_needed = true,
                                         .image_memory = memory, .hold_back = hold_back),
                              &data, &error));
    return data;
}

static tw_pipeline *pipeline_of(const tw_dataset *data, int batch, int threads)
{
    tw_error error = {0};
    tw_pipeline *p;
    assert_ok(tw_pipeline_create(data,
                                 TW_OPTIONS(tw_pipeline_options, .batch = batch, .seed = 7, .shuffle = true,
                                            .augmentation = TW_AUGMENT_PAD_CROP_FLIP, .threads = threads),
                                 &p, &error));
    return p;
}

/* Whatever is kept: all of them, five, none. */
static void pictures_read_when_they_are_needed_are_the_same(void **state)
{
    (void)state;
    static const int64_t memory[] = {0, 5 * NEED_IMAGE, 1};
    static float expected[2][NEED_BATCH * NEED_IMAGE], images[NEED_BATCH * NEED_IMAGE];
    int32_t labels[2][NEED_BATCH], found[NEED_BATCH];
    double mean[3], stddev[3], mean_found[3], stddev_found[3];
    tw_error error = {0};
    write_photos("needed");
    tw_dataset *whole = load("needed", TW_SPLIT_TRAIN, NEED_SIDE, 3);
    tw_pipeline *p = pipeline_of(whole, NEED_BATCH, 1);
    for (int b = 0; b < 2; b++)
        assert_ok(tw_pipeline_next(p, 0, expected[b], labels[b], &error));
    tw_pipeline_destroy(p);
    tw_dataset_info(whole, NULL, mean, stddev);
    for (int k = 0; k < 3; k++) {
        tw_dataset *data = load_when_needed("needed", TW_SPLIT_TRAIN, memory[k], 0);
        assert_string_equal(tw_dataset_digest(data), tw_dataset_digest(whole));
        assert_null(tw_dataset_images(data));
        tw_dataset_info(data, NULL, mean_found, stddev_found);
        assert_true(isnan(mean_found[0]) && isnan(stddev_found[2]));
        p = pipeline_of(data, NEED_BATCH, 4);
        for (int b = 0; b < 2; b++) {
            assert_ok(tw_pipeline_next(p, 0, images, found, &error));
            assert_memory_equal(images, expected[b], sizeof images);
            assert_memory_equal(found, labels[b], sizeof found);
        }
        tw_pipeline_destroy(p);
        assert_int_equal(tw_dataset_images(data) != NULL, k == 0); /* each was in the batches, and kept */
        assert_ok(tw_dataset_read(data, NULL, NULL, &error));
        tw_dataset_info(data, NULL, mean_found, stddev_found);
        assert_memory_equal(mean_found, mean, sizeof mean);
        assert_memory_equal(stddev_found, stddev, sizeof stddev);
        tw_dataset_destroy(data);
    }
    tw_dataset_destroy(whole);
}

static void pictures_held_back_are_the_last_ones(void **state)
{
    (void)state;
    uint8_t image[NEED_IMAGE];
    tw_error error = {0};
    write_photos("held");
    tw_dataset *whole = load("held", TW_SPLIT_TRAIN, NEED_SIDE, 3);
    tw_dataset *rest = load_when_needed("held", TW_SPLIT_TRAIN, 0, 5),
               *held = load_when_needed("held", TW_SPLIT_VALIDATION, 0, 5);
    assert_int_equal(tw_dataset_count(held), 5);
    for (int64_t i = 0; i < tw_dataset_count(whole); i++) {
        int64_t at = i - tw_dataset_count(rest);
        assert_ok(tw_dataset_image(at < 0 ? rest : held, at < 0 ? i : at, image, &error));
        assert_memory_equal(image, tw_dataset_images(whole) + i * NEED_IMAGE, NEED_IMAGE);
        assert_int_equal(tw_dataset_labels(whole)[i], tw_dataset_labels(at < 0 ? rest : held)[at < 0 ? i : at]);
    }
    assert_fails(tw_dataset_image(held, 5, image, &error), TW_INVALID_ARGUMENT, "has no image 5; it has 5");
    assert_fails(tw_dataset_image(held, -1, image, &error), TW_INVALID_ARGUMENT, "has no image -1; it has 5");
    assert_non_null(tw_dataset_images(held));
    assert_true(strcmp(tw_dataset_digest(held), tw_dataset_digest(rest)) != 0);
    tw_dataset_destroy(whole);
    tw_dataset_destroy(rest);
    tw_dataset_destroy(held);
}

/* Steps before it are right, that one says why, and does so until one goes elsewhere. */
static void a_picture_that_cannot_be_read_fails_the_batch_that_needs_it(void **state)
{
    (void)state;
    enum { BATCH = 2, STEPS = 12 }; /* an epoch of 24 */
    static float images[BATCH * NEED_IMAGE];
    int32_t labels[BATCH];
    tw_error error = {0};
    int failed = -1;
    write_photos("gone");
    assert_runs(0, "mv gone/cat/0.png cat0.png");
    tw_dataset *train = load_when_needed("gone", TW_SPLIT_TRAIN, 0, 0);
    assert_runs(0, "mv gone/cat/5.jpg cat5.jpg"); /* of the training half */
    tw_pipeline *p = pipeline_of(train, BATCH, 2);
    for (int step = 0; step < STEPS && failed < 0; step++)
        if (tw_pipeline_next(p, 0, images, labels, &error) != TW_OK)
            failed = step;
    assert_in_range(failed, 0, STEPS - 1);
    for (int again = 0; again < 3; again++)
        assert_fails(tw_pipeline_next(p, 0, images, labels, &error), TW_NOT_FOUND, "gone/cat/5.jpg'");
    assert_ok(tw_pipeline_seek(p, failed ? 0 : 2, &error));
    assert_ok(tw_pipeline_next(p, 0, images, labels, &error));
    assert_fails(tw_dataset_read(train, NULL, NULL, &error), TW_NOT_FOUND, "gone/cat/5.jpg'");
    assert_runs(0, "mv cat5.jpg gone/cat/5.jpg");
    assert_ok(tw_pipeline_seek(p, failed, &error));
    assert_ok(tw_pipeline_next(p, 0, images, labels, &error));
    tw_pipeline_destroy(p);
    assert_ok(tw_dataset_read(train, NULL, NULL, &error));
    tw_dataset_destroy(train);
}

/* Tasks decode what their towers need, and end with the bytes of one process that decodes all at first. */
static void tasks_read_their_own_pictures(void **state)
{
    (void)state;
    static const char long_name[] = "a-class-whose-name-has-more-than-the-sixty-three-letters-that-had-room-before";
    write_photos("shared");
    assert_runs(0, "mv shared/9 shared/%s", long_name);
    assert_runs(0, "$T train cifar10 --data-dir shared --batch-size 4 --towers 2 --cpu-threads 1 --max-steps 4 "
                   "--train-dir one");
    assert_runs(0, "$T launch --tasks 2 -- $T train cifar10 --data-dir shared --batch-size 4 --cpu-threads 1 "
                   "--max-steps 4 --image-memory 1 --train-dir two && "
                   "cmp one/model.ckpt-4.data-00000-of-00001 two/model.ckpt-4.data-00000-of-00001");
    assert_runs(0, "$T eval one --raw --format json");
    assert_prints(long_name);
    assert_runs(0, "truncate -s 200 shared/cat/1.jpg");
    assert_runs(1, "$T train cifar10 --data-dir shared --batch-size 4 --max-steps 1 --train-dir hurt1");
    assert_prints("tower train: 'shared/cat/1.jpg' is a "); /* before anything else */
    assert_runs(1, "$T launch --tasks 2 -- $T train cifar10 --data-dir shared --batch-size 16 --max-steps 4 "
                   "--train-dir hurt2");
    assert_prints("'shared/cat/1.jpg' is a ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_classes_in_the_order_of_their_names),
        cmocka_unit_test(examples_are_in_the_same_order_wherever_they_lie),
        cmocka_unit_test(folders_of_halves_are_taken_as_they_are),
        cmocka_unit_test(folder_that_cannot_be_listed_to_its_end_is_refused),
        cmocka_unit_test(pictures_that_lie_beside_the_folders_of_classes_are_told_of),
        cmocka_unit_test(names_of_classes_stand_in_columns),
        cmocka_unit_test(thousands_of_classes_are_counted_and_too_many_are_refused),
        cmocka_unit_test(lists_name_files_and_labels),
        cmocka_unit_test(arrays_of_numpy_are_images_and_labels),
        cmocka_unit_test(arrays_that_are_no_images_or_labels_are_refused),
        cmocka_unit_test(records_of_tensorflow_are_examples),
        cmocka_unit_test(records_that_are_none_are_named),
        cmocka_unit_test(the_middle_of_a_picture_is_scaled),
        cmocka_unit_test(damaged_pictures_are_named),
        cmocka_unit_test(changed_bytes_do_no_harm),
        cmocka_unit_test(pictures_read_when_they_are_needed_are_the_same),
        cmocka_unit_test(pictures_held_back_are_the_last_ones),
        cmocka_unit_test(a_picture_that_cannot_be_read_fails_the_batch_that_needs_it),
        cmocka_unit_test(tasks_read_their_own_pictures),
        cmocka_unit_test(own_pictures_are_trained_evaluated_predicted_and_exported),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
