/* trainer_modes.c - which mode of update options ask for, and what it is called.
 * Never here: the modes themselves (trainer_apply.c). */
#include "train/trainer_modes.h"

#include "base/status.h"

int64_t twi_mode_number(const twi_mode *mode)
{
    return TWI_FIRST_MODE + (mode - twi_modes);
}

const twi_mode *twi_mode_at(int64_t number)
{
    for (const twi_mode *mode = twi_modes; mode->name; mode++)
        if (twi_mode_number(mode) == number)
            return mode;
    return NULL;
}

/* The first of those; staged or relaxed -1: either. */
static const twi_mode *find(tw_variable_update update, int staged, int relaxed)
{
    for (const twi_mode *mode = twi_modes; mode->name; mode++)
        if ((update == TW_UPDATE_DEFAULT || mode->update == update) && (staged < 0 || mode->staged == staged) &&
            (relaxed < 0 || mode->relaxed == relaxed))
            return mode;
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
        return twi_fail(
            error, TW_INVALID_ARGUMENT,
            "options.variables.consistency=relaxed goes with options.variables.update=%s only, not with %s%s",
            tw_variable_update_name(find(TW_UPDATE_DEFAULT, -1, true)->update), name,
            find(v->update, true, -1) ? "; options.variables.staged is its counterpart there" : "");
    *mode = find(v->update, v->staged, relaxed);
    return *mode ? TW_OK
                 : twi_fail(error, TW_INVALID_ARGUMENT,
                            "options.variables.staged and consistency=relaxed do not go together");
}

void twi_mode_ask(const twi_mode *mode, tw_variable_options *v)
{
    v->update = mode->update;
    v->staged = mode->staged;
    v->consistency = mode->relaxed ? TW_CONSISTENCY_RELAXED : TW_CONSISTENCY_STRONG;
}

const char *tw_trainer_update_text(const tw_trainer *t, const char **numbers)
{
    if (numbers)
        *numbers = "";
    TWI_NEED_OR(t, "");
    const twi_mode *mode = t->variables.mode;
    if (numbers)
        *numbers = t->asynchronous       ? "those of the order of updates"
                   : t->towers.count > 1 ? mode->numbers
                   : mode->applied_late  ? mode->numbers
                                         : "those of one tower";
    return t->asynchronous ? "each tower applies its gradients to the one copy there is" : mode->words;
}
