/* files.c - targets that read files and texts. */
#include "fuzz.h"

#include "base/memory.h"
#include "base/tfrecord.h"
#include "data/dataset.h"
#include "data/fetch.h"
#include "device/name.h"
#include "format/bundle.h"
#include "format/example.h"
#include "format/proto/text.pb-c.h"
#include "format/slice.h"
#include "format/snappy.h"
#include "format/table.h"
#include "format/text_format.h"
#include "image/image.h"
#include "train/order_log.h"
#include "train/reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tower/io.h>
#include <unistd.h>

/* ---- layouts --------------------------------------------------------------------------------------------------- */

static tw_status look_at_entry(void *user, const char *key, size_t key_size, const char *value, size_t value_size,
                               tw_error *error)
{
    (void)error;
    for (size_t i = 0; i < key_size; i++)
        *(unsigned *)user += (unsigned char)key[i];
    for (size_t i = 0; i < value_size; i++)
        *(unsigned *)user += (unsigned char)value[i];
    return TW_OK;
}

void fuzz_table(const uint8_t *bytes, size_t size)
{
    tw_error error = {0};
    unsigned sum = 0;
    twi_table_read((const char *)bytes, size, look_at_entry, &sum, &error);
}

void fuzz_snappy(const uint8_t *bytes, size_t size)
{
    char *expanded;
    size_t expanded_size;
    if (twi_snappy_expand((const char *)bytes, size, &expanded, &expanded_size) == TW_OK)
        twi_free(expanded);
}

void fuzz_records(const uint8_t *bytes, size_t size)
{
    tw_error error = {0};
    twi_record_reader *reader;
    if (twi_record_open(fuzz_file("records", bytes, size), &reader, &error) != TW_OK)
        return;
    const char *record;
    size_t record_size;
    while (twi_record_next(reader, &record, &record_size, &error) == TW_OK)
        if (twi_record_offset(reader) > size)
            abort();
    twi_record_close(reader);
}

/* Strings of what was read. */
static void free_strings(tw_string *strings, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        twi_free(strings[i].data);
}

static void read_feature(const twi_feature *feature)
{
    int64_t count = twi_feature_count(feature);
    if (count < 0 || feature->dtype == TW_INVALID_DTYPE)
        return;
    void *values = calloc((size_t)count + 1, tw_dtype_size(feature->dtype));
    if (!values)
        abort();
    twi_feature_read(feature, values);
    if (feature->dtype == TW_STRING)
        free_strings(values, count);
    free(values);
}

/* As an example, and as the lists of a sequence. */
void fuzz_example(const uint8_t *bytes, size_t size)
{
    twi_example example = twi_example_begin(bytes, size), sequence = twi_sequence_begin(bytes, size);
    twi_feature feature, list;
    while (twi_example_next(&example, &feature) == 1)
        read_feature(&feature);
    while (twi_sequence_next(&sequence, &list) == 1) {
        const char *at = list.values;
        while (twi_list_next(&list, &at, &feature) == 1)
            read_feature(&feature);
    }
}

void fuzz_events(const uint8_t *bytes, size_t size)
{
    tw_error error = {0};
    tw_event_reader *reader;
    tw_event event;
    unsigned letters = 0;
    if (tw_event_reader_open(fuzz_file("events.out.tfevents.1.fuzz", bytes, size), &reader, &error) != TW_OK)
        return;
    while (tw_event_reader_next(reader, &event, &error) == TW_OK)
        for (const char *tag = event.tag; tag && *tag; tag++)
            letters += (unsigned char)*tag;
    (void)letters;
    tw_event_reader_close(reader);
}

void fuzz_text(const uint8_t *bytes, size_t size)
{
    tw_error error = {0};
    twi_text wire = {0};
    char word[32];
    twi_text_first_field((const char *)bytes, size, word, sizeof word);
    twi_text_to_wire(&twi_text__graph_def__descriptor, (const char *)bytes, size, &wire, &error);
    twi_text_free(&wire);
}

/* ---- checkpoints ----------------------------------------------------------------------------------------------- */

