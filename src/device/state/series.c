/* series.c - see series.h. */
#include "device/state/series.h"

#include "base/memory.h"
#include "tensor/variant.h"

#include <string.h>

static void destroy(void *object)
{
    twi_series *series = object;
    twi_tensor_list_release(series->varied);
    twi_free(series->data);
    twi_free(series->written);
    twi_free(series);
}

bool twi_is_series(const twi_resource *resource)
{
    return resource && !resource->memory && (!resource->object || resource->destroy == destroy);
}

twi_series *twi_series_of(twi_resource *resource)
{
    if (!twi_is_series(resource))
        return NULL;
    if (!resource->object) {
        resource->object = twi_alloc(sizeof(twi_series));
        resource->destroy = resource->object ? destroy : NULL;
    }
    return resource->object;
}

static tw_status make_room(twi_series *s, int64_t count, size_t bytes, tw_error *error)
{
    int64_t room = s->room ? s->room : 16;
    bool changes = bytes && bytes != s->bytes;
    while (room < count && room < INT64_MAX / 2)
        room *= 2;
    if (room == s->room && !changes)
        return TW_OK;
    size_t wanted = bytes ? bytes : s->bytes;
    bool fits = !wanted || (size_t)room <= SIZE_MAX / 2 / wanted;
    bool *written = fits ? twi_resize(s->written, (size_t)room) : NULL;
    s->written = written ? written : s->written;
    char *data = written && wanted ? twi_resize(s->data, (size_t)room * wanted) : s->data;
    if (!written || (wanted && !data))
        return twi_fail_memory(error, "keeping the values of a loop");
    if (room > s->room)
        memset(s->written + s->room, 0, (size_t)(room - s->room));
    s->data = data;
    s->room = room;
    s->bytes = wanted;
    return TW_OK;
}

tw_status twi_series_reset(twi_series *s, int64_t count, tw_error *error)
{
    if (count < 0)
        return twi_fail(error, TW_INVALID_ARGUMENT, "Size should be >= 0, not %lld", (long long)count);
    tw_status status = make_room(s, count, 0, error);
    if (status != TW_OK)
        return status;
    if (s->room)
        memset(s->written, 0, (size_t)s->room);
    twi_tensor_list_release(s->varied);
    s->varied = NULL;
    s->shape = TW_UNKNOWN_SHAPE;
    s->count = count;
    s->made = ++s->makes;
    s->gone = false;
    return TW_OK;
}

tw_status twi_series_recall(twi_series *s, int64_t made, int64_t count, tw_error *error)
{
    int64_t makes = s->makes;
    tw_status status = s->made == made ? TW_OK : twi_series_reset(s, count, error);
    s->gone = s->gone || s->made != made;
    s->made = made;
    s->makes = makes;
    return status;
}

static tw_status check_index(const twi_series *s, int64_t index, bool grows, tw_error *error)
{
    if (index >= 0 && (grows || index < s->count) && index < INT32_MAX)
        return TW_OK;
    return twi_fail(error, TW_INVALID_ARGUMENT, "Tried to access index %lld but array size is: %lld", (long long)index,
                    (long long)s->count);
}

static tw_status check_type(tw_dtype held, tw_dtype wanted, tw_error *error)
{
    if (held == wanted)
        return TW_OK;
    return twi_fail(error, TW_INVALID_ARGUMENT, "a stack or an array holds %s, not %s", tw_dtype_name(held),
                    tw_dtype_name(wanted));
}

/* From now on each element is a tensor of its own. */
static bool make_varied(twi_series *s)
{
    twi_tensor_list *list = twi_tensor_list_create(s->count);
    bool fits = list;
    for (int64_t i = 0; i < s->count && fits; i++) {
        tw_tensor *item = s->written[i] ? twi_tensor_from(s->dtype, s->shape, s->data + (size_t)i * s->bytes) : NULL;
        fits = item || !s->written[i];
        if (item)
            fits = twi_tensor_list_put(list, i, item);
    }
    if (!fits)
        twi_tensor_list_release(list);
    s->varied = fits ? list : NULL;
    return fits;
}

static tw_status put_varied(const twi_run *r, twi_series *s, int64_t index, tw_dtype dtype, tw_shape shape,
                            const void *value)
{
    if (index >= s->varied->count && !twi_tensor_list_resize(s->varied, index + 1))
        return twi_fail_memory(r->error, r->node);
    s->count = s->varied->count;
    tw_tensor *old = twi_tensor_list_item(s->varied, index);
    if (old && s->sums && old->dtype != dtype)
        return check_type(old->dtype, dtype, r->error);
    if (old && s->sums && tw_shape_equal(old->shape, shape))
        return twi_add_elements(r, dtype, old->data, value, tw_tensor_bytes(old));
    tw_tensor *item = twi_tensor_from(dtype, shape, value);
    return item && twi_tensor_list_put(s->varied, index, item) ? TW_OK : twi_fail_memory(r->error, r->node);
}

tw_status twi_series_put(const twi_run *r, twi_series *s, int64_t index, tw_dtype dtype, tw_shape shape,
                         const void *value)
{
    size_t bytes = (size_t)tw_shape_elements(shape) * tw_dtype_size(dtype);
    tw_status status = check_index(s, index, s->grows, r->error);
    if (status != TW_OK)
        return status;
    if (s->shape.rank >= 0 && !s->varied && s->dtype != dtype)
        return check_type(s->dtype, dtype, r->error);
    bool differs = twi_owns_memory(dtype) || (s->shape.rank >= 0 && !tw_shape_equal(s->shape, shape));
    if (!s->varied && differs && !make_varied(s))
        return twi_fail_memory(r->error, r->node);
    if (s->varied)
        return put_varied(r, s, index, dtype, shape, value);
    status = make_room(s, index + 1 > s->count ? index + 1 : s->count, bytes, r->error);
    if (status != TW_OK)
        return status;
    s->dtype = dtype;
    s->shape = shape;
    s->count = index + 1 > s->count ? index + 1 : s->count;
    if (s->written[index] && s->sums)
        return twi_add_elements(r, dtype, s->data + (size_t)index * s->bytes, value, bytes);
    if (bytes)
        memcpy(s->data + (size_t)index * s->bytes, value, bytes);
    s->written[index] = true;
    return TW_OK;
}

bool twi_series_holds(const twi_series *s, int64_t index)
{
    return index >= 0 && index < s->count &&
           (s->varied ? twi_tensor_list_item(s->varied, index) != NULL : s->written[index]);
}

tw_status twi_series_get(const twi_series *s, int64_t index, tw_dtype dtype, tw_shape *shape, const void **value,
                         tw_error *error)
{
    *shape = s->shape;
    *value = NULL;
    if (s->gone)
        return twi_fail(error, TW_UNIMPLEMENTED, "the elements of an array of an earlier round are not kept");
    tw_status status = check_index(s, index, false, error);
    if (status != TW_OK || !twi_series_holds(s, index))
        return status;
    const tw_tensor *item = s->varied ? twi_tensor_list_item(s->varied, index) : NULL;
    status = check_type(item ? item->dtype : s->dtype, dtype, error);
    if (status != TW_OK)
        return status;
    const void *data = item ? item->data : s->data;
    *value = !data ? "" /* of no bytes, but something */ : item ? data : s->data + (size_t)index * s->bytes;
    *shape = item ? item->shape : s->shape;
    return TW_OK;
}

void twi_series_drop_last(twi_series *s)
{
    s->count--;
    if (s->varied)
        twi_tensor_list_resize(s->varied, s->count);
    else
        s->written[s->count] = false;
}
