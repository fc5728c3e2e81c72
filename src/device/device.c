/* device.c - see device.h: opening the devices of a set, memory with a limit, copies, finding kernels. */
#define _GNU_SOURCE /* CPU_SETSIZE */
#include "device/device.h"

#include "base/array.h"
#include "base/cores.h"
#include "device/kernel_index.h"
#include "device/plugin.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEVICES 256 /* of a type; more is a typing error */
#define COLLECTIVE_TIMEOUT 300 /* seconds; a step of the slowest network on the slowest card takes far less */
#define MOST_PARTS 16    /* of a card: as many groups of multiprocessors as the largest have */

/* ---- the set --------------------------------------------------------------------------------------------------- */

static tw_status check_range(const char *what, int value, int most, tw_error *error)
{
    if (value < 0 || value > most)
        return twi_fail(error, TW_INVALID_ARGUMENT, "%s: expected 0 to %d, found %d", what, most, value);
    return TW_OK;
}

/* The number asked for, or TOWER_VIRTUAL_GPUS's. */
static tw_status virtual_gpus(const tw_device_options *options, int *count, tw_error *error)
{
    *count = options->virtual_gpus;
    const char *text = getenv("TOWER_VIRTUAL_GPUS");
    if (*count == 0 && text && text[0]) {
        char *end;
        long number = strtol(text, &end, 10);
        if (*end || number < 0 || number > MOST_DEVICES)
            return twi_fail(error, TW_INVALID_ARGUMENT,
                            "TOWER_VIRTUAL_GPUS: expected a number from 0 to %d, found '%.64s'", MOST_DEVICES, text);
        *count = (int)number;
    }
    return check_range("virtual_gpus", *count, MOST_DEVICES, error);
}

/* The index of the device's kernels, made when the first device with this list comes. */
static tw_status index_kernels(tw_devices *set, twi_device *d, tw_error *error)
{
    for (int i = 0; i < set->num_indexes && !d->kernels; i++)
        if (set->indexes[i]->families == d->ops->kernels && set->indexes[i]->lacks == d->ops->lacks)
            d->kernels = set->indexes[i];
    if (d->kernels)
        return TW_OK;
    twi_kernel_index *made = twi_kernel_index_make(d->ops->kernels, d->ops->lacks);
    if (!made)
        return twi_fail_memory(error, "indexing kernels");
    d->kernels = set->indexes[set->num_indexes++] = made;
    return TW_OK;
}

static tw_status add_device(tw_devices *set, twi_device *d, tw_error *error)
{
    if (!d)
        return TW_RESOURCE_EXHAUSTED;
    d->set = set;
    set->items[set->count++] = d;
    set->guarded = set->guarded || d->ops->holds;
    return index_kernels(set, d, error);
}

static tw_status add_cpu(tw_devices *set, int index, twi_core_share share, int threads, tw_error *error)
{
    int cores[CPU_SETSIZE];
    for (int i = 0; i < share.bound; i++)
        cores[i] = twi_usable_core(share.first + i);
    return add_device(set, twi_cpu_device_create(index, threads ? threads : share.threads, cores, share.bound, error), error);
}

static tw_status add_cpus(tw_devices *set, int count, int threads, tw_error *error)
{
    twi_cores cores = twi_find_cores("");
    tw_status status = TW_OK;
    for (int i = 0; i < count && status == TW_OK; i++)
        status = add_cpu(set, i, twi_share_cores(cores, count, i), threads, error);
    return status;
}

static tw_status check_memory(const tw_device_options *options, tw_error *error)
{
    if (!(options->gpu_memory_fraction >= 0 && options->gpu_memory_fraction <= 1))
        return twi_fail(error, TW_INVALID_ARGUMENT, "gpu_memory_fraction: expected a part above 0, at most 1, found %g",
                        options->gpu_memory_fraction);
    if (options->gpu_memory_fraction > 0 && options->gpu_memory_limit > 0)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "gpu_memory_limit and gpu_memory_fraction both limit the memory of GPUs: give one of them");
    return TW_OK;
}

/* How much of a GPU's memory may be taken, and how. */
static tw_status limit_memory(twi_device *d, const tw_device_options *options, tw_error *error)
{
    d->allow_growth = options->allow_growth;
    d->memory_limit = d->memory_total;
    if (options->gpu_memory_limit && (!d->memory_total || options->gpu_memory_limit < d->memory_total))
        d->memory_limit = options->gpu_memory_limit;
    if (options->gpu_memory_fraction > 0 && !d->memory_total)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "gpu_memory_fraction: a part of what? %s has no memory of a known size%s",
                        twi_device_local_name(d), strcmp(d->ops->kind, "virtual") == 0 ? "; give virtual_gpu_memory" : "");
    if (options->gpu_memory_fraction > 0)
        d->memory_limit = (size_t)((double)d->memory_total * options->gpu_memory_fraction);
    return TW_OK;
}

