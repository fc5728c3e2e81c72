/* messages.c - see messages.h. */
#include "run/messages.h"

#include "base/memory.h"
#include "comm/comm.h"
#include "device/tasks.h"
#include "run/packing.h"
#include "tensor/tensor.h"
#include "tensor/variant.h"

#include <string.h>

static twi_comm *comm_of(const twi_device *d)
{
    return d->set ? d->set->comm : NULL;
}

/* Of a lane; NULL: its runs have nothing to do with other tasks. */
static twi_comm *comm_in(const twi_device *d, int lane)
{
    return lane == TWI_ALONE ? NULL : comm_of(d);
}

enum { FETCHES = -1 };

/* Of a device in a lane, or of what is fetched there. `any` is of the set. */
static int channel_of(const twi_device *any, int lane, int device)
{
    return TWI_CHANNEL_OF_LANES + lane * atomic_load(&any->set->comm->lane_channels) + 1 + device;
}

bool twi_ends_lane(const twi_plan *plan, tw_status status)
{
    bool given = plan->lane >= TWI_FIRST_GIVEN; /* or a loop's: whether all ends is then said by the step that it is */
    return (status == TW_OUT_OF_RANGE && (given || plan->ends)) || (status == TW_CANCELLED && given);
}

void twi_end_lane(const twi_device *any, int lane, tw_status status, const char *why)
{
    twi_comm *c = comm_of(any);
    if (c)
        c->ops->end(c, lane, status, why);
}

void twi_end_run(const twi_plan *plan, tw_status status, const char *why)
{
    for (int i = 0, lane = plan->lane; i <= plan->depth; i++, lane = twi_lane_within(lane))
        twi_end_lane(plan->lists[0].device, lane, status, why);
}

/* The lanes that twi_end_run() ends. */
static tw_status renew_run(const twi_plan *plan, tw_error *error)
{
    const twi_device *any = plan->lists[0].device;
    twi_comm *c = comm_of(any);
    tw_status status = TW_OK;
    for (int i = 0, lane = plan->lane; i <= plan->depth && status == TW_OK; i++, lane = twi_lane_within(lane))
        status = c->ops->renew(c, lane, "the end of a run", error);
    return status;
}

/* A word from each task that may have no more. */
static tw_status hear_who_may_end(twi_comm *c, const bool *ends, int channel, tw_error *error)
{
    tw_status status = TW_OK;
    for (int task = 0; task < c->tasks && ends[c->task] && status == TW_OK; task++)
        if (task != c->task)
            status = c->ops->send(c, task, channel, NULL, 0, error);
    for (int task = 0; task < c->tasks && status == TW_OK; task++)
        if (task != c->task && ends[task])
            status = c->ops->receive(c, task, channel, NULL, 0, "the end of a run", error);
    return status;
}

tw_status twi_end_together(const twi_plan *plan, tw_status status, tw_error *error)
{
    const twi_device *any = plan->lists[0].device;
    twi_comm *c = comm_of(any);
    tw_error own = {0};
    if (status == TW_OK)
        status = hear_who_may_end(c, plan->ends, channel_of(any, plan->lane, FETCHES), error);
    if (status != TW_OUT_OF_RANGE)
        return status;
    twi_end_run(plan, status, error->message); /* where it was heard of here, it may be news elsewhere */
    tw_status renewed = renew_run(plan, &own);
    if (renewed == TW_OK)
        return status;
    *error = own;
    return renewed;
}

static const twi_step *step_at(const twi_plan *plan, twi_step_id id)
{
    return &plan->lists[id.device].steps[id.position];
}

/* ---- strings and lists of tensors: how many bytes they are, then these ---- */

static tw_status send_packed(twi_comm *c, int to, int channel, const twi_text *packed, tw_error *error)
{
    uint64_t bytes = packed->size;
    tw_status status = c->ops->send(c, to, channel, &bytes, sizeof bytes, error);
    return status == TW_OK ? c->ops->send(c, to, channel, packed->data, packed->size, error) : status;
}

static tw_status pack(tw_dtype dtype, const void *values, size_t bytes, twi_text *packed, tw_error *error)
{
    bool fits = twi_pack_values(dtype, values, bytes / tw_dtype_size(dtype), packed);
    return fits ? TW_OK : twi_fail_memory(error, "sending to another task");
}

