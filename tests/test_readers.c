/* test_readers.c - readers of files: what they say to damaged ones, byte by byte and by tables, and that they stand the
 * failure of every allocation and file call: the call says so, nothing leaks, and the next one succeeds. */
#include "testing.h"

#include "base/inflate.h"
#include "base/little_endian.h"
#include "base/memory.h"
#include "base/tfrecord.h"
#include "data/fetch.h"
#include "faulty_files.h"
#include "faulty_memory.h"
#include "format/bundle.h"
#include "format/example.h"
#include "format/proto/saved_slices.pb-c.h"
#include "format/proto/text.pb-c.h"
#include "format/protobuf.h"
#include "format/saved_slices.h"
#include "format/snappy.h"
#include "format/table.h"
#include "format/text_format.h"
#include "image/image.h"
#include "train/order_log.h"

#include <archive.h>
#include <archive_entry.h>
#include <math.h>
#include <stdio.h>

#include <jpeglib.h> /* after stdio.h, whose FILE it takes for granted */

#include <sys/stat.h>
#include <tower/data.h>
#include <tower/io.h>
#include <tower/ops.h>
#include <zlib.h>

static tw_error error;
static const char *folder;

static const char *in_folder(const char *name)
{
    static char path[4][512];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof *path, "%s/%s", folder, name);
    return path[next];
}

static void store(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* ---- whatever call fails ----------------------------------------------------------------------------------------- */

/* One of each kind: whole, in parts, texts, no elements. */
static tw_status use_checkpoints(void)
{
    tw_tensor *half = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2, 1), (float[]){1, 2});
    tw_tensor *text = tw_tensor_string("tower", 5);
    tw_tensor *whole = tw_tensor_from(TW_INT64, TW_SHAPE(2, 3), (int64_t[]){1, 2, 3, 4, 5, 6}), *read = NULL;
    tw_named_tensor tensors[] = {{"parts", half, "2 2 -:0,1"}, {"parts", half, "2 2 -:1,1"}, {"text", text},
                                 {"whole", whole}};
    const char *prefixes[] = {in_folder("a-1"), in_folder("b-1")}, *merged = in_folder("merged-1");
    tw_checkpoint *checkpoint = NULL;
    tw_status status = half && text && whole ? TW_OK : TW_RESOURCE_EXHAUSTED;
    if (status == TW_OK)
        status = twi_bundle_save(prefixes[0], tensors, 3, &error);
    if (status == TW_OK)
        status = twi_bundle_save(prefixes[1], tensors + 3, 1, &error);
    if (status == TW_OK)
        status = twi_bundle_merge(prefixes, 2, merged, true, &error);
    if (status == TW_OK)
        status = tw_checkpoint_open(merged, &checkpoint, &error);
    if (status == TW_OK)
        status = twi_bundle_verify(checkpoint, &error);
    for (int i = 0; i < 5 && status == TW_OK; i++) {
        static const char *const wanted[][2] = {
            {"parts", NULL}, {"text", NULL}, {"whole", NULL}, {"whole", "2 3 0,1:1,2"}, {"parts", "2 2 1,1:-"}};
        status = tw_checkpoint_read_part(checkpoint, wanted[i][0], wanted[i][1], &read, &error);
        if (status == TW_OK && i == 3)
            assert_memory_equal(tw_tensor_data(read), ((int64_t[]){2, 3}), 16);
        if (status == TW_OK && i == 4)
            assert_memory_equal(tw_tensor_data(read), ((float[]){2, 2}), 8);
        tw_tensor_release(read);
        read = NULL;
    }
    tw_checkpoint_close(checkpoint);
    tw_tensor_release(half);
    tw_tensor_release(text);
    tw_tensor_release(whole);
    return status;
}

/* An entry of a checkpoint as TensorFlow wrote them until 0.11; a text that begins with "!" as it is. */
static void add_old_entry(twi_table_builder *table, const char *key, const char *text)
{
    twi_text wire = {0};
    if (*text == '!')
        twi_text_append(&wire, text, strlen(text));
    else
        assert_ok(twi_text_to_wire(&twi__saved_tensor_slices__descriptor, text, strlen(text), &wire, &error));
    twi_table_add(table, key, strlen(key), wire.data ? wire.data : "", wire.size);
    twi_text_free(&wire);
}

/* Of the first format: one tensor whole, one in two parts, one of strings, and one of a type that Tower lacks. */
static void write_old_checkpoint(void)
{
    static const char *const entries[][2] = {
        {"", "meta { tensor { name: 'whole' type: 1 shape { dim { size: 2 } } } tensor { name: 'odd' type: 24 shape { } } "
             "tensor { name: 'parts' type: 9 shape { dim { size: 2 } } } tensor { name: 'text' type: 7 shape { } } }"},
        {"a", "data { name: 'parts' slice { extent { start: 0 length: 1 } } data { int64_val: 3 } }"},
        {"b", "data { name: 'parts' slice { extent { start: 1 length: 1 } } data { int64_val: 4 } }"},
        {"c", "data { name: 'text' slice { } data { string_val: 'tower' } }"},
        {"d", "data { name: 'whole' data { float_val: 1 } }"}, /* of no slice, so all; the last value is repeated */
    };
    twi_table_builder table;
    twi_table_start(&table, 0);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        add_old_entry(&table, entries[i][0], entries[i][1]);
    assert_ok(twi_table_finish(&table, &error));
    store("first", table.file.data, table.file.size);
    twi_table_free(&table);
}

static tw_status use_old_checkpoints(void)
{
    static const char *const names[] = {"whole", "parts", "text", "odd"};
    tw_checkpoint *checkpoint = NULL;
    tw_status status = tw_checkpoint_open(in_folder("first"), &checkpoint, &error);
    for (int i = 0; i < 4 && status == TW_OK; i++) {
        tw_tensor *read = NULL;
        status = tw_checkpoint_read(checkpoint, names[i], &read, &error);
        assert_true(status != TW_OK || i != 0 || ((float *)tw_tensor_data(read))[1] == 1);
        assert_true(status != TW_OK || i != 1 || ((int64_t *)tw_tensor_data(read))[1] == 4);
        tw_tensor_release(read);
    }
    tw_checkpoint_close(checkpoint);
    return status == TW_UNIMPLEMENTED ? TW_OK : status; /* as "odd" is */
}

static tw_status count_records(const char *name, const char *kind, int expected)
{
    twi_record_reader *reader = NULL;
    const char *bytes;
    size_t size;
    int count = 0;
    tw_status status = twi_record_open_packed(in_folder(name), kind, &reader, &error);
    while (status == TW_OK && (status = twi_record_next(reader, &bytes, &size, &error)) == TW_OK)
        count++;
    twi_record_close(reader);
    if (status != TW_OUT_OF_RANGE)
        return status;
    assert_int_equal(count, expected);
    return TW_OK;
}

static tw_status use_records(void)
{
    tw_status status = count_records("plain.tfrecord", "", 3);
    return status == TW_OK ? count_records("packed.gz", "GZIP", 3) : status;
}

static tw_status use_arrays(void)
{
    tw_tensor *tensor = tw_tensor_from(TW_FLOAT64, TW_SHAPE(2, 2), (double[]){1, 2, 3, 4}), *read = NULL;
    tw_status status = tensor ? tw_tensor_write_npy(tensor, in_folder("x.npy"), &error) : TW_RESOURCE_EXHAUSTED;
    if (status == TW_OK)
        status = tw_tensor_read_npy(in_folder("x.npy"), &read, &error);
    if (status == TW_OK)
        assert_memory_equal(tw_tensor_data(read), tw_tensor_data(tensor), 32);
    tw_tensor_release(tensor);
    tw_tensor_release(read);
    return status;
}

static tw_status use_texts(void)
{
    static const char text[] = "node { name: 'a' 'b' op: 'Const' attr { key: 'n' value { list { i: [1, 2] } } } }";
    twi_text wire = {0};
    tw_status status = twi_text_to_wire(&twi_text__graph_def__descriptor, text, strlen(text), &wire, &error);
    twi_text_free(&wire);
    return status;
}

/* Three frames of nine by nine: in passes, with a colour to see through, with colours of its own and partly outside. */
static const char gif[] =
    "\107\111\106\070\071\141\011\000\011\000\201\000\000\012\061\061\143\050\314\330\141\007\266\033\234\054"
    "\000\000\000\000\011\000\011\000\100\002\037\324\060\041\022\171\001\200\132\013\231\000\217\221\330\214"
    "\144\075\012\024\041\310\047\061\107\212\220\000\323\274\101\001\000\041\371\004\001\000\000\001\000\054"
    "\002\000\003\000\005\000\004\000\000\002\012\014\066\000\066\042\041\122\012\250\000\000\054\006\000\006"
    "\000\005\000\005\000\301\133\244\247\033\051\261\327\242\356\140\124\314\002\014\304\026\041\022\143\052"
    "\314\140\100\001\061\012\000\041\376\003\141\142\143\000\073";

static const char bmp[] = "BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0\2\0\0\0\1\0\x18\0\0\0\0\0\x10\0\0\0"
                          "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0rgbRGB\0\0abcABC\0";

/* As a PNG, of bytes and of words, and a JPEG, whole and a window of it, made to fit; a BMP; and all frames of a GIF.
 * Encoded they are several times as large as what is made room for at first. */
static tw_status use_pictures(void)
{
    static uint8_t pixels[90 * 90 * 6];
    uint8_t fitted[4 * 4 * 3];
    twi_image image = {90, 90, 3, pixels}, read = {0};
    twi_jpeg_options options = {.quality = 90, .progressive = true, .optimized = true};
    char *bytes = NULL;
    size_t size;
    int frames;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * i / 7);
    tw_status status = twi_image_encode_png(&image, 8, -1, &bytes, &size, &error);
    if (status == TW_OK)
        status = twi_image_decode(bytes, size, 4, 0, "a", &read, &error);
    twi_image_free(&read);
    twi_free(bytes);
    bytes = NULL;
    if (status == TW_OK)
        status = twi_image_encode_png(&image, 16, -1, &bytes, &size, &error);
    if (status == TW_OK)
        status = twi_image_decode_png_words(bytes, size, "a", &read, &error);
    twi_image_free(&read);
    twi_free(bytes);
    bytes = NULL;
    if (status == TW_OK)
        status = twi_image_decode_bmp(bmp, sizeof bmp, "a", &read, &error);
    twi_image_free(&read);
    if (status == TW_OK)
        status = twi_image_encode_jpeg(&image, &options, &bytes, &size, &error);
    if (status == TW_OK)
        status = twi_image_decode_as(
            bytes, size, &(twi_image_wanted){.channels = 3, .fast = true, .window = (int32_t[]){1, 2, 5, 6}}, "b",
            &read, &error);
    if (status == TW_OK)
        status = twi_image_fit(&read, 4, 4, fitted, &error);
    twi_image_free(&read);
    twi_free(bytes);
    if (status == TW_OK)
        status = twi_image_decode_gif(gif, sizeof gif - 1, "c", &frames, &read, &error);
    twi_image_free(&read);
    return status;
}

/* Two updates are written, read, and gone on with from the first. */
static tw_status use_orders(void)
{
    twi_order_head head = {.model = "small", .towers = 2, .batch = 4, .seed = -1};
    twi_order_record record = {.tower = 1, .loss = 1.5f};
    twi_order_writer *writer = NULL;
    twi_order_log log = {0};
    const char *path = in_folder("orders/log");
    tw_status status = twi_order_writer_open(path, &head, 0, &writer, &error);
    for (int i = 0; i < 2 && status == TW_OK; i++) {
        record.pulled = i;
        status = twi_order_writer_add(writer, &record, &error);
    }
    twi_order_writer_close(writer);
    if (status == TW_OK)
        status = twi_order_log_read(path, &log, &error);
    assert_true(status != TW_OK || (log.count == 2 && log.head.seed == -1));
    twi_order_log_free(&log);
    writer = NULL;
    if (status == TW_OK)
        status = twi_order_writer_open(path, &head, 1, &writer, &error);
    twi_order_writer_close(writer);
    return status;
}

