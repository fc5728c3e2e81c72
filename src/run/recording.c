/* recording.c - see recording.h. */
#include "run/recording.h"

#include "base/log.h"
#include "run/loop.h"
#include "run/traffic.h"
#include "tensor/variant.h"

#include <string.h>

/* They live on the host wherever they are used: each side owns its own bytes. */
tw_status twi_copy_bytes_owned(tw_dtype dtype, const void *from, void *to, size_t bytes, tw_error *error)
{
    bool fits = twi_copy_owned(dtype, from, to, bytes / tw_dtype_size(dtype));
    return fits ? TW_OK : twi_fail_memory(error, "copying strings");
}

static tw_status do_step(const twi_step *step)
{
    twi_device *d = step->device;
    if (step->kernel)
        return d->ops->launch ? d->ops->launch(d, step->kernel, &step->run) : step->kernel->run(&step->run);
    if (step->loop)
        return twi_loop_run(step);
    const void *from = step->source ? step->run.inputs[step->run.num_inputs - 1] : NULL;
    if (!step->source || from == step->run.outputs[0])
        return TW_OK;
    if (step->owned)
        return twi_copy_bytes_owned(step->owned, from, step->run.outputs[0], step->bytes, step->run.error);
    return twi_device_copy(d, step->run.outputs[0], step->source, from, step->bytes, step->run.error);
}

static tw_status do_on_condition(const twi_step *step)
{
    const twi_condition *c = step->condition;
    tw_status status = TW_OK;
    if (c->holds && !*c->holds)
        return TW_OK;
    for (int i = 0; i < c->num_needed && status == TW_OK; i++)
        status = twi_resource_check(c->needed[i], step->run.error);
    if (status == TW_OK)
        status = do_step(step);
    for (int i = 0; i < c->num_assigned && status == TW_OK; i++)
        c->assigned[i]->initialized = true;
    return status;
}

tw_status twi_run_step(const twi_step *step)
{
    return step->condition ? do_on_condition(step) : do_step(step);
}

tw_status twi_run_marked_step(const twi_plan *plan, twi_step_id id)
{
    const twi_step *step = &plan->lists[id.device].steps[id.position];
    void *timeline = plan->trace ? plan->trace->tracks[id.device].timeline : NULL;
    twi_device *d = step->device;
    tw_status status = timeline ? d->ops->mark(d, timeline, 2 * id.position, step->run.error) : TW_OK;
    if (status == TW_OK)
        status = twi_run_step(step);
    if (status == TW_OK && timeline)
        status = d->ops->mark(d, timeline, 2 * id.position + 1, step->run.error);
    return status;
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

static tw_status look_at_operand(twi_traffic *t, const twi_operand *operand, const void *memory, bool writes)
{
    if (operand->dtype != TW_RESOURCE)
        return twi_traffic_touch(t, memory, operand->bytes, writes);
    const twi_resource *r = operand->resource;
    if (!r || !r->device) /* what it holds is hidden, so it stands for itself */
        return twi_traffic_touch(t, r ? r : memory, 1, true);
    return twi_traffic_touch(t, r->memory, (size_t)tw_shape_elements(r->shape) * tw_dtype_size(r->dtype), true);
}

/* All memory that a step reads or writes. Who has a variable's handle may change it. */
static tw_status look_at_step(twi_traffic *t, const twi_run *r, const twi_recorded *recorded)
{
    tw_status status = TW_OK;
    for (int i = 0; i < r->num_inputs && status == TW_OK; i++)
        status = look_at_operand(t, &r->input_operands[i], r->inputs[i], false);
    for (int i = 0; i < r->num_outputs && status == TW_OK; i++)
        if (r->output_operands[i].dtype != TW_RESOURCE)
            status = look_at_operand(t, &r->output_operands[i], r->outputs[i], true);
    if (status == TW_OK)
        status = twi_traffic_touch(t, r->workspace, r->workspace ? recorded->workspace : 0, true);
    return status == TW_OK ? twi_traffic_touch(t, recorded->touches, recorded->touches ? 1 : 0, true) : status;
}

static const twi_step *step_of(const twi_plan *plan, const twi_recorded *recorded)
{
    return &plan->lists[recorded->id.device].steps[recorded->id.position];
}

/* Which steps of the segment this one comes after, as numbers of works; works[k] is the step of work k. */
static tw_status keep_order(twi_recorded *recorded, const int *works, const int *after, int count)
{
    int *steps = twi_alloc_array((size_t)count + 1, sizeof *steps);
    if (!steps)
        return TW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count; i++)
        steps[i] = works[after[i]];
    recorded->after = steps;
    recorded->num_after = count;
    return TW_OK;
}

static tw_status record_step(const twi_plan *plan, const twi_segment *s, const int *works, int work, twi_traffic *t,
                             tw_error *error)
{
    twi_recorded *recorded = &s->steps[works[work]];
    const twi_step *step = step_of(plan, recorded);
    const int *after;
    int num_after;
    tw_error last = {0};
    tw_status status = look_at_step(t, &step->run, recorded);
    twi_traffic_end_work(t, &after, &num_after);
    if (status == TW_OK)
        status = keep_order(recorded, works, after, num_after);
    if (status != TW_OK)
        return twi_fail_memory(error, "recording");
    status = step->device->ops->record(step->device, s->recording, after, num_after, error);
    if (status != TW_OK)
        return status;
    status = twi_run_marked_step(plan, recorded->id);
    if (status != TW_OK)
        *error = *step->run.error;
    *step->run.error = (tw_error){0};
    tw_status ended = step->device->ops->recorded(step->device, s->recording, &last);
    if (status == TW_OK && ended != TW_OK)
        *error = last;
    return status == TW_OK ? ended : status;
}

static tw_status record(const twi_plan *plan, twi_segment *s, tw_error *error)
{
    twi_device *leader = plan->lists[twi_leader(s)].device;
    twi_traffic *traffic = twi_traffic_create();
    int *works = twi_alloc_array((size_t)s->num_steps, sizeof *works), count = 0;
    tw_status status = traffic && works ? leader->ops->open_recording(leader, &s->recording, error)
                                        : twi_fail_memory(error, "recording");
    for (int i = 0; i < s->num_steps && status == TW_OK; i++) {
        const twi_step *step = step_of(plan, &s->steps[i]);
        if (step->kernel || step->source) {
            works[count] = i;
            status = record_step(plan, s, works, count++, traffic, error);
        }
    }
    if (status == TW_OK)
        status = leader->ops->close_recording(leader, s->recording, error);
    if (status != TW_OK && s->recording) {
        leader->ops->forget(leader, s->recording);
        s->recording = NULL;
    }
    twi_traffic_destroy(traffic);
    twi_free(works);
    return status;
}

void twi_record(twi_plan *plan)
{
    for (int i = 0; i < plan->num_segments; i++) {
        twi_segment *s = &plan->segments[i];
        tw_error error = {0};
        if (s->recording || s->refused || record(plan, s, &error) == TW_OK)
            continue;
        s->refused = true;
        twi_log(TWI_LOG_WARNING, "%d steps of %s are launched one by one, because recording them failed: %s",
                s->num_steps, plan->lists[twi_leader(s)].device->text, error.message);
    }
}
