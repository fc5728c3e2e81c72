/* assign.c - every node of the region gets a device: the one that placement chose for the user's node, if that has a kernel
 * which takes the node now that its shapes are known. What is refused is placed again with that in mind, where soft
 * placement may move it; so nothing is planned before it is certain where.
 * Never here: the rules by which devices are chosen (src/place). */
#include "plan/stages.h"

static void give_devices(twi_planning *p)
{
    const twi_placement *placement = p->request->placement;
    for (twi_node *node = p->rewriting.region->first; node; node = node->next)
        if (!twi_has_trait(node, TWI_FEED))
            node->device = placement->devices[node->origin->id];
}

/* TW_UNIMPLEMENTED: the device refuses the node; noted where another may take it. */
static tw_status ask_for_kernel(twi_planning *p, const twi_node *node)
{
    twi_device *device = p->request->devices->items[node->device];
    bool is_users = p->plan->origins[node->origin->id] == node;
    tw_error refusal = {0};
    tw_status status = twi_node_accepted(node, device, p->request->plain_kernels, &refusal, p->error);
    if (status == TW_UNIMPLEMENTED && is_users && refusal.message[0] &&
        twi_placement_refuse(p->request->placement, node->origin, refusal.message, p->error) != TW_OK)
        return TW_RESOURCE_EXHAUSTED;
    return status;
}

tw_status twi_assign_devices(twi_planning *p)
{
    twi_placement *placement = p->request->placement;
    tw_status status;
    int known;
    do { /* a node is refused by a kind of device once at most */
        known = placement->refusals.count;
        status = TW_OK;
        give_devices(p);
        for (const twi_node *node = p->rewriting.region->first; node; node = node->next) {
            tw_status asked = twi_has_trait(node, TWI_FEED | TWI_CONSTANT) ? TW_OK : ask_for_kernel(p, node);
            status = status == TW_OK || asked == TW_RESOURCE_EXHAUSTED ? asked : status;
        }
    } while (status == TW_UNIMPLEMENTED && placement->refusals.count > known &&
             twi_place_again(p->request->graph, placement, known) == TW_OK);
    return status;
}
