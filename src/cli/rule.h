/* rule.h - where training departs from a model's recipe, as options of `tower train`: how the rate goes on, what an
 * update is, what happens to gradients before it. */
#ifndef CLI_RULE_H
#define CLI_RULE_H

#include "options.h"

#include <tower/trainer.h>

typedef struct rule {
    int optimizer, schedule, unit, decay_of;
    const char *rates, *loss_scale;
    double length, factor, end, power, warm_up;
    double beta1, beta2, epsilon, decoupled_decay, clip_value, clip_norm;
    int64_t loss_scale_every, accumulate;
    bool nesterov, scale_rate;
} rule;

/* Rows for a member `rule` of `settings`. ORDER OPTIMIZER, ORDER SCHEDULE: rule.c */
#define RULE_OPTIONS(settings)                                                                                         \
    {"optimizer", "NAME", OPTION_CHOICE, offsetof(settings, rule.optimizer),                                           \
     "how gradients become updates; model: as the checkpoint says, or the model; adamw: Adam with weight decay "       \
     "beside the gradient", .initial = "model", .choices = "model|sgd|momentum|adam|rmsprop|adamw|muon",               \
     .section = "rule"},                                                                                               \
        {"nesterov", NULL, OPTION_FLAG, offsetof(settings, rule.nesterov),                                             \
         "momentum looks ahead, as Nesterov has it"},                                                                  \
        {"beta1", "B", OPTION_REAL, offsetof(settings, rule.beta1),                                                    \
         "of Adam (0.9); of RMSProp its momentum (0.9; 0: none)", .most = 1, .also = "adam-beta1"},                    \
        {"beta2", "B", OPTION_REAL, offsetof(settings, rule.beta2), "of Adam (0.999); of RMSProp its decay (0.9)",     \
         .most = 1, .positive = true, .also = "adam-beta2"},                                                           \
        {"epsilon", "E", OPTION_REAL, offsetof(settings, rule.epsilon),                                                \
         "of Adam (1e-8); of RMSProp (1, as in TensorFlow's benchmarks)", .most = 1000, .positive = true},             \
        {"schedule", "NAME", OPTION_CHOICE, offsetof(settings, rule.schedule),                                         \
         "how the learning rate goes on: as the model says, not at all, times --rate-factor after each "               \
         "--rate-length, or to --rate-end within it in a line (polynomial) or along a cosine",                         \
         .initial = "model", .choices = "model|constant|exponential|polynomial|cosine"},                               \
        {"rate-steps", "LIST", OPTION_TEXT, offsetof(settings, rule.rates),                                            \
         "rates and when they begin, from the first one: 0.1;82;0.01;123;0.001",                                       \
         .also = "piecewise-learning-rate-schedule"},                                                                  \
        {"rate-unit", "UNIT", OPTION_CHOICE, offsetof(settings, rule.unit),                                            \
         "what --rate-steps, --rate-length and --warm-up count", .initial = "epochs",                                  \
         .choices = "epochs|steps|examples"},                                                                          \
        {"rate-length", "L", OPTION_REAL, offsetof(settings, rule.length), "of --schedule",                            \
         .most = 1 << 30, .positive = true, .also = "num-epochs-per-decay"},                                           \
        {"rate-factor", "F", OPTION_REAL, offsetof(settings, rule.factor), "of --schedule exponential",                \
         .most = 1, .positive = true, .also = "learning-rate-decay-factor"},                                           \
        {"rate-end", "R", OPTION_REAL, offsetof(settings, rule.end),                                                   \
         "the last rate, below which none falls; without it 0", .most = 1000, .also = "minimum-learning-rate"},        \
        {"rate-power", "P", OPTION_REAL, offsetof(settings, rule.power), "of --schedule polynomial; without it 1",     \
         .most = 100, .positive = true},                                                                               \
        {"warm-up", "L", OPTION_REAL, offsetof(settings, rule.warm_up),                                                \
         "the rate rises in a line for so long", .most = 1 << 30, .positive = true,                                    \
         .also = "num-learning-rate-warmup-epochs"},                                                                   \
        {"scale-rate", NULL, OPTION_FLAG, offsetof(settings, rule.scale_rate),                                         \
         "the linear scaling rule: rates times examples a step / the model's examples a tower"},                       \
        {"decoupled-weight-decay", "W", OPTION_REAL, offsetof(settings, rule.decoupled_decay),                         \
         "each update also takes rate * W of the variable, instead of a decay in the loss; of adamw without it 0.01",  \
         .most = 1000},                                                                                                \
        {"weight-decay-of", "WHAT", OPTION_CHOICE, offsetof(settings, rule.decay_of),                                  \
         "which variables decay: as the model says, all, or weights alone, sparing biases and normalizations",         \
         .initial = "model", .choices = "model|all|weights"},                                                          \
        {"clip", "MOST", OPTION_REAL, offsetof(settings, rule.clip_value),                                             \
         "averaged gradients are clipped to [-MOST, MOST]", .most = 1 << 30, .positive = true,                         \
         .also = "gradient-clip"},                                                                                     \
        {"clip-norm", "MOST", OPTION_REAL, offsetof(settings, rule.clip_norm),                                         \
         "averaged gradients are made smaller if the norm of all of them is above MOST", .most = 1 << 30,              \
         .positive = true},                                                                                            \
        {"accumulate", "K", OPTION_NUMBER, offsetof(settings, rule.accumulate),                                        \
         "K batches a tower for each update, one after the other, so that memory holds one at a time: the same as K "  \
         "times as many towers", .initial = "1", .least = 1, .most = 1024},                                            \
        {"loss-scale", "N|auto", OPTION_TEXT, offsetof(settings, rule.loss_scale),                                     \
         "multiply the loss so that gradients in float16 do not vanish; auto: double it from time to time, and halve " \
         "it and leave the step out when gradients overflow", .also = "fp16-loss-scale"},                              \
    {                                                                                                                  \
        "loss-scale-every", "N", OPTION_NUMBER, offsetof(settings, rule.loss_scale_every),                             \
            "good steps after which --loss-scale auto doubles; without it 1000", .least = 1, .most = 1 << 30,          \
            .also = "fp16-inc-loss-scale-every-n"                                                                      \
    }

/* Fills in *to, the optimizer and the first rate (0: the model's), and changes the model where decay is said to be
 * another. Complains in the name of `command` and returns false where options do not fit together. */
bool rule_read(const char *command, const rule *given, bool decay_given, tw_model *model, tw_rule *to,
               tw_model_optimizer *optimizer, float *rate);

#endif
