/* stage_map.h - staging areas with keys: tuples of tensors that are put somewhere under a number, whole or component by
 * component, and taken away by it, or whichever comes next.
 *
 * An area is a resource of the session's that nodes find by its name. Who asks for what is not there waits, as at a
 * queue, and so does who puts a whole tuple into an area that is full. */
#ifndef TWI_STAGE_MAP_H
#define TWI_STAGE_MAP_H

#include "device/kernel.h"

typedef struct twi_stage_map twi_stage_map;

enum { TWI_STAGE_COMPONENTS = 64 }; /* at most */

/* Makes the resource one, or checks that it is one of that order and capacity (whole tuples; 0: no limit). One that is
 * `ordered` gives the lowest key next, else the newest. */
tw_status twi_stage_map_make(twi_resource *resource, const char *name, bool ordered, int64_t capacity, tw_error *error);
twi_stage_map *twi_stage_map_of(const twi_resource *resource); /* NULL: it is none */

/* What tuples are made of: told by who puts something there, and the same for all of them. */
tw_status twi_stage_map_types(twi_stage_map *map, const tw_dtype *types, int count, tw_error *error);
/* Components `indices`, which ascend; values [count] from input `first` on. */
tw_status twi_stage_map_put(twi_stage_map *map, const twi_run *r, int64_t key, const int32_t *indices, int64_t count,
                            int first);

typedef enum twi_stage_taking {
    TWI_STAGE_PEEK, /* what was put there stays */
    TWI_STAGE_TAKE, /* a tuple of which nothing is left is gone */
    TWI_STAGE_NEXT, /* of any key */
} twi_stage_taking;

/* Waits for a whole tuple, and gives these components of it as outputs from `first` on. *key becomes its key. */
tw_status twi_stage_map_take(twi_stage_map *map, const twi_run *r, twi_stage_taking how, int64_t *key,
                             const int32_t *indices, int64_t count, int first);
void twi_stage_map_clear(twi_stage_map *map);
int64_t twi_stage_map_count(twi_stage_map *map, bool whole); /* tuples that are whole, or that have begun */

#endif
