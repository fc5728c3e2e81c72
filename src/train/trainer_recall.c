/* trainer_recall.c - what a checkpoint remembers and a run may change: the first rate, its schedule, the reduction.
 * Where nothing is asked for they go on as they were; where something else is, that is done, and can be said. */
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tower/io.h>

#include "train/trainer_modes.h"
#include "train/trainer_names.h"

#define RATE "tower/learning_rate"
#define SCHEDULE "tower/schedule"
#define ALL_REDUCE "tower/all_reduce"

/* A schedule as a text, in its own units: "schedule=piecewise unit=epochs length=0 ... at=82 rate=0.01 at=123
 * rate=0.001". Numbers are written so that they are read to the bit. */
enum { SCHEDULE_SIZE = 200 + 60 * TW_MOST_RATES };

static char *schedule_to_text(const tw_rule *r, char text[SCHEDULE_SIZE])
{
    int used = snprintf(text, SCHEDULE_SIZE,
                        "schedule=%s unit=%s length=%.17g factor=%.9g end=%.9g power=%.9g warm_up=%.17g scale_rate=%s",
                        twi_name_of(twi_schedule_names, r->schedule)->name, twi_name_of(twi_unit_names, r->unit)->name,
                        r->length, (double)r->factor, (double)r->end, (double)r->power, r->warm_up,
                        r->scale_rate ? "on" : "off");
    for (int i = 0; i < r->num_rates; i++)
        used +=
            snprintf(text + used, (size_t)(SCHEDULE_SIZE - used), " at=%.17g rate=%.9g", r->at[i], (double)r->rates[i]);
    return text;
}

/* A number that some schedule could have. */
static bool take_number(const char *word, double *number)
{
    char *end;
    *number = strtod(word, &end);
    return end > word && *end == 0 && *number >= 0 && *number <= 1e18;
}

/* One word of the text into the rule; false: none that schedule_to_text() writes. */
static bool take_word(const char *key, const char *value, tw_rule *r)
{
    const twi_name *schedule = twi_name_find(twi_schedule_names, value, strlen(value));
    const twi_name *unit = twi_name_find(twi_unit_names, value, strlen(value));
    double number;
    if (strcmp(key, "schedule") == 0)
        return schedule && (r->schedule = (tw_schedule)schedule->value, true);
    if (strcmp(key, "unit") == 0)
        return unit && (r->unit = (tw_rate_unit)unit->value, true);
    if (strcmp(key, "scale_rate") == 0) {
        r->scale_rate = strcmp(value, "on") == 0;
        return r->scale_rate || strcmp(value, "off") == 0;
    }
    if (!take_number(value, &number))
        return false;
    if (strcmp(key, "at") == 0 && r->num_rates < TW_MOST_RATES)
        return r->at[r->num_rates] = number, true;
    if (strcmp(key, "rate") == 0 && r->num_rates < TW_MOST_RATES)
        return r->rates[r->num_rates++] = (float)number, true;
    if (strcmp(key, "length") == 0)
        return r->length = number, true;
    if (strcmp(key, "factor") == 0)
        return r->factor = (float)number, true;
    if (strcmp(key, "end") == 0)
        return r->end = (float)number, true;
    if (strcmp(key, "power") == 0)
        return r->power = (float)number, true;
    if (strcmp(key, "warm_up") == 0)
        return r->warm_up = number, true;
    return false;
}

/* The rule with the model's schedule, and otherwise as it is. */
static tw_rule without_schedule(tw_rule r)
{
    r.schedule = TW_SCHEDULE_MODEL;
    r.unit = TW_RATE_EPOCHS;
    r.length = r.warm_up = 0;
    r.factor = r.end = r.power = 0;
    r.scale_rate = false;
    r.num_rates = 0;
    return r;
}

static bool schedule_from_text(const tw_string *saved, tw_rule *r)
{
    char text[SCHEDULE_SIZE], *rest;
    if (saved->size >= sizeof text)
        return false;
    snprintf(text, sizeof text, "%.*s", (int)saved->size, saved->size ? saved->data : "");
    *r = without_schedule(*r);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        if (!equals)
            return false;
        *equals = 0;
        if (!take_word(word, equals + 1, r))
            return false;
    }
    return true;
}

/* Checkpoints of revisions before had it as numbers, in this order. */
enum { NUMBERS_BEFORE = 9 + 2 * TW_MOST_RATES };

