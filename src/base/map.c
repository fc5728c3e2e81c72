/* map.c - see map.h. */
#include "base/map.h"

#include "base/memory.h"

#include <string.h>

struct twi_map_slot {
    const char *key; /* NULL: free */
    uint64_t hash;   /* of the key: so few keys are looked at, which lie anywhere */
    void *value;
};

uint64_t twi_hash_text(const char *text) /* FNV-1a */
{
    uint64_t hash = 14695981039346656037u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash ^ hash >> 32;
}

static struct twi_map_slot *find_slot(struct twi_map_slot *slots, int capacity, const char *key, uint64_t hash)
{
    int i = (int)(hash & (uint64_t)(capacity - 1));
    while (slots[i].key && (slots[i].hash != hash || strcmp(slots[i].key, key) != 0))
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

void *twi_map_get(const twi_map *map, const char *key)
{
    return map->count ? find_slot(map->slots, map->capacity, key, twi_hash_text(key))->value : NULL;
}

bool twi_map_put(twi_map *map, const char *key, void *value)
{
    if ((map->count + 1) * 4 > map->capacity * 3) {
        int capacity = map->capacity ? map->capacity * 2 : 16;
        struct twi_map_slot *slots = twi_alloc_array((size_t)capacity, sizeof *slots);
        if (!slots)
            return false;
        for (int i = 0; i < map->capacity; i++)
            if (map->slots[i].key)
                *find_slot(slots, capacity, map->slots[i].key, map->slots[i].hash) = map->slots[i];
        twi_free(map->slots);
        map->slots = slots;
        map->capacity = capacity;
    }
    uint64_t hash = twi_hash_text(key);
    struct twi_map_slot *slot = find_slot(map->slots, map->capacity, key, hash);
    map->count += !slot->key;
    if (!slot->key)
        slot->key = key;
    slot->hash = hash;
    slot->value = value;
    return true;
}

/* The key stays in its slot, so that what stands behind it is found. */
void twi_map_forget(twi_map *map, const char *key)
{
    if (map->count)
        find_slot(map->slots, map->capacity, key, twi_hash_text(key))->value = NULL;
}

void twi_map_free(twi_map *map)
{
    twi_free(map->slots);
    *map = (twi_map){0};
}
