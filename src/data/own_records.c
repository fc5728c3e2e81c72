/* own_records.c - images of one's own in TensorFlow's files of records: a tf.train.Example each, as ImageNet's and most
 * converters' scripts write them.
 *
 *     the picture   image/encoded, or image, or image_raw: a JPEG or PNG, or the bytes of height x width x depth pixels
 *     its class     image/class/text, or image/class/label, or label: a text or a whole number
 *
 * A file is read once for the classes, and each picture again when it is decoded, so that only pixels stay in memory.
 */
#include "data/gathering.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/tfrecord.h"
#include "format/example.h"
#include "tensor/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Of what an example holds; in each list earlier names win. */
static const char *const picture_names[] = {"image/encoded", "image", "image_raw", NULL};
static const char *const class_names[] = {"image/class/text", "image/class/label", "label", NULL};
static const char *const height_names[] = {"image/height", "height", NULL};
static const char *const width_names[] = {"image/width", "width", NULL};
static const char *const depth_names[] = {"image/channels", "depth", NULL};

bool twi_is_record_file(const char *name)
{
    static const char *const endings[] = {".tfrecord", ".tfrecords"};
    const char *dot = strrchr(name, '.'), *of = strstr(name, "-of-");
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return of && of - name > 5 && strspn(of - 5, "0123456789") == 5 && strspn(of + 4, "0123456789") == strlen(of + 4) &&
           strlen(of + 4) == 5;
}

/* The example's feature that has the first of the names which it has; its dtype is TW_INVALID_DTYPE if it has none. */
static bool find_feature(const char *bytes, size_t size, const char *const *names, twi_feature *found)
{
    *found = (twi_feature){.dtype = TW_INVALID_DTYPE};
    for (; *names && found->dtype == TW_INVALID_DTYPE; names++) {
        twi_example example = twi_example_begin(bytes, size);
        twi_feature feature;
        int read;
        while ((read = twi_example_next(&example, &feature)) > 0)
            if (feature.key_size == strlen(*names) && memcmp(feature.key, *names, feature.key_size) == 0 &&
                twi_feature_count(&feature) == 1)
                *found = feature;
        if (read < 0)
            return false;
    }
    return true;
}

static int64_t number_of(const char *bytes, size_t size, const char *const *names, int64_t otherwise)
{
    twi_feature feature;
    int64_t value = otherwise;
    if (find_feature(bytes, size, names, &feature) && feature.dtype == TW_INT64)
        twi_feature_read(&feature, &value);
    return value;
}

static tw_status complain(const char *path, uint64_t offset, const char *what, tw_error *error)
{
    return twi_fail(error, TW_INVALID_ARGUMENT, "'%s', the record at byte %" PRIu64 ": %s", path, offset, what);
}

/* ---- classes --------------------------------------------------------------------------------------------------- */

static tw_status gather_record(twi_gathering *g, const twi_found *entry, const char *name, const char *bytes,
                               size_t size, tw_error *error)
{
    twi_feature feature;
    char class[300];
    int64_t number;
    tw_string text = {0};
    if (!find_feature(bytes, size, class_names, &feature))
        return complain(entry->path, (uint64_t)entry->index, "it holds no tf.train.Example", error);
    if (feature.dtype != TW_STRING && feature.dtype != TW_INT64)
        return complain(
            entry->path, (uint64_t)entry->index,
            "expected a feature image/class/text, image/class/label or label with one text or one whole number", error);
    if (!twi_feature_read(&feature, feature.dtype == TW_STRING ? (void *)&text : &number))
        return twi_fail_memory(error, "reading images");
    if (feature.dtype == TW_STRING)
        snprintf(class, sizeof class, "%.*s", (int)(text.size < sizeof class ? text.size : sizeof class - 1),
                 text.data);
    else
        snprintf(class, sizeof class, "%" PRId64, number);
    twi_free(text.data);
    return twi_gather(g, entry, name, class, error);
}

