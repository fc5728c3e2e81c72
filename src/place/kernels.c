/* kernels.c - whether a device could run a node, for device functions of users. */
#include "device/device.h"
#include "graph/graph.h"

#include <tower/session.h>

bool tw_devices_have_kernel(const tw_devices *devices, int device, const tw_node *node)
{
    TWI_NEED_OR(devices, false);
    return device >= 0 && device < devices->count &&
           twi_device_has_kernel(devices->items[device], node->op->name, node->kernel_type);
}
