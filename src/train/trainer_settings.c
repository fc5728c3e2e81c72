/* trainer_settings.c - what a checkpoint and a run must agree on, so that one goes on where the other stopped.
 * A new setting is a line of the enum in trainer.h, a line of `settings` and one of `asked`. */
#include "base/status.h"

#include <stdio.h>
#include <tower/io.h>

#include "train/trainer.h"

/* Saved as int64 scalars of these names. */
static const struct {
    const char *name, *words;
    bool may_change; /* another one than before may be asked for */
} settings[TWI_NUM_SETTINGS] = {
    [TWI_TOWERS] = {"tower/towers", "number of towers"},
    [TWI_BATCH] = {"tower/batch", "batch size per tower"},
    [TWI_SEED] = {"tower/seed", "seed"},
    [TWI_DTYPE] = {"tower/dtype", "dtype"},
    [TWI_OPTIMIZER] = {"tower/optimizer", "optimizer"},
    [TWI_UPDATE] = {"tower/variable_update", "variable_update", .may_change = true},
    [TWI_SYNC] = {"tower/updates", "updates"},
};

bool twi_trainer_has_setting(const tw_checkpoint *checkpoint, int i)
{
    return tw_checkpoint_find(checkpoint, settings[i].name) >= 0;
}

static tw_status read_setting(tw_checkpoint *checkpoint, int i, int64_t *value, tw_error *error)
{
    tw_tensor *tensor = NULL;
    tw_status status = tw_checkpoint_read(checkpoint, settings[i].name, &tensor, error);
    if (status != TW_OK)
        return status;
    bool plausible = tw_tensor_elements(tensor) == 1 && tw_tensor_dtype(tensor) == TW_INT64;
    *value = plausible ? *(int64_t *)tw_tensor_data(tensor) : 0;
    tw_tensor_release(tensor);
    if (plausible && (i == TWI_SEED || (*value >= 1 && *value <= 1 << 20)))
        return TW_OK;
    return twi_fail(error, TW_DATA_LOSS, "checkpoint %s: '%s' is not a sensible number", tw_checkpoint_path(checkpoint),
                    settings[i].name);
}

/* "sgd", "bfloat16", "64": a setting as a person would give it. */
static const char *setting_text(int i, int64_t value, char text[32])
{
    static const char *const optimizers[] = {
        [TW_MODEL_GRADIENT_DESCENT] = "sgd", [TW_MODEL_MOMENTUM] = "momentum", [TW_MODEL_ADAM] = "adam",
        [TW_MODEL_RMS_PROP] = "rmsprop"}; /* ORDER OPTIMIZER */
    if (i == TWI_SYNC)
        return value == TW_ASYNCHRONOUS ? "asynchronous" : "synchronous";
    if (i == TWI_DTYPE)
        return tw_dtype_name((tw_dtype)value);
    if (i == TWI_OPTIMIZER && value >= TW_MODEL_GRADIENT_DESCENT && value <= TW_MODEL_RMS_PROP)
        return optimizers[value];
    snprintf(text, 32, "%lld", (long long)value);
    return text;
}

static void set_defaults(tw_trainer *t)
{
    const int64_t defaults[TWI_NUM_SETTINGS] = {
        [TWI_BATCH] = t->model->batch,
        [TWI_SEED] = 1,
        [TWI_DTYPE] = TW_FLOAT32,
        [TWI_OPTIMIZER] = t->model->optimizer ? t->model->optimizer : TW_MODEL_GRADIENT_DESCENT,
        [TWI_UPDATE] = TW_PARAMETER_SERVER,
        [TWI_SYNC] = TW_SYNCHRONOUS,
    };
    for (int i = 0; i < TWI_NUM_SETTINGS; i++)
        if (t->setting[i] == 0)
            t->setting[i] = defaults[i];
}

/* Asking for something else than the checkpoint says is an error; one by somebody else, which says nothing, is taken as
 * it is. */
tw_status twi_trainer_find_settings(tw_trainer *t, const tw_trainer_options *options, tw_checkpoint *checkpoint,
                                    tw_error *error)
{
    const int64_t asked[TWI_NUM_SETTINGS] = {
        [TWI_TOWERS] = options->towers,
        [TWI_BATCH] = options->batch,
        [TWI_SEED] = options->seed,
        [TWI_DTYPE] = options->dtype,
        [TWI_OPTIMIZER] = options->optimizer,
        [TWI_UPDATE] = twi_trainer_update_to_save(&options->variables),
        [TWI_SYNC] = options->updates,
    };
    for (int i = 0; i < TWI_NUM_SETTINGS; i++) {
        t->setting[i] = asked[i];
        if (!checkpoint || !twi_trainer_has_setting(checkpoint, i) || (asked[i] && settings[i].may_change))
            continue;
        int64_t saved;
        char before[32], now[32];
        tw_status status = read_setting(checkpoint, i, &saved, error);
        if (status != TW_OK)
            return status;
        if (asked[i] && asked[i] != saved)
            return twi_fail(error, TW_INVALID_ARGUMENT,
                            "checkpoint %s was made with %s %s, but %s was asked for: leave that out to resume, or "
                            "train into another directory",
                            tw_checkpoint_path(checkpoint), settings[i].words, setting_text(i, saved, before),
                            setting_text(i, asked[i], now));
        t->setting[i] = saved;
    }
    set_defaults(t);
    return TW_OK;
}

tw_status twi_trainer_settings_to_save(const tw_trainer *t, tw_named_tensor tensors[TWI_NUM_SETTINGS], tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < TWI_NUM_SETTINGS; i++) {
        tensors[i] = (tw_named_tensor){settings[i].name, tw_tensor_int64(t->setting[i])};
        if (!tensors[i].tensor)
            status = twi_fail_memory(error, "saving a checkpoint");
    }
    return status;
}
