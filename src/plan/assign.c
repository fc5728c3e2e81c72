/* assign.c - every node of the region gets a device: the one that placement chose for the user's node, if that has a
 * kernel which takes the node now that its shapes are known. What is refused is placed again with that in mind, where
 * soft placement may move it; so nothing is planned before it is certain where. Never here: the rules by which devices
 * are chosen (src/place). */
#include "plan/stages.h"

#include "device/tasks.h"

/* What is alone runs in the task that calls it, wherever its nodes were placed. */
static void give_device(const twi_planning *p, twi_node *node)
{
    const tw_devices *devices = p->request->devices;
    if (node->origin && !twi_has_trait(node, TWI_FEED))
        node->device = p->request->placement->devices[node->origin->id];
    if (p->request->alone && devices->items[node->device]->absent)
        node->device = p->request->home;
}

static void give_devices(const twi_planning *p)
{
    for (int id = 0; id < p->rewriting.region->nodes.count; id++)
        give_device(p, p->rewriting.region->nodes.items[id]);
}

/* TW_UNIMPLEMENTED: the device refuses the node; noted where another may take it. */
static tw_status ask_for_kernel(twi_planning *p, const twi_node *node)
{
    twi_device *device = p->request->devices->items[node->device];
    tw_error refusal;
    twi_clear_error(&refusal);
    tw_status status = twi_node_accepted(node, device, p->request->plain_kernels, &refusal, p->error);
    if (status == TW_UNIMPLEMENTED && node->is_users && refusal.message[0] &&
        twi_placement_refuse(p->request->placement, node->origin, refusal.message, p->error) != TW_OK)
        return TW_RESOURCE_EXHAUSTED;
    return status;
}

/* A feed enters on the first task's CPU; where another task alone wants it, on that one's, so that nothing crosses. */
static void move_feed(const twi_planning *p, twi_node *feed)
{
    const tw_devices *devices = p->request->devices;
    int task = -1;
    for (const twi_edge *e = feed->results[0].uses.first; e; e = e->next) {
        int user = e->user == feed->region->end ? -1 : devices->items[e->user->device]->task;
        if (user < 0 || (task >= 0 && user != task))
            return;
        task = user;
    }
    if (task >= 0 && task != devices->items[feed->device]->task)
        feed->device = twi_host_of(devices, task);
}

static void move_feeds(const twi_planning *p)
{
    const twi_region *region = p->rewriting.region;
    for (int id = 0; id < region->nodes.count && p->request->devices->comm && !p->request->frame; id++)
        if (twi_has_trait(region->nodes.items[id], TWI_FEED))
            move_feed(p, region->nodes.items[id]);
}

tw_status twi_assign_devices(twi_planning *p)
{
    twi_placement *placement = p->request->placement;
    tw_status status;
    int known;
    if (p->rewriting.region->has_images) {
        give_devices(p);
        if ((status = twi_lay_images(p)) != TW_OK)
            return status;
    }
    do { /* a node is refused by a kind of device once at most */
        known = placement->refusals.count;
        status = TW_OK;
        for (int id = 0; id < p->rewriting.region->nodes.count; id++) {
            twi_node *node = p->rewriting.region->nodes.items[id];
            give_device(p, node);
            bool is_certain = twi_has_trait(node, TWI_FEED | TWI_CONSTANT | TWI_CHOOSE | TWI_LOOP);
            tw_status asked = is_certain ? TW_OK : ask_for_kernel(p, node);
            status = status == TW_OK || asked == TW_RESOURCE_EXHAUSTED ? asked : status;
        }
    } while (status == TW_UNIMPLEMENTED && placement->refusals.count > known &&
             twi_place_again(p->request->graph, placement, known) == TW_OK);
    move_feeds(p);
    return status;
}
