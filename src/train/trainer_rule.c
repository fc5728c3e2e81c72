/* trainer_rule.c - the rule of a run in words, which are what its header prints and what its checkpoints remember. */
#define _GNU_SOURCE
#include "base/status.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "train/trainer.h"
#include "train/trainer_names.h"

/* A text that grows; what does not fit is left out. */
typedef struct words {
    char *text;
    size_t size, used;
} words;

static void say(words *w, const char *format, ...) TW_PRINTF(2, 3);
static void say(words *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = w->used < w->size ? vsnprintf(w->text + w->used, w->size - w->used, format, arguments) : 0;
    va_end(arguments);
    w->used += length > 0 ? (size_t)length : 0;
}

static words begin(char *text, size_t size)
{
    if (size)
        *text = 0;
    return (words){text, size, 0};
}

static float or_usual(float value, float usual)
{
    return value > 0 ? value : usual;
}

static void say_optimizer(words *w, const twi_recipe *recipe)
{
    const tw_rule *r = &recipe->rule;
    switch (recipe->setting[TWI_OPTIMIZER]) { /* ORDER OPTIMIZER */
    case TW_OPTIMIZER_MOMENTUM:
        say(w, "momentum %g%s", or_usual(recipe->model->momentum, 0.9f),
            r->nesterov || recipe->model->nesterov ? " (Nesterov's)" : "");
        break;
    case TW_OPTIMIZER_ADAM:
        say(w, "Adam (beta %g and %g, epsilon %g)", or_usual(r->beta1, 0.9f), or_usual(r->beta2, 0.999f),
            or_usual(r->epsilon, 1e-8f));
        break;
    case TW_OPTIMIZER_RMS_PROP:
        say(w, "RMSProp (decay %g, momentum %g, epsilon %g)", or_usual(r->beta2, 0.9f),
            r->beta1 < 0 ? 0 : or_usual(r->beta1, 0.9f), or_usual(r->epsilon, 1));
        break;
    case TW_OPTIMIZER_MUON:
        say(w, "Muon (momentum %g%s, %d iterations%s)", or_usual(recipe->model->momentum, 0.95f),
            recipe->model->muon.plain_momentum ? "" : ", Nesterov's",
            recipe->model->muon.iterations ? recipe->model->muon.iterations : 5,
            recipe->model->muon.normalize ? ", normalized" : "");
        break;
    default:
        say(w, "gradient descent");
    }
}

static void say_groups(words *w, const twi_recipe *recipe)
{
    const tw_model_group *group;
    for (int i = 0; (group = twi_recipe_group(recipe, i)); i++) {
        say(w, "; '%s' by %g times the rate", group->ending, group->rate_ratio);
        if (group->optimizer == TW_OPTIMIZER_MOMENTUM)
            say(w, ", momentum %g%s", or_usual(group->momentum, 0.9f), group->nesterov ? " (Nesterov's)" : "");
        if (group->rate_ends > 0)
            say(w, ", until epoch %g", group->rate_ends);
        if (group->weight_decay > 0)
            say(w, ", weight decay %g", group->weight_decay);
    }
}

char *twi_recipe_rule_text(const twi_recipe *recipe, char *text, size_t size)
{
    const tw_rule *r = &recipe->rule;
    const char *of = recipe->model->decay_rank > 1 ? " of weights alone" : "";
    words w = begin(text, size);
    say_optimizer(&w, recipe);
    say_groups(&w, recipe);
    if (recipe->model->label_smoothing > 0)
        say(&w, "; labels smoothed by %g", recipe->model->label_smoothing);
    if (recipe->model->weight_decay > 0)
        say(&w, "; weight decay %g%s in the loss", recipe->model->weight_decay, of);
    if (r->decoupled_decay > 0)
        say(&w, "; weight decay %g%s beside the gradient", r->decoupled_decay, of);
    if (r->clip_value > 0)
        say(&w, "; averaged gradients clipped to %g", r->clip_value);
    if (r->clip_norm > 0)
        say(&w, "; averaged gradients clipped to a norm of %g", r->clip_norm);
    if (r->automatic_loss_scale)
        say(&w, "; loss scaled automatically, from %g, doubled after %d good steps", or_usual(r->loss_scale, 1 << 15),
            r->loss_scale_every ? r->loss_scale_every : 1000);
    else if (r->loss_scale > 0)
        say(&w, "; loss scaled by %g", r->loss_scale);
    return text;
}

