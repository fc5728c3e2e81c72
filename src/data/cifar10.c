/* cifar10.c - the binary version of CIFAR-10.
 * A file is a sequence of records: a label byte, then 32x32 bytes of red, as many of green and of blue. */
#include "data/dataset.h"

#include "base/file.h"
#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SIDE = 32,
    PLANE = SIDE * SIDE,
    CHANNELS = 3,
    CLASSES = 10,
    RECORD = 1 + CHANNELS * PLANE,
    FILE_RECORDS = 10000,
    READ_RECORDS = 16, /* at a time, on the stack */
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

static tw_status take_records(twi_file_reader *reader, const char *path, int64_t first, int64_t some, uint8_t *buffer,
                              tw_dataset *dataset, int64_t index, tw_error *error)
{
    tw_status status = twi_file_read_at(reader, (uint64_t)(first * RECORD), buffer, (size_t)(some * RECORD), error);
    for (int64_t i = 0; status == TW_OK && i < some; i++) {
        const uint8_t *record = buffer + i * RECORD;
        if (record[0] >= CLASSES)
            return twi_fail(error, TW_DATA_LOSS,
                            "'%s' is not a CIFAR-10 binary file: record %" PRId64 " (byte %" PRId64 ") has label %d, "
                            "expected 0 to %d", path, first + i, (first + i) * RECORD, record[0], CLASSES - 1);
        take_record(record, dataset, index + first + i);
    }
    return status;
}

/* By all threads: a training's first line waits for it. Of several errors the first in the file is told. */
static tw_status read_records(const char *path, int64_t count, tw_dataset *dataset, int64_t index, tw_error *error)
{
    twi_file_reader *reader = NULL;
    int64_t failed_at = count;
    tw_status status = twi_file_open(path, &reader, error);
    if (status != TW_OK)
        return status;
#pragma omp parallel
    {
        uint8_t buffer[READ_RECORDS * RECORD];
#pragma omp for
        for (int64_t first = 0; first < count; first += READ_RECORDS) {
            int64_t some = count - first < READ_RECORDS ? count - first : READ_RECORDS;
            tw_error own = {0};
            tw_status one = take_records(reader, path, first, some, buffer, dataset, index, &own);
            if (one == TW_OK)
                continue;
#pragma omp critical(cifar10_failed)
            if (first < failed_at) {
                failed_at = first;
                status = one;
                if (error)
                    *error = own;
            }
        }
    }
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
    for (int64_t i = 0, index = 0; i < num_files; index += records[i++]) {
        twi_data_path(path, directory, names[i]);
        TWI_TRY(read_records(path, records[i], d, index, error));
        TWI_TRY(twi_dataset_add_file(d, path, error));
    }
    *dataset = d;
    d = NULL;
done:
    tw_dataset_destroy(d);
    return status;
}
