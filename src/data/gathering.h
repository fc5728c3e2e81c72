/* gathering.h - what own.c and the readers of its kinds of files share: examples that were found in a directory, before
 * any picture is decoded. */
#ifndef TWI_GATHERING_H
#define TWI_GATHERING_H

#include "base/map.h"
#include "data/dataset.h"
#include "image/image.h"

#include <tower/tensor.h>

typedef struct twi_found {
    char *path;    /* of a picture, or of a file of records; NULL: one of an array */
    int64_t index; /* in the array; where the record begins */
    bool is_record;
    uint32_t key; /* by which examples are put in order */
    int32_t label;
    bool test;
} twi_found;

/* What was found in a directory. */
typedef struct twi_gathering {
    const char *directory;
    TWI_ARRAY(twi_found) entries;
    TWI_ARRAY(char *) classes;
    twi_map class_numbers; /* from their names; each and 1 */
    tw_tensor *images[2]; /* of entries without a path: for training, for testing */
    bool has_halves;      /* somebody says which examples are for testing */
} twi_gathering;

/* Adds an example whose class is called so; the path is copied, the key follows from `name`. */
tw_status twi_gather(twi_gathering *g, const twi_found *entry, const char *name, const char *class, tw_error *error);

/* Pixels [height, width, has] as an image of 1 or 3 channels, by mean or repetition; has: 1, 3, or 4, of which the last
 * counts for nothing. */
tw_status twi_take_pixels(const uint8_t *pixels, int height, int width, int has, int channels, twi_image *image,
                          tw_error *error);

/* -- own_records.c -- */

/* Whether it is called as files of records are: "train.tfrecord", "validation-00003-of-00128". */
bool twi_is_record_file(const char *name);
/* Adds the examples of a file in the directory. */
tw_status twi_gather_records(twi_gathering *g, const char *name, tw_error *error);
/* The picture of one of them. */
tw_status twi_record_image(const twi_found *entry, int channels, int side, twi_image *image, tw_error *error);

#endif
