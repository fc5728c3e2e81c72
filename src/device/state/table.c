/* table.c - see table.h. Pairs stand in the order in which their keys came; beside them an index by hash. */
#include "device/state/table.h"

#include "base/fingerprint.h"
#include "base/hash.h"
#include "base/memory.h"
#include "tensor/tensor.h"

#include <pthread.h>
#include <string.h>

struct twi_table {
    char *name;
    tw_dtype key, value;
    tw_shape shape; /* of a value, */
    int64_t width;  /* which has so many elements */
    bool changes;
    pthread_mutex_t lock; /* guards all below */
    bool filled;          /* something was put in, perhaps nothing */
    char *marks;          /* [2] keys that are none, if there are such */
    char *keys, *values;  /* [room], [room, width] */
    int64_t count, room;
    int64_t *slots;   /* [capacity] number of a pair, from 1; 0: free */
    int64_t capacity; /* a power of two, at least twice `room` */
};

/* ---- elements ---------------------------------------------------------------------------------------------------- */

static void *element(tw_dtype dtype, const void *data, int64_t i)
{
    return (char *)data + (size_t)i * tw_dtype_size(dtype);
}

static bool same(tw_dtype dtype, const void *a, const void *b)
{
    const tw_string *x = a, *y = b;
    if (dtype == TW_STRING)
        return x->size == y->size && (x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
    return memcmp(a, b, tw_dtype_size(dtype)) == 0;
}

static bool copy(tw_dtype dtype, void *to, const void *from)
{
    const tw_string *s = from;
    if (dtype == TW_STRING)
        return twi_string_set(to, s->data, s->size);
    memcpy(to, from, tw_dtype_size(dtype));
    return true;
}

/* Values as tensors have them side by side: number i. */
static void *value_at(const twi_table *t, const void *values, int64_t i)
{
    return element(t->value, values, i * t->width);
}

static bool same_value(const twi_table *t, const void *a, const void *b)
{
    for (int64_t k = 0; k < t->width; k++)
        if (!same(t->value, element(t->value, a, k), element(t->value, b, k)))
            return false;
    return true;
}

static bool copy_value(const twi_table *t, void *to, const void *from)
{
    for (int64_t k = 0; k < t->width; k++)
        if (!copy(t->value, element(t->value, to, k), element(t->value, from, k)))
            return false;
    return true;
}

static void drop(tw_dtype dtype, void *data, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end && dtype == TW_STRING; i++)
        twi_free(((tw_string *)data)[i].data);
}

static uint64_t hash_of(tw_dtype dtype, const void *key)
{
    const tw_string *s = key;
    size_t size = dtype == TW_STRING ? s->size : tw_dtype_size(dtype);
    const char *bytes = dtype == TW_STRING ? s->data : key;
    uint64_t hash = size;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size - i < 8 ? size - i : 8);
        hash = twi_hash_mix(hash, word);
    }
    return hash;
}

/* ---- with the lock held ------------------------------------------------------------------------------------------ */

static int64_t *find_slot(const twi_table *t, const void *key)
{
    int64_t at = (int64_t)(hash_of(t->key, key) & (uint64_t)(t->capacity - 1));
    while (t->slots[at] && !same(t->key, element(t->key, t->keys, t->slots[at] - 1), key))
        at = (at + 1) & (t->capacity - 1);
    return &t->slots[at];
}

static void index_all(twi_table *t)
{
    memset(t->slots, 0, sizeof *t->slots * (size_t)t->capacity);
    for (int64_t i = 0; i < t->count; i++)
        *find_slot(t, element(t->key, t->keys, i)) = i + 1;
}

static bool grow(twi_table *t, int64_t room)
{
    size_t key = tw_dtype_size(t->key), value = tw_dtype_size(t->value) * (size_t)t->width;
    int64_t capacity = 16;
    while (capacity < 2 * room)
        capacity *= 2;
    char *keys = twi_resize(t->keys, (size_t)room * key);
    t->keys = keys ? keys : t->keys;
    char *values = keys ? twi_resize(t->values, (size_t)room * value + 1) : NULL;
    t->values = values ? values : t->values;
    int64_t *slots = values ? twi_alloc_array((size_t)capacity, sizeof *slots) : NULL;
    if (!slots)
        return false;
    memset(t->keys + (size_t)t->room * key, 0, (size_t)(room - t->room) * key);
    memset(t->values + (size_t)t->room * value, 0, (size_t)(room - t->room) * value);
    twi_free(t->slots);
    t->slots = slots;
    t->capacity = capacity;
    t->room = room;
    index_all(t);
    return true;
}

