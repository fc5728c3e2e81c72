/* series.c - see series.h. */
#include "device/state/series.h"

#include "base/memory.h"

#include <string.h>

static void destroy(void *object)
{
    twi_series *series = object;
    twi_free(series->data);
    twi_free(series->written);
    twi_free(series);
}

twi_series *twi_series_of(twi_resource *resource)
{
    if (!resource->object) {
        resource->object = twi_alloc(sizeof(twi_series));
        resource->destroy = destroy;
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
    s->count = count;
    s->made++;
    return TW_OK;
}

tw_status twi_series_at(twi_series *s, int64_t index, size_t bytes, void **element, tw_error *error)
{
    if (index < 0 || (index >= s->count && !s->grows))
        return twi_fail(error, TW_INVALID_ARGUMENT, "Tried to access index %lld but array size is: %lld",
                        (long long)index, (long long)s->count);
    tw_status status = make_room(s, index + 1, bytes, error);
    s->count = status == TW_OK && index >= s->count ? index + 1 : s->count;
    *element = status == TW_OK ? s->data + (size_t)index * s->bytes : NULL;
    return status;
}