static tw_status use_events(void)
{
    tw_event_writer *writer = NULL;
    tw_event_reader *reader = NULL;
    tw_event event;
    tw_tensor *weights = tw_tensor_from(TW_FLOAT32, TW_SHAPE(4), (float[]){1, 2, -3, 0});
    char path[512] = "";
    tw_status status = !weights ? TW_RESOURCE_EXHAUSTED : tw_event_writer_create(in_folder("events"), &writer, &error);
    if (status == TW_OK) {
        snprintf(path, sizeof path, "%s", tw_event_writer_path(writer));
        status = tw_event_writer_add_scalar(writer, "loss", 1, 0.5f, &error);
    }
    if (status == TW_OK)
        status = tw_event_writer_add_histogram(writer, "weights", 1, weights, &error);
    if (status == TW_OK)
        status = tw_event_writer_add_restart(writer, 1, &error);
    tw_status closed = tw_event_writer_close(writer, status == TW_OK ? &error : NULL);
    status = status == TW_OK ? closed : status;
    if (status == TW_OK)
        status = tw_event_reader_open(path, &reader, &error);
    while (status == TW_OK)
        status = tw_event_reader_next(reader, &event, &error);
    tw_event_reader_close(reader);
    tw_tensor_release(weights);
    unlink(path);
    return status == TW_OUT_OF_RANGE ? TW_OK : status;
}

/* Arrays become a data set, of which a pipeline gives a batch. */
static tw_status use_own_images(void)
{
    const tw_dataset_options *options = TW_OPTIONS(tw_dataset_options, .height = 4, .width = 4, .channels = 3);
    const tw_pipeline_options *batches = TW_OPTIONS(tw_pipeline_options, .batch = 2, .threads = 1);
    tw_dataset *dataset = NULL;
    tw_pipeline *pipeline = NULL;
    float images[2 * 4 * 4 * 3];
    int32_t labels[2];
    tw_status status = tw_dataset_load("images", in_folder("own"), TW_SPLIT_TRAIN, options, &dataset, &error);
    if (status == TW_OK)
        status = tw_pipeline_create(dataset, batches, &pipeline, &error);
    if (status == TW_OK)
        status = tw_pipeline_next(pipeline, 0, images, labels, &error);
    tw_pipeline_destroy(pipeline);
    tw_dataset_destroy(dataset);
    return status;
}

enum { MEMBER = 40 };
static const twi_fetch_set pair = {.folder = "pair", .members = {"a", "b"}, .member_size = MEMBER};

static tw_status use_archive(void)
{
    size_t size;
    tw_status status = twi_unpack(&pair, folder, in_folder("pair.tar.gz"), &error);
    if (status == TW_OK) {
        char *bytes = read_whole(in_folder("pair/b"), &size);
        assert_int_equal(size, MEMBER);
        free(bytes);
    }
    return status;
}

typedef struct job {
    const char *name;
    tw_status (*run)(void);
    bool writes;
} job;

static const job jobs[] = {
    {"checkpoints", use_checkpoints, true},
    {"old checkpoints", use_old_checkpoints, false},
    {"records", use_records, false},
    {"arrays", use_arrays, true},
    {"texts", use_texts, false},
    {"archives", use_archive, true},
    {"pictures", use_pictures, false},
    {"orders", use_orders, true},
    {"events", use_events, true},
    {"own images", use_own_images, false},
};
enum { NUM_JOBS = sizeof jobs / sizeof *jobs };

typedef struct packed_entry {
    const char *name, *link; /* link: to this name */
    mode_t type;
    int size;
} packed_entry;

/* An archive of these entries, whose bytes are 'x'. */
static void write_archive(const packed_entry *entries, int count)
{
    char bytes[2 * MEMBER];
    memset(bytes, 'x', sizeof bytes);
    struct archive *archive = archive_write_new();
    archive_write_add_filter_gzip(archive);
    archive_write_set_format_ustar(archive);
    assert_int_equal(archive_write_open_filename(archive, in_folder("pair.tar.gz")), ARCHIVE_OK);
    for (int i = 0; i < count; i++) {
        struct archive_entry *entry = archive_entry_new();
        archive_entry_set_pathname(entry, entries[i].name);
        archive_entry_set_filetype(entry, entries[i].type);
        archive_entry_set_size(entry, entries[i].size);
        if (entries[i].link)
            archive_entry_set_hardlink(entry, entries[i].link);
        assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
        assert_int_equal(archive_write_data(archive, bytes, (size_t)entries[i].size), entries[i].size);
        archive_entry_free(entry);
    }
    assert_int_equal(archive_write_free(archive), ARCHIVE_OK);
}

static const packed_entry both[] = {{"pair/a", NULL, AE_IFREG, MEMBER}, {"pair/b", NULL, AE_IFREG, MEMBER}};

static void write_records(void)
{
    write_archive(both, 2);
    write_old_checkpoint();
    twi_file_writer *file;
    char *bytes;
    size_t size;
    assert_ok(twi_file_create(in_folder("plain.tfrecord"), &file, &error));
    for (int i = 0; i < 3; i++)
        twi_record_write(file, "a record of some length", 10 + (size_t)i);
    assert_ok(twi_file_close(file, false, &error));
    bytes = read_whole(in_folder("plain.tfrecord"), &size);
    gzFile packed = gzopen(in_folder("packed.gz"), "wb");
    assert_int_equal(gzwrite(packed, bytes, (unsigned)size), (int)size);
    assert_int_equal(gzclose(packed), Z_OK);
    free(bytes);
    tw_tensor *images = tw_tensor_create(TW_UINT8, TW_SHAPE(10, 4, 4));
    tw_tensor *labels = tw_tensor_create(TW_INT64, TW_SHAPE(10));
    mkdir(in_folder("own"), 0700);
    assert_ok(tw_tensor_write_npy(images, in_folder("own/images.npy"), &error));
    assert_ok(tw_tensor_write_npy(labels, in_folder("own/labels.npy"), &error));
    tw_tensor_release(images);
    tw_tensor_release(labels);
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    write_records();
    skip_syncs();
    for (int k = 0; k < NUM_JOBS; k++)
        for (int n = 0, failed = true; failed; n++) {
            error = (tw_error){0};
            fail_allocation(n);
            tw_status status = jobs[k].run();
            assert_int_equal(memory.live, 0);
            failed = stop_failing_allocations();
            if (failed ? status != TW_OK && status != TW_RESOURCE_EXHAUSTED : status != TW_OK)
                fail_msg("%s, allocation %d: status %d: %s", jobs[k].name, n, status, error.message);
            assert_true(n < 5000);
        }
    twi_set_files(NULL);
}

static void every_failing_file_call_is_reported(void **state)
{
    (void)state;
    write_records();
    for (int k = 0; k < NUM_JOBS; k++) {
        int n = 0, reported = 0;
        for (bool failed = true; failed; n++) {
            error = (tw_error){0};
            fail_file_call(n, EIO);
            tw_status status = jobs[k].run();
            failed = stop_failing();
            reported += failed && status != TW_OK;
            if (!failed || status == TW_OK)
                assert_ok(status);
            else if (!error.message[0])
                fail_msg("%s, file call %d: an error without words", jobs[k].name, n);
            assert_ok(jobs[k].run()); /* what it left behind does not matter */
        }
        assert_true(!jobs[k].writes || reported > 3);
    }
}

/* Memory of libraries, which they take from malloc() and calloc(); Tower's own comes from realloc(). */
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
static struct {
    int countdown; /* calls until one fails; below 0: none does */
    bool failed;
} lacking = {-1, false};

static bool lacks(void)
{
    bool now = lacking.countdown >= 0 && lacking.countdown-- == 0;
    lacking.failed |= now;
    return now;
}

#define VISIBLE __attribute__((visibility("default"))) /* to the libraries, which call these in place of the C library's */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);

VISIBLE void *malloc(size_t size)
{
    return lacks() ? NULL : __libc_malloc(size);
}

VISIBLE void *calloc(size_t count, size_t size)
{
    return lacks() ? NULL : __libc_calloc(count, size);
}

static void every_failing_allocation_of_a_library_is_reported(void **state)
{
    (void)state;
    write_records();
    for (int k = 0; k < NUM_JOBS; k++) {
        bool pictures = jobs[k].run == use_pictures, archives = jobs[k].run == use_archive;
        bool failed = pictures || archives;
        for (int n = 0; failed; n++) {
            error = (tw_error){0};
            fail_allocation(-1);
            lacking.failed = false;
            lacking.countdown = n;
            tw_status status = jobs[k].run();
            lacking.countdown = -1;
            failed = lacking.failed && !archives; /* whose library ends the process for want of memory further on */
            stop_failing_allocations();
            assert_int_equal(memory.live, 0);
            if (status != TW_OK && !error.message[0])
                fail_msg("%s, allocation %d of a library: status %d", jobs[k].name, n, status);
            assert_true(n < 5000);
        }
    }
}
#else
#define every_failing_allocation_of_a_library_is_reported NULL
#endif

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static void read_npy(const char *header, size_t values, tw_status expected, const char *part)
{
    char file[400] = "\x93NUMPY\1\0";
    size_t length = strlen(header);
    tw_tensor *read = NULL;
    file[8] = (char)length;
    memcpy(file + 10, header, length);
    store("y.npy", file, 10 + length + values);
    error = (tw_error){0};
    tw_status status = tw_tensor_read_npy(in_folder("y.npy"), &read, &error);
    tw_tensor_release(read);
    if (status != expected || !strstr(error.message, part))
        fail_msg("%s: status %d, \"%s\"", header, status, error.message);
}

static void headers_of_arrays_are_refused_by_what_is_wrong_in_them(void **state)
{
    (void)state;
    static const struct {
        const char *header, *part;
        size_t values;
        tw_status status;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "", 8, TW_OK},
        {"{\"descr\": \"<f4\", \"fortran_order\": True, \"shape\": (1, 2), }", "", 8, TW_OK},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (), }", "", 4, TW_OK},
        {"{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }", "", 8, TW_OK},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,", "", 8, TW_OK}, /* nothing else is missing */
        {"{'fortran_order': False, 'shape': (2,), }", "its header is not one of an array", 8, TW_DATA_LOSS},
        {"{'descr': '<f4', 'shape': (2,), }", "its header is not one of an array", 8, TW_DATA_LOSS},
        {"{'descr': '<f4', 'fortran_order': False, }", "its header is not one of an array", 8, TW_DATA_LOSS},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 2}", "its header is not one of an array", 8, TW_DATA_LOSS},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (two,)}", "its shape is not one", 8, TW_DATA_LOSS},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", "its shape is not one", 8, TW_DATA_LOSS},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1)}", "more than 12 dimensions", 4,
         TW_UNIMPLEMENTED},
        {"{'descr': '<V8', 'fortran_order': False, 'shape': (1,)}", "it holds '<V8'", 8, TW_UNIMPLEMENTED},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", "it holds '<f16'", 16, TW_UNIMPLEMENTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "it is cut short: 8 bytes of values", 8,
         TW_DATA_LOSS},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "it is cut short", 8,
         TW_DATA_LOSS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        read_npy(cases[i].header, cases[i].values, cases[i].status, cases[i].part);
    store("y.npy", "\x93NUMPY\2\0", 8);
    tw_tensor *read;
    assert_fails(tw_tensor_read_npy(in_folder("y.npy"), &read, &error), TW_DATA_LOSS, "it is not a .npy file");
    store("y.npy", "\x93NUMPY\2\0\xff\0\0\0", 12);
    assert_fails(tw_tensor_read_npy(in_folder("y.npy"), &read, &error), TW_DATA_LOSS, "it is cut short");
    assert_fails(tw_tensor_read_npy(in_folder("nowhere.npy"), &read, &error), TW_NOT_FOUND, "nowhere.npy");
}

/* ---- packed files ------------------------------------------------------------------------------------------------ */

