/* set.c - the devices of a set: what was asked for, which backends are asked for it, and what they make. */
#include "base/memory.h"
#include "base/sized.h"
#include "device/backend.h"
#include "device/kernel_index.h"
#include "device/plugin.h"
#include "device/tasks.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPTIONS = 16 }; /* that one backend takes */

/* ---- all backends ------------------------------------------------------------------------------------------------ */

extern const twi_backend twi_cpu_backend, twi_virtual_backend;
/* CPUs come first in every set. */
static const twi_backend *const built_in[] = {&twi_cpu_backend, &twi_virtual_backend};
enum { BUILT_IN = sizeof built_in / sizeof *built_in };

/* ---- options ----------------------------------------------------------------------------------------------------- */

typedef enum option_kind { NUMBER, SIZE, FRACTION, FLAG } option_kind;

/*  X(member, kind); no_gpus is no backend's: it says whom to ask */
#define PUBLIC_OPTIONS(X)                                                                                              \
    X(cpu_devices, NUMBER)                                                                                             \
    X(cpu_threads, NUMBER)                                                                                             \
    X(virtual_gpus, NUMBER)                                                                                            \
    X(virtual_gpu_memory, SIZE)                                                                                        \
    X(gpu_memory_limit, SIZE)                                                                                          \
    X(gpu_memory_fraction, FRACTION)                                                                                   \
    X(allow_growth, FLAG)                                                                                              \
    X(logical_gpus, NUMBER)                                                                                            \
    X(tf32, FLAG)                                                                                                      \
    X(fast, FLAG)                                                                                                      \
    X(collective_timeout, FRACTION)

static const struct {
    const char *name;
    size_t offset;
    option_kind kind;
} public_options[] = {
#define X(name, kind) {#name, offsetof(tw_device_options, name), kind},
    PUBLIC_OPTIONS(X)
#undef X
};

static double public_value(const tw_device_options *given, const char *name)
{
    for (size_t i = 0; i < sizeof public_options / sizeof *public_options; i++) {
        const void *at = (const char *)given + public_options[i].offset;
        if (strcmp(public_options[i].name, name) != 0)
            continue;
        switch (public_options[i].kind) {
        case NUMBER:
            return *(const int *)at;
        case SIZE:
            return (double)*(const size_t *)at;
        case FRACTION:
            return *(const double *)at;
        case FLAG:
            return *(const bool *)at;
        }
    }
    return 0;
}

/* The value of an option: as given, else the environment's. */
static tw_status find_value(const twi_backend_option *row, const tw_device_options *given, double *value,
                            tw_error *error)
{
    const char *text = row->environment ? getenv(row->environment) : NULL;
    *value = public_value(given, row->name);
    if (*value == 0 && text && text[0]) {
        char *end;
        *value = strtod(text, &end);
        if (*end || !(*value >= row->least && *value <= row->most))
            return twi_fail(error, TW_INVALID_ARGUMENT, "%s: expected a number from %g to %g, found '%.64s'",
                            row->environment, row->least, row->most, text);
    }
    if (!(*value >= row->least && *value <= row->most))
        return twi_fail(error, TW_INVALID_ARGUMENT, "%s: expected %g to %g, found %g", row->name, row->least, row->most,
                        *value);
    return TW_OK;
}

/* ---- making a set ------------------------------------------------------------------------------------------------ */

/* A backend with what it was given and how many devices it has. */
typedef struct request {
    const twi_backend *backend;
    double values[MOST_OPTIONS];
    int count;
} request;

static twi_options options_of(const request *r)
{
    return (twi_options){r->backend->options, r->values};
}

static tw_status enumerate(request *r, const twi_backend *backend, const tw_device_options *given, const char **why,
                           tw_error *error)
{
    *r = (request){.backend = backend};
    for (int i = 0; backend->options[i].name; i++) {
        if (i == MOST_OPTIONS)
            return twi_fail(error, TW_INTERNAL, "backend '%s' takes more than %d options", backend->kind, MOST_OPTIONS);
        tw_status status = find_value(&backend->options[i], given, &r->values[i], error);
        if (status != TW_OK)
            return status;
    }
    twi_options options = options_of(r);
    return backend->enumerate(&options, &r->count, why, error);
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
    d->set = set;
    set->items[set->count++] = d;
    set->guarded = set->guarded || d->ops->holds;
    return index_kernels(set, d, error);
}