static tw_status add_virtual_gpu(tw_devices *set, int index, const tw_device_options *options, tw_error *error)
{
    tw_status status = add_device(set, twi_virtual_device_create(index, options->virtual_gpu_memory, error), error);
    return status == TW_OK ? limit_memory(set->items[set->count - 1], options, error) : status;
}

static tw_status add_card(tw_devices *set, const twi_plugin *plugin, int number, int parts,
                          const tw_device_options *options, tw_error *error)
{
    tw_status status =
        add_device(set, plugin->create(number / parts, number, number % parts, parts, error), error);
    if (status != TW_OK)
        return status;
    twi_device *card = set->items[set->count - 1];
    card->tf32 = options->tf32;
    card->fast = options->fast;
    card->collective_timeout = options->collective_timeout > 0 ? options->collective_timeout : COLLECTIVE_TIMEOUT;
    return limit_memory(card, options, error);
}

tw_status tw_devices_create(const tw_device_options *options, tw_devices **devices, tw_error *error)
{
    static const tw_device_options defaults;
    tw_devices *set = NULL;
    tw_status status;
    int gpus, cards = 0;
    const char *why;
    const twi_plugin *plugin = NULL;

    *devices = NULL;
    if (!options)
        options = &defaults;
    int cpus = options->cpu_devices ? options->cpu_devices : 1;
    TWI_TRY(check_range("cpu_devices", cpus, MOST_DEVICES, error));
    TWI_TRY(check_range("cpu_threads", options->cpu_threads, 4096, error));
    TWI_TRY(virtual_gpus(options, &gpus, error));
    TWI_TRY(check_memory(options, error));
    TWI_TRY(check_range("logical_gpus", options->logical_gpus, MOST_PARTS, error));
    int parts = options->logical_gpus > 1 ? options->logical_gpus : 1;

    if (!options->no_gpus && gpus == 0 && (plugin = twi_plugin_open(&why)))
        cards = plugin->count(&why) * parts;

    set = twi_alloc(sizeof *set);
    if (set) {
        set->items = twi_alloc_array((size_t)(cpus + gpus + cards), sizeof *set->items);
        set->indexes = twi_alloc_array((size_t)(cpus + gpus + cards), sizeof *set->indexes);
    }
    if (!set || !set->items || !set->indexes)
        TWI_TRY(twi_fail_memory(error, "opening devices"));
    TWI_TRY(add_cpus(set, cpus, options->cpu_threads, error));
    for (int i = 0; i < gpus; i++)
        TWI_TRY(add_virtual_gpu(set, i, options, error));
    for (int i = 0; i < cards; i++)
        TWI_TRY(add_card(set, plugin, i, parts, options, error));
    *devices = set;
    return TW_OK;
done:
    tw_devices_destroy(set);
    return status;
}

void tw_devices_destroy(tw_devices *devices)
{
    if (!devices)
        return;
    for (int i = devices->count - 1; i >= 0; i--)
        devices->items[i]->ops->destroy(devices->items[i]);
    for (int i = 0; i < devices->num_indexes; i++)
        twi_kernel_index_free(devices->indexes[i]);
    twi_free(devices->indexes);
    twi_free(devices->items);
    twi_free(devices);
}

int tw_devices_count(const tw_devices *devices, const char *type)
{
    int count = 0;
    for (int i = 0; i < devices->count; i++)
        count += !type || strcmp(devices->items[i]->ops->type, type) == 0;
    return count;
}

tw_device_info tw_devices_info(const tw_devices *devices, int i)
{
    if (i < 0 || i >= devices->count)
        return (tw_device_info){.name = "", .type = "", .kind = "", .description = "", .model = "", .uuid = "",
                                .pci = ""};
    twi_device *d = devices->items[i];
    return (tw_device_info){
        .name = d->text,
        .type = d->ops->type,
        .kind = d->ops->kind,
        .description = d->description,
        .threads = d->threads,
        .memory_limit = d->memory_limit,
        .memory_used = atomic_load(&d->memory_used),
        .memory_peak = atomic_load(&d->memory_peak),
        .memory_total = d->memory_total,
        .model = d->model,
        .uuid = d->name.uuid,
        .pci = d->pci,
        .multiprocessors = d->multiprocessors,
        .part = d->part,
        .parts = d->parts,
    };
}

const char *tw_devices_why_no_gpu(void)
{
    const char *why;
    const twi_plugin *plugin = twi_plugin_open(&why);
    return plugin && plugin->count(&why) > 0 ? "" : why;
}

/* ---- memory and copies ----------------------------------------------------------------------------------------- */

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

tw_status twi_device_copy(twi_device *to, void *destination, twi_device *from, const void *source, size_t bytes,
                          tw_error *error)
{
    if (bytes == 0)
        return TW_OK;
    if (from->is_host)
        return to->ops->write(to, destination, source, bytes, error);
    if (to->is_host)
        return from->ops->read(from, destination, source, bytes, error);
    if (to->ops->copy_from)
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
