/* trainer.c - the training loop of one model over several towers, made of public functions: beginning, stepping,
 * ending. trainer.h says which file has the rest. */
#include "base/crash.h"
#include "base/sized.h"
#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>

#include "train/trainer_modes.h"

static tw_status make_arrays(tw_trainer *t, tw_error *error)
{
    size_t n = (size_t)t->towers.count;
    t->input.images = twi_alloc_array(n, sizeof *t->input.images);
    t->input.labels = twi_alloc_array(n, sizeof *t->input.labels);
    t->input.elsewhere = twi_alloc_array(n, sizeof *t->input.elsewhere);
    t->input.made = twi_alloc_array(2 * n, sizeof *t->input.made);
    t->input.made_first = twi_alloc_array(2 * n, sizeof *t->input.made_first);
    t->fetched.losses = twi_alloc_array(n, sizeof *t->fetched.losses);
    t->input.data = twi_alloc_array(n, sizeof *t->input.data);
    t->fetched.outputs = twi_alloc_array(3 * n + 1, sizeof *t->fetched.outputs);
    t->update.gradients = twi_alloc_array(n, sizeof(tw_grads *));
    t->graph = tw_graph_create();
    if (t->update.gradients && t->input.data && t->input.images && t->input.labels && t->input.elsewhere &&
        t->input.made && t->input.made_first && t->fetched.losses && t->fetched.outputs && t->graph)
        return TW_OK;
    return twi_fail_memory(error, "creating a trainer");
}

/* Among several tasks: each has looked for itself. */
static tw_status agree_on_checkpoint(tw_devices *devices, const tw_checkpoint *checkpoint, tw_error *error)
{
    char text[64] = "none";
    if (checkpoint)
        snprintf(text, sizeof text, "step %lld", (long long)tw_checkpoint_step(checkpoint));
    return tw_devices_agree(devices, text, "the checkpoint that they go on from", error);
}

tw_status tw_trainer_create(const tw_trainer_options *given, tw_trainer **result, tw_error *error)
{
    TWI_NEED(given, "options", error);
    TWI_NEED(result, "trainer", error);
    tw_status status;
    tw_trainer_options filled, *options = &filled;
    tw_checkpoint *checkpoint = NULL;
    tw_trainer *t = twi_alloc(sizeof *t);
    *result = NULL;
    if (!t)
        return twi_fail_memory(error, "creating a trainer");
    TWI_TRY(twi_sized(options, given, TWI_SIZE(tw_trainer_options, session), error));
    if (!options->model || !options->dataset || !options->devices)
        TWI_LEAVE(twi_fail(error, TW_INVALID_ARGUMENT, "a trainer needs a model, a data set and devices"));
    TWI_TRY(twi_sized(&t->model, options->model, TWI_SIZE(tw_model, logits), error));
    t->recipe.model = &t->model;
    t->recipe.average = options->average;
    t->devices = options->devices;
    t->dataset = options->dataset;
    t->recipe.rule = options->rule;
    t->recipe.data_examples = tw_dataset_count(options->dataset);
    t->as_tutorial = options->as_tutorial;
    t->input.kind = options->input;
    t->fetched.accuracy = options->accuracy;
    t->watch.replicas_every = options->check_replicas;
    TWI_TRY(twi_trainer_open_checkpoint(options->resume_from, &checkpoint, error));
    TWI_TRY(agree_on_checkpoint(options->devices, checkpoint, error));
    if (!options->plan_only)
        TWI_TRY(twi_data_agree(options->devices, options->dataset, "the data that they learn from", error));
    TWI_TRY(twi_origin_check_model(t, checkpoint, error));
    TWI_TRY(twi_asynchronous_open(t, options, error));
    TWI_TRY(twi_recipe_find_settings(&t->recipe, options, checkpoint, error));
    TWI_TRY(twi_recipe_recall(&t->recipe, options, checkpoint, error));
    TWI_TRY(twi_recipe_check_rule(&t->recipe, checkpoint, options->accept_other_bits, error));
    TWI_TRY(twi_trainer_choose_devices(t, options, error));
    TWI_TRY(twi_trainer_find_shares(t, options, checkpoint, error));
    if ((t->input.kind == TW_INPUT_PREFETCH || t->input.kind == TW_INPUT_FILES_PREFETCH) &&
        !twi_trainer_has_equal_shares(t))
        TWI_LEAVE(twi_fail(error, TW_INVALID_ARGUMENT,
                           "batches of one queue for all towers are of one size, but towers have "
                           "unequal shares of a step"));
    TWI_TRY(twi_trainer_find_variables(t, options, error));
    TWI_TRY(twi_trainer_find_groups(t, options, checkpoint, error));
    TWI_TRY(twi_asynchronous_agree(t, options, error));
    TWI_TRY(twi_trainer_check_watch(t, error));
    TWI_TRY(twi_trainer_check_scale(t, error));
    if (t->fetched.accuracy && t->asynchronous)
        TWI_LEAVE(twi_fail(error, TW_INVALID_ARGUMENT,
                           "the accuracy of a step is that of all towers, which asynchronous "
                           "updates do not have"));
    if (t->input.kind != TW_INPUT_PIPELINE && (t->asynchronous || options->repeat_batch))
        TWI_LEAVE(twi_fail(error, TW_INVALID_ARGUMENT,
                           "queues hand batches to towers that step together: they go neither with "
                           "asynchronous updates nor with a batch that is repeated"));
    TWI_TRY(twi_trainer_choose_input_place(t, options, error));
    TWI_TRY(make_arrays(t, error));
    TWI_TRY(twi_trainer_choose_files(t, options, error));
    TWI_TRY(twi_trainer_find_step_device(t, error));
    TWI_TRY(twi_trainer_build_graph(t, options->dataset, error));
    tw_session_options session = options->session;
    session.devices = options->devices;
    tw_output initialize = tw_initialize_variables(t->graph);
    TWI_TRY(tw_session_create(t->graph, &session, &t->session, error));
    /* What a checkpoint does not have begins as in a fresh run. */
    bool begins = !checkpoint || t->variables.mode->keeps_means;
    TWI_TRY(twi_trainer_prepare(t, options, begins ? initialize : (tw_output){0}, error));
    if (options->plan_only) {
        *result = t;
        t = NULL;
        goto done;
    }
    TWI_TRY(twi_origin_check(t, checkpoint, options->dataset, options->accept_other_bits, error));
    if (begins)
        TWI_TRY(tw_session_run(t->session, NULL, 0, &initialize, 1, NULL, error));
    if (!checkpoint)
        TWI_TRY(twi_trainer_begin_with_data(t, options->dataset, error));
    if (checkpoint)
        TWI_TRY(twi_trainer_restore(t, checkpoint, error));
    TWI_TRY(twi_trainer_open_input(t, options, error));
    if (t->asynchronous)
        TWI_TRY(twi_asynchronous_start(t, options, checkpoint, error));
    *result = t;
    t = NULL;
done:
    tw_checkpoint_close(checkpoint);
    tw_trainer_destroy(t);
    return status;
}

