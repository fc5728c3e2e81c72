/* collective.c - whether there is a library that reduces between devices of a kind, and works between given ones.
 * Never here:  its use (cuda/nccl.c). */
#include "device/plugin.h"

#include <string.h>

const char *tw_devices_nccl(const char **about)
{
    TWI_NEED_OR(about, NULL);
    twi_backends plugins = twi_plugin_backends(about);
    const char *version = NULL;
    for (int i = 0; i < plugins.count && !version; i++)
        if (plugins.items[i]->collective)
            version = plugins.items[i]->collective(about);
    if (!version && !(*about)[0])
        *about = "no plug-in has devices that NCCL knows";
    return version;
}

static const twi_device *find(const tw_devices *devices, const char *text, tw_error *error)
{
    twi_device_name name;
    if (twi_device_name_parse(text, &name, error) != TW_OK)
        return NULL;
    for (int i = 0; i < devices->count; i++)
        if (twi_device_name_matches(&name, &devices->items[i]->name))
            return devices->items[i];
    twi_fail(error, TW_NOT_FOUND, "there is no device '%.100s'", text);
    return NULL;
}

static tw_status check_device(const twi_device *d, tw_error *error)
{
    if (d->ops->reduces)
        return d->ops->reduces(d, error);
    return twi_fail(error, TW_INVALID_ARGUMENT, "NCCL works between real GPUs, and %s is of kind '%s'", d->text,
                    d->ops->kind);
}

tw_status tw_devices_check_nccl(const tw_devices *devices, const char *const *names, int count, tw_error *error)
{
    TWI_NEED(devices, "devices", error);
    TWI_NEED(names || count <= 0, "names", error);
    const char *why;
    for (int i = 0; i < count; i++) {
        const twi_device *d = find(devices, names[i], error);
        tw_status status = d ? check_device(d, error) : TW_INVALID_ARGUMENT;
        if (status != TW_OK)
            return status;
        for (int k = 0; k < i; k++)
            if (find(devices, names[k], error) == d)
                return twi_fail(error, TW_INVALID_ARGUMENT,
                                "NCCL wants a card for each tower, and towers %d and %d share %s", k, i, d->text);
    }
    if (!tw_devices_nccl(&why))
        return twi_fail(error, TW_UNAVAILABLE, "NCCL cannot be used: %s", why);
    return TW_OK;
}
