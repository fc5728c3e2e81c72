/* loop.c - see loop.h. */
#include "run/loop.h"

#include "device/tasks.h"
#include "graph/graph.h"
#include "run/dispatcher.h"
#include "run/messages.h"
#include "run/recording.h"
#include "run/rounds.h"
#include "tensor/variant.h"

#include <stdio.h>
#include <string.h>

/* ---- before the first run ---------------------------------------------------------------------------------------- */

static void wake_nobody(void *user)
{
    (void)user;
}

static bool does_something(const twi_step *step)
{
    return step->kernel || step->source || step->loop;
}

/* What there is to do in a round, in a row. */
static tw_status list_steps(twi_loop *loop, tw_error *error)
{
    const twi_list *list = &loop->plan->lists[loop->device];
    loop->steps = twi_arena_alloc(&loop->plan->arena, sizeof *loop->steps * (size_t)list->count);
    if (!loop->steps)
        return twi_fail_memory(error, "preparing a loop");
    for (int i = 0; i < list->count; i++)
        if (does_something(&list->steps[i]))
            loop->steps[loop->num_steps++] = &list->steps[i];
    return TW_OK;
}

static tw_status prepare(twi_loop *loop, tw_devices *devices, const atomic_bool *ending, tw_error *error)
{
    tw_status status = TW_OK;
    if (loop->chained)
        return twi_rounds_prepare(loop, ending, error);
    if (loop->device >= 0 && !loop->steps)
        status = list_steps(loop, error);
    if (loop->device < 0 && !loop->dispatchers) {
        loop->close = twi_dispatchers_destroy;
        status = twi_dispatchers_create(devices, wake_nobody, NULL, &loop->dispatchers, error);
        if (status == TW_OK)
            status = twi_dispatchers_prepare(loop->dispatchers, loop->plan, ending, error);
    }
    for (int d = 0; d < loop->plan->num_lists; d++)
        for (int i = 0; i < loop->plan->lists[d].count; i++)
            loop->plan->lists[d].steps[i].run.ending = ending;
    return status == TW_OK ? twi_loops_prepare(loop->plan, ending, error) : status;
}

tw_status twi_loops_prepare(twi_plan *plan, const atomic_bool *ending, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < plan->loops.count && status == TW_OK; i++)
        status = prepare(plan->loops.items[i], plan->lists[0].device->set, ending, error);
    return status;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

enum { FEW = 4096 }; /* bytes that are copied sooner than devices are asked to */

static tw_status copy(twi_device *to_device, void *to, twi_device *from_device, const void *from, const twi_port *port,
                      tw_error *error)
{
    if (to == from || port->bytes == 0)
        return TW_OK;
    if (twi_owns_memory(port->dtype))
        return twi_copy_bytes_owned(port->dtype, from, to, port->bytes, error);
    if (port->bytes < FEW && to_device->is_host && from_device->is_host) {
        memcpy(to, from, port->bytes);
        return TW_OK;
    }
    return twi_device_copy(to_device, to, from_device, from, port->bytes, error);
}

/* The same where the one or the other, or both, may be other tasks'. */
static tw_status lead(const twi_loop *loop, twi_device *to_device, void *to, twi_device *from_device, const void *from,
                      const twi_port *port, tw_error *error)
{
    if (!twi_same_task(to_device, from_device))
        return twi_move_value(loop->lane, to_device, to, from_device, from, port->dtype, port->bytes,
                              "a loop's value", error);
    return to_device->absent ? TW_OK : copy(to_device, to, from_device, from, port, error);
}

static tw_status enter(const twi_step *step)
{
    const twi_plan *plan = step->loop->plan;
    tw_status status = TW_OK;
    for (int i = 0; i < plan->num_feeds && status == TW_OK; i++)
        if (plan->feeds[i].buffer)
            status = lead(step->loop, plan->feeds[i].device, plan->feeds[i].memory, step->device, step->run.inputs[i],
                          &plan->feeds[i], step->run.error);
    return status;
}

/* What came of the round goes in again; a value that nobody looks at need not. */
static tw_status go_round(const twi_step *step)
{
    const twi_loop *loop = step->loop;
    tw_status status = TW_OK;
    for (int i = 0; i < loop->num_changing && status == TW_OK; i++) {
        const twi_port *to = &loop->plan->feeds[i], *from = &loop->plan->fetches[1 + i];
        if (to->buffer && from->buffer)
            status = lead(loop, to->device, to->memory, from->device, from->memory, to, step->run.error);
    }
    return status;
}

