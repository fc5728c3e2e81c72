/* barrier.c - see barrier.h. */
#include "device/state/barrier.h"

#include "base/array.h"
#include "device/state/monitor.h"
#include "tensor/tensor.h"
#include "tensor/variant.h"

#include <string.h>

/* A tuple. */
typedef struct entry {
    tw_string key;
    int64_t when;       /* which call that brought new keys began it */
    int missing;        /* components */
    tw_tensor **values; /* [components], NULL: not there yet */
} entry;

struct twi_barrier {
    twi_monitor monitor; /* first; guards all that changes */
    char *name;
    int components;
    tw_dtype types[TWI_BARRIER_COMPONENTS];
    tw_shape shapes[TWI_BARRIER_COMPONENTS];
    bool has_shapes;
    bool closed, cancelled;
    int64_t calls;          /* that brought new keys */
    TWI_ARRAY(entry) begun; /* and not whole */
    TWI_ARRAY(entry) whole; /* in the order in which they are taken: by when they began, then by when they were whole */
};

/* ---- making -------------------------------------------------------------------------------------------------------
 */

static void free_entry(const twi_barrier *b, entry *e)
{
    for (int i = 0; i < b->components && e->values; i++)
        tw_tensor_release(e->values[i]);
    twi_free(e->values);
    twi_free(e->key.data);
    *e = (entry){0};
}

static void destroy(void *object)
{
    twi_barrier *b = object;
    if (!b)
        return;
    for (int i = 0; i < b->begun.count; i++)
        free_entry(b, &b->begun.items[i]);
    for (int i = 0; i < b->whole.count; i++)
        free_entry(b, &b->whole.items[i]);
    twi_array_free(&b->begun);
    twi_array_free(&b->whole);
    twi_free(b->name);
    twi_monitor_destroy(&b->monitor);
    twi_free(b);
}

twi_barrier *twi_barrier_of(const twi_resource *resource)
{
    return resource && resource->destroy == destroy ? resource->object : NULL;
}

tw_status twi_barrier_make(twi_resource *resource, const char *name, const tw_dtype *types, const tw_shape *shapes,
                           int count, tw_error *error)
{
    twi_barrier *b = twi_barrier_of(resource);
    if (b && b->components == count && memcmp(b->types, types, sizeof *types * (size_t)count) == 0)
        return TW_OK;
    if (b || resource->object || resource->memory)
        return twi_fail(error, TW_INVALID_ARGUMENT, "barrier '%s': that name is taken by %s", name,
                        b ? "another barrier" : "something that is no barrier");
    b = twi_alloc(sizeof *b);
    char *own = b ? twi_strdup(name) : NULL;
    if (!own) {
        twi_free(b);
        return twi_fail_memory(error, "making a barrier");
    }
    b->name = own;
    b->components = count;
    b->has_shapes = shapes != NULL;
    for (int i = 0; i < count; i++) {
        b->types[i] = types[i];
        b->shapes[i] = shapes ? shapes[i] : TW_UNKNOWN_SHAPE;
    }
    twi_monitor_init(&b->monitor);
    resource->object = b;
    resource->destroy = destroy;
    resource->wake = twi_monitor_wake;
    return TW_OK;
}

/* ---- putting, with the lock held ----------------------------------------------------------------------------------
 */

static entry *find(const twi_barrier *b, const tw_string *key)
{
    for (int i = 0; i < b->begun.count; i++) {
        entry *e = &b->begun.items[i];
        if (e->key.size == key->size && (!key->size || memcmp(e->key.data, key->data, key->size) == 0))
            return e;
    }
    return NULL;
}

static tw_status begin(twi_barrier *b, const twi_run *r, const tw_string *key, entry **made)
{
    if (b->closed)
        return twi_fail(r->error, TW_CANCELLED, "Barrier %s is closed, but attempted to insert a brand new key: %.*s.",
                        b->name, (int)key->size, key->data ? key->data : "");
    entry e = {.when = INT64_MIN + b->calls,
               .missing = b->components,
               .values = twi_alloc_array((size_t)b->components, sizeof(tw_tensor *))};
    if (!e.values || !twi_string_set(&e.key, key->data, key->size) || !twi_push(&b->begun, e)) {
        free_entry(b, &e);
        return twi_fail_memory(r->error, r->node);
    }
    *made = &b->begun.items[b->begun.count - 1];
    return TW_OK;
}

