/* bench_rule.c - see bench_rule.h. */
#include "bench_rule.h"

#include "command.h" /* complain */

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    tw_model_optimizer optimizer;
} optimizers[] = {{"sgd", TW_OPTIMIZER_GRADIENT_DESCENT}, {"momentum", TW_OPTIMIZER_MOMENTUM}, {"adam", TW_OPTIMIZER_ADAM},
                  {"rmsprop", TW_OPTIMIZER_RMS_PROP}};

const char *bench_rule_name(const bench_rule *given)
{
    return optimizers[given->optimizer].name;
}

static float or_usual(double value)
{
    return isnan(value) ? 0 : (float)value;
}

static void read_optimizer(const bench_rule *b, tw_model *model, tw_trainer_options *trainer)
{
    tw_rule *rule = &trainer->rule;
    trainer->optimizer = optimizers[b->optimizer].optimizer;
    trainer->learning_rate = or_usual(b->learning_rate);
    rule->nesterov = trainer->optimizer == TW_OPTIMIZER_MOMENTUM;
    if (!isnan(b->momentum))
        model->momentum = (float)b->momentum;
    if (!isnan(b->weight_decay))
        model->weight_decay = (float)b->weight_decay;
    if (trainer->optimizer == TW_OPTIMIZER_ADAM) {
        rule->beta1 = or_usual(b->adam_beta1);
        rule->beta2 = or_usual(b->adam_beta2);
        rule->epsilon = or_usual(b->adam_epsilon);
    } else if (trainer->optimizer == TW_OPTIMIZER_RMS_PROP) {
        rule->beta1 = b->rmsprop_momentum == 0 ? -1 : or_usual(b->rmsprop_momentum);
        rule->beta2 = or_usual(b->rmsprop_decay);
        rule->epsilon = or_usual(b->rmsprop_epsilon);
    }
    rule->clip_value = or_usual(b->clip);
}

/* "0.1;100;0.01;150;0.001" */
static bool read_piecewise(const char *text, tw_rule *rule)
{
    double numbers[2 * TW_MOST_RATES];
    int count = 0;
    for (const char *at = text;; at++) {
        char *end;
        if (count == 2 * TW_MOST_RATES)
            return complain("bench", "--piecewise_learning_rate_schedule: at most %d rates", TW_MOST_RATES);
        numbers[count] = strtod(at, &end);
        if (end == at || (*end && *end != ';') || !(numbers[count] >= 0))
            return complain("bench",
                            "--piecewise_learning_rate_schedule: expected numbers with ';' between them, found '%s'",
                            text);
        count++;
        at = end;
        if (!*at)
            break;
    }
    if (count % 2 == 0)
        return complain("bench", "--piecewise_learning_rate_schedule must have an odd number of components");
    rule->schedule = TW_SCHEDULE_PIECEWISE;
    rule->unit = TW_RATE_EPOCHS;
    rule->num_rates = count / 2 + 1;
    for (int i = 0; i < rule->num_rates; i++) {
        rule->rates[i] = (float)numbers[2 * i];
        rule->at[i] = i ? numbers[2 * i - 1] : 0;
        if (i && rule->at[i] <= rule->at[i - 1])
            return complain("bench", "--piecewise_learning_rate_schedule: epochs rise, but %g comes after %g",
                            rule->at[i], rule->at[i - 1]);
    }
    return true;
}

static bool read_schedule(const bench_rule *b, tw_rule *rule)
{
    bool decays = !isnan(b->epochs_per_decay) || !isnan(b->decay_factor);
    if (b->piecewise && (decays || !isnan(b->learning_rate) || !isnan(b->minimum_rate)))
        return complain("bench",
                        "--piecewise_learning_rate_schedule says all about the rate: leave --init_learning_rate, "
                        "--num_epochs_per_decay, --learning_rate_decay_factor and --minimum_learning_rate out");
    if (decays && (isnan(b->epochs_per_decay) || isnan(b->decay_factor) || isnan(b->learning_rate)))
        return complain("bench", "--init_learning_rate, --num_epochs_per_decay and --learning_rate_decay_factor belong "
                                 "together");
    rule->warm_up = isnan(b->warmup_epochs) ? 0 : b->warmup_epochs;
    if (b->piecewise)
        return read_piecewise(b->piecewise, rule);
    if (decays) {
        rule->schedule = TW_SCHEDULE_EXPONENTIAL;
        rule->unit = TW_RATE_EPOCHS;
        rule->length = b->epochs_per_decay;
        rule->factor = (float)b->decay_factor;
        rule->end = or_usual(b->minimum_rate);
    }
    return true;
}

static bool read_precision(const bench_rule *b, tw_trainer_options *trainer)
{
    static const tw_dtype dtypes[] = {TW_FLOAT32, TW_BFLOAT16, TW_FLOAT16};
    trainer->dtype = b->use_fp16 ? TW_FLOAT16 : dtypes[b->dtype];
    bool half = trainer->dtype == TW_FLOAT16;
    if (!half && (b->automatic_scale || !isnan(b->loss_scale)))
        return complain("bench", "--fp16_loss_scale and --fp16_enable_auto_loss_scale are about float16: --use_fp16");
    trainer->rule.automatic_loss_scale = b->automatic_scale;
    trainer->rule.loss_scale = half ? isnan(b->loss_scale) ? 128 : (float)b->loss_scale : 0;
    trainer->rule.loss_scale_every = b->automatic_scale ? (int)b->scale_every : 0;
    return true;
}

bool bench_rule_read(const bench_rule *given, tw_model *model, tw_trainer_options *trainer)
{
    read_optimizer(given, model, trainer);
    return read_schedule(given, &trainer->rule) && read_precision(given, trainer);
}
