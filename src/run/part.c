/* part.c - see part.h. */
#include "run/part.h"

#include "base/clock.h"
#include "run/trace.h"
#include "tensor/variant.h"

#define FETCHED "what is fetched"

static tw_status check_variables(const twi_plan *plan, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < plan->num_needed && status == TW_OK; i++)
        status = twi_resource_check(plan->needed[i], error);
    return status;
}

/* Feeds enter on a CPU, where strings may lie. */
static tw_status write_owned(const tw_tensor *from, void *to, tw_error *error)
{
    bool fits = twi_copy_owned(from->dtype, from->data, to, (size_t)from->elements);
    return fits ? TW_OK : twi_fail_memory(error, "feeding strings");
}

/* At an address as kernels expect it. */
static bool is_aligned(const tw_tensor *tensor)
{
    return (uintptr_t)tensor->data % 64 == 0;
}

/* True: it was elsewhere. */
static bool move(twi_port *port, const tw_tensor *tensor)
{
    void *where = tensor && is_aligned(tensor) ? tensor->data : port->memory;
    bool moved = port->lent && port->where != where;
    if (moved)
        port->where = where;
    return moved;
}

/* A program may feed the memory of a result, as a tensor of its own (tw_tensor_wrap). */
static bool is_fed(const twi_plan *plan, const tw_feed *feeds, const tw_tensor *result)
{
    const char *first = result->data, *end = first + tw_tensor_bytes(result);
    bool fed = false;
    for (int i = 0; i < plan->num_feeds && !fed; i++) {
        const char *data = feeds[i].tensor->data;
        fed = data < end && first < data + tw_tensor_bytes(feeds[i].tensor);
    }
    return fed;
}

/* What is lent is read and made where its tensors have it. */
static void lead_to_tensors(const twi_plan *plan, const tw_feed *feeds)
{
    bool moved = false;
    for (int i = 0; i < plan->num_feeds; i++)
        moved |= move(&plan->feeds[i], feeds[i].tensor);
    for (int i = 0; i < plan->num_fetches; i++) {
        twi_port *port = &plan->fetches[i];
        bool fits = port->lent && port->result && !is_fed(plan, feeds, port->result);
        moved |= move(port, fits ? port->result : NULL);
    }
    if (moved)
        twi_plan_lead(plan);
}

