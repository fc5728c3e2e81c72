/* slice.h - which part of a tensor something is, as checkpoints say it: partitioned variables lie in parts.
 *
 *     "1000 64 0,500:-"     of [1000,64] the first 500 rows: start,length for each dimension, or - for all of it
 *
 * In an index a part has a key of its own, which sorts before all names: a zero byte, the name, then the numbers, each
 * in an encoding that sorts as they do. */
#ifndef TWI_SLICE_H
#define TWI_SLICE_H

#include "base/text.h"
#include "format/proto/bundle.pb-c.h"

#include <tower/tensor.h>

typedef struct twi_slice {
    tw_shape full;                /* of the whole tensor */
    int64_t start[TW_MAX_RANK];
    int64_t length[TW_MAX_RANK];
    bool all[TW_MAX_RANK];        /* said as "-": keys tell it from the same extent in numbers */
} twi_slice;

/* TW_INVALID_ARGUMENT, with the text, for what is none or does not lie inside. */
tw_status twi_slice_parse(const char *text, twi_slice *slice, tw_error *error);
/* False for one that does not lie inside. */
bool twi_slice_from_proto(const Twi__TensorSliceProto *from, tw_shape full, twi_slice *slice);
twi_slice twi_slice_whole(tw_shape full);
bool twi_slice_is_whole(const twi_slice *slice);
tw_shape twi_slice_shape(const twi_slice *slice);
void twi_slice_print(const twi_slice *slice, twi_text *text);
void twi_slice_key(const char *name, const twi_slice *slice, twi_text *key);

/* Copies what two parts of one tensor have in common, elements of so many bytes; returns how many elements that are. */
int64_t twi_slice_copy(const twi_slice *from, const void *source, const twi_slice *to, void *target, size_t bytes);

#endif
