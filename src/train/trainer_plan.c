/* trainer_plan.c - all that a training run is going to run, planned before anything runs; and whether there is room. */
#include "base/status.h"

#include <stdio.h>
#include <tower/explain.h>

#include "train/trainer.h"

/* What a step with summaries runs besides. */
static tw_status prepare_summaries(tw_trainer *t, tw_error *error)
{
    tw_output outputs[TWI_MOST_ACTIVATIONS];
    int count = twi_trainer_activations(t, outputs), last = t->towers.count - 1;
    tw_feed_shape fed = {t->input.images[last], tw_output_shape(t->input.images[last])};
    tw_status status = tw_session_prepare(t->session, &fed, 1, outputs, count, error);
    return status == TW_OK ? tw_session_prepare(t->session, NULL, 0, t->fetched.outputs, t->fetched.count, error)
                           : status;
}

static tw_status check_device(const tw_device_memory *m, int64_t used_by_others, tw_error *error)
{
    if (!m->limit || m->total + used_by_others <= m->limit)
        return TW_OK;
    char others[64] = "";
    if (used_by_others)
        snprintf(others, sizeof others, ", of which %lld are taken", (long long)used_by_others);
    return twi_fail(error, TW_RESOURCE_EXHAUSTED,
                    "%s would need %lld bytes, its limit is %lld%s: variables take %lld, constants %lld, the buffers of a "
                    "step %lld (most while '%s' runs)",
                    m->device, (long long)m->total, (long long)m->limit, others, (long long)m->variables,
                    (long long)m->constants, (long long)m->arena, m->fullest ? m->fullest : "nothing");
}

static tw_status check_room(tw_trainer *t, const tw_devices *devices, tw_error *error)
{
    tw_memory *memory;
    tw_status status = tw_session_memory(t->session, &memory, error);
    if (status != TW_OK)
        return status;
    for (int d = 0; d < memory->num_devices && status == TW_OK; d++)
        status = check_device(&memory->devices[d], (int64_t)tw_devices_info(devices, d).memory_used, error);
    tw_memory_destroy(memory);
    return status;
}

static tw_status prepare_step(tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    tw_status status = options->with_summaries ? prepare_summaries(t, error) : TW_OK;
    if (status == TW_OK && t->groups.meeting.node)
        status = tw_session_prepare(t->session, NULL, 0, &t->groups.meeting, 1, error);
    if (status == TW_OK && t->input.first.node)
        status = tw_session_prepare(t->session, NULL, 0, &t->input.first, 1, error);
    if (status == TW_OK)
        status = tw_session_prepare(t->session, NULL, 0, t->fetched.outputs, t->fetched.num_always, error);
    return status == TW_OK ? tw_session_plan_info(t->session, &t->fetched.plan, error) : status;
}

tw_status twi_trainer_prepare(tw_trainer *t, const tw_trainer_options *options, tw_output initialize, tw_error *error)
{
    tw_status status = TW_OK;
    if (initialize.node)
        status = tw_session_prepare(t->session, NULL, 0, &initialize, 1, error);
    if (status == TW_OK && t->asynchronous)
        status = twi_asynchronous_prepare(t, error);
    else if (status == TW_OK)
        status = prepare_step(t, options, error);
    return status == TW_OK && !options->plan_only ? check_room(t, options->devices, error) : status;
}