static tw_status write_feeds(const twi_plan *plan, const tw_feed *feeds, tw_error *error)
{
    lead_to_tensors(plan, feeds);
    for (int i = 0; i < plan->num_feeds; i++) {
        const twi_port *port = &plan->feeds[i];
        if (!port->buffer || port->where != port->memory)
            continue; /* folded away, not needed, or lent */
        const tw_tensor *tensor = feeds[i].tensor;
        tw_status status = twi_owns_memory(port->dtype)
                               ? write_owned(tensor, port->memory, error)
                               : port->device->ops->write(port->device, port->memory, tensor->data, port->bytes, error);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

/* Forgets the tensors that were made for a run which has failed; what kernels made goes with the next run's. */
static void drop_results(const twi_plan *plan, tw_tensor **results)
{
    for (int i = 0; i < plan->num_fetches; i++) {
        twi_port *port = &plan->fetches[i];
        if (port->result != results[i])
            tw_tensor_release(port->result);
        port->result = NULL;
    }
}

static tw_status fail_fetch(const twi_port *port, tw_error *error)
{
    return twi_fail(error, TW_RESOURCE_EXHAUSTED, "out of memory while fetching '%s'", port->name);
}

/* Finds room for the values before the run, so that a step is not lost for want of it. A tensor of an earlier run that
 * fits is filled again. */
static tw_status make_results(const twi_plan *plan, tw_tensor **results, tw_error *error)
{
    for (int i = 0; i < plan->num_fetches; i++) {
        twi_port *port = &plan->fetches[i];
        tw_tensor *old = results[i];
        if (!port->buffer || port->is_made)
            continue;
        tw_shape shape = port->dtype == TW_VARIANT ? TW_SCALAR : port->shape;
        bool fits = old && twi_tensor_is_sole(old) && old->dtype == port->dtype && tw_shape_equal(old->shape, shape);
        port->result = fits ? old : twi_tensor_reserve(port->dtype, shape);
        if (!port->result) {
            drop_results(plan, results);
            return fail_fetch(port, error);
        }
    }
    return TW_OK;
}

/* What a kernel has made is the first fetch's of it; others get copies, since results are one's alone. So do all where
 * it becomes known to several tasks: those that have not made it learn its shape before. */
static tw_status take_made(const twi_plan *plan, int fetch, tw_tensor **result, tw_error *error)
{
    const twi_port *port = &plan->fetches[fetch];
    bool absent = port->device->absent, first = !port->is_again && !twi_is_among_tasks(port->device, plan->lane);
    tw_tensor *made = absent ? NULL : *(tw_tensor **)port->memory;
    tw_shape shape = made ? made->shape : TW_SCALAR;
    if (!made && !absent)
        return twi_fail(error, TW_INTERNAL, "a kernel has made no tensor");
    tw_status status = twi_share_shape(plan->lane, port->device, &shape, FETCHED, error);
    if (status != TW_OK)
        return status;
    *result = first ? tw_tensor_retain(made) : tw_tensor_create(port->dtype, shape);
    if (!*result)
        return fail_fetch(port, error);
    return first ? TW_OK
                 : twi_share_tensor(plan->lane, port->device, made ? made->data : NULL, *result, FETCHED, error);
}

static tw_status read_port(const twi_plan *plan, int fetch, const tw_receivers *to, tw_tensor **result, tw_error *error)
{
    const twi_port *port = &plan->fetches[fetch];
    if (port->is_made)
        return take_made(plan, fetch, result, error);
    if (!*result || (*result)->data == port->where)
        return TW_OK; /* it was made there */
    return to ? twi_give_tensor(plan->lane, port->device, port->memory, *result, to[fetch], FETCHED, error)
              : twi_share_tensor(plan->lane, port->device, port->memory, *result, FETCHED, error);
}

static void drop_made(const twi_plan *plan)
{
    for (int i = 0; i < plan->num_fetches; i++) {
        tw_tensor **made = plan->fetches[i].is_made ? plan->fetches[i].memory : NULL;
        if (made)
            tw_tensor_release(*made), *made = NULL;
    }
}

/* Reads all values first, then hands them over. */
static tw_status read_results(const twi_plan *plan, const tw_receivers *to, tw_tensor **results, tw_error *error)
{
    for (int i = 0; i < plan->num_fetches; i++) {
        twi_port *port = &plan->fetches[i];
        bool holds = true;
        tw_status status = TW_OK;
        if (port->holds)
            status = twi_share_value(plan->lane, port->guard, port->holds, &holds, sizeof holds, "a guard", error);
        port->dead = !holds;
        if (status == TW_OK && !holds && i < plan->num_wanted)
            status = twi_fail(error, TW_INVALID_ARGUMENT, "Retval[%d] does not have value", i);
        if (status == TW_OK && holds)
            status = read_port(plan, i, to, &port->result, error);
        if (status != TW_OK)
            return status;
    }
    for (int i = 0; i < plan->num_fetches; i++) {
        twi_port *port = &plan->fetches[i];
        if (port->result != results[i])
            tw_tensor_release(results[i]);
        results[i] = port->result;
        port->result = NULL;
    }
    drop_made(plan);
    return TW_OK;
}

static tw_status run_plan(twi_lane *lane, twi_plan *plan, int64_t rounds, unsigned look, const tw_feed *feeds,
                          int64_t *done, tw_error *error)
{
    tw_status status;
    TWI_TRY(twi_trace_begin(plan, look & TWI_LOOK_TIMES, error));
    plan->checked = look & TWI_LOOK_NUMBERS;
    TWI_TRY(write_feeds(plan, feeds, error));
    TWI_TRY(twi_dispatchers_run(lane->dispatchers, plan, rounds, done, error));
    for (int i = 0; i < plan->num_assigned; i++)
        plan->assigned[i]->initialized = true;
done:
    return status;
}

/* A run that is looked at is one by itself, so that its times are of one step; and so is one that is fed, whose feeds
 * may give their memory to what comes behind them. */
tw_status twi_part_run(twi_lane *lane, twi_plan *plan, int64_t steps, unsigned look, const tw_feed *feeds,
                       const tw_receivers *to, tw_tensor **results, int64_t *done, tw_error *error)
{
    int64_t together = look || plan->num_feeds ? 1 : steps;
    tw_status status = check_variables(plan, error);
    *done = 0;
    if (status == TW_OK && results)
        status = make_results(plan, results, error);
    if (status != TW_OK)
        return status;
    while (*done < steps && status == TW_OK) {
        int64_t more = 0;
        status = run_plan(lane, plan, together, look, feeds, &more, error);
        *done += more;
    }
    if (status == TW_OK && results)
        status = read_results(plan, to, results, error);
    if (status == TW_OK && twi_is_traced(plan))
        plan->trace->ended_ns = twi_monotonic_ns();
    if (status != TW_OK && results)
        drop_results(plan, results);
    return status;
}
