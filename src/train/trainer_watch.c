/* trainer_watch.c - when numbers go wrong: replicas are compared, the node that made the first NaN is found, and a run
 * goes back to where all was well. */
#include "base/fingerprint.h"
#include "base/sized.h"
#include "base/status.h"

#include <string.h>

#include "train/finite.h"
#include "train/trainer_modes.h"

/* ---- replicas -------------------------------------------------------------------------------------------------- */

tw_status twi_trainer_check_watch(const tw_trainer *t, tw_error *error)
{
    const twi_mode *mode = t->variables.mode;
    if (t->watch.replicas_every < 0)
        return twi_fail(error, TW_INVALID_ARGUMENT, "options.check_replicas=%lld: expected a number of steps",
                        (long long)t->watch.replicas_every);
    if (t->watch.replicas_every && (!mode->own || !mode->meet || mode->grouped || t->asynchronous))
        return twi_fail(
            error, TW_INVALID_ARGUMENT,
            "options.check_replicas compares copies that towers hold: with %s there are none that must agree",
            t->asynchronous ? "options.updates=asynchronous" : mode->name);
    return TW_OK;
}

int64_t twi_trainer_steps_to_watch(const tw_trainer *t, int64_t steps)
{
    int64_t every = t->watch.replicas_every, next = every ? every - t->step % every : steps;
    return next < steps ? next : steps;
}

static const tw_variable *original_of(const tw_variable *variable)
{
    while (variable->copy_of)
        variable = variable->copy_of;
    return variable;
}

static const char *device_of(const tw_trainer *t, const tw_variable *variable)
{
    const char *device = tw_session_device(t->session, variable->handle.node);
    return device ? device : "";
}

/* What the one holds and the other does not. */
static tw_status tell_difference(const tw_trainer *t, const tw_variable *original, const tw_tensor *expected,
                                 const tw_variable *copy, const tw_tensor *found, tw_error *error)
{
    int64_t i = 0, elements = tw_tensor_elements(found);
    size_t size = tw_dtype_size(tw_tensor_dtype(found));
    const char *a = tw_tensor_data((tw_tensor *)expected), *b = tw_tensor_data((tw_tensor *)found);
    while (i + 1 < elements && memcmp(a + (size_t)i * size, b + (size_t)i * size, size) == 0)
        i++;
    return twi_fail(
        error, TW_DATA_LOSS,
        "step %lld: towers hold different values of '%s': element %lld is %.9g on %s, but %.9g on %s ('%s'). "
        "What was saved last may have the same fault",
        (long long)t->step - 1, original->name, (long long)i, tw_tensor_value(expected, i), device_of(t, original),
        tw_tensor_value(found, i), device_of(t, copy), copy->name);
}

/* Looks at the copies of one variable. */
static tw_status check_copies(const tw_trainer *t, int number, tw_error *error)
{
    const tw_variable *original = tw_graph_variable(t->graph, number);
    tw_tensor *expected = NULL, *found = NULL;
    uint64_t hash = 0;
    tw_status status = TW_OK;
    for (int i = number + 1; i < tw_graph_num_variables(t->graph); i++) {
        const tw_variable *copy = tw_graph_variable(t->graph, i);
        if (original_of(copy) != original)
            continue;
        if (!expected) {
            TWI_TRY(tw_session_get_variable(t->session, original, &expected, error));
            hash = twi_fingerprint(tw_tensor_data(expected), tw_tensor_bytes(expected));
        }
        TWI_TRY(tw_session_get_variable(t->session, copy, &found, error));
        if (twi_fingerprint(tw_tensor_data(found), tw_tensor_bytes(found)) != hash)
            TWI_TRY(tell_difference(t, original, expected, copy, found, error));
        tw_tensor_release(found);
        found = NULL;
    }
done:
    tw_tensor_release(expected);
    tw_tensor_release(found);
    return status;
}

