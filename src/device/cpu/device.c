/* device.c - the CPU as a device: memory of the host, a team of threads on its share of the cores.
 * Lives here:  memory, copies, the size of the team.
 * Never here:  kernels; the thread that runs plans (src/run). */
#define _GNU_SOURCE /* MADV_HUGEPAGE */
#include "base/cores.h"
#include "base/memory.h"
#include "base/room.h"
#include "device/backend.h"
#include "device/cpu/copy.h"
#include "device/cpu/library/onednn.h"
#include "device/cpu/team.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* From this size on, memory comes in pages of its own, huge ones where the kernel has them. Smaller blocks come from
 * the heap, so that a device with many small buffers does not scatter them over as many pages. */
#define BIG_BLOCK ((size_t)1 << 20)
#define HUGE_PAGE ((size_t)2 << 20)
#define PAGE ((size_t)4096)

typedef struct cpu_device {
    twi_device base;
    int cores[]; /* base.cores, if bound */
} cpu_device;

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* Aligned to huge pages, because the kernel only makes huge pages of whole aligned ones. Fresh pages are zero. */
static tw_status map_pages(twi_device *d, size_t bytes, void **memory, tw_error *error)
{
    size_t size = round_up(bytes, PAGE);
    if (!twi_has_room(size))
        return twi_fail(error, TW_RESOURCE_EXHAUSTED, "%s: cannot get %zu bytes, %.0f are left", d->text, bytes,
                        twi_memory_left(""));
    char *mapped = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return twi_fail(error, TW_RESOURCE_EXHAUSTED, "%s: cannot get %zu bytes: %s", d->text, bytes, strerror(errno));
    char *start = (char *)round_up((size_t)mapped, HUGE_PAGE);
    if (start > mapped)
        munmap(mapped, (size_t)(start - mapped));
    size_t rest = (size_t)(mapped + size + HUGE_PAGE - (start + size));
    if (rest)
        munmap(start + size, rest);
    madvise(start, size, MADV_HUGEPAGE); /* advice: refused where the kernel has no huge pages */
    *memory = start;
    return TW_OK;
}

static tw_status cpu_alloc(twi_device *d, size_t bytes, void **memory, tw_error *error)
{
    if (bytes > PTRDIFF_MAX - HUGE_PAGE)
        return twi_fail(error, TW_RESOURCE_EXHAUSTED, "%s: %zu bytes are more than an address space", d->text, bytes);
    if (bytes >= BIG_BLOCK)
        return map_pages(d, bytes, memory, error);
    *memory = twi_alloc_aligned(bytes, 64);
    if (!*memory)
        return twi_fail(error, TW_RESOURCE_EXHAUSTED, "%s: cannot get %zu bytes", d->text, bytes);
    return TW_OK;
}

static void cpu_free(twi_device *d, void *memory, size_t bytes)
{
    (void)d;
    if (bytes >= BIG_BLOCK)
        munmap(memory, round_up(bytes, PAGE));
    else
        twi_free_aligned(memory);
}

static tw_status cpu_copy(twi_device *d, void *to, const void *from, size_t bytes, tw_error *error)
{
    (void)error;
    twi_copy_block(to, from, bytes, twi_team_is_here() ? d->threads : 1);
    return TW_OK;
}

/* Where the memory of GPUs can be told from the host's, a kernel that would read it is stopped here, as it would be by
 * the hardware. */
static tw_status check_operand(twi_device *d, const char *verb, const twi_operand *operand, const void *memory,
                               tw_error *error)
{
    if (operand->dtype == TW_RESOURCE)
        memory = operand->resource ? operand->resource->memory : NULL;
    else if (operand->bytes == 0)
        return TW_OK;
    const twi_device *other = twi_device_of_memory(d, memory);
    if (!other)
        return TW_OK;
    return twi_fail(error, TW_INTERNAL, "%s cannot %s memory of %s (address %p)", twi_device_local_name(d), verb,
                    twi_device_local_name(other), memory);
}

static tw_status cpu_launch(twi_device *d, const twi_kernel *kernel, const twi_run *run)
{
    tw_status status = TW_OK;
    if (!d->set || !d->set->guarded)
        return kernel->run(run);
    for (int i = 0; i < run->num_inputs && status == TW_OK; i++)
        status = check_operand(d, "read", &run->input_operands[i], run->inputs[i], run->error);
    for (int i = 0; i < run->num_outputs && status == TW_OK; i++)
        status = check_operand(d, "write", &run->output_operands[i], run->outputs[i], run->error);
    if (status == TW_OK)
        return kernel->run(run);
    twi_prefix(run->error, "%s '%s'", kernel->op, run->node);
    return status;
}

static void cpu_destroy(twi_device *d)
{
    twi_free(d);
}

static const twi_device_ops cpu_ops = {
    .type = "CPU",
    .kind = "cpu",
    .kernels = twi_cpu_kernels,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .write = cpu_copy,
    .read = cpu_copy,
    .launch = cpu_launch,
    .destroy = cpu_destroy,
};

/* ---- the backend ------------------------------------------------------------------------------------------------- */

static const twi_backend_option cpu_options[] = {{"cpu_devices", 0, 256, NULL}, {"cpu_threads", 0, 4096, NULL}, {0}};

static int num_devices(const twi_options *options)
{
    int count = (int)twi_option(options, "cpu_devices");
    return count ? count : 1;
}

static tw_status cpu_enumerate(const twi_options *options, int *count, const char **why, tw_error *error)
{
    (void)why, (void)error;
    *count = num_devices(options);
    return TW_OK;
}

static twi_device *cpu_create(const twi_options *options, int index, int number, tw_error *error)
{
    twi_core_share share = twi_share_cores(twi_find_cores(""), num_devices(options), index);
    int threads = (int)twi_option(options, "cpu_threads");
    cpu_device *cpu = twi_alloc(sizeof *cpu + (size_t)share.bound * sizeof *cpu->cores);
    if (!cpu) {
        twi_fail_memory(error, "opening a CPU device");
        return NULL;
    }
    twi_device *d = &cpu->base;
    *d = (twi_device){.ops = &cpu_ops, .threads = threads ? threads : share.threads, .is_host = true};
    d->name = (twi_device_name){.job = "localhost", .type = "CPU", .id = number};
    twi_device_name_print(&d->name, d->text, sizeof d->text);
    for (int i = 0; i < share.bound; i++)
        cpu->cores[i] = twi_usable_core(share.first + i);
    d->cores = share.bound ? cpu->cores : NULL;
    d->num_cores = share.bound;
    snprintf(d->description, sizeof d->description, "CPU, %d thread%s%s", d->threads, d->threads == 1 ? "" : "s",
             share.bound ? " on cores of its own" : "");
    twi_dnnl_about(d->arithmetic, sizeof d->arithmetic);
    return d;
}

const twi_backend twi_cpu_backend = {
    .kind = "cpu",
    .type = "CPU",
    .options = cpu_options,
    .enumerate = cpu_enumerate,
    .create = cpu_create,
};