static bool put(twi_table *t, const void *key, const void *value, bool *differs)
{
    *differs = false;
    if (t->count == t->room && !grow(t, t->room ? 2 * t->room : 8))
        return false;
    int64_t *slot = find_slot(t, key);
    if (*slot) {
        void *old = value_at(t, t->values, *slot - 1);
        *differs = !t->changes && !same_value(t, old, value);
        return *differs || copy_value(t, old, value);
    }
    if (!copy(t->key, element(t->key, t->keys, t->count), key) ||
        !copy_value(t, value_at(t, t->values, t->count), value))
        return false;
    *slot = ++t->count;
    return true;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void destroy(void *object)
{
    twi_table *t = object;
    if (!t)
        return;
    drop(t->key, t->keys, 0, t->room);
    drop(t->value, t->values, 0, t->room * t->width);
    drop(t->key, t->marks, 0, t->marks ? 2 : 0);
    twi_free(t->marks);
    twi_free(t->keys);
    twi_free(t->values);
    twi_free(t->slots);
    twi_free(t->name);
    pthread_mutex_destroy(&t->lock);
    twi_free(t);
}

twi_table *twi_table_of(const twi_resource *resource)
{
    return resource && resource->destroy == destroy ? resource->object : NULL;
}

tw_dtype twi_table_key(const twi_table *table)
{
    return table->key;
}

tw_dtype twi_table_value(const twi_table *table)
{
    return table->value;
}

bool twi_table_changes(const twi_table *table)
{
    return table->changes;
}

tw_shape twi_table_shape(const twi_table *table)
{
    return table->shape;
}

tw_status twi_table_make(twi_resource *resource, const char *name, tw_dtype key, tw_dtype value, tw_shape shape,
                         bool changes, tw_error *error)
{
    twi_table *t = twi_table_of(resource);
    if (key != TW_STRING && key != TW_INT64 && key != TW_INT32)
        return twi_fail(error, TW_UNIMPLEMENTED, "table '%s' has keys of %s, expected string, int32 or int64", name,
                        tw_dtype_name(key));
    if (tw_shape_elements(shape) < 0)
        return twi_fail(error, TW_INVALID_ARGUMENT, "table '%s' has values of a shape that is not known", name);
    if (t && t->key == key && t->value == value && t->changes == changes && tw_shape_equal(t->shape, shape))
        return TW_OK;
    if (resource->object)
        return twi_fail(error, TW_INVALID_ARGUMENT, "'%s' is there already, and is no table from %s to %s",
                        resource->name, tw_dtype_name(key), tw_dtype_name(value));
    t = twi_alloc(sizeof *t);
    if (!t || !(t->name = twi_strdup(name))) {
        twi_free(t);
        return twi_fail_memory(error, "making a table");
    }
    t->key = key;
    t->value = value;
    t->shape = shape;
    t->width = tw_shape_elements(shape);
    t->changes = t->filled = changes;
    pthread_mutex_init(&t->lock, NULL);
    resource->object = t;
    resource->destroy = destroy;
    return TW_OK;
}

tw_status twi_table_put(twi_table *t, const void *keys, const void *values, int64_t count, bool more, tw_error *error)
{
    tw_status status = TW_OK;
    pthread_mutex_lock(&t->lock);
    bool again = t->filled && !t->changes;
    int64_t before = t->count;
    for (int64_t i = 0; i < count && status == TW_OK; i++) {
        bool differs;
        if (!put(t, element(t->key, keys, i), value_at(t, values, i), &differs))
            status = twi_fail_memory(error, t->name);
        else if (differs)
            status = twi_fail(error, TW_INVALID_ARGUMENT,
                              "table '%s' has a different value for key %lld of those put in", t->name, (long long)i);
    }
    if (status == TW_OK && again && t->count != before)
        status = twi_fail(error, TW_FAILED_PRECONDITION, "Table already initialized.");
    t->filled = t->filled || (status == TW_OK && !more);
    pthread_mutex_unlock(&t->lock);
    return status;
}

tw_status twi_table_find(twi_table *t, const void *keys, int64_t count, const void *otherwise, void *values,
                         tw_error *error)
{
    tw_status status = TW_OK;
    pthread_mutex_lock(&t->lock);
    if (!t->filled)
        status = twi_fail(error, TW_FAILED_PRECONDITION, "Table not initialized.");
    for (int64_t i = 0; i < count && status == TW_OK; i++) {
        int64_t *slot = t->count ? find_slot(t, element(t->key, keys, i)) : NULL;
        const void *from = slot && *slot ? value_at(t, t->values, *slot - 1) : otherwise;
        if (!copy_value(t, value_at(t, values, i), from))
            status = twi_fail_memory(error, t->name);
    }
    pthread_mutex_unlock(&t->lock);
    return status;
}

static void swap_last(tw_dtype dtype, void *data, int64_t i, int64_t last)
{
    size_t size = tw_dtype_size(dtype);
    char kept[sizeof(tw_string)];
    memcpy(kept, element(dtype, data, i), size);
    memcpy(element(dtype, data, i), element(dtype, data, last), size);
    memcpy(element(dtype, data, last), kept, size);
}

void twi_table_remove(twi_table *t, const void *keys, int64_t count)
{
    pthread_mutex_lock(&t->lock);
    for (int64_t i = 0; i < count && t->count; i++) {
        int64_t number = *find_slot(t, element(t->key, keys, i));
        if (!number)
            continue;
        t->count--;
        swap_last(t->key, t->keys, number - 1, t->count);
        for (int64_t k = 0; k < t->width; k++)
            swap_last(t->value, t->values, (number - 1) * t->width + k, t->count * t->width + k);
        index_all(t);
    }
    pthread_mutex_unlock(&t->lock);
}

bool twi_table_mark(twi_table *t, const void *empty, const void *deleted)
{
    pthread_mutex_lock(&t->lock);
    if (!t->marks)
        t->marks = twi_alloc_array(2, tw_dtype_size(t->key));
    bool fits = t->marks && copy(t->key, element(t->key, t->marks, 0), empty) &&
                copy(t->key, element(t->key, t->marks, 1), deleted);
    pthread_mutex_unlock(&t->lock);
    return fits;
}

void twi_table_remove_marks(twi_table *t)
{
    if (t->marks)
        twi_table_remove(t, t->marks, 2);
}

void twi_table_clear(twi_table *t)
{
    pthread_mutex_lock(&t->lock);
    t->count = 0;
    t->filled = t->changes;
    if (t->slots)
        index_all(t);
    pthread_mutex_unlock(&t->lock);
}

int64_t twi_table_size(twi_table *t)
{
    pthread_mutex_lock(&t->lock);
    int64_t count = t->count;
    pthread_mutex_unlock(&t->lock);
    return count;
}

bool twi_table_is_marked(const twi_table *t)
{
    return t->marks;
}

/* Half of the places are free, so that TensorFlow need not move the pairs before it looks one up. */
int64_t twi_table_rows(twi_table *t)
{
    int64_t count = twi_table_size(t), places = 8;
    while (places < 2 * count)
        places *= 2;
    return t->marks ? places : count;
}

/* Where TensorFlow looks for the key first. */
static uint64_t place_of(tw_dtype dtype, const void *key)
{
    const tw_string *s = key;
    return dtype == TW_STRING  ? twi_murmur_hash(s->data, s->size)
           : dtype == TW_INT64 ? (uint64_t) * (const int64_t *)key
                               : (uint64_t)(int64_t) * (const int32_t *)key;
}

static bool empty_place(const twi_table *t, void *key, void *value)
{
    bool fits = copy(t->key, key, t->marks);
    for (int64_t k = 0; k < t->width && fits; k++)
        fits = t->value != TW_STRING || twi_string_set(element(t->value, value, k), "", 0);
    if (t->value != TW_STRING)
        memset(value, 0, tw_dtype_size(t->value) * (size_t)t->width);
    return fits;
}

static bool list_places(const twi_table *t, int64_t rows, void *keys, void *values)
{
    bool fits = true;
    for (int64_t i = 0; i < rows && fits; i++)
        fits = empty_place(t, element(t->key, keys, i), value_at(t, values, i));
    for (int64_t i = 0; i < rows / 2 && i < t->count && fits; i++) {
        const void *key = element(t->key, t->keys, i);
        uint64_t at = place_of(t->key, key) & (uint64_t)(rows - 1);
        for (uint64_t probes = 1; !same(t->key, element(t->key, keys, (int64_t)at), t->marks); probes++)
            at = (at + probes) & (uint64_t)(rows - 1);
        fits = copy(t->key, element(t->key, keys, (int64_t)at), key) &&
               copy_value(t, value_at(t, values, (int64_t)at), value_at(t, t->values, i));
    }
    return fits;
}

bool twi_table_list(twi_table *t, int64_t rows, void *keys, void *values)
{
    pthread_mutex_lock(&t->lock);
    bool fits = !t->marks || list_places(t, rows, keys, values);
    for (int64_t i = 0; i < rows && i < t->count && fits && !t->marks; i++)
        fits = copy(t->key, element(t->key, keys, i), element(t->key, t->keys, i)) &&
               copy_value(t, value_at(t, values, i), value_at(t, t->values, i));
    pthread_mutex_unlock(&t->lock);
    return fits;
}
