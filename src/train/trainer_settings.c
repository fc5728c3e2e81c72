/* trainer_settings.c - what a checkpoint and a run must agree on, so that one goes on where the other stopped.
 * A new setting is a line of the enum in trainer.h, a line of `settings` and one of `asked`. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <tower/io.h>

#include "train/trainer_modes.h"
#include "train/trainer_names.h"

/* Saved as int64 scalars of these names, or as what the value is called. */
static const struct {
    const char *key, *words;
    const twi_name *names; /* of values; NULL: it is a number */
    bool may_change;       /* another one than before may be asked for */
} settings[TWI_NUM_SETTINGS] = {
    [TWI_TOWERS] = {"tower/towers", "number of towers"},
    [TWI_BATCH] = {"tower/batch", "batch size per tower"},
    [TWI_SEED] = {"tower/seed", "seed"},
    [TWI_DTYPE] = {"tower/dtype", "dtype", twi_dtype_names},
    [TWI_OPTIMIZER] = {"tower/optimizer", "optimizer", twi_optimizer_names},
    [TWI_UPDATE] = {"tower/variable_update", "mode of update", .may_change = true}, /* names: the modes' */
    [TWI_SYNC] = {"tower/updates", "updates", twi_updates_names},
};

enum { MOST_MODES = 32 };

/* What values of setting number i are called; NULL: they are numbers. `room` is for those that are found. */
static const twi_name *names_of(int i, twi_name room[MOST_MODES + 1])
{
    int count = 0;
    if (i != TWI_UPDATE)
        return settings[i].names;
    for (const twi_mode *mode; count < MOST_MODES && (mode = twi_mode_at(TWI_FIRST_MODE + count)); count++)
        room[count] = (twi_name){mode->name, TWI_FIRST_MODE + count, mode->before};
    room[count] = (twi_name){NULL, 0, 0};
    return room;
}

bool twi_recipe_is_set(const tw_checkpoint *checkpoint, int i)
{
    return tw_checkpoint_find(checkpoint, settings[i].key) >= 0;
}

/* What a saved tensor says of setting number i; false: nothing sensible. */
static bool take(int i, const tw_tensor *saved, int64_t *value)
{
    twi_name room[MOST_MODES + 1];
    const twi_name *row = NULL, *names = names_of(i, room);
    tw_dtype dtype = tw_tensor_dtype(saved);
    if (tw_tensor_elements(saved) != 1 || (dtype != TW_INT64 && dtype != TW_STRING))
        return false;
    *value = dtype == TW_INT64 ? *(const int64_t *)tw_tensor_data(saved) : 0;
    if (!names)
        return dtype == TW_INT64 && (i == TWI_SEED || (*value >= 1 && *value <= 1 << 20));
    if (dtype == TW_STRING) {
        const tw_string *name = tw_tensor_data(saved);
        row = twi_name_find(names, name->data, name->size);
    } else if (*value) {
        row = twi_name_before(names, *value);
    }
    *value = row ? row->value : 0;
    return row != NULL;
}

static tw_status read_setting(tw_checkpoint *checkpoint, int i, int64_t *value, tw_error *error)
{
    tw_tensor *saved = NULL;
    tw_status status = tw_checkpoint_read(checkpoint, settings[i].key, &saved, error);
    if (status == TW_OK && !take(i, saved, value))
        status =
            twi_fail(error, TW_DATA_LOSS, "checkpoint %s: '%s' is not a sensible %s", tw_checkpoint_path(checkpoint),
                     settings[i].key, i == TWI_UPDATE || settings[i].names ? "name" : "number");
    tw_tensor_release(saved);
    return status;
}

/* "sgd", "bfloat16", "64": a setting as a person would give it. */
static const char *setting_text(int i, int64_t value, char text[32])
{
    twi_name room[MOST_MODES + 1];
    const twi_name *names = names_of(i, room), *row = names ? twi_name_of(names, value) : NULL;
    if (row)
        return row->name;
    snprintf(text, 32, "%lld", (long long)value);
    return text;
}

static void set_defaults(twi_recipe *recipe)
{
    const tw_model *model = recipe->model;
    const int64_t defaults[TWI_NUM_SETTINGS] = {
        [TWI_BATCH] = model->batch,
        [TWI_SEED] = 1,
        [TWI_DTYPE] = TW_FLOAT32,
        [TWI_OPTIMIZER] = model->optimizer ? model->optimizer : TW_OPTIMIZER_GRADIENT_DESCENT,
        [TWI_UPDATE] = TWI_FIRST_MODE,
        [TWI_SYNC] = TW_UPDATES_SYNCHRONOUS,
    };
    for (int i = 0; i < TWI_NUM_SETTINGS; i++)
        if (recipe->setting[i] == 0)
            recipe->setting[i] = defaults[i];
}

/* The number of the mode of update that is asked for, 0: none is. What cannot be is found out later, with the devices.
 */
static int64_t asked_mode(tw_variable_options v)
{
    const twi_mode *mode = NULL;
    if (!v.update && !v.staged && !v.consistency)
        return 0;
    v.update = v.update ? v.update : TW_UPDATE_PARAMETER_SERVER;
    return twi_mode_find(&v, &mode, NULL) == TW_OK ? twi_mode_number(mode) : TWI_FIRST_MODE;
}

/* Asking for something else than the checkpoint says is an error; one by somebody else, which says nothing, is taken as
 * it is. */
tw_status twi_recipe_find_settings(twi_recipe *recipe, const tw_trainer_options *options, tw_checkpoint *checkpoint,
                                   tw_error *error)
{
    const int64_t asked[TWI_NUM_SETTINGS] = {
        [TWI_TOWERS] = options->towers,       [TWI_BATCH] = options->batch,
        [TWI_SEED] = options->seed,           [TWI_DTYPE] = options->dtype,
        [TWI_OPTIMIZER] = options->optimizer, [TWI_UPDATE] = asked_mode(options->variables),
        [TWI_SYNC] = options->updates,
    };
    for (int i = 0; i < TWI_NUM_SETTINGS; i++) {
        recipe->setting[i] = asked[i];
        if (!checkpoint || !twi_recipe_is_set(checkpoint, i) || (asked[i] && settings[i].may_change))
            continue;
        int64_t saved = 0;
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
        recipe->setting[i] = saved;
    }
    set_defaults(recipe);
    return TW_OK;
}

tw_status twi_recipe_settings_to_save(const twi_recipe *recipe, tw_named_tensor tensors[TWI_NUM_SETTINGS],
                                      tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < TWI_NUM_SETTINGS; i++) {
        twi_name room[MOST_MODES + 1];
        const twi_name *names = names_of(i, room), *row = names ? twi_name_of(names, recipe->setting[i]) : NULL;
        tensors[i] = (tw_named_tensor){settings[i].key, row ? tw_tensor_string(row->name, strlen(row->name))
                                                            : tw_tensor_int64(recipe->setting[i])};
        if (!tensors[i].tensor)
            status = twi_fail_memory(error, "saving a checkpoint");
    }
    return status;
}