char *tw_trainer_rule_text(const tw_trainer *t, char *text, size_t size)
{
    TWI_NEED_OR(text, NULL);
    begin(text, size);
    TWI_NEED_OR(t, text);
    return twi_recipe_rule_text(&t->recipe, text, size);
}

/* ---- the rate ---- */

double twi_trainer_steps(const tw_trainer *t, double length)
{
    double examples = (double)tw_trainer_examples(t);
    double of_unit[] = {[TW_RATE_EPOCHS] = (double)t->recipe.data_examples / examples,
                        [TW_RATE_STEPS] = 1,
                        [TW_RATE_EXAMPLES] = 1 / examples};
    return fmax(1, floor(length * of_unit[t->recipe.rule.unit] + 1e-9));
}

/* "step 3900 (epoch 10.0)" */
static void say_step(words *w, const tw_trainer *t, double step)
{
    say(w, "step %.0f (epoch %.1f)", step, step * (double)tw_trainer_examples(t) / (double)t->recipe.data_examples);
}

double twi_trainer_epoch(const tw_trainer *t, double epoch)
{
    return fmax(1, floor(epoch * (double)t->recipe.data_examples / (double)tw_trainer_examples(t) + 1e-9));
}

static void say_model_rate(words *w, const tw_trainer *t)
{
    const tw_model *m = t->recipe.model;
    int64_t steps[TW_MOST_RATE_STEPS];
    int count = tw_model_rate_changes(m, t->recipe.data_examples, (int)t->recipe.setting[TWI_BATCH],
                                      tw_trainer_examples(t), steps);
    double in_epoch = (double)t->recipe.data_examples / (double)tw_trainer_examples(t);
    if (m->rate_ends > 0) {
        say(w, ", to 0 at ");
        say_step(w, t, twi_trainer_epoch(t, m->rate_ends));
        return;
    }
    if (m->epochs_per_decay > 0)
        say(w, ", times %g every %lld steps (%.1f epochs)", m->decay_factor, (long long)steps[0],
            (double)steps[0] / in_epoch);
    for (int i = 0; i < count && !(m->epochs_per_decay > 0); i++) {
        say(w, ", times %g from ", m->rate_steps[i].factor);
        say_step(w, t, (double)steps[i]);
    }
}

static void say_schedule(words *w, const tw_trainer *t)
{
    const tw_rule *r = &t->recipe.rule;
    double steps = twi_trainer_steps(t, r->length);
    switch (r->schedule) { /* ORDER SCHEDULE */
    case TW_SCHEDULE_CONSTANT:
        break;
    case TW_SCHEDULE_EXPONENTIAL:
        say(w, ", times %g every %.0f steps (%.1f epochs)", r->factor, steps,
            steps * (double)tw_trainer_examples(t) / (double)t->recipe.data_examples);
        if (r->end > 0)
            say(w, " down to %g", r->end);
        break;
    case TW_SCHEDULE_POLYNOMIAL:
    case TW_SCHEDULE_COSINE:
        say(w, r->schedule == TW_SCHEDULE_COSINE ? ", along a cosine to %g at " : ", to %g at ", r->end);
        say_step(w, t, steps);
        if (r->schedule == TW_SCHEDULE_POLYNOMIAL && r->power > 0 && r->power != 1)
            say(w, " with a power of %g", r->power);
        break;
    case TW_SCHEDULE_PIECEWISE:
        for (int i = 0; i < r->num_rates; i++) {
            say(w, ", %g from ", r->rates[i]);
            say_step(w, t, twi_trainer_steps(t, r->at[i]));
        }
        break;
    default:
        say_model_rate(w, t);
    }
}

