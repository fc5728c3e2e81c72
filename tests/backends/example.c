/* example.c - a whole backend in one file: GPUs whose memory is the host's and which run two of the CPU's plain
 * kernels. The guide reads it (docs/guide/adding-a-backend.md), and test_backends has it found, listed, placed on and
 * computed with. */
#include "base/memory.h"
#include "device/plugin.h"

#include <stdio.h>
#include <string.h>

enum { MEMORY = 64 << 20 }; /* bytes of each */

typedef struct example_device {
    twi_device base; /* first */
    int launches;    /* what only this backend knows */
} example_device;

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static tw_status example_alloc(twi_device *d, size_t bytes, void **memory, tw_error *error)
{
    *memory = twi_alloc_aligned(bytes, 64);
    return *memory ? TW_OK : twi_fail(error, TW_RESOURCE_EXHAUSTED, "%s: cannot get %zu bytes", d->text, bytes);
}

static void example_free(twi_device *d, void *memory, size_t bytes)
{
    (void)d, (void)bytes;
    twi_free_aligned(memory);
}

static tw_status example_copy(twi_device *d, void *to, const void *from, size_t bytes, tw_error *error)
{
    (void)d, (void)error;
    memcpy(to, from, bytes);
    return TW_OK;
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

static tw_status example_launch(twi_device *d, const twi_kernel *kernel, const twi_run *run)
{
    ((example_device *)d)->launches++;
    return kernel->run(run);
}

static void example_describe(const twi_device *d, tw_device_info *info)
{
    (void)d;
    info->model = "Example 1";
}

static void example_destroy(twi_device *d)
{
    twi_free(d);
}

extern const twi_kernel twi_cpu_activation_kernels[], twi_cpu_bias_kernels[];
static const twi_kernel *const kernels[] = {twi_cpu_activation_kernels, twi_cpu_bias_kernels, NULL};

static const twi_device_ops ops = {
    .type = "GPU",
    .kind = "example",
    .kernels = kernels,
    .alloc = example_alloc,
    .free = example_free,
    .write = example_copy,
    .read = example_copy,
    .launch = example_launch,
    .describe = example_describe,
    .destroy = example_destroy,
};

/* ---- the backend ------------------------------------------------------------------------------------------------- */

static const twi_backend_option options[] = {{"example_gpus", 0, 8, "TOWER_EXAMPLE_GPUS"}, TWI_MEMORY_OPTIONS, {0}};

static tw_status enumerate(const twi_options *given, int *count, const char **why, tw_error *error)
{
    *count = (int)twi_option(given, "example_gpus");
    *why = "TOWER_EXAMPLE_GPUS asks for no example GPUs";
    return twi_check_memory(given, error);
}

static twi_device *create(const twi_options *given, int index, int number, tw_error *error)
{
    example_device *e = twi_alloc(sizeof *e);
    if (!e) {
        twi_fail_memory(error, "opening an example GPU");
        return NULL;
    }
    twi_device *d = &e->base;
    d->ops = &ops;
    d->name = (twi_device_name){.job = "localhost", .type = "GPU", .id = number};
    d->threads = 1;
    d->memory_total = MEMORY;
    twi_device_name_print(&d->name, d->text, sizeof d->text);
    snprintf(d->description, sizeof d->description, "example number %d", index);
    if (twi_limit_memory(d, given, "", error) == TW_OK)
        return d;
    twi_free(e);
    return NULL;
}

static const twi_backend example = {
    .kind = "example", .type = "GPU", .options = options, .enumerate = enumerate, .create = create};

static const twi_backend *const backends[] = {&example, NULL};
static const twi_plugin plugin = {TWI_PLUGIN_HEAD, .backends = backends};

const twi_plugin *twi_plugin_entry(void)
{
    return &plugin;
}