static bool schedule_from_numbers(const double numbers[NUMBERS_BEFORE], tw_rule *r)
{
    for (int i = 0; i < NUMBERS_BEFORE; i++)
        if (!(numbers[i] >= 0 && numbers[i] <= 1e18))
            return false;
    if (numbers[8] > TW_MOST_RATES)
        return false;
    const twi_name *schedule = twi_name_before(twi_schedule_names, 1 + (int64_t)numbers[0]);
    const twi_name *unit = twi_name_before(twi_unit_names, 1 + (int64_t)numbers[1]);
    if (!schedule || !unit)
        return false;
    r->schedule = (tw_schedule)schedule->value;
    r->unit = (tw_rate_unit)unit->value;
    r->length = numbers[2];
    r->factor = (float)numbers[3];
    r->end = (float)numbers[4];
    r->power = (float)numbers[5];
    r->warm_up = numbers[6];
    r->scale_rate = numbers[7] != 0;
    r->num_rates = (int)numbers[8];
    for (int i = 0; i < r->num_rates; i++) {
        r->at[i] = numbers[9 + 2 * i];
        r->rates[i] = (float)numbers[10 + 2 * i];
    }
    return true;
}

static bool asks_for_schedule(const tw_rule *r)
{
    return r->schedule != TW_SCHEDULE_MODEL || r->warm_up > 0 || r->scale_rate;
}

/* One of the above of a checkpoint; NULL: it has none. */
static tw_status look_up(tw_checkpoint *checkpoint, const char *name, tw_tensor **found, tw_error *error)
{
    *found = NULL;
    return checkpoint && tw_checkpoint_find(checkpoint, name) >= 0 ? tw_checkpoint_read(checkpoint, name, found, error)
                                                                   : TW_OK;
}

static bool is_one(const tw_tensor *saved, tw_dtype dtype)
{
    return tw_tensor_dtype(saved) == dtype && tw_tensor_elements(saved) == 1;
}

/* "learning rate 0.05 instead of 0.1" */
void twi_recipe_note(twi_recipe *recipe, const char *what, const char *now, const char *before)
{
    size_t used = strlen(recipe->changes);
    snprintf(recipe->changes + used, sizeof recipe->changes - used, "%s%s %s instead of %s", used ? "; " : "", what,
             now, before);
}

/* These are false if what was saved is nothing that a trainer saves. */

static bool recall_rate(twi_recipe *recipe, float asked, const tw_tensor *saved)
{
    if (saved && !is_one(saved, TW_FLOAT32))
        return false;
    float before = saved ? (float)tw_tensor_value(saved, 0) : recipe->model->learning_rate;
    char old[32], new[32];
    recipe->first_rate = asked > 0 ? asked : before;
    snprintf(old, sizeof old, "%g", (double)before);
    snprintf(new, sizeof new, "%g", (double)recipe->first_rate);
    if (saved && recipe->first_rate != before)
        twi_recipe_note(recipe, "learning rate", new, old);
    return !saved || before > 0;
}

static bool recall_factor(twi_recipe *recipe, float asked, const tw_tensor *saved)
{
    if (saved && !is_one(saved, TW_FLOAT32))
        return false;
    float before = saved ? (float)tw_tensor_value(saved, 0) : 1;
    recipe->rate_factor = asked > 0 ? asked : before;
    return before > 0 && before <= 1;
}

static bool take_schedule(const tw_tensor *saved, tw_rule *rule)
{
    if (is_one(saved, TW_STRING))
        return schedule_from_text(tw_tensor_data(saved), rule);
    return tw_tensor_dtype(saved) == TW_FLOAT64 && tw_tensor_elements(saved) == NUMBERS_BEFORE &&
           schedule_from_numbers(tw_tensor_data(saved), rule);
}

static bool recall_schedule(twi_recipe *recipe, const tw_tensor *saved)
{
    tw_rule before = recipe->rule;
    char old[SCHEDULE_SIZE], new[SCHEDULE_SIZE];
    if (!saved)
        return true;
    if (!take_schedule(saved, &before))
        return false;
    if (!asks_for_schedule(&recipe->rule))
        recipe->rule = before;
    else if (strcmp(schedule_to_text(&recipe->rule, new), schedule_to_text(&before, old)) != 0)
        twi_recipe_note(recipe, "rate", twi_schedule_text(&recipe->rule, new, 256),
                        twi_schedule_text(&before, old, 256));
    return true;
}

