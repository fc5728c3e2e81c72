/* trainer_summaries.c - a step that also writes the tutorial's summaries. Of several tasks all look at the same values,
 * and those without a writer (events NULL) write nothing of them. */
#include "base/log.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <tower/io.h>

#include "train/trainer.h"

/* Curves are grouped by what stands before the first slash, and groups sorted by name: "eval", "train", "units". */
static const char *tag_of(const tw_trainer *t, const char *group, const char *name, char text[320])
{
    snprintf(text, 320, "%s%s%.300s", t->as_tutorial ? "" : group, t->as_tutorial ? "" : "/", name);
    return text;
}

tw_status twi_trainer_write_curve(const tw_trainer *t, tw_event_writer *events, const char *name, int64_t step,
                                  float value, tw_error *error)
{
    char tag[320];
    return events ? tw_event_writer_add_scalar(events, tag_of(t, "train", name, tag), step, value, error) : TW_OK;
}

/* What the tutorial calls a part of the loss: where averages are kept, the part itself is "NAME (raw)" and its average
 * "NAME". */
static const char *tag_of_part(const tw_trainer *t, bool is_average, const char *name, char tag[320])
{
    bool averaged = t->as_tutorial && t->recipe.model->loss_average_decay > 0;
    const char *end = averaged && is_average ? strrchr(name, '/') : NULL; /* of "NAME/average" */
    int length = end ? (int)(end - name) : (int)strlen(name);
    snprintf(tag, 320, "%.*s%s", length, name, averaged && !is_average ? " (raw)" : "");
    return tag;
}

static tw_status write_losses(tw_trainer *t, tw_event_writer *events, const tw_trainer_step_result *r, tw_error *error)
{
    tw_status status;
    int rate = t->fetched.num_always;
    char name[300], tag[320];
    TWI_TRY(twi_trainer_write_curve(t, events, t->as_tutorial ? tag_of_part(t, false, "total_loss", tag) : "loss",
                                    r->step, r->loss, error));
    for (int i = 0; i < t->towers.count && t->towers.count > 1; i++) {
        snprintf(tag, sizeof tag, "towers/%d/total_loss", i);
        TWI_TRY(twi_trainer_write_curve(t, events, tag, r->step, r->tower_losses[i], error));
    }
    TWI_TRY(twi_trainer_write_curve(t, events, "learning_rate", r->step,
                                    *(float *)tw_tensor_data(t->fetched.tensors[rate]), error));
    if (t->scaling.scale && t->scaling.scale->automatic)
        TWI_TRY(twi_trainer_write_curve(t, events, "loss_scale", r->step,
                                        *(float *)tw_tensor_data(t->fetched.tensors[rate - 1]), error));
    for (int i = rate + 1; i <= rate + t->fetched.num_parts; i++) {
        tw_strip_tower_name(tw_node_name(t->fetched.outputs[i].node), name, sizeof name);
        TWI_TRY(twi_trainer_write_curve(t, events, tag_of_part(t, i - rate > t->fetched.num_losses, name, tag), r->step,
                                        *(float *)tw_tensor_data(t->fetched.tensors[i]), error));
    }
done:
    return status;
}

/* Values that are not finite have no histogram, and do not end training: the loss of a step does, which names it. */
static tw_status write_histogram(tw_event_writer *events, const char *tag, int64_t step, const tw_tensor *tensor,
                                 tw_error *error)
{
    tw_error reason = {0};
    if (!events)
        return TW_OK;
    tw_status status = tw_event_writer_add_histogram(events, tag, step, tensor, &reason);
    if (status == TW_OK)
        return TW_OK;
    if (status != TW_INVALID_ARGUMENT)
        return twi_fail(error, status, "%s", reason.message);
    twi_log(TWI_LOG_INFO, "step %lld: %s; it is left out", (long long)step, reason.message);
    return TW_OK;
}