static void a_packed_file_is_refused_wherever_it_is_cut_or_changed(void **state)
{
    (void)state;
    size_t size;
    write_records();
    char *bytes = read_whole(in_folder("packed.gz"), &size);
    for (size_t cut = 1; cut < size; cut++) {
        store("cut.gz", bytes, cut);
        error = (tw_error){0};
        tw_status status = count_records("cut.gz", "GZIP", 3);
        if (status != TW_DATA_LOSS || !strstr(error.message, "ends in the middle of what was packed by GZIP"))
            fail_msg("cut at %zu: status %d: %s", cut, status, error.message);
    }
    for (size_t i = 10; i < size; i++) { /* the head has a time, which says nothing */
        char kept = bytes[i];
        bytes[i] = (char)(kept ^ 0x55);
        store("cut.gz", bytes, size);
        error = (tw_error){0};
        if (count_records("cut.gz", "GZIP", 3) != TW_DATA_LOSS || !strstr(error.message, "cut.gz"))
            fail_msg("byte %zu changed: %s", i, error.message);
        bytes[i] = kept;
    }
    free(bytes);
    store("cut.gz", "", 0);
    assert_ok(count_records("cut.gz", "ZLIB", 0));
    assert_fails(count_records("packed.gz", "BZIP2", 0), TW_INVALID_ARGUMENT, "Unsupported compression type 'BZIP2'");
    assert_fails(count_records("nowhere.gz", "GZIP", 0), TW_NOT_FOUND, "nowhere.gz");
    char *zeros = calloc(1, 65536); /* as much as is made room for at first */
    gzFile file = gzopen(in_folder("zeros.gz"), "wb");
    assert_int_equal(gzwrite(file, zeros, 65536), 65536);
    assert_int_equal(gzclose(file), Z_OK);
    free(zeros);
    bytes = read_whole(in_folder("zeros.gz"), &size);
    for (size_t cut = size - 12; cut < size; cut++) {
        store("cut.gz", bytes, cut);
        assert_fails(count_records("cut.gz", "GZIP", 0), TW_DATA_LOSS, "ends in the middle");
    }
    free(bytes);
    static const unsigned char with_dictionary[] = {0x78, 0xbb, 0, 0, 0, 1, 3, 0};
    store("cut.gz", with_dictionary, sizeof with_dictionary);
    assert_fails(count_records("cut.gz", "ZLIB", 0), TW_DATA_LOSS, "a dictionary is missing");
}

/* Longer than what a file is looked at through, and cut behind that while it is open. */
static void a_record_that_is_cut_while_its_file_is_open_is_missed(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    twi_file_writer *file;
    twi_record_reader *reader;
    const char *record;
    char *bytes = calloc(1, SIZE);
    size_t size;
    assert_ok(twi_file_create(in_folder("long.tfrecord"), &file, &error));
    twi_record_write(file, bytes, SIZE);
    assert_ok(twi_file_close(file, false, &error));
    free(bytes);
    assert_ok(twi_record_open(in_folder("long.tfrecord"), &reader, &error));
    assert_int_equal(truncate(in_folder("long.tfrecord"), SIZE / 2), 0);
    assert_fails(twi_record_next(reader, &record, &size, &error), TW_DATA_LOSS, "more bytes were expected");
    twi_record_close(reader);
}

/* What a message may become is bounded by its size, and that by what there are numbers for. */
static void messages_may_become_so_many_times_their_size(void **state)
{
    (void)state;
    twi_proto proto;
    twi_proto_start(&proto, 1);
    assert_true(proto.left > 0 && proto.left < 1 << 20);
    assert_null(proto.allocator.alloc(proto.allocator.allocator_data, proto.left + 1));
    assert_false(proto.out_of_memory);
    twi_proto_start(&proto, SIZE_MAX);
    assert_true(proto.left == SIZE_MAX);
}

/* Several times as much as is made room for at first, in two packed pieces one behind the other. */
static void what_is_packed_in_pieces_is_read_as_one(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    char *bytes = calloc(1, SIZE);
    twi_file_reader *reader = NULL;
    for (int i = 0; i < 2; i++) {
        gzFile file = gzopen(in_folder("pieces.gz"), i ? "ab" : "wb");
        assert_int_equal(gzwrite(file, bytes, SIZE), SIZE);
        assert_int_equal(gzclose(file), Z_OK);
    }
    assert_ok(twi_file_open_packed(in_folder("pieces.gz"), "GZIP", &reader, &error));
    assert_int_equal(twi_file_size(reader), 2 * SIZE);
    twi_file_reader_close(reader);
    bool failed = true;
    for (int n = 0; failed; n++) { /* zlib's, for what it looks back at, among them */
        fail_allocation(n);
        tw_status status = twi_file_open_packed(in_folder("pieces.gz"), "GZIP", &reader, &error);
        twi_file_reader_close(reader);
        failed = stop_failing_allocations();
        assert_int_equal(memory.live, 0);
        assert_int_equal(status, failed ? TW_RESOURCE_EXHAUSTED : TW_OK);
    }
    free(bytes);
}

/* ---- archives ---------------------------------------------------------------------------------------------------- */

static void only_members_that_are_wanted_are_unpacked(void **state)
{
    (void)state;
    static const struct {
        packed_entry entries[4];
        const char *part;
    } cases[] = {
        {{{"pair/a", NULL, AE_IFREG, MEMBER}, {"pair/b", NULL, AE_IFREG, MEMBER}, {"pair/a", NULL, AE_IFREG, 3}}, ""},
        {{{"pair/b", NULL, AE_IFREG, MEMBER}, {"pair/a", NULL, AE_IFREG, 3}}, "holds pair/a with 3 bytes, expected 40"},
        {{{"pair/a", NULL, AE_IFREG, 2 * MEMBER}}, "holds pair/a with 80 bytes, expected 40"},
        {{{"pair/a", NULL, AE_IFREG, MEMBER}}, "does not hold pair/b"},
        {{{"pairs/a", NULL, AE_IFREG, MEMBER}, {"pair", NULL, AE_IFREG, MEMBER}, {"pair/c", NULL, AE_IFREG, MEMBER}},
         "does not hold pair/a"},
        {{{"pair/b", NULL, AE_IFREG, MEMBER}, {"pair/a", NULL, AE_IFDIR, 0}}, "does not hold pair/a"},
        {{{"pair/b", NULL, AE_IFREG, MEMBER}, {"pair/a", "pair/b", AE_IFREG, 0}}, "does not hold pair/a"},
        {{{"../pair/a", NULL, AE_IFREG, MEMBER}, {"/pair/a", NULL, AE_IFREG, MEMBER}}, "does not hold pair/a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int count = 0;
        while (count < 4 && cases[i].entries[count].name)
            count++;
        write_archive(cases[i].entries, count);
        error = (tw_error){0};
        tw_status status = use_archive();
        if ((status == TW_OK) != !cases[i].part[0] || !strstr(error.message, cases[i].part))
            fail_msg("case %zu: status %d: %s", i, status, error.message);
    }
    char *far = calloc(1, 5000);
    skip_syncs();
    memset(far, 'x', 4999);
    write_archive(both, 2);
    assert_fails(twi_unpack(&pair, far, in_folder("pair.tar.gz"), &error), TW_INVALID_ARGUMENT, "name is too long");
    for (size_t size = 4060; size < 4096; size++) { /* the folder's name may fit, and a member's behind it not */
        snprintf(far, 5000, "%s", folder);
        for (size_t i = strlen(far); i < size; i++)
            far[i] = i % 2 ? '/' : '.';
        far[size] = 0;
        error = (tw_error){0};
        assert_true(twi_unpack(&pair, far, in_folder("pair.tar.gz"), &error) == TW_OK || error.message[0]);
    }
    assert_non_null(strstr(error.message, "name is too long"));
    twi_set_files(NULL);
    free(far);
    assert_fails(twi_unpack(&pair, folder, in_folder("nowhere.tar.gz"), &error), TW_DATA_LOSS, "cannot be unpacked");
}

/* Whatever was whole before it is cut is there, and nothing that is not. */
static void an_archive_is_refused_wherever_it_is_cut(void **state)
{
    (void)state;
    size_t size;
    write_archive(both, 2);
    char *bytes = read_whole(in_folder("pair.tar.gz"), &size);
    for (size_t cut = 0; cut < size - 12; cut++) { /* what follows ends what has been read already */
        store("pair.tar.gz", bytes, cut);
        unlink(in_folder("pair/b"));
        error = (tw_error){0};
        tw_status status = use_archive();
        if (status != TW_OK && (status != TW_DATA_LOSS || !strstr(error.message, "pair")))
            fail_msg("cut at %zu: status %d: %s", cut, status, error.message);
        assert_int_not_equal(access(in_folder("pair/b.part"), F_OK), 0);
        assert_true(status == TW_OK || cut < size - 12);
    }
    free(bytes);
}

/* The head of an entry, of the format that GNU tar has: more than libarchive itself would write. */
static void put_head(twi_text *tar, const char *name, char type, int size, const char *link)
{
    char head[512] = {0};
    unsigned sum = 0;
    snprintf(head, 100, "%s", name);
    memcpy(head + 100, "0000600", 8);
    memcpy(head + 108, "0000000", 8);
    memcpy(head + 116, "0000000", 8);
    snprintf(head + 124, 12, "%011o", (unsigned)size);
    memcpy(head + 136, "00000000000", 12);
    memset(head + 148, ' ', 8);
    head[156] = type;
    snprintf(head + 157, 100, "%s", link);
    memcpy(head + 257, type == 'S' ? "ustar  " : "ustar\0" "00", 8);
    if (type == 'S') { /* one piece of `size` bytes from 0 on; all of it is to be MEMBER bytes long */
        memcpy(head + 386, "00000000000", 12);
        snprintf(head + 398, 12, "%011o", (unsigned)size);
        snprintf(head + 483, 12, "%011o", (unsigned)MEMBER);
    }
    for (int i = 0; i < 512; i++)
        sum += (uint8_t)head[i];
    snprintf(head + 148, 8, "%06o", sum);
    twi_text_append(tar, head, 512);
}

static void put_bytes(twi_text *tar, const char *bytes, size_t size)
{
    static const char zeros[512];
    twi_text_append(tar, bytes, size);
    twi_text_append(tar, zeros, (512 - size % 512) % 512);
}

static void entries_that_do_not_hold_what_they_say_are_refused(void **state)
{
    (void)state;
    static const char name[] = "20 path=pair/\xc3\xa4\xc3\xb6\xc3\xbc\n", bytes[600];
    static const char *const parts[] = {"does not hold pair/a", "does not hold pair/a", "a member has more than its 40 bytes"};
    for (int i = 0; i < 3; i++) {
        twi_text tar = {0};
        if (i == 0) { /* a name that this process's language has no letters for */
            put_head(&tar, "pax", 'x', sizeof name - 1, "");
            put_bytes(&tar, name, sizeof name - 1);
            put_head(&tar, "pair/a", '0', MEMBER, "");
            put_bytes(&tar, bytes, MEMBER);
        } else if (i == 1) { /* a link that has bytes */
            put_head(&tar, "pax", 'x', 0, "");
            put_head(&tar, "pair/a", '1', MEMBER, "pair/b");
            put_bytes(&tar, bytes, MEMBER);
        } else { /* a piece that is larger than all of it is to be */
            put_head(&tar, "pair/a", 'S', 2 * MEMBER, "");
            put_bytes(&tar, bytes, 2 * MEMBER);
        }
        put_bytes(&tar, bytes, 0);
        twi_text_append(&tar, (char[1024]){0}, 1024);
        store("pair.tar.gz", tar.data, tar.size);
        twi_text_free(&tar);
        error = (tw_error){0};
        tw_status status = use_archive();
        if (status != TW_DATA_LOSS || !strstr(error.message, parts[i]))
            fail_msg("case %d: status %d: %s", i, status, error.message);
    }
}

/* Of a member of many pieces the first are there before the damage is seen. */
static void a_member_that_is_damaged_further_on_is_refused(void **state)
{
    (void)state;
    enum { SIZE = 1 << 18 };
    static const twi_fetch_set full = {
        .folder = "pair", .members = {"a", "b", "c", "d", "e", "f", "g", "h"}, .member_size = 0};
    twi_fetch_set large = {.folder = "pair", .members = {"a"}, .member_size = SIZE};
    char *noise = malloc(SIZE), *packed;
    size_t size;
    twi_text tar = {0};
    uint32_t drawn = 1;
    assert_non_null(noise);
    for (int i = 0; i < SIZE; i++)
        noise[i] = (char)((drawn = drawn * 1664525 + 1013904223) >> 24);
    put_head(&tar, "pair/a", '0', SIZE, "");
    put_bytes(&tar, noise, SIZE);
    twi_text_append(&tar, (char[1024]){0}, 1024);
    gzFile file = gzopen(in_folder("large.tar.gz"), "wb");
    assert_int_equal(gzwrite(file, tar.data, (unsigned)tar.size), (int)tar.size);
    assert_int_equal(gzclose(file), Z_OK);
    twi_text_free(&tar);
    assert_ok(twi_unpack(&large, folder, in_folder("large.tar.gz"), &error));
    packed = read_whole(in_folder("large.tar.gz"), &size);
    store("large.tar.gz", packed, size / 2);
    assert_fails(twi_unpack(&large, folder, in_folder("large.tar.gz"), &error), TW_DATA_LOSS, "cannot be unpacked");
    assert_int_not_equal(access(in_folder("pair/a.part"), F_OK), 0);
    free(packed);
    free(noise);
    for (int i = 0; i < TWI_FETCH_MAX_MEMBERS; i++) { /* as many as there may be, of nothing */
        char name[16];
        snprintf(name, sizeof name, "pair/%s", full.members[i]);
        put_head(&tar, name, '0', 0, "");
    }
    put_head(&tar, "pair/i", '0', 0, "");
    twi_text_append(&tar, (char[1024]){0}, 1024);
    store("full.tar", tar.data, tar.size);
    twi_text_free(&tar);
    assert_ok(twi_unpack(&full, folder, in_folder("full.tar"), &error));
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static void data_that_is_cut_while_a_checkpoint_is_open_is_missed(void **state)
{
    (void)state;
    const char *names[] = {"text", "whole", NULL};
    for (int i = 0; i < 3; i++) {
        tw_checkpoint *checkpoint = NULL;
        tw_tensor *read = NULL;
        assert_ok(use_checkpoints());
        assert_ok(tw_checkpoint_open(in_folder("merged-1"), &checkpoint, &error));
        assert_int_equal(truncate(in_folder("merged-1.data-00000-of-00001"), 1), 0);
        assert_fails(names[i] ? tw_checkpoint_read(checkpoint, names[i], &read, &error)
                              : twi_bundle_verify(checkpoint, &error),
                     TW_DATA_LOSS, "merged-1.data");
        assert_null(read);
        tw_checkpoint_close(checkpoint);
    }
}

static void parts_that_disagree_are_not_saved(void **state)
{
    (void)state;
    tw_tensor *part = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2, 1), (float[]){1, 2});
    tw_tensor *other = tw_tensor_from(TW_INT32, TW_SHAPE(2, 1), (int32_t[]){1, 2});
    tw_named_tensor shapes[] = {{"parts", part, "2 2 -:0,1"}, {"parts", part, "2 3 -:1,1"}};
    tw_named_tensor types[] = {{"parts", part, "2 2 -:0,1"}, {"parts", other, "2 2 -:1,1"}};
    assert_fails(twi_bundle_save(in_folder("x-1"), shapes, 2, &error), TW_INVALID_ARGUMENT,
                 "the parts of 'parts' disagree about its shape or type");
    assert_fails(twi_bundle_save(in_folder("x-1"), types, 2, &error), TW_INVALID_ARGUMENT,
                 "the parts of 'parts' disagree about its shape or type");
    tw_tensor_release(part);
    tw_tensor_release(other);
}