/* An entry that is whole goes behind those that began before it or with it. */
static tw_status finish(twi_barrier *b, const twi_run *r, entry *e)
{
    int at = b->whole.count;
    if (!twi_push(&b->whole, *e)) {
        e->missing++;
        return twi_fail_memory(r->error, r->node);
    }
    for (; at > 0 && b->whole.items[at - 1].when > e->when; at--)
        b->whole.items[at] = b->whole.items[at - 1];
    b->whole.items[at] = *e;
    *e = b->begun.items[--b->begun.count];
    return TW_OK;
}

static tw_status put_one(twi_barrier *b, const twi_run *r, int64_t component, const tw_string *key, tw_shape shape,
                         const void *from)
{
    entry *e = find(b, key);
    tw_status status = e ? TW_OK : begin(b, r, key, &e);
    if (status != TW_OK)
        return status;
    if (e->values[component])
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "Key %.*s already has a value for component %lld in barrier %s",
                        (int)key->size, key->data ? key->data : "", (long long)component, b->name);
    e->values[component] = twi_tensor_from(b->types[component], shape, from);
    if (!e->values[component])
        return twi_fail_memory(r->error, r->node);
    return --e->missing ? TW_OK : finish(b, r, e);
}

static tw_status check(const twi_barrier *b, const twi_run *r, int64_t component, const twi_operand *keys,
                       const twi_operand *values, tw_shape *shape)
{
    char wants[128], has[128];
    if (component < 0 || component >= b->components)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "The component ID is out of range %lld > num_components (= %d)",
                        (long long)component, b->components);
    if (values->dtype != b->types[component])
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': values of %s, the barrier's component %lld has %s",
                        r->node, tw_dtype_name(values->dtype), (long long)component,
                        tw_dtype_name(b->types[component]));
    if (values->shape.rank < 1 || values->shape.dims[0] != keys->elements)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': values of shape %s for %lld keys", r->node,
                        tw_shape_text(values->shape, has, sizeof has), (long long)keys->elements);
    *shape = values->shape;
    memmove(shape->dims, shape->dims + 1, sizeof *shape->dims * (size_t)--shape->rank);
    if (!tw_shape_compatible(b->shapes[component], *shape))
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': Shape mismatch in tuple component %lld. Expected %s, got %s", r->node,
                        (long long)component, tw_shape_text(b->shapes[component], wants, sizeof wants),
                        tw_shape_text(*shape, has, sizeof has));
    return TW_OK;
}

tw_status twi_barrier_put(twi_barrier *b, const twi_run *r, int64_t component, const twi_operand *keys,
                          const tw_string *key, const twi_operand *values, const void *from)
{
    tw_shape shape;
    tw_status status = check(b, r, component, keys, values, &shape);
    if (status != TW_OK)
        return status;
    size_t bytes = (size_t)tw_shape_elements(shape) * tw_dtype_size(values->dtype);
    twi_monitor_enter(&b->monitor);
    int before = b->begun.count + b->whole.count;
    if (b->cancelled)
        status = twi_fail(r->error, TW_CANCELLED, "Barrier %s is closed. Pending enqueues cancelled: 1.", b->name);
    for (int64_t i = 0; i < keys->elements && status == TW_OK; i++)
        status = put_one(b, r, component, &key[i], shape, (const char *)from + (size_t)i * bytes);
    b->calls += b->begun.count + b->whole.count > before;
    twi_monitor_notify(&b->monitor);
    twi_monitor_leave(&b->monitor);
    return status;
}

/* ---- taking -------------------------------------------------------------------------------------------------------
 */

