/* trainer_checkpoint.c - from which checkpoint a trainer begins, and how it saves one. */
#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <tower/io.h>

#include "train/trainer_modes.h"

tw_status twi_trainer_open_checkpoint(const char *path, tw_checkpoint **checkpoint, tw_error *error)
{
    char latest[4096];
    *checkpoint = NULL;
    if (!path)
        return TW_OK;
    tw_error nothing = {0};
    tw_checkpoint_list *list;
    tw_status status = tw_checkpoint_latest(path, latest, sizeof latest, NULL, &nothing);
    if (status == TW_OK)
        return tw_checkpoint_open(latest, checkpoint, error);
    if (status != TW_NOT_FOUND)
        return twi_fail(error, status, "%s", nothing.message);
    if (tw_checkpoint_list_open(path, &list, NULL) == TW_OK) { /* a directory: there is none, or all are damaged */
        int damaged = tw_checkpoint_list_count(list);
        tw_checkpoint_list_close(list);
        return damaged ? twi_fail(error, TW_DATA_LOSS, "%s", nothing.message) : TW_OK;
    }
    status = tw_checkpoint_open(path, checkpoint, &nothing); /* a checkpoint's own path */
    return status == TW_OK || status == TW_NOT_FOUND ? TW_OK : twi_fail(error, status, "%s", nothing.message);
}

/* What is under way in staged and relaxed updates may be missing in a checkpoint of another mode. A stage then begins
 * with the variable itself, a pending mean with the zeros that it has. So may what groups have. */
typedef struct memory {
    const tw_trainer *trainer;
    const tw_checkpoint *checkpoint;
    char name[700];
} memory;

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length > tail && strcmp(name + length - tail, end) == 0;
}

static const char *look_for(void *user, const char *name)
{
    memory *m = user;
    bool staged = ends_with(name, TWI_STAGED);
    if ((!staged && !ends_with(name, TWI_PENDING)) || tw_checkpoint_find(m->checkpoint, name) >= 0)
        return twi_groups_look_for(m->trainer, m->checkpoint, name, m->name, sizeof m->name);
    snprintf(m->name, sizeof m->name, "%.*s", staged ? (int)(strlen(name) - strlen(TWI_STAGED)) : 0, name);
    return m->name;
}

tw_status twi_trainer_restore(tw_trainer *t, tw_checkpoint *checkpoint, tw_error *error)
{
    tw_tensor *step = NULL;
    memory memory = {.trainer = t, .checkpoint = checkpoint};
    tw_restore_options options = {.rename = look_for, .user = &memory};
    tw_status status = tw_restore(t->session, checkpoint, &options, NULL, error);
    if (status == TW_OK)
        status = tw_session_get_variable(t->session, tw_global_step(t->graph), &step, error);
    if (status == TW_OK)
        t->step = *(int64_t *)tw_tensor_data(step);
    tw_tensor_release(step);
    return status;
}

int64_t tw_trainer_checkpoint_step(const tw_trainer *t)
{
    TWI_NEED_OR(t, 0);
    return t->step - (t->as_tutorial && t->step > 0);
}

static const char *name_to_save(void *user, const char *name)
{
    memory *m = user;
    return twi_groups_rename(m->trainer, name, m->name, sizeof m->name);
}

tw_status tw_trainer_save(tw_trainer *t, const char *directory, int keep, tw_error *error)
{
    TWI_NEED(t, "trainer", error);
    TWI_NEED(directory, "directory", error);
    enum { ALWAYS = TWI_NUM_SETTINGS + TWI_NUM_RECALLED + TWI_NUM_ORIGINS };
    tw_named_tensor *extras = twi_alloc_array((size_t)(ALWAYS + 4 + twi_groups_most_to_save(t)), sizeof *extras);
    memory memory = {.trainer = t};
    char rule[TWI_RULE_SIZE];
    int count = extras ? ALWAYS : 0;
    tw_status status;
    if (!extras)
        TWI_LEAVE(twi_fail_memory(error, "saving a checkpoint"));
    TWI_TRY(twi_recipe_settings_to_save(&t->recipe, extras, error));
    TWI_TRY(twi_recipe_recalled_to_save(&t->recipe, extras + TWI_NUM_SETTINGS, error));
    TWI_TRY(twi_origin_to_save(t, extras + TWI_NUM_SETTINGS + TWI_NUM_RECALLED, error));
    twi_recipe_rule_text(&t->recipe, rule, sizeof rule);
    extras[count++] = (tw_named_tensor){TWI_RULE_NAME, tw_tensor_string(rule, strlen(rule))};
    if (!extras[count - 1].tensor)
        TWI_LEAVE(twi_fail_memory(error, "saving a checkpoint"));
    if (t->recipe.rate_factor < 1) {
        extras[count] = (tw_named_tensor){TWI_RATE_FACTOR_NAME, tw_tensor_float(t->recipe.rate_factor)};
        if (!extras[count++].tensor)
            TWI_LEAVE(twi_fail_memory(error, "saving a checkpoint"));
    }
    if (!twi_trainer_has_equal_shares(t)) {
        extras[count].tensor = twi_shares_to_save(&t->towers, &extras[count].name);
        if (!extras[count++].tensor)
            TWI_LEAVE(twi_fail_memory(error, "saving a checkpoint"));
    }
    if (t->asynchronous)
        TWI_TRY(twi_asynchronous_rest(t, &extras[count++], error));
    TWI_TRY(twi_groups_to_save(t, extras, &count, error));
    tw_save_options options = {.size = sizeof options,
                               .rename = name_to_save,
                               .user = &memory,
                               .keep = keep,
                               .extras = extras,
                               .num_extras = count,
                               .meta_graph = true,
                               .finite = true};
    TWI_TRY(tw_save(t->session, directory, tw_trainer_checkpoint_step(t), &options, error));
done:
    for (int i = 0; i < count; i++)
        tw_tensor_release((tw_tensor *)extras[i].tensor);
    twi_free(extras);
    return status;
}