tw_status twi_trainer_look_at_replicas(tw_trainer *t, tw_error *error)
{
    tw_status status = TW_OK;
    if (!t->watch.replicas_every || t->step % t->watch.replicas_every)
        return TW_OK;
    for (int i = 0; i < tw_graph_num_variables(t->graph) && status == TW_OK; i++)
        if (!tw_graph_variable(t->graph, i)->copy_of)
            status = check_copies(t, i, error);
    return status;
}

/* ---- where it began -------------------------------------------------------------------------------------------- */

static tw_status look_at_variables(const tw_trainer *t, bool *finite, tw_error *error)
{
    tw_status status = TW_OK;
    *finite = true;
    for (int i = 0; i < tw_graph_num_variables(t->graph) && status == TW_OK && *finite; i++) {
        tw_tensor *value = NULL;
        status = tw_session_get_variable(t->session, tw_graph_variable(t->graph, i), &value, error);
        *finite = status != TW_OK || twi_is_finite(value);
        tw_tensor_release(value);
    }
    return status;
}

/* Trains as far as step `from`, then with every number looked at. *late: by then something was wrong already. */
static tw_status search(const tw_trainer_options *options, int64_t from, int64_t last, bool *late, tw_error *found,
                        tw_error *error)
{
    tw_trainer *t = NULL;
    tw_trainer_step_result result;
    bool finite = true;
    tw_status status;
    TWI_TRY(tw_trainer_create(options, &t, error));
    if (t->asynchronous)
        TWI_LEAVE(twi_fail(error, TW_UNIMPLEMENTED, "asynchronous updates do not go the same way again"));
    if (twi_input_reads_files(t->input.kind))
        TWI_LEAVE(twi_fail(error, TW_UNIMPLEMENTED, "batches that the graph reads from files do not come again"));
    if (t->step < from)
        status = tw_trainer_run_steps(t, from - t->step, &result, error);
    if (status == TW_OK)
        TWI_TRY(look_at_variables(t, &finite, error));
    *late = status == TW_OUT_OF_RANGE || !finite;
    if (*late || status != TW_OK) {
        status = *late ? TW_OK : status;
        goto done;
    }
    TWI_TRY(tw_session_check_numbers(t->session, true, error));
    while (t->step <= last && found->status == TW_OK)
        if (tw_trainer_step(t, &result, found) != TW_OK && found->status != TW_OUT_OF_RANGE)
            TWI_LEAVE(twi_fail(error, found->status, "%s", found->message));
done:
    tw_trainer_destroy(t);
    return status;
}

tw_status tw_trainer_find_divergence(const tw_trainer_options *options, int64_t good, int64_t last, tw_error *found,
                                     tw_error *error)
{
    TWI_NEED(options, "options", error);
    TWI_NEED(found, "found", error);
    bool late = false;
    *found = (tw_error){0};
    tw_status status = search(options, good, last, &late, found, error);
    return status == TW_OK && late ? search(options, 0, last, &late, found, error) : status;
}

/* ---- going back ------------------------------------------------------------------------------------------------ */

tw_status tw_trainer_roll_back(tw_trainer **trainer, const tw_trainer_options *options, const char *directory,
                               float factor, tw_error *error)
{
    TWI_NEED(trainer && *trainer, "trainer", error);
    TWI_NEED(options, "options", error);
    TWI_NEED(directory, "directory", error);
    tw_trainer_options again;
    tw_status status = twi_sized(&again, options, TWI_SIZE(tw_trainer_options, session), error);
    if (status != TW_OK)
        return status;
    if (!(factor > 0 && factor <= 1))
        return twi_fail(error, TW_INVALID_ARGUMENT, "factor %g: expected a number above 0 and at most 1",
                        (double)factor);
    again.size = sizeof again;
    again.resume_from = directory;
    again.rate_factor = (*trainer)->recipe.rate_factor * factor;
    tw_trainer_destroy(*trainer);
    *trainer = NULL;
    return tw_trainer_create(&again, trainer, error);
}
