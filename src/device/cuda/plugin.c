/* plugin.c - the CUDA backend, and the one function that the plug-in shows. */
#include "base/log.h"
#include "device/cuda/cuda.h"

#define COLLECTIVE_TIMEOUT 300 /* seconds; a step of the slowest network on the slowest card takes far less */
#define MOST_PARTS 16          /* of a card: as many groups of multiprocessors as the largest have */

static const twi_backend_option options[] = {
    {"logical_gpus", 0, MOST_PARTS, NULL}, {"tf32", 0, 1, NULL}, {"fast", 0, 1, NULL},
    {"collective_timeout", 0, 1e9, NULL},  TWI_MEMORY_OPTIONS,   {0}};

/* Into how many a card is divided. */
static int parts_of(const twi_options *given)
{
    int parts = (int)twi_option(given, "logical_gpus");
    return parts > 1 ? parts : 1;
}

static tw_status enumerate(const twi_options *given, int *count, const char **why, tw_error *error)
{
    *count = twi_cuda_count(why) * parts_of(given);
    return twi_check_memory(given, error);
}

static twi_device *create(const twi_options *given, int index, int number, tw_error *error)
{
    int parts = parts_of(given);
    double timeout = twi_option(given, "collective_timeout");
    twi_device *d = twi_cuda_device_create(index / parts, number, index % parts, parts, error);
    if (!d)
        return NULL;
    twi_cuda_device *c = (twi_cuda_device *)d;
    c->tf32 = twi_option(given, "tf32") != 0;
    c->fast = twi_option(given, "fast") != 0;
    c->collective_timeout = timeout > 0 ? timeout : COLLECTIVE_TIMEOUT;
    if (twi_limit_memory(d, given, "", error) == TW_OK)
        return d;
    d->ops->destroy(d);
    return NULL;
}

static const twi_backend cuda = {
    .kind = "cuda",
    .type = "GPU",
    .options = options,
    .enumerate = enumerate,
    .create = create,
    .collective = twi_nccl_version,
};

static const twi_backend *const backends[] = {&cuda, NULL};
static const twi_plugin table = {TWI_PLUGIN_HEAD, .backends = backends};

const twi_plugin *twi_plugin_entry(void)
{
    return &table;
}
