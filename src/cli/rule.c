/* rule.c - see rule.h. */
#include "rule.h"

#include "command.h" /* complain */

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ADAM_W = 5, MODEL_DECAY = 0, ALL_DECAY, WEIGHTS_DECAY };

static const tw_model_optimizer optimizers[] = { /* ORDER OPTIMIZER: as in the choices */
    TW_OPTIMIZER_DEFAULT, TW_OPTIMIZER_GRADIENT_DESCENT, TW_OPTIMIZER_MOMENTUM, TW_OPTIMIZER_ADAM, TW_OPTIMIZER_RMS_PROP, TW_OPTIMIZER_ADAM,
    TW_OPTIMIZER_MUON,
};

static double or_zero(double given)
{
    return isnan(given) ? 0 : given;
}

/* "0.1;82;0.01": rates and, between them, when they begin. */
static bool read_rates(const char *command, const char *text, tw_rule *to, float *rate)
{
    double numbers[2 * TW_MOST_RATES + 1];
    int count = 0;
    const char *at = text;
    for (bool more = true; more; count++) {
        char *end;
        if (count == 2 * TW_MOST_RATES + 1)
            return complain(command, "--rate-steps: expected at most %d rates", TW_MOST_RATES + 1);
        numbers[count] = strtod(at, &end);
        if (end == at || !(numbers[count] >= 0) || numbers[count] > 1e12 || (*end && *end != ';'))
            return complain(command, "--rate-steps: expected numbers with ';' between them, such as 0.1;82;0.01, found '%s'",
                            text);
        more = *end == ';';
        at = end + more;
    }
    if (count % 2 == 0)
        return complain(command, "--rate-steps must have an odd number of components: rates, and between two of them when "
                                 "the second begins; found '%s'", text);
    for (int i = 3; i < count; i += 2)
        if (numbers[i] <= numbers[i - 2])
            return complain(command, "--rate-steps: times must rise, but %g follows %g", numbers[i], numbers[i - 2]);
    if (!(numbers[0] > 0))
        return complain(command, "--rate-steps: the first rate must be above 0");
    *rate = (float)numbers[0];
    to->num_rates = count / 2;
    for (int i = 0; i < to->num_rates; i++) {
        to->at[i] = numbers[2 * i + 1];
        to->rates[i] = (float)numbers[2 * i + 2];
    }
    to->schedule = to->num_rates ? TW_SCHEDULE_PIECEWISE : TW_SCHEDULE_CONSTANT;
    return true;
}

static bool read_schedule(const char *command, const rule *r, tw_rule *to, float *rate)
{
    to->unit = (tw_rate_unit)r->unit;
    to->warm_up = or_zero(r->warm_up);
    to->scale_rate = r->scale_rate;
    if (r->rates) {
        if (r->schedule)
            return complain(command, "--rate-steps and --schedule both say how the rate goes on; give one of them");
        if (*rate > 0)
            return complain(command, "--rate-steps begins with the first rate; leave --learning-rate out");
        return read_rates(command, r->rates, to, rate);
    }
    to->schedule = (tw_schedule)r->schedule;
    to->length = or_zero(r->length);
    to->factor = (float)or_zero(r->factor);
    to->end = (float)or_zero(r->end);
    to->power = (float)or_zero(r->power);
    if (to->schedule > TW_SCHEDULE_CONSTANT && !(to->length > 0))
        return complain(command, "--schedule needs --rate-length");
    if (to->schedule <= TW_SCHEDULE_CONSTANT && to->length > 0)
        return complain(command, "--rate-length belongs to --schedule exponential, polynomial or cosine");
    if ((to->schedule == TW_SCHEDULE_EXPONENTIAL) != (to->factor > 0))
        return complain(command, "--schedule exponential and --rate-factor belong together");
    if (to->power > 0 && to->schedule != TW_SCHEDULE_POLYNOMIAL)
        return complain(command, "--rate-power belongs to --schedule polynomial");
    if (to->end > 0 && to->schedule <= TW_SCHEDULE_CONSTANT)
        return complain(command, "--rate-end belongs to --schedule exponential, polynomial or cosine");
    return true;
}

static bool read_loss_scale(const char *command, const rule *r, tw_rule *to)
{
    bool is_given = r->loss_scale_every != NOT_GIVEN;
    to->automatic_loss_scale = r->loss_scale && strcmp(r->loss_scale, "auto") == 0;
    if (is_given && !to->automatic_loss_scale)
        return complain(command, "--loss-scale-every belongs to --loss-scale auto");
    to->loss_scale_every = is_given ? (int)r->loss_scale_every : 0;
    if (!r->loss_scale || to->automatic_loss_scale)
        return true;
    char *end;
    to->loss_scale = strtof(r->loss_scale, &end);
    if (end == r->loss_scale || *end || !(to->loss_scale >= 1 && to->loss_scale <= 1 << 24))
        return complain(command, "--loss-scale: expected auto or a number from 1 to %d, such as 128, found '%s'",
                        1 << 24, r->loss_scale);
    return true;
}

static void follow_decay(const rule *r, bool decay_given, tw_model *model, tw_rule *to)
{
    if (r->decay_of == ALL_DECAY) {
        model->decay_spares_norms = false;
        model->decay_rank = 0;
    }
    if (r->decay_of == WEIGHTS_DECAY)
        model->decay_rank = 2;
    to->decoupled_decay = (float)(!isnan(r->decoupled_decay) ? r->decoupled_decay : r->optimizer == ADAM_W ? 0.01 : 0);
    if (to->decoupled_decay > 0 && !decay_given)
        model->weight_decay = 0;
}

bool rule_read(const char *command, const rule *r, bool decay_given, tw_model *model, tw_rule *to,
               tw_model_optimizer *optimizer, float *rate)
{
    *to = (tw_rule){
        .nesterov = r->nesterov,
        .beta1 = (float)or_zero(r->beta1),
        .beta2 = (float)or_zero(r->beta2),
        .epsilon = (float)or_zero(r->epsilon),
        .clip_value = (float)or_zero(r->clip_value),
        .clip_norm = (float)or_zero(r->clip_norm),
    };
    *optimizer = optimizers[r->optimizer];
    tw_model_optimizer used = *optimizer ? *optimizer : model->optimizer;
    bool adaptive = used == TW_OPTIMIZER_ADAM || used == TW_OPTIMIZER_RMS_PROP;
    if (to->nesterov && used != TW_OPTIMIZER_MOMENTUM)
        return complain(command, "--nesterov belongs to --optimizer momentum");
    if (!adaptive && (!isnan(r->beta1) || to->beta2 > 0 || to->epsilon > 0))
        return complain(command, "--beta1, --beta2 and --epsilon belong to --optimizer adam, adamw and rmsprop");
    if (used == TW_OPTIMIZER_RMS_PROP && r->beta1 == 0)
        to->beta1 = -1; /* said to be 0, and not left out */
    if (!read_schedule(command, r, to, rate) || !read_loss_scale(command, r, to))
        return false;
    if (to->automatic_loss_scale && used == TW_OPTIMIZER_RMS_PROP && to->beta1 >= 0)
        return complain(command,
                        "Automatic loss scaling is not supported with RMSProp's momentum, which goes on moving variables "
                        "in steps that are to be left out: add --beta1 0, or take a fixed --loss-scale");
    if (to->automatic_loss_scale && used == TW_OPTIMIZER_MUON)
        return complain(command,
                        "Automatic loss scaling is not supported with Muon, which goes on moving variables in steps "
                        "that are to be left out: take a fixed --loss-scale");
    follow_decay(r, decay_given, model, to);
    return true;
}
