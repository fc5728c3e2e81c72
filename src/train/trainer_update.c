/* trainer_update.c - the recipe of a model, and the rule by which a run departs from it: the learning rate, the
 * optimizer, what happens to averaged gradients, and what runs with each update. */
#include "base/memory.h"

#include "train/optimizer.h" /* twi_moving_averages_of */
#include "train/trainer.h"

/* In a line to 0 at epoch `ends`; 0: as the model's staircase or steps say. */
static tw_output build_model_rate(const tw_trainer *t, tw_graph *g, float rate, float ends)
{
    const tw_model *m = t->recipe.model;
    const tw_variable *step = tw_global_step(g);
    int64_t changes[TW_MOST_RATE_STEPS];
    float rates[TW_MOST_RATE_STEPS + 1] = {rate};
    int count = tw_model_rate_changes(m, t->recipe.data_examples, t->recipe.setting[TWI_BATCH], tw_trainer_examples(t),
                                      changes);
    if (ends > 0)
        return tw_polynomial_decay(g, rate, step, twi_trainer_epoch(t, ends), 0, 1);
    if (m->epochs_per_decay > 0)
        return tw_exponential_decay(g, rate, step, (double)changes[0], m->decay_factor, true);
    for (int i = 0; i < count; i++)
        rates[i + 1] = rate * m->rate_steps[i].factor;
    return count ? tw_piecewise_constant(g, step, changes, count, rates) : tw_scalar(g, rate);
}

/* rates[i] while at most step at[i] is done: the op's boundaries are the last steps of the old rate. */
static tw_output build_pieces(const tw_trainer *t, tw_graph *g, float rate)
{
    const tw_rule *rule = &t->recipe.rule;
    int64_t last[TW_MOST_RATES];
    float rates[TW_MOST_RATES + 1] = {rate};
    for (int i = 0; i < rule->num_rates; i++) {
        last[i] = (int64_t)twi_trainer_steps(t, rule->at[i]) - 1;
        if (i && last[i] <= last[i - 1])
            last[i] = last[i - 1] + 1;
        rates[i + 1] = rule->rates[i] * (rate / t->recipe.first_rate);
    }
    return tw_piecewise_constant(g, tw_global_step(g), last, rule->num_rates, rates);
}

static tw_output build_scheduled_rate(const tw_trainer *t, tw_graph *g, float rate, float ends)
{
    const tw_rule *rule = &t->recipe.rule;
    const tw_variable *step = tw_global_step(g);
    double steps = twi_trainer_steps(t, rule->length);
    tw_output made;
    switch (rule->schedule) { /* ORDER SCHEDULE */
    case TW_SCHEDULE_CONSTANT:
        return tw_scalar(g, rate);
    case TW_SCHEDULE_EXPONENTIAL:
        made = tw_exponential_decay(g, rate, step, steps, rule->factor, true);
        return rule->end > 0 ? tw_maximum(g, made, tw_scalar(g, rule->end)) : made;
    case TW_SCHEDULE_POLYNOMIAL:
        return tw_polynomial_decay(g, rate, step, steps, rule->end, rule->power > 0 ? rule->power : 1);
    case TW_SCHEDULE_COSINE:
        return tw_cosine_decay(g, rate, step, steps, rule->end);
    case TW_SCHEDULE_PIECEWISE:
        return build_pieces(t, g, rate);
    default:
        return build_model_rate(t, g, rate, ends);
    }
}

static float or_usual(float value, float usual)
{
    return value > 0 ? value : usual;
}

/* The rate of variables that learn `ratio` times as fast as the others. */
static tw_output build_rate(const tw_trainer *t, tw_graph *g, float ratio, float ends)
{
    const tw_model *m = t->recipe.model;
    const tw_rule *rule = &t->recipe.rule;
    float first =
        t->recipe.first_rate * ratio * (rule->scale_rate ? (float)tw_trainer_examples(t) / (float)m->batch : 1);
    tw_output rate = build_scheduled_rate(t, g, first, ends);
    if (rule->warm_up > 0)
        rate = tw_warm_up(g, rate, tw_global_step(g), twi_trainer_steps(t, rule->warm_up));
    return t->recipe.rate_factor < 1 ? tw_mul(g, rate, tw_scalar(g, t->recipe.rate_factor)) : rate;
}

tw_output twi_trainer_build_rate(const tw_trainer *t, tw_graph *g)
{
    return build_rate(t, g, 1, t->recipe.model->rate_ends);
}

const tw_model_group *twi_recipe_group(const twi_recipe *recipe, int i)
{
    const tw_model *m = recipe->model;
    bool own = recipe->setting[TWI_OPTIMIZER] == m->optimizer;
    return own && i < TW_MOST_MODEL_GROUPS && m->groups[i].ending ? m->groups + i : NULL;
}

