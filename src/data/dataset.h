/* dataset.h - what a data set is inside, and what its readers share.
 * Lives here:  the structure, the readers' entry points.
 * Never here:  formats (cifar10.c, idx.c), what is done to images (stream/distort.h, pipeline.c). */
#ifndef TWI_DATASET_H
#define TWI_DATASET_H

#include "base/array.h"
#include "base/sha256.h"

#include <pthread.h>
#include <tower/data.h>

struct tw_dataset {
    char name[16];
    int64_t count;
    int height, width, channels, classes;
    uint8_t *images;               /* [count, height, width, channels] */
    struct twi_pictures *pictures; /* of those that are read when they are needed: pictures.h; NULL: all are there */
    int32_t *labels;               /* [count] */
    char **class_names;      /* [classes]; NULL: those of a known set, or none */
    TWI_ARRAY(char *) files; /* that it was read from */
    pthread_mutex_t digesting;
    char digest[TWI_SHA256_TEXT]; /* "": not asked for yet */
};

/* Room for the images and labels, not filled in. The sizes must have been checked. */
tw_status twi_dataset_create(const char *name, int64_t count, int height, int width, int channels, int classes,
                             tw_dataset **dataset, tw_error *error);

/* The same in two steps: without room for images, and room for so many. */
tw_status twi_dataset_describe(const char *name, int64_t count, int height, int width, int channels, int classes,
                               tw_dataset **dataset, tw_error *error);
tw_status twi_dataset_make_room(tw_dataset *dataset, int64_t count, tw_error *error);

static inline size_t twi_image_bytes(const tw_dataset *d)
{
    return (size_t)d->height * (size_t)d->width * (size_t)d->channels;
}

/* The pixels of an image: where they lie, or in scratch, which has room for one, if they are not kept. Any number of
 * threads. */
tw_status twi_dataset_image(const tw_dataset *dataset, int64_t index, uint8_t *scratch, const uint8_t **pixels,
                            tw_error *error);

/* Notes that the data set was read from there. */
tw_status twi_dataset_add_file(tw_dataset *dataset, const char *path, tw_error *error);

#define TWI_CIFAR10_FOLDER "cifar-10-batches-bin" /* what the official archive makes */

tw_status twi_cifar10_load(const char *directory, tw_dataset_split split, bool allow_fewer, tw_dataset **dataset,
                           tw_error *error);
tw_status twi_idx_load(const char *name, const char *directory, tw_dataset_split split, tw_dataset **dataset, tw_error *error);

/* Of images of one's own; whether there are any. */
tw_status twi_own_load(const char *directory, bool test, const tw_dataset_options *options, tw_dataset **dataset,
                       tw_error *error);
bool twi_own_is_there(const char *directory);

/* The first `count` labels of the training half in `directory`; false if there are not so many, or no such file. */
bool twi_idx_first_labels(const char *directory, uint8_t *labels, int count);

/* The bytes of a regular file; TW_NOT_FOUND if it is not there. */
tw_status twi_data_size(const char *path, int64_t *size, tw_error *error);

/* Writes directory/name into path; false if it does not fit. */
enum { TWI_PATH_SIZE = 4096 };
bool twi_data_path(char path[TWI_PATH_SIZE], const char *directory, const char *name);

/* The error for a data set that is not in `directory`; `looked_for` says by which names. */
tw_status twi_data_missing(tw_error *error, const char *name, const char *directory, const char *looked_for);

#endif