char *tw_trainer_rate_text(const tw_trainer *t, char *text, size_t size)
{
    TWI_NEED_OR(text, NULL);
    words w = begin(text, size);
    TWI_NEED_OR(t, text);
    const tw_rule *r = &t->recipe.rule;
    say(&w, "%g", t->recipe.first_rate);
    say_schedule(&w, t);
    if (r->scale_rate)
        say(&w, "; all times %g, for %lld examples a step instead of %d",
            (double)tw_trainer_examples(t) / t->recipe.model->batch, (long long)tw_trainer_examples(t),
            t->recipe.model->batch);
    if (r->warm_up > 0) {
        say(&w, "; rises in a line until ");
        say_step(&w, t, twi_trainer_steps(t, r->warm_up));
    }
    if (t->recipe.rate_factor < 1)
        say(&w, "; all times %g since the run went back", t->recipe.rate_factor);
    return text;
}

/* ---- checkpoints ---- */

char *twi_schedule_text(const tw_rule *r, char *text, size_t size)
{
    const char *unit = twi_name_of(twi_unit_names, r->unit)->name;
    words w = begin(text, size);
    say(&w, "%s",
        r->schedule == TW_SCHEDULE_MODEL ? "the model's" : twi_name_of(twi_schedule_names, r->schedule)->name);
    if (r->length > 0)
        say(&w, " over %g %s", r->length, unit);
    if (r->factor > 0 || r->end > 0 || r->power > 0)
        say(&w, " (factor %g, end %g, power %g)", r->factor, r->end, r->power);
    for (int i = 0; i < r->num_rates; i++)
        say(&w, ", %g from %g %s", r->rates[i], r->at[i], unit);
    if (r->warm_up > 0)
        say(&w, ", warm-up %g %s", r->warm_up, unit);
    if (r->scale_rate)
        say(&w, ", scaled with the batch");
    return text;
}

/* Checkpoints by others, and older ones, say nothing. */
tw_status twi_recipe_check_rule(twi_recipe *recipe, tw_checkpoint *checkpoint, bool accept, tw_error *error)
{
    char now[TWI_RULE_SIZE];
    tw_tensor *saved = NULL;
    if (!checkpoint || tw_checkpoint_find(checkpoint, TWI_RULE_NAME) < 0)
        return TW_OK;
    tw_status status = tw_checkpoint_read(checkpoint, TWI_RULE_NAME, &saved, error);
    if (status != TW_OK)
        return status;
    twi_recipe_rule_text(recipe, now, sizeof now);
    if (tw_tensor_dtype(saved) != TW_STRING || tw_tensor_elements(saved) != 1) {
        status = twi_fail(error, TW_DATA_LOSS, "checkpoint %s: '%s' is not a text", tw_checkpoint_path(checkpoint),
                          TWI_RULE_NAME);
    } else {
        const tw_string *before = tw_tensor_data(saved);
        char then[TWI_RULE_SIZE];
        snprintf(then, sizeof then, "%.*s", (int)before->size, before->size ? before->data : "");
        if (strcmp(then, now) != 0 && accept)
            twi_recipe_note(recipe, "rule", now, then);
        else if (strcmp(then, now) != 0)
            status = twi_fail(error, TW_INVALID_ARGUMENT,
                              "checkpoint %s was made with another rule. Then: %s. Now: %s. Give the same options to "
                              "resume, or train into another directory, or go on with options.accept_other_bits",
                              tw_checkpoint_path(checkpoint), then, now);
    }
    tw_tensor_release(saved);
    return status;
}
