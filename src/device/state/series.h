/* series.h - elements by number: a stack, or a TensorArray, which a loop fills and another one reads.
 *
 * It lives for a run: what makes it empties it. Its memory stays for the next run. Elements of one shape lie side by
 * side; once two differ, or if they own memory (lists), each is a tensor of its own, until it is emptied. The gradient
 * of an array is one too, of the same length, that sums what is written to an element twice. */
#ifndef TWI_SERIES_H
#define TWI_SERIES_H

#include "base/status.h"
#include "device/kernel.h"

typedef struct twi_series {
    char *data;    /* [room][bytes] */
    bool *written; /* [room] */
    size_t bytes;  /* of an element; 0: none has come yet */
    tw_dtype dtype;
    tw_shape shape;                 /* of the elements that came since it was emptied; rank -1: none did */
    struct twi_tensor_list *varied; /* the elements, where they differ in shape; NULL: they are in `data` */
    int64_t count, room;
    int64_t made;  /* its number among those that were made, from 1 */
    int64_t makes; /* how many were */
    bool grows, sums;
    bool gone; /* it was recalled without its elements */
} twi_series;

/* Whether the resource is one, or nothing yet, which may become one. */
bool twi_is_series(const twi_resource *resource);
/* That of the resource, made when it is first asked for; NULL: it is something else, or memory has run out. */
twi_series *twi_series_of(twi_resource *resource);

/* to += from, of numbers (device/cpu/plain/series.c). */
tw_status twi_add_elements(const twi_run *r, tw_dtype dtype, void *to, const void *from, size_t bytes);

/* Empty, with so many elements that are not written. */
tw_status twi_series_reset(twi_series *series, int64_t count, tw_error *error);
/* One that was made before, of which nothing is left but which it was and how long: what its gradient wants to know. */
tw_status twi_series_recall(twi_series *series, int64_t made, int64_t count, tw_error *error);
/* Puts an element into a place, or behind the last one if the series grows. What was there must be of that shape if the
 * series sums. */
tw_status twi_series_put(const twi_run *r, twi_series *series, int64_t index, tw_dtype dtype, tw_shape shape,
                         const void *value);
/* Whether somebody has put an element there. */
bool twi_series_holds(const twi_series *series, int64_t index);
/* Of one that has any. */
void twi_series_drop_last(twi_series *series);
/* The element in a place, which is of that type, and its shape; *value NULL: nobody has put one there. */
tw_status twi_series_get(const twi_series *series, int64_t index, tw_dtype dtype, tw_shape *shape, const void **value,
                         tw_error *error);

#endif