/* The file that names the newest checkpoint. */
static void the_name_of_the_newest_checkpoint_may_be_written_in_many_ways(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool names;
    } cases[] = {
        {"model_checkpoint_path: \"far/m-9\"\n", true},
        {"other: 1\nmodel_checkpoint_path:\t'far/m-9'\n", true},
        {"model_checkpoint_path: \"f\\141r/m-\\071\"", true},
        {"model_checkpoint_path: \"far\\/m\\-9\"", true},
        {"model_checkpoint_path: \"far/m-9", false},
        {"model_checkpoint_path: \"far/m-9\n\"", false},
        {"model_checkpoint_path: \"far/m-9\\", false},
        {"model_checkpoint_path: \"far/m-9\\0\"", true}, /* a zero ends it */
        {"model_checkpoint_path: \"far/m-\\7\"", false},
        {"model_checkpoint_path: \"far/m-\\07\"", false},
        {"model_checkpoint_path: \"far/m-\\09\"", false},
        {"model_checkpoint_path: far/m-9\n", false},
        {"model_checkpoint_path: \"\"\n", false},
        {"all_model_checkpoint_paths: \"far/m-9\"\n", false},
    };
    tw_tensor *one = tw_tensor_float(1);
    tw_named_tensor tensor = {"x", one};
    mkdir(in_folder("far"), 0700);
    assert_ok(twi_bundle_save(in_folder("m-2"), &tensor, 1, &error));
    assert_ok(twi_bundle_save(in_folder("far/m-9"), &tensor, 1, &error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[600];
        store("checkpoint", cases[i].text, strlen(cases[i].text));
        assert_ok(tw_checkpoint_latest(folder, path, sizeof path, NULL, &error));
        if (strcmp(path, in_folder(cases[i].names ? "far/m-9" : "m-2")) != 0)
            fail_msg("%s: %s", cases[i].text, path);
    }
    unlink(in_folder("checkpoint"));
    tw_tensor_release(one);
}

/* Another must not be taken for the newest because memory lacks for the name, or for what it names. */
static void a_name_of_the_newest_that_memory_lacks_for_is_not_passed_over(void **state)
{
    (void)state;
    char text[400] = "model_checkpoint_path: \"", path[600];
    tw_tensor *one = tw_tensor_float(1);
    tw_named_tensor tensor = {"x", one};
    bool failed = true;
    for (int i = 0; i < 80; i++)
        strcat(text, "./");
    strcat(text, "far/m-9\"\n");
    mkdir(in_folder("far"), 0700);
    assert_ok(twi_bundle_save(in_folder("m-2"), &tensor, 1, &error));
    assert_ok(twi_bundle_save(in_folder("far/m-9"), &tensor, 1, &error));
    store("checkpoint", text, strlen(text));
    mkdir(in_folder("none"), 0700); /* has no other */
    store("none/checkpoint", text, strlen(text));
    mkdir(in_folder("none/far"), 0700);
    assert_ok(twi_bundle_save(in_folder("none/far/m-9"), &tensor, 1, &error));
    for (int n = 0; failed; n++) {
        error = (tw_error){0};
        fail_allocation(n);
        assert_true(tw_checkpoint_latest(in_folder("none"), path, sizeof path, NULL, &error) == TW_OK || memory.failed);
        failed = stop_failing_allocations();
        assert_int_equal(memory.live, 0);
        assert_true(!failed || !error.message[0] || error.status == TW_RESOURCE_EXHAUSTED);
    }
    failed = true;
    for (int n = 0; failed; n++) {
        error = (tw_error){0};
        fail_allocation(n);
        tw_status status = tw_checkpoint_latest(folder, path, sizeof path, NULL, &error);
        failed = stop_failing_allocations();
        assert_int_equal(memory.live, 0);
        if (status == TW_OK ? !strstr(path, "far/m-9") : status != TW_RESOURCE_EXHAUSTED)
            fail_msg("allocation %d: status %d, %s: %s", n, status, path, error.message);
    }
    unlink(in_folder("checkpoint"));
    tw_tensor_release(one);
}

/* ---- tables and what they are packed by -------------------------------------------------------------------------- */

static tw_status count_entry(void *user, const char *key, size_t key_size, const char *value, size_t value_size, tw_error *e)
{
    (void)key, (void)key_size, (void)value, (void)value_size, (void)e;
    ++*(int *)user;
    return TW_OK;
}

/* One entry a block; the key that stands for a block lies between its last and the next one's first. */
static void keys_of_all_kinds_divide_blocks(void **state)
{
    (void)state;
    static const char *const keys[] = {"", "a", "ab", "ad", "b", "b\xff", "b\xff\xff", "d", "\xff", "\xff\xff"};
    const int count = sizeof keys / sizeof *keys;
    for (int last = 1; last <= count; last++) {
        twi_table_builder table;
        int found = 0;
        twi_table_start(&table, 1);
        for (int i = 0; i < last; i++)
            twi_table_add(&table, keys[i], strlen(keys[i]), "value", 5);
        assert_ok(twi_table_finish(&table, &error));
        assert_ok(twi_table_read(table.file.data, table.file.size, count_entry, &found, &error));
        assert_int_equal(found, last);
        twi_table_free(&table);
    }
}

static void old_checkpoints_are_refused_by_what_is_wrong_in_them(void **state)
{
    (void)state;
#define LIST(more) "meta { tensor { name: 'a' type: 1 shape { dim { size: 2 } } } " more " }"
#define SIX "dim {} dim {} dim {} dim {} dim {} dim {} "
#define PART(of, where, values) "data { name: '" of "' slice { extent { " where " } } data { " values " } }"
    static const char whole[] = PART("a", "", "float_val: 1 float_val: 2");
    static const struct {
        const char *entries[3], *words; /* the first under no key; words: NULL if it is read */
    } cases[] = {
        {{LIST(""), whole}, NULL},
        {{LIST("versions { min_consumer: 1 }"), whole}, NULL},
        {{LIST("versions { min_consumer: 2 }"), whole}, "reader of version 2"},
        {{"data { name: 'a' }"}, "cannot be understood"},
        {{"!\xff\xff"}, "cannot be understood"},
        {{NULL, whole}, "cannot be understood"},
        {{LIST(""), "meta { }"}, "cannot be understood"},
        {{LIST(""), PART("b", "", "")}, "which it does not list"},
        {{LIST(""), PART("a", "start: 1 length: 2", "")}, "lies outside"},
        {{LIST(""), PART("a", "start: 0 length: 1", "float_val: 1")}, "do not cover it"},
        {{LIST(""), PART("a", "start: 0 length: 1", "float_val: 1"), PART("a", "start: 1 length: 1", "float_val: 2")},
         NULL},
        {{LIST(""), PART("a", "", "tensor_content: 'xyz'")}, "tensor 'a'"},
        {{LIST("")}, "do not cover it"},
        {{LIST("tensor { name: 'a' type: 1 shape { dim { size: 2 } } }"), whole}, NULL},
        {{LIST("tensor { name: 'a' type: 2 shape { dim { size: 2 } } }"), whole}, "listed twice"},
        {{LIST("tensor { name: 'a' type: 1 shape { dim { size: 3 } } }"), whole}, "listed twice"},
        {{LIST("tensor { name: 'b' type: 1 shape { dim { size: -1 } } }"), whole}, "impossible shape"},
        {{"meta { tensor { name: 'b' shape { dim { size: -5 } } } tensor { name: 'a' } }"}, "impossible shape"},
        {{"meta { }"}, NULL},
        {{LIST("tensor { name: 'b' type: 1 shape { unknown_rank: true } }"), whole, PART("b", "", "")}, NULL},
        {{LIST("tensor { name: 'b' type: 1 shape { " SIX SIX SIX SIX SIX SIX " } }"), whole}, NULL},
        {{LIST("tensor { name: 'b' type: 0 shape { } }"), whole, PART("b", "", "")}, NULL},
        {{LIST("tensor { name: 'b' type: 20 shape { } }"), whole}, NULL},
        {{LIST("tensor { name: 'b' type: 21 shape { } }"), whole}, NULL},
        {{LIST("tensor { name: 'b' type: 1 }"), whole}, "do not cover it"},
        {{LIST("tensor { name: 'b' type: 7 shape { dim { size: 2 } } }"), whole,
          PART("b", "start: 0 length: 1", "string_val: 'x'")}, "strings in parts"},
        {{LIST("tensor { name: 'b' type: 2 shape { dim { size: 1099511627776 } } }"), whole,
          PART("b", "start: 0 length: 1", "double_val: 1")}, "larger than its file"},
        {{LIST("tensor { name: 'b' type: 2 shape { dim { size: 4611686018427387904 } } }"), whole,
          PART("b", "start: 0 length: 1", "double_val: 1")}, "larger than its file"},
        {{LIST("tensor { name: 'b' type: 1 shape { dim { size: 3 } } }"), whole,
          "data { name: 'b' slice { extent { } } }"}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char *const keys[] = {"", "k", "l"};
        twi_table_builder table;
        twi_saved_slices saved = {0};
        twi_table_start(&table, 0);
        for (int k = 0; k < 3; k++)
            if (cases[i].entries[k])
                add_old_entry(&table, keys[k], cases[i].entries[k]);
        assert_ok(twi_table_finish(&table, &error));
        store("old", table.file.data, table.file.size);
        twi_table_free(&table);
        error = (tw_error){0};
        assert_true(twi_saved_slices_are_there(in_folder("ol[d]")));
        tw_status status = twi_saved_slices_read(in_folder("old"), &saved, &error);
        if (cases[i].words ? status == TW_OK || !strstr(error.message, cases[i].words) : status != TW_OK)
            fail_msg("old checkpoint %zu: status %d, '%s', expected '%s'", i, status, error.message,
                     cases[i].words ? cases[i].words : "");
        twi_saved_slices_free(&saved);
    }
    twi_saved_slices none = {0};
    store("short", "old", 3);
    assert_false(twi_saved_slices_are_there(in_folder("short")));
    assert_false(twi_saved_slices_are_there(in_folder("*[dt]"))); /* of two files one is none */
    assert_false(twi_saved_slices_are_there(in_folder("nowhere")));
    assert_int_equal(twi_saved_slices_read(in_folder("nowhere"), &none, &error), TW_NOT_FOUND);
    assert_int_equal(twi_saved_slices_read(in_folder("[so]*[dt]"), &none, &error), TW_DATA_LOSS);
    twi_saved_slices_free(&none);
    assert_int_equal(twi_saved_slices_read(in_folder("sh*t*"), &none, &error), TW_DATA_LOSS);
    store("short2", "old", 3);
    assert_int_equal(twi_saved_slices_read(in_folder("short*"), &none, &error), TW_DATA_LOSS); /* for the first */
    size_t size;
    char *bytes = read_whole(in_folder("old"), &size);
    store("odd[1]", bytes, size); /* a pattern, and not of itself */
    free(bytes);
    assert_true(twi_saved_slices_are_there(in_folder("odd[1]")));
    twi_saved_slices_free(&none);
#undef LIST
#undef SIX
#undef PART
}

static void what_snappy_packed_is_refused_by_each_of_its_lengths(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *expanded; /* NULL: refused */
    } cases[] = {
        {"\0", 1, ""},
        {"\5\0a\1\1", 5, "aaaaa"},          /* a letter, and four from one back */
        {"\4\0a\1\1", 5, NULL},             /* one more than there is to be */
        {"\6\0a\1\1", 5, NULL},             /* one less */
        {"\5\0a\1\2", 5, NULL},             /* from before the beginning */
        {"\5\0a\1\0", 5, NULL},             /* from nowhere */
        {"\5\0a\1", 4, NULL},               /* cut */
        {"\3\x08" "abc", 5, "abc"},
        {"\2\x08" "abc", 5, NULL},
        {"\3\xf0\2" "abc", 6, "abc"},        /* the length in a byte of its own */
        {"\3\xf0", 2, NULL},
        {"\x80", 1, NULL},
        {"\xff\xff\xff\xff\x0f\0a", 7, NULL}, /* more than it can become */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *expanded = NULL;
        size_t size;
        bool good = twi_snappy_expand(cases[i].bytes, cases[i].size, &expanded, &size) == TW_OK;
        if (good != (cases[i].expanded != NULL) || (good && (size != strlen(cases[i].expanded) ||
                                                             memcmp(expanded, cases[i].expanded, size) != 0)))
            fail_msg("case %zu", i);
        if (good)
            twi_free(expanded);
    }
}