static void build_groups(const tw_trainer *t, tw_optimizer *optimizer)
{
    const tw_model_group *group;
    tw_graph *g = t->graph;
    for (int i = 0; (group = twi_recipe_group(&t->recipe, i)); i++) {
        float ends = group->rate_ends > 0 ? group->rate_ends : t->recipe.model->rate_ends;
        tw_output rate = build_rate(t, g, group->rate_ratio, ends);
        tw_optimizer *own = group->optimizer == TW_OPTIMIZER_MOMENTUM
                                ? tw_momentum(g, rate, or_usual(group->momentum, 0.9f), group->nesterov)
                                : tw_gradient_descent(g, rate);
        tw_optimize_apart(optimizer, group->ending, own);
    }
}

static tw_muon_options muon_options(const twi_recipe *recipe)
{
    tw_muon_options options = recipe->model->muon;
    options.momentum = recipe->model->momentum;
    return options;
}

tw_optimizer *twi_trainer_build_optimizer(tw_trainer *t)
{
    const tw_model *m = t->recipe.model;
    const tw_rule *rule = &t->recipe.rule;
    tw_graph *g = t->graph;
    tw_optimizer *made;
    tw_muon_options muon;
    t->update.rate = twi_trainer_build_rate(t, g);
    switch (t->recipe.setting[TWI_OPTIMIZER]) { /* ORDER OPTIMIZER */
    case TW_OPTIMIZER_MOMENTUM:
        made = tw_momentum(g, t->update.rate, or_usual(m->momentum, 0.9f), rule->nesterov || m->nesterov);
        break;
    case TW_OPTIMIZER_MUON:
        muon = muon_options(&t->recipe);
        made = tw_muon(g, t->update.rate, &muon);
        break;
    case TW_OPTIMIZER_ADAM:
        made = tw_adam(g, t->update.rate, or_usual(rule->beta1, 0.9f), or_usual(rule->beta2, 0.999f),
                       or_usual(rule->epsilon, 1e-8f));
        break;
    case TW_OPTIMIZER_RMS_PROP:
        made = tw_rms_prop(g, t->update.rate, or_usual(rule->beta2, 0.9f),
                           t->recipe.rule.beta1 < 0 ? 0 : or_usual(rule->beta1, 0.9f), or_usual(rule->epsilon, 1));
        break;
    default:
        made = tw_gradient_descent(g, t->update.rate);
    }
    tw_decouple_weight_decay(made, rule->decoupled_decay, m->decay_rank);
    build_groups(t, made);
    return made;
}

tw_loss_scale *twi_trainer_build_scale(tw_trainer *t)
{
    const tw_rule *rule = &t->recipe.rule;
    if (rule->automatic_loss_scale)
        return tw_automatic_loss_scale(t->graph, or_usual(rule->loss_scale, 1 << 15),
                                       rule->loss_scale_every ? rule->loss_scale_every : 1000);
    return rule->loss_scale > 0 ? tw_fixed_loss_scale(t->graph, rule->loss_scale) : NULL;
}

/* What runs with the update: the moving averages of the variables, and tower 0's updates of batch normalization. The
 * other towers' would overwrite each other in no order. Asynchronous, tower 0 makes its own (asynchronous.c). */
static tw_output finish_step(const tw_trainer *t, tw_output apply)
{
    tw_graph *g = t->graph;
    const tw_model *m = t->recipe.model;
    if (m->average_decay > 0) {
        int all;
        tw_variable **trained = twi_trainer_trained(t, &all);
        tw_averages *averages =
            twi_moving_averages_of(g, trained, all, m->average_decay, tw_global_step(g), apply);
        twi_free(trained);
        apply = averages ? averages->update : (tw_output){0};
    }
    int count = t->asynchronous ? 0 : tw_get_collection(g, "update_ops", "tower_0", NULL, 0);
    if (count == 0)
        return apply;
    tw_output whole = {0}, *parts = twi_alloc_array((size_t)count + 1, sizeof *parts);
    if (parts) {
        parts[0] = apply;
        tw_get_collection(g, "update_ops", "tower_0", parts + 1, count);
        whole = tw_group(tw_name(g, "train"), parts, count + 1);
    }
    twi_free(parts);
    return whole; /* dead when memory ran out */
}

/* What is clipped is the average, so that it does not matter how the batch was divided. */
tw_grads *twi_trainer_finish_gradients(tw_trainer *t, tw_grads *grads)
{
    const tw_rule *rule = &t->recipe.rule;
    if (grads && t->scaling.scale)
        grads = tw_unscale_gradients(t->graph, t->scaling.scale, t->update.gradients, t->towers.count, grads);
    if (grads && rule->clip_value > 0)
        grads = tw_clip_gradients(t->graph, grads, rule->clip_value);
    if (grads && rule->clip_norm > 0)
        grads = tw_clip_gradients_by_norm(t->graph, grads, rule->clip_norm, NULL);
    return grads;
}

tw_output twi_trainer_build_update(tw_trainer *t, tw_optimizer *optimizer)
{
    tw_output apply = twi_trainer_apply(t, optimizer);
    if (t->scaling.scale && t->scaling.scale->automatic) {
        tw_output parts[] = {apply, t->scaling.scale->update};
        apply = tw_group(tw_name(t->graph, "apply"), parts, 2);
    }
    return finish_step(t, apply);
}