static bool recall_reduction(twi_recipe *recipe, const tw_tensor *saved)
{
    if (saved && !is_one(saved, TW_STRING))
        return false;
    const tw_string *before = saved ? tw_tensor_data(saved) : NULL;
    const twi_mode *mode = twi_mode_at(recipe->setting[TWI_UPDATE]);
    if (!before || !mode->meet)
        return true;
    snprintf(recipe->saved_all_reduce, sizeof recipe->saved_all_reduce, "%.*s", (int)before->size,
             before->size ? before->data : "");
    const char *asked = recipe->average.all_reduce,
               *was = recipe->saved_all_reduce[0] ? recipe->saved_all_reduce : "tree";
    if (!asked)
        recipe->average.all_reduce = recipe->saved_all_reduce[0] ? recipe->saved_all_reduce : NULL;
    else if (strcmp(asked, was) != 0)
        twi_recipe_note(recipe, "reduction", asked, was);
    return true;
}

tw_status twi_recipe_recall(twi_recipe *recipe, const tw_trainer_options *options, tw_checkpoint *checkpoint,
                            tw_error *error)
{
    tw_status status;
    const char *wrong = NULL;
    tw_tensor *rate = NULL, *factor = NULL, *schedule = NULL, *reduction = NULL;
    TWI_TRY(look_up(checkpoint, RATE, &rate, error));
    TWI_TRY(look_up(checkpoint, TWI_RATE_FACTOR_NAME, &factor, error));
    TWI_TRY(look_up(checkpoint, SCHEDULE, &schedule, error));
    TWI_TRY(look_up(checkpoint, ALL_REDUCE, &reduction, error));
    if (!twi_name_of(twi_schedule_names, options->rule.schedule) || !twi_name_of(twi_unit_names, options->rule.unit))
        TWI_LEAVE(twi_fail(error, TW_INVALID_ARGUMENT, "options.rule: there is no schedule %d of unit %d",
                           (int)options->rule.schedule, (int)options->rule.unit));
    if (!(options->rate_factor >= 0 && options->rate_factor <= 1))
        TWI_LEAVE(twi_fail(error, TW_INVALID_ARGUMENT,
                           "options.rate_factor=%g: expected a number above 0 and at most 1",
                           (double)options->rate_factor));
    if (!recall_rate(recipe, options->learning_rate, rate))
        wrong = RATE;
    else if (!recall_factor(recipe, options->rate_factor, factor))
        wrong = TWI_RATE_FACTOR_NAME;
    else if (!recall_reduction(recipe, reduction))
        wrong = ALL_REDUCE;
    else if (!recall_schedule(recipe, schedule))
        wrong = SCHEDULE;
    if (!wrong && !(recipe->first_rate > 0))
        status = twi_fail(error, TW_INVALID_ARGUMENT, "options.learning_rate: model %s has none, so one must be given",
                          recipe->model->name);
    else if (wrong)
        status = twi_fail(error, TW_DATA_LOSS, "checkpoint %s: '%s' is not what a trainer saves",
                          tw_checkpoint_path(checkpoint), wrong);
done:
    tw_tensor_release(rate);
    tw_tensor_release(factor);
    tw_tensor_release(schedule);
    tw_tensor_release(reduction);
    return status;
}

tw_status twi_recipe_recalled_to_save(const twi_recipe *recipe, tw_named_tensor tensors[TWI_NUM_RECALLED],
                                      tw_error *error)
{
    char schedule[SCHEDULE_SIZE];
    const char *spec = recipe->average.all_reduce ? recipe->average.all_reduce : "";
    schedule_to_text(&recipe->rule, schedule);
    tensors[0] = (tw_named_tensor){RATE, tw_tensor_float(recipe->first_rate)};
    tensors[1] = (tw_named_tensor){SCHEDULE, tw_tensor_string(schedule, strlen(schedule))};
    tensors[2] = (tw_named_tensor){ALL_REDUCE, tw_tensor_string(spec, strlen(spec))};
    return tensors[0].tensor && tensors[1].tensor && tensors[2].tensor ? TW_OK
                                                                       : twi_fail_memory(error, "saving a checkpoint");
}

const char *tw_trainer_changes(const tw_trainer *t)
{
    TWI_NEED_OR(t, "");
    return t->recipe.changes;
}

const char *tw_trainer_all_reduce(const tw_trainer *t)
{
    TWI_NEED_OR(t, NULL);
    return t->recipe.average.all_reduce;
}
