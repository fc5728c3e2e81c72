/* idx.c - the IDX files of MNIST and of the sets made after it, plain or compressed with gzip.
 * A file is: two zero bytes, the type of an element (8: unsigned byte), the number of dimensions, each dimension as
 * 4 bytes with the highest first, then the elements. */
#include "data/dataset.h"

#include "base/file.h"
#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum {
    MAX_DIMS = 3,
    CLASSES = 10,
    MAX_SIDE = 4096,
    MAX_RATIO = 100, /* of unpacked to packed bytes: real images stay under 10; more is taken for an attack */
};

typedef struct idx {
    gzFile file; /* reads plain files as they are */
    char path[TWI_PATH_SIZE];
    int64_t file_size; /* on disk */
    bool packed;
    int64_t dims[MAX_DIMS];
    int64_t elements; /* product of dims */
} idx;

/* Opens directory/name or directory/name.gz, whichever is there. */
static tw_status open_idx(idx *f, const char *directory, const char *name, tw_error *error)
{
    static const char *const endings[] = {"", ".gz"};
    for (int i = 0; i < 2; i++) {
        char file_name[64];
        snprintf(file_name, sizeof file_name, "%s%s", name, endings[i]);
        if (!twi_data_path(f->path, directory, file_name))
            return twi_fail(error, TW_INVALID_ARGUMENT, "the data directory's name is too long");
        tw_status status = twi_data_size(f->path, &f->file_size, error);
        if (status == TW_NOT_FOUND)
            continue;
        if (status != TW_OK)
            return status;
        errno = ENOMEM; /* gzopen sets it only when the file is at fault */
        f->file = gzopen(f->path, "rbe");
        return f->file ? TW_OK : twi_fail_file(error, "open", f->path);
    }
    return TW_NOT_FOUND;
}

/* Exactly `size` bytes, or an error that says where the file ended and at what size it should have. */
static tw_status read_bytes(idx *f, void *bytes, int64_t size, int64_t offset, int64_t expected, tw_error *error)
{
    for (int64_t done = 0; done < size;) {
        int64_t wanted = size - done < 1 << 24 ? size - done : 1 << 24;
        int found = gzread(f->file, (char *)bytes + done, (unsigned)wanted);
        if (found > 0) {
            done += found;
            continue;
        }
        int code;
        const char *reason = gzerror(f->file, &code);
        if (found < 0 && code != Z_BUF_ERROR)
            return twi_fail(error, TW_DATA_LOSS, "'%s' is damaged after %lld bytes: %s", f->path,
                            (long long)(offset + done), code == Z_ERRNO ? strerror(errno) : reason);
        return twi_fail(error, TW_DATA_LOSS, "'%s' is truncated: %lld bytes%s found, %lld expected", f->path,
                        (long long)(offset + done), f->packed ? " (unpacked)" : "", (long long)expected);
    }
    return TW_OK;
}

