/* sparse_map.c - see sparse_map.h. */
#include "device/state/sparse_map.h"

#include "base/array.h"
#include "base/memory.h"

#include <pthread.h>
#include <string.h>

typedef struct waiting {
    int64_t number;
    twi_sparse_tensor sparse;
} waiting;

struct twi_sparse_map {
    pthread_mutex_t lock;
    int64_t next;
    TWI_ARRAY(waiting) items; /* by rising number */
};

void twi_sparse_release(twi_sparse_tensor *sparse)
{
    for (int i = 0; i < 3; i++)
        tw_tensor_release(sparse->parts[i]);
    *sparse = (twi_sparse_tensor){{NULL}};
}

static void destroy(void *object)
{
    twi_sparse_map *map = object;
    for (int i = 0; i < map->items.count; i++)
        twi_sparse_release(&map->items.items[i].sparse);
    twi_array_free(&map->items);
    pthread_mutex_destroy(&map->lock);
    twi_free(map);
}

tw_status twi_sparse_map_make(twi_resource *resource, const char *node, twi_sparse_map **map, tw_error *error)
{
    if (resource->object && resource->destroy != destroy)
        return twi_fail(error, TW_INVALID_ARGUMENT, "'%s': '%s' is something else than a map of sparse tensors", node,
                        resource->name);
    if (!resource->object) {
        twi_sparse_map *made = twi_alloc(sizeof *made);
        if (!made)
            return twi_fail_memory(error, node);
        pthread_mutex_init(&made->lock, NULL);
        resource->object = made;
        resource->destroy = destroy;
    }
    *map = resource->object;
    return TW_OK;
}

bool twi_sparse_map_put(twi_sparse_map *map, twi_sparse_tensor *sparse, int64_t *number)
{
    pthread_mutex_lock(&map->lock);
    bool done = twi_push(&map->items, (waiting){map->next, *sparse});
    if (done)
        *number = map->next++;
    pthread_mutex_unlock(&map->lock);
    if (done)
        *sparse = (twi_sparse_tensor){{NULL}};
    return done;
}

/* The place of a number, or where it would stand. */
static int find(const twi_sparse_map *map, int64_t number)
{
    int low = 0, high = map->items.count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (map->items.items[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool twi_sparse_map_take(twi_sparse_map *map, int64_t number, twi_sparse_tensor *sparse)
{
    pthread_mutex_lock(&map->lock);
    int at = find(map, number);
    bool found = at < map->items.count && map->items.items[at].number == number;
    if (found) {
        waiting *items = map->items.items;
        *sparse = items[at].sparse;
        memmove(items + at, items + at + 1, sizeof *items * (size_t)(--map->items.count - at));
    }
    pthread_mutex_unlock(&map->lock);
    return found;
}