/* ---- constants of graphs ----------------------------------------------------------------------------------------- */

/* *last: the last value of the constant that is all of it. */
static tw_status import(const char *text, double *last)
{
    twi_text wire = {0};
    error = (tw_error){0};
    tw_graph *g = tw_graph_create();
    tw_status status = twi_text_to_wire(&twi_text__graph_def__descriptor, text, strlen(text), &wire, &error);
    if (status == TW_OK)
        status = tw_graph_import(g, wire.data, wire.size, NULL, &error);
    const tw_attr *attr = status == TW_OK ? tw_node_attr(tw_graph_node(g, 0), "value") : NULL;
    const tw_attr *why = status == TW_OK ? tw_node_attr(tw_graph_node(g, 0), "why") : NULL;
    assert_true(status != TW_OK || !error.message[0]);
    if (why) /* the node is kept, and cannot be run */
        snprintf(error.message, sizeof error.message, "%s", why->s.data);
    if (attr && tw_tensor_dtype(attr->tensor) != TW_STRING)
        *last = tw_tensor_value(attr->tensor, tw_tensor_elements(attr->tensor) - 1);
    twi_text_free(&wire);
    tw_graph_destroy(g);
    return status;
}

static void constants_hold_what_their_type_has_or_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *dtype, *tensor, *part;
        double last; /* the last value */
    } cases[] = {
        {"DT_FLOAT", "tensor_shape { dim { size: 3 } } float_val: [1, 2]", "", 2},
        {"DT_DOUBLE", "tensor_shape { dim { size: 1 } } double_val: 1", "", 1},
        {"DT_INT32", "tensor_shape { } int_val: 1", "", 1},
        {"DT_INT16", "tensor_shape { } int_val: 1", "", 1},
        {"DT_INT8", "tensor_shape { } int_val: -1", "", -1},
        {"DT_UINT8", "tensor_shape { } int_val: 1", "", 1},
        {"DT_QINT32", "tensor_shape { } int_val: 1", "", 1},
        {"DT_QINT16", "tensor_shape { } int_val: 1", "", 1},
        {"DT_QUINT16", "tensor_shape { } int_val: 1", "", 1},
        {"DT_QINT8", "tensor_shape { } int_val: 1", "", 1},
        {"DT_QUINT8", "tensor_shape { } int_val: 1", "", 1},
        {"DT_INT64", "tensor_shape { } int64_val: 1", "", 1},
        {"DT_BOOL", "tensor_shape { dim { size: 2 } } bool_val: true", "", 1},
        {"DT_BOOL", "tensor_shape { dim { size: 2 } } tensor_content: '\\001\\377'", "", 1},
        {"DT_HALF", "tensor_shape { } half_val: 15360", "", 1},
        {"DT_BFLOAT16", "tensor_shape { } half_val: 16256", "", 1},
        {"DT_COMPLEX64", "tensor_shape { } scomplex_val: [1, 2]", "", 1},
        {"DT_COMPLEX128", "tensor_shape { dim { size: 3 } } dcomplex_val: [1, 2, 3, 4]", "", 3},
        {"DT_STRING", "tensor_shape { dim { size: 1 } } string_val: 'a'", ""},
        {"DT_FLOAT", "float_val: 1", "", 1},
        {"DT_FLOAT", "tensor_shape { unknown_rank: true } float_val: 1", "a constant has the shape"},
        {"DT_FLOAT", "tensor_shape { unknown_rank: true dim { size: 1 } }", "a shape of unknown rank has dimensions"},
        {"DT_FLOAT", "tensor_shape { dim { size: -2 } }", "dimension 0 of a shape is -2"},
        {"DT_FLOAT", "tensor_shape { dim { size: -1 } }", "a constant has the shape"},
        {"DT_FLOAT", "tensor_shape { dim { size: 4611686018427387904 } dim { size: 2 } }", "a constant has the shape"},
        {"DT_FLOAT", "tensor_shape { dim { size: 1 } dim { size: 1 } dim { size: 1 } dim { size: 1 } dim { size: 1 } "
                     "dim { size: 1 } dim { size: 1 } dim { size: 1 } dim { size: 1 } dim { size: 1 } dim { size: 1 } "
                     "dim { size: 1 } dim { size: 1 } }", "a shape has 13 dimensions, at most 12"},
        {"DT_DOUBLE", "tensor_shape { dim { size: 4611686018427387904 } }", "a constant has the shape"},
        {"DT_UINT32", "tensor_shape { } uint32_val: 7", "", 7},
        {"DT_UINT64", "tensor_shape { } uint64_val: 18446744073709551615", "", 18446744073709551615.0},
        {"DT_UINT64", "tensor_shape { } uint64_val: 99999999999999999999", "expected a whole number"},
        {"DT_DOUBLE", "tensor_shape { } double_val: x", "expected a number"},
        {"DT_FLOAT", "tensor_shape { dim { size: 2 } } tensor_content: 'abc'", "has 3 bytes of content, expected 8"},
        {"DT_STRING", "tensor_shape { dim { size: 3 } } string_val: 'a'", ""},
        {"DT_RESOURCE", "tensor_shape { }", "a constant is a handle"},
        {"DT_VARIANT", "tensor_shape { }", "a constant is a handle"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1200];
        snprintf(text, sizeof text,
                 "node { name: 'c' op: 'Const' attr { key: 'dtype' value { type: %s } } attr { key: 'value' value { tensor "
                 "{ dtype: %s %s } } } }",
                 cases[i].dtype, cases[i].dtype, cases[i].tensor);
        double last = 0;
        tw_status status = import(text, &last);
        if (!strstr(error.message, cases[i].part) || (!cases[i].part[0] && status != TW_OK))
            fail_msg("%s: status %d: %s", text, status, error.message);
        if (last != cases[i].last)
            fail_msg("%s: %.17g, expected %.17g", text, last, cases[i].last);
    }
}

/* ---- examples ---------------------------------------------------------------------------------------------------- */

/* -1: refused; else how many values the one feature has. */
static int64_t values_of(const char *list, size_t size, tw_dtype *dtype)
{
    char bytes[64] = {'\x0a', (char)(size + 7), '\x0a', (char)(size + 5), '\x0a', 1, 'f', '\x12', (char)size};
    twi_feature feature;
    memcpy(bytes + 9, list, size);
    twi_example example = twi_example_begin(bytes, size + 9);
    int found = twi_example_next(&example, &feature);
    *dtype = found > 0 ? feature.dtype : TW_INVALID_DTYPE;
    if (found > 0) {
        assert_int_equal(feature.key_size, 1);
        assert_int_equal(feature.key[0], 'f');
    }
    return found < 0 ? -1 : found == 0 ? -2 : twi_feature_count(&feature);
}

static void values_of_features_are_counted_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        size_t size;
        tw_dtype dtype;
        int64_t count;
    } cases[] = {
        {"", 0, TW_INVALID_DTYPE, 0},
        {"\x0a\0", 2, TW_STRING, 0},
        {"\x0a\5\x0a\1a\x0a\0", 7, TW_STRING, 2},
        {"\x0a\2\x08\1", 4, TW_STRING, -1},                /* a number among texts */
        {"\x12\6\x0a\4\0\0\x80\x3f", 8, TW_FLOAT32, 1},    /* packed */
        {"\x12\5\x0d\0\0\x80\x3f", 7, TW_FLOAT32, 1},      /* not packed */
        {"\x12\5\x0a\3\0\0\x80", 7, TW_FLOAT32, -1},       /* three bytes of a float */
        {"\x12\2\x08\1", 4, TW_FLOAT32, -1},               /* a whole number among floats */
        {"\x1a\4\x0a\2\1\2", 6, TW_INT64, 2},              /* packed */
        {"\x1a\4\x08\1\x08\2", 6, TW_INT64, 2},            /* not packed */
        {"\x1a\4\x0a\2\1\x80", 6, TW_INT64, -1},           /* the last one goes on */
        {"\x1a\5\x0d\0\0\0\0", 7, TW_INT64, -1},           /* four bytes among whole numbers */
        {"\x1a\2\x12\0", 4, TW_INT64, 0},                  /* a field that is not known */
        {"\x0a\2\x0a\0\x1a\3\x0a\1\7", 9, TW_INT64, 1},    /* of several lists the last */
        {"\x22\0", 2, TW_INVALID_DTYPE, 0},                /* a list that is not known */
        {"\x0a\2\x0a", 3, TW_INVALID_DTYPE, -1},           /* longer than all of it */
        {"\x0b", 1, TW_INVALID_DTYPE, -1},                 /* a kind of field that there is not */
        {"\x80", 1, TW_INVALID_DTYPE, -1},                 /* half a tag */
        {"\x09\0\0\0\0\0\0\0\0", 9, TW_INVALID_DTYPE, 0},  /* eight bytes, passed over */
        {"\x09\0\0", 3, TW_INVALID_DTYPE, -1},
        {"\x08\x80", 2, TW_INVALID_DTYPE, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_dtype dtype;
        int64_t count = values_of(cases[i].list, cases[i].size, &dtype);
        if (count != cases[i].count || dtype != cases[i].dtype)
            fail_msg("case %zu: %lld of %s, expected %lld of %s", i, (long long)count, tw_dtype_name(dtype),
                     (long long)cases[i].count, tw_dtype_name(cases[i].dtype));
    }
    twi_feature feature;
    twi_example nothing = twi_example_begin(NULL, 0);
    assert_int_equal(twi_example_next(&nothing, &feature), 0);
}

