/* trainer.c - the training loop of one model over several towers, made of public functions: beginning, stepping, ending.
 * trainer.h says which file has the rest. */
#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>

#include "train/trainer.h"

static tw_status make_arrays(tw_trainer *t, tw_error *error)
{
    size_t n = (size_t)t->towers;
    t->images = twi_alloc_array(n, sizeof *t->images);
    t->labels = twi_alloc_array(n, sizeof *t->labels);
    t->losses = twi_alloc_array(n, sizeof *t->losses);
    t->data = twi_alloc_array(n, sizeof *t->data);
    t->fetches = twi_alloc_array(3 * n + 1, sizeof *t->fetches);
    t->gradients = twi_alloc_array(n, sizeof(tw_grads *));
    t->graph = tw_graph_create();
    if (t->gradients && t->data && t->images && t->labels && t->losses && t->fetches && t->graph)
        return TW_OK;
    return twi_fail_memory(error, "creating a trainer");
}

tw_status tw_trainer_create(const tw_trainer_options *given, tw_trainer **result, tw_error *error)
{
    tw_status status;
    tw_trainer_options filled = *given, *options = &filled;
    tw_checkpoint *checkpoint = NULL;
    tw_trainer *t = twi_alloc(sizeof *t);
    *result = NULL;
    if (!t)
        return twi_fail_memory(error, "creating a trainer");
    if (!options->model || !options->dataset || !options->devices)
        TWI_TRY(twi_fail(error, TW_INVALID_ARGUMENT, "a trainer needs a model, a data set and devices"));
    t->model = options->model;
    t->averaging = options->average;
    t->devices = options->devices;
    t->home = -1;
    t->rule = options->rule;
    t->data_examples = tw_dataset_count(options->dataset);
    t->input = options->input;
    t->accuracy = options->accuracy;
    TWI_TRY(twi_trainer_open_checkpoint(options->resume_from, &checkpoint, error));
    TWI_TRY(twi_asynchronous_open(t, options, error));
    TWI_TRY(twi_trainer_find_settings(t, options, checkpoint, error));
    TWI_TRY(twi_trainer_recall(t, options, checkpoint, error));
    TWI_TRY(twi_trainer_check_rule(t, checkpoint, error));
    TWI_TRY(twi_trainer_choose_devices(t, options, error));
    TWI_TRY(twi_trainer_find_shares(t, options, checkpoint, error));
    if (t->input == TW_INPUT_PREFETCH && !twi_trainer_has_equal_shares(t))
        TWI_TRY(twi_fail(error, TW_INVALID_ARGUMENT, "batches of one queue for all towers are of one size, but towers have "
                                                     "unequal shares of a step"));
    TWI_TRY(twi_trainer_find_variables(t, options, error));
    TWI_TRY(twi_asynchronous_agree(t, options, error));
    TWI_TRY(twi_trainer_check_scale(t, error));
    if (t->accuracy && t->asynchronous)
        TWI_TRY(twi_fail(error, TW_INVALID_ARGUMENT, "the accuracy of a step is that of all towers, which asynchronous "
                                                     "updates do not have"));
    if (t->input != TW_INPUT_PIPELINE && (t->asynchronous || options->repeat_batch))
        TWI_TRY(twi_fail(error, TW_INVALID_ARGUMENT, "queues hand batches to towers that step together: they go neither with "
                                                     "asynchronous updates nor with a batch that is repeated"));
    TWI_TRY(twi_trainer_choose_input_place(t, options, error));
    TWI_TRY(make_arrays(t, error));
    twi_trainer_find_home(t);
    TWI_TRY(twi_trainer_build_graph(t, options->dataset, error));
    tw_session_options session = options->session;
    session.devices = options->devices;
    tw_output initialize = tw_initialize_variables(t->graph);
    TWI_TRY(tw_session_create(t->graph, &session, &t->session, error));
    /* What a checkpoint does not have begins as in a fresh run. */
    bool begins = !checkpoint || t->variables.consistency == TW_RELAXED;
    TWI_TRY(twi_trainer_prepare(t, options, begins ? initialize : (tw_output){0}, error));
    if (options->plan_only) {
        *result = t;
        t = NULL;
        goto done;
    }
    if (begins)
        TWI_TRY(tw_session_run(t->session, NULL, 0, &initialize, 1, NULL, error));
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
    twi_trainer_stop_input(t);
    for (int i = 0; t->results && i < t->num_fetches; i++)
        tw_tensor_release(t->results[i]);
    twi_asynchronous_stop(t->asynchronous);
    tw_session_destroy(t->session);
    twi_trainer_close_input(t);
    twi_asynchronous_destroy(t->asynchronous);
    tw_graph_destroy(t->graph);
    twi_free(t->tower_devices);
    twi_free(t->parameter_devices);
    twi_free(t->parameter_loads);
    twi_free(t->shares);
    twi_free(t->weights);
    twi_free(t->gradients);
    twi_free(t->data);
    twi_free(t->images);
    twi_free(t->labels);
    twi_free(t->losses);
    twi_free(t->fetches);
    twi_free(t->results);
    twi_free(t);
}