/* The task's devices of the type that there are already. */
static int count_of(const tw_devices *set, int task, const char *type)
{
    int count = 0;
    for (int i = 0; i < set->count; i++)
        count += set->items[i]->task == task && strcmp(set->items[i]->ops->type, type) == 0;
    return count;
}

/* Those of a task; all tasks have the same. */
static tw_status add_devices(tw_devices *set, const request *r, int task, int ps_tasks, tw_error *error)
{
    twi_options options = options_of(r);
    tw_status status = TW_OK;
    for (int i = 0; i < r->count && status == TW_OK; i++) {
        tw_error why = {0};
        twi_device *d = r->backend->create(&options, i, count_of(set, task, r->backend->type), &why);
        if (!d && error)
            *error = why;
        status = d ? add_device(set, d, error) : why.status;
        if (status == TW_OK && set->absent)
            twi_device_join(d, task, ps_tasks, &set->absent[set->count - 1]);
    }
    return status;
}

static tw_status add_devices_of_all(tw_devices *set, const request *r, int ps_tasks, tw_error *error)
{
    tw_status status = TW_OK;
    int first = set->count;
    for (int task = 0; task < set->tasks && status == TW_OK; task++)
        status = add_devices(set, r, task, ps_tasks, error);
    if (status == TW_OK)
        twi_devices_stand_in(set, first, r->count);
    return status;
}

static tw_status make_room(tw_devices *set, int count, tw_error *error)
{
    bool others = set->tasks > 1 || set->comm;
    count *= set->tasks;
    set->absent = others ? twi_alloc_array((size_t)count, sizeof *set->absent) : NULL;
    set->items = twi_alloc_array((size_t)count, sizeof *set->items);
    set->indexes = twi_alloc_array((size_t)count, sizeof *set->indexes);
    bool fits = set->items && set->indexes && (set->absent || !others);
    return fits ? TW_OK : twi_fail_memory(error, "opening devices");
}

/* Asks backends for their devices. Those of plug-ins are real: they are left alone where virtual ones play them. */
static tw_status enumerate_all(request *requests, int *count, const tw_device_options *given, tw_error *error)
{
    const char *why = "";
    bool real = !given->no_gpus;
    tw_status status;
    for (int i = 0; i < BUILT_IN; i++) {
        TWI_TRY(enumerate(&requests[(*count)++], built_in[i], given, &why, error));
        real = real && (strcmp(built_in[i]->type, "CPU") == 0 || requests[i].count == 0);
    }
    twi_backends more = real ? twi_plugin_backends(&why) : (twi_backends){0};
    for (int i = 0; i < more.count; i++)
        TWI_TRY(enumerate(&requests[(*count)++], more.items[i], given, &why, error));
    return TW_OK;
done:
    return status;
}

/* Which tasks there are: those that this one was started with, or as many as are to be planned for. */
static tw_status find_tasks(tw_devices *set, const tw_device_options *given, tw_error *error)
{
    const char *refused;
    tw_status status = TW_OK;
    if (given->plan_tasks < 0 || given->plan_tasks > TWI_MOST_TASKS || (given->plan_tasks && given->tasks))
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "options.plan_tasks: expected 0 to %d, without options.tasks, found %d%s", TWI_MOST_TASKS,
                        given->plan_tasks, given->tasks ? " with them" : "");
    set->tasks = given->plan_tasks ? given->plan_tasks : 1;
    if (given->tasks)
        twi_comm_started(&set->tasks);
    if (given->ps_tasks < 0 || given->ps_tasks >= set->tasks) /* who has not joined the others may ask who says so */
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "options.ps_tasks leaves no worker: %d %s started in all, by tower launch, mpirun or srun, "
                        "and %d would be the job ps",
                        set->tasks, set->tasks == 1 ? "task was" : "tasks were", given->ps_tasks);
    if (given->tasks) {
        const twi_comm_way *const *ways = twi_plugin_ways(&refused);
        status = twi_comm_open(ways, refused, &set->comm, error);
    }
    set->task = set->comm ? set->comm->task : 0;
    set->tasks = set->comm ? set->comm->tasks : given->plan_tasks ? given->plan_tasks : 1;
    return status;
}

