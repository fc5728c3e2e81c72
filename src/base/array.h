/* array.h - growable arrays of anything.
 *
 *     TWI_ARRAY(int) ids = {0};
 *     if (!twi_push(&ids, 7)) return out_of_memory;
 *     for (int i = 0; i < ids.count; i++) use(ids.items[i]);
 *     twi_array_free(&ids);
 */
#ifndef TWI_ARRAY_H
#define TWI_ARRAY_H

#include "base/memory.h"

#include <stdbool.h>

#define TWI_ARRAY(type)                                                                                                \
    struct {                                                                                                           \
        type *items;                                                                                                   \
        int count, capacity;                                                                                           \
    }

bool twi_array_grow(void **items, int *capacity, int needed, size_t bytes);

/* Room for `needed` items in all; false when out of memory. */
#define twi_reserve(array, needed)                                                                                     \
    ((needed) <= (array)->capacity ||                                                                                  \
     twi_array_grow((void **)&(array)->items, &(array)->capacity, (needed), sizeof *(array)->items))

/* Appends a value; false when out of memory. */
#define twi_push(array, ...)                                                                                           \
    (twi_reserve((array), (array)->count + 1) ? ((array)->items[(array)->count++] = (__VA_ARGS__), true) : false)

#define twi_array_free(array)                                                                                          \
    (twi_free((array)->items), (array)->items = NULL, (array)->count = (array)->capacity = 0)

#endif