/* The outputs for tuples of the shapes that the first of them has. */
static tw_status make_outputs(const twi_barrier *b, const twi_run *r, int64_t count, void **to)
{
    const entry *first = b->whole.items;
    for (int k = 0; k < 2 + b->components; k++) {
        tw_shape shape = TW_SHAPE(count);
        if (k >= 2) {
            tw_shape one = count ? tw_tensor_shape(first->values[k - 2]) : b->shapes[k - 2];
            if (one.rank == TW_MAX_RANK)
                return twi_fail(r->error, TW_UNIMPLEMENTED, "'%s': elements have the highest rank there is", r->node);
            for (int i = 0; i < one.rank; i++)
                shape.dims[shape.rank++] = one.dims[i] < 0 ? 0 : one.dims[i];
        }
        tw_status status = twi_make_output(r, k, shape, &to[k]);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

/* Tuple number i of the outputs. */
static tw_status give_one(const twi_barrier *b, const twi_run *r, const entry *e, int64_t i, void *const *to)
{
    ((int64_t *)to[0])[i] = e->when;
    if (!twi_string_set((tw_string *)to[1] + i, e->key.data, e->key.size))
        return twi_fail_memory(r->error, r->node);
    for (int k = 0; k < b->components; k++) {
        size_t bytes = tw_tensor_bytes(e->values[k]), count = (size_t)tw_tensor_elements(e->values[k]);
        char *place = (char *)to[2 + k] + (size_t)i * bytes;
        const void *from = tw_tensor_data(e->values[k]);
        if (twi_owns_memory(b->types[k]) && !twi_copy_owned(b->types[k], from, place, count))
            return twi_fail_memory(r->error, r->node);
        if (!twi_owns_memory(b->types[k]) && bytes)
            memcpy(place, from, bytes);
    }
    return TW_OK;
}

/* Whether e has the shapes that the outputs were made for. */
static bool fits(const twi_barrier *b, const entry *e, const tw_shape *shapes)
{
    for (int k = 0; k < b->components; k++)
        if (!tw_shape_equal(tw_tensor_shape(e->values[k]), shapes[k]))
            return false;
    return true;
}

/* The first of the whole ones; those that could not be given stay. */
static tw_status give(twi_barrier *b, const twi_run *r, int64_t count)
{
    void *to[2 + TWI_BARRIER_COMPONENTS];
    tw_shape shapes[TWI_BARRIER_COMPONENTS];
    tw_status status = make_outputs(b, r, count, to);
    int given = 0;
    for (int k = 0; k < b->components && count; k++)
        shapes[k] = tw_tensor_shape(b->whole.items[0].values[k]);
    for (; given < count && status == TW_OK; given += status == TW_OK) {
        entry *e = &b->whole.items[given];
        status = fits(b, e, shapes) ? give_one(b, r, e, given, to)
                                    : twi_fail(r->error, TW_INVALID_ARGUMENT,
                                               "'%s': tuples of different shapes are no batch", r->node);
        if (status == TW_OK)
            free_entry(b, e);
    }
    b->whole.count -= given;
    if (given)
        memmove(b->whole.items, b->whole.items + given, sizeof *b->whole.items * (size_t)b->whole.count);
    return status;
}

tw_status twi_barrier_take(twi_barrier *b, const twi_run *r, int64_t count, bool fewer)
{
    tw_status status = TW_OK;
    if (count < 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld elements are asked for, expected 0 or more", r->node,
                        (long long)count);
    if (!b->has_shapes)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': barrier %s has elements of no specified shapes", r->node,
                        b->name);
    twi_monitor_enter(&b->monitor);
    while (b->whole.count < count && !twi_run_is_ending(r)) {
        int64_t may_come = b->closed ? b->whole.count + b->begun.count : INT64_MAX;
        if (b->closed && fewer && b->whole.count)
            count = b->whole.count;
        else if (may_come < (fewer ? 1 : count))
            break;
        else
            twi_monitor_wait(&b->monitor);
    }
    if (b->whole.count >= count)
        status = give(b, r, count);
    else if (twi_run_is_ending(r))
        status = twi_fail(r->error, TW_CANCELLED, "taking of barrier '%s' was cancelled", b->name);
    else
        status = twi_fail(r->error, TW_OUT_OF_RANGE,
                          "Barrier '%s' is closed and has insufficient elements (requested %lld, total size %d)",
                          b->name, (long long)count, b->whole.count + b->begun.count);
    twi_monitor_leave(&b->monitor);
    return status;
}

/* ---- closing ------------------------------------------------------------------------------------------------------
 */

tw_status twi_barrier_close(twi_barrier *b, const twi_run *r, bool cancel)
{
    tw_status status = TW_OK;
    twi_monitor_enter(&b->monitor);
    if (b->closed && (b->cancelled || !cancel))
        status = twi_fail(r->error, TW_CANCELLED, "Barrier '%s' is already closed.", b->name);
    b->closed = true;
    b->cancelled = b->cancelled || cancel;
    for (int i = 0; i < b->begun.count && cancel; i++)
        free_entry(b, &b->begun.items[i]);
    b->begun.count = cancel ? 0 : b->begun.count;
    twi_monitor_notify(&b->monitor);
    twi_monitor_leave(&b->monitor);
    return status;
}

int64_t twi_barrier_count(twi_barrier *b, bool whole)
{
    twi_monitor_enter(&b->monitor);
    int64_t count = whole ? b->whole.count : b->begun.count;
    twi_monitor_leave(&b->monitor);
    return count;
}