/* ---- stepping --------------------------------------------------------------------------------------------- */

/* What the latest of `steps` steps gave. */
static tw_status look_at_losses(tw_trainer *t, int64_t steps, tw_trainer_step_result *result, tw_error *error)
{
    double sum = 0, top[2] = {0}, examples = (double)t->examples;
    int64_t last = t->step + steps - 1;
    char before[64] = "";
    if (steps > 1)
        snprintf(before, sizeof before, ", or up to %lld before,", (long long)(steps - 1));
    for (int i = 0; i < t->towers; i++) {
        t->losses[i] = *(float *)tw_tensor_data(t->results[i]);
        if (!isfinite(t->losses[i]))
            return twi_fail(error, TW_OUT_OF_RANGE, "Model diverged with loss = %s at step %lld%s in tower_%d (%s)",
                            isnan(t->losses[i]) ? "NaN" : "infinity", (long long)last, before, i, t->tower_devices[i]);
        sum += t->losses[i] * (double)t->shares[i];
        for (int k = 0; k < 2 && t->accuracy; k++)
            top[k] += *(float *)tw_tensor_data(t->results[t->towers + 1 + 2 * i + k]) * (double)t->shares[i];
    }
    *result = (tw_trainer_step_result){last, (float)(sum / examples), t->losses, 0, 0, (float)(top[0] / examples),
                                       (float)(top[1] / examples)};
    return TW_OK;
}

tw_status twi_trainer_take_steps(tw_trainer *t, int64_t steps, int num_fetches, tw_trainer_step_result *result,
                                 tw_error *error)
{
    int64_t done = 0;
    tw_status status = tw_session_run_steps(t->session, steps, NULL, 0, t->fetches, num_fetches, t->results, &done, error);
    if (status != TW_OK) {
        t->step += done;
        return twi_prefix(error, "step %lld", (long long)t->step), status;
    }
    status = look_at_losses(t, steps, result, error);
    if (status == TW_OK) {
        status = twi_trainer_look_at_scale(t, error);
        t->step += steps;
    }
    return status;
}

tw_status tw_trainer_step(tw_trainer *t, tw_trainer_step_result *result, tw_error *error)
{
    return tw_trainer_run_steps(t, 1, result, error);
}

/* Who updates by himself, or looks at each step's gradients, does so step by step. */
tw_status tw_trainer_run_steps(tw_trainer *t, int64_t steps, tw_trainer_step_result *result, tw_error *error)
{
    tw_status status = TW_OK;
    bool by_step = t->asynchronous || (t->scale && t->scale->automatic);
    if (steps < 1)
        return twi_fail(error, TW_INVALID_ARGUMENT, "%lld steps: expected at least 1", (long long)steps);
    if (!by_step)
        return twi_trainer_take_steps(t, steps, t->num_always, result, error);
    for (int64_t i = 0; i < steps && status == TW_OK; i++)
        status = t->asynchronous ? twi_asynchronous_step(t, result, error)
                                 : twi_trainer_take_steps(t, 1, t->num_always, result, error);
    return status;
}

/* ---- answers ---------------------------------------------------------------------------------------------- */

int64_t tw_trainer_steps_done(const tw_trainer *t)
{
    return t->step;
}

int tw_trainer_towers(const tw_trainer *t)
{
    return t->towers;
}

int tw_trainer_batch(const tw_trainer *t)
{
    return (int)t->setting[TWI_BATCH];
}

int tw_trainer_share(const tw_trainer *t, int tower)
{
    return t->shares[tower];
}

int64_t tw_trainer_examples(const tw_trainer *t)
{
    return t->asynchronous ? t->shares[0] : t->examples;
}

tw_variable_options tw_trainer_variables(const tw_trainer *t)
{
    return t->variables;
}

int64_t tw_trainer_seed(const tw_trainer *t)
{
    return t->setting[TWI_SEED];
}

tw_updates tw_trainer_updates(const tw_trainer *t)
{
    return t->asynchronous ? TW_ASYNCHRONOUS : TW_SYNCHRONOUS;
}

int64_t tw_trainer_parameters(const tw_trainer *t)
{
    int64_t parameters = 0;
    for (int i = 0; i < t->average->count; i++)
        parameters += tw_shape_elements(t->average->variables[i]->shape);
    return parameters;
}

tw_status tw_trainer_plan_info(const tw_trainer *t, tw_plan_info *info, tw_error *error)
{
    (void)error;
    *info = t->plan;
    return TW_OK;
}

const char *tw_trainer_tower_device(const tw_trainer *t, int tower)
{
    const char *placed = tw_session_device(t->session, t->fetches[tower].node);
    return placed ? placed : t->tower_devices[tower];
}

tw_session *tw_trainer_session(tw_trainer *t)
{
    return t->session;
}

tw_graph *tw_trainer_graph(tw_trainer *t)
{
    return t->graph;
}
