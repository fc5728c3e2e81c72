/* overlap.c - what crosses between devices does so while the towers' other work goes on.
 *
 * The graph has its towers one after the other, so in its order the additions on the first towers' devices, which want
 * gradients of the last tower, come behind all that the first towers compute. But devices run side by side. So here
 * every node gets the time at which it is done if each device works in the graph's order, at the same speed. The bytes
 * that a step reads and writes will do as a measure of its work, since towers on devices of a kind do much the same.
 * Copies and reductions take no time of their own, and where a reduction needs another device it comes a little later,
 * so that towers which are not quite in step do not hold each other up.
 *
 * A copy waits for its first user, and of those that do for the same one what is there first comes first: another task
 * sends them in this order, so none waits behind one that is made later.
 *
 * Times never fall along an edge, and what is done at the same time keeps the graph's order: so the nodes sorted by
 * time are in a topological order again, one for all devices, and no two lists can wait for each other. All other nodes
 * of a device keep their order among themselves. */
#include "plan/stages.h"

#include <string.h>

enum { SLACK = 32 }; /* "a little later" is this part of what the busiest device does */

bool twi_is_reduction(const twi_node *node)
{
    return twi_attr_find(&node->attrs, "_reduction") != NULL;
}

/* A copy that a reduction reads has come from another device for it. */
static bool crosses(const twi_node *node, int input)
{
    return input < node->num_inputs && twi_is_reduction(node) &&
           twi_has_trait(node->inputs[input].node, TWI_COPY);
}

static bool any_copies(const twi_region *region)
{
    bool any = false;
    for (int id = 0; id < region->nodes.count && !any; id++)
        any = twi_has_trait(region->nodes.items[id], TWI_COPY);
    return any;
}

/* floats[id] for what has no time of its own: reductions, what crosses, and constants. */
static void mark_floating(const twi_region *region, bool *floats)
{
    for (int id = 0; id < region->nodes.count; id++) {
        const twi_node *node = region->nodes.items[id];
        floats[id] = twi_is_reduction(node) || twi_has_trait(node, TWI_COPY) || twi_has_trait(node, TWI_CONSTANT);
    }
}

static int64_t work_of(const twi_node *node)
{
    int64_t bytes = 0;
    for (int i = 0; i < node->num_inputs + node->num_results && !twi_task_shares(node->task); i++)
        bytes += (int64_t)node->task->operands[i].bytes;
    return bytes;
}

static int64_t find_slack(const twi_planning *p, const bool *floats, int64_t *busy)
{
    const twi_region *region = p->rewriting.region;
    int64_t most = 0;
    for (int id = 0; id < region->nodes.count; id++) {
        const twi_node *node = region->nodes.items[id];
        busy[node->device] += floats[id] ? 0 : work_of(node);
        most = busy[node->device] > most ? busy[node->device] : most;
    }
    return most / SLACK;
}

/* When each node is done. now[device]: when the latest that does not float is. */
static void find_times(const twi_region *region, const bool *floats, int64_t slack, int64_t *now, int64_t *times)
{
    for (int id = 0; id < region->nodes.count; id++) {
        const twi_node *node = region->nodes.items[id];
        bool waits = false;
        times[id] = floats[id] ? 0 : now[node->device];
        for (int i = 0; i < twi_num_dependencies(node); i++) {
            int64_t before = times[twi_dependency(node, i)->node->id];
            times[id] = before > times[id] ? before : times[id];
            waits = waits || crosses(node, i);
        }
        times[id] += floats[id] ? (waits ? slack : 0) : work_of(node);
        if (!floats[id])
            now[node->device] = times[id];
    }
}

/* What crosses does so when the first who uses it is there: a list that waits does nothing else. Users come after it in
 * the graph, so all of them have been seen when it is met from the end. */
static void delay_copies(const twi_region *region, const bool *floats, int64_t *times, int64_t *wanted)
{
    for (int id = 0; id < region->nodes.count; id++)
        wanted[id] = INT64_MAX;
    for (int id = region->nodes.count - 1; id >= 0; id--) {
        const twi_node *node = region->nodes.items[id];
        if (floats[id] && twi_has_trait(node, TWI_COPY) && wanted[id] < INT64_MAX)
            times[id] = wanted[id];
        for (int i = 0; i < twi_num_dependencies(node); i++) {
            int64_t *first = &wanted[twi_dependency(node, i)->node->id];
            *first = times[id] < *first ? times[id] : *first;
        }
    }
}

tw_status twi_overlap(twi_planning *p)
{
    twi_region *region = p->rewriting.region;
    if (!any_copies(region))
        return TW_OK;
    size_t n = (size_t)region->nodes.count + 1, devices = (size_t)p->request->devices->count;
    tw_status status = TW_OK;
    bool *floats = twi_alloc_array(n, sizeof *floats);
    int64_t *times = twi_alloc_array(n, sizeof *times), *wanted = twi_alloc_array(n, sizeof *wanted);
    int64_t *there = twi_alloc_array(n, sizeof *there);
    int64_t *now = twi_alloc_array(devices, sizeof *now), *busy = twi_alloc_array(devices, sizeof *busy);
    if (!floats || !times || !wanted || !there || !now || !busy)
        TWI_LEAVE(twi_fail_memory(p->error, "ordering a plan"));
    mark_floating(region, floats);
    find_times(region, floats, find_slack(p, floats, busy), now, times);
    memcpy(there, times, n * sizeof *times);
    delay_copies(region, floats, times, wanted);
    TWI_TRY(twi_region_sort_by(region, times, there, p->error));
done:
    twi_free(floats);
    twi_free(times);
    twi_free(wanted);
    twi_free(there);
    twi_free(now);
    twi_free(busy);
    return status;
}
