/* link.c - how long copies between devices take. */
#include "base/clock.h"
#include "device/device.h"

enum { SHORT = 4, LONG = 32 << 20, SHORT_COPIES = 50, LONG_COPIES = 5 };

/* The median would be better known than the least, but the least is what the machine can do. */
static tw_status fastest(twi_device *to, void *destination, twi_device *from, const void *source, size_t bytes,
                         int copies, double *seconds, tw_error *error)
{
    for (int i = 0; i <= copies; i++) { /* the first warms up */
        int64_t begin = twi_monotonic_ns();
        tw_status status = twi_device_copy(to, destination, from, source, bytes, error);
        if (status == TW_OK && to->ops->synchronize)
            status = to->ops->synchronize(to, error);
        if (status != TW_OK)
            return status;
        double taken = (double)(twi_monotonic_ns() - begin) * 1e-9;
        if (i == 1 || (i > 1 && taken < *seconds))
            *seconds = taken;
    }
    return TW_OK;
}

tw_status tw_devices_measure_link(tw_devices *devices, int from, int to, tw_link *link, tw_error *error)
{
    TWI_NEED(devices, "devices", error);
    TWI_NEED(link, "link", error);
    twi_device *a, *b;
    void *source = NULL, *destination = NULL;
    double seconds = 0;
    tw_status status;
    *link = (tw_link){0};
    if (from < 0 || from >= devices->count || to < 0 || to >= devices->count)
        return twi_fail(error, TW_OUT_OF_RANGE, "a link from device %d to %d: there are %d devices", from, to,
                        devices->count);
    a = devices->items[from];
    b = devices->items[to];
    TWI_TRY(twi_device_alloc(a, LONG, "measuring a link", &source, error));
    TWI_TRY(twi_device_alloc(b, LONG, "measuring a link", &destination, error));
    TWI_TRY(fastest(b, destination, a, source, SHORT, SHORT_COPIES, &link->seconds, error));
    TWI_TRY(fastest(b, destination, a, source, LONG, LONG_COPIES, &seconds, error));
    link->bytes_per_second = seconds > 0 ? LONG / seconds : 0;
    link->direct = a->is_host || b->is_host || twi_device_is_linked(b, a);
done:
    twi_device_free(b, destination, LONG);
    twi_device_free(a, source, LONG);
    return status;
}
