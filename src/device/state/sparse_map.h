/* sparse_map.h - sparse tensors that wait, each under a number, for who takes them: a queue of TensorFlow's carries the
 * numbers in their place. A resource of the session's; any thread may put and take. */
#ifndef TWI_SPARSE_MAP_H
#define TWI_SPARSE_MAP_H

#include "device/kernel.h"

/* Indices [n,rank], values [n], shape [rank]: references. */
typedef struct twi_sparse_tensor {
    tw_tensor *parts[3];
} twi_sparse_tensor;

void twi_sparse_release(twi_sparse_tensor *sparse); /* leaves NULLs */

typedef struct twi_sparse_map twi_sparse_map;

/* Makes the resource one, or gives the one that it is. */
tw_status twi_sparse_map_make(twi_resource *resource, const char *node, twi_sparse_map **map, tw_error *error);
/* Takes the caller's references; false: memory has run out. */
bool twi_sparse_map_put(twi_sparse_map *map, twi_sparse_tensor *sparse, int64_t *number);
bool twi_sparse_map_take(twi_sparse_map *map, int64_t number, twi_sparse_tensor *sparse); /* false: it is not there */

#endif
