/* device.c - see device.h: memory with a limit, copies, whose memory an address is. */
#include "device/device.h"

#include "base/memory.h"
#include "device/tasks.h"

#include <string.h>

tw_status twi_device_alloc(twi_device *d, size_t bytes, const char *what, void **memory, tw_error *error)
{
    *memory = NULL;
    size_t used = atomic_load(&d->memory_used);
    do {
        if (d->memory_limit && (bytes > d->memory_limit || used > d->memory_limit - bytes))
            return twi_fail(error, TW_RESOURCE_EXHAUSTED,
                            "%s has no room for %s: limit %zu bytes, used %zu, needed %zu more", d->text, what,
                            d->memory_limit, used, bytes);
    } while (!atomic_compare_exchange_weak(&d->memory_used, &used, used + bytes));

    twi_count_allocation();
    tw_status status = d->ops->alloc(d, bytes, memory, error);
    if (status != TW_OK) {
        atomic_fetch_sub(&d->memory_used, bytes);
        return twi_prefix(error, "allocating %s", what), status;
    }
    size_t peak = atomic_load(&d->memory_peak);
    while (peak < used + bytes && !atomic_compare_exchange_weak(&d->memory_peak, &peak, used + bytes))
        ;
    return TW_OK;
}

void twi_device_free(twi_device *d, void *memory, size_t bytes)
{
    if (!memory)
        return;
    d->ops->free(d, memory, bytes);
    atomic_fetch_sub(&d->memory_used, bytes);
}

bool twi_device_is_linked(twi_device *to, twi_device *from)
{
    return to->ops == from->ops && to->ops->copy_from && (!to->ops->is_linked || to->ops->is_linked(to, from));
}

bool twi_device_sees(const twi_device *d, const twi_device *other)
{
    bool on_host = d->is_host && other->is_host && twi_same_task(d, other);
    if (d->set && d->set->tasks > 1) /* what others see the other tasks, who plan the same, do not know */
        return on_host;
    return on_host || (d->ops == other->ops && d->ops->shares_memory && d->ops->shares_memory(d, other));
}

tw_status twi_device_copy(twi_device *to, void *destination, twi_device *from, const void *source, size_t bytes,
                          tw_error *error)
{
    if (bytes == 0)
        return TW_OK;
    if (from->is_host)
        return to->ops->write(to, destination, source, bytes, error);
    if (to->is_host)
        return from->ops->read(from, destination, source, bytes, error);
    if (to->ops->copy_from && to->ops == from->ops)
        return to->ops->copy_from(to, destination, from, source, bytes, error);

    void *host = twi_alloc(bytes);
    if (!host)
        return twi_fail_memory(error, "copying between devices through the host");
    tw_status status = from->ops->read(from, host, source, bytes, error);
    if (status == TW_OK)
        status = to->ops->write(to, destination, host, bytes, error);
    twi_free(host);
    return status;
}

const char *twi_device_local_name(const twi_device *d)
{
    const char *device = strstr(d->text, "/device:");
    return device ? device : d->text;
}

const twi_device *twi_device_of_memory(const twi_device *d, const void *memory)
{
    for (int i = 0; d->set && i < d->set->count; i++) {
        twi_device *other = d->set->items[i];
        if (other->ops->holds && other->ops->holds(other, memory))
            return other;
    }
    return NULL;
}
