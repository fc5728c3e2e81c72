/* trainer_scale.c - what a step does about an automatic loss scale: it says where gradients overflowed, and stops when
 * the scale can get no smaller. */
#include "base/log.h"
#include "base/status.h"

#include <stdio.h>

#include "train/trainer_modes.h"

/* Number of the first gradient that is not finite, -1 if all are. */
static int find_bad(const tw_trainer *t)
{
    const bool *finite = tw_tensor_data(t->fetched.tensors[t->fetched.num_always - 2]);
    for (int i = 0; i < t->scaling.scale->count; i++)
        if (!finite[i])
            return i;
    return -1;
}

tw_status twi_trainer_check_scale(const tw_trainer *t, tw_error *error)
{
    if (!t->recipe.rule.automatic_loss_scale)
        return TW_OK;
    if (t->asynchronous)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "Automatic loss scaling is not supported with asynchronous updates: no step has all gradients");
    if (t->variables.mode->not_scaled)
        return twi_fail(error, TW_INVALID_ARGUMENT, "Automatic loss scaling is not supported with %s",
                        t->variables.mode->not_scaled);
    return TW_OK;
}

tw_status twi_trainer_look_at_scale(tw_trainer *t, tw_error *error)
{
    if (!t->scaling.scale || !t->scaling.scale->automatic)
        return TW_OK;
    int bad = find_bad(t);
    if (bad < 0)
        return TW_OK;
    float scale = *(float *)tw_tensor_data(t->fetched.tensors[t->fetched.num_always - 1]);
    snprintf(t->scaling.where, sizeof t->scaling.where, "%s", t->scaling.scale->names[bad]);
    t->scaling.skipped++;
    if (scale <= 1)
        return twi_fail(error, TW_OUT_OF_RANGE,
                        "step %lld: %s is not finite though the loss scale is down to 1: this is "
                        "no matter of its scale",
                        (long long)t->step, t->scaling.where);
    if (t->scaling.skipped == 1) /* afterwards it is routine */
        twi_log(TWI_LOG_INFO,
                "step %lld: %s overflowed with a loss scale of %g; the step is left out, the scale halved",
                (long long)t->step, t->scaling.where, scale);
    return TW_OK;
}

float tw_trainer_loss_scale(const tw_trainer *t, int64_t *skipped, const char **where)
{
    TWI_NEED_OR(t, 0);
    if (skipped)
        *skipped = t->scaling.skipped;
    if (where)
        *where = t->scaling.where;
    if (!t->scaling.scale)
        return 1;
    if (!t->scaling.scale->automatic)
        return t->recipe.rule.loss_scale;
    float scale = 0;
    tw_tensor *value = NULL;
    if (tw_session_get_variable(t->session, t->scaling.scale->value, &value, NULL) == TW_OK)
        scale = *(float *)tw_tensor_data(value);
    tw_tensor_release(value);
    return scale;
}