tw_status twi_trainer_write_variables(tw_trainer *t, tw_event_writer *events, int64_t step,
                                      tw_tensor *const *gradients, tw_error *error)
{
    for (int i = 0; i < t->update.average->count; i++) {
        const tw_variable *variable = t->update.average->variables[i];
        tw_tensor *value = NULL;
        tw_status status = tw_session_get_variable(t->session, variable, &value, error);
        if (status == TW_OK)
            status = write_histogram(events, variable->name, step, value, error);
        tw_tensor_release(value);
        if (status == TW_OK && t->update.average->gradients[i].node) {
            char tag[300];
            snprintf(tag, sizeof tag, "%s/gradients", variable->name);
            status = write_histogram(events, tag, step, *gradients++, error);
        }
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

static float share_of_zeros(const tw_tensor *tensor)
{
    int64_t zeros = 0, count = tw_tensor_elements(tensor);
    const float *floats = tw_tensor_data(tensor);
    const uint16_t *bfloats = tw_tensor_data(tensor);
    switch (tw_tensor_dtype(tensor)) { /* millions of values: the loops for the types that networks have are vectors' */
    case TW_FLOAT32:
        for (int64_t i = 0; i < count; i++)
            zeros += floats[i] == 0;
        break;
    case TW_BFLOAT16:
        for (int64_t i = 0; i < count; i++)
            zeros += (bfloats[i] & 0x7fff) == 0;
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            zeros += tw_tensor_value(tensor, i) == 0;
    }
    return count ? (float)zeros / (float)count : 0;
}

int twi_trainer_activations(const tw_trainer *t, tw_output outputs[TWI_MOST_ACTIVATIONS])
{
    char scope[32];
    snprintf(scope, sizeof scope, "tower_%d", t->towers.count - 1);
    int count = tw_get_collection(t->graph, "activations", scope, outputs, TWI_MOST_ACTIVATIONS);
    return count < TWI_MOST_ACTIVATIONS ? count : TWI_MOST_ACTIVATIONS;
}

/* Runs the last tower's network forward once more, on the batch it has just seen, with the new variables. */
static tw_status write_activations(tw_trainer *t, tw_event_writer *events, int64_t step, tw_error *error)
{
    tw_output outputs[TWI_MOST_ACTIVATIONS + 1];
    tw_tensor *values[TWI_MOST_ACTIVATIONS + 1] = {0};
    tw_status status = TW_OK;
    char name[300], tag[320], curve[320];
    int last = t->towers.count - 1, count = twi_trainer_activations(t, outputs), images = t->input.summary.node != NULL;
    tw_feed feeds[] = {{t->input.images[last], t->fetched.tensors[t->fetched.count - 1]}};
    outputs[count] = t->input.summary;
    TWI_TRY(tw_session_run(t->session, feeds, 1, outputs, count + images, values, error));
    for (int i = 0; i < count && events; i++) {
        tw_strip_tower_name(tw_node_name(outputs[i].node), name, sizeof name);
        snprintf(tag, sizeof tag, "%s/activations", name);
        TWI_TRY(write_histogram(events, tag, step, values[i], error));
        snprintf(tag, sizeof tag, "%.290s/sparsity", name);
        TWI_TRY(tw_event_writer_add_scalar(events, tag_of(t, "units", tag, curve), step, share_of_zeros(values[i]), error));
    }
    if (images && events) {
        const tw_string *summary = tw_tensor_data(values[count]);
        TWI_TRY(tw_event_writer_add_summary(events, step, summary->data, summary->size, error));
    }
done:
    for (int i = 0; i < count + images; i++)
        tw_tensor_release(values[i]);
    return status;
}

tw_status tw_trainer_step_with_summaries(tw_trainer *t, tw_event_writer *events, tw_trainer_step_result *result,
                                         tw_error *error)
{
    TWI_NEED(t, "trainer", error);
    TWI_NEED(events || tw_devices_task(t->devices) != 0, "events", error);
    TWI_NEED(result, "result", error);
    tw_status status;
    if (t->asynchronous) {
        TWI_TRY(twi_asynchronous_step(t, result, error));
        TWI_TRY(twi_asynchronous_write_summaries(t, events, result, error));
        return events ? tw_event_writer_flush(events, error) : TW_OK;
    }
    TWI_TRY(twi_trainer_take_steps(t, 1, t->fetched.count, result, error));
    TWI_TRY(write_losses(t, events, result, error));
    int gradients = t->fetched.num_always + 1 + t->fetched.num_parts; /* behind the rate and the parts of the loss */
    TWI_TRY(twi_trainer_write_variables(t, events, result->step, t->fetched.tensors + gradients, error));
    TWI_TRY(write_activations(t, events, result->step, error));
    if (events)
        TWI_TRY(tw_event_writer_flush(events, error));
done:
    return status;
}