tw_status tw_devices_create(const tw_device_options *given, tw_devices **devices, tw_error *error)
{
    tw_device_options options;
    TWI_NEED(devices, "devices", error);
    request *requests = twi_alloc_array(BUILT_IN + TWI_MOST_BACKENDS, sizeof *requests);
    tw_devices *set = twi_alloc(sizeof *set);
    int num_requests = 0, count = 0;
    tw_status status;

    *devices = NULL;
    if (!set || !requests)
        TWI_LEAVE(twi_fail_memory(error, "opening devices"));
    TWI_TRY(twi_sized(&options, given, TWI_SIZE(tw_device_options, collective_timeout), error));
    TWI_TRY(enumerate_all(requests, &num_requests, &options, error));
    for (int i = 0; i < num_requests; i++)
        count += requests[i].count;
    TWI_TRY(find_tasks(set, &options, error));
    TWI_TRY(make_room(set, count, error));
    for (int i = 0; i < num_requests; i++)
        TWI_TRY(add_devices_of_all(set, &requests[i], options.ps_tasks, error));
    if (set->comm) {
        atomic_store(&set->comm->lane_channels, 1 + set->count); /* one for each device, and one for what is fetched */
        TWI_TRY(twi_devices_compare(set, error));
    }
    *devices = set;
    set = NULL;
done:
    tw_devices_destroy(set);
    twi_free(requests);
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
    twi_comm_close(devices->comm);
    twi_free(devices->absent);
    twi_free(devices->indexes);
    twi_free(devices->items);
    twi_free(devices);
}

int tw_devices_count(const tw_devices *devices, const char *type)
{
    TWI_NEED_OR(devices, 0);
    int count = 0;
    if (!type)
        return devices->count;
    for (int i = 0; i < devices->count; i++)
        count += strcmp(devices->items[i]->ops->type, type) == 0;
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
    TWI_NEED_OR(name, false);
    return twi_device_name_parse(name, &parsed, NULL) == TW_OK && (!type || strcmp(parsed.type, type) == 0);
}

bool tw_device_in_job(const char *name, const char *job)
{
    twi_device_name parsed;
    TWI_NEED_OR(name && job, false);
    return twi_device_name_parse(name, &parsed, NULL) == TW_OK && strcmp(parsed.job, job) == 0;
}

tw_status tw_devices_describe(const tw_devices *devices, int i, tw_device_info *info, tw_error *error)
{
    TWI_NEED(devices, "devices", error);
    TWI_NEED(info, "info", error);
    if (i < 0 || i >= devices->count)
        return twi_fail(error, TW_OUT_OF_RANGE, "there is no device number %d: there are %d", i, devices->count);
    twi_device *d = devices->items[i];
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
        .model = "",
        .uuid = d->name.uuid,
        .pci = "",
        .arithmetic = d->arithmetic,
        .task = d->task,
    };
    if (d->ops->describe)
        d->ops->describe(d, &known);
    return twi_fill_sized(info, &known, TWI_SIZE(tw_device_info, parts), error);
}

/* ---- what there is not ------------------------------------------------------------------------------------------- */

static struct {
    pthread_once_t once;
    char text[1200];
} no_gpu = {.once = PTHREAD_ONCE_INIT};

static void ask_why_no_gpu(void)
{
    static const tw_device_options defaults;
    const char *why, *reason;
    size_t used = 0;
    request r;
    twi_backends plugins = twi_plugin_backends(&why);
    used += (size_t)snprintf(no_gpu.text, sizeof no_gpu.text, "%s", why);
    for (int i = 0; i < plugins.count; i++) {
        tw_error error = {0};
        reason = error.message;
        if (strcmp(plugins.items[i]->type, "GPU") != 0)
            continue;
        tw_status status = enumerate(&r, plugins.items[i], &defaults, &reason, &error);
        if (status == TW_OK && r.count > 0) {
            no_gpu.text[0] = 0;
            return;
        }
        if (used < sizeof no_gpu.text && reason[0])
            used += (size_t)snprintf(no_gpu.text + used, sizeof no_gpu.text - used, "%s%s", used ? "; " : "", reason);
    }
}

const char *tw_devices_why_no_gpu(void)
{
    pthread_once(&no_gpu.once, ask_why_no_gpu);
    return no_gpu.text;
}
