/* device.c - virtual GPUs: the CPU's kernels behind a GPU's manners.
 *
 * A virtual GPU has memory of its own, with a limit. Kernels launched on it may touch that memory and no other; where
 * a card would fault, launch() fails and says whose memory it was. Bytes come and go only through write, read and
 * copy_from.
 *
 * It computes with one thread, always, so that one, two or eight of them on any machine give the same bits. */
#include "device/virtual/virtual.h"

#include "base/array.h"
#include "device/backend.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct block {
    const char *start;
    size_t bytes;
} block;

typedef struct virtual_device {
    twi_device base;
    pthread_rwlock_t lock;   /* guards `blocks`: changed by whoever allocates, read by every launch of any device */
    TWI_ARRAY(block) blocks; /* by address */
} virtual_device;

/* ---- whose memory ---------------------------------------------------------------------------------------------- */

/* Index of the first block that starts after `memory`. */
static int first_after(const virtual_device *v, const char *memory)
{
    int low = 0, high = v->blocks.count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (v->blocks.items[middle].start <= memory)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* 1 if the range lies within one block, 0 if it starts outside of all, -1 if it starts inside and runs out. */
static int holds(virtual_device *v, const void *memory, size_t bytes)
{
    pthread_rwlock_rdlock(&v->lock);
    const char *start = memory;
    int i = first_after(v, start) - 1, answer = 0;
    if (i >= 0 && (size_t)(start - v->blocks.items[i].start) < v->blocks.items[i].bytes)
        answer = bytes <= v->blocks.items[i].bytes - (size_t)(start - v->blocks.items[i].start) ? 1 : -1;
    pthread_rwlock_unlock(&v->lock);
    return answer;
}

static bool virtual_holds(twi_device *d, const void *memory)
{
    return holds((virtual_device *)d, memory, 1) != 0;
}

static tw_status fault(twi_device *d, const char *verb, const void *memory, size_t bytes, tw_error *error)
{
    const char *name = twi_device_local_name(d);
    if (virtual_holds(d, memory))
        return twi_fail(error, TW_INTERNAL, "%s cannot %s %zu bytes at %p: its block ends before", name, verb, bytes,
                        memory);
    const twi_device *other = twi_device_of_memory(d, memory);
    return twi_fail(error, TW_INTERNAL, "%s cannot %s memory of %s (address %p)", name, verb,
                    other ? twi_device_local_name(other) : "/device:CPU:0", memory);
}

static tw_status check(twi_device *d, const char *verb, const void *memory, size_t bytes, tw_error *error)
{
    return bytes == 0 || holds((virtual_device *)d, memory, bytes) > 0 ? TW_OK : fault(d, verb, memory, bytes, error);
}

/* ---- memory and copies ----------------------------------------------------------------------------------------- */

static tw_status virtual_alloc(twi_device *d, size_t bytes, void **memory, tw_error *error)
{
    virtual_device *v = (virtual_device *)d;
    char *start = twi_alloc_aligned(bytes, 64);
    if (!start)
        return twi_fail(error, TW_RESOURCE_EXHAUSTED, "%s: the host has no %zu bytes for it", d->text, bytes);
    pthread_rwlock_wrlock(&v->lock);
    bool kept = twi_push(&v->blocks, (block){0});
    if (kept) {
        int i = v->blocks.count - 1;
        for (; i > 0 && v->blocks.items[i - 1].start > start; i--)
            v->blocks.items[i] = v->blocks.items[i - 1];
        v->blocks.items[i] = (block){start, bytes};
    }
    pthread_rwlock_unlock(&v->lock);
    if (!kept) {
        twi_free_aligned(start);
        return twi_fail_memory(error, "noting a block of a virtual GPU");
    }
    *memory = start;
    return TW_OK;
}

static void virtual_free(twi_device *d, void *memory, size_t bytes)
{
    virtual_device *v = (virtual_device *)d;
    (void)bytes;
    pthread_rwlock_wrlock(&v->lock);
    int i = first_after(v, memory) - 1;
    if (i >= 0 && v->blocks.items[i].start == memory) {
        v->blocks.count--;
        memmove(v->blocks.items + i, v->blocks.items + i + 1, (size_t)(v->blocks.count - i) * sizeof(block));
    }
    pthread_rwlock_unlock(&v->lock);
    twi_free_aligned(memory);
}

static tw_status virtual_write(twi_device *d, void *to, const void *host, size_t bytes, tw_error *error)
{
    tw_status status = check(d, "write", to, bytes, error);
    if (status == TW_OK && bytes)
        memcpy(to, host, bytes);
    return status;
}

static tw_status virtual_read(twi_device *d, void *host, const void *from, size_t bytes, tw_error *error)
{
    tw_status status = check(d, "read", from, bytes, error);
    if (status == TW_OK && bytes)
        memcpy(host, from, bytes);
    return status;
}

static tw_status virtual_copy_from(twi_device *d, void *to, twi_device *source, const void *from, size_t bytes,
                                   tw_error *error)
{
    tw_status status = check(d, "write", to, bytes, error);
    return status == TW_OK ? source->ops->read(source, to, from, bytes, error) : status;
}

/* ---- running --------------------------------------------------------------------------------------------------- */

/* A kernel that gives the handle itself, as IdentityN does, leaves the memory behind it alone. */
static bool is_handed_on(const twi_run *run, const twi_resource *resource)
{
    bool handed_on = false;
    for (int i = 0; i < run->num_outputs && !handed_on; i++)
        handed_on = run->output_operands[i].resource == resource;
    return handed_on;
}

static tw_status check_operand(twi_device *d, const char *verb, const twi_run *run, const twi_operand *operand,
                               const void *memory)
{
    const twi_resource *resource = operand->resource;
    tw_error *error = run->error;
    if (resource && resource->memory && resource->device != d && !is_handed_on(run, resource))
        return twi_fail(error, TW_INTERNAL, "%s cannot %s memory of %s ('%s')", twi_device_local_name(d), verb,
                        resource->device ? twi_device_local_name(resource->device) : "the host", resource->name);
    return operand->dtype == TW_RESOURCE ? TW_OK : check(d, verb, memory, operand->bytes, error);
}

static tw_status virtual_launch(twi_device *d, const twi_kernel *kernel, const twi_run *run)
{
    tw_status status;
    int i = 0;
    const char *operand = "input";
    for (; i < run->num_inputs; i++)
        TWI_TRY(check_operand(d, "read", run, &run->input_operands[i], run->inputs[i]));
    operand = "output";
    for (i = 0; i < run->num_outputs; i++)
        TWI_TRY(check_operand(d, "write", run, &run->output_operands[i], run->outputs[i]));
    operand = "workspace";
    i = 0;
    if (run->workspace)
        TWI_TRY(check(d, "use", run->workspace, 1, run->error));
    return kernel->run(run);
done:
    twi_prefix(run->error, "%s '%s', %s %d", kernel->op, run->node, operand, i);
    return status;
}

static void virtual_destroy(twi_device *d)
{
    virtual_device *v = (virtual_device *)d;
    for (int i = 0; i < v->blocks.count; i++)
        twi_free_aligned((void *)v->blocks.items[i].start);
    twi_array_free(&v->blocks);
    pthread_rwlock_destroy(&v->lock);
    twi_free(v);
}

static const twi_device_ops virtual_ops = {
    .type = "GPU",
    .kind = "virtual",
    .kernels = twi_cpu_kernels,
    .lacks = twi_gpu_lacks,
    .alloc = virtual_alloc,
    .free = virtual_free,
    .write = virtual_write,
    .read = virtual_read,
    .copy_from = virtual_copy_from,
    .launch = virtual_launch,
    .holds = virtual_holds,
    .destroy = virtual_destroy,
};

/* ---- the backend ------------------------------------------------------------------------------------------------- */

static const twi_backend_option virtual_options[] = {
    {"virtual_gpus", 0, 256, "TOWER_VIRTUAL_GPUS"}, {"virtual_gpu_memory", 0, 1e30, NULL}, TWI_MEMORY_OPTIONS, {0}};

static tw_status virtual_enumerate(const twi_options *options, int *count, const char **why, tw_error *error)
{
    (void)why;
    *count = (int)twi_option(options, "virtual_gpus");
    return twi_check_memory(options, error);
}

static twi_device *virtual_create(const twi_options *options, int index, int number, tw_error *error)
{
    (void)index;
    size_t memory = (size_t)twi_option(options, "virtual_gpu_memory"); /* 0: no end */
    virtual_device *v = twi_alloc(sizeof *v);
    if (!v) {
        twi_fail_memory(error, "opening a virtual GPU");
        return NULL;
    }
    twi_device *d = &v->base;
    d->ops = &virtual_ops;
    d->name = (twi_device_name){.job = "localhost", .type = "GPU", .id = number};
    d->threads = 1;
    d->memory_total = memory;
    twi_device_name_print(&d->name, d->text, sizeof d->text);
    int length = snprintf(d->description, sizeof d->description, "virtual GPU: one thread of the CPU, ");
    if (memory)
        snprintf(d->description + length, sizeof d->description - (size_t)length, "%.1f MiB of memory",
                 (double)memory / (1 << 20));
    else
        snprintf(d->description + length, sizeof d->description - (size_t)length, "memory of its own without a limit");
    pthread_rwlock_init(&v->lock, NULL);
    if (twi_limit_memory(d, options, "; give virtual_gpu_memory", error) == TW_OK)
        return d;
    virtual_destroy(d);
    return NULL;
}

const twi_backend twi_virtual_backend = {
    .kind = "virtual",
    .type = "GPU",
    .options = virtual_options,
    .enumerate = virtual_enumerate,
    .create = virtual_create,
};
