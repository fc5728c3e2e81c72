/* dataset.c - making, loading, describing and freeing data sets.
 * Lives here:  what all data sets share, whatever files they come from.
 * Never here:  file formats. */
#include "data/pictures.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/philox.h"
#include "base/sized.h"
#include "base/status.h"
#include "stream/stream.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_SIDE = 4096, MAX_CHANNELS = 4 };

static const struct known {
    const char *name, *title, *packaged;
    int count[2], side, channels; /* of images: for training and for testing */
    const char *classes[10];
    uint8_t first_labels[8]; /* of the training half: tells apart sets with the same file names */
} known_sets[] = {
    {"cifar10",
     "CIFAR-10",
     NULL,
     {50000, 10000}, 32, 3,
     {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"},
     {0}},
    {"mnist", "MNIST", NULL, {60000, 10000}, 28, 1, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, {5, 0, 4, 1, 9, 2, 1, 3}},
    {"fashion-mnist",
     "Fashion-MNIST",
     "/usr/share/datasets/fashion-mnist",
     {60000, 10000}, 28, 1,
     {"T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"},
     {9, 0, 0, 3, 0, 2, 7, 2}},
};
enum { CIFAR10, MNIST, FASHION_MNIST, NUM_KNOWN };
#define OWN "images" /* of one's own: own.c */

static const struct known *find_known(const char *name)
{
    for (int i = 0; i < NUM_KNOWN; i++)
        if (strcmp(known_sets[i].name, name) == 0)
            return &known_sets[i];
    return NULL;
}

bool twi_data_path(char path[TWI_PATH_SIZE], const char *directory, const char *name)
{
    int length = snprintf(path, TWI_PATH_SIZE, "%s/%s", directory, name);
    return length > 0 && length < TWI_PATH_SIZE;
}

tw_status twi_data_size(const char *path, int64_t *size, tw_error *error)
{
    struct stat about;
    if (stat(path, &about) != 0) {
        if (errno == ENOTDIR) /* part of the path is a file: then there is none below it */
            errno = ENOENT;
        return twi_fail_file(error, "open", path);
    }
    if (!S_ISREG(about.st_mode))
        return twi_fail(error, TW_INVALID_ARGUMENT, "'%s' is not a regular file", path);
    *size = about.st_size;
    return TW_OK;
}

tw_status twi_data_missing(tw_error *error, const char *name, const char *directory, const char *looked_for)
{
    const struct known *known = find_known(name);
    struct stat about;
    if (stat(directory, &about) != 0)
        return twi_fail(error, TW_NOT_FOUND,
                        "data directory '%s': %s; tw_data_fetch(\"%s\", \"%s\") makes it and downloads %s there",
                        directory, strerror(errno), name, directory, known->title);
    if (!S_ISDIR(about.st_mode))
        return twi_fail(error, TW_NOT_FOUND, "data directory '%s' is not a directory", directory);
    return twi_fail(error, TW_NOT_FOUND,
                    "%s is not in '%s': looked for %s; tw_data_fetch(\"%s\", \"%s\") downloads it there",
                    known->title, directory, looked_for, name, directory);
}

tw_status twi_dataset_describe(const char *name, int64_t count, int height, int width, int channels, int classes,
                               tw_dataset **dataset, tw_error *error)
{
    tw_dataset *d = twi_alloc(sizeof *d);
    if (!d)
        return twi_fail_memory(error, "making a data set");
    snprintf(d->name, sizeof d->name, "%s", name);
    d->count = count;
    d->height = height;
    d->width = width;
    d->channels = channels;
    d->classes = classes;
    pthread_mutex_init(&d->digesting, NULL);
    d->labels = twi_alloc_array((size_t)count, sizeof *d->labels);
    if (!d->labels) {
        tw_dataset_destroy(d);
        return twi_fail_memory(error, "making a data set");
    }
    *dataset = d;
    return TW_OK;
}

tw_status twi_dataset_make_room(tw_dataset *d, int64_t count, tw_error *error)
{
    size_t bytes;
    if (!__builtin_mul_overflow((size_t)count, twi_image_bytes(d), &bytes))
        d->images = twi_resize(NULL, bytes ? bytes : 1);
    if (!d->images)
        return twi_fail(error, TW_RESOURCE_EXHAUSTED,
                        "out of memory while making data set '%s' of %lld images of %dx%dx%d", d->name,
                        (long long)count, d->height, d->width, d->channels);
    return TW_OK;
}

tw_status twi_dataset_create(const char *name, int64_t count, int height, int width, int channels, int classes,
                             tw_dataset **dataset, tw_error *error)
{
    tw_dataset *d;
    tw_status status = twi_dataset_describe(name, count, height, width, channels, classes, &d, error);
    if (status != TW_OK)
        return status;
    status = twi_dataset_make_room(d, count, error);
    if (status == TW_OK)
        *dataset = d;
    else
        tw_dataset_destroy(d);
    return status;
}

tw_status twi_dataset_add_file(tw_dataset *d, const char *path, tw_error *error)
{
    char *copy = twi_strdup(path);
    if (copy && twi_push(&d->files, copy))
        return TW_OK;
    twi_free(copy);
    return twi_fail_memory(error, "reading a data set");
}

void tw_dataset_destroy(tw_dataset *dataset)
{
    if (!dataset)
        return;
    twi_pictures_destroy(dataset->pictures);
    twi_free(dataset->images);
    twi_free(dataset->labels);
    for (int i = 0; i < dataset->files.count; i++)
        twi_free(dataset->files.items[i]);
    twi_array_free(&dataset->files);
    for (int i = 0; dataset->class_names && i < dataset->classes; i++)
        twi_free(dataset->class_names[i]);
    twi_free(dataset->class_names);
    pthread_mutex_destroy(&dataset->digesting);
    twi_free(dataset);
}

/* Grey HxW in the middle of 32x32, the same in each of three channels. */
static tw_status convert_to_rgb32(tw_dataset **dataset, tw_error *error)
{
    enum { SIDE = 32 };
    tw_dataset *from = *dataset, *to;
    if (from->height == SIDE && from->width == SIDE && from->channels == 3)
        return TW_OK;
    if (from->channels != 1 || from->height > SIDE || from->width > SIDE)
        return twi_fail(error, TW_INVALID_ARGUMENT, "cannot make 32x32x3 images of '%s', which has %dx%dx%d",
                        from->name, from->height, from->width, from->channels);
    tw_status status = twi_dataset_create(from->name, from->count, SIDE, SIDE, 3, from->classes, &to, error);
    if (status != TW_OK)
        return status;
    memcpy(&to->files, &from->files, sizeof to->files); /* it was read from these, too */
    memset(&from->files, 0, sizeof from->files);
    int top = (SIDE - from->height) / 2, left = (SIDE - from->width) / 2;
    memset(to->images, 0, (size_t)to->count * SIDE * SIDE * 3);
    memcpy(to->labels, from->labels, (size_t)to->count * sizeof *to->labels);
    const uint8_t *pixel = from->images;
    for (int64_t n = 0; n < to->count; n++)
        for (int y = 0; y < from->height; y++) {
            uint8_t *row = to->images + ((n * SIDE + top + y) * SIDE + left) * 3;
            for (int x = 0; x < from->width; x++, pixel++)
                row[3 * x] = row[3 * x + 1] = row[3 * x + 2] = *pixel;
        }
    tw_dataset_destroy(from);
    *dataset = to;
    return TW_OK;
}

/* Of the training half: without what is held back, or that alone. */
static tw_status hold_back(tw_dataset *d, int64_t count, bool keep, tw_error *error)
{
    if (count < 0 || count >= d->count || (keep && count == 0))
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "data set '%s': expected 1 to %lld examples to hold back, found %lld", d->name,
                        (long long)d->count - 1, (long long)count);
    if (keep) {
        if (d->pictures) /* of which none has been read */
            twi_pictures_skip(d->pictures, d->count - count);
        else
            memmove(d->images, d->images + (size_t)(d->count - count) * twi_image_bytes(d),
                    (size_t)count * twi_image_bytes(d));
        memmove(d->labels, d->labels + (d->count - count), (size_t)count * sizeof *d->labels);
    }
    d->count = keep ? count : d->count - count;
    return TW_OK;
}