static void values_of_features_are_read_one_by_one_too(void **state)
{
    (void)state;
    static const char numbers[] = "\x08\1\x0a\2\2\3\x08\4", words[] = "\x0a\5first\x0a\6second";
    int64_t read[4];
    twi_feature list = {.dtype = TW_INT64, .values = numbers, .end = numbers + sizeof numbers - 1};
    assert_int_equal(twi_feature_count(&list), 4); /* packed between others that are not */
    assert_true(twi_feature_read(&list, read));
    for (int64_t i = 0; i < 4; i++)
        assert_int_equal(read[i], i + 1);
    list = (twi_feature){.dtype = TW_STRING, .values = words, .end = words + sizeof words - 1};
    bool failed = true;
    for (int n = 0; failed; n++) {
        tw_string texts[2] = {{0}};
        fail_allocation(n);
        bool fits = twi_feature_read(&list, texts);
        failed = stop_failing_allocations();
        assert_int_equal(fits, !failed);
        assert_true(failed || (texts[1].size == 6 && memcmp(texts[1].data, "second", 6) == 0));
        twi_free((char *)texts[0].data);
        twi_free((char *)texts[1].data);
    }
}

/* A SequenceExample of one list, "l", of two features; cut anywhere it has fewer, or is refused. */
static void lists_of_features_are_read_one_by_one(void **state)
{
    (void)state;
    static const char bytes[] = "\x12\x1a\x0a\x18\x0a\1l\x12\x13"          /* list "l" of 19 bytes: */
                                "\x0a\5\x1a\3\x0a\1\7"                     /* 7 */
                                "\x0a\6\x1a\4\x0a\2\1\2"                   /* 1, 2 */
                                "\x10\1\x1a\0";                            /* two fields that are not features */
    const size_t size = sizeof bytes - 1;
    for (size_t cut = 0; cut <= size; cut++) {
        twi_example sequence = twi_sequence_begin(bytes, cut);
        twi_feature list, feature;
        int found = twi_sequence_next(&sequence, &list);
        assert_int_equal(found, cut == size ? 1 : cut == 0 ? 0 : -1);
        if (found != 1)
            continue;
        const char *at = list.values;
        int64_t values[2], counts[] = {1, 2};
        for (int i = 0; i < 2; i++) {
            assert_int_equal(twi_list_next(&list, &at, &feature), 1);
            assert_int_equal(twi_feature_count(&feature), counts[i]);
            assert_true(twi_feature_read(&feature, values));
            assert_int_equal(values[0], i == 0 ? 7 : 1);
        }
        assert_int_equal(twi_list_next(&list, &at, &feature), 0);
        assert_int_equal(twi_sequence_next(&sequence, &list), 0);
    }
    twi_feature none = {.key = ""}, feature, broken = {.key = ""};
    const char *at = NULL;
    assert_int_equal(twi_list_next(&none, &at, &feature), 0);
    broken.values = "\x0a\2\x1a\x05"; /* a feature whose list is longer than it */
    broken.end = broken.values + 4;
    at = broken.values;
    assert_int_equal(twi_list_next(&broken, &at, &feature), -1);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static tw_status to_wire(const char *text, size_t size, twi_text *wire)
{
    *wire = (twi_text){0};
    error = (tw_error){0};
    return twi_text_to_wire(&twi_text__graph_def__descriptor, text, size, wire, &error);
}

static void texts_are_refused_by_line(void **state)
{
    (void)state;
    char deep[400] = "";
    for (int i = 0; i < 40; i++)
        strcat(deep, "unknown {");
    char wordy[300] = "";
    memset(wordy, 'w', 200); /* more than a word has: the rest is another */
    strcat(wordy, ": 1");
    const char *cases[][2] = {
        {deep, "messages that are not so deep in each other"},
        {wordy, "':' or '{'"},
        {"node { attr { value { list { f: 1.5 f: 2f i: 0x1F b: t } } } } versions { producer: 010 }", ""},
        {"node { name: 'a' } 'b'", "line 1: expected the name of a field"},
        {"unknown { list: < a: 1 > other: 'x' \"y\" }", ""},
        {"versions { producer: -1 }", ""},
        {"versions { producer: 99999999999 }", ""}, /* cut to 32 bits, as protobuf's own reader does not */
        {"node { attr { value { i: } } }", "expected a value"},
        {"node { attr { value { f: 'x' } } }", "expected a number or a word, found ''x'"},
        {"node { attr { value { type: 3 } } }", ""},
        {"node { attr { value { b: yes } } }", "expected true or false"},
        {"node { name: '\\", "expected the quote that ends a text"},
        {"node { name: '\\x", "expected the quote that ends a text"},
        {"node { name: '\\1", "expected the quote that ends a text"},
        {"node { name: 'a\nb' }", "expected the quote that ends a text"},
        {"node: [ { name: 'a' }, { name: 'b' } ]", ""},
        {"node { name: 'a' }; # the end", ""},
        {"node { name: 'a' }, node { name: 'b' };", ""},
    };
    char first[8];
    twi_text_first_field("much_too_long: 1", 16, first, sizeof first);
    assert_string_equal(first, "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        twi_text wire;
        tw_status status = to_wire(cases[i][0], strlen(cases[i][0]), &wire);
        if ((status == TW_OK) != !cases[i][1][0] || !strstr(error.message, cases[i][1]))
            fail_msg("%.60s: status %d: \"%s\"", cases[i][0], status, error.message);
        twi_text_free(&wire);
    }
}

/* A byte of zero is no end, and in no word. */
static void texts_have_no_zeros(void **state)
{
    (void)state;
    static const char *const cases[] = {"node { name: 'a' }|node { }", "versions { producer: 1|23 }", "|",
                                        "ver|sions { }", "versions { producer|: 1 }", "versions { | }"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        twi_text wire;
        char text[64];
        size_t size = strlen(cases[i]);
        memcpy(text, cases[i], size);
        *(char *)memchr(text, '|', size) = 0;
        if (to_wire(text, size, &wire) != TW_INVALID_ARGUMENT || !strstr(error.message, "line 1: expected "))
            fail_msg("%s: \"%s\"", cases[i], error.message);
        twi_text_free(&wire);
    }
}

/* Each word of it is another, or none. */
static void an_order_that_is_changed_is_no_order(void **state)
{
    (void)state;
    static const char whole[] = "tower order 1\nmodel small towers 2 batch 4 seed -1 first 0\n"
                                "0 tower 1 pulled 0 batch 0 loss 0x1.8p+0\n1 tower 0 pulled 1 batch 1 loss 1\n";
    static const char *const words[] = {"", "x", "-7", "9999999999999999999999", "3", "0 0", "1x"};
    char text[400];
    for (size_t at = 0; whole[at]; at += strcspn(whole + at, " \n") + 1)
        for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
            twi_order_log log;
            error = (tw_error){0};
            int size = snprintf(text, sizeof text, "%.*s%s%s", (int)at, whole, words[k],
                                whole + at + strcspn(whole + at, " \n"));
            store("order", text, (size_t)size);
            tw_status status = twi_order_log_read(in_folder("order"), &log, &error);
            if (status != TW_OK && (status != TW_DATA_LOSS || !strstr(error.message, "order")))
                fail_msg("%s: status %d: %s", text, status, error.message);
            twi_order_log_free(&log);
        }
    for (int i = 0; i < 4; i++) { /* nothing, zeros, another beginning, nothing behind it */
        twi_order_log log;
        store("order", i == 1 ? "\0\0\n" : i == 2 ? "tower order 2\n" : "tower order 1\n", i == 0 ? 0 : i == 1 ? 3 : 14);
        assert_int_equal(twi_order_log_read(in_folder("order"), &log, &error), TW_DATA_LOSS);
    }
}

/* An order is gone on with where all that it was made by is the same. */
#define ORDER_HEAD "tower order 1\nmodel small towers 2 batch 4 seed -1 first 0\n"

static void an_order_is_refused_by_the_line_that_is_wrong(void **state)
{
    (void)state;
    static const char *const head = "line 2: expected 'model NAME towers N batch N seed N first N'";
    static const char *const record = "line 3: expected 'UPDATE tower N pulled N batch N loss X'";
    const struct {
        const char *text, *says; /* NULL: it is one, of so many updates */
        int updates;
    } cases[] = {
        {"", "is not an order of updates: it does not begin with 'tower order 1'", 0},
        {"tower order 1", "does not begin", 0},
        {"tower order 1\n", head + strlen("line 2: "), 0},
        {"tower order 1\nmodel small towers 2 batch 4 seed -1 first 0", head + strlen("line 2: "), 0},
        {"tower order 1\nmodel small towers 0 batch 4 seed -1 first 0\n", head, 0},
        {"tower order 1\nmodel small towers 1048577 batch 4 seed -1 first 0\n", head, 0},
        {"tower order 1\nmodel small towers 2 batch 0 seed -1 first 0\n", head, 0},
        {"tower order 1\nmodel small towers 2 batch 1048577 seed -1 first 0\n", head, 0},
        {"tower order 1\nmodel small towers 2 batch 4 seed 9223372036854775808 first 0\n", head, 0},
        {"tower order 1\nmodel small towers 2 batch 4 seed -1 first -1\n", head, 0},
        {"tower order 1\nmodel small towers 2 batch 4 seed -1 first 1099511627777\n", head, 0},
        {"tower order 1\nmodel small towers 2 batch 4 seed -1 first 0 \n", head, 0},
        {"tower order 1\nmodel small towers 2 batch 4 seed -1 first\n", head, 0},
        {"tower order 1\nmodel small towers 1048576 batch 1048576 seed 9223372036854775807 first 1099511627776\n", NULL,
         0},
        {"tower order 1\nmodel small towers 1 batch 1 seed -9223372036854775808 first 0\n", NULL, 0},
        {ORDER_HEAD "0 tower 0 pulled 0 batch 0 los 1\n", record, 0},
        {ORDER_HEAD "0 tower 0 pulled 0 batch -1 loss 1\n", record, 0},
        {ORDER_HEAD "0 tower 0 pulled 0 batch 1099511627777 loss 1\n", record, 0},
        {ORDER_HEAD "0 tower 0 pulled -1 batch 0 loss 1\n", record, 0},
        {ORDER_HEAD "0 tower -1 pulled 0 batch 0 loss 1\n", record, 0},
        {ORDER_HEAD "-1 tower 0 pulled 0 batch 0 loss 1\n", record, 0},
        {ORDER_HEAD "0x tower 0 pulled 0 batch 0 loss 1\n", record, 0},
        {ORDER_HEAD "tower 0 pulled 0 batch 0 loss 1\n", record, 0},
        {ORDER_HEAD "0 tower 0 pulled 0 batch 0 loss \n", "line 3: expected a number after 'loss'", 0},
        {ORDER_HEAD "0 tower 0 pulled 0 batch 0 loss 1 \n", "line 3: expected a number after 'loss'", 0},
        {ORDER_HEAD "1 tower 0 pulled 0 batch 0 loss 1\n", "line 3: updates are not numbered one after the other", 0},
        {ORDER_HEAD "0 tower 2 pulled 0 batch 0 loss 1\n", "line 3: there is no such tower", 0},
        {ORDER_HEAD "0 tower 1 pulled 1 batch 0 loss 1\n", "line 3: variables cannot be pulled after the update", 0},
        {ORDER_HEAD "0 tower 1 pulled 0 batch 0 loss 1\n1 tower 1 pulled 0 batch 0 loss 1\n",
         "line 4: the tower pulled before its update before was made", 0},
        {ORDER_HEAD "0 tower 1 pulled 0 batch 1099511627776 loss 1\n1 tower 1 pulled 1 batch 0 loss nan\n", NULL, 2},
        {ORDER_HEAD "0 tower 1 pulled 0 batch 0 loss 1\n1 tower 0 pulled 0 batch 1 loss 2\n2 tow", NULL, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        twi_order_log log;
        store("order", cases[i].text, strlen(cases[i].text));
        fail_allocation(-1); /* counts them */
        tw_status status = twi_order_log_read(in_folder("order"), &log, &error);
        assert_int_equal(status, cases[i].says ? TW_DATA_LOSS : TW_OK);
        assert_int_equal(log.count, cases[i].updates);
        if (cases[i].says)
            assert_message(error.message, cases[i].says);
        twi_order_log_free(&log);
        assert_int_equal(memory.live, 0);
        stop_failing_allocations();
    }
    for (int at = 3; at < 60; at += 20) { /* a byte of zero: in line 1, in line 2, and in one that was not ended */
        char text[] = ORDER_HEAD "0 tower";
        twi_order_log log;
        int place = at == 43 ? (int)sizeof text - 3 : at;
        text[place] = 0;
        store("order", text, sizeof text - 1);
        tw_status status = twi_order_log_read(in_folder("order"), &log, &error);
        assert_int_equal(status, at == 43 ? TW_OK : TW_DATA_LOSS);
        if (status != TW_OK)
            assert_message(error.message, at == 3 ? "order, line 1: a byte of zero" : "order, line 2: a byte of zero");
        twi_order_log_free(&log);
    }
}

/* What the file says of updates is kept to the bit. */
static void an_order_is_read_as_it_was_written(void **state)
{
    (void)state;
    const twi_order_head head = {.model = "small", .towers = 3, .batch = 4, .seed = INT64_MIN};
    const twi_order_record records[] = {{2, 0, 5, 0.1f}, {0, 0, 1, INFINITY}, {2, 1, 7, -3e-45f}, {0, 3, 9, 16777217}};
    twi_order_writer *writer;
    twi_order_log log;
    const char *path = in_folder("new/folders/order");
    fail_allocation(-1); /* counts them */
    for (int begun = 0; begun < 4; begun++) { /* again and again, each time with one update more that is kept */
        assert_ok(twi_order_writer_open(path, &head, begun, &writer, &error));
        for (int i = begun; i < 4; i++)
            assert_ok(twi_order_writer_add(writer, &records[i], &error));
        twi_order_writer_close(writer);
        assert_ok(twi_order_log_read(path, &log, &error));
        assert_int_equal(log.count, 4);
        assert_int_equal(log.head.first, 0);
        assert_int_equal(log.head.towers, 3);
        assert_true(log.head.seed == INT64_MIN);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(log.records[i].tower, records[i].tower);
            assert_int_equal(log.records[i].pulled, records[i].pulled);
            assert_int_equal(log.records[i].batch, records[i].batch);
            assert_true(log.records[i].loss == records[i].loss);
        }
        twi_order_log_free(&log);
    }
    assert_int_equal(twi_order_writer_open(in_folder("new/folders/order/in-a-file"), &head, 0, &writer, &error),
                     TW_FAILED_PRECONDITION);
    assert_null(writer);
    assert_int_equal(memory.live, 0);
    stop_failing_allocations();
}

