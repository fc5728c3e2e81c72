/* trainer_modes.c - the modes of update: the table of them, and which of them options ask for.
 *
 *     parameter_server   there is one copy; the mean, beside each variable, is applied to it
 *       staged           the same; meanwhile the variable as it was goes to the towers' stages, for the next step
 *     replicated         each tower has a copy; the mean comes to every tower, which applies it to its own
 *       relaxed          what each applies is the mean of the step before; this step's is kept for the next
 *     independent        each tower has a copy, to which it applies its own gradients
 *
 * Never here: what rows are made of (trainer_variables.c, trainer_apply.c). */
#include "train/trainer_modes.h"

#include "base/status.h"

static const twi_mode modes[] = {
    {
        .name = "parameter_server",
        .before = 1,
        .update = TW_UPDATE_PARAMETER_SERVER,
        .place = twi_on_parameter_devices,
        .meet = twi_meet_at_variables,
        .apply = twi_apply_once,
        .asynchronous = true,
    },
    {
        .name = "parameter_server staged",
        .before = 4,
        .update = TW_UPDATE_PARAMETER_SERVER,
        .staged = true,
        .place = twi_on_parameter_devices,
        .own = twi_own_stage,
        .meet = twi_meet_at_variables,
        .apply = twi_apply_staged,
        .not_scaled = "staged variables: towers would compute with the scale of another step than the variables'",
    },
    {
        .name = "replicated",
        .before = 2,
        .update = TW_UPDATE_REPLICATED,
        .own = twi_own_copy,
        .meet = twi_meet_everywhere,
        .everywhere = true,
        .apply = twi_apply_to_all,
    },
    {
        .name = "replicated relaxed",
        .before = 5,
        .update = TW_UPDATE_REPLICATED,
        .relaxed = true,
        .own = twi_own_copy,
        .meet = twi_meet_everywhere,
        .everywhere = true,
        .apply = twi_apply_late,
        .keeps_means = true,
        .not_scaled = "relaxed consistency: a step that is left out would take the update of the step before with it",
    },
    {
        .name = "independent",
        .before = 3,
        .update = TW_UPDATE_INDEPENDENT,
        .own = twi_own_copy,
        .apply = twi_apply_to_all,
    },
};

enum { NUM_MODES = sizeof modes / sizeof *modes };

const twi_mode *twi_mode_at(int64_t number)
{
    return number >= TWI_FIRST_MODE && number < TWI_FIRST_MODE + NUM_MODES ? &modes[number - TWI_FIRST_MODE] : NULL;
}

int64_t twi_mode_number(const twi_mode *mode)
{
    return TWI_FIRST_MODE + (mode - modes);
}

/* The first of those; staged or relaxed -1: either. */
static const twi_mode *find(tw_variable_update update, int staged, int relaxed)
{
    for (int i = 0; i < NUM_MODES; i++)
        if ((update == TW_UPDATE_DEFAULT || modes[i].update == update) && (staged < 0 || modes[i].staged == staged) &&
            (relaxed < 0 || modes[i].relaxed == relaxed))
            return &modes[i];
    return NULL;
}

const char *tw_variable_update_name(tw_variable_update update)
{
    const twi_mode *mode = update == TW_UPDATE_DEFAULT ? NULL : find(update, false, false);
    return mode ? mode->name : "";
}

tw_status twi_mode_find(const tw_variable_options *v, const twi_mode **mode, tw_error *error)
{
    bool relaxed = v->consistency == TW_CONSISTENCY_RELAXED;
    const char *name = tw_variable_update_name(v->update);
    if (!*name)
        return twi_fail(error, TW_INVALID_ARGUMENT, "options.variables.update: there is no number %d", (int)v->update);
    if (v->staged && !find(v->update, true, -1))
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "options.variables.staged goes with options.variables.update=%s only: with %s each tower has "
                        "variables of its own, and none to fetch",
                        tw_variable_update_name(find(TW_UPDATE_DEFAULT, true, -1)->update), name);
    if (relaxed && !find(v->update, -1, true))
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "options.variables.consistency=relaxed goes with options.variables.update=%s only, not with %s%s",
                        tw_variable_update_name(find(TW_UPDATE_DEFAULT, -1, true)->update), name,
                        find(v->update, true, -1) ? "; options.variables.staged is its counterpart there" : "");
    *mode = find(v->update, v->staged, relaxed);
    return *mode ? TW_OK
                 : twi_fail(error, TW_INVALID_ARGUMENT, "options.variables.staged and consistency=relaxed do not go together");
}

void twi_mode_ask(const twi_mode *mode, tw_variable_options *v)
{
    v->update = mode->update;
    v->staged = mode->staged;
    v->consistency = mode->relaxed ? TW_CONSISTENCY_RELAXED : TW_CONSISTENCY_STRONG;
}