void tw_trainer_destroy(tw_trainer *t)
{
    if (!t)
        return;
    twi_input_stop(&t->input);
    for (int i = 0; t->fetched.tensors && i < t->fetched.count; i++)
        tw_tensor_release(t->fetched.tensors[i]);
    twi_asynchronous_stop(t->asynchronous);
    tw_session_destroy(t->session);
    twi_input_close(&t->input, t->towers.count);
    twi_asynchronous_destroy(t->asynchronous);
    tw_graph_destroy(t->graph);
    twi_free(t->towers.devices);
    twi_free(t->variables.devices);
    twi_free(t->variables.loads);
    twi_free(t->towers.shares);
    twi_free(t->towers.weights);
    twi_free(t->update.gradients);
    twi_free(t->input.data);
    twi_free(t->input.images);
    twi_free(t->input.labels);
    twi_free(t->input.elsewhere);
    twi_free(t->input.made);
    twi_free(t->input.made_first);
    twi_free(t->fetched.losses);
    twi_free(t->fetched.outputs);
    twi_free(t->fetched.tensors);
    twi_free(t);
}

/* ---- stepping --------------------------------------------------------------------------------------------- */

/* What the latest of `steps` steps gave. */
static tw_status look_at_losses(tw_trainer *t, int64_t steps, tw_trainer_step_result *result, tw_error *error)
{
    double sum = 0, top[2] = {0}, examples = (double)t->towers.examples;
    int64_t last = t->step + steps - 1;
    char before[64] = "";
    if (steps > 1)
        snprintf(before, sizeof before, ", or up to %lld before,", (long long)(steps - 1));
    for (int i = 0; i < t->towers.count; i++) {
        t->fetched.losses[i] = *(float *)tw_tensor_data(t->fetched.tensors[i]);
        if (!isfinite(t->fetched.losses[i]))
            return twi_fail(error, TW_OUT_OF_RANGE, "Model diverged with loss = %s at step %lld%s in tower_%d (%s)",
                            isnan(t->fetched.losses[i]) ? "NaN" : "infinity", (long long)last, before, i,
                            t->towers.devices[i]);
        sum += t->fetched.losses[i] * (double)t->towers.shares[i];
        for (int k = 0; k < 2 && t->fetched.accuracy; k++)
            top[k] += *(float *)tw_tensor_data(t->fetched.tensors[t->towers.count + 1 + 2 * i + k]) *
                      (double)t->towers.shares[i];
    }
    *result = (tw_trainer_step_result){last, (float)(sum / examples),    t->fetched.losses,         0,
                                       0,    (float)(top[0] / examples), (float)(top[1] / examples)};
    return TW_OK;
}