static void an_order_of_another_run_is_begun_anew(void **state)
{
    (void)state;
    const twi_order_head head = {.model = "small", .towers = 2, .batch = 4, .seed = 7};
    twi_order_head others[6];
    char before[4096];
    for (int i = 0; i < 6; i++)
        others[i] = head;
    snprintf(others[1].model, sizeof others[1].model, "other");
    others[2].towers = 3;
    others[3].batch = 5;
    others[4].seed = 8;
    for (int i = 0; i < 6; i++) {
        twi_order_record record = {.tower = 1};
        twi_order_writer *writer;
        twi_order_log log;
        const char *path = in_folder("run");
        int64_t step = i == 5 ? 3 : 1; /* 3: it has not come so far */
        assert_ok(twi_order_writer_open(path, &head, 0, &writer, &error));
        assert_ok(twi_order_writer_add(writer, &record, &error));
        twi_order_writer_close(writer);
        assert_ok(twi_order_writer_open(path, &others[i], step, &writer, &error));
        twi_order_writer_close(writer);
        assert_ok(twi_order_log_read(path, &log, &error));
        assert_int_equal(log.head.first, i == 0 ? 0 : step);
        assert_int_equal(log.count, i == 0);
        twi_order_log_free(&log);
    }
    assert_non_null(getcwd(before, sizeof before)); /* one that begins later, and lies where the process is */
    assert_int_equal(chdir(folder), 0);
    for (int64_t step = 3; step >= 1; step -= 2) {
        twi_order_writer *writer;
        twi_order_log log;
        assert_ok(twi_order_writer_open("run", &head, step, &writer, &error));
        twi_order_writer_close(writer);
        assert_ok(twi_order_log_read("run", &log, &error));
        assert_int_equal(log.head.first, step);
        twi_order_log_free(&log);
    }
    assert_int_equal(chdir(before), 0);
}

static tw_status decode_gif(const void *bytes, size_t size, twi_image *image)
{
    int frames = 0;
    tw_status status = twi_image_decode_gif(bytes, size, "picture", &frames, image, &error);
    assert_true(status != TW_OK || frames > 0);
    return status;
}

static tw_status decode_bmp(const void *bytes, size_t size, twi_image *image)
{
    return twi_image_decode_bmp(bytes, size, "picture", image, &error);
}

static tw_status decode_words(const void *bytes, size_t size, twi_image *image)
{
    return twi_image_decode_png_words(bytes, size, "picture", image, &error);
}

static tw_status decode_any(const void *bytes, size_t size, twi_image *image)
{
    return twi_image_decode(bytes, size, 0, 0, "picture", image, &error);
}

/* Cut anywhere, and each byte changed in some ways: refused by its name, or there are pixels. */
static void damage(const char *whole, size_t size, tw_status (*decode)(const void *, size_t, twi_image *))
{
    static const uint8_t changes[] = {0, 0xff, 1, 0x80, 0x0c, 0x55};
    for (size_t i = 0; i < size * sizeof changes; i++) {
        size_t length = i < size ? i : size;
        char *bytes = malloc(length ? length : 1); /* no larger, for the address sanitizer */
        twi_image image = {0};
        assert_non_null(bytes);
        memcpy(bytes, whole, length);
        if (length == size)
            bytes[i % size] = (char)(bytes[i % size] ^ changes[i / size]);
        error = (tw_error){0};
        tw_status status = decode(bytes, length, &image);
        if (status == TW_OK ? !image.pixels : !strstr(error.message, "picture"))
            fail_msg("changed at %zu: status %d: %s", i, status, error.message);
        twi_image_free(&image);
        free(bytes);
    }
}

static void a_picture_that_is_cut_or_changed_is_refused_or_shows_something(void **state)
{
    (void)state;
    uint8_t pixels[9 * 9 * 8];
    twi_jpeg_options options = {.quality = 60};
    char *bytes;
    size_t size;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 37);
    damage(gif, sizeof gif - 1, decode_gif);
    damage(bmp, sizeof bmp, decode_bmp);
    for (int channels = 1; channels <= 4; channels++) {
        twi_image image = {9, 9, channels, pixels};
        assert_ok(twi_image_encode_png(&image, 16, -1, &bytes, &size, &error));
        damage(bytes, size, decode_words);
        twi_free(bytes);
        assert_ok(twi_image_encode_png(&image, 8, -1, &bytes, &size, &error));
        damage(bytes, size, decode_any);
        twi_free(bytes);
        if (channels != 1 && channels != 3)
            continue;
        assert_ok(twi_image_encode_jpeg(&image, &options, &bytes, &size, &error));
        damage(bytes, size, decode_any);
        twi_free(bytes);
    }
}

/* A PNG whose head says another size; at: where, and the head's sum is made anew. */
static void put_side(char *png, size_t at, uint32_t side)
{
    const uint8_t big[] = {(uint8_t)(side >> 24), (uint8_t)(side >> 16), (uint8_t)(side >> 8), (uint8_t)side};
    memcpy(png + at, big, 4);
    uint32_t sum = (uint32_t)crc32(0, (const Bytef *)png + 12, 17);
    const uint8_t sum_bytes[] = {(uint8_t)(sum >> 24), (uint8_t)(sum >> 16), (uint8_t)(sum >> 8), (uint8_t)sum};
    memcpy(png + 29, sum_bytes, 4);
}

static void heads_of_pictures_claim_no_more_than_their_file_can_have(void **state)
{
    (void)state;
    static const uint32_t sides[][2] = {{0, 9},        {9, 0},     {16385, 1}, {1, 16385}, {16384, 16384}, {16384, 6000},
                                        {10000, 9999}, {16384, 9}, {9, 16384}, {0x7fffffff, 0x7fffffff}};
    uint8_t pixels[9 * 9 * 8] = {0};
    twi_image image = {9, 9, 3, pixels}, read;
    char *bytes;
    size_t size;
    for (int words = 0; words < 2; words++) {
        assert_ok(twi_image_encode_png(&image, words ? 16 : 8, -1, &bytes, &size, &error));
        for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
            put_side(bytes, 16, sides[i][0]);
            put_side(bytes, 20, sides[i][1]);
            error = (tw_error){0};
            assert_true((words ? decode_words : decode_any)(bytes, size, &read) != TW_OK);
            assert_non_null(strstr(error.message, "picture"));
        }
        twi_free(bytes);
    }
    assert_ok(twi_image_encode_png(&image, 8, -1, &bytes, &size, &error));
    assert_int_equal(decode_words(bytes, size, &read), TW_DATA_LOSS);
    assert_non_null(strstr(error.message, "no words of 16 bits"));
    twi_free(bytes);
}

static void pictures_that_no_format_has_are_not_written(void **state)
{
    (void)state;
    static const int wrong[][3] = {{0, 9, 3}, {9, 0, 3}, {1000001, 1, 3}, {1, 1000001, 3}, {9, 9, 0}, {9, 9, 5}};
    twi_jpeg_options options = {.quality = 90};
    char *bytes;
    size_t size;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        twi_image image = {wrong[i][0], wrong[i][1], wrong[i][2], NULL};
        assert_int_equal(twi_image_encode_png(&image, 8, -1, &bytes, &size, &error), TW_INVALID_ARGUMENT);
        assert_int_equal(twi_image_encode_jpeg(&image, &options, &bytes, &size, &error), TW_INVALID_ARGUMENT);
        assert_int_equal(twi_image_encode_png(&image, 16, -1, &bytes, &size, &error), TW_INVALID_ARGUMENT);
    }
    twi_image image = {9, 9, 2, NULL};
    assert_int_equal(twi_image_encode_jpeg(&image, &options, &bytes, &size, &error), TW_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "1 or 3 channels, not 2"));
}

/* Two rows of one pixel, in all kinds of pixels, with the lowest row first and last. */
static void rows_of_a_bmp_go_up_or_down(void **state)
{
    (void)state;
    static const int bits[] = {8, 24, 32, 16};
    for (int i = 0; i < 4; i++)
        for (int down = 0; down < 2; down++) {
            char file[62] = "BM";
            int channels = bits[i] / 8;
            twi_image read;
            twi_put32(file + 10, 54);
            twi_put32(file + 18, 1);
            twi_put32(file + 22, down ? (uint32_t)-2 : 2);
            file[28] = (char)bits[i];
            for (int k = 0; k < 8; k++)
                file[54 + k] = (char)(k + 1);
            if (bits[i] == 16) {
                assert_fails(decode_bmp(file, sizeof file, &read), TW_INVALID_ARGUMENT, "a BMP of 16 bits");
                continue;
            }
            assert_ok(decode_bmp(file, sizeof file, &read));
            assert_int_equal(read.channels, channels);
            assert_int_equal(read.pixels[0], (down ? 1 : 5) + (channels > 1 ? 2 : 0)); /* blue comes first */
            assert_int_equal(read.pixels[channels - 1], (down ? 1 : 5) + (channels == 4 ? 3 : 0));
            twi_image_free(&read);
        }
}

/* A GIF of one frame, of these codes: each a colour, of `width` bits and more as their table grows. */
static size_t pack_codes(uint8_t *to, int side[2], int least, const int *codes, int count)
{
    static const uint8_t head[] = "GIF89a\1\0\1\0\x80\0\0" "\1\2\3" "\4\5\6" /* two colours */
                                  "\x21\xf9\3\1\0\0\0"                        /* too short to name one to see through */
                                  "\x2c\0\0\0\0";
    uint8_t *at = to + sizeof head - 1, *piece;
    uint32_t held = 0;
    int bits = 0, next = (1 << least) + 1, width = least + 1;
    memcpy(to, head, sizeof head - 1);
    *at++ = (uint8_t)side[0], *at++ = (uint8_t)(side[0] >> 8), *at++ = (uint8_t)side[1], *at++ = (uint8_t)(side[1] >> 8);
    *at++ = 0;
    *at++ = (uint8_t)least;
    for (piece = at++; count > 0 || bits > 0; bits -= 8, held >>= 8) {
        for (; bits < 8 && count > 0; count--, bits += width, codes++) {
            if (next == 1 << width && width < 12)
                width++;
            held |= (uint32_t)*codes << bits;
            next += next < 4096;
        }
        if (at - piece > 255)
            piece = at++;
        *at++ = (uint8_t)held;
        *piece = (uint8_t)(at - piece - 1);
    }
    *at++ = 0;
    *at++ = 0x3b;
    return (size_t)(at - to);
}

