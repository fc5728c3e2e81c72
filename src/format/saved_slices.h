/* saved_slices.h - checkpoints as TensorFlow wrote them until version 0.11, and does still if it is asked for the first
 * version of the format: a table (table.h), or one for each shard.
 *
 *     ""              SavedTensorSlices that say which tensors there are
 *     a part's key    SavedTensorSlices with the values of the part, as the lists of a TensorProto; slice.h has the keys
 *
 * Lives here:  reading and writing them, whole. Never here: the format that came after (bundle.c). */
#ifndef TWI_SAVED_SLICES_H
#define TWI_SAVED_SLICES_H

#include "base/arena.h"
#include "base/array.h"

#include <tower/io.h>

typedef struct twi_saved {
    const char *name;
    int32_t number;   /* of its type, as in the file */
    tw_dtype dtype;   /* TW_INVALID_DTYPE if Tower has no such type: then without a value */
    tw_shape shape;   /* TW_UNKNOWN_SHAPE if Tower has no such rank: without a value, too */
    tw_tensor *value;
    int64_t filled;   /* elements */
} twi_saved;

typedef struct twi_saved_slices {
    TWI_ARRAY(twi_saved) tensors; /* by name */
    twi_arena names;
} twi_saved_slices;

/* Whether there is a file called so, or files as "model.ckpt-5-?????-of-00002" has them, that may be one. */
bool twi_saved_slices_are_there(const char *pattern);
/* *saved is all zeros before, and yours: twi_saved_slices_free(). */
tw_status twi_saved_slices_read(const char *pattern, twi_saved_slices *saved, tw_error *error);
void twi_saved_slices_free(twi_saved_slices *saved);
/* Writes one file, instead of what was there. TW_UNIMPLEMENTED: the format has no such type. */
tw_status twi_saved_slices_write(const char *path, const tw_named_tensor *tensors, int count, tw_error *error);

#endif