static void read_checkpoint(const char *path)
{
    tw_error error = {0};
    tw_checkpoint *checkpoint;
    if (tw_checkpoint_open(path, &checkpoint, &error) != TW_OK)
        return;
    for (int i = 0; i < tw_checkpoint_count(checkpoint); i++) {
        tw_tensor *tensor = NULL;
        const char *name = tw_checkpoint_name(checkpoint, i);
        tw_checkpoint_shape(checkpoint, i);
        tw_checkpoint_bytes(checkpoint, i);
        if (tw_checkpoint_find(checkpoint, name) != i)
            abort();
        if (tw_checkpoint_read(checkpoint, name, &tensor, &error) == TW_OK)
            tw_tensor_release(tensor);
    }
    tw_checkpoint_close(checkpoint);
    tw_checkpoint_verify(path, &error);
}

void fuzz_checkpoint(const uint8_t *bytes, size_t size)
{
    char path[128];
    numbers n = {bytes, bytes + size}, index = next_part(&n);
    snprintf(path, sizeof path, "%s/model.ckpt-1", fuzz_folder());
    fuzz_file("model.ckpt-1.index", index.at, (size_t)(index.end - index.at));
    fuzz_file("model.ckpt-1.data-00000-of-00001", n.at, (size_t)(n.end - n.at));
    read_checkpoint(path);
}

void fuzz_state(const uint8_t *bytes, size_t size)
{
    char path[4096];
    int64_t step;
    tw_error error = {0};
    tw_checkpoint_list *list;
    fuzz_file("checkpoint", bytes, size);
    tw_checkpoint_latest(fuzz_folder(), path, sizeof path, &step, &error);
    if (tw_checkpoint_list_open(fuzz_folder(), &list, &error) == TW_OK)
        tw_checkpoint_list_close(list);
    tw_checkpoint_tidy(fuzz_folder(), "model.ckpt", &error);
}

/* ---- data sets ------------------------------------------------------------------------------------------------- */

static void load(const char *name)
{
    tw_error error = {0};
    for (int split = TW_SPLIT_TRAIN; split <= TW_SPLIT_TEST; split++) {
        tw_dataset *dataset;
        if (tw_dataset_load(name, fuzz_folder(), (tw_dataset_split)split,
                            TW_OPTIONS(tw_dataset_options, .allow_fewer = true, .height = 4), &dataset,
                            &error) != TW_OK)
            continue;
        for (int64_t i = 0; i < tw_dataset_count(dataset); i++)
            if (tw_dataset_labels(dataset)[i] < 0 || tw_dataset_labels(dataset)[i] >= tw_dataset_classes(dataset))
                abort();
        tw_dataset_destroy(dataset);
    }
}

void fuzz_idx(const uint8_t *bytes, size_t size)
{
    static const char *const names[4] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                         "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
    numbers n = {bytes, bytes + size};
    bool zipped = next_byte(&n) & 1;
    for (int i = 0; i < 4; i++) {
        char name[64], path[128];
        numbers part = next_part(&n);
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "%s%s", names[i], k ? ".gz" : "");
            snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
            unlink(path);
            if (k == zipped)
                fuzz_file(name, part.at, (size_t)(part.end - part.at));
        }
    }
    load("mnist");
}

void fuzz_cifar(const uint8_t *bytes, size_t size)
{
    static const char *const names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                        "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
    for (int i = 0; i < 6; i++)
        fuzz_file(names[i], bytes, size);
    load("cifar10");
}

void fuzz_list(const uint8_t *bytes, size_t size)
{
    fuzz_file("labels.csv", bytes, size);
    load("images");
}

void fuzz_npy(const uint8_t *bytes, size_t size)
{
    tw_error error = {0};
    tw_tensor *tensor = NULL;
    if (tw_tensor_read_npy(fuzz_file("images.npy", bytes, size), &tensor, &error) != TW_OK)
        return;
    tw_tensor_release(tensor);
    fuzz_file("labels.npy", bytes, size);
    load("images");
}

