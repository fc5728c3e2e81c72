/* series.h - elements of one shape by number: a stack, or a TensorArray, which a loop fills and another one reads.
 *
 * It lives for a run: what makes it empties it. Its memory stays for the next run. The gradient of an array is one too,
 * of the same length, that sums what is written to an element twice. */
#ifndef TWI_SERIES_H
#define TWI_SERIES_H

#include "base/status.h"
#include "device/kernel.h"

typedef struct twi_series {
    char *data;    /* [room][bytes] */
    bool *written; /* [room] */
    size_t bytes;  /* of an element; 0: none has come yet */
    int64_t count, room;
    int64_t made; /* how often it was */
    bool grows, sums;
} twi_series;

/* That of the resource, made when it is first asked for; NULL: memory has run out. */
twi_series *twi_series_of(twi_resource *resource);

/* Empty, with so many elements that are not written. */
tw_status twi_series_reset(twi_series *series, int64_t count, tw_error *error);
/* Element `index` to write to, or behind the last one if the series grows. */
tw_status twi_series_at(twi_series *series, int64_t index, size_t bytes, void **element, tw_error *error);

#endif
