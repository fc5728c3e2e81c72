/* lane.c - see lane.h. */
#include "run/lane.h"

#include "run/chain.h"

tw_status twi_lane_create(const twi_planner *planner, void (*wake)(void *user), void *user, twi_lane **result,
                          tw_error *error)
{
    tw_devices *devices = planner->request.devices;
    *result = NULL;
    twi_lane *lane = twi_alloc(sizeof *lane);
    if (!lane)
        return twi_fail_memory(error, "creating a lane");
    pthread_mutex_init(&lane->turn, NULL);
    lane->planner = planner;
    lane->devices = devices;
    lane->number = planner->request.alone ? TWI_ALONE : 0;
    lane->arenas = twi_alloc_array((size_t)devices->count, sizeof *lane->arenas);
    lane->arena_bytes = twi_alloc_array((size_t)devices->count, sizeof *lane->arena_bytes);
    tw_status status = lane->arenas && lane->arena_bytes
                           ? twi_dispatchers_create(devices, wake, user, &lane->dispatchers, error)
                           : twi_fail_memory(error, "creating a lane");
    if (status == TW_OK)
        *result = lane;
    else
        twi_lane_destroy(lane);
    return status;
}

void twi_lane_destroy(twi_lane *lane)
{
    if (!lane)
        return;
    twi_dispatchers_destroy(lane->dispatchers);
    twi_cuts_destroy(lane);
    twi_array_free(&lane->latest);
    for (int d = 0; lane->arenas && lane->arena_bytes && d < lane->devices->count; d++)
        twi_device_free(lane->devices->items[d], lane->arenas[d], lane->arena_bytes[d]);
    twi_free(lane->arenas);
    twi_free(lane->arena_bytes);
    pthread_mutex_destroy(&lane->turn);
    twi_free(lane);
}

size_t twi_lane_largest_arena(const twi_lane *lane, int device)
{
    size_t largest = 0;
    for (int i = 0; i < lane->links.count; i++) {
        size_t bytes = lane->links.items[i]->plan->lists[device].arena_bytes;
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

/* Puts the node in front that runs while the arena is fullest. */
static void name_fullest(const twi_plan *plan, int device, tw_error *error)
{
    twi_memory_items items = {0};
    const char *fullest = NULL;
    if (twi_plan_list_arena(plan, device, &items, &fullest, NULL) == TW_OK && fullest)
        twi_prefix(error, "most is needed while '%s' runs", fullest);
    twi_array_free(&items);
}

/* An arena takes at once what the largest plan made so far wants, or, where devices shall grow, what this one does. One
 * that cannot is gone, and the next run gets what it needs itself: a plan that does not fit takes nothing away from
 * those that do. */
static tw_status grow_arenas(twi_lane *lane, const twi_plan *plan, tw_error *error)
{
    for (int d = 0; d < lane->devices->count; d++) {
        static const char what[] = "the buffers of a step";
        twi_device *device = lane->devices->items[d];
        size_t bytes = plan->lists[d].arena_bytes;
        size_t most = device->allow_growth ? bytes : twi_lane_largest_arena(lane, d);
        if (bytes <= lane->arena_bytes[d])
            continue;
        twi_device_free(device, lane->arenas[d], lane->arena_bytes[d]);
        lane->arenas[d] = NULL;
        lane->arena_bytes[d] = 0;
        lane->moves++;
        if (most > bytes && twi_device_alloc(device, most, what, &lane->arenas[d], NULL) == TW_OK) {
            lane->arena_bytes[d] = most;
            continue;
        }
        tw_status status = twi_device_alloc(device, bytes, what, &lane->arenas[d], error);
        if (status != TW_OK) {
            name_fullest(plan, d, error);
            return status;
        }
        lane->arena_bytes[d] = bytes;
    }
    return TW_OK;
}

tw_status twi_lane_take(twi_lane *lane, twi_plan *plan, int64_t *bound_at, tw_error *error)
{
    tw_status status = TW_OK;
    if (!plan->held) {
        pthread_mutex_lock(lane->planner->lock);
        status = twi_plan_hold(plan, error);
        pthread_mutex_unlock(lane->planner->lock);
    }
    if (status == TW_OK)
        status = grow_arenas(lane, plan, error);
    if (status == TW_OK && *bound_at != lane->moves) {
        twi_plan_bind(plan, lane->arenas);
        *bound_at = lane->moves;
    }
    return status;
}