static tw_status send_owned(twi_comm *c, int to, int channel, tw_dtype dtype, const void *values, size_t bytes,
                            tw_error *error)
{
    twi_text packed = {0};
    tw_status status = pack(dtype, values, bytes, &packed, error);
    if (status == TW_OK)
        status = send_packed(c, to, channel, &packed, error);
    twi_text_free(&packed);
    return status;
}

static tw_status receive_owned(twi_comm *c, int from, int channel, tw_dtype dtype, void *values, size_t bytes,
                               const char *what, tw_error *error)
{
    uint64_t size = 0;
    tw_status status = c->ops->receive(c, from, channel, &size, sizeof size, what, error);
    if (status != TW_OK)
        return status;
    char *packed = twi_alloc((size_t)size);
    if (!packed)
        return twi_fail_memory(error, "receiving from another task");
    status = c->ops->receive(c, from, channel, packed, (size_t)size, what, error);
    if (status == TW_OK)
        status = twi_unpack_values(packed, (size_t)size, dtype, values, bytes / tw_dtype_size(dtype), what, error);
    twi_free(packed);
    return status;
}

/* ---- values ---- */

/* Memory of the host for what lies on a device whose memory is not the host's. It is taken for each message; a device
 * that is the host itself needs none. */
static tw_status send_from(twi_device *d, const void *from, tw_dtype dtype, size_t bytes, int to, int channel,
                           tw_error *error)
{
    twi_comm *c = comm_of(d);
    if (twi_owns_memory(dtype))
        return send_owned(c, to, channel, dtype, from, bytes, error);
    if (d->is_host)
        return c->ops->send(c, to, channel, from, bytes, error);
    void *host = twi_alloc(bytes);
    if (!host)
        return twi_fail_memory(error, "sending to another task");
    tw_status status = d->ops->read(d, host, from, bytes, error);
    if (status == TW_OK)
        status = c->ops->send(c, to, channel, host, bytes, error);
    twi_free(host);
    return status;
}

static tw_status receive_at(twi_device *d, void *to, tw_dtype dtype, size_t bytes, int from, int channel,
                            const char *what, tw_error *error)
{
    twi_comm *c = comm_of(d);
    if (twi_owns_memory(dtype))
        return receive_owned(c, from, channel, dtype, to, bytes, what, error);
    if (d->is_host)
        return c->ops->receive(c, from, channel, to, bytes, what, error);
    void *host = twi_alloc(bytes);
    if (!host)
        return twi_fail_memory(error, "receiving from another task");
    tw_status status = c->ops->receive(c, from, channel, host, bytes, what, error);
    if (status == TW_OK)
        status = d->ops->write(d, to, host, bytes, error);
    twi_free(host);
    return status;
}

tw_status twi_move_value(int lane, twi_device *to_device, void *to, twi_device *from_device, const void *from,
                         tw_dtype dtype, size_t bytes, const char *what, tw_error *error)
{
    int channel = channel_of(to_device, lane, FETCHES);
    if (!from_device->absent)
        return send_from(from_device, from, dtype, bytes, to_device->task, channel, error);
    return to_device->absent ? TW_OK : receive_at(to_device, to, dtype, bytes, from_device->task, channel, what, error);
}

/* ---- steps ---- */

static tw_status send_value(const twi_step *step, int to, int channel)
{
    return send_from(step->source, step->run.inputs[step->run.num_inputs - 1], step->owned, step->bytes, to, channel,
                     step->run.error);
}

static tw_status receive_value(const twi_step *step, int from, int channel)
{
    return receive_at(step->device, step->run.outputs[0], step->owned, step->bytes, from, channel, step->run.node,
                      step->run.error);
}

static bool comes_from(const twi_step *step, int task)
{
    return step->source && step->source->task == task;
}

/* Whether a branch there gave a variable its first value is not known here; who has the variable looks. */
static void note_assigned(const twi_step *step)
{
    for (int i = 0; step->condition && i < step->condition->num_assigned; i++)
        step->condition->assigned[i]->initialized = true;
}

tw_status twi_send_for(const twi_plan *plan, twi_step_id id)
{
    const twi_step *step = step_at(plan, id);
    twi_comm *c = comm_of(step->device);
    note_assigned(step);
    int channel = channel_of(step->device, plan->lane, id.device), to = step->device->task;
    if (!twi_step_needs(plan, step, c->task))
        return TW_OK;
    return comes_from(step, c->task) ? send_value(step, to, channel)
                                     : c->ops->send(c, to, channel, NULL, 0, step->run.error);
}