static tw_status read_header(idx *f, int num_dims, tw_error *error)
{
    uint8_t bytes[4 + 4 * MAX_DIMS];
    int header = 4 + 4 * num_dims;
    tw_status status = read_bytes(f, bytes, header, 0, header, error);
    if (status != TW_OK)
        return status;
    f->packed = !gzdirect(f->file);
    if (bytes[0] != 0 || bytes[1] != 0 || bytes[2] != 8 || bytes[3] != num_dims)
        return twi_fail(error, TW_DATA_LOSS,
                        "'%s' is not an IDX file of bytes in %d dimension%s: it starts with %02x %02x %02x %02x, "
                        "expected 00 00 08 %02x",
                        f->path, num_dims, num_dims > 1 ? "s" : "", bytes[0], bytes[1], bytes[2], bytes[3], num_dims);
    f->elements = 1;
    for (int i = 0; i < num_dims; i++) {
        const uint8_t *b = bytes + 4 + 4 * i;
        f->dims[i] = (int64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
        if (f->dims[i] == 0 || (i > 0 && f->dims[i] > MAX_SIDE))
            return twi_fail(error, TW_DATA_LOSS, "'%s' says that dimension %d is %lld; expected 1 to %lld", f->path, i,
                            (long long)f->dims[i], i > 0 ? (long long)MAX_SIDE : (long long)UINT32_MAX);
        f->elements *= f->dims[i];
    }
    int64_t expected = header + f->elements;
    if (!f->packed && f->file_size != expected)
        return twi_fail(error, TW_DATA_LOSS, "'%s' %s: %lld bytes found, %lld expected for what its header says",
                        f->path, f->file_size < expected ? "is truncated" : "is too long", (long long)f->file_size,
                        (long long)expected);
    if (expected / MAX_RATIO > f->file_size)
        return twi_fail(error, TW_DATA_LOSS,
                        "'%s' has %lld bytes, but its header speaks of %lld: truncated, or not what it seems", f->path,
                        (long long)f->file_size, (long long)expected);
    return TW_OK;
}

/* All elements, and then the end of the file: reading on to it lets zlib check its sum. */
static tw_status read_elements(idx *f, int num_dims, uint8_t *bytes, tw_error *error)
{
    int64_t header = 4 + 4 * num_dims;
    tw_status status = read_bytes(f, bytes, f->elements, header, header + f->elements, error);
    if (status != TW_OK)
        return status;
    char more;
    int found = gzread(f->file, &more, 1), code;
    const char *reason = gzerror(f->file, &code);
    if (code == Z_BUF_ERROR) /* the sum itself is cut off; found is 0 */
        return twi_fail(error, TW_DATA_LOSS, "'%s' is truncated in its last 8 bytes", f->path);
    if (found < 0)
        return twi_fail(error, TW_DATA_LOSS, "'%s' is damaged: %s", f->path, reason);
    if (found > 0)
        return twi_fail(error, TW_DATA_LOSS, "'%s' is too long: its header says %lld bytes (unpacked)", f->path,
                        (long long)(header + f->elements));
    return TW_OK;
}

static const char *const image_files[] = {"train-images-idx3-ubyte", "t10k-images-idx3-ubyte"};
static const char *const label_files[] = {"train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"};

static tw_status open_or_say_what_is_missing(idx *f, const char *name, const char *directory, const char *file_name,
                                             tw_error *error)
{
    tw_status status = open_idx(f, directory, file_name, error);
    if (status != TW_NOT_FOUND)
        return status;
    char looked_for[128];
    snprintf(looked_for, sizeof looked_for, "%s and %s.gz", file_name, file_name);
    return twi_data_missing(error, name, directory, looked_for);
}

tw_status twi_idx_load(const char *name, const char *directory, tw_dataset_split split, tw_dataset **dataset,
                       tw_error *error)
{
    idx images = {0}, labels = {0};
    tw_dataset *d = NULL;
    tw_status status;
    TWI_TRY(open_or_say_what_is_missing(&images, name, directory, image_files[split], error));
    TWI_TRY(open_or_say_what_is_missing(&labels, name, directory, label_files[split], error));
    TWI_TRY(read_header(&images, 3, error));
    TWI_TRY(read_header(&labels, 1, error));
    if (images.dims[0] != labels.dims[0]) {
        status = twi_fail(error, TW_DATA_LOSS, "'%s' has %lld images, but '%s' has %lld labels", images.path,
                          (long long)images.dims[0], labels.path, (long long)labels.dims[0]);
        goto done;
    }
    TWI_TRY(twi_dataset_create(name, images.dims[0], (int)images.dims[1], (int)images.dims[2], 1, CLASSES, &d, error));
    TWI_TRY(read_elements(&images, 3, d->images, error));

    /* The bytes go to the end of the array of four times their size and are widened from its start on. */
    uint8_t *bytes = (uint8_t *)d->labels + 3 * d->count;
    TWI_TRY(read_elements(&labels, 1, bytes, error));
    for (int64_t i = 0; i < d->count; i++) {
        uint8_t label = bytes[i];
        if (label >= CLASSES) {
            status = twi_fail(error, TW_DATA_LOSS, "'%s': label %lld (byte %lld) is %d, expected 0 to %d", labels.path,
                              (long long)i, (long long)i + 8, label, CLASSES - 1);
            goto done;
        }
        d->labels[i] = label;
    }
    TWI_TRY(twi_dataset_add_file(d, images.path, error));
    TWI_TRY(twi_dataset_add_file(d, labels.path, error));
    *dataset = d;
    d = NULL;
done:
    if (images.file)
        gzclose(images.file);
    if (labels.file)
        gzclose(labels.file);
    tw_dataset_destroy(d);
    return status;
}

bool twi_idx_first_labels(const char *directory, uint8_t *labels, int count)
{
    idx f = {0};
    bool found = open_idx(&f, directory, label_files[TW_SPLIT_TRAIN], NULL) == TW_OK &&
                 read_header(&f, 1, NULL) == TW_OK && f.elements >= count &&
                 read_bytes(&f, labels, count, 0, count, NULL) == TW_OK;
    if (f.file)
        gzclose(f.file);
    return found;
}
