/* compare_updates.c - how fast the modes of update are, measured with the network and the devices at hand.
 * Lives here:  which modes are worth a trial, the trials.
 * Never here:  what is made of them. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <tower/trainer.h>

enum { WARM_UP = 2 };

/* Those that give the same numbers, the simplest first, and the bound. */
static const tw_variable_options candidates[TW_MOST_UPDATE_TRIALS] = {
    {TW_UPDATE_PARAMETER_SERVER, TW_PLACE_SINGLE, TW_PARAMETERS_ON_CPU},
    {TW_UPDATE_PARAMETER_SERVER, TW_PLACE_LEAST_LOADED, TW_PARAMETERS_ON_GPU},
    {TW_UPDATE_REPLICATED},
    {TW_UPDATE_INDEPENDENT},
};

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Steps of one mode: the median's speed. */
static tw_status measure(const tw_trainer_options *options, int steps, tw_update_trial *trial, int64_t *times,
                         tw_error *error)
{
    tw_trainer *trainer = NULL;
    tw_trainer_step_result result;
    tw_status status = tw_trainer_create(options, &trainer, error);
    for (int i = 0; i < WARM_UP + steps && status == TW_OK; i++) {
        int64_t start = twi_monotonic_ns();
        status = tw_trainer_step(trainer, &result, error);
        times[i < WARM_UP ? 0 : i - WARM_UP] = twi_monotonic_ns() - start;
    }
    if (status == TW_OK) {
        qsort(times, (size_t)steps, sizeof *times, compare_times);
        trial->step_seconds = (double)times[steps / 2] * 1e-9;
        trial->examples_per_second = (double)tw_trainer_examples(trainer) / trial->step_seconds;
        trial->variables = tw_trainer_variables(trainer);
        trial->towers = tw_trainer_towers(trainer);
    }
    tw_trainer_destroy(trainer);
    return status;
}

tw_status tw_compare_updates(const tw_trainer_options *options, int steps,
                             tw_update_trial trials[TW_MOST_UPDATE_TRIALS], int *count, tw_error *error)
{
    TWI_NEED(count, "count", error);
    *count = 0;
    TWI_NEED(options, "options", error);
    TWI_NEED(trials, "trials", error);
    if (steps < 1 || steps > 1 << 20)
        return twi_fail(error, TW_INVALID_ARGUMENT, "comparing modes of update by %d steps each", steps);
    if (options->updates == TW_UPDATES_ASYNCHRONOUS)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "modes are compared for synchronous updates; "
                        "options.updates=asynchronous have one mode, parameter_server");
    int64_t *times = twi_alloc_array((size_t)steps, sizeof *times);
    if (!times)
        return twi_fail_memory(error, "comparing modes of update");
    tw_status status = TW_OK;
    for (int i = 0; i < TW_MOST_UPDATE_TRIALS && status == TW_OK; i++) {
        tw_trainer_options one = *options;
        tw_error reason = {0};
        one.variables = candidates[i];
        one.session.log_device_placement = one.session.trace = one.with_summaries = false;
        if (*count && trials[0].towers == 1 && candidates[i].update != TW_UPDATE_PARAMETER_SERVER)
            break; /* one tower meets nobody */
        tw_update_trial trial = {.variables = candidates[i]};
        tw_status ended = measure(&one, steps, &trial, times, &reason);
        bool on_gpus = candidates[i].parameter_device == TW_PARAMETERS_ON_GPU;
        if (ended == TW_OK || ended == TW_RESOURCE_EXHAUSTED)
            trials[(*count)++] = trial; /* what does not fit has no speed */
        else if (!(ended == TW_INVALID_ARGUMENT && on_gpus)) /* towers that run on CPUs */
            status = twi_fail(error, ended, "%s", reason.message);
    }
    twi_free(times);
    return status;
}

int tw_choose_update(const tw_update_trial *trials, int count, double at_least)
{
    TWI_NEED_OR(trials, -1);
    int best = -1;
    for (int i = 0; i < count; i++) {
        if (trials[i].variables.update == TW_UPDATE_INDEPENDENT || trials[i].examples_per_second <= 0)
            continue;
        if (best < 0 || trials[i].examples_per_second > at_least * trials[best].examples_per_second)
            best = i;
    }
    return best;
}
