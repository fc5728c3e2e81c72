/* backend.c - what backends make of options; see backend.h. Plug-ins have it, too. */
#include "device/backend.h"

#include <string.h>

double twi_option(const twi_options *options, const char *name)
{
    for (int i = 0; options->rows[i].name; i++)
        if (strcmp(options->rows[i].name, name) == 0)
            return options->values[i];
    return 0;
}

tw_status twi_check_memory(const twi_options *options, tw_error *error)
{
    if (twi_option(options, "gpu_memory_fraction") > 0 && twi_option(options, "gpu_memory_limit") > 0)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "gpu_memory_limit and gpu_memory_fraction both limit the memory of GPUs: give one of them");
    return TW_OK;
}

tw_status twi_limit_memory(twi_device *d, const twi_options *options, const char *hint, tw_error *error)
{
    double fraction = twi_option(options, "gpu_memory_fraction"), limit = twi_option(options, "gpu_memory_limit");
    if (fraction > 0 && !d->memory_total)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "gpu_memory_fraction: a part of what? %s has no memory of a known size%s",
                        twi_device_local_name(d), hint);
    d->allow_growth = twi_option(options, "allow_growth") != 0;
    d->memory_limit = d->memory_total;
    if (limit > 0 && (!d->memory_total || limit < (double)d->memory_total))
        d->memory_limit = (size_t)limit;
    if (fraction > 0)
        d->memory_limit = (size_t)((double)d->memory_total * fraction);
    return TW_OK;
}