tw_status twi_trainer_take_steps(tw_trainer *t, int64_t steps, int num_fetches, tw_trainer_step_result *result,
                                 tw_error *error)
{
    int64_t done = 0;
    twi_crash_note_step(t->step);
    tw_status status = twi_input_explain(&t->input, TW_OK, error);
    if (status == TW_OK)
        status = twi_trainer_make_first_batch(t, error);
    if (status == TW_OK)
        status = tw_session_run_steps(t->session, steps, NULL, 0, t->fetched.outputs, num_fetches, t->fetched.tensors,
                                      &done, error);
    if (status != TW_OK) {
        t->step += done;
        t->input.waits = false;
        status = twi_input_explain(&t->input, status, error);
        return twi_prefix(error, "step %lld", (long long)t->step), status;
    }
    status = look_at_losses(t, steps, result, error);
    if (status == TW_OK) {
        status = twi_trainer_look_at_scale(t, error);
        t->step += steps;
    }
    if (status == TW_OK)
        status = twi_trainer_meet(t, error);
    return status == TW_OK ? twi_trainer_look_at_replicas(t, error) : status;
}

tw_status tw_trainer_step(tw_trainer *t, tw_trainer_step_result *result, tw_error *error)
{
    TWI_NEED(t, "trainer", error);
    TWI_NEED(result, "result", error);
    return tw_trainer_run_steps(t, 1, result, error);
}

/* Who updates by himself, or looks at each step's gradients, does so step by step. */
tw_status tw_trainer_run_steps(tw_trainer *t, int64_t steps, tw_trainer_step_result *result, tw_error *error)
{
    TWI_NEED(t, "trainer", error);
    TWI_NEED(result, "result", error);
    tw_status status = TW_OK;
    bool by_step = t->asynchronous || (t->scaling.scale && t->scaling.scale->automatic);
    if (steps < 1)
        return twi_fail(error, TW_INVALID_ARGUMENT, "%lld steps: expected at least 1", (long long)steps);
    for (int64_t at = 0, next; at < steps && status == TW_OK; at += next) {
        next = by_step ? 1 : twi_trainer_steps_to_meet(t, twi_trainer_steps_to_watch(t, steps - at));
        status = t->asynchronous ? twi_asynchronous_step(t, result, error)
                                 : twi_trainer_take_steps(t, next, t->fetched.num_always, result, error);
    }
    return status;
}

/* ---- answers ---------------------------------------------------------------------------------------------- */

int64_t tw_trainer_steps_done(const tw_trainer *t)
{
    TWI_NEED_OR(t, 0);
    return t->step;
}

int tw_trainer_towers(const tw_trainer *t)
{
    TWI_NEED_OR(t, 0);
    return t->towers.count;
}

int tw_trainer_batch(const tw_trainer *t)
{
    TWI_NEED_OR(t, 0);
    return (int)t->recipe.setting[TWI_BATCH];
}

int tw_trainer_share(const tw_trainer *t, int tower)
{
    TWI_NEED_OR(t, 0);
    return t->towers.shares[tower];
}

int64_t tw_trainer_examples(const tw_trainer *t)
{
    TWI_NEED_OR(t, 0);
    return t->asynchronous ? t->towers.shares[0] : t->towers.examples;
}

tw_variable_options tw_trainer_variables(const tw_trainer *t)
{
    TWI_NEED_OR(t, (tw_variable_options){0});
    return t->variables.options;
}

int64_t tw_trainer_seed(const tw_trainer *t)
{
    TWI_NEED_OR(t, 0);
    return t->recipe.setting[TWI_SEED];
}

tw_updates tw_trainer_updates(const tw_trainer *t)
{
    TWI_NEED_OR(t, 0);
    return t->asynchronous ? TW_UPDATES_ASYNCHRONOUS : TW_UPDATES_SYNCHRONOUS;
}

int64_t tw_trainer_parameters(const tw_trainer *t)
{
    TWI_NEED_OR(t, 0);
    int64_t parameters = 0;
    for (int i = 0; i < t->update.average->count; i++)
        parameters += tw_shape_elements(t->update.average->variables[i]->shape);
    return parameters;
}

tw_status tw_trainer_plan_info(const tw_trainer *t, tw_plan_info *info, tw_error *error)
{
    TWI_NEED(t, "trainer", error);
    TWI_NEED(info, "info", error);
    (void)error;
    *info = t->fetched.plan;
    return TW_OK;
}

const char *tw_trainer_tower_device(const tw_trainer *t, int tower)
{
    TWI_NEED_OR(t, "");
    const char *placed = tw_session_device(t->session, t->fetched.outputs[tower].node);
    return placed ? placed : t->towers.devices[tower];
}

float tw_trainer_latest_rate(const tw_trainer *t)
{
    TWI_NEED_OR(t, NAN);
    const tw_tensor *rate = t->fetched.count > t->fetched.num_always && !t->asynchronous
                                ? t->fetched.tensors[t->fetched.num_always] : NULL;
    return rate ? *(const float *)tw_tensor_data(rate) : NAN;
}

tw_session *tw_trainer_session(tw_trainer *t)
{
    TWI_NEED_OR(t, NULL);
    return t->session;
}

tw_graph *tw_trainer_graph(tw_trainer *t)
{
    TWI_NEED_OR(t, NULL);
    return t->graph;
}