static void codes_of_a_gif_stand_for_colours_that_there_are(void **state)
{
    (void)state;
    enum { SIDE = 80 };
    static int many[SIDE * SIDE];
    static uint8_t bytes[4 * SIDE * SIDE];
    int one[] = {1, 1}, all[] = {SIDE, SIDE};
    twi_image read;
    for (int i = 0; i < SIDE * SIDE; i++)
        many[i] = i % 3 == 0;
    size_t size = pack_codes(bytes, one, 2, (int[]){1}, 1);
    assert_ok(decode_gif(bytes, size, &read));
    assert_memory_equal(read.pixels, "\4\5\6", 3);
    twi_image_free(&read);
    size = pack_codes(bytes, one, 2, (int[]){3}, 1); /* of two colours the fourth */
    assert_fails(decode_gif(bytes, size, &read), TW_INVALID_ARGUMENT, "damaged GIF");
    size = pack_codes(bytes, one, 2, (int[]){6}, 1); /* what came before again, where nothing did */
    assert_fails(decode_gif(bytes, size, &read), TW_INVALID_ARGUMENT, "damaged GIF");
    size = pack_codes(bytes, (int[]){16385, 1}, 2, (int[]){1}, 1);
    assert_fails(decode_gif(bytes, size, &read), TW_INVALID_ARGUMENT, "too much for a GIF");
    size = pack_codes(bytes, (int[]){1, 16385}, 2, (int[]){1}, 1);
    assert_fails(decode_gif(bytes, size, &read), TW_INVALID_ARGUMENT, "too much for a GIF");
    size = pack_codes(bytes, (int[]){16384, 16384}, 2, (int[]){1}, 1);
    assert_fails(decode_gif(bytes, size, &read), TW_INVALID_ARGUMENT, "too much for a GIF");
    size = pack_codes(bytes, all, 2, many, SIDE * SIDE); /* more codes than their table has places */
    assert_ok(decode_gif(bytes, size, &read));
    for (int i = 0; i < SIDE * SIDE; i++)
        assert_int_equal(read.pixels[3 * i], many[i] ? 4 : 1);
    twi_image_free(&read);
}

/* Four colours, as printers have them. */
static size_t encode_for_printing(unsigned char **bytes)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr manager;
    unsigned long size = 0;
    uint8_t pixels[4 * 8] = {0};
    JSAMPROW row = pixels;
    *bytes = NULL;
    jpeg.err = jpeg_std_error(&manager);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, bytes, &size);
    jpeg.image_height = 1, jpeg.image_width = 8, jpeg.input_components = 4, jpeg.in_color_space = JCS_CMYK;
    jpeg_set_defaults(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    jpeg_write_scanlines(&jpeg, &row, 1);
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    return size;
}

static void windows_lie_in_their_picture(void **state)
{
    (void)state;
    static const int32_t outside[][4] = {{-1, 0, 1, 1}, {0, -1, 1, 1}, {0, 0, 0, 1},          {0, 0, 1, 0},
                                         {5, 0, 9, 1},  {0, 5, 1, 9},  {1, 0, INT32_MAX, 1}, {0, 1, 1, INT32_MAX}};
    static const int32_t inside[][4] = {{0, 0, 9, 9}, {0, 0, 1, 1}, {8, 8, 1, 1}, {3, 0, 2, 9}};
    uint8_t pixels[9 * 9 * 3] = {0};
    twi_image image = {9, 9, 3, pixels}, read;
    twi_jpeg_options options = {.quality = 90, .full_colours = true, .by_centimetre = true};
    unsigned char *printed;
    char *bytes;
    size_t size;
    assert_ok(twi_image_encode_jpeg(&image, &options, &bytes, &size, &error));
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        const twi_image_wanted wanted = {.channels = 3, .window = outside[i]};
        assert_int_equal(twi_image_decode_as(bytes, size, &wanted, "a", &read, &error), TW_INVALID_ARGUMENT);
        assert_non_null(strstr(error.message, "Invalid crop window"));
    }
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        const twi_image_wanted wanted = {.window = inside[i]};
        assert_ok(twi_image_decode_as(bytes, size, &wanted, "a", &read, &error));
        assert_int_equal(read.height, inside[i][2]);
        twi_image_free(&read);
    }
    twi_free(bytes);
    assert_ok(twi_image_encode_jpeg(&image, &options, &bytes, &size, &error));
    assert_ok(twi_image_decode(bytes, size, 4, 0, "a", &read, &error)); /* nothing is seen through */
    assert_int_equal(read.channels, 4);
    assert_int_equal(read.pixels[3], 255);
    twi_image_free(&read);
    twi_free(bytes);
    assert_ok(twi_image_encode_png(&image, 8, -1, &bytes, &size, &error));
    const twi_image_wanted corner = {.channels = 3, .window = inside[0]};
    assert_fails(twi_image_decode_as(bytes, size, &corner, "a", &read, &error), TW_INVALID_ARGUMENT, "'a' is no JPEG");
    twi_free(bytes);
    assert_fails(decode_any("text", 4, &read), TW_INVALID_ARGUMENT, "neither a JPEG nor a PNG");
    size = encode_for_printing(&printed);
    assert_int_equal(decode_any(printed, size, &read), TW_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "CMYK"));
    free(printed);
}

/* What may be wrong in a GIF beyond single bytes: frames of nothing, colours that no palette has, codes of no width. */
static void frames_of_pictures_are_whole(void **state)
{
    (void)state;
#define HEAD "GIF89a\2\0\2\0\200\0\0rgbRGB"
#define FRAME(wide, high, rest) "\54\0\0\0\0" wide "\0" high "\0" rest
    static const struct {
        const char *bytes;
        size_t size;
    } wrong[] = {
#define ROW(text) {text, sizeof text - 1}
        ROW(HEAD FRAME("\0", "\2", "\0\1\0\73")),             ROW(HEAD FRAME("\2", "\0", "\0\1\0\73")),
        ROW(HEAD FRAME("\2", "\2", "\0\0\1\104\0\73")),       ROW(HEAD FRAME("\2", "\2", "\0\11\1\104\0\73")),
        ROW(HEAD FRAME("\2", "\2", "\0\2\1\377\0\73")),       ROW(HEAD FRAME("\2", "\2", "\0\2\1\55\0\73")),
        ROW(HEAD FRAME("\2", "\2", "\0\2\2\334\5\0\73")),     ROW(HEAD FRAME("\2", "\2", "\0\2\0\73")),
        ROW("GIF89a\2\0\2\0\0\0\0" FRAME("\2", "\2", "\0\2\1\104\0\73")), ROW(HEAD "\73"), ROW(HEAD),
        ROW(HEAD "\41\371\4\1\0\0\1\0\73"),                 ROW(HEAD "\41"), ROW(HEAD "\41\371\4"),
        ROW(HEAD FRAME("\377\377", "\377", "\377\0\2\1\104\0\73")),
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        twi_image image = {0};
        error = (tw_error){0};
        tw_status status = decode_gif(wrong[i].bytes, wrong[i].size, &image);
        if (status == TW_OK ? !image.pixels : !strstr(error.message, "picture"))
            fail_msg("GIF %zu: status %d: %s", i, status, error.message);
        twi_image_free(&image);
    }
#undef HEAD
#undef FRAME
#undef ROW
}

/* What is cut is refused, or says less; the same text over and over gives the same bytes. */
static void a_text_that_is_cut_says_less_or_nothing(void **state)
{
    (void)state;
    static const char text[] = "node { name: 'a\\x41\\101' op: \"Const\" attr { key: 'v' value { tensor {\n"
                               "dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: [1.5e0, -inf] } } } }\n"
                               "versions { producer: 5 }";
    twi_text whole, part;
    assert_ok(to_wire(text, strlen(text), &whole));
    int refused = 0;
    for (size_t cut = 0; cut < strlen(text); cut++) {
        tw_status status = to_wire(text, cut, &part);
        refused += status != TW_OK;
        if (status == TW_OK && (part.size >= whole.size || memcmp(twi_text_string(&part), whole.data, part.size) != 0))
            fail_msg("cut at %zu: other bytes than the beginning of the whole", cut);
        twi_text_free(&part);
    }
    assert_true(refused > 150);
    twi_text_free(&whole);
}

static int make_folder(void **state)
{
    (void)state;
    folder = scratch_folder();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    remove_scratch(folder);
    return 0;
}

/* "orders": these alone. */
int main(int argc, char **argv)
{
    const struct CMUnitTest orders[] = {
        cmocka_unit_test(an_order_of_another_run_is_begun_anew),
        cmocka_unit_test(an_order_that_is_changed_is_no_order),
        cmocka_unit_test(an_order_is_refused_by_the_line_that_is_wrong),
        cmocka_unit_test(an_order_is_read_as_it_was_written),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
        cmocka_unit_test(every_failing_file_call_is_reported),
        unsanitized_test(every_failing_allocation_of_a_library_is_reported),
        cmocka_unit_test(headers_of_arrays_are_refused_by_what_is_wrong_in_them),
        cmocka_unit_test(a_packed_file_is_refused_wherever_it_is_cut_or_changed),
        cmocka_unit_test(what_is_packed_in_pieces_is_read_as_one),
        cmocka_unit_test(a_record_that_is_cut_while_its_file_is_open_is_missed),
        cmocka_unit_test(messages_may_become_so_many_times_their_size),
        cmocka_unit_test(only_members_that_are_wanted_are_unpacked),
        cmocka_unit_test(an_archive_is_refused_wherever_it_is_cut),
        cmocka_unit_test(entries_that_do_not_hold_what_they_say_are_refused),
        cmocka_unit_test(a_member_that_is_damaged_further_on_is_refused),
        cmocka_unit_test(data_that_is_cut_while_a_checkpoint_is_open_is_missed),
        cmocka_unit_test(parts_that_disagree_are_not_saved),
        cmocka_unit_test(the_name_of_the_newest_checkpoint_may_be_written_in_many_ways),
        cmocka_unit_test(a_name_of_the_newest_that_memory_lacks_for_is_not_passed_over),
        cmocka_unit_test(keys_of_all_kinds_divide_blocks),
        cmocka_unit_test(old_checkpoints_are_refused_by_what_is_wrong_in_them),
        cmocka_unit_test(heads_of_pictures_claim_no_more_than_their_file_can_have),
        cmocka_unit_test(pictures_that_no_format_has_are_not_written),
        cmocka_unit_test(windows_lie_in_their_picture),
        cmocka_unit_test(rows_of_a_bmp_go_up_or_down),
        cmocka_unit_test(codes_of_a_gif_stand_for_colours_that_there_are),
        cmocka_unit_test(frames_of_pictures_are_whole),
        cmocka_unit_test(what_snappy_packed_is_refused_by_each_of_its_lengths),
        cmocka_unit_test(constants_hold_what_their_type_has_or_are_refused),
        cmocka_unit_test(values_of_features_are_counted_or_refused),
        cmocka_unit_test(values_of_features_are_read_one_by_one_too),
        cmocka_unit_test(lists_of_features_are_read_one_by_one),
        cmocka_unit_test(texts_are_refused_by_line),
        cmocka_unit_test(texts_have_no_zeros),
        cmocka_unit_test(a_text_that_is_cut_says_less_or_nothing),
        cmocka_unit_test(a_picture_that_is_cut_or_changed_is_refused_or_shows_something),
    };
    int failed = cmocka_run_group_tests(orders, make_folder, remove_folder);
    bool alone = argc > 1 && strcmp(argv[1], "orders") == 0;
    return alone ? failed : failed + cmocka_run_group_tests(tests, make_folder, remove_folder);
}
