/* device.c - see device.h: opening the devices of a set, memory with a limit, copies, finding kernels. */
#include "device/device.h"

#include "base/array.h"
#include "base/sized.h"
#include "base/thread.h"
#include "device/plugin.h"

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

static tw_status add_device(tw_devices *set, twi_device *d)
{
    if (!d)
        return TW_RESOURCE_EXHAUSTED;
    d->set = set;
    set->items[set->count++] = d;
    set->guarded = set->guarded || d->ops->holds;
    return TW_OK;
}

/* Every device gets equally many neighbouring cores, also when some are left over: teams of one size are what makes
 * the devices give equal bits. One device alone is not bound, and neither are more devices than there are cores. */
static tw_status add_cpus(tw_devices *set, int count, int threads, tw_error *error)
{
    int usable = twi_usable_cores(), share = usable / count;
    int *cores = twi_alloc_array((size_t)usable, sizeof *cores);
    if (!cores)
        return twi_fail_memory(error, "dividing the cores");
    for (int i = 0; i < usable; i++)
        cores[i] = twi_usable_core(i);
    tw_status status = TW_OK;
    for (int i = 0; i < count && status == TW_OK; i++) {
        bool bound = count > 1 && share > 0;
        int team = threads ? threads : share ? share : 1;
        status =
            add_device(set, twi_cpu_device_create(i, team, bound ? cores + i * share : NULL, bound ? share : 0, error));
    }
    twi_free(cores);
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
    tw_status status = add_device(set, twi_virtual_device_create(index, options->virtual_gpu_memory, error));
    return status == TW_OK ? limit_memory(set->items[set->count - 1], options, error) : status;
}

static tw_status add_card(tw_devices *set, const twi_plugin *plugin, int number, int parts,
                          const tw_device_options *options, tw_error *error)
{
    tw_status status =
        add_device(set, plugin->create(number / parts, number, number % parts, parts, error));
    if (status != TW_OK)
        return status;
    twi_device *card = set->items[set->count - 1];
    card->tf32 = options->tf32;
    card->fast = options->fast;
    card->collective_timeout = options->collective_timeout > 0 ? options->collective_timeout : COLLECTIVE_TIMEOUT;
    return limit_memory(card, options, error);
}

tw_status tw_devices_create(const tw_device_options *given, tw_devices **devices, tw_error *error)
{
    tw_device_options whole, *options = &whole;
    tw_devices *set = NULL;
    tw_status status;
    int gpus, cards = 0;
    const char *why;
    const twi_plugin *plugin = NULL;

    TWI_NEED(devices, "devices", error);
    *devices = NULL;
    TWI_TRY(twi_sized(&whole, given, TWI_SIZE(tw_device_options, collective_timeout), error));
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
    if (set)
        set->items = twi_alloc_array((size_t)(cpus + gpus + cards), sizeof *set->items);
    if (!set || !set->items)
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
    twi_free(devices->items);
    twi_free(devices);
}

int tw_devices_count(const tw_devices *devices, const char *type)
{
    TWI_NEED_OR(devices, 0);
    int count = 0;
    for (int i = 0; i < devices->count; i++)
        count += !type || strcmp(devices->items[i]->ops->type, type) == 0;
    return count;
}

int tw_devices_find(const tw_devices *devices, const char *name)
{
    twi_device_name wanted;
    TWI_NEED_OR(devices && name, -1);
    if (twi_device_name_parse(name, &wanted, NULL) != TW_OK)
        return -1;
    for (int i = 0; i < devices->count; i++)
        if (twi_device_name_matches(&wanted, &devices->items[i]->name))
            return i;
    return -1;
}

bool tw_device_is(const char *name, const char *type)
{
    twi_device_name parsed;
    TWI_NEED_OR(name && type, false);
    return twi_device_name_parse(name, &parsed, NULL) == TW_OK && strcmp(parsed.type, type) == 0;
}

tw_status tw_devices_describe(const tw_devices *devices, int i, tw_device_info *info, tw_error *error)
{
    TWI_NEED(devices, "devices", error);
    TWI_NEED(info, "info", error);
    if (i < 0 || i >= devices->count)
        return twi_fail(error, TW_OUT_OF_RANGE, "there is no device number %d: there are %d", i, devices->count);
    const twi_device *d = devices->items[i];
    tw_device_info known = {
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
    return twi_fill_sized(info, &known, TWI_SIZE(tw_device_info, parts), error);
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

/* ---- kernels --------------------------------------------------------------------------------------------------- */

tw_dtype twi_kernel_type(const twi_attrs *attrs)
{
    const twi_attr *attr = twi_attr_find(attrs, "dtype"); /* of random numbers T is the shape's type */
    if (!attr || attr->kind != TW_ATTR_TYPE)
        attr = twi_attr_find(attrs, "T");
    for (int i = 0; i < attrs->count && (!attr || attr->kind != TW_ATTR_TYPE); i++)
        attr = &attrs->items[i];
    return attr && attr->kind == TW_ATTR_TYPE ? attr->type : TW_INVALID_DTYPE;
}

static bool row_accepts(const twi_kernel *row, const char *op, tw_dtype type)
{
    return strcmp(row->op, op) == 0 && (row->types == 0 || (row->types & TWI_TYPE(type)));
}

bool twi_device_has_kernel(const twi_device *d, const char *op, const twi_attrs *attrs)
{
    tw_dtype type = twi_kernel_type(attrs);
    if (d->ops->supports && !d->ops->supports(op, type))
        return false;
    for (const twi_kernel *const *family = d->ops->kernels; *family; family++)
        for (const twi_kernel *row = *family; row->op; row++)
            if (row_accepts(row, op, type))
                return true;
    return false;
}

tw_status twi_device_prepare(twi_device *d, twi_prepare *p, bool plain_only, const twi_kernel **kernel)
{
    tw_dtype type = twi_kernel_type(p->attrs);
    tw_error refusal = {0}; /* of the last row asked: the plain one, whose reason is the op's */
    if (!d->ops->supports || d->ops->supports(p->op, type)) {
        tw_error *error = p->error;
        p->error = &refusal;
        for (const twi_kernel *const *family = d->ops->kernels; *family; family++)
            for (const twi_kernel *row = *family; row->op; row++) {
                if (!row_accepts(row, p->op, type) || (plain_only && strcmp(row->name, "plain") != 0))
                    continue;
                p->state = NULL;
                p->workspace = 0;
                p->varies = false;
                memset(p->can_overwrite, 0, sizeof p->can_overwrite);
                tw_status status = row->prepare ? row->prepare(p) : TW_OK;
                if (status == TW_UNIMPLEMENTED)
                    continue;
                p->error = error;
                *kernel = status == TW_OK ? row : NULL;
                if (status != TW_OK && error)
                    *error = refusal;
                return status;
            }
        p->error = error;
    }
    *kernel = NULL;
    if (p->refusal)
        *p->refusal = refusal;
    return twi_fail(p->error, TW_UNIMPLEMENTED, "%s has no %skernel for %s of type %s (node '%s')%s%s", d->text,
                    plain_only ? "plain " : "", p->op, tw_dtype_name(type), p->node, refusal.message[0] ? ": " : "",
                    refusal.message);
}
