/* least_loaded.c - the device function that spreads variables over devices by their size. */
#include "graph/graph.h"

const char *tw_least_loaded_device(void *user, const tw_node *node)
{
    tw_least_loaded *spread = user;
    TWI_NEED_OR(user && node, "");
    if (node->device[0])
        return "";
    if (!tw_node_is_variable(node) || spread->num_devices < 1)
        return spread->worker;
    int least = 0;
    for (int i = 1; i < spread->num_devices; i++)
        if (spread->loads[i] < spread->loads[least])
            least = i;
    int64_t size = tw_shape_elements(twi_attr_shape(&node->attrs, "shape"));
    if (spread->by_bytes)
        size *= (int64_t)tw_dtype_size(twi_attr_type(&node->attrs, "dtype"));
    spread->loads[least] += size > 0 ? size : 0; /* below 0: not known; weighs nothing */
    return spread->devices[least];
}
