/* pictures.h - pictures of a data set that are decoded when somebody needs them, and kept while there is room.
 *
 * Each is decoded by whoever asks first, and always to the same pixels; who asks meanwhile decodes it for himself, so
 * that nobody waits. Where room ends, the others are decoded each time. The order of examples is that of hashes of
 * their names, so which are kept is chance.
 * Never here:  how pictures are found (own.c), decoded and scaled (src/image). */
#ifndef TWI_PICTURES_H
#define TWI_PICTURES_H

#include "base/sha256.h"
#include "data/gathering.h"

typedef struct twi_pictures twi_pictures;

/* Takes what was gathered, an entry for each of the data set's images, and makes room for as many as options allow; all
 * of them if the data set is to be in memory. */
tw_status twi_pictures_create(twi_gathering *g, const tw_dataset_options *options, tw_dataset *d, tw_error *error);
void twi_pictures_destroy(twi_pictures *p);

/* The pixels of an image: where they are kept, or in scratch, which has room for one. Any number of threads. */
tw_status twi_picture(const tw_dataset *d, int64_t index, uint8_t *scratch, const uint8_t **pixels, tw_error *error);
/* All are kept, and have been read. */
bool twi_pictures_are_there(const tw_dataset *d);
/* Reads each on all cores, keeps those for which there is room, and adds up the channels. Of several errors that of the
 * first picture is told. */
tw_status twi_pictures_read(const tw_dataset *d, tw_read_progress *progress, void *user, tw_error *error);
/* The sum of a channel and of its squares; false: they have not been read. */
bool twi_pictures_sums(const tw_dataset *d, int channel, double *sum, double *squares);

/* Leaves out the first ones. */
void twi_pictures_skip(twi_pictures *p, int64_t count);
/* Rows of arrays, which lie in memory as it is, so that nothing is gained by waiting. */
bool twi_pictures_are_rows(const twi_pictures *p);
/* Adds what stands for the pixels: names, and the sizes of files. */
void twi_pictures_hash(const tw_dataset *d, twi_sha256 *sha);

#endif