/* Its bytes are not touched, and so cost nothing. */
static tw_status make_unread(const struct known *known, tw_dataset_split half, bool as_rgb32, tw_dataset **dataset,
                            tw_error *error)
{
    int side = as_rgb32 ? 32 : known->side, channels = as_rgb32 ? 3 : known->channels;
    return twi_dataset_create(known->name, known->count[half == TW_SPLIT_TEST], side, side, channels, 10, dataset,
                              error);
}

tw_status tw_dataset_load(const char *name, const char *directory, tw_dataset_split split,
                          const tw_dataset_options *given, tw_dataset **dataset, tw_error *error)
{
    TWI_NEED(name, "name", error);
    TWI_NEED(dataset, "dataset", error);
    tw_dataset_options whole, *options = &whole;
    const struct known *known = find_known(name);
    bool is_own = strcmp(name, OWN) == 0;
    tw_dataset *d = NULL;
    tw_status status = twi_sized(&whole, given, TWI_SIZE(tw_dataset_options, hold_back), error);
    if (status != TW_OK)
        return status;
    if (!known && !is_own)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "unknown data set '%s'; known are cifar10, mnist, fashion-mnist and images", name);
    if (split < TW_SPLIT_TRAIN || split > TW_SPLIT_VALIDATION)
        return twi_fail(error, TW_INVALID_ARGUMENT, "data set '%s' has no split number %d", name, (int)split);
    if (!directory && known)
        directory = known->packaged;
    if (!directory && (is_own || !options->sizes_only))
        return twi_fail(error, TW_INVALID_ARGUMENT, "no data directory was given for '%s'", name);

    tw_dataset_split half = split == TW_SPLIT_TEST ? TW_SPLIT_TEST : TW_SPLIT_TRAIN;
    if (is_own)
        TWI_TRY(twi_own_load(directory, half == TW_SPLIT_TEST, options, &d, error));
    else if (options->sizes_only)
        TWI_TRY(make_unread(known, half, options->as_rgb32, &d, error));
    else if (known == &known_sets[CIFAR10])
        TWI_TRY(twi_cifar10_load(directory, half, options->allow_fewer, &d, error));
    else
        TWI_TRY(twi_idx_load(name, directory, half, &d, error));
    if (half == TW_SPLIT_TRAIN && (options->hold_back || split == TW_SPLIT_VALIDATION))
        TWI_TRY(hold_back(d, options->hold_back, split == TW_SPLIT_VALIDATION, error));
    if (is_own && !options->sizes_only && (!options->when_needed || twi_pictures_are_rows(d->pictures)))
        TWI_TRY(tw_dataset_read(d, options->progress, options->user, error));
    if (is_own && twi_pictures_are_rows(d->pictures)) {
        twi_pictures_destroy(d->pictures); /* all are in memory */
        d->pictures = NULL;
    }
    if (options->as_rgb32 && !options->sizes_only && !is_own)
        TWI_TRY(convert_to_rgb32(&d, error));
    *dataset = d;
    d = NULL;