tw_status twi_receive_for(const twi_plan *plan, twi_step_id id, bool *done)
{
    const twi_step *step = step_at(plan, id);
    twi_comm *c = comm_of(step->device);
    tw_status status = TW_OK;
    *done = false;
    if (!c || (step->num_waits == 0 && !step->source))
        return TW_OK;
    int channel = channel_of(step->device, plan->lane, id.device);
    for (int task = 0; task < c->tasks && status == TW_OK; task++) {
        if (task == c->task || !twi_step_needs(plan, step, task))
            continue;
        bool value = comes_from(step, task);
        status = value ? receive_value(step, task, channel)
                       : c->ops->receive(c, task, channel, NULL, 0, step->run.node, step->run.error);
        *done = *done || value;
    }
    return status;
}

tw_status twi_share_value(int lane, twi_device *device, const void *memory, void *host, size_t bytes, const char *what,
                          tw_error *error)
{
    twi_comm *c = comm_in(device, lane);
    tw_status status = device->absent ? TW_OK : device->ops->read(device, host, memory, bytes, error);
    if (status != TW_OK || !c)
        return status;
    return twi_comm_share_in(c, channel_of(device, lane, FETCHES), device->task, host, bytes, what, error);
}

bool twi_is_among_tasks(const twi_device *device, int lane)
{
    return comm_in(device, lane) != NULL;
}

tw_status twi_share_shape(int lane, twi_device *device, tw_shape *shape, const char *what, tw_error *error)
{
    twi_comm *c = comm_in(device, lane);
    if (!c)
        return TW_OK;
    return twi_comm_share_in(c, channel_of(device, lane, FETCHES), device->task, shape, sizeof *shape, what, error);
}

/* Packed once for all. */
static tw_status send_to_all(twi_comm *c, int channel, tw_dtype dtype, const void *from, size_t bytes, tw_error *error)
{
    twi_text packed = {0};
    tw_status status = pack(dtype, from, bytes, &packed, error);
    for (int task = 0; task < c->tasks && status == TW_OK; task++)
        if (task != c->task)
            status = send_packed(c, task, channel, &packed, error);
    twi_text_free(&packed);
    return status;
}

tw_status twi_share_tensor(int lane, twi_device *device, const void *memory, tw_tensor *into, const char *what,
                           tw_error *error)
{
    twi_comm *c = comm_in(device, lane);
    tw_status status = TW_OK;
    if (!twi_owns_memory(into->dtype))
        return twi_share_value(lane, device, memory, into->data, tw_tensor_bytes(into), what, error);
    if (device->absent)
        return receive_owned(c, device->task, channel_of(device, lane, FETCHES), into->dtype, into->data,
                             tw_tensor_bytes(into), what, error);
    if (c)
        status = send_to_all(c, channel_of(device, lane, FETCHES), into->dtype, memory, tw_tensor_bytes(into), error);
    bool fits = status != TW_OK || twi_copy_owned(into->dtype, memory, into->data, (size_t)into->elements);
    return fits ? status : twi_fail_memory(error, "fetching strings or lists of tensors");
}

tw_status twi_give_tensor(int lane, twi_device *device, const void *memory, tw_tensor *into, tw_receivers to,
                          const char *what, tw_error *error)
{
    twi_comm *c = comm_in(device, lane);
    if (!c || to.first < 0 || twi_owns_memory(into->dtype))
        return twi_share_tensor(lane, device, memory, into, what, error);
    size_t bytes = tw_tensor_bytes(into);
    int channel = channel_of(device, lane, FETCHES);
    bool mine = to.first == c->task || to.second == c->task;
    if (device->absent)
        return mine ? c->ops->receive(c, device->task, channel, into->data, bytes, what, error) : TW_OK;
    tw_status status = device->ops->read(device, into->data, memory, bytes, error);
    if (status == TW_OK && to.first != c->task)
        status = c->ops->send(c, to.first, channel, into->data, bytes, error);
    if (status == TW_OK && to.second >= 0 && to.second != c->task && to.second != to.first)
        status = c->ops->send(c, to.second, channel, into->data, bytes, error);
    return status;
}