/* "test-00000-of-00002" and "validation.tfrecord" are for testing, "train..." for training. */
static bool begins_with(const char *name, const char *half)
{
    return strncasecmp(name, half, strlen(half)) == 0;
}

tw_status twi_gather_records(twi_gathering *g, const char *name, tw_error *error)
{
    char path[TWI_PATH_SIZE], example[sizeof path + 32];
    twi_record_reader *reader = NULL;
    bool test = begins_with(name, "test") || begins_with(name, "val");
    const char *bytes;
    size_t size;
    tw_status status = TW_OK;
    if (!twi_data_path(path, g->directory, name))
        return twi_fail(error, TW_INVALID_ARGUMENT, "'%s' in '%s': the path is too long", name, g->directory);
    TWI_TRY(twi_record_open(path, &reader, error));
    g->has_halves |= test;
    for (int64_t number = 0;; number++) {
        twi_found entry = {.path = path, .index = (int64_t)twi_record_offset(reader), .is_record = true, .test = test};
        tw_error end = {0};
        status = twi_record_next(reader, &bytes, &size, &end);
        if (status == TW_OUT_OF_RANGE) {
            status = TW_OK;
            break;
        }
        if (status != TW_OK)
            TWI_LEAVE(twi_fail(error, status, "%s", end.message));
        snprintf(example, sizeof example, "%s:%" PRId64, name, number);
        TWI_TRY(gather_record(g, &entry, example, bytes, size, error));
    }
done:
    twi_record_close(reader);
    return status;
}

/* ---- pictures -------------------------------------------------------------------------------------------------- */

/* Pixels as they lie in the record. */
static tw_status take_pixels(const char *path, uint64_t offset, const tw_string *pixels, int64_t height, int64_t width,
                             int64_t depth, int channels, twi_image *image, tw_error *error)
{
    if (height < 1 || width < 1 || height > TWI_IMAGE_MOST_SIDE || width > TWI_IMAGE_MOST_SIDE ||
        (depth != 1 && depth != 3) || (uint64_t)(height * width * depth) != pixels->size)
        return complain(
            path, offset,
            "its picture is neither a JPEG nor a PNG, nor so many bytes as its height, width and depth (1 or 3) say",
            error);
    return twi_take_pixels((const uint8_t *)pixels->data, (int)height, (int)width, (int)depth, channels, image, error);
}

tw_status twi_record_image(const twi_found *entry, int channels, int side, twi_image *image, tw_error *error)
{
    twi_record_reader *reader = NULL;
    twi_feature feature;
    tw_string picture = {0};
    char name[TWI_PATH_SIZE + 64];
    const char *bytes;
    size_t size;
    uint64_t offset = (uint64_t)entry->index;
    tw_status status;
    TWI_TRY(twi_record_open(entry->path, &reader, error));
    twi_record_seek(reader, offset);
    TWI_TRY(twi_record_next(reader, &bytes, &size, error));
    if (!find_feature(bytes, size, picture_names, &feature) || feature.dtype != TW_STRING)
        TWI_LEAVE(complain(entry->path, offset, "expected a feature image/encoded, image or image_raw with one picture",
                           error));
    if (!twi_feature_read(&feature, &picture))
        TWI_LEAVE(twi_fail_memory(error, "reading images"));
    snprintf(name, sizeof name, "%s, the record at byte %" PRIu64, entry->path, offset);
    if (twi_image_is_one(picture.data, picture.size))
        status = twi_image_decode(picture.data, picture.size, channels, side, name, image, error);
    else
        status = take_pixels(entry->path, offset, &picture, number_of(bytes, size, height_names, 0),
                             number_of(bytes, size, width_names, 0), number_of(bytes, size, depth_names, 1), channels,
                             image, error);
done:
    twi_free(picture.data);
    twi_record_close(reader);
    return status;
}