done:
    tw_dataset_destroy(d);
    return status;
}

static tw_status check_sizes(int64_t count, int height, int width, int channels, int classes, tw_error *error)
{
    if (count < 1 || height < 1 || height > MAX_SIDE || width < 1 || width > MAX_SIDE || channels < 1 ||
        channels > MAX_CHANNELS || classes < 1)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "a data set cannot have %lld images of %dx%dx%d in %d classes: at least one image and class, "
                        "sides of 1 to %d and 1 to %d channels are expected",
                        (long long)count, height, width, channels, classes, MAX_SIDE, MAX_CHANNELS);
    return TW_OK;
}

tw_status tw_dataset_from(const char *name, const uint8_t *images, const int32_t *labels, int64_t count, int height,
                          int width, int channels, int classes, tw_dataset **dataset, tw_error *error)
{
    TWI_NEED(name, "name", error);
    TWI_NEED(images, "images", error);
    TWI_NEED(labels, "labels", error);
    TWI_NEED(dataset, "dataset", error);
    tw_dataset *d = NULL;
    tw_status status;
    TWI_TRY(check_sizes(count, height, width, channels, classes, error));
    for (int64_t i = 0; i < count; i++)
        if (labels[i] < 0 || labels[i] >= classes)
            return twi_fail(error, TW_INVALID_ARGUMENT, "data set '%s': label %lld is %d, expected 0 to %d", name,
                            (long long)i, labels[i], classes - 1);
    TWI_TRY(twi_dataset_create(name, count, height, width, channels, classes, &d, error));
    memcpy(d->images, images, (size_t)count * (size_t)(height * width * channels));
    memcpy(d->labels, labels, (size_t)count * sizeof *labels);
    *dataset = d;
done:
    return status;
}

