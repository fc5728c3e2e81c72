/* lane.c - see lane.h. */
#include "run/lane.h"

#include "tensor/tensor.h"

#include <string.h>

tw_status twi_lane_create(tw_devices *devices, void (*wake)(void *user), void *user, twi_lane **result, tw_error *error)
{
    *result = NULL;
    twi_lane *lane = twi_alloc(sizeof *lane);
    if (!lane)
        return twi_fail_memory(error, "creating a lane");
    pthread_mutex_init(&lane->turn, NULL);
    lane->devices = devices;
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

static void forget(twi_planned *p)
{
    twi_plan_destroy(p->plan);
    twi_free(p->feeds);
    twi_free(p->fetches);
}

void twi_lane_destroy(twi_lane *lane)
{
    if (!lane)
        return;
    twi_dispatchers_destroy(lane->dispatchers);
    for (int i = 0; i < lane->plans.count; i++)
        forget(&lane->plans.items[i]);
    twi_array_free(&lane->plans);
    for (int d = 0; lane->arenas && lane->arena_bytes && d < lane->devices->count; d++)
        twi_device_free(lane->devices->items[d], lane->arenas[d], lane->arena_bytes[d]);
    twi_free(lane->arenas);
    twi_free(lane->arena_bytes);
    pthread_mutex_destroy(&lane->turn);
    twi_free(lane);
}

/* ---- plans ----------------------------------------------------------------------------------------------------------- */

static bool same_output(tw_output a, tw_output b)
{
    return a.node == b.node && a.index == b.index;
}

tw_output twi_wanted_output(const twi_wanted *w, int i)
{
    return w->feeds ? w->feeds[i].output : w->feed_shapes[i].output;
}

twi_feed_shape twi_wanted_shape(const twi_wanted *w, int i)
{
    tw_output output = twi_wanted_output(w, i);
    return w->feeds ? (twi_feed_shape){output, w->feeds[i].tensor->dtype, w->feeds[i].tensor->shape}
                    : (twi_feed_shape){output, tw_output_dtype(output), w->feed_shapes[i].shape};
}

static bool fits(const twi_planned *p, const twi_wanted *w)
{
    if (p->num_feeds != w->num_feeds || p->num_fetches != w->num_fetches)
        return false;
    for (int i = 0; i < w->num_fetches; i++)
        if (!same_output(p->fetches[i], w->fetches[i]))
            return false;
    for (int i = 0; i < w->num_feeds; i++) {
        twi_feed_shape feed = twi_wanted_shape(w, i);
        if (!same_output(p->feeds[i].output, feed.output) || p->feeds[i].dtype != feed.dtype ||
            !tw_shape_equal(p->feeds[i].shape, feed.shape))
            return false;
    }
    return true;
}

twi_planned *twi_lane_find(twi_lane *lane, const twi_wanted *wanted)
{
    for (int i = 0; i < lane->plans.count; i++)
        if (fits(&lane->plans.items[i], wanted))
            return &lane->plans.items[i];
    return NULL;
}

size_t twi_lane_largest_arena(const twi_lane *lane, int device)
{
    size_t largest = 0;
    for (int i = 0; i < lane->plans.count; i++) {
        size_t bytes = lane->plans.items[i].plan->lists[device].arena_bytes;
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
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
        if (status != TW_OK)
            return status;
        lane->arena_bytes[d] = bytes;
    }
    return TW_OK;
}

tw_status twi_lane_take(twi_lane *lane, twi_planned *p, pthread_mutex_t *shared, tw_error *error)
{
    tw_status status = TW_OK;
    if (!p->plan->held) {
        pthread_mutex_lock(shared);
        status = twi_plan_hold(p->plan, error);
        pthread_mutex_unlock(shared);
    }
    if (status == TW_OK)
        status = grow_arenas(lane, p->plan, error);
    if (status != TW_OK)
        return status;
    if (p->bound_at != lane->moves) {
        twi_plan_bind(p->plan, lane->arenas);
        p->bound_at = lane->moves;
    }
    lane->latest = p->plan;
    return TW_OK;
}

tw_status twi_lane_add(twi_lane *lane, const twi_request *request, twi_planned **planned, tw_error *error)
{
    tw_status status;
    twi_planned made = {.num_feeds = request->num_feeds, .num_fetches = request->num_fetches, .bound_at = -1};
    made.feeds = twi_alloc_array((size_t)made.num_feeds + 1, sizeof *made.feeds);
    made.fetches = twi_alloc_array((size_t)made.num_fetches + 1, sizeof *made.fetches);
    if (!made.feeds || !made.fetches || !twi_reserve(&lane->plans, lane->plans.count + 1))
        TWI_TRY(twi_fail_memory(error, "making a plan"));
    if (made.num_feeds)
        memcpy(made.feeds, request->feeds, sizeof *made.feeds * (size_t)made.num_feeds);
    if (made.num_fetches)
        memcpy(made.fetches, request->fetches, sizeof *made.fetches * (size_t)made.num_fetches);
    TWI_TRY(twi_plan_create(request, &made.plan, error));
    TWI_TRY(twi_dispatchers_prepare(lane->dispatchers, made.plan, error));
    lane->plans.items[lane->plans.count] = made;
    *planned = &lane->plans.items[lane->plans.count++];
    return TW_OK;
done:
    forget(&made);
    return status;
}