void fuzz_image(const uint8_t *bytes, size_t size)
{
    tw_error error = {0};
    uint8_t pixels[8 * 8 * 4];
    for (int channels = 0; channels <= 4; channels++) {
        twi_image image = {0};
        if (channels == 2 || twi_image_decode(bytes, size, channels, 8, "picture", &image, &error) != TW_OK)
            continue;
        twi_image_fit(&image, 8, 8, pixels, &error);
        twi_image_free(&image);
    }
    twi_image image = {0};
    static const int32_t window[] = {1, 1, 3, 2};
    static const twi_image_wanted cut = {.fast = true, .printed = true, .window = window},
                                  small = {.ratio = 8, .plain_colours = true, .printed = true};
    if (twi_image_decode_as(bytes, size, &cut, "picture", &image, &error) == TW_OK)
        twi_image_free(&image);
    if (twi_image_decode_as(bytes, size, &small, "picture", &image, &error) == TW_OK)
        twi_image_free(&image);
    int frames;
    if (twi_image_decode_gif(bytes, size, "picture", &frames, &image, &error) == TW_OK)
        twi_image_free(&image);
    if (twi_image_decode_bmp(bytes, size, "picture", &image, &error) == TW_OK)
        twi_image_free(&image);
}

void fuzz_archive(const uint8_t *bytes, size_t size)
{
    static const twi_fetch_set set = {.name = "set", .title = "a set", .folder = "set",
                                      .members = {"data_batch_1.bin", "test_batch.bin"}, .member_size = 16};
    tw_error error = {0};
    fuzz_file("set.tar.gz", bytes, size);
    twi_unpack(&set, fuzz_folder(), "set.tar.gz", &error);
}

/* ---- texts ----------------------------------------------------------------------------------------------------- */

void fuzz_order_log(const uint8_t *bytes, size_t size)
{
    tw_error error = {0};
    twi_order_log log = {0};
    twi_order_writer *writer;
    const char *path = fuzz_file("order.log", bytes, size);
    if (twi_order_log_read(path, &log, &error) != TW_OK)
        return;
    if (twi_order_writer_open(path, &log.head, log.head.first + log.count / 2, &writer, &error) == TW_OK)
        twi_order_writer_close(writer);
    twi_order_log_free(&log);
}

/* A line, without its end; false: there are no more. */
static bool next_line(numbers *n, char *line, size_t size)
{
    const uint8_t *end = memchr(n->at, '\n', (size_t)(n->end - n->at));
    size_t length = (size_t)((end ? end : n->end) - n->at);
    if (n->at == n->end)
        return false;
    snprintf(line, size, "%.*s", (int)(length < size ? length : size - 1), (const char *)n->at);
    n->at = end ? end + 1 : n->end;
    return true;
}

static void print_and_parse_again(const twi_device_name *name)
{
    char text[256], again[256];
    tw_error error = {0};
    twi_device_name other;
    twi_device_name_print(name, text, sizeof text);
    if (twi_device_name_parse(text, &other, &error) != TW_OK)
        abort();
    if (strcmp(text, twi_device_name_print(&other, again, sizeof again)) != 0)
        abort();
}

void fuzz_device(const uint8_t *bytes, size_t size)
{
    char line[512] = "";
    tw_error error = {0};
    numbers n = {bytes, bytes + size};
    twi_device_name names[2], merged;
    for (int i = 0; i < 2; i++) {
        if ((size && !next_line(&n, line, sizeof line)) || twi_device_name_parse(line, &names[i], &error) != TW_OK)
            return;
        print_and_parse_again(&names[i]);
    }
    merged = twi_device_name_override(&names[0], &names[1]);
    print_and_parse_again(&merged);
    if (twi_device_name_merge(&names[0], &names[1], true, &merged, &error) == TW_OK)
        print_and_parse_again(&merged);
    twi_device_name_matches(&names[0], &names[1]);
}

void fuzz_specs(const uint8_t *bytes, size_t size)
{
    char line[512];
    tw_error error = {0};
    numbers n = {bytes, bytes + size};
    while (next_line(&n, line, sizeof line)) {
        twi_slice slice;
        tw_all_reduce_check(line, &error);
        if (twi_slice_parse(line, &slice, &error) != TW_OK)
            continue;
        twi_text key = {0}, text = {0};
        twi_slice_print(&slice, &text);
        twi_slice_key("name", &slice, &key);
        twi_text_free(&key);
        twi_text_free(&text);
    }
}