static tw_status leave(const twi_step *step)
{
    const twi_loop *loop = step->loop;
    tw_status status = TW_OK;
    for (int i = 0; i < loop->num_results && status == TW_OK; i++) {
        const twi_port *from = &loop->plan->fetches[1 + loop->num_changing + i];
        status = lead(loop, step->device, step->run.outputs[i], from->device, from->memory, from, step->run.error);
    }
    return status;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

/* The step's own words, and which one it was. */
static tw_status tell(const twi_step *step, const twi_step *inner, tw_status status)
{
    const tw_error *error = inner->run.error;
    if (error->status == TW_OK)
        twi_fail(step->run.error, status, "%s failed", inner->kernel ? inner->kernel->op : "a copy");
    else
        *step->run.error = *error;
    step->run.error->status = status;
    twi_say_node(step->run.error, inner->run.node);
    return status;
}

static tw_status walk(const twi_step *step)
{
    const twi_loop *loop = step->loop;
    for (int i = 0, next; i < loop->num_steps; i = next) {
        const twi_step *inner = loop->steps[i];
        next = i + (inner->beside ? inner->beside : 1);
        tw_status status = inner->beside ? twi_loops_run_beside(inner, &inner) : twi_run_step(inner);
        if (status != TW_OK)
            return tell(step, inner, status);
    }
    return TW_OK;
}

static tw_status run_round(const twi_step *step, bool *goes_on)
{
    twi_loop *loop = step->loop;
    const twi_port *decides = &loop->plan->fetches[0];
    int64_t done;
    tw_status status =
        loop->dispatchers ? twi_dispatchers_run(loop->dispatchers, loop->plan, 1, &done, step->run.error) : walk(step);
    if (status == TW_OK && loop->spans)
        status = twi_share_value(loop->lane, decides->device, decides->memory, goes_on, sizeof *goes_on,
                                 "whether a loop goes on", step->run.error);
    else if (status == TW_OK && decides->device->is_host)
        *goes_on = *(const uint8_t *)decides->memory;
    else if (status == TW_OK)
        status =
            decides->device->ops->read(decides->device, goes_on, decides->memory, sizeof *goes_on, step->run.error);
    return status;
}

tw_status twi_loop_agree(const twi_step *step, bool *taken)
{
    const twi_condition *condition = step->condition;
    *taken = true;
    return condition && condition->holds
               ? twi_share_value(step->loop->lane, step->device, condition->holds, taken, sizeof *taken,
                                 "whether a loop is run", step->run.error)
               : TW_OK;
}

tw_status twi_loop_run(const twi_step *step)
{
    bool goes_on = true;
    if (step->loop->chained)
        return twi_rounds_run(step);
    tw_status status = enter(step);
    for (int d = 0; d < step->loop->plan->num_lists; d++)
        step->loop->plan->lists[d].error.status = TW_OK;
    while (goes_on && status == TW_OK) {
        if (step->run.ending && atomic_load_explicit(step->run.ending, memory_order_relaxed))
            return twi_fail(step->run.error, TW_CANCELLED, "the run has ended");
        status = run_round(step, &goes_on);
        if (status == TW_OK && goes_on)
            status = go_round(step);
    }
    return status == TW_OK ? leave(step) : status;
}

/* ---- side by side ------------------------------------------------------------------------------------------------ */

tw_status twi_loops_run_beside(const twi_step *steps, const twi_step **failed)
{
    tw_status statuses[TWI_WORKSPACES];
    tw_error errors[TWI_WORKSPACES] = {0};
    int count = steps->beside, first = 0;
#pragma omp parallel for num_threads(count) schedule(static, 1)
    for (int i = 0; i < count; i++) {
        twi_step own = steps[i];
        own.run.error = &errors[i];
        statuses[i] = twi_run_step(&own);
    }
    while (first < count && statuses[first] == TW_OK)
        first++;
    if (first == count)
        return TW_OK;
    *failed = &steps[first];
    *steps->run.error = errors[first];
    return statuses[first];
}
