/* map.h - from strings to pointers. Keys are borrowed: they must live as long as the map. */
#ifndef TWI_MAP_H
#define TWI_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct twi_map {
    struct twi_map_slot *slots; /* open addressing, linear probing, at most 3/4 full */
    int count, capacity;        /* capacity is a power of two */
} twi_map;                      /* all zeros is an empty map */

void *twi_map_get(const twi_map *map, const char *key);        /* NULL if absent */
bool twi_map_put(twi_map *map, const char *key, void *value);  /* replaces; false when out of memory */
void twi_map_forget(twi_map *map, const char *key);              /* it is absent from now on; asks for no memory */
void twi_map_free(twi_map *map);

uint64_t twi_hash_text(const char *text);

#endif
