/* cifar10.c - the binary version of CIFAR-10.
 * A file is a sequence of records: a label byte, then 32x32 bytes of red, as many of green and of blue. */
#include "data/dataset.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>

enum {
    SIDE = 32,
    PLANE = SIDE * SIDE,
    CHANNELS = 3,
    CLASSES = 10,
    RECORD = 1 + CHANNELS * PLANE,
    FILE_RECORDS = 10000,
    READ_RECORDS = 64, /* at a time */
    MAX_FILES = 5,
};

static const char *const train_files[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                          "data_batch_4.bin", "data_batch_5.bin"};
static const char *const test_files[] = {"test_batch.bin"};

static tw_status check_size(const char *path, int64_t size, bool allow_fewer, tw_error *error)
{
    int64_t whole = (int64_t)FILE_RECORDS * RECORD;
    if (size > whole)
        return twi_fail(error, TW_DATA_LOSS,
                        "'%s' has %lld bytes, more than the %lld of a CIFAR-10 binary file (%d records of %d bytes)",
                        path, (long long)size, (long long)whole, FILE_RECORDS, RECORD);
    if (!allow_fewer && size != whole)
        return twi_fail(error, TW_DATA_LOSS,
                        "'%s' is truncated: %lld bytes found, %lld expected (%d records of %d bytes)", path,
                        (long long)size, (long long)whole, FILE_RECORDS, RECORD);
    if (size == 0 || size % RECORD != 0)
        return twi_fail(error, TW_DATA_LOSS,
                        "'%s' has %lld bytes, which is not a whole number of CIFAR-10 records of %d bytes", path,
                        (long long)size, RECORD);
    return TW_OK;
}

/* One record into example `index`: planes become interleaved. */
static void take_record(const uint8_t *record, tw_dataset *dataset, int64_t index)
{
    const uint8_t *red = record + 1, *green = red + PLANE, *blue = green + PLANE;
    uint8_t *pixel = dataset->images + index * CHANNELS * PLANE;
    dataset->labels[index] = record[0];
    for (int i = 0; i < PLANE; i++, pixel += CHANNELS) {
        pixel[0] = red[i];
        pixel[1] = green[i];
        pixel[2] = blue[i];
    }
}

static tw_status read_records(const char *path, int64_t count, tw_dataset *dataset, int64_t index, uint8_t *buffer,
                              tw_error *error)
{
    twi_file_reader *reader = NULL;
    tw_status status;
    TWI_TRY(twi_file_open(path, &reader, error));
    for (int64_t first = 0; first < count; first += READ_RECORDS) {
        int64_t some = count - first < READ_RECORDS ? count - first : READ_RECORDS;
        TWI_TRY(twi_file_read_at(reader, (uint64_t)(first * RECORD), buffer, (size_t)(some * RECORD), error));
        for (int64_t i = 0; i < some; i++) {
            const uint8_t *record = buffer + i * RECORD;
            if (record[0] >= CLASSES) {
                status =
                    twi_fail(error, TW_DATA_LOSS,
                             "'%s' is not a CIFAR-10 binary file: record %lld (byte %lld) has label %d, expected "
                             "0 to %d",
                             path, (long long)(first + i), (long long)(first + i) * RECORD, record[0], CLASSES - 1);
                goto done;
            }
            take_record(record, dataset, index + first + i);
        }
    }
done:
    twi_file_reader_close(reader);
    return status;
}

tw_status twi_cifar10_load(const char *directory, tw_dataset_split split, bool allow_fewer, tw_dataset **dataset,
                           tw_error *error)
{
    const char *const *names = split == TW_SPLIT_TRAIN ? train_files : test_files;
    int num_files = split == TW_SPLIT_TRAIN ? 5 : 1;
    char path[TWI_PATH_SIZE], inner[TWI_PATH_SIZE];
    int64_t records[MAX_FILES], total = 0, size;
    tw_dataset *d = NULL;
    uint8_t *buffer = NULL;
    tw_status status;

    if (!twi_data_path(inner, directory, TWI_CIFAR10_FOLDER) || !twi_data_path(path, inner, names[0]))
        return twi_fail(error, TW_INVALID_ARGUMENT, "the data directory's name is too long");
    if (twi_data_size(path, &size, NULL) != TW_NOT_FOUND)
        directory = inner;
    twi_data_path(path, directory, names[0]);
    if (twi_data_size(path, &size, NULL) == TW_NOT_FOUND) {
        char looked_for[128];
        snprintf(looked_for, sizeof looked_for, "%s there and in %s/", names[0], TWI_CIFAR10_FOLDER);
        return twi_data_missing(error, "cifar10", directory, looked_for);
    }
    for (int i = 0; i < num_files; i++) {
        twi_data_path(path, directory, names[i]);
        TWI_TRY(twi_data_size(path, &size, error));
        TWI_TRY(check_size(path, size, allow_fewer, error));
        records[i] = size / RECORD;
        total += records[i];
    }
    TWI_TRY(twi_dataset_create("cifar10", total, SIDE, SIDE, CHANNELS, CLASSES, &d, error));
    buffer = twi_alloc(READ_RECORDS * RECORD);
    if (!buffer) {
        status = twi_fail_memory(error, "reading CIFAR-10");
        goto done;
    }
    for (int64_t i = 0, index = 0; i < num_files; index += records[i++]) {
        twi_data_path(path, directory, names[i]);
        TWI_TRY(read_records(path, records[i], d, index, buffer, error));
        TWI_TRY(twi_dataset_add_file(d, path, error));
    }
    *dataset = d;
    d = NULL;
done:
    twi_free(buffer);
    tw_dataset_destroy(d);
    return status;
}
