/* plugin.c - the one function that the CUDA plug-in shows. */
#include "device/cuda/cuda.h"

static const twi_plugin table = {
    .version = TWI_PLUGIN_VERSION,
    .device_size = sizeof(twi_device),
    .set_log = tw_set_log,
    .count = twi_cuda_count,
    .describe = twi_cuda_describe,
    .create = twi_cuda_device_create,
    .nccl = twi_nccl_version,
};

__attribute__((visibility("default"))) twi_plugin_entry tw_cuda_plugin;

const twi_plugin *tw_cuda_plugin(void)
{
    return &table;
}