/* Makes evenly spread bytes normal: mean 127, deviation 60, cut at two deviations. */
static void normal_bytes(uint8_t table[256])
{
    int value = 0;
    for (int i = 0; i < 256; i++) {
        double share = erf(sqrt(2)) * ((i + 0.5) / 128 - 1);
        while (erf((value + 0.5 - 127) / (60 * sqrt(2))) < share)
            value++;
        table[i] = (uint8_t)value;
    }
}

tw_status tw_dataset_synthetic(int64_t count, int height, int width, int channels, int classes, uint64_t seed,
                               tw_dataset **dataset, tw_error *error)
{
    TWI_NEED(dataset, "dataset", error);
    tw_dataset *d = NULL;
    tw_status status;
    TWI_TRY(check_sizes(count, height, width, channels, classes, error));
    TWI_TRY(twi_dataset_create("synthetic", count, height, width, channels, classes, &d, error));
    size_t image_bytes = (size_t)height * (size_t)width * (size_t)channels;
    uint8_t normal[256];
    normal_bytes(normal);
    for (int64_t i = 0; i < count; i++) {
        twi_philox random = twi_example_random(seed, TWI_STREAM_SYNTHETIC, (uint64_t)i);
        uint32_t block[4];
        twi_philox_next(&random, block);
        d->labels[i] = (int32_t)((uint64_t)block[0] * (uint64_t)classes >> 32);
        uint8_t *image = d->images + (size_t)i * image_bytes;
        for (size_t at = 0; at < image_bytes; at += sizeof block) {
            twi_philox_next(&random, block);
            size_t left = image_bytes - at;
            memcpy(image + at, block, left < sizeof block ? left : sizeof block);
        }
        for (size_t at = 0; at < image_bytes; at++)
            image[at] = normal[image[at]];
    }
    *dataset = d;
done:
    return status;
}

const char *tw_dataset_name(const tw_dataset *dataset)
{
    TWI_NEED_OR(dataset, NULL);
    return dataset->name;
}

int64_t tw_dataset_count(const tw_dataset *dataset)
{
    TWI_NEED_OR(dataset, 0);
    return dataset->count;
}

int tw_dataset_height(const tw_dataset *dataset)
{
    TWI_NEED_OR(dataset, 0);
    return dataset->height;
}

int tw_dataset_width(const tw_dataset *dataset)
{
    TWI_NEED_OR(dataset, 0);
    return dataset->width;
}

int tw_dataset_channels(const tw_dataset *dataset)
{
    TWI_NEED_OR(dataset, 0);
    return dataset->channels;
}

int tw_dataset_classes(const tw_dataset *dataset)
{
    TWI_NEED_OR(dataset, 0);
    return dataset->classes;
}

const uint8_t *tw_dataset_images(const tw_dataset *dataset)
{
    TWI_NEED_OR(dataset, NULL);
    return dataset->pictures && !twi_pictures_are_there(dataset) ? NULL : dataset->images;
}

tw_status twi_dataset_image(const tw_dataset *d, int64_t index, uint8_t *scratch, const uint8_t **pixels,
                            tw_error *error)
{
    if (d->pictures)
        return twi_picture(d, index, scratch, pixels, error);
    *pixels = d->images + (size_t)index * twi_image_bytes(d);
    return TW_OK;
}

tw_status tw_dataset_image(const tw_dataset *dataset, int64_t index, uint8_t *pixels, tw_error *error)
{
    TWI_NEED(dataset, "dataset", error);
    TWI_NEED(pixels, "pixels", error);
    const uint8_t *image;
    if (index < 0 || index >= dataset->count)
        return twi_fail(error, TW_INVALID_ARGUMENT, "data set '%s' has no image %lld; it has %lld", dataset->name,
                        (long long)index, (long long)dataset->count);
    tw_status status = twi_dataset_image(dataset, index, pixels, &image, error);
    if (status == TW_OK && image != pixels)
        memcpy(pixels, image, twi_image_bytes(dataset));
    return status;
}

tw_status tw_dataset_read(const tw_dataset *dataset, tw_read_progress *progress, void *user, tw_error *error)
{
    TWI_NEED(dataset, "dataset", error);
    return dataset->pictures ? twi_pictures_read(dataset, progress, user, error) : TW_OK;
}

const int32_t *tw_dataset_labels(const tw_dataset *dataset)
{
    TWI_NEED_OR(dataset, NULL);
    return dataset->labels;
}

const char *tw_dataset_file(const tw_dataset *dataset, int i)
{
    TWI_NEED_OR(dataset, NULL);
    return i >= 0 && i < dataset->files.count ? dataset->files.items[i] : NULL;
}

const char *tw_dataset_class_name(const tw_dataset *dataset, int label)
{
    TWI_NEED_OR(dataset, "");
    const struct known *known = find_known(dataset->name);
    if (dataset->class_names)
        return label >= 0 && label < dataset->classes ? dataset->class_names[label] : "";
    return known && label >= 0 && label < 10 ? known->classes[label] : "";
}

static void compute_digest(const tw_dataset *d, char text[TWI_SHA256_TEXT])
{
    twi_sha256 sha;
    char sizes[128];
    int length = snprintf(sizes, sizeof sizes, "%lld images of %dx%dx%d in %d classes\n", (long long)d->count,
                          d->height, d->width, d->channels, d->classes);
    twi_sha256_init(&sha);
    twi_sha256_add(&sha, sizes, (size_t)length);
    for (int64_t i = 0; i < d->count; i++) { /* little-endian on any machine */
        const uint32_t label = (uint32_t)d->labels[i];
        const uint8_t bytes[4] = {(uint8_t)label, (uint8_t)(label >> 8), (uint8_t)(label >> 16),
                                  (uint8_t)(label >> 24)};
        twi_sha256_add(&sha, bytes, sizeof bytes);
    }
    if (d->pictures)
        twi_pictures_hash(d, &sha);
    else
        twi_sha256_add(&sha, d->images, (size_t)d->count * twi_image_bytes(d));
    twi_sha256_text(&sha, text);
}

const char *tw_dataset_digest(const tw_dataset *dataset)
{
    TWI_NEED_OR(dataset, "");
    tw_dataset *d = (tw_dataset *)dataset; /* what others see of it stays */
    pthread_mutex_lock(&d->digesting);
    if (!d->digest[0])
        compute_digest(d, d->digest);
    pthread_mutex_unlock(&d->digesting);
    return d->digest;
}

void tw_dataset_info(const tw_dataset *dataset, int64_t *class_counts, double *mean, double *stddev)
{
    TWI_NEED_OR(dataset, );
    if (class_counts) {
        memset(class_counts, 0, (size_t)dataset->classes * sizeof *class_counts);
        for (int64_t i = 0; i < dataset->count; i++)
            class_counts[dataset->labels[i]]++;
    }
    if (!mean && !stddev)
        return;
    double sum[MAX_CHANNELS] = {0}, squares[MAX_CHANNELS] = {0}; /* of whole numbers: exact up to 2^53 */
    int64_t pixels = dataset->count * dataset->height * dataset->width;
    const uint8_t *value = dataset->images;
    for (int64_t i = 0; i < pixels && !dataset->pictures; i++)
        for (int c = 0; c < dataset->channels; c++, value++) {
            sum[c] += *value;
            squares[c] += *value * *value;
        }
    for (int c = 0; c < dataset->channels; c++) {
        if (dataset->pictures && !twi_pictures_sums(dataset, c, &sum[c], &squares[c]))
            sum[c] = squares[c] = NAN; /* nobody has looked at them */
        double average = sum[c] / (double)pixels;
        if (mean)
            mean[c] = average;
        if (stddev)
            stddev[c] = isnan(average) ? NAN : sqrt(fmax(0, squares[c] / (double)pixels - average * average));
    }
}

const char *tw_dataset_detect(const char *directory)
{
    TWI_NEED_OR(directory, NULL);
    static const char *const cifar10_files[] = {"data_batch_1.bin", TWI_CIFAR10_FOLDER "/data_batch_1.bin"};
    char path[TWI_PATH_SIZE];
    struct stat about;
    for (int i = 0; i < 2; i++)
        if (twi_data_path(path, directory, cifar10_files[i]) && stat(path, &about) == 0)
            return known_sets[CIFAR10].name;
    uint8_t labels[8];
    if (twi_idx_first_labels(directory, labels, sizeof labels))
        for (int i = MNIST; i <= FASHION_MNIST; i++)
            if (memcmp(labels, known_sets[i].first_labels, sizeof labels) == 0)
                return known_sets[i].name;
    return twi_own_is_there(directory) ? OWN : NULL;
}
